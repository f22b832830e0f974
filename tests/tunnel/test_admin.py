"""What the administrator tells a hub and its spokes: drain, revoke, reload."""
import os, shutil, signal, socket, stat, sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness
from harness import Case, cli, read_file, tempdir, wait_for, write_file


class Drain(Case):
    def setUp(self):
        self.r = self.relay()

    def test_hub(self):
        h = self.tunnel_hub(self.r)
        s = self.spoke(h).joined()
        c = self.conn(s, hello=True)
        c.put("jobs", "old")
        self.assertEqual(cli("drain", listen=h.listen).returncode, 0)
        c.send(v=1, op="put", name="jobs", text="new", id="p")
        self.assertErr(c.recv(), "unavailable")
        got = cli("req", "svc", "x", listen=s.listen)
        self.assertEqual(got.returncode, 1)
        self.assertIn(b"this hub is being drained", got.stderr)
        self.assertEqual(cli("take", "jobs", listen=s.listen).stdout, b"old\n")
        self.assertIs(h.status()["draining"], True)
        self.assertIs(s.status()["draining"], False)

    def test_spoke(self):
        h = self.tunnel_hub(self.r)
        s = self.spoke(h).joined()
        c = self.conn(s, hello=True)
        got = cli("drain", listen=s.listen)
        self.assertEqual((got.returncode, got.stdout, got.stderr), (0, b"", b""))
        new = self.conn(s)
        new.send(v=1, op="put", name="jobs", text="x", id="p")
        self.assertErr(new.recv(), "unavailable")
        self.assertTrue(new.closed())
        got = cli("put", "jobs", "x", listen=s.listen)
        self.assertEqual(got.returncode, 1)
        self.assertIn(b"this spoke is being drained", got.stderr)
        c.put("jobs", "x")
        self.assertIs(s.status()["draining"], True)
        self.assertIs(h.status()["draining"], False)
        s.restart()
        self.assertEqual(cli("take", "jobs", listen=s.listen).stdout, b"x\n")

    def service_manager(self):
        """A socket that is told what systemd would be, and its path."""
        path = os.path.join(tempdir(), "notify")
        told = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(told.close)
        told.bind(path)
        told.settimeout(10 * harness.SLOW)
        return told, path

    def test_status_of_the_service_before_a_relay_is_known(self):
        told, path = self.service_manager()
        os.unlink(self.r.map)
        self.tunnel_hub(self.r, env={"NOTIFY_SOCKET": path})
        wait_for(lambda: told.recv(4096).endswith(b"memory, 0 spokes, no relay yet"), step=0)

    def test_status_of_the_service_says_so(self):
        told, path = self.service_manager()
        h = self.tunnel_hub(self.r, env={"NOTIFY_SOCKET": path})
        s = self.spoke(h, env={"NOTIFY_SOCKET": path}).joined()
        for daemon, who in ((s, "joined"), (h, ", 1 spoke, ")):
            self.assertEqual(cli("drain", listen=daemon.listen).returncode, 0)

            def said():
                text = told.recv(4096).decode()
                return "STATUS=draining, " in text and who in text
            wait_for(said, step=0)


