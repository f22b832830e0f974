"""What either module takes and refuses, and the tests that go through it: a table for each of
settings and what comes of them. test_nix.py and test_darwin.py run them."""
import evaluate as ev
from evaluate import HUB, KEY, SPOKE

STORE = "/nix/store/" + "0" * 32 + "-token"
PACKAGE = 'package = { type = "derivation"; name = "x"; outPath = "/x"; };'
# What each option alone makes of a command line, by systems where they differ.
ALONE = {
    "hub": {
        "local": ("local = true;", ["--local"]),
        "mailbox": ('mailbox = "/srv/m";', ["--mailbox", "/srv/m"]),
        "fsync": ('fsync = "never";', ["--fsync", "never"]),
        "allow": ('allow = [ "%s" ];' % KEY, {"nixos": ["--allow-file", "/etc/zmqcat/allow"],
                                             "darwin": ["--allow", KEY]}),
        "allowFile": ('allowFile = "/etc/a";', ["--allow-file", "/etc/a"]),
        "keyFile": ('keyFile = "/run/k";', {"nixos": ["--key-file", "%d/key"],
                                            "darwin": ["--key-file", "/run/k"]}),
        "forward": ("forward = [ 80 ];", ["--forward", "80"]),
        "derpMap": ('derpMap = "/srv/map";', ["--derp-map", "/srv/map"]),
        "region": ('region = "r.example.org:444";', ["--region", "r.example.org:444"]),
        "heartbeat": ('heartbeat = "-1";', ["--heartbeat", "-1"]),
        "extraArgs": ('extraArgs = [ "--trace" "--name=" ];', ["--trace", "--name="]),
    },
    "spoke": {
        "keyFile": ('keyFile = "/run/k";', {"nixos": ["--key-file", "%d/key"],
                                            "darwin": ["--key-file", "/run/k"]}),
        "forward": ('forward = [ "8080:80" ];', ["--forward", "8080:80"]),
        "derpMap": ('derpMap = "http://h/map";', ["--derp-map", "http://h/map"]),
        "extraArgs": ('extraArgs = [ "--wait-hub" "5s" ];', ["--wait-hub", "5s"]),
        "encryptedCredentials": ("encryptedCredentials = true;", {"nixos": []}),
    },
}
for rows in ALONE.values():
    rows.update({
        "listen": ('listen = [ "/run/x" ];', []),
        "compatSocket": ("compatSocket = true;", {
            "nixos": [],
            "darwin": ["--socket-group", "zmqcat", "--listen", "unix:///tmp/zmqcat.sock"]}),
        "openFirewall": ('openFirewall = true; listen = [ "0.0.0.0:7" ];', {"nixos": []}),
        "user": ('user = "bus";', []),
        "group": ('group = "people";', []),
        "socketUsers": ('socketUsers = [ "alice" ];', []),
        "package": (PACKAGE, []),
        "logFile": ('logFile = "/var/log/bus";', {"darwin": []}),
    })
# Not alone, or not of a hub.
OTHER_OPTIONS = {"enable", "role", "tokenFile", "encryptedCredentials"}
# Two that have nothing to do with each other's work, but stand in each other's way.
APART = [{"listen", "openFirewall"}, {"allow", "allowFile"}, {"local"},
         {"group", "compatSocket"}, {"group", "socketUsers"}]
# Each option of the daemons with a value; the daemons themselves are asked, too.
ARGUMENTS = {
    "hub": """--allow=%s --allow-file=/a --clients-max 9 --control /c --derp-map /d --forward 80
        --fsync batch --headers-bytes 1k --headers-max 9 --heartbeat=-1m30s --key-file /k
        --listen /l --local --log-level err --mailbox /m --mailbox-cap 99 --mailboxes-max 9
        --max-payload 1MiB --name a --no-psk --open --print-token --quiet --region 1
        --segment 128k --session-bytes 64KB --sessions-max 9 --socket-group 0 --socket-mode 0660
        --sub-buffer 9 --token-out /t --topics-max 0 --trace""" % KEY,
    "spoke": """--control /c --derp-map /d --forward 80:80 --key-file /k --listen /l
        --log-level debug --name a --quiet --socket-group 0 --socket-mode 600 --token-file /t
        --trace --wait-hub 1.5h""",
}


