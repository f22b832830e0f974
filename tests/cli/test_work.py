"""work: a command for each message."""
import os, re, signal, time

import command
import harness
from harness import SLOW, cli, read_file, tempdir, wait_for


class Workers(command.Case):
    def setUp(self):
        super().setUp()
        self.dir = tempdir()

    def start(self, *args, **more):
        """A worker in the background."""
        return super().start("work", "jobs", *args, **more)

    def waiting(self, n=1):
        wait_for(lambda: self.stat()["waiting"] == n)

    def path(self, name):
        return os.path.join(self.dir, name)

    def is_up(self, p):
        """Whether it has reached the hub and catches SIGTERM."""
        caught = re.search(rb"SigCgt:\s*(\w+)", read_file("/proc/%d/status" % p.pid))[1]
        return int(caught, 16) >> signal.SIGTERM - 1 & 1

    def children(self, p):
        return read_file("/proc/%d/task/%d/children" % (p.pid, p.pid)).split()


class Work(Workers):
    def test_payload_on_stdin_and_message_in_the_environment(self):
        # All bytes, more than a pipe holds.
        payload = bytes(range(256)) * 2000
        self.z("put", "jobs", "--name", "bob", "-H", "my-key=a b", "-H", "odd=\u00e9=", "-H",
               "sp ace=x", stdin=payload)
        got = self.z("work", "jobs", "--count", "1", "--", "cat")
        self.assertEqual((got.returncode, got.stderr), (0, b""))
        self.assertEqual(got.stdout, payload)
        self.z("put", "jobs", "x", "--name", "bob", "-H", "my-key=a b", "-H", "odd=\u00e9=", "-H",
               "sp ace=x")
        got = self.z("work", "jobs", "--count", "1", "--", "env",
                     env={"ZMQCAT_HEADER_OUTER": "no", "ZMQCAT_ID": "no", "PATH": "/usr/bin:/bin"})
        env = dict(re.findall(r"(?m)^(\w+)=(.*)$", got.stdout.decode()))
        ours = {k: v for k, v in env.items() if re.match("ZMQCAT_(?!BUILD|TEST)", k)}
        self.assertRegex(ours.pop("ZMQCAT_ID"), r"\As\d+:.+")
        self.assertEqual(len(ours.pop("ZMQCAT_AT")), 13)
        self.assertEqual(ours.pop("ZMQCAT_LISTEN"), self.bus.listen)
        self.assertEqual(ours.pop("ZMQCAT_BY"), "uid:%d" % os.getuid())
        self.assertEqual(ours, {"ZMQCAT_MAILBOX": "jobs", "ZMQCAT_FROM": "bob",
                                "ZMQCAT_ATTEMPT": "1", "ZMQCAT_HEADER_MY_KEY": "a b",
                                "ZMQCAT_HEADER_ODD": "\u00e9="})
        self.assertEqual(env["PATH"], "/usr/bin:/bin")

    def test_exit_0_acknowledges_and_all_else_gives_back_for_longer_and_longer(self):
        self.z("put", "jobs", "job")
        got = self.z("work", "jobs", "--count", "3", "--", "sh", "-c",
                     'test "$ZMQCAT_ATTEMPT" = 3 || exit 7')
        self.assertEqual((got.returncode, got.stdout), (0, b""))
        self.assertEqual(re.findall(rb"exited with (\d+): given back for (\d+) s", got.stderr),
                         [(b"7", b"1"), (b"7", b"2")])
        self.assertEqual((self.stat()["depth"], self.stat()["delayed"], self.stat()["leased"]),
                         (0, 0, 0))

    def test_the_delay_ends_at_a_minute(self):
        raw = self.conn(self.bus)
        raw.put("jobs", "job")
        for _ in range(9):
            got = raw.call(op="reserve", id="r", name="jobs")
            raw.call(op="nack", id="n", delivery=got["delivery"])
        got = self.z("work", "jobs", "--count", "1", "--", "false")
        self.assertIn(b"given back for 60 s", got.stderr)

    def test_death_by_signal_gives_back(self):
        self.z("put", "jobs", "job")
        got = self.z("work", "jobs", "--count", "1", "--", "sh", "-c", "kill -9 $$")
        self.assertEqual(got.returncode, 0)
        self.assertIn(b"was ended by signal 9: given back for 1 s", got.stderr)
        self.assertEqual(self.stat()["delayed"], 1)

    def test_a_command_that_ignores_its_input(self):
        self.z("put", "jobs", stdin=b"x" * 1000000)
        self.z("put", "jobs", stdin=b"x" * 1000000)
        got = self.z("work", "jobs", "--count", "1", "--", "true")
        self.assertEqual((got.returncode, got.stderr), (0, b""))
        got = self.z("work", "jobs", "--count", "1", "--", "sh", "-c",
                     "exec <&-; sleep 0.1; echo x")
        self.assertEqual((got.returncode, got.stdout, got.stderr), (0, b"x\n", b""))
        self.assertEqual((self.stat()["depth"], self.stat()["delayed"]), (0, 0))

    def test_a_command_that_prints_a_lot(self):
        self.z("put", "jobs", "job")
        got = self.z("work", "jobs", "--count", "1", "--", "head", "-c", "5000000", "/dev/zero")
        self.assertEqual((got.returncode, len(got.stdout)), (0, 5000000))

    def test_reply(self):
        p = self.start("--reply", "--jobs", "2", "--", "tr", "a-z", "A-Z")
        for size in (0, 5, 1000000):
            got = self.z("req", "jobs", "--timeout", "10s", stdin=b"x" * size)
            self.assertEqual((got.returncode, got.stdout), (0, b"X" * size + b"\n"))
        # What is no request is just acknowledged.
        self.z("put", "jobs", "plain")
        wait_for(lambda: (self.stat()["depth"], self.stat()["leased"]) == (0, 0))
        p.terminate()
        self.assertEqual((p.wait(10 * SLOW), p.stdout.read(), p.stderr.read()), (0, b"", b""))
        self.assertEqual((self.stat()["depth"], self.stat()["delayed"]), (0, 0))

    def test_an_endless_reply_is_not_kept(self):
        self.z("put", "jobs", "job")
        p = self.start("--reply", "--count", "1", "--", "sh", "-c", "timeout 2 yes; true")
        self.assertEqual(p.wait(20 * SLOW), 0)
        self.assertIn(b"too large for a reply: given back for 1 s", p.stderr.read())
        self.assertEqual(self.stat()["delayed"], 1)

    def test_who_holds_the_output_after_the_end_is_not_waited_for(self):
        p = self.start("--reply", "--", "sh", "-c", "sleep 20 & echo $!")
        got = self.z("req", "jobs", "--timeout", "10s")
        os.kill(int(got.stdout), signal.SIGKILL)
        self.assertEqual(got.returncode, 0)
        p.terminate()
        self.assertEqual(p.wait(10 * SLOW), 0)

    def test_the_lease_is_extended_while_the_command_runs(self):
        self.z("put", "jobs", "job")
        p = self.start("--lease", "1s", "--count", "1", "--", "sleep", "3")
        wait_for(lambda: self.stat()["leased"] == 1)
        self.assertEqual(p.wait(20 * SLOW), 0)
        self.assertEqual((self.stat()["depth"], self.stat()["redelivered"]), (0, 0))
        self.assertEqual(p.stderr.read(), b"")

    def test_a_lost_lease_is_told_and_the_result_dropped(self):
        self.z("put", "jobs", "job")
        p = self.start("--lease", "1s", "--count", "1", "--", "sh", "-c", "sleep 0.3; exit 3")
        wait_for(lambda: self.stat()["leased"] == 1)
        p.send_signal(signal.SIGSTOP)
        self.assertEqual(self.z("take", "jobs", "--wait", "10").stdout, b"job\n")
        p.send_signal(signal.SIGCONT)
        self.assertEqual(p.wait(10 * SLOW), 0)
        self.assertRegex(p.stderr.read(), b"its lease was over|delivery not found")
        self.assertEqual((self.stat()["depth"], self.stat()["delayed"]), (0, 0))

    def test_jobs_run_at_the_same_time(self):
        for i in range(6):
            self.z("put", "jobs", str(i))
        script = 'read n || :; : >"%s/$ZMQCAT_ID"; for i in $(seq 100); do ' \
                 'test $(ls "%s" | wc -l) -ge 3 && exit 0; sleep 0.05; done; exit 1' \
                 % (self.dir, self.dir)
        p = self.start("--jobs", "3", "--count", "6", "--", "sh", "-c", script)
        seen = 0
        while p.poll() is None:
            seen = max(seen, self.stat()["leased"])
            time.sleep(0.01)
        self.assertEqual((p.returncode, p.stderr.read()), (0, b""))
        self.assertLessEqual(seen, 3)
        self.assertEqual((self.stat()["depth"], self.stat()["leased"]), (0, 0))

    def test_no_zombie_and_no_descriptor_for_the_command(self):
        p = self.start("--jobs", "4", "--reply", "--", "sh", "-c", "ls /proc/$$/fd; cat >/dev/null")
        got = [self.z("req", "jobs", "--timeout", "10s").stdout for _ in range(20)]
        for one in got:
            self.assertEqual(set(one.split()) - {b"0", b"1", b"2"}, set())
        self.waiting(4)
        self.assertEqual(self.children(p), [])
        fds = os.listdir("/proc/%d/fd" % p.pid)
        self.assertLessEqual(len(fds), 6)
        p.terminate()
        self.assertEqual(p.wait(10 * SLOW), 0)

    def test_sigterm_lets_the_command_finish(self):
        self.z("put", "jobs", "1")
        self.z("put", "jobs", "2")
        for sig in (signal.SIGTERM, signal.SIGINT):
            p = self.start("--", "sh", "-c", "read n || :; sleep 0.5; echo $n")
            wait_for(lambda: self.stat()["leased"] == 1)
            p.send_signal(sig)
            self.assertEqual(p.wait(10 * SLOW), 0)
            self.assertEqual(p.stdout.read(), b"1\n" if sig == signal.SIGTERM else b"2\n")
        self.assertEqual((self.stat()["depth"], self.stat()["leased"]), (0, 0))

    def test_sigterm_without_a_job(self):
        p = self.start("--", "true")
        self.waiting()
        p.terminate()
        self.assertEqual((p.wait(10 * SLOW), p.stderr.read()), (0, b""))

    def test_a_second_signal_ends_the_command_and_the_job_goes_back(self):
        self.z("put", "jobs", "job")
        for script in ("exec sleep 60", "trap '' TERM; sleep 60 & wait $!; sleep 60 & wait"):
            p = self.start("--", "sh", "-c", script)
            wait_for(lambda: self.stat()["leased"] == 1 and self.children(p))
            p.terminate()
            wait_for(lambda: p.stderr.readline())
            p.terminate()
            time.sleep(0.2)
            if p.poll() is None:
                p.terminate()
            self.assertEqual(p.wait(10 * SLOW), 0)
            self.assertEqual((self.stat()["depth"], self.stat()["delayed"]), (1, 0))

    def test_killed_gives_back(self):
        self.z("put", "jobs", "job")
        p = self.start("--", "sleep", "2")
        wait_for(lambda: self.stat()["leased"] == 1)
        p.kill()
        self.assertEqual(self.z("take", "jobs", "--wait", "5").stdout, b"job\n")

    def test_a_command_that_cannot_be_run_takes_nothing(self):
        self.z("put", "jobs", "job")
        plain = harness.write_file(self.path("plain"), "x")
        for command in ("/does/not/exist", "no-such-command", self.dir, plain):
            got = self.z("work", "jobs", "--", command)
            if command == plain and os.getuid() == 0 and got.returncode == 0:
                continue
            self.assertEqual((got.returncode, got.stdout), (78, b""), command)
            self.assertIn(b"cannot be run: ", got.stderr)
        self.assertEqual((self.stat()["depth"], self.stat()["redelivered"]), (1, 0))

    def test_a_command_that_has_gone_gives_the_job_back(self):
        tool = harness.write_file(self.path("tool"), "#!/bin/sh\nexit 0\n", 0o755)
        p = self.start("--count", "1", "--", tool)
        self.waiting()
        os.unlink(tool)
        self.z("put", "jobs", "job")
        self.assertEqual(p.wait(10 * SLOW), 0)
        self.assertIn(b"cannot be run: No such file", p.stderr.read())
        self.assertEqual(self.stat()["delayed"], 1)

    def test_bad_input(self):
        for args in (("work",), ("work", "jobs"), ("work", "jobs", "--"),
                     ("work", "jobs", "--jobs", "0", "--", "true"),
                     ("work", "jobs", "--jobs", "1001", "--", "true"),
                     ("work", "jobs", "--jobs", "x", "--", "true"),
                     ("work", "jobs", "--lease", "-1", "--", "true"),
                     ("work", "jobs", "--json", "--", "true")):
            got = self.z(*args)
            self.assertEqual((got.returncode, got.stdout), (2, b""), args)
        self.assertEqual(self.z("work", "", "--", "true").returncode, 1)
        self.assertEqual(cli("work", "jobs", "--", "true", listen="/nowhere/s").returncode, 1)

    def test_wait(self):
        self.z("put", "jobs", "1")
        self.z("put", "jobs", "2")
        got = self.z("work", "jobs", "--wait", "0", "--jobs", "3", "--", "cat")
        self.assertEqual((got.returncode, sorted(got.stdout)), (3, sorted(b"12")))
        self.assertIn(b"nothing came within --wait", got.stderr)

    def test_an_empty_message(self):
        self.z("put", "jobs", stdin=b"")
        got = self.z("work", "jobs", "--count", "1", "--", "wc", "-c")
        self.assertEqual((got.returncode, got.stdout.strip()), (0, b"0"))


