#!/usr/bin/env python3
"""The HTML report in a real browser, from a file:// URL without network: clicks, drags and keys, and every number read
from the page compared with one that is computed here from the input.

Usage: html_report.py [PTMEM_REPORT] [DIRECTORY]      DIRECTORY: where screenshots are left
The last line is "N passed, N failed"; status 1 if any failed, 77 if chromium or chromedriver is not installed.
"""
import base64
import csv
import decimal
import gzip
import io
import json
import os
import re
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import synthetic_recording  # noqa: E402
import webdriver  # noqa: E402
from recording_lib import make_objects  # noqa: E402
from report_lib import LIBRARY, NEW, OLD, PROGRAM  # noqa: E402

REPORT = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "build/ptmem-report")
SHOTS = os.path.abspath(sys.argv[2]) if len(sys.argv) > 2 else None
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
GOLDEN = os.path.join(ROOT, "tests/golden/massif")
LEFT, RIGHT, SHIFT, ENTER, ESCAPE, DOWN = "\ue012", "\ue014", "\ue008", "\ue007", "\ue00c", "\ue015"
NAMES = {"main", "stock", "shelf", "crate", "orders", "audit", "deep", "library_make"} # functions of test_diff.py
count = {True: 0, False: 0}


def check(is_good, *what):
    count[bool(is_good)] += 1
    if not is_good:
        print("FAIL", *what)


def same(name, got, wanted):
    check(got == wanted, name, got, "instead of", wanted)


# What the page must say, computed from the input.

def binary(n):
    """As the page prints bytes."""
    sign, value, units = "\u2212" if n < 0 else "", abs(n), ["B", "KiB", "MiB", "GiB"]
    while value >= 1023.5 and len(units) > 1:
        value /= 1024
        units.pop(0)
    if units[0] == "B":
        return f"{sign}{value} B"
    digits = 0 if value >= 100 else 1 if value >= 10 else 2
    # a half, as 31.25 MiB of whole pages, is rounded up by JavaScript
    rounded = decimal.Decimal(value).quantize(decimal.Decimal(1).scaleb(-digits), decimal.ROUND_HALF_UP)
    return f"{sign}{rounded} {units[0]}"


def exact(n):
    return f"{abs(n):,} bytes" if n >= 0 else f"\u2212{abs(n):,} bytes"


def read_massif(path):
    """Snapshots as dicts; tree: {stack, outermost function first: bytes}."""
    lines, snapshots, i = open(path).read().split("\n"), [], 0

    def tree(stack, out):
        nonlocal i
        children, size, text = re.match(r" *n(\d+): (\d+) (.*)", lines[i]).groups()
        i += 1
        name = re.sub(r"^0x[0-9A-F]+: | \([^()]*\)$", "", text)
        stack = [name] + stack if text.startswith("0x") else ["[below threshold]"] + stack if text.startswith("in ") else stack
        own = int(size) - sum(tree(stack, out) for _ in range(int(children)))
        if own:
            out[tuple(stack)] = out.get(tuple(stack), 0) + own
        return int(size)

    while i < len(lines):
        key, _, value = lines[i].partition("=")
        i += 1
        if key == "snapshot":
            snapshots.append({"tree": None})
        elif key in ("time", "mem_heap_B", "mem_heap_extra_B", "mem_stacks_B"):
            snapshots[-1][key] = int(value)
        elif key == "heap_tree":
            snapshots[-1]["kind"] = value
            if value != "empty":
                snapshots[-1]["tree"] = {}
                tree([], snapshots[-1]["tree"])
    return snapshots


class Recording:
    """A recording by the rules of doc/format.md, one cell at a time."""

    def __init__(self, data):
        self.data = data
        self.cells = list(zip(*(data["cells"][k] for k in ("leaf", "born", "died", "blocks", "bytes"))))
        self.stacks = [self.stack(n) for n in data["leaves"]["node"]]

    def stack(self, node):
        out, frames, nodes = [], self.data["frames"], self.data["nodes"]
        while node >= 0:
            f = nodes["frame"][node]
            out.insert(0, (frames["function"][f], frames["kind"][f]))
            node = nodes["parent"][node]
        return out

    def sums(self, first, last, at):
        """{leaf: [bytes, blocks]} allocated in [first, last] and live at the end of at."""
        out = {}
        for leaf, born, died, blocks, size in self.cells:
            if first <= born <= last and (died < 0 or died > at):
                s = out.setdefault(leaf, [0, 0])
                s[0] += size
                s[1] += blocks
        return out

    def total(self, *range_):
        sums = self.sums(*range_).values()
        return sum(s[0] for s in sums), sum(s[1] for s in sums)

    def matched(self, sums, pattern):
        return sum(s[0] for leaf, s in sums.items() if any(re.search(pattern, f[0], re.I) for f in self.stacks[leaf]))

    def inclusive(self, sums):
        out = {}
        for leaf, s in sums.items():
            for name in {f[0] for f in self.stacks[leaf]}:
                out[name] = out.get(name, 0) + s[0]
        return out


class Page(webdriver.Browser):
    def open(self, url):
        self.call("POST", "/url", {"url": "about:blank"})
        self.call("POST", "/url", {"url": url})
        self.wait("document.querySelector('#panel tr')")
        if "tab=" not in url:
            check(self.js("return document.querySelector('#tabs :first-child').ariaSelected") == "true", "Call sites is the first tab")
            self.press("#tab-functions") # most checks are about its rows

    def size(self, width, height):
        self.call("POST", "/window/rect", {"width": width, "height": height})
        # a window has at least 500 pixels, the page in it may have less
        self.wait(f"(Math.abs(outerWidth - {width}) < 2 || {width} < 500) && Math.abs(innerWidth - {width}) < 40")

    def facts(self):
        return dict(self.js("""return [...document.querySelectorAll('#facts div')].map(d =>
            [d.querySelector('dt').textContent, d.querySelector('dd').textContent])"""))

    def sum(self):
        """The selected bytes, exactly."""
        return self.js("return document.getElementById('sum').title")

    def rows(self, selector="tbody tr:not(.details)"):
        return self.js("""return [...document.querySelectorAll('#panel ' + arguments[0])].map(tr =>
            [...tr.children].map(td => td.querySelector('.function')?.title ?? td.textContent))""", selector)

    def press(self, selector):
        self.js("document.querySelector(arguments[0]).click()", selector)

    def type(self, selector, text, event="input"):
        self.js("""const e = document.querySelector(arguments[0]); e.value = arguments[1];
            e.dispatchEvent(new Event(arguments[2], {bubbles: true}))""", selector, text, event)

    def x_of(self, share):
        """Where on the screen the timeline is at @share of its length, and its y."""
        left, right, rect = self.js("""const c = document.getElementById('timeline'), r = c.getBoundingClientRect();
            c.scrollIntoView({block: 'center'}); const s = c.getBoundingClientRect();
            return [Number(c.dataset.left), Number(c.dataset.right), [s.left, s.top]]""")
        return rect[0] + left + share * (right - left), rect[1] + 80

    def frame(self, row, share):
        """The place of the flame graph in row @row at @share of the width."""
        x, y, width = self.js("""const c = document.getElementById('flame'); c.scrollIntoView({block: 'center'});
            const r = c.getBoundingClientRect(); return [r.left, r.top, r.width]""")
        return x + share * width, y + row * 18 + 9

    def tip(self):
        return self.js("""const t = document.getElementById('tip'); return t.hidden ? null : [t.querySelector('strong').textContent,
            Object.fromEntries([...t.querySelectorAll('dt')].map(d => [d.textContent, d.nextSibling.textContent]))]""")

    def errors(self):
        return [e["message"] for e in self.call("POST", "/se/log", {"type": "browser"}) if e["level"] == "SEVERE"]


