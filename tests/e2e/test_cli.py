"""The command line: refusals with a reason, before anything is run; options; names of files."""

import os
import pwd
import re
import shutil
import signal
import subprocess
import time

import harness
import massif
from harness import BUILD, Skip, test
from cli_lib import other_user
from process_lib import is_asleep


def refused(t, argv, status, *words, **how):
    """ptmem prints one line with all of @words, exits with @status and leaves no profile."""
    run = t.run([t.ptmem(), *argv], **how)
    text = run.err.decode(errors="replace")
    t.equal("status of ptmem %s (%s)" % (" ".join(argv), text.strip()), run.status, status)
    t.equal("standard output", run.out, b"")
    for word in words:
        t.check(re.search(word, text), "%r is not in: %s" % (word, text))
    left = [n for n in os.listdir(run.cwd) if n not in ("command", "stdout", "stderr")]
    t.equal("files left behind", left, [])
    return text


def one_line(t, argv, status, *words, **how):
    text = refused(t, argv, status, *words, **how)
    t.equal("lines of the message (%s)" % text, text.count("\n"), 1)


BAD_OPTIONS = [
    ("--depth=0", "--depth", "1", "200"), ("--depth=201", "--depth", "1", "200"), ("--depth=", "--depth"),
    ("--depth=abc", "--depth"), ("--depth=1k", "--depth"), ("--depth=0x10", "--depth"), ("--depth=-1", "--depth"),
    ("--depth=99999999999999999999", "--depth"),
    ("--threshold=101", "--threshold", "0", "100"), ("--threshold=-1", "--threshold"),
    ("--threshold=1e0", "--threshold"), ("--threshold=5%", "--threshold"), ("--threshold=nan", "--threshold"),
    ("--time-unit=s", "--time-unit", "ms", "B"), ("--time-unit=b", "--time-unit"), ("--time-unit=", "--time-unit"),
    ("--detailed-freq=0", "--detailed-freq", "1", "1000000"), ("--detailed-freq=1000001", "--detailed-freq"),
    ("--max-snapshots=9", "--max-snapshots", "10", "1000"), ("--max-snapshots=1001", "--max-snapshots"),
    ("--heap-admin=1025", "--heap-admin", "0", "1024"), ("--heap-admin=-1", "--heap-admin"),
    ("--alignment=8", "--alignment", "16", "4096"), ("--alignment=24", "--alignment"),
    ("--alignment=8192", "--alignment"),
    ("--peak-inaccuracy=x", "--peak-inaccuracy"), ("--peak-at-exit=maybe", "--peak-at-exit", "yes", "no"),
    ("--trace-children=1", "--trace-children", "yes", "no"), ("--probes=fast", "--probes"),
    ("--color=blue", "--color"), ("--duration=x", "--duration"), ("--duration=-1", "--duration"),
    ("--no-such-option", "--no-such-option"), ("--depth", "--depth"), ("-Z", "-Z"),
]


def register_bad(option, words):
    @test("cli/bad/" + option.replace("/", "_"))
    def _(t):
        marker = os.path.join(t.directory, "was-run")
        argv = [option, "-p", str(os.getpid())] if option.startswith("--duration") else [option, "touch", marker]
        one_line(t, argv, 1, *(re.escape(w) for w in words))
        t.check(not os.path.exists(marker), "the program was run")


for bad in BAD_OPTIONS:
    register_bad(bad[0], bad[1:])


GOOD_OPTIONS = ["--threshold=", "--depth=1", "--depth=200", "--depth=+5", "--threshold=.5", "--threshold=5.", "--threshold=100",
                "--time-unit=ms", "--time-unit=B", "--detailed-freq=1", "--max-snapshots=10", "--max-snapshots=1000",
                "--heap-admin=0", "--alignment=4096", "--peak-inaccuracy=0", "--alloc-fn=f", "--ignore-fn=",
                "--probes=break", "-v", "-q", "--color=never", "--trace-children=yes", "--massif:depth=3",
                "--memcheck:leak-check=no", "--command-line-only=yes"]


def register_good(option):
    @test("cli/good/" + option.replace("/", "_"))
    def _(t):
        target = t.target("gcc-O2-pie", "empty")
        run = t.run([t.ptmem(), option, target])
        t.equal("status (%s)" % run.err.decode(), run.status, 0)
        names = [n for n in os.listdir(run.cwd) if n.startswith("massif.out.")]
        found = massif.Massif(os.path.join(run.cwd, names[0]))
        core = ("--probes", "-v", "-q", "--color", "--trace", "--memcheck", "--command")
        want = "(none)" if option.startswith(core) else option.replace("--massif:", "--")
        t.equal("desc", found.desc, want)
        t.equal("cmd", found.cmd, target)


