"""What the NixOS module refuses at evaluation, and odd values that it takes: tests for a class with
`lib` and `accepted()`, test_nix.py's."""
import evaluate as ev
from evaluate import HUB, KEY, SPOKE


class Refused:
    def test_refused_with_what_to_write_instead(self):
        store = "/nix/store/" + "0" * 32 + "-token"
        secret, many = '"/run/secrets/', " ".join(str(n) for n in range(2000, 2033))
        join, public = 'role = "spoke"; ', "everybody can read"
        rows = (
            ('role = "spoke";', "tokenFile: a spoke needs", "tokenFile = "),
            (HUB + 'tokenFile = "/run/t";', "tokenFile is for a spoke", 'keyFile = "/run/t"'),
            (SPOKE + 'allow = [ "%s" ];' % KEY, "allow is for a hub", "remove it"),
            (SPOKE + 'allowFile = "/etc/a";', "allowFile is for a hub", "remove it"),
            (SPOKE + 'mailbox = "/srv/m";', "mailbox is for a hub", "remove it"),
            (SPOKE + 'fsync = "batch";', "fsync is for a hub", "remove it"),
            (SPOKE + "region = 1;", "region is for a hub", "remove it"),
            (SPOKE + "local = true;", "local is for a hub", 'role = "hub"'),
            (HUB + 'local = true; allow = [ "%s" ];' % KEY, "allow is about", "local = false"),
            (HUB + 'local = true; allowFile = "/etc/a";', "allowFile is about", "local = false"),
            (HUB + 'local = true; keyFile = "/k";', "keyFile is about", "local = false"),
            (HUB + "local = true; forward = [ 1 ];", "forward is about", "local = false"),
            (HUB + 'local = true; derpMap = "/m";', "derpMap is about", "local = false"),
            (HUB + "local = true; region = 1;", "region is about", "local = false"),
            (join + 'tokenFile = "%s";' % store, "tokenFile: " + public, secret),
            (join + "tokenFile = %s;" % store, "tokenFile: " + public, secret),
            (join + "tokenFile = toString %s;" % store, "tokenFile: " + public, secret),
            (join + 'tokenFile = { outPath = "%s"; };' % store, "tokenFile: " + public, secret),
            (join + "tokenFile = /etc/hostname;", "without quotes", secret),
            (join + 'tokenFile = "/run/../nix/store/x";', "tokenFile: write", "without"),
            (HUB + 'keyFile = "%s";' % store, "keyFile: everybody can read", secret),
            (HUB + "keyFile = %s;" % store, "keyFile: everybody can read", secret),
            (HUB + "keyFile = toString %s;" % store, "keyFile: everybody can read", secret),
            (HUB + "keyFile = /etc/hostname;", "without quotes", secret),
            (HUB + 'keyFile = "/var/lib/zmqcat/../../..%s";' % store, "keyFile: write", "without"),
            (HUB + "encryptedCredentials = true;", "encryptedCredentials: no file", "keyFile = "),
            (HUB + 'encryptedCredentials = true; keyFile = "/var/lib/zmqcat/k";',
             "encryptedCredentials: no file", "keyFile = "),
            (HUB + 'mailbox = "/srv//m";', "mailbox: write", "without"),
            (HUB + 'mailbox = "/srv/it\'s";', "mailbox: write", "without \'"),
            (HUB + 'mailbox = "/srv/a\\nb";', "mailbox: write", "line ends"),
            (HUB + 'mailbox = "/srv/a\\\\b";', "mailbox: write", "backslash"),
            (HUB + 'allow = [ "" ];', "no node key", "small hex digits"),
            (HUB + 'allow = [ "%s" "%sa" ];' % (KEY, KEY), "no node key", "zmqcat nodekey"),
            (HUB + 'allow = [ "%s" ];' % KEY.upper(), "no node key", "small hex"),
            (HUB + 'allow = [ "%s\\n" ];' % KEY, "no node key", "small hex"),
            (HUB + 'allowFile = "/home/me/a";', "does not see /home/me/a", "/var/lib/zmqcat/"),
            (HUB + 'derpMap = "/tmp/a";', "does not see /tmp/a", "/var/lib/zmqcat/"),
            (HUB + 'derpMap = "relay.example.org";', "neither an address nor", '"https://'),
            (HUB + 'region = "a b";', '"a b" is no relay', "relay.example.org"),
            (HUB + "listen = [ ];", "cannot be listened on", "unix:///path"),
            (HUB + 'listen = [ "tcp://localhost:1" ];', "localhost", "tcp://127.0.0.1:port"),
            (HUB + 'listen = [ "127.0.0.1:70000" ];', "127.0.0.1:70000", "tcp://127.0.0.1:port"),
            (HUB + 'listen = [ "127.0.0.1:0" ];', "127.0.0.1:0", "tcp://127.0.0.1:port"),
            (HUB + 'listen = "./s";', "./s", "unix:///path"),
            (HUB + 'listen = [ "/%s" ];' % ("x" * 107), "xxx", "at most 107 bytes"),
            (HUB + "forward = [ 7 ];", '"7" cannot be offered', "such as 5432"),
            (HUB + "forward = [ 0 ];", '"0" cannot be offered', "such as 5432"),
            (HUB + 'forward = [ "8080:80" ];', '"8080:80" cannot be offered', "such as 5432"),
            (SPOKE + "forward = [ 80 ];", '"80" cannot be shown', '"8080:80"'),
            (SPOKE + 'forward = [ "8080:0" ];', '"8080:0" cannot be shown', '"8080:80"'),
            (SPOKE + 'forward = [ "8080:80" 8080 ];', "is there twice", '"8080:80"'),
            (SPOKE + "forward = [ %s ];" % many, "forward: 33 ports", "32 at most"),
            (SPOKE + 'extraArgs = [ "tc%s" ];' % ("a" * 180), "read by everybody", "tokenFile ="),
            (HUB + 'mailbox = "/home/me/m";', "cannot be written", "/var/lib/zmqcat/mailbox"),
            (HUB + 'mailbox = "/tmp";', "cannot be written", "/srv/zmqcat"),
            (HUB + 'mailbox = "%s";' % store, "cannot be written", "/srv/zmqcat"),
            (HUB + 'mailbox = "/var/lib/zmqcat";', "cannot be written", "/mailbox"),
            (HUB + 'mailbox = "/srv/m.json";', "beside /srv/m.json", "zmqcat/mailbox.json"),
            (HUB + 'mailbox = "/";', "beside /", "/var/lib/zmqcat/mailbox.json"),
            (HUB + 'mailbox = "/var/lib/m.json";', "beside /var/lib/", "zmqcat/mailbox.json"),
            (HUB + 'mailbox = "/srv/m/";', "mailbox: write", "/ at its end"),
            (HUB + 'mailbox = "/var/lib/zmqcat/";', "mailbox: write", "/ at its end"),
            (HUB + 'mailbox = "/var/lib/zmqcat/a/b";', "cannot be written", "zmqcat/mailbox"),
            (HUB + 'mailbox = "/var/lib/zmqcat/token";', "needs itself", "zmqcat/mailbox"),
            (HUB + 'mailbox = "/var";', "belong to zmqcat alone", "/srv/zmqcat"),
            (HUB + 'mailbox = "/var/lib";', "belong to zmqcat alone", "/srv/zmqcat"),
            (HUB + 'mailbox = "/srv";', "belong to zmqcat alone", "/srv/zmqcat"),
            (HUB + 'keyFile = "/var/lib/zmqcat/a/b";', "cannot be written", "zmqcat/hub.key"),
            (HUB + 'keyFile = "/var/lib/zmqcat/token";', "needs itself", "zmqcat/hub.key"),
            (HUB + 'keyFile = "/var/lib/zmqcat";', "cannot be written", "zmqcat/hub.key"),
            (HUB + 'keyFile = "/run/secrets/";', "keyFile: write", "/ at its end"),
            (HUB + 'keyFile = "/run/k\\nUser=root";', "keyFile: write", "line ends"),
            (join + 'tokenFile = "/run/t\\nUser=root";', "tokenFile: write", "line ends"),
            (join + 'tokenFile = "/run/t\\\\";', "tokenFile: write", "backslash"),
            (HUB + 'listen = [ "999.1.1.1:1" ];', "999.1.1.1", "tcp://127.0.0.1:port"),
            (HUB + 'listen = [ "1:1" ];', '"1:1"', "tcp://127.0.0.1:port"),
            (HUB + 'listen = [ "[1::2::3]:1" ];', "1::2::3", "tcp://[::1]:port"),
            (HUB + 'listen = [ "/run/a/" ];', '"/run/a/"', "unix:///path"),
            (HUB + 'listen = [ "/run/zmqcat/control.sock" ];', "is the control", "another path"),
            (HUB + 'region = "0";', '"0" is no relay', "relay.example.org"),
            (HUB + 'region = "a:99999";', '"a:99999" is no relay', "relay.example.org"),
            (HUB + 'region = "a..b";', '"a..b" is no relay', "relay.example.org"))
        for row, e in zip(rows, ev.evaluate_each([r[0] for r in rows], lib=self.lib)):
            settings, what, instead = row
            refused = e["refused"]
            self.assertEqual(len(refused), 1, (settings, refused))
            self.assertIn(what, refused[0])
            self.assertIn(instead, refused[0])

    def test_odd_values_that_are_good(self):
        for settings in (
                'region = "[2001:db8::1]:443";', 'region = "192.0.2.1:8443";', 'region = "relay";',
                'region = "900";', 'heartbeat = ".5";', 'heartbeat = "-1h2.5m";',
                'listen = [ "[::]:1" "[2001:db8::ffff:192.0.2.1]:2" "[1:2:3:4:5:6:7:8]:3" ];',
                'listen = [ "255.0.19.200:1" "/run/...a/.b" ];', 'mailbox = "/srv/zmqcat";',
                'mailbox = "/nix/persist/m";', 'keyFile = "/var/lib/zmqcat/hub.key";',
                'keyFile = "/run/se crets/\\"k\\":1";'):
            self.accepted(HUB + settings)

    def test_wrong_types(self):
        for settings, what in (
                ('role = "both";', "services.zmqcat.role"),
                (HUB + "local = 1;", "services.zmqcat.local"),
                (HUB + 'mailbox = "m";', "services.zmqcat.mailbox"),
                (HUB + 'user = "a b";', "services.zmqcat.user"),
                (HUB + 'group = "a\\nUser=root";', "services.zmqcat.group"),
                (HUB + 'fsync = "sometimes";', "services.zmqcat.fsync"),
                (HUB + 'heartbeat = "5 s";', "services.zmqcat.heartbeat"),
                (HUB + 'heartbeat = "1.2.3";', "services.zmqcat.heartbeat"),
                (HUB + 'heartbeat = "99999999999h";', "services.zmqcat.heartbeat"),
                (HUB + "forward = [ 70000 ];", "services.zmqcat.forward"),
                (HUB + 'forward = [ "http" ];', "services.zmqcat.forward"),
                (HUB + "region = -1;", "services.zmqcat.region"),
                ('role = "spoke"; tokenFile = "token";', "services.zmqcat.tokenFile"),
                (HUB + 'allow = "%s";' % KEY, "services.zmqcat.allow"),
                (HUB + 'logFile = "/a";', "services.zmqcat.logFile' does not exist"),
                (HUB + "tokenfile = null;", "services.zmqcat.tokenfile' does not exist")):
            got = ev.instantiate(ev.expression(settings, lib=self.lib))
            self.assertNotEqual(got.returncode, 0, settings)
            self.assertIn(what, got.stderr)
