#!/usr/bin/env python3
"""A hub on bad disks: slow, failing and full ones, by a shim under libc and a small file system."""
import os, re, shutil, signal, subprocess, sys, tempfile, time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
from harness import SLOW, frame, payload, wait_for
from shim import Shim


class BadDisk(harness.Case):
    def start(self, *options):
        self.shim = Shim()
        return self.hub(*options, durable=True, env=self.shim.env)

    def checks(self, hub, wanted):
        """`wanted` is there in order after a restart on a good disk; the rest is returned."""
        for knob in ("sync_ms", "sync_fail", "write_fail", "write_short"):
            setattr(self.shim, knob, 0)
        hub.restart(signal.SIGKILL)
        c, texts = self.conn(hub), []
        while True:
            got = c.call(v=1, op="take", name="q", wait=0)
            if got["op"] == "err":
                self.assertErr(got, "empty")
                break
            texts.append(payload(got).decode())
        self.assertEqual([t for t in texts if t in wanted], wanted)
        self.assertEqual(len(texts), len(set(texts)))
        return [t for t in texts if t not in wanted]

    def test_ok_never_leaves_before_the_fsync_and_others_go_on(self):
        hub = self.start()
        a, b, c = self.conn(hub), self.conn(hub), self.conn(hub)
        b.put("ready", "1")
        b.put("ready", "2")
        self.shim.sync_ms = 2000
        start = time.monotonic()
        a.send(v=1, op="put", id="p", name="q", text="x")
        wait_for(lambda: self.shim.syncing)
        for n in range(5):
            b.sync()
            self.assertEqual(hub.status()["storage"]["state"], "ok")
            self.assertEqual(b.call(v=1, op="stat", name="ready")["result"]["name"], "ready")
            self.assertErr(b.call(v=1, op="take", name="none", wait=0), "empty")
        self.assertEqual(b.call(v=1, op="pub", name="e", text="x")["op"], "ok")
        got = b.call(v=1, op="reserve", name="ready")
        self.assertEqual(payload(got), b"1")
        self.assertLess(time.monotonic() - start, 1.7)  # while the first fsync goes on
        self.assertRaises(TimeoutError, a.recv, 0.1 / SLOW)
        self.assertEqual(a.recv()["id"], "p")
        self.assertGreater(time.monotonic() - start, 1.9)
        # A take leaves after the fsync that covers the removal.
        start = time.monotonic()
        self.assertEqual(payload(c.call(v=1, op="take", name="ready")), b"2")
        self.assertGreater(time.monotonic() - start, 1.9)

    def test_many_clients_share_one_fsync(self):
        hub = self.start()
        conns = [self.conn(hub) for _ in range(40)]
        for c in conns:
            c.sync()
        self.shim.sync_ms = 300
        before = self.shim.syncs
        for c in conns:
            c.send(v=1, op="put", name="q", text="x")
        for c in conns:
            self.assertEqual(c.recv()["op"], "ok")
        self.assertLess(self.shim.syncs - before, 10)

    def test_a_repeated_put_is_not_ok_before_the_first_is_safe(self):
        hub = self.start()
        a = self.conn(hub)
        a.sync()
        self.shim.sync_ms = 700
        start = time.monotonic()
        for _ in range(2):
            a.send(v=1, op="put", id="x", name="q", text="x")
        for _ in range(2):
            self.assertFrame(a.recv(), op="ok", id="x")
            self.assertGreater(time.monotonic() - start, 0.69)
        # The first put of a pair fails: the second was not told otherwise.
        self.shim.sync_ms, self.shim.write_errno, self.shim.write_fail = 100, 5, -1
        for _ in range(2):
            a.send(v=1, op="put", id="y", name="q", text="y")
        for _ in range(2):
            self.assertErr(a.recv(), "storage")

    def test_a_full_mailbox_counts_what_is_on_its_way_to_the_disk(self):
        hub = self.start("--mailbox-cap", "10")
        a = self.conn(hub)
        a.sync()
        self.shim.sync_ms = 300
        a.send_raw(b"".join(frame(op="put", name="q", text=str(n)) for n in range(15)))
        answers = [a.recv() for _ in range(15)]
        self.assertEqual(sorted(x["op"] for x in answers), ["err"] * 5 + ["ok"] * 10)
        self.assertEqual(a.call(op="stat", name="q")["result"]["depth"], 10)

    def test_a_taker_that_goes_during_the_fsync_gives_back(self):
        hub = self.start()
        a, taker = self.conn(hub), self.conn(hub)
        for n in range(3):
            a.put("q", "m%d" % n)
        self.shim.sync_ms = 700
        taker.send(v=1, op="take", name="q")
        wait_for(lambda: self.shim.syncing)
        taker.close()
        wait_for(lambda: hub.status()["sessions"] == 1)
        wait_for(lambda: not self.shim.syncing)
        self.shim.sync_ms = 0
        wait_for(lambda: a.call(op="stat", name="q")["result"]["depth"] == 3)
        self.assertEqual(self.checks(hub, ["m0", "m1", "m2"]), [])

    def test_an_ack_on_its_way_to_the_disk_outlives_the_lease(self):
        hub = self.start()
        a, w = self.conn(hub), self.conn(hub)
        a.put("q", "m")
        got = w.call(v=1, op="reserve", name="q", lease=1)
        self.shim.sync_ms = 2500
        start = time.monotonic()
        w.send(v=1, op="ack", id="k", delivery=got["delivery"])
        a.send(v=1, op="take", name="q", wait=3.5)
        answer = w.recv()
        self.assertFrame(answer, op="ok", id="k")
        self.assertGreater(time.monotonic() - start, 2.4)
        self.assertErr(a.recv(), "empty")
        self.assertEqual(self.checks(hub, []), [])

    def test_half_close_waits_for_the_disk(self):
        hub = self.start()
        a = self.conn(hub)
        a.sync()
        self.shim.sync_ms = 300
        a.send_raw(b"".join(frame(op="put", id=str(n), name="q", text="m%d" % n)
                            for n in range(50)) + frame(op="take", name="q"))
        a.half_close()
        got = []
        while len(got) < 60:
            try:
                got.append(a.recv())
            except harness.Closed:
                break
        self.assertEqual([x["id"] for x in got if x["op"] == "ok"], [str(n) for n in range(50)])
        taken = [payload(x).decode() for x in got if x["op"] == "msg"]
        self.assertEqual(self.checks(hub, ["m%d" % n for n in range(len(taken), 50)]), [])

    def failing(self, **knobs):
        """Puts before, during and after a fault: what is acknowledged must be there afterwards."""
        hub = self.start()
        c = self.conn(hub)
        acknowledged, refused = [], []

        def put(text):
            got = c.put("q", text)
            if got["op"] == "ok":
                acknowledged.append(text)
            else:
                self.assertErr(got, "storage")
                refused.append(text)
        for n in range(5):
            put("before%d" % n)
        self.assertEqual(refused, [])
        for knob, value in knobs.items():
            setattr(self.shim, knob, value)
        for n in range(10):
            put("during%d" % n)
        self.assertGreater(self.shim.failed, 0)
        return hub, c, put, acknowledged, refused

    def test_one_failed_fsync(self):
        hub, c, put, acknowledged, refused = self.failing(sync_fail=2)
        wait_for(lambda: hub.status()["storage"]["state"] == "ok")
        put("after")
        self.assertEqual(acknowledged[-1], "after")
        # It moved on to another segment, and says so.
        self.assertRegex(hub.logged().lower(), r"i/o error|fsync|input/output")
        self.checks(hub, acknowledged)

    def test_fsync_that_fails_for_good(self):
        hub, c, put, acknowledged, refused = self.failing(sync_fail=-1)
        self.assertEqual(acknowledged, ["before%d" % n for n in range(5)])
        self.assertEqual(len(refused), 10)
        status = hub.status()["storage"]
        self.assertEqual(status["state"], "error")
        self.assertEqual(c.call(v=1, op="stat", name="q")["result"]["depth"], 5)
        c.sync()
        lines = len(hub.logged().splitlines())
        time.sleep(1.5)
        self.assertLess(len(hub.logged().splitlines()) - lines, 10)
        # The disk is well again: it verifies what it writes and takes puts.
        self.shim.sync_fail = 0
        wait_for(lambda: hub.status()["storage"]["state"] == "ok", 20)
        put("after")
        self.assertEqual(acknowledged[-1], "after")
        self.checks(hub, acknowledged)

    def test_write_errors(self):
        for number in (5, 28):  # EIO, ENOSPC
            hub, c, put, acknowledged, refused = self.failing(write_fail=-1, write_errno=number)
            self.assertEqual(len(acknowledged), 5)
            self.assertIn(hub.status()["storage"]["state"], ("error", "full"))
            self.shim.write_fail = 0
            wait_for(lambda: hub.status()["storage"]["state"] == "ok", 20)
            put("after")
            self.assertEqual(acknowledged[-1], "after")
            self.checks(hub, acknowledged)

    def test_one_write_error_and_a_short_write(self):
        hub, c, put, acknowledged, refused = self.failing(write_fail=2, write_errno=5)
        wait_for(lambda: hub.status()["storage"]["state"] == "ok")
        put("after")
        self.checks(hub, acknowledged)
        hub = self.start()
        c = self.conn(hub)
        texts = ["short%d" % n + "x" * 500 for n in range(6)]
        for text in texts:
            self.shim.write_short = 1
            self.assertEqual(c.put("q", text)["op"], "ok")
        self.assertEqual(self.checks(hub, texts), [])

    def test_takes_and_acks_during_failure_never_come_back_once_acknowledged(self):
        hub = self.start()
        c = self.conn(hub)
        for n in range(20):
            c.put("q", "m%02d" % n)
        held = [c.call(v=1, op="reserve", name="q") for _ in range(5)]
        self.shim.sync_fail = 3
        gone = set()
        for got in held:
            answer = c.call(v=1, op="ack", delivery=got["delivery"])
            if answer["op"] == "ok":
                gone.add(payload(got).decode())
            else:
                self.assertErr(answer, "storage")
        for _ in range(5):
            got = c.call(v=1, op="take", name="q", wait=5)
            if got["op"] == "msg":
                gone.add(payload(got).decode())
            else:
                self.assertIn(got["code"], ("storage", "empty"))
        self.assertGreater(self.shim.failed, 0)
        left = ["m%02d" % n for n in range(20) if "m%02d" % n not in gone]
        self.assertEqual(self.checks(hub, left), [])


