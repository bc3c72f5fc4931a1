"""--stacks=yes: the bytes of stack in snapshots are those that the program itself reports."""

import itertools
import os
import re
import signal
import struct
import subprocess

import massif
from harness import HERE, MORE_OPTIONS, Fail, test

VARIANT = "gcc-O2-pie"
# Every event is a snapshot and all are kept.
ALL = ["--stacks=yes", "--time-unit=B", "--max-snapshots=1000", "--detailed-freq=1000"]
CALLS_ONLY = [*ALL, "--stack-sample=no"]
# Far below what the program hides, far above what main and libc need.
SHALLOW, HIDDEN = 65536, 800000


def truths(cwd):
    """{pid: [(size, bytes of all stacks)]}"""
    found = {}
    with open(os.path.join(cwd, "truth"), encoding="utf-8") as file:
        for line in file:
            word = line.split()
            if word[0] == "pid":
                calls = found[int(word[1])] = []
            elif word[0] == "stack:":
                calls.append((int(word[1]), int(word[2])))
    return found


def only_truth(cwd):
    [calls] = truths(cwd).values()
    return calls


def check_calls(t, what, snapshots, calls):
    """When @size bytes were allocated, the stacks were as the program reports."""
    stacks_at = {}
    for last, this in zip(snapshots, snapshots[1:]):
        stacks_at[this["mem_heap_B"] - last["mem_heap_B"]] = this["mem_stacks_B"]
    t.check(len(snapshots) < 1000, "%s: snapshots were dropped" % what)
    t.check(calls, "%s: no truth" % what)
    wrong = ["%d: %s, not %d" % (size, stacks_at.get(size), bytes_) for size, bytes_ in calls
             if stacks_at.get(size) != bytes_]
    t.check(not wrong, "%s: stacks at the call for %s" % (what, "; ".join(wrong)))


def run(t, variant, mode, options=CALLS_ONLY, status=0):
    profile = t.profile([t.target(variant, "stackuse"), mode], options)
    t.equal("status (%s)" % profile.err, profile.status, status)
    return profile


@test("stacks/calls", limit=120)
def calls(t):
    for variant in (VARIANT, "clang-O0-nopie"):
        for mode in ("plain", "deep", "alternate", "threads"):
            for probes in ("auto", "break", "jump"):
                profile = run(t, variant, mode, [*CALLS_ONLY, "--probes=" + probes])
                check_calls(t, "%s %s %s" % (variant, mode, probes), profile.only_massif().snapshots,
                            only_truth(profile.directory))


@test("stacks/massif")
def massif_agrees(t):
    """Massif, asked before each call, says what the program knows, as ptmem does. (Massif 3.19 fails where a
    handler has returned.)"""
    cwd = t.subdirectory()
    peer = t.run([t.program("valgrind"), "-q", "--tool=massif", "--read-inline-info=no", "--stacks=yes", "--massif-out-file=valgrind.out",
                  t.target("peer-gcc-O2", "stackuse"), "plain"], cwd=cwd, env={"MASSIF": "1"})
    t.equal("valgrind's status (%s)" % peer.err, peer.status, 0)
    for size, bytes_ in only_truth(cwd):
        [snapshot] = massif.Massif(os.path.join(cwd, "stack.%d" % size)).snapshots
        t.equal("stacks at the call for %d" % size, snapshot["mem_stacks_B"], bytes_)


@test("stacks/sampled-between-calls")
def sampled_too(t):
    """Samples between the calls come on top: at each call the numbers are the same."""
    for mode in ("deep", "threads"):
        profile = run(t, VARIANT, mode, [*ALL, "--stack-sample=1"])
        wanted = dict(only_truth(profile.directory))
        stacks_at = {}
        snapshots = profile.only_massif().snapshots
        for last, this in zip(snapshots, snapshots[1:]):
            stacks_at[this["mem_heap_B"] - last["mem_heap_B"]] = this["mem_stacks_B"]
        if mode == "deep":
            check_calls(t, mode, snapshots, list(wanted.items()))
        t.check(set(wanted) <= set(stacks_at), "%s: calls are missing" % mode)


STOPS = 20  # of slope told: levels where it waits
SAMPLES = 3  # that must come until it may go on


