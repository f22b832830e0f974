#!/usr/bin/env python3
# serial
"""nix/tests/hosts.py in containers that boot a real systemd: the machines of
nix/tests/zmqcat.nix, with the units that the module makes for them. What only NixOS has is left
out: its switch, and the power cut, which is kill -9 here."""
import contextlib, os, shutil, subprocess, sys, time, unittest

import evaluate as ev
from evaluate import HERE, harness
from harness import ROOT, SLOW

sys.path.insert(0, os.path.join(ROOT, "tests", "services"))
import container
from two_hosts import ip

ADDRESSES = {"hub": "192.0.2.1", "allowed": "192.0.2.2", "denied": "192.0.2.3",
             "wrong": "192.0.2.4"}
# What NixOS does before it starts sockets.
PREPARE = """[Unit]
DefaultDependencies=no
After=local-fs.target systemd-sysusers.service
Before=sysinit.target sockets.target
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=systemd-sysusers %s/users.conf
ExecStart=systemd-tmpfiles --create %s/tmpfiles.conf
""" % (container.PAYLOAD, container.PAYLOAD)


class Node(container.Machine):
    """One machine, with as much of the NixOS driver's as hosts.py uses."""

    def __init__(self, name, made):
        super().__init__("-" + name)
        self.role = name
        for unit in os.listdir(self.path("units")):
            if unit.startswith("zmqcat"):
                os.unlink(self.path("units", unit))
        for unit, text in made["units"].items():
            container.write(self.path("units", unit), text)
        for kind, wants in (("service", {n: s["wantedBy"] for n, s in made["services"].items()}),
                            ("socket", made["sockets"])):
            for unit, targets in wants.items():
                self.link(unit + "." + kind, targets)
        for unit, more in made["services"].items():
            for alias in more["aliases"]:
                os.symlink(unit + ".service", self.path("units", alias))
        container.write(self.path("units", "prepare.service"), PREPARE)
        self.link("prepare.service", ["sysinit.target"])
        self.users(made["users"])
        self.directories(made["tmpfiles"])
        ip("netns", "add", self.name)
        ip("-n", self.name, "link", "set", "lo", "up")

    def connect(self, hub):
        """A cable between this machine and the hub."""
        ip("-n", hub.name, "link", "add", self.role, "type", "veth", "peer", "name", "hub",
           "netns", self.name)
        for here, there, link in ((self, hub, "hub"), (hub, self, self.role)):
            ip("-n", here.name, "addr", "add", ADDRESSES[here.role] + "/32", "dev", link)
            ip("-n", here.name, "link", "set", link, "up")
            ip("-n", here.name, "route", "add", ADDRESSES[there.role], "dev", link)

    def link(self, unit, targets):
        for target in targets:
            os.makedirs(self.path("units", target + ".wants"), exist_ok=True)
            os.symlink("../" + unit, self.path("units", target + ".wants", unit))

    def users(self, made):
        lines = ["g %s -" % name for name in made["groups"]]
        for name, user in made["users"].items():
            group = ":" + user["group"] if user["group"] else ""
            lines.append("u %s -%s \"\" %s /bin/sh" % (name, group, user["home"]))
        lines += ["m %s %s" % (member, name) for name, group in made["groups"].items()
                  for member in group["members"]]
        container.write(self.path("payload", "users.conf"), "\n".join(lines) + "\n")

    def directories(self, settings):
        lines = ["%s %s %s %s %s - -" % (kind, path, rule["mode"], rule["user"], rule["group"])
                 for paths in settings.values() for path, rules in paths.items()
                 for kind, rule in rules.items()]
        container.write(self.path("payload", "tmpfiles.conf"), "\n".join(lines) + "\n")

    def boot(self):
        self.start_container()
        harness.wait_for(self.find_leader, 30, 0.05)
        self.wait_for_unit("multi-user.target")

    def start_container(self):
        super().start("--network-namespace-path=/run/netns/" + self.name)

    def run(self, command):
        path = "%s:/usr/bin:/usr/sbin" % container.BIN
        return subprocess.run(
            ["nsenter", "-t", self.leader, "-a", "--", "env", "-i", "PATH=" + path, "bash", "-c",
             "set -euo pipefail; " + command], stdin=subprocess.DEVNULL, text=True,
            capture_output=True, timeout=120 * SLOW)

    def said(self, command, got):
        units = self.run("journalctl --sync; journalctl -b --no-pager | tail -40").stdout
        return "%s: %s: exit %d\n%s%s\n%s" % (self.role, command, got.returncode, got.stdout,
                                            got.stderr, units)

    def succeed(self, command):
        got = self.run(command)
        if got.returncode != 0:
            raise AssertionError(self.said(command, got))
        return got.stdout

    def fail(self, command):
        got = self.run(command)
        if got.returncode == 0:
            raise AssertionError("did not fail: " + self.said(command, got))
        return got.stdout

    def wait_until_succeeds(self, command, timeout=60):
        end = time.monotonic() + timeout * SLOW
        while (got := self.run(command)).returncode != 0:
            if time.monotonic() > end:
                raise AssertionError("never succeeded: " + self.said(command, got))
            time.sleep(0.2)
        return got.stdout

    def wait_for_unit(self, unit):
        self.wait_until_succeeds("systemctl is-active " + unit)

    def crash(self):
        self.succeed("systemctl kill --kill-who=main -s KILL zmqcat-hub.service")

    def start(self):
        """It was not gone."""

    def end(self):
        if self.process is not None:
            if self.leader is not None:
                self.run("systemctl poweroff --force")
            self.finish(20 if self.leader is not None else 0)
        ip("netns", "del", self.name)


class Machines(unittest.TestCase):
    def setUp(self):
        ev.need_nix()
        for tool in ("ip", "nsenter", "systemd-nspawn"):
            if shutil.which(tool) is None:
                harness.skip("no " + tool)

    def test_hosts(self):
        made = ev.value("import %s/nodes.nix" % HERE)
        self.assertEqual({name: m["refused"] for name, m in made.items()},
                         {name: [] for name in ADDRESSES})
        nodes = {}
        for name, m in made.items():
            try:
                nodes[name] = Node(name, m)
            except subprocess.CalledProcessError as e:
                harness.skip("no network namespaces: " + e.stderr)
            self.addCleanup(nodes[name].end)
        for name in ("allowed", "denied", "wrong"):
            nodes[name].connect(nodes["hub"])
        seen = []

        @contextlib.contextmanager
        def subtest(what):
            start = time.monotonic()
            yield
            seen.append(what)
            if "-v" in sys.argv:
                print("%s: %.1f s" % (what, time.monotonic() - start), flush=True)

        def start_all():
            for node in nodes.values():
                node.boot()

        path = os.path.join(ROOT, "nix", "tests", "hosts.py")
        with open(path) as f:
            code = compile(f.read(), path, "exec")
        exec(code, {**nodes, "start_all": start_all, "subtest": subtest})
        self.assertGreater(len(seen), 10)


if __name__ == "__main__":
    harness.main()
