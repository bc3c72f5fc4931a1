"""--cold: which bytes of blocks were not touched for a time, against a program that knows what it touches."""

import csv
import ctypes
import json
import os
import re
import signal
import subprocess

from harness import Fail, Skip, child_that_runs, test
from inspect_lib import as_json
from process_lib import delays, guardians, is_asleep
from report_lib import embedded

PAGE = 4096
HUGE = 2 << 20
LARGE = 1 << 20 # one block of the program is larger, all others are smaller


def pages_of(address, size):
    return range(address // PAGE, (address + size - 1) // PAGE + 1)


def wait_for_begin(ptmem):
    while b"touches counts from now on" not in (line := ptmem.stderr.readline()):
        if not line:
            raise Fail("ptmem ended with %d" % ptmem.wait())


class Toucher:
    """@profile: options of a ptmem that starts it. @more: arguments of the program."""

    def __init__(self, t, mib=8, profile=(), more=()):
        self.t, self.cwd = t, t.subdirectory()
        under = [t.ptmem(), "-v", *profile, "--"] if profile else []
        self.process = subprocess.Popen([*under, t.target("gcc-O2-pie", "toucher"), str(mib), *more], cwd=self.cwd, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE if profile else None,
                                        env=t.environment(self.cwd))
        self.pid = self.process.pid
        self.blocks, self.touched = {}, set()
        for line in self.process.stdout:
            words = line.split()
            if words in ([b"ready"], [b"none"]):
                self.is_ready = words == [b"ready"]
                break
            address, size, first, step = int(words[0], 16), *map(int, words[1:])
            self.blocks[address] = size
            self.touched.update(at // PAGE for at in range(address + first, address + size, step or 1 << 40) if step)
        self.before = self.mappings()

    def mappings(self):
        """With their flags: what is split, and not joined again, has more of them."""
        with open("/proc/%d/smaps" % self.pid, encoding="ascii") as file:
            lines = file.readlines()
        heads = [l.split()[0] for l in lines if l[0] in "0123456789abcdef"]
        return list(zip(heads, [l for l in lines if l.startswith("VmFlags:")]))

    def path(self, name):
        return os.path.join(self.cwd, name)

    def sums(self, is_of):
        """[bytes, not touched, at most] of its blocks that @is_of selects, by requested sizes."""
        out = [0, 0, 0]
        for address, size in self.blocks.items():
            if is_of(size):
                cold, most = self.truth(address, size)
                out = [out[0] + size, out[1] + cold, out[2] + most]
        return out

    def truth(self, address, usable):
        """Bytes of a block that are on untouched pages; and on touched ones, but those that are all its own."""
        cold = shared = 0
        for page in pages_of(address, usable):
            part = min(address + usable, (page + 1) * PAGE) - max(address, page * PAGE)
            if page not in self.touched:
                cold += part
            elif part < PAGE:
                shared += part
        return cold, cold + shared

    def touch(self):
        """Everything that it touches, once more."""
        self.process.stdin.write(b"t")
        self.process.stdin.flush()
        self.t.equal("its answer", self.process.stdout.readline(), b"touched\n")

    def inspect(self, name, *options, how=("--inspect",), out="--inspect-out=", before=()):
        """From when ptmem says so until all was touched. @before: what executes ptmem."""
        path = os.path.join(self.t.subdirectory(), name)
        command = [*before, self.t.ptmem(), "-v", *how, "-p", str(self.pid), "--cold=1h", out + path, *options]
        ptmem = subprocess.Popen(command, stderr=subprocess.PIPE, env=self.t.environment(self.t.directory))
        wait_for_begin(ptmem)
        self.touch()
        os.kill(child_that_runs(ptmem.pid, "ptmem") if before else ptmem.pid, signal.SIGINT)
        said = ptmem.stderr.read()
        self.t.equal("status (%r)" % said, ptmem.wait(), 0)
        ptmem.stderr.close()
        return path

    def end(self):
        self.t.equal("mappings", self.mappings(), self.before)
        self.process.stdin.close()
        self.process.stdout.close()
        self.t.equal("the program's status", self.process.wait(), 0)


def check_blocks(t, program, before=()):
    with open(program.inspect("b.csv", before=before), encoding="ascii") as file:
        found = {int(row["address"], 16): row for row in csv.DictReader(file)}
    wrong = []
    for address in program.blocks:
        row = found[address]
        got = int(row["untouched"]), int(row["untouched_at_most"])
        if got != program.truth(address, int(row["bytes"])):
            wrong.append((hex(address), row["bytes"], got, program.truth(address, int(row["bytes"]))))
    t.check(not wrong, "%d of %d blocks: %s" % (len(wrong), len(program.blocks), wrong[:5]))


@test("cold/blocks")
def blocks(t):
    """Each block, to the byte."""
    program = Toucher(t)
    for _ in range(2):
        check_blocks(t, program)
    program.end()


@test("cold/sparse")
def sparse(t):
    """What was never written to is not touched, also where all else of its mapping is."""
    program = Toucher(t, mib=1, more=["sparse"])
    check_blocks(t, program)
    program.end()


@test("cold/slow")
def slow(t):
    """The time that is over after a first round is no reason to leave out the few pages that are left."""
    program = Toucher(t, mib=1)
    check_blocks(t, program, [t.program("strace"), "-qq", "-I", "1", "-o", "/dev/null", "-e", "trace=openat", "-P", "/proc/%d/smaps" % program.pid,
                              "-e", "inject=openat:delay_enter=1100000"])
    program.end()


@test("cold/report")
def report(t):
    """The sums of the report are those of the blocks; huge pages count as one."""
    program = Toucher(t)
    program.inspect("b.csv")
    with open(program.inspect("r.json"), encoding="utf-8") as file:
        found = json.load(file)
    cold = found["untouched"]
    t.equal("bytes by type", [sum(e[key] for e in found["types"]) for key in ("bytes", "untouched_bytes", "untouched_at_most")],
            [cold["blocks_bytes"], cold["untouched_bytes"], cold["untouched_at_most"]])
    own = [program.truth(address, size) for address, size in program.blocks.items()]
    t.check(sum(o[0] for o in own) <= cold["untouched_bytes"] < sum(o[0] for o in own) * 1.1, "%s of %d" % (cold, sum(o[0] for o in own)))
    t.check(cold["untouched_bytes"] <= cold["untouched_at_most"] <= cold["blocks_bytes"], str(cold))
    t.equal("unresolved", cold["unresolved"], 0)
    text = open(program.inspect("r.txt"), encoding="utf-8").read()
    t.check(re.search(r"\nnot touched in [\d.]+ s, .*\n +([\d,]+) .* of all\n", text), text)
    program.end()


def flags_by_page(pid):
    """Advice does nothing in memory without a file: it is left out."""
    found, pages = {}, []
    with open("/proc/%d/smaps" % pid, encoding="ascii") as file:
        for line in file:
            if line[0] in "0123456789abcdef":
                start, end = (int(n, 16) for n in line.split()[0].split("-"))
                pages = range(start // PAGE, end // PAGE) if "[v" not in line else []
            elif line.startswith("VmFlags:"):
                found.update((page, tuple(f for f in line.split()[1:] if f not in ("rr", "sr"))) for page in pages)
    return found


PTRACE_SETREGSET = 0x4205


@test("cold/killed", limit=400)
def killed(t):
    """ptmem is killed at one system call that it makes in the program or another: the program goes on, no page has another
    flag that matters, and the next ptmem finds the same."""
    program = Toucher(t)
    before, died = flags_by_page(program.pid), 0
    for number in (2, 5, 9, 14, 20, 27, 35, 50, 80):
        # by which its guardian is found, too
        env = t.environment(t.directory, **delays(die=number, die_at=PTRACE_SETREGSET, stop=0, **({"die_later": 1} if number % 2 else {})))
        ptmem = subprocess.Popen([t.ptmem(), "--inspect", "-p", str(program.pid), "--cold=0.01", "--inspect-out=/dev/null"],
                                 stderr=subprocess.DEVNULL, env=env)
        status = ptmem.wait()
        died += status == -signal.SIGKILL
        t.check(status in (0, -signal.SIGKILL), "status %d" % status)
        t.wait_until("the guardian to end", lambda: not guardians(t))
        program.touch()
        t.equal("flags after a death at %d" % number, {p: f for p, f in flags_by_page(program.pid).items() if p in before}, before)
    t.check(died >= 5, "ptmem died %d times" % died)
    with open(program.inspect("b.csv"), encoding="ascii") as file:
        found = {int(row["address"], 16): row for row in csv.DictReader(file)}
    for address in program.blocks:
        row, truth = found[address], program.truth(address, int(found[address]["bytes"]))
        t.equal("block %#x" % address, (int(row["untouched"]), int(row["untouched_at_most"])), truth)
    program.process.stdin.close()
    program.process.stdout.close()
    t.equal("the program's status", program.process.wait(), 0)


@test("cold/huge")
def huge(t):
    """A huge page of which one byte is touched may all have been; one that was not is cold."""
    program = Toucher(t, more=["huge"])
    if not program.is_ready:
        program.end()
        raise Skip("the kernel gives no huge pages")
    with open(program.inspect("r.json"), encoding="utf-8") as file:
        found = json.load(file)["untouched"]
    address, size = next((a, s) for a, s in program.blocks.items() if s > LARGE)
    first = -address % HUGE
    touched = [p for p in range(address + first, address + size - HUGE + 1, 2 * HUGE)]
    with open(program.inspect("b.csv"), encoding="ascii") as file:
        row = next(row for row in csv.DictReader(file) if int(row["address"], 16) == address)
    usable, cold, most = int(row["bytes"]), int(row["untouched"]), int(row["untouched_at_most"])
    t.check(0 < cold < usable - len(touched) * PAGE and most > cold + (len(touched) - 1) * HUGE, "%s, %d touched" % (row, len(touched)))
    t.check(found["huge"] >= (len(touched) - 1) * HUGE, str(found))
    program.end()


@test("cold/mappings", limit=400)
def mappings(t):
    """Near the limit of mappings: never more than a quarter of what is left, and bounds that hold."""
    program = Toucher(t, more=["2000"])
    with open("/proc/sys/vm/max_map_count", encoding="ascii") as file:
        limit = len(program.before) + (int(file.read()) - len(program.before)) // 4 + 4
    path, most = os.path.join(t.subdirectory(), "b.csv"), 0
    ptmem = subprocess.Popen([t.ptmem(), "-v", "--inspect", "-p", str(program.pid), "--cold=1h", "--inspect-out=" + path], stderr=subprocess.PIPE,
                             env=t.environment(t.directory))
    wait_for_begin(ptmem)
    program.touch()
    ptmem.send_signal(signal.SIGINT)
    while ptmem.poll() is None:
        with open("/proc/%d/maps" % program.pid, "rb") as file:
            most = max(most, sum(1 for _ in file))
    t.equal("ptmem (%r)" % ptmem.stderr.read(), ptmem.returncode, 0)
    ptmem.stderr.close()
    t.check(most <= limit, "%d mappings of %d" % (most, limit))
    with open(path, encoding="ascii") as file:
        found = {int(row["address"], 16): row for row in csv.DictReader(file)}
    for address in program.blocks:
        row = found[address]
        cold, at_most = program.truth(address, int(row["bytes"]))
        t.check(int(row["untouched"]) <= cold and int(row["untouched_at_most"]) >= at_most, "%s: %d, %d" % (row, cold, at_most))
    program.end()


class IoVec(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]


def page_out(t, pid, address, size):
    """Has the kernel swap out what is on the pages of that range alone."""
    libc, handle = ctypes.CDLL(None, use_errno=True), os.pidfd_open(pid)
    start, end = -(-address // PAGE) * PAGE, (address + size) // PAGE * PAGE
    done = libc.syscall(440, handle, ctypes.byref(IoVec(start, end - start)), 1, 21, 0) # process_madvise, MADV_PAGEOUT
    os.close(handle)
    if done != end - start:
        raise Skip("process_madvise: %s" % os.strerror(ctypes.get_errno()))


def swapped_bytes(pid):
    with open("/proc/%d/status" % pid, encoding="ascii") as file:
        return int(re.search(r"VmSwap:\s+(\d+) kB", file.read())[1]) << 10


@test("cold/swapped")
def swapped(t):
    """Pages that are swapped out were not touched."""
    with open("/proc/swaps", encoding="ascii") as file:
        if len(file.readlines()) < 2:
            raise Skip("this machine has no swap")
    program = Toucher(t)
    address, size = next((a, s) for a, s in program.blocks.items() if s > LARGE)
    page_out(t, program.pid, address, size)
    t.check(swapped_bytes(program.pid) >= size // 2, "%d of %d bytes are swapped out" % (swapped_bytes(program.pid), size))
    with open(program.inspect("b.csv"), encoding="ascii") as file:
        row = next(row for row in csv.DictReader(file) if int(row["address"], 16) == address)
    t.equal("the large block of %d" % size, (int(row["untouched"]), int(row["untouched_at_most"])), program.truth(address, int(row["bytes"])))
    program.end()


@test("cold/graph")
def graph(t):
    """By owner: what blocks have of it, and the sums."""
    program = Toucher(t)
    with open(program.inspect("g.json", how=["--graph", "--graph-depth=1"], out="--graph-out="), encoding="utf-8") as file:
        report = json.load(file)
    rows = [row for row in report["rows"] if row["level"] == 0]
    mapping = max(rows, key=lambda row: row["retained_blocks"])
    # a register or a stack may have a pointer to one of them, also to the large one
    own, others = set(program.blocks), False
    for row in report["rows"]:
        others = row is not mapping if row["level"] == 0 else others
        if others and row["row"] == "block":
            own.discard(int(row["address"], 16))
    t.equal("blocks of the owner of most", (mapping["kind"], mapping["retained_blocks"]), ("mapping", len(own)))
    usable = {a: max(24, (s + 8 + 15) // 16 * 16 - 8) for a, s in program.blocks.items() if s < LARGE and a in own}
    large = next(a for a, s in program.blocks.items() if s >= LARGE)
    if large in own:
        usable[large] = mapping["retained_bytes"] - sum(usable.values())
    truth = [program.truth(a, size) for a, size in usable.items()]
    t.equal("not touched", (mapping["untouched_bytes"], mapping["untouched_at_most"]), tuple(sum(x[i] for x in truth) for i in range(2)))
    blocks = [row for row in report["rows"] if row["row"] == "block" and int(row["address"], 16) in usable]
    t.check(len(blocks) >= 10, str(blocks))
    for row in blocks:
        address = int(row["address"], 16)
        t.equal("block %s" % row["address"], (row["untouched_bytes"], row["untouched_at_most"]), program.truth(address, usable[address]))
    text = open(program.inspect("g.txt", how=["--graph"], out="--graph-out="), encoding="utf-8").read()
    t.check(re.search(r"\n  sum .*\n      not touched: [\d,]+ to [\d,]+ bytes\n", text), text)
    program.end()


@test("cold/refused")
def refused(t):
    """What --cold needs; a process that ends; one with a filter."""
    for options, why in ((["--cold=1", "--inspect=core"], "it needs --pid or a program"), (["--view=cold", "true"], "it needs --cold=TIME"),
                         (["--cold=1", "--replay=e"], "--replay has no running program"),
                         (["--cold=1", "--inspect", "-p", "1", "--flame=f.svg"], "cannot be combined")):
        run = t.run([t.ptmem(), *options])
        t.check(run.status != 0 and why.encode() in run.err, "%s: %d %r" % (options, run.status, run.err))
    with subprocess.Popen(["sleep", "1000"]) as sleeper:
        t.wait_until("it to sleep", lambda: is_asleep(sleeper.pid))
        ptmem = subprocess.Popen([t.ptmem(), "-v", "--inspect", "-p", str(sleeper.pid), "--cold=1h"], stderr=subprocess.PIPE,
                                 stdout=subprocess.PIPE, env=t.environment(t.directory))
        while b"touches counts" not in (line := ptmem.stderr.readline()) and line:
            pass
        sleeper.kill()
        out, err = ptmem.communicate()
    t.check(ptmem.returncode == 125 and b"ended before that time had passed" in err and not out, "%d %r" % (ptmem.returncode, err))


for _kind in ("list", "all"):
    @test("cold/filtered/" + _kind)
    def _(t, kind=_kind):
        """A seccomp filter could kill the program for the calls that this needs: none is made."""
        with subprocess.Popen([t.target("gcc-O2-pie", "filtered"), kind], cwd=t.subdirectory(), stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE) as program:
            t.equal("its first line", program.stdout.readline(), b"ready\n")
            run = t.run([t.ptmem(), "--inspect", "-p", str(program.pid), "--cold=0.01"])
            t.check(run.status == 125 and b"cannot be found: it has a seccomp filter" in run.err, "%d %r" % (run.status, run.err))
            program.stdin.write(b"r")
            program.stdin.close()
            t.check(b"done" in program.stdout.read(), "the program's output")
        t.equal("the program's status", program.returncode, 0)


def paths_of(report):
    """{innermost frame: [bytes, not touched, at most]}"""
    return {e["frames"][0]: [e["bytes"], e["untouched_bytes"], e["untouched_at_most"]] for e in report["untouched"]["paths"]}




@test("cold/alone")
def alone(t):
    """--cold alone is a report like that of --inspect."""
    program = Toucher(t)
    for options in ([], ["--inspect"]):
        run = t.run([t.ptmem(), "-p", str(program.pid), "--cold=0.01", *options])
        t.check(run.status == 0 and b"\nnot touched in " in run.out and b"VmRSS" in run.out, "%s: %d %r" % (options, run.status, run.err))
    program.end()


@test("cold/paths/started")
def paths_started(t):
    """A profile: bytes by call path, in the report, a flame graph, a recording and a page."""
    program = Toucher(t, profile=["--cold=1h", "--inspect-out=out.json", "--folded=f", "--view=cold", "--record=r", "--html=page.html"])
    ptmem = program.process
    ptmem.send_signal(signal.SIGUSR1)
    wait_for_begin(ptmem)
    program.touch()
    ptmem.send_signal(signal.SIGTERM)
    t.equal("ptmem", ptmem.wait(), -signal.SIGTERM)
    ptmem.stdin.close() # the program runs on until then
    with open(program.path("out.json"), encoding="utf-8") as file:
        report = json.load(file)
    found = paths_of(report)
    truth = {"make": program.sums(lambda size: size < LARGE), "make_large": program.sums(lambda size: size >= LARGE)}
    for name, wanted in truth.items():
        t.equal("blocks of %s" % name, [sums for frame, sums in found.items() if frame.startswith(name + " ")], [wanted])
    everything = report["untouched"]["all_paths"]
    t.equal("all", [sum(s[i] for s in found.values()) for i in range(3)],
            [everything["bytes"], everything["untouched_bytes"], everything["untouched_at_most"]])
    with open(program.path("f"), encoding="utf-8") as file:
        folded = {line.rsplit(" ", 1)[0].split(";")[-1]: int(line.rsplit(" ", 1)[1]) for line in file}
    t.equal("folded", {name: folded[name] for name in truth}, {name: wanted[1] for name, wanted in truth.items()})
    t.equal("all of it", sum(folded.values()), everything["untouched_bytes"])
    data = as_json(t, program.path("r"))
    table = data["inspection"]["untouched"]
    t.equal("recording", sorted(zip(table["bytes"], table["at_least"], table["at_most"])), sorted(tuple(s) for s in found.values()))
    t.equal("the page", embedded(program.path("page.html")), data)
    ptmem.stdout.close()
    ptmem.stderr.close()


@test("cold/paths/attached")
def paths_attached(t):
    """Blocks from before are in the profile; the time begins with it. There is one report, when the time is over."""
    program = Toucher(t)
    ptmem = subprocess.Popen([t.ptmem(), "-v", "-p", str(program.pid), "--cold=1h", "--inspect-at-exit", "--inspect-out=out.json",
                              "--flame=f.svg", "--view=cold"], cwd=program.cwd, stderr=subprocess.PIPE, env=t.environment(program.cwd))
    wait_for_begin(ptmem)
    program.touch()
    ptmem.send_signal(signal.SIGINT)
    said = ptmem.stderr.read().decode()
    t.equal("ptmem (%s)" % said, ptmem.wait(), 0)
    ptmem.stderr.close()
    with open(program.path("out.json"), encoding="utf-8") as file:
        found = json.load(file)["untouched"]
    everything = found["all_paths"]
    t.equal("the same blocks", [everything[k] for k in ("bytes", "untouched_bytes", "untouched_at_most")],
            [found[k] for k in ("blocks_bytes", "untouched_bytes", "untouched_at_most")])
    t.check(everything["untouched_bytes"] >= program.sums(lambda size: True)[1] > LARGE, str(everything))
    t.equal("reports", said.count("written to   %s" % program.path("out.json")), 1)
    with open(program.path("f.svg"), encoding="utf-8") as file:
        t.check("all ({:,} bytes".format(everything["untouched_bytes"]) in file.read(), "the flame graph's sum")
    program.end()


@test("cold/paths/left-at-once")
def paths_left_at_once(t):
    """A signal to leave that comes before ptmem has gone on after the begin of the time: there is a report of it."""
    for _ in range(3):
        program = Toucher(t, mib=1, more=["sparse"], profile=["--cold=1h", "--inspect-out=out.json"])
        ptmem = program.process
        ptmem.send_signal(signal.SIGUSR1)
        wait_for_begin(ptmem)
        ptmem.send_signal(signal.SIGTERM)
        t.equal("ptmem", ptmem.wait(), -signal.SIGTERM)
        ptmem.stdin.close() # the program runs on until then
        said = ptmem.stderr.read()
        t.check("untouched" in json.load(open(program.path("out.json"), encoding="utf-8")), "no report: %s" % said.decode())
        ptmem.stdout.close()
        ptmem.stderr.close()


@test("cold/paths/over")
def paths_over(t):
    """The time ends by itself, or does not because the program ends: that is said."""
    program = Toucher(t)
    ptmem = subprocess.Popen([t.ptmem(), "-p", str(program.pid), "--cold=0.05", "--inspect-at-exit", "--inspect-out=out.json"],
                             cwd=program.cwd, stderr=subprocess.PIPE, env=t.environment(program.cwd))
    t.wait_until("the report", lambda: os.path.exists(program.path("out.json")))
    os.unlink(program.path("out.json"))
    ptmem.send_signal(signal.SIGINT)
    ptmem.communicate()
    t.equal("status, another report", (ptmem.returncode, os.path.exists(program.path("out.json"))), (0, False))
    program.end()
    program = Toucher(t)
    ptmem = subprocess.Popen([t.ptmem(), "-v", "-p", str(program.pid), "--cold=1h", "--inspect-at-exit", "--inspect-out=out.json",
                              "--folded=f", "--view=cold"], cwd=program.cwd, stderr=subprocess.PIPE, env=t.environment(program.cwd))
    wait_for_begin(ptmem)
    program.process.stdin.close()
    said = ptmem.stderr.read()
    t.check(ptmem.wait() == 0 and b"ended before the time of --cold" in said and b"has nothing to show" in said, "%d %r" % (ptmem.returncode, said))
    with open(program.path("out.json"), encoding="utf-8") as file:
        t.check("untouched" not in json.load(file), "a report without it")
    t.equal("a flame graph", os.path.exists(program.path("f")), False)
    ptmem.stderr.close()
    program.process.stdout.close()
    t.equal("the program's status", program.process.wait(), 0)
