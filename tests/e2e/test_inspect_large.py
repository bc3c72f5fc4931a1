"""--inspect of blocks with mappings of their own: each is found with its size, also where the program has changed a part of
the mapping, and memory that the program has not touched stays so."""

import csv
import json
import os
import subprocess

from harness import Fail, test

VARIANTS = ("gcc-O2-pie",)  # the heap is the C library's


class Program:
    """targets/large_blocks, which prints its blocks."""

    def __init__(self, t, variant, which):
        self.t = t
        self.process = subprocess.Popen([t.target(variant, "large_blocks"), which], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, env=t.environment(t.directory))
        self.blocks = {}
        for line in self.process.stdout:
            if line == b"ready\n":
                return
            address, size = line.split()
            self.blocks[int(address, 16)] = int(size)
        raise Fail("the program ended early")

    def end(self):
        self.process.stdin.close()
        self.t.equal("the program's status", self.process.wait(), 0)

    def page_tables(self):
        with open("/proc/%d/status" % self.process.pid, encoding="ascii") as file:
            return next(line for line in file if line.startswith("VmPTE:"))


def inspect(t, program, *options, lost=0):
    """The JSON, and the sizes of the blocks by address. @lost: the number of other blocks, which cannot be found."""
    found = len(program.blocks)
    warning = "%d of %d blocks with mappings of their own were found\n" % (found, found + lost) if lost else ""
    path, blocks = (os.path.join(t.subdirectory(), name) for name in ("inspect.json", "blocks.csv"))
    for out in (path, blocks):
        result = t.run([t.ptmem(), "--inspect", "-p", str(program.process.pid), "--inspect-out=" + out, *options])
        expected = "ptmem: warning: %s: %s" % (out, warning) if warning and out == blocks else ""
        t.equal("status and messages", (result.status, result.err.decode()), (0, expected))
    with open(path, encoding="utf-8") as report, open(blocks, encoding="utf-8", newline="") as rows:
        return json.load(report), {int(row["address"], 16): int(row["bytes"]) for row in csv.DictReader(rows)}


def check(t, program, *options, lost=0):
    """The report's JSON."""
    report, blocks = inspect(t, program, *options, lost=lost)
    t.equal("blocks of the program", {a: blocks.get(a) for a in program.blocks}, program.blocks)
    t.equal("blocks with mappings of their own", report["mmapped_blocks"], len(program.blocks))
    t.equal("all were found", report["mmapped_complete"], lost == 0)
    t.equal("sum of the rows", sum(row["resident"] for row in report["rows"].values()), report["memory"]["resident"])
    return report


for _variant in VARIANTS:
    for _which, _threshold in (("aligned", 128 << 10), ("fixed", 1 << 20)):
        @test("inspect/large/%s/%s" % (_which, _variant))
        def _(t, variant=_variant, threshold=_threshold, which=_which):
            """Nothing but one block: malloc's parameters are recognized although the main arena has no heap."""
            program = Program(t, variant, which)
            malloc = check(t, program)["malloc"]
            t.equal("thresholds", (malloc["mmap_threshold"], malloc["dynamic"]), (threshold, which == "aligned"))
            t.equal("limits", (malloc["arena_max"], malloc["tcache_count"], malloc["mmaps"]), (0, 7, 1))
            program.end()

    for _which in ("advised", "protected"):
        @test("inspect/large/%s/%s" % (_which, _variant))
        def _(t, variant=_variant, which=_which):
            """The kernel has divided the mappings of the blocks."""
            program = Program(t, variant, which)
            for options in ((), ("--inspect-copy=0",)):
                check(t, program, *options)
            program.end()

    @test("inspect/large/shrunk/" + _variant)
    def _(t, variant=_variant):
        """Pages with blocks that had 8 MiB, as their first words still say."""
        program = Program(t, variant, "shrunk")
        t.check(all(size < 4096 for size in program.blocks.values()), "sizes: %s" % program.blocks)
        check(t, program)
        program.end()

    @test("inspect/large/untouched/" + _variant)
    def _(t, variant=_variant):
        """The search for a block that is not found reads only pages that are there."""
        program = Program(t, variant, "untouched")
        before = program.page_tables()
        for options in ((), ("--inspect-copy=0",)):
            check(t, program, *options, lost=1)
            t.equal("page tables", program.page_tables(), before)
        program.end()
