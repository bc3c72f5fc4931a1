"""The page of a heap graph, in Chromium: sums to the byte, levels by clicks, search, keys, names that contain markup."""

import base64
import gzip
import json
import os

import webdriver
from harness import report_json, run_report, test
from report_lib import PROFILE, embedded
from test_graph import Owned, owner


class GraphPage(webdriver.Browser):
    def __init__(self, t, path, width=1300):
        for name in ("chromium", "chromedriver"):
            t.program(name)
        super().__init__(t.subdirectory(), True)
        self.t, self.url = t, "file://" + path
        self.width(width)
        self.open("")

    def width(self, width):
        self.call("POST", "/goog/cdp/execute", {"cmd": "Emulation.setDeviceMetricsOverride", "params": {
            "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}})

    def open(self, address):
        self.call("POST", "/url", {"url": "about:blank"})
        self.call("POST", "/url", {"url": self.url + address})
        self.t.wait_until("the page", lambda: self.js("return Boolean(document.querySelector('#graph-table tbody tr'))"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def rows(self):
        """[name, exact retained bytes, blocks] of the table."""
        return self.js("""return [...document.querySelectorAll('#graph-table tbody tr[data-row]')].map(tr => [
            tr.querySelector('.function').title, tr.children[3].title.replace(/[^0-9]/g, ''), tr.children[5].textContent])""")

    def press(self, selector):
        self.js("document.querySelector(arguments[0]).click()", selector)

    def level(self):
        return self.js("return document.querySelector('.crumbs .here').textContent")

    def tiles(self):
        """[name, area, size] of the outermost tiles."""
        return self.js("""const v = ptmem.view; return v.tiles.filter(t => t.depth === 1)
            .map(t => [v.graph.name[t.row], t.box.w * t.box.h, t.size])""")

    def check_errors(self):
        self.t.equal("errors of scripts", [e["message"] for e in self.call("POST", "/se/log", {"type": "browser"})
                                           if e["level"] == "SEVERE"], [])


def check_sums(t, data):
    """Rows without a parent are the heap; those below a row, with its own bytes, what it retains."""
    rows = data["rows"]
    for column, own, whole in (("retained_bytes", rows["bytes"], data["bytes"]),
                               ("retained_blocks", [int(r == "block") for r in rows["row"]], data["blocks"])):
        below = {}
        for parent, value in zip(rows["parent"], rows[column]):
            below[parent] = below.get(parent, 0) + value
        t.equal("top, " + column, below.get(-1, 0), whole)
        for i, value in enumerate(rows[column]):
            if rows["row"][i] != "rest":
                t.equal("below row %d, %s" % (i, column), below.get(i, 0) + (own[i] if rows["row"][i] == "block" else 0), value)


def without_fields(data):
    """What all graph files have: they may not know the names of members in ways."""
    rows, texts = data["rows"], data["texts"]
    return ([data[key] for key in ("pid", "command", "bytes", "blocks", "states")],
            [rows[key] for key in ("row", "parent", "retained_bytes", "retained_blocks", "count", "address", "bytes")],
            [[texts[i] for i in rows[key]] for key in ("name", "type")])


def rewritten(path, data):
    with open(path, encoding="utf-8") as file:
        page = file.read()
    packed = base64.b64encode(gzip.compress(json.dumps(data).encode())).decode()
    with open(path + "2.html", "w", encoding="utf-8") as file:
        file.write(PROFILE.sub(lambda _: '<script type="text/plain" id="profile">%s</script>' % packed, page))
    return path + "2.html"


@test("graph-page/owned", limit=120)
def owned(t):
    """From the process and from its file: the rows of --graph, one level below the other."""
    program = Owned(t, t.target("gcc-O2-pie", "owned"))
    path, page, again = (os.path.join(t.directory, name) for name in ("f.graph", "page.html", "again.html"))
    pid = str(program.process.pid)
    result = t.run([t.ptmem(), "-q", "-p", pid, "--graph", "--graph-out=" + path, "--html=" + page])
    t.equal("status (%r)" % result.err, result.status, 0)
    t.equal("output", result.out, b"")
    t.equal("status of ptmem-report", run_report(t, "--html=" + again, path).status, 0)
    data = embedded(page)
    t.check(without_fields(embedded(again)) == without_fields(data), "the page of the file is another one")
    check_sums(t, data)
    report = report_json(t, path)
    top = sorted([row["text"], str(row["retained_bytes"]), format(row["retained_blocks"], ",")]
                 for row in report["rows"] if row["level"] == 0 and row["row"] == "owner" and row["retained_blocks"])
    with GraphPage(t, page) as p:
        found = [row for row in p.rows() if not row[0].startswith("shared by ")]
        t.equal("rows", sorted(found), top)
        tiles = p.tiles()
        unit = sum(tile[1] for tile in tiles) / report["bytes"]
        t.check(all(abs(area - size * unit) < 1e-3 * area + 1e-6 for _, area, size in tiles), tiles)
        check_levels(t, p, report)
        check_search(t, p, data)
        p.check_errors()
    program.end()


def check_levels(t, p, report):
    name, size, _ = next(row for row in p.rows() if row[0] == "list in owned")
    t.equal("what list retains", int(size), owner(report, r"(owned\.c: )?list in owned")[1])
    number = p.js("return ptmem.view.graph.name.indexOf(arguments[0])", name)
    closed = p.rows()
    p.press("[data-row='%d'] .twist" % number)
    t.check(len(p.rows()) > len(closed) and p.level() == "All blocks", p.level())
    p.press("[data-row='%d'] .twist" % number)
    t.equal("closed again", p.rows(), closed)
    p.press("[data-row='%d'] .function" % number)
    t.equal("level", p.level(), name)
    t.equal("address", p.js("return location.hash"), "#graph=%d&held=%d" % (number, number))
    t.equal("below", sum(int(row[1]) for row in p.rows()), int(size))
    p.js("document.getElementById('treemap').focus()")
    p.keys("\ue007")                                    # Enter: the first tile
    path = p.js("return [...document.querySelectorAll('.crumbs button')].map(b => b.textContent)")
    t.equal("path", path, ["All blocks", name])
    held = p.js("return [...document.querySelectorAll('#held li button')].map(b => b.title)")
    t.equal("held by", (held[0], len(held)), (name, 2))
    p.keys("\ue00c")                                    # Escape
    t.equal("level after Escape", p.level(), name)
    p.press(".crumbs button")
    t.equal("back", p.level(), "All blocks")
    x, y, row = p.js("""const c = document.getElementById('treemap'); c.scrollIntoView({block: 'center'});
        const r = c.getBoundingClientRect(), v = ptmem.view, t = v.tiles[0];
        return [r.left + t.box.x + t.box.w / 2, r.top + t.box.y + t.box.h / 2, v.graph.name[t.row]]""")
    p.pointer(("move", x, y), "down", "up")
    t.equal("the tile that was clicked", p.level(), row)
    p.open("#graph=99999999&held=x&gfind=/((/")
    t.equal("nonsense in the address", p.level(), "All blocks")


def check_search(t, p, data):
    p.js("const f = document.getElementById('graph-find'); f.value = 'tree'; f.dispatchEvent(new Event('input'))")
    texts, rows = data["texts"], data["rows"]
    wanted = [i for i, name in enumerate(rows["name"])
              if "tree" in texts[name].lower() or "tree" in texts[rows["type"][i]].lower()]
    t.equal("found", p.js("return document.getElementById('graph-found').textContent").split(" ")[0], str(len(wanted)))
    t.check("tree in owned" in [row[0] for row in p.rows()], p.rows())


@test("graph-page/hostile", limit=120)
def hostile(t):
    """Names of any kind are text; long ones do not make the page wider than the window."""
    program = Owned(t, t.target("gcc-O2-pie", "owned"))
    page = os.path.join(t.directory, "page.html")
    result = t.run([t.ptmem(), "-q", "-p", str(program.process.pid), "--graph", "--html=" + page])
    t.equal("status (%r)" % result.err, result.status, 0)
    data = embedded(page)
    evil = ["<img src=x onerror=\"window.evil = 1\">", "</script><b>%s</b>" % ("x" * 2000), "&lt;&#0;\u202e", "a" * 5000, "  "]
    data["texts"] = [text and evil[i % len(evil)] + text for i, text in enumerate(data["texts"])]
    data["command"] = evil[1]
    for width in (420, 1400):
        with GraphPage(t, rewritten(page, data), width) as p:
            p.open("#held=2")
            names = [row[0] for row in p.rows()]
            t.check(any("<img" in name for name in names) and any("</script>" in name for name in names), names)
            t.equal("elements", p.js("return [document.querySelectorAll('img, b').length, window.evil === undefined]"), [0, True])
            t.check(p.js("return document.documentElement.scrollWidth <= innerWidth"), "it is wider than %d" % width)
            p.check_errors()
    program.end()


# -- tables of types --

TABLES = {"types": ("type", "bytes"), "fields": ("field", "retained_bytes"), "padding": ("type", None)}


@test("graph-page/tables", limit=120)
def tables(t):
    """Tables of types: from the process and from its file, sorted by a column, and filtered."""
    path, page, again = (os.path.join(t.directory, name) for name in ("f.graph", "page.html", "again.html"))
    result = t.run([t.ptmem(), "-q", "--graph", "--graph-out=" + path, "--html=" + page, t.target("gcc-O2-pie", "fields")])
    t.equal("status (%r)" % result.err, result.status, 0)
    t.equal("status of ptmem-report", run_report(t, "--html=" + again, path).status, 0)
    data, report = embedded(page)["graph"], report_json(t, path)
    for name in (*TABLES, "containers"):
        t.equal(name + " of the file's page", embedded(again)[name], data[name])
        t.equal(name + " of the report", report[name], data[name])
    t.equal("equal strings", embedded(again)["equal_strings"]["rows"], data["equal_strings"]["rows"])
    t.check(all(data[name] for name in TABLES) and data["equal_strings"]["rows"], "a table has no rows")
    with GraphPage(t, again) as p:
        def rows():
            return p.js("""return [...document.querySelectorAll('#graph-types tbody tr')].map(tr =>
                [tr.querySelector('.type').title, tr.children[1].querySelector('span')?.title])""")
        for name, (title, size) in TABLES.items():
            p.press("[data-value=%s]" % name)
            t.equal("names of " + name, [row[0] for row in rows()], [row[title] for row in data[name]])
            if size:
                t.equal("bytes of " + name, [int("".join(c for c in row[1] if c.isdigit())) for row in rows()],
                        [row[size] for row in data[name]])
        p.press("[data-value=types]")
        p.press("#graph-types [data-sort=what]")
        t.equal("by name", [row[0] for row in rows()], sorted(row["type"] for row in data["types"]))
        t.equal("address", p.js("return location.hash"), "#gtable=types&gsort=what-up")
        p.js("const f = document.getElementById('graph-find'); f.value = 'session'; f.dispatchEvent(new Event('input'))")
        t.equal("found", [row[0] for row in rows()], sorted(row["type"] for row in data["types"] if "session" in row["type"]))
        p.press("[data-value=tree]")
        t.check(p.js("return document.getElementById('treemap').offsetWidth > 0"), "no treemap")
        p.check_errors()
