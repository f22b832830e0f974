#!/usr/bin/env python3
"""The bus protocol sentence by sentence (docs/man/zmqc.5): operations, additions, limits, control."""
import json, os, re, signal, socket, sys, time, unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
from harness import SLOW, Closed, Conn, frame, payload, wait_for

MIB = 1 << 20
EMPTY, GONE = "mailbox: empty", "mailbox: delivery not found"


def keys(raw):
    return [k for k, _ in harness.pairs(raw)]


class Frames(harness.Case):
    def test_one_err_then_the_end_and_others_never_notice(self):
        hub = self.hub()
        calm, bad = self.conn(hub), self.conn(hub)
        bad.send_raw(frame(v=1, op="put", id="1", name="q", text="kept") + frame(b'{"v":1')
                     + frame(v=1, op="put", id="2", name="q", text="never"))
        self.assertFrame(bad.recv(), op="ok", id="1")
        raw = bad.recv_bytes()
        self.assertEqual(keys(raw), ["v", "op", "error", "code"])
        self.assertErr(json.loads(raw[8:]), "bad_frame")
        self.assertRaises(Closed, bad.recv)
        self.assertEqual(payload(calm.call(v=1, op="take", name="q")), b"kept")
        self.assertErr(calm.call(v=1, op="take", name="q", wait=0), "empty")

    def test_session_and_reason_are_logged_once(self):
        hub = self.hub()
        before = len(hub.logged().splitlines())
        c = self.conn(hub)
        c.send(b"[]")
        reason = c.recv()["error"]
        self.assertTrue(c.closed())
        wait_for(lambda: len(hub.logged().splitlines()) > before)
        self.conn(hub).sync()
        lines = hub.logged().splitlines()[before:]
        self.assertEqual(len(lines), 1, lines)
        self.assertRegex(lines[0], r"\bs[0-9]+\b")
        self.assertIn(reason.split(":")[-1].strip(), lines[0])

    def test_lengths(self):
        hub = self.hub()
        for size, good in ((2097152, True), (2097153, False), (0, False), (1 << 31, False)):
            c = self.conn(hub)
            if good:
                c.send_raw(frame(b'{"op":"ping"' + b" " * (size - 13) + b"}"))
                self.assertEqual(c.recv()["op"], "pong")
            else:
                c.send_raw(b"ZMQC" + size.to_bytes(4, "big"))
                self.assertErr(c.recv(), "bad_frame")
                self.assertTrue(c.closed())

    def test_split_at_any_byte_and_many_in_one_write(self):
        hub = self.hub()
        c = self.conn(hub)
        data = frame(v=1, op="put", id="é", name="q", text="a\"\\\u2028🙂") + frame(v=1, op="ping")
        c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        for cut in range(1, len(data)):
            c.send_raw(data[:cut])
            if cut % 7 == 0:
                time.sleep(0.001)
            c.send_raw(data[cut:])
            self.assertEqual((c.recv()["op"], c.recv()["op"]), ("ok", "pong"))
        for i in range(len(data)):
            c.send_raw(data[i:i + 1])
        self.assertEqual((c.recv()["op"], c.recv()["op"]), ("ok", "pong"))
        c.send_raw(frame(v=1, op="ping", id="x") * 500 + b"ZM")
        for _ in range(500):
            self.assertEqual(c.recv()["id"], "x")
        c.send_raw(frame(v=1, op="ping", id="y")[2:])
        self.assertEqual(c.recv()["id"], "y")

    def test_written_order_and_escapes(self):
        hub = self.hub()
        c = self.conn(hub)
        text = "<>&\u2028\u2029\x7f/é🙂\0\x01\b\f\n\r\t\"\\"
        c.call(v=1, op="put", id="i", name=text, text=text, headers={"k" + text: text},
               **{"from": text})
        c.send(v=1, op="reserve", name=text, max=1)
        raw = c.recv_bytes()
        self.assertEqual(keys(raw), "v op id name from text body lease delivery headers attempt "
                                    "at by end".split())
        escaped = ('<>&\\u2028\\u2029\x7f/é🙂\\u0000\\u0001\\b\\f\\n\\r\\t\\"\\\\'
                   .replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))
        fields = dict(harness.pairs(raw))
        for key in ("name", "from", "text"):
            self.assertEqual(fields[key], '"%s"' % escaped)
        self.assertEqual(fields["headers"], '{"k%s":"%s"}' % (escaped, escaped))

    def test_strings_that_are_too_long_or_no_utf8(self):
        hub = self.hub()
        c = self.conn(hub)
        for key in ("id", "name", "from"):
            for size, wanted in ((1024, "ok"), (1025, "err")):
                fields = dict({"id": "1", "name": "q", "text": "x"}, **{key: "é" * 512 if
                              size == 1024 else "é" * 512 + "x"})
                got = c.call(v=1, op="put", **fields)
                self.assertEqual(got["op"], wanted, (key, size))
                if wanted == "err":
                    self.assertErr(got, "invalid")
                    self.assertEqual(got.get("id"), "1" if key != "id" else None)
        self.assertErr(c.call(v=1, op="x" * 65, id="i"), "invalid")
        self.assertErr(c.call(v=1, op="x" * 64, id="i"), "unknown_op", "unknown op " + "x" * 64)
        for key in ("text", "id", "name", "from"):
            for bad in (b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc3",
                        b"\\ud800", b"\\udc00x", b"\\ud800\\u0041"):
                fields = dict(id=b"i", name=b"q", text=b"x")
                fields[key] = bad
                body = b",".join(b'"%s":"%s"' % (k.encode(), v) for k, v in fields.items())
                got = c.call(b'{"op":"put",%s}' % body)
                self.assertErr(got, "invalid")
                if key == "text":
                    self.assertEqual(got["error"], "text is not valid UTF-8: send it as body")
        self.assertErr(c.call(v=1, op="put", name="q", text="x", delivery="d" * 2000), "invalid")
        c.sync()

    def test_every_payload_survives(self):
        hub = self.hub()
        c = self.conn(hub)
        for data in (bytes(range(256)), b"\0", "\0".encode(), "\ufffd\uffff\U0010ffff".encode(),
                     b"\xef\xbb\xbfbom", b"x" * MIB, bytes(range(256)) * 4096, b" ", b"null"):
            body = harness.base64.b64encode(data).decode()
            self.assertEqual(c.call(v=1, op="put", name="q", body=body)["op"], "ok")
            got = c.call(v=1, op="take", name="q")
            self.assertEqual(payload(got), data)
            self.assertEqual(harness.base64.b64encode(data).decode(), got["body"])
            try:
                text = data.decode()
                if "text" not in got:
                    self.assertGreater(len(data), 600000)
                else:
                    self.assertEqual(got["text"], text)
            except UnicodeDecodeError:
                self.assertNotIn("text", got)

    def test_a_code_on_every_err(self):
        hub = self.hub("--mailbox-cap", "1")
        c = self.conn(hub)
        c.put("full", "x")
        for fields, code, text in (
                (dict(op="put", name="full", text="y"), "full", "mailbox: queue full"),
                (dict(op="req", name="full", text="y"), "full", "mailbox: queue full"),
                (dict(op="put", name="q", text="x" * (MIB + 1)), "too_large",
                 "mailbox: payload too large"),
                (dict(op="pub", name="q", text="x" * (MIB + 1)), "too_large",
                 "mailbox: payload too large"),
                (dict(op="req", name="q", text="x" * (MIB + 1)), "too_large",
                 "mailbox: payload too large"),
                (dict(op="put"), "empty_name", "mailbox: empty name"),
                (dict(op="take"), "empty_name", "mailbox: empty name"),
                (dict(op="reserve"), "empty_name", "mailbox: empty name"),
                (dict(op="ready"), "empty_name", "mailbox: empty name"),
                (dict(op="req"), "empty_name", "mailbox: empty name"),
                (dict(op="pub"), "empty_name", "mailbox: empty name"),
                (dict(op="take", name="q", wait=0), "empty", EMPTY),
                (dict(op="ack", delivery="x"), "no_delivery", GONE),
                (dict(op="nack", delivery="x"), "no_delivery", GONE),
                (dict(op="touch", delivery="x"), "no_delivery", GONE),
                (dict(op="frob"), "unknown_op", "unknown op frob"),
                (dict(op="$x", name="$x"), "unknown_op", "unknown op $x"),
                (dict(op="put", name="$x"), "denied", "name is reserved"),
                (dict(op="pub", name="$zmqcat.x"), "denied", "name is reserved"),
                (dict(op="req", name="$x"), "denied", "name is reserved"),
                (dict(op="take", name="q", wait=-1), "invalid", None)):
            got = c.call(v=1, id="e", **fields)
            self.assertErr(got, code, text)
            self.assertEqual((got["id"], "name" in got), ("e", False))
        self.assertErr(c.call(v=1, op="req", name="q"), "no_id", "req: missing correlation id")


