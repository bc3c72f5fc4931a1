"""--record: exact to one interval, the same by replay, readable whatever happens to ptmem."""

import json
import os
import re
import signal
import subprocess

import massif
import recording_file
from harness import BUILD, child_that_runs, report, report_json, test
from recording_lib import Blocks, judge


def register_exact(name, *argv):
    @test("recording/exact-" + name)
    def _(t):
        result = t.profile([t.target("gcc-O2-pie", argv[0]), *argv[1:]], ["--record=r", "--events=e"])
        r, e, again = (os.path.join(result.directory, n) for n in ("r", "e", "again"))
        judge(t, r, Blocks(e))
        stats, data = result.only_stats(), report_json(t, r)
        t.equal("peak", (data["peak"]["bytes"], sum(data["peak"]["bytes_of"])), (stats["peak"], stats["peak"]))
        t.equal("live", sum(b for b, d in zip(data["cells"]["bytes"], data["cells"]["died"]) if d == -1), stats["live"])
        t.run([t.ptmem(), "-q", "--replay=" + e, "--record=" + again, "--massif-out-file=/dev/null"])
        with open(r, "rb") as first, open(again, "rb") as second:
            t.check(first.read() == second.read(), "the recording of a replay is the same byte for byte")


register_exact("mixed", "mixed", "3", "6000")
register_exact("threads", "threads", "4", "6000")


@test("recording/quick")
def _(t):
    """Records that are counted in batches give what single events give."""
    def counters(*options):
        result = t.profile([t.target("gcc-O2-pie", "mixed"), "3", "20000"], ["--record=r", *options])
        leaves = report_json(t, os.path.join(result.directory, "r"))["leaves"]
        keys = ("allocations", "bytes", "temporary", "reallocs", "max_bytes", "sizes")
        return [sum(leaves[k]) if k != "sizes" else sorted(map(str, leaves[k])) for k in keys]

    t.equal("counters of leaves", counters("--probes=jump"), counters("--events=e"))


@test("recording/json")
def _(t):
    """Every reference is valid, and jq parses it."""
    result = t.profile([t.target("gcc-O2-pie", "threads"), "4", "3000"], ["--record=r"])
    path = os.path.join(result.directory, "r")
    d = report_json(t, path)
    t.equal("format", (d["format"], d["version"]), ("ptmem-report", 1))
    frames, nodes, leaves = len(d["frames"]["line"]), len(d["nodes"]["frame"]), len(d["leaves"]["node"])
    for table in ("frames", "nodes", "leaves", "timeline", "cells"):
        sizes = {len(c) for c in d[table].values() if isinstance(c, list)}
        t.equal("sizes of the columns of " + table, len(sizes), 1)
    t.check(all(p < i for i, p in enumerate(d["nodes"]["parent"])), "parents are first")
    t.check(all(0 <= f < frames for f in d["nodes"]["frame"]), "frames of nodes")
    t.check(all(-1 <= n < nodes for n in d["leaves"]["node"]), "nodes of leaves")
    t.check(all(0 <= c < leaves for c in d["cells"]["leaf"]), "leaves of cells")
    shares = [s for of_leaf in d["leaves"]["threads"] for s in of_leaf]
    t.equal("blocks of threads", sum(s[1] for s in shares), sum(d["leaves"]["allocations"]) + sum(d["leaves"]["reallocs"]))
    t.equal("bytes of threads", sum(s[2] for s in shares), sum(d["leaves"]["bytes"]))
    t.equal("allocations", sum(d["timeline"]["allocations"]), d["end"]["allocations"] + d["end"]["reallocs"])
    t.equal("exit", d["meta"]["exit"], "exited 0")
    jq = t.run([t.program("jq"), "-e", ".meta.incomplete == false and (.timeline.time | length) > 0"],
               stdin=report(t, "--format=json", path).encode())
    t.equal("jq", (jq.status, jq.out), (0, b"true\n"))


@test("recording/startup")
def _(t):
    """What calls main has a name alone, so that the debug information of libc is not read for it."""
    result = t.profile([t.target("gcc-O2-pie", "threads"), "1", "100"], ["--record=r"])
    frames = report_json(t, os.path.join(result.directory, "r"))["frames"]
    rows = list(zip(frames["function"], frames["file"], frames["line"], frames["inlined"], frames["kind"]))
    startup = [r for r in rows if re.match(r"\(below main\)$|__libc_start_main@", r[0] or "")]
    t.check(any(r[0] == "(below main)" for r in startup), "start-up functions are there: %s" % rows)
    t.equal("their files, lines, inlined calls, kinds", {r[1:] for r in startup}, {(None, 0, 0, 3)})
    t.check(all(r[1] and r[2] for r in rows if r[0] == "main"), "main has a file: %s" % rows)


