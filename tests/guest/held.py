"""What units hold of a machine, looked at after each of many starts or stops. Runs inside the
machine."""
import collections, contextlib, os, pwd, re, time

from harness import wait_for

FOLDERS = ("/run/credentials", "/tmp", "/var/tmp", "/dev/shm", "/run/%s", "/var/lib/%s")


def files(names):
    """Files and folders; a name that is made up has an N for that."""
    tops = {f % n if "%" in f else f for f in FOLDERS for n in names}
    found = [os.path.join(d, f) for top in tops for d, ds, fs in os.walk(top) for f in ds + fs]
    found = [re.sub(r"[0-9a-f]{8,}", "N", f) for f in found]  # names of segments rise
    return sorted(re.sub(r"(\.service-)\w{6}", r"\1N", f) for f in found)


def processes():
    """Those of the service's user: {PID: program}."""
    user, found = pwd.getpwnam("zmqcat").pw_uid, {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            # What is in /proc belongs to root where a process may leave no core.
            if number("/proc/%s/status" % pid, "Uid") == user:
                with open("/proc/%s/comm" % pid) as f:
                    found[pid] = f.read().strip()
        except OSError:
            pass  # it has ended
    return found


def number(path, field):
    with open(path) as f:
        found = re.search(r"(?m)^%s:\s+(\d+)" % field, f.read())
    return int(found[1]) if found else 0  # a process that has ended has no memory


def lines(path, names=("",)):
    with open(path) as f:
        return len([l for l in f if any(n in l for n in names)])


def groups():
    """Control groups of this machine, which may be a part of those of another one."""
    with open("/proc/1/cgroup") as f:
        top = os.path.dirname(f.read().splitlines()[-1].split(":", 2)[2])  # of init.scope
    return sorted(d for d, _, _ in os.walk("/sys/fs/cgroup" + top))


def things(names):
    """What is counted."""
    return {"descriptors of the manager": len(os.listdir("/proc/1/fd")),
            "files": files(names), "mounts": lines("/proc/self/mountinfo"),
            "sockets": lines("/proc/net/unix", ["/run/%s/" % n for n in names]),
            "groups": groups(), "processes": sorted(processes().values())}


def more(before, now):
    """What there is now and was not before."""
    if isinstance(now, int):
        return max(0, now - before)
    return list((collections.Counter(now) - collections.Counter(before)).elements())


def memory():
    """What the manager and the processes of the service have for themselves, by program, in kB."""
    sums = {"manager": number("/proc/1/status", "RssAnon")}
    for pid, name in processes().items():
        with contextlib.suppress(OSError):
            sums[name] = sums.get(name, 0) + number("/proc/%s/status" % pid, "RssAnon")
    return sums


class Held:
    """Nothing is to be there when one looks that was not there the first time."""

    def __init__(self, names):
        self.names, self.first, self.memory = names, None, []

    def look(self):
        if self.first is None:
            self.first = wait_for(lambda: settled(self.names), 20)
        wait_for(lambda: not self.grown(), 15, 0.05,
                 why=lambda: "round %d: %s" % (len(self.memory), self.grown()))
        self.memory.append(memory())

    def grown(self):
        now = things(self.names)
        found = {k: more(self.first[k], now[k]) for k in now}
        return {k: n for k, n in found.items() if n}

    def judge(self, rounds):
        """Memory, too, grows by little for so many rounds."""
        print("memory", self.memory[0], self.memory[-1])
        assert len(self.memory) > 3, self.memory
        settled, last = self.memory[len(self.memory) // 4], self.memory[-1]
        grown = {k: n - settled[k] for k, n in last.items()
                 if n - settled[k] > 128 + 3 * rounds}
        assert not grown, (grown, settled, last)


def settled(names):
    """What there is, once it is the same for a while."""
    before = things(names)
    time.sleep(0.5)
    return before if things(names) == before else None
