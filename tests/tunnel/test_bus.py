"""Hub, relay and spokes as processes: the bus and forwarded ports through the tunnel, and what must
not be seen of it."""
import hashlib, os, re, signal, socket, stat, subprocess, sys, threading, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness
from harness import (Case, Conn, TunnelledHub, cli, nodekey, payload, plain, read_file, tempdir,
                     together, wait_for, write_file)


class Bus(Case):
    def setUp(self):
        self.r = self.relay()
        self.h = self.tunnel_hub(self.r)
        self.s = self.spoke(self.h).joined()

    def test_put_here_take_there(self):
        here, there = self.conn(self.h, hello=True), self.conn(self.s, hello=True)
        self.assertEqual(here.put("jobs", "one")["op"], "ok")
        got = there.call(v=1, op="take", name="jobs", id="t")
        self.assertFrame(got, op="msg", text="one")
        self.assertEqual(there.put("jobs", "two")["op"], "ok")
        got = here.call(v=1, op="take", name="jobs", id="t")
        self.assertFrame(got, op="msg", text="two", by=nodekey(self.s.key))

    def test_largest_payload_both_ways(self):
        data = os.urandom(1 << 20)
        path = write_file(os.path.join(tempdir(), "f"), data)
        for a, b in ((self.h, self.s), (self.s, self.h)):
            self.assertEqual(cli("put", "big", "--file", path, listen=a.listen).returncode, 0)
            got = cli("take", "big", "--raw", listen=b.listen)
            self.assertEqual(hashlib.sha256(got.stdout).digest(), hashlib.sha256(data).digest())

    def test_request_and_reply(self):
        worker, client = self.conn(self.h, hello=True), self.conn(self.s, hello=True)
        client.send(v=1, op="req", id="q", name="svc", text="ask")
        got = worker.call(v=1, op="ready", name="svc", id="r")
        worker.send(v=1, op="rep", id=got["id"], name="svc", text="answer")
        self.assertFrame(client.recv(), op="rep", id="q", text="answer")

    def test_subscription_and_heartbeat(self):
        sub = self.conn(self.s, hello=True)
        self.assertEqual(sub.call(v=1, op="sub", name="ev.", id="s")["op"], "ok")
        pub = self.conn(self.h, hello=True)
        for i in range(200):
            pub.send(v=1, op="pub", name="ev.x", text=str(i), id=str(i))
            self.assertEqual(pub.recv()["op"], "ok")
            self.assertFrame(sub.recv(), op="msg", text=str(i))

    def test_half_close_is_answered(self):
        c = self.conn(self.s)
        c.send(v=1, op="put", name="half", text="x", id="1")
        c.half_close()
        self.assertFrame(c.recv(), op="ok", id="1")
        self.assertTrue(c.closed())
        self.assertEqual(self.conn(self.h).call(v=1, op="take", name="half", id="t")["text"], "x")

    def test_a_client_that_leaves_gives_back_what_it_holds(self):
        self.conn(self.h).put("lease", "x")
        c = self.conn(self.s)
        self.assertEqual(c.call(v=1, op="reserve", name="lease", id="r", lease=600)["text"], "x")
        c.close()
        other = self.conn(self.s)
        self.assertEqual(other.call(v=1, op="reserve", name="lease", id="r")["text"], "x")

    def test_garbage_ends_one_connection_only(self):
        bad, good = self.conn(self.s), self.conn(self.s, hello=True)
        bad.send_raw(b"GET / HTTP/1.1\r\n\r\n")
        self.assertErr(bad.recv(), "bad_frame")
        self.assertTrue(bad.closed())
        good.sync()

    def test_many_connections(self):
        conns = [self.conn(self.s, hello=True) for _ in range(100)]
        for i, c in enumerate(conns):
            c.send(v=1, op="put", name="many", text=str(i), id=str(i))
        for c in conns:
            self.assertEqual(c.recv()["op"], "ok")
        got = {self.conn(self.h).call(v=1, op="take", name="many", id="t")["text"]
               for _ in range(100)}
        self.assertEqual(len(got), 100)

    def test_ping_and_status(self):
        got = cli("ping", "-v", listen=self.s.listen)
        self.assertRegex(got.stdout, rb"\Apong\nround trip \d+\.\d{3} ms\npath relay\n\Z")
        got = cli("ping", "-v", listen=self.h.listen)
        self.assertRegex(got.stdout, rb"\npath local\n\Z")
        hub, spoke = self.h.status()["tunnel"], self.s.status()["tunnel"]
        self.assertEqual((hub["state"], spoke["state"]), ("online", "up"))
        self.assertEqual(hub["relay"], "127.0.0.1:%d" % self.r.port)
        self.assertEqual([p["nodekey"] for p in hub["peers"]], [nodekey(self.s.key)])
        self.assertEqual([p["nodekey"] for p in spoke["peers"]], [nodekey(self.h.key)])
        for peer in hub["peers"] + spoke["peers"]:
            self.assertEqual(peer["path"], "relay")
            self.assertGreater(peer["rx"], 0)
            self.assertGreater(peer["tx"], 0)
            self.assertGreaterEqual(peer["handshake_age_s"], 0)
        self.assertIn(b"tunnel.state", cli("status", "--listen", self.s.listen).stdout)

    def test_ping_when_the_relay_is_away(self):
        self.r.stop()
        wait_for(lambda: self.s.status()["tunnel"]["state"] != "up")
        got = cli("ping", "-v", listen=self.s.listen)
        self.assertEqual((got.returncode, got.stdout), (3, b"path none\n"), got.stderr)

    def test_stop_is_clean(self):
        c = self.conn(self.s, hello=True)
        c.send(v=1, op="take", name="never", id="t")
        c.sync()
        self.assertEqual(self.h.stop(), 0)
        self.assertFrame(c.recv(), op="err", error="mailbox: closed")
        self.assertTrue(c.closed())
        self.assertEqual(self.s.stop(), 0)
        self.assertFalse(os.path.exists(self.s.path))
        self.assertFalse(os.path.exists(self.s.path + ".ctl"))


