"""Where the files of a profile stand, whatever the program does: spec/massif.md 1.6 and 2.13."""

import os
import re
import signal

import massif
from harness import test


def run(t, words, options=(), status=6, env=None):
    result = t.profile([t.target("gcc-O2-pie", "wanderer"), *words], options, env=env)
    t.equal("status", result.status, status)
    return result


def heaps(path):
    return [s["mem_heap_B"] for s in massif.Massif(path).snapshots if s["mem_heap_B"]]


def register(name, words, status=6, options=()):
    @test("files/" + name)
    def _(t):
        result = run(t, words, options, status)
        want = [1000 * (i + 1) for i in range(len(words))]
        found = heaps(one_file(t, result))
        t.equal("bytes by snapshot", sorted(set(found)), want)


def one_file(t, result):
    files = [f for of_pid in result.files.values() for f in of_pid]
    t.equal("files", len(files), 1)
    return files[0]


for probes in ("break", "jump"):
    OPTIONS = ["--probes=" + probes]
    register("chdir-" + probes, ["chdir", "x"], options=OPTIONS)
    register("close-" + probes, ["x", "close", "x", "x"], options=OPTIONS)
    register("killed-" + probes, ["chdir", "close", "x", "kill"], -signal.SIGKILL, OPTIONS)
    register("aborted-" + probes, ["x", "abort"], -signal.SIGABRT, OPTIONS)


@test("files/names")
def _(t):
    """%p, %q, %n and %% for each process of a fork."""
    result = run(t, ["chdir", "fork", "x"], ["--massif-out-file=sub.%q{WHO}.%p.%%"], env={"WHO": "me"})
    names = sorted(n for n in os.listdir(result.directory) if n.startswith("sub."))
    t.equal("names", names, sorted("sub.me.%d.%%" % s["pid"] for s in result.stats))
    t.equal("processes", len(names), 2)
    for name in names:
        t.equal("bytes in " + name, sorted(set(heaps(os.path.join(result.directory, name)))), [1000, 2000, 3000])
    result = run(t, ["fork", "fork", "x"], ["--massif-out-file=n.%n"])
    t.equal("numbers", sorted(n for n in os.listdir(result.directory) if n.startswith("n.")), ["n.%d" % i for i in (1, 2, 3, 4)])
    result = run(t, ["fork", "x"], ["--massif-out-file=one"])
    t.equal("the last writer wins", sorted(set(heaps(os.path.join(result.directory, "one")))), [1000, 2000])


@test("files/exec")
def _(t):
    """Each program of a process has its file; the last one has the name alone."""
    words = ["x", "exec", "x", "x", "exec", "chdir"]
    follow = ["--trace-children=yes"]
    result = run(t, words, [*follow, "--massif-out-file=m"])
    for name, most in (("m.1", 2000), ("m.2", 3000), ("m", 1000)):
        t.equal("bytes in " + name, max(heaps(os.path.join(result.directory, name))), most)
    result = run(t, words, [*follow, "--massif-out-file=m.%n"])
    t.equal("names with %n", sorted(n for n in os.listdir(result.directory) if n.startswith("m.")), ["m.1", "m.2", "m.3"])
    result = run(t, words, ["--massif-out-file=m"])
    t.equal("not followed", max(heaps(os.path.join(result.directory, "m"))), 2000)
    result = run(t, words, [*follow, "--massif-out-file=m", "--trace-children-skip=*/exe"])
    t.equal("skipped", [n for n in os.listdir(result.directory) if n.startswith("m")], ["m"])
    result = run(t, words, [*follow, "--massif-out-file=m", "--trace-children-skip-by-arg=none,chdi?"])
    t.equal("skipped by argument", [n for n in os.listdir(result.directory) if n.startswith("m")], ["m"])


