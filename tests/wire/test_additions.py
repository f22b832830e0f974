#!/usr/bin/env python3
# tunnelled
"""What the bus protocol adds to the original's (docs/man/zmqc.5, ADDITIONS)."""
import os, sys, time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
from harness import SLOW, Conn, frame, payload, wait_for

MIB = 1 << 20
EMPTY = "mailbox: empty"


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
            c = hub.connect()
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
        self.assertFrame(b.call(v=1, op="ack", id="k", deliveries=["no", held[0], held[1],
                                                                      held[0]]),
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
            self.assertFrame(got, attempt=n, by=a.identity())
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
        self.assertFrame(stat, name="q", depth=2, leased=1, delayed=1, waiting=0, redelivered=1,
                         dropped=0, **{"in": 5})
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
        for bad in (0, 1025, -3):
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
        c = self.conn(hub)
        info = c.call(v=1, op="info", id="i")["result"]
        self.assertEqual(set(info), {"version", "uptime", "features", "limits", "identity"})
        self.assertRegex(info["version"], r"^[0-9]+\.[0-9]+")
        self.assertIsInstance(info["features"], list)
        self.assertEqual(info["identity"], c.identity())
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


if __name__ == "__main__":
    harness.main()
