#!/usr/bin/env python3
# tunnelled
"""What operators and careful clients ask beyond put and take: peek, purge, move, bind, filters,
conditions, scopes; also across kill -9 of a hub with durable mailboxes."""
import os, random, select, signal, sys, threading, time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
from harness import Closed, wait_for


def drain(c, name):
    """Takes all that is queued; the texts."""
    texts = []
    while True:
        got = c.call(v=1, op="take", id="t", name=name, wait=0)
        if got["op"] == "err":
            assert got["code"] == "empty", got
            return texts
        texts.append(got.get("text", ""))


def peek(c, name, most=1024):
    """All frames of a peek."""
    c.send(v=1, op="peek", id="peek", name=name, max=most)
    frames = []
    while True:
        got = c.recv()
        if got["op"] == "err":
            assert got["code"] == "empty", got
            return frames
        assert got["op"] == "msg" and got["id"] == "peek" and got["peek"] is True, got
        frames.append(got)
        if got.get("end"):
            return frames


def scoped(test, hub, scope, name="w"):
    """A session of the scope; through the same spoke each time, since that is its identity."""
    for _ in range(2 * harness.SPOKES):
        c = test.conn(hub)
        if getattr(hub, "scoped_by", None) in (None, c.identity()):
            break
    hub.scoped_by = c.identity()
    got = c.call({"v": 1, "op": "hello", "id": "h", "from": name, "scope": scope})
    test.assertFrame(got, op="ok", id="h")
    return c


class Looking(harness.Case):
    def test_peek(self):
        a = self.conn(self.hub())
        self.assertErr(a.call(v=1, op="peek", id="p", name="q"), "empty", "mailbox: empty")
        for n in range(5):
            a.put("q", "m%d" % n, id=str(n), headers={"n": str(n)})
        raw = None
        a.send(v=1, op="peek", id="p", name="q")
        raw = a.recv_bytes()
        keys = [k for k, _ in harness.pairs(raw)]
        self.assertEqual(keys, "v op id name from text body headers at by peek".split())
        self.assertEqual([m["text"] for m in peek(a, "q", 3)], ["m0", "m1", "m2"])
        self.assertEqual([m["text"] for m in peek(a, "q")], ["m%d" % n for n in range(5)])
        self.assertEqual([m["headers"] for m in peek(a, "q")], [{"n": str(n)} for n in range(5)])
        self.assertFrame(a.call(v=1, op="stat", id="s", name="q")["result"], depth=5, out=0)
        got = a.call(v=1, op="reserve", id="r", name="q")
        a.call(v=1, op="nack", id="n", delivery=got["delivery"])
        self.assertEqual(peek(a, "q", 1)[0]["attempt"], 1)
        self.assertEqual(drain(a, "q"), ["m%d" % n for n in range(5)])
        self.assertErr(a.call(v=1, op="peek", id="p", name="q", max=0), "invalid")
        self.assertErr(a.call(v=1, op="peek", id="p", name=""), "empty_name")

    def test_peek_and_move_read_back_what_left_memory(self):
        """More payload than the hot window holds."""
        hub = self.hub(durable=True)
        a = self.conn(hub, timeout=60)
        big = "x" * 700000
        for n in range(30):
            self.assertEqual(a.put("q", "%02d" % n + big)["op"], "ok")
        seen = peek(a, "q")
        self.assertEqual([m["text"][:2] for m in seen], ["%02d" % n for n in range(30)])
        self.assertTrue(all(len(m["text"]) == 700002 for m in seen))
        got = a.call(v=1, op="move", id="m", name="q", to="r")
        self.assertFrame(got, op="ok", id="m", count=30)
        self.assertEqual([t[:2] for t in drain(a, "r")], ["%02d" % n for n in range(30)])

    def test_features_name_them(self):
        info = self.conn(self.hub()).call(v=1, op="info", id="i")["result"]
        for feature in ("if", "filter", "scope", "peek", "move", "purge", "bind"):
            self.assertIn(feature, info["features"])


