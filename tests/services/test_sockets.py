#!/usr/bin/env python3
# quick
"""Sockets that the hub makes: who may open them, what they replace, what they leave alone.

# serial
"""
import os, shutil, signal, socket, stat, subprocess, sys, threading, time, unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
from harness import HUB, SLOW, Conn, wait_for

OTHER = 54321  # a uid and gid that nobody has
# The leak checker does not work under strace.
TRACED = dict(os.environ, ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0")


def umask(mode):
    return ["sh", "-c", "umask %s; exec \"$@\"" % mode, "-"]


def run(*options, timeout=10):
    """A hub that is expected to end by itself: exit status and log."""
    p = subprocess.run([HUB, "--local"] + list(options), stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=timeout * SLOW)
    return p.returncode, p.stderr.decode()


def dead_socket(path):
    s = socket.socket(socket.AF_UNIX)
    s.bind(path)
    s.close()


def reachable(path):
    """Somebody listens there: a socket is bound a moment before."""
    try:
        Conn(path).close()
        return True
    except ConnectionRefusedError:
        return False


def alive(path):
    """A hub answers there."""
    c = Conn(path)
    try:
        return c.call(op="hello", id="x")["id"] == "x"
    finally:
        c.close()


def mode(path):
    return stat.S_IMODE(os.lstat(path).st_mode)


class Case(unittest.TestCase):
    def setUp(self):
        self.dir = harness.tempdir()
        self.path = os.path.join(self.dir, "s")

    def hub(self, *options, **more):
        listen = more.pop("listen", "unix://" + self.path)
        h = harness.Hub(*options, listen=listen, start=False, **more)
        h.path = self.path
        self.addCleanup(h.__exit__)
        return h.start()

    def root(self):
        if os.getuid() != 0:
            harness.skip("needs root")


class Modes(Case):
    def test_default_is_for_the_owner_whatever_the_umask(self):
        for mask in ("000", "777", "022"):
            with self.subTest(mask):
                h = self.hub(wrapper=umask(mask))
                harness.wait_for(lambda: os.path.exists(self.path + ".ctl"))
                self.assertEqual((mode(self.path), mode(self.path + ".ctl")), (0o600, 0o600))
                self.assertEqual(h.stop(), 0)

    def test_group(self):
        self.root()
        for name in (str(OTHER), "daemon"):
            with self.subTest(name):
                h = self.hub("--socket-group", name, wrapper=umask("000"))
                st, ctl = os.lstat(self.path), os.lstat(self.path + ".ctl")
                self.assertEqual(mode(self.path), 0o660)
                self.assertEqual(st.st_gid, OTHER if name == str(OTHER) else 1)
                self.assertEqual((stat.S_IMODE(ctl.st_mode), ctl.st_gid), (0o600, os.getgid()))
                h.stop()

    def test_mode_overrides(self):
        self.root()
        self.hub("--socket-group", str(OTHER), "--socket-mode", "0606").stop()
        h = self.hub("--socket-mode", "666", wrapper=umask("077"))
        self.assertEqual(mode(self.path), 0o666)
        self.assertEqual(mode(self.path + ".ctl"), 0o600)
        h.stop()

    def test_bad_mode_and_group(self):
        for options in (("--socket-mode", "8"), ("--socket-mode", "1777"), ("--socket-mode", "rw"),
                        ("--socket-group", "no-such-group-x")):
            code, log = run("--listen", self.path, *options)
            self.assertEqual(code, 78, options)
            self.assertIn(options[1], log)
            self.assertFalse(os.path.exists(self.path))

    def test_nobody_gets_in_before_the_mode_is_final(self):
        """Another user knocks all the time while hubs with an open umask start and stop."""
        self.root()
        os.chmod(self.dir, 0o755)
        stop_r, stop_w = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.setgroups([])
            os.setgid(OTHER)
            os.setuid(OTHER)
            os.close(stop_w)
            os.set_blocking(stop_r, False)
            got_in = knocks = 0
            while True:
                s = socket.socket(socket.AF_UNIX)
                try:
                    s.connect(self.path)
                    got_in = 1
                except PermissionError:
                    knocks = 1
                except OSError:
                    pass
                s.close()
                try:
                    if os.read(stop_r, 1) == b"":
                        break
                except BlockingIOError:
                    pass
            os._exit(got_in * 2 + knocks)
        os.close(stop_r)
        try:
            for i in range(10):
                group = ["--socket-group", "1"] if i % 2 else []
                self.hub(*group, wrapper=umask("000")).stop()
        finally:
            os.close(stop_w)
            _, status = os.waitpid(pid, 0)
        self.assertEqual(os.waitstatus_to_exitcode(status), 1, "2, 3: got in; 0: met no socket")

    def test_order_of_calls(self):
        """Mode by the umask of the bind, then the group, then listen."""
        self.root()
        if shutil.which("strace") is None:
            harness.skip("no strace")
        trace = os.path.join(self.dir, "trace")
        calls = "trace=umask,bind,chown,lchown,fchownat,listen"
        strace = ["strace", "-f", "-o", trace, "-e", calls]
        h = self.hub("--socket-group", "1", wrapper=strace + umask("000"))
        with open("/proc/%d/task/%d/children" % (h.proc.pid, h.proc.pid)) as f:
            for child in f.read().split():
                os.kill(int(child), signal.SIGTERM)
        try:
            h.proc.wait(10 * SLOW)
        except subprocess.TimeoutExpired:
            self.fail("the traced hub does not stop")
        with open(trace) as f:
            lines = f.read().split("\n")
        first = next(i for i, l in enumerate(lines) if "bind(" in l and self.path + '"' in l)
        self.assertIn("umask(0117)", lines[first - 1])
        calls = [l.split(None, 1)[1].split("(")[0] for l in lines[first:] if l]
        self.assertLess(calls.index("lchown") if "lchown" in calls else calls.index("fchownat"),
                        calls.index("listen"))


class Replacing(Case):
    def test_dead_socket_of_ours_is_replaced(self):
        h = self.hub()
        h.kill()
        self.assertTrue(os.path.exists(self.path))
        h.start()
        self.assertTrue(alive(self.path))
        h.stop()
        self.assertFalse(os.path.exists(self.path))
        self.assertFalse(os.path.exists(self.path + ".ctl"))

    def test_live_socket_is_refused(self):
        h = self.hub()
        before = os.lstat(self.path).st_ino
        code, log = run("--listen", self.path)
        self.assertEqual(code, 1)
        self.assertIn("another hub is listening", log)
        self.assertIn(self.path, log)
        self.assertEqual(os.lstat(self.path).st_ino, before)
        self.assertTrue(alive(self.path))
        h.stop()

    def test_live_socket_with_a_full_queue_is_refused(self):
        """A server that is too busy to accept is not dead."""
        s = socket.socket(socket.AF_UNIX)
        s.bind(self.path)
        s.listen(0)
        knocking = []
        while True:
            c = socket.socket(socket.AF_UNIX)
            c.setblocking(False)
            knocking.append(c)
            try:
                c.connect(self.path)
            except BlockingIOError:
                break
        code, _ = run("--listen", self.path)
        self.assertEqual(code, 1)
        self.assertTrue(os.path.exists(self.path))
        for c in knocking + [s]:
            c.close()

    def test_datagram_socket_of_somebody_is_refused(self):
        s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        s.bind(self.path)
        code, log = run("--listen", self.path)
        self.assertEqual(code, 78)
        self.assertIn("not ours", log)
        self.assertTrue(os.path.exists(self.path))
        s.close()

    def test_other_files_are_refused_and_stay(self):
        target = os.path.join(self.dir, "target")
        live = os.path.join(self.dir, "live")
        with open(target, "w") as f:
            f.write("precious")
        s = socket.socket(socket.AF_UNIX)
        s.bind(live)
        s.listen()

        def file():
            shutil.copy(target, self.path)

        makers = {"file": file, "empty file": lambda: open(self.path, "w").close(),
                  "directory": lambda: os.mkdir(self.path), "fifo": lambda: os.mkfifo(self.path),
                  "link to a file": lambda: os.symlink(target, self.path),
                  "link to nothing": lambda: os.symlink("nowhere", self.path),
                  "link to a live socket": lambda: os.symlink(live, self.path)}
        for what, make in makers.items():
            with self.subTest(what):
                make()
                before = os.lstat(self.path)
                code, log = run("--listen", "unix://" + self.path)
                self.assertEqual(code, 78)
                self.assertIn(self.path, log)
                after = os.lstat(self.path)
                self.assertEqual((before.st_ino, before.st_mode, before.st_size),
                                 (after.st_ino, after.st_mode, after.st_size))
                if stat.S_ISDIR(before.st_mode):
                    os.rmdir(self.path)
                else:
                    os.unlink(self.path)
        with open(target) as f:
            self.assertEqual(f.read(), "precious")
        self.assertFalse(os.path.exists(self.path + ".ctl"))
        s.close()

    def test_control_path_taken(self):
        """The bus socket that was made a moment before goes away again."""
        open(self.path + ".ctl", "w").close()
        code, log = run("--listen", self.path)
        self.assertEqual(code, 78)
        self.assertIn(self.path + ".ctl", log)
        self.assertEqual(os.listdir(self.dir), ["s.ctl"])

    def test_dead_socket_of_another_user(self):
        self.root()
        if shutil.which("setpriv") is None:
            harness.skip("no setpriv")
        os.chmod(self.dir, 0o1777)
        dead_socket(self.path)
        os.chmod(self.path, 0o777)
        before = os.lstat(self.path).st_ino
        program = os.path.join(harness.tempdir(), "hub")
        shutil.copy(HUB, program)
        os.chmod(os.path.dirname(program), 0o755)
        as_other = ["setpriv", "--reuid", str(OTHER), "--regid", str(OTHER), "--clear-groups"]
        p = subprocess.run(as_other + [program, "--local", "--listen", self.path],
                           timeout=10 * SLOW, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.assertEqual(p.returncode, 78, p.stderr)
        self.assertIn(b"uid 0", p.stderr)
        self.assertEqual(os.lstat(self.path).st_ino, before)
        # Root may clean up after anybody.
        os.chown(self.path, OTHER, OTHER)
        h = self.hub()
        self.assertEqual(os.lstat(self.path).st_uid, 0)
        h.stop()

    def test_two_hubs_at_once(self):
        """Over a dead socket, and over nothing: one wins, the other says so and ends."""
        for i in range(20):
            if i % 2 == 0:
                dead_socket(self.path)
            argv = [HUB, "--local", "--listen", self.path]
            hubs = [subprocess.Popen(argv, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
                    for _ in range(2)]
            try:
                def loser():
                    return [p for p in hubs if p.poll() is not None]
                wait_for(loser, 10)
                lost = loser()
                self.assertEqual(len(lost), 1)
                self.assertEqual(lost[0].returncode, 1, lost[0].stderr.read())
                self.assertTrue(wait_for(lambda: alive(self.path)))
                winner = [p for p in hubs if p not in lost][0]
                self.assertIsNone(winner.poll())
                winner.terminate()
                self.assertEqual(winner.wait(10 * SLOW), 0)
                self.assertEqual(os.listdir(self.dir), [])
            finally:
                for p in hubs:
                    if p.poll() is None:
                        p.kill()
                    p.wait()
                    p.stderr.close()

    def test_only_its_own_is_unlinked(self):
        """A file or socket that took the place meanwhile stays."""
        for what in ("file", "socket"):
            with self.subTest(what):
                h = self.hub()
                os.rename(self.path, self.path + ".away")
                if what == "file":
                    open(self.path, "w").close()
                else:
                    dead_socket(self.path)
                mine = os.lstat(self.path).st_ino
                self.assertEqual(h.stop(), 0)
                self.assertEqual(os.lstat(self.path).st_ino, mine)
                for name in (self.path, self.path + ".away"):
                    os.unlink(name)


class Addresses(Case):
    def test_long_paths_are_named_and_never_cut(self):
        for size in (108, 200):
            path = self.dir + "/" + "x" * (size - len(self.dir) - 1)
            code, log = run("--listen", path)
            self.assertEqual(code, 78)
            self.assertIn(path, log)
            self.assertIn("%d bytes" % size, log)
            self.assertEqual(os.listdir(self.dir), [])

    def test_longest_path_works(self):
        self.path = self.dir + "/" + "x" * (107 - len(self.dir) - 1)
        h = self.hub()
        self.assertTrue(alive(self.path))
        self.assertIn("no control socket", h.logged())
        self.assertEqual(os.listdir(self.dir), [os.path.basename(self.path)])
        h.stop()

    def test_unusable(self):
        for address in ("nonsense", "tcp://127.0.0.1:99999", "unix:///nonexistent/dir/x.sock", "",
                        "tcp://192.0.2.1:5555", "http://x:1", "a\nb"):
            code, log = run("--listen", address)
            self.assertEqual(code, 78, address)
            self.assertIn(address.replace("\n", "\\x0a"), log)
            self.assertEqual(log.count("\n"), 1, log)

    def test_forms(self):
        os.chdir(self.dir)
        self.addCleanup(os.chdir, "/")
        for address in ("unix://" + self.path, self.path, "./s"):
            h = self.hub(listen=address)
            wait_for(lambda: os.path.exists(self.path))
            self.assertTrue(wait_for(lambda: reachable(self.path) and alive(self.path)))
            self.assertEqual(h.stop(), 0)

    def tcp(self, h, n):
        """The ports of the TCP lines of the log."""
        wait_for(lambda: h.logged().count("local bus at ") == n)
        lines = [l for l in h.logged().split("\n") if l.startswith("local bus at tcp://")]
        return [int(l.rsplit(":", 1)[1]) for l in lines]

    def test_several_of_both_kinds(self):
        h = self.hub("--listen", "127.0.0.1:0", "--listen", "tcp://localhost:0",
                     "--listen", "[::1]:0")
        ports = self.tcp(h, 4)
        self.assertEqual(len(set(ports)), 3)
        self.assertTrue(alive(self.path))
        for host, port in zip(("127.0.0.1", "127.0.0.1", "::1"), ports):
            self.assertTrue(alive((host, port)))
        self.assertEqual(h.stop(), 0)

    def test_tcp_only_has_no_control_socket(self):
        h = self.hub(listen="127.0.0.1:0")
        self.tcp(h, 1)
        self.assertEqual(h.logged().count("no control socket"), 1)
        h.stop()

    def test_port_in_use(self):
        s = socket.create_server(("127.0.0.1", 0))
        code, log = run("--listen", "127.0.0.1:%d" % s.getsockname()[1])
        self.assertEqual(code, 1)
        self.assertIn(str(s.getsockname()[1]), log)
        s.close()

    def test_port_is_free_at_once_after_a_restart(self):
        h = self.hub(listen="127.0.0.1:0")
        port = self.tcp(h, 1)[0]
        c = Conn(("127.0.0.1", port))
        c.call(op="hello", id="x")
        h.kill()
        c.close()
        h.listen = "127.0.0.1:%d" % port
        h.start()
        self.assertTrue(wait_for(lambda: self.reachable(port)))
        h.stop()

    @staticmethod
    def reachable(port):
        try:
            return alive(("127.0.0.1", port))
        except OSError:
            return False


class Process(Case):
    def test_sighup_does_not_kill(self):
        h = self.hub()
        h.proc.send_signal(signal.SIGHUP)
        time.sleep(0.2)
        self.assertTrue(alive(self.path))
        self.assertEqual(h.kill(signal.SIGINT), 0)

    def test_an_early_stop_leaves_no_socket(self):
        for step in range(30):
            p = subprocess.Popen([harness.HUB, "--local", "--listen", self.path],
                                 stderr=subprocess.DEVNULL)
            time.sleep(step * 0.0003 * harness.SLOW)
            p.terminate()
            self.assertIn(p.wait(10 * harness.SLOW), (0, -signal.SIGTERM))
            self.assertEqual(os.listdir(self.dir), [], step)

    def test_limits(self):
        h = self.hub(wrapper=["prlimit", "--nofile=256:4096", "--core=unlimited:unlimited"])
        with open("/proc/%d/limits" % h.proc.pid) as f:
            limits = {l[:25].strip(): l[25:].split()[:2] for l in f}
        self.assertEqual(limits["Max open files"], ["4096", "4096"])
        self.assertEqual(limits["Max core file size"], ["0", "0"])
        h.stop()

    def test_what_passes_is_met_by_the_next_start(self):
        """Status 1; 78 says that somebody has to change something."""
        if shutil.which("strace") is None:
            harness.skip("no strace")
        store = os.path.join(os.path.realpath(self.dir), "store")
        for call, error, path, status in (
                ("socket", "EMFILE", self.path, 1), ("bind", "ENOMEM", self.path, 1),
                ("bind", "EACCES", self.path, 78), ("openat", "EIO", store, 1),
                ("openat", "ENOSPC", store, 1), ("openat", "EACCES", store, 78)):
            only = ["-P", store] if path == store else []
            argv = ["strace", "-qq", "-o", "/dev/null", "-e", "inject=%s:error=%s" % (call, error),
                    *only, HUB, "--local", "--listen", self.path, "--mailbox", store]
            done = subprocess.run(argv, env=TRACED, capture_output=True, text=True,
                                  timeout=10 * SLOW)
            self.assertEqual(done.returncode, status, (call, error, done.stderr))
            self.assertIn(path, done.stderr)

    def test_without_standard_descriptors(self):
        """No socket may land on 0, 1 or 2."""
        h = self.hub(wrapper=["sh", "-c", "exec 0<&- 1>&- 2>&-; exec \"$@\"", "-"])
        for fd in range(3):
            self.assertEqual(os.readlink("/proc/%d/fd/%d" % (h.proc.pid, fd)), "/dev/null")
        self.assertTrue(alive(self.path))
        self.assertEqual(h.stop(), 0)

    def test_unread_stderr_stops_nothing(self):
        p = subprocess.Popen([HUB, "--local", "--listen", self.path, "--trace"],
                             stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        try:
            wait_for(lambda: os.path.exists(self.path))
            c = Conn(self.path)
            for i in range(3000):
                self.assertEqual(c.call(op="hello", id=str(i))["id"], str(i))
            c.close()
            p.terminate()
            self.assertEqual(p.wait(10 * SLOW), 0)
        finally:
            p.kill()
            p.wait()
            p.stderr.close()

    def test_stop_while_clients_knock(self):
        """Whatever the moment, the hub ends with 0 and leaves nothing behind."""
        for i in range(5):
            h = self.hub()
            over = threading.Event()

            def knock():
                while not over.is_set():
                    try:
                        Conn(self.path).close()
                    except OSError:
                        pass
            threads = [threading.Thread(target=knock) for _ in range(4)]
            for t in threads:
                t.start()
            time.sleep(0.05)
            try:
                self.assertEqual(h.stop(), 0)
            finally:
                over.set()
                for t in threads:
                    t.join()
            self.assertEqual(os.listdir(self.dir), [])


if __name__ == "__main__":
    harness.main()
