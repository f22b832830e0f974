"""The load engine and the table of bench/, with tiny counts against our hub: that they work and
count right, never how fast anything is."""
import json, os, subprocess, sys, tempfile, unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness
from harness import BUILD, ROOT

LOAD = os.path.join(BUILD, "load")
RUN = os.path.join(ROOT, "bench", "run")


def load(*args, stdin=None):
    return subprocess.run([LOAD] + list(args), input=stdin, capture_output=True, text=True,
                          timeout=30 * harness.SLOW)


@unittest.skipUnless(sys.platform == "linux", "the engine wants epoll")
class Engine(harness.Case):
    def work(self, hub, work, *args):
        out = load("zmqcat", hub.path, work, *args)
        self.assertEqual(out.returncode, 0, out.stderr)
        got = json.loads(out.stdout)
        self.assertGreater(got["seconds"], 0)
        return got

    def test_cycle_puts_and_takes_as_many_as_asked(self):
        for durable in (False, True):
            hub = self.hub("--heartbeat", "0", durable=durable)
            self.assertEqual(self.work(hub, "cycle", "count=37", "conns=5")["ops"], 37)
            self.assertEqual(self.work(hub, "cycle", "count=30", "pipeline=7")["ops"], 30)
            self.assertEqual((hub.status()["queued"], hub.status()["puts"]), (67, 67))
            self.work(hub, "cycle", "steps=take", "count=67", "pipeline=8")
            self.assertEqual(hub.status()["queued"], 0)

    def test_jobs_leave_nothing(self):
        hub = self.hub("--heartbeat", "0")
        self.work(hub, "cycle", "steps=put,reserve,ack", "count=40", "conns=8")
        st = hub.status()
        self.assertEqual((st["puts"], st["queued"], st["leased"], st["redelivered"]),
                         (40, 0, 0, 0))

    def test_wake_and_ask_measure_each_round(self):
        hub = self.hub("--heartbeat", "0")
        for work in ("wake", "ask"):
            got = self.work(hub, work, "count=5")
            self.assertLessEqual(got["p50_us"], got["p99_us"])
            self.assertEqual(got["ops"], 5)
        self.assertEqual((hub.status()["queued"], hub.status()["leased"]), (0, 0))

    def test_each_subscriber_gets_each_publication(self):
        hub = self.hub("--heartbeat", "0", "--sub-buffer", "64")
        got = self.work(hub, "publish", "count=50", "conns=6", "pipeline=16")
        self.assertEqual(got["ops"], 300)
        self.assertEqual(hub.status()["dropped_deliveries"], 0)

    def test_idle_holds_connections_until_its_input_ends(self):
        hub = self.hub("--heartbeat", "0")
        proc = subprocess.Popen([LOAD, "zmqcat", hub.path, "idle", "conns=20"],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.assertEqual(proc.stdout.readline(), b"ready\n")
        self.assertEqual(hub.status()["sessions"], 20)
        proc.communicate()
        harness.wait_for(lambda: hub.status()["sessions"] == 0)

    def test_start_ends_what_it_started(self):
        path = os.path.join(tempfile.mkdtemp(dir=harness.tempdir()), "s")
        out = load("zmqcat", path, "start", "--", harness.HUB, "--local", "--listen", path)
        self.assertEqual(out.returncode, 0, out.stderr)
        self.assertFalse(os.path.exists(path))

    def test_an_error_ends_it(self):
        hub = self.hub("--heartbeat", "0", "--mailbox-cap", "3")
        out = load("zmqcat", hub.path, "cycle", "count=4")
        self.assertEqual(out.returncode, 1)
        self.assertIn("queue full", out.stderr)
        self.assertEqual(load("zmqcat", hub.path + ".none", "cycle").returncode, 1)
        self.assertEqual(load("zmqcat", hub.path, "cycle", "count=x").returncode, 2)


@unittest.skipUnless(sys.platform == "linux", "the engine wants epoll")
class Table(unittest.TestCase):
    def run_bench(self, *args, path):
        return subprocess.run([sys.executable, RUN, "--build", BUILD, "--scale", "0.001",
                               "--rounds", "2"] + list(args), env=dict(os.environ, PATH=path),
                              capture_output=True, text=True, timeout=60 * harness.SLOW)

    def test_rows_with_our_hub_alone(self):
        """Every kind of row; a peer that is missing is said so, and judges nothing."""
        out = self.run_bench("put-disk", "job-50", "wake-p50", "pub-10", "ask", "depth", "memory",
                             "session", "start", path="/nonexistent")
        self.assertEqual(out.returncode, 0, out.stderr)
        self.assertIn("redis is not installed: apt-get install redis-server\n", out.stdout)
        rows = [line for line in out.stdout.splitlines() if line.startswith("deliveries to 10 ")]
        self.assertRegex(rows[0], r"^deliveries to 10 subscribers +[0-9.]+[kM]? +.*- +1\.00")
        self.assertRegex(out.stdout, r"memory a message at 10\^6 .*<= 200 +(yes|NO)")

    def test_json(self):
        out = self.run_bench("--json", "put-disk", path="/nonexistent")
        got = json.loads(out.stdout)
        self.assertIsNone(got["versions"]["redis"])
        row = got["rows"][0]
        self.assertEqual((row["name"], row["met"], row["ratio"]), ("put-disk", None, None))
        self.assertEqual([len(row["figures"][k]) for k in ("zmqcat", "control")], [2, 2])

    def test_without_a_build(self):
        with tempfile.TemporaryDirectory() as empty:
            out = subprocess.run([sys.executable, RUN, "--build", empty, "put"],
                                 env=dict(os.environ, PATH="/nonexistent"), text=True,
                                 capture_output=True, timeout=60 * harness.SLOW)
        self.assertEqual(out.returncode, 1, out.stdout)
        self.assertIn("make bench", out.stderr)

    def test_no_row(self):
        out = self.run_bench("nosuchrow", path="/nonexistent")
        self.assertEqual((out.returncode, out.stdout), (2, ""))
        self.assertIn("--list", out.stderr)


if __name__ == "__main__":
    harness.main()
