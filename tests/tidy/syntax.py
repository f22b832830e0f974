"""`make lint`: every Python file parses. Prints the count, exits 1 at the first that does not."""
import ast, pathlib, sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
files = sorted(f for f in (ROOT / "tests").rglob("*") if f.suffix == ".py" or f.name == "run")
for f in files:
    try:
        ast.parse(f.read_text(), str(f))
    except SyntaxError as e:
        sys.exit("%s:%s: %s" % (f, e.lineno, e.msg))
print("python: %d files parse" % len(files))
