"""What the Go original's command did (cli.jsonl, one run a row), done by ours.

Of a run that exits 0 the standard output and the status bind; a run that fails must fail. The rows
of one hub run in their order, because they put and take. Rows that differ on purpose are named in
DIFFERENT with the reason, and tested for what they do instead.
"""
import json, os, signal, subprocess, sys, time, unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness
from harness import CLI, cli, tempdir

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "cli.jsonl")) as f:
    ROWS = {row["case"]: row for row in map(json.loads, f)}

BINARY = bytes(range(256))
STDIN = {
    "put.stdin": b"from stdin\nline2\n",
    "put.stdin_empty": b"",
    "put.binary": BINARY,
    "put.toolarge": b"x" * 1468006,
    "put.800k": b"x" * 800000,
}
USAGE = "help is printed to standard output"
DIFFERENT = {
    "args:": USAGE, "args:-h": USAGE, "args:--help": USAGE, "args:serve -h": USAGE,
    "args:put -h": USAGE, "args:req -h": USAGE, "args:join -h": USAGE,
    "args:--version": "prints the version, exit 0",
    "put.900k": "accepted: the payload is sent once, so 1 MiB fits",
    "env.ZMQCAT_LISTEN": "the variable is honoured",
    "serve.mailbox_isdir": "a directory is the durable form; one that holds other files is refused",
    "serve.second_same_socket": "the second hub is refused",
    "ping.after_first_of_two_exits": "the socket stays the first hub's, and goes with it",
    "serve.signal.SIGHUP": "re-reads files instead of dying",
    "serve.local.sigterm": "the trace has another line form",
}


def run(case, sock, **more):
    """The row's command with the socket put in."""
    args = [a.replace("SOCK", sock) for a in ROWS[case]["args"]]
    if "--listen" not in args and args[:1] not in (["serve"], ["join"]):
        more.setdefault("listen", "unix://" + sock)
    return cli(*args, **more)


class Usage(unittest.TestCase):
    """Rows without a hub."""

    def test_command_lines(self):
        sock = os.path.join(tempdir(), "none")
        rows = [c for c in ROWS if c.startswith("args:") and c not in DIFFERENT]
        self.assertGreater(len(rows), 15)
        for case in rows:
            with self.subTest(case):
                got = run(case, sock)
                self.assertNotEqual(ROWS[case]["rc"], 0)
                self.assertNotIn(got.returncode, (0, 3, 4))
                self.assertEqual(got.stdout, b"")
                self.assertTrue(got.stderr)
                self.assertNotIn(b"core dumped", got.stderr)

    def test_help_goes_to_standard_output(self):
        for case in (c for c, why in DIFFERENT.items() if why == USAGE):
            with self.subTest(case):
                got = run(case, "/none")
                self.assertEqual((got.returncode, got.stderr), (0, b""))
                self.assertTrue(got.stdout.startswith(b"usage: zmqcat"))

    def test_help_that_cannot_be_written_is_a_failure(self):
        for argv in ([CLI, "--help"], [CLI, "put", "--help"], [CLI, "--version"],
                     [harness.HUB, "-h"], [harness.SPOKE, "--help"], [harness.HUB, "--version"]):
            with self.subTest(argv), open("/dev/full", "w") as full:
                got = subprocess.run(argv, stdout=full, stderr=subprocess.PIPE)
                self.assertEqual(got.returncode, 1)
                self.assertRegex(got.stderr, rb"\Azmqcat.*: No space left on device\n\Z")

    def test_short_help_of_the_daemons(self):
        for program in (harness.HUB, harness.SPOKE):
            short, full = (subprocess.run([program, o], capture_output=True)
                           for o in ("-h", "--help"))
            self.assertEqual((short.returncode, short.stdout), (0, full.stdout))

    def test_version(self):
        got = cli("--version")
        self.assertEqual((got.returncode, got.stderr), (0, b""))
        self.assertRegex(got.stdout, rb"\Azmqcat \d+\.\d+\.\d+\n\Z")

    def test_no_hub(self):
        for case in ("noserver.ping", "noserver.put"):
            got = run(case, os.path.join(tempdir(), "none"))
            self.assertEqual((got.returncode, got.stdout), (1, b""), case)
            self.assertIn(b"zmqcat serve", got.stderr)

    def test_join_with_a_token_that_is_none(self):
        for case in ("join.badtoken", "join.badtoken2", "join.tc_only"):
            sock = os.path.join(tempdir(), "s")
            args = [a.replace("/tmp/zj.sock", sock) for a in ROWS[case]["args"]]
            got = cli(*args)
            self.assertEqual((got.returncode, got.stdout), (78, b""), case)
            self.assertIn(b"token", got.stderr)
            self.assertFalse(os.path.exists(sock), case)

    def test_unusable_mailboxes(self):
        d = tempdir()
        with open(os.path.join(d, "bad.json"), "w") as f:
            f.write("{nonsense")
        for case, path in (("serve.mailbox_corrupt", os.path.join(d, "bad.json")),
                           ("serve.mailbox_isdir", d)):
            args = [a.replace("SOCK", os.path.join(d, "s")) for a in ROWS[case]["args"][:-1]]
            got = cli(*args, path)
            self.assertEqual((got.returncode, got.stdout), (78, b""), case)
            self.assertIn(path.encode(), got.stderr)
        self.assertEqual(os.listdir(d), ["bad.json"])


