"""--inspect of a main arena in several parts, since the program calls sbrk itself, or malloc has left brk: each block of the
program is found, with its size, and no freed one; nothing counts as corrupt."""

import csv
import json
import os
import subprocess

from harness import Fail, test


class Program:
    """targets/brk_parts, which prints its blocks."""

    def __init__(self, t, variant, why):
        self.t = t
        self.process = subprocess.Popen([t.target(variant, "brk_parts"), why], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        env=t.environment(t.directory))
        self.used, self.freed = {}, set()
        for line in self.process.stdout:
            words = line.decode().split()
            if words[0] == "ready":
                self.foreign = int(words[1])
                return
            address, size = int(words[0][1:], 16), int(words[1])
            if words[0][0] == "+":
                self.used[address] = size
            else:
                self.freed.add(address)
        raise Fail("the program ended early")

    def end(self):
        self.process.stdin.close()
        self.t.equal("the program's status", self.process.wait(), 0)


def inspect(t, program, *options):
    path, blocks = (os.path.join(t.subdirectory(), name) for name in ("inspect.json", "blocks.csv"))
    for out in (path, blocks):
        result = t.run([t.ptmem(), "--inspect", "-p", str(program.process.pid), "--inspect-out=" + out, *options])
        t.equal("status and messages", (result.status, result.err), (0, b""))
    with open(path, encoding="utf-8") as report, open(blocks, encoding="utf-8", newline="") as rows:
        return json.load(report), {int(row["address"], 16): int(row["bytes"]) for row in csv.DictReader(rows)}


def check(t, program, *options):
    report, blocks = inspect(t, program, *options)
    for name in ("broken_lists", "unlisted", "broken_heaps"):
        t.equal(name, report[name], 0)
    t.equal("blocks of the program", {a: blocks.get(a) for a in program.used}, program.used)
    t.equal("freed blocks", program.freed & set(blocks), set())
    t.equal("blocks with mappings of their own", report["mmapped_blocks"], sum(size > 4 << 20 for size in program.used.values()))
    main = report["arenas"][0]
    t.equal("main arena, bytes not found", (main["main"], main["missing"]), (True, 0))
    t.equal("bytes that could not be followed", report["rows"]["unknown_heap"]["resident"], 0)
    # the start of a part of the heap is aligned
    foreign = report["rows"]["anonymous"]["resident"]
    t.check(program.foreign <= foreign < program.foreign + 30000, "%d bytes of sbrk, %d anonymous" % (program.foreign, foreign))
    return main["heaps"]


for _variant in ("gcc-O2-pie",):  # the heap is the C library's
    for _why, _heaps in (("sbrk", 1), ("mapped", 3), ("back", 4), ("first", 2)):
        @test("inspect/parts/%s/%s" % (_why, _variant))
        def _(t, variant=_variant, why=_why, heaps=_heaps):
            program = Program(t, variant, why)
            for options in ((), ("--inspect-copy=0",)):
                found = check(t, program, *options)
                t.check(found >= heaps and (found == 1) == (heaps == 1), "%d parts" % found)
            program.end()