# Massif files.

def check_massif(p, path, url):
    snapshots = read_massif(path)
    times = [s["time"] for s in snapshots]
    trees = [i for i, s in enumerate(snapshots) if s["tree"] and times.count(s["time"]) == 1]
    total = [s["mem_heap_B"] + s["mem_heap_extra_B"] + s["mem_stacks_B"] for s in snapshots]
    peak = next(i for i, s in enumerate(snapshots) if s["kind"] == "peak")
    end = snapshots[-1]["time"]
    p.open(url)
    facts = p.facts()
    same("peak", facts["peak"], binary(total[peak]))
    same("end", facts["live at the end"], binary(total[-1]))
    same("snapshots", facts["snapshots"], str(len(snapshots)))
    same("peak's bytes", p.sum(), exact(sum(snapshots[peak]["tree"].values())))
    for i in trees:
        p.pointer(("move", *p.x_of(snapshots[i]["time"] / end)), "down", "up")
        same(f"bytes of snapshot {i}", p.sum(), exact(sum(snapshots[i]["tree"].values())))
    check_massif_range(p, snapshots, trees, end)
    check_massif_steps(p)
    same("loaded from elsewhere", p.js("return performance.getEntriesByType('resource').length"), 0)


def check_massif_range(p, snapshots, trees, end):
    a, b = trees[1], trees[-2]
    x, y = p.x_of(snapshots[a]["time"] / end)
    p.pointer(("move", x, y), "down", ("move", x + 30, y), ("move", *p.x_of(snapshots[b]["time"] / end)), "up")
    grown = sum(snapshots[b]["tree"].values()) - sum(snapshots[a]["tree"].values())
    same("growth between snapshots", p.sum(), exact(grown))
    by_function = {}
    for i, sign in ((b, 1), (a, -1)):
        for stack, size in snapshots[i]["tree"].items():
            for name in set(stack):
                by_function[name] = by_function.get(name, 0) + sign * size
    wanted = sorted((n, binary(v)) for n, v in by_function.items() if v)
    got = sorted((r[0], r[2].split("B")[0] + "B") for r in p.rows())
    same("growth by function", got, wanted)


def check_massif_steps(p):
    """Between snapshots with a tree the shares are those of the last one, and curves are steps."""
    wrong = p.js("""const { rows, names } = ptmem.areas, { stops, intervals } = ptmem.profile, wrong = [];
        const heap = rows.filter((row, k) => !/^(stacks|overhead)/.test(names[k])), sum = (i) => heap.reduce((s, row) => s + row[i], 0);
        for (let i = stops[0], last = i; i < intervals; i++) {
            last = stops.includes(i) ? i : last;
            heap.forEach((row, k) => { if (Math.abs(row[i] * sum(last) - row[last] * sum(i)) > 1e-6 * sum(i) * sum(last)) wrong.push([i, k]); });
        }
        const points = ptmem.timeline.points(rows[0], ptmem.profile.time);
        return wrong.concat(points.filter((p, i) => i && p[i % 2 ? 1 : 0] !== points[i - 1][i % 2 ? 1 : 0]))""")
    same("areas that are no steps", wrong, [])


# Recordings.

def embed(page, data):
    """@page with another profile."""
    text = base64.b64encode(gzip.compress(json.dumps(data).encode(), 6, mtime=0)).decode()
    return re.sub(r'(<script type="text/plain" id="profile">).*?(</script>)', lambda m: m[1] + text + m[2], page, count=1,
                  flags=re.S)


def check_moments(p, r):
    intervals = len(r.data["timeline"]["time"])
    same("peak", p.sum(), exact(r.data["peak"]["bytes"]))
    for i in (0, 7, 23, intervals - 2, intervals - 1):
        p.pointer(("move", *p.x_of((i + 1) / intervals)), "down", "up")
        size, blocks = r.total(0, i, i)
        same(f"live at {i}", p.sum(), exact(size))
        check(f" in {blocks:,} block" in p.text("sum"), f"blocks at {i}", p.text("sum"), blocks)
        same("timeline agrees", size, r.data["timeline"]["live_bytes"][i])


def check_ranges(p, r):
    intervals = len(r.data["timeline"]["time"])
    for a, b in ((3, 20), (10, 11), (30, 58)):
        x, y = p.x_of((a + 1) / intervals)
        p.pointer(("move", x, y), "down", ("move", x + 9, y), ("move", *p.x_of((b + 1) / intervals)), "up")
        same(f"growth {a}..{b}", p.sum(), exact(r.total(a, b, b)[0]))
    p.js("document.getElementById('timeline').focus()")
    p.keys(RIGHT)
    same("range moved by a key", p.sum(), exact(r.total(31, 59, 59)[0]))
    p.keys(SHIFT, LEFT)
    same("range made shorter", p.sum(), exact(r.total(31, 58, 58)[0]))
    p.press("#mode [data-value=live]")
    same("live at the end of the range", p.sum(), exact(r.total(0, 58, 58)[0]))
    p.keys("p")
    same("back to the peak", p.sum(), exact(r.data["peak"]["bytes"]))


def check_flame(p, r):
    peak = r.data["peak"]
    sums = {leaf: [b] for leaf, b in zip(peak["leaf"], peak["bytes_of"])}
    p.pointer(("move", *p.frame(3, 0.5)))
    name, facts = p.tip()
    same("frame under the pointer", (name, facts["bytes"]), ("main", f"{binary(peak['bytes'])} ({peak['bytes']:,})"))
    same("blocks of a frame", facts["blocks"], f"{peak['blocks']:,}")
    p.pointer(("move", *p.frame(4, 0.4)))
    name, facts = p.tip()
    held = sum(s[0] for leaf, s in sums.items() if r.stacks[leaf][3][0] == name)
    same(f"bytes of {name}", facts["bytes"], f"{binary(held)} ({held:,})")
    p.pointer("down", "up")
    same("zoomed", p.js("return [...document.querySelectorAll('#crumbs button')].map(b => b.title)")[1:],
         ["_start", "__libc_start_main", "main", name])
    p.js("document.getElementById('flame').focus()")
    p.keys(ESCAPE)
    same("not zoomed", p.js("return document.querySelectorAll('#crumbs button').length"), 0)
    p.keys(DOWN)
    p.keys(DOWN)
    check(p.text("flame-status").startswith("_start: "), "frame by keys", p.text("flame-status"))
    p.keys(ENTER)
    same("zoomed by keys", p.js("return document.querySelectorAll('#crumbs button').length"), 2)
    p.press("#crumbs button")
    for text, pattern in (("parse", "parse"), ("/^(load|store)_/", "^(load|store)_"), ("push_back(", r"push_back\(")):
        p.type("#find", text)
        same(f"matched {text}", p.text("matched").split(" (")[0], f"Matched {binary(r.matched(sums, pattern))}")
    p.press("#direction [data-value=up]")
    same("matched bottom-up", p.text("matched").split(" (")[0], f"Matched {binary(r.matched(sums, r'push_back[(]'))}")
    p.type("#find", "")
    p.press("#direction [data-value=down]")
    p.press("#hide")
    p.pointer(("move", *p.frame(1, 0.5)))
    same("runtime is hidden", p.tip()[0], "main")
    p.press("#hide")


