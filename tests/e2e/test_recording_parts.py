"""--record-every: recordings in parts, whose sums are those of one recording of the same events."""

import collections
import errno
import os
import re
import signal
import stat
import subprocess
import time

from harness import BUILD, report_json, Skip, test
from recording_lib import EVERY, Phases, check_truth, judge_part, judge_parts, live_at_end, live_before, parts, sums

PHASES = 5


for how in ("break", "auto", "jump"):
    @test("recording-parts/agree-" + how)
    def _(t, how=how):
        p = Phases(t, "--probes=" + how)
        for _ in range(PHASES):
            p.phase_and_part()
        p.end()
        all_parts = p.read_parts()
        t.check(len(all_parts) > PHASES, "%d parts" % len(all_parts))
        judge_parts(t, all_parts, p.read_whole())
        check_truth(t, p, all_parts)


@test("recording-parts/attached")
def _(t):
    p = Phases(t, attach=True)
    for _ in range(3):
        p.phase_and_part()
    p.ptmem.send_signal(signal.SIGINT)
    t.equal("status", p.ptmem.wait(), 0)
    all_parts = p.read_parts()
    judge_parts(t, all_parts, p.read_whole())
    t.equal("the last one's end", all_parts[-1]["meta"]["exit"], "detached")
    t.equal("markers", [[m["kind"] for m in d["markers"]] for d in (all_parts[0], all_parts[1], all_parts[-1])],
            [["attach"], [], ["detach"]])
    p.program.stdin.close()
    t.equal("status of the program", p.program.wait(), 0)


@test("recording-parts/sampled")
def _(t):
    """Estimates add up as exactly; totals of calls are exact."""
    p = Phases(t, "--heap-sample=2000", "--seed=3")
    for _ in range(3):
        p.phase_and_part()
    p.end()
    all_parts, truth = p.read_parts(), t.truth(p.cwd)
    judge_parts(t, all_parts, p.read_whole())
    calls = collections.Counter()
    for part in all_parts:
        calls.update(dict(zip(part["calls"]["function"], part["calls"]["calls"])))
    t.equal("calls", (calls["malloc"] + calls["calloc"], calls["realloc"], calls["free"]),
            (truth["allocations"], truth["reallocations"], truth["frees"]))


@test("recording-parts/free-stacks")
def _(t):
    """Each part has the releases since its beginning: what was there or allocated, and is not there at the end."""
    p = Phases(t, "--free-stacks")
    for _ in range(3):
        p.phase_and_part()
    p.end()
    all_parts = p.read_parts()
    check_truth(t, p, all_parts)
    for data in all_parts:
        r, end, before = data["releases"], data["end"], sums(live_before(data)) or [0, 0]
        t.equal("releases of part %d" % data["meta"]["part"], [sum(r["bytes"]), sum(r["blocks"])],
                [end["allocated_bytes"] + before[0] - end["live_bytes"], end["allocations"] + before[1] - end["live_blocks"]])
    names = {data["frames"]["function"][data["nodes"]["frame"][data["nodes"]["parent"][node]]]
             for data in all_parts for node in data["releases"]["node"]}
    t.equal("functions that release blocks", names, {"release", "churn", "resize"})


@test("recording-parts/growth")
def _(t):
    """What a part's range has grown by does not include what was there before."""
    p = Phases(t)
    for _ in range(2):
        p.phase_and_part()
    before = p.last_part()
    t.wait_until("a part without work", lambda: p.last_part() > before + 1)
    p.end()
    path = os.path.join(p.cwd, "r.%03d.rec" % (before + 1))
    data = report_json(t, path)
    t.check(data["end"]["allocations"] == 0 and data["end"]["live_bytes"] > 0, "an idle part: %s" % data["end"])

    def said(*options):
        return t.run([os.path.join(BUILD, "ptmem-report"), "--format=folded", *options, path]).out.decode()

    t.equal("growth", said("--range=0..end"), "")
    for moment in ("0", "end", "peak"):
        t.equal("live at " + moment, sum(int(l.rsplit(" ", 1)[1]) for l in said("--at=" + moment).splitlines()),
                data["end"]["live_bytes"])


