#!/usr/bin/env python3
# tunnelled
"""What the Go original answered, step by step (zmqc.jsonl): one test a case, named after it.

A recorded step says what one connection sends and the frame it gets. Our frame without the
additions (docs/man/zmqc.5) must be the same bytes, after masking what differs in each run: the
session number and generated part of ids, delivery names and the lease's end. Cases where this hub
answers differently on purpose are in DIFFERS, each with its reason and the answer it must give.
"""
import base64, concurrent.futures, json, os, re, sys, time, unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness

HERE = os.path.dirname(os.path.abspath(__file__))
WAIT = 0.2  # the recording's "no reply within wait"

# What a step may expect instead of the recorded frame.
BAD = ("bad",)  # one err bad_frame without id, then EOF
NOTHING = ("nothing",)
NO_TEXT = ("no_text",)  # the recorded msg without its text field


def err(text, code):
    return ("err", text, code)


def recorded(step):
    """The frame recorded at another step of the case."""
    return ("recorded", step)


def body_only(op_id, name, payload):
    """A msg from the unnamed session that carries this payload as body alone."""
    return ("body_only", op_id, name, payload)


def lease(seconds):
    """The recorded frame, with a lease of that many seconds."""
    return ("lease", seconds)


NOT_FOUND = err("mailbox: delivery not found", "no_delivery")
NOT_UTF8 = err("text is not valid UTF-8: send it as body", "invalid")
KEYS = "exact keys, each once, body a string: otherwise a bad frame"
SILENT = "silent close on a bad frame: one err frame that says why, then close"
POISON = "text is left out when the frame would not fit: every accepted message can be delivered"
RAW = "no text when the payload is not UTF-8: body only"
TIMES = "silent client: closed after three intervals plus one second"

# case: (why, {step: what is expected instead})
DIFFERS = {
    "json.case_insensitive_keys": (KEYS, {1: BAD}),
    "json.duplicate_keys": (KEYS, {1: BAD}),
    "err.body_array": (KEYS, {1: BAD}),
    "json.invalid_utf8_text": ("bad UTF-8 in text is invalid", {1: NOT_UTF8, 2: NOTHING}),
    "json.lone_surrogate": ("a lone surrogate in text is invalid", {1: NOT_UTF8, 2: NOTHING}),
    "err.json_null": ("a bad frame: not an object", {1: BAD}),
    "big.900KiB_text_poison": (POISON, {2: body_only("s1:1", "q", b"x" * 921600), 3: NOTHING}),
    "big.300KiB_binary_poison": (RAW, {2: body_only("s1:1", "q", b"\xff" * 307200)}),
    "big.sub_poison": (POISON, {3: body_only("1", "e", b"x" * 921600)}),
    "take.non_utf8": (RAW, {2: NO_TEXT}),
    "pub.html_binary": (RAW, {3: NO_TEXT}),
    "sub.twice_same": ("overlapping subscriptions: one copy for each session", {5: NOTHING}),
    "pub.self": ("own pub on a subscribed session: ok first, then the msg",
                 {2: recorded(3), 3: recorded(2)}),
    "ack.foreign_session": ("ack by another session: only the holder may",
                            {3: NOT_FOUND, 4: ("ok",)}),
    "rep.foreign_session": ("only the session that was given the request may answer it",
                            {4: NOTHING}),
    "req.rep_via_reserve_noid": ("the rep acknowledges the lease", {5: NOT_FOUND}),
    "reserve.huge_lease": ("a lease is a day at most", {2: lease(86400)}),
    "heartbeat.1s_silent_client": (TIMES, {}),
    "heartbeat.1s_pong_client": (TIMES, {}),
}
for _case in """err.bad_version err.version_negative err.version_string err.version_float
        err.version_1e0 err.bad_magic err.magic_lowercase err.zero_length err.oversize_length
        err.length_ffffffff err.json_syntax err.json_array err.json_string err.json_trailing
        err.name_number err.lease_float err.lease_string err.lease_overflow err.body_bad_base64
        err.body_urlsafe_base64 err.body_unpadded""".split():
    DIFFERS[_case] = (SILENT, {1: BAD})

