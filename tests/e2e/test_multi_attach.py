"""Several processes after -p: each has its own files with its own truth, whatever becomes of the others."""

import os
import re
import signal
import subprocess

import massif
from harness import Skip, test
from leaks_lib import Waiting, folded_sum
from process_lib import cpu_ticks

MADE = {"follow_list": 432, "inside_global": 2000, "reach_ignored": 3030}


class Group:
    """ptmem attached to the processes of @words, as they follow -p."""

    def __init__(self, t, words, good, *options, own=("--stats", "--folded=live.folded", "--threshold=0", "--detailed-freq=1")):
        self.t, self.cwd = t, t.subdirectory()
        self.err = os.path.join(self.cwd, "err")
        with open(self.err, "wb") as err:
            self.process = subprocess.Popen([t.ptmem(), *own, *options, "-p", words], cwd=self.cwd,
                                            env=t.environment(self.cwd), stderr=err, start_new_session=True)
        t.wait_until("ptmem to attach", lambda: self.text().count("ptmem: attached to process") == good
                     or self.process.poll() is not None)

    def text(self):
        with open(self.err, encoding="utf-8", errors="replace") as file:
            return file.read()

    def wait_reported(self, pid):
        """Its figures come when its files are there."""
        figures = r"^ptmem: process %d, .*\n(?:ptmem: (?!process ).*\n)*?ptmem: live bytes: \d+\n" % pid
        self.t.wait_until("the report of %d" % pid, lambda: re.search(figures, self.text(), re.M))

    def wait(self, status=0, number=None):
        if number:
            self.process.send_signal(number)
        self.t.equal("status of ptmem (%s)" % self.text(), self.process.wait(timeout=200), status)

    def check(self, pid):
        """What @pid made, by function, in its massif file and its folded file."""
        t = self.t
        last = massif.Massif(os.path.join(self.cwd, "massif.out.%d" % pid)).snapshots[-1]
        with open(os.path.join(self.cwd, "live.%d.folded" % pid), encoding="utf-8") as file:
            lines = file.read().splitlines()
        for name, size in MADE.items():
            found = sum(int(line.rsplit(" ", 1)[1]) for line in lines if re.search(r";%s \d+$" % name, line))
            t.equal("bytes of %s in process %d" % (name, pid), found, size)
        t.equal("folded sum and last snapshot of %d" % pid, folded_sum(os.path.join(self.cwd, "live.%d.folded" % pid)),
                last["mem_heap_B"])
        part = self.text().split("ptmem: process %d, " % pid)[1].split("ptmem: process ")[0]
        t.equal("live bytes of %d" % pid, int(re.search(r"^ptmem: live bytes: (\d+)$", part, re.M)[1]),
                last["mem_heap_B"])


def place(programs):
    for p in programs:
        p.step(b"begun\n")
        p.step(b"placed\n")


def finish(t, programs):
    for p in programs:
        p.step(b"done\n")
        t.equal("status of a program", p.process.wait(), 0)


@test("multi-attach/idle")
def idle(t):
    """One that allocates nothing is no reason for a hint, unless all do."""
    for busy in (1, 0):
        programs = [Waiting(t), Waiting(t)]
        group = Group(t, ",".join(str(p.process.pid) for p in programs), 2, "-o", "none", own=())
        place(programs[:busy])
        group.wait(number=signal.SIGINT)
        t.check("largest peak of 2 processes" in group.text(), group.text())
        t.equal("hints (%s)" % group.text(), group.text().count("hint: nothing was allocated"), 1 - busy)
        finish(t, programs[:busy])
        for p in programs[busy:]:
            p.step(b"begun\n")
            p.step(b"placed\n")
            finish(t, [p])


@test("multi-attach/pid-lists")
def words(t):
    """Commas, blanks, both, and a name twice: each process once."""
    for join in (",", " ", ", ", "\n"):
        programs = [Waiting(t), Waiting(t), Waiting(t)]
        pids = [p.process.pid for p in programs]
        group = Group(t, join.join(map(str, [*pids, pids[0]])), 3)
        place(programs)
        group.wait(number=signal.SIGINT)
        for pid in pids:
            group.check(pid)
        t.check("already traced" not in group.text(), "the one named twice was asked for twice: " + group.text())
        t.equal("massif files", sum(n.startswith("massif.out.") for n in os.listdir(group.cwd)), 3)
        finish(t, programs)


@test("multi-attach/one-dies")
def one_dies(t):
    """Killed, or ended by itself: its files are written then, and the others' profiles continue."""
    programs = [Waiting(t) for _ in range(3)]
    pids = [p.process.pid for p in programs]
    group = Group(t, ",".join(map(str, pids)), 3)
    place(programs[:2])
    programs[0].process.kill()
    programs[0].process.wait()
    group.wait_reported(pids[0])
    group.check(pids[0])
    finish(t, programs[1:2])
    group.wait_reported(pids[1])
    t.check(group.process.poll() is None, "ptmem has left the third")
    place(programs[2:])
    finish(t, programs[2:])
    group.wait()
    for pid in pids:
        group.check(pid)


def is_traced_sleep(pid, tracer):
    try:
        with open("/proc/%s/status" % pid, encoding="ascii") as file:
            text = file.read()
    except OSError:
        return False
    return text.startswith("Name:\tsleep\n") and "\nTracerPid:\t%d\n" % tracer in text


