"""Valgrind's command line: what scripts pass to `valgrind --tool=massif` means the same to ptmem, or is refused in
one line that says why. Compared with Valgrind itself where that is possible."""

import collections
import glob
import os
import re

import harness
import massif
from harness import test
from peer_lib import RUNS, VALGRIND, first_difference


def tool_options():
    """{name: its initial value or None} of the options that Massif's tool consumes, from the table."""
    path = os.path.join(harness.HERE, "../../src/cli/option_table.c")
    with open(path, encoding="utf-8") as file:
        rows = re.findall(r"(?s)\{\.name = (.*?)\},\n", file.read())
    found = {}
    for row in rows:
        if re.search(r"\.flags = [^,]*\bOPT_TOOL\b", row):
            initial = re.search(r'\.initial = "([^"]*)"', row)
            found[row.split('"')[1]] = initial.group(1) if initial else None
    return found


# Options that Valgrind 3.19 has not
NEWER = ["realloc-zero-bytes-frees"]


@test("core/every-option-twice")
def every_option_twice(t):
    """At least 40 programs and option sets run beside Massif, every option of Massif's twice or more."""
    used = collections.Counter(n for run in RUNS
                               for n in {re.sub(r"^--(massif:)?|=.*", "", o) for o in run if o.startswith("--")})
    options = tool_options()
    t.check(len(options) >= 19, "the table of options was not understood: %s" % options)
    rare = {n: used[n] for n in options if used[n] < 2 and n not in NEWER}
    t.equal("options that run beside Massif less than twice", rare, {})
    t.check(len({tuple(run) for run in RUNS}) >= 40, "fewer than 40 sets of options")


@test("core/desc", limit=60)
def desc(t):
    """Every option of the tool's is repeated in desc:, in order, without the prefix; the core's are not."""
    options = []
    for i, (name, initial) in enumerate(tool_options().items()):
        if name in NEWER or name == "massif-out-file":
            continue
        options.append("--%s%s=%s" % ("massif:" if i % 3 == 0 else "", name, initial if initial is not None else "a b"))
        options.append(["-q", "--num-callers=7", "--demangle=yes", "--callgrind:dump-line=no"][i % 4])
    program, cwd = t.target("peer-gcc-O2", "massif_cases"), t.subdirectory()
    t.run([t.program("valgrind"), "--tool=massif", "--read-inline-info=no", *options, "--massif-out-file=v%%x", program], cwd=cwd)
    t.run([t.ptmem(), "--tool=massif", *options, "--massif-out-file=p%%x", program], cwd=cwd)
    left, right = (massif.Massif(os.path.join(cwd, name)).desc for name in ("v%x", "p%x"))
    t.equal("desc", right.replace("p%%x", "v%%x"), left)
    t.equal("number of options in it", left.count(" --") + 1, len(tool_options()) - len(NEWER))
    t.run([t.ptmem(), "--realloc-zero-bytes-frees=no", "-o", "one", program], cwd=cwd)
    t.equal("desc of what 3.19 has not", massif.Massif(os.path.join(cwd, "one")).desc,
            "--realloc-zero-bytes-frees=no --massif-out-file=one")


PLACEHOLDERS = {"hint1": "none", "variant1": "none", "event1": "none", "mode": "sp-at-mem-access"}


def value_of(text):
    """A value for an option of whose help @text is the rest: NUMBER, one of the words, or what is default."""
    first = re.match(r"=<?\(?([^|,>\s]*)", text)
    if not first:
        return None
    number = re.search(r"<(\d+)\.\.\d+>", text)
    default = re.search(r"\[(\w+)", text)
    if number:
        return number.group(1)
    if first.group(1) in ("number", "size", "hexnumber", "XXXXXXXX"):
        return default.group(1) if default and default.group(1).isdigit() else "1"
    return PLACEHOLDERS.get(first.group(1), first.group(1))