for good in GOOD_OPTIONS:
    register_good(good)


@test("cli/no-program")
def no_program(t):
    refused(t, [], 1, "program", "--help")


@test("cli/not-found")
def not_found(t):
    one_line(t, ["no-such-program"], 127, "no-such-program", "[Nn]o such|not found")
    one_line(t, ["./no-such-program"], 127, "no-such-program", "[Nn]o such|not found")
    one_line(t, ["/nowhere/at/all"], 127, "/nowhere/at/all")


@test("cli/not-executable")
def not_executable(t):
    path = t.file("plain", "no program\n")
    one_line(t, [path], 126, "plain", "not executable")
    one_line(t, [t.directory], 126, re.escape(t.directory), "a directory")
    one_line(t, [""], 127, "''", "no such program")


@test("cli/script-without-interpreter")
def no_interpreter(t):
    """The shell runs it, as with env(1) and Valgrind."""
    path = t.file("plain", "echo by the shell; exit 6\n")
    os.chmod(path, 0o755)
    profile = t.profile([path])
    t.equal("status", profile.status, 6)
    t.equal("output", profile.out, b"by the shell\n")
    t.equal("cmd", profile.only_massif().cmd, path)


@test("cli/script")
def script(t):
    """A script's interpreter is what is profiled."""
    path = t.file("script", "#!/bin/sh\necho from the script; exit 5\n")
    os.chmod(path, 0o755)
    profile = t.profile([path])
    t.equal("status", profile.status, 5)
    t.equal("output", profile.out, b"from the script\n")
    t.equal("cmd", profile.only_massif().cmd, path)


@test("cli/no-such-process")
def no_such_process(t):
    with open("/proc/sys/kernel/pid_max", encoding="ascii") as file:
        pid = int(file.read())  # the first number that is never given
    one_line(t, ["-p", str(pid)], 125, str(pid), "[Nn]o such process")
    for bad in ("0", "-1", "abc", "1x", "", "99999999999"):
        refused(t, ["-p", bad], 1, "pid|-p")


def sleeper(t, argv=("sleep", "100"), **how):
    return subprocess.Popen(argv, cwd=t.directory, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **how)


@test("cli/ended-process")
def ended_process(t):
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    one_line(t, ["-p", str(child)], 125, "has ended", "zombie")
    os.waitpid(child, 0)
    one_line(t, ["-p", "2"], 125, "kernel thread")


@test("cli/already-traced")
def already_traced(t):
    """The refusal names the tracer."""
    tracer = sleeper(t, [t.program("strace"), "-f", "-o", "/dev/null", "sleep", "100"])
    path = "/proc/%d/task/%d/children" % (tracer.pid, tracer.pid)

    def children():
        with open(path, encoding="ascii") as file:
            return file.read().split()

    found = []

    def is_traced():
        for pid in children():  # strace tries things out in children of its own, which are soon gone
            try:
                with open("/proc/%s/status" % pid, encoding="ascii") as file:
                    text = file.read()
                if "TracerPid:\t%d\n" % tracer.pid in text and os.readlink("/proc/%s/exe" % pid).endswith("sleep"):
                    found.append(pid)
            except OSError:
                pass
        return found

    t.wait_until("strace to trace", is_traced)
    one_line(t, ["-p", found[0]], 125, "traced", "strace", str(tracer.pid))
    tracer.kill()


@test("cli/traced-itself")
def traced_itself(t):
    """A tracer that follows children has the program before ptmem: the refusal names it."""
    run = t.run([t.program("strace"), "-f", "-qq", "-o", "/dev/null", t.ptmem(), t.program("true")])
    t.equal("status", run.status, 125)
    t.check(re.fullmatch(rb"ptmem: .*true may not be traced: ptmem and what it starts are traced already, "
                         rb"by process \d+ \(strace\)\n", run.err), "the refusal: %r" % run.err)


@test("cli/attach-to-itself")
def itself(t):
    """Not ptmem itself, nor a kernel thread, nor a zombie."""
    zombie = sleeper(t, ["true"])
    t.wait_until("a zombie", lambda: open("/proc/%d/stat" % zombie.pid, encoding="ascii").read().split()[2] == "Z")
    refused(t, ["-p", str(zombie.pid)], 125, str(zombie.pid))
    zombie.wait()
    if os.path.exists("/proc/2/comm") and open("/proc/2/comm", encoding="ascii").read() == "kthreadd\n":
        refused(t, ["-p", "2"], 125, "2")


