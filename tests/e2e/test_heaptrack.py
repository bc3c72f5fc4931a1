"""Heaptrack's figures for the same program next to ours: equal, or the difference is computed from what heaptrack does."""

import os
import re
import subprocess

from harness import report_json, test
from recording_lib import Blocks

THREADS = r"""/* Threads that take turns, so that all events have one order; blocks go from one to the next. */
#include <pthread.h>
#include <stdlib.h>
#define THREADS 4
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int turn, rounds;
static void *volatile slot[64];
static void step(int own)
{
	for (int i = 0; i < 5; i++) {
		void *volatile *p = &slot[(rounds * 7 + i * own) % 64];
		free(*p);
		*p = malloc((size_t)(rounds % 50 * 10 + own));
		void *volatile temporary = malloc(24);
		free(temporary);
	}
}
static void *run(void *arg)
{
	int own = (int)(long)arg;
	for (int i = 0; i < 200; i++) {
		pthread_mutex_lock(&mutex);
		while (turn != own)
			pthread_cond_wait(&changed, &mutex);
		step(own);
		rounds++;
		turn = (own + 1) % THREADS;
		pthread_cond_broadcast(&changed);
		pthread_mutex_unlock(&mutex);
	}
	return NULL;
}
int main(void)
{
	pthread_t thread[THREADS];
	pthread_mutex_lock(&mutex); /* none begins before all are there */
	for (long i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, run, (void *)i);
	pthread_mutex_unlock(&mutex);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	return 0;
}
"""

CONTAINERS = r"""#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>
struct alignas(64) wide { char c[192]; };
int main()
{
	std::map<int, std::string> m;
	std::vector<std::unique_ptr<int[]>> v;
	std::list<wide> *l = new std::list<wide>;
	for (int i = 0; i < 1000; i++) {
		m[i % 300] += std::string(static_cast<size_t>(i % 90), 'x');
		v.push_back(std::make_unique<int[]>(static_cast<size_t>(i % 40 + 1)));
		if (i % 3 == 0)
			l->emplace_back();
		if (i % 7 == 0)
			v.erase(v.begin() + i % 5);
		delete new (std::nothrow) std::string("temporary text that is too long for the object");
	}
	return static_cast<int>(m.size() != 300); /* the list leaks */
}
"""

FUNCTIONS = r"""#define _GNU_SOURCE
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <wchar.h>
static void *volatile keep[200];
int main(void)
{
	for (int i = 0; i < 1000; i++) {
		void *volatile *p = &keep[i % 200];
		switch (i % 11) {
		case 0: free(*p); *p = calloc((size_t)i, 3); break;
		case 1: free(*p); if (posix_memalign((void **)p, 128, (size_t)i + 100)) return 1; break;
		case 2: free(*p); *p = aligned_alloc(64, 640); break;
		case 3: free(*p); *p = strdup("a text"); break;
		case 4: *p = realloc(*p, (size_t)i * 5 + 1); break;
		case 5: *p = realloc(*p, (size_t)i % 60 + 1); break;
		case 6: free(*p); *p = memalign(256, 300); break;
		case 7: free(*p); *p = valloc(1000); break;
		case 8: free(*p); { char *s; if (asprintf(&s, "%d text", i) < 0) return 1; *p = s; } break;
		case 9: *p = reallocarray(*p, (size_t)(i % 9) + 1, 30); break;
		default: free(*p); *p = strndup("another text", 4); break;
		}
	}
	return 0;
}
"""

FORKS = r"""#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static void *volatile keep[100];
static void work(int n, size_t size)
{
	for (int i = 0; i < n; i++) {
		free(keep[i % 100]);
		keep[i % 100] = malloc(size + (size_t)i);
	}
}
int main(void)
{
	work(500, 10);
	for (int i = 0; i < 3; i++) {
		pid_t pid = fork();
		if (pid == 0) {
			work(300, 1000);
			exit(0);
		}
		waitpid(pid, NULL, 0);
		work(100, 50);
	}
	return 0;
}
"""

POOL = (72704, "of exceptions")  # libstdc++, which heaptrack's library needs, allocates it when it is loaded
LIMIT = 180                      # seconds; heaptrack reads debug information for many
UNSEEN_ALIGNMENT = "256"         # in FUNCTIONS that of memalign alone, which heaptrack does not watch


