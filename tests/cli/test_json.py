"""What --json prints is what zmqcat-json(5) lists: the same members, of the types told there."""
import json, os, re, sys, threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness
from harness import ROOT, cli, read_file

TYPES = {"string": str, "number": (int, float), "boolean": bool, "array": list, "object": dict,
         "null": type(None)}


def documented():
    """{section: {member: type}} of the page."""
    found, section = {}, None
    for line in read_file(os.path.join(ROOT, "docs/man/zmqcat-json.5")).decode().splitlines():
        head = re.match(r"\.Ss [\w ]+: (.*)", line)
        item = re.match(r"\.It Va (\S+) Ta (\S+) Ta ", line + " ")
        if head:
            section = found[head[1]] = {}
        elif item:
            section[item[1]] = item[2]
    return found


MESSAGES = "take, peek, sub, reserve, ready, req"


class Json(harness.Case):
    maxDiff = None
    page = documented()

    def check(self, section, value, inner=""):
        """The value has all members of the section that are not optional, and no other."""
        members = {k[len(inner):]: t for k, t in self.page[section].items()
                   if k.startswith(inner) and "." not in k[len(inner):]}
        self.assertEqual(sorted(set(value) - set(members)), [], section)
        self.assertEqual(sorted(k for k, t in members.items() if not t.endswith("?")
                                and k not in value), [], section)
        for key, got in value.items():
            kinds = [TYPES[t] for t in members[key].rstrip("?").split("|")]
            fits = any(isinstance(got, k) for k in kinds)
            if isinstance(got, bool):
                fits = bool in kinds
            self.assertTrue(fits, "%s %s: %r is no %s" % (section, key, got, members[key]))
            if isinstance(got, dict) and any(k.startswith(key + ".") for k in self.page[section]):
                self.check(section, got, key + ".")
        self.seen.setdefault(section, set()).update(inner + k for k in value)

    def setUp(self):
        self.seen = {}

    def z(self, *args, status=0, **more):
        got = cli(*args, "--json", **more)
        self.assertEqual(got.returncode, status, got.stderr)
        return [json.loads(line) for line in got.stdout.splitlines()]

    def check_store(self):
        path = os.path.join(harness.tempdir(), "m")
        whole = (b'{"mailbox":"q","seq":3,"id":"i","from":"f","by":"uid:0","at":1,"expires":2,'
                 b'"due":3,"attempt":4,"request":true,"headers":{"k":"v"},"text":"t"}\n'
                 b'{"mailbox":"q","body":"/w=="}\n')
        self.check("store import", self.z("store", "import", path, stdin=whole)[0])
        for one in self.z("store", "export", path)[1:-1]:
            self.check("store export", one)
        self.check("store check", self.z("store", "check", path)[0])
        self.check("store compact", self.z("store", "compact", path)[0])

    def one(self, *args, **more):
        """The only object that it prints, and all that it prints."""
        got = self.z(*args, **more)
        self.assertEqual(len(got), 1, got)
        return got[0]

    def check_deliveries(self, bus):
        where = {"listen": bus.listen}
        cli("put", "held", "-H", "k=v", "held", **where)
        first = self.one("reserve", "held", stdin=b"nack\n", **where)
        second = self.one("ready", "held", **where)
        third = self.one("reserve", "held", stdin=b"ack\n", **where)
        for one, attempt in ((first, 1), (second, 2), (third, 3)):
            self.check(MESSAGES, one)
            self.assertEqual((one["name"], one["text"], one["headers"], one["attempt"]),
                             ("held", "held", {"k": "v"}, attempt))
            self.assertRegex(one["delivery"], r"\A[0-9a-f]{24}\Z")
        self.assertEqual(len({one["delivery"] for one in (first, second, third)}), 3)
        self.z("take", "held", "--wait", "0", status=3, **where)
        worker = bus.connect()
        self.addCleanup(worker.close)
        worker.send(v=1, op="ready", id="r", name="svc")
        asked = []
        asker = threading.Thread(target=lambda: asked.append(
            self.one("req", "svc", "--timeout", "20s", stdin=b"2+2", **where)))
        asker.start()
        job = worker.recv()
        worker.send(v=1, op="rep", id=job["id"], name="svc", text="4")
        asker.join()
        self.check(MESSAGES, asked[0])
        self.assertEqual((asked[0]["text"], asked[0]["body"]), ("4", "NA=="))
        self.assertNotIn("delivery", asked[0])

    def check_ping(self, listen, path):
        pong = self.one("ping", listen=listen)
        self.check("ping", pong)
        self.assertEqual(pong["path"], path)
        self.assertGreater(pong["rtt_ms"], 0)

    def check_a_storage_that_failed(self):
        """A message that needs a larger file than the hub may have."""
        bus = self.hub("--segment", "64k", durable=True,
                       wrapper=("sh", "-c", 'ulimit -f 256; exec "$@"', "sh"))
        self.assertEqual(cli("put", "q", stdin=b"x" * 400000, listen=bus.listen).returncode, 1)
        self.check("status, top", self.z("status", listen=bus.listen)[0])

    def test_every_member_is_documented_and_every_documented_one_is_there(self):
        bus = self.hub(durable=True)
        where = {"listen": bus.listen}
        for payload in (b"text", b"\xff", b""):
            cli("put", "jobs", "-H", "k=v", stdin=payload, **where)
        cli("pub", "ev", "x", **where)
        for args in (("peek", "jobs", "--count", "3"), ("take", "jobs", "--count", "3"),
                     ("sub", "--count", "1")):
            for one in self.z(*args, **where):
                self.check(MESSAGES, one)
        self.check_deliveries(bus)
        self.check("put --lines", self.z("put", "jobs", "--lines", stdin=b"a\nb\n", **where)[0])
        for args in (("mv", "jobs", "other", "--count", "1"), ("purge", "jobs")):
            self.check("purge, mv", self.z(*args, **where)[0])
        self.check("ls", self.z("ls", **where)[0])
        for args in (("stat",), ("stat", "other")):
            self.check("stat", self.z(*args, **where)[0])
        for args in (("status",), ("top", "--count", "1")):
            self.check("status, top", self.z(*args, **where)[0])
        for one in self.z("bench", "--count", "5", **where):
            self.check("bench", one)
        self.check_ping(bus.listen, "local")
        self.assertEqual(self.one("ping", listen=bus.listen + ".none", status=1),
                         {"rtt_ms": None, "path": None})
        self.check_store()
        self.check_a_storage_that_failed()
        relay = harness.Relay()
        self.addCleanup(relay.__exit__)
        hub = harness.TunnelHub(relay)
        self.addCleanup(hub.__exit__)
        hub.token()
        spoke = harness.Spoke(hub.token_file).joined()
        self.addCleanup(spoke.__exit__)
        for one in (hub, spoke):
            self.check("status, top", self.z("status", listen=one.listen)[0])
        self.check_ping(hub.listen, "local")
        self.check_ping(spoke.listen, "relay")
        self.assertEqual({k: sorted(v) for k, v in self.seen.items()},
                         {k: sorted(v) for k, v in self.page.items()})

    def test_verbs_with_json_are_in_the_page(self):
        told = {part.split()[0] for section in self.page for part in section.split(", ")}
        verbs = [w.split("\t")[0] for w in
                 cli("completion", "words", "--", "").stdout.decode().splitlines()]
        with_json = {v for v in verbs if v not in ("serve", "join")
                     and b"--json" in cli(v, "--help").stdout}
        self.assertEqual(told, with_json)


if __name__ == "__main__":
    harness.main()
