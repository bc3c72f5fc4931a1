"""Where the files of a profile are, whatever the program does: doc/massif.md 1.6 and 2.13."""

import fcntl
import os
import re
import shutil
import signal
import subprocess

import events
import harness
import massif
from harness import test
from process_lib import state


def run(t, words, options=(), status=6, env=None):
    result = t.profile([t.target("gcc-O2-pie", "wanderer"), *words], options, env=env)
    t.equal("status", result.status, status)
    return result


def heaps(path):
    return [s["mem_heap_B"] for s in massif.Massif(path).snapshots if s["mem_heap_B"]]


def register(name, words, status=6, options=()):
    @test("files/" + name)
    def _(t):
        result = run(t, words, options, status)
        want = [1000 * (i + 1) for i in range(len(words))]
        found = heaps(one_file(t, result))
        t.equal("bytes by snapshot", sorted(set(found)), want)


def one_file(t, result):
    files = [f for of_pid in result.files.values() for f in of_pid]
    t.equal("files", len(files), 1)
    return files[0]


for probes in ("break", "jump"):
    OPTIONS = ["--probes=" + probes]
    register("chdir-" + probes, ["chdir", "x"], options=OPTIONS)
    register("close-" + probes, ["x", "close", "x", "x"], options=OPTIONS)
    register("killed-" + probes, ["chdir", "close", "x", "kill"], -signal.SIGKILL, OPTIONS)
    register("aborted-" + probes, ["x", "abort"], -signal.SIGABRT, OPTIONS)


@test("files/names")
def _(t):
    """%p, %q, %n and %% for each process of a fork."""
    result = run(t, ["chdir", "fork", "x"], ["--massif-out-file=sub.%q{WHO}.%p.%%"], env={"WHO": "me"})
    names = sorted(n for n in os.listdir(result.directory) if n.startswith("sub."))
    t.equal("names", names, sorted("sub.me.%d.%%" % s["pid"] for s in result.stats))
    t.equal("processes", len(names), 2)
    for name in names:
        t.equal("bytes in " + name, sorted(set(heaps(os.path.join(result.directory, name)))), [1000, 2000, 3000])
    result = run(t, ["fork", "fork", "x"], ["--massif-out-file=n.%n"])
    t.equal("numbers", sorted(n for n in os.listdir(result.directory) if n.startswith("n.")), ["n.%d" % i for i in (1, 2, 3, 4)])
    result = run(t, ["fork", "x"], ["--massif-out-file=one"])
    for name in ("one", "one.%d" % result.stats[0]["pid"]):  # the parent waits for the child
        t.equal("bytes in " + name, sorted(set(heaps(os.path.join(result.directory, name)))), [1000, 2000])


@test("files/exec")
def _(t):
    """Each program of a process has its file; the last one has the name alone."""
    words = ["x", "exec", "x", "x", "exec", "chdir"]
    follow = ["--trace-children=yes"]
    result = run(t, words, [*follow, "--massif-out-file=m"])
    for name, most in (("m.1", 2000), ("m.2", 3000), ("m", 1000)):
        t.equal("bytes in " + name, max(heaps(os.path.join(result.directory, name))), most)
    result = run(t, words, [*follow, "--massif-out-file=m.%n"])
    t.equal("names with %n", sorted(n for n in os.listdir(result.directory) if n.startswith("m.")), ["m.1", "m.2", "m.3"])
    result = run(t, words, ["--massif-out-file=m", "--follow-exec=no"])
    t.equal("not followed", max(heaps(os.path.join(result.directory, "m"))), 2000)
    result = run(t, words, ["--massif-out-file=m", "--events=e", "--record=r"])
    t.equal("of the last program alone", [n for n in sorted(os.listdir(result.directory)) if n[0] in "mer"], ["e", "m", "r"])
    t.equal("bytes of it", max(heaps(os.path.join(result.directory, "m"))), 1000)
    result = run(t, words, [*follow, "--massif-out-file=m", "--trace-children-skip=*/exe"])
    t.equal("skipped", [n for n in os.listdir(result.directory) if n.startswith("m")], ["m"])
    result = run(t, words, [*follow, "--massif-out-file=m", "--trace-children-skip-by-arg=none,chdi?"])
    t.equal("skipped by argument", [n for n in os.listdir(result.directory) if n.startswith("m")], ["m"])


