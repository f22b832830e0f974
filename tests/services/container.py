"""A container that boots a real systemd as PID 1 on this machine's own read-only /usr, with an
empty /etc, the units as `make install` would write them, and the programs of the build in a folder
of /run. What the tests of the services share."""
import contextlib, glob, os, shutil, signal, subprocess, sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
import harness
from harness import BUILD, ROOT, SLOW

PAYLOAD = "/run/payload-ro"
BIN = PAYLOAD + "/bin"
MASKED = ("systemd-logind.service", "dbus-org.freedesktop.login1.service",
          "systemd-networkd.service", "systemd-resolved.service", "systemd-timesyncd.service",
          "getty.target", "console-getty.service", "systemd-firstboot.service")
PROGRAMS = ("zmqcat-hub", "zmqcat-spoke", "zmqcat", "relay")
# Runs run.sh of the payload, once, and ends the machine.
RUNNER = """[Unit]
After=multi-user.target
SuccessAction=poweroff-immediate
FailureAction=poweroff-immediate
[Service]
Type=oneshot
ExecStart=/bin/sh /run/payload-ro/run.sh
"""


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


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write(text)


class Machine:
    """One container: its folders under `dir`, and its process once it was started."""

    def __init__(self, suffix=""):
        if os.getuid() != 0 or shutil.which("systemd-nspawn") is None:
            harness.skip("needs root and systemd-nspawn")
        self.name = "zt%d%s" % (os.getpid(), suffix)
        self.dir = harness.tempdir()
        self.process = self.leader = None
        os.chmod(self.dir, 0o755)
        for name in ("units/multi-user.target.wants", "payload/bin", "result"):
            os.makedirs(os.path.join(self.dir, name))
        units(self.path("units"), BIN)
        os.symlink("/usr/lib/systemd/system/multi-user.target", self.path("units/default.target"))
        for name in MASKED:
            os.symlink("/dev/null", self.path("units", name))
        # Else services of other packages of this machine would start.
        write(self.path("none.preset"), "disable *\n")
        for name in PROGRAMS:
            if os.path.exists(os.path.join(BUILD, name)):
                shutil.copy(os.path.join(BUILD, name), self.path("payload/bin", name))
        shutil.copy(os.path.join(ROOT, "systemd", "zmqcat.sysusers"),
                    self.path("payload/zmqcat.conf"))

    def path(self, *parts):
        return os.path.join(self.dir, *parts)

    def wanted(self, name, text):
        """A unit that the boot starts."""
        write(self.path("units", name), text)
        os.symlink("../" + name, self.path("units/multi-user.target.wants", name))

    def start(self, network="--private-network", more=()):
        argv = ["systemd-nspawn", "-q", "--volatile=yes", "-D", "/", "-M", self.name,
                "--register=no", "--keep-unit", network,
                "--bind=%s:/etc/systemd/system" % self.path("units"),
                "--bind-ro=%s:/etc/systemd/system-preset/00-none.preset" % self.path("none.preset"),
                "--bind-ro=%s:%s" % (self.path("payload"), PAYLOAD),
                "--bind=%s:/run/result" % self.path("result"), "--console=pipe", *more, "-b"]
        with open(self.path("console"), "wb") as console:
            self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=console,
                                            stderr=subprocess.STDOUT)

    def find_leader(self):
        """PID 1 of the container, seen from here, once it runs systemd."""
        if self.process.poll() is not None:
            self.judge_missing("the container ended", False)
        pid = self.process.pid
        with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
            for child in f.read().split():
                with contextlib.suppress(OSError), open("/proc/%s/comm" % child) as comm:
                    if comm.read() == "systemd\n":
                        self.leader = child
        return self.leader is not None

    def cut(self):
        """All that runs there ends at once."""
        os.kill(int(self.leader), signal.SIGKILL)
        self.process.wait(20 * SLOW)

    def console(self):
        with open(self.path("console"), errors="replace") as f:
            return f.read()[-3000:]

    def finish(self, seconds):
        """Waits for its end; one that takes longer is ended. The end of what it said."""
        for end in (lambda: None, self.process.terminate, self.process.kill):
            end()
            try:
                self.process.wait(seconds * SLOW)
                break
            except subprocess.TimeoutExpired:
                seconds = 10
        return self.console()

    def judge_missing(self, why, booted):
        """What was awaited did not come: not permitted here, or a failure."""
        if "Operation not permitted" in self.console() and not booted:
            harness.skip("systemd-nspawn is not permitted here: " + self.console()[-300:])
        raise AssertionError("%s\n%s" % (why, self.console()))
