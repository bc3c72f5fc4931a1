"""The xtree files: as Valgrind writes them for deterministic programs, and as callgrind_annotate and ms_print
read them."""

import os
import re

import confirmed
from harness import Fail, test
from peer_lib import RUNS, unmatched

VALGRIND = ["--tool=massif", "--run-libc-freeres=no", "--run-cxx-freeres=no", "-q"]


def whole_names(text):
    """Each number of a name replaced by the name."""
    seen, lines = {}, []
    for line in text.split("\n"):
        match = re.match(r"(c?f[nli])=\((\d+)\)(?: (.*))?$", line)
        if match:
            key = ("fn" if match.group(1) in ("fn", "cfn") else "fl", match.group(2))
            if match.group(3):
                seen[key] = match.group(3)
            line = "%s=%s" % (match.group(1), seen[key])
        lines.append(line)
    return "\n".join(lines)


def stacks(text):
    """Head, {stack: values summed} and totals; stacks of one text come from different addresses."""
    head, rest = whole_names(text).split("\nevents:", 1)
    names, *blocks = rest.split("\n", 1)[0], *rest.split("\n", 1)[1].split("\n\n")
    found = {}
    for block in blocks[:-1]:
        values = [int(n) for n in block.rsplit("\n", 1)[-1].split()[1:]]
        key = re.sub(r"(?m)^(\d+) .*$", r"\1", block)
        found[key] = [a + b for a, b in zip(found.get(key, [0] * len(values)), values)]
    return re.sub(r"pid: \d+", "pid: N", head), names, found, blocks[-1]


ENV = {"GLIBCXX_FORCE_NEW": "1", "GLIBCPP_FORCE_NEW": "1"}


def read(cwd, name):
    with open(os.path.join(cwd, name), encoding="utf-8") as file:
        return file.read()


def confirm(t, name, program, case, options, compare):
    """ptmem's file for a case; compare(cwd, Valgrind's file, ptmem's) is called unless it was confirmed before. What is confirmed
    is the text without addresses, process ids and times; the stacks of callgrind's form are in no order."""
    cwd, env, file = t.subdirectory(), dict(ENV, CASE=case), name.rsplit("/", 1)[1]
    t.run([t.ptmem(), "-o", "p.out", *options, "--xtree-memory-file=p." + file, "--", program], cwd=cwd, env=env)
    text = read(cwd, "p." + file)
    command = [t.program("valgrind"), *VALGRIND, "--massif-out-file=v.out", *options, "--xtree-memory-file=v." + file, program]

    def ask():
        t.run(command, cwd=cwd, env=env)
        compare(cwd, read(cwd, "v." + file), text)

    result = re.sub(r"(?m)0x[0-9A-Fa-f]+|^time=.*|^pid: \d+", "", whole_names(text))
    confirmed.confirm(t, name, command, env, sorted(result.split("\n\n")), ask)


def register(name, variant, program, case, mode, options=()):
    RUNS.append([*VALGRIND, "--xtree-memory=" + mode, "--xtree-memory-file=v.kcg", *options])
    name = "xtree/%s-%s" % (name, mode)

    @test(name, limit=120)
    def _(t):
        def compare_callgrind(cwd, *texts):
            left, right = (stacks(text) for text in texts)
            for what, a, b in zip(("head", "events", "stacks", "totals"), left, right):
                t.equal("callgrind form: " + what, b, a)
            annotated = [t.run([t.program("callgrind_annotate"), "--threshold=100", "--auto=no", tool + ".kcg"], cwd=cwd)
                         for tool in "vp"]
            t.equal("callgrind_annotate", annotated[1].status, 0)
            t.equal("its totals", *(next((l for l in r.out.decode().split("\n") if "PROGRAM TOTALS" in l), "none")
                                    for r in reversed(annotated)))

        def compare_massif(cwd, *texts):
            left, right = ([re.sub(r"0x[0-9A-F]+: |^time=.*", "", l) for l in text.split("\n")] for text in texts)
            rest = unmatched(left, right)
            if any(rest):
                raise Fail("Massif form: %s\nand %s" % rest)
            t.equal("ms_print", t.ms_print(["p.ms"], cwd=cwd).status, 0)

        path = t.target(variant, program)
        for form, compare in (("kcg", compare_callgrind), ("ms", compare_massif)):
            confirm(t, name + "/" + form, path, case, ["--xtree-memory=" + mode, *options], compare)


for m in ("allocs", "full"):
    register("wrappers", "peer-gcc-O0", "massif_cases", "wrappers", m)
    register("recursion", "peer-gcc-O2", "massif_cases", "recursion", m, ["--depth=5"])
    register("inlined", "peer-gcc-O2", "massif_cases", "inlined", m)
    register("resizes", "peer-clang-O0", "massif_cases", "resizes", m)
    register("zero", "peer-gcc-O0", "massif_cases", "zero", m)
    register("ignored", "peer-gcc-O0", "massif_cases", "ignored", m, ["--alloc-fn=a1"])
    register("containers", "peer-gcc-O2", "massif_cases_cxx", "containers", m)
    register("lambdas", "peer-gcc-O2", "massif_cases_cxx", "lambdas", m)
    register("around-main", "peer-clang-O0", "massif_cases", "around_main", m)
    register("whole-names", "peer-gcc-O2", "massif_cases", "wrappers", m, ["--xtree-compress-strings=no"])


