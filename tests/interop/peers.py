"""The real Go peers as processes on loopback: relay, server, client."""
import base64, fcntl, http.server, itertools, json, os, re, socket, struct, subprocess, sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness
from harness import Conn, GaveUp, read_file, tempdir, wait_for, write_file
from programs import built, names


def main(version):
    """Builds the peers, then runs the tests of the calling program in a network of their own where
    that can be had: only there is port 7 free and can nothing leave the host."""
    built(version)
    if "ZMQCAT_OWN_NETWORK" in os.environ:
        loopback_up()
    else:
        print("peers: " + ", ".join(names(version)), flush=True)
        if subprocess.run(["unshare", "-rn", "true"], capture_output=True).returncode == 0:
            os.environ["ZMQCAT_OWN_NETWORK"] = "1"
            os.execvp("unshare", ["unshare", "-rn", sys.executable] + sys.argv)
    harness.main()


def loopback_up():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        # SIOCSIFFLAGS, IFF_UP
        fcntl.ioctl(s, 0x8914, struct.pack("16sH14x", b"lo", 1))


# Below those that the kernel gives to connections, which could take one that is free now.
_ports = itertools.count(10000 + os.getpid() * 97 % 20000)


def free_port(kind=socket.SOCK_STREAM):
    while True:
        port = next(_ports)
        with socket.socket(socket.AF_INET, kind) as s:
            try:
                s.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass


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
        self.publish(self.port)
        self.web = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self.handler())
        threading.Thread(target=self.web.serve_forever, daemon=True).start()
        self.url = "http://127.0.0.1:%d/map.json" % self.web.server_address[1]

    def publish(self, port):
        """Writes the map, with this port as the relay's."""
        pin = re.search(r'"CertName":"(sha256-raw:[0-9a-f]{64})"', self.logged())[1]
        node = {"Name": "900a", "RegionID": 900, "HostName": "127.0.0.1", "IPv4": "127.0.0.1",
                "IPv6": "none", "STUNPort": self.stun_port, "DERPPort": port, "CertName": pin}
        region = {"RegionID": 900, "RegionCode": "lo", "RegionName": "Loopback", "Nodes": [node]}
        write_file(self.map, json.dumps({"Regions": {"900": region}}))

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
            self.argv += ["--verbose", "--key=server", "--serve=" + ports, *options]
        else:
            self.argv += ["--verbose", "--key=server", "serve", *options, *ports.split(",")]
        self.token_file = os.path.join(self.dir, "token")
        self.env["TAILCAT_ADDR_FILE"] = self.token_file
        self.start()

    def start(self):
        """Returns once it is at the relay. One start in about fifty never gets there: its first
        look at the network can end before its network counts as up."""
        for _ in range(5):
            if self.started():
                os.chmod(self.token_file, 0o600)
                return
            self.stop()
        raise AssertionError("tailcat does not reach the relay:\n" + self.logged())

    def started(self):
        for path in (self.token_file, self.log):
            if os.path.exists(path):
                os.unlink(path)
        self.spawn(self.argv)

        def up():
            if self.proc.poll() is not None:
                raise AssertionError("tailcat ended:\n" + self.logged())
            return ("derp-900 connected" in self.logged() and os.path.exists(self.token_file)
                    and self.token())
        try:
            return wait_for(up, 10)
        except GaveUp:
            return None

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

    def key_file(self):
        return os.path.join(self.dir, "tailcat", "keys", self.key + ".private.json")

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
