# serial
"""Every command that README.md and the EXAMPLES of the man pages show is run here as it stands,
and what README.md shows as its output is compared.

README.md: fenced blocks marked `sh` hold command lines after `$ ` and their output; blocks marked
`sh terminal` hold one program that goes on running, as in a terminal of its own, and its output
until the end; a block of C that begins with the comment `name.c` is saved under that name. `...`
in an output stands for any text within its line, a line of only `...` for any number of lines.

The commands use the default sockets, so all runs in a mount namespace with an empty /tmp, where
that is possible, and otherwise only while those sockets do not exist.
"""
import glob, os, re, shutil, signal, subprocess, sys, unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness
from harness import BUILD, ROOT, SLOW, wait_for

NOT_RUN = {
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
        """Starts a program that goes on; for a hub, waits until it answers."""
        out = open(os.path.join(self.dir, "terminal%d" % len(self.terminals)), "w+")
        process = subprocess.Popen(["bash", "-c", "exec " + command], cwd=self.work, env=self.env,
                                   stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
        self.terminals.append((command, process, out, wanted))
        harness._children.append(process)
        if re.match(r"zmqcat(-hub| serve)\b", command):
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
            if command.startswith("zmqcat sub "):
                wait_for(lambda: os.path.getsize(out.name) > 0 or process.poll() is not None)

    def close_terminals(self):
        """Stops hubs with SIGTERM, then waits for the others, which end with their hub. Returns
        (command, status, output, wanted) of each."""
        ended = []
        for command, process, out, wanted in self.terminals:
            if re.match(r"zmqcat(-hub| serve)\b", command):
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


def commands(lines):
    """(command, output lines) of a block."""
    found = []
    for line in lines:
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif found and found[-1][0].endswith("\\"):
            found[-1] = (found[-1][0][:-1] + line.strip(), [])
        else:
            found[-1][1].append(line)
    return found


def same(wanted, got):
    pattern = "\n".join("[\\s\\S]*" if line == "..." else
                        ".*".join(map(re.escape, line.split("..."))) for line in wanted)
    return re.fullmatch(pattern, got.rstrip("\n")) is not None


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
            self.assertEqual(status, 0, "%s: %s" % (command, output))
            if wanted is not None:
                self.assertTrue(same(wanted, output), "%s\nshown:\n%s\ngot:\n%s"
                                % (command, "\n".join(wanted), output))

    def test_readme(self):
        with open(os.path.join(ROOT, "README.md")) as f:
            text = f.read()
        seen = 0
        for marks, lines in blocks(text):
            if marks[:1] == ["c"]:
                name = re.match(r"/\* (\w+\.c)\b", lines[0])
                self.assertTrue(name, lines[0])
                with open(os.path.join(self.place.work, name[1]), "w") as f:
                    f.write("\n".join(lines) + "\n")
            if marks[:1] != ["sh"]:
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

    def test_every_fence_of_the_readme_is_known(self):
        with open(os.path.join(ROOT, "README.md")) as f:
            marks = [" ".join(m) for m, _ in blocks(f.read())]
        self.assertEqual([m for m in marks if m not in ("sh", "sh terminal", "c", "text")], [])

    def test_man_pages(self):
        pages = sorted(glob.glob(os.path.join(ROOT, "docs/man/*.[1-8]")))
        seen = 0
        for page in pages:
            lines = examples(page)
            seen += len(lines)
            if page.endswith("zmqcat.1"):
                self.place.open_terminal("zmqcat-hub --local", None)
            for line in lines:
                with self.subTest(page=os.path.basename(page), line=line):
                    self.run_example(line)
            self.finish()
        self.assertGreater(seen, 5)

    def run_example(self, line):
        if not_run(line) or not_run("sudo " + line):
            return
        if line.startswith(("zmqcat-hub ", "zmqcat serve ")):
            self.place.open_terminal(line.rstrip(" &"), None)
            self.finish()
        else:
            self.place.run(line)


if __name__ == "__main__":
    enter_namespace()
    harness.main()
