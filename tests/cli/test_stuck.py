"""The command beside a hub that does not answer, and with standard streams that are closed."""
import os, socket, subprocess, sys, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness
from harness import Case, cli, tempdir


class Silent(Case):
    """A hub that takes connections and says nothing."""

    def setUp(self):
        self.path = os.path.join(tempdir(), "s")
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.bind(self.path)
        self.sock.listen(16)
        self.addCleanup(self.sock.close)

    def took(self, *args):
        start = time.monotonic()
        got = cli(*args, listen=self.path)
        self.assertEqual((got.returncode, got.stdout), (3, b""), got.stderr)
        self.assertEqual(got.stderr.count(b"\n"), 1, got.stderr)
        self.assertIn(b"does not answer", got.stderr)
        return time.monotonic() - start

    def test_wait_bounds_the_first_answer(self):
        for verb in ("take", "ready", "reserve", "sub"):
            self.assertLess(self.took(verb, "x", "--wait", "3s"), 5 * harness.SLOW)
        # So much time a hub far away has in any case.
        took = self.took("take", "x", "--wait", "0")
        self.assertTrue(1.9 < took < 4 * harness.SLOW, took)

    def test_timeout_and_retries_bound_it(self):
        took = self.took("req", "x", "y", "--timeout", "500ms", "--retries", "2")
        self.assertTrue(0.9 < took < 3 * harness.SLOW, took)


class Closed(Case):
    def setUp(self):
        self.h = self.hub()

    def run_without(self, streams, *args):
        redirect = {0: "<&-", 1: ">&-"}
        text = 'exec "$@" ' + " ".join(redirect[s] for s in streams)
        return subprocess.run(["sh", "-c", text, "sh", harness.CLI] + list(args) +
                              ["--listen", self.h.listen], stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=20 * harness.SLOW)

    def test_nothing_is_taken_that_cannot_be_printed(self):
        cli("put", "q", "hello", listen=self.h.listen)
        for args in (["take", "q"], ["take", "q", "--follow", "--count", "1"],
                     ["ready", "q", "--ack"], ["reserve", "q", "--ack"]):
            with self.subTest(args):
                got = self.run_without([1], *args)
                self.assertEqual(got.returncode, 1, got.stderr)
                self.assertIn(b"standard output", got.stderr)
                stat = cli("stat", "q", "--json", listen=self.h.listen).stdout
                self.assertIn(b'"depth":1', stat.replace(b" ", b""))
        self.assertEqual(cli("take", "q", listen=self.h.listen).stdout, b"hello\n")

    def test_no_payload_is_not_an_empty_one(self):
        for verb in ("put", "pub", "req"):
            got = self.run_without([0], verb, "q")
            self.assertEqual(got.returncode, 1, verb)
            self.assertIn(b"standard input", got.stderr)
        self.assertEqual(cli("take", "q", "--wait", "0", listen=self.h.listen).returncode, 3)
        self.assertEqual(self.run_without([0, 1], "put", "q", "x").returncode, 0)
        self.assertEqual(cli("take", "q", listen=self.h.listen).stdout, b"x\n")


if __name__ == "__main__":
    harness.main()
