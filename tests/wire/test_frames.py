#!/usr/bin/env python3
# tunnelled
"""Frames, strings and payloads of the bus protocol (docs/man/zmqc.5)."""
import json, os, socket, sys, time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
from harness import Closed, frame, payload, wait_for

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

        def lines():
            return [x for x in hub.logged().splitlines() if "session" in x]
        self.assertEqual(lines(), [])
        c = self.conn(hub)
        c.send(b"[]")
        reason = c.recv()["error"]
        self.assertTrue(c.closed())
        wait_for(lines)
        self.conn(hub).sync()
        self.assertEqual(len(lines()), 1, lines())
        self.assertRegex(lines()[0], r"\bs[0-9]+\b")
        self.assertIn(reason.split(":")[-1].strip(), lines()[0])

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
        data = frame(v=1, op="put", id="é", name="q", text="a\"\\\u2028🙂")
        data += frame(v=1, op="ping")
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
            for op in ("put", "pub", "req", "rep"):
                self.assertErr(c.call(v=1, op=op, id="i", name="q", headers={"a": "b", name: "y"}),
                               "invalid")
        for name in ("x-dead", "x-zmqcat", "y-x-dead-from"):
            self.assertEqual(c.call(v=1, op="put", name="q", headers={name: "1"})["op"], "ok")


if __name__ == "__main__":
    harness.main()
