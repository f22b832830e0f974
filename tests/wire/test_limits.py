#!/usr/bin/env python3
# tunnelled
"""Each limit as an option with a small value, and the control socket."""
import base64, os, sys, time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
from harness import SLOW, payload, wait_for


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

    def test_headers_that_grow_when_escaped_never_make_a_message_undeliverable(self):
        hub = self.hub("--headers-bytes", "512k")
        c = self.conn(hub)
        for grown, wanted in ((100000, "ok"), (120000, "err")):
            got = c.call(v=1, op="put", name="q", headers={"h": "<" * grown},
                         body=base64.b64encode(b"x" * (1 << 20)).decode())
            self.assertEqual(got["op"], wanted)
        self.assertErr(got, "too_large")
        got = c.call(v=1, op="take", name="q")
        self.assertEqual(got["headers"], {"h": "<" * 100000})
        self.assertEqual(c.call(v=1, op="stat", name="q")["result"]["depth"], 0)

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
        wait_for(lambda: hub.status()["sessions"] == 0)
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

    def drain(self, conns, mark, wanted):
        """Reads all side by side until each has had the mark so many times."""
        seen, last = dict.fromkeys(conns, 0), dict.fromkeys(conns, b"")
        end = time.monotonic() + 60 * SLOW
        while any(seen[c] < wanted for c in conns):
            self.assertLess(time.monotonic(), end)
            for c in conns:
                c.sock.setblocking(False)
                try:
                    data = last[c] + c.sock.recv(1 << 20)
                except BlockingIOError:
                    continue
                self.assertGreater(len(data), len(last[c]), "the hub ended a session")
                seen[c] += data.count(mark)
                last[c] = data[1 - len(mark):]
        self.assertEqual(set(seen.values()), {wanted})

    @harness.local("the memory of one process")
    def test_output_of_all_sessions_together(self):
        """200 sessions ask for 4.6 MB each and read nothing: 930 MB without a bound of all."""
        sessions, asks, size = 200, 4, 500000
        hub = self.hub("--heartbeat", "0", env=harness.FREED_IS_FREE)
        c = self.conn(hub)
        c.put("q", "x" * size)
        before = hub.rss()
        stuck = [self.conn(hub) for _ in range(sessions)]
        for s in stuck:
            for i in range(asks):
                s.send(v=1, op="peek", id="p%d" % i, name="q")
            if s is not stuck[-1]:  # who asks later finds the budget used up
                c.put("w", "meanwhile")
                self.assertEqual(payload(c.call(v=1, op="take", name="w")), b"meanwhile")
        self.assertLess(hub.rss() - before, int((512 << 20) * SLOW) + (64 << 20))
        self.assertEqual(hub.status()["sessions"], sessions + 1)
        self.drain(stuck, b'"peek":true', asks)  # nothing was lost

    @harness.local("a start that fails")
    def test_unusable_values_name_themselves(self):
        for option, value in (("--mailbox-cap", "0"), ("--max-payload", "x"),
                              ("--max-payload", "1401k"), ("--sub-buffer", "-1"),
                              ("--heartbeat", "soon"), ("--segment", "1"),
                              ("--sessions-max", "99999999999999999999"), ("--topics-max", "")):
            out = harness.Hub(option, value, start=False).run()
            self.assertEqual(out.returncode, 78, (option, out.stderr))
            self.assertIn(option.lstrip("-").encode(), out.stderr)


class Control(harness.Case):
    def test_status(self):
        hub = self.hub()
        c = self.conn(hub)
        c.put("q", "x")
        ctl = hub.control()
        self.addCleanup(ctl.close)
        got = ctl.call(v=1, op="status", id="s")
        self.assertFrame(got, op="ok", id="s")
        status = got["result"]
        self.assertLessEqual({"version", "uptime", "sessions", "mailboxes", "storage", "tunnel"},
                             set(status))
        self.assertEqual(status["tunnel"] is not None, bool(harness.TUNNEL))
        self.assertEqual((status["sessions"], status["mailboxes"]), (1, 1))
        self.assertEqual(status["storage"]["state"], "memory")
        hub = self.hub(durable=True)
        storage = hub.status()["storage"]
        self.assertLessEqual({"state", "path", "bytes", "segments", "set_aside"}, set(storage))
        self.assertEqual((storage["state"], storage["path"]), ("ok", hub.mailbox))

    @harness.local("the hub's control socket")
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


if __name__ == "__main__":
    harness.main()
