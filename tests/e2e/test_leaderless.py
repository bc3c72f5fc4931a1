"""Attaching to a process whose first thread has ended, or ends later: its memory and files are those of the others."""

import os
import re
import shutil
import signal
import subprocess
import urllib.request

import harness
from harness import Fail, report_json, test
from process_lib import Attached, Following, differing_text, guardians, kill_both, sigtrap_is_caught, unique

MANY = 2000
SIZE = 5000


class Leaderless:
    """targets/leaderless, or a copy of it called @name. @is_later: its first thread ends at the first t."""

    def __init__(self, t, is_later=False, name=None):
        self.t, self.cwd = t, t.subdirectory()
        path = t.target("gcc-O2-pie", "leaderless")
        if name:
            path = shutil.copy(path, os.path.join(t.directory, name))
        env = t.environment(self.cwd, LIBRARY=os.path.join(harness.TARGETS, "lib", "libdl_a.so"))
        self.process = subprocess.Popen([path, *(["later"] if is_later else [])], cwd=self.cwd,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)
        self.pid, self.thread = self.process.pid, 0
        self.allocations = self.frees = 0
        self.expect("ready")
        if not is_later:
            self.wait_without_leader()

    def expect(self, word):
        words = self.process.stdout.readline().split()
        if not words or words[0] != word.encode():
            raise Fail("the program printed %r (status %s)" % (words, self.process.poll()))
        self.thread = int(words[1])

    def read(self, name, tid=None):
        with open("/proc/%d/%s" % (tid or self.thread, name), encoding="utf-8") as file:
            return file.read()

    def wait_without_leader(self):
        """pthread_join returns a moment before the thread is a zombie."""
        self.t.wait_until("the first thread to end", lambda: "\nState:\tZ" in self.read("status", self.pid))

    def say(self, letters):
        for letter in letters:
            self.process.stdin.write(letter.encode())
            self.process.stdin.flush()
            self.expect("ready" if letter == "x" else "done")
            self.allocations += {"a": 1, "m": MANY}.get(letter, 0)
            self.frees += {"r": 1, "m": MANY}.get(letter, 0)

    def tracer(self):
        return int(re.search(r"^TracerPid:\t(\d+)", self.read("status"), re.M)[1])

    def check_clean(self):
        self.t.equal("tracer", self.tracer(), 0)
        self.t.equal("text that differs", differing_text(self.thread), [])
        self.t.check(not sigtrap_is_caught(self.thread), "a handler was left")

    def end(self):
        self.process.stdin.close()
        self.t.equal("status of the program", self.process.wait(timeout=200), 0)

    def check_counts(self, profile, name="leaderless"):
        """All that its threads did after @profile was attached."""
        found = profile.events("/" + name)
        self.t.counts("its calls", found.own, {"allocations": self.allocations, "frees": self.frees,
                                               "bytes": self.allocations * SIZE, "failed": 0})
        self.t.equal("blocks from before", found.earlier[1] >= 1000, True)


for how in ("break", "auto", "jump"):
    @test("leaderless/attach/" + how)
    def _(t, how=how):
        """Exact up to its end, also if the thread that was read through ends."""
        program = Leaderless(t)
        attached = Attached(t, program.pid, ["--events=events", "--leak-check", "--probes=" + how]).wait_attached()
        program.say("aamraftamftar")
        program.end()
        profile = attached.ended()
        t.equal("complaints", [m for m in profile.messages if "warning" in m or "cannot" in m], [])
        program.check_counts(profile)

    @test("leaderless/detach/" + how)
    def _(t, how=how):
        """Twice, from a program that runs on as before."""
        program = Leaderless(t)
        for _ in range(2):
            program.allocations = program.frees = 0
            attached = Attached(t, program.pid, ["--events=events", "--probes=" + how]).wait_attached()
            program.say("aamrftm")
            profile = attached.detach()
            program.check_counts(profile)
            program.check_clean()
            program.say("amf")
        program.end()

    @test("leaderless/killed/" + how)
    def _(t, how=how):
        """ptmem is killed: the guardian cleans up. It and the guardian are: the next ptmem does. The first thread ended
        before, or meanwhile."""
        for is_later in (False, True):
            program = Leaderless(t, is_later)
            for kills_both in (False, True):
                attached = Attached(t, program.pid, ["--probes=" + how]).wait_attached()
                program.say("amta")
                if kills_both:
                    kill_both(t, attached)
                else:
                    attached.process.kill()
                    attached.process.wait()
                    t.wait_until("the guardian to clean up", lambda: not guardians(t))
                    program.check_clean()
                program.say("amfta")
            program.allocations = program.frees = 0
            attached = Attached(t, program.pid, ["--events=events"]).wait_attached()
            program.say("am")
            program.check_counts(attached.detach())
            program.check_clean()
            program.end()


