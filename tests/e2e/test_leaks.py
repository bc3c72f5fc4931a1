"""Leaks and other results of a live profile: the function names of targets/leaks.c are the results that a
leak check must give; LeakSanitizer and memcheck check the same program."""

import collections
import glob
import json
import os
import re
import signal
import subprocess
import time

import harness
from harness import Fail, Skip, test
from leaks_lib import EXPECTED, KINDS, MAKERS, Waiting, folded_sum, library

VARIANTS = ("gcc-O2-pie", "clang-O0-nopie")
OTHERS = ("only_in_freed", "freed_holder", "holder")


def found(path):
    """{maker: {kind: blocks}} of a JSON report; the innermost maker on a stack counts."""
    with open(path, encoding="utf-8") as file:
        report = json.load(file)
    makers = collections.defaultdict(dict)
    bytes_by_kind = collections.Counter()
    for site in report["sites"]:
        bytes_by_kind[site["kind"]] += site["bytes"]
        names = [f.get("function") for f in site["stack"]]
        maker = next((n for n in names if n in MAKERS or n in OTHERS), None)
        if maker:
            kinds = makers[maker]
            kinds[site["kind"]] = kinds.get(site["kind"], 0) + site["blocks"]
    for kind, total in report["kinds"].items():
        if total["bytes"] != bytes_by_kind[kind]:
            raise Fail("%s: %d bytes in total, but %d by site" % (kind, total["bytes"], bytes_by_kind[kind]))
    return dict(makers)


def check_exit(t, variant, *options, env=None):
    cwd = t.subdirectory()
    result = t.profile([t.target(variant, "leaks"), library(t)],
                       ["--leak-check", "--leaks-out=leaks.json", "--ignore-fn=holder", "--error-exitcode=7", *options],
                       cwd=cwd, env=env)
    t.equal("the exit status", result.status, 7)
    t.equal("what leaks", found(os.path.join(cwd, "leaks.json")), EXPECTED)


for _variant in VARIANTS:
    for _probes in ("break", "jump"):
        def _run(t, variant=_variant, probes=_probes):
            check_exit(t, variant, "--probes=" + probes)
        test("leaks/exit/%s/%s" % (_variant, _probes))(_run)


