#!/usr/bin/env python3
"""The mailbox file of the Go zmqcat at --mailbox: imported once, wherever a start was cut short."""
import base64, fcntl, json, os, re, shutil, subprocess, sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness
from harness import HUB, ROOT, SLOW, cli, read_file, tempdir, write_file

VECTORS = [os.path.join(ROOT, "tests/vectors/original-mailbox-%d.json" % n) for n in (1, 2)]


def message(body, at="2026-11-30T19:08:14.5Z", name="q", ident="s2:1", **more):
    return dict({"ID": ident, "Name": name, "From": "al",
                 "Body": base64.b64encode(body.encode()).decode(), "At": at}, **more)


def state(boxes, held=()):
    return {"boxes": boxes, "inflight": {"%024x" % i: {"ID": "%024x" % i, "Msg": m,
                                                       "Expires": "2026-11-30T19:09:54Z"}
                                         for i, m in enumerate(held)}}


def at(minute, zone="Z"):
    return "2026-11-30T19:%02d:00.000000001%s" % (minute, zone)


def end_traced(tracer):
    """Ends what strace runs, and so strace."""
    with open("/proc/%d/task/%d/children" % (tracer.pid, tracer.pid)) as f:
        os.kill(int(f.read()), 15)
    tracer.wait()


