"""Leak checks of targets/leaks_peers.cpp beside memcheck's and LeakSanitizer's: sizes, lists, trees, threads,
libraries, C++. What differs is named here, with its reason."""

import collections
import json
import os
import re
import signal
import subprocess

from harness import Fail, test

CLASSES = ("sizes", "lists", "trees", "pthreads", "dlopen", "cxx")
MAKER = r"make_(?!shared)\w+"
LOST, INDIRECT, POSSIBLE, REACHABLE = "definitely lost", "indirectly lost", "possibly lost", "still reachable"
SIZES = {"make_malloc": {LOST: 4096}, "make_calloc": {LOST: 256}, "make_aligned": {LOST: 256}, "make_grown": {LOST: 256}}


def arguments(t, kind):
    return [kind, t.target("lib", "libhold.so")]


def read_report(path):
    """{maker: {kind: blocks}}, by the innermost maker on each stack."""
    found = collections.defaultdict(dict)
    with open(path, encoding="utf-8") as file:
        for site in json.load(file)["sites"]:
            names = [re.match(MAKER, f.get("function", "")) for f in site["stack"]]
            maker = next((n.group() for n in names if n), None)
            if maker:
                found[maker][site["kind"]] = found[maker].get(site["kind"], 0) + site["blocks"]
    return dict(found)


def ptmem_found(t, variant, kind, *options):
    cwd = t.subdirectory()
    run = t.profile([t.target(variant, "leaks_peers"), *arguments(t, kind)],
                    ["--leak-check", "--leaks-out=leaks.json", *options], cwd=cwd)
    t.equal("the exit status", run.status, 0)
    return read_report(os.path.join(cwd, "leaks.json"))


def ptmem_found_static(t, kind):
    """Not of a PIE, and without randomization, so that each run gives the same."""
    cwd = t.subdirectory()
    argv = [t.target("gcc-O2-static", "leaks_peers"), *arguments(t, kind)]
    run = t.run([t.program("setarch"), "-R", t.ptmem(), "--leak-check", "--leaks-out=leaks.json", "--", *argv], cwd=cwd)
    t.equal("the exit status", run.status, 0)
    found = read_report(os.path.join(cwd, "leaks.json"))
    if kind == "sizes":
        join_possible(found)
    return found


def join_possible(found):
    """
    For a large heap at low addresses, where numbers look like addresses inside of some block: sizes of caches and
    of stacks that the C library keeps, for instance.
    """
    all_sizes = found["make_malloc"]
    all_sizes[LOST] += all_sizes.pop(POSSIBLE, 0)


def memcheck_found(t, variant, kind):
    text = t.memcheck([t.target(variant, "leaks_peers"), *arguments(t, kind)], "--leak-check-heuristics=none")
    found = collections.defaultdict(dict)
    for record in re.split(r"(?m)^==\d+== $\n", text):
        head = re.search(r"in ([0-9,]+) blocks are (\w+ \w+) in loss record", record)
        maker = re.search(r": (%s)\(" % MAKER, record)
        if head and maker:
            kinds = found[maker[1]]
            kinds[head[2]] = kinds.get(head[2], 0) + int(head[1].replace(",", ""))
    if not found:
        raise Fail("memcheck found nothing: " + text)
    return dict(found)


for _kind in CLASSES:
    def _memcheck(t, kind=_kind):
        """All four answers are memcheck's, for each maker."""
        ours = ptmem_found(t, "gcc-O2-pie", kind)
        t.equal("what leaks", ours, memcheck_found(t, "gcc-O2-pie", kind))
        if kind == "sizes":
            t.equal("what leaks", ours, SIZES)
    test("leaks/peers/memcheck/" + _kind, 120)(_memcheck)

    def _probes(t, kind=_kind):
        """Each way to catch calls gives the same answers."""
        t.equal("what leaks", ptmem_found(t, "gcc-O2-pie", kind, "--probes=break"),
                ptmem_found(t, "gcc-O2-pie", kind, "--probes=jump"))
    test("leaks/peers/probes/" + _kind)(_probes)


