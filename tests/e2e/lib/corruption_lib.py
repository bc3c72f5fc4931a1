"""What several tests of corruption share."""

import os
import re
import signal
import subprocess

from harness import Fail

# after these no thread may loop in a pad until the alarm ends the program
NO_ALARM = ("zero", "remap", "remove")
CORRUPT = re.compile(r"^ptmem: process (\d+): its shared memory is corrupt \([^)]+\): profiling of it ends here$", re.M)
# what the program may die of by its own fault; a SIGTRAP would be a leftover breakpoint
OWN_ENDS = (0, -signal.SIGSEGV, -signal.SIGBUS, -signal.SIGILL, -signal.SIGFPE, -signal.SIGABRT, -signal.SIGALRM)
LIMIT = 200


class Run:
    """The corrupter, and ptmem that started it or was attached to it."""

    def __init__(self, t, mode, is_attached, how, seed=1, stdin=subprocess.DEVNULL, options=()):
        self.t, self.how, self.cwd = t, how, t.subdirectory()
        self.paths = [os.path.join(self.cwd, name) for name in ("stderr", "stdout")]
        program = [t.target("gcc-O2-pie", "corrupter"), how, str(seed), str(LIMIT)]  # ptmem may get no CPU for seconds
        ptmem = [t.ptmem(), "--probes=" + mode, *options]
        with open(self.paths[0], "wb") as err, open(self.paths[1], "wb") as out:
            def start(argv, err=err):
                return subprocess.Popen(argv, cwd=self.cwd, env=t.environment(self.cwd), stdin=stdin, stdout=out,
                                        stderr=err)

            if is_attached:
                self.program = start(program)
                self.ptmem = start(ptmem + ["-p", str(self.program.pid)])
            else:
                self.program, self.ptmem = None, start(ptmem + program)

    def text(self, which=0):
        with open(self.paths[which], encoding="utf-8", errors="replace") as file:
            return file.read()

    def end(self):
        """Both have ended, the program by itself; ptmem wrote what it had."""
        t, text = self.t, self.text
        try:
            status = self.ptmem.wait(timeout=LIMIT)
            own = self.program.wait(timeout=LIMIT) if self.program else status
        except subprocess.TimeoutExpired as error:
            self.ptmem.kill()
            raise Fail("ptmem hangs: " + text()) from error
        t.check(not re.search("internal error|Sanitizer|runtime error|SUMMARY", text()), "ptmem failed: " + text())
        t.check(own in OWN_ENDS, "the program ended with %d: %s" % (own, text()))
        t.check(self.how not in NO_ALARM or own != -signal.SIGALRM, "threads hang after %s: %s" % (self.how, text()))
        t.equal("status of ptmem (%s)" % text(), status, 0 if self.program else own)
        t.check(len(CORRUPT.findall(text())) <= 1, "said more than once: " + text())
        t.equal("profiles (%s)" % text(), len([n for n in os.listdir(self.cwd) if n.startswith("massif.out.")]), 1)
        return bool(CORRUPT.search(text()))
