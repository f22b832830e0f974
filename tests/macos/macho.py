"""What a Mach-O file of 64 bits says of itself: <mach-o/loader.h> and <mach-o/nlist.h>."""
import struct

CPUS = {0x0100000C: "arm64", 0x01000007: "x86_64"}
KINDS = {2: "program", 6: "library", 1: "object"}
MAIN, LOAD_DYLIB, ID_DYLIB, SYMTAB, SEGMENT, BUILD_VERSION = (
    0x80000028, 0x0C, 0x0D, 0x02, 0x19, 0x32)
PIE, NOUNDEFS, TWOLEVEL = 0x200000, 0x1, 0x80
EXTERNAL, PRIVATE, TYPE, STAB = 0x01, 0x10, 0x0E, 0xE0


def text(data, at):
    return data[at:data.index(b"\0", at)].decode()


class File:
    def __init__(self, data):
        magic, cpu, _, kind, count, _, self.flags, _ = struct.unpack_from("<8I", data)
        assert magic == 0xFEEDFACF, hex(magic)
        self.cpu, self.kind = CPUS[cpu], KINDS[kind]
        self.libraries, self.id, self.entry, self.oldest = [], None, None, None
        self.segments, self.exports, self.imports = {}, set(), {}
        at = 32
        for _ in range(count):
            command, size = struct.unpack_from("<2I", data, at)
            self.command(data, at, command)
            at += size
        for name, ordinal in list(self.imports.items()):
            self.imports[name] = (self.libraries[ordinal - 1]
                                  if 0 < ordinal <= len(self.libraries) else None)

    def command(self, data, at, command):
        if command in (LOAD_DYLIB, ID_DYLIB):
            name = text(data, at + struct.unpack_from("<I", data, at + 8)[0])
            if command == LOAD_DYLIB:
                self.libraries.append(name)
            else:
                self.id = name
        elif command == MAIN:
            (self.entry,) = struct.unpack_from("<Q", data, at + 8)
        elif command == BUILD_VERSION:
            platform, oldest = struct.unpack_from("<2I", data, at + 8)
            assert platform == 1, platform
            self.oldest = "%d.%d" % (oldest >> 16, oldest >> 8 & 0xFF)
        elif command == SEGMENT:
            name = data[at + 8:at + 24].rstrip(b"\0").decode()
            self.segments[name] = struct.unpack_from("<4Q", data, at + 24)
        elif command == SYMTAB:
            self.symbols(data, *struct.unpack_from("<3I", data, at + 8))

    def symbols(self, data, at, count, strings):
        for i in range(count):
            name, kind, _, more, _ = struct.unpack_from("<IBBHQ", data, at + 16 * i)
            if kind & STAB or not kind & EXTERNAL:
                continue
            if kind & TYPE == 0:
                self.imports[text(data, strings + name)] = more >> 8
            elif not kind & PRIVATE:
                self.exports.add(text(data, strings + name))


def archive(data):
    """The files in a library of `ar`."""
    assert data[:8] == b"!<arch>\n"
    at = 8
    while at < len(data):
        name, size = data[at:at + 16], int(data[at + 48:at + 58])
        inside = data[at + 60:at + 60 + size]
        if name.startswith(b"#1/"):  # its name stands before it
            inside = inside[int(name[3:]):]
        if inside[:4] == b"\xCF\xFA\xED\xFE":
            yield File(inside)
        at += 60 + size + (size & 1)
