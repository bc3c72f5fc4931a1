"""Blocks from before an attach: they are live from the first snapshot on, and their releases are events.

PTMEM_EARLIER_ROUNDS says how often each program is attached to (4); by hand: 20.
"""

import ctypes
import json
import os
import random
import re
import signal
import subprocess
import time

import massif
from harness import BUILD, allocator, test
from inspect_lib import Comparison, KNOWN, Typed, preload
from process_lib import Attached, Program
from recording_lib import check_conservation

ROUNDS = int(os.environ.get("PTMEM_EARLIER_ROUNDS", "4"))
NODE = "[allocated before attach]"
LEAKED, LEAKED_SIZE = 10, 1016


def both(one, other):
    return tuple(a + b for a, b in zip(one, other))


def check_known(t, profile):
    """All blocks were known, so there are no unknown frees."""
    said = [m for m in profile.messages if "not known" in m]
    t.equal("messages", said, [])
    stats = profile.only_stats()
    t.equal("unknown frees and replaced blocks", (stats["unknown"], stats["replaced"]), (0, 0))
    return stats


for _variant, _mode, _allocator in (("gcc-O2-pie", "auto", "glibc"), ("clang-O0-nopie", "break", "glibc"),
                                    ("gcc-O2-pie", "jump", "glibc"), ("testing-glibc", "auto", "glibc"),
                                    ("experimental-glibc", "auto", "glibc"),
                                    ("gcc-O2-pie", "auto", "jemalloc"),
                                    ("gcc-O2-pie", "break", "jemalloc"), ("gcc-O2-pie", "auto", "tcmalloc"),
                                    ("gcc-O2-pie", "auto", "mimalloc-3"), ("musl-O2-pie", "auto", "musl"),
                                    ("musl-O2-static", "auto", "musl")):
    @test("earlier/truth/%s-%s%s" % (_variant, _mode, "-" + _allocator if _allocator not in ("glibc", "musl") else ""), limit=120)
    def _(t, variant=_variant, mode=_mode, allocator=_allocator):
        """Attached to at any moment, ptmem has what the program has, and nothing when that has freed all."""
        program, chance = Program(t, variant, **preload(allocator, variant)), random.Random(1)
        others = program.others()
        for i in range(ROUNDS):
            program.say(b"g")
            t.wait_until("its threads to have blocks", lambda: program.say(b"x")[1] > 50)  # also if they got no CPU until now
            time.sleep(chance.random() / 50)
            attached = program.attach("--probes=" + mode, "--time-unit=B")
            time.sleep(chance.random() / 50)
            live = program.say(b"p")
            if i == ROUNDS - 1:
                live = program.say(b"f")
                t.equal("what it has in the end", live, (0, 0))
            profile = attached.detach()
            stats = check_known(t, profile)
            t.equal("live bytes and blocks", (stats["live"], stats["blocks"]), both(live, others))
            snapshots = profile.only_massif().snapshots
            t.equal("bytes of the first snapshot", snapshots[0]["mem_heap_B"], stats["earlier bytes"])
            t.check(stats["earlier blocks"] > 5 + others[1], "%d blocks from before" % stats["earlier blocks"])
            if i < ROUNDS - 1:
                calls = stats["allocations"] - stats["frees"] + stats["earlier blocks"]
                t.equal("live blocks, by calls", stats["blocks"], calls)
        program.end()


PAIRS = """
#include <pthread.h>
#include <stdlib.h>
static void *run(void *arg)
{
	for (;;) {
		void *volatile p = malloc(500), *volatile q = calloc(1, 70);
		free(p);
		free(q);
	}
	return arg;
}
int main(void)
{
	pthread_t thread;
	for (int i = 0; i < 4; i++)
		pthread_create(&thread, NULL, run, NULL);
	pthread_join(thread, NULL);
}
"""


@test("earlier/busy-threads", limit=120)
def busy_threads(t):
    """Threads that call malloc without pause are not left to chance: those inside are stepped out."""
    moments, steps, path = 0, 0, os.path.join(t.directory, "pairs")
    t.equal("compiler", t.run([t.program("gcc"), "-pthread", "-o", path, t.file("pairs.c", PAIRS)]).status, 0)
    program = subprocess.Popen([path], cwd=t.directory)
    try:
        t.wait_until("its threads", lambda: len(os.listdir("/proc/%d/task" % program.pid)) == 5)
        for _ in range(2):
            profile = Attached(t, program.pid, ["-vv"]).wait_attached().detach()
            left = re.findall("threads left malloc in ([0-9]+) moments and ([0-9]+) steps", "\n".join(profile.messages))
            t.equal("lines", len(left), 1)
            moments, steps = both((moments, steps), map(int, left[0]))
        t.equal("status of the program", program.poll(), None)
    finally:
        program.kill()
        program.wait()
    t.check(steps > 0, "no thread was stepped")
    t.check(moments < 20, "threads ran on %d times" % moments)  # more than a hundred without steps


