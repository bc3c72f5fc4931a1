"""--follow: attaches to processes as they appear, by name, unit or control group, and leaves the others alone."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys

from harness import ROOT, Skip, test
from process_lib import FollowListening, Followed, Following, unique

UNIFIED = ("/sys/fs/cgroup", "/sys/fs/cgroup/unified")


@test("follow/appear", limit=180)
def appear(t):
    """One that runs already, one that starts, one that executes the program later; the profile of each is written when it
    ends; the one that is left runs on."""
    name = unique(t, "fl")
    first = Followed(t, name).wait_ready()
    other = Followed(t, name + "x").wait_ready()
    group = Following(t, "--follow=%s" % name, "--detailed-freq=1", "--threshold=0")
    group.wait_attached(first)
    second = Followed(t, name).wait_ready()
    group.wait_attached(second)
    late = Followed(t, name, before=["sh", "-c", "read line; exec \"$0\""])
    for program in (first, second):
        program.more()
    second.end()
    path = os.path.join(group.cwd, "massif.out.%d" % second.pid)
    t.wait_until("the profile of the one that ended", lambda: os.path.exists(path))
    group.check_peak(second)
    late.process.stdin.write(b"\n")
    late.process.stdin.flush()
    late.wait_ready()
    group.wait_attached(late)
    late.end()
    t.equal("tracer of another name", other.tracer(), 0)
    group.end()
    t.equal("tracer after the end", first.tracer(), 0)
    group.check_peak(first)
    first.more()
    first.end()
    other.end()
    t.equal("profiles", sorted(n for n in os.listdir(group.cwd) if n.startswith("massif.out")),
            sorted("massif.out.%d" % p.pid for p in (first, second, late)))


@test("follow/refused", limit=180)
def refused(t):
    """A process that has a tracer already is reported once, whatever else appears; it does not end ptmem."""
    name = unique(t, "fr")
    traced = Followed(t, name, before=[t.program("strace"), "-f", "-o", "/dev/null"]).wait_ready()
    group = Following(t, "--follow=" + name)
    t.wait_until("the message", lambda: "is already traced" in group.text())
    for _ in range(3):
        program = Followed(t, name).wait_ready()
        group.wait_attached(program)
        program.end()
    t.equal("messages", group.text().count("is already traced"), 1)
    traced.end()
    group.end()


@test("follow/traced-before", limit=180)
def traced_before(t):
    """A process that has a tracer is attached to when that has left it; the message is printed once."""
    name = unique(t, "fb")
    program = Followed(t, name).wait_ready()
    group = None
    for _ in range(2):
        tracer = subprocess.Popen([t.program("strace"), "-p", str(program.pid), "-o", "/dev/null"], stderr=subprocess.DEVNULL)
        t.wait_until("the other tracer", program.tracer)
        group = group or Following(t, "--follow=" + name, "--detailed-freq=1", "--threshold=0")
        t.wait_until("the message", lambda: "is already traced" in group.text())
        tracer.send_signal(signal.SIGINT)
        tracer.wait(timeout=200)
    group.wait_attached(program)
    t.equal("messages", group.text().count("is already traced"), 1)
    program.more()
    program.end()
    group.end()
    group.check_peak(program)


STUCK = """#include <sys/prctl.h>
#include <unistd.h>
int main(void)
{
	char c;
	if (vfork() == 0) {
		prctl(PR_SET_NAME, "child");
		_exit(write(1, "ready\\n", 6) != 6 || read(0, &c, 1) != 0);
	}
	return 5;
}
"""


class Stuck(Followed):
    """Waits in vfork: ptmem needs a second to find that it cannot be stopped. Its child has another name."""

    def __init__(self, t, name):
        path = os.path.join(t.directory, "stuck", name)
        if not os.path.exists(path):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            compiled = t.run([t.program("gcc"), "-o", path, t.file("stuck.c", STUCK)])
            t.equal("status of gcc (%s)" % compiled.err.decode(), compiled.status, 0)
        self.t = t
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.pid = self.process.pid


CANNOT_STOP = "cannot be stopped: its thread"


@test("follow/in-turn", limit=180)
def in_turn(t):
    """One that was found earlier is attached to before one that appears later, however long others take."""
    name = unique(t, "ft")
    first = Followed(t, name).wait_ready()
    stuck = [Stuck(t, name).wait_ready() for _ in range(4)]
    group = Following(t, "--follow=" + name)
    t.wait_until("a message about one that cannot be stopped", lambda: CANNOT_STOP in group.text())
    late = Followed(t, name).wait_ready()
    group.wait_attached(late)
    order = [int(pid) for pid in re.findall(r"attached to process (\d+)", group.text())]
    t.equal("attached to", order, [first.pid, late.pid])
    for program in [first, late, *stuck]:
        program.end()
    group.end()


class Crowd:
    """Processes that end while ptmem is busy with others that they have to wait for."""

    def __init__(self, t, size):
        name = unique(t, "fc")
        self.t, self.stuck = t, [Stuck(t, name).wait_ready() for _ in range(4)]
        self.programs = [Followed(t, name).wait_ready() for _ in range(size)]
        self.group, self.name = Following(t, "--follow=" + name), name
        t.wait_until("the first message", lambda: CANNOT_STOP in self.group.text())
        os.kill(self.group.process.pid, signal.SIGSTOP)
        t.wait_until("ptmem stops", lambda: self.state() == "T")
        text = self.group.text()
        self.is_late = "attached to" in text or text.count(CANNOT_STOP) == len(self.stuck)  # it may be attaching

    def state(self):
        with open("/proc/%d/stat" % self.group.process.pid, encoding="ascii") as file:
            return file.read().rpartition(") ")[2][0]

    def go_on(self):
        os.kill(self.group.process.pid, signal.SIGCONT)

    def end(self):
        for program in self.stuck:
            program.end()
        self.group.end()


@test("follow/at-once", limit=180)
def at_once(t):
    """What is found is attached to without waiting for the next list of processes, though nothing else is to be done."""
    name = unique(t, "fa")
    program, calls = Followed(t, name).wait_ready(), os.path.join(t.directory, "calls")
    group = Following(t, "--follow=" + name, before=[t.program("strace"), "-qq", "-e", "trace=rt_sigtimedwait,write", "-s", "99",
                                                     "-e", "signal=none", "-o", calls])
    group.wait_attached(program)
    program.end()
    os.kill(child_of(group.process.pid), signal.SIGTERM)
    t.equal("status of ptmem", group.process.wait(timeout=200), 0)
    with open(calls, encoding="utf-8") as file:
        before, _, after = file.read().partition("attached to process %d" % program.pid)
    t.check(after, before)
    waits = [int(s) + int(ns) / 1e9 for s, ns in re.findall(r"tv_sec=(\d+), tv_nsec=(\d+)", before)]
    t.check(waits and max(waits) < 0.1, "waits before the attach: %s" % waits)


def child_of(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid), encoding="ascii") as file:
        return int(file.read().split()[0])


@test("follow/ended-before", limit=180)
def ended_before(t):
    """What ended before ptmem could attach to it is named, as long as there are few; all are counted."""
    crowd = Crowd(t, 22)
    while crowd.is_late:  # a machine so busy that ptmem attached before it was stopped
        crowd.go_on()
        for program in crowd.programs:
            program.end()
        crowd.end()
        crowd = Crowd(t, 22)
    for program in crowd.programs:
        program.process.kill()
    for program in crowd.programs[1:]:  # the first one stays a zombie
        program.process.wait()
    crowd.go_on()
    late = Followed(t, crowd.name).wait_ready()
    crowd.group.wait_attached(late)
    late.end()
    crowd.end()
    crowd.programs[0].process.wait()
    text = crowd.group.text()
    named = [int(pid) for pid in re.findall(r"process (\d+) ended before ptmem could attach to it\n", text)]
    t.equal("named", named, sorted(p.pid for p in crowd.programs)[:20 - text.count(CANNOT_STOP)])
    t.equal("counted", re.findall(r"(\d+) processes could not be attached to", text), ["26"])


WRAPPER = """import subprocess, sys
with open("/proc/self/comm", "w") as file:
    file.write(sys.argv[1])
