"""ptmem is killed by SIGKILL at random moments: what it had attached to continues undisturbed.

PTMEM_KILL_ROUNDS says how many rounds each of the four long tests makes (8); by hand: 200.
"""

import os
import random
import re
import signal
import subprocess
import time

import harness
from harness import Fail, test
from process_lib import Attached, Server, check_exact, check_left_alone, cpu_ticks, guardians, kill, kill_both, masks_of_parked, sigtrap_is_caught, wait_for_masks

ROUNDS = int(os.environ.get("PTMEM_KILL_ROUNDS", "8"))


def differing_text(server):
    try:
        return server.text()
    except OSError:  # a mapping that went, or the process: which the caller will see
        return ["unreadable"]


def kill_detaching(attached, delay):
    """In the few milliseconds in which it removes everything."""
    attached.wait_attached()
    time.sleep(0.05 + delay / 10)
    attached.process.terminate()
    kill(attached, delay / 40)


def kill_in_rounds(t, mode, seed, how=kill):
    server = Server(t)
    server.say("p")
    masks = masks_of_parked(server)
    server.say("c")
    chance = random.Random(seed)
    for i in range(ROUNDS):
        attached = Attached(t, server.pid, ["--probes=" + mode])
        how(attached, chance.random() * 0.3)

        def is_clean():
            server.check_alive()
            return (not guardians(t) and not differing_text(server)
                    and set(server.status("TracerPid").values()) == {"0"} and not sigtrap_is_caught(server.pid))

        t.wait_until("the guardian to clean up", is_clean)
        t.equal("signals that came", server.signals(), 10 * (i + 1))
        wait_for_masks(server, masks)
        server.check_progress()
    truth = server.end()
    t.equal("blocks that the server itself misses", truth["blocks"], 0)
    t.wait_until("the guardians to end", lambda: not guardians(t))


@test("killed/auto", limit=120 + 3 * ROUNDS)
def killed_auto(t):
    kill_in_rounds(t, "auto", 1)


@test("killed/break", limit=120 + 3 * ROUNDS)
def killed_break(t):
    kill_in_rounds(t, "break", 2)


@test("killed/detaching", limit=120 + 3 * ROUNDS)
def killed_detaching(t):
    kill_in_rounds(t, "auto", 4, kill_detaching)