class Operations(harness.Case):
    def test_hello_names_the_session_and_may_come_again(self):
        hub = self.hub()
        c = self.conn(hub)
        first = c.call(v=1, op="hello", id="1")
        self.assertFrame(first, op="ok", id="1", **{"from": "@"})
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
        for n, end in enumerate((Conn.close, Conn.half_close, lambda c: c.send(b"["))):
            b = self.conn(hub)
            for i in range(6):
                a.put("q", str(i))
            for i in range(3):
                b.call(v=1, op=("reserve", "ready")[i % 2], name="q")
            end(b)
            for i in range(6):
                got = a.call(v=1, op="take", name="q", wait=5)
                if i == 0 and payload(got) == b"3":  # the end was not seen yet
                    self.fail("a session's end was not worked off before a later request")
                self.assertFrame(got, text=str(i))

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
        a.send(v=1, op="req", id="2" * 1000, name="svc", text="in")
        job = w.call(v=1, op="ready", name="svc")
        head = frame(v=1, op="rep", id=job["id"], text="")
        self.assertFrame(w.call(v=1, op="rep", id=job["id"], text="x" * (2097152 - len(head) + 8)),
                         op="ok")
        self.assertFrame(a.recv(), op="rep", id="2" * 1000)

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
        start = time.monotonic()
        for i in range(200):
            self.assertFrame(p.call(v=1, op="pub", name="e", text="%d " % i + "x" * 20000), subs=2)
            self.assertEqual(int(payload(well.recv()).split()[0]), i)
        self.assertLess(time.monotonic() - start, 10 * SLOW)
        got = []
        try:
            while True:
                got.append(int(payload(deaf.recv(0.5)).split()[0]))
        except TimeoutError:
            pass
        self.assertLess(len(got), 150)
        self.assertEqual(got, list(range(len(got))))
        p.call(v=1, op="pub", name="e", text="1000")  # there is room again
        self.assertEqual(payload(deaf.recv()), b"1000")

    def test_half_close(self):
        hub = self.hub()
        a, c = self.conn(hub), self.conn(hub)
        a.put("q", "x")
        c.send_raw(frame(op="take", id="t", name="q") + frame(op="put", id="p", name="r", text="y")
                   + frame(op="take", name="none") + frame(op="reserve", name="none")
                   + frame(op="ready", name="none") + frame(op="req", id="j", name="jobs", text="job")
                   + frame(op="ping", id="e"))
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
        silent, holder, a = (self.conn(hub, pong=False), self.conn(hub, pong=False),
                             self.conn(hub))
        a.put("q", "job")
        job = holder.call(v=1, op="ready", name="q", lease=5)
        start = time.monotonic()
        times = []
        try:
            while True:
                self.assertFrame(json.loads(silent.recv_bytes()[8:]), op="ping")
                times.append(time.monotonic() - start)
        except Closed:
            pass
        took = time.monotonic() - start
        self.assertTrue(2.4 <= took <= 3.4 * SLOW, took)  # 3 x 0.5 + 1
        self.assertTrue(4 <= len(times) <= 6, times)
        # The worker does not read, so it answers no ping, until well after that.
        while time.monotonic() < start + 3.8:
            self.assertEqual(a.call(v=1, op="ping")["op"], "pong")
            time.sleep(0.1)
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

    @unittest.skipUnless(harness.LONG, "20 s; in make check-all")
    def test_output_without_progress_for_15_s_ends_it(self):
        hub = self.hub("--heartbeat=0", "--session-bytes", "64k")
        deaf, p = self.conn(hub), self.conn(hub)
        deaf.call(v=1, op="sub", name="e")
        for _ in range(100):
            p.call(v=1, op="pub", name="e", text="x" * 100000)
        start = time.monotonic()
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
        self.assertLess(sent, 4 << 20)  # two socket buffers and the bound
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
        left = []
        while True:
            got = a.call(v=1, op="take", name="q", wait=1)
            if got["op"] == "err":
                break
            left.append(int(payload(got)[:2]))
        self.assertEqual(left, list(range(20 - len(left), 20)))
        self.assertGreater(len(left), 10)  # the kernel took the first few


