"""Functions of Python programs in stacks: targets/python_chains.py knows the chain of functions of each of its allocations,
and all must be in the recording: with the calls and bytes of each, caught by breakpoints or by jumps, from the start or
attached, in a fork."""

import glob
import json
import os
import re
import subprocess

import harness
from chains_lib import check_chains, check_started, run_attached, sum_chains
from harness import report_json, Skip, test
from process_lib import Attached, cpu_ticks

SCRIPT = os.path.join(harness.ROOT, "tests", "targets", "python_chains.py")
LEAST = 100  # chains of the script
TRACED = os.path.join(harness.ROOT, "tests", "targets", "python_traced.py")
UNPACKED = {"3.14": "python3.14", "3.15": "python3.15"}
BUILT = {re.sub(r"^(\d+\.\d+).*", r"\1", os.path.basename(os.path.dirname(os.path.dirname(path)))): path
         for path in glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin/python3"))}


def interpreter(t, version):
    if version == "system":
        return t.program("python3")
    path = os.path.join(harness.ROOT, "build", "allocators", UNPACKED[version]) if version in UNPACKED else BUILT[version]
    if not os.path.exists(path):
        raise Skip("no %s (scripts/install-deps test)" % path)
    return path


def found_chains(t, path):
    """{chain: [calls, bytes]} of the recording @path, of stacks whose innermost Python function is `allocate`."""
    def chain_of(functions):
        is_counted = functions and functions[0][0] == "allocate"
        return "<".join("%s:%d" % function for function in functions) if is_counted else None
    return sum_chains(t, path, chain_of)


for _version, _probes in [("system", "auto"), ("system", "break"), ("system", "jump"), ("3.14", "auto"), ("3.15", "auto"),
                          *[(v, "auto") for v in sorted(BUILT) if int(v[2:]) >= 8]]:
    def _started(t, version=_version, probes=_probes):
        # small objects of the interpreter itself would be among the script's
        check_started(t, [interpreter(t, version), "-s", "-B", SCRIPT, "chains"],
                      ["--python-malloc=keep", "--probes=" + probes], found_chains, version + " " + probes, LEAST)
    test("python/chains/%s/%s" % (_version, _probes))(_started)


@test("python/reused")
def reused(t):
    """A function at the address of another one, with the same name and file, has lines of its own, whoever made it."""
    cwd = t.subdirectory()
    script = os.path.join(harness.ROOT, "tests", "targets", "python_reused.py")
    profile = t.profile([interpreter(t, "system"), "-s", "-B", script], ["--record=recording"], cwd=cwd,
                        env={"GLIBC_TUNABLES": "glibc.malloc.tcache_count=0:glibc.malloc.arena_max=1"})
    again = int(profile.out)
    t.check(again >= 3, "the address came back %d times" % again)
    recording = report_json(t, os.path.join(cwd, "recording"))
    frames, nodes, leaves = (recording[k] for k in ("frames", "nodes", "leaves"))
    calls = {3003: {}, 5005: {}, 7007: {}}
    for node, number, size in zip(leaves["node"], leaves["allocations"], leaves["bytes"]):
        while node >= 0 and frames["function"][nodes["frame"][node]] != "made":
            node = nodes["parent"][node]
        lines = calls.get(size // number if number else 0)
        if node >= 0 and lines is not None:
            line = frames["line"][nodes["frame"][node]]
            lines[line] = lines.get(line, 0) + number
    t.equal("lines", {size: sorted(lines) for size, lines in calls.items()}, {3003: [4], 5005: [7], 7007: [7]})
    t.equal("calls at last", calls[7007][7], again)


@test("python/chains/attached")
def attached(t):
    cwd, pid, _ = run_attached(t, [interpreter(t, "system"), "-s", "-B", SCRIPT, "chains"], ["--record=recording.%p"])
    check_chains(t, cwd, pid, found_chains, "attached", LEAST)


def check_part(t, argv, least, probes_=("auto", "break")):
    """One process; @argv knows the chains that it has made."""
    for probes in probes_:
        cwd = t.subdirectory()
        profile = t.profile(argv, ["--python-malloc=keep", "--record=recording", "--view=total", "--folded=folded",
                                   "--python=mixed", "--probes=" + probes], cwd=cwd)
        t.equal("the exit status (%s)" % profile.err.decode()[-300:], profile.status, 0)
        stats = profile.only_stats()
        t.equal("complete stacks (%s)" % probes, stats["complete stacks"], stats["stacks"])
        with open(os.path.join(cwd, "chains"), encoding="utf-8") as file:
            want = json.load(file)
        got = found_chains(t, os.path.join(cwd, "recording"))
        for chain in sorted(set(want) | set(got)):
            t.equal("%s: calls and bytes of %s" % (probes, chain), got.get(chain), want.get(chain))
        t.check(len(want) >= least, "there are only %d chains" % len(want))
        with open(os.path.join(cwd, "folded"), encoding="utf-8") as file:
            yield file.read().splitlines()


@test("python/greenlets")
def greenlets(t):
    """Of a greenlet's stack only its own functions: what is below it in memory is not its caller."""
    python = t.program("python3")
    if subprocess.run([python, "-c", "import greenlet"], check=False, stderr=subprocess.DEVNULL).returncode:
        raise Skip("no greenlet (scripts/install-deps test)")
    for lines in check_part(t, [python, "-s", "-B", SCRIPT, "chains", "greenlets"], 18):
        for line in lines:
            names = line.split(";")
            inside = [i for i, name in enumerate(names) if name.startswith("greenlets.<locals>.child")]
            switch = [i for i, name in enumerate(names) if "g_initialstub" in name]
            t.check(not inside or not switch or inside[0] > switch[0], "a greenlet's function seems to have started it: %s" % line)


@test("python/programs")
def programs(t):
    """Python programs made at random, each with a thread that runs another one."""
    for _ in check_part(t, [t.program("python3"), "-s", "-B", SCRIPT, "chains", "programs", "2", "5"], 1000, ["auto"]):
        pass


@test("python/deep")
def deep(t):
    """Chains of thousands of functions, which pads record by what has changed: few calls stop."""
    python = t.program("python3")
    if subprocess.run([python, "-c", "import sys; sys.exit(sys.version_info < (3, 11))"], check=False).returncode:
        raise Skip("its native stack would be as deep")
    for _ in check_part(t, [python, "-s", "-B", SCRIPT, "chains", "deep"], 30, ["auto"]):
        pass


@test("python/interpreters")
def interpreters(t):
    """Interpreters within one: functions of both, in one chain."""
    python = t.program("python3")
    if subprocess.run([python, "-c", "import _xxsubinterpreters"], check=False, stderr=subprocess.DEVNULL).returncode:
        raise Skip("this Python has no _xxsubinterpreters")
    for _ in check_part(t, [python, "-s", "-B", SCRIPT, "chains", "interpreters"], 20, ["auto"]):
        pass


@test("python/embedded")
def embedded(t):
    """Python's library is loaded by dlopen while the program runs."""
    libraries = glob.glob("/usr/lib/*/libpython3.*.so.1.0")
    if not libraries:
        raise Skip("no libpython3 (gdb has it)")
    check_started(t, [t.target("gcc-O2-pie", "python_embedded"), libraries[0], "-s", "-B", SCRIPT, "chains"],
                  ["--python-malloc=keep"], found_chains, "embedded", LEAST)


FUNCTIONS = """
import ctypes
libc = ctypes.PyDLL(None)
libc.malloc.argtypes = [ctypes.c_size_t]
def make_orders():
    return libc.malloc(1000000)
make_orders()
"""


@test("python/chroot")
def in_chroot(t):
    """Another root directory, whose files /proc/PID/maps calls by names of ours."""
    if os.geteuid() != 0:
        raise Skip("needs root")
    root = t.subdirectory()
    start = 'mount --rbind / "$0" && exec chroot "$0" "$@"'
    if t.run(["unshare", "-m", "sh", "-c", start, root, "true"]).status:
        raise Skip("no mount namespaces here")
    script = t.file("orders.py", "print(flush=True)\ninput()\n" + FUNCTIONS)
    command = ["unshare", "-m", "sh", "-c", start, root, t.program("python3"), "-s", "-B", script]
    options = ["--view=total", "--folded=folded", "--massif-out-file=/dev/null"]
    attached = run_attached(t, command, options)[0]
    started = t.subdirectory()
    t.profile(command, options[:-1], cwd=started, stdin=b"\n")
    for cwd in (attached, started):
        with open(os.path.join(cwd, "folded"), encoding="utf-8") as file:
            lines = file.readlines()
        line = max(lines, key=lambda l: int(l.rpartition(" ")[2]))
        t.check("make_orders" in line.split(";"), "make_orders in %s" % line)


@test("python/options")
def options(t):
    """What --python shows, and PYTHONMALLOC in the environment of Python programs alone."""
    script = t.file("orders.py", FUNCTIONS)
    for mode, has_function, has_loop, has_library in (("auto", True, False, True), ("only", True, False, False),
                                                      ("mixed", True, False, True), ("no", False, True, True)):
        cwd = t.subdirectory()
        t.profile([t.program("python3"), "-s", "-B", script], ["--python=" + mode, "--view=total", "--folded=folded"], cwd=cwd)
        with open(os.path.join(cwd, "folded"), encoding="utf-8") as file:
            lines = file.readlines()
        line = max(lines, key=lambda l: int(l.rpartition(" ")[2]))
        names = line.rpartition(" ")[0].split(";")
        t.equal("%s: make_orders in %s" % (mode, line), "make_orders" in names, has_function)
        t.equal("%s: the library that calls malloc in %s" % (mode, line), "ffi_call" in line or "libffi" in line, has_library)
        t.equal("%s: the interpreter's start in %s" % (mode, line), "Py_BytesMain" in names, mode in ("mixed", "no"))
        own = [re.search(r"(?:^|;)(Py_BytesMain|Py_Init\w+|Py_RunMain|pymain_\w+|_PyPegen_\w+)", l) for l in lines]
        t.equal("%s: where stacks with the interpreter's functions begin" % mode, {m[1] for m in own if m}, {"Py_BytesMain"})
    print_variable = "import os; print(os.environ.get('PYTHONMALLOC'))"
    script = t.file("shebang", "#!/usr/bin/env python3\n" + print_variable)
    os.chmod(script, 0o755)
    python = t.program("python3")
    first_none = "echo ${PYTHONMALLOC-None}; exec %s -c \"%s\"" % (python, print_variable)
    for argv, options_, env, want in (
            ([python, "-c", print_variable], [], {}, b"malloc"), ([script], [], {}, b"malloc"),
            (["env", "A=1", python, "-c", print_variable], [], {}, b"malloc"),
            ([t.program("sh"), "-c", first_none], [], {}, b"None\nmalloc"),
            ([python, "-bW", "default", "-c", print_variable, "-E"], [], {}, b"malloc"),
            ([python, "-bE", "-c", print_variable], [], {}, b"None"),  # it would not look at it
            ([python, "-bX", "dev", "-c", print_variable], [], {}, b"malloc_debug"),  # its allocator has the same checks
            ([python, "-Xdev", "-c", print_variable], [], {}, b"malloc_debug"),
            ([python, "-c", print_variable], [], {"PYTHONDEVMODE": "1"}, b"malloc_debug"),
            (["env", python, "-c", print_variable], ["--python-malloc=keep"], {}, b"None"),
            (["env", "PYTHONMALLOC=pymalloc", python, "-c", print_variable], [], {}, b"pymalloc"),
            ([python, "-c", print_variable], [], {"PYTHONMALLOC": "pymalloc"}, b"pymalloc"),
            ([t.program("sh"), "-c", "echo ${PYTHONMALLOC-None}"], [], {}, b"None")):
        profile = t.profile(argv, options_, env=env)
        t.equal("PYTHONMALLOC of %s with %s %s" % (argv, options_, env), profile.out.strip(), want)
        ignored = [m for m in profile.messages if "ignore PYTHONMALLOC" in m]
        t.equal("the hint that %s ignores the variable" % argv, len(ignored), int("-bE" in argv))
        t.equal("the hint for %s" % argv, any("was started with PYTHONMALLOC" in m for m in profile.messages),
                want.split()[-1] in (b"malloc", b"malloc_debug"))


BUSY = """import threading
class Order:
    def __init__(self, i):
        self.data = bytes(600 + i % 100)
        self.text = str(i) * 20
def make():
    return [Order(i) for i in range(50)]
def work():
    while not done.is_set():
        make()
done = threading.Event()
threading.Thread(target=work).start()
print("ready", flush=True)
input()
done.set()
"""


def register_busy(version):
    @test("python/busy-thread/" + version)
    def _(t):
        """A pad finds the state of a thread that ptmem has attached to: it does not stop at each call."""
        program = subprocess.Popen([interpreter(t, version), "-s", "-B", t.file("busy.py", BUSY)], cwd=t.directory,
                                   env=t.environment(t.directory), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        t.equal("its first line", program.stdout.readline(), b"ready\n")
        for _ in range(3):
            attached = Attached(t, program.pid).wait_attached()
            begin = cpu_ticks(program.pid)
            t.wait_until("turns of the thread", lambda b=begin: cpu_ticks(program.pid) > b + 30)
            stats = attached.detach().only_stats()
            t.check(stats["breakpoint stops"] < stats["allocations"] / 4, "%s" % stats)
        program.communicate(b"\n", timeout=200)
        t.equal("status", program.returncode, 0)


for v in sorted({"system", "3.12", "3.13"} & ({"system"} | set(BUILT))):
    register_busy(v)


@test("python/environment")
def environment(t):
    """A variable that is added leaves arguments, other variables, the auxiliary vector, and the alignment of the stack."""
    show = "import os, sys; print(sys.argv, sorted(os.environ.items()), open('/proc/self/auxv', 'rb').read()[-16:], " \
           "open('/proc/self/environ').read().split(chr(0))[:-1])"
    cwd = t.subdirectory()
    for count in (1, 2, 1500):
        argv = [t.program("python3"), "-c", show] + ["a" * (i % 9) for i in range(count)]
        env = dict({"VARIABLE%d" % i: "v" * (i % 11) for i in range(count)}, LC_ALL="C.UTF-8")
        alone = subprocess.run(argv, env=t.environment(cwd) | env, cwd=cwd, capture_output=True, check=True).stdout.decode()
        profiled = t.profile(argv, env=env, cwd=cwd).out.decode()
        t.equal("what %d arguments and variables are" % count, profiled.replace("('PYTHONMALLOC', 'malloc'), ", ""), alone)
        t.check("PYTHONMALLOC" in profiled, "the variable was not added for %d" % count)


def live_lines(t, path, without=None):
    """{"file:line": [bytes, blocks]} of what lives at the end of the recording @path, by the innermost Python function; not
    what a library called @without has allocated itself."""
    recording = report_json(t, path)
    skipped = [i for i, o in enumerate(recording["objects"]) if without and without in o["path"]]
    frames, nodes, leaves, cells = (recording[k] for k in ("frames", "nodes", "leaves", "cells"))
    lines, live = {}, {}
    for leaf, died, size, blocks in zip(*(cells[k] for k in ("leaf", "died", "bytes", "blocks"))):
        if died == -1:
            entry = live.setdefault(leaf, [0, 0])
            entry[0] += size
            entry[1] += blocks
    for leaf, (size, blocks) in live.items():
        node = leaves["node"][leaf]
        if node >= 0 and frames["object"][nodes["frame"][node]] in skipped:
            continue
        while node >= 0 and not (frames["file"][nodes["frame"][node]] and frames["object"][nodes["frame"][node]] < 0):
            node = nodes["parent"][node]
        if node >= 0:
            frame = nodes["frame"][node]
            entry = lines.setdefault("%s:%d" % (os.path.basename(frames["file"][frame]), frames["line"][frame]), [0, 0])
            entry[0] += size
            entry[1] += blocks
    return lines


def trace(t, python, what, env=None):
    """{"file:line": [bytes, blocks]} as tracemalloc has them, and the bytes of all."""
    cwd = t.subdirectory()
    subprocess.run([python, "-s", "-B", TRACED, what, "traced"], cwd=cwd, env={**t.environment(cwd), **(env or {})}, input=b"\n",
                   stdout=subprocess.DEVNULL, check=True)
    with open(os.path.join(cwd, "traced"), encoding="utf-8") as file:
        lines = json.load(file)
    return lines, lines.pop("total")[0]


def check_traced(t, python, what, recording):
    """The same lines as those of tracemalloc in another run, to the byte. Of "parsed" some lists, dictionaries and floats
    are in blocks that others have left: tracemalloc calls them new, but malloc is not called for them."""
    want = sorted(trace(t, python, what)[0].items(), key=lambda line: -line[1][0])[:3 if what == "parsed" else 4]
    got = live_lines(t, recording)
    for line, (size, blocks) in want:
        if what == "parsed":
            t.check(abs(got[line][0] - size) < 0.02 * size, "%s: %d bytes, by tracemalloc %d" % (line, got[line][0], size))
        else:
            t.equal("%s: bytes and blocks of %s" % (what, line), got.get(line), [size, blocks])
    ours = sorted((l for l in got if l.split(":")[0] in [w[0].split(":")[0] for w in want]), key=lambda l: -got[l][0])
    t.equal("%s: the first lines" % what, ours[:2], [line for line, _ in want][:2])


@test("python/tracemalloc")
def traced(t):
    """Lines and bytes as tracemalloc has them."""
    python = t.program("python3")
    for what in ("texts", "objects", "parsed"):
        cwd = t.subdirectory()
        profile = t.profile([python, "-s", "-B", TRACED, what], ["--record=recording"], cwd=cwd)
        t.equal("the exit status (%s)" % profile.err.decode()[-300:], profile.status, 0)
        check_traced(t, python, what, os.path.join(cwd, "recording"))


@test("python/tracemalloc-all")
def traced_all(t):
    """All lines together, from the same moment on, to the byte: blocks that were left and are used again are at other lines
    there, but in no sum twice. Without what sqlite itself has from malloc, which tracemalloc does not see."""
    python = t.program("python3")
    env = {"PYTHONMALLOC": "malloc", "PYTHONHASHSEED": "0"}
    for what in ("parsed", "classes", "coroutines", "database"):
        total = trace(t, python, what, env)[1]
        cwd = run_attached(t, [python, "-s", "-B", TRACED, what], ["--record=recording"], env)[0]
        got = live_lines(t, os.path.join(cwd, "recording"), "libsqlite3")
        t.equal("%s: bytes" % what, sum(size for size, _ in got.values()), total)


def attach_traced(t, python, what, *options_, env=None):
    """Returns ptmem's messages, and the recording."""
    cwd, _, text = run_attached(t, [python, "-s", "-B", TRACED, what], [*options_, "--record=recording"], env)
    return text, os.path.join(cwd, "recording")


for _version in sorted(v for v in BUILT if int(v[2:]) >= 8):
    def _allocator(t, version=_version):
        """Objects in the arenas of a Python that runs already, by the functions of its allocator."""
        python = interpreter(t, version)
        for what, options_ in (("objects", []), ("texts", ["--probes=break"])) if version in ("3.8", "3.12") else (("objects", []),):
            messages, recording = attach_traced(t, python, what, *options_)
            t.check("its functions are watched, too" in messages, "not said: %s" % messages)
            check_traced(t, python, what, recording)
    test("python/allocator/%s" % _version)(_allocator)


@test("python/allocator/mimalloc")
def allocator_mimalloc(t):
    """The other allocator of 3.13 and later, the only one of free-threaded builds."""
    if "3.13" not in BUILT:
        raise Skip("no CPython 3.13 with symbols")
    python = interpreter(t, "3.13")
    recording = attach_traced(t, python, "objects", env={"PYTHONMALLOC": "mimalloc"})[1]
    check_traced(t, python, "objects", recording)


@test("python/allocator/copies")
def allocator_copies(t):
    """Where the compiler has copied code of the allocator to its callers, none of its functions is watched."""
    messages, recording = attach_traced(t, t.program("python3"), "objects")
    t.check("have no symbols, or copies elsewhere" in messages, "not said: %s" % messages)
    small = [line for line, (size, blocks) in live_lines(t, recording).items() if size < 512 * blocks]
    t.equal("lines with small objects", small, [])
    if BUILT:
        messages, recording = attach_traced(t, interpreter(t, max(BUILT)), "objects", "--python-malloc=keep")
        t.check("its functions" not in messages, "with keep: %s" % messages)
