"""Programs that may not make the system calls needed for pads: they stay on breakpoints, which is reported."""

import re
import subprocess

import harness
from harness import Skip, test
from process_lib import Attached, refusal_of

ROUNDS = 3000
STRICT = "stays on breakpoints: seccomp may forbid to map pads"
SPACE = "stays on breakpoints: its address space is limited (ulimit -v)"


def register(mode, said):
    @test("sandboxed/%s/started" % mode)
    def _(t):
        argv = [t.target("gcc-O2-pie", "sandboxed"), mode]
        native = t.native(argv)
        if native.status == 77:
            raise Skip("this kernel cannot do that")
        profile = t.profile(argv, options=["-v"])
        t.same_behaviour(profile, native)
        stats = profile.only_stats()
        t.equal("allocations", stats["allocations"], 1 + ROUNDS)
        t.equal("bytes", stats["bytes"], 100 + sum(50 + i % 50 for i in range(ROUNDS)))
        t.equal("frees", stats["frees"], 1 + ROUNDS)
        if not [o for o in harness.MORE_OPTIONS if o.startswith("--probes=")]:
            t.equal("it is said", [m.split(" ", 3)[3] for m in profile.messages if "stays on" in m], said)


def sleeps(pid):
    """How often it waited for something, ptmem included."""
    with open("/proc/%d/status" % pid, encoding="ascii") as file:
        return int(re.search(r"^voluntary_ctxt_switches:\s*(\d+)", file.read(), re.M)[1])


def register_attached(mode):
    @test("sandboxed/%s/attached" % mode)
    def _(t):
        """Attached and detached: it does not die of a call that it did not make."""
        argv = [t.target("gcc-O2-pie", "sandboxed"), mode, "-w"]
        target = subprocess.Popen(argv, cwd=t.directory, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if not target.stdout.readline() and target.wait() == 77:
            raise Skip("this kernel cannot do that")
        attached = Attached(t, target.pid, ["-v"]).wait_attached()
        begin = sleeps(target.pid)
        t.wait_until("rounds", lambda: sleeps(target.pid) > begin + 400)  # at breakpoints, and once after each round
        stats = attached.detach().only_stats()
        t.check(stats["allocations"] > 0, "nothing was seen")
        t.check(stats["blocks"] <= 1, "blocks: %d" % stats["blocks"])  # it may be left with one in its hands
        t.equal("frees, and what is live", stats["frees"] + stats["blocks"], stats["allocations"])
        out = target.communicate(timeout=200)[0]
        t.equal("status and output", (target.returncode, out), (0, b"OK\n"))


for name, said in (("none", []), ("strict", [STRICT]), ("filter", ["stays on breakpoints: " + refusal_of("all")]), ("mdwe", []),
                   ("space", [SPACE])):
    register(name, said)
    if name != "strict":  # which may not wait
        register_attached(name)
