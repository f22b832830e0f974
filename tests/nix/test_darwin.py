#!/usr/bin/env python3
# quick
"""The nix-darwin module, off line: darwin.nix stands for the options of nix-darwin that it sets.
The plists that come out are looked at key by key, say the same as launchd/*, and are kept under
rendered/. Where ZMQCAT_NIXPKGS or NIX_PATH names a nixpkgs, all is evaluated with its lib too;
where ZMQCAT_NIX_DARWIN or NIX_PATH (darwin=) names a nix-darwin, with its modules.
"""
import json, os, plistlib, shlex, stat, subprocess, sys, unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "macos"))
import evaluate as ev, jobs
from evaluate import CASES, GO_HUB, GO_SPOKE, HUB, KEY, LOCAL, SPOKE, harness
from harness import BUILD, ROOT
from rows import Rows, listen, mailbox

NIXPKGS, DARWIN = ev.nixpkgs(), ev.named("ZMQCAT_NIX_DARWIN", "darwin")
BUS = "/var/lib/zmqcat-bus/zmqcat.sock"


def setUpModule():
    ev.need_nix()


class Shared(Rows):
    maxDiff = None
    lib = None
    system = "darwin"
    refused_here = [
        (listen("/" + "x" * 99), "cannot be", "at most 99 bytes"),
        (listen("/srv/a", "/srv/a.ctl"), "is in the way", '"unix:///run/'),
        (mailbox("/Users/me/m"), "cannot be written", "/var/lib/zmqcat/mailbox"),
        (mailbox("/Volumes/disk"), "would belong", "/var/lib/zmqcat/mailbox"),
        (HUB + 'logFile = "/var/lib/zmqcat/token";', "is for the daemon", "/logFile"),
        (mailbox("/srv/m") + 'logFile = "/srv/m/log";', "mailbox names", "zmqcat/logFile"),
        (HUB + 'group = "people"; socketUsers = [ "a" ];', "you decide who",
         'group = "zmqcat"')]
    wrong_here = [(HUB + "encryptedCredentials = true;", "encryptedCredentials' does not exist")]

    def argv(self, evaluated):
        (job,) = evaluated["plists"].values()
        return shlex.split(job["ProgramArguments"][2].partition("exec ")[2])[1:]

    def evaluate(self, settings):
        return ev.evaluate(settings, system="darwin", lib=self.lib)

    def accepted(self, settings):
        e = self.evaluate(settings)
        self.assertEqual(e["refused"], [], settings)
        return e

    def job(self, settings):
        (_, job), = self.accepted(settings)["plists"].items()
        return ev.without_null(job)

    def command(self, settings):
        """What the shell of the job makes of it."""
        *shell, text = self.job(settings)["ProgramArguments"]
        self.assertEqual(shell, ["/bin/sh", "-c"])
        wait = "/bin/wait4path /nix/store && exec "
        self.assertTrue(text.startswith(wait), text)
        shown = subprocess.run(["/bin/sh", "-c", "printf '%s\\0' " + text[len(wait):]],
                               capture_output=True, text=True, check=True).stdout
        return shown.split("\0")[:-1]

    def test_disabled_sets_nothing(self):
        e = ev.value(ev.expression("", lib=self.lib, system="darwin").replace(
            "enable = true", "enable = false"))
        self.assertEqual(e, {"refused": [], "warnings": [], "packages": [], "plists": {},
                             "users": {"users": {}, "groups": {}}, "variables": {},
                             "activation": {}, "known": {"knownUsers": [], "knownGroups": []}})

    def test_rendered(self):
        """A difference is reviewed, and accepted by `make accept-units`."""
        for case, (system, _) in CASES.items():
            if system == "darwin":
                got, folder = ev.files(case, self.lib), os.path.join(ev.RENDERED, case)
                self.assertEqual(sorted(got), sorted(os.listdir(folder)), case)
                for name, text in got.items():
                    with open(os.path.join(folder, name)) as f:
                        self.assertEqual(text, f.read(), "make accept-units? " + f.name)

    def test_keys_of_launchd(self):
        """H15: right keys of the right types, and manners."""
        plists = {n: self.job(s) for n, (system, s) in CASES.items() if system == "darwin"}
        self.assertGreater(len(plists), 1)
        for name, job in plists.items():
            self.assertEqual((jobs.misfits(job), jobs.bad_manners(job)), ([], []), name)

    def test_plists_say_the_same_as_those_of_launchd(self):
        for role, settings in (("hub", LOCAL), ("spoke", SPOKE)):
            job, wanted = self.job(settings), jobs.shipped("launchd")[role]
            # What is only installed waits until somebody enables it.
            self.assertTrue(wanted.pop("Disabled"))
            argv = self.command(settings)
            self.assertEqual(argv, [a.replace("@BINDIR@", "/nowhere/bin").replace(
                "/var/lib/zmqcat/join-token", "/run/secrets/token")
                for a in wanted.pop("ProgramArguments")])
            del job["ProgramArguments"]
            self.assertEqual(job, wanted)

    def test_command_lines(self):
        odd = "/srv/a b$c'd\"e%f\\g"
        for settings, wanted in (
                (HUB, []),
                (HUB + "extraArgs = [ \"--name\" %s ];" % json.dumps(odd).replace("$", "\\$"),
                 ["--name", odd]),
                (HUB + 'allow = [ "%s" ]; allowFile = "/etc/a";' % KEY,
                 ["--allow", KEY, "--allow-file", "/etc/a"]),
                (HUB + 'keyFile = "/run/k";', ["--key-file", "/run/k"]),
                (SPOKE + 'forward = [ 5432 ]; extraArgs = [ "--name" "" "--name" "*" ];',
                 ["--token-file", "/run/secrets/token", "--forward", "5432", "--name", "",
                  "--name", "*"])):
            self.assertEqual(self.command(settings)[1:], wanted, settings)

    def test_listen(self):
        """One address a name for launchd, the others for the daemon."""
        path = {"SockPathName": BUS, "SockPathMode": 0o660}
        tcp = {"SockNodeName": "127.0.0.1", "SockServiceName": "7", "SockFamily": "IPv4",
               "SockType": "stream"}
        group = ["--socket-group", "zmqcat"]
        for listen, listeners, control, argv in (
                ("", path, BUS, []),
                ('listen = [ "/x/y" ];', {**path, "SockPathName": "/x/y"}, "/x/y", []),
                ('listen = [ "127.0.0.1:7" ];', tcp, BUS, []),
                ('listen = [ "[::1]:7" ];', {**tcp, "SockNodeName": "::1", "SockFamily": "IPv6"},
                 BUS, []),
                ('listen = [ "127.0.0.1:7" "/x/y" ];', {**path, "SockPathName": "/x/y"}, "/x/y",
                 group + ["--listen", "tcp://127.0.0.1:7"]),
                ("compatSocket = true;", path, BUS,
                 group + ["--listen", "unix:///tmp/zmqcat.sock"])):
            job = self.job(HUB + listen)
            self.assertEqual(job["Sockets"]["Listeners"], listeners, listen)
            self.assertEqual(job["Sockets"]["Control"]["SockPathName"], control + ".ctl", listen)
            self.assertEqual(self.command(HUB + listen)[1:], argv, listen)
        e = self.accepted(HUB + 'listen = [ "[::1]:7" ];')
        self.assertEqual(e["variables"], {"ZMQCAT_LISTEN": "tcp://[::1]:7"})

    def test_users(self):
        e = self.accepted(HUB + 'socketUsers = [ "alice" ];')
        user, group = e["users"]["users"]["zmqcat"], e["users"]["groups"]["zmqcat"]
        self.assertEqual((user["gid"], group["members"]), (group["gid"], ["zmqcat", "alice"]))
        self.assertEqual(e["known"], {"knownUsers": ["zmqcat"], "knownGroups": ["zmqcat"]})
        e = self.accepted(HUB + 'user = "bus"; group = "people";')
        self.assertEqual((e["users"], e["known"]), ({"users": {}, "groups": {}}, {
            "knownUsers": [], "knownGroups": []}))
        self.assertIn("install -d -m 0755 -o root -g people /var/lib/zmqcat-bus\n",
                      e["activation"]["launchd"])
        e = self.accepted(HUB + 'group = "staff";')
        self.assertEqual(e["users"]["users"]["zmqcat"]["gid"], 20)

    def test_directories(self):
        """What activation makes, made here."""
        root = harness.tempdir()
        for settings, modes in (
                (HUB, {"zmqcat": 0o700, "zmqcat-bus": 0o755}),
                (HUB + 'mailbox = "/var/lib/a b";', {"a b": 0o700}),
                (HUB + 'mailbox = "/var/lib/old/m.json";', {"old": 0o711})):
            script = self.accepted(settings)["activation"]["launchd"]
            os.makedirs(root + "/old", exist_ok=True)
            os.chmod(root + "/old", 0o711)  # it is there, and stays as it is
            script = script.replace("/var/lib/", root + "/")
            for owner in ("zmqcat", "root"):
                script = script.replace("-o %s -g zmqcat" % owner, "")
            subprocess.run(["/bin/sh", "-euc", script], check=True)
            for name, mode in modes.items():
                self.assertEqual(stat.S_IMODE(os.stat(os.path.join(root, name)).st_mode), mode)

    def test_every_option_is_described(self):
        shown = ev.options(self.lib, "darwin")
        self.assertEqual(set(shown) ^ set(ev.options(self.lib)),
                         {"logFile", "encryptedCredentials"})
        for name, option in shown.items():
            self.assertGreater(len(option.pop("description")), 20, name)
            self.assertEqual(option, {"type": True, "example": True, "default": True}, name)

    def test_configurations_of_the_go_program(self):
        self.assertEqual(self.command(GO_HUB)[1:], [
            "--socket-group", "zmqcat", "--listen", "unix:///tmp/zmqcat.sock", "--mailbox",
            "/var/lib/zmqcat/mailbox.json"])
        self.assertEqual(self.command(GO_SPOKE)[-2:],
                         ["--token-file", "/run/secrets/zmqcat-join-token"])
        job = self.job(GO_SPOKE + 'logFile = "/var/log/z.log";')
        self.assertEqual((job["StandardOutPath"], job["StandardErrorPath"]),
                         ("/var/log/z.log", "/var/log/z.log"))

    def test_warnings(self):
        warned = self.accepted(HUB + 'openFirewall = true; listen = [ "0.0.0.0:7" ];')["warnings"]
        self.assertEqual(len(warned), 1)
        self.assertIn("goes by programs", warned[0])
        # The program of Go ran as root.
        warned = self.accepted(GO_SPOKE)["warnings"]
        self.assertEqual(len(warned), 2, warned)
        self.assertIn('must belong to zmqcat: age.secrets.NAME.owner = "zmqcat"', warned[1])


