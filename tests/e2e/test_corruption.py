"""A program that writes garbage into the memory it shares with ptmem: it may die of that, ptmem must not.

PTMEM_CORRUPT_ROUNDS says how many rounds each test makes (1), with other random numbers each; by hand: 10.
"""

import os
import re
import signal
import subprocess

from harness import Fail, test

ROUNDS = int(os.environ.get("PTMEM_CORRUPT_ROUNDS", "1"))
HOW = ("words", "control", "slots", "ring", "fields", "records", "shrink", "unmap", "zero", "remap", "remove")
# after these no thread may loop in a pad until the alarm ends the program
NO_ALARM = ("zero", "remap", "remove")
CORRUPT = re.compile(r"^ptmem: process (\d+): its shared memory is corrupt \([^)]+\): profiling of it ends here$", re.M)
# what the program may die of by its own fault; a SIGTRAP would be a leftover breakpoint
OWN_ENDS = (0, -signal.SIGSEGV, -signal.SIGBUS, -signal.SIGILL, -signal.SIGFPE, -signal.SIGABRT, -signal.SIGALRM)
LIMIT = 90


class Run:
    """The corrupter, and ptmem that started it or was attached to it."""

    def __init__(self, t, mode, is_attached, how, seed=1, stdin=subprocess.DEVNULL, options=()):
        self.t, self.how, self.cwd = t, how, t.subdirectory()
        self.paths = [os.path.join(self.cwd, name) for name in ("stderr", "stdout")]
        program = [t.target("gcc-O2-pie", "corrupter"), how, str(seed)]
        ptmem = [t.ptmem(), "--probes=" + mode, *options]
        with open(self.paths[0], "wb") as err, open(self.paths[1], "wb") as out:
            def start(argv, err=err):
                return subprocess.Popen(argv, cwd=self.cwd, env=t.environment(self.cwd), stdin=stdin, stdout=out,
                                        stderr=err)

            if is_attached:
                self.program = start(program + ["30"])
                self.ptmem = start(ptmem + ["-p", str(self.program.pid)])
            else:
                self.program, self.ptmem = None, start(ptmem + program)

    def text(self, which=0):
        with open(self.paths[which], encoding="utf-8", errors="replace") as file:
            return file.read()

    def end(self):
        """Both have ended, the program by itself; ptmem wrote what it had."""
        t, text = self.t, self.text
        try:
            status = self.ptmem.wait(timeout=LIMIT)
            own = self.program.wait(timeout=LIMIT) if self.program else status
        except subprocess.TimeoutExpired as error:
            self.ptmem.kill()
            raise Fail("ptmem hangs: " + text()) from error
        t.check(not re.search("internal error|Sanitizer|runtime error|SUMMARY", text()), "ptmem failed: " + text())
        t.check(own in OWN_ENDS, "the program ended with %d: %s" % (own, text()))
        t.check(self.how not in NO_ALARM or own != -signal.SIGALRM, "threads hang after %s: %s" % (self.how, text()))
        t.equal("status of ptmem (%s)" % text(), status, 0 if self.program else own)
        t.check(len(CORRUPT.findall(text())) <= 1, "said more than once: " + text())
        t.equal("profiles (%s)" % text(), len([n for n in os.listdir(self.cwd) if n.startswith("massif.out.")]), 1)
        return bool(CORRUPT.search(text()))


def corrupt_in_rounds(mode, is_attached):
    @test("corruption/%s/%s" % ("attached" if is_attached else "started", mode), limit=60 + 60 * ROUNDS)
    def run(t):
        found = 0
        for seed in range(ROUNDS):
            for how in HOW:
                found += Run(t, mode, is_attached, how, 100 * seed + HOW.index(how)).end()
        t.check(found > 0, "nothing was found to be corrupt")


for a_mode in ("auto", "jump"):
    for a_way in (False, True):
        corrupt_in_rounds(a_mode, a_way)


def break_shares_nothing(is_attached):
    @test("corruption/%s/break" % ("attached" if is_attached else "started"))
    def run(t):
        how = Run(t, "break", is_attached, "nothing", stdin=subprocess.PIPE)
        if is_attached:
            t.wait_until("ptmem to attach", lambda: "attached to process" in how.text())
        for process in (how.ptmem, how.program):
            if process:
                process.stdin.close()
        t.check(not how.end(), "something was corrupt: " + how.text())
        t.equal("what it found", how.text(1), "none\nOK\n")


break_shares_nothing(False)
break_shares_nothing(True)


def wait_for_report(t, run):
    t.wait_until("the report", lambda: CORRUPT.search(run.text()) or run.ptmem.poll() is not None)
    found = CORRUPT.search(run.text())
    t.check(found, "no report: " + run.text())
    return int(found.group(1))


def is_left(pid):
    with open("/proc/%d/status" % pid, encoding="ascii") as file:
        return re.search(r"^TracerPid:\t0$", file.read(), re.M)


def left_alone(t, is_attached, end, how="head"):
    """If only a ring's head or room, or a number, was changed the program continues undisturbed, untraced."""
    run = Run(t, "jump", is_attached, how, stdin=subprocess.PIPE)
    pid = wait_for_report(t, run)
    t.wait_until("ptmem to leave", lambda: is_left(pid))
    end(run)
    for process in (run.ptmem, run.program):
        if process:
            process.stdin.close()
    return run, pid


@test("corruption/after-attached")
def left_attached(t):
    run, _ = left_alone(t, True, lambda run: t.equal("status of ptmem", run.ptmem.wait(timeout=30), 0))
    t.check(run.end(), "not corrupt any more")
    t.equal("output of the program", run.text(1), "ready\nOK\n")


@test("corruption/after-started")
def left_started(t):
    for how in ("head", "number"):
        run, _ = left_alone(t, False, lambda run: None, how)
        t.check(run.end(), "not corrupt any more")
        t.equal("output of the program", run.text(1), "ready\nOK\n")
        t.check(re.search(r"allocations +\d", run.text()), "no summary: " + run.text())


def left_without_room(is_attached):
    @test("corruption/after-room/%s" % ("attached" if is_attached else "started"))
    def run(t):
        run, _ = left_alone(t, is_attached, lambda run: None, "room")
        t.check(run.end(), "not corrupt any more")
        t.equal("output of the program", run.text(1), "ready\nOK\n")


left_without_room(False)
left_without_room(True)


@test("corruption/after-fields")
def left_with_fields_changed(t):
    """Fields that only pads read: they would lose events, or stop at each call, without a wrong record."""
    for how in ("owner", "off", "flags", "rule_bits", "record_max", "gap", "slots_at", "slots_used"):
        run, _ = left_alone(t, False, lambda run: None, how)
        t.check(run.end(), "not corrupt any more")
        t.equal("output of the program", run.text(1), "ready\nOK\n")


@test("corruption/after-terminated")
def left_terminated(t):
    def terminate(run):
        run.ptmem.terminate()
        t.equal("status of ptmem", run.ptmem.wait(timeout=30), -signal.SIGTERM)

    run, pid = left_alone(t, False, terminate)
    t.wait_until("the program to end", lambda: not os.path.exists("/proc/%d" % pid))
    t.equal("output of the program", run.text(1), "ready\nOK\n")