@test("earlier/addresses")
def addresses(t):
    """One by one: what was known at the attach and what came since is what is in the heaps."""
    compare_addresses(t, Program(t))


for _variant, _allocator in KNOWN:
    @test("earlier/addresses/%s-%s" % (_variant, _allocator))
    def _(t, variant=_variant, allocator=_allocator):
        compare_addresses(t, Program(t, variant, **preload(allocator, variant)))


@test("earlier/aligned")
def aligned(t):
    """mimalloc does not record where aligned blocks begin: one line that says so, and a profile without them."""
    env = t.environment(t.directory, **preload("mimalloc", "linked-mimalloc"))
    process = subprocess.Popen([t.target("linked-mimalloc", "handed_over")], env=env, cwd=t.directory)
    t.wait_until("the program", lambda: os.path.exists(os.path.join(t.directory, "blocks")))
    profile = Attached(t, process.pid, ()).wait_attached().detach()
    said = [m for m in profile.messages if "not known" in m]
    t.check(len(said) == 1 and re.search("not known: where [0-9]+ of them begin is not recorded", said[0]), "messages: %s" % said)
    t.equal("blocks from before", profile.only_stats()["earlier blocks"], 0)
    process.kill()
    process.wait()


def compare_addresses(t, program):
    for _ in range(ROUNDS - 2):
        program.say(b"g")
        attached = program.attach(env={"XDG_RUNTIME_DIR": t.directory})
        program.say(b"p")
        result = t.run([t.ptmem(), "--monitor=%d" % attached.process.pid, "inspect_check"],
                       env={"XDG_RUNTIME_DIR": t.directory})
        Comparison(result.out.decode()).check()
        check_known(t, attached.detach())
    program.end()


@test("earlier/leaks")
def leaks(t):
    """--leak-check of blocks that were lost before."""
    check_leaks(t, Program(t))


for _variant in ("testing-glibc", "experimental-glibc"):
    @test("earlier/leaks/" + _variant)
    def _(t, variant=_variant):
        check_leaks(t, Program(t, variant))


def check_leaks(t, program):
    program.say(b"l")
    attached = program.attach("--leak-check", "--older-than=0", "--leaks-out=leaks")
    attached.detach()
    with open(os.path.join(attached.cwd, "leaks"), encoding="utf-8") as file:
        text = file.read()
    found = {kind: (int(size.replace(",", "")), int(blocks)) for kind, size, blocks in
             re.findall(r"^ +(definitely|indirectly) lost: +([0-9,]+) bytes in ([0-9]+) blocks?$", text, re.M)}
    t.equal("lost", found, {"definitely": (LEAKED_SIZE, 1), "indirectly": ((LEAKED - 1) * LEAKED_SIZE, LEAKED - 1)})
    t.check(NODE in text, "no %s in %s" % (NODE, text))
    program.end()


@test("earlier/types")
def types(t):
    """The node has a child for each type, in leak checks and profiles, and a replay has the same."""
    program = Typed(t, [t.target("gcc-O2-pie", "typed")])
    made = {"[%s]" % name: numbers for name, numbers in program.make(b"a").items()}
    attached = Attached(t, program.process.pid,
                        ("--leak-check", "--older-than=0", "--leaks-out=leaks", "--events=events", "--threshold=0")).wait_attached()
    profile = attached.detach()
    with open(os.path.join(attached.cwd, "leaks"), encoding="utf-8") as file:
        text = file.read()
    found = {}
    for size, blocks, name in re.findall(r"^  ([0-9,]+) bytes in ([0-9,]+) blocks? .*\n +at " + re.escape(NODE) +
                                         r"\n +by (.+)$", text, re.M):
        before = found.get(name, (0, 0))
        found[name] = before[0] + int(blocks.replace(",", "")), before[1] + int(size.replace(",", ""))
    t.equal("blocks and bytes by type", {name: found.get(name) for name in made}, made)
    tree = profile.only_massif().snapshots[-1]["tree"].paths()
    by_type = {path[0]: size for path, size in tree.items() if path[1:2] == (NODE,)}
    t.equal("bytes in the profile", {name: by_type.get(name) for name in made}, {name: n[1] for name, n in made.items()})
    again = t.run([t.ptmem(), "--massif-out-file=again", "--threshold=0", "--replay=" + os.path.join(attached.cwd, "events")],
                  cwd=attached.cwd)
    t.equal("status", again.status, 0)
    second = massif.Massif(os.path.join(attached.cwd, "again"))
    t.equal("the last tree", second.snapshots[-1]["tree"].paths(), tree)
    program.end()


