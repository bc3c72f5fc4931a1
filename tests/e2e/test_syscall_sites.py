"""An attached program's brk and mmap are seen by breakpoints at its system call instructions, wherever
those stand, and it lives on when ptmem leaves or is killed while threads are in them. A started one's are
seen wherever it makes them."""

import os
import re
import subprocess
import time

from harness import Fail, test
from cli_lib import other_user
from process_lib import EVERYTHING, VARIANTS, compare, last_tree, output, truth


class Program:
    """targets/syscall_sites.c, or bare_syscall.c if that is the action, waiting for a byte; ptmem attached to it."""

    def __init__(self, t, variant, actions, *options):
        name = "bare_syscall" if "bare" in actions else "syscall_sites"
        self.t, self.cwd = t, t.subdirectory()
        self.process = subprocess.Popen([t.target(variant, name), "-w", *actions], cwd=self.cwd,
                                        env=t.environment(self.cwd), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.out = self.process.stdout.readline()
        self.pid = self.process.pid
        self.text = self.read_text()
        self.err = os.path.join(self.cwd, "ptmem-stderr")
        with open(self.err, "wb") as err:
            self.ptmem = subprocess.Popen([t.ptmem(), "-v", "--stats", "--trace=mmap", *EVERYTHING, *options, "-p",
                                           str(self.pid)], cwd=self.cwd, env=t.environment(self.cwd), stderr=err,
                                          stdin=subprocess.DEVNULL)
        t.wait_until("ptmem to attach", lambda: self.ptmem.poll() is not None or "attached to process" in self.said())

    def said(self):
        with open(self.err, encoding="utf-8", errors="replace") as file:
            return file.read()

    def step(self):
        self.process.stdin.write(b"x")
        self.process.stdin.flush()

    def read_until(self, last):
        while not self.out.endswith(last):
            line = self.process.stdout.readline()
            if not line:
                raise Fail("the program ended early: %r" % self.out)
            self.out += line

    def end(self):
        self.out += self.process.communicate(timeout=200)[0]
        self.t.equal("status of the program", self.process.returncode, 0)

    def read_text(self):
        """All of its text, by address."""
        found = {}
        with open("/proc/%d/maps" % self.pid, encoding="utf-8") as maps, \
                open("/proc/%d/mem" % self.pid, "rb", buffering=0) as mem:
            for line in maps:
                addresses, rights, _, _, _, *path = line.split()
                if "x" not in rights or not path or path[0][0] != "/":
                    continue
                start, end = (int(a, 16) for a in addresses.split("-"))
                mem.seek(start)
                found[start] = mem.read(end - start)
        return found

    def own_code(self):
        """Executable mappings that belong to no file."""
        with open("/proc/%d/maps" % self.pid, encoding="utf-8") as maps:
            return sum("x" in line.split()[1] and len(line.split()) == 5 for line in maps)

    def breakpoints(self):
        return sum(a != b for start, now in self.read_text().items() for a, b in zip(now, self.text[start]))


def check(t, variant, actions, is_everywhere):
    program = Program(t, variant, actions)
    t.check(is_everywhere or program.breakpoints() > 10, "there are no breakpoints in its text")
    program.step()
    if "signals" in actions:
        program.read_until(b"waits\n")
        program.step()
    program.end()
    t.equal("status of ptmem", program.ptmem.wait(timeout=200), 0)
    t.equal("whether it stopped at every call", "stops at every system call" in program.said(), is_everywhere)
    path, known = output(program.cwd, ".mmap"), truth(program.out.replace(b"waits\n", b""))["mmap"]
    if is_everywhere:  # no stack leads out of code without CFI
        t.equal("bytes mapped", last_tree(t, path).bytes, sum(known.values()))
    else:
        compare(t, path, known)


for v in VARIANTS:
    # whether sites near a program at fixed addresses are reached does not depend on what happens to their pages
    for a in ("variants", "bare", "signals", "generated", "writable", "protected")[:None if v == VARIANTS[0] else 2]:
        @test("syscall-sites/%s/%s" % (v, a))
        def _(t, v=v, a=a):
            check(t, v, [a], a not in ("variants", "signals"))

    @test("syscall-sites/%s/library" % v)
    def _(t, v=v):
        check(t, v, ["library", t.target("lib", "libhold.so")], False)


def return_from_handlers(t, variant, source, signals):
    """Breakpoint stops that --stats counts for a program that handles SIGTRAP and other signals itself."""
    cwd = t.subdirectory()
    with open(os.path.join(cwd, "ptmem-stderr"), "wb") as err, \
            subprocess.Popen([t.target(variant, "returns"), str(signals)], cwd=cwd, stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, env=t.environment(cwd)) as program:
        program.stdout.readline()
        with subprocess.Popen([t.ptmem(), "-v", "--stats", source, "-p", str(program.pid)], cwd=cwd, stderr=err,
                              env=t.environment(cwd)) as ptmem:
            def said():
                with open(err.name, encoding="utf-8") as file:
                    return file.read()
            t.wait_until("ptmem to attach", lambda: ptmem.poll() is not None or "attached to process" in said())
            out = program.communicate(b"x", timeout=200)[0]
    t.equal("status of the program", program.returncode, 6)
    t.equal("its output", out, b"handled %d\n" % (4 + signals))
    return re.findall(r" breakpoint stops: \d+", said())


for v in (VARIANTS[0], "musl-O2-pie", "musl-O2-static"):
    @test("syscall-sites/%s/returns" % v)
    def _(t, v=v):
        """A handler's return must not get a breakpoint: where SIGTRAP is blocked, the kernel resets its
        handler. Returns cause no stops either."""
        for source in ("--trace=brk", "--trace=mmap", "--pages-as-heap=yes"):  # the last says how often it stopped
            many, none = (return_from_handlers(t, v, source, signals) for signals in (500, 0))
            t.equal("stops of 500 handlers", many, none)
            t.equal("times that they are said", len(none), int("heap" in source))


def profile(t, variant, *actions):
    run = t.profile([t.target(variant, "bare_syscall" if "bare" in actions else "syscall_sites"), *actions],
                    options=["--trace=mmap", *EVERYTHING])
    t.equal("status", run.status, 0)
    return output(run.directory, ".mmap"), truth(run.out).get("mmap", {})


for v in VARIANTS:
    for a in (["variants"], ["signals"], ["library"])[:None if v == VARIANTS[0] else 1]:
        @test("syscall-sites/%s/%s-started" % (v, a[0]))
        def _(t, v=v, a=a):
            compare(t, *profile(t, v, *a, *[t.target("lib", "libhold.so")] * (a[0] == "library")))

    for a in ("writable", "protected") if v == VARIANTS[0] else ():
        @test("syscall-sites/%s/%s-started" % (v, a))
        def _(t, v=v, a=a):
            """No stack can be unwound from code without CFI: mappings other than those of program start."""
            path, known = profile(t, v, a)
            t.equal("bytes mapped", last_tree(t, path).bytes - last_tree(t, profile(t, v)[0]).bytes, sum(known.values()))


@test("syscall-sites/set-user-id")
def _(t):
    """A set-user-ID program gets no filter: breakpoints from its first instruction on."""
    user = other_user()
    cwd = t.subdirectory()
    os.chmod(cwd, 0o777)
    program = t.for_others(t.target("gcc-O2-pie", "syscall_sites"))
    os.chmod(program, 0o4755)
    run = subprocess.run([t.for_others(t.ptmem()), "-v", "--trace=mmap", *EVERYTHING, program, "variants", "protected"],
                         cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, user=user.pw_uid,
                         group=user.pw_gid, extra_groups=[])
    said = run.stderr.decode()
    t.equal("status (%s)" % said, run.returncode, 0)
    t.check("breakpoints at its system calls" in said, "it had a filter: " + said)
    t.check("stops at every system call" in said, "its code was not seen: " + said)
    known = truth(run.stdout)["mmap"]
    del known["map_made"]  # no stack leads there
    compare(t, output(cwd, ".mmap"), known)


@test("syscall-sites/interrupted-calls")
def _(t):
    """A handler sees the interrupted call at its own address; a thread in read can be cancelled."""
    check(t, "gcc-O2-pie", ["interrupted-calls"], False)


@test("syscall-sites/detach")
def _(t):
    """A thread waits in a call that a breakpoint redirected; it wakes as without ptmem."""
    program = Program(t, "gcc-O2-pie", ["signals"])
    program.step()
    program.read_until(b"waits\n")
    t.check(program.breakpoints() > 10, "there are no breakpoints in its text")
    program.ptmem.terminate()
    t.equal("status of ptmem", program.ptmem.wait(timeout=200), 0)
    t.equal("bytes of its text that differ", program.breakpoints(), 0)
    t.equal("pages of code that were left", program.own_code(), 0)
    program.step()
    program.end()


@test("syscall-sites/detach-while-busy")
def _(t):
    """ptmem attaches and detaches repeatedly while handlers interrupt the calls."""
    program = Program(t, "gcc-O2-pie", ["signals"], "--duration=0.05")
    program.step()
    for _ in range(10):
        program.ptmem.wait(timeout=200)
        program.ptmem = subprocess.Popen([t.ptmem(), "-q", "--trace=mmap", "--duration=0.05", "-o", "massif.out",
                                          "-p", str(program.pid)], cwd=program.cwd, env=t.environment(program.cwd))
    program.read_until(b"waits\n")
    program.ptmem.wait(timeout=200)
    t.equal("bytes of its text that differ", program.breakpoints(), 0)
    program.step()
    program.end()


@test("syscall-sites/killed")
def _(t):
    """ptmem is killed by SIGKILL; its guardian restores the original code."""
    program = Program(t, "gcc-O2-pie", ["signals"])
    program.step()
    program.read_until(b"waits\n")
    program.ptmem.kill()
    program.ptmem.wait()
    t.wait_until("the text to be restored", lambda: program.breakpoints() == 0)
    time.sleep(0.2)
    program.step()
    program.end()