@test("core/help-options", limit=120)
def help_options(t):
    """Each option of Valgrind's own help but Memcheck's is taken, or refused with the reason."""
    text = t.run([t.program("valgrind"), "--help-debug"]).out.decode()
    text = re.sub(r"(?s)  user options for Memcheck:.*?\n\n(?=  \S)", "", text)
    found = re.findall(r"(?m)^ +(-[a-z]|--[a-z][a-z-]+)(?![a-z-])((?! and ).*)$", text)
    t.check(len(found) > 90, "only %d options in the help" % len(found))
    for name, rest in found:
        value = value_of(rest) if name.startswith("--") else None
        option = name if value is None else "%s=%s" % (name, value)
        run = t.run([t.ptmem(), "-o", "/dev/null", option, "true"])
        message = run.err.decode()
        t.check("unknown option" not in message and "bad option" not in message, "%s: %s" % (option, message))
        if run.status:
            t.check(re.fullmatch(r"ptmem: option '[^\n]*' is not supported: [^\n]*\n", message), message)
            t.equal("status of " + option, run.status, 1)


@test("core/values", limit=120)
def values(t):
    """A value for an option that takes none is refused in one line."""
    for option in ("--gen-suppressions=x", "--smc-check=x", "--sim-hints=x", "--fair-sched=x", "--kernel-variant=x",
                   "--resync-filter=x", "--px-default=x", "--vgdb=x", "--num-callers=501", "--redzone-size=4097",
                   "--show-error-list=bad", "--stats=x", "--error-exitcode=x", "--track-fds=bad", "--demangle=x"):
        peer = t.run([t.program("valgrind"), "--tool=massif", option, "true"])
        own = t.run([t.ptmem(), option, "true"])
        t.equal("status of valgrind %s" % option, peer.status, 1)
        t.equal("status of ptmem %s" % option, own.status, 1)
        t.check(re.fullmatch(r"ptmem: (bad option|option) [^\n]*%s[^\n]*: [^\n]+\n" % option, own.err.decode()),
                own.err.decode())


@test("core/verbose", limit=60)
def verbose(t):
    """-v -v logs each snapshot taken or deleted, in Massif's words; -v the functions that are watched."""
    program, cwd, env = t.target("peer-gcc-O2", "massif_cases"), t.subdirectory(), {"CASE": "waves"}
    options = ["--max-snapshots=20", "--detailed-freq=3", "--ignore-fn=nothing"]
    peer = t.run([t.program("valgrind"), *VALGRIND[:-1], "--read-inline-info=no", "--massif-out-file=v", "-v", "-v", *options, program],
                 cwd=cwd, env=env)
    own = t.run([t.ptmem(), "--time-unit=B", "--peak-at-exit=no", "-o", "p", "-v", "-v", *options, program], cwd=cwd, env=env)
    left = re.findall(r"(?m)^--\d+-- Massif: ((?!  \(skipped|\(Ignoring).*)$", peer.err.decode())
    left = left[next(i for i, l in enumerate(left) if l.startswith("startup")):]
    right = re.findall(r"(?m)^ptmem: process \d+: (.*(?:S[.dp] *\d+ \(t:|ull|interval).*)$", own.err.decode())
    for word in ("startup S.  0", "  alloc S", "dealloc S", "de-PEAK Sp", "Sd", "Culling...", "post-cull", "New time interval"):
        t.check(any(word in l for l in left), "valgrind says nothing of " + word)
    if left != right:
        raise harness.Fail("massif (left) and ptmem differ, " + first_difference(left, right))
    once = t.run([t.ptmem(), "-o", "p", "-v", *options, program], cwd=cwd, env=env).err.decode()
    t.check("startup" not in once and "\nptmem:   malloc\n" in once and "\nptmem: ignore-fns:\nptmem:   nothing\n" in once, once)


@test("core/valgrindrc")
def valgrindrc(t):
    """Valgrind's files and VALGRIND_OPTS may be for any tool and are not read, as ptmem(1) documents."""
    cwd, program = t.subdirectory(), t.target("gcc-O2-pie", "empty")
    for path in (os.path.join(cwd, ".valgrindrc"), os.path.join(t.directory, ".valgrindrc")):
        with open(path, "w", encoding="ascii") as file:
            file.write("--depth=3\n--leak-check=full\n")
    run = t.run([t.ptmem(), "-q", "-o", "out", program], cwd=cwd, env={"VALGRIND_OPTS": "--depth=0"})
    t.equal("status (%s)" % run.err.decode(), run.status, 0)
    t.equal("desc", massif.Massif(os.path.join(cwd, "out")).desc, "--massif-out-file=out")


