"""Recordings that are written on request while the program runs: by --monitor and by SIGUSR1."""

import os
import re
import signal
import subprocess

from harness import report_json, test
from live_lib import Monitored
from recording_lib import live


def lines(data):
    """{function: line} of the program itself."""
    f = data["frames"]
    return {name: line for name, line, kind in zip(f["function"], f["line"], f["kind"]) if kind == 0}


def check_so_far(t, data, blocks):
    """@blocks of 1,000 bytes were allocated, and nothing was released."""
    meta, end = data["meta"], data["end"]
    t.equal("end", (meta["exit"], meta["incomplete"], meta["copy"]), ("still running", False, False))
    t.equal("totals", (end["live_bytes"], end["live_blocks"], end["allocations"], end["frees"]),
            (1000 * blocks, blocks, blocks, 0))
    t.equal("live", live(data), (1000 * blocks, blocks))
    t.equal("peak", (data["peak"]["bytes"], sum(data["peak"]["bytes_of"])), (1000 * blocks, 1000 * blocks))
    t.check(lines(data).get("hold"), "the allocating function has a line: %s" % lines(data))


for how in ("break", "auto", "jump"):
    @test("recording-now/command-" + how)
    def _(t, how=how):
        m = Monitored(t, ["--probes=" + how, "--record=r"])
        other = t.subdirectory()
        for letters, name in ((0, "first"), (3, "second")):
            for _ in range(letters):
                m.more()
            path = os.path.join(other, name)
            said = m.say("recording", name, cwd=other)
            t.equal("answer", (said.status, said.out.decode()), (0, "recording written to %s\n" % path))
            check_so_far(t, report_json(t, path), 7 + letters)
        t.equal("status without a name", m.say("rec").status, 0)
        check_so_far(t, report_json(t, os.path.join(m.cwd, "recording.%d" % m.target_pid())), 10)
        m.end()
        data = report_json(t, os.path.join(m.cwd, "r"))
        t.equal("the recording itself", (data["meta"]["exit"], data["end"]["allocations"], data["end"]["live_bytes"]),
                ("exited 5", 10, 0))


@test("recording-now/attached")
def _(t):
    """Blocks from before are in it, too."""
    m = Monitored(t, ["--record=r"], attach=True)
    m.more()
    t.equal("status", m.say("recording", "now").status, 0)
    data = report_json(t, os.path.join(m.cwd, "now"))
    t.equal("live blocks, allocations", (data["end"]["live_blocks"], data["end"]["allocations"]), (8, 1))
    t.equal("end", (data["meta"]["exit"], data["meta"]["attached"]), ("still running", True))
    m.ptmem.send_signal(signal.SIGINT)
    t.equal("status of ptmem", m.ptmem.wait(), 0)
    t.equal("the recording itself", report_json(t, os.path.join(m.cwd, "r"))["meta"]["exit"], "detached")
    m.program.stdin.close()
    t.equal("status of the program", m.program.wait(), 5)


@test("recording-now/sampled")
def _(t):
    """The exact totals of calls are those up to then."""
    m = Monitored(t, ["--record=r", "--heap-sample=512", "--seed=1"])
    m.more()
    t.equal("status", m.say("recording", "now").status, 0)
    m.more()
    data = report_json(t, os.path.join(m.cwd, "now"))
    calls = dict(zip(data["calls"]["function"], zip(data["calls"]["calls"], data["calls"]["bytes"])))
    t.equal("calls of malloc", calls["malloc"], (8, 8000))
    t.check(data["meta"]["heap_sample"] == 512 and data["end"]["live_bytes"] > 0, "estimates")
    m.end()


@test("recording-now/refused")
def _(t):
    m = Monitored(t)
    said = m.say("recording", "x")
    t.equal("without a recording", (said.status, b"needs a ptmem that was started with --record" in said.err), (1, True))
    m.end()
    m = Monitored(t, ["--record=r"])
    for name, why in (("r", b"it is the file of --record"), ("/nonexistent/x", b"cannot write /nonexistent/x")):
        said = m.say("recording", name)
        t.equal("status and message for " + name, (said.status, why in said.err), (1, True))
    t.equal("ptmem answers as before", m.say("status").status, 0)
    m.end()


def numbered(directory, stem="r"):
    return sorted(n for n in os.listdir(directory) if re.fullmatch(stem + r"(\.\d+)+\.rec", n))


