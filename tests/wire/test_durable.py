#!/usr/bin/env python3
# tunnelled
"""The durable mailboxes through the socket: crashes, restarts, stops, and who owns a directory."""
import os, random, signal, sys, threading, time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
from harness import SLOW, Closed, Conn, frame, payload, together, wait_for


def log_files(hub):
    return sorted(os.path.join(hub.mailbox, n) for n in os.listdir(hub.mailbox)
                  if n.endswith(".zlog"))


class Load:
    """Producers and consumers that remember what they were told, across crashes of the hub.

    `taken` is emptied by take, `work` by one reserve at a time and ack, `pool` by two workers that
    sometimes nack or leave. A message is `<producer>-<number>`.
    """

    def __init__(self, hub, seed):
        self.hub, self.rng = hub, random.Random(seed)
        self.stop = threading.Event()
        self.lock = threading.Lock()
        self.acknowledged = {"taken": [], "work": [], "pool": []}  # puts answered ok
        self.received = {"taken": [], "work": [], "pool": []}  # in order of arrival
        self.done = {"taken": set(), "work": set(), "pool": set()}  # taken, or ack answered ok
        self.unsure = set()  # acks that were sent and not answered
        self.again = []  # deliveries after done
        self.takes_lost_at_most = 0

    def session(self, work):
        """Runs work(connection) on ever new connections until stop."""
        while not self.stop.is_set():
            try:
                c = self.hub.connect(timeout=5)
            except OSError:
                time.sleep(0.01)
                continue
            try:
                while not self.stop.is_set():
                    work(c)
            except (Closed, OSError):
                pass
            finally:
                c.close()

    def producer(self, who, seed):
        rng, number = random.Random(seed), [0]

        def work(c):
            name = rng.choice(("taken", "work", "pool"))
            text = "%d-%d" % (who, number[0])
            number[0] += 1
            got = c.put(name, text + " " + "x" * rng.choice((0, 10, 300, 5000)), id=text)
            if got["op"] == "ok":
                with self.lock:
                    self.acknowledged[name].append(text)
            else:
                assert got["code"] in ("full", "closed"), got
                time.sleep(0.01)
        return lambda: self.session(work)

    def got(self, name, msg):
        text = payload(msg).decode().split()[0]
        with self.lock:
            if text in self.done[name]:
                self.again.append((name, text))
            self.received[name].append(text)
        return text

    def taker(self):
        def work(c):
            with self.lock:
                self.takes_lost_at_most += 1
            got = c.call(v=1, op="take", name="taken", wait=0.2)
            with self.lock:
                self.takes_lost_at_most -= 1
            if got["op"] == "msg":
                text = self.got("taken", got)
                with self.lock:
                    self.done["taken"].add(text)
        return lambda: self.session(work)

    def worker(self, name, seed, tidy):
        rng = random.Random(seed)

        def work(c):
            got = c.call(v=1, op="reserve", name=name, wait=0.2, lease=60)
            if got["op"] != "msg":
                return
            text = self.got(name, got)
            if not tidy and rng.random() < 0.2:
                if rng.random() < 0.3:
                    raise Closed
                c.call(v=1, op="nack", delivery=got["delivery"])
                return
            with self.lock:
                self.unsure.add(text)
            if c.call(v=1, op="ack", delivery=got["delivery"])["op"] == "ok":
                with self.lock:
                    self.done[name].add(text)
                    self.unsure.discard(text)
        return lambda: self.session(work)

    def crash(self, rounds):
        try:
            for _ in range(rounds):
                time.sleep(self.rng.uniform(0.02, 0.4))
                self.hub.kill(signal.SIGKILL)
                self.hub.start()
                if self.rng.random() < 0.85:  # else it may be killed while it recovers
                    c = self.hub.connect(timeout=20)
                    c.sync()
                    c.close()
        finally:
            self.stop.set()