class Module(Shared, unittest.TestCase):
    def test_stand_in_for_nix_darwin_is_strict(self):
        for config, what in (
                ("{ launchd.daemons.x.serviceConfig.NoSuch = 1; }", "NoSuch"),
                ("{ launchd.daemons.x.serviceConfig.Sockets.a.SockPathGroup = 1; }", "PathGroup"),
                ("{ systemd.services.x.after = [ ]; }", "does not exist"),
                ("{ users.users.x.home = \"/x\"; }", "uid")):
            got = ev.instantiate(ev.expression(HUB, system="darwin", module=(
                "{ imports = [ %s/nix/darwin.nix ]; config = %s; }" % (ROOT, config))))
            self.assertNotEqual(got.returncode, 0, config)
            self.assertIn(what, got.stderr)

    def test_programs_take_the_arguments(self):
        for system, settings in CASES.values():
            if system == "darwin":
                argv = ["root" if a == "people" else a for a in self.command(settings)]
                got = subprocess.run([os.path.join(BUILD, os.path.basename(argv[0])), *argv[1:],
                                      "--help"], text=True, capture_output=True)
                self.assertEqual((got.returncode, got.stderr), (0, ""), argv)


if NIXPKGS:
    class ModuleWithNixpkgs(Shared, unittest.TestCase):
        lib = NIXPKGS
