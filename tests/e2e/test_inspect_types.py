"""--inspect: what live blocks are. Programs make blocks of known types between two looks: what is more in the second one is
exactly that, in JSON and as CSV; types that lie are not believed, and all types add up to what is live."""

import json
import os
import re

from harness import test
from inspect_lib import Typed, interpreter, name_of


def types_of(t, report):
    """{type: (blocks, bytes)}, which add up."""
    live = [sum(a["live_" + what] for a in report["arenas"]) + report["mmapped_" + what] for what in ("blocks", "bytes")]
    t.equal("blocks of all types", sum(e["blocks"] for e in report["types"]), live[0])
    t.check(live[1] - 8 * live[0] <= sum(e["bytes"] for e in report["types"]) <= live[1] + 8 * live[0],
            "bytes of all types")
    found = {}
    for e in report["types"]:
        blocks, size = found.get(name_of(e), (0, 0))
        found[name_of(e)] = blocks + e["blocks"], size + e["bytes"]
    return found


def more(before, after):
    both = {name: tuple(x - y for x, y in zip(after.get(name, (0, 0)), before.get(name, (0, 0)))) for name in {*before, *after}}
    return {name: change for name, change in both.items() if change != (0, 0)}


VARIANTS = "gcc-O2-pie", "clang-O0-nopie", "gcc-O2-static", "gcc-O2-stripped", "gcc-O2-nortti"

for _variant in VARIANTS:
    @test("inspect/types/" + _variant)
    def _(t, variant=_variant):
        """Also without symbols, where type_info has the names, and without type_info, where symbols have them."""
        program = Typed(t, [t.target(variant, "typed")])
        before = types_of(t, program.inspect())
        made = program.make(b"a")
        after = types_of(t, program.inspect())
        table = "struct with &plain_operations"
        if variant == "gcc-O2-stripped":
            name = next(name for name in after if name.startswith("struct with &typed+0x") and after[name] == made[table])
            after[table] = after.pop(name)
        t.equal("what was made", more(before, after), made)
        rows = {}
        for row in program.inspect("look.csv"):
            blocks, size = rows.get(row["type"], (0, 0))
            rows[row["type"]] = blocks + 1, size + int(row["bytes"])
        if variant == "gcc-O2-stripped":
            rows[table] = rows.pop(name)
        t.equal("types in the CSV", rows, after)
        program.end()


@test("inspect/types/pages")
def pages(t):
    """Types that pin nearly empty pages."""
    program = Typed(t, [t.target("gcc-O2-pie", "typed")])
    blocks, pinned = program.make(b"p")["pages"]
    found = {name_of(e): (e["blocks"], e["nearly_empty_pages"]) for e in program.inspect()["types"]}
    t.equal("blocks, and pages that they pin", found["C++ Pin"], (blocks, pinned))
    result = t.run([t.ptmem(), "--inspect", "-p", str(program.process.pid)])
    t.check("%10d pages by C++ Pin (%d of them in all)\n" % (pinned, blocks) in result.out.decode(), "not in the text")
    program.end()


@test("inspect/types/paths")
def paths(t):
    """The same by call path, of a program that is profiled: at its end, and when asked."""
    cwd = t.subdirectory()
    result = t.run([t.ptmem(), "-q", "--inspect-at-exit", "--inspect-out=end.json", t.target("gcc-O2-pie", "typed")], cwd=cwd,
                   stdin=b"pq")
    t.equal("status", result.status, 0)
    pinned = int(result.out.decode().split("pages\t")[1].split()[1])
    with open(os.path.join(cwd, "end.json"), encoding="utf-8") as file:
        report = json.load(file)
    t.equal("pages by type", {e["name"]: e["nearly_empty_pages"] for e in report["types"]}["Pin"], pinned)
    first = report["paths"][0]
    t.equal("pages of the first path", first["nearly_empty_pages"], pinned)
    t.check(re.match(r"pin\(?\)? ?\(typed\.cpp:[0-9]+\)$", first["frames"][0]) and "main" in " ".join(first["frames"]),
            "frames: %s" % first["frames"])


@test("inspect/types/text")
def text(t):
    """The rows of the text add up."""
    program = Typed(t, [t.target("gcc-O2-pie", "typed")])
    program.make(b"a")
    result = t.run([t.ptmem(), "--inspect", "-p", str(program.process.pid)])
    lines = result.out.decode().split("live blocks, by how they begin\n")[1].split("\n\n")[0].splitlines()
    rows = [[int(word.replace(",", "")) for word in (line[:18], line[27:40])] for line in lines]
    t.equal("the last row", rows[-1], [sum(column) for column in zip(*rows[:-1])])
    t.check(any("1,000  C++ shapes::Circle, 24 bytes each" in line for line in lines), "no Circle: %s" % lines)
    program.end()


@test("inspect/types/lies")
def lies(t):
    """Tables and types that lead anywhere: no crash, no hang, no control characters, and the types add up."""
    program = Typed(t, [t.target("gcc-O2-pie", "typed")])
    program.make(b"a")
    before = types_of(t, program.inspect())
    program.make(b"h")
    after = types_of(t, program.inspect())
    t.equal("blocks", sum(blocks for blocks, _ in after.values()) - sum(blocks for blocks, _ in before.values()), 64)
    t.equal("those whose names are good", {name for name in more(before, after) if name.startswith("C++")}, {"C++ a"})
    result = t.run([t.ptmem(), "--inspect", "-p", str(program.process.pid)])
    t.check(b"\x1b" not in result.out, "control characters: %r" % result.out)
    program.end()


