"""--inspect of core files: the same blocks as in the process, address by address; rows that add up to what is in the file;
cores that cannot be read, and mutations of those that can."""

import glob
import json
import os
import random
import re
import resource
import shutil
import signal
import struct

from harness import Fail, Skip, test
from inspect_lib import Inspected, Parked, Typed, VARIANTS, gcore, report

PAGE = 4096


class Process:
    """targets/inspected, and what --inspect says of it."""

    def __init__(self, t, variant="gcc-O2-pie", **how):
        self.t, self.program = t, Inspected(t, variant, **how)
        own = ["--inspect", "-p", str(self.program.process.pid)]
        self.blocks, self.json = report(t, own, "live.csv"), json.loads(report(t, own, "live.json"))

    def gcore(self):
        return gcore(self.t, self.program.process.pid)


def memory_parts(path):
    """The program headers of type PT_LOAD: (address, bytes in the file, bytes in memory, offset)."""
    with open(path, "rb") as file:
        head = file.read(64)
        start, = struct.unpack_from("<Q", head, 32)
        count, = struct.unpack_from("<H", head, 56)
        file.seek(start)
        headers = [struct.unpack("<IIQQQQQQ", file.read(56)) for _ in range(count)]
    return [(h[3], h[5], h[6], h[2]) for h in headers if h[0] == 1]


