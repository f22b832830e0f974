#!/usr/bin/env python3
"""H9: the log stays small whatever stays in it, nobody waits for that, and no crash costs a
message."""
import os, random, sys, time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
from harness import LONG, SLOW, frame, payload, wait_for


def disk_bytes(hub):
    sizes = []
    for name in os.listdir(hub.mailbox):
        try:
            sizes.append(os.path.getsize(os.path.join(hub.mailbox, name)))
        except FileNotFoundError:
            pass
    return sum(sizes)


def segments(hub):
    return sorted(n for n in os.listdir(hub.mailbox) if n.endswith(".zlog"))


class Load:
    """Pipelined requests of one connection. `took`: the seconds of each 50 puts; `control`: those
    of a write and an fsync of ours on the same disk, each after such puts."""

    def __init__(self, case, hub):
        self.c = case.conn(hub, timeout=20 * SLOW, hello=True)
        self.took, self.control = [], []
        self.file = open(os.path.join(hub.dir, "control"), "wb", buffering=0)
        case.addCleanup(self.file.close)

    def touch_the_disk(self, size):
        began = time.monotonic()
        self.file.write(b"x" * size)
        os.fsync(self.file.fileno())
        self.control.append(time.monotonic() - began)

    def put(self, name, first, n, size=300):
        """Puts first .. first+n-1, waiting for each 50 of them."""
        for at in range(first, first + n, 50):
            ids = ["%d" % i for i in range(at, min(at + 50, first + n))]
            began = time.monotonic()
            self.c.send_raw(b"".join(frame(v=1, op="put", id=i, name=name,
                                           text=i + " " + "x" * size) for i in ids))
            for i in ids:
                got = self.c.recv()
                assert (got["op"], got["id"]) == ("ok", i), got
            self.took.append(time.monotonic() - began)
            self.touch_the_disk(50 * size)

    def reserve(self, name, n):
        """[(number, delivery)] of up to n messages."""
        self.c.send(v=1, op="reserve", id="r", name=name, max=n, wait=0, lease=600)
        found = []
        while True:
            got = self.c.recv()
            if got["op"] == "err":
                return found
            found.append((int(payload(got).split()[0]), got["delivery"]))
            if got.get("end"):
                return found


class H9(harness.Case):
    def test_H9_one_leased_job_pins_nothing(self):
        hub = self.hub("--segment=1m", durable=True)
        load = Load(self, hub)
        load.put("old", 0, 1)
        held = load.reserve("old", 1)
        most = 0
        count = 100000 if LONG else 20000
        for first in range(0, count, 1000):
            load.put("q", first, 1000)
            load.c.send_raw(frame(v=1, op="take", name="q") * 1000)
            for i in range(1000):
                self.assertEqual(int(payload(load.c.recv()).split()[0]), first + i)
            most = max(most, disk_bytes(hub))
        # Four segments and what is being cleaned.
        self.assertLessEqual(most, 8 << 20)
        self.assertGreater(int(segments(hub)[-1].split(".")[0]), count * 400 >> 20)
        # No put takes more than 100 ms, unless the disk and the machine do that to all.
        stalls = [t for t in load.took if t > 0.1 * SLOW]
        others = [t for t in load.control if t > 0.05 * SLOW]
        self.assertLessEqual(len(stalls), 2 + 2 * len(others), (stalls, others))
        self.assertLess(max(load.took), 0.5 * SLOW + 2 * max(load.control))
        self.assertEqual(load.c.call(v=1, op="ack", id="a", delivery=held[0][1])["op"], "ok")
        wait_for(lambda: len(segments(hub)) == 2)
        self.assertEqual(hub.status()["storage"]["state"], "ok")

    def test_H9_nack_cycles_cost_nothing(self):
        hub = self.hub("--segment=64k", durable=True)
        load = Load(self, hub)
        load.put("jobs", 0, 100)
        most = 0
        for cycle in range(2000 if LONG else 300):
            found = load.reserve("jobs", 100)
            self.assertEqual([n for n, _ in found], list(range(100)))
            got = load.c.call(v=1, op="nack", id="n", deliveries=[d for _, d in found])
            self.assertEqual(got["op"], "ok")
            most = max(most, disk_bytes(hub))
        self.assertLessEqual(most, 8 * 65536)
        attempts = 2000 if LONG else 300
        hub.kill()
        hub.start()
        load = Load(self, hub)
        load.c.send(v=1, op="reserve", id="r", name="jobs", max=100, wait=0)
        for i in range(100):
            got = load.c.recv()
            self.assertEqual((int(payload(got).split()[0]), got["attempt"]), (i, attempts + 1))

    def test_kill_during_compaction(self):
        hub = self.hub("--segment=64k", "--mailbox-cap=100000", durable=True)
        rng = random.Random(9)
        moved = 0
        for life in range(60 if LONG else 12):
            name = "bulk%d" % life
            load = Load(self, hub)
            load.put(name, 0, 1500)
            before = segments(hub)
            acked, unsure = set(), set()
            found = load.reserve(name, 1024)
            self.assertEqual(len(found), 1024)
            rng.shuffle(found)
            keep = rng.choice((100, 300, 500))
            batches = [found[i:i + 40] for i in range(0, len(found) - keep, 40)]
            for batch in batches:
                load.c.send(v=1, op="ack", id="a", deliveries=[d for _, d in batch])
                unsure |= {n for n, _ in batch}
            answered = rng.randrange(len(batches) + 1)
            for batch in batches[:answered]:
                self.assertEqual(load.c.recv()["op"], "ok")
                acked |= {n for n, _ in batch}
            time.sleep(rng.choice((0, 0, 0.001, 0.003, 0.01)))
            hub.kill()
            moved += before[0] not in segments(hub)
            hub.start()
            load = Load(self, hub)
            left = []
            while True:
                part = load.reserve(name, 1024)
                left += [n for n, _ in part]
                if not part:
                    break
                got = load.c.call(v=1, op="ack", id="a", deliveries=[d for _, d in part])
                self.assertEqual(got["op"], "ok")
            self.assertEqual(left, sorted(left), "order")
            self.assertEqual(len(left), len(set(left)), "given twice")
            self.assertFalse(set(left) & acked, "came back after an ok to its ack")
            self.assertFalse(set(range(1500)) - set(left) - unsure, "lost")
            self.assertEqual(hub.status()["storage"]["set_aside"], 0)
        self.assertGreater(moved, 0)
        wait_for(lambda: len(segments(hub)) == 2)


if __name__ == "__main__":
    harness.main()
