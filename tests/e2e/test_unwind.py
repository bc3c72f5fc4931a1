"""Stacks through code without CFI."""

import os

from harness import report, test

DEPTH, CALLS, BLOCK = 20, 200, 1000


@test("unwind/interpreter")
def interpreter(t):
    """Generated code that pushes its return addresses by hand: no call precedes them."""
    for variant in ("gcc-O2-pie", "clang-O0-nopie"):
        for way in ("break", "auto", "jump"):
            what = "%s, --probes=%s" % (variant, way)
            profile = t.profile([t.target(variant, "interpreter"), str(DEPTH), str(CALLS)],
                                ["--probes=" + way, "--threshold=0", "--peak-inaccuracy=0"])
            stats = profile.only_stats()
            t.equal(what + ": complete stacks", stats["complete stacks"], stats["stacks"])
            t.check(stats["guessed frames"] > 0, what + ": no frame was guessed")
            paths = profile.only_massif().peak()["tree"].paths()
            [(path, size)] = [(p, n) for p, n in paths.items() if p[-1] == "allocate"]
            t.equal(what + ": bytes", size, CALLS * BLOCK)
            t.equal(what + ": frames behind main", path[path.index("main") + 1:], ("???",) * DEPTH + ("allocate",))


TRAPPING = ("illegal", "fault", "breakpoint")

for _how in ("--probes=break", "--probes=jump", "--heap-sample=1000"):
    def _trapping(t, how=_how):
        """Functions whose first instruction raises the signal in whose handler memory is allocated: the interrupted
        frame has their names, not those of the functions before them."""
        for variant in ("gcc-O2-pie", "clang-O0-nopie"):
            what = "%s, %s: " % (variant, how)
            run = t.profile([t.target(variant, "trapping"), "40"],
                            [how, "--threshold=0", "--peak-inaccuracy=0", "--record=rec", "--folded=folded", "--view=live",
                             "--verify-stacks"])
            t.equal(what + "status", run.status, 0)
            paths = run.only_massif().peak()["tree"].paths()
            t.equal(what + "massif's interrupted frames", {p[-4] for p in paths if p[-1] == "allocate"}, set(TRAPPING))
            recorded = report(t, "--format=folded", "--at=end", os.path.join(run.directory, "rec"))
            with open(os.path.join(run.directory, "folded"), encoding="utf-8") as file:
                for text in (file.read(), recorded):
                    found = [line.rsplit(" ", 1)[0].split(";") for line in text.splitlines() if "allocate" in line]
                    t.equal(what + "folded frames", {name for p in found for name in p} & {
                        n for f in TRAPPING for n in (f, "before_" + f)}, set(TRAPPING))
            if "jump" in how:
                t.equal(what + "differing stacks", run.only_stats().get("differing stacks", 0), 0)
    test("unwind/trapping/" + _how[2:].replace("=", "-"))(_trapping)


@test("unwind/no-end")
def no_end(t):
    """A return address of 0 that code without CFI leads to proves nothing: such stacks are incomplete, with a reason."""
    for variant in ("gcc-O2-pie", "clang-O0-nopie"):
        for way in ("break", "auto", "jump"):
            what = "%s, --probes=%s" % (variant, way)
            profile = t.profile([t.target(variant, "no_end"), "3000", "2000"], ["--probes=" + way])
            stats = profile.only_stats()
            t.equal(what + ": stacks", stats["stacks"], 5000)
            t.equal(what + ": complete stacks", stats["complete stacks"], 2000)
            t.check(any("2,000 of 5,000 complete (3,000 code without unwind information)" in m for m in profile.messages),
                    what + ": the summary: %r" % profile.messages)
            profile = t.profile([t.target(variant, "no_end"), "0", "2000"], ["--probes=" + way])
            t.equal(what + ": an end by CFI", profile.only_stats()["complete stacks"], 2000)


