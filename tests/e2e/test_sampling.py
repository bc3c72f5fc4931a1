"""--heap-sample in the program: how many allocations become samples, what is counted exactly, and that nothing is
left behind. What the samples say about the heap is in test_estimates.py.

PTMEM_SAMPLE_ROUNDS says how often the attach test attaches (6); by hand: 100.
"""

import json
import math
import os
import re
import signal
import subprocess
import time

import harness
from harness import allocator, ALLOCATORS, report, Skip, test
from corruption_lib import Run
from process_lib import Attached, Server, check_left_alone, guardians, rounds

ROUNDS = int(os.environ.get("PTMEM_SAMPLE_ROUNDS", "6"))
INTERVAL = 4096
DOUBT = "counted in memory that the program overwrote"
SIZE = 100
ALLOCATING = (1, 2, 3, 4, 5)  # malloc, calloc, realloc, memalign, new
FREEING = (6, 7)
KEPT = 64  # by sampled_cxx at its end


class Samples:
    """Of an events file. count: the samples; live: addresses of those that are not released; totals: by function."""

    def __init__(self, path):
        self.count, self.live, self.totals, self.resized = 0, set(), {}, 0
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            for line in file:
                word = line.split()
                if word[0] == "w":
                    self.totals[int(word[1])] = (int(word[2]), int(word[3]))
                elif word[0] == "a" and int(word[5], 16):
                    self.count += 1
                    self.live.add(word[5])
                elif word[0] == "R":
                    self.count += 1
                    self.resized += 1
                    self.live.add(word[6])
                elif word[0] == "f":
                    self.live.remove(word[5])
                elif word[0] == "j":  # inside another call: perhaps of no block
                    self.live.discard(word[5])
                elif word[0] == "b":
                    self.live.remove(word[5])
                elif word[0] == "r":
                    self.end_realloc(*word[5:8])

    def end_realloc(self, old, new, size):
        """Of a sample: the new block is one, or not ("0 0"), or the call failed."""
        if int(new, 16):
            self.count += 1
            self.resized += int(old, 16) != 0
            self.live.add(new)
        elif int(size):
            self.live.add(old)

    def sum(self, functions):
        return tuple(sum(self.totals.get(f, (0, 0))[i] for f in functions) for i in (0, 1))


def sample(t, program, args, seed, options=(), **how):
    profile = t.profile([program, *[str(a) for a in args]],
                        ["--heap-sample=%d" % INTERVAL, "--seed=%d" % seed, "--events=events", *options], **how)
    t.equal("status (%s)" % profile.messages, profile.status, 0)
    return profile, Samples(os.path.join(profile.directory, "events"))


def check_count(t, what, samples, calls, size=SIZE, others=0, errors=4):
    """As many samples as @calls of @size bytes have, within @errors standard errors; @others may come beside them."""
    p = 1 - math.exp(-size / INTERVAL)
    error = math.sqrt(calls * p * (1 - p))
    t.check(-errors * error <= samples - calls * p <= errors * error + others,
            "%s: %d samples of %d calls, where %d +- %d were expected" % (what, samples, calls, calls * p, error))


def check_calls(t, samples, calls, others):
    """@others: calls that libraries make at their start and end."""
    made, size = samples.sum(ALLOCATING)
    t.check(calls <= made <= calls + others, "%d calls counted of %d" % (made, calls))
    t.check(calls * SIZE <= size <= calls * SIZE + others * 100000, "%d bytes counted of %d" % (size, calls * SIZE))
    freed = samples.sum(FREEING)[0]
    t.check(calls - KEPT <= freed <= calls + others, "%d frees counted" % freed)


FUNCTIONS = {"malloc": 1, "calloc": 2, "realloc": 3, "reallocarray": 3, "memalign": 4, "aligned_alloc": 4,
             "posix_memalign": 4, "valloc": 4}


@test("sampling/functions")
def functions(t):
    """Each function of the family, once for each call: some of them call others."""
    calls = 100000
    for seed, (name, function) in enumerate(FUNCTIONS.items(), 1):
        _, samples = sample(t, t.target("gcc-O2-pie", "sampled"), [name, calls], seed)
        check_count(t, name, samples.count, calls)
        t.equal("exact totals of " + name, samples.totals[function], (calls, calls * SIZE))
        t.equal("samples of %s that are not released" % name, len(samples.live), 0)