class Crashes(harness.Case):
    def test_kill_9_with_producers_and_consumers(self):
        seed = int(os.environ.get("ZMQCAT_TEST_SEED", "1"))
        hub = self.hub("--segment", "64k", durable=True)
        load = Load(hub, seed)
        together(*([load.producer(n, seed * 100 + n) for n in range(3)]
                   + [load.taker(), load.worker("work", seed + 1, True),
                      load.worker("pool", seed + 2, False), load.worker("pool", seed + 3, False)]
                   + [lambda: load.crash(60 if harness.LONG else 7)]))
        hub.restart(signal.SIGKILL)
        c = self.conn(hub)
        for name in load.received:
            while True:
                got = c.call(v=1, op="take", name=name, wait=0)
                if got["op"] == "err":
                    self.assertErr(got, "empty")
                    break
                load.got(name, got)
        why = "seed %d" % seed
        if os.environ.get("ZMQCAT_TEST_VERBOSE"):
            print(why, {k: len(v) for k, v in load.acknowledged.items()},
                  {k: len(v) for k, v in load.received.items()}, load.takes_lost_at_most)
        self.assertEqual(load.again, [], why)
        self.assertGreater(sum(map(len, load.acknowledged.values())), 50, why)
        for name, put in load.acknowledged.items():
            missing = sorted(set(put) - set(load.received[name]))
            if name == "taken":  # a take on its way at a crash may take one with it
                self.assertLessEqual(len(missing), load.takes_lost_at_most, (why, missing))
                self.assertEqual(len(load.received[name]), len(set(load.received[name])), why)
            else:
                self.assertEqual(missing, [], (why, name))
        for name in ("taken", "work"):  # order, a producer at a time
            last = {}
            for text in load.received[name]:
                who, number = map(int, text.split("-"))
                self.assertGreaterEqual(number, last.get(who, -1), (why, name, text))
                last[who] = number

    def test_a_crash_in_the_middle_of_segments(self):
        """Deleted, half empty and fresh segments: what is left comes back in order."""
        hub = self.hub("--segment", "64k", "--mailbox-cap", "100000", durable=True)
        c, rng, left = self.conn(hub), random.Random(7), []
        for n in range(1500):
            text = "%d " % n + "x" * rng.randint(0, 1500)
            c.put("q", text)
            left.append(text)
            if len(left) > 5 and rng.random() < 0.8:
                self.assertEqual(payload(c.call(v=1, op="take", name="q")).decode(), left.pop(0))
        self.assertLess(len(log_files(hub)) << 16, 2 * sum(map(len, left)) + (8 << 20))
        hub.restart(signal.SIGKILL)
        c = self.conn(hub)
        self.assertEqual([payload(c.call(v=1, op="take", name="q", wait=2)).decode()
                          for _ in left], left)
        self.assertErr(c.call(v=1, op="take", name="q", wait=0), "empty")

    def test_consumed_segments_are_deleted(self):
        hub = self.hub("--segment", "64k", durable=True)
        c = self.conn(hub)
        for n in range(150):  # 3 MB through it
            c.put("q", "x" * 20000)
            c.call(v=1, op="take", name="q")
        wait_for(lambda: sum(map(os.path.getsize, log_files(hub))) <= 5 << 16)
        self.assertLessEqual(hub.status()["storage"]["bytes"], 5 << 16)

    def test_a_torn_tail_costs_the_torn_record_only(self):
        hub = self.hub("--segment", "64k", durable=True)
        c = self.conn(hub)
        for n in range(10):
            c.put("q", "message-%d" % n + "y" * 100)
        hub.kill()
        # Payload bytes lie in the log as they are: find the last one and cut it in its middle.
        found = []
        for path in log_files(hub):
            with open(path, "rb") as f:
                data = f.read()
            found += [(path, data.index(b"message-%d" % n)) for n in range(10)
                      if b"message-%d" % n in data]
        self.assertEqual(len(found), 10)
        path, at = found[-1]
        with open(path, "r+b") as f:
            f.seek(at + 50)
            f.write(b"\0" * 1000)
        hub.start()
        c = self.conn(hub)
        for n in range(9):
            self.assertTrue(payload(c.call(v=1, op="take", name="q", wait=2))
                            .startswith(b"message-%d" % n))
        self.assertErr(c.call(v=1, op="take", name="q", wait=0), "empty")
        self.assertEqual(c.put("q", "goes on")["op"], "ok")

    def test_weaker_fsync_still_survives_kill_9(self):
        for mode in ("batch", "never"):
            hub = self.hub("--fsync", mode, durable=True)
            c = self.conn(hub)
            for n in range(20):
                self.assertEqual(c.put("q", "m%d" % n)["op"], "ok")
            time.sleep(0.3)
            hub.restart(signal.SIGKILL)
            c = self.conn(hub)
            self.assertEqual([payload(c.call(v=1, op="take", name="q", wait=2))
                              for _ in range(20)], [b"m%d" % n for n in range(20)])


