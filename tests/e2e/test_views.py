"""--view with each source, on a program whose functions do one known thing each (targets/views.c): equal in
folded stacks, in flame graphs, and drawn afterwards by ptmem-report from the massif files."""

import collections
import glob
import os
import re
import xml.etree.ElementTree

from harness import Fail, test

PAGE = 4096
SOURCES = ("heap", "brk", "mmap", "faults")
# By source: function -> what it has of live (and exit), peak, total, count.
TRUTH = {
    "heap": {"heap_keep": (9000, 10000, 10000, 10), "heap_churn": (0, 0, 35000, 5), "heap_peak": (1, 50001, 50001, 2)},
    "brk": {"brk_up": (3300000, 4000000, 4000000, 4), "brk_down": (0, 0, 0, 0)},
    "mmap": {"map_keep": (300 * PAGE, 300 * PAGE, 300 * PAGE, 1), "map_churn": (0, 5000 * PAGE, 20000 * PAGE, 4)},
    "faults": {"touch_some": (200 * PAGE, 200 * PAGE, 200 * PAGE, 200),
               "touch_twice": (100 * PAGE, 100 * PAGE, 100 * PAGE, 100)},
}
COLUMN = {"live": 0, "exit": 0, "peak": 1, "total": 2, "count": 3}
UNIT = {"heap": "allocations", "brk": "calls", "mmap": "mappings", "faults": "pages"}


def folded(path):
    """{path as text: value}, each path once."""
    found = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            names, value = line.rstrip("\n").rsplit(" ", 1)
            if names in found:
                raise Fail("%s: %s appears twice" % (path, names))
            found[names] = int(value)
    return found


def by_function(paths, functions):
    sums = dict.fromkeys(functions, 0)
    for names, value in paths.items():
        for function in set(names.split(";")) & set(functions):
            sums[function] += value
    return sums


def drawn(path):
    """[(name, value, unit)] of a flame graph's frames, from their titles."""
    found = []
    for element in xml.etree.ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}title"):
        match = re.fullmatch(r"(.*) \(([0-9,]+) (\w+), ([0-9.]+)%\)", element.text, re.S)
        if not match:
            raise Fail("%s: a frame says %r" % (path, element.text))
        found.append((match[1], int(match[2].replace(",", "")), match[3], float(match[4])))
    return found


# Titles of flame graphs.
TITLES = {
    "heap": {"live": "Heap: bytes not freed", "exit": "Heap: bytes in use at the end", "peak": "Heap: bytes at the peak",
             "total": "Heap: bytes allocated", "count": "Heap: allocations"},
    "brk": {"live": "Heap growth by brk: bytes not given back", "count": "Heap growth by brk: calls that added"},
    "mmap": {"live": "Mapped memory: bytes not unmapped", "total": "Mapped memory: bytes ever mapped"},
    "faults": {**dict.fromkeys(COLUMN, "Page faults: bytes touched"), "count": "Page faults: pages touched"},
}


def check_title(t, path, source, which):
    texts = {e.get("id"): e.text for e in xml.etree.ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}text")}
    t.equal("title of " + path, texts["title"], TITLES[source].get(which, texts["title"]))


def check_graph(t, path, paths, unit):
    """The graph has the sums of the folded @paths."""
    frames = drawn(path)
    total = sum(paths.values())
    if not total:
        t.equal("frames of the empty " + path, frames, [])
        return
    t.equal("the root of " + path, frames[0][:3], ("all", total, unit))
    sums = collections.Counter()
    for names, value in paths.items():
        names = names.split(";")
        for i in range(len(names)):
            sums[";".join(names[: i + 1])] += value
    leaves = collections.Counter()
    for key, value in sums.items():
        leaves[(key.rsplit(";", 1)[-1], value)] += 1
    for name, value, _, percent in frames[1:]:
        t.check(leaves[(name, value)] > 0, "%s: no such frame: %s with %d" % (path, name, value))
        leaves[(name, value)] -= 1
        t.equal("percent of " + name, "%.2f" % percent, "%.2f" % (value * 100 / total))


for v in ("gcc-O2-pie",):  # sums of events
    for w in COLUMN:
        @test("views/%s/%s" % (v, w))
        def _(t, v=v, w=w):
            cwd = t.subdirectory()
            profile = t.profile([t.target(v, "views")], ["--trace=" + ",".join(SOURCES), "--folded=out", "--flame=out.svg",
                                                         "--view=" + w, "--peak-inaccuracy=0"], cwd=cwd)
            t.equal("status", profile.status, 0)
            for source in SOURCES:
                paths = folded(os.path.join(cwd, "out." + source))
                known = TRUTH[source]
                t.equal("%s by %s" % (source, w), by_function(paths, known), {f: n[COLUMN[w]] for f, n in known.items()})
                unit = UNIT[source] if w == "count" else "bytes"
                check_graph(t, os.path.join(cwd, "out.%s.svg" % source), paths, unit)
                check_title(t, os.path.join(cwd, "out.%s.svg" % source), source, w)
            said = profile.only_stats()
            key = {"live": "live", "exit": "live", "peak": "peak", "total": "bytes", "count": "allocations"}[w]
            t.equal("the sum of the heap's paths", sum(folded(os.path.join(cwd, "out.heap")).values()), said[key])


