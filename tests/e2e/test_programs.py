"""Programs from the distribution: they behave as without ptmem, and the counts equal the oracle's, which is
preloaded into the same run."""

import os

import harness
import oracle
from harness import test

# A thread frees its PyThreadState (360 bytes in 3.11) after join() has returned. An exit that comes first may end it
# between ptmem's breakpoint and the oracle's count, so the program waits until its threads are gone.
PYTHON = """
import json, os, re, sys, collections, threading, time
words = collections.Counter(re.findall(r"\\w+", json.dumps({str(i): ["x" * (i % 50)] * 3 for i in range(300)})))
print(len(words), sorted(words.items())[:3])
out = []
ts = [threading.Thread(target=lambda n=n: out.append(sum(len(str(k)) for k in range(n)))) for n in (10, 200)]
for t in ts: t.start(); t.join()
print(out)
while len(os.listdir("/proc/self/task")) > 1: time.sleep(0.001)
sys.exit(3)
"""

SQL = """
create table t(a integer primary key, b text, c real);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 1500)
insert into t select i, 'text ' || i, i * 1.5 from n;
create index i on t(b);
select count(*), sum(a), max(b), avg(c) from t where b like 'text 1%';
select a % 7, count(*) from t group by 1 order by 2 desc, 1;
update t set b = upper(b) where a % 3 = 0;
delete from t where a % 5 = 0;
vacuum;
select group_concat(a) from (select a from t order by b limit 30);
.exit 4
"""

PERL = r"""
my %count; my @lines = map { join ' ', map { "w" . ($_ * 7919 % 101) } 1 .. $_ % 20 } 1 .. 500;
for (@lines) { $count{$_}++ for split ' ' }
print join(",", map { "$_=$count{$_}" } (sort keys %count)[0 .. 9]), "\n";
my $s = "abc" x 1000; $s =~ s/b(.)/<$1>/g; print length($s), "\n";
my @nested = map { { id => $_, list => [1 .. $_ % 9] } } 1 .. 300; print scalar(grep { @{$_->{list}} > 4 } @nested), "\n";
exit 5;
"""

BASH = r"""
declare -A a; for ((i = 0; i < 400; i++)); do a[k$((i % 37))]+="$i,"; done
f() { local x=$1; if ((x > 0)); then f $((x - 1)); else echo bottom; fi; }; f 30
s=; for i in {1..200}; do s+="word$i "; done; set -- $s; echo $# "${a[k5]}" ${s//word1/W} | md5sum
printf '%s\n' "$@" | sort | tail -2; x=$(echo sub; echo shell); echo "$x"; exit 6
"""

C_SOURCE = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct node { struct node *next; int value; char name[20]; };
static struct node *make(int n) { struct node *l = 0; for (int i = 0; i < n; i++) { struct node *x = malloc(sizeof *x);
x->next = l; x->value = i * n; snprintf(x->name, sizeof x->name, "n%d", i); l = x; } return l; }
int main(void) { long sum = 0; for (struct node *x = make(100); x; x = x->next) sum += x->value + strlen(x->name);
printf("%ld\\n", sum); return 0; }
"""


def compare(t, argv, status, env=None, stdin=None, compare_files=()):
    """Once alone, once under ptmem with the oracle inside; numbers of each process against its page."""
    env = dict(env or {}, LD_PRELOAD=t.oracle_library())
    native = t.native(argv, env=env, stdin=stdin)
    t.equal("status without ptmem (%s)" % native.err[:300], native.status, status)
    profile = t.profile(argv, env=env, stdin=stdin)
    t.same_behaviour(profile, native)
    for name in compare_files:
        contents = []
        for run in (native.cwd, profile.directory):
            with open(os.path.join(run, name), "rb") as file:
                contents.append(file.read())
        t.equal("file " + name, contents[1], contents[0])
    pages = oracle.read_pages(profile.directory)
    t.check(profile.stats, "no --stats")
    for stats in profile.stats:
        page = pages[stats["pid"]][-1]  # the image before, if any, is ptmem's own child
        t.equal("calls that the oracle missed", page.missed, 0)
        keys = harness.COUNTED
        if len(profile.stats) == 1 and stats.get("threads", 1) > 1:
            keys = tuple(k for k in keys if k != "peak")  # a matter of order
        t.counts("pid %d" % stats["pid"], stats, page.all, keys)
        t.equal("blocks replaced by others at their address", stats["replaced"], 0)
    return profile


@test("programs/python3", limit=120)
def python3(t):
    compare(t, [t.program("python3"), "-E", "-s", "-B", "-c", PYTHON], 3, {"PYTHONHASHSEED": "0"})


@test("programs/python3-malloc", limit=300)
def python3_malloc(t):
    """Without Python's own arenas: a hundred thousand blocks."""
    profile = compare(t, [t.program("python3"), "-s", "-B", "-c", PYTHON], 3,
                      {"PYTHONHASHSEED": "0", "PYTHONMALLOC": "malloc"})
    t.check(profile.stats[-1]["allocations"] > 20000, "PYTHONMALLOC=malloc had no effect")