class Waiting(harness.Case):
    def test_wait(self):
        hub = self.hub()
        c, a = self.conn(hub), self.conn(hub)
        for op in ("take", "reserve", "ready"):
            self.assertErr(c.call(v=1, op=op, id="i", name="q", wait=0), "empty", EMPTY)
            start = time.monotonic()
            got = c.call(v=1, op=op, id="i", name="q", wait=0.25)
            self.assertErr(got, "empty", EMPTY)
            self.assertEqual(got["id"], "i")
            self.assertTrue(0.24 <= time.monotonic() - start < 1.2 * SLOW)
            # A wait that is over takes nothing any more.
            a.put("q", "x")
            c.sync()
            self.assertEqual(a.call(v=1, op="stat", name="q")["result"]["depth"], 1)
            self.assertEqual(payload(a.call(v=1, op="take", name="q", wait=0)), b"x")
            c.send(v=1, op=op, name="q", wait=20)
            c.sync()
            a.put("q", "y")
            got = c.recv()
            self.assertEqual(payload(got), b"y")
            if op != "take":
                c.call(v=1, op="ack", delivery=got["delivery"])

    def test_waits_end_in_the_order_of_their_time(self):
        hub = self.hub()
        c = self.conn(hub)
        for n, wait in ((1, 0.3), (2, 0.1), (3, 0.2)):
            c.send(v=1, op="take", id=str(n), name="q", wait=wait)
        self.assertEqual([c.recv()["id"] for _ in range(3)], ["2", "3", "1"])

    def test_max_and_end(self):
        hub = self.hub()
        c, a = self.conn(hub), self.conn(hub)
        for op in ("reserve", "ready"):
            for i in range(5):
                a.put("q", str(i), id=str(i))
            c.send(v=1, op=op, id="b", name="q", max=3, lease=100)
            batch = [c.recv() for _ in range(3)]
            self.assertEqual([payload(m) for m in batch], [b"0", b"1", b"2"])
            self.assertEqual([m.get("end") for m in batch], [None, None, True])
            self.assertEqual(len({m["delivery"] for m in batch}), 3)
            self.assertEqual({m["id"] for m in batch}, {"b"})
            c.send(v=1, op=op, id="b", name="q", max=1024)
            batch += [c.recv() for _ in range(2)]
            self.assertEqual([m.get("end") for m in batch[3:]], [None, True])
            c.sync()
            self.assertFrame(c.call(v=1, op="ack", deliveries=[m["delivery"] for m in batch]),
                             op="ok", failed=None)
            self.assertErr(c.call(v=1, op=op, name="q", max=3, wait=0), "empty")
            # It waits for one, then gives what is there.
            c.send(v=1, op=op, id="b", name="q", max=5)
            c.sync()
            a.send_raw(frame(op="put", name="q", text="x") + frame(op="put", name="q", text="y"))
            self.assertEqual((a.recv()["op"], a.recv()["op"]), ("ok", "ok"))
            got = [c.recv()]
            while "end" not in got[-1]:
                got.append(c.recv())
            c.sync()
            self.assertLessEqual(len(got), 2)
            for m in got:
                c.call(v=1, op="ack", delivery=m["delivery"])
            while len(got) < 2:
                got.append(a.call(v=1, op="take", name="q", wait=0))
            self.assertEqual([payload(m) for m in got], [b"x", b"y"])
            a.put("q", "one")
            single = c.call(v=1, op=op, name="q")
            self.assertNotIn("end", single)
            c.call(v=1, op="ack", delivery=single["delivery"])
        for bad in (0, 1025, -1):
            self.assertErr(c.call(v=1, op="reserve", name="q", max=bad, wait=0), "invalid")


