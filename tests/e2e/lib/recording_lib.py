"""Recordings: what they must say by the events of a run, and how tests read them."""

import base64
import collections
import contextlib
import gzip
import json
import math
import os
import random
import re
import subprocess

import events
import recording_file
from harness import BUILD, report_json


def read_text(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def without_desc(path):
    return re.sub(r"\Adesc: .*\n", "", read_text(path))


def probability(size, interval):
    return -math.expm1(-size / interval)


class Blocks:
    """From the text of --events: [(born, died or None, size)], times in ms; temporary: how many were released by their
    thread before it allocated again; released: sizes of those that did not end by a realloc; held: threads that are in a
    realloc; lived: ns that released ones lived, in sum."""

    def __init__(self, path):
        self.done, self.live, self.held, self.last, self.temporary = [], {}, {}, {}, 0
        self.released, self.lived = [], 0
        self.resized, self.moved = [], []  # sizes of blocks that realloc made of others
        self.first = self.now = None
        self.count = 0
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            for line in file:
                word = line.split()
                if word[0] == "h":
                    self.first = self.now = int(word[2])
                elif word[0] in "afjbrzRwmusctpkdoe" and self.first is not None:
                    self.now = max(self.now, int(word[1]))
                    if word[0] in "afjbrzR":
                        getattr(self, "on_" + word[0])(word[2], word[5:])
        self.live.update({addr: block for addr, block in self.held.values() if block})
        self.done += [(born, None, size) for born, size, *_ in self.live.values()]

    def ms(self):
        return (self.now - self.first) // 1000000

    def make(self, thread, addr, size):
        self.count += 1
        self.live[addr] = (self.ms(), size, self.count, self.now)
        self.last[thread] = self.count

    def end(self, thread, block, is_resized=False):
        self.done.append((block[0], self.ms(), block[1]))
        if not is_resized:
            self.released.append(block[1])
            self.lived += self.now - block[3]
        if block[2] == self.last.get(thread):
            self.temporary += 1

    def on_a(self, thread, rest):
        if int(rest[0], 16):
            self.make(thread, rest[0], int(rest[1]))

    def resize(self, thread, old, addr, size):
        self.make(thread, addr, size)
        self.resized.append(size)
        if old != addr:
            self.moved.append(size)

    def on_R(self, thread, rest):
        """A sample that realloc made of a block that was none."""
        self.resize(thread, rest[0], rest[1], int(rest[2]))

    def on_z(self, _thread, rest):
        """A block from before the profile."""
        self.live[rest[0]] = (0, int(rest[1]), 0, self.now)

    def on_f(self, thread, rest):
        if rest[0] in self.live:
            self.end(thread, self.live.pop(rest[0]))

    on_j = on_f

    def on_b(self, thread, rest):
        self.held[thread] = (rest[0], self.live.pop(rest[0], None))

    def on_r(self, thread, rest):
        old, addr, size = rest[0], rest[1], int(rest[2])
        if not int(old, 16):
            return self.on_a(thread, [addr, rest[2]])
        block = self.held.pop(thread)[1]
        if block and not int(addr, 16) and size:
            self.live[old] = block
        elif block:
            self.end(thread, block, int(addr, 16) != 0)
            if int(addr, 16):
                self.resize(thread, old, addr, size)
        return None


def judge(t, path, blocks):
    """Timeline, 20 moments and 20 ranges of the recording against the events."""
    _, tables = recording_file.read(path)
    shift, count = tables["time"][0][-1], len(tables["time"][0])
    cells = [c for c in zip(*tables["cell"]) if c[1]]

    def from_cells(first, last):
        return sum(size if died == recording_file.NEVER else -size for _, _, born, died, _, size in cells
                   if first <= born <= last and (died == recording_file.NEVER or died <= last))

    def from_events(first, last):
        return sum(size for born, died, size in blocks.done
                   if first <= born >> shift <= last and (died is None or died >> shift > last))

    chance = random.Random(1)
    for i in {0, count - 1} | {chance.randrange(count) for _ in range(20)}:
        t.equal("live bytes of the timeline at %d" % i, tables["time"][2][i], from_events(0, i))
        t.equal("live bytes of the cells at %d" % i, from_cells(0, i), from_events(0, i))
    for _ in range(20):
        first, last = sorted((chance.randrange(count), chance.randrange(count)))
        t.equal("allocated from %d to %d and live" % (first, last), from_cells(first, last), from_events(first, last))
    t.equal("temporary", sum(tables["leaf"][3]), blocks.temporary)
    t.equal("sizes", sum(tables["size"][2]), blocks.count)
    t.equal("lifetimes", sum(tables["span"][2]), len(blocks.released))
    lived = sum(tables["lvus"][1])  # both ends of each in whole microseconds
    t.check(abs(lived - blocks.lived / 1000) < max(len(blocks.released), 1), "lived %d us, not %d ns" % (lived, blocks.lived))


def embedded(path):
    with open(path, encoding="utf-8") as file:
        page = re.search(r'<script type="text/plain" id="profile">(.*?)</script>', file.read(), re.S)[1]
    return json.loads(gzip.decompress(base64.b64decode(page)))


def record(t, *argv, options=()):
    return os.path.join(t.profile([t.target("gcc-O2-pie", argv[0]), *argv[1:]], ["--record=r", *options]).directory, "r")


def sum_by_path(pairs):
    """{path of addresses: [bytes, blocks]}: call paths that differ in their nodes alone are one."""
    found = {}
    for path, size, blocks in pairs:
        row = found.setdefault(tuple(path), [0, 0])
        row[0] += size
        row[1] += blocks
    return found


def recorded_releases(path):
    """From the tables of the file. The frames of one address, inlined ones, are one in the events."""
    _, tables = recording_file.read(path)
    parents, frames = tables["node"][:2]
    addresses, inlined = tables["frms"][6], tables["frms"][5]

    def stack(node):
        while node:
            frame = frames[node - 1]
            if not inlined[frame]:
                yield addresses[frame]
            node = parents[node - 1]

    return sum_by_path((list(stack(node)), size, blocks) for node, blocks, size in zip(*tables["rels"]))


def check_conservation(t, path, events_path, data):
    """What was allocated, or live before, is live or was released: by stack, from the events alone."""
    e = events.Events(events_path)

    def stack(node):
        while node:
            yield e.nodes[node][1]
            node = e.nodes[node][0]

    found = recorded_releases(path)
    t.equal("by stack", found, sum_by_path((list(stack(node)), *sums) for node, sums in e.released.items()))
    sums = [sum(row[i] for row in found.values()) for i in (0, 1)]
    end = data["end"]
    t.equal("allocated less released", [end["allocated_bytes"] + e.earlier[0] - sums[0], end["allocations"] + e.earlier[1] - sums[1]],
            [end["live_bytes"], end["live_blocks"]])
    return e


REPORT = os.path.join(BUILD, "ptmem-report")


def split_recordings(t, data):
    """Each of those that follow each other in @data."""
    pieces = []
    while True:
        result = t.run([REPORT, "--format=json", "-"], stdin=data)
        if result.status == 0:
            return [*pieces, data]
        said = re.fullmatch(r"ptmem-report: -: several recordings, one after the other; the first one is its first (\d+) bytes\n",
                            result.err.decode())
        t.check(said and result.status == 255, "status %d: %s" % (result.status, result.err.decode()))
        pieces.append(data[:int(said[1])])
        data = data[int(said[1]):]


# Two libraries that allocate, one of them also through the other, for several threads of a program.
OBJECTS = {"left.c": """#include <stdlib.h>
void *left_make(unsigned n) { void *volatile p = malloc(n % 500 + 1); return p; }
void left_drop(void *p) { free(p); }
""", "right.c": """#include <stdlib.h>
void *left_make(unsigned n);
void *right_make(unsigned n) { void *volatile p = n % 3 ? left_make(n * 7) : malloc(n % 90 + 20); return p; }
void *right_grow(void *p, unsigned n) { void *volatile q = realloc(p, n % 700 + 1); return q; }
""", "main.c": """#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
void *left_make(unsigned n), *right_make(unsigned n), *right_grow(void *p, unsigned n);
void left_drop(void *p);
#define THREADS 4
#define ROUNDS 3000
static void *run(void *arg)
{
	unsigned own = *(unsigned *)arg, i;
	void *held[97] = {0};
	pthread_setname_np(pthread_self(), (char[]){'w', (char)('0' + own), 0});
	for (i = 0; i < ROUNDS; i++) {
		void **p = &held[(i * 13 + own) % 97];
		if (i % 5 == 4 && *p) {
			*p = right_grow(*p, i + own);
			continue;
		}
		left_drop(*p);
		*p = i % 2 ? left_make(i) : i % 7 ? right_make(i) : malloc(i % 300);
	}
	return NULL;
}
int main(void)
{
	pthread_t thread[THREADS];
	unsigned own[THREADS];
	for (unsigned i = 0; i < THREADS; i++) {
		own[i] = i;
		if (pthread_create(&thread[i], NULL, run, &own[i]) != 0)
			return 1;
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	return 0;
}
"""}


def make_objects(directory):
    """The program in @directory, and its libraries beside it."""
    for name, text in OBJECTS.items():
        with open(os.path.join(directory, name), "w", encoding="ascii") as file:
            file.write(text)
    compiler = ["gcc", "-g", "-O1", "-fno-optimize-sibling-calls"]
    for name, more in (("left", []), ("right", ["-L.", "-lleft"])):
        subprocess.run([*compiler, "-fPIC", "-shared", "-o", "lib%s.so" % name, name + ".c", *more], cwd=directory, check=True)
    subprocess.run([*compiler, "-o", "objects", "main.c", "-L.", "-lright", "-lleft", "-pthread", "-Wl,-rpath,$ORIGIN"], cwd=directory,
                   check=True)
    return os.path.join(directory, "objects")


LIMIT = 65536
OPTIONS = ("--record-limit=64K", "--massif-out-file=/dev/null")


class Branches:
    """targets/branches under ptmem."""

    def __init__(self, t, *options, levels=14, program=None, **env):
        self.t, self.cwd = t, t.subdirectory()
        self.path = os.path.join(self.cwd, "r.rec")
        self.ptmem = subprocess.Popen([t.ptmem(), *OPTIONS, "--log-file=log", "--record=r.rec", *options, "--",
                                       program or t.target("gcc-O2-pie", "branches"), str(levels)],
                                      cwd=self.cwd, env=t.environment(self.cwd, **env), stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE)
        self.expect("ready")

    def expect(self, line):
        self.t.equal("the program's line", self.ptmem.stdout.readline().decode(), line + "\n")

    def round(self, letter=b"x"):
        self.ptmem.stdin.write(letter)
        self.ptmem.stdin.flush()
        self.expect("done")

    def sizes(self):
        found = []
        for name in os.listdir(self.cwd):
            with contextlib.suppress(FileNotFoundError):  # --record-keep has removed it
                found += [os.path.getsize(os.path.join(self.cwd, name))] if name.endswith(".rec") else []
        return found

    def fetch(self):
        """What --listen serves."""
        def address():
            with open(os.path.join(self.cwd, "log"), encoding="utf-8") as file:
                return file.read().partition("listening at ")[2].split("\n")[0]

        self.t.wait_until("listening", address)
        path = os.path.join(self.cwd, "fetched")
        self.t.equal("status of curl", self.t.run([self.t.program("curl"), "-sSf", "-o", path, address() + "recording"]).status, 0)
        return report_json(self.t, path)

    def inode(self):
        return os.stat(self.path).st_ino

    def thinned(self, path=None):
        """Waits until it has been written anew with less detail; returns what it has then."""
        found = []

        def is_thin():
            self.t.check(max(self.sizes()) <= LIMIT, "a file of %s bytes" % self.sizes())
            found[:] = [report_json(self.t, path or self.path)]
            return found[0]["meta"]["lost"]

        self.t.wait_until("the file to be thinned", is_thin)
        return found[0]

    def end(self):
        self.ptmem.stdin.close()
        self.t.equal("status", self.ptmem.wait(), 0)
        self.t.check(max(self.sizes()) <= LIMIT, "files of %s bytes" % self.sizes())


def live_at(data, interval):
    c = data["cells"]
    return sum(n for born, died, n in zip(c["born"], c["died"], c["bytes"]) if born <= interval and (died > interval or died == -1))


def judge_moments(t, data):
    """The cells of each interval are its totals."""
    live = data["timeline"]["live_bytes"]
    t.equal("live", [live_at(data, i) for i in range(len(live))], live)
    t.equal("peak", sum(data["peak"]["bytes_of"]), data["peak"]["bytes"])


def live(data):
    """Bytes and blocks that are live at the end, from the cells."""
    cells = [(size, blocks) for size, blocks, died in zip(data["cells"]["bytes"], data["cells"]["blocks"], data["cells"]["died"])
             if died == -1]
    return tuple(sum(column) for column in zip(*cells))


EVERY = "--record-every=0.2s"


def parts(directory, stem=r"r"):
    return sorted(n for n in os.listdir(directory) if re.fullmatch(stem + r"\.\d\d\d+\.rec", n))


class Phases:
    """targets/phases under ptmem --record=r.rec --record-every, with its events; a part begins after each phase."""

    def __init__(self, t, *options, attach=False, every=EVERY, quiet=True):
        self.t, self.cwd, self.attached = t, t.subdirectory(), None
        program = t.target("gcc-O2-pie", "phases")
        own = [t.ptmem(), *(["-q"] if quiet else []), "--record=r.rec", every, "--events=e", "--massif-out-file=m", *options]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "cwd": self.cwd, "env": t.environment(self.cwd)}
        if attach:
            self.program = self.attached = subprocess.Popen([program], **pipes)
            self.expect("ready")
            self.phase()
            self.ptmem = subprocess.Popen([*own, "-p", str(self.program.pid)], cwd=self.cwd, env=t.environment(self.cwd))
            t.wait_until("attached", lambda: parts(self.cwd))
        else:
            self.ptmem = self.program = subprocess.Popen([*own, "--", program], **pipes)
            self.expect("ready")

    def expect(self, line):
        self.t.equal("the program's line", self.program.stdout.readline().decode(), line + "\n")

    def phase(self):
        self.program.stdin.write(b"x")
        self.program.stdin.flush()
        self.expect("done")

    def last_part(self):
        return max((int(n.split(".")[1]) for n in parts(self.cwd)), default=0)

    def phase_and_part(self):
        self.phase()
        before = self.last_part()
        self.t.wait_until("another part", lambda: self.last_part() > before)

    def end(self):
        self.program.stdin.close()
        self.t.equal("status", self.ptmem.wait(), 0)
        if self.attached:
            self.t.equal("status of the program", self.attached.wait(), 0)

    def read_parts(self):
        return [report_json(self.t, os.path.join(self.cwd, n)) for n in parts(self.cwd)]

    def read_whole(self):
        """One recording of the same events."""
        result = self.t.run([self.t.ptmem(), "-q", "--replay=e", "--record=whole", "--massif-out-file=/dev/null"], cwd=self.cwd)
        self.t.equal("status of the replay", result.status, 0)
        return report_json(self.t, os.path.join(self.cwd, "whole"))


