#!/usr/bin/env python3
# serial
"""The Debian packages: what they hold, what lintian says, and the life of one on a host with a real
systemd: installed, used, upgraded with clients at the door, removed, purged."""
import contextlib, os, re, shutil, stat, subprocess, sys, threading, unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import debian
from debian import SOCKET, DebHost, harness
from harness import BUILD, Conn, ROOT, SLOW, wait_for

HUB, SPOKE = "zmqcat-hub.service", "zmqcat-spoke.service"
HUB_SOCKETS = ["zmqcat-hub.socket", "zmqcat-hub-control.socket"]
UNITS = ["zmqcat-%s%s" % (who, what) for who in ("hub", "spoke")
         for what in ("-control.socket", ".service", ".socket")]


def holds(deb):
    done = subprocess.run(["dpkg-deb", "-c", deb], check=True, capture_output=True, text=True)
    return [line.split()[5][1:] for line in done.stdout.splitlines()]


class Package(unittest.TestCase):
    maxDiff = None

    def test_the_checkout_stays_clean(self):
        debian.changes()
        self.assertEqual(sorted(n for n in os.listdir(os.path.join(ROOT, "debian"))
                                if n.startswith((".", "tmp", "files", "debhelper"))), [])
        self.assertFalse(os.path.exists(os.path.join(BUILD, "deb", "source")))

    def test_lintian(self):
        if shutil.which("lintian") is None:
            harness.skip("no lintian; `make deps deps-dev` installs it")
        argv = ["lintian", "--fail-on", "error", "--allow-root", debian.changes()]
        done = subprocess.run(argv, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertLessEqual(done.stdout.count("W: "), 3, done.stdout)

    def test_lintian_would_speak(self):
        """The check above can fail."""
        if shutil.which("lintian") is None:
            harness.skip("no lintian; `make deps deps-dev` installs it")
        tree = os.path.join(harness.tempdir(), "tree")
        subprocess.run(["dpkg-deb", "-R", debian.package(), tree], check=True)
        os.unlink(tree + "/usr/share/doc/zmqcat/copyright")
        subprocess.run(["dpkg-deb", "-b", tree, tree + ".deb"], check=True, capture_output=True)
        done = subprocess.run(["lintian", "--fail-on", "error", "--allow-root", tree + ".deb"],
                              capture_output=True, text=True)
        self.assertNotEqual(done.returncode, 0, done.stdout)

    def test_what_is_in_them(self):
        got = holds(debian.package())
        folder = next(os.path.dirname(p) for p in got if p.endswith("/zmqcat-hub.service"))
        for path in ["/usr/bin/zmqcat", "/usr/bin/zmqcat-hub", "/usr/bin/zmqcat-spoke",
                     "/usr/lib/sysusers.d/zmqcat.conf", "/usr/lib/tmpfiles.d/zmqcat.conf",
                     "/usr/share/man/man1/zmqcat.1.gz", "/usr/share/man/man8/zmqcat-hub.8.gz",
                     "/usr/share/man/man8/zmqcat-spoke.8.gz", "/usr/share/man/man5/zmqc.5.gz",
                     "/usr/share/bash-completion/completions/zmqcat",
                     "/usr/share/zsh/vendor-completions/_zmqcat",
                     "/usr/share/fish/vendor_completions.d/zmqcat.fish",
                     "/usr/share/doc/zmqcat/README.Debian",
                     "/usr/share/doc/zmqcat/admin.md"] + [folder + "/" + u for u in UNITS]:
            self.assertIn(path, got)
        library = [os.path.basename(p) for p in holds(debian.package("libzmqcat0"))]
        self.assertIn("libzmqcat.so.0", library)
        development = [os.path.basename(p) for p in holds(debian.package("libzmqcat-dev"))]
        for name in ("zmqcat.h", "libzmqcat.so", "libzmqcat.a", "zmqcat.pc"):
            self.assertIn(name, development)

    def test_who_hands_it_on_is_its_maintainer(self):
        """With Debian's own variables; the rule and the tool, without another build."""
        for name in ("dpkg-gencontrol", "make"):
            if shutil.which(name) is None:
                harness.skip("no " + name)
        folder = harness.tempdir()
        shutil.copytree(os.path.join(ROOT, "debian"), folder + "/debian")
        os.mkdir(folder + "/bin")
        harness.write_file(folder + "/bin/dh_gencontrol", '#!/bin/sh\nshift\nexec dpkg-gencontrol '
                           '-pzmqcat -Pdebian/tmp -O "$@"\n', 0o755)
        harness.write_file(folder + "/debian/substvars", "shlibs:Depends=\nmisc:Depends=\n")
        for more, wanted in (({"DEBEMAIL": "a@b.example"}, "a@b.example <a@b.example>"),
                             ({"DEBEMAIL": "a@b.example", "DEBFULLNAME": "Ann B."},
                              "Ann B. <a@b.example>")):
            env = {"PATH": folder + "/bin:" + os.environ["PATH"], **more}
            done = subprocess.run(["make", "-s", "-f", "debian/rules", "override_dh_gencontrol"],
                                  cwd=folder, env=env, capture_output=True, text=True)
            self.assertIn("\nMaintainer: %s\n" % wanted, done.stdout, done.stderr)
        env = {k: v for k, v in os.environ.items() if k not in ("DEBEMAIL", "MAKEFLAGS")}
        done = subprocess.run(["make", "-n", "-f", "debian/rules", "override_dh_gencontrol"],
                              cwd=folder, env=env, capture_output=True, text=True)
        self.assertNotIn("Maintainer", done.stdout)

    def test_it_names_what_it_needs(self):
        done = subprocess.run(["dpkg-deb", "-f", debian.package(), "Depends"], check=True,
                              capture_output=True, text=True)
        for name in ("libc6", "libcjson1", "libsodium23", "libssl3", "libsystemd0", "libuv1"):
            self.assertIn(name, done.stdout)


class Door(threading.Thread):
    """Clients that come one after the other, each with a connection and a put of its own."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.path, self.stop, self.done, self.failed = path, threading.Event(), 0, []

    def run(self):
        while not self.stop.is_set():
            name = "door%d" % (self.done // 1000)
            try:
                # One whose hub stops after it has connected is told so, and comes again.
                with contextlib.closing(Conn(self.path, timeout=30 * SLOW)) as c:
                    self.done += c.call(v=1, op="put", id="p", name=name, text="x")["op"] == "ok"
            except (harness.Closed, BrokenPipeError, ConnectionResetError):
                pass
            except OSError as e:
                self.failed.append(repr(e))
            self.stop.wait(0.002)


class Life(unittest.TestCase):
    """The checks of one host, in this order."""

    @classmethod
    def setUpClass(cls):
        cls.deb = debian.package()
        folder = harness.tempdir()
        cls.newer = debian.with_version(cls.deb, "0.1.1", folder)
        libraries = [debian.package(n) for n in ("libzmqcat0", "libzmqcat-dev")]
        cls.host = DebHost("hub", [cls.deb, cls.newer] + libraries)
        cls.addClassCleanup(cls.host.end)
        cls.host.boot()

    def state(self, unit):
        return (self.host.systemctl("is-enabled", unit, check=False).strip(),
                self.host.systemctl("is-active", unit, check=False).strip())

    def stored(self, name):
        return int(re.search(r"(?m)^depth +(\d+)$", self.host.shell("zmqcat stat " + name))[1])

    def ids(self):
        return os.lstat(self.host.root(SOCKET)).st_ino, self.host.show("MainPID")

    def test_1_installed(self):
        self.host.shell("dpkg -i " + os.path.basename(self.deb))
        self.assertIn("zmqcat", self.host.shell("id zmqcat"))
        self.assertEqual(self.host.shell("getent group zmqcat").count("zmqcat"), 1)
        for unit in UNITS:
            self.assertEqual(self.state(unit), ("disabled", "inactive"), unit)
        self.assertTrue(stat.S_ISDIR(os.lstat(self.host.root("/run/zmqcat")).st_mode))
        self.assertFalse(self.host.exists("/var/lib/zmqcat"))

    def test_1_manuals_name_its_programs(self):
        self.assertIn("/usr/bin/zmqcat-hub ", self.host.shell("zcat /usr/share/man/man8/zmqcat*"))
        left = self.host.shell("zgrep -l /usr/local $(dpkg -L zmqcat | grep /man/.*gz); true")
        self.assertEqual(left, "")

    def test_2_a_program_is_built_with_the_library(self):
        self.host.shell("dpkg -i libzmqcat0_*.deb libzmqcat-dev_*.deb")
        harness.write_file(self.host.path("debs/x.c"), "#include <zmqcat.h>\n"
                           "int main(void) { zmqcat_free(0); return 0; }\n")
        self.host.shell("cc x.c -o x $(pkg-config --cflags --libs zmqcat) && ./x")
        self.assertIn("libzmqcat.so.0 => /lib/", self.host.shell("ldd ./x"))
        self.host.shell("dpkg -r libzmqcat-dev libzmqcat0")

    def test_2_an_upgrade_of_what_is_not_used_starts_nothing(self):
        self.host.shell("dpkg -i %s && dpkg -i %s" % tuple(
            os.path.basename(d) for d in (self.newer, self.deb)))
        for unit in UNITS:
            self.assertEqual(self.state(unit), ("disabled", "inactive"), unit)

    def test_3_the_hub_starts_with_its_first_client(self):
        self.host.shell("systemctl enable --now " + " ".join(HUB_SOCKETS))
        self.assertFalse(self.host.active(HUB))
        self.host.shell("for i in 1 2 3; do zmqcat put kept $i; done")
        self.assertTrue(self.host.active(HUB))
        self.assertEqual(stat.S_IMODE(os.stat(self.host.root("/var/lib/zmqcat")).st_mode), 0o700)
        self.assertIn("mailbox", self.host.shell("zmqcat status | grep storage.path"))

    def test_4_upgraded_with_clients_at_the_door(self):
        inode, process = self.ids()
        door = Door(self.host.root(SOCKET))
        door.start()
        self.addCleanup(door.stop.set)
        wait_for(lambda: door.done > 20, 20)
        self.host.shell("dpkg -i " + os.path.basename(self.newer))
        self.assertIn("0.1.1", self.host.shell("dpkg-query -W zmqcat"))
        restarted = door.done
        wait_for(lambda: door.done > restarted + 20, 20)
        door.stop.set()
        door.join(30)
        self.assertEqual(door.failed, [])
        self.assertEqual(self.ids()[0], inode)
        self.assertNotEqual(self.ids()[1], process)
        self.assertTrue(self.host.active(HUB))
        self.assertFalse(self.host.active(SPOKE))
        self.assertEqual(self.state("zmqcat-hub.socket"), ("enabled", "active"))
        self.assertEqual(self.stored("kept"), 3)
        names = self.host.shell("zmqcat ls door").split()
        self.assertGreaterEqual(sum(self.stored(n) for n in names), door.done)

    def test_4b_an_upgrade_starts_no_daemon_that_was_stopped(self):
        """Not even one that starts with the host; its sockets are as they were."""
        self.host.systemctl("enable", HUB)
        self.host.systemctl("stop", HUB)
        for deb in (self.deb, self.newer):
            self.host.shell("dpkg -i " + os.path.basename(deb))
        self.assertEqual(self.state(HUB), ("enabled", "inactive"))
        self.assertEqual(self.state("zmqcat-hub.socket"), ("enabled", "active"))
        self.host.systemctl("disable", HUB)  # and its sockets
        self.host.systemctl("enable", *HUB_SOCKETS)

    def test_5_removed(self):
        self.host.shell("dpkg -r zmqcat")
        for unit in UNITS:
            self.assertEqual(self.state(unit)[1], "inactive", unit)
        self.assertEqual(self.host.shell("pgrep -x zmqcat-hub; true"), "")
        self.assertFalse(self.host.exists("/usr/bin/zmqcat"))
        self.assertFalse(self.host.exists(SOCKET))
        self.assertTrue(self.host.exists("/var/lib/zmqcat/mailbox"))

    def test_6_installed_again_with_what_was_stored(self):
        self.host.shell("dpkg -i " + os.path.basename(self.newer))
        self.host.shell("systemctl start " + " ".join(HUB_SOCKETS))
        self.assertEqual(self.host.shell("zmqcat take kept"), "1\n")

    def test_7_purged_where_the_state_is_a_disk_of_its_own(self):
        self.host.shell("systemctl stop zmqcat-hub.socket zmqcat-hub-control.socket " + HUB)
        self.host.shell("mount -t tmpfs none /var/lib/zmqcat && touch /var/lib/zmqcat/.x && "
                        "dpkg -P zmqcat && ! ls -A /var/lib/zmqcat | grep . && "
                        "umount /var/lib/zmqcat && dpkg -i " + os.path.basename(self.newer))

    def test_8_purged(self):
        self.host.shell("dpkg -P zmqcat")
        for path in ("/var/lib/zmqcat", SOCKET, "/usr/bin/zmqcat"):
            self.assertFalse(self.host.exists(path), path)
        left = self.host.shell("systemctl list-unit-files --no-legend 'zmqcat*'; "
                               "find /etc/systemd/system -name 'zmqcat*'; "
                               "find /var/lib/systemd/deb-systemd-helper-enabled -name 'zmqcat*'; "
                               "dpkg -l zmqcat | grep ^[a-z]; true")
        self.assertNotRegex(left, r"zmqcat-|\.socket|^(ii|rc)")
        self.assertIn("zmqcat", self.host.shell("id zmqcat"))


if __name__ == "__main__":
    harness.main()