class Headers(harness.Case):
    def test_kept_in_order_and_as_given(self):
        hub = self.hub()
        a, b = self.conn(hub), self.conn(hub)
        given = {"z": "1", "a": "<&>\u2028", "Content-Type": "", "é": "🙂\0", "": "no name"}
        text = json.dumps(given, ensure_ascii=False)

        def order(raw):
            return list(json.loads(dict(harness.pairs(raw))["headers"]).items())
        a.call(v=1, op="put", name="q", headers=given)
        b.send(v=1, op="take", name="q")
        self.assertEqual(order(b.recv_bytes()), list(given.items()), text)
        b.call(v=1, op="sub", name="e")
        a.call(v=1, op="pub", name="e", headers=given)
        self.assertEqual(order(b.recv_bytes()), list(given.items()))
        self.assertEqual(b.call(v=1, op="unsub")["op"], "ok")
        b.send(v=1, op="sub", name="e")
        b.recv()
        self.assertEqual(order(b.recv_bytes()), list(given.items()))  # the last value too
        a.send(v=1, op="req", id="1", name="svc", headers=given)
        b.send(v=1, op="ready", name="svc")
        raw = b.recv_bytes()
        self.assertEqual(order(raw), list(given.items()))
        b.call(v=1, op="rep", id=json.loads(raw[8:])["id"], headers=given)
        self.assertEqual(order(a.recv_bytes()), list(given.items()))
        a.call(v=1, op="put", name="q", text="x", headers={})
        self.assertNotIn("headers", a.call(v=1, op="take", name="q"))

    def test_limits(self):
        hub = self.hub()
        c = self.conn(hub)
        for headers, good in (({"k%d" % i: "" for i in range(64)}, True),
                              ({"k%d" % i: "" for i in range(65)}, False),
                              ({"k": "v" * (16384 - 1)}, True), ({"k": "v" * 16384}, False),
                              ({"kk": "v" * 8190, "ll": "w" * 8190}, True),
                              ({"kk": "v" * 8190, "ll": "w" * 8191}, False),
                              ({"k%d" % i: "" for i in range(300)}, False)):
            for op in ("put", "pub", "req"):
                name = op + ".x"
                c.send(v=1, op=op, id="i", name=name, headers=headers)
                if op == "req" and good:
                    c.sync()
                    self.assertEqual(c.call(v=1, op="take", name=name)["headers"], headers)
                    continue
                got = c.recv()
                if good:
                    self.assertEqual(got["op"], "ok")
                else:
                    self.assertEqual(got["op"], "err")
                    self.assertIn(got["code"], ("too_large", "invalid"))
                c.call(v=1, op="take", name=name, wait=0)

    def test_reserved_names(self):
        hub = self.hub()
        c = self.conn(hub)
        for name in ("x-dead-from", "x-dead-reason", "x-dead-", "x-zmqcat-", "x-zmqcat-id"):
            for op in ("put", "pub", "req"):
                self.assertErr(c.call(v=1, op=op, id="i", name="q", headers={"a": "b", name: "y"}),
                               "invalid")
        for name in ("x-dead", "x-zmqcat", "y-x-dead-from"):
            self.assertEqual(c.call(v=1, op="put", name="q", headers={name: "1"})["op"], "ok")


