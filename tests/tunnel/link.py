"""Two network namespaces, and the link between them that delays, loses, reorders: tests/link.

A namespace lives as long as a process that holds it, and that as long as we do: nothing has a name
that could be left behind. SKIP where the machine has no namespaces or no TUN devices.
"""
import ctypes, json, os, shutil, socket, subprocess, sys, threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness
from harness import BUILD, Relay, skip, wait_for

PROGRAM = os.path.join(BUILD, "link")
# 198.18/15 and 2001:2/48 are for tests of networks (RFC 2544, RFC 5180).
ADDRESSES = {"a": ("198.18.0.1", "2001:2::1"), "b": ("198.18.0.2", "2001:2::2")}
# More than senders put out before the link has its turn, on a machine that is busy.
DEVICE_QUEUE = 20000

_libc = ctypes.CDLL(None, use_errno=True)


def possible():
    """SKIP, with the reason, where there can be no link."""
    for tool in ("ip", "nsenter", "unshare"):
        if shutil.which(tool) is None:
            skip("no " + tool)
    for what, argv in (("network namespaces", ["true"]),
                       ("TUN devices", ["ip", "tuntap", "add", "dev", "t0", "mode", "tun"])):
        done = subprocess.run(["unshare", "-n"] + argv, capture_output=True, text=True)
        if done.returncode != 0:
            skip("no %s: %s" % (what, done.stderr.strip()))


class Namespace:
    """A network namespace. `enter` goes before the command of a process that is to be in it."""

    def __init__(self):
        self.holder = subprocess.Popen(["unshare", "-n", "cat"], stdin=subprocess.PIPE,
                                       stdout=subprocess.DEVNULL)
        harness._children.append(self.holder)
        self.pid = str(self.holder.pid)
        self.path = "/proc/%s/ns/net" % self.pid
        self.enter = ["nsenter", "-t", self.pid, "-n"]
        own = os.readlink("/proc/self/ns/net")
        wait_for(lambda: os.readlink(self.path) != own)
        self.ip("link", "set", "lo", "up")

    def run(self, *argv):
        return subprocess.run(self.enter + list(argv), check=True, capture_output=True,
                              text=True).stdout

    def ip(self, *args):
        return self.run("ip", *args)

    def inside(self, function):
        """What the function returns, called by a thread that is in the namespace: a socket that
        it makes stays there."""
        got = []

        def there():
            with open(self.path) as f:
                if _libc.setns(f.fileno(), 0x40000000) != 0:  # CLONE_NEWNET
                    raise OSError(ctypes.get_errno(), "setns")
            got.append(function())
        thread = threading.Thread(target=there)
        thread.start()
        thread.join()
        return got[0]

    def socket(self, kind=socket.SOCK_STREAM, family=socket.AF_INET, protocol=0):
        return self.inside(lambda: socket.socket(family, kind, protocol))

    def end(self):
        self.holder.kill()
        self.holder.wait()
        self.holder.stdin.close()


class End(Namespace):
    """One end of a link: the namespace and its addresses."""

    def __init__(self, name):
        super().__init__()
        self.name = name
        self.address, self.address6 = ADDRESSES[name]

    def up(self):
        self.ip("link", "set", "link0", "addrgenmode", "none", "mtu", "1500", "txqueuelen",
                str(DEVICE_QUEUE), "up")

    def number(self):
        self.ip("addr", "add", self.address + "/24", "dev", "link0")
        self.ip("addr", "add", self.address6 + "/64", "dev", "link0", "nodad")


class Link:
    """The two ends, a and b, and the link, without a fault to begin with. Its knobs:
    `build/link` without arguments prints them."""

    def __init__(self, seed=1):
        possible()
        self.a = self.b = self.proc = None
        try:
            self.a, self.b = End("a"), End("b")
            argv = [PROGRAM, "--a", self.a.path, "--b", self.b.path, "--seed", str(seed)]
            self.proc = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            harness._children.append(self.proc)
            self.answer()
            for end in (self.a, self.b):
                end.up()
            for end in (self.a, self.b):
                end.number()
        except BaseException:
            self.end()
            raise

    def answer(self):
        line = self.proc.stdout.readline()
        if not line:
            raise AssertionError("the link has ended: %s" % self.proc.wait())
        return json.loads(line)

    def say(self, line):
        """A line of control and its answer."""
        self.proc.stdin.write(line.encode() + b"\n")
        self.proc.stdin.flush()
        return self.answer()

    def set(self, which="both", **knobs):
        """which: what a sends, what b sends, or both."""
        words = " ".join("%s=%s" % (k, format(v, ".9f").rstrip("0").rstrip(".")
                                    if isinstance(v, float) else v) for k, v in knobs.items())
        answer = self.say("%s %s" % (which, words))
        if answer != {"ok": True}:
            raise AssertionError("%s: %s" % (words, answer))

    def stats(self):
        return self.say("stats")

    def cut(self):
        self.set(cut=1)

    def mend(self):
        self.set(cut=0)

    def end(self):
        if self.proc is not None:
            self.proc.kill()
            self.proc.wait()
            self.proc.stdin.close()
            self.proc.stdout.close()
        for end in (self.a, self.b):
            if end is not None:
                end.end()


class RelayAt(Relay):
    """A relay in a namespace, at an IPv4 address of it, on port 443."""

    def __init__(self, namespace, address):
        self.namespace, self.address = namespace, address
        super().__init__()

    def start(self):
        argv = [harness.RELAY, "--dir", self.dir, "--address", self.address, "--port", "443"]
        self.proc = subprocess.Popen(self.namespace.enter + argv, stdin=subprocess.DEVNULL,
                                     stdout=subprocess.PIPE)
        harness._children.append(self.proc)
        if not self.proc.stdout.readline():
            raise AssertionError("the relay did not start")
        return self
