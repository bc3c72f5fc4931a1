"""Functions of Perl programs in stacks: targets/perl_chains.pl knows the chain of functions of each of its allocations, and
all must be in the recording: with the calls and bytes of each, from the start or attached, in threads, in a fork."""

import os

import harness
from chains_lib import check_chains, check_started, run_attached, sum_chains
from harness import test

SCRIPT = os.path.join(harness.ROOT, "tests", "targets", "perl_chains.pl")
with open(SCRIPT, encoding="utf-8") as script:
    LEAF = "obtain:%d" % next(i + 1 for i, line in enumerate(script) if "__LINE__" in line)


def found_chains(t, path):
    """{chain: [calls, bytes]} of the recording @path, of what sysread allocated in `obtain`."""
    def chain_of(functions):
        names = ["%s:%d" % (name, max(line, 0)) for name, line in functions]
        return "<".join(names) if names and names[0] == LEAF else None
    return sum_chains(t, path, chain_of)


@test("perl/chains")
def started(t):
    check_started(t, [t.program("perl"), SCRIPT, "chains"], [], found_chains, "started")


@test("perl/chains/attached")
def attached(t):
    cwd, pid, _ = run_attached(t, [t.program("perl"), SCRIPT, "chains"], ["--record=recording.%p"])
    check_chains(t, cwd, pid, found_chains, "attached")


@test("perl/modules")
def modules(t):
    """Modules that use others: `use` allocates when the context of the file that it reads has no function yet, but what its memory
    had before, or Perl's poison. Pads follow only what ptmem has read."""
    cwd = t.subdirectory()
    for module, text in (("A", "use B_; 1;"), ("B_", "use C; 1;"), ("C", "sub f { 'x' x 3000 } 1;")):
        with open(os.path.join(cwd, module + ".pm"), "w", encoding="utf-8") as file:
            file.write("package %s; %s\n" % (module, text))
    for probes in ("jump", "break"):
        run = t.profile([t.program("perl"), "-I.", "-e", "use A; print length(C::f()), qq(\\n)"], ["--probes=" + probes], cwd=cwd)
        t.equal("the program: %s" % run.messages, (run.status, run.out), (0, b"3000\n"))