class Restarts(Case):
    def test_each_restart_of_the_hub_is_noticed_at_once(self):
        """A relay tells a connection only once that a peer has left."""
        h = self.tunnel_hub(self.relay())
        s = self.spoke(h).joined()
        for n in range(4):
            c = self.conn(s, hello=True)
            c.send(v=1, op="take", name="never", id="t")
            c.sync()
            h.restart(signal.SIGKILL)
            self.assertTrue(c.closed(4), n)
            start = time.monotonic()
            self.conn(s).sync()
            self.assertLess(time.monotonic() - start, 4 * harness.SLOW)


class Forward(Case):
    def serve(self, handler):
        """A TCP service on 127.0.0.1; its port."""
        s = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(s.close)

        def run():
            while True:
                try:
                    c = s.accept()[0]
                except OSError:
                    return
                threading.Thread(target=handler, args=(c,), daemon=True).start()
        threading.Thread(target=run, daemon=True).start()
        return s.getsockname()[1]

    def free_port(self):
        with socket.create_server(("127.0.0.1", 0)) as s:
            return s.getsockname()[1]

    def setUp(self):
        self.r = self.relay()

    def pair(self, port, *more, offered=None):
        local = self.free_port()
        self.h = self.tunnel_hub(self.r, "--forward", str(offered or port))
        self.s = self.spoke(self.h, "--forward", "%d:%d" % (local, port), *more).joined()
        return local

    def test_half_close_both_ways_and_much_data(self):
        def reverse(c):
            data = b""
            while True:
                more = c.recv(1 << 16)
                if not more:
                    break
                data += more
            c.sendall(hashlib.sha256(data).digest() + data[::-1])
            c.close()
        local = self.pair(self.serve(reverse))
        data = os.urandom(8 << 20)
        with socket.create_connection(("127.0.0.1", local), timeout=60 * harness.SLOW) as c:
            threading.Thread(target=lambda: (c.sendall(data), c.shutdown(socket.SHUT_WR))).start()
            got = b""
            while True:
                more = c.recv(1 << 16)
                if not more:
                    break
                got += more
        self.assertEqual(len(got), 32 + len(data))
        self.assertEqual(got[:32], hashlib.sha256(data).digest())
        self.assertEqual(got[32:], data[::-1])

    def assertUnserved(self, local):
        with socket.create_connection(("127.0.0.1", local), timeout=20 * harness.SLOW) as c:
            try:
                c.sendall(b"hello")
                self.assertEqual(c.recv(10), b"")
            except ConnectionResetError:
                pass

    def test_nobody_serves_the_port(self):
        port = self.free_port()
        local = self.pair(port)
        for _ in range(3):
            self.assertUnserved(local)
        wait_for(lambda: "forwarded port %d: Connection refused" % port in self.h.logged())
        self.assertEqual(self.h.logged().count("forwarded port"), 1)

    def test_the_hub_does_not_offer_the_port(self):
        port = self.free_port()
        local = self.pair(port, "--wait-hub", "500ms", offered=port ^ 1)
        self.assertUnserved(local)
        wait_for(lambda: re.search("forwarded port %d: .*--forward" % port, self.s.logged()))

    def test_reset_is_passed_on(self):
        def reset(c):
            c.recv(10)
            c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            c.close()
        local = self.pair(self.serve(reset))
        with socket.create_connection(("127.0.0.1", local), timeout=20 * harness.SLOW) as c:
            c.sendall(b"hello")
            with self.assertRaises(ConnectionResetError):
                c.recv(10)

    def test_the_end_comes_before_the_service_accepts(self):
        """A connection on which nothing is sent waits in the service's queue like any other."""
        service = socket.socket()
        self.addCleanup(service.close)
        service.bind(("127.0.0.1", 0))
        service.listen(0)
        port = service.getsockname()[1]
        local = self.pair(port)
        first = socket.create_connection(("127.0.0.1", port))  # the queue is full
        with first, socket.create_connection(("127.0.0.1", local), timeout=30 * harness.SLOW) as c:
            c.shutdown(socket.SHUT_WR)
            time.sleep(0.5)
            service.accept()[0].close()
            service.settimeout(20 * harness.SLOW)
            far = service.accept()[0]
            self.assertEqual(far.recv(10), b"")
            far.sendall(b"greeting")
            far.close()
            self.assertEqual(c.recv(100), b"greeting")

    def test_a_port_that_the_hub_does_not_offer(self):
        local, port = self.free_port(), self.serve(lambda c: c.sendall(b"secret"))
        h = self.tunnel_hub(self.r)
        self.spoke(h, "--forward", "%d:%d" % (local, port), "--wait-hub", "2s").joined()
        with socket.create_connection(("127.0.0.1", local), timeout=30 * harness.SLOW) as c:
            try:
                self.assertEqual(c.recv(10), b"")
            except ConnectionResetError:
                pass