@test("core/log-fd")
def log_fd(t):
    """Messages go to the descriptor, the program's own stay where they are, and it inherits what it would."""
    cwd = t.subdirectory()
    script = "exec 5>log; %s --log-fd=5 -o out sh -c 'echo own >&2; test -e /proc/self/fd/5 && echo open'" % t.ptmem()
    run = t.run(["sh", "-c", script], cwd=cwd)
    t.equal("standard error", run.err, b"own\n")
    t.equal("standard output", run.out, b"open\n")
    with open(os.path.join(cwd, "log"), encoding="utf-8") as file:
        t.check(re.search(r"(?m)^ptmem:   written to +/.*/out;", file.read()), "no summary in the log")
    run = t.run([t.ptmem(), "--log-fd=9", "true"])
    t.equal("a closed descriptor", (run.status, run.err), (1, b"ptmem: --log-fd=9: Bad file descriptor\n"))


# What is executed by another program, and what of it is left alone
SKIPPED = [
    (["--trace-children-skip=DIR/leaf"], ["DIR/leaf"]),
    (["--trace-children-skip=DIR/leaf"], ["./leaf"]),
    (["--trace-children-skip=leaf"], ["./leaf"]),
    (["--trace-children-skip=a,*/l??f,b"], ["./leaf"]),
    (["--trace-children-skip=./leaf", "--trace-children-skip=other"], ["./leaf"]),
    (["--trace-children-skip=other", "--trace-children-skip=./leaf"], ["./leaf"]),
    (["--trace-children-skip=*/runner"], ["./runner", "./leaf"]),
    (["--trace-children-skip=*/script"], ["./script", "x"]),
    (["--trace-children-skip="], ["./script", "x"]),
    (["--trace-children-skip-by-arg=*foo*"], ["./leaf", "xfoox"]),
    (["--trace-children-skip-by-arg=foo"], ["./leaf", "xfoox"]),
    (["--trace-children-skip-by-arg=./leaf"], ["./leaf"]),
    (["--trace-children-skip-by-arg=*foo*", "--trace-children-skip-by-arg=no"], ["./leaf", "xfoox"]),
    ([], ["name:./leaf", "b c", ""]),
    ([], ["name:./script", "b"]),
    ([], ["./script", "./script", "b"]),
]
RUNNER = """#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
/* Executes what its arguments say in a child; name:FILE gets another argv[0]. */
int main(int argc, char **argv)
{
	free(malloc(100));
	if (argc > 1 && fork() == 0) {
		char *file = strncmp(argv[1], "name:", 5) ? argv[1] : argv[1] + 5;
		execv(file, argv + 1);
		_exit(9);
	}
	wait(NULL);
	return 0;
}
"""


@test("core/trace-children", limit=120)
def trace_children(t):
    """Which programs are analysed further, and the cmd: of each, a script's name and not its interpreter's."""
    source = t.file("runner.c", RUNNER)

    def programs_of(tool, *compiler_options):
        """[the programs that it profiles] for each of SKIPPED."""
        directory, found = t.subdirectory(), []
        for name in ("runner", "leaf"):
            t.equal("compiler", t.run([t.program("gcc"), *compiler_options, "-o", os.path.join(directory, name), source]).status, 0)
        script = os.path.join(directory, "script")
        with open(script, "w", encoding="ascii") as file:
            file.write("#!/bin/true -x\n")
        os.chmod(script, 0o755)
        for options, words in SKIPPED:
            for path in glob.glob(os.path.join(directory, "massif.out.*")):
                os.unlink(path)
            options, words = ([w.replace("DIR", directory) for w in l] for l in (options, words))
            t.run([*tool, "--trace-children=yes", *options, "./runner", *words], cwd=directory)
            found.append({massif.Massif(p).cmd.replace(directory, "DIR") for p in glob.glob(os.path.join(directory, "massif.out.*"))})
        return found

    # No stack is compared; and Valgrind reads the C library's debug information, for a third of a second, where it is dynamic.
    wanted = programs_of([t.program("valgrind"), "--tool=massif", "-q", "--read-inline-info=no"], "-static")
    for (options, words), got, want in zip(SKIPPED, programs_of([t.ptmem(), "-q"]), wanted):
        t.equal("programs profiled with %s %s" % (options, words), got, want)