class Times(harness.Case):
    def test_delay_on_put(self):
        hub = self.hub()
        a, b = self.conn(hub), self.conn(hub)
        start = time.monotonic()
        a.call(v=1, op="put", id="1", name="q", text="late", delay=0.4)
        stat = a.call(v=1, op="stat", name="q")["result"]
        self.assertEqual((stat["depth"], stat["delayed"]), (0, 1))
        a.put("q", "now")
        self.assertEqual(payload(b.call(v=1, op="take", name="q", wait=0)), b"now")
        a.put("q", "after")
        self.assertErr(b.call(v=1, op="take", name="other", wait=0), "empty")
        self.assertFrame(a.put("q", "dup", id="1"), op="ok")
        wait_for(lambda: a.call(v=1, op="stat", name="q")["result"]["depth"] == 2)
        self.assertGreater(time.monotonic() - start, 0.39)
        # It enters at its sequence number: before what was put after it.
        self.assertEqual(payload(b.call(v=1, op="take", name="q")), b"late")
        self.assertEqual(payload(b.call(v=1, op="take", name="q")), b"after")
        self.assertErr(b.call(v=1, op="take", name="q", wait=0), "empty")
        a.call(v=1, op="put", name="q", text="wakes", delay=0.1)
        self.assertEqual(payload(b.call(v=1, op="take", name="q", wait=10)), b"wakes")

    def test_delayed_ones_count_towards_capacity(self):
        hub = self.hub("--mailbox-cap", "2")
        a = self.conn(hub)
        self.assertEqual(a.put("q", "1", delay=60)["op"], "ok")
        self.assertEqual(a.put("q", "2")["op"], "ok")
        self.assertErr(a.put("q", "3"), "full")
        self.assertErr(a.put("q", "3", delay=60), "full")

    def test_delay_on_nack(self):
        hub = self.hub()
        a, b = self.conn(hub), self.conn(hub)
        a.put("q", "1")
        a.put("q", "2")
        got = b.call(v=1, op="reserve", name="q")
        start = time.monotonic()
        self.assertFrame(b.call(v=1, op="nack", id="n", delivery=got["delivery"], delay=0.3),
                         op="ok", id="n")
        stat = a.call(v=1, op="stat", name="q")["result"]
        self.assertEqual((stat["depth"], stat["delayed"], stat["leased"]), (1, 1, 0))
        self.assertEqual(payload(b.call(v=1, op="take", name="q")), b"2")
        self.assertFrame(b.call(v=1, op="take", name="q"), text="1", attempt=2)
        self.assertGreater(time.monotonic() - start, 0.29)

    def test_ttl_and_expires(self):
        hub = self.hub()
        a = self.conn(hub)

        def dropped():
            return a.call(v=1, op="stat", name="q")["result"]["dropped"]
        soon = int(time.time() * 1000) + 200
        far = soon + 10 ** 7
        a.put("q", "keep")  # so that the counters of the mailbox stay
        for fields in (dict(ttl=0.2), dict(expires=soon), dict(ttl=0.2, expires=far),
                       dict(ttl=100, expires=soon)):
            self.assertEqual(a.put("q", "gone", **fields)["op"], "ok")
        a.put("q", "stays", ttl=100, expires=far)
        wait_for(lambda: a.call(v=1, op="stat", name="q")["result"]["depth"] == 2)
        self.assertEqual(dropped(), 4)
        self.assertEqual(payload(a.call(v=1, op="take", name="q")), b"keep")
        self.assertEqual(payload(a.call(v=1, op="take", name="q")), b"stays")
        self.assertErr(a.call(v=1, op="take", name="q", wait=0), "empty")

    def test_over_on_arrival_is_ok_dropped_and_counted(self):
        hub = self.hub()
        a = self.conn(hub)
        a.put("q", "keep")
        for fields in (dict(ttl=0), dict(expires=1), dict(ttl=100, expires=1000)):
            self.assertFrame(a.put("q", "gone", id="i", **fields), op="ok", id="i", name="q")
        self.assertEqual(a.call(v=1, op="stat", name="q")["result"]["dropped"], 3)
        a.send(v=1, op="req", id="r", name="q", text="gone", ttl=0)
        a.nothing(0.05)
        self.assertEqual(payload(a.call(v=1, op="take", name="q")), b"keep")
        self.assertErr(a.call(v=1, op="take", name="q", wait=0), "empty")
        # The id is free: nothing was queued under it.
        a.put("q", "new", id="i")
        self.assertEqual(payload(a.call(v=1, op="take", name="q", wait=0)), b"new")

    def test_a_publication_that_ends(self):
        hub = self.hub()
        p, s = self.conn(hub), self.conn(hub)

        def replayed():
            c = Conn(hub.path)
            try:
                c.send_raw(frame(op="sub", name="e") + frame(op="ping"))
                names = []
                while True:
                    got = c.recv(0.3)
                    if got["op"] == "msg":
                        names.append(got["name"])
            except TimeoutError:
                return sorted(names)
            finally:
                c.close()
        s.call(v=1, op="sub", name="e")
        p.call(v=1, op="pub", name="e1", text="x", ttl=0.3)
        p.call(v=1, op="pub", name="e2", text="x")
        p.call(v=1, op="pub", name="e3", text="x")
        for _ in range(3):
            self.assertEqual(s.recv()["op"], "msg")
        self.assertEqual(p.call(v=1, op="pub", name="e3", text="bye", expires=1)["op"], "ok")
        wait_for(lambda: replayed() == ["e2"], 5)
        s.nothing(0.05)

    def test_numbers_of_seconds(self):
        hub = self.hub()
        c = self.conn(hub)
        ten_years = 315360000
        for op, key in (("put", "delay"), ("put", "ttl"), ("take", "wait"), ("pub", "ttl")):
            for value in (-1, -0.001, ten_years + 1, 1e18):
                self.assertErr(c.call(v=1, op=op, name="q", **{key: value}), "invalid")
        self.assertEqual(c.put("z", "x", delay=ten_years, ttl=ten_years)["op"], "ok")


