# quick
"""The rules of CONTRIBUTING.md that a machine can check, over the sources and over the objects of
the build under test (ZMQCAT_BUILD)."""
import os, re, shutil, subprocess, sys, unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness
from harness import BUILD, ROOT

CORE = ("base", "crypto", "zmqc", "store", "tunnel", "node")
# What a folder of lib/ may include beside itself.
MAY_INCLUDE = {
    "base": (),
    "crypto": ("base",),
    "zmqc": ("base", "crypto"),
    "store": ("base", "crypto"),
    "tunnel": ("base", "crypto"),
    "node": ("base", "crypto", "zmqc", "store", "tunnel"),
    "host": CORE,
    "client": ("base", "zmqc"),
}
PROGRAMS_MAY_INCLUDE = {"daemons": CORE + ("host",),
                        "cli": CORE + ("host", "client")}
CORE_SYSTEM_HEADERS = {
    "stdbool.h", "stddef.h", "stdint.h", "stdlib.h", "string.h", "stdio.h", "inttypes.h",
    "limits.h", "stdarg.h", "sodium.h", "emmintrin.h", "nmmintrin.h", "arm_acle.h", "cjson/cJSON.h",
}
# Libraries and where they may be seen.
LIBRARY_HEADERS = (
    ("sodium.h", r"lib/crypto/.*|cli/key\.c|lib/base/(map|rng|text)\.c|lib/host/[a-z_]+\.c"
     r"|tests/.*"),
    ("uv.h", r"lib/host/.*|daemons/.*|tests/.*"),
    ("systemd/", r"lib/host/service_systemd\.c|tests/.*"),
    ("launch.h", r"lib/host/service_launchd\.c|tests/.*"),
    ("cjson/", r"lib/tunnel/(derpmap|jtree)\.c|lib/host/keyfile\.c|bench/.*|tests/.*"),
    ("openssl/", r"lib/host/.*|lib/crypto/aead\.c|tests/.*"),
)
# Everything that the core may ask of the C library. No clock, file, socket, output or environment.
CORE_SYMBOLS = {
    "malloc", "calloc", "realloc", "free", "memcpy", "memmove", "memset", "memcmp", "memchr",
    "memrchr", "memmem", "strlen", "strcmp", "strncmp", "strchr", "strrchr", "strstr", "strspn",
    "qsort", "snprintf", "vsnprintf", "bcmp", "__memcpy_chk",
    "__memmove_chk", "__memset_chk", "__snprintf_chk", "__vsnprintf_chk",
    "__stack_chk_fail", "_GLOBAL_OFFSET_TABLE_",
    "__cpu_model",  # libgcc's note of the processor's features, for CRC32C
}
FUNCTION_LINES_MAX = 70
FILE_LINES_MAX = 400
# Tables of scenarios grow long without being hard to read.
TEST_FILE_LINES_MAX = 600
COLUMNS_MAX = 100


def tracked():
    """Relative paths of the project's files (of the work tree where there is no git)."""
    try:
        out = subprocess.run(["git", "ls-files", "-z", "--cached", "--others",
                              "--exclude-standard"], cwd=ROOT, capture_output=True,
                             check=True).stdout
        paths = [p for p in out.decode().split("\0") if p]
    except (OSError, subprocess.CalledProcessError):
        paths = [os.path.relpath(os.path.join(d, f), ROOT) for d, _, files in os.walk(ROOT)
                 for f in files]
    return sorted(p for p in paths if os.path.isfile(os.path.join(ROOT, p))
                  and not re.match(r"\.git/|build(-[^/]*)?/|.*__pycache__/", p))


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8", errors="surrogateescape") as f:
        return f.read()


FILES = tracked()
C_FILES = [p for p in FILES if p.endswith((".c", ".h"))]
PY_FILES = [p for p in FILES if p.endswith(".py")
            or p in ("tests/run", "bench/run", "bench/count")]
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]', re.M)


def includes(path):
    return [(kind == "<", name) for kind, name in INCLUDE.findall(read(path))]


def tool(*argv):
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


def compiles(argv, text):
    """Looks at C text with the compiler, warnings being errors; makes nothing."""
    return subprocess.run(argv + ["-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-"], cwd=ROOT,
                          text=True, input=text, capture_output=True)


def objects(pattern):
    """(source path, object path) of what was built from sources that match."""
    for path in C_FILES:
        if path.endswith(".c") and re.fullmatch(pattern, path):
            name = os.path.join(BUILD, path[:-2] + ".o")
            if os.path.exists(name):
                yield path, name


