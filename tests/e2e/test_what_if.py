"""--what-if: what a program allocated, repeated with other allocators in a process of its own."""

import gzip
import json
import os
import re
import signal
import subprocess

from harness import ALLOCATORS, BUILD, Skip, report, run_report, test
from process_lib import state

MIB = 1 << 20
LARGE = 50  # blocks of 1 MiB
KEPT = 125  # blocks of 1000 bytes, each on other pages
SOURCE = r"""/* Blocks of all kinds; a large part is freed below one that stays; few small ones stay, far apart. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
static void *small[%d * 16], *large[%d];
static void fill(void)
{
	for (int i = 0; i < %d * 16; i++)
		small[i] = memset(malloc(1000), 1, 1000);
}
static void *thread(void *arg)
{
	for (int i = 0; i < %d * 16; i++)
		if (i %% 16)
			free(small[i]);
	void *own = malloc(5000);
	free(arg);
	return realloc(own, 50000);
}
int main(void)
{
	void *volatile zero = malloc(0), *volatile moved = realloc(NULL, 10), *aligned, *from_thread;
	pthread_t id;

	fill();
	for (int i = 0; i < %d; i++)
		large[i] = memset(malloc(1 << 20), 1, 1 << 20);
	void *volatile top = malloc(2000);
	for (int i = 0; i < %d; i++)
		free(large[i]);
	moved = realloc(moved, 300000);
	moved = realloc(moved, 20);
	void *volatile failed = realloc(moved, (size_t)1 << 60);
	moved = realloc(moved, 0);
	aligned = aligned_alloc(4096, 8192);
	pthread_create(&id, NULL, thread, calloc(100, 10));
	pthread_join(id, &from_thread);
	free(from_thread);
	free(aligned);
	return zero == top || failed;
}
""" % (KEPT, LARGE, KEPT, KEPT, LARGE, LARGE)


def build(t, source):
    t.file("program.c", source)
    done = t.run(["gcc", "-g", "-O1", "-fno-builtin", "-w", "-pthread", "-o", "program", "program.c"], cwd=t.directory)
    t.equal("gcc: %r" % done.err, done.status, 0)
    return os.path.join(t.directory, "program")


def record(t, program, *options):
    """The profile of the program, and its file of events."""
    profile = t.profile([program], ["--events=events", *options], cwd=t.directory)
    return profile, os.path.join(t.directory, "events")


def touch_at_once(path):
    """Takes out how much was touched when: what is live is resident then."""
    with open(path, encoding="utf-8") as file:
        lines = [line for line in file if line[0] not in "MT"]
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(lines)


def what_if(t, path, *allocators):
    return json.loads(report(t, "--what-if=" + ",".join(allocators), "--format=json", path))


def check_curves(t, answer):
    for o in answer["allocators"]:
        name = o["allocator"]
        t.equal(name + ": samples", len(o["resident"]), len(answer["time_ns"]))
        t.equal(name + ": failed", o["failed"], 0)
        t.equal(name + ": end", o["end_bytes"], o["resident"][-1])
        t.check(o["peak_bytes"] >= max(o["resident"]), "%s: %d" % (name, o["peak_bytes"]))
        for live, resident in zip(answer["live"], o["resident"]):
            t.check(resident >= live, "%s: %d resident, %d live" % (name, resident, live))
    t.equal("times", answer["time_ns"], sorted(answer["time_ns"]))
    t.check(answer["time_ns"][-1] <= answer["duration_ns"], str(answer["duration_ns"]))
    t.equal("live bytes at the end", answer["live"][-1], answer["live_end_bytes"])


