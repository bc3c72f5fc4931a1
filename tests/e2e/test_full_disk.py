"""All files that ptmem writes, on a full disk and in a directory that is gone: what is lost is said, and no file is half of one."""

import json
import os
import re
import xml.etree.ElementTree

import events
import massif
from harness import BUILD, report_json, Skip, test

BLOCKS, SIZE = 300, 1000
PROGRAM = """#include <stdio.h>
#include <stdlib.h>
int main(void)
{
	for (int i = 0; i < %d; i++) {
		void *volatile p = malloc(%d);
		(void)p;
	}
	return rename("out", "away") && rename("kept", "kept");
}
""" % (BLOCKS, SIZE)

# What is written in the end, by its name: what messages call it, its name elsewhere, the options
RESULTS = {"m": ("profile", r"massif\.out\.\d+", ["--massif-out-file="]), "r": ("recording", r"recording\.\d+", ["--record="]),
           "h": ("page", r"page\.\d+\.html", ["--html="]), "f": ("folded stacks", r"folded\.\d+", ["--folded="]),
           "s": ("flame graph", r"flame\.\d+\.svg", ["--flame="]), "l": ("list of leaks", r"leaks\.\d+", ["--leaks", "--leaks-out="]),
           "x.kcg": ("xtree memory report", r"xtmemory\.\d+\.kcg", ["--xtree-memory=full", "--xtree-memory-file="]),
           "u": ("summary", r"memusage\.\d+", ["--memusage", "--memusage-out="]),
           "i.json": ("inspection", r"inspect\.\d+\.json", ["--inspect-at-exit", "--inspect-out="])}


def live_bytes(t, name, path):
    """What the file says was live in the end; None: that is not in it, but it is whole."""
    if name == "r":
        return report_json(t, path)["end"]["live_bytes"]
    if name == "m":
        return massif.Massif(path).snapshots[-1]["mem_heap_B"]
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if name == "f":
        return sum(int(line.rpartition(" ")[2]) for line in text.splitlines())
    if name == "l":
        return int(re.search(r"([\d,]+) bytes", text)[1].replace(",", ""))
    if name == "x.kcg":
        return int(re.search(r"^totals: (\d+)", text, re.M)[1])
    if name == "s":
        xml.etree.ElementTree.fromstring(text)
    elif name == "i.json":
        t.equal("format", json.loads(text)["format"], "ptmem-inspect")
    else:
        t.check(text.rstrip().endswith("</html>") if name == "h" else "Histogram" in text, "%s ends early" % path)
    return None


def on_small_disk(t, cwd, size, argv):
    """Runs @argv in @cwd, whose directory "out" is a file system of @size; copies in "kept" what is in it afterwards."""
    script = "mount -t tmpfs -o size=%s none out && ls -A out; \"$@\"; status=$?; cp -a out/. kept; exit $status" % size
    if t.run(["unshare", "-Urm", "true"]).status != 0:
        raise Skip("no user namespaces here (unshare -Urm)")
    return t.run(["unshare", "-Urm", "sh", "-c", script, "-", *argv], cwd=cwd, env={"TMPDIR": os.path.join(cwd, "elsewhere")})


def directories(t):
    cwd = t.subdirectory()
    for name in ("out", "kept", "elsewhere"):
        os.mkdir(os.path.join(cwd, name))
    return cwd


def files_below(*path):
    return sorted(os.path.join(top, name) for top, _, names in os.walk(os.path.join(*path)) for name in names)


def check_results(t, cwd, run, why):
    """Each result is in one place, whole; names of those that are elsewhere."""
    said = {what: path for what, path in re.findall(r"cannot write \S+: %s; the ([a-z ]+) is in (\S+)\n" % why, run.err.decode())}
    t.equal("status, messages: " + run.err.decode(), (run.status, run.err.count(b"cannot write")), (125, len(said)))
    found, values = {}, {}
    for name, (what, pattern, _) in RESULTS.items():
        path = said.get(what, os.path.join(cwd, "kept", name))
        found[name] = path
        values[name] = live_bytes(t, name, path)
        if what in said:
            t.check(re.fullmatch(pattern, os.path.basename(path)), "its name: " + path)
    known = {v for v in values.values() if v is not None}
    t.check(len(known) == 1 and min(known) >= BLOCKS * SIZE, "live in the end: %s" % values)
    part = [os.path.join(cwd, "kept", "r")]  # of the recording, written while the program ran
    if files_below(cwd, "kept").count(part[0]) and "recording" in said:
        t.check(report_json(t, part[0])["meta"]["incomplete"], "a part of the recording")
        t.check(re.search(rb"warning: \S*/r has the first \d+\.\d s and can be read\n", run.err), run.err.decode())
        found["part of r"] = part[0]
    t.equal("files", sorted(files_below(cwd, "kept") + files_below(cwd, "elsewhere")), sorted(found.values()))
    return set(said)


def options_of_results(directory):
    return [o + os.path.join(directory, name) if o.endswith("=") else o for name, (_, _, options) in RESULTS.items() for o in options]


