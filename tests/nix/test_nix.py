#!/usr/bin/env python3
# quick
"""The NixOS module, off line and without nixpkgs: lib.nix stands for nixpkgs's lib and nixos.nix
for the options of NixOS that the module sets. The units that come out are the text that
systemd-analyze judges, say the same as systemd/*, and are kept under rendered/. Where
ZMQCAT_NIXPKGS or NIX_PATH names a nixpkgs, all is evaluated with its lib too.
"""
import contextlib, io, json, os, re, shutil, subprocess, unittest
from unittest import mock

import evaluate as ev
from evaluate import (CASES, GO_HUB, GO_SPOKE, HUB, HUB_ALL, KEY, LINUX, OTHER, SPOKE, SPOKE_ALL,
                      harness, keys, words)
from harness import BUILD, ROOT
from rows import ARGUMENTS, OTHER_OPTIONS, Rows, listen, mailbox

NIXPKGS = ev.nixpkgs()
NOT_FOUND = "neither ZMQCAT_NIXPKGS nor NIX_PATH names a nixpkgs"


def setUpModule():
    ev.need_nix()


def shipped(name):
    with open(os.path.join(ROOT, "systemd", name)) as f:
        return f.read().replace("@BINDIR@", "/nowhere/bin")


class Shared(Rows):
    """What is evaluated with our lib, and with that of nixpkgs."""
    maxDiff = None
    lib = None
    system = "nixos"
    refused_here = [
        (listen("/" + "x" * 107), "xxx", "at most 107 bytes"),
        (listen("/run/zmqcat"), "is in the way", '"unix:///run/'),
        (listen("/run/zmqcat/control.sock"), "is in the way", '"unix:///run/'),
        (mailbox("/var/lib/zmqcat-bus"), "cannot be written", "/var/lib/zmqcat/mailbox"),
        (HUB + "encryptedCredentials = true;", "encryptedCredentials: no file", "keyFile = "),
        (HUB + 'encryptedCredentials = true; keyFile = "/var/lib/zmqcat/k";',
         "encryptedCredentials: no file", "keyFile = "),
        (HUB + 'user = "nobody2";', "nobody defines", "users.users.nobody2 = {"),
        (SPOKE + 'group = "nobody2";', "nobody defines", "users.groups.nobody2 = { };")]
    wrong_here = [(HUB + 'logFile = "/a";', "services.zmqcat.logFile' does not exist")]

    def argv(self, evaluated):
        unit = next(t for n, t in evaluated["units"].items() if n.endswith(".service"))
        return keys(unit, "Service")["ExecStart"][0].split()[1:]

    def evaluate(self, settings, **more):
        return ev.evaluate(settings, lib=self.lib, **more)

    def accepted(self, settings, **more):
        e = self.evaluate(settings, **more)
        self.assertEqual(e["refused"], [], settings)
        return e

    def service(self, settings):
        units = self.accepted(settings)["units"]
        return keys(next(t for n, t in units.items() if n.endswith(".service")), "Service")

    def command(self, settings):
        return self.service(settings)["ExecStart"][0].split()[1:]

    def warned(self, settings):
        return self.accepted(settings)["warnings"]

    def disabled(self):
        return ev.value(ev.expression("", lib=self.lib).replace("enable = true", "enable = false"))

    def test_disabled_sets_nothing(self):
        e = self.disabled()
        users = e.pop("users")  # those of the configuration around
        self.assertEqual((list(users["users"]), list(users["groups"])), (["bus"], ["people"]))
        self.assertEqual(e, {"refused": [], "warnings": [], "packages": [], "units": {},
                             "services": {}, "sockets": {}, "tmpfiles": {}, "ports": [],
                             "etc": {}})

    def test_rendered(self):
        """A difference is reviewed, and accepted by `make accept-units`."""
        for case, (system, _) in CASES.items():
            if system == "nixos":
                got, folder = ev.files(case, self.lib), os.path.join(ev.RENDERED, case)
                self.assertEqual(sorted(got), sorted(os.listdir(folder)), case)
                for name, text in got.items():
                    with open(os.path.join(folder, name)) as f:
                        self.assertEqual(text, f.read(), "make accept-units? " + f.name)

    def test_every_option_is_described(self):
        shown = ev.options(self.lib)
        self.assertEqual(set(shown), set(self.alone("hub")) | OTHER_OPTIONS)
        for name, option in shown.items():
            self.assertGreater(len(option.pop("description")), 20, name)
            self.assertEqual(option, {"type": True, "example": True, "default": True}, name)

    def test_units_say_the_same_as_those_of_make_install(self):
        hub = self.accepted(HUB + 'local = true; mailbox = "/var/lib/zmqcat/mailbox";')
        spoke = self.accepted(SPOKE)
        seen = 0
        for who, e in (("hub", hub), ("spoke", spoke)):
            self.assertEqual(len(e["units"]), 3)
            for name, text in e["units"].items():
                kind = "Service" if name.endswith(".service") else "Socket"
                wanted, got = keys(shipped(name), kind), keys(text, kind)
                if kind == "Service":
                    wanted["Sockets"], got["Sockets"] = words(wanted["Sockets"]), got["Sockets"]
                if name == "zmqcat-spoke.service":
                    self.assertEqual(wanted["LoadCredential"], ["token"])
                    wanted["LoadCredential"] = ["token:/run/secrets/token"]
                    self.assertEqual(wanted["SetCredential"], ["token:missing:"])
                    wanted["SetCredential"] = ["token:missing:/run/secrets/token"]
                self.assertEqual(got, wanted, name)
                wanted, got = keys(shipped(name), "Unit"), keys(text, "Unit")
                for key in ("Requires", "Wants", "StartLimitIntervalSec", "Documentation"):
                    self.assertEqual(words(got.get(key)), words(wanted.get(key)), name)
                if kind == "Service":
                    self.assertEqual(words(got["After"]), words(wanted["After"]), name)
                seen += 1
            self.assertEqual(e["services"], {"zmqcat-" + who: {
                "wantedBy": ["multi-user.target"], "aliases": ["zmqcat.service"]}})
            self.assertEqual(set(map(tuple, e["sockets"].values())), {("sockets.target",)})
            self.assertEqual(e["packages"], ["/nowhere"])
        self.assertEqual(seen, 6)

    def test_command_lines(self):
        for settings, wanted in (
                (HUB, ""),
                (HUB + 'keyFile = "/var/lib/zmqcat/h.key";', "--key-file /var/lib/zmqcat/h.key"),
                (HUB + 'mailbox = "/srv/a%b$c \\"d";', '--mailbox "/srv/a%%b$$c \\"d"'),
                (HUB + 'allow = [ "%s" ]; allowFile = "/etc/a";' % KEY,
                 "--allow %s --allow-file /etc/a" % KEY),
                (HUB + 'heartbeat = "";', ""),
                (HUB + "region = 3;", "--region 3"),
                (HUB + 'extraArgs = [ "--name" "a b" "--name" "%h$x" "--name=\\\\" ];',
                 '--name "a b" --name "%%h$$x" "--name=\\\\"'),
                (SPOKE, ""),
                (SPOKE + 'keyFile = "/var/lib/zmqcatx";', "--key-file %d/key")):
            self.assertEqual(self.command(settings), wanted.split(), settings)

    def test_allow_list_changes_without_a_restart(self):
        """R9: its text is a file that is reloaded; the command line stays."""
        one = self.accepted(HUB + 'allow = [ "%s" ];' % KEY)
        two = self.accepted(HUB + 'allow = [ "%s" "%s" ];' % (KEY, OTHER))
        self.assertEqual(two["etc"], {"zmqcat/allow": "%s\n%s\n" % (KEY, OTHER)})
        a, b = (e["units"]["zmqcat-hub.service"] for e in (one, two))
        differing = [l for l in a.splitlines() if l not in b.splitlines()]
        self.assertEqual([l.split("=")[0] for l in differing], ["X-Reload-Triggers"])
        self.assertIn("ExecReload", keys(b, "Service"))

    def test_a_switch_keeps_the_sockets(self):
        """R9, R11: the service is restarted, not stopped with its sockets and started again; who
        may use the bus is no matter of the units."""
        for settings in (HUB, SPOKE):
            e = self.accepted(settings)
            unit = keys(next(t for n, t in e["units"].items() if ".service" in n), "Unit")
            self.assertEqual(unit["X-StopIfChanged"], ["no"])
            sockets = [n for n in e["units"] if n.endswith(".socket")]
            self.assertEqual(sorted(words(unit["After"])[:2]), sorted(sockets))
            more = self.accepted(settings + 'socketUsers = [ "alice" ];')
            self.assertEqual(more["units"], e["units"])
            self.assertEqual(more["users"]["groups"]["zmqcat"]["members"], ["alice"])

    def test_secrets_are_credentials(self):
        s = self.service('role = "spoke"; tokenFile = "/run/%t"; keyFile = "/run/%k";')
        self.assertEqual(s["LoadCredential"], ["token:/run/%%t", "key:/run/%%k"])
        # A value is no place for %, other than a path.
        self.assertEqual(s["SetCredential"], ["token:missing:/run/%t", "key:missing:/run/%k"])
        self.assertEqual(s["ExecStart"][0].split()[1:], ["--key-file", "%d/key"])
        for key in ("LoadCredential", "SetCredential"):
            self.assertNotIn(key, self.service(HUB))

    def test_encrypted_credentials(self):
        """Files of systemd-creds may lie in the store, also by a path without quotes."""
        sealed, store = "encryptedCredentials = true; ", "/nix/store/" + "0" * 32 + "-token"
        s = self.service(sealed + 'role = "spoke"; tokenFile = "/run/t%"; keyFile = "/run/k";')
        self.assertEqual(s["LoadCredentialEncrypted"], ["token:/run/t%%", "key:/run/k"])
        self.assertEqual(s["SetCredential"], ["token:missing:/run/t%", "key:missing:/run/k"])
        self.assertNotIn("LoadCredential", s)
        s = self.service(sealed + HUB + 'keyFile = "/run/k";')
        self.assertEqual(s["LoadCredentialEncrypted"], ["key:/run/k"])
        self.assertEqual(s["ExecStart"][0].split()[1:], ["--key-file", "%d/key"])
        s = self.service(sealed + 'role = "spoke"; tokenFile = "%s";' % store)
        self.assertEqual(s["LoadCredentialEncrypted"], ["token:" + store])
        self.assertNotIn("LoadCredentialEncrypted", self.service(SPOKE))

    def test_mailbox_elsewhere_is_made_and_writable(self):
        """H13."""
        e = self.accepted(HUB + 'mailbox = "/srv/m"; user = "bus"; group = "people";')
        text = e["units"]["zmqcat-hub.service"]
        self.assertEqual(keys(text, "Service")["ReadWritePaths"], ['"/srv/m"'])
        self.assertEqual(keys(text, "Unit")["RequiresMountsFor"], ['"/srv/m"'])
        self.assertEqual(e["tmpfiles"], {"10-zmqcat": {"/srv/m": {"d": {
            "mode": "0700", "user": "bus", "group": "people"}}}})
        e = self.accepted(HUB + 'mailbox = "/var/lib/zmqcat/m";')
        self.assertEqual(e["tmpfiles"], {})
        self.assertNotIn("ReadWritePaths", e["units"]["zmqcat-hub.service"])

    def test_users(self):
        """H14: a human joins the group."""
        e = self.accepted(HUB + 'socketUsers = [ "alice" ];')
        self.assertEqual(e["users"]["users"]["zmqcat"]["group"], "zmqcat")
        self.assertTrue(e["users"]["users"]["zmqcat"]["isSystemUser"])
        self.assertEqual(e["users"]["groups"]["zmqcat"], {"members": ["alice"]})
        e = self.accepted(HUB + 'user = "bus"; group = "people";')
        self.assertEqual(e["users"], self.disabled()["users"])
        service = keys(e["units"]["zmqcat-hub.service"], "Service")
        socket = keys(e["units"]["zmqcat-hub.socket"], "Socket")
        self.assertEqual((service["User"], service["Group"], socket["SocketGroup"]),
                         (["bus"], ["people"], ["people"]))
        e = self.accepted(HUB + 'group = "people"; socketUsers = [ "alice" ];')
        self.assertEqual(e["users"]["groups"], {"people": {"members": ["alice"]}})
        e = self.accepted(HUB + 'group = "others"; socketUsers = [ "alice" ];')
        self.assertEqual(e["users"]["groups"]["others"], {"members": ["alice"]})

    def streams(self, settings):
        unit = self.accepted(settings)["units"]["zmqcat-hub.socket"]
        return keys(unit, "Socket")["ListenStream"]

    def test_listen(self):
        self.assertEqual(
            self.streams(HUB + 'listen = [ "unix:///run/a%b" "/run/c" "tcp://127.0.0.1:1" '
                         '"[::1]:02" "/run/c" ];'),
            ["/run/a%%b", "/run/c", "127.0.0.1:1", "[::1]:2"])
        longest = "/" + "x" * 106
        self.assertEqual(self.streams(HUB + 'listen = [ "%s" ];' % longest), [longest])

    def test_compat_socket(self):
        usual, old = "/run/zmqcat/zmqcat.sock", "/tmp/zmqcat.sock"
        for settings, wanted in ((HUB, [usual]), (HUB + "compatSocket = true;", [usual, old]),
                                 (GO_HUB, [usual, old]),
                                 (GO_HUB + "compatSocket = false;", [usual]),
                                 (GO_HUB + 'listen = "/run/x";', ["/run/x"]),
                                 (HUB + 'compatSocket = true; listen = "%s";' % old, [old])):
            self.assertEqual(self.streams(settings), wanted, settings)

    def test_firewall(self):
        listen = ('listen = [ "/a" "127.0.0.2:1" "[::1]:2" "192.0.2.1:3" "0.0.0.0:4" "[::]:5" '
                  '"[2001:db8::1]:6" "[0:0:0:0:0:0:0:1]:7" ];')
        open_ = self.accepted(HUB + listen + "openFirewall = true;")
        self.assertEqual(open_["ports"], [3, 4, 5, 6])
        self.assertEqual(self.accepted(HUB + listen)["ports"], [])

    def test_configurations_of_the_go_program(self):
        """They go on working, and say what is better."""
        hub = self.accepted(GO_HUB)
        self.assertEqual(len(hub["warnings"]), 2, hub["warnings"])
        self.assertIn('write "hub" for "serve"', hub["warnings"][0])
        self.assertIn("move it to /var/lib/zmqcat/mailbox and", hub["warnings"][1])
        self.assertEqual(self.command(GO_HUB), ["--mailbox", "/var/lib/zmqcat/mailbox.json"])
        local = self.accepted('role = "serve"; local = true;')
        self.assertEqual(len(local["warnings"]), 1)
        self.assertEqual(self.evaluate(""), self.evaluate(HUB))  # its default
        self.assertEqual(self.warned(GO_SPOKE), [
            'services.zmqcat.role: write "spoke" for "join". /tmp/zmqcat.sock is then there with\n'
            "compatSocket = true only."])
        full = GO_HUB + """listen = "unix:///tmp/bus.sock"; allow = [ "%s" ]; user = "zmqcat";
            group = "zmqcat"; local = false; extraArgs = [ "--forward" "5432" "--quiet" ];""" % KEY
        warned = self.warned(full)
        self.assertEqual(len(warned), 4, warned)
        self.assertIn('write a list: [ "unix:///tmp/bus.sock" ]', warned[1])
        self.assertIn("write --forward as services.zmqcat.forward", warned[3])
        self.assertEqual(self.command(full)[-3:], ["--forward", "5432", "--quiet"])
        self.assertEqual(self.streams(full), ["/tmp/bus.sock"])

    def test_mailbox_file_of_the_go_program_elsewhere(self):
        """It becomes a directory, so the service writes beside it; what is there stays."""
        e = self.accepted(HUB + 'mailbox = "/srv/bus/box.json";')
        self.assertEqual(e["tmpfiles"], {"10-zmqcat": {"/srv/bus": {"d": {
            "mode": ":0700", "user": ":zmqcat", "group": ":zmqcat"}}}})
        unit = keys(e["units"]["zmqcat-hub.service"], "Service")
        self.assertEqual(unit["ReadWritePaths"], ['"/srv/bus"'])

    def test_warnings(self):
        for settings, what in (
                (SPOKE + 'heartbeat = "9s";', "heartbeat is for a hub"),
                (HUB + "openFirewall = true;", "spokes\nneed no open port"),
                (HUB + 'extraArgs = [ "--fsync=never" ];', "--fsync as services.zmqcat.fsync"),
                (HUB + 'listen = "/a";', 'write a list: [ "/a" ]')):
            warned = self.warned(settings)
            self.assertEqual(len(warned), 1, (settings, warned))
            self.assertIn(what, warned[0])

    def test_a_second_unit_beside_the_alias(self):
        """As an agenix user of the Go program may have written it."""
        e = self.evaluate(SPOKE, module="{ imports = [ %s/nix/nixos.nix ]; config = { "
                          'systemd.services.zmqcat.restartTriggers = [ "x" ]; }; }' % ROOT)
        self.assertEqual(len(e["refused"]), 1)
        self.assertIn("Write\nsystemd.services.zmqcat-spoke.", e["refused"][0])

    def test_other_modules_may_override(self):
        e = self.accepted(HUB, module="{ lib, ... }: { imports = [ %s/nix/nixos.nix ]; config = { "
                          "systemd.services.zmqcat-hub.serviceConfig.WatchdogSec = "
                          "lib.mkForce 60; "
                          "services.zmqcat.user = lib.mkDefault \"bus\"; }; }" % ROOT)
        service = keys(e["units"]["zmqcat-hub.service"], "Service")
        self.assertEqual((service["WatchdogSec"], service["User"]), (["60"], ["bus"]))

    def test_readme(self):
        """What README.md shows is accepted."""
        with open(os.path.join(ROOT, "README.md")) as f:
            shown = re.findall(r"^```nix\nservices.zmqcat = \{\n(.*?)^\};\n```$", f.read(),
                               re.M | re.S)
        self.assertEqual(len(shown), 2)
        for settings in shown:
            self.assertEqual(self.warned(settings.replace("enable = true;", "")), [])


