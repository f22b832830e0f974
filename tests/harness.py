"""What the black-box tests share: a hub process, raw ZMQC connections, the command.

Everything runs from BUILD (environment ZMQCAT_BUILD, default ./build) in a short temporary
directory; every process a test starts is ended by its process id.
"""
import atexit, base64, functools, itertools, json, os, re, shlex, shutil, signal, socket
import struct, subprocess, tempfile, threading, time, types, unittest

from program import TUNNEL, leave_out, local, main, plain, skip

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.abspath(os.environ.get("ZMQCAT_BUILD", os.path.join(ROOT, "build")))
HUB = os.path.join(BUILD, "zmqcat-hub")
SPOKE = os.path.join(BUILD, "zmqcat-spoke")
RELAY = os.path.join(BUILD, "relay")
CLI = os.path.join(BUILD, "zmqcat")
# The compiler, which may have a wrapper or options.
CC = shlex.split(os.environ.get("CC", "cc"))
# Slow builds (sanitizers, valgrind) get more time.
SLOW = float(os.environ.get("ZMQCAT_TEST_SLOW", "1"))
# The long loops run too (make check-all sets this).
LONG = os.environ.get("ZMQCAT_TEST_LONG", "") not in ("", "0")
SPOKES = 10
# What a connection may hold beside its session: the buffers of its sockets, and the windows of the
# tunnel both ways.
UNDERWAY_BYTES = (28 if TUNNEL else 4) << 20
# Fields and frames that the old protocol does not have (docs/man/zmqc.5, ADDITIONS).
ADDITIONS = ("headers", "attempt", "at", "by", "end", "peek", "subs", "epoch", "count", "failed",
             "code", "result")

# For tests of memory: a sanitizer keeps freed blocks, which would count.
FREED_IS_FREE = {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "")
                 + ":quarantine_size_mb=1:thread_local_quarantine_size_kb=64"}

_children = []


def _reap():
    for p in _children:
        if p.poll() is None:
            p.kill()
            p.wait()


atexit.register(_reap)


def tempdir():
    d = tempfile.mkdtemp(prefix="zq", dir="/tmp")
    atexit.register(shutil.rmtree, d, True)
    return d


def write_file(path, data, mode=0o600):
    """Writes a file in one step; returns its path."""
    with open(path + ".new", "wb") as f:
        os.fchmod(f.fileno(), mode)
        f.write(data if isinstance(data, bytes) else data.encode())
    os.rename(path + ".new", path)
    return path


def read_file(path):
    with open(path, "rb") as f:
        return f.read()


class GaveUp(AssertionError):
    """What was waited for did not come in time."""


def wait_for(what, seconds=10.0, step=0.01, why=str):
    """Polls what() until it is true; returns its value or raises GaveUp, with what why() says."""
    end = time.monotonic() + seconds * SLOW
    while True:
        value = what()
        if value:
            return value
        if time.monotonic() > end:
            raise GaveUp("gave up waiting. " + why())
        time.sleep(step)


