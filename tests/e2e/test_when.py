"""--when: conditions write a recording, or end the profile, when they begin to hold."""

import os
import re
import signal
import subprocess

from harness import report_json, test
from process_lib import Level
from recording_lib import live


def check_heap(t, level):
    """Once when it begins to hold, and again after it did not."""
    level.change("+++", 3)
    level.wait_for("heap>2500000: it is 2.9 MiB; writing the recording so far")
    data = level.recording(1)
    t.equal("live blocks", live(data), (3000000, 3))
    t.equal("end", data["meta"]["exit"], "still running")
    level.change("++", 5)
    level.change("----", 1)
    level.wait_for("heap>2500000 no longer: it is ")
    level.change("++", 3)
    level.wait_for("heap>2500000: it is 2.9 MiB; writing the recording so far", 2)
    t.equal("live blocks", live(level.recording(2)), (3000000, 3))
    level.end()
    t.equal("recordings", level.recordings(), ["r.1.rec", "r.2.rec"])


for how in ("break", "auto", "jump"):
    @test("when/heap-" + how)
    def _(t, how=how):
        check_heap(t, Level(t, "--probes=" + how, "--when=heap>2500000"))


@test("when/attached")
def _(t):
    check_heap(t, Level(t, "--when=heap>2500000:record", attach=True))


@test("when/sampled")
def _(t):
    """Blocks larger than the interval are nearly certain to be samples: the estimate is nearly exact."""
    level = Level(t, "--when=heap>2500000", "--heap-sample=10000", "--seed=1")
    level.change("+++", 3)
    level.wait_for("heap>2500000: it is 2.9 MiB; writing the recording so far")
    t.equal("calls", dict(zip(level.recording(1)["calls"]["function"], level.recording(1)["calls"]["calls"])), {"malloc": 3})
    level.end()


@test("when/several")
def _(t):
    """Each condition by itself."""
    level = Level(t, "--when=heap>1500K", "--when=rss>4M", "--when=growth>2M/min", "--when=heap>1G:end")
    level.change("++++++", 6)
    for condition in ("heap>1500K", "growth>2M/min", "rss>4M"):
        t.wait_until(condition, lambda c=condition: re.search(c + r": it is [\d.]+ MiB; writing", level.log()))
    level.end()
    t.equal("recordings", len(level.recordings()), 3)


@test("when/percent")
def _(t):
    """Of physical memory, or less: the limit of the cgroup."""
    with open("/proc/meminfo", encoding="ascii") as file:
        total = int(re.search(r"MemTotal: +(\d+)", file.read())[1]) * 1024
    blocks = int(total * 0.003 / 1e6) + 5
    level = Level(t, "--when=rss>0.2%")
    level.change("+" * blocks, blocks)
    t.wait_until("rss", lambda: re.search(r"rss>0\.2%: it is (\d+\.\d\d) %; writing", level.log()))
    level.recording(1)
    level.end()


@test("when/growth")
def _(t):
    """Within a second; after a second without growth it may begin again."""
    level = Level(t, "--when=growth>900K/s")
    for number in (1, 2):
        level.change("+", number)
        level.wait_for("growth>900K/s: it is 976.6 KiB", number)
        level.wait_for("growth>900K/s no longer", number)
    level.end()
    t.equal("recordings", level.recordings(), ["r.1.rec", "r.2.rec"])


for action in ("detach", "end"):
    @test("when/" + action)
    def _(t, action=action):
        """The files are complete, and the program runs on; after detach ptmem ends with it."""
        level = Level(t, "--when=heap>2500000:" + action)
        level.change("+++", 3)
        level.wait_for("heap>2500000: it is 2.9 MiB; " + {"detach": "detaching", "end": "the profile ends"}[action])
        level.wait_for("the program runs on")
        if action == "end":
            t.equal("status", level.ptmem.wait(), 0)
        level.change("+", 4)
        level.program.stdin.close()
        t.equal("end of the program's output", level.program.stdout.read(), b"")
        t.equal("status", level.ptmem.wait(), 0)
        data = report_json(t, os.path.join(level.cwd, "r.rec"))
        t.equal("the recording", (data["meta"]["exit"], data["end"]["live_bytes"]), ("detached", 3000000))

    @test("when/%s-attached" % action)
    def _(t, action=action):
        level = Level(t, "--when=heap>2500000:" + action, attach=True, record=None)
        level.change("+++", 3)
        t.equal("status", level.ptmem.wait(), 0)
        t.check("the program runs on" in level.log(), level.log())
        level.change("+", 4)
        level.program.stdin.close()
        t.equal("status of the program", level.program.wait(), 0)