def symbols(name):
    """(type letter, symbol) pairs of an object or library."""
    for line in tool("nm", name).splitlines():
        fields = line.split()
        if len(fields) >= 2 and len(fields[-2]) == 1:
            yield fields[-2], fields[-1]


class Layers(unittest.TestCase):
    maxDiff = None

    def test_include_arrows(self):
        wrong = []
        for path in C_FILES:
            parts = path.split("/")
            if parts[0] == "lib" and len(parts) > 2:
                own, allowed = parts[1], MAY_INCLUDE.get(parts[1], ())
            elif parts[0] in PROGRAMS_MAY_INCLUDE:
                own, allowed = None, PROGRAMS_MAY_INCLUDE[parts[0]]
            else:
                continue
            for system, name in includes(path):
                folder = name.split("/")[0] if "/" in name else None
                if not system and folder and folder != own and folder not in allowed:
                    wrong.append("%s includes %s" % (path, name))
        self.assertEqual(wrong, [])

    def test_own_headers_are_named_with_their_folder(self):
        wrong = ["%s includes \"%s\"" % (p, n) for p in C_FILES if p.startswith("lib/")
                 for system, n in includes(p) if not system and "/" not in n]
        self.assertEqual(wrong, [])

    def test_core_includes_no_system_interface(self):
        wrong = ["%s includes <%s>" % (p, n) for p in C_FILES
                 if p.startswith(tuple("lib/%s/" % c for c in CORE))
                 for system, n in includes(p) if system and n not in CORE_SYSTEM_HEADERS]
        self.assertEqual(wrong, [])

    def test_libraries_are_included_only_where_they_belong(self):
        wrong = []
        for path in C_FILES:
            for system, name in includes(path):
                for header, where in LIBRARY_HEADERS:
                    if system and name.startswith(header) and not re.fullmatch(where, path):
                        wrong.append("%s includes <%s>" % (path, name))
        self.assertEqual(wrong, [])

    def test_headers_compile_alone(self):
        flags = tool("pkg-config", "--cflags", "libuv", "libsodium", "libssl").split()
        headers = [p for p in C_FILES if p.endswith(".h") and p.startswith(("lib/", "cli/"))]
        self.assertTrue(headers)
        for path in headers:
            done = compiles([*harness.CC, "-std=gnu11", "-x", "c", "-Ilib", "-Icli", *flags],
                            '#include "%s"\n' % re.sub(r"^(lib|cli)/", "", path))
            self.assertEqual(done.returncode, 0, "%s: %s" % (path, done.stderr))

    def test_public_header_is_plain_c99_and_cxx(self):
        for argv in (["cc", "-std=c99", "-x", "c"], ["g++", "-std=c++11", "-x", "c++"]):
            if shutil.which(argv[0]) is None:
                continue
            done = compiles(argv + ["-pedantic", "-Ilib/client"], "#include <zmqcat.h>\n")
            self.assertEqual(done.returncode, 0, done.stderr)


class Objects(unittest.TestCase):
    maxDiff = None

    def test_core_asks_nothing_of_the_system(self):
        library = os.path.join(BUILD, "libcore.a")
        pairs = list(symbols(library))
        defined = {name for kind, name in pairs if kind in "TtRrDdBbVvWw"}
        wanted = {name for kind, name in pairs if kind == "U"} - defined
        self.assertTrue(defined)
        outside = {n for n in wanted if n not in CORE_SYMBOLS
                   and not n.startswith(("sodium_", "crypto_", "cJSON_", "__asan_", "__ubsan_"))}
        self.assertEqual(sorted(outside), [])
        self.assertEqual(sorted(n for n in wanted if n.startswith("sodium_init")), [])

    def test_core_has_no_mutable_global(self):
        found = []
        for path, name in objects("lib/(%s)/.*" % "|".join(CORE)):
            for line in tool("objdump", "-t", name).splitlines():
                match = re.match(r"[0-9a-f]+ .{7} (\S+)\s+([0-9a-f]+) (.*)", line)
                if not match or int(match[2], 16) == 0 and match[1] != "*COM*":
                    continue
                section = match[1]
                if section == "*COM*" or re.match(r"\.(data|bss|tdata|tbss)(?!\.rel\.ro)", section):
                    found.append("%s: %s in %s" % (path, match[3], section))
        self.assertEqual([f for f in found if "asan" not in f and "ubsan" not in f
                          and ".Lubsan" not in f], [])

    def test_exports_carry_the_name_of_their_file(self):
        wrong, seen = [], 0
        for path, name in objects("lib/.*"):
            noun = re.split(r"[_.]", os.path.basename(path))[0]
            prefixes = ("zc_%s_" % noun, "zc_%ss_" % noun)  # one, or a collection of them
            if path.startswith("lib/client/"):
                prefixes += ("zmqcat_",)
            for kind, symbol in symbols(name):
                if kind in "TDBRVW" and not symbol.startswith("__"):
                    seen += 1
                    if not (symbol + "_").startswith(prefixes):
                        wrong.append("%s exports %s" % (path, symbol))
        self.assertGreater(seen, 100)
        self.assertEqual(wrong, [])

    def test_shared_library_exports_what_the_header_marks(self):
        library = [os.path.join(BUILD, f) for f in os.listdir(BUILD)
                   if re.match(r"libzmqcat.*\.(so\.[0-9.]+|dylib)$", f)]
        self.assertEqual(len(library), 1, library)
        lines = tool("nm", "-D", "--defined-only", library[0]).splitlines()
        exported = {line.split()[-1] for line in lines}
        declared = set(re.findall(r"ZMQCAT_PUBLIC[^;]*?\b(zmqcat_\w+)\(",
                                  read("lib/client/zmqcat.h")))
        self.assertEqual(sorted(exported), sorted(declared))


