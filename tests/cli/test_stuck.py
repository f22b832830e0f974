"""The command beside a hub that does not answer, and with standard streams that are closed."""
import functools, os, re, signal, socket, subprocess, time

import command
import harness
from harness import SLOW, cli, tempdir, together, wait_for

# Each verb that needs a hub, as it is used.
VERBS = (("put", "jobs", "x"), ("put", "jobs", "--lines"), ("take", "jobs"),
         ("take", "jobs", "--count", "2", "--wait", "30s"), ("take", "jobs", "--follow"),
         ("reserve", "jobs"), ("work", "jobs", "--", "true"), ("ready", "jobs"),
         ("pub", "topic", "x"), ("sub",), ("sub", "--wait", "30s"), ("req", "jobs", "x"),
         ("req", "jobs", "x", "--timeout", "30s"), ("ping",), ("ping", "-v"), ("stat",),
         ("stat", "jobs"), ("ls",), ("peek", "jobs"), ("purge", "jobs"), ("mv", "jobs", "other"),
         ("bind", "jobs", "topic"), ("unbind", "jobs", "topic"), ("status",), ("top",),
         ("top", "--json"), ("trace", "on"), ("token",), ("rotate",), ("reload",),
         ("revoke", "nodekey:" + "7" * 64), ("drain",), ("bench",), ("bench", "req"))
OFF_LINE = {"keygen", "nodekey", "serve", "join", "store", "completion"}


class Silent(harness.Case):
    """A hub that takes connections and says nothing."""

    def setUp(self):
        self.path = os.path.join(tempdir(), "s")
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.bind(self.path)
        self.sock.listen(16)
        self.addCleanup(self.sock.close)

    def took(self, *args):
        start = time.monotonic()
        got = cli(*args, listen=self.path)
        self.assertEqual((got.returncode, got.stdout), (3, b""), got.stderr)
        self.assertEqual(got.stderr.count(b"\n"), 1, got.stderr)
        self.assertIn(b"does not answer: the log of its service says why\n", got.stderr)
        return time.monotonic() - start

    def test_wait_bounds_the_first_answer(self):
        def one(seconds, wait, verb, name, *more):
            took = self.took(verb, name, "--wait", wait, *more)
            self.assertTrue(seconds - 0.1 < took < seconds + 2 * SLOW, (took, verb))
        uses = [("take", "x"), ("take", "x", "--follow"), ("ready", "x"), ("reserve", "x"),
                ("sub", "x"), ("work", "x", "--", "true")]
        def status():
            """A daemon that cannot start: what to look at is said before the patience ends."""
            start = time.monotonic()
            got = cli("status", "--control", self.path)
            self.assertEqual((got.returncode, got.stdout), (1, b""))
            self.assertIn(b"does not answer: the log of its service says why\n", got.stderr)
            self.assertTrue(9.9 < time.monotonic() - start < 10 + 2 * SLOW)
        # 2 s a hub far away has in any case.
        together(status, functools.partial(one, 2, "0", *uses[0]),
                 *[functools.partial(one, 3, "3s", *use) for use in uses])

    def test_timeout_and_retries_bound_it(self):
        took = self.took("req", "x", "y", "--timeout", "500ms", "--retries", "2")
        self.assertTrue(0.9 < took < 3 * SLOW, took)


