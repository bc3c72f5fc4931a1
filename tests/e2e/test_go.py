"""Go: calls from Go into C, whose stacks continue on goroutines' stacks; and the heap profile that Go programs keep."""

import collections
import json
import os
import re
import signal
import subprocess

from harness import child_that_runs, test
from inspect_lib import gcore
from pprof_file import Pprof

SOURCES = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "targets", "go")
STRIPPED = ("-ldflags=-s -w",)


def build(t, name, *options, cgo=True):
    """The path of targets/go/@name; the compiler's cache is beside the other targets."""
    path = os.path.join(t.subdirectory(), name)
    cache = os.path.join(os.path.dirname(os.path.dirname(t.target("gcc-O2-pie", "level"))), "go-cache")
    built = t.run([t.program("go"), "build", *options, "-o", path, "."], cwd=os.path.join(SOURCES, name),
                  env={"GOCACHE": cache, "GOFLAGS": "-buildvcs=false", "CGO_ENABLED": "01"[cgo]})
    t.equal("status of the compiler: " + built.err.decode()[:300], built.status, 0)
    return path


def own_paths(folded):
    """{functions of main in Go, outermost first: bytes}."""
    paths = collections.Counter()
    for line in folded.splitlines():
        path, _, size = line.rpartition(" ")
        own = [name for name in path.split(";") if re.fullmatch(r"main\.(?!main)\w+", name)]
        if own:
            paths[" ".join(own)] += int(size)
    return dict(paths)


def check_calls(t, program, probes):
    p = t.profile([program], ["--record=r.rec", "--probes=" + probes])
    wanted = dict(line.rpartition(" ")[::2] for line in p.out.decode().splitlines())
    out = t.run([t.ptmem() + "-report", "--folded=-", "r.rec"], cwd=p.directory).out.decode()
    t.equal("bytes by path, " + probes, own_paths(out), {path: int(size) for path, size in wanted.items()})
    stats = p.only_stats()
    t.check(stats["stacks"] - stats["complete stacks"] <= 20, "%(complete stacks)d of %(stacks)d stacks are complete" % stats)
    t.check(stats["stacks"] > 1500, "few stacks")


@test("go/calls")
def _(t):
    """Also of Go that C calls, and where the goroutine's stack is moved."""
    program = build(t, "cgo")
    for probes in ("break", "auto", "jump"):
        check_calls(t, program, probes)


@test("go/calls-stripped")
def _(t):
    program = build(t, "cgo", *STRIPPED)
    for probes in ("auto", "jump"):
        check_calls(t, program, probes)


class Heap:
    """targets/go/heap, which has written its own profile and waits."""

    def __init__(self, t, program, rate, *more, **env):
        self.t, self.cwd = t, t.subdirectory()
        self.process = subprocess.Popen([program, "own.pb.gz", str(rate), *more], cwd=self.cwd, env=t.environment(self.cwd, **env),
                                        stdout=subprocess.DEVNULL)
        t.wait_until("its own profile", lambda: os.path.exists(os.path.join(self.cwd, "own.pb.gz")))

    def profile(self, name):
        with open(os.path.join(self.cwd, name), "rb") as file:
            return Pprof(file.read())

    def inspect(self, *what, out="inspected.pb.gz"):
        result = self.t.run([self.t.ptmem(), "--inspect-out=" + out, *what], cwd=self.cwd)
        self.t.equal("status: " + result.err.decode(), result.status, 0)

    def check(self, name):
        own, other = self.profile("own.pb.gz").by_path(), self.profile(name).by_path()
        self.t.equal("by path", other, own)
        self.t.check(any("main.addNodes" == frame[0] for _, path in own for frame in path), "addNodes is missing")

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.t.equal("status", self.process.wait(), 0)


def check_heap(t, program, rate, *more, **env):
    """What is read from outside is what the program itself writes, to the byte."""
    heap = Heap(t, program, rate, *more, **env)
    heap.inspect("--inspect", "-p", str(heap.process.pid))
    heap.check("inspected.pb.gz")
    heap.end()


