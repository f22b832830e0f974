#!/usr/bin/env python3
"""The units under a real systemd.

systemd-nspawn boots systemd as PID 1 on this machine's own read-only /usr with an empty /etc and no
network; inside_systemd.py runs there and leaves one verdict a check. Before that the units pass
`systemd-analyze verify` without a word and `security` with at most 1.5.
"""
import glob, json, os, re, shutil, subprocess, sys, unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
from harness import BUILD, ROOT, SLOW

HERE = os.path.dirname(os.path.abspath(__file__))
MASKED = ("systemd-logind.service", "dbus-org.freedesktop.login1.service",
          "systemd-networkd.service", "systemd-resolved.service", "systemd-timesyncd.service",
          "getty.target", "console-getty.service", "systemd-firstboot.service")
RUNNER = """[Unit]
After=multi-user.target
SuccessAction=poweroff-immediate
FailureAction=poweroff-immediate
[Service]
Type=oneshot
ExecStart=/bin/sh /run/payload-ro/run.sh
"""
RUN = """exec >/run/result/log 2>&1
systemd-sysusers /run/payload-ro/zmqcat.conf /run/payload-ro/people.conf
/usr/bin/python3 -B /run/payload-ro/inside.py /run/payload-ro /run/result
echo $? >/run/result/rc
"""
PEOPLE = "u member -\nm member zmqcat\nu stranger -\n"


def units(folder, bindir):
    """The unit files as `make install` would write them; their names."""
    names = []
    for path in glob.glob(os.path.join(ROOT, "systemd", "*.service")) + \
            glob.glob(os.path.join(ROOT, "systemd", "*.socket")):
        with open(path) as f:
            text = f.read().replace("@BINDIR@", bindir)
        names.append(os.path.basename(path))
        with open(os.path.join(folder, names[-1]), "w") as f:
            f.write(text)
    return names


class Analyzed(unittest.TestCase):
    def setUp(self):
        if shutil.which("systemd-analyze") is None:
            harness.skip("no systemd-analyze")
        self.dir = harness.tempdir()
        self.names = units(self.dir, BUILD)

    def analyze(self, *args):
        env = dict(os.environ, SYSTEMD_UNIT_PATH=self.dir + ":")
        return subprocess.run(["systemd-analyze"] + list(args), cwd=self.dir, env=env, text=True,
                              capture_output=True)

    def test_verify_is_silent(self):
        self.assertEqual(sorted(self.names), [
            "zmqcat-%s%s" % (who, what) for who in ("hub", "spoke")
            for what in ("-control.socket", ".service", ".socket")])
        got = self.analyze("verify", "--man=no", *["./" + n for n in self.names])
        self.assertEqual((got.returncode, got.stdout, got.stderr), (0, "", ""))

    def test_verify_would_speak(self):
        """The check above can fail: an unknown key is named on stderr, with exit 0."""
        with open(os.path.join(self.dir, "zmqcat-hub.service"), "a") as f:
            f.write("[Service]\nNoSuchKey=1\n")
        got = self.analyze("verify", "--man=no", "./zmqcat-hub.service")
        self.assertIn("NoSuchKey", got.stderr)

    def test_exposure(self):
        for name in ("./zmqcat-hub.service", "./zmqcat-spoke.service"):
            got = self.analyze("security", "--offline=true", "--threshold=15", "--no-pager", name)
            self.assertEqual(got.returncode, 0, got.stdout[-300:] + got.stderr)
            self.assertLessEqual(float(re.search(r"service: ([0-9.]+)", got.stdout).group(1)), 1.5)


