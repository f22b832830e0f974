#!/usr/bin/env python3
"""store check, export, import, compact: the log of a hub that is not running."""
import base64, hashlib, json, os, random, re, resource, shutil, signal, subprocess, sys, threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness
from harness import CLI, SLOW, cli, read_file, tempdir, wait_for, write_file

FAR = 4102444800000  # 2100


def lines(out):
    return [json.loads(line) for line in out.decode().splitlines()]


def snapshot(path):
    """Every file of a directory with its bytes and times."""
    found = {}
    for name in sorted(os.listdir(path)):
        st = os.stat(os.path.join(path, name))
        digest = hashlib.sha256(read_file(os.path.join(path, name))).hexdigest()
        found[name] = (digest, st.st_mode, st.st_mtime_ns, st.st_ino)
    return found


def until_end(fd):
    """All that comes; the end of a terminal is an error."""
    shown = b""
    try:
        while more := os.read(fd, 65536):
            shown += more
    except OSError:
        pass
    return shown


def store(action, path, *more, **kw):
    return cli("store", action, path, *more, **kw)


class Store(harness.Case):
    def log(self, *options):
        """A log with a bit of everything, made by a hub that was stopped."""
        hub = self.hub("--segment", "64k", *options, durable=True)
        a = self.conn(hub)
        a.call({"v": 1, "op": "hello", "id": "h", "from": "al", "scope": "0123456789abcdef one"})
        for i in range(40):
            a.put("jobs", "job %d" % i, id="j%d" % i)
        a.call(v=1, op="put", id="b", name="raw", body=base64.b64encode(b"\x00\xff\r\n").decode())
        a.call(v=1, op="put", id="e", name="raw")
        a.put("wide", "x<&\u2028\u0000\x7f\"\\", headers={"k": "v \u00e9", "empty": ""})
        a.put("late", "later", delay=86400, ttl=172800)
        a.call(v=1, op="bind", id="n", name="events", topic="ev.")
        a.call(v=1, op="bind", id="n", name="events", topic="")
        a.call(v=1, op="pub", id="p", name="ev.x", text="happened")
        a.recv() if a.data else None
        for _ in range(7):
            a.call(v=1, op="take", id="t", name="jobs", wait=1)
        for _ in range(3):
            got = a.call(v=1, op="reserve", id="r", name="jobs", lease=60)
        a.call(v=1, op="nack", id="k", delivery=got["delivery"], delay=86400)
        b = self.conn(hub)
        b.send(v=1, op="req", id="q", name="service", text="question")
        b.sync()
        self.assertEqual(hub.stop(), 0)
        return hub.mailbox

    def ok(self, done):
        self.assertEqual((done.returncode, done.stderr), (0, b""), done)
        return done.stdout

    def test_check_reports_and_changes_nothing(self):
        path = self.log()
        before = snapshot(path)
        got = json.loads(self.ok(store("check", path, "--json")))
        self.assertEqual(got["mailboxes"], {"events": 1, "jobs": 33, "late": 1, "raw": 2,
                                            "service": 1, "wide": 1})
        self.assertEqual((got["clean"], got["messages"], got["bindings"], got["damaged"]),
                         (True, 39, 2, 0))
        self.assertEqual(got["remembered"], 7)
        self.assertEqual(got["bytes"], sum(os.path.getsize(os.path.join(path, n))
                                           for n in os.listdir(path) if n.endswith(".zlog")))
        text = self.ok(store("check", path)).decode()
        self.assertIn("mailboxes.jobs                   33\n", text)
        self.assertEqual(snapshot(path), before)

    def test_check_of_a_copy_that_nobody_may_write(self):
        path = self.log()
        copy = os.path.join(tempdir(), "copy")
        shutil.copytree(path, copy, ignore=shutil.ignore_patterns("lock", "*.zidx"))
        for name in os.listdir(copy):
            os.chmod(os.path.join(copy, name), 0o400)
        os.chmod(copy, 0o500)
        before = snapshot(copy)
        want = self.ok(store("export", path))
        self.assertEqual(self.ok(store("export", copy)), want)
        self.ok(store("check", copy))
        self.assertEqual(snapshot(copy), before)

    def test_check_finds_each_flipped_byte_of_a_record(self):
        path = self.log()
        segment = os.path.join(path, sorted(n for n in os.listdir(path) if n[8:] == ".zlog")[0])
        whole = bytearray(read_file(segment))
        # What fills up to the next record is zero, and nobody's.
        rng = random.Random(7)
        places = [at for at in range(128, whole.find(b"job 39")) if whole[at] != 0]
        for at in [rng.choice(places) for _ in range(25)]:
            bad = bytearray(whole)
            bad[at] ^= 1 << rng.randrange(8)
            write_file(segment, bytes(bad))
            before = snapshot(path)
            done = store("check", path, "--json")
            got = json.loads(done.stdout)
            self.assertEqual((done.returncode, got["clean"]), (1, False), (at, got))
            self.assertGreater(got["damaged"] * got["damaged_bytes"], 0)
            self.assertRegex(done.stderr, rb"damaged: \d+ records?, about \d+ bytes\nhint: ")
            out = store("export", path)
            self.assertEqual(out.returncode, 1)
            self.assertRegex(out.stderr, rb"damaged records are left out")
            self.assertEqual(lines(out.stdout)[-1], {"end": len(lines(out.stdout)) - 2})
            self.assertEqual(snapshot(path), before)
            self.assertEqual(store("import", path, stdin=b"").returncode, 1)
        write_file(segment, bytes(whole))
        self.ok(store("check", path))

    def test_a_torn_tail_is_no_damage(self):
        path = self.log()
        for name in sorted(os.listdir(path)):
            if not name.endswith(".zlog"):
                continue
            segment = os.path.join(path, name)
            data = read_file(segment)
            end = len(data.rstrip(b"\0"))
            write_file(segment, data[:end + 8 - end % 8] + b"torn by a crash." +
                       data[end + 24 - end % 8:])
        write_file(os.path.join(path, "00000099.zlog"), b"\0" * 65536)  # it was being made
        before = snapshot(path)
        got = json.loads(self.ok(store("check", path, "--json")))
        self.assertGreaterEqual(got["torn_bytes"], 16)
        self.assertEqual(got["messages"], 39)
        self.assertEqual(self.ok(store("export", path)).count(b"\n"), 50)
        self.assertEqual(snapshot(path), before)

    def test_set_aside_files_are_counted(self):
        path = self.log()
        write_file(os.path.join(path, "00000001.damaged"), b"x" * 1000)
        got = json.loads(self.ok(store("check", path, "--json")))
        self.assertEqual((got["set_aside"], got["set_aside_bytes"]), (1, 1000))
        self.ok(store("import", path, stdin=b'{"mailbox":"n"}\n'))
        self.assertEqual(os.path.getsize(os.path.join(path, "00000001.damaged")), 1000)

    def test_a_running_hub_is_not_disturbed(self):
        hub = self.hub(durable=True)
        a = self.conn(hub)
        a.put("q", "x")
        for action in ("check", "export", "import", "compact"):
            done = store(action, hub.mailbox, stdin=b"")
            self.assertEqual(done.returncode, 1, done)
            self.assertIn(b"is in use by ", done.stderr)
        self.assertEqual(a.put("q", "y")["op"], "ok")
        self.assertEqual(os.listdir(os.path.dirname(hub.mailbox)).count("m.new"), 0)

    def test_paths_that_are_no_log(self):
        d = tempdir()
        write_file(os.path.join(d, "file"), b"{}")
        os.mkdir(os.path.join(d, "empty"))
        for action in ("check", "export", "compact"):
            for path in [os.path.join(d, name) for name in ("none", "file", "empty", "")]:
                done = store(action, path)
                self.assertEqual(done.returncode, 78, done)
                self.assertEqual(done.stderr.count(b"\n"), 1, done)
        self.assertEqual(store("import", os.path.join(d, "file"), stdin=b"").returncode, 78)
        self.assertEqual(store("import", d, stdin=b"").returncode, 78)
        self.assertEqual(sorted(os.listdir(d)), ["empty", "file"])
        self.assertEqual(os.listdir(os.path.join(d, "empty")), [])
        for args in ([], ["check"], ["chek", d], ["check", d, d]):
            self.assertEqual(cli("store", *args).returncode, 2, args)

    def test_export_says_all(self):
        got = lines(self.ok(store("export", self.log())))
        self.assertEqual(got[0], {"zmqcat": "export", "version": 1})
        self.assertEqual(got[-1], {"end": len(got) - 2})
        by = {}
        for line in got[1:-1]:
            by.setdefault(line.get("mailbox"), []).append(line)
        self.assertEqual([m["text"] for m in by["jobs"]], ["job %d" % i for i in range(7, 40)])
        self.assertEqual([m.get("attempt", 0) for m in by["jobs"]], [1, 1, 1] + 30 * [0])
        self.assertGreater(by["jobs"][2]["due"], time.time() * 1000 + 86000000)
        self.assertEqual([m.get("body") for m in by["raw"]], ["AP8NCg==", None])
        self.assertEqual(by["raw"][1]["text"], "")
        wide = by["wide"][0]
        self.assertEqual(wide["text"], "x<&\u2028\u0000\x7f\"\\")
        self.assertEqual(wide["headers"], {"k": "v \u00e9", "empty": ""})
        self.assertEqual((wide["from"], wide["by"]), ("al", "uid:%d" % os.getuid()))
        self.assertGreater(by["late"][0]["expires"], by["late"][0]["due"])
        self.assertIs(by["service"][0]["request"], True)
        self.assertEqual([(b["bind"], b["topic"]) for b in by[None] if "bind" in b],
                         [("events", "ev."), ("events", "")])
        self.assertEqual(len([s for s in by[None] if "seen" in s]), 7)
        seqs = [line["seq"] for line in got if "seq" in line]
        self.assertEqual(seqs, sorted(set(seqs)))

    def test_round_trip_is_the_same_bytes(self):
        path = self.log()
        out = self.ok(store("export", path))
        again = os.path.join(tempdir(), "again")
        got = json.loads(self.ok(store("import", again, "--json", stdin=out)))
        self.assertEqual(got, {"messages": 39, "bindings": 2, "remembered": 7})
        self.assertEqual(self.ok(store("export", again)), out)
        self.ok(store("compact", again))
        self.assertEqual(self.ok(store("export", again)), out)
        self.ok(store("compact", path))
        self.assertEqual(self.ok(store("export", path)), out)
        self.ok(store("check", again))
        # An empty directory takes them too, and an export of nothing changes nothing.
        os.mkdir(again + "2")
        mode = 0o2750
        try:
            os.chmod(again + "2", mode)
        except PermissionError:  # a sandbox may forbid the group's bit
            mode = 0o750
            os.chmod(again + "2", mode)
        nothing = b'{"zmqcat":"export","version":1}\n{"end":0}\n'
        for data, slashes in ((out, "/"), (nothing, "//")):
            self.ok(store("import", again + "2" + slashes, stdin=data))
            self.assertEqual(os.stat(again + "2").st_mode & 0o7777, mode)
            self.assertEqual(sorted(f for f in os.listdir(again + "2") if "." not in f), ["lock"])
        self.assertEqual(self.ok(store("export", again + "2")), out)
        self.assertEqual(sorted(os.listdir(os.path.dirname(again))), ["again", "again2"])

    def test_a_hub_goes_on_with_what_was_imported(self):
        out = self.ok(store("export", self.log()))
        hub = self.hub(durable=True, start=False)
        self.ok(store("import", hub.mailbox, stdin=out))
        hub.start()
        a = self.conn(hub)
        a.call({"v": 1, "op": "hello", "id": "h", "from": "al", "scope": "0123456789abcdef one"})
        a.put("jobs", "again", id="j3")  # taken before
        a.put("jobs", "again", id="j9")  # still there
        for i in [7, 8] + list(range(10, 40)):
            got = a.call(v=1, op="take", id="t", name="jobs", wait=1)
            self.assertFrame(got, op="msg", text="job %d" % i, attempt=2 if i < 9 else 1)
        self.assertErr(a.call(v=1, op="take", id="t", name="jobs", wait=0), "empty")
        a.call(v=1, op="pub", id="p", name="ev.y", text="more")
        for text in ("happened", "more"):
            got = a.call(v=1, op="take", id="t", name="events", wait=1)
            self.assertFrame(got, op="msg", text=text)

    def test_import_by_hand(self):
        path = os.path.join(tempdir(), "m")
        hand = (b'{"mailbox":"q","text":"first"}\n\n {"mailbox":"q","body":"AP8="} \r\n'
                b'{"bind":"q","topic":"t."}\n{"mailbox":"q","seq":2,"text":"third"}')
        self.ok(store("import", path, stdin=hand))
        got = lines(self.ok(store("export", path)))
        self.assertEqual([m.get("text", m.get("body")) for m in got if "mailbox" in m],
                         ["first", "AP8=", "third"])
        self.assertGreater(got[1]["at"], 1700000000000)
        self.ok(store("import", path, stdin=b'{"mailbox":"q","text":"fourth"}'))
        got = lines(self.ok(store("export", path)))
        self.assertEqual([m.get("text") for m in got if "mailbox" in m][2:], ["third", "fourth"])

    def test_numbers_that_are_too_large_are_given_anew(self):
        big = (1 << 63) - 2
        for first, want in ((1 << 62, 1 << 62), ((1 << 62) + 1, 1), (big, 1)):
            hub = self.hub(durable=True, start=False)
            hand = b'{"mailbox":"q","seq":%d,"text":"0"}\n{"mailbox":"q","seq":%d,"text":"1"}\n'
            self.ok(store("import", hub.mailbox, stdin=hand % (first, big)))
            hub.start()
            a = self.conn(hub)
            for i in (2, 3, 4):
                a.put("q", str(i))
            got = a.call(v=1, op="reserve", id="r", name="q", lease=60)
            a.call(v=1, op="nack", id="n", delivery=got["delivery"])
            self.assertEqual(hub.stop(), 0)
            out = self.ok(store("export", hub.mailbox))
            got = lines(out)[1:-1]
            self.assertEqual([m["text"] for m in got], list("01234"))
            self.assertEqual([m["seq"] for m in got], sorted(m["seq"] for m in got))
            self.assertEqual((got[0]["seq"], got[1]["seq"]), (want, want + 1))
            self.ok(store("import", hub.mailbox + "2", stdin=out))
            self.assertEqual(lines(self.ok(store("export", hub.mailbox + "2")))[1]["seq"], want)

    def test_import_is_all_or_nothing(self):
        path = self.log()
        out = self.ok(store("export", path))
        cases = {
            b"cut short": out[:out.rindex(b'{"end"')],
            b"lines are missing": out.replace(out.splitlines()[3] + b"\n", b""),
            b"behind the end": out + b'{"mailbox":"q"}\n',
            b"a second export": out[:out.rindex(b'{"end"')] + out,
            b"line 2: it has a member that is not known": b'{"mailbox":"q"}\n{"mailbox":"q","x":1}',
            b"line 1: it has a member twice": b'{"mailbox":"q","mailbox":"q"}',
            b"line 1: it has a text and a body": b'{"mailbox":"q","text":"x","body":"eA=="}',
            b"mailbox is no name": b'{"mailbox":""}',
            b"body is no base64": b'{"mailbox":"q","body":"!"}',
            b"seq is no number": b'{"mailbox":"q","seq":0}',
            b"version is not 1": b'{"zmqcat":"export","version":2}',
            b"it is no message": b'{"text":"x"}',
            b"it is no JSON object": b'[]',
            b"text is no UTF-8": b'{"mailbox":"q","text":"\xff"}',
            b"ends too early": b'{"mailbox":"q","text":',
            b"something stands behind it": b'{"mailbox":"q"}{"mailbox":"q"}',
            b"standard input is empty": b"",
            b"is empty: the export before it may have failed": b"\n\n",
        }
        before = snapshot(path)
        for why, data in cases.items():
            done = store("import", path, stdin=data)
            self.assertEqual(done.returncode, 1, (why, done))
            self.assertIn(why, done.stderr)
            self.assertIn(b"hint: nothing was imported", done.stderr)
            self.assertEqual(snapshot(path), before)
            none = os.path.join(tempdir(), "m")
            self.assertEqual(store("import", none, stdin=data).returncode, 1)
            self.assertEqual(os.listdir(os.path.dirname(none)), [])

    def test_import_killed_anywhere_changes_nothing_or_all(self):
        path = self.log()
        old = self.ok(store("export", path))
        more = b"".join(b'{"mailbox":"more","text":"%d"}\n' % i for i in range(300))
        whole = self.ok(store("export", path)).count(b"\n") + 300
        seen = set()
        some = (1, 2, 3)
        many = range(1, 33, 1 if harness.LONG else 3)
        for call, when in {"renameat2": some, "unlinkat": many, "fsync": some, "pwrite64": some,
                           "fchownat": some, "rmdir": some, "openat": many}.items():
            for n in when:
                argv = ["strace", "-qq", "-o", "/dev/null", "-e", "trace=" + call, "-e",
                        "inject=%s:signal=KILL:when=%d" % (call, n), CLI, "store", "import", path]
                try:
                    done = subprocess.run(argv, input=more, capture_output=True, timeout=20 * SLOW)
                except FileNotFoundError:
                    harness.skip("strace is not installed")
                now = self.ok(store("export", path))
                seen.add((done.returncode != 0, now != old))
                if now != old:
                    self.assertEqual(now.count(b"\n"), whole)
                    self.assertLessEqual(set(old.splitlines()[:-1]), set(now.splitlines()))
                    # Its predecessor may have been left; the next one removes it.
                    shutil.rmtree(path)
                    self.ok(store("import", path, stdin=old))
        self.assertIn((True, False), seen)
        self.assertIn((True, True), seen)
        self.ok(store("import", path, stdin=more))
        self.assertEqual(self.ok(store("export", path)).count(b"\n"), whole)
        self.assertFalse(os.path.exists(path + ".new"))

    def test_what_is_not_ours_beside_the_path_stays(self):
        path = self.log()
        other = path + ".new"
        shutil.copytree(path, other)
        before = snapshot(other)
        done = store("import", path, stdin=b'{"mailbox":"q"}')
        self.assertEqual(done.returncode, 78, done)
        self.assertIn(b"not what an earlier import left", done.stderr)
        self.assertEqual(snapshot(other), before)
        shutil.rmtree(other)
        write_file(os.path.join(path, "notes.txt"), b"mine")
        before = snapshot(path)
        done = store("import", path, stdin=b'{"mailbox":"q"}')
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(b"holds other files", done.stderr)
        self.assertEqual(snapshot(path), before)

    def test_compact_frees_what_was_consumed(self):
        hub = self.hub("--segment", "64k", "--mailbox-cap", "100000", durable=True)
        a = self.conn(hub)
        for i in range(1500):
            a.send(v=1, op="put", id="p%d" % i, name="q%d" % (i % 3), text="%04d" % i * 100)
        for i in range(1500):
            a.recv()
        for i in range(498):
            for name in ("q0", "q1"):
                a.call(v=1, op="take", id="t", name=name, wait=1)
        hub.kill()
        want = self.ok(store("export", hub.mailbox))
        got = json.loads(self.ok(store("compact", hub.mailbox, "--json")))
        self.assertEqual((got["messages"], got["damaged"]), (504, 0))
        self.assertLess(got["bytes"], got["bytes_before"])
        self.assertEqual(self.ok(store("export", hub.mailbox)), want)
        got = json.loads(self.ok(store("check", hub.mailbox, "--json")))
        self.assertEqual(got["messages"], 504)

    def test_compact_killed_anywhere_loses_nothing(self):
        path = self.log()
        want = self.ok(store("export", path))
        killed = 0
        for call in ("pwrite64", "fdatasync", "fsync", "unlinkat", "fallocate"):
            for n in (1, 2, 4, 7):
                argv = ["strace", "-qq", "-o", "/dev/null", "-e", "trace=" + call, "-e",
                        "inject=%s:signal=KILL:when=%d" % (call, n), CLI, "store", "compact", path]
                try:
                    done = subprocess.run(argv, capture_output=True, timeout=20 * SLOW)
                except FileNotFoundError:
                    harness.skip("strace is not installed")
                killed += done.returncode != 0
                self.assertEqual(self.ok(store("export", path)), want, (call, n))
                self.ok(store("check", path))
        self.assertGreater(killed, 8)
        self.ok(store("compact", path))
        self.assertEqual(self.ok(store("export", path)), want)

    def test_no_room(self):
        path = self.log()
        want, before = self.ok(store("export", path)), snapshot(path)

        def little():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (60000, 60000))
        for target in (path, os.path.join(os.path.dirname(path), "other")):
            done = subprocess.run([CLI, "store", "import", target], input=want, preexec_fn=little,
                                  capture_output=True, timeout=20 * SLOW)
            self.assertEqual(done.returncode, 1, done)
            self.assertIn(b"no space left", done.stderr)
            self.assertEqual(snapshot(path), before)
            self.assertEqual([f for f in os.listdir(os.path.dirname(path)) if f[0] in "mo"], ["m"])
        done = subprocess.run([CLI, "store", "compact", path], preexec_fn=little,
                              capture_output=True, timeout=20 * SLOW)
        self.assertEqual(done.returncode, 1, done)
        self.assertEqual(self.ok(store("export", path)), want)

    def test_progress_is_a_bar_at_a_terminal(self):
        path = os.path.join(tempdir(), "m")
        ours, theirs = os.openpty()
        p = subprocess.Popen([CLI, "store", "import", path], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, stderr=theirs)
        os.close(theirs)
        for _ in range(4):
            p.stdin.write(b'{"mailbox":"q","text":"x"}\n' * 10000)
            p.stdin.flush()
            time.sleep(0.15)
        self.assertIn(b"messages                         40000\n", p.communicate()[0])
        shown = until_end(ours)
        os.close(ours)
        self.assertRegex(shown, rb"\r\d+ lines, \d+ a second")
        self.assertTrue(shown.endswith(b"\n"), shown)

    def progress(self, *args):
        """What it says on standard error. It may be done before it could be stopped."""
        for _ in range(10):
            said = self.stopped(*args)
            if said:
                break
        return said

    def stopped(self, action, path, terminal, moved, least):
        """The same; stopped once, when it has read or written some, for longer than the time
        between two looks."""
        ours, theirs = os.openpty() if terminal else os.pipe()
        p = subprocess.Popen([CLI, "store", action, path], stdout=subprocess.PIPE, stderr=theirs)
        os.close(theirs)
        wait_for(lambda: p.poll() is not None or int(
            re.search(moved + rb": (\d+)", read_file("/proc/%d/io" % p.pid))[1]) > least, step=0)
        p.send_signal(signal.SIGSTOP)
        time.sleep(0.2 if terminal else 2.2)
        p.send_signal(signal.SIGCONT)
        said, reader = [], threading.Thread(target=lambda: said.append(until_end(ours)))
        reader.start()
        p.communicate()
        self.assertEqual(p.returncode, 0)
        reader.join()
        os.close(ours)
        return said[0]

    def test_progress_of_check_export_and_compact(self):
        path = os.path.join(tempdir(), "m")
        line = b'{"mailbox":"q","text":"' + b"x" * 1000 + b'"}\n'
        self.ok(store("import", path, stdin=line * 20000))
        bar = rb"\r\[=*>? *\] +(\d+)%  \d+ (\w+), \d+ a second\x1b\[K"
        text = rb"zmqcat: store %s %s: \d+ (\w+) \((\d+)%%\), \d+ a second\n"
        for action, unit, *when in (("check", b"messages", b"rchar", 1 << 20),
                                    ("export", b"lines", b"wchar", 32 << 10),  # a pipe is full
                                    ("compact", b"records", b"wchar", 1 << 20)):
            with self.subTest(action):
                shown = self.progress(action, path, True, *when).replace(b"\r\n", b"\n")
                self.assertRegex(shown, rb"\A((%s)+\n)+\Z" % bar.replace(b"(", b"(?:"))
                shares = [int(n) for n, of in re.findall(bar, shown) if of == unit]
                self.assertEqual(shares, sorted(shares))
                self.assertTrue(any(n < 100 for n in shares), shown)
                self.assertEqual(shares[-1], 100)
                # In a pipe: whole lines, a few.
                said = self.progress(action, path, False, *when)
                self.assertRegex(said, rb"\A(" + text % (action.encode(), path.encode())
                                 + rb")+\Z")
                self.assertIn(unit + b" (", said)
                self.assertLess(said.count(b"\n"), 5)
                # And nothing of what is quickly done.
                little = os.path.join(tempdir(), "m")
                self.ok(store("import", little, stdin=line))
                self.ok(store(action, little))

    def test_many_messages_stream(self):
        count = 1000000 if harness.LONG else 60000
        path = os.path.join(tempdir(), "m")
        text = b"x" * (100 if harness.LONG else 1000)
        quiet = {"stderr": subprocess.DEVNULL}
        feed = subprocess.Popen([CLI, "store", "import", path], stdin=subprocess.PIPE,
                                stdout=subprocess.DEVNULL, **quiet)
        for i in range(count // 1000):
            feed.stdin.write(b"".join(b'{"mailbox":"q%d","text":"%d %s"}\n' % (k % 7, i, text)
                                      for k in range(1000)))
        feed.stdin.close()
        self.assertEqual(feed.wait(), 0)
        out = subprocess.Popen([CLI, "store", "export", path], stdout=subprocess.PIPE, **quiet)
        found, peak = 0, 0
        for found, _ in enumerate(out.stdout, 1):
            if found % 1000 == 0:  # not that of wait4, which knows the size of this program too
                size = re.search(rb"VmHWM:\s+(\d+) kB", read_file("/proc/%d/status" % out.pid))
                peak = int(size[1]) * 1024 if size else peak
        out.stdout.close()
        self.assertEqual((found, out.wait()), (count + 2, 0))
        if SLOW == 1:
            # An index of what lives; the payloads alone are 60 MB, or 100.
            self.assertGreater(peak, 1 << 20)
            self.assertLess(peak, (16 << 20) + count * 150)


if __name__ == "__main__":
    harness.main()
