"""--limit: gates for tests. The program's truth: 1,000 blocks of 33 and 7 bytes stay, COUNT of 100 bytes are temporary."""

import os
import re

from harness import run_report, test

SMALL, TAIL, TEMPORARY = 400, 600, 250
KEPT = SMALL * 33 + TAIL * 7
ALL = SMALL + TAIL + TEMPORARY

# limits that hold; each of them with one byte, block or tenth of a percent less does not
EXACT = [("peak", KEPT), ("live-at-end", KEPT), ("allocated", KEPT + 100 * TEMPORARY), ("allocations", ALL),
         ("peak@keep::small", SMALL * 33), ("peak@keep::small(int)", SMALL * 33), ("live-at-end@tail()", TAIL * 7),
         ("allocations@pass()", TEMPORARY), ("allocated@main", KEPT + 100 * TEMPORARY), ("leaked", 7)]


def run(t, *options, status=0):
    """What ptmem said."""
    profile = t.profile([t.target("gcc-O2-pie", "limited"), str(TEMPORARY)], ["--leak-check", "-q", *options])
    t.equal("status of %s (%s)" % (options, profile.messages), profile.status, status)
    return [m for m in profile.messages if "limit exceeded" in m]


@test("limits/exact")
def exact(t):
    t.equal("messages", run(t, *("--limit=%s<=%d" % e for e in EXACT), "--limit=temporary<=20%"), [])
    said = run(t, *("--limit=%s<%d" % e for e in EXACT), "--limit=temporary<20%", status=1)
    for name, value in (*EXACT, ("temporary", 20)):
        t.check(len([m for m in said if "limit exceeded: %s<%d" % (name, value) in m]) == 1, "%s: %s" % (name, said))
    t.equal("messages", len(said), len(EXACT) + 1)


@test("limits/sites")
def sites(t):
    """Those at fault are named, the largest first; a function that is nowhere is said."""
    program = [t.target("gcc-O2-pie", "limited"), str(TEMPORARY)]
    said = t.profile(program, ["-q", "--limit=peak<1K"]).messages
    t.check(len(said) == 3 and "limited.cpp" in said[1] and "small" in said[1] and "13,200 bytes" in said[1] and
            "tail" in said[2] and "4,200 bytes" in said[2], "messages: %s" % said)
    said = t.profile(program, ["-q", "--limit=allocations<5"]).messages
    t.check(len(said) == 4 and "1,250" in said[0] and "tail" in said[1] and said[1].endswith("600"), "messages: %s" % said)
    said = t.profile(program, ["-q", "--limit=peak@smal<1"])
    t.check(said.status == 0 and len(said.messages) == 1 and "no call path has this function" in said.messages[0],
            "messages: %s" % said.messages)


@test("limits/peak-of-function")
def peak_of_function(t):
    """
    A function's peak, however small it is, and whatever the program holds then: that of grow comes later than the
    program's. Call sites are named for the functions above them, too.
    """
    program = [t.target("gcc-O2-pie", "peaks")]
    sizes = {"parse": 90000, "base": 10000000, "grow": 80}
    t.equal("messages", t.profile(program, ["-q", *("--limit=peak@%s<=%d" % s for s in sizes.items())]).messages, [])
    for probes in "jump", "break":
        said = t.profile(program, ["-q", "--probes=" + probes, *("--limit=peak@%s<%d" % s for s in sizes.items())]).messages
        t.equal("messages", len(said), 2 * len(sizes))
        for at, (function, size) in enumerate(sizes.items()):
            t.check("{:,}".format(size) in said[2 * at] and "peaks.c" in said[2 * at + 1] and function in said[2 * at + 1],
                    "messages: %s" % said)
    path = os.path.join(t.directory, "rec")
    t.profile(program, ["-q", "--record=" + path])
    for function, size in sizes.items(): # of recordings the maxima of paths, of which parse has two
        doubt = "may be exceeded" if function == "parse" else "^$"
        said = run_report(t, "--limit=peak@%s<=%d" % (function, size), path)
        t.check(said.status == 0 and re.search(doubt, said.err.decode()), "%s: %r" % (function, said.err))
        said = run_report(t, "--limit=peak@%s<%d" % (function, size), path).err.decode()
        t.check("it is " in said and "{:,}".format(size) in said and "peaks.c" in said and "warning" not in said, said)
    said = run_report(t, "--limit=peak@main<10050000", path)
    t.check(said.status == 3, "at the peak of the program: %r" % said.err)
    said = run_report(t, "--limit=peak@main<10090070", path)
    t.check(said.status == 0 and b"may be exceeded: a recording tells that it is" in said.err, "%r" % said.err)
    t.equal("a function that holds nothing at the end", run_report(t, "--limit=live-at-end@parse<1", path).err, b"")
    said = t.profile(program, ["-q", "--limit=allocations@main<1"]).messages
    t.check(len(said) == 4 and all("peaks.c" in m for m in said[1:]), "messages: %s" % said)


@test("limits/temporary-reallocs")
def temporary_reallocs(t):
    """Of 13 allocations, reallocs among them, 12 are temporary."""
    program = [t.target("gcc-O2-pie", "peaks")]
    t.equal("messages", t.profile(program, ["-q", "--limit=temporary<=92.4%"]).messages, [])
    said = t.profile(program, ["-q", "--limit=temporary<92.3%"]).messages
    t.check(said and "it is 92.3 %" in said[0], "messages: %s" % said)