@test("leaks/peers/memcheck/addresses", 60)
def memcheck_addresses(t):
    """No number that a program has by chance, such as a count of cycles, is an address inside memcheck's heap."""
    text = t.memcheck([t.target("gcc-O2-pie", "leaks_peers"), *arguments(t, "addresses")])
    found = [int(address, 16) for address in re.findall(r"^address (\w+)$", text, re.M)]
    t.equal("blocks", len(found), 7)
    t.check(min(found) >= 1 << 36, "addresses like numbers: %s" % [hex(address) for address in found])


def sanitizer_found(t, kind):
    """{maker: blocks}: LeakSanitizer knows lost blocks only."""
    run = t.run([t.target("lsan", "leaks_peers"), *arguments(t, kind)],
                env={"LSAN_OPTIONS": "fast_unwind_on_malloc=0"})
    found = collections.Counter()
    for leak in re.split(r"\n\n", run.err.decode()):
        head = re.match(r"(?:Direct|Indirect) leak of \d+ byte\(s\) in (\d+) object\(s\)", leak)
        maker = re.search(r" in (%s)" % MAKER, leak)
        if head and maker:
            found[maker[1]] += int(head[1])
    if not found:
        raise Fail("LeakSanitizer found nothing: " + run.err.decode())
    return dict(found)


for _kind in CLASSES:
    def _sanitizer(t, kind=_kind):
        """LeakSanitizer calls lost what is definitely or indirectly lost here."""
        ours = {maker: kinds.get(LOST, 0) + kinds.get(INDIRECT, 0)
                for maker, kinds in ptmem_found(t, "gcc-O2-pie", kind).items()}
        t.equal("what is lost", {m: n for m, n in ours.items() if n}, sanitizer_found(t, kind))
    test("leaks/peers/sanitizer/" + _kind, 60)(_sanitizer)


for _kind in CLASSES:
    def _attached(t, kind=_kind):
        """A program that ran before gives the same answers."""
        cwd = t.subdirectory()
        with subprocess.Popen([t.target("gcc-O2-pie", "leaks_peers"), *arguments(t, kind), "wait"], cwd=cwd,
                              env=t.environment(cwd), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program, \
                open(os.path.join(cwd, "err"), "wb") as err:
            ptmem = subprocess.Popen([t.ptmem(), "--leak-check", "--older-than=0", "--leaks-out=leaks.json", "-p", str(program.pid)],
                                     cwd=cwd, env=t.environment(cwd), stderr=err)
            t.wait_until("ptmem to attach", lambda: b"attached to process" in open(err.name, "rb").read())
            for answer in (b"begun\n", b"placed\n"):
                program.stdin.write(b".")
                program.stdin.flush()
                t.equal("the answer", program.stdout.readline(), answer)
            ptmem.send_signal(signal.SIGTERM)
            t.equal("ptmem's exit status", ptmem.wait(), 0)
            program.stdin.write(b".")
            program.stdin.close()
            t.equal("the last answer", program.stdout.read(), b"done\n")
        t.equal("the program's exit status", program.returncode, 0)
        ours, started = read_report(os.path.join(cwd, "leaks.json")), ptmem_found(t, "gcc-O2-pie", kind)
        t.equal("what leaks", ours, SIZES if kind == "sizes" else started)
    test("leaks/peers/attached/" + _kind)(_attached)


@test("leaks/peers/static", 60)
def static(t):
    """A static program's arena is found, and the thread's variables before its heap are roots."""
    for kind in ("sizes", "lists", "trees", "pthreads", "cxx"):
        t.equal("what leaks by " + kind, ptmem_found_static(t, kind), ptmem_found(t, "gcc-O2-pie", kind))
    cwd = t.subdirectory()
    t.profile([t.target("gcc-O2-static", "leaks_peers"), *arguments(t, "none")],
              ["--leak-check", "--leaks-out=leaks.json"], cwd=cwd)
    with open(os.path.join(cwd, "leaks.json"), encoding="utf-8") as file:
        lost = [site for site in json.load(file)["sites"] if site["kind"] == LOST]
    t.equal("what the C library lost, whose pointers were closed after relocation", lost, [])
