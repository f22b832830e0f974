#!/usr/bin/env python3
"""The units under a real systemd.

systemd-nspawn boots systemd as PID 1 on this machine's own read-only /usr with an empty /etc and no
network; inside_systemd.py runs there and leaves one verdict a check. Before that the units pass
`systemd-analyze verify` without a word and `security` with at most 1.5.
"""
import json, os, re, shutil, subprocess, sys, unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
import harness
from container import Machine, RUNNER, units, write
from harness import BUILD, ROOT

RUN = """exec >/run/result/log 2>&1
systemd-sysusers /run/payload-ro/zmqcat.conf /run/payload-ro/people.conf
/usr/bin/python3 -B /run/payload-ro/inside.py /run/payload-ro /run/result
echo $? >/run/result/rc
"""
with open(os.path.join(HERE, "inside_systemd.py")) as checks:
    NAMES = re.findall(r"^def check_(\w+)\(", checks.read(), re.M)
PEOPLE = "u member -\nm member zmqcat\nu stranger -\n"


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
        if not os.path.exists("/usr/bin/python3"):
            harness.skip("no /usr/bin/python3 to run in the container")
        cls.machine = Machine()
        cls.machine.wanted("check.service", RUNNER)
        cls.fill_payload()
        cls.machine.start()
        cls.machine.finish(120)
        path = cls.machine.path("result", "checks.json")
        if not os.path.exists(path):
            log = cls.inner_log()
            cls.machine.judge_missing("no result from the container\n" + (log or ""),
                                      log is not None)
        with open(path) as f:
            cls.results = json.load(f)
        if len(cls.results) < len(NAMES):
            raise AssertionError("the checks ended early\n" + (cls.inner_log() or ""))

    @classmethod
    def inner_log(cls):
        try:
            with open(cls.machine.path("result", "log"), errors="replace") as f:
                return f.read()[-3000:]
        except OSError:
            return None

    @classmethod
    def fill_payload(cls):
        payload = cls.machine.path("payload")
        for name in ("harness.py", "program.py", "services/manager.py"):
            shutil.copy(os.path.join(ROOT, "tests", name), payload)
        shutil.copy(os.path.join(HERE, "inside_systemd.py"), os.path.join(payload, "inside.py"))
        for name, text in (("run.sh", RUN), ("people.conf", PEOPLE)):
            write(os.path.join(payload, name), text)

    def verdict(self, name):
        if self.results[name] != "ok":
            self.fail(self.results[name])


# One test for each check function of the inner script, so that each is counted.
for check in NAMES:
    setattr(Container, "test_" + check, lambda self, name=check: self.verdict(name))

if __name__ == "__main__":
    harness.main()
