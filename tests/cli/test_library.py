"""The client library as its users meet it: installed, found by pkg-config, linked both ways."""
import glob, os, subprocess, sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness
from harness import BUILD, ROOT, tempdir

EXAMPLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "example.c")


def run(*argv, **more):
    got = subprocess.run(argv, capture_output=True, text=True, **more)
    if got.returncode != 0:
        raise AssertionError("%s: %s%s" % (" ".join(argv), got.stdout, got.stderr))
    return got.stdout


class Library(harness.Case):
    @classmethod
    def setUpClass(cls):
        cls.prefix = tempdir()
        run("make", "-C", ROOT, "B=" + BUILD, "PREFIX=" + cls.prefix, "install")
        cls.env = dict(os.environ, PKG_CONFIG_PATH=os.path.join(cls.prefix, "lib", "pkgconfig"))
        # A library of the sanitizer build needs their run time.
        symbols = run("nm", os.path.join(cls.prefix, "lib", "libzmqcat.a"))
        cls.extra = ["-fsanitize=address,undefined"] if "__asan_" in symbols else []

    def pkg_config(self, *flags):
        return run("pkg-config", *flags, "zmqcat", env=self.env).split()

    def build(self, *flags):
        program = os.path.join(tempdir(), "example")
        run(*harness.CC, "-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-o", program,
            EXAMPLE, *flags, *self.extra)
        return program

    def check(self, program, env):
        hub = self.hub()
        for args, more in (((hub.listen,), {}), ((), {"ZMQCAT_LISTEN": hub.listen})):
            out = run(program, *args, env=dict(env, **more), timeout=20 * harness.SLOW)
            first, second = out.splitlines()
            self.assertEqual(first, "ev.a from example: hello")
            self.assertTrue(second.startswith('{"name":"jobs","depth":0,'))
        hub.stop()
        got = subprocess.run([program, hub.listen], capture_output=True, env=env)
        self.assertEqual(got.returncode, 1)
        self.assertIn(b"open: unix://", got.stderr)

    def test_shared(self):
        program = self.build(*self.pkg_config("--cflags", "--libs"))
        env = dict(os.environ, LD_LIBRARY_PATH=os.path.join(self.prefix, "lib"))
        self.assertIn(os.path.join(self.prefix, "lib", "libzmqcat.so"),
                      run("ldd", program, env=env))
        self.check(program, env)

    def test_static(self):
        flags = [f for f in self.pkg_config("--cflags", "--libs", "--static") if f != "-lzmqcat"]
        program = self.build(flags[0], os.path.join(self.prefix, "lib", "libzmqcat.a"), *flags[1:])
        self.assertNotIn("libzmqcat", run("ldd", program))
        self.check(program, os.environ)

    def test_only_our_names_are_exported(self):
        with open(os.path.join(self.prefix, "include", "zmqcat.h")) as f:
            declared = {w for w in f.read().replace("(", " ").replace("*", " ").split()
                        if w.startswith("zmqcat_")}
        shared = glob.glob(os.path.join(self.prefix, "lib", "libzmqcat.so"))
        self.assertEqual(len(shared), 1)
        for argv in (["nm", "-D", "--defined-only", shared[0]],
                     ["nm", "-g", "--defined-only", os.path.join(self.prefix, "lib",
                                                                "libzmqcat.a")]):
            names = {line.split()[2] for line in run(*argv).splitlines()
                     if len(line.split()) == 3}
            names = {n for n in names if not n.startswith(("__asan", "__ubsan", "_ITM", "__odr"))}
            self.assertGreater(len(names), 20)
            self.assertEqual({n for n in names if n not in declared}, set(), argv[1])

    def test_version_of_the_package(self):
        version = run("pkg-config", "--modversion", "zmqcat", env=self.env).strip()
        self.assertEqual(harness.cli("--version").stdout, b"zmqcat %s\n" % version.encode())


if __name__ == "__main__":
    harness.main()