class Restarts(harness.Case):
    def test_order_ids_headers_from_by_at_and_attempt(self):
        for sig in (signal.SIGTERM, signal.SIGKILL):
            hub = self.hub(durable=True)
            a, b, w = self.conn(hub), self.conn(hub), self.conn(hub)
            headers = {"z": "1", "a": "é\n"}
            for n in range(5):
                c = (a, b)[n % 2]
                c.call(v=1, op="put", id="i%d" % n, name="q", text="m%d" % n, headers=headers,
                       **{"from": "me%d" % n})
            a.call(v=1, op="put", name="q", body="/wA=")
            a.put("q", "")
            before = []
            for _ in range(7):
                before.append(w.call(v=1, op="ready", name="q"))
            w.close()
            hub.restart(sig)
            c = self.conn(hub)
            for n, old in enumerate(before):
                got = c.call(v=1, op="take", name="q", wait=2)
                for key in ("id", "name", "from", "text", "body", "headers", "at", "by"):
                    self.assertEqual(got.get(key), old.get(key), key)
                self.assertEqual(got["attempt"], 2)
            self.assertErr(c.call(v=1, op="take", name="q", wait=0), "empty")

    def test_session_numbers_never_come_again(self):
        hub = self.hub(durable=True)
        seen = set()
        for sig in (signal.SIGTERM, signal.SIGKILL, signal.SIGTERM, signal.SIGKILL):
            for _ in range(3):
                c = self.conn(hub)
                c.put("q", "x", id="1")
                got = c.call(v=1, op="take", name="q")
                self.assertNotIn(got["id"], seen)
                seen.add(got["id"])
            hub.restart(sig)

    def test_ttl_and_delay_go_on_across_a_restart(self):
        hub = self.hub(durable=True)
        c = self.conn(hub)
        start = time.time()
        c.put("q", "ends soon", ttl=0.6)
        c.put("q", "late", delay=1.2)
        c.put("q", "stays", ttl=1000)
        c.put("q", "much later", delay=1000)
        hub.restart(signal.SIGKILL)
        c = self.conn(hub)
        stat = c.call(v=1, op="stat", name="q")["result"]
        self.assertEqual(stat["delayed"], 2)
        wait_for(lambda: time.time() > start + 0.7)
        self.assertEqual(payload(c.call(v=1, op="take", name="q", wait=2)), b"stays")
        self.assertEqual(payload(c.call(v=1, op="take", name="q", wait=20)), b"late")
        self.assertTrue(1.1 <= time.time() - start < 3 * SLOW)
        self.assertErr(c.call(v=1, op="take", name="q", wait=0), "empty")

    def test_a_delayed_nack_is_kept(self):
        hub = self.hub(durable=True)
        c = self.conn(hub)
        c.put("q", "x")
        got = c.call(v=1, op="reserve", name="q")
        c.call(v=1, op="nack", delivery=got["delivery"], delay=1000)
        c.put("q", "y")
        hub.restart()
        c = self.conn(hub)
        self.assertEqual(payload(c.call(v=1, op="take", name="q", wait=2)), b"y")
        stat = c.call(v=1, op="stat", name="q")["result"]
        self.assertEqual((stat["depth"], stat["delayed"]), (0, 1))

    def test_sigterm_while_it_recovers_is_a_clean_end_too(self):
        hub = self.hub(durable=True)
        c = self.conn(hub)
        c.send_raw(b"".join(frame(op="put", name="q", text="x" * 1000) for _ in range(1000)))
        for _ in range(1000):
            self.assertEqual(c.recv()["op"], "ok")
        hub.stop()
        for n in range(8):
            hub.start()
            time.sleep(0.002 * n)
            self.assertEqual(hub.stop(), 0, hub.logged()[-2000:])
        hub.start()
        c = self.conn(hub)
        c.sync()
        self.assertEqual(c.call(v=1, op="stat", name="q")["result"]["depth"], 1000)

    def test_an_acked_batch_stays_acked(self):
        hub = self.hub(durable=True)
        c = self.conn(hub)
        for n in range(100):
            c.put("q", str(n))
        c.send(v=1, op="reserve", name="q", max=100)
        held = [c.recv()["delivery"] for _ in range(100)]
        self.assertEqual(c.call(v=1, op="ack", deliveries=held[::2])["op"], "ok")
        hub.restart(signal.SIGKILL)
        c = self.conn(hub)
        self.assertEqual([int(payload(c.call(v=1, op="take", name="q", wait=2)))
                          for _ in range(50)], list(range(1, 100, 2)))
        self.assertErr(c.call(v=1, op="take", name="q", wait=0), "empty")

    def test_a_request_is_kept_and_its_answer_has_nowhere_to_go(self):
        hub = self.hub(durable=True)
        c = self.conn(hub)
        c.send(v=1, op="req", id="1", name="svc", text="job")
        wait_for(lambda: self.conn(hub).call(v=1, op="stat", name="svc")["result"]["depth"] == 1)
        hub.restart(signal.SIGKILL)
        w = self.conn(hub)
        got = w.call(v=1, op="ready", name="svc", wait=2)
        self.assertEqual(payload(got), b"job")
        self.assertFrame(w.call(v=1, op="rep", id=got["id"], text="out"), op="ok")
        self.assertErr(w.call(v=1, op="take", name="svc", wait=0), "empty")

    def test_large_payloads_and_many_messages(self):
        hub = self.hub("--segment", "64k", "--mailbox-cap", "100000", durable=True)
        c = self.conn(hub)
        big = [bytes([n]) * (1 << 20) for n in range(6)]  # each larger than a segment
        for data in big:
            body = harness.base64.b64encode(data).decode()
            self.assertEqual(c.call(v=1, op="put", name="big", body=body)["op"], "ok")
        for n in range(0, 20000, 500):
            c.send_raw(b"".join(frame(op="put", name="m%d" % (i % 3), text=str(i))
                                for i in range(n, n + 500)))
            for _ in range(500):
                self.assertEqual(c.recv()["op"], "ok")
        hub.restart(signal.SIGKILL)
        c = self.conn(hub)
        for data in big:
            self.assertTrue(payload(c.call(v=1, op="take", name="big", wait=5)) == data)
        for m in range(3):
            wanted = list(range(m, 20000, 3))
            c.send_raw(b"".join(frame(op="take", name="m%d" % m, wait=0) for _ in wanted))
            self.assertEqual([int(payload(c.recv())) for _ in wanted], wanted)


