"""Payloads byte for byte in both directions, slow and vanished readers (field cases H5, H20)."""
import base64, json, os, pty, select, subprocess, time

import command
import harness
from harness import CLI, SLOW, cli, tempdir

MIB = 1 << 20


class Payload(command.Case):
    def test_h20_standard_input_byte_for_byte(self):
        for data in (b"a\0b", b"", b"\n", b"\n\n", b"x\n", b"\xff\xfe\r\n", b"\xed\xa0\x80",
                     bytes(range(256)) * 3, os.urandom(900000), os.urandom(MIB), b"\0" * MIB):
            with self.subTest(data[:8], len=len(data)):
                got = self.z("put", "jobs", stdin=data)
                self.assertEqual((got.returncode, got.stdout, got.stderr), (0, b"", b""))
                got = self.z("take", "jobs", "--raw")
                self.assertEqual((got.returncode, got.stdout == data), (0, True))

    def test_newline_is_added_only_when_lacking(self):
        for data, want in ((b"", b"\n"), (b"a", b"a\n"), (b"a\n", b"a\n"), (b"a\n\n", b"a\n\n"),
                           (b"a\r", b"a\r\n"), (b"a\0", b"a\0\n")):
            self.z("put", "jobs", stdin=data)
            self.assertEqual(self.z("take", "jobs").stdout, want)

    def test_h20_over_the_limit_is_refused_and_nothing_is_stored(self):
        for size, text in ((MIB + 1, b"mailbox: payload too large"),
                           (1468006, b"mailbox: payload too large"),
                           (1600000, b"payload too large"), (3 * MIB, b"payload too large")):
            for verb in ("put", "pub", "req"):
                got = self.z(verb, "jobs", stdin=b"x" * size)
                self.assertEqual((got.returncode, got.stdout), (1, b""), got.stderr)
                self.assertIn(text, got.stderr)
        self.assertEqual(self.z("ls").stdout, b"")

    def test_endless_input_ends(self):
        feeder = subprocess.Popen(["sh", "-c", "exec cat /dev/zero"], stdout=subprocess.PIPE)
        self.addCleanup(feeder.wait)
        self.addCleanup(feeder.kill)
        got = subprocess.run([CLI, "put", "jobs", "-l", self.bus.listen], stdin=feeder.stdout,
                             capture_output=True, timeout=20 * SLOW)
        feeder.stdout.close()
        self.assertEqual(got.returncode, 1)
        self.assertIn(b"payload too large", got.stderr)

    def test_file(self):
        path = os.path.join(tempdir(), "f")
        data = os.urandom(5000)
        with open(path, "wb") as f:
            f.write(data)
        self.assertEqual(self.z("put", "jobs", "--file", path).returncode, 0)
        self.assertEqual(self.z("take", "jobs", "--raw").stdout, data)
        self.assertEqual(self.z("put", "jobs", "--file", "/dev/null").returncode, 0)
        self.assertEqual(self.z("take", "jobs", "--raw").stdout, b"")
        for bad in ("/nonexistent", os.path.dirname(path)):
            got = self.z("put", "jobs", "--file", bad)
            self.assertEqual(got.returncode, 1)
            self.assertIn(bad.encode(), got.stderr)
        self.assertEqual(self.z("take", "jobs", "--wait", "0").returncode, 3)

    def test_json_tells_all(self):
        self.z("put", "j\u00e9\u2028", "-H", "k=v=w", "-H", "e=", "--id", "me", "--name", "a\x1bb",
               stdin="t\x9b\u202e<\x00".encode())
        got = self.z("take", "j\u00e9\u2028", "--json")
        self.assertEqual(got.stdout.count(b"\n"), 1)
        for hidden in ("\x1b", "\x9b", "\u202e", "\u2028", "\0"):
            self.assertNotIn(hidden.encode(), got.stdout)
        m = json.loads(got.stdout)
        self.assertEqual(list(m), ["id", "name", "from", "text", "body", "headers", "attempt", "at",
                                   "by"])
        self.assertTrue(m["id"].endswith(":me"))
        self.assertEqual((m["name"], m["from"], m["text"]),
                         ("j\u00e9\u2028", "a\x1bb", "t\x9b\u202e<\0"))
        self.assertEqual(base64.b64decode(m["body"]).decode(), m["text"])
        self.assertEqual(m["headers"], {"k": "v=w", "e": ""})
        self.assertEqual((m["attempt"], m["by"]), (1, "uid:%d" % os.getuid()))
        self.assertLess(abs(m["at"] / 1000 - time.time()), 30)
        self.z("put", "jobs", stdin=b"\xff")
        m = json.loads(self.z("take", "jobs", "--json").stdout)
        self.assertNotIn("text", m)
        self.assertEqual(m["body"], "/w==")

    def test_count_and_order(self):
        for i in range(5):
            self.z("put", "jobs", str(i))
        self.assertEqual(self.z("take", "jobs", "--count", "3").stdout, b"0\n1\n2\n")
        got = self.z("take", "jobs", "--count", "3", "--wait", "50ms")
        self.assertEqual((got.returncode, got.stdout), (3, b"3\n4\n"))

    def test_wait_delay_and_ttl(self):
        began = time.monotonic()
        self.assertEqual(self.z("take", "jobs", "--wait", "300ms").returncode, 3)
        self.assertGreater(time.monotonic() - began, 0.29)
        self.z("put", "jobs", "later", "--delay", "400ms")
        self.assertEqual(self.z("take", "jobs", "--wait", "0").returncode, 3)
        self.assertEqual(self.z("take", "jobs", "--wait", "10s").stdout, b"later\n")
        self.z("put", "jobs", "old", "--ttl", "100ms")
        time.sleep(0.3)
        self.assertEqual(self.z("take", "jobs", "--wait", "0").returncode, 3)

    def test_same_id_twice_is_two_messages_from_two_sessions(self):
        self.z("put", "jobs", "a", "--id", "x")
        self.z("put", "jobs", "b", "--id", "x")
        self.assertEqual(self.z("take", "jobs", "--count", "2").stdout, b"a\nb\n")

    def test_full_mailbox_exits_4(self):
        small = self.hub("--mailbox-cap", "1")
        self.assertEqual(cli("put", "jobs", "a", listen=small.listen).returncode, 0)
        got = cli("put", "jobs", "b", listen=small.listen)
        self.assertEqual(got.returncode, 4)
        self.assertIn(b"mailbox: queue full", got.stderr)
        self.assertIn(b"hint: ", got.stderr)


