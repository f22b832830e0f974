"""ls, stat, status, trace and ping; and the commands that a huginn operator types."""
import json, os, re, shutil, signal, subprocess

import command
import harness
from harness import BUILD, SLOW, cli, tempdir

SUMS = ["depth", "leased", "delayed", "waiting", "bytes", "oldest_ms", "in", "out", "redelivered",
        "dropped"]


def table(out):
    """Lines of `key value` as a dict, in order."""
    return dict(re.fullmatch(r"(\S+) +(.*)", line).groups() for line in out.decode().splitlines())


class Inspect(command.Case):
    def test_stat_of_a_mailbox(self):
        self.z("put", "jobs", "abc")
        self.z("put", "jobs", "de")
        self.z("take", "jobs")
        got = table(self.z("stat", "jobs").stdout)
        self.assertEqual(list(got), ["name"] + SUMS)
        self.assertEqual((got["name"], got["depth"], got["bytes"], got["in"], got["out"]),
                         ("jobs", "1", "2", "2", "1"))
        raw = json.loads(self.z("stat", "jobs", "--json").stdout)
        self.assertEqual({k: str(v) for k, v in raw.items() if k != "oldest_ms"},
                         {k: v for k, v in got.items() if k != "oldest_ms"})

    def test_stat_of_nothing_is_zeros(self):
        got = self.z("stat", "none", "--json")
        self.assertEqual(got.returncode, 0)
        self.assertEqual(json.loads(got.stdout), dict({"name": "none"}, **{k: 0 for k in SUMS}))
        self.assertEqual(self.z("ls").stdout, b"")

    def test_stat_of_all(self):
        for i in range(3):
            self.z("put", "box%d" % i, "xx")
        got = table(self.z("stat").stdout)
        self.assertEqual((got["mailboxes"], got["depth"], got["bytes"]), ("3", "3", "6"))

    def test_ls_pages_through_all_names_in_order(self):
        raw = self.conn(self.bus)
        names = ["n%04d" % i for i in range(2500)] + ["o", "\u00e9"]
        for name in reversed(names):
            raw.send(op="put", id="p", name=name, text="x")
        for _ in names:
            self.assertEqual(raw.recv()["op"], "ok")
        self.assertEqual(self.z("ls").stdout.decode().splitlines(), names)
        self.assertEqual(self.z("ls", "n").stdout.decode().splitlines(), names[:2500])
        self.assertEqual(self.z("ls", "n24").stdout.decode().splitlines(), names[2400:2500])
        got = self.z("ls", "--json").stdout
        self.assertEqual(json.loads(got), {"names": names, "more": False})
        self.assertEqual(got.count(b"\n"), 1)
        self.assertEqual(json.loads(self.z("ls", "--json", "zz").stdout),
                         {"names": [], "more": False})

    def test_names_forge_no_lines(self):
        self.z("put", "a\nb\x1b", "x")
        self.assertEqual(self.z("ls").stdout.count(b"\n"), 1)
        self.assertNotIn(b"\x1b", self.z("ls").stdout)
        self.assertEqual(self.z("stat", "a\nb\x1b").stdout.count(b"\n"), 11)
        self.assertEqual(json.loads(self.z("ls", "--json").stdout)["names"], ["a\nb\x1b"])

    def test_ping(self):
        self.assertEqual(self.z("ping").stdout, b"pong\n")
        self.assertRegex(self.z("ping", "-v").stdout,
                         rb"\Apong\nround trip \d+\.\d{3} ms\npath local\n\Z")
        self.bus.proc.send_signal(signal.SIGSTOP)
        try:
            with self.assertRaises(subprocess.TimeoutExpired):
                self.z("ping", timeout=1 / SLOW)
        finally:
            self.bus.proc.send_signal(signal.SIGCONT)

    def test_status(self):
        self.z("put", "jobs", "x")
        raw = json.loads(self.z("status", "--json").stdout)
        for key in ("version", "uptime", "sessions", "mailboxes", "storage", "tunnel"):
            self.assertIn(key, raw)
        self.assertEqual((raw["mailboxes"], raw["storage"]["state"], raw["tunnel"]),
                         (1, "memory", None))
        got = table(self.z("status").stdout)
        self.assertEqual((got["mailboxes"], got["storage.state"], got["tunnel"]),
                         ("1", "memory", "-"))
        self.assertEqual(got["version"], raw["version"])

    def test_control_socket_by_option(self):
        control = os.path.join(tempdir(), "c")
        bus = self.hub("--control", control)
        got = cli("status", listen=bus.listen)
        self.assertEqual((got.returncode, got.stdout), (1, b""))
        self.assertIn(bus.path.encode() + b".ctl", got.stderr)
        for address in (control, "unix://" + control):
            self.assertEqual(cli("status", "--control", address).returncode, 0)
        self.assertEqual(cli("status", "--control", control, listen="nonsense").returncode, 0)
        got = cli("status", "--control", "nonsense")
        self.assertEqual(got.returncode, 78)

    def test_status_of_a_bus_on_tcp_wants_control(self):
        got = cli("status", listen="tcp://127.0.0.1:1")
        self.assertEqual(got.returncode, 2)
        self.assertIn(b"--control", got.stderr)
        self.assertEqual(cli("status", "--control", self.bus.path + ".ctl",
                             listen="tcp://127.0.0.1:1").returncode, 0)

    def test_trace_is_switched(self):
        self.z("put", "silent", "x")
        self.assertEqual(self.z("trace", "on").returncode, 0)
        self.z("put", "traced", "x")
        self.assertEqual(self.z("trace", "off").returncode, 0)
        self.z("put", "silent", "x")
        log = self.bus.logged()
        self.assertIn("op=put", log)
        self.assertIn("traced", log)
        self.assertNotIn("silent", log)

    def test_the_bus_socket_is_no_control_socket(self):
        got = cli("status", "--control", self.bus.path)
        self.assertEqual(got.returncode, 1)
        self.assertIn(b"unknown op status", got.stderr)


