"""ptmem is killed by SIGKILL at one request to the kernel or another (tests/e2e/delays.c): what it had attached to
continues undisturbed.
"""

import re
import signal
import subprocess

from harness import test
from process_lib import Attached, delays, guardians


PTRACE_SINGLESTEP = 9
PTRACE_SEIZE = 0x4206
PTRACE_SETREGSET = 0x4205


class Signalled:
    """The target of that name, single-threaded."""

    def __init__(self, t, what):
        self.t, self.cwd = t, t.subdirectory()
        self.process = subprocess.Popen([t.target("gcc-O2-pie", "signalled"), what], cwd=self.cwd,
                                        env=t.environment(self.cwd), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.pid = self.process.pid
        t.equal("its first letter", self.process.stdout.read(1), b".")

    def say(self, letter):
        self.process.stdin.write(letter)
        self.process.stdin.flush()
        self.t.equal("answer (status %s)" % self.process.poll(), self.process.stdout.read(1), letter)

    def is_left(self):
        """Whether no guardian is running any more."""
        self.t.equal("status", self.process.poll(), None)
        return not guardians(self.t) and self.status("TracerPid") == "0"

    def status(self, key):
        with open("/proc/%d/status" % self.pid, encoding="ascii") as file:
            return re.search(r"^%s:\s*(\S+)" % key, file.read(), re.M).group(1)

    def end(self):
        self.process.stdin.close()
        self.t.equal("status", self.process.wait(timeout=200), 0)
        self.process.stdout.close()


def dies(request, number, is_made, sends, **more):
    """The environment for ptmem: it dies at that request, when it @is_made or before, and sends a signal first."""
    more = {"die": number, "die_at": request, "stop": int(sends), **({"die_later": 1} if is_made else {}), **more}
    return delays(**more)


@test("killed/before-start")
def before_start(t):
    """A program that ptmem was about to start never runs: it would be neither watched nor killed."""
    for is_made in (False, True):
        run = t.run([t.ptmem(), "-q", "--massif-out-file=/dev/null", "--", "/bin/echo", "ran"],
                    env=dies(PTRACE_SEIZE, 1, is_made, False, stop=0))
        t.equal("status, output (after PTRACE_SEIZE: %s)" % is_made, (run.status, run.out), (-signal.SIGKILL, b""))


@test("killed/in-system-call", limit=120)
def in_system_call(t):
    """At the beginning or end of a system call that the program makes for ptmem, and a signal comes: its handler
    returns to the code of that call, long after the guardian has ended."""
    for number in range(1, 7):
        for is_made in (True, False):
            target = Signalled(t, "wait")
            attached = Attached(t, target.pid, env=dies(PTRACE_SETREGSET, number, is_made, signal.SIGUSR1))
            t.equal("status of ptmem (%s)" % attached.errors(), attached.process.wait(timeout=200), -signal.SIGKILL)
            t.wait_until("the guardian to end", target.is_left)
            target.say(b"h")
            target.say(b"m")
            t.equal("signal mask", int(target.status("SigBlk"), 16), 0)
            target.end()


@test("killed/with-signal")
def with_signal(t):
    """The program has stopped for a signal when it is attached to: no step for ptmem's own needs may be its end,
    before the handler of SIGTRAP is in."""
    for _ in range(5):
        target = Signalled(t, "wait")
        attached = Attached(t, target.pid, env=dies(PTRACE_SINGLESTEP, 1, True, 0, signal=int(signal.SIGUSR1)))
        t.wait_until("ptmem to attach or to die", lambda: attached.process.poll() is not None or "attached" in attached.errors())
        attached.process.kill()
        attached.process.wait()
        t.wait_until("the guardian to end", target.is_left)
        target.say(b"h")
        target.say(b"m")
        target.end()