class Hub:
    """A zmqcat-hub process. `durable=True` gives it a mailbox directory that survives restart()."""

    program = HUB

    def __init__(self, *options, durable=False, listen=None, env=None, start=True, wrapper=(),
                 heartbeat=None):
        self.dir = tempdir()
        self.path = os.path.join(self.dir, "s")
        self.listen = listen or "unix://" + self.path
        self.options = list(options)
        self.mailbox = os.path.join(self.dir, "m")
        if durable:
            self.options += ["--mailbox", self.mailbox]
        if heartbeat is not None:
            self.options += ["--heartbeat", heartbeat]
        self.env = dict(os.environ, **(env or {}))
        self.wrapper = list(wrapper)
        self.log = os.path.join(self.dir, "log")
        self.proc = None
        if start:
            self.start()

    def arguments(self):
        return ["--local", "--listen", self.listen]

    def start(self, *more):
        out = open(self.log, "ab")
        argv = [self.program] + self.arguments() + self.options + list(more)
        self.proc = subprocess.Popen(self.wrapper + argv, stdin=subprocess.DEVNULL, stdout=out,
                                     stderr=out, env=self.env)
        out.close()
        _children.append(self.proc)
        if self.listen.startswith("unix://"):
            def up():
                if self.proc.poll() is not None:
                    raise AssertionError("hub ended: %s\n%s"
                                         % (self.proc.returncode, self.logged()))
                try:
                    self.knock()
                    return True
                except OSError:
                    return False
            wait_for(up)
        return self

    def knock(self):
        """OSError until both its sockets can be dialled; that of control is made last, and not
        when its path would be too long."""
        Conn(self.path).close()
        if "--control" not in self.options and len(self.path) <= 103:
            self.control().close()

    def run(self, argv=None, timeout=20):
        """Runs it to its end (a start that must fail); returns CompletedProcess with bytes."""
        if argv is None:
            argv = self.arguments() + self.options
        return subprocess.run(self.wrapper + [self.program] + argv, stdin=subprocess.DEVNULL,
                              capture_output=True, env=self.env, timeout=timeout * SLOW)

    def logged(self):
        with open(self.log, errors="replace") as f:
            return f.read()

    def door(self):
        """The process that the next client of the bus dials."""
        return self

    @property
    def bus(self):
        """The URL for the next client."""
        return "unix://" + self.door().path

    def connect(self, **more):
        door = self.door()
        c = Conn(door.path, **more)
        c.identity = door.identity
        return c

    def identity(self):
        """Who its clients are to the hub."""
        return "uid:%d" % os.getuid()

    def control(self):
        return Conn(self.path + ".ctl")

    def status(self):
        c = self.control()
        try:
            return c.call(v=1, op="status", id="st")["result"]
        finally:
            c.close()

    def kill(self, sig=signal.SIGKILL):
        self.proc.send_signal(sig)
        return self.proc.wait(20 * SLOW)

    def stop(self):
        """SIGTERM; returns the exit status."""
        return self.kill(signal.SIGTERM)

    def restart(self, sig=signal.SIGTERM):
        self.kill(sig)
        return self.start()

    def fds(self):
        return len(os.listdir("/proc/%d/fd" % self.proc.pid))

    def rss(self):
        with open("/proc/%d/status" % self.proc.pid) as f:
            return int(re.search(r"VmRSS:\s+(\d+)", f.read()).group(1)) * 1024

    def cpu(self):
        """CPU seconds used so far."""
        with open("/proc/%d/stat" % self.proc.pid) as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.proc and self.proc.poll() is None:
            self.proc.terminate()
            try:
                self.proc.wait(10 * SLOW)
            except subprocess.TimeoutExpired:
                self.proc.kill()
                self.proc.wait()