def worker_switches(pid):
    """How often the threads beside the loop gave up the processor, which each job makes them do."""
    total = 0
    for task in os.listdir("/proc/%d/task" % pid):
        if int(task) != pid:
            with open("/proc/%d/task/%s/status" % (pid, task)) as f:
                found = re.search(r"^voluntary_ctxt_switches:\s+(\d+)", f.read(), re.M)
            total += int(found.group(1))
    return total


class Alone(harness.Case):
    """In memory, where an fsync takes no time."""

    def test_one_client_pays_no_thread_hop_and_segments_are_preallocated(self):
        if not os.access("/dev/shm", os.W_OK):
            harness.skip("no /dev/shm")
        path = tempfile.mkdtemp(prefix="zq", dir="/dev/shm")
        self.addCleanup(shutil.rmtree, path, True)
        hub = self.hub("--mailbox", path, "--segment", "1m")
        c = self.conn(hub)

        def hops(at_once=1):
            before = worker_switches(hub.proc.pid)
            for n in range(100):
                c.send_raw(frame(v=1, op="put", name="q", text="x") * at_once)
                for _ in range(at_once):
                    self.assertEqual(c.recv()["op"], "ok")
                c.send_raw(frame(v=1, op="take", name="q") * at_once)
                for _ in range(at_once):
                    self.assertEqual(c.recv()["op"], "msg")
            return worker_switches(hub.proc.pid) - before
        # The first are measured beside the loop; a busy machine may need some more.
        self.assertLess(min(hops() for _ in range(8)), 20)
        self.assertLess(min(hops(at_once=5) for _ in range(8)), 20)
        other = self.conn(hub)  # now an fsync on the loop would stop somebody
        other.sync()
        self.assertGreaterEqual(hops(), 50)
        segment = os.stat(os.path.join(path, "00000001.zlog"))
        self.assertGreaterEqual(segment.st_blocks * 512, 1 << 20)


