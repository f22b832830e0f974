# serial
"""The whole bus suite (all that says `# tunnelled`) through the real derper: hub and ten spokes."""
import os, subprocess, sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cases, harness, peers


class Bus(cases.Interop):
    version = "v0.3"

    def test_the_whole_suite(self):
        run = os.path.join(harness.ROOT, "tests", "run")
        got = subprocess.run([run, "--build", harness.BUILD, "--tunnel", self.r.map],
                             stdin=subprocess.DEVNULL, capture_output=True, text=True)
        print(got.stdout)
        last = got.stdout.splitlines()[-1:]
        self.assertEqual(got.returncode, 0, got.stderr)
        self.assertRegex(last[0], r"\A[1-9][0-9]* passed, 0 failed\Z")
        # It went this way.
        self.assertGreater(got.stdout.count("[tunnelled]"), 5)


if __name__ == "__main__":
    peers.main("v0.3")
