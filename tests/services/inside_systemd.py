"""Runs inside the container of test_systemd.py, as root under a real systemd.

Each check is a function; what it raises goes to RESULT/checks.json. The order matters: later checks
use what earlier ones left.
"""
import json, os, pwd, re, stat, subprocess, sys, threading, time

PAYLOAD, RESULT = sys.argv[1], sys.argv[2]
sys.path.insert(0, PAYLOAD)
from harness import Closed, Conn, wait_for
from manager import HUB, SPOKE, Bus, as_user, equal, put_file, run, run_checks, said, show
from manager import systemctl, write_results

BUS, CONTROL = "/run/zmqcat/zmqcat.sock", "/run/zmqcat/control.sock"
UNITS = ("zmqcat-hub.socket", "zmqcat-hub-control.socket")
SPOKE_UNITS = ("zmqcat-spoke.socket", "zmqcat-spoke-control.socket")
TOKEN = "/etc/credstore/token"
DROP_IN = "/etc/systemd/system/zmqcat-hub.service.d/test.conf"


def refused(path):
    try:
        Conn(path).close()
        return False
    except PermissionError:
        return True


bus = Bus(BUS)
put, take, depth = bus.put, bus.take, bus.depth


def socket_inodes():
    return [os.lstat(p).st_ino for p in (BUS, CONTROL)]


def drop_in(text):
    os.makedirs(os.path.dirname(DROP_IN), exist_ok=True)
    with open(DROP_IN, "w") as f:
        f.write(text)
    systemctl("daemon-reload")


def check_sockets_before_the_hub():
    """The manager listens; mode, group and directory let members in and nobody else."""
    systemctl("start", *UNITS)
    bus, control, folder = os.lstat(BUS), os.lstat(CONTROL), os.lstat("/run/zmqcat")
    group = pwd.getpwnam("zmqcat").pw_gid
    equal((stat.S_IMODE(bus.st_mode), bus.st_uid, bus.st_gid), (0o660, 0, group))
    equal((stat.S_IMODE(control.st_mode), control.st_uid), (0o600, 0))
    equal((stat.S_IMODE(folder.st_mode), folder.st_uid), (0o755, 0))
    equal(show("ActiveState"), "inactive")


def check_first_client_starts_the_hub():
    assert as_user("member", lambda: put("jobs", "first"))
    equal(show("ActiveState"), "active")
    equal(show("SubState"), "running")
    equal(show("Type"), "notify")


def check_status_text():
    want = re.compile(r"\d+ sessions?, 1 queued, 0 leased, storage ok")
    wait_for(lambda: want.fullmatch(show("StatusText")))


def check_member_takes_and_identity_is_the_uid():
    def work():
        msg = take("jobs")
        return msg["text"] == "first" and msg["by"] == "uid:%d" % pwd.getpwnam("member").pw_uid
    assert as_user("member", work)


def check_h14_stranger_is_refused():
    assert as_user("stranger", lambda: refused(BUS))
    assert as_user("stranger", lambda: refused(CONTROL))


def check_h14_member_may_not_administer():
    assert as_user("member", lambda: refused(CONTROL))


def check_control_socket():
    c = Conn(CONTROL)
    got = c.call(v=1, op="status", id="1")["result"]
    c.close()
    equal(got["storage"]["state"], "ok")
    equal(got["storage"]["path"], "/var/lib/zmqcat/mailbox")
    equal(got["tunnel"], None)


def check_command():
    """The command finds the socket of the unit by itself."""
    program = os.path.join(PAYLOAD, "bin", "zmqcat")

    def command(*args):
        return subprocess.run([program] + list(args), capture_output=True, timeout=20,
                              stdin=subprocess.DEVNULL)

    def work():
        equal(command("put", "cli", "hello", "there").returncode, 0)
        got = command("take", "cli")
        equal((got.returncode, got.stdout), (0, b"hello there\n"))
        return True
    assert as_user("member", work)
    assert as_user("stranger", lambda: command("ping").returncode == 1)
    equal(command("status").returncode, 0)


def check_rights_of_the_process():
    pid = show("MainPID")
    with open("/proc/%s/status" % pid) as f:
        status = dict(l.rstrip("\n").split(":\t", 1) for l in f if ":\t" in l)
    uid = str(pwd.getpwnam("zmqcat").pw_uid)
    equal(set(status["Uid"].split()), {uid})
    for name in ("CapEff", "CapPrm", "CapBnd", "CapAmb"):
        equal(int(status[name], 16), 0)
    equal((status["NoNewPrivs"], status["Seccomp"]), ("1", "2"))
    with open("/proc/%s/limits" % pid) as f:
        limits = f.read()
    assert re.search(r"Max core file size +0 +0 ", limits), limits
    files = re.search(r"Max open files +(\d+) +(\d+) ", limits)
    # The unit asks for 65536; a container may have less to give.
    equal(files[1], files[2])
    assert 4096 <= int(files[1]) <= 65536, limits


