"""--inspect of Python's own allocator: pools, live and free blocks are those that sys._debugmallocstats counts in the same state,
size by size; objects are those of the program; corrupt pools and unknown versions are said, and the rows add up."""

import json
import os
import random
import re
import signal
import struct
import subprocess

from harness import test
from inspect_lib import (
    PROGRAM, PYTHON_ROWS, Python, WAIT, check_rows, gcore, inspect, interpreter, listed, name_of,
    report as report_core)
from process_lib import cpu_ticks

MINORS = range(8, 16)


def found_in(report):
    python = report["python"]
    sizes = {e["bytes"]: (e["pools"], e["live"], e["free"]) for e in python["sizes"]}
    return sizes, {name: python[name] for name in ("arenas", "arena_bytes", "free_pools", "pool_bytes", "live_bytes")}


def check(t, program, *options):
    report = inspect(t, program.pid, options=options)
    python = report["python"]
    check_rows(t, report)
    sizes, numbers = found_in(report)
    t.equal("pools, live and free blocks by size", sizes, program.counted()[0])
    t.equal("arenas, pools and bytes", numbers, program.counted()[1])
    t.equal("parts that contradict others", python["broken"], 0)
    t.equal("live blocks", python["live_blocks"], sum(live for _, live, _ in sizes.values()))
    types = {name_of(e): e for e in report["types"]}
    t.equal("objects", {name: types[name]["blocks"] if name in types else 0 for name in program.objects}, program.objects)
    t.equal("blocks by type", sum(e["blocks"] for e in report["types"]),
            python["live_blocks"] + sum(a["live_blocks"] for a in report["arenas"]) + report["mmapped_blocks"])
    steps = python["arenas_by_live_percent"]
    t.equal("arenas by how full they are", sum(s["arenas"] for s in steps), python["arenas"])
    t.equal("their blocks", sum(s["blocks"] for s in steps), python["live_blocks"])
    t.equal("their memory", sum(s["memory"] for s in steps),
            sum(sum(report["rows"][name].values()) for name in PYTHON_ROWS))
    return report


for _minor in MINORS:
    @test("inspect/python/3.%d" % _minor)
    def _(t, minor=_minor):
        program = Python(t, minor)
        full = check(t, program)
        program.go_on()
        sparse = check(t, program)
        check(t, program, "--inspect-copy=0", "--inspect-pointers")
        t.check(full["python"]["arenas"] > 8, "few arenas")
        t.check(sparse["rows"]["python_pools"]["resident"] > 0, "no free pools")
        t.check(sparse["python"]["live_blocks"] < full["python"]["live_blocks"] / 2, "nothing was freed")
        program.go_on()
        check(t, program)
        program.end()


@test("inspect/python/core")
def core(t):
    """A core file has the same pools, blocks and objects."""
    program = Python(t, 11)
    live, path = inspect(t, program.pid), gcore(t, program.pid)
    report = json.loads(report_core(t, ["--inspect=" + path], "core.json"))
    t.equal("pools and blocks", found_in(report), found_in(live))
    t.equal("types", report["types"], live["types"])
    t.equal("sum of the rows", sum(row["resident"] for row in report["rows"].values()), report["memory"]["resident"])
    program.end()
    os.remove(path)


# -- the list of blocks --

ADDRESSES = WAIT + """
class Slots:
    __slots__ = ("a", "b")
kept = [Slots() for i in range(500)] + [b"x" * i for i in range(2, 400, 3)]
print(0, 0)
print(*((id(o) - 16 * gc.is_tracked(o), sys.getsizeof(o)) for o in kept), sep=";", flush=True)
wait()
"""


