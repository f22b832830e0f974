#!/usr/bin/env python3
# tunnelled
"""The operations of the bus protocol sentence by sentence (docs/man/zmqc.5)."""
import json, os, signal, sys, time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
from harness import SLOW, Closed, Conn, frame, payload, wait_for

GONE = "mailbox: delivery not found"


class Operations(harness.Case):
    def test_hello_names_the_session_and_may_come_again(self):
        hub = self.hub()
        c = self.conn(hub)
        first = c.call(v=1, op="hello", id="1")
        self.assertFrame(first, op="ok", id="1")
        self.assertTrue(harness.is_unnamed(first["from"]), first)
        self.assertRegex(first["epoch"], "^[0-9a-f]{32}$")
        self.assertFrame(c.call(v=1, op="hello", id="2", **{"from": "me"}), op="ok",
                         epoch=first["epoch"], **{"from": "me"})
        c.put("q", "x")
        c.call(v=1, op="put", name="q", text="y", **{"from": "claimed"})
        self.assertFrame(c.call(v=1, op="take", name="q"), **{"from": "me"})
        self.assertFrame(c.call(v=1, op="take", name="q"), **{"from": "claimed"})
        c.call(v=1, op="sub", name="e")
        c.call(v=1, op="pub", name="e", text="x")
        self.assertFrame(c.recv(), op="msg", **{"from": "me"})
        self.assertEqual(c.call(v=1, op="ping", id="p")["epoch"], first["epoch"])
        hub.restart()
        self.assertNotEqual(self.conn(hub).call(v=1, op="hello")["epoch"], first["epoch"])

    def test_a_full_mailbox_rejects_the_new_and_takes_back_the_old(self):
        hub = self.hub("--mailbox-cap", "3")
        a, b = self.conn(hub), self.conn(hub)
        for i in range(3):
            a.put("q", str(i), id=str(i))
        self.assertErr(a.put("q", "3", id="3"), "full")
        self.assertFrame(a.put("q", "dup", id="1"), op="ok")
        held = b.call(v=1, op="reserve", name="q")
        self.assertEqual(a.put("q", "3", id="3")["op"], "ok")
        self.assertErr(a.put("q", "4", id="4"), "full")
        b.call(v=1, op="nack", delivery=held["delivery"])  # four now: one over
        self.assertErr(a.put("q", "4", id="4"), "full")
        self.assertEqual([payload(b.call(v=1, op="take", name="q")) for _ in range(4)],
                         [b"0", b"1", b"2", b"3"])

    def test_what_returns_takes_its_old_place(self):
        hub = self.hub()
        a, b = self.conn(hub), self.conn(hub)
        for i in range(5):
            a.put("q", str(i))
        held = [b.call(v=1, op="reserve", name="q") for _ in range(4)]
        for i in (2, 0, 3, 1):
            b.call(v=1, op="nack", delivery=held[i]["delivery"])
        for i in range(5):
            self.assertFrame(a.call(v=1, op="take", name="q"), text=str(i),
                             attempt=2 if i < 4 else 1)

    def test_a_session_that_ends_gives_back_all_in_order(self):
        hub = self.hub()
        a = self.conn(hub)
        for end in (Conn.close, Conn.half_close, lambda c: c.send(b"[")):
            b = self.conn(hub)
            for i in range(6):
                a.put("q", str(i))
            for i in range(3):
                b.call(v=1, op=("reserve", "ready")[i % 2], name="q")
            end(b)
            wait_for(lambda: a.call(v=1, op="stat", name="q")["result"]["depth"] == 6)
            for i in range(6):
                self.assertFrame(a.call(v=1, op="take", name="q"), text=str(i))

    def test_waiters_are_served_first_come_first_served(self):
        hub = self.hub()
        waiters = [self.conn(hub) for _ in range(6)]
        for n, c in enumerate(waiters):
            c.send(v=1, op=("take", "reserve", "ready")[n % 3], id="w", name="q")
            c.sync()
        a = self.conn(hub)
        for n, c in enumerate(waiters):
            a.put("q", str(n))
            self.assertEqual(payload(c.recv()), str(n).encode())

    def test_many_waits_in_one_session_while_other_operations_go_on(self):
        hub = self.hub()
        c, a = self.conn(hub), self.conn(hub)
        for i in range(300):
            c.send(v=1, op="take", name="q%d" % i)
        c.sync()
        self.assertEqual(c.put("other", "x")["op"], "ok")
        self.assertEqual(payload(c.call(v=1, op="take", name="other")), b"x")
        for i in reversed(range(300)):
            a.put("q%d" % i, "x")
            self.assertEqual(c.recv()["name"], "q%d" % i)

    def test_the_answer_comes_before_what_it_causes(self):
        hub = self.hub()
        c = self.conn(hub)

        def order(*frames_in, wanted):
            c.send_raw(b"".join(frames_in))
            self.assertEqual([c.recv()["op"] for _ in wanted], wanted)
        order(frame(op="take", name="q"), frame(op="put", name="q", text="x"), wanted=["ok", "msg"])
        order(frame(op="sub", name="e"), frame(op="pub", name="e", text="x"),
              wanted=["ok", "ok", "msg"])
        order(frame(op="sub", name="e"), wanted=["ok", "msg"])
        c.put("r", "x")
        got = c.call(op="reserve", name="r")
        order(frame(op="reserve", name="r"), frame(op="nack", delivery=got["delivery"]),
              wanted=["ok", "msg"])
        order(frame(op="req", id="1", name="own", text="x"), frame(op="ready", name="own"),
              wanted=["msg"])

    def test_rep_by_delivery_and_after_reserve(self):
        hub = self.hub()
        a, w = self.conn(hub), self.conn(hub)
        a.send(v=1, op="req", id="1", name="svc", text="in")
        job = w.call(v=1, op="reserve", id="mine", name="svc")
        self.assertFrame(w.call(v=1, op="rep", delivery=job["delivery"], name="svc", text="out",
                                headers={"h": "1"}, **{"from": "wrk"}), op="ok")
        self.assertFrame(a.recv(), op="rep", id="1", name="svc", text="out", headers={"h": "1"},
                         **{"from": "wrk"})
        self.assertErr(w.call(v=1, op="ack", delivery=job["delivery"]), "no_delivery")
        stat = a.call(v=1, op="stat", name="svc")["result"]
        self.assertEqual((stat["depth"], stat["leased"]), (0, 0))

    def test_rep_acknowledges_whatever_it_names(self):
        """A plain message as well as a request, by its id or by its delivery; only once."""
        hub = self.hub()
        a, w = self.conn(hub), self.conn(hub)
        a.put("q", "one", id="1")
        a.put("q", "two", id="2")
        one, two = (w.call(v=1, op="ready", name="q") for _ in range(2))
        self.assertFrame(w.call(v=1, op="rep", id=one["id"], text="x"), op="ok", id=one["id"])
        self.assertFrame(w.call(v=1, op="rep", delivery=two["delivery"], text="x"), op="ok")
        for job in (one, two):
            self.assertErr(w.call(v=1, op="ack", delivery=job["delivery"]), "no_delivery", GONE)
        w.close()
        wait_for(lambda: hub.status()["sessions"] == 1)
        self.assertErr(a.call(v=1, op="take", name="q", wait=0), "empty")
        a.sync()

    def test_rep_may_fill_the_envelope(self):
        hub = self.hub()
        a, w = self.conn(hub), self.conn(hub)
        a.send(v=1, op="req", id="1", name="svc", text="in")
        job = w.call(v=1, op="ready", name="svc")
        data = os.urandom(1500000)
        body = harness.base64.b64encode(data).decode()
        self.assertFrame(w.call(v=1, op="rep", id=job["id"], name="svc", body=body), op="ok")
        got = a.recv()
        self.assertEqual((got["op"], payload(got) == data, "text" in got), ("rep", True, False))
        # A rep whose frame only just fits: whatever the hub adds must not push it over.
        for name in ("", "long" * 256):
            w.call(v=1, op="hello", **{"from": name})
            a.send(v=1, op="req", id="2" * 1000, name="svc", text="in")
            job = w.call(v=1, op="ready", name="svc")
            head = frame(v=1, op="rep", id=job["id"], text="")
            text = "x" * (2097152 - len(head) + 8)
            self.assertFrame(w.call(v=1, op="rep", id=job["id"], text=text), op="ok")
            got = a.recv()
            self.assertFrame(got, op="rep", id="2" * 1000)
            self.assertTrue(got["text"] == text)
            if name:
                self.assertNotIn("from", got)  # no room for it

    def test_rep_to_a_requester_that_has_gone_is_ok(self):
        hub = self.hub()
        a, w = self.conn(hub), self.conn(hub)
        a.send(v=1, op="req", id="1", name="svc", text="in")
        a.sync()
        a.close()
        job = w.call(v=1, op="ready", name="svc")
        self.assertEqual(payload(job), b"in")
        self.assertFrame(w.call(v=1, op="rep", id=job["id"], text="out"), op="ok")
        stat = w.call(v=1, op="stat", name="svc")["result"]
        self.assertEqual((stat["depth"], stat["leased"]), (0, 0))

    def test_huginns_worker_and_caller(self):
        """hello twice, ready, rep by message id with body, expects ok: as huginn's sessions do."""
        hub = self.hub()
        w, r = self.conn(hub), self.conn(hub)
        for c, name in ((w, "huginn:local:0"), (r, "caller")):
            c.call(v=1, op="hello", id="1")
            c.call(v=1, op="hello", id="2", **{"from": name})
        w.send(v=1, op="ready", id="3", name="huginn.local")
        r.send(v=1, op="req", id="q", name="huginn.local", body="e30=")
        r.send(v=1, op="req", id="q", name="huginn.local", body="e30=")
        job = w.recv()
        self.assertFrame(job, name="huginn.local", body="e30=", **{"from": "caller"})
        self.assertFrame(w.call(v=1, op="rep", id=job["id"], name="huginn.local", body="W10="),
                         op="ok", id=job["id"])
        self.assertFrame(r.recv(), op="rep", id="q", body="W10=", text=None,
                         **{"from": "huginn:local:0"})
        r.nothing(0.1)

    def test_subscriptions(self):
        hub = self.hub()
        p, s, t = self.conn(hub), self.conn(hub), self.conn(hub)
        self.assertFrame(p.call(v=1, op="pub", id="1", name="a.b", text="1"), op="ok", id="1",
                         name="a.b", subs=0)
        for prefix in ("a.", "a.b", ""):
            s.send(v=1, op="sub", id=prefix, name=prefix)
            self.assertEqual(s.recv()["op"], "ok")
            self.assertFrame(s.recv(), op="msg", name="a.b", text="1")
        t.call(v=1, op="sub", name="$zmqcat.")
        t.sync()
        self.assertFrame(p.call(v=1, op="pub", id="2", name="a.b", text="2"), subs=1)
        self.assertFrame(s.recv(), op="msg", id="2", text="2")
        s.sync()
        t.sync()
        self.assertFrame(s.call(v=1, op="unsub"), op="ok")
        self.assertFrame(p.call(v=1, op="pub", name="a.b", text="3"), subs=0)
        s.sync()
        # An empty publication is a value too.
        self.assertEqual(p.call(v=1, op="pub", name="a.b")["op"], "ok")
        s.call(v=1, op="sub", name="a.b")
        self.assertFrame(s.recv(), op="msg", name="a.b", text=None, body=None)

    def test_a_full_subscriber_loses_only_what_does_not_fit(self):
        hub = self.hub("--sub-buffer", "4")
        p, deaf, well = self.conn(hub), self.conn(hub), self.conn(hub)
        deaf.call(v=1, op="sub", name="e")
        well.call(v=1, op="sub", name="e")
        most = harness.UNDERWAY_BYTES // 40000  # frames of 47 kB
        start = time.monotonic()
        for i in range(2 * most):
            self.assertFrame(p.call(v=1, op="pub", name="e", text="%d " % i + "x" * 20000), subs=2)
            self.assertEqual(int(payload(well.recv()).split()[0]), i)
        self.assertLess(time.monotonic() - start, 10 * SLOW)
        got = []
        try:
            while True:
                got.append(int(payload(deaf.recv(0.5)).split()[0]))
        except TimeoutError:
            pass
        self.assertLess(len(got), most)
        self.assertEqual(got, list(range(len(got))))
        p.call(v=1, op="pub", name="e", text="1000")  # there is room again
        self.assertEqual(payload(deaf.recv()), b"1000")

    def test_half_close(self):
        hub = self.hub()
        a, c = self.conn(hub), self.conn(hub)
        a.put("q", "x")
        c.send_raw(frame(op="take", id="t", name="q") + frame(op="put", id="p", name="r", text="y")
                   + frame(op="take", name="none") + frame(op="reserve", name="none")
                   + frame(op="ready", name="none") + frame(op="ping", id="e")
                   + frame(op="req", id="j", name="jobs", text="job"))
        c.half_close()
        seen = []
        while True:
            try:
                seen.append(c.recv()["op"])
            except Closed:
                break
        self.assertEqual(sorted(seen), ["msg", "ok", "pong"])
        a.put("none", "kept")
        self.assertEqual(payload(a.call(op="take", name="none")), b"kept")
        self.assertEqual(payload(a.call(op="take", name="r", wait=0)), b"y")
        self.assertEqual(payload(a.call(op="take", name="jobs", wait=0)), b"job")

    def test_leases_end_within_a_second_of_their_time(self):
        hub = self.hub()
        a, b = self.conn(hub), self.conn(hub)
        for op in ("reserve", "ready"):
            a.put("q", "x")
            start = time.time()
            got = b.call(v=1, op=op, name="q", lease=1)
            again = a.call(v=1, op="take", name="q", wait=10)
            took = time.time() - start
            self.assertFrame(again, text="x", attempt=2)
            self.assertErr(b.call(v=1, op="ack", delivery=got["delivery"]), "no_delivery", GONE)
            self.assertTrue(0.9 <= took < 2.1 * SLOW, took)
            self.assertLess(abs(got["lease"] - start - 1), 1.1 * SLOW)


