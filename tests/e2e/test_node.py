"""Node.js without a perf map: the JavaScript functions that ptmem finds on stacks are those that V8 itself knows
(tests/targets/stacks.js). PTMEM_NODES: further programs to test, separated by colons."""

import os
import shutil
import subprocess

import harness
from events import each_block
from harness import test
from process_lib import Attached

SCRIPT = os.path.join(harness.ROOT, "tests/targets/stacks.js")
FILES = ("stacks.js", "stacks_part.mjs")
NOT_INLINED = ["--no-turbo-inlining", "--max-inlined-bytecode-size=0", "--max-inlined-bytecode-size-cumulative=0"]
MODES = {  # node's options, rounds, how often the functions run before, ptmem's options
    "interpreted": (["--max-lazy", "--no-opt", "--no-sparkplug"], 60, 0, ()),
    "compiled": (["--always-sparkplug", *NOT_INLINED], 60, 3000, ()),
    "moving": (["--expose-gc", "--gc-interval=500", *NOT_INLINED], 60, 50, ()),
    "break": (NOT_INLINED, 6, 50, ("--probes=break",)),
}

def programs(t):
    return [t.program("node"), *filter(None, os.environ.get("PTMEM_NODES", "").split(":"))]


def read_truth(cwd):
    """{size: [(function, file)]}, innermost first, and {function: line}."""
    chains, lines, size = {}, {}, 0
    with open(os.path.join(cwd, "truth"), encoding="utf-8") as file:
        words = [line.split() for line in file]
    for word in words:
        if word[0] == "S":
            size = int(word[1])
            chains[size] = []
        elif word[0] == "F":
            chains[size].append((word[2].replace("get_", "get "), word[1]))
        elif word[0] == "L":
            lines[word[2]] = int(word[1])
    return chains, lines


def read_events(path):
    """{size: [(function, file, line)]} of all blocks, and how often there was each size."""
    chains, counts = {}, {}
    for size, stack in each_block(path):
        counts[size] = counts.get(size, 0) + 1
        chains[size] = [frame if isinstance(frame, tuple) else (frame, "", 0) for frame in stack]
    return chains, counts


def is_own(frame):
    return frame[1] in FILES or frame[0] == "wide" or frame[0].startswith("made")


def compare(t, truth, path):
    want, lines = truth
    chains, counts = read_events(path)
    t.equal("sizes that were not seen", [s for s in want if not counts.get(s)], [])
    for size, chain in want.items():
        if counts[size] > 1:
            continue
        got = [f for f in chains[size] if is_own(f)]
        known = [f for f in chain if is_own(f)]
        t.equal("the files of %d bytes" % size, [f[1] or "-" for f in got], [f[1] for f in known])
        t.equal("the chain of %d bytes" % size,
                [g[0] for g, k in zip(got, known) if k[0] != "-"], [k[0] for k in known if k[0] != "-"])
        for function, source, line in got:
            if source == "stacks.js" and function in lines:
                t.equal("the line of " + function, line, lines[function])


def check_mode(t, program, mode):
    flags, rounds, warm, options = MODES[mode]
    cwd = t.subdirectory()
    node = subprocess.Popen([program, *flags, SCRIPT, str(rounds), str(warm)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            text=True, cwd=cwd, env=t.environment(cwd))
    try:
        t.equal("what it says", node.stdout.readline(), "warm\n")
        attached = Attached(t, node.pid, ["--events=events", *options]).wait_attached()
        node.stdin.write("\n")
        node.stdin.flush()
        t.equal("what it says", node.stdout.readline(), "end\n")
        truth = read_truth(cwd)
        profile = attached.detach()
        t.check(len(truth[0]) >= 20 * rounds, "only %d chains" % len(truth[0]))
        compare(t, truth, os.path.join(profile.directory, "events"))
        node.stdin.write("\n")
        node.stdin.close()
        t.equal("status of the program", node.wait(timeout=200), 0)
    finally:
        node.kill()
        node.wait()


def register(mode):
    @test("node/" + mode, limit=60)
    def run(t):
        for program in programs(t):
            check_mode(t, program, mode)

    run.__doc__ = "Chains of JavaScript functions, %s, attached." % mode


for name in MODES:
    register(name)


@test("node/started", limit=60)
def started(t):
    """A program that ptmem starts."""
    for program in programs(t):
        profile = t.profile([program, *NOT_INLINED, SCRIPT, "5", "5"], ["--events=events"], stdin=b"\n\n")
        t.equal("status", profile.status, 0)
        compare(t, read_truth(profile.directory), os.path.join(profile.directory, "events"))


@test("node/without-symbols", limit=60)
def bare(t):
    """Without V8's symbols all is as with native frames, and one line says what helps."""
    program = os.path.join(t.subdirectory(), "node")
    shutil.copy(t.program("node"), program)
    t.equal("status of strip", t.run(["strip", program]).status, 0)
    profile = t.profile([program, SCRIPT, "2", "0"], ["--events=events"], stdin=b"\n\n")
    t.equal("status", profile.status, 0)
    chains, _ = read_events(os.path.join(profile.directory, "events"))
    t.equal("named functions", [f for chain in chains.values() for f in chain if is_own(f)], [])
    t.equal("hints", [m.count("--perf-basic-prof") for m in profile.messages if "JavaScript" in m], [1])
