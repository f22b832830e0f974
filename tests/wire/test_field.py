#!/usr/bin/env python3
# tunnelled
"""Faults that people met in systems like this one, acted out on a hub; time is scaled."""
import os, random, signal, socket, sys, threading, time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
from harness import SLOW, Closed, Conn, frame, payload, together, wait_for

BIG = 2097152


def outcome(hub, body):
    """What one frame with this JSON text does: ("closed", code) or the answer."""
    c = hub.connect()
    try:
        c.send(body if isinstance(body, bytes) else body.encode())
        got = c.recv()
        if got["op"] == "err" and got.get("code") == "bad_frame":
            assert c.closed(), "bad_frame, but the session lives"
            return ("closed", got)
        c.sync()
        return (got["op"], got)
    finally:
        c.close()


class H2(harness.Case):
    """sub: ok first, then the last values, never stale after fresh."""

    def test_H2_joins_at_random_never_see_values_go_down(self):
        hub = self.hub()
        stop, rng = threading.Event(), random.Random(2)
        p = self.conn(hub)
        p.call(v=1, op="pub", name="ev.n", text="0")

        def publish():
            n = 1
            while not stop.is_set():
                p.send_raw(b"".join(frame(v=1, op="pub", name="ev.n", text=str(n + i))
                                    for i in range(20)))
                for _ in range(20):
                    p.recv()
                n += 20

        def join():
            try:
                for _ in range(200):
                    s = hub.connect()
                    frames = [frame(v=1, op="sub", id="1", name="ev."),
                              frame(v=1, op="sub", id="2", name="ev.n")]
                    if rng.random() < 0.3:
                        frames.append(frame(v=1, op="sub", id="3"))
                    s.send_raw(b"".join(frames))
                    oks, last, seen = 0, -1, 0
                    while oks < len(frames) or seen < 3:
                        got = s.recv()
                        if got["op"] == "ok":
                            oks += 1
                            self.assertEqual(got["id"], str(oks))
                            continue
                        self.assertGreater(oks, 0, "a value before ok")
                        value = int(payload(got))
                        # The same value again only as the replay of another sub.
                        self.assertGreaterEqual(value, last)
                        if oks == len(frames) and seen > 1:
                            self.assertGreater(value, last)
                        last, seen = value, seen + (oks == len(frames))
                    s.close()
            finally:
                stop.set()
        together(publish, join)

    def test_H2_overlaps_give_one_copy_and_unsub_ends_all(self):
        hub = self.hub()
        p, s = self.conn(hub), self.conn(hub)
        for name in ("ev.", "ev.n", "", "ev."):
            self.assertEqual(s.call(v=1, op="sub", name=name)["op"], "ok")
        self.assertFrame(p.call(v=1, op="pub", name="ev.n", text="1"), op="ok", subs=1)
        self.assertEqual(payload(s.recv()), b"1")
        s.sync()
        s.call(v=1, op="unsub", name="ev.")
        self.assertFrame(p.call(v=1, op="pub", name="ev.n", text="2"), op="ok", subs=0)
        s.sync()

    def test_H2_the_cache_keeps_4096_topics_and_all_are_replayed(self):
        hub = self.hub()
        p, s = self.conn(hub), self.conn(hub)
        for i in range(0, 5000, 100):
            p.send_raw(b"".join(frame(v=1, op="pub", name="t.%d" % n, body="AP8=",
                                      **{"from": "me%d" % n}) for n in range(i, i + 100)))
            for _ in range(100):
                self.assertEqual(p.recv()["op"], "ok")
        s.send(v=1, op="sub", id="s", name="t.")
        self.assertFrame(s.recv(), op="ok", id="s")
        s.send(v=1, op="ping", id="end")
        names = set()
        while True:
            try:
                got = s.recv(1.0)
            except TimeoutError:
                break
            if got["op"] == "msg":
                self.assertEqual(got["from"], "me" + got["name"][2:])
                self.assertEqual((payload(got), "text" in got), (b"\0\xff", False))
                names.add(got["name"])
        self.assertEqual(len(names), 4096)

    def test_H2_values_published_during_a_slow_replay_stay_in_order(self):
        hub = self.hub("--topics-max", "300")
        p, s = self.conn(hub), self.conn(hub)

        def publish(value):
            for n in range(300):
                p.send(v=1, op="pub", name="t.%d" % n, text=str(value) + " " * 20000)
                p.recv()
        publish(1)
        s.send(v=1, op="sub", id="s", name="t.")  # 6 MB of last values that nobody reads yet
        wait_for(lambda: p.call(v=1, op="pub", name="t.0", text="1")["subs"] == 1)
        publish(2)
        self.assertFrame(s.recv(), op="ok", id="s")
        last = {}
        while True:
            try:
                got = s.recv(0.5)
            except TimeoutError:
                break
            value = int(payload(got))
            self.assertGreaterEqual(value, last.get(got["name"], 0))
            last[got["name"]] = value
        self.assertEqual(len(last), 300)