def check_tables(p, r):
    peak = r.data["peak"]
    inclusive = r.inclusive({leaf: [b] for leaf, b in zip(peak["leaf"], peak["bytes_of"])})
    top = sorted(inclusive.items(), key=lambda x: -x[1])[:50]
    p.press("[data-sort=inclusive]")
    rows = p.rows()
    same("inclusive", sorted(v for v in (row[2].split("B")[0] + "B" for row in rows)), sorted(binary(v) for _, v in top))
    for row in rows:
        same(f"inclusive of {row[0]}", row[2].split("B")[0] + "B", binary(inclusive[row[0]]))
    p.press("[data-sort=name]")
    same("sorted by name", [row[0] for row in p.rows()], sorted(inclusive)[:50])
    p.press("[data-sort=name]")
    same("sorted by name, down", [row[0] for row in p.rows()], sorted(inclusive, reverse=True)[:50])
    p.type("#find", "cache")
    check(all("cache" in row[0] for row in p.rows()) and len(p.rows()) > 3, "filtered", p.rows())
    p.press("#panel .twist")
    check(p.js("return document.querySelectorAll('#panel tr.details h3').length") == 6, "an opened row")
    p.type("#find", "")


def check_tabs(p, r):
    data, leaves = r.data, r.data["leaves"]
    p.press("#tab-threads")
    by_thread = {}
    for rows in leaves["threads"]:
        for thread, blocks, size in rows:
            s = by_thread.setdefault(thread, [0, 0])
            s[0] += size
            s[1] += blocks
    wanted = sorted([data["threads"][t]["name"], binary(s[0]), f"{s[1]:,}"] for t, s in by_thread.items())
    same("threads", sorted(p.rows()), wanted)
    p.press("#tab-sizes")
    same("sizes", sum(int(row[1].replace(",", "")) for row in p.rows()), sum(sum(h[1:]) for h in leaves["sizes"]))
    p.press("#tab-temporary")
    p.press("#panel .more button")
    p.press("#panel .more button")
    same("temporary", sum(int(row[1].replace(",", "")) for row in p.rows()), sum(leaves["temporary"]))
    p.press("#tab-leaks")
    p.press("#panel .more button")
    p.press("#panel .more button")
    last = len(data["timeline"]["time"]) - 1
    same("live at the end", sum(int(row[2].replace(",", "")) for row in p.rows()), r.total(0, last, last)[1])
    p.press("#tab-functions")
    p.press("#mode [data-value=allocated]")
    same("allocated", p.sum(), exact(sum(leaves["bytes"])))
    p.press("#mode [data-value=temporary]")
    same("temporary allocations", p.text("sum"), f"{sum(leaves['temporary']):,}")
    p.press("#mode [data-value=live]")


def check_address(p, r, url):
    """The address contains the view; invalid parts are ignored."""
    p.open(url + "#at=10-40&mode=growth&dir=up&find=parse&tab=sites&sort=-name&unit=blocks")
    same("range by address", p.sum(), exact(r.total(10, 40, 40)[0]))
    same("tab by address", p.js("return document.querySelector('[role=tab][aria-selected=true]').textContent"), "Call sites")
    same("order by address", p.js("return document.querySelector('th[aria-sort]').getAttribute('aria-sort')"), "descending")
    address = p.js("return location.href")
    p.press("#mode [data-value=live]")
    p.open(address)
    same("the same view", (p.sum(), p.js("return document.getElementById('find').value")),
         (exact(r.total(10, 40, 40)[0]), "parse"))
    p.open(url + "#at=99999-4&mode=x&zoom=1.x.77777&tab=none&sort=nothing&unit=feet&stack=sky&dir=sideways&find=/((/")
    check(p.sum(), "nonsense in the address", p.sum())


def check_evil(p, url):
    """Names that contain markup are shown as text."""
    p.open(url + "#tab=sites")
    p.type("#find", "script")
    p.press("#panel .twist")
    p.pointer(("move", *p.frame(9, 0.3)))
    check("</script>" in p.js("return document.title") and "</script>" in p.rows()[0][0], "names", p.rows()[:1])
    same("elements by markup in names", p.js("return document.querySelectorAll('img, b').length"), 0)


def check_diff(p, new, old, url):
    p.open(url)
    value = {side: Recording(data) for side, data in (("new", new), ("old", old))}
    sums = {side: r.inclusive(dict((leaf, [b]) for leaf, b in zip(r.data["peak"]["leaf"], r.data["peak"]["bytes_of"])))
            for side, r in value.items()}
    p.press("[data-sort=change]")
    rows = p.rows()
    for row in rows[:20]:
        a, b = sums["new"].get(row[0], 0), sums["old"].get(row[0], 0)
        same(f"change of {row[0]}", (row[2].split("B")[0] + "B", row[3], row[4]),
             (binary(a), binary(b), ("+" if a > b else "") + binary(a - b)))
    changes = sorted((sums["new"].get(n, 0) - sums["old"].get(n, 0) for n in set(sums["new"]) | set(sums["old"])), reverse=True)
    same("largest changes", [row[4] for row in rows[:10]], [("+" if c > 0 else "") + binary(c) for c in changes[:10]])
    check("before: " + binary(old["peak"]["bytes"]) in p.text("selection"), "sum of before", p.text("selection"))


def match(old, new):
    """The output of ptmem-report: functions and call sites by name, with lines."""
    names, sites, out = {}, {}, {}
    for side, data in (("old", old), ("new", new)):
        f = data["frames"]
        out[side] = {"function": [], "site": []}
        for function, file, line in zip(f["function"], f["file"], f["line"]):
            fn = names.setdefault(function or "[unnamed]", len(names))
            out[side]["function"].append(fn)
            out[side]["site"].append(sites.setdefault((fn, file, line), len(sites)))
    return {"functions": list(names), **out}


def make_build(directory, names, name):
    """A program of test_diff.py and a recording of it: its path, and the program's source."""
    os.mkdir(directory)
    source = PROGRAM % names
    write(directory, "store.c", source)
    write(directory, "part.c", LIBRARY % names)
    for command in (["gcc", "-O0", "-fPIC", "-shared", "-fvisibility=hidden", "-o", "libpart.so", "part.c"], ["strip", "libpart.so"],
                    ["gcc", "-g", "-O0", "-fno-builtin", "-o", name, "store.c", "./libpart.so", "-Wl,-rpath," + directory],
                    [os.path.join(os.path.dirname(REPORT), "ptmem"), "-q", "--no-rc", "--record=r", "--massif-out-file=m",
                     "--detailed-freq=1", "./" + name]):
        subprocess.run(command, cwd=directory, check=True, stdout=subprocess.DEVNULL)
    return source


