"""The tests' own transfer sees each way in which bytes can be wrong, keeps them and says where."""
import os, socket, sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import programs, harness, transfer
from between import DOWN, UP, Between

SIZE = 3 << 20
AT = 2000000


class Changed(harness.Case):
    def setUp(self):
        # What is kept here is no finding.
        self.addCleanup(setattr, transfer, "KEPT", transfer.KEPT)
        transfer.KEPT = harness.tempdir()
        self.service = transfer.Service()
        self.addCleanup(self.service.close)

    def exchange(self, change, **more):
        wire = Between(self.service.port, change)
        self.addCleanup(wire.close)
        with socket.create_connection(("127.0.0.1", wire.port)) as s:
            return transfer.exchange(s, SIZE, self.service, 20, **more)

    def assertTold(self, change, text):
        with self.assertRaisesRegex(AssertionError, text) as raised:
            self.exchange(change)
        folder = str(raised.exception).rsplit(" ", 1)[1]
        self.assertEqual(sorted(os.listdir(folder)),
                         ["back-arrived", "back-sent", "there-arrived", "there-sent"])
        self.assertEqual(os.path.getsize(os.path.join(folder, "there-sent")), SIZE)

    def test_equal(self):
        self.assertTrue(self.exchange(lambda way, at, data: data))

    def test_one_byte(self):
        def flip(wanted):
            def change(way, at, data):
                if way != wanted or not at <= AT < at + len(data):
                    return data
                return data[:AT - at] + bytes([data[AT - at] ^ 1]) + data[AT - at + 1:]
            return change
        self.assertTold(flip(UP), "^there: 3145728 bytes sent, 3145728 arrived, first difference at"
                        " 2000000, none from 20[0-9]{5} on; what arrived there was never sent\n")
        self.assertTold(flip(DOWN), "^back: 3145736 bytes sent, 3145736 arrived, first difference")

    def test_a_block_that_comes_twice(self):
        kept = {}

        def change(way, at, data):
            kept.setdefault("first", data[:4096])
            if way == UP and at > AT and len(data) > 4096:
                return kept["first"] + data[4096:]
            return data
        self.assertTold(change, "there: .*; what arrived there was sent at 0\n")

    def test_a_lost_end(self):
        self.assertTold(lambda way, at, data: b"" if way == DOWN and at > AT else data,
                        "^back: 3145736 bytes sent, 2[0-9]{6} arrived, first difference at 2")

    def test_a_connection_that_may_end(self):
        self.assertFalse(self.exchange(
            lambda way, at, data: b"" if way == DOWN and at > AT else data, may_end=True))


if __name__ == "__main__":
    harness.main()
