"""Allocators other than glibc's, and more programs: what --inspect finds in their heaps is what was counted, address by address, and its rows
add up. PTMEM_MOMENTS=100 asks each program 100 times, if it runs that long; PTMEM_PROOF=FILE appends a line for each."""

import bisect
import json
import os
import random
import signal
import struct
import subprocess
import time

from harness import LIBRARIES, Fail, Skip, allocator, test
from test_inspect import Checked, check_rows, inspect

STARTED = 30  # blocks
MOMENTS = int(os.environ.get("PTMEM_MOMENTS", "6"))
LIMIT = max(120, 6 * MOMENTS)


# tcmalloc's other libraries: with sampling, which programs must ask for, and for debugging.
TCMALLOC = {"tcmalloc-sampling": ("libtcmalloc.so.4", {"TCMALLOC_SAMPLE_PARAMETER": "20000"}),
            "tcmalloc-debug": ("libtcmalloc_minimal_debug.so.4", {})}


def preload(name, variant=""):
    """The environment in which programs of @variant use it."""
    if name == "mimalloc" and allocator(name).endswith(".so.3"):
        raise Skip("mimalloc 2 is not installed")
    if name in ("glibc", "musl", "musl-old") or variant.startswith("linked-"):
        return {}
    if name not in TCMALLOC:
        return {"LD_PRELOAD": allocator(name)}
    library, env = TCMALLOC[name]
    if not os.path.exists(LIBRARIES + library):
        raise Skip("no %s on this machine" % library)
    return {"LD_PRELOAD": LIBRARIES + library, **env}


# -- the proof --

def source(t):
    path = t.file("source.cc", "#include <map>\n#include <string>\n#include <regex>\n#include <iostream>\n"
                  "std::map<std::string, std::regex> m; int main() { m[\"a\"] = \"b\"; std::cout << m.size(); }\n")
    return os.path.join(t.directory, path) if not os.path.isabs(path) else path


# Without an end, since a process that ends kills its threads in the middle of malloc.
PYTHON = """
import json, random
random.seed(1)
texts = {}
while True:
    i = random.randrange(400000)
    texts[random.randrange(3000)] = json.dumps([i] * random.randrange(60))
"""
PERL = "srand(1); my %h; while (1) { $h{int rand 5000} = 'x' x int rand 900; delete $h{int rand 5000} if rand 3 < 1 }"
SQL = ("CREATE TABLE a (x INTEGER PRIMARY KEY, y TEXT); WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c "
       "WHERE n < 1000000000) INSERT INTO a SELECT n % 20000, hex(randomblob(n % 90)) FROM c WHERE true "
       "ON CONFLICT DO UPDATE SET y = excluded.y;")
JQ = "reduce range(1000000000) as $i ({}; .[($i % 500 | tostring)] = [$i, \"x\" * ($i % 70)]) | length"
NODE = "let a = []; const z = require('zlib'); let n = 0; (function go() { z.deflate(Buffer.alloc(200000, n++), () => { " \
       "for (let i = 0; i < 200; i++) { a.push(Buffer.alloc(i * 500)); if (a.length > 100) a.shift(); } " \
       "JSON.parse(JSON.stringify(a.map(b => b.length))); go(); }) })();"
# Commits for git fast-import.
COMMITS = """
import sys
i = 0
while True:
    text = 'x' * (10 + i % 50)
    sys.stdout.write('commit refs/heads/b%d\\ncommitter A <a@b> %d +0000\\ndata %d\\n%s\\nM 100644 inline dir%d/file%d\\ndata 4\\n%04d\\n'
                     % (i % 40, i + 1000000000, len(text), text, i % 97, i % 5000, i % 10000))
    i += 1
"""