def sampled_levels(t, cwd, probes, times):
    """The words of the events' lines. They come late, so that some samples may be of the level before."""
    os.mkfifo(os.path.join(cwd, "fifo"))
    ptmem = subprocess.Popen([t.ptmem(), "-q", "--stacks=yes", "--heap=no", "--stack-sample=1", "--events=fifo", "--probes=" + probes,
                              t.target(VARIANT, "stackuse"), "slope", str(times), "told"],
                             cwd=cwd, env=t.environment(cwd), stdin=subprocess.PIPE, bufsize=0)
    told = samples = 0
    began = False
    with open(os.path.join(cwd, "fifo"), encoding="ascii") as file:
        for line in file:
            word = line.split()
            began = began or word[0] == "a" and int(word[6]) == 64  # a call of the first level
            samples += began and word[0] == "t"
            if samples == SAMPLES * (told + 1) and told < STOPS:
                told += ptmem.stdin.write(b"x")
            yield word
    ptmem.stdin.close()
    t.equal("status", ptmem.wait(), 0)
    t.equal("stops that the program left", told, STOPS)


@test("stacks/sampled-calls", limit=120)
def sampled_calls(t):
    """Samples know nothing of what ptmem itself has on the stack, and come in the order of the calls."""
    for probes, times in (("break", 30), ("jump", 1000)):
        cwd = t.subdirectory()
        lines = list(sampled_levels(t, cwd, probes, times))
        with open(os.path.join(cwd, "truth"), encoding="ascii") as file:
            levels = [int(line.split()[1]) for line in file if line.startswith("level: ")]
        (first, outside), (last, _) = only_truth(cwd)
        # between two levels stand a return address and, one after the other, the registers that a function saves: the
        # first push into a new page takes a fault, and with it often the sample
        fits = {bytes_ + 8 * words for bytes_ in [*levels, outside] for words in range(1 + 1 + 6)}
        seen, place, samples = [], 0, 0
        for word in lines:
            if word[0] == "a" and int(word[6]) in (first, last):
                place += 1
            elif place == 1 and word[0] == "s":
                seen.append(int(word[5]))
            samples += place == 1 and word[0] == "t"
        t.check(samples >= STOPS * SAMPLES, "%s: only %d samples" % (probes, samples))
        strange = [s for s in seen if s not in fits]
        t.check(not strange, "%s: %d of %d sums are of no level: %s" % (probes, len(strange), len(seen), strange[:9]))
        deepest = seen.index(max(seen))
        t.check(seen[deepest] >= levels[-1], "%s: the last level is missing" % probes)
        back = [b for a, b in zip(seen[:deepest], seen[1:]) if b < a - 8]
        t.check(not back, "%s: the stack shrank while it grew: %s" % (probes, back[:9]))


@test("stacks/sampled-sleep", limit=120)
def sampled_sleep(t):
    """A thread that is sampled while it sleeps may be elsewhere when its stack pointer was read: no late sample counts."""
    late = ["strace", "-qq", "-o", "/dev/null", "-e", "trace=close", "-e", "inject=close:delay_exit=1000"]
    for probes in ("break", "jump"):
        cwd = t.subdirectory()
        run = t.run([*late, t.ptmem(), "--stacks=yes", "--heap=no", "--stack-sample=1", "--events=events", "--probes=" + probes,
                     t.target(VARIANT, "stackuse"), "slope", "2", "sleep"], cwd=cwd)
        t.equal("status (%r)" % run.err, run.status, 0)
        with open(os.path.join(cwd, "events"), encoding="ascii") as file:
            words = [line.split() for line in file]
        main = [w[0] for w in words].index("a")  # before it the dynamic linker goes as deep, and returns
        seen = [int(w[5]) for w in words[main:] if w[0] == "s"]
        t.check(sum(w[0] == "t" for w in words) > 20, "%s: there are no samples" % probes)
        grown = seen[:seen.index(max(seen))]
        back = [(a, b) for a, b in zip(grown, grown[1:]) if b < a - 1000]
        t.check(not back, "%s: the stack shrank while it grew: %s" % (probes, back[:9]))


@test("stacks/ends")
def leader_ends(t):
    profile = run(t, VARIANT, "leader", status=7)
    check_calls(t, "leader", profile.only_massif().snapshots, only_truth(profile.directory))


@test("stacks/fork")
def forks(t):
    for mode in ("fork", "thread-fork"):
        profile = run(t, VARIANT, mode)
        found = truths(profile.directory)
        t.equal("%s: processes" % mode, len(found), 2)
        t.equal("%s: processes with a file" % mode, sorted(profile.files), sorted(found))
        for pid, wanted in found.items():
            check_calls(t, "%s, %d" % (mode, pid), massif.Massif(profile.files[pid][0]).snapshots, wanted)


