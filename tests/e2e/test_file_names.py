"""Names of output files when several processes, programs or sources would use the same: nothing is overwritten,
and one rule says what is inserted where (src/session/out.h)."""

import json
import os
import re
import shutil
import signal
import struct
import subprocess

import massif
from harness import Skip, test
from leaks_lib import Waiting

# What every run leaves beside ptmem's files.
OWN = ("command", "stdout", "stderr", "truth")
OUTPUTS = ["-o", "f.massif", "--flame=f.svg", "--folded=f.folded", "--leaks", "--leaks-out=l.json", "--memusage",
           "--memusage-out=mu.txt", "--xtree-memory=allocs", "--xtree-memory-file=x.kcg", "--data=d", "--events=ev"]
# Those of a forked child: its calls are counted from its parent's on, and have no file of each call.
OF_FORKS = ("f%s.massif", "f%s.svg", "f%s.folded", "l%s.json", "mu%s.txt", "x%s.kcg")
OF_PROGRAMS = (*OF_FORKS, "d%s", "ev%s")
# A program that another one follows prints no report of memusage.
OF_REPLACED = tuple(name for name in OF_PROGRAMS if name != "mu%s.txt")


def names(cwd):
    return sorted(n for n in os.listdir(cwd) if n not in OWN)


def expected(*groups):
    return sorted(name % insert for insert, group in groups for name in group)


def run(t, argv, options, status=None, **how):
    result = t.run([t.ptmem(), *options, "--", *argv], **how)
    if status is not None:
        t.equal("status (%s)" % result.err.decode(), result.status, status)
    return result


def wanderer(t, *words):
    return [t.target("gcc-O2-pie", "wanderer"), *words]


def most(cwd, name):
    return max(s["mem_heap_B"] for s in massif.Massif(os.path.join(cwd, name)).snapshots)


def peak_of_data(path):
    """The second record of memusage's data begins with the peak of the heap."""
    with open(path, "rb") as file:
        return struct.unpack("=6Q", file.read(48))[3]


def other_pid(result):
    """Of the second process of a fork, by ptmem's messages."""
    first, second = re.findall(r"^ptmem: process (\d+), ", result.err.decode(), re.M)
    return first, second


def check_announced(t, result):
    """Each file named in a message exists, and is named once."""
    said = re.findall(r"^ptmem: *(?:written to|xtree memory report:) +(\S+?);? ?(?:\S+ it with.*)?$",
                      result.err.decode(), re.M)
    t.equal("announced twice", sorted(said), sorted(set(said)))
    t.check(said, "nothing is announced: %r" % result.err)
    for path in said:
        t.check(os.path.exists(path), "announced and not there: " + path)


@test("filenames/fork")
def fork(t):
    """The program keeps the names, its child gets the pid before the extension, whichever exits first."""
    result = run(t, wanderer(t, "fork", "x"), [*OUTPUTS, "-v"], 6)
    child, parent = other_pid(result)  # the parent waits
    t.equal("names", names(result.cwd), expected(("", OF_PROGRAMS), ("." + child, OF_FORKS)))
    check_announced(t, result)
    for name, pid in (("l.json", parent), ("l.%s.json" % child, child)):
        with open(os.path.join(result.cwd, name), encoding="utf-8") as file:
            t.equal("pid in " + name, json.load(file)["pid"], int(pid))
    t.equal("bytes", [most(result.cwd, n) for n in ("f.massif", "f.%s.massif" % child)], [2000, 2000])


@test("filenames/no-extension")
def no_extension(t):
    result = run(t, wanderer(t, "fork", "x"), ["-v", "-o", "a.b/f", "--folded=.hidden", "--flame=v-1.0"], 6,
                 cwd=with_directory(t, "a.b"))
    child, _ = other_pid(result)
    t.equal("names", names(result.cwd), sorted([".hidden", ".hidden." + child, "v-1.0", "v-1.0." + child, "a.b"]))
    t.equal("names in a.b", names(os.path.join(result.cwd, "a.b")), ["f", "f." + child])


def with_directory(t, name):
    cwd = t.subdirectory()
    os.mkdir(os.path.join(cwd, name))
    return cwd


