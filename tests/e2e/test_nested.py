"""Stacks of mappings and page faults that happen inside of watched calls: the same as if the heap were not traced."""

import glob
import os
import re
import subprocess

import massif
from harness import Fail, test

VARIANT = "gcc-O2-pie"  # what is compared is ptmem with itself; unwind/ and mappings/ have the other compilers
WAYS = ("auto", "break", "jump")


def is_compared(stack, source):
    """What measured() did. Which pages of text and tables are touched first depends on what else is in them."""
    is_measured = ";measured;" in stack or "run_thread;" in stack
    is_text = not re.search(r";(malloc|calloc|realloc|posix_memalign|touch)(;|$)", stack)
    return is_measured and not (source == "faults" and (is_text or ";in_child;" in stack))


def folded(t, cwd, source):
    """[{stack: bytes} of each process, the program last but for its last child], of what measured() did."""
    files = glob.glob(os.path.join(cwd, "f.*folded*"))
    # one source alone is not named in them
    files = [f for f in files if source in os.path.basename(f).split(".")] or files
    t.check(files, "no folded file of %s: %s" % (source, sorted(os.listdir(cwd))))
    found = []
    for name in files:
        with open(name, encoding="utf-8") as file:
            lines = [line.rstrip("\n").rpartition(" ") for line in file]
        found.append({stack: int(size) for stack, _, size in lines if is_compared(stack, source)})
    if source == "faults": # a fork's memory is its parent's until it writes there
        found = [max(found, key=lambda stacks: sum(stacks.values()))]
    return sorted(found, key=lambda stacks: [any(f in s for s in stacks) for f in (";in_child;", ";measured;")])


def lost(said):
    """How many page faults were lost: a user's buffers are small, and shared by all that the user traces."""
    found = re.search(rb"([\d,]+) page faults? (?:was|were) lost", said)
    return int(found[1].replace(b",", b"")) if found else 0


def options(way, sources):
    return ["--trace=" + sources, "--probes=" + way, "--threshold=0", "--view=total", "--folded=f.%p.folded", "-o", "m.%p"]


def started(t, variant, way, sources):
    run = t.run([t.ptmem(), *options(way, sources), "--", t.target(variant, "nested")])
    t.equal("status (%r)" % run.err, run.status, 0)
    return run.cwd, lost(run.err)