class Relay:
    """The DERP relay of the tests; a restart keeps port and certificate."""

    def __init__(self):
        self.dir = tempdir()
        self.map = os.path.join(self.dir, "map.json")
        self.port = 0
        self.proc = None
        self.start()

    def start(self):
        self.proc = subprocess.Popen([RELAY, "--dir", self.dir, "--port", str(self.port)],
                                     stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        _children.append(self.proc)
        line = self.proc.stdout.readline().decode()
        found = re.fullmatch(r"relay at 127\.0\.0\.1:(\d+)\n", line)
        if not found:
            raise AssertionError("the relay did not start: %r" % line)
        self.port = int(found[1])
        return self

    def stop(self):
        self.proc.kill()
        self.proc.wait()
        self.proc.stdout.close()

    def freeze(self):
        self.proc.send_signal(signal.SIGSTOP)

    def thaw(self):
        self.proc.send_signal(signal.SIGCONT)

    def __exit__(self, *_):
        if self.proc.poll() is None:
            self.stop()


class TunnelHub(Hub):
    """A hub with a tunnel through a relay. Its key survives restart()."""

    def __init__(self, relay, *options, start=True, **more):
        super().__init__(*options, start=False, **more)
        self.relay = relay
        self.key = os.path.join(self.dir, "key")
        self.token_file = os.path.join(self.dir, "token")
        if start:
            self.start()

    def arguments(self):
        return ["--listen", self.listen, "--derp-map", self.relay.map, "--key-file", self.key,
                "--token-out", self.token_file]

    def token(self):
        """The token, once the hub has logged in."""
        wait_for(lambda: os.path.exists(self.token_file))
        with open(self.token_file) as f:
            return f.read().strip()


class Spoke(Hub):
    """A zmqcat-spoke process; token: a file."""

    program = SPOKE

    def __init__(self, token, *options, start=True, **more):
        super().__init__(*options, start=False, **more)
        self.token_file = token
        self.key = os.path.join(self.dir, "key")
        if start:
            self.start()

    def arguments(self):
        named = ["--token-file", self.token_file] if self.token_file else []
        return ["--listen", self.listen, "--key-file", self.key] + named

    def joined(self, seconds=10.0):
        def up():
            try:
                return self.status()["tunnel"]["state"] == "up"
            except OSError:  # the control socket is made after that of the bus
                return False
        wait_for(up, seconds, why=self.logged)
        return self

    def identity(self):
        return nodekey(self.key)

    def knock(self):
        self.control().close()  # made after that of the bus, which would show at the hub


class TunnelledHub(TunnelHub):
    """A hub whose clients come through ten spokes, in turn. The spokes outlive its restarts."""

    def __init__(self, *options, start=True, **more):
        super().__init__(relay_of_all(), *options, start=False, **more)
        self.spokes, self.turn = [], itertools.cycle(range(SPOKES))
        self.lock = threading.Lock()
        if start:
            self.start()

    def start(self, *more):
        super().start(*more)
        self.token()
        if not self.spokes:
            self.spokes = [Spoke(self.token_file, start=False) for _ in range(SPOKES)]
            together(*[s.start for s in self.spokes])
        return self

    def door(self):
        with self.lock:
            return self.spokes[next(self.turn)]

    def kill(self, sig=signal.SIGKILL):
        """Ends the hub; the spokes have noticed when this returns, as local clients have."""
        status = super().kill(sig)
        for s in self.spokes:
            wait_for(lambda: s.status()["tunnel"]["state"] != "up")
        return status

    def fds(self):
        return super().fds() + sum(s.joined().fds() for s in self.spokes)

    def __exit__(self, *_):
        super().__exit__()
        for s in self.spokes:
            s.__exit__()


@functools.lru_cache(None)
def relay_of_all():
    """The relay of this process's tunnelled hubs."""
    if TUNNEL in ("", "1"):
        return Relay()
    return types.SimpleNamespace(map=TUNNEL)


def bus_hub(*options, **more):
    """A hub whose bus is tested: tunnelled or not, as the run wants it."""
    return (TunnelledHub if TUNNEL else Hub)(*options, **more)


def is_unnamed(name):
    """Whether this is what the hub calls a session that gave no name."""
    return bool(re.fullmatch(r"\[fd7a:[0-9a-f:]+\]:[0-9]+" if TUNNEL else "@", name))


def frame(obj=None, **fields):
    """One frame as bytes; fields of the object as keywords (in the order given)."""
    body = obj if isinstance(obj, bytes) else json.dumps(
        obj if obj is not None else fields, ensure_ascii=False, separators=(",", ":")).encode()
    return b"ZMQC" + struct.pack(">I", len(body)) + body


class Closed(Exception):
    """The hub closed the connection."""


class Conn:
    """A raw connection. recv() gives parsed frames and answers heartbeats unless pong=False."""

    def __init__(self, where, timeout=10.0, hello=False, pong=True):
        if isinstance(where, tuple):
            self.sock = socket.create_connection(where)
        else:
            self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                self.sock.connect(where)
            except OSError:
                self.sock.close()
                raise
        self.timeout = timeout
        self.pong = pong
        self.data = b""
        if hello:
            self.call(op="hello", id="h")

    def send(self, obj=None, **fields):
        self.sock.settimeout(self.timeout * SLOW)
        self.sock.sendall(frame(obj, **fields))

    def send_raw(self, data):
        self.sock.settimeout(self.timeout * SLOW)
        self.sock.sendall(data)

    def recv_bytes(self, timeout=None):
        """The next frame as bytes, header included. Closed at EOF, TimeoutError when none comes."""
        end = time.monotonic() + (timeout if timeout is not None else self.timeout) * SLOW
        while True:
            if len(self.data) >= 8:
                if self.data[:4] != b"ZMQC":
                    raise AssertionError("bad magic from the hub: %r" % self.data[:40])
                size = 8 + struct.unpack(">I", self.data[4:8])[0]
                if len(self.data) >= size:
                    got, self.data = self.data[:size], self.data[size:]
                    return got
            left = end - time.monotonic()
            if left <= 0:
                raise TimeoutError
            self.sock.settimeout(left)
            try:
                more = self.sock.recv(1 << 18)
            except (ConnectionResetError, BrokenPipeError):
                more = b""
            except socket.timeout:
                raise TimeoutError from None
            if not more:
                raise Closed
            self.data += more

    def recv(self, timeout=None):
        end = time.monotonic() + (timeout if timeout is not None else self.timeout) * SLOW
        while True:
            got = json.loads(self.recv_bytes((end - time.monotonic()) / SLOW)[8:])
            if got["op"] == "ping" and self.pong:
                self.send(v=1, op="pong", id=got.get("id", ""))
                continue
            return got

    def call(self, obj=None, **fields):
        """Sends one frame and returns the next."""
        self.send(obj, **fields)
        return self.recv()

    def put(self, name, text, **more):
        return self.call(v=1, op="put", name=name, text=text, **more)

    def sync(self):
        """Returns when the hub has worked off all that was sent; nothing else may arrive."""
        got = self.call(v=1, op="ping", id="sync")
        if (got["op"], got.get("id")) != ("pong", "sync"):
            raise AssertionError("unexpected frame %r" % got)

    def nothing(self, seconds=0.2):
        """True when no frame comes within the time."""
        try:
            got = self.recv(seconds / SLOW)
        except TimeoutError:
            return True
        raise AssertionError("unexpected frame %r" % got)

    def closed(self, seconds=5.0):
        """True when the hub closes (frames before that are dropped)."""
        try:
            while True:
                self.recv_bytes(seconds)
        except Closed:
            return True
        except TimeoutError:
            return False

    def half_close(self):
        self.sock.shutdown(socket.SHUT_WR)

    def close(self):
        self.sock.close()

    def reset(self):
        """Closes with RST (TCP) or at once."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()


def pairs(raw):
    """The top-level fields of a frame as (key, raw value), in order; no white space allowed."""
    text = raw[8:].decode()
    decoder, at, found = json.JSONDecoder(), 1, []
    if text[:1] != "{" or text[-1:] != "}":
        raise AssertionError("not an object: %r" % text[:80])
    while at < len(text) - 1:
        key, colon = decoder.raw_decode(text, at)
        value_end = decoder.raw_decode(text, colon + 1)[1]
        if text[colon] != ":" or text[value_end] not in ",}":
            raise AssertionError("white space or rubbish at %d: %r" % (colon, text[at:at + 80]))
        found.append((key, text[colon + 1:value_end]))
        at = value_end + 1
    if "{%s}" % ",".join(json.dumps(k) + ":" + v for k, v in found) != text:
        raise AssertionError("unusual JSON: %r" % text[:200])
    return found


def together(*functions):
    """Runs functions in threads; the first exception of any is raised here."""
    errors = []

    def guard(function):
        try:
            function()
        except BaseException as e:
            errors.append(e)
    threads = [threading.Thread(target=guard, args=(f,), daemon=True) for f in functions]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if errors:
        raise errors[0]


class Case(unittest.TestCase):
    """Tests that start hubs: whatever hub() and conn() made is ended with the test."""

    def hub(self, *options, **more):
        hub = bus_hub(*options, **more)
        self.addCleanup(hub.__exit__)
        return hub

    def relay(self):
        relay = Relay()
        self.addCleanup(relay.__exit__)
        return relay

    def tunnel_hub(self, relay, *options, **more):
        hub = TunnelHub(relay, *options, **more)
        self.addCleanup(hub.__exit__)
        return hub

    def spoke(self, token, *options, **more):
        """token: a file, or the hub."""
        if isinstance(token, TunnelHub):
            token.token()
            token = token.token_file
        spoke = Spoke(token, *options, **more)
        self.addCleanup(spoke.__exit__)
        return spoke

    def conn(self, hub, **more):
        c = hub.connect(**more)
        self.addCleanup(c.close)
        return c

    def crowd(self, hub):
        """50 blocked takes, 10 leases and a deaf subscriber with 4 MB pending: field case H16."""
        p, holder = self.conn(hub), self.conn(hub)
        takes = [self.conn(hub) for _ in range(50)]
        for c in takes:
            c.send(v=1, op="take", id="t", name="empty")
        for i in range(10):
            p.put("jobs", "j%d" % i)
        for i in range(10):
            self.assertEqual(holder.call(v=1, op="reserve", name="jobs", lease=600)["op"], "msg")
        deaf = self.conn(hub)
        deaf.send_raw(frame(v=1, op="sub", name="big"))
        for i in range(4):
            p.call(v=1, op="pub", name="big", text="z" * 1000000)
        for c in takes:
            c.sync()
        sub = self.conn(hub)
        self.assertEqual(sub.call(v=1, op="sub", name="ev")["op"], "ok")
        return takes, sub, deaf

    def assertErr(self, got, code, text=None):
        self.assertEqual((got["op"], got.get("code")), ("err", code), got)
        if text is not None:
            self.assertEqual(got["error"], text)
        self.assertTrue(got["error"], got)

    def assertFrame(self, got, **wanted):
        """The named fields have these values (None: absent); others may be there."""
        self.assertEqual({k: got.get(k) for k in wanted}, wanted, got)


def payload(msg):
    """Payload bytes of a msg."""
    if msg.get("body"):
        return base64.b64decode(msg["body"])
    return msg.get("text", "").encode()


def cli(*args, stdin=None, env=None, timeout=20, listen=None, cwd=None):
    """Runs zmqcat; returns CompletedProcess with bytes."""
    argv = [CLI] + list(args)
    e = dict(os.environ, **(env or {}))
    if listen:
        e["ZMQCAT_LISTEN"] = listen
    source = None if stdin is not None else subprocess.DEVNULL
    return subprocess.run(argv, input=stdin, stdin=source, capture_output=True, env=e,
                          timeout=timeout * SLOW, cwd=cwd)


def nodekey(path):
    """The node key of a key file."""
    got = cli("nodekey", path)
    if got.returncode != 0:
        raise AssertionError(got.stderr)
    return got.stdout.decode().strip()