# JSON of a frame -> "closed" (bad frame), or (op, fields of the answer)
RULES = [
    ('{"op":"reserve","name":"q","lease":0.5}', "closed"),
    ('{"op":"reserve","name":"q","lease":1e999}', "closed"),
    ('{"op":"reserve","name":"q","lease":3e1}', "closed"),
    ('{"op":"reserve","name":"q","lease":9223372036854775808}', "closed"),
    ('{"op":"reserve","name":"q","lease":"30"}', "closed"),
    ('{"op":"reserve","name":"q","lease":true}', "closed"),
    ('{"op":"reserve","name":"q","lease":NaN}', "closed"),
    ('{"op":"reserve","name":"q","lease":-Infinity}', "closed"),
    ('{"op":"reserve","name":"q","lease":01}', "closed"),
    ('{"op":"reserve","name":"q","lease":+1}', "closed"),
    ('{"op":"reserve","name":"q","lease":0x10}', "closed"),
    ('{"v":2,"op":"ping"}', "closed"),
    ('{"v":"1","op":"ping"}', "closed"),
    ('{"v":1.0,"op":"ping"}', "closed"),
    ('{"v":1e0,"op":"ping"}', "closed"),
    ('{"v":true,"op":"ping"}', "closed"),
    ('{"v":18446744073709551617,"op":"ping"}', "closed"),
    ('{"v":4294967297,"op":"ping"}', "closed"),
    ('{"v":0,"op":"ping"}', ("pong", {})),
    ('{"v":null,"op":"ping"}', ("pong", {})),
    ('{"op":"ping","id":7}', "closed"),
    ('{"op":"ping","id":1e19}', "closed"),
    ('{"op":"ping","id":true}', "closed"),
    ('{"op":"ping","id":["a"]}', "closed"),
    ('{"op":"ping","id":{}}', "closed"),
    ('{"op":"ping","id":""}', ("pong", {"id": None})),
    ('{"op":"ping","id":null}', ("pong", {"id": None})),
    ('{"op":"ping","op":"put","name":"q","text":"x"}', "closed"),
    ('{"op":"ping","id":"a","id":"a"}', "closed"),
    ('{"op":"ping","zzz":1,"zzz":2}', "closed"),
    ('{"OP":"ping"}', "closed"),
    ('{"op":"ping","Id":"x"}', "closed"),
    ('{"op":"ping","\\u0069d":"x"}', ("pong", {"id": "x"})),
    ('{"op":"ping","id":"x","\\u0069d":"x"}', "closed"),
    ('{"op":"ping","Zzz":"x"}', ("pong", {})),
    ('{"op":"ping"}x', "closed"),
    ('{"op":"ping"}{"op":"ping"}', "closed"),
    ('{"op":"ping"}\0', "closed"),
    (' \t\r\n{"op":"ping"} \t\r\n', ("pong", {})),
    ('\x0b{"op":"ping"}', "closed"),
    ('[{"op":"ping"}]', "closed"),
    ("null", "closed"), ("1", "closed"), ('"ping"', "closed"), (" ", "closed"),
    ('\ufeff{"op":"ping"}', "closed"),
    ("{'op':'ping'}", "closed"), ('{op:"ping"}', "closed"), ('{"op":"ping",}', "closed"),
    ('{"op":"ping"//x\n}', "closed"), ('{"op":"pi\nng"}', "closed"),
    ('{"op":"p\\x69ng"}', "closed"),
    ('{"op" "ping"}', "closed"), ('{"op":"ping"', "closed"), ('{"op":tru}', "closed"),
    ('{"op":"ping","a":1.}', "closed"), ('{"op":"ping","a":.5}', "closed"),
    ('{"op":"ping","a":-}', "closed"), ('{"op":"ping","a":1e}', "closed"),
    ('{"op":"ping","a":-0.5e+7}', ("pong", {})),
    ('{"op":"ping","id":"\\u00e9\\ud83d\\ude42\\u0000"}', ("pong", {"id": "é🙂\0"})),
    ("{}", ("err", {"error": "unknown op ", "code": "unknown_op"})),
    ('{"op":"put","name":"q","body":"****"}', "closed"),
    ('{"op":"put","name":"q","body":"aGVsbG8"}', "closed"),
    ('{"op":"put","name":"q","body":"aGVs-_8="}', "closed"),
    ('{"op":"put","name":"q","body":"aGVs bG8="}', "closed"),
    ('{"op":"put","name":"q","body":"a==="}', "closed"),
    ('{"op":"put","name":"q","body":"=aGV"}', "closed"),
    ('{"op":"put","name":"q","body":"aGVsbG8=aGVs"}', "closed"),
    ('{"op":"put","name":"q","body":5}', "closed"),
    ('{"op":"put","name":"q","text":["x"]}', "closed"),
    ('{"op":"put","text":"x"}', ("err", {"error": "mailbox: empty name", "code": "empty_name"})),
    ('{"op":"frob","id":"i"}', ("err", {"error": "unknown op frob", "code": "unknown_op",
                                        "id": "i"})),
    ('{"op":"put","name":"q","wait":"1","text":"x"}', "closed"),
    ('{"op":"take","name":"q","wait":"1"}', "closed"),
    ('{"op":"take","name":"q","wait":true}', "closed"),
    ('{"op":"take","name":"q","wait":-1}', ("err", {"code": "invalid"})),
    ('{"op":"take","name":"q","wait":315360001}', ("err", {"code": "invalid"})),
    ('{"op":"take","name":"q","wait":0}', ("err", {"code": "empty", "error": "mailbox: empty"})),
    ('{"op":"take","name":"q","wait":0.0}', ("err", {"code": "empty"})),
    ('{"op":"take","name":"q","wait":1e-3}', ("err", {"code": "empty"})),
    ('{"op":"put","name":"z","text":"x","delay":-0.5}', ("err", {"code": "invalid"})),
    ('{"op":"put","name":"z","text":"x","delay":1e300}', ("err", {"code": "invalid"})),
    ('{"op":"put","name":"z","text":"x","ttl":-1}', ("err", {"code": "invalid"})),
    ('{"op":"put","name":"z","text":"x","ttl":1e9}', ("err", {"code": "invalid"})),
    ('{"op":"reserve","name":"q","max":1.5}', "closed"),
    ('{"op":"reserve","name":"q","max":"2"}', "closed"),
    ('{"op":"reserve","name":"q","wait":0,"max":0}', ("err", {"code": "invalid"})),
    ('{"op":"reserve","name":"q","wait":0,"max":1025}', ("err", {"code": "invalid"})),
    ('{"op":"ack","deliveries":"x"}', "closed"),
    ('{"op":"ack","deliveries":[1]}', "closed"),
    ('{"op":"put","name":"z","headers":[]}', "closed"),
    ('{"op":"put","name":"z","headers":{"a":1}}', "closed"),
    ('{"op":"put","name":"z","headers":{"a":"1","a":"2"}}', "closed"),
    ('{"op":"put","name":"z","headers":{"a":"1","\\u0061":"2"}}', "closed"),
    ('{"op":"ping","x":' + "[" * 40 + "]" * 40 + "}", "closed"),
    ('{"op":"ping","x":' + "[" * 20 + "]" * 20 + "}", ("pong", {})),
    ('{"op":"ping","x":' + "[" * 100000, "closed"),
]


