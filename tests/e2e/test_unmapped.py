"""Programs that take away all mappings that are not their own, code of ptmem's included: nothing they do changes, and
nothing is missing from the profile. They go through /proc/self/maps five times, and allocate meanwhile and afterwards
(targets/unmapper.c)."""

import os
import subprocess

import harness
from harness import test
from process_lib import Attached, differing_text
from truth_lib import BOTH, OWN, compare_threads

MODES = {"auto": (), "break": ("--probes=break",), "jump": ("--probes=jump",)}
# A thread that is in a pad when the program maps its own memory there is lost (ptmem.1, CAVEATS): "replace" has one.
# Blocks that it allocates each time: where each call hits a breakpoint, fewer reach as far into what it takes away.
BLOCKS = {"auto": "3000", "break": "800", "jump": "3000"}
WAYS = (("scrub", "0"), ("scrub", "3"), ("refill", "3"), ("deny", "0"), ("deny", "3"), ("replace", "0"))
# What ptmem does when its memory goes depends on the way, on other threads, and on whether there are jumps: the default has each way,
# started and attached; where all or no calls have jumps, each way once.
STARTED = {"break": (("refill", "3"), ("deny", "3"), ("replace", "0")), "jump": (("scrub", "3"), ("deny", "0"), ("replace", "0"))}
ATTACHED = {"break": (("scrub", "3"), ("deny", "0"), ("replace", "0")), "jump": (("refill", "3"), ("deny", "3"), ("replace", "0"))}


def register_started(variant, mode, way, threads):
    @test("unmapped/started/%s/%s-%s-%s" % (variant, way, threads, mode), limit=120)
    def _(t):
        compare_threads(t, variant, "unmapper", (way, threads, "go", BLOCKS[mode]), options=MODES[mode])


def code_without_file(pid):
    with open("/proc/%d/maps" % pid, encoding="utf-8") as maps:
        return [line for line in maps if "x" in line.split()[1] and len(line.split()) == 5]


def register_fork(mode):
    @test("unmapped/replaced-and-forked/" + mode)
    def _(t):
        """A child of a program that has taken the place of ptmem's memory."""
        for _ in range(3):
            profile = t.profile([t.target("gcc-O2-pie", "replaced_fork")], MODES[mode])
            t.equal("status (%s)" % profile.messages, profile.status, 0)
            t.equal("profiles", len(profile.files), 2)


for m in MODES:
    register_fork(m)


class Unmapper:
    """The target, which waits for its first byte."""

    def __init__(self, t, variant, way, threads, blocks="3000"):
        self.t, self.cwd = t, t.subdirectory()
        self.process = subprocess.Popen([t.target(variant, "unmapper"), way, threads, "wait", blocks], cwd=self.cwd,
                                        env=t.environment(self.cwd), stdin=subprocess.PIPE)
        self.pid = self.process.pid

    def is_done(self):
        if self.process.poll() is not None:
            raise harness.Fail("it died: %s" % harness.signal_name(self.process.returncode))
        return os.path.exists(os.path.join(self.cwd, "truth")) and self.t.truths(self.cwd)

    def run(self):
        self.process.stdin.write(b"x")
        self.process.stdin.flush()
        self.t.wait_until("the program to unmap and to allocate", self.is_done, seconds=100)

    def end(self):
        """It checks that its own memory is untouched."""
        self.process.stdin.close()
        self.t.equal("status of the program", self.process.wait(timeout=200), 0)


def run_attached(t, variant, way, threads, options, blocks="3000"):
    program = Unmapper(t, variant, way, threads, blocks)
    attached = Attached(t, program.pid, ["--events=events", *options]).wait_attached()
    program.run()
    profile = attached.detach()
    t.equal("files whose text differs", differing_text(program.pid), [])
    t.equal("code left", code_without_file(program.pid), [])
    program.end()
    return program, profile


def register_attached(variant, mode, way, threads):
    @test("unmapped/attached/%s/%s-%s-%s" % (variant, way, threads, mode), limit=120)
    def _(t):
        program, profile = run_attached(t, variant, way, threads, MODES[mode], BLOCKS[mode])
        stats, found = profile.only_stats(), profile.events("unmapper")
        t.counts("ptmem and its events", stats, found.all)
        t.check(way == "replace" or "uses the memory of pads" not in profile.messages, profile.messages)
        t.counts("events of the program's own sites and the truth", found.own, t.truth(program.cwd), OWN)


def check_estimate(t, stats, truth):
    """3,600 marks at least: six standard deviations are 10 %."""
    error = abs(stats["bytes"] - truth["bytes"]) / truth["bytes"]
    t.check(error < 0.1, "%d bytes, not %d" % (stats["bytes"], truth["bytes"]))


def register_sampled(variant, way, threads):
    options = ("--heap-sample=500",)

    @test("unmapped/started/%s/%s-%s-sampled" % (variant, way, threads), limit=120)
    def _(t):
        profile = t.profile([t.target(variant, "unmapper"), way, threads], options=options)
        t.equal("status", profile.status, 0)
        check_estimate(t, profile.only_stats(), t.truth(profile.directory))

    @test("unmapped/attached/%s/%s-%s-sampled" % (variant, way, threads), limit=120)
    def _(t):
        program, profile = run_attached(t, variant, way, threads, options)
        check_estimate(t, profile.only_stats(), t.truth(program.cwd))


def register_killed(variant, way):
    @test("unmapped/killed/%s/%s" % (variant, way), limit=120)
    def _(t):
        """The guardian finds the code at its new places, and leaves the program's memory alone, too."""
        program = Unmapper(t, variant, way, "0")
        attached = Attached(t, program.pid).wait_attached()
        program.run()
        attached.process.kill()
        attached.process.wait()
        t.wait_until("the text to be restored", lambda: differing_text(program.pid) == [])
        t.wait_until("the code to be removed", lambda: code_without_file(program.pid) == [])
        program.end()


for w in ("scrub", "deny", "replace"):
    register_killed(BOTH[0], w)
for w, n in WAYS:
    register_started(BOTH[0], "auto", w, n)
    register_attached(BOTH[0], "auto", w, n)
for m in ("break", "jump"):
    for w, n in STARTED[m]:
        register_started(BOTH[0], m, w, n)
    for w, n in ATTACHED[m]:
        register_attached(BOTH[0], m, w, n)
for w, n in WAYS[1:3] + WAYS[4:]:
    register_sampled(BOTH[0], w, n)
# the program at fixed addresses: jumps must reach it, and what it takes away is elsewhere
register_started(BOTH[1], "auto", "replace", "0")
register_attached(BOTH[1], "auto", "scrub", "3")
register_killed(BOTH[1], "replace")

# without the right to execute it, all code faults at the next call
register_started(BOTH[0], "auto", "data", "3")
register_attached(BOTH[0], "auto", "data", "3")
register_sampled(BOTH[0], "data", "3")
