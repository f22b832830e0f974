# serial
"""Every command that README.md, docs/guide.md and the EXAMPLES of the man pages show is run here as
it stands, and what the first two show as its output is compared.

Fenced blocks marked `sh` hold command lines after `$ ` and their output; blocks marked
`sh terminal` hold one program that goes on running, as in a terminal of its own, and its output
until the end; blocks marked `sh hosts` hold the same of two hosts, after `hub$ ` and `other$ `,
whose daemons go on running; a block of C that begins with the comment `name.c` is saved under that
name, and one marked `sh script` whose second line is `# name: ...` as a program. `...` in an output
stands for any text within its line, a line of only `...` for any number of lines.

The commands use the default sockets, so all runs in a mount namespace with an empty /tmp, where
that is possible, and otherwise only while those sockets do not exist.
"""
import glob, os, re, shutil, signal, subprocess, sys, unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness
from harness import BUILD, ROOT, SLOW, wait_for

NOT_RUN = {
    "make deps check": "this test is part of it",
    "make check": "this test is part of it",
    "make check-all": "this test is part of it",
    "sudo make uninstall": "the same as for install",
    "sudo make install": "it changes the system; test_install.py runs it with DESTDIR",
    "sudo systemd-sysusers": "it changes the system; tests/services uses the units",
    "sudo systemctl daemon-reload": "the same",
    "sudo systemctl enable --now zmqcat-hub.socket zmqcat-hub-control.socket": "the same",
    "sudo systemctl disable --now zmqcat-hub.socket zmqcat-hub-control.socket zmqcat-hub.service":
        "the same",
    "sudo usermod -aG zmqcat \"$USER\"": "the same",
}
INSIDE = "ZMQCAT_TEST_INSIDE"
ENTER = """
mount -t tmpfs none /mnt && mkdir /mnt/tree /mnt/build && mount --bind "$1" /mnt/tree &&
mount --bind "$2" /mnt/build && mount -t tmpfs -o mode=1777 none /tmp && cd /mnt/tree &&
ZMQCAT_BUILD=/mnt/build exec "$3" tests/docs/test_commands.py
"""
SOCKETS = ["/tmp/zmqcat.sock", "/tmp/zmqcat-%d.sock" % os.getuid(), "/run/zmqcat/zmqcat.sock"]


def enter_namespace():
    """Runs this file again in a mount namespace of its own; returns only where none can be had."""
    if os.environ.get(INSIDE) or shutil.which("unshare") is None:
        return
    for flags in (["-m"], ["-rm"]):
        enter = ["unshare", *flags, "--propagation", "private", "sh", "-c"]
        tried = subprocess.run(enter + ["mount -t tmpfs none /mnt"], capture_output=True)
        if tried.returncode == 0:
            os.environ[INSIDE] = "1"
            os.execvp("unshare", enter + [ENTER, "sh", ROOT, BUILD, sys.executable])


def not_run(command):
    return command in NOT_RUN


# Programs that go on until they are told to stop.
HUBS = r"zmqcat(-hub| serve)\b"
SPOKES = r"zmqcat(-spoke| join)\b"
# These outlive their hub.
WORKERS = r"zmqcat work\b"