for _minor in MINORS:
    # what the hooks add around objects is the same in all versions
    for _hooks in ("pymalloc", "pymalloc_debug") if _minor in (MINORS[0], 11, MINORS[-1]) else ("pymalloc",):
        @test("inspect/python/addresses/3.%d-%s" % (_minor, _hooks))
        def _(t, minor=_minor, hooks=_hooks):
            """Blocks are where objects are, with their sizes, whether or not they are in larger ones of the debugging hooks."""
            program = Python(t, minor, ADDRESSES, PYTHONMALLOC=hooks)
            pairs = re.findall(r"\((\d+), (\d+)\)", program.process.stdout.readline().decode())
            objects = {int(address): int(size) for address, size in pairs}
            t.check(len(objects) > 600, "%d objects" % len(objects))
            if hooks == "pymalloc":
                objects = {address: -(-size // 16) * 16 for address, size in objects.items()}
            report, blocks = inspect(t, program.pid), listed(t, program.pid)
            check_rows(t, report)
            python = report["python"]
            t.equal("objects", {a: (blocks[a][0], blocks[a][2]) if a in blocks else None for a in objects},
                    {a: (size, "Python") for a, size in objects.items()})
            sizes, numbers = found_in(report)
            t.equal("pools, live and free blocks by size", sizes, program.counted()[0])
            t.equal("arenas and pools", (numbers["arenas"], numbers["free_pools"]),
                    (program.counted()[1]["arenas"], program.counted()[1]["free_pools"]))
            t.equal("hooks, contradictions", (python["hooks"], python["broken"]), (hooks == "pymalloc_debug", 0))
            own = [size for size, _, allocator in blocks.values() if allocator == "Python"]
            t.equal("blocks and bytes in the list", (len(own), sum(own)), (python["live_blocks"], python["live_bytes"]))
            t.equal("malloc's", sum(allocator == "malloc" for _, _, allocator in blocks.values()),
                    sum(a["live_blocks"] for a in report["arenas"]) + report["mmapped_blocks"])
            types = {name_of(e): e["blocks"] for e in report["types"]}
            t.equal("objects by type", types["Python Slots"], 500)
            text = t.run([t.ptmem(), "--inspect", "-p", str(program.pid)]).out
            t.equal("hooks in the text", b"its debugging hooks are on" in text, python["hooks"])
            program.end()


# -- a thread in the middle of an allocation --

BUSY = """
import sys, threading
class Slots:
    __slots__ = ("a", "b")
kept = [Slots() for i in range(10000)]
def work():
    while True:
        [[(i,), {i: [i]}, bytes(i % 500)] for i in range(300)]
for i in range(2):
    threading.Thread(target=work, daemon=True).start()
sys.setswitchinterval(1e-5)
print("ready", flush=True)
work()
"""


@test("inspect/python/busy", limit=120)
def busy(t):
    """Of a process that allocates all the time: whenever nothing is said to be half done, which is rare, each object is
    found."""
    program = subprocess.Popen([interpreter(11), "-c", BUSY], env=t.environment(t.directory), stdout=subprocess.PIPE)
    t.equal("the program", program.stdout.readline(), b"ready\n")
    whole = torn = 0
    while whole < 16:
        report = inspect(t, program.pid, options=("--inspect-copy=" + ("0", "1G")[whole % 2],))
        check_rows(t, report)
        if report["python"]["broken"] > 0:
            torn += 1
            t.check(torn < 10, "%d of %d reports contradict themselves" % (torn, whole + torn))
            before = cpu_ticks(program.pid)
            t.wait_until("another moment", lambda: cpu_ticks(program.pid) > before)
            continue
        types = {name_of(e): e["blocks"] for e in report["types"]}
        t.equal("objects that the program keeps", types["Python Slots"], 10000)
        whole += 1
    program.kill()
    program.communicate()


# -- corrupt pools, unknown versions --

class Stopped(Python):
    """The program, stopped by a signal, and its memory."""

    def __init__(self, t, minor, script=PROGRAM, **env):
        super().__init__(t, minor, script, **env)
        os.kill(self.pid, signal.SIGSTOP)
        self.memory = open("/proc/%d/mem" % self.pid, "r+b", buffering=0)
        self.ranges = []
        with open("/proc/%d/maps" % self.pid, encoding="ascii") as file:
            for line in file:
                fields = line.split()
                if fields[1] == "rw-p" and (len(fields) == 5 or fields[5] == "[heap]"):
                    self.ranges.append(tuple(int(x, 16) for x in fields[0].split("-")))

    def words(self, start, end):
        self.memory.seek(start)
        return struct.unpack("<%dQ" % ((end - start) // 8), self.memory.read(end - start))

    def write(self, at, word):
        self.memory.seek(at)
        self.memory.write(struct.pack("<Q", word & 0xffffffffffffffff))

    def pools(self):
        """{address of a word of a pool's header, or of the links in its blocks: the word}; by pool."""
        size = self.counted()[1]["pool_bytes"]
        found = []
        for start, end in self.ranges:
            for at in range(-(-start // size) * size, end - size + 1, size):
                word = self.words(at, at + 64)
                number, last = word[4] >> 32, word[5] >> 32
                if number < 32 and last + (number + 1) * 16 == size:
                    found.append([(at + i * 8, word[i]) for i in range(8)])
        return found

    def arenas(self):
        """[(address of the third word of an arena's description, the word)]: the number of free pools, and of pools."""
        _, numbers = self.counted()
        size, pools = numbers["arena_bytes"], numbers["arena_bytes"] // numbers["pool_bytes"]
        found = []
        for start, end in self.ranges:
            word = self.words(start, end)
            for i in range(len(word) - 2):
                address, fresh, number = word[i:i + 3]
                if address and address % 4096 == 0 and address <= fresh <= address + size and \
                        number >> 32 in (pools - 1, pools) and number & 0xffffffff <= pools and \
                        any(low <= address < high for low, high in self.ranges):
                    found.append((start + (i + 2) * 8, number))
        return found

    def end(self):
        self.memory.close()
        super().end()


@test("inspect/python/torn")
def torn(t):
    """A pool that is left as it is in the middle of an allocation: one more block in use than it has."""
    program = Stopped(t, 11)
    pool = max((p for p in program.pools() if p[1][1]), key=lambda p: p[0][1] & 0xffffffff) # it has free blocks
    before = inspect(t, program.pid)
    t.equal("parts that contradict others", before["python"]["broken"], 0)
    program.write(pool[0][0], pool[0][1] + 1)
    report = inspect(t, program.pid)
    check_rows(t, report)
    t.equal("parts that contradict others", report["python"]["broken"], 1)
    words = b"1 part of Python's arenas contradicts the rest: corrupt, or being changed"
    t.check(words in t.run([t.ptmem(), "--inspect", "-p", str(program.pid)]).out, "the text does not say so")
    program.write(*pool[0])
    t.equal("the report after that", found_in(inspect(t, program.pid)), found_in(before))
    program.end()


@test("inspect/python/unknown")
def unknown(t):
    """Arenas with other numbers of pools are of an unknown version."""
    program = Stopped(t, 11)
    arenas = program.arenas() # reading may make pages resident: before the first report
    known = inspect(t, program.pid)
    t.check(len(arenas) >= known["python"]["arenas"], "%d arenas" % len(arenas))
    for at, word in arenas:
        program.write(at, (word & 0xffffffff) | 128 << 32)
    report = inspect(t, program.pid)
    check_rows(t, report)
    t.equal("what is known", report["python"], {"known": False, "broken": 0})
    moved = sum(known["rows"][name]["resident"] for name in PYTHON_ROWS)
    t.equal("anonymous memory", report["rows"]["anonymous"]["resident"], known["rows"]["anonymous"]["resident"] + moved)
    text = t.run([t.ptmem(), "--inspect", "-p", str(program.pid)]).out
    t.check(b"Python's allocator is of a version that --inspect does not know" in text, "the text does not say so")
    for at, word in arenas:
        program.write(at, word)
    t.equal("the report after that", found_in(inspect(t, program.pid)), found_in(known))
    program.end()


# -- interpreters with allocators of their own --

INTERPRETERS = WAIT + """
import threading
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
OTHER = '''""" + WAIT + """
class Other:
    __slots__ = ("a", "b")
kept = [Other() for i in range(100000)][::2]
wait()
'''
class Slots:
    __slots__ = ("a", "b")
signal.signal(signal.SIGUSR1, lambda *ignored: None)
threading.Thread(target=interpreters.run_string, args=(interpreters.create(), OTHER), daemon=True).start()
signal.pause()
kept = [Slots() for i in range(10000)]
print(0, 0, flush=True)
wait()
"""


class Interpreters(Stopped):
    """Two of them, in threads: the other one counts first."""

    def begin(self):
        def calls():
            found = []
            for tid in os.listdir("/proc/%d/task" % self.pid):
                with open("/proc/%d/task/%s/syscall" % (self.pid, tid), encoding="ascii") as file:
                    found.append(file.read().split()[0])
            return found
        self.t.wait_until("two threads to pause", lambda: calls() == ["34", "34"])
        os.kill(self.pid, signal.SIGUSR1)


for _minor in (12, 13):
    @test("inspect/python/interpreters/3.%d" % _minor)
    def _(t, minor=_minor):
        program = Interpreters(t, minor, INTERPRETERS)
        report = inspect(t, program.pid)
        check_rows(t, report)
        python, (sizes, numbers) = report["python"], found_in(report)
        t.equal("interpreters, contradictions", (python["interpreters"], python["all_interpreters"], python["broken"]), (2, True, 0))
        both = [program.counted(back) for back in (1, 2)]
        t.equal("pools, live and free blocks by size", sizes,
                {size: tuple(map(sum, zip(*(one[size] for one, _ in both if size in one)))) for size in {**both[0][0], **both[1][0]}})
        t.equal("arenas, pools, bytes", {name: numbers[name] for name in ("arenas", "free_pools", "live_bytes")},
                {name: sum(one[name] for _, one in both) for name in ("arenas", "free_pools", "live_bytes")})
        types = {name_of(e): e["blocks"] for e in report["types"]}
        t.equal("objects", (types["Python Slots"], types["Python Other"]), (10000, 50000))
        text = t.run([t.ptmem(), "--inspect", "-p", str(program.pid)]).out
        t.check(b"\nof 2 interpreters, each with arenas of its own\n" in text, "not in the text")
        program.end()

    @test("inspect/python/interpreters/lost/3.%d" % _minor)
    def _(t, minor=_minor):
        """The other one's array is not what it should be: its arenas are said to be elsewhere, and none is misread."""
        program = Interpreters(t, minor, INTERPRETERS)
        size = program.counted()[1]["arena_bytes"]
        others = [address for address, (_, kind, _) in listed(t, program.pid).items() if kind == "Python Other"]
        t.equal("its objects", len(others), 50000)
        changed = 0
        for at, word in program.arenas():
            start = program.words(at - 16, at - 8)[0]
            if any(start <= address < start + size for address in others):
                program.write(at, (word & 0xffffffff) | 128 << 32)
                changed += 1
        t.check(changed > 0, "no arenas")
        report = inspect(t, program.pid)
        check_rows(t, report)
        t.equal("interpreters", (report["python"]["interpreters"], report["python"]["all_interpreters"]), (1, False))
        t.equal("the first one's pools, live and free blocks", found_in(report)[0], program.counted()[0])
        t.check("Python Other" not in map(name_of, report["types"]), "the other's objects")
        text = t.run([t.ptmem(), "--inspect", "-p", str(program.pid)]).out
        t.check(b"other interpreters have an allocator of their own that could not be followed" in text, "not in the text")
        program.end()


# -- what keeps arenas --

PINNED = WAIT + """
class Dropped:
    __slots__ = ("a", "b")
class Kept:
    __slots__ = ("a", "b")
kept, dropped = [], []
for i in range(50):
    dropped.append([Dropped() for k in range(30000)])
    kept.append(Kept())
kept = kept[5:-5]
del dropped
gc.collect()
print(0, 0)
print(*map(id, kept), flush=True)
wait()
"""


@test("inspect/python/pinned")
def pinned(t):
    """Of each 30,000 objects one stays: it keeps an arena, and the report says so."""
    program = Stopped(t, 11, PINNED)
    ids = list(map(int, program.process.stdout.readline().split()))
    size = program.counted()[1]["arena_bytes"]
    starts = {program.words(at - 16, at - 8)[0] for at, _ in program.arenas()}
    held = {start for start in starts for i in ids if start <= i < start + size}
    report = inspect(t, program.pid)
    found = {e["type"]: (e["arenas"], e["blocks"]) for e in report["python"]["nearly_empty_arenas"]}
    t.check(len(held) >= 20, "%d arenas" % len(held))
    t.equal("arenas with such objects, and these", found.get("Python Kept"), (len(held), len(ids)))
    emptiest = [s for s in report["python"]["arenas_by_live_percent"] if s["most"] <= 10]
    t.check(sum(s["arenas"] for s in emptiest) >= len(held), "nearly empty: %r" % emptiest)
    text = t.run([t.ptmem(), "--inspect", "-p", str(program.pid)]).out.decode()
    t.check(" %d arenas by Python Kept (%d of them there)" % (len(held), len(ids)) in text, "not in the text:\n" + text)
    program.end()


@test("inspect/python/text")
def text(t):
    """The rows of the text add up, and say what the JSON does."""
    program = Stopped(t, 11)
    report = inspect(t, program.pid)
    out = t.run([t.ptmem(), "--inspect", "-p", str(program.pid)]).out.decode()
    rows = re.findall(r"^ +([0-9,]+) +[0-9.]+ %  (.*)$", out.split("all: VmRSS")[0] + "all: VmRSS", re.M)
    numbers = {what: int(number.replace(",", "")) for number, what in rows}
    whole = numbers.pop("all: VmRSS")
    t.equal("sum of the rows", sum(numbers.values()), whole)
    for name, what in (("python_live", "live blocks of Python's allocator"),
                       ("python_free", "free in Python's allocator, among live blocks"),
                       ("python_pools", "free in Python's allocator, whole pools"),
                       ("python_own", "Python's allocator: headers, padding")):
        t.equal(what, numbers.get(what, 0), report["rows"][name]["resident"])
    t.check("Python: %d arenas of 1.0 MiB" % report["python"]["arenas"] in out, "no arenas in the text:\n" + out)
    program.end()


# -- whatever lies --

MUTATIONS = int(os.environ.get("PTMEM_MUTATIONS", "100"))

for _minor in (8, 11):
    @test("inspect/python/mutated/3.%d" % _minor, limit=120)
    def _(t, minor=_minor):
        """Headers of pools, links of free blocks and descriptions of arenas that lie: ptmem ends in time, the rows add up."""
        program, chance = Stopped(t, minor), random.Random(1)
        pools, arenas = program.pools(), program.arenas()
        t.check(len(pools) > 100 and arenas, "%d pools, %d arenas" % (len(pools), len(arenas)))
        broken = 0
        for _ in range(MUTATIONS // 10):
            changed = [chance.choice(chance.choice(pools)) for _ in range(9)] + [chance.choice(arenas)]
            for at, word in changed:
                other = (0, word + 64, word - 4096, word ^ 1 << chance.randrange(64), at, 0xffffffffffffffff)
                program.write(at, chance.choice(other))
            report = inspect(t, program.pid)
            check_rows(t, report)
            python = report.get("python", {"known": False}) # more than a few lists of pools lie
            broken += not python["known"] or python["broken"] > 0
            for at, word in changed:
                program.write(at, word)
        t.check(broken > MUTATIONS // 20, "%d changes were noticed" % broken)
        t.equal("the numbers after that", found_in(inspect(t, program.pid)), program.counted())
        program.end()
