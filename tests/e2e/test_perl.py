"""Functions of Perl programs in stacks: targets/perl_chains.pl knows the chain of functions of each of its allocations, and
all must be in the recording: with the calls and bytes of each, from the start or attached, in threads, in a fork."""

import os

import harness
from chains_lib import check_chains, check_started, run_attached
from harness import report_json, test

SCRIPT = os.path.join(harness.ROOT, "tests", "targets", "perl_chains.pl")
with open(SCRIPT, encoding="utf-8") as script:
    LEAF = "obtain:%d" % next(i + 1 for i, line in enumerate(script) if "__LINE__" in line)


def found_chains(t, path):
    """{chain: [calls, bytes]} of the recording @path, of what sysread allocated in `obtain`."""
    recording = report_json(t, path)
    frames, nodes, leaves = (recording[k] for k in ("frames", "nodes", "leaves"))
    chains = {}
    for leaf, node in enumerate(leaves["node"]):
        if not leaves["allocations"][leaf]:
            continue  # of the parent, before the fork
        names = []
        while node >= 0:
            frame = nodes["frame"][node]
            if frames["file"][frame] and frames["object"][frame] < 0:
                names.append("%s:%d" % (frames["function"][frame], max(frames["line"][frame], 0)))
            node = nodes["parent"][node]
        if not names or names[0] != LEAF:
            continue
        entry = chains.setdefault("<".join(names), [0, 0])
        entry[0] += leaves["allocations"][leaf]
        entry[1] += leaves["bytes"][leaf]
    return chains


@test("perl/chains")
def started(t):
    check_started(t, [t.program("perl"), SCRIPT, "chains"], [], found_chains, "started")


@test("perl/chains/attached")
def attached(t):
    cwd, pid, _ = run_attached(t, [t.program("perl"), SCRIPT, "chains"], ["--record=recording.%p"])
    check_chains(t, cwd, pid, found_chains, "attached")
