#!/usr/bin/env python3
# quick
"""launchd/prepare.sh with stand-ins for the programs of macOS: a directory service that is a
folder, with a file for each key, and an install that says what it is to do."""
import os, subprocess, sys, unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness
from harness import ROOT

PROGRAMS = {
    "dscl": r"""
        test "$1" = . || exit 64
        record=$DB$3
        case $2 in
            -list) for r in "$record"/*; do
                test ! -e "$r/$4" || printf '%-20s %s\n' "${r##*/}" "$(cat "$r/$4")"; done ;;
            -read) test -d "$record" || exit 56
                for k in ${4:-$(ls "$record")}; do echo "$k: $(cat "$record/$k")"; done ;;
            -create) mkdir -p "$record" && echo "$5" >"$record/$4" ;;
            *) exit 64 ;;
        esac""",
    "dseditgroup": r"""
        test "$1 $2 $3 $5 $6 $7" = "-o edit -a -t user zmqcat" || exit 64
        echo "$4" >>"$DB/members" """,
    "install": 'echo "$@" >>"$DB/install"',
}
DIRECTORIES = ["-d -m 0700 -o zmqcat -g zmqcat /var/lib/zmqcat",
               "-d -m 0755 -o root -g zmqcat /var/lib/zmqcat-bus"]


class Prepare(unittest.TestCase):
    def setUp(self):
        self.bin, self.db = harness.tempdir(), harness.tempdir()
        for name, text in PROGRAMS.items():
            harness.write_file(os.path.join(self.bin, name), "#!/bin/sh\n%s\n" % text, 0o755)
        self.add("/Users/root", "UniqueID", "0")
        self.add("/Groups/wheel", "PrimaryGroupID", "0")

    def add(self, record, key, value):
        os.makedirs(self.db + record, exist_ok=True)
        harness.write_file(self.db + record + "/" + key, value + "\n")

    def has(self, name):
        """{key: value} of a record, or the lines of a file."""
        path = os.path.join(self.db, name)
        if os.path.isdir(path):
            return {k: self.has(name + "/" + k)[0] for k in os.listdir(path)}
        with open(path) as f:
            return f.read().splitlines()

    def run_script(self, *users):
        got = subprocess.run(["sh", os.path.join(ROOT, "launchd", "prepare.sh"), *users],
                             env={"DB": self.db, "PATH": self.bin + ":/usr/bin:/bin"}, text=True,
                             capture_output=True)
        self.assertEqual((got.returncode, got.stdout, got.stderr), (0, "", ""))

    def test_from_nothing(self):
        self.run_script("alice", "bob")
        self.assertEqual(self.has("Groups/zmqcat"), {"PrimaryGroupID": "541"})
        user = self.has("Users/zmqcat")
        self.assertEqual((user["PrimaryGroupID"], user["UserShell"]), ("541", "/usr/bin/false"))
        self.assertEqual((user["NFSHomeDirectory"], user["IsHidden"]), ("/var/empty", "1"))
        self.assertEqual(self.has("members"), ["alice", "bob"])
        self.assertEqual(self.has("install"), DIRECTORIES)

    def test_numbers_are_free(self):
        self.add("/Users/a", "UniqueID", "541")
        self.add("/Groups/b", "PrimaryGroupID", "542")
        self.add("/Users/c", "UniqueID", "1543")
        self.run_script()
        self.assertEqual(self.has("Groups/zmqcat"), {"PrimaryGroupID": "543"})
        user = self.has("Users/zmqcat")
        self.assertEqual((user["UniqueID"], user["PrimaryGroupID"]), ("544", "543"))

    def test_what_is_there_stays(self):
        self.run_script("alice")
        group, user = self.has("Groups/zmqcat"), self.has("Users/zmqcat")
        self.run_script("bob")
        self.assertEqual((self.has("Groups/zmqcat"), self.has("Users/zmqcat")), (group, user))
        self.assertEqual(self.has("members"), ["alice", "bob"])
        self.assertEqual(self.has("install"), 2 * DIRECTORIES)

    def test_a_failure_ends_it(self):
        harness.write_file(os.path.join(self.bin, "dseditgroup"), "#!/bin/sh\nexit 1\n", 0o755)
        with self.assertRaises(AssertionError):
            self.run_script("nobody")
        self.assertFalse(os.path.exists(self.db + "/install"))


if __name__ == "__main__":
    harness.main()
