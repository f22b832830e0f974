#!/usr/bin/env python3
"""The NixOS module, the package and the flake, off line and without nixpkgs.

lib.nix stands for nixpkgs's lib and nixos.nix for the options of NixOS that the module sets. The
units that come out are the text that systemd-analyze judges, and say the same as systemd/*. Not
seen here: the real nixpkgs.
"""
import json, os, re, shutil, subprocess, sys, unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
from harness import BUILD, LONG, ROOT, SLOW

HERE = os.path.dirname(os.path.abspath(__file__))
SYSTEMS = ["aarch64-darwin", "aarch64-linux", "x86_64-darwin", "x86_64-linux"]
KEY = "nodekey:" + "0123456789abcdef" * 4
HUB = 'role = "hub"; '
SPOKE = 'role = "spoke"; tokenFile = "/run/secrets/token"; '
CONFIG = """build-users-group =
substituters =
sandbox = false
experimental-features = nix-command flakes
"""


def setUpModule():
    if shutil.which("nix-instantiate") is None:
        harness.skip("no nix-instantiate: make deps installs it")


def nix(*argv, store=None, cwd=None, timeout=60):
    """Runs a nix command; with a store, everything it writes is there."""
    env = dict(os.environ, NIX_CONFIG=CONFIG)
    for name in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS"):
        env.pop(name, None)
    if store:
        env.update(HOME=store, XDG_CACHE_HOME=store + "/cache", NIX_STORE_DIR=store + "/store",
                   NIX_STATE_DIR=store + "/state", NIX_LOG_DIR=store + "/log",
                   NIX_LOCALSTATE_DIR=store + "/local", NIX_CONF_DIR=store + "/conf", TMPDIR=store)
    return subprocess.run(argv, env=env, cwd=cwd, text=True, capture_output=True,
                          stdin=subprocess.DEVNULL, timeout=timeout * SLOW)


def instantiate(settings, package="/nowhere", module=None):
    argv = ["nix-instantiate", "--store", "dummy://", "--eval", "--strict", "--json",
            os.path.join(HERE, "eval.nix"), "--arg", "settings", "{ enable = true; %s }" % settings,
            "--argstr", "package", package]
    return nix(*argv, *(["--arg", "module", module] if module else []), cwd="/")


def evaluate(settings, **more):
    got = instantiate(settings, **more)
    if got.returncode != 0:
        raise AssertionError("%s\n%s" % (settings, got.stderr))
    return json.loads(got.stdout)


def keys(text, section):
    """{key: values} of a section of a unit, with yes and no for booleans."""
    body = re.search(r"^\[%s\]\n(.*?)(?=^\[|\Z)" % section, text, re.M | re.S).group(1)
    found = {}
    for line in body.splitlines():
        if line and line[0] not in "#;":
            key, value = line.split("=", 1)
            value = {"true": "yes", "false": "no"}.get(value, value)
            found.setdefault(key, []).append(value)
    return found


def words(values):
    return " ".join(values or []).split()


def shipped(name):
    with open(os.path.join(ROOT, "systemd", name)) as f:
        return f.read()


