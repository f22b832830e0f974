"""After the power cut of scenario.py, in the next boot of the same machine."""
import os, stat, sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import wait_for
from manager import HUB, Bus, equal, run, said, show, systemctl
import world
from world import BIN, HUB_BUS, RELAY, Spoke

hub, spoke_a = Bus(HUB_BUS), Spoke("a")


def check_everything_starts_again():
    world.make()
    systemctl("start", RELAY)
    systemctl("start", *world.sockets("zmqcat-hub"), HUB)
    equal(show("NRestarts"), "0")
    world.token = wait_for(lambda: run([BIN + "/zmqcat", "token"]).stdout.strip(), 30, 0.2)
    equal(world.token, world.remembered()["token"])


def check_nothing_is_damaged():
    equal([l for l in said(HUB) if "damage" in l or "lost" in l], [])


def check_every_message_is_there():
    """Also the one that was leased; not the one that was taken."""
    equal([hub.take("cut")["text"] for _ in range(19)],
          [str(i) for i in range(20) if i != 1])
    equal(hub.depth("cut"), 0)


def check_the_spoke_comes_back_with_its_key():
    """Nobody allowed it anew."""
    spoke_a.place(world.token)
    spoke_a.start()
    spoke_a.joined(20)
    equal(spoke_a.key(), world.remembered()["key"])
    equal([spoke_a.bus.take("cut-spoke")["text"] for _ in range(20)], [str(i) for i in range(20)])


def check_files_are_whole():
    for path in ("/var/lib/zmqcat/hub.key", "/var/lib/zmqcat/token", spoke_a.state + "/spoke.key"):
        equal((stat.S_IMODE(os.stat(path).st_mode), os.stat(path).st_size > 40), (0o600, True))


if __name__ == "__main__":
    world.main(globals())
