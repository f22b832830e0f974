"""A forwarded port under strain: every byte at its place, both ways. The bytes tell where they
belong, so that a failure says what happened to them."""
import array, os, random, select, signal, socket, sys, threading, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness
from harness import Case, LONG, together

SIZE = (16 if LONG else 12) << 20  # more than the queues on the way hold
FLOWS = 3 if LONG else 2
READS = (100, 1208, 5000, 65536, 1 << 20)


def stream(number):
    """SIZE bytes: words of the stream's number and their own place."""
    first = number << 40
    return memoryview(array.array("Q", range(first, first + SIZE // 8)).tobytes())


def check(got, want, at):
    if got == want[at:at + len(got)]:
        return
    first = next((i for i, (a, b) in enumerate(zip(got, want[at:])) if a != b), len(want) - at)
    word = first & ~7
    raise AssertionError("byte %d is another one: %s came, not %s" % (
        at + first, got[word:word + 32].hex(), bytes(want[at + word:at + word + 32]).hex()))


class End:
    """Writes one stream into a socket and reads another: odd sizes, small buffers, long pauses."""

    def __init__(self, sock, out, back, seed):
        self.sock, self.out, self.want, self.dice = sock, out, back, random.Random(seed)
        self.sent = self.seen = 0
        self.asleep_till = time.monotonic() + self.dice.choice((0, 2))
        if self.dice.random() < 0.5:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16384)
            # Less than a segment of loopback would make the kernel wait 200 ms for each.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 131072)
        sock.setblocking(False)

    def read(self):
        more = self.sock.recv(1 + self.dice.randrange(self.dice.choice(READS)))
        check(more, self.want, self.seen)
        self.seen += len(more)
        if self.dice.random() < 0.002:
            self.asleep_till = time.monotonic() + self.dice.choice((0.02, 0.2)) * self.dice.random()
        return bool(more)

    def write(self):
        n = 1 + self.dice.randrange(self.dice.choice(READS))
        self.sent += self.sock.send(self.out[self.sent:self.sent + n])
        if self.sent == len(self.out):
            self.sock.shutdown(socket.SHUT_WR)

    def run(self):
        reads, last = True, time.monotonic()
        with self.sock:
            while reads or self.sent < len(self.out):
                now = time.monotonic()
                r = [self.sock] if reads and now >= self.asleep_till else []
                w = [self.sock] if self.sent < len(self.out) else []
                r, w, _ = select.select(r, w, [], 0.02)
                if r:
                    reads = self.read()
                if w:
                    self.write()
                if r or w:
                    last = now
                if now - last > 60 * harness.SLOW:
                    raise AssertionError("nothing moves: %d sent, %d read" % (self.sent, self.seen))
        if self.seen != len(self.want):
            raise AssertionError("%d bytes came, not %d" % (self.seen, len(self.want)))


class Exact(Case):
    def setUp(self):
        self.r = self.relay()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(self.listener.close)
        port = self.listener.getsockname()[1]
        with socket.create_server(("127.0.0.1", 0)) as s:
            self.local = s.getsockname()[1]
        self.h = self.tunnel_hub(self.r, "--forward", str(port))
        self.s = self.spoke(self.h, "--forward", "%d:%d" % (self.local, port)).joined()

    def flow(self, i, seed):
        """One connection; both of its ends."""
        near = socket.create_connection(("127.0.0.1", self.local))
        far = self.listener.accept()[0]
        there, back = stream(2 * i), stream(2 * i + 1)
        return End(near, there, back, seed + i).run, End(far, back, there, ~(seed + i)).run

    def stumble(self, seed, over):
        """Stops one process for a moment, again and again: packets are lost, queues fill."""
        dice = random.Random(seed)
        while not over.wait(dice.random() * 0.2):
            proc = dice.choice((self.h, self.s, self.r)).proc
            proc.send_signal(signal.SIGSTOP)
            time.sleep(dice.random() * dice.choice((0.01, 0.1, 0.3)))
            proc.send_signal(signal.SIGCONT)

    def test_every_byte_at_its_place(self):
        seed, over = random.randrange(1 << 30), threading.Event()
        print("# seed %d" % seed, flush=True)
        ends = [end for i in range(FLOWS) for end in self.flow(i, seed)]
        stumbles = threading.Thread(target=self.stumble, args=(seed, over))
        stumbles.start()
        try:
            together(*ends)
        finally:
            over.set()
            stumbles.join()


if __name__ == "__main__":
    harness.main()