@test("stacks/exec")
def execs(t):
    """The new image begins with its own stack."""
    program = t.target(VARIANT, "stackuse")
    profile = t.profile(["/bin/sh", "-c", "exec %s deep" % program], [*CALLS_ONLY, "--trace-children=yes"])
    t.equal("status", profile.status, 0)
    [(pid, wanted)] = truths(profile.directory).items()
    check_calls(t, "exec", massif.Massif(profile.files[pid][0]).snapshots, wanted)


@test("stacks/accounting")
def accounting(t):
    """Snapshots by doc/massif.md 2.2, recounted: B time, and the peak of heap, extra and stacks together."""
    profile = run(t, VARIANT, "deep", [*CALLS_ONLY, "--peak-inaccuracy=0", "--peak-at-exit=no"])
    last, peak, attempts = None, 0, 0
    for s in profile.only_massif().snapshots:
        total = s["mem_heap_B"] + s["mem_heap_extra_B"] + s["mem_stacks_B"]
        if last:
            heap = s["mem_heap_B"] + s["mem_heap_extra_B"] - last["mem_heap_B"] - last["mem_heap_extra_B"]
            stacks = s["mem_stacks_B"] - last["mem_stacks_B"]
            t.check(heap == 0 or stacks == 0, "two changes at once")
            t.equal("time that passed", s["time"] - last["time"], abs(heap) + abs(stacks))
            is_shrink = heap < 0 or stacks < 0
            before = last["mem_heap_B"] + last["mem_heap_extra_B"] + last["mem_stacks_B"]
            t.check(not is_shrink or before <= peak, "a peak of %d was missed" % before)
            attempts += is_shrink
        if s["kind"] != "empty" and "tree" in s and total > peak and last and s["time"] == last["time"]:
            peak = total
        last = s
    t.check(attempts > 20, "the stacks never shrank")


@test("stacks/heap-no")
def without_heap(t):
    profile = run(t, VARIANT, "deep", [*CALLS_ONLY, "--heap=no"])
    found = profile.only_massif().snapshots
    t.check(all(s["mem_heap_B"] == 0 and s["mem_heap_extra_B"] == 0 for s in found), "there is heap")
    wanted = [bytes_ for _, bytes_ in only_truth(profile.directory)]
    seen = iter(s["mem_stacks_B"] for s in found)
    repeated = [b for i, b in enumerate(wanted) if i == 0 or b != wanted[i - 1]]
    t.check(all(b in seen for b in repeated), "depths are missing, or not in their order")
    plain = run(t, VARIANT, "deep", ["--heap=no", "--time-unit=B"])
    t.equal("snapshots of nothing", len(plain.only_massif().snapshots), 1)


@test("stacks/desc")
def described(t):
    profile = run(t, VARIANT, "deep", ["--stack-sample=no", "--massif:stacks=yes", "--time-unit=B"])
    most = max(bytes_ for _, bytes_ in only_truth(profile.directory))
    t.equal("the summary's bytes", profile.only_stats()["peak stack bytes"], most)
    t.check("ptmem:   stack use    at most {:,} bytes".format(most) in profile.messages, "no line in the summary")
    t.equal("desc", profile.only_massif().desc, "--stacks=yes --time-unit=B")


@test("stacks/replay")
def replayed(t):
    profile = run(t, VARIANT, "deep", [*CALLS_ONLY, "--events=events"])
    again = t.run([t.ptmem(), *CALLS_ONLY, "--replay=events", "-o", "again"], cwd=profile.directory)
    t.equal("status", again.status, 0)
    keys = ("time", "mem_heap_B", "mem_heap_extra_B", "mem_stacks_B", "kind")
    brief = lambda snapshots: [[s[k] for k in keys] for s in snapshots]
    t.equal("snapshots of the replay", brief(massif.Massif(os.path.join(profile.directory, "again")).snapshots),
            brief(profile.only_massif().snapshots))
    t.run([t.ptmem(), "--time-unit=B", "--replay=events", "-o", "without"], cwd=profile.directory)
    without = massif.Massif(os.path.join(profile.directory, "without")).snapshots
    t.equal("stacks where none are wanted", {s["mem_stacks_B"] for s in without}, {0})