class Topics(command.Case):
    def sub(self, *args, **more):
        return self.start("sub", *args, **more)

    def published(self, topic, text):
        """Publishes until a subscription is there."""
        harness.wait_for(lambda: self.z("pub", topic, text, "--need-sub").returncode == 0)

    def test_h20_each_line_is_flushed_at_once(self):
        p = self.sub("ev.")
        self.published("ev.a", "one")
        self.assertTrue(select.select([p.stdout], [], [], 5 * SLOW)[0])
        self.assertTrue(p.stdout.readline().startswith(b"ev.a\t"))

    def test_payload_is_exact_and_names_forge_no_line(self):
        p = self.sub("--count", "2")
        harness.wait_for(lambda: self.bus.status()["sessions"] == 1)
        time.sleep(0.1)
        self.z("pub", "a\tb\nc\x1b\\", "--name", "f\nx", stdin=b"\x1b[31m\0\xff\ty\n")
        self.z("pub", "t", "", "--name", "f")
        out, err = p.communicate(timeout=20)
        self.assertEqual((p.returncode, err), (0, b""))
        names = rb"a\x09b\x0ac\x1b\\" + b"\t" + rb"f\x0ax"
        self.assertEqual(out, names + b"\t\x1b[31m\0\xff\ty\n\nt\tf\t\n")

    def test_json_is_one_object_a_line(self):
        self.z("pub", "t\n", "line\nline", "--name", "f", "-H", "h=1")
        got = self.z("sub", "t", "--count", "1", "--json")
        m = json.loads(got.stdout)
        self.assertEqual(got.stdout.count(b"\n"), 1)
        self.assertEqual((m["name"], m["from"], m["text"], m["headers"]),
                         ("t\n", "f", "line\nline", {"h": "1"}))

    def test_need_sub(self):
        self.assertEqual(self.z("pub", "ev.a", "x").returncode, 0)
        got = self.z("pub", "ev.a", "x", "--need-sub")
        self.assertEqual(got.returncode, 4)
        self.assertIn(b"ev.a", got.stderr)
        self.sub("ev.")
        self.published("ev.a", "x")

    def test_wait_runs_out(self):
        self.z("pub", "ev.a", "x")
        got = self.z("sub", "ev.", "--wait", "200ms")
        self.assertEqual((got.returncode, got.stdout.split(b"\t")[0]), (3, b"ev.a"))

    def test_no_replay_gives_only_what_comes_later(self):
        for i in range(200):
            self.bus_pub("ev.%d" % i)
        p = self.sub("ev.", "--no-replay", "--count", "1")
        self.published("ev.new", "live")
        out, err = p.communicate(timeout=20)
        self.assertTrue(out.startswith(b"ev.new\t"), out)
        got = self.z("sub", "ev.", "--count", "200")
        self.assertEqual(got.stdout.count(b"\n"), 200)

    def bus_pub(self, topic):
        if not hasattr(self, "raw"):
            self.raw = self.conn(self.bus)
        self.assertEqual(self.raw.call(op="pub", id="p", name=topic, text="last")["op"], "ok")

    def test_h5_reader_takes_one_line_and_goes(self):
        self.bus_pub("ev.a")
        self.bus_pub("ev.b")
        got = subprocess.run(["bash", "-c", 'set -o pipefail; "$0" sub ev. -l "$1" | head -1', CLI,
                              self.bus.listen], capture_output=True, timeout=20 * SLOW)
        self.assertEqual((got.returncode, got.stderr), (0, b""))
        self.assertEqual(got.stdout.count(b"\n"), 1)

    def test_h5_a_vanished_reader_is_noticed_while_nothing_comes(self):
        p = self.sub("nothing.")
        harness.wait_for(lambda: self.bus.status()["sessions"] == 1)
        p.stdout.close()
        self.assertEqual(p.wait(10 * SLOW), 0)
        self.assertEqual(p.stderr.read(), b"")

    def test_h5_take_for_a_vanished_reader_takes_nothing(self):
        self.z("put", "jobs", "keep")
        r, w = os.pipe()
        os.close(r)
        got = subprocess.run([CLI, "take", "jobs", "-l", self.bus.listen], stdout=w,
                             stderr=subprocess.PIPE, timeout=20)
        os.close(w)
        self.assertEqual((got.returncode, got.stderr), (1, b""))
        self.assertEqual(self.z("take", "jobs", "--wait", "0").stdout, b"keep\n")

    def test_full_device_is_told(self):
        self.z("put", "jobs", "x")
        with open("/dev/full", "wb") as full:
            got = subprocess.run([CLI, "take", "jobs", "-l", self.bus.listen], stdout=full,
                                 stderr=subprocess.PIPE, timeout=20)
        self.assertEqual(got.returncode, 1)
        self.assertIn(b"No space left", got.stderr)

    def test_a_reader_that_stops_reading_keeps_its_session(self):
        bus = self.hub("--heartbeat", "200ms", "--sub-buffer", "4096")
        p = subprocess.Popen([CLI, "sub", "-l", bus.listen], bufsize=0, stdout=subprocess.PIPE)
        self.addCleanup(p.stdout.close)
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        harness.wait_for(lambda: cli("pub", "t", "first", "--need-sub",
                                     listen=bus.listen).returncode == 0)
        raw = self.conn(bus)
        big = "x" * 2000
        for i in range(200):  # more than a pipe holds
            raw.call(op="pub", id="p", name="t", text="%d %s" % (i, big))
        end = time.monotonic() + 3  # three heartbeats and one second are 1.6 s
        while time.monotonic() < end:
            raw.call(op="ping", id="h")
            time.sleep(0.1)
        raw.call(op="pub", id="p", name="t", text="last")
        lines, data = [], b""
        while not data.endswith(b"\tlast\n"):
            more = os.read(p.stdout.fileno(), 65536)
            self.assertTrue(more, "the session ended")
            data += more
        lines = [line.split(b"\t")[2].split()[0] for line in data.splitlines()]
        self.assertEqual([line for line in lines if line.isdigit()],
                         [b"%d" % i for i in range(200)])


