"""Files, keys, relays and limits that cannot be used: one line that says why, and the exit code."""
import json, os, socket, subprocess, sys, threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness
from harness import Case, cli, plain, read_file, tempdir, wait_for, write_file

NOBODY = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]


class TokenFiles(Case):
    def refused(self, path, *why, **more):
        got = self.spoke(path, start=False, **more).run()
        said = [l for l in got.stderr.decode().splitlines() if "key file" not in l]
        self.assertEqual((got.returncode, len(said), got.stdout), (78, 1, b""), said)
        for part in why:
            self.assertIn(part, said[0])

    def token_file(self, text, mode=0o600):
        path = write_file(os.path.join(tempdir(), "t"), text)
        os.chmod(path, mode)
        return path

    def test_what_is_wrong_with_the_text(self):
        for text, why in (("nodekey:" + "0" * 64, "a node key, not a token"),
                          ("psk:" + "0" * 64, "a pre-shared key, not a token"),
                          ("tcAAAA", "another kind or version"), ("tcoA", "lacks the hub's key"),
                          ("tc AAAA", "white space inside"), (b"tcAA\xc2\xa0AA", "character 5"),
                          ("tcA", "cut"), ("\ttc\n", "was cut"), (b"tc\0AAAA", "character 3")):
            with self.subTest(text):
                self.refused(self.token_file(text), why)

    def test_what_is_no_file_to_read(self):
        self.refused(tempdir(), "cannot be read", "directory")
        fifo = os.path.join(tempdir(), "fifo")
        os.mkfifo(fifo)
        self.refused(fifo, "empty")  # nobody writes
        writer = os.open(fifo, os.O_RDWR)
        try:
            self.refused(fifo, "timed out")  # somebody who does not
        finally:
            os.close(writer)

    def test_a_fifo_that_is_written_in_time(self):
        fifo = os.path.join(tempdir(), "fifo")
        os.mkfifo(fifo)
        writer = os.open(fifo, os.O_RDWR)
        threading.Timer(0.5, lambda: (os.write(writer, b"psk:1\n"), os.close(writer))).start()
        self.refused(fifo, "pre-shared key")

    def test_what_may_not_be_read(self):
        if os.getuid() != 0:
            self.skipTest("only root can become somebody else")
        path = self.token_file("tcAAAA")
        os.chmod(os.path.dirname(path), 0o755)
        home = tempdir()
        os.chown(home, 65534, 65534)
        s = self.spoke(path, start=False, wrapper=NOBODY)
        s.key, s.listen = home + "/k", "unix://" + home + "/s"
        got = s.run()
        self.assertEqual(got.returncode, 78, got.stderr)
        self.assertIn(b"cannot be opened: Permission denied", got.stderr)

    def test_one_that_all_can_read_is_warned_about(self):
        got = self.spoke(self.token_file("tcAAAA", 0o644), start=False).run()
        self.assertEqual(got.returncode, 78)
        self.assertIn(b"chmod 600", got.stderr)

    def test_join_without_a_token(self):
        env = {k: v for k, v in os.environ.items() if k != "CREDENTIALS_DIRECTORY"}
        for args in ([], ["--listen", tempdir() + "/s"]):
            got = subprocess.run([harness.CLI, "join"] + args, stdin=subprocess.DEVNULL,
                                 capture_output=True, env=env, timeout=20 * harness.SLOW)
            self.assertEqual((got.returncode, got.stderr.count(b"\n")), (78, 1), got.stderr)
            self.assertIn(b"--token-file", got.stderr)
        self.assertEqual(cli("join", "tcA", "tcB").returncode, 2)
        path = self.token_file("tcA")
        self.assertEqual(cli("join", "tcA", "--token-file", path).returncode, 2)


