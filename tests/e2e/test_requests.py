"""Blocks that programs announce (targets/requests.c): valgrind.h's client requests, ptmem.h, probes of
notes. Each case counts its own truth."""

import os
import re
import signal
import subprocess

import harness
import massif
from harness import Fail, Skip, test
from process_lib import Attached, Server

WAYS = ("break", "auto", "jump")
VARIANTS = ("gcc-O2-pie", "clang-O0-nopie", "clang-O2-pie", "gcc-O2-static", "gcc-O3-staticpie", "gcc-O2-stripped")
STATIC_STARTUP = ("gcc-O2-static", "gcc-O3-staticpie")


def has_sdt():
    return os.path.exists("/usr/include/%s/sys/sdt.h" % harness.MULTIARCH) or os.path.exists("/usr/include/sys/sdt.h")


def run(t, variant, *args, options=(), env=None):
    """Under ptmem and natively: same behaviour, the program's own numbers."""
    cwd = t.subdirectory()
    native = t.native([t.target(variant, "requests"), *args], env=env)
    profile = t.profile([t.target(variant, "requests"), *args], ["--events=events", *options], cwd=cwd, env=env)
    t.same_behaviour(profile, native)
    truth, stats = t.truth(cwd), profile.only_stats()
    if "static" in variant:
        before = profile.events("requests").all  # the C library is in the program, too
        t.counts("ptmem and its events", stats, before)
    t.counts("ptmem and the truth", stats, harness.add(truth, startup(t, variant)))
    t.equal("replaced blocks", stats["replaced"], 0)
    t.equal("complete stacks", stats["complete stacks"], stats["stacks"])
    return profile, stats


def startup(t, variant):
    """What the C library of a static program allocates for itself before main."""
    if variant not in STATIC_STARTUP:
        return {}
    native = t.profile([t.target(variant, "empty")]).only_stats()
    return {k: native[k] for k in ("allocations", "frees", "bytes", "live", "blocks")}