else:
    harness.leave_out("ModuleWithNixpkgs", "neither ZMQCAT_NIXPKGS nor NIX_PATH names a nixpkgs")

if NIXPKGS and DARWIN:
    class ModuleInNixDarwin(unittest.TestCase):
        """With its real modules: the plist and the users that it would make."""
        maxDiff = None

        def test_plists(self):
            for case, (system, settings) in CASES.items():
                if system == "darwin":
                    e = ev.real_darwin(settings, NIXPKGS, DARWIN)
                    self.assertEqual(e["refused"], [], case)
                    (name, text), = e["plists"].items()
                    self.assertEqual(plistlib.loads(text.encode()),
                                     plistlib.loads(ev.files(case)[name].encode()), case)
                    self.assertIn("install -d -m 0700", e["activation"])

        def test_users(self):
            e = ev.real_darwin(HUB + 'socketUsers = [ "alice" ];', NIXPKGS, DARWIN)
            self.assertIn("sysadminctl -addUser zmqcat", e["users"])
            self.assertIn("GroupMembership zmqcat alice", e["groups"])
else:
    harness.leave_out("ModuleInNixDarwin", "neither ZMQCAT_NIX_DARWIN nor NIX_PATH names a "
                      "nix-darwin, or there is no nixpkgs")


if __name__ == "__main__":
    harness.main()
