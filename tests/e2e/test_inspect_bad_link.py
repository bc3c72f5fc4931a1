"""--inspect and the leak check of a program with one thread that damaged a list of its cache: the cache is found, the list
counts as broken, and no block that was freed is called lost."""

import json
import os
import re
import subprocess

from harness import Fail, test

# the arguments of targets/bad_link, which leave one list broken
SPOILT = (("link", "0", "20"), ("link", "60", "20"), ("link", "139", "20"), ("link", "0", "1"), ("link", "6", "1"),
          ("first", "20"), ("first", "1"), ("last", "20"), ("last", "1"), ("count", "20"), ("count", "1"))
PER_SIZE = 7


class Program:
    def __init__(self, t, *argv, variant="gcc-O2-pie"):
        self.t = t
        self.process = subprocess.Popen([t.target(variant, "bad_link"), *argv], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, env=t.environment(t.directory))
        self.pid = self.process.pid
        words = self.process.stdout.readline().split()
        if len(words) != 2 or words[0] != b"ready":
            raise Fail("the program printed %r" % words)
        self.freed = int(words[1])

    def end(self):
        self.process.stdin.close()
        self.t.equal("the program's status", self.process.wait(), 0)


def inspect(t, what):
    """The JSON, and what the text says."""
    path = os.path.join(t.subdirectory(), "inspect.json")
    result = t.run([t.ptmem(), *what, "--inspect-out=" + path])
    t.equal("status", result.status, 0)
    with open(path, encoding="utf-8") as file:
        report = json.load(file)
    return report, t.run([t.ptmem(), *what]).out.decode()


def check_report(t, what, broken, blocks):
    """One cache with that many blocks, as far as its lists can be followed."""
    report, text = inspect(t, what)
    t.equal("caches, broken lists", (report["thread_caches"], report["broken_lists"]), (1, broken))
    t.equal("elements of lists and heaps that fit no chunk", (report["unlisted"], report["broken_heaps"]), (0, 0))
    found = sum(a["free_chunks"]["tcache"] for a in report["arenas"])
    t.equal("bytes of the blocks in caches", found, blocks)
    t.equal("the text's doubt", "1 list of free blocks could not be followed" in text, broken == 1)


def check_blocks(t, what, broken):
    """A list of blocks that may not be right comes with a warning."""
    result = t.run([t.ptmem(), *what, "--inspect-out=blocks.csv"])
    t.equal("status", result.status, 0)
    lines = result.err.decode().splitlines()
    t.equal("lines of warnings", len(lines), broken)
    for line in lines:
        t.check("blocks.csv: 1 list of free blocks could not be followed" in line, "another warning: " + line)


def leak_check(t, program):
    """What `-p` says of blocks from before, and its status."""
    result = t.run([t.ptmem(), "-p", str(program.pid), "--duration=0.01", "--leak-check", "--older-than=0", "--leaks-out=leaks",
                    "--error-exitcode=9"])
    with open(os.path.join(result.cwd, "leaks"), encoding="utf-8") as file:
        lost = re.search(r"definitely lost: +([0-9,]+) bytes", file.read())
    t.equal("definitely lost", lost.group(1), "0")
    t.equal("status", result.status, 0)
    return b"are not known: its heap is not consistent" in result.err


def chunk_bytes(sizes):
    return sum(PER_SIZE * (32 + 16 * n) for n in sizes)


def broken_size(argv):
    """Which size's list is broken."""
    return int(argv[1]) % int(argv[2]) if argv[0] == "link" else 0


for _variant in ("gcc-O2-pie", "gcc-O2-static"):
    for _argv in SPOILT:
        @test("inspect/bad-link/%s/%s" % (_variant, "-".join(_argv)))
        def _(t, variant=_variant, argv=_argv):
            program = Program(t, *argv, variant=variant)
            sizes = [n for n in range(program.freed // PER_SIZE) if n != broken_size(argv)]
            check_report(t, ["--inspect", "-p", str(program.pid)], 1, chunk_bytes(sizes))
            check_blocks(t, ["--inspect", "-p", str(program.pid)], 1)
            t.equal("blocks from before are not known", leak_check(t, program), True)
            program.end()

    @test("inspect/bad-link/%s/sound" % _variant)
    def _(t, variant=_variant):
        """Blocks that only look like a cache are not used, the real one is."""
        program = Program(t, variant=variant)
        check_report(t, ["--inspect", "-p", str(program.pid)], 0, chunk_bytes(range(program.freed // PER_SIZE)))
        check_blocks(t, ["--inspect", "-p", str(program.pid)], 0)
        t.equal("blocks from before are not known", leak_check(t, program), False)
        program.end()


@test("inspect/bad-link/core")
def core(t):
    program = Program(t, "link", "60", "20")
    name = os.path.join(t.subdirectory(), "core")
    result = t.run([t.program("gcore"), "-o", name, str(program.pid)])
    t.equal("status of gcore", result.status, 0)
    path = "%s.%d" % (name, program.pid)
    check_report(t, ["--inspect=" + path], 1, chunk_bytes(range(1, 20)))
    check_blocks(t, ["--inspect=" + path], 1)
    os.remove(path)
    program.end()