class Model:
    """What heaptrack makes of our events. To it, a realloc is an allocation and a release. It counts a release as temporary
    if it is of the size and call path of the last event, an allocation; where that was no allocation, it takes the first one
    of the program for it. Its library's pool is the first block of all, and is released in the end."""

    def __init__(self, path, has_pool):
        self.live, self.bytes, self.peak, self.calls, self.temporary = {}, 0, 0, 0, 0
        self.own_calls, self.first, self.last = 0, None, None
        if not has_pool:
            self.make("pool", *POOL)
        with open(path, encoding="utf-8") as file:
            for word in (line.split() for line in file):
                if word[0] == "a" and int(word[5], 16):
                    self.own_calls += 1
                    if word[7] != UNSEEN_ALIGNMENT:
                        self.make(word[5], int(word[6]), word[4])
                elif word[0] == "r" and int(word[6], 16):
                    self.own_calls += 1
                    self.end(word[5])
                    self.make(word[6], int(word[7]), word[4])
                elif word[0] in "fj":
                    self.end(word[5])
        self.end(next(addr for addr, block in self.live.items() if block == self.first))

    def make(self, addr, size, path):
        self.first = self.first or (size, path)
        self.live[addr] = self.last = (size, path)
        self.calls += 1
        self.bytes += size
        self.peak = max(self.peak, self.bytes)

    def end(self, addr):
        if addr not in self.live:
            return
        block = self.live.pop(addr)
        self.bytes -= block[0]
        self.temporary += block == (self.last or self.first)
        self.last = None


class Heaptrack:
    """Its file of a program, and what heaptrack_print makes of that."""

    def __init__(self, t, argv):
        heaptrack, show = t.program("heaptrack"), t.program("heaptrack_print")
        directory = t.subdirectory()
        t.run([heaptrack, "-o", os.path.join(directory, "h"), *argv], cwd=directory)
        self.path = next(os.path.join(directory, name) for name in ("h.zst", "h.gz") if os.path.exists(os.path.join(directory, name)))
        text = t.run([show, self.path], cwd=directory).out.decode()

        def figure(name):
            return re.search("^" + name + r": (\S+)", text, re.M)[1]

        self.calls = int(figure("calls to allocation functions"))
        self.temporary = int(figure("temporary memory allocations"))
        self.printed = figure("peak heap memory consumption"), figure("total memory leaked")
        self.sum(t)

    def sum(self, t):
        """Exact bytes: "a SIZE PATH" defines a kind of block, "+ KIND" and "- KIND" are events."""
        unpack = [t.program("zstd"), "-dcq"] if self.path.endswith("zst") else [t.program("gzip"), "-dc"]
        sizes, self.bytes, self.peak = [], 0, 0
        for line in subprocess.run([*unpack, self.path], stdout=subprocess.PIPE, check=True).stdout.split(b"\n"):
            word = line.split()
            if word[:1] == [b"a"]:
                sizes.append(int(word[1], 16))
            elif word[:1] in ([b"+"], [b"-"]):
                self.bytes += sizes[int(word[1], 16)] * (1 if word[0] == b"+" else -1)
                self.peak = max(self.peak, self.bytes)


def libraries(text):
    return set(re.findall(r"(/\S+\.so\S*)", text))


def extra_modules(t, program):
    """How many libraries with thread-local variables heaptrack brings into @program."""
    maps = t.run([t.program("heaptrack"), "-o", "h", t.program("cat"), "/proc/self/maps"]).out.decode()
    own = t.run(["ldd", program]).out.decode()
    return sum(1 for name in {os.path.realpath(n) for n in libraries(maps)} - {os.path.realpath(n) for n in libraries(own)}
               if re.search(r"^ +TLS ", t.run([t.program("readelf"), "-lW", name]).out.decode(), re.M))


def short(size):
    """As heaptrack_print writes bytes."""
    for unit in ("B", "K", "M"):
        if size < 1000 or unit == "M":
            return "%d%s" % (size, unit) if unit == "B" else "%.2f%s" % (size, unit)
        size /= 1000
    return None