LOOP = """
import time
keep = []
while True:
    keep.append(bytearray(5000))
    time.sleep(0.002)
"""


def start_loop(t, name):
    directory = t.subdirectory()
    python = t.program("python3")
    process = subprocess.Popen([t.ptmem(), "-q", "--record=r", "--", python, "-c", LOOP], cwd=directory,
                               env=t.environment(directory, PYTHONMALLOC="malloc"))
    path = os.path.join(directory, name)

    def live():
        with open(path, "rb") as file:
            parts = file.read().count(b"sync")
        return recording_file.read(path)[1]["time"][2][-1] if parts >= 2 else 0

    t.wait_until("two parts of the recording, with the program's data", lambda: os.path.exists(path) and live() > 500000)
    return process, path


@test("recording/ptmem-killed")
def _(t):
    process, path = start_loop(t, "r")
    process.kill()
    process.wait()
    data, (_, tables) = report_json(t, path), recording_file.read(path)
    t.check(data["meta"]["incomplete"] and not data["end"], "the recording is incomplete")
    live = sum(b for b, d in zip(data["cells"]["bytes"], data["cells"]["died"]) if d == -1)
    t.equal("bytes that remain", live, data["timeline"]["live_bytes"][-1])
    t.check(live > 500000, "it has what was recorded")
    t.check(any(data["timeline"]["rss"]), "samples of resident memory")
    t.check("Py_BytesMain" in data["frames"]["function"], "functions have names")
    t.equal("sum of the peak", sum(data["peak"]["bytes_of"]), data["peak"]["bytes"])
    t.check("incomplete" in report(t, path), "the text says so")
    t.check(len(tables["node"][0]) > 10, "nodes")


@test("recording/program-killed")
def _(t):
    process, path = start_loop(t, "r")
    os.kill(child_that_runs(process.pid, os.path.basename(os.path.realpath(t.program("python3")))), signal.SIGKILL)
    t.equal("status", process.wait(), -signal.SIGKILL)
    data = report_json(t, path)
    t.check(not data["meta"]["incomplete"] and data["end"]["live_bytes"] > 500000, "the recording is complete")
    t.check(data["meta"]["duration"] > data["timeline"]["time"][-1] > 0, "duration")


@test("recording/exit")
def _(t):
    """How the process ended, in JSON, in the text and by replay."""
    for script, status, end in (("exit 3", 3, "exited 3"), ("kill -SEGV $$", -signal.SIGSEGV, "killed by SIGSEGV"),
                                ("kill -40 $$", -40, "killed by signal 40"),
                                ("exec /bin/true", 0, "executed another program")):
        directory = t.subdirectory()
        run = t.run([t.ptmem(), "-q", "--follow-exec=no", "--record=r", "--events=e", "--massif-out-file=/dev/null", "--", "/bin/sh",
                     "-c", script], cwd=directory)
        t.equal("status of " + script, run.status, status)
        t.run([t.ptmem(), "-q", "--replay=e", "--record=again", "--massif-out-file=/dev/null"], cwd=directory)
        for name in ("r", "again"):
            path = os.path.join(directory, name)
            t.equal("%s: end in %s" % (script, name), report_json(t, path)["meta"]["exit"], end)
            t.check(re.search("^end +" + end + "$", report(t, path), re.M), "%s: end in the text of %s" % (script, name))


@test("recording/fork")
def _(t):
    """Each process has its file; what it inherited is in it."""
    result = t.profile([t.target("gcc-O2-pie", "wanderer"), "x", "fork", "x"], ["--record=r", "--massif-out-file=/dev/null"])
    names = sorted(n for n in os.listdir(result.directory) if re.fullmatch(r"r(\.\d+)?", n))
    t.equal("files", len(names), 2)
    for name in names:
        data = report_json(t, os.path.join(result.directory, name))
        t.equal("markers of " + name, [m["kind"] for m in data["markers"]], ["fork"] if "." in name else [])
        t.equal("bytes of " + name, sum(data["leaves"]["bytes"]) >= 1000, True)