class Keys(Case):
    def test_keygen_and_nodekey(self):
        d = tempdir()
        for args, code, why in ((["keygen"], 2, "missing"), (["nodekey"], 2, "missing"),
                                (["keygen", d + "/no/k"], 1, "create that first"),
                                (["keygen", d], 1, "there already"),
                                (["keygen", d + "/"], 1, "name a file"),
                                (["keygen", "--hub", "--client", d + "/k"], 2, "not both"),
                                (["nodekey", d + "/none"], 1, "does not exist"),
                                (["nodekey", d], 78, "regular")):
            with self.subTest(args):
                got = cli(*args)
                self.assertEqual(got.returncode, code, got.stderr)
                self.assertIn(why, got.stderr.decode())
                self.assertEqual(got.stdout, b"")
        cli("keygen", d + "/k")

    def test_one_that_all_can_read(self):
        d = tempdir()
        cli("keygen", d + "/k")
        os.chmod(d + "/k", 0o644)
        got = cli("nodekey", d + "/k")
        self.assertEqual(got.returncode, 78)
        self.assertIn(b"chmod 600", got.stderr)
        for program in (self.spoke("/nonexistent", start=False), self.hub(start=False)):
            listen = ["--listen", program.listen, "--key-file", d + "/k"]
            self.assertEqual(program.run(listen + ["--token-file", d + "/k"]
                                         if isinstance(program, harness.Spoke) else listen)
                             .returncode, 78)


    def test_each_refusal_names_the_option(self):
        d = tempdir()
        token = write_file(d + "/t", "tcAAAA")
        write_file(d + "/empty", "")
        for path, why in ((d, "is not a regular file"), (d + "/empty", "is no key file"),
                          (d + "/no/k", "its directory does not exist"),
                          (d + "/t/k", "cannot be opened: Not a directory"),
                          (d + "/" + 300 * "k", "cannot be opened: File name too long"),
                          ("/" + 5000 * "k", "the path is too long")):
            for program, more in ((self.spoke(token, start=False), ["--token-file", token]),
                                  (self.hub(start=False), [])):
                with self.subTest(path[:100], program=type(program).__name__):
                    got = program.run(["--listen", program.listen, "--key-file", path] + more)
                    said = got.stderr.decode()
                    self.assertEqual((got.returncode, said.count("\n")), (78, 1), said)
                    self.assertIn('--key-file "' + path[:100], said)
                    self.assertIn('": ' + why, said)


class Credentials(Case):
    """What a unit has them hold when the file that it names is missing."""

    def run_spoke(self, **credentials):
        folder = tempdir()
        for name, text in credentials.items():
            write_file(os.path.join(folder, name), text)
        s = self.spoke(None, start=False, env={"CREDENTIALS_DIRECTORY": folder})
        if "key" in credentials:
            s.key = folder + "/key"
        got = s.run()
        said = [l for l in got.stderr.decode().splitlines() if not l.endswith(": made")]
        self.assertEqual((len(said), got.stdout), (1, b""), said)
        return got.returncode, said[0]

    def test_missing_token(self):
        for text, parts in (("missing:/run/secrets/to ken", ("/run/secrets/to ken does not exist",
                                                             "hub there")),
                            ("missing:/a\nb", ("/a\\x0ab does not exist",)),
                            ("missing:" + 6000 * "k", ("kkkk",)),
                            ("missing:", ("hub into /etc/credstore/token",))):
            code, said = self.run_spoke(token=text)
            self.assertEqual(code, 1, said)
            self.assertLess(len(said), 700)
            for part in parts + ("credential token: ", "LoadCredential=", "tokenFile"):
                self.assertIn(part, said)

    def test_no_other_token_is_like_that(self):
        """It is a token that cannot be used: from a file, an argument, or not quite the same."""
        for text in ("missing", "Missing:/x", " missing:/x", "/x", "tcmissing:/x"):
            code, said = self.run_spoke(token=text)
            self.assertEqual(code, 78, said)
            self.assertIn("credential token (LoadCredential= of the service; on NixOS tokenFile): ",
                          said)
        path = write_file(os.path.join(tempdir(), "t"), "missing:/run/secrets/x")
        for args in (["--token-file", path], ["missing:/run/secrets/x"]):
            got = cli("join", *args, "--listen", tempdir() + "/s", "--key-file", path + ".key")
            self.assertEqual(got.returncode, 78, got.stderr)
            self.assertNotIn(b"/run/secrets/x", got.stderr)

    def test_missing_key(self):
        code, said = self.run_spoke(token="tcAAAA", key="missing:/run/secrets/k")
        self.assertEqual(code, 1, said)
        for part in ("credential key: /run/secrets/k does not exist", "LoadCredential=", "keyFile"):
            self.assertIn(part, said)
        folder = tempdir()
        path = write_file(os.path.join(folder, "key"), "missing:/run/secrets/k", 0o600)
        for more, want in (({"CREDENTIALS_DIRECTORY": folder}, 1), ({}, 78)):
            h = self.hub(start=False, env=more)
            got = h.run(["--listen", h.listen, "--key-file", path])
            self.assertEqual((got.returncode, got.stderr.count(b"\n")), (want, 1), got.stderr)
            self.assertIn(b"/run/secrets/k does" if want == 1 else b"is no key file", got.stderr)


