"""ptmem is stopped by SIGSTOP, while the program runs on. What is lost is counted, to the last event."""

import json
import os
import re
import signal
import subprocess
import time

from harness import Fail, Profile, Result, test
from process_lib import cpu_ticks, state

SHORT = 2.0  # seconds; a pause shorter than that is none for ptmem: many programs may share the CPUs
STOP = 2.6  # longer than a pause may be
FILLS = 60  # ticks of CPU in which it allocates more than rings have room for, or samples of it
LOST = re.compile(r"^ptmem: warning: process \d+: ([\d,]+) (allocation|sample)s? of (?:about )?([\d.]+) (\w+) and (?:at least )?([\d,]+) "
                  r"releases? are missing", re.M)
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


class Lost:
    """What the message in @text says."""

    def __init__(self, text):
        found = LOST.findall(text)
        if len(found) > 1:
            raise Fail("said more than once: " + text)
        count, self.what, size, unit, releases = found[0] if found else ("0", None, "0", "B", "0")
        self.allocations, self.releases = (int(n.replace(",", "")) for n in (count, releases))
        self.bytes = float(size) * UNITS[unit]


class Steady:
    """tests/targets/steady.c under ptmem, which started it or is attached to it."""

    def __init__(self, t, threads, options=(), is_attached=False):
        self.t, self.cwd = t, t.subdirectory()
        argv = [t.target("gcc-O2-pie", "steady"), str(threads)]
        ptmem = [t.ptmem(), "--stats", "-o", "massif.out.%p", "--record=recording.%p", "--probes=jump", *options]
        self.program = self.start(argv, "program") if is_attached else None
        if is_attached:
            self.wait_ready("program")
        self.ptmem = self.start(ptmem + (["-p", str(self.program.pid)] if is_attached else ["--", *argv]), "ptmem")
        if is_attached:
            t.wait_until("ptmem to attach", lambda: "attached to process" in self.text("ptmem.err"))
        else:
            self.wait_ready("ptmem")
        self.wait_events()
        self.wait_answer()

    def path(self, name):
        return os.path.join(self.cwd, name)

    def start(self, argv, name):
        with open(self.path(name + ".out"), "wb") as out, open(self.path(name + ".err"), "wb") as err:
            return subprocess.Popen(argv, cwd=self.cwd, env=self.t.environment(self.cwd), stdin=subprocess.PIPE,
                                    stdout=out, stderr=err)

    def text(self, name):
        with open(self.path(name), encoding="utf-8", errors="replace") as file:
            return file.read()

    def output(self):
        return self.text("program.out" if self.program else "ptmem.out")

    def wait_ready(self, name):
        self.t.wait_until("the program runs", lambda: "ready\n" in self.text(name + ".out"))

    def pid(self):
        """Of the program."""
        if self.program:
            return self.program.pid
        with open("/proc/%d/task/%d/children" % (self.ptmem.pid, self.ptmem.pid), encoding="ascii") as file:
            return int(file.read().split()[0])

    def wait_events(self):
        """Until its calls go through pads."""
        def has_pads():
            with open("/proc/%d/maps" % self.pid(), encoding="utf-8") as file:
                return "memfd:" in file.read()
        self.t.wait_until("pads", has_pads)

    def is_stopped(self):
        return state(self.ptmem.pid) == "T"

    def is_waiting(self):
        """Each thread of the program sleeps, or is stopped for ptmem."""
        return {state("%d/task/%s" % (self.pid(), tid)) for tid in os.listdir("/proc/%d/task" % self.pid())} <= {"S", "t"}

    def stop(self, seconds=STOP, awaits=False):
        """Stops ptmem for so long; @awaits: from when the program waits for it."""
        begin = cpu_ticks(self.pid())
        os.kill(self.ptmem.pid, signal.SIGSTOP)
        self.t.wait_until("ptmem is stopped", self.is_stopped)
        if seconds:
            self.t.wait_until("rings to be full", lambda: cpu_ticks(self.pid()) > begin + FILLS or self.is_waiting())
        if awaits:
            self.t.wait_until("the program waits", self.is_waiting)
        end = time.monotonic() + seconds
        self.t.wait_until("%s s" % seconds, lambda: time.monotonic() >= end)

    def wait_answer(self):
        """Until the program has received a signal, and has allocated a lot since then."""
        signals = self.output().count("signal\n")
        os.kill(self.pid(), signal.SIGUSR1)
        self.t.wait_until("the program answers", lambda: self.output().count("signal\n") > signals)

    def go_on(self):
        """It reads what is in the rings, and serves the program as before."""
        os.kill(self.ptmem.pid, signal.SIGCONT)
        self.wait_answer()
        self.t.check(not self.is_stopped(), "ptmem is stopped again")

    def unserved_ms(self):
        """How long ptmem was ready to run, but other programs had the CPUs: it cannot serve the program then."""
        with open("/proc/%d/schedstat" % self.ptmem.pid, encoding="ascii") as file:
            return int(file.read().split()[1]) // 1000000

    def detach(self):
        self.ptmem.send_signal(signal.SIGINT)
        self.t.equal("status of ptmem", self.ptmem.wait(timeout=200), 0)

    def end(self):
        """The profile and the truth, after both have ended. Of its pause, for_ptmem_ms is not ptmem's waiting for a CPU."""
        t = self.t
        unserved_ms = self.unserved_ms()
        if self.program:
            self.detach()
            self.program.stdin.close()
            t.equal("status of the program", self.program.wait(timeout=200), 0)
        else:
            self.ptmem.stdin.close()
            t.equal("status", self.ptmem.wait(timeout=200), 0)
        text = self.text("ptmem.err")
        profile = Profile(Result(0, b"", text.encode()), self.cwd)
        truth = t.truth(self.cwd)
        truth["for_ptmem_ms"] = max(truth["pause_ms"] - unserved_ms, 0)
        return profile.only_stats(), truth, Lost(text)