@test("programs/sqlite3", limit=120)
def sqlite3(t):
    compare(t, [t.program("sqlite3"), "-batch", "file.db"], 4, stdin=SQL.encode())


@test("programs/perl", limit=120)
def perl(t):
    compare(t, [t.program("perl"), "-e", PERL], 5, {"PERL_HASH_SEED": "0", "PERL_PERTURB_KEYS": "0"})


@test("programs/bash", limit=120)
def bash(t):
    """Subshells and pipelines: each fork that does not execute has numbers of its own."""
    compare(t, [t.program("bash"), "--norc", "-c", BASH], 6)


@test("programs/cc1", limit=300)
def cc1(t):
    gcc = t.program("gcc")
    path = t.native([gcc, "-print-prog-name=cc1"]).out.decode().strip()
    source = t.file("session.c", C_SOURCE)
    compare(t, [t.program("cc1", path), "-quiet", "-imultiarch", harness.MULTIARCH, "-O2", "-o", "out.s", source], 0, compare_files=["out.s"])


@test("programs/gcc-followed", limit=600)
def gcc_followed(t):
    """The driver, cc1, as, collect2 and ld, each with a profile of its own; the program made runs."""
    source = t.file("session.c", C_SOURCE)
    profile = t.profile([t.program("gcc"), "-O1", "-o", "made", source], options=["--trace-children=yes"])
    t.equal("status (%s)" % profile.err[:300], profile.status, 0)
    t.check(len(profile.files) >= 4, "files of %d processes" % len(profile.files))
    made = t.native([os.path.join(profile.directory, "made")])
    t.equal("output of the program made", made.out, t.native([os.path.join(profile.directory, "made")]).out)
    t.equal("status of the program made", made.status, 0)


@test("programs/git", limit=180)
def git(t):
    """A repository of fixed contents: log, diff, blame, and a repack with its threads."""
    program = t.program("git")
    repository = os.path.join(t.directory, "repository")
    os.mkdir(repository)
    env = {"GIT_AUTHOR_DATE": "1700000000 +0000", "GIT_COMMITTER_DATE": "1700000000 +0000",
           "GIT_AUTHOR_NAME": "A", "GIT_COMMITTER_NAME": "A", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_EMAIL": "a@b",
           "GIT_CONFIG_NOSYSTEM": "1", "GIT_PAGER": "cat"}

    def run(*args):
        result = t.native([program, "-C", repository, *args], env=env)
        t.equal("status of git %s (%s)" % (args[0], result.err), result.status, 0)

    run("init", "-q", "-b", "main")
    for i in range(12):
        for name in "abc":
            with open(os.path.join(repository, name), "a", encoding="ascii") as file:
                file.write("".join("line %d of %s %d\n" % (k, name, i) for k in range(40)))
        run("add", ".")
        run("commit", "-q", "-m", "commit %d" % i)
    for args in (["log", "-p", "--stat"], ["blame", "b"], ["diff", "HEAD~5", "HEAD", "--word-diff"],
                 ["grep", "-n", "7 of c"], ["fsck", "--full"], ["rev-list", "--objects", "--all"]):
        compare(t, [program, "-C", repository, *args], 0, env)


@test("programs/small-stack")
def small_stack(t):
    """With `ulimit -s 128`, which the program gets as it is: elfutils alone needs more."""
    run = t.run(["sh", "-c", 'ulimit -s 128 && exec "$@"', "sh", t.ptmem(), "--record=r", "-o", "m", "--",
                 "bash", "-c", "ulimit -s"], cwd=t.subdirectory())
    t.equal("status (%s)" % run.err, run.status, 0)
    t.equal("the program's limit", run.out, b"128\n")


@test("programs/true")
def true(t):
    compare(t, [t.program("true")], 0)


@test("programs/sort", limit=180)
def sort(t):
    text = "".join("%d line %d\n" % (i * 7919 % 10007, i) for i in range(20000)).encode()
    compare(t, [t.program("sort"), "--parallel=1", "-n"], 0, stdin=text)


@test("programs/grep-awk-tar", limit=180)
def several(t):
    text = "".join("%d line %d\n" % (i * 7919 % 10007, i) for i in range(2000)).encode()
    path = t.file("text", text.decode())
    compare(t, [t.program("grep"), "-E", "(7|8)[0-9]* line .*3$", path], 0)
    compare(t, [t.program("awk"), "{ s[$1 % 17] += $3 } END { for (i = 0; i < 17; i++) print i, s[i] }", path], 0)
    compare(t, [t.program("tar"), "-cf", "-", "--mtime=@0", "-C", t.directory, "text"], 0)


@test("programs/xz-threads", limit=180)
def xz(t):
    text = "".join("%d line %d\n" % (i * 7919 % 10007, i) for i in range(60000)).encode()
    compare(t, [t.program("xz"), "-T4", "-0", "--block-size=100KiB", "-c"], 0, stdin=text)
