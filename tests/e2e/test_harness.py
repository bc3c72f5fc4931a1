"""The tests' own tools, without ptmem: oracle and targets agree, and a wrong number is seen."""

import os
import re
import shutil
import signal
import subprocess

import harness
import oracle
from harness import Fail, test

PROGRAMS = [("mixed",), ("failures",), ("paths",), ("stacks",), ("fibers",), ("selfread",), ("sigtrap",), ("cxx",),
            ("signals", "allocate"), ("signals", "nested"), ("signals", "timer"), ("threads",), ("leader",),
            ("threads_many", "alive", "200"), ("threads_many", "quick", "200"), ("sigmask",)]


def run_oracle(t, variant, program, args):
    run = t.native([t.target(variant, program), *args], env={"LD_PRELOAD": t.oracle_library()})
    (page,), = oracle.read_pages(run.cwd).values()
    t.equal("calls that the oracle missed", page.missed, 0)
    return run, page


def register(variant, program, *args):
    @test("harness/oracle/%s/%s" % (variant, "-".join((program,) + args)))
    def _(t):
        run, page = run_oracle(t, variant, program, args)
        t.counts("the oracle and the truth", page.own, t.truth(run.cwd))


for v in ("gcc-O2-pie", "clang-O0-nopie"):
    for p in PROGRAMS:
        register(v, *p)


@test("harness/oracle/static")
def static(t):
    empty = t.native([t.target("wrapped", "empty")])
    (before,), = oracle.read_pages(empty.cwd).values()
    for program in ("mixed", "failures", "paths"):
        run = t.native([t.target("wrapped", program)])
        (page,), = oracle.read_pages(run.cwd).values()
        t.counts(program, page.all, harness.add(t.truth(run.cwd), before.all))


@test("harness/oracle/processes")
def processes(t):
    """Each process has a page, and each page its own truth."""
    for mode in ("fork", "nested-forks", "vfork", "clone-vm"):
        run = t.native([t.target("gcc-O2-pie", "process"), mode], env={"LD_PRELOAD": t.oracle_library()})
        t.equal("status", run.status, 0)
        pages = oracle.read_pages(run.cwd)
        for pid, truth in t.truths(run.cwd):
            t.counts("%s, pid %d" % (mode, pid), pages[pid][0].all, truth)


@test("harness/oracle/death")
def death(t):
    """The page is good whatever kills the process."""
    for args, status in ((("signal", "9"), -9), (("segv",), -11), (("quick", "3"), 3), (("thread", "4"), 4)):
        run, page = run_oracle(t, "gcc-O2-pie", "exits", args)
        t.equal("status of exits " + " ".join(args), run.status, status)
        t.counts("exits " + " ".join(args), page.own, t.truth(run.cwd))


@test("harness/wrong-count-detected")
def wrong_count(t):
    run, page = run_oracle(t, "gcc-O2-pie", "mixed", ())
    truth = t.truth(run.cwd)
    for key in harness.COUNTED:
        for delta in (1, -1):
            wrong = dict(page.own)
            wrong[key] += delta
            try:
                t.counts("a wrong " + key, wrong, truth)
            except Fail:
                continue
            raise Fail("%s off by %d went unseen" % (key, delta))
        missing = dict(page.own)
        del missing[key]
        try:
            t.counts("no " + key, missing, truth)
        except Fail:
            continue
        raise Fail("%s missing went unseen" % key)


@test("harness/failed-check-detected")
def failed_check(t):
    run = t.native([t.target("gcc-O2-pie", "process"), "no such mode"])
    t.equal("status of a failed CHECK", run.status, 90)
    t.check(b"CHECK failed" in run.err, "no message")


@test("harness/conflict-markers-detected")
def conflict_markers(t):
    """In a text file that git knows, or in any one where git does not know the tree; not in a binary file."""
    conflict = "\n".join(["before", "<" * 7 + " HEAD", "ours", "=" * 7, "theirs", ">" * 7 + " other", ""])
    for is_tracked in (True, False):
        root = t.subdirectory()
        os.mkdir(os.path.join(root, "scripts"))
        shutil.copy(os.path.join(harness.ROOT, "scripts", "layers"), os.path.join(root, "scripts"))
        for name, text in (("README", "heading\n" + "=" * 7 + "\n"), ("binary", "\0\n" + conflict)):
            with open(os.path.join(root, name), "w", encoding="ascii") as file:
                file.write(text)
        if is_tracked:
            t.run([t.program("git"), "init", "-q"], cwd=root)
            t.run(["git", "add", "."], cwd=root)
        clean = t.run([os.path.join(root, "scripts", "layers")], cwd=root)
        t.equal("status of a clean tree (%r)" % clean.out, clean.status, 0)
        with open(os.path.join(root, "README"), "a", encoding="ascii") as file:
            file.write(conflict)
        found = t.run([os.path.join(root, "scripts", "layers")], cwd=root)
        t.equal("status", found.status, 1)
        t.equal("lines", re.findall(r"^\[conflict\] (\S+): a conflict marker", found.out.decode(), re.M), ["README:4", "README:8"])


