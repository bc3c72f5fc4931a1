"""glibc of Debian testing and experimental: --inspect, blocks in the heaps and leaks are the program's; a version newer than the newest known is
verified."""

import csv
import os
import re
import struct

from harness import MULTIARCH, UNPACKED, test, unpacked
from inspect_lib import check_rows, inspect
from process_lib import Program

LIBC = os.path.join(UNPACKED, "usr/lib", MULTIARCH, "libc.so.6")


def start(t, libraries=None, suite="", **env):
    return Program(t, command=unpacked(t.target("gcc-O2-pie", "earlier"), libraries=libraries, suite=suite), **env)


def work(t, program):
    program.say(b"g")
    t.wait_until("its threads to have blocks", lambda: program.say(b"x")[1] > 300)
    program.say(b"p")


# Besides the program's blocks there is one for each thread that it made: the vector of its thread variables (dtv), which ld.so
# allocates with calloc, of 17 entries of 16 bytes, the first of which says that 15 are for modules.
VECTOR, VECTOR_SIZE = struct.pack("<Q", 15), 280


def check_vectors(t, program):
    """All blocks that are not the program's are such vectors; the program has none."""
    result = t.run([t.ptmem(), "--inspect", "-p", str(program.pid), "--inspect-out=blocks.csv"], cwd=t.directory)
    t.equal("status", result.status, 0)
    with open(os.path.join(t.directory, "blocks.csv"), encoding="utf-8") as file, open("/proc/%d/mem" % program.pid, "rb") as memory:
        rows = list(csv.DictReader(file))
        for row in rows:
            memory.seek(int(row["address"], 16))
            t.equal("size and first word of a block", (int(row["bytes"]), memory.read(8)), (VECTOR_SIZE, VECTOR))
    t.equal("blocks", len(rows), len(os.listdir("/proc/%d/task" % program.pid)) - 1)


def check(t, program, report):
    check_rows(t, report)
    t.equal("damaged lists and heaps", (report["broken_lists"], report["broken_heaps"], report["unlisted"]), (0, 0, 0))
    vectors = len(os.listdir("/proc/%d/task" % program.pid)) - 1
    t.equal("bytes and blocks", tuple(sum(e[what] for e in report["types"]) for what in ("bytes", "blocks")),
            (program.live[0] + vectors * VECTOR_SIZE, program.live[1] + vectors))
    t.check(report["mmapped_complete"] and report["mmapped_blocks"] == 5, "blocks of their own: %s" % report["mmapped_blocks"])
    # since 2.42 a thread makes its cache when it first needs one: other threads than the first may have none yet
    t.check(report["thread_caches"] >= 1, "caches of threads: %d" % report["thread_caches"])


TUNABLES = {"default": "", "large": "glibc.malloc.tcache_max=65536", "small": "glibc.malloc.tcache_max=200",
            "counts": "glibc.malloc.tcache_count=300"}

for _suite, _name in ((suite, name) for suite in ("testing", "experimental") for name in TUNABLES):
    @test("inspect/%s/%s" % (_suite, _name))
    def _(t, suite=_suite, tunables=TUNABLES[_name]):
        """Lists of large chunks, fewer and longer lists: nothing that is cached seems to be live."""
        program = start(t, suite="" if suite == "testing" else suite, GLIBC_TUNABLES=tunables)
        for _ in range(3):
            work(t, program)
            report = inspect(t, program.pid)
            check(t, program, report)
            t.check("verified_not_known" not in report["malloc"], "a known version is not known")
        t.equal("what the program has in the end", program.say(b"f"), (0, 0))
        check_vectors(t, program)
        program.end()


# What struct malloc_par begins with: trim_threshold, top_pad, mmap_threshold, arena_test. A test for 0 arenas is in no known version.
PARAMETERS = struct.pack("<4Q", *[128 << 10] * 3, 8)
CHANGED = struct.pack("<4Q", *[128 << 10] * 3, 0)


def renamed(t, version, is_changed=False):
    """A directory with a libc that says to be of another version, and has another structure."""
    unpacked()
    with open(LIBC, "rb") as file:
        data = file.read()
    said = re.search(rb"stable release version 2\.([0-9]+)", data)
    if is_changed:
        t.equal("structures that begin like malloc_par", data.count(PARAMETERS), 1)
        data = data.replace(PARAMETERS, CHANGED)
    directory = t.subdirectory()
    with open(os.path.join(directory, "libc.so.6"), "wb") as file:
        file.write(data.replace(said.group(0), b"stable release version " + version))
    return directory


@test("inspect/testing/newer")
def newer(t):
    """Everything is as in a known version."""
    program = start(t, libraries=renamed(t, b"2.99"))
    work(t, program)
    report = inspect(t, program.pid)
    check(t, program, report)
    t.equal("version", (report["malloc"]["version"], report["malloc"]["verified_not_known"]), ("2.99", True))
    text = t.run([t.ptmem(), "--inspect", "-p", str(program.pid)]).out
    t.check(b"malloc: glibc 2.99 (verified, not known); " in text, "the text says %r" % text)
    program.end()


@test("inspect/testing/newer-differs")
def newer_differs(t):
    """A structure is not as in any known version: a newer version is refused, in an inspection and in blocks from before."""
    program = start(t, libraries=renamed(t, b"2.43", is_changed=True))
    work(t, program)
    report = inspect(t, program.pid)
    t.check("verified_not_known" not in report["malloc"], "a known version is not known")
    program.end()
    program = start(t, libraries=renamed(t, b"2.99", is_changed=True))
    work(t, program)
    result = t.run([t.ptmem(), "--inspect", "-p", str(program.pid)])
    t.equal("status", result.status, 125)
    reason = "its malloc is glibc 2.99's, not all of which is as in the versions that --inspect knows, 2.28 to 2.44"
    t.check(reason.encode() in result.err, "another reason: %r" % result.err)
    profile = program.attach().detach()
    said = [m for m in profile.messages if "not known" in m]
    t.equal("messages about them", len(said), 1)
    t.equal("blocks from before", profile.only_stats()["earlier blocks"], 0)
    program.end()
