#!/usr/bin/env python3
"""Records what Valgrind's Massif makes of a sequence of heap calls.

Writes NAME.events (what ptmem would have seen) and NAME.snapshots (the snapshots
that Massif took, read from its file) beside each other. tests/unit/test_golden.c
replays the first and compares with the second. Run by hand, in this folder:

    ./make_golden.py            all of CASES, with valgrind and gcc

Sizes are chosen so that Massif's allocator splits its free blocks exactly: then
its payloads follow the rule of a fresh block (P + 32 a multiple of 32).
"""
import os
import random
import re
import subprocess
import sys
import tempfile

SITES = 6
CASES = {
    # name: (seed, calls, options for Massif, shape)
    "massif_default": (1, 400, [], "mixed"),
    "massif_small_table": (2, 1500, ["--max-snapshots=10", "--detailed-freq=3"], "mixed"),
    "massif_all_detailed": (3, 1200, ["--detailed-freq=1", "--max-snapshots=25"], "grow"),
    "massif_peaks": (4, 1500, ["--peak-inaccuracy=0.0", "--max-snapshots=40"], "grow"),
    "massif_coarse_peaks": (5, 1500, ["--peak-inaccuracy=20.0", "--heap-admin=0"], "mixed"),
    "massif_realloc": (6, 1500, ["--max-snapshots=31", "--detailed-freq=2"], "realloc"),
    "massif_large": (7, 600, ["--heap-admin=100", "--detailed-freq=5"], "large"),
    "massif_long": (8, 6000, ["--max-snapshots=50", "--detailed-freq=4"], "mixed"),
}


def any_size(rng, shape):
    if rng.random() < 0.03:
        return 0
    if shape == "large" and rng.random() < 0.3:
        return rng.choice([4194256, 4194257, 4194272, 5000000, 10485760, 1 << 23])
    blocks = rng.randint(1, 40 if rng.random() < 0.9 else 1500)
    return 64 * blocks - 32 - rng.randint(0, 15)