def compare(t, argv, has_pool=False, threads=0):
    """The recording of @argv, which heaptrack runs, too. @threads: all exist at the peak and in the end."""
    result = t.profile(argv, ["--record=r", "--events=e"])
    events, recording = (os.path.join(result.directory, name) for name in ("e", "r"))
    data, model, theirs = report_json(t, recording), Model(events, has_pool), Heaptrack(t, argv)
    # glibc's table of a thread has 16 bytes for each module with thread-local variables
    tables = 16 * extra_modules(t, argv[0]) * threads if threads else 0
    t.equal("calls", (theirs.calls, data["end"]["allocations"] + data["end"]["reallocs"]), (model.calls, model.own_calls))
    t.equal("temporary", theirs.temporary, model.temporary)
    t.equal("temporary by our rule", data["end"]["temporary"], Blocks(events).temporary)
    t.equal("peak and leaked", (theirs.peak, theirs.bytes), (model.peak + tables, model.bytes + tables))
    t.equal("the same as printed", theirs.printed, (short(theirs.peak), short(theirs.bytes)))
    return data, model, theirs, recording


@test("recording/heaptrack", limit=LIMIT)
def _(t):
    """A real program; and the sizes of the files."""
    argv = [t.program("jq"), "-n", "[range(3000) | {a: ., b: \"x\\(.)\"}] | group_by(.a % 7) | map(length) | add"]
    data, model, theirs, recording = compare(t, argv)
    t.equal("ours", (data["peak"]["bytes"] + POOL[0], data["end"]["live_bytes"]), (model.peak, model.bytes))
    t.check(os.path.getsize(recording) <= 2 * os.path.getsize(theirs.path), "a recording is at most twice as large")


def compiled(t, name, text, *options):
    path, compiler = os.path.join(t.directory, name.split(".")[0]), t.program("g++" if name.endswith("cpp") else "gcc")
    run = t.run([compiler, "-w", "-g", "-O1", *options, "-o", path, t.file(name, text), "-pthread"])
    t.equal("compiler: " + run.err.decode(), run.status, 0)
    return path


@test("recording/heaptrack/threads", limit=LIMIT)
def _(t):
    """Threads in turns, which release each other's blocks."""
    data, model, *_ = compare(t, [compiled(t, "threads.c", THREADS)], threads=4)
    t.equal("ours", (data["peak"]["bytes"] + POOL[0], data["end"]["live_bytes"], data["end"]["reallocs"]), (model.peak, model.bytes, 0))
    t.equal("threads", sorted(sum(row[1] for rows in data["leaves"]["threads"] for row in rows if row[0] == i)
                              for i in range(len(data["threads"]))), [4] + [2000] * 4)


@test("recording/heaptrack/containers", limit=LIMIT)
def _(t):
    """new, delete, containers, over-aligned objects: the pool is the program's, and is not among what heaptrack calls leaked."""
    data, model, *_ = compare(t, [compiled(t, "containers.cpp", CONTAINERS, "-std=c++17")], has_pool=True)
    t.equal("ours", (data["peak"]["bytes"], data["end"]["live_bytes"]), (model.peak, model.bytes + POOL[0]))


@test("recording/heaptrack/functions", limit=LIMIT)
def _(t):
    """calloc, realloc, aligned blocks, strdup, asprintf: all but memalign, which heaptrack does not see."""
    data, model, *_ = compare(t, [compiled(t, "functions.c", FUNCTIONS)])
    owner = {i % 200: i for i in range(1000)}
    unseen = sum(300 for i in owner.values() if i % 11 == 6)
    t.equal("ours", (data["peak"]["bytes"] + POOL[0] - unseen, data["end"]["live_bytes"] - unseen), (model.peak, model.bytes))
    t.equal("calls of memalign", model.own_calls + 1 - model.calls, sum(1 for i in range(1000) if i % 11 == 6))


@test("recording/heaptrack/forks", limit=LIMIT)
def _(t):
    """Of a program that forks, heaptrack has the first process; we have all of them."""
    data, model, *_, recording = compare(t, [compiled(t, "forks.c", FORKS)])
    t.equal("ours", (data["peak"]["bytes"] + POOL[0], data["end"]["live_bytes"]), (model.peak, model.bytes))
    directory = os.path.dirname(recording)
    children = [report_json(t, os.path.join(directory, name)) for name in os.listdir(directory) if re.fullmatch(r"r\.\d+", name)]
    t.equal("children, since the fork", sorted(child["end"]["allocations"] for child in children), [300, 300, 300])
