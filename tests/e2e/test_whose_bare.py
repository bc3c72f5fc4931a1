"""Programs without debug information, whose code is inlined into instances of the standard library's templates: the
instance is the call site in every view of a profile, not the library that calls it."""

import csv
import io
import json
import os
import re

from harness import report, test
from report_lib import PAGE, SCRIPT, embedded, largest, legend

CXX = {  # by the sizes in targets/whose_bare.cpp; the last caller ends with a jump to the instance
    r"std::thread::_State_impl<.*main::(\{lambda|\$_)": 100003,
    r"std::_Function_handler<.*main::(\{lambda|\$_)": 200003,
    r"std::thread::_State_impl<.*<functor>": 300007,
    r"std::vector<.*::_M_default_append": 20011 * 24}
RUST = {r"std::sys::.*__rust_begin_short_backtrace": sum(range(1001, 1101))}
PROGRAMS = {"%s-%s" % (cc, how): CXX for cc in ("gcc", "clang") for how in ("dynamic", "runtime", "static")}
PROGRAMS.update({"rust-v0": RUST, "rust-legacy": RUST})


def add(sums, key, value):
    sums[key] = sums.get(key, 0) + value


def held(data):
    """The bytes of each leaf at the last moment."""
    values = [0] * len(data["leaves"]["site"])
    if "states" in data:
        for leaf, size in zip(data["states"][-1]["leaf"], data["states"][-1]["bytes"]):
            values[leaf] += size
    else:
        for leaf, size, died in zip(data["cells"]["leaf"], data["cells"]["bytes"], data["cells"]["died"]):
            values[leaf] += size if died < 0 else 0
    return values


def by_site(data, site, values):
    sums = {}
    for node, value in zip(site, values):
        add(sums, data["frames"]["function"][data["nodes"]["frame"][node]] or "?", value)
    return sums


def sites_of_page(t, data, mine="", other=""):
    file = t.file("data.json", json.dumps(data))
    run = t.run([t.program("node"), t.file("sites.js", SCRIPT), PAGE, file, mine, other])
    t.equal("node (%s)" % run.err.decode()[:500], run.status, 0)
    return json.loads(run.out)[1]


def changes(t, old, new):
    sums = {}
    for row in json.loads(report(t, "--diff", "--format=json", old, new))["changes"]:
        add(sums, row["call_site"], row["new_bytes"])
    return sums


for p in PROGRAMS:
    @test("whose/bare-" + p)
    def _(t, p=p):
        """Exact sums in recordings, massif files, tables, differences, leaks and what the page computes."""
        profile = t.profile([t.target("whose", "bare-" + p)], ["--record=r", "-o", "m", "--threshold=0", "--leak-check"])
        path, massif = (os.path.join(profile.directory, name) for name in ("r", "m"))

        def check(what, sums):
            for pattern, size in PROGRAMS[p].items():
                found = sum(n for name, n in sums.items() if re.match(pattern, name))
                least = found >= size and found < size + 4096  # the vector of Rust's program
                t.check(least if "rust" in p else found == size, "%s: %s in %r" % (what, pattern, sums))

        table = {}
        for row in csv.DictReader(io.StringIO(report(t, "--format=csv", path))):
            add(table, row["call_site"], int(row["bytes"]))
        check("CSV", table)
        for what, file in (("recording", path), ("massif file", massif)):
            report(t, "--html=" + file + ".html", file)
            data = embedded(file + ".html")
            check(what, by_site(data, data["leaves"]["site"], held(data)))
            check("page of the " + what, by_site(data, sites_of_page(t, data), held(data)))
            check("difference, " + what, changes(t, file, file))
        data = embedded(path + ".html")
        for option, patterns in (("--my-code", {"mine": "bare-*"}), ("--not-my-code", {"other": "bare-*"})):
            wanted = json.loads(report(t, "--format=json", option + "=bare-*", path))["leaves"]["site"]
            t.equal(option, sites_of_page(t, data, **patterns), wanted)
        leaks = data["leaks"]
        check("leaks", by_site(data, [data["leaves"]["site"][leaf] for leaf in leaks["leaf"]], leaks["bytes"]))
        labels = largest("\n".join(profile.messages))[:len(PROGRAMS[p])]
        report(t, "--svg=" + massif + ".svg", massif)
        areas = legend(massif + ".svg")
        for name in {re.search(r"_\w+", pattern)[0] for pattern in PROGRAMS[p]}:  # where the path is long, scopes are cut
            for what, found in (("summary", labels), ("picture", areas)):
                t.check(any(name in label for label in found), "%s: %s in %r" % (what, name, found))
        for label in labels + areas:
            t.check(not re.search(r"native_thread|start_thread|thread_start|pthread_once", label), label)
