"""--diff of two builds of a program: in other directories, of another name, with lines that have moved. The program says
what each path of its functions holds; every output must say the same, and nothing of paths that did not change."""

import csv
import io
import json
import os
import re
import xml.etree.ElementTree

from harness import BUILD, report, test
from report_lib import LIBRARY, NEW, OLD, PROGRAM, embedded


class Build:
    """A build of the program in a directory, its truth ({path: (bytes, blocks)}), and a recording and massif file of it."""

    def __init__(self, t, names, name, library, strip=False):
        self.directory = t.subdirectory()
        self.source = PROGRAM % names
        for file, text in (("store.c", self.source), ("part.c", LIBRARY % names)):
            with open(os.path.join(self.directory, file), "w", encoding="utf-8") as out:
                out.write(text)
        for command in (["gcc", "-O0", "-fPIC", "-shared", "-fvisibility=hidden", "-o", library, "part.c"],
                        ["strip", library],
                        ["gcc", "-g", "-O0", "-fno-builtin", "-o", name, "store.c", "./" + library, "-Wl,-rpath," + self.directory],
                        *([["strip", name]] if strip else [])):
            done = t.run(command, cwd=self.directory)
            t.equal("%s: %s" % (command, done.err.decode()), done.status, 0)
        run = t.profile(["./" + name], ["--record=r", "--massif-out-file=m", "--detailed-freq=1", "--time-unit=B"],
                        cwd=self.directory)
        self.truth = {}
        for line in run.out.decode().splitlines():
            path, size, count = line.split()
            was = self.truth.get(path, (0, 0))
            self.truth[path] = (was[0] + int(size), was[1] + int(count))
        self.recording, self.massif = (os.path.join(self.directory, file) for file in "rm")

    def line(self, text):
        """The number of the first line with @text."""
        return next(i for i, line in enumerate(self.source.splitlines(), 1) if text in line)

    def sum(self, index):
        return sum(value[index] for value in self.truth.values())


def from_main(path):
    """Without what calls main."""
    return path[path.index("main"):] if "main" in path else path


def judge_rows(t, what, rows, old, new, index=0):
    """@rows: (path, old, new) of functions outermost first, of any number of call sites."""
    sums = {}
    for path, a, b in rows:
        key = ";".join(from_main(path))
        was = sums.get(key, (0, 0))
        sums[key] = (was[0] + a, was[1] + b)
    wanted = {path: (old.truth.get(path, (0, 0))[index], new.truth.get(path, (0, 0))[index])
              for path in {*old.truth, *new.truth}}
    t.equal(what, sums, wanted)


ROW = re.compile(r"^ *([-+]?[\d,]+) +([\d,]+) +([\d,]+)  ( *)(.*)$", re.M)


def judge_text(t, what, text, old, new):
    """What changed, with the lines of the new build; nothing else."""
    rows = [(int(change.replace(",", "")), len(indent), name) for change, _, _, indent, name in ROW.findall(text)]
    orders, audit = 4 * 333, 2000
    crate = "crate (store.c:%d)" % new.line("line of crate")
    wanted = [(orders + audit, 0, "total"), (orders + audit, 1, crate),
              (audit, 2, "audit (store.c:%d)" % new.line("crate(1000, 2)")),
              (audit, 3, "main (store.c:%d)" % new.line("	audit();")),
              (orders, 2, "orders (store.c:%d)" % new.line("crate(333, n)")),
              (orders, 3, "main (store.c:%d)" % new.line("orders(14)"))]
    rows = [row for row in rows if row[1] <= 3] # not what calls main
    t.equal(what, rows, wanted)
    t.equal("bytes", old.sum(0) + orders + audit, new.sum(0))


