# serial
"""Our hub and spoke with the real tailcat v0.3.0 through the real derper. v0.3 knows no PSK."""
import os, sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cases, cases_keys, cases_relay, peers


class ToHub(cases.ToHub):
    version = "v0.3"
    hub_options = ("--no-psk", "--open")

    def test_r12_hub_with_a_psk_is_out_of_reach(self):
        h = self.tunnel_hub(self.r)
        pipe = self.pipe(self.client(), h.token(), 7)
        pipe.send(v=1, op="put", name="x", text="x", id="1")
        self.assertTrue(pipe.closed(20))
        self.assertNotEqual(pipe.proc.wait(20), 0)
        self.assertEqual(h.status()["mailboxes"], 0)


class FromSpoke(cases.FromSpoke):
    version = "v0.3"


class RelayToHub(cases_relay.RelayToHub):
    version = "v0.3"
    hub_options = ("--no-psk", "--open")


class RelayFromSpoke(cases_relay.RelayFromSpoke):
    version = "v0.3"


class OneKeyAtHub(cases_keys.OneKeyAtHub):
    version = "v0.3"
    hub_options = ("--no-psk", "--open")


class OneKeyAtServer(cases_keys.OneKeyAtServer):
    version = "v0.3"


if __name__ == "__main__":
    peers.main("v0.3")
