"""The two hosts of test_two_hosts.py: containers (container.py), each in a network namespace of its
own, joined by a veth pair that exists in these namespaces only. The tests reach into them through
/proc/<leader>/root and nsenter."""
import os, re, subprocess

from container import BIN, Machine, write
from harness import Conn, ROOT, SLOW, read_file, wait_for

HUB, SPOKE, RELAY = "zmqcat-hub.service", "zmqcat-spoke.service", "relay.service"
ADDRESSES = {"hub": "192.0.2.1", "spoke": "192.0.2.2"}
MAP = "/run/relay/map.json"
RELAY_UNIT = """[Service]
ExecStart=%s/relay --dir /run/relay --address %s --port 443
RuntimeDirectory=relay
RuntimeDirectoryPreserve=yes
""" % (BIN, ADDRESSES["hub"])
USERS = """[Unit]
Before=multi-user.target
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=systemd-sysusers /run/payload-ro/zmqcat.conf
"""


def ip(*args):
    return subprocess.run(["ip"] + list(args), check=True, capture_output=True, text=True).stdout


def documented_drop_in():
    """The drop-in that gives the hub a tunnel, from the manual."""
    with open(os.path.join(ROOT, "docs", "man", "zmqcat-hub.8")) as f:
        text = re.search(r"\.d/tunnel\.conf :\n\.Bd -literal.*\n((?s:.*?))\.Ed", f.read())[1]
    programs = text.count("/usr/local/bin/zmqcat-hub ")
    assert programs == 1, text
    return text.replace("/usr/local/bin/zmqcat-hub ",
                        "%s/zmqcat-hub --derp-map %s " % (BIN, MAP))


class Host(Machine):
    """A container with its network namespace."""

    def __init__(self, role):
        super().__init__("-" + role)
        self.role = role
        self.unit = "zmqcat-%s.service" % role
        self.sockets = ["zmqcat-%s.socket" % role, "zmqcat-%s-control.socket" % role]
        self.wanted("users.service", USERS)
        if role == "hub":
            self.wanted(RELAY, RELAY_UNIT)
            write(self.path("units", HUB + ".d", "tunnel.conf"), documented_drop_in())
        ip("netns", "add", self.name)

    def boot(self):
        self.start("--network-namespace-path=/run/netns/" + self.name)
        wait_for(self.find_leader, 20)
        wait_for(lambda: self.run("systemctl", "is-active", "multi-user.target",
                                  check=False) == "active\n", 60, 0.1)

    def run(self, *argv, check=True):
        got = subprocess.run(["nsenter", "-t", self.leader, "-a"] + list(argv), text=True,
                             stdin=subprocess.DEVNULL, capture_output=True, timeout=60 * SLOW)
        if check and got.returncode != 0:
            raise AssertionError("%s: %s %s" % (argv, got.stdout, got.stderr))
        return got.stdout

    def systemctl(self, *args, check=True):
        return self.run("systemctl", *args, check=check)

    def show(self, name, unit=None):
        return self.systemctl("show", "-P", name, unit or self.unit).strip()

    def journal(self):
        self.run("journalctl", "--sync")
        return self.run("journalctl", "-b", "--no-pager")

    def root(self, path):
        return "/proc/%s/root%s" % (self.leader, path)

    def connect(self, **more):
        return Conn(self.root("/run/zmqcat/zmqcat.sock"), **more)

    def status(self):
        c = Conn(self.root("/run/zmqcat/control.sock"))
        try:
            return c.call(v=1, op="status", id="s")["result"]["tunnel"]
        finally:
            c.close()

    def main_process(self, name):
        return read_file(self.root("/proc/%s/%s" % (self.show("MainPID"), name)))

    def uid(self, name):
        with open(self.root("/etc/passwd")) as f:
            return next(int(l.split(":")[2]) for l in f if l.startswith(name + ":"))

    def end(self):
        if self.process is not None:
            if self.leader is not None:
                self.systemctl("poweroff", "--force", check=False)
            self.finish(20 if self.leader is not None else 0)
        ip("netns", "del", self.name)


def connect(a, b):
    """A cable between the two."""
    ip("-n", a.name, "link", "add", "z0", "type", "veth", "peer", "name", "z0", "netns", b.name)
    for host in (a, b):
        ip("-n", host.name, "addr", "add", ADDRESSES[host.role] + "/30", "dev", "z0")
        for link in ("lo", "z0"):
            ip("-n", host.name, "link", "set", link, "up")
