"""Several processes in one report: --html without %p, ptmem-report --merge, and one summary.

The program `many` (tests/targets/many.c) knows what each process holds."""

import csv
import json
import os
import re

from harness import report, report_json, run_report, test
from report_lib import Page, embedded

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../src/output/html")
LIMIT = 5 << 20

# Makes the profile of all processes as the page does: {moment: bytes} from its cells, and what it says of peaks.
COMBINE = """
const fs = require("fs"), vm = require("vm");
const [page, file] = process.argv.slice(2);
const scripts = ["profile", "processes", "my_code"];
const code = scripts.map((name) => fs.readFileSync(`${page}/${name}.js`, "utf8")).join("\\n");

vm.runInThisContext(code + `
this.combine = (data) => {
	const names = new Names(), many = new Processes(data, names), p = new Profile(many.json(""), names);
	const sum = ({ bytes }) => bytes.reduce((a, b) => a + b, 0);
	const times = Array.from(p.time, (t, i) => i);
	const series = p.series(Int32Array.from(p.leaves.process), many.rows.length);

	return { moments: times.map((i) => sum(p.live(i))), least: p.cells.bytes.concat(p.cells.blocks).reduce((a, b) => Math.min(a, b), 0),
		peak: sum(p.livePeak()), peaks: sum(p.eachPeak()), left: sum(p.atEnd()), allocated: sum(p.allocated("")),
		curves: many.known.map((row) => Array.from(many.curve(row))),
		series: series.map((row) => Array.from(row)),
		names: many.known.map((row) => [many.name(row), many.words(row)]) };
};`);
console.log(JSON.stringify(combine(JSON.parse(fs.readFileSync(file, "utf8")))));
"""


def combine(t, data):
    run = t.run([t.program("node"), t.file("combine.js", COMBINE), PAGE, t.file("data.json", json.dumps(data))])
    t.equal("node (%s)" % run.err.decode()[:500], run.status, 0)
    return json.loads(run.out)


def judge(t, data):
    """All sums of a page: at each moment what leaves hold is the total, and that of each process its state."""
    made, total = combine(t, data), data["total"]
    t.equal("sums of leaves", made["moments"], total["live_bytes"])
    t.equal("negative cells", made["least"], 0)
    t.equal("the highest moment", total["live_bytes"].index(max(total["live_bytes"])), total["peak"])
    t.equal("at the peak", made["peak"], total["live_bytes"][total["peak"]])
    rows = [i for i, row in enumerate(data["processes"]) if "meta" in row]
    known = [data["processes"][i] for i in rows]
    t.equal("sum of peaks", made["peaks"], sum(row["peak_bytes"] for row in known))
    t.equal("sum of ends", made["left"], sum(row["end_bytes"] for row in known))
    t.equal("sum of allocations", made["allocated"], sum(row["allocated"] for row in known))
    for i, curve in enumerate(made["curves"]):
        t.equal("leaves of process %d over time" % i, made["series"][rows[i]], curve)
    highest = total["live_bytes"][total["peak"]]
    t.check(max(row["peak_bytes"] for row in known) <= highest <= made["peaks"], "peak of all: %d" % highest)
    return made


def said_bytes(result):
    """{pid: bytes} as the program prints them."""
    return {int(pid): int(size) for pid, size in re.findall(rb"pid (\d+) bytes (\d+)", result.out)}


def files(directory, pattern):
    return sorted(os.path.join(directory, n) for n in os.listdir(directory) if re.fullmatch(pattern, n))