def program(t, name):
    if name == "g++":
        t.program("g++")
        compiler = subprocess.run(["g++", "-print-prog-name=cc1plus"], stdout=subprocess.PIPE, check=True).stdout.decode().strip()
        return [compiler, "-quiet", "-O2", "-std=c++17", "-imultiarch", "x86_64-linux-gnu", "-D_GNU_SOURCE", source(t), "-o",
                "/dev/null"]
    if name == "git":
        directory = t.subdirectory()
        subprocess.run([t.program("git"), "init", "-q", directory], check=True)
        return [t.program("git"), "--git-dir=" + os.path.join(directory, ".git"), "fast-import", "--quiet"]
    if name == "redis":
        return [t.program("redis-server"), "--port", "0", "--unixsocket", "s", "--save", "", "--appendonly", "no"]
    if name == "threads":
        return [t.target("gcc-O2-pie", "inspected_busy")]
    if name == "mixed":
        return [t.target("gcc-O2-pie", "mixed"), "1", "1000000000", "40"]
    if name.startswith("linked"):
        return [t.target(*name.rsplit("-", 1))]
    if name.startswith("musl"):
        variant, target = name.rsplit("-", 1)
        return [t.target(variant, target), "1", "1000000000", "40", "no-valloc"]
    return {"python3": ["/usr/bin/python3", "-c", PYTHON], "perl": ["perl", "-e", PERL], "sqlite3": ["sqlite3", ":memory:", SQL],
            "jq": ["jq", "-n", JQ], "node": ["node", "-e", NODE]}[name]


def ask_often(checked, moments):
    """The numbers of blocks at @moments random moments, or as many as there are before the program ends; start-up does not count."""
    generator, seen = random.Random(1), []
    while checked.ptmem.poll() is None and len(seen) < moments:
        try:
            blocks = checked.ask()
        except Fail as e:
            raise Fail("after %s: %s" % (seen, e)) from e
        if blocks is not None and (seen or blocks > STARTED):
            seen.append(blocks)
        time.sleep(generator.random() / 20)
    checked.end()
    return seen


