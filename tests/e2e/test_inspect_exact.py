"""The proof that --inspect finds what was counted: programs that are profiled from their start, each with every allocator that it can
have, hold at random moments the blocks that are known from events, address by address and size by size.

Where PTMEM_MOMENTS is not set, at 4 moments of each, and some programs only with two allocators. PTMEM_PROOF=FILE appends a line of JSON for each; scripts/inspect_moments prints them."""

import json
import os
import random
import signal
import subprocess
import time

from harness import Fail, Skip, test
from inspect_lib import Checked, IMPOSSIBLE, PROGRAMS, PROOFS, Postgres, git_repository, preload

STARTED = 20  # blocks
MOMENTS = int(os.environ.get("PTMEM_MOMENTS", "4"))
LIMIT = max(120, 10 * MOMENTS)
STARTS = 20  # without a moment

# For git fast-import.
COMMITS = """
import sys
i = 0
while True:
    text = 'x' * (10 + i % 50)
    sys.stdout.write('commit refs/heads/b%d\\ncommitter A <a@b> %d +0000\\ndata %d\\n%s\\nM 100644 inline dir%d/file%d\\ndata 4\\n%04d\\n'
                     % (i % 40, i + 1000000000, len(text), text, i % 97, i % 5000, i % 10000))
    i += 1
"""
QUERY = """CREATE TEMP TABLE IF NOT EXISTS a AS SELECT i, md5(i::text) t FROM generate_series(1, 5000) i;
SELECT count(*), sum(length(x)) FROM (SELECT string_agg(t, ',') x FROM a GROUP BY i %% 300) s;
SELECT count(*) FROM a x JOIN a y ON x.t < y.t WHERE x.i %% 50 = %(n)d %% 50 AND y.i %% 70 = 3;
PREPARE p%(n)d AS SELECT * FROM a WHERE i = $1 ORDER BY t; EXECUTE p%(n)d(%(n)d);
DO $$ BEGIN FOR i IN 1..200 LOOP EXECUTE format('SELECT %%s + %(n)d', i); END LOOP; END $$;
"""
QUERIES = "import sys\nn = 0\nwhile True:\n    sys.stdout.write(%r %% {'n': n})\n    n += 1\n" % QUERY
# What writes the standard input of a program that reads it.
FEEDS = {"git": COMMITS, "postgres": QUERIES}