@test("limits/repeat-ends-early")
def repeat_ends_early(t):
    program = t.target("gcc-O2-pie", "peaks")
    result = t.run([t.ptmem(), "-q", "-o", "/dev/null", "--repeat=3", program, "x"])
    t.check(b"the first of 3 runs, till a signal ended it:" in result.err and b"in each" not in result.err, result.err)
    # what a run had when it was ended is no value: the limit is exceeded in all that count
    script = "if mkdir $1; then exec %s 9; else kill -TERM $$; fi" % t.target("gcc-O2-pie", "limited")
    result = t.run([t.ptmem(), "-q", "-o", "/dev/null", "--repeat=3", "--limit=allocations<20", "sh", "-c", script, "sh",
                    os.path.join(t.directory, "once")])
    said = result.err.decode()
    t.check("1 of 3 runs; a signal has ended the next one, which does not count:" in said and "in each" not in said and
            "limit exceeded: allocations<20" in said and re.search(r"  allocations  [0-9,]+\n", said), said)
    result = t.run([t.ptmem(), "-q", "-o", "/dev/null", "--heap=no", "--trace=brk", "--repeat=2", program])
    t.check(b"allocations" not in result.err, result.err)


@test("limits/leaked-trees")
def leaked_trees(t):
    """What only lost blocks lead to is lost, too: a small leader does not hide a large tree."""
    program = t.target("gcc-O2-pie", "lost_trees")
    path = os.path.join(t.directory, "rec")
    said = t.profile([program], ["-q", "--leak-check", "--limit=leaked<1", "--record=" + path]).messages
    sums = [int(re.search(kind + r" lost: ([0-9,]+) bytes", "\n".join(said)).group(1).replace(",", ""))
            for kind in ("definitely", "indirectly")]
    exceeded = "leaked<1: [^(]*\\({:,} bytes\\)".format(sum(sums))
    t.check(all(sums) and any(re.search(exceeded + " lost", m) for m in said), "%s: %s" % (exceeded, said))
    result = run_report(t, "--limit=leaked<1", path)
    t.check(re.search(exceeded.replace(": ", ": it is "), result.err.decode()), "%s: %r" % (exceeded, result.err))


@test("limits/status")
def status(t):
    """The program's own failure is its status."""
    program = t.target("gcc-O2-pie", "limited")
    t.equal("status", t.profile([program, "1", "7"], ["-q", "--limit=peak<1"]).status, 7)
    t.equal("status", t.profile([program, "1", "7"], ["-q", "--limit=peak<1G"]).status, 7)


@test("limits/file")
def file(t):
    path = os.path.join(t.directory, "limits")
    with open(path, "w", encoding="ascii") as f:
        f.write("# what each commit must keep\n\n  peak<=%d\t\nlive-at-end<=%d\n" % (KEPT, KEPT))
    run(t, "--limits-file=" + path)
    with open(path, "a", encoding="ascii") as f:
        f.write("allocations<%d" % ALL) # no newline
    t.equal("messages", len(run(t, "--limits-file=" + path, status=1)), 1)
    with open(path, "a", encoding="ascii") as f:
        f.write("\npeek<1\n")
    result = t.run([t.ptmem(), "--limits-file=" + path, "true"])
    t.check(result.status == 125 and b"limits:6: peek<1: a limit is" in result.err, "%d: %r" % (result.status, result.err))


@test("limits/files")
def files(t):
    """Each file counts; comments may follow limits; a file without limits is said, and a line cannot hide its end."""
    def written(name, content):
        path = os.path.join(t.directory, name)
        with open(path, "wb") as f:
            f.write(content)
        return "--limits-file=" + path

    one = written("one", b"\xef\xbb\xbfpeak<1 # must not grow\r\n")
    two = written("two", b"allocations<1\t# none\nallocations@f::{lambda(int)#1}<1\n")
    none = written("none", b"# nothing yet\n")
    program = [t.target("gcc-O2-pie", "limited"), "1"]
    said = t.profile(program, ["-q", one, two, none, "--record=" + os.path.join(t.directory, "rec")])
    exceeded = [m.split(": ")[2] for m in said.messages if "limit exceeded" in m]
    t.equal("messages", (said.status, exceeded), (1, ["peak<1", "allocations<1"]))
    for text in "none: there are no limits in it", "--limit=allocations@f::{lambda(int)#1}<1: no call path":
        t.check(any(text in m for m in said.messages), "messages: %s" % said.messages)
    recording = os.path.join(t.directory, "rec")
    result = run_report(t, "--format=github", one, two, none, recording)
    t.check(result.status == 3 and b"title=peak<1::" in result.out and b"title=allocations<1::" in result.out and
            b"none: there are no limits in it" in result.out, "%d: %r" % (result.status, result.out))
    hidden = written("hidden", b"peak<1M\0M\n")
    for result in t.run([t.ptmem(), hidden, "true"]), run_report(t, hidden, recording):
        t.check(result.status in (125, 255) and b"hidden:1: peak<1M: the line has a zero byte" in result.err, result.err)


@test("limits/refused")
def refused(t):
    for options, why in ((["--limit=leaked<1"], b"--leak-check"), (["--limit=peak<x"], b"after < comes a number"), (["--limit="], b"takes a limit, as in"),
                         (["--heap=no", "--limit=peak<1"], b"--limit has nothing to show"),
                         (["--limits-file=/nowhere"], b"cannot read /nowhere")):
        result = t.run([t.ptmem(), *options, "true"])
        t.check(result.status in (1, 125) and why in result.err, "%s: %d: %r" % (options, result.status, result.err))