class Deliveries(harness.Case):
    def test_arrays(self):
        hub = self.hub()
        a, b = self.conn(hub), self.conn(hub)

        def reserve(count):
            for i in range(count):
                a.put("q", str(i))
            b.send(v=1, op="reserve", name="q", max=count)
            return [b.recv()["delivery"] for _ in range(count)]
        held = reserve(4)
        self.assertFrame(b.call(v=1, op="ack", id="k", deliveries=["no", held[0], held[1], held[0]]),
                         op="ok", id="k", failed=["no", held[0]])
        self.assertFrame(b.call(v=1, op="touch", deliveries=[held[2], "gone", held[1]], lease=100),
                         op="ok", failed=["gone", held[1]])
        self.assertFrame(b.call(v=1, op="nack", deliveries=held[2:]), op="ok", failed=None)
        self.assertEqual([payload(b.call(v=1, op="take", name="q")) for _ in range(2)],
                         [b"2", b"3"])
        for op in ("ack", "nack", "touch"):
            self.assertFrame(b.call(v=1, op=op, deliveries=["x", "y"]), op="ok", failed=["x", "y"])
            self.assertErr(b.call(v=1, op=op, id="i", delivery="x", deliveries=["y"]), "invalid")
            self.assertErr(b.call(v=1, op=op, deliveries=["d"] * 1025), "invalid")
        many = reserve(1024)
        self.assertFrame(b.call(v=1, op="ack", deliveries=many), op="ok", failed=None)
        self.assertEqual(a.call(v=1, op="stat", name="q")["result"]["leased"], 0)

    def test_touch_extends(self):
        hub = self.hub()
        a, b = self.conn(hub), self.conn(hub)
        a.put("q", "x")
        start = time.time()
        got = b.call(v=1, op="reserve", name="q", lease=1)
        answer = b.call(v=1, op="touch", id="t", delivery=got["delivery"], lease=3)
        self.assertFrame(answer, op="ok", id="t")
        self.assertTrue(1.9 <= answer["lease"] - start <= 4.1 * SLOW, answer)
        self.assertFrame(a.call(v=1, op="take", name="q", wait=10), text="x", attempt=2)
        self.assertGreater(time.time() - start, 2.8)
        self.assertErr(b.call(v=1, op="touch", delivery=got["delivery"]), "no_delivery")
        a.put("q", "x")
        got = b.call(v=1, op="reserve", name="q", lease=1)
        for asked, wanted in ((10 ** 12, 86400), (-5, 60), (None, 60)):
            answer = b.call(v=1, op="touch", delivery=got["delivery"],
                            **({} if asked is None else {"lease": asked}))
            self.assertLess(abs(answer["lease"] - time.time() - wanted), 2 * SLOW)

    def test_attempt_at_by(self):
        hub = self.hub()
        a, b = self.conn(hub), self.conn(hub)
        before = int(time.time() * 1000) - 1
        a.put("q", "x", id="1", attempt=99, at=5, by="nobody")
        after = int(time.time() * 1000) + 1
        for n in range(1, 5):
            got = b.call(v=1, op=("reserve", "ready")[n % 2], name="q")
            self.assertFrame(got, attempt=n, by="uid:%d" % os.getuid())
            self.assertTrue(before <= got["at"] <= after, got)
            b.call(v=1, op="nack", delivery=got["delivery"])
        self.assertFrame(b.call(v=1, op="take", name="q"), attempt=5)