class Hangs(command.Case):
    """A hub that stands still: Ctrl-C ends the command, and at once."""

    def ends(self, procs, sig=signal.SIGINT, status=-signal.SIGINT, seconds=1.0):
        """procs: (words, process)."""
        for args, p in procs:
            self.assertIsNone(p.poll(), (args, p.stderr.read() if p.poll() is not None else b""))
        for args, p in procs:
            with self.subTest(args, signal=sig):
                began = time.monotonic()
                p.send_signal(sig)
                self.assertEqual(p.wait(10 * SLOW), status)
                self.assertLess(time.monotonic() - began, seconds * SLOW)

    def test_the_table_has_every_verb(self):
        verbs = re.findall(r"^  (\w+)", cli("--help").stdout.decode(), re.M)
        self.assertGreater(len(verbs), 20)
        self.assertEqual(set(verbs) - OFF_LINE, {v[0] for v in VERBS})

    def test_before_its_first_answer(self):
        self.freeze()
        for sig in (signal.SIGINT, signal.SIGTERM):
            procs = [(v, self.start(*v, stdin=subprocess.PIPE)) for v in VERBS]
            time.sleep(0.5 * SLOW)
            self.ends(procs, sig, -sig)

    def test_later(self):
        """The hub answered the first word of each, and what came next is left unanswered."""
        waits = [v for v in VERBS if v[0] in ("take", "ready", "sub", "work", "reserve")]
        self.z("put", "held", "x")
        held = self.start("reserve", "held", stdin=subprocess.PIPE)
        held.stdout.readline()
        lines = self.start("put", "lines", "--lines", stdin=subprocess.PIPE)
        lines.stdin.write(b"line\n")
        bench = self.start("bench", "--count", "10000000")
        procs = [(v, self.start(*v, stdin=subprocess.PIPE)) for v in waits]
        jobs = [v for v in waits if "jobs" in v]
        wait_for(lambda: self.stat()["waiting"] == len(jobs))
        wait_for(lambda: self.stat("lines")["depth"] == 1)
        wait_for(lambda: b"zmqcat.bench" in self.z("ls").stdout)
        self.freeze()
        lines.stdin.write(b"line\n" * 100)
        time.sleep(0.3)
        at_once = [(v, p) for v, p in procs if "--follow" not in v and v[0] != "work"]
        self.ends(at_once + [("held", held), ("lines", lines), ("bench", bench)])
        self.assertIn(b"accepted 1, unknown 2-101", lines.stderr.read())
        self.ends([(v, p) for v, p in procs if v[0] == "work"], status=0)
        # A message may be on its way to it: it waits a while, for the first signal.
        follow = [(v, p) for v, p in procs if "--follow" in v]
        follow[0][1].send_signal(signal.SIGINT)
        time.sleep(0.2)
        self.ends(follow)

    def test_a_line_is_half_sent(self):
        """More is sent than the hub and the system take."""
        p = self.start("put", "jobs", "--lines", stdin=subprocess.PIPE)
        p.stdin.write(b"line\n")
        wait_for(lambda: self.stat()["depth"] == 1)
        self.freeze()
        os.set_blocking(p.stdin.fileno(), False)
        sent, quiet = 0, time.monotonic() + 1
        while time.monotonic() < quiet:
            n = p.stdin.write(b"x" * 65535 + b"\n")
            if n:
                sent, quiet = sent + n, time.monotonic() + 0.5
        self.assertGreater(sent, 1 << 17)
        self.ends([("lines", p)])
        self.assertRegex(p.stderr.read(), rb"lines: accepted 1, unknown 2-\d+; not sent: from line")

    def test_wait_ends_although_the_hub_does_not_say_so(self):
        p = self.start("take", "jobs", "--follow", "--wait", "1s")
        wait_for(lambda: self.stat()["waiting"] == 1)
        self.freeze()
        self.assertEqual(p.wait(9 * SLOW), 3)
        self.assertIn(b"no answer in time", p.stderr.read())

    def test_bench_leaves_nothing_when_the_hub_lives(self):
        p = self.start("bench", "put", "--count", "10000000")
        wait_for(lambda: b"zmqcat.bench" in self.z("ls").stdout)
        self.ends([("bench", p)])
        self.assertEqual(self.z("ls").stdout, b"")

    def test_ping_v_does_not_wait_long_for_the_path(self):
        path = os.path.join(tempdir(), "s")
        os.symlink(self.bus.path, path)
        silent = socket.socket(socket.AF_UNIX)
        self.addCleanup(silent.close)
        silent.bind(path + ".ctl")
        silent.listen(1)
        began = time.monotonic()
        got = self.z("ping", "-v", listen=path)
        self.assertEqual((got.returncode, got.stdout[:5]), (0, b"pong\n"))
        self.assertNotIn(b"path", got.stdout)
        self.assertLess(time.monotonic() - began, 5 * SLOW)


class Closed(command.Case):
    def run_without(self, streams, *args):
        redirect = {0: "<&-", 1: ">&-"}
        text = 'exec "$@" ' + " ".join(redirect[s] for s in streams)
        return subprocess.run(["sh", "-c", text, "sh", harness.CLI] + list(args) +
                              ["--listen", self.bus.listen], stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=20 * harness.SLOW)

    def closed_output(self, *args):
        got = self.run_without([1], *args)
        self.assertEqual(got.returncode, 1, got.stderr)
        self.assertEqual(got.stderr, b"zmqcat: standard output: it is closed\n")

    def test_nothing_is_done_whose_result_cannot_be_printed(self):
        self.z("put", "q", "hello")
        for args in (["take", "q"], ["take", "q", "--follow", "--count", "1"],
                     ["ready", "q", "--ack"], ["reserve", "q", "--ack"], ["peek", "q"],
                     ["purge", "q"], ["mv", "q", "other"], ["sub"], ["req", "q", "x"]):
            with self.subTest(args):
                self.closed_output(*args)
                self.assertEqual((self.stat("q")["depth"], self.stat("q")["redelivered"]), (1, 0))
        self.closed_output("put", "q", "--lines", "--json")
        self.assertEqual(self.z("take", "q").stdout, b"hello\n")
        path = os.path.join(tempdir(), "key")
        got = subprocess.run(["sh", "-c", '"$@" >&-', "sh", harness.CLI, "keygen", path],
                             stderr=subprocess.PIPE)
        self.assertEqual((got.returncode, os.path.exists(path)), (1, False))

    @harness.local("a hub with a tunnel of its own")
    def test_a_token_that_cannot_be_printed_is_not_replaced(self):
        hub = self.tunnel_hub(self.relay())
        before = hub.token()
        got = subprocess.run(["sh", "-c", '"$@" >&-', "sh", harness.CLI, "rotate", "--control",
                              hub.path + ".ctl"], stderr=subprocess.PIPE)
        self.assertEqual((got.returncode, hub.token()), (1, before))

    def test_no_payload_is_not_an_empty_one(self):
        for args in (["put", "q"], ["pub", "q"], ["req", "q"], ["put", "q", "--lines"]):
            got = self.run_without([0], *args)
            self.assertEqual(got.returncode, 1, args)
            self.assertIn(b"standard input: it is closed", got.stderr)
        self.assertEqual(self.z("take", "q", "--wait", "0").returncode, 3)
        self.assertEqual(self.run_without([0, 1], "put", "q", "x").returncode, 0)
        self.assertEqual(self.z("take", "q").stdout, b"x\n")


if __name__ == "__main__":
    harness.main()
