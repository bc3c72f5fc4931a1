"""memusage: the reference cases and programs beside the real one, data files, the sampler.

The cases are in tests/memusage, what memusage printed for them in tests/memusage/expected.
Where ptmem differs on purpose, the case lists what it says instead.
"""

import contextlib
import glob
import itertools
import os
import re
import shutil
import struct
import subprocess
import time

import harness
import oracle
from harness import Skip, test

DIRECTORY = os.path.join(os.path.dirname(harness.HERE), "memusage")
STACK = re.compile(r"stack peak: \d+")
HEAP_PEAK = re.compile(r"heap peak: \d+")
BAR = "=" * 50

# Case: (options, program arguments, status, what ptmem says instead of memusage)
CASES = {
    "cycles": ([], [], 0, []),
    "cycles_nostdio": ([], [], 0, []),
    "empty": ([], [], 0, []),
    "execer": ([], ["PROGRAM:nops", "3"], 0, []),
    "failed": ([], [], 0, []),
    "forker": ([], [], 0, []),
    "hist": ([], [], 0, []),
    "quiet_exit": ([], ["exit"], 5, []),
    "spawner": ([], ["PROGRAM:nops", "3"], 0, []),
    "stackdown": ([], [], 0, []),
    "stackonly": ([], [], 0, []),
    "maps_without_m": ([], ["scratch"], 0, []),
    # failures are failures; what is live is what is mapped
    "maps": (["-m"], ["scratch"], 0, [
        ("heap peak: 1152921504606909320", "heap peak: 115592"),
        ("mmap(r)|          2          12288              0", "mmap(r)|          2          12288              1"),
        ("1152921504606900224              0  (", "1152921504606900224              1  ("),
    ]),
    "maps_anon": (["-m"], [], 0, [("heap peak: 18446744073709544424", "heap peak: 9192")]),
    # memusage's own thread-local block makes each thread's calloc 16 bytes larger
    "threads": ([], [], 0, [
        ("heap total: 261152", "heap total: 261088"), ("1152   ", "1088   "),
        ("  288-303             8  <1% \n", "  272-287             4  <1% \n  288-303             4  <1% \n"),
    ]),
    # the memalign family is counted
    "aligned": ([], [], 0, [
        ("heap total: 210, heap peak: 210", "heap total: 10458, heap peak: 10458"),
        ("          2            210\n",
         "          2            210\nmemalign|         5          10248              0  (realloc:1, free:5)\n"),
        ("    0-15              1  50% " + BAR + "\n  192-207             1  50% " + BAR + "\n",
         "".join("%s%2d%% %s\n" % (line, share, "=" * bar) for line, share, bar in (
             ("    0-15              1  ", 12, 25), ("   96-111             2  ", 25, 50),
             ("  192-207             1  ", 12, 25), ("  992-1007            1  ", 12, 25),
             (" 2048-2063            1  ", 12, 25), (" 2992-3007            1  ", 12, 25),
             (" 4992-5007            1  ", 12, 25)))),
    ]),
    "newdel": ([], [], 0, [
        ("heap total: 72744, heap peak: 72744", "heap total: 72808, heap peak: 72768"),
        ("          1             40\n",
         "          1             40\nmemalign|         1             64              0  (realloc:0, free:1)\n"),
        ("   32-47              1  50% " + BAR + "\n   large              1  50% " + BAR,
         "   32-47              1  33% " + BAR + "\n   64-79              1  33% " + BAR +
         "\n   large              1  33% " + BAR),
    ]),
}
SOURCE = {"maps_without_m": "maps", "quiet_exit": "quiet"}


def memusage_program():
    path = os.path.join(harness.BUILD, "ptmem-memusage")
    if not os.path.exists(path):
        raise harness.Fail("%s is not built" % path)
    return path


def compiled(t, name, directory=DIRECTORY, options=()):
    """The program of a source; as the expectations were made: nothing is left out by the compiler."""
    source = next(p for e in (".c", ".cc") for p in [os.path.join(directory, name + e)] if os.path.exists(p))
    binary = os.path.join(t.subdirectory(), name)
    compiler = ["g++"] if source.endswith(".cc") else ["gcc"]
    t.equal("compiler", t.run([*compiler, "-O0", "-fno-builtin", "-w", "-pthread", *options, "-o", binary,
                               source]).status, 0)
    return binary


def masked(text, peak=False):
    text = STACK.sub("stack peak: S", text)
    return HEAP_PEAK.sub("heap peak: P", text) if peak else text


def run_case(t, name, extra=()):
    options, arguments, status, _ = CASES[name]
    program = compiled(t, SOURCE.get(name, name))
    arguments = [compiled(t, a[8:]) if a.startswith("PROGRAM:") else a for a in arguments]
    run = t.run([memusage_program(), *options, *extra, program, *arguments])
    t.equal("status", run.status, status)
    return run.err.decode()