class Lists(Case):
    """revoke and reload at a hub, with two spokes: one that may come in, and one more."""

    def setUp(self):
        self.r = self.relay()
        self.keys, self.names = [], []
        for i in range(2):
            self.keys.append(os.path.join(tempdir(), "spoke.key"))
            self.names.append(cli("keygen", self.keys[i]).stdout.decode().strip())

    def list_of(self, *names):
        return "".join(name + "\n" for name in names)

    def listed(self, *options, names=None, **more):
        """A hub whose list is in a file: self.path."""
        self.path = write_file(os.path.join(tempdir(), "allow"),
                               self.list_of(*(self.names if names is None else names)))
        return self.tunnel_hub(self.r, "--allow-file", self.path, *options, **more)

    def join(self, hub, i):
        return self.spoke(hub, "--key-file", self.keys[i], "--wait-hub", "1s")

    def revoke(self, hub, i, rc=0):
        got = cli("revoke", self.names[i], listen=hub.listen)
        self.assertEqual((got.returncode, got.stdout), (rc, b""), got.stderr)
        return got.stderr.decode()

    def shut_out(self, spoke):
        c = self.conn(spoke)
        c.send(v=1, op="ping", id="p")
        self.assertErr(c.recv(), "unavailable")

    def test_a_revoked_key_is_out_at_once_and_for_good(self):
        h = self.listed()
        good, bad = self.join(h, 0).joined(), self.join(h, 1).joined()
        stays, ends = self.conn(good, hello=True), self.conn(bad, hello=True)
        stays.put("jobs", "x")
        ends.call(v=1, op="reserve", name="jobs", id="r", lease=3600)
        self.assertEqual(self.revoke(h, 1), "")
        self.assertTrue(ends.closed(3))
        self.assertEqual(stays.call(v=1, op="take", name="jobs", id="t")["text"], "x")
        self.shut_out(bad)
        revoked = h.key + ".revoked"
        self.assertEqual(read_file(revoked).decode(), self.list_of(self.names[1]))
        self.assertEqual(stat.S_IMODE(os.stat(revoked).st_mode), 0o600)
        self.assertIn(self.names[1] + " is revoked", h.logged())
        # It outlasts a reload and a restart, though the list names it.
        self.assertEqual(cli("reload", listen=h.listen).returncode, 0)
        self.shut_out(bad)
        h.restart(signal.SIGKILL)
        good.joined(15)
        self.shut_out(bad)
        wait_for(lambda: self.names[1] + " is revoked and asks to come in" in h.logged())
        # The way back.
        write_file(revoked, "# nobody\n")
        self.assertEqual(cli("reload", listen=h.listen).returncode, 0)
        bad.joined(15)

    def test_it_is_kept_with_the_state(self):
        state = tempdir()
        h = self.listed(env={"STATE_DIRECTORY": state})
        write_file(os.path.join(state, "revoked"), "# mine\n%s # a laptop" % self.names[0])
        self.revoke(h, 1)
        self.assertEqual(read_file(os.path.join(state, "revoked")).decode(),
                         "# mine\n%s # a laptop\n%s\n" % tuple(self.names))
        # Again, and one that nobody allows.
        self.revoke(h, 1)
        other = "nodekey:" + 64 * "a"
        self.assertEqual(cli("revoke", other, listen=h.listen).returncode, 0)
        self.assertEqual(read_file(os.path.join(state, "revoked")).decode().splitlines()[2:],
                         [self.names[1], other])
        self.assertEqual(os.listdir(state).count("revoked"), 1)
        self.assertFalse(os.path.exists(h.key + ".revoked"))
        self.assertFalse([n for n in os.listdir(state) if ".new" in n])

    def test_without_a_place_it_holds_until_the_next_start(self):
        h = self.listed(start=False)
        h.arguments = lambda: ["--listen", h.listen, "--derp-map", self.r.map, "--token-out",
                               h.token_file]
        h.start()
        s = self.join(h, 1).joined()
        c = self.conn(s, hello=True)
        said = self.revoke(h, 1)
        self.assertRegex(said, r"\Azmqcat: revoke: warning: .*until the next start.*\n\Z")
        self.assertIn("until the next start", h.logged())
        self.assertTrue(c.closed(3))
        self.assertEqual(cli("reload", listen=h.listen).returncode, 0)
        self.shut_out(s)

    def test_without_a_list_it_is_refused(self):
        h = self.tunnel_hub(self.r)
        self.assertRegex(self.revoke(h, 0, rc=4), r"\Azmqcat: revoke: .*--allow.*rotate.*\n\Z")
        self.assertFalse(os.path.exists(h.key + ".revoked"))

    def test_wrong_keys(self):
        h = self.listed()
        for key in ("", "nodekey:12", "x\n", self.names[0][:-1], self.names[0] + "0",
                    self.names[0].replace("nodekey", "privkey")):
            with self.subTest(key):
                got = cli("revoke", key, listen=h.listen)
                self.assertEqual((got.returncode, got.stdout), (2, b""))
                self.assertIn(b"64 hex digits", got.stderr)
        self.assertEqual(cli("revoke", listen=h.listen).returncode, 2)
        self.assertEqual(cli("revoke", "a", "b", listen=h.listen).returncode, 2)
        self.assertFalse(os.path.exists(h.key + ".revoked"))

    def test_what_cannot_be_stored_is_out_all_the_same(self):
        state = tempdir()
        path = os.path.join(state, "revoked")
        h = self.listed(env={"STATE_DIRECTORY": state})
        s = self.join(h, 1).joined()
        c = self.conn(s, hello=True)
        write_file(path, "nonsense\n")
        said = self.revoke(h, 1, rc=1)
        self.assertIn(path, said)
        self.assertIn("line 1", said)
        self.assertIn("until the next start only", said)
        self.assertTrue(c.closed(3))
        self.assertEqual(read_file(path), b"nonsense\n")
        # A later one stores both.
        write_file(path, "")
        self.revoke(h, 0)
        self.assertEqual(sorted(read_file(path).decode().splitlines()), sorted(self.names))

    def test_a_bad_file_of_revoked_keys_stops_the_start(self):
        state = tempdir()
        write_file(os.path.join(state, "revoked"), self.names[0] + "\nx\n")
        for options in ([], ["--allow", self.names[0]]):
            got = self.tunnel_hub(self.r, *options, start=False,
                                  env={"STATE_DIRECTORY": state}).run()
            self.assertEqual(got.returncode, 78)
            self.assertRegex(got.stderr, rb"(?m)^zmqcat: revoked keys /\S+/revoked: line 2 is no ")

    def test_a_directory_as_list_stops_the_start(self):
        for make in (os.mkdir, lambda path: os.symlink(path, path)):
            path = os.path.join(tempdir(), "allow")
            make(path)
            got = self.tunnel_hub(self.r, "--allow-file", path, start=False).run()
            self.assertEqual(got.returncode, 78, got.stderr)
            self.assertRegex(got.stderr, rb"(?m)^zmqcat: --allow-file \S*%s\S*: cannot be "
                             % path.encode())

    def test_the_token_does_not_take_the_place_of_the_key(self):
        h = self.listed(start=False)
        for key in ("x", "./x"):
            args = ["--listen", h.listen, "--derp-map", self.r.map, "--allow-file", self.path,
                    "--key-file", os.path.join(h.dir, "x"), "--token-out",
                    os.path.join(h.dir, key)]
            for _ in range(2):
                got = h.run(args)
                self.assertEqual(got.returncode, 78, got.stderr)
                self.assertRegex(got.stderr, rb"(?m)^zmqcat: --token-out .*key")
            self.assertIn(b"privkey", read_file(os.path.join(h.dir, "x")))

    def test_revoked_keys_without_a_list_bring_a_warning(self):
        state = tempdir()
        write_file(os.path.join(state, "revoked"), self.names[0] + "\n")
        h = self.tunnel_hub(self.r, env={"STATE_DIRECTORY": state})
        self.assertIn("no list of allowed keys is on", h.logged())

    def test_reload(self):
        h = self.listed(names=self.names[:1])
        a, b = self.join(h, 0).joined(), self.join(h, 1)
        c = self.conn(a, hello=True)
        wait_for(lambda: self.names[1] + " is not on the allow list: add it" in h.logged())
        # A bad file keeps the old list, by the verb and by the signal.
        for text, why in (("# x\nnodekey:1\n", "line 2"), (None, "No such file")):
            if text is None:
                os.unlink(self.path)
            else:
                write_file(self.path, text)
            got = cli("reload", listen=h.listen)
            self.assertEqual((got.returncode, got.stdout), (1, b""))
            self.assertRegex(got.stderr.decode(),
                             r"\Azmqcat: reload: --allow-file %s: .*%s.*\n\Z" % (self.path, why))
            before = h.logged().count("lists from before stay")
            h.proc.send_signal(signal.SIGHUP)
            wait_for(lambda: h.logged().count("lists from before stay") > before)
            c.sync()
        # A good one is used.
        write_file(self.path, self.list_of(self.names[1]))
        got = cli("reload", listen=h.listen)
        self.assertEqual((got.returncode, got.stdout, got.stderr), (0, b"", b""))
        self.assertTrue(c.closed(3))
        b.joined(15)
        self.assertEqual(h.logged().count(self.names[1] + " is not on"), 1)

    def test_a_list_that_an_editor_of_windows_wrote(self):
        h = self.listed(names=[])
        s = self.join(h, 0)
        for path, text in ((h.key + ".revoked", "# x"), (self.path, self.names[0])):
            write_file(path, b"\xef\xbb\xbf" + text.encode() + b"\r\n")
        got = cli("reload", listen=h.listen)
        self.assertEqual((got.returncode, got.stderr), (0, b""))
        s.joined(15)

    def test_a_bad_file_of_revoked_keys_keeps_both_lists(self):
        h = self.listed()
        c = self.conn(self.join(h, 0).joined(), hello=True)
        self.revoke(h, 1)
        write_file(h.key + ".revoked", self.names[1] + "\n\n?\n")
        write_file(self.path, "")
        got = cli("reload", listen=h.listen)
        self.assertEqual(got.returncode, 1)
        self.assertIn(b"revoked: line 3", got.stderr)
        c.sync()
        self.assertEqual(len(h.status()["tunnel"]["peers"]), 1)


