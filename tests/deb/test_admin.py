#!/usr/bin/env python3
# serial
"""What docs/admin.md shows, as it stands: the lines for Debian on two hosts (debian.py) with the
package, in their order; the configurations for NixOS and nix-darwin by evaluation. What it shows of
macOS cannot run here; of that, files and options are looked at."""
import collections, os, plistlib, re, shlex, shutil, subprocess, sys, unittest

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
sys.path[:0] = [HERE, os.path.join(TESTS, "docs"), os.path.join(TESTS, "nix")]
import debian, evaluate as ev
from debian import MAP, DebHost, harness
from harness import ROOT, SLOW, wait_for
from test_commands import blocks, commands, same
from two_hosts import connect

PROMPTS = ("hub# ", "spoke# ")
NEWER = "0.1.1"


def text():
    with open(os.path.join(ROOT, "docs/admin.md")) as f:
        return f.read()


def shown(*marks):
    return [lines for m, lines in blocks(text()) if m == list(marks)]


class Debian(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.deb = debian.package()
        cls.newer = debian.with_version(cls.deb, NEWER, harness.tempdir())
        cls.hosts = {}
        for role in ("hub", "spoke"):
            host = cls.hosts[role] = DebHost(role, [cls.deb])
            cls.addClassCleanup(host.end)
        connect(cls.hosts["hub"], cls.hosts["spoke"])
        for host in cls.hosts.values():
            host.boot()

    def run_on(self, role, command, token):
        # The relay of the tests; there is no other in this network.
        command = command.replace("/usr/bin/zmqcat-hub ",
                                  "/usr/bin/zmqcat-hub --derp-map %s " % MAP)
        if "cat >" in command:
            command = command.replace("cat >", "printf '%%s\\n' %s >" % shlex.quote(token))
        return self.hosts[role].shell(command)

    def test_everything_that_is_shown(self):
        token = key = None
        upgraded = seen = 0
        for line, wanted in [c for lines in shown("sh", "debian")
                             for c in commands(lines, PROMPTS)]:
            role, command = line.split("# ", 1)
            seen += 1
            if key:
                command = command.replace("nodekey:...", key)
            if command.startswith("apt install"):
                upgraded += role == "hub"
                if upgraded == 2:
                    self.hosts["hub"].replace_debs(self.newer)
            if command == "zmqcat token":  # once it has logged in to its relay
                wait_for(lambda: "tc" in self.hosts[role].shell(command, check=False), 20, 0.2)
            with self.subTest(line=line):
                got = self.run_on(role, command, token)
                if not command.startswith(("apt ", "systemctl enable")):
                    self.assertTrue(same(wanted, got), "%s\nshown:\n%s\ngot:\n%s"
                                    % (line, "\n".join(wanted), got))
                if command.startswith("zmqcat revoke"):
                    ping = self.hosts["spoke"].shell("timeout 3 zmqcat ping", check=False)
                    self.assertNotIn("pong", ping)
                token = (re.findall(r"(?m)^tc\S+$", got) or [token])[0]
                key = (re.findall(r"nodekey:[0-9a-f]{64}", got) or [key])[0]
        self.assertGreater(seen, 50)
        self.assertEqual(upgraded, 2)
        self.assertIn(NEWER, self.hosts["hub"].shell("dpkg-query -W zmqcat"))


# What the options of others, sops-nix and agenix, would give.
SECRETS = """let config = {
    sops.secrets.zmqcat-join-token.path = "/run/secrets/zmqcat-join-token";
    age.secrets.zmqcat-join-token = { path = "/run/agenix/zmqcat-join-token"; file = "/secret"; };
}; in """
MODULE = """{ lib, ... }: {
    imports = [ %s/nix/%s.nix ];
    options = lib.genAttrs [ "sops" "age" ] (_: lib.mkOption { type = lib.types.anything; });
    config = %s { %s };
}"""


class Nix(unittest.TestCase):
    def setUp(self):
        ev.need_nix()

    def evaluated(self, system):
        for lines in shown("nix", system):
            text = "\n".join(lines).replace("enable = true;", "").replace("./zmqcat", "/zmqcat")
            more = "" if "sops." in text else "sops = { }; "
            more += "" if "age." in text else "age = { }; "
            module = MODULE % (ROOT, system, SECRETS, more + text)
            yield lines, ev.value(ev.expression("", system=system, module="(%s)" % module))

    def test_configurations_are_accepted(self):
        seen = 0
        for system in ("nixos", "darwin"):
            for lines, got in self.evaluated(system):
                seen += 1
                self.assertEqual((got["refused"], got["warnings"]), ([], []), lines)
        self.assertEqual(seen, 6)

    def test_tokens_are_where_sops_and_agenix_place_them(self):
        units = [got["units"].get("zmqcat-spoke.service", "") for _, got in self.evaluated("nixos")]
        for path in ("/run/secrets/zmqcat-join-token", "/run/agenix/zmqcat-join-token"):
            self.assertTrue([u for u in units if "LoadCredential=token:%s\n" % path in u], path)

    def test_wrong_ones_would_be_refused(self):
        module = MODULE % (ROOT, "nixos", SECRETS, 'services.zmqcat.role = "spoke";')
        self.assertNotEqual(ev.value(ev.expression("", module="(%s)" % module))["refused"], [])


    def test_flake_of_a_host(self):
        """It evaluates, and what it takes from our flake is there."""
        (lines,) = shown("nix", "flake")
        flake = "\n".join(lines).replace("./configuration.nix", '"configuration"')
        ours = ("let ours = (import %s/flake.nix).outputs "
                "{ self = { }; nixpkgs.lib.genAttrs = _: _: { }; }; in " % ROOT)
        got = ev.value(ours + "map (m: map toString (m.imports or [ m ])) ((%s).outputs { "
                       "zmqcat = ours; nixpkgs.lib.nixosSystem = a: a; "
                       "}).nixosConfigurations.myhost.modules" % flake)
        self.assertEqual(got, [["configuration"], [ROOT + "/nix/nixos.nix"]])
        names = set(re.findall(r"zmqcat\.(\w+Modules\.default)", self.section("### NixOS")))
        self.assertEqual(names, {"nixosModules.default", "darwinModules.default"})
        for name in names:
            self.assertIs(ev.value(ours + "ours.%s ? imports" % name), True)
        for name in re.findall(r"(?m)inputs\.zmqcat\.inputs\.(\w+)", flake):
            self.assertIs(ev.value("(import %s/flake.nix).inputs ? %s" % (ROOT, name)), True)

    def section(self, heading):
        return text().split(heading + "\n")[1].split("\n#")[0]


class Words(unittest.TestCase):
    """What is told beside the commands."""

    def test_messages_are_those_of_the_programs(self):
        source = ""
        for folder in ("lib", "daemons", "cli"):
            for top, _, names in os.walk(os.path.join(ROOT, folder)):
                for name in names:
                    if name.endswith(".c"):
                        with open(os.path.join(top, name)) as f:
                            source += f.read()
        source = re.sub(r'"\s*\n\s*"', "", source)
        table = text().split("## When something is wrong")[1]
        messages = re.findall(r"(?m)^\| `([^`]+)` \|", table)
        self.assertGreater(len(messages), 6)
        for message in messages:
            said = message.replace("hub unreachable: the relay", "the relay")
            self.assertTrue(said in source, message)

    def hosts(self, marks, lines):
        """The host of each line of a block; of a flake, what is new in one that is there."""
        if marks == ["sh", "debian"]:
            host = None
            for line in lines:
                host = line.split("# ")[0] if line.startswith(PROMPTS) else host
                yield host
        elif marks == ["nix", "flake"]:
            for _ in (line for line in lines if "zmqcat" in line):
                yield from ("nixos hub", "nixos spoke")
        else:
            role = re.findall(r'role = "(\w+)"', "\n".join(lines)) or marks[2:]
            yield from [" ".join([marks[1], *role])] * len(lines)

    def test_ten_lines_a_host(self):
        first = text().split("## How it is")[0]
        seen = collections.Counter(h for marks, lines in blocks(first)
                                   for h in self.hosts(marks, lines))
        self.assertLessEqual({"hub", "spoke", "nixos hub", "nixos spoke", "macos hub",
                              "macos spoke", "darwin spoke"}, set(seen))
        self.assertLessEqual(max(seen.values()), 10, seen)

    def test_every_fence_is_known(self):
        marks = {" ".join(m) for m, _ in blocks(text())}
        self.assertEqual(marks, {"sh debian", "sh macos", "sh macos hub", "sh macos spoke",
                                 "nix flake", "nix nixos", "nix darwin"})

    def test_macos_names_what_is_installed(self):
        for role, paths in (("hub", ["/var/lib/zmqcat-bus/zmqcat.sock.ctl"]),
                            ("spoke", ["/var/lib/zmqcat/join-token",
                                       "/var/lib/zmqcat-bus/zmqcat.sock"])):
            (block,) = shown("sh", "macos", role)
            lines, name = "\n".join(block), "org.zmqcat." + role
            self.assertEqual(set(re.findall(r"system/(\S+)", lines)), {name})
            self.assertEqual(set(re.findall(r"/Library/LaunchDaemons/(\S+)", lines)),
                             {name + ".plist"})
            with open(os.path.join(ROOT, "launchd", name + ".plist")) as f:
                plist = f.read()
            for path in paths:
                self.assertIn(path, lines)
                self.assertIn(path, plist)
            for script in re.findall(r"sudo sh (\S+)", lines):
                self.assertTrue(os.path.exists(os.path.join(ROOT, script)), script)

    def test_macos_hub_gets_its_tunnel(self):
        (sed,) = [c for c, _ in commands(shown("sh", "macos", "hub")[0]) if " sed " in c]
        path = os.path.join(harness.tempdir(), "plist")
        shutil.copy(os.path.join(ROOT, "launchd", "org.zmqcat.hub.plist"), path)
        # Of GNU's sed, -i has no word of its own.
        argv = shlex.split(sed.replace("sudo ", "").replace("-i ''", "-i"))
        subprocess.run([*argv[:-1], path], check=True)
        with open(path, "rb") as f:
            argv = plistlib.load(f)["ProgramArguments"]
        self.assertEqual(argv, ["@BINDIR@/zmqcat-hub", "--mailbox", "/var/lib/zmqcat/mailbox"])


if __name__ == "__main__":
    harness.main()
