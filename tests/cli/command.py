"""What the tests of the command share: a hub, the command beside it, and what the hub holds."""
import functools, os, signal, subprocess, sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness
from harness import CLI, cli


class Case(harness.Case):
    options, durable = (), False

    def setUp(self):
        self.bus = self.hub(*self.options, durable=self.durable)

    @functools.cached_property
    def raw(self):
        return self.conn(self.bus)

    def z(self, *args, **more):
        """The command, to its end."""
        return cli(*args, **dict({"listen": self.bus.listen}, **more))

    def stat(self, name="jobs", bus=None):
        raw = (bus or self.bus).connect()
        try:
            return raw.call(op="stat", id="s", name=name)["result"]
        finally:
            raw.close()

    def start(self, verb, *args, bus=None, **more):
        """The command in the background."""
        p = subprocess.Popen([CLI, verb, "-l", (bus or self.bus).listen, *args], bufsize=0,
                             **dict({"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE,
                                     "stderr": subprocess.PIPE}, **more))
        for stream in (p.stdin, p.stdout, p.stderr):
            if stream:
                self.addCleanup(stream.close)
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        return p

    def freeze(self, hub=None):
        """The hub hangs from here on, to the end of the test or its SIGCONT."""
        proc = (hub or self.bus).proc
        self.addCleanup(proc.send_signal, signal.SIGCONT)
        proc.send_signal(signal.SIGSTOP)