class Waiting:
    """stackuse, which prints where it is and waits; and ptmem, which answers --monitor."""

    def __init__(self, t, mode, options, attach=False):
        self.t, self.cwd = t, t.subdirectory()
        self.env = t.environment(self.cwd, XDG_RUNTIME_DIR=self.cwd)
        program = [t.target(VARIANT, "stackuse"), *mode]
        own = [t.ptmem(), *MORE_OPTIONS, *options]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        start = program if attach else [*own, "--", *program]
        self.first = self.ptmem = subprocess.Popen(start, cwd=self.cwd, env=self.env, **pipes)
        match = re.match(rb"at (\d+)\n", self.first.stdout.readline())
        t.check(match, "the program does not say where it is")
        self.bytes = int(match.group(1))
        if attach:
            self.ptmem = subprocess.Popen([*own, "-p", str(self.first.pid)], cwd=self.cwd, env=self.env, **pipes)
        t.wait_until("ptmem to listen", lambda: os.path.exists(
            os.path.join(self.cwd, "ptmem", "%d.sock" % self.ptmem.pid)))

    def now(self):
        answer = self.t.run([self.t.ptmem(), "--monitor=%d" % self.ptmem.pid, "snapshot", "now"], cwd=self.cwd,
                            env={"XDG_RUNTIME_DIR": self.cwd})
        self.t.equal("status of --monitor", answer.status, 0)
        return massif.Massif(os.path.join(self.cwd, "now")).snapshots[0]["mem_stacks_B"]

    def end(self):
        self.t.file(os.path.join(self.cwd, "go"), "")
        _, err = self.first.communicate(b"x", timeout=200)
        self.t.equal("status of the program (%s)" % err, self.first.returncode, 0)
        if self.ptmem is not self.first:
            self.ptmem.communicate(timeout=200)
            self.t.equal("status of ptmem", self.ptmem.returncode, 0)
        files = [f for f in os.listdir(self.cwd) if f.startswith("massif.out.")]
        self.t.equal("profiles", len(files), 1)
        return massif.Massif(os.path.join(self.cwd, files[0])).snapshots


def hidden(t, mode):
    """A deep recursion without any call of malloc: samples show it, to the byte."""
    waiting = Waiting(t, ["hidden", *mode], ["--stacks=yes", "--time-unit=B", "--peak-inaccuracy=0"])
    t.check(waiting.bytes > HIDDEN, "the program hides only %d bytes" % waiting.bytes)
    other = 4096 if mode[1:] else 0  # main's: it waits for the thread, somewhere in pthread_join
    fits = range(waiting.bytes + bool(other), waiting.bytes + other + 1)
    t.wait_until("the stack to show", lambda: waiting.now() in fits)
    snapshots = waiting.end()
    most = max(s["mem_stacks_B"] for s in snapshots)
    t.check(most in fits, "at most %d, of %s" % (most, fits))
    [peak] = [s for s in snapshots if s["kind"] == "peak"]
    t.check(peak["mem_stacks_B"] in fits, "at the peak %d, of %s" % (peak["mem_stacks_B"], fits))


@test("stacks/hidden-running")
def hidden_running(t):
    hidden(t, ["spin"])


@test("stacks/hidden-sleeping")
def hidden_sleeping(t):
    hidden(t, ["sleep"])


@test("stacks/hidden-thread-running")
def hidden_thread_running(t):
    hidden(t, ["spin", "thread"])


@test("stacks/hidden-thread-sleeping")
def hidden_thread_sleeping(t):
    hidden(t, ["sleep", "thread"])


@test("stacks/no-clock")
def no_clock(t):
    """Without samples it is not seen."""
    for period in ("0", "no"):
        waiting = Waiting(t, ["hidden", "spin"], [*ALL, "--stack-sample=" + period])
        t.check(waiting.bytes > HIDDEN, "the program hides only %d bytes" % waiting.bytes)
        most = max(s["mem_stacks_B"] for s in waiting.end())
        t.check(0 < most < SHALLOW, "%d bytes of stack at calls" % most)


@test("stacks/attach")
def attached(t):
    """The stacks that are there at the attach count at once, and further ones as usual."""
    for probes in ("break", "jump"):
        waiting = Waiting(t, ["waiting"], [*CALLS_ONLY, "--probes=" + probes], attach=True)
        t.equal("stacks at the attach", waiting.now(), waiting.bytes)
        snapshots = waiting.end()
        check_calls(t, "attached, " + probes, snapshots, only_truth(waiting.cwd))


