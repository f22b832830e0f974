"""The services as a host has them, through a day of an administrator: runs as root inside a machine
with a systemd of its own: a container (test_container.py), a guest with a kernel of its own
(test_guest.py) or a NixOS machine (nix/tests/services.nix); beside tests/services/manager.py and
world.py.

Each check is a function, in this order; later ones use what earlier ones left. The power cut comes
after them, and after_cut.py looks at what is left.
"""
import os, pwd, re, signal, stat, sys, time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import SLOW, Closed, Conn, payload, wait_for
from held import Held
from load import Load, astray, left
from manager import HUB, Bus, as_user, equal, put_file, run, said, show, systemctl
import world
from world import ALLOW, BIN, HUB_BUS, HUB_CONTROL, RELAY, UNITS, Spoke, hub_drop_in

# Rounds of start and stop; each is some 0.3 s, and ten times that where the processor is emulated.
ROUNDS = int(os.environ.get("ROUNDS", "100"))
hub = Bus(HUB_BUS)
spoke_a, spoke_b, spoke_c = Spoke("a"), Spoke("b"), Spoke("c")


def zmqcat(*args, check=True):
    got = run([BIN + "/zmqcat"] + list(args))
    if check and got.returncode != 0:
        raise AssertionError("zmqcat %s: %s" % (" ".join(args), got.stderr))
    return got.stdout.strip()


def peers():
    """The node keys of the spokes that the hub has."""
    got = Bus(HUB_CONTROL).call(op="status")["result"]["tunnel"]["peers"]
    return [p["nodekey"] for p in got]


def reload_allow(*spokes):
    put_file(ALLOW, "".join("%s # %s\n" % (s.key(), s.name) for s in spokes))
    systemctl("reload", HUB)


def within(seconds, what):
    """what() comes true, in so many seconds at most."""
    start = time.monotonic()
    wait_for(what, seconds, 0.05)
    return time.monotonic() - start


def check_start():
    """Relay, hub and three spokes; nobody is on the list of the hub yet."""
    world.make()
    put_file(ALLOW, "# nobody\n")
    systemctl("start", RELAY)
    systemctl("start", *world.sockets("zmqcat-hub"), HUB)
    world.token = wait_for(lambda: zmqcat("token", check=False), 30, 0.2)
    for s in (spoke_a, spoke_b):
        s.place(world.token)
        s.start()
    equal([s.status()["state"] == "up" for s in (spoke_a, spoke_b)], [False, False])


def check_reload_lets_one_in():
    pid = show("MainPID")
    reload_allow(spoke_a)
    spoke_a.joined()
    equal(show("MainPID"), pid)
    wait_for(lambda: any(spoke_b.key() + " is not on the allow list" in l for l in said(HUB)), 20)
    got = spoke_b.bus.call(op="put", name="jobs", text="x")
    equal((got["op"], got.get("code")), ("err", "unavailable"))


def check_reload_of_a_bad_list_changes_nothing():
    """The manager fails, and the journal names the line."""
    put_file(ALLOW, "%s\nnonsense\n" % spoke_b.key())
    assert run(["systemctl", "reload", HUB]).returncode != 0
    assert [l for l in said(HUB) if ALLOW in l and "2" in l], said(HUB)[-5:]
    assert spoke_a.bus.put("jobs", "still in")
    equal(hub.take("jobs")["text"], "still in")
    assert spoke_b.status()["state"] != "up"
    reload_allow(spoke_a)


def check_both_ways():
    assert hub.put("there", "from the hub")
    equal(spoke_a.bus.take("there")["text"], "from the hub")
    assert spoke_a.bus.put("here", "from the spoke")
    got = hub.take("here")
    equal((got["text"], got["by"]), ("from the spoke", spoke_a.key()))


