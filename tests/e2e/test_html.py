"""--html: a page that embeds what --record records, exactly; what the page shows of it is tested in html_report.py."""

import json
import os
import re

from harness import report, test
from report_lib import embedded

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../src/output/html")


@test("html/run")
def _(t):
    """One command makes the page; it has what the recording of the same run has."""
    result = t.profile([t.target("gcc-O2-pie", "threads"), "4", "3000"], ["--html=page.html", "--record=r"])
    page, recording = (os.path.join(result.directory, name) for name in ("page.html", "r"))
    wanted = json.loads(report(t, "--format=json", recording))
    t.check(embedded(page) == wanted, "the page has the recording")
    report(t, "--html=" + page + "2", recording)
    t.check(embedded(page + "2") == wanted, "so has the page that is made from the file")


@test("html/alone")
def _(t):
    """Without --record no recording is left; the summary names the page."""
    result = t.profile([t.target("gcc-O2-pie", "mixed"), "3", "2000"], ["--html=page.html"])
    t.equal("files", [n for n in os.listdir(result.directory) if n.startswith(("page", "r"))], ["page.html"])
    data = embedded(os.path.join(result.directory, "page.html"))
    t.equal("live at the end", data["timeline"]["live_bytes"][-1], data["end"]["live_bytes"])
    t.check(data["end"]["allocations"] > 500, "allocations")
    directory = t.subdirectory()
    run = t.run([t.ptmem(), "--html=seen.html", "/bin/true"], cwd=directory)
    t.check(re.search(r"written to +.*seen\.html", run.err.decode()), "the summary names the file: " + run.err.decode())


# Runs what the page computes: prints the areas of the timeline by call site, and how high each is at the end.
AREAS = """
const fs = require("fs"), vm = require("vm");
const [page, file] = process.argv.slice(2);
const scripts = ["profile", "my_code", "trie", "tables", "timeline"];
const code = scripts.map((name) => fs.readFileSync(`${page}/${name}.js`, "utf8")).join("\\n");

vm.runInThisContext(code + `
this.areas = (data) => {
	const names = new Names(), p = new Profile(data, names);

	names.finish();
	const { rows, names: functions, places } = new Areas(p, new Stacks([p], names), "site", null);

	return functions.map((name, i) => [name, places[i] || "", rows[i][rows[i].length - 1]]);
};`);
console.log(JSON.stringify(areas(JSON.parse(fs.readFileSync(file, "utf8")))));
"""


@test("html/areas")
def _(t):
    """Areas are by call site: three lines of one function are three areas, in recordings and massif files."""
    result = t.profile([t.target("gcc-O2-pie", "places")], ["--record=r", "-o", "m", "--threshold=0"])
    said = re.findall(r"^place (\d+) (\d+)$", (result.out + result.err).decode(), re.M)
    wanted = sorted(["main", "places.c:" + line, int(size)] for line, size in said)
    t.equal("places", len(wanted), 3)
    for name in ("r", "m"):
        path = os.path.join(result.directory, name)
        report(t, "--html=" + path + ".html", path)
        file = t.file("data.json", json.dumps(embedded(path + ".html")))
        run = t.run([t.program("node"), t.file("areas.js", AREAS), PAGE, file])
        t.equal("node (%s)" % run.err.decode()[:500], run.status, 0)
        t.equal("areas of " + name, sorted(a for a in json.loads(run.out) if a[0] == "main"), wanted)


@test("html/diff")
def _(t):
    """Two recordings in one page."""
    paths = []
    for rounds in ("1000", "2000"):
        result = t.profile([t.target("gcc-O2-pie", "mixed"), "3", rounds], ["--record=r"])
        paths.append(os.path.join(result.directory, "r"))
    page = os.path.join(t.subdirectory(), "diff.html")
    report(t, "--diff", "--html=" + page, *paths)
    data = embedded(page)
    t.equal("format", data["format"], "ptmem-report-diff")
    for side, path in zip(("old", "new"), paths):
        wanted = json.loads(report(t, "--format=json", path))
        t.check(all(data[side][key] == wanted[key] for key in wanted if key not in ("format", "version")), side)


@test("html/refused")
def _(t):
    """What cannot be recorded is refused before the program runs."""
    for option in ("--pages-as-heap=yes", "--heap=no"):
        run = t.run([t.ptmem(), "--html=x.html", option, "/bin/echo", "ran"])
        t.check(run.status != 0 and b"ran" not in run.out and b"--html" in run.err, option + ": " + run.err.decode())
    run = t.run([t.ptmem(), "--html=/nowhere/x.html", "/bin/true"])
    t.check(run.status != 0 and b"/nowhere/x.html" in run.err, "a directory that does not exist: " + run.err.decode())