class H3(harness.Case):
    """Numbers, versions, duplicate and odd keys: one rule each."""

    def test_H3_the_table(self):
        hub = self.hub()
        wrong = []
        for body, wanted in RULES:
            try:
                op, got = outcome(hub, body)
            except (Closed, TimeoutError, AssertionError) as e:
                wrong.append((body[:80], repr(e)))
                continue
            if wanted == "closed":
                if op != "closed":
                    wrong.append((body[:80], got))
            elif op != wanted[0] or any(got.get(k) != v for k, v in wanted[1].items()):
                wrong.append((body[:80], got))
        self.assertEqual(wrong, [])
        self.conn(hub).sync()

    def test_H3_leases_never_become_nothing_or_for_ever(self):
        hub = self.hub()
        a, b = self.conn(hub), self.conn(hub)
        day = 86400
        for text, seconds in (("0", 60), ("-1", 60), ("null", 60), ("1", 1), ("59", 59),
                              ("86400", day), ("86401", day), ("9007199254740993", day),
                              ("9223372036854775807", day), ("-9223372036854775808", 60)):
            a.put("q", "x")
            got = b.call(b'{"op":"reserve","name":"q","lease":%s}' % text.encode())
            left = got["lease"] - time.time()
            self.assertTrue(seconds - 3 * SLOW < left <= seconds + 1.1, (text, left))
            self.assertEqual(b.call(op="ack", delivery=got["delivery"])["op"], "ok")

    def test_H3_payload_rules(self):
        hub = self.hub()
        a = self.conn(hub)
        for fields, wanted in (({"body": "Qk9EWQ==", "text": "TEXT"}, b"BODY"),
                               ({"body": "", "text": "TEXT"}, b"TEXT"),
                               ({"body": "aGVs\r\nbG8=\n"}, b"hello"),
                               ({"body": "aGVsbG9="}, b"hello"),
                               ({"text": "a\0b"}, b"a\0b"), ({"body": "AAEC/w=="}, b"\0\1\2\xff"),
                               ({}, b"")):
            a.call(v=1, op="put", name="q", **fields)
            got = a.call(v=1, op="take", name="q")
            self.assertEqual(payload(got), wanted)

    def test_H3_ids_are_compared_byte_by_byte(self):
        hub = self.hub()
        a = self.conn(hub)
        ids = ["\u00e9", "e\u0301", "A", "a", "a ", "a\0", "a\0b", " a"]
        for i in ids:
            self.assertFrame(a.put("q", i, id=i), op="ok", id=i)
        for i in ids:
            got = a.call(v=1, op="take", name="q")
            self.assertEqual((got["id"].split(":", 1)[1], payload(got).decode()), (i, i))


