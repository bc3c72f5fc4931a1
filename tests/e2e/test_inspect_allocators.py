"""Allocators other than glibc's: what --inspect finds in their heaps is what was counted, address by address, its rows add up, and what
it does not know is refused."""

import bisect
import json
import os
import random
import signal
import struct
import subprocess

from harness import Skip, allocator, test
from inspect_lib import Checked, KNOWN, Parked, check_rows, inspect, preload
from process_lib import is_asleep


# -- blocks by address --

SHAPES = (("gcc-O2-pie", "jemalloc"), ("gcc-O2-stripped", "mimalloc"), ("linked-mimalloc", "mimalloc"),
          ("gcc-O2-stripped", "mimalloc-3"), ("testing-mimalloc", "mimalloc"), ("musl-O2-static", "musl"))

for _variant, _allocator in SHAPES:
    @test("inspect/handed-over/%s-%s" % (_variant, _allocator))
    def _(t, variant=_variant, allocator=_allocator):
        """Blocks of ended threads, freed by other threads, aligned, of up to 3 GiB: all and only those that the program has."""
        checked = Checked(t, [t.target(variant, "handed_over")], **preload(allocator, variant))
        path = os.path.join(checked.cwd, "blocks")
        t.wait_until("the program", lambda: os.path.exists(path) and open(path, encoding="ascii").read().endswith("\n"))
        blocks, seen = int(open(path, encoding="ascii").read()), checked.ask()
        checked.end()
        t.check(blocks > 1000 and seen is not None and blocks <= seen <= blocks + 40, "%s blocks of %d" % (seen, blocks))


for _allocator, _arguments in (("mimalloc", ()), ("mimalloc-3", ("thread",))):
    @test("inspect/own-heaps/" + _allocator)
    def _(t, allocator=_allocator, arguments=_arguments):
        """Heaps that the program makes: their blocks are its, but not what mimalloc keeps about them."""
        env = t.environment(t.directory, **preload(allocator))
        program = subprocess.Popen([t.target("gcc-O2-pie", "own_heaps"), *arguments], env=env, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE)
        seen = []
        for _ in range(3):
            blocks, report = int(program.stdout.readline()), inspect(t, program.pid)
            check_rows(t, report)
            t.equal("contradictions", report["malloc"]["broken"], 0)
            seen.append((blocks, report["malloc"]["live_blocks"]))
            program.stdin.write(b"g")
            program.stdin.flush()
        others = seen[0][1]
        t.equal("blocks at each step", [found - others for _, found in seen], [blocks for blocks, _ in seen])
        program.communicate()


# -- the report --

# Where malloc has no name; musl's before 1.2.1 is laid out by targets/old_musl, and all its blocks are counted.
OTHERS = (("linked-tcmalloc-stripped", "tcmalloc"), ("gcc-O2-pie", "musl-old"), ("gcc-O2-stripped", "musl-old"))


for _variant, _allocator in (*KNOWN, *OTHERS):
    @test("inspect/rows/%s-%s" % (_variant, _allocator))
    def _(t, variant=_variant, allocator=_allocator):
        """Rows add up; the blocks are the program's and, of libc and threads' start-up, a few."""
        program = Parked(t, variant, allocator)
        report = inspect(t, program.pid)
        check_rows(t, report)
        malloc = report["malloc"]
        more = 0 if allocator == "musl-old" else 1
        allocator = allocator.split("-", maxsplit=1)[0]
        t.equal("allocator, contradictions", (malloc["name"], malloc["broken"]), (allocator, 0))
        bytes_live, blocks = program.live
        t.check(blocks <= malloc["live_blocks"] <= blocks + more * 40, "%d blocks of %d" % (malloc["live_blocks"], blocks))
        t.check(bytes_live <= malloc["live_bytes"] <= bytes_live + more * 100000, "%d bytes of %d" % (malloc["live_bytes"], bytes_live))
        rows = report["rows"]
        t.check(0 < rows["live"]["resident"] <= malloc["live_bytes"], "live: %s" % rows["live"])
        t.check(rows["bins"]["resident"] > 0, "nothing is free")
        if allocator in ("jemalloc", "tcmalloc"):
            # tcmalloc's main thread has another one, of the time before threads can have variables
            t.check(2 <= malloc["caches"] <= 8 and malloc["cached_blocks"] > 0, "caches of threads: %s" % malloc)
        result = t.run([t.ptmem(), "--inspect", "-p", str(program.pid)])
        t.check(("malloc: %s; " % allocator).encode() in result.out, "not named: %r" % result.out)
        t.check(b"live blocks, by how they begin\n" in result.out, "no types: %r" % result.out)
        t.equal("blocks of all types", sum(e["blocks"] for e in report["types"]), malloc["live_blocks"])
        program.end()