class Order(harness.Case):
    def test_strace_shows_write_then_fsync_then_ok(self):
        if not shutil.which("strace"):
            harness.skip("strace is not installed")
        if subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True).returncode:
            harness.skip("strace may not trace here")
        out = os.path.join(harness.tempdir(), "trace")
        hub = self.hub(durable=True, wrapper=(
            "strace", "-f", "-y", "-s", "65536", "-o", out,
            "-E", "ASAN_OPTIONS=detect_leaks=0",  # that check traces, which cannot be traced
            "-e", "trace=write,writev,pwrite64,pwritev,pwritev2,sendmsg,sendto,fsync,fdatasync"))
        # A signal to strace would detach it: the hub is its child.
        with open("/proc/%d/task/%d/children" % (hub.proc.pid, hub.proc.pid)) as f:
            pid = int(f.read().split()[0])
        self.addCleanup(lambda: hub.proc.poll() is None and os.kill(pid, signal.SIGKILL))
        c = self.conn(hub)
        for n in range(3):
            self.assertEqual(c.put("q", "payload-%d" % n, id="put-%d" % n)["op"], "ok")
        got = c.call(v=1, op="take", id="t", name="q")
        self.assertEqual(payload(got), b"payload-0")
        os.kill(pid, signal.SIGTERM)
        hub.proc.wait(20 * SLOW)
        with open(out, errors="replace") as f:
            lines = f.read().splitlines()

        def first(pattern, start=0):
            for at in range(start, len(lines)):
                if re.search(pattern, lines[at]):
                    return at
            self.fail("no %s in the trace after line %d:\n%s"
                      % (pattern, start, "\n".join(x[:160] for x in lines[start:start + 40])))

        def synced(start):
            """Where the first fsync or fdatasync that began after start has returned."""
            begun = first(r"\b(fsync|fdatasync)\(\d+<[^>]*\.zlog", start)
            if "unfinished" not in lines[begun]:
                self.assertIn("= 0", lines[begun])
                return begun
            thread = lines[begun].split()[0]
            return first(r"^%s +<\.\.\. (fsync|fdatasync) resumed>.*= 0" % thread, begun)
        for n in range(3):
            wrote = first(r"(write|writev|pwrite64|pwritev2?)\(\d+<[^>]*\.zlog.*payload-%d" % n)
            told = first(r"(write|writev|sendmsg|sendto)\(\d+<(UNIX|socket).*put-%d" % n)
            done = synced(wrote)
            self.assertTrue(wrote < done < told, (n, wrote, done, told))
            if n == 0:
                # The new segment's directory entry was made durable before the first ok.
                folder = first(r"\bf(data)?sync\(\d+<%s>" % re.escape(hub.mailbox))
                self.assertLess(folder, told)
        # The frame of a take leaves after an fsync that began after the last put's ok.
        sent = first(r"(write|writev|sendmsg|sendto)\(\d+<(UNIX|socket).*payload-0")
        self.assertLess(synced(told + 1), sent)