@test("cli/not-permitted")
def not_permitted(t):
    """Another user's process: the error names the user and what would help."""
    user = other_user()
    process = sleeper(t)
    cwd = t.subdirectory()
    os.chmod(cwd, 0o777)
    run = subprocess.run([t.for_others(t.ptmem()), "-p", str(process.pid)], cwd=cwd, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, check=False, user=user.pw_uid, group=user.pw_gid, extra_groups=[])
    text = run.stderr.decode()
    t.equal("status (%s)" % text, run.returncode, 125)
    t.check(re.search("permi|allowed|belongs", text) and re.search("root|sudo", text), "not clear: " + text)
    process.kill()


@test("cli/ordinary-user")
def ordinary_user(t):
    """Everything but other users' processes works without root."""
    user = other_user()
    cwd = t.subdirectory()
    os.chmod(cwd, 0o777)
    ptmem, target = t.for_others(t.ptmem()), t.for_others(t.target("gcc-O2-pie", "mixed"))
    for option in ([], ["--time-unit=B"]):
        run = subprocess.run([ptmem, "--stats", *option, target], cwd=cwd,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, user=user.pw_uid,
                             group=user.pw_gid, extra_groups=[])
        t.equal("status (%s)" % run.stderr.decode(), run.returncode, 0)
        t.check(run.stdout.startswith(b"expect: "), "no output of the target")
    t.equal("profiles", len([n for n in os.listdir(cwd) if n.startswith("massif.out.")]), 2)


@test("cli/32-bit")
def bits_32(t):
    one_line(t, [t.target("odd", "tiny32")], 125, "32-bit")


@test("cli/no-allocator")
def no_allocator(t):
    """A stripped static program has no malloc: an error says so, and why."""
    for name in ("nolibc", "stripped-static"):
        refused(t, [t.target("odd", name)], 125, "malloc", "stripped|symbol")


@test("cli/no-allocator-attached")
def no_allocator_attached(t):
    process = sleeper(t, [t.target("odd", "nolibc")], stdin=subprocess.PIPE)
    text = refused(t, ["-p", str(process.pid)], 125, "malloc", str(process.pid))
    t.equal("lines of the message (%s)" % text, text.count("\n"), 1)
    process.stdin.close()
    t.equal("status of the program", process.wait(timeout=200), 3)


@test("cli/time-unit-i")
def time_unit_i(t):
    """Without an instruction counter, an error before the program starts says what to use instead."""
    marker = os.path.join(t.directory, "was-run")
    if os.path.isdir("/sys/bus/event_source/devices/cpu"):
        run = t.run([t.ptmem(), "--time-unit=i", "-o", "out", "touch", marker])
        t.equal("status (%s)" % run.err.decode(), run.status, 0)
        t.equal("time unit", massif.Massif(os.path.join(run.cwd, "out")).time_unit, "i")
        return
    one_line(t, ["--time-unit=i", "touch", marker], 125, "instructions", "--time-unit=ms", "--time-unit=B")
    one_line(t, ["--time-unit=i", "-p", str(os.getpid())], 125, "instructions")
    t.check(not os.path.exists(marker), "the program was run")


@test("cli/unwritable-file")
def unwritable(t):
    """Reported before the program starts."""
    marker = os.path.join(t.directory, "was-run")
    for name in ("/no/such/directory/out", "/proc/out.%p", t.directory, t.directory + "/"):
        refused(t, ["-o", name, "touch", marker], 125, re.escape(name.split("%")[0]))
        t.check(not os.path.exists(marker), "the program was run")
    for options in (["--xtree-memory=full", "--xtree-memory-file=/no/x"], ["--folded=/no/x"], ["--flame=/no/x"],
                    ["--leaks", "--leaks-out=/no/x"], ["--memusage", "--memusage-out=/no/x"], ["--data=/no/x"],
                    ["--sample", "--sample-out=/no/x"], ["--events=/no/x"]):
        one_line(t, ["-o", os.path.join(t.directory, "m"), *options, "touch", marker], 125, "cannot write /no/x")
        t.check(not os.path.exists(marker), "the program was run with %s" % options)
    t.check(not os.path.exists(os.path.join(t.directory, "m")), "a file of a program that was not run")


