"""Thousands of threads that are ready to run at once: exact, and without stopping all of them again and again."""

import subprocess

import harness
from harness import test
from process_lib import Attached

VARIANT = "gcc-O2-pie"  # who waits for whom does not depend on the compiler
OWN = ("allocations", "reallocations", "frees", "bytes", "failed")


def pairs():
    """A breakpoint for each call takes long."""
    return "10" if harness.MORE_OPTIONS or harness.is_asan() else "100"


def check_stops(t, stats, threads):
    """Beside breakpoints and full rings a thread stops when it is created, gets a signal or exits: not each time
    another one finds the ring full."""
    if not harness.MORE_OPTIONS:
        stops = stats["stops"] - stats["breakpoint stops"]
        t.check(stops < 10 * threads, "%d stops of %d threads" % (stops, threads))


def check_counts(t, profile, truth, quantities=None):
    """All events, those of the program's own sites, and no word of anything unusual."""
    stats, found = profile.only_stats(), profile.events("/contention")
    unusual = [m for m in profile.messages if "error" in m or "warning" in m or "corrupt" in m]
    t.equal("messages (events %s, of own sites %s)" % (found.all, found.own), unusual, [])
    t.counts("ptmem and its events", stats, found.all, *([quantities] if quantities else []))
    t.counts("events of the program's own sites and the truth (all: %s)" % found.all, found.own, truth, OWN)
    return stats


def register(variant, threads, *options):
    @test("contention/%s/%d" % (variant, threads), limit=120)
    def _(t):
        profile = t.profile([t.target(variant, "contention"), str(threads), pairs()], options=["--events=events", *options])
        check_stops(t, check_counts(t, profile, t.truth(profile.directory)), threads)


def register_sleepers(variant):
    @test("contention/%s/blocked-handlers" % variant, limit=120)
    def _(t):
        """Some were interrupted while they wrote a record, and their handlers do not return before all
        others are done: the small ring continues around those records, lap after lap."""
        profile = t.profile([t.target(variant, "contention"), "200", pairs(), "200"],
                            options=["--events=events", "--ring=64K"])
        check_stops(t, check_counts(t, profile, t.truth(profile.directory)), 400)


register(VARIANT, 1000, "--ring=64K")
register(VARIANT, 2000)
register_sleepers(VARIANT)


@test("contention/attached", limit=120)
def attached_to_crowd(t):
    """Attached while all wait for each other: all their calls are counted."""
    cwd, threads = t.subdirectory(), 1000
    program = subprocess.Popen([t.target("gcc-O2-pie", "contention"), str(threads), pairs(), "0", "wait"], cwd=cwd,
                               env=t.environment(cwd), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        t.equal("it is", program.stdout.readline(), b"ready\n")
        attached = Attached(t, program.pid, ["--events=events"]).wait_attached()
        program.communicate()
        t.equal("status", program.returncode, 0)
    finally:
        program.kill()
        program.wait()
    profile = attached.ended()
    check_stops(t, check_counts(t, profile, t.truth(cwd), OWN), threads)
