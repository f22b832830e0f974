# serial
"""Our hub and spoke with the real tailcat v0.6.0, whose tokens hold a PSK."""
import os, sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cases, cases_keys, cases_relay, peers
from harness import tempdir, write_file


class ToHub(cases.ToHub):
    version = "v0.6"

    def test_r12_wrong_psk(self):
        h = self.their_hub()
        pipe = self.pipe(self.client(), peers.other_psk(h.token()), 7)
        pipe.send(v=1, op="put", name="x", text="x", id="1")
        self.assertTrue(pipe.closed(20))
        self.assertNotEqual(pipe.proc.wait(20), 0)
        self.assertEqual(h.status()["mailboxes"], 0)


class ToHubWithoutPsk(cases.Interop):
    version = "v0.6"

    def test_ping(self):
        h = self.tunnel_hub(self.r, "--no-psk", "--open")
        client = peers.Client(self.programs)
        self.addCleanup(client.stop)
        self.assertEqual(client.run("ping", h.token()).returncode, 0)


class FromSpoke(cases.FromSpoke):
    version = "v0.6"

    def test_r12_wrong_psk(self):
        server = self.server(str(self.echo.port), "--full-address")
        wrong = write_file(os.path.join(tempdir(), "token"), peers.other_psk(server.token()))
        s = self.spoke(wrong, "--wait-hub", "3s")
        c = self.conn(s)
        c.send(v=1, op="ping", id="p")
        self.assertErr(c.recv(), "unavailable")
        self.assertNotEqual(s.status()["tunnel"]["state"], "up")


class RelayToHub(cases_relay.RelayToHub):
    version = "v0.6"


class RelayFromSpoke(cases_relay.RelayFromSpoke):
    version = "v0.6"


class OneKeyAtHub(cases_keys.OneKeyAtHub):
    version = "v0.6"


class OneKeyAtServer(cases_keys.OneKeyAtServer):
    version = "v0.6"


if __name__ == "__main__":
    peers.main("v0.6")
