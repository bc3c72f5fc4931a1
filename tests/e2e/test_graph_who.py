"""--graph: what holds the blocks of a type or of a function, where what owners retain was allocated, what is shared and
leaked, and pprof's view of it. targets/held knows what there is."""

import collections
import json
import os
import re
import shutil
import subprocess

from harness import report_json, run_report, test
from pprof_file import Pprof
from report_lib import embedded

PROGRAM = "held"
CACHE = r"(held\.cpp: )?g_cache"


def facts_of(lines):
    """{"type Order": (blocks, bytes)}"""
    rows = [line.split("\t") for line in lines if "\t" in line]
    return {name: (int(blocks), int(size)) for name, blocks, size in rows}


def profile(t, *commands, name="held.graph"):
    """The graph's file of the program, profiled up to its end, and its facts."""
    path = os.path.join(t.directory, name)
    result = subprocess.run([t.ptmem(), "-q", "--graph", "--graph-out=" + path, t.target("gcc-O2-pie", PROGRAM)],
                            input="".join(command + "\n" for command in (*commands, "facts")).encode(),
                            stdout=subprocess.PIPE, env=t.environment(t.directory), cwd=t.directory, check=False)
    t.equal("status", result.returncode, 0)
    answers = result.stdout.decode().split("done\n")
    return path, facts_of(answers[-2].splitlines())


def amount(row, what=""):
    return row[what + "blocks"], row[what + "bytes"]


def total(rows, what=""):
    return tuple(map(sum, zip(*(amount(row, what) for row in rows)))) if rows else (0, 0)


def who(t, path, subject):
    """What --who-holds says, whose tables must add up."""
    found = report_json(t, path, "--who-holds=" + subject)["who_holds"]
    for table in ("ways", "allocated_in", "types"):
        if table in found:
            t.equal("%s of %s add up" % (table, subject), total(found[table]), amount(found))
    return found


def ways(t, found, **patterns):
    """Each way matches one of the patterns: {name: (blocks, bytes)}."""
    sums = {name: [] for name in patterns}
    for way in found["ways"]:
        names = [name for name, pattern in patterns.items() if re.fullmatch(pattern, way["way"])]
        t.equal("patterns of " + way["way"], len(names), 1)
        sums[names[0]].append(way)
    return {name: total(rows) for name, rows in sums.items()}


@test("graph/who/type")
def of_type(t):
    path, facts = profile(t, "more")
    found = who(t, path, "Order")
    t.equal("kind", (found["kind"], found["is_function"]), ("type", False))
    t.equal("orders", amount(found), facts["type Order"])
    # names are of one order each, the note is of all
    each, note = amount(found, "retained_"), facts["note"]
    t.equal("retained by each", each, tuple(map(sum, zip(facts["type Order"], facts["way name"]))))
    t.equal("free without all", amount(found, "all_retained_"), tuple(map(sum, zip(each, note))))
    by_way = ways(t, found, favourite=r"g_favourites\[\*\]", more=r"g_more -> Session\.orders\[\*\]",
                  cache=CACHE + r"\.by_user\[\*\]\.second -> Session\.orders\[\*\]")
    t.equal("favourites", by_way["favourite"], facts["way favourite"])
    t.equal("orders by all ways", tuple(map(sum, zip(*by_way.values()))), facts["type Order"])
    t.equal("sessions", amount(who(t, path, "Session")), facts["type Session"])
    names = ways(t, who(t, path, "char[]"), text=r"g_texts\[\*\]", favourite=r"g_favourites\[\*\] -> Order\.name",
                 note=r"g_favourites\[\*\] -> Order\.note", more=r"g_more -> Session\.orders\[\*\] -> Order\.name",
                 cache=CACHE + r"\.by_user\[\*\]\.second -> Session\.orders\[\*\] -> Order\.name")
    t.equal("texts", names.pop("text"), facts["function parcel"])
    t.equal("the note", names.pop("note"), facts["note"])
    t.equal("names by all ways", tuple(map(sum, zip(*names.values()))), facts["way name"])
    # a list is one way, however long it is
    list_ways = who(t, path, "type:parcel")["ways"]
    t.equal("ways to parcels", sorted(way["way"] for way in list_ways), ["g_parcels", "g_parcels -> ... -> parcel.next"])
    text = run_report(t, "--who-holds=Order", path).out.decode()
    t.check(re.search(r"^  g_favourites\[\*\] -> 0x[0-9a-f]+, \.\.\.  400 bytes in 10 blocks$", text, re.M), text)