@test("files/log")
def _(t):
    result = run(t, ["fork", "close"], ["--log-file=log.%q{WHO}", "--child-silent-after-fork=yes", "--trace=heap,brk",
                                       "--xtree-memory=allocs"], env={"WHO": "me"})
    t.equal("messages on standard error", result.messages, [])
    with open(os.path.join(result.directory, "log.me"), encoding="utf-8") as file:
        lines = file.read().split("\n")
    for start in ("process ", "  brk ", "xtree memory report: "):
        t.equal("lines in the log with " + start, sum(l.startswith("ptmem: " + start) for l in lines), 1)
    result = t.profile([t.target("gcc-O2-pie", "wanderer"), "x"], ["--trace-malloc=yes"])
    t.equal("calls", sum(" malloc(1000) = 0x" in m for m in result.messages), 1)
    failed = t.run([t.ptmem(), "--log-file=/nonexistent/x", "true"])
    t.equal("a log that cannot be", (failed.status, b"cannot create log file" in failed.err), (1, True))


@test("files/log-full")
def _(t):
    """If the log file is full, messages continue on standard error."""
    result = t.run([t.ptmem(), "-o", "m", "--log-file=/dev/full", t.target("gcc-O2-pie", "paths")])
    lines = result.err.decode().splitlines()
    t.equal("status", result.status, 0)
    t.equal("the first line", lines[0], "ptmem: warning: the log cannot be written: No space left on device; it continues here")
    t.equal("summary", sum(line.startswith("ptmem:   peak ") for line in lines), 1)
    t.equal("complaints", sum("the log cannot" in line for line in lines), 1)


@test("files/soname-synonyms")
def _(t):
    """The allocators of libc are always watched, others as the pattern says."""
    for value, allocations in ((None, True), ("somalloc=nouserintercepts", False), ("somalloc=*jemalloc*", True),
                               ("other=x", True), ("somalloc=NONE", False)):
        options = ["--soname-synonyms=" + value] if value else []
        result = t.profile([t.target("linked-jemalloc", "paths")], options)
        t.equal("allocations seen with %s" % value, result.only_stats()["allocations"] > 0, allocations)


@test("files/closed-standard-files")
def closed_standard_files(t):
    """ptmem's files do not use the numbers of closed standard files; the program finds these closed."""
    ends = os.path.join(t.directory, "ends")
    program = "echo; for i in 0 1 2; do test -e /proc/$$/fd/$i && echo $i >>%s; done; exit 3" % ends
    shell = t.program("sh")
    for closed in ("0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"):
        cwd = t.subdirectory()
        command = "%s -v -o m --data=d --memusage --sample=1 --sample-out=s %s -c '%s' %s" % (
            t.ptmem(), shell, program, closed)
        t.equal("status with " + closed, t.run(["sh", "-c", command], cwd=cwd).status, 3)
        with open(ends, "r+", encoding="ascii") as file:
            t.equal("open in the program", file.read().split(), [i for i in "012" if i not in closed])
            file.truncate(0)
        massif.Massif(os.path.join(cwd, "m"))
        with open(os.path.join(cwd, "d"), "rb") as file:
            t.equal("data: whole records", len(file.read()) % 24, 0)
        with open(os.path.join(cwd, "s"), encoding="ascii") as file:
            lines = file.read().splitlines()
        t.check(all(re.fullmatch(r"[0-9.]+(\t[0-9]+)+", line) for line in lines[1:]), "samples: %r" % lines)
    t.check(t.run(["sh", "-c", "%s --help >&-" % t.ptmem()]).status != 0, "help to a closed descriptor is a failure")


