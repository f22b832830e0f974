"""The modules of nix/ evaluated off line: eval.nix is run by nix-instantiate, and gives what NixOS
or nix-darwin would do with a configuration. CASES are those whose units and plists are kept under
rendered/; `make accept-units` writes these anew."""
import json, os, plistlib, re, shutil, subprocess, sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
from harness import ROOT, SLOW

HERE = os.path.dirname(os.path.abspath(__file__))
RENDERED = os.path.join(HERE, "rendered")
KEY = "nodekey:" + "0123456789abcdef" * 4
OTHER = "nodekey:" + "fedcba9876543210" * 4
HUB = 'role = "hub"; '
LOCAL = HUB + 'local = true; mailbox = "/var/lib/zmqcat/mailbox"; '
SPOKE = 'role = "spoke"; tokenFile = "/run/secrets/token"; '
BOTH_ALL = """extraArgs = [ "--name" "a b%c$d" ]; user = "bus"; group = "people";
compatSocket = true; keyFile = "/run/secrets/k%y";
derpMap = "https://relay.example.org/derpmap.json";
listen = [ "unix:///run/zmqcat/zmqcat.sock" "tcp://192.0.2.1:7420" "[::1]:7421" ]; """
HUB_ALL = HUB + BOTH_ALL + """allow = [ "%s" "%s" ]; mailbox = "/srv/a b%%c$d"; fsync = "batch";
region = 900; heartbeat = "30s"; forward = [ 80 5432 ]; """ % (KEY, OTHER)
SPOKE_ALL = SPOKE + BOTH_ALL + 'forward = [ 5432 "8080:80" ]; '
LINUX = 'openFirewall = true; socketUsers = [ "alice" "bob" ]; '
# As users of the Go program wrote them.
GO_HUB = """role = "serve"; mailbox = "/var/lib/zmqcat/mailbox.json"; heartbeat = "5s"; """
GO_SPOKE = 'role = "join"; tokenFile = "/run/secrets/zmqcat-join-token"; '
CASES = {
    "hub": ("nixos", HUB),
    "hub-local": ("nixos", LOCAL),
    "hub-all": ("nixos", HUB_ALL + LINUX),
    "hub-go": ("nixos", GO_HUB),
    "spoke": ("nixos", SPOKE),
    "spoke-all": ("nixos", SPOKE_ALL + LINUX),
    "spoke-go": ("nixos", GO_SPOKE),
    "spoke-encrypted": ("nixos", SPOKE + "encryptedCredentials = true; "),
    "darwin-hub": ("darwin", HUB),
    "darwin-hub-local": ("darwin", LOCAL),
    "darwin-hub-all": ("darwin", HUB_ALL + 'logFile = "/var/log/bus"; '),
    "darwin-spoke": ("darwin", SPOKE),
    "darwin-spoke-all": ("darwin", SPOKE_ALL + 'logFile = "/var/log/bus"; '),
}
CONFIG = """build-users-group =
substituters =
sandbox = false
experimental-features = nix-command flakes
"""


def need_nix():
    if shutil.which("nix-instantiate") is None:
        harness.skip("no nix-instantiate: make deps installs it")


def environment(store=None):
    """For a nix command; with a store, everything it writes is there."""
    env = {k: v for k, v in os.environ.items()
           if k not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")
           and (k == "NIX_PATH" or not k.startswith("NIX_"))}
    env["NIX_CONFIG"] = CONFIG
    if store:
        env.update(HOME=store, XDG_CACHE_HOME=store + "/cache", NIX_STORE_DIR=store + "/store",
                   NIX_STATE_DIR=store + "/state", NIX_LOG_DIR=store + "/log",
                   NIX_LOCALSTATE_DIR=store + "/local", NIX_CONF_DIR=store + "/conf", TMPDIR=store)
    return env


def nix(*argv, store=None, cwd=None, timeout=60):
    """Runs a nix command, as environment() says."""
    return subprocess.run(argv, env=environment(store), cwd=cwd, text=True, capture_output=True,
                          stdin=subprocess.DEVNULL, timeout=timeout * SLOW)


def named(variable, name):
    """Where the environment variable or NIX_PATH has what is called so; else None."""
    path = os.environ.get(variable)
    if path is None and shutil.which("nix-instantiate"):
        path = nix("nix-instantiate", "--find-file", name).stdout.strip()
    return os.path.abspath(path) if path else None


def nixpkgs():
    """The lib of a nixpkgs; else None."""
    found = named("ZMQCAT_NIXPKGS", "nixpkgs")
    return os.path.join(found, "lib") if found else None


