#!/usr/bin/env python3
# quick
"""What a machine without debhelper can say about debian/."""
import os, re, subprocess, sys, unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness
from harness import ROOT


def read(*path):
    with open(os.path.join(ROOT, *path)) as f:
        return f.read()


class Files(unittest.TestCase):
    def test_the_version_is_the_projects(self):
        version = re.search(r"(?m)^VERSION := (\S+)$", read("Makefile"))[1]
        self.assertEqual(re.match(r"zmqcat \((\S+)\) ", read("debian/changelog"))[1], version)

    def test_the_library_has_the_name_of_its_packages(self):
        number = re.search(r"(?m)^SOVERSION := (\d+)$", read("Makefile"))[1]
        self.assertIn("\nPackage: libzmqcat%s\n" % number, read("debian/control"))
        self.assertTrue(os.path.exists(os.path.join(ROOT, "debian/libzmqcat%s.install" % number)))

    def test_the_scripts_name_every_unit(self):
        """Whatever unit comes is stopped when the package is removed, a daemon also restarted."""
        units = [n for n in os.listdir(os.path.join(ROOT, "systemd"))
                 if n.endswith((".service", ".socket"))]
        self.assertGreater(len(units), 5)
        for unit in units:
            self.assertRegex(read("debian/zmqcat.prerm"), r"[ \n]%s\b" % re.escape(unit))
            self.assertEqual(unit.endswith(".service"), unit in read("debian/zmqcat.postinst"))

    def test_sources_exist(self):
        names = re.search(r"(?m)^DEB_SOURCES := (.*)$", read("Makefile"))[1].split()
        self.assertEqual([n for n in names if not os.path.exists(os.path.join(ROOT, n))], [])
        for line in read("debian/zmqcat.docs").split():
            self.assertIn(line.split("/")[0], names)
            self.assertTrue(os.path.exists(os.path.join(ROOT, line)), line)

    def test_what_the_package_is_built_with_is_installed(self):
        """By `make deps-deb` for who wants a package, by `make deps deps-dev` for the tests."""
        depends = re.search(r"(?m)^Build-Depends: ((?:.*,\n)+.*)$", read("debian/control"))[1]
        names = [d.split(" | ") for d in re.split(r",\s+", re.sub(r" \([^)]*\)", "", depends))]
        names = [d for d in names if not d[0].startswith("dh-sequence-")]
        names += [["build-essential"]]  # what dpkg-buildpackage always wants
        self.assertGreater(len(names), 6)
        for targets in (["deps-deb"], ["deps", "deps-dev"]):
            done = subprocess.run(["make", "-n", "-s", *targets], cwd=ROOT, capture_output=True,
                                  text=True, timeout=60 * harness.SLOW)
            installed = set(re.findall(r"[\w.+-]+", done.stdout)) | {"debhelper-compat"}
            self.assertIn("debhelper", installed, done.stderr)
            for either in names:
                self.assertTrue(installed & set(either), (targets, either))


if __name__ == "__main__":
    harness.main()
