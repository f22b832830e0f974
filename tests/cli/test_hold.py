"""reserve and ready: messages held while somebody decides (field case R10)."""
import os, re, signal, subprocess, time

import command
import harness
from harness import BUILD, CLI, ROOT, SLOW, cli


class Hold(command.Case):
    def start(self, *args):
        return super().start(*args, stdin=subprocess.PIPE)

    def reserved(self, *args):
        p = self.start("reserve", "jobs", *args)
        self.assertRegex(p.stdout.readline(), rb"\A[0-9a-f]{24}\n\Z")
        return p

    def test_prints_delivery_then_payload(self):
        self.z("put", "jobs", stdin=b"a\0\nb")
        got = self.z("reserve", "jobs", stdin=b"ack\n")
        self.assertEqual((got.returncode, got.stderr), (0, b""))
        delivery, payload = got.stdout.split(b"\n", 1)
        self.assertRegex(delivery, rb"\A[0-9a-f]{24}\Z")
        self.assertEqual(payload, b"a\0\nb\n")
        self.assertEqual((self.stat()["depth"], self.stat()["leased"]), (0, 0))

    def test_answers(self):
        for options, answer, left in (
                ((), b"ack\n", 0), ((), b"ack", 0), ((), b"ack\r\n", 0), ((), b" \n\nack  \n", 0),
                ((), b"nack\n", 1), ((), b"nack", 1), ((), b"", 1), (("--ack",), b"", 0),
                (("--ack",), b"nack\n", 1), ((), b"what?\nack\n", 0), ((), b"what?\n", 1),
                ((), b"acknowledge\n", 1), ((), b"ack" + b" " * 10000 + b"\n", 1),
                ((), b"x" * 100000 + b"\nack\nnack\n", 0)):
            with self.subTest(answer[:20], options=options):
                self.z("put", "jobs", "job")
                got = self.z("reserve", "jobs", *options, stdin=answer)
                self.assertEqual(got.returncode, 0, got.stderr)
                self.assertEqual((self.stat()["depth"], self.stat()["leased"]), (left, 0))
                self.assertEqual(b"hint" in got.stderr,
                                 any(w in answer for w in (b"what", b"know", b"   ", b"xx")))
                self.z("take", "jobs", "--wait", "0")

    def test_a_shell_works_on_a_job(self):
        """The example of zmqcat(1), word for word."""
        with open(os.path.join(ROOT, "docs/man/zmqcat.1")) as f:
            example = re.search(r"^coproc.*?(?=^\.Ed)", f.read(), re.M | re.S)[0]
        script = "work() { read -r n && cat >/dev/null && return $n; }\n" + example
        for status, left in ((0, 0), (1, 1)):
            self.z("put", "jobs", stdin=b"%d\nand more" % status)
            env = dict(os.environ, PATH=BUILD + ":" + os.environ["PATH"],
                       ZMQCAT_LISTEN=self.bus.listen)
            got = subprocess.run(["bash", "-c", script], capture_output=True, env=env,
                                 stdin=subprocess.DEVNULL, timeout=20 * SLOW)
            self.assertEqual((got.returncode, got.stdout, got.stderr), (0, b"", b""))
            self.assertEqual((self.stat()["depth"], self.stat()["leased"]), (left, 0))

    def test_answers_are_read_while_they_come(self):
        self.z("put", "jobs", "job")
        p = self.reserved()
        for part in (b"a", b"c", b"k"):
            p.stdin.write(part)
            time.sleep(0.05)
            self.assertIsNone(p.poll())
        p.stdin.write(b"\n")
        self.assertEqual(p.wait(10 * SLOW), 0)
        self.assertEqual(self.stat()["depth"], 0)

    def test_lease_is_extended_while_input_is_open(self):
        self.z("put", "jobs", "job")
        p = self.reserved("--lease", "2s")
        end = time.monotonic() + 5
        while time.monotonic() < end:
            now = self.stat()
            self.assertEqual((now["depth"], now["leased"]), (0, 1))
            time.sleep(0.1)
        p.stdin.write(b"ack\n")
        self.assertEqual(p.wait(10 * SLOW), 0, p.stderr.read())
        self.assertEqual((self.stat()["depth"], self.stat()["redelivered"]), (0, 0))

    def test_lease_is_extended_while_the_reader_is_slow(self):
        self.z("put", "jobs", stdin=b"x" * 300000)
        p = self.start("reserve", "jobs", "--lease", "2s")
        harness.wait_for(lambda: self.stat()["leased"] == 1)
        end = time.monotonic() + 5
        while time.monotonic() < end:
            self.assertEqual(self.stat()["leased"], 1)
            time.sleep(0.1)
        size = 0
        while size < 300000 + 26:
            size += len(p.stdout.read(65536))
        p.stdin.write(b"ack\n")
        self.assertEqual(p.wait(10 * SLOW), 0)
        self.assertEqual((self.stat()["depth"], self.stat()["redelivered"]), (0, 0))

    def test_heartbeats_are_answered_while_holding(self):
        bus = self.hub("--heartbeat", "100ms", "--trace")
        cli("put", "jobs", "job", listen=bus.listen)
        p = subprocess.Popen([CLI, "reserve", "jobs", "-l", bus.listen, "--lease", "300s"],
                             bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        p.stdout.readline()
        # The hub would not end a session that holds a lease: its trace shows the answers.
        harness.wait_for(lambda: bus.logged().count(" in op=pong ") >= 5)
        p.stdin.write(b"ack\n")
        self.assertEqual(p.wait(10 * SLOW), 0)
        p.stdin.close()
        p.stdout.close()

    def test_killed_gives_back(self):
        for sig in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL):
            self.z("put", "jobs", "job")
            p = self.reserved()
            p.send_signal(sig)
            p.wait(10)
            self.assertEqual(self.z("take", "jobs", "--wait", "5").stdout, b"job\n")

    def test_hub_stop_is_told(self):
        self.z("put", "jobs", "job")
        p = self.reserved()
        self.bus.stop()
        self.assertEqual(p.wait(10 * SLOW), 1)
        err = p.stderr.read()
        self.assertIn(b"closed", err)
        self.assertIn(b"goes back", err)

    def test_a_lost_lease_is_told(self):
        self.z("put", "jobs", "job")
        p = self.reserved("--lease", "1s")
        p.send_signal(signal.SIGSTOP)
        self.assertEqual(self.z("take", "jobs", "--wait", "10").stdout, b"job\n")
        p.send_signal(signal.SIGCONT)
        self.assertEqual(p.wait(10 * SLOW), 1)
        err = p.stderr.read()
        self.assertIn(b"mailbox: delivery not found", err)

    def test_wait(self):
        began = time.monotonic()
        got = self.z("reserve", "jobs", "--wait", "200ms", stdin=b"ack\n")
        self.assertEqual((got.returncode, got.stdout), (3, b""))
        self.assertGreater(time.monotonic() - began, 0.19)

    def test_unprinted_message_goes_back(self):
        self.z("put", "jobs", "job")
        with open("/dev/full", "wb") as full:
            for verb in ("reserve", "ready"):
                got = subprocess.run([CLI, verb, "jobs", "--ack", "-l", self.bus.listen],
                                     stdin=subprocess.DEVNULL, stdout=full,
                                     stderr=subprocess.PIPE, timeout=20)
                self.assertEqual(got.returncode, 1)
                self.assertIn(b"No space", got.stderr)
                self.assertEqual((self.stat()["depth"], self.stat()["leased"]), (1, 0))

    def test_r10_ready_gives_the_job_back_unless_ack(self):
        self.z("put", "svc", "job")
        got = self.z("ready", "svc")
        self.assertEqual((got.returncode, got.stdout, got.stderr), (0, b"job\n", b""))
        self.assertEqual(self.stat("svc")["depth"], 1)
        got = self.z("ready", "svc", "--ack")
        self.assertEqual((got.returncode, got.stdout), (0, b"job\n"))
        self.assertEqual((self.stat("svc")["depth"], self.stat("svc")["leased"]), (0, 0))
        self.assertEqual(self.z("ready", "svc", "--wait", "0").returncode, 3)

    def test_the_oldest_comes_first_again_after_nack(self):
        self.z("put", "jobs", "1")
        self.z("put", "jobs", "2")
        self.z("reserve", "jobs", stdin=b"nack\n")
        self.assertEqual(self.z("take", "jobs", "--count", "2").stdout, b"1\n2\n")


if __name__ == "__main__":
    harness.main()