def register_new(variant, program, calls):
    @test("sampling/%s/%s" % (variant, program))
    def _(t):
        """operator new calls malloc, or takes pieces of what it got from malloc: one allocation for each call."""
        profile, samples = sample(t, t.target(variant, program), [calls], 1)
        check_count(t, program, samples.count, calls, others=4)
        check_calls(t, samples, calls, 10)
        paths = profile.only_massif().peak()["tree"].paths()
        t.check(not [p for p in paths if "operator new" in p], "operator new is a call site: %s" % list(paths))
        t.check([p for p in paths if "make(long)" in p], "make is no call site: %s" % list(paths))


register_new("gcc-O2-pie", "sampled_cxx", 10000000)
register_new("gcc-O2-static", "sampled_cxx", 1000000)
register_new("gcc-O2-pie", "sampled_custom", 1000000)
register_new("gcc-O2-static", "sampled_custom", 1000000)
register_new("clang-O0-nopie", "sampled_custom", 1000000)


@test("sampling/headers")
def headers(t):
    """free is called for what an operator new returned, at another address: these releases are not seen, which is said.
    With operator delete they are."""
    calls, hint = 100000, "operator new seems to return addresses inside its blocks"
    for options in ([], ["--heap-sample=4K", "--seed=1"]):
        for program, args, is_said in (("sampled_inner", (), True), ("sampled_inner", ("delete",), False), ("sampled_cxx", (), False)):
            profile = t.profile([t.target("gcc-O2-pie", program), str(calls), *args], options)
            t.equal("status (%s)" % profile.messages, profile.status, 0)
            t.equal("hint about %s %s %s" % (program, args, options), hint in "\n".join(profile.messages), is_said)


@test("sampling/preloaded")
def preloaded(t):
    """Allocators that replace malloc, and may call themselves."""
    calls, tried = 20000, 0
    for name, path in ALLOCATORS.items():
        if not os.path.exists(path):
            continue
        tried += 1
        for program, args in (("sampled", ("mixed", calls)), ("sampled_cxx", (calls,)), ("sampled_custom", (calls,))):
            _, samples = sample(t, t.target("gcc-O2-pie", program), args, 1, env={"LD_PRELOAD": path})
            check_count(t, "%s with %s" % (program, name), samples.count, calls, others=30)
    if not tried:
        raise Skip("no other allocator on this machine")


@test("sampling/strings")
def strings(t):
    """Functions whose size is known when they return: as many samples, calls and bytes, and releases of samples."""
    calls = 20000
    for probes in ("auto", "break"):
        _, samples = sample(t, t.target("gcc-O2-pie", "strings"), (calls,), 1, ["--probes=" + probes],
                            env={"LD_PRELOAD": allocator("mimalloc-3")})
        check_count(t, "with --probes=" + probes, samples.count, calls, others=30)
        t.check(len(samples.live) <= KEPT + 30, "%d samples are not released" % len(samples.live))
        made, size = samples.sum((1,))
        t.check(calls <= made <= calls + 30 and calls * SIZE <= size, "%d calls, %d bytes" % (made, size))


@test("sampling/threads")
def threads(t):
    """Each thread counts in a line of its own; blocks change hands. Which thread has which seed is another in each run: the
    bound is that of four standard errors of 20,000 calls, which are five here: chance exceeds it once in a million runs."""
    calls, count = 31250, 16
    program = t.target("gcc-O2-pie", "sampled")
    for seed, mode in enumerate(("mixed", "cross"), 1):
        size = SIZE if mode == "mixed" else 3000
        _, samples = sample(t, program, [mode, calls, count], seed)
        check_count(t, mode, samples.count, calls * count, size, others=50, errors=5)
        made = samples.sum(ALLOCATING)
        t.check(calls * count <= made[0] <= calls * count + 3 * count, "%d calls counted" % made[0])
        t.check(len(samples.live) <= count, "%d samples were not released" % len(samples.live))