class Module(unittest.TestCase):
    maxDiff = None

    def service(self, settings):
        e = evaluate(settings)
        self.assertEqual(e["refused"], [], settings)
        name = next(n for n in e["units"] if n.endswith(".service"))
        return keys(e["units"][name], "Service")

    def command(self, settings):
        return self.service(settings)["ExecStart"][0].split(" ", 1)[1:]

    def test_disabled_sets_nothing(self):
        got = nix("nix-instantiate", "--store", "dummy://", "--eval", "--strict", "--json",
                  os.path.join(HERE, "eval.nix"), "--arg", "settings", "{ }")
        self.assertEqual(got.returncode, 0, got.stderr)
        e = json.loads(got.stdout)
        self.assertEqual((e["units"], e["packages"], e["refused"], e["users"]["users"]),
                         ({}, [], [], {}))

    def test_units_say_the_same_as_those_of_make_install(self):
        hub = evaluate(HUB + 'local = true; mailbox = "/var/lib/zmqcat/mailbox";')
        spoke = evaluate(SPOKE)
        seen = 0
        for who, e in (("hub", hub), ("spoke", spoke)):
            self.assertEqual(len(e["units"]), 3)
            for name, text in e["units"].items():
                kind = "Service" if name.endswith(".service") else "Socket"
                wanted, got = keys(shipped(name), kind), keys(text, kind)
                if kind == "Service":
                    wanted["ExecStart"] = [wanted["ExecStart"][0].replace("@BINDIR@",
                                                                          "/nowhere/bin")]
                    got["ExecStart"] = [got["ExecStart"][0].replace('"', "")]
                    wanted["Sockets"], got["Sockets"] = words(wanted["Sockets"]), got["Sockets"]
                if name == "zmqcat-spoke.service":
                    self.assertEqual(wanted["LoadCredential"], ["token"])
                    wanted["LoadCredential"] = ["token:/run/secrets/token"]
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

    def test_roles_of_the_go_program(self):
        self.assertEqual(evaluate('role = "serve";'), evaluate(HUB))
        self.assertEqual(evaluate(SPOKE.replace("spoke", "join")), evaluate(SPOKE))

    def test_command_lines(self):
        for settings, wanted in (
                (HUB, []),
                (HUB + "local = true;", ["--local"]),
                (HUB + 'allow = [ "%s" "%s" ];' % (KEY, KEY),
                 ['--allow "%s" --allow "%s"' % (KEY, KEY)]),
                (HUB + 'keyFile = "/var/lib/zmqcat/h.key";',
                 ['--key-file "/var/lib/zmqcat/h.key"']),
                (HUB + 'keyFile = "/run/secrets/key";', ["--key-file %d/key"]),
                (HUB + 'mailbox = "/srv/a%b$c \\"d";', ['--mailbox "/srv/a%%b$$c \\"d"']),
                (SPOKE, []),
                (SPOKE + 'keyFile = "/var/lib/zmqcatx";', ["--key-file %d/key"])):
            self.assertEqual(self.command(settings), wanted, settings)

    def test_programs_have_the_options(self):
        for settings in (HUB + 'allow = [ "%s" ]; keyFile = "/k"; mailbox = "/srv/m";' % KEY,
                         HUB + "local = true;", SPOKE + 'keyFile = "/k";'):
            argv = self.service(settings)["ExecStart"][0].split()
            program = os.path.join(BUILD, os.path.basename(argv[0]))
            shown = subprocess.run([program, "--help"], text=True, capture_output=True).stdout
            for option in (a for a in argv if a.startswith("--")):
                self.assertRegex(shown, r"(?m)^ +%s\b" % option)

    def test_secrets_are_credentials(self):
        s = self.service(SPOKE + 'keyFile = "/run/%k";')
        self.assertEqual(s["LoadCredential"], ["token:/run/secrets/token", "key:/run/%%k"])
        self.assertNotIn("secrets", s["ExecStart"][0])
        self.assertNotIn("LoadCredential", self.service(HUB))

    def test_mailbox_elsewhere_is_made_and_writable(self):
        e = evaluate(HUB + 'mailbox = "/srv/m"; user = "bus"; group = "people";')
        text = e["units"]["zmqcat-hub.service"]
        self.assertEqual(keys(text, "Service")["ReadWritePaths"], ['"/srv/m"'])
        self.assertEqual(keys(text, "Unit")["RequiresMountsFor"], ['"/srv/m"'])
        self.assertEqual(e["tmpfiles"], {"10-zmqcat": {"/srv/m": {"d": {
            "mode": "0700", "user": "bus", "group": "people"}}}})
        e = evaluate(HUB + 'mailbox = "/var/lib/zmqcat/m";')
        self.assertEqual(e["tmpfiles"], {})
        self.assertNotIn("ReadWritePaths", e["units"]["zmqcat-hub.service"])

    def test_users(self):
        e = evaluate(HUB)
        self.assertEqual(e["users"]["users"]["zmqcat"]["group"], "zmqcat")
        self.assertTrue(e["users"]["users"]["zmqcat"]["isSystemUser"])
        self.assertEqual(list(e["users"]["groups"]), ["zmqcat"])
        e = evaluate(HUB + 'user = "bus"; group = "people";')
        self.assertEqual((e["users"]["users"], e["users"]["groups"]), ({}, {}))
        service = keys(e["units"]["zmqcat-hub.service"], "Service")
        socket = keys(e["units"]["zmqcat-hub.socket"], "Socket")
        self.assertEqual((service["User"], service["Group"], socket["SocketGroup"]),
                         (["bus"], ["people"], ["people"]))

    def test_listen(self):
        e = evaluate(HUB + 'listen = [ "unix:///run/a%b" "/run/c" "tcp://127.0.0.1:1" "[::1]:2" ];')
        self.assertEqual(e["refused"], [])
        self.assertEqual(keys(e["units"]["zmqcat-hub.socket"], "Socket")["ListenStream"],
                         ["/run/a%%b", "/run/c", "127.0.0.1:1", "[::1]:2"])

    def test_refused_with_what_to_write_instead(self):
        store = "/nix/store/" + "0" * 32 + "-token"
        for settings, what, instead in (
                ('role = "spoke";', "tokenFile: a spoke needs", "tokenFile = "),
                (HUB + 'tokenFile = "/run/t";', "tokenFile is for a spoke", 'keyFile = "/run/t"'),
                (SPOKE + 'allow = [ "%s" ];' % KEY, "allow is for a hub", "remove it"),
                (SPOKE + 'mailbox = "/srv/m";', "mailbox is for a hub", "remove it"),
                (SPOKE + "local = true;", "local is for a hub", 'role = "hub"'),
                (HUB + 'local = true; allow = [ "%s" ];' % KEY, "allow is about", "local = false"),
                (HUB + 'local = true; keyFile = "/k";', "keyFile is about", "local = false"),
                ('role = "spoke"; tokenFile = "%s";' % store, "tokenFile: everybody can read",
                 '"/run/secrets/'),
                ('role = "spoke"; tokenFile = /etc/hostname;', "without quotes", '"/run/secrets/'),
                (HUB + 'keyFile = "%s";' % store, "keyFile: everybody can read", '"/run/secrets/'),
                (HUB + "keyFile = /etc/hostname;", "without quotes", '"/run/secrets/'),
                (HUB + 'keyFile = "/var/lib/zmqcat/../../../%s";' % store, "keyFile: write",
                 "without"),
                (HUB + 'mailbox = "/srv//m";', "mailbox: write", "without"),
                (HUB + 'allow = [ "" ];', "no node key", "small hex digits"),
                (HUB + 'allow = [ "%s" "%sa" ];' % (KEY, KEY), "no node key", "zmqcat nodekey"),
                (HUB + 'allow = [ "%s" ];' % KEY.upper(), "no node key", "small hex"),
                (HUB + 'allow = [ "%s\\n" ];' % KEY, "no node key", "small hex"),
                (HUB + "listen = [ ];", "cannot be listened on", "unix:///path"),
                (HUB + 'listen = [ "tcp://localhost:1" ];', "localhost", "tcp://127.0.0.1:port"),
                (HUB + 'listen = [ "./s" ];', "./s", "unix:///path"),
                (HUB + 'mailbox = "/home/me/m";', "cannot be written", "/var/lib/zmqcat/mailbox"),
                (HUB + 'mailbox = "/tmp";', "cannot be written", "/srv/zmqcat"),
                (HUB + 'mailbox = "%s";' % store, "cannot be written", "/srv/zmqcat"),
                (HUB + 'mailbox = "/var/lib/zmqcat";', "cannot be written", "/mailbox")):
            refused = evaluate(settings)["refused"]
            self.assertEqual(len(refused), 1, (settings, refused))
            self.assertIn(what, refused[0])
            self.assertIn(instead, refused[0])

    def test_wrong_types(self):
        for settings, what in (
                ('role = "both";', "services.zmqcat.role"), ("", "services.zmqcat.role"),
                (HUB + "local = 1;", "services.zmqcat.local"),
                (HUB + 'mailbox = "m";', "services.zmqcat.mailbox"),
                (HUB + 'user = "a b";', "services.zmqcat.user"),
                (HUB + 'group = "a\\nUser=root";', "services.zmqcat.group"),
                (HUB + 'allow = "%s";' % KEY, "services.zmqcat.allow"),
                (HUB + "tokenfile = null;", "services.zmqcat.tokenfile' does not exist")):
            got = instantiate(settings)
            self.assertNotEqual(got.returncode, 0, settings)
            self.assertIn(what, got.stderr)

    def test_readme(self):
        """What README.md shows is accepted."""
        with open(os.path.join(ROOT, "README.md")) as f:
            shown = re.findall(r"^```nix\nservices.zmqcat = \{\n(.*?)^\};\n```$", f.read(),
                               re.M | re.S)
        self.assertEqual(len(shown), 2)
        for settings in shown:
            self.assertEqual(evaluate(settings.replace("enable = true;", ""))["refused"], [])

    def test_stand_in_for_nixos_is_strict(self):
        """The tests above can fail: what NixOS would refuse is refused here."""
        for config, what in (("{ systemd.services.x.noSuch = 1; }", "noSuch"),
                             ("{ networking.firewal.enable = true; }", "does not exist"),
                             ('{ systemd.services.x.after = "a"; }', "systemd.services.x.after"),
                             ("{ systemd.services.x.serviceConfig.A = null; }", "serviceConfig.A")):
            got = instantiate(HUB, module="{ imports = [ %s/nix/module.nix ]; config = %s; }"
                              % (ROOT, config))
            self.assertNotEqual(got.returncode, 0, config)
            self.assertIn(what, got.stderr)

    def test_other_modules_may_override(self):
        e = evaluate(HUB, module="{ lib, ... }: { imports = [ %s/nix/module.nix ]; config = { "
                     "systemd.services.zmqcat-hub.serviceConfig.WatchdogSec = lib.mkForce 60; "
                     "services.zmqcat.user = lib.mkDefault \"bus\"; }; }" % ROOT)
        service = keys(e["units"]["zmqcat-hub.service"], "Service")
        self.assertEqual((service["WatchdogSec"], service["User"]), (["60"], ["bus"]))