@test("xtree/names")
def _(t):
    """Names are expanded for each process, relative to the directory where ptmem was started."""
    program = t.target("peer-gcc-O0", "massif_cases")
    result = t.profile([program], ["--xtree-memory=allocs", "--xtree-memory-file=x.%q{CASE}.%p"], env={"CASE": "zero"})
    name = "x.zero.%d" % result.only_stats()["pid"]
    t.check(os.path.exists(os.path.join(result.directory, name)), "no %s: %s" % (name, os.listdir(result.directory)))
    t.check(any(m.startswith("ptmem: xtree memory report: ") for m in result.messages), "no message")
    result = t.profile([program], ["-q"], env={"CASE": "zero"})
    t.check(not any("xtmemory" in n for n in os.listdir(result.directory)), "a file that was not asked for")


@test("xtree/pages")
def _(t):
    """With --pages-as-heap a page is a block: the live ones are those of the profile, and munmap frees."""
    program = t.target("gcc-O2-pie", "mappings")
    for mode, count in (("allocs", 2), ("full", 6)):
        result = t.profile([program, "mmap"], ["--pages-as-heap=yes", "--peak-at-exit=no", "--max-snapshots=1000",
                                               "--detailed-freq=1", "-o", "p.out", "--xtree-memory=" + mode,
                                               "--xtree-memory-file=x.ms", "--time-unit=B"])
        with open(os.path.join(result.directory, "x.ms"), encoding="utf-8") as file:
            text = file.read()
        with open(os.path.join(result.directory, "p.out"), encoding="utf-8") as file:
            last = int(re.findall(r"mem_heap_B=(\d+)", file.read())[-1])
        totals = [int(n) for n in re.findall(r"mem_heap_B=(\d+)", text)]
        t.equal("events of " + mode, len(totals), count)
        t.equal("bytes in use", totals[0], last)
        t.equal("pages in use", totals[1] * 4096, totals[0])
        t.check("main (mappings.c" in text, "no stack of the program")
        if mode == "full":
            t.check(totals[4] > 0, "nothing was freed")
            t.equal("allocated less freed", totals[2] - totals[4], totals[0])
            freed = text.split("totFdB", 1)[1].split("snapshot=", 1)[0]
            t.check("munmap" in freed and "main (mappings.c" in freed, "no stack of the unmapping calls: " + freed[:600])


def own_pages(text):
    """{event: {call path of the program's own functions: its number}} of a massif form."""
    found, path, event = {}, [], ""
    for line in text.split("\n"):
        match = re.match(r"( *)n\d+: (\d+) (.*)$", line)
        if not match:
            continue
        depth, number, what = len(match.group(1)), int(match.group(2)), match.group(3)
        if depth == 0:
            event = what
        del path[max(depth - 1, 0):]
        path.append(re.sub(r"0x[0-9A-F]+: ", "", what))
        if "main (massif_cases_mappings.c" in what:
            here, key = found.setdefault(event, {}), " < ".join(path)
            here[key] = here.get(key, 0) + number
    return found


def register_pages(case):
    @test("xtree/pages-%s" % case, limit=120)
    def _(t):
        program = t.target("peer-gcc-O2", "massif_cases_mappings")
        for mode in ("allocs", "full"):
            def compare(_, *texts, mode=mode):
                left, right = (own_pages(text) for text in texts)
                t.equal("events", len(left), 2 if mode == "allocs" else 6)
                t.equal("pages of the program's own calls (%s)" % mode, right, left)
            options = ["--xtree-memory=" + mode, "--pages-as-heap=yes", "--threshold=0"]
            confirm(t, "xtree/pages-%s/%s/ms" % (case, mode), program, case, options, compare)


for c in ("grow", "move", "shrink", "move-shrink"):
    register_pages(c)


def register_replay(name, variant, program, case, options):
    @test("xtree/replay-" + name)
    def _(t):
        cwd, env = t.subdirectory(), {"CASE": case}
        for mode in ("allocs", "full"):
            texts = []
            for form in ("kcg", "ms"):
                more = ["-q", *options, "--xtree-memory=" + mode, "--detailed-freq=2", "--threshold=0"]
                t.run([t.ptmem(), *more, "--xtree-memory-file=first." + form, "--events=events", "-o", "first",
                       "--", t.target(variant, program)], cwd=cwd, env=env)
                t.run([t.ptmem(), *more, "--xtree-memory-file=again." + form, "--replay=events", "-o", "again"], cwd=cwd)
                for file in ("first", "again", "first." + form, "again." + form):
                    with open(os.path.join(cwd, file), encoding="utf-8") as opened:
                        texts.append([l for l in opened.read().split("\n") if not l.startswith("desc:")])
                t.equal("the replayed profile", texts[-3], texts[-4])
                t.equal("its xtree", texts[-1], texts[-2])


for unit in ("B", "ms"):
    register_replay("pages-" + unit, "peer-gcc-O2", "massif_cases_mappings", "move", ["--pages-as-heap=yes", "--time-unit=" + unit])
    register_replay("heap-" + unit, "peer-gcc-O2", "massif_cases", "resizes", ["--time-unit=" + unit])
