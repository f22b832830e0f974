# quick
"""The man pages say what the programs do: options, commands, limits and error codes."""
import os, re, subprocess, sys, unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness
from harness import CLI, HUB, ROOT, SPOKE


def page(name):
    with open(os.path.join(ROOT, "docs/man", name)) as f:
        return f.read()


def section(text, name):
    return next(s for s in re.split(r"^\.Sh ", text, flags=re.M) if s.startswith(name))


def documented(text):
    """Long options of a page."""
    return set(re.findall(r"\bFl -([a-z][a-z-]*)", text))


def offered(*argv):
    """Long options that a program's help names."""
    done = subprocess.run([*argv, "--help"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return set(re.findall(r"(?<![\w-])--([a-z][a-z-]*)", done.stdout))


class Man(unittest.TestCase):
    maxDiff = None

    def test_options_of_the_hub(self):
        self.assertEqual(sorted(documented(page("zmqcat-hub.8"))), sorted(offered(HUB)))

    def test_options_of_the_spoke(self):
        self.assertEqual(sorted(documented(page("zmqcat-spoke.8"))), sorted(offered(SPOKE)))

    def test_options_of_the_command(self):
        text = page("zmqcat.1")
        help_text = subprocess.run([CLI, "--help"], capture_output=True, text=True).stdout
        verbs = re.findall(r"^  ([a-z]+) ", help_text, re.M)
        self.assertGreater(len(verbs), 20)
        wanted = offered(CLI)
        for verb in verbs:
            self.assertRegex(text, r"(?m)^\.(It|Ss|Cm|Nm).*\b%s\b" % verb)
            if verb not in ("serve", "join"):
                wanted |= offered(CLI, verb)
        self.assertEqual(sorted(wanted - documented(text)), [])
        self.assertEqual(sorted(documented(text) - wanted - offered(HUB)), [])

    def test_limits(self):
        with harness.Hub() as hub:
            bus = hub.connect()
            limits = bus.call(v=1, op="info", id="i")["result"]["limits"]
            bus.close()
        wire = section(page("zmqc.5"), "LIMITS").replace(",", "")
        options = page("zmqcat-hub.8")
        self.assertEqual(limits.pop("heartbeat-ms"), 5000)
        self.assertIn("Interval of heartbeats; 5s.", options)
        self.assertGreater(len(limits), 8)
        for name, value in limits.items():
            shown = {str(value)}
            for size, suffix in ((1 << 20, "m"), (1 << 10, "k")):
                if value % size == 0:
                    shown |= {"%d%s" % (value // size, suffix), "%d MiB" % (value // size)}
            entry = re.search(r"^\.It Fl -%s .*\n((?:[^.].*\n)+)" % name, options, re.M)
            self.assertTrue(entry, "zmqcat-hub.8 has no limit --%s" % name)
            self.assertTrue(any(re.search(r"\b%s\b" % s, entry[1]) for s in shown), entry[0])
            self.assertTrue(any(re.search(r"\b%s\b" % s, wire) for s in shown),
                            "zmqc.5, LIMITS: %s %s" % (name, value))

    def test_error_codes(self):
        text = section(page("zmqc.5"), "ERROR ANSWERS")
        told = set(re.findall(r"^\.It ([a-z_]+) Ta", text, re.M))
        used = set()
        folder = os.path.join(ROOT, "lib/zmqc")
        for name in os.listdir(folder):
            if name.endswith(".c"):
                with open(os.path.join(folder, name)) as f:
                    used |= told & set(re.findall(r'"([a-z_]+)"', f.read()))
        self.assertEqual(sorted(told), sorted(used))


if __name__ == "__main__":
    harness.main()