class Container(unittest.TestCase):
    results = None

    @classmethod
    def setUpClass(cls):
        if os.getuid() != 0 or shutil.which("systemd-nspawn") is None:
            harness.skip("needs root and systemd-nspawn")
        if not os.path.exists("/usr/bin/python3"):
            harness.skip("no /usr/bin/python3 to run in the container")
        cls.dir = harness.tempdir()
        os.chmod(cls.dir, 0o755)
        for name in ("units/multi-user.target.wants", "payload/bin", "result"):
            os.makedirs(os.path.join(cls.dir, name))
        cls.fill_units()
        cls.fill_payload()
        console = cls.boot()
        path = os.path.join(cls.dir, "result", "checks.json")
        if not os.path.exists(path):
            booted = "log" in os.listdir(os.path.join(cls.dir, "result"))
            if "Operation not permitted" in console and not booted:
                harness.skip("systemd-nspawn is not permitted here: " + console[-300:])
            raise AssertionError("no result from the container:\n" + console + cls.inner_log())
        with open(path) as f:
            cls.results = json.load(f)

    @classmethod
    def inner_log(cls):
        try:
            with open(os.path.join(cls.dir, "result", "log"), errors="replace") as f:
                return f.read()[-3000:]
        except OSError:
            return ""

    @classmethod
    def fill_units(cls):
        folder = os.path.join(cls.dir, "units")
        units(folder, "/run/payload-ro/bin")
        with open(os.path.join(folder, "check.service"), "w") as f:
            f.write(RUNNER)
        os.symlink("../check.service",
                   os.path.join(folder, "multi-user.target.wants", "check.service"))
        os.symlink("/usr/lib/systemd/system/multi-user.target",
                   os.path.join(folder, "default.target"))
        for name in MASKED:
            os.symlink("/dev/null", os.path.join(folder, name))
        with open(os.path.join(cls.dir, "none.preset"), "w") as f:
            f.write("disable *\n")

    @classmethod
    def fill_payload(cls):
        payload = os.path.join(cls.dir, "payload")
        for name in ("zmqcat-hub", "zmqcat-spoke", "zmqcat", "relay"):
            if os.path.exists(os.path.join(BUILD, name)):
                shutil.copy(os.path.join(BUILD, name), os.path.join(payload, "bin", name))
        shutil.copy(os.path.join(ROOT, "tests", "harness.py"), payload)
        shutil.copy(os.path.join(HERE, "inside_systemd.py"), os.path.join(payload, "inside.py"))
        shutil.copy(os.path.join(ROOT, "systemd", "zmqcat.sysusers"),
                    os.path.join(payload, "zmqcat.conf"))
        for name, text in (("run.sh", RUN), ("people.conf", PEOPLE)):
            with open(os.path.join(payload, name), "w") as f:
                f.write(text)

    @classmethod
    def boot(cls):
        d = cls.dir
        argv = ["systemd-nspawn", "-q", "--volatile=yes", "-D", "/", "-M", "zt%d" % os.getpid(),
                "--register=no", "--keep-unit", "--private-network",
                "--bind=%s/units:/etc/systemd/system" % d,
                "--bind-ro=%s/none.preset:/etc/systemd/system-preset/00-none.preset" % d,
                "--bind-ro=%s/payload:/run/payload-ro" % d, "--bind=%s/result:/run/result" % d,
                "--console=pipe", "-b"]
        p = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT)
        try:
            out, _ = p.communicate(timeout=120 * SLOW)
        except subprocess.TimeoutExpired:
            p.terminate()
            try:
                out, _ = p.communicate(timeout=10)
            except subprocess.TimeoutExpired:
                p.kill()
                out, _ = p.communicate()
        return out.decode(errors="replace")[-3000:]

    def verdict(self, name):
        got = self.results.get(name, "was not run")
        if got != "ok":
            self.fail(got)


def add_checks():
    """One test for each check function of the inner script, so that each is counted."""
    with open(os.path.join(HERE, "inside_systemd.py")) as f:
        names = re.findall(r"^def check_(\w+)\(", f.read(), re.M)
    for name in names:
        setattr(Container, "test_" + name, lambda self, name=name: self.verdict(name))


add_checks()

if __name__ == "__main__":
    harness.main()