class H4(harness.Case):
    """Out of file descriptors."""

    def test_H4_no_spin_no_flood_old_sessions_and_the_log_go_on(self):
        hub = self.hub("--segment", "64k", durable=True, wrapper=("prlimit", "--nofile=64:64"))
        old = [self.conn(hub) for _ in range(5)]
        for c in old:
            c.sync()
        lines = len(hub.logged().splitlines())
        flood = []
        for _ in range(300):
            s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            s.setblocking(False)
            flood.append(s)
            try:
                s.connect(hub.path)
            except BlockingIOError:
                pass  # the listen queue is full, which is the point
        time.sleep(0.3)
        cpu, start = hub.cpu(), time.monotonic()
        for n in range(12):
            for c in old:
                c.sync()
            self.assertEqual(old[0].put("q", "m%d" % n + "x" * 20000)["op"], "ok")
            time.sleep(0.2)
        busy = (hub.cpu() - cpu) / (time.monotonic() - start)
        self.assertLess(busy, 0.2 * SLOW)
        self.assertLess(len(hub.logged().splitlines()) - lines, 10, hub.logged()[-2000:])
        for s in flood:
            s.close()

        def works():
            try:
                c = hub.connect(timeout=1)
                c.sync()
                c.close()
                return True
            except (OSError, Closed, TimeoutError):
                return False
        wait_for(works)
        for n in range(12):
            got = old[1].call(v=1, op="take", name="q")
            self.assertTrue(payload(got).startswith(b"m%dx" % n))


