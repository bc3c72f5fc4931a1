"""--record: what is in the file after SIGKILL, compared with the program's own count."""

import mmap
import os
import signal
import struct
import subprocess

from harness import report_json, test

PROGRAM = """#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
/* Allocates blocks and keeps them; their number and its pid are in the file of the first argument. */
int main(int argc, char **argv)
{
	int fd = open(argv[argc - 1], O_RDWR);
	volatile unsigned long *count = mmap(NULL, 2 * sizeof(*count), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	const struct timespec pause = {0, 300000};

	count[1] = getpid();
	for (;;) {
		char *volatile block = malloc(1000);

		(void)block;
		++*count;
		nanosleep(&pause, NULL);
	}
}
"""


class Counting:
    """ptmem records the program."""

    def __init__(self, t):
        self.t, self.cwd = t, t.subdirectory()
        self.path, program = os.path.join(self.cwd, "r"), os.path.join(self.cwd, "counting")
        t.equal("compiler", t.run([t.program("gcc"), "-O1", "-o", program, t.file("counting.c", PROGRAM)]).status, 0)
        with open(os.path.join(self.cwd, "count"), "w+b") as file:
            file.truncate(16)
            self.memory = mmap.mmap(file.fileno(), 16)
        self.process = subprocess.Popen([t.ptmem(), "-q", "--record=r", "--massif-out-file=/dev/null", "--", program, "count"],
                                        cwd=self.cwd, env=t.environment(self.cwd))
        t.wait_until("the program to allocate", lambda: self.count() > 0)
        self.program, = struct.unpack("@Q", self.memory[8:])

    def count(self):
        return struct.unpack("@Q", self.memory[:8])[0]

    def size(self):
        return os.path.getsize(self.path) if os.path.exists(self.path) else 0

    def recorded(self, is_incomplete=True):
        """Blocks that are live at the end of the recording."""
        data = report_json(self.t, self.path)
        self.t.equal("incomplete", data["meta"]["incomplete"], is_incomplete)
        return sum(n for n, died in zip(data["cells"]["blocks"], data["cells"]["died"]) if died == -1)

    def wait_for_growth(self):
        size = self.size()
        self.t.wait_until("the file to grow", lambda: self.size() != size, pause=0)


@test("recording/killed/ptmem")
def _(t):
    """What the program has done is in the file soon, and what is there stays there if ptmem is killed as it writes more."""
    run = Counting(t)
    done = run.count()
    run.wait_for_growth()
    t.wait_until("blocks to be recorded", lambda: run.recorded() >= done)
    done = run.recorded()
    run.wait_for_growth()
    run.process.kill()
    run.process.wait()
    found = run.recorded()
    t.check(done <= found <= run.count() + 1, "%d blocks after %d, %d allocated" % (found, done, run.count()))


@test("recording/killed/ptmem-first-part")
def _(t):
    """There is a file that can be read before the program's first instruction; what is added soon is there as a whole."""
    run = Counting(t)
    t.check(os.path.exists(run.path), "the program runs, and there is no file")
    run.process.kill()
    run.process.wait()
    found = run.recorded()
    t.check(found <= run.count() + 1, "%d blocks, %d allocated" % (found, run.count()))
    run = Counting(t)
    done = run.count()
    t.wait_until("its first blocks to be recorded", lambda: run.recorded() >= done)
    run.process.kill()
    run.process.wait()
    found = run.recorded()
    t.check(done <= found <= run.count() + 1, "%d blocks, %d before and %d later" % (found, done, run.count()))


@test("recording/killed/attached")
def _(t):
    """Of a program that runs already there is a file soon; it lives on when ptmem is killed."""
    program = subprocess.Popen([t.target("gcc-O2-pie", "earlier")], env=t.environment(t.directory), stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE)
    program.stdout.readline()
    cwd = t.subdirectory()
    path = os.path.join(cwd, "r")
    ptmem = subprocess.Popen([t.ptmem(), "-q", "--record=r", "--massif-out-file=/dev/null", "-p", str(program.pid)], cwd=cwd,
                             env=t.environment(cwd))
    t.wait_until("a file", lambda: os.path.exists(path))
    ptmem.kill()
    ptmem.wait()
    data = report_json(t, path)
    t.check(data["meta"]["incomplete"] and data["timeline"]["live_blocks"][-1] > 0, "blocks from before: %s" % data["timeline"])
    t.equal("status of the program", (program.communicate(b"q"), program.wait())[1], 0)


@test("recording/killed/program")
def _(t):
    """All that the program has allocated is recorded if it is killed; the last block may not be counted yet."""
    run = Counting(t)
    run.wait_for_growth()
    os.kill(run.program, signal.SIGKILL)
    t.equal("status", run.process.wait(), -signal.SIGKILL)
    found = run.recorded(is_incomplete=False)
    t.check(found - run.count() in (0, 1), "%d blocks, %d allocated" % (found, run.count()))