class Huginn(harness.Case):
    """The operator's commands word for word (join is in tests/tunnel). As root they run as a user
    id that nobody has, whose default socket no other program uses."""

    def setUp(self):
        self.dir = tempdir()
        self.uid = os.getuid() or 50000 + os.getpid() % 10000
        self.socket = "/tmp/zmqcat-%d.sock" % self.uid
        self.bin, self.become = BUILD, []
        if self.uid != os.getuid():
            self.bin = tempdir()
            self.become = ["setpriv", "--reuid", str(self.uid), "--regid", str(self.uid),
                           "--clear-groups"]
            for program in ("zmqcat", "zmqcat-hub"):
                shutil.copy(os.path.join(BUILD, program), self.bin)
            os.chmod(self.bin, 0o755)
            os.chown(self.dir, self.uid, self.uid)

    def shell(self, text):
        env = {k: v for k, v in os.environ.items() if k != "ZMQCAT_LISTEN"}
        env["PATH"] = self.bin + ":" + os.environ["PATH"]
        return subprocess.Popen([*self.become, "sh", "-c", text], cwd=self.dir, env=env,
                                start_new_session=True, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def sh(self, text):
        """Runs it to its end: status, standard output, standard error."""
        p = self.shell(text)
        out, err = p.communicate(timeout=20 * SLOW)
        return p.returncode, out, err

    def end(self, p):
        try:
            os.killpg(p.pid, signal.SIGTERM)
        except ProcessLookupError:
            pass
        out, err = p.communicate(timeout=20)
        return p.returncode, out, err

    def serve(self):
        hub = self.shell("exec zmqcat serve --local --mailbox ./mailbox.json")
        try:
            harness.wait_for(lambda: self.sh("zmqcat ping")[0] == 0)
        except AssertionError:
            self.fail(self.end(hub))
        return hub

    def test_serve_local_mailbox_and_req_on_the_default_socket(self):
        if os.path.lexists(self.socket) or (self.uid == os.getuid()
                                            and os.path.exists("/run/zmqcat")):
            harness.skip("a real hub's socket is there")
        hub = self.serve()
        try:
            request = '{"jsonrpc":"2.0","id":1,"method":"session/list","params":{}}'
            # The worker of huginn: hello twice, ready, rep by message id, body only.
            worker = harness.Conn(self.socket)
            self.addCleanup(worker.close)
            worker.call(v=1, op="hello", id="h1")
            worker.call(v=1, op="hello", id="h2", **{"from": "huginn:huginn:0"})
            worker.send(v=1, op="ready", id="r", name="huginn.local")
            asked = self.shell("zmqcat req huginn.local '%s'" % request)
            job = worker.recv()
            self.assertEqual(harness.payload(job).decode(), request)
            worker.send(v=1, op="rep", id=job["id"], name="huginn.local", body="e30=")
            self.assertEqual(worker.recv()["op"], "ok")
            self.assertEqual(asked.communicate(timeout=20), (b"{}\n", b""))
            self.assertEqual(asked.returncode, 0)
            self.assertEqual(self.sh("zmqcat put kept over the restart"), (0, b"", b""))
            self.assertTrue(os.path.isdir(os.path.join(self.dir, "mailbox.json")))
        finally:
            status, out, err = self.end(hub)
        self.assertEqual((status, out), (0, b""), err)
        self.assertFalse(os.path.lexists(self.socket))
        hub = self.serve()
        try:
            self.assertEqual(self.sh("zmqcat take kept --wait 0"), (0, b"over the restart\n", b""))
        finally:
            self.end(hub)

    def test_an_existing_json_mailbox_is_taken_over(self):
        old = '{"boxes":{"q":[{"ID":"s1:a","Name":"q","From":"x","Body":"aGk=",' \
              '"At":"2026-01-01T00:00:00Z"}]},"inflight":{}}'
        path = os.path.join(self.dir, "mailbox.json")
        with open(path, "w") as f:
            f.write(old)
        os.chown(path, self.uid, -1)
        hub = self.serve()
        try:
            self.assertEqual(self.sh("zmqcat take q --wait 0"), (0, b"hi\n", b""))
        finally:
            self.end(hub)
        with open(path + ".imported") as f:
            self.assertEqual(f.read(), old)
        self.assertTrue(os.path.isdir(path))

    def test_presence(self):
        bus = self.hub("--socket-mode", "0666")
        os.chmod(bus.dir, 0o755)
        raw = self.conn(bus)
        raw.call(v=1, op="pub", id="p", name="huginn.presence.huginn", body="eyJ2IjoxfQ==",
                 **{"from": "huginn"})
        sub = self.shell("exec zmqcat sub --listen %s huginn.presence." % bus.listen)
        self.addCleanup(self.end, sub)
        line = sub.stdout.readline()
        self.assertTrue(line.startswith(b"huginn.presence.huginn\t"))
        self.assertTrue(line.endswith(b"\t{\"v\":1}\n"))


if __name__ == "__main__":
    harness.main()
