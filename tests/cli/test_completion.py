"""Completion in real shells, and the words behind it."""
import os, pty, re, select, shutil, signal, subprocess, sys, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness
from harness import BUILD, CLI, SLOW, cli, tempdir

NAMES = ["jobs", "jobs:urgent", "jot=ter", "a b", "x$y", "mail-in"]


class Terminal:
    """A shell at a terminal."""

    def __init__(self, argv, env, cwd):
        ours, theirs = pty.openpty()
        self.fd = ours
        self.proc = subprocess.Popen(argv, stdin=theirs, stdout=theirs, stderr=theirs, env=env,
                                     cwd=cwd, start_new_session=True)
        os.close(theirs)
        harness._children.append(self.proc)

    def type(self, text):
        os.write(self.fd, text.encode())

    def read_until(self, pattern, seconds=10):
        """What is shown, once the pattern is in it; escape sequences left out."""
        seen, end = "", time.monotonic() + seconds * SLOW
        while not re.search(pattern, seen):
            if time.monotonic() > end:
                raise AssertionError("no %r in %r" % (pattern, seen))
            if select.select([self.fd], [], [], 0.1)[0]:
                seen += os.read(self.fd, 4096).decode(errors="replace")
                seen = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|\x07", "", seen)
        return seen

    def close(self):
        self.proc.kill()
        self.proc.wait()
        os.close(self.fd)


