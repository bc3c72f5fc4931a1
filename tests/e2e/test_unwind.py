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
