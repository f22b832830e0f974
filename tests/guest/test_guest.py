#!/usr/bin/env python3
# serial
"""scenario.py in a guest with a kernel of its own, with the units of the NixOS module. The power
cut is SIGKILL for QEMU: what the hub had not brought to the disk is gone, with everything that the
kernel kept in memory."""
import json, os, sys, unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import machine, payload
from payload import harness


class Guest(payload.Verdicts, unittest.TestCase):
    skipped = machine.SKIPPED

    @classmethod
    def setUpClass(cls):
        cls.results = {}
        cls.guest = machine.Guest()
        cls.addClassCleanup(cls.guest.cut)
        for _ in range(2):
            cls.guest.boot()
            cls.results.update(json.loads(cls.guest.wait("checks")))
            cls.show()
            cls.guest.cut()
            if set(cls.results.values()) != {"ok"}:
                return  # they say why

    @classmethod
    def show(cls):
        if "-v" in sys.argv:
            print("\n".join(l for l in cls.guest.lines if l[:1] != "@"))
            print((cls.guest.told("journal") or b"").decode(errors="replace"))


Guest.add_checks()

if __name__ == "__main__":
    harness.main()
