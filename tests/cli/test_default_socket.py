"""Which socket the command uses when none is named, and whom it trusts there (field case H14).

As root, the command runs as a user id that nobody has, in a mount namespace of its own with an
empty /run, so that no real socket is met and none is made.
"""
import os, shutil, socket, subprocess, sys, threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness
from harness import CLI, SLOW, read_file, tempdir

# Another run of these tests at the same time has other ids.
CALLER = 20000 + 3 * os.getpid() % 30000
STRANGER = CALLER + 1
DEFAULT = "/tmp/zmqcat-%d.sock" % CALLER
SYSTEM = "/run/zmqcat/zmqcat.sock"


def can_isolate():
    return os.getuid() == 0 and shutil.which("unshare") and shutil.which("setpriv") and \
        subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode == 0


class Squatter:
    """Listens as another user at a path; keeps what clients send."""

    def __init__(self, path, uid):
        self.path, self.got, self.accepted = path, b"", 0
        self.sock = socket.socket(socket.AF_UNIX)
        # listen() decides whose credentials a client sees: it is called by a child of that user,
        # on the socket that we go on with.
        self.sock.bind(path)
        os.chmod(path, 0o666)
        pid = os.fork()
        if pid == 0:
            try:
                os.setgroups([])
                os.setresgid(uid, uid, uid)
                os.setresuid(uid, uid, uid)
                self.sock.listen()
                os._exit(0)
            finally:
                os._exit(1)
        if os.waitpid(pid, 0)[1] != 0:
            raise AssertionError("the child could not listen")
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while True:
            try:
                c, _ = self.sock.accept()
            except OSError:
                return
            self.accepted += 1
            c.settimeout(5)
            try:
                self.got += c.recv(1000)
            except OSError:
                pass
            c.close()

    def close(self):
        self.sock.shutdown(socket.SHUT_RDWR)
        self.sock.close()
        self.thread.join()
        os.unlink(self.path)