def judge_csv(t, what, text, old, new, has_blocks):
    rows = list(csv.DictReader(io.StringIO(text)))
    paths = [row["path"].split(" > ") for row in rows]
    judge_rows(t, what, [(p, int(r["old_bytes"]), int(r["new_bytes"])) for p, r in zip(paths, rows)], old, new)
    if has_blocks:
        judge_rows(t, what + ", blocks", [(p, int(r["old_blocks"]), int(r["new_blocks"])) for p, r in zip(paths, rows)],
                   old, new, 1)
    for row in rows:
        for unit in ("bytes", "blocks") if has_blocks else ("bytes",):
            t.equal("change", int(row["change_" + unit]), int(row["new_" + unit]) - int(row["old_" + unit]))
        t.check(has_blocks or not row["old_blocks"] + row["new_blocks"] + row["change_blocks"], "no blocks in a massif file")
    changed = [r for r in rows if r["change_bytes"] != "0"]
    crate = "crate (store.c:%d)" % new.line("line of crate")
    t.equal("changed rows", [(r["call_site"], from_main(p)[1]) for p, r in zip(paths, rows) if r in changed],
            [(crate, "audit"), (crate, "orders")])
    shelf = [new.line("calloc(1, size)"), new.line("realloc(NULL")]
    t.equal("call sites in shelf", {r["call_site"] for p, r in zip(paths, rows) if p[-1] == "shelf"},
            {"shelf (store.c:%d, %d)" % tuple(shelf)})


def judge_json(t, what, text, old, new):
    """The rows are those of CSV; sums made from both profiles by what is matched are the truth."""
    data = json.loads(text)
    judge_rows(t, what, [(r["path"], r["old_bytes"], r["new_bytes"]) for r in data["changes"]], old, new)
    rows = []
    for side in ("old", "new"):
        profile, match = data[side], data["match"][side]
        t.equal("frames matched", {len(match["function"]), len(match["site"])}, {len(profile["frames"]["function"])})
        held = profile.get("states") or [profile["peak"]]
        for leaf, size in zip(held[-1]["leaf"], held[-1].get("bytes_of") or held[-1]["bytes"]):
            node, path = profile["leaves"]["node"][leaf], []
            while node >= 0:
                path.insert(0, data["match"]["functions"][match["function"][profile["nodes"]["frame"][node]]])
                node = profile["nodes"]["parent"][node]
            rows.append((path, size, 0) if side == "old" else (path, 0, size))
    judge_rows(t, what + " by match", rows, old, new)
    return data


def judge_folded(t, what, text, old, new):
    rows = [line.rsplit(" ", 2) for line in text.splitlines()]
    judge_rows(t, what, [(path.split(";"), int(a), int(b)) for path, a, b in rows], old, new)


def judge_flame(t, path, old, new):
    """Frames by name: what changed says by how much, and the others do not."""
    changes = {}
    for title in xml.etree.ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}title"):
        name, change = re.fullmatch(r"(.*) \([\d,]+ bytes.*; ([-+][\d,]+)\)", title.text, re.S).groups()
        changes.setdefault(name, []).append(int(change.replace(",", "")))
    t.equal("changes in the flame graph", {name: sorted(changes.get(name, [])) for name in
                                           ("orders", "audit", "stock", "shelf", "crate", "deep", "library_make", "[libpart.so]")},
            {"orders": [1332], "audit": [2000], "stock": [0], "shelf": [0, 0], "crate": [0, 0, 0, 1332, 2000],
             "deep": [0, 0, 0], "library_make": [0], "[libpart.so]": [0]})


def judge_all(t, kind, old, new):
    a, b = getattr(old, kind), getattr(new, kind)
    directory = t.subdirectory()
    folded, flame, page = (os.path.join(directory, name) for name in ("folded", "flame.svg", "page.html"))
    judge_text(t, kind + ": text", report(t, "--diff", "--threshold=0", a, b), old, new)
    judge_csv(t, kind + ": csv", report(t, "--diff", "--format=csv", a, b), old, new, kind == "recording")
    judge_folded(t, kind + ": folded", report(t, "--diff", "--format=folded", a, b), old, new)
    report(t, "--diff", "--folded=" + folded, "--flame=" + flame, "--x-size=3000", a, b)
    with open(folded, encoding="utf-8") as file:
        judge_folded(t, kind + ": file of folded stacks", file.read(), old, new)
    judge_flame(t, flame, old, new)
    data = judge_json(t, kind + ": json", report(t, "--diff", "--format=json", a, b), old, new)
    t.equal("--html prints", report(t, "--diff", "--html=" + page, a, b), "")
    for key in ("old_view", "new_view", "changes"):
        del data[key]
    t.check(embedded(page) == data, "the page has what the JSON has")
    # from a profile to itself nothing changes
    t.equal("rows of no difference", len(ROW.findall(report(t, "--diff", a, a))), 1)
    rows = csv.DictReader(io.StringIO(report(t, "--diff", "--format=csv", a, a)))
    t.equal("changes of no difference", {row["change_bytes"] for row in rows}, {"0"})


