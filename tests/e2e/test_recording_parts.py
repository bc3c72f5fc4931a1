"""--record-every: recordings in parts, whose sums are those of one recording of the same events."""

import collections
import errno
import json
import os
import re
import signal
import stat
import subprocess
import time

from harness import BUILD, Skip, test

PHASES = 5
EVERY = "--record-every=0.2s"


def read(t, path):
    result = t.run([os.path.join(BUILD, "ptmem-report"), "--format=json", path])
    t.equal("status of ptmem-report (%s)" % result.err.decode()[:300], result.status, 0)
    return json.loads(result.out)


def parts(directory, stem=r"r"):
    return sorted(n for n in os.listdir(directory) if re.fullmatch(stem + r"\.\d\d\d+\.rec", n))


class Phases:
    """targets/phases under ptmem --record=r.rec --record-every, with its events; a part begins after each phase."""

    def __init__(self, t, *options, attach=False, every=EVERY, quiet=True):
        self.t, self.cwd, self.attached = t, t.subdirectory(), None
        program = t.target("gcc-O2-pie", "phases")
        own = [t.ptmem(), *(["-q"] if quiet else []), "--record=r.rec", every, "--events=e", "--massif-out-file=m", *options]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "cwd": self.cwd, "env": t.environment(self.cwd)}
        if attach:
            self.program = self.attached = subprocess.Popen([program], **pipes)
            self.expect("ready")
            self.phase()
            self.ptmem = subprocess.Popen([*own, "-p", str(self.program.pid)], cwd=self.cwd, env=t.environment(self.cwd))
            t.wait_until("attached", lambda: parts(self.cwd))
        else:
            self.ptmem = self.program = subprocess.Popen([*own, "--", program], **pipes)
            self.expect("ready")

    def expect(self, line):
        self.t.equal("the program's line", self.program.stdout.readline().decode(), line + "\n")

    def phase(self):
        self.program.stdin.write(b"x")
        self.program.stdin.flush()
        self.expect("done")

    def last_part(self):
        return max((int(n.split(".")[1]) for n in parts(self.cwd)), default=0)

    def phase_and_part(self):
        self.phase()
        before = self.last_part()
        self.t.wait_until("another part", lambda: self.last_part() > before)

    def end(self):
        self.program.stdin.close()
        self.t.equal("status", self.ptmem.wait(), 0)
        if self.attached:
            self.t.equal("status of the program", self.attached.wait(), 0)

    def read_parts(self):
        return [read(self.t, os.path.join(self.cwd, n)) for n in parts(self.cwd)]

    def read_whole(self):
        """One recording of the same events."""
        result = self.t.run([self.t.ptmem(), "-q", "--replay=e", "--record=whole", "--massif-out-file=/dev/null"], cwd=self.cwd)
        self.t.equal("status of the replay", result.status, 0)
        return read(self.t, os.path.join(self.cwd, "whole"))


def paths(data):
    """By leaf: the addresses of its path."""
    found = []
    for node in data["leaves"]["node"]:
        path = []
        while node >= 0:
            path.append(data["frames"]["address"][data["nodes"]["frame"][node]])
            node = data["nodes"]["parent"][node]
        found.append(tuple(path))
    return found


def by_path(data, column):
    return {p: n for p, n in zip(paths(data), data["leaves"][column] or []) if n}


def histogram(data, column):
    """{(path, bucket): blocks}"""
    return {(p, h[0] + i): n for p, h in zip(paths(data), data["leaves"][column]) for i, n in enumerate(h[1:]) if n}


def cells(data, is_wanted):
    """{path: [bytes, blocks]} of the cells of which is_wanted(born, died) is true; of samples, whose blocks are rounded
    fractions, {path: [bytes]}."""
    found, of_leaf, c = {}, paths(data), data["cells"]
    for leaf, born, died, *values in zip(c["leaf"], c["born"], c["died"], c["bytes"], c["blocks"]):
        if is_wanted(born, died):
            values = values[:1] if data["meta"]["heap_sample"] else values
            found[of_leaf[leaf]] = [a + b for a, b in zip(found.get(of_leaf[leaf], [0, 0]), values)]
    return found