class Module(Shared, unittest.TestCase):
    def test_stand_in_for_nixos_is_strict(self):
        """The tests above can fail: what NixOS would refuse is refused here."""
        for config, what in (("{ systemd.services.x.noSuch = 1; }", "noSuch"),
                             ("{ networking.firewal.enable = true; }", "does not exist"),
                             ('{ systemd.services.x.after = "a"; }', "systemd.services.x.after"),
                             ("{ systemd.services.x.serviceConfig.A = null; }", "Config.A")):
            got = ev.instantiate(ev.expression(
                HUB, module="{ imports = [ %s/nix/nixos.nix ]; config = %s; }" % (ROOT, config)))
            self.assertNotEqual(got.returncode, 0, config)
            self.assertIn(what, got.stderr)

    def test_programs_take_the_arguments(self):
        """--help comes last, so all before it was looked at."""
        for settings in (HUB_ALL, SPOKE_ALL, HUB + "local = true;",
                         *(HUB + s for s, _ in self.alone("hub").values())):
            line = self.service(settings)["ExecStart"][0].replace("%d", "/run").replace("%%", "%")
            argv = json.loads(ev.nix("python3", "-c", "import json, shlex, sys; "
                                     "print(json.dumps(shlex.split(sys.argv[1])))",
                                     line.replace("$$", "$")).stdout)
            got = subprocess.run([os.path.join(BUILD, os.path.basename(argv[0])), *argv[1:],
                                  "--help"], text=True, capture_output=True)
            self.assertEqual((got.returncode, got.stderr), (0, ""), argv)

    def test_accept(self):
        """`make accept-units` makes what is kept, and leaves nothing else."""
        folder = os.path.join(harness.tempdir(), "rendered")
        os.mkdir(folder)
        harness.write_file(os.path.join(folder, "old"), "")
        with mock.patch.object(ev, "RENDERED", folder):
            with contextlib.redirect_stdout(io.StringIO()):
                ev.accept()
        got = subprocess.run(["diff", "-r", ev.RENDERED, folder], capture_output=True, text=True)
        self.assertEqual((got.returncode, got.stdout, got.stderr), (0, "", ""))

    def test_arguments_are_those_of_the_daemons(self):
        """The tables of arguments.nix have each option of --help, and what the daemon takes."""
        for role, line in ARGUMENTS.items():
            program = os.path.join(BUILD, "zmqcat-" + role)
            said = subprocess.run([program, "--help"], text=True, capture_output=True).stdout
            shown = {name: value != "" for name, value in
                     re.findall(r"(?m)^  --([a-z-]+)( [^ ])?", said) if name != "help"}
            table = ev.value("builtins.mapAttrs (_: v: v != null) "
                             "(import %s/nix/arguments.nix).options.%s" % (ROOT, role))
            self.assertEqual(table, shown)
            self.assertEqual(set(re.findall(r"--([a-z-]+)", line)), set(shown))
            argv = line.split()
            self.assertEqual(ev.value("(import %s/nix/arguments.nix).unknown \"%s\" %s" % (
                ROOT, role, json.dumps(argv).replace(",", ""))), [])
            got = subprocess.run([program, *argv, "--help"], text=True, capture_output=True)
            self.assertEqual((got.returncode, got.stderr), (0, ""))

    def test_files_that_are_no_secret_may_come_from_the_configuration(self):
        folder = harness.tempdir()
        store = os.path.join(folder, "nix")
        os.mkdir(store)
        harness.write_file(folder + "/list", KEY + "\n")
        e = self.evaluate(HUB + "allowFile = %s/list; derpMap = %s/list;" % (folder, folder),
                          store=store)
        self.assertEqual(e["refused"], [])
        argv = keys(e["units"]["zmqcat-hub.service"], "Service")["ExecStart"][0].split()[1:]
        self.assertEqual(argv[::2], ["--allow-file", "--derp-map"])
        for path in argv[1::2]:
            self.assertTrue(path.startswith(store + "/store/"), path)
            with open(path) as f:
                self.assertEqual(f.read(), KEY + "\n")
        e = self.evaluate('role = "spoke"; tokenFile = %s/list; encryptedCredentials = true;'
                          % folder, store=store)
        self.assertEqual(e["refused"], [])
        sealed = keys(e["units"]["zmqcat-spoke.service"], "Service")["LoadCredentialEncrypted"]
        self.assertTrue(sealed[0].startswith("token:%s/store/" % store), sealed)
        # A secret by the same way is refused, also as text.
        for value in ('"${%s/list}"', 'builtins.toFile "x" "y" + "%.0s"'):
            e = self.evaluate('role = "spoke"; tokenFile = %s;' % value % folder, store=store)
            self.assertIn("everybody can read", e["refused"][0])
        subprocess.run(["chmod", "-R", "u+w", folder], check=True)