@test("filenames/placeholders")
def placeholders(t):
    """Only the source is inserted if %p or %n distinguish processes."""
    result = run(t, wanderer(t, "fork", "x"), ["-o", "f.%p.massif", "--folded=%n.folded", "--trace=heap,mmap",
                                               "--flame=%p.svg", "--data=50%%"], 6)
    child, parent = other_pid(result)
    t.equal("names", names(result.cwd), sorted(
        ["50%", *("%d.%s.folded" % (n, s) for n, s in ((1, "heap"), (2, "mmap"), (3, "heap"), (4, "mmap"))),
         *(n for p in (child, parent) for n in ("f.%s.massif" % p, "f.%s.mmap.massif" % p, "%s.heap.svg" % p,
                                                "%s.mmap.svg" % p))]))


@test("filenames/exec")
def exec_(t):
    """Programs that a process executes: those before the last one are numbered, in all their files alike."""
    result = run(t, wanderer(t, "x", "exec", "x", "x", "exec", "x"), [*OUTPUTS, "--trace-children=yes"], 6)
    t.equal("names", names(result.cwd), expected((".1", OF_REPLACED), (".2", OF_REPLACED), ("", OF_PROGRAMS)))
    t.equal("bytes", [most(result.cwd, n) for n in ("f.1.massif", "f.2.massif", "f.massif")], [2000, 3000, 1000])
    for name, want in (("ev.1", 2), ("ev.2", 3), ("ev", 1)):
        with open(os.path.join(result.cwd, name), encoding="utf-8") as file:
            found = re.findall(r"^a .* 1000\b", file.read(), re.M)
        t.equal("blocks in " + name, len(found), want)
    for name, calls in (("d.1", 2), ("d.2", 3), ("d", 1)):
        t.equal("highest live bytes in " + name, peak_of_data(os.path.join(result.cwd, name)), 1000 * calls)


@test("filenames/children")
def children(t):
    """A program that a child executes has files of its own with its pid, the calls among them."""
    result = run(t, [t.program("sh"), "-c", "%s x x; exit 4" % t.target("gcc-O2-pie", "wanderer")],
                 [*OUTPUTS, "--trace-children=yes", "-v"], 4)
    child, _ = other_pid(result)
    t.equal("names", names(result.cwd), expected(("", OF_PROGRAMS), ("." + child, OF_PROGRAMS)))
    check_announced(t, result)
    t.equal("bytes of the child", most(result.cwd, "f.%s.massif" % child), 2000)


@test("filenames/sources")
def sources(t):
    """The source is inserted before the extension, and before the pid."""
    result = run(t, wanderer(t, "fork", "x"), ["-o", "f.massif", "--flame=f.svg", "--folded=f.folded", "--trace=heap,mmap"], 6)
    child, _ = other_pid(result)
    want = [("f%s" + e) for e in (".massif", ".mmap.massif", ".heap.svg", ".mmap.svg", ".heap.folded", ".mmap.folded")]
    inserted = [re.sub(r"(\.\w+)$", "." + child + r"\1", n % "") for n in want]
    t.equal("names", names(result.cwd), sorted([n % "" for n in want] + inserted))
    result = run(t, wanderer(t, "x"), ["--trace=mmap", "-o", "f.out", "--folded=f.folded"], 6)
    t.equal("one source", names(result.cwd), ["f.folded", "f.mmap.out"])
    result = run(t, wanderer(t, "x"), ["--pages-as-heap=yes", "--trace=mmap", "-o", "f.out", "--folded=f.folded"], 6)
    t.equal("pages and a source", names(result.cwd), ["f.heap.folded", "f.mmap.folded", "f.mmap.out", "f.out"])


@test("filenames/devices")
def devices(t):
    """Anything but a regular file receives all outputs, under its own name."""
    result = run(t, wanderer(t, "fork", "x"), ["-q", "-o", "/dev/null", "--flame=/dev/null", "--trace=heap,mmap"], 6)
    t.equal("names", names(result.cwd), [])
    t.equal("beside the device", [n for n in os.listdir("/dev") if n.startswith("null.")], [])
    result = run(t, wanderer(t, "fork", "x"), ["-q", "-o", "-", "--trace=heap,mmap"], 6)
    t.equal("names", names(result.cwd), [])
    t.equal("profiles on standard output", result.out.count(b"\nsnapshot=0\n"), 4)