@test("stacks/attach-clock")
def attached_with_clock(t):
    waiting = Waiting(t, ["waiting"], [*ALL, "--stack-sample=1"], attach=True)
    t.equal("stacks at the attach", waiting.now(), waiting.bytes)
    waiting.end()


@test("stacks/detach")
def detached(t):
    """Threads that samples stop continue: the program ends as without ptmem."""
    waiting = Waiting(t, ["hidden", "spin"], [*ALL, "--stack-sample=1"], attach=True)
    t.wait_until("the stack to show", lambda: waiting.now() == waiting.bytes)
    waiting.ptmem.send_signal(signal.SIGINT)
    waiting.ptmem.communicate(timeout=200)
    t.equal("status of ptmem", waiting.ptmem.returncode, 0)
    waiting.ptmem = waiting.first
    snapshots = waiting.end()
    t.equal("the most", max(s["mem_stacks_B"] for s in snapshots), waiting.bytes)


@test("stacks/pages")
def with_pages(t):
    """As with Massif: a warning, and both are counted."""
    waiting = Waiting(t, ["hidden", "spin"], ["--stacks=yes", "--pages-as-heap=yes", "--time-unit=B"])
    t.wait_until("the stack to show", lambda: waiting.now() == waiting.bytes)
    snapshots = waiting.end()
    t.check(max(s["mem_heap_B"] for s in snapshots) > waiting.bytes, "pages are missing")


@test("stacks/pages-warning")
def pages_warning(t):
    program = t.target(VARIANT, "empty")
    both = t.profile([program], ["--stacks=yes", "--pages-as-heap=yes"])
    t.check(any("--pages-as-heap=yes and --stacks=yes" in m for m in both.messages), "no warning")
    none = t.profile([program], ["--pages-as-heap=yes", "--heap=no"])
    t.equal("heap without heap", {s["mem_heap_B"] for s in none.only_massif().snapshots}, {0})


@test("stacks/many-threads", limit=120)
def many_threads(t):
    """The stack of a thread is removed when it ends: after all of them only main's stack is left."""
    for mode in ("alive", "quick"):
        profile = t.profile([t.target(VARIANT, "threads_many"), mode, "500"],
                            ["--stacks=yes", "--events=events"])
        if profile.status != 0:
            raise Fail("%s: status %d: %s" % (mode, profile.status, profile.err))
        with open(os.path.join(profile.directory, "events"), encoding="ascii") as file:
            sums = [int(line.split()[5]) for line in file if line[0] == "s"]
        most, last = max(sums), sums[-1]
        t.check(last < 4096, "%s: %d bytes of stack are left" % (mode, last))
        t.check((mode == "alive") == (most > 500 * 100), "%s: at most %d bytes" % (mode, most))


@test("stacks/memusage")
def memusage_peak(t):
    """The stack peak of memusage: main's from the very beginning, to the byte, also where all calls are deep."""
    for probes in ("break", "jump"):
        profile = t.profile([t.target(VARIANT, "stackuse"), "plain"], [
            "--memusage", "--heap=no", "--no-timer", "--data=data", "--events=events", "--probes=" + probes])
        most = max(bytes_ for _, bytes_ in only_truth(profile.directory))
        peak = re.search(rb"stack peak: (\d+)", profile.err)
        t.equal("stack peak", int(peak.group(1)), most)
        again = t.run([t.ptmem(), "--replay=events", "--memusage", "-o", "again"], cwd=profile.directory)
        t.equal("stack peak of the replay", re.search(rb"stack peak: \d+", again.err).group(0), peak.group(0))


