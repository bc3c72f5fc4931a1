"""--cold: which bytes of blocks were not touched for a time, against a program that knows what it touches."""

import csv
import json
import os
import random
import re
import signal
import subprocess
import time

from harness import Fail, test

PAGE = 4096


def pages_of(address, size):
    return range(address // PAGE, (address + size - 1) // PAGE + 1)


class Toucher:
    def __init__(self, t, mib=8, **how):
        self.t = t
        self.process = subprocess.Popen([t.target("gcc-O2-pie", "toucher"), str(mib)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        env=t.environment(t.directory, **how))
        self.pid = self.process.pid
        self.blocks, self.touched = {}, set()
        for line in self.process.stdout:
            words = line.split()
            if words == [b"ready"]:
                break
            address, size, first, step = int(words[0], 16), *map(int, words[1:])
            self.blocks[address] = size
            self.touched.update(at // PAGE for at in range(address + first, address + size, step or 1 << 40) if step)
        self.before = self.mappings()

    def mappings(self):
        """With their flags: what is split, and not joined again, has more of them."""
        with open("/proc/%d/smaps" % self.pid, encoding="ascii") as file:
            lines = file.readlines()
        heads = [l.split()[0] for l in lines if l[0] in "0123456789abcdef"]
        return list(zip(heads, [l for l in lines if l.startswith("VmFlags:")]))

    def truth(self, address, usable):
        """Bytes of a block that are on untouched pages; and on touched ones, but those that are all its own."""
        cold = shared = 0
        for page in pages_of(address, usable):
            part = min(address + usable, (page + 1) * PAGE) - max(address, page * PAGE)
            if page not in self.touched:
                cold += part
            elif part < PAGE:
                shared += part
        return cold, cold + shared

    def touch(self):
        """Everything that it touches, once more."""
        self.process.stdin.write(b"t")
        self.process.stdin.flush()
        self.t.equal("its answer", self.process.stdout.readline(), b"touched\n")

    def inspect(self, name, *options):
        """From when ptmem says so until all was touched."""
        path = os.path.join(self.t.subdirectory(), name)
        command = [self.t.ptmem(), "-v", "--inspect", "-p", str(self.pid), "--cold=1h", "--inspect-out=" + path, *options]
        ptmem = subprocess.Popen(command, stderr=subprocess.PIPE, env=self.t.environment(self.t.directory))
        while b"touches counts from now on" not in (line := ptmem.stderr.readline()):
            if not line:
                raise Fail("ptmem ended with %d" % ptmem.wait())
        self.touch()
        ptmem.send_signal(signal.SIGINT)
        said = ptmem.stderr.read()
        self.t.equal("status (%r)" % said, ptmem.wait(), 0)
        ptmem.stderr.close()
        return path

    def end(self):
        self.t.equal("mappings", self.mappings(), self.before)
        self.process.stdin.close()
        self.process.stdout.close()
        self.t.equal("the program's status", self.process.wait(), 0)


@test("cold/blocks")
def blocks(t):
    """Each block, to the byte."""
    program = Toucher(t)
    for _ in range(2):
        with open(program.inspect("b.csv"), encoding="ascii") as file:
            found = {int(row["address"], 16): row for row in csv.DictReader(file)}
        wrong = []
        for address in program.blocks:
            row = found[address]
            got = int(row["untouched"]), int(row["untouched_at_most"])
            if got != program.truth(address, int(row["bytes"])):
                wrong.append((hex(address), row["bytes"], got, program.truth(address, int(row["bytes"]))))
        t.check(not wrong, "%d of %d blocks: %s" % (len(wrong), len(program.blocks), wrong[:5]))
    program.end()


@test("cold/report")
def report(t):
    """The sums of the report are those of the blocks; huge pages count as one."""
    program = Toucher(t)
    program.inspect("b.csv")
    with open(program.inspect("r.json"), encoding="utf-8") as file:
        found = json.load(file)
    cold = found["untouched"]
    t.equal("bytes by type", [sum(e[key] for e in found["types"]) for key in ("bytes", "untouched_bytes", "untouched_at_most")],
            [cold["blocks_bytes"], cold["untouched_bytes"], cold["untouched_at_most"]])
    own = [program.truth(address, size) for address, size in program.blocks.items()]
    t.check(sum(o[0] for o in own) <= cold["untouched_bytes"] < sum(o[0] for o in own) * 1.1, "%s of %d" % (cold, sum(o[0] for o in own)))
    t.check(cold["untouched_bytes"] <= cold["untouched_at_most"] <= cold["blocks_bytes"], str(cold))
    t.equal("unresolved", cold["unresolved"], 0)
    text = open(program.inspect("r.txt"), encoding="utf-8").read()
    t.check(re.search(r"\nnot touched in [\d.]+ s, .*\n +([\d,]+) .* of all\n", text), text)
    program.end()


@test("cold/killed")
def killed(t):
    """ptmem is killed while mappings are split: the program goes on, and the next ptmem finds the same."""
    program = Toucher(t)
    chance, truth = random.Random(2), None
    for _ in range(10):
        ptmem = subprocess.Popen([t.ptmem(), "--inspect", "-p", str(program.pid), "--cold=0.01", "--inspect-out=/dev/null"],
                                 stderr=subprocess.DEVNULL, env=t.environment(t.directory))
        time.sleep(chance.random() * 0.2)
        ptmem.kill()
        ptmem.wait()
    program.touch()
    with open(program.inspect("b.csv"), encoding="ascii") as file:
        found = {int(row["address"], 16): row for row in csv.DictReader(file)}
    for address in program.blocks:
        row, truth = found[address], program.truth(address, int(found[address]["bytes"]))
        t.equal("block %#x" % address, (int(row["untouched"]), int(row["untouched_at_most"])), truth)
    program.process.stdin.close()
    program.process.stdout.close()
    t.equal("the program's status", program.process.wait(), 0)


@test("cold/refused")
def refused(t):
    """What --cold needs; a process that ends; one with a filter."""
    for options, why in ((["--cold=1", "--inspect=core"], "it needs --inspect and --pid"), (["--cold=1", "-p", "1"], "--cold"),
                         (["--cold=1", "true"], "it needs --inspect and --pid")):
        run = t.run([t.ptmem(), *options])
        t.check(run.status != 0 and why.encode() in run.err, "%s: %d %r" % (options, run.status, run.err))
    with subprocess.Popen(["sleep", "1000"]) as sleeper:
        ptmem = subprocess.Popen([t.ptmem(), "-v", "--inspect", "-p", str(sleeper.pid), "--cold=1h"], stderr=subprocess.PIPE,
                                 stdout=subprocess.PIPE, env=t.environment(t.directory))
        while b"touches counts" not in (line := ptmem.stderr.readline()) and line:
            pass
        sleeper.kill()
        out, err = ptmem.communicate()
    t.check(ptmem.returncode == 125 and b"ended before that time had passed" in err and not out, "%d %r" % (ptmem.returncode, err))


for _kind in ("list", "all"):
    @test("cold/filtered/" + _kind)
    def _(t, kind=_kind):
        """A seccomp filter could kill the program for the calls that this needs: none is made."""
        with subprocess.Popen([t.target("gcc-O2-pie", "filtered"), kind], cwd=t.subdirectory(), stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE) as program:
            t.equal("its first line", program.stdout.readline(), b"ready\n")
            run = t.run([t.ptmem(), "--inspect", "-p", str(program.pid), "--cold=0.01"])
            t.check(run.status == 125 and b"cannot be found: it has a seccomp filter" in run.err, "%d %r" % (run.status, run.err))
            program.stdin.write(b"r")
            program.stdin.close()
            t.check(b"done" in program.stdout.read(), "the program's output")
        t.equal("the program's status", program.returncode, 0)
