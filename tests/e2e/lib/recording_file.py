"""Reads recordings (doc/format.md), the complete ones and those of a ptmem that died."""

import struct
import zlib

HEAD = b"ptmem-recording "  # and the version: 1, or 2 of samples
NEVER = 1023


def numbers(raw):
    """The varints of @raw."""
    value = shift = 0
    for byte in raw:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            yield value
            value = shift = 0


def read(path):
    """(texts, {name: columns}) up to the last complete part of the file."""
    with open(path, "rb") as file:
        data = file.read()
    assert data[:len(HEAD) + 2] in (HEAD + b"1\n", HEAD + b"2\n"), "not a recording"
    at, texts, tables, result, heads = len(HEAD) + 2, [b""], {}, None, 0
    while at + 16 <= len(data):
        name, (packed, unpacked, check) = data[at:at + 4].decode(), struct.unpack_from("<III", data, at + 4)
        head, body = data[at:at + 16], data[at + 16:at + 16 + packed]
        at += 16 + packed
        if len(body) < packed:
            break
        assert zlib.crc32(body) == check
        raw = zlib.decompress(body)
        assert len(raw) == unpacked
        if name == "sync":
            assert number(raw, 0)[1] == heads
            heads = 0
            result = list(texts), {n: [list(c) for c in columns] for n, columns in tables.items()}
            continue
        heads = zlib.crc32(head, heads)
        if name == "text":
            pos, count = number(raw, 0)
            for _ in range(count):
                pos, size = number(raw, pos)
                texts.append(raw[pos:pos + size])
                pos += size
        else:
            values = numbers(raw)
            columns, rows = next(values), next(values)
            for column in tables.setdefault(name, [[] for _ in range(columns)]):
                last = 0
                for _ in range(rows):
                    code = next(values)
                    last = (last + (code >> 1 ^ -(code & 1))) % 2 ** 64
                    column.append(last)
    return result


def number(raw, at):
    end = at
    while raw[end] > 127:
        end += 1
    return end + 1, next(numbers(raw[at:end + 1]))