@test("stacks/memusage-others", limit=120)
def memusage_others(t):
    """What calls on other stacks say nothing of: main's own stack, a thread's, one that the program gave it."""
    for flags in (["-O2"], ["-O0", "-static"]):
        program = os.path.join(t.subdirectory(), "otherstacks")
        t.equal("compiler", t.run(["gcc", *flags, "-w", "-fno-builtin", "-pthread", "-D_GNU_SOURCE", "-o", program,
                                   os.path.join(HERE, os.pardir, "targets", "otherstacks.c")]).status, 0)
        for who, where, before in itertools.product(
                ("main", "thread", "given"), ("mapped", "heap"), ([], ["setarch", "-R"], ["setarch", "-L"])):
            cwd = t.subdirectory()
            for probes in ("break", "jump"):
                run = t.run([*before, t.ptmem(), "-q", "--memusage", "--heap=no", "--no-timer", "--data=data",
                             "--events=events", "--probes=" + probes, program, who, where],
                            cwd=cwd, env={"TRUTH": "truth"})
                with open(os.path.join(cwd, "truth"), encoding="ascii") as file:
                    want = file.read().replace("peak", "stack peak").strip()
                what = "%s %s %s %s %s" % (flags, who, where, before, probes)
                t.check(want in run.err.decode(), "%s: not %s: %r" % (what, want, run.err))
                with open(os.path.join(cwd, "data"), "rb") as file:
                    found = [d for _, d, _ in struct.iter_unpack("<QQQ", file.read())]
                t.equal("%s: peak in the data file" % what, max(found[2:]), found[1])
            again = t.run([t.ptmem(), "-q", "--replay=events", "--memusage", "-o", "again"], cwd=cwd)
            t.check(want in again.err.decode(), "%s: replay: %r" % (what, again.err))
    pads = t.profile([t.target(VARIANT, "otherstacks"), "given"], ["--memusage", "--heap=no", "--probes=jump"])
    t.equal("status", pads.status, 0)


@test("stacks/memusage-static")
def static_elsewhere(t):
    """--stacks=yes where no mapping is near below the own stack: another stack is not taken for it."""
    program = os.path.join(t.subdirectory(), "otherstacks")
    t.run(["gcc", "-O2", "-static", "-w", "-fno-builtin", "-pthread", "-D_GNU_SOURCE", "-o", program,
           os.path.join(HERE, os.pardir, "targets", "otherstacks.c")])
    for where in ("mapped", "heap"):
        run = t.run(["setarch", "-L", t.ptmem(), "-q", *CALLS_ONLY, "-o", "out", program, "main", where])
        most = max(s["mem_stacks_B"] for s in massif.Massif(os.path.join(run.cwd, "out")).snapshots)
        t.check(60000 < most < 120000, "%s: %d bytes of stacks" % (where, most))


@test("stacks/memusage-clock")
def memusage_clock(t):
    """Depths that no call shows come by the clock, in the data file, too; not with --no-timer."""
    for options in ([], ["--no-timer"], ["--no-timer", "--stacks=yes"]):
        waiting = Waiting(t, ["hidden", "spin"], ["--memusage", "--data=data", "--data-buffer=1", *options])

        def deepest():
            with open(os.path.join(waiting.cwd, "data"), "rb") as file:
                found = file.read()
            return max((struct.unpack_from("<Q", found, at + 8)[0] for at in range(48, len(found) - 23, 24)),
                       default=0)

        if not options:
            t.wait_until("the depth in the data file", lambda: deepest() == waiting.bytes)
        elif "--stacks=yes" in options:
            t.wait_until("the stack to show", lambda: waiting.now() == waiting.bytes)
        waiting.end()
        t.check((deepest() == waiting.bytes) == (not options), "%s: %d in the data file" % (options, deepest()))


DEEP = """
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((noinline)) static void deep(int by_signal)
{
	volatile char bytes[300000];

	memset((void *)bytes, 1, sizeof(bytes));
	if (by_signal)
		abort();
	_exit(0);
}

int main(int argc, char **argv)
{
	free(malloc(10));
	deep(argc > 1);
}
"""


@test("stacks/at-exit")
def at_exit(t):
    """What the stack is at the exit, far below that of the last call, counts without a sample of a timer."""
    program = os.path.join(t.subdirectory(), "deep")
    t.equal("gcc", t.run(["gcc", "-O1", "-fno-builtin", "-o", program, t.file("deep.c", DEEP)]).status, 0)
    for words, status in (([], 0), (["abort"], -signal.SIGABRT)):
        first, second = (t.profile([program, *words], CALLS_ONLY) for _ in range(2))
        t.equal("status", (first.status, second.status), (status, status))
        stacks = [s["mem_stacks_B"] for s in first.only_massif().snapshots]
        t.check(300000 < stacks[-1] < 310000 and max(stacks[:-3]) < 10000, "stacks by snapshot: %s" % stacks)
        t.equal("in each run", [s["mem_stacks_B"] for s in second.only_massif().snapshots], stacks)
