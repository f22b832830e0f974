# serial
"""The network of the machine changes under hub and spoke: links, addresses; and the machine sleeps.
Relay, hub and spoke have a network namespace each, and cables that the tests pull."""
import os, shutil, subprocess, sys, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness
from harness import CC, Case, SLOW, tempdir, wait_for, write_file
from link import Namespace, RelayAt

CHANGED = "the network has changed"
ADDRESSES = {"relay": "192.0.2.1", "hub": "192.0.2.2", "spoke": "192.0.2.3"}
# The clock that runs on in a sleep, and no news of the network.
SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t id, struct timespec *t)
{
    int (*real)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
    int r = real(id, t);
    if (id == CLOCK_BOOTTIME && access(getenv("ZMQCAT_TEST_SLEPT"), F_OK) == 0)
        t->tv_sec += 60;
    return r;
}
int socket(int family, int type, int protocol)
{
    int (*real)(int, int, int) = dlsym(RTLD_NEXT, "socket");
    if (family != AF_NETLINK)
        return real(family, type, protocol);
    errno = EAFNOSUPPORT;
    return -1;
}
"""


class Place(Namespace):
    """A network namespace with a cable to the bridge of the relay's."""

    def __init__(self, role, bridge=None):
        super().__init__()
        self.role = role
        if bridge is None:
            self.cable = "br0"
            self.ip("link", "add", "br0", "type", "bridge")
        else:
            self.cable = "z0"
            self.ip("link", "add", "z0", "type", "veth", "peer", "name", role, "netns", bridge.pid)
            bridge.ip("link", "set", role, "master", "br0", "up")
        self.ip("addr", "add", ADDRESSES[role] + "/24", "dev", self.cable)
        self.link("up")

    def link(self, state):
        self.ip("link", "set", self.cable, state)

    def move(self, address):
        """Another address, as in another network."""
        self.ip("addr", "del", ADDRESSES[self.role] + "/24", "dev", self.cable)
        time.sleep(0.5)
        self.ip("addr", "add", address + "/24", "dev", self.cable)

    def dials(self):
        """TCP connections that were tried here so far."""
        names, values = (l.split() for l in self.run("cat", "/proc/net/snmp").splitlines()
                         if l.startswith("Tcp:"))
        return int(values[names.index("ActiveOpens")])