@test("inspect/rows/odd-thread-variables")
def odd(t):
    """Thread variables that begin at an odd address, as they do if a library's are only bytes: caches are found all the same."""
    library = preload("jemalloc")["LD_PRELOAD"] + ":" + t.target("lib", "libodd_outer.so")
    program = Parked(t, "gcc-O2-pie", "jemalloc", LD_PRELOAD=library)
    report = inspect(t, program.pid)
    check_rows(t, report)
    malloc, (_, blocks) = report["malloc"], program.live
    t.check(blocks <= malloc["live_blocks"] <= blocks + 40, "%d blocks of %d" % (malloc["live_blocks"], blocks))
    t.check(malloc["caches"] >= 2 and malloc["cached_blocks"] > 0, "caches of threads: %s" % malloc)
    program.end()


@test("inspect/background")
def background(t):
    """jemalloc's own thread, which waits in a function of jemalloc's, is not in the middle of malloc."""
    program = Parked(t, "gcc-O2-pie", "jemalloc", MALLOC_CONF="background_thread:true")

    def names():
        return [open("/proc/%d/task/%s/comm" % (program.pid, tid), encoding="ascii").read().strip()
                for tid in os.listdir("/proc/%d/task" % program.pid)]
    t.wait_until("jemalloc's thread", lambda: "jemalloc_bg_thd" in names())

    def is_asleep():
        for tid in os.listdir("/proc/%d/task" % program.pid):
            with open("/proc/%d/task/%s/stat" % (program.pid, tid), encoding="ascii") as file:
                if file.read().rsplit(")", 1)[1].split()[0] != "S":
                    return False
        return True
    t.wait_until("all threads to sleep", is_asleep)
    report = inspect(t, program.pid)
    t.equal("threads in malloc, contradictions", (report["inside_malloc"], report["malloc"]["broken"]), (0, 0))
    program.end()


def check_refused(t, pid, reason):
    result = t.run([t.ptmem(), "--inspect", "-p", str(pid)])
    t.equal("status", result.status, 125)
    t.check(reason.encode() in result.err, "another reason: %r" % result.err)


UNKNOWN = "which has not been used, or is of a version or a build that --inspect does not know"

for _name, _library, _reason in (
        ("unknown", "libposes.so", "its malloc is jemalloc's (libposes.so), " + UNKNOWN),
        ("unknown-mimalloc", "libposes_mimalloc.so",
         "its malloc is mimalloc's (libposes_mimalloc.so), " + UNKNOWN),
        ("google", "libposes_google.so", "its malloc is google/tcmalloc's (libposes_google.so), which --inspect does not know")):
    @test("inspect/refused/" + _name)
    def _(t, library=_library, reason=_reason):
        """What is not as its symbols say is not read as if it were, nor what only has a known name."""
        program = subprocess.Popen([t.program("sleep"), "3600"],
                                   env=t.environment(t.directory, LD_PRELOAD=t.target("lib", library)))
        t.wait_until("it to sleep", lambda: is_asleep(program.pid))  # with the library
        check_refused(t, program.pid, reason)
        program.kill()
        program.wait()


@test("inspect/refused/debug")
def debug(t):
    """gperftools' debugging allocator, whose blocks are in blocks of tcmalloc's with headers of its own."""
    program = Parked(t, "gcc-O2-pie", "tcmalloc-debug")
    library = os.path.basename(os.path.realpath(preload("tcmalloc-debug")["LD_PRELOAD"]))
    check_refused(t, program.pid, "its malloc is tcmalloc's (%s), %s" % (library, UNKNOWN))
    program.end()


