"""The programs of others: tailcat and derper, built from the Go module proxy.

Versions are fixed by <version>/go.mod and go.sum beside this file. Nothing of them is kept in the
tree: the programs land in <build>/interop/<version>, and what Go fetches and writes while it builds
(modules, newer toolchain, caches, its idea of a home) in a folder `go` there, which goes when they
stand.

Each version has its own derper: that costs 10 s beside the minutes of tailcat, and each is tested
with the relay of its time.
"""
import hashlib, os, re, shutil, subprocess, sys, time, unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from harness import BUILD, read_file, skip, write_file

HERE = os.path.dirname(os.path.abspath(__file__))
VERSIONS = ("v0.3", "v0.6")
PACKAGES = ("github.com/tailscale/tailcat/cmd/tailcat", "tailscale.com/cmd/derper")
GO_OLDEST = (1, 21)
FETCH_TRIES = 4
FETCH_TIMEOUT_S = 240
BUILD_TIMEOUT_S = 1500


def go_command():
    """The Go that can build the programs; SKIP when there is none."""
    go = shutil.which("go")
    if not go:
        skip("no go command on the PATH: install Go %d.%d or later (https://go.dev/dl)" % GO_OLDEST)
    # Without a home, in which it would count its uses.
    env = dict(environment(os.devnull), GOTOOLCHAIN="local")
    said = subprocess.run([go, "version"], capture_output=True, text=True, timeout=60,
                          env=env).stdout
    found = re.search(r"go(\d+)\.(\d+)", said)
    if not found or tuple(map(int, found.groups())) < GO_OLDEST:
        skip("%s is older than Go %d.%d: %s" % (go, *GO_OLDEST, said.strip()))
    return go


def environment(scratch):
    """All that Go writes is below scratch. GOPROXY of the environment is heeded."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("GOFLAGS", "XDG_"))}
    env.update(HOME=scratch, GOPATH=scratch, GOMODCACHE=os.path.join(scratch, "mod"),
               GOCACHE=os.path.join(scratch, "cache"), GOTMPDIR=scratch, GOENV="off",
               GOWORK="off", GOTOOLCHAIN="auto", CGO_ENABLED="0",
               # Modules that can be written can be deleted.
               GOFLAGS="-mod=readonly -modcacherw -buildvcs=false")
    return env


def fetch(go, source, env):
    """Modules and toolchain. The proxy may fail for a moment."""
    for left in reversed(range(FETCH_TRIES)):
        try:
            got = subprocess.run([go, "mod", "download"], cwd=source, env=env, text=True,
                                 capture_output=True, timeout=FETCH_TIMEOUT_S)
            said = got.stderr
            if got.returncode == 0:
                return
        except subprocess.TimeoutExpired:
            said = "no end within %d s" % FETCH_TIMEOUT_S
        print("go mod download of %s failed, %d tries left:\n%s"
              % (os.path.basename(source), left, said[-1500:]), flush=True)
        if left:
            time.sleep(5 * (FETCH_TRIES - left))
    raise AssertionError("the Go module proxy does not give the modules of %s (GOPROXY names"
                         " another one)" % os.path.basename(source))


def compile_all(go, source, target, env):
    # Without symbols: linked in half the time. The other tests go first.
    got = subprocess.run(
        ["nice", "-n", "5", go, "build", "-ldflags=-s -w", "-o", target + "/", *PACKAGES],
        cwd=source, env=env, capture_output=True, text=True, timeout=BUILD_TIMEOUT_S)
    if got.returncode != 0:
        raise AssertionError("go build of %s failed:\n%s"
                             % (os.path.basename(source), got.stderr[-3000:]))


def build(version):
    """The folder with tailcat and derper of a version; builds them when they are not there."""
    source, target = os.path.join(HERE, version), os.path.join(BUILD, "interop", version)
    fixed = b"".join(read_file(os.path.join(source, n)) for n in ("go.mod", "go.sum"))
    stamp, stamp_file = hashlib.sha256(fixed).hexdigest(), os.path.join(target, "stamp")
    if os.path.exists(stamp_file) and read_file(stamp_file).decode() == stamp:
        return target
    go, scratch = go_command(), os.path.join(target, "go")
    shutil.rmtree(target, True)
    os.makedirs(scratch)
    fetch(go, source, environment(scratch))
    compile_all(go, source, target, environment(scratch))
    shutil.rmtree(scratch)
    write_file(stamp_file, stamp)
    return target


def built(version):
    """The same for a test program: without Go it ends here."""
    try:
        return build(version)
    except unittest.SkipTest as e:
        print("SKIP %s: %s" % (version, e))
        print("0 passed, 0 failed, 1 skipped", flush=True)
        sys.exit(0)
    except AssertionError as e:
        print(e)
        print("0 passed, 1 failed", flush=True)
        sys.exit(1)


def names(version):
    """What is built, with versions."""
    text = read_file(os.path.join(HERE, version, "go.mod")).decode()
    return re.findall(r"^\t((?:github\.com/tailscale/tailcat|tailscale\.com) v\S+)$", text, re.M)
