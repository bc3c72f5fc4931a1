"""Operators new that throw: all ways to catch calls give one profile, and its counts are those of the oracle."""

import os
import signal
import subprocess

import harness
import oracle
from harness import test
from process_lib import Attached

MODES = ("auto", "break", "jump")
# how the program runs beside the oracle, which is preloaded or a part of it
PROGRAMS = {"gcc-O2-pie": True, "clang-O0-nopie": True, "wrapped-cxx": False}


def profile(t, program, mode, *args):
    cwd = t.subdirectory()
    options = ["--stats", "--probes=" + mode, "--time-unit=B", "--threshold=0", "--massif-out-file=massif.out.1"]
    argv = [t.program("setarch"), "-R", t.ptmem(), *options, "--", program, *args]
    result = harness.Profile(t.run(argv, cwd=cwd), cwd)
    t.equal("status", result.status, 0)
    t.equal("standard output", result.out, b"OK\n")
    with open(os.path.join(cwd, "massif.out.1"), "rb") as file:
        lines = file.read().split(b"\n")
    return result.only_stats(), [l for l in lines if not l.startswith(b"desc:")]


def counted_by_oracle(t, program, is_preloaded):
    cwd = t.subdirectory()
    result = t.native([program], cwd=cwd, env={"LD_PRELOAD": t.oracle_library()} if is_preloaded else {})
    t.equal("status under the oracle", result.status, 0)
    (page,), = oracle.read_pages(cwd).values()
    return page.all


def register(variant, is_preloaded):
    @test("exceptions/%s/modes" % variant)
    def _(t):
        program = t.target(variant, "throws")
        for args in ((), ("longjmp",)):
            runs = [profile(t, program, mode, *args) for mode in MODES]
            for mode, (_, lines) in zip(MODES[1:], runs[1:]):
                t.check(lines == runs[0][1], "--probes=%s gives another profile than auto" % mode)

    @test("exceptions/%s/oracle" % variant)
    def _(t):
        program = t.target(variant, "throws")
        want = counted_by_oracle(t, program, is_preloaded)
        for mode in MODES:
            stats, _ = profile(t, program, mode)
            t.counts("--probes=%s and the oracle" % mode, stats, want, (*harness.COUNTED, "unknown"))


for variant_name, preloaded in PROGRAMS.items():
    register(variant_name, preloaded)


def left_inside(t, variant, mode, where, number):
    """ptmem leaves, or is killed, while a thread is in an operator new that throws then, or has just thrown."""
    cwd = t.subdirectory()
    program = subprocess.Popen([t.target(variant, "throws_late"), where], cwd=cwd, env=t.environment(cwd),
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def go_on_from(line):
        t.equal("line of the program", program.stdout.readline(), line)
        return lambda: (program.stdin.write(b"x"), program.stdin.flush())

    try:
        go_on = go_on_from(b"ready\n")
        attached = Attached(t, program.pid, ["--probes=" + mode]).wait_attached()
        go_on()
        go_on = go_on_from(b"inside\n")
        attached.process.send_signal(number)
        t.equal("status of ptmem", attached.process.wait(timeout=200), 0 if number == signal.SIGTERM else -number)
        go_on()
        out, err = program.communicate(timeout=200)
        t.equal("%s, --probes=%s, %s: output (%s)" % (where, mode, number.name, err), out, b"OK\n")
        t.equal("%s, --probes=%s, %s: status" % (where, mode, number.name), program.returncode, 0)
    finally:
        program.kill()
        program.communicate()


def register_left(variant):
    @test("exceptions/%s/left" % variant)
    def _(t):
        for mode in ("break", "jump"):
            for where in ("before", "passing", "caught"):
                left_inside(t, variant, mode, where, signal.SIGTERM)

    @test("exceptions/%s/killed" % variant)
    def _(t):
        for mode in ("break", "jump"):
            for where in ("passing", "caught"):
                left_inside(t, variant, mode, where, signal.SIGKILL)


for a_variant in ("gcc-O2-pie", "clang-O0-nopie"):
    register_left(a_variant)
