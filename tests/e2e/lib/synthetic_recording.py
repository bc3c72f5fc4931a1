"""Recordings as JSON (doc/format.md) without a program: made from a seed, of any size, with known sums."""
import random


def make(seed=1, functions=300, leaves=800, intervals=60, depth=14, scale=1.0, interval=50, evil=False):
    r = random.Random(seed)
    objects = [{"path": "/usr/bin/orders", "build_id": "ab"}, {"path": "/usr/lib/libparse.so.3", "build_id": ""},
               {"path": "/usr/lib/x86_64-linux-gnu/libc.so.6", "build_id": ""}, {"path": "/usr/lib/libstore.so", "build_id": ""}]
    frames = {k: [] for k in ("function", "file", "line", "object", "kind", "inlined", "address")}

    def frame(function, file, line, obj, kind):
        for key, value in zip(frames, (function, file, line, obj, kind, 0, hex(0x1000 + len(frames["function"])))):
            frames[key].append(value)
        return len(frames["function"]) - 1

    start = [frame("_start", None, 0, 0, 3), frame("__libc_start_main", None, 0, 2, 3), frame("main", "src/main.c", 31, 0, 0)]
    words = "parse read load store index order customer cache table row token node json query plan merge sort flush".split()
    bodies = []
    for i in range(functions):
        obj = r.choice([0, 0, 0, 1, 3])
        name = f"{r.choice(words)}_{r.choice(words)}" + (f"_{i}" if i >= 60 else "")
        if i % 7 == 3:
            name = f"std::vector<{name}, std::allocator<{name}> >::push_back({name} const&)"
        if evil and i % 5 == 0:
            name += "</script><img src=x onerror=document.title='evil'><b>&amp;\"'"
        bodies.append(frame(name, f"src/{r.choice(words)}.c", 10 + i, obj, 0 if obj == 0 else 1))
    allocators = [frame("xmalloc", "src/util.c", 12, 0, 2), frame("operator new(unsigned long)", None, 0, 2, 3)]
    nodes = {"parent": [], "frame": []}
    child = {}

    def node(parent, f):
        if (parent, f) not in child:
            nodes["parent"].append(parent)
            nodes["frame"].append(f)
            child[parent, f] = len(nodes["parent"]) - 1
        return child[parent, f]

    leaf_nodes, paths = [], [(start, 0)]
    while len(leaf_nodes) < leaves:
        base, _ = r.choice(paths[-200:])
        path = base + [r.choice(bodies) for _ in range(r.randint(1, 3))]
        if len(path) < depth:
            paths.append((path, 0))
        end = path + ([r.choice(allocators)] if r.random() < 0.6 else [])
        at = -1
        for f in end:
            at = node(at, f)
        if at not in leaf_nodes[-500:]:
            leaf_nodes.append(at)
    leaf_nodes = list(dict.fromkeys(leaf_nodes))
    def site(n):
        while frames["kind"][nodes["frame"][n]] >= 2:
            n = nodes["parent"][n]
        return n

    leaf = {k: [] for k in ("node", "site", "allocations", "bytes", "temporary", "reallocs", "moved", "max_bytes", "max_time",
                            "sizes", "lifetimes", "threads")}
    cells = {k: [] for k in ("leaf", "born", "died", "blocks", "bytes")}
    live, blocks_live = [0] * intervals, [0] * intervals
    allocations, allocated = [0] * intervals, [0] * intervals
    for i, n in enumerate(leaf_nodes):
        size = int(16 * 2 ** r.uniform(0, 9))
        heavy = r.paretovariate(1.1)
        begin = r.randrange(intervals * 3 // 4)
        own = []
        for _ in range(r.randint(1, max(2, int(12 * scale)))):
            born = min(intervals - 1, begin + r.randrange(max(1, intervals // 4)))
            died = born + 1 + int(r.expovariate(1) * intervals / 4)
            died = -1 if died >= intervals else died
            own.append((born, died, max(1, int(heavy * r.randint(1, 30)))))
        merged = {}
        for born, died, count in own:
            merged[born, died] = merged.get((born, died), 0) + count
        total = 0
        for (born, died), count in sorted(merged.items()):
            for key, value in zip(cells, (i, born, died, count, count * size)):
                cells[key].append(value)
            for t in range(born, intervals if died < 0 else died):
                live[t] += count * size
                blocks_live[t] += count
            allocations[born] += count
            allocated[born] += count * size
            total += count
        short = int(total * r.choice([0, 0, 0.5, 3, 20]))
        when = r.randrange(intervals)
        allocations[when] += short
        allocated[when] += short * size
        k = size.bit_length()
        thread = r.randrange(4)
        for key, value in zip(leaf, (n, site(n), total + short, (total + short) * size, short, total // 10, total // 20, total * size,
                                     begin * interval, [k, total + short], [0, short, 0, 0, total // 2] if short or total > 1 else [],
                                     [[thread, total + short, (total + short) * size]])):
            leaf[key].append(value)
    top = max(range(intervals), key=lambda t: live[t])
    at_peak = {}
    for c in range(len(cells["leaf"])):
        if cells["born"][c] <= top and (cells["died"][c] < 0 or cells["died"][c] > top):
            b = at_peak.setdefault(cells["leaf"][c], [0, 0])
            b[0] += cells["bytes"][c]
            b[1] += cells["blocks"][c]
    total_allocations = sum(leaf["allocations"])
    return {
        "format": "ptmem-report", "version": 1,
        "meta": {"command": "./orders --import customers.json" + ("</script><script>document.title='evil'</script>" if evil else ""),
                 "pid": 4711, "host": "build7", "kernel": "Linux 6.1.0 x86_64", "ptmem": "0.1", "options": "--record=orders.rec",
                 "start": 1764000000.25, "duration": intervals * interval, "exit": "exited 0", "heap_sample": 0, "lost": [],
                 "incomplete": False, "attached": False, "overhead": 31},
        "objects": objects, "frames": frames, "nodes": nodes, "leaves": leaf,
        "timeline": {"interval": interval, "time": [i * interval for i in range(intervals)], "live_bytes": live,
                     "live_blocks": blocks_live, "peak_bytes": live, "allocations": allocations, "allocated_bytes": allocated,
                     "releases": [0] * intervals, "rss": [int(v * 1.2) + 3000000 if i % 2 else None for i, v in enumerate(live)],
                     "address_space": [None] * intervals},
        "cells": cells,
        "peak": {"time": (top + 1) * interval, "bytes": live[top], "blocks": blocks_live[top], "leaf": list(at_peak),
                 "bytes_of": [b[0] for b in at_peak.values()], "blocks_of": [b[1] for b in at_peak.values()]},
        "markers": [{"time": interval * 3, "kind": "monitor", "text": "snapshot"}],
        "threads": [{"id": 4711 + i, "name": n} for i, n in enumerate(["orders", "loader", "writer", "timer"])],
        "leaks": None,
        "end": {"live_bytes": live[-1], "live_blocks": blocks_live[-1], "allocations": total_allocations,
                "allocated_bytes": sum(leaf["bytes"]), "reallocs": sum(leaf["reallocs"]), "frees": 0,
                "temporary": sum(leaf["temporary"]), "failed": 0, "unknown_frees": 0, "stacks": 0, "complete_stacks": 0},
    }