@test("sampling/realloc")
def realloc(t):
    """A realloc releases a sample, makes one, both or neither."""
    calls = 20000
    _, samples = sample(t, t.target("gcc-O2-pie", "sampled"), ["grow", calls], 3)
    t.equal("calls of malloc", samples.totals[1][0], calls)
    chances = [1 - math.exp(-size / INTERVAL) for size in (1000, 100000, 200)]
    want, error = calls * sum(chances), math.sqrt(calls * sum(p * (1 - p) for p in chances))
    t.check(abs(samples.resized - want) < 4 * error, "%d samples by realloc, not %d +- %d" % (samples.resized, want, error))
    t.equal("calls of realloc", samples.totals[3], (3 * calls, calls * 101200))
    t.equal("samples that are not released", len(samples.live), 0)


def other_allocator():
    """The environment for one of which ptmem knows nothing: it follows each call until that returns, and calls of libc's are inside
    of these."""
    return {"LD_PRELOAD": os.path.join(harness.TARGETS, "lib", "libpasses.so")}


def short_allocator():
    """The same, but its functions stay at breakpoints: libc's reallocarray, which has a pad, jumps to one of them."""
    return {"LD_PRELOAD": os.path.join(harness.TARGETS, "lib", "libpasses_short.so")}


TARGETS = (("mixed",), ("failures",), ("cxx",), ("cxx_handler",), ("throws",), ("nested",), ("recursion",), ("exits", "longjmp"),
           ("fibers",), ("otherstacks",), ("malloc_fibers",), ("interrupted",), ("threads",), ("process", "fork"),
           ("process", "vfork"), ("process", "spawn"), ("process", "exec"), ("process", "threads"))
NOT_PRELOADED = (("process", "clone-vm"), ("process", "fork-in-handler"), ("process", "fork-in-handler-altstack"))


