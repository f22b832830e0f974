#!/usr/bin/env python3
# tunnelled
"""Random operations of several sessions against a naive model of the mailboxes: every frame that
each session gets is foretold. ZMQCAT_TEST_SEED chooses the sequence; a failure prints the tail."""
import os, random, signal, sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
from harness import Conn, payload, wait_for

NAMES = ("a", "b", "c")
CAP = 12


class Message:
    def __init__(self, seq, name, text, scope):
        self.seq, self.name, self.text, self.scope, self.attempts = seq, name, text, scope, 0


class Session:
    def __init__(self, number, conn):
        self.number, self.conn = number, conn
        self.expected = []  # what its next frames must be: functions of the frame
        self.held = {}  # delivery -> message


class Model:
    def __init__(self, case, hub, seed):
        self.case, self.hub, self.rng = case, hub, random.Random(seed)
        self.queues = {n: [] for n in NAMES}
        self.waiters = {n: [] for n in NAMES}  # (session, op, id, max)
        self.sessions, self.numbers, self.seq, self.story = [], 0, 0, []
        for _ in range(4):
            self.join()

    def say(self, *words):
        self.story.append(" ".join(map(str, words)))

    def join(self):
        self.numbers += 1
        self.sessions.append(Session(self.numbers, self.hub.connect(timeout=20)))
        self.sessions[-1].conn.sync()

    # What the hub should do.
    def leased(self, name):
        return [m for s in self.sessions for m in s.held.values() if m.name == name]

    def give_back(self, messages):
        for m in messages:
            self.queues[m.name].append(m)
            self.queues[m.name].sort(key=lambda x: x.seq)
        for name in sorted({m.name for m in messages}):
            self.match(name)

    def match(self, name):
        while self.queues[name] and self.waiters[name]:
            self.deliver(name, *self.waiters[name].pop(0))

    def deliver(self, name, s, op, request, most):
        count = min(most or 1, len(self.queues[name]))
        batch = [self.queues[name].pop(0) for _ in range(count)]
        for n, m in enumerate(batch):
            m.attempts += 1
            s.expected.append(self.message(s, m, op, request,
                                           most, n == count - 1, m.attempts))

    def message(self, s, m, op, request, most, last, attempt):
        def check(got):
            self.case.assertFrame(got, op="msg", name=m.name, text=m.text, attempt=attempt,
                                  end=True if most and last else None)
            if request and (op == "reserve" or most):
                self.case.assertEqual(got["id"], request)
            elif m.scope:
                self.case.assertTrue(got["id"].endswith(":" + m.scope[1]), got)
            if op != "take":
                s.held[got["delivery"]] = m
        return check

    def answer(self, **wanted):
        return lambda got: self.case.assertFrame(got, **wanted)

    # What a client does; the frames that follow are appended to `expected`.
    def put(self, s):
        name, dup = self.rng.choice(NAMES), self.rng.random() < 0.3
        scope = (s.number, "%d" % self.rng.randrange(6)) if dup else None
        self.seq += 1
        text = "m%d" % self.seq
        self.say(s.number, "put", name, text, scope)
        fields = {"id": scope[1]} if scope else {}
        s.conn.send(v=1, op="put", name=name, text=text, **fields)
        there = self.queues[name] + self.leased(name)
        if scope and any(m.scope == scope for m in there):
            s.expected.append(self.answer(op="ok", id=scope[1], name=name))
        elif len(self.queues[name]) >= CAP:
            s.expected.append(self.answer(op="err", code="full"))
        else:
            s.expected.append(self.answer(op="ok", name=name))
            self.queues[name].append(Message(self.seq, name, text, scope))
            self.match(name)

    def get(self, s):
        name, op = self.rng.choice(NAMES), self.rng.choice(("take", "reserve", "ready"))
        most = self.rng.choice((None, None, 1, 3)) if op != "take" else None
        request = self.rng.choice((None, "r%d" % self.rng.randrange(99)))
        block = self.rng.random() < 0.3
        self.say(s.number, op, name, "max", most, "blocks" if block else "at once")
        fields = {"id": request} if request else {}
        if most:
            fields["max"] = most
        if not block:
            fields["wait"] = 0
        s.conn.send(v=1, op=op, name=name, **fields)
        if self.queues[name]:
            self.deliver(name, s, op, request, most)
        elif block:
            self.waiters[name].append((s, op, request, most))
            s.conn.sync()  # what others send next may have a shorter way
        else:
            s.expected.append(self.answer(op="err", code="empty", id=request))

    def settle(self, s):
        op = self.rng.choice(("ack", "ack", "nack", "touch"))
        mine = list(s.held)
        other = [d for t in self.sessions if t is not s for d in t.held]
        if self.rng.random() < 0.6:
            d = self.rng.choice(mine + other[:1] + ["unknown"])
            self.say(s.number, op, d, getattr(s.held.get(d), "text", "not its own"))
            s.conn.send(v=1, op=op, id="k", delivery=d)
            if d not in s.held:
                s.expected.append(self.answer(op="err", code="no_delivery", id="k"))
                return
            s.expected.append(self.answer(op="ok", id="k"))
            chosen = [d]
        else:
            asked = self.rng.sample(mine + other[:2], min(3, len(mine + other[:2])))
            chosen = [d for d in asked if d in s.held]
            failed = [d for d in asked if d not in s.held]
            self.say(s.number, op, [getattr(s.held.get(d), "text", "not its own") for d in asked])
            s.conn.send(v=1, op=op, id="k", deliveries=asked)
            s.expected.append(self.answer(op="ok", id="k", failed=failed or None))
        if op != "touch":
            messages = [s.held.pop(d) for d in chosen]
            if op == "nack":
                self.give_back(messages)

    def leave(self, s):
        self.say(s.number, "leaves with", [m.text for m in s.held.values()])
        self.sessions.remove(s)
        for name in NAMES:
            self.waiters[name] = [w for w in self.waiters[name] if w[0] is not s]
        if self.rng.random() < 0.5:
            s.conn.half_close()
            self.case.assertTrue(s.conn.closed())
        s.conn.close()
        count = len(self.sessions)
        wait_for(lambda: self.hub.status()["sessions"] == count)
        self.give_back(list(s.held.values()))
        self.join()

    def restart(self):
        self.say("restart")
        back = [m for s in self.sessions for m in s.held.values()]
        self.hub.kill(self.rng.choice((signal.SIGKILL, signal.SIGTERM)))
        for s in self.sessions:  # not before: what one gives back, a waiting one would get
            s.conn.close()
        self.sessions = []
        self.waiters = {n: [] for n in NAMES}
        self.hub.start()
        self.give_back(back)
        for _ in range(4):
            self.join()

    def look(self, s):
        name = self.rng.choice(NAMES)
        s.conn.send(v=1, op="stat", name=name)
        depth, leased = len(self.queues[name]), len(self.leased(name))
        waiting = len(self.waiters[name])
        s.expected.append(lambda got: self.case.assertFrame(
            got["result"], depth=depth, leased=leased, waiting=waiting))

    def step(self):
        s = self.rng.choice(self.sessions)
        what = self.rng.choices((self.put, self.get, self.settle, self.look, self.leave),
                                (40, 30, 25, 4, 1))[0]
        what(s)
        for t in self.sessions:
            while t.expected:
                t.expected.pop(0)(t.conn.recv())

    def run(self, steps, restarts=False):
        try:
            for n in range(steps):
                self.step()
                if restarts and self.rng.random() < 0.01:
                    self.restart()
            for s in self.sessions:
                s.conn.sync()
        except BaseException:
            print("the last steps:\n  " + "\n  ".join(self.story[-25:]))
            raise
        finally:
            for s in self.sessions:
                s.conn.close()


class Random(harness.Case):
    def go(self, steps, restarts=False, **more):
        first = int(os.environ.get("ZMQCAT_TEST_SEED", "1"))
        for seed in range(first, first + (10 if harness.LONG else 2)):
            with self.subTest(seed=seed):
                hub = self.hub("--mailbox-cap", str(CAP), **more)
                wait_for(lambda: hub.status()["sessions"] == 0)
                Model(self, hub, seed).run(steps, restarts)
                hub.stop()

    def test_in_memory(self):
        self.go(3000)

    def test_durable_with_restarts(self):
        self.go(1500, restarts=True, durable=True)


if __name__ == "__main__":
    harness.main()
