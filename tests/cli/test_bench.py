"""bench: what it prints, and that it leaves nothing behind."""
import json, signal, time

import command
import harness
from harness import SLOW, cli, wait_for

ROWS = ["put", "pipelined", "take", "work", "pub", "req"]


class Bench(command.Case):
    def left(self, bus=None):
        """What is in the hub, beside what was there before."""
        wait_for(lambda: (bus or self.bus).status()["sessions"] == 0)
        status = (bus or self.bus).status()
        return {k: status[k] for k in ("mailboxes", "queued", "leased", "delayed", "waiting")}

    def test_rows_and_their_numbers(self):
        self.z("put", "jobs", "mine")
        before = self.left()
        got = self.z("bench", "--count", "200", "--json", "--size", "1k")
        self.assertEqual((got.returncode, got.stderr), (0, b""))
        rows = [json.loads(line) for line in got.stdout.splitlines()]
        self.assertEqual([r["row"] for r in rows], ROWS)
        for r in rows:
            self.assertEqual((r["count"], r["size"]), (200, 1024))
            self.assertAlmostEqual(r["per_second"] * r["seconds"], 200, delta=1)
            if r["row"] != "pipelined":
                self.assertLessEqual(r["p50_us"], r["p99_us"])
                self.assertLessEqual(r["p99_us"], r["max_us"])
                self.assertLessEqual(r["max_us"] / 1e6, r["seconds"] + 1e-3)
        self.assertEqual(self.left(), before)
        self.assertEqual(self.z("take", "jobs").stdout, b"mine\n")
        wait_for(lambda: self.bus.status()["topics"] == 0)

    def test_table(self):
        got = self.z("bench", "--count", "20", "take", "put")
        lines = got.stdout.decode().splitlines()
        self.assertRegex(lines[0], r"\A +a second +p50 us +p99 us +max us\Z")
        self.assertRegex(lines[1], r"\Aput( +\d+){4}   put, each answered before the next\Z")
        self.assertRegex(lines[2], r"\Atake( +\d+){4}   take\Z")
        self.assertEqual(len(lines), 3)

    def test_a_row_ends_after_two_seconds(self):
        got = self.z("bench", "put", "--json")
        row = json.loads(got.stdout)
        self.assertGreaterEqual(row["seconds"], 2)
        self.assertLess(row["seconds"], 2 + 2 * SLOW)

    def test_small_limits_of_the_hub(self):
        bus = self.hub("--mailbox-cap", "3", durable=True)
        got = cli("bench", "--count", "20", "--json", listen=bus.listen)
        self.assertEqual((got.returncode, got.stderr, got.stdout.count(b"\n")), (0, b"", 6))
        self.assertEqual(set(self.left(bus).values()), {0})
        bus = self.hub("--max-payload", "10")
        got = cli("bench", "--count", "20", listen=bus.listen)
        self.assertEqual(got.returncode, 1)
        self.assertIn(b"payload too large", got.stderr)

    def test_interrupted_it_cleans_up(self):
        for row in ("put", "take", "req"):
            for sig in (signal.SIGINT, signal.SIGTERM):
                p = self.start("bench", row, "--count", "10000000")
                wait_for(lambda: self.bus.status()["puts"] > 100)
                time.sleep(0.3)
                p.send_signal(sig)
                self.assertEqual(p.wait(10 * SLOW), -sig)
                self.assertEqual(set(self.left().values()), {0})

    def test_the_hub_goes_away(self):
        for row in ("req", "pub"):
            p = self.start("bench", row, "--count", "10000000")
            wait_for(lambda: self.bus.status()["sessions"] == 2)
            self.bus.kill()
            out, err = p.communicate(timeout=10 * SLOW)
            self.assertEqual(p.returncode, 1)
            self.assertIn(b"closed", err)
            self.bus.start()

    def test_bad_input(self):
        for args in (("bench", "nonsense"), ("bench", "--size", "2m"), ("bench", "--count", "0"),
                     ("bench", "--jobs", "2")):
            got = self.z(*args)
            self.assertEqual((got.returncode, got.stdout), (2, b""), args)
        self.assertEqual(cli("bench", listen="/nowhere/s").returncode, 1)


if __name__ == "__main__":
    harness.main()