def check_wrong_token():
    """One attempt and one line; clients that knock bring one every few seconds and no more, and
    are served once the token is good, without anybody's help."""
    spoke_c.place(world.token[:-30] + "\n")
    systemctl("start", *spoke_c.sockets)
    systemctl("start", spoke_c.unit, check=False)
    wait_for(lambda: show("ActiveState", spoke_c.unit) == "failed", 20)
    equal((show("ExecMainStatus", spoke_c.unit), show("NRestarts", spoke_c.unit)), ("78", "0"))
    lines = [l for l in said(spoke_c.unit) if "token" in l]
    assert len(lines) == 1 and "was cut" in lines[0], lines
    assert world.token[8:40] not in lines[0]
    client = Conn(spoke_c.bus.path, timeout=30)
    client.send(v=1, op="put", id="p", name="jobs", text="patient")
    time.sleep(7)
    attempts = wait_for(lambda: len([l for l in said(spoke_c.unit) if "was cut" in l]) - 1, 20)
    assert attempts <= 4, attempts
    equal([show("ActiveState", u) for u in spoke_c.sockets], ["active", "active"])
    reload_allow(spoke_a, spoke_c)
    spoke_c.place(world.token)
    equal(client.recv()["op"], "ok")
    client.close()
    equal(hub.take("jobs")["text"], "patient")


def check_h12_odd_bytes():
    """What editors and scripts make of a token: read, or refused in one line with status 78."""
    token = world.token.strip().encode()
    good = (token + b"\r\n", b"\xef\xbb\xbf" + token, b"  " + token + b" \t\n\n", token)
    bad = (token + b"\n" + token + b"\n", b"", b"\n", b"x" * (1 << 19), b"\0" * 64,
           ("\ufeff" + token.decode()).encode("utf-16-le"), token[:-1], token + b"\0")
    spoke_c.drop_in("ExecStopPost=\n")  # nobody knocks
    for text in good + bad:
        systemctl("stop", spoke_c.unit)
        systemctl("reset-failed", spoke_c.unit, check=False)
        before = len(said(spoke_c.unit))
        spoke_c.place(text)
        systemctl("start", spoke_c.unit, check=False)
        if text in good:
            equal(show("ActiveState", spoke_c.unit), "active")
            continue
        equal((show("ActiveState", spoke_c.unit), show("ExecMainStatus", spoke_c.unit),
               show("NRestarts", spoke_c.unit)), ("failed", "78", "0"))
        lines = said(spoke_c.unit)[before:]
        assert len(lines) == 1 and "token" in lines[0] and len(lines[0]) < 400, (text[:20], lines)
    # A credential of 1 MiB is too large to the manager, which says so and tries again by and by.
    spoke_c.place(b"x" * (1 << 20))
    systemctl("start", spoke_c.unit, check=False)
    wait_for(lambda: (show("SubState", spoke_c.unit), show("ExecMainStatus", spoke_c.unit)) ==
             ("auto-restart", "243"), 20)
    spoke_c.drop_in(None)
    spoke_c.place(world.token)
    systemctl("restart", spoke_c.unit)
    spoke_c.joined()


def check_h12_late_secret():
    """sops-nix is not done yet: each attempt fails, and the first after it is there works."""
    systemctl("stop", spoke_c.unit)
    os.unlink(spoke_c.secret())
    systemctl("start", spoke_c.unit, check=False)
    wait_for(lambda: show("SubState", spoke_c.unit) == "auto-restart", 20)
    client = Conn(spoke_c.bus.path, timeout=30)
    client.send(v=1, op="put", id="p", name="jobs", text="early")
    wait_for(lambda: int(show("NRestarts", spoke_c.unit)) >= 1, 20)
    spoke_c.place(world.token)
    equal(client.recv()["op"], "ok")
    client.close()
    equal(hub.take("jobs")["text"], "early")


def check_h12_secret_is_roots_alone():
    for path in (spoke_a.secret(), "/run/credentials/%s/token" % spoke_a.unit):
        assert not as_user("stranger", lambda p=path: open(p).read()), path
    st = os.stat(spoke_a.secret())
    equal((stat.S_IMODE(st.st_mode), st.st_uid), (0o400, 0))


