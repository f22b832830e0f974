#!/usr/bin/env python3
# quick
"""Sockets handed over by LISTEN_FDS, and notification, without a service manager.

A small launcher does what sd_listen_fds(3) describes: descriptors from 3 on, LISTEN_PID its own.
"""
import json, os, re, signal, socket, subprocess, sys, time, unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
from harness import HUB, SLOW, Closed, Conn, wait_for

# argv: JSON {fds, env, pid}, then the program. Nothing else stays open.
LAUNCHER = """
import fcntl, json, os, sys
c = json.loads(sys.argv[1])
high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 200) for fd in c["fds"]]
for i, fd in enumerate(high):
    os.dup2(fd, 3 + i, inheritable=True)
    os.close(fd)
os.closerange(3 + len(high), 200)
os.environ.update(c["env"])
if c["pid"]:
    os.environ["LISTEN_PID"] = str(os.getpid())
    if "WATCHDOG_USEC" in c["env"]:
        os.environ["WATCHDOG_PID"] = str(os.getpid())
os.execv(sys.argv[2], sys.argv[2:])
"""


class Case(unittest.TestCase):
    program = HUB

    def setUp(self):
        self.dir = harness.tempdir()
        self.log = os.path.join(self.dir, "log")
        self.proc = None

    def tearDown(self):
        if self.proc is not None and self.proc.poll() is None:
            self.proc.kill()
            self.proc.wait()

    def unix(self, name="u", listen=True):
        s = socket.socket(socket.AF_UNIX)
        s.bind(os.path.join(self.dir, name))
        if listen:
            s.listen(64)
        self.addCleanup(s.close)
        return s

    def tcp(self, host="127.0.0.1"):
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        s = socket.create_server((host, 0), family=family)
        self.addCleanup(s.close)
        return s

    def start(self, sockets, names=None, options=(), env=None, pid=True, count=None):
        fds = [s if isinstance(s, int) else s.fileno() for s in sockets]
        e = {"LISTEN_FDS": str(len(fds) if count is None else count), **(env or {})}
        if names is not None:
            e["LISTEN_FDNAMES"] = names
        config = json.dumps({"fds": fds, "env": e, "pid": pid})
        with open(self.log, "ab") as out:
            self.proc = subprocess.Popen(
                [sys.executable, "-c", LAUNCHER, config, self.program, "--local"] + list(options),
                cwd=self.dir, pass_fds=fds, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        return self.proc

    def logged(self):
        with open(self.log, errors="replace") as f:
            return f.read()

    def alive(self, where):
        c = Conn(where)
        try:
            return c.call(op="hello", id="x")["id"] == "x"
        finally:
            c.close()

    def stop(self):
        self.proc.terminate()
        self.assertEqual(self.proc.wait(10 * SLOW), 0, self.logged())

    def path(self, name):
        return os.path.join(self.dir, name)


class Handed(Case):
    def test_several_of_both_kinds_with_names(self):
        four, six = self.tcp(), self.tcp("::1")
        self.start([self.unix("a"), four, self.unix("c"), six, self.unix("b")],
                   "bus:x:control:bus:bus")
        for where in (self.path("a"), self.path("b"), four.getsockname(), six.getsockname()[:2]):
            self.assertTrue(self.alive(where))
        c = Conn(self.path("c"))
        self.assertEqual(c.call(v=1, op="status", id="1")["op"], "ok")
        self.assertEqual(c.put("q", "x")["error"], "unknown op put")
        c.close()
        bus = Conn(self.path("a"))
        self.assertEqual(bus.call(v=1, op="status", id="1")["error"], "unknown op status")
        bus.close()
        self.assertNotIn("control", self.logged())
        self.assertEqual(len(re.findall("^local bus at ", self.logged(), re.M)), 4, self.logged())
        self.stop()

    def test_default_socket_is_not_made_beside_them(self):
        """--listen has no default when sockets were handed over."""
        self.start([self.unix(), self.unix("c")], "bus:control")
        self.assertTrue(self.alive(self.path("u")))
        self.assertEqual(len(re.findall("^local bus at ", self.logged(), re.M)), 1, self.logged())
        self.stop()

    def test_without_names_all_are_bus_sockets(self):
        self.start([self.unix("a"), self.unix("b")])
        self.assertTrue(self.alive(self.path("a")))
        c = Conn(self.path("b"))
        self.assertEqual(c.call(v=1, op="put", id="2", name="q", text="x")["op"], "ok")
        c.close()
        self.assertEqual(self.logged().count("no control socket"), 1)
        self.assertEqual(sorted(os.listdir(self.dir)), ["a", "b", "log"])
        self.stop()

    def test_listen_and_control_add_to_them(self):
        self.start([self.unix("a")], "bus",
                   ["--listen", self.path("b"), "--control", self.path("c")])
        for name in "ab":
            wait_for(lambda: os.path.exists(self.path(name)))
            self.assertTrue(self.alive(self.path(name)))
        c = Conn(self.path("c"))
        self.assertEqual(c.call(v=1, op="status", id="1")["op"], "ok")
        c.close()
        self.assertNotIn("no control socket", self.logged())
        self.stop()
        self.assertEqual(sorted(os.listdir(self.dir)), ["a", "log"])

    def test_only_control_handed_over(self):
        self.start([self.unix("c")], "control", ["--listen", self.path("b")])
        wait_for(lambda: "local bus at" in self.logged())
        self.assertTrue(self.alive(self.path("b")))
        self.assertFalse(os.path.exists(self.path("b.ctl")))
        self.stop()

    def test_never_unlinked_and_never_shut_down(self):
        """After a stop, and after a crash, the giver's sockets go on and queue clients."""
        u, t = self.unix(), self.tcp()
        for sig in (signal.SIGTERM, signal.SIGKILL):
            self.start([u, t], "bus:bus")
            self.assertTrue(self.alive(self.path("u")))
            self.assertTrue(self.alive(t.getsockname()))
            self.proc.send_signal(sig)
            self.proc.wait(10 * SLOW)
            self.assertTrue(os.path.exists(self.path("u")))
            waiting = [Conn(self.path("u")), Conn(t.getsockname())]
            for c in waiting:
                c.send(v=1, op="hello", id="early")
            self.start([u, t], "bus:bus")
            for c in waiting:
                self.assertEqual(c.recv()["id"], "early")
                c.close()
            self.stop()

    def test_blocking_sockets_do_not_block(self):
        u = self.unix()
        u.setblocking(True)
        self.start([u, self.unix("b")], "bus:bus")
        for _ in range(20):
            self.assertTrue(self.alive(self.path("u")))
            self.assertTrue(self.alive(self.path("b")))
        self.stop()

    def test_meant_for_another_process(self):
        self.start([self.unix()], "bus", ["--listen", self.path("b")], pid=False,
                   env={"LISTEN_PID": "1"})
        wait_for(lambda: "local bus at" in self.logged())
        self.assertTrue(self.alive(self.path("b")))
        self.assertEqual(self.logged().count("local bus at"), 1)
        self.stop()

    def refused(self, *args, **more):
        options = ["--listen", self.path("never")]
        self.start(*args, options=options, **more)
        self.assertEqual(self.proc.wait(10 * SLOW), 78, self.logged())
        self.assertFalse(os.path.exists(self.path("never")))
        self.assertEqual(self.logged().count("\n"), 1, self.logged())
        os.unlink(self.log)

    def test_what_is_no_listening_stream_socket_is_refused(self):
        a, b = socket.socketpair()
        d = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        d.bind(self.path("d"))
        r, w = os.pipe()
        regular = os.open(self.log, os.O_RDWR | os.O_CREAT)
        for bad in (self.unix("n", listen=False), a, d, r, regular):
            self.refused([self.unix("u%d" % time.monotonic_ns()), bad], "bus:bus")
        self.refused([self.unix("v")], "bus", count=2)
        self.refused([self.unix("w")], "bus", count="many")
        for s in (a, b, d):
            s.close()
        for fd in (r, w, regular):
            os.close(fd)

    def test_too_many(self):
        self.refused([self.unix(str(i)) for i in range(33)], ":".join(["bus"] * 33))


class Notify(Case):
    def setUp(self):
        super().setUp()
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notify.bind(self.path("notify"))
        self.notify.settimeout(10 * SLOW)
        self.addCleanup(self.notify.close)

    def started(self, options=(), **env):
        self.start([self.unix(), self.unix("c")], "bus:control", options,
                   env={"NOTIFY_SOCKET": self.path("notify"), **env})

    def until(self, wanted):
        """Collects notifications up to the first that has `wanted`."""
        got = []
        while not got or wanted not in got[-1]:
            got.append(self.notify.recv(4096).decode())
        return got

    def test_ready_then_served_then_stopping(self):
        self.started()
        got = self.until("READY=1")
        self.assertIn("STATUS=", "".join(got))
        self.assertTrue(self.alive(self.path("u")))
        self.proc.terminate()
        self.until("STOPPING=1")
        self.assertEqual(self.proc.wait(10 * SLOW), 0)
        self.notify.settimeout(0.2)
        try:
            while True:
                self.assertNotIn("READY", self.notify.recv(4096).decode())
        except TimeoutError:
            pass

    def test_status_follows(self):
        self.started(["--name", "hq"])
        status = self.until("STATUS=")[-1]
        self.assertIn("STATUS=hq: 0 sessions, 0 queued, 0 leased, storage memory", status)
        c = Conn(self.path("u"))
        c.put("q", "x")
        c.put("q", "y")
        c.call(v=1, op="reserve", id="r", name="q")
        self.until("1 session, 1 queued, 1 leased")
        c.close()
        self.until("0 sessions, 2 queued, 0 leased")
        self.stop()

    def test_status_is_told_at_most_once_a_second(self):
        self.started()
        self.until("READY=1")
        end = time.monotonic() + 2
        while time.monotonic() < end:
            self.alive(self.path("u"))
        self.notify.setblocking(False)
        n = 0
        try:
            while True:
                self.notify.recv(4096)
                n += 1
        except BlockingIOError:
            pass
        self.assertLessEqual(n, 4)
        self.stop()

    def test_not_ready_when_the_start_fails(self):
        self.started(["--listen", self.dir])
        self.assertEqual(self.proc.wait(10 * SLOW), 78)
        self.notify.setblocking(False)
        with self.assertRaises(BlockingIOError):
            self.notify.recv(4096)

    def test_watchdog(self):
        """Fed twice in its time: once late does not kill."""
        self.started(WATCHDOG_USEC="2000000")
        self.until("WATCHDOG=1")
        start = time.monotonic()
        for _ in range(2):
            self.until("WATCHDOG=1")
        took = time.monotonic() - start
        self.assertGreater(took, 1.5)
        self.assertLess(took, 3.7)
        self.stop()

    def test_no_watchdog_unless_asked(self):
        self.started()
        self.until("READY=1")
        self.notify.settimeout(1)
        with self.assertRaises(TimeoutError):
            self.until("WATCHDOG=1")
        self.stop()

    def test_status_cannot_be_forged(self):
        self.started(["--name", "x\nMAINPID=1"])
        self.assertNotIn("\nMAINPID", "".join(self.until("READY=1")))
        self.stop()


class Journal(Case):
    def test_priorities_when_stderr_is_the_journal(self):
        with open(self.log, "ab"):
            st = os.stat(self.log)
        here = "%d:%d" % (st.st_dev, st.st_ino)
        self.start([self.unix()], "bus", env={"JOURNAL_STREAM": here})
        self.assertTrue(self.alive(self.path("u")))
        self.stop()
        for line in self.logged().splitlines():
            self.assertRegex(line, "^<[346]>(zmqcat: |local bus at )")
        self.assertIn("<4>zmqcat: no control socket", self.logged())

    def test_none_when_it_is_not(self):
        """As of a hub whose stderr somebody has sent elsewhere, perhaps on the same disk."""
        with open(self.log, "ab"):
            st = os.stat(self.log)
        for n, stream in enumerate(("1:1", "%d:1" % st.st_dev, "1:%d" % st.st_ino, "x", "")):
            name = "u%d" % n
            self.start([self.unix(name)], "bus", env={"JOURNAL_STREAM": stream})
            self.assertTrue(self.alive(self.path(name)))
            self.stop()
        self.assertNotIn("<", self.logged())


if __name__ == "__main__":
    harness.main()