def check_sums(t, stats, truth, lost, more):
    """All events are in the profile, or are counted as lost; @more: those of the C library, for threads."""
    t.equal("allocations", stats["allocations"] + lost.allocations, truth["allocations"] + more[0])
    t.equal("releases", stats["frees"] + stats["unknown"] + lost.releases, truth["frees"] + more[1])


def undisturbed(t, threads):
    """(allocations, releases) of the C library: a thread that ends releases what is in its cache, too. Nothing is lost."""
    stats, truth, lost = Steady(t, threads).end()
    t.equal("lost", (lost.allocations, lost.releases), (0, 0))
    more = stats["allocations"] - truth["allocations"], stats["frees"] + stats["unknown"] - truth["frees"]
    t.check(0 <= more[0] <= 2 * threads and 0 <= more[1] <= 20 * threads, "allocated and released besides: %s" % (more,))
    return more


def exact(threads, options, least, most):
    """The longest pause, in seconds, is in these bounds."""
    @test("stopped/exact/%d%s" % (threads, "".join(options)), limit=120)
    def run(t):
        more = undisturbed(t, threads)
        steady = Steady(t, threads, options)
        steady.stop(most + STOP - SHORT)
        steady.go_on()
        stats, truth, lost = steady.end()
        t.check(truth["pause_ms"] >= 1000 * least, "paused for %d ms" % truth["pause_ms"])
        t.check(truth["for_ptmem_ms"] <= 1000 * most, "paused for %d ms" % truth["for_ptmem_ms"])
        t.equal("what is lost", lost.what, "allocation")
        t.check(lost.allocations > 0 and lost.releases > 0, "nothing is lost")
        t.check(abs(lost.bytes - 100 * lost.allocations) < 0.06 * lost.bytes, "%d bytes are lost" % lost.bytes)
        check_sums(t, stats, truth, lost, more)


for some_threads in (1, 8):
    exact(some_threads, ("--max-wait=0.2",), 0.0, SHORT)
exact(8, ("--max-wait=0",), 0.0, SHORT)
exact(1, (), 0.5, 1 + SHORT)


@test("stopped/exact/attached", limit=120)
def exact_attached(t):
    """Attached: what came before and after is unknown, but the program waits no longer, and ptmem leaves as usual."""
    steady = Steady(t, 2, ("--max-wait=0.2",), is_attached=True)
    steady.stop()
    steady.go_on()
    _, truth, lost = steady.end()
    t.check(truth["for_ptmem_ms"] <= 1000 * SHORT, "paused for %d ms" % truth["for_ptmem_ms"])
    t.check(lost.allocations > 0 and lost.releases > 0, "nothing is lost")


