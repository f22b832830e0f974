"""Clients of a hub that starts again under them. What they were told is compared with what is there
in the end: a put that was answered is there, or was taken, once. Runs inside the machine."""
import collections, itertools, threading, time

from harness import Closed, Conn, wait_for


class Load:
    """Clients that put and take one after the other, each on a connection of its own.

    puts, takes, leases, holds: the sockets of those that put; take; reserve and acknowledge;
    reserve and wait to be cut."""

    def __init__(self, name, puts, takes=(), leases=(), holds=()):
        self.name, self.over = name, threading.Event()
        # Puts that were answered; what was taken for good; what may be, since the answer to its ack
        # did not come; what a client held when it was cut.
        self.acked, self.taken, self.unsure, self.cut = [], [], set(), []
        self.refused, numbers = [], itertools.count()
        self.threads = [threading.Thread(target=self.repeat, args=(what, path, next(numbers)))
                        for what, paths in ((self.put, puts), (self.take, takes),
                                            (self.lease, leases), (self.hold, holds))
                        for path in paths]
        for t in self.threads:
            t.start()

    def repeat(self, what, path, k):
        n = 0
        while not self.over.is_set():
            n += 1
            try:
                c = Conn(path, timeout=30)
            except OSError as e:
                self.refused.append(e)
                continue
            try:
                what(c, "%d-%d" % (k, n))
            except (Closed, OSError):
                pass  # cut by the restart
            finally:
                c.close()
            time.sleep(0.02)

    def put(self, c, text):
        got = c.put(self.name, text)
        (self.acked if got["op"] == "ok" else self.refused).append(text)

    def take(self, c, _):
        got = c.call(v=1, op="take", id="t", name=self.name, wait=1)
        if got["op"] == "msg":
            self.taken.append(got["text"])

    def reserve(self, c):
        got = c.call(v=1, op="reserve", id="r", name=self.name, lease=60, wait=1)
        return got if got["op"] == "msg" else None

    def lease(self, c, _):
        got = self.reserve(c)
        if got:
            self.unsure.add(got["text"])
            if c.call(v=1, op="ack", id="a", delivery=got["delivery"])["op"] == "ok":
                self.taken.append(got["text"])
                self.unsure.discard(got["text"])

    def hold(self, c, _):
        got = self.reserve(c)
        while got and not self.over.is_set():
            try:
                c.recv(0.2)
            except TimeoutError:
                continue
            except Closed:
                self.cut.append(got["text"])
                raise

    def end(self):
        self.over.set()
        for t in self.threads:
            t.join()


def left(bus, name):
    """What lies there, taken; leases of clients that went are given back first."""
    wait_for(lambda: bus.call(op="stat", name=name)["result"]["leased"] == 0, 20, 0.1)
    return [bus.take(name)["text"] for _ in range(bus.depth(name))]


def astray(acked, unsure, taken, there):
    """What was lost of the puts that were answered, and what is there twice."""
    times = collections.Counter(taken + there)
    lost = [t for t in acked if times[t] == 0 and t not in unsure]
    return lost + [t for t, n in times.items() if n > 1]