def by_report(t, cwd, path, which):
    out = os.path.join(cwd, "again." + which)
    run = t.run([os.path.join(os.path.dirname(t.ptmem()), "ptmem-report"), "--folded=" + out, "--flame=" + out + ".svg",
                 "--snapshot=" + which, path], cwd=cwd)
    t.equal("status of ptmem-report (%r)" % run.err, run.status, 0)
    paths = folded(out)
    check_graph(t, out + ".svg", paths, "bytes")
    return paths


@test("views/report")
def report(t):
    """ptmem-report finds the same in the massif files: at the end, at the peak and in each detailed snapshot."""
    cwd = t.subdirectory()
    t.profile([t.target("gcc-O2-pie", "views")], ["--trace=" + ",".join(SOURCES), "--threshold=0", "--detailed-freq=1",
                                                  "--max-snapshots=1000", "--peak-inaccuracy=0", "--time-unit=B"], cwd=cwd)
    for source in SOURCES:
        (path,) = glob.glob(os.path.join(cwd, "massif.out.*[0-9]" if source == "heap" else "massif.out.*." + source))
        for which, column in (("last", 0), ("peak", 1)):
            known = TRUTH[source]
            t.equal("%s, %s" % (source, which), by_function(by_report(t, cwd, path, which), known),
                    {f: n[column] for f, n in known.items()})
        with open(path, encoding="utf-8") as file:
            text = file.read()
        sizes = [int(n) for n in re.findall(r"^mem_heap_B=(\d+)$", text, re.M)]
        for which in (0, len(sizes) // 2, len(sizes) - 1):
            t.equal("%s, snapshot %d" % (source, which), sum(by_report(t, cwd, path, str(which)).values()), sizes[which])


@test("views/valgrind", 120)
def valgrind(t):
    """The same of Massif's own file."""
    cwd = t.subdirectory()
    run = t.run([t.program("valgrind"), "--tool=massif", "--massif-out-file=massif.out", "--threshold=0", "--detailed-freq=1",
                 "--peak-inaccuracy=0", t.target("gcc-O2-pie", "views")], cwd=cwd)
    t.equal("status of valgrind", run.status, 0)
    known = TRUTH["heap"]
    paths = by_report(t, cwd, os.path.join(cwd, "massif.out"), "last")
    t.equal("at the end", by_function(paths, known), {f: n[0] for f, n in known.items()})
    paths = by_report(t, cwd, os.path.join(cwd, "massif.out"), "peak")
    t.equal("at the peak", by_function(paths, known), {f: n[1] for f, n in known.items()})


@test("views/broken")
def broken(t):
    """Truncated and corrupted files give a message and a status, or a picture; never a crash."""
    cwd = t.subdirectory()
    t.profile([t.target("gcc-O2-pie", "views")], ["--detailed-freq=1", "--time-unit=B", "-o", "whole"], cwd=cwd)
    with open(os.path.join(cwd, "whole"), "rb") as file:
        whole = file.read()
    cuts = [whole[: len(whole) * i // 23] for i in range(23)]
    swapped = [whole.replace(a, b) for a, b in ((b"n1:", b"n99:"), (b"n0:", b"n1:"), (b" n", b"   n"), (b"heap_tree=peak", b"heap_tree=pork"),
                                                (b"snapshot=", b"snapshot=9"), (b"mem_heap_B=", b"mem_heap_B=-"), (b"\n", b"\r\n"),
                                                (b"0x", b"\xff\xfe"), (b"time=", b"time=99999999999999999999999"))]
    report_program = os.path.join(os.path.dirname(t.ptmem()), "ptmem-report")
    for i, text in enumerate(cuts + swapped):
        path = os.path.join(cwd, "broken%d" % i)
        with open(path, "wb") as file:
            file.write(text)
        for options in (["--flame=f.svg", "--folded=f"], ["--flame=f.svg", "--snapshot=last"], ["--diff", "whole"],
                        ["--diff", "--flame=f.svg", "whole"]):
            for made in ("f", "f.svg"):
                if os.path.exists(os.path.join(cwd, made)):
                    os.unlink(os.path.join(cwd, made))
            run = t.run([report_program, *options, path], cwd=cwd)
            t.check(run.status in (0, 1, 2, 255), "%s on %s: status %d, %r" % (options, path, run.status, run.err[-200:]))
            t.check(run.status == 0 or run.err, "%s on %s fails without a word" % (options, path))
            if run.status == 0 and os.path.exists(os.path.join(cwd, "f.svg")):
                xml.etree.ElementTree.parse(os.path.join(cwd, "f.svg"))