@test("leaderless/ends-meanwhile")
def ends_meanwhile(t):
    """The first thread ends while ptmem is attached, which then knows a library that is opened, and detaches."""
    program = Leaderless(t, is_later=True)
    attached = Attached(t, program.pid, ["--events=events"]).wait_attached()
    program.say("amtam")
    program.wait_without_leader()
    program.say("taaml")
    profile = attached.detach()
    program.check_counts(profile)
    t.counts("calls of a library opened later", profile.events("/libdl_a.so").own, {"allocations": MANY, "frees": MANY, "bytes": MANY * SIZE})
    program.check_clean()
    program.say("am")
    program.end()


@test("leaderless/heap-sample")
def heap_sample(t):
    """Calls are counted exactly."""
    program = Leaderless(t)
    attached = Attached(t, program.pid, ["--heap-sample=64K", "-v"]).wait_attached()
    program.say("aammr")
    program.end()
    line = "ptmem:   allocations  {:,} of {:,} bytes, 0 by realloc, and {:,} ".format(program.allocations, program.allocations * SIZE,
                                                                                      program.frees)
    found = [m for m in attached.ended().messages if m.startswith("ptmem:   allocations ")]
    t.check(len(found) == 1 and found[0].startswith(line) and found[0].endswith(": counted exactly"), found)


@test("leaderless/record")
def record(t):
    """The recording has the command, all blocks, and the resident memory."""
    program = Leaderless(t)
    attached = Attached(t, program.pid, ["--record=r"]).wait_attached()
    program.say("aaara")
    data = report_json(t, os.path.join(attached.detach().directory, "r"))
    program.end()
    t.check(data["meta"]["command"].endswith("/leaderless"), data["meta"]["command"])
    t.equal("its calls", (data["end"]["allocations"], data["end"]["frees"]), (program.allocations, program.frees))
    t.check(max(n or 0 for n in data["timeline"]["rss"]) > 1000 * 1000, data["timeline"]["rss"])


@test("leaderless/follow")
def follow(t):
    """By a name that comm does not hold; also when its first thread had ended before."""
    name = unique(t, "leaderless-of-a-name-")
    program = Leaderless(t, name=name)
    group = Following(t, "--follow=" + name, "--events=events.%p")
    group.wait_attached(program)
    program.say("amta")
    group.end()
    program.check_clean()
    program.end()


@test("leaderless/exec")
def executes(t):
    """A thread executes the program: that has a first thread, of the same id, and is profiled."""
    program = Leaderless(t)
    attached = Attached(t, program.pid, ["--trace-children=yes", "--leak-check", "-o", "massif.out.%p"]).wait_attached()
    program.say("amxamtam")
    t.equal("tracer", program.tracer() != 0, True)
    profile = attached.detach()
    program.check_clean()
    t.equal("its profiles", len(profile.files[program.pid]), 2)
    program.end()


@test("leaderless/died")
def died(t):
    """Killed: the summary says so."""
    program = Leaderless(t)
    attached = Attached(t, program.pid, ["-v"]).wait_attached()
    program.say("am")
    os.kill(program.pid, signal.SIGKILL)
    profile = attached.ended()
    t.check("ptmem:   killed by    SIGKILL" in profile.messages, "no such line")
    t.equal("status", program.process.wait(), -signal.SIGKILL)


@test("leaderless/asked")
def asked(t):
    """By the id of the process: its monitor, --when and the metrics of --listen."""
    program = Leaderless(t)
    attached = Attached(t, program.pid, ["--listen", "--record=r", "--when=rss>1M", "-v"],
                        env={"XDG_RUNTIME_DIR": t.directory}).wait_attached()
    t.wait_until("listening", lambda: "listening at " in attached.errors())
    t.wait_until("the condition to hold", lambda: "rss>1M" in attached.errors())
    url = re.search(r"listening at (http://\S+/)", attached.errors())[1]
    with urllib.request.urlopen(url + "metrics", timeout=200) as answer:
        resident = float(re.search(r"^ptmem_resident_bytes\S* (\S+)$", answer.read().decode(), re.M)[1])
    t.check(resident > 1 << 20, "resident bytes: %s" % resident)
    result = t.run([t.ptmem(), "--monitor=%d" % program.pid, "help"], env={"XDG_RUNTIME_DIR": t.directory})
    t.equal("status of the monitor (%r)" % result.err, result.status, 0)
    attached.detach()
    program.check_clean()
    program.end()