class Attached:
    """ptmem attached to @pids."""

    def __init__(self, t, pids, *options, good=None):
        self.t, self.cwd = t, t.subdirectory()
        self.err = os.path.join(self.cwd, "err")
        # what was placed just now counts, too
        if any(o.startswith("--leak") for o in options) and not any(o.startswith("--older") for o in options) \
                and not any(o.startswith("--leaks=") for o in options):
            options = ("--older-than=0", *options)
        with open(self.err, "wb") as err:
            self.process = subprocess.Popen([t.ptmem(), "--stats", *options, "-p", " ".join(map(str, pids))],
                                            cwd=self.cwd, env=t.environment(self.cwd), stderr=err)
        t.wait_until("ptmem to attach", lambda: self.text().count("ptmem: attached to process") == (good or len(pids))
                     or self.process.poll() is not None)

    def text(self):
        with open(self.err, encoding="utf-8", errors="replace") as file:
            return file.read()

    def leave(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait()

    def path(self, name):
        return os.path.join(self.cwd, name)


@test("leaks/attached")
def attached(t):
    """On demand and at detach, by several threads that run on."""
    program = Waiting(t)
    ptmem = Attached(t, [program.process.pid], "--leak-check", "--leaks-out=leaks.json", "--ignore-fn=holder")
    program.step(b"begun\n")
    program.step(b"placed\n")
    out = ptmem.path("leaks.json")
    ptmem.process.send_signal(signal.SIGUSR1)
    t.wait_until("the report", lambda: os.path.exists(out))
    t.equal("what leaks, on demand", found(out), EXPECTED)
    os.unlink(out)
    t.equal("ptmem's exit status", ptmem.leave(), 0)
    t.equal("what leaks, at detach", found(out), EXPECTED)
    t.check(ptmem.text().count("leak check of process %d: stopped for" % program.process.pid) == 2,
            "the stops are not announced: " + ptmem.text())
    program.step(b"done\n")
    t.equal("the program's exit status", program.process.wait(), 0)


# Pointers that an allocator keeps: to blocks in its lists and descriptions, and in memory that is free.
for _allocator in harness.ALLOCATORS:
    def _other(t, name=_allocator):
        """No pointer of another allocator's keeps a block from being lost, from the start or attached."""
        env = {"LD_PRELOAD": harness.allocator(name)}
        check_exit(t, "gcc-O2-pie", env=env)
        program = Waiting(t, **env)
        ptmem = Attached(t, [program.process.pid], "--leak-check", "--leaks-out=leaks.json", "--ignore-fn=holder")
        program.step(b"begun\n")
        program.step(b"placed\n")
        t.equal("ptmem's exit status", ptmem.leave(), 0)
        t.equal("what leaks, attached", found(ptmem.path("leaks.json")), EXPECTED)
        program.step(b"done\n")
        t.equal("the program's exit status", program.process.wait(), 0)
    test("leaks/allocators/" + _allocator)(_other)


for _allocator in (*harness.ALLOCATORS, "libtcmalloc.so.4"):
    def _own(t, name=_allocator):
        """A program without blocks: its allocator loses some of its own, but none is reported."""
        library = harness.allocator(name) if name in harness.ALLOCATORS else harness.LIBRARIES + name
        if not os.path.exists(library):
            raise Skip("no " + library)
        result = t.profile([t.target("gcc-O2-pie", "empty")], ["--leak-check", "--leaks-out=leaks.json"], env={"LD_PRELOAD": library})
        with open(os.path.join(result.directory, "leaks.json"), encoding="utf-8") as file:
            t.equal("lost blocks", [s for s in json.load(file)["sites"] if s["kind"] != KINDS["reach"]], [])
        program = subprocess.Popen([t.target("gcc-O2-pie", "monitored")], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   env=t.environment(t.directory, LD_PRELOAD=library))
        program.stdout.readline()
        ptmem = Attached(t, [program.pid], "--leak-check", "--leaks-out=leaks.json")
        t.equal("ptmem's exit status", ptmem.leave(), 0)
        with open(ptmem.path("leaks.json"), encoding="utf-8") as file:
            sites = json.load(file)["sites"]
        t.check(sites, "no block from before the attach is known: " + ptmem.text())
        t.equal("lost blocks, attached", [s for s in sites if s["kind"] != KINDS["reach"]], [])
        program.stdin.close()
        t.equal("the program's exit status", program.wait(), 5)
    test("leaks/allocators/own/" + _allocator)(_own)


for _probes, _rounds in (("break", 100), ("auto", 20000), ("jump", 20000)):
    def _busy(t, probes=_probes, rounds=_rounds):
        """The end of the process meets threads anywhere, also while ptmem handles a breakpoint of theirs."""
        for how in ("_exit", "exit", "thread", "_exit"):
            cwd = t.subdirectory()
            result = t.profile([t.target("gcc-O2-pie", "busy_exit"), str(rounds), how],
                               ["--leak-check", "--leaks-out=leaks.json", "--inspect-at-exit", "--inspect-out=look.json",
                                "--probes=" + probes], cwd=cwd)
            t.equal("status", result.status, 0)
            with open(os.path.join(cwd, "look.json"), encoding="utf-8") as file:
                t.equal("threads at the end", json.load(file)["threads"], 6 if how == "thread" else 5)
            with open(os.path.join(cwd, "leaks.json"), encoding="utf-8") as file:
                sites = [s for s in json.load(file)["sites"] if "keep" in {f.get("function") for f in s["stack"]}]
            t.equal("kinds of blocks", {s["kind"] for s in sites}, {KINDS["reach"]})
            # each thread may have freed one, or not kept one yet
            t.check(4 * 63 <= sum(s["blocks"] for s in sites) <= 4 * 65, "blocks: %s" % sites)
    test("leaks/busy/" + _probes)(_busy)


@test("leaks/handlers-at-exit")
def handlers_at_exit(t):
    """Threads that are killed in handlers with stacks of their own: both of their stacks count."""
    for _ in range(10):
        cwd = t.subdirectory()
        profile = t.profile([t.target("gcc-O2-pie", "altexit")], ["--leak-check", "--leaks-out=leaks.json"], cwd=cwd)
        t.equal("status", profile.status, 0)
        with open(os.path.join(cwd, "leaks.json"), encoding="utf-8") as file:
            sites = json.load(file)["sites"]
        kept = {s["bytes"] // s["blocks"]: (s["kind"], s["blocks"]) for s in sites if s["bytes"] >= 12345}
        t.equal("their blocks", kept, {12345: ("still reachable", 3), 65536: ("still reachable", 1)})


@test("leaks/sparse")
def sparse(t):
    """32 TiB with a few pages in it: to visit each address takes longer than a test may."""
    if tuple(int(n) for n in re.match(r"(\d+)\.(\d+)", os.uname().release).groups()) < (6, 7):
        raise Skip("Linux before 6.7 tells of each address only")
    cwd = t.subdirectory()
    run = t.profile([t.target("gcc-O2-pie", "sparse")], ["--leak-check", "--leaks-out=leaks.json"], cwd=cwd)
    t.equal("status", run.status, 0)
    with open(os.path.join(cwd, "leaks.json"), encoding="utf-8") as file:
        sites = json.load(file)["sites"]
    of = {f["function"]: (s["kind"], s["blocks"]) for s in sites for f in s["stack"] if "_" in f.get("function", "")}
    t.equal("what leaks", {name: of.get(name) for name in ("reach_first", "reach_middle", "reach_last", "lost_plain")},
            {"reach_first": (KINDS["reach"], 1), "reach_middle": (KINDS["reach"], 2000),
             "reach_last": (KINDS["reach"], 1), "lost_plain": (KINDS["lost"], 1)})


def blocks_of(path, kind, *makers):
    """The blocks of a kind that each of the functions @makers allocated."""
    with open(path, encoding="utf-8") as file:
        sites = [s for s in json.load(file)["sites"] if s["kind"] == kind]
    return [sum(s["blocks"] for s in sites if maker in {f.get("function") for f in s["stack"]}) for maker in makers]


for _probes in ("break", "jump"):
    def _forked(t, probes=_probes):
        """ptmem's own memory in a fork, its parent's included, is neither a root nor read."""
        run = t.profile([t.target("gcc-O2-pie", "forked_leaks")],
                        ["--leak-check", "--leaks-out=leaks.%p.json", "--trace-children=yes", "--probes=" + probes])
        t.equal("status", run.status, 0)
        names = sorted(n for n in os.listdir(run.directory) if n.startswith("leaks."))
        t.equal("what parent and child lose", sorted(blocks_of(os.path.join(run.directory, n), KINDS["lost"],
                                                               "lost", "lost_in_child") for n in names),
                [[2000, 0], [2000, 1]])
        with open(os.path.join(run.directory, "stderr"), encoding="utf-8") as file:
            sizes = re.findall(r"stopped for [0-9.]+ ms to read ([0-9.]+) KiB and", file.read())
        # a ring has 64 KiB at least; of the program's own, pages of the stack may be touched before its memory is read
        t.check(len(sizes) == 2 and abs(float(sizes[0]) - float(sizes[1])) < 64, "the child read another size: %s" % sizes)
        t.check(all(float(s) < 512 for s in sizes), "too much was read: %s" % sizes)
    test("leaks/forked/" + _probes)(_forked)


def mapped_memfds(pid):
    with open("/proc/%s/maps" % pid, encoding="utf-8") as file:
        return [line for line in file if "/memfd:" in line]


for _children in ("no", "yes"):
    def _forked_attached(t, children=_children):
        """A fork is left without ptmem's memory, its parent's included: so it is no root for who attaches later."""
        program = subprocess.Popen([t.target("gcc-O2-pie", "forked_leaks"), "wait"], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, cwd=t.directory, env=t.environment(t.directory))
        t.equal("the first line", program.stdout.readline(), b"begun\n")
        ptmem = Attached(t, [program.pid], "--probes=jump", "--trace-children=" + children, "-o", "first.%p")
        program.stdin.write(b".")
        program.stdin.flush()
        child = int(program.stdout.readline())
        t.check(mapped_memfds(child), "there are no pads")
        t.equal("ptmem's exit status", ptmem.leave(), 0)
        t.equal("mappings left in parent and child", mapped_memfds(program.pid) + mapped_memfds(child), [])
        program.stdin.write(b".")
        program.stdin.close()
        t.equal("status", program.wait(), 0)
    test("leaks/forked-attached/trace-children-" + _children)(_forked_attached)


@test("leaks/freed")
def freed(t):
    """What only freed memory points to is lost, though glibc keeps that memory for the thread as it is."""
    cwd = t.subdirectory()
    t.profile([t.target("gcc-O2-pie", "leaks"), library(t), "freed"],
              ["--leak-check", "--leaks-out=leaks.json", "--ignore-fn=holder"], cwd=cwd)
    t.equal("what leaks", found(os.path.join(cwd, "leaks.json")), dict(EXPECTED, only_in_freed={KINDS["lost"]: 1}))


def lost_without_ignoring(t):
    cwd = t.subdirectory()
    t.profile([t.target("gcc-O2-pie", "leaks"), library(t)], ["--leak-check", "--leaks-out=leaks.json"], cwd=cwd)
    return found(os.path.join(cwd, "leaks.json"))


@test("leaks/sanitizer")
def sanitizer(t):
    """LeakSanitizer calls lost what ptmem calls definitely or indirectly lost."""
    result = t.run([t.target("asan", "leaks"), library(t)], env={"ASAN_OPTIONS": "detect_leaks=1"})
    text = result.err.decode()
    theirs = collections.Counter()
    for blocks, maker in re.findall(r"leak of \d+ byte\(s\) in (\d+) object\(s\).*\n +#0 .*\n +#1 \S+ in (\w+)", text):
        theirs[maker] += int(blocks)
    t.check(theirs, "LeakSanitizer found nothing: " + text)
    lost = {"definitely lost", "indirectly lost"}
    ours = {m: sum(n for k, n in kinds.items() if k in lost) for m, kinds in lost_without_ignoring(t).items()}
    t.equal("what is lost", {m: n for m, n in ours.items() if n}, dict(theirs))


@test("leaks/memcheck", 120)
def memcheck(t):
    """All four results are memcheck's."""
    text = t.memcheck([t.target("gcc-O2-pie", "leaks"), library(t)])
    theirs = collections.defaultdict(dict)
    for record in re.split(r"(?m)^==\d+== $\n", text):
        head = re.search(r"in (\d+) blocks are (\w+ \w+) in loss record", record)
        maker = next((m for m in re.findall(r": (\w+) \(", record) if m in MAKERS or m in OTHERS), None)
        if head and maker:
            theirs[maker][head.group(2)] = theirs[maker].get(head.group(2), 0) + int(head.group(1))
    t.equal("what leaks", lost_without_ignoring(t), dict(theirs))


# Where memcheck by default treats a pointer to the inside of a block like one to its start.
HEURISTICS = {"array_of_items", "array_with_cookie", "second_base", "behind_length", "behind_string_head"}


def cxx_makers():
    with open(os.path.join(os.path.dirname(harness.HERE), "targets", "leaks_cxx.cpp"), encoding="utf-8") as file:
        text = file.read()
    return set(re.findall(r"^MAKER\((\w+),", text, re.M)) | {"lost_map", "lost_list", "lost_self_cycle", "library_types"}


def cxx_memcheck(t, variant, *options):
    """{maker: {kind: blocks}} according to memcheck."""
    text = t.memcheck([t.target(variant, "leaks_cxx")], *options)
    makers, theirs = cxx_makers(), collections.defaultdict(dict)
    for record in re.split(r"(?m)^==\d+== $\n", text):
        head = re.search(r"in ([0-9,]+) blocks are (\w+ \w+) in loss record", record)
        maker = next((m for m in re.findall(r": (\w+)\(\) \(", record) if m in makers), None)
        if head and maker:
            theirs[maker][head[2]] = theirs[maker].get(head[2], 0) + int(head[1].replace(",", ""))
    t.equal("makers that memcheck knows", set(theirs), makers)
    return dict(theirs)


def cxx_found(t, variant, *options):
    cwd = t.subdirectory()
    t.profile([t.target(variant, "leaks_cxx")], ["--leak-check", "--leaks-out=leaks.json", *options], cwd=cwd)
    makers, ours = cxx_makers(), collections.defaultdict(dict)
    with open(os.path.join(cwd, "leaks.json"), encoding="utf-8") as file:
        for site in json.load(file)["sites"]:
            names = [f.get("function", "").split("(")[0] for f in site["stack"]]
            maker = next((n for n in names if n in makers), None)
            if maker:
                ours[maker][site["kind"]] = ours[maker].get(site["kind"], 0) + site["blocks"]
    return dict(ours)


for _variant in VARIANTS:
    def _cxx(t, variant=_variant):
        """Containers, arrays with a cookie, second bases, mappings of all kinds, odd places: all that memcheck says
        without its heuristics; and with them only what the manual page names differs."""
        without = cxx_memcheck(t, variant, "--leak-check-heuristics=none")
        t.equal("what leaks", cxx_found(t, variant), without)
        by_default = cxx_memcheck(t, variant)
        t.equal("where heuristics decide", {m for m in by_default if by_default[m] != without[m]}, HEURISTICS)
        t.check(all(list(without[m]) == ["possibly lost"] and list(by_default[m]) == ["still reachable"]
                    for m in HEURISTICS - {"array_of_items"}), "other kinds: %s, %s" % (without, by_default))
    test("leaks/cxx/" + _variant, 180)(_cxx)


@test("leaks/several-processes")
def several(t):
    """Two processes, one name for the files: each has its own, and both run on."""
    programs = [Waiting(t), Waiting(t)]
    pids = [p.process.pid for p in programs]
    ptmem = Attached(t, pids, "--leak-check", "--leaks-out=leaks.json", "--ignore-fn=holder", "-o", "profile.out",
                     "--folded=live.folded")
    for p in programs:
        p.step(b"begun\n")
        p.step(b"placed\n")
    t.equal("ptmem's exit status", ptmem.leave(), 0)
    for p in programs:
        pid = p.process.pid
        t.equal("what leaks in one", found(ptmem.path("leaks.%d.json" % pid)), EXPECTED)
        for name in ("profile.%d.out", "live.%d.folded"):
            t.check(os.path.exists(ptmem.path(name % pid)), "no " + name % pid)
        t.check(re.search(r"attached to process %d \(1 thread paused for [0-9.]+ ms\)" % pid, ptmem.text()),
                "the pause of %d is not said: %s" % (pid, ptmem.text()))
        p.step(b"done\n")
        t.equal("the program's exit status", p.process.wait(), 0)


@test("leaks/executed")
def executed(t):
    """A program that executes another one is not said to have ended; the next one is checked."""
    script = "import os; os.execv('%s', ['true'])" % t.program("true")
    result = t.run([t.ptmem(), "--leak-check", "--leaks-out=leaks.json", "--trace-children=yes", "-o", "f.massif",
                    t.program("python3"), "-c", script], cwd=t.subdirectory())
    t.equal("ptmem's status", result.status, 0)
    t.equal("reasons", re.findall(rb"process \d+ (.*): no leak check", result.err), [b"executed another program"])


@test("leaks/several-one-missing")
def one_missing(t):
    """A process that cannot be attached to leaves the others alone."""
    program = Waiting(t)
    gone = subprocess.Popen(["true"])
    gone.wait()
    ptmem = Attached(t, [program.process.pid, gone.pid], "--leaks", "--leaks-out=leaks.txt", good=1)
    t.wait_until("the complaint", lambda: "no such process" in ptmem.text())
    program.step(b"begun\n")
    program.step(b"placed\n")
    t.equal("ptmem's exit status", ptmem.leave(), 0)
    with open(ptmem.path("leaks.%d.txt" % program.process.pid), encoding="utf-8") as file:
        t.check("9 blocks still allocated" in file.read(), "the list is not in the report")
    program.step(b"done\n")
    program.process.wait()


@test("leaks/folded")
def folded(t):
    """Sums of folded files are the program's own figures."""
    for view, key in (("live", "live"), ("exit", "live"), ("total", "bytes"), ("count", "allocations"),
                      ("peak", "peak")):
        cwd = t.subdirectory()
        result = t.profile([t.target("gcc-O2-pie", "leaks"), library(t)],
                           ["--folded=out", "--flame=out.svg", "--view=" + view, "--peak-inaccuracy=0"], cwd=cwd)
        stats = result.only_stats()
        t.equal("the sum by " + view, folded_sum(os.path.join(cwd, "out")), stats[key])
        with open(os.path.join(cwd, "out.svg"), encoding="utf-8") as file:
            t.check(file.read().rstrip().endswith("</svg>"), "the flame graph is not whole")


@test("leaks/folded-reallocs")
def folded_reallocs(t):
    """Bytes ever allocated are the same by call path, in the summary and in memusage's report: a realloc's growth."""
    cwd = t.subdirectory()
    run = t.profile([t.target("gcc-O2-pie", "mixed")], ["--folded=out", "--view=total", "--memusage"], cwd=cwd)
    stats = run.only_stats()
    t.check(stats["reallocations"] > 0, "the program does not call realloc")
    t.equal("the sum of call paths", folded_sum(os.path.join(cwd, "out")), stats["bytes"])


@test("leaks/age")
def age(t):
    """Only what is old enough is in the report."""
    program = Waiting(t)
    ptmem = Attached(t, [program.process.pid], "--leaks=3600", "--leaks-out=leaks.json")
    program.step(b"begun\n")
    program.step(b"placed\n")
    ptmem.leave()
    with open(ptmem.path("leaks.json"), encoding="utf-8") as file:
        report = json.load(file)
    t.equal("blocks", (report["blocks"], report["age"], report["sites"]), (0, 3600, []))
    program.step(b"done\n")
    program.process.wait()


@test("leaks/top")
def top(t):
    """On no terminal, a table of call sites at each interval."""
    program = Waiting(t)
    ptmem = Attached(t, [program.process.pid], "--top=0.2")
    program.step(b"begun\n")
    program.step(b"placed\n")
    row = re.compile(r"^ptmem: +432 B +\+?\d+ B +\+432 B +\d.* +9  follow_list \(leaks\.c:\d+\)$", re.M)
    t.wait_until("two tables", lambda: len(row.findall(ptmem.text())) >= 2)
    resident = re.search(r"resident ([0-9.]+) [KM]iB; by live bytes", ptmem.text())
    t.check(resident and float(resident.group(1)) > 0, "no resident size: " + ptmem.text())
    t.equal("ptmem's exit status", ptmem.leave(), 0)
    program.step(b"done\n")
    t.equal("the program's exit status", program.process.wait(), 0)


@test("leaks/python")
def python(t):
    """A real program under load, attached and detached: its blocks are reachable, and it continues."""
    script = t.file("load.py", "import select, sys\nkeep = []\nwhile True:\n    keep.append([str(i) * 10 for i in range(100)])\n"
                               "    if select.select([sys.stdin], [], [], 0.01)[0]:\n        if not sys.stdin.readline():\n            break\n"
                               "        print(len(keep), flush=True)\n")
    program = subprocess.Popen([t.program("python3"), script], env=t.environment(t.directory, PYTHONMALLOC="malloc"),
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def kept():
        program.stdin.write(b"\n")
        program.stdin.flush()
        return int(program.stdout.readline())
    kept()
    ptmem = Attached(t, [program.pid], "--leak-check", "--leaks-out=leaks.json", "--folded=out")
    before = kept()
    t.wait_until("more lists", lambda: kept() > before + 50)
    t.equal("ptmem's exit status", ptmem.leave(), 0)
    with open(ptmem.path("leaks.json"), encoding="utf-8") as file:
        report = json.load(file)
    t.equal("definitely lost", report["kinds"]["definitely lost"]["bytes"], 0)
    t.check(report["kinds"]["still reachable"]["bytes"] > 100000, "nothing is reachable: %s" % report["kinds"])
    # a block that is between the halves of a realloc is live, but not in the leak check
    live = int(re.search(r"^ptmem: live bytes: (\d+)$", ptmem.text(), re.M).group(1))
    t.equal("the folded sum", folded_sum(ptmem.path("out")), live)
    program.communicate()
    t.equal("the program's exit status", program.returncode, 0)


def records(path):
    """[(kind, blocks, indirect blocks, stack)] of a JSON report."""
    with open(path, encoding="utf-8") as file:
        return [(s["kind"], s["blocks"], s.get("indirect", {"blocks": 0})["blocks"], s["stack"], s)
                for s in json.load(file)["sites"]]


def maker_of(stack, makers):
    names = [re.split(r"[([]", f.get("function", ""))[0] for f in stack]
    return next((n for n in names if n in makers), None)


def fixed(t):
    """What ptmem is run by, so that the heap of a program that is not a PIE is where tests/targets/Makefile puts it, above the numbers
    in the C library's memory: at low addresses, chosen at random, one in some runs looks like an address inside of a block."""
    return [t.program("setarch"), "-R"]


for _variant in VARIANTS:
    def _trees(t, variant=_variant):
        """A lost tree is one record, whose leader is the object: of 160 cycles alike, of a string that has an old
        pointer; so are blocks that a recursion lost at each depth. The program says how many blocks there are."""
        run = t.profile([t.target(variant, "lost_trees")], ["--leak-check", "--leaks-out=leaks.json"], prefix=fixed(t))
        truth = {name: (int(direct), int(indirect)) for name, direct, indirect in
                 (line.split() for line in run.out.decode().splitlines())}
        path = os.path.join(run.directory, "leaks.json")
        ours = [(maker_of(stack, truth), (direct, indirect)) for kind, direct, indirect, stack, _ in records(path)
                if kind == KINDS["lost"]]
        t.equal("records", len(ours), len(truth))
        t.equal("direct and indirect blocks", dict(ours), truth)
        text = t.run([*fixed(t), t.ptmem(), "--leak-check", "--", t.target(variant, "lost_trees")]).err.decode()
        head = re.compile(r"([0-9,]+) \(([0-9,]+) direct, ([0-9,]+) indirect\)")
        theirs = t.memcheck([t.target(variant, "lost_trees")], "--show-leak-kinds=definite")
        of_cycles = max(head.findall(theirs), key=lambda m: int(m[0].replace(",", "")))
        text = text.replace(" bytes (", " (")
        t.check(of_cycles in head.findall(text), "memcheck's %s is not in %s" % (of_cycles, text))
        lost = [line for line in text.splitlines() if re.search(r"blocks?( \(.*\))? (definitely|indirectly) lost", line)]
        t.equal("records in the text", len(lost), len(truth))
        text = t.run([*fixed(t), t.ptmem(), "--leak-check", "--show-leak-kinds=indirect", "--", t.target(variant, "lost_trees")]).err.decode()
        shown = set(re.findall(r" blocks? (\w+ \w+), [0-9.]+ (?:to [0-9.]+ )?s old", text))
        t.equal("kinds shown", shown, {KINDS["follow"]})
        text = t.run([*fixed(t), t.ptmem(), "--leak-check", "--show-leak-kinds=all", "--", t.target(variant, "lost_trees")]).err.decode()
        shown = set(re.findall(r" blocks?(?: \(.*\))? (\w+ \w+), [0-9.]+ (?:to [0-9.]+ )?s old", text))
        t.equal("all kinds", shown, set(KINDS.values()) - {KINDS["inside"]})
    test("leaks/trees/" + _variant, 120)(_trees)

    def _containers(t, variant=_variant):
        """The leader is the container, or the parent, not the nodes that point back to it; memcheck agrees."""
        program = [t.target(variant, "lost_containers")]
        run = t.profile(program, ["--leak-check", "--leaks-out=leaks.json"], prefix=fixed(t))
        truth = {name: (int(size), int(indirect)) for name, size, indirect in
                 (line.split() for line in run.out.decode().splitlines())}
        ours = [(str(maker_of(stack, truth)), (site["bytes"], indirect)) for kind, _, indirect, stack, site in
                records(os.path.join(run.directory, "leaks.json")) if kind == KINDS["lost"]]
        t.equal("direct bytes and indirect blocks", sorted(ours), sorted(truth.items()))
        theirs = t.memcheck(program, "--show-leak-kinds=definite", "--leak-check-heuristics=none")
        direct = [int(n.replace(",", "")) for n in re.findall(r"\(([0-9,]+) direct, ", theirs)]
        t.equal("memcheck's direct bytes", sorted(direct), sorted(size for size, _ in truth.values()))
    test("leaks/containers/" + _variant)(_containers)

    def _holders(t, variant=_variant):
        """What holds reachable blocks: the variable, and the way from there; as text and JSON."""
        run = t.profile([t.target(variant, "lost_trees")], ["--leak-check", "--leak-holders", "--leaks-out=leaks.json"], prefix=fixed(t))
        makers = {"keep_link", "keep_data"}
        held = {maker_of(stack, makers): [(h["blocks"], [re.sub(r" \(lost.*", "", c) for c in h["chain"]])
                                          for h in site["holders"]]
                for kind, _, _, stack, site in records(os.path.join(run.directory, "leaks.json"))
                if kind == KINDS["reach"] and maker_of(stack, makers)}
        root = "variable 'kept_list' in lost_trees"
        t.equal("holders", held, {"keep_data": [(10, [root, "keep_link(link*)"])],
                                  "keep_link": [(9, [root, "keep_link(link*)"]), (1, [root])]})
        text = t.run([t.ptmem(), "--leak-check", "--leak-holders", "--", t.target(variant, "lost_trees")]).err.decode()
        t.check(re.search(r"held by variable 'kept_list' in lost_trees -> keep_link\(link\*\) \(lost_trees.cpp:\d+\): "
                          r"5,000 bytes in 10 blocks", text), "no holder: " + text)
        program = [t.target(variant, "leaks"), library(t)]
        text = t.run([t.ptmem(), "--leak-check", "--leak-holders", "--", *program]).err.decode()
        for what, maker in (("variable 'global' in leaks", "reach_global"), ("stack of thread", "reach_stack"),
                            ("a register", "reach_register"), ("variable 'held' in libhold.so", "reach_library")):
            t.check(re.search(r": %s \(.*\n(ptmem:     by .*\n)*ptmem:     held by %s" % (maker, what), text),
                    "%s is not held by %s: %s" % (maker, what, text))
    test("leaks/holders/" + _variant)(_holders)

    def _owners(t, variant=_variant):
        """The variable that owns blocks holds them, not what runs through the stack or registers."""
        run = t.profile([t.target(variant, "holders")], ["--leak-check", "--leak-holders", "--leaks-out=leaks.json"])
        held = {}
        for kind, _, _, stack, site in records(os.path.join(run.directory, "leaks.json")):
            t.equal("the kind", kind, KINDS["reach"])
            held[stack[0]["function"]] = [(h["blocks"], [re.sub(r" \(hold.*|\d+$", "", c) for c in h["chain"]])
                                          for h in site["holders"]]
        root = "variable 'cache' in holders"
        t.equal("holders", held, {"make_cache": [(1, [root])], "make_slot": [(100, [root, "make_cache"])],
                                  "make_local": [(1, ["stack of thread "])],
                                  "make_below": [(1, ["stack of thread "])]})
    test("leaks/owners/" + _variant)(_owners)


def entries(text):
    """The suppressions in a report, each with a name."""
    found = re.findall(r"^(?:ptmem: )?\{\n(?:(?:ptmem: )? .*\n)*(?:ptmem: )?\}\n", text, re.M)
    return "".join(found).replace("ptmem: ", "").replace("<insert_a_suppression_name_here>", "known")


def check_suppressed(t, program, path, what):
    """With the file @path nothing is definitely lost, to ptmem and to memcheck; what was is counted as suppressed."""
    before = t.profile(program, ["--leak-check", "--leaks-out=leaks.json"])
    run = t.profile(program, ["--leak-check", "--leaks-out=leaks.json", "--suppressions=" + path, "--error-exitcode=9"])
    t.equal(what + ": status", run.status, 0)
    reports = []
    for directory in (before.directory, run.directory):
        with open(os.path.join(directory, "leaks.json"), encoding="utf-8") as file:
            reports.append(json.load(file))
    lost = [sum(r["kinds"][k]["blocks"] for k in (KINDS["lost"], KINDS["follow"])) for r in reports]
    t.equal(what + ": what is lost", lost[1], 0)
    t.equal(what + ": what is suppressed", sum(s["blocks"] for s in reports[1]["suppressed"]), lost[0])
    theirs = t.memcheck(program, "--suppressions=" + path)
    t.check(re.search("definitely lost: 0 bytes", theirs), what + ": memcheck does not know them: " + theirs)


@test("leaks/suppressions", 180)
def suppressions(t):
    """Entries that ptmem prints suppress leaks in memcheck, and the other way round."""
    program = [t.target("gcc-O2-pie", "lost_trees")]
    for mode in ("yes", "all"):
        text = t.run([t.ptmem(), "--leak-check", "--gen-suppressions=" + mode, "--show-leak-kinds=definite",
                      "--", *program]).err.decode()
        t.equal("entries", entries(text).count("Memcheck:Leak"), 4)
    # of the string's cycle memcheck's leader is the string, and ptmem's what points to it
    text = entries(text) + "{\n named\n Memcheck:Leak\n fun:malloc\n fun:strdup\n fun:*make_text*\n}\n"
    check_suppressed(t, program, t.file("ours.supp", text), "ptmem's own")
    theirs = t.memcheck(program, "--gen-suppressions=all", "--show-leak-kinds=definite", "--num-callers=12")
    text = re.sub(r"<insert_a_suppression_name_here>", "known", "".join(re.findall(r"(?m)^\{\n(?:   .*\n)*\}\n", theirs)))
    t.check(text.count("Memcheck:Leak") >= 4, "memcheck's entries: " + theirs)
    # its recursion is as deep as it was, and the leader of the string's cycle is the string
    text += "{\n named\n Memcheck:Leak\n fun:_Znwm\n fun:_ZL*lose_named*\n}\n"
    check_suppressed(t, program, t.file("theirs.supp", text), "memcheck's")


def lost_entries(text):
    """The entries with names that @text has for what is definitely lost."""
    return re.sub(r"<insert_a_suppression_name_here>", "known", "".join(
        e for e in re.findall(r"(?m)^\{\n(?:   .*\n)*\}\n", text.replace("ptmem: ", "")) if "definite" in e))


for _what in ("rust", "stripped"):
    def _interchanged(t, what=_what):
        """The names of inlined functions with their template arguments, and of start-up code, are memcheck's."""
        program = [t.target("rust", "lost_nodes")]
        if what == "stripped":
            program = [os.path.join(t.directory, "leaks"), library(t)]
            t.run([t.program("strip"), "-s", "-o", program[0], t.target("gcc-O2-pie", "leaks")])
        ours = t.run([t.ptmem(), "--leak-check", "--gen-suppressions=all", "--show-leak-kinds=definite",
                      "--", *program]).err.decode()
        known = lost_entries(ours)
        t.check(known.count("Memcheck:Leak") > 0, "no entries: " + ours)
        if what == "stripped":
            t.check("fun:(below main)\n" in known and "__libc_start" not in known, "the start-up code: " + known)
        check_suppressed(t, program, t.file("ours.supp", known), "ptmem's own")
        theirs = t.memcheck(program, "--gen-suppressions=all", "--show-leak-kinds=definite", "--num-callers=50")
        known = lost_entries(theirs)
        t.check(known.count("Memcheck:Leak") > 0, "no entries: " + theirs)
        check_suppressed(t, program, t.file("theirs.supp", known), "memcheck's")
    test("leaks/suppressions-" + _what, 180)(_interchanged)


@test("leaks/suppressions-of-lists")
def of_lists(t):
    """What --gen-suppressions prints, as a list or as messages, is a file of suppressions as it is; a device without end is none."""
    program = [t.target("gcc-O2-pie", "leaks"), library(t)]
    saved, given = os.path.join(t.directory, "list"), ["--leak-check", "--show-leak-kinds=all", "--error-exitcode=9", "-o", "none"]
    said = t.run([t.ptmem(), *given, "--gen-suppressions=all", "--", *program])
    t.run([t.ptmem(), *given, "--gen-suppressions=all", "--leaks-out=" + saved, "--", *program])
    for path in saved, t.file("messages", said.err.decode()):
        known = t.run([t.ptmem(), *given, "--suppressions=" + path, "--", *program])
        t.check(said.status == 9 and known.status == 0 and b"definitely lost: 0 bytes" in known.err, "%s: %r" % (path, known.err))
    for option in "--suppressions", "--limits-file":
        for path in "/dev/zero", "/dev/urandom":
            refused = t.run([t.ptmem(), *given, option + "=" + path, "true"])
            t.check(refused.status == 125 and path.encode() in refused.err, "%s: %r" % (path, refused))


@test("leaks/suppressions-by-hand")
def by_hand(t):
    """Wildcards, objects, "..." and kinds, in entries as people write them; entries for other errors are passed over."""
    program = [t.target("gcc-O2-pie", "leaks"), library(t)]
    with open(os.path.join(os.path.dirname(harness.HERE), "targets", "leaks.c"), encoding="utf-8") as source:
        past_end = 1 + next(i for i, line in enumerate(source) if "MAKER(lost_past_end," in line)
    file = t.file("known.supp", """
# of other tools, and other errors
{
   other
   Helgrind:Race
   fun:*
}
{
   other
   Memcheck:Param
   write(buf)
   fun:*
}
{
   first
   Memcheck:Leak
   match-leak-kinds: definite, indirect
   fun:malloc
   fun:lost_pl?in
   ...
   fun:main
}
{
   second
   Memcheck:Leak
   match-leak-kinds: reachable
   fun:lost_*
}
{
   third
   Memcheck,Addrcheck:Leak
   ...
   fun:place_l?st
   obj:*/leaks
}
{
   fourth
   Memcheck:Leak
   fun:malloc
   src:leaks.?:%d
}
""" % past_end)
    run = t.profile(program, ["--leak-check", "--leaks-out=leaks.json", "--ignore-fn=holder", "--suppressions=" + file])
    path = os.path.join(run.directory, "leaks.json")
    expected = dict(EXPECTED)
    for maker in ("lost_plain", "lost_head", "follow_list", "lost_cycle", "follow_cycle", "lost_past_end"):
        del expected[maker]
    t.equal("what leaks", found(path), expected)
    with open(path, encoding="utf-8") as f:
        counts = {re.sub(r"/.*/", "", s["name"]): s["blocks"] for s in json.load(f)["suppressed"]}
    t.equal("by name", counts, {"first (known.supp:15)": 1, "third (known.supp:30)": 12, "fourth (known.supp:37)": 1})
    for bad, why in (("{\n x\n Memcheck:Leak\n fun:x\n", "4: the last entry has no \"}\""), ("x\n", "1: expected \"{\""),
                     ("{\n x\n Memcheck:Leak\n match-leak-kinds: some\n}\n", "4: unknown kind of leak"),
                     ("{\n x\n Memcheck:Leak\n fnu:x\n}\n", "4: expected fun:PATTERN")):
        result = t.run([t.ptmem(), "--leak-check", "--suppressions=" + t.file("bad.supp", bad), "--", *program])
        t.check(result.status != 0 and ("bad.supp:" + why) in result.err.decode(), "%r: %r" % (bad, result.err))
    result = t.run([t.ptmem(), "--leak-check", "--suppressions=/no/x", "--", *program])
    t.check(result.status != 0 and b"/no/x: No such file" in result.err, "no message: %r" % result.err)


@test("leaks/totals")
def totals(t):
    """With --leaks-out the totals are printed, too, of each process."""
    for processes, program in ((1, [t.target("gcc-O2-pie", "leaks"), library(t)]), (2, [t.target("gcc-O2-pie", "forked_leaks")])):
        result = t.run([t.ptmem(), "--leak-check", "--leaks-out=leaks.%p.txt", "--", *program], cwd=t.subdirectory())
        written = []
        for path in glob.glob(os.path.join(result.cwd, "leaks.*.txt")):
            with open(path, encoding="utf-8") as file:
                written += re.findall(r"(?m)^  \w+ \w+: .*$", file.read())
        printed = re.findall(r"(?m)^ptmem: (  (?:definitely|indirectly|possibly|still) \w+: .*)$", result.err.decode())
        t.equal("kinds", len(written), 4 * processes)
        t.equal("totals", sorted(printed), sorted(written))


@test("leaks/older-than")
def older_than(t):
    """Young blocks are left out, and counted; by default only where the process runs on, and the report says so."""
    for age, blocks in (("1h", 0), ("0", 9)):
        program = Waiting(t)
        ptmem = Attached(t, [program.process.pid], "--leaks", "--leaks-out=leaks.json", "--older-than=" + age)
        program.step(b"begun\n")
        program.step(b"placed\n")
        ptmem.leave()
        with open(ptmem.path("leaks.json"), encoding="utf-8") as file:
            report = json.load(file)
        t.equal("follow_list of at least " + age, sum(
            s["blocks"] for s in report["sites"] if "follow_list" in {f.get("function") for f in s["stack"]}), blocks)
        t.check((report["younger"]["blocks"] >= 16) == (age == "1h"), "younger: %s" % report["younger"])
        program.step(b"done\n")
        program.process.wait()
    program = Waiting(t)
    ptmem = Attached(t, [program.process.pid], "--leak-check", "--leaks-out=leaks.txt", "--older-than=1h")
    program.step(b"begun\n")
    program.step(b"placed\n")
    ptmem.leave()
    t.check(re.search(r": 0 sites, at least 3600.000 s old\n", ptmem.text()) and
            re.search(r"younger than 3600.000 s: [0-9,]+ bytes in \d+ blocks, not shown", ptmem.text()), ptmem.text())
    program.step(b"done\n")
    program.process.wait()
    start = time.monotonic()
    default = subprocess.Popen([t.ptmem(), "--leaks", "--duration=0.3", "-p", str(os.getpid())], stderr=subprocess.PIPE,
                               cwd=t.subdirectory())
    text, most = default.communicate()[1].decode(), (time.monotonic() - start) / 10
    least_age = re.search(r"at least ([0-9.]+) s old, a tenth of the run \(--older-than=0: all\)", text)
    t.check(least_age and 0.03 <= float(least_age[1]) <= most + 0.001, "%.3f s: %s" % (most, text))
    run = t.profile([t.target("gcc-O2-pie", "leaks"), library(t)], ["--leaks", "--leaks-out=leaks.json"])
    with open(os.path.join(run.directory, "leaks.json"), encoding="utf-8") as file:
        report = json.load(file)
    t.equal("at the end", (report["age"], report["younger"]["blocks"]), (0, 0))
