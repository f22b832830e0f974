"""take --follow: goes on until the hub or the reader stops; takes nothing that it cannot write."""
import json, signal, subprocess, time

import command
import harness
from harness import CLI, SLOW, cli, wait_for


class Follow(command.Case):
    def start(self, *args):
        return super().start("take", "jobs", "--follow", *args)

    def test_each_message_is_written_at_once(self):
        p = self.start()
        for text in ("one", "two\n", "three"):
            self.raw.put("jobs", text)
            self.assertEqual(p.stdout.readline(), text.strip().encode() + b"\n")
        p.terminate()
        self.assertEqual(p.wait(10 * SLOW), -signal.SIGTERM)

    def test_formats(self):
        self.raw.put("jobs", "a")
        p = self.start("--json", "--count", "1")
        self.assertEqual(p.wait(10 * SLOW), 0)
        self.assertEqual(json.loads(p.stdout.read())["text"], "a")
        for text in "ab":
            self.raw.put("jobs", text)
        p = self.start("--raw", "--count", "2")
        self.assertEqual((p.wait(10 * SLOW), p.stdout.read()), (0, b"ab"))

    def test_the_end_of_the_hub(self):
        for sig in (signal.SIGTERM, signal.SIGKILL):
            p = self.start()
            wait_for(lambda: self.stat()["waiting"] == 1)
            self.bus.restart(sig)
            self.assertEqual(p.wait(10 * SLOW), 1)
            self.assertIn(b"closed", p.stderr.read())
            self.raw = self.conn(self.bus)

    def test_when_the_reader_has_gone_nothing_more_is_taken(self):
        p = self.start()
        wait_for(lambda: self.stat()["waiting"] == 1)
        p.stdout.close()
        self.assertEqual((p.wait(10 * SLOW), p.stderr.read()), (0, b""))
        self.raw.put("jobs", "kept")
        self.assertEqual(self.stat()["depth"], 1)

    def test_what_was_taken_is_written_before_a_signal_ends_it(self):
        for i in range(30):
            name, sig = "q%d" % i, (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)[i % 3]
            p = subprocess.Popen([CLI, "take", name, "--follow", "-l", self.bus.listen],
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
            self.addCleanup(p.stdout.close)
            self.addCleanup(p.kill)
            wait_for(lambda: self.stat(name)["waiting"] == 1)
            puts = harness.frame(op="put", name=name, text="x") * 100
            self.raw.send_raw(puts)
            time.sleep(i / 5000)
            p.send_signal(sig)
            written = p.stdout.read().count(b"x\n")
            self.assertEqual(p.wait(10 * SLOW), -sig)
            for _ in range(100):
                self.assertEqual(self.raw.recv()["op"], "ok")
            wait_for(lambda: self.stat(name)["waiting"] == 0)
            self.assertEqual(written + self.stat(name)["depth"], 100, (i, written))

    def test_a_signal_ends_it_also_when_the_hub_hangs(self):
        bus = harness.Hub()
        self.addCleanup(bus.__exit__)
        self.bus = bus
        self.raw = self.conn(bus)
        p, q = self.start(), self.start()
        wait_for(lambda: self.stat()["waiting"] == 2)
        self.freeze()
        p.terminate()
        q.send_signal(signal.SIGINT)
        time.sleep(0.2)
        self.assertIsNone(q.poll())
        q.send_signal(signal.SIGINT)
        self.assertEqual(q.wait(2 * SLOW), -signal.SIGINT)
        self.assertEqual(p.wait(10 * SLOW), -signal.SIGTERM)

    def test_wait(self):
        self.raw.put("jobs", "a")
        p = self.start("--wait", "300ms")
        self.assertEqual((p.wait(10 * SLOW), p.stdout.read()), (3, b"a\n"))
        self.assertIn(b"mailbox: empty", p.stderr.read())
        p = self.start("--wait", "0")
        self.assertEqual(p.wait(10 * SLOW), 3)

    def test_heartbeats_are_answered(self):
        self.bus = self.hub("--heartbeat", "100ms")
        p = self.start()
        time.sleep(2)
        cli("put", "jobs", "late", listen=self.bus.listen)
        self.assertEqual(p.stdout.readline(), b"late\n")


if __name__ == "__main__":
    harness.main()