def exception_pool(t):
    """Bytes that libstdc++ allocates before main: 72704 where the expectations were made."""
    cwd = t.subdirectory()
    t.run([t.target("gcc-O2-pie", "empty_cxx")], cwd=cwd, env={"LD_PRELOAD": t.oracle_library()})
    (page,), = oracle.read_pages(cwd).values()
    return page.all["bytes"]


def register_case(name):
    @test("memusage/case-" + name)
    def case(t):
        with open(os.path.join(DIRECTORY, "expected", name + ".txt"), encoding="ascii") as file:
            want = file.read()
        for old, new in CASES[name][3]:
            t.check(old in want, "the expectation has no %r" % old)
            want = want.replace(old, new)
        if name == "newdel":
            more = exception_pool(t) - 72704
            want = re.sub(r"\b72\d\d\d\b", lambda m: str(int(m[0]) + more), want)
        got = run_case(t, name)
        t.equal("report", masked(got, name == "threads").split("\n"), masked(want, name == "threads").split("\n"))


for case_name in CASES:
    register_case(case_name)


@test("memusage/ends-without-destructors")
def ends(t):
    program = compiled(t, "quiet")
    for how, status in (("_exit", 3), ("abort", -6), ("kill", -15), ("close", 5)):
        run = t.run([memusage_program(), program, how])
        t.equal("status of " + how, run.status, status)
        freed = 1 if how == "close" else 0
        t.check(b" malloc|          1             77              0\n" in run.err, "no report after " + how)
        t.check(b"   free|          %d " % freed in run.err, "frees of " + how)


@test("memusage/static")
def static(t):
    run = t.run([memusage_program(), compiled(t, "cycles_nostdio", options=["-static"])])
    t.check(b"realloc|         40          44040" in run.err, "report: %r" % run.err)


def beside_names():
    return sorted(os.path.splitext(os.path.basename(p))[0] for p in glob.glob(os.path.join(DIRECTORY, "beside", "*.c*")))


BESIDE_OPTIONS = {"written": ["-m"]}


@test("memusage/library-destructors")
def ending(t):
    """What destructors of libraries do does not count, as memusage is gone by then; the program's own does."""
    directory = os.path.join(DIRECTORY, "ending")
    for flags in ([], ["-no-pie"], ["-s"]):
        library = os.path.join(t.subdirectory(), "libending.so")
        t.equal("library", t.run(["gcc", "-O0", "-shared", "-fPIC", "-fno-builtin", "-o", library,
                                  os.path.join(directory, "library.c")]).status, 0)
        program = compiled(t, "program", directory, [*flags, "-Wl,--no-as-needed,-rpath," + os.path.dirname(library),
                                                  library])
        want = re.compile(rb"   free\|         44           1800\n")
        peer = t.run(["memusage", program]) if shutil.which("memusage") else None
        for probes in ("auto", "break", "jump"):
            run = t.run([t.ptmem(), "-q", "--heap=no", "--memusage", "--data=d", "--no-timer",
                         "--probes=" + probes, program])
            t.check(want.search(run.err), "frees in %r" % run.err)
            t.equal("records", len(records(os.path.join(run.cwd, "d"))[0]), 2 + 2 * 43 + 50)
            if peer:
                t.equal("report (%s)" % probes, masked(run.err.decode()).split("\n"),
                        masked(colourless(peer.err.decode())).split("\n"))
        t.run([t.ptmem(), "-q", "--heap=no", "--events=e", "--memusage", program], cwd=run.cwd)
        again = t.run([t.ptmem(), "-q", "-o", "n", "--memusage", "--replay=e"], cwd=run.cwd)
        t.equal("replayed", masked(again.err.decode()), masked(run.err.decode()))


def colourless(text):
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def register_beside(name):
    @test("memusage/peer-" + name)
    def beside(t):
        if not shutil.which("memusage"):
            raise Skip("memusage is not installed")
        program = compiled(t, name, os.path.join(DIRECTORY, "beside"))
        options = BESIDE_OPTIONS.get(name, [])
        peer = t.run(["memusage", *options, program])
        for probes in ("auto", "break", "jump"):
            run = t.run([t.ptmem(), "-q", "--heap=no", "--memusage", "--probes=" + probes, *options, program])
            t.equal("status", run.status, peer.status)
            t.equal("report (%s)" % probes, masked(run.err.decode()).split("\n"),
                    masked(colourless(peer.err.decode())).split("\n"))


for beside_name in beside_names():
    register_beside(beside_name)


@test("memusage/colours")
def colours(t):
    if not shutil.which("memusage"):
        raise Skip("memusage is not installed")
    program = compiled(t, "hist")
    peer = t.run(["memusage", program])
    run = t.run([t.ptmem(), "-q", "--heap=no", "--memusage", "--color=always", program])
    t.equal("report", masked(run.err.decode()).split("\n"), masked(peer.err.decode()).split("\n"))


# -- data files --


def records(path):
    with open(path, "rb") as file:
        data = file.read()
    return [struct.unpack_from("<QQQ", data, at) for at in range(0, len(data), 24)], len(data) % 24


