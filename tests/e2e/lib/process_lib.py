"""Programs that are attached to, followed, killed or stopped."""

import contextlib
import glob
import json
import os
import random
import re
import shutil
import signal
import subprocess
import time

import harness
import massif
from harness import BUILD, Fail, report_json
from live_lib import Listening

SYS_RT_SIGTIMEDWAIT = 128
SYS_EPOLL_WAIT = 232


def differing_text(pid):
    """The first difference of each executable file mapping from the file: there must be none."""
    differing = []
    with open("/proc/%d/maps" % pid, encoding="utf-8") as maps, \
            open("/proc/%d/mem" % pid, "rb", 0) as memory:
        for line in maps:
            match = re.match(r"([0-9a-f]+)-([0-9a-f]+) r-xp ([0-9a-f]+) \S+ \d+ +(/.*)", line)
            if not match:
                continue
            start, end, offset = (int(match.group(i), 16) for i in (1, 2, 3))
            with open(match.group(4), "rb") as file:
                file.seek(offset)
                want = file.read(end - start)
            memory.seek(start)
            got = memory.read(end - start)[:len(want)]
            at = next((i for i, (a, b) in enumerate(zip(got, want)) if a != b), None) if got != want else None
            if at is not None:
                differing.append("%s+%#x: %s, not %s" % (match.group(4), offset + at, got[at:at + 8].hex(),
                                                         want[at:at + 8].hex()))
    return differing


class Server:
    """The server target (targets/server.c), running by itself, spoken to by pipes. Its threads take all CPUs."""

    def __init__(self, t, threads=8, variant="gcc-O2-pie", env=None):
        self.t, self.cwd = t, t.subdirectory()
        with open(os.path.join(self.cwd, "server-stderr"), "wb") as err:
            self.process = subprocess.Popen([t.target(variant, "server"), str(threads)], cwd=self.cwd,
                                            env=t.environment(self.cwd, **(env or {})), stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, stderr=err)
        self.pid = self.process.pid
        self.position = self.wanted = self.answers = 0
        self.answer = None
        self.wait_for_answer()

    def read_answers(self):
        """What was added to its truth since the last call."""
        path = os.path.join(self.cwd, "truth")
        if not os.path.exists(path):
            return
        with open(path, encoding="utf-8") as file:
            file.seek(self.position)
            text = file.read()
        complete = text[:text.rfind("\n") + 1]
        self.position += len(complete)
        lines = [line for line in complete.splitlines() if line.startswith("expect: ")]
        if lines:
            self.answers, self.answer = self.answers + len(lines), lines[-1]

    def wait_for_answer(self):
        self.wanted += 1

        def answered():
            if self.process.poll() is not None:
                raise Fail("the server died: %s %s" % (harness.signal_name(self.process.returncode),
                                                       self.errors()))
            self.read_answers()
            return self.answers >= self.wanted

        # its threads keep all CPUs busy meanwhile
        self.t.wait_until("the server to answer", answered, pause=0.001)
        return harness.expected(self.answer)

    def errors(self):
        with open(os.path.join(self.cwd, "server-stderr"), encoding="utf-8", errors="replace") as file:
            return file.read()

    def send(self, letter):
        try:
            self.process.stdin.write(letter.encode())
            self.process.stdin.flush()
        except BrokenPipeError:
            raise Fail("the server died: %s %s" % (harness.signal_name(self.process.wait(timeout=200)),
                                                   self.errors())) from None

    def say(self, letter):
        self.send(letter)
        return self.wait_for_answer()

    def ask(self, letter):
        """A command that is answered by a number on standard output."""
        self.send(letter)
        answer = self.process.stdout.readline()
        self.t.check(b"=" in answer, "no answer from the server: %s" % self.errors())
        return int(answer.split(b"=")[1])

    def signals(self):
        """Queues ten signals to itself: all of them must arrive."""
        return self.ask("k")

    def check_progress(self):
        before = self.say("r")["allocations"]
        self.t.wait_until("the server to continue", lambda: self.say("r")["allocations"] > before)

    def end(self):
        """Ends it: every check of its own passed, everything freed that was not leaked."""
        self.process.stdin.write(b"q")
        self.process.stdin.close()
        self.t.equal("status of the server (%s)" % self.errors(), self.process.wait(timeout=200), 0)
        self.process.stdout.close()
        return self.t.truth(self.cwd)

    def check_alive(self):
        if self.process.poll() is not None:
            raise Fail("the server died: %s %s" % (harness.signal_name(self.process.returncode), self.errors()))

    def text(self):
        return differing_text(self.pid)

    def maps(self):
        """Mappings, without those that the program itself changes all the time (heaps, stacks)."""
        with open("/proc/%d/maps" % self.pid, encoding="utf-8") as file:
            return sorted(l for l in file if "r-x" in l or "rwx" in l or "--x" in l)

    def status(self, key):
        """Of each thread, from /proc/PID/task/*/status."""
        found = {}
        for tid in os.listdir("/proc/%d/task" % self.pid):
            try:
                with open("/proc/%d/task/%s/status" % (self.pid, tid), encoding="ascii") as file:
                    found[int(tid)] = re.search(r"^%s:\s*(\S+)" % key, file.read(), re.M).group(1)
            except (FileNotFoundError, ProcessLookupError):
                continue  # threads of the server come and go
        return found

    def system_calls(self):
        """The numbers of the system calls that its threads wait in."""
        found = set()
        for tid in os.listdir("/proc/%d/task" % self.pid):
            with open("/proc/%d/task/%s/syscall" % (self.pid, tid), encoding="ascii") as file:
                word = file.read().split()[0]
            if word.isdigit():
                found.add(int(word))
        return found


