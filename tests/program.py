"""A test program: what it leaves out, what it skips, and its last line."""
import os, sys, unittest

# Hubs of Case.hub() are reached through ten spokes and a relay: ours (1) or that of a DERP map (its
# path). Set by tests/run for what says `# tunnelled` in its first lines.
TUNNEL = os.environ.get("ZMQCAT_TEST_TUNNEL", "")

# (test, why) that a tunnelled run leaves out.
_left_out = []


def local(why):
    """Marks a test of what only a hub's own listener or process has: left out when tunnelled."""
    def mark(test):
        test.local = why
        return test
    return mark


def plain(why):
    """Marks a test that programs with sanitizers cannot pass: left out of their pass."""
    def mark(test):
        test.plain = why
        return test
    return mark


def _sanitized():
    build = os.environ.get("ZMQCAT_BUILD", os.path.join(os.path.dirname(__file__), "..", "build"))
    with open(os.path.join(build, "zmqcat-hub"), "rb") as f:
        return b"__asan" in f.read()


class Loader(unittest.TestLoader):
    """Leaves out what is marked local when tunnelled, and what is marked plain of a sanitized
    build; a test that is named runs all the same."""

    def getTestCaseNames(self, case):
        names = super().getTestCaseNames(case)
        why = {n: getattr(getattr(case, n), "plain", None) for n in names}
        if any(why.values()) and not _sanitized():
            why = dict.fromkeys(names)
        if TUNNEL:
            why = {n: getattr(case, "local", getattr(getattr(case, n), "local", why[n]))
                   for n in names}
        _left_out.extend(("%s.%s" % (case.__name__, n), why[n]) for n in names if why[n])
        return [n for n in names if not why[n]]


def skip(why):
    """Cannot run here: SKIP, which is a failure under CI=true."""
    if os.environ.get("CI") == "true":
        raise AssertionError("cannot run here, and CI=true: " + why)
    raise unittest.SkipTest(why)


def leave_out(name, why):
    """What cannot be tested unless somebody provides for it: LEFT OUT, never a failure."""
    _left_out.append((name, why))


def main():
    """Runs the tests of the calling module; the last line is `N passed, N failed[, N skipped]`."""
    program = unittest.main(module="__main__", exit=False, verbosity=1, testLoader=Loader(),
                            argv=[sys.argv[0]] + sys.argv[1:])
    r = program.result
    # A test whose parts failed is one failure.
    bad = len({getattr(t, "test_case", t).id() for t, _ in r.failures + r.errors})
    bad += len(r.unexpectedSuccesses)
    for test, why in r.skipped:
        print("SKIP %s: %s" % (test, why))
    for test, why in _left_out:
        print("LEFT OUT %s: %s" % (test, why))
    tail = ", %d skipped" % len(r.skipped) if r.skipped else ""
    print("%d passed, %d failed%s" % (
        max(0, r.testsRun - bad - len(r.skipped)), bad, tail), flush=True)
    sys.exit(1 if bad else 0)