def mailbox(path):
    return HUB + 'mailbox = "%s"; ' % path


def listen(*addresses):
    return HUB + "listen = [ %s ]; " % " ".join('"%s"' % a for a in addresses)


def arguments(base, *args):
    return base + "extraArgs = [ %s ]; " % " ".join('"%s"' % a for a in args)


def refused():
    """(settings, what is said of them, what to write instead)."""
    secret, many = '"/run/secrets/', " ".join(str(n) for n in range(2000, 2033))
    join, public = 'role = "spoke"; ', "everybody can read"
    local, state = HUB + "local = true; ", "/var/lib/zmqcat"
    yield from (
        ('role = "spoke";', "tokenFile: a spoke needs", "tokenFile = "),
        (HUB + 'tokenFile = "/run/t";', "tokenFile is for a spoke", 'keyFile = "/run/t"'),
        (SPOKE + 'allow = [ "%s" ];' % KEY, "allow is for a hub", "remove it"),
        (SPOKE + 'allowFile = "/etc/a";', "allowFile is for a hub", "remove it"),
        (SPOKE + 'mailbox = "/srv/m";', "mailbox is for a hub", "remove it"),
        (SPOKE + 'fsync = "batch";', "fsync is for a hub", "remove it"),
        (SPOKE + "region = 1;", "region is for a hub", "remove it"),
        (SPOKE + "local = true;", "local is for a hub", 'role = "hub"'),
        (local + 'allow = [ "%s" ];' % KEY, "allow is about", "local = false"),
        (local + 'allowFile = "/etc/a";', "allowFile is about", "local = false"),
        (local + 'keyFile = "/k";', "keyFile is about", "local = false"),
        (local + "forward = [ 1 ];", "forward is about", "local = false"),
        (local + 'derpMap = "/m";', "derpMap is about", "local = false"),
        (local + "region = 1;", "region is about", "local = false"),
        (arguments(local, "--print-token"), "extraArgs is about", "local = false"),
        (arguments(HUB + "region = 1; ", "--local"), "region is about", "remove it"))
    # Secrets.
    yield from (
        (join + 'tokenFile = "%s";' % STORE, "tokenFile: " + public, secret),
        (join + "tokenFile = %s;" % STORE, "tokenFile: " + public, secret),
        (join + "tokenFile = toString %s;" % STORE, "tokenFile: " + public, secret),
        (join + 'tokenFile = { outPath = "%s"; };' % STORE, "tokenFile: " + public, secret),
        (join + "tokenFile = /etc/hostname;", "without quotes", secret),
        (join + 'tokenFile = "/run/../nix/store/x";', "tokenFile: write", "without"),
        (HUB + 'keyFile = "%s";' % STORE, "keyFile: everybody can read", secret),
        (HUB + "keyFile = %s;" % STORE, "keyFile: everybody can read", secret),
        (HUB + "keyFile = toString %s;" % STORE, "keyFile: everybody can read", secret),
        (HUB + "keyFile = /etc/hostname;", "without quotes", secret),
        (HUB + 'keyFile = "%s/../../..%s";' % (state, STORE), "keyFile: write", "without"))
    # Paths.
    yield from (
        (mailbox("/srv//m"), "mailbox: write", "without"),
        (mailbox("/srv/m/"), "mailbox: write", "/ at its end"),
        (mailbox("/"), "mailbox: write", "/ at its end"),
        (mailbox("/srv/it's"), "mailbox: write", "without"),
        (mailbox("/srv/a\\nb"), "mailbox: write", "line ends"),
        (mailbox("/srv/a\\\\b"), "mailbox: write", "backslash"),
        (HUB + 'keyFile = "/run/k/";', "keyFile: write", "/ at its end"),
        (join + 'tokenFile = "/run/t\\nUser=root";', "tokenFile: write", "line ends"),
        (HUB + 'allowFile = "/etc/./a";', "allowFile: write", "/., /.."),
        (HUB + 'derpMap = "/etc/a/..";', "derpMap: write", "/., /.."),
        (mailbox(state), "the directory of the service", state + "/mailbox"),
        (HUB + 'keyFile = "%s";' % state, "the directory of the service", state + "/keyFile"),
        (join + 'tokenFile = "%s";' % state, "the directory of the service", "/tokenFile"),
        (mailbox(state + "/hub.key"), "is for the daemon", state + "/mailbox"),
        (mailbox(state + "/token/x"), "is for the daemon", state + "/mailbox"),
        (mailbox(state + "/revoked"), "is for the daemon", state + "/mailbox"),
        (HUB + 'keyFile = "%s/token";' % state, "is for the daemon", state + "/keyFile"),
        (HUB + 'allowFile = "%s/revoked";' % state, "is for the daemon", state + "/allowFile"),
        (join + 'tokenFile = "%s/spoke.key";' % state, "is for the daemon", "/tokenFile"),
        (mailbox("/srv/m") + 'keyFile = "/srv/m";', "services.zmqcat.keyFile names", "/mailbox"),
        (mailbox("/srv/m") + 'keyFile = "/srv/m/k";', "services.zmqcat.mailbox names",
         state + "/keyFile"),
        (SPOKE + 'keyFile = "/run/secrets/token";', "services.zmqcat.keyFile names", "/tokenFile"),
        (HUB + 'keyFile = "%s/a/b";' % state, "makes the directory", state + '/b"'),
        (mailbox(state + "/a/b"), "makes the directory", state + '/b"'),
        (HUB + 'allowFile = "/home/me/a";', "does not see /home/me/a", "/var/lib/zmqcat/"),
        (HUB + 'allowFile = "/proc/x";', "does not see /proc/x", "/var/lib/zmqcat/"),
        (HUB + 'derpMap = "/tmp/a";', "does not see /tmp/a", "/var/lib/zmqcat/"))
    for path in ("/home/me/m", "/tmp", "/boot", "/boot/m", "/run/m", "/usr/local/m",
                 "/var/run/m", "/var/lib/systemd", "/private/var/m", STORE):
        yield mailbox(path), path + " cannot be written", '"/srv/zmqcat"'
    for path in ("/srv", "/var", "/var/lib", "/var/cache", "/mnt", "/mnt/disk", "/opt", "/nix",
                 "/data"):
        yield mailbox(path), path + " would belong", state + '/mailbox"'
    for path in ("/srv/m.json", "/var/lib/a.json", "/mnt/disk/m.json", "/m.json"):
        wanted = path.rsplit("/", 1)[0] or "/"
        yield mailbox(path), "mailbox: %s would belong" % wanted, state + '/mailbox.json"'
    # Addresses.
    for address in ("tcp://localhost:1", "127.0.0.1:70000", "127.0.0.1:0", "999.1.1.1:5", "1.2:5",
                    "01.2.3.4:5", "[:::::]:5", "[1.2.3.4]:5", "[1::2::3]:5", "[1:2:3]:5",
                    "[1:2:3:4:5:6:7:8:9]:5", "[1:2:3:4:5:6:7:8::]:5", "[::12345]:5", "[:1::]:5",
                    "[1::1.2.3]:5", "[1:2:3:4:5:6:7:1.2.3.4]:5",
                    "/run/x/", "/run/../x", "/run//x", "/run/a b", "/run/it's", "./s"):
        yield listen(address), address + '" cannot be listened on', "tcp://127.0.0.1:port"
    yield from (
        (HUB + 'listen = "./s";', "./s", "unix:///path"),
        (listen(), "cannot be listened on", "unix:///path"),
        (listen(state), "is in the way", '"unix:///run/'),
        (listen(state + "/bus"), "is in the way", '"unix:///run/'),
        (listen("/run/x", "/run/x/y"), "is in the way", '"unix:///run/'),
        (mailbox("/srv/m") + 'listen = "/srv/m/s"; ', "is in the way", '"unix:///run/'),
        (listen("0.0.0.0:5", "127.0.0.1:5"), "port 5 is there twice", "0.0.0.0"),
        (listen("[::]:5", "0.0.0.0:5"), "port 5 is there twice", "[::]"),
        (listen("[::1]:5", "[::]:5"), "port 5 is there twice", "[::]"),
        (SPOKE + 'listen = [ "127.0.0.1:2000" ]; forward = [ 2000 ];', "port 2000 is there",
         "forward other"),
        (listen(*["127.0.0.1:%d" % n for n in range(1, 30)]), "29 addresses", "28 at most"),
        (HUB + 'derpMap = "relay.example.org";', "neither an address nor", '"https://'))
    for region in ("a b", "h:99999", "a:0", "0", "99999999999", "[::x]", "[1:2]:5", "", "a..b",
                   "-a", "a:"):
        yield HUB + 'region = "%s";' % region, '"%s" is no relay' % region, "relay.example.org"
    yield HUB + "region = 99999999999;", '"99999999999" is no relay', "relay.example.org"
    # Keys and ports.
    yield from (
        (HUB + 'allow = [ "" ];', "no node key", "small hex digits"),
        (HUB + 'allow = [ "%s" "%sa" ];' % (KEY, KEY), "no node key", "zmqcat nodekey"),
        (HUB + 'allow = [ "%s" ];' % KEY.upper(), "no node key", "small hex"),
        (HUB + 'allow = [ "%s\\n" ];' % KEY, "no node key", "small hex"),
        (HUB + "forward = [ 7 ];", '"7" cannot be offered', "such as 5432"),
        (HUB + "forward = [ 0 ];", '"0" cannot be offered', "such as 5432"),
        (HUB + 'forward = [ "8080:80" ];', '"8080:80" cannot be offered', "such as 5432"),
        (SPOKE + "forward = [ 80 ];", '"80" cannot be shown', '"8080:80"'),
        (SPOKE + 'forward = [ "8080:0" ];', '"8080:0" cannot be shown', '"8080:80"'),
        (SPOKE + 'forward = [ "8080:80" 8080 ];', "is there twice", '"8080:80"'),
        (SPOKE + "forward = [ %s ];" % many, "forward: 33 ports", "32 at most"))
    # Arguments.
    yield arguments(SPOKE, "tc" + "a" * 180), "read by everybody", "tokenFile ="
    for base, args, what in (
            (HUB, ["--nosuch"], "--nosuch"), (HUB, ["word"], "word"), (SPOKE, ["word"], "word"),
            (HUB, ["-quiet"], "-quiet"), (HUB, ["--help"], "--help"), (HUB, ["--"], "--"),
            (HUB, ["--quiet=1"], "--quiet=1"), (HUB, ["--trace", "yes"], "yes"),
            (HUB, ["--mailbox-cap"], "--mailbox-cap"), (HUB, ["--name a"], "--name a"),
            (HUB, ["--mailbox-cap", "--quiet"], "--mailbox-cap --quiet"),
            (HUB, ["--mailbox-cap=many"], "--mailbox-cap many"),
            (HUB, ["--wait-hub", "5s"], "--wait-hub"), (SPOKE, ["--local"], "--local"),
            (SPOKE, ["--wait-hub", "5 s"], "--wait-hub 5 s"),
            (SPOKE, ["--heartbeat=1s"], "--heartbeat=1s")):
        yield arguments(base, *args), 'does not take "%s"' % what, "--help` lists"
    for base, args, instead in (
            (HUB, ["--listen", "/run/x"], "listen"), (HUB, ["--mailbox=/srv/x"], "mailbox"),
            (HUB, ["--key-file", "/k"], "keyFile"), (SPOKE, ["--token-file", "/t"], "tokenFile")):
        yield arguments(base, *args), "has to know of --", "services.zmqcat.%s." % instead
    yield arguments(HUB, "--no-psk"), "the relay could come in", "Write allow"
    yield arguments(HUB, "--open"), "--open is for --no-psk", "Remove it"
    yield (arguments(HUB + 'allowFile = "/etc/a"; ', "--no-psk", "--open"), "--open is for",
           "neither allow nor")