def check_state_directory():
    for path in ("/var/lib/zmqcat", "/var/lib/zmqcat/mailbox"):
        st = os.lstat(path)
        equal((stat.S_IMODE(st.st_mode), st.st_uid), (0o700, pwd.getpwnam("zmqcat").pw_uid))


def check_reload_waits_and_tells():
    """It comes back with what the hub answers; one that did not reach the hub has failed."""
    pid = show("MainPID")
    systemctl("reload", HUB)
    equal(show("MainPID"), pid)
    os.rename(CONTROL, CONTROL + ".away")
    try:
        assert run(["systemctl", "reload", HUB]).returncode != 0
    finally:
        os.rename(CONTROL + ".away", CONTROL)
    equal((show("ActiveState"), show("MainPID")), ("active", pid))


def check_watchdog():
    equal(show("WatchdogUSec"), "30s")
    drop_in("[Service]\nWatchdogSec=500ms\n")
    systemctl("restart", HUB)
    pid = show("MainPID")
    time.sleep(1.6)
    equal(show("MainPID"), pid)
    equal(show("NRestarts"), "0")
    # A hub that hangs is killed and comes back.
    os.kill(int(pid), 19)
    back_after(pid)
    assert put("after-hang", "x")
    os.unlink(DROP_IN)
    systemctl("daemon-reload")
    systemctl("restart", HUB)


def check_journal():
    out = run(["journalctl", "-u", HUB, "-o", "json"]).stdout
    lines = [json.loads(l) for l in out.splitlines()]
    told = [l for l in lines if l["MESSAGE"] == "local bus at unix://" + BUS]
    assert told, [l["MESSAGE"] for l in lines]
    equal({l["PRIORITY"] for l in told}, {"6"})
    assert not [l for l in lines if l["MESSAGE"].startswith("<")]


def check_stop_is_clean_and_quick():
    before = socket_inodes()
    waiting = Conn(BUS)
    waiting.send(v=1, op="take", id="w", name="nothing")
    holder = Conn(BUS)
    equal(holder.put("leased", "mine")["op"], "ok")
    equal(holder.call(v=1, op="reserve", id="r", name="leased")["op"], "msg")
    start = time.monotonic()
    systemctl("stop", HUB)
    took = time.monotonic() - start
    assert took < 5, took
    equal((show("Result"), show("ExecMainStatus")), ("success", "0"))
    equal(waiting.recv()["error"], "mailbox: closed")
    assert holder.closed()
    equal(socket_inodes(), before)
    # The next client starts it again, and what was leased is back.
    equal(take("leased")["text"], "mine")
    equal(socket_inodes(), before)
    waiting.close()
    holder.close()


def crash():
    pid = int(show("MainPID"))
    assert pid > 0  # 0 would be ourselves
    os.kill(pid, 9)
    return pid


def back_after(pid):
    wait_for(lambda: show("MainPID") not in (str(pid), "0") and show("ActiveState") == "active", 15)


def check_message_survives():
    assert put("kept", "one")
    systemctl("restart", HUB)
    assert put("kept", "two")
    crash()
    equal(take("kept")["text"], "one")
    systemctl("restart", HUB)
    equal(take("kept")["text"], "two")


