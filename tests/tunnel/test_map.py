"""The DERP map: fetched, kept, revalidated, replaced by the kept one when nothing better comes."""
import base64, http.server, json, os, socket, sys, threading, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness
from harness import Case, read_file, tempdir, wait_for, write_file


class Server:
    """Answers GET with what `answer` gives: (status, headers, body), and remembers requests."""

    def __init__(self):
        self.requests = []
        self.answer = lambda request: (404, {}, b"")
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                outer.requests.append((self.path, dict(self.headers)))
                status, headers, body = outer.answer(self)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                if "Transfer-Encoding" not in headers and status == 200:
                    self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass
        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.http.serve_forever, daemon=True).start()
        self.url = "http://127.0.0.1:%d/map.json" % self.http.server_port

    def close(self):
        self.http.shutdown()
        self.http.server_close()


def chunked(body):
    parts = [body[i:i + 50] for i in range(0, len(body), 50)]
    return b"".join(b"%x;x=y\r\n%s\r\n" % (len(p), p) for p in parts) + b"0\r\nT: x\r\n\r\n"


class Map(Case):
    def setUp(self):
        self.r = self.relay()
        self.good = read_file(self.r.map)
        self.server = Server()
        self.addCleanup(self.server.close)
        self.state = tempdir()

    def start(self, **env):
        """A hub whose map comes from the server; its state directory is kept."""
        hub = self.tunnel_hub(self.r, "--derp-map", self.server.url, start=False,
                              env=dict({"STATE_DIRECTORY": self.state}, **env))
        return hub.start()

    def age(self, seconds):
        then = time.time() - seconds
        os.utime(os.path.join(self.state, "derpmap.json"), (then, then))

    def test_fetched_kept_and_revalidated(self):
        self.server.answer = lambda q: (200, {"ETag": '"one"'}, self.good)
        self.start().token()
        path, headers = self.server.requests[0]
        self.assertEqual((path, headers["Tailcat-Mode"]), ("/map.json", "server"))
        self.assertNotIn("If-None-Match", headers)
        self.assertEqual(read_file(self.state + "/derpmap.json"), self.good)
        self.start().token()
        self.assertEqual(len(self.server.requests), 1)
        self.age(4000)
        self.server.answer = lambda q: (304, {}, b"")
        self.start().token()
        self.assertEqual(self.server.requests[1][1]["If-None-Match"], '"one"')
        self.start().token()
        self.assertEqual(len(self.server.requests), 2)

    def test_forms_of_answers(self):
        for headers, body in (({"Transfer-Encoding": "chunked"}, chunked(self.good)),
                              ({"Connection": "close", "Transfer-Encoding": "chunked"},
                               chunked(self.good))):
            self.server.answer = lambda q: (200, headers, body)
            self.state = tempdir()
            self.start().token()

    def test_redirects(self):
        def answer(q):
            if q.path == "/map.json":
                return 302, {"Location": "/b"}, b""
            if q.path == "/b":
                return 301, {"Location": self.server.url.replace("map.json", "c")}, b""
            return 200, {}, self.good
        self.server.answer = answer
        self.start().token()
        self.assertEqual([q[0] for q in self.server.requests], ["/map.json", "/b", "/c"])

    def test_an_unusable_map_falls_back_to_the_kept_one(self):
        self.server.answer = lambda q: (200, {}, self.good)
        self.start().token()
        for status, body, why in ((200, b"{]", "."), (500, b"", "status 500"), (200, b"{}", "."),
                                  (200, self.good[:-20], ".")):
            self.age(4000)
            self.server.answer = lambda q: (status, {}, body)
            hub = self.start()
            hub.token()
            said = [l for l in hub.logged().splitlines() if "DERP map" in l]
            self.assertEqual(len(said), 1, said)
            self.assertIn(self.server.url, said[0])
            self.assertRegex(said[0], why)
            self.assertIn("using the copy", said[0])
            self.assertEqual(read_file(self.state + "/derpmap.json"), self.good)

    def test_nothing_kept_is_tried_again(self):
        hub = self.start()
        wait_for(lambda: "status 404" in hub.logged())
        self.assertIn(self.server.url, hub.logged())
        self.server.answer = lambda q: (200, {}, self.good)
        hub.token()

    def test_a_kept_map_of_another_url_is_not_used(self):
        self.server.answer = lambda q: (200, {}, self.good)
        self.start().token()
        self.server.url += "?other"
        self.start().token()
        self.assertEqual(len(self.server.requests), 2)

    def test_a_server_that_hangs_does_not_hold_up_a_stop(self):
        with socket.create_server(("127.0.0.1", 0)) as s:
            self.server.url = "http://127.0.0.1:%d/" % s.getsockname()[1]
            hub = self.start()
            time.sleep(0.5)
            start = time.monotonic()
            self.assertEqual(hub.stop(), 0)
            self.assertLess(time.monotonic() - start, 3)
            self.assertFalse(os.path.exists(hub.path))

    def test_the_region_stays_in_the_key_file(self):
        two = json.loads(self.good)
        first = json.loads(self.good)["Regions"]["900"]
        self.server.answer = lambda q: (200, {}, self.good)
        hub = self.start()
        token = hub.token()
        hub.stop()
        self.assertEqual(json.loads(read_file(hub.key))["Public"]["RegionID"], 900)
        first["RegionID"] = 1
        first["Nodes"][0].update(RegionID=1, DERPPort=1)
        two["Regions"]["1"] = first
        self.age(4000)
        self.server.answer = lambda q: (200, {}, json.dumps(two).encode())
        os.unlink(hub.token_file)
        hub.start()
        self.assertEqual(hub.token(), token)

    def test_a_token_that_names_only_the_number_of_a_region(self):
        hub = self.tunnel_hub(self.r)
        raw = hub.token()[2:]
        cbor = base64.urlsafe_b64decode(raw + "=" * (-len(raw) % 4))
        keys = cbor[1:cbor.index(b"\x61\x72")]  # up to "r"
        numbered = bytes([0xa0 | (cbor[0] & 15)]) + keys + b"\x61\x69\x19\x03\x84"  # i: 900
        token = write_file(os.path.join(tempdir(), "t"), b"tc" +
                           base64.urlsafe_b64encode(numbered).rstrip(b"="))
        self.server.answer = lambda q: (200, {}, self.good)
        s = self.spoke(token, "--derp-map", self.server.url, env={"STATE_DIRECTORY": self.state})
        s.joined()
        self.assertEqual(self.server.requests[0][1]["Tailcat-Mode"], "client")
        self.spoke(token, "--derp-map", self.r.map).joined()


class Options(Case):
    def test_region_by_number_and_by_host(self):
        r = self.relay()
        self.tunnel_hub(r, "--region", "900").token()
        hub = self.tunnel_hub(r, "--region", "12", start=False)
        hub.start()
        wait_for(lambda: "no region 12" in hub.logged())
        # A host is dialled as it is, and its certificate is judged by the system's roots.
        hub = self.tunnel_hub(r, "--region", "127.0.0.1:%d" % r.port)
        wait_for(lambda: "certificate" in hub.logged())
        self.assertFalse(os.path.exists(hub.token_file))

    def test_a_relay_whose_name_cannot_be_resolved(self):
        hub = self.tunnel_hub(self.relay(), "--region", "no-such-host.invalid")
        wait_for(lambda: "cannot be resolved" in hub.logged(), 20)
        self.assertEqual(hub.stop(), 0)


if __name__ == "__main__":
    harness.main()