@test("unwind/framed")
def framed(t):
    """Frame pointers without CFI: all stacks are right, and pads follow them."""
    program = [t.target("clang-framed", "framed"), "3000"]
    blocks, frames, _ = (int(n) for n in t.run(program).out.split())
    stats = t.profile(program, ["--probes=break"]).only_stats()
    t.equal("stacks", stats["stacks"], blocks)
    t.equal("complete stacks", stats["complete stacks"], blocks)
    t.equal("frames, with _start and two of libc", stats["frames"], frames + 3 * blocks)
    stats = t.profile(program, ["--probes=jump"]).only_stats()
    t.equal("complete stacks of pads", stats["complete stacks"], blocks)
    # a raw stack for each place that allocates or calls, seen for the first time, with what follows it at once
    t.check(stats["records with raw stacks"] < stats["records"] / 10,
            "%(records with raw stacks)d of %(records)d records have raw stacks" % stats)


@test("unwind/framed/late")
def framed_late(t):
    """When it is known that a program has frame pointers, pads leave frames by them before ptmem has seen their code."""
    program = [t.target("clang-framed", "framed"), "3000", "late"]
    blocks = int(t.run(program).out.split()[0])
    stats = t.profile(program, ["--probes=jump"]).only_stats()
    t.equal("complete stacks", stats["complete stacks"], blocks)
    t.check(stats["records with raw stacks"] < 1024, "%(records with raw stacks)d records have raw stacks" % stats)
    t.check(stats["unwind rules"] > 1024, "%(unwind rules)d rules" % stats)
    stats = t.profile(program, ["--probes=jump", "--verify-stacks"]).only_stats()
    t.check(stats["verified stacks"] > blocks - 3000, "%(verified stacks)d stacks are walked in both ways" % stats)
    t.equal("differing stacks", stats["differing stacks"], 0)


for _how in ("signals", "switched"):
    def _apart(t, how=_how):
        """What the caller of an allocation has on another stack is read before the thread goes on."""
        for variant in ("gcc-O2-pie", "clang-O0-nopie"):
            for way in ("--probes=auto", "--probes=jump", "--heap-sample=3000"):
                what = "%s, %s: " % (variant, way)
                run = t.profile([t.target(variant, "apart"), how, "600"], [way, "--threshold=0", "--peak-inaccuracy=0"])
                t.equal(what + "status", run.status, 0)
                paths = run.only_massif().peak()["tree"].paths()
                found = {p[p.index("main") + 1] if "main" in p else p: n for p, n in paths.items() if "allocate" in p}
                t.equal(what + "callers", set(found), {"even", "odd"})
                if "sample" not in way:
                    t.equal(what + "bytes", found, {"even": 300 * 2000, "odd": 300 * 1001})
                stats = run.only_stats()
                t.equal(what + "complete stacks", stats["complete stacks"], stats["stacks"])
    test("unwind/apart/" + _how)(_apart)


# Each way to a caller: rules, signal frames, generated code, code without CFI, exceptions, other stacks.
VERIFIED = {"recursion": ("40", "handler"), "interpreter": ("20", "200"), "trapping": ("40",), "no_end": ("300", "200"),
            "throws": (), "otherstacks": (), "malloc_fibers": ("1000",), "handlers": ("1200",), "sparse_frame": ()}

for _program, _arguments in VERIFIED.items():
    def _verified(t, program=_program, arguments=_arguments):
        """libunwind-ptrace finds the same frames where a breakpoint stops a thread; jumps send the same that is unwound."""
        for variant in ("gcc-O2-pie", "clang-O0-nopie"):
            for way in ("break", "auto"):
                what = "%s, --probes=%s: " % (variant, way)
                run = t.profile([t.target(variant, program), *arguments], ["--probes=" + way, "--verify-stacks"])
                stats = run.stats[-1]
                t.equal(what + "differing stacks (%s)" % run.messages, stats["differing stacks"], 0)
                t.check(stats["verified stacks"] > 0 and stats["frames compared with libunwind"] > 0,
                        what + "nothing was compared")
    test("unwind/verified/" + _program, limit=120)(_verified)


@test("unwind/verified-some")
def verified_some(t):
    """--verify-stacks=N compares one in N, and the summary says how many."""
    for every in (1, 10, 1000):
        run = t.profile([t.target("gcc-O2-pie", "interpreter"), "5", "100"],
                        ["--probes=break", "--verify-stacks=%d" % every])
        stats = run.only_stats()
        wanted = -(-stats["stacks"] // every)
        t.equal("one in %d" % every, stats["verified stacks"], wanted)
        t.check(any("none of %d stack%s differ" % (wanted, "s" * (wanted != 1)) in m for m in run.messages),
                "the summary: %r" % run.messages)