def check_h12_r9_rotation():
    """A new generation by a switch of the link: the unit that has the secret is restarted and no
    other one. Its credential stays the old one until then."""
    pids = {u: show("MainPID", u) for u in (HUB, spoke_a.unit, spoke_c.unit)}
    world.old_token, world.token = world.token, zmqcat("rotate")
    assert world.old_token != world.token
    for s in (spoke_a, spoke_c):
        s.place(world.token)
    equal(spoke_a.credential(), world.old_token)
    assert run(["systemctl", "reload", spoke_a.unit]).returncode != 0
    assert "restart" in said(spoke_a.unit)[-1], said(spoke_a.unit)[-3:]
    systemctl("restart", spoke_a.unit)
    equal(spoke_a.credential(), world.token)
    spoke_a.joined()
    equal((show("MainPID"), show("MainPID", spoke_c.unit)), (pids[HUB], pids[spoke_c.unit]))
    systemctl("restart", spoke_c.unit)
    spoke_c.joined()


def check_h12_encrypted_credential():
    os.makedirs("/etc/credstore.encrypted", exist_ok=True)
    sealed = "/etc/credstore.encrypted/token-c"
    got = run(["systemd-creds", "encrypt", "--with-key=host", "--name=token", "-", sealed],
              input=world.token + "\n")
    equal((got.returncode, got.stdout), (0, ""))
    with open(sealed) as f:
        assert world.token[8:40] not in f.read()
    spoke_c.drop_in("LoadCredential=\nLoadCredentialEncrypted=token:%s\n" % sealed)
    os.unlink(spoke_c.secret())
    systemctl("restart", spoke_c.unit)
    equal(spoke_c.credential(), world.token)
    spoke_c.joined()
    spoke_c.drop_in(None)
    spoke_c.place(world.token)
    systemctl("restart", spoke_c.unit)


def check_restart_under_load():
    """Clients of the hub and of a spoke are queued: none is refused; what was acknowledged is there
    or was taken, once; what a client held that was cut comes again."""
    here, there = HUB_BUS, spoke_a.bus.path
    load = Load("load", [here] * 4 + [there] * 2, [here], [here, there], [here, there])
    for _ in range(3):
        time.sleep(0.5)
        systemctl("restart", HUB)
    spoke_a.joined(20)
    time.sleep(0.5)
    load.end()
    equal(load.refused, [])
    assert len(load.acked) > 20, load.acked
    assert {"4-", "5-"} & {a[:2] for a in load.acked}, load.acked
    assert load.taken and load.cut, (load.taken, load.cut)
    assert len(load.unsure) <= 3 * 2, load.unsure
    equal(astray(load.acked + load.cut, load.unsure, load.taken, left(hub, "load")), [])


def check_hundreds_wait_for_a_restart():
    """The hub stands still when they come, and starts again: none is refused. Who is cut before
    there was an answer has to come again; what was answered is so."""
    sent = {}
    os.kill(int(show("MainPID")), signal.SIGSTOP)
    try:
        for i in range(400):
            c = Conn(HUB_BUS if i % 4 else spoke_a.bus.path, timeout=60)
            if i % 4 == 1:
                c.send(v=1, op="take", id="t", name="many", wait=60)
            else:
                c.send(v=1, op="put", id="p", name="many", text=str(i))
            sent[str(i)] = c
    finally:
        systemctl("restart", HUB)
    acked, taken, more = [], [], []
    for text, c in sent.items():
        try:
            got = c.recv()
            {"ok": acked, "msg": taken}.get(got["op"], more).append(got.get("text", text))
        except Closed:
            more.append(text)
        c.close()
    print(len(acked), "put,", len(taken), "taken,", len(more), "to come again")
    assert len(acked) > 200 and len(taken) > 50, (acked, taken, more)
    equal(astray(acked, (), taken, left(hub, "many")), [])