@test("when/forked")
def _(t):
    """Each process by itself: the child has what its parent had."""
    directory = t.subdirectory()
    script = 'echo ready; read line; (read line; exit 3); read line; exit 0'
    ptmem = subprocess.Popen([t.ptmem(), "--log-file=log", "--massif-out-file=m", "--record=r.rec", "--when=heap>100", "--", "/bin/sh", "-c",
                              script], cwd=directory, env=t.environment(directory), stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE)
    t.equal("line", ptmem.stdout.readline(), b"ready\n")

    def processes():
        with open(os.path.join(directory, "log"), encoding="utf-8") as file:
            return re.findall(r"process (\d+): heap>100: it is .* writing", file.read())

    t.wait_until("the parent's heap", lambda: len(processes()) == 1)
    ptmem.stdin.write(b"\n")
    ptmem.stdin.flush()
    t.wait_until("the child's heap", lambda: len(processes()) == 2)
    t.check(len(set(processes())) == 2, "two processes: %s" % processes())
    ptmem.stdin.write(b"\n\n")
    ptmem.stdin.close()
    t.equal("status", ptmem.wait(), 0)


@test("when/refused")
def _(t):
    """Messages say what is missing; the program is not started."""
    for options, why in ((["--when=heap>2G"], "--when=heap>2G: it writes a recording, and needs --record=FILE"),
                         (["--when=heap=2G:end"], "--when=heap=2G:end: a condition is heap>SIZE, rss>SIZE"),
                         (["--when=heap>2G:stop"], "the action is record, detach or end"),
                         (["--when=heap>2G:end", "--heap=no"], "--when needs the profile of the heap"),
                         (["--when=heap>2G:end", "--trace=brk"], "--when needs the profile of the heap")):
        result = t.run([t.ptmem(), *options, "--", "/bin/echo", "started"])
        t.equal("status and output of %s" % options, (result.status, result.out), (1, b""))
        t.check(why in result.err.decode(), result.err)
    result = t.run([t.ptmem(), "--when=heap>2G:end", "--replay=/dev/null"])
    t.check(b"--replay has no running program" in result.err, result.err)


@test("when/cgroup")
def _(t):
    """Conditions of the cgroup are checked, or refused because it has no such file."""
    for condition, files in (("pressure>100%", ("memory.pressure",)), ("limit>1000000000/min", ("memory.events", "memory.failcnt"))):
        result = t.run([t.ptmem(), "--massif-out-file=m", "--when=%s:end" % condition, "--", "/bin/echo", "started"])
        if result.status == 0:
            t.equal("output", result.out, b"started\n")
            t.check(condition.encode() not in result.err, result.err)
            continue
        t.equal("status and output of " + condition, (result.status, result.out), (125, b""))
        for name in files:
            t.check(b"--when=%s:end: the cgroup of process" % condition.encode() in result.err and name.encode() in result.err, result.err)


@test("when/interrupted")
def _(t):
    """A condition that holds does not keep ptmem from detaching."""
    level = Level(t, "--when=heap>0", attach=True)
    level.change("+", 1)
    level.recording(1)
    level.ptmem.send_signal(signal.SIGINT)
    t.equal("status", level.ptmem.wait(), 0)
    level.end()


@test("when/impossible")
def impossible(t):
    """Thresholds that cannot be meant, with a hint."""
    for option, hint in (("--when=rss>80", "a percentage needs %, as in rss>80%"), ("--when=rss>4095", "less than a page"),
                         ("--when=heap>%sT" % ("9" * 30), "no process can have more than 128T"),
                         ("--when=growth>129T/min", "no process can have more than 128T"),
                         ("--record-every=50d", "from 0.1s to 48d"), ("--record-every=0.01", "from 0.1s to 48d")):
        result = t.run([t.ptmem(), "--record=r", option, "--", "true"])
        t.equal("status with " + option, result.status, 1)
        t.check(hint in result.err.decode(), "%s: %s" % (option, result.err.decode()))
