"""Whose code a call site is: the user's functions that the compiler inlines into the standard library are found, by every
view of a profile alike (targets/whose_code.cpp and .rs print the places and sizes themselves)."""

import csv
import io
import json
import os
import re

from harness import BUILD, report, test
from report_lib import PAGE, PROFILE, SCRIPT, embedded

PROGRAMS = ["cxx-gcc-O0", "cxx-gcc-O2", "cxx-clang-O0", "cxx-clang-O2", "rust-O0", "rust-O2"]
STANDARD = re.compile(r"/c\+\+/|^/rustc/|/rustc-")


def record(t, name, *more, times="1"):
    """The recording, the massif file, and what the program says: {place: bytes}, {place: temporary allocations}."""
    profile = t.profile([t.target("whose", name), times], ["--record=r", "-o", "m", "--detailed-freq=1", *more])
    said = re.findall(r"^site (\S+:\d+) (\w+) (\d+)$", (profile.out + profile.err).decode(), re.M)
    live, temporary = ({p: int(n) for p, what, n in said if what == w} for w in ("live", "temporary"))
    t.check(len(live) > 1, "the program's sites: %r" % said)
    return profile, os.path.join(profile.directory, "r"), os.path.join(profile.directory, "m"), live, temporary


def place(label):
    found = re.search(r"\(([^()]+:\d+)\)$", label)
    return found[1] if found else label


def rows(text, title):
    """{place: the first number} of a table in the text report."""
    table = re.search(r"^%s.*\n.*\n((?: +[0-9].*\n)*)" % title, text, re.M)
    out = {}
    for line in table[1].splitlines() if table else []:
        numbers, label = line.split("%", 1)
        out[place(label.strip())] = out.get(place(label.strip()), 0) + int(numbers.split()[0].replace(",", ""))
    return out


def sites(data, values):
    """{place: sum} by the sites of JSON's leaves."""
    out = {}
    for site, value in zip(data["leaves"]["site"], values):
        frame = data["nodes"]["frame"][site]
        key = "%s:%d" % (os.path.basename(data["frames"]["file"][frame] or ""), data["frames"]["line"][frame])
        out[key] = out.get(key, 0) + value
    return out


def subset(t, what, found, wanted):
    t.equal(what, {p: found.get(p) for p in wanted}, wanted)


for v in PROGRAMS:
    @test("whose/views-%s" % v)
    def _(t, v=v):
        """The summary, texts, tables, differences and JSON name the user's lines, with exact numbers."""
        profile, path, massif, live, temporary = record(t, v)
        summary = [line.split("%  ")[1] for line in profile.messages if re.search(r"[0-9] %  ", line)]
        largest = sorted(live, key=lambda p: -live[p])[:3]
        t.equal("summary", [place(label) for label in summary][:len(largest)], largest)
        text = report(t, "--top=1000", path)
        subset(t, "at the peak", rows(text, "live at the peak"), live)
        subset(t, "at the end", rows(text, "live at the end"), live)
        subset(t, "temporary", rows(text, "temporary allocations"), temporary)
        found = {}
        for row in csv.DictReader(io.StringIO(report(t, "--format=csv", path))):
            found[place(row["call_site"])] = found.get(place(row["call_site"]), 0) + int(row["bytes"])
        subset(t, "CSV", found, live)
        data = json.loads(report(t, "--format=json", path))
        subset(t, "JSON", sites(data, data["leaves"]["bytes"]), live)
        subset(t, "temporary in JSON", sites(data, data["leaves"]["temporary"]), temporary)
        f = data["frames"]
        for file, kind, object_ in zip(f["file"], f["kind"], f["object"]):
            if file and os.path.basename(file).startswith("whose_code."):
                t.equal("kind of " + file, kind, 0)
            elif file and STANDARD.search(file):
                t.check(kind in (2, 3), "kind of %s: %d" % (file, kind))
        _, path2, massif2, live2, _ = record(t, v, times="2")
        for what, old, new in (("recordings", path, path2), ("massif files", massif, massif2)):
            changes = {}
            for row in json.loads(report(t, "--diff", "--format=json", old, new))["changes"]:
                label = place(row["call_site"]) if ":" in place(row["call_site"]) else None
                changes[label] = changes.get(label, 0) + row["new_bytes"] - row["old_bytes"]
            subset(t, "difference of " + what, changes, {p: live2[p] - live[p] for p in live})


@test("whose/leaks")
def _(t):
    """The page's leaks are by the same sites."""
    _, path, _, live, _ = record(t, "cxx-gcc-O2", "--leak-check")
    data = json.loads(report(t, "--format=json", path))
    held = [0] * len(data["leaves"]["site"])
    for leaf, size in zip(data["leaks"]["leaf"], data["leaks"]["bytes"]):
        held[leaf] += size
    subset(t, "leaks", sites(data, held), live)


