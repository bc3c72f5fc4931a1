"""Processes and how they end: fork, vfork, spawn, exec, exit codes and signals, and the files they leave.

PTMEM_LEAVE_ROUNDS says how often a program that executes itself is left (10); by hand: 100.
"""

import errno
import os
import re
import signal
import subprocess
import time

import harness
import massif
import oracle
from harness import report_json, test
from process_lib import Attached, catches

BOTH = ("gcc-O2-pie", "clang-O0-nopie")
ROUNDS = int(os.environ.get("PTMEM_LEAVE_ROUNDS", "10"))


def stats_by_pid(profile):
    """{pid: [stats, ...]}, one for each image."""
    found = {}
    for block in profile.stats:
        found.setdefault(block["pid"], []).append(block)
    return found


def run_mode(t, variant, mode, options=(), status=0, out=b"OK\n"):
    argv = [t.target(variant, "process"), mode]
    profile = t.profile(argv, options=list(options))
    native = t.native(argv)
    t.same_behaviour(profile, native)
    t.equal("status", profile.status, status)
    t.equal("standard output", profile.out, out)
    return profile


def register_each(variant, mode, files):
    """Each process that lives on from a fork has its own file and its own numbers."""

    @test("process/%s/%s" % (variant, mode))
    def _(t):
        profile = run_mode(t, variant, mode, out=b"OK\n")
        truths = t.truths(profile.directory)
        t.equal("processes that reported their truth", len(truths), files)
        t.equal("pids with a massif file", sorted(profile.files), sorted(pid for pid, _ in truths))
        stats = stats_by_pid(profile)
        for pid, truth in truths:
            t.equal("files of pid %d" % pid, len(profile.files[pid]), 1)
            massif.Massif(profile.files[pid][0])
            t.counts("pid %d" % pid, stats[pid][0], truth)


for v in BOTH:
    register_each(v, "fork", 2)
    register_each(v, "nested-forks", 4)
    register_each(v, "vfork", 1)
    register_each(v, "spawn", 1)
    register_each(v, "clone-vm", 1)
register_each("musl-O2-pie", "fork", 2)
register_each("musl-O2-static", "fork", 2)


def register_handler(variant, mode):
    """A handler that interrupted a call forks: the call continues in both processes, and counts in both."""

    @test("process/%s/%s" % (variant, mode), limit=120)
    def _(t):
        profile = t.profile([t.target(variant, "process"), mode])
        t.equal("status, output (%s)" % profile.err[-500:], (profile.status, profile.out), (0, b"OK\n"))
        truths = t.truths(profile.directory)
        t.equal("processes that reported their truth", len(truths), 41)
        stats = stats_by_pid(profile)
        for pid, truth in truths:
            t.counts("pid %d" % pid, stats[pid][0], truth)


for v in BOTH:
    register_handler(v, "fork-in-handler")
    register_handler(v, "fork-in-handler-altstack")


def register_oracle(variant, mode):
    """The C library allocates here as well: the oracle, preloaded in the same run, knows."""

    @test("process/%s/%s" % (variant, mode))
    def _(t):
        profile = t.profile([t.target(variant, "process"), mode], env={"LD_PRELOAD": t.oracle_library()})
        t.equal("status", profile.status, 0)
        t.equal("standard output", profile.out, b"OK\n")
        (pid, _), = t.truths(profile.directory)
        pages = oracle.read_pages(profile.directory)
        stats = stats_by_pid(profile)
        t.equal("pids with a massif file", sorted(profile.files), [pid])
        t.counts("pid %d and the oracle" % pid, stats[pid][0], pages[pid][-1].all)


for v in BOTH:
    register_oracle(v, "system")
    register_oracle(v, "popen")


@test("process/fibers-in-malloc")
def turns(t):
    """Calls that a fiber switch leaves and resumes return to their callers."""
    argv = [t.target("gcc-O2-pie", "malloc_fibers")]
    t.same_behaviour(t.profile(argv), t.native(argv))


@test("process/threads-and-fork", limit=120)
def threads_and_fork(t):
    """Forks among allocating threads: eleven files; the parent's numbers are exact."""
    profile = t.profile([t.target("gcc-O2-pie", "process"), "threads"], options=["--events=events"])
    t.equal("status", profile.status, 0)
    t.equal("processes with a massif file", len(profile.files), 11)
    (pid, truth), = t.truths(profile.directory)
    found = profile.events("process").own
    t.counts("the parent's own sites", found, truth)
    t.counts("the parent", stats_by_pid(profile)[pid][0], profile.events().all)


# ---- exec ----


FORKING = """#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#define THREADS 3
static struct { _Alignas(64) atomic_ulong n; } count[THREADS];
static atomic_int state;
static void *work(void *arg)
{
	while (state == 0)
		;
	while (state == 1) {
		void *volatile p = malloc(5000); /* too large for the cache of a thread */
		free(p);
		count[(long)arg].n++;
	}
	return NULL;
}
static void let_fork(void)
{
	unsigned long sum = 0;
	pid_t child = fork();
	if (child == 0) {
		for (int i = 0; i < THREADS; i++)
			sum += count[i].n;
		char line[64];
		_exit(write(1, line, snprintf(line, sizeof(line), "%d %lu\\n", (int)getpid(), sum)) < 0);
	}
	waitpid(child, NULL, 0);
}
int main(void)
{
	pthread_t thread[THREADS];
	for (long i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, work, (void *)i);
	let_fork();
	state = 1;
	for (int i = 0; i < 10; i++)
		let_fork();
	state = 2;
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	return 0;
}
"""