@test("recording/questions")
def _(t):
    """--at, --range, --match, --thread and the forms of the report."""
    result = t.profile([t.target("gcc-O2-pie", "threads"), "2", "3000"], ["--record=r"])
    path = os.path.join(result.directory, "r")
    data = report_json(t, path)
    whole = report(t, "--format=folded", "--at=end", path)
    t.equal("live at the end", sum(int(l.rsplit(" ", 1)[1]) for l in whole.splitlines()), data["end"]["live_bytes"])
    t.equal("in the whole range", report(t, "--format=folded", "--range=0..end", path), whole)
    t.equal("of no function", report(t, "--format=folded", "--match=^nothing$", path), "")
    matching = report(t, "--format=folded", "--at=end", "--match=^step", path)
    t.equal("of a function", matching, "".join(l + "\n" for l in whole.splitlines() if re.search(r"(^|;)step", l)))
    csv = report(t, "--format=csv", "--thread=%d" % data["threads"][0]["id"], path).splitlines()
    t.equal("bytes of a thread", sum(int(l.split(",")[0]) for l in csv[1:]),
            sum(s[2] for of_leaf in data["leaves"]["threads"] for s in of_leaf if s[0] == 0))
    for wrong in ("--at=x", "--range=5", "--thread=nobody", "--match=(", "--snapshot=1"):
        report(t, wrong, path, status=255)
    diff = report(t, "--diff", path, path)
    t.check(re.search(r"^ +0 .* total$", diff, re.M), "a recording does not differ from itself")
    for form in ("pprof", "speedscope", "massif"):
        refused = t.run([os.path.join(BUILD, "ptmem-report"), "--diff", "--format=" + form, path, path])
        t.equal("status and output of a difference as " + form, (refused.status, refused.out), (255, b""))
        t.check(form.encode() in refused.err, "the message names " + form)
    with open(t.file("other", "desc: x\n"), encoding="utf-8"):
        report(t, "--format=json", os.path.join(t.directory, "other"), status=255)


def raw_totals(text):
    """The sums of the columns of samples that `pprof -raw` prints."""
    rows = re.findall(r"^ +(\d+) +(\d+) +(\d+) +(\d+): ", text, re.M)
    return [sum(int(row[i]) for row in rows) for i in range(4)]


@test("recording/pprof", limit=300)
def _(t):
    """Google's pprof reads what is written, finds the same sums, and takes it as -base."""
    pprof = t.pprof()
    directory = t.subdirectory()
    path = os.path.join(t.profile([t.target("gcc-O2-pie", "mixed"), "3", "6000"], ["--record=r"]).directory, "r")
    data = report_json(t, path)
    for name, options in (("peak", []), ("end", ["--at=end"])):
        with open(os.path.join(directory, name), "wb") as file:
            file.write(t.run([os.path.join(BUILD, "ptmem-report"), "--format=pprof", *options, path]).out)

    def run(*arguments):
        result = t.run([pprof, *arguments], cwd=directory)
        t.equal("status of pprof: " + result.err.decode()[:300], result.status, 0)
        return result.out.decode()

    allocated = [sum(data["leaves"]["bytes"]), sum(data["leaves"]["allocations"]) + sum(data["leaves"]["reallocs"])]
    raw = run("-raw", "peak")
    t.equal("sums at the peak", raw_totals(raw), [data["peak"]["bytes"], data["peak"]["blocks"], *allocated])
    t.equal("sums at the end", raw_totals(run("-raw", "end")), [data["end"]["live_bytes"], data["end"]["live_blocks"], *allocated])
    t.check(all(o["build_id"] in raw for o in data["objects"]), "build-ids")
    t.check(re.search(r"^ +\d+: 0x[0-9a-f]+ M=1 t_malloc \S+truth.h:\d+ .*\n +\S+ \S+mixed.c:\d+", raw, re.M), "inlined lines")
    t.check("100% of" in run("-top", "-unit=B", "-nodefraction=0", "peak"), "-top")
    t.check("t_realloc" in run("-traces", "peak"), "-traces")
    t.check(re.search(r"Showing nodes accounting for 0, 0% of", run("-top", "-base=peak", "peak")), "-base")


