"""Real programs under load, attached with every source at once and left again: what they answer is what they
answer alone, each source's files agree with each other, and nothing that is in use is called lost."""

import glob
import json
import os
import re
import select
import signal
import subprocess
import xml.etree.ElementTree

import massif
from harness import test

SOURCES = ("heap", "brk", "mmap", "faults")
OPTIONS = ["--trace=" + ",".join(SOURCES), "--folded=out.folded", "--flame=out.svg", "--leak-check",
           "--leaks-out=leaks.json", "--stats"]


def in_units(size):
    """As ptmem prints bytes in its summary."""
    units = ["B", "KiB", "MiB", "GiB"]
    while size >= (1024 if units[0] == "B" else 1023.95):
        size, units = size / 1024, units[1:]
    return "%.*f %s" % (units[0] != "B", size, units[0])


class Attached:
    """ptmem attached to @pid."""

    def __init__(self, t, pid, options=()):
        self.t, self.cwd, self.pid = t, t.subdirectory(), pid
        self.err = os.path.join(self.cwd, "ptmem-stderr")
        with open(self.err, "wb") as err:
            self.process = subprocess.Popen([t.ptmem(), *OPTIONS, *options, "-p", str(pid)],
                                            cwd=self.cwd, env=t.environment(self.cwd), stderr=err,
                                            stdin=subprocess.DEVNULL)
        t.wait_until("ptmem to attach", lambda: "attached to process" in self.text() or self.process.poll() is not None)

    def leave(self, has_worked):
        """When @has_worked() says that the program has done something of all that is looked for."""
        self.t.wait_until("the program to work", has_worked)
        self.process.send_signal(signal.SIGINT)

    def text(self):
        with open(self.err, encoding="utf-8", errors="replace") as file:
            return file.read()

    def path(self, name):
        return os.path.join(self.cwd, name)

    def check(self, status=0, busy=SOURCES):
        t = self.t
        t.equal("status of ptmem (%s)" % self.text(), self.process.wait(timeout=200), status)
        t.check("leak check of process %d: stopped for" % self.pid in self.text(), "no leak check: " + self.text())
        for source in SOURCES:
            self.check_files(source, source in busy)
        with open(self.path("leaks.json"), encoding="utf-8") as file:
            return json.load(file)["kinds"]

    def check_files(self, source, is_busy):
        t = self.t
        suffix = "" if source == "heap" else "." + source
        (path,) = glob.glob(self.path("massif.out.%d%s" % (self.pid, suffix)))
        t.check(massif.Massif(path).snapshots, "no snapshots of " + source)
        said = {"heap": r"live bytes: (\d+)$", "faults": r"faults +[\d,]+ pages?, .* \(([\d,]+) bytes\)$"}
        found = re.search(said.get(source, source + r" .* (\S+ \S+) in use, at most \S+ \S+$"), self.text(), re.M)
        t.check(found, "no total of %s: %s" % (source, self.text()))
        with open(self.path("out.%s.folded" % source), encoding="utf-8") as file:
            lines = file.read().splitlines()
        last = sum(int(line.rsplit(" ", 1)[1]) for line in lines)
        total = found.group(1).replace(",", "") if source in said else found.group(1)
        t.equal("sum of %s's folded lines" % source, str(last) if source in said else in_units(last), total)
        t.check(not is_busy or last > 0, "nothing was seen of " + source)
        t.check(not is_busy or any(line.count(";") > 1 for line in lines), "no paths of %s" % source)
        root = xml.etree.ElementTree.parse(self.path("out.%s.svg" % source)).getroot()
        t.check(root.tag.endswith("svg"), "%s's flame graph is no SVG" % source)


REQUESTS, SOME = 60000, 2000  # the latter take new pages, of which ptmem sees all