class Terminal(harness.Case):
    def on_terminal(self, *args):
        """Standard output of the command on a terminal of its own."""
        master, slave = pty.openpty()
        p = subprocess.Popen([CLI, *args], stdin=slave, stdout=slave, stderr=subprocess.PIPE)
        os.close(slave)
        data = b""
        try:
            while True:
                more = os.read(master, 4096)
                if not more:
                    break
                data += more
        except OSError:
            pass
        os.close(master)
        err = p.stderr.read()
        p.stderr.close()
        return p.wait(20), data, err

    def test_control_characters_are_escaped_on_a_terminal_only(self):
        bus = self.hub()
        evil = b"a\x1b]0;x\x07\tb\nc\x9b\xc2\x9b1m\xe2\x80\xae\x00end"
        for _ in range(2):
            cli("put", "jobs", stdin=evil, listen=bus.listen)
        status, out, err = self.on_terminal("take", "jobs", "-l", bus.listen)
        self.assertEqual((status, err), (0, b""))
        for bad in (b"\x1b", b"\x07", b"\x9b", b"\x00", b"\xe2\x80\xae"):
            self.assertNotIn(bad, out)
        self.assertIn(b"\tb\r\nc", out)
        self.assertIn(b"end\r\n", out)
        self.assertEqual(cli("take", "jobs", listen=bus.listen).stdout, evil + b"\n")

    def test_terminal_as_input_is_an_empty_payload_and_says_so(self):
        bus = self.hub()
        status, out, err = self.on_terminal("put", "jobs", "-l", bus.listen)
        self.assertEqual((status, out), (0, b""))
        self.assertIn(b"terminal", err)
        self.assertEqual(cli("take", "jobs", "--raw", "--wait", "0", listen=bus.listen).stdout, b"")


