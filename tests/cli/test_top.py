"""top: a page at a terminal, lines in a pipe, JSON for programs."""
import fcntl, json, os, pty, re, select, signal, struct, termios, time

import command
import harness
from harness import SLOW, cli


class Top(command.Case):
    def test_json_is_the_status_on_each_line(self):
        self.z("put", "jobs", "x")
        got = self.z("top", "--json", "--count", "3", "--interval", "50ms")
        self.assertEqual((got.returncode, got.stderr), (0, b""))
        looks = [json.loads(line) for line in got.stdout.splitlines()]
        self.assertEqual(len(looks), 3)
        one = json.loads(self.z("status", "--json").stdout)
        for look in looks:
            self.assertEqual(list(look), list(one))
            self.assertEqual(look["queued"], 1)

    def test_lines_when_piped(self):
        p = self.start("top", "--interval", "300ms")
        first = p.stdout.readline().decode()
        self.assertRegex(first, r"\A\d\d:\d\d:\d\d sessions=\d mailboxes=0 queued=0 leased=0 "
                                r"delayed=0 waiting=0 puts=0 redelivered=0 dropped=0 "
                                r"draining=no storage.state=memory\n\Z")
        for i in range(3):
            self.z("put", "jobs", "x")
        seen = [p.stdout.readline().decode() for _ in range(12)]
        self.assertIn(" mailboxes=1 queued=3 ", seen[-1])
        self.assertIn(" puts=3 puts/s=0.0 ", seen[-1])
        rates = [float(re.search(r"puts/s=([0-9.]+)", line)[1]) for line in seen]
        self.assertAlmostEqual(sum(rates) * 0.3, 3, delta=1)
        p.stdout.close()
        self.assertEqual((p.wait(10 * SLOW), p.stderr.read()), (0, b""))

    def test_the_hub_goes_and_returns(self):
        p = self.start("top", "--interval", "50ms")
        p.stdout.readline()
        self.bus.kill()
        self.assertRegex(p.stderr.readline(), rb"\Azmqcat: top: .*: waiting until it is back\n\Z")
        time.sleep(0.3)
        while select.select([p.stdout], [], [], 0)[0]:
            os.read(p.stdout.fileno(), 65536)
        self.bus.start()
        self.assertIn(b"storage.state=memory", p.stdout.readline())
        p.terminate()
        self.assertEqual(p.wait(10 * SLOW), -signal.SIGTERM)
        self.assertEqual(p.stderr.read(), b"")

    def page(self, *args, rows=20):
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, 100, 0, 0))
        before = termios.tcgetattr(theirs)
        p = self.start("top", *args, stdin=theirs, stdout=theirs)
        self.addCleanup(os.close, ours)
        self.addCleanup(os.close, theirs)
        return p, ours, theirs, before

    def read(self, fd, pattern):
        seen, end = b"", time.monotonic() + 10 * SLOW
        while not re.search(pattern, seen):
            self.assertLess(time.monotonic(), end, seen)
            if select.select([fd], [], [], 0.1)[0]:
                seen += os.read(fd, 65536)
        return seen

    def test_a_page_at_a_terminal(self):
        p, ours, theirs, before = self.page("--interval", "100ms")
        seen = self.read(ours, rb"storage.state +memory")
        self.assertIn(b"\x1b[?1049h\x1b[?7l\x1b[Hzmqcat top  ", seen)
        self.assertNotEqual(termios.tcgetattr(theirs)[3], before[3])
        self.z("put", "jobs", "x")
        self.read(ours, rb"queued +1 ")
        self.read(ours, rb"puts +1 +[0-9.]+/s")
        self.bus.kill()
        self.read(ours, rb"AWAY: ")
        self.bus.start()
        self.read(ours, rb"q ends\x1b")
        os.write(ours, b"xq")
        self.read(ours, rb"\x1b\[\?7h\x1b\[\?1049l")
        self.assertEqual((p.wait(10 * SLOW), p.stderr.read()), (0, b""))
        self.assertEqual(termios.tcgetattr(theirs), before)

    def test_a_page_says_what_it_has_no_room_for(self):
        every = self.z("status").stdout.count(b"\n")
        for rows in (3, 10, every + 1, every + 2):
            p, ours, theirs, before = self.page(rows=rows)
            seen = self.read(ours, rb"\x1b\[J")
            shown = [line for line in seen.split(b"\r\n")[1:] if re.match(rb"[a-z]", line)]
            more = re.search(rb"\.\.\. and (\d+) more ", seen)
            self.assertEqual(len(shown) + (int(more[1]) if more else 0), every, seen)
            self.assertEqual(more is None, rows >= every + 2)
            self.assertLess(seen.count(b"\r\n"), rows)
            os.write(ours, b"q")
            p.wait(10 * SLOW)

    def test_signals_restore_the_terminal(self):
        for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            p, ours, theirs, before = self.page()
            self.read(ours, rb"uptime")
            p.send_signal(sig)
            self.read(ours, rb"\x1b\[\?7h\x1b\[\?1049l")
            self.assertEqual(p.wait(10 * SLOW), 0)
            self.assertEqual(termios.tcgetattr(theirs), before)

    def test_a_hub_that_hangs_holds_nobody_at_a_page(self):
        for end in ("q", signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(end):
                p, ours, theirs, before = self.page("--interval", "50ms")
                self.read(ours, rb"uptime")
                self.freeze()
                time.sleep(0.3)  # a question is under way
                while select.select([ours], [], [], 0)[0]:
                    os.read(ours, 65536)
                began = time.monotonic()
                if end == "q":
                    os.write(ours, b"xq")
                else:
                    p.send_signal(end)
                self.read(ours, rb"\x1b\[\?7h\x1b\[\?1049l")
                self.assertEqual((p.wait(10 * SLOW), p.stderr.read()), (0, b""))
                self.assertLess(time.monotonic() - began, 1 * SLOW)
                self.assertEqual(termios.tcgetattr(theirs), before)
                self.bus.proc.send_signal(signal.SIGCONT)

    def test_bad_input(self):
        for args in (("--interval", "0"), ("--interval", "x"), ("--count", "0"), ("extra",),
                     ("--wait", "1")):
            got = self.z("top", *args)
            self.assertEqual((got.returncode, got.stdout), (2, b""), args)
        got = cli("top", listen="/nowhere/s")
        self.assertEqual((got.returncode, got.stdout), (1, b""))
        self.assertIn(b"/nowhere/s.ctl", got.stderr)
        self.assertEqual(cli("top", listen="tcp://127.0.0.1:1").returncode, 2)


if __name__ == "__main__":
    harness.main()