@test("multi-attach/some-refused")
def some_refused(t):
    """One does not exist, one has a tracer already, one is ptmem itself: each is reported, the others are profiled."""
    programs = [Waiting(t), Waiting(t)]
    pids = [p.process.pid for p in programs]
    gone = subprocess.Popen(["true"])
    gone.wait()
    traced = subprocess.Popen([t.program("strace"), "-o", "/dev/null", "sleep", "1000"], start_new_session=True)
    try:
        children = "/proc/%d/task/%d/children" % (traced.pid, traced.pid)
        # strace has children of its own before, which try out what the kernel can do
        found = []

        def is_there():
            found[:] = [int(c) for c in open(children).read().split() if is_traced_sleep(c, traced.pid)]
            return found
        t.wait_until("strace to trace", is_there)
        sleeper = found[0]
        group = Group(t, "%d,%d,%d,%d" % (gone.pid, pids[0], sleeper, pids[1]), 2)
        place(programs)
        group.wait(number=signal.SIGTERM)
        text = group.text()
        t.check("process %d: no such process" % gone.pid in text, "the missing one is not named: " + text)
        t.check(re.search(r"process %d\b.*(traced|strace)" % sleeper, text), "the traced one is not named: " + text)
        for pid in pids:
            group.check(pid)
        finish(t, programs)
        none = Group(t, "%d,%d" % (gone.pid, sleeper), 0)
        none.wait(status=125)
    finally:
        os.killpg(traced.pid, signal.SIGKILL)
        traced.wait()


@test("multi-attach/not-permitted", 120)
def not_permitted(t):
    """As an ordinary user: root's process is refused with the reason, the own one is profiled."""
    if os.geteuid() != 0:
        raise Skip("needs root, to become another user")
    setpriv = t.program("setpriv")
    as_nobody = [setpriv, "--reuid=65534", "--regid=65534", "--clear-groups"]
    cwd = t.subdirectory()
    os.chmod(cwd, 0o777)
    ptmem = t.for_others(t.ptmem())
    root = subprocess.Popen(["sleep", "1000"])
    own = subprocess.Popen([*as_nobody, "sleep", "1000"])
    try:
        t.wait_until("the sleep", lambda: b"sleep" in open("/proc/%d/cmdline" % own.pid, "rb").read()[:6])
        run = t.run([*as_nobody, ptmem, "--duration=0.3", "-p", "%d,%d" % (root.pid, own.pid)], cwd=cwd)
        text = run.err.decode()
        t.check(re.search(r"process %d\b.*(permitted|permission|user)" % root.pid, text), "no reason for root's: " + text)
        scope = "/proc/sys/kernel/yama/ptrace_scope"
        may = not os.path.exists(scope) or open(scope, encoding="ascii").read().strip() == "0"
        t.equal("attached", "attached to process %d" % own.pid in text, may)
        t.equal("status", run.status, 0 if may else 125)
        t.check(not may or os.path.exists(os.path.join(cwd, "massif.out.%d" % own.pid)), "no profile: " + text)
    finally:
        for p in (root, own):
            p.kill()
            p.wait()


LOAD = ("d = []\nimport select\nprint(1, flush=True)\nwhile not select.select([0], [], [], 0)[0]:\n"
        "    d.append([str(k) for k in range(300)])\n    if len(d) > 50:\n        d.clear()\nprint(max(map(len, d), default=300))\n")


@test("multi-attach/under-load", 180)
def under_load(t):
    """Two that allocate all the time, a Ctrl-C to ptmem's group: both are detached, and end as they would alone."""
    script = t.file("load.py", LOAD)
    for number in (signal.SIGINT, signal.SIGTERM):
        programs = [subprocess.Popen([t.program("python3"), script], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                     env=t.environment(t.directory, PYTHONMALLOC="malloc")) for _ in range(2)]
        first = [p.stdout.readline() for p in programs]
        group = Group(t, " ".join(str(p.pid) for p in programs), 2, "--duration=20")
        for p in programs:
            begun = cpu_ticks(p.pid)
            t.wait_until("it to run below ptmem", lambda p=p, begun=begun: cpu_ticks(p.pid) > begun + 5)
        os.kill(group.process.pid, signal.SIGUSR1)
        t.wait_until("both to be under way", lambda: len([n for n in os.listdir(group.cwd) if n.startswith("massif")]) >= 2
                     or group.process.poll() is not None)
        group.wait(number=number)
        t.equal("left running", bool(re.search(r"detached \(paused for [0-9.]+ ms\); the programs run on", group.text())), True)
        for p, line in zip(programs, first):
            out = line + p.communicate()[0]
            t.equal("output and status of %d" % p.pid, (out, p.returncode), (b"1\n300\n", 0))
            live = int(re.search(r"process %d, .*?^ptmem: live bytes: (\d+)$" % p.pid, group.text(), re.S | re.M)[1])
            made = re.search(r"process %d, .*?^ptmem: allocations: (\d+)$" % p.pid, group.text(), re.S | re.M)[1]
            t.check(int(made) > 0, "nothing was seen of %d" % p.pid)
            t.equal("folded sum of %d" % p.pid, folded_sum(os.path.join(group.cwd, "live.%d.folded" % p.pid)), live)