def check_spoke_recovers_in_five_seconds():
    for upset in (lambda: systemctl("restart", HUB),
                  lambda: os.kill(int(show("MainPID")), signal.SIGKILL),
                  lambda: systemctl("restart", spoke_a.unit)):
        upset()
        took = within(5, spoke_a.reaches)
        assert took < 5 * SLOW, took
        assert spoke_a.bus.put("jobs", "x")
        equal(hub.take("jobs")["text"], "x")


def crowd(bus):
    """50 blocked takers, 10 leases, and one that reads nothing of 2 MiB that wait for it."""
    conns = [Conn(bus.path, timeout=30) for _ in range(50)]
    for c in conns:
        c.send(v=1, op="take", id="t", name="empty")
    holder, deaf = Conn(bus.path, timeout=30), Conn(bus.path, timeout=30)
    for i in range(10):
        assert bus.put("leased", "l%d" % i)
    for _ in range(10):
        equal(holder.call(v=1, op="reserve", id="r", name="leased", lease=600)["op"], "msg")
    deaf.send(v=1, op="sub", id="s", name="big")
    for _ in range(3):
        assert bus.call(op="pub", name="big", text="z" * 700000)["op"] == "ok"
    for c in conns:
        c.sync()
    return conns, [holder, deaf]


def stop_in_time(unit):
    start = time.monotonic()
    systemctl("stop", unit)
    took = time.monotonic() - start
    equal((show("Result", unit), show("ExecMainStatus", unit)), ("success", "0"))
    assert took < 5 * SLOW, took


def check_h16_stop_of_the_hub():
    """Within five seconds, though all of them are there; what was leased is back."""
    conns, more = crowd(hub)
    stop_in_time(HUB)
    for c in conns:
        equal(c.recv()["error"], "mailbox: closed")
        c.close()
    for c in more:
        c.close()
    systemctl("start", HUB)
    equal([hub.take("leased")["text"] for _ in range(10)], ["l%d" % i for i in range(10)])


def check_h16_stop_of_a_spoke_whose_relay_is_a_black_hole():
    spoke_a.joined(20)
    conns, more = crowd(spoke_a.bus)
    relay = int(show("MainPID", RELAY))
    os.kill(relay, signal.SIGSTOP)
    try:
        stop_in_time(spoke_a.unit)
    finally:
        os.kill(relay, signal.SIGCONT)
    for c in conns + more:
        assert c.closed(), "it was left open"
        c.close()
    spoke_a.start()
    spoke_a.joined(20)
    wait_for(lambda: hub.depth("leased") == 10, 20, 0.2)
    equal([hub.take("leased")["text"] for _ in range(10)], ["l%d" % i for i in range(10)])


def check_h13_mailbox_elsewhere():
    """Where the unit may not write: one line, no loop. With ReadWritePaths= it works."""
    os.makedirs("/srv/bus", exist_ok=True)
    run(["chown", "zmqcat:zmqcat", "/srv/bus"])
    for more in ("", "ReadWritePaths=/srv/bus\n"):
        hub_drop_in("--mailbox /srv/bus/mailbox", more)
        before = len(said(HUB))
        systemctl("restart", HUB, check=False)
        if more:
            equal(show("ActiveState"), "active")
            assert hub.put("elsewhere", "x")
        else:
            equal((show("ActiveState"), show("ExecMainStatus")), ("failed", "78"))
            lines = [l for l in said(HUB)[before:] if "--mailbox" in l]
            assert len(lines) == 1 and "/srv/bus/mailbox" in lines[0], lines
            assert "add ReadWritePaths=" in lines[0], lines
            equal(show("NRestarts"), "0")
    hub_drop_in()
    systemctl("restart", HUB)
    equal(hub.depth("elsewhere"), 0)


