"""--diff --fail-if: gates for changes. The program makes as many temporary blocks as it is told."""

import os
import re

from harness import BUILD, test

COUNT = 250


def profiles(t, *counts):
    """For each number of temporary blocks a recording and a massif file."""
    made = []
    for count in counts:
        directory = t.subdirectory()
        t.profile([t.target("gcc-O2-pie", "limited"), str(count)], ["--record=r", "--massif-out-file=m", "--detailed-freq=1"],
                  cwd=directory)
        made.append(os.path.join(directory, "r"))
    return made


def diff(t, old, new, *conditions):
    """The status, and what it said of them."""
    result = t.run([os.path.join(BUILD, "ptmem-report"), "--diff", *("--fail-if=" + c for c in conditions), old, new])
    return result.status, result.err.decode()


@test("fail-if/recordings")
def recordings(t):
    old, new = profiles(t, COUNT, COUNT + 5)
    t.equal("the same", diff(t, old, old, "peak>+0", "live-at-end>+0%", "allocated>+0", "allocations>+0"), (0, ""))
    t.equal("less", diff(t, new, old, "peak>+0", "allocated>+0", "allocations>+0"), (0, ""))
    t.equal("as much as it may", diff(t, old, new, "peak>+0", "live-at-end>+0", "allocated>+500", "allocations>+5",
                                      "allocations>+0.4%"), (0, ""))
    for condition in ("allocated>+499", "allocations>+4", "allocations>+0.39%"):
        status, said = diff(t, old, new, "peak>+0", condition)
        t.equal(condition, status, 3)
        t.check(condition in said and "pass() (limited.cpp:" in said and said.count("\n") == 2, "messages: %s" % said)


PHASES = """#include <stdlib.h>
void *volatile kept[9];
__attribute__((noinline)) void small(int n) { for (int i = 0; i < 2; i++) kept[i] = malloc(n); kept[2] = malloc(n); }
__attribute__((noinline)) void parse(int n) { small(n); kept[3] = malloc(n); }
__attribute__((noinline)) void load(int n) { kept[4] = malloc(n); }
int main(void)
{
	parse(%d);
	for (int i = 0; i < 3 + %d; i++)
		free(kept[i]);
	load(%d);
	free(kept[4]);
	return 0;
}
"""


def phases(t, *values):
    """A program whose function parse frees all but one block before another one allocates."""
    directory = t.subdirectory()
    with open(os.path.join(directory, "phases.c"), "w", encoding="ascii") as file:
        file.write(PHASES % values)
    t.equal("gcc", t.run(["gcc", "-g", "-O1", "-fno-builtin", "-o", "phases", "phases.c"], cwd=directory).status, 0)
    t.equal("status", t.run([t.ptmem(), "-q", "--record=r", "-o", "m", "--detailed-freq=1", "./phases"], cwd=directory).status, 0)
    return os.path.join(directory, "r")


