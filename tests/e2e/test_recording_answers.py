"""Results of ptmem-report for recordings: the same in every form, or a clear refusal."""

import csv
import io
import json
import os
import re
import subprocess

import events
from harness import BUILD, report, report_json, run_report, test
from leaks_lib import EXPECTED, KINDS, MAKERS, library
from recording_lib import check_conservation, embedded, record
from report_lib import Page


def csv_values(text):
    """[(bytes, blocks)] of each path, in order."""
    return [tuple(map(int, line.split(",")[:2])) for line in text.splitlines()[1:]]


def label(data, frame):
    f = {name: column[frame] for name, column in data["frames"].items()}
    where = os.path.basename(data["objects"][f["object"]]["path"]) if f["object"] >= 0 else None
    if not f["function"]:
        return "[%s]" % (where or "unknown")
    if f["file"]:
        return "%s (%s:%d)" % (f["function"], os.path.basename(f["file"]), f["line"])
    return "%s (in %s)" % (f["function"], where) if where else f["function"]


def path_of(data, node):
    """The labels of a call path, as in CSV."""
    labels = []
    while node >= 0:
        labels.insert(0, label(data, data["nodes"]["frame"][node]))
        node = data["nodes"]["parent"][node]
    return " > ".join(labels)


def csv_rows(data, view):
    """What CSV says of the view: one row for each call path."""
    sums = {}
    for leaf, size, blocks in zip(view["leaf"], view["bytes_of"], view["blocks_of"]):
        row = sums.setdefault(path_of(data, data["leaves"]["node"][leaf]), [0, 0])
        row[0], row[1] = row[0] + size, row[1] + blocks
    return [(path, *row) for path, row in sums.items()]


