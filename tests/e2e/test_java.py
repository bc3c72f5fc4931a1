"""Java: the chains that ptmem finds are those that the virtual machine itself knows (tests/targets/Stacks.java)."""

import glob
import os
import subprocess

import harness
from events import each_block
from harness import Skip, test
from process_lib import Attached

MACHINES = sorted(glob.glob("/usr/lib/jvm/*/bin/javac")) + sorted(glob.glob("/opt/*/bin/javac"))
EXCLUDE = ["-XX:CompileCommand=quiet", "-XX:CompileCommand=exclude,Stacks.excluded", "-XX:CompileCommand=exclude,Stacks.excludedMany",
           "-XX:CompileCommand=exclude,Stacks$Locked.go"]
MODES = {
    "interpreted": (["-Xint"], 100),
    "c2": (["-XX:-TieredCompilation", "-XX:CICompilerCount=1", "-Xbatch"], 20000),
    "mixed": (EXCLUDE, 20000),
}
ROUNDS = 300
ALLOCATES = "jdk.internal.misc.Unsafe.allocateMemory"


def machines():
    """The virtual machines that are installed: of each version one."""
    found = {}
    for path in MACHINES:
        home = os.path.dirname(os.path.dirname(os.path.realpath(path)))
        try:
            with open(os.path.join(home, "release"), encoding="utf-8") as file:
                version = [line for line in file if line.startswith("JAVA_VERSION=")]
        except OSError:
            continue
        found.setdefault("".join(version).split('"')[1], home)
    if not found:
        raise Skip("no JDK in /usr/lib/jvm (scripts/install-deps test)")
    return found


def build(t, home):
    classes = t.subdirectory()
    run = t.run([os.path.join(home, "bin/javac"), "-d", classes, os.path.join(harness.ROOT, "tests/targets/Stacks.java")])
    t.equal("status of javac (%r)" % run.err, run.status, 0)
    return classes


def read_truth(out):
    """{size: [(method, file, line)]}, innermost first, until "end"."""
    chains, size = {}, 0
    for line in out:
        word = line.split()
        if word[0] == "end":
            return chains
        if word[0] == "S":
            size = int(word[1])
            chains[size] = []
        elif word[0] == "F":
            chains[size].append((word[1], word[2], int(word[3])))
    raise harness.Fail("the program ended early")


def read_events(path):
    """The blocks that Java's allocateMemory made: {size: [frame]}, innermost first; a frame is (method, file, line), or an address. And
    how often there was each size."""
    chains, counts = {}, {}
    for size, stack in each_block(path):
        if any(frame[0] == ALLOCATES for frame in stack):
            counts[size] = counts.get(size, 0) + 1
            chains[size] = stack
    return chains, counts


def is_own(frame):
    """Whether the program's own chain has it: adapters of lambdas are not shown by StackWalker."""
    return isinstance(frame, tuple) and frame[0].startswith("Stacks") and "$$Lambda" not in frame[0]


def compare(t, want, path):
    chains, counts = read_events(path)
    t.equal("sizes that were seen once", [s for s in want if counts.get(s) != 1], [])
    for size, chain in want.items():
        t.equal("the chain of %d bytes" % size, [f for f in chains[size] if is_own(f)], chain)


def check_mode(t, home, classes, mode):
    options, warm = MODES[mode]
    java = subprocess.Popen([os.path.join(home, "bin/java"), *options, "-cp", classes, "Stacks", str(ROUNDS), str(warm)],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=t.environment(classes))
    try:
        t.equal("what it says", java.stdout.readline(), "warm\n")
        attached = Attached(t, java.pid, ["--events=events"]).wait_attached()
        java.stdin.write("\n")
        java.stdin.flush()
        want = read_truth(java.stdout)
        profile = attached.detach()
        t.equal("chains", len(want), ROUNDS)
        stats = profile.only_stats()
        compare(t, want, os.path.join(profile.directory, "events"))
        t.equal("stacks that are not complete", stats["stacks"] - stats["complete stacks"], 0)
        java.stdin.write("\n")
        java.stdin.close()
        t.equal("status of the program", java.wait(timeout=200), 0)
    finally:
        java.kill()
        java.wait()


def register(mode):
    @test("java/" + mode, limit=60)
    def run(t):
        homes = list(machines().values())
        for home in homes if mode == "mixed" else homes[:1]:
            check_mode(t, home, build(t, home), mode)

    run.__doc__ = "Chains of methods, %s; those of all compilers and the interpreter with all JDKs that are installed." % mode


for name in MODES:
    register(name)
