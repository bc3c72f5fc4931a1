"""Counts an events file (grammar: src/profile/events.c) by the definitions of profile_totals.

A second implementation for comparison with ptmem's: totals of all blocks, and of those whose site is in a
given module; bytes live at the end by call path.
"""


REQUEST = 14  # the function of blocks that the program announces: they may lie over others


class Counts(dict):
    def __init__(self):
        super().__init__(allocations=0, reallocations=0, frees=0, bytes=0, failed=0, unknown=0,
                         live=0, blocks=0, peak=0)

    def change(self, size, blocks):
        self["live"] = live = self["live"] + size
        self["blocks"] += blocks
        if size > 0:
            self["bytes"] += size
            if live > self["peak"]:
                self["peak"] = live


def each_block(path):
    """(size, stack) of each allocation in the events file @path; the stack's frames, innermost first, are (function, file, line)
    where that is in the file, else addresses."""
    names, nodes = {}, [(0, 0)]
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            word = line.rstrip("\n").split(" ", 5)
            if word[0] == "i":
                name, source, _ = word[5].split("\t")
                names[word[1]] = (name, source, int(word[3]))
            elif word[0] == "n":
                nodes.append((int(word[2]), word[3]))
            elif word[0] == "a":
                node, stack = int(word[4]), []
                while node:
                    node, key = nodes[node]
                    stack.append(names.get(key, key))
                yield int(word[5].split()[1]), stack


class Events:
    """all: Counts; own: Counts of sites in the module whose path ends in `own`; blocks: {addr: (size, node)};
    released: {node: [bytes, blocks]}, for a realloc the bytes by which its block shrinks; earlier: [bytes, blocks] from before the
    profile; stack(node): [(pc, module path)], outermost first."""

    def __init__(self, path, own=None):
        self.nodes = [(0, 0, 0)]
        self.modules = {0: ("", 0)}
        self.places = {}  # {module id: {(path, start)}}
        self.all, self.own = Counts(), Counts()
        self.blocks, self.held = {}, {}
        self.announced, self.covered = set(), {}
        self.released, self.earlier = {}, [0, 0]
        self.is_complete = False
        self.times_go_back = 0
        self.both, self.only_all, self.is_own = (self.all, self.own), (self.all,), {}
        handlers = {letter: getattr(self, "on_" + letter) for letter in "afbrjz"}
        last = 0
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            lines = iter(file)
            first = next(lines, "(nothing)").rstrip("\n")
            if first != "ptmem-events 1":
                raise ValueError("events file begins with " + first)
            for line in lines:
                word = line.rstrip("\n").split(" ")
                letter = word[0]
                handle = handlers.get(letter)
                if not handle:
                    self.record(letter, word)
                    continue
                if letter in "afbr" and len(word) > 5:
                    time = int(word[1])
                    self.times_go_back += time < last
                    last = time
                node = int(word[4])
                is_own = self.is_own.get(node)
                if is_own is None:
                    is_own = own is not None and self.modules[self.nodes[node][2]][0].endswith(own)
                    self.is_own[node] = is_own
                self.is_announced = int(word[3]) == REQUEST
                handle(word[2], node, is_own, word[5:])

    def record(self, letter, word):
        if not letter:
            raise ValueError("an empty line")
        if letter == "l":
            self.is_own.clear()
            self.modules[int(word[1])] = (" ".join(word[5:]), int(word[4], 16))
            self.places.setdefault(int(word[1]), set()).add((" ".join(word[5:]), word[2]))
        elif letter == "n":
            self.nodes.append((int(word[2]), int(word[3], 16), int(word[4])))
        elif letter == "e":
            self.is_complete = True
        elif letter == "x" and word[1] in self.held:
            self.restore(self.held.pop(word[1]))

    def release(self, node, size, blocks):
        if size or blocks:
            sums = self.released.setdefault(node, [0, 0])
            sums[0] += size
            sums[1] += blocks

    def counts(self, is_own):
        return self.both if is_own else self.only_all

    def on_a(self, _thread, node, is_own, rest):
        addr, size = int(rest[0], 16), int(rest[1])
        for counts in self.counts(is_own):
            if not addr:
                counts["failed"] += 1
                continue
            counts.change(size, 1)
            counts["allocations"] += 1
        if addr:
            if addr in self.blocks:
                if not self.is_announced and addr not in self.announced:
                    raise ValueError("block %x was live already" % addr)
                self.covered.setdefault(addr, []).append((self.blocks[addr], addr in self.announced))
            self.announced.discard(addr)
            if self.is_announced:
                self.announced.add(addr)
            self.blocks[addr] = (size, node, is_own)

    def on_z(self, _thread, node, is_own, rest):
        """A block from before the profile: no call made it."""
        addr, size = int(rest[0], 16), int(rest[1])
        for counts in self.counts(is_own):
            counts.change(size, 1)
            counts["bytes"] -= size
        self.earlier[0] += size
        self.earlier[1] += 1
        if addr in self.blocks:
            raise ValueError("block %x is there twice" % addr)
        self.blocks[addr] = (size, node, is_own)

    def on_f(self, _thread, node, is_own, rest):
        addr = int(rest[0], 16)
        if not addr:
            return
        if addr not in self.blocks:
            self.all["unknown"] += 1
            return
        size, _, was_own = self.blocks.pop(addr)
        self.release(node, size, 1)
        for counts in self.counts(was_own):
            counts.change(-size, -1)
            counts["frees"] += 1
        self.announced.discard(addr)
        if self.covered and self.covered.get(addr):
            self.blocks[addr], was_announced = self.covered[addr].pop()
            if was_announced:
                self.announced.add(addr)

    def on_j(self, thread, node, is_own, rest):
        if int(rest[0], 16) in self.blocks:
            self.on_f(thread, node, is_own, rest)

    def on_b(self, thread, _node, _is_own, rest):
        addr = int(rest[0], 16)
        if addr in self.blocks:
            self.held[thread] = (addr, self.blocks.pop(addr))

    def restore(self, held):
        addr, block = held
        self.blocks[addr] = block

    def on_r(self, thread, node, is_own, rest):
        old, addr, size = int(rest[0], 16), int(rest[1], 16), int(rest[2])
        held = self.held.pop(thread, None)
        if not old:
            self.on_a(thread, node, is_own, [rest[1], rest[2]])
        elif not addr and size:
            for counts in self.counts(is_own):
                counts["failed"] += 1
            if held:
                self.restore(held)
        elif not held:
            self.all["unknown"] += 1
        elif not addr:
            self.restore(held)
            self.on_f(thread, node, is_own, [rest[0]])
        else:
            old_size, _, was_own = held[1]
            self.release(node, max(old_size - size, 0), 0)
            for counts in self.counts(is_own):
                counts["reallocations"] += 1
            for counts in self.counts(was_own and is_own):
                counts.change(size - old_size, 0)
            self.blocks[addr] = (size, node, is_own)

    def stack(self, node):
        frames = []
        while node:
            parent, pc, module = self.nodes[node]
            path, bias = self.modules[module]
            frames.append((pc - bias, path))
            node = parent
        return frames[::-1]