class Heartbeats(harness.Case):
    def test_any_frame_proves_life_and_pongs_are_swallowed(self):
        hub = self.hub("--heartbeat=400ms")
        c = self.conn(hub, pong=False)
        end = time.monotonic() + 3
        while time.monotonic() < end:
            c.send(v=1, op=("pong", "ping")[int(time.monotonic() * 10) % 2])
            time.sleep(0.1)
        c.send(v=1, op="ping", id="last")
        got = {}
        while got.get("id") != "last":
            got = c.recv()
            self.assertIn(got["op"], ("pong", "ping"))

    def test_silence_ends_a_session_but_not_one_with_a_lease(self):
        hub = self.hub("--heartbeat=500ms")
        dialled = time.monotonic()
        silent, holder, a = (self.conn(hub, pong=False), self.conn(hub, pong=False),
                             self.conn(hub))
        a.put("q", "job")
        job = holder.call(v=1, op="ready", name="q", lease=5)
        start = time.monotonic()
        times = []
        a.close()
        try:
            while True:
                self.assertFrame(json.loads(silent.recv_bytes()[8:]), op="ping")
                times.append(time.monotonic() - start)
        except Closed:
            pass
        over = time.monotonic()
        # 3 x 0.5 + 1
        self.assertTrue(over - dialled >= 2.4 and over - start <= 3.4 * SLOW, over - start)
        self.assertTrue(4 <= len(times) <= 6, times)
        # The worker does not read, so it answers no ping, until well after that.
        wait_for(lambda: time.monotonic() > start + 3.8)
        holder.send(v=1, op="rep", id=job["id"], text="out")
        ops = []
        while "ok" not in ops:
            ops.append(holder.recv()["op"])
        self.assertEqual(set(ops), {"ping", "ok"})

    def test_a_holder_whose_lease_has_ended_goes_too(self):
        hub = self.hub("--heartbeat=300ms")
        holder, a = self.conn(hub, pong=False), self.conn(hub)
        a.put("q", "job")
        holder.call(v=1, op="reserve", name="q", lease=3)
        start = time.monotonic()
        self.assertFrame(a.call(v=1, op="take", name="q", wait=20), text="job", attempt=2)
        self.assertGreater(time.monotonic() - start, 2.5)
        self.assertTrue(holder.closed(5))

    def test_off(self):
        for value in ("0", "-1s"):
            hub = self.hub("--heartbeat=" + value)
            c = self.conn(hub, pong=False)
            c.nothing(0.3)
            c.sync()

    if harness.LONG:
        def test_output_without_progress_for_15_s_ends_it(self):
            hub = self.hub("--heartbeat=0", "--session-bytes", "64k")
            deaf, p = self.conn(hub), self.conn(hub)
            deaf.call(v=1, op="sub", name="e")
            start = time.monotonic()
            for _ in range(100):
                p.call(v=1, op="pub", name="e", text="x" * 100000)
            wait_for(lambda: p.call(v=1, op="pub", name="e", text="x")["subs"] == 0, 25, 0.2)
            self.assertGreater(time.monotonic() - start, 14)