class Control(Case):
    def test_nobody_answers(self):
        d = tempdir()
        for verb in ("token", "rotate", "status"):
            got = cli(verb, listen=d + "/s")
            self.assertEqual(got.returncode, 1, verb)
            self.assertIn(d + "/s.ctl", got.stderr.decode())

    def test_a_local_hub_has_no_token(self):
        h = self.hub()
        for verb in ("token", "rotate"):
            got = cli(verb, listen=h.listen)
            self.assertEqual((got.returncode, got.stdout), (1, b""), got.stderr)

    def test_rotate_without_a_key_file_warns(self):
        h = self.tunnel_hub(self.relay(), start=False)
        arguments = h.arguments()
        at = arguments.index("--key-file")
        h.arguments = lambda: arguments[:at] + arguments[at + 2:]
        h.start()
        old = h.token()
        got = cli("rotate", listen=h.listen)
        self.assertEqual(got.returncode, 0, got.stderr)
        self.assertNotEqual(got.stdout.decode().strip(), old)
        self.assertIn("lasts until the next start", h.logged())


class Relays(Case):
    def test_a_certificate_that_is_not_the_pinned_one(self):
        r = self.relay()
        wrong = json.loads(read_file(r.map))
        for region in wrong["Regions"].values():
            for node in region["Nodes"]:
                node["CertName"] = "sha256-raw:" + "ab" * 32
        bad = write_file(os.path.join(tempdir(), "map"), json.dumps(wrong).encode())
        hub = self.tunnel_hub(r, "--derp-map", bad)
        wait_for(lambda: "certificate" in hub.logged(), 20)
        said = [l for l in hub.logged().splitlines() if "certificate" in l]
        self.assertIn("relay 127.0.0.1", said[0])
        self.assertFalse(os.path.exists(hub.token_file))
        self.assertNotIn("connected to the relay", hub.logged())


class Limits(Case):
    """libuv ends a process without a word when it lacks these."""

    def start(self, program, limit):
        argv = {"hub": [harness.HUB, "--local"], "spoke": [harness.SPOKE, "tcAAAA"]}[program]
        return subprocess.run(["sh", "-c", limit + '; exec "$@"', "sh"] + argv +
                              ["--listen", tempdir() + "/s"], stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=20 * harness.SLOW)

    def test_few_open_files(self):
        for program in ("hub", "spoke"):
            for n in (4, 7, 10, 31):
                got = self.start(program, "ulimit -n %d" % n)
                self.assertEqual((got.returncode, got.stderr.count(b"\n")), (78, 1), got)
                self.assertIn(b"too few open files", got.stderr)

    def test_forwarded_ports_leave_files_for_the_rest(self):
        """One spoke opens more connections than the hub may have files."""
        relay, seen = self.relay(), []
        with socket.create_server(("127.0.0.1", 0), backlog=200) as service, \
                socket.create_server(("127.0.0.1", 0)) as free:
            port, local = service.getsockname()[1], free.getsockname()[1]
            free.close()
            hub = self.tunnel_hub(relay, "--forward", str(port),
                                  wrapper=["sh", "-c", 'ulimit -n 64; exec "$@"', "sh"])
            spoke = self.spoke(hub, "--forward", "%d:%d" % (local, port)).joined()
            for _ in range(100):
                c = socket.create_connection(("127.0.0.1", local))
                self.addCleanup(c.close)
                seen.append(c)
            # The first ones stand; the last one finds no room.
            seen[-1].settimeout(10 * harness.SLOW)
            self.assertEqual(seen[-1].recv(1), b"")
            self.assertEqual(hub.status()["tunnel"]["state"], "online")
            self.conn(hub).sync()
            relay.stop()
            relay.start()
            spoke.joined()

    @plain("the sanitizers need more address space")
    def test_little_memory(self):
        for program in ("hub", "spoke"):
            got = self.start(program, "ulimit -s 8192; ulimit -v 45000")
            self.assertEqual((got.returncode, got.stderr.count(b"\n")), (78, 1), got)
            self.assertIn(b"too little memory", got.stderr)


if __name__ == "__main__":
    harness.main()