for _way in WAYS:
    for _variant in VARIANTS:
        @test("requests/blocks/%s/%s" % (_way, _variant))
        def _(t, way=_way, variant=_variant):
            _, stats = run(t, variant, "blocks", options=["--probes=" + way])
            t.equal("unknown frees", stats["unknown"], 1)

    @test("requests/frequent/" + _way)
    def _(t, way=_way):
        profile, stats = run(t, "gcc-O2-pie", "hot", "300" if way == "break" else "250000", options=["--probes=" + way])
        t.check(stats["breakpoint stops"] < 3000 or way == "break", "it did not become hot: %s stops" % stats["breakpoint stops"])
        t.equal("differing stacks", stats["differing stacks"], 0)
        t.check((stats["markers with jumps"] > 0) == (way != "break"), "markers with jumps: %s" % profile.messages)

    @test("requests/registers/" + _way)
    def _(t, way=_way):
        run(t, "gcc-O2-pie", "registers", "200" if way == "break" else "20000", options=["--probes=" + way])

    @test("requests/handler/" + _way, limit=120)
    def _(t, way=_way):
        cwd = t.subdirectory()
        profile = t.profile([t.target("gcc-O2-pie", "requests"), "handler", "500" if way == "break" else "100000"],
                            ["--probes=" + way], cwd=cwd)
        t.equal("status", profile.status, 0)
        t.counts("ptmem and the truth", profile.only_stats(), t.truth(cwd))

    @test("requests/threads/" + _way, limit=120)
    def _(t, way=_way):
        cwd = t.subdirectory()
        profile = t.profile([t.target("gcc-O2-pie", "requests"), "hot", "100" if way == "break" else "60000", "4"],
                            ["--probes=" + way], cwd=cwd)
        stats, truth = profile.only_stats(), t.truth(cwd)
        # the C library allocates for each thread, and keeps it
        t.equal("frees", stats["frees"], truth["frees"])
        paths = profile.only_massif()
        t.equal("status", profile.status, 0)
        t.equal("allocations", stats["allocations"] - truth["allocations"], 3)
        t.check(paths.snapshots, "no snapshots")

    @test("requests/library/" + _way)
    def _(t, way=_way):
        cwd, library = t.subdirectory(), t.target("lib", "libmarks.so")
        # a copy under another name, so that several are mapped and unmapped
        other = os.path.join(cwd, "libother.so")
        with open(library, "rb") as source, open(other, "wb") as copy:
            copy.write(source.read())
        profile = t.profile([t.target("gcc-O2-pie", "requests"), "library", library, other],
                            ["--probes=" + way, "--events=events"], cwd=cwd)
        t.equal("status", profile.status, 0)
        truth = t.truth(cwd)
        found = [profile.events(os.path.basename(p)) for p in (library, other)]
        t.equal("allocations in the libraries", sum(f.own["allocations"] for f in found), truth["allocations"])

    @test("requests/pools/" + _way)
    def _(t, way=_way):
        cwd = t.subdirectory()
        profile = t.profile([t.target("gcc-O2-pie", "requests"), "pools"],
                            ["--probes=" + way, "--mempools=yes"], cwd=cwd)
        t.same_behaviour(profile, harness.Result(0, b"", b""))
        stats = profile.only_stats()
        t.counts("ptmem and the truth", stats, t.truth(cwd))
        t.equal("unknown frees", stats["unknown"], 0)

    @test("requests/fork/" + _way)
    def _(t, way=_way):
        cwd = t.subdirectory()
        profile = t.profile([t.target("gcc-O2-pie", "requests"), "fork"], ["--probes=" + way], cwd=cwd)
        t.equal("status", profile.status, 0)
        truths = dict(t.truths(cwd))
        t.equal("processes", sorted(s["pid"] for s in profile.stats), sorted(truths))
        for stats in profile.stats:
            t.counts("process %d" % stats["pid"], stats, truths[stats["pid"]])

    @test("requests/answers/" + _way)
    def _(t, way=_way):
        cwd = t.subdirectory()
        profile = t.profile([t.target("gcc-O2-pie", "requests"), "answers"], ["--probes=" + way, "--time-unit=B"], cwd=cwd)
        t.equal("answers", profile.out, b"running=0 snapshot=0 detailed=0 all=0 xtree=0 help=0 unknown=1 detach=1 "
                b"errors=0 exists=0 semaphores=%d\n" % (11 if has_sdt() else 0))
        sizes = [[s["mem_heap_B"] for s in massif.Massif(os.path.join(cwd, n)).snapshots] for n in ("one.out", "two.out")]
        t.equal("sizes at the snapshots", sizes, [[0], [1234]])
        paths = massif.Massif(os.path.join(cwd, "two.out")).snapshots[0]["tree"].paths()
        t.equal("paths", {p[-1]: n for p, n in paths.items()}, {"announce": 1234})
        t.equal("profile so far", len(massif.Massif(os.path.join(cwd, "three.out")).snapshots), 2)
        with open(os.path.join(cwd, "four.kcg"), encoding="utf-8") as file:
            t.check("totals: 1234 1\n" in file.read(), "the xtree")
        t.check(any("detailed_snapshot [FILE]" in m for m in profile.messages), "help: %s" % profile.messages)
        profile = t.profile([t.target("gcc-O2-pie", "requests"), "answers"], ["--probes=" + way, "--running-on-valgrind=yes",
                                                                           "--mempools=yes"])
        t.check(profile.out.startswith(b"running=1 "), "RUNNING_ON_VALGRIND: %r" % profile.out)

    @test("requests/nested/" + _way)
    def _(t, way=_way):
        """An allocator that announces what its malloc gives: each block counts once."""
        cwd = t.subdirectory()
        profile = t.profile([t.target("linked-marks", "requests"), "nested"], ["--probes=" + way, "--events=events"], cwd=cwd)
        t.equal("status", profile.status, 0)
        t.counts("the program's own calls", profile.events("requests").own, t.truth(cwd),
                 ("allocations", "frees", "bytes", "live", "blocks"))
        t.equal("allocations by the allocator itself", profile.events("libmarks_malloc.so").own["allocations"], 0)


@test("requests/equal-profiles")
def same(t):
    """All ways give the same profile, byte for byte."""
    texts = {}
    for way in WAYS:
        cwd = t.subdirectory()
        t.profile([t.target("gcc-O2-pie", "requests"), "hot", "2000"],
                  ["--probes=" + way, "--time-unit=B", "--detailed-freq=3", "--threshold=0"], cwd=cwd)
        name, = (n for n in os.listdir(cwd) if n.startswith("massif.out"))
        with open(os.path.join(cwd, name), encoding="utf-8") as file:
            texts[way] = re.sub(r"0x[0-9A-F]+: ", "0x: ", file.read())
    for way in WAYS[1:]:
        t.check(texts[way] == texts["break"], "break and %s differ" % way)
    t.check("deep (requests.c:" in texts["break"], "the marker's function is not in it")


