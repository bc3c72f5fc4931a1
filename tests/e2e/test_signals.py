"""Signals, waits and job control: the targets check themselves and print OK."""

import os
import re
import signal
import subprocess
import time

import harness
from harness import test
from process_lib import Attached

BOTH = ("gcc-O2-pie", "clang-O0-nopie")


def register(variant, program, *args, limit=60):
    @test("signals/%s/%s" % (variant, "-".join((program,) + args)), limit=limit)
    def _(t):
        argv = [t.target(variant, program), *args]
        profile = t.profile(argv)
        t.equal("standard error", profile.err, b"")
        t.equal("standard output", profile.out, b"OK\n")
        t.equal("status", profile.status, 0)
        if program != "jobcontrol":
            truth = dict(t.truth(profile.directory))
            if truth["peak"] is not None:
                t.counts("ptmem and the truth", profile.stats[-1], truth)  # children end before


for v in BOTH:
    for mode in ("timer", "allocate", "queue", "nested"):
        register(v, "signals", mode)
    register(v, "eintr")
    register(v, "jobcontrol")
    register(v, "sigtrap")
for mode in ("timer", "allocate", "queue", "nested"):
    register("musl-O2-static", "signals", mode)


@test("signals/lost-handler")
def lost_handler(t):
    """A known limit (ptmem.1, CAVEATS): the kernel removes a handler of SIGTRAP when a thread that
    blocks all signals hits a breakpoint. ptmem says so, once, and keeps the mask."""
    cwd = t.subdirectory()
    target = subprocess.Popen([t.target("gcc-O2-pie", "sigmask"), "serve"], cwd=cwd, env=t.environment(cwd),
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    t.equal("its first line", target.stdout.readline(), b"ready\n")
    attached = Attached(t, target.pid, ["--probes=break"])
    said = "process %d no longer handles SIGTRAP" % target.pid
    t.wait_until("the warning", lambda: said in attached.errors() or attached.process.poll() is not None)
    os.write(target.stdin.fileno(), b"x")
    t.equal("its answer", target.stdout.readline(), b"used\n")  # at many breakpoints, with all signals blocked
    stats = attached.detach().only_stats()
    t.equal("warnings", attached.errors().count(said), 1)
    t.check(stats["signal masks restored"] > 1, "masks restored: %d" % stats["signal masks restored"])
    out, _ = target.communicate(timeout=200)
    t.equal("status", target.returncode, 0)
    t.equal("its output", out, b"OK\n")


@test("signals/socket-timeout")
def socket_timeout(t):
    """A wait at a socket that has a timeout ends by that, not because ptmem attaches, detaches or stops all threads."""
    cwd = t.subdirectory()
    target = subprocess.Popen([t.target("gcc-O2-pie", "eintr"), "socket"], cwd=cwd, env=t.environment(cwd),
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    for options in (["--probes=break"], [], ["--heap-sample=1K"]):
        Attached(t, target.pid, options).wait_attached().detach()
    out, err = target.communicate(b"x", timeout=200)
    t.equal("its output", (out, err, target.returncode), (b"OK\n", b"", 0))


@test("signals/trap-open")
def trap_open(t):
    """A thread that handles SIGTRAP and blocks all other signals keeps its mask and its handler."""
    for probes in ("auto", "break", "jump"):
        for variant in ("gcc-O2-pie", "clang-O0-nopie"):
            profile = t.profile([t.target(variant, "sigmask"), "open"], ["--probes=" + probes])
            t.equal("status under %s (%r)" % (probes, profile.err), profile.status, 0)
            stats = profile.only_stats()
            t.equal("masks restored under " + probes, stats["signal masks restored"], 0)
            t.counts("allocations under " + probes, stats, t.truth(profile.directory))


@test("signals/killed-by")
def killed_by(t):
    """The line about the signal that a shell prints: only if there was one, and not with -q. The profile is as ever."""
    for script, line in (("kill -SEGV $$", "SIGSEGV"), ("kill -KILL $$", "SIGKILL"), ("kill -40 $$", "signal 40"), ("exit 3", None)):
        for options in ((), ("-q",)):
            run = t.run([t.ptmem(), *options, "--massif-out-file=m", "--", "/bin/sh", "-c", script])
            lines = [l for l in run.err.decode().splitlines() if "killed by" in l]
            wanted = ["ptmem:   killed by    " + line] if line and not options else []
            t.equal("%s: lines" % script, [l.replace(" (core dumped)", "") for l in lines], wanted)
            t.check(os.path.exists(os.path.join(run.cwd, "m")), "no profile")
            if not line:
                t.equal("status", run.status, 3)


# ---- a program that ptmem started, seen from outside ----


class Started:
    """ptmem with a server target below it; both killed at the end."""

    def __init__(self, t, options=()):
        self.t = t
        self.cwd = t.subdirectory()
        argv = [t.ptmem(), "--stats", *harness.MORE_OPTIONS, *options, "--", t.target("gcc-O2-pie", "server"), "4"]
        with open(os.path.join(self.cwd, "stderr"), "wb") as err:
            self.ptmem = subprocess.Popen(argv, cwd=self.cwd, env=t.environment(self.cwd), stdin=subprocess.PIPE,
                                          stdout=subprocess.PIPE, stderr=err)
        t.wait_until("the target to start", lambda: os.path.exists(os.path.join(self.cwd, "truth")))
        self.pid = self.child()

    def child(self):
        return harness.child_that_runs(self.ptmem.pid, "server")

    def end(self, status=0):
        """Ends the server by its own command; returns the Profile."""
        self.ptmem.stdin.write(b"q")
        self.ptmem.stdin.close()
        self.t.equal("status of ptmem", self.ptmem.wait(timeout=200), status)
        return self.profile()

    def profile(self):
        with open(os.path.join(self.cwd, "stderr"), "rb") as file:
            return harness.Profile(harness.Result(self.ptmem.returncode, b"", file.read()), self.cwd)

    def is_dead(self):
        try:
            with open("/proc/%d/stat" % self.pid, encoding="ascii") as file:
                return file.read().rsplit(")", 1)[1].split()[0] in "ZX"
        except FileNotFoundError:
            return True

    def progress(self):
        """Events written so far: the server's own count on request."""
        before = len(self.t.truths(self.cwd))
        self.ptmem.stdin.write(b"r")
        self.ptmem.stdin.flush()
        self.t.wait_until("the server to answer", lambda: len(self.t.truths(self.cwd)) > before)
        return self.t.truth(self.cwd)["allocations"]


def switches(pid):
    """How often each thread of @pid came off its CPU, None for one that is not stopped."""
    seen = {}
    for tid in os.listdir("/proc/%d/task" % pid):
        try:
            with open("/proc/%d/task/%s/status" % (pid, tid), encoding="ascii") as file:
                status = dict(line.split(":\t", 1) for line in file)
        except (FileNotFoundError, ProcessLookupError):  # one that is not stopped has ended
            status = {"State": "X"}
        seen[tid] = (status["voluntary_ctxt_switches"], status["nonvoluntary_ctxt_switches"]) if status["State"][0] in "Tt" else None
    return seen


def stays_stopped(pid):
    """No thread runs for 0.2 s. Any of ptmem's own stops is over by then, and timers tick at 1 kHz."""
    before = switches(pid)
    time.sleep(0.2)
    return None not in before.values() and switches(pid) == before


@test("signals/stopped-from-outside")
def stopped(t):
    """SIGSTOP stops all threads of the target, SIGCONT resumes them, again and again."""
    run = Started(t)
    for _ in range(10):
        before = run.progress()
        os.kill(run.pid, signal.SIGSTOP)
        t.wait_until("a stop that lasts", lambda: stays_stopped(run.pid))
        os.kill(run.pid, signal.SIGCONT)
        t.wait_until("progress after SIGCONT", lambda: run.progress() > before)
    profile = run.end()
    t.counts("the server", profile.only_stats(), {"live": profile.only_stats()["live"]})


@test("signals/killed-from-outside")
def killed(t):
    """SIGKILL of the target: the profile up to then, and ptmem ends likewise."""
    run = Started(t)
    time.sleep(0.2)
    os.kill(run.pid, signal.SIGKILL)
    t.equal("status of ptmem", run.ptmem.wait(timeout=200), -signal.SIGKILL)
    run.ptmem.stdin.close()
    run.profile().only_massif()


@test("signals/terminated-from-outside")
def terminated(t):
    run = Started(t)
    os.kill(run.pid, signal.SIGTERM)
    t.equal("status of ptmem", run.ptmem.wait(timeout=200), -signal.SIGTERM)
    run.ptmem.stdin.close()
    run.profile().only_massif()


@test("signals/ptmem-killed")
def ptmem_killed(t):
    """A program that ptmem started dies with it."""
    run = Started(t)
    run.ptmem.kill()
    run.ptmem.wait()
    run.ptmem.stdin.close()
    t.wait_until("the target to die", run.is_dead)


@test("signals/interrupt-group")
def interrupt(t):
    """Ctrl-C reaches both: the target dies of it, ptmem writes the profile and ends likewise."""
    cwd = t.subdirectory()
    with open(os.path.join(cwd, "stderr"), "wb") as err:
        ptmem = subprocess.Popen([t.ptmem(), "--stats", *harness.MORE_OPTIONS, "--", t.target("gcc-O2-pie", "server"), "2"], cwd=cwd,
                                 env=t.environment(cwd), stdin=subprocess.PIPE, stderr=err, process_group=0)
    t.wait_until("the target to start", lambda: os.path.exists(os.path.join(cwd, "truth")))
    os.killpg(ptmem.pid, signal.SIGINT)
    t.equal("status of ptmem", ptmem.wait(timeout=200), -signal.SIGINT)
    ptmem.stdin.close()
    with open(os.path.join(cwd, "stderr"), "rb") as file:
        harness.Profile(harness.Result(ptmem.returncode, b"", file.read()), cwd).only_massif()


for _probes in ("auto", "jump"):
    @test("signals/nested-handlers/" + _probes)
    def nested_handlers(t, probes=_probes):
        """A handler interrupts a pad, another one the first: its calls must not use what the pad is about to finish."""
        run = t.run([t.ptmem(), "--probes=" + probes, *harness.MORE_OPTIONS, "--", t.target("gcc-O2-pie", "handlers")])
        t.equal("status (%r)" % run.err, run.status, 0)
        own = re.fullmatch(rb"allocations=(\d+) frees=(\d+)\n", run.out)
        found = re.search(rb"allocations +([\d,]+) of [\d,]+ bytes, 0 reallocs, ([\d,]+) frees, 0 failed", run.err)
        t.check(found, "no summary: %r" % run.err)
        t.equal("allocations and frees", [int(n.replace(b",", b"")) for n in found.groups()], [int(n) for n in own.groups()])