@test("recording-parts/keep")
def _(t):
    """The last two complete ones stay besides the one that is being written."""
    p = Phases(t, "--record-keep=2")
    for _ in range(4):
        p.phase_and_part()
    t.wait_until("the first two are removed", lambda: not {"r.001.rec", "r.002.rec"} & set(parts(p.cwd)))
    p.end()
    last = p.last_part()
    t.equal("parts", parts(p.cwd), ["r.%03d.rec" % n for n in (last - 1, last)])
    t.check(last > 4 and not any(d["meta"]["incomplete"] for d in p.read_parts()), "both are complete")


@test("recording-parts/names")
def _(t):
    """%n and %p; forks have their pids, and a program that is executed goes on counting."""
    directory = t.subdirectory()
    script = 'echo ready; (read line; exit 3); read line; exec "$0" 0'
    ptmem = subprocess.Popen([t.ptmem(), "-q", "--record=a-%n", "--massif-out-file=m", EVERY, "--trace-children=yes", "--", "/bin/sh",
                              "-c", script, "/bin/true"], cwd=directory, env=t.environment(directory), stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE)
    t.equal("line", ptmem.stdout.readline(), b"ready\n")

    def names(pattern):
        return sorted(n for n in os.listdir(directory) if re.fullmatch(pattern, n))

    t.wait_until("parts of both", lambda: len(names(r"a-\d+")) > 2 and len(names(r"a-\d+\.\d+")) > 2)
    ptmem.stdin.write(b"\n\n")
    ptmem.stdin.close()
    t.equal("status", ptmem.wait(), 0)
    own, child = names(r"a-\d\d\d"), names(r"a-\d\d\d\.\d+")
    t.equal("all files", sorted(own + child), names(r"a-.*"))
    t.equal("numbers", [n[2:5] for n in own], ["%03d" % (i + 1) for i in range(len(own))])
    t.equal("numbers of the child", [n[2:5] for n in child], ["%03d" % (i + 1) for i in range(len(child))])
    commands = [report_json(t, os.path.join(directory, n))["meta"]["command"] for n in own]
    t.check(commands[-1].startswith("/bin/true") and commands[0].startswith("/bin/sh"), "programs: %s" % commands)
    ends = [report_json(t, os.path.join(directory, n))["meta"]["exit"] for n in own + child]
    t.equal("ends", collections.Counter(e for e in ends if e != "still running"),
            {"executed another program": 1, "exited 0": 1, "exited 3": 1})


@test("recording-parts/child-executes")
def child_executes(t):
    """A fork that executes another program, which is not followed, after some of its parts: the last one is there, too.
    No file of a part may be overwritten by what --monitor asks for."""
    directory = t.subdirectory()
    script = 'echo ready; (read line; exec /bin/true); read line; exit 0'
    ptmem = subprocess.Popen([t.ptmem(), "-q", "--record=a-%n", "--massif-out-file=m", EVERY, "--trace-children=no", "--", "/bin/sh",
                              "-c", script], cwd=directory, env=t.environment(directory), stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE)
    t.equal("line", ptmem.stdout.readline(), b"ready\n")

    def names(pattern):
        return sorted(n for n in os.listdir(directory) if re.fullmatch(pattern, n))

    t.wait_until("parts of both", lambda: len(names(r"a-\d+")) > 2 and len(names(r"a-\d+\.\d+")) > 2)
    for name in ("a-001", names(r"a-\d+")[-1]):
        result = t.run([t.ptmem(), "--monitor=%d" % ptmem.pid, "recording", name], cwd=directory)
        t.check(result.status == 1 and b"it is the file of --record" in result.out + result.err, "refused: %r" % (result,))
    ptmem.stdin.write(b"\n\n")
    ptmem.stdin.close()
    t.equal("status", ptmem.wait(), 0)
    child = names(r"a-\d\d\d\.\d+")
    t.equal("numbers of the child", [n[2:5] for n in child], ["%03d" % (i + 1) for i in range(len(child))])
    ends = [report_json(t, os.path.join(directory, n))["meta"]["exit"] for n in child]
    t.equal("ends", ends, ["still running"] * (len(child) - 1) + ["executed another program"])