class H5(harness.Case):
    """Peers that close early."""

    def test_H5_a_thousand_rude_clients_do_no_harm(self):
        hub = self.hub(listen="tcp://127.0.0.1:%d" % free_port(), start=False)
        hub.options += ["--listen", "unix://" + hub.path]
        hub.start()
        wait_for(lambda: os.path.exists(hub.path))
        where = ("127.0.0.1", int(hub.listen.rsplit(":", 1)[1]))
        wait_for(lambda: reachable(where))
        calm, rng = self.conn(hub), random.Random(5)
        calm.sync()
        fds = hub.fds()
        big = frame(v=1, op="pub", name="e", text="x" * 1000000)
        script = [frame(v=1, op="put", name="q", text="x"), frame(v=1, op="take", name="q"),
                  frame(v=1, op="sub", name=""), big, frame(v=1, op="reserve", name="q"),
                  frame(v=1, op="ping") * 2000, b"ZMQC\0\1", b"GET / HTTP/1.0\r\n\r\n",
                  frame(v=1, op="req", id="1", name="svc", text="y" * 2000) + big[:70000]]
        for n in range(1000):
            c = Conn(where if n % 2 else hub.door().path)
            c.sock.settimeout(0.2)
            try:
                for part in rng.sample(script, rng.randint(1, 3)):
                    c.sock.send(part)
            except OSError:
                pass
            c.reset() if rng.random() < 0.5 else c.close()
        calm.sync()
        self.assertIsNone(hub.proc.poll())
        wait_for(lambda: hub.fds() <= fds)
        calm.sync()