@test("many/page")
def _(t):
    """Forks: one page, exact sums, the tree, and the same from the files of the recordings."""
    result = t.profile([t.target("gcc-O2-pie", "many"), "50000", "100000", "200000", "300000"],
                       ["--html=page.html", "--record=r.%p", "-o", "/dev/null"])
    t.equal("pages", files(result.directory, r".*\.html"), [os.path.join(result.directory, "page.html")])
    data, said = embedded(os.path.join(result.directory, "page.html")), said_bytes(result)
    parent, *children = data["processes"]
    t.equal("allocated", {row["pid"]: row["allocated"] for row in data["processes"]}, said)
    t.equal("parents", [(row["parent"], row["depth"]) for row in children], [(0, 1)] * 3)
    t.equal("peaks", sorted(row["peak_bytes"] for row in data["processes"]), [51000, 150000, 250000, 350000])
    t.equal("peak of all", max(data["total"]["live_bytes"]), 801000)
    t.equal("at the ends", [row["end_bytes"] for row in data["processes"]], [51000, 50000, 50000, 50000])
    judge(t, data)
    recordings = files(result.directory, r"r\.\d+")
    merged = json.loads(report(t, "--merge", "--format=json", *recordings))
    for row in merged["processes"]:
        row["file"] = None
    t.check(merged == data, "the page has what --merge makes of the files")
    again = os.path.join(result.directory, "again.html")
    report(t, "--merge", "--html=" + again, *recordings)
    t.equal("its page", embedded(again)["total"], data["total"])
    folded = report(t, "--merge", "--format=folded", *recordings)
    t.equal("folded", sum(int(line.rsplit(" ", 1)[1]) for line in folded.splitlines()), 801000)
    first = report(t, "--merge", "--format=folded", "--at=start", *recordings)
    t.check(sum(int(line.rsplit(" ", 1)[1]) for line in first.splitlines()) < 801000, "at the start: " + first)
    text = report(t, "--merge", *recordings)
    t.check(re.match(r"largest +341.8 KiB \(350,000 bytes\) in process %d, " % max(said, key=said.get), text), text)
    t.check(re.search(r"\nall together +782.2 KiB \(801,000 bytes\) after [\d.]+ s, in 4 processes\n", text), text)
    t.check(re.search(r": 801,000 bytes\n.*\n +801,000 +8 100.0 %  hold \(many.c:\d+\)\n", text), text)
    rows = list(csv.DictReader(report(t, "--merge", "--format=csv", *recordings).splitlines()))
    t.equal("rows", {int(row["pid"]): int(row["allocated_bytes"]) for row in rows}, said)
    t.equal("parents", {int(row["parent_pid"]) for row in rows[1:]}, {parent["pid"]})


@test("many/states", limit=180)
def _(t):
    """What each process is said to hold at a moment is what its own recording has for that time."""
    result = t.profile([t.target("gcc-O2-pie", "branches")], ["--record=r", "-o", "/dev/null"], stdin=b"x")
    path = os.path.join(result.directory, "r")
    data, own = json.loads(report(t, "--merge", "--format=json", path)), report_json(t, path)
    row, = data["processes"]
    t.equal("timeline", row["timeline"]["live_bytes"], own["timeline"]["live_bytes"])
    t.equal("peak", data["total"]["live_bytes"][data["total"]["peak"]], own["peak"]["bytes"])
    judge(t, data)
    for time, state in zip(data["total"]["time"][row["first"]:], row["state"]):
        end = own["peak"]["time"] if state < 0 else own["timeline"]["time"][state] + own["timeline"]["interval"]
        t.check(min(end, own["meta"]["duration"]) <= time + 0.001, "state %d, of %f ms, at %f ms" % (state, end, time))
    page = os.path.join(result.directory, "page.html")
    report(t, "--merge", "--html=" + page, *[path] * 12)
    t.check(os.path.getsize(page) <= LIMIT, "%d bytes" % os.path.getsize(page))
    thin = embedded(page)
    t.check(thin["thinned"] and len(thin["processes"][7]["leaves"]["node"]) < len(row["leaves"]["node"]), "thinned: %s" % thin["thinned"])
    t.check(os.path.getsize(page) > LIMIT * 0.6, "a page that leaves out more than it must has %d bytes" % os.path.getsize(page))
    own_row = thin["processes"][7]
    others = next(i for i, n in enumerate(own_row["leaves"]["node"]) if thin["frames"]["function"][thin["nodes"]["frame"][n]] == "[other call paths]")
    share = 100 * own_row["leaves"]["bytes"][others] / sum(own_row["leaves"]["bytes"])
    said = "%s call paths are one, [other call paths], with %.1f %% of the bytes allocated and %.1f %% of the peak"
    left = len(row["leaves"]["node"]) - len(own_row["leaves"]["node"]) + 1
    held = dict(zip(own_row["peak"]["leaf"], own_row["peak"]["bytes_of"]))
    peak = 100 * held.get(others, 0) / sum(held.values())
    t.check(said % ("{:,}".format(left), share, peak) in own_row["thinned"], "its own: %s" % own_row["thinned"])
    t.check(said % ("{:,}".format(12 * left), share, peak) in thin["thinned"], "in all: %s" % thin["thinned"])
    t.equal("all of it", max(thin["total"]["live_bytes"]), 12 * own["peak"]["bytes"])
    t.equal("allocated in one", sum(thin["processes"][7]["leaves"]["bytes"]), sum(row["leaves"]["bytes"]))
    judge(t, thin)


