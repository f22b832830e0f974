"""What the machine of a scenario gets: programs, units, and the scripts that run inside. How it is
booted is the matter of test_container.py and test_guest.py."""
import glob, os, re, shutil, sys

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
sys.path[:0] = [os.path.join(TESTS, "services"), TESTS]
import container, harness
from harness import BUILD, ROOT, SLOW

FILES = ("harness.py", "program.py", "services/manager.py", "guest/world.py", "guest/held.py",
         "guest/load.py", "guest/scenario.py", "guest/after_cut.py",
         "vectors/original-mailbox-2.json")
# The first boot ends by the power cut.
RUN = """mkdir -p /run/result
export ZMQCAT_TEST_SLOW=%s ROUNDS=%d OWN_KERNEL=%d PYTHONUNBUFFERED=1
export SKIPPED="%s"
cd /run/payload-ro
if test -e /srv/kept/facts; then
    /usr/bin/python3 -B after_cut.py /run/payload-ro /run/result >%s 2>&1
else
    /usr/bin/python3 -B scenario.py /run/payload-ro /run/result >%s 2>&1
fi
"""


def rendered(folder, bindir):
    """The units that the NixOS module makes (tests/nix/test_nix.py compares them with these)."""
    for role in ("hub", "spoke"):
        for path in glob.glob(os.path.join(TESTS, "nix/rendered", role, "*")):
            with open(path) as f:
                text = f.read().replace("/nowhere/bin", bindir)
            container.write(os.path.join(folder, os.path.basename(path)), text)


def fill(folder, slow, rounds, own_kernel, log="/run/result/log", skipped=(), units=rendered):
    """Everything but the way out of run.sh, which the caller appends. units: writes those of the
    NixOS module, or (container.units) of `make install`."""
    for name in ("bin", "units"):
        os.makedirs(os.path.join(folder, name), exist_ok=True)
    units(os.path.join(folder, "units"), container.BIN)
    for name in container.PROGRAMS:
        shutil.copy(os.path.join(BUILD, name), os.path.join(folder, "bin"))
    for name in FILES:
        shutil.copy(os.path.join(TESTS, name), folder)
    shutil.copy(os.path.join(ROOT, "systemd/zmqcat.sysusers"), folder + "/zmqcat.conf")
    shutil.copy(os.path.join(ROOT, "systemd/zmqcat.tmpfiles"), folder + "/zmqcat-tmpfiles.conf")
    container.write(folder + "/run.sh", RUN % (
        slow, rounds, own_kernel, " ".join(skipped), log, log))


def checks(script):
    """The names of its checks."""
    with open(os.path.join(HERE, script)) as f:
        return re.findall(r"^def check_(\w+)\(", f.read(), re.M)


class Verdicts:
    """One test for each check of both scripts, so that each is counted; results: of both boots."""
    results = {}
    skipped = ()

    def verdict(self, name):
        got = self.results.get(name, "was not run")
        if got != "ok":
            self.fail(got)

    @classmethod
    def add_checks(cls):
        for script in ("scenario.py", "after_cut.py"):
            for name in [n for n in checks(script) if n not in cls.skipped]:
                setattr(cls, "test_" + name, lambda self, name=name: self.verdict(name))


if __name__ == "__main__":
    fill(sys.argv[1], 1, 20, 1)
