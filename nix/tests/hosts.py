# The module on several hosts, the machines of zmqcat.nix; what the units do in a day on one host is
# tests/guest/scenario.py. The driver of NixOS tests gives the names hub, allowed, denied and wrong,
# and start_all and subtest; so does tests/nix/test_machines.py.
# ruff: noqa: F821
HUB, SPOKE = "zmqcat-hub.service", "zmqcat-spoke.service"
ALICE = "setpriv --reuid=alice --regid=nogroup --init-groups "
PLACE = (
    "mkdir -p -m 0751 {0}.d/1 && ln -sfn {0}.d/1 {0} && "
    "install -m 0400 /dev/stdin {0}.d/1/token <<'END'\n{1}\nEND"
)


def place(machine, token, folder="/run/agenix"):
    """As agenix does it, or sops-nix."""
    machine.succeed(PLACE.format(folder, token))


def shown(machine, unit, name):
    return machine.succeed("systemctl show -P %s %s" % (name, unit)).strip()


start_all()

with subtest("a hub whose allow list is missing says so, once"):
    hub.wait_until_succeeds("systemctl is-failed %s" % HUB, timeout=60)
    assert shown(hub, HUB, "ExecMainStatus") == "78"
    assert shown(hub, HUB, "NRestarts") == "0"
    said = hub.succeed("journalctl -b -o cat _SYSTEMD_UNIT=%s" % HUB).splitlines()
    assert "--allow-file /srv/allow" in said[-1], said
    assert len([line for line in said if "allow" in line]) == 1, said

with subtest("with an empty one it runs, and nobody may come in"):
    hub.succeed("touch /srv/allow && systemctl restart %s" % HUB)
    hub.wait_for_unit(HUB)
    hub.wait_until_succeeds("zmqcat token", timeout=60)
    token = hub.succeed("zmqcat token").strip()
    assert token.startswith("tc"), token

with subtest("who may use the bus"):
    hub.succeed(ALICE + "zmqcat ping")
    hub.succeed(ALICE + "zmqcat ping --listen unix:///tmp/zmqcat.sock")
    hub.fail(ALICE.replace("alice", "mallory") + "zmqcat ping")
    hub.fail(ALICE + "zmqcat token")
    hub.fail(ALICE + "cat /var/lib/zmqcat/hub.key")

with subtest("a token that comes late"):
    for machine, folder in ((allowed, "/run/agenix"), (denied, "/run/secrets")):
        machine.wait_until_succeeds("test $(systemctl show -P NRestarts %s) -ge 1" % SPOKE)
        place(machine, token, folder)
        machine.wait_for_unit(SPOKE)
        machine.fail(ALICE + "cat %s/token" % folder)

with subtest("one key is allowed by a reload, the other is not"):
    key = allowed.succeed("zmqcat nodekey /var/lib/zmqcat/spoke.key").strip()
    pid = shown(hub, HUB, "MainPID")
    hub.succeed("echo '%s # allowed' >/srv/allow && sync" % key)
    hub.succeed("systemctl reload %s" % HUB)
    allowed.wait_until_succeeds(ALICE + "zmqcat ping", timeout=60)
    assert shown(hub, HUB, "MainPID") == pid
    denied.fail(ALICE + "zmqcat ping")

with subtest("a wrong token is final, and said in one line"):
    place(wrong, token[:-30])
    wrong.wait_until_succeeds("systemctl is-failed %s" % SPOKE, timeout=60)
    assert shown(wrong, SPOKE, "ExecMainStatus") == "78"
    said = wrong.succeed("journalctl -b -o cat _SYSTEMD_UNIT=%s" % SPOKE).splitlines()
    assert "credential token" in said[-1] and "was cut" in said[-1], said
    assert token[8:40] not in said[-1]
    assert len([line for line in said if "was cut" in line]) == 1, said
    assert "/run/agenix/token does not exist" in said[-2], said

with subtest("messages both ways"):
    hub.succeed(ALICE + "zmqcat put there from the hub")
    assert allowed.succeed(ALICE + "zmqcat take there --wait 20s") == "from the hub\n"
    allowed.succeed(ALICE + "zmqcat put here from the spoke")
    assert hub.succeed(ALICE + "zmqcat take here --wait 20s") == "from the spoke\n"

with subtest("clients are queued while the hub restarts"):
    allowed.succeed(ALICE + "zmqcat put kept one")
    hub.succeed("systemctl stop %s" % HUB)
    hub.succeed(ALICE + "zmqcat put kept two")  # starts it
    hub.succeed("systemctl restart %s && %s zmqcat put kept three" % (HUB, ALICE))
    allowed.wait_until_succeeds(ALICE + "zmqcat ping", timeout=60)
    for text in ("one", "two", "three"):
        assert allowed.succeed(ALICE + "zmqcat take kept --wait 20s") == text + "\n"

with subtest("the mailbox survives a power cut"):
    for n in range(20):
        hub.succeed(ALICE + "zmqcat put durable %d" % n)
    hub.crash()
    hub.start()
    hub.wait_for_unit(HUB)
    for n in range(20):
        assert hub.succeed(ALICE + "zmqcat take durable --wait 20s") == "%d\n" % n
    assert hub.succeed("zmqcat token").strip() == token
    allowed.wait_until_succeeds(ALICE + "zmqcat ping", timeout=90)

with subtest("a token that changes wants a restart of the spoke"):
    new = hub.succeed("zmqcat rotate").strip()
    assert new != token
    place(allowed, new)
    allowed.succeed("systemctl restart %s" % SPOKE)
    allowed.wait_until_succeeds(ALICE + "zmqcat ping", timeout=60)

with subtest("no secret is shown"):
    for machine, unit in ((hub, HUB), (allowed, SPOKE)):
        pid = shown(machine, unit, "MainPID")
        for what in ("cat /proc/%s/cmdline" % pid, "cat /proc/%s/environ" % pid, "journalctl -b"):
            text = machine.succeed(what)
            assert token[8:40] not in text and new[8:40] not in text, what

with subtest("stopping takes less than five seconds"):
    allowed.succeed("timeout 5 systemctl stop %s" % SPOKE)
    hub.succeed("timeout 5 systemctl stop %s" % HUB)
