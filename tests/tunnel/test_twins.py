"""Two processes with one key: a cloned machine, a copied key file. Field case R3."""
import os, shutil, sys, threading, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness
from harness import Case, wait_for

SIGN = "take each other's packets"


class Twins(Case):
    def setUp(self):
        self.r = self.relay()
        self.over = threading.Event()

    def tearDown(self):
        self.over.set()

    def busy(self, *daemons):
        """Something uses them all the time, whatever comes of it."""
        def use(daemon):
            while not self.over.wait(0.5):
                try:
                    c = daemon.connect(timeout=3)
                    try:
                        c.call(v=1, op="ping", id="p")
                    finally:
                        c.close()
                except (OSError, harness.Closed, AssertionError):
                    pass
        for daemon in daemons:
            threading.Thread(target=use, args=(daemon,), daemon=True).start()

    def assertSaidOnce(self, *daemons_and_texts):
        """Soon, and not again."""
        for daemon, text in daemons_and_texts:
            wait_for(lambda: text in daemon.logged(), 90, why=daemon.logged)
        time.sleep(15)
        for daemon, text in daemons_and_texts:
            self.assertEqual(daemon.logged().count(text), 1, daemon.logged())
            self.assertEqual(daemon.logged().count(SIGN), 1, daemon.logged())
            self.assertLess(daemon.logged().count("\n"), 25, daemon.logged())

    def test_r3_two_spokes_with_one_key(self):
        h = self.tunnel_hub(self.r)
        one = self.spoke(h).joined()
        two = self.spoke(h, start=False)
        shutil.copy(one.key, two.key)
        two.start()
        self.busy(one, two)
        self.assertSaidOnce((h, "two spokes use the key " + one.identity()))
        for s in (one, two):
            self.assertLessEqual(s.logged().count(SIGN), 1)
            self.assertNotIn("two hubs", s.logged())

    def test_two_hubs_with_one_key(self):
        one = self.tunnel_hub(self.r)
        spokes = [self.spoke(one).joined() for _ in range(3)]
        two = self.tunnel_hub(self.r, start=False)
        shutil.copy(one.key, two.key)
        two.start()
        more = [self.spoke(two) for _ in range(3)]
        self.busy(*spokes, *more)
        said = lambda: [d for d in (one, two) if "another hub uses the key" in d.logged()]
        wait_for(said, 120, why=lambda: "\n".join(d.logged() for d in (one, two, spokes[0])))
        time.sleep(15)
        for d in (one, two, *spokes, *more):
            self.assertLessEqual(d.logged().count(SIGN), 1, d.logged())
            self.assertNotIn("spokes use", d.logged())

    def test_restarts_are_no_twins(self):
        h = self.tunnel_hub(self.r)
        s = self.spoke(h).joined()
        self.busy(s, h)
        for i in range(4):
            for end in (s.kill, s.stop, h.kill, h.stop):
                end()
                (s if end in (s.kill, s.stop) else h).start()
                time.sleep(1 + i % 2)
            self.r.stop()
            self.r.start()
            time.sleep(2)
        s.joined()
        for d in (h, s):
            self.assertNotIn(SIGN, d.logged())


if __name__ == "__main__":
    harness.main()