class Guarded:
    """The target of that name, or one that prints the same."""

    def __init__(self, t, *args, name="guarded"):
        self.cwd = t.subdirectory()
        self.process = subprocess.Popen([t.target("gcc-O2-pie", name), *args], cwd=self.cwd,
                                        env=t.environment(self.cwd), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.pid = self.process.pid
        t.equal("its first line", self.process.stdout.readline(), b"ready\n")

    def end(self, t):
        out, _ = self.process.communicate(timeout=200)
        if self.process.returncode != 0:
            raise Fail("the target ended with %s" % harness.signal_name(self.process.returncode))
        t.equal("its output", out, b"OK\n")


@test("killed/libraries", limit=120)
def killed_libraries(t):
    """Libraries come and go while ptmem is attached, and after it was killed."""
    target = Guarded(t, os.path.join(harness.TARGETS, "lib"))
    chance = random.Random(3)
    for _ in range(15):
        kill(Attached(t, target.pid), chance.random() * 0.2)
        t.wait_until("the guardian to clean up",
                     lambda: target.process.poll() is not None or not sigtrap_is_caught(target.pid))
        t.equal("status", target.process.poll(), None)
    time.sleep(0.1)
    target.end(t)


@test("killed/own-handler")
def own_handler(t):
    """A program's own handler of SIGTRAP stays installed, and receives the program's own breakpoints."""
    target = Guarded(t)
    attached = Attached(t, target.pid, ["-v"]).wait_attached()
    t.wait_until("that to be said", lambda: "own handler of SIGTRAP" in attached.errors())
    t.check(sigtrap_is_caught(target.pid), "its handler is gone")
    attached.detach()
    t.check(sigtrap_is_caught(target.pid), "its handler is gone")
    target.end(t)


@test("killed/blocked-pending-trap")
def blocked_pending_trap(t):
    """A signal of the program's own that looks like a step of ptmem's stays pending."""
    target = Guarded(t, name="pending_trap")
    Attached(t, target.pid).wait_attached().detach()
    attached = Attached(t, target.pid).wait_attached()
    kill(attached, 0)
    t.wait_until("the guardian to end", lambda: not guardians(t))
    target.end(t)


@test("killed/unrelated-sigtrap")
def foreign_trap(t):
    """A SIGTRAP that is not ours kills the program, with or without ptmem."""
    for guarded in (True, False):
        server = Server(t)
        attached = Attached(t, server.pid).wait_attached()
        t.check(sigtrap_is_caught(server.pid), "no handler")
        if not guarded:
            kill_both(t, attached)
        os.kill(server.pid, signal.SIGTRAP)
        t.equal("status", server.process.wait(timeout=200), -signal.SIGTRAP)
        if guarded:
            attached.ended()


def without_guardian_in(modes):
    @test("killed/without-guardian/" + "-".join(modes), limit=120)
    def without_guardian(t):
        """The handler alone keeps a program alive; the next ptmem cleans up and starts again."""
        server = Server(t)
        maps = server.maps()
        for mode in modes:
            attached = Attached(t, server.pid, ["--probes=" + mode]).wait_attached()
            time.sleep(0.1)
            kill_both(t, attached)
            for _ in range(20):
                server.say("r")
            server.check_progress()
            t.check(sigtrap_is_caught(server.pid), "no handler")
        check_exact(t, server)
        check_left_alone(t, server, maps)
        server.end()


for some in ("auto", "auto-break", "break-auto", "jump-break-auto", "break-break-break"):
    without_guardian_in(some.split("-"))


@test("killed/with-guardian", limit=120 + 3 * ROUNDS)
def killed_both(t):
    """At random moments, the guardian first."""
    server = Server(t)
    server.say("c")
    chance = random.Random(5)
    for i in range(ROUNDS):
        kill_both(t, Attached(t, server.pid, ["--probes=" + ("auto", "break")[i % 2]]), chance.random() * 0.3)
        server.check_alive()
        server.check_progress()
    check_exact(t, server)
    truth = server.end()
    t.equal("blocks that the server itself misses", truth["blocks"], 0)


@test("killed/nothing-left")
def nothing_left(t):
    """The guardian removes all of ptmem's memory from a program whose threads sleep most of the time."""
    def maps():
        with open("/proc/%d/maps" % program.pid, encoding="utf-8") as file:
            return [line for line in file if "x" in line.split()[1] or "memfd" in line]

    program = subprocess.Popen([t.target("gcc-O2-pie", "napping")], cwd=t.subdirectory(), stdin=subprocess.PIPE)
    t.wait_until("its threads", lambda: len(os.listdir("/proc/%d/task" % program.pid)) == 3)
    before = maps()
    attached = Attached(t, program.pid, ["--probes=jump"]).wait_attached()
    t.wait_until("jumps", lambda: any("memfd" in line for line in maps()))
    time.sleep(0.1)  # calls by pads, whose words remain on the stacks
    attached.process.kill()
    attached.process.wait()
    t.wait_until("the guardians to end", lambda: not guardians(t))
    t.equal("mappings", maps(), before)
    program.stdin.close()
    t.equal("status", program.wait(timeout=200), 0)


@test("killed/clean-detach")
def clean_detach(t):
    """No guardian outlives a detach, none holds a pipe of ptmem's caller open."""
    server = Server(t)
    maps = server.maps()
    process = subprocess.Popen([t.ptmem(), "-p", str(server.pid), "--duration=0.3"], cwd=t.subdirectory(),
                               env=t.environment(server.cwd), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT)
    process.communicate(timeout=200)
    t.equal("guardians", guardians(t), [])
    t.check(not sigtrap_is_caught(server.pid), "the handler was left")
    check_left_alone(t, server, maps)
    process = subprocess.Popen([t.ptmem(), "-p", str(server.pid)], cwd=t.subdirectory(),
                               env=t.environment(server.cwd), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT)
    time.sleep(0.3)
    process.kill()
    process.communicate(timeout=200)
    server.check_progress()
    server.end()


def ignore_sigtrap():
    signal.signal(signal.SIGTRAP, signal.SIG_IGN)


def block_sigtrap():
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTRAP])


