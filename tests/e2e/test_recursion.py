"""Stacks of thousands of frames: jumps see what breakpoints see, whatever changed since the last call."""

import collections
import glob
import os

from events import Events
from harness import test

VARIANTS = ("gcc-O2-pie", "clang-O0-nopie")
MODES = ("varied", "longjmp", "handler", "fork", "threads", "announced")
# A level is two frames. More frames than the slots of threads have room for, and more than are ever walked.
DEPTH, DEPTH_OF_MANY, TOO_DEEP, MAX_FRAMES = 3000, 2100, 8300, 16384


class Stacks:
    """Whole stacks of several runs, by number: equal ones have the same."""

    def __init__(self):
        self.numbers = {}  # {(number of the caller's stack, address, module): number}
        self.frames = [0]  # of each

    def of_nodes(self, recorded):
        """The number of the stack that each node of @recorded stands for."""
        found = [0]
        for parent, pc, module in recorded.nodes[1:]:
            path, bias = recorded.modules[module]
            key = found[parent], pc - bias, path
            if key not in self.numbers:
                self.numbers[key] = len(self.frames)
                self.frames.append(self.frames[found[parent]] + 1)
            found.append(self.numbers[key])
        return found


def paths(t, way, program, stacks, depth, mode):
    """The whole stacks of the program's blocks, and the inner parts of those of its children."""
    cwd = t.subdirectory()
    run = t.run([t.ptmem(), "--probes=" + way, "--threshold=0", "--view=total", "--events=events", "--folded=f.%p",
                 "-o", "m.%p", "--", program, str(depth), mode], cwd=cwd)
    t.equal("%s, %s: status and output" % (way, mode), (run.status, run.out.split()[-1:]), (0, [b"OK"]))
    all_events = Events(os.path.join(cwd, "events"))
    of_nodes = stacks.of_nodes(all_events)
    whole = collections.Counter((size, of_nodes[node]) for size, node, _ in all_events.blocks.values())
    inner = []
    for name in glob.glob(os.path.join(cwd, "f.*")):
        with open(name, encoding="utf-8") as file:
            inner.append(sorted(file))
    return whole, sorted(inner)


def check_equal(t, program, depth, mode):
    stacks = Stacks()
    whole, inner = paths(t, "break", program, stacks, depth, mode)
    t.check(max(stacks.frames[stack] for _, stack in whole) >= min(2 * depth, MAX_FRAMES), "no deep stacks")
    for way in ("auto", "jump"):
        other_whole, other_inner = paths(t, way, program, stacks, depth, mode)
        differing = sum((whole - other_whole).values()) + sum((other_whole - whole).values())
        t.equal("%s at depth %d, --probes=%s: blocks with other stacks" % (mode, depth, way), differing, 0)
        t.check(inner == other_inner, "%s at depth %d, --probes=%s: other folded stacks" % (mode, depth, way))


def check_verified(t, program, depth, mode):
    """Each stack is sent both ways, and ptmem compares them."""
    profile = t.profile([program, str(depth), mode], options=["--probes=jump", "--ring=4M", "--verify-stacks"])
    stats = profile.stats
    t.equal("status and output", (profile.status, profile.out.split()[-1:]), (0, [b"OK"]))
    t.check(any(s["verified stacks"] for s in stats), "no stack was sent both ways")
    t.equal("differing stacks", [s["differing stacks"] for s in stats], [0] * len(stats))


def register(variant, mode):
    @test("recursion/%s/%s" % (variant, mode), limit=180)
    def _(t):
        program = t.target(variant, "recursion")
        depth = DEPTH_OF_MANY if mode == "threads" else DEPTH
        check_equal(t, program, depth, mode)
        check_verified(t, program, depth, mode)


for m in MODES:
    register(VARIANTS[0], m)
register(VARIANTS[1], "varied")  # the others differ in what happens to the thread, not in its frames


def register_interrupt(variant):
    @test("recursion/%s/interrupt" % variant, limit=120)
    def _(t):
        """A fork in the middle of a call: both processes continue with it."""
        program = t.target(variant, "recursion")
        profile = t.profile([program, str(DEPTH), "interrupt"], options=["--probes=jump"])
        t.equal("status, output (%s)" % profile.err, (profile.status, profile.out.split()[-1:]), (0, [b"OK"]))
        t.equal("processes", len(profile.stats), 21)
        check_verified(t, program, DEPTH, "interrupt")


register_interrupt(VARIANTS[0])


@test("recursion/beyond-limit", limit=180)
def too_deep(t):
    """Deeper than any cache: of more than 16,384 frames the outermost are missing, in all modes alike."""
    check_equal(t, t.target(VARIANTS[0], "recursion"), TOO_DEEP, "longjmp")


@test("recursion/stops")
def stops(t):
    """Calls and announcements are breakpoints no more once a thread has a deep cache."""
    program = t.target(VARIANTS[0], "recursion")
    for mode in ("longjmp", "announced"):
        stats = t.profile([program, str(2 * DEPTH), mode], options=["--probes=jump"]).only_stats()
        t.check(stats["breakpoint stops"] < stats["allocations"] // 2,
                "%s: %d stops for %d allocations" % (mode, stats["breakpoint stops"], stats["allocations"]))