@test("process/fork-of-busy-threads", limit=120)
def _(t):
    """While fork holds the locks of malloc, each other thread can complete one call: a child's profile has no more than that."""
    path = os.path.join(t.directory, "forking")
    compiled = t.run([t.program("gcc"), "-O1", "-pthread", "-o", path, t.file("forking.c", FORKING)])
    t.equal("status of gcc (%s)" % compiled.err.decode(), compiled.status, 0)
    profile = t.profile([path])
    t.equal("status", profile.status, 0)
    counted = [tuple(map(int, line.split())) for line in profile.out.decode().splitlines()]
    found = {pid: blocks[0]["allocations"] for pid, blocks in stats_by_pid(profile).items()}
    before = found[counted[0][0]]
    t.equal("counted before the threads began", counted[0][1], 0)
    for pid, count in counted:
        t.check(0 <= found[pid] - before - count <= 3, "allocations of a child: %d, of which %d before: %d" % (found[pid], before, count))


@test("process/exec-not-followed")
def exec_not_followed(t):
    """The old image's profile is written; the new one continues untraced."""
    profile = run_mode(t, "gcc-O2-pie", "exec", ["--follow-exec=no"], status=11, out=b"")
    (pid, first), (_, _) = t.truths(profile.directory)
    t.equal("massif files", {p: len(f) for p, f in profile.files.items()}, {pid: 1})
    t.counts("the first image", stats_by_pid(profile)[pid][0], first)
    said = [m for m in profile.messages if "it executed" in m]
    t.equal("what is said of the second image", len(said), 1)
    t.check("/process, not followed: --follow-exec=no" in said[0], said[0])


BEFORE = re.compile(r"ptmem:   before       (.*) \(at most ([0-9.]+) (B|KiB) in use\)$")


def before(profile):
    """[(names, bytes)] of the lines that say what ran before."""
    found = [BEFORE.match(m) for m in profile.messages]
    return [(m.group(1), float(m.group(2)) * (1024 if m.group(3) == "KiB" else 1)) for m in found if m]


@test("process/exec-superseded")
def exec_superseded(t):
    """By default the profile is that of the last image, and one line tells of those before it."""
    for mode in ("exec", "execthread"):
        profile = run_mode(t, "gcc-O2-pie", mode, status=11, out=b"")
        (pid, first), (_, second) = t.truths(profile.directory)
        t.equal("massif files", {p: len(f) for p, f in profile.files.items()}, {pid: 1})
        t.equal("processes reported", {p: len(s) for p, s in stats_by_pid(profile).items()}, {pid: 1})
        t.counts("the last image", stats_by_pid(profile)[pid][0], second)
        t.equal("command", profile.only_massif().cmd.split(" ", 1)[1], "image")
        t.equal("what ran before", [name for name, _ in before(profile)], ["process"])
        if mode == "exec":
            t.check(abs(before(profile)[0][1] - first["peak"]) < 100, "%s, not %s" % (before(profile), first["peak"]))


@test("process/exec-in-stream")
def exec_in_stream(t):
    """A pipe gets the events of all images; what it makes of them is the profile of the last one, as ptmem's own."""
    argv = ["env", "A=1", t.target("gcc-O2-pie", "mixed")]
    cwd = t.subdirectory()
    os.mkfifo(os.path.join(cwd, "fifo"))
    with subprocess.Popen(["cat", "fifo"], cwd=cwd, stdout=subprocess.PIPE) as reader:
        live = t.run([t.ptmem(), "--time-unit=B", "--threshold=0", "--events=fifo", "-o", "live", *argv], cwd=cwd)
        text = reader.stdout.read()
    t.equal("headers", [line.split()[3:] for line in text.decode().splitlines() if line.startswith("h ")],
            [argv, argv[2:]])
    with open(os.path.join(cwd, "events"), "wb") as file:
        file.write(text)
    replay = t.run([t.ptmem(), "--time-unit=B", "--threshold=0", "--replay=events", "-o", "replayed"], cwd=cwd)
    t.equal("status", (live.status, replay.status), (0, 0))
    files = []
    for name in ("live", "replayed"):
        with open(os.path.join(cwd, name), encoding="utf-8") as file:
            files.append(file.read().split("\n", 1)[1])
    t.equal("massif files", files[0], files[1])
    said = [re.findall("^ptmem:   (allocations|peak|before) +(.*)$", r.err.decode(), re.M) for r in (live, replay)]
    t.equal("summaries", *said)
    t.equal("lines", [name for name, _ in said[0]], ["peak", "allocations", "before"])
    last = t.file("last", text[text.rindex(b"ptmem-events"):].decode())
    t.equal("memusage", *(t.run([t.ptmem(), "-q", "--memusage", "--replay=" + name], cwd=cwd).err for name in ("events", last)))