@test("filenames/counted")
def counted(t):
    """The first process that is counted has the names of the counts."""
    program = t.target("gcc-O2-pie", "wanderer")
    result = run(t, [t.program("sh"), "-c", "%s x; %s x x; exit 4" % (program, program)],
                 ["--heap=no", "--memusage", "--memusage-out=mu.txt", "--data=d", "--progname=wanderer", "--trace-children=yes"], 4)
    found = names(result.cwd)
    pid = found[1][2:]
    t.equal("names", found, ["d", "d." + pid, "mu.%s.txt" % pid, "mu.txt"])
    for name, calls in (("mu.txt", 1), ("mu.%s.txt" % pid, 2)):
        with open(os.path.join(result.cwd, name), encoding="utf-8") as file:
            t.equal("calls in " + name, int(re.search(r"malloc\| +(\d+)", file.read())[1]), calls)


@test("filenames/attached")
def attached(t):
    """Several processes after -p: each file has its pid."""
    cwd = t.subdirectory()
    programs = [Waiting(t), Waiting(t)]
    pids = [p.process.pid for p in programs]
    err = os.path.join(cwd, "stderr")
    with open(err, "wb") as file:
        ptmem = subprocess.Popen([t.ptmem(), *OUTPUTS, "-p", "%d,%d" % tuple(pids)], cwd=cwd, env=t.environment(cwd),
                                 stderr=file)
    t.wait_until("ptmem to attach", lambda: open(err, "rb").read().count(b"attached to process") == 2)
    for p in programs:
        p.step(b"begun\n")
    ptmem.send_signal(signal.SIGINT)
    t.equal("status", ptmem.wait(), 0)
    t.equal("names", names(cwd), expected(*(("." + str(pid), OF_PROGRAMS) for pid in pids)))
    for p in programs:
        p.step(b"placed\n")
        p.step(b"done\n")
        t.equal("status of a program", p.process.wait(), 0)


REUSE = ("/bin/true & wait; p=$!; for i in 1 2 3 4 5 6 7 8 9; do echo $((p - 1)) >/proc/sys/kernel/ns_last_pid; "
         "%s x & wait; [ $! = $p ] && exit 7; done; exit 8")


@test("filenames/reused-pid")
def reused_pid(t):
    """A process that reuses a pid does not overwrite the files of the earlier one."""
    if os.geteuid() != 0:
        raise Skip("needs root, to give out a process id again")
    script = REUSE % t.target("gcc-O2-pie", "wanderer")
    command = [t.ptmem(), "--trace-children=yes", "-o", "f.massif", "--folded=%p.folded", "sh", "-c", script]
    result = t.run([t.program("unshare"), "--pid", "--fork", "--mount-proc", *command])
    if result.status == 8 or b"unshare failed" in result.err:
        raise Skip("no process id can be given out again here")
    t.equal("status (%s)" % result.err.decode(), result.status, 7)
    second = [n for n in names(result.cwd) if re.fullmatch(r"f\.\d+\.1\.massif", n)]
    t.equal("files of the second one", len(second), 1)
    first = second[0].replace(".1.massif", ".massif")
    t.equal("bytes", [most(result.cwd, n) for n in (first, second[0])], [0, 1000])
    folded = first.split(".")[1]
    t.equal("folded stacks", [n for n in names(result.cwd) if n.startswith(folded)], [folded + ".1.folded", folded + ".folded"])


