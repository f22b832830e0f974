# serial
"""Hub and spoke over a bad link; and that the link does to packets what it is told to. Field cases
H17 (a network that is gone for a while without a word) and H19 (loss, delay, another order)."""
import errno, hashlib, os, socket, struct, sys, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness
from harness import Case, LONG, SLOW, together, wait_for
from link import Link, RelayAt

PORT = 5000
SO_RCVBUFFORCE, SO_TIMESTAMPNS = 33, 35
IP_MTU_DISCOVER, IP_PMTUDISC_DO, IP_MTU = 10, 2, 14
IPV6_MTU_DISCOVER, IPV6_MTU = 23, 24


class Linked(Case):
    def link(self, **more):
        link = Link(**more)
        self.addCleanup(link.end)
        return link


class Packets(Linked):
    """Each fault of the link, as sockets at its ends see it."""

    def setUp(self):
        self.between()

    def between(self, **more):
        self.l = self.link(**more)
        self.l.set(only="udp")  # what the system sends by itself is not counted
        self.out, self.got = self.datagrams(socket.AF_INET)

    def datagrams(self, family):
        """A socket at a that sends to one at b."""
        at = self.l.b.address if family == socket.AF_INET else self.l.b.address6
        out, got = (end.socket(socket.SOCK_DGRAM, family) for end in (self.l.a, self.l.b))
        for s in (out, got):
            self.addCleanup(s.close)
            s.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 16 << 20)
        got.bind((at, PORT))
        out.connect((at, PORT))
        return out, got

    def send(self, count, size=100, gap=0.0):
        for i in range(count):
            self.out.send(struct.pack(">I", i).ljust(size, b"."))
            time.sleep(gap)

    def receive(self, count, quiet=0.2):
        """The numbers that come: so many, however long it takes, and what comes soon after."""
        numbers = []
        try:
            while True:
                self.got.settimeout(10 * SLOW if len(numbers) < count else quiet)
                numbers.append(struct.unpack(">I", self.got.recv(65536)[:4])[0])
        except socket.timeout:
            return numbers

    def ping(self, count=10):
        """Milliseconds that each ICMP echo takes, least first."""
        s = self.l.a.socket(socket.SOCK_RAW, protocol=socket.IPPROTO_ICMP)
        self.addCleanup(s.close)
        s.settimeout(10 * SLOW)
        s.connect((self.l.b.address, 0))
        times = []
        for i in range(count):
            head = struct.pack(">HHHH", 0x0800, 0, 0x7a71, i)
            checksum = ~sum(struct.unpack(">4H", head)) & 0xffff  # no carry with these
            start = time.monotonic()
            s.send(head[:2] + struct.pack(">H", checksum) + head[4:])
            while s.recv(2048)[24:28] != head[4:]:
                pass
            times.append((time.monotonic() - start) * 1000)
        return sorted(times)

    def test_ping_takes_the_set_delay(self):
        """Others may keep the processors busy: the least of many is what the link made of it."""
        self.assertLess(self.ping()[0], 10 * SLOW)
        self.l.set(delay_ms=30)
        times = self.ping()
        self.assertTrue(60 <= times[0] < 60 + 5 * SLOW, times)
        self.l.set("a", delay_ms=7.5)
        times = self.ping()
        self.assertTrue(37.5 <= times[0] < 37.5 + 5 * SLOW, times)
        self.l.set("both", delay_ms=20, jitter_ms=10)
        times = self.ping(20)
        self.assertTrue(20 <= times[0] < 40, times)
        self.assertGreater(times[-1] - times[0], 4, times)

    def test_every_nth_is_lost(self):
        self.l.set("a", loss_every=10)
        self.send(200)
        self.assertEqual(self.receive(180), [i for i in range(200) if i % 10 != 9])
        self.l.set("a", loss_every=0, lose_next=3)
        self.send(5)
        self.assertEqual(self.receive(2), [3, 4])
        stats = self.l.stats()
        self.assertEqual((stats["a"]["lost"], stats["b"]["lost"]), (23, 0))
        self.assertEqual(stats["a"]["in"], stats["a"]["out"] + 23)

    def test_seed_says_which_are_lost(self):
        def lost(seed):
            self.l.end()
            self.between(seed=seed)
            self.l.set("a", loss=0.2)
            self.send(300)
            self.ping(1)  # comes after them
            return set(range(300)) - set(self.receive(300 - self.l.stats()["a"]["lost"]))
        first, again, other = lost(5), lost(5), lost(6)
        self.assertTrue(30 <= len(first) <= 90, first)
        self.assertEqual(first, again)
        self.assertNotEqual(first, other)

    def test_rate(self):
        """Packets of 1028 bytes at 8 Mbit/s; the system notes when each comes."""
        self.l.set("a", rate_mbit=8, queue_packets=2000)
        self.got.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self.got.settimeout(10 * SLOW)
        count, first, came = 1200, 200, []  # the system may need a moment until it notes
        self.send(count, 1000)
        for _ in range(count):
            seconds, ns = struct.unpack("qq", self.got.recvmsg(2048, 64)[1][0][2])
            came.append(seconds + ns / 1e9)
        took, wanted = came[-1] - came[first], (count - 1 - first) * 1028 * 8 / 8e6
        self.assertTrue(0.9 * wanted < took < 1.1 * wanted, (took, self.l.stats()))

    def test_full_queue(self):
        self.l.set("a", rate_mbit=1, queue_packets=10)
        self.send(100, 1000)
        newest = self.receive(10, quiet=1)
        self.assertEqual(newest[:10], list(range(10)))
        self.l.set("a", oldest=1)
        self.send(100, 1000)
        oldest = self.receive(10, quiet=1)
        self.assertEqual(oldest[-9:], list(range(91, 100)))  # the system may have a word between
        self.assertTrue(len(newest) < 90 and len(oldest) < 90, (newest, oldest))
        dropped = self.l.stats()["a"]["queue_full"]
        self.assertIn(dropped - (200 - len(newest) - len(oldest)), (0, 1, 2))

    def test_order_and_duplicates(self):
        self.l.set("a", reorder_every=5, reorder_ms=500)
        self.send(20)
        self.assertEqual(self.receive(20), [i for i in range(20) if i % 5 != 4] + [4, 9, 14, 19])
        self.l.set("a", reorder_every=0, duplicate_every=3)
        self.send(6)
        self.assertEqual(self.receive(8), [0, 1, 2, 2, 3, 4, 5, 5])

    def test_black_hole(self):
        """Of large packets, without a word; of one protocol; of all."""
        self.out.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO)
        self.l.set(mtu=1200)
        self.send(1, 1172)
        self.send(1, 1173)
        self.assertEqual(self.receive(1), [0])
        self.assertEqual(self.out.getsockopt(socket.IPPROTO_IP, IP_MTU), 1500)
        self.l.set(mtu=0, cut=1)
        self.send(1)
        self.ping(1)
        self.assertEqual(self.receive(0), [])
        self.l.set(only="tcp")
        self.send(1)
        self.assertEqual(self.receive(1), [0])
        stats = self.l.stats()["a"]
        self.assertEqual((stats["too_big"], stats["cut"]), (1, 1))

    def test_too_big_is_told(self):
        self.l.set(mtu=1300, told=1)
        for family, level, discover, mtu, headers in (
                (socket.AF_INET, socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_MTU, 28),
                (socket.AF_INET6, socket.IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_MTU, 48)):
            if family == socket.AF_INET6:
                self.out, self.got = self.datagrams(family)
            self.out.setsockopt(level, discover, IP_PMTUDISC_DO)
            self.send(1, 1301 - headers)
            wait_for(lambda: self.out.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                     == errno.EMSGSIZE)
            self.assertEqual(self.out.getsockopt(level, mtu), 1300)
            with self.assertRaises(OSError) as refused:
                self.send(1, 1301 - headers)
            self.assertEqual(refused.exception.errno, errno.EMSGSIZE)
            self.send(1, 1300 - headers)
            self.assertEqual(self.receive(1), [0])

    def test_cut(self):
        self.l.cut()
        self.send(3)
        self.assertEqual(self.receive(0), [])
        self.l.mend()
        self.send(3)
        self.assertEqual(self.receive(3), [0, 1, 2])

    def test_lines_that_are_refused(self):
        for line, at in (("", None), ("c loss=0.1", None), ("a", ""), ("a loss", "loss"),
                         ("both delay_ms=9 loss=2 mtu=9", "loss=2"), ("b delay_ms=9 o\"", "o")):
            answer = self.l.say(line)
            self.assertTrue(answer["error"], line)
            self.assertEqual(answer.get("at"), at, line)
        self.assertLess(self.ping()[0], 10 * SLOW)

    def test_ends_with_its_caller(self):
        self.l.proc.stdin.close()
        self.assertEqual(self.l.proc.wait(10 * SLOW), 0)
        self.assertNotIn("link0", self.l.a.ip("link"))


