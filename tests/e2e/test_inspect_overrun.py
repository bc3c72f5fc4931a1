"""--inspect and -p of a program that wrote past a block: the heap is called corrupt, and what cannot be followed has its row."""

import json
import os
import subprocess

from harness import Fail, test

SIZES = "0x1", "0x8", "0x11", "0x21001", "0x1000000000", "0xffffffffffffffff"
SPOILT = (("memset",), *(("top", size) for size in SIZES), *(("thread", size) for size in (*SIZES, "0x45")),
          *(("block", size) for size in ("0x1", "0x8", "0x11")), ("apart", "0x1"), ("apart", "0x8"), ("apart", "0x31"))


class Overrun:
    def __init__(self, t, *argv, name=None):
        self.t = t
        program = t.target("gcc-O2-pie", "overrun")
        self.process = subprocess.Popen([name or program, *argv], executable=program, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, env=t.environment(t.directory))
        self.pid = str(self.process.pid)
        line = self.process.stdout.readline()
        if line != b"ready\n":
            raise Fail("the program printed %r" % line)

    def inspect(self, *options):
        result = self.t.run([self.t.ptmem(), "--inspect", "-p", self.pid, *options])
        self.t.equal("status", result.status, 0)
        return result

    def report(self):
        path = os.path.join(self.t.subdirectory(), "look.json")
        self.inspect("--inspect-out=" + path)
        with open(path, encoding="utf-8") as file:
            return json.load(file)

    def end(self):
        self.process.stdin.close()
        self.t.equal("the program's status", self.process.wait(), 0)
        self.process.stdout.close()


for _argv in (("none",), *SPOILT):
    @test("inspect/overrun/" + "-".join(_argv))
    def _(t, argv=_argv):
        program = Overrun(t, *argv)
        is_corrupt = argv != ("none",)
        report, text = program.report(), program.inspect().out
        t.equal("heaps that cannot be followed", report["broken_heaps"], int(is_corrupt))
        if argv[0] != "apart": # where the heap's start may not be found
            t.equal("bytes of them", report["rows"]["unknown_heap"]["resident"] > 0, is_corrupt)
            t.equal("the text's row", b"heap that could not be followed" in text, is_corrupt)
        t.equal("the text's doubt", b"could not be followed to their ends: corrupt" in text, is_corrupt)
        t.check(b"TiB" not in text, "nonsense among the parameters: %r" % text)
        if argv[0] not in ("block", "apart"):
            t.check(sum(a["live_blocks"] for a in report["arenas"]) >= 999, "the blocks before it are not live")
        warned = program.inspect("--inspect-out=blocks.csv").err
        t.equal("warnings beside the CSV", b"could not be followed to their ends" in warned, is_corrupt)
        result = t.run([t.ptmem(), "-p", program.pid, "--duration=0.01"])
        t.equal("blocks from before are not known", b"are not known: its heap is not consistent" in result.err, is_corrupt)
        program.end()


@test("inspect/overrun/name")
def name(t):
    """Nothing of a command line acts on a terminal."""
    program = Overrun(t, "none", name="x\033[2Jy\nz")
    first = program.inspect().out.split(b"\n", 1)[0]
    t.check(first.startswith(b"process %s, x\\x1b[2Jy z none" % program.pid.encode()), "the first line: %r" % first)
    program.end()


@test("inspect/types/nodes")
def nodes(t):
    """Blocks that begin with addresses are of one type, whatever the addresses' bytes look like."""
    program = Overrun(t, "nodes")
    found = [(e["kind"], e["blocks"]) for e in program.report()["types"] if e["largest"] == 24]
    t.equal("types of these blocks", [kind for kind, blocks in found if blocks > 4000], ["size"])
    t.check(not any(kind == "text" for kind, _ in found), "some are text: %s" % found)
    program.end()