@test("files/full-disk")
def full_disk(t):
    """A profile for a full disk is not lost: it is written completely to a new directory, which ptmem names."""
    cwd, elsewhere = t.subdirectory(), t.subdirectory()
    result = t.run([t.ptmem(), "-o", "/dev/full", t.target("gcc-O2-pie", "mixed")], cwd=cwd, env={"TMPDIR": elsewhere})
    t.equal("status", result.status, 125)
    said = re.search(rb"cannot write /dev/full: No space left on device; the profile is in (\S+)\n", result.err)
    t.check(said, "no word of it: %r" % result.err)
    path = said[1].decode()
    t.equal("files", [os.path.join(top, name) for top, _, names in os.walk(elsewhere) for name in names], [path])
    t.check(re.search(r"/ptmem-\w{6}/massif\.out\.\d+$", path), "its name: " + path)
    t.equal("live bytes", massif.Massif(path).snapshots[-1]["mem_heap_B"], t.truth(cwd)["live"])


# How a process waits: what /proc/PID/syscall begins with (x86-64).
WAITS = {"write": ["1"], "open": ["257", "437"]}  # openat, openat2


def wait_in(t, pid, call):
    """For what another process does: for a file of a disk its state is another one."""
    def now():
        with open("/proc/%d/syscall" % pid, encoding="ascii") as file:
            return file.read()

    def is_there():
        before = now()
        return before.split()[0] in WAITS[call] and state(pid) == "S" and now() == before
    t.wait_until("ptmem waits in " + call, is_there)


def interrupt(t, pid, call, number=signal.SIGUSR1):
    """The signal comes while ptmem waits in @call, again and again."""
    def has_come():
        with open("/proc/%d/status" % pid, encoding="ascii") as file:
            pending = re.search(r"^ShdPnd:\s*(\w+)$", file.read(), re.M)[1]
        return not int(pending, 16) & 1 << (number - 1)
    for _ in range(3):
        wait_in(t, pid, call)
        os.kill(pid, number)
        t.wait_until("the signal has come", has_come)


def read_slowly(t, options, call, to_stdout):
    """What comes out of FIFO @options write to, or out of standard output, when ptmem is interrupted in @call."""
    cwd = t.subdirectory()
    argv = [t.ptmem(), "-q", "--time-unit=B", *options, t.target("gcc-O2-pie", "mixed")]
    fifo, reader, writer = os.path.join(cwd, "fifo"), None, None
    if to_stdout:
        reader, writer = os.pipe()
        fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, 4096)
    else:
        os.mkfifo(fifo)
        if call == "write":
            reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
            fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, 4096)
            os.set_blocking(reader, True)
    process = subprocess.Popen(argv, cwd=cwd, env=t.environment(cwd), stdout=writer, stderr=subprocess.PIPE)
    if writer is not None:
        os.close(writer)
    interrupt(t, process.pid, call)
    with open(fifo if reader is None else reader, "rb") as file:
        text = file.read()
    t.equal("messages", process.stderr.read(), b"")
    t.equal("status", process.wait(), 0)
    return text


def plain_lines(text):
    """Without the options, which name the file, and without what differs from run to run."""
    text = re.sub(rb"0x[0-9A-F]{6,}", b"ADDRESS", re.sub(rb"(pid:|process) \d+", b"PID", text))
    return [line for line in text.split(b"\n") if not line.startswith(b"desc:")]


def register_interrupted(name, option, call="write", more=()):
    @test("files/interrupted-" + name)
    def _(t):
        """Signals while ptmem waits for a reader do not truncate a file."""
        cwd = t.subdirectory()
        argv = [t.ptmem(), "-q", "--time-unit=B", *more, option + "=plain", t.target("gcc-O2-pie", "mixed")]
        t.equal("status", t.run(argv, cwd=cwd).status, 0)
        with open(os.path.join(cwd, "plain"), "rb") as file:
            want = plain_lines(file.read())
        for to_stdout in (False, True) if call == "write" and option != "--events" else (False,):
            got = read_slowly(t, [*more, option + ("=-" if to_stdout else "=fifo")], call, to_stdout)
            if option == "--events":
                name = t.file("events", got.decode())
                t.check(events.Events(name).is_complete, "a cut file of events")
            else:
                t.check(plain_lines(got) == want, "%d bytes that differ from the file" % len(got))