class Text(unittest.TestCase):
    maxDiff = None

    def test_functions_are_short(self):
        wrong = []
        for path in C_FILES:
            start = None
            for number, line in enumerate(read(path).split("\n"), 1):
                if line == "{":
                    start = number
                elif line == "}" and start is not None:
                    if number - start - 1 > FUNCTION_LINES_MAX:
                        wrong.append("%s:%d: %d lines" % (path, start, number - start - 1))
                    start = None
        self.assertEqual(wrong, [])

    def test_files_are_short(self):
        wrong = []
        for path in C_FILES + PY_FILES:
            lines = read(path).count("\n")
            if lines > (TEST_FILE_LINES_MAX if path.startswith("tests/") else FILE_LINES_MAX):
                wrong.append("%s: %d lines" % (path, lines))
        self.assertEqual(wrong, [])

    def test_lines_fit(self):
        wrong = []
        for path in C_FILES + PY_FILES + [p for p in FILES if p.endswith((".sh", "Makefile"))]:
            for number, line in enumerate(read(path).split("\n"), 1):
                if len(line.expandtabs(4)) > COLUMNS_MAX:
                    wrong.append("%s:%d: %d columns" % (path, number, len(line.expandtabs(4))))
        self.assertEqual(wrong, [])

    def test_white_space(self):
        wrong = []
        for path in FILES:
            if not re.search(r"\.(c|h|py|sh|md|[1-8]|service|socket|in)$", path):
                continue
            text = read(path)
            if "\r" in text or not text.endswith("\n") or re.search(r"[ \t]+$", text, re.M):
                wrong.append(path)
            elif path.endswith((".c", ".h", ".py")) and "\t" in text:
                wrong.append(path + " (tab)")
        self.assertEqual(wrong, [])

    def test_nothing_unfinished_and_no_foreign_path(self):
        marks = re.compile("|".join(("TO" + "DO", "FIX" + "ME", r"\bX" + r"XX\b", "/wo" + "rk/",
                                     "not implemented " + "yet", "/ro" + "ot/")))
        wrong = []
        for path in FILES:
            if path.startswith(("tests/vectors/", "tests/fuzz/corpus/")):
                continue
            for number, line in enumerate(read(path).split("\n"), 1):
                if marks.search(line):
                    wrong.append("%s:%d: %s" % (path, number, line.strip()[:80]))
        self.assertEqual(wrong, [])

    def test_every_c_file_says_what_it_is(self):
        wrong = [p for p in C_FILES if not read(p).startswith("/*")]
        self.assertEqual(wrong, [])

    def test_units_hold_no_secret(self):
        for path in FILES:
            if path.startswith(("systemd/", "launchd/")):
                self.assertIsNone(re.search(r"\btc[A-Za-z0-9_-]{24,}", read(path)), path)
                self.assertIsNone(re.search(r"(?i)(psk|private)\s*=", read(path)), path)

    def test_man_pages_lint(self):
        pages = [p for p in FILES if re.fullmatch(r"docs/man/[^/]+\.[1-8]", p)]
        self.assertTrue(pages)
        if shutil.which("mandoc") is None:
            harness.skip("mandoc is not installed (make deps)")
        done = subprocess.run(["mandoc", "-Tlint", "-Wwarning", *pages], cwd=ROOT,
                              capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, ""))


if __name__ == "__main__":
    harness.main()
