"""One client key in two processes, as after a machine was cloned: field case R3. The relay gives
what is sent to a key to the connection that sent last, so the two take it from each other; which of
them is served when both talk is not promised. What is: bytes are right or the connection ends,
nobody spins or fills the log, others are served as ever, and the one that is left recovers."""
import os, shutil, sys, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness
from harness import tempdir
from cases import HubSide, SpokeSide
from peers import free_port
from transfer import exchange

BOTH_S = 12
RECOVERS_S = 90


class OneKey:
    """For a test with `token` and `spoke_of(key)`, which gives a spoke and a way to dial."""

    def key_file(self):
        path = os.path.join(tempdir(), "key")
        self.assertEqual(harness.cli("keygen", path).returncode, 0)
        return path

    def copy(self, path):
        return shutil.copy(path, os.path.join(tempdir(), "key"))

    def served(self, dial, within=RECOVERS_S):
        """Soon a connection is served to its end."""
        end = time.monotonic() + within * harness.SLOW
        while not self.attempt(dial, 10):
            self.assertLess(time.monotonic(), end)

    def attempt(self, dial, seconds=3):
        """One connection, which may fail, but not carry other bytes. Whether it was served."""
        try:
            return exchange(dial(), 50000, self.echo, seconds, may_end=True)
        except OSError:
            return False

    def fight(self, attempts, daemons, other):
        """All talk at once for a time, an outsider too."""
        before = [(d.cpu(), d.logged()) for d in daemons]
        end = time.monotonic() + BOTH_S

        def talk(attempt):
            while time.monotonic() < end:
                attempt()
                time.sleep(0.1)
        harness.together(*[lambda a=a: talk(a) for a in attempts],
                         lambda: [self.served(other) for _ in range(5)])
        for d, (cpu, logged) in zip(daemons, before):
            self.assertIsNone(d.proc.poll())
            said = d.logged()[len(logged):]
            self.assertLessEqual(said.count("\n"), 10, said)
            self.assertLess(d.cpu() - cpu, 4 * harness.SLOW)

    def test_r3_two_spokes_with_one_key(self):
        key = self.key_file()
        first, dial_first = self.spoke_of(key)
        self.served(dial_first)
        second, dial_second = self.spoke_of(self.copy(key))
        self.served(dial_second)
        _, other = self.spoke_of(self.key_file())
        self.fight([lambda: self.attempt(dial_first), lambda: self.attempt(dial_second)],
                   [first, second] + self.hubs, other)
        second.kill()
        self.served(dial_first)

    def test_r3_a_spoke_and_their_client_with_one_key(self):
        key = self.key_file()
        spoke, dial = self.spoke_of(key)
        self.served(dial)
        _, other = self.spoke_of(self.key_file())
        client = self.client_of(key)

        def theirs():
            pipe = client.pipe(self.token(), self.echo.port)
            try:
                self.attempt(lambda: pipe.sock)
            finally:
                pipe.close()
        self.fight([lambda: self.attempt(dial), theirs], [spoke] + self.hubs, other)
        self.served(dial)

    def client_of(self, key):
        client = self.client(fresh=False)
        shutil.copy(key, client.key_file())
        return client

    def spoke_of(self, key):
        local = free_port()
        s = self.spoke(self.token_file(), "--key-file", key, "--wait-hub", "3s", "--forward",
                       "%d:%d" % (local, self.echo.port))
        return s, lambda: self.dial(local)


class OneKeyAtHub(OneKey, HubSide):
    def setUp(self):
        super().setUp()
        self.h = self.their_hub()
        self.h.token()
        self.hubs = [self.h]

    def token(self):
        return self.h.token()

    def token_file(self):
        return self.h.token_file


class OneKeyAtServer(OneKey, SpokeSide):
    def setUp(self):
        super().setUp()
        self.s = self.server(str(self.echo.port), "--full-address")
        self.hubs = []

    def token(self):
        return self.s.token()

    def token_file(self):
        return self.s.token_file