def made_by(profile):
    """Of a file of all events: calls and bytes of the functions that allocate."""
    calls, size = 0, 0
    with open(os.path.join(profile.directory, "events"), encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            word = line.split()
            if word[0] in "ar" and int(word[3]) in ALLOCATING:
                bytes_ = int(word[6 if word[0] == "a" else 7])
                calls, size = calls + 1, size + (bytes_ if bytes_ < 1 << 63 else 0)
    return calls, size


def register_totals(program, kind="totals", environment=dict):
    @test("sampling/%s/%s" % (kind, program))
    def _(t):
        """The exact totals are those of all events, by pads and at breakpoints."""
        path, env = t.target("gcc-O2-pie", program), environment()
        want = made_by(t.profile([path], ["--events=events"], env=env))
        for probes in ("auto", "jump", "break"):
            _, samples = sample(t, path, [], 1, ["--probes=" + probes], env=env)
            t.equal("calls and bytes, --probes=" + probes, samples.sum(ALLOCATING), want)


for name in ("mixed", "failures", "nested", "stacks", "fibers"):
    register_totals(name)
for name in ("failures", "nested", "stacks", "fibers"):
    register_totals(name, "preloaded-totals", other_allocator)
    register_totals(name, "preloaded-short", short_allocator)


def register_behaviour(args, kind="behaviour", environment=dict):
    @test("sampling/%s/%s" % (kind, "/".join(args)))
    def _(t):
        """The program behaves the same when its heap is sampled."""
        argv, env = [t.target("gcc-O2-pie", args[0]), *args[1:]], environment()
        native = t.native(argv, env=env)
        for interval in ("64", "64K"):
            profile = t.profile(argv, ["--heap-sample=" + interval, "--trace-children=yes"], env=env)
            t.same_behaviour(profile, native)


for words in (*TARGETS, *NOT_PRELOADED):
    register_behaviour(words)
for words in (*TARGETS, ("signals",)):
    register_behaviour(words, "preloaded", other_allocator)


@test("sampling/attach-rounds", limit=60 + 6 * ROUNDS)
def attach_rounds(t):
    harness.MORE_OPTIONS.append("--heap-sample=16K")
    try:
        server = Server(t)
        rounds(t, server, ROUNDS, 0.05, has_earlier=False)
        server.end()
    finally:
        harness.MORE_OPTIONS.remove("--heap-sample=16K")


@test("sampling/attached")
def attached(t):
    """Blocks from before the attach are no samples; calls are counted from then on."""
    server = Server(t)
    maps = server.maps()
    before = server.say("p")
    ptmem = Attached(t, server.pid, ["--heap-sample=16K", "--events=events"]).wait_attached()
    server.say("c")
    t.wait_until("a hundred intervals", lambda: server.say("r")["bytes"] > before["bytes"] + 100 * (16 << 10))
    for letter in "pcrp":
        server.say(letter)
    after = server.say("p")
    profile = ptmem.detach()
    check_left_alone(t, server, maps)
    samples = Samples(os.path.join(profile.directory, "events"))
    made, want = samples.sum(ALLOCATING)[0], sum(after[k] - before[k] for k in ("allocations", "reallocations"))
    t.check(want <= made <= want + 10, "%d calls counted, not %d" % (made, want))
    t.check(samples.count > 0, "no samples")
    server.say("c")
    server.end()


@test("sampling/killed", limit=120)
def killed(t):
    """SIGKILL of ptmem while it samples: the program continues, and can be attached to again."""
    server = Server(t)
    maps = server.maps()
    for i in range(5):
        ptmem = Attached(t, server.pid, ["--heap-sample=16K"]).wait_attached()
        time.sleep(0.02 * i)
        ptmem.process.kill()
        ptmem.process.wait()
        t.wait_until("the guardians to end", lambda: not guardians(t))
        server.check_progress()
    Attached(t, server.pid, ["--heap-sample=16K"]).wait_attached().detach(signal.SIGTERM)
    check_left_alone(t, server, maps)
    server.end()


@test("sampling/corruption", limit=120)
def corruption(t):
    """The program overwrites filter, distances and slots."""
    for how in ("words", "slots", "fields", "records", "zero", "remap"):
        check_trust(t, Run(t, "jump", False, how, 3, options=["--heap-sample=64"]))
        check_trust(t, Run(t, "auto", True, how, 3, options=["--heap-sample=4K"]))


def check_trust(t, run):
    """Totals that were read from memory known to be corrupt are not called exact."""
    is_corrupt = run.end()
    t.equal("whether totals are exact (%s)" % run.text(), "counted exactly" in run.text(), not is_corrupt)
    t.equal("whether they are in doubt", DOUBT in run.text(), is_corrupt)
    return is_corrupt


@test("sampling/corruption/trust")
def corruption_trust(t):
    """Every view that prints the totals of corrupt memory says so, also after a replay."""
    options = ["--heap-sample=4K", "--memusage", "-o", "massif.out.%p", "--record=recording", "--events=events"]
    run = Run(t, "jump", True, "head", options=options, stdin=subprocess.PIPE)
    run.ptmem.wait(timeout=200)
    run.program.stdin.close()
    t.check(check_trust(t, run), "not corrupt: " + run.text())
    t.check("The calls of free are " + DOUBT in run.text(), "memusage's report: " + run.text())

    def check_recording(path):
        t.equal("JSON", json.loads(report(t, "--format=json", path))["meta"]["corrupt"], True)
        text = report(t, path)
        t.check(DOUBT in text and re.search("^corrupt +the program", text, re.M), "report: " + text)

    check_recording(os.path.join(run.cwd, "recording"))
    again = t.run([t.ptmem(), "--replay=" + os.path.join(run.cwd, "events"), "--record=again"], cwd=run.cwd)
    t.equal("status of the replay (%s)" % again.err, again.status, 0)
    t.check(DOUBT in again.err.decode(), "replay: %s" % again.err)
    check_recording(os.path.join(run.cwd, "again"))


@test("sampling/sleeps")
def sleeps(t):
    """ptmem sleeps while samples are rare: calls that are not samples do not wake it."""
    profile, _ = sample(t, t.target("gcc-O2-pie", "sampled"), ["malloc", 20000000], 1, ["--heap-sample=4M"])
    stats = profile.only_stats()
    t.check(stats["records"] < 5000, "%d records" % stats["records"])
    t.equal("functions with breakpoints", stats["functions with breakpoints"], 0)
    found = re.search(r"own cpu ms: (\d+)", "\n".join(profile.messages))
    t.check(int(found.group(1)) < 500, "own CPU: %s ms" % found.group(1))
