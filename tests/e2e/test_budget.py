"""--budget: the sampling interval changes while the program runs; the estimates stay what they claim to be, and every
output says so. The rule by which it changes is in unit/test_budget.c, with a proof over many seeds."""

import math
import os
import re
import resource
import shutil
import subprocess

from harness import BUILD, report_json, test
from process_lib import Following, unique
from recording_lib import probability, without_desc

INTERVAL = 4096


class Samples:
    """Of an --events file, weighted by the interval of each: sums, their variances, exact totals, all shifts in order."""

    def __init__(self, path):
        self.bytes = self.variance = self.live = self.live_variance = self.requested = 0.0
        self.shifts, self.count, self.live_count = [0], 0, 0
        shift, blocks = 0, {}
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            for word in (line.split() for line in file):
                if word[0] == "Y":
                    shift = int(word[1])
                    self.shifts.append(shift)
                elif word[0] == "w" and int(word[1]) < 6:
                    self.requested += int(word[3])
                elif word[0] == "a" and int(word[5], 16):
                    size = int(word[6])
                    p = probability(size, INTERVAL << shift)
                    blocks[word[5]] = size / p, size * size * (1 - p) / p ** 2
                    self.bytes += size / p
                    self.variance += blocks[word[5]][1]
                    self.count += 1
                elif word[0] in "fj":
                    blocks.pop(word[5], None)
        self.live, self.live_count = sum(b for b, _ in blocks.values()), len(blocks)
        self.live_variance = sum(v for _, v in blocks.values())