def both(t, **how):
    return Build(t, OLD, "store", "libpart.so.1", **how), Build(t, NEW, "store-new", "libpart.so.2.1", **how)


@test("diff/recordings")
def _(t):
    judge_all(t, "recording", *both(t))


@test("diff/massif")
def _(t):
    judge_all(t, "massif", *both(t))


@test("diff/stripped")
def _(t):
    """Functions without a name are one for each object, whatever the program's file is called."""
    old, new = both(t, strip=True)
    for kind in ("recording", "massif"):
        text = report(t, "--diff", "--format=folded", getattr(old, kind), getattr(new, kind))
        rows = [line.rsplit(" ", 2) for line in text.splitlines()]
        changed = [(path.split(";")[-3:], int(b) - int(a)) for path, a, b in rows if a != b]
        t.equal(kind + ": what changed", changed, [(["[store-new]"] * 3, 3332)])
        t.equal(kind + ": sums", [sum(int(row[i]) for row in rows) for i in (1, 2)], [old.sum(0), new.sum(0)])


@test("diff/same-build")
def _(t):
    """Where lines mean the same, call sites in one function have rows of their own."""
    old = Build(t, OLD, "store", "libpart.so.1")
    new = Build(t, {**OLD, "orders_n": 12}, "store", "libpart.so.1")
    for kind in ("recording", "massif"):
        rows = list(csv.DictReader(io.StringIO(report(t, "--diff", "--format=csv", getattr(old, kind), getattr(new, kind)))))
        t.equal(kind + ": call sites in shelf", {r["call_site"] for r in rows if r["path"].endswith("> shelf")},
                {"shelf (store.c:%d)" % old.line(text) for text in ("calloc(1, size)", "realloc(NULL")})


@test("diff/questions")
def _(t):
    """--at, --match and --top apply to differences; what cannot be compared is refused."""
    old, new = both(t)
    rows = list(csv.DictReader(io.StringIO(report(t, "--diff", "--format=csv", "--match=^stock$", old.recording, new.recording))))
    t.equal("paths of --match", {"stock" in row["path"].split(" > ") for row in rows}, {True})
    none = report(t, "--diff", "--format=csv", "--match=^nothing$", old.recording, new.recording)
    t.equal("lines without rows", none.count("\n"), 1)
    t.equal("as JSON", json.loads(report(t, "--diff", "--format=json", "--match=^nothing$", old.recording, new.recording))["changes"], [])
    for arguments in (["--format=pprof", old.recording, new.recording], ["--format=speedscope", old.recording, new.recording],
                      [old.recording, new.massif], ["--at=end", old.massif, new.massif],
                      ["--snapshot=1", old.recording, new.recording], ["--html=x", "--top=3", old.recording, new.recording]):
        t.equal("output of %s" % arguments, report(t, "--diff", *arguments, status=255), "")


@test("diff/pprof", limit=300)
def _(t):
    """pprof -base of two builds: what did not change is not there."""
    pprof, (old, new) = t.pprof(), both(t)
    directory = t.subdirectory()
    for build, name in ((old, "old"), (new, "new")):
        with open(os.path.join(directory, name), "wb") as file:
            file.write(t.run([os.path.join(BUILD, "ptmem-report"), "--format=pprof", build.recording]).out)
    run = t.run([pprof, "-top", "-unit=B", "-nodefraction=0", "-base=old", "new"], cwd=directory)
    t.equal("status of pprof: " + run.err.decode()[:300], run.status, 0)
    rows = {name: (flat, total) for flat, total, name in
            re.findall(r"^ *(-?\d+)B? +\S+ +\S+ +(-?\d+)B? +\S+ +(.*?)$", run.out.decode(), re.M)}
    t.equal("by function", {n: rows.get(n) for n in ("crate", "orders", "audit", "main", "stock", "shelf", "deep", "library_make",
                                                     "[libpart.so]")},
            {"crate": ("3332", "3332"), "orders": ("0", "1332"), "audit": ("0", "2000"), "main": ("0", "3332"), "stock": None,
             "shelf": None, "deep": None, "library_make": None, "[libpart.so]": None})
