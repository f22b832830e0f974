"""The other brokers of bench/load: what is said to each, byte for byte, to a peer that is played
here, and a tiny work against the real one where it is installed."""
import json, os, socket, subprocess, sys, threading, unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "tests"), os.path.join(ROOT, "bench")]
import harness
os.environ["ZMQCAT_BUILD"] = harness.BUILD
import servers

# Any three bytes: the payload.
ANY = b"\xff\xff\xff"


def load(peer, address, work, *args):
    return subprocess.run([servers.LOAD, peer, address, work, "payload=3"] + list(args),
                          capture_output=True, text=True, timeout=30 * harness.SLOW)


class Fake:
    """Plays a broker: one script for each connection, in the order in which they come. A step is
    (bytes to come, bytes to say), an event to wait for, or a list with an event to set."""

    def __init__(self, *scripts, tcp=False):
        self.wrong = []
        self.sock = socket.socket(socket.AF_INET if tcp else socket.AF_UNIX)
        self.sock.bind(("127.0.0.1", 0) if tcp else os.path.join(harness.tempdir(), "s"))
        self.sock.listen(8)
        self.sock.settimeout(20 * harness.SLOW)
        name = self.sock.getsockname()
        self.address = str(name[1]) if tcp else name
        self.threads = [threading.Thread(target=self.accept, args=(scripts,), daemon=True)]
        self.threads[0].start()

    def accept(self, scripts):
        for script in scripts:
            conn = self.sock.accept()[0]
            conn.settimeout(20 * harness.SLOW)
            self.threads.append(threading.Thread(target=self.play, args=(conn, script),
                                                 daemon=True))
            self.threads[-1].start()

    def play(self, conn, script):
        try:
            for step in script:
                if isinstance(step, threading.Event):
                    step.wait(20 * harness.SLOW)
                elif isinstance(step, list):
                    step[0].set()
                else:
                    self.expect(conn, *step)
            self.nothing_more(conn)
        except (OSError, AssertionError) as e:
            self.wrong.append(repr(e))
        finally:
            conn.close()

    @staticmethod
    def nothing_more(conn):
        try:
            rest = conn.recv(1000)
        except ConnectionResetError:  # it closed without reading all that was said
            return
        assert not rest, "more came: %r" % rest

    @staticmethod
    def expect(conn, wanted, answer):
        got = b""
        while len(got) < len(wanted):
            more = conn.recv(len(wanted) - len(got))
            assert more, "ended after %r, wanted %r" % (got, wanted)
            got += more
        assert all(b in (a, 0xff) for a, b in zip(got, wanted)), "%r, wanted %r" % (got, wanted)
        for part in (answer[:5], answer[5:]):  # the end of it comes later
            if part:
                conn.sendall(part)

    def end(self):
        while any(t.is_alive() for t in self.threads):
            for t in list(self.threads):
                t.join()
        self.sock.close()


