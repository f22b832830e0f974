"""The real Go peers: tailcat and derper, built from the Go module proxy, and run on loopback.

Versions are fixed by tests/interop/<version>/go.mod and go.sum. Nothing of them is kept in the
tree; programs land in <build>/interop/<version>.
"""
import base64, fcntl, functools, hashlib, http.server, json, os, re, shutil, socket, struct
import subprocess, sys, threading, unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness
from harness import BUILD, Conn, read_file, skip, tempdir, wait_for, write_file

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = ("github.com/tailscale/tailcat/cmd/tailcat", "tailscale.com/cmd/derper")
GO_OLDEST = (1, 21)
BUILD_TIMEOUT_S = 900


def go_command():
    """The Go that can build the peers; SKIP when there is none."""
    go = shutil.which("go")
    if not go:
        skip("no go command (1.21 or later) on the PATH")
    said = subprocess.run([go, "version"], capture_output=True, text=True, timeout=60).stdout
    found = re.search(r"go(\d+)\.(\d+)", said)
    if not found or tuple(map(int, found.groups())) < GO_OLDEST:
        skip("%s is older than 1.21: %s" % (go, said.strip()))
    return go


@functools.lru_cache(None)
def build(version):
    """The folder with tailcat and derper of a version; builds them when they are not there."""
    source, target = os.path.join(HERE, version), os.path.join(BUILD, "interop", version)
    files = {n: read_file(os.path.join(source, n)) for n in ("go.mod", "go.sum", "tools.go")}
    stamp = hashlib.sha256(b"".join(files.values())).hexdigest()
    stamp_file = os.path.join(target, "stamp")
    if not os.path.exists(stamp_file) or read_file(stamp_file).decode() != stamp:
        go = go_command()
        # With -mod=mod Go may write to go.mod: it gets a copy.
        module = os.path.join(target, "module")
        os.makedirs(module, exist_ok=True)
        for name, data in files.items():
            write_file(os.path.join(module, name), data, 0o644)
        env = dict(os.environ, GOFLAGS="-mod=mod", GOTOOLCHAIN="auto", CGO_ENABLED="0")
        got = subprocess.run([go, "build", "-o", target + "/"] + list(PROGRAMS), cwd=module,
                             env=env, capture_output=True, text=True, timeout=BUILD_TIMEOUT_S)
        if got.returncode != 0:
            raise AssertionError("go build of %s failed:\n%s" % (version, got.stderr[-3000:]))
        write_file(stamp_file, stamp)
    versions = re.findall(r"^\t((?:github\.com/tailscale/tailcat|tailscale\.com) v\S+)$",
                          files["go.mod"].decode(), re.M)
    if "ZMQCAT_OWN_NETWORK" not in os.environ:
        print("peers: " + ", ".join(versions), flush=True)
    return target


def main(version):
    """Builds the peers, then runs the tests of the calling program in a network of their own where
    that can be had: only there is port 7 free and can nothing leave the host."""
    try:
        build(version)
    except unittest.SkipTest as e:
        print("SKIP %s: %s" % (version, e))
        print("0 passed, 0 failed, 1 skipped", flush=True)
        sys.exit(0)
    if "ZMQCAT_OWN_NETWORK" in os.environ:
        loopback_up()
    elif subprocess.run(["unshare", "-rn", "true"], capture_output=True).returncode == 0:
        os.environ["ZMQCAT_OWN_NETWORK"] = "1"
        os.execvp("unshare", ["unshare", "-rn", sys.executable] + sys.argv)
    harness.main()


def loopback_up():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        # SIOCSIFFLAGS, IFF_UP
        fcntl.ioctl(s, 0x8914, struct.pack("16sH14x", b"lo", 1))


def free_port(kind=socket.SOCK_STREAM):
    with socket.socket(socket.AF_INET, kind) as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def other_psk(token):
    """The token with a pre-shared key that is not the server's."""
    data = bytearray(base64.urlsafe_b64decode(token[2:] + "=" * (-len(token[2:]) % 4)))
    data[data.index(b"\x61q\x58\x20") + 4] ^= 1
    return "tc" + base64.urlsafe_b64encode(data).decode().rstrip("=")


class Process:
    """A program of theirs with its own home and log."""

    def __init__(self):
        self.dir = tempdir()
        self.log = os.path.join(self.dir, "log")
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("TS_", "TAILCAT"))}
        # Without UDP between the peers all goes through the relay.
        self.env.update(HOME=self.dir, XDG_CONFIG_HOME=self.dir, XDG_CACHE_HOME=self.dir,
                        TS_DEBUG_NEVER_DIRECT_UDP="1")
        self.proc = None

    def spawn(self, argv):
        with open(self.log, "ab") as out:
            self.proc = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                         env=self.env, cwd=self.dir)
        harness._children.append(self.proc)

    def logged(self):
        with open(self.log, errors="replace") as f:
            return f.read()

    def stop(self):
        if self.proc and self.proc.poll() is None:
            self.proc.kill()
            self.proc.wait()


