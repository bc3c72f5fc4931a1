"""Pictures of --inspect: each page has its cell, coloured by its live bytes; bars are as wide as rows."""

import json
import os
import re
import struct
import xml.etree.ElementTree

import harness
from harness import test
from inspect_lib import Inspected, PAGE, PYTHON_ROWS, Python, inspect, listed, synthetic

SVG = "{http://www.w3.org/2000/svg}"
MARK, NOT_THERE = "#cc1a1a", "#ededed"
STEPS = ((0, "#fac266"), (0.25, "#cce3f2"), (0.5, "#8cbfe3"), (0.75, "#4794c9"), (1, "#08548f"))
POINT = re.compile(r"[ML](-?[0-9.]+) (-?[0-9.]+)")


def report_program():
    return os.path.join(harness.BUILD, "ptmem-report")


def draw(t, report, *options):
    """The SVG's groups with titles: [(title, [(colour, [(x, y, width, height)])])]."""
    cwd = t.subdirectory()
    with open(os.path.join(cwd, "in.json"), "w", encoding="utf-8") as file:
        # as --inspect writes it: what it is stands at the beginning
        file.write(json.dumps(report, indent=1))
    result = t.run([report_program(), "--svg=out.svg", "--png=out.png", *options, "in.json"], cwd=cwd)
    t.equal("messages", result.err, b"")
    t.equal("status", result.status, 0)
    with open(os.path.join(cwd, "out.png"), "rb") as file:
        size = struct.unpack(">II", file.read(24)[16:])
    root = xml.etree.ElementTree.parse(os.path.join(cwd, "out.svg")).getroot()
    t.equal("sizes", (float(root.get("width")), float(root.get("height"))), tuple(map(float, size)))
    groups = []
    for group in root.iter(SVG + "g"):
        title = group.find(SVG + "title")
        if title is not None:
            groups.append((title.text, [(p.get("fill"), boxes(p.get("d"))) for p in group.findall(SVG + "path")]))
    return groups, [e.text for e in root.iter(SVG + "text")], size


def boxes(path):
    points = [tuple(map(float, p)) for p in POINT.findall(path)]
    return [(points[i][0], points[i][1], points[i + 2][0] - points[i][0], points[i + 2][1] - points[i + 1][1])
            for i in range(0, len(points) - 3, 4)]


def colour(cell):
    pages, live, _ = cell
    if pages == 0:
        return NOT_THERE
    return next(c for most, c in STEPS if live <= most * pages * PAGE)


def resident_of(report, arena):
    """The arena after the last one is Python's."""
    if arena < len(report["arenas"]):
        return report["arenas"][arena]["memory"]["resident"]
    return sum(report["rows"][name]["resident"] for name in PYTHON_ROWS)


def check_map(t, report, groups, merged=1):
    """All cells of all arenas, the largest first."""
    arenas = {}
    for heap in report["map"]["heaps"]:
        arenas.setdefault(heap["arena"], []).extend(heap["cells"])
    order = sorted(arenas, key=lambda a: -resident_of(report, a))
    want, marked = [], 0
    for arena in order:
        cells = arenas[arena]
        cells = [[sum(c[k] for c in cells[i:i + merged]) for k in range(3)] for i in range(0, len(cells), merged)]
        want += [colour(c) for c in cells]
        marked += sum(1 for c in cells if c[2] and c[2] >= 0.25 * c[0])
    rows = [paths for title, paths in groups if title.startswith("from 0x")]
    size = rows[0][0][1][0][3] + 0.5  # a cell's height and the seam
    got = []
    for paths in rows:
        for fill, found in paths:
            if fill not in (MARK, "none"):
                got += [fill] * round(found[0][2] / size)
    t.equal("cells", len(got), len(want))
    t.equal("their colours", [i for i, pair in enumerate(zip(got, want)) if pair[0] != pair[1]], [])
    t.equal("marks", sum(len(found) for paths in rows for fill, found in paths if fill == MARK), marked)
    return marked


@test("inspect/picture/process")
def process(t):
    program = Inspected(t)
    report = inspect(t, program.process.pid)
    program.end()
    # the map has the pages of the arenas
    for number, arena in enumerate(report["arenas"]):
        cells = [c for h in report["map"]["heaps"] if h["arena"] == number for c in h["cells"]]
        t.equal("resident pages of an arena", sum(c[0] for c in cells) * PAGE,
                arena["memory"]["resident"] + arena["memory"]["swapped"])
        t.equal("nearly empty pages", sum(c[2] for c in cells),
                sum(n for most, n in arena["pages"]["pinned_by_live_bytes"] if most <= 1024))
        t.equal("free pages", sum(1 for c in cells if c[0] and not c[1]), arena["pages"]["free"])
    groups, texts, size = draw(t, report)
    t.equal("size", size, (800, 600))
    t.check(check_map(t, report, groups) > 50, "few marks")
    t.check(any(text.startswith("main arena: ") for text in texts), "no label")
    # the bar: each row as wide as its part
    whole = next(paths for title, paths in groups if title.startswith("resident memory (VmRSS) "))[0][1][0][2] + 0.5
    for name, text in (("unsorted", "free, in unsorted lists"), ("live", "live heap blocks"), ("bins", "free, in bins")):
        width = next(paths for title, paths in groups if title.startswith(text + " "))[0][1][0][2] + 0.5
        part = report["rows"][name]["resident"] / report["memory"]["resident"]
        t.check(abs(width - whole * part) < 0.1, "%s is %.2f wide, not %.2f" % (name, width, whole * part))