@test("inspect/refused/version")
def version(t):
    """A jemalloc that says to be of another version."""
    with open(preload("jemalloc")["LD_PRELOAD"], "rb") as file:
        library = file.read()
    if b"5.3.0-0-g" not in library:
        raise Skip("jemalloc is not 5.3.0")
    path = os.path.join(t.directory, "libjemalloc.so.2")
    with open(path, "wb") as file:
        file.write(library.replace(b"5.3.0-0-g", b"5.3.7-0-g"))
    program = subprocess.Popen([t.target("gcc-O2-pie", "earlier")], env=t.environment(t.directory, LD_PRELOAD=path),
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    program.stdout.readline()
    check_refused(t, program.pid, "its malloc is jemalloc's, version 5.3.7-0, which --inspect does not know")
    program.kill()
    program.communicate()


# -- corrupt heaps --

# mimalloc's descriptions: (distance, bytes)
DESCRIBED = {"mimalloc": ((32 << 20, 40 << 10),), "mimalloc-3": ((256 << 20, 832 << 10), (64 << 10, 128))}


def words_of(pid, allocator):
    """Addresses and values of words that lead to another such word, as those of lists and descriptions do; by page. All words of
    mimalloc's descriptions, and what may be a size of musl's."""
    ranges = []
    with open("/proc/%d/maps" % pid, encoding="ascii") as file:
        for line in file:
            fields = line.split()
            path = fields[5] if len(fields) > 5 else ""
            if fields[1].startswith("rw-p") and not path.startswith(("[stack", "[v")):
                ranges.append(tuple(int(x, 16) for x in fields[0].split("-")))
    inside = sorted(ranges)
    starts = [start for start, _ in inside]

    def leads(at, word):
        mapping = bisect.bisect(starts, word & 0xffffffffff80) - 1
        return (mapping >= 0 and word & 0xffffffffff80 < inside[mapping][1] or
                any(at % distance < size for distance, size in DESCRIBED.get(allocator, ())) or
                allocator == "musl-old" and word % 32 < 2 and word < 1 << 20)

    found = {}
    with open("/proc/%d/mem" % pid, "rb") as memory:
        for start, end in inside:
            memory.seek(start)
            try:
                words = memory.read(min(end - start, 1 << 23))
            except OSError:
                continue # pages beyond the end of a file
            for page in range(start, start + len(words), 4096):
                lead = [(page + i * 8, word) for i, (word,) in enumerate(struct.iter_unpack("<Q", words[page - start:page - start + 4096]))
                        if word and leads(page + i * 8, word)]
                if lead:
                    found[page] = lead
    return found


MUTATIONS = int(os.environ.get("PTMEM_MUTATIONS", "100")) # of each allocator's memory

# Where an allocator was linked, or by which compiler, is not what lies: each layout once.
MUTATED = [known for known in (*KNOWN, *OTHERS) if known[0] not in ("clang-O0-nopie", "linked-jemalloc-static", "linked-tcmalloc-static",
                                                                    "linked-tcmalloc-stripped", "musl-O2-static", "gcc-O2-stripped")]

for _variant, _allocator in MUTATED:
    @test("inspect/mutated/%s-%s" % (_variant, _allocator), limit=120)
    def _(t, variant=_variant, allocator=_allocator):
        """Lists, descriptions and pointers that lie: ptmem ends in time, with rows that add up or a refusal."""
        program, chance = Parked(t, variant, allocator), random.Random(1)
        os.kill(program.pid, signal.SIGSTOP)
        described = "mimalloc-3" if variant == "testing-mimalloc" else allocator
        pages = list(words_of(program.pid, described).values())
        t.check(len(pages) > 8, "words on %d pages" % len(pages))
        broken = 0
        with open("/proc/%d/mem" % program.pid, "r+b", buffering=0) as memory:
            for i in range(MUTATIONS // 10):
                changed = [chance.choice(chance.choice(pages)) for _ in range(10)]
                for at, word in changed:
                    memory.seek(at)
                    other = (0, word + 64, word - 4096, word ^ 1 << chance.randrange(64), at, 0xffffffffffffffff)
                    memory.write(struct.pack("<Q", chance.choice(other) & 0xffffffffffffffff))
                path = os.path.join(t.directory, "%d.json" % i)
                result = t.run([t.ptmem(), "--inspect", "-p", str(program.pid), "--inspect-out=" + path])
                t.check(result.status in (0, 125), "status %d: %r" % (result.status, result.err))
                if result.status == 0:
                    with open(path, encoding="utf-8") as file:
                        report = json.load(file)
                    check_rows(t, report)
                    broken += report.get("malloc", {}).get("broken", 1) > 0
                else:
                    broken += 1
                for at, word in changed:
                    memory.seek(at)
                    memory.write(struct.pack("<Q", word))
        t.check(broken > 0, "no change was noticed")
        program.end()
