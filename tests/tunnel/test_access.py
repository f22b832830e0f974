"""Which spokes a hub lets in."""
import os, shutil, signal, stat, subprocess, sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness
from harness import Case, cli, nodekey, read_file, tempdir, wait_for, write_file

# The leak checker does not work under strace.
TRACED = dict(os.environ, ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0")


class Access(Case):
    def setUp(self):
        self.r = self.relay()
        self.key = os.path.join(tempdir(), "spoke.key")
        got = cli("keygen", self.key)
        self.assertEqual(got.returncode, 0, got.stderr)
        self.node = got.stdout.decode().strip()
        self.assertRegex(self.node, r"\Anodekey:[0-9a-f]{64}\Z")
        self.assertEqual(nodekey(self.key), self.node)
        self.assertEqual(stat.S_IMODE(os.stat(self.key).st_mode), 0o600)

    def test_keygen_leaves_what_is_there(self):
        before = read_file(self.key)
        self.assertEqual(cli("keygen", "--hub", self.key).returncode, 1)
        self.assertEqual(read_file(self.key), before)

    def test_a_key_is_on_disk_before_it_has_its_name(self):
        """After a power cut there is a whole one, or none."""
        if shutil.which("strace") is None:
            harness.skip("no strace")
        folder = tempdir()
        argv = ["strace", "-qq", "-o", folder + "/trace", "-e", "trace=write,fsync,linkat,renameat",
                harness.CLI, "keygen", folder + "/key"]
        subprocess.run(argv, env=TRACED, check=True, stdout=subprocess.DEVNULL)
        lines = read_file(folder + "/trace").decode().splitlines()
        named = next(i for i, l in enumerate(lines) if l.startswith(("linkat(", "renameat(")))
        before, after = ([l.split("(")[0] for l in part] for part in (lines[:named], lines[named:]))
        self.assertEqual(before[-2:], ["write", "fsync"], lines)
        self.assertIn("fsync", after, lines)

    def test_a_list_or_key_that_cannot_be_read_now_is_read_by_the_next_start(self):
        """Status 1, which a unit meets by another start; after 78 it stays down."""
        if shutil.which("strace") is None:
            harness.skip("no strace")
        folder = os.path.realpath(tempdir())
        cli("keygen", "--hub", folder + "/key")
        write_file(folder + "/allow", self.node + "\n")
        for name in ("key", "allow"):
            for error, status in (("EIO", 1), ("EMFILE", 1), ("EACCES", 78)):
                argv = ["strace", "-qq", "-o", "/dev/null", "-P", os.path.join(folder, name),
                        "-e", "inject=openat:error=" + error, harness.HUB, "--derp-map", self.r.map,
                        "--listen", folder + "/bus", "--key-file", folder + "/key",
                        "--allow-file", folder + "/allow"]
                done = subprocess.run(argv, env=TRACED, capture_output=True, text=True,
                                      timeout=20 * harness.SLOW)
                self.assertEqual(done.returncode, status, (name, error, done.stderr))
                self.assertIn(name, done.stderr)

    def test_only_listed_spokes_come_in(self):
        h = self.tunnel_hub(self.r, "--allow", self.node)
        good = self.spoke(h, "--key-file", self.key).joined()
        self.conn(good).sync()
        bad = self.spoke(h, "--wait-hub", "2s")
        c = self.conn(bad)
        c.send(v=1, op="ping", id="p")
        self.assertErr(c.recv(), "unavailable")
        wait_for(lambda: "not running, or this spoke is not allowed" in bad.logged())
        self.assertEqual(len(h.status()["tunnel"]["peers"]), 1)
        self.assertGreater(h.status()["tunnel"]["refused"], 0)

    def test_allow_file_is_read_again(self):
        path = write_file(os.path.join(tempdir(), "allow"), "# nobody yet\n\n")
        h = self.tunnel_hub(self.r, "--allow-file", path)
        s = self.spoke(h, "--key-file", self.key, "--wait-hub", "2s")
        c = self.conn(s)
        c.send(v=1, op="ping", id="p")
        self.assertErr(c.recv(), "unavailable")
        write_file(path, "# friends\n  %s # the first\r\n" % self.node)
        h.proc.send_signal(signal.SIGHUP)
        s.joined(15)
        c = self.conn(s, hello=True)
        write_file(path, "nonsense\n")
        h.proc.send_signal(signal.SIGHUP)
        wait_for(lambda: "line 1" in h.logged())
        c.sync()
        write_file(path, "#\n")
        h.proc.send_signal(signal.SIGHUP)
        self.assertTrue(c.closed(3))

    def test_bad_lists_stop_the_start(self):
        bad = write_file(os.path.join(tempdir(), "a"), "x\n")
        for options in (["--allow", ""], ["--allow", "nodekey:12"],
                        ["--allow-file", "/nonexistent"],
                        ["--allow-file", bad], ["--no-psk"],
                        ["--no-psk", "--open", "--allow", self.node], ["--open", "--local"],
                        ["--open"], ["--region", "a b"], ["--forward", "0"], ["--forward", "7"]):
            with self.subTest(options):
                got = self.tunnel_hub(self.r, *options, start=False).run()
                self.assertEqual(got.returncode, 78, got.stderr)
                self.assertEqual(got.stderr.count(b"\n") - got.stderr.count(b": made\n"), 1)

    def test_local_and_the_tunnel(self):
        """The option that is in the way is named."""
        for options in (["--allow", self.node], ["--open"], ["--forward", "80"],
                        ["--key-file", self.key], ["--region", "1"], ["--print-token"]):
            got = self.hub(*options, start=False).run(argv=["--local", *options])
            self.assertEqual(got.returncode, 78, got.stderr)
            self.assertEqual(got.stderr.decode(), "zmqcat: --local: it means no tunnel, and %s is "
                             "about the tunnel: leave one of them out\n" % options[0])

    def test_clients_max(self):
        """One place: who has it goes on, who has none is counted and named."""
        h = self.tunnel_hub(self.r, "--clients-max", "1")
        first = self.spoke(h, "--key-file", self.key).joined()
        c = self.conn(first, hello=True)
        second = self.spoke(h, "--wait-hub", "1s")
        late = self.conn(second)
        late.send(v=1, op="ping", id="p")
        self.assertErr(late.recv(), "unavailable")
        full = nodekey(second.key) + " asks to come in, and there is no room"
        wait_for(lambda: full in h.logged())
        now = h.status()["tunnel"]
        self.assertEqual([p["nodekey"] for p in now["peers"]], [self.node])
        self.assertGreater(now["refused"], 0)
        self.assertNotEqual(second.status()["tunnel"]["state"], "up")
        c.put("jobs", "one")
        self.assertFrame(self.conn(first).call(v=1, op="take", name="jobs", id="t"), text="one")
        c.sync()
        self.assertEqual(h.logged().count(full), 1)

    def test_no_psk(self):
        h = self.tunnel_hub(self.r, "--no-psk", "--open")
        with_psk = len(self.tunnel_hub(self.r).token())
        self.assertLess(len(h.token()), with_psk)
        self.spoke(h).joined()
        got = cli("rotate", "--listen", h.listen)
        self.assertEqual(got.returncode, 4)
        self.assertRegex(got.stderr, rb"\Azmqcat: rotate: this hub runs with --no-psk: .*\n\Z")


if __name__ == "__main__":
    harness.main()