class SlowReaders(harness.Case):
    def test_past_its_bound_a_session_is_not_read_and_later_gets_all(self):
        hub = self.hub("--session-bytes", "64k")
        slow, other = self.conn(hub, pong=False), self.conn(hub)
        data = b"".join(frame(v=1, op="ping", id="%07d" % i + "x" * 1000) for i in range(30000))
        sent, stuck = 0, time.monotonic()
        slow.sock.setblocking(False)
        while time.monotonic() - stuck < 0.5 and sent < len(data):
            try:
                sent += slow.sock.send(data[sent:sent + 100000])
                stuck = time.monotonic()
            except BlockingIOError:
                time.sleep(0.005)
        self.assertLess(sent, harness.UNDERWAY_BYTES)  # and the bound of the session
        start = time.monotonic()
        for _ in range(20):
            other.sync()
        self.assertLess(time.monotonic() - start, 2 * SLOW)
        whole = sent // len(frame(v=1, op="ping", id="0" * 1007))
        for i in range(whole):
            self.assertEqual(slow.recv()["id"][:7], "%07d" % i)

    def test_a_slow_taker_blocks_nobody(self):
        hub = self.hub()
        slow, a = self.conn(hub), self.conn(hub)
        for _ in range(20):
            slow.send(v=1, op="take", name="q")
        for i in range(20):
            self.assertEqual(a.put("q", "x" * 700000)["op"], "ok")
        self.assertEqual(a.put("r", "y")["op"], "ok")
        self.assertEqual(payload(a.call(v=1, op="take", name="r")), b"y")
        # What did not leave is still there, or on its way; nothing is lost.
        got = 0
        while got < 20:
            self.assertEqual(slow.recv()["op"], "msg")
            got += 1

    def test_a_taker_that_never_reads_loses_nothing_of_what_did_not_leave(self):
        hub = self.hub()
        slow, a = self.conn(hub), self.conn(hub)
        for _ in range(20):
            slow.send(v=1, op="take", name="q")
        slow.sync()
        for i in range(20):
            self.assertEqual(a.put("q", "%02d" % i + "x" * 700000)["op"], "ok")
        a.sync()
        slow.close()
        wait_for(lambda: hub.status()["sessions"] == 1)
        left = []
        while True:
            got = a.call(v=1, op="take", name="q", wait=1)
            if got["op"] == "err":
                break
            left.append(int(payload(got)[:2]))
        self.assertEqual(left, list(range(20 - len(left), 20)))
        self.assertGreater(len(left), 10)  # the kernel took the first few


class Stop(harness.Case):
    def test_waiting_operations_get_err_then_all_get_eof(self):
        hub = self.hub()
        c, s, idle = self.conn(hub), self.conn(hub), self.conn(hub)
        for i, op in enumerate(("take", "reserve", "ready")):
            c.send(v=1, op=op, id=str(i), name="q")
        c.sync()
        s.call(v=1, op="sub", name="")
        idle.sync()
        hub.proc.send_signal(signal.SIGTERM)
        got = [c.recv() for _ in range(3)]
        for g in got:
            self.assertErr(g, "closed", "mailbox: closed")
        self.assertEqual(sorted(g["id"] for g in got), ["0", "1", "2"])
        for x in (c, s, idle):
            self.assertRaises(Closed, x.recv)
        self.assertEqual(hub.proc.wait(10 * SLOW), 0)


if __name__ == "__main__":
    harness.main()
