"""A relay that misbehaves: it cuts connections in the middle of a frame, or falls silent. Field
cases H5 (a DERP that closes mid-write) and H16 (a black-holed DERP)."""
import os, sys, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness
from harness import wait_for
from between import DOWN, UP, Between
from cases import MIDST, HubSide, SpokeSide
from transfer import exchange

# A relay that says nothing is asked after 10 s and given up 20 s later. After 60 s without an
# acknowledgement the connections through the tunnel would end.
SILENT_S = 30
CUTS = 6


class Relay:
    """For a test with a way through which `transfer` goes between ours and theirs."""

    def setUp(self):
        super().setUp()
        self.wire = Between(self.r.port)
        self.addCleanup(self.wire.close)
        self.r.publish(self.wire.port)
        self.ours, self.transfer = self.through()

    def more(self, bytes):
        """When so many more are through to the service."""
        target = self.echo.seen + bytes
        wait_for(lambda: self.echo.seen >= target, 60)

    def test_h5_connections_cut_in_the_midst_of_a_frame(self):
        def cut():
            for i in range(CUTS):
                self.more(1 << 20)
                # In turn that of the hub and of the client, the way of the data and of the rest.
                wire = self.wire.live()[i % 2]
                wire.cut((UP, DOWN)[i // 2 % 2], 20000)
                wait_for(wire.over.is_set, 30)
                wait_for(lambda: len(self.wire.live()) >= 2, 30)
            self.assertLess(self.echo.seen, MIDST)
        harness.together(lambda: self.transfer(120), cut)
        self.assertIsNone(self.ours.proc.poll())

    def test_h16_a_black_hole_is_noticed_and_outlived(self):
        def hole():
            self.more(1 << 20)
            before, logged = self.ours.cpu(), self.ours.logged()
            self.wire.hold()
            wait_for(lambda: "sends nothing" in self.ours.logged(), SILENT_S + 10)
            # Now it dials, and nothing comes either.
            wait_for(lambda: "within 10 s" in self.ours.logged(), 20)
            time.sleep(3)
            said = self.ours.logged()[len(logged):]
            self.assertEqual(said.count("sends nothing"), 1, said)
            self.assertLessEqual(said.count("\n"), 10, said)
            self.assertLess(self.ours.cpu() - before, 3 * harness.SLOW)
            self.assertLess(self.echo.seen, MIDST)
            self.wire.release()
        harness.together(lambda: self.transfer(240), hole)
        self.assertIn(self.ours.status()["tunnel"]["state"], ("online", "up"))


class RelayToHub(Relay, HubSide):
    def through(self):
        h = self.their_hub()
        pipe = self.pipe(self.client(), h.token(), self.echo.port)
        return h, lambda seconds: exchange(pipe.sock, MIDST, self.echo, seconds)


class RelayFromSpoke(Relay, SpokeSide):
    def through(self):
        # Otherwise the spoke ends what is open when the hub is out of reach for 30 s.
        _, s, local = self.pair(self.echo.port, None, "--wait-hub", "5m")
        c = self.dial(local)
        return s.joined(30), lambda seconds: exchange(c, MIDST, self.echo, seconds)