def expression(settings, system="nixos", lib=None, module=None, package="/nowhere"):
    more = " lib = import %s;" % lib if lib else ""
    more += " module = %s;" % module if module else ""
    return """import %s/eval.nix { system = "%s"; package = "%s";%s
settings = { enable = true; %s }; }""" % (HERE, system, package, more, settings)


def instantiate(text, store=None):
    where = ["--read-write-mode"] if store else ["--store", "dummy://"]
    return nix("nix-instantiate", *where, "--eval", "--strict", "--json", "-E", text, cwd="/",
               store=store)


def value(text, store=None):
    got = instantiate(text, store)
    if got.returncode != 0:
        raise AssertionError("%s\n%s" % (text, got.stderr))
    return json.loads(got.stdout)


def evaluate(settings, store=None, **more):
    return value(expression(settings, **more), store)


def options(lib=None, system="nixos"):
    """What documentation is made of, for each option."""
    return value("""let
        lib = import %s;
        evaluated = lib.evalModules {
            modules = [ { inherit (import %s/%s.nix { inherit lib; }) options; } %s/nix/%s.nix ];
            specialArgs.pkgs = { };
        };
        in builtins.mapAttrs (_: o: {
            inherit (o) description;
            type = o.type.check != null;
            example = o ? example || o.type.check true;
            default = o ? default || o ? defaultText;
        }) evaluated.options.services.zmqcat""" % (lib or HERE + "/lib.nix", HERE, system, ROOT,
                                                   system))


def real_darwin(settings, lib, darwin):
    """What nix-darwin itself would do, with packages that are names only."""
    return value("""
        let
            lib = import %s;
            made = name: { type = "derivation"; inherit name; outPath = "/nowhere"; };
            pkgs = lib.genAttrs [ "gnugrep" "coreutils" "bashInteractive" ] made // {
                stdenv.shell = "/bin/bash";
                callPackage = _: _: made "zmqcat";
                runCommand = name: _: _: made name;
                writeScript = _: text: text;
                inherit lib;
            };
            config = (import %s/eval-config.nix {
                inherit lib;
                enableNixpkgsReleaseCheck = false;
                modules = [ %s/nix/darwin.nix {
                    services.zmqcat = { enable = true; %s };
                    nix.enable = false;
                    system.stateVersion = 6;
                    _module.args.pkgs = lib.mkForce pkgs;
                } ];
            }).config;
            ours = lib.filterAttrs (n: _: lib.hasPrefix "org.zmqcat" n);
            script = name: config.system.activationScripts.${name}.text;
        in {
            refused = map (a: a.message) (builtins.filter
                (a: !a.assertion && lib.hasInfix "zmqcat" a.message) config.assertions);
            plists = builtins.mapAttrs (_: p: p.text) (ours config.environment.launchDaemons);
            activation = script "launchd";
            users = script "users";
            groups = script "groups";
        }""" % (lib, darwin, ROOT, settings))


def evaluate_each(settings, **more):
    """The same for many, by one run of nix."""
    return value("[ %s ]" % "\n".join("(%s)" % expression(s, **more) for s in settings))


def without_null(v):
    """nix-darwin writes no key that is null."""
    if isinstance(v, dict):
        return {k: without_null(x) for k, x in v.items() if x is not None}
    return v


def plist(job):
    return plistlib.dumps(without_null(job), sort_keys=True).decode()


def files(case, lib=None):
    """{name: text} of what is kept of a case."""
    system, settings = CASES[case]
    e = evaluate(settings, system=system, lib=lib)
    if system == "darwin":
        return {name: plist(job) for name, job in e["plists"].items()}
    return {**e["units"], **{"etc-" + k.replace("/", "-"): v for k, v in e["etc"].items()}}


def keys(text, section):
    """{key: values} of a section of a unit, with yes and no for booleans."""
    body = re.search(r"^\[%s\]\n(.*?)(?=^\[|\Z)" % section, text, re.M | re.S).group(1)
    found = {}
    for line in body.splitlines():
        if line and line[0] not in "#;":
            key, v = line.split("=", 1)
            found.setdefault(key, []).append({"true": "yes", "false": "no"}.get(v, v))
    return found


def words(values):
    return " ".join(values or []).split()


def accept():
    shutil.rmtree(RENDERED, ignore_errors=True)
    for case in CASES:
        os.makedirs(os.path.join(RENDERED, case))
        for name, text in files(case).items():
            with open(os.path.join(RENDERED, case, name), "w") as f:
                f.write(text)
    print("tests/nix/rendered: %d configurations; git diff shows what changed" % len(CASES))


if __name__ == "__main__":
    accept()