@test("what-if/answers")
def answers(t):
    """Live bytes are those of the profile; tunables and libraries have their effect; all forms have the same numbers."""
    profile, path = record(t, build(t, SOURCE))
    touch_at_once(path)
    stats = profile.only_stats()
    others = [name for name in ("jemalloc", "tcmalloc", "mimalloc") if os.path.exists(ALLOCATORS[name])]
    names = ["glibc", "glibc:mmap_max=0:top_pad=64K", *others, *(ALLOCATORS[name] for name in others[:1])]
    answer = what_if(t, path, *names)
    t.equal("peak", answer["live_peak_bytes"], stats["peak"])
    t.equal("live bytes", answer["live_end_bytes"], stats["live"])
    t.equal("live blocks", answer["live_end_blocks"], stats["blocks"])
    t.equal("threads", answer["threads"], 2)
    t.equal("allocators", [o["allocator"] for o in answer["allocators"]], names)
    check_curves(t, answer)
    glibc, no_mmap, *rest = answer["allocators"]
    for o, name in zip(rest, others):
        t.check(os.path.basename(o["library"]).startswith("lib" + name), o["library"])
    t.check(glibc["end_bytes"] < 8 * MIB, "mapped blocks are returned: %d" % glibc["end_bytes"])
    t.check(no_mmap["end_bytes"] > LARGE * MIB, "a block above keeps the others: %d" % no_mmap["end_bytes"])
    site = glibc["sites"][0]
    t.check(site["call_site"].startswith("fill (program.c:"), str(site))
    t.equal("bytes of fill", site["bytes"], KEPT * 1000)
    t.check(KEPT <= site["pages"] <= 2 * KEPT and site["blocks"] == site["pages"], str(site))
    t.check(sum(s["pages"] for s in glibc["sites"]) >= glibc["nearly_empty_pages"], str(glibc["sites"]))
    lines = report(t, "--what-if=" + ",".join(names), "--top=1", path).splitlines()
    for name in names:
        t.equal(name, [line.split()[-1] for line in lines if line.endswith("  " + name)], [name])
    t.check(any("every page of what was requested is touched" in line for line in lines), str(lines))
    text = report(t, "--what-if=glibc", "--format=markdown", path)
    t.check("\n| `glibc` | " in text and "`fill (program.c:" in text, text)


PASSED = r"""/* Threads that begin and end all the time; blocks go from each one to another. */
#include <pthread.h>
#include <stdlib.h>
enum { THREADS = 6, ROUNDS = 5, BLOCKS = 400 };
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static void *slot[BLOCKS];
static void *work(void *arg)
{
	for (size_t i = 0; i < 4 * BLOCKS; i++) {
		pthread_mutex_lock(&mutex);
		void **p = &slot[(i * 7 + (size_t)arg) % BLOCKS];
		*p = i % 3 ? realloc(*p, 1 + i * 5 % 4000) : (free(*p), calloc(1, 1 + i % 700));
		pthread_mutex_unlock(&mutex);
	}
	return NULL;
}
int main(void)
{
	pthread_t id[THREADS];
	for (int round = 0; round < ROUNDS; round++) {
		for (size_t i = 0; i < THREADS; i++)
			pthread_create(&id[i], NULL, work, (void *)(i * 3));
		for (int i = 0; i < THREADS; i++)
			pthread_join(id[i], NULL);
	}
	for (int i = 0; i < BLOCKS; i++)
		free(slot[i]);
	return 0;
}
"""