WRONG_TYPES = [
    ('role = "both";', "services.zmqcat.role"),
    (HUB + "local = 1;", "services.zmqcat.local"),
    (HUB + 'mailbox = "m";', "services.zmqcat.mailbox"),
    (HUB + 'user = "a b";', "services.zmqcat.user"),
    (HUB + 'group = "a\\nUser=root";', "services.zmqcat.group"),
    (HUB + 'socketUsers = [ "" ];', "services.zmqcat.socketUsers"),
    (HUB + 'socketUsers = [ "a b" ];', "services.zmqcat.socketUsers"),
    (HUB + 'fsync = "sometimes";', "services.zmqcat.fsync"),
    *((HUB + 'heartbeat = "%s";' % text, "services.zmqcat.heartbeat") for text in (
        "5 s", ".", "1.2.3", "99999999999999h", "1m30", "5x", "--1")),
    (HUB + "forward = [ 70000 ];", "services.zmqcat.forward"),
    (HUB + 'forward = [ "http" ];', "services.zmqcat.forward"),
    (HUB + "region = -1;", "services.zmqcat.region"),
    ('role = "spoke"; tokenFile = "token";', "services.zmqcat.tokenFile"),
    (HUB + 'allow = "%s";' % KEY, "services.zmqcat.allow"),
    (HUB + "tokenfile = null;", "services.zmqcat.tokenfile' does not exist"),
]