@test("filenames/overwriting")
def overwriting(t):
    """An output that is another output or an input: an error before the program starts, and nothing is touched."""
    cwd = t.subdirectory()
    program = os.path.join(cwd, "program")
    shutil.copy(t.program("true"), program)
    inputs = {}
    t.run([t.ptmem(), "-q", "-o", "m", "--events=events", "./program"], cwd=cwd)
    os.link(os.path.join(cwd, "events"), os.path.join(cwd, "hard"))
    os.symlink("events", os.path.join(cwd, "soft"))
    os.symlink("new", os.path.join(cwd, "dangling"))
    for name in ("program", "events", "m"):
        with open(os.path.join(cwd, name), "rb") as file:
            inputs[name] = file.read()
    before = names(cwd)
    for options, message in (
            (["-o", "f", "--flame=f", "./program"], "--massif-out-file and --flame would write the same file"),
            (["-o", "f", "--flame=./f", "./program"], "--massif-out-file and --flame would write the same file"),
            (["-o", "dangling", "--folded=new", "./program"], "--massif-out-file and --folded would write the same file"),
            (["--leaks", "--leaks-out=x.%p", "--data=x.%p", "./program"], "--leaks-out and --data would write the same file"),
            (["-o", "x", "--trace=heap,mmap", "--leaks", "--leaks-out=%q{WHO}.mmap", "./program"],
             "--massif-out-file and --leaks-out would write the same file"),
            (["-o", "-", "--flame=-", "./program"], "--massif-out-file and --flame would write the same file, standard output"),
            (["-o", "x", "--log-file=x", "./program"], "--massif-out-file and --log-file would write the same file"),
            (["-o", "program", "./program"], "--massif-out-file would overwrite the program"),
            (["--memusage", "--memusage-out=program", "./program"], "--memusage-out would overwrite the program"),
            (["-o", "events", "--replay=events"], "--massif-out-file would overwrite the events of --replay"),
            (["--log-file=hard", "--replay=events"], "--log-file would overwrite the events of --replay"),
            (["--flame=events", "--replay=soft"], "--flame would overwrite the events of --replay")):
        result = t.run([t.ptmem(), *options], cwd=cwd, env={"WHO": "x"})
        t.equal("status of %s (%r)" % (options, result.err), result.status, 1)
        t.check(message in result.err.decode(), "%s: %r" % (options, result.err))
    t.equal("names", names(cwd), before)
    for name, data in inputs.items():
        with open(os.path.join(cwd, name), "rb") as file:
            t.check(file.read() == data, name + " was changed")
    result = t.run([t.ptmem(), "-q", "-o", "x.%p", "--log-file=y.%p", "--flame=/dev/null", "--folded=/dev/null", "./program"],
                   cwd=cwd)
    t.equal("status of different ones (%r)" % result.err, result.status, 0)


@test("filenames/own-program")
def own_program(t):
    """The executable of a process that is attached to is no output either."""
    path = os.path.join(t.directory, "sleep")
    shutil.copy(t.program("sleep"), path)
    program = subprocess.Popen([path, "1000"])
    try:
        t.wait_until("the sleep", lambda: os.readlink("/proc/%d/exe" % program.pid) == path)
        result = t.run([t.ptmem(), "--duration=0.1", "-o", path, "-p", str(program.pid)])
    finally:
        program.kill()
        program.wait()
    t.equal("status (%r)" % result.err, result.status, 1)
    t.check(b"would overwrite the program" in result.err, "no reason: %r" % result.err)
    with open(path, "rb") as file, open(t.program("sleep"), "rb") as original:
        t.check(file.read() == original.read(), "it was changed")


@test("file-names/no-massif-file")
def _(t):
    """-o none, and outputs that take its place: not with options that only a massif file shows."""
    program, left = t.target("gcc-O2-pie", "mixed"), {}
    for options in (["-o", "none"], ["--massif-out-file=none", "--flame=f"], ["--html=h"], ["--record=r"], ["--leak-check"],
                    [], ["-o", "./none"], ["--record=r", "--threshold=0"], ["--leak-check", "-o", "massif.out.%p"],
                    ["--html=h", "--trace=heap,mmap"], ["--record=r", "--stacks=yes"], ["--flame=f"]):
        here = t.subdirectory()
        run = t.run([t.ptmem(), *options, program, "2", "50"], cwd=here)
        t.equal("status of %s: %s" % (options, run.err.decode()), run.status, 0)
        left[" ".join(options)] = sorted(re.sub("[0-9]+", "P", name) for name in os.listdir(here) if re.match("massif|none|[fhr]$", name))
        if options == ["--record=r"]:
            t.check(("written to   %s/r; read it with: ptmem-report %s/r" % (here, here)).encode() in run.err, "summary: %r" % run.err)
    t.equal("files", left, {
        "-o none": [], "--massif-out-file=none --flame=f": ["f"], "--html=h": ["h"], "--record=r": ["r"], "--leak-check": [],
        "": ["massif.out.P"], "-o ./none": ["none"], "--record=r --threshold=0": ["massif.out.P", "r"],
        "--leak-check -o massif.out.%p": ["massif.out.P"], "--html=h --trace=heap,mmap": ["h", "massif.out.P", "massif.out.P.mmap"],
        "--record=r --stacks=yes": ["massif.out.P", "r"], "--flame=f": ["f", "massif.out.P"]})
