"""Times of events, beside the program's own log of what the clock said before and after each call (targets/timed.c).

The bound is 10 us: for 99 of 100 events of an exact profile, and for every sample. Without the CPU's counter it is 100 us
for 99 of 100 events if ptmem may have real-time priority, else what the summary says.
"""

import bisect
import contextlib
import gzip
import os
import re
import struct
import subprocess
import time

from harness import BUILD, Skip, report, report_json, test

BOUND = 10000
ENTRY = struct.Struct("<QQQII")
MODES = ("dense", "steady", "bursts", "short", "sleepy", "slow")


def read_log(path):
    """{(thread, address, size): [(before, after)]}; size 0: a release."""
    found = {}
    with open(path, "rb") as file:
        for before, after, addr, thread, size in ENTRY.iter_unpack(file.read()):
            found.setdefault((thread, addr, size), []).append((before, after))
    return found


def read_events(path):
    """[(time, (thread, address, size))] of an events file."""
    found = []
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            word = line.split(" ")
            if word[0] == "a":
                found.append((int(word[1]), (int(word[2]), int(word[5], 16), int(word[6]))))
            elif word[0] in "fj":
                found.append((int(word[1]), (int(word[2]), int(word[5], 16), 0)))
    return found


def distance(at, call):
    return max(call[0] - at, at - call[1], 0)


def errors(log, events, is_sampled):
    """ns between each event of @events and its call. A block's address and size may come again: in order; a sample's is
    the nearest one."""
    found, next_of = [], {}
    for at, key in events:
        calls = log.get(key)
        if not calls:
            continue
        if is_sampled:
            i = bisect.bisect(calls, (at, at))
            found.append(min(distance(at, call) for call in calls[max(i - 1, 0):i + 1]))
        else:
            i = next_of[key] = next_of.get(key, -1) + 1
            if i < len(calls):
                found.append(distance(at, calls[i]))
    return sorted(found)