@test("recording/view")
def _(t):
    """JSON has the requested values, the same as CSV; so has the page, which shows them."""
    path = record(t, "threads", "2", "6000")
    page = os.path.join(t.subdirectory(), "page.html")
    last = len(json.loads(report(t, "--format=json", path))["timeline"]["time"]) - 1
    wanted = {("--at=end",): ("live", None, last), ("--at=0",): ("live", None, 0), ("--at=peak",): ("peak", None, None),
              ("--range=50%..end",): ("growth", (last + 1) // 2, last), ("--match=^step$",): ("peak", None, None),
              ("--at=end", "--match=^step$"): ("live", None, last), ("--thread=threads",): ("allocated", None, None)}
    for options, (quantity, first, end) in wanted.items():
        data = json.loads(report(t, "--format=json", *options, path))
        view = data["view"]
        t.equal("view of %s" % (options,), (view["quantity"], view.get("first"), view.get("last")), (quantity, first, end))
        rows = list(zip(view["bytes_of"], view["blocks_of"]))
        table = csv.DictReader(io.StringIO(report(t, "--format=csv", *options, path)))
        found = [(r["path"], int(r["bytes"]), int(r["blocks"])) for r in table]
        t.equal("values of %s" % (options,), sorted(csv_rows(data, view)), sorted(row for row in found if row[1:] != (0, 0)))
        t.equal("sums of %s" % (options,), (view["bytes"], view["blocks"]), (sum(r[0] for r in rows), sum(r[1] for r in rows)))
        t.equal("leaves of %s" % (options,), len(set(view["leaf"])), len(rows))
        report(t, "--html=" + page, *options, path)
        t.equal("page of %s" % (options,), embedded(page)["view"], view)
    t.check("view" not in json.loads(report(t, "--format=json", path)), "without a question there is no answer")
    both = json.loads(report(t, "--diff", "--format=json", "--at=end", path, path))
    t.equal("both sides", both["old"]["view"], both["new"]["view"])


@test("recording/csv-totals")
def _(t):
    """Paths that hold nothing have rows, too: the counters are of the whole run, and their sums its totals."""
    path = record(t, "mixed", "3", "2000")
    end = json.loads(report(t, "--format=json", path))["end"]
    for options in ((), ("--at=end",), ("--at=0",)):
        rows = list(csv.DictReader(io.StringIO(report(t, "--format=csv", *options, path))))
        t.equal("sums of %s" % (options,), [sum(int(r[name]) for r in rows) for name in ("allocations", "allocated_bytes", "reallocs")],
                [end[name] for name in ("allocations", "allocated_bytes", "reallocs")])


@test("recording/picture")
def _(t):
    """--png and --svg draw a recording: its peak, on the line of the total, its largest call sites with what they had, its name."""
    path = record(t, "mixed", "3", "2000")
    here = t.subdirectory()
    report(t, "--svg=%s/a.svg" % here, "--png=%s/a.png" % here, path)
    report(t, "--svg=%s/b.svg" % here, "--title=own", "--x-size=900", "--match=^main$", path)
    data = json.loads(report(t, "--format=json", path))
    with open(here + "/a.png", "rb") as file:
        t.equal("PNG", file.read(8), b"\x89PNG\r\n\x1a\n")
    texts = {}
    for name in "ab":
        with open("%s/%s.svg" % (here, name), encoding="utf-8") as file:
            svg = file.read()
        texts[name] = re.findall(">([^<>]+)</text>", svg)
        peak = re.search(r'<path d="M([0-9.]+) ([0-9.]+)m-', svg)
        total = re.search(r'<path d="([^"]+)" fill="none" stroke="#1a1a1a"', svg)
        t.check(peak and total, "the peak is marked, and the total has a line")
        t.check(any(abs(float(x) - float(peak[1])) < 1 and abs(float(y) - float(peak[2])) < 1
                    for x, y in re.findall("([0-9.]+) ([0-9.]+)", total[1])), "the peak is on the line of the total: %s" % (peak.groups(),))
    t.check(any(text.startswith("peak ") for text in texts["a"]) and os.path.basename(data["meta"]["command"].split()[0]) in " ".join(texts["a"]),
            "texts: %s" % texts["a"])
    t.check("own" in texts["b"] and "all" in texts["a"], "title, and the line of the total: %s" % texts["b"])


@test("recording/refused-questions")
def _(t):
    """A time beyond the end, and meaningless requests: nothing is written."""
    path = record(t, "mixed", "3", "2000")
    page = os.path.join(t.subdirectory(), "page.html")
    for options, word in ((["--at=200%"], b"--at"), (["--at=1000000"], b"--at"), (["--range=0..101%"], b"--range"),
                          (["--range=50%..40%"], b"--range"), (["--html=" + page, "--at=200%"], b"--at"),
                          (["--html=" + page, "--match=("], b"--match"), (["--html=" + page, "--thread=1"], b"'1'"),
                          (["--png=x.png", "--at=50%"], b"draw the whole run"), (["--svg=x.svg", "--thread=1"], b"draw the whole run"),
                          (["--format=json", "--thread=nobody"], b"nobody")):
        result = run_report(t, *options, path)
        t.equal("status and output of %s" % options, (result.status, result.out), (255, b""))
        t.check(word in result.err, "the message of %s: %s" % (options, result.err.decode()))
        t.check(not os.path.exists(page), "no page by %s" % options)
    t.equal("100% is the end", report(t, "--format=csv", "--at=100%", path), report(t, "--format=csv", "--at=end", path))
    massif = t.file("massif", "desc: x\ncmd: x\ntime_unit: ms\n")
    result = run_report(t, "--html=" + page, "--at=1", massif)
    t.equal("a massif file", (result.status, os.path.exists(page)), (255, False))


@test("recording/nothing")
def _(t):
    """An answer without a path is one line on standard error."""
    path = record(t, "mixed", "3", "2000")
    for form, out in (("text", None), ("csv", 1), ("folded", 0), ("json", None), ("speedscope", None), ("pprof", None)):
        result = run_report(t, "--format=" + form, "--match=^no_such_function$", path)
        t.equal("status as " + form, result.status, 0)
        t.equal("message as " + form, result.err.decode(),
                "ptmem-report: warning: %s: nothing matches --match=^no_such_function$ (live at the peak)\n" % path)
        if out is not None:
            t.equal("lines as " + form, len(result.out.splitlines()), out)
    t.equal("message of what is there", run_report(t, "--match=main", path).err, b"")


@test("recording/threshold")
def _(t):
    """--threshold: rows of a table below this share of its sum are one row."""
    path = record(t, "releases", "3000", "5", options=["--free-stacks"])

    def tables(*options):
        """{title: [(part, row)]}: what shares are of, and the line without its share."""
        found = {}
        for block in report(t, *options, path).split("\n\n")[1:]:
            title, *lines = block.splitlines()
            rows = [re.sub(r" +[0-9.]+ %  ", "  ", line) for line in lines[title != "temporary allocations":]]
            if "of " not in title:
                found[title] = [(int(row.split()[0].replace(",", "")), row) for row in rows if row.split()[0][0].isdigit()]
        return found

    everything = tables("--top=1000000")
    t.check(len(everything) == 7 and max(map(len, everything.values())) > 5, "tables: %s" % everything)
    for threshold in (0.5, 5, 17, 20, 100):
        for title, rows in tables("--top=1000000", "--threshold=%s" % threshold).items():
            limit = sum(part for part, _ in everything[title]) * threshold
            shown = [row for row in everything[title] if row[0] * 100 >= limit]
            others = len(everything[title]) - len(shown)
            t.equal("%s from %s %%" % (title, threshold), rows[:len(shown)], shown)
            t.equal("others", [(row[0], int(re.search(r"\[(\d+) other ", row[1])[1])) for row in rows[len(shown):]],
                    [(sum(row[0] for row in everything[title][len(shown):]), others)] * (others > 0))
    t.equal("of two limits the first one counts", tables("--top=1", "--threshold=0.001"), tables("--top=1"))


@test("recording/leaks")
def _(t):
    """A leak check is in the text: sums and call sites as targets/leaks.c says."""
    path = record(t, "leaks", library(t), options=["--leak-check", "--leaks-out=/dev/null", "--ignore-fn=holder"])
    text = report(t, "--top=1000", path)
    names = {"definitely lost": "lost", "indirectly lost": "follow", "possibly lost": "inside"}
    for title, start in names.items():
        wanted = {name: count for name, of in EXPECTED.items() for kind, count in of.items() if kind == KINDS[start]}
        table = re.search(r"^%s: [\d,]+ bytes in ([\d,]+) blocks?\n.*\n((?:.+\n)+)" % title, text, re.M)
        rows = re.findall(r"^ *[\d,]+ +([\d,]+) +[\d.]+ %  (\w+) ", table[2], re.M)
        t.equal(title, {name: int(count) for count, name in rows if name in MAKERS}, wanted)
        t.equal("sum of what is " + title, int(table[1]), sum(int(count) for count, _ in rows))
    t.check(re.search(r"^still reachable: [\d,]+ bytes in \d+ blocks?$", text, re.M), "what is reachable")
    rows = re.findall(r"^ *[\d,]+ +[\d,]+ +[\d.]+ %  \w+ .*\)(.*)$", text[text.index("\ndefinitely lost"):text.index("\nstill reach")], re.M)
    t.check(rows and all(re.fullmatch(r", ([0-9.]+ to )?[0-9.]+ s old", row) for row in rows), "ages: %s" % rows)
    t.check("definitely lost" not in report(t, record(t, "leaks", library(t))), "without a check there is no table")


OLD_AND_NEW = """
#include <memory>
#include <time.h>
struct node { std::shared_ptr<node> other; };
static node *volatile kept;
__attribute__((noinline)) static void cycle() { auto a = std::make_shared<node>(); a->other = std::make_shared<node>(); a->other->other = a; }
__attribute__((noinline)) static void early() { for (int i = 0; i < 160; i++) cycle(); }
__attribute__((noinline)) static void late() { for (int i = 0; i < 40; i++) cycle(); }
__attribute__((noinline)) static void keep() { kept = new node; kept->other = std::make_shared<node>(); }
__attribute__((noinline)) static void pause_for(long ms) { timespec t = {0, ms * 1000000}; nanosleep(&t, nullptr); }
__attribute__((noinline)) static void clear() { volatile char wide[4096]; for (auto &c : wide) c = 0; }
int main() { early(); keep(); pause_for(700); late(); clear(); pause_for(20); return 0; }
"""


def leaking(t, *options):
    """The directory of a recording r of old and of new leaks."""
    directory = t.subdirectory()
    with open(os.path.join(directory, "ages.cpp"), "w", encoding="utf-8") as file:
        file.write(OLD_AND_NEW)
    subprocess.run([t.program("g++"), "-g", "-O1", "-o", "ages", "ages.cpp"], cwd=directory, check=True)
    run = t.profile([os.path.join(directory, "ages")], ["--leak-check", "--leaks-out=leaks.json", "--record=r", *options], cwd=directory)
    t.equal("status", run.status, 0)
    return directory


@test("recording/leak-ages-page", limit=60)
def leak_ages_page(t):
    """The page has a column with the ages of what is lost."""
    directory = leaking(t)
    t.run([os.path.join(BUILD, "ptmem-report"), "--html=page.html", "r"], cwd=directory)
    with Page(t, "file://" + os.path.join(directory, "page.html")) as p:
        p.press("#tab-leaks")
        p.until("the table", "document.querySelector('#panel th [data-sort=age]') || document.querySelector('#panel table')")
        text = p.text("panel")
        t.check("Age" in text and re.search(r"[0-9.]+ m?s to [0-9.]+ m?s", text), text)


@test("recording/leak-ages")
def leak_ages(t):
    """Ages and holders of a leak check are in its recording as in its own report, and --older-than selects by them. A cycle
    that no pointer leads to is lost; one that main() itself makes last may still be in a dead variable of its frame."""
    directory = leaking(t, "--leak-holders")
    with open(os.path.join(directory, "leaks.json"), encoding="utf-8") as file:
        live = json.load(file)
    path = os.path.join(directory, "r")
    data = report_json(t, path)
    for kind, of in live["kinds"].items():
        rows = [k for k, name in enumerate(data["leak_ages"]["kind"]) if name[:5] == kind.replace("still ", "")[:5]]
        t.equal("blocks that are " + kind, sum(data["leak_ages"]["blocks"][k] for k in rows), of["blocks"])
        t.equal("bytes that are " + kind, sum(data["leak_ages"]["bytes"][k] for k in rows), of["bytes"])
        dated = "definitely lost" if kind == "indirectly lost" else kind  # by what leads to it
        sites = [site for site in live["sites"] if site["kind"] == dated]
        least, most = (f([data["leak_ages"][name][k] for k in rows], default=0) for f, name in ((min, "at_least"), (max, "at_most")))
        youngest, oldest = (f([site[name] * 1000 for site in sites], default=0) for f, name in ((min, "youngest"), (max, "oldest")))
        t.check(youngest * 15 / 16 - 2 <= least <= youngest + 1 and oldest - 1 <= most <= oldest * 17 / 16 + 2,
                "ages of %s: %s to %s, not %s to %s" % (kind, least, most, youngest, oldest))
    t.equal("lost", live["kinds"]["definitely lost"]["blocks"], 200)
    held = {(data["leak_holders"]["chain"][k], data["leak_holders"]["blocks"][k]) for k in range(len(data["leak_holders"]["leaf"]))}
    wanted = {(" -> ".join(h["chain"]), h["blocks"]) for site in live["sites"] for h in site.get("holders", ())}
    t.check(any("kept" in chain and "keep" in chain for chain, _ in held), "held by 'kept': %s" % held)
    t.equal("holders", held, wanted)
    text = report(t, path)
    t.check(re.search(r"held by variable 'kept' in ages -> keep\(\) \(ages.cpp:9\): [\d,]+ bytes in 1 block", text), text)
    lost = [site for site in live["sites"] if site["kind"] == "definitely lost"]
    of_late = [any(frame.get("function") == "late()" for frame in site["stack"]) for site in lost]
    between = (max(s["oldest"] for s, is_late in zip(lost, of_late) if is_late) +
               min(s["youngest"] for s, is_late in zip(lost, of_late) if not is_late)) / 2
    for age, blocks in (("%dms" % (between * 1000), 160), ("5ms", 200), ("0", 200)):
        text = report(t, "--older-than=" + age, path)
        lost = re.search(r"(?m)^definitely lost(?:, at least [0-9.]+ s old)?: [\d,]+ bytes in (\d+) blocks$", text)
        t.equal("lost, older than " + age, int(lost[1]) if lost else None, blocks)


@test("recording/one-block")
def _(t):
    """Singular for one byte, block and free; plural for none and two."""
    def text_of(*events):
        directory = t.subdirectory()
        recorded, path = os.path.join(directory, "events"), os.path.join(directory, "r")
        with open(recorded, "w", encoding="ascii") as file:
            file.write("".join(line + "\n" for line in ("ptmem-events 1", "h 1 0 x", "n 1 0 7 0", *events, "e 9000000")))
        result = t.run([t.ptmem(), "-q", "--replay=" + recorded, "--massif-out-file=/dev/null", "--record=" + path])
        t.equal("status of --replay: " + result.err.decode(), result.status, 0)
        return report(t, path)

    def check(text, *lines):
        for line in lines:
            t.check(re.search("^" + re.escape(line), text, re.M), "no line %r in\n%s" % (line, text))

    one, freed = "a 1000000 1 0 1 5000 1 0", "f 3000000 1 5 0 5000"
    check(text_of(one), "peak         1 B (1 byte) in 1 block after", "allocations  1 of 1 byte, 0 reallocs, 0 frees",
          "at the end   1 byte in 1 block in use", "live at the peak: 1 byte in 1 block\n")
    check(text_of(one, freed, "r 4000000 1 3 1 0 0 0"), "allocations  1 of 1 byte, 0 reallocs, 1 free\n",
          "at the end   0 bytes in 0 blocks in use")
    check(text_of(one, "a 2000000 1 0 1 6000 1 0"), "peak         2 B (2 bytes) in 2 blocks after",
          "live at the peak: 2 bytes in 2 blocks\n")


@test("recording/options")
def _(t):
    """All options are in the recording, those from the environment too."""
    directory = t.subdirectory()
    t.run([t.ptmem(), "-q", "--record=r", "--depth=7", "--massif-out-file=/dev/null", "--leaks-out=/dev/null", "--leaks", "--",
           "/bin/true"], cwd=directory, env={"PTMEM_OPTS": "--max-snapshots=50"})
    data = json.loads(report(t, "--format=json", os.path.join(directory, "r")))
    t.equal("options", data["meta"]["options"],
            "--max-snapshots=50 --quiet --record=r --depth=7 --massif-out-file=/dev/null --leaks-out=/dev/null --leaks")


@test("recording/thread-names")
def _(t):
    """The name of even a short-lived thread is recorded, and selects its allocations."""
    path = record(t, "thread_names", "40")
    data = json.loads(report(t, "--format=json", path))
    named = {}
    for shares in data["leaves"]["threads"]:
        for thread, _, size in shares:
            name = data["threads"][thread]["name"]
            named[name] = named.get(name, 0) + size
    named.pop("renamed")
    t.equal("bytes by name", {n: b for n, b in named.items() if b >= 1000}, {"short-%d" % i: 1000 * (i + 1) for i in range(40)})
    for i in (0, 39):
        csv = csv_values(report(t, "--format=csv", "--thread=short-%d" % i, path))
        t.equal("blocks of short-%d" % i, [v for v in csv if v[0] >= 1000], [(1000 * (i + 1), 1)])
    t.check(("7", "1") in [tuple(map(str, v)) for v in csv_values(report(t, "--format=csv", "--thread=renamed", path))],
            "the first thread has its last name")


@test("recording/unseen-characters")
def _(t):
    """Characters that would change how a line looks are shown as what they are."""
    directory = t.subdirectory()
    t.run([t.ptmem(), "-q", "--record=r", "--html=page.html", "--massif-out-file=/dev/null", "--", "/bin/true", "a\u202eb\u200bc"],
          cwd=directory)
    path = os.path.join(directory, "r")
    for text in (report(t, path), report(t, "--format=massif", path), report(t, "--format=speedscope", path)):
        t.check("\u202e" not in text and "\u200b" not in text and "u202Eb" in text, "escaped: " + text[:300])
    t.equal("in the page", embedded(os.path.join(directory, "page.html"))["meta"]["command"], "/bin/true a\\u202Eb\\u200Bc")


def releases(data):
    """{function of the site: [blocks, bytes]}: the innermost frame outside of allocators and runtimes."""
    frames, nodes, found = data["frames"], data["nodes"], {}
    for node, blocks, size in zip(*(data["releases"][key] for key in ("node", "blocks", "bytes"))):
        name = None
        while node >= 0:
            frame = nodes["frame"][node]
            name = frames["function"][frame]
            if frames["kind"][frame] < 2:
                break
            node = nodes["parent"][node]
        row = found.setdefault(name, [0, 0])
        row[0] += blocks
        row[1] += size
    return found


def check_releases(t, variant, *options):
    result = t.profile([t.target(variant, "releases"), "6000", "3"],
                       ["--record=r", "--html=page.html", "--free-stacks", "--events=e", *options])
    wanted = {line.split()[0]: [int(x) for x in line.split()[1:]] for line in result.out.decode().splitlines()}
    t.equal("ways", len(wanted), 4)
    path = os.path.join(result.directory, "r")
    data = json.loads(report(t, "--format=json", path))
    found = releases(data)
    t.equal("by site", {name: found.get(name) for name in wanted}, wanted)
    t.equal("all", sum(data["releases"]["blocks"]), data["end"]["frees"])
    check_conservation(t, path, os.path.join(result.directory, "e"), data)
    rows = re.findall(r"^ *([\d,]+) +([\d,]+) +[\d.]+ %  (by_\w+) ", report(t, "--top=100", path).partition("\nreleased: ")[2], re.M)
    t.equal("in the text", {name: [int(n.replace(",", "")), int(b.replace(",", ""))] for b, n, name in rows}, wanted)
    t.check(embedded(os.path.join(result.directory, "page.html"))["releases"] == data["releases"], "in the page")
    again = os.path.join(result.directory, "again")
    t.run([t.ptmem(), "-q", "--replay=" + os.path.join(result.directory, "e"), "--free-stacks", "--record=" + again,
           "--massif-out-file=/dev/null"])
    with open(path, "rb") as first, open(again, "rb") as second:
        t.check(first.read() == second.read(), "the recording of a replay is the same byte for byte")


for _probes in ("auto", "break", "jump"):  # how calls are seen does not depend on the compiler
    def _run(t, probes=_probes):
        check_releases(t, "gcc-O2-pie", "--probes=" + probes)

    test("recording/releases/gcc-O2-pie/" + _probes)(_run)


@test("recording/releases/delete")
def _(t):
    """A delete during which functions get their jumps is one release, though its free stays a breakpoint."""
    for variant in ("gcc-O2-pie", "clang-O0-nopie"):
        result = t.profile([t.target(variant, "cxx")], ["--record=r", "--free-stacks"])
        data = json.loads(report(t, "--format=json", os.path.join(result.directory, "r")))
        t.equal("releases of " + variant, (sum(data["releases"]["blocks"]), data["end"]["unknown_frees"]),
                (data["end"]["frees"], 0))


@test("recording/releases/none")
def _(t):
    """Without the option there are none, and it means nothing without a recording."""
    path = record(t, "releases", "1000")
    t.equal("releases", json.loads(report(t, "--format=json", path))["releases"], None)
    t.check("released by" not in report(t, path), "no table")
    for options, word in (([], b"--record"), (["--record=r", "--heap-sample=1000"], b"--heap-sample")):
        refused = t.run([t.ptmem(), "--free-stacks", *options, "/bin/echo", "ran"])
        t.check(refused.status != 0 and not refused.out and word in refused.err, "refused: " + refused.err.decode())
    forked = t.profile([t.target("gcc-O2-pie", "wanderer"), "x", "fork", "x"],
                       ["--record=r", "--free-stacks", "--massif-out-file=/dev/null"])
    for name in sorted(n for n in os.listdir(forked.directory) if re.fullmatch(r"r(\.\d+)?", n)):
        data = json.loads(report(t, "--format=json", os.path.join(forked.directory, name)))
        t.equal("of process " + name, sum(data["releases"]["blocks"]), data["end"]["frees"])


def largest(result):
    """[call site] of the summary, the largest first."""
    text = "\n".join(result.messages)
    return re.findall(r"^ptmem:   (?:largest)? +[0-9.]+ [KM]?i?B +[0-9.]+ %  (.*)$", text, re.M)


@test("recording/pool")
def _(t):
    """A path of standard libraries alone has the same call site in every output: libstdc++ allocates a pool when it is loaded."""
    result = t.profile([t.target("gcc-O2-pie", "empty_cxx")], ["--record=r"])
    path = os.path.join(result.directory, "r")
    site = largest(result)[0]
    t.check("libstdc++" in site, "the summary's call site: " + site)
    t.equal("the text's", re.search(r"call site\n +[0-9,]+ +1 [0-9. ]+ %  (.*)", report(t, path))[1], site)
    rows = list(csv.DictReader(report(t, "--format=csv", path).splitlines()))
    t.equal("the CSV's", rows[0]["call_site"], site)
    without = os.path.join(t.profile(["/bin/true"], ["--record=r"]).directory, "r")
    grown = list(csv.DictReader(report(t, "--diff", "--format=csv", without, path).splitlines()))
    t.equal("compared, whatever the version", [r["call_site"] for r in grown], ["[libstdc++.so]"])
    data = json.loads(report(t, "--format=json", path))
    shown = data["nodes"]["frame"][data["leaves"]["site"][0]]
    t.check("libstdc++" in data["objects"][data["frames"]["object"][shown]]["path"], "the JSON's: frame %d" % shown)


@test("recording/near-peak")
def _(t):
    """With a recording the summary is of the exact peak, not of a snapshot that is a little before it."""
    for options in ([], ["--record=r"], ["--html=page.html"]):
        sites = largest(t.profile([t.target("gcc-O2-pie", "near_peak")], options))
        wanted = ["late", "early"] if options else ["early", "late"]
        t.equal("order with %s" % options, [site.split()[0] for site in sites][:2], wanted)


@test("recording/largest-errors")
def _(t):
    """The summary's errors of the largest call sites are those that the recording has."""
    for seed in range(1, 9):
        result = t.profile([t.target("gcc-O2-pie", "near_peak")], ["--record=r", "--heap-sample=64K", "--seed=%d" % seed])
        summary = re.findall(r"^ptmem:   (?:largest)? +[0-9.]+ [KM]?i?B +(\+- \S+ %)? +[0-9.]+ %  (.*)$", "\n".join(result.messages), re.M)
        peak = report(t, os.path.join(result.directory, "r")).split("\nthe same by caller")[0]
        rows = re.findall(r"^ +[0-9,]+ +(\+- \S+ %)? +[0-9]+ +[0-9.]+ %  (.*)$", peak, re.M)
        t.equal("errors with seed %d" % seed, summary[:2], rows[:2])
        t.equal("call sites", {name.split()[0] for _, name in summary[:2]}, {"early", "late"})


@test("recording/names-of-sites")
def names_of_sites(t):
    """Where lines are not known, a call site has one name in the summary and in the report: with the object's base name."""
    directory = t.subdirectory()
    program = os.path.join(directory, "bare")
    t.run([t.program("strip"), "-g", "-o", program, t.target("gcc-O2-pie", "limited")])
    run = t.profile([program, "50"], ["--record=r", "-o", "/dev/null"], cwd=directory)
    rows = re.findall(r"largest .* [0-9.]+ %  (.*)", "\n".join(run.messages))
    shown = run_report(t, os.path.join(directory, "r")).out.decode()
    t.check(len(rows) == 1 and rows[0].endswith(" (in bare)") and "  %s\n" % rows[0] in shown, "%s: %s" % (rows, shown))
