"""--inspect-copy of a large process: its memory is copied while it runs, and what it writes meanwhile again."""

import csv
import json
import os
import random
import subprocess
import time

from harness import Fail, Skip, test
from process_lib import delays

MIB = 80  # less is copied while it is stopped
SIZES = range(905, 1501 + 40)  # usable: what is left of a chunk may be too small for another one


class Rewriter:
    def __init__(self, t):
        self.t = t
        self.process = subprocess.Popen([t.target("gcc-O2-pie", "rewriter"), str(MIB)], stdout=subprocess.PIPE)
        self.pid = self.process.pid
        line = self.process.stdout.readline().split()
        if line[:1] != [b"ready"]:
            raise Fail("the program printed %r" % line)
        self.blocks = int(line[1])
        self.before = self.traces()

    def files(self):
        return sorted(os.listdir("/proc/%d/fd" % self.pid))

    def traces(self):
        """What watching its writes could leave: files, flags of mappings, signal actions."""
        with open("/proc/%d/smaps" % self.pid, encoding="ascii") as file:
            flags = [line for line in file if line.startswith("VmFlags:")]
        with open("/proc/%d/status" % self.pid, encoding="ascii") as file:
            signals = [line for line in file if line.startswith(("SigBlk", "SigIgn", "SigCgt"))]
        return (self.files(), any(" uw " in line for line in flags), signals)

    def inspect(self, *options):
        cwd = self.t.subdirectory()
        run = self.t.run([self.t.ptmem(), "-v", "--inspect", "-p", str(self.pid), "--inspect-out=b.csv", *options], cwd=cwd)
        self.t.equal("status (%r)" % run.err, run.status, 0)
        if b"writes to it cannot be watched" in run.err:
            raise Skip("the kernel cannot watch writes")
        self.t.check(b"its memory was copied before it is stopped" in run.err, "not copied while it ran: %r" % run.err)
        self.t.check(b"corrupt" not in run.err and b"could not be followed" not in run.err, "doubts: %r" % run.err)
        with open(os.path.join(cwd, "b.csv"), encoding="ascii") as file:
            return sum(int(row["bytes"]) in SIZES for row in csv.DictReader(file))

    def wait_until_clean(self):
        self.t.wait_until("nothing is left", lambda: self.traces() == self.before)

    def end(self):
        self.wait_until_clean()
        self.process.terminate()
        out = self.process.stdout.read()
        self.t.equal("what the program found", (self.process.wait(), out), (0, b"right\n"))


@test("inspect/ahead/blocks")
def blocks(t):
    """Blocks come and go all over the heap; their number does not change. By default, too, it is copied where memory is left."""
    program = Rewriter(t)
    for options in ((), ("--inspect-copy=auto",), ("--inspect-copy=1G",), ("--inspect-copy=1G",)):
        found = program.inspect(*options)
        t.check(found in (program.blocks - 1, program.blocks), "%d blocks of %d" % (found, program.blocks))
    program.end()


@test("inspect/ahead/killed")
def killed(t):
    """ptmem dies at any moment: the program goes on, and nothing is left in it."""
    program = Rewriter(t)
    chance = random.Random(1)
    for _ in range(12):
        ptmem = subprocess.Popen([t.ptmem(), "--inspect", "-p", str(program.pid), "--inspect-copy=1G", "--inspect-out=/dev/null"],
                                 stderr=subprocess.DEVNULL, env=t.environment(t.directory))
        time.sleep(chance.random() * 0.2)
        ptmem.kill()
        ptmem.wait()
    program.end()


def die_at(t, program, request, **settings):
    """The status of a ptmem that dies at that request."""
    env = {**os.environ, **delays(die=request, **settings)}
    return t.run([t.ptmem(), "-q", "--inspect", "-p", str(program.pid), "--inspect-copy=1G", "--inspect-out=/dev/null"], env=env).status


@test("inspect/ahead/killed-at")
def killed_at(t):
    """It dies at each of its requests: the file by which writes are watched is closed, too."""
    program = Rewriter(t)
    request = 1
    while die_at(t, program, request, **({"die_later": 1} if request % 2 else {})) != 0:
        program.wait_until_clean()
        request += 1
    t.check(request > 30, "it made only %d requests" % request)
    program.end()


@test("inspect/ahead/leaks")
def leaks(t):
    """--leak-check of it: the copy is scanned, and no block of it appears lost."""
    program = Rewriter(t)
    cwd = t.subdirectory()
    run = t.run([t.ptmem(), "-v", "-p", str(program.pid), "--duration=0.1", "--leak-check", "--inspect-copy=1G",
                 "--older-than=0", "--leaks-out=l.json", "--massif-out-file=/dev/null"], cwd=cwd)
    t.equal("status (%r)" % run.err, run.status, 0)
    if b"writes to it cannot be watched" in run.err:
        raise Skip("the kernel cannot watch writes")
    t.check(b"its memory was copied before it is stopped" in run.err, "not copied while it ran: %r" % run.err)
    with open(os.path.join(cwd, "l.json"), encoding="ascii") as file:
        kinds = {kind: (row["bytes"], row["blocks"]) for kind, row in json.load(file)["kinds"].items()}
    lost = [kinds[kind + " lost"] for kind in ("definitely", "indirectly", "possibly")]
    t.equal("lost (%r)" % kinds, lost, [(0, 0)] * 3)
    t.check(kinds["still reachable"][1] >= program.blocks - 1, "%r, of %d blocks" % (kinds, program.blocks))
    program.end()
