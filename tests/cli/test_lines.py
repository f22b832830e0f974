"""put --lines: each line a message, many under way, and an exact account when it fails."""
import json, os, pty, re, select, signal, subprocess, time

import command
import harness
from harness import SLOW, cli, tempdir, wait_for


# Told every two seconds.
PROGRESS = rb"zmqcat: put jobs: \d+ lines, \d+ a second\n"


class Lines(command.Case):
    options = ("--mailbox-cap", "5000")

    def bodies(self, name="jobs"):
        got = self.z("take", name, "--count", str(self.stat(name)["depth"]), "--json").stdout
        return [json.loads(line).get("text") for line in got.splitlines()]

    def start(self, *args, **more):
        return super().start("put", "jobs", "--lines", *args,
                             **dict({"stdin": subprocess.PIPE}, **more))

    def test_each_line_is_a_message(self):
        for data, want in ((b"", []), (b"a\n", ["a"]), (b"a\nb", ["a", "b"]), (b"\n\n", ["", ""]),
                           (b"a\r\n\0\n \xc3\xa9 \n", ["a\r", "\0", " \u00e9 "])):
            got = self.z("put", "jobs", "--lines", stdin=data)
            self.assertEqual((got.returncode, got.stdout, got.stderr), (0, b"", b""))
            self.assertEqual([t or "" for t in self.bodies()] if want else [], want)

    def test_many_lines_keep_their_order(self):
        lines = ["line %d %s" % (i, "x" * (i % 300)) for i in range(5000)]
        path = harness.write_file(os.path.join(tempdir(), "f"), "\n".join(lines))
        got = self.z("put", "jobs", "--lines", "--file", path, "-H", "k=v")
        self.assertEqual((got.returncode, got.stdout, got.stderr), (0, b"", b""))
        first = json.loads(self.z("take", "jobs", "--json").stdout)
        self.assertEqual((first["text"], first["headers"]), (lines[0], {"k": "v"}))
        self.assertEqual(self.bodies(), lines[1:])

    def test_lines_of_a_megabyte(self):
        got = self.z("put", "jobs", "--lines", stdin=(b"x" * 1048576 + b"\n") * 20)
        self.assertEqual((got.returncode, re.sub(PROGRESS, b"", got.stderr)), (0, b""))
        self.assertEqual((self.stat()["depth"], self.stat()["bytes"]), (20, 20 << 20))

    def test_a_full_mailbox_tells_what_was_accepted(self):
        bus = self.hub("--mailbox-cap", "100")
        data = b"".join(b"%d\n" % i for i in range(1, 1001))
        got = cli("put", "jobs", "--lines", "--json", stdin=data, listen=bus.listen)
        self.assertEqual(got.returncode, 4)
        err = got.stderr.decode()
        self.assertIn("zmqcat: put jobs: mailbox: queue full\n", err)
        last = int(re.search(r"lines: accepted 1-100, refused 101-(\d+); "
                             r"not sent: from line (\d+) on", err)[1])
        self.assertLessEqual(last, 100 + 256)
        self.assertIn("(tail -n +101)", err)
        self.assertEqual(json.loads(got.stdout), {
            "accepted": 100, "sent": last,
            "lines": [{"first": 1, "last": 100, "fate": "accepted"},
                      {"first": 101, "last": last, "fate": "refused"}]})

    def test_a_payload_that_is_too_large(self):
        bus = self.hub("--max-payload", "10")
        got = cli("put", "jobs", "--lines", stdin=b"a\nb\n" + b"x" * 11 + b"\nc\n",
                  listen=bus.listen)
        self.assertEqual(got.returncode, 1)
        self.assertIn(b"lines: accepted 1-2, refused 3", got.stderr)
        got = self.z("put", "jobs", "--lines", stdin=b"a\n" + b"x" * 3000000)
        self.assertEqual(got.returncode, 1)
        self.assertIn(b"line 2: payload too large", got.stderr)
        self.assertIn(b"lines: accepted 1; not sent: from line 2 on", got.stderr)
        self.assertEqual(self.bodies(), ["a"])
        # What fits the hub's frame no more, but was read.
        got = self.z("put", "jobs", "--lines", stdin=b"a\n" + b"x" * 1800000 + b"\nb\n")
        self.assertEqual(got.returncode, 1)
        self.assertIn(b"lines: accepted 1; not sent: from line 2 on", got.stderr)

    def test_the_hub_goes_away_midway(self):
        for sig in (signal.SIGKILL, signal.SIGTERM):
            bus = self.hub(durable=True)
            p = self.start("--json", bus=bus)
            p.stdin.write(b"".join(b"%d\n" % i for i in range(1, 501)))
            raw = self.conn(bus)
            wait_for(lambda: raw.call(op="stat", id="s", name="jobs")["result"]["depth"] == 500)
            if sig == signal.SIGKILL:
                bus.proc.send_signal(signal.SIGSTOP)
                p.stdin.write(b"lost\n" * 10)
                time.sleep(0.2)
            bus.kill(sig)
            self.assertEqual(p.wait(10 * SLOW), 1)
            got = json.loads(p.stdout.read())
            self.assertEqual((got["accepted"], got["lines"][0]),
                             (500, {"first": 1, "last": 500, "fate": "accepted"}))
            if sig == signal.SIGKILL:
                self.assertEqual(got["lines"][1:], [{"first": 501, "last": 510, "fate": "unknown"}])
            self.assertIn(b"the hub closed the connection", p.stderr.read())
            bus.start()
            count = self.conn(bus).call(op="stat", id="s", name="jobs")["result"]["depth"]
            self.assertEqual(count, 500)

    def test_a_line_is_sent_at_once_and_a_slow_writer_stays_connected(self):
        bus = self.hub("--heartbeat", "100ms")
        p = self.start(bus=bus)
        raw = self.conn(bus)
        for i in (1, 2):
            p.stdin.write(b"line\n")
            wait_for(lambda: raw.call(op="stat", id="s", name="jobs")["result"]["depth"] == i)
            time.sleep(0.8)
        p.stdin.close()
        self.assertEqual((p.wait(10 * SLOW), p.stderr.read()), (0, b""))

    def test_a_signal_ends_it_with_the_report(self):
        for sig in (signal.SIGINT, signal.SIGTERM):
            p = self.start("--json")
            p.stdin.write(b"a\nb\nunfinished")
            wait_for(lambda: self.stat()["depth"] == 2)
            p.send_signal(sig)
            self.assertEqual(p.wait(10 * SLOW), -sig)
            self.assertIn(b"lines: accepted 1-2; not sent: from line 3 on", p.stderr.read())
            self.assertEqual(json.loads(p.stdout.read())["accepted"], 2)
            self.assertEqual(self.bodies(), ["a", "b"])

    def test_the_window_is_bounded(self):
        """A hub that stands still has been sent 256 lines, however many there are."""
        for size in (1, 2000):
            bus = self.hub()
            path = harness.write_file(os.path.join(tempdir(), "f"), (b"x" * size + b"\n") * 20000)
            fifo = os.path.join(tempdir(), "fifo")
            os.mkfifo(fifo)
            p = self.start("--json", "--file", fifo, bus=bus)
            with open(fifo, "wb") as out:
                out.write(b"first\n")
                out.flush()
                raw = self.conn(bus)
                wait_for(lambda: raw.call(op="stat", id="s", name="jobs")["result"]["depth"] == 1)
                bus.proc.send_signal(signal.SIGSTOP)
                with open(path, "rb") as data:
                    rest = subprocess.Popen(["cat"], stdin=data, stdout=out)
            time.sleep(1)
            bus.kill()
            self.assertEqual(p.wait(10 * SLOW), 1)
            rest.wait()
            got = json.loads(p.stdout.read())
            self.assertEqual(got["accepted"], 1)
            self.assertLessEqual(got["sent"], 257)
            self.assertEqual(got["lines"][1]["fate"], "unknown")

    def test_progress_when_piped_is_plain_lines(self):
        p = self.start()
        end = time.monotonic() + 3
        while time.monotonic() < end:
            p.stdin.write(b"x\n")
            time.sleep(0.05)
        p.stdin.close()
        self.assertEqual(p.wait(10 * SLOW), 0)
        self.assertRegex(p.stderr.read(), rb"\A(%b)+\Z" % PROGRESS)

    def test_progress_at_a_terminal_is_a_bar(self):
        data = b"some line\n" * 4000
        path = harness.write_file(os.path.join(tempdir(), "f"), data)
        ours, theirs = pty.openpty()
        self.addCleanup(os.close, ours)
        # A hub that stands still for a moment, so that there is something to show.
        self.bus.proc.send_signal(signal.SIGSTOP)
        p = self.start("--file", path, stderr=theirs)
        os.close(theirs)
        time.sleep(0.5)
        self.bus.proc.send_signal(signal.SIGCONT)
        seen = b""
        while p.poll() is None or select.select([ours], [], [], 0.1)[0]:
            if select.select([ours], [], [], 0.1)[0]:
                try:
                    seen += os.read(ours, 4096)
                except OSError:
                    break
        self.assertEqual(p.wait(10 * SLOW), 0)
        self.assertRegex(seen, rb"\r\[=*>? *\] +\d+%  \d+ lines, \d+ a second")
        self.assertRegex(seen, rb"\[=+\] 100%  4000 lines, \d+ a second\x1b\[K\r?\n\Z")

    def test_bad_input(self):
        for args in (("put", "jobs", "text", "--lines"), ("put", "jobs", "--lines", "--id", "a"),
                     ("put", "jobs", "--json"), ("pub", "jobs", "--lines"), ("put", "--lines")):
            got = self.z(*args, stdin=b"a\n")
            self.assertEqual((got.returncode, got.stdout), (2, b""), args)
        got = self.z("put", "jobs", "--lines", "--file", "/does/not/exist")
        self.assertEqual(got.returncode, 1)
        self.assertIn(b"/does/not/exist: No such file", got.stderr)
        got = self.z("put", "jobs", "--lines", "--file", "/tmp")
        self.assertEqual(got.returncode, 1)
        got = self.z("put", "", "--lines", stdin=b"a\n")
        self.assertEqual(got.returncode, 1)
        self.assertIn(b"refused 1", got.stderr)
        self.assertEqual(self.z("put", "jobs", "--lines").returncode, 0)


if __name__ == "__main__":
    harness.main()