class Reload(Case):
    """reload at a spoke, and where there is nothing to read."""

    def setUp(self):
        self.r = self.relay()

    def test_token_file(self):
        a, b = self.tunnel_hub(self.r), self.tunnel_hub(self.r)
        path = write_file(os.path.join(tempdir(), "token"), a.token())
        s = self.spoke(path).joined()
        old = self.conn(s, hello=True)
        self.assertEqual(cli("reload", listen=s.listen).returncode, 0)  # the same
        old.sync()
        for text in ("", "nonsense", a.token()[:-20], a.token() + "\n" + a.token()):
            write_file(path, text)
            got = cli("reload", listen=s.listen)
            self.assertEqual((got.returncode, got.stdout), (1, b""))
            self.assertRegex(got.stderr.decode(),
                             r"\Azmqcat: reload: --token-file \"%s\": .+\n\Z" % path)
            old.sync()
        os.unlink(path)
        self.assertEqual(cli("reload", listen=s.listen).returncode, 1)
        old.sync()
        self.assertEqual(s.logged().count("from before stays"), 5)
        write_file(path, b.token())
        self.assertEqual(cli("reload", listen=s.listen).returncode, 0)
        self.assertTrue(old.closed())
        s.joined()
        self.assertEqual(s.status()["tunnel"]["peers"][0]["nodekey"],
                         b.status()["tunnel"]["nodekey"])

    def test_a_token_that_cannot_be_joined_changes_nothing(self):
        """That of the hub whose key file the spoke has."""
        h, own = self.tunnel_hub(self.r), self.tunnel_hub(self.r)
        path = write_file(os.path.join(tempdir(), "token"), h.token())
        token = own.token()
        own.stop()
        s = self.spoke(path, start=False)
        shutil.copy(own.key, s.key)
        s.start()
        c = self.conn(s.joined(), hello=True)
        write_file(path, token)
        for _ in range(2):
            got = cli("reload", listen=s.listen)
            self.assertEqual(got.returncode, 1)
            self.assertIn(b"it cannot be used", got.stderr)
            c.sync()
        self.assertEqual(s.logged().count("it cannot be used"), 2)

    def test_a_late_token_is_told(self):
        path = os.path.join(tempdir(), "late")
        s = self.spoke(path)
        got = cli("reload", listen=s.listen)
        self.assertEqual(got.returncode, 1)
        self.assertIn(b"not there yet", got.stderr)

    def test_credential(self):
        h = self.tunnel_hub(self.r)
        h.token()
        s = self.spoke(None, env={"CREDENTIALS_DIRECTORY": h.dir}).joined()
        got = cli("reload", listen=s.listen)
        self.assertEqual(got.returncode, 1)
        self.assertIn(b"restart", got.stderr)

    def test_hubs_without_lists(self):
        for h in (self.hub(), self.tunnel_hub(self.r)):
            got = cli("reload", listen=h.listen)
            self.assertEqual((got.returncode, got.stdout, got.stderr), (0, b"", b""))

    def test_revoke_where_no_spokes_come_in(self):
        for d in (self.hub(), self.spoke(self.tunnel_hub(self.r))):
            got = cli("revoke", "nodekey:" + 64 * "1", listen=d.listen)
            self.assertEqual((got.returncode, got.stdout), (1, b""))
            self.assertRegex(got.stderr, rb"\Azmqcat: revoke: no spokes come in here: .*--local")


if __name__ == "__main__":
    harness.main()