@test("whose/globs")
def _(t):
    """--my-code and --not-my-code, in ptmem and in ptmem-report: a recording keeps what ptmem was told."""
    _, path, massif, live, _ = record(t, "cxx-gcc-O2")
    header = next(p for p in live if p.startswith("whose_code.h"))

    def at_end(*arguments):
        return rows(report(t, "--top=1000", *arguments), "live at the end")

    def is_moved(found):
        """From the template to its caller."""
        callers = [p for p, n in found.items() if n == live[header]]
        return header not in found and len(callers) == 1 and callers[0].startswith("whose_code.cpp:")

    for pattern in ("whose_code.h", "*/targets/*.h"):
        t.check(is_moved(at_end("--not-my-code=" + pattern, path)), pattern)
    t.equal("the last one decides", at_end("--not-my-code=*.h", "--my-code=whose*", path), at_end(path))
    found = at_end("--not-my-code=*/whose/*", path)
    t.check(not any(p.startswith("whose_code") for p in found), "the program is not mine: %r" % found)
    found = at_end("--my-code=*/c++/*", "--not-my-code=whose_code.cpp", path)
    t.check(not any(p.startswith("whose_code.cpp") for p in found), "the library is mine: %r" % found)
    t.equal("in the library", max(n for p, n in found.items() if p.startswith("invoke.h")) >= max(live.values()), True)
    profile, told, _, live, _ = record(t, "cxx-gcc-O2", "--not-my-code=whose_code.h")
    t.check(is_moved(at_end(told)), "told to ptmem")
    t.check(not any("whose_code.h" in m for m in profile.messages if "%  " in m), "summary")
    t.equal("overridden", at_end("--my-code=whose_code.h", told), at_end(path))
    t.equal("carried", json.loads(report(t, "--format=json", told))["my_code"], ["-whose_code.h"])
    profile, told, _, _, _ = record(t, "cxx-gcc-O2", "--not-my-code=*")
    labels = re.findall(r"(?m) [\d.]+ %  (.*)$", "\n".join(profile.messages))
    text = report(t, "--top=1000", told)
    t.check(labels and all(label in text for label in labels), "summary and recording differ: %s, %s" % (labels, text))
    _, _, massif2, _, _ = record(t, "cxx-gcc-O2", times="2")
    changes = json.loads(report(t, "--diff", "--format=json", "--not-my-code=whose_code.h", massif, massif2))["changes"]
    t.check(not any("whose_code.h" in c["call_site"] for c in changes), "massif: %r" % changes)
    for arguments in (["--not-my-code="], ["--my-code"]):
        run = t.run([t.ptmem(), *arguments, "/bin/true"])
        t.check(run.status != 0 and arguments[0].split("=")[0].encode() in run.err, "refused: %r" % run.err)


@test("whose/page")
def _(t):
    """The page's rule is ptmem's, with patterns and without; a page has the patterns of its recording."""
    node = t.program("node")
    script = t.file("sites.js", SCRIPT)

    def check(what, path, mine="", other=""):
        plain = t.file("plain.json", report(t, "--format=json", path))
        options = ["--not-my-code=" + x for x in other.split(", ") if x] + ["--my-code=" + x for x in mine.split(", ") if x]
        wanted = json.loads(report(t, "--format=json", *options, path))["leaves"]["site"]
        run = t.run([node, script, PAGE, plain, mine, other])
        t.equal("node (%s)" % run.err.decode()[:500], run.status, 0)
        given, found = json.loads(run.out)
        t.equal(what + ", as given", given, wanted)
        t.equal(what, found, wanted)

    for name in PROGRAMS[1], PROGRAMS[3], PROGRAMS[5]:
        if not os.path.exists(os.path.join(BUILD, "targets/whose", name)):
            continue
        _, path, _, _, _ = record(t, name)
        check(name, path)
        check(name + ", a header", path, other="whose_code.h")
        check(name + ", all", path, other="*")
        check(name + ", the library", path, mine="*/c++/*, */rustc/*", other="whose_code.*")
        check(name + ", objects", path, mine="libstdc++.so*", other="cxx-*, rust-*")
    _, told, _, _, _ = record(t, PROGRAMS[1], "--not-my-code=whose_code.h", "--html=page.html")
    check("told to ptmem", told)
    check("told to ptmem, overridden", told, mine="whose_code.h")
    page = os.path.join(os.path.dirname(told), "page.html")
    t.equal("the page's", embedded(page)["my_code"], ["-whose_code.h"])
    t.check(PROFILE.search(open(page, encoding="utf-8").read()), "the page")
