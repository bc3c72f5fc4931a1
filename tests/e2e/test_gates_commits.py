"""Gates over the history of a program: ten commits, each with a known change of memory, compared with the commit before and
with a baseline; and the same program built at other places, with and without debug information, many times."""

import os
import re

from harness import BUILD, Fail, test

REPORT = os.path.join(BUILD, "ptmem-report")
METRICS = ("allocations", "peak", "live-at-end", "allocated")
SOURCE = """#include <stdlib.h>
#include <string.h>

void *volatile table[100];

__attribute__((noinline)) static void *load(int i)
{
	return malloc(100 + i);
}

__attribute__((noinline)) static void handle(int i)
{
	char *volatile buffer = malloc(5000);

	memset(buffer, i, 5000);
	table[i] = load(i);
	free(buffer);
}

int main(void)
{
	for (int i = 0; i < 50; i++)
		handle(i);
	for (int i = 0; i < 50; i++)
		free(table[i]);
	return 0;
}
"""
# What a commit replaces, and the metrics that have more then. The limit is exceeded from the sixth on.
COMMITS = [
    ("an empty commit", "", "", ()),
    ("lines move", "#include <string.h>\n", "#include <string.h>\n\n/* A table of what was\n * loaded. */\n", ()),
    ("a copy for each item", "\ttable[i] = load(i);\n", "\tfree(strdup(\"a copy\"));\n\ttable[i] = load(i);\n", ("allocations", "allocated")),
    ("no copy", "\tfree(strdup(\"a copy\"));\n", "", ()),
    ("a rename", "load(", "load_item(", ()),
    ("a larger buffer", "5000", "6000", ("peak", "allocated")),
    ("the last item stays", "i < 50; i++)\n\t\tfree(", "i < 49; i++)\n\t\tfree(", ("live-at-end",)),
    ("it does not", "i < 49; i++)\n\t\tfree(", "i < 50; i++)\n\t\tfree(", ()),
    ("one block more, which is small", "\tfree(buffer);\n", "\tfree(buffer);\n\tif (i == 7)\n\t\tfree(malloc(1));\n", ("allocations", "allocated")),
    ("a function of its own", "\ttable[i] = load_item(i);\n", "\tstore(i);\n", ()),
]
STORE = "__attribute__((noinline)) static void store(int i)\n{\n\ttable[i] = load_item(i);\n}\n\n"


def build(t, directory, source, *flags):
    os.makedirs(directory, exist_ok=True)
    with open(os.path.join(directory, "items.c"), "w", encoding="ascii") as file:
        file.write(source)
    done = t.run(["gcc", "-O2", "-fno-builtin", *flags, "-o", "items", "items.c"], cwd=directory)
    t.equal("gcc: %r" % done.err, done.status, 0)


def record(t, directory, *options):
    """(the recording, ptmem's status, what it said)"""
    path = os.path.join(directory, "r")
    done = t.run([t.ptmem(), "-q", "-o", "/dev/null", "--record=" + path, *options, "./items"], cwd=directory)
    t.check(done.status in (0, 1), "status %d: %r" % (done.status, done.err))
    return path, done.status, done.err.decode()


def more(t, *files):
    """The metrics that have more, by a gate for each that allows nothing more."""
    done = t.run([REPORT, "--format=github", *("--fail-if=%s>+0" % m for m in METRICS), *files])
    found = sorted(set(re.findall(r"title=([a-z-]+)>\+0", done.out.decode())))
    t.equal("status: %r" % done.err, done.status, 3 if found else 0)
    return found


