"""peek, purge, mv, bind and unbind; puts for consumers only, and filters."""
import json, signal, subprocess, time

import command
import harness
from harness import CLI, SLOW, cli, wait_for


class Operators(command.Case):
    def fill(self, count, name="jobs"):
        for i in range(1, count + 1):
            self.raw.put(name, str(i))

    def taken(self, name):
        got = self.z("take", name, "--count", "100000", "--wait", "0").stdout.decode()
        return [int(line) for line in got.splitlines()]


class Operate(Operators):
    def test_peek_takes_nothing(self):
        self.fill(3)
        for _ in range(2):
            got = self.z("peek", "jobs")
            self.assertEqual((got.returncode, got.stdout, got.stderr), (0, b"1\n", b""))
        self.assertEqual(self.z("peek", "jobs", "--count", "2").stdout, b"1\n2\n")
        self.assertEqual(self.z("peek", "jobs", "--count", "1024", "--raw").stdout, b"123")
        got = [json.loads(x) for x in
               self.z("peek", "jobs", "--json", "--count", "9").stdout.splitlines()]
        self.assertEqual([m["text"] for m in got], ["1", "2", "3"])
        self.assertEqual(set(got[0]), {"id", "name", "from", "text", "body", "headers", "attempt",
                                       "at", "by"})
        self.assertEqual((self.stat()["depth"], self.stat()["redelivered"]), (3, 0))

    def test_peek_of_nothing(self):
        for more in ((), ("--count", "5")):
            got = self.z("peek", "none", *more)
            self.assertEqual((got.returncode, got.stdout), (3, b""))
            self.assertIn(b"mailbox: empty", got.stderr)

    def test_peek_of_large_messages(self):
        for i in range(12):
            self.z("put", "jobs", stdin=bytes([65 + i]) * 1000000)
        got = self.z("peek", "jobs", "--count", "12")
        self.assertEqual([(line[:1], len(line)) for line in got.stdout.splitlines()],
                         [(bytes([65 + i]), 1000000) for i in range(12)])

    def test_purge(self):
        self.fill(5)
        self.raw.call(op="reserve", id="r", name="jobs")
        self.z("put", "jobs", "later", "--delay", "1h")
        got = self.z("purge", "jobs")
        self.assertEqual((got.returncode, got.stdout, got.stderr), (0, b"5\n", b""))
        self.assertEqual((self.stat()["depth"], self.stat()["delayed"], self.stat()["leased"]),
                         (0, 0, 1))
        self.assertEqual(self.z("purge", "jobs").stdout, b"0\n")
        self.assertEqual(self.z("purge", "none", "--json").stdout, b'{"count":0}\n')

    def test_mv(self):
        self.fill(5)
        got = self.z("mv", "jobs", "other", "--count", "2")
        self.assertEqual((got.returncode, got.stdout, got.stderr), (0, b"2\n", b""))
        self.assertEqual(self.z("mv", "jobs", "other", "--json").stdout, b'{"count":3}\n')
        self.assertEqual(self.taken("other"), [1, 2, 3, 4, 5])
        self.assertEqual(self.z("mv", "jobs", "other").stdout, b"0\n")

    def test_mv_of_more_than_one_page(self):
        self.bus = self.hub("--mailbox-cap", "10000")
        self.raw = self.conn(self.bus)
        self.fill(3000)
        self.assertEqual(self.z("mv", "jobs", "other", "--count", "1500").stdout, b"1500\n")
        self.assertEqual(self.z("mv", "jobs", "other").stdout, b"1500\n")
        self.assertEqual(self.taken("other"), list(range(1, 3001)))

    def test_mv_into_a_full_mailbox(self):
        self.bus = self.hub("--mailbox-cap", "10")
        self.raw = self.conn(self.bus)
        self.fill(10)
        self.fill(7, "other")
        got = self.z("mv", "jobs", "other")
        self.assertEqual((got.returncode, got.stdout), (4, b"3\n"))
        self.assertIn(b"other: is full", got.stderr)
        self.assertEqual(self.taken("jobs"), [4, 5, 6, 7, 8, 9, 10])
        self.assertEqual(sorted(self.taken("other")), sorted([1, 2, 3, 4, 5, 6, 7, 1, 2, 3]))

    def test_bad_input(self):
        for args in (("peek",), ("peek", "a", "b"), ("peek", "a", "--count", "0"),
                     ("peek", "a", "--count", "1025"), ("purge",), ("purge", "a", "b"), ("mv",),
                     ("mv", "a"), ("mv", "a", "a"), ("mv", "a", "b", "c"), ("bind",),
                     ("bind", "a"), ("unbind", "a"), ("bind", "a", "b", "c")):
            got = self.z(*args)
            self.assertEqual((got.returncode, got.stdout), (2, b""), args)
        for args in (("peek", ""), ("purge", ""), ("mv", "", "a"), ("mv", "a", ""),
                     ("bind", "", "a")):
            self.assertEqual(self.z(*args).returncode, 1, args)
        for args in (("peek", "a"), ("purge", "a"), ("mv", "a", "b"), ("bind", "a", "b")):
            self.assertEqual(cli(*args, listen="/nowhere/s").returncode, 1)

    def test_the_hub_goes_away(self):
        self.fill(3)
        self.bus.proc.send_signal(signal.SIGSTOP)
        p = self.start("mv", "jobs", "other")
        time.sleep(0.5)  # it is connected and waits
        self.bus.kill()
        out, err = p.communicate(timeout=10 * SLOW)
        self.assertEqual((p.returncode, out), (1, b""))
        self.assertIn(b"closed", err)