class Completion(harness.Case):
    def setUp(self):
        self.bus = self.hub()
        for name in NAMES:
            cli("put", name, "x", listen=self.bus.listen)
        self.dir = tempdir()
        harness.write_file(os.path.join(self.dir, "payload.bin"), "x")
        self.env = dict(os.environ, PATH=BUILD + ":" + os.environ["PATH"], TERM="xterm",
                        ZMQCAT_LISTEN=self.bus.listen, HOME=self.dir, PS1="> ", LC_ALL="C.UTF-8")

    def words(self, *words, **more):
        got = cli("completion", "words", "--", *words, **dict({"listen": self.bus.listen}, **more))
        self.assertEqual((got.returncode, got.stderr), (0, b""))
        return [line.split("\t")[0] for line in got.stdout.decode().splitlines()]

    def test_verbs(self):
        listed = re.findall(r"^  ([a-z]+) ", cli("--help").stdout.decode(), re.M)
        self.assertEqual(self.words(""), listed)
        self.assertEqual(self.words("re"), [v for v in listed if v.startswith("re")])
        self.assertEqual(self.words("-"), ["--help", "--version"])
        self.assertEqual(self.words("nonsense", ""), [])
        self.assertEqual(self.words("nonsense"), [])
        self.assertEqual(self.words(), [])

    def test_options_of_each_verb(self):
        for verb in self.words(""):
            if verb in ("serve", "join"):
                continue
            told = cli(verb, "--help").stdout.decode()
            offered = re.findall(r"^  (?:-\w,|   ) (--[a-z-]+)", told, re.M)
            self.assertEqual(self.words(verb, "--"), offered)
            self.assertIn("--help", self.words(verb, "--h"))
        for verb, program in (("serve", "zmqcat-hub"), ("join", "zmqcat-spoke")):
            told = subprocess.run([os.path.join(BUILD, program), "--help"], capture_output=True,
                                  text=True).stdout
            offered = re.findall(r"^  (?:--help, )?(--[a-z-]+)", told, re.M)
            self.assertEqual(offered.pop(), "--version")
            self.assertGreater(len(offered), 10)
            offered += ["--help", "--version"]
            self.assertEqual(self.words(verb, "--", env=self.env), list(dict.fromkeys(offered)))
            self.assertEqual(self.words(verb, "--", env={"PATH": "/nowhere"}), [])
            self.assertEqual(self.words(verb, "--fo", env=self.env), ["--forward"])
        self.assertEqual(self.words("put", "jobs", "--fi"), ["--file"])
        self.assertEqual(self.words("put", "jobs", "--", "--fi"), [":files"])

    def test_names_of_mailboxes(self):
        for line in (("put",), ("take", "--json"), ("take", "--count", "3"), ("work",),
                     ("req", "--timeout=5s"), ("stat",), ("reserve", "--lease", "5s")):
            self.assertEqual(self.words(*line, ""), sorted(NAMES), line)
            self.assertEqual(self.words(*line, "jo"), ["jobs", "jobs:urgent", "jot=ter"], line)
            self.assertEqual(self.words(*line, "zz"), [])
        self.assertEqual(self.words("take", "jobs", ""), [])
        for where in (("-l", self.bus.listen), ("--listen", self.bus.listen),
                      ("--listen=" + self.bus.listen,)):
            self.assertEqual(self.words("take", *where, "ma", listen="/nowhere/s"), ["mail-in"])

    def test_values_and_other_arguments(self):
        self.assertEqual(self.words("put", "jobs", "--file", ""), [":files"])
        self.assertEqual(self.words("put", "jobs", "--file="), [":files"])
        self.assertEqual(self.words("put", "jobs", "--id", ""), [])
        self.assertEqual(self.words("trace", ""), ["on", "off"])
        self.assertEqual(self.words("completion", "z"), ["zsh"])
        self.assertEqual(self.words("keygen", ""), [":files"])
        self.assertEqual(self.words("work", "jobs", "--", ""), [":commands"])
        self.assertEqual(self.words("work", "jobs", "--", "tr", "--x"), [":files"])

    def test_silent_and_quick_without_a_hub(self):
        self.assertEqual(self.words("take", "", listen="/nowhere/s"), [])
        self.assertEqual(self.words("take", "", listen="nonsense"), [])
        self.bus.proc.send_signal(signal.SIGSTOP)
        try:
            began = time.monotonic()
            self.assertEqual(self.words("take", ""), [])
            self.assertLess(time.monotonic() - began, 2 * SLOW)
        finally:
            self.bus.proc.send_signal(signal.SIGCONT)

    def test_names_that_cannot_be_typed_are_left_out(self):
        raw = self.conn(self.bus)
        for name in ("bad\nname", "bad\x1b", "bad\ttab", "badly\u202e", "badge"):
            raw.put(name, "x")
        self.assertEqual(self.words("take", "bad"), ["badge"])

    def shell(self, *argv):
        shell = Terminal(argv, self.env, self.dir)
        self.addCleanup(shell.close)
        return shell

    def test_names_that_would_be_options_need_the_dashes(self):
        for name in ("--file=/etc/passwd", "-x", ":files", ":commands"):
            self.conn(self.bus).put(name, "x")
        self.assertEqual(self.words("take", ""), sorted(NAMES))
        self.assertEqual(self.words("take", ":"), [])
        self.assertEqual(self.words("take", "--", "-"), ["--file=/etc/passwd", "-x"])

    def try_words(self, shell):
        """What is typed, and what then stands in the line."""
        for typed, want in (("zmqcat unkn\x15zmqcat stat ma", r"zmqcat stat mail-in "),
                            ("zmqcat resto\x15zmqcat res", r"zmqcat reserve "),
                            ("zmqcat take --fol", r"zmqcat take --follow "),
                            ("zmqcat take jobs:u", r"zmqcat take jobs:urgent "),
                            ("zmqcat put jot=", r"zmqcat put jot=ter "),
                            ("zmqcat trace of", r"zmqcat trace off "),
                            ("zmqcat put x --file pay", r"zmqcat put x --file payload.bin ")):
            shell.type(typed + "\t")
            shell.read_until(want)
            shell.type("\x15")  # the line is emptied

    def test_bash(self):
        shell = self.shell("bash", "--norc", "--noprofile", "-i")
        shell.type("source <(zmqcat completion bash); echo rea''dy\n")
        shell.read_until("ready")
        self.try_words(shell)
        shell.type("zmqcat take a\t")
        shell.read_until(r"zmqcat take a\\ b ")
        shell.type("\x15zmqcat take jo\t\t")
        shell.read_until(r"jobs +jobs:urgent +jot=ter")

    def test_zsh(self):
        if shutil.which("zsh") is None:
            harness.skip("zsh is not installed")
        shell = self.shell("zsh", "-f", "-i")
        shell.type("autoload -U compinit; compinit -u -D; source <(zmqcat completion zsh); "
                   "bindkey -e; echo rea''dy\n")
        shell.read_until("ready\r\n")
        self.try_words(shell)

    def test_zsh_from_a_folder_of_fpath(self):
        if shutil.which("zsh") is None:
            harness.skip("zsh is not installed")
        script = cli("completion", "zsh").stdout
        harness.write_file(os.path.join(self.dir, "_zmqcat"), script, 0o644)
        shell = self.shell("zsh", "-f", "-i")
        shell.type("fpath=(%s $fpath); autoload -U compinit; compinit -u -D; bindkey -e; "
                   "echo rea''dy\n" % self.dir)
        shell.read_until("ready\r\n")
        self.try_words(shell)

    def test_fish(self):
        if shutil.which("fish") is None:
            harness.skip("fish is not installed")

        def complete(text):
            got = subprocess.run(["fish", "-c", "zmqcat completion fish | source; complete -C '%s'"
                                  % text], env=self.env, cwd=self.dir, capture_output=True,
                                 timeout=20 * SLOW, text=True)
            self.assertEqual((got.returncode, got.stderr), (0, ""))
            return sorted(line.split("\t")[0] for line in got.stdout.splitlines())
        self.assertEqual(complete("zmqcat stat ma"), ["mail-in"])
        self.assertEqual(complete("zmqcat take "), sorted(NAMES))
        self.assertEqual(complete("zmqcat take --fol"), ["--follow"])
        self.assertEqual(complete("zmqcat trace "), ["off", "on"])
        self.assertEqual(complete("zmqcat put x --file pay"), ["payload.bin"])
        self.assertIn("true", complete("zmqcat work jobs -- tru"))

    def test_bad_input(self):
        for args in (("completion",), ("completion", "tcsh"), ("completion", "bash", "x")):
            got = cli(*args)
            self.assertEqual((got.returncode, got.stdout), (2, b""))
        with open("/dev/full", "w") as full:
            got = subprocess.run([CLI, "completion", "bash"], stdout=full, stderr=subprocess.PIPE)
        self.assertEqual(got.returncode, 1)


if __name__ == "__main__":
    harness.main()
