#!/usr/bin/env python3
# tunnelled
"""What the original got wrong, one test each with the right outcome: losses, stalls, forgeries."""
import os, signal, sys, threading, time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
from harness import SLOW, Closed, frame, payload, together, wait_for


def drain(c, name):
    """Texts of all that is queued, oldest first."""
    texts = []
    while True:
        got = c.call(v=1, op="take", name=name, wait=0)
        if got["op"] == "err":
            assert got["code"] == "empty", got
            return texts
        texts.append(payload(got).decode())


def pipelined(c, frames, window=200):
    """Sends frames and reads as many answers, some frames ahead."""
    answers = []
    for i in range(0, len(frames), window):
        c.send_raw(b"".join(frames[i:i + window]))
        answers += [c.recv() for _ in frames[i:i + window]]
    return answers


class Weaknesses(harness.Case):
    def test_weakness_01_a_graceful_stop_loses_nothing(self):
        hub = self.hub(durable=True)
        a, holder = self.conn(hub), self.conn(hub)
        for i in range(6):
            a.put("jobs", "j%d" % i, id=str(i))
        for i in range(3):
            a.put("other", "o%d" % i)
        got = holder.call(v=1, op="reserve", name="jobs", lease=100)
        self.assertEqual(payload(got), b"j0")
        self.assertEqual(hub.stop(), 0)
        hub.start()
        b = self.conn(hub)
        self.assertEqual(drain(b, "jobs"), ["j%d" % i for i in range(6)])
        self.assertEqual(drain(b, "other"), ["o0", "o1", "o2"])

    def test_weakness_02_ids_of_new_sessions_never_meet_old_ones(self):
        hub = self.hub(durable=True)
        ids, sent = set(), []
        for round_no in range(3):
            for n in range(6):
                c = self.conn(hub)
                got = c.put("jobs", "r%dc%d" % (round_no, n), id="1")
                self.assertEqual(got["op"], "ok")
                sent.append("r%dc%d" % (round_no, n))
            hub.restart(signal.SIGKILL if round_no % 2 else signal.SIGTERM)
        c, texts = self.conn(hub), []
        for _ in sent:
            got = c.call(v=1, op="take", name="jobs", wait=5)
            self.assertRegex(got["id"], r"^s[0-9]+:1$")
            ids.add(got["id"])
            texts.append(payload(got).decode())
        self.assertEqual(texts, sent)
        self.assertEqual(len(ids), len(sent))

    def test_weakness_03_frames_never_interleave(self):
        """A subscriber that pings while publications pour in reads sound frames only."""
        hub = self.hub()
        s, done = self.conn(hub, pong=False), threading.Event()
        s.call(v=1, op="sub", name="e")
        pings, pubs = 3000, 3000

        def publish():
            p = self.conn(hub)
            pipelined(p, [frame(v=1, op="pub", name="e", text="%d " % i + "x" * 300)
                          for i in range(pubs)])
            done.set()

        def ping():
            for i in range(0, pings, 20):
                s.send_raw(b"".join(frame(v=1, op="ping", id=str(n)) for n in range(i, i + 20)))

        pongs, values = [], []

        def read():
            while len(pongs) < pings:
                got = s.recv()
                if got["op"] == "pong":
                    pongs.append(int(got["id"]))
                elif got["op"] == "msg":
                    values.append(int(payload(got).split()[0]))
        together(publish, ping, read)
        self.assertEqual(pongs, list(range(pings)))
        self.assertEqual(values, sorted(set(values)))
        self.assertTrue(values)

    def test_weakness_03_pipelined_takes_keep_order(self):
        hub = self.hub()
        a, b = self.conn(hub), self.conn(hub)
        count = 1000
        b.send_raw(b"".join(frame(v=1, op="take", id="t%d" % i, name="q") for i in range(count)))
        b.sync()
        answers = pipelined(a, [frame(v=1, op="put", id=str(i), name="q", text="%d" % i)
                                for i in range(count)])
        self.assertEqual({x["op"] for x in answers}, {"ok"})
        self.assertEqual([int(payload(b.recv())) for _ in range(count)], list(range(count)))

    def test_weakness_04_every_accepted_message_can_be_delivered(self):
        mib = 1 << 20
        payloads = [b"x" * 900 * 1024, b"\xff" * 300 * 1024, b"x" * mib, b"\x01" * mib,
                    b"\xff" * mib, b"<" * mib, "\u2028".encode() * (mib // 3),
                    b'"' * mib, b"\0" * 400000]
        hub = self.hub()
        a, b, s = self.conn(hub), self.conn(hub), self.conn(hub)
        s.call(v=1, op="sub", name="e")
        for data in payloads:
            body = harness.base64.b64encode(data).decode()
            name = "n" * 1024  # the longest name and sender leave the least room
            sender = {"from": "f" * 1024}
            self.assertFrame(a.call(v=1, op="put", id="i" * 1000, name=name, body=body, **sender),
                             op="ok")
            got = b.call(v=1, op="take", name=name)
            self.assertEqual((got["op"], payload(got) == data), ("msg", True))
            if "text" in got:
                self.assertEqual(got["text"].encode(), data)
            self.assertFrame(a.call(v=1, op="pub", name="e", body=body, **sender), op="ok")
            got = s.recv()
            self.assertEqual((got["op"], payload(got) == data), ("msg", True))
        a.sync()

    def test_weakness_04_the_command_puts_900_kB(self):
        hub = self.hub()
        data = bytes(range(256)) * 3516  # 900,096 bytes of binary
        got = harness.cli("put", "jobs", stdin=data, listen=hub.bus)
        self.assertEqual((got.returncode, got.stderr), (0, b""))
        c = self.conn(hub)
        self.assertEqual(payload(c.call(v=1, op="take", name="jobs", wait=5)), data)

    def test_weakness_06_a_requester_that_does_not_read_stalls_nobody(self):
        hub = self.hub()
        r, w = self.conn(hub), self.conn(hub)
        count = 12  # 12 MiB of replies: more than any socket buffer
        for i in range(count):
            r.send(v=1, op="req", id=str(i), name="svc", text="in")
        text = "y" * (1 << 20)
        slowest = 0.0
        for i in range(count):
            job = w.call(v=1, op="ready", name="svc")
            start = time.monotonic()
            self.assertFrame(w.call(v=1, op="rep", id=job["id"], text=text), op="ok")
            w.sync()
            slowest = max(slowest, time.monotonic() - start)
        self.assertLess(slowest, 3 * SLOW)  # the original needed 10 s

    def test_weakness_07_a_reader_that_keeps_reading_loses_nothing(self):
        hub = self.hub()
        p, s = self.conn(hub), self.conn(hub)
        s.call(v=1, op="sub", name="e.")
        sent = 0
        for _ in range(100):  # bursts as large as the buffer
            burst = [frame(v=1, op="pub", name="e.%d" % (i % 7), text=str(sent + i))
                     for i in range(64)]
            self.assertEqual({x["op"] for x in pipelined(p, burst)}, {"ok"})
            self.assertEqual([int(payload(s.recv())) for _ in burst],
                             list(range(sent, sent + 64)))
            sent += 64

    def test_weakness_07_what_is_lost_is_counted(self):
        hub = self.hub()
        p, s = self.conn(hub), self.conn(hub)
        s.call(v=1, op="sub", name="e")
        text = "z" * 30000
        for _ in range(400):  # 12 MB, nobody reads
            self.assertFrame(p.call(v=1, op="pub", name="e", text=text), op="ok", subs=1)
        dropped = hub.status()["dropped_deliveries"]
        got = 0
        try:
            while True:
                self.assertEqual(s.recv(0.5)["op"], "msg")
                got += 1
        except TimeoutError:
            pass
        self.assertGreaterEqual(got, 64)
        self.assertEqual(got + dropped, 400)

    def test_weakness_08_the_cost_of_an_operation_does_not_grow_with_the_depth(self):
        hub = self.hub("--mailbox-cap", "100000", durable=True)
        c = self.conn(hub)

        def pair_ms():
            best = 1e9
            for _ in range(3):  # the best of three: others use this machine too
                start = time.monotonic()
                for _ in range(60):
                    c.put("small", "x" * 100)
                    c.call(v=1, op="take", name="small")
                best = min(best, (time.monotonic() - start) / 60 * 1000)
            return best
        shallow = pair_ms()
        puts = [frame(v=1, op="put", name="deep", text="x" * 100) for _ in range(20000)]
        self.assertEqual({x["op"] for x in pipelined(c, puts)}, {"ok"})
        deep = pair_ms()
        self.assertLess(deep, shallow * 3 + 1)  # the original: four times at 1,000

    @harness.local("the hub's own listener")
    def test_weakness_09_listen_never_removes_what_is_not_ours(self):
        hub = self.hub()
        kept = os.path.join(hub.dir, "file")
        with open(kept, "w") as f:
            f.write("precious")
        other = harness.Hub(listen="unix://" + kept, start=False)
        out = other.run(timeout=10)
        self.assertEqual(out.returncode, 78, out.stderr)
        self.assertIn(kept.encode(), out.stderr)
        with open(kept) as f:
            self.assertEqual(f.read(), "precious")
        second = harness.Hub(listen=hub.bus, start=False)
        out = second.run(timeout=10)
        self.assertEqual(out.returncode, 1, out.stderr)
        self.assertIn(hub.path.encode(), out.stderr)
        self.assertTrue(os.path.exists(hub.path))
        self.conn(hub).sync()
        self.assertEqual(hub.stop(), 0)
        self.assertFalse(os.path.exists(hub.path))

    def test_weakness_10_empty_mailboxes_are_freed(self):
        hub = self.hub(env=harness.FREED_IS_FREE)
        c = self.conn(hub)

        def names(start, count):
            for i in range(start, start + count, 100):
                frames = []
                for n in range(i, i + 100):
                    frames += [frame(v=1, op="put", name="name-%d" % n, text="x"),
                               frame(v=1, op="take", name="name-%d" % n)]
                c.send_raw(b"".join(frames))
                for _ in frames:
                    self.assertIn(c.recv()["op"], ("ok", "msg"))
        names(0, 2000)
        before = hub.rss()
        names(2000, 40000)
        # The original keeps 470 bytes for each: 19 MB.
        wait_for(lambda: hub.rss() - before < 6 << 20, 5)
        self.assertEqual(c.call(v=1, op="list", name="name-")["result"]["names"], [])

    def test_weakness_11_leases_are_over_after_a_crash(self):
        hub = self.hub(durable=True)
        a, b = self.conn(hub), self.conn(hub)
        a.put("q", "one")
        self.assertEqual(b.call(v=1, op="reserve", name="q", lease=1000)["op"], "msg")
        hub.restart(signal.SIGKILL)
        got = self.conn(hub).call(v=1, op="take", name="q", wait=5)
        self.assertEqual((payload(got), got["attempt"]), (b"one", 2))

    def test_weakness_12_only_the_holder_may_ack_or_answer(self):
        hub = self.hub()
        a, w, evil = self.conn(hub), self.conn(hub), self.conn(hub)
        a.send(v=1, op="req", id="q1", name="svc", text="in")
        job = w.call(v=1, op="ready", name="svc")
        for op in ("ack", "nack", "touch"):
            self.assertErr(evil.call(v=1, op=op, id="k", delivery=job["delivery"]), "no_delivery",
                           "mailbox: delivery not found")
        self.assertFrame(evil.call(v=1, op="ack", id="k", deliveries=[job["delivery"]]),
                         op="ok", failed=[job["delivery"]])
        self.assertFrame(evil.call(v=1, op="rep", id=job["id"], text="spoof"), op="ok")
        self.assertFrame(evil.call(v=1, op="rep", delivery=job["delivery"], text="spoof"), op="ok")
        a.nothing(0.1)
        self.assertFrame(w.call(v=1, op="rep", id=job["id"], text="right"), op="ok")
        self.assertFrame(a.recv(), op="rep", id="q1", text="right")

    def test_weakness_12_the_identity_of_the_sender_is_on_its_message(self):
        hub = self.hub()
        a = self.conn(hub)
        a.call(v=1, op="hello", **{"from": "root"})
        a.put("q", "x", by="uid:4711")
        got = a.call(v=1, op="take", name="q")
        self.assertFrame(got, by=a.identity())

    @harness.local("command lines")
    def test_weakness_13_listen_without_value_is_a_usage_error(self):
        out = harness.cli("serve", "--listen")
        self.assertEqual(out.returncode, 2)
        self.assertIn(b"--listen", out.stderr)
        hub = harness.Hub(start=False)
        out = hub.run(argv=["--local", "--listen"], timeout=10)
        self.assertEqual(out.returncode, 2)

    def test_weakness_13_a_protocol_error_says_why(self):
        hub = self.hub()
        for bad in (b"HTTP/1.1 ", b"ZMQC\0\0\0\0", b"ZMQC\xff\0\0\0", frame(b"[1]"),
                    frame(v=2, op="ping")):
            c = self.conn(hub)
            c.send_raw(bad)
            self.assertErr(c.recv(), "bad_frame")
            self.assertTrue(c.closed())

    def test_weakness_13_pipelined_reserves_carry_their_ids(self):
        hub = self.hub()
        a, b = self.conn(hub), self.conn(hub)
        b.send_raw(b"".join(frame(v=1, op="reserve", id="r%d" % i, name="q%d" % i)
                            for i in range(20)))
        b.sync()
        for i in reversed(range(20)):
            a.put("q%d" % i, "%d" % i)
            self.assertFrame(b.recv(), op="msg", id="r%d" % i, name="q%d" % i, text="%d" % i)

    def test_weakness_14_mailboxes_sessions_and_bytes_are_bounded(self):
        hub = self.hub("--mailboxes-max", "10", "--sessions-max", "5", "--session-bytes", "64k")
        a = self.conn(hub)
        for i in range(10):
            self.assertEqual(a.put("q%d" % i, "x")["op"], "ok")
        self.assertErr(a.put("q10", "x"), "full")
        others = []
        for _ in range(20):
            c = self.conn(hub)
            try:
                c.sync()
                others.append(c)
            except (AssertionError, Closed, OSError):
                pass
        self.assertEqual(len(others), 4)
        # A flood of pings whose answers nobody reads stays in the kernel, not in the hub.
        c, before = others[0], hub.rss()
        c.sock.setblocking(False)
        data = frame(v=1, op="ping", id="x" * 1000) * 64
        accepted, end = 0, time.monotonic() + 1.0
        while time.monotonic() < end and accepted < 64 << 20:
            try:
                accepted += c.sock.send(data)
            except BlockingIOError:
                time.sleep(0.01)
        self.assertLess(accepted, harness.UNDERWAY_BYTES + (4 << 20))
        self.assertLess(hub.rss() - before, (16 << 20) * SLOW)
        a.sync()

    def test_weakness_14_an_acknowledged_put_survives_a_crash_while_it_is_handed_over(self):
        hub = self.hub(durable=True)
        for n in range(8):
            a, w = self.conn(hub), self.conn(hub)
            w.send(v=1, op="ready", name="q")
            w.sync()
            self.assertEqual(a.put("q", "m%d" % n)["op"], "ok")
            hub.restart(signal.SIGKILL)
            got = self.conn(hub).call(v=1, op="take", name="q", wait=5)
            self.assertEqual((got["op"], payload(got)), ("msg", b"m%d" % n))

    def test_weakness_15_a_taker_that_leaves_after_reading_has_taken(self):
        hub = self.hub()
        a = self.conn(hub)
        for n in range(300):
            a.put("q", "m%d" % n)
            c = hub.connect()
            got = c.call(v=1, op="take", name="q", wait=5)
            c.reset() if n % 2 else c.close()
            self.assertEqual(payload(got), b"m%d" % n)
            if n % 2:  # a waiter is there while the taker leaves
                self.assertErr(a.call(v=1, op="take", name="q", wait=0.002), "empty")
        self.assertErr(a.call(v=1, op="take", name="q", wait=0.2), "empty")

    def test_weakness_16_a_cancelled_waiter_never_hides_a_message(self):
        hub = self.hub()
        p, live = self.conn(hub), self.conn(hub)
        for n in range(200):
            gone = [hub.connect() for _ in range(3)]
            for c in gone:
                c.send(v=1, op=("take", "ready", "reserve")[n % 3], name="q")
                c.sync()
            live.send(v=1, op="take", name="q")
            live.sync()
            together(*([c.close for c in gone]
                       + [lambda: self.assertEqual(p.put("q", "m%d" % n)["op"], "ok")]))
            # At most once: a take that had begun to leave may have got it; tell by the depth.
            try:
                got = live.recv(0.5 if n % 3 == 0 else 5)
                self.assertEqual(payload(got), b"m%d" % n)
            except TimeoutError:
                self.assertEqual(n % 3, 0, "a leased message did not come back")
                stat = p.call(v=1, op="stat", name="q")["result"]
                self.assertEqual((stat["depth"], stat["waiting"]), (0, 1), stat)
                p.put("q", "again")
                self.assertEqual(payload(live.recv()), b"again")

    def test_weakness_16_a_wait_that_ends_never_hides_a_message(self):
        hub = self.hub()
        p, short, live = self.conn(hub), self.conn(hub), self.conn(hub)
        for n in range(60):
            short.send(v=1, op="take", name="q", wait=0.005)
            live.send(v=1, op="take", name="q")
            time.sleep(0.0002 * (n % 50))
            p.put("q", "m%d" % n)
            first = short.recv()
            if first["op"] == "err":
                self.assertEqual(payload(live.recv()), b"m%d" % n)
            else:
                self.assertEqual(payload(first), b"m%d" % n)
                p.put("q", "for the other")
                self.assertEqual(payload(live.recv()), b"for the other")

    def test_weakness_17_names_cannot_forge_log_lines(self):
        hub = self.hub("--trace")
        c = self.conn(hub)
        evil = "q\nzmqcat s9 in op=put name=forged\x1b[31m\x07\x7f\u009b\u2028\r"
        c.call(v=1, op="hello", id=evil, **{"from": evil})
        c.put(evil, "x", id=evil)
        c.call(v=1, op="pub", id=evil, name=evil)
        c.call(v=1, op=evil[:60], id=evil)
        c.sync()
        wait_for(lambda: hub.logged().count("forged") >= 3)
        with open(hub.log, "rb") as f:
            log = f.read()
        self.assertNotRegex(log, rb"[\x00-\x09\x0b-\x1f\x7f]")
        self.assertNotIn("\u009b".encode(), log)
        self.assertNotIn("\u2028".encode(), log)
        for line in log.decode().splitlines():
            self.assertFalse(line.startswith("zmqcat s9 in op=put name=forged"), line)


if __name__ == "__main__":
    harness.main()
