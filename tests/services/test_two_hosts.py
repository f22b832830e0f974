#!/usr/bin/env python3
# serial
"""Hub and spoke as services of two hosts (two_hosts.py).

One runs the relay of the tests and zmqcat-hub.service with the drop-in of zmqcat-hub(8), the other
zmqcat-spoke.service with its token as a credential. Each test begins with both sides joined.
"""
import os, re, shutil, stat, subprocess, sys, time, unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
import harness
from container import BIN
from harness import SLOW, read_file, wait_for
from two_hosts import ADDRESSES, HUB, RELAY, SPOKE, Host, connect, ip

TOKEN = "/etc/credstore/token"


class TwoHosts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        for tool in ("ip", "nsenter"):
            if shutil.which(tool) is None:
                harness.skip("no " + tool)
        cls.hub = cls.host("hub")
        cls.spoke = cls.host("spoke")
        connect(cls.hub, cls.spoke)
        for host in (cls.hub, cls.spoke):
            host.boot()
            host.systemctl("start", *host.sockets)
        cls.hub.systemctl("start", HUB)
        cls.token = cls.token_of_hub()
        cls.write_token(cls.token)
        cls.spoke.systemctl("start", SPOKE)

    @classmethod
    def host(cls, role):
        try:
            host = Host(role)
        except subprocess.CalledProcessError as e:
            harness.skip("no network namespaces: " + e.stderr)
        cls.addClassCleanup(host.end)
        return host

    @classmethod
    def token_of_hub(cls):
        """What the administrator copies."""
        wait_for(lambda: cls.hub.status()["state"] == "online", 20)
        return cls.hub.run(BIN + "/zmqcat", "token")

    @classmethod
    def write_token(cls, text):
        path = cls.spoke.root(TOKEN)
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        harness.write_file(path, text, 0o400)

    def setUp(self):
        self.conns = []
        self.addCleanup(lambda: [c.close() for c in self.conns])
        self.joined()

    def joined(self, seconds=15):
        wait_for(lambda: self.spoke.show("ActiveState") == "active", seconds, 0.1)
        wait_for(lambda: self.spoke.status()["state"] == "up", seconds)

    def conn(self, host, **more):
        self.conns.append(host.connect(**more))
        return self.conns[-1]

    def put(self, host, text):
        c = self.conn(host, timeout=20)
        self.assertEqual(c.put("jobs", text)["op"], "ok")

    def take(self, host):
        got = self.conn(host, timeout=20).call(v=1, op="take", id="t", name="jobs")
        self.assertEqual(got["op"], "msg", got)
        return got

    def usable(self, seconds):
        """A new client of the spoke reaches the hub within the time, in both directions."""
        start = time.monotonic()
        self.put(self.spoke, "there")
        self.assertLess(time.monotonic() - start, seconds * SLOW)
        self.assertEqual(self.take(self.hub)["text"], "there")
        self.put(self.hub, "back")
        self.assertEqual(self.take(self.spoke)["text"], "back")

    def inodes(self, host):
        return [os.lstat(host.root("/run/zmqcat/" + n)).st_ino
                for n in ("zmqcat.sock", "control.sock")]

    def test_put_here_take_there(self):
        self.put(self.hub, "from the hub")
        self.assertEqual(self.take(self.spoke)["text"], "from the hub")
        self.put(self.spoke, "from the spoke")
        got = self.take(self.hub)
        self.assertEqual(got["text"], "from the spoke")
        key = self.spoke.run(BIN + "/zmqcat", "nodekey", "/var/lib/zmqcat/spoke.key").strip()
        self.assertEqual(got["by"], key)

    def test_commands_find_the_services(self):
        self.spoke.run(BIN + "/zmqcat", "put", "cli", "good morning")
        self.assertEqual(self.hub.run(BIN + "/zmqcat", "take", "cli"), "good morning\n")
        self.hub.run(BIN + "/zmqcat", "put", "cli", "good evening")
        self.assertEqual(self.spoke.run(BIN + "/zmqcat", "take", "cli"), "good evening\n")

    def test_a_client_waits_for_what_comes_there(self):
        waiting = self.conn(self.spoke, timeout=20)
        waiting.send(v=1, op="take", id="w", name="jobs")
        self.put(self.hub, "late")
        self.assertEqual(waiting.recv()["text"], "late")

    def test_first_client_starts_the_spoke(self):
        self.spoke.systemctl("stop", SPOKE)
        self.assertEqual(self.spoke.show("ActiveState"), "inactive")
        self.usable(5)
        self.assertEqual(self.spoke.show("ActiveState"), "active")

    def test_hub_restarts(self):
        self.put(self.spoke, "kept")
        old, pid = self.conn(self.spoke, hello=True), self.spoke.show("MainPID")
        self.hub.systemctl("restart", HUB)
        self.assertEqual(self.take(self.spoke)["text"], "kept")
        self.usable(5)
        self.assertTrue(old.closed(10))
        self.assertEqual(self.token_of_hub(), self.token)
        self.assertEqual(self.spoke.show("MainPID"), pid)

    def test_hub_reloads(self):
        pid = self.hub.show("MainPID")
        self.hub.systemctl("reload", HUB)
        self.usable(5)
        self.assertEqual(self.hub.show("MainPID"), pid)

    def test_spoke_with_a_credential_does_not_reload(self):
        """The manager says so, and what is wanted instead; the spoke goes on."""
        pid = self.spoke.show("MainPID")
        self.assertRaises(AssertionError, self.spoke.systemctl, "reload", SPOKE)
        self.assertIn("restart that for another one", self.spoke.journal())
        self.usable(5)
        self.assertEqual(self.spoke.show("MainPID"), pid)

    def test_hub_is_killed(self):
        self.put(self.spoke, "kept")
        pid = self.hub.show("MainPID")
        self.hub.run("kill", "-9", pid)
        wait_for(lambda: self.hub.show("MainPID") not in (pid, "0"), 15, 0.1)
        self.assertEqual(self.take(self.spoke)["text"], "kept")
        self.usable(5)

    def test_spoke_restarts(self):
        """Its sockets stay, a client that comes meanwhile is served, its key is the same."""
        before = self.inodes(self.spoke)
        peers = [p["nodekey"] for p in self.hub.status()["peers"]]
        self.spoke.systemctl("stop", SPOKE)
        meanwhile = self.conn(self.spoke, timeout=20)
        meanwhile.send(v=1, op="put", id="m", name="jobs", text="meanwhile")
        self.spoke.systemctl("restart", SPOKE)
        self.assertEqual(meanwhile.recv()["op"], "ok")
        self.assertEqual(self.take(self.hub)["text"], "meanwhile")
        self.usable(5)
        self.assertEqual(self.inodes(self.spoke), before)
        self.assertEqual([p["nodekey"] for p in self.hub.status()["peers"]], peers)

    def test_spoke_is_killed(self):
        pid = self.spoke.show("MainPID")
        self.spoke.run("kill", "-9", pid)
        self.usable(10)
        self.assertNotEqual(self.spoke.show("MainPID"), pid)

    def test_watchdog_of_the_spoke(self):
        """It is fed, joined and while the hub is away; a spoke that hangs is killed and comes
        back."""
        self.drop_in("WatchdogSec=500ms\n")
        self.spoke.systemctl("restart", SPOKE)
        self.joined()
        pid = self.spoke.show("MainPID")
        time.sleep(1.6)
        self.hub.systemctl("stop", RELAY)
        self.addCleanup(self.hub.systemctl, "start", RELAY)
        time.sleep(1.6)
        self.assertEqual((self.spoke.show("MainPID"), self.spoke.show("NRestarts")), (pid, "0"))
        self.hub.systemctl("start", RELAY)
        self.spoke.run("kill", "-STOP", pid)
        wait_for(lambda: self.spoke.show("MainPID") not in (pid, "0"), 15, 0.1)
        self.assertIn("watchdog", self.spoke.journal())
        self.usable(10)

    def test_relay_restarts(self):
        self.hub.systemctl("stop", RELAY)
        wait_for(lambda: self.spoke.status()["state"] != "up", 15)
        self.hub.systemctl("start", RELAY)
        self.usable(10)

    def test_link_goes_and_comes_back(self):
        """The services may hear of it: the dead stream is given up at once, and dialled at once."""
        ip("-n", self.spoke.name, "link", "set", "z0", "down")
        try:
            wait_for(lambda: self.spoke.status()["state"] != "up", 6)
            time.sleep(10)
        finally:
            ip("-n", self.spoke.name, "link", "set", "z0", "up")
        self.usable(5)

    def without_token(self):
        self.spoke.systemctl("stop", SPOKE)
        os.unlink(self.spoke.root(TOKEN))
        self.addCleanup(self.restore)

    def restore(self):
        self.write_token(self.token)
        self.spoke.systemctl("reset-failed", SPOKE, check=False)
        self.spoke.systemctl("restart", *self.spoke.sockets)
        self.spoke.systemctl("restart", SPOKE)

    def late(self, *told):
        """Each attempt fails until the token is there, with a line that says what is awaited; a
        client that came before it is served."""
        before = self.said()
        self.spoke.systemctl("start", SPOKE, check=False)
        wait_for(lambda: self.spoke.show("SubState") == "auto-restart", 15, 0.1)
        self.assertEqual(self.spoke.show("ExecMainStatus"), "1")
        said = self.said()[len(before):]
        self.assertEqual(len(said), 1, said)
        for part in told + ("LoadCredential=", "tokenFile"):
            self.assertIn(part, said[0])
        early = self.conn(self.spoke, timeout=25)
        early.send(v=1, op="put", id="e", name="jobs", text="early")
        wait_for(lambda: int(self.spoke.show("NRestarts")) >= 1, 15, 0.1)
        self.write_token(self.token)
        self.assertEqual(early.recv()["op"], "ok")
        self.assertEqual(self.take(self.hub)["text"], "early")
        self.assertEqual(self.spoke.show("ActiveState"), "active")

    def test_late_token(self):
        self.without_token()
        self.late("its file does not exist", "/etc/credstore/token")

    def drop_in(self, lines):
        drop_in = self.spoke.path("units", SPOKE + ".d", "test.conf")
        os.makedirs(os.path.dirname(drop_in))
        self.addCleanup(self.spoke.systemctl, "daemon-reload")
        self.addCleanup(shutil.rmtree, os.path.dirname(drop_in))
        with open(drop_in, "w") as f:
            f.write("[Service]\n" + lines)
        self.spoke.systemctl("daemon-reload")

    def test_late_token_with_a_path_of_its_own(self):
        """systemd itself, which says no path, would end it with status 243."""
        self.drop_in("LoadCredential=token:%s\n" % TOKEN)
        self.without_token()
        self.late("its file does not exist")

    def test_late_token_as_nixos_has_it(self):
        self.drop_in("LoadCredential=token:%s\nSetCredential=token:missing:%s\n" % (TOKEN, TOKEN))
        self.without_token()
        self.late(TOKEN + " does not exist: put")

    def said(self):
        """The lines of the spoke itself in the journal."""
        self.spoke.run("journalctl", "--sync")
        return self.spoke.run("journalctl", "-b", "-o", "cat",
                              "_SYSTEMD_UNIT=" + SPOKE).splitlines()

    def test_wrong_token(self):
        """One that is cut: one attempt, one line, and then nothing."""
        self.without_token()
        for text in (self.token[:-30] + "\n", "nonsense\n", ""):
            with self.subTest(len(text)):
                self.write_token(text)
                before = self.said()
                self.spoke.systemctl("start", SPOKE, check=False)
                wait_for(lambda: self.spoke.show("ActiveState") == "failed", 15, 0.1)
                self.assertEqual((self.spoke.show("ExecMainStatus"), self.spoke.show("NRestarts")),
                                 ("78", "0"))
                began = self.spoke.show("ExecMainStartTimestampMonotonic")
                time.sleep(6)  # longer than RestartSec=
                self.assertEqual(self.spoke.show("ExecMainStartTimestampMonotonic"), began)
                self.assertEqual(self.spoke.show("ActiveState"), "failed")
                said = self.said()
                self.assertEqual(said[:-1], before)
                self.assertIn("token", said[-1])
                self.spoke.systemctl("reset-failed", SPOKE)

    def test_outdated_token(self):
        """After a rotation the old token does not let in; the new one does after a restart."""
        new = self.hub.run(BIN + "/zmqcat", "rotate")
        old, type(self).token = self.token, new
        self.addCleanup(self.restore)
        self.assertNotEqual(new, old)
        self.spoke.systemctl("restart", SPOKE)
        wait_for(lambda: "pre-shared key" in self.spoke.journal(), 20, 0.2)
        self.assertNotEqual(self.spoke.status()["state"], "up")
        self.assertEqual(self.spoke.show("NRestarts"), "0")
        self.write_token(new)
        self.spoke.systemctl("restart", SPOKE)
        self.usable(5)

    def use_allow_file(self, path):
        """The hub with --allow-file, as zmqcat-hub(8) says; undone at the end."""
        unit = self.hub.path("units", HUB + ".d", "tunnel.conf")
        text = read_file(unit).decode()
        mailbox = "--mailbox /var/lib/zmqcat/mailbox"
        self.assertEqual(text.count(mailbox), 1)

        def restart(text):
            with open(unit, "w") as f:
                f.write(text)
            self.hub.systemctl("daemon-reload")
            self.hub.systemctl("restart", HUB)
        self.addCleanup(restart, text)
        restart(text.replace(mailbox, "%s --allow-file %s" % (mailbox, path)))

    def test_allow_list_reload_and_revoke(self):
        zmqcat, revoked = BIN + "/zmqcat", self.hub.root("/var/lib/zmqcat/revoked")
        key = self.spoke.run(zmqcat, "nodekey", "/var/lib/zmqcat/spoke.key").strip()
        allow = harness.write_file(self.hub.root("/etc/zmqcat-spokes"), "# nobody\n", 0o644)
        self.use_allow_file("/etc/zmqcat-spokes")
        wait_for(lambda: key + " is not on the allow list" in self.hub.journal(), 20, 0.2)
        self.assertNotEqual(self.spoke.status()["state"], "up")
        harness.write_file(allow, key + "\n", 0o644)
        self.hub.systemctl("reload", HUB)
        self.joined()
        self.usable(5)
        self.hub.run(zmqcat, "revoke", key)
        st = os.lstat(revoked)
        self.assertEqual((stat.S_IMODE(st.st_mode), st.st_uid), (0o600, self.hub.uid("zmqcat")))
        self.assertEqual(self.hub.status()["peers"], [])
        self.hub.systemctl("restart", HUB)
        wait_for(lambda: key + " is revoked and asks" in self.hub.journal(), 20, 0.2)
        self.assertEqual(self.hub.status()["peers"], [])
        os.unlink(revoked)
        self.hub.run(zmqcat, "reload")
        self.joined()
        self.usable(5)

    def test_credential_and_files_are_closed_to_others(self):
        for host, name in ((self.hub, "hub.key"), (self.hub, "token"), (self.spoke, "spoke.key")):
            st = os.lstat(host.root("/var/lib/zmqcat/" + name))
            self.assertEqual((stat.S_IMODE(st.st_mode), st.st_uid),
                             (0o600, host.uid("zmqcat")), name)
        folder = "/run/credentials/" + SPOKE
        got = self.spoke.run("stat", "-c", "%a", folder, folder + "/token").split()
        self.assertTrue(all(mode[-1] == "0" for mode in got), got)
        read = ["cat", folder + "/token"]
        self.assertEqual(self.spoke.run(*read), self.token)
        nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        self.assertEqual(self.spoke.run(*nobody, *read, check=False), "")

    def test_no_secret_is_shown(self):
        # A part of the token, since a wrong one may hold the same.
        secrets = [self.token[8:48]]
        for host, name in ((self.hub, "hub.key"), (self.spoke, "spoke.key")):
            text = read_file(host.root("/var/lib/zmqcat/" + name)).decode()
            secrets += re.findall(r"(?:privkey|psk):([0-9a-f]{64})", text)
        self.assertEqual(len(secrets), 4)
        for host in (self.hub, self.spoke):
            shown = {n: host.main_process(n).decode() for n in ("cmdline", "environ")}
            shown["journal"] = host.journal()
            shown["properties"] = host.systemctl("show", host.unit)
            shown["console"] = host.console()
            self.assertIn(host.unit[:-8], shown["cmdline"])
            self.assertIn("INVOCATION_ID=", shown["environ"])
            self.assertIn(host.unit, shown["journal"])
            for where, text in shown.items():
                for secret in secrets:
                    self.assertFalse(secret in text, "a secret is in the %s of the %s"
                                     % (where, host.role))

    def test_status_of_the_services(self):
        wait_for(lambda: self.spoke.show("StatusText") == "joined, relay " + ADDRESSES["hub"], 10,
                 0.2)
        self.assertEqual(self.hub.status()["relay"], ADDRESSES["hub"] + ":443")

    def test_units_as_they_run(self):
        """Silent for verify, and 1.5 at most: the hub with its drop-in, and the spoke."""
        for host in (self.hub, self.spoke):
            got = subprocess.run(["nsenter", "-t", host.leader, "-a", "systemd-analyze", "verify",
                                  "--man=no", host.unit] + host.sockets, capture_output=True,
                                 text=True)
            self.assertEqual((got.returncode, got.stdout, got.stderr), (0, "", ""), host.role)
            got = host.run("systemd-analyze", "security", "--offline=true", "--threshold=15",
                           "--no-pager", host.unit)
            self.assertLessEqual(float(re.search(r"service: ([0-9.]+)", got)[1]), 1.5)


if __name__ == "__main__":
    harness.main()
