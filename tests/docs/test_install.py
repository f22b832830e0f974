# quick
"""`make install` and `make uninstall` with DESTDIR: what is there, that it runs from there, that
nothing is left. (tests/cli/test_library.py builds programs against what is installed.)"""
import os, re, stat, subprocess, sys, unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness
from harness import BUILD, ROOT

def run(target, **variables):
    env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    argv = ["make", "-s", target, "B=" + BUILD] + ["%s=%s" % v for v in variables.items()]
    return subprocess.run(argv, cwd=ROOT, env=env, capture_output=True, text=True)


def make(target, **variables):
    done = run(target, **variables)
    assert done.returncode == 0, done.stdout + done.stderr


def files(top):
    return sorted(os.path.relpath(os.path.join(d, f), top) for d, _, names in os.walk(top)
                  for f in names)


class Install(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.top = harness.tempdir()
        make("install", DESTDIR=self.top, PREFIX="/usr")

    def read(self, path):
        with open(os.path.join(self.top, path)) as f:
            return f.read()

    def test_what_is_installed(self):
        got = files(os.path.join(self.top, "usr"))
        for path in ("bin/zmqcat", "bin/zmqcat-hub", "bin/zmqcat-spoke",
                     "include/zmqcat.h", "lib/libzmqcat.a",
                     "lib/libzmqcat.so", "lib/libzmqcat.so.0", "lib/pkgconfig/zmqcat.pc",
                     "share/man/man1/zmqcat.1", "share/man/man5/zmqc.5",
                     "share/man/man5/zmqcat-log.5", "share/man/man8/zmqcat-hub.8",
                     "share/man/man8/zmqcat-spoke.8", "share/man/man5/zmqcat-json.5",
                     "share/bash-completion/completions/zmqcat",
                     "share/zsh/site-functions/_zmqcat",
                     "share/fish/vendor_completions.d/zmqcat.fish",
                     "lib/systemd/system/zmqcat-hub.service",
                     "lib/systemd/system/zmqcat-hub.socket",
                     "lib/systemd/system/zmqcat-hub-control.socket"):
            self.assertIn(path, got)
        for folder in ("sysusers.d", "tmpfiles.d"):
            self.assertIn("lib/%s/zmqcat.conf" % folder, got)

    def test_modes(self):
        for path in files(self.top):
            full = os.path.join(self.top, path)
            if not os.path.islink(full):
                mode = stat.S_IMODE(os.stat(full).st_mode)
                self.assertEqual(oct(mode), "0o755" if "/bin/" in path else "0o644", path)

    def test_modes_do_not_depend_on_the_umask(self):
        self.top = harness.tempdir()
        old = os.umask(0o077)
        try:
            for target in ("install", "install-launchd"):
                make(target, DESTDIR=self.top, PREFIX="/usr")
        finally:
            os.umask(old)
        self.test_modes()

    def test_units_name_the_installed_program(self):
        text = self.read("usr/lib/systemd/system/zmqcat-hub.service")
        self.assertRegex(text, r"(?m)^ExecStart=/usr/bin/zmqcat-hub\b")
        for path in files(self.top):
            if "/systemd/" in path or path.endswith(".pc"):
                self.assertIsNone(re.search(r"@[A-Z]+@", self.read(path)), path)

    def test_programs_run_from_there(self):
        for name in ("zmqcat", "zmqcat-hub", "zmqcat-spoke"):
            done = subprocess.run([os.path.join(self.top, "usr/bin", name), "--version"],
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stdout, r"\A\S*zmqcat\S* \d+\.\d+\.\d+\n\Z")

    def test_uninstall_leaves_nothing(self):
        make("uninstall", DESTDIR=self.top, PREFIX="/usr")
        self.assertEqual(files(self.top), [])

    def test_other_prefix(self):
        top = harness.tempdir()
        make("install", DESTDIR=top, PREFIX="/opt/z")
        self.assertEqual([p for p in files(top) if not p.startswith("opt/z/")], [])
        with open(os.path.join(top, "opt/z/lib/systemd/system/zmqcat-hub.service")) as f:
            self.assertIn("\nExecStart=/opt/z/bin/zmqcat-hub", f.read())

    def test_places_that_would_break_a_recipe_or_a_unit(self):
        top = harness.tempdir()
        for places in (dict(DESTDIR=top + "/a b"), dict(DESTDIR=top + "/a\nb"),
                       dict(DESTDIR=top + "/it's"), dict(PREFIX="/opt/a&b"), dict(PREFIX="/a b"),
                       dict(PREFIX="/50%n"), dict(PREFIX="opt/x"), dict(BINDIR="~/bin"),
                       dict(LIBDIR=""), dict(UNITDIR='/"'), dict(DESTDIR=top + "/a|b")):
            # Only of the last would others than `places` do no harm here.
            for target in ("places", "install", "uninstall") if "|" in str(places) else ("places",):
                done = run(target, **dict(dict(DESTDIR=top), **places))
                self.assertEqual(done.returncode, 2, places)
                self.assertIn("make: DESTDIR and PREFIX may", done.stderr, places)
        self.assertEqual(os.listdir(top), [])
        make("install", DESTDIR=os.path.join(top, "Jörg_1+~x.y"), PREFIX="")
        self.assertEqual(os.listdir(top), ["Jörg_1+~x.y"])


class Folder(unittest.TestCase):
    def test_what_tests_leave_there_is_no_makefile(self):
        """Such as the image of a guest, or a half of it."""
        folder = harness.tempdir()
        for name in ("guest/x.new/tree/etc/rc2.d", "x/rc3.d"):
            os.makedirs(os.path.join(folder, name))
        harness.write_file(folder + "/guest/x.new/tree/y.d", "no makefile\n")
        make("help", B=folder)


if __name__ == "__main__":
    harness.main()