class Away(Workers):
    """The hub goes and comes back."""
    durable = True

    def test_goes_on_when_the_hub_returns_and_says_so_once(self):
        p = self.start("--count", "2", "--", "cat")
        self.z("put", "jobs", "1")
        first = os.read(p.stdout.fileno(), 1)
        wait_for(lambda: (self.stat()["depth"], self.stat()["leased"]) == (0, 0))
        self.z("put", "other", "x")  # what came before it is on disk too
        self.bus.kill()
        time.sleep(1)
        self.bus.start()
        self.z("put", "jobs", "2")
        self.assertEqual(p.wait(20 * SLOW), 0)
        self.assertEqual(first + p.stdout.read(), b"12")
        err = p.stderr.read().splitlines()
        self.assertEqual(len(err), 2, err)
        self.assertIn(b"waiting until it is back", err[0])
        self.assertIn(b"the hub is back", err[1])

    def test_a_job_that_ran_meanwhile_is_done_again(self):
        for sig in (signal.SIGKILL, signal.SIGTERM):
            self.z("put", "jobs", "job")
            p = self.start("--count", "2", "--", "sh", "-c", "cat; sleep 1")
            wait_for(lambda: self.stat()["leased"] == 1)
            self.bus.restart(sig)
            self.assertEqual(p.wait(20 * SLOW), 0)
            self.assertEqual(p.stdout.read(), b"jobjob")
            self.assertIn(b"its lease was over", p.stderr.read())
            self.assertEqual((self.stat()["depth"], self.stat()["leased"]), (0, 0))

    def test_no_job_is_lost_when_hub_workers_and_commands_are_killed(self):
        data = b"".join(b"job%d\n" % i for i in range(60))
        self.assertEqual(self.z("put", "jobs", "--lines", stdin=data).returncode, 0)
        done = self.path("done")
        script = 'read n || :; sleep 0.05; case $ZMQCAT_ATTEMPT$n in 1*7) kill -9 $$;; esac; ' \
                 'echo "$n" >>"%s"' % done
        workers = [self.start("--jobs", "4", "--", "sh", "-c", script) for _ in range(2)]
        for turn in range(3):
            wait_for(lambda: all(self.is_up(p) for p in workers))
            time.sleep(0.4)
            self.bus.restart(signal.SIGKILL)
            workers[turn % 2].kill()
            workers[turn % 2] = self.start("--jobs", "4", "--", "sh", "-c", script)
        stat = {}

        def over():
            stat.update(self.stat())
            return stat["depth"] + stat["leased"] + stat["delayed"] == 0
        wait_for(over, 30)
        self.assertEqual(set(read_file(done).split()), set(data.split()))
        for p in workers:
            wait_for(lambda: self.is_up(p))
            p.terminate()
            self.assertEqual(p.wait(10 * SLOW), 0, p.stderr.read())

    def test_stops_while_the_hub_is_away(self):
        p = self.start("--", "true")
        self.waiting()
        self.bus.kill()
        wait_for(lambda: p.stderr.readline())
        p.terminate()
        self.assertEqual(p.wait(10 * SLOW), 0)