def check_restart_while_clients_queue():
    """Nobody is refused, and no acknowledged put is lost."""
    over = threading.Event()
    acked, refusals = [], []

    def client(k):
        n = 0
        while not over.is_set():
            n += 1
            try:
                c = Conn(BUS, timeout=30)
            except OSError as e:
                refusals.append(e)
                continue
            try:
                if c.put("queue", "%d-%d" % (k, n))["op"] == "ok":
                    acked.append("%d-%d" % (k, n))
            except (Closed, OSError):
                pass  # cut by the restart, and not acknowledged
            finally:
                c.close()
            time.sleep(0.01)

    threads = [threading.Thread(target=client, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for _ in range(4):
        time.sleep(0.3)
        systemctl("restart", HUB)
    time.sleep(0.3)
    over.set()
    for t in threads:
        t.join()
    equal(refusals, [])
    assert len(acked) > 20, acked
    there = [take("queue")["text"] for _ in range(depth("queue"))]
    equal([a for a in acked if a not in there], [])


def check_stop_and_start_several_times():
    before = socket_inodes()
    for i in range(3):
        systemctl("stop", HUB)
        equal(show("ActiveState"), "inactive")
        systemctl("start", HUB)
        assert put("again", str(i))
    equal([take("again")["text"] for _ in range(3)], ["0", "1", "2"])
    equal(socket_inodes(), before)


def check_crash_comes_back():
    pid = crash()
    assert put("crash", "x")
    back_after(pid)
    equal(take("crash")["text"], "x")


def check_crashes_do_not_add_up():
    """systemd would give up after five starts in ten seconds."""
    for _ in range(7):
        back_after(crash())
    assert put("crashes", "x")
    equal(take("crashes")["text"], "x")


def one_attempt_and_no_storm(option, status):
    """One attempt. Clients that knock bring another one every few seconds, with the same line; the
    sockets stay, and the clients are served as soon as the mistake is mended."""
    assert put("patient", "x")
    options = "--local --mailbox /var/lib/zmqcat/mailbox " + option
    drop_in("[Service]\nExecStart=\nExecStart=%s/bin/zmqcat-hub %s\n" % (PAYLOAD, options))
    before = len(said(HUB))
    systemctl("restart", HUB, check=False)
    wait_for(lambda: show("ActiveState") == "failed")
    equal((show("ExecMainStatus"), show("NRestarts")), (status, "0"))
    started = show("ExecMainStartTimestampMonotonic")
    time.sleep(3)  # longer than RestartSec=
    equal(show("ExecMainStartTimestampMonotonic"), started)

    def named():
        return len([l for l in said(HUB)[before:] if option.split()[0] in l])
    equal(named(), 1)
    knocking = [Conn(BUS) for _ in range(3)]
    for c in knocking:
        c.send(v=1, op="stat", id="k", name="patient")
    time.sleep(7)
    assert 2 <= named() <= 5, said(HUB)
    equal([show("ActiveState", u) for u in UNITS], ["active", "active"])
    os.unlink(DROP_IN)
    systemctl("daemon-reload")
    for c in knocking:
        equal(c.recv()["result"]["depth"], 1)
        c.close()
    equal(take("patient")["text"], "x")


def check_unusable_configuration_does_not_storm():
    one_attempt_and_no_storm("--segment 1", "78")


def check_unknown_option_does_not_storm():
    one_attempt_and_no_storm("--nosuch", "2")


def check_missing_key_is_told_with_its_path():
    """As the module for NixOS writes it; the value of SetCredential= is no place for % twice."""
    for kind in ("LoadCredential", "LoadCredentialEncrypted"):
        drop_in("[Service]\nExecStart=\nExecStart=%s/bin/zmqcat-hub --key-file %%d/key\n"
                "Restart=no\n%s=key:/run/a%%%%b\nSetCredential=key:missing:/run/a%%b\n"
                % (PAYLOAD, kind))
        before = len(said(HUB))
        systemctl("restart", HUB, check=False)
        wait_for(lambda: show("ActiveState") == "failed")
        lines = said(HUB)[before:]
        equal((show("ExecMainStatus"), len(lines)), ("1", 1))
        assert "credential key: /run/a%b does not exist" in lines[0], lines
    os.unlink(DROP_IN)
    systemctl("daemon-reload")
    systemctl("restart", HUB)


def check_alias_is_of_one_of_them():
    """zmqcat.service is whichever is enabled; the other one cannot be enabled beside it."""
    for unit, other in ((HUB, SPOKE), (SPOKE, HUB)):
        systemctl("enable", unit)
        equal(show("Id", "zmqcat.service"), unit)
        got = run(["systemctl", "enable", other])
        assert got.returncode != 0 and unit in got.stderr, got.stderr
        systemctl("disable", other)
        systemctl("disable", unit)
        equal(run(["systemctl", "is-enabled", unit]).stdout, "disabled\n")
    systemctl("start", *UNITS)


def check_sockets_stop():
    systemctl("stop", HUB, *UNITS)
    equal(os.listdir("/run/zmqcat"), [])


class Far:
    """A relay, and a hub that stands for the one of another host."""

    def __init__(self):
        os.makedirs("/run/far")
        self.relay = subprocess.Popen([PAYLOAD + "/bin/relay", "--dir", "/run/far"],
                                      stdout=subprocess.PIPE)
        self.relay.stdout.readline()
        self.log = open("/run/far/log", "wb")
        self.hub = subprocess.Popen(
            [PAYLOAD + "/bin/zmqcat-hub", "--listen", "/run/far/bus", "--derp-map",
             "/run/far/map.json", "--key-file", "/run/far/key", "--token-out", "/run/far/token"],
            stderr=self.log)
        wait_for(lambda: os.path.exists("/run/far/token"))
        with open("/run/far/token") as f:
            self.token = f.read()


far = None


def token_file(text):
    os.makedirs(os.path.dirname(TOKEN), mode=0o700, exist_ok=True)
    with open(os.open(TOKEN, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o400), "w") as f:
        f.write(text)


def check_spoke_waits_for_its_credential():
    """Without one each attempt fails with a line, and a late one is met by the next."""
    global far
    far = Far()
    systemctl("start", *SPOKE_UNITS)
    systemctl("start", SPOKE, check=False)
    wait_for(lambda: show("SubState", SPOKE) == "auto-restart")
    equal(show("ExecMainStatus", SPOKE), "1")
    token_file(far.token)
    assert as_user("member", lambda: put("jobs", "through the tunnel"))
    equal(show("ActiveState", SPOKE), "active")
    c = Conn("/run/far/bus")
    equal(c.call(v=1, op="take", id="t", name="jobs")["text"], "through the tunnel")
    c.close()


def check_spoke_restarts_with_its_key():
    """The hub sees the same key; a client that comes meanwhile is served afterwards."""
    def peers():
        c = Conn("/run/far/bus.ctl")
        try:
            return [p["nodekey"] for p in c.call(v=1, op="status", id="s")["result"]["tunnel"]
                    ["peers"]]
        finally:
            c.close()
    before = peers()
    systemctl("restart", SPOKE)
    assert put("jobs", "again")
    equal(take("jobs")["text"], "again")
    equal((len(before), peers()), (1, before))
    key = os.stat("/var/lib/zmqcat/spoke.key")
    equal((stat.S_IMODE(key.st_mode), key.st_uid), (0o600, pwd.getpwnam("zmqcat").pw_uid))
    equal(stat.S_IMODE(os.stat("/var/lib/zmqcat").st_mode), 0o700)


def check_restarts_of_the_spoke_do_not_add_up():
    for _ in range(7):
        systemctl("restart", SPOKE)
    assert put("jobs", "after all")
    equal(take("jobs")["text"], "after all")


def check_spoke_shows_no_secret():
    pid = show("MainPID", SPOKE)
    shown = run(["journalctl", "-b", "--no-pager"]).stdout
    for name in ("cmdline", "environ"):
        with open("/proc/%s/%s" % (pid, name)) as f:
            shown += f.read()
    assert far.token.strip() not in shown
    wait_for(lambda: show("StatusText", SPOKE) == "joined, relay 127.0.0.1")


def check_spoke_with_a_bad_token_stays_down():
    token_file(far.token[:-30] + "\n")
    systemctl("restart", SPOKE, check=False)
    wait_for(lambda: show("ActiveState", SPOKE) == "failed")
    equal((show("ExecMainStatus", SPOKE), show("NRestarts", SPOKE)), ("78", "0"))
    token_file(far.token)
    systemctl("reset-failed", SPOKE)
    systemctl("start", SPOKE)
    assert put("jobs", "x")


def check_spoke_with_an_unknown_option_stays_down():
    """And holds back its clients for a moment."""
    path = DROP_IN.replace(HUB, SPOKE)
    put_file(path, "[Service]\nExecStart=\nExecStart=%s/bin/zmqcat-spoke --nosuch\n" % PAYLOAD)
    systemctl("daemon-reload")
    start = time.monotonic()
    systemctl("restart", SPOKE, check=False)
    wait_for(lambda: show("ActiveState", SPOKE) == "failed")
    assert time.monotonic() - start >= 3
    equal((show("ExecMainStatus", SPOKE), show("NRestarts", SPOKE)), ("2", "0"))
    os.unlink(path)
    systemctl("daemon-reload")
    assert put("jobs", "x")
    equal(show("ActiveState", SPOKE), "active")


def check_hub_and_spoke_exclude_each_other():
    systemctl("start", *UNITS)
    equal(show("ActiveState", SPOKE_UNITS[0]), "inactive")
    assert put("own", "x")
    equal(show("ActiveState", SPOKE), "inactive")
    equal(take("own")["text"], "x")
    for start in (SPOKE_UNITS, (SPOKE,)):
        systemctl("start", HUB)
        systemctl("start", *start)
        equal([show("ActiveState", u) for u in (HUB, *UNITS)], ["inactive"] * 3)
        assert put("far", "away")
        equal(take("far")["text"], "away")
        equal(show("ActiveState", SPOKE), "active")
    systemctl("stop", SPOKE, *SPOKE_UNITS)
    for p in (far.hub, far.relay):
        p.terminate()
        p.wait()


if __name__ == "__main__":
    run(["ip", "link", "set", "lo", "up"])
    run_checks(globals(), write_results(RESULT))