def check_h13_mailbox_file_of_the_go_program_elsewhere():
    """It is imported there, once, by the user of the service, and is kept."""
    box = "/srv/bus/box.json"
    with open(world.PAYLOAD + "/original-mailbox-2.json", "rb") as f:
        wrote = f.read()
    put_file(box, wrote, 0o600)
    run(["chown", "-R", "zmqcat:zmqcat", "/srv/bus"], check=True)
    hub_drop_in("--mailbox " + box, "ReadWritePaths=/srv/bus\n")
    before = len(said(HUB))
    systemctl("restart", HUB)
    equal(hub.depth("q"), 2)
    equal(hub.take("q")["text"], "<one>")
    systemctl("restart", HUB)
    equal((hub.take("q")["body"], hub.depth("q")), ("AP8=", 0))
    equal(len([l for l in said(HUB)[before:] if "imported 2 messages" in l and box in l]), 1)
    with open(box + ".imported", "rb") as f:
        equal(f.read(), wrote)
    equal(sorted(n for n in os.listdir("/srv/bus") if n.startswith("box")),
          ["box.json", "box.json.imported"])
    owner = pwd.getpwnam("zmqcat").pw_uid
    for path in [box, box + ".imported"] + [os.path.join(box, n) for n in os.listdir(box)]:
        equal((path, os.stat(path).st_uid), (path, owner))
    hub_drop_in()
    systemctl("restart", HUB)
    equal(hub.depth("q"), 0)


def check_r11_socket_and_service_change_together():
    """Both are restarted in one go, in whatever order they are named; a client that waits is
    served, and the service listens on the new socket."""
    for order in ([HUB, "zmqcat-hub.socket"], ["zmqcat-hub.socket", HUB], ["zmqcat-hub.socket"]):
        old = os.lstat(HUB_BUS).st_ino
        put_file(UNITS + "/zmqcat-hub.socket.d/r11.conf",
                 "[Socket]\nBacklog=%d\n" % (100 + len(order)))
        hub_drop_in("--heartbeat %ds" % (6 + len(order)))
        systemctl("daemon-reload")
        systemctl("restart", *order)
        wait_for(lambda: [show("ActiveState", u) for u in (HUB, *world.sockets("zmqcat-hub"))] ==
                 ["active"] * 3, 20)
        assert os.lstat(HUB_BUS).st_ino != old
        assert hub.put("r11", "x")
        equal(hub.take("r11")["text"], "x")
    os.unlink(UNITS + "/zmqcat-hub.socket.d/r11.conf")
    hub_drop_in()
    systemctl("restart", "zmqcat-hub.socket")


def check_disk_full():
    """Puts are refused with `storage`, what was acknowledged can be taken, the unit stays up; with
    room again puts work again."""
    full = world.Hub("full")
    os.makedirs("/var/lib/zq-full", exist_ok=True)
    run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", "/var/lib/zq-full"], check=True)
    full.start()
    pid, acked = show("MainPID", full.unit), []
    for i in range(200):
        got = full.bus.call(op="put", name="big", text="%03d" % i + "x" * 50000)
        if got["op"] != "ok":
            break
        acked.append("%03d" % i)
    equal(got.get("code"), "storage")
    assert len(acked) > 10, acked
    wait_for(lambda: "storage ok" not in show("StatusText", full.unit), 10, 0.2)
    equal(full.bus.take("big")["text"][:3], acked.pop(0))
    run(["mount", "-o", "remount,size=16m", "/var/lib/zq-full"], check=True)
    within(20, lambda: full.bus.put("big", "there is room"))
    wait_for(lambda: "storage ok" in show("StatusText", full.unit), 10, 0.2)
    equal([full.bus.take("big")["text"][:3] for _ in acked], acked)
    equal(full.bus.take("big")["text"], "there is room")
    equal((show("MainPID", full.unit), show("NRestarts", full.unit)), (pid, "0"))
    full.stop()
    run(["umount", "/var/lib/zq-full"], check=True)


