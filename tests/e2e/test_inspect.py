"""--inspect: rows that add up to what the kernel counts, what malloc_trim returns, corrupt heaps, outputs."""

import json
import os
import pwd
import re
import shutil
import signal
import subprocess

from harness import Skip, allocator, test
from inspect_lib import Inspected, PAGE, VARIANTS, check_rows, inspect


for _variant in VARIANTS:
    @test("inspect/rows/" + _variant)
    def _(t, variant=_variant):
        program = Inspected(t, variant)
        report = inspect(t, program.process.pid)
        t.equal("resident and swapped bytes", (report["memory"]["resident"], report["memory"]["swapped"]),
                program.resident())
        check_rows(t, report)
        t.equal("arenas", len(report["arenas"]), 4)
        t.equal("threads with caches", report["thread_caches"], 4)
        t.equal("blocks with mappings of their own", report["mmapped_blocks"], program.mmapped)
        for name in ("broken_lists", "unlisted", "broken_heaps", "inside_malloc"):
            t.equal(name, report[name], 0)
        for arena in report["arenas"]:
            t.equal("bytes that were not found", arena["missing"], 0)
        live = sum(a["live_bytes"] for a in report["arenas"])
        blocks = sum(a["live_blocks"] for a in report["arenas"])
        # its barrier's threads have a block each (their dtv), ld.so and libc a few of start-up
        t.check(program.live <= live <= program.live + 100000, "%d bytes live of %d" % (live, program.live))
        t.check(program.blocks <= blocks <= program.blocks + 20, "%d blocks live of %d" % (blocks, program.blocks))
        program.end()


for _variant in VARIANTS:
    @test("inspect/untouched/" + _variant)
    def _(t, variant=_variant):
        """No page becomes resident since ptmem reads it: the first report has what the kernel counted before."""
        program = Inspected(t, variant)
        before = program.resident()
        for options in ((), ("--inspect-pointers",), ("--inspect-copy=0",)):
            report = inspect(t, program.process.pid, options=options)
            t.equal("resident and swapped bytes", (report["memory"]["resident"], report["memory"]["swapped"]), before)
            t.equal("the same, afterwards", program.resident(), before)
        program.end()


def comparable(report):
    """What does not depend on how memory was read."""
    return {key: value for key, value in report.items() if key not in ("stopped_ms", "bytes_read", "cgroup")}


for _name in ("glibc", "jemalloc"):
    @test("inspect/copied/" + _name)
    def _(t, name=_name):
        """A process that is copied and resumed is found to have what it has while it is stopped."""
        program = Inspected(t, env={"LD_PRELOAD": allocator(name)} if name != "glibc" else {})
        reports = [inspect(t, program.process.pid, options=("--inspect-pointers", "--inspect-copy=" + size))
                   for size in ("0", "1G", "0")]
        for report in reports:
            check_rows(t, report)
        t.equal("reports without and with a copy", comparable(reports[0]), comparable(reports[1]))
        t.equal("reports without a copy", comparable(reports[0]), comparable(reports[2]))
        t.check(reports[0]["rows"]["live"]["resident"] > 0 and len(reports[0]["types"]) > 3, "an empty report")
        program.end()


@test("inspect/trim")
def trim(t):
    """What malloc_trim(0) returns was predicted, page by page."""
    program = Inspected(t)
    before = inspect(t, program.process.pid)
    program.step(b"t")
    after = inspect(t, program.process.pid)
    for one, other in zip(before["arenas"], after["arenas"]):
        t.equal("bytes that malloc_trim returned of arena " + one["address"],
                one["memory"]["resident"] - other["memory"]["resident"], one["trim"]["resident"])
        t.equal("live bytes", other["live_bytes"], one["live_bytes"])
        t.equal("more to return", other["trim"]["resident"], 0)
    t.check(before["arenas"][0]["trim"]["resident"] > 0, "nothing to return")
    t.equal("bytes promised by the advice", next(a["bytes"] for a in before["advice"] if a["name"] == "malloc_trim"),
            sum(a["trim"]["resident"] for a in before["arenas"]))
    program.end()


