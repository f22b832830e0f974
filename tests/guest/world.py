"""The units of scenario.py and after_cut.py: the hub as it is installed, with a drop-in that gives
it a tunnel; further hubs and spokes as copies under other names and paths, since one host has one;
a relay. Runs inside the machine."""
import contextlib, json, os, re, subprocess, sys

from harness import SLOW, Closed, Conn, wait_for
from manager import Bus, equal, put_file, run, run_checks, systemctl

PAYLOAD, RESULT = sys.argv[1], sys.argv[2]
# What outlives the power cut; mounted before this runs.
KEPT = "/srv/kept"
# Of NixOS nothing can be written in /etc/systemd.
BIN, UNITS = PAYLOAD + "/bin", "/run/systemd/system"
# Where agenix and sops-nix place secrets: a link to a folder of this generation.
AGENIX, SOPS = "/run/agenix", "/run/secrets"
HUB_BUS, HUB_CONTROL = "/run/zmqcat/zmqcat.sock", "/run/zmqcat/control.sock"
RELAY, MAP = "relay.service", "/var/lib/relay/map.json"
# On the disk that is kept: the user zmqcat must be able to read it.
ALLOW = KEPT + "/etc/allow"
RELAY_UNIT = """[Service]
ExecStart=%s/relay --dir /var/lib/relay --port 443
""" % BIN
PEOPLE = "u member -\nm member zmqcat\nu stranger -\n"

token = old_token = ""


def sockets(name):
    return [name + ".socket", name + "-control.socket"]


def shipped(name):
    with open(os.path.join(PAYLOAD, "units", name)) as f:
        return f.read()


def hub_drop_in(more="", lines=""):
    """A tunnel, and an allow list; a later --mailbox wins."""
    put_file("%s/zmqcat-hub.service.d/test.conf" % UNITS, """[Service]
ExecStart=
ExecStart=%s/zmqcat-hub --mailbox /var/lib/zmqcat/mailbox --derp-map %s --allow-file %s \\
    --heartbeat %ds %s
%s""" % (BIN, MAP, ALLOW, 5 * SLOW, more, lines))
    systemctl("daemon-reload")


def copied(role, name, text):
    """A unit under another name, with paths of its own."""
    program = "%s/zmqcat-%s" % (BIN, role)
    text = text.replace(program, "PROGRAM").replace("zmqcat-" + role, name)
    text = text.replace("PROGRAM", program).replace("/run/zmqcat/", "/run/%s/" % name)
    text = text.replace("/var/lib/zmqcat/", "/var/lib/%s/" % name)
    text = text.replace("StateDirectory=zmqcat", "StateDirectory=" + name)
    text = text.replace("zmqcat reload", "zmqcat reload --control /run/%s/control.sock" % name)
    return re.sub(r"(?m)^(Conflicts|After=zmqcat-hub|Alias).*\n", "", text)


class Copy:
    """A hub or spoke beside the one of the host."""

    def __init__(self, role, letter):
        self.role, self.name = role, "zq-" + letter
        self.unit, self.sockets = self.name + ".service", sockets(self.name)
        self.bus, self.state = Bus("/run/%s/zmqcat.sock" % self.name), "/var/lib/" + self.name

    def write_units(self):
        for suffix in (".service", ".socket", "-control.socket"):
            text = shipped("zmqcat-%s%s" % (self.role, suffix))
            put_file("%s/%s%s" % (UNITS, self.name, suffix), copied(self.role, self.name, text))

    def drop_in(self, lines):
        path = "%s/%s.d/zz.conf" % (UNITS, self.unit)
        if lines is None:
            os.unlink(path)
        else:
            put_file(path, "[Service]\n" + lines)
        systemctl("daemon-reload")

    def start(self):
        systemctl("start", *self.sockets)
        systemctl("start", self.unit)

    def stop(self):
        systemctl("stop", self.unit, *self.sockets)

    def status(self):
        c = Conn("/run/%s/control.sock" % self.name, timeout=20)
        try:
            return c.call(v=1, op="status", id="s")["result"]["tunnel"]
        finally:
            c.close()


class Hub(Copy):
    def __init__(self, letter):
        super().__init__("hub", letter)
        self.write_units()
        put_file("%s/%s.d/small.conf" % (UNITS, self.unit), """[Service]
ExecStart=
ExecStart=%s/zmqcat-hub --local --mailbox %s/mailbox --segment 64k
""" % (BIN, self.state))
        systemctl("daemon-reload")