class Analyzed(unittest.TestCase):
    """The rendered text before systemd."""

    def setUp(self):
        if shutil.which("systemd-analyze") is None:
            harness.skip("no systemd-analyze")

    def render(self, settings):
        folder = harness.tempdir()
        os.mkdir(folder + "/bin")
        for name in ("zmqcat-hub", "zmqcat-spoke"):
            os.symlink("/bin/true", folder + "/bin/" + name)
        units = evaluate(settings, package=folder)["units"]
        for name, text in units.items():
            harness.write_file(os.path.join(folder, name), text, 0o644)
        return folder, sorted("./" + n for n in units)

    def analyze(self, folder, *args):
        env = dict(os.environ, SYSTEMD_UNIT_PATH=folder + ":")
        return subprocess.run(["systemd-analyze"] + list(args), cwd=folder, env=env, text=True,
                              capture_output=True)

    def test_verify_and_exposure(self):
        for settings in (HUB, HUB + "local = true;", SPOKE, SPOKE + 'keyFile = "/run/a b%c";',
                         HUB + 'mailbox = "/srv/a b%c$d"; keyFile = "/k"; allow = [ "' + KEY +
                         '" ]; listen = [ "/run/a%b" "127.0.0.1:7" "[::1]:7" ];'):
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


class Flake(unittest.TestCase):
    def setUp(self):
        self.dir = harness.tempdir()
        self.stub = os.path.join(self.dir, "nixpkgs")
        self.flake = os.path.join(self.dir, "flake")
        self.store = os.path.join(self.dir, "nix")
        for folder in (self.stub, self.flake, self.store):
            os.mkdir(folder)
        shutil.copy(os.path.join(HERE, "stub.nix"), os.path.join(self.stub, "flake.nix"))
        shutil.copy(os.path.join(HERE, "lib.nix"), self.stub)
        shutil.copy(os.path.join(ROOT, "flake.nix"), self.flake)
        shutil.copytree(os.path.join(ROOT, "nix"), os.path.join(self.flake, "nix"))

    def tearDown(self):
        # What a store holds is read-only.
        subprocess.run(["chmod", "-R", "u+w", self.dir], check=True)

    def nix(self, *words, timeout=60):
        got = nix("nix", *words, "--offline", "--override-input", "nixpkgs", "path:" + self.stub,
                  "--no-write-lock-file", store=self.store, timeout=timeout)
        self.assertEqual(got.returncode, 0, got.stderr[-3000:])
        return got.stdout

    def test_check(self):
        self.nix("flake", "check", "--no-build", "path:" + self.flake)

    def test_names(self):
        """What a flake that uses ours refers to."""
        shown = json.loads(self.nix("flake", "show", "--json", "path:" + self.flake))
        for output in ("packages", "checks", "devShells", "formatter"):
            self.assertEqual(sorted(shown[output]), SYSTEMS, output)
        for system in SYSTEMS:
            self.assertEqual(sorted(shown["packages"][system]), ["default", "zmqcat"])
            self.assertIn("default", shown["devShells"][system])
            self.assertNotEqual(shown["checks"][system], {})
        self.assertIn("default", shown["overlays"])
        self.assertIn("default", shown["nixosModules"])

    def test_version(self):
        with open(os.path.join(ROOT, "Makefile")) as f:
            version = re.search(r"^VERSION := (.*)$", f.read(), re.M).group(1)
        got = self.nix("eval", "--raw", "path:%s#packages.x86_64-linux.default.version"
                       % self.flake)
        self.assertEqual(got, version)

    if LONG:
        def test_package_builds(self):
            """With make and the compiler of this machine."""
            shutil.copytree(ROOT, self.flake, dirs_exist_ok=True, ignore=shutil.ignore_patterns(
                "build", "build-*", ".git", "__pycache__"))
            built = self.nix("build", "--no-link", "--json", "path:%s#zmqcat" % self.flake,
                             timeout=600)
            out = json.loads(built)[0]["outputs"]["out"]
            for path in ("bin/zmqcat", "bin/zmqcat-hub", "bin/zmqcat-spoke", "include/zmqcat.h",
                         "lib/pkgconfig/zmqcat.pc", "share/man/man1/zmqcat.1"):
                self.assertTrue(os.path.exists(os.path.join(out, path)), path)
            for name in ("zmqcat", "zmqcat-hub", "zmqcat-spoke"):
                shown = subprocess.run([os.path.join(out, "bin", name), "--version"], text=True,
                                       capture_output=True)
                self.assertEqual((shown.returncode, shown.stderr), (0, ""))
                self.assertIn(name, shown.stdout)


if __name__ == "__main__":
    harness.main()