@test("graph/who/function")
def of_function(t):
    path, facts = profile(t, "more")
    for name in ("make_order", "make_more"):
        for subject in (name, "function:" + name):
            found = who(t, path, subject)
            t.equal("kind of " + subject, (found["kind"], found["is_type"]), ("function", False))
            t.equal(subject, amount(found), facts["function " + name])
    with_parameters = who(t, path, "make_order(Session*, int)")
    t.equal("with parameters", amount(with_parameters), facts["function make_order"])
    lost = [way for way in who(t, path, "make_order")["ways"] if way["way"].startswith("leaked")]
    t.equal("lost ones", total(lost), facts["leaked"])


@test("graph/who/names")
def names(t):
    """A name of both kinds is the type's; one of neither kind, or without a profile, says what there is."""
    path, facts = profile(t)
    both = who(t, path, "parcel")
    t.equal("kinds", (both["kind"], both["is_type"], both["is_function"]), ("type", True, True))
    t.equal("of the type", amount(both), facts["type parcel"])
    t.equal("of the function", amount(who(t, path, "function:parcel")), facts["function parcel"])
    text = run_report(t, "--who-holds=parcel", path).out.decode()
    t.check("a function has that name, too: --who-holds=function:parcel" in text, text)
    text = run_report(t, "--who-holds=rder", path).out.decode()
    t.check("no block in use is of type rder, or was allocated in a function of that name" in text, text)
    t.check(re.search("^types with that in their names: .*Order", text, re.M), text)
    t.check(re.search(r"^functions with that in their names: .*make_order\(Session\*, int\)", text, re.M), text)
    t.equal("an unknown name", who(t, path, "type:make_order")["kind"], None)