@contextlib.contextmanager
def load(t, count, prefix=()):
    """@count processes that spin."""
    spinning = [subprocess.Popen([*prefix, "sh", "-c", "while :; do :; done"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in spinning:
            process.kill()
            process.wait()


def measure(t, mode, threads, options=()):
    cwd = t.subdirectory()
    log = os.path.join(cwd, "log")
    profile = t.profile([t.target("gcc-O2-pie", "timed"), mode, str(threads), log],
                        ["--events=events", *options], cwd=cwd)
    t.equal("status (%s)" % profile.messages, profile.status, 0)
    found = errors(read_log(log), read_events(os.path.join(cwd, "events")), bool(options))
    t.check(found, "no event was found")
    print("%s-%d: %d events, median %.1f us, 99 %% %.1f us, worst %.1f us" % (
        mode, threads, len(found), found[len(found) // 2] / 1000, found[len(found) * 99 // 100] / 1000, found[-1] / 1000))
    return found


def register(mode, threads):
    @test("times/exact/%s-%d" % (mode, threads))
    def _(t):
        found = measure(t, mode, threads)
        t.check(found[len(found) * 99 // 100] <= BOUND, "99 %% within %d ns" % found[len(found) * 99 // 100])

    @test("times/sampled/%s-%d" % (mode, threads))
    def _(t):
        found = measure(t, mode, threads, ["--heap-sample=256"])
        t.check(found[-1] <= BOUND, "a sample is %d ns from its call" % found[-1])


# many threads share rings and the order of events; one alone has pauses of its own
for _mode in MODES:
    for _threads in {"dense": (1, 16), "sleepy": (1,), "slow": (1,)}.get(_mode, (16,)):
        register(_mode, _threads)


@test("times/loaded", limit=180)
def loaded(t):
    """While other programs take the CPUs."""
    with load(t, 2 * os.cpu_count()):
        found = measure(t, "brief", 16)
        t.check(found[len(found) * 99 // 100] <= BOUND, "99 %% within %d ns" % found[len(found) * 99 // 100])
        found = measure(t, "brief", 16, ["--heap-sample=256"])
        t.check(found[-1] <= BOUND, "a sample is %d ns from its call" % found[-1])


def can_read_counter(t):
    """Whether a virtual machine reads the counter for a program that has disabled it."""
    return t.native([t.target("gcc-O2-pie", "timed"), "slow", "1", os.path.join(t.subdirectory(), "log"), "no-counter"]).status == 6


def without_realtime(t):
    """What runs a command that may not have real-time priority."""
    return [t.program("setpriv"), "--bounding-set=-sys_nice", "--inh-caps=-sys_nice"] if os.geteuid() == 0 else []


def check_clock(t, before, mode, threads, *options):
    """Of a program that cannot read the counter all times are as exact as the summary says, or, if it says nothing, 99 % of them
    to 1 ms. Returns what it says, in ms."""
    cwd = t.subdirectory()
    run = t.run([*before, t.ptmem(), "--events=events", "-o", "m", *options, "--", t.target("gcc-O2-pie", "timed"), mode, str(threads),
                 "log", "no-counter"], cwd=cwd)
    t.equal("status", run.status, 0)
    said = re.search(r"exact to ([0-9.]+) ms only: calls could not read", run.err.decode())
    found = errors(read_log(os.path.join(cwd, "log")), read_events(os.path.join(cwd, "events")), bool(options))
    t.check(found, "no event was found")
    error = found[-1 if said else len(found) * 99 // 100] / 1e6
    print("%s-%d %s: %.3f ms, said %s" % (mode, threads, options, error, said and said[1]))
    t.check(error <= (float(said[1]) if said else 1),
            "%s, %d threads, %s: %.3f ms, but the summary says %s" % (mode, threads, options, error, said and said[1]))
    return float(said[1]) if said else 0


@test("times/clock", limit=120)
def clock(t):
    """With real-time priority for ptmem's clock, where that is permitted."""
    if can_read_counter(t):
        raise Skip("the counter can be read")
    for mode, threads, *options in ("short", 1), ("short", 16), ("dense", 16), ("steady", 1, "--heap-sample=256"):
        check_clock(t, [], mode, threads, *options)


@test("times/clock-waits", limit=120)
def clock_waits(t):
    """Without, while other programs take the CPUs."""
    if can_read_counter(t):
        raise Skip("the counter can be read")
    with load(t, 2 * os.cpu_count()):
        for mode, threads, *options in ("short", 1), ("short", 16), ("steady", 1, "--heap-sample=256"):
            check_clock(t, without_realtime(t), mode, threads, *options)


@test("times/clock-held", limit=120)
def clock_held(t):
    """A program that stops ptmem for 5 ms and more, and allocates then."""
    if can_read_counter(t):
        raise Skip("the counter can be read")
    for options in (), ("--heap-sample=64",):
        said = check_clock(t, [], "held", 1, *options)
        t.check(said >= 5, "the clock was stopped for 5 ms, the summary says %.1f" % said)


@test("times/no-counter")
def no_counter(t):
    """A program that forbids itself to read the CPU's counter: its pads do without, and it does not notice.
    (Some virtual machines read the counter for it nevertheless.)"""
    command = [t.target("gcc-O2-pie", "notsc"), "200000"]
    alone = t.native(command)
    t.check(alone.out in (b"faults 0\n", b"faults 1\n"), "without ptmem: %r" % alone.out)
    for options in ((), ("--heap-sample=512",)):
        profile = t.profile(command, ["--verbose", *options])
        t.equal("status (%s)" % profile.messages, profile.status, 0)
        t.equal("faults of its own", profile.out, alone.out)
        t.check([m for m in profile.messages if "has disabled the CPU's counter" in m], "no message: %s" % profile.messages)


@test("times/inexact")
def inexact(t):
    """How inexact times are is in the summary and in the recording, also with -q; not where they are exact. Others that spin
    on the same CPU keep ptmem's clock waiting."""
    if can_read_counter(t):
        raise Skip("the counter can be read")
    one = [t.program("taskset"), "-c", str(min(os.sched_getaffinity(0)))]
    for program, is_exact in (["notsc", "1000000"], False), (["timed", "slow", "1", "log"], True):
        for options in ((), ("-q",)):
            cwd = t.subdirectory()
            with load(t, 0 if is_exact else 4, one):
                run = t.run([*([] if is_exact else one), *without_realtime(t), t.ptmem(), *options, "--record=r", "--",
                             t.target("gcc-O2-pie", program[0]), *program[1:]], cwd=cwd)
            t.equal("status", run.status, 0)
            text = r"exact to [0-9]+\.[0-9] ms only: calls could not read the CPU's counter"
            lines = re.findall("(?m)^ptmem:   times        %s$" % text, run.err.decode())
            t.equal("lines of the summary", len(lines), 0 if is_exact or options else 1)
            times = report_json(t, os.path.join(cwd, "r"))["meta"]["times"]
            t.check(times is None if is_exact else re.fullmatch(text, times), "in the recording: %s" % times)
            shown = report(t, os.path.join(cwd, "r"))
            t.equal("in the report", len(re.findall("(?m)^times        %s$" % text, shown)), 0 if is_exact else 1)


def wall_offset():
    """Wall time less CLOCK_MONOTONIC, by the closest of some readings."""
    readings = []
    for _ in range(100):
        before, wall, after = time.clock_gettime(time.CLOCK_MONOTONIC), time.time(), time.clock_gettime(time.CLOCK_MONOTONIC)
        readings.append((after - before, wall - (before + after) / 2))
    return min(readings)[1]


@test("times/forked")
def forked(t):
    """Time 0 of a forked child's recording is where it says: what had been released at the end of each interval."""
    cwd = t.subdirectory()
    run = t.run([t.ptmem(), "-q", "--record=r", "--", t.target("gcc-O2-pie", "timed"), "forked", "1", "log"], cwd=cwd)
    t.equal("status (%r)" % run.err, run.status, 0)
    [name] = [n for n in os.listdir(cwd) if n.startswith("r.")]
    data = report_json(t, os.path.join(cwd, name))
    calls = sorted(c for key, found in read_log(os.path.join(cwd, "log")).items() if key[1] and not key[2] for c in found)
    zero, released, wrong = data["meta"]["start_monotonic"] * 1e9, 0, 0
    for begin, n in zip(data["timeline"]["time"], data["timeline"]["releases"]):
        end = zero + (begin + data["timeline"]["interval"]) * 1e6
        released += n
        if end < calls[-1][0]:
            wrong += not (bisect.bisect(calls, (end - BOUND, 0)) - 1 <= released <= bisect.bisect(calls, (end + BOUND, 1 << 63)))
    t.check(released > 1000 and wrong <= len(data["timeline"]["time"]) / 50, "%d of %d intervals differ from the log" % (
        wrong, len(data["timeline"]["time"])))


@test("times/moment")
def moment(t):
    """A recording, and its form for pprof, say when their time 0 was, on both clocks."""
    cwd = t.subdirectory()
    before, offset = time.clock_gettime(time.CLOCK_MONOTONIC), wall_offset()
    run = t.run([t.ptmem(), "--record=r", "--events=e", "-o", "m", "--", t.target("gcc-O2-pie", "timed"), "slow", "1", "log"], cwd=cwd)
    t.equal("status", run.status, 0)
    meta = report_json(t, os.path.join(cwd, "r"))["meta"]
    t.check(before < meta["start_monotonic"] < time.clock_gettime(time.CLOCK_MONOTONIC) - 1, "start: %s" % meta)
    t.check(abs(meta["start"] - meta["start_monotonic"] - offset) < 0.001, "the clocks differ: %s" % meta)
    with open(os.path.join(cwd, "e"), encoding="utf-8", errors="surrogateescape") as file:
        first = next(line for line in file if line.startswith("h "))
    t.check(abs(int(first.split()[2]) / 1e9 - meta["start_monotonic"]) < 1e-6, "time 0 of the events is another: %s" % first)
    pprof = gzip.decompress(t.run([os.path.join(BUILD, "ptmem-report"), "--format=pprof", "r"], cwd=cwd).out)
    t.check(b"start_monotonic: %.9f" % meta["start_monotonic"] in pprof, "pprof has no such comment")