@test("cli/out-file-names")
def out_file_names(t):
    target = t.target("gcc-O2-pie", "empty")

    def files(pattern, **env):
        run = t.run([t.ptmem(), "-o", pattern, target], env=env)
        t.equal("status of -o %s (%s)" % (pattern, run.err.decode()), run.status, 0)
        names = [n for n in os.listdir(run.cwd) if n not in ("command", "stdout", "stderr", "truth")]
        t.equal("number of files of -o " + pattern, len(names), 1)
        massif.Massif(os.path.join(run.cwd, names[0]))
        return names[0]

    t.equal("plain", files("plain"), "plain")
    t.check(re.fullmatch(r"a\.\d+\.b", files("a.%p.b")), "%p")
    t.equal("%n", files("n.%n"), "n.1")
    t.equal("%%", files("x%%y"), "x%y")
    t.equal("%q", files("q.%q{WHO}", WHO="me"), "q.me")
    t.equal("--massif-out-file", files("c"), "c")
    for bad in ("%", "%z", "%q", "%q{", "%q{NOT_SET}", "~/x", ""):
        refused(t, ["-o", bad, "true"], 1)
        refused(t, ["--xtree-memory=allocs", "--xtree-memory-file=" + bad, "true"], 1)
        t.equal("a file that is not wanted", t.run([t.ptmem(), "-q", "--xtree-memory-file=" + bad, "true"]).status, 0)


@test("cli/help-and-version")
def help_and_version(t):
    run = t.run([t.ptmem(), "--help"])
    t.equal("status", run.status, 0)
    t.equal("standard error", run.err, b"")
    everyday = run.out.decode()
    t.check(everyday.count("\n      --") + everyday.count("\n  -") <= 12, "more than a dozen: " + everyday)
    for option in ("--pid", "--massif-out-file", "--top", "--leak-check", "--flame", "--help[=all]"):
        t.check(option in everyday, "no %s in --help" % option)
    run = t.run([t.ptmem(), "--help=all"])
    for option in ("--pid", "--duration", "--massif-out-file", "--time-unit", "--depth", "--threshold",
                   "--peak-inaccuracy", "--peak-at-exit", "--detailed-freq", "--max-snapshots", "--heap-admin",
                   "--alignment", "--alloc-fn", "--ignore-fn", "--trace-children", "--probes", "--events",
                   "--trace", "--sample", "--leaks", "--memusage", "--replay", "--stats", "--color", "--verbose",
                   "--quiet", "--version"):
        t.check(option.encode() in run.out, "no %s in --help=all" % option)
    t.equal("status of --help=none", t.run([t.ptmem(), "--help=none"]).status, 1)
    run = t.run([t.ptmem(), "--version"])
    t.equal("status", run.status, 0)
    t.check(re.fullmatch(rb"ptmem[ -]\d\S*\n", run.out), "version: %r" % run.out)


@test("cli/closed-output")
def closed_output(t):
    """--help into a full device is a failure, not a silent success."""
    with open("/dev/full", "wb") as full:
        run = subprocess.run([t.ptmem(), "--help"], stdout=full, stderr=subprocess.PIPE, check=False)
    t.check(run.returncode != 0, "status 0")


@test("cli/environment")
def environment(t):
    """PTMEM_OPTS come first; a later option wins."""
    target = t.target("gcc-O2-pie", "empty")
    run = t.run([t.ptmem(), "--massif-out-file=out", "--depth=7", target], env={"PTMEM_OPTS": "--depth=3 --threshold=2"})
    t.equal("status (%s)" % run.err.decode(), run.status, 0)
    found = massif.Massif(os.path.join(run.cwd, "out"))
    t.equal("desc", found.desc, "--depth=3 --threshold=2 --massif-out-file=out --depth=7")
    one_line(t, [target], 1, "--depth", env={"PTMEM_OPTS": "--depth=0"})


@test("cli/options-end-at-the-program")
def options_end(t):
    """Words after the program are its arguments."""
    run = t.run([t.ptmem(), "-q", "echo", "--help", "-p", "1"])
    t.equal("output", run.out, b"--help -p 1\n")
    run = t.run([t.ptmem(), "-q", "--", "echo", "--", "-q"])
    t.equal("output", run.out, b"-- -q\n")


