# serial
"""Hub, relay or spoke goes and comes back. Field cases H5 (the relay closes in the midst of a
write) and H16 (it is a black hole, also while a stop is wanted), weakness 5 of the Go version (a
join hangs for ever once its hub has gone)."""
import os, signal, subprocess, sys, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness
from harness import Case, cli, tempdir, wait_for, write_file


def lines(daemon):
    return daemon.logged().count("\n")


class Away(Case):
    """One of the three goes and comes back."""

    def setUp(self):
        self.r = self.relay()
        self.h = self.tunnel_hub(self.r, durable=True)
        self.s = self.spoke(self.h).joined()

    def usable(self, seconds):
        """A new client of the spoke is served within the time."""
        start = time.monotonic()
        c = self.conn(self.s, timeout=seconds)
        c.put("alive", "x")
        self.assertEqual(c.call(v=1, op="take", name="alive", id="t")["text"], "x")
        return time.monotonic() - start

    def test_relay_restarts_and_connections_live(self):
        c = self.conn(self.s, hello=True, timeout=20)
        self.r.stop()
        c.send(v=1, op="put", name="a", text="1", id="1")
        time.sleep(2)
        self.r.start()
        self.usable(10)
        self.assertFrame(c.recv(), op="ok", id="1")

    def test_h5_relay_dies_while_much_is_on_its_way(self):
        data = os.urandom(900000)
        path = write_file(os.path.join(tempdir(), "f"), data)
        puts = [subprocess.Popen([harness.CLI, "put", "big", "--file", path, "--listen",
                                  self.s.listen]) for _ in range(8)]
        time.sleep(0.05)
        self.r.stop()
        time.sleep(1)
        self.r.start()
        self.assertEqual([p.wait(60 * harness.SLOW) for p in puts], [0] * 8)
        for _ in range(8):
            self.assertEqual(cli("take", "big", "--raw", listen=self.h.listen).stdout, data)

    def test_h16_relay_that_is_a_black_hole_is_waited_for(self):
        c = self.conn(self.s, hello=True, timeout=20)
        self.r.freeze()
        c.send(v=1, op="put", name="a", text="1", id="1")
        time.sleep(3)
        self.r.thaw()
        self.assertFrame(c.recv(), op="ok", id="1")

    def test_h16_start_while_the_relay_is_a_black_hole(self):
        """TCP stands, TLS does not come: given up after 10 s, tried again."""
        self.r.freeze()
        s = self.spoke(self.h)
        wait_for(lambda: "within 10 s" in s.logged(), 20)
        self.r.thaw()
        s.joined(20)

    def stop_in_a_black_hole(self):
        self.r.freeze()
        self.addCleanup(self.r.thaw)
        for daemon in (self.h, self.s):
            start = time.monotonic()
            self.assertEqual(daemon.stop(), 0)
            self.assertLess(time.monotonic() - start, 5 * harness.SLOW)

    def test_h16_stop_while_the_relay_is_a_black_hole(self):
        local, tunnelled = self.conn(self.h, hello=True), self.conn(self.s, hello=True, timeout=20)
        for c in (local, tunnelled):
            c.send(v=1, op="take", name="never", id="t")
            c.sync()
        self.stop_in_a_black_hole()
        self.assertTrue(local.closed() and tunnelled.closed())

    def test_h16_stop_of_a_crowd_while_the_relay_is_a_black_hole(self):
        takes, sub, deaf = self.crowd(self.s)
        self.stop_in_a_black_hole()
        for c in (*takes, sub, deaf):
            self.assertTrue(c.closed())
        self.r.thaw()
        self.h.start()
        c = self.conn(self.h)
        for i in range(10):
            got = c.call(v=1, op="take", name="jobs", wait=2, id="t")
            self.assertFrame(got, op="msg", text="j%d" % i)

    def test_h16_second_sigterm_while_the_relay_is_a_black_hole(self):
        self.crowd(self.s)
        self.r.freeze()
        self.addCleanup(self.r.thaw)
        for daemon in (self.h, self.s):
            daemon.proc.send_signal(signal.SIGTERM)
        time.sleep(0.1)
        self.assertIsNone(self.h.proc.poll())  # it has more to say than the relay takes
        start = time.monotonic()
        for daemon in (self.h, self.s):
            daemon.proc.send_signal(signal.SIGTERM)
            self.assertEqual(daemon.proc.wait(20 * harness.SLOW), 0)
        self.assertLess(time.monotonic() - start, 0.5 * harness.SLOW)

    def test_h16_spoke_stops_first_while_the_relay_is_a_black_hole(self):
        takes, sub, deaf = self.crowd(self.s)
        self.r.freeze()
        self.addCleanup(self.r.thaw)
        start = time.monotonic()
        self.assertEqual(self.s.stop(), 0)
        self.assertLess(time.monotonic() - start, 5 * harness.SLOW)
        for c in (*takes, sub, deaf):
            self.assertTrue(c.closed())

    def test_weakness_5_hub_restarts_with_the_same_key(self):
        token = self.h.token()
        old = self.conn(self.s, hello=True)
        self.conn(self.s).put("kept", "x")
        self.h.kill()
        self.h.start()
        self.assertLess(self.usable(5), 5)
        self.assertTrue(old.closed(10))
        self.assertEqual(self.h.token(), token)
        self.assertEqual(self.conn(self.s).call(v=1, op="take", name="kept", id="t")["text"], "x")

    def test_weakness_5_hub_is_away_and_clients_are_told(self):
        s = self.spoke(self.h, "--wait-hub", "1s").joined()
        self.h.stop()
        wait_for(lambda: s.status()["tunnel"]["state"] != "up", 30)
        start = time.monotonic()
        c = self.conn(s)
        c.send(v=1, op="ping", id="p")
        got = c.recv()
        self.assertErr(got, "unavailable")
        self.assertTrue(got["error"].startswith("hub unreachable: "), got)
        self.assertTrue(c.closed())
        self.assertGreater(time.monotonic() - start, 0.9)
        self.h.start()
        s.joined()
        self.conn(s, timeout=10).sync()

    def test_spoke_restarts_with_the_same_key(self):
        held = self.conn(self.h)
        held.put("mine", "x")
        c = self.conn(self.s)
        c.call(v=1, op="reserve", name="mine", id="r", lease=600)
        self.s.kill()
        self.s.start()
        self.s.joined()
        self.usable(5)
        # The new spoke's tunnel ends what the old one held.
        self.assertEqual(self.conn(self.h).call(v=1, op="reserve", name="mine", id="r")["text"],
                         "x")

    def test_quiet_for_the_first_minute(self):
        """Whatever the reason; the minutes after it are in the unit tests."""
        other = self.tunnel_hub(self.r)
        gone = self.spoke(other).joined()
        old = write_file(os.path.join(tempdir(), "t"), self.h.token())
        cli("rotate", "--listen", self.h.listen)
        nowhere = self.tunnel_hub(self.r, "--derp-map", "http://127.0.0.1:1/map", start=False)
        outdated = self.spoke(old, start=False)
        r = self.relay()
        relayless = self.tunnel_hub(r)
        lone = self.spoke(relayless).joined()
        before = {d: lines(d) for d in (gone, lone, relayless)}
        other.stop()
        r.stop()
        for d in (nowhere, outdated):
            d.start()
            before[d] = 0
        time.sleep(60)
        for d, n in before.items():
            self.assertLessEqual(lines(d) - n, 10, d.logged())
            self.assertGreater(lines(d), n, d.logged())
        self.assertIn("Connection refused", lone.logged())
        self.assertIn("pre-shared key", outdated.logged())
        self.assertIn("trying again", nowhere.logged())
        r.start()
        self.conn(lone, timeout=10).sync()


if __name__ == "__main__":
    harness.main()
