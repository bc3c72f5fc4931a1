"""Programs whose heaps are inspected, and what they know of them."""

import csv
import glob
import json
import os
import pwd
import re
import shutil
import signal
import subprocess
import sys

import harness
from harness import BUILD, Fail, LIBRARIES, Skip, UNPACKED, allocator
from process_lib import is_paused

PAGE = 4096
# The kernel's counters are exact only since Linux 6.17, so its page tables are read.
VARIANTS = ("gcc-O2-pie", "clang-O0-nopie", "gcc-O2-static", "gcc-O3-staticpie")


class Inspected:
    """targets/inspected, which waits for commands."""

    def __init__(self, t, variant="gcc-O2-pie", program=None, **how):
        env = t.environment(t.directory, **how.pop("env", {}))
        self.t = t
        self.process = subprocess.Popen([program or t.target(variant, "inspected")], env=env, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, **how)
        words = self.process.stdout.readline().split()
        if not words or words[0] != b"ready":
            raise Fail("the program printed %r" % words)
        self.live, self.blocks, self.mmapped = map(int, words[1:])
        # until then they may touch pages
        t.wait_until("its threads to sleep for good", lambda: all(map(self.is_asleep, self.tasks())))

    def tasks(self):
        return os.listdir("/proc/%d/task" % self.process.pid)

    def is_asleep(self, tid):
        """In the main thread's read, or in pause."""
        with open("/proc/%d/task/%s/syscall" % (self.process.pid, tid), encoding="ascii") as file:
            return file.read().split()[0] == ("0" if int(tid) == self.process.pid else "34")

    def step(self, letter):
        self.process.stdin.write(letter)
        self.process.stdin.flush()
        self.t.equal("the answer", self.process.stdout.readline(), b"done\n")

    def end(self):
        self.process.stdin.write(b"q")
        self.process.stdin.close()
        self.t.equal("the program's status", self.process.wait(), 0)

    def resident(self):
        """By the page tables."""
        with open("/proc/%d/smaps_rollup" % self.process.pid, encoding="ascii") as file:
            fields = dict(line.split(":") for line in file if line.count(":") == 1)
        return int(fields["Rss"].split()[0]) * 1024, int(fields["Swap"].split()[0]) * 1024


def inspect(t, pid, ptmem=None, options=(), **how):
    """The JSON, and what the text says."""
    path = os.path.join(t.subdirectory(), "inspect.json")
    own = [ptmem or t.ptmem(), "--inspect", "-p", str(pid), *options]
    result = t.run([*own, "--inspect-out=" + path], **how)
    if result.status != 0:
        raise Fail("status %d: %s" % (result.status, result.err.decode()))
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def check_rows(t, report):
    for kind in ("resident", "swapped"):
        t.equal("sum of the rows, " + kind, sum(row[kind] for row in report["rows"].values()), report["memory"][kind])
    t.equal("differing bytes", report["differing"], 0)
    for arena in report.get("arenas", []):
        pages = arena["pages"]
        counted = pages["free"] + pages["unknown"] + sum(count for _, count in pages["pinned_by_live_bytes"])
        # heaps may begin and end within a page
        more = counted * PAGE - sum(arena["memory"].values())
        t.check(0 <= more < 2 * PAGE * arena["heaps"], "arena %s: pages of %d bytes more" % (arena["address"], more))


COMPARED = re.compile(r"^common ([0-9]+), only counted ([0-9]+), only in the heap ([0-9]+), of another size ([0-9]+); threads in "
                      r"malloc ([0-9]+) after ([0-9]+) moments; consistent ([01])$")


class Comparison:
    """Of counted blocks with those in the heaps, as ptmem prints it."""

    def __init__(self, text):
        lines = text.splitlines()
        match = COMPARED.match(lines[-1]) if lines else None
        if not match:
            raise Fail("no comparison: %r" % text)
        self.common, *different, self.inside, self.moments, self.consistent = map(int, match.groups())
        self.differences = sum(different)
        self.shown = "\n".join(lines[:6] + lines[-1:])

    def check(self):
        if self.differences or self.inside or not self.consistent:
            raise Fail("differences:\n" + self.shown)