def serve(listener, incoming, outgoing):
    """Takes one connection: all that comes in, and all of outgoing sent."""
    c, _ = listener.accept()
    with c:
        both_ways(c, incoming, outgoing)


def both_ways(c, incoming, outgoing):
    def send():
        c.sendall(outgoing)
        c.shutdown(socket.SHUT_WR)

    def receive():
        while True:
            data = c.recv(1 << 16)
            if not data:
                return
            incoming.extend(data)
    together(send, receive)


class Tunnel(Linked):
    """The hub at a; relay and spoke at b: all that the hub says and hears crosses the link."""

    port = 7000

    def setUp(self):
        self.l = self.link()
        self.r = RelayAt(self.l.b, self.l.b.address)
        self.addCleanup(self.r.__exit__)

    def bus(self, *more):
        self.h = self.tunnel_hub(self.r, *more, wrapper=self.l.a.enter)
        self.s = self.spoke(self.h, "--forward", str(self.port),
                            wrapper=self.l.b.enter).joined(30)

    def transfer(self, size):
        """So many bytes each way at once, through a forwarded port."""
        there, here = os.urandom(size), os.urandom(size)
        at_hub, at_spoke = bytearray(), bytearray()
        listener, c = self.l.a.socket(), self.l.b.socket()
        self.addCleanup(listener.close)
        self.addCleanup(c.close)
        listener.bind(("127.0.0.1", self.port))
        listener.listen()
        c.settimeout(240 * SLOW)
        listener.settimeout(240 * SLOW)
        start = time.monotonic()
        c.connect(("127.0.0.1", self.port))
        together(lambda: serve(listener, at_hub, here), lambda: both_ways(c, at_spoke, there))
        self.assertEqual(hashlib.sha256(at_hub).digest(), hashlib.sha256(there).digest())
        self.assertEqual(hashlib.sha256(at_spoke).digest(), hashlib.sha256(here).digest())
        return time.monotonic() - start

    def cut_for(self, seconds, within):
        """Nobody is told. What waits is served, and a new client, within the time after it."""
        waiting = self.conn(self.s, timeout=within + 20)
        waiting.send(v=1, op="take", id="w", name="late")
        waiting.sync()
        self.l.cut()
        time.sleep(seconds)
        self.l.mend()
        start = time.monotonic()
        self.conn(self.s, timeout=within + 20).put("jobs", "there")
        took = time.monotonic() - start
        self.assertLess(took, within * SLOW, self.h.logged() + self.s.logged())
        got = self.conn(self.h).call(v=1, op="take", id="t", name="jobs")
        self.assertEqual(got["text"], "there")
        self.conn(self.h).put("late", "at last")
        self.assertEqual(waiting.recv()["text"], "at last")
        return took

    def test_joins_over_a_slow_link_that_loses(self):
        self.l.set(delay_ms=25, loss=0.01)
        start = time.monotonic()
        self.bus()
        self.assertLess(time.monotonic() - start, 10 * SLOW)
        self.conn(self.s).put("jobs", "x")
        self.assertEqual(self.conn(self.h).call(v=1, op="take", id="t", name="jobs")["text"], "x")
        self.assertGreater(self.l.stats()["a"]["out"], 10)

    def test_h19_transfer_under_loss_order_and_duplicates(self):
        self.bus("--forward", str(self.port))
        self.l.set(delay_ms=25 if LONG else 5, loss=0.01, reorder=0.01, duplicate=0.01)
        self.transfer((12 if LONG else 4) << 20)
        stats = self.l.stats()
        for which in "ab":
            for fault in ("lost", "reordered", "duplicated"):
                self.assertGreater(stats[which][fault], 5, stats)

    def test_h17_cut_that_nobody_is_told_of(self):
        self.bus("--heartbeat", "60s")
        """What brings them together is that the systems at the ends, or ours, try again."""
        self.cut_for(30 if LONG else 10, within=20)


if __name__ == "__main__":
    harness.main()