class Hangs(Workers):
    """The hub stands still while jobs run."""

    def hangs(self):
        """A worker with two jobs: `quick` has ended and the hub does not hear of it; the other will
        write more than a pipe holds, and say so. Returns the worker and the other's process."""
        script = 'read n || :; until test -e "%s"; do sleep 0.05; done; ' \
                 'test $n = quick && exit; sleep 1; head -c 300000 /dev/zero; : >"%s"; ' \
                 'exec sleep 60' % (self.path("go"), self.path("written"))
        p = self.start("--jobs", "2", "--reply", "--", "sh", "-c", script)
        self.z("put", "jobs", "quick")
        self.z("put", "jobs", "long")
        wait_for(lambda: self.stat()["leased"] == 2)
        self.freeze()
        harness.write_file(self.path("go"), "")
        wait_for(lambda: len(self.children(p)) == 1)
        child = int(self.children(p)[0])
        self.addCleanup(self.end, child)
        return p, child

    def end(self, pid):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def test_output_is_read(self):
        p, _ = self.hangs()
        self.assertFalse(os.path.exists(self.path("written")))
        wait_for(lambda: os.path.exists(self.path("written")), 5)
        self.assertIsNone(p.poll())

    def test_signals_are_acted_on(self):
        p, child = self.hangs()
        p.terminate()
        self.assertIn(b"may finish", p.stderr.readline())
        time.sleep(1.5)
        self.assertIsNone(p.poll())
        self.assertTrue(os.path.exists("/proc/%d" % child))
        p.terminate()
        self.assertEqual(p.wait(3 * SLOW), 0)
        self.assertFalse(os.path.exists("/proc/%d" % child))
        self.assertIn(b"given out again", p.stderr.read())

    def test_what_runs_may_finish(self):
        self.z("put", "jobs", "x")
        p = self.start("--lease", "1s", "--", "sh", "-c", 'sleep 2; : >"%s"' % self.path("done"))
        wait_for(lambda: self.stat()["leased"] == 1)
        self.freeze()
        time.sleep(1)  # it waits for the answer to its touch
        p.terminate()
        self.assertEqual(p.wait(10 * SLOW), 0)
        self.assertTrue(os.path.exists(self.path("done")))

    def test_a_job_that_was_done_meanwhile_is_done(self):
        self.z("put", "jobs", "x")
        p = self.start("--count", "1", "--", "sh", "-c", 'until test -e "%s"; do sleep 0.05; done'
                       % self.path("go"))
        wait_for(lambda: self.stat()["leased"] == 1)
        self.freeze()
        harness.write_file(self.path("go"), "")
        wait_for(lambda: not self.children(p))
        time.sleep(0.2)
        p.terminate()
        self.assertEqual(p.wait(3 * SLOW), 0)
        self.bus.proc.send_signal(signal.SIGCONT)
        stat = self.stat()
        self.assertEqual((stat["depth"], stat["leased"]), (0, 0))


class Spokes(Workers):
    """The worker is on another host than the hub."""

    def test_goes_on_when_the_hub_of_a_spoke_returns(self):
        relay = harness.Relay()
        self.addCleanup(relay.__exit__)
        hub = harness.TunnelHub(relay)
        self.addCleanup(hub.__exit__)
        hub.token()
        spoke = harness.Spoke(hub.token_file).joined()
        self.addCleanup(spoke.__exit__)
        p = command.Case.start(self, "work", "jobs", "--reply", "--", "rev", bus=spoke)

        def asked(text):
            got = cli("req", "jobs", text, "--timeout", "30s", "--retries", "1", timeout=60,
                      listen=hub.listen)
            self.assertEqual((got.returncode, got.stderr), (0, b""))
            return got.stdout
        self.assertEqual(asked("abc"), b"cba\n")
        hub.restart(signal.SIGKILL)
        self.assertEqual(asked("def"), b"fed\n")
        p.terminate()
        self.assertEqual(p.wait(20 * SLOW), 0)
        err = p.stderr.read().splitlines()
        self.assertEqual(len(err), 2, err)
        self.assertIn(b"waiting until it is back", err[0])
        self.assertIn(b"the hub is back", err[1])


if __name__ == "__main__":
    harness.main()
