# zmqcat: build, test, install. `make help` lists the targets.
# V=1 shows whole command lines. All cores are used; -j1 on the command line wins.
ifeq ($(MAKELEVEL),0)
MAKEFLAGS += -r -j$(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
endif
SAY := $(if $(or $(V),$(findstring s,$(firstword -$(MAKEFLAGS)))),:,echo)
Q := $(if $(V),,@)
VERSION := 0.1.0
SOVERSION := 0
PREFIX ?= /usr/local
BINDIR ?= $(PREFIX)/bin
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
DATADIR ?= $(PREFIX)/share
MANDIR ?= $(DATADIR)/man
PKGCONFIGDIR ?= $(LIBDIR)/pkgconfig
UNITDIR ?= $(PREFIX)/lib/systemd/system
SYSUSERSDIR ?= $(PREFIX)/lib/sysusers.d
TMPFILESDIR ?= $(PREFIX)/lib/tmpfiles.d
LAUNCHDAEMONSDIR ?= /Library/LaunchDaemons
# Of agents users make copies that name their home.
LAUNCHAGENTSDIR ?= $(DATADIR)/zmqcat/LaunchAgents
DESTDIR ?=

B ?= build
# Built with gcc's sanitizers; `make fuzz` builds with clang.
B_ASAN ?= build-asan
B_FUZZ ?= build-fuzz
B_COV ?= build-coverage
FUZZ_SECONDS ?= 60
CC := $(if $(filter default,$(origin CC)),cc,$(CC))
AR ?= ar
PKG_CONFIG ?= pkg-config
OBJCOPY ?= objcopy
PYTHON ?= python3
INSTALL ?= install
UNAME := $(shell uname -s)

WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith \
	-Wwrite-strings -Wundef -Wvla -Wno-missing-field-initializers
CFLAGS ?= -O2 -g
# .ci/run says -Werror.
WERROR ?=
HARDEN ?= -fstack-protector-strong -D_FORTIFY_SOURCE=2
PIE := -fPIE
ALL_CFLAGS = -std=gnu11 $(WARN) $(WERROR) $(HARDEN) $(CFLAGS) $(EXTRA_CFLAGS) -Ilib \
	-DZC_VERSION='"$(VERSION)"'
ALL_LDFLAGS = $(LDFLAGS) $(EXTRA_LDFLAGS)
ifeq ($(UNAME),Linux)
ALL_LDFLAGS += -Wl,-z,relro,-z,now
PROGRAM_LDFLAGS := -pie
SERVICE ?= systemd
else ifeq ($(UNAME),Darwin)
SERVICE ?= launchd
else
SERVICE ?= none
endif

LIBS_SODIUM := $(shell $(PKG_CONFIG) --libs libsodium 2>/dev/null)
# The client library and the command do without cJSON.
LIBS_CORE := $(shell $(PKG_CONFIG) --libs libcjson 2>/dev/null) $(LIBS_SODIUM)
LIBS_HOST := $(shell $(PKG_CONFIG) --libs libuv libssl libcrypto 2>/dev/null)
CFLAGS_DEPS := $(shell $(PKG_CONFIG) --cflags libsodium libuv libcjson libssl libcrypto 2>/dev/null)
ifeq ($(SERVICE),systemd)
LIBS_HOST += $(shell $(PKG_CONFIG) --libs libsystemd 2>/dev/null)
CFLAGS_DEPS += $(shell $(PKG_CONFIG) --cflags libsystemd 2>/dev/null)
endif

# Without these a build ends in pages of errors; one line says so instead.
HAVE := $(shell command -v $(firstword $(CC)) >/dev/null && $(PKG_CONFIG) --exists libsodium libuv \
	libcjson libssl libcrypto $(if $(filter systemd,$(SERVICE)),libsystemd) 2>/dev/null && echo yes)
NEEDS := $(if $(HAVE),,| needs)

CORE_SRC := $(wildcard lib/base/*.c lib/crypto/*.c lib/zmqc/*.c lib/store/*.c \
	lib/tunnel/*.c lib/node/*.c)
HOST_SRC := $(filter-out lib/host/service_%.c,$(wildcard lib/host/*.c)) \
	lib/host/service_$(SERVICE).c
CLIENT_SRC := $(wildcard lib/client/*.c)
# What the client library holds beside its own files.
CLIENT_BASE_SRC := $(wildcard lib/base/*.c) lib/zmqc/frame.c $(wildcard lib/zmqc/msg*.c)
CLI_SRC := $(wildcard cli/*.c)
UNIT_SRC := $(wildcard tests/unit/test_*.c)
FUZZ_SRC := $(wildcard tests/fuzz/fuzz_*.c)
SIM_SRC := $(wildcard tests/sim/*.c)
BENCH_SRC := $(wildcard bench/*.c)
LOAD_SRC := $(wildcard bench/load/*.c)

obj = $(patsubst %.c,$(B)/%.o,$(1))
CORE := $(B)/libcore.a
HOST := $(B)/libhost.a
CLIENT := $(B)/libzmqcat.a
PROGRAMS := $(B)/zmqcat-hub $(B)/zmqcat-spoke $(B)/zmqcat
DAEMON_SRC := daemons/options.c daemons/sockets.c daemons/identity.c daemons/credential.c \
	daemons/region.c daemons/stampfile.c daemons/start.c
UNITS := $(patsubst tests/unit/%.c,$(B)/unit/%,$(UNIT_SRC))
FUZZERS := $(patsubst tests/fuzz/%.c,$(B)/fuzz/%,$(FUZZ_SRC))
LIBFUZZERS := $(patsubst tests/fuzz/%.c,$(B)/libfuzzer/%,$(FUZZ_SRC))
RELAY := $(B)/relay
# Between two network namespaces.
CABLE := $(if $(filter Linux,$(UNAME)),$(B)/link)
SIM := $(if $(SIM_SRC),$(B)/sim/sim)
BENCHES := $(patsubst bench/%.c,$(B)/bench/%,$(BENCH_SRC))
# The load engine of bench/run; it speaks epoll.
LOAD := $(if $(filter Linux,$(UNAME)),$(B)/load)
# What bench/count puts before the C library of a hub.
COUNT := $(if $(filter Linux,$(UNAME)),$(B)/count.so)
ifeq ($(UNAME),Darwin)
SONAME := libzmqcat.$(SOVERSION).dylib
SOFILE := $(SONAME)
SOLINK := libzmqcat.dylib
SHARED_LDFLAGS := -dynamiclib -install_name $(LIBDIR)/$(SONAME)
else
SONAME := libzmqcat.so.$(SOVERSION)
SOFILE := libzmqcat.so.$(VERSION)
SOLINK := libzmqcat.so
SHARED_LDFLAGS := -shared -Wl,-soname,$(SONAME) -Wl,--no-undefined -Wl,--as-needed
endif
SHARED := $(B)/$(SOFILE)
STATIC := $(B)/static/libzmqcat.a

.DELETE_ON_ERROR:
.SECONDARY:
.PHONY: all
all: $(PROGRAMS) $(CLIENT) $(SHARED) $(STATIC) ## build programs and client library into build/

$(B)/%.o: %.c $(NEEDS)
	@mkdir -p $(@D)
	@$(SAY) '  cc    $@'
	$(Q)$(CC) $(ALL_CFLAGS) $(PIE) $(CFLAGS_DEPS) -MMD -MP -c -o $@ $<
.PHONY: needs
needs:
	@echo 'make: the compiler ($(CC)), $(PKG_CONFIG) or a library is missing: run "make deps"' >&2
	@exit 1
$(B)/pic/%.o: %.c $(NEEDS)
	@mkdir -p $(@D)
	@$(SAY) '  cc    $@'
	$(Q)$(CC) $(ALL_CFLAGS) -fPIC -fvisibility=hidden $(CFLAGS_DEPS) -MMD -MP -c -o $@ $<

$(CORE): $(call obj,$(CORE_SRC))
$(HOST): $(call obj,$(HOST_SRC))
$(CLIENT): $(call obj,$(CLIENT_SRC) $(CLIENT_BASE_SRC))
$(CORE) $(HOST) $(CLIENT):
	@rm -f $@
	@$(SAY) '  ar    $@'
	$(Q)$(AR) rcs $@ $^
# The library that is installed: one object in which only the names of zmqcat.h can be seen, so that
# no name of ours meets one of the program it is linked to.
$(STATIC): $(patsubst %.c,$(B)/pic/%.o,$(CLIENT_SRC) $(CLIENT_BASE_SRC))
	@mkdir -p $(@D)
	@rm -f $@
	@$(SAY) '  ar    $@'
ifeq ($(UNAME),Darwin)
	$(Q)$(LD) -r -exported_symbol '_zmqcat_*' -o $(@D)/zmqcat.o $^
else
	$(Q)$(LD) -r -o $(@D)/zmqcat.o $^
	$(Q)$(OBJCOPY) --wildcard --keep-global-symbol='zmqcat_*' $(@D)/zmqcat.o
endif
	$(Q)$(AR) rcs $@ $(@D)/zmqcat.o
# Only what zmqcat.h marks ZMQCAT_PUBLIC leaves the shared library.
$(SHARED): $(patsubst %.c,$(B)/pic/%.o,$(CLIENT_SRC) $(CLIENT_BASE_SRC))
	@$(SAY) '  link  $@'
	$(Q)$(CC) $(CFLAGS) $(EXTRA_CFLAGS) $(ALL_LDFLAGS) $(SHARED_LDFLAGS) -o $@ $^ $(LIBS_SODIUM)

LINK = @mkdir -p $(@D); $(SAY) '  link  $@'
LINK += $(if $(V),&& set -x,); $(CC) $(ALL_CFLAGS) $(PIE) $(ALL_LDFLAGS) $(PROGRAM_LDFLAGS) -o $@ $^
$(B)/zmqcat-hub: $(call obj,$(wildcard daemons/hub*.c) $(DAEMON_SRC)) $(HOST) $(CORE)
	$(LINK) $(LIBS_HOST) $(LIBS_CORE)
$(B)/zmqcat-spoke: $(call obj,$(wildcard daemons/spoke*.c) $(DAEMON_SRC)) $(HOST) $(CORE)
	$(LINK) $(LIBS_HOST) $(LIBS_CORE)
# Of the host's library the command needs the key files only.
$(B)/zmqcat: $(call obj,$(CLI_SRC)) $(CLIENT) $(HOST) $(CORE)
	$(LINK) $(LIBS_CORE)
# A DERP relay for the tests and the quick start.
$(RELAY): $(call obj,$(wildcard tests/relay/*.c)) $(CORE)
	$(LINK) $(LIBS_HOST) $(LIBS_CORE)
# The link with faults that the tests and the bench put between two network namespaces.
$(CABLE): $(call obj,$(wildcard tests/link/*.c))
	$(LINK)
$(B)/unit/test_link: $(B)/tests/unit/test_link.o $(call obj,$(filter-out %/link.c,\
		$(wildcard tests/link/*.c)))
	$(LINK)
$(B)/unit/%: $(B)/tests/unit/%.o $(HOST) $(CLIENT) $(CORE)
	$(LINK) $(LIBS_HOST) $(LIBS_CORE)
$(B)/unit/test_hub_allow: $(B)/tests/unit/test_hub_allow.o \
		$(call obj,daemons/hub_allow.c daemons/hub_keys.c) $(HOST) $(CORE)
	$(LINK) $(LIBS_HOST) $(LIBS_CORE)
$(B)/tests/unit/test_launchd.o: CFLAGS_DEPS += -Itests/services/shim
# The hub as on macOS, with a stand-in for launchd.
ifeq ($(UNAME),Linux)
LAUNCHD_HUB := $(B)/launchd/zmqcat-hub
$(B)/lib/host/service_launchd.o: CFLAGS_DEPS += -Itests/services/shim
$(LAUNCHD_HUB): $(call obj,$(wildcard daemons/hub*.c) $(DAEMON_SRC) lib/host/service_launchd.c \
		tests/services/shim/launchd.c) $(HOST) $(CORE)
	$(LINK) $(LIBS_HOST) $(LIBS_CORE)
endif
# Their allocations fail; only GNU's linker can put functions before those of the library.
ifeq ($(UNAME),Linux)
NO_MEMORY := test_no_memory test_log_no_memory test_hub_no_memory test_hub_allow
$(NO_MEMORY:%=$(B)/tests/unit/%.o): CFLAGS_DEPS += -DZC_TEST_WRAP
$(NO_MEMORY:%=$(B)/unit/%): ALL_LDFLAGS += -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc
$(B)/tests/unit/test_rest.o: CFLAGS_DEPS += -DZC_TEST_WRAP
$(B)/unit/test_rest: ALL_LDFLAGS += -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=free
endif
$(B)/fuzz/%: $(B)/tests/fuzz/%.o $(B)/tests/fuzz/main.o $(CORE)
	$(LINK) $(LIBS_CORE)
$(B)/libfuzzer/%: $(B)/tests/fuzz/%.o $(CORE)
	$(LINK) -fsanitize=fuzzer $(LIBS_CORE)
$(B)/sim/sim: $(call obj,$(SIM_SRC)) $(CORE)
	$(LINK) $(LIBS_CORE)
$(LOAD): $(call obj,$(LOAD_SRC))
	$(LINK)
$(B)/count.so: bench/preload/count.c
	@mkdir -p $(@D)
	@$(SAY) '  link  $@'
	$(Q)$(CC) -std=gnu11 -O2 -g $(WARN) $(WERROR) -fPIC -fno-builtin -shared -o $@ $<
$(B)/bench/%: $(B)/bench/%.o $(CLIENT) $(CORE)
	$(LINK) $(LIBS_CORE)

# Not in folders into which other builds bring files of others.
-include $(shell find $(B) \( -path $(B)/interop -o -path $(B)/deb -o -path $(B)/macos \
	-o -path $(B)/guest \) -prune -o -name '*.d' -type f -print 2>/dev/null)

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z][a-z -]*:.*## / { printf "make %-12s %s\n", $$1, $$2 }' Makefile
	@echo 'Variables: PREFIX=$(PREFIX) DESTDIR= CC=$(CC) CFLAGS="$(CFLAGS)" B=$(B) \
	SERVICE=$(SERVICE) V=1 (show command lines) T=WORD (only tests whose names contain it)'
	@echo 'Below PREFIX: BINDIR LIBDIR INCLUDEDIR DATADIR MANDIR PKGCONFIGDIR UNITDIR SYSUSERSDIR \
	TMPFILESDIR LAUNCHAGENTSDIR; and LAUNCHDAEMONSDIR=$(LAUNCHDAEMONSDIR)'

# ---- what must be there to build and test ----
DEBIAN_BUILD := gcc libc6-dev make pkg-config libuv1-dev libsodium-dev libsystemd-dev \
	libcjson-dev libssl-dev
DEBIAN := $(DEBIAN_BUILD) python3 python3-venv mandoc socat strace systemd systemd-container \
	nix-bin zsh fish qemu-system-x86 mmdebstrap e2fsprogs iproute2
DEBIAN_DEB := build-essential debhelper
DEBIAN_DEV := clang libclang-rt-dev llvm clang-format $(DEBIAN_DEB) lintian ca-certificates
.PHONY: deps-build deps-deb deps deps-dev
deps-build: ## install what the build needs (apt; elsewhere the names are printed)
	@sh docs/deps.sh $(DEBIAN_BUILD)
# Debian 12 has no systemd-dev.
deps-deb: ## install what `make deb` needs
	@sh docs/deps.sh $(DEBIAN_BUILD) $(DEBIAN_DEB) \
		$$(apt-cache show systemd-dev >/dev/null 2>&1 && echo systemd-dev || echo systemd)
deps: ## install what the build and the tests need (apt; elsewhere the names are printed)
	@sh docs/deps.sh $(DEBIAN)
deps-dev: ## install what `make lint`, `make fuzz` and `make deb` need besides
	@sh docs/deps.sh $(DEBIAN_DEV)

# ---- tests ----
SAN_FLAGS := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
# gcc's shared libubsan ignores log_path, with which tests/run collects the reports.
ASAN_MAKE = +@$(MAKE) --no-print-directory B=$(B_ASAN) HARDEN= CFLAGS="-O1 -g" \
	EXTRA_CFLAGS="$(SAN_FLAGS)" PROGRAM_LDFLAGS="$(PROGRAM_LDFLAGS) -static-libubsan"
RUN = $(PYTHON) tests/run --build $(B) --asan $(B_ASAN)
.PHONY: programs-check programs-fuzz check check-fast check-all sanitize interop fuzz fuzz-run
.PHONY: lint quickstart
programs-check: all $(UNITS) $(SIM) $(RELAY) $(CABLE) $(LOAD) $(COUNT) $(LAUNCHD_HUB)
programs-fuzz: $(FUZZERS)
check: programs-check ## build and run the tests that need only this machine
	$(ASAN_MAKE) programs-fuzz
	@$(RUN) $(T)
check-fast: programs-check ## the unit tests and the quick tests of the services
	@$(RUN) --fast $(T)
check-all: programs-check ## check, long variants, interop, systemd containers, all sanitized
	$(ASAN_MAKE) programs-check programs-fuzz
	@$(RUN) --all $(T)
sanitize: ## the tests under gcc's address and undefined behaviour sanitizers only
	$(ASAN_MAKE) programs-check programs-fuzz
	@$(RUN) --sanitize $(T)
interop: programs-check ## build the real Go programs and run ours against them (Go 1.21 or later)
	@$(RUN) --interop $(T)
fuzz: ## fuzz each parser for FUZZ_SECONDS (60) with clang's libFuzzer
	@$(MAKE) --no-print-directory B=$(B_FUZZ) CC=clang HARDEN= CFLAGS="-O1 -g" fuzz-run \
		EXTRA_CFLAGS="-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all"
# New inputs stay in build-fuzz/corpus; one that crashes lands beside it and is named.
fuzz-run: $(LIBFUZZERS)
	for f in $(LIBFUZZERS); do n=$${f##*/fuzz_}; mkdir -p $(B)/corpus/$$n; \
		$$f -max_total_time=$(FUZZ_SECONDS) -timeout=10 -rss_limit_mb=1024 -print_final_stats=1 \
			-artifact_prefix=$(B)/$$n- $(B)/corpus/$$n tests/fuzz/corpus/$$n || exit 1; done
.PHONY: coverage
coverage: ## branch coverage of lib/store and lib/zmqc, T=FILE also which branches (gcc, gcov)
	+@$(MAKE) --no-print-directory B=$(B_COV) HARDEN= CFLAGS="-O0 -g" EXTRA_CFLAGS=--coverage \
		programs-check programs-fuzz
	@$(PYTHON) tests/coverage.py $(B_COV) $(T)
.PHONY: accept-units
accept-units: ## keep what the Nix modules make now as tests/nix/rendered, after a review (nix)
	@$(PYTHON) tests/nix/evaluate.py
lint: ## man pages, C format, Python syntax
	mandoc -Tlint -Wwarning docs/man/*.[1-8]
	@if command -v clang-format >/dev/null; then \
		echo 'clang-format --dry-run -Werror (all C files)'; \
		find lib daemons cli tests bench -name '*.[ch]' | xargs clang-format --dry-run -Werror; \
	else echo 'clang-format is not installed: the C format was not checked (make deps-dev)'; fi
	$(PYTHON) tests/tidy/syntax.py
.PHONY: bench bench-count bench-json
bench: all $(LOAD) ## measure beside other brokers, in one table (T=WORD: some rows; J=1: as JSON)
	@$(PYTHON) bench/run --build $(B) $(if $(J),--json) $(T)
bench-count: all $(LOAD) $(COUNT) ## count system calls, allocations and copies of an operation
	@$(PYTHON) bench/count --build $(B) $(if $(J),--json) $(T)
bench-json: $(BENCHES) ## measure reading and writing of messages, beside cJSON
	@for b in $(BENCHES); do $$b || exit 1; done
quickstart: deps-build ## install what is missing, build, put and take a real job
	@echo 'building into $(B)/, which takes a minute or two the first time ...'
	@$(MAKE) --no-print-directory -s all $(RELAY)
	@B=$(B) sh docs/quickstart.sh

# ---- installation ----
UNIT_FILES := $(wildcard systemd/*.service systemd/*.socket)
SYSUSERS_FILES := $(wildcard systemd/*.sysusers)
TMPFILES_FILES := $(wildcard systemd/*.tmpfiles)
LAUNCHD := $(filter launchd,$(SERVICE))
DAEMON_FILES := $(wildcard launchd/*.plist)
AGENT_FILES := $(wildcard launchd/agents/*.plist)
MAN_FILES := $(wildcard docs/man/*.[1-8])
# SHELL:FILE below DATADIR.
COMPLETIONS := bash:bash-completion/completions/zmqcat zsh:zsh/site-functions/_zmqcat \
	fish:fish/vendor_completions.d/zmqcat.fish
D = $(DESTDIR)
.PHONY: install uninstall install-launchd uninstall-launchd
# The system's cache of libraries, when it is the system that we install into.
LDCONFIG = $(if $(DESTDIR),,@[ $$(id -u) != 0 ] || ! command -v ldconfig >/dev/null || ldconfig)
# They stand in recipes, units and other files as they are.
PLACES = $(BINDIR) $(LIBDIR) $(INCLUDEDIR) $(DATADIR) $(MANDIR) $(PKGCONFIGDIR) $(UNITDIR) \
	$(SYSUSERSDIR) $(TMPFILESDIR)
.PHONY: places
places: export ROOT_OF = $(D)
places: export PLACES_OF = $(PLACES)
places:
	@good=y; set -f; set -- $$PLACES_OF; [ $$# = 9 ] || good=; \
	case $$ROOT_OF in *[[:space:]]*) good= ;; esac; \
	for p; do case $$p in /*) ;; *) good= ;; esac; done; \
	! printf %s "$$ROOT_OF$$*" | LC_ALL=C grep -q '[][$$&|\\;()<>*?{}!#%^"`'"'"']' || good=; \
	[ -n "$$good" ] || { echo 'make: DESTDIR and PREFIX may have no blanks and nothing that a' \
		'shell or systemd takes for something else, and PREFIX begins with a /' >&2; exit 1; }
install: places all $(LAUNCHD:%=install-%) ## install under DESTDIR and PREFIX
	$(INSTALL) -d $(D)$(BINDIR) $(D)$(LIBDIR) $(D)$(PKGCONFIGDIR) $(D)$(INCLUDEDIR)
	$(INSTALL) -m 755 $(PROGRAMS) $(D)$(BINDIR)
	$(INSTALL) -m 644 $(STATIC) $(SHARED) $(D)$(LIBDIR)
	$(if $(filter $(SONAME),$(SOFILE)),,ln -sf $(SOFILE) $(D)$(LIBDIR)/$(SONAME))
	ln -sf $(SOFILE) $(D)$(LIBDIR)/$(SOLINK)
	$(INSTALL) -m 644 lib/client/zmqcat.h $(D)$(INCLUDEDIR)
	umask 022; sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' \
		-e 's|@INCLUDEDIR@|$(INCLUDEDIR)|' -e 's|@VERSION@|$(VERSION)|' \
		lib/client/zmqcat.pc.in >$(D)$(PKGCONFIGDIR)/zmqcat.pc
	for m in $(MAN_FILES); do s=$(D)$(MANDIR)/man$${m##*.}; \
		$(INSTALL) -d $$s && $(INSTALL) -m 644 $$m $$s || exit 1; done
# The program prints them; one that was built for another machine cannot, and there are none.
	for c in $(COMPLETIONS); do f=$(D)$(DATADIR)/$${c#*:}; $(INSTALL) -d $${f%/*} || exit 1; \
		$(B)/zmqcat completion $${c%%:*} >$$f && chmod 644 $$f || rm -f $$f; done
ifeq ($(SERVICE),systemd)
	$(INSTALL) -d $(D)$(UNITDIR) $(D)$(SYSUSERSDIR) $(D)$(TMPFILESDIR)
	umask 022; for u in $(UNIT_FILES); do \
		sed 's|@BINDIR@|$(BINDIR)|g' $$u >$(D)$(UNITDIR)/$${u##*/} || exit 1; done
	for u in $(SYSUSERS_FILES); do n=$${u##*/}; \
		$(INSTALL) -m 644 $$u $(D)$(SYSUSERSDIR)/$${n%.sysusers}.conf || exit 1; done
	for u in $(TMPFILES_FILES); do n=$${u##*/}; \
		$(INSTALL) -m 644 $$u $(D)$(TMPFILESDIR)/$${n%.tmpfiles}.conf || exit 1; done
endif
	$(LDCONFIG)
uninstall: places $(LAUNCHD:%=uninstall-%) ## remove what `make install` installed
	rm -f $(PROGRAMS:$(B)/%=$(D)$(BINDIR)/%) $(D)$(INCLUDEDIR)/zmqcat.h \
		$(D)$(LIBDIR)/libzmqcat.a $(D)$(LIBDIR)/$(SOFILE) $(D)$(LIBDIR)/$(SONAME) \
		$(D)$(LIBDIR)/$(SOLINK) $(D)$(PKGCONFIGDIR)/zmqcat.pc
	for m in $(MAN_FILES); do rm -f $(D)$(MANDIR)/man$${m##*.}/$${m##*/}; done
	for c in $(COMPLETIONS); do rm -f $(D)$(DATADIR)/$${c#*:}; done
ifeq ($(SERVICE),systemd)
	rm -f $(UNIT_FILES:systemd/%=$(D)$(UNITDIR)/%) \
		$(SYSUSERS_FILES:systemd/%.sysusers=$(D)$(SYSUSERSDIR)/%.conf) \
		$(TMPFILES_FILES:systemd/%.tmpfiles=$(D)$(TMPFILESDIR)/%.conf)
endif
	$(LDCONFIG)

# In a copy, so that nothing is left in the checkout; what make hands down to makes is not for it.
DEB := $(B)/deb
DEB_SOURCES := Makefile LICENSE README.md CHANGELOG.md cli daemons debian docs lib systemd
.PHONY: deb
deb: ## build Debian packages into build/deb (`make deps-deb`)
	@command -v dh >/dev/null || { echo 'make: no debhelper: "make deps-deb"' >&2; exit 1; }
	rm -rf $(DEB) && mkdir -p $(DEB)/source && cp -R $(DEB_SOURCES) $(DEB)/source
	cd $(DEB)/source && env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL CC="$(CC)" \
		dpkg-buildpackage --build=binary --no-sign
	rm -rf $(DEB)/source
	@ls $(DEB)/*.deb

install-launchd:
	$(INSTALL) -d $(D)$(LAUNCHDAEMONSDIR) $(D)$(LAUNCHAGENTSDIR)
	umask 022; for p in $(DAEMON_FILES); do \
		sed 's|@BINDIR@|$(BINDIR)|g' $$p >$(D)$(LAUNCHDAEMONSDIR)/$${p##*/} || exit 1; done
	umask 022; for p in $(AGENT_FILES); do \
		sed -e 's|@BINDIR@|$(BINDIR)|g' -e 's|@AGENTSDIR@|$(LAUNCHAGENTSDIR)|g' $$p \
			>$(D)$(LAUNCHAGENTSDIR)/$${p##*/} || exit 1; done
uninstall-launchd:
	rm -f $(DAEMON_FILES:launchd/%=$(D)$(LAUNCHDAEMONSDIR)/%) \
		$(AGENT_FILES:launchd/agents/%=$(D)$(LAUNCHAGENTSDIR)/%)

.PHONY: clean
clean: ## remove all that was built
	rm -rf build build-*
