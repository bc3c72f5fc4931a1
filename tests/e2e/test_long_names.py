"""C++ names of thousands of characters: every list shortens them, and none cuts off the source line
(targets/long_names.cpp prints the call sites itself)."""

import os
import re
import xml.etree.ElementTree

from harness import report, test

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