class Steps(harness.Case):
    def test_others_are_heard_between_the_steps_of_a_long_move(self):
        count, most = 50000, 0
        hub = self.hub("--mailbox-cap", str(count))
        a, b = self.conn(hub), self.conn(hub)
        for n in range(count // 1000):
            for k in range(1000):
                a.send(v=1, op="put", id="%d.%d" % (n, k), name="m0", text="x")
            for _ in range(1000):
                self.assertFrame(a.recv(), op="ok")
        for turn in range(20):
            a.send(v=1, op="move", id="m", name="m%d" % (turn % 2), to="m%d" % (1 - turn % 2))
            heard = 0
            while not select.select([a.sock], [], [], 0)[0]:
                b.call(v=1, op="ping", id="x")
                heard += 1
            self.assertFrame(a.recv(), op="ok", count=count)
            most = max(most, heard)
        # One may come with the move, and one is answered behind it.
        self.assertGreater(most, 4)


class Filters(harness.Case):
    def test_ready_and_reserve(self):
        hub = self.hub()
        a, b, c = self.conn(hub), self.conn(hub), self.conn(hub)
        b.send(v=1, op="reserve", id="b", name="q", filter="ann, !bob")
        c.send(v=1, op="ready", id="c", name="q", filter="!ann")
        b.sync()
        c.sync()
        a.put("q", "1", **{"from": "bob"})
        self.assertFrame(c.recv(), op="msg", text="1")
        a.put("q", "2", **{"from": "bob"})
        b.nothing()
        a.put("q", "3", **{"from": "ann"})
        self.assertFrame(b.recv(), op="msg", id="b", text="3")
        self.assertErr(a.call(v=1, op="reserve", id="r", name="q", filter={"kinds": [1]}),
                       "invalid")
        self.assertErr(a.call(v=1, op="reserve", id="r", name="q", wait=0, filter="ann"), "empty")
        self.assertFrame(a.call(v=1, op="reserve", id="r", name="q", filter=" * "), text="2")

    def test_one_who_waits_for_something_else_costs_the_others_nothing(self):
        """20,000 messages of somebody else lie there; puts and takes go on as before."""
        hub = self.hub("--mailbox-cap", "200000")
        a, b = self.conn(hub, timeout=60), self.conn(hub, timeout=60)

        def rounds(n):
            start = time.process_time(), hub.cpu()
            for _ in range(n):
                a.send(v=1, op="put", id="p", name="q", text="x")
                a.send(v=1, op="take", id="t", name="q")
            for _ in range(2 * n):
                self.assertIn(a.recv()["op"], ("ok", "msg"))
            return hub.cpu() - start[1]
        for n in range(20000):
            a.send(v=1, op="put", name="q", text="old")
            if n % 500 == 499:
                for _ in range(500):
                    self.assertEqual(a.recv()["op"], "ok")
        plain = rounds(5000)
        for n in range(50):
            b.send(v=1, op="reserve", id="r%d" % n, name="q", filter="nobody-%d" % n)
        b.sync()
        filtered = rounds(5000)
        self.assertLess(filtered, 5 * plain + 0.3)

    def test_if_consumer(self):
        hub = self.hub()
        a, b = self.conn(hub), self.conn(hub)
        put = dict(v=1, op="put", id="1", name="q", text="x", **{"if": "consumer"})
        self.assertErr(a.call(put), "unroutable")
        self.assertEqual(a.call(v=1, op="list", id="l")["result"]["names"], [])
        b.send(v=1, op="take", id="t", name="q")
        b.sync()
        self.assertFrame(a.call(put), op="ok", id="1", name="q")
        self.assertFrame(b.recv(), op="msg", text="x")
        self.assertErr(a.call(put), "unroutable")
        self.assertErr(a.call(dict(put, **{"if": "anybody"})), "invalid")


class Bindings(harness.Case):
    def test_they_survive_kill_9_and_so_does_what_was_acknowledged(self):
        hub = self.hub(durable=True)
        a = self.conn(hub)
        self.assertFrame(a.call(v=1, op="bind", id="b", name="box", topic="ev."), op="ok", id="b",
                         name="box")
        a.call(v=1, op="bind", id="b", name="other", topic="ev.")
        a.call(v=1, op="bind", id="b", name="box", topic="")
        self.assertFrame(a.call(v=1, op="unbind", id="u", name="other", topic="ev."), op="ok")
        got = a.call(v=1, op="pub", id="p", name="ev.1", text="one", headers={"k": "v"})
        self.assertFrame(got, op="ok", id="p", subs=0)
        hub.restart(signal.SIGKILL)
        a = self.conn(hub)
        self.assertFrame(a.call(v=1, op="take", id="t", name="box"), text="one",
                         headers={"k": "v"}, name="box")
        a.call(v=1, op="pub", id="p", name="ev.2", text="two")
        a.call(v=1, op="pub", id="p", name="x", text="three")
        self.assertEqual(drain(a, "box"), ["two", "three"])
        self.assertEqual(drain(a, "other"), [])
        a.call(v=1, op="unbind", id="u", name="box", topic="")
        hub.restart(signal.SIGKILL)
        a = self.conn(hub)
        a.call(v=1, op="pub", id="p", name="x", text="four")
        a.call(v=1, op="pub", id="p", name="ev.3", text="five")
        self.assertEqual(drain(a, "box"), ["five"])

    def test_they_and_seen_ids_outlive_their_segments(self):
        """The log is cleaned again and again; nothing of what it keeps is lost."""
        hub = self.hub("--segment", "64k", durable=True)
        a = scoped(self, hub, "one")
        a.call(v=1, op="bind", id="b", name="box", topic="ev.")
        a.put("q", "x", id="mine")
        self.assertEqual(drain(a, "q"), ["x"])
        a.put("stays", "kept", id="2")
        for _ in range(3):
            for n in range(300):
                a.send(v=1, op="put", name="bulk", text="y" * 1000)
                a.send(v=1, op="take", id="t", name="bulk")
            for n in range(600):
                self.assertIn(a.recv()["op"], ("ok", "msg"))
        wait_for(lambda: hub.status()["storage"]["segments"] <= 5)
        hub.restart(signal.SIGKILL)
        a = scoped(self, hub, "one")
        self.assertEqual(a.put("q", "x", id="mine")["op"], "ok")
        self.assertEqual(a.put("stays", "again", id="2")["op"], "ok")
        a.call(v=1, op="pub", id="p", name="ev.1", text="bound")
        self.assertEqual([drain(a, n) for n in ("q", "stays", "box")], [[], ["kept"], ["bound"]])


class Scopes(harness.Case):
    def test_a_retry_after_kill_9_adds_nothing(self):
        hub = self.hub(durable=True)
        a = scoped(self, hub, "one")
        for name in ("queued", "leased", "acked", "taken", "purged", "moved"):
            self.assertEqual(a.put(name, "x", id="1")["op"], "ok")
        a.call(v=1, op="reserve", id="r", name="leased")
        got = a.call(v=1, op="reserve", id="r", name="acked")
        a.call(v=1, op="ack", id="a", delivery=got["delivery"])
        drain(a, "taken")
        a.call(v=1, op="purge", id="p", name="purged")
        a.call(v=1, op="move", id="m", name="moved", to="target")
        hub.restart(signal.SIGKILL)
        a = scoped(self, hub, "one")
        for name in ("queued", "leased", "acked", "taken", "purged", "moved", "target"):
            self.assertFrame(a.put(name, "again", id="1"), op="ok", id="1")
        left = {n: drain(a, n) for n in ("queued", "leased", "acked", "taken", "purged", "moved",
                                         "target")}
        self.assertEqual(left, {"queued": ["x"], "leased": ["x"], "acked": [], "taken": [],
                                "purged": [], "moved": [], "target": ["x"]})
        self.assertEqual(a.put("queued", "new", id="2")["op"], "ok")
        self.assertEqual(drain(a, "queued"), ["new"])

    def test_leases_survive_a_reconnect(self):
        hub = self.hub(durable=True)
        a = scoped(self, hub, "one")
        a.put("q", "1")
        a.put("q", "2")
        one = a.call(v=1, op="reserve", id="r", name="q", lease=30)
        two = a.call(v=1, op="reserve", id="r", name="q", lease=2)
        a.close()
        b = self.conn(hub)
        self.assertErr(b.call(v=1, op="ack", id="k", delivery=one["delivery"]), "no_delivery")
        self.assertErr(b.call(v=1, op="take", id="t", name="q", wait=0), "empty")
        a = scoped(self, hub, "one")
        got = a.call(v=1, op="touch", id="t", delivery=one["delivery"], lease=40)
        self.assertFrame(got, op="ok")
        self.assertFrame(a.call(v=1, op="ack", id="k", delivery=one["delivery"]), op="ok")
        self.assertFrame(b.call(v=1, op="take", id="t", name="q", wait=5), text="2", attempt=2)
        self.assertErr(a.call(v=1, op="ack", id="k", delivery=two["delivery"]), "no_delivery")

    def test_when_it_may_be_given(self):
        a = self.conn(self.hub())
        a.put("q", "1")
        self.assertErr(a.call(v=1, op="hello", id="h", scope="x"), "invalid")
        self.assertErr(a.call(v=1, op="hello", id="h", scope="x" * 1025), "invalid")
        a.sync()


class Crashes(harness.Case):
    def test_moves_under_kill_9_leave_each_message_in_one_mailbox(self):
        hub = self.hub("--segment", "64k", durable=True)
        rng = random.Random(5)
        a = self.conn(hub, timeout=30)
        for n in range(400):
            self.assertEqual(a.put("a", "%d %s" % (n, "x" * rng.choice((1, 400))))["op"], "ok")
        wanted = sorted(range(400))
        turns = 3 if harness.TUNNEL else 60 if harness.LONG else 12
        for turn in range(turns):
            def moves(c):
                try:
                    while True:
                        for pair in (("a", "b"), ("b", "c"), ("c", "a")):
                            c.call(v=1, op="move", id="m", name=pair[0], to=pair[1],
                                   max=rng.randint(1, 300))
                except (Closed, OSError, TimeoutError):
                    pass
            threads = [threading.Thread(target=moves, args=(self.conn(hub),)) for _ in range(2)]
            for t in threads:
                t.start()
            time.sleep(rng.random() * 0.2)
            hub.kill()
            for t in threads:
                t.join()
            hub.start()
            c = self.conn(hub, timeout=30)
            found = [int(m["text"].split()[0]) for box in "abc" for m in peek(c, box)]
            self.assertEqual(sorted(found), wanted, "turn %d" % turn)
            for box in "abc":  # the order of each is that of the puts
                numbers = [int(m["text"].split()[0]) for m in peek(c, box)]
                self.assertEqual(numbers, sorted(numbers))

    def test_a_purge_is_for_good(self):
        hub = self.hub(durable=True)
        a = self.conn(hub)
        for n in range(50):
            a.put("q", str(n), **({"delay": 100} if n % 2 else {}))
        held = a.call(v=1, op="reserve", id="r", name="q")
        self.assertFrame(a.call(v=1, op="purge", id="p", name="q"), op="ok", count=49)
        hub.restart(signal.SIGKILL)
        a = self.conn(hub)
        self.assertEqual(drain(a, "q"), [held["text"]])
        self.assertFrame(a.call(v=1, op="stat", id="s", name="q")["result"], depth=0, delayed=0)


if __name__ == "__main__":
    harness.main()