@test("gates/commits")
def commits(t):
    """Each commit is built in a directory of its own, as a job does that has two work trees."""
    source, before, kept = SOURCE, None, os.path.join(t.directory, "baseline")
    for i, (title, old, new, grown) in enumerate(COMMITS):
        if old not in source:
            raise Fail("%s: nothing to replace" % title)
        source = source.replace(old, new) if old else source
        if "store(i)" in source:
            source = source.replace("__attribute__((noinline)) static void handle", STORE + "__attribute__((noinline)) static void handle")
        directory = os.path.join(t.directory, "tree%d" % i)
        build(t, directory, source, *(["-g"] if i % 2 else []))
        now, status, said = record(t, directory, "--limit=peak<6000 within handle", "--limit=allocations<=3 within handle")
        t.equal("limit of %s: %s" % (title, said), (status, "it is 6.0 KiB (6,149 bytes) in call 50 of handle" in said),
                (1, True) if "6000" in source else (0, False))
        if before:
            t.equal("%s, compared with the commit before" % title, more(t, "--diff", before, now), sorted(grown))
            t.equal("%s, compared with the baseline" % title, more(t, "--baseline=" + kept, now), sorted(grown))
            t.equal("no growth backwards", [m for m in more(t, "--diff", now, before) if m in grown], [])
        done = t.run([REPORT, "--write-baseline=" + kept, now])
        t.equal("baseline: %r" % done.err, done.status, 0)
        before = now


@test("gates/lines")
def lines(t):
    """Of a function whose lines have moved, the line that allocates more is named, not the one that allocates most."""
    added = "\tfree(buffer);\n\tif (i == 7)\n\t\tfree(malloc(1));\n"
    changed = "\n" + SOURCE.replace("\tfree(buffer);\n", added)
    line = changed[:changed.index("malloc(1)")].count("\n") + 1
    path, kept = [], os.path.join(t.directory, "baseline")
    for i, source in enumerate((SOURCE, changed)):
        directory = os.path.join(t.directory, "tree%d" % i)
        build(t, directory, source, "-g")
        path.append(record(t, directory)[0])
    t.equal("status", t.run([REPORT, "--write-baseline=" + kept, path[0]]).status, 0)
    for files in ["--diff", *path], ["--baseline=" + kept, path[1]]:
        for metric, growth in ("allocations", 1), ("allocated", 1):
            said = t.run([REPORT, "--fail-if=%s>+0" % metric, *files]).err.decode().splitlines()
            t.equal("sites: %s" % said, len(said), 2)
            t.check("  handle (items.c:%d): +%d" % (line, growth) in said[1], "line %d: %s" % (line, said))


@test("gates/builds")
def builds(t):
    """The same at two paths, with and without debug information, with shifted lines, and in runs with other addresses."""
    texts = set()
    for i, (source, flags) in enumerate((("", []), ("", ["-g"]), ("\n" * 9, ["-g"]), ("\n", ["-no-pie", "-fno-pie"]))):
        directory = os.path.join(t.directory, "b" * i + "uild", "deep" if i % 2 else "")
        build(t, directory, source + SOURCE, *flags)
        for _ in range(2):
            path, status, said = record(t, directory)
            t.equal("status: %s" % said, (status, said), (0, ""))
            text = t.run([REPORT, "--write-baseline=-", path]).out.decode()
            t.equal("lines", "\nlines no\n" in text, "-g" not in flags)
            texts.add(text.replace("lines no\n", ""))
    t.equal("different baselines: %s" % texts, len(texts), 1)
    done = t.run([t.ptmem(), "-q", "-o", "/dev/null", "--repeat=5", "./items"], cwd=directory)
    t.equal("the same in each run: %r" % done.err, done.err.decode().count("in each: deterministic here"), 4)


INLINED = """#include <functional>
#include <memory>
#include <string>
#include <vector>
struct item { std::string name; std::vector<int> v; };
static std::vector<item> items;
static inline void add(const char *n, int k) { item i; i.name = std::string(n) + " which is long enough for the heap"; i.v.resize(k); items.push_back(std::move(i)); }
static inline char *raw(int n) { return new char[n]; }
struct pool { std::vector<std::unique_ptr<int[]>> p; void grow(int n) { p.emplace_back(new int[n]); } };
__attribute__((noinline)) void load(int k) { for (int i = 1; i < k; i++) add("x", i); }
__attribute__((noinline)) void each(const std::function<void(int)> &f) { for (int i = 0; i < %s; i++) f(i); }
int main(int argc, char **argv)
{
	pool q;
	std::vector<char *> held;
	load(20);
	for (int i = 1; i < 9; i++)
		q.grow(i);
	each([&](int i) { held.push_back(raw(i + 10)); });
	auto shared = std::make_shared<std::string>("a string that is long enough for the heap");
	return held.size() + argc > 100;
}
"""


