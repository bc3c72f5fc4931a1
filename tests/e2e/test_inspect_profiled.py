"""--inspect of a program that is profiled: at its end, when ptmem leaves it, and whenever SIGUSR1 asks for it."""

import os
import re
import signal

from harness import child_that_runs, test
from inspect_lib import Inspected, Profiled, check_report, check_rows, read
from process_lib import Attached


for _mode in ("auto", "break", "jump"):
    @test("inspect/exit/" + _mode)
    def _(t, mode=_mode):
        """Its threads are killed one by one; their memory is in the report."""
        program = Profiled(t, "--inspect", "--inspect-out=out.json", "--probes=" + mode)
        program.end()
        check_report(t, program, read(program.path()))


@test("inspect/exit/text")
def exit_text(t):
    program = Profiled(t, "--inspect-at-exit")
    err = program.end()
    rows = [int(m.group(1).replace(",", "")) for m in re.finditer(r"^ptmem: +([0-9,]+) +[0-9.]+ %  ", re.split("of its control group|by how they begin", err)[0], re.M)]
    t.check(len(rows) > 8, "no rows: %s" % err)
    t.equal("the last row", rows[-1], sum(rows[:-1]))
    for words in ("malloc_trim(0) would return", "what would return memory", "stopped for"):
        t.check(words in err, "no %r in the text" % words)


@test("inspect/exit/killed")
def exit_killed(t):
    """The kernel may or may not let ptmem see a process that is killed; the latter is reported. The profile exists."""
    program = Profiled(t, "--inspect", "-o", "f.massif")
    os.kill(child_that_runs(program.process.pid, "inspected"), signal.SIGKILL)
    _, err = program.process.communicate()
    t.equal("ptmem's status", program.process.returncode, -signal.SIGKILL)
    t.check((b"all: VmRSS" in err) != (b"ended before its memory could be read" in err), "a report or a reason: %r" % err)
    t.check(os.path.exists(program.path("f.massif")), "no profile")


@test("inspect/exit/exec")
def exit_exec(t):
    """The threads that an exec ends are no part of the end of the program that it begins."""
    cwd = t.subdirectory()
    script = ("import os, signal, threading\n"
              "for i in range(3): threading.Thread(target=signal.pause, daemon=True).start()\n"
              "os.execv('%s', ['true'])" % t.program("true"))
    t.profile([t.program("python3"), "-c", script], ["--inspect", "--inspect-out=out.json", "--trace-children=yes"],
              cwd=cwd)
    report = read(os.path.join(cwd, "out.json"))
    t.equal("program and threads", (os.path.basename(report["command"]), report["threads"]), ("true", 1))
    check_rows(t, report)


for _follow in ("yes", "no"):
    @test("inspect/exit/executed/" + _follow)
    def _(t, follow=_follow):
        """Memory that an exec replaces is not reported, and that is the reason given; the next program's is."""
        script = "import os; os.execv('%s', ['true'])" % t.program("true")
        result = t.run([t.ptmem(), "--inspect-at-exit", "--trace-children=" + follow, "--follow-exec=no", "-o", "f.%p.massif", t.program("python3"), "-c",
                        script], cwd=t.subdirectory())
        t.equal("ptmem's status", result.status, 0)
        t.equal("reasons", len(re.findall(rb"process \d+ executed another program: its memory before that is not "
                                          rb"reported", result.err)), 1)
        t.check(b"ended before its memory" not in result.err, "another reason: %r" % result.err)
        t.equal("reports", result.err.count(b"all: VmRSS"), int(follow == "yes"))


@test("inspect/sigusr1")
def sigusr1(t):
    """Each signal writes the file, besides what it asks for otherwise; and so does the end."""
    program = Profiled(t, "--inspect", "--inspect-out=out.json", "--leaks", "--older-than=0", "--leaks-out=leaks.json", "-o", "f.massif")
    for number in (1, 2):
        program.process.send_signal(signal.SIGUSR1)
        t.wait_until("all snapshots", lambda n=number: os.path.exists(program.path("f.%d.massif" % n)))
        program.wait_for("leaks.json")
        check_report(t, program, program.wait_for("out.json"))
    program.end()
    check_report(t, program, read(program.path()))


@test("inspect/sigusr1-attached")
def sigusr1_attached(t):
    """A process that was attached to: at a signal, and when ptmem leaves it, whose threads run on."""
    program = Inspected(t)
    ptmem = Attached(t, program.process.pid, ("--inspect-at-exit", "--inspect-out=out.json")).wait_attached()
    path = os.path.join(ptmem.cwd, "out.json")
    ptmem.process.send_signal(signal.SIGUSR1)
    t.wait_until("the report", lambda: os.path.exists(path))
    check_report(t, program, read(path))
    os.unlink(path)
    ptmem.detach()
    check_report(t, program, read(path))
    program.step(b"t")
    program.end()


@test("inspect/exit/blocks")
def blocks(t):
    program = Profiled(t, "--inspect", "--inspect-out=out.csv")
    program.end()
    with open(program.path("out.csv"), encoding="ascii") as file:
        lines = file.read().splitlines()
    t.equal("the first line", lines[0], "address,bytes,type,allocator")
    count = program.blocks + program.mmapped
    t.check(count < len(lines) <= count + 21, "%d lines of %d blocks" % (len(lines), count))