class Many(Case):
    def test_ten_spokes(self):
        h = self.tunnel_hub(self.relay())
        spokes = [self.spoke(h) for _ in range(10)]
        for s in spokes:
            s.joined()
        conns = [self.conn(s, hello=True) for s in spokes]
        for i, c in enumerate(conns):
            self.assertEqual(c.put("m", str(i))["op"], "ok")
        for i, c in enumerate(reversed(conns)):
            got = c.call(v=1, op="take", name="m", id="t")
            self.assertFrame(got, text=str(i), by=nodekey(spokes[i].key))
        self.assertEqual(len(h.status()["tunnel"]["peers"]), 10)

    def test_one_of_ten_is_killed(self):
        """Nine go on as if nothing were. What its clients held returns when a lease ends or when it
        comes back; without either after a minute, as from a host that is gone."""
        h = TunnelledHub()
        self.addCleanup(h.__exit__)
        workers = [self.conn(h, hello=True) for _ in range(10)]
        local = Conn(h.path)
        self.addCleanup(local.close)
        for i in range(10):
            local.put("jobs", str(i))
        held = [w.call(v=1, op="reserve", name="jobs", lease=600) for w in workers]
        self.assertEqual([payload(m) for m in held], [b"%d" % i for i in range(10)])
        local.put("short", "x")
        self.assertEqual(workers[3].call(v=1, op="reserve", name="short", lease=2)["op"], "msg")
        victim, left = h.spokes[3], workers[:3] + workers[4:]
        threads = [lambda w=w, n=n: self.echo(w, "own%d" % n) for n, w in enumerate(left)]
        together(lambda: (time.sleep(0.1), victim.kill()), *threads)
        for w, m in zip(left, held[:3] + held[4:]):
            self.assertEqual(w.call(v=1, op="ack", delivery=m["delivery"])["op"], "ok")
        self.assertTrue(workers[3].closed())
        got = local.call(v=1, op="take", name="short", wait=9)
        self.assertFrame(got, op="msg", text="x", attempt=2)
        victim.start()
        got = local.call(v=1, op="take", name="jobs", wait=9)
        self.assertFrame(got, op="msg", text="3", attempt=2)
        wait_for(lambda: h.status()["sessions"] == 10)
        again = self.conn(victim, hello=True)
        self.assertEqual(again.put("jobs", "back")["op"], "ok")
        self.assertFrame(local.call(v=1, op="take", name="jobs"), text="back", by=victim.identity())

    def echo(self, c, name):
        for i in range(300):
            self.assertEqual(c.put(name, "%d " % i + "x" * 1000)["op"], "ok")
            self.assertEqual(payload(c.call(v=1, op="take", name=name)).split()[0], b"%d" % i)


