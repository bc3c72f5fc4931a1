#!/usr/bin/env python3
"""What ptmem-report draws and converts, checked by other means than its own: folded stacks against a
second reader of massif files, PNGs decoded by libpng and compared pixel by pixel, SVGs parsed as XML, errors
by status and message.

Usage: pictures.py [PTMEM_REPORT]       (default: build/ptmem-report)
The last line is "N passed, N failed"; status 1 if any failed. Valgrind's own files are made where
valgrind and gcc are installed; the golden ones are always read.
"""
import ctypes
import glob
import itertools
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

HERE = os.path.dirname(os.path.abspath(__file__))
REPORT = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "build/ptmem-report")
FLAME = "{http://www.w3.org/2000/svg}"
count = {True: 0, False: 0}


def check(is_good, *what):
    count[bool(is_good)] += 1
    if not is_good:
        print("FAIL", *what)


def report(*args, status=0):
    run = subprocess.run([REPORT, *args], capture_output=True, text=True)
    check(run.returncode == status, args, "status", run.returncode, "instead of", status, run.stderr.strip())
    return run.stdout if not status else run.stderr


# A second reader of massif files, by the format's words alone.

def read_massif(path):
    """Snapshots as dicts; tree nodes as [bytes, text, children]."""
    snapshots, lines = [], open(path, encoding="utf-8", errors="replace").read().split("\n")
    i = 0

    def tree():
        nonlocal i
        children, size, text = re.match(r" *n(\d+): (\d+) (.*)", lines[i]).groups()
        i += 1
        node = [int(size), text, []]
        for _ in range(int(children)):
            node[2].append(tree())
        return node

    while i < len(lines):
        key, _, value = lines[i].partition("=")
        i += 1
        if key == "snapshot":
            snapshots.append({"number": int(value), "tree": None})
        elif key == "heap_tree":
            snapshots[-1]["kind"] = value
            if value != "empty":
                snapshots[-1]["tree"] = tree()
        elif key in ("time", "mem_heap_B", "mem_heap_extra_B", "mem_stacks_B"):
            snapshots[-1][key] = int(value)
    return snapshots


def frame_name(text):
    if text.startswith("in "):
        return "[below threshold]"
    match = re.match(r"0x[0-9A-F]+: (.*)$", text)
    if not match:
        return "[allocation functions]"
    name, location = match.group(1), None
    inside = re.match(r"(.*) \(((?:in .*)|(?:[^()]*:\d+))\)$", name)
    if inside:
        name, location = inside.groups()
    if name != "???":
        return name
    if location and location != "in ???":
        return "[" + (location.rsplit("/", 1)[-1].removeprefix("in ")) + "]"
    return "[unknown]"


def fold(tree):
    out = {}

    def visit(node, path):
        size, text, children = node
        own = size - sum(c[0] for c in children)
        if own:
            key = ";".join(n.replace(";", ":") for n in path)
            out[key] = out.get(key, 0) + own
        for c in children:
            visit(c, [frame_name(c[1])] + path)

    visit(tree, [])
    if "" in out:
        out["[allocation functions]"] = out.pop("")
    return out


def chosen(snapshots):
    for s in snapshots:
        if s["kind"] == "peak":
            return s
    return [s for s in snapshots if s["tree"]][-1] if any(s["tree"] for s in snapshots) else None


def check_folded(path):
    snapshot = chosen(read_massif(path))
    if snapshot is None:
        check("no snapshot has a tree" in report("--folded=-", path, status=255), path, "without a tree")
        return
    lines = report("--folded=-", path).splitlines()
    got = {line.rsplit(" ", 1)[0]: int(line.rsplit(" ", 1)[1]) for line in lines}
    check(len(got) == len(lines), path, "has a path twice")
    check(sum(got.values()) == snapshot["tree"][0], path, "folded sum", sum(got.values()), snapshot["tree"][0])
    check(got == fold(snapshot["tree"]), path, "folded stacks differ")


# Flame graphs.

def check_flame(path):
    snapshot = chosen(read_massif(path))
    if snapshot is None:
        return
    report("--flame=out.svg", path)
    root = xml.etree.ElementTree.parse("out.svg").getroot()
    frames = [g for g in root.iter(FLAME + "g") if g.get("class") == "frame"]
    check(frames and frames[0].find(FLAME + "title").text.startswith("all ("), path, "has no root frame")
    check(int(frames[0].get("data-value")) == max(snapshot["tree"][0], 1), path, "root value")
    text = open("out.svg", encoding="utf-8").read()
    outside = re.findall(r"(?:href|src|url)\W+https?:", text)
    check(not outside, path, "asks the network", outside)
    width, height = float(root.get("width")), float(root.get("height"))
    for g in frames:
        r = g.find(FLAME + "rect")
        x, y, w, h = (float(r.get(k)) for k in ("x", "y", "width", "height"))
        if not (x >= 10 and x + w <= width - 9.98 and y >= 0 and y + h <= height):
            check(False, path, "frame outside", x, y, w, h)
        label = g.find(FLAME + "text").text or ""
        if 7.25 * len(label) > w:
            check(False, path, "text wider than its frame", label, w)
    check(True)


