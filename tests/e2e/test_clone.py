"""Threads and processes that are created while a tracer stops all threads: vfork, clone, fork.

PTMEM_CLONES says how many processes create threads (50); by hand: 150.
"""

import contextlib
import os
import subprocess
import time

import harness
from harness import test
from process_lib import Attached, state

VARIANT = "gcc-O2-pie"  # the program makes these calls itself, with code that no compiler changes
COUNT = os.environ.get("PTMEM_CLONES", "50")


def register(variant):
    @test("clone/%s/vfork" % variant)
    def _(t):
        """Pads are made by a child in vfork, while its parent waits for it."""
        argv = [t.target(variant, "clones"), "vfork"]
        native = t.native(argv)
        profile = t.profile(argv)
        t.same_behaviour(profile, native)
        t.counts("both", profile.only_stats(), t.truth(profile.directory))

    @test("clone/%s/threads" % variant, limit=300)
    def _(t):
        """No clone fails, and none returns twice."""
        count = "15" if harness.is_asan() else COUNT
        profile = t.profile([t.target(variant, "clones"), "threads", count], options=["-q"])
        t.equal("status, output (%s)" % profile.err, (profile.status, profile.out), (0, b"OK\n"))

    @test("clone/%s/fork-trees" % variant, limit=120)
    def _(t):
        """A child that is not announced yet is not attributed to a process that exits at that moment."""
        profile = t.profile([t.target(variant, "clones"), "fork-trees"])
        t.equal("status, output (%s)" % profile.err, (profile.status, profile.out), (0, b"OK\n"))
        found = {}
        for stats in profile.stats:
            found[stats["allocations"]] = found.get(stats["allocations"], 0) + 1
        # a fork's profile begins with what its parent had made
        made = {0: 1}
        for worker in (100, 200, 300, 400):
            made[worker] = made.get(worker, 0) + 1
            made[worker + 50] = made.get(worker + 50, 0) + 60
        t.equal("processes by their allocations", found, made)


@contextlib.contextmanager
def running(t, mode):
    """The target, in a directory of its own; at the end it must report that nothing has changed."""
    cwd = t.subdirectory()
    target = subprocess.Popen([t.target("gcc-O2-pie", "clones"), mode], cwd=cwd, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
    try:
        yield target, cwd
        t.equal("the target runs", target.poll(), None)
        touch(cwd, "stop")
        out = target.communicate(timeout=200)[0]
    finally:
        target.kill()
        target.wait()
    t.equal("status and output", (target.returncode, out), (0, b"OK\n"))


def touch(directory, name):
    with open(os.path.join(directory, name), "wb"):
        pass


def register_attached(mode):
    @test("clone/%s/attached" % mode, limit=120)
    def _(t):
        """Attach and detach, again and again."""
        with running(t, mode) as (target, _):
            for _ in range(6):
                attached = Attached(t, target.pid).wait_attached()
                time.sleep(0.1)
                attached.detach()
                t.equal("the target runs", target.poll(), None)


def is_in_vfork(pid):
    """While it waits for a child, which it has; for a page of a file it may wait at any time."""
    with open("/proc/%d/task/%d/children" % (pid, pid), encoding="ascii") as file:
        has_child = file.read().split() != []
    return has_child and state(pid) == "D"


@test("clone/vfork-blocked")
def long_vfork(t):
    """ptmem detaches from a program that waits in vfork for its child; attaching to it is refused."""
    with running(t, "vfork-blocked") as (target, cwd):
        attached = Attached(t, target.pid).wait_attached()
        touch(cwd, "attached")
        t.wait_until("the target to wait in vfork", lambda: is_in_vfork(target.pid))
        attached.detach()
        refused = t.run([t.ptmem(), "-p", str(target.pid)], timeout=200)
        t.equal("status of the refusal", refused.status, 125)
        reason = "process %d cannot be stopped: its thread %d waits" % (target.pid, target.pid)
        t.check(reason.encode() in refused.err, "says why: %s" % refused.err)


register(VARIANT)
for m in ("vfork-waits", "new-threads"):
    register_attached(m)