def check_disk_of_the_hub_full():
    """The same for the unit of this host on a real file system, with a restart meanwhile."""
    def oldest():
        return payload(hub.take("heap"))[:2]

    spoke_a.joined(20)
    room, acked = world.fill_disk(), []
    for i in range(60):
        got = hub.call(op="put", name="heap", text="%02d" % i + "x" * 900000)
        if got["op"] != "ok":
            break
        acked.append(b"%02d" % i)
    equal(got.get("code"), "storage")
    equal(spoke_a.bus.call(op="put", name="heap", text="x").get("code"), "storage")
    assert len(acked) > 3, acked
    wait_for(lambda: "storage full" in show("StatusText"), 10, 0.2)
    equal(oldest(), acked.pop(0))
    systemctl("restart", HUB)
    equal(oldest(), acked.pop(0))
    equal(hub.call(op="put", name="heap", text="x").get("code"), "storage")
    os.unlink(room)
    within(20, lambda: hub.put("heap", "there is room"))
    wait_for(lambda: "storage ok" in show("StatusText"), 10, 0.2)
    equal([oldest() for _ in acked], acked)
    equal((oldest(), hub.depth("heap")), (b"th", 0))
    equal(show("NRestarts"), "0")
    spoke_a.joined(20)


def check_revoke_and_drain():
    assert spoke_a.key() in peers()
    zmqcat("revoke", spoke_a.key())
    assert spoke_a.key() not in peers()
    systemctl("restart", HUB)
    wait_for(lambda: any(spoke_a.key() + " is revoked" in l for l in said(HUB)), 20, 0.2)
    assert spoke_a.key() not in peers()
    os.unlink("/var/lib/zmqcat/revoked")
    systemctl("reload", HUB)
    spoke_a.joined(20)
    assert hub.put("jobs", "before")
    zmqcat("drain")
    got = spoke_a.bus.call(op="put", name="jobs", text="x")
    equal(got["op"], "err")
    equal(spoke_a.bus.take("jobs")["text"], "before")
    systemctl("restart", HUB)
    assert hub.put("jobs", "after")
    equal(hub.take("jobs")["text"], "after")


