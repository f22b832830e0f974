"""A C compiler for macOS and what the programs are linked to there, all below build/macos: nothing
is installed, nothing is kept elsewhere.

pip brings the compiler, and the sources of libuv, libsodium and cJSON in packages that hold them.
The OpenSSL of macOS takes ten minutes to build, and nothing can run here anyway: a text stub with
the names that this system's OpenSSL exports stands for it, beside this system's headers.
"""
import concurrent.futures, glob, os, re, shutil, subprocess, sys, tarfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness
from harness import BUILD, ROOT

HERE = os.path.join(BUILD, "macos")
VENV, SOURCES, CACHE = (os.path.join(HERE, d) for d in ("venv", "sources", "cache"))
COMPILER = ("ziglang==0.17.1", "wheel==0.45.1", "setuptools==75.8.0")
# (package, what of it is unpacked)
PACKAGES = (("uvloop==0.21.0", r"[^/]+/vendor/libuv/((?:src|include)/.*)"),
            ("pynacl==1.5.0", r"[^/]+/src/libsodium/src/libsodium/(.*)"),
            ("awscrt==0.16.26", r"[^/]+/crt/aws-c-common/(?:source|include)/(.*/?cJSON\.[ch])"))
# The oldest macOS for arm64. The compiler takes CRC32 even from functions that ask for it by an
# attribute, unless the processor has it, as all have that run this macOS.
TARGETS = {"arm64": "aarch64-macos.11.0", "x86_64": "x86_64-macos.11.0 -mcpu=x86_64_v2"}
UV = """async core dl fs getaddrinfo getnameinfo loop-watcher loop pipe poll process
    random-devurandom random-getentropy signal stream tcp thread tty udp proctitle bsd-ifaddrs
    kqueue darwin-proctitle darwin fsevents""".split()
SODIUM_VERSION = {"VERSION": "1.0.18", "SODIUM_LIBRARY_VERSION_MAJOR": "10",
                  "SODIUM_LIBRARY_VERSION_MINOR": "3", "SODIUM_LIBRARY_MINIMAL_DEF": ""}
STUB = """--- !tapi-tbd
tbd-version: 4
targets: [ x86_64-macos, arm64-macos ]
install-name: '/usr/local/lib/lib%s.3.dylib'
exports:
  - targets: [ x86_64-macos, arm64-macos ]
    symbols: [ %s ]
...
"""


def run(argv, **more):
    env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    env.update(ZIG_GLOBAL_CACHE_DIR=CACHE, ZIG_LOCAL_CACHE_DIR=CACHE, PIP_NO_CACHE_DIR="1",
               PIP_DISABLE_PIP_VERSION_CHECK="1", **more)
    done = subprocess.run(argv, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise subprocess.CalledProcessError(done.returncode, argv, done.stdout, done.stderr)
    return done.stdout


def pip(*argv):
    run([os.path.join(VENV, "bin", "python"), "-m", "pip", "-q", *argv])


def unpack(archive, wanted, folder):
    with tarfile.open(archive) as tar:
        for member in tar:
            found = re.fullmatch(wanted, member.name)
            if found and member.isfile():
                path = os.path.join(folder, found.group(1))
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "wb") as f:
                    shutil.copyfileobj(tar.extractfile(member), f)


def bring():
    """The compiler and the sources; a skip where they cannot be had."""
    stamp, pins = os.path.join(HERE, "brought"), repr((COMPILER, PACKAGES, TARGETS))
    if os.path.exists(stamp) and harness.read_file(stamp).decode() == pins:
        return
    shutil.rmtree(HERE, True)
    os.makedirs(HERE)
    try:
        run([sys.executable, "-m", "venv", VENV])
        pip("install", *COMPILER)
        archives = os.path.join(HERE, "archives")
        pip("download", "--no-deps", "--no-binary", ":all:", "--no-build-isolation", "-d", archives,
            *(package for package, _ in PACKAGES))
    except subprocess.CalledProcessError as e:
        harness.skip("no compiler for macOS: %s" % (e.stderr or e.stdout)[-500:])
    for package, wanted in PACKAGES:
        name, version = package.split("==")
        (archive,) = (a for a in glob.glob(os.path.join(archives, "*"))
                      if os.path.basename(a).lower().startswith(name + "-" + version))
        unpack(archive, wanted, os.path.join(SOURCES, name))
    shutil.rmtree(archives)
    harness.write_file(stamp, pins)