class Bytes(unittest.TestCase):
    def played(self, peer, work, *args, scripts, tcp=False):
        fake = Fake(*scripts, tcp=tcp)
        out = load(peer, fake.address, work, *args)
        fake.end()
        self.assertEqual((fake.wrong, out.stderr), ([], ""))
        return json.loads(out.stdout)

    def refused(self, peer, *script, tcp=False, steps="put"):
        fake = Fake(script, tcp=tcp)
        out = load(peer, fake.address, "cycle", "count=1", "steps=" + steps)
        fake.end()
        self.assertEqual(out.returncode, 1, out.stdout)
        return out.stderr

    JOB = ("cycle", "steps=put,reserve,ack", "count=2")

    def test_beanstalkd(self):
        one = [(b"put 0 0 60 3\r\n" + ANY + b"\r\n", b"INSERTED 17\r\n"),
               (b"reserve\r\n", b"RESERVED 17 3\r\nabc\r\n"),
               (b"delete 17\r\n", b"DELETED\r\n")]
        self.assertEqual(self.played("beanstalkd", *self.JOB, scripts=[one + one])["ops"], 2)
        self.assertIn("beanstalkd answers: DRAINING", self.refused(
            "beanstalkd", (b"put 0 0 60 3\r\n", b"DRAINING\r\n")))
        wake = [(b"reserve\r\n", b"")], [(b"put 0 0 60 3\r\n" + ANY + b"\r\n", b"INSERTED 1\r\n")]
        put = threading.Event()
        wake[0][1:] = [put, (b"", b"RESERVED 1 3\r\nabc\r\n"), (b"delete 1\r\n", b"DELETED\r\n")]
        wake[1].insert(1, [put])
        self.assertEqual(self.played("beanstalkd", "wake", "count=1", scripts=wake)["ops"], 1)

    def test_redis(self):
        def command(*words):
            return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w)
                                                       for w in words)
        one = [(command(b"LPUSH", b"bench", ANY), b":1\r\n"),
               (command(b"RPOPLPUSH", b"bench", b"held.1"), b"$3\r\nabc\r\n"),
               (command(b"LREM", b"held.1", b"1", b"abc"), b":1\r\n")]
        self.assertEqual(self.played("redis", *self.JOB, scripts=[one + one])["ops"], 2)
        self.assertIn("redis answers: -OOM", self.refused(
            "redis", (command(b"LPUSH", b"bench", ANY), b"-OOM command not allowed\r\n")))
        self.assertIn("the queue is empty", self.refused(
            "redis", (command(b"RPOP", b"bench"), b"$-1\r\n"), steps="take"))
        said, replied = threading.Event(), threading.Event()
        asker = [(command(b"LPUSH", b"bench.service", ANY) + command(b"BRPOP", b"reply", b"0"),
                  b":1\r\n"), [said], replied, (b"", b"*2\r\n$5\r\nreply\r\n$3\r\nabc\r\n")]
        worker = [(command(b"BRPOP", b"bench.service", b"0"), b""), said,
                  (b"", b"*2\r\n$13\r\nbench.service\r\n$3\r\nabc\r\n"),
                  (command(b"LPUSH", b"reply", ANY) + command(b"BRPOP", b"bench.service", b"0"),
                   b":1\r\n"), [replied]]
        self.assertEqual(self.played("redis", "ask", "count=1", scripts=[asker, worker])["ops"], 1)

    def test_redis_publications(self):
        def command(*words):
            return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w)
                                                       for w in words)
        said = threading.Event()
        message = b"*3\r\n$7\r\nmessage\r\n$11\r\nbench.topic\r\n$3\r\nabc\r\n"
        sub = [(command(b"SUBSCRIBE", b"bench.topic"),
                b"*3\r\n$9\r\nsubscribe\r\n$11\r\nbench.topic\r\n:1\r\n"), said,
               (b"", message + message)]
        pub = [(command(b"PUBLISH", b"bench.topic", ANY) * 2, b":1\r\n:1\r\n"), [said]]
        self.assertEqual(self.played("redis", "publish", "count=2", "conns=1", "pipeline=4",
                                     scripts=[pub, sub])["ops"], 2)

    def test_mosquitto(self):
        def hello(number):
            return (b"\x10\x11\0\4MQTT\4\2\0\0\0\5load%d" % number, b"\x20\2\0\0")
        one = (b"\x32\x0c\0\5bench\xff\xff" + ANY, b"\x40\2\0\1")
        self.assertEqual(self.played("mosquitto", "cycle", "count=2",
                                     scripts=[[hello(1), one, one]])["ops"], 2)
        self.assertIn("mosquitto answers", self.refused(
            "mosquitto", (hello(1)[0], b"\x20\2\0\5")))
        said = threading.Event()
        pub = [hello(1), (b"\x30\x10\0\x0bbench.topic" + ANY, b""), [said]]
        sub = [hello(2), (b"\x82\x10\0\1\0\x0bbench.topic\0", b"\x90\3\0\1\0"), said,
               (b"", b"\x30\x10\0\x0bbench.topicabc")]
        self.assertEqual(self.played("mosquitto", "publish", "count=1", "conns=1",
                                     scripts=[pub, sub])["ops"], 1)

    def test_nats(self):
        hello = [(b"", b'INFO {"server_id":"x"}\r\n'),
                 (b'CONNECT {"verbose":false,"pedantic":false,"echo":false}\r\nPING\r\n',
                  b"PONG\r\n")]
        asked, replied = threading.Event(), threading.Event()
        asker = hello + [(b"SUB inbox.1 1\r\nPUB bench.service inbox.1 3\r\n" + ANY + b"\r\n",
                          b""), [asked], replied, (b"", b"MSG inbox.1 1 3\r\nabc\r\n")]
        # It asks in between whether we live, as it does of who is silent.
        worker = hello + [(b"SUB bench.service 1\r\nPING\r\n", b"PONG\r\nPING\r\n"),
                          (b"PONG\r\n", b""), asked,
                          (b"", b"MSG bench.service 1 inbox.1 3\r\nabc\r\n"),
                          (b"PUB inbox.1 3\r\n" + ANY + b"\r\n", b""), [replied]]
        self.assertEqual(self.played("nats", "ask", "count=1", scripts=[asker, worker],
                                     tcp=True)["ops"], 1)
        said = threading.Event()
        pub = hello + [(b"PUB bench.topic 3\r\n" + ANY + b"\r\n", b""), [said]]
        sub = hello + [(b"SUB bench.topic 1\r\nPING\r\n", b"PONG\r\n"), said,
                       (b"", b"MSG bench.topic 1 3\r\nabc\r\n")]
        self.assertEqual(self.played("nats", "publish", "count=1", "conns=1", scripts=[pub, sub],
                                     tcp=True)["ops"], 1)
        self.assertIn("nats answers: -ERR", self.refused(
            "nats", hello[0], (hello[1][0], b"-ERR 'Authorization Violation'\r\n"), tcp=True))