class Load:
    """What a program needs while it is asked, if it does nothing by itself."""

    def __init__(self, t, name):
        self.t, self.feeder, self.client = t, None, None
        if name == "git":
            self.feeder = subprocess.Popen(["python3", "-c", COMMITS], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def stdin(self):
        return self.feeder.stdout if self.feeder else subprocess.DEVNULL

    def begin(self, name, checked):
        if name != "redis":
            return
        socket = os.path.join(checked.cwd, "s")
        self.t.wait_until("redis-server's socket", lambda: os.path.exists(socket))
        self.client = subprocess.Popen([self.t.program("redis-benchmark"), "-s", socket, "-l", "-q", "-r", "20000", "-d", "300",
                                        "-t", "set,lpush,sadd,zadd,hset"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def end(self):
        if self.feeder:
            self.feeder.stdout.close()
        for process in (self.feeder, self.client):
            if process:
                process.kill()
                process.wait()


def prove(t, name, allocator):
    env = preload(allocator)
    argv = program(t, name)
    if name == "python3":
        env["PYTHONMALLOC"] = "malloc"
    if "/" not in argv[0]:
        argv[0] = t.program(argv[0])
    load = Load(t, name)
    checked = Checked(t, argv, stdin=load.stdin(), **env)
    try:
        load.begin(name, checked)
        seen = ask_often(checked, MOMENTS)
    finally:
        load.end()
    t.check(len(seen) >= min(MOMENTS, 3), "blocks at each moment: %s" % seen)
    if "PTMEM_PROOF" in os.environ:
        with open(os.environ["PTMEM_PROOF"], "a", encoding="ascii") as file:
            file.write("%-9s %-9s %4d moments, up to %d blocks, no difference\n" % (name, allocator, len(seen), max(seen)))


for _program in ("musl-O2-pie-mixed", "musl-O2-static-mixed"):
    @test("inspect/exact/" + _program, limit=LIMIT)
    def _(t, name=_program):
        prove(t, name, "musl")

for _program in ("python3", "perl", "sqlite3", "threads", "g++", "git", "jq", "node", "redis"):
    for _allocator in ("glibc", "jemalloc", "tcmalloc", "mimalloc"):
        if _allocator == "glibc" and _program == "redis":
            continue  # Debian's is linked to jemalloc
        if _allocator == "glibc" and _program in ("python3", "perl", "sqlite3", "threads"):
            continue  # in test_inspect.py

        @test("inspect/exact/%s-%s" % (_program, _allocator), limit=LIMIT)
        def _(t, name=_program, allocator=_allocator):
            prove(t, name, allocator)

for _program in ("python3", "sqlite3", "threads", "redis"):
    @test("inspect/exact/%s-tcmalloc-sampling" % _program, limit=LIMIT)
    def _(t, name=_program):
        prove(t, name, "tcmalloc-sampling")

for _program, _allocator in (("mixed", "tcmalloc"), ("mixed", "tcmalloc-sampling"), ("linked-tcmalloc-static-inspected_busy", "glibc")):
    @test("inspect/exact/%s-%s" % (_program, _allocator), limit=LIMIT)
    def _(t, name=_program, allocator=_allocator):
        prove(t, name, allocator)


SHAPES = (("gcc-O2-pie", "jemalloc"), ("gcc-O2-stripped", "mimalloc"), ("linked-mimalloc", "mimalloc"),
          ("musl-O2-static", "musl"))

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


# -- the report --

KNOWN = (("gcc-O2-pie", "jemalloc"), ("linked-jemalloc-static", "jemalloc"), ("musl-O2-pie", "musl"), ("musl-O2-static", "musl"),
         ("gcc-O2-pie", "tcmalloc"), ("gcc-O2-pie", "tcmalloc-sampling"), ("clang-O0-nopie", "tcmalloc"),
         ("linked-tcmalloc-static", "tcmalloc"), ("linked-mimalloc", "mimalloc"))
# Where malloc has no name; musl's before 1.2.1 is laid out by targets/old_musl, and all its blocks are counted.
OTHERS = (("linked-tcmalloc-stripped", "tcmalloc"), ("gcc-O2-pie", "musl-old"), ("gcc-O2-stripped", "musl-old"))


class Parked:
    """targets/earlier, whose threads wait; live: bytes and blocks that it has."""

    def __init__(self, t, variant, allocator, **env):
        env = t.environment(t.directory, **preload(allocator, variant), **env)
        self.process = subprocess.Popen([t.target(variant, "old_musl" if allocator == "musl-old" else "earlier")], env=env,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.pid = self.process.pid
        self.answer()
        self.say(b"g")
        t.wait_until("its threads to have blocks", lambda: self.say(b"x")[1] > 300)
        self.say(b"p")

    def say(self, letter):
        self.process.stdin.write(letter)
        self.process.stdin.flush()
        self.answer()
        return self.live

    def answer(self):
        words = self.process.stdout.readline().split()
        if len(words) != 2:
            raise Fail("the program answered %r" % words)
        self.live = tuple(map(int, words))

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


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
        program = subprocess.Popen([t.program("sleep"), "60"],
                                   env=t.environment(t.directory, LD_PRELOAD=t.target("lib", library)))
        t.wait_until("the library", lambda: library in open("/proc/%d/maps" % program.pid, encoding="ascii").read())
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

SEGMENT, DESCRIBED = 32 << 20, 40 << 10  # mimalloc's


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
    found = {}
    with open("/proc/%d/mem" % pid, "rb") as memory:
        for start, end in inside:
            memory.seek(start)
            for i, (word,) in enumerate(struct.iter_unpack("<Q", memory.read(min(end - start, 1 << 23)))):
                at = bisect.bisect(starts, word & 0xffffffffff80) - 1
                is_link = at >= 0 and word & 0xffffffffff80 < inside[at][1]
                is_described = allocator == "mimalloc" and (start + i * 8) % SEGMENT < DESCRIBED
                is_size = allocator == "musl-old" and word % 32 < 2 and word < 1 << 20
                if word and (is_link or is_described or is_size):
                    found.setdefault((start + i * 8) & ~4095, []).append((start + i * 8, word))
    return found


MUTATIONS = 200

for _variant, _allocator in (*KNOWN, *OTHERS):
    @test("inspect/mutated/%s-%s" % (_variant, _allocator), limit=120)
    def _(t, variant=_variant, allocator=_allocator):
        """Lists, descriptions and pointers that lie: ptmem ends in time, with rows that add up or a refusal."""
        program, chance = Parked(t, variant, allocator), random.Random(1)
        os.kill(program.pid, signal.SIGSTOP)
        pages = list(words_of(program.pid, allocator).values())
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