class Place:
    """An installed copy, a home and a directory to work in."""

    def __init__(self):
        self.dir = harness.tempdir()
        self.prefix = os.path.join(self.dir, "usr")
        self.work = os.path.join(self.dir, "work")
        os.mkdir(self.work)
        done = subprocess.run(["make", "-s", "install", "PREFIX=" + self.prefix, "B=" + BUILD],
                              cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        lib = os.path.join(self.prefix, "lib")
        self.env = dict(os.environ, HOME=self.dir, B=BUILD, LC_ALL="C.UTF-8", LD_LIBRARY_PATH=lib,
                        PKG_CONFIG_PATH=os.path.join(lib, "pkgconfig"),
                        PATH=os.path.join(self.prefix, "bin") + ":" + os.environ["PATH"])
        for name in ("ZMQCAT_LISTEN", "MAKEFLAGS", "MAKELEVEL", "MFLAGS"):
            self.env.pop(name, None)
        self.terminals = []

    def run(self, command):
        """Output of a command that ends."""
        cwd = ROOT if command.startswith("make ") else self.work
        done = subprocess.run(["bash", "-c", command], cwd=cwd, env=self.env, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=60 * SLOW)
        if done.returncode != 0:
            raise AssertionError("%s: exit %d\n%s" % (command, done.returncode, done.stdout))
        return done.stdout

    def open_terminal(self, command, wanted):
        """Starts a program that goes on; waits until a hub answers, until a spoke listens."""
        out = open(os.path.join(self.dir, "terminal%d" % len(self.terminals)), "w+")
        process = subprocess.Popen(["bash", "-c", "exec " + command], cwd=self.work, env=self.env,
                                   stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
        self.terminals.append((command, process, out, wanted))
        harness._children.append(process)
        if re.match(SPOKES, command):
            wait_for(lambda: process.poll() is not None or os.path.exists(SOCKETS[1]))
        if re.match(HUBS, command):
            listen = re.findall(r"--listen (\S+)", command)
            ping = ["zmqcat", "ping"] + (["--listen", listen[0]] if listen else [])
            wait_for(lambda: process.poll() is not None or subprocess.run(
                ping, cwd=self.work, env=self.env, capture_output=True).returncode == 0)
        if process.poll() is not None:
            out.seek(0)
            raise AssertionError("%s ended: %s" % (command, out.read()))

    def wait_for_subscribers(self):
        """A subscriber just started has shown its first line before its hub is stopped."""
        for command, process, out, wanted in self.terminals:
            if command.startswith("zmqcat sub ") or (re.match(WORKERS, command) and wanted):
                wait_for(lambda: process.poll() is not None or same(wanted, self.said(out)))

    def said(self, out):
        with open(out.name) as f:
            return f.read()

    def close_terminals(self):
        """Stops daemons with SIGTERM, then waits for the others, which end with their hub. Returns
        (command, status, output, wanted) of each."""
        ended = []
        for command, process, out, wanted in self.terminals:
            if re.match(WORKERS, command):
                process.send_signal(signal.SIGTERM)
                process.wait(10 * SLOW)
        for command, process, out, wanted in self.terminals:
            if re.match(HUBS, command) or re.match(SPOKES, command):
                process.send_signal(signal.SIGTERM)
        for command, process, out, wanted in self.terminals:
            status = process.wait(10 * SLOW)
            out.seek(0)
            ended.append((command, status, out.read(), wanted))
            out.close()
        self.terminals = []
        return ended


def blocks(text):
    """(marks, lines) of each fenced block."""
    for marks, body in re.findall(r"^```([^\n]*)\n(.*?)^```$", text, re.M | re.S):
        yield marks.split(), body.rstrip("\n").split("\n")


def commands(lines, prompts=("$ ",)):
    """(command, output lines) of a block; where there are several prompts, with them."""
    found = []
    for line in lines:
        if line.startswith(prompts):
            found.append((line if len(prompts) > 1 else line[len(prompts[0]):], []))
        elif found and found[-1][0].endswith("\\"):
            found[-1] = (found[-1][0][:-1] + line.strip(), [])
        else:
            found[-1][1].append(line)
    return found


def same(wanted, got):
    pattern = "\n".join("[\\s\\S]*" if line == "..." else
                        ".*".join(map(re.escape, line.split("..."))) for line in wanted)
    return re.fullmatch(pattern, got.rstrip("\n")) is not None


class Hosts:
    """The two hosts of the README: each has a directory and a socket, and a relay is between them.
    A daemon ends when its host starts the next one; the other host has its token in ./token."""

    def __init__(self, env):
        self.dir = harness.tempdir()
        self.env = dict(env)
        self.relay = harness.Relay()
        self.daemons = {}
        self.nodekey = None
        for host in ("hub", "other"):
            os.mkdir(os.path.join(self.dir, host))

    def socket(self, host):
        return "/tmp/zmqcat-%d-%s.sock" % (os.getpid(), host)

    def run(self, host, command, wanted):
        """Output of a command; of a daemon, what it has said when all that is wanted is there."""
        if self.nodekey:
            command = command.replace("nodekey:...", self.nodekey)
        where = {"cwd": os.path.join(self.dir, host), "stdin": subprocess.DEVNULL,
                 "env": dict(self.env, ZMQCAT_LISTEN=self.socket(host))}
        if not re.match(r"zmqcat (serve|join)\b", command):
            done = subprocess.run(["bash", "-c", command], capture_output=True, text=True,
                                  timeout=60 * SLOW, **where)
            if done.returncode != 0:
                raise AssertionError("%s: exit %d\n%s" % (command, done.returncode, done.stderr))
            self.nodekey = (re.findall(r"nodekey:[0-9a-f]{64}", done.stdout) or [self.nodekey])[0]
            return done.stdout
        self.stop(host)
        command += " --listen " + self.socket(host)
        if command.startswith("zmqcat serve"):
            command += " --derp-map " + self.relay.map
        path = os.path.join(self.dir, host + ".log")
        with open(path, "w") as log:
            process = subprocess.Popen(["bash", "-c", "exec " + command], stdout=log, stderr=log,
                                       **where)
        harness._children.append(process)
        self.daemons[host] = process
        wait_for(lambda: begins(wanted, self.read(path)) or process.poll() is not None)
        said = self.read(path)
        token = re.search(r"^tc\S+$", said, re.M)
        if token:
            harness.write_file(os.path.join(self.dir, "other", "token"), token[0] + "\n")
        return said

    def read(self, path):
        with open(path) as f:
            return f.read()

    def stop(self, host):
        process = self.daemons.pop(host, None)
        if process:
            process.send_signal(signal.SIGTERM)
            if process.wait(10 * SLOW) != 0:
                raise AssertionError("%s ended with %d" % (host, process.returncode))

    def close(self):
        for host in list(self.daemons):
            self.stop(host)
        self.relay.stop()


def begins(wanted, got):
    """The same, and perhaps more lines."""
    return same(wanted, got) or same(wanted + ["..."], got)


def examples(page):
    """Command lines of the section EXAMPLES of a page."""
    with open(page) as f:
        section = re.split(r"^\.Sh ", f.read(), flags=re.M)
    text = next((s for s in section if s.startswith("EXAMPLES")), "")
    plain = text.replace("\\-", "-").replace("\\(aq", "'").replace("\\&", "").replace("\\e", "\\")
    return [line[4:] for line in plain.split("\n") if line.startswith(".Dl ")]


class Commands(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        taken = [s for s in SOCKETS if os.path.exists(s)]
        if taken:
            harness.skip("no mount namespace here, and %s exists" % taken[0])
        self.place = Place()

    def finish(self):
        self.place.wait_for_subscribers()
        for command, status, output, wanted in self.place.close_terminals():
            # The worker of the README ends with its hub, and takes that for a failure.
            ends = 1 if command == "./worker" else 0
            self.assertEqual(status, ends, "%s: %s" % (command, output))
            if wanted is not None:
                self.assertTrue(same(wanted, output), "%s\nshown:\n%s\ngot:\n%s"
                                % (command, "\n".join(wanted), output))

    def save(self, marks, lines):
        """The file that a block shows, if it is one."""
        name = None
        if marks[:1] == ["c"]:
            name = re.match(r"/\* (\w+\.c)\b", lines[0])
            self.assertTrue(name, lines[0])
        elif marks == ["sh", "script"]:
            name = re.match(r"# ([\w.]+): ", lines[1])
            self.assertTrue(name, lines[1])
        if name:
            harness.write_file(os.path.join(self.place.work, name[1]), "\n".join(lines) + "\n",
                               0o755)
        return name is not None

    def run_document(self, path):
        with open(os.path.join(ROOT, path)) as f:
            text = f.read()
        seen = 0
        for marks, lines in blocks(text):
            if self.save(marks, lines) or marks[:1] != ["sh"] or "hosts" in marks:
                continue
            for command, wanted in commands(lines):
                seen += 1
                if not_run(command):
                    continue
                if "terminal" in marks:
                    self.place.open_terminal(command, wanted)
                    continue
                got = self.place.run(command)
                if command.startswith("make "):
                    continue
                self.assertTrue(same(wanted, got), "%s\nshown:\n%s\ngot:\n%s"
                                % (command, "\n".join(wanted), got))
        self.assertGreater(seen, 10)
        self.finish()

    def test_readme(self):
        self.run_document("README.md")

    def test_guide(self):
        self.run_document("docs/guide.md")

    def test_several_hosts(self):
        with open(os.path.join(ROOT, "README.md")) as f:
            text = f.read()
        hosts = Hosts(self.place.env)
        joined = 0
        for marks, lines in blocks(text):
            if marks != ["sh", "hosts"]:
                continue
            for line, wanted in commands(lines, ("hub$ ", "other$ ")):
                host, command = line.split("$ ", 1)
                got = hosts.run(host, command, wanted)
                daemon = re.match(r"zmqcat (serve|join)\b", command)
                joined += command.startswith("zmqcat join")
                fits = begins if daemon else same
                self.assertTrue(fits(wanted, got), "%s\nshown:\n%s\ngot:\n%s"
                                % (command, "\n".join(wanted), got))
        self.assertGreater(joined, 1)
        hosts.close()

    def test_every_fence_is_known(self):
        known = ("sh", "sh terminal", "sh hosts", "sh script", "c", "nix", "text")
        for path in ("README.md", "docs/guide.md"):
            with open(os.path.join(ROOT, path)) as f:
                marks = [" ".join(m) for m, _ in blocks(f.read())]
            self.assertEqual([m for m in marks if m not in known], [])

    def test_man_pages(self):
        pages = sorted(glob.glob(os.path.join(ROOT, "docs/man/*.[1-8]")))
        seen = 0
        for page in pages:
            lines = examples(page)
            seen += len(lines)
            if page.endswith(("zmqcat.1", "zmqcat-json.5")):
                self.place.open_terminal("zmqcat-hub --local", None)
            for line in lines:
                with self.subTest(page=os.path.basename(page), line=line):
                    self.run_example(line)
            self.finish()
        self.assertGreater(seen, 5)

    def run_example(self, line):
        if not_run(line) or not_run("sudo " + line):
            return
        if re.match(HUBS, line) and "--local" not in line:
            relay = harness.Relay()
            self.addCleanup(relay.__exit__)
            line += " --derp-map " + relay.map
        if re.match(HUBS, line) or re.match(SPOKES, line):
            self.place.open_terminal(line, None)
            wanted = re.search(r"--token-out (\S+)", line)
            if wanted:
                wait_for(lambda: os.path.exists(os.path.join(self.place.work, wanted[1])))
            self.finish()
        else:
            self.place.run(line)


if __name__ == "__main__":
    enter_namespace()
    harness.main()
