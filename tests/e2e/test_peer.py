"""The peer beside it: `valgrind --tool=massif --time-unit=B` and `ptmem --time-unit=B --peak-at-exit=no` give the
same file for a deterministic program, after addresses are masked, and ptmem-report and ms_print the
same text for both.

Intended differences (doc/massif.md, sections 2.5, 2.6 and 5) are avoided by the choice of programs: the
C library's and the C++ library's clean-up at exit is switched off, no alignment above 16, no pvalloc, no
failing realloc. Valgrind's allocator leaves 16 bytes more with some blocks of real programs; the
sizes of the test programs are such that it does not.
"""

import collections
import os
import re

import harness
from harness import Fail, test

ADDRESS = re.compile(r"0x[0-9A-F]+: ")
FRAME = re.compile(r"( *n\d+: \d+ (?:0x: )?)(.*) (\([^()]*:\d+\))")
RUNS = []  # the options of each run of Valgrind beside ptmem, its core's included
VALGRIND = ["--tool=massif", "--time-unit=B", "--run-libc-freeres=no", "--run-cxx-freeres=no", "-q"]


def masked(path):
    """Lines with addresses masked; no desc (the options differ by those of the core)."""
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        lines = file.read().split("\n")
    return [ADDRESS.sub("0x: ", l) for l in lines if not l.startswith("desc: ")]


def without_garbage(lines):
    """Of Valgrind's file: what it finds below the program's entry is cut (argc and argv, peer_differences.md)."""
    kept = []
    for line in lines:
        if not line.endswith(" 0x: ???"):
            kept.append(line)
        elif "_start (in" in kept[-1]:
            kept[-1] = kept[-1].replace("n1: ", "n0: ", 1)
    return kept


def is_same(peer, own):
    """Whether two lines are equal, but for the scopes and parameters that ptmem gives inlined functions."""
    if peer == own:
        return True
    a, b = FRAME.fullmatch(peer), FRAME.fullmatch(own)
    if not a or not b or a.group(1, 3) != b.group(1, 3):
        return False
    last = a[2].split("<", 1)[0]
    return bool(("(" not in last or last == "operator()") and
                re.search(r"(^|::)" + re.escape(last) + r"(?=[(<]|$)", b[2]))


def unmatched(left, right):
    """Lines of either side that no line of the other side is the same as, in whatever order they are."""
    rest, own = collections.Counter(left), collections.Counter(right)
    rest, own = list((rest - own).elements()), list((own - rest).elements())
    for line in list(rest):
        match = next((o for o in own if is_same(line, o)), None)
        if match is not None:
            rest.remove(line)
            own.remove(match)
    return rest, own


def first_difference(left, right):
    for i, (a, b) in enumerate(zip(left, right)):
        if not is_same(a, b):
            around = "\n    ".join("%-60s | %s" % (x, y) for x, y in list(zip(left, right))[max(0, i - 6):i + 3])
            return "line %d:\n    %s" % (i + 1, around)
    return "lengths: %d and %d lines" % (len(left), len(right))


PROBES = ("auto", "break", "jump")


def compare(t, argv, options=(), env=None):
    valgrind = t.program("valgrind")
    cwd = t.subdirectory()
    # The libraries that Valgrind preloads make LD_PRELOAD visible to the program: same names for both.
    env = dict(env or {}, GLIBCXX_FORCE_NEW="1", GLIBCPP_FORCE_NEW="1")
    peer = t.run([valgrind, *VALGRIND, "--massif-out-file=valgrind.out", *options, *argv], cwd=cwd, env=env)
    left = without_garbage(masked(os.path.join(cwd, "valgrind.out")))
    for probes in PROBES:
        own = t.run([t.ptmem(), "--probes=" + probes, "--time-unit=B", "--peak-at-exit=no",
                     "--massif-out-file=%s.out" % probes, *options, "--", *argv], cwd=cwd, env=env)
        t.equal("status (%s)" % own.err.decode(errors="replace")[:300], own.status, peer.status)
        t.equal("status under both", own.status, 0)
        t.equal("standard output", own.out, peer.out)
        right = masked(os.path.join(cwd, probes + ".out"))
        if len(left) != len(right) or not all(map(is_same, left, right)):
            raise Fail("massif (left) and ptmem (%s) differ, %s" % (probes, first_difference(left, right)))
    compare_reports(t, [os.path.join(cwd, n + ".out") for n in ("valgrind", PROBES[0])])