ASSUMED = """
at = cfa - 0x8;
at = ((uint64_t *)cfa)[-1];
is_high = addr & 0xffff000000000000;
end = 1ul << 0x2f;
#define ADDRESS_WIDTH (48)
size = 1 << 12;
size = 0x1000;
start = x & -4096;
"""


@test("harness/assumptions-detected")
def assumptions(t):
    """What holds on one CPU only is found in each of its spellings."""
    root = t.subdirectory()
    for directory in ("scripts", "src/session"):
        os.makedirs(os.path.join(root, directory))
    shutil.copy(os.path.join(harness.ROOT, "scripts", "layers"), os.path.join(root, "scripts"))
    with open(os.path.join(root, "src/session/seen.c"), "w", encoding="ascii") as file:
        file.write(ASSUMED)
    found = t.run([os.path.join(root, "scripts", "layers")], cwd=root).out.decode()
    lines = re.findall(r"^\[assume\] src/session/seen.c:(\d+): ", found, re.M)
    t.equal("lines in %s" % found, lines, [str(i) for i in range(2, ASSUMED.count("\n") + 1)])


@test("harness/list-is-cut")
def _(t):
    """A reader of the list of tests may leave early, like head, without a traceback of the driver."""
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([os.path.join(harness.HERE, "run"), "-l"], stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    t.equal("status and messages", (done.returncode, done.stderr), (-signal.SIGPIPE, b""))


@test("harness/durations")
def durations(t):
    """A run keeps the durations of its tests, beside those of others, and begins with the longest ones."""
    build, options = t.subdirectory(), ["-j", "1", "-o=--depth=9"]
    for name in os.listdir(harness.BUILD):
        if name != "check":
            os.symlink(os.path.join(harness.BUILD, name), os.path.join(build, name))
    path, kind = os.path.join(build, "check/durations"), "@--depth=9" + "@asan" * harness.is_asan()
    names = ["harness/oracle/gcc-O2-pie/" + n for n in ("mixed", "cxx", "paths")]  # not as they are registered
    os.mkdir(os.path.dirname(path))
    with open(path, "w", encoding="utf-8") as file:
        file.write("".join("%s %s 1.00\n" % row for row in (
            (names[1] + kind, "9999.00"), (names[0] + kind, "0.01"), (names[2] + kind, "4.00"), (names[2] + "@other", "99999.00"),
            ("other/test", "7.00"))) + "no duration\n" + names[0] + kind + " 5.00\n")
    order = [names[1], names[2], names[0]]
    command = [os.path.join(harness.HERE, "run"), *options]
    listed = t.run([*command, "-l", *names], env={"BUILD": build})
    t.equal("listed", listed.out.decode().split(), order)
    left_out = t.run([*command, "-l", "harness/oracle/gcc-O2-pie/*x*", "!*/cxx"], env={"BUILD": build})
    t.equal("without cxx", left_out.out.decode().split(), names[:1])
    more = ["harness/oracle/clang-O0-nopie/mixed"]  # has never run
    quick = t.run([*command, "-l", "--quick", *names, *more], env={"BUILD": build})
    t.equal("the faster half", quick.out.decode().split(), order[1:])
    unknown = t.run([*command, "-l", "--quick", *more], env={"BUILD": build})
    t.check(unknown.status == 2 and b"not known which tests are fast" in unknown.err, unknown.err)
    run = t.run([*command, *names], env={"BUILD": build})
    t.equal("order: " + run.err.decode(), re.findall(r"^ok (\S+)", run.out.decode(), re.M), order)
    with open(path, encoding="utf-8") as file:
        rows = [line.rsplit(" ", 2) for line in file.read().splitlines()]
    t.equal("rows", sorted(r[0] for r in rows), sorted([n + kind for n in names] + [names[2] + "@other", "other/test"]))
    seconds = [float(r[1]) for r in rows]
    t.equal("the longest first", seconds, sorted(seconds, reverse=True))
    t.equal("of others", [r[1:] for r in rows if r[0] in ("other/test", names[2] + "@other")], [["99999.00", "1.00"], ["7.00", "1.00"]])
    t.check(all(float(r[1]) < 1000 and r[2] != "1.00" for r in rows if r[0].endswith(kind)), rows)