def paths(data):
    """By leaf: the addresses of its path."""
    found = []
    for node in data["leaves"]["node"]:
        path = []
        while node >= 0:
            path.append(data["frames"]["address"][data["nodes"]["frame"][node]])
            node = data["nodes"]["parent"][node]
        found.append(tuple(path))
    return found


def by_path(data, column):
    return {p: n for p, n in zip(paths(data), data["leaves"][column] or []) if n}


def histogram(data, column):
    """{(path, bucket): blocks}"""
    return {(p, h[0] + i): n for p, h in zip(paths(data), data["leaves"][column]) for i, n in enumerate(h[1:]) if n}


def cells(data, is_wanted):
    """{path: [bytes, blocks]} of the cells of which is_wanted(born, died) is true; of samples, whose blocks are rounded
    fractions, {path: [bytes]}."""
    found, of_leaf, c = {}, paths(data), data["cells"]
    for leaf, born, died, *values in zip(c["leaf"], c["born"], c["died"], c["bytes"], c["blocks"]):
        if is_wanted(born, died):
            values = values[:1] if data["meta"]["heap_sample"] else values
            found[of_leaf[leaf]] = [a + b for a, b in zip(found.get(of_leaf[leaf], [0, 0]), values)]
    return found


def sums(of_paths):
    return [sum(column) for column in zip(*of_paths.values())]