@test("fail-if/functions")
def functions(t):
    """A condition about a function is about all of its call paths, and not met because the program's peak is at another moment."""
    old, same, more, moved, grown = [phases(t, *v) for v in ((1000, 0, 3000), (1000, 0, 3000), (1000, 0, 9000), (1000, 0, 5000), (1200, 0, 3000))]
    for metric, allowed in ("peak", 800), ("peak", "20%"), ("live-at-end", 200), ("allocated", 800), ("allocations", 0):
        t.equal(metric, diff(t, old, grown, "%s@parse>+%s" % (metric, allowed)), (0, ""))
        t.equal("backwards", diff(t, grown, old, "%s@parse>+0" % metric), (0, ""))
        if metric == "allocations":
            continue
        less = "19.9%" if allowed == "20%" else allowed - 1
        status, said = diff(t, old, grown, "%s@parse>+%s" % (metric, less), "peak@load>+0")
        t.check(status == 3 and "parse" in said and "@load" not in said, "%s: %d %s" % (metric, status, said))
        t.check(metric != "peak" or "small (phases.c:3): +" in said, "sites: %s" % said)
    t.equal("the same", diff(t, old, same, "peak@parse>+0", "allocated@small>+0", "allocations@main>+0"), (0, ""))
    # the peak of the program is where parse holds one block, or all, instead of all: neither is growth
    t.equal("no longer there", diff(t, old, moved, "peak@parse>+0")[0], 0)
    status, said = diff(t, moved, old, "peak@parse>+0")
    t.check(status == 0 and said.count("\n") == 1 and "may have happened: recordings tell that it was" in said, "there again: %d %s" % (status, said))
    status, said = diff(t, old, more, "allocated@load>+0", "allocated@nothing>+0")
    t.check(status == 3 and "load (phases.c:5): +" in said and "nothing>+0: no call path has this function" in said, "load: %s" % said)
    massif = [os.path.join(os.path.dirname(path), "m") for path in (old, grown)]
    t.equal("massif files", [diff(t, *massif, "peak@parse>+%d" % n)[0] for n in (800, 799)], [0, 3])
    status, said = diff(t, *massif, "allocations@parse>+0")
    t.check(status == 255 and "compare recordings" in said, said)
    kept = os.path.join(t.directory, "kept")
    t.run([os.path.join(BUILD, "ptmem-report"), "--write-baseline=" + kept, old])
    report = [os.path.join(BUILD, "ptmem-report")]
    for condition, why in ("peak@parse>+0", b"compare two by --diff"), ("allocations@load>+0", b"write it with the same --fail-if"):
        result = t.run([*report, "--baseline=" + kept, "--fail-if=" + condition, grown])
        t.check(result.status == 255 and why in result.err, "%r" % result.err)
    named = ["--fail-if=%s@%s>+0" % pair for pair in (("allocated", "load"), ("live-at-end", "load"), ("allocations", "nothing"))]
    t.equal("status", t.run([*report, "--write-baseline=" + kept, *named, old]).status, 0)
    with open(kept, encoding="ascii") as file:
        lines = re.findall("^@.*$", file.read(), re.M)
    t.equal("lines", [re.sub("[0-9]+", "N", line) for line in lines], ["@allocations N nothing", "@live-at-end N load", "@allocated N load"])
    result = t.run([*report, "--baseline=" + kept, *named, "--fail-if=allocated>+0", more])
    said = result.err.decode()
    # the growth in this function is the one of the two profiles, and what grew elsewhere is no site of it
    growth = re.search(r"allocated@load>\+0: it was .*, and is .*\n", diff(t, old, more, "allocated@load>+0")[1])
    t.check(result.status == 3 and growth[0] in said and re.search(r"allocated@load.*\n(?:ptmem-report:   load \(phases.c:5\).*\n)ptmem-report: [a-z]", said) and
            "nothing>+0: no call path has this function" in said and "live-at-end@load>+0:" not in said, said)
    t.check(t.run([*report, "--baseline=" + kept, *named, old]).status == 0, "the same")


@test("fail-if/massif")
def massif(t):
    old, new = (os.path.join(os.path.dirname(path), "m") for path in profiles(t, COUNT, COUNT + 5))
    t.equal("the same", diff(t, old, new, "peak>+100", "live-at-end>+0"), (0, ""))
    status, said = diff(t, old, new, "allocations>+0")
    t.check(status == 255 and "compare recordings" in said, "%d: %s" % (status, said))
    with open(new, encoding="ascii") as file:
        text = file.read()
    with open(new, "w", encoding="ascii") as file:
        file.write(text + "#-----------\nsnapshot=%d\n#-----------\ntime=99999\nmem_heap_B=%d\nmem_heap_extra_B=0\n"
                   "mem_stacks_B=0\nheap_tree=empty\n" % (text.count("snapshot="), 99999999))
    status, said = diff(t, old, new, "live-at-end>+1M")
    t.check(status == 3 and said.count("\n") == 1 and "95.4 MiB (99,999,999 bytes)" in said, "%d: %s" % (status, said))


@test("fail-if/refused")
def refused(t):
    for arguments, why in ((["--diff", "--fail-if=peak>5%", "a", "b"], "by how much more"),
                           (["--diff", "--match=x", "--fail-if=peak>+5%", "a", "b"], "--match cannot be used"),
                           (["--match=x", "--limit=peak<5K", "a"], "--match cannot be used"),
                           (["--diff", "--fail-if=temporary>+5%", "a", "b"], "a condition is"),
                           (["--diff", "--fail-if=peak>+1e3", "a", "b"], "the number has digits"),
                           (["--diff", "--fail-if=peak>+1 ", "a", "b"], "only %, K"),
                           (["--diff", "--fail-if=leaked@f>+5", "a", "b"], "have no @FUNCTION"),
                           (["--diff", "--fail-if=peak@>+5", "a", "b"], "after @ comes"),
                           (["--fail-if=peak>+1", "a"], "goes with --diff or --baseline")):
        result = t.run([os.path.join(BUILD, "ptmem-report"), *arguments])
        t.check(result.status == 255 and why in result.err.decode(), "%s: %d: %r" % (arguments, result.status, result.err))
