"""Every form of the report, for every view: the sum computed here from the tables of the recording."""

import csv
import io
import itertools
import json
import os
import re
import subprocess
import xml.etree.ElementTree

from harness import report, run_report, test
from pprof_file import Pprof
from recording_lib import embedded, make_objects, record

MATCH = "^(step|filled)$"


def stack_of(data, node):
    """The frames of a path, innermost first."""
    frames = []
    while node >= 0:
        frames.append(data["nodes"]["frame"][node])
        node = data["nodes"]["parent"][node]
    return frames


def texts_of(data, frame):
    """The names that --match looks at."""
    frames = data["frames"]
    return [frames["function"][frame], frames["file"][frame], data["objects"][frames["object"][frame]]["path"]]


def cells_between(data, first, last):
    """(leaf, bytes, blocks) of what was allocated in these intervals and was live at the end of the last."""
    c = data["cells"]
    return [(leaf, size, blocks) for leaf, born, died, size, blocks in zip(c["leaf"], c["born"], c["died"], c["bytes"], c["blocks"])
            if first <= born <= last and not 0 <= died <= last]


def questions(data):
    """(options, [(leaf, bytes, blocks)]): what --at, --range and --thread ask for."""
    count, peak = len(data["timeline"]["time"]), data["peak"]
    at_peak = list(zip(peak["leaf"], peak["bytes_of"], peak["blocks_of"]))
    of_thread = [(leaf, size, blocks) for leaf, rows in enumerate(data["leaves"]["threads"]) for thread, blocks, size in rows
                 if thread == 1]
    return [([], at_peak), (["--at=peak"], at_peak), (["--at=end"], cells_between(data, 0, count - 1)),
            (["--at=40%"], cells_between(data, 0, count * 4 // 10)),
            (["--range=20%..80%"], cells_between(data, count * 2 // 10, count * 8 // 10)),
            (["--range=20%..end"], cells_between(data, count * 2 // 10, count - 1)),
            (["--thread=%d" % data["threads"][1]["id"]], of_thread)]


def number(word):
    return int(word.replace(",", ""))


def pprof_values(data):
    """inuse_space and inuse_objects of all samples of a profile.proto."""
    sums = Pprof(data).sums()
    return sums.get("inuse_space", 0), sums.get("inuse_objects", 0)


def folded_sum(text):
    return sum(int(line.rsplit(" ", 1)[1]) for line in text.splitlines())


def flame_sum(path):
    """What the frame of all paths says; 0 if there is none."""
    titles = [e.text for e in xml.etree.ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}title")]
    root = re.match(r"all \(([\d,]+) bytes", titles[0]) if titles else None
    return int(root[1].replace(",", "")) if root else 0


def massif_sum(text, is_one):
    """Of the only snapshot, or of the peak of many."""
    snapshots = re.findall(r"mem_heap_B=(\d+)\n.*\n.*\nheap_tree=(\w+)", text)
    chosen = snapshots if is_one else [s for s in snapshots if s[1] == "peak"]
    return [int(size) for size, _ in chosen]


def check_forms(t, path, options, size, blocks):
    """Each form has @size bytes in @blocks blocks."""
    def out(form):
        return run_report(t, "--format=" + form, *options, path).out

    directory, name = t.subdirectory(), " ".join(options)
    folded, flame, page = (os.path.join(directory, n) for n in ("folded", "flame.svg", "page.html"))
    report(t, "--folded=" + folded, "--flame=" + flame, "--html=" + page, *options, path)
    said = run_report(t, *options, path)
    title = re.search(r"^(?:live|allocated|ever) .*: ([\d,]+) bytes? in ([\d,]+) (%s)s?$" % ("call" if "--thread" in name else "block"), said.out.decode(), re.M)
    t.equal("text: " + name, (number(title[1]), number(title[2])) if title else (0, 0), (size, blocks))
    t.equal("a warning: " + name, said.err.decode().count("nothing"), 0 if blocks else 1)
    rows = list(csv.DictReader(io.StringIO(out("csv").decode())))
    t.equal("csv: " + name, (sum(int(r["bytes"]) for r in rows), sum(int(r["blocks"]) for r in rows)), (size, blocks))
    t.equal("folded: " + name, folded_sum(out("folded").decode()), size)
    t.equal("pprof: " + name, pprof_values(out("pprof")), (size, blocks))
    t.equal("speedscope: " + name, sum(json.loads(out("speedscope"))["profiles"][0]["weights"]), size)
    is_one = any(option.startswith(("--at", "--range", "--thread")) for option in options)
    t.equal("massif: " + name, massif_sum(out("massif").decode(), is_one), [size])
    with open(folded, encoding="utf-8") as file:
        t.equal("--folded: " + name, folded_sum(file.read()), size)
    t.equal("--flame: " + name, flame_sum(flame), size)
    if options:
        for form, data in (("json", json.loads(out("json"))), ("--html", embedded(page))):
            t.equal(form + ": " + name, (data["view"]["bytes"], data["view"]["blocks"]), (size, blocks))


def check_questions(t, path, expressions):
    """--at, --range and --thread, each without and with --match."""
    data = json.loads(report(t, "--format=json", path))
    stacks = [stack_of(data, node) for node in data["leaves"]["node"]]
    for match in (None, *expressions):
        matches = [not match or any(re.search(match, text) for f in stack for text in texts_of(data, f) if text) for stack in stacks]
        t.check(any(matches) and all(matches) == (match is None), "some paths match %s" % match)
        more = ["--match=" + match] if match else []
        for options, values in questions(data):
            chosen = [v for v in values if matches[v[0]]]
            check_forms(t, path, options + more, sum(v[1] for v in chosen), sum(v[2] for v in chosen))
    return data


@test("recording/forms", limit=180)
def _(t):
    check_questions(t, record(t, "threads", "3", "9000"), [MATCH])


@test("recording/forms/objects", limit=180)
def _(t):
    """Libraries and threads: by function, by object, and by both."""
    t.program("gcc")
    path = os.path.join(t.profile([make_objects(t.subdirectory())], ["--record=r", "--probes=jump"]).directory, "r")
    data = check_questions(t, path, ["^right_make$", "/libleft[.]so$", "^right_grow$"])
    t.equal("threads", len(data["threads"]), 5)


# A library at another place each time: where it was, there is a page of the program's, or something of ptmem's.
LOADED_AGAIN = {"part.c": """#include <stdlib.h>
void *part_make(size_t n) { void *volatile p = malloc(n); return p; }
""", "main.c": """#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>
int main(void)
{
	for (size_t i = 0; i < 10; i++) {
		void *part = dlopen("./libpart.so", RTLD_NOW);
		void *(*make)(size_t) = (void *(*)(size_t))dlsym(part, "part_make");
		void *volatile kept = make(100 + i);
		void *page = (void *)((uintptr_t)make & ~(uintptr_t)4095);
		if (!kept || dlclose(part) != 0)
			return 1;
		if (mmap(page, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != page && errno != EEXIST)
			return 2;
	}
	return 0;
}
"""}


@test("recording/forms/loaded-again")
def _(t):
    """Call paths of a library that is loaded several times are one line, and their frames one of speedscope's."""
    t.program("gcc")
    directory = t.subdirectory()
    for name, text in LOADED_AGAIN.items():
        with open(os.path.join(directory, name), "w", encoding="ascii") as file:
            file.write(text)
    compiler = ["gcc", "-g", "-O1", "-fno-optimize-sibling-calls", "-fPIC"]
    for arguments in (["-shared", "-o", "libpart.so", "part.c"], ["-o", "again", "main.c", "-ldl"]):
        subprocess.run([*compiler, *arguments], cwd=directory, check=True)
    for options in ([], ["--heap-sample=1"]):
        run = t.run([t.ptmem(), "-q", "--record=r", "--massif-out-file=/dev/null", *options, "./again"], cwd=directory)
        t.equal("status (%s)" % run.err.decode(), run.status, 0)
        path = os.path.join(directory, "r")
        data = json.loads(report(t, "--format=json", path))
        stacks = [stack_of(data, node) for node in data["leaves"]["node"]]
        mine = [i for i, stack in enumerate(stacks) if stack and data["frames"]["function"][stack[0]] == "part_make"]
        t.equal("leaves", len(mine), 10)
        rows = [r for r in csv.DictReader(io.StringIO(report(t, "--format=csv", "--at=end", path))) if "part_make" in r["path"]]
        t.equal("rows", [(r["bytes"], r["blocks"], r["allocations"], r["allocated_bytes"], r["max_bytes"], r["max_time_ms"],
                          r["call_site"], r["path"].split(" > ")[-2:]) for r in rows],
                [("1045", "10", "10", "1045", "", "", "part_make (part.c:2)", ["main (main.c:11)", "part_make (part.c:2)"])])
        shared = json.loads(report(t, "--format=speedscope", "--at=end", path))
        frames = [f["name"] for f in shared["shared"]["frames"]]
        t.equal("frames", frames.count("part_make"), 1)
        number = frames.index("part_make")
        t.equal("samples", [len([s for s in p["samples"] if number in s]) for p in shared["profiles"]], [10])


@test("recording/forms/tables")
def _(t):
    """With --match the tables of JSON and of the page have the leaves that match alone; the process is as it was."""
    path, page = record(t, "mixed", "3", "6000", options=["--free-stacks"]), os.path.join(t.subdirectory(), "page.html")
    data = json.loads(report(t, "--format=json", path))
    some = json.loads(report(t, "--format=json", "--match=^t_realloc$", path))
    wanted = [i for i, node in enumerate(data["leaves"]["node"])
              if "t_realloc" in [data["frames"]["function"][f] for f in stack_of(data, node)]]
    t.check(0 < len(wanted) < len(stack_of(data, 0)) + len(data["leaves"]["node"]), "some paths match")
    for column, values in data["leaves"].items():
        t.equal("leaves: " + column, some["leaves"][column], [values[i] for i in wanted])
    for table in ("cells", "peak"):
        kept = [k for k, leaf in enumerate(data[table]["leaf"]) if leaf in wanted]
        for column, values in data[table].items():
            if isinstance(values, list):
                values = [wanted.index(v) if column == "leaf" else v for v in (values[k] for k in kept)]
            t.equal("%s: %s" % (table, column), some[table][column], values)
    for name in ("meta", "timeline", "end", "threads", "frames", "nodes"):
        t.equal(name, some[name], data[name])
    releasing = [n for n in data["releases"]["node"] if "t_realloc" in [data["frames"]["function"][f] for f in stack_of(data, n)]]
    t.equal("releasing stacks", (some["releases"]["node"], bool(releasing)), (releasing, True))
    report(t, "--match=^t_realloc$", "--html=" + page, path)
    t.equal("the page", embedded(page), some)


# A constructor of a library allocates first, so that the first path is not the program's.
RESIZES = {"early.c": """#include <stdlib.h>
void *early;
__attribute__((constructor)) static void begin(void) { early = malloc(5000); }
""", "main.c": """#include <stdlib.h>
extern void *early;
static void *held[2000];
int main(void)
{
	for (int i = 0; i < 2000; i++)
		held[i] = malloc(1000);
	for (int i = 0; i < 2000; i++)
		held[i] = realloc(held[i], 2000);
	return !early;
}
"""}


def make_resizes(directory):
    for name, text in RESIZES.items():
        with open(os.path.join(directory, name), "w", encoding="ascii") as file:
            file.write(text)
    for arguments in (["-fPIC", "-shared", "-o", "libearly.so", "early.c"],
                      ["-o", "resizes", "main.c", "-L.", "-learly", "-Wl,-rpath,$ORIGIN"]):
        subprocess.run(["gcc", "-g", "-O1", *arguments], cwd=directory, check=True)
    return os.path.join(directory, "resizes")


@test("recording/forms/resizes")
def _(t):
    """pprof: every resized block is one allocation, also with samples; and the program is its first mapping."""
    t.program("gcc")
    program = make_resizes(t.subdirectory())
    for options in ([], ["--heap-sample=2"]):
        path = os.path.join(t.profile([program], ["--record=r", *options]).directory, "r")
        profile = Pprof(run_report(t, "--format=pprof", path).out)
        allocated = [sample[3] for sample in profile.samples]
        t.equal("alloc_objects with %s" % options, sorted(allocated)[-3:], [1, 2000, 2000])
        name = profile.strings[profile.mappings[0][5]].decode()
        t.equal("the first mapping with %s" % options, name, os.path.realpath(program))


def table_of(text, title):
    """The rows of a table, in words."""
    found = re.search("^%s\n.*\n((?:.+\n)+)" % re.escape(title), text, re.M)
    return [row.split() for row in found[1].splitlines()]


def histogram(rows):
    """{bucket: blocks} of the rows that JSON has."""
    sums = {}
    for first, *counts in filter(None, rows):
        for i, count in enumerate(counts):
            sums[first + i] = sums.get(first + i, 0) + count
    return {bucket: count for bucket, count in sums.items() if count}


@test("recording/spread")
def _(t):
    """The text has what each thread allocated, and the blocks by size and lifetime, as the tables have them."""
    path = record(t, "threads", "3", "9000")
    data, text = json.loads(report(t, "--format=json", path)), report(t, path)
    leaves, threads = data["leaves"], {}
    for thread, blocks, size in itertools.chain(*leaves["threads"]):
        s = threads.setdefault(thread, [0, 0])
        threads[thread] = [s[0] + size, s[1] + blocks]
    rows = table_of(text, "allocated by thread")
    t.equal("threads", sorted((int(row[-1].strip("()")), number(row[0]), number(row[1])) for row in rows),
            sorted((data["threads"][i]["id"], *s) for i, s in threads.items()))
    t.equal("in order", [number(row[0]) for row in rows], sorted((s[0] for s in threads.values()), reverse=True))
    t.equal("sizes", [(number(row[3]), number(row[0])) for row in table_of(text, "sizes of allocated blocks")],
            [(1 << bucket - 1 if bucket else 0, count) for bucket, count in sorted(histogram(leaves["sizes"]).items())])
    t.equal("lifetimes", [(0 if row[3] == "below" else number(row[3]), number(row[0]))
                          for row in table_of(text, "lifetimes of released blocks")],
            [(1 << bucket - 1 if bucket else 0, count) for bucket, count in sorted(histogram(leaves["lifetimes"]).items())])
    few = table_of(report(t, "--top=1", path), "allocated by thread")
    t.equal("others", [number(row[0]) for row in few], [number(rows[0][0]), sum(number(row[0]) for row in rows[1:])])
    t.check("allocated by thread" not in report(t, "--at=end", path), "not of a moment")


AGES = """
#include <stdlib.h>
#include <time.h>

static void *kept[1000];

static void *__attribute__((noinline)) some(void) { return malloc(100); }
static void *__attribute__((noinline)) none(void) { return malloc(200); }
static void *__attribute__((noinline)) all(void) { return malloc(300); }

int main(void)
{
	for (int i = 0; i < 100; i++) {
		kept[i] = some();
		free(none());
	}
	for (int i = 0; i < 10; i++)
		free(kept[i]);
	kept[0] = all();
	nanosleep(&(struct timespec){1, 100000000}, NULL);
	return 0;
}
"""


@test("recording/ages")
def _(t):
    """The text has for each call site the mean lifetime of what was released, the share that was not, and its age, as the
    tables have them."""
    t.program("gcc")
    directory = t.subdirectory()
    with open(os.path.join(directory, "ages.c"), "w", encoding="utf-8") as file:
        file.write(AGES)
    subprocess.run(["gcc", "-g", "-O1", "-o", "ages", "ages.c"], cwd=directory, check=True)
    path = os.path.join(t.profile([os.path.join(directory, "ages")], ["--record=r"]).directory, "r")
    data = json.loads(report(t, "--format=json", path))
    rows = {row[-2]: row for row in table_of(report(t, path), "lifetimes by call site")}
    t.equal("blocks", {name: row[:2] for name, row in rows.items()},
            {"some": ["100", "49.8"], "none": ["100", "49.8"], "all": ["1", "0.5"]})
    t.equal("without live ones", len(rows["none"]), 7)
    t.equal("without released ones", rows["all"][3:5], ["live,", ">="])
    t.equal("with both", rows["some"][5:9], ["90.0", "%", "live,", ">="])
    for name, row in rows.items():
        leaf = next(i for i in range(len(data["leaves"]["site"])) if site_of(data, i) == name)
        count = sum(histogram([data["leaves"]["lifetimes"][leaf]]).values())
        if count:
            mean = data["leaves"]["lived"][leaf] / count
            shown = (0, 1) if row[3] == "<" else [float(row[3]) * {"us": 1, "ms": 1e3, "s": 1e6}[row[4].rstrip(",")]] * 2
            t.check(shown[0] - mean * 0.006 <= mean <= shown[1] + mean * 0.006, "lifetime of %s: %s, not %s" % (name, row, mean))
    sampled = os.path.join(t.profile([os.path.join(directory, "ages")], ["--record=r", "--heap-sample=2"]).directory, "r")
    also = ", of samples: a realloc is a release, too"
    for path, more, within in ((path, "", "released"), (sampled, also, "released or resized")):
        text = report(t, "--temporary=1ms", path)
        for title in ("lifetimes of released blocks", "lifetimes by call site"):
            t.check(table_of(text, title + more), title)
        t.check(", %s within 1.0 ms\n" % within in text, "temporary: " + text)
        if ">=" in row:
            age, unit = row[row.index(">=") + 1:][:2]
            least = 1.09 - data["timeline"]["interval"] / 1000  # the age at the end of the interval of its birth
            t.check(unit == "s" and least <= float(age) <= data["meta"]["duration"] / 1000 + 0.01, "age of %s: %s" % (name, row))


RESIZED = """
#include <stdlib.h>

static void *__attribute__((noinline)) first(void) { void *volatile p = malloc(100); return p; }
static void *__attribute__((noinline)) grown(void *old) { void *volatile p = realloc(old, 2000); return p; }

int main(void)
{
	for (int i = 0; i < 50; i++)
		free(grown(first()));
	return 0;
}
"""


@test("recording/lifetimes-of-reallocs")
def _(t):
    """A realloc ends no lifetime: there are as many as releases, all of the call site of the realloc."""
    t.program("gcc")
    directory = t.subdirectory()
    with open(os.path.join(directory, "resized.c"), "w", encoding="utf-8") as file:
        file.write(RESIZED)
    subprocess.run(["gcc", "-g", "-O1", "-fno-builtin", "-o", "resized", "resized.c"], cwd=directory, check=True)
    data = json.loads(report(t, "--format=json", os.path.join(
        t.profile([os.path.join(directory, "resized")], ["--record=r"]).directory, "r")))
    found = {}
    for leaf, row in enumerate(data["leaves"]["lifetimes"]):
        found[site_of(data, leaf)] = found.get(site_of(data, leaf), 0) + sum(histogram([row]).values())
    t.equal("lifetimes", {name: found[name] for name in ("first", "grown")}, {"first": 0, "grown": 50})


@test("recording/older-than")
def _(t):
    """--older-than: what was live at the end and born in an interval that is old enough as a whole, in every form."""
    t.program("gcc")
    directory = t.subdirectory()
    with open(os.path.join(directory, "ages.c"), "w", encoding="utf-8") as file:
        file.write(AGES.replace("	kept[0] = all();\n", "").replace("	return 0;", "	kept[0] = all();\n	return 0;"))
    subprocess.run(["gcc", "-g", "-O1", "-o", "ages", "ages.c"], cwd=directory, check=True)
    path = os.path.join(t.profile([os.path.join(directory, "ages")], ["--record=r"]).directory, "r")
    data = json.loads(report(t, "--format=json", path))
    born = {name: [b for leaf, b, died in zip(*(data["cells"][k] for k in ("leaf", "born", "died"))) if died == -1 and site_of(data, leaf) == name]
            for name in ("some", "all")}
    duration, step = data["meta"]["duration"], data["timeline"]["interval"]
    between = duration - step * (max(born["some"]) + 1 + born["all"][0]) / 2
    for age, wanted in (("%.3f" % (between / 1000), {"some": 90}), ("%dms" % between, {"some": 90}), ("0", {"some": 90, "all": 1}),
                        ("100%", {}), ("%.6f%%" % (100 * between / duration), {"some": 90})):
        data = json.loads(report(t, "--format=json", "--older-than=" + age, path))
        view, c = data["view"], data["cells"]
        cells = [(leaf, size, blocks) for leaf, born, died, size, blocks in zip(c["leaf"], c["born"], c["died"], c["bytes"], c["blocks"])
                 if born < view["first"] and died == -1]
        ms = data["meta"]["duration"] * float(age[:-1]) / 100 if age[-1] == "%" else float(age.rstrip("ms")) * (1 if "ms" in age else 1000)
        step = data["timeline"]["interval"]
        t.check(view["first"] * step <= data["meta"]["duration"] - ms < (view["first"] + 1) * step if ms else
                view["first"] == len(data["timeline"]["time"]), "interval for %s: %s" % (age, view))
        t.equal("sum of " + age, (view["quantity"], view["bytes"], view["blocks"]),
                ("older", sum(cell[1] for cell in cells), sum(cell[2] for cell in cells)))
        found = {site_of(data, leaf): blocks for leaf, blocks in zip(view["leaf"], view["blocks_of"])}
        t.equal("sites older than " + age, found, wanted)
        t.equal("folded", folded_sum(run_report(t, "--format=folded", "--older-than=" + age, path).out.decode()), view["bytes"])
        t.equal("massif", massif_sum(report(t, "--format=massif", "--older-than=" + age, path), True)[:1] or [0], [view["bytes"]])
        t.equal("pprof", pprof_values(run_report(t, "--format=pprof", "--older-than=" + age, path).out), (view["bytes"], view["blocks"]))
    for options in (["--older-than=101%"], ["--older-than=1d"], ["--older-than=-1"], ["--older-than="], ["--older-than=1", "--at=end"],
                    ["--older-than=1", "--thread=1"]):
        result = run_report(t, *options, path)
        t.equal("status of %s" % options, (result.status, result.out, b"--older-than" in result.err), (255, b"", True))


LIVES = """
#include <stdlib.h>
#include <time.h>

static void *__attribute__((noinline)) quick(void) { return malloc(100); }
static void *__attribute__((noinline)) slow(void) { return malloc(200); }

int main(void)
{
	for (int i = 0; i < 50; i++) {
		void *first = quick(), *second = slow();

		free(first);
		nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
		free(second);
	}
	return 0;
}
"""


@test("recording/temporary")
def _(t):
    """--temporary: what lived less than a time, as the histograms of lifetimes have it, in every form, and with samples.
    By ptmem's own rule the blocks of slow are temporary, and those of quick are not."""
    t.program("gcc")
    directory = t.subdirectory()
    with open(os.path.join(directory, "lives.c"), "w", encoding="utf-8") as file:
        file.write(LIVES)
    subprocess.run(["gcc", "-g", "-O1", "-o", "lives", "lives.c"], cwd=directory, check=True)
    for options in ([], ["--heap-sample=2"]):
        path = os.path.join(t.profile([os.path.join(directory, "lives")], ["--record=r", *options]).directory, "r")
        plain = json.loads(report(t, "--format=json", path))
        t.equal("by default with %s" % options, (plain["meta"]["temporary_below"], plain["end"]["temporary"]),
                (0, None if options else 50))
        for given, below in (("1us", 0), ("4.096ms", 12), ("4097us", 13), ("20s", 25), ("20", 25)):
            data = json.loads(report(t, "--format=json", "--temporary=" + given, path))
            wanted = [sum(n for bucket, n in histogram([row]).items() if bucket <= below) for row in plain["leaves"]["lifetimes"]]
            t.equal("leaves within %s with %s" % (given, options), data["leaves"]["temporary"], wanted)
            t.equal("all within %s with %s" % (given, options), (data["meta"]["temporary_below"], data["end"]["temporary"]),
                    (1 << below, sum(wanted)))
            rows = list(csv.DictReader(io.StringIO(report(t, "--format=csv", "--at=peak", "--temporary=" + given, path))))
            t.equal("CSV within %s" % given, {row["call_site"].split()[0]: int(row["temporary"]) for row in rows},
                    {name: sum(wanted[leaf] for leaf in range(len(wanted)) if site_of(data, leaf) == name) for name in ("quick", "slow")})
        rows = table_of(report(t, "--temporary=4ms", path), "temporary allocations, released%s within 4.1 ms" %
                        (" or resized" if options else ""))
        t.check("slow" not in [row[3] for row in rows], "slow is temporary within 4 ms")
        page = os.path.join(directory, "page.html")
        report(t, "--html=" + page, "--temporary=20s", path)
        t.equal("page", embedded(page)["end"]["temporary"], 100)
    for bad in ("0", "", "1x", "-1", "nan", "inf", "1e3", "99999999999999s"):
        result = run_report(t, "--temporary=" + bad, path)
        t.equal("status of %r" % bad, (result.status, result.out, b"--temporary takes" in result.err), (255, b"", True))


def site_of(data, leaf):
    return data["frames"]["function"][data["nodes"]["frame"][data["leaves"]["site"][leaf]]]
