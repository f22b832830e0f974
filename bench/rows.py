"""What is measured. A row has contenders, each measured once a round, in turn; `ours` is the first.

A goal is a ratio to a contender (or to the best of several), made so that more is better, or a
bound that our figure must not exceed.
"""
import json, os, subprocess, time

import servers
from servers import KINDS, LOAD


def load(server, work, *more, **numbers):
    """Runs the load engine; its figures, and the processor time of the server for an operation."""
    name, address = (server.name, server.address) if server else ("none", numbers.pop("path"))
    argv = [LOAD, name, address, work] + ["%s=%s" % kv for kv in numbers.items()] + list(more)
    before = server.cpu() if server and server.proc else 0
    out = subprocess.run(argv, capture_output=True, text=True, timeout=600)
    if out.returncode != 0:
        raise RuntimeError("%s: %s" % (" ".join(argv[1:]), out.stderr.strip()))
    got = json.loads(out.stdout)
    if server and server.proc:
        got["cpu_us"] = (server.cpu() - before) * 1e6 / got["ops"]
    return got


class Row:
    rounds = 5
    unit = "/s"      # or us, B, ms, files
    bound = None     # our figure must not exceed it
    goal = None      # ratio to reach
    against = ()     # the contenders that the goal is about
    control = False  # a plain append and fdatasync beside it

    def __init__(self, name, title, **more):
        self.name, self.title = name, title
        self.servers = {}
        self.__dict__.update(more)
        self.peers = getattr(self, "peers", self.against)
        self.figures, self.cpu = {}, {}

    @property
    def more_is_better(self):
        return self.unit == "/s"

    def note(self, who, figure, cpu_us=None):
        self.figures.setdefault(who, []).append(figure)
        if cpu_us is not None:
            self.cpu.setdefault(who, []).append(cpu_us)

    def setup(self, scale):
        """Starts what the row needs, for those of its peers that are installed."""
        self.scale = scale
        for who in ("zmqcat",) + tuple(self.peers):
            if KINDS[who].path():
                self.servers[who] = self.serve(who)

    def serve(self, who):
        return KINDS[who](**getattr(self, "options", {})).start()

    def teardown(self):
        servers.Server.remove_all()

    def n(self, count):
        return max(int(count * self.scale), 2)


class Speed(Row):
    """Operations a second, or a latency, of one work."""
    work = "cycle"
    figure = "rate"

    def steps_of(self, who):
        return self.numbers

    def round(self, tell):
        for who, server in self.servers.items():
            tell(who)
            numbers = dict(self.steps_of(who))
            numbers["count"] = self.n(numbers["count"])
            got = load(server, self.work, **numbers)
            self.note(who, got["ops"] / got["seconds"] if self.figure == "rate"
                      else got[self.figure], got.get("cpu_us"))
        if self.control:
            tell("control")
            path = os.path.join(self.servers["zmqcat"].dir, "control")
            got = load(None, "control", path=path, count=self.n(500))
            self.note("control", got["ops"] / got["seconds"])


class Depth(Speed):
    """A put and a take with few messages queued and with many, on two hubs."""
    unit = "us"
    figure = "p50_us"
    goal = 1 / 1.2
    against = ("few",)

    def setup(self, scale):
        self.scale = scale
        self.servers = {"zmqcat": servers.Zmqcat(durable=self.durable).start(),
                        "few": servers.Zmqcat(durable=self.durable).start()}
        for who, count in (("zmqcat", 1000000), ("few", 1000)):
            load(self.servers[who], "cycle", steps="put", pipeline=128, count=self.n(count))
        self.numbers = {"steps": "put,take", "count": 5000}


class Memory(Row):
    """Bytes of memory for each of 10^6 queued messages."""
    rounds = 1
    unit = "B"

    def serve(self, who):
        return KINDS[who](durable=self.durable, fill=True).start()

    def round(self, tell):
        count = self.n(1000000)
        for who, server in self.servers.items():
            tell(who)
            empty = server.rss()
            load(server, "cycle", steps="put", pipeline=128, count=count)
            time.sleep(0.5)
            self.note(who, (server.rss() - empty) / count)


class Restart(Row):
    """From the start of the program to its first answer, with 10^6 messages on disk."""
    rounds = 3
    unit = "ms"
    goal = 1.0
    against = ("redis",)
    peers = ("redis", "beanstalkd")

    def serve(self, who):
        server = KINDS[who](durable=True, fill=True).start()
        load(server, "cycle", steps="put", pipeline=128, count=self.n(1000000))
        server.stop()
        return server

    def round(self, tell):
        for who, server in self.servers.items():
            tell(who)
            got = load(server, "start", "--", *server.argv())
            self.note(who, got["seconds"] * 1e3)


class Left(Restart):
    """What is on disk after 10^6 messages came and went."""
    rounds = 1
    unit = "B"
    goal = None
    against = ()
    peers = ("redis", "beanstalkd")
    segment = 8 << 20

    def serve(self, who):
        server = KINDS[who](durable=True, fill=True).start()
        load(server, "cycle", steps="put", pipeline=128, count=self.n(1000000))
        return server

    def round(self, tell):
        for who, server in self.servers.items():
            tell(who)
            work = {"steps": "reserve,ack", "conns": 50} if who == "beanstalkd" else \
                {"steps": "take", "pipeline": 128}
            load(server, "cycle", count=self.n(1000000), **work)
            time.sleep(2)
            self.note(who, server.disk())