class Held:
    """The program, which is not profiled yet."""

    def __init__(self, t):
        self.process = subprocess.Popen([t.target("gcc-O2-pie", PROGRAM)], env=t.environment(t.directory),
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        t.equal("its first line", self.process.stdout.readline(), b"ready\n")

    def do(self, command):
        self.process.stdin.write(command.encode() + b"\n")
        self.process.stdin.flush()
        lines = []
        while not lines or lines[-1] != "done\n":
            lines.append(self.process.stdout.readline().decode())
        return facts_of(lines)

    def end(self):
        self.process.stdin.close()
        self.process.wait()


@test("graph/who/process")
def of_process(t):
    """A running process has the same ways, and no functions."""
    program = Held(t)
    facts = program.do("facts")
    path = os.path.join(t.directory, "held.json")
    how = [t.ptmem(), "-q", "-p", str(program.process.pid), "--graph"]
    t.equal("status", t.run([*how, "--who-holds=Order", "--graph-out=" + path]).status, 0)
    with open(path, encoding="utf-8") as file:
        found = json.load(file)["who_holds"]
    t.equal("orders", amount(found), facts["type Order"])
    t.equal("favourites", ways(t, found, favourite=r"g_favourites\[\*\]",
                               cache=CACHE + r"\.by_user\[\*\]\.second -> Session\.orders\[\*\]")["favourite"],
            facts["way favourite"])
    text = t.run([*how, "--who-holds=make_order"]).out.decode()
    t.check("functions that allocated are known with a profile only: ptmem --graph PROGRAM" in text, text)
    program.end()


@test("graph/who/attached")
def attached(t):
    """A process that is profiled from some moment on: what was allocated before has no path."""
    program = Held(t)
    ptmem = subprocess.Popen([t.ptmem(), "--log-file=log", "-p", str(program.process.pid), "--graph",
                              "--when=heap>1M:inspect", "--graph-out=held.graph"], cwd=t.directory,
                             env=t.environment(t.directory))
    log = os.path.join(t.directory, "log")
    t.wait_until("attached", lambda: os.path.exists(log) and "attached to" in open(log, encoding="utf-8").read())
    program.do("more")
    facts = program.do("large")
    path = os.path.join(t.directory, "held.1.graph")
    t.wait_until("the graph", lambda: os.path.exists(path))
    program.end()
    t.equal("status of ptmem", ptmem.wait(), 0)
    t.equal("make_more", amount(who(t, path, "make_more")), facts["function make_more"])
    report = report_json(t, path)
    t.equal("all paths", total(report["allocated"]), (report["blocks"], report["bytes"]))
    earlier = [row for row in report["allocated"] if not row["functions"]]
    t.equal("blocks from before", total(earlier)[0], report["blocks"] - facts["function make_more"][0] - 1)
    [leak] = [leak for leak in report["leaks"] if leak["others"]] or [None]
    t.equal("leaks of unknown kind have no others", leak, None)


@test("graph/allocated")
def allocated(t):
    """Call paths add up to the heap, and those of each owner to what it retains."""
    path, facts = profile(t, "more")
    report = report_json(t, path)
    t.equal("all paths", total(report["allocated"]), (report["blocks"], report["bytes"]))
    rows = {row["functions"][0] + " < " + row["functions"][1]: row for row in report["allocated"]
            if len(row["functions"]) > 1}
    session = rows["fill_session(Session*, int) < make_more()"]
    t.equal("the array of the orders", session["blocks"], 1)
    made = next(row for name, row in rows.items() if name.startswith("make_more() < obey"))
    t.equal("what the new session retains", amount(made, "retained_"), facts["function make_more"])
    by_owner = {}
    for row in report["owners_allocated"]:
        by_owner.setdefault(row["owner"], []).append(row)
    for row in report["rows"]:
        if row["level"] == 0 and row["row"] == "owner":
            t.equal("paths of " + row["text"], total(by_owner.pop(row["text"])), amount(row, "retained_"))
    shared = next(row for row in report["rows"] if row["row"] == "shared")
    t.equal("paths of shared blocks", total(by_owner.pop(shared["text"])), amount(shared, "retained_"))
    t.equal("owners that retain nothing", by_owner, {})


@test("graph/shared")
def shared(t):
    """Who shares what is shared."""
    path, facts = profile(t)
    row = next(row for row in report_json(t, path)["rows"] if row["row"] == "shared")
    t.equal("shared", amount(row, "retained_"), facts["shared"])
    t.equal("by", sorted(owner["text"].split(": ")[-1] for owner in row["owners"]),
            ["g_cache in held", "g_favourites in held"])
    for owner in row["owners"]:
        t.equal("what %s shares" % owner["text"], amount(owner), facts["shared"])
    name = "shared by %s and %s" % tuple(owner["text"] for owner in row["owners"])
    t.equal("its name", row["text"], name)
    example = next(way["example"] for way in who(t, path, "Order")["ways"] if way["way"] == "g_favourites[*]")
    text = run_report(t, "--who-holds=" + example, path).out.decode()
    t.check(re.search(r"^  %s\n    leading to this: .*g_(favourites|cache) in held \(.*g_(favourites|cache) in held \(" %
                      re.escape(name), text, re.M), text)
    t.check(re.search(r"^allocated in:\n  make_order", text, re.M), text)
    text = run_report(t, path).out.decode()
    t.check(re.search(r"^  %s, \d+ at the top  retains " % re.escape(name), text, re.M), text)
    t.check(text.count("several owners") == 0, text)
    # all outputs that name it say the same
    t.check(name in run_report(t, "--brief", path).out.decode(), "not in --brief")
    t.check(name in [frame[0] for _, stack in Pprof(run_report(t, "--format=pprof", path).out).by_path() for frame in stack],
            "not in pprof")
    page = os.path.join(t.directory, "page.html")
    t.equal("status of --html", run_report(t, "--html=" + page, path).status, 0)
    t.check(name in embedded(page)["texts"], "not in the page")


@test("graph/diff-by-path")
def diff_by_path(t):
    """Call paths of two graphs are compared, and add up to what is in use; without a profile of both there are none."""
    old, before = profile(t, name="old.graph")
    new, after = profile(t, "more", name="new.graph")
    found = json.loads(run_report(t, "--diff", "--format=json", old, new).out)
    for table in ("owners", "allocated"):
        for side in ("old_", "new_"):
            t.equal("%s%s add up" % (side, table), total(found[table], side), amount(found, side))
    grown = [row for row in found["allocated"] if row["old_bytes"] != row["new_bytes"]]
    t.equal("what grew is from make_more", {"make_more()" in row["functions"] for row in grown}, {True})
    t.equal("by", tuple(a - b for a, b in zip(total(grown, "new_"), total(grown, "old_"))), after["function make_more"])
    t.equal("the same path once", len({tuple(row["functions"]) for row in found["allocated"]}), len(found["allocated"]))
    [shared_row] = [row for row in found["owners"] if row["kind"] == "shared"]
    t.equal("shared", (amount(shared_row, "old_"), amount(shared_row, "new_")), (before["shared"], after["shared"]))
    t.check(re.fullmatch("shared by .*g_.* in held and .*g_.* in held", shared_row["text"]), shared_row["text"])
    text = run_report(t, "--diff", old, new).out.decode()
    t.check(re.search(r"^ +difference .* allocated in\n\+ .*  \S.* <- .*make_more\(\)", text, re.M), text)
    t.check("allocated in" in run_report(t, "--diff", "--brief", old, new).out.decode(), "not in --brief")
    program = Held(t)
    plain = os.path.join(t.directory, "plain.graph")
    how = [t.ptmem(), "-q", "-p", str(program.process.pid), "--graph", "--graph-out=" + plain]
    t.equal("status", t.run(how).status, 0)
    program.end()
    text = run_report(t, "--diff", plain, new).out.decode()
    t.check("Only %s has call paths." % new in text, text)


@test("graph/leaks")
def leaks(t):
    """Blocks that are leaked, others from the same function, and where they point to."""
    path, facts = profile(t)
    report = report_json(t, path)
    lost = next(row for row in report["rows"] if row.get("kind") == "leaked")
    t.equal("leaked", amount(lost, "retained_"), facts["leaked"])
    t.equal("kinds add up", total(report["leaks"], "retained_"), facts["leaked"])
    [leak] = report["leaks"]
    t.check(leak["kind"].startswith("from make_order(Session*, int) <- lose_orders(Session*)"), leak["kind"])
    t.equal("others", (leak["lost"], leak["others"], leak["others_of_function"]), (3, 600, True))
    t.equal("most are held by", (leak["held"], leak["held_by"].split(": ")[-1]), (590, "g_cache in held"))
    lost = next(way for way in who(t, path, "make_order")["ways"] if way["way"].startswith("leaked ->"))
    text = run_report(t, "--who-holds=" + lost["example"], path).out.decode()
    t.check(re.search(r"^leaked blocks of this kind:\n  3 blocks from make_order.* retain .* in 6 blocks\n    600 others from "
                      r"make_order\(Session\*, int\) are not leaked: 590 are held by .*g_cache in held\n    with 3 pointers "
                      r"to blocks of .*g_cache in held$", text, re.M), text)
    t.equal("they point to", (leak["pointers"], leak["points_to"].split(": ")[-1]), (3, "g_cache in held"))


@test("graph/pprof")
def pprof(t):
    """What pprof adds up for a name is what it retains."""
    path, facts = profile(t, "more")
    report = report_json(t, path)
    found = Pprof(run_report(t, "--format=pprof", path).out)
    t.equal("sums", found.sums(), {"inuse_space": report["bytes"], "inuse_objects": report["blocks"]})
    retained = collections.Counter()
    flat = collections.Counter()
    for (what, stack), value in found.by_path().items():
        names = [frame[0] for frame in stack]
        flat[what, names[0]] += value
        for name in set(names):
            retained[what, name] += value
        t.equal("names that occur twice", len(names), len(set(names)))
    for subject in ("Order", "Session", "char[]", "type:parcel", "Order *[]"):
        of = who(t, path, subject)
        for what, key in (("inuse_space", "bytes"), ("inuse_objects", "blocks")):
            t.equal("%s of %s" % (what, subject), flat[what, of["name"]], of[key])
            t.equal("%s retained by %s" % (what, subject), retained[what, of["name"]], of["retained_" + key])
    for row in report["rows"]:
        if row["level"] == 0:
            t.equal("retained by an owner", retained["inuse_space", row["text"]],
                    row["retained_bytes"])
    go = shutil.which("go")
    if go:
        out = os.path.join(t.directory, "graph.pb.gz")
        with open(out, "wb") as file:
            file.write(run_report(t, "--format=pprof", path).out)
        top = t.run([go, "tool", "pprof", "-unit=B", "-top", "-nodefraction=0", out])
        t.check(re.search(r"^ +%dB .* %dB .* Order$" % (facts["type Order"][1], who(t, path, "Order")["retained_bytes"]),
                          top.out.decode(), re.M), top.out.decode())
    for options in (["--who-holds=Order"], ["--diff", path]):
        result = run_report(t, "--format=pprof", *options, path)
        t.equal("status with %s" % options[0], result.status, 255)