HELD = {"C++ Held<1>": (10, "variable", "in_variable", "typed"), "C++ Held<2>": (5, "stack"), "C++ Held<3>": (4, "tls"),
        "C++ Held<4>": (10, "block", "C++ Held<1>"), "C++ Held<5>": (7, "nothing"), "C++ Held<6>": (3, "mapping")}

for _variant in VARIANTS[:3]:
    @test("inspect/types/pointers/" + _variant)
    def _(t, variant=_variant):
        """What points to blocks: exactly one thing to each."""
        program = Typed(t, [t.target(variant, "typed")])
        program.make(b"a")
        program.make(b"w")
        report = program.inspect("look.json", "--inspect-pointers")
        types_of(t, report)
        for e in report["types"]:
            t.equal("blocks of " + name_of(e), (sum(h["blocks"] for h in e["holders"]), sum(h["bytes"] for h in e["holders"])),
                    (e["blocks"], e["bytes"]))
        found = {name_of(e): [(h["blocks"], h["kind"], *(h[key] for key in ("name", "object") if key in h))
                              for h in e["holders"]] for e in report["types"]}
        t.equal("what holds them", {name: found.get(name) for name in HELD}, {name: [h] for name, h in HELD.items()})
        threads = {h["thread"] for e in report["types"] for h in e["holders"] if "thread" in h}
        t.equal("threads", threads, {program.process.pid})
        result = t.run([t.ptmem(), "--inspect", "--inspect-pointers", "-p", str(program.process.pid)])
        t.check(b"C++ shapes::Circle, 24 bytes each\n                                  1,000    in held (typed)\n" in result.out,
                "not in the text: %r" % result.out)
        program.end()


@test("inspect/resized")
def resized(t):
    """Aligned blocks with mappings of their own, after realloc has moved them: address by address."""
    program = Typed(t, [t.target("gcc-O2-pie", "typed")])
    made = program.make(b"m")
    rows = {row["address"]: (1, int(row["bytes"])) for row in program.inspect("look.csv")}
    t.equal("blocks and their sizes", {address: rows.get(address) for address in made}, made)
    t.check(program.inspect()["mmapped_complete"], "not all were found")
    program.end()


@test("inspect/fork")
def forked(t):
    """What is in the cache of a thread is free, also in a child that has no such thread."""
    program = Typed(t, [t.target("gcc-O2-pie", "typed")])
    child = program.make(b"f")["child"][0]
    for pid, threads in ((program.process.pid, 2), (child, 1)):
        report = program.inspect("look.json", pid=pid)
        t.equal("threads, and those with a cache", (report["threads"], report["thread_caches"]), (threads, threads))
        t.equal("elements of lists that are no chunks", report["unlisted"], 0)
        t.equal("blocks of 712 bytes", types_of(t, report).get("712 bytes"), None)
        t.check(sum(a["free_chunks"]["tcache"] for a in report["arenas"]) >= 7 * 720, "they are not in a cache")
    program.end()


# -- Python --

PYTHON = """
import abc, enum, sys
class Plain:
    pass
class Slots:
    __slots__ = ("a",)
class Meta(type):
    pass
class OfMeta(metaclass=Meta):
    pass
class Abstract(abc.ABC):
    pass
class Text(str):
    pass
held = []
def say(text):
    sys.stdout.write(text + "\\n")
    sys.stdout.flush()
say("ready")
while True:
    letter = sys.stdin.read(1)
    if letter == "q":
        break
    made = {"Plain": [Plain() for i in range(1000)], "Slots": [Slots() for i in range(500)],
            "OfMeta": [OfMeta() for i in range(300)], "Abstract": [Abstract() for i in range(200)],
            "Text": [Text("x" * i) for i in range(100)], "float": [i / 7 for i in range(1, 2001)],
            "complex": [complex(i, 2) for i in range(1, 701)], "set": [{i} for i in range(150)],
            "bytearray": [bytearray(9) for i in range(90)]}
    held.append(made)
    for name in made:
        say("Python %s\\t%d\\t0" % (name, len(made[name])))
    say("done")
"""


for _minor in range(8, 16):
    @test("inspect/types/python3.%d" % _minor)
    def _(t, minor=_minor):
        program = Typed(t, [interpreter(minor), "-c", PYTHON], PYTHONMALLOC="malloc")
        program.make(b"a") # what it needs once
        before = types_of(t, program.inspect())
        made = program.make(b"a")
        change = more(before, types_of(t, program.inspect()))
        t.equal("objects that were made", {name: change.get(name, (0, 0))[0] for name in made},
                {name: blocks for name, (blocks, _) in made.items()})
        check_collected(t, program.inspect("look.json", "--inspect-pointers"))
        program.end()


def check_collected(t, report):
    """The collector's list leads from each object to the next, which is no reference: most are held by lists."""
    found = next(e for e in report["types"] if name_of(e) == "Python Slots")
    t.equal("blocks by holder", sum(h["blocks"] for h in found["holders"]), found["blocks"])
    t.equal("what holds most", found["holders"][0].get("name"), "pointers")
