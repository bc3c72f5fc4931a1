"""--listen and --html with --record-every: the files have parts of the run, what is served and the page have all of it."""

import collections
import json
import os
import re
import signal
import subprocess

import harness
from harness import report_json, Skip, test
from pprof_file import Pprof
from live_lib import Listening, values
from process_lib import FollowListening, Followed, Following, Level, unique
from recording_lib import (
    Branches, EVERY, LIMIT, Phases, by_path, check_truth, histogram, judge_moments, judge_parts, live_at_end,
    live_before, parts, paths)
from report_lib import embedded


class Served(Phases, Listening):
    """targets/phases with both."""

    def __init__(self, t, *options, **how):
        super().__init__(t, "--listen", "--listen-linger=3600", "--log-file=log", *options, quiet=False, **how)
        t.wait_until("listening", lambda: self.url() is not None)
        self.server_pid = self.server()

    def json(self):
        return json.loads(self.get("/profile.json"))

    def stop_server(self):
        os.kill(self.server_pid, signal.SIGTERM)
        self.t.wait_until("the server ends", self.has_no_server)


def check_now(t, p):
    """All answers have all that was allocated since the beginning."""
    found, data = p.metrics(), p.json()
    wanted = [found["ptmem_heap_live_bytes"], sum(data["leaves"]["bytes"])]
    t.check(wanted[1] > 0, "nothing was allocated")
    requested = sum(data["calls"]["bytes"]) if data.get("calls") else wanted[1]
    t.equal("metrics", found["ptmem_heap_allocated_bytes_total"], requested)
    t.equal("part, blocks from before", (data["meta"]["part"], live_before(data)), (0, {}))
    t.equal("JSON", data["timeline"]["live_bytes"][-1], wanted[0])
    t.equal("sum of the timeline", sum(data["timeline"]["allocated_bytes"]), wanted[1])
    t.equal("recording", values(p.report("--format=json"))[::2], wanted)
    sums = Pprof(p.get("/debug/pprof/heap")).sums()
    t.equal("pprof", [sums["inuse_space"], sums["alloc_space"]], wanted)


def moments(data, interval):
    """Live bytes at the ends of longer intervals."""
    every, ratio = data["timeline"]["live_bytes"], interval // data["timeline"]["interval"]
    return [every[min(i + ratio, len(every)) - 1] for i in range(0, len(every), ratio)]


def releases(data):
    found, r = collections.Counter(), data["releases"] or {"node": [], "bytes": [], "blocks": []}
    for node, size, blocks in zip(r["node"], r["bytes"], r["blocks"]):
        path = []
        while node >= 0:
            path.append(data["frames"]["address"][data["nodes"]["frame"][node]])
            node = data["nodes"]["parent"][node]
        found[tuple(path)] += size + (blocks << 48)
    return found


def judge_whole(t, served, whole, all_parts):
    """What is served in the end is the recording that a replay of the events makes; that has no stacks of releases."""
    t.equal("call paths", sorted(paths(served)), sorted(paths(whole)))
    for key in ("allocations", "bytes", "temporary", "reallocs", "moved", "max_bytes", "max_time"):
        t.equal(key, by_path(served, key), by_path(whole, key))
    for key in ("sizes", "lifetimes"):
        t.equal(key, histogram(served, key), histogram(whole, key))
    t.equal("live", live_at_end(served), live_at_end(whole))
    for key in ("time", "bytes", "blocks"):
        t.equal("peak's " + key, served["peak"][key], whole["peak"][key])
    interval = max(data["timeline"]["interval"] for data in (served, whole))
    shown = moments(served, interval)
    t.equal("moments", shown, moments(whole, interval)[:len(shown)])
    markers = [[(m["kind"], m["time"]) for m in data["markers"] if m["kind"] != "detach"] for data in (served, whole)]
    t.equal("markers", *markers)
    t.equal("releases", releases(served), sum(map(releases, all_parts), collections.Counter()))
    t.equal("calls", served.get("calls"), whole.get("calls"))
    for key in ("start", "lost"):
        t.equal(key, served["meta"][key], whole["meta"][key])


