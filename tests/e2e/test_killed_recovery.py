"""ptmem and its guardian are killed, and so is the next ptmem while it removes what they left: an attach meanwhile
waits for the process that still does this work."""

import os
import signal
import subprocess
import sys

from harness import test
from process_lib import Attached, Server, check_exact, delays, guardians, kill, kill_both

PTRACE_SEIZE, PTRACE_INTERRUPT = 0x4206, 0x4207


def tracer(pid):
    with open("/proc/%d/status" % pid, encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("TracerPid:"))


def is_dead(pid):
    try:
        with open("/proc/%d/stat" % pid, "rb") as file:
            return file.read().rsplit(b")", 1)[1].split()[0] in b"ZX"
    except FileNotFoundError:
        return True


class HeldCleaner:
    """A process that cleans up after two that were killed; it waits before its first @request of that kind. The ptmem
    that forked it was killed, too."""

    def __init__(self, t, server, request):
        self.pid = 0
        kill_both(t, Attached(t, server.pid, ["--probes=break"]).wait_attached())
        self.path = os.path.join(t.subdirectory(), "hold")
        with open(self.path, "wb"):
            pass
        ptmem = Attached(t, server.pid, env=delays(hold=self.path, hold_at=request))
        t.wait_until("it to be held", self.find)
        ptmem.process.kill()
        ptmem.process.wait()

    def find(self):
        found = [name for name in os.listdir(os.path.dirname(self.path)) if name.startswith("hold.")]
        self.pid = int(found[0].split(".")[1]) if found else 0
        return self.pid

    def has_ended(self):
        return is_dead(self.pid)

    def release(self):
        os.unlink(self.path)


@test("killed/cleaner-traces", limit=120)
def cleaner_traces(t):
    """It traces the program already: the next attach is not refused."""
    server = Server(t)
    held = HeldCleaner(t, server, PTRACE_INTERRUPT)
    t.check(tracer(server.pid) != 0, "nothing traces the program")
    attached = Attached(t, server.pid, ["-v"])
    t.wait_until("the next ptmem to wait", lambda: attached.process.poll() is not None or "waiting for process" in attached.errors())
    held.release()
    attached.wait_attached()
    server.check_progress()
    attached.detach()
    check_exact(t, server)
    server.end()


@test("killed/cleaner-late", limit=120)
def cleaner_late(t):
    """It traces nothing yet, and comes when the work was done by another and a third ptmem was killed: what that left
    is not its own."""
    server = Server(t)
    held = HeldCleaner(t, server, PTRACE_SEIZE)
    attached = Attached(t, server.pid, ["--probes=break", "--trace=heap,brk,mmap"]).wait_attached()
    for pid in guardians(t):
        if pid != held.pid:
            os.kill(pid, signal.SIGKILL)
    kill(attached, 0)
    held.release()
    t.wait_until("it to end", held.has_ended)
    server.check_progress()
    check_exact(t, server)
    server.end()


DYING = """
import ctypes, mmap, sys
memory = mmap.mmap(-1, 256 << 20)
memory.madvise(mmap.MADV_NOHUGEPAGE)
for i in range(0, len(memory), 4096):
    memory[i] = 1
if ctypes.CDLL(None).ptrace(0x4206, int(sys.argv[1]), None, None) != 0:
    sys.exit("no PTRACE_SEIZE")
print("traced", flush=True)
sys.stdin.read()
"""


@test("killed/tracer-dies")
def tracer_dies(t):
    """A killed tracer traces on until its memory is freed: the next attach waits for that."""
    server = Server(t)
    with subprocess.Popen([sys.executable, "-c", DYING, str(server.pid)], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as process:
        t.equal("its line", process.stdout.readline(), b"traced\n")
        process.kill()
        Attached(t, server.pid).wait_attached().detach()
    server.check_progress()
    server.end()