@test("recording/speedscope")
def _(t):
    """Weights are the bytes of the paths; frames exist."""
    path = os.path.join(t.profile([t.target("gcc-O2-pie", "mixed"), "3", "3000"], ["--record=r"]).directory, "r")
    data, speed = report_json(t, path), json.loads(report(t, "--format=speedscope", path))
    profile, frames = speed["profiles"][0], len(speed["shared"]["frames"])
    t.equal("sum", (sum(profile["weights"]), profile["endValue"]), (data["peak"]["bytes"],) * 2)
    t.equal("samples", len(profile["samples"]), len(profile["weights"]))
    t.check(all(0 <= f < frames for s in profile["samples"] for f in s), "frames of samples")


def massif_path(data, leaf):
    """The nodes of a leaf as a tree of Massif's has them: address and function, without allocation functions."""
    node, path = data["leaves"]["node"][leaf], []
    while node >= 0:
        path.append(data["nodes"]["frame"][node])
        node = data["nodes"]["parent"][node]
    frames = data["frames"]
    while len(path) > 1 and frames["kind"][path[0]] == 2:
        path.pop(0)
    return tuple((int(frames["address"][f], 16), frames["function"][f] or "???") for f in reversed(path)) or ((0, "???"),)


def by_path(data, rows):
    sums = {}
    for leaf, size in rows:
        path = massif_path(data, leaf)
        sums[path] = sums.get(path, 0) + size
    return {path: size for path, size in sums.items() if size}


def live_at(data, i):
    c = data["cells"]
    return [(leaf, size) for leaf, born, died, size in zip(c["leaf"], c["born"], c["died"], c["bytes"])
            if born <= i and (died > i or died == -1)]


def judge_massif(t, profile, data):
    """Each snapshot against the tables of the recording."""
    timeline, peak = data["timeline"], data["peak"]
    t.equal("header", (profile.desc, profile.cmd, profile.time_unit), (data["meta"]["options"], data["meta"]["command"], "ms"))
    at_peak, others = profile.peak(), [s for s in profile.snapshots if s["kind"] != "peak"]
    t.equal("peak", (at_peak["time"], at_peak["mem_heap_B"]), (peak["time"], peak["bytes"]))
    t.equal("bytes of the intervals", [s["mem_heap_B"] for s in others], timeline["live_bytes"])
    ends = timeline["time"][1:] + [int(data["meta"]["duration"])]
    t.equal("ends of the intervals", [s["time"] for s in others], ends)
    times = [s["time"] for s in profile.snapshots]
    t.equal("order of times", times, sorted(times))

    def key(node):
        return (int(node.address, 16), node.name)

    t.equal("tree of the peak", at_peak["tree"].paths(key), by_path(data, zip(peak["leaf"], peak["bytes_of"])))
    detailed = [i for i, s in enumerate(others) if s["kind"] == "detailed"]
    t.equal("detailed", detailed, [i for i, b in enumerate(timeline["live_bytes"]) if b and (i % 10 == 9 or i + 1 == len(others))])
    t.check(detailed, "some snapshots are detailed")
    for i in detailed:
        t.equal("tree of interval %d" % i, others[i]["tree"].paths(key), by_path(data, live_at(data, i)))


@test("recording/massif")
def _(t):
    """Snapshots and trees are what the tables say; ms_print reads the file, and prints what ptmem-report does."""
    result = t.profile([t.target("gcc-O2-pie", "threads"), "2", "20000"], ["--record=r"])
    path, out = (os.path.join(result.directory, n) for n in ("r", "massif"))
    data = report_json(t, path)

    def write(*options):
        with open(out, "w", encoding="utf-8") as file:
            file.write(report(t, "--format=massif", *options, path))
        return massif.Massif(out)

    judge_massif(t, write("--threshold=0"), data)
    whole, matching = write("--threshold=0"), write("--threshold=0", "--match=^step$")
    t.equal("of a function", matching.peak()["tree"].paths(),
            {path: size for path, size in whole.peak()["tree"].paths().items() if "step" in path})
    t.equal("of no function", {s["mem_heap_B"] for s in write("--match=^nothing$").snapshots}, {0})
    write("--threshold=30")
    printed = t.ms_print([out], cwd=result.directory)
    t.equal("status of ms_print: " + printed.err.decode(), printed.status, 0)
    t.check("below massif's threshold (30.00%)" in printed.out.decode(), "what is below the threshold is summed up")
    t.equal("ms_print and ptmem-report", report(t, out), printed.out.decode())
    report(t, "--format=massif", "--diff", path, path, status=255)