def compiled(t):
    path = os.path.join(t.directory, "program")
    t.equal("compiler", t.run([t.program("gcc"), "-O1", "-g", "-o", path, t.file("program.c", PROGRAM)]).status, 0)
    return path


@test("full-disk/results/gone")
def _(t):
    """The program has moved the directory of all results away."""
    cwd, program = directories(t), compiled(t)
    run = t.run([t.ptmem(), "-q", *options_of_results("out"), "--", program], cwd=cwd, env={"TMPDIR": os.path.join(cwd, "elsewhere")})
    t.equal("elsewhere", check_results(t, cwd, run, "No such file or directory"), {what for what, _, _ in RESULTS.values()})


for _size, _least in (("4k", 4), ("16k", 1)):
    def _run(t, size=_size, least=_least):
        cwd, program = directories(t), compiled(t)
        run = on_small_disk(t, cwd, size, [t.ptmem(), "-q", *options_of_results("out"), "--", program])
        elsewhere = check_results(t, cwd, run, "No space left on device")
        t.check(len(elsewhere) >= least, "elsewhere: %s" % elsewhere)

    test("full-disk/results/" + _size)(_run)


@test("full-disk/events")
def _(t):
    """What fits is whole lines, and a replay makes the profile of just these; the message says how far they go."""
    cwd = directories(t)
    run = on_small_disk(t, cwd, "64k", [t.ptmem(), "-q", "--events=out/e", "--massif-out-file=/dev/null", "--",
                                        t.target("gcc-O2-pie", "mixed"), "3", "3000"])
    path = os.path.join(cwd, "kept", "e")
    e = events.Events(path)
    with open(path, "rb") as file:
        data = file.read()
    times = [int(line.split()[1]) for line in data.splitlines() if line[:2] in [b"%c " % c for c in b"afjbrzRq"]]
    start = int(re.search(rb"^h \d+ (\d+) ", data, re.M)[1])
    t.equal("status, whole lines, end", (run.status, data[-1:], e.is_complete), (125, b"\n", False))
    said = re.search(rb"cannot write \S*/out/e: No space left on device; it has the events of the first (\d+\.\d{3}) s, the others are "
                     rb"missing\n", run.err)
    t.check(said, "message: " + run.err.decode())
    t.equal("how far", said[1].decode(), "%.3f" % ((times[-1] - start) / 1e9))
    again = t.run([t.ptmem(), "--stats", "--replay=" + path, "--massif-out-file=m"], cwd=cwd)
    t.equal("status of the replay", again.status, 0)
    t.check(b"warning: %s is cut: the profile ends with its line %d\n" % (path.encode(), data.count(b"\n")) in again.err,
            again.err.decode())
    values = dict(re.findall(r"(?<!unknown )\b(allocations|reallocations|frees|live bytes|live blocks): (\d+)", again.err.decode()))
    held = [block for _, block in e.held.values()]
    wanted = {"allocations": e.all["allocations"], "reallocations": e.all["reallocations"], "frees": e.all["frees"],
              "live bytes": e.all["live"], "live blocks": len(e.blocks) + len(held)}
    t.equal("totals of the replay", {k: int(v) for k, v in values.items()}, wanted)


@test("full-disk/data")
def _(t):
    """memusage's data: whole records, and the header of a complete file, so that they can be drawn."""
    cwd = directories(t)
    run = on_small_disk(t, cwd, "16k", [t.ptmem(), "-q", "--data=out/d", "--massif-out-file=/dev/null", "--",
                                        t.target("gcc-O2-pie", "mixed"), "3", "3000"])
    t.check(run.status == 125 and re.search(rb"cannot write \S*out/d: No space left on device; the later calls are missing in it\n", run.err),
            "%d, %s" % (run.status, run.err.decode()))
    path = os.path.join(cwd, "kept", "d")
    with open(path, "rb") as file:
        data = file.read()
    t.equal("size", len(data), 16384 // 24 * 24)
    t.check(any(data[24:32]) and any(data[40:48]), "the header: %r" % data[:48])
    drawn = t.run([os.path.join(BUILD, "ptmem-report"), "--svg=out.svg", path], cwd=cwd)
    t.equal("drawn", (drawn.status, drawn.err), (0, b""))


@test("full-disk/samples")
def _(t):
    """Samples: whole lines."""
    cwd = directories(t)
    wait = "while [ $(stat -c %s out/t) -lt 4096 ]; do :; done; :"
    run = on_small_disk(t, cwd, "4k", [t.ptmem(), "-q", "--sample=1", "--sample-out=out/t", "--massif-out-file=/dev/null", "--", "sh", "-c", wait])
    t.check(run.status == 125 and re.search(rb"cannot write \S*out/t: No space left on device; it has the samples until then\n", run.err),
            "%d, %s" % (run.status, run.err.decode()))
    with open(os.path.join(cwd, "kept", "t"), encoding="ascii") as file:
        head, *lines = file.read().splitlines(keepends=True)
    t.check(len(lines) > 20 and all(re.fullmatch(r"[0-9.]+(\t[0-9-]+)+\n", line) and line.count("\t") == head.count("\t") for line in lines),
            "lines: %r" % lines[-3:])
