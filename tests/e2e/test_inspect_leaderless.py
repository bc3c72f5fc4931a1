"""--inspect of a process whose first thread has ended: its memory is that of the others."""

import json
import os
import re
import signal
import subprocess

from harness import Fail, test
from inspect_lib import check_rows


class Leaderless:
    """targets/leaderless, alone or under ptmem."""

    def __init__(self, t, *before):
        self.t, self.cwd = t, t.subdirectory()
        self.process = subprocess.Popen([*before, t.target("gcc-O2-pie", "leaderless")], cwd=self.cwd, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, env=t.environment(self.cwd))
        words = self.process.stdout.readline().split()
        if not words or words[0] != b"ready":
            raise Fail("the program printed %r" % words)
        self.thread, self.blocks = map(int, words[1:])
        self.pid = int(re.search(r"^Tgid:\t([0-9]+)$", self.read("status"), re.M)[1])
        t.wait_until("its first thread ended", lambda: "\nState:\tZ" in self.read("status", self.pid))
        t.wait_until("the thread waits", lambda: self.read("syscall").split()[0] == "0")

    def read(self, name, tid=None):
        with open("/proc/%d/%s" % (tid or self.thread, name), encoding="utf-8") as file:
            return file.read()

    def report(self):
        with open(os.path.join(self.cwd, "out.json"), encoding="utf-8") as file:
            report = json.load(file)
        check_rows(self.t, report)
        self.t.equal("the process", (report["pid"], report["threads"]), (self.pid, 1))
        self.t.check("leaderless" in report["command"], "command: %r" % report["command"])
        sizes = {(e["kind"], e["smallest"]): e["blocks"] for e in report["types"] if e["kind"] == "size"}
        self.t.equal("blocks", sizes.get(("size", 1000)), self.blocks)
        return report

    def end(self):
        self.process.stdin.close()
        self.t.equal("status", self.process.wait(), 0)


@test("inspect/leaderless/running")
def running(t):
    program = Leaderless(t)
    before = re.search("^Rss: +([0-9]+) kB$", program.read("smaps_rollup"), re.M)[1]
    for options in ((), ("--inspect-copy=0",)):
        result = t.run([t.ptmem(), "--inspect", "-p", str(program.pid), "--inspect-out=out.json", *options], cwd=program.cwd)
        t.equal("status and messages", (result.status, result.err), (0, b""))
        t.equal("resident bytes", program.report()["memory"]["resident"], int(before) * 1024)
    program.end()


@test("inspect/leaderless/profiled")
def profiled(t):
    """When asked by a signal, and at the end."""
    program = Leaderless(t, t.ptmem(), "-q", "-o", "massif", "--inspect", "--inspect-out=out.json", "--leak-check",
                         "--leaks-out=leaks.json", "--")
    out, leaks = (os.path.join(program.cwd, name) for name in ("out.json", "leaks.json"))
    for ask in (lambda: program.process.send_signal(signal.SIGUSR1), program.end):
        ask()
        for path in (out, leaks):
            t.wait_until(path, lambda: os.path.exists(path))
        program.report()
        with open(leaks, encoding="utf-8") as file:
            t.equal("blocks still reachable", json.load(file)["kinds"]["still reachable"]["blocks"] >= program.blocks, True)
        for path in (out, leaks):
            os.unlink(path)
