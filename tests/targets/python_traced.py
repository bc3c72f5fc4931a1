"""Keeps objects: argv[1] says which. With argv[2] it begins when a line comes on standard input, and if that is not "wait" it
is the name of a file: what tracemalloc knows of the objects is written to it, as JSON, {"file:line": [bytes, blocks]} and the
bytes of all lines, [N, 0], as "total". Ends without finalization, so that what was written is in use then."""
import json
import os
import re
import sys
import tracemalloc
from collections import OrderedDict, deque


class Point:
    __slots__ = ("x", "y")

    def __init__(self, i):
        self.x = 1000000 + i
        self.y = "%d" % (i * 7)


def points(n):
    return [Point(i) for i in range(n)]


def texts():
    lines = ["order %d: %s" % (i, "x" * (i % 300)) for i in range(3000)]
    words = {line[6:10]: line.encode() for line in lines}
    joined = "".join(lines)
    return lines, words, joined, joined.upper()


def objects():
    kept = points(4000)
    for _ in range(5):
        points(1000)
    large = [bytearray(600 + i) for i in range(500)]
    return kept, large


def parsed():
    text = json.dumps([{"name": "name%d" % i, "values": [1000 + i, i / 3, None], "key": "k" * (i % 40)} for i in range(2000)])
    return json.loads(text), re.findall("name[0-9]+", text), text


class Item:
    def __init__(self, name, price, tags):
        self.name, self.price, self.tags = name, price, tags


class Node:
    def __init__(self, value):
        self.value = value
        self.children = []

    def add(self, value):
        self.children.append(Node(value))
        return self.children[-1]


class Shop(OrderedDict):
    @property
    def cheap(self):
        return [item for item in self.values() if item.price < 900]


def classes():
    level = [Node(0)]
    for depth in range(8):
        level = [node.add(1000 * depth + i) for node in level for i in range(2)]
    shop = Shop((item.name, item) for item in (Item("item %d" % i, i * 1.5, ["tag %d" % i]) for i in range(1500)))
    return level, shop, shop.cheap


async def fetch(i, cache):
    await asyncio.sleep(0)
    cache["key %d" % i] = [i] * (i % 20)
    return bytes(i % 300)


async def numbers(n):
    for i in range(n):
        await asyncio.sleep(0)
        yield 10000 + i


def count(n):
    for i in range(n):
        yield "line %d" % i


async def serve():
    cache = {}
    kept = await asyncio.gather(*[fetch(i, cache) for i in range(400)])
    queue = deque()
    async for n in numbers(200):
        queue.append((n, str(n)))
    begun = [count(i + 1) for i in range(200)]
    return cache, kept, queue, [numbers(i) for i in range(50)], begun, [next(g) for g in begun]


def coroutines():
    loop = asyncio.new_event_loop()
    return loop, loop.run_until_complete(serve())


def database():
    base = sqlite3.connect(":memory:")
    base.execute("create table orders (id integer primary key, name text, price real)")
    base.executemany("insert into orders (name, price) values (?, ?)", (("order %d" % i, i / 7) for i in range(2000)))
    rows = base.execute("select * from orders where price > 100").fetchall()
    base.row_factory = sqlite3.Row
    return base, rows, list(base.execute("select name, price from orders order by price desc limit 200"))


work = {f.__name__: f for f in (texts, objects, parsed, classes, coroutines, database)}[sys.argv[1]]
if sys.argv[1] == "coroutines":
    import asyncio
    asyncio.new_event_loop().close()
elif sys.argv[1] == "database":
    import sqlite3
json.loads(json.dumps([1, "a", None, 0.5]))
re.findall("a[0-9]+", "")
if sys.argv[2:]:
    print("ready", flush=True)
    sys.stdin.readline()
    if sys.argv[2] != "wait":
        tracemalloc.start()
kept = work()
if tracemalloc.is_tracing():
    lines = {"total": [tracemalloc.get_traced_memory()[0], 0]}
    for line in tracemalloc.take_snapshot().statistics("lineno"):
        frame = line.traceback[0]
        if frame.filename != tracemalloc.__file__:
            lines["%s:%d" % (os.path.basename(frame.filename), frame.lineno)] = [line.size, line.count]
    with open(sys.argv[2], "w") as output:
        json.dump(lines, output)
os._exit(0)