@test("many/short")
def _(t):
    """500 processes, one after the other: a small page, a short summary, and never two of them at one time."""
    cwd = t.subdirectory()
    run = t.run([t.ptmem(), "--html=page.html", "-o", "/dev/null", "--", t.target("gcc-O2-pie", "many"), "loop", "500"], cwd=cwd)
    t.equal("status", run.status, 0)
    lines = run.err.decode().splitlines()
    t.check(2 <= len(lines) <= 11, "%d lines: %s" % (len(lines), run.err.decode()))
    t.check(re.match(r"ptmem: largest peak of 501 processes: process \d+, .*many loop 500$", lines[0]), lines[0])
    t.check("(1,499 bytes) in 1 block" in lines[1], lines[1])
    t.check("all          500 allocations of 624,750 bytes; 0 bytes in use at their ends" in run.err.decode(), run.err.decode())
    page = os.path.join(cwd, "page.html")
    t.check(os.path.getsize(page) <= LIMIT / 10, "%d bytes" % os.path.getsize(page))
    data = embedded(page)
    t.equal("processes", len(data["processes"]), 501)
    t.equal("peaks", [row["peak_bytes"] for row in data["processes"][1:]], list(range(1000, 1500)))
    t.equal("peak of all", max(data["total"]["live_bytes"]), 1499)
    judge(t, data)
    t.equal("pages", files(cwd, ".*html"), [page])


@test("many/nothing")
def _(t):
    """Processes that allocate nothing: "0 B each", for nothing is less."""
    empty = t.target("gcc-O2-pie", "empty")
    loop = "for i in 1 2 3 4 5; do %s; done" % empty
    run = t.run([t.ptmem(), "--trace-children=yes", "-o", "/dev/null", "--", "sh", "-c", loop])
    t.equal("status", run.status, 0)
    t.check(b"processes of 0 B each; -v prints all" in run.err, run.err.decode())


@test("many/exec")
def _(t):
    """Programs that a process executes one after the other are a row each; one that is not followed has no other."""
    argv = [t.target("gcc-O2-pie", "many"), "chain", "1000", "20000", "3000"]
    result = t.profile(argv, ["--trace-children=yes", "--html=page.html", "-o", "/dev/null"])
    data = embedded(os.path.join(result.directory, "page.html"))
    t.equal("rows", [(row["peak_bytes"], row["parent"], row["depth"]) for row in data["processes"]],
            [(1000, -1, 0), (20000, 0, 1), (3000, 1, 2), (0, 2, 3)])
    t.equal("of one process", len({row["pid"] for row in data["processes"]}), 1)
    t.equal("peak of all", max(data["total"]["live_bytes"]), 20000)
    judge(t, data)
    result = t.profile(argv, ["--html=page.html", "-o", "/dev/null"])
    t.equal("one alone", embedded(os.path.join(result.directory, "page.html"))["format"], "ptmem-report")
    result = t.profile(argv, ["--trace-children=yes", "--html=page.%p.html", "-o", "/dev/null"])
    pages = files(result.directory, r"page.*\.html")
    t.equal("with %p", [embedded(page)["format"] for page in pages], ["ptmem-report"] * 4)


@test("many/fork-exec")
def _(t):
    """A fork that allocates much before it executes another program is a process of its own; one that allocates little is not."""
    for size, rows in ((2 << 20, [(0, -1, 0), (2 << 20, 0, 1), (3000, 1, 2), (0, 2, 3)]), (2000, [(0, -1, 0), (3000, 0, 1), (0, 1, 2)])):
        result = t.profile([t.target("gcc-O2-pie", "many"), "fork", str(size), "3000"],
                           ["--trace-children=yes", "--html=page.html", "--record=r.%p", "-o", "none"])
        data = embedded(os.path.join(result.directory, "page.html"))
        t.equal("rows", [(row["peak_bytes"], row["parent"], row["depth"]) for row in data["processes"]], rows)
        t.equal("recordings", len(files(result.directory, r"r\.\d+(\.\d+)?")), len(rows))
        lines = "\n".join(result.messages)
        t.check("ptmem: largest peak of %d programs in 2 processes: " % len(rows) in lines, lines)
        t.check("of the previous program, is now" not in lines, "a line for each exec: " + lines)
        judge(t, data)
    result = t.profile([t.target("gcc-O2-pie", "many"), "nest", "4000"], ["--trace-children=yes", "--html=page.html", "-o", "none"])
    t.equal("a child of a process that executed another program later",
            [(row["peak_bytes"], row["parent"], row["depth"]) for row in embedded(os.path.join(result.directory, "page.html"))["processes"]],
            [(0, -1, 0), (4000, 0, 1), (0, 0, 1)])


