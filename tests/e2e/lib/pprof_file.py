"""Reads what tests need of pprof's profile.proto: a protocol buffer that has only varints and byte strings."""

import gzip
import itertools

import recording_file


def varint(stream):
    """The next one, signed; None at the end."""
    value = next(recording_file.numbers(stream), None)
    return None if value is None else value - (value >> 63 << 64)


def varints(data):
    """Packed ones."""
    stream = iter(data)
    return list(iter(lambda: varint(stream), None))


def fields(data):
    """(number, value) of a message."""
    stream = iter(data)
    while (tag := varint(stream)) is not None:
        value = varint(stream)
        yield tag >> 3, bytes(itertools.islice(stream, value)) if tag & 7 == 2 else value


class Pprof:
    """A profile as served or written."""

    def __init__(self, packed):
        found = list(fields(gzip.decompress(packed)))
        self.strings = [value for number, value in found if number == 6]
        self.types = [self.strings[dict(fields(value))[1]].decode() for number, value in found if number == 1]
        self.samples = [varints(dict(fields(value))[2]) for number, value in found if number == 2]
        self.mappings = [dict(fields(value)) for number, value in found if number == 3]

    def sums(self):
        """{type: sum over all samples}; {} if there are none."""
        return dict(zip(self.types, map(sum, zip(*self.samples)))) if self.samples else {}