@test("load/redis", limit=180)
def redis(t):
    server_path, benchmark, client = t.program("redis-server"), t.program("redis-benchmark"), t.program("redis-cli")
    cwd = t.subdirectory()
    socket = os.path.join(cwd, "socket")
    server = subprocess.Popen([server_path, "--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no"],
                              cwd=cwd, env=t.environment(cwd), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    cli = [client, "-s", socket]
    t.wait_until("redis to answer", lambda: t.run([*cli, "ping"]).out == b"PONG\n")
    endless = subprocess.Popen([benchmark, "-s", socket, "-r", "1000", "-d", "100", "-q", "-l", "-t", "set"], cwd=cwd,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    attached = Attached(t, server.pid)
    load = subprocess.Popen([benchmark, "-s", socket, "-n", str(REQUESTS), "-r", str(REQUESTS), "-d", "200", "-q", "-t",
                             "lpush,incr"], cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    some = subprocess.Popen([benchmark, "-s", socket, "-n", str(SOME), "-d", "1000", "-q", "-t", "lpush"], cwd=cwd, stdout=subprocess.DEVNULL)
    attached.leave(lambda: some.poll() is not None)
    kinds = attached.check(busy=("heap", "faults"))
    endless.kill()
    endless.wait()
    t.equal("status of the benchmark", (load.wait(), b"rror" in load.stdout.read()), (0, False))
    t.equal("length of the list", t.run([*cli, "llen", "mylist"]).out, b"%d\n" % (REQUESTS + SOME))
    t.equal("definitely lost", kinds["definitely lost"]["bytes"], 0)
    t.run([*cli, "shutdown", "nosave"])
    t.equal("status of redis", server.wait(timeout=200), 0)


PYTHON = """
import sys
print("begun", flush=True)
sys.stdin.readline()
kept, check = [], 0
for i in range(60):
    some = {str(k * i): [k] * (k % 50) for k in range(1500)}
    check = (check * 31 + sum(len(v) for v in some.values()) + len(some)) % 1000003
    kept.append(list(some)[:300])
    big = bytearray(3000000 + i)
    check += big.count(0)
    kept.append(bytes(big[:200000]))
    if i == 5:
        print("working", flush=True)
print(check, sum(len(k) for k in kept), flush=True)
sys.stdin.readline()
"""


def run_stepped(t, command, attach, first, second):
    """What @command prints for input @first; with ptmem attached before that, if it shall see @attach."""
    cwd = t.subdirectory()
    program = subprocess.Popen(command, cwd=cwd, env=t.environment(cwd, PYTHONMALLOC="malloc"), stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE)
    begun = program.stdout.readline()
    attached, kinds = Attached(t, program.pid) if attach else None, None
    program.stdin.write(first)
    program.stdin.flush()
    if attached:
        attached.leave(lambda: select.select([program.stdout], [], [], 0)[0])
        kinds = attached.check(busy=attach)
    out, _ = program.communicate(second, timeout=200)
    return (begun, out, program.returncode), kinds


def compare(t, command, first, second, busy):
    alone, _ = run_stepped(t, command, (), first, second)
    traced, kinds = run_stepped(t, command, busy, first, second)
    t.equal("what it printed", traced, alone)
    t.equal("how it ended", alone[2], 0)
    # sqlite3 keeps a header at the end of each page, and points to that: inside
    in_use = kinds["still reachable"]["bytes"] + kinds["possibly lost"]["bytes"]
    t.check(in_use > 100000, "little is reachable: %s" % kinds)
    t.equal("definitely lost", kinds["definitely lost"]["bytes"], 0)


@test("load/python3", limit=120)
def python3(t):
    compare(t, [t.program("python3"), "-S", t.file("load.py", PYTHON)], b"\n", b"\n", SOURCES)


SQL = """
create table t(a integer primary key, b text, c real);
with recursive r(i) as (select 1 union all select i + 1 from r where i < 60000)
insert into t select i, hex(i * 7919) || hex(i), i * 0.5 from r;
select 'working';
create index tb on t(b);
select count(*), sum(c) from t where b like '%A%';
select substr(b, 1, 2) k, count(*) from t group by k order by 2 desc limit 3;
"""


@test("load/sqlite3", limit=120)
def sqlite3(t):
    compare(t, [t.program("sqlite3"), "-batch", "-cmd", "select 'begun';", ":memory:"], SQL.encode(),
            b"select count(*) from t;\n", ("heap", "brk", "faults"))


@test("load/error-exitcode")
def error_exitcode(t):
    """The status says that bytes are lost, and only then."""
    library = t.target("lib", "libhold.so")
    for options, status in ((["--leak-check", "--error-exitcode=9"], 9), (["--leak-check"], 0),
                            (["--leaks"], 0)):
        result = t.profile([t.target("gcc-O2-pie", "leaks"), library], [*options, "--leaks-out=leaks.json"])
        t.equal("status with %s" % " ".join(options), result.status, status)
    result = t.profile([t.target("gcc-O2-pie", "empty")], ["--leak-check", "--error-exitcode=9", "--leaks-out=l.json"])
    t.equal("status of a program that loses nothing", result.status, 0)
    result = t.run([t.ptmem(), "--error-exitcode=9", "--", t.target("gcc-O2-pie", "leaks"), library])
    t.equal("status without --leak-check", result.status, 1)
    t.check(b"--error-exitcode needs --leak-check" in result.err, "another message: %r" % result.err)


@test("load/diff")
def diff(t):
    """Growth by call site between two profiles of one program, as a table and as a picture."""
    cwd = t.subdirectory()
    script = t.file("grow.py", "import sys\nkept = [bytearray(1000) for _ in range(int(sys.argv[1]))]\n")
    for name, blocks in (("old", 100), ("new", 3100)):
        t.profile([t.program("python3"), "-S", script, str(blocks)], ["--peak-inaccuracy=0", "-o", name],
                  cwd=cwd, env={"PYTHONMALLOC": "malloc"})
    report = os.path.join(os.path.dirname(t.ptmem()), "ptmem-report")
    run = t.run([report, "--diff", os.path.join(cwd, "old"), os.path.join(cwd, "new")], cwd=cwd)
    t.equal("status", run.status, 0)
    first = next((line for line in run.out.decode().splitlines() if re.search(r"grow\.py:2", line)),
                 "")
    grown = re.search(r"\+([0-9,]+)", first)
    t.check(grown and int(grown.group(1).replace(",", "")) >= 3000 * 1000, "the first site is not what grew: %r" % first)
    run = t.run([report, "--diff", "--flame=diff.svg", os.path.join(cwd, "old"), os.path.join(cwd, "new")], cwd=cwd)
    t.equal("status", run.status, 0)
    with open(os.path.join(cwd, "diff.svg"), encoding="utf-8") as file:
        t.check(file.read().rstrip().endswith("</svg>"), "the picture is not whole")