class FullDisk(harness.Case):
    def setUp(self):
        self.base = harness.tempdir()
        self.small = os.path.join(self.base, "small")
        os.mkdir(self.small)
        made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", self.small],
                              capture_output=True)
        if made.returncode:
            harness.skip("no right to mount a small tmpfs: " + made.stderr.decode().strip())
        self.addCleanup(subprocess.run, ["umount", "-l", self.small])

    def fill(self, c, acknowledged, limit=400):
        """Puts until two in a row are refused; the text of each begins with its number."""
        failures = 0
        for _ in range(limit):
            text = "%d " % (self.count) + "x" * 8000
            self.count += 1
            got = c.put("q", text)
            if got["op"] == "ok":
                acknowledged.append(text)
                failures = 0
                continue
            self.assertErr(got, "storage")
            failures += 1
            if failures == 2:
                return
        self.fail("the disk never filled up")

    def test_puts_are_refused_takes_go_on_and_room_heals(self):
        self.count = 0
        mailbox = os.path.join(self.small, "m")
        hub = self.hub("--mailbox", mailbox, "--segment", "64k", "--mailbox-cap", "100000")
        c, queued = self.conn(hub), []
        self.fill(c, queued)
        self.assertGreater(len(queued), 20)
        self.assertEqual(hub.status()["storage"]["state"], "full")
        self.assertErr(c.call(v=1, op="req", id="r", name="q", text="x" * 8000), "storage")
        # A restart while it is full: it serves what it has.
        for sig in (signal.SIGTERM, signal.SIGKILL):
            hub.restart(sig)
            c = self.conn(hub)
            self.assertEqual(c.call(v=1, op="stat", name="q")["result"]["depth"], len(queued))
            got = c.call(v=1, op="take", name="q", wait=5)
            self.assertEqual((got["op"], payload(got).decode()), ("msg", queued.pop(0)))
            got = c.call(v=1, op="reserve", name="q", wait=5)
            self.assertEqual(payload(got).decode(), queued[0])
            self.assertEqual(c.call(v=1, op="ack", delivery=got["delivery"])["op"], "ok")
            queued.pop(0)
            self.fill(c, queued)
        # Takes make room: segments go, puts are welcome again.
        for _ in range(len(queued) - 3):
            got = c.call(v=1, op="take", name="q", wait=5)
            self.assertEqual((got["op"], payload(got).decode()), ("msg", queued.pop(0)))

        def put_works():
            text = "again %d " % self.count + "y" * 3000
            self.count += 1
            if c.put("q", text)["op"] != "ok":
                return False
            queued.append(text)
            return True
        wait_for(put_works)
        wait_for(lambda: hub.status()["storage"]["state"] == "ok")
        hub.restart(signal.SIGKILL)
        c = self.conn(hub)
        self.assertEqual([payload(c.call(v=1, op="take", name="q", wait=5)).decode()
                          for _ in queued], queued)
        self.assertErr(c.call(v=1, op="take", name="q", wait=0), "empty")

    def test_space_that_others_took_and_gave_back(self):
        self.count = 0
        mailbox, hog = os.path.join(self.small, "m"), os.path.join(self.small, "hog")
        hub = self.hub("--mailbox", mailbox, "--segment", "64k", "--mailbox-cap", "100000")
        c, queued = self.conn(hub), []
        c.put("q", "first")
        try:
            with open(hog, "wb", buffering=0) as f:
                while True:
                    f.write(b"h" * 4096)
        except OSError:
            pass
        self.fill(c, queued)
        self.assertEqual(payload(c.call(v=1, op="take", name="q", wait=5)), b"first")
        os.unlink(hog)
        wait_for(lambda: c.put("after", "x" * 3000)["op"] == "ok")
        wait_for(lambda: hub.status()["storage"]["state"] == "ok")
        self.assertLess(len(hub.logged().splitlines()), 60)


if __name__ == "__main__":
    harness.main()
