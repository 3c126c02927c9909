#!/usr/bin/env python3
"""Decodes a coded tensor as man/trainwright-codec.5 says, slowly and plainly. Hashes are not checked.

usage: reference_decoder.py CODED [BASE] > ELEMENTS

Planes of mode zstd need the module zstandard; nothing else is needed.
"""
import struct
import sys


class Bytes:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, size):
        piece = self.data[self.at : self.at + size]
        if len(piece) != size:
            raise ValueError("cut short")
        self.at += size
        return piece

    def integer(self, layout):
        return struct.unpack("<" + layout, self.take(struct.calcsize(layout)))[0]

    def varint(self):
        value = shift = 0
        while True:
            byte = self.integer("B")
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value


def read_table(source):
    """Frequencies by value."""
    first, last = source.integer("B"), source.integer("B")
    bits, filled = 0, 0

    def read(width):
        nonlocal bits, filled
        while filled < width:
            bits |= source.integer("B") << filled
            filled += 8
        value = bits & ((1 << width) - 1)
        bits >>= width
        filled -= width
        return value

    table = {}
    for value in range(first, last + 1):
        k = read(4)
        if k:
            table[value] = (1 << (k - 1)) + (read(k - 1) if k > 1 else 0)
    assert sum(table.values()) == 4096 and bits == 0
    return table


def slots_of(table):
    """For each slot: (value, frequency, place)."""
    frequent = [v for v in sorted(table) if table[v] >= 64]
    rare = [v for v in sorted(table) if table[v] < 64]
    order = []
    for i, value in enumerate(frequent):
        order += [value] + rare[i :: len(frequent)]
    if not frequent:
        order = rare
    return [(value, table[value], place) for value in order for place in range(table[value])]


def decode_rans(coded, n):
    source = Bytes(coded)
    tables = source.integer("B") + 1
    lengths = [(source.integer("B") + 1) * 4096 for _ in range(tables - 1)]
    lengths.append(n - sum(lengths))
    slots = [slots_of(read_table(source)) for _ in range(tables)]
    states = [source.integer("I") for _ in range(64)]
    out = bytearray(n)
    at = 0
    for length, slot_table in zip(lengths, slots):
        end = at + length
        while at + 64 <= end:
            for i in range(64):
                x = states[i]
                value, frequency, place = slot_table[x % 4096]
                out[at + 4 * (i % 16) + i // 16] = value
                x = frequency * (x // 4096) + place
                if x < 65536:
                    x = 65536 * x + source.integer("H")
                states[i] = x
            at += 64
    assert states == [65536] * 64
    out[at:] = source.take(n % 64)
    assert source.at == len(coded)
    return bytes(out)


def decode_plane(mode, coded, n):
    if mode == 0:
        assert len(coded) == n
        return coded
    if mode == 1:
        assert len(coded) == 1
        return coded * n
    if mode == 2:
        import zstandard

        return zstandard.ZstdDecompressor().decompress(coded)
    return decode_rans(coded, n)


def read_matrices(source):
    """[(first element, rows, columns, centre, row deviations, column deviations)]"""
    shapes, end = [], 0
    for _ in range(source.varint()):
        first = end + source.varint()
        rows, columns, centre = source.varint(), source.varint(), source.integer("h")
        shapes.append((first, rows, columns, centre))
        end = first + rows * columns
    total = sum(rows + columns for _, rows, columns, _ in shapes)
    deviations = b""
    while len(deviations) < total:
        mode, size = source.integer("B"), source.integer("I")
        deviations += decode_plane(mode, source.take(size), min(262144, total - len(deviations)))
    signed = list(struct.unpack(f"{total}b", deviations))
    matrices = []
    for first, rows, columns, centre in shapes:
        matrices.append((first, rows, columns, centre, signed[:rows], signed[rows : rows + columns]))
        signed = signed[rows + columns :]
    return matrices


def exponent_of(code, element, matrices):
    for first, rows, columns, centre, row_deviations, column_deviations in matrices:
        if first <= element < first + rows * columns:
            row, column = divmod(element - first, columns)
            p = (centre + row_deviations[row] + column_deviations[column]) // 8
            if code == 0:
                return 0
            return p % 256 if (code + p) % 256 == 0 else (code + p) % 256
    return code


def decode(coded, base):
    source = Bytes(coded)
    assert source.take(4) == b"TWCT" and source.integer("B") == 1
    kind, transform, block_log2 = source.integer("B"), source.integer("B"), source.integer("B")
    elements, _base_hash, side_bytes = source.integer("Q"), source.integer("Q"), source.integer("I")
    side = Bytes(source.take(side_bytes))
    matrices = read_matrices(side) if transform == 1 else []
    source.take(8)
    width = [1, 2, 4, 8, 2, 4, 8][kind]
    is_float = kind >= 4 and transform != 2
    out = bytearray()
    for first in range(0, elements, 1 << block_log2):
        n = min(1 << block_log2, elements - first)
        source.take(8)
        size = source.integer("I")
        source.take(8)
        body = Bytes(source.take(size))
        heads = [(body.integer("B"), body.integer("I")) for _ in range(width)]
        planes = [decode_plane(mode, body.take(plane_bytes), n) for mode, plane_bytes in heads]
        assert body.at == size
        for i in range(n):
            parts = [plane[i] for plane in planes]
            if is_float:
                parts[0] = exponent_of(parts[0], first + i, matrices)
                sign = parts[1] >> 7
                parts[1] = (parts[0] & 1) << 7 | parts[1] & 127
                parts[0] = sign << 7 | parts[0] >> 1
            value = int.from_bytes(bytes(parts), "big")
            if transform == 2:
                other = int.from_bytes(base[(first + i) * width : (first + i + 1) * width], "little")
                value = (other + value // 2 if value % 2 == 0 else other - (value + 1) // 2) % (1 << 8 * width)
            out += value.to_bytes(width, "little")
    return bytes(out)


def main():
    coded = open(sys.argv[1], "rb").read()
    base = open(sys.argv[2], "rb").read() if len(sys.argv) > 2 else b""
    sys.stdout.buffer.write(decode(coded, base))


if __name__ == "__main__":
    main()
