"""What the scripts that run inside a machine with a systemd of its own share: they are copied there
beside this file. Python's own library, tests/harness.py and tests/program.py only."""
import json, os, pwd, signal, subprocess, time, traceback

from harness import Conn

HUB, SPOKE = "zmqcat-hub.service", "zmqcat-spoke.service"


def run(argv, **more):
    return subprocess.run(argv, capture_output=True, text=True, **more)


def systemctl(*args, check=True):
    got = run(["systemctl"] + list(args))
    if check and got.returncode != 0:
        raise AssertionError("systemctl %s: %s" % (" ".join(args), got.stderr))
    return got.stdout


def show(name, unit=HUB):
    return systemctl("show", "-P", name, unit).strip()


def said(unit):
    """The lines of the unit's own processes in the journal."""
    run(["journalctl", "--sync"])
    return run(["journalctl", "-b", "-o", "cat", "_SYSTEMD_UNIT=" + unit]).stdout.splitlines()


def equal(got, want):
    assert got == want, "got %r, want %r" % (got, want)


def put_file(path, text, mode=0o644):
    """A file of that text; its folders are made."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".new", "wb") as f:
        os.fchmod(f.fileno(), mode)
        f.write(text if isinstance(text, bytes) else text.encode())
    os.rename(path + ".new", path)


def as_user(name, what):
    """Runs what() in a child with only that user's rights; True when it returned something true."""
    pid = os.fork()
    if pid == 0:
        code = 2
        try:
            user = pwd.getpwnam(name)
            os.initgroups(name, user.pw_gid)
            os.setgid(user.pw_gid)
            os.setuid(user.pw_uid)
            code = 0 if what() else 1
        except PermissionError:
            code = 1
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


class Bus:
    """Short calls on one socket, each with a connection of its own."""

    def __init__(self, path):
        self.path = path

    def call(self, **frame):
        c = Conn(self.path, timeout=30)
        try:
            return c.call(v=1, id="t", **frame)
        finally:
            c.close()

    def put(self, name, text):
        return self.call(op="put", name=name, text=text)["op"] == "ok"

    def take(self, name):
        return self.call(op="take", name=name, wait=20)

    def depth(self, name):
        return self.call(op="stat", name=name)["result"]["depth"]


def _hangs(*_):
    raise TimeoutError("the check hangs")


def run_checks(checks, tell, seconds=30, go_on=True):
    """Runs the functions check_NAME of `checks` in their order, each for so long at most; tell()
    gets {NAME: "ok" or what was raised} after each. Without go_on the first failure is the end."""
    results = {}
    signal.signal(signal.SIGALRM, _hangs)
    for name, check in [(n[6:], f) for n, f in checks.items() if n.startswith("check_")]:
        signal.alarm(int(seconds))
        start = time.monotonic()
        try:
            check()
            results[name] = "ok"
        except BaseException:
            results[name] = traceback.format_exc()
        signal.alarm(0)
        print("%s %.1f s: %s" % (name, time.monotonic() - start, results[name][-1500:]), flush=True)
        tell(results)
        if results[name] != "ok" and not go_on:
            break
    return results


def write_results(folder):
    """For tell() above."""
    def tell(results):
        put_file(folder + "/checks.json", json.dumps(results))
        if set(results.values()) != {"ok"}:
            with open(folder + "/journal", "w") as f:
                subprocess.run(["journalctl", "-b", "--no-pager"], stdout=f)
    return tell