def check_builds(p, directory):
    """Two builds with moved lines: only what changed is shown as changed."""
    old, new = f"{directory}/first", f"{directory}/second"
    make_build(old, OLD, "store")
    lines = make_build(new, NEW, "store-new").splitlines()
    crate = next(i for i, line in enumerate(lines, 1) if "line of crate" in line)
    shelf = [i for i, line in enumerate(lines, 1) if "calloc(1" in line or "realloc(NULL" in line]
    for kind in "rm":
        page = f"{directory}/builds-{kind}.html"
        subprocess.run([REPORT, "--diff", f"--html={page}", f"{old}/{kind}", f"{new}/{kind}"], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        p.open(f"file://{page}#tab=functions&sort=-change")
        same("functions that changed", {r[0]: r[4] for r in p.rows() if r[4] != "0 B" and r[0] in NAMES},
             {"main": "+3.25 KiB", "crate": "+3.25 KiB", "audit": "+1.95 KiB", "orders": "+1.30 KiB"})
        check(NAMES <= {r[0] for r in p.rows()}, "functions", p.rows())
        p.open(f"file://{page}#tab=sites&sort=-change")
        same("call sites that changed", {r[0]: r[3] for r in p.rows() if r[3] != "0 B"}, {"crate": "+3.25 KiB"})
        places = p.js("return [...document.querySelectorAll('#panel th.name')].map(e => [...e.querySelectorAll('span')].map(s => s.textContent))")
        same("call sites", sorted(places), sorted([["crate", f"store.c:{crate}"], ["shelf", "store.c:%d, %d" % tuple(shelf)],
                                                   ["library_make", "libpart.so"]]))
        if SHOTS:
            p.screenshot(f"{SHOTS}/report-builds-{kind}.png")


def check_layout(p, url):
    """Three sizes of the window, light and dark: nothing is wider than the page, and no button is cut off."""
    for width, height in ((1600, 1000), (1100, 800), (520, 900)):
        p.size(width, height)
        for theme in ("light", "dark"):
            p.open(f"{url}#theme={theme}")
            same(f"theme {theme}", p.js("return document.documentElement.dataset.theme"), theme)
            wide = p.js("""const w = document.documentElement.clientWidth; return [document.documentElement.scrollWidth - w,
                ...[...document.querySelectorAll('button, select, canvas, input')].filter(e => e.offsetParent &&
                !e.closest('#panel') && e.getBoundingClientRect().right > w + 1).map(e => e.outerHTML)]""")
            same(f"too wide at {width}", wide, [0])
            check(p.js("""const c = document.getElementById('flame'), d = c.getContext('2d').getImageData(0, 0, c.width, 40).data;
                return new Set(d).size > 8"""), "an empty flame graph", width, theme)
            if SHOTS:
                p.screenshot(f"{SHOTS}/report-{width}-{theme}.png")
    p.size(1300, 900)


def check_narrow(p, r, directory, page):
    """Long names at 420 pixels: each call site's last identifier and its source line can be read, also in legend and details."""
    data = json.loads(json.dumps(r.data))
    plain = data["frames"]["function"]
    table = "std::map<std::string, std::vector<std::pair<int, int> > >"
    data["frames"]["function"] = [f and f"{table} forest::of<{table}>::{re.split('[<(]', f)[0].split('::')[-1]}({table} const&)" for f in plain]
    p.size(420, 900)
    p.open(write(directory, "narrow.html", embed(page, data)) + "#tab=sites")
    seen = p.js("""return [...document.querySelectorAll('#panel tbody tr')].map(tr => {
        const name = tr.querySelector('.function'), where = tr.querySelector('.where'), cell = name.closest('th');
        return [name.title, name.textContent, where?.textContent, cell.scrollWidth <= cell.clientWidth,
            (where || name).getBoundingClientRect().right <= innerWidth]})""")
    check(len(seen) > 5, "narrow rows", seen)
    for title, text, where, is_whole, is_visible in seen:
        last = title.split(">::")[-1].split("(")[0]
        check(last in text or last.startswith(text.strip("\u2026:")), "a short name", title, text)
        check(is_whole and is_visible and re.search(r":\d+", where), "a place that is seen", title, where)
    legend = p.js("return [...document.querySelectorAll('#areas li')].map(li => [li.title, li.lastChild.textContent, "
                  "li.lastChild.scrollWidth <= li.lastChild.clientWidth])")
    for title, text, is_whole in legend:
        check(is_whole and len(text) <= 44, "legend", title, text)
    p.press("#panel .twist")
    cut = p.js("return [...document.querySelectorAll('.details .place')].filter(e => e.scrollWidth > e.clientWidth || "
               "e.getBoundingClientRect().right > e.closest('li').getBoundingClientRect().right).map(e => e.textContent)")
    same("places that are cut off", cut, [])
    same("places", p.js("return document.querySelectorAll('.details .place').length > 0"), True)
    if SHOTS:
        p.js("document.getElementById('tables').scrollIntoView()")
        p.screenshot(f"{SHOTS}/report-420.png")
    p.size(1300, 900)


def check_my_code(p, r, directory, page):
    """The page's fields: call sites, legend and colours follow; the address has them."""
    kinds = r.data["frames"]["kind"]
    frames = dict(r.data["frames"], rank=[0 if k < 2 else 2 for k in kinds], role=[3 if k == 2 else 0 for k in kinds])
    url = write(directory, "mine.html", embed(page, dict(r.data, frames=frames)))

    def state():
        sites = {(row[0], row[1]) for row in p.rows()}
        return sites, p.js("return [ptmem.areas.names.join(), [...document.querySelectorAll('#kinds li')].map(e => e.title).join()]")

    p.open(url + "#tab=sites")
    before, legend = state()
    function = p.rows()[0][0]
    file = p.js("""return ptmem.names.frames.find(f => ptmem.names.functions[f.fn].name === arguments[0]).file""", function)
    p.js("document.getElementById('my-code').open = true")
    p.type("#other", file, "change")
    after, new_legend = state()
    check(function in {row[0] for row in before} and function not in {row[0] for row in after}, "not mine", file, function)
    check(legend != new_legend, "legend", legend)
    address = p.js("return location.href")
    p.type("#mine", file.split("/")[-1], "change")
    check(function in {row[0] for row in state()[0]}, "an exception", file)
    p.open(address)
    p.press("#tab-sites")
    same("by the address", state(), (after, new_legend))
    p.type("#other", "", "change")
    same("as before", state(), (before, legend))


def check_accessibility(p):
    nameless = p.js("""return [...document.querySelectorAll('button, input, select, canvas')].filter(e =>
        !(e.textContent.trim() || e.getAttribute('aria-label') || e.title || (e.labels && e.labels.length)))
        .map(e => e.outerHTML)""")
    same("without a name", nameless, [])
    same("printed", base64.b64decode(p.call("POST", "/print", {}))[:5], b"%PDF-")


def write(directory, name, text):
    with open(f"{directory}/{name}", "w") as f:
        f.write(text)
    return f"file://{directory}/{name}"


def check_recordings(p, directory, page):
    data = synthetic_recording.make()
    r, url = Recording(data), write(directory, "recording.html", embed(page, data))
    p.open(url)
    same("title", p.text("command"), data["meta"]["command"])
    for part in (check_moments, check_ranges, check_flame, check_tables, check_tabs):
        part(p, r)
    check_accessibility(p)
    check_address(p, r, url)
    check_leaked(p, r, directory, page)
    check_cold(p, r, directory, page)
    check_zoom_in_time(p, r, directory, page)
    check_rows_elsewhere(p, r, directory, page)
    check_releases(p, r, directory, page)
    check_asked(p, r, directory, page)
    check_layout(p, url)
    check_narrow(p, r, directory, page)
    check_my_code(p, r, directory, page)
    check_evil(p, write(directory, "evil.html", embed(page, synthetic_recording.make(evil=True))))
    old = synthetic_recording.make(scale=0.7)
    diff = {"format": "ptmem-report-diff", "version": 1, "old": old, "new": data, "match": match(old, data)}
    check_diff(p, data, old, write(directory, "diff.html", embed(page, diff)))


def check_leaked(p, r, directory, page):
    """A flame graph of what is lost; without a leak check there is none."""
    same("no leaks, no button", p.js("return document.querySelector('#mode [data-value=leaked]')"), None)
    kinds = ["definite", "reachable", "indirect", "possible"] * 10
    leaks = {"leaf": list(range(40)), "kind": kinds, "blocks": [i + 1 for i in range(40)], "bytes": [64 * (i + 1) for i in range(40)]}
    p.open(write(directory, "leaked.html", embed(page, dict(r.data, leaks=leaks))))
    p.press("#mode [data-value=leaked]")
    same("lost bytes", p.sum(), exact(sum(64 * (i + 1) for i in range(40) if kinds[i] != "reachable")))
    check("mode=leaked" in p.js("return location.hash"), "the address has it")


def check_cold(p, r, directory, page):
    """What --cold found: a column of the call sites, and a flame graph."""
    same("not looked for", p.js("return document.querySelector('#mode [data-value=cold]')"), None)
    leaves = range(0, 40, 3)
    found = {"leaf": list(leaves), "bytes": [100 * (i + 1) for i in leaves], "at_least": [64 * (i + 1) for i in leaves],
             "at_most": [90 * (i + 1) for i in leaves]}
    inspection = {"time": 1, "untouched": found}
    p.open(write(directory, "cold.html", embed(page, dict(r.data, inspection=inspection))) + "#tab=sites")
    column = p.rows("thead tr")[0].index("Not touched")
    sites = p.js("""const s = ptmem.stacks, out = {};
        arguments[0].leaf.forEach((leaf, k) => {
            const f = s.names.frames[s.site[leaf]], name = s.names.functions[f.fn].name;
            out[s.site[leaf]] = [name, (out[s.site[leaf]] || [0, 0])[1] + arguments[0].at_least[k]];
        });
        return Object.values(out)""", found)
    while p.js("return !!document.querySelector('#panel .more button')"):
        p.press("#panel .more button")
    shown = sorted(row[column] for row in p.rows() if row[column] not in ("", "0 B"))
    live = {row[0] for row in p.rows()}
    same("bytes by call site", shown, sorted(binary(size) for name, size in sites if name in live))
    p.press("#mode [data-value=cold]")
    same("bytes not touched", p.sum(), exact(sum(found["at_least"])))
    check("mode=cold" in p.js("return location.hash"), "the address has it")


def check_rows_elsewhere(p, r, directory, page):
    """Rows as CSV, all of them and as numbers; source lines lead to an editor, and to nothing else."""
    frames = dict(r.data["frames"], file=[f and "/src/" + f for f in r.data["frames"]["file"]])
    p.open(write(directory, "rows.html", embed(page, dict(r.data, frames=frames))))
    p.press("#tab-sites")
    p.type("#find", "cache")
    p.js("window.copied = null; navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    p.press("#panel .copy button")
    p.wait("window.copied")
    rows = list(csv.reader(io.StringIO(p.js("return window.copied"), newline="")))
    same("rows of CSV", len(rows) - 1, len(p.rows()))
    names = [row[rows[0].index(next(h for h in rows[0] if "site" in h.lower() or "function" in h.lower()))] for row in rows[1:]]
    same("names", names, [row[0].rsplit(" (", 1)[0] if row[0].endswith(")") and ":" in row[0] else row[0] for row in p.rows()])
    same("fields that are formulas", p.js("return [csvField('=1+1'), csvField('a\"b'), csvField(1.5), csvField(null)]"),
         ["\"'=1+1\"", "\"a\"\"b\"", "1.5", "\"\""])
    p.type("#find", "")
    same("no links yet", p.js("return document.querySelectorAll('#panel a.where').length"), 0)
    p.type("#editor", "vscode://file/{file}:{line}", "change")
    links = p.js("return [...document.querySelectorAll('#panel a.where')].map(a => a.getAttribute('href'))")
    check(links and all(re.fullmatch(r"vscode://file//.+:\d+", link) for link in links), "links of an editor", links)
    for bad in ("javascript:alert(1)", " javascript:alert(1)", "data:text/html,{file}", "{file}"):
        p.type("#editor", bad, "change")
        same("links of " + bad, p.js("return document.querySelectorAll('#panel a.where').length"), 0)
    p.type("#editor", "", "change")
    same("a name with special characters", p.js("return editorLink('x://{file}:{line}', '/a b/c?#.c', 7)"), "x:///a%20b/c%3F%23.c:7")


def check_zoom_in_time(p, r, directory, page):
    """The timeline shows the selected range alone; clicks select what is under them there; the address has it."""
    p.open(write(directory, "zoom.html", embed(page, r.data)) + "#at=10-19&mode=growth")
    grown = p.sum()
    p.keys("z")
    same("button", p.text("span"), "Show the whole time")
    same("the selection stays", p.sum(), grown)
    check("span=10-19" in p.js("return location.hash"), "the address has it", p.js("return location.hash"))
    def click(share):
        p.pointer(("move", *p.x_of(share)), "down", "up")

    for interval in (10, 15, 19):
        click((interval - 9) / 10)
        same("moment at %d" % interval, p.sum(), exact(r.total(0, interval, interval)[0]))
    p.open(p.js("return location.href"))
    click(0.6)
    same("after it is loaded again", p.sum(), exact(r.total(0, 15, 15)[0]))
    p.press("#span")
    click(1)
    last = len(r.data["timeline"]["time"]) - 1
    same("the whole time again", p.sum(), exact(r.total(0, last, last)[0]))
    p.open(write(directory, "zoom.html", embed(page, r.data)) + "#span=7-99999")
    same("a range that is not there", p.js("return document.getElementById('span').hidden"), True)


def check_asked(p, r, directory, page):
    """The page opens with the view that ptmem-report's options select; a new selection is stored in the address."""
    def open_with(**view):
        p.open(write(directory, "asked.html", embed(page, dict(r.data, view=view))))

    open_with(quantity="growth", first=3, last=20)
    same("range that was asked for", p.sum(), exact(r.total(3, 20, 20)[0]))
    same("its mode", p.js("return document.querySelector('#mode [data-value=growth]').getAttribute('aria-pressed')"), "true")
    p.keys("p")
    p.press("#mode [data-value=live]")
    same("the peak instead", p.sum(), exact(r.data["peak"]["bytes"]))
    url = p.js("return location.href")
    p.open(url)
    same("after it is loaded again", p.sum(), exact(r.data["peak"]["bytes"]))
    open_with(quantity="live", last=7, match="^(load|store)_")
    same("moment that was asked for", p.sum(), exact(r.total(0, 7, 7)[0]))
    check("Only call paths that match ^(load|store)_ are shown" in p.text("warnings"), "the head says so", p.text("warnings"))


def check_releases(p, r, directory, page):
    """The table of releases by call site; without --free-stacks there is no tab."""
    same("no tab", p.js("return document.querySelector('#tab-releases')"), None)
    leaves, sites = (r.data["leaves"][name][:40] for name in ("node", "site"))
    releases = {"node": leaves + [-1], "site": sites + [-1], "blocks": list(range(1, 42)), "bytes": [64 * i for i in range(1, 42)]}
    p.open(write(directory, "releases.html", embed(page, dict(r.data, releases=releases))) + "#tab=releases")
    p.press("#tab-releases")
    wanted = {}
    for node, blocks in zip(releases["node"], releases["blocks"]):
        stack = r.stack(node)
        site = next((f[0] for f in reversed(stack) if f[1] < 2), stack[0][0] if stack else "[no stack]")
        wanted[site] = wanted.get(site, 0) + blocks
    found = {}
    for row in p.rows():
        name = row[0].rsplit(" (", 1)[0]
        found[name] = found.get(name, 0) + int(row[2].replace(",", ""))
    same("released blocks", found, wanted)
    p.press("#panel .twist")
    check("Called by" in p.js("return document.querySelector('#panel tr.details').textContent"), "callers")


def check_run(p, directory):
    """The page of a real program."""
    page = f"{directory}/run.html"
    program = """import threading; x = [str(i) * 50 for i in range(20000)]
t = threading.Thread(target=lambda: x.extend(str(i) * 40 for i in range(9000))); t.start(); t.join()"""
    subprocess.run([os.path.join(os.path.dirname(REPORT), "ptmem"), "-q", "--no-rc", f"--html={page}", f"--record={directory}/run",
                    f"--massif-out-file={directory}/run.massif", sys.executable, "-c", program],
                   check=True, env={**os.environ, "PYTHONMALLOC": "malloc"})
    with open(page) as f:
        text = re.search(r'id="profile">(.*?)</script>', f.read(), re.S)[1]
    data = json.loads(gzip.decompress(base64.b64decode(text)))
    r, intervals = Recording(data), len(data["timeline"]["time"])
    p.open(f"file://{page}")
    same("peak of a run", p.sum(), exact(data["peak"]["bytes"]))
    same("allocations of a run", p.js("return document.querySelectorAll('#facts div')[3].title"), f"{data['end']['allocations']:,}")
    for i in (intervals // 3, intervals // 2, intervals - 1):
        p.open(f"file://{page}#at={i}")
        same(f"live at {i} of a run", p.sum(), exact(r.total(0, i, i)[0]))
        same("timeline of a run", r.total(0, i, i)[0], data["timeline"]["live_bytes"][i])
    p.open(f"file://{page}#at={intervals // 4}-{intervals // 2}&mode=growth")
    same("growth of a run", p.sum(), exact(r.total(intervals // 4, intervals // 2, intervals // 2)[0]))
    check_questions(p, r, f"{directory}/run")


def check_memory(p, directory):
    """What --inspect found: bar, map and lists; a run without it has no tab."""
    page = f"{directory}/memory.html"
    program = "k = [bytes(n) for n in (40, 100, 900, 5000) * 2000]; k = k[::9]"
    subprocess.run([os.path.join(os.path.dirname(REPORT), "ptmem"), "-q", "--no-rc", "--inspect-at-exit", f"--html={page}",
                    f"--inspect-out={directory}/memory.json", f"--massif-out-file={directory}/memory.massif", sys.executable, "-c",
                    program + "; import os; os._exit(0)"], check=True,
                   env={**os.environ, "PYTHONMALLOC": "malloc"})
    with open(page) as f:
        text = f.read()
    data = json.loads(gzip.decompress(base64.b64decode(re.search(r'id="profile">(.*?)</script>', text, re.S)[1])))
    n = data["inspection"]
    p.open(f"file://{page}")
    p.press("#tab-memory")
    total = sum(n["rows"]["resident"])
    check(f"{binary(total)} were resident" in p.text("memory"), "the sentence", p.text("memory")[:200])
    wanted = [[name, exact(size)] for name, size in zip(n["rows"]["text"], n["rows"]["resident"])] + [["all: VmRSS", exact(total)]]
    same("rows", p.js("""return [...document.querySelectorAll('#memory tbody tr')].map(tr =>
        [tr.children[0].textContent, tr.children[1].title])"""), wanted)
    widths = p.js("""return [...document.querySelectorAll('.membar > div')].map(row =>
        [...row.children].reduce((sum, s) => sum + s.getBoundingClientRect().width, 0) / row.getBoundingClientRect().width)""")
    check(all(abs(w - 1) < 0.01 for w in widths) and len(widths) == 3, "lengths of the bars", widths)
    shares = p.js("""return [...document.querySelectorAll('.membar > div:last-child span')].map(s =>
        [s.title.replace(/ [0-9.]+ [KMG]?i?B, .*/, ''), s.getBoundingClientRect().width / s.parentNode.getBoundingClientRect().width])""")
    size_of = dict(zip(n["rows"]["text"], n["rows"]["resident"]))
    same("rows of the bar", sorted(name for name, _ in shares), sorted(size_of))
    check(all(abs(width - size_of[name] / total) < 0.01 for name, width in shares), "their widths", shares)
    check_map(p, n)
    same("types", p.js("return document.querySelectorAll('#memory .detail')[2].querySelector('.label').textContent"),
         n["types"]["name"][max(range(len(n["types"]["bytes"])), key=lambda i: n["types"]["bytes"][i])])
    evil = json.loads(json.dumps(data))
    for table, column in (("rows", "text"), ("types", "name"), ("advice", "text"), ("doubts", "text")):
        evil["inspection"][table][column] = [f"<img src=x onerror=alert()>{name}" for name in n[table][column] or ["x"]]
    evil["inspection"]["malloc"] = "<b>malloc</b>"
    p.open(write(directory, "evil-memory.html", embed(text, evil)) + "#tab=memory")
    same("elements by markup in names", p.js("return document.querySelectorAll('img, b').length"), 0)
    check("<img" in p.text("memory") and "<b>" in p.text("memory"), "they are text", p.text("memory")[:200])
    python = json.loads(json.dumps(data))
    rows, arenas = python["inspection"]["rows"], len(n["arenas"]["address"])
    python["inspection"]["heaps"]["arena"] = [arenas] * len(n["heaps"]["arena"])
    rows["name"] = [{"live": "python_live", "bins": "python_free", "top": "python_pools"}.get(name, name) for name in rows["name"]]
    size = dict(zip(rows["name"], rows["resident"]))
    unused = size.get("python_free", 0) + size.get("python_pools", 0)
    p.open(write(directory, "python-memory.html", embed(text, python)) + "#tab=memory")
    same("heaps of Python's", p.js("return [...document.querySelectorAll('#memory h3')].map(h => h.textContent)"
                                   ".filter(text => text.startsWith('Python'))"),
         [f"Python's arenas: {binary(size['python_live'] + unused)} resident, {binary(size['python_live'])} live, {binary(unused)} free"])
    same("their cells", p.js("return Math.max(...ptmem.reports.memory.maps.map(m => m.cells.length))"), len(n["cells"]["heap"]))
    p.open(write(directory, "no-memory.html", embed(text, dict(data, inspection=None))) + "#tab=memory")
    same("no tab", p.js("return document.querySelector('#tab-memory')"), None)


def check_map(p, n):
    """A cell for each page of the main arena, its colour, and its description by keys and by the pointer."""
    heaps = [h for h, arena in enumerate(n["heaps"]["arena"]) if n["arenas"]["main"][arena]]
    cells = [c[1:] for c in zip(*n["cells"].values()) if c[0] == heaps[0]]
    same("cells", p.js("return ptmem.reports.memory.maps[0].cells.length"), len(cells))
    colors = p.js("""const m = ptmem.reports.memory, { canvas, cells } = m.maps[0], ratio = devicePixelRatio;
        const context = canvas.getContext('2d'); canvas.scrollIntoView({block: 'center'});
        return cells.map((c, i) => [...context.getImageData((i % m.columns * m.size + 1) * ratio,
            (Math.floor(i / m.columns) * m.size + 1) * ratio, 1, 1).data].slice(0, 3).map(x => x.toString(16).padStart(2, '0')).join(''))""")
    steps = ((0, "fac266"), (0.25, "cce3f2"), (0.5, "8cbfe3"), (0.75, "4794c9"), (1, "08548f"))
    wanted = [next(color for most, color in steps if live <= most * pages * n["page"]) if pages else None for pages, live, _ in cells]
    same("colours", [(i, a, b) for i, (a, b) in enumerate(zip(colors, wanted)) if b and a != b], [])
    check(len(set(wanted) - {None}) >= 4, "colours that differ", set(wanted))

    def described(i):
        pages, live, nearly_empty = cells[i]
        address = int(n["heaps"]["start"][heaps[0]], 16) + i * n["page"] * n["pages_per_cell"]
        return f"{address:#x}: " + (f"{binary(live)} live of {binary(pages * n['page'])}" if pages else "not in memory") + \
            (f"; {nearly_empty} of {pages} pages with at most 1 KiB live" if nearly_empty else "")

    p.js("document.querySelector('canvas.map').focus()")
    same("the first cell", p.text("cell"), described(0))
    p.keys(RIGHT)
    p.keys(RIGHT)
    p.keys(LEFT)
    same("the second cell", p.text("cell"), described(1))
    p.keys(DOWN)
    columns = p.js("return ptmem.reports.memory.columns")
    same("a cell of the next line", p.text("cell"), described(min(1 + columns, len(cells) - 1)))
    x, y, size = p.js("""const r = document.querySelector('canvas.map').getBoundingClientRect();
        return [r.left, r.top, ptmem.reports.memory.size]""")
    p.pointer(("move", x + 7.5 * size, y + size / 2))
    same("the cell under the pointer", p.text("cell"), described(7))


def check_objects(p, directory):
    """A program with two libraries and four threads, recorded exactly: what the page says is what every form says
    (test_recording_forms.py)."""
    page, recording = f"{directory}/objects.html", f"{directory}/objects.recording"
    subprocess.run([os.path.join(os.path.dirname(REPORT), "ptmem"), "-q", "--no-rc", f"--html={page}", f"--record={recording}",
                    "--massif-out-file=/dev/null", make_objects(directory)], check=True)

    def csv_sum(*options):
        text = subprocess.run([REPORT, "--format=csv", *options, recording], check=True, capture_output=True, text=True).stdout
        return sum(int(line.split(",")[0]) for line in text.splitlines()[1:])

    data = json.loads(subprocess.run([REPORT, "--format=json", recording], check=True, capture_output=True).stdout)
    r, last = Recording(data), len(data["timeline"]["time"]) - 1
    p.open(f"file://{page}")
    same("peak", p.sum(), exact(csv_sum()))
    for i in (last // 3, last // 2, last):
        p.open(f"file://{page}#at={i}")
        same(f"live at {i}", (p.sum(), csv_sum(f"--at={data['timeline']['time'][i]}ms")), (exact(r.total(0, i, i)[0]), r.total(0, i, i)[0]))
    p.open(f"file://{page}#at={last // 4}-{last // 2}&mode=growth")
    first, end = (data["timeline"]["time"][i] for i in (last // 4, last // 2))
    same("growth", p.sum(), exact(csv_sum(f"--range={first}ms..{end}ms")))
    for option in ("--match=^right_make$", "--match=/libleft[.]so$", *(f"--thread={thread['id']}" for thread in data["threads"])):
        subprocess.run([REPORT, f"--html={page}", option, recording], check=True)
        p.open(f"file://{page}")
        same("with " + option, p.sum(), exact(csv_sum(option)))


def check_questions(p, r, recording):
    """--match and --thread: the page has what matches alone, and opens with what the thread allocated."""
    def open_with(option):
        subprocess.run([REPORT, f"--html={recording}-asked.html", option, recording], check=True)
        p.open(f"file://{recording}-asked.html")

    peak, threads = r.data["peak"], r.data["leaves"]["threads"]
    held = {leaf: [b] for leaf, b in zip(peak["leaf"], peak["bytes_of"])}

    def matching(name):
        return {leaf: s for leaf, s in held.items() if any(f[0] == name for f in r.stacks[leaf])}

    # the largest function whose stacks fit into the first rows of the table
    sizes = r.inclusive(held)
    name = next(n for n in sorted(filter(None, sizes), key=sizes.get, reverse=True) if len(r.inclusive(matching(n))) <= 40)
    open_with(f"--match=^{re.escape(name)}$")
    same("bytes that match", p.sum(), exact(sizes[name]))
    same("functions that match", {row[0] for row in p.rows() if row[0][0] != "["}, set(r.inclusive(matching(name))) - {"", None})
    same("nothing is only searched for", p.js("return document.getElementById('find').value"), "")
    check(f"Only call paths that match ^{re.escape(name)}$ are shown" in p.text("warnings"), "the head says so", p.text("warnings"))
    for i, thread in enumerate(r.data["threads"]):
        open_with(f"--thread={thread['id']}")
        same("bytes of a thread", p.sum(), exact(sum(s[2] for of_leaf in threads for s in of_leaf if s[0] == i)))
        check(f"allocated by thread {thread['id']} in the whole run" in p.text("selection"), "which thread", p.text("selection"))
    p.press("#mode [data-value=allocated]")
    same("all threads again", p.sum(), exact(sum(r.data["leaves"]["bytes"])))
    same("threads", len(r.data["threads"]), 2)


def error(size, variance):
    """As the page prints the standard error of an estimate."""
    if 3 * variance > size ** 2 * (1 + 1e-9):
        return " (below resolution)"
    share = 100 * variance ** 0.5 / size
    return f" \u00b1 {share:.{1 if share < 9.95 else 0}f} %"


def check_samples(p, directory):
    """A run of samples: estimates have standard errors, calls are exact, and there are no temporary blocks."""
    page = f"{directory}/samples.html"
    subprocess.run([os.path.join(os.path.dirname(REPORT), "ptmem"), "-q", "--no-rc", f"--html={page}", "--heap-sample=8K", "--seed=1",
                    f"--massif-out-file={directory}/samples.massif", sys.executable, "-c", "x = [str(i) * 50 for i in range(20000)]"],
                   check=True, env={**os.environ, "PYTHONMALLOC": "malloc"})
    with open(page) as f:
        data = json.loads(gzip.decompress(base64.b64decode(re.search(r'id="profile">(.*?)</script>', f.read(), re.S)[1])))
    p.open(f"file://{page}")
    check("Estimate, sampled every 8 KiB." in p.text("warnings"), "the head", p.text("warnings"))
    same("peak of samples", p.sum(), exact(data["peak"]["bytes"]))
    check(error(data["peak"]["bytes"], data["peak"]["variance"]) + " in about " in p.text("sum"), "its error", p.text("sum"))
    calls = sum(n for name, n in zip(data["calls"]["function"], data["calls"]["calls"]) if name != "free")
    same("exact calls", p.js("return document.querySelectorAll('#facts div')[3].title"), f"{calls:,}, counted exactly")
    last, cells = len(data["timeline"]["time"]) - 1, data["cells"]
    size, variance = (sum(n for n, died in zip(cells[c], cells["died"]) if died < 0) for c in ("bytes", "variance"))
    p.open(f"file://{page}#at={last}")
    same("live at the end of samples", p.sum(), exact(size))
    check(error(size, variance) + " in about " in p.text("sum"), "its error", p.text("sum"), error(size, variance))
    for choice in ("#mode [data-value=temporary]", "#tab-temporary"):
        same(choice, p.js(f"return document.querySelectorAll('{choice}').length"), 0)
    p.open(f"file://{page}")  # the peak has enough samples for an error
    p.press("#tab-threads")
    check(re.search(r"\u00b1 [0-9.]+ %", p.text("panel")), "threads", p.text("panel"))
    p.press("#tab-sites")
    check(re.search(r"\u00b1 [0-9.]+ %", p.text("panel")), "call sites", p.text("panel")[:300])
    check_diff_of_samples(p, directory)


def check_diff_of_samples(p, directory):
    """In a comparison both values have errors, and so has the difference."""
    peaks = []
    for name, n in (("few", 10000), ("many", 30000)):
        subprocess.run([os.path.join(os.path.dirname(REPORT), "ptmem"), "-q", "--no-rc", f"--record={directory}/{name}",
                        "--heap-sample=8K", "--seed=1", f"--massif-out-file={directory}/samples.massif", sys.executable, "-c",
                        f"x = [str(i) * 50 for i in range({n})]"], check=True, env={**os.environ, "PYTHONMALLOC": "malloc"})
        run = subprocess.run([REPORT, "--format=json", f"{directory}/{name}"], check=True, capture_output=True)
        peaks.append(json.loads(run.stdout)["peak"])
    subprocess.run([REPORT, "--diff", f"--html={directory}/samples-diff.html", f"{directory}/few", f"{directory}/many"], check=True)
    p.open(f"file://{directory}/samples-diff.html")
    (few, a), (many, b) = ((peak["bytes"], peak["variance"]) for peak in peaks)
    check(f"before: {binary(few)}{error(few, a)}, +{binary(many - few)}{error(many - few, a + b)}" in p.text("selection"),
          "errors of a difference", p.text("selection"))
    for tab in ("functions", "sites"):
        p.press(f"#tab-{tab}")
        first = p.rows()[0]
        check(len([cell for cell in first if re.search(r"\u00b1 [0-9.]+ %", cell)]) >= 3, "errors of values in " + tab, first)


def check_large(p, directory, page):
    """20,000 nodes and 500 intervals."""
    data = synthetic_recording.make(functions=3000, leaves=8500, intervals=500, depth=30, scale=2)
    check(len(data["nodes"]["parent"]) > 20000, "nodes", len(data["nodes"]["parent"]))
    text = embed(page, data)
    check(len(text) < 5 << 20, "size of the file", len(text))
    p.open(write(directory, "large.html", text))
    marks = p.js("return performance.getEntriesByType('mark').map(m => `${m.name} ${Math.round(m.startTime)}`)")
    took = p.js("""const out = []; for (const change of [{dir: 'up'}, {find: 'parse'}, {find: ''}, {stack: 'object'},
        {selection: {kind: 'moment', i: 250}}, {tab: 'sites'}, {dir: 'down'}]) { const t = performance.now(); ptmem.go(change);
        out.push(`${Object.keys(change)} ${Math.round(performance.now() - t)}`); } return out""")
    print(f"large: {len(text) >> 10} KiB, ms: {', '.join(marks)}; {', '.join(took)}")


def check_picture(directory):
    """The pictures of README.md can be taken again, and are not too large for a page."""
    paths = [f"{directory}/picture.png", f"{directory}/graph.png"]
    subprocess.run([os.path.join(ROOT, "scripts/report-picture"), os.path.join(os.path.dirname(REPORT), "ptmem"), *paths], check=True)
    for picture in paths + [os.path.join(ROOT, "doc/report.png"), os.path.join(ROOT, "doc/graph.png")]:
        with open(picture, "rb") as f:
            data = f.read()
        width, height = struct.unpack(">II", data[16:24])
        check(width > 1000 and height > 700 and len(data) < 200000, picture, width, height, len(data))


def check_curves(p):
    """The peak lies on the line of the total, the highest label is not below a curve, and the legend shows lines as they are drawn."""
    p.press("#mode [data-value=live]")
    on_line, top, most, legend, mode = p.js("""const t = ptmem.timeline, q = ptmem.profile;
        const at = [t.x(q.peakTime), t.y(q.peakBytes)];
        const step = format.ticks(t.max, 4, true);
        return [t.totalPoints().some(([x, y]) => Math.abs(x - at[0]) < 1e-6 && Math.abs(y - at[1]) < 1e-6),
            t.max, Math.max(q.peakBytes, t.hasRss ? t.rssMax : 0),
            [...document.querySelectorAll('#areas .swatch.line')].map(s => getComputedStyle(s).borderTopStyle),
            document.getElementById('mode-help').textContent]""")
    check(on_line, "the peak is on the line")
    check(top >= most, "the axis", top, most)
    check("solid" not in legend, "legend", legend)
    check(mode.startswith("Live: "), "the mode is explained", mode)
    for name in ("growth", "allocated", "temporary"):
        p.press(f"#mode [data-value={name}]")
        check(p.js("return document.getElementById('mode-help').textContent").startswith(name.capitalize() + ": "), "explained", name)
    p.press("#mode [data-value=live]")
    p.press("#tab-functions")
    check("Self: " in p.js("return document.querySelector('#panel .note').textContent"), "Self is explained")


def check_refused(directory):
    """Invalid requests are refused before anything is written."""
    samples = f"{directory}/samples"
    write(directory, "samples", "time\tpid\trss\n")
    path = f"{GOLDEN}/tree_ms.massif"
    for status, arguments in ((255, ["--html=-", "--flame=-", path]), (255, ["--html=x.html", samples]),
                              (255, ["--html=", path]), (255, ["--html=x.html", "--x-size=900", path]),
                              (255, [f"--html={directory}/samples", samples]), (1, ["--html=/nowhere/x.html", path])):
        run = subprocess.run([REPORT, *arguments], capture_output=True, text=True, cwd=directory)
        check(run.returncode == status and run.stderr and not os.path.exists(f"{directory}/x.html"), arguments, run)
    run = subprocess.run([REPORT, "--html=-", "--diff", path, path], capture_output=True, text=True)
    check(run.returncode == 0 and run.stdout.startswith("<!DOCTYPE html>"), "standard output", run.stderr)


def main():
    webdriver.require()
    with tempfile.TemporaryDirectory() as directory:
        p = Page(directory, True)
        try:
            p.size(1300, 900)
            check_refused(directory)
            for name in ("tree_bytes", "tree_instructions", "header_only", "inlined"):
                path = f"{GOLDEN}/{name}.massif"
                subprocess.run([REPORT, f"--html={directory}/{name}.html", path], check=True)
                if name.startswith("tree"):
                    check_massif(p, path, f"file://{directory}/{name}.html")
                else:
                    p.open(f"file://{directory}/{name}.html")
            page = open(f"{directory}/tree_bytes.html").read()
            check_recordings(p, directory, page)
            check_run(p, directory)
            check_curves(p)
            check_memory(p, directory)
            check_objects(p, directory)
            check_builds(p, directory)
            check_samples(p, directory)
            check_large(p, directory, page)
            check_picture(directory)
            same("errors of scripts", p.errors(), [])
        finally:
            p.close()
    print(f"{count[True]} passed, {count[False]} failed")
    sys.exit(1 if count[False] else 0)


main()