@test("inspect/picture/python")
def python(t):
    """The pages of Python's arenas, by the blocks that the list has."""
    program = Python(t, 11)
    program.go_on()
    report, blocks = inspect(t, program.pid), listed(t, program.pid)
    program.end()
    heaps = [h for h in report["map"]["heaps"] if h["arena"] == len(report["arenas"])]
    rows = {name: sum(report["rows"][name].values()) for name in PYTHON_ROWS}
    cells = [c for h in heaps for c in h["cells"]]
    t.equal("a cell's pages", report["map"]["pages_per_cell"], 1)
    t.equal("pages", sum(c[0] for c in cells) * PAGE, sum(rows.values()))
    t.equal("live bytes", sum(c[1] for c in cells), rows["python_live"])
    live = {}
    for address, (size, _, allocator) in blocks.items():
        for page in range(address // PAGE, (address + size - 1) // PAGE + 1) if allocator == "Python" else ():
            live[page] = live.get(page, 0) + min(address + size, (page + 1) * PAGE) - max(address, page * PAGE)
    found = {int(h["start"], 16) // PAGE + i: c for h in heaps for i, c in enumerate(h["cells"])}
    t.equal("live bytes by page", {page: c[1] for page, c in found.items() if c[1]}, live)
    t.equal("nearly empty pages", {page for page, c in found.items() if c[2]}, {page for page, n in live.items() if n <= 1024})
    groups, texts, _ = draw(t, report, "--x-size=1600", "--y-size=1200")
    check_map(t, report, groups)
    label = [text for text in texts if text.startswith("Python's arenas: ")]
    t.check(len(label) == 1 and "malloc_trim" not in label[0], "labels: %s" % label)


@test("inspect/picture/sizes")
def sizes(t):
    """Legible at 4 GiB and at 200 KiB: cells of five pixels at least, and all within the picture."""
    for report, options, merged in ((synthetic(1, 50, 1), (), 1), (synthetic(1, 16384, 64), ("--x-size=1600", "--y-size=1200"), 1),
                                    (synthetic(2, 8192, 64), (), 2)):
        groups, texts, (width, height) = draw(t, report, *options)
        check_map(t, report, groups, merged)
        for title, paths in groups:
            for fill, found in paths:
                for x, y, w, h in found if fill != "none" else []:
                    t.check(x >= 0 and y >= 0 and x + w <= width and y + h <= height, "outside: " + title)
                    t.check(not title.startswith("from") or h >= 1.8, "a row is too low")
        pages = report["map"]["pages_per_cell"] * merged
        t.check(("a cell is a page:" if pages == 1 else "a cell is %d pages, %s:" % (pages, "%.1f KiB" % (pages * 4))) in texts,
                "no key: %s" % texts[:20])


@test("inspect/picture/many")
def many(t):
    """More arenas than there is room for, and a long name: the rest in a line, the name is cut."""
    name = "/usr/lib/a/very/long/name " * 20
    _, texts, _ = draw(t, synthetic(64, 200, 64, name))
    labels = sum(1 for text in texts if text.startswith(("main arena:", "arena 0x")))
    t.check(any(re.match(r"and %d smaller arenas, .* resident$" % (64 - labels), text) for text in texts), "not summed up")
    title = next(text for text in texts if text.startswith("process 1, "))
    t.check(title.endswith("…") and len(title) < 120, "not cut: " + title)


@test("inspect/picture/page")
def page(t):
    """--html: a page with the picture and the rows."""
    program = Inspected(t)
    report = inspect(t, program.process.pid)
    program.end()
    cwd = t.subdirectory()
    with open(os.path.join(cwd, "in.json"), "w", encoding="utf-8") as file:
        json.dump(report, file)
    result = t.run([report_program(), "--html=out.html", "in.json"], cwd=cwd)
    t.equal("status", (result.status, result.err), (0, b""))
    with open(os.path.join(cwd, "out.html"), encoding="utf-8") as file:
        text = file.read()
    t.check(text.count("<svg") == text.count("</svg>") == 1 and "<?xml" not in text, "no picture in the page")
    t.check("{:,}".format(report["memory"]["resident"]) in text, "no sum")
    for name in ("live", "unsorted"):
        t.check("{:,}".format(report["rows"][name]["resident"]) in text, "no row " + name)


@test("inspect/picture/refused")
def refused(t):
    good = json.dumps(synthetic(1, 10, 1))
    for name, content, words in (("cut", good[:-5], b"its JSON is damaged"), ("empty", '{"format": "ptmem-inspect"}', b"damaged")):
        path = t.file(name, content)
        result = t.run([report_program(), "--svg=out.svg", path])
        t.equal("status", result.status, 255)
        t.check(words in result.err, "%s: %r" % (name, result.err))
    path = t.file("good", good)
    for options in (["--flame=out.svg"], ["--folded=-"], ["--diff", path], ["--format=json"], []):
        result = t.run([report_program(), *options, path])
        t.check(result.status == 255 and result.err, "%s: status %d, %r" % (options, result.status, result.err))
