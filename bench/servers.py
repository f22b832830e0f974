"""Brokers under measurement: how each is started, found, watched and ended."""
import json, os, re, shutil, signal, socket, subprocess, tempfile, time

BUILD = os.path.abspath(os.environ.get("ZMQCAT_BUILD", "build"))
LOAD = os.path.join(BUILD, "load")
NATS_VERSION = "v2.10.29"
BUILD_S = 300


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    """One process with a directory of its own, on a unix socket in it or on a free port."""
    name = program = package = None
    made = []

    def __init__(self, durable=False, fill=False, tcp=False, ours=()):
        """ours: options of our hub, which the others do not have."""
        self.durable, self.fill, self.ours = durable, fill, list(ours)
        self.dir = tempfile.mkdtemp(prefix="zmqcat-bench-")
        self.data = os.path.join(self.dir, "data")
        self.address = str(free_port()) if tcp else os.path.join(self.dir, "s")
        self.proc = None
        self.made.append(self)
        if durable:
            os.mkdir(self.data)

    @classmethod
    def path(cls):
        return shutil.which(cls.program)

    @classmethod
    def version(cls):
        out = subprocess.run([cls.path()] + cls.version_args, capture_output=True, text=True)
        found = re.search(r"\d+\.\d+(\.\d+)?", out.stdout + out.stderr)
        return found.group(0) if found else "?"

    version_args = ["--version"]

    def start(self):
        self.proc = subprocess.Popen(self.argv(), stdin=subprocess.DEVNULL,
                                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 120
        while time.monotonic() < end and self.proc.poll() is None:
            if self.answers():
                return self
            time.sleep(0.02)
        raise RuntimeError("%s did not start: %s" % (self.name, " ".join(self.argv())))

    def answers(self):
        s = socket.socket(socket.AF_INET if self.address.isdigit() else socket.AF_UNIX)
        try:
            s.connect(("127.0.0.1", int(self.address)) if self.address.isdigit()
                      else self.address)
            return True
        except OSError:
            return False
        finally:
            s.close()

    def stop(self):
        """Ends the process; its files stay."""
        if self.proc is not None and self.proc.poll() is None:
            self.proc.send_signal(signal.SIGTERM)
            try:
                self.proc.wait(30)
            except subprocess.TimeoutExpired:
                self.proc.kill()
                self.proc.wait()
        self.proc = None

    @classmethod
    def remove_all(cls):
        """Ends all that were started, with their files."""
        while cls.made:
            server = cls.made.pop()
            server.stop()
            shutil.rmtree(server.dir, ignore_errors=True)

    def rss(self):
        with open("/proc/%d/status" % self.proc.pid) as f:
            return int(re.search(r"VmRSS:\s+(\d+)", f.read()).group(1)) * 1024

    def cpu(self):
        """Seconds of processor time so far, of all threads that live."""
        total, tasks = 0, "/proc/%d/task" % self.proc.pid
        for task in os.listdir(tasks):
            with open("%s/%s/schedstat" % (tasks, task)) as f:
                total += int(f.read().split()[0])
        return total / 1e9

    def disk(self):
        """Bytes that its files take, as the file system counts them."""
        return sum(os.stat(os.path.join(d, f)).st_blocks * 512
                   for d, _, files in os.walk(self.data) for f in files)


class Zmqcat(Server):
    """As it is shipped, but for what a row says."""
    name = "zmqcat"
    program = os.path.join(BUILD, "zmqcat-hub")

    def argv(self):
        listen = "127.0.0.1:" + self.address if self.address.isdigit() else self.address
        argv = [self.program, "--local", "--listen", listen] + self.ours
        return argv + (["--mailbox", self.data] if self.durable else [])

    def status(self):
        """What its control socket says, which it has beside a unix socket."""
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(10)
            s.connect(self.address + ".ctl")
            body = b'{"v":1,"op":"status","id":"s"}'
            s.sendall(b"ZMQC" + len(body).to_bytes(4, "big") + body)
            with s.makefile("rb") as f:
                size = int.from_bytes(f.read(8)[4:], "big")
                return json.loads(f.read(size))["result"]


class Beanstalkd(Server):
    name = program = package = "beanstalkd"
    version_args = ["-v"]

    def argv(self):
        argv = [self.path(), "-l", "unix:" + self.address]
        return argv + (["-b", self.data, "-F" if self.fill else "-f0"] if self.durable else [])


class Redis(Server):
    name = "redis"
    program = "redis-server"
    package = "redis-server"

    def argv(self):
        argv = [self.path(), "--port", "0", "--unixsocket", self.address, "--save", "",
                "--maxclients", "12000", "--client-output-buffer-limit", "pubsub 0 0 0"]
        if not self.durable:
            return argv + ["--appendonly", "no"]
        return argv + ["--dir", self.data, "--appendonly", "yes", "--appendfsync", "always"]


class Mosquitto(Server):
    name = program = package = "mosquitto"
    version_args = ["-h"]

    def argv(self):
        conf = os.path.join(self.dir, "conf")
        with open(conf, "w") as f:
            f.write("listener 0 %s\nallow_anonymous true\nmax_queued_messages 0\n"
                    "max_inflight_messages 0\nlog_type none\n%s"
                    % (self.address, "user root\n" if os.getuid() == 0 else ""))
        return [self.path(), "-c", conf]


class Nats(Server):
    """Debian's, or built from the Go module proxy inside the build folder."""
    name = "nats"
    program = package = "nats-server"

    def __init__(self, **more):
        super().__init__(**dict(more, tcp=True))

    @classmethod
    def path(cls):
        built = os.path.join(BUILD, "peers", "nats-server")
        return shutil.which(cls.program) or (built if os.path.exists(built) else None)

    @classmethod
    def build(cls):
        """Builds it where there is none; why that was not possible, or None."""
        if cls.path():
            return None
        if not shutil.which("go"):
            return "nats-server was not built: there is no Go"
        env = dict(os.environ, GOBIN=os.path.join(BUILD, "peers"),
                   GOPATH=os.path.join(BUILD, "peers", "go"), GOFLAGS="-modcacherw")
        try:
            out = subprocess.run(
                ["go", "install", "github.com/nats-io/nats-server/v2@" + NATS_VERSION], env=env,
                capture_output=True, text=True, timeout=BUILD_S)
            why = (out.stderr.strip().splitlines() or ["exit status %d" % out.returncode])[-1]
        except (OSError, subprocess.TimeoutExpired) as e:
            why = str(e)
        return None if cls.path() else "nats-server was not built: " + why

    def argv(self):
        return [self.path(), "-a", "127.0.0.1", "-p", self.address]


KINDS = {k.name: k for k in (Zmqcat, Beanstalkd, Redis, Mosquitto, Nats)}
