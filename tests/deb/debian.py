"""A Debian host in a container: this machine's own system under a layer in memory, so that packages
can be installed there with what they depend on, and nothing of it stays. It boots systemd and has a
network of its own, as the hosts of tests/services/two_hosts.py have."""
import glob, os, re, shutil, subprocess, sys

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
sys.path[:0] = [os.path.join(TESTS, "services"), TESTS]
import harness
from container import PAYLOAD, Machine
from harness import BUILD, ROOT, SLOW
from two_hosts import MAP, RELAY, RELAY_UNIT, Host, ip

SOCKET = "/run/zmqcat/zmqcat.sock"
TOOLS = ("ip", "nsenter", "unshare", "dpkg", "apt-get")
# No policy of this machine about services, and no identity, counts in the container.
ENTER = """
mount -t tmpfs none /mnt
mkdir /mnt/new /mnt/work /mnt/all
mount -t overlay overlay -o lowerdir=/,upperdir=/mnt/new,workdir=/mnt/work /mnt/all
rm -f /mnt/all/usr/sbin/policy-rc.d /mnt/all/etc/machine-id
exec systemd-nspawn -D /mnt/all "$@"
"""


def sources():
    """What `make deb` packs."""
    with open(os.path.join(ROOT, "Makefile")) as f:
        return re.search(r"(?m)^DEB_SOURCES := (.*)$", f.read())[1].split()


def newest():
    """When a source of the package was changed last."""
    times = [0.0]
    for name in sources():
        for folder, _, files in os.walk(os.path.join(ROOT, name)):
            times += [os.stat(os.path.join(folder, f)).st_mtime for f in files]
        times.append(os.stat(os.path.join(ROOT, name)).st_mtime)
    return max(times)


def changes():
    """The .changes file of `make deb`, which is run when a source is newer."""
    for tool in ("dh", "dpkg-buildpackage"):
        if shutil.which(tool) is None:
            harness.skip("no %s; `make deps-deb` installs it" % tool)
    folder = os.path.join(BUILD, "deb")
    found = glob.glob(folder + "/*.changes")
    if not found or os.stat(found[0]).st_mtime < newest():
        env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
        cc = ["CC=" + os.environ["CC"]] if "CC" in os.environ else []
        done = subprocess.run(["nice", "make", "-s", "deb", "B=" + BUILD] + cc, cwd=ROOT, env=env,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                              stderr=subprocess.STDOUT, timeout=600 * SLOW)
        assert done.returncode == 0, done.stdout[-3000:]
        found = glob.glob(folder + "/*.changes")
    assert len(found) == 1, found
    return found[0]


def package(name="zmqcat"):
    found = glob.glob(os.path.join(os.path.dirname(changes()), name + "_*.deb"))
    assert len(found) == 1, found
    return found[0]


def with_version(deb, version, folder):
    """The same package, of another version."""
    tree = os.path.join(folder, "tree-" + version)
    subprocess.run(["dpkg-deb", "-R", deb, tree], check=True)
    control = os.path.join(tree, "DEBIAN/control")
    with open(control) as f:
        text = re.sub(r"(?m)^Version: .*$", "Version: " + version, f.read())
    harness.write_file(control, text, 0o644)
    path = os.path.join(folder, os.path.basename(deb).replace("0.1.0", version))
    subprocess.run(["dpkg-deb", "--root-owner-group", "-b", tree, path], check=True,
                   stdout=subprocess.DEVNULL)
    shutil.rmtree(tree)
    return path


class DebHost(Host):
    """One of the two hosts, with packages at /root instead of what is built; `boot()` starts it."""

    def __init__(self, role, debs):
        for tool in TOOLS:
            if shutil.which(tool) is None:
                harness.skip("no " + tool)
        Machine.__init__(self, "-deb-" + role)
        self.role, self.leader = role, None
        self.unit = "zmqcat-%s.service" % role
        self.sockets = ["zmqcat-%s.socket" % role, "zmqcat-%s-control.socket" % role]
        for path in glob.glob(self.path("units", "zmqcat-*")):
            os.unlink(path)
        os.mkdir(self.path("debs"))
        for deb in debs:
            shutil.copy(deb, self.path("debs"))
        if role == "hub":
            self.wanted(RELAY, RELAY_UNIT)
        try:
            ip("netns", "add", self.name)
        except subprocess.CalledProcessError as e:
            harness.skip("no network namespaces: " + e.stderr)

    def start(self, network):
        argv = ["-q", "-M", self.name, "--register=no", "--keep-unit", network,
                "--bind=%s:/etc/systemd/system" % self.path("units"),
                "--bind-ro=%s:/etc/systemd/system-preset/00-none.preset" % self.path("none.preset"),
                "--bind-ro=%s:%s" % (self.path("payload"), PAYLOAD),
                "--bind=%s:/root" % self.path("debs"), "--console=pipe", "-b"]
        with open(self.path("console"), "wb") as console:
            self.process = subprocess.Popen(
                ["unshare", "-m", "--propagation", "private", "sh", "-ec", ENTER, "sh"] + argv,
                stdin=subprocess.DEVNULL, stdout=console, stderr=subprocess.STDOUT)

    def shell(self, command, check=True):
        """What the command says on both outputs, in root's home."""
        got = subprocess.run(["nsenter", "-t", self.leader, "-a", "bash", "-c",
                              "cd /root; export HOME=/root LC_ALL=C.UTF-8; " + command], text=True,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, timeout=120 * SLOW)
        if check and got.returncode != 0:
            raise AssertionError("%s: exit %d\n%s" % (command, got.returncode, got.stdout))
        return got.stdout

    def replace_debs(self, deb):
        for old in glob.glob(self.path("debs/*.deb")):
            os.unlink(old)
        shutil.copy(deb, self.path("debs"))

    def exists(self, path):
        return os.path.lexists(self.root(path))

    def active(self, unit):
        return self.systemctl("is-active", unit, check=False).strip() == "active"