class Requests(harness.Case):
    def test_reply_is_printed_byte_for_byte(self):
        bus = self.hub()
        worker = self.conn(bus)
        for data in (b"x\0\xff", b"", b"line\n", os.urandom(MIB)):
            p = subprocess.Popen([CLI, "req", "svc", "-l", bus.listen, "--timeout", "20s"],
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            p.stdin.write(data)
            p.stdin.close()
            job = worker.call(op="ready", id="r", name="svc")
            self.assertEqual(harness.payload(job), data)
            worker.send(op="rep", id=job["id"], name="svc",
                        body=base64.b64encode(data).decode())
            self.assertEqual(worker.recv()["op"], "ok")
            out = p.stdout.read()
            p.stdout.close()
            self.assertEqual((p.wait(20), out == (data if data.endswith(b"\n") else data + b"\n")),
                             (0, True))

    def test_retries_carry_one_id_and_a_late_reply_counts(self):
        bus = self.hub()
        worker = self.conn(bus)
        p = subprocess.Popen([CLI, "req", "svc", "hi", "-l", bus.listen, "--timeout", "300ms",
                              "--retries", "20"], stdout=subprocess.PIPE)
        job = worker.call(op="ready", id="r", name="svc")
        time.sleep(1)  # several attempts: none is queued twice
        self.assertEqual(worker.call(op="stat", id="s", name="svc")["result"]["depth"], 0)
        worker.call(op="rep", id=job["id"], name="svc", text="yes")
        out = p.stdout.read()
        p.stdout.close()
        self.assertEqual((p.wait(20), out), (0, b"yes\n"))

    def test_abandoned_exits_3_and_counts_attempts(self):
        bus = self.hub()
        got = cli("req", "svc", "x", "--timeout", "50ms", "--retries", "1", listen=bus.listen)
        self.assertEqual((got.returncode, got.stdout), (3, b""))
        self.assertIn(b"zmqcat: request abandoned after 1 attempt: ", got.stderr)
        got = cli("req", "", "x", listen=bus.listen)
        self.assertEqual(got.returncode, 1)
        self.assertIn(b"mailbox: empty name", got.stderr)


if __name__ == "__main__":
    harness.main()