@test("memusage/data")
def data(t):
    program = compiled(t, "stackdown")
    seen = set()
    for extra in ([], ["-u"], ["-b", "2"]):
        run = t.run([memusage_program(), "--no-timer", *extra, "-d", "a b.dat", program])
        found, rest = records(os.path.join(run.cwd, "a b.dat"))
        t.equal("bytes left over", rest, 0)
        heaps = [r[0] for r in found]
        t.equal("heap", heaps, [0, 16] + [16, 0] * 10)
        depths = [r[1] for r in found[2:]]
        t.equal("depths go down and up", depths[2:18:2], sorted(depths[2:18:2]))
        t.check(all(4096 <= b - a < 4400 for a, b in zip(depths[2:18:2], depths[4:18:2])), "steps: %r" % depths)
        t.equal("peaks", (found[1][1], found[0][1]), (max(depths), max(h + d for h, d in zip(heaps[2:], depths))))
        t.check(found[0][2] < found[2][2] <= found[-1][2] < found[1][2], "times")
        seen.add(tuple(depths))
        if shutil.which("memusagestat"):
            t.equal("memusagestat", t.run(["memusagestat", "a b.dat", "out.png"], cwd=run.cwd).status, 0)
            with open(os.path.join(run.cwd, "out.png"), "rb") as file:
                t.equal("picture", file.read(4), b"\x89PNG")
    t.equal("the same whatever the buffer", len(seen), 1)


@test("memusage/data-with-jumps")
def data_of_pads(t):
    program = compiled(t, "grow", os.path.join(DIRECTORY, "beside"))
    columns = []
    for probes in ("break", "auto", "jump"):
        run = t.run([t.ptmem(), "-q", "--heap=no", "--no-timer", "--data=x", "--probes=" + probes, program])
        t.equal("status", run.status, 0)
        columns.append([r[:2] for r in records(os.path.join(run.cwd, "x"))[0]])
    t.equal("records of jumps", columns[2], columns[0])
    t.equal("records of both", columns[1], columns[0])
    peer = t.run(["memusage", "--no-timer", "-d", "y", program]) if shutil.which("memusage") else None
    if peer:
        t.equal("heap, as memusage's", [r[0] for r in columns[0]][1:],
                [r[0] for r in records(os.path.join(peer.cwd, "y"))[0]][1:])


@test("memusage/data-cannot-be-written")
def data_errors(t):
    program = compiled(t, "cycles_nostdio")
    run = t.run([t.ptmem(), "--data=missing/x", program])
    t.equal("status", run.status, 125)
    t.equal("one line", run.err.count(b"\n"), 1)
    run = t.run([t.ptmem(), "--data=/dev/full", "-o", "m", program])
    t.equal("full disk", run.err.count(b"No space left"), 1)
    t.check(os.path.getsize(os.path.join(run.cwd, "m")) > 0, "the profile continues")


@test("memusage/picture")
def picture(t):
    program = compiled(t, "cycles_nostdio")
    run = t.run([memusage_program(), "-p", "out", "--title", "two words", "-x", "900", "-y", "500", program])
    t.equal("status", run.status, 0)
    with open(os.path.join(run.cwd, "out.png"), "rb") as file:
        t.equal("size", struct.unpack(">II", file.read(24)[16:]), (900, 500))
    # as memusagestat has it: what is too small, what is no size, a program that makes no call
    program = compiled(t, "empty")
    for words, want in (([], (800, 600)), (["-x", "3", "-y", "7"], (100, 80)), (["-x", "a", "-y", "0"], (800, 800))):
        sizes = []
        for command in [[memusage_program()]] + [["memusage"]] * bool(shutil.which("memusage")):
            run = t.run([*command, "-p", "out", *words, program])
            t.equal("status", run.status, 0)
            with open(os.path.join(run.cwd, "out.png"), "rb") as file:
                sizes.append(struct.unpack(">II", file.read(24)[16:]))
        t.equal("sizes with %s" % words, sizes, [want] * len(sizes))


@test("memusage/command-line")
def command_line(t):
    program = compiled(t, "nops")
    for words in (["--p", "x"], ["--t", "x"], ["--ti", "x"], ["--u", program], ["--zzz", program], [], ["-d"]):
        run = t.run([memusage_program(), *words])
        t.equal("status of %r" % words, run.status, 1)
    for words, status in ((["-z"], 127), (["-d=x", program], 127), (["--n", program], 0), (["--un", program], 0),
                          (["--pr", "nops", program], 0), (["--data=x=y", program], 0), (["--", program], 0),
                          (["--help"], 0), (["--us"], 0), (["-V"], 0)):
        run = t.run([memusage_program(), *words])
        t.equal("status of %r (%r)" % (words, run.err), run.status, status)
        if "--data=x=y" in words:
            t.check(os.path.exists(os.path.join(run.cwd, "x=y")), "x=y is not there")
    run = t.run([memusage_program(), "-n", "other", program])
    t.equal("another program's name", run.err, b"")


