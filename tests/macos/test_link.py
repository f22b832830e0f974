"""All programs and the library, compiled and linked for macOS with warnings as errors, and what the
files say of themselves. Nothing of it can run here."""
import glob, os, subprocess, sys, unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness, jobs, macho, toolchain
from harness import BUILD

SYSTEM = "/usr/lib/libSystem.B.dylib"
TLS = {"/usr/local/lib/libssl.3.dylib", "/usr/local/lib/libcrypto.3.dylib"}
# What the daemons are to do here by the means of this system, and by no other.
OF_DAEMONS = {"_launch_activate_socket", "_kevent", "_getpeereid", "_fcntl"}
OF_COMMAND = {"_renamex_np", "__NSGetExecutablePath", "_fcntl"}
# fdatasync leaves the data in the disk's cache.
NEVER = {"_fdatasync", "_epoll_wait", "_accept4"}
_targets = {}


def public_names():
    """What this system's build of the library exports."""
    (library,) = glob.glob(os.path.join(BUILD, "libzmqcat.so.*"))
    out = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True,
                         check=True).stdout
    return {"_" + line.split()[2] for line in out.splitlines()}


class Built:
    maxDiff = None

    def setUp(self):
        if self.arch not in _targets:
            toolchain.bring()
            target = toolchain.Target(self.arch)
            try:
                target.libraries()
                target.make("all")
            except subprocess.CalledProcessError as e:
                self.fail(e.stdout[-2000:] + e.stderr[-6000:])
            _targets[self.arch] = target
        self.target = _targets[self.arch]

    def data(self, name):
        with open(os.path.join(self.target.dir, "build", name), "rb") as f:
            return f.read()

    def file(self, name):
        return macho.File(self.data(name))

    def check_program(self, name, libraries, imports):
        f = self.file(name)
        self.assertEqual((f.cpu, f.kind, f.oldest), (self.arch, "program", "11.0"))
        for flag in (macho.PIE, macho.NOUNDEFS, macho.TWOLEVEL):
            self.assertTrue(f.flags & flag, hex(flag))
        self.assertEqual(set(f.libraries), {SYSTEM} | libraries)
        _, _, start, size = f.segments["__TEXT"]
        self.assertTrue(start < f.entry < start + size, f.entry)
        self.assertIn("_main", f.exports)
        self.assertEqual([n for n, library in f.imports.items() if library is None], [])
        self.assertEqual(imports - set(f.imports), set())
        self.assertEqual(NEVER & set(f.imports), set())
        for n in imports:
            self.assertEqual(f.imports[n], SYSTEM, n)

    def test_hub(self):
        self.check_program("zmqcat-hub", TLS, OF_DAEMONS)

    def test_spoke(self):
        self.check_program("zmqcat-spoke", TLS, OF_DAEMONS)

    def test_command(self):
        self.check_program("zmqcat", set(), OF_COMMAND)

    def test_shared_library(self):
        f = self.file("libzmqcat.0.dylib")
        self.assertEqual((f.cpu, f.kind, f.oldest), (self.arch, "library", "11.0"))
        self.assertEqual((f.id, f.libraries), ("/usr/local/lib/libzmqcat.0.dylib", [SYSTEM]))
        # libsodium is inside, as it was built without a shared library.
        self.assertEqual({n for n in f.exports if n.startswith(("_zmqcat_", "_zc_"))},
                         public_names())

    def test_static_library(self):
        (f,) = macho.archive(self.data("static/libzmqcat.a"))
        self.assertEqual((f.cpu, f.kind), (self.arch, "object"))
        self.assertEqual(f.exports, public_names())

    def test_install(self):
        top = harness.tempdir()
        self.target.make("install", DESTDIR=top)
        got = {os.path.relpath(os.path.join(d, n), top) for d, _, names in os.walk(top)
               for n in names}
        wanted = {"usr/local/bin/zmqcat", "usr/local/bin/zmqcat-hub", "usr/local/bin/zmqcat-spoke",
                  "usr/local/lib/libzmqcat.0.dylib", "usr/local/lib/libzmqcat.dylib",
                  "usr/local/lib/libzmqcat.a", "usr/local/lib/pkgconfig/zmqcat.pc",
                  "usr/local/include/zmqcat.h", "usr/local/share/man/man8/zmqcat-hub.8"}
        wanted |= {"%s/org.zmqcat.%s.plist" % (folder, role) for role in ("hub", "spoke") for folder
                   in ("Library/LaunchDaemons", "usr/local/share/zmqcat/LaunchAgents")}
        self.assertEqual(wanted - got, set())
        self.assertEqual([p for p in got if "systemd" in p or "completion" in p or ".so" in p], [])
        job = jobs.read(os.path.join(top, "Library/LaunchDaemons/org.zmqcat.hub.plist"))
        self.assertEqual(job["ProgramArguments"][0], "/usr/local/bin/zmqcat-hub")
        self.target.make("uninstall", DESTDIR=top)
        self.assertEqual([n for _, _, names in os.walk(top) for n in names], [])


class Arm64(Built, unittest.TestCase):
    arch = "arm64"


class X86_64(Built, unittest.TestCase):
    arch = "x86_64"


if __name__ == "__main__":
    harness.main()
