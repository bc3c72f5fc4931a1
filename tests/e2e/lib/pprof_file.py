"""Reads what tests need of pprof's profile.proto: a protocol buffer that has only varints and byte strings."""

import collections
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


def numbers(message, wanted):
    """Of the repeated field @wanted, packed or not."""
    return [n for number, value in fields(message) if number == wanted
            for n in (varints(value) if isinstance(value, bytes) else [value])]


class Pprof:
    """A profile as served or written."""

    def __init__(self, packed):
        found = list(fields(gzip.decompress(packed)))
        self.strings = [value for number, value in found if number == 6]
        self.types = [self.strings[dict(fields(value))[1]].decode() for number, value in found if number == 1]
        self.samples = [numbers(value, 2) for number, value in found if number == 2]
        self.stacks = [numbers(value, 1) for number, value in found if number == 2]
        self.labels = [[dict(fields(label)) for n, label in fields(value) if n == 3] for number, value in found if number == 2]
        self.functions = {f[1]: (self.strings[f.get(2, 0)].decode(), self.strings[f.get(4, 0)].decode())
                          for f in (dict(fields(value)) for number, value in found if number == 5)}
        self.locations = dict(self.location(value) for number, value in found if number == 4)
        self.mappings = [dict(fields(value)) for number, value in found if number == 3]

    def by_label(self, key, of_type):
        """{value: sum of @of_type over samples with that value of the label @key}; "": without it."""
        sums = collections.Counter()
        for values, sample in zip(self.samples, self.labels):
            text = {self.strings[label[1]].decode(): self.strings[label.get(2, 0)].decode() for label in sample}
            sums[text.get(key, "")] += values[self.types.index(of_type)]
        return dict(sums)

    def sums(self):
        """{type: sum over all samples}; {} if there are none."""
        return dict(zip(self.types, map(sum, zip(*self.samples)))) if self.samples else {}

    def location(self, data):
        """Its number, and (function, file, line), innermost first."""
        lines = [dict(fields(value)) for number, value in fields(data) if number == 4]
        return dict(fields(data))[1], tuple((*self.functions[line[1]], line.get(2, 0)) for line in lines)

    def by_path(self):
        """{(type, functions with files and lines, innermost first): value, if it is not 0}."""
        sums = collections.Counter()
        for values, stack in zip(self.samples, self.stacks):
            path = tuple(frame for location in stack for frame in self.locations[location])
            for of_type, value in zip(self.types, values):
                sums[of_type, path] += value
        return {key: value for key, value in sums.items() if value}
