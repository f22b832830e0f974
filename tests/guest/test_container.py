#!/usr/bin/env python3
# serial
"""scenario.py in a container with a systemd of its own, on this machine's kernel, with the units of
`make install`. The power cut is SIGKILL for all that runs in it; test_guest.py does it to a kernel.
"""
import glob, json, os, sys, unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import payload
from payload import SLOW, container, harness

# The first boot waits to be killed.
END = """
touch /run/result/done
test -e /run/result/stay || exec sleep 1000
"""


# Its disks are those of this machine.
SKIPPED = ("disk_of_the_hub_full",)


class Container(payload.Verdicts, unittest.TestCase):
    skipped = SKIPPED

    @classmethod
    def setUpClass(cls):
        if not os.path.exists("/usr/bin/python3"):
            harness.skip("no /usr/bin/python3 to run in the container")
        cls.results = {}
        cls.machine = container.Machine()
        cls.addClassCleanup(lambda: cls.machine.process and cls.machine.finish(0))
        for path in glob.glob(cls.machine.path("units", "zmqcat-*")):
            os.unlink(path)
        os.mkdir(cls.machine.path("kept"))
        payload.fill(cls.machine.path("payload"), SLOW, 100, 0, skipped=SKIPPED,
                     units=container.units)
        with open(cls.machine.path("payload", "run.sh"), "a") as f:
            f.write(END)
        cls.machine.wanted("check.service", container.RUNNER)
        cls.boot(500)
        cls.machine.cut()
        cls.take_results()
        if set(cls.results.values()) != {"ok"}:
            return  # they say why
        container.write(cls.machine.path("result", "stay"), "")
        cls.boot(60)
        cls.machine.finish(20)
        cls.take_results()

    @classmethod
    def boot(cls, seconds):
        machine = cls.machine
        machine.start(more=["--bind=%s:/srv/kept" % machine.path("kept")])
        done = machine.path("result", "done")

        def over():
            return os.path.exists(done) or machine.process.poll() is not None
        harness.wait_for(machine.find_leader, 30, 0.05)
        try:
            harness.wait_for(over, seconds, 0.1)
        finally:
            if not os.path.exists(done):
                machine.judge_missing("no result: " + cls.read("log")[-4000:],
                                      cls.read("log") != "")
        os.unlink(done)

    @classmethod
    def read(cls, name):
        try:
            with open(cls.machine.path("result", name), errors="replace") as f:
                return f.read()[-200000:]
        except OSError:
            return ""

    @classmethod
    def take_results(cls):
        with open(cls.machine.path("result", "checks.json")) as f:
            cls.results.update(json.load(f))
        if "-v" in sys.argv:
            print(cls.read("log"), cls.read("journal"))


Container.add_checks()

if __name__ == "__main__":
    harness.main()