class Bus(harness.Case):
    """Rows with a hub, in their order."""

    PLAIN = [
        "ping", "put", "take", "put.stdin", "take.stdin", "put.stdin_empty", "take.empty",
        "put.devnull", "take.devnull", "put.binary", "take.binary", "put.flags_after",
        "take.flags_after", "put.dashdash", "take.dashdash", "put.unknownflag",
        "put.extra_negative", "put.toolarge", "put.800k", "put.empty_name", "take.empty_name",
        "pub.empty_name", "pub", "name.empty", "req.noworker", "req.noworker_1s_default",
        "req.retries0", "req.emptyname",
    ]

    def test_rows_in_order(self):
        hub = self.hub()
        for case in self.PLAIN:
            row = ROWS[case]
            with self.subTest(case):
                began = time.monotonic()
                got = run(case, hub.path, stdin=STDIN.get(case))
                took = time.monotonic() - began
                if row["rc"] == 0:
                    want = (bytes.fromhex(row["stdout_hex"]) if "stdout_hex" in row
                            else row["stdout"].encode())
                    self.assertEqual((got.returncode, got.stdout), (0, want), got.stderr)
                    self.assertEqual(got.stderr, b"")
                else:
                    self.assertNotEqual(got.returncode, 0)
                    self.assertEqual(got.stdout, b"")
                    self.assertTrue(got.stderr.startswith(b"zmqcat: "), got.stderr)
                if case.startswith("req.no"):
                    self.assertEqual(got.returncode, 3)
                    self.assertGreater(took, row["secs"] - 0.05)
                    self.assertIn(b"request abandoned after 3 attempts", got.stderr)

    def test_refused_payload_leaves_nothing(self):
        hub = self.hub()
        got = run("put.toolarge", hub.path, stdin=STDIN["put.toolarge"])
        self.assertEqual(got.returncode, 1)
        self.assertIn(b"mailbox: payload too large", got.stderr)
        self.assertEqual(cli("ls", listen=hub.listen).stdout, b"")

    def test_900k_is_accepted(self):
        hub = self.hub()
        got = run("put.900k", hub.path, stdin=b"y" * 900000)
        self.assertEqual((got.returncode, got.stdout), (0, b""), got.stderr)
        self.assertEqual(cli("take", "big2", listen=hub.listen).stdout, b"y" * 900000 + b"\n")

    def test_environment_names_the_bus(self):
        hub = self.hub()
        got = cli(*ROWS["env.ZMQCAT_LISTEN"]["args"], env={"ZMQCAT_LISTEN": hub.listen})
        self.assertEqual((got.returncode, got.stdout), (0, b"pong\n"))

    def test_take_blocks(self):
        hub = self.hub()
        with self.assertRaises(subprocess.TimeoutExpired):
            run("take.timeout", hub.path, timeout=1)

    def test_ready_prints_the_job_and_gives_it_back(self):
        hub = self.hub()
        waiting = subprocess.Popen([CLI, "ready", "svc9", "--listen", hub.listen],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(waiting.stdout.close)
        self.addCleanup(waiting.stderr.close)
        self.addCleanup(waiting.kill)
        asked = run("req.ready_cli_worker", hub.path)
        out, err = waiting.communicate(timeout=10)
        self.assertEqual((waiting.returncode, out, err), (0, b"hi\n", b""))
        self.assertEqual((asked.returncode, asked.stdout), (3, b""))
        self.assertEqual(cli("take", "svc9", "--wait", "2", listen=hub.listen).stdout, b"hi\n")

    def test_sub_until_the_hub_stops(self):
        hub = self.hub()
        cli("pub", "ev.a", "x", "--name", "vm", listen=hub.listen)
        sub = subprocess.Popen([CLI, "sub", "ev.", "--listen", hub.listen], bufsize=0,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(sub.stdout.readline(), b"ev.a\tvm\tx\n")
        cli("pub", "ev.b", "line1\nline2", "--name", "pubby", listen=hub.listen)
        self.assertEqual(sub.stdout.readline(), b"ev.b\tpubby\tline1\n")
        hub.stop()
        out, err = sub.communicate(timeout=10)
        want = ROWS["sub.until_hub_stops"]
        self.assertEqual((sub.returncode, b"ev.a\tvm\tx\nev.b\tpubby\tline1\n" + out, err),
                         (want["rc"], want["stdout"].encode(), b""))

    def test_take_until_the_hub_stops(self):
        hub = self.hub()
        take = subprocess.Popen([CLI, "take", "never", "--listen", hub.listen],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        c = hub.connect()
        harness.wait_for(lambda: c.call(op="stat", id="1", name="never")["result"]["waiting"] == 1)
        c.close()
        hub.stop()
        out, err = take.communicate(timeout=10)
        self.assertEqual((take.returncode, out), (ROWS["take.until_hub_stops"]["rc"], b""))
        self.assertIn(ROWS["take.until_hub_stops"]["stderr"].strip().encode(), err)


class Serve(harness.Case):
    def serve(self, sock, *more):
        p = subprocess.Popen([CLI, "serve", "--local", "--listen", "unix://" + sock, *more],
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
        self.addCleanup(p.stderr.close)
        self.addCleanup(p.stdout.close)
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)

        def up():
            return cli("ping", listen="unix://" + sock).returncode == 0
        harness.wait_for(up)
        return p

    def test_ends_by_signal(self):
        for name in ("SIGINT", "SIGTERM", "SIGKILL"):
            with self.subTest(name):
                sock = os.path.join(tempdir(), "s")
                p = self.serve(sock)
                p.send_signal(getattr(signal, name))
                row = ROWS["serve.signal." + name]
                self.assertEqual(p.wait(10), row["rc"])
                self.assertEqual(p.stdout.read(), row["stdout"].encode())
                self.assertIn(b"local bus at unix://" + sock.encode(), p.stderr.read())
                self.assertEqual(os.path.exists(sock), "left: True" in row["note"])

    def test_sighup_keeps_it_running(self):
        sock = os.path.join(tempdir(), "s")
        p = self.serve(sock)
        p.send_signal(signal.SIGHUP)
        time.sleep(0.2)
        self.assertEqual(cli("ping", listen="unix://" + sock).stdout, b"pong\n")
        self.assertIsNone(p.poll())

    def test_trace_on_standard_error_and_socket_removed(self):
        sock = os.path.join(tempdir(), "s")
        p = self.serve(sock, "--trace")
        p.terminate()
        self.assertEqual(p.wait(10), 0)
        self.assertRegex(p.stderr.read(), rb"zmqcat s\d+ in op=hello ")
        self.assertFalse(os.path.exists(sock))

    def test_a_second_hub_is_refused_and_harms_nothing(self):
        sock = os.path.join(tempdir(), "s")
        first = self.serve(sock)
        second = cli("serve", "--local", "--listen", "unix://" + sock)
        self.assertEqual(second.returncode, 1)
        self.assertIn(sock.encode(), second.stderr)
        self.assertEqual(cli("ping", listen="unix://" + sock).stdout, b"pong\n")
        first.terminate()
        first.wait(10)
        got = run("ping.after_first_of_two_exits", sock)
        self.assertEqual((got.returncode, got.stdout), (1, b""))


class Complete(unittest.TestCase):
    def test_every_row_is_tested(self):
        here = {c for c in ROWS if c.startswith("args:")}
        here |= set(Bus.PLAIN) | set(DIFFERENT)
        here |= {"noserver.ping", "noserver.put", "join.badtoken", "join.badtoken2",
                 "join.tc_only", "serve.mailbox_corrupt", "take.timeout", "ready",
                 "req.ready_cli_worker", "sub.until_hub_stops", "take.until_hub_stops",
                 "serve.signal.SIGINT", "serve.signal.SIGTERM", "serve.signal.SIGKILL"}
        # In test_default_socket.py.
        here |= {"noserver.ping_default_listen"}
        self.assertEqual(set(ROWS) - here, set())
        self.assertEqual(here - set(ROWS), set())


if __name__ == "__main__":
    harness.main()
