"""Functions of Ruby programs in stacks: targets/ruby_chains.rb knows the chain of functions of each of its allocations, and
all must be in the recording: with the calls and bytes of each, from the start or attached, in a fork."""

import os
import re

import harness
from chains_lib import check_chains, check_started, run_attached
from harness import report_json, test

SCRIPT = os.path.join(harness.ROOT, "tests", "targets", "ruby_chains.rb")
CLASS = re.compile(r"^((?:block (?:\(\d+ levels\) )?in |rescue in |ensure in )*)(?:(?:#<[^>]*>|[A-Z][\w:]*)[.#])?(.*)$")


def found_chains(t, path):
    """{chain: [calls, bytes]} of the recording @path, of what Fiddle.malloc allocated in `obtain`, as caller_locations has
    it: without classes, functions in C with the line of their caller."""
    recording = report_json(t, path)
    frames, nodes, leaves = (recording[k] for k in ("frames", "nodes", "leaves"))
    chains = {}
    for leaf, node in enumerate(leaves["node"]):
        if not leaves["allocations"][leaf]:
            continue  # of the parent, before the fork
        names = []
        while node >= 0:
            frame = nodes["frame"][node]
            if frames["file"][frame] and (frames["object"][frame] < 0 or frames["file"][frame] == "<internal:ruby>"):
                names.append((frames["function"][frame], frames["line"][frame]))
            node = nodes["parent"][node]
        if len(names) < 2 or names[0][0] != "Fiddle.malloc" or names[1][0] != "obtain":
            continue
        line, chain = 0, []
        for name, own in reversed(names[1:]):
            line = own if own > 0 else line
            chain.append("%s:%d" % (CLASS.sub(r"\1\2", name), line))
        entry = chains.setdefault("<".join(reversed(chain)), [0, 0])
        entry[0] += leaves["allocations"][leaf]
        entry[1] += leaves["bytes"][leaf]
    return chains


@test("ruby/chains")
def started(t):
    check_started(t, [t.program("ruby"), "--disable=gems", SCRIPT, "chains"], [], found_chains, "started")


@test("ruby/chains/attached")
def attached(t):
    cwd, pid, _ = run_attached(t, [t.program("ruby"), "--disable=gems", SCRIPT, "chains"], ["--record=recording.%p"])
    check_chains(t, cwd, pid, found_chains, "attached")