class Real(unittest.TestCase):
    """One test for each that is installed."""

    def work(self, server, work, *args):
        out = load(server.name, server.address, work, *args)
        self.assertEqual((out.returncode, out.stderr), (0, ""))
        return json.loads(out.stdout)["ops"]

    def check_queue(self, server):
        self.assertEqual(self.work(server, "cycle", "count=20"), 20)
        take = "steps=reserve,ack" if server.name == "beanstalkd" else "steps=take"
        self.assertEqual(self.work(server, "cycle", take, "count=20"), 20)
        self.assertEqual(self.work(server, "cycle", "steps=put,reserve,ack", "count=30",
                                   "conns=6"), 30)
        self.assertEqual(self.work(server, "wake", "count=5"), 5)

    def check_beanstalkd(self, server):
        self.check_queue(server)
        got = self.say(server, b"stats\r\n")
        for line in (b"current-jobs-ready: 0", b"current-jobs-reserved: 0", b"total-jobs: 55",
                     b"cmd-delete: 55"):
            self.assertIn(line + b"\n", got)

    def check_redis(self, server):
        self.check_queue(server)
        self.assertEqual(self.say(server, b"DBSIZE\r\n"), b":0\r\n")  # an empty list is no key
        self.assertEqual(self.work(server, "ask", "count=5"), 5)
        self.check_publish(server)

    def check_mosquitto(self, server):
        self.assertEqual(self.work(server, "cycle", "count=20", "pipeline=5"), 20)
        self.check_publish(server)

    def check_nats(self, server):
        self.assertEqual(self.work(server, "ask", "count=5"), 5)
        self.check_publish(server)

    def check_publish(self, server):
        self.assertEqual(self.work(server, "publish", "count=20", "conns=3", "pipeline=8"), 60)

    @staticmethod
    def say(server, line):
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(10 * harness.SLOW)
            s.connect(server.address)
            s.sendall(line)
            return s.recv(65536)


def add_real(name, kind):
    def test(self):
        for durable in (False, True) if name in ("beanstalkd", "redis") else (False,):
            with self.subTest(durable=durable):
                try:
                    getattr(self, "check_" + name)(kind(durable=durable).start())
                finally:
                    kind.remove_all()
    setattr(Real, "test_" + name, test)


for _name, _kind in servers.KINDS.items():
    if _name != "zmqcat" and _kind.path():
        add_real(_name, _kind)

if __name__ == "__main__":
    if sys.platform == "linux":
        harness.main()
    print("SKIP: the engine wants epoll\n0 passed, 0 failed, 1 skipped")