def headers(include):
    """All that the programs include."""
    multiarch = run(["cc", "-print-multiarch"]).strip()
    for folder in ("openssl", os.path.join(multiarch, "openssl")):
        shutil.copytree(os.path.join("/usr/include", folder), os.path.join(include, "openssl"),
                        dirs_exist_ok=True)
    shutil.copytree(os.path.join(SOURCES, "uvloop", "include"), include, dirs_exist_ok=True)
    shutil.copytree(os.path.join(SOURCES, "pynacl", "include"), include, dirs_exist_ok=True)
    template = os.path.join(include, "sodium", "version.h.in")
    text = harness.read_file(template).decode()
    text = re.sub("@(\\w+)@", lambda m: SODIUM_VERSION[m.group(1)], text)
    harness.write_file(template[:-len(".in")], text)
    os.makedirs(os.path.join(include, "cjson"), exist_ok=True)
    shutil.copy(os.path.join(SOURCES, "awscrt", "aws/common/external/cJSON.h"),
                os.path.join(include, "cjson", "cJSON.h"))


def stub(name, folder):
    library = run(["cc", "-print-file-name=lib%s.so" % name]).strip()
    rows = (line.split() for line in run(["nm", "-D", "--defined-only", library]).splitlines())
    names = sorted({"_" + row[2].split("@")[0] for row in rows if row[1] in "TDBR"})
    harness.write_file(os.path.join(folder, "lib%s.tbd" % name), STUB % (name, ", ".join(names)))


class Target:
    """The compiler and the libraries of one architecture."""

    def __init__(self, arch):
        self.arch, self.dir = arch, os.path.join(HERE, arch)
        self.include, self.lib = (os.path.join(self.dir, d) for d in ("include", "lib"))
        (zig,) = glob.glob(os.path.join(VENV, "lib/python*/site-packages/ziglang/zig"))
        cc = '"%s" cc -target %s' % (zig, TARGETS[arch])
        self.cc = self.script("cc", 'exec %s "$@"' % cc)
        self.ar = self.script("ar", 'exec "%s" ar "$@"' % zig)
        # Like Apple's, it makes what is not exported local; it knows no -exported_symbol.
        self.ld = self.script("ld", 'shift 3; exec %s -r "$@"' % cc)

    def script(self, name, line):
        os.makedirs(self.dir, exist_ok=True)
        return harness.write_file(os.path.join(self.dir, name), "#!/bin/sh\n%s\n" % line, 0o755)

    def library(self, name, sources, *flags):
        objects = os.path.join(self.dir, name)
        os.makedirs(objects, exist_ok=True)

        def compile(source):
            to = os.path.join(objects, source.replace("/", "_") + ".o")
            run([self.cc, "-O1", "-w", *flags, "-I" + self.include, "-c", "-o", to, source])
            return to

        self.assert_sources(name, sources)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            made = list(pool.map(compile, sources))
        run([self.ar, "rcs", os.path.join(self.lib, "lib%s.a" % name), *made])

    def assert_sources(self, name, sources):
        missing = [s for s in sources if not os.path.exists(s)]
        assert sources and not missing, (name, missing)

    def libraries(self):
        done = os.path.join(self.dir, "libraries")
        if os.path.exists(done):
            return
        shutil.rmtree(self.include, True)
        os.makedirs(self.lib, exist_ok=True)
        headers(self.include)
        uv, sodium = (os.path.join(SOURCES, p) for p in ("uvloop/src", "pynacl"))
        self.library("uv", glob.glob(uv + "/*.c") + [uv + "/unix/%s.c" % n for n in UV],
                     "-D_DARWIN_UNLIMITED_SELECT=1", "-D_DARWIN_USE_64_BIT_INODE=1", "-I" + uv)
        self.library("sodium", glob.glob(sodium + "/**/*.c", recursive=True), "-DCONFIGURED=1",
                     "-DHAVE_TI_MODE=1", "-DNATIVE_LITTLE_ENDIAN=1", "-DHAVE_PTHREAD=1",
                     "-I" + os.path.join(self.include, "sodium"))
        cjson = os.path.join(SOURCES, "awscrt")
        self.library("cjson", [cjson + "/external/cJSON.c"], "-I" + cjson)
        for name in ("ssl", "crypto"):
            stub(name, self.lib)
        for module in ("libuv", "libsodium", "libcjson", "libssl", "libcrypto"):
            harness.write_file(os.path.join(self.lib, module + ".pc"), (
                "Name: %s\nDescription: for macOS\nVersion: 0\nLibs: -L%s -l%s\nCflags: -I%s\n" % (
                    module, self.lib, module[len("lib"):], self.include)))
        harness.write_file(done, "")

    def make(self, target, **variables):
        """The Makefile, as on macOS; also what it says."""
        argv = ["make", "-j%d" % os.cpu_count(), target, "UNAME=Darwin", "SERVICE=launchd",
                "CC=" + self.cc, "AR=" + self.ar, "LD=" + self.ld, "WERROR=-Werror",
                "B=" + os.path.join(self.dir, "build"), *("%s=%s" % v for v in variables.items())]
        return run(["env", "-u", "PKG_CONFIG_PATH", "-C", ROOT, *argv], PKG_CONFIG_LIBDIR=self.lib)
