"""What several tests of peer share."""

import collections
import hashlib
import json
import os
import re
import tempfile
import typing
import zlib

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


class Answer(typing.NamedTuple):
    """What Valgrind did: the program's status and standard output, and the file."""
    status: int
    out: bytes
    massif: bytes

    def write(self, path):
        with open(path, "wb") as file:
            file.write(self.massif)


def ask_valgrind(t, command, cwd, env):
    run = t.run(command, cwd=cwd, env=env)
    with open(os.path.join(cwd, "valgrind.out"), "rb") as file:
        return Answer(run.status, run.out, file.read())


def kept_path(command, env):
    """Where Valgrind's answer to @command is, if it was ever asked in this build."""
    key = hashlib.sha256(json.dumps([command, env], sort_keys=True).encode()).hexdigest()
    return os.path.join(harness.BUILD, "peers", key[:32])


def kept_answer(path):
    """None if there is none, or if PTMEM_PEERS=ask wants a new one."""
    try:
        with open(path, encoding="ascii") as file:
            answer = json.load(file)
    except (OSError, ValueError):
        return None
    data = (answer[k].encode("latin-1") for k in ("out", "massif"))
    return Answer(answer["status"], *data) if os.environ.get("PTMEM_PEERS") != "ask" else None


def keep_answer(path, answer):
    """Other drivers may do the same at the same time."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=os.path.dirname(path), delete=False, encoding="ascii") as file:
        json.dump({"status": answer.status, "out": answer.out.decode("latin-1"), "massif": answer.massif.decode("latin-1")}, file)
    os.replace(file.name, path)


PROBES = ("auto", "break", "jump")


def check_answer(t, cwd, answer, own):
    """Whether ptmem's runs @own, {probes: result}, gave what Valgrind gave."""
    answer.write(os.path.join(cwd, "valgrind.out"))
    left = without_garbage(masked(os.path.join(cwd, "valgrind.out")))
    for probes, run in own.items():
        t.equal("status (%s)" % run.err.decode(errors="replace")[:300], run.status, answer.status)
        t.equal("status under both", run.status, 0)
        t.equal("standard output", run.out, answer.out)
        right = masked(os.path.join(cwd, probes + ".out"))
        if len(left) != len(right) or not all(map(is_same, left, right)):
            raise Fail("massif (left) and ptmem (%s) differ, %s" % (probes, first_difference(left, right)))


def compare(t, argv, options=(), env=None):
    """Valgrind is asked if it never was in this build, and again before a difference counts: the program, a library or
    Valgrind may be another one since."""
    cwd = t.subdirectory()
    # The libraries that Valgrind preloads make LD_PRELOAD visible to the program: same names for both.
    env = dict(env or {}, GLIBCXX_FORCE_NEW="1", GLIBCPP_FORCE_NEW="1")
    command = [t.program("valgrind"), *VALGRIND, "--massif-out-file=valgrind.out", *options, *argv]
    own = {probes: t.run([t.ptmem(), "--probes=" + probes, "--time-unit=B", "--peak-at-exit=no",
                          "--massif-out-file=%s.out" % probes, *options, "--", *argv], cwd=cwd, env=env) for probes in PROBES}
    is_made_here = any(a.startswith(t.directory) for a in argv)  # a program of this run alone
    path = kept_path(command, env)
    answer = kept_answer(path)
    try:
        if not answer:
            raise Fail("Valgrind was not asked")
        check_answer(t, cwd, answer, own)
    except Fail:
        answer = ask_valgrind(t, command, cwd, env)
        check_answer(t, cwd, answer, own)
        if not is_made_here:
            keep_answer(path, answer)
    compare_report(t, os.path.join(cwd, PROBES[0] + ".out"))


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


def compare_report(t, path):
    """ptmem-report prints what ms_print prints of ptmem's file, in one of the views, which the test's name chooses
    (report_vs_msprint.sh has all, of Valgrind's files). ms_print cuts lines at '#': it gets a copy without."""
    args = VIEWS[zlib.crc32(os.path.basename(t.directory).encode()) % len(VIEWS)]
    left = t.ms_print([*args, without_hashes(path)])
    right = t.run([os.path.join(harness.BUILD, "ptmem-report"), *args, path])
    left.out = left.out.replace(b"\1", b"#").replace(b".masked/", b"/")
    t.equal("report of %s %s" % (os.path.basename(path), args), right.out, left.out)


def register(name, get_argv, options=(), env=None, limit=120):
    RUNS.append([*VALGRIND, "--massif-out-file=valgrind.out", *options])

    @test("peer/" + name, limit=limit)
    def _(t):
        compare(t, get_argv(t), options, env)
