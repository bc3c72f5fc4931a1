"""Labels of call sites, from each source: the program's functions, in the summary and in the legends of pictures, never an
allocator, a system call or what was mapped (targets/legends.cpp)."""

import os
import re
import xml.etree.ElementTree

from harness import test
from report_lib import SVG, largest, legend

# By source: functions with a label of their own.
SITES = {
    "heap": {"fill", "append", "load"},
    "brk": {"fill", "append"},
    "mmap": {"load", "map_file"},
    "faults": {"fill", "append", "load", "map_file"},
    "pages": {"fill", "append", "load", "map_file"},
}
WRAPPER = re.compile(r"malloc|mmap|brk\b|memset|morecore|\[anonymous\]|0x|std::|operator new|\?\?\?", re.I)
TITLE = {"heap": "memory in use", "brk": "memory below the program break", "mmap": "memory mapped", "pages": "memory mapped",
         "faults": "bytes touched"}


def texts(path):
    return [e.text for e in xml.etree.ElementTree.parse(path).iter(SVG + "text")]


def check_labels(t, what, labels, known, place):
    t.equal(what + ": equal labels", sorted(set(labels)), sorted(labels))
    for label in labels:
        t.check(not WRAPPER.search(label), "%s: %r is no call site" % (what, label))
        t.check(" \u2190 " in label or place.search(label) or label.startswith("[") or not set(known) & set(re.findall(r"\w+", label)),
                "%s: %r has no place" % (what, label))
    found = {f for f in known if any(re.search(r"\b%s\b" % f, label) for label in labels)}
    t.equal(what, found, set(known))


for v in ("gcc-O2-pie", "clang-O0-nopie"):
    for s in SITES:
        @test("names/legend-%s/%s" % (s, v))
        def _(t, v=v, s=s):
            cwd = t.subdirectory()
            option = "--pages-as-heap=yes" if s == "pages" else "--trace=" + s
            profile = t.profile([t.target(v, "legends")], [option, "--peak-inaccuracy=0", "-o", "out"], cwd=cwd)
            t.equal("status", profile.status, 0)
            path = "out" if s in ("heap", "pages") else "out." + s
            place = re.compile(r"legends\.cpp:\d+")
            err = "\n".join(profile.messages)
            t.check(largest(err), "no largest call sites in:\n" + err)
            check_labels(t, "summary", largest(err), SITES[s] if len(SITES[s]) < 3 else set(), place)
            report = os.path.join(os.path.dirname(t.ptmem()), "ptmem-report")
            run = t.run([report, "--svg=out.svg", path], cwd=cwd)
            t.equal("status of ptmem-report (%r)" % run.err, run.status, 0)
            svg = os.path.join(cwd, "out.svg")
            sites = [label for label in legend(svg) if not re.match("peak|other|call sites|allocator|[0-9]", label)]
            check_labels(t, "legend", sites, SITES[s], place)
            found = texts(svg)
            t.check(TITLE[s] in found, "no axis called %r: %s" % (TITLE[s], found))
            peaks = [text for text in found if text.startswith("peak ")]
            t.equal("marks of a peak", len(peaks), 0 if s == "faults" else 1)
