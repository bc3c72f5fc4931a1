"""--graph of Python programs: variables of modules by name, what they retain to the byte, names of fields. The program knows the
sizes of what it holds."""

import json
import os
import re
import subprocess

from harness import report_json, test
from inspect_lib import gcore, interpreter
from process_lib import is_paused

# What is built after the ballast, which also empties Python's lists of free objects, is in memory that no earlier block was in,
# to which leftover words could lead; and no block is allocated after it that could have some.
PROGRAM = """
import os, signal, weakref
BALLAST = [[i + 10**9, (i, -i), {"i": i}, {i}, *(bytes(n) for n in range(0, 480, 16))] for i in range(4000)]
class Order:
    def __init__(self, i):
        self.number = i + 10**6
        self.items = [i + 10**7, i + 10**8]
class Slots:
    __slots__ = ("first", "second")
class Node:
    pass
def fill():
    global CACHE, ORDERS, SLOTS, WEAK, SHARED, ALSO, RING
    CACHE = {i + 10**5: {"id": i + 10**6} for i in range(3000)}
    ORDERS = [Order(i) for i in range(500)]
    SLOTS = {Slots() for i in range(300)}
    for i, s in enumerate(SLOTS):
        s.first, s.second = (i + 10**6, i + 10**7), None
    RING = Node()
    RING.next, RING.data = Node(), [b"x" * 5000]
    RING.next.next = RING
    WEAK = [weakref.ref(o) for o in ORDERS] + [weakref.WeakValueDictionary({1: RING})]
    SHARED = ["shared %d" % i for i in range(100)]
    ALSO = SHARED
fill()
os.write(1, b"ready\\n")
signal.pause()
"""


class Program:
    def __init__(self, t, minor, **env):
        path = os.path.join(t.directory, "app.py")
        with open(path, "w", encoding="ascii") as file:
            file.write(PROGRAM)
        self.t = t
        self.process = subprocess.Popen([interpreter(minor), "-c", "import app"], cwd=t.directory, env=t.environment(t.directory, **env),
                                        stdout=subprocess.PIPE)
        self.pid = self.process.pid
        t.equal("the program", self.process.stdout.readline(), b"ready\n")
        t.wait_until("it to pause", lambda: is_paused(self.pid))  # it has objects for a moment until then

    def end(self):
        self.process.kill()
        self.process.communicate()


def owners(report):
    """{"CACHE": row} of the program's own variables."""
    return {row["name"].split(": ")[1]: row for row in report["rows"]
            if row.get("kind") == "global" and row["name"].startswith("app: ")}


def types_of(row):
    """{"dict": blocks}; attributes of one class may have several types."""
    found = {}
    for e in row["types"]:
        found[e["type"]] = found.get(e["type"], 0) + e["blocks"]
    return found


def graph(t, pid, *options):
    path = os.path.join(t.directory, "graph.json")
    t.run([t.ptmem(), "-q", "--graph", "--graph-out=" + path, *options, "-p", str(pid)])
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def check(t, report, minor):
    rows = owners(report)
    own = {"Python Order attributes": 500} if minor in (11, 12) else \
        {"Python dict": 500, "Python dict entry[]": 500} if minor < 11 else {}
    expected = {
        "CACHE": {"Python dict": 3001, "Python dict entry[]": 3001, "Python int": 6000},
        "ORDERS": {"Python Order": 500, "Python list": 501, "Python list item[]": 501, "Python int": 1500, **own},
        "SLOTS": {"Python Slots": 300, "Python set": 1, "Python set entry[]": 1, "Python tuple": 300, "Python int": 600}}
    t.equal("what variables retain", {name: types_of(rows[name]) if name in rows else None for name in expected}, expected)
    t.equal("sum", sum(row["retained_bytes"] for row in report["rows"] if row["level"] == 0), report["bytes"])
    # a weak reference keeps nothing alive; two names do, together
    t.check("RING" in rows and types_of(rows["RING"])["Python Node"] == 2, "RING: %r" % rows.get("RING"))
    for name in ("SHARED", "ALSO"):
        t.check(name not in rows or rows[name]["retained_blocks"] == 0, "%s is not shared" % name)
    return rows


for _minor in range(8, 14):
    @test("graph/python/3.%d" % _minor)
    def _(t, minor=_minor):
        """What variables of modules retain is what the program knows, by type."""
        program = Program(t, minor, PYTHONMALLOC="pymalloc")
        check(t, graph(t, program.pid), minor)
        program.end()


@test("graph/python/ways")
def ways(t):
    """Attributes of objects, slots and elements have names in ways; blocks of malloc are found, too; a core file says the same."""
    minor = 11
    program = Program(t, minor, PYTHONMALLOC="malloc")
    path = os.path.join(t.directory, "app.graph")
    t.run([t.ptmem(), "-q", "--graph", "--graph-out=" + path, "-p", str(program.pid)])
    core = gcore(t, program.pid)
    program.end()
    found = [way["way"] for way in report_json(t, path, "--who-holds=Python tuple")["who_holds"]["ways"]]
    t.check("module app: SLOTS -> Python set[*] -> Python Slots.first" in found, found[:9])
    found = [way["way"] for way in report_json(t, path, "--who-holds=Python list")["who_holds"]["ways"]]
    t.check("module app: ORDERS -> ... -> Python list[*] -> Python Order.__dict__ -> Python Order attributes.items" in found,
            found[:9])
    result = os.path.join(t.directory, "core.json")
    t.run([t.ptmem(), "-q", "--graph=" + core, "--graph-out=" + result])
    with open(result, encoding="utf-8") as file:
        report = json.load(file)
    t.check({"CACHE", "ORDERS", "SLOTS"} <= set(owners(report)), "owners of the core file")
    t.equal("sum", sum(row["retained_bytes"] for row in report["rows"] if row["level"] == 0), report["bytes"])
    os.remove(core)
