#!/usr/bin/env python3
"""More faults that people met, acted out on a hub: work that takes long or kills its worker, bits
that turn over, disks that fail at each call, accept that fails. Time is scaled."""
import errno, functools, glob, os, random, signal, sys, threading, time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
from harness import LONG, SLOW, frame, payload, together, wait_for
from shim import Shim


def drained(c, name):
    """The payloads of all that is queued, many takes at once. What is found damaged only when it is
    read is told, and gone."""
    found = []
    while True:
        c.send_raw(frame(v=1, op="take", id="t", name=name, wait=0) * 200)
        answers = [c.recv() for _ in range(200)]
        for got in answers:
            if got["op"] == "msg":
                found.append(payload(got))
            elif got["code"] != "empty":
                assert got["code"] == "storage" and "set aside" in got["error"], got
        if any(got.get("code") == "empty" for got in answers):
            return found


class H1(harness.Case):
    """Busy or quiet is not dead. A heartbeat of 1 s, or less, stands for 5 s."""

    def silent(self, hub):
        """A session that says nothing, which the hub ends."""
        return self.conn(hub, pong=False)

    def test_H1_a_session_that_speaks_every_three_intervals_lives(self):
        hub = self.hub("--heartbeat", "1s")
        c, silent = self.conn(hub, pong=False), self.silent(hub)
        for n in range(7 if LONG else 2):
            time.sleep(3)  # with 5 s: 15 s, and one second more is the end
            c.send(v=1, op="pub", id="p%d" % n, name="ev", text=str(n))
            while True:  # reads only now: pings, then the answer
                got = c.recv()
                if got["op"] != "ping":
                    break
            self.assertFrame(got, op="ok", id="p%d" % n)
        self.assertTrue(silent.closed(0.1))

    def test_H1_a_worker_that_reads_nothing_keeps_its_job(self):
        hub = self.hub("--heartbeat", "1s" if LONG else "100ms")
        asker, worker, idle = self.conn(hub), self.conn(hub, pong=False), self.conn(hub)
        silent = self.silent(hub)
        asker.send(v=1, op="req", id="q", name="svc", text="work")
        asker.sync()
        job = worker.call(v=1, op="ready", id="r", name="svc")
        self.assertFrame(job, op="msg", attempt=1)
        idle.send(v=1, op="ready", id="r", name="svc")
        # Three times, or twice, as long as a silent session lives.
        end = time.monotonic() + (12 if LONG else 2.7)
        while time.monotonic() < end:
            asker.sync()
            idle.sync()  # no second execution
            time.sleep(0.5 if LONG else 0.1)
        self.assertTrue(silent.closed(0.1))
        worker.send(v=1, op="rep", id=job["id"], name="svc", text="done")
        self.assertFrame(asker.recv(), op="rep", id="q", text="done")
        idle.nothing()


class H6(harness.Case):
    def test_H6_a_job_that_kills_its_worker_starves_nobody(self):
        hub = self.hub(durable=True)
        p = self.conn(hub)
        p.put("jobs", "P")
        for n in range(1, 11):
            p.put("jobs", str(n))
        lock, done, attempts = threading.Lock(), [], []

        def worker():
            while len(done) < 10:
                c = hub.connect()
                try:
                    while len(done) < 10:
                        got = c.call(v=1, op="reserve", id="r", name="jobs", wait=1)
                        if got["op"] == "err":
                            continue
                        time.sleep(0.02)
                        if got["text"] == "P":
                            with lock:
                                attempts.append(got["attempt"])
                            break  # it dies
                        self.assertEqual(c.call(v=1, op="ack", id="a",
                                                delivery=got["delivery"])["op"], "ok")
                        with lock:
                            done.append(got["text"])
                finally:
                    c.close()
        threads = [threading.Thread(target=worker) for _ in range(3)]
        for t in threads:
            t.start()
        for t in threads:
            t.join(60 * SLOW)
        self.assertEqual(sorted(done, key=int), [str(n) for n in range(1, 11)])
        self.assertEqual(attempts, list(range(1, len(attempts) + 1)))
        hub.restart(signal.SIGKILL)
        got = self.conn(hub).call(v=1, op="take", id="t", name="jobs", wait=2)
        self.assertFrame(got, op="msg", text="P", attempt=len(attempts) + 1)


