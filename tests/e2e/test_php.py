"""Functions of PHP programs in stacks: targets/php_chains.php knows the chain of functions of each of its allocations, and
all must be in the recording: with the calls and bytes of each, from the start or attached, in a fork."""

import os

import harness
from chains_lib import check_chains, check_started, run_attached
from harness import report_json, test

SCRIPT = os.path.join(harness.ROOT, "tests", "targets", "php_chains.php")
INTERNAL = "<internal:php>"


def found_chains(t, path):
    """{chain: [calls, bytes]} of the recording @path, of what str_repeat allocated in `obtain`."""
    recording = report_json(t, path)
    frames, nodes, leaves = (recording[k] for k in ("frames", "nodes", "leaves"))
    chains = {}
    for leaf, node in enumerate(leaves["node"]):
        if not leaves["allocations"][leaf]:
            continue  # of the parent, before the fork
        names = []
        while node >= 0:
            frame = nodes["frame"][node]
            if frames["file"][frame] and (frames["object"][frame] < 0 or frames["file"][frame] == INTERNAL):
                names.append("%s:%d" % (frames["function"][frame], max(frames["line"][frame], 0)))
            node = nodes["parent"][node]
        if len(names) < 2 or names[0] != "str_repeat:0" or not names[1].startswith("obtain:"):
            continue
        entry = chains.setdefault("<".join(names[1:]), [0, 0])
        entry[0] += leaves["allocations"][leaf]
        entry[1] += leaves["bytes"][leaf]
    return chains


@test("php/chains")
def started(t):
    check_started(t, [t.program("env"), "USE_ZEND_ALLOC=0", t.program("php"), SCRIPT, "chains"], [], found_chains, "started")


@test("php/chains/attached")
def attached(t):
    cwd, pid, _ = run_attached(t, [t.program("php"), SCRIPT, "chains"], ["--record=recording.%p"], {"USE_ZEND_ALLOC": "0"})
    check_chains(t, cwd, pid, found_chains, "attached")
