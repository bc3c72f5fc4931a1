"""--graph: what a variable retains is what is free without it; ways to a block, core files, profiles, outputs."""

import json
import os
import re
import subprocess

from harness import Fail, allocator, report, report_json, run_report, test
from inspect_lib import gcore, inspect
from report_lib import embedded


def graph(t, pid, *options, source=None):
    """The JSON; its rows must add up to the heap."""
    path = os.path.join(t.subdirectory(), "graph.json")
    how = source or ["-p", str(pid), "--graph"]
    result = t.run([t.ptmem(), "-q", *how, "--graph-out=" + path, *options])
    if result.status != 0:
        raise Fail("status %d: %s" % (result.status, result.err.decode()))
    return read(t, path)


def read(t, path):
    with open(path, encoding="utf-8") as file:
        report = json.load(file)
    top = [row for row in report["rows"] if row["level"] == 0]
    for kind in ("bytes", "blocks"):
        t.equal("sum of the rows, " + kind, sum(row["retained_" + kind] for row in top), report[kind])
        t.equal("sum of the states, " + kind, sum(state[kind] for state in report["states"].values()), report[kind])
    return report


class Owned:
    """targets/owned or another program that frees what a variable owns when it reads its name."""

    def __init__(self, t, path, **env):
        self.t = t
        # at 32-bit addresses, numbers of libraries, as sizes of caches, may be addresses of the heap: not by chance
        fixed = [t.program("setarch"), "-R"] if re.search("/[^/]*(nopie|static)[^/]*/", path) else []
        self.process = subprocess.Popen(fixed + [path], env=t.environment(t.directory, **env), stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        t.equal("its first line", self.process.stdout.readline(), b"ready\n")

    def drop(self, name):
        self.process.stdin.write(name.encode() + b"\n")
        self.process.stdin.flush()
        blocks, size = map(int, self.process.stdout.readline().split())
        return blocks, size

    def end(self):
        self.process.stdin.close()
        self.t.equal("the program's status", self.process.wait(), 0)


def total(report):
    return report["blocks"], report["bytes"]


def retained(row):
    return row["retained_blocks"], row["retained_bytes"]


def owner(report, pattern):
    """What the owners retain whose text matches."""
    rows = [row for row in report["rows"] if row["level"] == 0 and row["row"] == "owner"
            and re.fullmatch(pattern, row["text"])]
    return tuple(map(sum, zip(*map(retained, rows)))) if rows else (0, 0)


def experiment(t, program, names):
    """Each variable is dropped: what it retained is what is freed, by the program and in the heap."""
    before = graph(t, program.process.pid)
    for name, pattern in names:
        said = owner(before, pattern)
        freed = program.drop(name)
        after = graph(t, program.process.pid)
        t.check(freed[0] > 0, "%s owned nothing" % name)
        t.equal("what %s retained" % name, said, freed)
        t.equal("what is gone without %s" % name,
                tuple(a - b for a, b in zip(total(before), total(after))), freed)
        t.equal("what %s retains afterwards" % name, owner(after, pattern), (0, 0))
        before = after
    return before


def threads_of(program):
    """The main thread, and the other one."""
    main = program.process.pid
    return main, next((int(tid) for tid in os.listdir("/proc/%d/task" % main) if int(tid) != main), 0)


def patterns(program, global_names, local_names, stack, other_stack):
    """Names of variables with what the graph calls them: those of any thread, of each of the two, of stacks."""
    main, other = threads_of(program)
    variable = r"(\S+\.\w+: |\w+::|in_function\(\) )?%s(\[abi:\w+\])? in owned\S*"
    of_thread = r"\S+\.c: %s of thread %d in owned\S*"
    static = variable.replace(" in", "( of thread %d)? in" % main)  # where the main thread's are among static ones
    return ([(name, variable % name) for name in global_names] + [(name, static % name) for name in local_names] +
            [(stack, "stack of thread %d" % main), (other_stack, "stack of thread %d" % other)] * bool(stack) +
            [("other_" + name, of_thread % (name, other)) for name in local_names])


# Program -> its variables: static ones; of each of two threads; of the stack of each.
OWNERS = {
    "owned": (("list", "hidden_list", "kept", "tree", "table", "ring", "items", "slots", "tagged", "one", "other", "large"), ("local",),
              "stack", "thread"),
    "owned_more": (("towers", "chains", "cache", "orchard", "trie", "cities", "arena", "rows", "jobs", "callback"), ("pool", "names"),
                   "array", "frame"),
    "owned_cxx": (("names", "by_number", "by_user", "queues", "first", "second", "text", "sessions"), (), None, None),
    "owned-O0": (("STRINGS", "BY_NUMBER", "BY_NAME", "SET", "QUEUE", "CHAIN", "LIST", "SHAPES", "BRANCH", "FIRST", "SECOND", "LOCKED"),
                 (), None, None),
}
OWNERS["owned-O2"] = OWNERS["owned-O0"]

for _variant, _program, _allocator in (
        ("gcc-O2-pie", "owned", None), ("clang-O0-nopie", "owned", None), ("musl-O2-static", "owned", None),
        ("gcc-O2-pie", "owned", "jemalloc"), ("gcc-O2-pie", "owned_more", None), ("clang-O0-nopie", "owned_more", None),
        ("gcc-O2-static", "owned_more", None), ("musl-O2-static", "owned_more", None), ("gcc-O2-pie", "owned_more", "mimalloc"),
        ("gcc-O2-pie", "owned_more", "tcmalloc"), ("gcc-O2-pie", "owned_cxx", None), ("clang-O0-nopie", "owned_cxx", None),
        ("rust", "owned-O0", None), ("rust", "owned-O2", None)):
    @test("graph/experiment/%s/%s" % (_program, _allocator or _variant))
    def _(t, variant=_variant, name=_program, malloc=_allocator):
        program = Owned(t, t.target(variant, name), **({"LD_PRELOAD": allocator(malloc)} if malloc else {}))
        experiment(t, program, patterns(program, *OWNERS[name]))
        program.end()


@test("graph/owned")
def owned(t):
    """What two variables hold is shared by them; the blocks are those of --inspect. The program has the name of its link."""
    link = os.path.join(t.directory, "linked")
    os.symlink(t.target("gcc-O2-pie", "owned"), link)
    program = Owned(t, link)
    main = program.process.pid
    report = graph(t, main)
    t.equal("shared rows", [row["count"] for row in report["rows"] if row["row"] == "shared"], [1])
    t.equal("what holds the shared block", [(row["holders_count"], sorted(row["holders"])) for row in report["rows"]
                                            if "holders" in row], [(2, ["one in linked", "other in linked"])])
    live = inspect(t, main)
    t.equal("blocks as with --inspect", total(report), (
        sum(arena["live_blocks"] for arena in live["arenas"]) + live["mmapped_blocks"],
        sum(arena["live_bytes"] for arena in live["arenas"]) + live["mmapped_bytes"]))
    program.end()


FIELDS = (("cache.name", "fields.c: cache.name"), ("user", "session.user"), ("name", "order.name"), ("next", "order.next"),
          ("orders", "session.orders"), ("last", "session.last"), ("by_user", r"fields.c: cache.by_user[*]"))


def fields(t, report):
    """Rows of fields by name; directly they hold all blocks."""
    for kind in ("bytes", "blocks"):
        t.equal("sum of what fields hold directly, " + kind, sum(row["own_" + kind] for row in report["fields"]), report[kind])
    return {row["field"]: row for row in report["fields"]}


for _variant in ("gcc-O2-pie", "clang-O0-nopie"):
    @test("graph/fields/" + _variant)
    def _(t, variant=_variant):
        """What a field holds alone in all objects, and what two hold together."""
        program = Owned(t, t.target(variant, "fields"))
        pid = program.process.pid
        before = graph(t, pid)
        padding = {row["type"]: row for row in before["padding"]}["session"]
        t.equal("its padding", [padding[key] for key in ("size", "padding", "best_size", "is_upper_bound", "order")],
                [48, 14, 40, True, "orders, last, user, plan, kind, open"])
        t.equal("sessions with names of two fields", retained(fields(t, before)["session (several fields)"])[0], 14464)
        for name, field in FIELDS:
            rows = fields(t, before)
            t.check("session.plan" not in rows, "plans are held by two sessions: %r" % rows)
            said = retained(rows[field])
            t.equal("what %s holds alone" % field, said, program.drop(name))
            after = graph(t, pid)
            t.equal("what is gone without " + field, tuple(a - b for a, b in zip(total(before), total(after))), said)
            t.check(field not in fields(t, after), "%s still holds %r" % (field, fields(t, after).get(field)))
            before = after
        types = {row["type"]: row["blocks"] for row in before["types"]}
        t.equal("types that are left", {name: types.get(name, 0) for name in ("session", "session[]", "plan", "order", "visit")},
                {"session": 1, "session[]": 1, "plan": 1, "order": 0, "visit": 3})
        text = t.run([t.ptmem(), "-q", "-p", str(pid), "--graph"]).out.decode()
        t.check(re.search(r"^  fields\.c: pool  retains .*; 434,160 bytes directly$", text, re.M), text)
        t.check(re.search(r"^  sum of what all hold directly  .* in %d blocks$" % before["blocks"], text, re.M), text)
        # 15 of 24 bytes, but one in a block of 200; 14 of 24 bytes have a control character; one is there only once
        strings = before["equal_strings"]
        t.equal("equal strings", [[row[key] for key in ("length", "copies", "bytes", "saved_bytes")] for row in strings["rows"]],
                [[13, 15, 14 * 24 + 200, 14 * 24 + 200 - 24], [11, 15, 15 * 24, 14 * 24]])
        t.equal("all strings", [strings[key] for key in ("blocks", "different", "saved_bytes", "skipped")],
                [31, 3, 14 * 24 + 200 - 24 + 14 * 24, 0])
        t.check("another label" not in json.dumps(before), "the file has data of the program")
        t.check(re.search(r'^  512 bytes less: 15 copies of 13 bytes  "another label"$', text, re.M), text)
        t.check("\x1b" not in text and "\t" not in text, text)
        path = os.path.join(t.directory, "graph.txt")
        t.run([t.ptmem(), "-q", "-p", str(pid), "--graph", "--graph-out=" + path])
        with open(path, encoding="utf-8") as file:
            written = file.read()
        t.check("15 copies of 13 bytes\n" in written and "another label" not in written, written)
        program.end()


@test("graph/who-holds")
def who_holds(t):
    """The way to the last node of a list has all others of it."""
    program = Owned(t, t.target("gcc-O2-pie", "owned"))
    pid = program.process.pid
    report = graph(t, pid, "--graph-depth=1000")
    rows = report["rows"]
    start = next(i for i, row in enumerate(rows) if row.get("name") == "owned.c: hidden_list")
    end = next(i for i in range(start + 1, len(rows)) if rows[i]["level"] == 0)
    deepest = max(rows[start:end], key=lambda row: row["level"])
    t.equal("levels of the list", deepest["level"], 1000)
    way = graph(t, pid, "--who-holds=" + deepest["address"])["way"]
    t.equal("where it begins", way[0]["name"], "owned.c: hidden_list")
    t.equal("where it ends", way[-1]["address"], deepest["address"])
    t.equal("members", {step["field"].removeprefix("[*].") for step in way[1:-1]}, {"next"})
    t.check(len(way) == 1001 and all(step["offset"] in (0, 8) for step in way[:-1]), "%d steps" % len(way))
    text = t.run([t.ptmem(), "-q", "-p", str(pid), "--graph", "--who-holds=" + way[1]["address"]]).out.decode()
    t.check("owned.c: hidden_list -> " + way[1]["address"] in text and "bytes, node" in text, text)
    text = t.run([t.ptmem(), "-q", "-p", str(pid), "--graph", "--who-holds=16"]).out.decode()
    t.check("16 is in no block in use" in text, text)
    text = t.run([t.ptmem(), "-q", "-p", str(pid), "--graph"]).out.decode()
    t.check(re.search(r"^types of blocks:$", text, re.M) and re.search(r"^  node  .* blocks$", text, re.M), text)
    result = t.run([t.ptmem(), "-q", "-p", str(pid), "--graph", "--containers=" + way[1]["address"]])
    t.equal("status with a file of containers that is missing", result.status, 1)
    t.check(b"--containers: " in result.err, result.err)
    program.end()


@test("graph/file")
def file(t):
    """A file answers what the process does, without what its blocks contain, and two are compared."""
    program = Owned(t, t.target("gcc-O2-pie", "owned"))
    pid = program.process.pid
    paths = [os.path.join(t.directory, name) for name in ("before.graph", "after.graph")]
    report = graph(t, pid, "--graph-depth=3")
    for path, name in zip(paths, ("list", "table")):
        t.equal("status", t.run([t.ptmem(), "-q", "-p", str(pid), "--graph", "--graph-out=" + path]).status, 0)
        freed = program.drop(name)
    again = report_json(t, paths[0], "--graph-depth=3")
    for key in ("rows", "states", "bytes", "blocks", "pid", "command"):
        t.equal(key + " of the file", again[key], report[key])
    block = next(row["address"] for row in report["rows"] if row["level"] == 2)
    way = report_json(t, paths[0], "--who-holds=" + block)["way"]
    t.equal("the end of a way", way[-1]["address"], block)
    change = json.loads(run_report(t, "--diff", "--format=json", *paths).out)
    one = [owner for owner in change["owners"] if owner["old_bytes"] != owner["new_bytes"]]
    t.equal("what differs", [owner["text"] for owner in one], ["list in owned"])
    t.equal("by", (one[0]["old_blocks"], one[0]["new_blocks"]), (1000, 0))
    text = run_report(t, "--diff", *paths).out.decode()
    t.check(re.search(r"^- +55,904 .* list in owned$", text, re.M), text)
    for damaged in (b"", b"x" * 100):
        with open(paths[0], "rb") as whole, open(paths[1], "wb") as part:
            part.write(whole.read()[:1000] + damaged)
        t.equal("status of a damaged file", run_report(t, paths[1]).status, 255)
    t.check(freed[0] > 0, "nothing was freed")
    program.end()


@test("graph/core")
def core(t):
    """A core file has the same graph as the process."""
    program = Owned(t, t.target("gcc-O2-pie", "owned"))
    report = graph(t, program.process.pid)
    found = graph(t, 0, source=["--graph=" + gcore(t, program.process.pid)])
    t.equal("all", total(found), total(report))
    for name, pattern in patterns(program, *OWNERS["owned"]):
        t.equal("what %s retains" % name, owner(found, pattern), owner(report, pattern))
    program.end()


@test("graph/at-exit")
def at_exit(t):
    """A profiled program: at its end. What it leaked are the states of --leak-check."""
    path = os.path.join(t.directory, "graph.json")
    leaks = os.path.join(t.directory, "leaks.json")
    profile = t.profile([t.target("gcc-O2-pie", "leaks")],
                        ["--graph", "--graph-out=" + path, "--leak-check", "--show-leak-kinds=all", "--leaks-out=" + leaks])
    t.equal("status", profile.status, 90)
    report = read(t, path)
    with open(leaks, encoding="utf-8") as file:
        kinds = json.load(file)["kinds"]
    t.equal("blocks by state", {kind: state["blocks"] for kind, state in report["states"].items()},
            {kind: state["blocks"] for kind, state in kinds.items()})
    t.check(all(state["blocks"] for state in kinds.values()), "a kind that does not occur: %r" % kinds)


@test("graph/recorded")
def recorded(t):
    """A recording and a page hold the graph: all questions of a graph's file work on the recording."""
    names = {name: os.path.join(t.directory, name) for name in ("graph", "recording", "page.html", "again.html")}
    profile = t.profile([t.target("gcc-O2-pie", "leaks")], ["--graph", "--graph-out=" + names["graph"], "--html=" + names["page.html"],
                                                           "--record=" + names["recording"]])
    t.equal("status", profile.status, 90)
    wanted = report_json(t, names["graph"], "--graph-depth=5")
    t.equal("rows", report_json(t, names["recording"], "--graph", "--graph-depth=5"), wanted)
    block = next(row["address"] for row in wanted["rows"] if row["level"] == 1)
    t.equal("who holds", report(t, "--graph", "--who-holds=" + block, names["recording"]), report(t, "--who-holds=" + block, names["graph"]))
    changes = json.loads(report(t, "--graph", "--diff", "--format=json", names["graph"], names["recording"]))["owners"]
    t.equal("differences", [owner for owner in changes if owner["old_bytes"] != owner["new_bytes"]], [])
    data = report_json(t, names["recording"])
    t.equal("in JSON", (data["graph"]["bytes"], data["graph"]["blocks"]), (wanted["bytes"], wanted["blocks"]))
    t.equal("status of ptmem-report", run_report(t, "--html=" + names["again.html"], names["recording"]).status, 0)
    t.check(embedded(names["page.html"]) == data and embedded(names["again.html"]) == data, "the pages are others")
    check_bad_recordings(t, names["recording"])


def check_bad_recordings(t, path):
    """Those without a graph, and those that are cut, say what they lack."""
    with open(path, "rb") as file:
        whole = file.read()
    for size in range(0, len(whole), max(1, len(whole) // 20)):
        with open(path + ".cut", "wb") as file:
            file.write(whole[:size])
        result = run_report(t, "--graph", path + ".cut")
        t.check(result.status in (2, 255) and len(result.err.decode().splitlines()) == 1, "%d bytes: %r" % (size, result))
    plain = t.profile([t.target("gcc-O2-pie", "leaks")], ["--record=r"])
    result = run_report(t, "--graph", os.path.join(plain.directory, "r"))
    t.check(result.status == 255 and b"there is no heap graph in it" in result.err, result)
    for options in (["--merge"], ["--anonymize=" + path + ".a"], ["--write-baseline=" + path + ".b"]):
        t.equal("status of %s" % options, run_report(t, "--graph", *options, path).status, 255)
