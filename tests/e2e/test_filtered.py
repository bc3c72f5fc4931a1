"""Programs with seccomp filters: their allocations are recorded without a stop if the filters are known to allow what
ptmem injects, and at breakpoints otherwise, with the reason. A call that a filter forbids would end the program."""

import os
import subprocess

import harness
from harness import Skip, test
from process_lib import Attached, FORBIDDEN, FORBIDS, guardians, refusal_of, sigtrap_is_caught

ROUNDS = 3000
FILTERED = "ptmem cannot read its seccomp filter, since it has one itself"

COUNTED = ("allocations", "frees", "bytes")


def check_ways(t, profile, refusal, most_stops=None):
    """It is said why there are no jumps (@refusal), or there are few stops: fewer than @most_stops."""
    if [o for o in harness.MORE_OPTIONS if o.startswith("--probes=")]:
        return
    said = [m.split(" on breakpoints: ")[1] for m in profile.messages if " on breakpoints: " in m]
    t.equal("why it stays on breakpoints", said, [refusal] if refusal else [])
    stops = profile.only_stats()["breakpoint stops"]
    if refusal and not most_stops:
        t.check(stops > 2 * ROUNDS, "only %d stops" % stops)
    else:
        t.check(stops < (most_stops or ROUNDS // 10), "%d stops" % stops)


def run_filtered(t, argv, stdin, options=(), before=()):
    """Under ptmem, which @before executes."""
    native = t.native(argv, stdin=stdin)
    if native.status == 77:
        raise Skip("this kernel has no such filters")
    cwd = t.subdirectory()
    run = t.run([*before, t.ptmem(), "--stats", "-v", *harness.MORE_OPTIONS, *options, "--", *argv], cwd=cwd, stdin=stdin)
    profile = harness.Profile(run, cwd)
    t.same_behaviour(profile, native)
    t.counts("totals", profile.only_stats(), t.truth(cwd))
    return profile


def register(kind):
    @test("filtered/%s/started" % kind)
    def _(t):
        check_ways(t, run_filtered(t, [t.target("gcc-O2-pie", "filtered"), kind], b"rr"), refusal_of(kind))

    @test("filtered/%s/attached" % kind)
    def _(t):
        with Running(t, kind) as program:
            program.attach()
            program.do("r", "r")
            check_ways(t, program.detach(), refusal_of(kind))


def register_inherited(kind):
    @test("filtered/%s/inherited" % kind)
    def _(t):
        """ptmem has the filter itself, as in a container."""
        program = t.target("gcc-O2-pie", "filtered")
        refusal = FORBIDS + FORBIDDEN[kind] if FORBIDDEN[kind] else None
        if kind == "ask":
            refusal = "a seccomp filter may ask another process"
        profile = run_filtered(t, [program, "none"], b"rr", before=[program, kind, "-x"])
        check_ways(t, profile, refusal)


class Running:
    """The program, which waits for orders."""

    def __init__(self, t, kind, **env):
        self.t = t
        self.cwd = t.subdirectory()
        self.process = subprocess.Popen([t.target("gcc-O2-pie", "filtered"), kind], cwd=self.cwd, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, env=t.environment(self.cwd, **env))
        self.attached = None
        self.wait_for(b"ready\n")

    def wait_for(self, line):
        got = self.process.stdout.readline()
        if not got and self.process.wait() == 77:
            raise Skip("this kernel has no such filters")
        self.t.equal("answer", got, line)

    def attach(self, *options):
        self.attached = Attached(self.t, self.process.pid, ["-v", *options]).wait_attached()

    def order(self, letter):
        self.process.stdin.write(letter.encode())
        self.process.stdin.flush()

    def do(self, *letters):
        for letter in letters:
            self.order(letter)
            if letter != "f":
                self.wait_for(b"done\n")

    def detach(self, modules=()):
        """
        Also checks that it survives that, and compares the numbers up to then, those of @modules only, with those that it has at
        its end.
        """
        profile = self.attached.detach()
        self.process.stdin.close()
        self.t.equal("status and output", (self.process.wait(timeout=200), self.process.stdout.read()), (0, b""))
        totals = profile.only_stats()
        if modules:
            own = [profile.events(name).own for name in modules]
            totals = {key: sum(counts[key] for counts in own) for key in COUNTED}
        self.t.counts("totals", totals, self.t.truth(self.cwd), COUNTED)
        return profile

    def kill_ptmem(self):
        """Waits until the guardian has cleaned up."""
        self.attached.process.kill()
        self.attached.process.wait()
        self.t.wait_until("the guardian to end", lambda: not guardians(self.t))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        if self.attached and self.attached.process.poll() is None:
            self.attached.process.kill()
            self.attached.process.wait()


for name in FORBIDDEN:
    register(name)
    if name != "all":  # with which ptmem cannot run
        register_inherited(name)


@test("filtered/added/started")
def added_started(t):
    """ptmem has a filter, and the program adds another one, which ptmem may not read."""
    program = t.target("gcc-O2-pie", "filtered")
    for kind in ("log", "all"):
        check_ways(t, run_filtered(t, [program, kind], b"rr", before=[program, "list", "-x"]), FILTERED)


@test("filtered/own/started")
def own_started(t):
    """With ptmem's own filter: alone, above that of a container, and below that of the program."""
    program = t.target("gcc-O2-pie", "filtered")
    container = [program, "list", "-x"]
    cases = [(kind, [], refusal_of(kind)) for kind in ("none", "list", "file", "trace")]
    for kind, before, refusal in cases + [("none", container, None), ("list", container, FILTERED)]:
        check_ways(t, run_filtered(t, [program, kind], b"rr", ["--trace=heap,mmap"], before), refusal)


@test("filtered/threads")
def threads(t):
    """Only one of the two threads may make the calls, the first or the second; both allocate."""
    for kind in ("thread", "leader"):
        with Running(t, kind) as program:
            program.attach()
            program.do("r", "r")
            check_ways(t, program.detach(), None, ROUNDS)


def check_library(t, kind, letters, refusal, most_stops=None):
    """The library's own malloc is found when it is opened. Opening it allocates, too."""
    path = os.path.join(harness.TARGETS, "lib", "libdl_own.so")
    with Running(t, kind, LIBRARY=path) as program:
        program.attach("--events=events")
        program.do(*letters)
        check_ways(t, program.detach(["/filtered", "/libdl_own.so"]), refusal, most_stops)


@test("filtered/library")
def library(t):
    check_library(t, "list", "rd", refusal_of("list"))


@test("filtered/later")
def later(t):
    """A filter that is added when there are jumps: they stay, and nothing is injected any more, not even to detach."""
    check_library(t, "later-files", "rfdr", refusal_of("file"), ROUNDS)
    with Running(t, "later") as program:
        program.attach()
        program.do("r", "f", "r")
        check_ways(t, program.detach(), None)


@test("filtered/killed")
def killed(t):
    """ptmem is killed: its guardian removes the handler of SIGTRAP, but not if the program's filter would kill it for that."""
    for kind, letters in (("list", "r"), ("later", "rf"), ("all", "r")):
        with Running(t, kind) as program:
            program.attach()
            program.do(*letters)
            program.kill_ptmem()
            if kind != "later":
                t.check(not sigtrap_is_caught(program.process.pid), "%s: the handler is left" % kind)
            program.do("r")
            program.attach()
            program.do("r")
            t.equal("allocations after a second attach (%s)" % kind, program.attached.detach().only_stats()["allocations"], ROUNDS)
            program.process.stdin.close()
            t.equal("status (%s)" % kind, program.process.wait(timeout=200), 0)