for name, options in (("break", ["--probes=break"]), ("jump", ["--probes=jump", "--free-stacks"]),
                      ("sampled", ["--heap-sample=2000", "--seed=3"])):
    @test("listen-parts/" + name)
    def _(t, options=options):
        p = Served(t, *options)
        for _ in range(3):
            p.phase_and_part()
            check_now(t, p)
        p.end()
        t.wait_until("the end", p.is_over)
        whole, all_parts = p.read_whole(), p.read_parts()
        t.check(len(all_parts) > 3, "%d parts" % len(all_parts))
        judge_parts(t, all_parts, whole)
        served = p.json()
        judge_whole(t, served, whole, all_parts)
        t.equal("end", (served["meta"]["exit"], served["meta"]["part"]), ("exited 0", 0))
        if "--seed=3" not in options:
            check_truth(t, p, all_parts)
        p.stop_server()


@test("listen-parts/attached")
def _(t):
    """Blocks from before are there once; the markers have the times of the whole run, in events, too."""
    p = Served(t, "--earlier-blocks=yes", attach=True)
    for _ in range(2):
        p.phase_and_part()
    found, data = p.metrics(), p.json()
    t.equal("live", data["timeline"]["live_bytes"][-1], found["ptmem_heap_live_bytes"])
    t.equal("markers", [m["kind"] for m in data["markers"]], ["attach"])
    p.ptmem.send_signal(signal.SIGINT)
    t.equal("status", p.ptmem.wait(), 0)
    t.wait_until("the end", p.is_over)
    whole, all_parts = p.read_whole(), p.read_parts()
    judge_whole(t, p.json(), whole, all_parts)
    detach, end = all_parts[-1]["markers"][-1], whole["markers"][-1]
    t.equal("ends", (detach["kind"], end["kind"]), ("detach", "detach"))
    before = sum(d["meta"]["duration"] for d in all_parts[:-1])
    t.check(abs(end["time"] - before - detach["time"]) <= 2, "time of the end: %s, %s + %s" % (end["time"], before, detach["time"]))
    p.program.stdin.close()
    t.equal("status of the program", p.program.wait(), 0)
    p.stop_server()


