"""Reads a massif.out file: strict about its grammar, as the specification gives it."""

import functools
import re

NODE = re.compile(r"^( *)n(\d+): (\d+) (.*)$")
FRAME = re.compile(r"^0x([0-9A-F]+): (.*?)(?: \((?:in )?([^()]*?)(?::(\d+))?\))?$")


class Node:
    """A line of a tree: bytes, text, children; name and address of its function ("" for the root)."""

    def __init__(self, size, text):
        self.bytes, self.text, self.children = size, text, []

    @functools.cached_property
    def frame(self):
        match = FRAME.match(self.text)
        return match.group(1, 2) if match else ("", "")

    @property
    def address(self):
        return self.frame[0]

    @property
    def name(self):
        return self.frame[1]

    def paths(self, key=lambda node: node.name, prefix=()):
        """{(outermost, ..., innermost): bytes} of what ends at each node, by the @key of each."""
        found = {}
        here = prefix + (key(self),) if self.name else prefix
        rest = self.bytes - sum(c.bytes for c in self.children)
        if rest:
            found[here[::-1]] = rest
        for child in self.children:
            for path, size in child.paths(key, here).items():
                found[path] = found.get(path, 0) + size
        return found


class Massif:
    def __init__(self, path):
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            self.lines = file.read().split("\n")
        if self.lines.pop() != "":
            raise ValueError("the last line does not end")
        self.at = 0
        self.desc = self.field("desc: ")
        self.cmd = self.field("cmd: ")
        self.time_unit = self.field("time_unit: ")
        self.snapshots = []
        while self.at < len(self.lines):
            self.snapshots.append(self.snapshot())

    def field(self, start):
        line = self.lines[self.at]
        if not line.startswith(start):
            raise ValueError("line %d: %r where %r should be" % (self.at + 1, line, start))
        self.at += 1
        return line[len(start):]

    def snapshot(self):
        found = {}
        self.field("#-----------")
        if self.field("snapshot=") != str(len(self.snapshots)):
            raise ValueError("line %d: number of the snapshot" % self.at)
        self.field("#-----------")
        for name in ("time", "mem_heap_B", "mem_heap_extra_B", "mem_stacks_B"):
            found[name] = int(self.field(name + "="))
        found["kind"] = self.field("heap_tree=")
        if found["kind"] not in ("empty", "detailed", "peak"):
            raise ValueError("line %d: kind %r" % (self.at, found["kind"]))
        if found["kind"] != "empty":
            found["tree"] = self.node(0)
        return found

    def node(self, depth):
        match = NODE.match(self.lines[self.at])
        if not match or len(match.group(1)) != depth:
            raise ValueError("line %d: %r is no node of depth %d" % (self.at + 1, self.lines[self.at], depth))
        self.at += 1
        node = Node(int(match.group(3)), match.group(4))
        for _ in range(int(match.group(2))):
            node.children.append(self.node(depth + 1))
        return node

    def peak(self):
        peaks = [s for s in self.snapshots if s["kind"] == "peak"]
        if len(peaks) != 1:
            raise ValueError("%d peak snapshots" % len(peaks))
        return peaks[0]