def sums(of_paths):
    return [sum(column) for column in zip(*of_paths.values())]


def live_at_end(data):
    return cells(data, lambda born, died: died == -1)


def live_before(data):
    return cells(data, lambda born, died: born == -1)


def total(dictionaries):
    out = collections.Counter()
    for d in dictionaries:
        for key, value in d.items():
            out[key] += value
    return {k: v for k, v in out.items() if v}


def judge_part(t, data):
    """A part is consistent by itself."""
    name = "part %d: " % data["meta"]["part"]
    end = sums(live_at_end(data))
    t.equal(name + "live", end, [data["end"]["live_bytes"], data["end"]["live_blocks"]][:len(end)])
    t.equal(name + "end of the timeline", data["timeline"]["live_bytes"][-1], data["end"]["live_bytes"])
    t.equal(name + "peak", sum(data["peak"]["bytes_of"]), data["peak"]["bytes"])
    t.equal(name + "peak of the timeline", max(data["timeline"]["peak_bytes"]), data["peak"]["bytes"])
    e = data["end"]
    requests, releases_ = sum(data["timeline"]["allocations"]), sum(data["timeline"]["releases"])
    if not data["meta"]["heap_sample"]:
        t.equal(name + "requests", requests, e["allocations"] + e["reallocs"])
        t.equal(name + "releases", releases_, e["frees"] + e["reallocs"])
        t.equal(name + "bytes", sum(data["timeline"]["allocated_bytes"]), e["allocated_bytes"])
    t.check(all(m < len(data["timeline"]["time"]) * data["timeline"]["interval"] for m in data["leaves"]["max_time"]), name + "times")


def judge(t, all_parts, whole):
    t.equal("numbers", [p["meta"]["part"] for p in all_parts], list(range(1, len(all_parts) + 1)))
    t.equal("ends", {p["meta"]["exit"] for p in all_parts[:-1]}, {"still running"})
    t.check(not any(p["meta"]["incomplete"] for p in all_parts), "complete")
    t.equal("nothing is from before the first part", live_before(all_parts[0]), {})
    for part in all_parts:
        judge_part(t, part)
    for first, second in zip(all_parts, all_parts[1:]):
        t.equal("what part %d leaves is there from the beginning of the next" % first["meta"]["part"], live_before(second),
                live_at_end(first))
    is_exact = not whole["meta"]["heap_sample"]
    for key in ("allocations", "allocated_bytes", "reallocs", "frees", "temporary", "failed", "unknown_frees"):
        if is_exact or key == "allocated_bytes":
            t.equal("sum of " + key, sum(p["end"][key] for p in all_parts), whole["end"][key])
    for key in ("allocations", "bytes", "temporary", "reallocs", "moved"):
        if is_exact or key == "bytes":
            t.equal(key + " by path", total(by_path(p, key) for p in all_parts), by_path(whole, key))
    for key in ("sizes", "lifetimes") if is_exact else ():
        t.equal(key, total(histogram(p, key) for p in all_parts), histogram(whole, key))
    t.equal("live at the end", live_at_end(all_parts[-1]), live_at_end(whole))
    t.equal("peak", max(p["peak"]["bytes"] for p in all_parts), whole["peak"]["bytes"])
    t.equal("peaks of paths", [max(ms) for ms in maxima(all_parts)], [max(ms) for ms in maxima([whole])])


def maxima(recordings):
    found = {}
    for data in recordings:
        for path, most in by_path(data, "max_bytes").items():
            found.setdefault(path, []).append(most)
    return [found[p] for p in sorted(found)]


def check_truth(t, p, all_parts):
    truth = t.truth(p.cwd)
    names = {"allocations": "allocations", "reallocs": "reallocations", "frees": "frees", "allocated_bytes": "bytes"}
    for key, name in names.items():
        t.equal(key + " of the program", sum(d["end"][key] for d in all_parts), truth[name])
    t.equal("live bytes and blocks of the program", (all_parts[-1]["end"]["live_bytes"], all_parts[-1]["end"]["live_blocks"]),
            (truth["live"], truth["blocks"]))