@test("what-if/threads")
def threads(t):
    """Each block is allocated before another thread resizes or frees it; a file that is cut is repeated as far as it goes."""
    profile, path = record(t, build(t, PASSED))
    stats = profile.only_stats()
    others = [name for name in ("jemalloc", "tcmalloc", "mimalloc") if os.path.exists(ALLOCATORS[name])]
    answer = what_if(t, path, "glibc", "glibc:arena_max=1", *others)
    t.equal("threads", answer["threads"], 31)
    t.equal("peak", answer["live_peak_bytes"], stats["peak"])
    t.equal("live bytes", answer["live_end_bytes"], stats["live"])
    t.equal("complete", answer["is_complete"], True)
    check_curves(t, answer)
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines(keepends=True)
    t.file("cut", "".join(lines[:len(lines) // 2]) + "a 12")
    cut = run_report(t, "--what-if=glibc", "--format=json", "cut", cwd=t.directory)
    t.equal("cut: %r" % cut.err, cut.status, 0)
    t.check(b"cut is cut in its line %d:" % (len(lines) // 2 + 1) in cut.err, repr(cut.err))
    t.equal("complete", json.loads(cut.out)["is_complete"], False)


@test("what-if/refused")
def refused(t):
    """What cannot be repeated, and allocators that are not there: the message says what to do."""
    program = build(t, "#include <stdlib.h>\nint main(void) { free(malloc(10)); return 0; }\n")
    _, path = record(t, program, "--record=recording")
    record(t, program, "--heap-sample=1K", "--events=samples")
    with open(path, "rb") as file, gzip.open(os.path.join(t.directory, "packed"), "w") as packed:
        packed.write(file.read())
    head = "ptmem-events 1\nh 1 0 x\n"
    threads = "".join("a 1 %d 0 0 %x 1 0\n" % (i, 4096 * i) for i in range(1, 17000))
    t.file("none.so", "")
    files = {"huge": head + "a 1 1 1 0 1000 %d 0\ne 2\n" % (1 << 58), "empty": head + "e 2\n", "bad": head + "a 1\n",
             "threads": head + threads + "e 2\n", "nothing": "", "twice": head + "e 2\n" + head + "e 2\n"}
    for name, text in files.items():
        t.file(name, text)
    for allocators, name, words in (
            ("glibc", "recording", "record these with ptmem --events=FILE"), ("glibc", "samples", "without --heap-sample"),
            ("glibc", "program.c", "not a file of ptmem --events"), ("glibc", "bad", "line 3: "), ("glibc", "twice", "a second first line"),
            ("glibc", "huge", "do not fit into"), ("glibc", "absent", "cannot read absent"), ("glib", path, "none of glibc, jemalloc"),
            ("glibc:arenas=1", path, "no tunable 'arenas', only arena_max arena_test hugetlb mmap_max "), ("/absent/lib.so", path, "/absent/lib.so cannot be loaded"),
            ("glibc,./none.so,/absent/lib.so", path, "./none.so cannot be loaded"), ("glibc", "packed", "gunzip -c FILE |"),
            ("glibc", "threads", "more than 16,384 threads"), ("glibc", "nothing", "the file is empty"), ("glibc", ".", "cannot read .")):
        done = run_report(t, "--what-if=" + allocators, name, cwd=t.directory)
        t.check(done.status != 0 and not done.out, "%s: %d %r" % (name, done.status, done.out))
        t.check(words in done.err.decode(), "%s: %r" % (name, done.err))
    pipe = (head + "a 1 1 1 0 1000 70000 0\n" + head + "a 1 1 1 0 1000 20 0\ne 2\n").encode()
    done = run_report(t, "--what-if=glibc", "-", stdin=pipe)
    t.check(done.status == 0 and b"live bytes: 20 B at the peak" in done.out, repr(done))
    done = run_report(t, "--what-if=glibc", path, cwd=t.directory, env={"TMPDIR": "/absent"})
    t.check(done.status == 255 and b"cannot be written in /absent: " in done.err, repr(done.err))
    for option, words in (("--format=csv", "text, json or markdown"), ("--diff", "only --format, --top,"), ("--x=20", "--x goes with"),
                          ("--html=x.html", "only --format, --top,")):
        done = run_report(t, "--what-if=glibc", option, path, cwd=t.directory)
        t.check(done.status == 255 and words in done.err.decode(), "%s: %r" % (option, done.err))
    done = run_report(t, "--what-if=glibc", "empty", cwd=t.directory)
    t.check(done.status == 0 and b"no call of malloc" in done.err, repr(done.err))


TOUCHED = r"""/* A large block of which a part is touched, one that is not, and one that grows: what is touched stays. */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
	char *part = malloc(40 << 20), *volatile none = malloc(100 << 20), *grown = malloc(8 << 20);

	memset(part, 1, 10 << 20);
	memset(grown, 1, 8 << 20);
	if (fork() == 0)
		_exit(0);
	wait(NULL);
	grown = realloc(grown, 24 << 20);
	return part == none || !grown;
}
"""


@test("what-if/touched")
def touched(t):
    """What a program has not touched of its large blocks, which it has at its end, is not touched in the replay either."""
    _, path = record(t, build(t, TOUCHED))
    answer = what_if(t, path, "glibc")
    t.equal("live", answer["live_end_bytes"], 164 * MIB)
    t.equal("touched if", answer["touched_if_bytes"], 128 << 10)
    end = answer["allocators"][0]["end_bytes"]
    t.check(18 * MIB <= end < 19 * MIB, str(end))
    head = "ptmem-events 1\nh 1 0 x\nM 131072\n"
    first, large, small = "a 1 1 1 0 100000 %d 0\n" % (64 * MIB), "T 100000 %d\n" % (2 * MIB), "T 100000 %d\n" % MIB
    moved = "b 2 1 4 0 100000\nr 3 1 4 0 100000 900000 %d\n" % (32 * MIB)
    for name, lines, least in (
            ("part", first + large, 2), ("lower", first + large + small, 2), ("unknown", first, 64), ("none", first + "T 100000 0\n", 0),
            ("beyond", first + "T 100000 %d\n" % (1 << 60), 64), ("other", first + "T 100010 5\nT 0 5\n", 64),
            ("small", "a 1 1 1 0 100000 100000 0\nT 100000 1\n", 0), ("resized", first + large + moved + "T 900000 %d\n" % (3 * MIB), 3),
            ("after", first + moved + "T 900000 0\n", 32), ("late", first + "f 4 1 5 0 100000\n" + large, 0),
            ("again", first + large + "f 4 1 5 0 100000\n" + first, 64), ("ended", "x 1\n" + first + "x 1\n" + large, 2),
            ("other thread", first.replace("1 1 1", "1 7 1") + "x 7\n" + large, 2)):
        done = run_report(t, "--what-if=glibc", "--format=json", "-", stdin=(head + lines + "e 9\n").encode())
        t.equal("%s: %r" % (name, done.err), done.status, 0)
        end = json.loads(done.out)["allocators"][0]["end_bytes"]
        t.check(least * MIB <= end < (least + 1) * MIB, "%s: %d" % (name, end))


def limited_cgroup(size):
    """A new control group of that many bytes."""
    name = "ptmem-what-if-%d" % os.getpid()
    for root, limit in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
        path = os.path.join(root, name)
        try:
            os.mkdir(path)
        except OSError:
            continue
        try:
            with open(os.path.join(path, limit), "w", encoding="ascii") as file:
                file.write(str(size))
            return path
        except OSError:
            os.rmdir(path)
    raise Skip("no control group with a limit can be made here")


@test("what-if/limit")
def limit(t):
    """A heap of few bytes on very many pages does not fit into a control group: the replay ends itself, the next allocator is asked."""
    group = limited_cgroup(96 * MIB)
    blocks = "".join("a %d 1 5 0 %x 1 4096 0\n" % (i, i * 8192) for i in range(1, 40001))
    events = t.file("events", "ptmem-events 1\nh 1 0 x\n" + blocks + "e 50000\n")
    try:
        done = t.run(["sh", "-c", 'echo $$ >"$0"/cgroup.procs && exec "$@"', group, os.path.join(BUILD, "ptmem-report"),
                      "--what-if=glibc,glibc:arena_max=1", events])
    finally:
        t.wait_until("the group is empty", lambda: not open(os.path.join(group, "cgroup.procs"), encoding="ascii").read())
        os.rmdir(group)
    t.check(done.status == 255 and not done.out, repr(done))
    said = done.err.decode().splitlines()
    t.equal("messages", [line.split(": ")[1] for line in said], ["--what-if=glibc", "--what-if=glibc:arena_max=1"])
    t.check(all("the heap needs more than " in line and "leave this allocator out" in line for line in said), repr(said))


@test("what-if/timers")
def timers(t):
    """An allocator with timers is asked with several clocks, and the answer says if they matter; one without is asked once."""
    if not os.path.exists(ALLOCATORS["jemalloc"]):
        raise Skip("no jemalloc")
    lines, at = ["ptmem-events 1\nh 1 0 x\n"], 0
    for i in range(400):  # 64 blocks of 1 MiB, 56 of them freed, then a small one every 50 ms
        at += 1000000 if i < 120 else 50000000
        if i < 64:
            lines.append("a %d 1 1 0 %x %d 0\n" % (at, (i + 1) << 21, MIB))
        elif i < 120:
            lines.append("f %d 1 5 0 %x\n" % (at, (i - 63) << 21))
        else:
            lines.append("".join("a %d 1 1 0 %x 500 0\n" % (at, (i * 100 + k) << 21) for k in range(50)))
    t.file("events", "".join(lines) + "e %d\n" % (at + 1))
    path = os.path.join(t.directory, "events")
    glibc, jemalloc = what_if(t, path, "glibc", "jemalloc")["allocators"]
    t.equal("glibc", glibc["end_least_bytes"], glibc["end_most_bytes"])
    for which in ("peak", "end"):
        least, value, most = (jemalloc[which + key] for key in ("_least_bytes", "_bytes", "_most_bytes"))
        t.check(least <= value <= most, "%s: %d to %d, %d" % (which, least, most, value))
    t.check(jemalloc["end_least_bytes"] + MIB < jemalloc["end_most_bytes"], "time is another: %s" % jemalloc)
    again = what_if(t, path, "jemalloc")["allocators"][0]
    ends = ("end_bytes", "end_least_bytes", "end_most_bytes")
    t.equal("the same file has the same answer", [again[key] for key in ends], [jemalloc[key] for key in ends])
    text = report(t, "--what-if=jemalloc", path)
    t.check(re.search(r"clock that is a quarter .*\n- (peak .* to .*, )?end \S+ MiB to \S+ MiB with jemalloc\n", text), text)


MANY = r"""/* 32 threads at once, and a child that goes on with the blocks of its parent. */
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
enum { THREADS = 32 };
static pthread_barrier_t all;
static void *kept[THREADS];
static void *work(void *arg)
{
	pthread_barrier_wait(&all);
	for (size_t i = 0; i < 100; i++)
		free(malloc(i * 50));
	kept[(size_t)arg] = malloc(10000);
	pthread_barrier_wait(&all);
	return NULL;
}
int main(void)
{
	pthread_t id[THREADS];
	pthread_barrier_init(&all, NULL, THREADS);
	for (size_t i = 0; i < THREADS; i++)
		pthread_create(&id[i], NULL, work, (void *)i);
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(id[i], NULL);
	pid_t child = fork();
	for (size_t i = 0; child == 0 && i < THREADS; i++)
		free(kept[i]);
	if (child)
		waitpid(child, NULL, 0);
	return 0;
}
"""

# An allocator that has the C library's functions, and stops where it would repeat the calls.
STUCK = r"""
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
void *__libc_malloc(size_t);
void *malloc(size_t size) { return __libc_malloc(size); }
__attribute__((constructor)) static void stop(int argc)
{
	char text[20];
	if (argc > 1)
		return;
	int fd = open("%s", O_WRONLY);
	write(fd, text, snprintf(text, sizeof(text), "%%d\n", getpid()));
	pause();
}
"""


def has_ended(pid):
    try:
        return state(pid) in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


@test("what-if/odd")
def odd(t):
    """32 threads and a child; ended in the middle, it leaves no process and no file; what it prints is not read."""
    profile, path = record(t, build(t, MANY))
    answer = what_if(t, path, "glibc")
    t.equal("threads", answer["threads"], 33)
    check_curves(t, answer)
    t.equal("live bytes", answer["live_end_bytes"], max(block["live"] for block in profile.stats))
    temporary, fifo, library = t.subdirectory(), os.path.join(t.directory, "fifo"), os.path.join(t.directory, "stuck.so")
    os.mkfifo(fifo)
    source = t.file("stuck.c", STUCK % fifo)
    t.equal("gcc", t.run(["gcc", "-w", "-O1", "-shared", "-fPIC", "-o", library, source]).status, 0)
    before = sorted(os.listdir(t.directory))
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        reporter = subprocess.Popen([os.path.join(BUILD, "ptmem-report"), "--what-if=" + library, path], cwd=t.directory,
                                    env=dict(t.environment(t.directory), TMPDIR=temporary), stdout=subprocess.DEVNULL)
        with open(fifo, encoding="ascii") as file:
            replay = int(file.readline())
        reporter.send_signal(number)
        t.equal("status of %s" % number.name, reporter.wait(), -number)
        t.wait_until("the replay has ended", lambda: has_ended(replay))
        t.equal("files after %s" % number.name, (os.listdir(temporary), sorted(os.listdir(t.directory))), ([], before))
    read, write = os.pipe()
    os.close(read)
    reporter = subprocess.run([os.path.join(BUILD, "ptmem-report"), "--what-if=glibc", path], cwd=t.directory, stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    t.check(reporter.returncode != 0, "a pipe without a reader: %r" % reporter)