class Secrets(Case):
    def test_nothing_leaks(self):
        r = self.relay()
        h = self.tunnel_hub(r, "--trace")
        s = self.spoke(h, "--trace").joined()
        self.conn(s, hello=True).put("x", "y")
        for path in (h.key, s.key, h.token_file):
            self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600, path)
        secrets = [h.token()]
        for path in (h.key, s.key):
            with open(path) as f:
                secrets += re.findall(r"(?:privkey|psk):([0-9a-f]{64})", f.read())
        self.assertEqual(len(secrets), 4)
        for d in (h, s):
            shown = d.logged().encode()
            # Who is not root sees no environment of a process that may not be looked into.
            for name in ("cmdline", "environ") if os.getuid() == 0 else ("cmdline",):
                with open("/proc/%d/%s" % (d.proc.pid, name), "rb") as f:
                    shown += f.read()
            shown += cli("status", "--json", "--listen", d.listen).stdout
            for secret in secrets:
                self.assertNotIn(secret.encode(), shown)
            with open("/proc/%d/limits" % d.proc.pid) as f:
                self.assertRegex(f.read(), r"Max core file size +0 +0 ")

    @plain("the sanitizers look into the process themselves")
    def test_its_own_user_may_not_look_into_it(self):
        """A debugger may not, and no core file is written for it."""
        if os.getuid() != 0:
            self.skipTest("only root can become somebody else")
        home = tempdir()
        os.chown(home, 65534, 65534)
        nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
        s = self.spoke(home + "/late", start=False, wrapper=nobody)
        s.key, s.path = home + "/k", home + "/s"
        s.listen = "unix://" + s.path
        s.start()
        other = subprocess.Popen(nobody + ["sleep", "60"])
        self.addCleanup(other.wait)
        self.addCleanup(other.kill)
        wait_for(lambda: os.stat("/proc/%d" % other.pid).st_uid == 65534)
        read = [subprocess.run(nobody + ["cat", "/proc/%d/environ" % p.pid], capture_output=True)
                for p in (other, s.proc)]
        self.assertEqual(read[0].returncode, 0, read[0].stderr)
        self.assertEqual((read[1].returncode, read[1].stdout), (1, b""))

    def test_key_files_that_others_can_read_are_refused(self):
        r = self.relay()
        h = self.tunnel_hub(r, start=False)
        self.assertEqual(cli("keygen", "--hub", h.key).returncode, 0)
        os.chmod(h.key, 0o644)
        got = h.run()
        self.assertEqual(got.returncode, 78)
        self.assertIn(h.key.encode(), got.stderr)


class Relays(Case):
    def test_a_certificate_that_does_not_match_is_never_accepted(self):
        r = self.relay()
        h = self.tunnel_hub(r)
        h.token()
        r.stop()
        os.unlink(os.path.join(r.dir, "relay.pem"))
        s = self.spoke(h, "--wait-hub", "1s")
        r.start()
        wait_for(lambda: "certificate" in s.logged(), 15)
        c = self.conn(s)
        c.send(v=1, op="ping", id="p")
        self.assertErr(c.recv(), "unavailable")

    def test_a_map_that_cannot_be_used_is_named(self):
        path = write_file(os.path.join(tempdir(), "map"), "{}")
        r = self.relay()
        h = self.tunnel_hub(r, start=False)
        r.map, good = path, r.map
        h.start()
        wait_for(lambda: path in h.logged())
        self.assertFalse(os.path.exists(h.token_file))
        write_file(path, read_file(good))
        h.token()


if __name__ == "__main__":
    harness.main()
