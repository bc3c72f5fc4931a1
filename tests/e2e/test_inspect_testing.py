"""glibc of Debian testing: --inspect, blocks in the heaps and leaks are the program's; a version newer than the newest known is
verified."""

import os
import re

from harness import UNPACKED, test, unpacked
from test_earlier import Program
from test_inspect import check_rows, inspect

LIBC = os.path.join(UNPACKED, "usr/lib/x86_64-linux-gnu/libc.so.6")


def start(t, libraries=None, **env):
    return Program(t, command=unpacked(t.target("gcc-O2-pie", "earlier"), libraries=libraries), **env)


def work(t, program):
    program.say(b"g")
    t.wait_until("its threads to have blocks", lambda: program.say(b"x")[1] > 300)
    program.say(b"p")


def check(t, program, report):
    check_rows(t, report)
    t.equal("damaged lists and heaps", (report["broken_lists"], report["broken_heaps"], report["unlisted"]), (0, 0, 0))
    blocks = sum(e["blocks"] for e in report["types"])
    t.check(program.live[1] <= blocks <= program.live[1] + 40, "%d blocks of %d" % (blocks, program.live[1]))
    t.check(report["mmapped_complete"] and report["mmapped_blocks"] == 5, "blocks of their own: %s" % report["mmapped_blocks"])
    # since 2.42 a thread makes its cache when it first needs one: other threads than the first may have none yet
    t.check(report["thread_caches"] >= 1, "caches of threads: %d" % report["thread_caches"])


for _name, _tunables in (("default", ""), ("large", "glibc.malloc.tcache_max=65536"), ("small", "glibc.malloc.tcache_max=200"),
                         ("counts", "glibc.malloc.tcache_count=300")):
    @test("inspect/testing/" + _name)
    def _(t, tunables=_tunables):
        """Lists of large chunks, fewer and longer lists: nothing that is cached seems to be live."""
        program = start(t, GLIBC_TUNABLES=tunables)
        for _ in range(3):
            work(t, program)
            report = inspect(t, program.pid)
            check(t, program, report)
            t.check("verified_not_known" not in report["malloc"], "a known version is not known")
        program.end()


def renamed(t, version):
    """A directory with a libc that says to be of another version."""
    unpacked()
    with open(LIBC, "rb") as file:
        data = file.read()
    said = re.search(rb"stable release version 2\.([0-9]+)", data)
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