@test("process/exec-by-shims")
def exec_by_shims(t):
    """Through env and shells; what they fork, and what these execute, is not followed."""
    argv = ["env", "A=1", "sh", "-c", "%s; exec %s" % (t.program("true"), t.target("gcc-O2-pie", "mixed"))]
    profile = t.profile(argv, ["--record=r"])
    native = t.native(argv)
    t.same_behaviour(profile, native)
    t.equal("what ran before", [name for name, _ in before(profile)], ["env, dash"])
    direct = t.profile([t.target("gcc-O2-pie", "mixed")])
    last = profile.stats[-1]
    t.equal("allocations", last["allocations"], direct.only_stats()["allocations"])
    t.equal("the recording's command", report_json(t, os.path.join(profile.directory, "r"))["meta"]["command"],
            t.target("gcc-O2-pie", "mixed"))


SHIM = """#!/bin/bash
x=$(echo hello | tr a-z A-Z)
(exit 3)
y=$(z=$(echo "$x"); echo "$z")
{ read -r line <&3; exit 0; } 3<go &
exec "$@" 3>go
"""


@test("process/exec-by-a-shim-with-subshells")
def exec_by_a_shim_with_subshells(t):
    """Subshells of a script that ends in exec, one of them still alive then, have no profile: they are counted."""
    shim, cwd = t.file("shim", SHIM), t.subdirectory()
    os.chmod(shim, 0o755)
    os.mkfifo(os.path.join(cwd, "go"))
    profile = t.profile([shim, t.target("gcc-O2-pie", "mixed")], ["-o", "massif.out.%p", "--record=r", "--memusage"], cwd=cwd)
    direct = t.profile([t.target("gcc-O2-pie", "mixed")])
    t.equal("allocations", profile.only_stats()["allocations"], direct.only_stats()["allocations"])
    t.equal("files", sorted(n[:8] for n in os.listdir(cwd) if n.startswith(("massif", "r"))), ["massif.o", "r"])
    t.equal("summaries of memusage", profile.err.decode().count("Memory usage summary"), 1)
    t.equal("what ran before", [name for name, _ in before(profile)], ["bash"])
    # x: the one that echoes, and tr; (exit 3); y and z; the one that reads
    said = [m for m in profile.messages if "not profiled" in m]
    t.check(len(said) == 1 and re.match("ptmem: [67] child processes were not profiled", said[0]), "messages: %s" % said)


@test("process/subshells-of-what-stays")
def subshells_of_what_stays(t):
    """Those of a script that executes nothing in its place have profiles, also if what it executes is not profiled."""
    profile = t.profile(["bash", "-c", "(exit 3); (exit 4); :"])
    t.equal("files", sorted(len(f) for f in profile.files.values()), [1, 1, 1])
    t.equal("not profiled", [m for m in profile.messages if "not profiled" in m], [])
    profile = t.profile(["bash", "-c", "(exit 3); (exit 4); exec \"$0\"", t.target("odd", "nolibc")])
    t.equal("files before nolibc", sorted(len(f) for f in profile.files.values()), [1, 1, 1])
    t.equal("successors", successors(profile), [os.path.realpath(t.target("odd", "nolibc"))])


@test("process/subshell-of-a-long-run", limit=60)
def subshell_of_a_long_run(t):
    """A program that runs for longer than wrappers do does not keep the profiles of its children from their files."""
    cwd = t.subdirectory()
    ptmem = subprocess.Popen([t.ptmem(), "-o", "m", "bash", "-c", "(exit 3); read x"], cwd=cwd, stdin=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, env=t.environment(cwd))
    try:
        t.wait_until("the child's file", lambda: os.listdir(cwd))
    finally:
        ptmem.communicate(b"x\n")
    t.equal("status", ptmem.returncode, 0)
    t.equal("files", len(os.listdir(cwd)), 2)


# A second later, when ptmem has to look at it again, it waits until ptmem has been awake and sleeps once more.
LARGE = """import os, re, time
x = bytearray(50 << 20)
time.sleep(1.1)
def status(pid, key):
    with open("/proc/%s/status" % pid) as file:
        return int(re.search(key + r":\\s*(\\d+)", file.read())[1])
ptmem = status(os.getppid(), "TracerPid")
begin = status(ptmem, "\\nvoluntary_ctxt_switches")
while status(ptmem, "\\nvoluntary_ctxt_switches") < begin + 2:
    time.sleep(0.01)
"""


@test("process/children-left")
def children_left(t):
    """Children that execute other programs are counted, and the largest is named."""
    script = "true; true; python3 %s; true" % t.file("large.py", LARGE)
    said = [m for m in t.profile(["sh", "-c", script.replace("true", t.program("true")).replace("python3", t.program("python3"))]).messages
            if "not profiled" in m]
    match = re.match(r"ptmem: 4 child processes were not profiled, the largest (python3\S*) with ([0-9.]+) MiB resident; "
                     r"--trace-children=yes follows them$", said[0] if len(said) == 1 else "")
    t.check(match and 50 <= float(match.group(2)) < 120, "messages: %s" % said)
    for options, argv in (([], ["sh", "-c", "(exit 0)"]), (["--trace-children=yes"], ["sh", "-c", t.program("true") + "; exit 0"])):
        t.equal("without any", [m for m in t.profile(argv, options).messages if "not profiled" in m], [])


