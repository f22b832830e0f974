"""The load engine and the table of bench/, with tiny counts against our hub: that they work and
count right, never how fast anything is."""
import contextlib, importlib.machinery, importlib.util, io, json, os, subprocess, sys, tempfile
import time, types, unittest

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
            hub = self.hub(durable=durable)
            self.assertEqual(self.work(hub, "cycle", "count=37", "conns=5")["ops"], 37)
            self.assertEqual(self.work(hub, "cycle", "count=30", "pipeline=7")["ops"], 30)
            self.assertEqual((hub.status()["queued"], hub.status()["puts"]), (67, 67))
            self.work(hub, "cycle", "steps=take", "count=67", "pipeline=8")
            self.assertEqual(hub.status()["queued"], 0)

    def test_jobs_leave_nothing(self):
        hub = self.hub()
        self.work(hub, "cycle", "steps=put,reserve,ack", "count=40", "conns=8")
        st = hub.status()
        self.assertEqual((st["puts"], st["queued"], st["leased"], st["redelivered"]),
                         (40, 0, 0, 0))

    def test_wake_and_ask_measure_each_round(self):
        hub = self.hub()
        for work in ("wake", "ask"):
            got = self.work(hub, work, "count=5")
            self.assertLessEqual(got["p50_us"], got["p99_us"])
            self.assertEqual(got["ops"], 5)
        self.assertEqual((hub.status()["queued"], hub.status()["leased"]), (0, 0))

    def test_each_subscriber_gets_each_publication(self):
        hub = self.hub("--sub-buffer", "64")
        got = self.work(hub, "publish", "count=50", "conns=6", "pipeline=16")
        self.assertEqual(got["ops"], 300)
        self.assertEqual(hub.status()["dropped_deliveries"], 0)

    def test_idle_holds_connections_until_its_input_ends(self):
        hub = self.hub()
        proc = subprocess.Popen([LOAD, "zmqcat", hub.path, "idle", "conns=20"],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.assertEqual(proc.stdout.readline(), b"ready\n")
        self.assertEqual(hub.status()["sessions"], 20)
        proc.communicate()
        harness.wait_for(lambda: hub.status()["sessions"] == 0)

    def test_idle_connections_answer_heartbeats(self):
        """Without an answer a session ends after three intervals and a second."""
        hub = self.hub("--heartbeat", "100ms")
        proc = subprocess.Popen([LOAD, "zmqcat", hub.path, "idle", "conns=20"],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.assertEqual(proc.stdout.readline(), b"ready\n")
        time.sleep(2 * harness.SLOW)
        self.assertEqual(hub.status()["sessions"], 20)
        proc.communicate()
        self.assertEqual(proc.returncode, 0)

    def test_who_waits_answers_heartbeats(self):
        """What comes between request and answer is neither; subscribers say nothing else."""
        hub = self.hub("--heartbeat", "1ms", "--sub-buffer", "1024")
        self.assertEqual(self.work(hub, "wake", "count=300")["ops"], 300)
        self.assertEqual(self.work(hub, "ask", "count=300")["ops"], 300)
        got = self.work(hub, "publish", "count=3000", "conns=6", "pipeline=64")
        self.assertEqual(got["ops"], 18000)

    def test_probe_puts_until_its_input_ends(self):
        hub = self.hub(durable=True)
        proc = subprocess.Popen([LOAD, "zmqcat", hub.path, "probe", "queue=other"],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        harness.wait_for(lambda: hub.status()["puts"] > 10)
        got = json.loads(proc.communicate()[0])
        self.assertEqual((got["ops"], 0), (hub.status()["puts"], hub.status()["queued"]))
        self.assertLessEqual(got["p99_us"], got["max_us"])
        self.work(hub, "cycle", "steps=put", "queue=kept", "count=3")
        self.assertEqual(hub.status()["queued"], 3)
        got = self.conn(hub).call(v=1, op="take", name="kept", id="t")
        self.assertEqual((got["op"], len(got["text"])), ("msg", 100))

    def test_start_ends_what_it_started(self):
        path = os.path.join(tempfile.mkdtemp(dir=harness.tempdir()), "s")
        out = load("zmqcat", path, "start", "--", harness.HUB, "--local", "--listen", path)
        self.assertEqual(out.returncode, 0, out.stderr)
        self.assertFalse(os.path.exists(path))

    def test_an_error_ends_it(self):
        hub = self.hub("--mailbox-cap", "3")
        out = load("zmqcat", hub.path, "cycle", "count=4")
        self.assertEqual(out.returncode, 1)
        self.assertIn("queue full", out.stderr)
        self.assertEqual(load("zmqcat", hub.path + ".none", "cycle").returncode, 1)
        self.assertEqual(load("zmqcat", hub.path, "cycle", "count=x").returncode, 2)


@unittest.skipUnless(sys.platform == "linux", "the engine wants epoll")
class Table(unittest.TestCase):
    """With a thousandth of the work: that each kind of row runs and says what it has to. (The 10^6
    of some rows are 1,000 here.)"""

    def run_bench(self, *args, path="/nonexistent", build=BUILD):
        return subprocess.run([sys.executable, RUN, "--build", build, "--scale", "0.001",
                               "--rounds", "2"] + list(args), env=dict(os.environ, PATH=path),
                              capture_output=True, text=True, timeout=100 * harness.SLOW)

    def build_with(self, **scripts):
        """A build folder of ours whose programs are links, and a folder of scripts for PATH."""
        build, path = tempfile.mkdtemp(dir=harness.tempdir()), harness.tempdir()
        for name in ("zmqcat-hub", "load"):
            os.symlink(os.path.join(BUILD, name), os.path.join(build, name))
        for name, text in scripts.items():
            with open(os.path.join(path, name.replace("_", "-")), "w") as f:
                f.write("#!/bin/sh\n" + text)
            os.chmod(f.name, 0o755)
        return {"build": build, "path": path}

    def test_each_row_with_our_hub_alone(self):
        """A peer that is missing is said, and judges nothing."""
        out = self.run_bench()
        self.assertEqual(out.returncode, 0, out.stdout + out.stderr)
        self.assertIn("redis is not installed: apt-get install redis-server\n", out.stdout)
        self.assertIn("nats-server was not built: there is no Go\n", out.stdout)
        self.assertRegex(out.stdout, r"(?m)^  --sub-buffer 256 in pub-1 pub-10 pub-100 pub-1000$")
        listed = self.run_bench("--list").stdout.splitlines()
        self.assertGreater(len(listed), 30)
        for line in listed:
            title = line[20:].strip()
            row = [r for r in out.stdout.splitlines() if r.startswith(title)]
            self.assertRegex(row[0][len(title):], r"^ +[0-9.]", title)
        rows = [r for r in out.stdout.splitlines() if r.startswith("deliveries to 10 ")]
        self.assertRegex(rows[0], r"-  +1\.00  +-  +-$")
        self.assertRegex(out.stdout, r"start to first answer .*<= 8 ms +(yes|NO)")
        self.assertTrue(out.stdout.endswith("Only 0.001 of the work was done: these figures say "
                                            "nothing.\n"))

    def test_json(self):
        out = self.run_bench("--json", "put-50-disk", "stall")
        got = json.loads(out.stdout)
        self.assertIsNone(got["versions"]["redis"])
        self.assertEqual([r["name"] for r in got["rows"]],
                         ["put-50-disk", "put-50-disk-lease", "stall-max", "stall-p99"])
        for row in got["rows"][:2]:
            self.assertEqual((row["met"], row["ratio"]), (None, None))
            self.assertEqual([len(row["figures"][k]) for k in ("zmqcat", "control")], [2, 2])
        self.assertEqual(set(got["rows"][2]["figures"]), {"zmqcat", "control", "without"})
        self.assertEqual(got["rows"][2]["met"], max(got["rows"][2]["figures"]["zmqcat"]) <= 100)

    def test_when_time_is_short_rounds_are_fewer(self):
        out = self.run_bench("--minutes", "1e-9", "--rounds", "4", "--json", "empty", "put-5")
        got = json.loads(out.stdout)
        self.assertIn("time was short, with fewer rounds: put-50-disk (1), empty (1)",
                      got["notes"])
        self.assertEqual([len(r["figures"]["zmqcat"]) for r in got["rows"]], [1, 1, 1])

    def test_markdown(self):
        out = self.run_bench("--markdown", "empty", "session").stdout.splitlines()
        self.assertEqual([line.count("|") for line in out], [0, 0, 8, 8, 8, 8, 0, 0])
        self.assertIn("redis is missing", out[0])

    def test_the_hub_is_as_shipped_but_for_what_is_said(self):
        """No heartbeat, buffer or bound is changed in what no line names."""
        log = os.path.join(harness.tempdir(), "argv")
        made = self.build_with()
        hub = os.path.join(made["build"], "zmqcat-hub")
        os.unlink(hub)
        with open(hub, "w") as f:
            f.write('#!/bin/sh\necho "$@" >>%s\nexec %s "$@"\n' % (log, harness.HUB))
        os.chmod(hub, 0o755)
        out = self.run_bench("job-1", "session", "empty", "ask", "wake", **made)
        self.assertEqual(out.returncode, 0, out.stdout)
        with open(log) as f:
            for line in f:
                rest = line.split()
                if rest == ["--version"]:
                    continue
                self.assertEqual(rest[:2], ["--local", "--listen"])
                self.assertIn(rest[3:4], ([], ["--mailbox"]), line)
        self.assertNotIn(" in job-1", out.stdout)

    def test_a_peer_that_fails_is_said_and_the_rest_goes_on(self):
        out = self.run_bench("--json", "put", **self.build_with(
            redis_server='[ "$1" = --version ] && echo v=7.1.2 || exit 1\n'))
        got = json.loads(out.stdout)
        self.assertEqual(out.returncode, 1)
        self.assertEqual(got["versions"]["redis"], "7.1.2")
        self.assertEqual([r["name"] for r in got["rows"]],
                         ["put", "put-disk", "put-50-disk", "put-50-disk-lease", "put-pipelined",
                          "put-pipelined-disk", "depth-put", "depth-take", "depth-disk-put",
                          "depth-disk-take"])
        self.assertIn("redis: redis did not start", got["failures"][0])
        self.assertEqual(got["rows"][0]["figures"].keys(), {"zmqcat"})

    def test_a_row_that_fails_is_said_and_the_rest_goes_on(self):
        made = self.build_with()
        hub = os.path.join(made["build"], "zmqcat-hub")
        os.unlink(hub)
        with open(hub, "w") as f:
            f.write('#!/bin/sh\ncase "$*" in *--sub-buffer*) exit 1;; esac\nexec %s "$@"\n'
                    % harness.HUB)
        os.chmod(hub, 0o755)
        out = self.run_bench("pub-10", "ask", **made)
        self.assertEqual(out.returncode, 1)
        self.assertRegex(out.stdout, r"(?m)^FAILED deliveries to 10 subscribers: the row ends here")
        self.assertRegex(out.stdout, r"(?m)^request and reply, all on TCP +[0-9]")

    def test_a_build_of_nats_that_fails_is_said(self):
        out = self.run_bench("ask", **self.build_with(
            go='echo "proxy.example: no such host" >&2; exit 1\n'))
        self.assertIn("nats-server was not built: proxy.example: no such host\n", out.stdout)
        self.assertEqual(out.returncode, 0)

    def test_docs_get_the_table_of_a_whole_run(self):
        self.assertEqual(self.run_bench("--docs", "put").returncode, 2)
        loader = importlib.machinery.SourceFileLoader("run", RUN)
        run = importlib.util.module_from_spec(importlib.util.spec_from_loader("run", loader))
        loader.exec_module(run)
        with open(os.path.join(ROOT, "docs", "bench.md")) as f:
            text = f.read()
        copy = harness.write_file(os.path.join(harness.tempdir(), "copy"), text)
        import judge
        r = judge.Result("row", "a row")
        r.note("zmqcat", 7)
        found = {"versions": {"redis": "7.0"}, "packages": {}, "processors": 2, "notes": [],
                 "raised": {}, "failures": ["a row: failed"], "rows": [judge.judge(r)],
                 "seconds": 1}
        args = types.SimpleNamespace(scale=1, wide=False)
        with contextlib.redirect_stdout(io.StringIO()):
            for _ in range(2):
                run.report_docs(found, args, copy)
        with open(copy) as f:
            got = f.read()
        head, tail = text.split(run.MARK)[0], text.split(run.END)[1]
        self.assertTrue(got.startswith(head + run.MARK + "\n\nredis 7.0; 2 processors.\n\n"))
        self.assertTrue(got.endswith("\n\nFAILED a row: failed\n\n" + run.END + tail))
        self.assertEqual(got.count("| a row | 7 | - | - | - | - | - |"), 1)

    def test_without_a_build(self):
        with tempfile.TemporaryDirectory() as empty:
            out = self.run_bench("put", build=empty)
        self.assertEqual(out.returncode, 1, out.stdout)
        self.assertIn("make all %s/load" % empty, out.stderr)

    def test_no_row(self):
        out = self.run_bench("nosuchrow")
        self.assertEqual((out.returncode, out.stdout), (2, ""))
        self.assertIn("--list", out.stderr)


if __name__ == "__main__":
    harness.main()
