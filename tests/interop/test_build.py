"""The real programs can be built and start. This runs beside the tests that leave the processors
idle, so that the programs are there when the serial ones want them."""
import os, subprocess, sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import programs, harness


class Build(harness.Case):
    def build(self, version):
        folder = programs.build(version)
        self.assertEqual(sorted(os.listdir(folder)), ["derper", "stamp", "tailcat"])
        for name in ("derper", "tailcat"):
            got = subprocess.run([os.path.join(folder, name), "--help"], capture_output=True,
                                 text=True, timeout=60, env={"HOME": harness.tempdir()})
            self.assertIn("derp", got.stdout + got.stderr, got)

    def test_v03(self):
        self.build("v0.3")

    def test_v06(self):
        self.build("v0.6")


if __name__ == "__main__":
    harness.main()