@test("cli/arguments-and-environment-untouched")
def untouched(t):
    """The program sees its environment, descriptors and signal mask as without ptmem."""
    script = ("env | sort | grep -v '^_='; ls -l /proc/self/fd | wc -l; grep -E 'Sig(Blk|Ign|Cgt)' /proc/self/status; "
              "ulimit -a; umask; echo \"$@\"; ps -o stat= -p $$ >/dev/null; cat")
    argv = ["bash", "-c", script, "name", "a b", "", "$c", "d\ne"]
    cwd = t.subdirectory()
    native = t.native(argv, cwd=cwd, stdin=b"from standard input")
    profile = t.run([t.ptmem(), "-q", "--", *argv], cwd=cwd, stdin=b"from standard input")
    t.equal("output", profile.out.decode(), native.out.decode())
    t.equal("status", profile.status, native.status)


@test("cli/ignored-signals-stay-ignored")
def ignored_signals(t):
    """nohup: a program started with SIGHUP ignored keeps ignoring it, as does ptmem."""
    argv = ["grep", "SigIgn", "/proc/self/status"]
    cwd = t.subdirectory()

    def run(argv):
        return subprocess.run(argv, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                              preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))

    t.equal("SigIgn", run([t.ptmem(), "-q", *argv]).stdout, run(argv).stdout)


@test("cli/quiet")
def quiet(t):
    run = t.run([t.ptmem(), "-q", t.target("gcc-O2-pie", "empty")])
    t.equal("standard error", run.err, b"")


@test("cli/summary")
def summary(t):
    """The results, the file, and the command that reads it."""
    run = t.run([t.ptmem(), t.target("gcc-O2-pie", "mixed")])
    text = run.err.decode()
    name, = [n for n in os.listdir(run.cwd) if n.startswith("massif.out.")]
    truth = t.truth(run.cwd)
    for key in ("allocations", "bytes", "peak", "live"):
        t.check(format(truth[key], ",") in text, "%s (%s) is not in: %s" % (key, format(truth[key], ","), text))
    # those of pauses are there if they took long, which others that use the CPUs decide
    lines = [key for key in (line.split()[1] for line in text.splitlines()) if key not in ("paused", "stopped")]
    t.equal("the lines", lines, ["process", "peak", "written", "largest"] + lines[4:-2] + ["allocations", "at"])
    t.check(re.search(r"ptmem:   largest +[0-9.]+ (B|KiB|MiB) +[0-9.]+ %  \w+ \(mixed\.c:\d+\)", text), "no call site: " + text)
    t.check(name in text and "ptmem-report" in text, "no next step: " + text)
    text = t.run([t.ptmem(), "--memusage", "-o", "m", t.target("gcc-O2-pie", "mixed")]).err.decode()
    t.check("ptmem:   largest " in text, "no call site with --memusage: " + text)
    text = t.run([t.ptmem(), "-v", t.target("gcc-O2-pie", "mixed")]).err.decode()
    for word in ("complete", "stopped", "ms to place jumps"):
        t.check(word in text, "%s is not in: %s" % (word, text))


@test("cli/summary-titles")
def summary_titles(t):
    """A command line of any length takes one line, cut as the locale can show it; blanks with which a process pads its title
    are not shown."""
    for locale, end in (("C.UTF-8", "x\u2026"), ("C", "x..."), ("absent.UTF-8", "x...")):
        run = t.run([t.ptmem(), "sh", "-c", ": " + "x" * 5000 + "\n\033[31mred"], env={"LC_ALL": locale})
        line, = [l for l in run.err.decode().splitlines() if l.startswith("ptmem: process ")]
        t.check(len(line) < 140 and "\033" not in line and line.endswith(end), "title in locale %s: %r" % (locale, line))


def attached_title(t, argv0):
    """The "cmd:" line of a process with only this in its arguments."""
    cwd = t.subdirectory()
    with subprocess.Popen([argv0], executable="/bin/cat", cwd=cwd, stdin=subprocess.PIPE) as program:
        t.wait_until("cat to read", lambda: "cat" in os.readlink("/proc/%d/exe" % program.pid))
        t.run([t.ptmem(), "-p", str(program.pid), "--duration=0.05", "--massif-out-file=m"], cwd=cwd)
        program.stdin.close()
    return massif.Massif(os.path.join(cwd, "m")).cmd


@test("cli/summary-stops")
def summary_stops(t):
    """A run slowed down by breakpoints is reported, even if ptmem itself worked for a small part of it."""
    start = time.monotonic()
    run = t.run([t.ptmem(), "--stats", "--probes=break", "--", "sh", "-c", "x=$(seq 16000); set -- $x"])
    most = time.monotonic() - start
    line = re.search(r"  stopped +at ([0-9,]+) breakpoints in [0-9.]+ s: [0-9.]+ s for ptmem's work", run.err.decode())
    stops = int(re.search(rb"^ptmem: breakpoint stops: (\d+)$", run.err, re.M)[1])
    t.check(stops > 30000, "%d stops" % stops)
    # where others use the CPUs and each stop takes a millisecond, they are few for so long a run
    t.check(line or stops * 20e-6 < most / 50, "no line: %r" % run.err)


