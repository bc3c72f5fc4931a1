"""--inspect of threads in signal handlers that have stacks of their own: their ordinary stacks are stacks, too, in use as far as
the interrupted code uses them; in a running process, and in its core."""

import json
import os
import subprocess

from harness import Fail, test
from inspect_lib import check_rows, gcore

THREADS, BLOCK = 4, 12345
# of each thread, besides what the program counts: the first frames, the kernel's of the handlers, parts of pages
SLACK = 48 << 10


class Program:
    """targets/altstacks."""

    def __init__(self, t, variant):
        self.t = t
        self.process = subprocess.Popen([t.target(variant, "altstacks")], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        env=t.environment(t.directory))
        words = self.process.stdout.readline().split()
        if not words or words[0] != b"ready":
            raise Fail("the program printed %r" % words)
        self.used, self.touched = map(int, words[1:])

    def inspect(self, *what):
        path = os.path.join(self.t.subdirectory(), "inspect.json")
        result = self.t.run([self.t.ptmem(), *what, "--inspect-pointers", "--inspect-out=" + path])
        self.t.equal("status and messages", (result.status, result.err), (0, b""))
        with open(path, encoding="utf-8") as file:
            return json.load(file)

    def check(self, report):
        rows = {name: row["resident"] for name, row in report["rows"].items()}
        for name, expected in (("stacks", self.used), ("stacks_beyond", self.touched)):
            self.t.check(abs(rows[name] - THREADS * expected) < THREADS * SLACK,
                         "%s: %d bytes, %d times %d expected" % (name, rows[name], THREADS, expected))
        self.t.check(rows["anonymous"] < SLACK, "%d bytes of unknown mappings" % rows["anonymous"])
        types = [e for e in report["types"] if BLOCK <= e["bytes"] / e["blocks"] < BLOCK + 16]
        holders = [(h["kind"], h["blocks"], h["thread"]) for e in types for h in e["holders"]]
        self.t.equal("what holds the blocks", [h[:2] for h in holders], [("stack", 1)] * THREADS)
        self.t.equal("threads that do", len({h[2] for h in holders}), THREADS)

    def end(self):
        self.process.stdin.close()
        self.t.equal("the program's status", self.process.wait(), 0)


for _variant in ("gcc-O2-pie", "clang-O0-nopie"):
    @test("inspect/stacks/" + _variant)
    def _(t, variant=_variant):
        program = Program(t, variant)
        pid = str(program.process.pid)
        for options in ((), ("--inspect-copy=0",)):
            report = program.inspect("--inspect", "-p", pid, *options)
            check_rows(t, report)
            program.check(report)
        program.end()


@test("inspect/stacks/core")
def core(t):
    program = Program(t, "gcc-O2-pie")
    program.check(program.inspect("--inspect=" + gcore(t, program.process.pid)))
    program.end()