# Pictures.

class PngImage(ctypes.Structure):
    """libpng's png_image."""
    _fields_ = [("opaque", ctypes.c_void_p), *((name, ctypes.c_uint32) for name in (
        "version", "width", "height", "format", "flags", "colors", "problem")), ("message", ctypes.c_char * 64)]


class Png:
    def __init__(self, path):
        with open(path, "rb") as file:
            data = file.read()
        check(data[:8] == b"\x89PNG\r\n\x1a\n", path, "is no PNG")
        depth, color, _, _, interlace = struct.unpack(">BBBBB", data[24:29])
        check((depth, color, interlace) == (8, 2, 0), path, "is no plain RGB image")
        png, image = ctypes.CDLL("libpng16.so.16"), PngImage(version=1)
        check(png.png_image_begin_read_from_memory(ctypes.byref(image), data, ctypes.c_size_t(len(data))), path, image.message)
        self.width, self.height, image.format = image.width, image.height, 2 # RGB
        stride = 3 * self.width
        pixels = ctypes.create_string_buffer(stride * self.height)
        check(png.png_image_finish_read(ctypes.byref(image), None, pixels, stride, None), path, image.message)
        raw = pixels.raw
        self.rows = [raw[at:at + stride] for at in range(0, len(raw), stride)]

    def at(self, x, y):
        return tuple(self.rows[y][3 * x:3 * x + 3])

    def near(self, x, y, color, most=2):
        return all(abs(a - b) <= most for a, b in zip(self.at(x, y), color))

    def column(self, x, color, most=2, end=None):
        """Rows of column x that have the colour."""
        return [y for y in range(end or self.height) if self.near(x, y, color, most)]


SKY, ORANGE, VERMILLION, GREEN, EXTRA = (87, 181, 232), (230, 158, 0), (214, 94, 0), (0, 158, 115), (217, 217, 217)


def check_border(png, *what):
    white = (255, 255, 255)
    edge = [png.at(x, y) for x in range(png.width) for y in (0, png.height - 1)]
    edge += [png.at(x, y) for y in range(png.height) for x in (0, png.width - 1)]
    check(all(p == white for p in edge), *what, "draws over the border")