class Spoke(Copy):
    """One whose token is placed as agenix or sops-nix does it: a file of root, mode 0400, behind a
    link to the generation."""

    def __init__(self, letter):
        super().__init__("spoke", letter)
        self.secrets = SOPS if letter == "c" else AGENIX

    def secret(self):
        return os.path.realpath("%s/%s" % (self.secrets, self.name))

    def write_units(self):
        super().write_units()
        put_file("%s/%s.d/token.conf" % (UNITS, self.unit), """[Service]
ExecStart=
ExecStart=%s/zmqcat-spoke --wait-hub %ds
LoadCredential=
LoadCredential=token:%s/%s
""" % (BIN, 20 * SLOW, self.secrets, self.name))
        if self.name == "zq-b":
            put_file("%s/%s.d/wait.conf" % (UNITS, self.unit), """[Service]
ExecStart=
ExecStart=%s/zmqcat-spoke --wait-hub 2s
""" % BIN)

    def place(self, text):
        """A new generation with this secret and all the others as they were."""
        generations = self.secrets + ".d"
        new = 1 + max([int(n) for n in os.listdir(generations)] or [0])
        folder, old = "%s/%d" % (generations, new), os.path.realpath(self.secrets)
        os.mkdir(folder, 0o751)
        if os.path.isdir(old):
            for name in os.listdir(old):
                with open(os.path.join(old, name), "rb") as f:
                    put_file(os.path.join(folder, name), f.read(), 0o400)
        put_file(os.path.join(folder, self.name), text, 0o400)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.secrets + ".new")
        os.symlink(folder, self.secrets + ".new")
        os.rename(self.secrets + ".new", self.secrets)
        if new > 1:
            subprocess.run(["rm", "-r", old], check=True)

    def credential(self):
        with open("/run/credentials/%s/token" % self.unit) as f:
            return f.read().strip()

    def key(self):
        """Its node key."""
        got = run([BIN + "/zmqcat", "nodekey", self.state + "/spoke.key"], check=True)
        return got.stdout.strip()

    def reaches(self):
        """Whether a client gets to the hub and back."""
        try:
            return self.bus.call(op="ping")["op"] == "pong"
        except Closed:  # by a hub that has started again meanwhile
            return False

    def joined(self, seconds=20):
        """It says so, and it is so: of a hub that has started again it may not know yet."""
        wait_for(lambda: self.status()["state"] == "up", seconds, 0.05)
        wait_for(self.reaches, seconds, 0.05)


def make():
    """Users, folders and units; starts nothing."""
    run(["ip", "link", "set", "lo", "up"])
    put_file("/run/people.conf", PEOPLE)
    run(["systemd-sysusers", PAYLOAD + "/zmqcat.conf", "/run/people.conf"], check=True)
    run(["systemd-tmpfiles", "--create", PAYLOAD + "/zmqcat-tmpfiles.conf"], check=True)
    for name in ("zmqcat", "relay", "zq-a", "zq-c"):
        os.makedirs("%s/%s" % (KEPT, name), exist_ok=True)
        os.makedirs("/var/lib/" + name, exist_ok=True)
        run(["mount", "--bind", "%s/%s" % (KEPT, name), "/var/lib/" + name], check=True)
    for folder in (AGENIX, SOPS):
        os.makedirs(folder + ".d", exist_ok=True)
        os.chmod(folder + ".d", 0o751)
    for name in os.listdir(PAYLOAD + "/units"):
        put_file("%s/%s" % (UNITS, name), shipped(name))
    put_file("%s/%s" % (UNITS, RELAY), RELAY_UNIT)
    hub_drop_in()
    for letter in "abc":
        Spoke(letter).write_units()
    systemctl("daemon-reload")


def fill_disk():
    """Nobody but root has room on the disk that is kept, until the file is removed whose name this
    returns."""
    disk = os.statvfs(KEPT)
    with open(KEPT + "/filler", "wb") as f:
        os.posix_fallocate(f.fileno(), 0, disk.f_bavail * disk.f_frsize)
    equal(os.statvfs(KEPT).f_bavail, 0)
    return f.name


def remember(**facts):
    put_file(KEPT + "/facts", json.dumps(facts))
    fd = os.open(KEPT + "/facts", os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)
    fd = os.open(KEPT, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)


def remembered():
    with open(KEPT + "/facts") as f:
        return json.load(f)


def tell(results):
    put_file(RESULT + "/checks.json", json.dumps(results))


def main(checks):
    skipped = ["check_" + n for n in os.environ.get("SKIPPED", "").split()]
    checks = {n: f for n, f in checks.items() if n not in skipped}
    results = run_checks(checks, tell, 120 * SLOW, go_on=False)
    if set(results.values()) != {"ok"}:
        with open(RESULT + "/journal", "w") as f:
            subprocess.run(["journalctl", "-b", "--no-pager"], stdout=f)
        sys.exit(1)