class Attached:
    """`ptmem -p PID`, started and known to be attached."""

    def __init__(self, t, pid, options=(), stderr_name="ptmem-stderr", env=None):
        self.t, self.pid, self.cwd = t, pid, t.subdirectory()
        self.err_path = os.path.join(self.cwd, stderr_name)
        with open(self.err_path, "wb") as err:
            self.process = subprocess.Popen([t.ptmem(), "--stats", *harness.MORE_OPTIONS, "-p", str(pid), *options], cwd=self.cwd,
                                            env=t.environment(self.cwd, **(env or {})), stdin=subprocess.DEVNULL,
                                            stdout=subprocess.DEVNULL, stderr=err)

    def errors(self):
        with open(self.err_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def is_attached(self):
        if self.process.poll() is not None:
            raise Fail("ptmem ended with %s: %s" % (self.process.returncode, self.errors()))
        return re.search(r"^ptmem: .*attached", self.errors(), re.M) is not None

    def wait_attached(self):
        self.t.wait_until("ptmem to say that it is attached", self.is_attached)
        return self

    def detach(self, number=signal.SIGINT):
        self.process.send_signal(number)
        return self.ended()

    def ended(self, status=0):
        self.t.equal("status of ptmem (%s)" % self.errors(), self.process.wait(timeout=240), status)
        with open(self.err_path, "rb") as file:
            return harness.Profile(harness.Result(self.process.returncode, b"", file.read()), self.cwd)


def check_left_alone(t, server, maps):
    """Nothing of ptmem is left in the server."""
    server.check_alive()
    t.equal("files whose text differs", server.text(), [])
    left = [l for l in server.maps() if l not in maps]
    t.check(len(left) <= 1, "mappings left: %s" % left)
    t.equal("tracers", set(server.status("TracerPid").values()), {"0"})
    t.check(not [s for s in server.status("State").values() if s in "tT"], "a thread is stopped")


def difference(after, before):
    return {k: None if after[k] is None else after[k] - before[k] for k in after}


def blocked(server):
    """Masks by thread, without the signals that are blocked while their handlers run."""
    handled = 1 << (signal.SIGALRM - 1) | 1 << (signal.SIGRTMIN + 1 - 1)
    return {tid: int(mask, 16) & ~handled for tid, mask in server.status("SigBlk").items()}


def masks_of_parked(server):
    """The masks of the parked server. Its two waiting threads are in their calls, too: a thread that has not come
    that far blocks all signals, and sigwaitinfo unblocks its own."""
    waiting = {SYS_EPOLL_WAIT, SYS_RT_SIGTIMEDWAIT}
    server.t.wait_until("the waiting threads to wait", lambda: waiting <= server.system_calls())
    return blocked(server)


def wait_for_masks(server, masks):
    """A thread in sigwaitinfo shows another mask while it waits: it may be on its way there."""

    def differences():
        now = blocked(server)
        return ["thread %s: %s, not %s" % (tid, *("%x" % m[tid] if tid in m else "absent" for m in (now, masks)))
                for tid in sorted(now.keys() | masks) if now.get(tid) != masks.get(tid)]

    try:
        server.t.wait_until("the signal masks of before", lambda: not differences())
    except Fail as fail:
        raise Fail("%s: %s" % (fail, "; ".join(differences()))) from None


def rounds(t, server, count, hold, has_earlier=True):
    """@count attaches to the running server, each ended after about @hold seconds."""
    maps = server.maps()
    server.say("p")  # no thread is being made, none is in its start
    masks, actions = masks_of_parked(server), server.status("SigCgt")
    server.say("c")
    chance = random.Random(1)
    signals = 0
    for i in range(count):
        attached = Attached(t, server.pid).wait_attached()
        if i % 5 == 0:
            signals += 10
            t.equal("signals that came", server.signals(), signals)
        if i % 3 == 0:
            server.say("t")
        time.sleep(chance.random() * hold)
        profile = attached.detach(chance.choice((signal.SIGINT, signal.SIGTERM)))
        t.equal("profiles", sorted(profile.files), [server.pid])
        profile.only_massif()
        stats = profile.only_stats()
        t.equal("blocks from before are known (%s)" % profile.messages, stats["earlier blocks"] > 0, has_earlier)
        t.equal("replaced blocks", stats["replaced"], 0)
        if i % 3:  # a thread that ends frees what it cached once more
            t.equal("unknown frees", stats["unknown"], 0)
        check_left_alone(t, server, maps)
        wait_for_masks(server, masks)
        t.equal("signal handlers", server.status("SigCgt"), actions)
        server.check_progress()
    t.equal("waits that were interrupted", server.ask("i"), 0)


def wait_state(t, pid, states):
    def reached():
        with open("/proc/%d/stat" % pid, encoding="ascii") as file:
            return file.read().rsplit(")", 1)[1].split()[0] in states

    t.wait_until("state " + states, reached)


class Program:
    """targets/earlier; live: (bytes, blocks) that it had in use at its last answer."""

    def __init__(self, t, variant="gcc-O2-pie", command=None, **env):
        self.t = t
        self.process = subprocess.Popen(command or [t.target(variant, "earlier")], env=t.environment(t.directory, **env),
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.pid = self.process.pid
        self.wait_for_answer()

    def wait_for_answer(self):
        words = self.process.stdout.readline().split()
        if len(words) != 2:
            raise Fail("the program answered %r" % words)
        self.live = tuple(map(int, words))

    def say(self, letter):
        self.process.stdin.write(letter)
        self.process.stdin.flush()
        self.wait_for_answer()
        return self.live

    def attach(self, *options, **how):
        return Attached(self.t, self.pid, options, **how).wait_attached()

    def others(self):
        """Bytes and blocks that it did not allocate itself: what libc and ld.so have."""
        stats = self.attach().detach().only_stats()
        return tuple(stats[key] - own for key, own in zip(("live", "blocks"), self.live))

    def end(self):
        self.process.stdin.write(b"q")
        self.process.stdin.close()
        self.t.equal("the program's status", self.process.wait(), 0)


def delays(**settings):
    """Environment of a ptmem that is delayed."""
    more = {"DELAYS_" + name.upper(): str(value) for name, value in settings.items()}
    return {"LD_PRELOAD": os.path.join(harness.TARGETS, "delays.so"), **more}


FORBIDS = "a seccomp filter forbids "
NO_RIGHTS = "ptmem cannot read its seccomp filter without CAP_SYS_ADMIN"
# Filter -> the call that it forbids; None = it allows all that is injected.
FORBIDDEN = {"none": None, "list": None, "log": None, "wx": None, "trap-other": None, "trap": "memfd_create", "file": "memfd_create",
             "trace": "memfd_create", "ask": "memfd_create", "code": "mmap", "all": "mmap"}


def may_read_filters():
    """Whether the kernel lets ptmem read the filters of other processes."""
    with open("/proc/self/status", encoding="utf-8") as file:
        status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    with open("/proc/self/uid_map", encoding="utf-8") as file:
        is_first = file.read().split() == ["0", "0", "4294967295"]
    return is_first and int(status["CapEff"], 16) >> 21 & 1 == 1 and status["Seccomp"] == "0"


def refusal_of(kind):
    """Of a program that has added the filter itself."""
    if kind == "none":
        return None
    if not may_read_filters():
        return NO_RIGHTS
    return FORBIDS + FORBIDDEN[kind] if FORBIDDEN[kind] else None


class Followed:
    """targets/monitored under a name that no other process has."""

    def __init__(self, t, name, before=()):
        path = os.path.join(t.directory, name)
        if not os.path.exists(path):
            shutil.copy(t.target("gcc-O2-pie", "monitored"), path)
        self.t, self.made = t, 7
        self.process = subprocess.Popen([*before, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        env=t.environment(t.directory), cwd=t.directory)
        self.pid = self.process.pid

    def wait_ready(self):
        self.process.stdout.readline()
        return self

    def more(self):
        self.process.stdin.write(b"a")
        self.process.stdin.flush()
        self.process.stdout.readline()
        self.made += 1

    def end(self):
        self.process.stdin.close()
        self.t.equal("status of the program", self.process.wait(timeout=200), 5)

    def tracer(self):
        with open("/proc/%d/status" % self.pid, encoding="ascii", errors="replace") as file:
            return int(re.search(r"TracerPid:\t(\d+)", file.read())[1])


class Following:
    """ptmem --follow in a directory of its own; it ends some time even if the test fails."""

    def __init__(self, t, *options, ptmem=None, before=()):
        self.t, self.cwd = t, t.subdirectory()
        self.err = os.path.join(self.cwd, "err")
        with open(self.err, "wb") as err:
            self.process = subprocess.Popen([*before, ptmem or t.ptmem(), "--duration=600", *options], cwd=self.cwd,
                                            env=t.environment(self.cwd), stderr=err, start_new_session=True)
        t.wait_until("ptmem to follow", lambda: "ptmem: following " in self.text() or self.process.poll() is not None)

    def text(self):
        with open(self.err, encoding="utf-8", errors="replace") as file:
            return file.read()

    def wait_attached(self, program):
        line = "ptmem: attached to process %d " % program.pid
        self.t.wait_until("ptmem to attach", lambda: line in self.text() or self.process.poll() is not None)
        self.t.check(line in self.text(), self.text())

    def end(self, status=0):
        if self.process.poll() is None:
            self.process.terminate()
        self.t.equal("status of ptmem (%s)" % self.text(), self.process.wait(timeout=200), status)

    def check_peak(self, program):
        """The profile of @program has all its blocks, those from before included."""
        profile = massif.Massif(os.path.join(self.cwd, "massif.out.%d" % program.pid))
        self.t.equal("peak of %d" % program.pid, profile.peak()["mem_heap_B"], program.made * 1000)

    def recorded(self, program):
        """The values of its recording, r.PID."""
        path = os.path.join(self.cwd, "r.%d" % program.pid)
        return json.loads(self.t.run([os.path.join(BUILD, "ptmem-report"), "--format=json", path]).out)["meta"]


def unique(t, what):
    """A name of at most 15 characters that no process of this machine has."""
    return "%s%x%s" % (what, os.getpid() & 0xfffff, os.urandom(2).hex())


class FollowListening(Listening):
    """Without a program of its own."""

    def __init__(self, t, group):
        self.t, self.cwd, self.group = t, group.cwd, group

    def url(self):
        found = re.search(r"listening at (http://\S+/)\n", self.group.text())
        return found and found[1]


def state(pid):
    """Of a process, or of the thread that "PID/task/TID" is."""
    with open("/proc/%s/stat" % pid, encoding="ascii") as file:
        return file.read().rsplit(")", 1)[1].split()[0]


def waits_in(pid, *calls):
    """Whether its first thread waits in one of these system calls (numbers of x86-64)."""
    with open("/proc/%d/syscall" % pid, encoding="ascii") as file:
        return file.read().split()[0] in map(str, calls)


def is_asleep(pid):
    """Whether it is in nanosleep or clock_nanosleep: it has started."""
    return waits_in(pid, 35, 230)


def is_paused(pid):
    return waits_in(pid, 34)


def cpu_ticks(pid, tid=None):
    """What the process, or one of its threads, has used."""
    with open("/proc/%d/task/%s/stat" % (pid, tid) if tid else "/proc/%d/stat" % pid, encoding="ascii") as file:
        return sum(map(int, file.read().rpartition(")")[2].split()[11:13]))


SIGTRAP_BIT = 1 << (signal.SIGTRAP - 1)


def catches(pid, number):
    """Whether the process has a handler of signal @number."""
    try:
        with open("/proc/%d/status" % pid, encoding="ascii") as file:
            return bool(int(re.search(r"SigCgt:\s*(\w+)", file.read()).group(1), 16) >> number - 1 & 1)
    except FileNotFoundError:
        return False


def sigtrap_is_caught(pid):
    return catches(pid, signal.SIGTRAP)


def guardians(t):
    """Guardian processes of this test: they have the environment of their ptmem. (The name of another test may begin with this one's.)"""
    found = []
    for name in os.listdir("/proc"):
        try:
            with open("/proc/%s/comm" % name, encoding="ascii") as file, \
                    open("/proc/%s/environ" % name, "rb") as environment:
                if file.read() == "heap-guardian\n" and b"HOME=" + t.directory.encode() in environment.read().split(b"\0"):
                    found.append(int(name))
        except (OSError, UnicodeDecodeError):
            continue
    return found


def kill(attached, delay):
    time.sleep(delay)
    attached.process.kill()
    attached.process.wait()


def kill_both(t, attached, delay=0.0):
    """One that cleans up after an earlier ptmem may end by itself before."""
    time.sleep(delay)
    for pid in guardians(t):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    kill(attached, 0)


def check_exact(t, server):
    """The next ptmem counts everything and leaves nothing, neither its own nor the earlier changes."""
    before = server.say("p")
    attached = Attached(t, server.pid, ["--events=events", "-v"]).wait_attached()
    after = server.say("s")
    profile = attached.detach()
    found = profile.events("/server")
    t.check(found.own["allocations"] > 0, "the server did nothing")
    t.equal("allocations", found.own["allocations"], difference(after, before)["allocations"])
    t.equal("text that differs (%s)" % attached.errors(), server.text(), [])
    t.check(not sigtrap_is_caught(server.pid), "a handler was left")
    server.say("c")
    server.check_progress()


VARIANTS = ("gcc-O2-pie", "clang-O0-nopie")
EVERYTHING = ["--threshold=0", "--detailed-freq=1", "--max-snapshots=1000", "--time-unit=B"]


def truth(out):
    """{source: {function or "": bytes}} from the lines of targets/mappings.c."""
    found = {}
    for line in out.decode().splitlines():
        words = line.split()
        if words[0] != "ready":
            found.setdefault(words[0], {})[words[1] if len(words) > 2 else ""] = int(words[-1])
    return found


def bytes_of(node, names):
    """What is below the first frame of each path whose function is one of @names."""
    if node.name in names:
        return node.bytes
    return sum(bytes_of(child, names) for child in node.children)


def last_tree(t, path):
    snapshots = massif.Massif(path).snapshots
    t.check(snapshots, "no snapshots in " + path)
    tree = snapshots[-1]["tree"]
    t.check(tree is not None, "the last snapshot of %s has no tree" % path)
    return tree


def compare(t, path, wanted, said=""):
    """@said: ptmem's own words. On a busy machine page faults come faster than they can be read; so many as it says were
    lost may be missing, not one more."""
    tree = last_tree(t, path)
    found = {functions: bytes_of(tree, functions.split("+")) for functions in wanted}
    lost = re.search(r"([\d,]+) page faults? (?:was|were) lost", said)
    if lost and path.endswith(".faults"):
        for functions, size in wanted.items():
            t.check(found[functions] <= size, "%d bytes of %s where there are %d" % (found[functions], functions, size))
        missing = sum(wanted.values()) - sum(found.values())
        t.check(missing <= int(lost[1].replace(",", "")) * 4096, "%d bytes are missing, %s pages were lost" % (missing, lost[1]))
        return
    for functions, size in wanted.items():
        t.equal("bytes of " + functions, found[functions], size)


def output(cwd, suffix=""):
    files = glob.glob(os.path.join(cwd, "massif.out.*" + suffix))
    if len(files) != 1:
        raise Fail("files %s where one massif.out.PID%s was expected" % (sorted(os.listdir(cwd)), suffix))
    return files[0]


class Level:
    """targets/level under ptmem, whose messages go to a file. Each + is one more block of 1,000,000 bytes."""

    def __init__(self, t, *options, attach=False, record="r.rec"):
        self.t, self.cwd, self.attached = t, t.subdirectory(), None
        own = [t.ptmem(), "-v", "--log-file=log", "--massif-out-file=m", *(["--record=" + record] if record else []), *options]
        program = [t.target("gcc-O2-pie", "level")]
        how = {"cwd": self.cwd, "env": t.environment(self.cwd)}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        if attach:
            self.program = self.attached = subprocess.Popen(program, **pipes, **how)
            self.expect(0)
            self.ptmem = subprocess.Popen([*own, "-p", str(self.program.pid)], **how)
            t.wait_until("attached", lambda: "attached to process" in self.log())
        else:
            self.ptmem = self.program = subprocess.Popen([*own, "--", *program], **pipes, **how)
            self.expect(0)

    def expect(self, blocks):
        self.t.equal("the program's line", self.program.stdout.readline(), b"%d\n" % blocks)

    def change(self, letters, blocks):
        """Returns when the program has done that; @blocks: how many it has then."""
        for i, letter in enumerate(letters):
            self.program.stdin.write(letter.encode())
            self.program.stdin.flush()
            self.expect(blocks + sum(1 if l == "-" else -1 for l in letters[i + 1:]))

    def log(self):
        path = os.path.join(self.cwd, "log")
        if not os.path.exists(path):
            return ""
        with open(path, encoding="utf-8") as file:
            return file.read()

    def wait_for(self, text, count=1):
        self.t.wait_until("%s (%d)" % (text, count), lambda: self.log().count(text) == count)

    def recordings(self):
        return sorted(n for n in os.listdir(self.cwd) if re.fullmatch(r"r\.\d+\.rec", n))

    def recording(self, number):
        self.wait_for("recording so far written to %s/r.%d.rec" % (self.cwd, number))
        return report_json(self.t, os.path.join(self.cwd, "r.%d.rec" % number))

    def end(self, status=0):
        self.program.stdin.close()
        self.t.equal("status", self.ptmem.wait(), status)
        if self.attached:
            self.t.equal("status of the program", self.attached.wait(), 0)
