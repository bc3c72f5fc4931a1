"""What several tests of peer share."""

import collections
import os
import re
import zlib

import confirmed
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


def ask(t, command, cwd, env, own):
    """Whether Valgrind gives what ptmem's runs @own, {probes: (result, lines)}, gave."""
    peer = t.run(command, cwd=cwd, env=env)
    left = without_garbage(masked(os.path.join(cwd, "valgrind.out")))
    for probes, (run, right) in own.items():
        t.equal("status (%s)" % run.err.decode(errors="replace")[:300], run.status, peer.status)
        t.equal("status under both", run.status, 0)
        t.equal("standard output", run.out, peer.out)
        if len(left) != len(right) or not all(map(is_same, left, right)):
            raise Fail("massif (left) and ptmem (%s) differ, %s" % (probes, first_difference(left, right)))


def compare(t, name, argv, options=(), env=None):
    """Valgrind is asked where it did not confirm just this before (confirmed.py)."""
    cwd = t.subdirectory()
    # The libraries that Valgrind preloads make LD_PRELOAD visible to the program: same names for both.
    env = dict(env or {}, GLIBCXX_FORCE_NEW="1", GLIBCPP_FORCE_NEW="1")
    command = [t.program("valgrind"), *VALGRIND, "--massif-out-file=valgrind.out", *options, *argv]
    own = {}
    for probes in PROBES:
        run = t.run([t.ptmem(), "--probes=" + probes, "--time-unit=B", "--peak-at-exit=no",
                     "--massif-out-file=%s.out" % probes, *options, "--", *argv], cwd=cwd, env=env)
        t.equal("status (%s)" % run.err.decode(errors="replace")[:300], run.status, 0)
        own[probes] = run, masked(os.path.join(cwd, probes + ".out"))
    path = os.path.join(cwd, PROBES[0] + ".out")
    view = VIEWS[zlib.crc32(os.path.basename(t.directory).encode()) % len(VIEWS)]
    printed = t.run([os.path.join(harness.BUILD, "ptmem-report"), *view, path]).out

    def ask_both():
        ask(t, command, cwd, env, own)
        compare_report(t, path, view, printed)

    result = [[run.out.decode("latin-1"), lines] for run, lines in own.values()]
    confirmed.confirm(t, name, command, env, [*result, view, ADDRESS.sub("0x: ", printed.decode("latin-1"))], ask_both)


def without_hashes(path):
    """A copy of @path, in a directory beside it, with each '#' but those of comments replaced."""
    directory = os.path.dirname(path) + ".masked"
    copy = os.path.join(directory, os.path.basename(path))
    os.makedirs(directory, exist_ok=True)
    with open(path, "rb") as file, open(copy, "wb") as out:
        for line in file:
            out.write(line if line.startswith(b"#") else line.replace(b"#", b"\1"))
    return copy


VIEWS = ([], ["--threshold=0"], ["--x=100", "--y=10"])


def compare_report(t, path, view, printed):
    """ptmem-report prints what ms_print prints of ptmem's file, in one of the views, which the test's name chooses
    (report_vs_msprint.sh has all, of Valgrind's files). ms_print cuts lines at '#': it gets a copy without."""
    left = t.ms_print([*view, without_hashes(path)])
    left.out = left.out.replace(b"\1", b"#").replace(b".masked/", b"/")
    t.equal("report of %s %s" % (os.path.basename(path), view), printed, left.out)


def register(name, get_argv, options=(), env=None, limit=120):
    RUNS.append([*VALGRIND, "--massif-out-file=valgrind.out", *options])

    @test("peer/" + name, limit=limit)
    def _(t):
        compare(t, "peer/" + name, get_argv(t), options, env)