class Routes(Operators):
    def test_bind_and_unbind(self):
        got = self.z("bind", "log", "ev.")
        self.assertEqual((got.returncode, got.stdout, got.stderr), (0, b"", b""))
        self.z("pub", "ev.a", "one")
        self.z("pub", "other", "no")
        self.assertEqual(self.z("take", "log", "--wait", "5").stdout, b"one\n")
        self.assertEqual(self.z("unbind", "log", "ev.").returncode, 0)
        self.z("pub", "ev.a", "two")
        self.assertEqual(self.z("take", "log", "--wait", "0").returncode, 3)
        self.assertEqual(self.z("bind", "log", "$zmqcat.").returncode, 4)

    def test_a_binding_outlives_the_hub(self):
        self.bus = self.hub(durable=True)
        self.z("bind", "log", "ev.")
        self.bus.restart(signal.SIGKILL)
        self.z("pub", "ev.a", "one")
        self.assertEqual(self.z("take", "log", "--wait", "5").stdout, b"one\n")

    def test_a_put_for_a_consumer_only(self):
        got = self.z("put", "jobs", "x", "--if-consumer")
        self.assertEqual(got.returncode, 4)
        self.assertIn(b"zmqcat: put jobs: ", got.stderr)
        self.assertIn(b"hint: ", got.stderr)
        self.assertEqual(self.stat()["depth"], 0)
        taker = subprocess.Popen([CLI, "take", "jobs", "-l", self.bus.listen],
                                 stdout=subprocess.PIPE)
        wait_for(lambda: self.stat()["waiting"] == 1)
        self.assertEqual(self.z("put", "jobs", "x", "--if-consumer").returncode, 0)
        self.assertEqual(taker.communicate(timeout=10 * SLOW)[0], b"x\n")

    def test_filters_of_sub_and_work(self):
        for name in ("bob", "eve", "ann"):
            self.z("pub", "ev." + name, "from " + name, "--name", name)
            self.z("put", "jobs", name, "--name", name)
        for words, want in (("bob", {"bob"}), ("bob, ann", {"bob", "ann"}),
                            ("!eve", {"bob", "ann"}), ("", {"bob", "eve", "ann"})):
            got = self.z("sub", "ev.", "--filter", words, "--count", str(len(want)))
            self.assertEqual({line.split(b"\t")[1].decode() for line in got.stdout.splitlines()},
                             want)
            self.assertEqual(self.z("sub", "ev.", "--filter", words, "--count",
                                    str(len(want) + 1), "--wait", "200ms").returncode, 3)
        got = self.z("work", "jobs", "--filter", "!eve", "--wait", "0", "--", "cat")
        self.assertEqual((got.returncode, got.stdout), (3, b"bobann"))
        self.assertEqual(self.taken_text("jobs"), ["eve"])

    def taken_text(self, name):
        return self.z("take", name, "--count", "99", "--wait", "0").stdout.decode().split()


if __name__ == "__main__":
    harness.main()