@test("process/children-left-size")
def children_left_size(t):
    """The size of the largest is what the kernel counted, also of one that grew after it was read; of one without a parent a bound."""
    grows = t.file("grows.py", "import resource, sys, time\nx = bytearray(int(sys.argv[1]) << 20)\n"
                   "open(sys.argv[2], 'w').write(str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))\n")
    for size in 60, 90:
        used = os.path.join(t.directory, "used%d" % size)
        said = [m for m in t.profile(["sh", "-c", "%s %s %d %s; :" % (t.program("python3"), grows, size, used)]).messages if "not profiled" in m]
        with open(used, encoding="ascii") as file:
            true = int(file.read()) / 1024
        match = re.match(r"ptmem: 1 child process was not profiled, the largest (?:python3\S* )?with ([0-9.]+) MiB resident[ ;]", said[0])
        t.check(match and true - 0.1 <= float(match.group(1)) < true + 2, "%g MiB: %s" % (true, said))


@test("process/children-left-alike", limit=60)
def children_left_alike(t):
    """Children of children that are not profiled are not counted, whether or not they are seen."""
    script = "sh -c 'true; true; exec true'; (true; true); :".replace("true", t.program("true"))
    for options in ([], ["--trace=heap,brk"], ["--pages-as-heap=yes"]):
        said = [m for m in t.profile(["sh", "-c", script], options).messages if "not profiled" in m]
        t.check(len(said) == 1 and said[0].startswith("ptmem: 3 child processes were not profiled"), "%s: %s" % (options, said))


@test("process/exec-fails")
def exec_fails(t):
    """An exec that fails ends nothing."""
    profile = t.profile(["sh", "-c", "exec /nonexistent/program || true; echo alive", "sh"])
    t.equal("lines before", before(profile), [])
    t.equal("files", sum(len(f) for f in profile.files.values()), 1)


def program_mapping(pid):
    """The first one of the program's file. Inside execve there is none until the handlers of the old image are gone."""
    with open("/proc/%d/maps" % pid, encoding="utf-8") as file:
        return next((line for line in file if line.endswith("/exec_on_signal\n")), None)


@test("process/exec-attached")
def exec_attached(t):
    """An attached process, too, is followed through its own exec."""
    program = subprocess.Popen([t.target("gcc-O2-pie", "exec_on_signal")], cwd=t.subdirectory(), stdout=subprocess.PIPE)
    try:
        t.wait_until("its handlers", lambda: catches(program.pid, signal.SIGUSR2))  # the last one
        attached = Attached(t, program.pid).wait_attached()
        old = program_mapping(program.pid)
        program.send_signal(signal.SIGUSR1)
        t.wait_until("the second image to have its handlers",
                     lambda: program_mapping(program.pid) not in (None, old) and catches(program.pid, signal.SIGUSR2))
        program.send_signal(signal.SIGUSR2)
        t.equal("output", program.communicate(timeout=200)[0], b"OK\n")
    finally:
        program.kill()
        program.wait()
    profile = attached.ended()
    t.equal("what ran before", [name for name, _ in before(profile)], ["exec_on_signal"])
    t.equal("files", {p: len(f) for p, f in profile.files.items()}, {program.pid: 1})


@test("process/exec-followed")
def exec_followed(t):
    profile = run_mode(t, "gcc-O2-pie", "exec", ["--trace-children=yes"], status=11, out=b"")
    (pid, first), (_, second) = t.truths(profile.directory)
    t.equal("massif files", {p: len(f) for p, f in profile.files.items()}, {pid: 2})
    stats = stats_by_pid(profile)[pid]
    t.counts("the first image", stats[0], first)
    t.counts("the second image", stats[1], second)
    commands = sorted(massif.Massif(f).cmd.split(" ", 1)[1] for f in profile.files[pid])
    t.equal("commands", commands, ["exec", "image"])


@test("process/exec-by-a-thread")
def exec_by_a_thread(t):
    """Another thread than the first executes: followed or not, as the first one's."""
    argv = [t.target("gcc-O2-pie", "process"), "execthread"]
    for options, files in ((["--trace-children=yes"], 2), (["--follow-exec=no"], 1)):
        profile = t.profile(argv, options=options, timeout=200)
        t.equal("status, output (%s)" % profile.err, (profile.status, profile.out), (11, b""))
        (pid, _), (_, second) = t.truths(profile.directory)
        t.equal("massif files", {p: len(f) for p, f in profile.files.items()}, {pid: files})
        if files == 2:
            t.counts("the second image", stats_by_pid(profile)[pid][1], second)


CHAIN = ["sh", "-c", "exec sh -c 'exec echo end' again"]


KIDS = """
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	int n = atoi(argv[1]), status, bad = 0, ends[2];
	struct rlimit files;
	if (getrlimit(RLIMIT_NOFILE, &files) || pipe(ends))
		return 2;
	for (int i = 0; i < 1000; i++)
		free(malloc(10));
	for (int i = 0; i < n; i++) {
		if (fork() == 0) {
			char c;
			close(ends[1]);
			for (int k = 0; k < 10; k++)
				free(malloc(20));
			_exit(read(ends[0], &c, 1) != 0);
		}
	}
	close(ends[1]);
	for (int i = 0; i < n; i++)
		bad += wait(&status) < 0 || status != 0;
	printf("%d bad of %d, %ld files\\n", bad, n, (long)files.rlim_cur);
	return 0;
}
"""


