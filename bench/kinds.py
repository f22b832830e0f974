"""Kinds of rows. Each has contenders that are measured once a round, in turn, ours first, and one
or more results."""
import glob, json, os, subprocess, time

import servers
from judge import Result
from servers import KINDS, LOAD

MANY, FEW = 1000000, 1000
LOAD_S = 150
SEGMENT = 8 << 20


def load(server, work, *more, **numbers):
    """Runs the load engine; its figures, and the processor time of the server for an operation."""
    name, address = (server.name, server.address) if server else ("none", numbers.pop("path"))
    argv = [LOAD, name, address, work] + ["%s=%s" % kv for kv in numbers.items()] + list(more)
    before = server.cpu() if server and server.proc else 0
    out = subprocess.run(argv, capture_output=True, text=True, timeout=LOAD_S)
    if out.returncode != 0:
        raise RuntimeError("%s: %s" % (" ".join(argv[1:]), out.stderr.strip()))
    got = json.loads(out.stdout)
    got["rate"] = got["ops"] / got["seconds"]
    if server and server.proc:
        got["cpu_us"] = (server.cpu() - before) * 1e6 / got["ops"]
    return got


def fill(server, count):
    load(server, "cycle", steps="put", pipeline=128, count=count)


class Row:
    rounds = 5
    peers = ()       # other brokers that are measured
    control = False  # a plain append and fdatasync beside it
    options = {}     # of servers.Server

    def __init__(self, *results, **more):
        self.results = results
        self.servers, self.failures = {}, []
        self.__dict__.update(more)

    def note(self, who, got):
        for r in self.results:
            r.note(who, got[r.figure], got.get("cpu_us"))

    def try_peer(self, who, what):
        """A broker that fails is left out of the row and said; without ours there is none."""
        try:
            return what()
        except Exception as e:
            if who == "zmqcat":
                raise
            self.failures.append("%s: %s" % (who, e))
            self.servers.pop(who, None)
            for r in self.results:
                r.forget(who)
            return None

    def setup(self, scale):
        """Starts what the row needs, for those of its peers that are installed."""
        self.scale = scale
        for who in ("zmqcat",) + tuple(self.peers):
            if KINDS[who].path():
                server = self.try_peer(who, lambda: self.serve(who))
                if server is not None:
                    self.servers[who] = server

    def serve(self, who):
        return KINDS[who](**self.options).start()

    def round(self, tell):
        for who, server in list(self.servers.items()):
            tell(who)
            got = self.try_peer(who, lambda: self.measure(who, server))
            if got is not None:
                self.note(who, got)
        if self.control:
            tell("control")
            path = os.path.join(self.servers["zmqcat"].dir, "control")
            self.note("control", load(None, "control", path=path, count=self.n(500)))

    def teardown(self):
        servers.Server.remove_all()

    def n(self, count):
        return max(int(count * self.scale), 2)


class Speed(Row):
    """Operations a second, or latencies, of one work."""
    work = "cycle"

    def measure(self, who, server):
        return load(server, self.work, **dict(self.numbers, count=self.n(self.numbers["count"])))


class Depth(Row):
    """A put, and then a take, with few messages queued and with many, on two hubs."""
    count = 5000

    def setup(self, scale):
        self.scale = scale
        for who, count in (("zmqcat", MANY), ("few", FEW)):
            self.servers[who] = servers.Zmqcat(**self.options).start()
            fill(self.servers[who], self.n(count))

    def measure(self, who, server):
        got = {}
        for step in ("put", "take"):
            got[step] = load(server, "cycle", steps=step, count=self.n(self.count))["p50_us"]
        return got


class Memory(Row):
    """Bytes of memory for each of 10^6 queued messages."""
    rounds = 1

    def measure(self, who, server):
        empty, count = server.rss(), self.n(MANY)
        fill(server, count)
        time.sleep(0.5)
        return {"bytes": (server.rss() - empty) / count}