def record_inlined(t, count, *flags):
    directory = t.subdirectory()
    with open(os.path.join(directory, "inlined.cpp"), "w", encoding="ascii") as file:
        file.write(INLINED % count)
    done = t.run(["g++", *flags, "-o", "items", "inlined.cpp"], cwd=directory)
    t.equal("g++: %r" % done.err, done.status, 0)
    return record(t, directory)[0]


@test("gates/inlined", limit=120)
def inlined(t):
    """Functions that debug information alone knows, since they are inlined, are no difference; what was added has its site."""
    kept = os.path.join(t.directory, "kept")
    known, unknown, more = (record_inlined(t, count, "-O2", *flags) for count, flags in ((5, ["-g"]), (5, []), (6, ["-g"])))
    for pair in [known, unknown], [unknown, known]:
        done = t.run([REPORT, "--diff", "--format=markdown", "--fail-if=allocations>+0", *pair])
        t.check(done.status == 0 and b"Each call site has the same peak." in done.out, done.out.decode())
        t.check(b"has no debug information of the program" in done.err, "%r" % done.err)
    grown = t.run([REPORT, "--diff", "--fail-if=allocations>+0", unknown, more]).err.decode()
    t.check(re.search(r"  each\(.*: \+1\n", grown) and grown.count(": +") == 1, grown)
    t.equal("baseline", t.run([REPORT, "--write-baseline=" + kept, unknown]).status, 0)
    done = t.run([REPORT, "--baseline=" + kept, "--fail-if=allocations>+0", known])
    t.check((done.status, done.err) == (0, b"") and b"Each call site has the same peak." in done.out, done.out.decode())
    t.equal("baseline", t.run([REPORT, "--write-baseline=" + kept, known]).status, 0)
    done = t.run([REPORT, "--baseline=" + kept, "--fail-if=allocations>+0", unknown])
    t.check(done.status == 0 and b"of one without: call sites in inlined" in done.err, "%r" % done.err)


INLINED_RUST = """use std::collections::HashMap;
fn tokenize(count: usize) -> Vec<String> { (0..count).flat_map(|i| "a b c".split(' ').map(move |w| format!("{w}-{i}-a-long-word"))).collect() }
fn build(words: &[String]) -> HashMap<String, Vec<usize>> {
    let mut index: HashMap<String, Vec<usize>> = HashMap::new();
    for (i, w) in words.iter().enumerate() { index.entry(w.clone()).or_default().push(i); }
    index
}
fn main() { let words = tokenize(20); assert!(build(&words).len() <= words.len()); }
"""


@test("gates/inlined-rust", limit=120)
def inlined_rust(t):
    """The standard library of Rust has lines, and inlined functions, in programs that have none."""
    made = []
    for flags in ["-g"], []:
        directory = t.subdirectory()
        with open(os.path.join(directory, "items.rs"), "w", encoding="ascii") as file:
            file.write(INLINED_RUST)
        done = t.run([t.program("rustc"), "--edition=2021", "-Copt-level=2", *flags, "items.rs"], cwd=directory)
        t.equal("rustc: %r" % done.err, done.status, 0)
        made.append(record(t, directory)[0])
    for pair in made, made[::-1]:
        text = t.run([REPORT, "--diff", *pair]).out.decode()
        t.check(re.search(r"callers\n +0 +([0-9,]+) +\1  total\n$", text), "call trees: %s" % text)
