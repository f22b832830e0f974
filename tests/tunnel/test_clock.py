"""Hub and spoke with a wall clock that was set back, and the file that makes good for it."""
import os, re, stat, sys, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness
from clock import WrongClock
from harness import Case, read_file, tempdir, wait_for, write_file

DAY, YEAR = 86400, 31557600
TAI_EPOCH = 0x400000000000000a


def label(seconds):
    return "@%016x%08x\n" % (TAI_EPOCH + int(seconds), 0)


class Clock(Case):
    def setUp(self):
        self.r = self.relay()
        self.h = self.tunnel_hub(self.r)

    def stored(self, daemon):
        """The ceiling in the daemon's file, unix time."""
        path = daemon.key + ".stamp"
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
        text = read_file(path).decode()
        self.assertRegex(text, r"\A@[0-9a-f]{24}\n\Z")
        return int(text[1:17], 16) - TAI_EPOCH

    def set_clock(self, daemon, seconds):
        clock = WrongClock(seconds)
        daemon.env.update(clock.env)
        return clock

    def works(self, spoke):
        c = self.conn(spoke, timeout=20)
        c.put("alive", "x")
        self.assertEqual(c.call(v=1, op="take", name="alive", id="t")["text"], "x")

    def test_the_clock_of_a_spoke_goes_back_a_day(self):
        for end in ("kill", "stop"):
            with self.subTest(end):
                s = self.spoke(self.h).joined()
                getattr(s, end)()
                self.set_clock(s, -DAY)
                s.start()
                s.joined(12)
                self.works(s)
                self.assertIn("was set back", s.logged())
                # And once more: it goes on from where it is.
                s.kill()
                s.start()
                s.joined(12)

    def test_without_the_file_the_hub_takes_it_for_a_replay(self):
        """If this fails the test above proves nothing."""
        s = self.spoke(self.h).joined()
        s.kill()
        os.unlink(s.key + ".stamp")
        self.set_clock(s, -DAY)
        s.start()
        time.sleep(12)
        self.assertNotEqual(s.status()["tunnel"]["state"], "up")
        self.assertRegex(s.logged(), r"key\.stamp does not exist yet: made; .*check the clock")

    def test_the_clock_of_a_hub_goes_back_a_day(self):
        s = self.spoke(self.h).joined()
        for end in ("kill", "stop"):
            getattr(self.h, end)()
            before = self.stored(self.h)
            self.set_clock(self.h, -DAY)
            self.h.start()
            self.works(s)
            self.assertGreaterEqual(self.stored(self.h), before)

    def test_a_clean_end_leaves_the_last_stamp(self):
        """So that the next start is not ahead of its clock, nor is another host with the key."""
        s = self.spoke(self.h).joined()
        now = time.time()
        self.assertAlmostEqual(self.stored(s), now + 3600, delta=60)
        s.stop()
        self.assertAlmostEqual(self.stored(s), now, delta=60)
        s.start()
        s.joined(12)
        s.kill()
        self.assertAlmostEqual(self.stored(s), now + 3600, delta=60)

    def test_a_clock_that_leaps_while_it_runs(self):
        s = self.spoke(self.h, start=False)
        clock = self.set_clock(s, 0)
        s.start().joined()
        now = time.time()
        clock.move(DAY)
        self.h.restart()  # there is a new handshake
        self.works(s)
        wait_for(lambda: abs(self.stored(s) - (now + DAY + 3600)) < 60)
        clock.move(0)
        s.kill()
        s.start()
        s.joined(12)

    def test_files_that_are_of_no_use(self):
        for text, says in (("", "is damaged: made anew"),
                           ("\0" * 26, "is damaged: made anew"),
                           ("x" * 1000, "is damaged: made anew"),
                           (label(time.time())[:20], "is damaged: made anew"),
                           (label(time.time() + 11 * YEAR),
                            "is of a clock that was years ahead, and not followed")):
            with self.subTest(text[:30]):
                s = self.spoke(self.h, start=False)
                write_file(s.key + ".stamp", text)
                s.start().joined(12)
                self.assertEqual(len(re.findall(r"key\.stamp ", s.logged())), 1, s.logged())
                self.assertRegex(s.logged(), r"key\.stamp %s.*: check the clock" % says)
                self.assertAlmostEqual(self.stored(s), time.time() + 3600, delta=60)

    def test_a_file_that_cannot_be_written(self):
        for daemon in (self.spoke(self.h, start=False), self.tunnel_hub(self.r, start=False)):
            os.mkdir(daemon.key + ".stamp")
            daemon.start()
            daemon.joined() if isinstance(daemon, harness.Spoke) else daemon.token()
            self.assertEqual(daemon.stop(), 0)
            self.assertEqual(len(re.findall(r"key\.stamp ", daemon.logged())), 1, daemon.logged())
            self.assertRegex(daemon.logged(), r"key\.stamp cannot be read: .*: let the daemon")
            self.assertEqual(os.listdir(daemon.key + ".stamp"), [])

    def test_a_clock_that_was_never_set(self):
        """It says nothing about the file, and TLS has the relay's key from the map."""
        s = self.spoke(self.h).joined()
        s.stop()
        self.set_clock(s, -int(time.time()) + 60)
        s.start()
        s.joined(12)
        self.assertIn("was set back", s.logged())

    def test_nothing_is_written_without_a_key_file(self):
        s = self.spoke(self.h, start=False)
        s.arguments = lambda: ["--listen", s.listen, "--token-file", s.token_file]
        s.start().joined()
        self.assertEqual([n for n in os.listdir(s.dir) if "stamp" in n], [])

    def test_a_credential_has_it_in_the_state_directory(self):
        state, credentials = tempdir(), tempdir()
        s = self.spoke(self.h, start=False, env={"STATE_DIRECTORY": state,
                                                 "CREDENTIALS_DIRECTORY": credentials})
        s.key = os.path.join(credentials, "key")
        self.assertEqual(harness.cli("keygen", s.key).returncode, 0)
        s.start().joined()
        self.assertEqual(os.listdir(credentials), ["key"])
        self.assertIn("spoke.key.stamp", os.listdir(state))


if __name__ == "__main__":
    harness.main()