class Network(Case):
    def setUp(self):
        for tool in ("ip", "nsenter", "unshare"):
            if shutil.which(tool) is None:
                harness.skip("no " + tool)
        try:
            self.there = self.place("relay")
            self.at_hub, self.at_spoke = (self.place(r, self.there) for r in ("hub", "spoke"))
        except (subprocess.CalledProcessError, harness.GaveUp, OSError):
            harness.skip("no network namespaces")
        self.r = RelayAt(self.there, ADDRESSES["relay"])
        self.addCleanup(self.r.__exit__)
        self.h = self.tunnel_hub(self.r, heartbeat="60s", wrapper=self.at_hub.enter)
        self.s = self.spoke(self.h, wrapper=self.at_spoke.enter).joined()
        self.addCleanup(self.no_twins)

    def no_twins(self):
        """However they roam, nobody takes them for two with one key."""
        for d in (self.h, self.s):
            self.assertNotIn("take each other's packets", d.logged())

    def place(self, *args):
        place = Place(*args)
        self.addCleanup(place.end)
        return place

    def lines(self):
        return [d.logged().count("\n") for d in (self.h, self.s)]

    def usable(self, seconds):
        """A new client of the spoke is served within the time, and what waited before is."""
        start = time.monotonic()
        self.conn(self.s, timeout=seconds).put("jobs", "there")
        self.assertLess(time.monotonic() - start, seconds * SLOW)
        got = self.conn(self.h).call(v=1, op="take", id="t", name="jobs")
        self.assertEqual(got["text"], "there")

    def outage(self, places, seconds):
        waiting = self.conn(self.s, timeout=20)
        waiting.send(v=1, op="take", id="w", name="late")
        waiting.sync()
        before = self.lines()
        for p in places:
            p.link("down")
        time.sleep(seconds)
        for p in places:
            p.link("up")
        self.usable(5)
        self.conn(self.h).put("late", "at last")
        self.assertEqual(waiting.recv()["text"], "at last")
        return [after - n for n, after in zip(before, self.lines())]

    def test_link_of_the_spoke(self):
        hub, spoke = self.outage([self.at_spoke], 8)
        self.assertLessEqual(spoke, 5, self.s.logged())  # away, why, here: the relay, the hub
        self.assertLessEqual(hub, 2, self.h.logged())

    def test_link_of_the_hub(self):
        hub, spoke = self.outage([self.at_hub], 8)
        self.assertLessEqual(hub, 5, self.h.logged())
        self.assertLessEqual(spoke, 2, self.s.logged())

    def test_both_links_for_long(self):
        for n in self.outage([self.at_hub, self.at_spoke], 20):
            self.assertLessEqual(n, 5, self.h.logged() + self.s.logged())

    def test_other_address_of_the_spoke(self):
        """The stream to the relay is dead, and nothing says so."""
        self.at_spoke.move("192.0.2.13")
        self.usable(5)

    def test_other_address_of_the_hub(self):
        self.at_hub.move("192.0.2.12")
        self.usable(5)

    def test_network_that_comes_after_the_start(self):
        self.at_spoke.link("down")
        self.s.stop()
        self.s.start()
        time.sleep(12)
        self.at_spoke.link("up")
        self.usable(5)

    def test_network_that_comes_while_the_map_is_wanted(self):
        server = subprocess.Popen(self.there.enter + [sys.executable, "-m", "http.server", "80",
                                                      "--directory", self.r.dir],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        harness._children.append(server)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        self.at_hub.link("down")
        h = self.tunnel_hub(self.r, "--derp-map", "http://192.0.2.1/map.json",
                            wrapper=self.at_hub.enter, env={"STATE_DIRECTORY": tempdir()})
        time.sleep(20)  # it has asked after 0, 1, 3, 7 and 15 s
        self.at_hub.link("up")
        self.assertIn("Network is unreachable", h.logged())
        wait_for(lambda: "connected to the relay" in h.logged(), 5)

    def talkative(self):
        """The spoke says which changes it saw."""
        self.s.stop()
        self.s.start("--log-level", "debug")
        self.s.joined()
        wait_for(lambda: "joined" in self.s.logged())

    def flap(self, seconds):
        """Some twenty changes a second of another link: what the spoke says, how often it dials."""
        self.at_spoke.ip("link", "add", "y0", "type", "veth", "peer", "name", "y1")
        self.at_spoke.ip("link", "set", "y1", "up")
        loop = "while :; do ip link set y0 up; sleep 0.05; ip link set y0 down; sleep 0.05; done"
        before, dials, cpu = self.s.logged(), self.at_spoke.dials(), self.s.cpu()
        flapping = subprocess.Popen(self.at_spoke.enter + ["sh", "-c", loop])
        time.sleep(seconds)
        flapping.kill()
        flapping.wait()
        self.assertLess(self.s.cpu() - cpu, 0.05 * seconds * SLOW)
        return self.s.logged()[len(before):], self.at_spoke.dials() - dials

    def test_flapping_beside_a_relay_that_answers(self):
        self.talkative()
        said, dials = self.flap(6)
        self.assertTrue(4 <= said.count(CHANGED) <= 7, said)
        self.assertEqual(said.count(CHANGED), said.count("\n"), said)
        self.assertEqual(dials, 0)
        self.usable(5)

    def test_flapping_while_the_relay_is_away(self):
        self.talkative()
        self.r.stop()
        time.sleep(4)  # the first pauses are shorter than a second anyway
        said, dials = self.flap(10)
        self.assertTrue(8 <= said.count(CHANGED) <= 11, said)
        self.assertTrue(8 <= dials <= 20, dials)
        self.r.start()
        self.usable(5)


class Asleep(Case):
    """And a system that has no news of the network."""

    def test_wakes_up(self):
        folder = tempdir()
        source, library, slept = (os.path.join(folder, n) for n in ("s.c", "s.so", "slept"))
        write_file(source, SHIM)
        subprocess.run(CC + ["-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
        r = self.relay()
        env = {"LD_PRELOAD": library, "ZMQCAT_TEST_SLEPT": slept,
               "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"}
        s = self.spoke(self.tunnel_hub(r), "--log-level", "debug", env=env).joined()
        said = "changes of the network are not watched: Address family not supported by protocol\n"
        self.assertEqual(s.logged().count("not watched"), 1)
        self.assertIn(said, s.logged())
        self.assertNotIn(CHANGED, s.logged())
        r.freeze()
        write_file(slept, "")
        start = time.monotonic()
        wait_for(lambda: "not even to a ping" in s.logged(), 15)  # 10 s until it looks, 3 s
        self.assertEqual(s.logged().count(CHANGED), 1)
        self.assertGreater(time.monotonic() - start, 2.5)
        r.thaw()
        s.joined(15)
        self.conn(s).sync()


if __name__ == "__main__":
    harness.main()