class DefaultSocket(harness.Case):
    def setUp(self):
        if not can_isolate():
            harness.skip("needs root and mount namespaces to be several users")
        if os.path.lexists(DEFAULT) or os.path.lexists(DEFAULT + ".ctl"):
            harness.skip(DEFAULT + " belongs to somebody")
        # The caller must be able to start the command.
        self.dir = tempdir()
        os.chmod(self.dir, 0o755)
        self.cli = os.path.join(self.dir, "zmqcat")
        shutil.copy(CLI, self.cli)
        os.chmod(self.cli, 0o755)

    def squat(self, path, uid=STRANGER):
        s = Squatter(path, uid)
        self.addCleanup(s.close)
        return s

    def z(self, *args, system=None, more="", **env):
        """The command as CALLER; `system`: a socket that stands at the system's path; `more`: what
        root does before it, in the mount namespace of the command."""
        prepare = "mount -t tmpfs none /run && chmod 755 /run" + more
        if system:
            prepare += " && mkdir /run/zmqcat && ln -s %s %s" % (system, SYSTEM)
        drop = "exec setpriv --reuid %d --regid %d --clear-groups \"$@\"" % (CALLER, CALLER)
        environ = {k: v for k, v in os.environ.items() if k != "ZMQCAT_LISTEN"}
        return subprocess.run(["unshare", "-m", "sh", "-c", prepare + " && " + drop, "sh",
                               self.cli, *args], stdin=subprocess.DEVNULL, capture_output=True,
                              env=dict(environ, **env), timeout=20 * SLOW)

    def test_no_hub_says_what_was_tried_and_what_to_do(self):
        got = self.z("ping")
        self.assertEqual((got.returncode, got.stdout), (1, b""))
        for text in (SYSTEM, DEFAULT, "zmqcat serve --local"):
            self.assertIn(text.encode(), got.stderr)

    def test_h14_a_strangers_socket_is_refused_and_gets_nothing(self):
        squatter = self.squat(DEFAULT)
        for args in (("put", "secret", "password"), ("ping",), ("sub",)):
            got = self.z(*args)
            self.assertEqual((got.returncode, got.stdout), (1, b""))
            self.assertIn(DEFAULT.encode(), got.stderr)
            self.assertIn(b"uid %d" % STRANGER, got.stderr)
        harness.wait_for(lambda: squatter.accepted == 3)
        self.assertEqual(squatter.got, b"")

    def test_h14_a_strangers_control_socket_is_refused(self):
        squatter = self.squat(DEFAULT + ".ctl")
        got = self.z("status")
        self.assertEqual((got.returncode, got.stdout), (1, b""))
        self.assertIn(b"uid %d" % STRANGER, got.stderr)
        harness.wait_for(lambda: squatter.accepted == 1)
        self.assertEqual(squatter.got, b"")

    def test_h14_a_link_to_a_strangers_socket_is_refused(self):
        path = os.path.join(self.dir, "s")
        squatter = self.squat(path)
        os.symlink(path, DEFAULT)
        self.addCleanup(os.unlink, DEFAULT)
        got = self.z("put", "secret", "password")
        self.assertEqual(got.returncode, 1)
        self.assertIn(b"uid %d" % STRANGER, got.stderr)
        harness.wait_for(lambda: squatter.accepted == 1)
        self.assertEqual(squatter.got, b"")

    def test_h14_a_file_or_dead_socket_in_the_place_is_named(self):
        with open(DEFAULT, "w"):
            pass
        self.addCleanup(os.unlink, DEFAULT)
        os.chmod(DEFAULT, 0o666)
        got = self.z("ping")
        self.assertEqual(got.returncode, 1)
        self.assertIn(DEFAULT.encode(), got.stderr)

    def test_named_addresses_are_not_checked(self):
        squatter = self.squat(DEFAULT)
        for args, env in ((("--listen", DEFAULT), {}), ((), {"ZMQCAT_LISTEN": DEFAULT})):
            before = len(squatter.got)
            self.assertEqual(self.z("ping", *args, **env).returncode, 1)
            self.assertIn(b"hello", squatter.got[before:])

    def test_a_socket_of_others_says_who_may_use_it(self):
        for mode, who, other in ((0o660, b"join that group", b"only its owner"),
                                 (0o600, b"only its owner", b"group")):
            path = self.squat(os.path.join(self.dir, "%o" % mode)).path
            os.chmod(path, mode)
            for got in (self.z("ping", system=path), self.z("ping", "--listen", path),
                        self.z("status", "--control", path)):
                with self.subTest(got.args):
                    self.assertEqual((got.returncode, got.stdout), (1, b""))
                    self.assertIn(b"Permission denied: only", got.stderr)
                    self.assertIn(who, got.stderr)
                    self.assertNotIn(other, got.stderr)

    def test_roots_and_the_callers_own_hub_are_used(self):
        hub = self.hub("--socket-mode", "0666", listen="unix://" + DEFAULT, start=False)
        hub.path = DEFAULT
        hub.start()
        self.assertEqual(self.z("ping").stdout, b"pong\n")
        hub.stop()
        own = self.squat(DEFAULT, CALLER)
        self.assertEqual(self.z("ping").returncode, 1)  # it does not answer, but it was asked
        self.assertIn(b"hello", own.got)

    def test_h14_a_socket_of_the_service_user_is_used(self):
        """That user is zmqcat; a uid that any other name has is a stranger's."""
        squatter = self.squat(os.path.join(self.dir, "sys"))
        others = [l for l in read_file("/etc/passwd").splitlines() if not l.startswith(b"zmqcat")]
        for name, trusted in ((b"zmqcat", True), (b"zmqcatx", False)):
            lines = others + [b"%s:x:%d:%d::/:/bin/false\n" % (name, STRANGER, STRANGER)]
            passwd = harness.write_file(self.dir + "/passwd", b"\n".join(lines), 0o644)
            got = self.z("ping", system=squatter.path,
                         more=" && mount --bind %s /etc/passwd" % passwd)
            self.assertEqual(got.returncode, 1)  # it does not answer, but it was asked
            self.assertEqual((b"hello" in squatter.got, b"uid %d" % STRANGER in got.stderr),
                             (trusted, not trusted), got.stderr)
            squatter.got = b""

    def test_token_of_a_system_hub_that_does_not_answer(self):
        """`token` reads its file, if it may; `rotate`, and who names an address, ask a hub."""
        file = os.path.join(self.dir, "t")
        for text, mode, args, want in (
                (b"tcAAAA\n", "644", ["token"], b"tcAAAA\n"), (b"tcB", "644", ["token"], b"tcB\n"),
                (b"tcAAAA\n", "600", ["token"], None), (b"\n", "644", ["token"], None),
                (b"", "644", ["token"], None), (b"tcAAAA\n", "644", ["rotate"], None),
                (b"tcAAAA\n", "644", ["token", "--listen", self.dir + "/s"], None),
                (b"tcAAAA\n", "644", ["token", "--control", self.dir + "/s"], None)):
            with self.subTest(args=args, text=text, mode=mode):
                harness.write_file(file, text)
                got = self.z(*args, more=" && mount -t tmpfs none /var/lib && mkdir "
                             "/var/lib/zmqcat && install -m %s %s /var/lib/zmqcat/token"
                             % (mode, file))
                self.assertEqual((got.returncode, got.stdout), (1, b"") if want is None
                                 else (0, want), got.stderr)
                named = self.dir + "/s" if len(args) > 1 else "/run/zmqcat/control.sock"
                self.assertEqual(named.encode() in got.stderr, want is None, got.stderr)

    def test_the_systems_socket_comes_first(self):
        system = self.hub("--socket-mode", "0666")
        os.chmod(system.dir, 0o755)
        users = self.hub("--socket-mode", "0666", listen="unix://" + DEFAULT, start=False)
        users.path = DEFAULT
        users.start()
        self.assertEqual(self.z("put", "jobs", "x", system=system.path).returncode, 0)
        c = self.conn(system)
        self.assertEqual(c.call(op="stat", id="s", name="jobs")["result"]["depth"], 1)

    def test_a_strangers_socket_at_the_systems_place_is_skipped_with_a_warning(self):
        squatter = self.squat(os.path.join(self.dir, "sys"))
        hub = self.hub("--socket-mode", "0666", listen="unix://" + DEFAULT, start=False)
        hub.path = DEFAULT
        hub.start()
        got = self.z("ping", system=squatter.path)
        self.assertEqual((got.returncode, got.stdout), (0, b"pong\n"))
        self.assertIn(b"warning", got.stderr)
        self.assertIn(SYSTEM.encode(), got.stderr)
        self.assertIn(b"uid %d" % STRANGER, got.stderr)
        self.assertEqual(squatter.got, b"")

    def test_both_strangers_are_both_named(self):
        one = self.squat(os.path.join(self.dir, "sys"))
        two = self.squat(DEFAULT, STRANGER + 1)
        got = self.z("ping", system=one.path)
        self.assertEqual((got.returncode, got.stdout), (1, b""))
        for text in (SYSTEM, DEFAULT, "uid %d" % STRANGER, "uid %d" % (STRANGER + 1)):
            self.assertIn(text.encode(), got.stderr)
        self.assertEqual(one.got + two.got, b"")


if __name__ == "__main__":
    harness.main()