if NIXPKGS:
    class ModuleWithNixpkgs(Shared, unittest.TestCase):
        lib = NIXPKGS

        def test_documentation(self):
            """What NixOS makes a manual of."""
            shown = ev.value("""
                let
                    lib = import %s;
                    evaluated = lib.evalModules {
                        modules = [
                            { inherit (import %s/nixos.nix { inherit lib; }) options; }
                            %s/nix/nixos.nix
                        ];
                        specialArgs.pkgs = { };
                    };
                in map (o: { inherit (o) name description type; default = o.default.text; })
                    (builtins.filter (o: o.visible && !o.internal)
                        (lib.optionAttrSetToDocList evaluated.options.services.zmqcat))"""
                             % (NIXPKGS, ev.HERE, ROOT))
            self.assertEqual({o["name"].split(".")[-1] for o in shown},
                             set(self.alone("hub")) | OTHER_OPTIONS)
            for option in shown:
                self.assertNotIn("unspecified", option["type"])
else:
    harness.leave_out("ModuleWithNixpkgs", NOT_FOUND)


class Analyzed(unittest.TestCase):
    """The rendered text before systemd."""

    def setUp(self):
        if shutil.which("systemd-analyze") is None:
            harness.skip("no systemd-analyze")
        if not os.access("/run/systemd", os.F_OK) and not os.access("/run", os.W_OK):
            harness.skip("systemd-analyze wants /run/systemd")

    def render(self, settings):
        folder = harness.tempdir()
        os.mkdir(folder + "/bin")
        for name in ("zmqcat", "zmqcat-hub", "zmqcat-spoke"):
            os.symlink("/bin/true", folder + "/bin/" + name)
        units = ev.evaluate(settings, package=folder)["units"]
        for name, text in units.items():
            harness.write_file(os.path.join(folder, name), text, 0o644)
        return folder, sorted("./" + n for n in units)

    def analyze(self, folder, *args):
        env = dict(os.environ, SYSTEMD_UNIT_PATH=folder + ":")
        return subprocess.run(["systemd-analyze"] + list(args), cwd=folder, env=env, text=True,
                              capture_output=True)

    def test_verify_and_exposure(self):
        cases = [s for system, s in CASES.values() if system == "nixos"]
        for settings in cases + [SPOKE + 'keyFile = "/run/a b%c"; listen = [ "/run/a%b" ];']:
            folder, names = self.render(settings)
            got = self.analyze(folder, "verify", "--man=no", *names)
            self.assertEqual((got.returncode, got.stdout, got.stderr), (0, "", ""), settings)
            service = next(n for n in names if n.endswith(".service"))
            got = self.analyze(folder, "security", "--offline=true", "--threshold=15",
                               "--no-pager", service)
            self.assertEqual(got.returncode, 0, got.stdout[-300:] + got.stderr)

    def test_verify_would_speak(self):
        folder, names = self.render(HUB)
        with open(os.path.join(folder, "zmqcat-hub.service"), "a") as f:
            f.write("NoSuchKey=1\n")
        self.assertIn("NoSuchKey", self.analyze(folder, "verify", "--man=no", *names).stderr)

    def test_tmpfiles(self):
        """The lines that NixOS makes of the mailbox's directory."""
        if os.geteuid() != 0:
            harness.skip("needs root to make what belongs to others")
        for settings, modes in ((HUB + 'mailbox = "/srv/bus/m"; user = "root"; group = "root";',
                                 [0o700, 0o700]),
                                (HUB + 'mailbox = "/srv/bus/m.json"; user = "root"; '
                                 'group = "root";', [0o700, 0o755])):
            root = harness.tempdir()
            (path, rule), = ev.evaluate(settings)["tmpfiles"]["10-zmqcat"].items()
            line = "d '%s' '%s' '%s' '%s' '-' -\n" % (path, *(rule["d"][k] for k in ("mode", "user",
                                                                            "group")))
            found = []
            for _ in modes:
                subprocess.run(["systemd-tmpfiles", "--create", "--root=" + root, "-"], input=line,
                               text=True, check=True)
                found.append(os.stat(root + path).st_mode & 0o777)
                os.chmod(root + path, 0o755)
            self.assertEqual(found, modes, settings)


if __name__ == "__main__":
    harness.main()
