"""--what-if: what a program allocated, repeated with other allocators in a process of its own."""

import gzip
import json
import os

from harness import ALLOCATORS, report, run_report, test

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
            ("glibc:arenas=1", path, "no tunable 'arenas'"), ("/absent/lib.so", path, "/absent/lib.so cannot be loaded"),
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
