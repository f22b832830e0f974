# quick
"""The plists of launchd/: keys, types and manners, what `make install` makes of them for macOS, and
that the programs take their arguments."""
import copy, os, plistlib, re, subprocess, sys, unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness, jobs
from harness import BUILD, ROOT

DAEMONS, AGENTS = "Library/LaunchDaemons", "usr/share/zmqcat/LaunchAgents"
FOLDERS = {"launchd": DAEMONS, "launchd/agents": AGENTS}
ALL = [(folder, role, job) for folder in FOLDERS for role, job in jobs.shipped(folder).items()]


def install(top, target="install"):
    """What make does on macOS, with the programs of this system."""
    env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    done = subprocess.run(["make", "-s", target + "-launchd", "DESTDIR=" + top, "PREFIX=/usr"],
                          cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


class Plists(unittest.TestCase):
    def test_all_are_there(self):
        self.assertEqual(sorted((f, r) for f, r, _ in ALL),
                         [(f, r) for f in FOLDERS for r in ("hub", "spoke")])

    def test_h15_keys_types_and_manners(self):
        for folder, role, job in ALL:
            self.assertEqual((jobs.misfits(job), jobs.bad_manners(job)), ([], []), (folder, role))
            self.assertEqual(job["Label"], "org.zmqcat." + role)
            self.assertEqual(os.path.basename(job["ProgramArguments"][0]), "zmqcat-" + role)

    def test_h15_each_bad_manner_is_seen(self):
        """The table and the rules find what others shipped."""
        job = jobs.shipped("launchd")["hub"]
        for change, misfit, manner in (
                ({"KeepAlive": True}, ["job.KeepAlive"], ["KeepAlive"]),
                ({"KeepAlive": {"SuccessfulExit": True}}, [], ["KeepAlive"]),
                ({"ThrottleInterval": 1}, [], ["ThrottleInterval"]),
                ({"ThrottleInterval": "30"}, ["job.ThrottleInterval"], None),
                ({"Umask": 0o22}, [], ["Umask"]),
                ({"Nice": 1}, ["job.Nice"], []),
                ({"ProgramArguments": "zmqcat-hub"}, ["job.ProgramArguments"], []),
                ({"RunAtLoad": 1}, ["job.RunAtLoad"], ["RunAtLoad"]),
                ({"EnvironmentVariables": {"TOKEN": "x"}}, ["job.EnvironmentVariables.TOKEN"], []),
                ({"StandardErrorPath": "x.log"}, [], ["logs"]),
                ({"Sockets": {}}, [], ["Sockets", "Listeners", "Control"])):
            bad = {**copy.deepcopy(job), **change}
            self.assertEqual(jobs.misfits(bad), misfit, change)
            if manner is not None:
                self.assertEqual(jobs.bad_manners(bad), manner, change)
        for mode in (0o666, 0o661, 0o670):
            bad = copy.deepcopy(job)
            bad["Sockets"]["Listeners"]["SockPathMode"] = mode
            self.assertEqual(jobs.bad_manners(bad), ["Listeners"], oct(mode))

    def test_no_secret(self):
        for folder, role, job in ALL:
            self.assertNotIn("tc1", plistlib.dumps(job).decode(), (folder, role))
            paths = [a for a in job["ProgramArguments"][1:] if not a.startswith("--")]
            self.assertTrue(all(p.startswith(("/var/lib/zmqcat/", "@HOME@/")) for p in paths))

    def test_daemons_wait_for_the_administrator(self):
        """All in /Library/LaunchDaemons start at boot, but what is disabled."""
        for folder, role, job in ALL:
            daemon = folder == "launchd"
            self.assertEqual(job.get("Disabled"), True if daemon else None)
            self.assertEqual(job.get("UserName"), "zmqcat" if daemon else None)
            self.assertEqual(job.get("GroupName"), "zmqcat" if daemon else None)

    def test_agents_are_where_the_command_looks(self):
        for role, job in jobs.shipped("launchd/agents").items():
            mode = {"SockPathMode": 0o600}
            self.assertEqual(job["Sockets"], {
                "Listeners": {"SockPathName": "/tmp/zmqcat-@UID@.sock", **mode},
                "Control": {"SockPathName": "/tmp/zmqcat-@UID@.sock.ctl", **mode}})

    def test_programs_take_the_arguments(self):
        for folder, role, job in ALL:
            program, *argv = job["ProgramArguments"]
            got = subprocess.run([program.replace("@BINDIR@", BUILD), *argv, "--help"], text=True,
                                 capture_output=True)
            self.assertEqual((got.returncode, got.stderr), (0, ""), argv)


class Install(unittest.TestCase):
    def setUp(self):
        self.top = harness.tempdir()
        install(self.top)

    def path(self, folder, role):
        return os.path.join(self.top, folder, "org.zmqcat.%s.plist" % role)

    def test_installed(self):
        for folder, role, job in ALL:
            path = self.path(FOLDERS[folder], role)
            argv = ["/usr/bin/zmqcat-" + role, *job["ProgramArguments"][1:]]
            self.assertEqual(jobs.read(path), {**job, "ProgramArguments": argv})
            self.assertEqual(os.stat(path).st_mode & 0o777, 0o644)
            with open(path) as f:
                self.assertLessEqual(set(re.findall(r"@\w+@", f.read())), {"@HOME@", "@UID@"})

    def agent_commands(self, role):
        with open(self.path(AGENTS, role)) as f:
            comment = f.read().split("As that user, once:\n")[1].split("\nlaunchd opens")[0]
        return comment.replace("/" + AGENTS, os.path.join(self.top, AGENTS))

    def test_agent_as_its_comment_says(self):
        """The commands make a plist without placeholders; launchctl is not here and says its
        arguments."""
        for role in ("hub", "spoke"):
            home = harness.tempdir()
            harness.write_file(os.path.join(home, "launchctl"), '#!/bin/sh\necho "$@"\n', 0o755)
            env = {"HOME": home, "PATH": home + ":" + os.environ["PATH"]}
            got = subprocess.run(["sh", "-euc", self.agent_commands(role)], env=env, text=True,
                                 capture_output=True)
            plist = home + "/Library/LaunchAgents/org.zmqcat.%s.plist" % role
            self.assertEqual((got.stderr, got.stdout.split()), (
                "", ["bootstrap", "gui/%d" % os.getuid(), plist]))
            job = jobs.read(plist)
            self.assertNotIn("@", plistlib.dumps(job).decode())
            self.assertTrue(os.path.isdir(job["WorkingDirectory"]))
            for log in (job["StandardOutPath"], job["StandardErrorPath"]):
                self.assertTrue(os.path.isdir(os.path.dirname(log)))
            self.assertEqual(job["Sockets"]["Listeners"]["SockPathName"],
                             "/tmp/zmqcat-%d.sock" % os.getuid())

    def test_nix_keeps_all_below_its_prefix(self):
        """Its package names each directory that the Makefile does not derive from PREFIX."""
        texts = [harness.read_file(os.path.join(ROOT, f)).decode()
                 for f in ("Makefile", "nix/package.nix")]
        outside = re.findall(r"^(\w+DIR) \?= /", texts[0], re.M)
        self.assertEqual(outside, ["LAUNCHDAEMONSDIR"])
        for name in outside:
            self.assertIn('"%s=${placeholder "out"}/' % name, texts[1])

    def test_uninstall_leaves_nothing(self):
        install(self.top, "uninstall")
        self.assertEqual([f for _, _, names in os.walk(self.top) for f in names], [])


if __name__ == "__main__":
    harness.main()