class Idle(Row):
    """Memory for each of 10,000 connections that do nothing, or of a server without any."""
    rounds = 3
    unit = "B"
    peers = ("beanstalkd", "redis", "mosquitto", "nats")

    def round(self, tell):
        for who, server in self.servers.items():
            tell(who)
            server.stop()
            server.start()
            empty = server.rss()
            if self.conns == 0:
                self.note(who, empty)
                continue
            conns = self.n(self.conns)
            proc = subprocess.Popen([LOAD, who, server.address, "idle", "conns=%d" % conns],
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            said = proc.stdout.readline()
            if said == b"ready\n":
                self.note(who, (server.rss() - empty) / conns)
            proc.communicate(b"")
            if said != b"ready\n":
                raise RuntimeError("%s: %d connections cannot be made" % (who, conns))


class Start(Row):
    rounds = 15
    unit = "ms"
    peers = ("beanstalkd", "redis", "mosquitto", "nats")

    def serve(self, who):
        return KINDS[who]()

    def round(self, tell):
        for who, server in self.servers.items():
            tell(who)
            got = load(server, "start", "--", *server.argv())
            self.note(who, got["seconds"] * 1e3)


QUEUES = ("beanstalkd", "redis")
DISK = {"durable": True}


def put(count, **more):
    return dict(steps="put", count=count, **more)


def job(count, **more):
    return dict(steps="put,reserve,ack", count=count, **more)


def pub(subs, count, pipeline):
    return Speed("pub-%d" % subs, "deliveries to %d subscriber%s" % (subs, "s" * (subs > 1)),
                 work="publish", numbers=dict(conns=subs, count=count, pipeline=pipeline),
                 goal=1.0, against=("redis",), peers=("redis", "nats", "mosquitto"))


def all_rows():
    return [
        Speed("put", "put, one after the other", numbers=put(20000), goal=1.0,
              against=("beanstalkd", "redis", "mosquitto")),
        Speed("put-disk", "put, one client, on disk", numbers=put(1000), options=DISK,
              control=True, goal=1.0, against=("beanstalkd",), peers=QUEUES),
        Speed("put-50-disk", "put, 50 clients, on disk", numbers=put(5000, conns=50),
              options=DISK, control=True, goal=1.0, against=("redis",), peers=QUEUES),
        Speed("put-50-disk-lease", "the same against a broker with leases",
              numbers=put(5000, conns=50), options=DISK, goal=7.0, against=("beanstalkd",)),
        Speed("put-pipelined", "put, 128 at once", numbers=put(200000, pipeline=128), goal=0.8,
              against=("redis",), peers=QUEUES + ("mosquitto",)),
        Speed("put-pipelined-disk", "put, 128 at once, on disk",
              numbers=put(50000, pipeline=128), options=DISK, control=True, goal=1.0,
              against=("redis",)),
        Speed("job-1", "put, reserve, ack, 1 worker", numbers=job(8000), goal=1.0,
              against=QUEUES),
        Speed("job-50", "put, reserve, ack, 50 workers", numbers=job(30000, conns=50), goal=1.0,
              against=QUEUES),
        Speed("job-1-disk", "put, reserve, ack, 1 worker, on disk", numbers=job(500),
              options=DISK, control=True, goal=1.0, against=QUEUES),
        Speed("job-50-disk", "put, reserve, ack, 50 workers, on disk",
              numbers=job(3000, conns=50), options=DISK, control=True, goal=1.0, against=QUEUES),
        Speed("wake-p50", "waiting take wakes, median", work="wake", numbers={"count": 1000},
              unit="us", figure="p50_us", goal=1.0, against=("beanstalkd",), peers=QUEUES),
        Speed("wake-p99", "waiting take wakes, 99th percentile", work="wake",
              numbers={"count": 1000}, unit="us", figure="p99_us", goal=1.0,
              against=("beanstalkd",), peers=QUEUES, rounds=7),
        pub(1, 50000, 128), pub(10, 30000, 128), pub(100, 10000, 128), pub(1000, 1000, 64),
        Speed("ask", "request and reply", work="ask", numbers={"count": 5000}, goal=1.3,
              against=("nats",), peers=("nats", "redis")),
        Speed("ask-tcp", "request and reply, on TCP", work="ask", numbers={"count": 5000},
              options={"tcp": True}, peers=("nats",)),
        Depth("depth", "put and take at 10^6 (few: 10^3)", durable=False),
        Depth("depth-disk", "put and take at 10^6 (few: 10^3), on disk", durable=True),
        Memory("memory", "memory a message at 10^6", durable=False, bound=200, peers=QUEUES),
        Memory("memory-disk", "memory a message at 10^6, on disk", durable=True, bound=64,
               peers=QUEUES),
        Restart("restart", "restart with 10^6 messages"),
        Left("left", "disk left after 10^6 messages (goal: 2 segments)",
             bound=2 * Left.segment + 65536),
        Idle("empty", "memory of an empty server", conns=0, bound=6e6),
        Idle("session", "memory an idle session at 10,000", conns=10000, bound=1200),
        Start("start", "start to first answer", bound=8),
    ]