@test("files/log")
def _(t):
    result = run(t, ["fork", "close"], ["--log-file=log.%q{WHO}", "--child-silent-after-fork=yes", "--trace=heap,brk",
                                       "--xtree-memory=allocs"], env={"WHO": "me"})
    t.equal("messages on standard error", result.messages, [])
    with open(os.path.join(result.directory, "log.me"), encoding="utf-8") as file:
        lines = file.read().split("\n")
    for start in ("process ", "  brk ", "xtree memory report: "):
        t.equal("lines in the log with " + start, sum(l.startswith("ptmem: " + start) for l in lines), 1)
    result = t.profile([t.target("gcc-O2-pie", "wanderer"), "x"], ["--trace-malloc=yes"])
    t.equal("calls", sum(" malloc(1000) = 0x" in m for m in result.messages), 1)
    failed = t.run([t.ptmem(), "--log-file=/nonexistent/x", "true"])
    t.equal("a log that cannot be", (failed.status, b"cannot create log file" in failed.err), (1, True))


@test("files/log-full")
def _(t):
    """A log that takes no more goes on on standard error."""
    result = t.run([t.ptmem(), "-o", "m", "--log-file=/dev/full", t.target("gcc-O2-pie", "paths")])
    lines = result.err.decode().splitlines()
    t.equal("status", result.status, 0)
    t.equal("the first line", lines[0], "ptmem: warning: the log cannot be written: No space left on device; it goes on here")
    t.equal("summary", sum(line.startswith("ptmem:   peak ") for line in lines), 1)
    t.equal("complaints", sum("the log cannot" in line for line in lines), 1)


@test("files/soname-synonyms")
def _(t):
    """The allocators of libc are always watched, others as the pattern says."""
    for value, allocations in ((None, True), ("somalloc=nouserintercepts", False), ("somalloc=*jemalloc*", True),
                               ("other=x", True), ("somalloc=NONE", False)):
        options = ["--soname-synonyms=" + value] if value else []
        result = t.profile([t.target("linked-jemalloc", "paths")], options)
        t.equal("allocations seen with %s" % value, result.only_stats()["allocations"] > 0, allocations)


@test("files/closed-standard-files")
def closed_standard_files(t):
    """No file of ptmem's takes the place of a closed one; the program finds them closed."""
    ends = os.path.join(t.directory, "ends")
    program = "echo; for i in 0 1 2; do test -e /proc/$$/fd/$i && echo $i >>%s; done; exit 3" % ends
    shell = t.program("sh")
    for closed in ("0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"):
        cwd = t.subdirectory()
        command = "%s -v -o m --data=d --memusage --sample=1 --sample-out=s %s -c '%s' %s" % (
            t.ptmem(), shell, program, closed)
        t.equal("status with " + closed, t.run(["sh", "-c", command], cwd=cwd).status, 3)
        with open(ends, "r+", encoding="ascii") as file:
            t.equal("open in the program", file.read().split(), [i for i in "012" if i not in closed])
            file.truncate(0)
        massif.Massif(os.path.join(cwd, "m"))
        with open(os.path.join(cwd, "d"), "rb") as file:
            t.equal("data: whole records", len(file.read()) % 24, 0)
        with open(os.path.join(cwd, "s"), encoding="ascii") as file:
            lines = file.read().splitlines()
        t.check(all(re.fullmatch(r"[0-9.]+(\t[0-9]+)+", line) for line in lines[1:]), "samples: %r" % lines)
    t.check(t.run(["sh", "-c", "%s --help >&-" % t.ptmem()]).status != 0, "help to nobody is no success")


@test("files/full-disk")
def full_disk(t):
    """A profile whose place is full is not lost: it stands whole in a new directory, and ptmem says where."""
    cwd, elsewhere = t.subdirectory(), t.subdirectory()
    result = t.run([t.ptmem(), "-o", "/dev/full", t.target("gcc-O2-pie", "mixed")], cwd=cwd, env={"TMPDIR": elsewhere})
    t.equal("status", result.status, 125)
    said = re.search(rb"cannot write /dev/full: No space left on device; the profile is in (\S+)\n", result.err)
    t.check(said, "no word of it: %r" % result.err)
    path = said[1].decode()
    t.equal("files", [os.path.join(top, name) for top, _, names in os.walk(elsewhere) for name in names], [path])
    t.check(re.search(r"/ptmem-\w{6}/massif\.out\.\d+$", path), "its name: " + path)
    t.equal("live bytes", massif.Massif(path).snapshots[-1]["mem_heap_B"], t.truth(cwd)["live"])
