"""Many bytes each way through a tunnel. What does not arrive as it was sent is kept in
<build>/interop/differs, with a line that says where it differs."""
import os, socket, struct, sys, threading, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness
from harness import BUILD

KEPT = os.path.join(BUILD, "interop", "differs")
STEP = 1 << 16
# What is looked for elsewhere, when it is not where it should be.
SAMPLE = 32


class Transfer:
    """What the service got on one connection, and what it answers."""

    def __init__(self, number):
        self.number, self.got, self.back = number, bytearray(), b""

    def answer(self):
        return struct.pack(">Q", self.number) + self.back


class Service:
    """A TCP service on 127.0.0.1 that reads to the end, then sends the number of this transfer in 8
    bytes and as many other bytes as it got. `seen` counts what arrived."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = self.listener.getsockname()[1]
        self.seen = 0
        self.transfers = []
        self.lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                c = self.listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self._serve, args=(c,), daemon=True).start()

    def _serve(self, c):
        with self.lock:
            t = Transfer(len(self.transfers))
            self.transfers.append(t)
        with c:
            try:
                while True:
                    more = c.recv(STEP)
                    if not more:
                        break
                    t.got += more
                    self.seen += len(more)
                t.back = os.urandom(len(t.got))
                c.sendall(t.answer())
            except OSError:
                pass

    def transfer(self, sent, got):
        """The transfer that an answer names; else the one that began with these bytes; else one of
        nothing."""
        if len(got) >= 8 and struct.unpack(">Q", got[:8])[0] < len(self.transfers):
            return self.transfers[struct.unpack(">Q", got[:8])[0]]
        alike = [t for t in self.transfers if t.got[:SAMPLE] == sent[:SAMPLE]]
        return (alike or [Transfer(0)])[-1]

    def close(self):
        # A thread that waits in accept() would keep a socket that is only closed.
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()


def first_difference(a, b):
    """Offset of the first byte that differs, or where the shorter one ends; -1 when equal."""
    for at in range(0, max(len(a), len(b)), STEP):
        x, y = a[at:at + STEP], b[at:at + STEP]
        if x != y:
            return at + next((i for i, (p, q) in enumerate(zip(x, y)) if p != q),
                             min(len(x), len(y)))
    return -1


def equal_again(a, b, start):
    """Where, after start, 64 KiB blocks are equal from there to the end; the length if nowhere."""
    end = min(len(a), len(b))
    if len(a) != len(b):
        return end
    while end - STEP >= start and a[end - STEP:end] == b[end - STEP:end]:
        end -= STEP
    return end


def told(what, sent, got):
    """One line about the difference."""
    at = first_difference(sent, got)
    line = "%s: %d bytes sent, %d arrived, first difference at %d" % (what, len(sent), len(got), at)
    if at < min(len(sent), len(got)):
        line += ", none from %d on" % equal_again(sent, got, at)
        source = bytes(sent).find(bytes(got[at:at + SAMPLE]))
        line += "; what arrived there " + (
            "was sent at %d" % source if source >= 0 else "was never sent")
    return line


def keep(parts):
    """Writes (name, bytes) files into a folder of their own; returns it."""
    folder = os.path.join(KEPT, "%s-%d-%d" % (time.strftime("%H%M%S"), os.getpid(),
                                              threading.get_ident() % 100000))
    os.makedirs(folder, exist_ok=True)
    for name, data in parts:
        with open(os.path.join(folder, name), "wb") as f:
            f.write(data)
    return folder


def compare(sent, got, service, cut):
    """Compares what went there and came back with the service's own account. cut: less may have
    arrived, but that must be the beginning."""
    t = service.transfer(sent, got)
    pairs = [["there", sent, bytes(t.got)], ["back", t.answer(), bytes(got)]]
    wrong = [told(*p) for p in pairs
             if first_difference(p[1][:len(p[2])] if cut else p[1], p[2]) >= 0]
    if wrong:
        folder = keep([("%s-%s" % (name, side), data) for name, a, b in pairs
                       for side, data in (("sent", a), ("arrived", b))])
        raise AssertionError("%s\nkept in %s" % ("\n".join(wrong), folder))
    # The bytes are not needed any more.
    t.got, t.back = bytearray(), b""


def exchange(sock, size, service, timeout=60, may_end=False):
    """Talks to a Service through sock: size bytes each way, then compares them. True when all went
    through; may_end: the connection may end or stand still before that."""
    sock.settimeout(timeout * harness.SLOW)
    sent, got, why = os.urandom(size), bytearray(), []

    def send():
        try:
            sock.sendall(sent)
            sock.shutdown(socket.SHUT_WR)
        except OSError as e:
            why.append("sending: %s" % e)
    sender = threading.Thread(target=send, daemon=True)
    sender.start()
    try:
        while True:
            more = sock.recv(STEP)
            if not more:
                break
            got += more
    except OSError as e:
        why.append("receiving: %s" % e)
    sender.join()
    complete = not why and len(got) == 8 + size
    compare(sent, got, service, bool(why) or may_end)
    if why and not may_end:
        raise AssertionError("after %d of %d bytes: %s" % (len(got), 8 + size, "; ".join(why)))
    return complete