@test("cli/summary-sources")
def summary_sources(t):
    """The results of the other sources, in units, with separators, and without a file name for standard output."""
    argv = ["--trace=brk,mmap,faults", "--", t.target("gcc-O2-pie", "mixed")]
    text = t.run([t.ptmem(), *argv]).err.decode()
    size, exact = r"[0-9.]+ (?:B|[KMG]iB)", r"\((?:\d{1,3})(?:,\d{3})* bytes\)"
    for name, way in (("brk", "grown"), ("mmap", "mapped")):
        t.check(re.search(r"  %s +%s %s %s, %s in use, at most %s\n" % (name, size, exact, way, size, size), text),
                "%s: %s" % (name, text))
    t.check(re.search(r"  faults +(?:1 page|[0-9,]+ pages), %s %s\n" % (size, exact), text), "faults: " + text)
    t.equal("files", text.count("written to"), 3)
    text = t.run([t.ptmem(), "--folded=-", *argv]).err.decode()
    t.equal("paths on standard output", len(re.findall("written to +standard output\n", text)), 3)
    text = t.run([t.ptmem(), "-o", "-", *argv]).err.decode()
    t.check("written to" not in text, "profiles on standard output: " + text)
    text = t.run([t.ptmem(), "-o", "/dev/null", *argv]).err.decode()
    t.check("largest" in text and "written to" not in text, "profiles that nobody can read: " + text)
    text = t.run(["sh", "-c", 'exec "$@" >file', "sh", t.ptmem(), "-o", "/dev/stdout", "--", t.target("gcc-O2-pie", "mixed")]).err.decode()
    t.check("  written to   /dev/stdout\n" in text, "a name that is another file elsewhere: " + text)


@test("cli/summary-frees")
def summary_frees(t):
    """Without samples, releases are blocks; with samples they are calls, also free(NULL), and the summary says so."""
    program = t.target("gcc-O2-pie", "failures")
    run = t.run([t.ptmem(), program])
    blocks = t.truth(run.cwd)["frees"]
    t.check(", %d frees, " % blocks in run.err.decode(), "%d blocks: %s" % (blocks, run.err.decode()))
    run = t.run([t.ptmem(), "--heap-sample=64", "--record=r", program])
    shown = t.run([os.path.join(BUILD, "ptmem-report"), "r"], cwd=run.cwd)
    for text in (run.err.decode(), shown.out.decode()):
        said = re.search(r"^(?:ptmem:   )?allocations .*\b(\d+) calls of free or delete, also of NULL: counted exactly$", text, re.M)
        t.check(said and int(said[1]) > blocks, "%d blocks: %s" % (blocks, text))


@test("cli/written-files")
def written(t):
    """Every file is announced."""
    run = t.run([t.ptmem(), "--leaks", "--leaks-out=l.json", "--memusage", "--memusage-out=mu", "-o", "m",
                 t.target("gcc-O2-pie", "mixed")])
    said = re.findall(r"^ptmem:   written to   ([^;\n]+)", run.err.decode(), re.M)
    t.equal("files", sorted(os.path.basename(path) for path in said), ["l.json", "m", "mu"])


@test("cli/attached-titles")
def attached_titles(t):
    """The blanks with which a process pads the title that it writes over its arguments are in no file."""
    t.equal("a padded title", attached_title(t, "redis-server *:7391" + " " * 44), "redis-server *:7391")
    t.equal("an argument that ends in a blank", attached_title(t, "cat "), "cat ")


def hints(t, argv, **how):
    text = t.run([t.ptmem(), *argv], **how).err.decode()
    return [line[len("ptmem: hint: "):] for line in text.splitlines() if line.startswith("ptmem: hint: ")]