class Checked:
    """A program under ptmem, whose heaps are compared with the counted blocks."""

    def __init__(self, t, argv, cwd=None, options=(), stdin=None, stdout=subprocess.DEVNULL, **env):
        self.t, self.cwd = t, cwd or t.subdirectory()
        self.put_off, self.differences = 0, 0 # moments at which a thread was in malloc; blocks
        self.env = t.environment(self.cwd, XDG_RUNTIME_DIR=self.cwd, **env)
        self.ptmem = subprocess.Popen([t.ptmem(), "-q", "-o", "massif", *harness.MORE_OPTIONS, *options, *(["--", *argv] if argv else [])],
                                      cwd=self.cwd, env=self.env, stdin=stdin, stdout=stdout, stderr=subprocess.PIPE)

    def ask(self):
        """How many blocks there were; None if the program has ended, or it says that a thread stayed in malloc."""
        result = self.t.run([self.t.ptmem(), "--monitor=%d" % self.ptmem.pid, "inspect_check"], cwd=self.cwd,
                            env={"XDG_RUNTIME_DIR": self.cwd}, timeout=200)
        if result.status != 0 or not result.out or b"cannot be read" in result.out:
            return None
        found = Comparison(result.out.decode())
        self.put_off += found.moments
        if found.inside:
            self.put_off += 1
            return None
        self.differences += found.differences
        found.check()
        return found.common

    def end(self):
        """Kills the program, if it has not ended."""
        try:
            with open("/proc/%d/task/%d/children" % (self.ptmem.pid, self.ptmem.pid), encoding="ascii") as file:
                for pid in file.read().split():
                    os.kill(int(pid), signal.SIGKILL)
        except (FileNotFoundError, ProcessLookupError):
            pass  # ended
        _, err = self.ptmem.communicate()
        self.t.check(self.ptmem.returncode in (0, -signal.SIGKILL), "status %d: %r" % (self.ptmem.returncode, err))


# tcmalloc's other libraries: with sampling, which programs must ask for, and for debugging.
TCMALLOC = {"tcmalloc-sampling": ("libtcmalloc.so.4", {"TCMALLOC_SAMPLE_PARAMETER": "20000"}),
            "tcmalloc-debug": ("libtcmalloc_minimal_debug.so.4", {})}


def preload(name, variant=""):
    """The environment in which programs of @variant use it."""
    if variant.startswith(("testing-", "experimental-")):
        return {}
    if name in ("glibc", "musl", "musl-old") or variant.startswith("linked-"):
        return {}
    if name not in TCMALLOC:
        return {"LD_PRELOAD": allocator(name)}
    library, env = TCMALLOC[name]
    if not os.path.exists(LIBRARIES + library):
        raise Skip("no %s on this machine" % library)
    return {"LD_PRELOAD": LIBRARIES + library, **env}


KNOWN = (("gcc-O2-pie", "jemalloc"), ("linked-jemalloc-static", "jemalloc"), ("musl-O2-pie", "musl"), ("musl-O2-static", "musl"),
         ("gcc-O2-pie", "tcmalloc"), ("gcc-O2-pie", "tcmalloc-sampling"), ("clang-O0-nopie", "tcmalloc"),
         ("linked-tcmalloc-static", "tcmalloc"), ("linked-mimalloc", "mimalloc"),
         ("gcc-O2-pie", "mimalloc-3"), ("testing-jemalloc", "jemalloc"), ("testing-tcmalloc", "tcmalloc"),
         ("testing-mimalloc", "mimalloc"))


