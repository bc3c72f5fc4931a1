"""Programs that execute themselves while ptmem attaches to them, leaves them, or is killed: they live on, and no
attach is refused. tests/e2e/delays.c, preloaded into ptmem, makes the rare moments happen.

PTMEM_EXEC_ROUNDS says how many rounds the random tests make (8); by hand: 300.
"""

import os
import random
import signal
import subprocess

import harness
from harness import Fail, test
from process_lib import Attached, delays, guardians, kill_both, sigtrap_is_caught

ROUNDS = int(os.environ.get("PTMEM_EXEC_ROUNDS", "8"))


class ExecOnSignal:
    """targets/exec_on_signal.c."""

    def __init__(self, t):
        self.t = t
        self.process = subprocess.Popen([t.target("gcc-O2-pie", "exec_on_signal")], cwd=t.subdirectory(), stdout=subprocess.PIPE)
        self.pid = self.process.pid
        self.wait_ready()

    def image(self):
        with open("/proc/%d/auxv" % self.pid, "rb") as file:
            return file.read()

    def wait_ready(self):
        """Until it takes signals."""
        def takes_signals():
            with open("/proc/%d/status" % self.pid, encoding="ascii") as file:
                caught = int(next(l for l in file if l.startswith("SigCgt:")).split()[1], 16)
            return caught & 1 << (signal.SIGUSR2 - 1)

        self.t.wait_until("the program to take signals", takes_signals)

    def execute(self):
        before = self.image()
        self.process.send_signal(signal.SIGUSR1)
        self.t.wait_until("the program to execute itself", lambda: self.image() not in (before, b""))

    def end(self):
        self.wait_ready()
        self.process.send_signal(signal.SIGUSR2)
        out, _ = self.process.communicate(timeout=200)
        self.t.equal("output and status", (out, self.process.returncode), (b"OK\n", 0))


def check_survives(t, attached, program):
    """Without ptmem and without guardian its handler alone keeps it alive."""
    t.wait_until("a handler of SIGTRAP", lambda: sigtrap_is_caught(program.pid) or program.process.poll() is not None)
    program.wait_ready()
    kill_both(t, attached)
    t.check(program.process.poll() is None, "the program died")
    program.end()


@test("exec-loop/before-seize")
def before_seize(t):
    """It executes itself when ptmem has read its modules and not yet stopped it."""
    program = ExecOnSignal(t)
    attached = Attached(t, program.pid, ["--probes=break"], env=delays(exec=int(signal.SIGUSR1))).wait_attached()
    t.check(sigtrap_is_caught(program.pid), "breakpoints without a handler: %s" % attached.errors())
    check_survives(t, attached, program)


@test("exec-loop/followed")
def followed(t):
    """The next image is guarded as the first was."""
    program = ExecOnSignal(t)
    attached = Attached(t, program.pid, ["--probes=break", "--trace-children=yes"]).wait_attached()
    program.execute()
    check_survives(t, attached, program)


@test("exec-loop/refused-briefly")
def refused_at_first(t):
    """A temporary refusal of the kernel is no reason to give up."""
    program = ExecOnSignal(t)
    attached = Attached(t, program.pid, env=delays(refuse=7)).wait_attached()
    attached.detach()
    program.end()


@test("exec-loop/refused-permanently")
def refused(t):
    """A refusal for a second is."""
    program = ExecOnSignal(t)
    run = t.run([t.ptmem(), "-p", str(program.pid)], env=delays(refuse=1000000))
    t.equal("status", run.status, 125)
    t.check(b"may not be traced" in run.err, "the reason: %s" % run.err)
    program.end()


@test("exec-loop/by-the-last-thread")
def by_the_last_thread(t):
    """The first thread is seized and has ended when another one, not yet seized, executes a program."""
    program = subprocess.Popen([t.target("gcc-O2-pie", "exec_last")], cwd=t.subdirectory(), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    t.equal("first thread", program.stdout.read(1), b"x")
    attached = Attached(t, program.pid, ["-vv"], env=delays(signal=int(signal.SIGUSR1), gone=int(signal.SIGUSR1))).wait_attached()
    t.check("once more" not in attached.errors(), "it took two attempts: %s" % attached.errors())
    for _ in range(5):
        program.stdin.write(b"x")
        program.stdin.flush()
        t.equal("answer", program.stdout.read(1), b"x")
    program.stdin.close()
    t.equal("status", program.wait(timeout=200), 3)
    t.equal("allocations", [s["allocations"] for s in attached.ended().stats], [5])


class Executing:
    """The target exec_loop, which executes itself from one of its threads all the time."""

    def __init__(self, t):
        self.t, self.cwd = t, t.subdirectory()
        self.process = subprocess.Popen([t.target("gcc-O2-pie", "exec_loop"), "-1"], cwd=self.cwd, stdout=subprocess.PIPE)
        self.pid = self.process.pid

    def check_alive(self, what):
        if self.process.poll() is not None:
            raise Fail("%s: the program died: %s" % (what, harness.signal_name(self.process.returncode)))

    def end(self):
        with open(os.path.join(self.cwd, "stop"), "wb"):
            pass
        out, _ = self.process.communicate(timeout=200)
        self.t.equal("output and status", (out, self.process.returncode), (b"OK\n", 0))


@test("exec-loop/attached", limit=60 + 3 * ROUNDS)
def attached_at_random(t):
    """Each attach succeeds, whenever it happens."""
    program, chance = Executing(t), random.Random(1)
    for i in range(ROUNDS):
        more = [[], ["--trace-children=yes"]][i % 2]
        run = t.run([t.ptmem(), "-q", *more, "--duration=%g" % (0.001 + chance.random() / 20), "-p", str(program.pid)],
                    env=delays(seed=i), timeout=200)
        program.check_alive("round %d" % i)
        t.equal("status (%s)" % run.err, run.status, 0)
    program.end()


@test("exec-loop/killed", limit=60 + 3 * ROUNDS)
def killed_at_random(t):
    """ptmem is killed at any moment."""
    program, chance = Executing(t), random.Random(2)
    for i in range(ROUNDS):
        attached = Attached(t, program.pid, [[], ["--trace-children=yes"]][i % 2], env=delays(seed=i))
        try:
            attached.process.wait(timeout=chance.random() * 0.4)
        except subprocess.TimeoutExpired:
            pass
        attached.process.kill()
        attached.process.wait()
        program.check_alive("round %d" % i)
    program.end()
    t.wait_until("the guardians to end", lambda: not guardians(t))