@test("memusage/control-characters")
def control_characters(t):
    """Names in messages act on no terminal, and are not lines of their own."""
    name, visible = "d\x1b[31m\nall is well", "d\\x1b[31m\\nall is well"
    directory = os.path.join(t.subdirectory(), name)
    os.mkdir(directory)
    alone = shutil.copy(memusage_program(), directory)
    with open(os.path.join(directory, "ptmem"), "w", encoding="ascii") as file:
        file.write("#!/none\n")
        os.chmod(file.fileno(), 0o755)
    hint = "Try `ptmem-memusage --help' or `ptmem-memusage --usage' for more information.\n"
    for argv, variables, status, wanted in (
            ([alone, "/bin/true"], {}, 126, "ptmem-memusage: cannot run %s/ptmem: " % visible),
            ([memusage_program(), "-p", "x", "/bin/true"], {"TMPDIR": name}, 1, "ptmem-memusage: cannot write %s/ptmem-memusage." % visible),
            ([memusage_program(), "--%s" % name], {}, 1, "ptmem-memusage: unrecognized option `--%s'\n%s" % (visible, hint)),
            ([memusage_program(), "-p", name, "-d", name + ".png", "x"], {}, 1,
             "ptmem-memusage: -d and -p name the same file, %s.png\n%s" % (visible, hint))):
        run = t.run(argv, env=variables)
        said = run.err.decode()
        t.equal("status of %r: %r" % (argv[1:], said), run.status, status)
        t.equal("what is said: %r" % said, (said.replace(os.path.dirname(directory) + "/", "").startswith(wanted), said.count("\n"),
                                            "\x1b" in said), (True, wanted.count("\n") or 1, False))


OPTIONS = ("progname", "png", "data", "unbuffered", "buffer", "no-timer", "mmap", "time-based", "total", "title",
           "x-size", "y-size", "help", "usage", "version")


def command_lines(program):
    """Every prefix of every option, with and without values; letters; what is no option."""
    yield from ([], ["--"], ["--", program], [""], ["-", program], ["---", program], ["--mmapp", program], ["--zzz=3"],
                ["-h", program], ["-dX", program], ["-z=3", program], ["-mu", program], ["-d", "--", program],
                ["-p", "a", "-d", "b", program], ["-p", "a.png", "-x", "3", "-y", "x", program],
                ["-n", "nope", "-d", "a", program], ["-n", program, program],
                ["-n", "nope", "-p", "a", program], ["-n", "", program], ["-m", "-u", "-b", "7", "-d", "q", program],
                ["-b", "x", "-d", "q", program], ["-b", "-5", "-d", "q", program], ["-p", "/none/a", program],
                ["/etc/passwd"], ["/none"])
    words = {"-" + letter for letter in "npdubmtTxy?V"}
    for name in OPTIONS:
        words.update("--" + name[:n + 1] for n in range(len(name)))
    for word in sorted(words):
        yield from ([word], [word, "77", program], [word, program], [word + "=", program], [word + "=77", program])


@test("memusage/command-line-peer", limit=120)
def command_line_beside(t):
    if not shutil.which("memusage"):
        raise Skip("memusage is not installed")
    program = compiled(t, "nops")
    for words in command_lines(program):
        peer, run = t.run(["memusage", *words]), t.run([memusage_program(), *words])
        t.equal("status of %r (%r)" % (words, run.err), run.status, peer.status)
        t.equal("files of %r" % words, sorted(os.listdir(run.cwd)), sorted(os.listdir(peer.cwd)))
        if peer.status == 1:
            # of --p=77 memusage names the 77, and --u=77 it takes for no option
            want = re.sub("`[^`']*' is ambiguous", "`%s' is ambiguous" % "".join(words[:1]), peer.err.decode())
            want = re.sub("unrecognized option `(--u=.*)'", r"option `\1' is ambiguous", want)
            want = want.replace("memusage", "ptmem-memusage")
            t.equal("error of %r" % words, run.err.decode(), want)


@test("memusage/help")
def help_text(t):
    for words in (["--help"], ["-?"], ["--h"]):
        text = t.run([memusage_program(), *words]).out.decode()
        for name in OPTIONS:
            t.check(re.search(r"^   (-.,|   )--%s(=[A-Z]+)?  +\S" % name, text, re.M), "%s in %r" % (name, text))
        t.check(max(map(len, text.split("\n"))) < 80, "lines are not too long")
    usage = t.run([memusage_program(), "--usage"]).out.decode()
    t.check(all("[--" + name in usage for name in OPTIONS[:-3]), usage)


@test("memusage/data-without-program")
def data_of_nobody(t):
    program = compiled(t, "nops")
    cwd = t.subdirectory()
    for name in ("old", "new"):
        if name == "old":
            with open(os.path.join(cwd, name), "w", encoding="ascii") as file:
                file.write("kept")
        t.run([memusage_program(), "-n", "another", "-d", name, program], cwd=cwd)
        t.equal("status", t.run([memusage_program(), "-d", name, "/none"], cwd=cwd).status, 127)
    t.equal("no new file", os.path.exists(os.path.join(cwd, "new")), False)
    with open(os.path.join(cwd, "old"), encoding="ascii") as file:
        t.equal("the old one", file.read(), "kept")