class H11(harness.Case):
    """The same id again: what is a duplicate."""

    def test_H11_queued_leased_acked_nacked(self):
        hub = self.hub()
        a, b, w = self.conn(hub), self.conn(hub), self.conn(hub)

        def depth():
            stat = a.call(v=1, op="stat", name="q")["result"]
            return (stat["depth"], stat["leased"])

        def put(c, text="x"):
            self.assertFrame(c.put("q", text, id="x"), op="ok", id="x", name="q")
        put(a, "first")
        put(a, "second")
        self.assertEqual(depth(), (1, 0))
        job = w.call(v=1, op="reserve", name="q")
        put(a)
        self.assertEqual(depth(), (0, 1))
        w.call(v=1, op="nack", delivery=job["delivery"])
        put(a)
        self.assertEqual(depth(), (1, 0))
        job = w.call(v=1, op="reserve", name="q")
        self.assertEqual(payload(job), b"first")
        w.call(v=1, op="ack", delivery=job["delivery"])
        put(a, "third")  # free again
        put(b, "other session")
        self.assertEqual(depth(), (2, 0))
        self.assertEqual(payload(w.call(v=1, op="take", name="q")), b"third")
        self.assertEqual(payload(w.call(v=1, op="take", name="q")), b"other session")
        put(a, "fourth")
        self.assertEqual(depth(), (1, 0))
        # Delayed ones count too.
        a.call(v=1, op="put", id="d", name="z", text="1", delay=0.2)
        a.call(v=1, op="put", id="d", name="z", text="2")
        self.assertEqual(payload(a.call(v=1, op="take", name="z")), b"1")
        self.assertErr(a.call(v=1, op="take", name="z", wait=0), "empty")

    def test_H11_a_retry_after_a_crash_is_a_new_message(self):
        """A new session is a new scope: at least once, never lost."""
        hub = self.hub(durable=True)
        self.conn(hub).put("q", "one", id="x")
        hub.restart(signal.SIGKILL)
        a = self.conn(hub)
        self.assertEqual(a.put("q", "one", id="x")["op"], "ok")
        first, second = (a.call(v=1, op="take", name="q", wait=5) for _ in range(2))
        self.assertEqual((payload(first), payload(second)), (b"one", b"one"))
        self.assertNotEqual(first["id"], second["id"])

    def test_H11_long_ids(self):
        hub = self.hub()
        a = self.conn(hub)
        self.assertFrame(a.put("q", "x", id="i" * 1024), op="ok", id="i" * 1024)
        self.assertErr(a.put("q", "x", id="i" * 1025), "invalid")
        self.assertErr(a.put("q", "x", id="é" * 513), "invalid")
        got = a.call(v=1, op="take", name="q")
        self.assertTrue(got["id"].endswith(":" + "i" * 1024))


class H16(harness.Case):
    """SIGTERM with people waiting."""

    def test_H16_exit_within_5_seconds_and_nothing_lost(self):
        hub = self.hub(durable=True)
        takes, sub, _ = self.crowd(hub)
        start = time.monotonic()
        hub.proc.send_signal(signal.SIGTERM)
        for c in takes:
            got = c.recv()
            self.assertErr(got, "closed", "mailbox: closed")
            self.assertEqual(got["id"], "t")
            self.assertRaises(Closed, c.recv)
        self.assertRaises(Closed, sub.recv)
        self.assertEqual(hub.proc.wait(20 * SLOW), 0)
        self.assertLess(time.monotonic() - start, 5 * SLOW)
        self.assertFalse(os.path.exists(hub.path))
        self.assertFalse(os.path.exists(hub.path + ".ctl"))
        hub.start()
        c = self.conn(hub)
        for i in range(10):
            got = c.call(v=1, op="take", name="jobs", wait=2)
            self.assertEqual((got["op"], payload(got)), ("msg", b"j%d" % i))

    def test_H16_a_second_sigterm_exits_at_once(self):
        hub = self.hub(durable=True)
        self.crowd(hub)
        hub.proc.send_signal(signal.SIGTERM)
        time.sleep(0.1)
        start = time.monotonic()
        hub.proc.send_signal(signal.SIGTERM)
        hub.proc.wait(20 * SLOW)
        self.assertLess(time.monotonic() - start, 1.5 * SLOW)


@harness.local("the hub's own TCP listener")
class R1(harness.Case):
    def test_R1_http_never_reaches_the_bus(self):
        hub = self.hub(listen="tcp://127.0.0.1:%d" % free_port(), start=False)
        hub.options += ["--listen", "unix://" + hub.path]
        hub.start()
        where = ("127.0.0.1", int(hub.listen.rsplit(":", 1)[1]))
        wait_for(lambda: reachable(hub.path) and reachable(where))
        watcher = self.conn(hub)
        inner = frame(v=1, op="put", name="owned", text="x")
        for first in (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(inner),
                      b"GET /ZMQC HTTP/1.1\r\n\r\n", b"\r\n", b"Z", b"ZM QC", b"ZMQ\n",
                      b"\x16\x03\x01\x02\0\1\0\1\xfc\3\3"):
            for split in (False, True):
                c = Conn(where)
                self.addCleanup(c.close)
                try:
                    if split:
                        c.send_raw(first)
                        time.sleep(0.02)
                        c.send_raw(inner)
                    else:
                        c.send_raw(first + inner)
                except OSError:
                    pass
                self.assertTrue(c.closed(), first)
        self.assertErr(watcher.call(v=1, op="take", name="owned", wait=0), "empty")
        self.assertNotIn("owned", watcher.call(v=1, op="list")["result"]["names"])


