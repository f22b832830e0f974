"""What the administrator tells a hub and its spokes: drain."""
import os, socket, sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness
from harness import Case, cli, tempdir, wait_for


class Drain(Case):
    def setUp(self):
        self.r = self.relay()

    def test_hub(self):
        h = self.tunnel_hub(self.r)
        s = self.spoke(h).joined()
        c = self.conn(s, hello=True)
        c.put("jobs", "old")
        self.assertEqual(cli("drain", listen=h.listen).returncode, 0)
        c.send(v=1, op="put", name="jobs", text="new", id="p")
        self.assertErr(c.recv(), "unavailable")
        got = cli("req", "svc", "x", listen=s.listen)
        self.assertEqual(got.returncode, 1)
        self.assertIn(b"this hub is being drained", got.stderr)
        self.assertEqual(cli("take", "jobs", listen=s.listen).stdout, b"old\n")
        self.assertIs(h.status()["draining"], True)
        self.assertIs(s.status()["draining"], False)

    def test_spoke(self):
        h = self.tunnel_hub(self.r)
        s = self.spoke(h).joined()
        c = self.conn(s, hello=True)
        got = cli("drain", listen=s.listen)
        self.assertEqual((got.returncode, got.stdout, got.stderr), (0, b"", b""))
        new = self.conn(s)
        new.send(v=1, op="put", name="jobs", text="x", id="p")
        self.assertErr(new.recv(), "unavailable")
        self.assertTrue(new.closed())
        got = cli("put", "jobs", "x", listen=s.listen)
        self.assertEqual(got.returncode, 1)
        self.assertIn(b"this spoke is being drained", got.stderr)
        c.put("jobs", "x")
        self.assertIs(s.status()["draining"], True)
        self.assertIs(h.status()["draining"], False)
        s.restart()
        self.assertEqual(cli("take", "jobs", listen=s.listen).stdout, b"x\n")

    def test_status_of_the_service_says_so(self):
        path = os.path.join(tempdir(), "notify")
        told = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(told.close)
        told.bind(path)
        told.settimeout(10 * harness.SLOW)
        h = self.tunnel_hub(self.r, env={"NOTIFY_SOCKET": path})
        s = self.spoke(h, env={"NOTIFY_SOCKET": path}).joined()
        for daemon, who in ((s, "joined"), (h, "sessions")):
            self.assertEqual(cli("drain", listen=daemon.listen).returncode, 0)

            def said():
                text = told.recv(4096).decode()
                return "STATUS=draining, " in text and who in text
            wait_for(said, step=0)


if __name__ == "__main__":
    harness.main()