class Derper(Process):
    """A DERP relay; a restart keeps port and certificate. map: a file, url: the same by HTTP."""

    def __init__(self, programs):
        super().__init__()
        self.program = os.path.join(programs, "derper")
        self.port, self.stun_port = free_port(), free_port(socket.SOCK_DGRAM)
        self.map = os.path.join(self.dir, "map.json")
        self.start()
        pin = re.search(r'"CertName":"(sha256-raw:[0-9a-f]{64})"', self.logged())[1]
        node = {"Name": "900a", "RegionID": 900, "HostName": "127.0.0.1", "IPv4": "127.0.0.1",
                "IPv6": "none", "STUNPort": self.stun_port, "DERPPort": self.port, "CertName": pin}
        region = {"RegionID": 900, "RegionCode": "lo", "RegionName": "Loopback", "Nodes": [node]}
        write_file(self.map, json.dumps({"Regions": {"900": region}}))
        self.web = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self.handler())
        threading.Thread(target=self.web.serve_forever, daemon=True).start()
        self.url = "http://127.0.0.1:%d/map.json" % self.web.server_address[1]

    def handler(self):
        folder = self.dir

        class Quiet(http.server.SimpleHTTPRequestHandler):
            def __init__(self, *args):
                super().__init__(*args, directory=folder)

            def log_message(self, *_):
                pass
        return Quiet

    def start(self):
        self.spawn([self.program, "-a", "127.0.0.1:%d" % self.port, "-http-port", "-1", "-stun",
                    "-stun-port", str(self.stun_port), "-hostname", "127.0.0.1", "-certmode",
                    "manual", "-certdir", self.dir, "-c", os.path.join(self.dir, "derper.json")])

        def up():
            if self.proc.poll() is not None:
                raise AssertionError("derper ended:\n" + self.logged())
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return "CertName" in self.logged()
            except OSError:
                return False
        wait_for(up)

    def __exit__(self, *_):
        self.stop()
        self.web.shutdown()
        self.web.server_close()


class Server(Process):
    """tailcat that serves ports. Its key survives a new start."""

    def __init__(self, programs, derper, ports, *options):
        super().__init__()
        self.program = os.path.join(programs, "tailcat")
        self.argv = [self.program, "--derpmap-url=" + derper.url]
        got = subprocess.run(self.argv + ["genkey", "--key=server"], env=self.env,
                             capture_output=True, text=True, timeout=60)
        if got.returncode != 0:
            raise AssertionError(got.stderr)
        if os.path.basename(programs) == "v0.3":
            self.argv += ["--key=server", "--serve=" + ports, *options]
        else:
            self.argv += ["--key=server", "serve", *options, *ports.split(",")]
        self.token_file = os.path.join(self.dir, "token")
        self.env["TAILCAT_ADDR_FILE"] = self.token_file
        self.start()

    def start(self):
        if os.path.exists(self.token_file):
            os.unlink(self.token_file)
        self.spawn(self.argv)

        def up():
            if self.proc.poll() is not None:
                raise AssertionError("tailcat ended:\n" + self.logged())
            return os.path.exists(self.token_file) and self.token()
        wait_for(up, 30)
        os.chmod(self.token_file, 0o600)

    def token(self):
        return read_file(self.token_file).decode().strip()


class Client(Process):
    """The client modes of tailcat, with one key for all that this object runs."""

    def __init__(self, programs, fresh=True):
        super().__init__()
        self.program = os.path.join(programs, "tailcat")
        self.key = "new" if fresh else "client-default"
        if not fresh:
            got = subprocess.run([self.program, "genkey", "--client", "--key=" + self.key],
                                 env=self.env, capture_output=True, text=True, timeout=60)
            self.node = re.search(r"nodekey:[0-9a-f]{64}", got.stdout + got.stderr)[0]

    def run(self, *args, stdin=b"", timeout=30):
        return subprocess.run([self.program, "--key=" + self.key] + list(args), input=stdin,
                              env=self.env, capture_output=True, timeout=timeout * harness.SLOW)

    def pipe(self, token, port):
        """One inner TCP connection; a socket whose ends are the program's stdin and stdout."""
        ours, theirs = socket.socketpair()
        with open(self.log, "ab") as err:
            proc = subprocess.Popen([self.program, "--key=" + self.key, token, str(port)],
                                    stdin=theirs, stdout=theirs, stderr=err, env=self.env)
        theirs.close()
        harness._children.append(proc)
        return Pipe(ours, proc)


class Pipe(Conn):
    """A ZMQC connection through a running tailcat."""

    def __init__(self, sock, proc, timeout=20.0):
        self.sock, self.proc, self.timeout = sock, proc, timeout
        self.pong, self.data = True, b""

    def close(self):
        super().close()
        if self.proc.poll() is None:
            self.proc.kill()
        self.proc.wait()


class Service:
    """A TCP service on 127.0.0.1 that reads to the end, then sends the checksum of what it got and
    the same number of other bytes. `seen` counts what arrived."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.seen = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                c = self.listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self._serve, args=(c,), daemon=True).start()

    def _serve(self, c):
        with c:
            digest, size = hashlib.sha256(), 0
            try:
                while True:
                    more = c.recv(1 << 16)
                    if not more:
                        break
                    digest.update(more)
                    size += len(more)
                    self.seen += len(more)
                back = os.urandom(size)
                c.sendall(digest.digest() + hashlib.sha256(back).digest() + back)
            except OSError:
                pass

    def close(self):
        # A thread that waits in accept() would keep a socket that is only closed.
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()


def exchange(sock, size, timeout=60):
    """Talks to a Service through sock: size bytes each way, then compares both checksums."""
    sock.settimeout(timeout * harness.SLOW)
    data, failed = os.urandom(size), []

    def send():
        try:
            sock.sendall(data)
            sock.shutdown(socket.SHUT_WR)
        except OSError as e:
            failed.append(e)
    sender = threading.Thread(target=send, daemon=True)
    sender.start()
    got = bytearray()
    while True:
        more = sock.recv(1 << 16)
        if not more:
            break
        got += more
    sender.join()
    if failed:
        raise failed[0]
    if len(got) != 64 + size:
        raise AssertionError("%d bytes came back instead of %d" % (len(got), 64 + size))
    if got[:32] != hashlib.sha256(data).digest():
        raise AssertionError("the service got other bytes than were sent")
    if got[32:64] != hashlib.sha256(got[64:]).digest():
        raise AssertionError("other bytes came back than the service sent")
