"""Tokens: where they come from, which are refused (field case R12), how they change."""
import os, signal, subprocess, sys, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness
from harness import Case, cli, tempdir, wait_for, write_file


class Tokens(Case):
    def setUp(self):
        self.r = self.relay()

    def token_file(self, text):
        return write_file(os.path.join(tempdir(), "token"), text)

    def refused(self, text, why):
        s = self.spoke(self.token_file(text), start=False)
        got = s.run()
        self.assertEqual(got.returncode, 78, got.stderr)
        self.assertEqual(got.stdout, b"")
        said = [l for l in got.stderr.decode().splitlines() if "key file" not in l]
        self.assertEqual(len(said), 1, said)
        self.assertRegex(said[0], why)
        if len(text) > 20:
            self.assertNotIn(text.strip()[8:40] if isinstance(text, str) else "\0", said[0])

    def test_r12_bad_tokens_are_refused_in_one_line(self):
        h = self.tunnel_hub(self.r)
        token = h.token()
        for text, why in (("", "empty"), ("\n \n", "empty"), (token + "\n" + token, "line"),
                          (token[:-20], "cut|end|base64"), ("xx" + token[2:], "tc"),
                          (token.upper(), "."), ("tcAAAA", "."), (token + "=", "."),
                          (b"\x00\x01", "."), ("x" * 20000, ".")):
            with self.subTest(text if len(text) < 30 else text[:10]):
                self.refused(text, why)

    def test_white_space_cr_and_bom_are_dropped(self):
        h = self.tunnel_hub(self.r)
        s = self.spoke(self.token_file(b"\xef\xbb\xbf  " + h.token().encode() + b" \r\n"))
        s.joined()

    def test_a_late_token_is_waited_for(self):
        h = self.tunnel_hub(self.r)
        path = os.path.join(tempdir(), "late")
        s = self.spoke(path)
        wait_for(lambda: "waiting for it" in s.logged())
        c = self.conn(s)
        c.send(v=1, op="put", name="early", text="x", id="1")
        time.sleep(2.5)
        self.assertEqual(s.logged().count("waiting"), 1)
        write_file(path, h.token() + "\n")
        self.assertFrame(c.recv(), op="ok", id="1")

    def test_a_late_bad_token_ends_the_spoke(self):
        path = os.path.join(tempdir(), "late")
        s = self.spoke(path)
        write_file(path, "nonsense\n")
        self.assertEqual(s.proc.wait(10 * harness.SLOW), 78)

    def test_a_late_token_is_not_judged_while_it_is_written(self):
        """What is no token at one look, a second apart, may be one at the next. The first is a
        second after it waits."""
        h = self.tunnel_hub(self.r)
        for _ in range(5):
            path = os.path.join(tempdir(), "late")
            s = self.spoke(path)
            wait_for(lambda: "waiting for it" in s.logged())
            began = time.monotonic()
            time.sleep(0.5)
            write_file(path, h.token()[:40])
            time.sleep(1)
            write_file(path, h.token() + "\n")
            if time.monotonic() - began < 1.9:
                s.joined()
                return
            s.stop()
        self.fail("this machine is too slow for it")

    def test_a_token_for_all_to_read_brings_a_warning(self):
        h = self.tunnel_hub(self.r)
        path = self.token_file(h.token())
        for mode, warned in ((0o644, 1), (0o640, 0)):
            os.chmod(path, mode)
            s = self.spoke(path)
            s.joined()
            self.assertEqual(s.logged().count("everybody on this host can read it"), warned)
            s.stop()

    def test_credential(self):
        h = self.tunnel_hub(self.r)
        path = self.token_file(h.token() + "\n")
        s = self.spoke(None, env={"CREDENTIALS_DIRECTORY": os.path.dirname(path)})
        s.joined()
        os.unlink(path)
        got = self.spoke(None, env={"CREDENTIALS_DIRECTORY": os.path.dirname(path)},
                         start=False).run()
        self.assertEqual(got.returncode, 1, got.stderr)
        self.assertIn(b"/etc/credstore/token", got.stderr)

    def test_spokes_and_hubs_of_one_host_have_no_token(self):
        for d in (self.spoke(self.tunnel_hub(self.r)).joined(), self.hub()):
            for verb in ("token", "rotate"):
                got = cli(verb, listen=d.listen)
                self.assertEqual(got.returncode, 1)
                self.assertRegex(got.stderr, rb"\Azmqcat: %s: there is no token here: .*--local"
                                 % verb.encode())

    def test_no_token_before_a_relay_is_known(self):
        os.unlink(self.r.map)
        h = self.tunnel_hub(self.r)
        for verb in ("token", "rotate"):
            got = cli(verb, listen=h.listen)
            self.assertEqual((got.returncode, got.stdout), (1, b""))
            self.assertEqual(got.stderr.decode(), "zmqcat: %s: no relay is known yet: the hub's "
                             "log says what it waits for\n" % verb)

    def test_a_hub_that_starts_is_waited_for(self):
        """`zmqcat token` right behind its start, as docs/admin.md has it."""
        os.rename(self.r.map, self.r.map + ".away")
        h = self.tunnel_hub(self.r)
        asked = subprocess.Popen([harness.CLI, "token", "--listen", h.listen],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(asked.kill)
        time.sleep(0.5)
        self.assertIsNone(asked.poll())
        os.rename(self.r.map + ".away", self.r.map)
        out, err = asked.communicate(timeout=10 * harness.SLOW)
        self.assertEqual((asked.returncode, out.decode(), err), (0, h.token() + "\n", b""))

    def test_no_token_at_all(self):
        env = {k: v for k, v in os.environ.items() if k != "CREDENTIALS_DIRECTORY"}
        got = self.spoke(None, start=False, env=env).run()
        self.assertEqual(got.returncode, 78)
        self.assertIn(b"--token-file", got.stderr)

    def test_token_on_the_command_line_warns_and_vanishes(self):
        h = self.tunnel_hub(self.r)
        token = h.token()
        s = self.spoke(None, start=False)
        s.start(token)
        s.joined()
        self.assertIn("others on this host can read it", s.logged())
        with open("/proc/%d/cmdline" % s.proc.pid, "rb") as f:
            self.assertNotIn(token.encode(), f.read())

    def test_reload_joins_another_hub(self):
        a, b = self.tunnel_hub(self.r), self.tunnel_hub(self.r)
        path = self.token_file(a.token())
        s = self.spoke(path).joined()
        self.conn(b).put("who", "b")
        self.conn(a).put("who", "a")
        self.assertEqual(self.conn(s).call(v=1, op="take", name="who", id="t")["text"], "a")
        old = self.conn(s, hello=True)
        write_file(path, "nonsense")
        s.proc.send_signal(signal.SIGHUP)
        wait_for(lambda: "from before stays" in s.logged())
        old.sync()
        write_file(path, b.token())
        s.proc.send_signal(signal.SIGHUP)
        self.assertTrue(old.closed())
        s.joined()
        self.assertEqual(self.conn(s).call(v=1, op="take", name="who", id="t")["text"], "b")

    def test_r12_wrong_psk_says_so(self):
        h = self.tunnel_hub(self.r)
        path = self.token_file(h.token())
        got = cli("rotate", "--listen", h.listen)
        self.assertEqual(got.returncode, 0, got.stderr)
        new = got.stdout.decode().strip()
        self.assertEqual(new, h.token())
        s = self.spoke(path, "--wait-hub", "3s")
        c = self.conn(s)
        c.send(v=1, op="ping", id="p")
        self.assertErr(c.recv(), "unavailable")
        self.assertIn("pre-shared key", s.logged())
        write_file(path, new)
        s.proc.send_signal(signal.SIGHUP)
        s.joined(15)

    def test_rotate_ends_sessions_and_outlives_a_restart(self):
        h = self.tunnel_hub(self.r)
        old = h.token()
        path = self.token_file(old)
        s = self.spoke(path, "--wait-hub", "2s").joined()
        c = self.conn(s, hello=True)
        new = cli("rotate", "--listen", h.listen).stdout.decode().strip()
        self.assertNotEqual(old, new)
        self.assertEqual(cli("token", "--listen", h.listen).stdout.decode().strip(), new)
        self.assertTrue(c.closed(3))
        h.restart()
        self.assertEqual(h.token(), new)
        write_file(path, new)
        s.proc.send_signal(signal.SIGHUP)
        s.joined(15)

    def test_serve_prints_the_token_alone(self):
        d = tempdir()
        p = subprocess.Popen([harness.CLI, "serve", "--listen", d + "/s", "--derp-map", self.r.map],
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
        line = p.stdout.readline().decode()
        self.assertRegex(line, r"\Atc[A-Za-z0-9_-]+\n\Z")
        s = self.spoke(self.token_file(line)).joined()
        join = subprocess.Popen([harness.CLI, "join", line.strip(), "--listen", d + "/j"],
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)
        for said in join.stderr:
            if said.startswith(b"joined; local "):
                break
        else:
            self.fail("join ended")
        self.assertEqual(said, b"joined; local unix://" + d.encode() + b"/j\n")
        cli("put", "x", "y", listen=d + "/j")
        self.assertEqual(cli("take", "x", listen=s.listen).stdout, b"y\n")
        join.terminate()
        p.terminate()
        self.assertEqual(join.wait(10 * harness.SLOW), 0)
        out, err = p.communicate(timeout=10 * harness.SLOW)
        self.assertEqual((p.returncode, out), (0, b""))
        self.assertNotIn(line.strip().encode(), err)
        self.assertEqual(join.stdout.read(), b"")
        join.stdout.close()
        join.stderr.close()


if __name__ == "__main__":
    harness.main()
