#!/usr/bin/env python3
"""Branch coverage of lib/store and lib/zmqc: coverage.py BUILD [MODULE ...]

BUILD is a build with gcc's --coverage (`make coverage` makes it). Runs on it what `make check`
runs, then prints for each file how many lines and branches were taken, and the lines that never
ran. MODULE (say log_clean) prints the branches that were never taken as well. Branches of
ZC_ASSERT do not count: that one never fails is the point of it. With ZMQCAT_COVERAGE_RUN=0
nothing runs, and what ran last is shown.
"""
import glob, json, os, subprocess, sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDERS = ("lib/store", "lib/zmqc")
# What `make check` runs but for what looks at sources, documents and packages, bench/, and these:
# the first builds programs, of this build too; the second runs some as a user who may not write
# what ran.
FILES = ("unit/test_*.c", "fuzz/fuzz_*.c", "vectors/test_*.py", "wire/test_*.py", "cli/test_*.py",
         "services/test_*.py", "tunnel/test_*.py")
LEFT_OUT = ("tests/cli/test_library", "tests/cli/test_inspect")


def words():
    found = {os.path.splitext(os.path.relpath(p, ROOT))[0] for f in FILES
             for p in glob.glob(os.path.join(ROOT, "tests", f))}
    return ["tests/sim"] + sorted(w for w in found if w not in LEFT_OUT)


def exercise(build):
    """False when a test failed; what it did not run is then shown as never run."""
    for old in glob.glob(os.path.join(build, "**", "*.gcda"), recursive=True):
        os.unlink(old)
    env = dict(os.environ, ZMQCAT_TEST_SLOW="4")
    done = subprocess.run([sys.executable, "tests/run", "--build", build, "--asan", build]
                          + words(), cwd=ROOT, env=env, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    lines = done.stdout.decode(errors="replace").splitlines()
    print("\n".join([line for line in lines if line.startswith("FAIL")] + lines[-1:]), flush=True)
    return done.returncode == 0


def measure(build, source):
    """Lines [(number, runs)] and branches [(number, index, taken)] of one file."""
    stem = os.path.join(build, source[:-2])
    if not os.path.exists(stem + ".gcda"):
        return None
    out = subprocess.run(["gcov", "--json-format", "--stdout", "-b", stem + ".gcda"], cwd=ROOT,
                         check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    with open(os.path.join(ROOT, source)) as f:
        text = f.read().split("\n")
    lines, branches = {}, {}
    for record in out.splitlines():
        for file in json.loads(record)["files"]:
            if not file["file"].endswith(source):
                continue
            for line in file["lines"]:
                number = line["line_number"]
                lines[number] = lines.get(number, 0) + line["count"]
                if "ZC_ASSERT" in text[number - 1]:
                    continue
                for i, branch in enumerate(line["branches"]):
                    key = (number, i)
                    branches[key] = branches.get(key, 0) + branch["count"]
    return lines, branches


def ranges(numbers):
    """[3, 4, 5, 9] as "3-5 9"."""
    found = []
    for n in sorted(numbers):
        if found and n == found[-1][1] + 1:
            found[-1][1] = n
        else:
            found.append([n, n])
    return " ".join("%d" % a if a == b else "%d-%d" % (a, b) for a, b in found)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    build, detail = os.path.abspath(sys.argv[1]), sys.argv[2:]
    passed = os.environ.get("ZMQCAT_COVERAGE_RUN", "1") == "0" or exercise(build)
    sums = [0, 0, 0, 0]
    print("%-28s %7s %9s  %s" % ("file", "lines", "branches", "lines that never ran"))
    for folder in FOLDERS:
        for path in sorted(glob.glob(os.path.join(ROOT, folder, "*.c"))):
            source = os.path.relpath(path, ROOT)
            found = measure(build, source)
            if found is None:
                print("%-28s never ran" % source)
                continue
            lines, branches = found
            ran = sum(1 for n in lines.values() if n)
            taken = sum(1 for n in branches.values() if n)
            for i, n in enumerate((ran, len(lines), taken, len(branches))):
                sums[i] += n
            print("%-28s %6.1f%% %8.1f%%  %s" % (
                source, 100.0 * ran / max(1, len(lines)), 100.0 * taken / max(1, len(branches)),
                ranges(n for n, runs in lines.items() if not runs)))
            if os.path.basename(source)[:-2] in detail:
                print("    branches never taken in lines",
                      ranges({n for (n, _), runs in branches.items() if not runs}))
    print("%-28s %6.1f%% %8.1f%%" % ("all", 100.0 * sums[0] / max(1, sums[1]),
                                     100.0 * sums[2] / max(1, sums[3])))
    if not passed:
        sys.exit("a test failed in this build, so lines that it runs may count as never run")


if __name__ == "__main__":
    main()
