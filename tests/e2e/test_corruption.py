"""A program that writes garbage into the memory it shares with ptmem: it may die of that, ptmem must not.

PTMEM_CORRUPT_ROUNDS says how many rounds each test makes (1), with other random numbers each; by hand: 10.
"""

import os
import re
import signal
import subprocess

from harness import test
from corruption_lib import CORRUPT, Run

ROUNDS = int(os.environ.get("PTMEM_CORRUPT_ROUNDS", "1"))
HOW = ("words", "control", "slots", "ring", "fields", "records", "shrink", "unmap", "zero", "remap", "remove")


def corrupt_in_rounds(mode, is_attached):
    @test("corruption/%s/%s" % ("attached" if is_attached else "started", mode), limit=60 + 60 * ROUNDS)
    def run(t):
        found = 0
        for seed in range(ROUNDS):
            for how in HOW:
                found += Run(t, mode, is_attached, how, 100 * seed + HOW.index(how)).end()
        t.check(found > 0, "nothing was found to be corrupt")


for a_mode, a_way in (("auto", False), ("jump", False), ("jump", True)):  # what is shared is read alike: each mode, each way
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
    run, _ = left_alone(t, True, lambda run: t.equal("status of ptmem", run.ptmem.wait(timeout=200), 0))
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
        t.equal("status of ptmem", run.ptmem.wait(timeout=200), -signal.SIGTERM)

    run, pid = left_alone(t, False, terminate)
    t.wait_until("the program to end", lambda: not os.path.exists("/proc/%d" % pid))
    t.equal("output of the program", run.text(1), "ready\nOK\n")
