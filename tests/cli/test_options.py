"""The command line (field case H20): options anywhere, addresses in every form, exit codes."""
import os, socket, subprocess, sys, threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness
from harness import CLI, cli, tempdir

VERBS = ("put", "take", "reserve", "work", "ready", "pub", "sub", "req", "ping", "stat", "ls",
         "peek", "purge", "mv", "bind", "unbind", "status", "top", "serve", "trace", "bench",
         "completion")


class Options(harness.Case):
    def test_h20_options_before_between_and_after_arguments(self):
        hub = self.hub()
        for args in (("put", "--listen", hub.listen, "jobs", "a"),
                     ("put", "jobs", "--listen", hub.listen, "a"),
                     ("put", "jobs", "a", "--listen", hub.listen),
                     ("put", "jobs", "a", "--listen=" + hub.listen),
                     ("put", "jobs", "a", "-l", hub.listen),
                     ("put", "jobs", "a", "-l" + hub.listen)):
            for env in ({}, {"POSIXLY_CORRECT": "1"}):
                with self.subTest(args, env=env):
                    self.assertEqual(cli(*args, env=env).returncode, 0)
                    got = cli("take", "jobs", "--wait", "0", listen=hub.listen)
                    self.assertEqual((got.returncode, got.stdout), (0, b"a\n"))

    def test_h20_double_dash_ends_options(self):
        hub = self.hub()
        for args, want in ((("jobs", "--", "--x"), b"--x\n"), (("--", "jobs", "-x"), b"-x\n"),
                           (("jobs", "--", "-x", "--", "y"), b"-x -- y\n"),
                           (("jobs", "--", "--help"), b"--help\n")):
            with self.subTest(args):
                self.assertEqual(cli("put", *args, listen=hub.listen).returncode, 0)
                self.assertEqual(cli("take", "jobs", "--wait", "0", listen=hub.listen).stdout,
                                 want)

    def test_h20_json_argument_and_dash(self):
        hub = self.hub()
        for text in ('{"a":1}', "-", "a\tb", "\u00e9\u2028", "", " "):
            with self.subTest(text):
                got = cli("put", "jobs", text, "--listen", hub.listen)
                self.assertEqual(got.returncode, 0, got.stderr)
                self.assertEqual(cli("take", "jobs", listen=hub.listen).stdout,
                                 text.encode() + b"\n")

    def test_h20_unknown_options_exit_2_before_anything_is_done(self):
        hub = self.hub()
        for verb, options in (
                ("put", ("-x", "-5", "--zzz", "--wait=1", "--count=1", "--lease=1")),
                ("take", ("--lines", "--ack", "--lease=1", "--file=x", "-H=a")),
                ("sub", ("--if-consumer", "--follow", "--ack")),
                ("work", ("--json", "--file=x")), ("peek", ("--wait=1",)), ("bind", ("--json",)),
                ("purge", ("--count=1",)), ("mv", ("--wait=1",)), ("top", ("--name=x",)),
                ("bench", ("--wait=1",)), ("completion", ("--listen=x",)),
                ("reserve", ("--count=1", "--raw")), ("req", ("--wait=1", "--id=x", "--retry=1")),
                ("ping", ("--control=x", "-vx")), ("pub", ("--delay=1", "--lines")),
                ("stat", ("--all",)), ("ls", ("-a",)), ("status", ("--name=x",)),
                ("trace", ("--json",)), ("serve", ("--zzz", "--access=x", "--relay=x")),
                ("join", ("--zzz", "--outbox=x", "--mailbox=x")), ("keygen", ("--wait=1", "--key")),
                ("nodekey", ("--hub",)), ("token", ("--json",)), ("rotate", ("--name=x",))):
            for option in options:
                with self.subTest(verb + " " + option):
                    got = cli(verb, "jobs", "x", option, listen=hub.listen)
                    self.assertEqual((got.returncode, got.stdout), (2, b""), got.stderr)
                    self.assertIn(b"option", got.stderr)
        self.assertEqual(cli("ls", listen=hub.listen).stdout, b"")

    def test_unknown_verbs_exit_2(self):
        for verb in ("check", "help", "version", "PUT", "", "-v",
                     "--listen=x", "a\x1b[2J\nb"):
            with self.subTest(verb):
                got = cli(verb)
                self.assertEqual((got.returncode, got.stdout), (2, b""))
                self.assertIn(b"zmqcat --help", got.stderr)
                self.assertNotIn(b"\x1b", got.stderr)
                self.assertEqual(got.stderr.count(b"\n"), 2)

    def test_missing_and_surplus_arguments_exit_2(self):
        for args in (("put",), ("take",), ("reserve",), ("ready",), ("pub",), ("req",), ("trace",),
                     ("trace", "maybe"), ("take", "a", "b"), ("ping", "a"), ("ls", "a", "b"),
                     ("stat", "a", "b"), ("sub", "a", "b"), ("status", "a"),
                     ("trace", "on", "off"), ("put", "--listen"), ("put", "a", "-H"),
                     ("put", "a", "x", "--file", "/etc/hostname")):
            with self.subTest(args):
                got = cli(*args, listen="unix:///nonexistent/socket")
                self.assertEqual((got.returncode, got.stdout), (2, b""), got.stderr)
                self.assertIn(b"--help", got.stderr)

    def test_bad_values_exit_2_and_name_themselves(self):
        for args in (("take", "a", "--wait", "soon"), ("take", "a", "--wait=-1"),
                     ("take", "a", "--count", "0"), ("take", "a", "--count", "x"),
                     ("take", "a", "--count=-1"), ("put", "a", "x", "--delay", "1y"),
                     ("put", "a", "x", "-H", "novalue"), ("put", "a", "x", "-H", "=v"),
                     ("req", "a", "x", "--retries", "-1"), ("req", "a", "x", "--timeout", ""),
                     ("reserve", "a", "--lease", "5x")):
            with self.subTest(args):
                got = cli(*args, listen="unix:///nonexistent/socket")
                self.assertEqual((got.returncode, got.stdout), (2, b""), got.stderr)
                self.assertIn(b"want ", got.stderr)

    def test_help_of_every_verb(self):
        whole = cli("--help")
        self.assertEqual((whole.returncode, whole.stderr), (0, b""))
        for verb in VERBS:
            for flag in ("--help", "-h"):
                got = cli(verb, flag)
                self.assertEqual((got.returncode, got.stderr), (0, b""), verb)
                self.assertTrue(got.stdout.startswith(b"usage: zmqcat " + verb.encode()))
            self.assertIn(b"\n  %s " % verb.encode(), whole.stdout)
        self.assertEqual(cli().stdout, whole.stdout)
        self.assertLess(max(map(len, whole.stdout.splitlines())), 101)

    def test_closed_standard_streams_do_not_become_the_socket(self):
        hub = self.hub()
        cli("put", "jobs", "x", listen=hub.listen)
        got = subprocess.run(["sh", "-c", '"$0" take jobs --listen "$1" >&-', CLI, hub.listen],
                             stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=20)
        self.assertEqual(got.returncode, 1)
        self.assertIn(b"standard output", got.stderr)
        got = subprocess.run(["sh", "-c", '"$0" put jobs --listen "$1" <&-', CLI, hub.listen],
                             capture_output=True, timeout=20)
        self.assertEqual(got.returncode, 1)
        self.assertIn(b"standard input", got.stderr)
        got = subprocess.run(["sh", "-c", '"$0" take jobs --listen "$1" <&- 2>&-', CLI,
                              hub.listen], stdout=subprocess.PIPE, timeout=20)
        self.assertEqual((got.returncode, got.stdout), (0, b"x\n"))

    def test_failures_name_what_and_why_without_control_characters(self):
        hub = self.hub()
        got = cli("take", "a\x1b[31m\nzmqcat: forged", "--wait", "0", listen=hub.listen)
        self.assertEqual(got.returncode, 3)
        self.assertEqual(got.stderr.count(b"\n"), 1)
        self.assertNotIn(b"\x1b", got.stderr)
        got = cli("put", b"a\xff", "x", listen=hub.listen)
        self.assertEqual(got.returncode, 2)
        self.assertIn(b"UTF-8", got.stderr)
        got = cli("put", "n" * 1025, "x", listen=hub.listen)
        self.assertEqual(got.returncode, 1)
        got = cli("put", "$sys", "x", listen=hub.listen)
        self.assertEqual(got.returncode, 4)