MANY_LINES = ["--threshold=0", "--detailed-freq=1"]
register_interrupted("open", "--massif-out-file", call="open")
register_interrupted("massif", "--massif-out-file", more=MANY_LINES)
register_interrupted("events", "--events")
register_interrupted("xtree", "--xtree-memory-file", more=["--xtree-memory=full"])
register_interrupted("flame", "--flame")


@test("files/fifo-without-reader")
def fifo_without_reader(t):
    """ptmem detaches even if no process reads its FIFO: the profile goes where it goes if the disk is full."""
    cwd, elsewhere = t.subdirectory(), t.subdirectory()
    os.mkfifo(os.path.join(cwd, "fifo"))
    process = subprocess.Popen([t.ptmem(), "-q", "-o", "fifo", t.target("gcc-O2-pie", "mixed")], cwd=cwd,
                               env=t.environment(cwd, TMPDIR=elsewhere), stderr=subprocess.PIPE)
    wait_in(t, process.pid, "open")
    process.terminate()
    said = re.search(rb"cannot write \S*fifo: Interrupted system call; the profile is in (\S+)\n", process.stderr.read())
    t.check(said, "no word of it")
    t.equal("status", process.wait(), -signal.SIGTERM)
    massif.Massif(said[1].decode())


@test("files/interrupted-detach")
def interrupted_leaving(t):
    """A second SIGINT while ptmem writes must not restart the timer, or ptmem would never exit."""
    cwd = t.subdirectory()
    fifo, calls = os.path.join(cwd, "fifo"), os.path.join(cwd, "calls")
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, 4096)
    os.set_blocking(reader, True)
    program = subprocess.Popen([t.target("gcc-O2-pie", "monitored")], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    t.equal("the program's line", program.stdout.readline(), b"ready\n")
    strace = [t.program("strace"), "-qq", "-o", calls, "-e", "trace=setitimer", "-e", "signal=none"]
    argv = [*strace, t.ptmem(), "-o", "m", "--flame=fifo", "-p", str(program.pid)]
    process = subprocess.Popen(argv, cwd=cwd, env=t.environment(cwd), stderr=subprocess.PIPE)
    t.wait_until("attached", lambda: b"attached" in process.stderr.readline())
    with open("/proc/%d/task/%d/children" % (process.pid, process.pid), encoding="ascii") as file:
        pid = int(file.read().split()[0])
    os.kill(pid, signal.SIGTERM)
    interrupt(t, pid, "write", signal.SIGTERM)
    with open(reader, "rb") as file:
        t.check(file.read().endswith(b"</svg>\n"), "a cut picture")
    t.equal("status", process.wait(), 0)
    with open(calls, encoding="utf-8") as file:
        last = file.read().splitlines()[-1]
    t.check(last.count("tv_usec=0}") == 2, "the last timer: " + last)
    program.communicate()


def with_limit(t, which, kilobytes, argv, cwd):
    """Limits the size of files; which: "-S" sets the soft limit, "" both."""
    return t.run(["bash", "-c", 'ulimit %s -f %d; exec "$@"' % (which, kilobytes), "-", *argv], cwd=cwd)


@test("files/size-limit")
def size_limit(t):
    """The shared memory is not limited by the user's limit of file sizes (setrlimit(2))."""
    program = [t.target("gcc-O2-pie", "sandboxed"), "none"]
    for which in ("-S", ""):
        cwd = t.subdirectory()
        options = ["--stats", *harness.MORE_OPTIONS]
        run = harness.Profile(with_limit(t, which, 64, [t.ptmem(), *options, *program], cwd), cwd)
        t.equal("status and output", (run.status, run.out), (0, b"OK\n"))
        t.equal("allocations", run.only_stats()["allocations"], 3001)
        run.only_massif()
        said = [m.split(" ", 3)[3] for m in run.messages if "stays on" in m]
        if which:
            t.equal("it is said", said, [])
            is_promoted = not [o for o in options if o.startswith("--probes=")]
            t.check(not is_promoted or run.only_stats()["functions with jumps"] > 0, "no jumps")
        else:  # a privilege may still help
            t.check(said in ([], ["stays on breakpoints: files are limited (ulimit -f)"]), str(said))


@test("files/size-limit-of-reports")
def size_limit_of_reports(t):
    """A report that becomes too large is an error with its name, and leaves no file."""
    cwd = t.subdirectory()
    t.run([t.ptmem(), "-q", "-o", "m", t.target("gcc-O2-pie", "mixed")], cwd=cwd)
    for option in ("--flame=out", "--png=out", "--svg=out"):
        run = with_limit(t, "", 1, [os.path.join(harness.BUILD, "ptmem-report"), option, "m"], cwd)
        t.equal("status with " + option, run.status, 1)
        t.check(b"File too large" in run.err, "message with %s: %r" % (option, run.err))
        t.equal("what it leaves", [n for n in os.listdir(cwd) if n.startswith((".", "out"))], [])


@test("files/messages-to-a-closed-pipe")
def messages_to_a_closed_pipe(t):
    """Messages that no process reads are lost; the program, its profile and its signals are not."""
    for options in ([], ["-v"], ["-v", "-v"]):
        cwd = t.subdirectory()
        reader, writer = os.pipe()
        os.close(reader)
        try:
            run = subprocess.run([t.ptmem(), *options, "-o", "m", "sh", "-c", "grep SigIgn /proc/self/status; : >done"],
                                 cwd=cwd, env=t.environment(cwd), stdout=subprocess.PIPE, stderr=writer, check=False,
                                 restore_signals=True)
        finally:
            os.close(writer)
        t.equal("status with %s" % options, run.returncode, 0)
        t.check(os.path.exists(os.path.join(cwd, "done")) and massif.Massif(os.path.join(cwd, "m")).snapshots, "no profile")
        ignored = int(run.stdout.split()[1], 16)
        t.equal("SIGPIPE and SIGXFSZ of the program", ignored & (1 << signal.SIGPIPE - 1 | 1 << signal.SIGXFSZ - 1), 0)


@test("files/size-limit-of-the-program")
def size_limit_of_the_program(t):
    """The program keeps its limits and dies of them as without ptmem; ptmem reports what it cannot write."""
    grow = ["bash", "-c", "ulimit -S -f; ulimit -H -f; exec head -c 99999 /dev/zero >large"]
    native, run = (with_limit(t, "-S", 64, [*own, *grow], t.subdirectory()) for own in ([], [t.ptmem(), "-q"]))
    t.equal("killed", native.status, -signal.SIGXFSZ)
    t.equal("status and limits", (run.status, run.out), (native.status, native.out))
    cwd, elsewhere = t.subdirectory(), t.subdirectory()
    argv = [t.ptmem(), "-q", "--events=e", "-o", "m", t.target("gcc-O2-pie", "mixed")]
    run = t.run(["bash", "-c", 'ulimit -f 4; TMPDIR=%s exec "$@"' % elsewhere, "-", *argv], cwd=cwd)
    t.equal("status", run.status, 125)
    for name in (b"e", b"m"):
        t.check(re.search(rb"cannot write (\S*/)?%s: File too large" % name, run.err), "%s: %r" % (name, run.err))
    t.equal("the profile, cut", [n for n in os.listdir(cwd) if n == "m" or n.startswith(".ptmem")], [])


def visible(path):
    """As messages print it."""
    return "".join("\\n" if c == "\n" else "\\x%02x" % ord(c) if c < " " or c == "\x7f" else
                   "\\xc2\\x9b" if c == "\x9b" else "\\xff" if c == "\udcff" else c for c in path)


@test("files/control-characters")
def control_characters(t):
    """Names of directories, files, programs and libraries reach the terminal as text: as one line each, and nothing acts."""
    name = "d\x1b[31m\nall is well \x9b2J\x7f\udcff\u00e9"
    cwd = t.subdirectory()
    directory = os.path.join(cwd, name)
    os.mkdir(directory)
    program = shutil.copy(t.target("gcc-O2-pie", "mixed"), os.path.join(directory, "mixed"))
    missing = os.path.join(name, "missing")
    report_program = os.path.join(harness.BUILD, "ptmem-report")
    runs = [
        ([t.ptmem(), "-o", "%s/m" % name, "--record=%s/r" % name, "--folded=%s/f" % name, program, "3", "300"], 0, "written to   "),
        ([t.ptmem(), "-o", missing + "/m", program], 125, "cannot write "),
        ([t.ptmem(), "--record=%s/r" % missing, program], 125, "cannot write "),
        ([t.ptmem(), "--replay=" + missing], 125, "cannot read "),
        ([t.ptmem(), missing], 127, ""),
        ([t.ptmem(), "--no-such-%s" % name, program], 1, "unknown option"),
        ([report_program, missing], 2, "cannot read "),
        ([report_program, "--html=%s/h" % missing, "%s/m" % name], 1, "cannot write "),
        ([report_program, "--diff", "%s/m" % name, missing], 2, "cannot read "),
    ]
    for argv, status, text in runs:
        run = subprocess.run([os.fsencode(a) for a in argv], cwd=cwd, env=t.environment(cwd), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             check=False)
        said = run.stderr
        t.equal("status of %r: %r" % (argv[1:], said), run.returncode, status)
        t.equal("control characters of %r" % said, [c for c in said.decode("utf-8") if c < " " and c != "\n" or "\x7f" <= c < "\xa0"], [])
        lines = said.decode("utf-8").splitlines()
        t.check(lines and all(re.match("ptmem(-report)?: ", line) for line in lines), "lines: %r" % lines)
        t.check(any(text in line and visible(name) in line for line in lines), "%s in %r" % (text, lines))


LINKED = {"-o": [], "--record": [], "--html": [], "--log-file": [], "--events": [], "--data": [], "--flame": [], "--leaks-out": ["--leak-check"],
          "--sample-out": ["--sample"], "--memusage-out": ["--memusage"]}


@test("files/links-of-others")
def _(t):
    """As root: in a directory like /tmp no link of another user is followed, whatever fs.protected_symlinks says; others are."""
    if os.geteuid() != 0:
        raise harness.Skip("only root can make links of other users")
    place, victim = t.subdirectory(), t.file("victim", "precious\n")
    os.chmod(place, 0o1777)
    links = {name: os.path.join(place, name) for name in ("evil", "directory", "own")}
    for name, link in links.items():
        os.symlink(os.path.dirname(victim) if name == "directory" else victim, link)
        if name != "own":
            os.chown(link, 65534, -1, follow_symlinks=False)
    hop = os.path.join(t.subdirectory(), "hop")  # root's own link in a directory of root's that leads to the one of another user
    os.symlink(links["evil"], hop)
    here = t.subdirectory()
    for option, more in LINKED.items():
        for path in (links["evil"], links["directory"] + "/victim", hop):
            value = ["-o", path] if option == "-o" else [option + "=" + path]
            result = t.run([t.ptmem(), "-q", *more, *value, "/bin/true"], cwd=here)
            t.check(result.status in (1, 125) and b"cannot " in result.err, "%s: %d %r" % (value, result.status, result.err))
            with open(victim, encoding="ascii") as file:
                t.equal("the file behind %s" % value, file.read(), "precious\n")
    t.equal("nothing is left", sorted(os.listdir(place)), sorted(links))
    result = t.run([t.ptmem(), "-q", "-o", links["own"], "/bin/true"], cwd=here)
    t.equal("status", (result.status, os.path.islink(links["own"]), os.path.getsize(victim) > 50), (0, True, True))
    report = os.path.join(harness.BUILD, "ptmem-report")
    profile = shutil.copy(victim, here)
    for option in ("--png", "--svg", "--html"):
        result = t.run([report, option + "=" + links["evil"], profile])
        t.equal("%s: %r" % (option, result.err), result.status, 1)
        t.check(b"cannot write %s: it is, or leads through, a symbolic link" % os.fsencode(links["evil"]) in result.err, "%r" % result.err)