@test("many/ends")
def _(t):
    """Processes that are killed, and recordings that are cut or missing: the report is complete, and says so."""
    cwd = t.subdirectory()
    argv = [t.ptmem(), "--record=r.%p", "--html=page.html", "-o", "/dev/null", "--", t.target("gcc-O2-pie", "many"), "kill", "3000", "4000", "5000"]
    run = t.run(argv, cwd=cwd)
    said, lines = said_bytes(run), run.err.decode().splitlines()
    killed = max(said, key=said.get)
    t.equal("status", run.status, 0)
    t.check("ptmem:   killed       1 process by a signal, the first one %d by SIGKILL" % killed in lines, run.err.decode())
    rows = {row["pid"]: row for row in embedded(os.path.join(cwd, "page.html"))["processes"]}
    t.equal("its end", (rows[killed]["meta"]["exit"], rows[killed]["end_bytes"]), ("killed by SIGKILL", 5000))
    recordings = files(cwd, r"r\.\d+")
    cut, whole = recordings[1], open(recordings[1], "rb").read()
    with open(cut, "wb") as file:
        file.write(whole[:len(whole) // 2])
    page = os.path.join(cwd, "merged.html")
    result = run_report(t, "--merge", "--html=" + page, *recordings, os.path.join(cwd, "missing"))
    t.equal("status", result.status, 2)
    t.check(b"missing" in result.err and os.path.basename(cut).encode() in result.err, result.err.decode())
    data = embedded(page)
    t.equal("rows", len(data["processes"]), 5)
    t.equal("problems", [os.path.basename(row["file"]) for row in data["processes"] if row["problem"]],
            sorted([os.path.basename(cut), "missing"], key=lambda n: n == "missing"))
    judge(t, data)
    text = report(t, "--merge", *recordings, status=2)
    t.check(os.path.basename(cut) + ": it cannot be read" in text, text)
    t.check(re.search(r"\nprocesses +3, in [\d.]+ s; 1 file cannot be read\n", text), text)
    twice = run_report(t, "--merge", recordings[0], recordings[2], recordings[0])
    pid = recordings[0].rsplit(".", 1)[1]
    t.check(("1 recording is of a process that another one is of, too, as process %s in " % pid).encode() in twice.err, twice.err.decode())
    t.equal("two processes", run_report(t, "--merge", recordings[0], recordings[2]).err, b"")
    t.equal("none can be read", run_report(t, "--merge", cut, os.path.join(cwd, "missing")).status, 2)


@test("many/refused")
def _(t):
    """What --merge does not make; each message names it."""
    result = t.profile([t.target("gcc-O2-pie", "many"), "loop", "1"], ["--record=r", "-o", "m"])
    paths = [os.path.join(result.directory, "r"), os.path.join(result.directory, "r")]
    massif = os.path.join(result.directory, "m")
    for options, words in ((["--format=pprof"], b"--format=pprof is of one recording"), (["--format=massif"], b"text, json, csv or folded"),
                           (["--range=0..1"], b"--merge has --at"), (["--diff"], b"--diff"), (["--limit=peak<1"], b"--limit"),
                           (["--png=x.png"], b"--png"), (["--html=" + paths[0]], b"overwrite"), (["--at=5h"], b"--at takes a time")):
        refused = run_report(t, "--merge", *options, *paths)
        t.equal("status of %s" % options, refused.status, 255)
        t.check(words in refused.err, "%s: %s" % (options, refused.err.decode()))
    refused = run_report(t, "--merge", paths[0], massif)
    t.check(refused.status == 255 and b"not a recording" in refused.err, refused.err.decode())


@test("many/limits")
def _(t):
    """A limit that several processes exceed is one check, one message and one status."""
    argv = [t.ptmem(), "--limit=peak<1500", "--limits-out=limits.json", "--limit=peak<1M", "-o", "/dev/null", "--",
            t.target("gcc-O2-pie", "many"), "0", "1000", "2000", "3000"]
    run = t.run(argv)
    said, messages = said_bytes(run), [l for l in run.err.decode().splitlines() if "limit exceeded" in l]
    most, second = sorted(said, key=said.get)[:-3:-1]
    t.equal("status", run.status, 1)
    t.equal("messages", len(messages), 1)
    t.check(re.search(r"peak<1500: it is .*\(3,000 bytes\) in process %d, .*; .*\(2,000 bytes\) in process %d, " % (most, second), messages[0]),
            messages[0])
    checks = json.load(open(os.path.join(run.cwd, "limits.json"), encoding="utf-8"))["checks"]
    t.equal("checks", [(c["check"], c["passed"]) for c in checks], [("peak<1500", False), ("peak<1M", True)])


@test("many/repeat")
def _(t):
    """Each run of --repeat has a page of its own: the first has the name as given."""
    run = t.run([t.ptmem(), "--repeat=2", "--trace-children=yes", "--html=page.html", t.target("gcc-O2-pie", "many"), "0", "1000"])
    pages = sorted(name for name in os.listdir(run.cwd) if name.endswith(".html"))
    t.check(run.status == 0 and len(pages) == 2 and re.fullmatch(r"page\.[0-9]+\.html", pages[0]) and pages[1] == "page.html", "%s" % pages)
    first, second = ({row["pid"] for row in embedded(os.path.join(run.cwd, name))["processes"]} for name in pages[::-1])
    t.check(len(first) == len(second) == 2 and not first & second and int(pages[0].split(".")[1]) in second, "%s %s" % (first, second))


@test("many/browser", limit=120)
def _(t):
    """In Chromium: the table, a click on a process and back, areas by process; nothing is wider than a narrow window."""
    result = t.profile([t.target("gcc-O2-pie", "many"), "50000", "100000", "200000", "300000"], ["--html=page.html", "-o", "/dev/null"])
    path = os.path.join(result.directory, "page.html")
    largest = max(embedded(path)["processes"], key=lambda row: row["peak_bytes"])
    with Page(t, "file://" + path) as page:
        for width in (1400, 420):
            page.call("POST", "/window/rect", {"width": width, "height": 900})
            page.call("POST", "/url", {"url": "file://%s?%d" % (path, width)})
            page.until("the table", "window.ptmem && ptmem.processTable && document.querySelector('#process-table tbody tr')")
            t.equal("rows", page.js("return document.querySelectorAll('#process-table tbody tr').length"), 4)
            t.check(page.js("return document.documentElement.scrollWidth <= innerWidth"), "too wide at %d" % width)
            t.equal("at the peak of all", page.sum(), "801,000 bytes")
            t.equal("areas", page.js("return document.getElementById('stack').value"), "process")
            page.js("[...document.querySelectorAll('#process-table .process')].find((x) => x.textContent.includes(arguments[0]))"
                    ".querySelector('button').click()", str(largest["pid"]))
            page.until("its head", "document.getElementById('origin').textContent.includes('pid %d')" % largest["pid"])
            t.equal("of one", page.sum(), "350,000 bytes")
            t.check("process=" in page.js("return location.hash"), page.js("return location.hash"))
            colors = page.js("const tr = document.querySelector('#process-table tr.chosen'); return [tr, tr.querySelector('th')].map("
                             "(x) => getComputedStyle(x).backgroundColor)")
            t.check(colors[1] in (colors[0], "rgba(0, 0, 0, 0)"), "the name of the chosen process: %s" % colors)
            page.press("#processes-all")
            t.equal("of all again", page.sum(), "801,000 bytes")
            page.press("#mode [data-value=allocated]")
            t.equal("allocated", page.sum(), "651,000 bytes")
            for text, count in ((str(largest["pid"]), 1), ("many 50000", 4), ("/ %d|^none/" % 0, 0), ("", 4)):
                page.js("const f = document.getElementById('process-find'); f.value = arguments[0]; f.dispatchEvent(new Event('input'))", text)
                t.equal("rows of %r" % text, page.js("return document.querySelectorAll('#process-table tbody th').length"), count)
            page.press("#mode [data-value=peaks]")
            t.check("each process at its own peak" in page.text("selection"), page.text("selection"))