class H7(harness.Case):
    def test_H7_a_flipped_bit_costs_its_record_only(self):
        hub = self.hub("--segment", "64k", durable=True)
        rng = random.Random(7)
        c = self.conn(hub)
        sizes = [rng.choice((0, 90, 300)) for _ in range(1000)]
        jobs = [b"%04d " % n + bytes(rng.choice(b"abcdefgh") for _ in range(sizes[n]))
                for n in range(1000)]
        for job in jobs:
            c.send(v=1, op="put", name="q", text=job.decode())
        for _ in jobs:
            self.assertEqual(c.recv()["op"], "ok")
        self.assertEqual(hub.stop(), 0)
        files = {p: harness.read_file(p) for p in glob.glob(hub.mailbox + "/*") if
                 os.path.isfile(p)}
        logs = sorted(p for p in files if p.endswith(".zlog"))
        hits = at_open = 0
        for run in range(500 if LONG else 25):
            for p in glob.glob(hub.mailbox + "/*"):
                os.unlink(p)
            for p, data in files.items():
                harness.write_file(p, data)
            victim = rng.choice(logs)
            bit = rng.randrange(8 * len(files[victim]))
            data = bytearray(files[victim])
            data[bit // 8] ^= 1 << bit % 8
            harness.write_file(victim, bytes(data))
            said = len(hub.logged())
            hub.start()
            opened = hub.status()["storage"]["set_aside"]
            found = drained(self.conn(hub), "q")
            storage, log = hub.status()["storage"], hub.logged()[said:]
            where = "run %d: bit %d of %s" % (run, bit, victim)
            self.assertLessEqual(set(found), set(jobs), where)  # never a wrong payload
            self.assertEqual(found, sorted(found), where)
            self.assertLessEqual(len(jobs) - len(found), 1, where)
            if len(found) < len(jobs):
                hits += 1
                self.assertGreater(storage["set_aside"], 0, where)
            self.assertEqual("were damaged or missing and are left out" in log, opened > 0, where)
            self.assertEqual("is damaged and was set aside" in log,
                             storage["set_aside"] > opened, where)
            at_open += opened > 0
            hub.kill()
        self.assertGreater(hits, 0)
        self.assertGreater(at_open, 0)


class H8(harness.Case):
    """The disk fails once, at each of the first calls."""

    def fails(self, knob, n):
        shim = Shim()
        hub = self.hub("--segment", "64k", durable=True, env=shim.env)
        c, told = self.conn(hub), []
        c.sync()  # the log is open
        shim.write_errno = errno.EIO
        setattr(shim, knob, n)
        for i in range(16):
            got = c.put("q", "%d " % i + "x" * 3000)
            if got["op"] == "ok":
                told.append(i)
            else:
                self.assertErr(got, "storage")
                time.sleep(0.05)
        self.assertEqual(getattr(shim, knob), 0)  # it has failed
        self.assertEqual(c.call(v=1, op="ping", id="p")["op"], "pong")
        wait_for(lambda: hub.status()["storage"]["state"] == "ok")
        self.assertEqual(c.put("q", "99 after")["op"], "ok")
        setattr(shim, knob, 0)
        hub.restart(signal.SIGKILL)
        found = [int(t.split()[0]) for t in drained(self.conn(hub), "q")]
        self.assertEqual([i for i in found if i in told], told, "%s at call %d" % (knob, n))
        self.assertEqual(found, sorted(set(found)))
        self.assertEqual(found[-1], 99)

    def fail_each(self, knob):
        calls = [functools.partial(self.fails, knob, n) for n in range(1, 14 if LONG else 6)]
        together(*calls)

    def damaged(self):
        """The files of a log of which one record of the first segment is damaged and the second
        segment as a whole."""
        hub = self.hub("--segment", "64k", durable=True)
        c = self.conn(hub)
        for i in range(80):
            self.assertEqual(c.put("q", "%d " % i + "x" * 3000)["op"], "ok")
        self.assertEqual(hub.stop(), 0)
        files = {os.path.basename(p): bytearray(harness.read_file(p))
                 for p in glob.glob(hub.mailbox + "/*.zlog")}
        first, second = sorted(files)[:2]
        files[first][files[first].index(b"5 xxx") + 50] ^= 1
        for at in (20, 84):  # both its heads
            files[second][at] ^= 1
        return {name: bytes(data) for name, data in files.items()}

    def aside(self, files, **knobs):
        """Starts, drains all but the last, goes on and starts again, while the disk fails as the
        knobs say. Returns what was found in all."""
        shim = Shim()
        hub = self.hub("--segment", "64k", durable=True, env=shim.env, start=False)
        os.mkdir(hub.mailbox, 0o700)
        for name, data in files.items():
            harness.write_file(os.path.join(hub.mailbox, name), data)
        for knob, n in knobs.items():
            setattr(shim, knob, n)
        hub.start()
        c = self.conn(hub)
        found = [payload(c.call(v=1, op="take", id="t", name="q", wait=5)) for _ in range(40)]
        self.assertEqual(c.put("q", "99 after")["op"], "ok")
        found += drained(c, "q")
        first, second = sorted(files)[:2]

        def trimmed():
            return not os.path.exists(os.path.join(hub.mailbox, first))
        wait_for(trimmed)
        for knob in knobs.keys() - {"no_link"}:
            wait_for(lambda: getattr(shim, knob) == 0 and shim.failed > 0, why=lambda: str(knobs))
        self.assertEqual(hub.status()["storage"]["state"], "ok")
        self.assertEqual(c.put("q", "100 again")["op"], "ok")
        hub.restart(signal.SIGKILL)
        self.assertEqual(drained(self.conn(hub), "q"), [b"100 again"])
        # Both are kept aside, once, and every byte of the one that was damaged as a whole.
        names = sorted(n for n in os.listdir(hub.mailbox) if "damaged" in n)
        self.assertEqual(names, [n.replace("zlog", "damaged") for n in (first, second)])
        self.assertEqual(harness.read_file(os.path.join(hub.mailbox, names[1])), files[second])
        return [int(text.split()[0]) for text in found]

    def test_H8_a_damaged_file_cannot_be_set_aside(self):
        files = self.damaged()
        wanted = self.aside(files)
        self.assertEqual(wanted, sorted(wanted))
        self.assertNotIn(5, wanted)
        self.assertGreater(len(wanted), 50)
        # The first call is at the start, the second when all of a file is consumed.
        calls = [dict(link_fail=1), dict(link_fail=2), dict(close_fail=1), dict(close_fail=2),
                 dict(no_link=1), dict(no_link=1, rename_fail=1), dict(no_link=1, rename_fail=2)]
        calls += [dict(unlink_fail=n) for n in range(1, 5)]

        def fails(knobs):
            self.assertEqual(self.aside(files, **knobs), wanted, knobs)
        together(*[functools.partial(fails, knobs) for knobs in calls])

    def test_H8_a_sync_fails(self):
        self.fail_each("sync_fail")

    def test_H8_a_write_fails(self):
        self.fail_each("write_fail")

    def test_H8_a_write_is_short(self):
        self.fail_each("write_short")


class H15(harness.Case):
    """What accept says of one connection, or of the whole system for a moment, ends nothing."""

    def setUp(self):
        self.shim = Shim()
        self.h = self.hub(env=self.shim.env)
        self.calm = self.conn(self.h)
        self.calm.sync()

    def served(self, c):
        start = time.monotonic()
        c.sync()
        self.calm.sync()
        return time.monotonic() - start

    def test_H15_a_connection_that_is_gone_again_is_no_reason_to_rest(self):
        self.shim.accept_loses = 1
        for number in (errno.ECONNABORTED, errno.EPROTO, errno.EINTR):
            self.shim.accept_errno, self.shim.accept_fail = number, 1
            lost = self.conn(self.h)
            self.assertLess(self.served(self.conn(self.h)), 0.2 * SLOW, number)
            self.assertTrue(lost.closed())
            self.assertEqual(self.shim.accept_fail, 0)
        self.assertEqual(self.shim.failed, 3)
        self.assertNotIn("new connections wait", self.h.logged())

    def test_H15_a_system_without_descriptors_is_waited_for(self):
        """And asked again a few times a second, not in a loop."""
        for number in (errno.ENFILE, errno.EMFILE, errno.ENOMEM):
            self.shim.accept_errno, self.shim.accept_fail = number, -1
            start, failed = time.monotonic(), self.shim.failed
            waiting = self.conn(self.h, timeout=20 * SLOW)
            waiting.send(v=1, op="ping", id="p")
            for _ in range(5):
                time.sleep(0.2)
                self.calm.sync()
            most = 2 + 4 * (time.monotonic() - start)
            self.assertIn(self.shim.failed - failed, range(2, int(most) + 1))
            self.shim.accept_fail = 0
            self.assertEqual(waiting.recv()["op"], "pong")
        self.assertEqual(self.h.logged().count("new connections wait"), 1)


if __name__ == "__main__":
    harness.main()