def attached(t, variant, way, sources):
    cwd = t.subdirectory()
    program = subprocess.Popen([t.target(variant, "nested"), "-w"], cwd=cwd, env=t.environment(cwd),
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    program.stdout.readline()
    log = os.path.join(cwd, "ptmem-stderr")
    with open(log, "wb") as err:
        ptmem = subprocess.Popen([t.ptmem(), *options(way, sources), "-p", str(program.pid)], cwd=cwd,
                                 env=t.environment(cwd), stderr=err, stdin=subprocess.DEVNULL)

    def text():
        with open(log, "rb") as err:
            return err.read()

    def is_attached():
        if ptmem.poll() is not None:
            raise Fail("ptmem ended: %r" % text())
        return b"attached" in text()

    t.wait_until("ptmem to attach", is_attached)
    program.communicate(b"x")
    t.equal("status of the program", program.returncode, 0)
    t.equal("status of ptmem (%r)" % text(), ptmem.wait(timeout=200), 0)
    return cwd, lost(text())


def differing(alone, beside, lost_pages):
    """The differences; where lost page faults are missing is unknown."""
    total = sum(abs(a.get(s, 0) - b.get(s, 0)) for a, b in zip(alone, beside) for s in {*a, *b})
    if total <= lost_pages * 4096 and not any("[unknown]" in s for b in beside for s in b):
        return []
    return ["%d of process %d where %d was expected: %s" % (b.get(s, 0), n, a.get(s, 0), s)
            for n, (a, b) in enumerate(zip(alone, beside)) for s in sorted({*a, *b}) if a.get(s) != b.get(s)]


def compare(t, variant, run, sources):
    """@run with the heap beside @sources, in each way that calls are caught, and without."""
    alone, lost_alone = run(t, variant, "auto", ",".join(sources))
    for source in sources:
        stacks = folded(t, alone, source)[-1]
        for function in ("grow", "map_block", "interrupted"):
            t.check(any(";%s;" % function in s for s in stacks) or source != "mmap" or function == "grow",
                    "no %s by %s: %s" % (source, function, sorted(stacks)))
        t.check(not any("[unknown]" in s for s in stacks), "frames without a name: %s" % sorted(stacks))
    for way in WAYS:
        beside, lost_beside = run(t, variant, way, ",".join(("heap",) + sources))
        for source in sources:
            wrong = differing(folded(t, alone, source), folded(t, beside, source),
                              lost_alone + lost_beside if source == "faults" else 0)
            t.check(not wrong, "%s by %s: %d stacks differ: %s" % (source, way, len(wrong), "; ".join(wrong[:4])))


@test("nested/%s/mappings" % VARIANT)
def _(t):
    compare(t, VARIANT, started, ("brk", "mmap"))


@test("nested/%s/mappings-attached" % VARIANT)
def _(t):
    compare(t, VARIANT, attached, ("brk", "mmap"))


@test("nested/%s/faults" % VARIANT)
def _(t):
    compare(t, VARIANT, started, ("faults",))


@test("nested/%s/faults-attached" % VARIANT)
def _(t):
    compare(t, VARIANT, attached, ("faults",))


@test("nested/faults-with-jumps")
def _(t):
    """Page faults do not keep the heap's calls on breakpoints."""
    run = t.run([t.ptmem(), "-v", *options("jump", "heap,faults"), "--", t.target("gcc-O2-pie", "nested")])
    t.equal("status (%r)" % run.err, run.status, 0)
    t.check(b"to place jumps" in run.err, "no jumps: %r" % run.err)
    stops = [int(n.replace(b",", b"")) for n in re.findall(rb"stopped +at ([\d,]+) breakpoints", run.err)]
    t.check(stops and max(stops) < 50, "stops at breakpoints: %s" % stops)


for w in WAYS:
    @test("nested/sparse-frame/" + w)
    def _(t, w=w):
        """Reading a stack to unwind it is not a page fault of the program."""
        run = t.run([t.ptmem(), *options(w, "heap,faults"), "--", t.target("gcc-O2-pie", "sparse_frame")])
        t.equal("status (%r)" % run.err, run.status, 0)
        (name,) = glob.glob(os.path.join(run.cwd, "f.*faults*folded"))
        with open(name, encoding="utf-8") as file:
            lines = [line.rstrip("\n").rpartition(" ") for line in file]
        pages = sum(int(size) // 4096 for stack, _, size in lines if "across_gap" in stack)
        t.check(pages <= 4 and (pages >= 1 or lost(run.err)), "%d pages: %s" % (pages, lines))


SIGNALS = 400

for w in WAYS:
    @test("nested/interrupted/" + w)
    def _(t, w=w):
        """A handler maps a page wherever it interrupts its thread: in stubs, pads, the recorder, in what they call."""
        run = t.run([t.ptmem(), *options(w, "heap,mmap"), "--", t.target("gcc-O2-pie", "interrupted"), str(SIGNALS)])
        t.equal("status (%r)" % run.err, run.status, 0)
        files = glob.glob(os.path.join(run.cwd, "f.*folded*"))
        with open([f for f in files if "mmap" in os.path.basename(f).split(".")][0], encoding="utf-8") as file:
            lines = [line.rstrip("\n").rpartition(" ") for line in file]
        found = {stack: int(size) // 4096 for stack, _, size in lines if ";handler;" in stack}
        wrong = [s for s in found if not s.startswith("main;") or "[unknown]" in s]
        t.check(not wrong, "%d stacks are not the program's: %s" % (len(wrong), "; ".join(wrong[:3])))
        t.equal("pages that the handler mapped", sum(found.values()), SIGNALS)


PAGES = 200


@test("nested/truncated-stack")
def _(t):
    """Of a stack that is deeper than the kernel copies, the root is not a function of the program's."""
    for depth in (1, 4, 32, 60, 200):
        cwd = t.subdirectory()
        run = t.run([t.ptmem(), "-v", "--trace=faults", "--threshold=0", "--folded=f.folded", "--",
                     t.target("gcc-O2-pie", "deep"), str(depth), str(PAGES)], cwd=cwd)
        t.equal("status (%r)" % run.err, run.status, 0)
        said = run.err.decode()
        known = int(re.search(r"page faults: .* (\d+) KiB of each stack", said)[1])
        with open(os.path.join(cwd, "f.folded"), encoding="utf-8") as file:
            found = [line.rstrip("\n").rpartition(" ") for line in file]
        roots = {}
        for stack, _, size in found:
            if stack.endswith(";touch_pages"):
                root = stack.split(";")[0]
                roots[root] = roots.get(root, 0) + int(size) // 4096
        root = "main" if depth < known else "[truncated]"
        t.check({*roots} <= {root}, "pages touched %d KiB down have other outermost frames: %s" % (depth, roots))
        t.check(PAGES - lost(run.err) <= roots.get(root, 0) <= PAGES, "of %d pages %s has %s" % (PAGES, root, roots))
        cut = sum(int(size) for stack, _, size in found if stack.startswith("[truncated];")) // 4096
        line = re.search(r"\[truncated\] +(\d+) stacks? (?:is|are) incomplete: deeper than (\d+) KiB", said)
        t.equal("what is said of it", (int(line[1]), int(line[2])) if line else (0, known), (cut, known))


@test("nested/truncated-stack-depth")
def deep_cut(t):
    """--depth cuts off frames, but not the marker of an incomplete stack."""
    run = t.run([t.ptmem(), "--trace=faults", "--threshold=0", "--depth=3", "--massif-out-file=m", "--",
                 t.target("gcc-O2-pie", "deep"), "200", str(PAGES)])
    t.equal("status (%r)" % run.err, run.status, 0)
    tree = massif.Massif(os.path.join(run.cwd, "m.faults")).snapshots[-1]["tree"]
    node = next(n for n in tree.children if n.name == "touch_pages")
    for name in ("descend", "descend", "[truncated]"):
        t.check([n.name for n in node.children] == [name], "behind %s: %s" % (node.name, [n.name for n in node.children]))
        node = node.children[0]
    t.equal("frames behind the mark", node.children, [])