def run(t, *options):
    """Runs targets/budgeted until ptmem has changed the interval. Returns the directory and the program's numbers."""
    cwd = t.subdirectory()
    log = os.path.join(cwd, "log")
    process = subprocess.Popen([t.ptmem(), "-v", "--stats", "--log-file=log", "--heap-sample=%d" % INTERVAL, "--seed=5",
                                *options, t.target("gcc-O2-pie", "budgeted")],
                               cwd=cwd, env=t.environment(cwd), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    process.stdout.readline()

    def has_changed():
        with open(log, encoding="utf-8", errors="replace") as file:
            return "from now on every" in file.read() or process.poll() is not None
    t.wait_until("the interval to change", has_changed)
    out = process.communicate(timeout=200)[0]
    t.equal("status", process.returncode, 0)
    return cwd, [int(n) for n in out.split()]


def amount(shift):
    """The interval: in words, and as the value of --heap-sample."""
    kib = INTERVAL << shift >> 10
    return ("%d.0 MiB" % (kib >> 10), "%dM" % (kib >> 10)) if kib >= 1024 else ("%d.0 KiB" % kib, "%dK" % kib)


def stat(cwd, name):
    with open(os.path.join(cwd, "log"), encoding="utf-8", errors="replace") as file:
        return [int(line.rsplit(" ", 1)[1]) for line in file if line.startswith("ptmem: %s: " % name)][0]


@test("budget/changes", limit=180)
def changes(t):
    """No budget is as small as this one: where the program gets enough of a CPU, the interval becomes 1,024 times as long at
    once."""
    cwd, (requested, live) = run(t, "--budget=0.01%", "--events=events", "--record=r", "--massif-out-file=m")
    samples = Samples(os.path.join(cwd, "events"))
    t.check(0 <= samples.requested - requested < 100000, "%d bytes counted of %d" % (samples.requested, requested))
    most = max(samples.shifts)
    t.check(0 < most <= 10, "shifts: %s" % samples.shifts)
    for what, estimate, truth, variance in (("all", samples.bytes, samples.requested, samples.variance),
                                            ("live", samples.live, live, samples.live_variance)):
        error = math.sqrt(variance + (INTERVAL << most) ** 2)  # that of no sample is not 0
        t.check(abs(estimate - truth) < 5.5 * error, "%s: %.0f, not %d +- %.0f" % (what, estimate, truth, error))
    t.check(abs(stat(cwd, "live bytes") - samples.live) <= samples.live_count, "live bytes: %d, not %.1f"
            % (stat(cwd, "live bytes"), samples.live))
    t.check(abs(stat(cwd, "allocated bytes") - samples.bytes) <= samples.count, "bytes: %d, not %.1f"
            % (stat(cwd, "allocated bytes"), samples.bytes))
    with open(os.path.join(cwd, "m"), encoding="utf-8") as file:
        desc = file.readline()
    interval, option = amount(most)
    t.check("--heap-sample=%s # the numbers of the heap are estimates, sampled every 4.0 KiB to %s\n" % (option, interval) in desc, desc)
    profile = report_json(t, os.path.join(cwd, "r"))
    t.equal("intervals", (profile["meta"]["heap_sample"], profile["meta"]["heap_sample_max"]), (INTERVAL, INTERVAL << most))
    text = t.run([os.path.join(BUILD, "ptmem-report"), os.path.join(cwd, "r")]).out.decode()
    for words in ("one every 4.0 KiB to %s on average" % interval, "(estimate, sampled every 4.0 KiB to %s)" % interval):
        t.check(words in text, "the text has not %r: %s" % (words, text[:600]))
    t.equal("markers", [m["text"] for m in profile["markers"] if m["kind"] == "interval"],
            ["samples every " + amount(shift)[0] for shift in samples.shifts[1:]])
    again = t.run([t.ptmem(), "-q", "--replay=" + os.path.join(cwd, "events"), "--massif-out-file=m"])
    t.equal("status of the replay", (again.status, again.err), (0, b""))
    t.equal("the replay's profile", without_desc(os.path.join(again.cwd, "m")), without_desc(os.path.join(cwd, "m")))


@test("budget/refused")
def refused(t):
    for options, why in ((["--budget=2%"], "--budget needs --heap-sample"), (["--budget=2%", "--heap-sample=1"], "has none"),
                         (["--budget=2%", "--heap-sample=1M", "--probes=break"], "where every call stops"),
                         (["--budget=%", "--heap-sample=1M"], "bad option"), (["--budget=2%%", "--heap-sample=1M"], "bad option"),
                         (["--budget=0", "--heap-sample=1M"], "bad option")):
        result = t.run([t.ptmem(), *options, "--", "true"])
        t.check(result.status == 1 and why in result.err.decode(), "%s: %r" % (options, result.err))
    t.equal("without a sign", t.run([t.ptmem(), "-q", "--heap-sample=1M", "--budget=0.5", "--", "true"]).status, 0)


def address_space(pid):
    with open("/proc/%d/statm" % pid, encoding="ascii") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


def tracer(pid):
    with open("/proc/%d/status" % pid, encoding="ascii", errors="replace") as file:
        return int(re.search(r"TracerPid:\t(\d+)", file.read())[1])


def start(t, program):
    process = subprocess.Popen([program], cwd=t.directory, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    process.stdout.readline()
    return process


def start_slow(t, program):
    """Of targets/budgeted: it has room for its blocks, but not for the memory of jumps."""
    process = start(t, program)
    resource.prlimit(process.pid, resource.RLIMIT_AS, (address_space(process.pid) + (16 << 20),) * 2)
    return process


@test("budget/out-of-reach", limit=180)
def out_of_reach(t):
    """Where each call stops, it is said which budget cannot be kept and why, and then ptmem detaches."""
    program = start_slow(t, t.target("gcc-O2-pie", "budgeted"))
    run = t.run([t.ptmem(), "-p", str(program.pid), "--heap-sample=512K", "--budget=0.1%", "--massif-out-file=m"])
    said = run.err.decode()
    t.equal("status of ptmem: " + said, run.status, 0)
    t.check(re.search(r"warning: process %d: --budget=0\.1%% cannot be kept: [0-9,]+ calls a second stop at breakpoints, whatever the "
                      r"interval: (malloc, free|free, malloc)\b.* \(its address space is limited \(ulimit -v\)\); if that goes on, ptmem "
                      r"detaches in 4 s\n" % program.pid, said), said)
    t.check("process %d: detached, since --budget=0.1%% could not be kept; it runs on\n" % program.pid in said, said)
    t.equal("the program runs", program.poll(), None)
    program.communicate(timeout=200)
    t.equal("status of the program", program.returncode, 0)


@test("budget/out-of-reach-followed", limit=180)
def out_of_reach_followed(t):
    """--follow goes on with the others, and does not attach to that process again."""
    path = os.path.join(t.directory, unique(t, "bf"))
    shutil.copy(t.target("gcc-O2-pie", "budgeted"), path)
    slow, quick = start_slow(t, path), start(t, path)
    group = Following(t, "--follow=" + os.path.basename(path), "--heap-sample=512K", "--budget=0.1%", "--massif-out-file=m.%p")
    group.wait_attached(quick)
    t.wait_until("the detach", lambda: "process %d: detached, since " % slow.pid in group.text())
    t.wait_until("no tracer", lambda: tracer(slow.pid) == 0)
    later = start(t, path)
    t.wait_until("the next one", lambda: "attached to process %d " % later.pid in group.text())
    t.equal("messages", (group.text().count("attached to process %d " % slow.pid), group.text().count("detached, since")), (1, 1))
    t.check(tracer(quick.pid) and tracer(later.pid) and not tracer(slow.pid), "who is traced")
    for process in (slow, quick, later):
        process.communicate(timeout=200)
        t.equal("status", process.returncode, 0)
    group.end()