@test("memusage/replay")
def replay(t):
    program = compiled(t, "grow", os.path.join(DIRECTORY, "beside"))
    run = t.run([t.ptmem(), "-q", "-o", "m", "--memusage", "--no-timer", "--events=e", program])
    again = t.run([t.ptmem(), "-q", "-o", "n", "--memusage", "--replay=e"], cwd=run.cwd)
    t.equal("report", again.err, run.err)


# -- the sampler --


def table(path):
    with open(path, encoding="ascii") as file:
        lines = file.read().split("\n")[:-1]  # the last one may be half there yet
    head = lines[0].split("\t")
    return [dict(zip(head, map(float, line.split("\t")))) for line in lines[1:]]


def check_phases(t, rows):
    """VmSize and VmRSS of maps_over_time, in KiB."""
    base = next((a for a, b in zip(rows, rows[1:]) if b["VmSize"] - a["VmSize"] == 65536), rows[0])
    phases = (("mapped", 65536, 0), ("touched", 65536, 32768), ("gone", 0, 0))
    rest, at = iter(rows), {}
    for name, size, resident in phases:  # whenever they came
        at[name] = next((r for r in rest if r["VmSize"] == base["VmSize"] + size
                         and abs(r["VmRSS"] - base["VmRSS"] - resident) < 512), None)
        t.check(at[name], "%s is not among the samples after %r" % (name, base))
    t.check(at["gone"]["VmPeak"] >= base["VmSize"] + 65536 and at["gone"]["VmHWM"] >= base["VmRSS"] + 32256,
            "peaks stay: %r" % at)
    for a, b in zip(rows, rows[1:]):
        t.check(a["VmPeak"] <= b["VmPeak"] and a["VmHWM"] <= b["VmHWM"] or a is rows[0], "peaks fall: %r %r" % (a, b))


@test("sampler/started")
def sampler_started(t):
    program = compiled(t, "maps_over_time")
    run = t.run([t.ptmem(), "-q", "--heap=no", "--sample=20", "--sample-out=s", program, "s"])
    t.equal("status", run.status, 0)
    rows = table(os.path.join(run.cwd, "s"))
    t.check(40 <= len(rows) <= rows[-1]["time"] / 0.02 + 2, "%d rows in %g s" % (len(rows), rows[-1]["time"]))
    check_phases(t, rows)


@test("sampler/terminal")
def sampler_terminal(t):
    """Columns as in the article that described them; a terminal gets their names, too."""
    names = ["VmSize", "VmPeak", "VmRSS", "VmHWM"]
    main, terminal = os.openpty()
    with subprocess.Popen([t.ptmem(), "-q", "--heap=no", "--sample=20", "sleep", "0.2"], stderr=terminal) as ptmem:
        os.close(terminal)
        text = b""
        with contextlib.suppress(OSError):  # the end of a terminal is EIO
            while piece := os.read(main, 1 << 16):
                text += piece
    os.close(main)
    t.equal("status", ptmem.returncode, 0)
    lines = text.decode().splitlines()
    t.equal("the first line", lines[0].split("\t"), names)
    piped = t.run([t.ptmem(), "-q", "--heap=no", "--sample=20", "sleep", "0.2"]).err.decode().splitlines()
    for line in lines[1:] + piped:
        size, peak, resident, largest = map(int, line.split("\t"))
        t.check(resident <= size <= peak and resident <= largest, "these are no such sizes: " + line)
    run = t.run([t.ptmem(), "-q", "--heap=no", "--sample=20", "--sample-out=s", "true"])
    with open(os.path.join(run.cwd, "s"), encoding="utf-8") as file:
        t.equal("the first line of a file", file.readline().split(), ["time", "pid", *names, "Monotonic", "Realtime"])


@test("sampler/moment")
def sampler_moment(t):
    """A line has the moment by two clocks: between those before and after the run, and as its time has it."""
    clocks = {"Monotonic": time.CLOCK_MONOTONIC, "Realtime": time.CLOCK_REALTIME}
    before = {name: time.clock_gettime_ns(clock) for name, clock in clocks.items()}
    for options in ([], ["--sample-fields=VmRSS,Realtime,Monotonic"]):
        run = t.run([t.ptmem(), "-q", "--heap=no", "--sample=20", "--sample-out=s", *options, "sh", "-c",
                     "until [ $(wc -l <s) -gt 3 ]; do sleep 0.02; done"])
        after = {name: time.clock_gettime_ns(clock) for name, clock in clocks.items()}
        with open(os.path.join(run.cwd, "s"), encoding="ascii") as file:
            rows = [dict(zip(head, line.split("\t"))) for head, line in
                    itertools.product([file.readline().rstrip("\n").split("\t")], file.read().splitlines())]
        t.check(len(rows) > 2, "rows (%r): %r" % (run.err, rows))
        for name in clocks:
            moments = [int(row[name]) for row in rows]
            t.check(before[name] <= moments[0] and moments == sorted(moments) and moments[-1] <= after[name],
                    "%s from %d to %d: %r" % (name, before[name], after[name], moments))
        start = [int(row["Monotonic"]) / 1e9 - float(row["time"]) for row in rows]
        t.check(max(start) - min(start) < 2e-6, "the beginning by each line: %r" % start)
    lines = t.run([t.ptmem(), "-q", "--heap=no", "--sample=20", "--sample-fields=Monotonic", "sleep", "0.1"]).err.decode().splitlines()
    t.check(all(after["Monotonic"] < int(line) < time.clock_gettime_ns(time.CLOCK_MONOTONIC) for line in lines) and lines,
            "on standard error: %r" % lines)