def check_massif_picture(path, width, height):
    report("--png=out.png", "--svg=out.svg", f"--x-size={width}", f"--y-size={height}", path)
    png = Png("out.png")
    check((png.width, png.height) == (width, height), path, "has the wrong size")
    check_border(png, path, width, height)
    root = xml.etree.ElementTree.parse("out.svg").getroot()
    check(re.match(rf"{width}(px)?$", root.get("width")), path, "SVG width", root.get("width"))
    has_heap = any(s["mem_heap_B"] for s in read_massif(path))
    near = set(itertools.product(*(range(value - 2, value + 3) for value in SKY)))
    colors = sum(pixel in near for row in png.rows[::3] for pixel in zip(row[::9], row[1::9], row[2::9]))
    check(not has_heap or width < 200 or colors > width * height // 30000, path, "has no area of the largest site")


MASSIF_HEAD = "desc: (none)\ncmd: ./known\ntime_unit: ms\n"


def snapshot_text(number, time, heap, extra, tree=None):
    kind = "detailed" if tree else "empty"
    line = "#-----------\n"
    return (f"{line}snapshot={number}\n{line}time={time}\nmem_heap_B={heap}\nmem_heap_extra_B={extra}\n"
            f"mem_stacks_B=0\nheap_tree={kind}\n{tree or ''}")


def tree_text(first, second):
    return (f"n2: {first + second} (heap allocation functions) malloc/new/new[], --alloc-fns, etc.\n"
            f" n0: {first} 0x1: first (a.c:1)\n n0: {second} 0x2: second (a.c:2)\n")


def check_known_areas():
    """Two sites of 60 and 40 from end to end, 100 extra in the second half: heights correspond to the numbers."""
    with open("known.massif", "w") as f:
        f.write(MASSIF_HEAD + snapshot_text(0, 0, 100000, 0, tree_text(60000, 40000)))
        f.write(snapshot_text(1, 500, 100000, 0) + snapshot_text(2, 500, 100000, 100000))
        f.write(snapshot_text(3, 1000, 100000, 100000, tree_text(40000, 60000)))
    report("--png=out.png", "known.massif")
    png = Png("out.png")
    foot = max(png.column(400, SKY, end=500))
    sky, orange = len(png.column(100, SKY, end=foot)), len(png.column(100, ORANGE, end=foot))
    scale = (sky + orange) / 100
    part = (100 - 60) / 716 # of the x axis, roughly: the first moves from 60 to 40
    expected = 60 - 20 * part
    check(abs(sky / scale - expected) < 1.5, "height of the first site", sky / scale, expected)
    check(not png.column(200, EXTRA, 0, foot), "extra before there is any")
    extra = len(png.column(600, EXTRA, 1, foot))
    check(abs(extra / scale - 100) < 3, "height of extra", extra / scale)
    last = len(png.column(770, SKY, end=foot)) / scale
    check(abs(last - 40.2) < 1.5, "height of the first site at the end", last)


def check_dip():
    """A heap that is half as large between two equal trees: its sites share the half."""
    with open("dip.massif", "w") as f:
        f.write(MASSIF_HEAD + snapshot_text(0, 0, 100000, 0, tree_text(60000, 40000)))
        f.write(snapshot_text(1, 500, 50000, 0) + snapshot_text(2, 1000, 100000, 0, tree_text(60000, 40000)))
    report("--png=out.png", "dip.massif")
    png = Png("out.png")
    foot = max(png.column(400, SKY, end=500))
    begin, middle = len(png.column(70, SKY, end=foot)), len(png.column(420, SKY, end=foot))
    check(abs(middle / begin - 0.5) < 0.02, "a site in a dip", begin, middle)


def check_peak_legend():
    """Legend values are those of the tree at the peak, not an interpolation one snapshot before it; before the
    first tree no site is drawn."""
    with open("peak.massif", "w") as f:
        f.write(MASSIF_HEAD + snapshot_text(0, 0, 0, 0) + snapshot_text(1, 100, 102400, 0))
        f.write(snapshot_text(2, 500, 153600, 0, tree_text(102400, 51200)) + snapshot_text(3, 900, 409600, 0))
        f.write(snapshot_text(4, 1000, 409600, 0, tree_text(102400, 307200)))
    report("--png=out.png", "--svg=out.svg", "peak.massif")
    texts = svg_texts("out.svg")[0]
    check("100 KiB  25 %" in texts and "300 KiB  75 %" in texts, "values at the peak", texts)
    check("peak 400 KiB at 1.00 s" in texts, "the peak's time", texts)
    check("call sites not known yet" in texts and "most 150 KiB at 500 ms" in texts, "before the first tree", texts)
    png = Png("out.png")
    check(not png.column(400, SKY, 0, 500) and not png.column(400, ORANGE, 0, 500), "sites before the first tree")
    check(png.column(600, SKY, 0, 500) and png.column(600, ORANGE, 0, 500), "sites behind the first tree")


def check_flame_title():
    """A command line that is too long is cut at its end: it is no C++ name. Massif's name of what calls main is cut
    like a word."""
    command = "/usr/bin/python3 -c import a; " + "x::y(b) and " * 20 + "print(1)"
    tree = (node(0, 2, 1000, "(heap allocation functions) malloc/new/new[], --alloc-fns, etc.") +
            node(1, 1, 900, "0x1: f (a.c:1)") + node(2, 0, 900, "0x2: main (a.c:2)") +
            node(1, 1, 100, "0x3: g (a.c:3)") + node(2, 0, 100, "0x4: (below main) (start.h:4)"))
    with open("title.massif", "w") as f:
        f.write(MASSIF_HEAD.replace("./known", command) + snapshot_text(0, 1, 1000, 0, tree))
    report("--flame=out.svg", "--x-size=800", "title.massif")
    texts = svg_texts("out.svg")[0]
    check(texts[0].startswith(command[:50]) and texts[0].endswith("\u2026"), "title", texts[0])
    check("(below m\u2026" in texts, "what calls main, narrow", texts)


def check_rss():
    with open("rss.tsv", "w") as f:
        f.write("time\tpid\tVmPeak\tVmSize\tVmHWM\tVmRSS\n")
        f.writelines(f"{t / 10:.1f}\t9\t900\t900\t400\t400\n" for t in range(11))
    report("--png=out.png", "--rss=rss.tsv", "known.massif")
    png = Png("out.png")
    black = [y for y in png.column(300, (26, 26, 26), 40, 460) if y > 60]
    sky = png.column(300, SKY, end=500)
    foot, top = max(sky), min(y for y in range(40, 500) if png.near(300, y, ORANGE))
    scale = (foot + 1 - top) / 100000
    check(black and abs((foot - black[0]) / scale / 409600 - 1) < 0.02, "resident memory is at", black)
    check("time-unit=ms" in report("--png=x.png", "--rss=rss.tsv", "bytes.massif", status=255), "--rss over bytes")
    check("not a file of samples" in report("--png=x.png", "--rss=known.massif", "known.massif", status=255), "--rss of massif")
    report("--png=out.png", "rss.tsv")
    check(Png("out.png").column(300, (0, 115, 179), 90, 480), "no curve of VmRSS")
    check_rss_of_others()


def rss_warning(samples, profile, last):
    with open(samples, "w") as f:
        f.write("time\tpid\tVmRSS\n")
        f.writelines(f"{last * t / 10:.1f}\t{pid}\t{kib}\n" for t in range(11) for pid, kib in ((8, 900), (9, 400)))
    run = subprocess.run([REPORT, "--svg=out.svg", "--rss=" + samples, profile], capture_output=True, text=True, check=False)
    check(run.returncode == 0, "status", run)
    return run.stderr


def check_rss_of_others():
    """A warning if the samples are unlikely to be of the profiled process; of several processes that one is drawn."""
    for name in ("massif.out.9", "massif.out.77"):
        shutil.copy("known.massif", name)
    check(rss_warning("two.tsv", "massif.out.9", 1) == "", "samples of the profile's process")
    check("VmRSS): most 400 KiB" in open("out.svg", encoding="utf-8").read(), "another process was drawn")
    check("samples are of process 8, the profile of process 77" in rss_warning("two.tsv", "massif.out.77", 1), "another pid")
    check("end at 60.0 s, the profile at 1.00 s" in rss_warning("two.tsv", "known.massif", 60), "another duration")
    check(rss_warning("two.tsv", "known.massif", 1.9) == "", "a little longer")


def svg_texts(path):
    """Texts of an SVG picture, and the titles of its groups."""
    root = xml.etree.ElementTree.parse(path).getroot()
    return [t.text for t in root.iter(FLAME + "text")], [t.text for t in root.iter(FLAME + "title")]


def node(depth, children, size, text):
    return f"{' ' * depth}n{children}: {size} {text}\n"


ALLOCATE = "std::__new_allocator<std::pair<int const, long> >::allocate(unsigned long, void const*) (new_allocator.h:137)"


def check_labels():
    """Legends name the first function of the program's own; no two entries look alike; what is gone at the peak says
    when it was there; overhead is an estimate."""
    tree = (node(0, 4, 90000, "(heap allocation functions) malloc/new/new[], --alloc-fns, etc.") +
            node(1, 2, 50000, "0x1: " + ALLOCATE) +
            node(2, 1, 30000, "0x2: std::map<int, long>::operator[](int const&) (stl_map.h:511)") +
            node(3, 1, 30000, "0x3: app::fill(int) (t.cpp:8)") + node(4, 0, 30000, "0x4: main (t.cpp:20)") +
            node(2, 1, 20000, "0x5: allocate (alloc_traits.h:464)") + node(3, 0, 20000, "0x6: app::load() (t.cpp:9)") +
            node(1, 2, 20000, "0x7: xmalloc (util.c:3)") + node(2, 1, 12000, "0x8: parse (p.c:4)") +
            node(3, 0, 12000, "0x9: main (t.cpp:21)") + node(2, 1, 8000, "0xA: parse (p.c:4)") +
            node(3, 0, 8000, "0xB: main (t.cpp:21)") +
            node(1, 1, 12000, "0xC: strdup (in /usr/lib/x86_64-linux-gnu/libc.so.6)") +
            node(2, 0, 12000, "0xD: copy::{closure#0} (c.rs:2)") +
            node(1, 1, 8000, "0xF: xrealloc (util.c:9)") +
            node(2, 0, 8000, "in 90 places, all below massif's threshold (1.00%)"))
    early = (node(0, 1, 40000, "(heap allocation functions) malloc/new/new[], --alloc-fns, etc.") +
             node(1, 0, 40000, "0xE: early (t.cpp:5)"))
    with open("labels.massif", "w") as f:
        f.write(MASSIF_HEAD + snapshot_text(0, 0, 0, 0) + snapshot_text(1, 50, 40000, 100, early))
        f.write(snapshot_text(2, 90, 0, 0) + snapshot_text(3, 100, 90000, 500, tree))
    report("--svg=out.svg", "--png=out.png", "labels.massif")
    texts, titles = svg_texts("out.svg")
    for label in ("app::fill(int) (t.cpp:8)", "app::load() (t.cpp:9)", "parse (p.c:4)", "copy::{closure#0} (c.rs:2)",
                  "early (t.cpp:5)", "most 39.1 KiB at 50 ms", "allocator overhead (estimate)", "other call sites"):
        check(label in texts, "no label", label, texts)
    check(not any("allocate" in t or "xmalloc" in t or "xrealloc" in t or " at 0x" in t for t in texts), "a wrapper is named", texts)
    check("app::fill(int) (t.cpp:8): 29.3 KiB  33 %" in titles, "titles", titles)
    check(texts[0] == "./known" or "./known" in texts, "title", texts)
    text = open("out.svg").read()
    check("<use" not in text and "glyph" not in text, "glyphs instead of text")
    # a narrow picture has names, too, one below the other
    report("--svg=out.svg", "--x-size=420", "labels.massif")
    narrow = svg_texts("out.svg")[0]
    for label in ("app::fill(int) (t.cpp:8)", "app::load() (t.cpp:9)", "copy::{closure#0} (c.rs:2)"):
        check(label in narrow, "no label in 420 pixels", label, narrow)
    # names that are equal once they are shortened
    wide = "app::" + "a_very_long_name_" * 4
    tree = (node(0, 2, 90000, "(heap allocation functions) malloc/new/new[], --alloc-fns, etc.") +
            node(1, 0, 50000, f"0x1: {wide}one (t.cpp:8)") + node(1, 0, 40000, f"0x2: {wide}two (t.cpp:8)"))
    open("wide.massif", "w").write(MASSIF_HEAD + snapshot_text(0, 0, 0, 0) + snapshot_text(1, 9, 90000, 0, tree))
    report("--svg=out.svg", "wide.massif")
    labels = [t for t in svg_texts("out.svg")[0] if "very_long" in t]
    check(len(labels) == 2 and labels[0] != labels[1], "equal labels", labels)


def check_short():
    """A program of two milliseconds: its snapshots lie side by side, and the peak on its area."""
    with open("short.massif", "w") as f:
        f.write(MASSIF_HEAD + snapshot_text(0, 0, 0, 0))
        for i, heap in enumerate((1000, 4000, 9000, 20000, 9000, 3000, 500)):
            f.write(snapshot_text(i + 1, 1, heap, 0, tree_text(heap // 2, heap // 2)))
        f.write(snapshot_text(8, 2, 100, 0))
    report("--png=out.png", "--svg=out.svg", "short.massif")
    peak = next(g for g in xml.etree.ElementTree.parse("out.svg").getroot().iter(FLAME + "g")
                if g.findtext(FLAME + "title", "").startswith("peak "))
    x, y = map(float, re.match(r"M(\S+) (\S+?)m", peak.find(FLAME + "path").get("d")).groups())
    png, foot = Png("out.png"), 470
    filled = [row for row in range(int(y) + 6, foot - 5) if png.near(int(x), row, SKY, 90) or png.near(int(x), row, ORANGE, 90)]
    check(len(filled) > 0.97 * (foot - 5 - int(y) - 6), "the peak does not stand on its area", x, y, len(filled))
    wide = [c for c in range(60, 790) if png.near(c, 300, SKY) or png.near(c, 300, ORANGE)]
    check(len(wide) > 20, "the area is a line", wide)


def check_one_scale():
    """Address space lies above resident memory, which is part of it; a huge one leaves the picture to the others."""
    with open("scale.tsv", "w") as f:
        f.write("time\tpid\tVmSize\tVmRSS\n")
        f.writelines(f"{t / 10:.1f}\t9\t2000\t500\n" for t in range(11))
    report("--png=out.png", "scale.tsv")
    png = Png("out.png")
    rss, size = png.column(300, (0, 115, 179), 60, 480), png.column(300, VERMILLION, 60, 480)
    foot = max(y for y in range(300, 540) if png.at(300, y)[0] < 130)
    check(rss and size and abs((foot - size[0]) / (foot - rss[0]) - 4) < 0.1, "not on one scale", rss, size, foot)
    with open("huge.tsv", "w") as f:
        f.write("time\tpid\tVmSize\tVmRSS\n")
        f.writelines(f"{t / 10:.1f}\t9\t21474836480\t500\n" for t in range(11))
    report("--png=out.png", "--svg=out.svg", "huge.tsv")
    check("most 20.0 TiB, off the scale" in svg_texts("out.svg")[0], "huge address space", svg_texts("out.svg")[0])
    check(Png("out.png").column(300, (0, 115, 179), 60, 300), "resident memory lies flat")


def record(heap, stack, time):
    return struct.pack("<QQQ", heap, stack, time)


def check_memusage():
    calls = [record(i * 100 if i < 500 else 0, 2000, 1000 + i * (1 if i < 500 else 9)) for i in range(1000)]
    head = record(0, 51900, 1000) + record(49900, 2000, 1000 + 9000)
    open("known.dat", "wb").write(head + b"".join(calls))
    # Half of the calls take a ninth of the other half's time: the heap is large early or late, and until the middle.
    for options, begin in (([], 0.25), (["-t"], 0.03), (["-T"], 0.25), (["-t", "-T"], 0.03)):
        report("--png=out.png", *options, "known.dat")
        png = Png("out.png")
        check_border(png, "known.dat", options)
        red = [x for x in range(66, 740) if any(png.near(x, y, VERMILLION, 60) for y in range(40, 300))]
        wide = 716 if "-T" in options else 670
        check(red and abs((max(red) - 62) / wide - 0.5) < 0.03, "heap ends", options, red and max(red))
        check(red and abs((min(red) - 62) / wide - begin) < 0.06, "heap begins", options, red and min(red))
        green = [y for x in range(600, 612) for y in png.column(x, GREEN, 60, 500)] # a dashed curve may lie on it
        check(green and (min(green) > 440 if "-T" in options else min(green) < 130), "stack scale", options, green)
    data = open("known.dat", "rb").read()
    open("killed.dat", "wb").write(bytes(16) + data[16:24] + bytes(16) + data[16:24] + data[48:])
    before = open("killed.dat", "rb").read()
    report("--png=killed.png", "killed.dat")
    check(open("killed.dat", "rb").read() == before, "the data file is modified")
    # no ground of bands where there are none, and a picture without any call
    open("none.dat", "wb").write(record(0, 0, 1) + record(0, 0, 9))
    open("few.dat", "wb").write(head + calls[0] + calls[1])
    for name, options, has_bands in (("known.dat", [], True), ("few.dat", ["-t"], False), ("none.dat", [], False)):
        report("--png=out.png", *options, name)
        png = Png("out.png")
        grey = [x for x in range(66, 780, 3) if png.at(x, 60)[:3] == (244, 244, 244)]
        check(bool(grey) == has_bands, "bands of", name, grey)
    open("bad.dat", "wb").write(data + b"x")
    check("24-byte records" in report("--png=x.png", "bad.dat", status=255), "bad size")
    check("it can only be drawn" in report("known.dat", status=255), "text of data")
    check(not os.path.exists("x.png"), "a picture in spite of an error")


def check_few():
    """One record, one snapshot, one value for both axes: everything is visible."""
    open("one.dat", "wb").write(record(0, 150, 1000) + record(100, 50, 3000) + record(100, 50, 2000))
    report("--png=out.png", "one.dat")
    png = Png("out.png")
    heights = [png.column(x, color, 60, 400) for x in (200, 400, 600) for color in (VERMILLION, GREEN)]
    check(all(heights) and heights[0] == heights[4] and heights[1] == heights[5], "one record", heights)
    check(max(heights[0]) < min(heights[1]), "stack below heap, not on it", heights)
    open("one.massif", "w").write(MASSIF_HEAD + snapshot_text(0, 500, 700, 100))
    report("--png=out.png", "one.massif")
    png = Png("out.png")
    bar = [x for x in range(png.width) if png.near(x, 250, SKY)]
    check(4 <= len(bar) <= 8, "one snapshot is a bar", bar)


def check_total_steps():
    """Between two records the sum of heap and stack is constant, like both."""
    open("steps.dat", "wb").write(record(0, 9000, 0) + record(9000, 10, 1000) +
                                  b"".join(record(9000 if i % 2 else 1000, 1, 250 * i) for i in range(4)))
    report("--png=out.png", "-t", "-T", "steps.dat")
    png = Png("out.png")
    for x in (*range(100, 220, 3), *range(450, 580, 3)): # dashes have gaps
        found = [y for c in (VERMILLION, (26, 26, 26)) for y in png.column(x, c, 60, 470) if y > 100]
        if found and max(found) - min(found) > 5:
            check(False, "the sum is not where the heap is", x, found)
    check(True)


def check_processes():
    """The largest have a colour, all others one; none is without a legend."""
    with open("many.tsv", "w") as f:
        f.write("time\tpid\tVmRSS\n")
        f.writelines(f"{t / 10:.1f}\t{100 + p}\t{1000 if p > 1 else 9000 - p * 3000}\n" for t in range(11) for p in range(40))
    report("--png=out.png", "many.tsv")
    png = Png("out.png")
    check(png.column(300, (0, 115, 179), 60, 480) and png.column(300, VERMILLION, 60, 480), "the largest two")
    report("--svg=out.svg", "many.tsv")
    groups = re.findall(r"<title>(\d+ smaller processes): [^<]*</title>\n<path [^>]*stroke=\"(#\w+)\"", open("out.svg").read())
    check(groups == [("34 smaller processes", "#999999")] * 2, "the others: curve and legend, both grey", groups)


def check_memusage_axis():
    """The axis has a title, and its labels have the unit."""
    open("axis.dat", "wb").write(record(0, 9000, 0) + record(9000, 10, 1000) + record(9000, 10, 2000))
    report("--svg=out.svg", "-T", "axis.dat")
    texts = svg_texts("out.svg")[0]
    check("memory" in texts and "bytes" not in texts, "head of the axis", texts)


def check_errors():
    open("json.txt", "w").write('{"cmd": 1}\n')
    open("folded.txt", "w").write("main;f 12\n")
    for args, message in (
            (["--png=", "known.massif"], "--png takes the name of a file"),
            (["--x-size=0", "known.massif"], "--x-size takes a whole number from 1 "),
            (["--snapshot=first", "known.massif"], "--snapshot takes peak, last or"),
            (["--diff", "known.massif"], "--diff takes two files"),
            (["--rss=a", "known.massif"], "--rss goes with --png or --svg"),
            (["--png=x.png", "--threshold=3", "known.massif"], "--threshold goes with the text, --diff"),
            (["--flame=x.svg", "--x=9", "known.massif"], "--x goes with the text"),
            (["--flame=x.svg", "--y-size=9", "known.massif"], "--y-size goes with --png or --svg"),
            (["--title=x", "known.massif"], "--title goes with --png, --svg or --flame"),
            (["--total", "known.massif"], "--total goes with --png or --svg"),
            (["-t", "--png=x.png", "known.massif"], "--time-based and --total are for data files of memusage"),
            (["--snapshot=last", "known.massif"], "--snapshot goes with --folded, --flame or --diff"),
            (["--top=3", "known.massif"], "--top goes with --diff"),
            (["--diff", "--folded=-", "--top=3", "known.massif", "known.massif"], "--top goes with --diff"),
            (["known.massif", "known.dat"], "one file too many: known.dat"),
            (["--diff", "known.massif", "known.massif", "known.dat"], "one file too many: known.dat"),
            (["--flame=x", "--x-size=200", "known.massif"], "300 pixels"),
            (["--flame=x", "--snapshot=1", "known.massif"], "snapshot 1 has no tree"),
            (["--flame=x", "known.dat"], "neither a massif file"),
            (["--flame=x.png", "known.massif"], "--flame writes SVG"),
            (["json.txt"], "json.txt: not a massif profile"),
            (["folded.txt"], "folded.txt: not a massif profile"),
            (["--diff", "known.massif", "known.dat"], "known.dat: neither a massif file")):
        check(message in report(*args, status=255), args, "says something else")
    check("No such file" in report("--png=x.png", "absent", status=2), "absent file")
    check("cannot write" in report("--png=/nowhere/x.png", "known.massif", status=1), "unwritable")
    check("cannot write" in report("--flame=/dev/full", "known.massif", status=1), "full disk, flame")
    check("cannot write" in report("--png=/dev/full", "known.massif", status=1), "full disk, png")


def check_overwriting():
    """An output that is an input or another output, by any name, is refused, and nothing is touched."""
    before = open("known.massif", "rb").read()
    os.link("known.massif", "hard.massif")
    os.symlink("known.massif", "soft.massif")
    os.symlink("new.svg", "dangling.svg")
    open("known.tsv", "w").write("time\tpid\tVmRSS\n0.5\t1\t100\n")
    for args, message in (
            (["--png=known.massif", "known.massif"], "--png=known.massif would overwrite what is read"),
            (["--svg=./known.massif", "known.massif"], "--svg=./known.massif would overwrite"),
            (["--folded=hard.massif", "known.massif"], "--folded=hard.massif would overwrite"),
            (["--flame=soft.massif", "known.massif"], "--flame=soft.massif would overwrite"),
            (["--diff", "--flame=soft.massif", "known.dat", "known.massif"], "--flame=soft.massif would overwrite"),
            (["--png=x.png", "--rss=known.tsv", "--svg=known.tsv", "known.massif"], "--svg=known.tsv would overwrite"),
            (["--png=new.svg", "--flame=dangling.svg", "known.massif"], "--png and --flame would write the same file"),
            (["--folded=-", "--flame=-", "known.massif"], "--folded and --flame would write the same file")):
        check(message in report(*args, status=255), args, "says something else")
    with open("known.massif", "rb") as file:
        said = subprocess.run([REPORT, "--flame=known.massif", "-"], stdin=file, capture_output=True, check=False)
    check(said.returncode == 255 and b"would overwrite what is read" in said.stderr, "standard input", said)
    check(open("known.massif", "rb").read() == before and not os.path.exists("new.svg"), "something was written")
    check("%" in report("known.massif"), "the text")


def check_diff():
    text = report("--diff", "--snapshot=0", "known.massif", "known.massif")
    check(re.search(r"^ +0 +100,000 +100,000 +total$", text, re.M) and text.count("\n") == 5, "no difference", text)
    open("grown.massif", "w").write(MASSIF_HEAD + snapshot_text(0, 1, 130500, 0, tree_text(100500, 30000)))
    text = report("--diff", "--snapshot=0", "--flame=d.svg", "--folded=d.folded", "known.massif", "grown.massif")
    rows = [line.split(None, 3) for line in text.splitlines()[4:]]
    check(rows == [["+30,500", "100,000", "130,500", "total"], ["+40,500", "60,000", "100,500", "first (a.c:1)"],
                   ["-10,000", "40,000", "30,000", "second (a.c:2)"]], "rows", rows)
    check(open("d.folded").read() == "first 60000 100500\nsecond 40000 30000\n", "folded difference")
    svg = open("d.svg", encoding="utf-8").read()
    check("first (100,500 bytes, 77.01%; +40,500)" in svg and "width: bytes in NEW" in svg, "differential flame graph")
    check_vanished()
    check_unlike()


def check_vanished():
    """A path that NEW does not have is in the graph, as wide as it was."""
    open("vanished.massif", "w").write(MASSIF_HEAD + snapshot_text(0, 1, 60000, 0, tree_text(60000, 0)))
    report("--diff", "--snapshot=0", "--flame=v.svg", "known.massif", "vanished.massif")
    graph = open("v.svg", encoding="utf-8").read()
    check("second (0 bytes, 0.00%; -40,000)" in graph, "a path that has vanished")
    check(re.search(r'id="title"[^>]*>Growth of ', graph), "title of a difference")
    widths = {re.match("[a-z]+", g.find(FLAME + "title").text).group(): int(g.get("data-value"))
              for g in xml.etree.ElementTree.parse("v.svg").iter(FLAME + "g") if g.get("class") == "frame"}
    check(widths == {"all": 100000, "first": 60000, "second": 40000}, "widths of a difference", widths)


def check_unlike():
    """Profiles of unlike memory or programs are compared with a warning; two of one program without any."""
    faults = open("known.massif").read().replace("(heap allocation functions) malloc/new/new[], --alloc-fns, etc.",
                                                 "(page faults) first access to each page")
    open("faults.massif", "w").write(faults)
    open("other.massif", "w").write(re.sub(r"^cmd: .*$", "cmd: /usr/bin/other -x", open("known.massif").read(), flags=re.M))
    for new, words in (("faults", ["known.massif is a profile of heap blocks, faults.massif of page faults"]),
                       ("other", ["known.massif is a profile of ", ", other.massif of other"]), ("known", [])):
        run = subprocess.run([REPORT, "--diff", "known.massif", new + ".massif"], capture_output=True, text=True, check=False)
        check(run.returncode == 0 and all(w in run.stderr for w in words) and bool(run.stderr) == bool(words), "unlike", new, run)
    open("empty.massif", "w").write(MASSIF_HEAD + snapshot_text(0, 1, 0, 0, "n0: 0 (heap allocation functions) malloc\n"))
    report("--snapshot=0", "--flame=e.svg", "empty.massif")
    frames = [g for g in xml.etree.ElementTree.parse("e.svg").iter(FLAME + "g") if g.get("class") == "frame"]
    check(not frames and ">Nothing to draw: no bytes.</text>" in open("e.svg").read(), "an empty flame graph")


SOURCE = r"""
#include <functional>
#include <map>
#include <string>
#include <vector>
template <class T> struct tree { std::map<std::string, T> m; };
int main()
{
	tree<std::vector<std::string>> t;
	std::vector<std::function<char *(int)>> f;
	f.push_back([](int n) { return new char[n]; });
	for (int i = 0; i < 900; i++) {
		t.m["a long enough key for the heap " + std::to_string(i % 31)].push_back(std::string(40 + i, 'x'));
		if (i % 5 == 0)
			delete[] f[0](i * 3);
		f[0](i);
	}
	return 0;
}
"""


def make_files():
    """massif files by valgrind; none where it is not installed."""
    if not shutil.which("valgrind") or not shutil.which("g++"):
        print("skipped: valgrind's own files (valgrind or g++ is not installed)")
        return []
    open("prog.cc", "w").write(SOURCE)
    subprocess.run(["g++", "-g", "-O1", "-o", "prog", "prog.cc"], check=True)
    out = []
    for i, options in enumerate((["--time-unit=B"], ["--time-unit=i", "--threshold=0"], ["--stacks=yes"],
                                 ["--heap=no", "--stacks=yes"], ["--pages-as-heap=yes"], ["--depth=3", "--threshold=5"])):
        out.append(f"vg{i}.massif")
        subprocess.run(["valgrind", "-q", "--tool=massif", *options, f"--massif-out-file={out[-1]}", "./prog"], check=True)
    return out


def main():
    if not os.access(REPORT, os.X_OK):
        sys.exit(f"no program {REPORT}")
    with tempfile.TemporaryDirectory() as directory:
        os.chdir(directory)
        golden = sorted(glob.glob(os.path.join(HERE, "../golden/massif/*.massif")))
        files = golden + make_files()
        open("bytes.massif", "w").write(MASSIF_HEAD.replace("ms", "B") + snapshot_text(0, 0, 0, 0))
        for path in files:
            if not read_massif(path):
                check("no snapshot" in report("--png=x.png", path, status=255), path, "without a snapshot")
                continue
            check_folded(path)
            check_flame(path)
            check_massif_picture(path, 800, 600)
        check_massif_picture(files[-1], 1600, 900)
        check_massif_picture(files[-1], 100, 80)
        check_known_areas()
        check_dip()
        check_peak_legend()
        check_flame_title()
        check_rss()
        check_labels()
        check_short()
        check_one_scale()
        check_memusage()
        check_few()
        check_memusage_axis()
        check_total_steps()
        check_processes()
        check_errors()
        check_overwriting()
        check_diff()
        os.chdir("/")
    print(f"{count[True]} passed, {count[False]} failed")
    sys.exit(1 if count[False] else 0)


main()