@test("go/heap")
def _(t):
    """Also before the first collection, from a core file, and as JSON and text."""
    program = build(t, "heap", cgo=False)
    for rate in (0, 1, 4096):
        check_heap(t, program, rate)
    check_heap(t, program, 512, "none", GOGC="off")
    heap = Heap(t, program, 512)
    heap.inspect("--inspect=" + gcore(t, heap.process.pid), program, out="core.pb.gz")
    heap.check("core.pb.gz")
    heap.inspect("--inspect", "-p", str(heap.process.pid), out="i.json")
    with open(os.path.join(heap.cwd, "i.json"), encoding="utf-8") as file:
        go = json.load(file)["go"]
    sums = heap.profile("own.pb.gz").sums()
    t.equal("sums", (go["live_bytes"], go["live_objects"], go["allocated_bytes"], go["allocated_objects"]),
            tuple(sums[name] for name in ("inuse_space", "inuse_objects", "alloc_space", "alloc_objects")))
    t.equal("rate", go["sample_bytes"], 512)
    text = t.run([t.ptmem(), "--inspect", "-p", str(heap.process.pid)]).out.decode()
    t.check(re.search(r"\n +\d[\d,]+ +\d[\d,]* +\d[\d,]+  main\.addNodes \(main\.go:\d+\)\n +by main\.main\.func1 ", text), text)
    heap.end()


@test("go/heap-stripped")
def _(t):
    check_heap(t, build(t, "heap", *STRIPPED, cgo=False), 512)


@test("go/heap-when")
def _(t):
    """--when, and at the end, of a program that has no malloc."""
    program = build(t, "heap", cgo=False)
    heap = Heap(t, program, 512)
    log = os.path.join(heap.cwd, "log")
    ptmem = subprocess.Popen([t.ptmem(), "--log-file=log", "--when=rss>1M:inspect", "--inspect-out=w.pb.gz", "-p",
                              str(heap.process.pid)], cwd=heap.cwd, env=t.environment(heap.cwd))
    t.wait_until("inspected", lambda: os.path.exists(os.path.join(heap.cwd, "w.1.pb.gz")))
    heap.check("w.1.pb.gz")
    heap.end()
    t.equal("status of ptmem", ptmem.wait(), 0)
    with open(log, encoding="utf-8") as file:
        t.check("its memory is in %s/w.1.pb.gz" % heap.cwd in file.read(), "the file is not announced")
    cwd = t.subdirectory()
    started = subprocess.Popen([t.ptmem(), "-q", "--inspect-at-exit", "--inspect-out=end.pb.gz", "--", program, "own.pb.gz", "512"],
                               cwd=cwd, env=t.environment(cwd), stdout=subprocess.DEVNULL)
    t.wait_until("its own profile", lambda: os.path.exists(os.path.join(cwd, "own.pb.gz")))
    os.kill(child_that_runs(started.pid, os.path.basename(program)), signal.SIGTERM)
    t.equal("status of ptmem", started.wait(), 0)
    with open(os.path.join(cwd, "own.pb.gz"), "rb") as own, open(os.path.join(cwd, "end.pb.gz"), "rb") as end:
        t.check(Pprof(own.read()).by_path().items() <= Pprof(end.read()).by_path().items(), "the end lacks something")


@test("go/refused")
def _(t):
    """Without --inspect there is nothing to watch; the message names it."""
    program = build(t, "heap", cgo=False)
    result = t.run([t.ptmem(), program, "own.pb.gz", "0"])
    t.check(b"it is a Go program: --inspect-at-exit shows the heap profile that it keeps" in result.err, result.err)
    t.check(result.status != 0, "it is not refused")
    heap = Heap(t, program, 0)
    result = t.run([t.ptmem(), "-p", str(heap.process.pid)])
    t.check(b"ptmem --inspect -p %d shows the heap profile" % heap.process.pid in result.err, result.err)
    heap.end()


@test("go/no-profile")
def _(t):
    """A program that does not refer to it has none: the linker sets the rate to 0."""
    program = build(t, "cgo")
    text = t.run([t.ptmem(), "--inspect-at-exit", program]).err.decode()
    t.check("it keeps no heap profile (runtime.MemProfileRate is 0" in text, text)
    for program, why in ((program, "keeps no heap profile"), (t.target("gcc-O2-pie", "level"), "is no Go program")):
        text = t.run([t.ptmem(), "--inspect-at-exit", "--inspect-out=p.pb.gz", program]).err.decode()
        t.check(re.search(r"process \d+ %s: " % why, text), text)
