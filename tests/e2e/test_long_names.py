"""C++ names of thousands of characters: every list shortens them, and none cuts off the source line
(targets/long_names.cpp prints the call sites itself)."""

import csv
import io
import os
import re
import xml.etree.ElementTree

from harness import report, test
from report_lib import PAGE

WIDTH = 155  # of the label and the numbers before it
SVG = "{http://www.w3.org/2000/svg}"


for v in ("gcc-O2-pie", "clang-O0-nopie"):
    @test("names/long-%s" % v)
    def _(t, v=v):
        cwd = t.subdirectory()
        profile = t.profile([t.target(v, "long_names")], ["--record=r", "-o", "m", "--leak-check", "--top=1000"], cwd=cwd)
        sites = re.findall(r"^site (\w+) (\S+) (\d+)$", profile.out.decode(), re.M)
        t.equal("sites", len(sites), 3)
        path, massif = (os.path.join(cwd, n) for n in ("r", "m"))
        other = t.profile([t.target("gcc-O2-pie", "mixed"), "3", "100"], ["--record=r"])
        texts = {"messages": "\n".join(profile.messages), "report": report(t, path),
                 "difference": report(t, "--diff", os.path.join(other.directory, "r"), path)}
        for what, text in texts.items():
            for line in text.splitlines():
                t.check(len(line) <= WIDTH or "long_names " in line or "/" in line, "%s: %d characters: %s" % (what, len(line), line[:150]))
            for function, place, size in sites:
                lines = [l for l in text.splitlines() if "(%s)" % place in l and function in l]
                t.check(lines, "%s: no %s (%s)" % (what, function, place))
                t.check(what == "messages" or any("{:,}".format(int(size)) in l for l in lines), "%s: %s" % (what, lines))
        lost = texts["report"].split("definitely lost")[1].split("\n\n")[0]
        t.check("(%s)" % sites[2][1] in lost, "leaks: " + lost)
        t.check(re.search(r"at 0x\w+: .*lose_leaves.* \(%s\)$" % sites[2][1], texts["messages"], re.M), "the leak check's list")
        for size, file in ((size, file) for size in (800, 420) for file in (massif, path)):
            picture = os.path.join(cwd, "%d.svg" % size)
            report(t, "--svg=" + picture, "--x-size=%d" % size, file)
            labels = [e.text or "" for e in xml.etree.ElementTree.parse(picture).iter(SVG + "text")]
            for _, place, _ in sites:
                t.check(any(label.endswith(place) or label.endswith("(%s)" % place) for label in labels),
                        "legend at %d, %s: %s in %r" % (size, os.path.basename(file), place, labels))


# Prints how many call sites the functions of that name have in the page.
CLONES = """
const fs = require("fs"), vm = require("vm"), [page, file, name] = process.argv.slice(2);
const code = ["profile.js", "my_code.js"].map((n) => fs.readFileSync(page + "/" + n, "utf8")).join("\\n");
vm.runInThisContext(code + `
this.count = (data, name) => {
	const names = new Names(), p = new Profile(data, names);

	return new Set(names.frames.filter((f) => f.name.startsWith(name)).map((f) => f.site)).size;
};`);
console.log(count(JSON.parse(fs.readFileSync(file, "utf8")), name));
"""


@test("names/clones")
def clones(t):
    """Clones of a function are one call site, without what the compiler calls them, in each list."""
    for v in ("gcc-O2-pie", "clang-O0-nopie"):
        profile = t.profile([t.target(v, "same_line")], ["--record=r", "-o", "m"])
        place, size = profile.out.decode().split()
        label, size = "work(int) (%s)" % place, "{:,}".format(int(size))
        path = os.path.join(profile.directory, "r")
        text, svg = report(t, path), os.path.join(profile.directory, "svg")
        report(t, "--svg=" + svg, path)
        legend = [e.text or "" for e in xml.etree.ElementTree.parse(svg).iter(SVG + "text")]
        sites = {row["call_site"] for row in csv.DictReader(io.StringIO(report(t, "--format=csv", path)))}
        t.equal(v + ": summary", sum(m.endswith("%  " + label) for m in profile.messages), 1)
        t.equal(v + ": tables", len(re.findall(r"^ +%s .* %s$" % (size, re.escape(label)), text, re.M)), 2)
        t.equal(v + ": legend", [l for l in legend if l.startswith("work(")], [label])
        t.equal(v + ": CSV", {s for s in sites if "work" in s}, {label})
        t.check("[clone" not in text, v + ": text: " + text)
        node, script = t.program("node"), t.file("clones.js", CLONES)
        run = t.run([node, script, PAGE, t.file("json", report(t, "--format=json", path)), "work(int)"])
        t.equal(v + ": page (%r)" % run.err, run.out, b"1\n")