@test("cli/hints")
def cli_hints(t):
    """Hints about Python's own allocator and a stripped program; no hint without a reason."""
    cwd = t.subdirectory()
    python, stripped = os.path.join(cwd, "python3.99"), os.path.join(cwd, "stripped")
    mixed = t.target("gcc-O2-pie", "mixed")
    shutil.copy(mixed, python)
    subprocess.run(["strip", "-o", stripped, mixed], check=True)
    t.equal("of a program with symbols", hints(t, [mixed]), [])
    said = hints(t, [python], env={"PYTHONMALLOC": ""})
    t.check(len(said) == 1 and "PYTHONMALLOC=malloc" in said[0], "hints: %s" % said)
    t.equal("with PYTHONMALLOC", hints(t, [python], env={"PYTHONMALLOC": "malloc"}), [])
    said = hints(t, [stripped])
    t.check(len(said) == 1 and said[0].startswith("stripped is stripped"), "hints: %s" % said)
    large = os.path.join(cwd, "large")
    subprocess.run(["strip", "-o", large, t.target("gcc-O2-pie", "many")], check=True)
    said = hints(t, ["--trace-children=yes", "sh", "-c", "%s; %s; %s 10000000 1" % (python, stripped, large)], env={"PYTHONMALLOC": ""})
    t.equal("of Python: it alone", [h.startswith("Python's") for h in said].count(True), 1)
    t.check(said[0].startswith("large is stripped"), "the first is not of the largest process: %s" % said)
    t.check(re.search(r" \(process \d+, large(, and \d+ more)?\)$", said[0]), "of which process: %s" % said)
    sleeper = subprocess.Popen(["sleep", "600"])
    try:
        t.wait_until("it to sleep", lambda: is_asleep(sleeper.pid))
        said = hints(t, ["--duration=0.1", "-p", str(sleeper.pid)])
    finally:
        sleeper.kill()
        sleeper.wait()
    t.check(len(said) == 1 and said[0].startswith("nothing was allocated"), "hints: %s" % said)


SPLIT = """
#include <stdlib.h>
void *kept;
static inline __attribute__((always_inline)) void make(size_t n) { kept = malloc(n); }
int main(void) { make(100000); make(200000); return 0; }
"""


@test("cli/hints-split")
def cli_hints_split(t):
    """A program whose .dwo file is missing has no names for what is inlined: a hint says so, once."""
    cwd = t.subdirectory()
    t.equal("compiler", t.run([t.program("gcc"), "-g", "-O1", "-fno-builtin", "-gsplit-dwarf", "-o", "split", t.file("split.c", SPLIT)],
                              cwd=cwd).status, 0)
    split = [name for name in os.listdir(cwd) if name.endswith(".dwo")]
    t.equal("files", len(split), 1)
    t.equal("with the file", hints(t, ["./split"], cwd=cwd), [])
    os.remove(os.path.join(cwd, split[0]))
    said = hints(t, ["./split"], cwd=cwd)
    t.check(len(said) == 1 and said[0].startswith("split: inlined functions have no names"), "hints: %s" % said)
    os.mkfifo(os.path.join(cwd, split[0]))  # whatever opens it waits for a writer
    t.equal("with a FIFO", hints(t, ["./split"], cwd=cwd), said)
    t.equal("a graph with a FIFO", t.run([t.ptmem(), "-q", "--graph", "--graph-out=g", "./split"], cwd=cwd).status, 0)
    t.equal("without inlined functions", hints(t, ["--no-inline", "./split"], cwd=cwd), [])


NAMED = """
#include <stdlib.h>
void *nameless(size_t n);
void *volatile kept;
static __attribute__((noinline)) void named(size_t n) { kept = malloc(n); }
int main(int c, char **v) { (void)c; nameless(strtoul(v[1], 0, 0)); named(strtoul(v[2], 0, 0)); return 0; }
"""
NAMELESS = """
#include <stdlib.h>
static __attribute__((noinline)) void *make(size_t n) { void *volatile p = malloc(n); return p; }
void *nameless(size_t n) { void *volatile p = make(n); return p; }
"""