@test("inspect/corrupt")
def corrupt(t):
    """Chunks with wrong headers: the walk ends there, and the rows add up."""
    program = Inspected(t)
    program.step(b"c")
    report = inspect(t, program.process.pid)
    check_rows(t, report)
    t.equal("resident bytes", report["memory"]["resident"], program.resident()[0])
    t.equal("heaps that cannot be followed", report["broken_heaps"], 1)
    unknown, main = report["rows"]["unknown_heap"]["resident"], report["arenas"][0]
    t.check(unknown > 0, "all of the heap was followed")
    # the first of these pages may have blocks that are known
    t.equal("pages that could not be followed", main["pages"]["unknown"], (unknown + PAGE - 1) // PAGE)
    result = t.run([t.ptmem(), "--inspect", "-p", str(program.process.pid)])
    t.check(b"1 of 4 heaps could not be followed" in result.out, "the text does not say so")
    t.equal("advice", report["advice"], [])
    t.equal("bytes that malloc_trim would return", [a["trim"]["resident"] for a in report["arenas"]], [0] * 4)
    for words in (b"what would return memory", b"malloc_trim"):
        t.check(words not in result.out, "advice in the text: %r" % words)
    t.check(b"(%d of its pages could not be followed)" % main["pages"]["unknown"] in result.out, "no pages in the text")
    program.end()


@test("inspect/text")
def text(t):
    program = Inspected(t)
    pid = program.process.pid
    result = t.run([t.ptmem(), "--inspect", "-p", str(pid)])
    t.equal("status", result.status, 0)
    t.equal("messages", result.err, b"")
    out = result.out.decode()
    rows = [int(m.group(1).replace(",", "")) for m in re.finditer(r"^ +([0-9,]+) +[0-9.]+ %  ", re.split("of its control group|by how they begin", out)[0], re.M)]
    t.equal("the last row", rows[-1], sum(rows[:-1]))
    t.equal("the last row and the kernel", rows[-1], program.resident()[0])
    by_arena = [list(map(int, line.split()[1:])) for line in
                out.split("the same by arena, pages with at most:\n")[1].split("\n\n")[0].splitlines()[1:]]
    of_all = [int(m.group(1)) for m in re.finditer(r"^ +[0-9]+(?: or less)? +([0-9]+) pages? +[0-9.]+ %$", out, re.M)]
    t.equal("arenas", len(by_arena), 4)
    t.equal("pages of all arenas", [sum(column) for column in zip(*by_arena)], of_all)
    for words in ("process %d, " % pid, "malloc_trim(0) would return", "what would return memory", "MALLOC_ARENA_MAX"):
        t.check(words in out, "no %r in the text" % words)
    program.end()


@test("inspect/stopped")
def stopped(t):
    """A process that a signal stopped stays stopped; one in a system call returns to it."""
    program = Inspected(t)
    os.kill(program.process.pid, signal.SIGSTOP)

    def state():
        with open("/proc/%d/stat" % program.process.pid, encoding="ascii") as file:
            return file.read().rsplit(")", 1)[1].split()[0]
    t.wait_until("stopped", lambda: state() == "T")
    check_rows(t, inspect(t, program.process.pid))
    t.wait_until("stopped again", lambda: state() == "T")
    os.kill(program.process.pid, signal.SIGCONT)
    check_rows(t, inspect(t, program.process.pid))
    program.step(b"x")
    program.end()


@test("inspect/user")
def user(t):
    """An ordinary user, of processes of its own; and not of others'."""
    if os.geteuid() != 0:
        raise Skip("runs as an ordinary user anyway")
    nobody = pwd.getpwnam("nobody")
    who = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
    with open("/proc/sys/kernel/yama/ptrace_scope", encoding="ascii") if os.path.exists(
            "/proc/sys/kernel/yama/ptrace_scope") else open(os.devnull, encoding="ascii") as file:
        if file.read().strip() not in ("", "0"):
            raise Skip("kernel.yama.ptrace_scope forbids it")
    ptmem, program = t.for_others(t.ptmem()), Inspected(t, program=t.for_others(t.target("gcc-O2-pie", "inspected")), **who)
    done = subprocess.run([ptmem, "--inspect", "-p", str(program.process.pid)], cwd="/",
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, **who)
    t.equal("messages", done.stderr, b"")
    t.check(b"live heap blocks" in done.stdout, "no rows")
    program.end()
    other = Inspected(t)
    done = subprocess.run([ptmem, "--inspect", "-p", str(other.process.pid)], cwd="/", stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False, **who)
    t.equal("status", done.returncode, 125)
    t.check(done.stderr.startswith(b"ptmem: process %d" % other.process.pid), "no reason: %r" % done.stderr)
    other.end()


@test("inspect/errors")
def errors(t):
    for options, words in ((["--inspect"], b"--inspect needs --pid, a program, or the name of a core file"),
                           (["--inspect-out=x", "-p", "1"], b"--inspect-out needs --inspect, --inspect-at-exit or --when"),
                           (["--inspect", "-p", "1", "--leak-check"], b"--inspect and --leak-check cannot be combined"),
                           (["--inspect=core", "--flame=f.svg"], b"--inspect and --flame cannot be combined"),
                           (["--inspect", "-p", "4194000"], b"no such process")):
        result = t.run([t.ptmem(), *options])
        t.check(result.status != 0 and words in result.err, "%s: %d, %r" % (options, result.status, result.err))


@test("inspect/outputs")
def outputs(t):
    """Names are expanded, each process has its own file, and neither a core file nor the program is overwritten."""
    directory = t.subdirectory()
    copy, core, link = (os.path.join(directory, name) for name in ("program", "core", "link"))
    shutil.copy(t.target("gcc-O2-pie", "inspected"), copy)
    with open(core, "wb") as file:
        file.write(b"a core file")
    os.symlink(core, link)
    with open(copy, "rb") as file:
        code = file.read()
    first, second = Inspected(t, program=copy), Inspected(t)
    pids = [str(p.process.pid) for p in (first, second)]
    for options, words in ((["-p", pids[0], "--inspect-out=program"], b"--inspect-out would overwrite the program"),
                           (["--inspect-out=link", "--inspect=core"], b"--inspect-out would overwrite the core file"),
                           (["--inspect-out=program", "--inspect=core", "program"], b"--inspect-out would overwrite the program")):
        command = [t.ptmem(), *options] if "--inspect=core" in options else [t.ptmem(), "--inspect", *options]
        result = t.run(command, cwd=directory)
        t.check(result.status != 0 and words in result.err, "%s: %d, %r" % (options, result.status, result.err))
    with open(copy, "rb") as file, open(core, "rb") as other:
        t.check(file.read() == code and other.read() == b"a core file", "the program and the core file are what they were")
    for pattern in ("all.json", "%p.at.json"):
        result = t.run([t.ptmem(), "--inspect", "-p", ",".join(pids), "--inspect-out=" + pattern], cwd=directory)
        t.equal("status with " + pattern, (result.status, result.err), (0, b""))
        for pid in pids:
            name = "all.%s.json" % pid if pattern == "all.json" else pid + ".at.json"
            with open(os.path.join(directory, name), encoding="utf-8") as file:
                t.equal("process in " + name, json.load(file)["pid"], int(pid))
    t.equal("files", sorted(name for name in os.listdir(directory) if name.endswith(".json")),
            sorted(["all.%s.json" % pid for pid in pids] + [pid + ".at.json" for pid in pids]))
    first.end()
    second.end()


# -- counted blocks and the heap's --