def live_at_end(data):
    return cells(data, lambda born, died: died == -1)


def live_before(data):
    return cells(data, lambda born, died: born == -1)


def total(dictionaries):
    out = collections.Counter()
    for d in dictionaries:
        for key, value in d.items():
            out[key] += value
    return {k: v for k, v in out.items() if v}


def judge_part(t, data):
    """A part is consistent by itself."""
    name = "part %d: " % data["meta"]["part"]
    end = sums(live_at_end(data))
    t.equal(name + "live", end, [data["end"]["live_bytes"], data["end"]["live_blocks"]][:len(end)])
    t.equal(name + "end of the timeline", data["timeline"]["live_bytes"][-1], data["end"]["live_bytes"])
    t.equal(name + "peak", sum(data["peak"]["bytes_of"]), data["peak"]["bytes"])
    t.equal(name + "peak of the timeline", max(data["timeline"]["peak_bytes"]), data["peak"]["bytes"])
    e = data["end"]
    requests, releases_ = sum(data["timeline"]["allocations"]), sum(data["timeline"]["releases"])
    if not data["meta"]["heap_sample"]:
        t.equal(name + "requests", requests, e["allocations"] + e["reallocs"])
        t.equal(name + "releases", releases_, e["frees"] + e["reallocs"])
        t.equal(name + "bytes", sum(data["timeline"]["allocated_bytes"]), e["allocated_bytes"])
    t.check(all(m < len(data["timeline"]["time"]) * data["timeline"]["interval"] for m in data["leaves"]["max_time"]), name + "times")