class Addresses(harness.Case):
    def test_h20_every_form_in_the_variable_and_the_option(self):
        hub = self.hub("--listen", "tcp://127.0.0.1:0", "--listen", "tcp://[::1]:0")
        ports = self.ports(hub)
        v4, v6 = ports["127.0.0.1"], ports["::1"]
        forms = ["unix://" + hub.path, hub.path, "./s", "unix://./s", "tcp://127.0.0.1:%d" % v4,
                 "127.0.0.1:%d" % v4, "localhost:%d" % v4, "[::1]:%d" % v6,
                 "tcp://[::1]:%d" % v6]
        for form in forms:
            with self.subTest(form):
                got = cli("ping", listen=form, cwd=hub.dir)
                self.assertEqual((got.returncode, got.stdout), (0, b"pong\n"), got.stderr)
                got = cli("ping", "--listen", form, cwd=hub.dir,
                          env={"ZMQCAT_LISTEN": "unix:///nonexistent"})
                self.assertEqual((got.returncode, got.stdout), (0, b"pong\n"), got.stderr)

    def ports(self, hub):
        """Port of each TCP listener, from the kernel."""
        found = {}
        inodes = {os.readlink("/proc/%d/fd/%s" % (hub.proc.pid, fd)).strip("socket:[]")
                  for fd in os.listdir("/proc/%d/fd" % hub.proc.pid)}
        for table, name in (("tcp", "127.0.0.1"), ("tcp6", "::1")):
            with open("/proc/%d/net/%s" % (hub.proc.pid, table)) as f:
                for line in list(f)[1:]:
                    fields = line.split()
                    if fields[3] == "0A" and fields[9] in inodes:
                        found[name] = int(fields[1].rsplit(":", 1)[1], 16)
        self.assertEqual(len(found), 2)
        return found

    def test_unusable_addresses_exit_78_and_name_themselves(self):
        for text in ("nonsense", "unix://", "tcp://", "tcp://127.0.0.1", "127.0.0.1:99999",
                     "127.0.0.1:x", "http://localhost:80/", "[::1]"):
            for args, env in ((("--listen", text), {}), ((), {"ZMQCAT_LISTEN": text})):
                with self.subTest(text, env=env):
                    got = cli("put", "q", "x", *args, env=env)
                    self.assertEqual((got.returncode, got.stdout), (78, b""), got.stderr)
                    self.assertIn(text.encode(), got.stderr)
                    self.assertIn(b"ZMQCAT_LISTEN" if env else b"--listen", got.stderr)

    def test_h20_long_paths_are_refused_by_name_and_never_cut(self):
        d = tempdir()
        for length in (108, 200):
            path = os.path.join(d, "x" * (length - len(d) - 1))
            self.assertEqual(len(path), length)
            # What a cut path would reach.
            cut = socket.socket(socket.AF_UNIX)
            cut.bind(path[:107])
            cut.listen()
            self.addCleanup(cut.close)
            for address in (path, "unix://" + path):
                got = cli("ping", "--listen", address)
                self.assertEqual(got.returncode, 78)
                self.assertIn(b"%d bytes" % length, got.stderr)
                self.assertIn(path.encode(), got.stderr)
                got = cli("serve", "--local", "--listen", address)
                self.assertEqual(got.returncode, 78)
                self.assertIn(b"107", got.stderr)
            cut.settimeout(0)
            with self.assertRaises(BlockingIOError):
                cut.accept()
            os.unlink(path[:107])
        path = os.path.join(d, "y" * (107 - len(d) - 1))
        hub = self.hub("--control", os.path.join(d, "c"), listen="unix://" + path, start=False)
        hub.path = path
        hub.start()
        self.assertEqual(cli("ping", "-l", path).stdout, b"pong\n")
        got = cli("status", "-l", path)
        self.assertEqual(got.returncode, 1)
        self.assertIn(b"--control", got.stderr)

    def test_what_does_not_answer_exits_1_and_names_the_address(self):
        d = tempdir()
        dead = socket.socket(socket.AF_UNIX)
        dead.bind(os.path.join(d, "dead"))
        dead.close()
        with open(os.path.join(d, "file"), "w"):
            pass
        closed = socket.socket()
        closed.bind(("127.0.0.1", 0))
        for address in (os.path.join(d, "dead"), os.path.join(d, "file"), os.path.join(d, "none"),
                        "127.0.0.1:%d" % closed.getsockname()[1], "tcp://host.invalid:5"):
            with self.subTest(address):
                got = cli("ping", "--listen", address)
                self.assertEqual((got.returncode, got.stdout), (1, b""))
                self.assertIn(address.split("//")[-1].encode(), got.stderr)
                if address[-4:] != "file" and "invalid" not in address:
                    self.assertIn(b": start a hub with `zmqcat serve --local`, or", got.stderr)
                    got = cli("status", "--control", address)
                    self.assertEqual((got.returncode, got.stdout), (1, b""))
                    self.assertIn(b": start a hub, or name its control socket with --control",
                                  got.stderr)
        closed.close()

    def test_who_does_not_speak_the_protocol_is_left(self):
        d = tempdir()
        path = os.path.join(d, "s")
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path)
            server.listen()

            def answer():
                for reply in (b"HTTP/1.1 400 Bad Request\r\n\r\n", b""):
                    c, _ = server.accept()
                    c.recv(100)
                    c.sendall(reply)
                    c.close()
            thread = threading.Thread(target=answer)
            thread.start()
            got = cli("ping", "-l", path)
            self.assertEqual(got.returncode, 1)
            self.assertIn(b"does not speak", got.stderr)
            got = cli("ping", "-l", path)
            self.assertEqual(got.returncode, 1)
            self.assertIn(b"closed", got.stderr)
            thread.join()


if __name__ == "__main__":
    harness.main()