@test("recording-now/signal")
def _(t):
    """Next to the file of --record, with the number of the massif file that the signal requests, too."""
    m = Monitored(t, ["--record=r.rec"])
    for i in (1, 2):
        m.ptmem.send_signal(signal.SIGUSR1)
        t.wait_until("recording %d" % i, lambda i=i: numbered(m.cwd) == ["r.%d.rec" % k for k in range(1, i + 1)])
        check_so_far(t, report_json(t, os.path.join(m.cwd, "r.%d.rec" % i)), 6 + i)
        m.more()
    pid = m.target_pid()
    err = m.end()
    t.equal("massif files", sorted(n for n in os.listdir(m.cwd) if n.startswith("massif")),
            ["massif.out.%d%s" % (pid, end) for end in ("", ".1", ".2")])
    t.equal("messages", [err.count("recording so far written to %s/r.%d.rec" % (m.cwd, i)) for i in (1, 2)], [1, 1])


def start_shell(t, script, *options, before=()):
    directory = t.subdirectory()
    ptmem = subprocess.Popen([*before, t.ptmem(), *options, "--", "/bin/sh", "-c", script], cwd=directory,
                             env=t.environment(directory, TMPDIR=t.subdirectory()), stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    t.equal("line", ptmem.stdout.readline(), b"ready\n")
    return ptmem, directory


@test("recording-now/inspected-before-a-fork")
def _(t):
    """What SIGUSR1 has found in the parent is not the child's, whose end frees its own."""
    ptmem, directory = start_shell(t, "echo ready; read line; (exit 3); exit 4", "--record=r.rec", "--inspect-at-exit",
                                   "--inspect-out=i.json")
    ptmem.send_signal(signal.SIGUSR1)
    t.wait_until("the inspection", lambda: os.path.exists(os.path.join(directory, "i.json")))
    ptmem.stdin.write(b"\n")
    ptmem.stdin.close()
    err = ptmem.stderr.read()
    t.equal("status (%r)" % err, ptmem.wait(), 4)
    t.equal("recordings", len([n for n in os.listdir(directory) if n.endswith(".rec") and not n.endswith(".1.rec")]), 2)


@test("recording-now/unwritable")
def _(t):
    """What cannot be written is elsewhere, and ptmem's status says so."""
    ptmem, directory = start_shell(t, "echo ready; read line; exit 0", "--record=there/r.rec", "--massif-out-file=m",
                                   before=["sh", "-c", 'mkdir there; exec "$@"', "sh"])
    os.rename(os.path.join(directory, "there"), os.path.join(directory, "away"))
    ptmem.send_signal(signal.SIGUSR1)

    def rescued():
        return [os.path.join(d, n) for d, _, names in os.walk(t.directory) for n in names if n.startswith("recording.")]

    t.wait_until("the recording elsewhere", rescued)
    t.equal("its end", report_json(t, rescued()[0])["meta"]["exit"], "still running")
    os.rename(os.path.join(directory, "away"), os.path.join(directory, "there"))
    ptmem.stdin.close()
    err = ptmem.stderr.read().decode()
    t.equal("status", ptmem.wait(), 125)
    t.check("there/r.1.rec: No such file or directory; the recording is in " in err, err)
    t.equal("the recording itself", report_json(t, os.path.join(directory, "there", "r.rec"))["meta"]["exit"], "exited 0")


@test("recording-now/forked")
def _(t):
    """Each process has its own."""
    ptmem, directory = start_shell(t, "echo ready; (read line; exit 3); read line; exit 4", "--record=r.rec")
    t.wait_until("a recording of the forked child", lambda: len(numbered(directory)) == 1)
    child = re.match(r"r\.(\d+)\.rec$", numbered(directory)[0])[1]
    ptmem.send_signal(signal.SIGUSR1)
    t.wait_until("both so far", lambda: len(numbered(directory)) == 3)
    t.equal("names", set(numbered(directory)), {"r.1.rec", "r.%s.rec" % child, "r.%s.1.rec" % child})
    pids = [report_json(t, os.path.join(directory, n))["meta"]["pid"] for n in ("r.1.rec", "r.%s.1.rec" % child)]
    t.equal("process of the second", str(pids[1]), child)
    t.check(pids[0] != pids[1], "the first is of another process")
    ptmem.stdin.write(b"\n\n")
    ptmem.stdin.close()
    ptmem.stderr.read()
    t.equal("status", ptmem.wait(), 4)