def judge_parts(t, all_parts, whole):
    t.equal("numbers", [p["meta"]["part"] for p in all_parts], list(range(1, len(all_parts) + 1)))
    t.equal("ends", {p["meta"]["exit"] for p in all_parts[:-1]}, {"still running"})
    t.check(not any(p["meta"]["incomplete"] for p in all_parts), "complete")
    t.equal("nothing is from before the first part", live_before(all_parts[0]), {})
    for part in all_parts:
        judge_part(t, part)
    for first, second in zip(all_parts, all_parts[1:]):
        t.equal("what part %d leaves is there from the beginning of the next" % first["meta"]["part"], live_before(second),
                live_at_end(first))
    is_exact = not whole["meta"]["heap_sample"]
    for key in ("allocations", "allocated_bytes", "reallocs", "frees", "temporary", "failed", "unknown_frees"):
        if is_exact or key == "allocated_bytes":
            t.equal("sum of " + key, sum(p["end"][key] for p in all_parts), whole["end"][key])
    for key in ("allocations", "bytes", "temporary", "reallocs", "moved"):
        if is_exact or key == "bytes":
            t.equal(key + " by path", total(by_path(p, key) for p in all_parts), by_path(whole, key))
    for key in ("sizes", "lifetimes") if is_exact else ():
        t.equal(key, total(histogram(p, key) for p in all_parts), histogram(whole, key))
    t.equal("live at the end", live_at_end(all_parts[-1]), live_at_end(whole))
    t.equal("peak", max(p["peak"]["bytes"] for p in all_parts), whole["peak"]["bytes"])
    t.equal("peaks of paths", [max(ms) for ms in maxima(all_parts)], [max(ms) for ms in maxima([whole])])


def maxima(recordings):
    found = {}
    for data in recordings:
        for path, most in by_path(data, "max_bytes").items():
            found.setdefault(path, []).append(most)
    return [found[p] for p in sorted(found)]


def check_truth(t, p, all_parts):
    truth = t.truth(p.cwd)
    names = {"allocations": "allocations", "reallocs": "reallocations", "frees": "frees", "allocated_bytes": "bytes"}
    for key, name in names.items():
        t.equal(key + " of the program", sum(d["end"][key] for d in all_parts), truth[name])
    t.equal("live bytes and blocks of the program", (all_parts[-1]["end"]["live_bytes"], all_parts[-1]["end"]["live_blocks"]),
            (truth["live"], truth["blocks"]))
