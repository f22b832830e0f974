"""What is measured, with its goals."""
from judge import Result
from kinds import Depth, Idle, Left, Memory, Restart, SEGMENT, Speed, Stall, Start

QUEUES = ("beanstalkd", "redis")
ALL = ("beanstalkd", "redis", "mosquitto", "nats")
# Where messages queue up, the bound of a mailbox has to be raised.
QUEUED = ("--mailbox-cap", "2000000")
# Where 128 publications are on their way, the buffer of a subscriber has to be.
BUFFERED = ("--sub-buffer", "256")


def put(name, title, count, against, goal=1.0, peers=QUEUES, also=(), durable=False, **numbers):
    results = (Result(name, title, goal=goal, against=against),) + also
    return Speed(*results, peers=peers, control=durable,
                 numbers=dict(numbers, steps="put", count=count),
                 options={"durable": durable, "ours": QUEUED})


def job(name, title, count, durable=False, **numbers):
    return Speed(Result(name, title, goal=1.0, against=QUEUES), peers=QUEUES, control=durable,
                 numbers=dict(numbers, steps="put,reserve,ack", count=count),
                 options={"durable": durable})


def pub(subs, count, pipeline, goal):
    title = "deliveries to %d subscriber%s" % (subs, "s" * (subs > 1))
    return Speed(Result("pub-%d" % subs, title, goal=goal, against=("redis",)), work="publish",
                 numbers=dict(conns=subs, count=count, pipeline=pipeline),
                 peers=("redis", "nats", "mosquitto"), options={"ours": BUFFERED})


def depth(name, where, durable, count):
    return Depth(*[Result("%s-%s" % (name, step), "%s at 10^6 messages (few: 10^3)%s"
                          % (step, where), unit="us", figure=step, within=1.2, against=("few",))
                   for step in ("put", "take")],
                 count=count, options={"durable": durable, "ours": QUEUED})


def memory(name, where, durable, bound):
    return Memory(Result(name, "memory a message at 10^6" + where, unit="B", figure="bytes",
                         bound=bound), peers=QUEUES,
                  options={"durable": durable, "fill": True, "ours": QUEUED})


def speeds():
    leases = Result("put-50-disk-lease", "the same, goal against a broker with leases", goal=7.0,
                    against=("beanstalkd",))
    wake = [Result("wake-p%d" % p, "waiting take wakes, " + title, unit="us", goal=1.0,
                   figure="p%d_us" % p, against=("beanstalkd",))
            for p, title in ((50, "median"), (99, "99th percentile"))]
    return [
        put("put", "put, one after the other", 20000, peers=QUEUES + ("mosquitto",),
            against=QUEUES + ("mosquitto",)),
        put("put-disk", "put, one client, on disk", 1000, ("beanstalkd",), durable=True),
        put("put-50-disk", "put, 50 clients, on disk", 4000, ("redis",), conns=50, durable=True,
            also=(leases,)),
        put("put-pipelined", "put, 128 at once", 200000, ("redis",), goal=0.8, pipeline=128,
            peers=QUEUES + ("mosquitto",)),
        put("put-pipelined-disk", "put, 128 at once, on disk", 50000, ("redis",), pipeline=128,
            peers=("redis",), durable=True),
        job("job-1", "put, reserve, ack, 1 worker", 8000),
        job("job-50", "put, reserve, ack, 50 workers", 30000, conns=50),
        job("job-1-disk", "put, reserve, ack, 1 worker, on disk", 400, durable=True),
        job("job-50-disk", "put, reserve, ack, 50 workers, on disk", 2500, durable=True, conns=50),
        Speed(*wake, work="wake", numbers={"count": 1000}, peers=QUEUES),
        pub(1, 50000, 128, None), pub(10, 30000, 128, 1.0), pub(100, 10000, 128, 1.0),
        pub(1000, 1000, 64, 1.0),
        Speed(Result("ask", "request and reply, all on TCP", goal=1.3, against=("nats",)),
              work="ask", numbers={"count": 5000}, peers=("nats",), options={"tcp": True}),
        Speed(Result("ask-unix", "request and reply, unix socket (NATS: TCP)", against=("nats",)),
              work="ask", numbers={"count": 5000}, peers=("nats", "redis")),
    ]


def sizes():
    return [
        depth("depth", "", False, 5000), depth("depth-disk", ", on disk", True, 1000),
        memory("memory", "", False, 200), memory("memory-disk", ", on disk", True, 64),
        Restart(Result("restart", "restart with 10^6 messages", unit="ms", figure="ms", goal=1.0,
                       against=("redis",)), peers=QUEUES,
                options={"durable": True, "fill": True, "ours": QUEUED}),
        Left(Result("left", "disk left after 10^6 messages", unit="B", figure="bytes",
                    bound=2 * SEGMENT + 65536),
             Result("left-segments", "segments (others: files) left after them", unit="files",
                    figure="files", bound=2),
             peers=QUEUES, options={"durable": True, "fill": True, "ours": QUEUED}),
        Stall(Result("stall-max", "slowest put during compaction (without: none)", unit="ms",
                     figure="max_ms", bound=100, worst=True),
              Result("stall-p99", "99th percentile of these puts", unit="ms", figure="p99_ms"),
              options={"ours": QUEUED}),
        Idle(Result("empty", "memory of an empty server", unit="B", figure="bytes", bound=6e6),
             conns=0, peers=ALL),
        Idle(Result("session", "memory an idle session at 10,000", unit="B", figure="bytes",
                    bound=1200), conns=10000, peers=ALL),
        Start(Result("start", "start to first answer", unit="ms", figure="ms", bound=8),
              peers=ALL),
    ]


def all_rows():
    return speeds() + sizes()