class R2(harness.Case):
    def test_R2_memory_returns_after_many_names_and_names_are_capped(self):
        hub = self.hub("--mailboxes-max", "20000", env=harness.FREED_IS_FREE)
        c = self.conn(hub)

        def use(op, start, count, **more):
            codes = {}
            for i in range(start, start + count, 250):
                c.send_raw(b"".join(frame(v=1, op=op, name="one-shot-%d" % n, **more)
                                    for n in range(i, i + 250)))
                for _ in range(250):
                    got = c.recv()
                    key = got.get("code", got["op"])
                    codes[key] = codes.get(key, 0) + 1
            return codes
        # The cap: more names than allowed at once.
        self.assertEqual(use("put", 0, 20000, text="x" * 100), {"ok": 20000})
        full = hub.rss()
        self.assertEqual(use("put", 20000, 1000, text="x"), {"full": 1000})
        self.assertEqual(c.put("one-shot-5", "y")["op"], "ok")
        self.assertEqual(c.call(v=1, op="take", name="one-shot-5")["op"], "msg")
        self.assertEqual(use("take", 0, 20000, wait=0), {"msg": 20000})
        self.assertEqual(c.call(v=1, op="list")["result"]["names"], [])
        # Many more in turn.
        rounds = 180 if harness.LONG else 16
        for n in range(1, rounds):
            self.assertEqual(use("put", n * 20000, 5000, text="x" * 100), {"ok": 5000})
            self.assertEqual(use("take", n * 20000, 5000, wait=0), {"msg": 5000})
        # Waiting and looking make no mailbox that stays, either.
        self.assertEqual(use("take", 10 ** 7, 5000, wait=0), {"empty": 5000})
        self.assertLess(hub.rss(), full + (2 << 20))


class R8(harness.Case):
    def test_R8_partial_frames_then_silence_are_reaped(self):
        hub = self.hub("--heartbeat=%gs" % SLOW)
        calm = self.conn(hub)
        calm.sync()
        fds = hub.fds()
        parts = [b"Z", b"ZMQC", b"ZMQC\0\0", b"ZMQC\0\0\0\x20", b'ZMQC\0\0\0\x20{"v":1,"op":',
                 frame(v=1, op="put", name="q", text="x" * 5000)[:-1],
                 b"ZMQC\0\x20\0\0" + b" " * 3000]
        # Ended all at once, more than the 32 packets that a relay queues for a spoke lose resets.
        count = 200 if harness.TUNNEL else 500
        half = [hub.connect() for _ in range(count)]
        for n, c in enumerate(half):
            self.addCleanup(c.close)
            c.send_raw(parts[n % len(parts)])
        wait_for(lambda: hub.fds() >= fds + count // 2)  # the first may be reaped by now
        cpu, start = hub.cpu(), time.monotonic()
        while hub.fds() > fds:
            calm.sync()
            self.assertLess(time.monotonic() - start, 10 * SLOW)
            time.sleep(0.2)
        took = time.monotonic() - start
        self.assertGreater(took, 2)
        self.assertLess((hub.cpu() - cpu) / took, 0.25 * SLOW)
        for c in half[:20]:
            self.assertTrue(c.closed())
        self.assertErr(calm.call(v=1, op="take", name="q", wait=0), "empty")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def reachable(where):
    try:
        Conn(where).close()
        return True
    except OSError:
        return False


if __name__ == "__main__":
    harness.main()