def check_no_leak_of_starts_and_stops():
    """Each stop leaves what the first one left, and what has started has what it had at first."""
    units, names = [HUB, spoke_c.unit], ["zmqcat", spoke_c.name]
    stopped, running = Held(names), Held(names)
    for n in range(ROUNDS + 1):
        systemctl("stop", *units)
        stopped.look()
        systemctl("start", *units)
        if n % max(1, ROUNDS // 3) == 0:
            spoke_c.joined(30)
            running.look()
    stopped.judge(ROUNDS)
    running.judge(ROUNDS)


def readable(folder):
    """What the caller can read there, whole."""
    for top, folders, files in os.walk(folder):
        for name in files:
            path = os.path.join(top, name)
            try:
                if not stat.S_ISREG(os.stat(path).st_mode):
                    continue
                with open(path, "rb") as f:
                    yield path, f.read(1 << 22)
            except OSError:
                pass


def secrets():
    found = {world.token[8:40], world.old_token[8:40]}
    for path in ("/var/lib/zmqcat/hub.key", spoke_a.state + "/spoke.key"):
        with open(path) as f:
            found |= set(re.findall(r"(?:privkey|psk):([0-9a-f]{64})", f.read()))
    assert len(found) >= 4, len(found)
    return [f.encode() for f in found] + [bytes.fromhex(f) for f in found if len(f) == 64]


def check_h12_no_secret_is_shown():
    """To root in arguments, environment, journal, properties and mailboxes; to another user in
    anything of the processes, /run, /tmp, /var and /etc."""
    hidden = secrets()
    pids = [show("MainPID", u) for u in (HUB, spoke_a.unit, spoke_c.unit)]
    shown = {}
    for pid in pids:
        for name in ("cmdline", "environ"):
            with open("/proc/%s/%s" % (pid, name), "rb") as f:
                shown["%s of %s" % (name, pid)] = f.read()
    for argv in (["journalctl", "-b", "-o", "export"], ["systemctl", "show", HUB, spoke_a.unit],
                 ["dmesg"]):
        shown[" ".join(argv)] = run(argv).stdout.encode()
    shown.update(readable("/var/lib/zmqcat/mailbox"))
    equal([(w, s) for w, text in shown.items() for s in hidden if s in text], [])

    def look():
        seen = 0
        for folder in ["/proc/" + p for p in pids] + ["/run", "/tmp", "/var", "/etc"]:
            for path, text in readable(folder):
                seen += 1
                assert not any(s in text for s in hidden), path
        return seen > 10
    assert as_user("stranger", look)
    assert as_user("member", look)
    # Who may read them finds them by the same search.
    for folder in ("/run/credentials/" + spoke_a.unit, world.AGENIX, world.SOPS,
                   "/var/lib/zmqcat"):
        assert any(s in text for _, text in readable(folder) for s in hidden), folder


def check_h12_no_core():
    """A daemon that is told to leave a core file leaves none, whatever its limit; another process
    does."""
    os.makedirs("/run/cores", exist_ok=True)
    os.chmod("/run/cores", 0o1777)
    pattern = "/proc/sys/kernel/core_pattern"
    mine = os.access(pattern, os.W_OK) and os.environ.get("OWN_KERNEL") == "1"
    if mine:
        with open(pattern, "w") as f:
            f.write("/run/cores/core.%p")
        put_file(UNITS + "/dumps.service", "[Service]\nLimitCORE=infinity\n"
                 "ExecStart=/bin/sh -c 'mkfifo /run/dumps && read x <>/run/dumps'\n")
        systemctl("start", "dumps.service")
    more = "LimitCORE=infinity\nReadWritePaths=/run/cores\n"
    hub_drop_in("", more)
    spoke_c.drop_in(more)
    systemctl("restart", HUB, spoke_c.unit)
    for unit in (HUB, spoke_c.unit) + (("dumps.service",) if mine else ()):
        pid = show("MainPID", unit)
        # Else a program that the kernel pipes cores to would have one, whatever the limit.
        equal(os.stat("/proc/%s/mem" % pid).st_uid, 0)
        os.kill(int(pid), signal.SIGQUIT)
        wait_for(lambda u=unit, p=pid: show("ExecMainPID", u) != p or
                 show("ExecMainCode", u) != "0", 20)
        if unit == "dumps.service":
            equal((show("ExecMainCode", unit), len(os.listdir("/run/cores"))), ("3", 1))
        else:
            equal(os.listdir("/run/cores"), [])
    hub_drop_in()
    spoke_c.drop_in(None)
    systemctl("restart", HUB, spoke_c.unit)
    lines = run(["journalctl", "-b", "-o", "cat", "_PID=1"]).stdout
    assert "status=3/QUIT" in lines, lines[-900:]
    equal(lines.count("code=dumped"), 1 if mine else 0)


def check_nothing_hung():
    """No watchdog had to end a service, which would have come back unseen."""
    lines = run(["journalctl", "-b", "-o", "cat", "_PID=1"]).stdout
    assert lines and "Watchdog timeout" not in lines, re.findall("(?m)^.*Watchdog.*$", lines)


def check_before_the_cut():
    """What after_cut.py looks for. Nothing is flushed but by the hub itself."""
    spoke_a.joined(30)
    for bus, name in ((hub, "cut"), (spoke_a.bus, "cut-spoke")):
        for i in range(20):
            assert bus.put(name, str(i))
    holder = Conn(HUB_BUS)
    equal(holder.call(v=1, op="reserve", id="r", name="cut", lease=600)["op"], "msg")
    equal(hub.take("cut")["text"], "1")
    world.remember(token=world.token, key=spoke_a.key())


if __name__ == "__main__":
    world.main(globals())