class Session:
    """Of a server, in which queries are executed."""

    def __init__(self, t):
        self.postgres = Postgres(t)
        self.server = self.postgres.start(*self.postgres.command(), "-k", ".", "-c", "listen_addresses=")
        self.client = None

    def connect(self):
        """Its process. The name of the socket may have 107 bytes."""
        start, data = self.postgres.start, self.postgres.data
        command = (Postgres.find("psql"), "-X", "-q", "-A", "-t", "-h", "/proc/self/cwd", "-U", "test", "postgres")

        def is_ready():
            return start(*command, "-c", "SELECT 1", cwd=data).wait() == 0 or self.server.poll() is not None
        self.postgres.t.wait_until("the server", is_ready)
        self.client = start(*command, cwd=data, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.client.stdin.write(b"SELECT pg_backend_pid();\n")
        self.client.stdin.flush()
        pid = int(self.client.stdout.readline())
        self.client.stdin.write(b"\\o /dev/null\n") # nobody reads the results
        return pid

    def execute(self, n):
        """Returns while it executes a few queries."""
        self.client.stdin.write((QUERY % {"n": n}).encode())
        self.client.stdin.flush()

    def end(self):
        if self.client:
            self.client.kill()
            self.client.communicate()
        if self.server.poll() is None:
            self.server.send_signal(signal.SIGQUIT)
        self.server.wait()


COMMIT = """commit refs/heads/main
committer A <a@example.org> %d +0000
data 2
c
M 100644 inline %s
data <<END
%s
END

"""


def commits():
    """Of a history in which 20 files change."""
    lines = ["line %d" % i for i in range(300)]
    for i in range(1500):
        lines[i * 7 % 300] = "line of commit %d" % i
        yield COMMIT % (1000000000 + i, "file%d" % (i % 20), "\n".join(lines))


PROOFS.update(((program, "tcmalloc-sampling"), PROGRAMS[program]) for program in ("redis", "threads"))
PROOFS["git-log", "glibc"] = lambda t: [t.program("git"), "-C", git_repository(t, "".join(commits())), "log", "-p", "--all"]


def endless(variant, target):
    """A program of tests/targets that goes on until it is killed."""
    arguments = {"mixed": ("1", "1000000000", "40"), "threads": ("8", "1000000000"), "inspected_busy": ()}[target]
    return lambda t: [t.target(variant, target), *arguments]


for _allocator in ("glibc", "tcmalloc", "tcmalloc-sampling"):
    PROOFS["mixed", _allocator] = endless("gcc-O2-pie", "mixed")
for _allocator, _variant in (("glibc", "gcc-O2-static"), ("jemalloc", "linked-jemalloc-static"), ("tcmalloc", "linked-tcmalloc-static"),
                             ("mimalloc", "linked-mimalloc-static")):
    PROOFS["mixed-static", _allocator] = endless(_variant, "mixed")
    PROOFS["threads-static", _allocator] = endless(_variant, "inspected_busy")
for _target in ("mixed", "threads"):
    PROOFS[_target, "musl"] = endless("musl-O2-pie", _target)
    for _allocator in ("musl", "musl-old"):
        PROOFS[_target + "-static", _allocator] = endless(_allocator + "-O2-static", _target)


for _allocator in ("glibc", "jemalloc", "tcmalloc", "mimalloc"):
    for _target in ("mixed", "threads"):
        _program = "inspected_busy" if _target == "threads" else _target
        PROOFS[_target + "-testing", _allocator] = endless("testing-" + _allocator, _program)
        if _allocator == "glibc":
            PROOFS[_target + "-testing-2.44", _allocator] = endless("experimental-glibc", _program)


class Proof:
    """A program, with what it needs while it is asked; what was seen."""

    def __init__(self, t, name, allocator):
        self.t, self.name = t, name
        self.seen = {"program": name, "allocator": allocator, "moments": 0, "blocks": 0, "most": 0, "put_off": 0, "differences": 0}
        self.helpers = []
        self.env = {} if "-static" in name or "-testing" in name else preload(allocator)
        if name == "python3":
            self.env["PYTHONMALLOC"] = "malloc"
        self.argv = PROOFS[name, allocator](t)
        # setpriv becomes postgres
        self.options = ("--trace-children=yes",) if name == "postgres" or "-testing" in name else ()

    def start(self):
        stdin = subprocess.DEVNULL
        if self.name in FEEDS:
            self.helpers.append(subprocess.Popen(["python3", "-c", FEEDS[self.name]], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL))
            stdin = self.helpers[-1].stdout
        checked = Checked(self.t, self.argv, options=self.options, stdin=stdin, **self.env)
        if self.name == "redis":
            self.start_client(os.path.join(checked.cwd, "s"))
        return checked

    def start_client(self, socket):
        self.t.wait_until("redis-server's socket", lambda: os.path.exists(socket))
        self.helpers.append(subprocess.Popen([self.t.program("redis-benchmark"), "-s", socket, "-l", "-q", "-r", "20000", "-d", "300",
                                              "-t", "set,lpush,sadd,zadd,hset"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

    def end_helpers(self):
        for process in self.helpers:
            if process.stdout:
                process.stdout.close()
            process.kill()
            process.wait()
        self.helpers = []

    def ask(self, checked):
        """How many blocks there were, or None."""
        try:
            return checked.ask()
        except Fail as e:
            raise Fail("after %s: %s" % (self.seen, e)) from e
        finally:
            self.seen["put_off"] += checked.put_off
            self.seen["differences"] += checked.differences
            checked.put_off = checked.differences = 0

    def ask_often(self, checked, generator):
        """At random moments, until the program ends; those of its start-up do not count."""
        has_started = False
        while checked.ptmem.poll() is None and self.seen["moments"] < MOMENTS:
            blocks = self.ask(checked)
            has_started |= blocks is not None and blocks > STARTED
            if blocks is not None and has_started:
                self.seen["moments"] += 1
                self.seen["blocks"] += blocks
                self.seen["most"] = max(self.seen["most"], blocks)
            time.sleep(generator.random() / 20)
        checked.end()

    def prove(self):
        generator, starts = random.Random(1), 0
        while self.seen["moments"] < MOMENTS:
            before = self.seen["moments"]
            try:
                self.ask_often(self.start(), generator)
            finally:
                self.end_helpers()
            starts = starts + 1 if self.seen["moments"] == before else 0
            self.t.check(starts < STARTS, "the program ends before there is a moment: %s" % self.seen)


def note(line):
    if "PTMEM_PROOF" in os.environ:
        with open(os.environ["PTMEM_PROOF"], "a", encoding="ascii") as file:
            file.write(json.dumps(line) + "\n")


def prove(t, name, allocator):
    try:
        proof = Proof(t, name, allocator)
    except Skip as reason:
        note({"program": name, "allocator": allocator, "skipped": str(reason)})
        raise
    try:
        proof.prove()
    finally:
        note(proof.seen)


def is_left_out(program, allocator):
    """Every allocator has the others."""
    with_two = {"g++": "jemalloc", "node": "mimalloc-3", "postgres": "tcmalloc", "git": "mimalloc", "perl": "tcmalloc", "jq": "jemalloc"}
    return "PTMEM_MOMENTS" not in os.environ and program in with_two and allocator not in ("glibc", with_two[program])


for _program, _allocator in PROOFS:
    if (_program, _allocator) not in IMPOSSIBLE and not is_left_out(_program, _allocator):
        @test("inspect/exact/%s-%s" % (_program, _allocator), limit=LIMIT)
        def _(t, name=_program, allocator=_allocator):
            prove(t, name, allocator)


@test("inspect/exact/attached", limit=120)
def attached(t):
    """A session of a server, with blocks from before."""
    session = Session(t)
    checked = None
    seen = []
    try:
        checked = Checked(t, [], options=("-p", str(session.connect())))
        t.wait_until("the attach", lambda: checked.ask() is not None)
        while len(seen) < 12 or sum(blocks is not None for blocks in seen) < 3:
            session.execute(len(seen))
            seen.append(checked.ask())
        checked.ptmem.send_signal(signal.SIGINT)
        _, err = checked.ptmem.communicate()
        t.equal("ptmem's status and messages", (checked.ptmem.returncode, err), (0, b""))
    finally:
        session.end()
        if checked:
            checked.ptmem.wait() # it ends with the session
    seen = [blocks for blocks in seen if blocks is not None]
    t.check(len(seen) >= 3 and max(seen) > 100, "blocks at each moment: %s" % seen)


for _probes in ("break", "auto"):
    @test("inspect/exact/delete-%s" % _probes)
    def _(t, probes=_probes):
        """A thread in a delete that has not freed its block yet, for which there is no event at the end, is inside malloc."""
        checked = Checked(t, [t.target("gcc-O2-pie", "slow_delete")], options=("--probes=" + probes,), stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE)
        for _ in range(2): # by breakpoints, then by a pad
            t.equal("where the program is", checked.ptmem.stdout.read(1), b"d")
            t.equal("blocks, in a delete", checked.ask(), None)
            checked.ptmem.stdin.write(b"g")
            checked.ptmem.stdin.flush()
        t.equal("where the program is", checked.ptmem.stdout.read(1), b"e")
        t.check(checked.ask() is not None, "the program has left its deletes")
        t.check(checked.put_off >= 2, "%d moments" % checked.put_off)
        checked.ptmem.communicate(b"g")
        t.equal("ptmem's status", checked.ptmem.returncode, 0)
