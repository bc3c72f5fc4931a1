"""Stacks through code without CFI."""

from harness import test

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
