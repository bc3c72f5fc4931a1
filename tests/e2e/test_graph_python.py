"""--graph of Python programs: variables of modules by name, what they retain to the byte, names of fields. The program knows the
sizes of what it holds."""

import json
import os
import subprocess

from harness import report_json, test
from inspect_lib import gcore, interpreter

# What is built after the ballast is in memory that no earlier block was in, to which leftover words could lead.
PROGRAM = """
import gc, sys, weakref
BALLAST = [[i + 10**9, *(bytes(n) for n in range(0, 480, 16))] for i in range(4000)]
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
def blocks_of(root, leave=()):
    # blocks of all that only root leads to
    seen, todo, found = {id(x) for x in leave} | {id(gc), id(sys)}, [root], []
    while todo:
        o = todo.pop()
        if id(o) in seen or isinstance(o, (type, type(gc))) or type(o) is str and sys.intern(o) is o and o.isidentifier():
            continue
        seen.add(id(o))
        if type(o) is int and -5 <= o <= 256 or o is None:
            continue
        found.append(o)
        todo += gc.get_referents(o)
    return found
print(sum(1 for o in blocks_of(CACHE) if type(o) is dict), *(sum(1 for o in blocks_of(x) if type(o) is int)
      for x in (CACHE, ORDERS, SLOTS)), flush=True)
gc.collect()
print("ready", flush=True)
sys.stdin.read()
"""


class Program:
    def __init__(self, t, minor, **env):
        path = os.path.join(t.directory, "app.py")
        with open(path, "w", encoding="ascii") as file:
            file.write(PROGRAM)
        self.t = t
        self.process = subprocess.Popen([interpreter(minor), path], env=t.environment(t.directory, **env),
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.pid = self.process.pid
        self.numbers = list(map(int, self.process.stdout.readline().split()))
        t.equal("the program", self.process.stdout.readline(), b"ready\n")

    def end(self):
        self.process.stdin.close()
        self.t.equal("its status", self.process.wait(), 0)


def owners(report):
    """{"CACHE": row} of the program's own variables."""
    return {row["name"].split(": ")[1]: row for row in report["rows"]
            if row.get("kind") == "global" and row["name"].startswith("__main__: ")}


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