@test("stopped/exact/not", limit=120)
def exact_short(t):
    """A stop that is shorter than --max-wait loses nothing."""
    more = undisturbed(t, 2)
    steady = Steady(t, 2, ("--max-wait=1000s",))
    steady.stop(1, awaits=True)
    steady.go_on()
    stats, truth, lost = steady.end()
    t.check(truth["pause_ms"] >= 500, "the program did not wait for ptmem")
    t.equal("lost", (lost.allocations, lost.releases), (0, 0))
    check_sums(t, stats, truth, lost, more)


def sampled(threads, interval, is_lossy, options=()):
    @test("stopped/sampled/%d/%s" % (threads, interval), limit=120)
    def run(t):
        steady = Steady(t, threads, ("--heap-sample=" + interval, *options))
        steady.stop()
        steady.go_on()
        stats, truth, lost = steady.end()
        t.check(truth["for_ptmem_ms"] <= 1000 * SHORT, "paused for %d ms" % truth["for_ptmem_ms"])
        t.equal("whether samples are lost", lost.allocations > 0, is_lossy)
        t.equal("releases that are lost", lost.releases, 0)  # half of each ring is for them
        t.equal("stops at a full ring", stats["stops at a full ring"], 0)
        calls = re.search(r"allocations  ([\d,]+) of", steady.text("ptmem.err")).group(1)
        t.check(0 <= int(calls.replace(",", "")) - truth["allocations"] <= 2 * threads, "counted: " + calls)
        check_estimate(t, stats, truth, lost, {"64K": 1 << 16, "64M": 1 << 26}[interval])


def check_estimate(t, stats, truth, lost, interval):
    """Bytes of the samples and of what is lost together are those of the program, within five standard errors."""
    error = 5 * (truth["bytes"] * interval) ** 0.5
    total = stats["bytes"] + lost.bytes
    # the message has at least two digits
    t.check(abs(total - truth["bytes"]) <= error + 0.06 * lost.bytes, "%d bytes, %d of them lost, instead of %d" %
            (total, lost.bytes, truth["bytes"]))


for some_threads in (1, 8):
    sampled(some_threads, "64K", True, ("--max-wait=0",))
sampled(8, "64M", False)  # some thousands of samples, however fast the CPU is


def signalled(name, options):
    @test("stopped/signal/" + name, limit=120)
    def run(t):
        """A signal needs the tracer: it arrives nevertheless, and ptmem stops again until it is continued."""
        steady = Steady(t, 2, options)
        steady.stop(0)
        for _ in range(3):
            steady.wait_answer()
            t.wait_until("ptmem stops again", steady.is_stopped)
        steady.go_on()
        _, truth, _ = steady.end()
        t.check(truth["allocations"] > 0, "the program did nothing")


signalled("exact", ())
signalled("sampled", ("--heap-sample=512K",))


@test("stopped/recording", limit=120)
def recording(t):
    """The recording, the massif file and lists of leaks say what is missing."""
    steady = Steady(t, 1, ("--max-wait=0", "--leak-check", "--leaks-out=leaks.json"))
    pid = steady.pid()
    steady.stop(1)
    steady.go_on()
    _, _, lost = steady.end()
    report = t.run([t.ptmem() + "-report", steady.path("recording.%d" % pid)])
    said = re.search(r"^lost +([\d,]+) allocations of .* and ([\d,]+) releases are missing", report.out.decode(), re.M)
    t.check(said, "not said: " + report.out.decode())
    t.equal("lost", [int(n.replace(",", "")) for n in said.groups()], [lost.allocations, lost.releases])
    with open(steady.path("massif.out.%d" % pid), encoding="utf-8") as file:
        desc = file.readline()
    t.check(re.match(r"desc: .*# %s allocations of " % re.escape(said.group(1)), desc), "not in " + desc)
    with open(steady.path("leaks.json"), encoding="utf-8") as file:
        missing = json.load(file).get("missing")
    t.check(missing, "leaks are not said to be doubtful")
    t.equal("missing from the leaks", [missing["allocations"], missing["releases"]], [lost.allocations, lost.releases])
    doubt = "  doubtful: %s allocations of " % said.group(1)
    t.check(doubt in steady.text("ptmem.err"), "no line %r: %s" % (doubt, steady.text("ptmem.err")))
