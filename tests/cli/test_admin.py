"""drain, reload and revoke, as they are typed."""
import json, os, sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness
from command import Case


class Admin(Case):
    durable = True

    def test_drain(self):
        """A worker empties the mailbox, nobody fills it, and the next start forgets it."""
        for i in range(3):
            self.z("put", "jobs", "x%d" % i)
        worker = self.start("take", "jobs", "--follow")
        for i in range(3):
            self.assertEqual(worker.stdout.readline(), b"x%d\n" % i)
        self.z("put", "other", "y")
        got = self.z("drain")
        self.assertEqual((got.returncode, got.stdout, got.stderr), (0, b"", b""))
        for args in (("put", "jobs", "z"), ("pub", "ev", "z"), ("req", "svc", "z"),
                     ("bind", "jobs", "ev"), ("mv", "other", "jobs")):
            with self.subTest(args):
                got = self.z(*args)
                self.assertEqual((got.returncode, got.stdout), (1, b""))
                self.assertRegex(got.stderr, rb"\Azmqcat: \w+ \w+: this hub is being drained: .*\n")
        got = self.z("put", "jobs", "--lines", stdin=b"a\nb\n")
        self.assertEqual(got.returncode, 1)
        self.assertIn(b"this hub is being drained", got.stderr)
        self.assertIs(json.loads(self.z("status", "--json").stdout)["draining"], True)
        self.assertRegex(self.z("status").stdout, rb"(?m)^draining +yes$")
        self.assertEqual(self.z("take", "other").stdout, b"y\n")
        self.assertEqual(self.z("drain").returncode, 0)
        self.assertEqual(self.bus.logged().count("drain"), 1)
        self.bus.restart()
        self.assertEqual(self.z("put", "jobs", "new").returncode, 0)
        self.assertIs(json.loads(self.z("status", "--json").stdout)["draining"], False)

    def test_the_bus_socket_knows_none_of_them(self):
        for op in ("drain", "reload", "revoke"):
            self.assertErr(self.raw.call(v=1, op=op, id="x", name="q"), "unknown_op")
        self.assertEqual(self.z("put", "jobs", "x").returncode, 0)

    def test_what_is_no_node_key_is_a_usage_error(self):
        for name in ("bob", "nodekey:", 64 * "1", "nodekey:" + 63 * "1", "nodekey:" + 65 * "1"):
            got = self.z("revoke", name)
            self.assertEqual((got.returncode, got.stdout), (2, b""), name)
            self.assertIn(b": want nodekey: and 64 hex digits, as `zmqcat nodekey`", got.stderr)
        self.assertEqual(self.z("revoke", "nodekey:" + 64 * "1").returncode, 1)

    def test_without_a_daemon(self):
        self.bus.stop()
        for args in (("drain",), ("reload",), ("revoke", "nodekey:" + 64 * "1")):
            got = self.z(*args)
            self.assertEqual((got.returncode, got.stdout), (1, b""))
            self.assertIn(self.bus.path.encode() + b".ctl", got.stderr)


if __name__ == "__main__":
    harness.main()
