#!/usr/bin/env python3
# quick
"""A hub that launchd starts: the program is built as on macOS, and a stand-in for launchd
(tests/services/shim) hands over what a job has under the names of our plists."""
import errno, os, socket, sys, unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
from harness import BUILD, SLOW, Conn, wait_for
from test_activation import Case


class Launchd(Case):
    program = os.path.join(BUILD, "launchd", "zmqcat-hub")

    def launched(self, job, sockets=(), options=()):
        self.start(sockets, options=options, env={"ZMQCAT_TEST_LAUNCHD": job}, pid=False)

    def status_of(self, where):
        c = Conn(where)
        self.addCleanup(c.close)
        return c.call(v=1, op="status", id="1")

    def test_both_names(self):
        self.launched("Listeners=3 Control=4", [self.unix(), self.unix("c")])
        self.assertTrue(self.alive(self.path("u")))
        self.assertEqual(self.status_of(self.path("c"))["op"], "ok")
        self.assertEqual(self.status_of(self.path("u"))["error"], "unknown op status")
        self.assertEqual(self.logged().count("local bus at"), 1, self.logged())
        self.assertNotIn("no control socket", self.logged())
        self.stop()
        self.assertEqual(sorted(os.listdir(self.dir)), ["c", "log", "u"])

    def test_several_sockets_of_a_name(self):
        """As launchd makes them of one SockServiceName, for IPv4 and IPv6."""
        four, six = self.tcp(), self.tcp("::1")
        self.launched("Control=5 Listeners=3,4", [four, six, self.unix("c")])
        for where in (four.getsockname(), six.getsockname()[:2]):
            self.assertTrue(self.alive(where))
        self.assertEqual(self.status_of(self.path("c"))["op"], "ok")
        self.stop()

    def test_clients_queue_while_it_restarts(self):
        u = self.unix()
        for _ in range(2):
            waiting = Conn(self.path("u"))
            waiting.send(v=1, op="hello", id="early")
            self.launched("Listeners=3", [u])
            self.assertEqual(waiting.recv()["id"], "early")
            waiting.close()
            self.stop()
            self.assertTrue(os.path.exists(self.path("u")))

    def falls_back(self):
        wait_for(lambda: "local bus at" in self.logged())
        self.assertTrue(self.alive(self.path("b")))
        self.stop()
        os.unlink(self.log)

    def test_not_started_by_launchd(self):
        """ESRCH: from a terminal, say."""
        self.start([], options=["--listen", self.path("b")], pid=False)
        self.falls_back()

    def test_a_job_without_sockets(self):
        """ENOENT for both names, and for one."""
        self.launched("Other=3", [self.unix()], ["--listen", self.path("b")])
        self.falls_back()
        self.launched("Control=3", [self.unix("c")], ["--listen", self.path("b")])
        self.falls_back()

    def refused(self, job, sockets, word):
        self.launched(job, sockets, ["--listen", self.path("never")])
        self.assertEqual(self.proc.wait(10 * SLOW), 78, self.logged())
        self.assertFalse(os.path.exists(self.path("never")))
        self.assertEqual(self.logged().count("\n"), 1, self.logged())
        self.assertIn("sockets of the service manager: " + word, self.logged())
        os.unlink(self.log)

    def test_handed_out_before(self):
        for job in ("Listeners=!%d", "Listeners=3 Control=!%d"):
            self.refused(job % errno.EALREADY, [self.unix(job[-10:])],
                         "launchd handed them out before: let ProgramArguments name the daemon")

    def test_other_errors(self):
        for number in (errno.EPERM, errno.ENOMEM):
            self.refused("Listeners=!%d" % number, [], "launchd gave none: `launchctl print`")

    def test_what_is_no_listening_stream_socket(self):
        datagram = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        datagram.bind(self.path("d"))
        self.addCleanup(datagram.close)
        for n, bad in enumerate((datagram, self.unix("n", listen=False))):
            self.refused("Listeners=3 Control=4", [self.unix("u%d" % n), bad],
                         "launchd handed over something else")


del Case  # its tests are those of its subclasses

if __name__ == "__main__":
    harness.main()