def make_calls(seed, count, shape):
    """Calls as (op, slot, size, site); op: 'm' malloc, 'f' free, 'r' realloc."""
    rng = random.Random(seed)
    live, calls, next_slot = {}, [], 0
    for i in range(count):
        r = rng.random()
        want_free = 0.25 if shape == "grow" else 0.42
        if shape != "grow" and (i // 150) % 3 == 2:
            want_free = 0.7
        if live and r < want_free:
            slot = rng.choice(sorted(live))
            del live[slot]
            calls.append(("f", slot, 0, rng.randrange(SITES)))
        elif live and r < want_free + (0.4 if shape == "realloc" else 0.1):
            slot = rng.choice(sorted(live))
            size = any_size(rng, shape)
            if rng.random() < 0.3:
                size = live[slot] // 2
            size = max(size, 17)  # of no block: P would be 16, and P + 32 no multiple of 32
            live[slot] = size
            calls.append(("r", slot, size, rng.randrange(SITES)))
        else:
            size = any_size(rng, shape)
            live[next_slot] = size
            calls.append(("m", next_slot, size, rng.randrange(SITES)))
            next_slot += 1
    return calls, next_slot


def make_program(calls, slots):
    lines = ["#include <stdlib.h>",
             f"static void *p[{slots + 1}];",
             "struct call { char op; int slot; unsigned long size; int site; };"]
    malloc_line, realloc_line = {}, {}
    for site in range(SITES):
        lines.append(f"__attribute__((noinline)) static void site{site}(const struct call *c)")
        lines.append("{")
        lines.append("\tif (c->op == 'm')")
        lines.append("\t\tp[c->slot] = malloc(c->size);")
        malloc_line[site] = len(lines)
        lines.append("\telse if (c->op == 'r')")
        lines.append("\t\tp[c->slot] = realloc(p[c->slot], c->size);")
        realloc_line[site] = len(lines)
        lines.append("\telse")
        lines.append("\t\tfree(p[c->slot]);")
        lines.append("}")
    lines.append("static const struct call calls[] = {")
    lines += [f"\t{{ '{op}', {slot}, {size}ul, {site} }}," for op, slot, size, site in calls]
    lines.append("};")
    table = ", ".join(f"site{s}" for s in range(SITES))
    lines.append("int main(void)")
    lines.append("{")
    lines.append(f"\tvoid (*site[])(const struct call *) = {{ {table} }};")
    lines.append("\tfor (unsigned i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)")
    lines.append("\t\tsite[calls[i].site](&calls[i]);")
    lines.append("\treturn 0;")
    lines.append("}")
    return "\n".join(lines) + "\n", malloc_line, realloc_line


def make_events(calls, malloc_line, realloc_line):
    """The node of a call site has its line number as pc."""
    out = ["ptmem-events 1", "h 1 0 made by make_golden.py"]
    node = {}
    for line in sorted([*malloc_line.values(), *realloc_line.values()]):
        node[line] = len(node) + 1
        out.append(f"n {node[line]} 0 {line:x} 0")
    address, fresh, time = {}, 0x10000, 0
    for op, slot, size, site in calls:
        time += 1000
        old = address.get(slot, 0)
        if op == "f":
            out.append(f"f {time} 1 0 0 {old:x}")
            continue
        fresh += 16
        address[slot] = fresh
        if op == "m":
            out.append(f"a {time} 1 0 {node[malloc_line[site]]} {fresh:x} {size} 0")
        else:
            out.append(f"b {time} 1 0 0 {old:x}")
            out.append(f"r {time} 1 0 {node[realloc_line[site]]} {old:x} {fresh:x} {size}")
    out.append(f"e {time}")
    return "\n".join(out) + "\n"


def read_massif(path):
    out, fields, tree = [], None, []

    def flush():
        if fields:
            f = fields
            out.append(f"{f['snapshot']} {f['heap_tree']} {f['time']} {f['mem_heap_B']} "
                       f"{f['mem_heap_extra_B']} {f['mem_stacks_B']}")
            out.extend(f"\t{line:x} {size}" for line, size in sorted(tree))

    for text in open(path):
        m = re.match(r"(snapshot|time|mem_\w+|heap_tree)=(\w+)", text)
        if m and m[1] == "snapshot":
            flush()
            fields, tree = {}, []
        if m:
            fields[m[1]] = m[2]
        m = re.match(r" n0: (\d+) 0x[0-9A-F]+: site\d \(\w+\.c:(\d+)\)", text)
        if m:
            tree.append((int(m[2]), int(m[1])))
        elif text.startswith(" n"):
            sys.exit(f"a line that was not expected: {text}")
    flush()
    return "\n".join(out) + "\n"


def record(name, seed, count, options, shape):
    calls, slots = make_calls(seed, count, shape)
    program, malloc_line, realloc_line = make_program(calls, slots)
    with tempfile.TemporaryDirectory() as folder:
        source, binary, massif = (os.path.join(folder, n) for n in ("x.c", "x", "x.out"))
        with open(source, "w") as f:
            f.write(program)
        subprocess.run(["gcc", "-g", "-O0", "-o", binary, source], check=True)
        subprocess.run(["valgrind", "-q", "--tool=massif", "--time-unit=B", "--depth=1",
                        "--threshold=0", "--run-libc-freeres=no", f"--massif-out-file={massif}",
                        *options, binary], check=True)
        listing = read_massif(massif)
    words = " ".join(o.lstrip("-") for o in ["--time-unit=B", *options])
    with open(name + ".events", "w") as f:
        f.write(make_events(calls, malloc_line, realloc_line))
    with open(name + ".snapshots", "w") as f:
        f.write(f"# {words}\n{listing}")


for case, (case_seed, case_count, case_options, case_shape) in CASES.items():
    record(case, case_seed, case_count, case_options, case_shape)