class Looking(harness.Case):
    def test_stat(self):
        hub = self.hub()
        a, b = self.conn(hub), self.conn(hub)
        for i in range(4):
            a.put("q", "x" * 10)
        a.put("q", "y", delay=100)
        b.send(v=1, op="take", name="waits")
        b.sync()
        b.call(v=1, op="take", name="q")
        got = b.call(v=1, op="reserve", name="q")
        b.call(v=1, op="nack", delivery=got["delivery"])
        b.call(v=1, op="reserve", name="q")
        time.sleep(0.05)
        got = a.call(v=1, op="stat", id="s", name="q")
        self.assertFrame(got, op="ok", id="s")
        stat = got["result"]
        self.assertEqual(list(stat), "name depth leased delayed waiting bytes oldest_ms in out "
                                     "redelivered dropped".split())
        self.assertEqual({k: stat[k] for k in ("name", "depth", "leased", "delayed", "waiting", "in",
                                               "redelivered", "dropped")},
                         dict(name="q", depth=2, leased=1, delayed=1, waiting=0, redelivered=1,
                              dropped=0, **{"in": 5}))
        self.assertGreaterEqual(stat["bytes"], 31)
        self.assertGreaterEqual(stat["oldest_ms"], 50)
        self.assertLess(stat["oldest_ms"], 60000)
        self.assertEqual(a.call(v=1, op="stat", name="waits")["result"]["waiting"], 1)
        total = a.call(v=1, op="stat")["result"]
        self.assertEqual((total["depth"], total["leased"], total["delayed"], total["waiting"]),
                         (2, 1, 1, 1))
        self.assertGreaterEqual(total["mailboxes"], 1)
        self.assertNotIn("name", total)
        self.assertErr(a.call(v=1, op="take", name="none", wait=0), "empty")
        self.assertFrame(a.call(v=1, op="stat", name="none")["result"], depth=0, leased=0)

    def test_list_pages(self):
        hub = self.hub()
        c = self.conn(hub)
        names = sorted({"a%d" % i for i in range(30)} | {"é", "b\0x", "b", "~", "A", "a" * 1024},
                       key=lambda n: n.encode())
        for name in names:
            c.put(name, "x")
        self.assertFrame(c.call(v=1, op="list", id="l"), op="ok", id="l",
                         result={"names": names, "more": False})
        for size in (1, 7, len(names), 1000):
            got, after = [], {}
            while True:
                page = c.call(v=1, op="list", max=size, **after)["result"]
                self.assertLessEqual(len(page["names"]), size)
                got += page["names"]
                if not page["more"]:
                    break
                after = {"after": got[-1]}
            self.assertEqual(got, names)
        prefixed = [n for n in names if n.startswith("a1")]
        self.assertEqual(c.call(v=1, op="list", name="a1")["result"]["names"], prefixed)
        page = c.call(v=1, op="list", name="a1", max=3)["result"]
        self.assertEqual(page, {"names": prefixed[:3], "more": True})
        page = c.call(v=1, op="list", name="a1", after=page["names"][-1])["result"]
        self.assertEqual(page, {"names": prefixed[3:], "more": False})
        self.assertEqual(c.call(v=1, op="list", name="zzz")["result"],
                         {"names": [], "more": False})
        for bad in (0, 1001, -3):
            self.assertErr(c.call(v=1, op="list", max=bad), "invalid")

    def test_a_long_list_has_pages_that_fit_the_frame(self):
        hub = self.hub("--mailboxes-max", "3000")
        c = self.conn(hub)
        names = ["%04d" % i + "\x01" * 1020 for i in range(1200)]  # six bytes each as JSON
        for i in range(0, len(names), 100):
            c.send_raw(b"".join(frame(op="put", name=n) for n in names[i:i + 100]))
            for _ in range(100):
                self.assertEqual(c.recv()["op"], "ok")
        got, after = [], {}
        while True:
            page = c.call(v=1, op="list", max=1000, **after)["result"]
            self.assertTrue(page["names"])
            got += page["names"]
            if not page["more"]:
                break
            after = {"after": got[-1]}
        self.assertEqual(got, names)

    def test_info(self):
        hub = self.hub("--mailbox-cap", "77", "--max-payload", "1m")
        info = self.conn(hub).call(v=1, op="info", id="i")["result"]
        self.assertEqual(set(info), {"version", "uptime", "features", "limits", "identity"})
        self.assertRegex(info["version"], r"^[0-9]+\.[0-9]+")
        self.assertIsInstance(info["features"], list)
        self.assertEqual(info["identity"], "uid:%d" % os.getuid())
        self.assertGreaterEqual(info["uptime"], 0)
        limits = info["limits"]
        self.assertEqual((limits["mailbox-cap"], limits["max-payload"], limits["sub-buffer"],
                          limits["topics-max"], limits["headers-max"], limits["headers-bytes"],
                          limits["mailboxes-max"], limits["sessions-max"], limits["session-bytes"]),
                         (77, MIB, 64, 4096, 64, 16384, 100000, 20000, 8 << 20))

    def test_names_with_a_dollar_are_the_hubs(self):
        hub = self.hub()
        c = self.conn(hub)
        for op in ("put", "pub", "req"):
            for name in ("$", "$zmqcat.x", "$x"):
                self.assertErr(c.call(v=1, op=op, id="i", name=name), "denied", "name is reserved")
        self.assertEqual(c.call(v=1, op="sub", name="$zmqcat.")["op"], "ok")
        self.assertEqual(c.put("a$", "x")["op"], "ok")


