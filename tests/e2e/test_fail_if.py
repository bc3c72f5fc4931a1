"""--diff --fail-if: gates for changes. The program makes as many temporary blocks as it is told."""

import os

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
                           (["--fail-if=peak>+1", "a"], "goes with --diff or --baseline")):
        result = t.run([os.path.join(BUILD, "ptmem-report"), *arguments])
        t.check(result.status == 255 and why in result.err.decode(), "%s: %d: %r" % (arguments, result.status, result.err))