class Parked:
    """targets/earlier, whose threads wait; live: bytes and blocks that it has."""

    def __init__(self, t, variant, allocator, **env):
        env = t.environment(t.directory, **{**preload(allocator, variant), **env})
        self.process = subprocess.Popen([t.target(variant, "old_musl" if allocator == "musl-old" else "earlier")], env=env,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.pid = self.process.pid
        self.answer()
        self.say(b"g")
        t.wait_until("its threads to have blocks", lambda: self.say(b"x")[1] > 300)
        self.say(b"p")

    def say(self, letter):
        self.process.stdin.write(letter)
        self.process.stdin.flush()
        self.answer()
        return self.live

    def answer(self):
        words = self.process.stdout.readline().split()
        if len(words) != 2:
            raise Fail("the program answered %r" % words)
        self.live = tuple(map(int, words))

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


def report(t, what, name):
    """What --inspect writes to a file of that name, @what being its options."""
    path = os.path.join(t.subdirectory(), name)
    result = t.run([t.ptmem(), *what, "--inspect-out=" + path])
    if result.status != 0:
        raise Fail("status %d: %s" % (result.status, result.err.decode()))
    t.equal("messages", result.err, b"")
    with open(path, encoding="utf-8") as file:
        return file.read()


def gcore(t, pid):
    name = os.path.join(t.subdirectory(), "core")
    result = t.run([t.program("gcore"), "-o", name, str(pid)])
    path = "%s.%d" % (name, pid)
    if result.status != 0 or not os.path.exists(path):
        raise Fail("gcore: status %d: %s" % (result.status, result.err.decode()))
    return path


# Programs without an end, since one that ends kills its threads in the middle of malloc; but for g++ and git log.
PYTHON = """
import json, random
random.seed(1)
texts = {}
while True:
    i = random.randrange(400000)
    texts[random.randrange(3000)] = json.dumps([i] * random.randrange(60))
"""
PERL = "srand(1); my %h; while (1) { $h{int rand 5000} = 'x' x int rand 900; delete $h{int rand 5000} if rand 3 < 1 }"
SQL = ("CREATE TABLE a (x INTEGER PRIMARY KEY, y TEXT); WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c "
       "WHERE n < 1000000000) INSERT INTO a SELECT n % 20000, hex(randomblob(n % 90)) FROM c WHERE true "
       "ON CONFLICT DO UPDATE SET y = excluded.y;")
JQ = "reduce range(1000000000) as $i ({}; .[($i % 500 | tostring)] = [$i, \"x\" * ($i % 70)]) | length"
NODE = "let a = []; const z = require('zlib'); let n = 0; (function go() { z.deflate(Buffer.alloc(200000, n++), () => { " \
       "for (let i = 0; i < 200; i++) { a.push(Buffer.alloc(i * 500)); if (a.length > 100) a.shift(); } " \
       "JSON.parse(JSON.stringify(a.map(b => b.length))); go(); }) })();"
SOURCE = ("#include <map>\n#include <string>\n#include <regex>\n#include <iostream>\n"
          "std::map<std::string, std::regex> m; int main() { m[\"a\"] = \"b\"; std::cout << m.size(); }\n")


class Postgres:
    """A directory of PostgreSQL's, which it only serves as an ordinary user."""

    def __init__(self, t):
        self.t, self.directory = t, t.subdirectory()
        self.nobody = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
        self.who = {}
        self.data = os.path.join(self.directory, "data")
        if self.nobody:
            self.who = {"user": self.nobody.pw_uid, "group": self.nobody.pw_gid, "extra_groups": []}
            for directory in (os.path.dirname(t.directory), t.directory):
                os.chmod(directory, 0o711)
            os.chown(self.directory, self.nobody.pw_uid, self.nobody.pw_gid)
        self.start(self.find("initdb"), "-D", self.data, "-A", "trust", "-U", "test", "--no-sync", "--locale=C", "-E", "UTF8").wait()

    @staticmethod
    def find(name):
        found = shutil.which(name) or next(iter(sorted(glob.glob("/usr/lib/postgresql/*/bin/" + name))), None)
        if not found:
            raise Skip("no %s of PostgreSQL on this machine" % name)
        return found

    def start(self, *argv, cwd=None, **how):
        with open(os.path.join(self.directory, "log"), "ab") as log:
            return subprocess.Popen(argv, cwd=cwd or self.directory, env=self.t.environment(self.directory), stderr=log,
                                    **{"stdin": subprocess.DEVNULL, "stdout": log, **self.who, **how})

    def command(self, *options):
        return [self.find("postgres"), *options, "-D", self.data, "-c", "fsync=off", "-c", "jit=off", "-c", "shared_buffers=16MB"]

    def alone(self):
        """Without a server: it executes what it reads."""
        if not self.nobody:
            return [*self.command("--single"), "postgres"]
        become = [self.t.program("setpriv"), "--reuid=%d" % self.nobody.pw_uid, "--regid=%d" % self.nobody.pw_gid, "--clear-groups"]
        return [*become, *self.command("--single"), "postgres"]


def git_repository(t, stream=""):
    """Its directory; @stream: commits."""
    directory = t.subdirectory()
    for argv, stdin in ((["init", "-q"], ""), (["fast-import", "--quiet"], stream)):
        result = t.run([t.program("git"), *argv], cwd=directory, stdin=stdin.encode())
        t.equal("status of git " + argv[0], (result.status, result.err), (0, b""))
    return directory


def gxx(t):
    t.program("g++")
    compiler = subprocess.run(["g++", "-print-prog-name=cc1plus"], stdout=subprocess.PIPE, check=True).stdout.decode().strip()
    path = os.path.join(t.subdirectory(), "source.cc")
    with open(path, "w", encoding="ascii") as file:
        file.write(SOURCE)
    return [compiler, "-quiet", "-O2", "-std=c++17", "-imultiarch", harness.MULTIARCH, "-D_GNU_SOURCE", path, "-o", "/dev/null"]


# Their command lines.
PROGRAMS = {
    "python3": lambda t: ["/usr/bin/python3", "-c", PYTHON],
    "sqlite3": lambda t: [t.program("sqlite3"), ":memory:", SQL],
    "redis": lambda t: [t.program("redis-server"), "--port", "0", "--unixsocket", "s", "--save", "", "--appendonly", "no"],
    "g++": gxx,
    "threads": lambda t: [t.target("gcc-O2-pie", "inspected_busy")],
    "node": lambda t: [t.program("node"), "-e", NODE],
    "postgres": lambda t: Postgres(t).alone(),
    "git": lambda t: [t.program("git"), "--git-dir=" + os.path.join(git_repository(t), ".git"), "fast-import", "--quiet"],
    "perl": lambda t: [t.program("perl"), "-e", PERL],
    "jq": lambda t: [t.program("jq"), "-n", JQ],
}
PROOFS = {(program, allocator): argv for program, argv in PROGRAMS.items()
          for allocator in ("glibc", "jemalloc", "tcmalloc", "mimalloc", "mimalloc-3")}
IMPOSSIBLE = {("redis", "glibc"): "Debian's redis-server is linked to jemalloc"}


def synthetic(arenas, cells, pages, command="a program"):
    """A possible result of --inspect for large heaps."""
    report = {"format": "ptmem-inspect", "pid": 1, "command": command, "rows": {}, "arenas": [],
              "map": {"pages_per_cell": pages, "heaps": []}}
    for number in range(arenas):
        own = [[pages * (i % 7 > 0), pages * PAGE * (i % 11) // 10 * (i % 7 > 0), pages * (i % 5 == 0) * (i % 7 > 0)]
               for i in range(cells)]
        resident = sum(c[0] for c in own) * PAGE - number * PAGE
        report["arenas"].append({"address": hex(0x7f0000000000 + number * 2**26), "main": number == 0, "live_bytes": 5,
                                 "memory": {"resident": resident, "swapped": 0}})
        report["map"]["heaps"].append({"arena": number, "start": hex(0x7f0000000000 + number * 2**26), "cells": own})
    report["rows"]["live"] = {"resident": sum(a["memory"]["resident"] for a in report["arenas"]), "swapped": 0}
    return report


THREADS = 4 # of targets/inspected


def read(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


class Profiled:
    """targets/inspected under ptmem."""

    def __init__(self, t, *options):
        self.t, self.cwd = t, t.subdirectory()
        self.process = subprocess.Popen([t.ptmem(), *options, "--", t.target("gcc-O2-pie", "inspected")], cwd=self.cwd,
                                        env=t.environment(self.cwd), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE)
        words = self.process.stdout.readline().split()
        if not words or words[0] != b"ready":
            raise Fail("the program printed %r: %r" % (words, self.process.stderr.read()))
        self.live, self.blocks, self.mmapped = map(int, words[1:])

    def path(self, name="out.json"):
        return os.path.join(self.cwd, name)

    def wait_for(self, name):
        """The file, which is complete when it is there; then it is removed."""
        self.t.wait_until(name, lambda: os.path.exists(self.path(name)))
        report = read(self.path(name))
        os.unlink(self.path(name))
        return report

    def end(self):
        _, err = self.process.communicate(b"q")
        self.t.equal("ptmem's status", self.process.returncode, 0)
        return err.decode()


def check_report(t, program, report):
    """All of its blocks, and no others but those that ld.so and libc have."""
    check_rows(t, report)
    for name in ("broken_lists", "unlisted", "broken_heaps", "inside_malloc"):
        t.equal(name, report[name], 0)
    t.equal("threads, and their caches", (report["threads"], report["thread_caches"]), (THREADS, THREADS))
    t.equal("blocks with mappings of their own", report["mmapped_blocks"], program.mmapped)
    live = sum(a["live_bytes"] for a in report["arenas"])
    t.check(program.live <= live <= program.live + 100000, "%d bytes live of %d" % (live, program.live))
    blocks = sum(a["live_blocks"] for a in report["arenas"])
    t.check(program.blocks <= blocks <= program.blocks + 20, "%d blocks live of %d" % (blocks, program.blocks))


class Typed:
    """A program that waits for letters, and says what it has made."""

    def __init__(self, t, argv, **env):
        self.t = t
        self.process = subprocess.Popen(argv, env=t.environment(t.directory, **env), stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        line = self.process.stdout.readline()
        if line != b"ready\n":
            raise Fail("the program printed %r" % line)

    def make(self, letter):
        """{type: (blocks, bytes)}"""
        self.process.stdin.write(letter)
        self.process.stdin.flush()
        made = {}
        for line in self.process.stdout:
            if line == b"done\n":
                return made
            name, blocks, size = line.decode().rstrip("\n").split("\t")
            made[name] = int(blocks), int(size)
        raise Fail("the program ended")

    def inspect(self, name="look.json", *options, pid=None):
        path = os.path.join(self.t.subdirectory(), name)
        result = self.t.run([self.t.ptmem(), "--inspect", "-p", str(pid or self.process.pid), "--inspect-out=" + path, *options])
        if result.status != 0 or result.err:
            raise Fail("status %d: %r" % (result.status, result.err))
        with open(path, encoding="utf-8") as file:
            return json.load(file) if name.endswith(".json") else list(csv.DictReader(file))

    def end(self):
        self.process.stdin.write(b"q")
        self.process.stdin.close()
        self.t.equal("the program's status", self.process.wait(), 0)


def name_of(found):
    if found["kind"] == "size":
        sizes = sorted({found["smallest"], found["largest"]})
        return " to ".join(map(str, sizes)) + " bytes"
    return "struct with &" + found["name"] if found["kind"] == "table" else (found["kind"] + " " + found["name"]).strip()


def interpreter(minor):
    """In the path, pyenv's, or unpacked."""
    unpacked = os.path.join(UNPACKED, "python3.%d" % minor)
    if os.path.exists(unpacked):
        return unpacked
    places = [shutil.which("python3.%d" % minor), sys.executable,
              *glob.glob(os.path.expanduser("~/.pyenv/versions/3.%d.*/bin/python3" % minor))]
    for path in filter(None, places):
        done = subprocess.run([path, "-c", "import sys; print(sys.version_info[1], sys.executable)"],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
        words = done.stdout.decode().split()
        if done.returncode == 0 and len(words) == 2 and words[0] == str(minor):
            return words[1]
    raise Skip("no Python 3.%d on this machine" % minor)


PYTHON_ROWS = ("python_live", "python_free", "python_pools", "python_own")
# Nothing is allocated between the numbers and the pause.
WAIT = """
import gc, signal, sys
def wait(stats=sys._debugmallocstats, pause=signal.pause):
    stats()
    pause()
"""
PROGRAM = WAIT + """
class Slots:
    __slots__ = ("a", "b")
class Dropped:
    __slots__ = ("a",)
signal.signal(signal.SIGUSR1, lambda *ignored: None)
kept = [Slots() for i in range(10000)]
def count(kind):
    return sum(type(o) is kind for o in gc.get_objects())
held = []
while True:
    held = held[::40] if held else [(Dropped(), {i: str(i)}, [i] * (i % 50), b"x" * (i % 400)) for i in range(30000)]
    gc.collect()
    print(count(Slots), count(Dropped), flush=True)
    wait()
"""
TABLE_ROW = re.compile(r"^ *\d+ +(\d+) +(\d+) +(\d+) +(\d+)$", re.M)


class Python:
    """The program, each time that it pauses."""

    def __init__(self, t, minor, script=PROGRAM, **env):
        self.t = t
        self.numbers = os.path.join(t.subdirectory(), "numbers")
        with open(self.numbers, "wb") as file:
            self.process = subprocess.Popen([interpreter(minor), "-c", script], env=t.environment(t.directory, **env),
                                            stdout=subprocess.PIPE, stderr=file)
        self.pid = self.process.pid
        self.objects = {}
        self.begin()
        self.wait()

    def begin(self):
        """What is needed before it pauses."""

    def is_paused(self):
        return is_paused(self.pid)

    def wait(self):
        line = self.process.stdout.readline().split()
        if len(line) != 2:
            raise Fail("the program printed %r" % line)
        self.objects = dict(zip(("Python Slots", "Python Dropped"), map(int, line)))
        self.t.wait_until("pause", self.is_paused)

    def go_on(self):
        os.kill(self.pid, signal.SIGUSR1)
        self.wait()

    def counted(self, back=1):
        """By Python itself, when it counted last or @back times ago: {bytes of a block: (pools, live, free)}, and what else it prints."""
        with open(self.numbers, encoding="ascii") as file:
            text = file.read().split("class   size   num pools")[-back]
        sizes = {int(size): tuple(map(int, rest)) for size, *rest in TABLE_ROW.findall(text)}

        def number(pattern):
            return int(re.search(pattern, text, re.M).group(1).replace(",", ""))
        return sizes, {"arenas": number(r"^# arenas allocated current += +([0-9,]+)$"),
                       "arena_bytes": number(r"^\d+ arenas \* (\d+) bytes/arena"),
                       "free_pools": number(r"^(\d+) unused pools \*"), "pool_bytes": number(r"^\d+ unused pools \* (\d+) bytes"),
                       "live_bytes": number(r"^# bytes in allocated blocks += +([0-9,]+)$")}

    def end(self):
        self.process.kill()
        self.process.communicate()


def listed(t, pid, *options):
    """{address: (bytes, type, allocator)}, from the CSV."""
    path = os.path.join(t.subdirectory(), "blocks.csv")
    result = t.run([t.ptmem(), "--inspect", "-p", str(pid), "--inspect-out=" + path, *options])
    t.equal("status (%r)" % result.err, result.status, 0)
    with open(path, encoding="utf-8") as file:
        rows = list(csv.reader(file))
    t.equal("the first line", rows[0], ["address", "bytes", "type", "allocator"])
    return {int(address, 16): (int(size), kind, allocator) for address, size, kind, allocator in rows[1:]}


def as_json(t, *arguments):
    result = t.run([os.path.join(BUILD, "ptmem-report"), "--format=json", *arguments])
    t.equal("status of ptmem-report (%r)" % result.err, result.status, 0)
    return json.loads(result.out)


def rows_of(table):
    """The columns of a table as a list of dicts."""
    return [dict(zip(table, values)) for values in zip(*table.values())]


def named(kind):
    """The name of a type in a table, from the JSON of --inspect."""
    if kind["kind"] == "size":
        same = kind["smallest"] == kind["largest"]
        return "%d bytes" % kind["smallest"] if same else "%d to %d bytes" % (kind["smallest"], kind["largest"])
    return "struct with &" + kind["name"] if kind["kind"] == "table" else (kind["kind"] + " " + kind["name"]).strip()


def check_same(t, found, report):
    """The recording's @found is what --inspect-out has."""
    t.equal("kernel's counters", (found["rss"], found["swap"]), (report["VmRSS"], report["VmSwap"]))
    wanted = {name: (b["resident"], b["swapped"]) for name, b in report["rows"].items() if b["resident"] or b["swapped"]}
    t.equal("rows", {r["name"]: (r["resident"], r["swapped"]) for r in rows_of(found["rows"])}, wanted)
    types = sorted((named(k), k["blocks"], k["bytes"], k["nearly_empty_pages"]) for k in report["types"])
    t.equal("types", sorted((r["name"], r["blocks"], r["bytes"], r["nearly_empty_pages"]) for r in rows_of(found["types"])), types)
    heaps = report["map"]["heaps"]
    t.equal("heaps", [tuple(h.values()) for h in rows_of(found["heaps"])], [(h["arena"], h["start"], h["end"]) for h in heaps])
    t.equal("cells", [tuple(c.values()) for c in rows_of(found["cells"])], [(i, *c) for i, h in enumerate(heaps) for c in h["cells"]])
    if "arenas" not in report:
        t.equal("arenas of another allocator", (found["malloc"], rows_of(found["arenas"])), (report["malloc"]["name"], []))
        return
    t.equal("malloc", found["malloc"], "glibc " + report["malloc"]["version"])
    arenas = [(a["address"], int(a["main"]), a["threads"], a["system"], a["memory"]["resident"], a["live_blocks"], a["live_bytes"],
               a["free"]["resident"], a["trim"]["resident"], a["pages"]["free"]) for a in report["arenas"]]
    names = "address", "main", "threads", "system", "resident", "live_blocks", "live_bytes", "free", "trim", "free_pages"
    t.equal("arenas", [tuple(a[name] for name in names) for a in rows_of(found["arenas"])], arenas)
    pinned = [(i, *step) for i, a in enumerate(report["arenas"]) for step in a["pages"]["pinned_by_live_bytes"]]
    t.equal("pinned pages", [tuple(p.values()) for p in rows_of(found["pinned"])], pinned)
    advice = [(a["text"], a["bytes"], int(a["limit"])) for a in report["advice"]]
    t.equal("advice", [tuple(a.values()) for a in rows_of(found["advice"])], advice)
