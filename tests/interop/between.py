"""A wire that can be cut: forwards TCP connections to a port of 127.0.0.1."""
import select, socket, threading

STEP = 1 << 16
UP, DOWN = "up", "down"  # to the port, from the port


class Wire:
    """One connection. Two threads carry it."""

    def __init__(self, between, near, far):
        self.between, self.sockets = between, {UP: (near, far), DOWN: (far, near)}
        self.carried = {UP: 0, DOWN: 0}
        self.cut_at = {UP: None, DOWN: None}
        self.ended = set()
        self.over = threading.Event()
        for way in (UP, DOWN):
            threading.Thread(target=self._carry, args=(way,), daemon=True).start()

    def cut(self, way, after=0):
        """After so many more bytes that way and a part of what is read then, both ends are closed.
        A part: so that the cut is not where a record or a frame ends."""
        self.cut_at[way] = self.carried[way] + after

    def _carry(self, way):
        source, target = self.sockets[way]
        try:
            while not self.over.is_set():
                # Whoever is held leaves the bytes in the kernel, whose buffers fill.
                self.between.open.wait()
                if not select.select([source], [], [], 0.2)[0] or not self.between.open.is_set():
                    continue
                data = source.recv(STEP)
                if not data:
                    target.shutdown(socket.SHUT_WR)
                    self.ended.add(way)
                    if len(self.ended) < 2:
                        return
                    break
                limit = self.cut_at[way]
                if limit is not None and self.carried[way] + len(data) > limit:
                    target.sendall(data[:len(data) * 2 // 3])
                    break
                target.sendall(self.between.change(way, self.carried[way], data))
                self.carried[way] += len(data)
        except (OSError, ValueError):  # closed by the other thread
            pass
        self.end()

    def end(self):
        self.over.set()
        for s in self.sockets[UP]:
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            s.close()


class Between:
    """Listens on a port of 127.0.0.1; wires: the connections so far."""

    def __init__(self, to_port, change=lambda way, at, data: data):
        self.to_port, self.change, self.wires = to_port, change, []
        self.open = threading.Event()
        self.open.set()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def hold(self):
        """From now on nothing is carried, but connections stand and are taken."""
        self.open.clear()

    def release(self):
        self.open.set()

    def live(self):
        return [w for w in self.wires if not w.over.is_set()]

    def _accept(self):
        while True:
            try:
                near = self.listener.accept()[0]
                far = socket.create_connection(("127.0.0.1", self.to_port))
            except ConnectionRefusedError:
                near.close()
                continue
            except OSError:
                return
            for s in (near, far):
                s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.wires.append(Wire(self, near, far))

    def close(self):
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()
        self.release()
        for w in self.wires:
            w.end()
