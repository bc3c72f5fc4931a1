"""Keeps objects: argv[1] says which. With a file name argv[2] it writes what tracemalloc knows of them, as JSON:
{"file:line": [bytes, blocks]}; with "wait" it begins when a line comes on standard input. Ends without finalization, so
that what was written is in use then."""
import json
import os
import re
import sys
import tracemalloc


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


work = {"texts": texts, "objects": objects, "parsed": parsed}[sys.argv[1]]
json.loads(json.dumps([1, "a", None, 0.5]))
re.findall("a[0-9]+", "")
if sys.argv[2:] == ["wait"]:
    print("ready", flush=True)
    sys.stdin.readline()
elif sys.argv[2:]:
    tracemalloc.start()
kept = work()
if tracemalloc.is_tracing():
    lines = {}
    for line in tracemalloc.take_snapshot().statistics("lineno"):
        frame = line.traceback[0]
        if frame.filename != tracemalloc.__file__:
            lines["%s:%d" % (os.path.basename(frame.filename), frame.lineno)] = [line.size, line.count]
    with open(sys.argv[2], "w") as output:
        json.dump(lines, output)
os._exit(0)