process = subprocess.Popen(sys.argv[2:])
sys.exit(process.wait())
"""


@test("follow/itself", limit=180)
def itself(t):
    """ptmem, its helpers, its ancestors and others that run ptmem are not attached to, though they have the name: the same
    file, a stripped copy, one that was deleted."""
    name = unique(t, "fi")
    copy, stripped, deleted = (os.path.join(t.subdirectory(), name) for _ in range(3))
    for path in (copy, deleted):
        shutil.copy(os.path.realpath(t.ptmem()), path)
    t.equal("status of strip", t.run([t.program("strip"), "-o", stripped, copy]).status, 0)
    others = [Following(t, "--follow=" + unique(t, "fo"), ptmem=path) for path in (copy, stripped, deleted)]
    os.unlink(deleted)
    group = Following(t, "--follow=" + name, "--listen", ptmem=copy,
                      before=[sys.executable, "-c", WRAPPER, name])
    programs = []
    for _ in range(2):  # when the second is attached to, the round that found the first is over
        programs.append(Followed(t, name).wait_ready())
        group.wait_attached(programs[-1])
    for other in others:
        other.end()
    tracer = programs[0].tracer()
    os.kill(tracer, signal.SIGTERM)
    group.process.wait(timeout=200)
    group.end()
    pids = sorted(int(n) for n in re.findall(r"attached to process (\d+)", group.text()))
    t.equal("attached to", pids, sorted(p.pid for p in programs))
    t.check("cannot" not in group.text() and "may not" not in group.text(), group.text())
    for program in programs:
        program.end()


def make_cgroup(name):
    for root in UNIFIED:
        path = os.path.join(root, name)
        if os.path.exists(os.path.join(root, "cgroup.controllers")):
            try:
                os.mkdir(path)
                return path
            except OSError:
                break
    raise Skip("control groups of version 2 cannot be made here")


@test("follow/cgroup", limit=180)
def cgroup(t):
    """A unit is the group of its name; /PATH that group and those below; what they are is in the recording."""
    name = unique(t, "fc")
    container = os.urandom(32).hex()
    outer = make_cgroup(name + ".slice")
    inner = os.path.join(outer, "docker-%s.scope" % container)
    try:
        os.mkdir(inner)
        for pattern in (name + ".slice", "/%s.slice" % name, "/%s.slice/docker-%s.scope" % (name, container)):
            group = Following(t, "--follow=" + pattern, "--record=r.%p")
            program = Followed(t, name).wait_ready()
            other = Followed(t, name).wait_ready()
            with open(os.path.join(inner, "cgroup.procs"), "w", encoding="ascii") as file:
                file.write(str(program.pid))
            group.wait_attached(program)
            t.equal("tracer of one outside", other.tracer(), 0)
            program.end()
            other.end()
            group.end()
            meta = group.recorded(program)
            t.equal("labels", [meta["name"], meta["cgroup"], meta["container"]],
                    [name, "/%s.slice/docker-%s.scope" % (name, container), container])
    finally:
        for path in (inner, outer):
            os.rmdir(path)


def make_cgroup_1(name):
    path = os.path.join("/sys/fs/cgroup/memory", name)
    try:
        os.mkdir(path)
        if os.path.exists(os.path.join(path, "cgroup.clone_children")):
            return path
        os.rmdir(path)
    except OSError:
        pass
    raise Skip("control groups of version 1 cannot be made here")


@test("follow/cgroup-1", limit=180)
def cgroup_1(t):
    """A group of a controller of version 1 is one, too, and the label if the process is in no other."""
    name = unique(t, "fd")
    path = make_cgroup_1(name + ".slice")
    try:
        for pattern in (name + ".slice", "/%s.slice" % name):
            group = Following(t, "--follow=" + pattern, "--record=r.%p")
            program = Followed(t, name).wait_ready()
            with open(os.path.join(path, "cgroup.procs"), "w", encoding="ascii") as file:
                file.write(str(program.pid))
            with open("/proc/%d/cgroup" % program.pid, encoding="ascii") as file:
                is_only = "0::/\n" in file.read()
            group.wait_attached(program)
            program.end()
            group.end()
            if is_only:
                t.equal("label", group.recorded(program)["cgroup"], "/%s.slice" % name)
    finally:
        os.rmdir(path)


@test("follow/listen", limit=180)
def listen(t):
    """The server answers before there is a process, and says where each runs."""
    name = unique(t, "fs")
    group = Following(t, "--follow=" + name, "--listen")
    served = FollowListening(t, group)
    t.wait_until("listening", lambda: served.url() is not None)
    t.check(b"ptmem_heap_live_bytes{" not in served.get("/metrics"), "a process is served already")
    programs = [Followed(t, name).wait_ready() for _ in range(2)]
    for program in programs:
        group.wait_attached(program)

    def pids():
        return sorted(int(p) for p in re.findall(r'ptmem_process_info\{pid="(\d+)",name="%s",' % name,
                                                 served.get("/metrics").decode()))
    t.wait_until("both", lambda: pids() == sorted(p.pid for p in programs))
    programs[0].end()
    t.wait_until("the first to end", lambda: pids() == [programs[1].pid])
    programs[1].end()
    t.wait_until("the second to end", lambda: not pids())
    t.check(group.process.poll() is None, "ptmem has ended with the last process")
    group.end()


@test("follow/listen-left", limit=180)
def listen_left(t):
    """Of the last process, from which a condition detaches, the end is served until its files are written; then others are."""
    name, directory = unique(t, "fv"), t.subdirectory()
    first = Followed(t, name).wait_ready()
    path = os.path.join(directory, "m.%d" % first.pid)
    os.mkfifo(path)
    group = Following(t, "--follow=" + name, "--listen", "--when=heap>8500:detach", "--massif-out-file=%s/m.%%p" % directory)
    served = FollowListening(t, group)
    group.wait_attached(first)

    def state():
        return json.loads(served.get("/profile.json"))["live"]["state"]
    t.equal("state", state(), "running")
    for _ in range(2):
        first.more()
    t.wait_until("the detach", lambda: state() == "left")
    t.equal("health", served.get("/healthz"), b"finishing\n")
    t.equal("tracer", first.tracer(), 0)
    with open(path, "rb") as file:
        file.read()
    t.wait_until("ptmem goes on", lambda: served.get("/healthz") == b"ok\n")
    t.check(b"live_bytes{" not in served.get("/metrics"), "the process is served still")
    second = Followed(t, name).wait_ready()
    group.wait_attached(second)
    t.equal("state of the next one", state(), "running")
    for program in (first, second):
        program.end()
    group.end()


@test("follow/alone")
def alone(t):
    """Nothing matches: ptmem waits, and ends by a signal or after its time."""
    group = Following(t, "--follow=" + unique(t, "fn"))
    group.end()
    run = t.run([t.ptmem(), "--follow=" + unique(t, "fn"), "--duration=0.1"])
    t.equal("status (%r)" % run.err, run.status, 0)
    for options, why in ((["--follow=x", "--pid=1"], "neither --pid"), (["--follow=x", "true"], "neither --pid"),
                         (["--follow="], "bad option"), (["--follow=x", "--replay=e"], "neither --pid"),
                         (["--follow=x", "--inspect"], "--inspect needs --pid"),
                         (["--follow=x", "--sample", "--heap=no"], "--follow traces the heap")):
        run = t.run([t.ptmem(), *options])
        t.check(run.status == 1 and why in run.err.decode(), "%s: %r" % (options, run.err))


@test("follow/unit-file")
def unit_file(t):
    """systemd accepts the unit, which is the one of the documentation."""
    with open(os.path.join(ROOT, "contrib/ptmem@.service"), encoding="utf-8") as file:
        text = file.read()
    with open(os.path.join(ROOT, "doc/fleet.md"), encoding="utf-8") as file:
        t.check("```ini\n%s```\n" % text in file.read(), "doc/fleet.md shows another unit")
    line = re.search(r"^ExecStart=/usr/bin/ptmem (.*)$", text, re.M)[1]
    run = t.run([t.ptmem(), *line.replace("%i", unique(t, "fu")).replace("%%", "%").replace(":9110", ":0").split(), "--duration=0.1"])
    t.equal("status of its command (%r)" % run.err, run.status, 0)
    path = t.file("ptmem@.service", text.replace("/usr/bin/ptmem", os.path.realpath(t.ptmem())))
    run = t.run([t.program("systemd-analyze"), "verify", "--man=no", path])
    t.equal("systemd-analyze", [run.status, run.out, run.err], [0, b"", b""])


@test("follow/detach-one", limit=180)
def detach_one(t):
    """A condition detaches from the process of which it holds; the others, and later ones, stay followed."""
    name = unique(t, "fd")
    first, second = (Followed(t, name).wait_ready() for _ in range(2))
    group = Following(t, "--follow=" + name, "--detailed-freq=1", "--threshold=0", "--when=heap>8500:detach")
    group.wait_attached(first)
    group.wait_attached(second)
    for _ in range(2):
        first.more()
    t.wait_until("the detach", lambda: "process %d: detached; it runs on" % first.pid in group.text())
    t.equal("tracer of the first", first.tracer(), 0)
    group.check_peak(first)
    first.more()
    third = Followed(t, name).wait_ready()
    group.wait_attached(third)
    for program in (second, third):
        t.equal("tracer of another", program.tracer(), group.process.pid)
        program.more()
        program.end()
        path = os.path.join(group.cwd, "massif.out.%d" % program.pid)
        t.wait_until("its profile", lambda p=path: os.path.exists(p))
        group.check_peak(program)
    first.end()
    group.end()


@test("follow/nothing-matches")
def nothing_matches(t):
    """What matches nothing may be a mistake: it is said at once."""
    name = unique(t, "fn")
    there = Followed(t, unique(t, "ft")).wait_ready()
    group = Following(t, *("--follow=" + f for f in (name, "/no/such.group", "bin/" + name, os.path.basename(there.process.args[0]))))
    why = {name: "", "/no/such.group": ": no process is in a control group of that name",
           "bin/" + name: ": names of processes have no /, and those of control groups begin with it"}
    for pattern, reason in why.items():
        line = "ptmem: nothing matches %s yet%s; waiting\n" % (pattern, reason)
        t.wait_until(line, lambda l=line: l in group.text())
    group.wait_attached(there)
    t.equal("such messages", group.text().count("nothing matches"), 3)
    there.end()
    group.end()


@test("follow/one-end", limit=180)
def one_end(t):
    """ptmem leaves all at one time: their profiles end then, not when each of the files is written."""
    name = unique(t, "fo")
    group = Following(t, "--follow=" + name, "--record=r.%p")
    programs = [Followed(t, name).wait_ready() for _ in range(3)]
    for program in programs:
        group.wait_attached(program)
        program.more()
    group.end()
    recorded = [group.recorded(program) for program in programs]
    # microseconds, of which each number is rounded
    ends = [round(1e6 * r["start_monotonic"]) + round(1e3 * r["duration"]) for r in recorded]
    t.check(max(ends) - min(ends) <= 4, "ends: %s" % ends)
    for program in programs:
        program.end()