for how in ("break", "auto", "jump"):
    @test("recording-parts/agree-" + how)
    def _(t, how=how):
        p = Phases(t, "--probes=" + how)
        for _ in range(PHASES):
            p.phase_and_part()
        p.end()
        all_parts = p.read_parts()
        t.check(len(all_parts) > PHASES, "%d parts" % len(all_parts))
        judge(t, all_parts, p.read_whole())
        check_truth(t, p, all_parts)


@test("recording-parts/attached")
def _(t):
    p = Phases(t, attach=True)
    for _ in range(3):
        p.phase_and_part()
    p.ptmem.send_signal(signal.SIGINT)
    t.equal("status", p.ptmem.wait(), 0)
    all_parts = p.read_parts()
    judge(t, all_parts, p.read_whole())
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
    judge(t, all_parts, p.read_whole())
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
    data = read(t, path)
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
    commands = [read(t, os.path.join(directory, n))["meta"]["command"] for n in own]
    t.check(commands[-1].startswith("/bin/true") and commands[0].startswith("/bin/sh"), "programs: %s" % commands)
    ends = [read(t, os.path.join(directory, n))["meta"]["exit"] for n in own + child]
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
    ends = [read(t, os.path.join(directory, n))["meta"]["exit"] for n in child]
    t.equal("ends", ends, ["still running"] * (len(child) - 1) + ["executed another program"])


@test("recording-parts/ptmem-killed")
def _(t):
    """Complete parts stay, the current one can be read up to its last second."""
    p = Phases(t)
    for _ in range(2):
        p.phase_and_part()

    def has_part():
        path = os.path.join(p.cwd, "r.002.rec")
        return os.path.exists(path) and not read(t, path)["meta"]["incomplete"]

    t.wait_until("two complete parts", has_part)
    p.ptmem.kill()
    p.ptmem.wait()
    t.wait_until("the writers have ended", lambda: not read(t, os.path.join(p.cwd, parts(p.cwd)[-2]))["meta"]["incomplete"])
    all_parts = p.read_parts()
    t.equal("incomplete", [d["meta"]["incomplete"] for d in all_parts], [False] * (len(all_parts) - 1) + [True])
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
        found = complete_below(tmp)
        t.check(len(found) <= 3, "more files than are kept: %s" % found)
        return sorted(int(re.fullmatch(r"recording\.\d+\.(\d\d\d)", os.path.basename(path))[1]) for path in found)

    t.wait_until("recordings", lambda: len(parts(out)) > 1)
    os.rename(out, os.path.join(cwd, "away"))
    t.wait_until("a recording elsewhere", numbers_there)
    first = numbers_there()[0]
    t.wait_until("more of them", lambda: (numbers_there() or [0])[-1] >= first + 4)
    t.equal("directories", len(os.listdir(tmp)), 1)
    os.mkdir(out)
    t.wait_until("their return", lambda: not os.listdir(tmp))
    ptmem.stdin.close()
    t.equal("status: not all were written to their place", ptmem.wait(), 125)
    with open(os.path.join(cwd, "log"), encoding="utf-8") as file:
        log = file.read()
    t.equal("messages about the place (%s)" % log, log.count("; the recording is in "), 1)
    t.equal("messages about the return", log.count("could be written to its place again"), 1)
    last = [read(t, os.path.join(out, n)) for n in parts(out)]
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
    t.wait_until("a recording elsewhere", lambda: numbers()[1])
    first = numbers()[1][0]
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
    judge_part(t, read(t, found))
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
    data = read(t, os.path.join(cwd, "r.%s.1.rec" % number))
    t.equal("part", data["meta"]["part"], int(number))
    text = t.run([os.path.join(BUILD, "ptmem-report"), "r.001.rec"], cwd=cwd, env={"TZ": "UTC"}).out.decode()
    start = time.strftime("%Y-%m-%d %H:%M:%S +0000", time.gmtime(int(read(t, os.path.join(cwd, "r.001.rec"))["meta"]["start"])))
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
