"""What --inspect found, in recordings and in the pages made of them: the same as in its own file."""

import os
import re
import signal
import subprocess

from harness import test
from inspect_lib import Profiled, as_json, check_report, check_same, interpreter, preload, read, rows_of
from live_lib import Monitored
from report_lib import embedded


@test("inspect/recorded/exit")
def at_exit(t):
    program = Profiled(t, "--inspect", "--inspect-out=out.json", "--record=r", "--html=page.html")
    program.end()
    data, report = as_json(t, program.path("r")), read(program.path())
    check_same(t, data["inspection"], report)
    t.check(0 < data["inspection"]["time"] <= data["meta"]["duration"], "when: %s" % data["inspection"]["time"])
    pins = rows_of(data["inspection"]["pins"])
    t.equal("pages by path", sorted((p["nearly_empty_pages"] for p in pins), reverse=True)[:len(report["paths"])],
            [p["nearly_empty_pages"] for p in report["paths"]])
    t.equal("the page", embedded(program.path("page.html")), data)
    t.equal("a part of it", rows_of(as_json(t, "--match=no_such_function", program.path("r"))["inspection"]["pins"]), [])


for _size in ("0", "1G"):
    @test("inspect/recorded/stopped/" + _size)
    def _(t, size=_size):
        """While its memory is read at its end, a process is stopped, whether it is examined then or copied."""
        # no stops to place jumps
        program = Profiled(t, "--inspect", "--inspect-copy=" + size, "--inspect-out=out.json", "--record=r.ptmem",
                           "--probes=break")
        program.end()
        report = read(program.path())
        check_report(t, program, report)
        overhead = as_json(t, program.path("r.ptmem"))["meta"]["overhead"]
        t.check(0 < report["stopped_ms"] < overhead + 0.06, "ms stopped: %s, for --inspect %s" % (overhead, report["stopped_ms"]))


def end_detached(m):
    """Both have ended; returns ptmem's messages."""
    if not m.program:
        return m.end()
    m.program.stdin.close()
    m.t.equal("the program's status", m.program.wait(), 5)
    m.t.equal("ptmem's status", m.ptmem.wait(), 0)
    return m.ptmem.stderr.read().decode()


# The ways to leave a process: all, one of them, and one whose system calls need ptmem until it ends.
for _way, _options in (("all", ()), ("one", ()), ("started", ("--trace=heap,mmap",))):
    @test("inspect/recorded/detach/" + _way)
    def _(t, way=_way, options=_options):
        """The last stop counts, in which memory is read and ptmem leaves the process."""
        m = Monitored(t, ["--inspect-at-exit", "--inspect-out=out.json", "--record=r", "--probes=break", *options],
                      attach=way != "started")
        t.equal("detach", m.say("detach", pid=m.target_pid() if way == "one" else None).status, 0)
        t.wait_until("the recording", lambda: os.path.exists(os.path.join(m.cwd, "r")))
        message = re.search("thread paused for ([0-9.]+) ms", end_detached(m))
        stopped = read(os.path.join(m.cwd, "out.json"))["stopped_ms"], float(message[1]) if message else 0
        t.check(bool(message) == (way != "started") and stopped[0] > 0, "ms to read, and to attach: %s" % (stopped,))
        overhead = as_json(t, os.path.join(m.cwd, "r"))["meta"]["overhead"]
        t.check(overhead > sum(stopped) - 0.11, "ms stopped: %s, to read and to attach %s" % (overhead, stopped))


@test("inspect/recorded/musl")
def musl(t):
    """An allocator without arenas."""
    cwd = t.subdirectory()
    t.profile([t.target("musl-O2-pie", "mixed"), "3", "2000"], ["--inspect-at-exit", "--inspect-out=out.json", "--record=r"], cwd=cwd)
    found = as_json(t, os.path.join(cwd, "r"))["inspection"]
    check_same(t, found, read(os.path.join(cwd, "out.json")))
    t.equal("an allocator without arenas", [k for k in ("pinned", "heaps", "cells", "pins", "advice") if rows_of(found[k])], [])