@test("recording-parts/ptmem-killed")
def _(t):
    """Complete parts stay, the current one can be read up to its last second; there is none if one has just ended."""
    p = Phases(t)
    for _ in range(2):
        p.phase_and_part()

    def has_part():
        path = os.path.join(p.cwd, "r.002.rec")
        return os.path.exists(path) and not report_json(t, path)["meta"]["incomplete"]

    t.wait_until("two complete parts", has_part)
    p.ptmem.kill()
    p.ptmem.wait()
    t.wait_until("the writers have ended", lambda: not report_json(t, os.path.join(p.cwd, parts(p.cwd)[-2]))["meta"]["incomplete"])
    all_parts = p.read_parts()
    t.equal("incomplete, but for the last one", [d["meta"]["incomplete"] for d in all_parts[:-1]], [False] * (len(all_parts) - 1))
    for first, second in zip(all_parts, all_parts[1:]):
        t.equal("what was there", sums(live_before(second)), sums(live_at_end(first)))


def complete_below(directory):
    """The files there that are complete."""
    return [os.path.join(d, n) for d, _, names in os.walk(directory) for n in names if not n.startswith(".ptmem")]


def start_phases(t, cwd, *options, before=(), **env):
    ptmem = subprocess.Popen([*before, t.ptmem(), "--log-file=log", "--massif-out-file=m", EVERY, *options, "--", t.target("gcc-O2-pie", "phases")],
                             cwd=cwd, env=t.environment(cwd, **env), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    t.equal("line", ptmem.stdout.readline(), b"ready\n")
    return ptmem


@test("recording-parts/elsewhere")
def elsewhere(t):
    """While the place of the recordings is gone, they are in one directory, as many of them; then they return."""
    cwd = t.subdirectory()
    out, tmp = os.path.join(cwd, "out"), os.path.join(cwd, "tmp")
    os.mkdir(out)
    os.mkdir(tmp)
    ptmem = start_phases(t, cwd, "--record=out/r.rec", "--record-keep=2", TMPDIR=tmp)

    def numbers_there():
        return sorted(int(re.fullmatch(r"recording\.\d+\.(\d\d\d)", os.path.basename(path))[1]) for path in complete_below(tmp))

    t.wait_until("recordings", lambda: len(parts(out)) > 1)
    os.rename(out, os.path.join(cwd, "away"))
    found = []
    t.wait_until("a recording elsewhere", lambda: found.extend(numbers_there()) or found)
    first = found[0]

    def has_more():  # writers may have completed several before ptmem removes older ones
        numbers = numbers_there()
        return len(numbers) <= 3 and (numbers or [0])[-1] >= first + 4
    t.wait_until("more of them, and not more files than are kept", has_more)
    t.equal("directories", len(os.listdir(tmp)), 1)
    os.mkdir(out)
    t.wait_until("their return", lambda: not os.listdir(tmp))
    ptmem.stdin.close()
    t.equal("status: not all were written to their place", ptmem.wait(), 125)
    with open(os.path.join(cwd, "log"), encoding="utf-8") as file:
        log = file.read()
    t.equal("messages about the place (%s)" % log, log.count("; the recording is in "), 1)
    t.equal("messages about the return", log.count("could be written to its place again"), 1)
    last = [report_json(t, os.path.join(out, n)) for n in parts(out)]
    t.equal("what is kept", [d["meta"]["incomplete"] for d in last], [False, False])
    for part in last:
        judge_part(t, part)


@test("recording-parts/full-disk")
def full_disk(t):
    """What a full disk left of a recording at its place is removed with it."""
    if t.run(["unshare", "-Urm", "true"]).status != 0:
        raise Skip("no user namespaces here (unshare -Urm)")
    cwd = t.subdirectory()
    tmp = os.path.join(cwd, "tmp")
    for name in ("out", "tmp"):
        os.mkdir(os.path.join(cwd, name))
    mount = ["unshare", "-Urm", "sh", "-c", "mount -t tmpfs -o size=128k none out && exec \"$@\"", "sh"]
    ptmem = start_phases(t, cwd, "--record=out/r.rec", "--record-every=0.5s", "--record-keep=2", before=mount, TMPDIR=tmp)
    out = "/proc/%d/root%s/out" % (ptmem.pid, os.path.realpath(cwd))

    def numbers():
        return [int(n.split(".")[1]) for n in parts(out)], sorted(int(n[-3:]) for _, _, names in os.walk(tmp) for n in names
                                                                  if re.fullmatch(r"recording\.\d+\.\d\d\d", n))

    t.wait_until("the file of the first recording", lambda: parts(out))
    try:
        with open(os.path.join(out, "fill"), "wb", buffering=0) as file:
            while file.write(b"x" * 4096) == 4096:
                pass
    except OSError as error:
        t.equal("error", error.errno, errno.ENOSPC)
    found = []
    t.wait_until("a recording elsewhere", lambda: found.extend(numbers()[1]) or found)
    first = found[0]
    t.wait_until("more of them", lambda: max(sum(numbers(), [0])) >= first + 4)

    def is_kept():
        there, elsewhere = numbers()
        newest = max(there + elsewhere)
        return min(there + elsewhere) >= newest - 2

    t.wait_until("only the last two and the current one", is_kept)
    ptmem.stdin.close()
    ptmem.stdout.read()
    ptmem.wait()
    t.check(ptmem.returncode == 125, "status: %d" % ptmem.returncode)


@test("recording-parts/fifo")
def fifo(t):
    """A FIFO that has the name of a recording stays; the recording is where others go that cannot be written."""
    cwd = t.subdirectory()
    tmp, path = os.path.join(cwd, "tmp"), os.path.join(cwd, "r.001.rec")
    os.mkdir(tmp)
    os.mkfifo(path)
    ptmem = start_phases(t, cwd, "--record=r.rec", TMPDIR=tmp)

    def elsewhere():
        return complete_below(tmp)

    def said(words):
        with open(os.path.join(cwd, "log"), encoding="utf-8") as file:
            return words in file.read()

    t.wait_until("the recording elsewhere", lambda: elsewhere() and said("cannot write %s; the recording is in %s, " %
                                                                         (path, elsewhere()[0])))
    t.wait_until("another one at its place", lambda: said("r.002.rec could be written to its place again"))
    ptmem.stdin.close()
    t.equal("status: not all were written to their place", ptmem.wait(), 125)
    found, = elsewhere()
    t.check(re.search(r"/recording\.\d+\.001$", found) and stat.S_ISFIFO(os.stat(path).st_mode), "the place of the first: " + found)
    judge_part(t, report_json(t, found))
    t.equal("recordings of another name", [n for n in os.listdir(cwd) if n.startswith("recording")], [])


@test("recording-parts/so-far")
def so_far(t):
    """The recording so far is one of the current part, and its name says so; the report says when the part began."""
    cwd = t.subdirectory()
    ptmem = start_phases(t, cwd, "--record=r.rec")
    t.wait_until("a part", lambda: parts(cwd))
    ptmem.send_signal(signal.SIGUSR1)
    t.wait_until("the recording so far", lambda: any(re.fullmatch(r"r\.\d\d\d\.1\.rec", n) for n in os.listdir(cwd)))
    ptmem.stdin.close()
    t.equal("status", ptmem.wait(), 0)
    number, = (re.fullmatch(r"r\.(\d\d\d)\.1\.rec", n)[1] for n in os.listdir(cwd) if n.endswith(".1.rec"))
    data = report_json(t, os.path.join(cwd, "r.%s.1.rec" % number))
    t.equal("part", data["meta"]["part"], int(number))
    text = t.run([os.path.join(BUILD, "ptmem-report"), "r.001.rec"], cwd=cwd, env={"TZ": "UTC"}).out.decode()
    start = time.strftime("%Y-%m-%d %H:%M:%S +0000", time.gmtime(int(report_json(t, os.path.join(cwd, "r.001.rec"))["meta"]["start"])))
    t.check(re.search(r"^part +1\nfrom +%s$" % re.escape(start), text, re.M), text[:500])


@test("recording-parts/executes-at-once")
def executes_at_once(t):
    """A fork that executes a program before it has a recording uses up no number."""
    cwd = t.subdirectory()
    result = t.run([t.ptmem(), "-q", "--record=a-%n-%p", "--massif-out-file=/dev/null", "--record-every=1h", "--trace-children=yes", "--",
                    "/bin/sh", "-c", "(exec /bin/true); (exec /bin/true); exit 0"], cwd=cwd)
    t.equal("status", result.status, 0)
    found = sorted(n for n in os.listdir(cwd) if n.startswith("a-"))
    t.equal("parts of three processes (%s)" % found, [n[:6] for n in found], ["a-001-"] * 3)