def entries(t, pid, names):
    """Where functions of the C library begin in a process."""
    with open("/proc/%d/maps" % pid, encoding="utf-8") as maps:
        start, path = re.search(r"^([0-9a-f]+)-\S+ \S+ 00000000 .* (/\S*/libc\.so\.6)$", maps.read(), re.M).groups()
    symbols = t.run(["nm", "-D", path]).out.decode()
    found = dict(re.findall(r"^([0-9a-f]+) \w (%s)@@" % "|".join(names), symbols, re.M))
    t.equal("functions", sorted(found.values()), sorted(names))
    return [int(start, 16) + int(value, 16) for value in found]


def begin_with_jumps(pid, addresses):
    with open("/proc/%d/mem" % pid, "rb", 0) as memory:
        return all(os.pread(memory.fileno(), 1, address) == b"\xe9" for address in addresses)


def wait_for_full_rings(t, pid, functions):
    """All calls use jumps: no thread is in a call from before, and each has worked for some time since."""
    t.wait_until("jumps", lambda: begin_with_jumps(pid, functions))
    before = {tid: cpu_ticks(pid, tid) for tid in os.listdir("/proc/%d/task" % pid) if int(tid) != pid}
    t.wait_until("its threads to work", lambda: all(cpu_ticks(pid, tid) > ticks + 5 for tid, ticks in before.items()))


def register_full_rings(name, prepare):
    @test("killed/full-rings/" + name, limit=120)
    def _(t):
        """No handler saves a program that ignores or blocks SIGTRAP, but its calls use jumps, and none of three threads that
        allocate faster than ptmem reads is in a trap for room when ptmem dies."""
        cwd = t.subdirectory()
        program = subprocess.Popen([t.target("gcc-O2-pie", "contention"), "3", "1000000000"], cwd=cwd, env=t.environment(cwd),
                                   preexec_fn=prepare, stdout=subprocess.DEVNULL)
        try:
            t.wait_until("its threads", lambda: len(os.listdir("/proc/%d/task" % program.pid)) == 4)
            functions = entries(t, program.pid, ("malloc", "realloc", "free"))
            for _ in range(5):
                attached = Attached(t, program.pid, ["--ring=64K"]).wait_attached()
                wait_for_full_rings(t, program.pid, functions)
                kill(attached, 0)
                t.wait_until("the guardian to clean up", lambda: not guardians(t))
                t.equal("status of the program", program.poll(), None)
        finally:
            program.kill()
            program.wait()


register_full_rings("ignores", ignore_sigtrap)
register_full_rings("blocks", block_sigtrap)


def waiting_python(t, setup):
    script = "import signal, sys\n%s\nprint('ready', flush=True)\nsys.stdin.read()\n" % setup
    return [t.program("python3"), "-c", script]


def waiting_filtered(t):
    return [t.target("gcc-O2-pie", "filtered"), "all"]


RISKS = {
    "blocks": (lambda t: waiting_python(t, "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTRAP])"),
               "a thread blocks SIGTRAP"),
    "handles": (lambda t: waiting_python(t, "signal.signal(signal.SIGTRAP, lambda *_: None)"),
                "it has its own handler of SIGTRAP, or ignores it"),
    "filters": (waiting_filtered, "a seccomp filter forbids "),  # jumps, too
    "none": (lambda t: waiting_python(t, ""), None),
}


def register_risk(name, make, reason):
    @test("killed/risk-is-said/" + name)
    def _(t):
        """Where the death of ptmem would kill the program, too, the attach says so and why: each call hits a breakpoint."""
        command = make(t)
        for way in ("break", "auto"):
            cwd = t.subdirectory()
            program = subprocess.Popen(command, cwd=cwd, env=t.environment(cwd), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            try:
                t.equal("its line", program.stdout.readline(), b"ready\n")
                attached = Attached(t, program.pid, ["--probes=" + way]).wait_attached()
                said = [line for line in attached.errors().splitlines() if "dies if ptmem is killed by SIGKILL" in line]
                attached.detach()
            finally:
                program.communicate()
            expected = reason and (way == "break" or name == "filters")
            t.equal("warnings (%s)" % said, len(said), 1 if expected else 0)
            t.check(not said or reason in said[0], "the reason: %s" % said)
            t.equal("the program's status", program.returncode, 0)


for _name, (_make, _reason) in RISKS.items():
    register_risk(_name, _make, _reason)
