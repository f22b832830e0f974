"""bench/count: that it counts what there is, never how much that may be."""
import json, os, struct, subprocess, sys, unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness
from harness import BUILD, ROOT

COUNT = os.path.join(ROOT, "bench", "count")
PROGRAM = r"""
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static unsigned char a[100], b[100];
int main(int argc, char **argv)
{
    size_t n = (size_t)atoi(argv[1]); /* no compiler knows it */
    char *volatile m = malloc(n), *volatile c = calloc(2, n), *volatile r;
    for (size_t i = 0; i < sizeof(a); i++)
        a[i] = (unsigned char)i;
    memcpy(b, a, n);
    memmove(a + 1, a, n); /* over itself, upwards */
    memmove(b, b + 1, n);
    if (a[0] != 0 || a[n] != n - 1 || b[0] != 1 || b[n - 1] != 0 || c[2 * n - 1] != 0)
        return 1;
    r = realloc(m, 3 * n);
    free(c);
    free(r);
    free(NULL);
    return argc - 2;
}
"""


@unittest.skipUnless(sys.platform == "linux", "it wants perf or strace, and glibc")
class Count(unittest.TestCase):
    def test_the_preload_counts_exactly(self):
        path = harness.tempdir()
        source, program, file = (os.path.join(path, n) for n in ("p.c", "p", "counters"))
        harness.write_file(source, PROGRAM)
        subprocess.run(harness.CC + ["-O1", "-fno-builtin", "-o", program, source], check=True)

        def run(n):
            harness.write_file(file, bytes(40))
            env = dict(os.environ, LD_PRELOAD=os.path.join(BUILD, "count.so"), ZMQCAT_COUNT=file)
            subprocess.run([program, str(n)], env=env, check=True)
            return struct.unpack("=5Q", harness.read_file(file))
        small, large = run(10), run(60)
        # What the C library does of itself is the same in both.
        self.assertEqual([b - a for a, b in zip(small, large)], [0, 6 * 50, 0, 0, 3 * 50])
        self.assertGreaterEqual(small[0], 3)
        self.assertGreaterEqual(small[2], 2)
        self.assertGreaterEqual(small[3], 3)

    def count(self, *args):
        out = subprocess.run([sys.executable, COUNT, "--build", BUILD, "--scale", "0.01"]
                             + list(args), capture_output=True, text=True,
                             timeout=100 * harness.SLOW)
        self.assertEqual(out.returncode, 0, out.stderr)
        return out.stdout

    @harness.plain("the sanitizer has an allocator of its own")
    def test_each_work(self):
        got = json.loads(self.count("--json"))
        rows = {r["name"]: r for r in got["rows"]}
        self.assertEqual(len(rows), 14)
        for name, row in rows.items():
            self.assertGreater(row["system_calls"], 0, name)
            self.assertAlmostEqual(row["system_calls"], sum(row["calls"].values()), 6)
            self.assertGreater(row["copied_bytes"], row["copies"], name)
            self.assertGreaterEqual(row["allocations"] * 1.5 + 1, row["frees"], name)
        # One request, one answer: each is read and written once, and waited for.
        for call in ("recvfrom", "sendto"):
            self.assertGreaterEqual(rows["put"]["calls"][call], 1.0)
            self.assertLess(rows["put"]["calls"][call], 1.5)
        # A wake-up has two of each: the take, then the put and both their answers.
        for call in ("recvfrom", "sendto"):
            self.assertGreaterEqual(rows["wake"]["calls"][call], 2.0)
        self.assertNotIn("fdatasync", rows["put"]["calls"])
        self.assertGreaterEqual(rows["put-disk"]["calls"]["fdatasync"], 0.9)
        self.assertLess(rows["put-pipelined"]["system_calls"], rows["put"]["system_calls"])

    @harness.plain("the sanitizer has an allocator of its own")
    def test_table_by_strace(self):
        out = self.count("--strace", "put").splitlines()
        self.assertIn("by strace", out[0])
        self.assertEqual([line.split("  ")[0] for line in out[3:]],
                         ["put", "put, on disk", "put, 128 at once", "put, 128 at once, on disk"])
        self.assertRegex(out[3], r"^put  +[3-9]\.[0-9]+ ")

    def test_mistakes(self):
        for args, status, said in ((["nosuchwork"], 2, "put-pipelined"),
                                   (["--build", "/nonexistent"], 1, "make bench-count")):
            out = subprocess.run([sys.executable, COUNT, "--build", BUILD] + args, text=True,
                                 capture_output=True, timeout=30 * harness.SLOW)
            self.assertEqual(out.returncode, status)
            self.assertIn(said, out.stderr)


if __name__ == "__main__":
    harness.main()