class Limits(harness.Case):
    """Each option of the limits, with a small value."""

    def test_max_payload(self):
        hub = self.hub("--max-payload", "1k")
        c = self.conn(hub)
        for op in ("put", "pub", "req"):
            self.assertErr(c.call(v=1, op=op, id="i", name="q", text="x" * 1025), "too_large",
                           "mailbox: payload too large")
        self.assertEqual(c.put("q", "x" * 1024)["op"], "ok")
        self.assertEqual(c.call(v=1, op="put", name="q",
                                body=harness.base64.b64encode(b"x" * 1024).decode())["op"], "ok")
        hub = self.hub("--max-payload", "1400k")
        c = self.conn(hub)
        data = os.urandom(1400 * 1024)
        body = harness.base64.b64encode(data).decode()
        self.assertEqual(c.call(v=1, op="put", name="q", body=body)["op"], "ok")
        self.assertEqual(payload(c.call(v=1, op="take", name="q")), data)
        self.assertEqual(harness.Hub("--max-payload", "1401k", start=False).run().returncode, 78)

    def test_mailbox_cap(self):
        hub = self.hub("--mailbox-cap", "2")
        c = self.conn(hub)
        for wanted in ("ok", "ok", "err"):
            self.assertEqual(c.put("q", "x")["op"], wanted)

    def test_topics_max(self):
        hub = self.hub("--topics-max", "3")
        c = self.conn(hub)
        for i in range(6):
            c.call(v=1, op="pub", name="t%d" % i, text="x")
        c.send(v=1, op="sub", name="t")
        self.assertEqual(c.recv()["op"], "ok")
        for _ in range(3):
            self.assertEqual(c.recv()["op"], "msg")
        c.sync()

    def test_headers(self):
        hub = self.hub("--headers-max", "2", "--headers-bytes", "20")
        c = self.conn(hub)
        for headers, wanted in (({"a": "1", "b": "2"}, "ok"), ({"a": "", "b": "", "c": ""}, "err"),
                                ({"a": "x" * 19}, "ok"), ({"a": "x" * 20}, "err")):
            self.assertEqual(c.call(v=1, op="put", name="q", headers=headers)["op"], wanted)

    def test_mailboxes_max(self):
        hub = self.hub("--mailboxes-max", "2")
        a, b = self.conn(hub), self.conn(hub)
        a.put("q1", "x")
        a.put("q2", "x")
        self.assertErr(a.put("q3", "x"), "full")
        self.assertErr(a.call(v=1, op="req", id="1", name="q3", text="x"), "full")
        self.assertEqual(a.put("q1", "x")["op"], "ok")
        a.call(v=1, op="take", name="q2")
        self.assertEqual(a.put("q3", "x")["op"], "ok")

    def test_sessions_max(self):
        hub = self.hub("--sessions-max", "3")
        held = [self.conn(hub) for _ in range(3)]
        for c in held:
            c.sync()
        for _ in range(3):
            c = self.conn(hub)
            self.assertErr(c.recv(), "unavailable")
            self.assertTrue(c.closed())
        self.assertEqual(hub.status()["sessions"], 3)  # the administrator still gets in
        held[0].close()

        def again():
            c = self.conn(hub)
            c.send(v=1, op="ping", id="p")
            return c.recv()["op"] == "pong"
        wait_for(again)
        for c in held[1:]:
            c.sync()

    def test_unusable_values_name_themselves(self):
        for option, value in (("--mailbox-cap", "0"), ("--max-payload", "x"), ("--sub-buffer", "-1"),
                              ("--heartbeat", "soon"), ("--segment", "1"),
                              ("--sessions-max", "99999999999999999999"), ("--topics-max", "")):
            out = harness.Hub(option, value, start=False).run()
            self.assertEqual(out.returncode, 78 if option != "--heartbeat" else out.returncode,
                             (option, out.stderr))
            self.assertNotEqual(out.returncode, 0)
            self.assertIn(option.lstrip("-").encode(), out.stderr)


class Control(harness.Case):
    def test_status(self):
        hub = self.hub()
        c = self.conn(hub)
        c.put("q", "x")
        got = hub.control().call(v=1, op="status", id="s")
        self.assertFrame(got, op="ok", id="s")
        status = got["result"]
        self.assertEqual(set(status), {"version", "uptime", "sessions", "mailboxes", "storage",
                                       "tunnel"})
        self.assertIsNone(status["tunnel"])
        self.assertEqual((status["sessions"], status["mailboxes"]), (1, 1))
        self.assertEqual(status["storage"]["state"], "memory")
        hub = self.hub(durable=True)
        storage = hub.status()["storage"]
        self.assertEqual(set(storage), {"state", "path", "bytes", "segments", "set_aside"})
        self.assertEqual((storage["state"], storage["path"]), ("ok", hub.mailbox))

    def test_only_its_own_operations(self):
        hub = self.hub()
        c = hub.control()
        self.addCleanup(c.close)
        for op in ("put", "take", "hello", "pub", "sub", "stat", "frob", "kill"):
            self.assertErr(c.call(v=1, op=op, id="i", name="q", text="x"), "unknown_op",
                           "unknown op " + op)
        bus = self.conn(hub)
        for op in ("status", "trace", "drain"):
            self.assertErr(bus.call(v=1, op=op, id="i"), "unknown_op", "unknown op " + op)
        self.assertEqual(os.stat(hub.path + ".ctl").st_mode & 0o777, 0o600)
        c.send(b"[")
        self.assertErr(c.recv(), "bad_frame")
        self.assertTrue(c.closed())
        bus.sync()

    def test_trace_on_and_off(self):
        hub = self.hub()
        c, ctl = self.conn(hub), hub.control()
        self.addCleanup(ctl.close)
        c.put("before", "x")
        self.assertNotIn("before", hub.logged())
        self.assertFrame(ctl.call(v=1, op="trace", id="t", on=True), op="ok", id="t", result={})
        c.put("during one\nforged=1", "secret payload", id="my id")
        wait_for(lambda: hub.logged().count("during") >= 2)
        lines = [x for x in hub.logged().splitlines() if "during" in x]
        self.assertRegex(lines[0], r"zmqcat s[0-9]+ in op=put id=\S.* name=\S.* bytes=[0-9]+$")
        self.assertRegex(lines[1], r"zmqcat s[0-9]+ out op=ok ")
        self.assertNotIn("secret", hub.logged())
        self.assertEqual(ctl.call(v=1, op="trace", on=False)["op"], "ok")
        c.put("later", "x")
        c.sync()
        self.assertNotIn("later", hub.logged())
        self.assertErr(ctl.call(v=1, op="trace", id="t"), "invalid")


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