@test("listen-parts/seconds")
def _(t):
    """?seconds= is what was allocated since, though a part ends meanwhile."""
    m = Listening(t, ["--record=r.rec", EVERY])
    pieces = []
    while not pieces:
        before = len(parts(m.cwd))
        with m.connect() as waiting:
            waiting.sendall(b"GET /debug/pprof/heap?seconds=1 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            m.get("/healthz")
            m.get("/healthz")  # the first profile of the other request is taken by now
            m.more()
            sums = Pprof(waiting.makefile("rb").read().split(b"\r\n\r\n", 1)[1]).sums()
        if sums and len(parts(m.cwd)) > before:
            pieces.append(sums)
    t.equal("what is new", pieces, [{"inuse_space": 1000, "inuse_objects": 1, "alloc_space": 1000, "alloc_objects": 1}])
    m.end()


@test("listen-parts/limit", limit=240)
def _(t):
    """Files have at most their size, and few of them stay; what is served is whole."""
    b = Branches(t, "--record-every=0.3s", "--record-keep=2", "--listen")
    for number in range(1, 5):
        b.round()
        t.wait_until("another part", lambda: parts(b.cwd)[-1] > "r.%03d.rec" % number)
        data = b.fetch()
        judge_moments(t, data)
        t.equal("part, lost", (data["meta"]["part"], data["meta"]["lost"]), (0, []))
        t.equal("allocations", sum(data["leaves"]["allocations"]), number << 14)
        t.check(max(b.sizes()) <= LIMIT, "files of %s bytes" % b.sizes())
    b.end()
    found = [report_json(t, os.path.join(b.cwd, n)) for n in parts(b.cwd)]
    t.equal("kept", len(found), 2)
    t.equal("live", found[-1]["end"]["live_bytes"], t.truth(b.cwd)["live"])


@test("listen-parts/memory", limit=240)
def _(t):
    """Of 16,384 call paths ptmem keeps two histories, one of the part and one that is served: in 40 MB, not 32 bytes for each cell."""
    b = Branches(t, "--record-limit=1G", "--record-every=1s", "--record-keep=2", "--listen")
    for _ in range(6):
        b.round()
    data = b.fetch()
    judge_moments(t, data)
    with open("/proc/%d/status" % b.ptmem.pid, encoding="ascii") as file:
        most = int(re.search(r"VmHWM:\s+(\d+) kB", file.read())[1])
    t.check(most < 40_000 or harness.is_asan(), "%d kB" % most)
    b.ptmem.stdin.close()
    t.equal("status", b.ptmem.wait(), 0)


@test("listen-parts/processes")
def _(t):
    """Forks, from the fork on, and a program that is executed each have the whole of their run."""
    m = Listening.__new__(Listening)
    m.t, m.cwd, m.program = t, t.subdirectory(), None
    script = 'echo ready; (read line; exit 3); read line; exec "$0"'
    m.ptmem = subprocess.Popen([t.ptmem(), "--listen", "--log-file=log", "--massif-out-file=m", "--record=a-%p-%n", EVERY,
                                "--trace-children=yes", "--", "/bin/sh", "-c", script, t.target("gcc-O2-pie", "phases")],
                               cwd=m.cwd, env=t.environment(m.cwd), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    m.expect(m.ptmem, b"ready\n")

    def allocated():
        """{pid: bytes} as the totals have it."""
        return {int(pid): int(n) for pid, n in re.findall(r'allocated_bytes_total\{pid="(\d+)".*\} (\d+)\n', m.get("/metrics").decode())}

    def numbers(pid):
        return sorted(int(n.split("-")[2]) for n in os.listdir(m.cwd) if n.startswith("a-%d-" % pid))

    def check(pid):
        data = json.loads(m.get("/profile.json?pid=%d" % pid))
        is_own = pid == shell
        t.equal("part, blocks from before", (data["meta"]["part"], not live_before(data)), (0, is_own))
        t.equal("bytes of %d" % pid, sum(data["leaves"]["bytes"]) == allocated()[pid], is_own)  # the totals have what it inherited
        t.equal("marks", [mark["kind"] for mark in data["markers"]], [] if is_own else ["fork"])
        return data["meta"]["command"]

    def write(text):
        m.ptmem.stdin.write(text)
        m.ptmem.stdin.flush()

    t.wait_until("two processes", lambda: len(allocated()) == 2)
    shell, child = allocated()
    t.wait_until("parts of both", lambda: numbers(shell)[-1:] >= [3] and numbers(child)[-1:] >= [3])
    for pid in (shell, child):
        t.check("/bin/sh" in check(pid), "the program of %d" % pid)
    write(b"\n")
    t.wait_until("the child's end", lambda: list(allocated()) == [shell])
    write(b"\n")
    m.expect(m.ptmem, b"ready\n")
    for _ in range(2):
        write(b"x")
        m.expect(m.ptmem, b"done\n")
        last = numbers(shell)[-1]
        t.wait_until("another part", lambda last=last: numbers(shell)[-1] > last)
        t.check("phases" in check(shell), "the program that was executed")
    m.ptmem.stdin.close()
    t.equal("status", m.ptmem.wait(), 0)
    t.equal("numbers", numbers(shell), list(range(1, numbers(shell)[-1] + 1)))


@test("listen-parts/so-far")
def _(t):
    """SIGUSR1 and --monitor write what the current part has so far."""
    m = Listening(t, ["--record=r.rec", EVERY])
    t.wait_until("a part", lambda: len(parts(m.cwd)) > 1)
    t.equal("status", m.say("recording", "now").status, 0)
    now = report_json(t, os.path.join(m.cwd, "now"))
    t.check(now["meta"]["part"] > 1 and sums_of_live(now) == 7000, "the recording so far: %s" % now["meta"])
    m.ptmem.send_signal(signal.SIGUSR1)
    t.wait_until("the recording so far", lambda: any(re.fullmatch(r"r\.\d+\.1\.rec", n) for n in os.listdir(m.cwd)))
    t.equal("what is served", values(m.get("/profile.json")), [7000, 7, 7000])
    m.end()


def sums_of_live(data):
    return sum(n[0] for n in live_at_end(data).values())


@test("listen-parts/detach")
def _(t):
    """After :detach, what is served is the whole run up to then, and the last part says how it ended."""
    level = Level(t, "--when=heap>2500000:detach", "--listen", "--listen-linger=3600", EVERY)
    served = FollowListening(t, level)
    level.text = level.log
    t.wait_until("parts", lambda: len(parts(level.cwd)) > 1)
    server = served.server()
    level.change("++-+", 2)
    t.wait_until("a part", lambda n=len(parts(level.cwd)): len(parts(level.cwd)) > n + 1)
    level.change("+", 3)
    level.wait_for("the program runs on")
    level.change("+", 4)
    level.end()
    data = json.loads(served.report("--format=json"))
    t.equal("what is served", (data["meta"]["part"], *values(json.dumps(data))), (0, 3000000, 3, 4000000))
    last = report_json(t, os.path.join(level.cwd, parts(level.cwd)[-1]))
    t.equal("the last part", (last["meta"]["exit"], last["end"]["live_bytes"], last["meta"]["incomplete"]), ("detached", 3000000, False))
    os.kill(server, signal.SIGTERM)


@test("listen-parts/follow", limit=180)
def _(t):
    """Each process that is found has parts of its own."""
    name = unique(t, "fp")
    group = Following(t, "--follow=" + name, "--listen", "--record=%p.rec", EVERY, "--earlier-blocks=no")
    served = FollowListening(t, group)
    t.wait_until("listening", lambda: served.url() is not None)
    programs = [Followed(t, name).wait_ready() for _ in range(2)]
    for program in programs:
        group.wait_attached(program)
    for program in programs:
        for _ in range(2):
            stem = str(program.pid)
            last = parts(group.cwd, stem)[-1:]
            program.more()
            t.wait_until("parts of %d" % program.pid, lambda last=last, stem=stem: parts(group.cwd, stem)[-1:] > last)
        found = values(served.get("/profile.json?pid=%d" % program.pid))
        t.equal("what is served of it", found, [2000, 2, 2000])
    for program in programs:
        program.end()
    group.end()
    for program in programs:
        found = [report_json(t, os.path.join(group.cwd, n)) for n in parts(group.cwd, str(program.pid))]
        t.equal("allocated in all parts", sum(d["end"]["allocated_bytes"] for d in found), 2000)
        t.equal("numbers", [d["meta"]["part"] for d in found], list(range(1, len(found) + 1)))


@test("listen-parts/page")
def _(t):
    """The page of --html is that of a replay of all events."""
    p = Phases(t, "--html=page.html")
    for _ in range(3):
        p.phase_and_part()
    p.end()
    judge_parts(t, p.read_parts(), p.read_whole())
    result = t.run([t.ptmem(), "-q", "--replay=e", "--html=again.html", "--massif-out-file=/dev/null"], cwd=p.cwd)
    t.equal("status of the replay", result.status, 0)
    page, again = (embedded(os.path.join(p.cwd, name)) for name in ("page.html", "again.html"))
    t.equal("what a part would have", [page["meta"][k] for k in ("part", "exit")], [0, "exited 0"])
    for key in again:
        if key != "meta":
            t.check(page[key] == again[key], "%s differ: %s, %s" % (key, page[key], again[key]))


class SmallDisk(Listening):
    """targets/monitored, whose recording is on a file system of 1 MB."""

    def __init__(self, t):
        if t.run(["unshare", "-Urm", "true"]).status != 0:
            raise Skip("no user namespaces here (unshare -Urm)")
        script = 'mkdir out && mount -t tmpfs -o size=1m none out && exec "$@"'
        super().__init__(t, ["--record=out/r"], before=["unshare", "-Urm", "sh", "-c", script, "sh"])

    def path(self, name):
        """From outside its mount namespace."""
        return os.path.join("/proc/%d/cwd/out" % self.ptmem.pid, name)

    def recorded(self):
        return values(json.dumps(report_json(self.t, self.path("r"))))


@test("listen-parts/full-disk")
def _(t):
    """What is served is up to date even while the file is not, and afterwards the file has all of it."""
    m = SmallDisk(t)
    t.equal("at first", values(m.get("/profile.json")), [7000, 7, 7000])
    with open(m.path("filler"), "wb", buffering=0) as filler:
        try:
            while True:
                filler.write(bytes(4096))
        except OSError:
            pass
    found = [7000, 7, 7000]
    for letter, count in ((b"x", 1), (b"m", 1025), (b"x", 1), (b"m", 1025)):
        m.more(letter)
        size = 1000 + 8 * (count - 1)
        found = [found[0] + size, found[1] + count, found[2] + size]
        t.equal("while the disk is full", values(m.get("/profile.json")), found)
    t.check(m.recorded() != found, "the file has it all: the disk is not full")
    os.unlink(m.path("filler"))
    t.wait_until("the file to have it all", lambda: m.recorded() == found)
    m.more()
    found = [found[0] + 1000, found[1] + 1, found[2] + 1000]
    t.equal("served from the file", values(m.get("/profile.json")), found)
    t.equal("in the file", m.recorded(), found)
    m.end()