@test("earlier/no")
def left_out(t):
    """--earlier-blocks=no: they are unknown, and so are their frees."""
    program = Program(t)
    program.say(b"g")
    live = program.say(b"p")
    attached = program.attach("--earlier-blocks=no")
    program.say(b"f")
    stats = attached.detach().only_stats()
    t.equal("blocks from before, and live ones", (stats["earlier blocks"], stats["blocks"]), (0, 0))
    t.equal("unknown frees", stats["unknown"], live[1])
    program.end()


def plain(profile):
    """Its snapshots, trees as bytes by path."""
    return [{key: value.paths() if key == "tree" else value for key, value in s.items()} for s in profile.snapshots]


@test("earlier/replay")
def replay(t):
    """The events file has them: a replay gives the same profile, memusage counts none of them as a call."""
    program = Program(t)
    program.say(b"g")
    program.say(b"p")
    attached = program.attach("--events=events", "--time-unit=B", "--memusage")
    for letter in (b"g", b"p", b"f"):
        program.say(letter)
    profile = attached.detach()
    stats = check_known(t, profile)
    found = profile.events()
    t.counts("ptmem and its events", stats, found.all, ("allocations", "reallocations", "frees", "bytes", "live", "blocks"))
    again = t.run([t.ptmem(), "--time-unit=B", "--massif-out-file=again", "--memusage",
                   "--replay=" + os.path.join(attached.cwd, "events")], cwd=attached.cwd)
    t.equal("status", again.status, 0)
    second = massif.Massif(os.path.join(attached.cwd, "again"))
    t.equal("snapshots", plain(second), plain(profile.only_massif()))
    program.end()


@test("earlier/recording")
def recording(t):
    """A recording has them in its first interval, and as no calls."""
    program = Program(t)
    program.say(b"g")
    live = both(program.say(b"p"), program.others())
    attached = program.attach("--record=recording")
    program.say(b"f")
    attached.detach()
    result = t.run([os.path.join(BUILD, "ptmem-report"), "--format=json", os.path.join(attached.cwd, "recording")])
    t.equal("status", result.status, 0)
    r = json.loads(result.out)
    leaf = [i for i, node in enumerate(r["leaves"]["node"])
            if r["frames"]["function"][r["nodes"]["frame"][node]] == NODE]
    t.check(leaf, "no leaves")
    t.equal("allocations there", {(r["leaves"]["allocations"][i], r["leaves"]["bytes"][i]) for i in leaf}, {(0, 0)})
    t.equal("the peak", (r["peak"]["bytes"], r["peak"]["blocks"]), live)
    t.equal("allocations", r["end"]["allocations"], 0)
    program.end()


@test("earlier/releases")
def releases(t):
    """--free-stacks: blocks from before are released, too, and all that is not live was."""
    program = Program(t)
    program.say(b"g")
    program.say(b"p")
    attached = program.attach("--record=recording", "--events=events", "--free-stacks")
    for letter in (b"g", b"p", b"f"):
        program.say(letter)
    attached.detach()
    path = os.path.join(attached.cwd, "recording")
    r = json.loads(t.run([os.path.join(BUILD, "ptmem-report"), "--format=json", path]).out)
    e = check_conservation(t, path, os.path.join(attached.cwd, "events"), r)
    t.check(e.earlier[1] and sum(r["releases"]["blocks"]) > r["end"]["allocations"], "%s from before" % e.earlier)
    program.end()


@test("earlier/refused")
def refused(t):
    """A malloc whose structures are not as its symbols say: one line that says so, and a profile without blocks from before."""
    program = Program(t, LD_PRELOAD=t.target("lib", "libposes_mimalloc.so"))
    program.say(b"g")
    attached = program.attach()
    program.say(b"p")
    profile = attached.detach()
    said = [m for m in profile.messages if "not known" in m]
    t.check(len(said) == 1 and "mimalloc" in said[0], "it is not named: %s" % said)
    t.equal("blocks from before", profile.only_stats()["earlier blocks"], 0)
    program.end()


@test("earlier/before-libc")
def before_libc(t):
    """A program that has not loaded a malloc yet has no blocks: nothing is unknown."""
    libc, cwd, traceme, detach = ctypes.CDLL(None), t.subdirectory(), 0, 17
    libc.ptrace.argtypes = [ctypes.c_long] * 4
    program = subprocess.Popen([t.target("gcc-O2-pie", "mixed")], cwd=cwd, env=t.environment(cwd), stdout=subprocess.DEVNULL,
                               preexec_fn=lambda: libc.ptrace(traceme, 0, 0, 0))
    os.waitpid(program.pid, os.WUNTRACED)  # at its first instruction
    t.equal("it is left stopped", libc.ptrace(detach, program.pid, 0, signal.SIGSTOP), 0)
    attached = Attached(t, program.pid).wait_attached()
    os.kill(program.pid, signal.SIGCONT)
    t.equal("status of the program", program.wait(timeout=200), 0)
    stats = check_known(t, attached.ended())
    t.equal("allocations", stats["allocations"], t.truth(cwd)["allocations"])