class Restart(Row):
    """From the start of the program to its first answer, with 10^6 messages on disk."""
    rounds = 3

    def serve(self, who):
        server = super().serve(who)
        fill(server, self.n(MANY))
        server.stop()
        return server

    def measure(self, who, server):
        return {"ms": load(server, "start", "--", *server.argv())["seconds"] * 1e3}


class Left(Row):
    """What is on disk after 10^6 messages came and went."""
    rounds = 1

    def measure(self, who, server):
        fill(server, self.n(MANY))
        work = {"steps": "reserve,ack", "conns": 50} if who == "beanstalkd" else \
            {"steps": "take", "pipeline": 128}
        load(server, "cycle", count=self.n(MANY), **work)
        time.sleep(2)
        return {"bytes": server.disk(), "files": len(os.listdir(server.data)) if who != "zmqcat"
                else len(glob.glob(os.path.join(server.data, "*.zlog")))}


class Stall(Row):
    """Puts, one after the other, while 50 clients put and take and the log is compacted: what one
    waits. `without`: the same work where nothing stays in the log that had to be copied."""
    rounds = 2
    chunks = 20
    churn = 150000

    def serve(self, who):
        """A hub of whose log one message in five stays, or none."""
        segment = ("--segment", "64k") if self.scale < 0.1 else ()
        server = servers.Zmqcat(durable=True, ours=self.options["ours"] + segment).start()
        chunk = max(self.n(8000), 80)
        for _ in range(self.chunks):
            fill(server, chunk)
            if who == "zmqcat":
                load(server, "cycle", steps="put", pipeline=128, queue="kept", count=chunk // 4)
        load(server, "cycle", steps="take", pipeline=128, count=chunk * self.chunks)
        return server

    def setup(self, scale):
        self.scale = scale

    def round(self, tell):
        for who in ("zmqcat", "without"):
            tell(who)
            server = self.serve(who)
            self.note(who, self.probed(server, who))
            if who == "zmqcat":
                tell("control")
                path = os.path.join(server.dir, "control")
                self.note("control", self.ms(load(None, "control", path=path, count=self.n(5000))))
            self.teardown()

    @staticmethod
    def ms(got):
        return {"p99_ms": got["p99_us"] / 1e3, "max_ms": got["max_us"] / 1e3}

    def probed(self, server, who):
        before = server.status()["storage"]["moved"]
        probe = subprocess.Popen([LOAD, "zmqcat", server.address, "probe", "queue=probe"],
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        churn = max(self.n(self.churn), 3000)
        load(server, "cycle", steps="put,take", conns=50, count=churn)
        out = probe.communicate(b"", timeout=LOAD_S)[0]
        if probe.returncode != 0:
            raise RuntimeError("the probe failed")
        moved = server.status()["storage"]["moved"] - before
        # Where nothing stays, only what is on its way at that moment may be met.
        if (moved > churn / 100) != (who == "zmqcat"):
            raise RuntimeError("%s: %d messages were copied" % (who, moved))
        return self.ms(json.loads(out))


class Idle(Row):
    """Memory for each of many connections that do nothing, or of a server without any. Ours is
    looked at when each of them had a heartbeat."""
    rounds = 2
    heartbeat_s = 6

    def serve(self, who):
        return KINDS[who]()

    def measure(self, who, server):
        server.stop()
        server.start()
        time.sleep(0.2)
        empty = server.rss()
        if self.conns == 0:
            return {"bytes": empty}
        conns = self.n(self.conns)
        proc = subprocess.Popen([LOAD, who, server.address, "idle", "conns=%d" % conns],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        said = proc.stdout.readline()
        if said == b"ready\n":
            time.sleep(self.heartbeat_s * min(self.scale, 1) if who == "zmqcat" else 0.2)
        grown = server.rss() - empty
        proc.communicate(b"")
        if said != b"ready\n" or proc.returncode != 0:
            raise RuntimeError("%d connections cannot be made or held" % conns)
        return {"bytes": grown / conns}


class Start(Row):
    rounds = 15

    def serve(self, who):
        return KINDS[who]()

    def measure(self, who, server):
        return {"ms": load(server, "start", "--", *server.argv())["seconds"] * 1e3}