def count_memory(path):
    """Bytes of memory in the file, and those of them in pages of zeros."""
    size = zeros = 0
    with open(path, "rb") as file:
        for _, filled, _, offset in memory_parts(path):
            file.seek(offset)
            size += filled
            zeros += sum(PAGE for _ in range(filled // PAGE) if file.read(PAGE) == bytes(PAGE))
    return size, zeros


def check_core(t, process, path):
    t.equal("blocks", report(t, ["--inspect=" + path], "core.csv"), process.blocks)
    t.check(process.blocks.count("\n") > 300, "few blocks")
    got, live = json.loads(report(t, ["--inspect=" + path], "core.json")), process.json
    t.equal("sum of the rows", sum(row["resident"] for row in got["rows"].values()), got["memory"]["resident"])
    size, zeros = count_memory(path)
    t.equal("bytes in the core", got["core"]["bytes"], size)
    t.equal("bytes in pages of zeros", got["core"]["zeros"], zeros)
    t.equal("the rows", got["memory"]["resident"], size - zeros)
    t.equal("what is not in the core", got["core"]["left_out"] > 0, True)
    for name in ("pid", "malloc", "arenas", "sizes", "types", "advice", "mmapped_blocks", "mmapped_complete", "threads",
                 "thread_caches", "inside_malloc", "broken_lists", "unlisted", "broken_heaps"):
        t.equal(name, got[name], live[name])
    # all that the process itself has written
    for name in ("live", "mmapped", "tcache", "fastbins", "unsorted", "bins", "top", "allocator", "stacks",
                 "stacks_beyond", "tls"):
        t.equal("row " + name, got["rows"][name], live["rows"][name])


for _variant in VARIANTS:
    @test("inspect/core/gcore/" + _variant)
    def _(t, variant=_variant):
        process = Process(t, variant)
        path = process.gcore()
        check_core(t, process, path)
        process.program.end()
        os.remove(path)


for _variant, _allocator in (("gcc-O2-pie", "jemalloc"), ("gcc-O2-pie", "tcmalloc"), ("linked-tcmalloc-stripped", "tcmalloc")):
    @test("inspect/core/%s-%s" % (_variant, _allocator))
    def _(t, variant=_variant, allocator=_allocator):
        program = Parked(t, variant, allocator)
        live = ["--inspect", "-p", str(program.pid)]
        blocks, malloc = report(t, live, "live.csv"), json.loads(report(t, live, "live.json"))["malloc"]
        path = gcore(t, program.pid)
        t.equal("blocks", report(t, ["--inspect=" + path], "core.csv"), blocks)
        t.equal("malloc", json.loads(report(t, ["--inspect=" + path], "core.json"))["malloc"], malloc)
        t.check(malloc["live_blocks"] > 300, "few blocks: %s" % malloc)
        program.end()
        os.remove(path)


@test("inspect/core/types")
def types(t):
    """Tables of functions are recognized although gcore leaves the functions out."""
    program = Typed(t, [t.target("gcc-O2-pie", "typed")])
    program.make(b"a")
    name, live = os.path.join(t.subdirectory(), "core"), program.inspect()["types"]
    path = "%s.%d" % (name, program.process.pid)
    result = t.run([t.program("gcore"), "-o", name, str(program.process.pid)])
    t.equal("gcore", (result.status, os.path.exists(path)), (0, True))
    t.check({"C++", "table"} <= {e["kind"] for e in live}, "types of the process: %s" % live)
    t.equal("types", json.loads(report(t, ["--inspect=" + path], "core.json"))["types"], live)
    program.end()
    os.remove(path)


@test("inspect/core/kernel")
def kernel(t):
    """As the kernel writes it when a signal kills the program."""
    with open("/proc/sys/kernel/core_pattern", encoding="ascii") as file:
        pattern = file.read().strip()
    if pattern.startswith("|") or "/" in pattern:
        raise Skip("kernel.core_pattern sends cores elsewhere: " + pattern)
    cwd = t.subdirectory()
    process = Process(t, cwd=cwd)
    pid = process.program.process.pid
    resource.prlimit(pid, resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    os.kill(pid, signal.SIGQUIT)
    process.program.process.wait()
    found = glob.glob(os.path.join(cwd, "*"))
    if not found:
        raise Skip("the kernel wrote no core (a limit of this machine)")
    check_core(t, process, found[0])
    os.remove(found[0])


def make_core(t):
    process = Process(t)
    path = process.gcore()
    process.program.end()
    return process, path


@test("inspect/core/text")
def text(t):
    process, path = make_core(t)
    result = t.run([t.ptmem(), "--inspect=" + path])
    t.equal("status", result.status, 0)
    size, zeros = count_memory(path)
    out = result.out.decode()
    for words in ("%s, core of process %d, " % (path, process.json["pid"]), "bytes in the core          what",
                  "{:,}          pages of zeros: touched or not, the core does not say".format(zeros),
                  "{:,}          all: memory in the core".format(size), "which pages were resident or swapped out",
                  "what would return memory", "malloc: glibc 2."):
        t.check(words in out, "no %r in the text" % words)
    t.check(re.search(r"^ +arena +system +in core +live +blocks ", out, re.M), "no bytes in the core by arena")
    t.check("stopped for" not in out and "VmRSS" not in out, "as if it were of a process")
    os.remove(path)


@test("inspect/core/program")
def program(t):
    """The file of the program is where the core says, or named, or not there; and may be another one."""
    copy = os.path.join(t.subdirectory(), "inspected")
    shutil.copy(t.target("gcc-O2-static", "inspected"), copy)
    process = Process(t, program=copy)
    path = process.gcore()
    process.program.end()
    moved = copy + ".moved"
    os.rename(copy, moved)

    def ask(*argv):
        result = t.run([t.ptmem(), "--inspect=" + path, *argv])
        t.equal("status", result.status, 0)
        return result.out.decode(), result.err.decode()
    out, err = ask()
    t.check("(1 of the files of the program and libraries is missing or has changed: " in out and not err, "not missed: %s%s" % (out, err))
    # the heap is found all the same
    t.equal("blocks", report(t, ["--inspect=" + path], "core.csv"), process.blocks)
    out, err = ask(moved)
    t.check("missing or ha" not in out and not err, "not used: %s%s" % (out, err))
    out, err = ask(t.target("gcc-O2-pie", "inspected"))
    t.check("is not the program of the core: their build-ids differ" in err, "taken: %s" % err)
    os.remove(path)


@test("inspect/core/overwritten")
def overwritten(t):
    """The program that only the core names, or a library, is not overwritten."""
    copy = os.path.join(t.subdirectory(), "inspected")
    shutil.copy(t.target("gcc-O2-pie", "inspected"), copy)
    process = Process(t, program=copy)
    path = process.gcore()
    process.program.end()
    with open(copy, "rb") as file:
        code = file.read()
    result = t.run([t.ptmem(), "--inspect=" + path, "--inspect-out=" + copy])
    t.check(result.status == 125 and b"--inspect-out would overwrite " + copy.encode() in result.err,
            "%d, %r" % (result.status, result.err))
    with open(copy, "rb") as file:
        t.check(file.read() == code, "the program is what it was")
    os.remove(path)


def forged_cores(t, path):
    """Small files whose headers claim what would be much work: segments that share bytes, or overlap; notes of absurd sizes."""
    base, size = 0x10000000, 1 << 16
    load, note = 1, 4

    def header(kind, offset, start, filled):
        return struct.pack("<IIQQQQQQ", kind, 6, offset, start, 0, filled, filled if kind == load else 0, PAGE)
    one = header(load, 1 << 20, base, size)
    notes = header(note, 1 << 20, 0, 1 << 12)
    forged = {
        "sharing": ([header(load, 1 << 20, base + i * size, size) for i in range(5000)], b"", "have more bytes than the file"),
        "sharing-notes": ([one, *[notes] * 60000], b"", "have more bytes than the file"),
        "overlapping": ([one, header(load, 0, base + PAGE, size)], b"", "contradict each other"),
        "wrapping": ([header(load, 1 << 20, 2**64 - PAGE, size)], b"", "contradict each other"),
        "no-notes": ([one], b"", "has no registers of any thread"),
        "large-name": ([one, notes], struct.pack("<III", 2**32 - 1, 336, 1), "has no registers of any thread"),
        "large-note": ([one, notes], struct.pack("<III", 4, 2**32 - 1, 1), "has no registers of any thread"),
        "small-note": ([one, notes], struct.pack("<III", 0, 8, 1), "has no registers of any thread"),
    }
    for name, (headers, content, words) in forged.items():
        out = os.path.join(t.subdirectory(), "forged-" + name)
        with open(path, "rb") as file:
            head = bytearray(file.read(64))
        struct.pack_into("<Q", head, 32, 64)
        struct.pack_into("<H", head, 56, len(headers))
        with open(out, "wb") as file:
            file.write(head + b"".join(headers))
            file.seek(1 << 20)
            file.write(content)
            file.truncate(max((1 << 20) + size + PAGE, 64 + 56 * len(headers)))
        yield out, words


@test("inspect/core/refused")
def refused(t):
    _, path = make_core(t)
    cut = os.path.join(t.subdirectory(), "cut")
    with open(path, "rb") as file, open(cut, "wb") as out:
        out.write(file.read(os.path.getsize(path) // 2))
    cases = [(cut, "is truncated: "), ("/nonexistent", "No such file"), ("/", "is not a regular file"),
             (t.ptmem(), "is a program or library"), (__file__, "is not a core file")]
    for name, at, change, words in (("cpu", 18, b"\xb7\0", "is of another CPU (ELF machine 183)"),
                                    ("class", 4, b"\1", "is of a 32-bit program"),
                                    ("packed", 0, b"\x28\xb5\x2f\xfd", "is compressed (zstd)")):
        cases.append((os.path.join(t.subdirectory(), name), words))
        with open(path, "rb") as file, open(cases[-1][0], "wb") as out:
            start = bytearray(file.read(PAGE))
            start[at:at + len(change)] = change
            out.write(start)
    cases += forged_cores(t, path)
    for name, words in cases:
        result = t.run([t.ptmem(), "--inspect=" + name])
        t.equal("status of " + name, result.status, 125)
        t.check(result.err.decode().startswith("ptmem: %s: " % name) and words in result.err.decode(),
                "%s: %r" % (name, result.err))
        t.equal("output of " + name, result.out, b"")
    for options, words in ((["--inspect=" + path, "-p", "1"], b"neither --pid"), (["--inspect=" + path, "a", "b"], b"at most"),
                           (["--inspect="], b"takes a name"), (["--inspect"], b"--inspect needs --pid, a program, or the name")):
        result = t.run([t.ptmem(), *options])
        t.check(result.status != 0 and words in result.err, "%s: %d, %r" % (options, result.status, result.err))
    os.remove(path)


MUTATIONS = 2 * int(os.environ.get("PTMEM_MUTATIONS", "50"))


def check_sums(t, option, path):
    with open(path, encoding="utf-8") as file:
        got = json.load(file)
    if option == "inspect":
        t.equal("sum of the rows", sum(row["resident"] for row in got["rows"].values()), got["memory"]["resident"])
    else:
        t.equal("sum of the rows", sum(row["retained_bytes"] for row in got["rows"] if row["level"] == 0), got["bytes"])


for _option in ("inspect", "graph"):
    @test("inspect/core/mutations" + ("-graph" if _option == "graph" else ""), limit=300)
    def _(t, option=_option):
        """Words of the headers, the notes, the arena and the heap are changed: no crash, no hang, and the rows add up."""
        mutate(t, option)


def mutate(t, option):
    process, path = make_core(t)
    first = process.blocks.split("\n")[1].split(",")[0]
    arena = process.json["arenas"][0]["address"]
    generator, taken = random.Random(1), 0

    def offset(addr):
        return next(o + addr - a for a, filled, _, o in memory_parts(path) if a <= addr < a + filled)
    starts = (offset(int(first, 16)), offset(int(arena, 16)))
    notes = min(o for _, _, _, o in memory_parts(path))
    with open(path, "r+b") as file:
        for number in range(MUTATIONS):
            at = [generator.choice((8 * generator.randrange(notes // 8), starts[0] + 8 * generator.randrange(20000),
                                    starts[1] + 8 * generator.randrange(270))) for _ in range(generator.randrange(1, 6))]
            old = [os.pread(file.fileno(), 8, a) for a in at]
            for a, o in zip(at, old):
                word = int.from_bytes(o, "little")
                word = generator.choice((0, 2**64 - 1, word + 16, word - 16, word ^ 1 << generator.randrange(64), word + PAGE,
                                         generator.randrange(2**32)))
                os.pwrite(file.fileno(), (word % 2**64).to_bytes(8, "little"), a)
            result = t.run([t.ptmem(), "--%s=%s" % (option, path), "--%s-out=out.json" % option], cwd=t.directory, timeout=200)
            if result.status not in (0, 125) or (result.status == 125) != bool(result.err):
                raise Fail("mutation %d: status %d: %s" % (number, result.status, result.err.decode()))
            taken += result.status == 0
            if result.status == 0:
                check_sums(t, option, os.path.join(t.directory, "out.json"))
            for a, o in zip(at, old):
                os.pwrite(file.fileno(), o, a)
    t.check(MUTATIONS // 10 < taken < MUTATIONS, "%d of %d could be read" % (taken, MUTATIONS))
    t.equal("blocks of the core as it was", report(t, ["--inspect=" + path], "core.csv"), process.blocks)
    os.remove(path)