def without_hashes(path):
    """A copy of @path, in a directory beside it, with each '#' but those of comments replaced."""
    directory = os.path.dirname(path) + ".masked"
    copy = os.path.join(directory, os.path.basename(path))
    os.makedirs(directory, exist_ok=True)
    with open(path, "rb") as file, open(copy, "wb") as out:
        for line in file:
            out.write(line if line.startswith(b"#") else line.replace(b"#", b"\1"))
    return copy


def compare_reports(t, files):
    """ptmem-report prints what ms_print prints, of either file. ms_print cuts lines at '#': it gets a copy without."""
    report = os.path.join(harness.BUILD, "ptmem-report")
    for path in files:
        for args in ([], ["--threshold=0"], ["--x=100", "--y=10"]):
            left, right = t.ms_print([*args, without_hashes(path)]), t.run([report, *args, path])
            left.out = left.out.replace(b"\1", b"#").replace(b".masked/", b"/")
            t.equal("report of %s %s" % (os.path.basename(path), args), right.out, left.out)


def register(name, get_argv, options=(), env=None, limit=120):
    RUNS.append([*VALGRIND, "--massif-out-file=valgrind.out", *options])

    @test("peer/" + name, limit=limit)
    def _(t):
        compare(t, get_argv(t), options, env)


def target(variant, program, *args):
    return lambda t: [t.target(variant, program), *args]


OPTION_SETS = {
    "plain": [],
    "threshold-0": ["--threshold=0"],
    "threshold-10": ["--threshold=10"],
    "depth-3": ["--depth=3"],
    "depth-1": ["--depth=1"],
    "detailed-1": ["--detailed-freq=1", "--max-snapshots=20"],
    "detailed-3": ["--detailed-freq=3"],
    "snapshots-10": ["--max-snapshots=10"],
    "snapshots-11": ["--max-snapshots=11", "--threshold=0"],
    "snapshots-1000": ["--max-snapshots=1000"],
    "admin-0": ["--heap-admin=0"],
    "admin-100": ["--heap-admin=100"],
    "inaccuracy-0": ["--peak-inaccuracy=0"],
    "inaccuracy-25": ["--peak-inaccuracy=25", "--detailed-freq=2"],
    "alloc-fn": ["--alloc-fn=step", "--alloc-fn=even", "--threshold=0"],
    "ignore-fn": ["--ignore-fn=leaf_one", "--ignore-fn=step"],
}

for option_set, opts in OPTION_SETS.items():
    register("peer-" + option_set, target("gcc-O2-pie", "peer", "1"), opts)
for v in ("gcc-O0-pie", "gcc-O2-nopie", "gcc-O3-pie", "clang-O0-nopie", "clang-O2-pie", "clang-O3-nopie"):
    register("peer-" + v, target(v, "peer", "2"), ["--threshold=0"])
register("peer-seed-3", target("gcc-O2-pie", "peer", "3", "8000"))
register("peer-seed-4", target("clang-O0-nopie", "peer", "4", "8000"), ["--threshold=0.1"])
register("stacks-alloc-fn", target("gcc-O2-pie", "peer", "5"), ["--alloc-fn=step", "--depth=5"])
register("cxx", target("gcc-O2-pie", "peer_cxx"), ["--threshold=0"])
register("cxx-O0", target("clang-O0-nopie", "peer_cxx"), ["--threshold=0", "--max-snapshots=50"])
register("cxx-O3", target("gcc-O3-pie", "peer_cxx"), ["--threshold=0", "--depth=6"])
register("cxx-stripped", target("gcc-O2-stripped", "peer_cxx"), ["--threshold=0"])
register("stripped", target("clang-O2-stripped", "peer", "6"), ["--threshold=0"])
register("empty", target("gcc-O2-pie", "empty"))
register("true", lambda t: [t.program("true")])