@test("requests/verified", limit=120)
def verified(t):
    """Stacks that a marker's pad walked are those that are unwound."""
    profile = t.profile([t.target("gcc-O2-pie", "requests"), "hot", "5000"], ["--probes=jump", "--verify-stacks"])
    stats = profile.only_stats()
    t.check(stats["verified stacks"] > 9000, "verified: %d" % stats["verified stacks"])
    t.equal("differing", stats["differing stacks"], 0)


@test("requests/stripped-keep-breakpoints")
def stripped(t):
    """Where a marker's function is not known it stays a breakpoint; a probe of ptmem.h is one instruction."""
    stats = t.profile([t.target("gcc-O2-stripped", "requests"), "hot", "200"], ["--probes=jump"]).only_stats()
    t.check(stats["markers with breakpoints"] > 0 and stats["markers with jumps"] > 0, str(stats))


class Serving:
    def __init__(self, t):
        self.t, self.cwd = t, t.subdirectory()
        self.process = subprocess.Popen([t.target("gcc-O2-pie", "requests"), "serve"], cwd=self.cwd,
                                        env=t.environment(self.cwd), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.pid = self.process.pid
        t.equal("the program's line", self.process.stdout.readline(), b"ready\n")

    def text(self):
        """Mappings whose text differs from their files."""
        if self.process.poll() is not None:
            raise Fail("the program died: " + harness.signal_name(self.process.returncode))
        return Server.text(self)

    def semaphores(self):
        self.process.stdin.write(b"s")
        self.process.stdin.flush()
        return self.process.stdout.readline()

    def end(self):
        self.process.stdin.close()
        self.t.equal("the program's status", self.process.wait(timeout=200), 0)


for _way in WAYS:
    @test("requests/attach/" + _way, limit=120)
    def _(t, way=_way):
        """Attached and detached while it announces; afterwards its text and its semaphores are restored."""
        server = Serving(t)
        for _ in range(3):
            attached = Attached(t, server.pid, ["--probes=" + way]).wait_attached()
            for _ in range(2):  # after a whole round
                t.equal("semaphores meanwhile", server.semaphores(), b"semaphores=%d\n" % (11 if has_sdt() else 0))
            attached.process.send_signal(signal.SIGINT)
            t.equal("ptmem's status (%s)" % attached.errors(), attached.process.wait(timeout=200), 0)
            found = re.search(r"allocations: (\d+)", attached.errors())
            t.check(found and int(found.group(1)) > 0, "nothing was seen: " + attached.errors())
            t.equal("text that differs from its file", server.text(), [])
            t.equal("semaphores afterwards", server.semaphores(), b"semaphores=0\n")
        server.end()

    @test("requests/killed/" + _way, limit=120)
    def _(t, way=_way):
        """ptmem is killed: the program continues. It may be at any step of serving a marker."""
        server = Serving(t)
        for _ in range(10):
            attached = Attached(t, server.pid, ["--probes=" + way]).wait_attached()
            attached.process.kill()
            attached.process.wait()
            server.semaphores()
            t.wait_until("the text to be restored", lambda: server.text() == [])
            t.wait_until("the semaphores to be restored", lambda: server.semaphores() == b"semaphores=0\n")
        server.end()


@test("requests/leaks")
def leaks(t):
    """An allocator's own memory that is announced in parts is no leak, nor does it hide the parts."""
    cwd = t.subdirectory()
    profile = t.profile([t.target("gcc-O2-pie", "requests"), "blocks"],
                        ["--leak-check", "--leaks-out=leaks.txt"], cwd=cwd)
    t.equal("status", profile.status, 0)
    with open(os.path.join(cwd, "leaks.txt"), encoding="utf-8") as file:
        t.check("announce" in file.read(), "no announced block in the report")


@test("requests/xtree")
def xtree(t):
    for mode, events in (("allocs", 2), ("full", 6)):
        cwd = t.subdirectory()
        profile = t.profile([t.target("gcc-O2-pie", "requests"), "blocks"],
                            ["--xtree-memory=" + mode, "--xtree-memory-file=x.kcg"], cwd=cwd)
        stats = profile.only_stats()
        with open(os.path.join(cwd, "x.kcg"), encoding="utf-8") as file:
            totals = re.search(r"totals: (.*)", file.read()).group(1).split()
        t.equal("number of totals", len(totals), events)
        # Valgrind's full form does not record that a block of 0 bytes ends
        t.equal("live", [int(n) for n in totals[:2]], [stats["live"], stats["blocks"] + (mode == "full")])


@test("requests/monitor-other-user")
def monitor_other_user(t):
    """A program that has another user's rights cannot make root's ptmem write files for it."""
    if os.geteuid() != 0:
        raise Skip("needs root, to become another user")
    cwd = t.subdirectory()
    os.chmod(cwd, 0o777)
    becomes = [t.program("setpriv"), "--reuid=65534", "--regid=65534", "--clear-groups"]
    argv = [*becomes, t.for_others(t.target("gcc-O2-pie", "requests")), "answers"]
    run = t.run([t.ptmem(), "--trace-children=yes", "--probes=break", "-o", "m.%p", "--", *argv], cwd=cwd)
    t.check(b"running=0 snapshot=0 " in run.out, "output: %r %r" % (run.out, run.err))
    t.equal("refusals", len(re.findall(r"process \d+ requests \w+, which would write a file", run.err.decode())), 4)
    t.equal("files", [name for name in os.listdir(cwd) if name.endswith((".out", ".kcg"))], [])


@test("requests/monitor-peer", limit=120)
def monitor_peer(t):
    """Monitor commands sent by the program itself: the same files as Massif's."""
    cwds = []
    for tool in ("valgrind", "ptmem"):
        cwd = t.subdirectory()
        program = [t.target("peer-gcc-O2", "massif_cases_requests")]
        command = [t.program("valgrind"), "--tool=massif", "-q", "--run-libc-freeres=no"] if tool == "valgrind" else [t.ptmem(), "-q"]
        result = t.run([*command, "--time-unit=B", "--massif-out-file=out", *program], cwd=cwd, env={"CASE": "others"})
        t.equal("status under " + tool, result.status, 0)
        cwds.append(cwd)
    for name in ("monitor.1", "monitor.2", "monitor.3"):
        texts = []
        for cwd in cwds:
            with open(os.path.join(cwd, name), encoding="utf-8") as file:
                texts.append(re.sub(r"0x[0-9A-F]+: |^desc: .*", "", file.read(), flags=re.M))
        if texts[0] != texts[1]:
            raise Fail("%s differs: %s" % (name, texts))


@test("requests/sampled")
def sampled(t):
    """Announced releases are counted as calls that release, with samples, too: in the summary and of a recording."""
    program, form = t.target("gcc-O2-pie", "requests"), r"allocations +([\d,]+) of .*? ([\d,]+) calls of free or delete"
    for way in ("break", "jump"):
        cwd = t.subdirectory()
        run = t.run([t.ptmem(), "--heap-sample=1K", "--probes=" + way, "--record=r", "-o", "none", "--", program, "hot", "300"], cwd=cwd)
        t.equal("status (%s)" % run.err, run.status, 0)
        truth = t.truth(cwd)
        for name, text in (("summary", run.err.decode()), ("recording", harness.report(t, os.path.join(cwd, "r")))):
            found = re.search(form, text)
            t.check(found, "%s: %r" % (name, text))
            t.equal("%s, %s" % (name, way), [int(n.replace(",", "")) for n in found.groups()],
                    [truth["allocations"], truth["frees"]])


@test("requests/weighted")
def weighted(t):
    """Probes of a sampling allocator: each sample stands for the bytes of its third argument, and a release takes them back."""
    program, lines = t.target("gcc-O2-pie", "weighted"), {}
    for name, options in (("exact", []), ("sampled", ["--heap-sample=64"]), ("replay", None)):
        argv = ["--replay=events", "-o", "again"] if options is None else [*options, "--events=events", "--", program, "6400"]
        cwd = lines.setdefault("cwd", t.subdirectory())
        run = t.run([t.ptmem(), "--stats", *argv], cwd=cwd)
        t.equal("status (%s)" % run.err, run.status, 0)
        text = run.err.decode()
        lines[name] = re.search(r"at the end +(.*)", text).group(1)
        if name != "replay":
            t.check("100 blocks of otel_memory:alloc stand for others" in text, "no line says so: " + text)
    t.equal("exact", lines["exact"], "320,000 bytes in 3,200 blocks in use")
    t.equal("beside samples of ptmem's own", lines["sampled"], "312.5 KiB in about 3,200 blocks in use")
    t.equal("replayed", lines["replay"], lines["sampled"])
    plain = t.profile([program, "6400", "plain"])
    t.equal("two arguments", (plain.only_stats()["live"], plain.only_stats()["allocations"]), (5000, 100))