@test("sampler/attached")
def sampler_attached(t):
    cwd = t.subdirectory()
    with subprocess.Popen([compiled(t, "maps_over_time"), "s"], cwd=cwd) as target:
        run = t.run([t.ptmem(), "-q", "--heap=no", "--sample=20", "--sample-out=s", "-p", str(target.pid)], cwd=cwd)
        t.equal("the program's status", target.wait(), 0)
    t.equal("status", run.status, 0)
    check_phases(t, table(os.path.join(cwd, "s")))


@test("sampler/with-profile")
def sampler_with_profile(t):
    run = t.run([t.ptmem(), "-q", "-o", "m", "--sample=20", "--sample-out=s", compiled(t, "maps_over_time"), "s"])
    t.equal("status", run.status, 0)
    check_phases(t, table(os.path.join(run.cwd, "s")))


SIZES = [("--heap=no",), ("--heap=no", "--memusage", "--memusage-out=u"), ("--probes=break",), ("--probes=auto",),
         ("--probes=jump",)]


@test("sampler/own-sizes", limit=120)
def sampler_sizes(t):
    """VmPeak and VmSize are the program's, whatever ptmem mapped in it: at the end of each process, to the KiB."""
    program, want = compiled(t, "sizes"), {}
    for options, argument in itertools.product(SIZES, ([], ["exec"])):
        out = [] if "--heap=no" in options else ["-o", "m.%p.%n"]
        run = t.run([t.ptmem(), "-q", *out, *options, "--trace-children=yes", "--sample=10", "--sample-out=s",
                     program, *argument])
        t.equal("status (%r)" % run.err, run.status, 0)
        rows = table(os.path.join(run.cwd, "s"))
        pids = list(dict.fromkeys(r["pid"] for r in rows))
        t.equal("processes", len(pids), 2 + len(argument))
        last = [[(r["VmPeak"], r["VmSize"]) for r in rows if r["pid"] == pid][-1] for pid in pids]
        want.setdefault(len(argument), last)
        t.equal("%r %r" % (options, argument), last, want[len(argument)])
        t.equal("largest", max(r["VmSize"] for r in rows), want[0][1][1])
    for options in (("--heap=no",), ("--probes=jump",)):
        with subprocess.Popen([program, "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as target:
            target.stdout.read(1)
            out = [] if "--heap=no" in options else ["-o", "m"]
            with subprocess.Popen([t.ptmem(), "-q", *out, *options, "--sample=10", "--sample-out=s", "-p",
                                   str(target.pid)], cwd=run.cwd) as ptmem:
                t.wait_until("samples", lambda: os.path.exists(os.path.join(run.cwd, "s"))
                             and os.path.getsize(os.path.join(run.cwd, "s")) > 1000)
                target.stdin.write(b"x")
                target.stdin.close()
                t.equal("status", (ptmem.wait(), target.wait()), (0, 0))
        rows = [(r["VmPeak"], r["VmSize"]) for r in table(os.path.join(run.cwd, "s"))]
        t.equal("first and last of %r" % (options,), {rows[0], rows[-1]}, {(want[0][0][0], rows[0][1]), want[0][0]})


@test("sampler/leader-gone")
def sampler_leader(t):
    for options in (["--heap=no"], ["-o", "m"]):
        run = t.run([t.ptmem(), "-q", *options, "--sample=20", compiled(t, "leader_gone")])
        t.equal("status", run.status, 3)
        last = [int(word) for word in run.err.decode().splitlines()[-1].split("\t")]
        t.check(len(last) == 4 and last[3] > 20480, "the thread's memory: %r" % last)


@test("sampler/fields-and-children")
def sampler_fields(t):
    run = t.run([t.ptmem(), "-q", "--heap=no", "--sample=20", "--trace-children=yes", "--sample-out=s",
                 "--sample-fields=Threads,VmRSS,RssAnon,VmData", "sh", "-c", "sleep 0.1; sleep 0.1; exit 4"])
    t.equal("status", run.status, 4)
    rows = table(os.path.join(run.cwd, "s"))
    t.equal("columns", list(rows[0]), ["time", "pid", "Threads", "VmRSS", "RssAnon", "VmData"])
    t.equal("processes", len({r["pid"] for r in rows}), 3)
    t.check(all(r["Threads"] == 1 and r["VmRSS"] > 0 for r in rows), "values: %r" % rows)
    run = t.run([t.ptmem(), "--heap=no", "--sample", "--sample-fields=VmRSS,Name", "touch", "was-run"])
    t.equal("unknown field", run.status, 1)
    t.check(b"Name" in run.err, run.err)
    t.check(not os.path.exists(os.path.join(run.cwd, "was-run")), "the program was run")


def check_becoming(t, rows):
    """becomes.c has 40 MiB; after its exec the peaks start again."""
    large = [r for r in rows if r["VmRSS"] > 40960]
    after = [r for r in rows if r["time"] > large[-1]["time"]]
    t.check(len(large) >= 5 and len(after) >= 5, "%d rows with the block, %d without" % (len(large), len(after)))
    t.check(all(r["VmHWM"] < 20480 for r in after[1:]), "most resident of the new program: %r" % after)
    t.check(len({r["pid"] for r in rows}) == 1, "one process")


@test("sampler/exec")
def sampler_exec(t):
    program = compiled(t, "becomes")
    for options in (["--heap=no"], ["-o", "m"], ["--heap=no", "--trace-children=yes"]):
        run = t.run([t.ptmem(), "-q", *options, "--sample=20", "--sample-out=s", program, "s"])
        t.equal("status", run.status, 7)
        check_becoming(t, table(os.path.join(run.cwd, "s")))


@test("sampler/exec-attached")
def sampler_exec_attached(t):
    cwd = t.subdirectory()
    with subprocess.Popen([compiled(t, "becomes"), "s"], cwd=cwd) as target:
        run = t.run([t.ptmem(), "-q", "--heap=no", "--sample=20", "--sample-out=s", "-p", str(target.pid)], cwd=cwd)
        t.equal("the program's status", target.wait(), 7)
    t.equal("status", run.status, 0)
    check_becoming(t, table(os.path.join(cwd, "s")))


@test("sampler/last-sample")
def sampler_last(t):
    """At the exit stop, whatever the period; for each child, too."""
    run = t.run([t.ptmem(), "-q", "--heap=no", "--sample=100000", "--sample-out=s", compiled(t, "maps_over_time")])
    rows = table(os.path.join(run.cwd, "s"))
    t.equal("the first and the last", len(rows), 2)
    t.check(rows[1]["VmHWM"] > rows[0]["VmRSS"] + 32000, "the last knows the peak: %r" % rows)
    run = t.run([t.ptmem(), "-q", "--heap=no", "--sample=100000", "--sample-out=s", "--trace-children=yes",
                 compiled(t, "many_children"), "20"])
    pids = [r["pid"] for r in table(os.path.join(run.cwd, "s"))]
    t.equal("processes", len(set(pids)), 21)
    run = t.run([t.ptmem(), "-q", "--heap=no", "--sample=100000", "--sample-out=s", compiled(t, "becomes")])
    last = table(os.path.join(run.cwd, "s"))[-1]
    t.check(last["time"] > 0.7 and last["VmHWM"] < 20480, "at the exit of what was executed: %r" % last)


@test("sampler/many-children")
def sampler_many(t):
    run = t.run([t.ptmem(), "-q", "--heap=no", "--sample=5", "--sample-out=s", "--trace-children=yes",
                 compiled(t, "many_children"), "10000"])
    t.equal("status", run.status, 0)
    early, late = map(int, run.out.split())
    t.check(late <= early, "descriptors: %d, at the end %d" % (early, late))
    # one after the other, so each is a run of rows: the kernel may use a number again
    pids = [r["pid"] for r in table(os.path.join(run.cwd, "s"))]
    t.equal("children", len(list(itertools.groupby(pid for pid in pids if pid != pids[0]))), 10000)


@test("sampler/several")
def sampler_several(t):
    """All at the same time, each until its end."""
    path = os.path.join(t.subdirectory(), "s")
    short, longer = (subprocess.Popen(["sleep", "1000"]) for _ in range(2))

    def times():
        """Of the rows of either, both in one reading."""
        rows = table(path) if os.path.exists(path) and os.path.getsize(path) else []
        return [[r["time"] for r in rows if r["pid"] == process.pid] for process in (short, longer)]

    def has_more():
        of_short, of_longer = times()
        return of_longer[-1] > of_short[-1] + 0.15

    try:
        ptmem = subprocess.Popen([t.program("strace"), "-qq", "-o", path + ".calls", "-e", "trace=ppoll", t.ptmem(), "--heap=no",
                                  "--sample=20", "--sample-out=" + path, "-p", "%d,%d,2" % (longer.pid, short.pid)],
                                 stderr=subprocess.PIPE)
        t.wait_until("rows of both", lambda: min(map(len, times())) > 5)
        short.kill()
        short.wait()
        t.wait_until("more of one", has_more)
    finally:
        for process in (short, longer):
            process.kill()
            process.wait()
    err = ptmem.communicate()[1]
    t.equal("status", ptmem.returncode, 0)
    t.check(b"process 2 is a kernel thread" in err, err)
    first, last = times()
    both = sum(b - a < 0.02 for a, b in zip(last, first))
    t.check(both > len(first) / 2, "not at the same time: %r %r" % (first, last))
    with open(path + ".calls", encoding="ascii") as file:
        waits = re.findall(r"\{tv_sec=(\d+), tv_nsec=(\d+)\}, NULL", file.read())
    t.check(len(waits) > 10 and all(int(s) == 0 and int(ns) <= 20000000 for s, ns in waits), "waits: %s" % waits[:9])


@test("sampler/leader-gone-attached")
def sampler_leader_attached(t):
    cwd = t.subdirectory()
    with subprocess.Popen([compiled(t, "leader_gone"), "s"], cwd=cwd) as target:
        t.wait_until("its first thread ended",
                     lambda: "\nState:\tZ" in open("/proc/%d/status" % target.pid, encoding="utf-8").read())
        run = t.run([t.ptmem(), "-q", "--heap=no", "--sample=20", "--sample-out=s", "-p", str(target.pid)], cwd=cwd)
        t.equal("status", run.status, 0)
        last = table(os.path.join(cwd, "s"))[-1]
        t.check(last["VmRSS"] > 20480, "the thread's memory: %r" % last)


@test("sampler/refusals")
def sampler_refusals(t):
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    for pid, why in ((child, b"only its exit status is left"), (2, b"kernel thread"), (1 << 22, b"no such process")):
        for options in (["--heap=no", "--sample"], ["-o", "m"]):
            run = t.run([t.ptmem(), *options, "-p", str(pid)])
            t.equal("status of %s" % why, run.status, 125)
            t.check(run.err.count(b"\n") == 1 and why in run.err, "%r" % run.err)
    os.waitpid(child, 0)


@test("memusage/files")
def files(t):
    """Names as memusage reads them, an unrequested data file is left alone, and no two share a file."""
    temporary = t.subdirectory()
    program = [t.program("sh"), "-c", "%s; %s; exit 3" % (t.program("true"), t.program("true"))]
    run = t.run([memusage_program(), "-p", "50%.png", *program], env={"TMPDIR": temporary})
    t.equal("status (%r)" % run.err, run.status, 3)
    t.equal("left in TMPDIR", os.listdir(temporary), [])
    t.check(os.path.getsize(os.path.join(run.cwd, "50%.png")) > 1000, "no picture")
    run = t.run([memusage_program(), "-d", "50%", t.program("true")])
    t.check(os.path.getsize(os.path.join(run.cwd, "50%")) >= 48, "no data")
    run = t.run([memusage_program(), "-d", "x.png", "-p", "x", t.program("true")])
    t.equal("status of one name for both", run.status, 1)
    t.check(b"-d and -p name the same file, x.png" in run.err, "no reason: %r" % run.err)
    t.check(not os.path.exists(os.path.join(run.cwd, "x.png")), "it was written")


@test("memusage/picture-names")
def _(t):
    """A picture has the program's name, and seconds where the file is ptmem's: in memusage's the unit of time is not known."""
    here, report = t.subdirectory(), os.path.join(harness.BUILD, "ptmem-report")
    program = t.target("gcc-O2-pie", "mixed")
    run = t.run([memusage_program(), "-t", "-p", "a.png", "-d", "data", program, "3", "2000"], cwd=here)
    t.equal("status: %r" % run.err, run.status, 0)
    with open(os.path.join(here, "data"), "rb") as file:
        records = bytearray(file.read())
    for i in range(0, len(records), 24):  # the same with a time stamp counter's values
        records[i + 16:i + 24] = (int.from_bytes(records[i + 16:i + 24], "little") % 10**15).to_bytes(8, "little")
    with open(os.path.join(here, "counter"), "wb") as file:
        file.write(records)
    pictures = {}
    for name, options in (("b.png", ["--png=b.png", "--title=mixed", "data"]), ("s", ["--svg=s", "data"]), ("c", ["--svg=c", "counter"])):
        t.equal(name, t.run([report, "-t", *options], cwd=here).status, 0)
    for name in ("a.png", "b.png", "s", "c"):
        with open(os.path.join(here, name), "rb") as file:
            pictures[name] = file.read()
    t.check(pictures["a.png"] == pictures["b.png"], "the title is the program's name")
    texts = {name: re.findall(rb">([^<>]+)</text>", pictures[name]) for name in ("s", "c")}
    t.equal("axis of shares", (b"100 %" in texts["c"], b"time (share of the run)" in texts["c"]), (True, True))
    t.equal("axis of time", (b"100 %" in texts["s"], b"time" in texts["s"], any(re.fullmatch(rb"[0-9.]+ (ms|s)", x) for x in texts["s"])),
            (False, True, True))