@test("cli/hints-stripped-part")
def cli_hints_stripped_part(t):
    """A stripped object deserves a hint if its call sites without names hold more than a twentieth of the peak."""
    cwd = t.subdirectory()
    flags = [t.program("gcc"), "-g", "-O1", "-fno-builtin"]
    for command in ([*flags, "-shared", "-fPIC", "-o", "part.so", t.file("part.c", NAMELESS)],
                    [*flags, "-o", "whole", t.file("whole.c", NAMED), "./part.so"]):
        t.equal("compiler", t.run(command, cwd=cwd).status, 0)
    for path in ("part.so", "whole"):
        for nameless, said in ((49000, []), (51000, [path])):
            sizes = [str(nameless), str(1000000 - nameless)]
            if path == "whole":
                sizes.reverse()
            t.equal("with names", hints(t, ["./whole", *sizes], cwd=cwd), [])
            shutil.copy(os.path.join(cwd, path), os.path.join(cwd, "with-names"))
            t.equal("strip", t.run([t.program("strip"), path], cwd=cwd).status, 0)
            t.equal("%s, %s" % (path, sizes), [h.split(" is stripped")[0] for h in hints(t, ["./whole", *sizes], cwd=cwd)], said)
            os.replace(os.path.join(cwd, "with-names"), os.path.join(cwd, path))
    # 100 of them with a 1000th each, none among the largest sites
    makers = "static __attribute__((noinline)) void make%d(void) { void *volatile p = malloc(1000); (void)p; }"
    source = "#include <stdlib.h>\nvoid *nameless(size_t n);\n%s\nint main(void) { %s nameless(900000); return 0; }\n" % (
        "\n".join(makers % i for i in range(100)), " ".join("make%d();" % i for i in range(100)))
    t.equal("compiler", t.run([*flags, "-s", "-o", "scattered", t.file("scattered.c", source), "./part.so"], cwd=cwd).status, 0)
    t.equal("scattered", [h.split(" is stripped")[0] for h in hints(t, ["./scattered"], cwd=cwd)], ["scattered"])
    # of several processes: of those that matter next to the largest one
    for size, said in (("10000000", ["scattered"]), ("30000000", [])):
        found = hints(t, ["--trace-children=yes", "sh", "-c", "./scattered; ./whole 100 %s" % size], cwd=cwd)
        t.equal("beside %s bytes" % size, [h.split(" is stripped")[0] for h in found], said)


@test("cli/setuid")
def setuid(t):
    """Without root a setuid program runs without its privileges: the user is warned."""
    if os.geteuid() != 0:
        raise Skip("only root can make another user's setuid program")
    program = t.for_others(t.target("gcc-O2-pie", "empty"))
    ptmem, user = t.for_others(t.ptmem()), pwd.getpwnam("nobody")
    cwd = t.subdirectory()
    os.chown(cwd, user.pw_uid, user.pw_gid)

    def warned():
        run = subprocess.run([ptmem, program], cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                             user=user.pw_uid, group=user.pw_gid, extra_groups=[])
        t.equal("status", run.returncode, 0)
        return "has a setuid or setgid bit" in run.stderr.decode()

    t.equal("a warning for a plain program", warned(), False)
    os.chmod(program, 0o4755)
    t.equal("a warning for a setuid program", warned(), True)


@test("cli/demo")
def demo(t):
    """make demo: its files are where it says, and the suggested next steps work."""
    script = os.path.join(harness.ROOT, "scripts", "demo")
    report = os.path.join(os.path.dirname(t.ptmem()), "ptmem-report")
    run = t.run([script, t.ptmem(), report, "left"])
    t.equal("status (%r)" % run.err, run.status, 0)
    left = sorted(os.listdir(os.path.join(run.cwd, "left")))
    t.check("demo.massif" in left and "demo.svg" in left, "files: %s" % left)
    said = run.out.decode() + run.err.decode()
    for path in re.findall(r"(?:written to|left/)\S*", run.out.decode()):
        t.check(path == "left/demo.png" or os.path.exists(os.path.join(run.cwd, path)), "not there: " + path)
    commands = re.findall(r"^\$ (.*)$", said, re.M)
    t.equal("commands", len(commands), 5)
    for command in commands[:-1]:
        again = t.run(["sh", "-c", command], cwd=run.cwd)
        t.equal("status of %s (%r)" % (command, again.err), again.status, 0)
    t.check(os.path.getsize(os.path.join(run.cwd, "left", "demo.png")) > 1000, "no picture")
    t.check(commands[-1].endswith("ptmem ./your-program its-arguments"), commands[-1])


@test("cli/packages")
def packages(t):
    """Missing build dependencies are listed in one line, with the command that installs them."""
    script = os.path.join(harness.ROOT, "scripts", "has-packages")
    t.equal("all there", t.run([script, "gcc", "libelf"]).err, b"")
    for arguments, missing in ((["gcc", "libelf", "no-such"], "no-such"), (["no-such-cc -O2", "libelf"], "no-such-cc"),
                               (["false", "libelf"], "stdio.h Zydis/Zydis.h libiberty/demangle.h zlib.h")):
        run = t.run([script, *arguments])
        t.equal("status", run.status, 1)
        t.equal("message", run.err.decode(), "ptmem: cannot be built, missing: %s; install with: "
                "scripts/install-deps build\n" % missing)