class Import(harness.Case):
    def make(self, content):
        """A hub, not started, whose mailbox path is this file."""
        hub = self.hub(durable=True, start=False)
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        write_file(hub.mailbox, data)
        return hub

    def messages(self, path):
        done = cli("store", "export", path)
        self.assertEqual(done.returncode, 0, done)
        return [json.loads(line) for line in done.stdout.splitlines()[1:-1]]

    def texts(self, path, name="q"):
        return [m["text"] for m in self.messages(path) if m["mailbox"] == name]

    def imported(self, content):
        hub = self.make(content)
        hub.start()
        self.assertEqual(hub.stop(), 0)
        return hub.mailbox

    def refused(self, content, *whys):
        hub = self.make(content)
        before = read_file(hub.mailbox), os.stat(hub.mailbox).st_ino
        done = hub.run()
        self.assertEqual((done.returncode, done.stdout), (78, b""), (content[:80], done))
        self.assertEqual(done.stderr.count(b"\n"), 1, done)
        for why in whys:
            self.assertIn(why, done.stderr)
        self.assertEqual((read_file(hub.mailbox), os.stat(hub.mailbox).st_ino), before)
        left = set(os.listdir(hub.dir))
        self.assertEqual(left - {"log"}, {"m"}, done)

    def test_what_the_go_program_wrote(self):
        al = ("s2:1", "al", b"<one>", 1796065694551)
        wants = ([al], [al, ("bef3a3d16b51f24c3dadb19c", "@", b"\0\xff", 1796065694552)])
        for vector, want in zip(VECTORS, wants):
            hub = self.make(read_file(vector))
            hub.start()
            self.assertEqual(read_file(hub.mailbox + ".imported"), read_file(vector))
            self.assertEqual(sorted(os.listdir(hub.mailbox)),
                             ["00000001.zlog", "00000002.zlog", "lock"])
            a = self.conn(hub)
            for ident, sender, payload, ms in want:
                got = a.call({"v": 1, "op": "take", "id": "t", "name": "q", "wait": 1})
                self.assertFrame(got, id=ident, attempt=1, at=ms, **{"from": sender})
                self.assertEqual(harness.payload(got), payload)
            self.assertErr(a.call(v=1, op="take", id="t", name="q", wait=0), "empty")
            hub.restart(harness.signal.SIGKILL)
            a = self.conn(hub)
            self.assertErr(a.call(v=1, op="take", id="t", name="q", wait=0), "empty")
            self.assertEqual(a.put("q", "new")["op"], "ok")

    def test_in_flight_messages_have_their_old_place(self):
        queued = [message(str(m), at(m)) for m in (1, 3, 5, 7)]
        held = [message(str(m), at(m)) for m in (6, 2, 0, 9)]
        other = [message("b", at(2), "alone"), message("a", at(1), "alone")]
        path = self.imported(state({"q": queued, "z": [message("z", at(4), "z")]}, held + other))
        self.assertEqual(self.texts(path), ["0", "1", "2", "3", "5", "6", "7", "9"])
        self.assertEqual(self.texts(path, "alone"), ["a", "b"])
        self.assertEqual(self.texts(path, "z"), ["z"])
        self.assertEqual([m.get("attempt") for m in self.messages(path)], [None] * 11)

    def test_queued_messages_keep_their_order_whatever_their_times(self):
        path = self.imported(state({"q": [message(str(m), at(m)) for m in (5, 1, 4, 1)]}))
        self.assertEqual(self.texts(path), ["5", "1", "4", "1"])

    def test_times_have_zones(self):
        times = {"1970-01-01T00:00:01Z": 1000, "2000-02-29T23:59:59.999999999Z": 951868799999,
                 "2026-11-30T19:08:14.551534909+01:30": 1796060294551,
                 "2026-11-30T19:08:14-00:01": 1796065754000, "2100-03-01T00:00:00Z": 4107542400000,
                 "0001-01-01T00:00:00Z": None, None: None}
        path = self.imported(state({"q": [message("x", t) for t in times]}))
        self.assertEqual([m.get("at") for m in self.messages(path)], list(times.values()))

    def test_what_go_writes_for_nothing(self):
        for content in ({"boxes": None, "inflight": None}, {"boxes": {}}, {"boxes": {"q": None}},
                        {"inflight": {}, "boxes": {"q": []}}):
            self.assertEqual(self.messages(self.imported(content)), [], content)
        null = {"ID": "x", "Name": "q", "From": "", "Body": None, "At": None}
        self.assertEqual(self.texts(self.imported(state({"q": [null]}))), [""])

    def test_a_full_file(self):
        big = "x" * 1048576
        boxes = {"box %d \u00e9 < \u2028" % b: [message("%d.%d" % (b, i), name="?")
                                              for i in range(1024)] for b in range(5)}
        boxes["big"] = [message(big, name="big")] * 9
        path = self.imported(json.dumps(state(boxes), indent=1).encode() + b"\n")
        for b in range(5):
            self.assertEqual(self.texts(path, "box %d \u00e9 < \u2028" % b),
                             ["%d.%d" % (b, i) for i in range(1024)])
        self.assertEqual(self.texts(path, "big"), [big] * 9)

    def test_what_is_no_mailbox_file(self):
        good = json.dumps(state({"q": [message("x")] * 2}, [message("y")])).encode()
        for data in (b"", b"\n", b"hello", b"[]", b"{}", b'{"name":"x","version":1}', b"\0" * 4096,
                     b'{"inflight":{}}', b"\x7fELF" + b"\xff" * 100, b'{"boxes":[]}',
                     b'{"boxes":{},"boxes":{}}', b'{"boxes":{},"more":1}'):
            self.refused(data)
        for end in range(1, len(good), 11):
            self.refused(good[:end])
        hub = self.make(b"")
        os.truncate(hub.mailbox, 3 << 30)  # 3 GiB of zeros are not read
        hub.wrapper = ["sh", "-c", "ulimit -v 2000000; exec \"$@\"", "sh"]
        if "asan" not in harness.BUILD:
            self.assertEqual(hub.run().returncode, 78)
        self.refused(good + b"x", b"near byte %d" % len(good))
        self.refused(b"[" * 100000)
        self.refused(b'{"boxes":' * 100000)

    def test_damaged_messages(self):
        for change, why in (({"Body": "!"}, b"base64"), ({"Body": "A" * (1 << 21)}, b"base64"),
                            ({"Body": 1}, b"base64"), ({"At": "yesterday"}, b"RFC 3339"),
                            ({"At": "2026-02-29T00:00:00Z"}, b"RFC 3339"),
                            ({"At": "2026-11-31T00:00:00Z"}, b"RFC 3339"),
                            ({"At": "2026-11-30T24:00:00Z"}, b"RFC 3339"),
                            ({"At": "2026-11-30T00:00:00"}, b"RFC 3339"),
                            ({"At": "2026-11-30T00:00:00.Z"}, b"RFC 3339"),
                            ({"ID": "x" * 1025}, b"an ID"), ({"ID": []}, b"an ID"),
                            ({"From": {}}, b"a From"), ({"Name": "x" * 1025}, b"a Name")):
            bad = message("x", **change) if "At" not in change else message("x", change["At"])
            bad.update(change)
            self.refused(json.dumps(state({"q": [message("1"), bad]})).encode(), why)
            self.refused(json.dumps(state({"q": []}, [bad])).encode(), why)
        self.refused(json.dumps(state({"q": []}, [message("x", name="")])).encode(), b"Name")
        self.refused(json.dumps(state({"x" * 1025: []})).encode(), b"no name")
        self.refused(json.dumps(state({"": [message("x")]})).encode(), b"no name")
        self.refused(b'{"boxes":{"q":[{"ID":"\xff"}]}}', b"an ID")
        self.refused(b'{"boxes":{"q":[{"ID":"\\ud800"}]}}', b"an ID")
        self.refused(b'{"boxes":{"q":[{"ID":"a","ID":"b"}]}}', b"twice")
        self.refused(b'{"boxes":{"q":[1]}}', b"no object")
        self.refused(b'{"boxes":{"q":{}}}', b"no array")

    def test_no_room_for_the_log(self):
        hub = self.make(state({"q": [message("x")]}))
        content = read_file(hub.mailbox)
        # As the shell's ulimit -f: no file of 8 MiB.
        hub.wrapper = ["sh", "-c", "trap '' XFSZ; ulimit -f 1000; exec \"$@\"", "sh"]
        done = hub.run()
        self.assertEqual((done.returncode, done.stderr.count(b"\n")), (1, 1), done)
        self.assertIn(b"no space left", done.stderr)
        self.assertEqual(read_file(hub.mailbox), content)
        self.assertEqual(os.listdir(hub.dir), ["m"])
        hub.wrapper = []
        hub.start()
        self.assertEqual(hub.stop(), 0)
        self.assertEqual(self.texts(hub.mailbox), ["x"])

    def test_an_older_import_is_not_overwritten(self):
        hub = self.make(state({"q": [message("x")]}))
        write_file(hub.mailbox + ".imported", b"older")
        done = hub.run()
        self.assertEqual(done.returncode, 78, done)
        self.assertIn(b".imported is there already", done.stderr)
        self.assertEqual(read_file(hub.mailbox + ".imported"), b"older")
        self.assertEqual(sorted(os.listdir(hub.dir)), ["m", "m.imported"])
        os.unlink(hub.mailbox + ".imported")
        hub.start()

    def test_something_else_in_the_place_of_the_new_log(self):
        hub = self.make(state({"q": [message("x")]}))
        os.mkdir(hub.mailbox + ".new")
        write_file(os.path.join(hub.mailbox + ".new", "thesis"), b"years")
        done = hub.run()
        self.assertEqual((done.returncode, done.stderr.count(b"\n")), (78, 1), done)
        self.assertEqual(os.listdir(hub.mailbox + ".new"), ["thesis"])

    def test_two_hubs_at_once(self):
        hub = self.make(state({"q": [message(str(i)) for i in range(500)]}))
        with open(hub.mailbox) as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            done = hub.run()
            self.assertEqual(done.returncode, 1, done)
            self.assertIn(b"another hub", done.stderr)
        argv = [HUB, "--local", "--mailbox", hub.mailbox, "--listen"]
        procs = [subprocess.Popen(argv + [os.path.join(hub.dir, "s%d" % i)],
                                  stderr=subprocess.DEVNULL) for i in range(4)]
        harness.wait_for(lambda: sum(p.poll() is None for p in procs) <= 1)
        harness.wait_for(lambda: os.path.isdir(hub.mailbox))
        self.assertEqual([p.poll() for p in procs].count(1), 3)
        for p in procs:
            if p.poll() is None:
                p.terminate()
                p.wait()
        self.assertEqual(self.texts(hub.mailbox), [str(i) for i in range(500)])

    def test_killed_at_each_step(self):
        content = json.dumps(state({"q": [message(str(i), at(i)) for i in range(20) if i != 7]},
                                   [message("7", at(7))])).encode()
        want = [str(i) for i in range(20)]
        seen = set()
        if not shutil.which("strace"):
            harness.skip("strace is not installed")
        calls = {"rename": 2, "renameat": 1, "fsync": 9, "unlinkat": 1, "pwrite64": 6,
                 "openat": 24, "close": 16, "fallocate": 2, "mkdir": 1, "fdatasync": 4}
        for call, most in calls.items():
            for n in range(1, most + 1):
                if not (harness.LONG or n % 5 == 1 or call[:6] in ("rename", "unlink", "fsync")):
                    continue
                for entry in ("signal=KILL", "error=EIO"):
                    self.cut(content, call, n, entry, want, seen)
        # Each state in which a start can leave the names was there.
        self.assertEqual({("m",), ("m", "m.new"), ("m.imported", "m.new"), ("m", "m.imported")},
                         seen)

    # `store import` to a path where nothing is, beside what an older import of a hub has left.

    def restore(self, *wrapper, **kw):
        """A hub, not started, and the import of 3,000 messages to its path."""
        hub = self.hub(durable=True, start=False)
        write_file(hub.mailbox + ".imported", json.dumps(state({})))
        return hub, subprocess.Popen(list(wrapper) + [harness.CLI, "store", "import", hub.mailbox],
                                     stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                     stderr=subprocess.PIPE, **kw)

    BACKUP = [b'{"mailbox":"q","text":"%d %s"}\n' % (i, b"x" * 6000) for i in range(3000)]

    def all_or_none(self, hub, what):
        """A start finds all of the backup or nothing; True: all."""
        hub.start()
        self.assertEqual(hub.stop(), 0)
        got = self.texts(hub.mailbox)
        self.assertIn(len(got), (0, len(self.BACKUP)), what)
        return len(got) > 0

    def test_a_restore_that_is_killed_is_no_import_of_a_hub(self):
        if not shutil.which("strace"):
            harness.skip("strace is not installed")
        found = set()
        for call, most in {"openat": 20, "pwrite64": 14, "fsync": 12, "fdatasync": 6, "renameat": 1,
                           "rename": 1, "unlinkat": 1, "fallocate": 4, "close": 12}.items():
            for n in range(1, most + 1):
                if not (harness.LONG or call in ("pwrite64", "rename", "unlinkat") or n % 4 == 1):
                    continue
                what = "inject=%s:signal=KILL:when=%d" % (call, n)
                hub, p = self.restore("strace", "-qq", "-o", "/dev/null", "-e", "trace=" + call,
                                      "-e", what)
                p.communicate(b"".join(self.BACKUP))
                half = p.returncode != 0 and os.path.isdir(hub.mailbox + ".new") and any(
                    b"0 xxx" in read_file(os.path.join(hub.mailbox + ".new", f))
                    for f in os.listdir(hub.mailbox + ".new"))
                found.add((half, self.all_or_none(hub, what)))
                # Nothing of it is in the way of the next.
                done = cli("store", "import", hub.mailbox, stdin=self.BACKUP[0])
                self.assertEqual((done.returncode, done.stderr), (0, b""), what)
                self.assertFalse(os.path.exists(hub.mailbox + ".new"), what)
        self.assertEqual(found, {(True, False), (False, True), (False, False)})

    def test_a_restore_that_goes_on_keeps_its_directory(self):
        hub, p = self.restore()
        p.stdin.write(b"".join(self.BACKUP[:2500]))
        p.stdin.flush()
        harness.wait_for(lambda: os.path.exists(hub.mailbox + ".new/rebuilding"))
        self.assertFalse(self.all_or_none(hub, "it goes on"))
        self.assertTrue(os.path.isdir(hub.mailbox + ".new"))
        _, err = p.communicate(b"".join(self.BACKUP[2500:]))
        self.assertEqual((p.returncode, err.count(b"\n")), (1, 1), err)
        self.assertEqual(self.messages(hub.mailbox), [])
        self.assertFalse(os.path.exists(hub.mailbox + ".new"))

    def test_a_restore_leaves_an_import_of_a_hub_that_was_cut_short(self):
        hub = self.make(state({"q": [message("x")]}))
        hub.start()
        self.assertEqual(hub.stop(), 0)
        os.rename(hub.mailbox, hub.mailbox + ".new")
        write_file(hub.mailbox + ".new/rebuilt", b"")
        done = cli("store", "import", hub.mailbox, stdin=b'{"mailbox":"q"}')
        self.assertEqual((done.returncode, done.stderr.count(b"\n")), (78, 1), done)
        self.assertIn(b"start the hub", done.stderr)
        hub.start()
        self.assertEqual(hub.stop(), 0)
        self.assertEqual(self.texts(hub.mailbox), ["x"])

    def test_each_step_is_on_disk_before_the_next(self):
        if not shutil.which("strace"):
            harness.skip("strace is not installed")
        hub = self.make(state({"q": [message("x" * 5000)] * 100}))
        trace = os.path.join(hub.dir, "trace")
        hub.wrapper = ["strace", "-f", "-y", "-qq", "-s", "0", "-o", trace, "-e",
                       "trace=rename,renameat,fsync,fdatasync,pwrite64"]
        hub.options += ["--segment", "64k"]
        hub.start()
        end_traced(hub.proc)
        calls = re.findall(r"(renameat|rename|fsync|fdatasync|pwrite64)\((?:\d+<([^>]*)>)?",
                           read_file(trace).decode())
        first, second = [i for i, c in enumerate(calls) if c[0] == "rename"]
        new = hub.mailbox + ".new"
        written = {}
        for i, (call, path) in enumerate(calls[:first]):
            if call == "pwrite64" and path.endswith(".zlog"):
                written[path] = i
        self.assertGreater(len(written), 7)

        def synced(path, after, before):
            return any(c[0] in ("fsync", "fdatasync") and c[1] == path
                       for c in calls[after:before])
        for path, at in written.items():
            self.assertTrue(path.startswith(new + "/") and synced(path, at, first), path)
        whole = [i for i, c in enumerate(calls) if c == ("renameat", new)]
        self.assertEqual(len(whole), 1)
        for path, at in written.items():
            self.assertTrue(synced(path, at, whole[0]), path)
        last = whole[0]
        self.assertTrue(synced(new, last, first))  # names in the log
        self.assertTrue(synced(hub.dir, last, first))  # its own
        self.assertTrue(synced(hub.dir, first, second))
        self.assertTrue(synced(hub.dir, second, len(calls)))

    def cut(self, content, call, n, inject, want, seen):
        hub = self.make(content)
        what = "%s:%s:when=%d" % (call, inject, n)
        argv = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=" + call, "-e",
                "inject=" + what, "-P", hub.mailbox, "-P", hub.mailbox + ".new", "-P", hub.dir,
                "-P", hub.dir + "/.", HUB, "--local", "--listen", "unix://" + hub.path, "--mailbox",
                hub.mailbox]
        p = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
        harness.wait_for(lambda: p.poll() is not None or os.path.exists(hub.path))
        if p.poll() is None:  # it was through before the call came
            end_traced(p)
        names = tuple(sorted(f for f in os.listdir(hub.dir) if f[0] == "m"))
        seen.add(names)
        if "m" in names and not os.path.isdir(hub.mailbox):
            self.assertEqual(read_file(hub.mailbox), content, what)
        hub.start()
        self.assertEqual(hub.stop(), 0, what)
        self.assertEqual(self.texts(hub.mailbox), want, what)
        self.assertEqual(read_file(hub.mailbox + ".imported"), content, what)
        self.assertEqual(sorted(f for f in os.listdir(hub.dir) if f[0] == "m"),
                         ["m", "m.imported"], what)
        self.assertEqual([f for f in os.listdir(hub.mailbox) if "." not in f], ["lock"], what)


if __name__ == "__main__":
    harness.main()