@harness.local("the hub's own disk")
class Directories(harness.Case):
    def test_two_hubs_never_share_a_directory(self):
        hub = self.hub(durable=True)
        c = self.conn(hub)
        c.put("q", "x")
        second = harness.Hub("--mailbox", hub.mailbox, start=False)
        out = second.run(timeout=10)
        self.assertNotEqual(out.returncode, 0)
        self.assertIn(hub.mailbox.encode(), out.stderr)
        self.assertEqual(payload(c.call(v=1, op="take", name="q")), b"x")
        self.assertEqual(c.put("q", "y")["op"], "ok")
        hub.restart(signal.SIGKILL)  # the lock does not outlive its owner
        self.assertEqual(payload(self.conn(hub).call(v=1, op="take", name="q", wait=2)), b"y")

    def test_a_missing_path_is_made_for_the_owner_only(self):
        hub = self.hub(durable=True)
        self.assertEqual(os.stat(hub.mailbox).st_mode & 0o777, 0o700)
        for path in log_files(hub):
            self.assertEqual(os.stat(path).st_mode & 0o077, 0, path)

    def test_foreign_directories_and_files_are_refused_untouched(self):
        base = harness.tempdir()
        foreign, plain = os.path.join(base, "foreign"), os.path.join(base, "mailbox.json")
        os.mkdir(foreign)
        for path in (os.path.join(foreign, "thesis.txt"), plain):
            with open(path, "w") as f:
                f.write('{"chapters":[]}')
        for path in (foreign, plain, os.path.join(plain, "below"),
                     "/proc/nothing/here"):
            out = harness.Hub("--mailbox", path, start=False).run(timeout=10)
            self.assertEqual(out.returncode, 78, (path, out.stderr))
            self.assertIn(path.encode(), out.stderr)
        self.assertEqual(os.listdir(foreign), ["thesis.txt"])
        self.assertEqual(sorted(os.listdir(base)), ["foreign", "mailbox.json"])
        with open(plain) as f:
            self.assertEqual(f.read(), '{"chapters":[]}')


if __name__ == "__main__":
    harness.main()
