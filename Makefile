# zmqcat: build, test, install. `make help` lists the targets.
VERSION := 0.1.0
PREFIX ?= /usr/local
BINDIR ?= $(PREFIX)/bin
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
MANDIR ?= $(PREFIX)/share/man
UNITDIR ?= $(PREFIX)/lib/systemd/system
DESTDIR ?=

B ?= build
CC ?= cc
PKG_CONFIG ?= pkg-config
UNAME := $(shell uname -s)

WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith \
	-Wwrite-strings -Wundef -Wvla -Wno-missing-field-initializers
CFLAGS ?= -O2 -g
HARDEN ?= -fstack-protector-strong -D_FORTIFY_SOURCE=2 -fPIE
ALL_CFLAGS = -std=gnu11 $(WARN) $(HARDEN) $(CFLAGS) $(EXTRA_CFLAGS) -Ilib -DZC_VERSION='"$(VERSION)"'
ALL_LDFLAGS = $(LDFLAGS) $(EXTRA_LDFLAGS)
ifeq ($(UNAME),Linux)
ALL_LDFLAGS += -Wl,-z,relro,-z,now -pie
SERVICE ?= systemd
else ifeq ($(UNAME),Darwin)
SERVICE ?= launchd
else
SERVICE ?= none
endif

LIBS_CORE := $(shell $(PKG_CONFIG) --libs libsodium)
LIBS_HOST := $(shell $(PKG_CONFIG) --libs libuv)
CFLAGS_DEPS := $(shell $(PKG_CONFIG) --cflags libsodium libuv)
ifeq ($(SERVICE),systemd)
LIBS_HOST += $(shell $(PKG_CONFIG) --libs libsystemd)
CFLAGS_DEPS += $(shell $(PKG_CONFIG) --cflags libsystemd)
endif

CORE_SRC := $(wildcard lib/base/*.c lib/crypto/*.c lib/zmqc/*.c lib/store/*.c lib/node/*.c)
HOST_SRC := $(filter-out lib/host/service_%.c,$(wildcard lib/host/*.c)) lib/host/service_$(SERVICE).c
CLIENT_SRC := $(wildcard lib/client/*.c)
CLI_SRC := $(wildcard cli/*.c)
UNIT_SRC := $(wildcard tests/unit/test_*.c)
FUZZ_SRC := $(wildcard tests/fuzz/fuzz_*.c)
SIM_SRC := $(wildcard tests/sim/*.c)

obj = $(patsubst %.c,$(B)/%.o,$(1))
CORE := $(B)/libcore.a
HOST := $(B)/libhost.a
CLIENT := $(B)/libzmqcat.a
PROGRAMS := $(B)/zmqcat-hub $(B)/zmqcat
UNITS := $(patsubst tests/unit/%.c,$(B)/unit/%,$(UNIT_SRC))
FUZZERS := $(patsubst tests/fuzz/%.c,$(B)/fuzz/%,$(filter-out tests/fuzz/main.c,$(FUZZ_SRC)))
SIM := $(if $(SIM_SRC),$(B)/sim/sim)

.DELETE_ON_ERROR:
.PHONY: all
all: $(PROGRAMS)

$(B)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(CFLAGS_DEPS) -MMD -MP -c -o $@ $<

$(CORE): $(call obj,$(CORE_SRC))
$(HOST): $(call obj,$(HOST_SRC))
$(CLIENT): $(call obj,$(CLIENT_SRC) $(wildcard lib/base/*.c) lib/zmqc/frame.c lib/zmqc/msg.c)
$(CORE) $(HOST) $(CLIENT):
	@rm -f $@
	$(AR) rcs $@ $^

$(B)/zmqcat-hub: $(call obj,daemons/hub.c) $(HOST) $(CORE)
	$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ $(LIBS_HOST) $(LIBS_CORE)
$(B)/zmqcat: $(call obj,$(CLI_SRC)) $(CLIENT)
	$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ $(LIBS_CORE)
$(B)/unit/%: $(B)/tests/unit/%.o $(HOST) $(CLIENT) $(CORE)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ $(LIBS_HOST) $(LIBS_CORE)
$(B)/fuzz/%: $(B)/tests/fuzz/%.o $(B)/tests/fuzz/main.o $(CORE)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ $(LIBS_CORE)
$(B)/sim/sim: $(call obj,$(SIM_SRC)) $(CORE)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ $(LIBS_CORE)

-include $(shell find $(B) -name '*.d' 2>/dev/null)

.PHONY: clean
clean:
	rm -rf build build-*