for _name in ("glibc", "jemalloc"):
    @test("inspect/recorded/python-" + _name)
    def _(t, name=_name):
        """Python's arenas are in the map, whichever malloc there is."""
        cwd = t.subdirectory()
        script = "import os\nkept = [[i] for i in range(30000)]\nos._exit(0)"
        t.profile([interpreter(11), "-c", script], ["--inspect-at-exit", "--inspect-out=out.json", "--record=r",
                                                  "--python-malloc=keep"], cwd=cwd, env=preload(name))
        report, found = read(os.path.join(cwd, "out.json")), as_json(t, os.path.join(cwd, "r"))["inspection"]
        check_same(t, found, report)
        arenas = len(report.get("arenas", []))
        python = {i for i, h in enumerate(rows_of(found["heaps"])) if h["arena"] == arenas}
        t.equal("live bytes of Python's heaps", sum(c["live"] for c in rows_of(found["cells"]) if c["heap"] in python),
                sum(report["rows"]["python_live"].values()))
        t.check(len(python) > 0 and len(python) + arenas >= len(rows_of(found["heaps"])), "heaps: %s" % found["heaps"])


@test("inspect/recorded/without")
def without(t):
    result = t.profile([t.target("gcc-O2-pie", "mixed"), "3", "2000"], ["--record=r"])
    t.equal("inspection", as_json(t, os.path.join(result.directory, "r"))["inspection"], None)


@test("inspect/recorded/sigusr1")
def sigusr1(t):
    """SIGUSR1 and the end both read the process: the recording has what the end found."""
    program = Profiled(t, "--inspect", "--inspect-out=out.json", "--record=r", "-o", "f.massif")
    program.process.send_signal(signal.SIGUSR1)
    first = program.wait_for("out.json")
    program.end()
    last, found = read(program.path()), as_json(t, program.path("r"))["inspection"]
    check_same(t, found, last)
    t.equal("blocks", sum(a["live_blocks"] for a in first["arenas"]), sum(found["arenas"]["live_blocks"]))


@test("inspect/recorded/replayed")
def replayed(t):
    """Events do not contain it: the recording of a replay has none."""
    program = Profiled(t, "--inspect", "--inspect-out=out.json", "--events=e", "--record=r")
    program.end()
    run = t.run([t.ptmem(), "--replay=e", "--record=again", "-o", "f.massif"], cwd=program.cwd)
    t.equal("replay", run.status, 0)
    t.equal("inspection", as_json(t, program.path("again"))["inspection"], None)


@test("inspect/recorded/monitor")
def monitor(t):
    """The monitor command: the recording and the page have its last result."""
    program = Monitored(t, ["--record=r", "--html=page.html"])
    for name in ("1.json", "2.json"):
        program.more()
        t.equal("inspect", program.say("inspect", name).status, 0)
    program.end()
    data = as_json(t, os.path.join(program.cwd, "r"))
    check_same(t, data["inspection"], read(os.path.join(program.cwd, "2.json")))
    t.equal("the page", embedded(os.path.join(program.cwd, "page.html")), data)


FORKS = """
import os, sys
print("ready", flush=True)
sys.stdin.readline()
if os.fork() == 0:
    os._exit(0)
os.wait()
"""


@test("inspect/recorded/fork")
def fork(t):
    """A child of a process that was read has an inspection of its own."""
    cwd = t.subdirectory()
    options = ["--inspect-at-exit", "--inspect-out=%p.json", "--record=%p.r", "--trace-children=yes", "-o", "f.%p.massif"]
    process = subprocess.Popen([t.ptmem(), *options, "--", t.program("python3"), "-c", FORKS], cwd=cwd, env=t.environment(cwd),
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def files(end):
        return [name for name in os.listdir(cwd) if name.endswith(end)]
    t.equal("the program", process.stdout.readline(), b"ready\n")
    process.send_signal(signal.SIGUSR1)
    t.wait_until("the report", lambda: files(".json"))
    _, err = process.communicate(b"\n")
    t.equal("ptmem's status (%r)" % err, process.returncode, 0)
    t.equal("processes", len(files(".json")), 2)
    for name in files(".json"):
        data = as_json(t, os.path.join(cwd, name.replace("json", "r")))
        check_same(t, data["inspection"], read(os.path.join(cwd, name)))