class Rows:
    """For a TestCase with system, lib, argv(evaluated) and what it alone refuses."""

    def evaluate_each(self, settings):
        return ev.evaluate_each(settings, lib=self.lib, system=self.system)

    def alone(self, role):
        """{name: (settings, argv)} of this system."""
        return {name: (settings, argv[self.system] if isinstance(argv, dict) else argv)
                for name, (settings, argv) in ALONE[role].items()
                if not isinstance(argv, dict) or self.system in argv}

    def test_every_option_alone(self):
        """Each says what it should, warns of nothing and changes something."""
        for role, base in (("hub", HUB), ("spoke", SPOKE)):
            rows = self.alone(role)
            plain, *got = self.evaluate_each([base] + [base + s for s, _ in rows.values()])
            for (name, (settings, argv)), e in zip(rows.items(), got):
                self.assertEqual((e["refused"], e["warnings"]), ([], []), settings)
                self.assertEqual(sorted(self.argv(e)), sorted(self.argv(plain) + argv), settings)
                self.assertNotEqual(e, plain, name)

    def test_every_two_options_together(self):
        """No option takes anything from another."""
        for role, base in (("hub", HUB), ("spoke", SPOKE)):
            rows = self.alone(role)
            pairs = [(a, b) for a in rows for b in rows if a < b
                     and not any(apart <= {a, b} for apart in APART)]
            plain, *got = self.evaluate_each([base] + [base + rows[a][0] + rows[b][0]
                                                       for a, b in pairs])
            for (a, b), e in zip(pairs, got):
                self.assertEqual((e["refused"], e["warnings"]), ([], []), (a, b))
                wanted = self.argv(plain) + rows[a][1] + rows[b][1]
                self.assertEqual(sorted(self.argv(e)), sorted(wanted), (a, b))

    def test_refused_with_what_to_write_instead(self):
        rows = [*refused(), *self.refused_here]
        for (settings, what, instead), e in zip(rows, self.evaluate_each([r[0] for r in rows])):
            self.assertEqual(len(e["refused"]), 1, (settings, e["refused"]))
            self.assertIn(what, e["refused"][0], settings)
            self.assertIn(instead, e["refused"][0], settings)

    def test_places_that_are_not_for_the_service(self):
        """Each of them: those that it does not see, and those of the system."""
        hidden = "/Users /dev /home /proc /root /sys /tmp /var/tmp".split()
        system = """/Library /System /bin /boot /etc /lib /lib64 /private /run /sbin /usr
            /var/lib/nixos /var/lib/private /var/lib/systemd /var/lib/zmqcat-bus /var/run""".split()
        rows = [HUB + 'allowFile = "%s/x/y";' % d for d in hidden]
        rows += [HUB + 'mailbox = "%s/x/y";' % d for d in hidden + system]
        for settings, e in zip(rows, self.evaluate_each(rows)):
            self.assertEqual(len(e["refused"]), 1, (settings, e["refused"]))

    def test_wrong_types(self):
        for settings, what in WRONG_TYPES + self.wrong_here:
            got = ev.instantiate(ev.expression(settings, lib=self.lib, system=self.system))
            self.assertNotEqual(got.returncode, 0, settings)
            self.assertIn(what, got.stderr)

    def test_what_is_near_to_refused_is_taken(self):
        """The rules are not stricter than they have to be."""
        state = "/var/lib/zmqcat"
        taken = [mailbox(p) for p in ("/srv/m", "/srv/a b", "/mnt/disk/m", "/var/lib/m",
                                      "/var/libx/m", state + "/m.json", state + "/tokens",
                                      "/srv/bus/m.json", "/srv/.m", "/nix/persist/m")]
        taken += [mailbox("/srv/b/m.json") + 'keyFile = "/srv/b/k"; allowFile = "/srv/b/a"; ',
                  HUB + 'keyFile = "%s/hub.key"; ' % state,
                  HUB + 'keyFile = "/run/a b/\\"k\\":1"; ',
                  SPOKE + 'keyFile = "%s/spoke.key"; ' % state,
                  'role = "spoke"; tokenFile = "%s/token"; ' % state]
        taken += [listen(a) for a in ("255.255.255.255:65535", "[::]:1", "[1::]:1", "[::1:2]:1",
                                      "[1:2:3:4:5:6:7:8]:1", "[1::3:4:5:6:7:8]:1", "/run/zmqcat/b",
                                      "[fe80::ABCD]:00080", "0.0.0.0:1",
                                      "[1::ffff:192.0.2.1]:1", "/run/...a/.b")]
        taken += [listen("0.0.0.0:5", "[::1]:5", "127.0.0.1:6"),
                  listen("127.0.0.1:5", "127.0.0.2:5", "192.0.2.1:5"),
                  listen(*["127.0.0.1:%d" % n for n in range(1, 29)]),
                  SPOKE + 'listen = [ "127.0.0.1:2001" ]; forward = [ 2000 "2002:2001" ];']
        taken += [HUB + 'region = "%s";' % r for r in ("900", "h", "h.example:1", "192.0.2.1",
                                                        "[::1]", "[2001:db8::1]:443")]
        taken += [HUB + 'heartbeat = "%s";' % t for t in ("", "0", "-1s", "-1h2.5m", "1.5h",
                                                           ".5s", "1m30s", "1h2m3s4ms",
                                                           "5.")]
        taken += [arguments(HUB, "--no-psk", "--open"), arguments(HUB, "--name=--nosuch"),
                  arguments(HUB, "--name", "--nosuch"),
                  arguments(HUB + 'allow = [ "%s" ]; ' % KEY, "--no-psk")]
        for settings, e in zip(taken, self.evaluate_each(taken)):
            warned = [w for w in e["warnings"] if ".json is a directory" not in w]
            self.assertEqual((e["refused"], warned), ([], []), settings)