@test("process/more-than-descriptors", limit=120)
def more_than_files(t):
    """More processes live at once than ptmem may at first open files, or ever: each has its own counts, profile and
    recording; the program's own limit is unchanged."""
    path = os.path.join(t.directory, "kids")
    t.equal("compiler", t.run([t.program("gcc"), "-O1", "-fno-builtin", "-o", path, t.file("kids.c", KIDS)]).status, 0)
    for limit in ("ulimit -Sn 64", "ulimit -n 64"):
        argv = [t.ptmem(), "--stats", "--massif-out-file=/dev/null", "--record=r", *harness.MORE_OPTIONS, path, "100"]
        run = t.run(["sh", "-c", limit + ' && exec "$@"', "sh", *argv])
        t.equal("status and output (%s)" % run.err.decode()[-500:], (run.status, run.out), (0, b"0 bad of 100, 64 files\n"))
        made = sorted(int(n) for n in re.findall(rb"(?m)^ptmem: allocations: (\d+)", run.err))
        t.equal("%s: allocations of parent and children" % limit, made, [1001] + [1010] * 100)
        recorded = [report_json(t, os.path.join(run.cwd, n)) for n in os.listdir(run.cwd) if re.fullmatch(r"r(\.\d+)?", n)]
        t.equal("%s: recordings" % limit, sorted((r["meta"]["exit"], r["end"]["allocations"]) for r in recorded),
                [("exited 0", n) for n in [10] * 100 + [1001]])  # those of forked children begin with the fork


@test("process/few-descriptors")
def few_descriptors(t):
    """Too few for results: refused before the program starts, with the number needed, which is enough."""
    options = ["--record=r", "--html=h", "--flame=f", "--folded=g", "--leaks", "--leaks-out=l", "--listen", "--memusage", "--xtree-memory=full",
               "--xtree-memory-file=x.kcg", "--events=e", "--massif-out-file=m"]
    argv = [t.ptmem(), *options, "--", "/bin/sh", "-c", "echo ran; ulimit -n"]
    for limit in (5, 12, 24, 31):
        run = t.run(["sh", "-c", 'ulimit -n %d && exec "$@" 3>&- 4>&-' % limit, "sh", *argv])
        t.equal("with %d: status and output" % limit, (run.status, run.out), (125, b""))
        t.check(b"may open %d files here, and ptmem needs 32 to keep its results" % limit in run.err, run.err.decode())
    for limit in ("ulimit -n 32", "ulimit -Sn 12"):
        run = t.run(["sh", "-c", limit + ' && exec "$@" 3>&- 4>&-', "sh", *argv])
        t.equal("%s: status and output (%s)" % (limit, run.err.decode()), (run.status, run.out), (0, b"ran\n%s\n" % limit.split()[-1].encode()))
        t.check(b"cannot" not in run.err and b"oo many" not in run.err, run.err.decode())
        made = sorted(n for n in os.listdir(run.cwd) if len(n.split(".")[0]) == 1)
        t.equal("files", made, ["e", "f", "g", "h", "l", "m", "r", "x.kcg"])


@test("process/exec-while-stopping-all", limit=120)
def exec_while_all_stop(t):
    """A thread in execve waits for all others to exit: they must not be held back, whatever stops all threads."""
    cwd = t.subdirectory()
    ptmem = subprocess.Popen([t.ptmem(), "-q", "--leaks", "--leaks-out=leaks", "--trace-children=yes", *harness.MORE_OPTIONS,
                              t.target("gcc-O2-pie", "exec_loop"), "30"], cwd=cwd, env=t.environment(cwd),
                             stdout=subprocess.PIPE)
    t.wait_until("ptmem to take signals", lambda: catches(ptmem.pid, signal.SIGUSR1))
    while ptmem.poll() is None:
        ptmem.send_signal(signal.SIGUSR1)  # a report, for which all stand still
        time.sleep(0.01)
    t.equal("output and status", (ptmem.stdout.read(), ptmem.returncode), (b"OK\n", 0))


@test("process/exec-while-detaching", limit=120)
def exec_while_left(t):
    """The same when ptmem attaches and detaches, possibly when the first thread has just exited."""
    cwd = t.subdirectory()
    program = subprocess.Popen([t.target("gcc-O2-pie", "exec_loop"), "-1"], cwd=cwd, stdout=subprocess.PIPE)
    for i in range(ROUNDS):
        more = [["--trace-children=yes"], []][i % 2]
        run = t.run([t.ptmem(), "-q", *more, "--duration=%g" % (0.01 * (1 + i % 9)), "-p", str(program.pid)], timeout=200)
        t.check(run.status == 0, "status %d: %s" % (run.status, run.err))
        t.equal("the program runs", program.poll(), None)
    with open(os.path.join(cwd, "stop"), "wb"):
        pass
    t.equal("output and status", (program.communicate(timeout=200)[0], program.returncode), (b"OK\n", 0))