# Cases that were recorded with that many messages already in the mailbox q.
FILLED = {"put.queue_full": 1024, "req.queue_full": 1024, "put.queue_full_dup": 1024,
          "put.queue_full_other_name": 1024}
ORDER = ("v op id name from text body error lease delivery headers attempt at by end peek subs "
         "epoch count failed code result").split()


def unshorten(text):
    """The bytes of a step. Long frames are recorded as head, total length and tail: the middle of
    what was sent is one repeated character."""
    m = re.fullmatch(r"([0-9a-f]*)\.\.\.\[(\d+) bytes total\]\.\.\.([0-9a-f]*)", text)
    if not m:
        return bytes.fromhex(text)
    head, tail, total = bytes.fromhex(m[1]), bytes.fromhex(m[3]), int(m[2])
    if b'"op":"msg"' in head:  # text of x and the same as body
        start = head.index(b'"text":"') + 8
        size = next(n for n in range(total // 3, total)
                    if start + n + len('","body":""}') + (n + 2) // 3 * 4 == total)
        whole = (head[:start] + b"x" * size + b'","body":"'
                 + base64.b64encode(b"x" * size) + b'"}')
    else:
        assert head[-1:] == tail[:1], "not a repeated character"
        whole = head + head[-1:] * (total - len(head) - len(tail)) + tail
    assert len(whole) == total and whole.startswith(head) and whole.endswith(tail)
    return whole


def load():
    cases = {}
    with open(os.path.join(HERE, "zmqc.jsonl")) as f:
        for line in f:
            row = json.loads(line)
            cases.setdefault(row["case"], []).append(row)
    return cases


class Replay:
    """One case on a hub of its own."""

    def __init__(self, case, rows):
        self.case, self.rows = case, rows
        self.differs = DIFFERS.get(case, ("", {}))[1]
        self.conns = {}
        self.names = {}  # recorded id or delivery -> ours
        self.leases = {}  # connection -> seconds it asked for last

    def run(self):
        options = ["--heartbeat=10s"]  # no pings between on a slow machine
        if self.case == "heartbeat.disabled":
            options = ["--heartbeat=-1s"]
        elif self.case.startswith("heartbeat."):
            options = ["--heartbeat=1s"]
        with harness.bus_hub(*options) as hub:
            self.hub = hub
            try:
                if self.case in FILLED:
                    self.fill(FILLED[self.case])
                special = getattr(self, self.case.replace(".", "_"), None)
                if special:
                    special()
                else:
                    for row in self.rows:
                        self.step(row)
            finally:
                for c in self.conns.values():
                    c.close()

    def conn(self, label):
        if label not in self.conns:
            self.conns[label] = self.hub.connect(pong=False)
        return self.conns[label]

    def fill(self, count):
        a = self.conn("A")
        for i in range(count):
            a.send(v=1, op="put", id=str(i), name="q", text="x")
        for i in range(count):
            got = a.recv()
            assert got["op"] == "ok" and got["id"] == str(i), got

    def step(self, row):
        note = row["note"]
        if row["conn"] == "-":  # what the original logged
            return
        c = self.conn(row["conn"])
        if row["send_hex"]:
            self.send(c, row)
        if "[client closed]" in note:
            c.close()
            return
        if "[client shutdown(WR)]" in note:
            c.half_close()
        sleep = re.search(r"\[sleep ([0-9.]+)s\]", note)
        if sleep:
            time.sleep(float(sleep[1]))
            return
        if "[not read here]" in note:
            # The recording slept to be sure that the hub had read it; a ping is surer.
            c.sync()
            return
        try:
            self.expect(c, row, self.differs.get(row["step"]))
        except (harness.Closed, TimeoutError) as e:
            raise AssertionError("step %d: %s instead of %s"
                                 % (row["step"], type(e).__name__, row["recv_text"][:200]))
        except AssertionError as e:
            raise AssertionError("step %d: %s" % (row["step"], e)) from e

    def send(self, c, row):
        data = unshorten(row["send_hex"])
        if data.count(b"ZMQC") == 1 and data[:4] == b"ZMQC" and len(data) < 4096:
            asked = re.search(rb'"lease":(-?\d+)', data)
            self.leases[row["conn"]] = int(asked[1]) if asked else 0
            whole = len(data) == 8 + int.from_bytes(data[4:8], "big")
            for old, ours in self.names.items():
                data = data.replace(json.dumps(old).encode(), json.dumps(ours).encode())
            if whole:
                data = data[:4] + (len(data) - 8).to_bytes(4, "big") + data[8:]
        c.send_raw(data)

    def expect(self, c, row, instead):
        if instead is None:
            if row["recv_hex"]:
                self.same(row, unshorten(row["recv_hex"]), c.recv_bytes())
            elif "connection closed by hub (EOF)" in row["note"]:
                self.closed(c)
            else:
                assert "no reply within wait" in row["note"], row
                c.nothing(WAIT)
            if "connection stays usable" in row["note"]:
                self.usable(c)
        elif instead[0] == "bad":
            got = c.recv_bytes()
            fields = dict(harness.pairs(got))
            assert fields["op"] == '"err"' and fields.get("code") == '"bad_frame"', got
            assert "id" not in fields and len(fields["error"]) > 2, got
            self.closed(c)
        elif instead[0] == "nothing":
            c.nothing(WAIT)
            self.usable(c)
        elif instead[0] == "err":
            fields = dict(harness.pairs(c.recv_bytes()))
            sent = json.loads(unshorten(row["send_hex"])[8:].decode("utf-8", "replace"))
            assert fields == {"v": "1", "op": '"err"', "id": json.dumps(sent["id"]),
                              "error": json.dumps(instead[1]),
                              "code": json.dumps(instead[2])}, fields
            self.usable(c)
        elif instead[0] == "ok":
            got = c.recv()
            assert got["op"] == "ok" and got["id"] == "k", got
        elif instead[0] == "no_text":
            wanted = unshorten(row["recv_hex"])
            fields = [p for p in harness.pairs(wanted) if p[0] != "text"]
            self.same(row, join(fields), c.recv_bytes())
        elif instead[0] == "recorded":
            other = next(r for r in self.rows if r["step"] == instead[1])
            self.same(row, unshorten(other["recv_hex"]), c.recv_bytes())
        elif instead[0] == "body_only":
            self.same(row, harness.frame(v=1, op="msg", id=instead[1], name=instead[2],
                                         **{"from": "@",
                                            "body": base64.b64encode(instead[3]).decode()}),
                      c.recv_bytes(20))
        elif instead[0] == "lease":
            self.same(row, unshorten(row["recv_hex"]), c.recv_bytes(), instead[1])
        else:
            raise ValueError(instead)

    def closed(self, c):
        try:
            got = c.recv_bytes()
        except harness.Closed:
            return
        raise AssertionError("frame instead of the end: %r" % got[:300])

    def usable(self, c):
        c.send(v=1, op="ping", id="alive")
        got = json.loads(c.recv_bytes()[8:])
        assert got["op"] == "pong" and got["id"] == "alive", got

    def same(self, row, wanted, got, seconds=None):
        """Compares the recorded frame with ours, additions taken off and what varies masked."""
        ours = harness.pairs(got)
        keys = [k for k, _ in ours]
        assert keys == sorted(keys, key=ORDER.index), "field order: %s" % keys
        ours = [p for p in ours if p[0] not in harness.ADDITIONS]
        theirs = harness.pairs(wanted)
        assert [k for k, _ in ours] == [k for k, _ in theirs], \
            "fields %s, recorded %s: %r" % ([k for k, _ in ours], [k for k, _ in theirs],
                                            got[:300])
        masked = []
        for (key, mine), (_, recorded_value) in zip(ours, theirs):
            if key == "lease":
                self.check_lease(row, int(mine), seconds)
                mine = recorded_value
            elif key == "delivery":
                self.names[json.loads(recorded_value)] = json.loads(mine)
                assert len(mine) > 2
                mine = recorded_value
            elif key == "id":
                mine = self.mask_id(recorded_value, mine)
            elif key == "from" and recorded_value == '"@"':
                assert harness.is_unnamed(json.loads(mine)), mine
                mine = recorded_value
            masked.append((key, mine))
        if join(masked) != join(theirs):
            raise AssertionError("differs from the recording:\n%r\n%r"
                                 % (join(masked)[:400], join(theirs)[:400]))

    def mask_id(self, theirs, ours):
        """Ours as the recording would have it, when only the session or random part differs."""
        scoped = re.match(r'"s\d+:', theirs)
        if scoped:
            mine = re.match(r'"s\d+:', ours)
            assert mine, "id %s, recorded %s" % (ours, theirs)
            masked = scoped[0] + ours[mine.end():]
        elif re.fullmatch(r'"[0-9a-f]{24}"', theirs):
            assert re.fullmatch(r'"[0-9a-f]{24}"', ours), ours
            masked = theirs
        else:
            return ours
        self.names[json.loads(theirs)] = json.loads(ours)
        return masked

    def check_lease(self, row, until, seconds):
        asked = self.leases.get(row["conn"], 0)
        wanted = seconds or (asked if asked > 0 else 60)
        left = until - time.time()
        assert wanted - 5 * harness.SLOW <= left <= wanted + 1.1, \
            "lease ends in %.1f s, wanted %d" % (left, wanted)

    def heartbeat_1s_silent_client(self):
        start = time.monotonic()
        c, ping = self.conn("A"), unshorten(self.rows[0]["recv_hex"])
        times = []
        while True:
            try:
                got = c.recv_bytes()
            except harness.Closed:
                break
            assert got == ping, got
            times.append(time.monotonic() - start)
        took = time.monotonic() - start
        assert 3 <= len(times) <= 4, times
        for n, at in enumerate(times, 1):
            assert n - 0.1 <= at <= n + 0.9 * harness.SLOW, times
        assert 3.9 <= took <= 4.9 * harness.SLOW, took

    def heartbeat_1s_pong_client(self):
        c, ping = self.conn("A"), unshorten(self.rows[0]["recv_hex"])
        last = time.monotonic()
        for row in self.rows:
            got = c.recv_bytes()
            assert got == ping, got
            after = time.monotonic() - last
            assert 0.9 <= after <= 1.9 * harness.SLOW, after
            c.send_raw(unshorten(row["send_hex"]))
            last = time.monotonic()
        self.usable(c)

    def heartbeat_disabled(self):
        self.conn("A").nothing(4)
        self.usable(self.conn("A"))


def join(fields):
    body = ("{%s}" % ",".join(json.dumps(k) + ":" + v for k, v in fields)).encode()
    return b"ZMQC" + len(body).to_bytes(4, "big") + body


CASES = load()


class Vectors(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """Four cases at a time: most of them only wait for nothing to arrive."""
        asked = [a for a in sys.argv[1:] if not a.startswith("-")]
        cls.pool = concurrent.futures.ThreadPoolExecutor(4)
        cls.runs = {case: cls.pool.submit(Replay(case, rows).run) for case, rows in CASES.items()
                    if not asked or any(a.endswith(method(case)) or "test_" not in a
                                        for a in asked)}

    @classmethod
    def tearDownClass(cls):
        cls.pool.shutdown()

    def test_all_cases_are_here(self):
        self.assertEqual((len(CASES), sum(map(len, CASES.values()))), (153, 328))
        self.assertEqual(set(DIFFERS) - set(CASES), set())
        self.assertEqual(set(FILLED) - set(CASES), set())


def method(case):
    return "test_" + case.replace(".", "__")


def add(case):
    def test(self):
        self.runs[case].result()
    test.__doc__ = DIFFERS[case][0] if case in DIFFERS else None
    setattr(Vectors, method(case), test)


for _case in CASES:
    add(_case)

if __name__ == "__main__":
    harness.main()