@test("process/exec-while-relocating")
def exec_while_relocating(t):
    """ptmem leaves while a program that was executed is in a library that is not announced yet: no breakpoint
    may go into that now."""
    cwd = t.subdirectory()
    shell = subprocess.Popen(["sh", "-c", "read x; exec \"$0\"", t.target("gcc-O2-pie", "ifunc")], cwd=cwd,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    attached = Attached(t, shell.pid, ["--trace-children=yes"]).wait_attached()
    shell.stdin.write(b"\n")
    shell.stdin.flush()
    t.equal("what the program says first", shell.stdout.read(1), b".")
    attached.detach()
    out, _ = shell.communicate(b"x", timeout=200)
    t.equal("output and status", (out, shell.returncode), (b"OK\n", 0))


def chain(t, options, names):
    """Three images of one process; @names: of their files, in order, %p for the pid."""
    profile = t.profile(CHAIN, options=["--trace-children=yes", *options])
    t.equal("status", profile.status, 0)
    t.equal("standard output", profile.out, b"end\n")
    pid = str(profile.stats[0]["pid"])
    found = {n: massif.Massif(os.path.join(profile.directory, n)).cmd for n in os.listdir(profile.directory)
             if n not in ("command", "stdout", "stderr")}
    commands = (" ".join(CHAIN), t.program("sh") + " -c exec echo end again", t.program("echo") + " end")
    t.equal("files and their commands", found, dict(zip((n.replace("%p", pid) for n in names), commands)))


@test("process/exec-names")
def exec_names(t):
    """What would overwrite a file of the same process gets a number; the last image has the plain name."""
    chain(t, [], ("massif.out.%p.1", "massif.out.%p.2", "massif.out.%p"))
    chain(t, ["-o", "out"], ("out.1", "out.2", "out"))
    chain(t, ["-o", "out.%n"], ("out.1", "out.2", "out.3"))


@test("process/stops-per-process")
def stops_of_each(t):
    """The number of stops is reported for each process."""
    profile = t.profile(["sh", "-c", "env true; env true; :"], options=["-v", "--trace-children=yes"])
    said = [int(m.group(1).replace(",", "")) for m in
            (re.search(r"stopped +at ([\d,]+) breakpoint", line) for line in profile.messages) if m]
    t.check(len(said) >= 3 and min(said) > 0, "each stopped: %s" % said)
    t.equal("together", sum(said), profile.stats[-1]["breakpoint stops"])


@test("process/without-thread-pointer")
def without_thread_pointer(t):
    """A program without a C library has malloc, but no thread pointer, which jumps need: it stays on breakpoints."""
    program = t.target("odd", "own_malloc")
    for options in ([], ["--probes=jump"], ["--heap-sample=64"]):
        profile = t.profile([program], options=options)
        stats = profile.only_stats()
        t.equal("status with %s" % options, profile.status, 3)
        t.equal("functions with jumps", stats["functions with jumps"], 0)
        if options != ["--heap-sample=64"]:
            t.equal("counted", [stats[k] for k in ("allocations", "frees", "bytes")], [100, 50, 4950])
    directory = t.subdirectory()
    running = subprocess.Popen([program, "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    ptmem = subprocess.Popen([t.ptmem(), "-q", "--stats", "--log-file=log", "-o", "m", "-p", str(running.pid)], cwd=directory,
                             env=t.environment(directory))
    log = os.path.join(directory, "m")
    t.wait_until("attached", lambda: re.search(r"TracerPid:\s+[1-9]", open("/proc/%d/status" % running.pid, encoding="ascii").read())
                 and running.poll() is None)
    for _ in range(20):
        running.stdin.write(b"x")
        running.stdin.flush()
        t.equal("answer", running.stdout.read(1), b"x")
    running.stdin.close()
    t.equal("status of the one attached to", running.wait(), 3)
    t.equal("status of ptmem", ptmem.wait(), 0)
    t.check(os.path.exists(log), "there is a profile")


def exec_unprofiled(t, name, status, word):
    """sh, whose profile is there, executes program @name; the message has @word."""
    target = t.target("odd", name)
    profile = t.profile(["sh", "-c", "exec \"$0\"", target], options=["--trace-children=yes"])
    t.equal("status of " + name, profile.status, status)
    t.check([m for m in profile.messages if word in m and "not profiled" in m],
            "nothing said about %s: %s" % (name, profile.messages))
    t.equal("commands", [b["pid"] for b in profile.stats], list(profile.files))
    t.check(massif.Massif(profile.files[profile.stats[0]["pid"]][0]).cmd.startswith("sh -c"), "whose file is it")


@test("process/exec-without-allocator")
def exec_of_no_allocator(t):
    """A program without malloc that is executed later continues; ptmem reports that it is not profiled."""
    exec_unprofiled(t, "nolibc", 3, "malloc")
    exec_unprofiled(t, "stripped-static", 3, "malloc")


PRE = """
#include <stdlib.h>
#include <unistd.h>
void *volatile p;
int main(int argc, char **argv)
{
	for (int i = 0; i < 1000; i++)
		p = malloc(10007);
	return argc > 1 ? execv(argv[1], argv + 1) : 0;
}
"""

BARE = """
#include <unistd.h>
int main(int argc, char **argv)
{
	return argc > 1 ? execv(argv[1], argv + 1) : 0;
}
"""


def compiled(t, name, text, *options):
    path = os.path.join(t.directory, name)
    run = t.run([t.program("gcc"), "-O1", *options, "-o", path, t.file(name + ".c", text)])
    t.equal("status of gcc (%s)" % run.err.decode(), run.status, 0)
    return path


THEN = r"ptmem:   then         it executed (\S+), which was not profiled: no malloc .*--trace=brk,mmap"


def successors(profile):
    return [m.group(1) for m in (re.match(THEN, line) for line in profile.messages) if m]


FORKED = """
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static void *volatile kept[400], *volatile own[200];
int main(void)
{
	for (int i = 0; i < 400; i++)
		kept[i] = malloc(500);
	if (!fork()) {
		for (int i = 0; i < 400; i++)
			free(kept[i]);
		for (int i = 0; i < 200; i++)
			own[i] = malloc(300);
		_exit(0);
	}
	wait(NULL);
}
"""


@test("process/forked-counts")
def forked_counts(t):
    """The summary and the limits of a forked child count its own calls, not its parent's before the fork."""
    program = compiled(t, "forked", FORKED)
    for options in (["--limit=allocations<500", "--limit=allocated<250000", "--limit=allocations@main<500"], ["--heap-sample=1K"]):
        profile = t.profile([program], ["-v", *options])
        lines = [re.fullmatch(r"ptmem:   allocations  (\S+) of (\S+) bytes, 0 .*?, (?:and )?(\S+) (?:frees|calls of free).*", m)
                 for m in profile.messages]
        t.equal("calls, bytes, frees", sorted(m.groups() for m in lines if m), [("200", "60,000", "400"), ("400", "200,000", "0")])
        t.equal("status, %s" % profile.messages, profile.status, 0)


@test("process/exec-to-no-allocator")
def exec_to_no_allocator(t):
    """The last image has no malloc: the result is the profile of the one before it, in all outputs."""
    pre, nolibc = compiled(t, "pre", PRE), t.target("odd", "nolibc")
    profile = t.profile([pre, nolibc], ["-o", "massif.out.%p", "--record=r", "--events=events", "--folded=f", "--html=h", "--memusage",
                                          "--memusage-out=u"])
    t.equal("status", profile.status, 3)
    t.equal("successors", successors(profile), [os.path.realpath(nolibc)])
    t.equal("allocations, bytes", [profile.only_stats()[k] for k in ("allocations", "peak")], [1000, 10007000])
    t.equal("command", profile.only_massif().cmd, "%s %s" % (pre, nolibc))
    recording = report_json(t, os.path.join(profile.directory, "r"))
    t.equal("the recording's peak", recording["peak"]["bytes"], 10007000)
    t.equal("the recording's end", recording["meta"]["exit"], "executed another program")
    t.equal("events", profile.events().all["bytes"], 10007000)
    with open(os.path.join(profile.directory, "f"), encoding="utf-8") as file:
        t.equal("folded bytes", sum(int(line.rsplit(" ", 1)[1]) for line in file), 10007000)
    with open(os.path.join(profile.directory, "u"), encoding="utf-8") as file:
        t.check("heap total: 10007000" in file.read(), "memusage's total")
    t.check(os.path.getsize(os.path.join(profile.directory, "h")) > 10000, "the page is too small")
    bare = t.profile(["env", "A=1", nolibc])
    t.equal("successors of env", successors(bare), [os.path.realpath(nolibc)])
    t.check(bare.only_massif().cmd.startswith("env A=1"), "whose file is it")


@test("process/exec-through-no-allocator")
def exec_through_no_allocator(t):
    """An image without malloc on the way: one profile, of the last image that has one."""
    pre, bare = compiled(t, "pre", PRE), compiled(t, "bare", BARE, "-static", "-s")
    with open(bare, "r+b") as file:  # or glibc's malloc would be recognized
        code = file.read().replace(b"malloc(): corrupted top size", b"MALLOC(): corrupted top size")
        file.seek(0)
        file.write(code)
    profile = t.profile(["env", bare, bare, pre, bare, bare], ["--record=r"])
    t.equal("status", profile.status, 0)
    t.equal("peak", profile.only_stats()["peak"], 10007000)
    t.equal("what ran before", [name for name, _ in before(profile)], ["env, bare, bare"])
    t.equal("which were named", len([m for m in profile.messages if "found in %s; a stripped" % os.path.realpath(bare) in m]), 4)
    t.equal("successors", successors(profile), [os.path.realpath(bare)])
    t.equal("the recording's peak", report_json(t, os.path.join(profile.directory, "r"))["peak"]["bytes"], 10007000)
    profile = t.profile([pre, bare, t.target("gcc-O2-pie", "empty")], ["-o", "massif.out.%p", "--record=r"])
    t.check("ptmem:   before       pre, bare (at most 9.5 MiB in use)" in profile.messages,
            "what ran before: %s" % profile.messages)
    t.equal("successors", successors(profile), [])
    t.equal("files", sum(len(f) for f in profile.files.values()), 1)
    sampled = t.profile([pre, t.target("gcc-O2-pie", "empty")], ["--heap-sample=4K"])
    t.check(any(re.fullmatch(r"ptmem:   before       pre \(at most about [0-9.]+ [KM]iB in use\)", m) for m in sampled.messages),
            "what ran before, sampled: %s" % sampled.messages)


@test("process/exec-to-no-allocator-attached")
def exec_to_no_allocator_attached(t):
    """The same for an attached process; ptmem may also leave while the last image runs."""
    nolibc = t.target("odd", "nolibc")
    for leaves in (False, True):
        program = subprocess.Popen([t.target("gcc-O2-pie", "exec_on_signal"), nolibc], cwd=t.subdirectory(), stdin=subprocess.PIPE)
        try:
            t.wait_until("its handlers", lambda: catches(program.pid, signal.SIGUSR2))  # the last one
            attached = Attached(t, program.pid, ["--leak-check", "-o", "massif.out.%p", "--record=r"]).wait_attached()
            program.send_signal(signal.SIGUSR1)
            t.wait_until("the second image", lambda: "not profiled" in attached.errors())
            profile = attached.detach() if leaves else None
            program.stdin.close()
            t.equal("status of the program", program.wait(timeout=200), 3)
        finally:
            program.kill()
            program.wait()
        profile = profile or attached.ended()
        t.equal("successors", successors(profile), [os.path.realpath(nolibc)])
        t.equal("files", {p: len(f) for p, f in profile.files.items()}, {program.pid: 1})
        t.equal("the recording's process", report_json(t, os.path.join(profile.directory, "r"))["meta"]["pid"], program.pid)


@test("process/exec-32-bit")
def exec_of_32_bit(t):
    try:
        subprocess.call([t.target("odd", "tiny32")])
    except OSError as error:
        t.equal("reason", error.errno, errno.ENOEXEC)
        raise harness.Skip("this kernel does not run 32-bit programs") from error
    exec_unprofiled(t, "tiny32", 7, "32-bit")


def register_fork_beside(probes):
    @test("process/fork-beside-threads/" + probes)
    def _(t):
        """A child ends when a new thread has stopped and the event of its creator is still to come: that thread is no
        process."""
        profile = t.profile([t.target("gcc-O2-pie", "fork_beside"), "300"], ["--probes=" + probes])
        t.equal("status (%s)" % profile.messages[-3:], profile.status, 0)
        t.equal("processes", len(profile.files), 301)


for p in ("auto", "jump", "break"):
    register_fork_beside(p)


def register_children(mode):
    @test("process/children-%s-followed" % mode)
    def _(t):
        """Every program on the way has its profile, and its own numbers."""
        profile = t.profile([t.target("gcc-O2-pie", "process"), mode], options=["--trace-children=yes"],
                            env={"LD_PRELOAD": t.oracle_library()})
        t.equal("status", profile.status, 0)
        pages, stats = oracle.read_pages(profile.directory), stats_by_pid(profile)
        for pid, blocks in stats.items():
            # What a fork was before it executed is in its parent's profile, or it is ptmem's own child.
            images = pages.get(pid, [])[-len(blocks):]
            t.equal("images of pid %d" % pid, len(images), len(blocks))
            for number, (block, page) in enumerate(zip(blocks, images)):
                t.counts("pid %d, image %d" % (pid, number), block, page.all)
        t.check(len(stats) > 1, "no child was followed")


for m in ("spawn", "system", "popen", "vfork"):
    register_children(m)


# ---- ends ----


@test("exit/codes", limit=180)
def codes(t):
    """Every exit code is passed on unchanged."""
    target = t.target("gcc-O2-pie", "exits")
    for code in range(256):
        run = t.run([t.ptmem(), "-q", "-o", "/dev/null" if code else "massif.out.%p", "--", target, "code",
                     str(code)], cwd=t.directory)
        t.equal("status of code %d" % code, run.status, code)


def register_end(name, args, status, variant="gcc-O2-pie"):
    @test("exit/%s" % name)
    def _(t):
        argv = [t.target(variant, "exits"), *args]
        native = t.native(argv)
        t.equal("status without ptmem", native.status, status)
        profile = t.profile(argv, options=["--events=events"])
        t.same_behaviour(profile, native)
        truth = t.truth(profile.directory)
        t.counts("the profile up to the end", profile.events("exits").own, truth)
        profile.only_massif()
        if truth["peak"] is not None:
            t.counts("ptmem", profile.only_stats(), truth)


for code in (0, 1, 7, 125, 126, 127, 128, 255):
    register_end("exit-%d" % code, ("code", str(code)), code)
register_end("_exit", ("quick", "9"), 9)
register_end("from-a-thread", ("thread", "33"), 33)
for number in (1, 2, 3, 6, 9, 10, 13, 14, 15, 31, 34, 64):
    register_end("raise-%d" % number, ("signal", str(number)), -number)
    register_end("kill-%d" % number, ("group", str(number)), -number)
register_end("segv", ("segv",), -11)
register_end("ill", ("ill",), -4)
register_end("fpe", ("fpe",), -8)
register_end("int3-of-its-own", ("trap",), -5)
register_end("raise-SIGTRAP", ("signal", "5"), -5)
register_end("musl-code", ("code", "3"), 3, "musl-O2-pie")
register_end("musl-segv", ("segv",), -11, "musl-O2-static")


@test("exit/file-permissions")
def permissions(t):
    """0644 minus the umask; complete or absent; nothing else is left behind."""
    profile = t.profile([t.target("gcc-O2-pie", "mixed")])
    (path,), = profile.files.values()
    umask = os.umask(0)
    os.umask(umask)
    t.equal("mode", oct(os.stat(path).st_mode & 0o777), oct(0o644 & ~umask))
    rest = set(os.listdir(profile.directory)) - {os.path.basename(path), "truth", "command", "stdout", "stderr"}
    t.equal("other files", sorted(rest), [])
