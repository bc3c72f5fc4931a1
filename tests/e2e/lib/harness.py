"""Tools for the end-to-end tests: registering them, running programs with and without
ptmem, and comparing numbers. Only this file depends on the format of ptmem's numbers.

A test is a function of one argument, a Context; it returns when all is well, and raises Fail (or
Skip, with the reason) otherwise.
"""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import time

import events
import massif

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.abspath(os.environ.get("BUILD", os.path.join(ROOT, "build")))
TARGETS = os.path.join(BUILD, "targets")
# Options for every run of ptmem that profiles (run -o): --probes=break, say.
MORE_OPTIONS = []

TESTS = {}
CPU = os.uname().machine
MULTIARCH = CPU + "-linux-gnu"  # Debian's directory of libraries
LIBRARIES = "/usr/lib/%s/" % MULTIARCH
# Debian testing's libraries, unpacked by scripts/install-deps: a variant "testing-NAME" is a program that runs with these.
UNPACKED = os.path.join(ROOT, "build/allocators")
UNPACKED_LIBRARIES = {"glibc": "", "jemalloc": "libjemalloc.so.2", "tcmalloc": "libtcmalloc_minimal.so.4",
                      "mimalloc": "libmimalloc.so.3"}

# Other allocators, to be preloaded: their libraries, which may not be installed.
ALLOCATORS = {"jemalloc": LIBRARIES + "libjemalloc.so.2", "tcmalloc": LIBRARIES + "libtcmalloc_minimal.so.4",
              "mimalloc": LIBRARIES + "libmimalloc.so.2",
              "mimalloc-3": os.path.join(UNPACKED, "usr/lib", MULTIARCH, "libmimalloc.so.3")}

# Our name of a quantity -> ptmem's, in --stats.
STATS = {
    "allocations": "allocations",
    "reallocations": "reallocations",
    "frees": "frees",
    "bytes": "allocated bytes",
    "failed": "failed",
    "peak": "peak bytes",
    "live": "live bytes",
    "blocks": "live blocks",
    "unknown": "unknown frees",
    "replaced": "replaced blocks",
    "unwatched": "functions not watched",
    "records": "records",
}
# A process's figures follow its line.
PROCESS_LINE = re.compile(r"^ptmem: process ([0-9]+), ")
STAT_LINE = re.compile(r"^ptmem: ([a-z][a-z -]*[a-z]): +([0-9]+)$")
COUNTED = ("allocations", "reallocations", "frees", "bytes", "failed", "live", "blocks", "peak")


class Fail(Exception):
    pass


class Skip(Exception):
    pass


def test(name, limit=60):
    """Decorator: registers a function as test @name, which may take @limit seconds."""

    def register(function):
        if name in TESTS:
            raise ValueError("two tests named " + name)
        TESTS[name] = (function, limit)
        return function

    return register


def allocator(name):
    """The library of one of ALLOCATORS."""
    if not os.path.exists(ALLOCATORS[name]):
        is_unpacked = ALLOCATORS[name].startswith(UNPACKED)
        raise Skip("no %s%s" % (ALLOCATORS[name], " (scripts/install-deps test needs Debian's mirror)" if is_unpacked else " on this machine"))
    return ALLOCATORS[name]


def unpacked(*argv, preload="", libraries=None, suite=""):
    """The command that runs @argv with the libraries of Debian testing, and before these with those of another suite."""
    directory = os.path.join(UNPACKED, "usr/lib", MULTIARCH)
    if not os.path.exists(os.path.join(UNPACKED, "versions")):
        raise Skip("no build/allocators (scripts/install-deps test needs Debian's mirror)")
    own = os.path.join(UNPACKED, suite, "usr/lib", MULTIARCH)
    if not os.path.exists(own):
        raise Skip("no %s (scripts/install-deps test unpacks it if Debian %s has it)" % (own, suite))
    return [os.path.join(own, "ld-linux-%s.so.%d" % (CPU.replace("_", "-"), 2 if CPU == "x86_64" else 1)), "--library-path",
            ":".join(filter(None, (libraries, own if suite else "", directory))),
            *(["--preload", os.path.join(directory, preload)] if preload else []), *argv]


def is_asan():
    """Whether build/ptmem was built with MODE=asan."""
    return os.path.basename(os.path.dirname(os.path.realpath(os.path.join(BUILD, "ptmem")))) == "asan"


class Result:
    """Exit status as subprocess gives it (negative: signal), standard output and error as bytes."""

    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err


class Profile(Result):
    """One run under ptmem. messages: ptmem's own lines; stats: one dictionary for each process,
    in the order printed, `pid` among it; files: {pid: [massif files, in the order of their names]}."""

    def __init__(self, result, directory, target_pid=None):
        lines = result.err.decode(errors="surrogateescape").splitlines(keepends=True)
        is_own = [l.startswith("ptmem: ") for l in lines]
        err = "".join(l for l, own in zip(lines, is_own) if not own)
        super().__init__(result.status, result.out, err.encode(errors="surrogateescape"))
        self.messages = [l.rstrip("\n") for l, own in zip(lines, is_own) if own]
        self.directory = directory
        self.stats = self.parse_stats()
        self.files = {}
        for name in sorted(os.listdir(directory)):
            match = re.match(r"massif\.out\.(\d+)", name)
            if match:
                self.files.setdefault(int(match.group(1)), []).append(os.path.join(directory, name))

    def parse_stats(self):
        blocks, by_label = [], {v: k for k, v in STATS.items()}
        for line in self.messages:
            process, match = PROCESS_LINE.match(line), STAT_LINE.match(line)
            if process:
                blocks.append({"pid": int(process.group(1))})
            elif match and blocks:
                blocks[-1][by_label.get(match.group(1), match.group(1))] = int(match.group(2))
        return blocks

    def only_stats(self):
        if len(self.stats) != 1:
            raise Fail("%d blocks of --stats where 1 was expected" % len(self.stats))
        return self.stats[0]

    def only_massif(self):
        files = [f for of_pid in self.files.values() for f in of_pid]
        if len(files) != 1:
            raise Fail("massif files: %s where 1 was expected" % [os.path.basename(f) for f in files])
        return massif.Massif(files[0])

    def events(self, own=None):
        """Of --events=events, counted again; own: the end of a module's path."""
        try:
            return events.Events(os.path.join(self.directory, "events"), own)
        except (OSError, ValueError) as error:
            raise Fail("the events file: %s" % error) from error


class Context:
    def __init__(self, directory):
        self.directory = directory
        self.runs = 0

    # ---- programs and files ----

    def target(self, variant, program):
        if variant.startswith(("testing-", "experimental-")):
            return self.unpacked_target(variant, program)
        path = os.path.join(TARGETS, variant, program)
        if not os.path.exists(path):
            raise Skip("%s/%s is not built (compiler or library missing)" % (variant, program))
        return path

    def unpacked_target(self, variant, program):
        """A script that becomes it."""
        suite, _, name = variant.partition("-")
        preload, suite = UNPACKED_LIBRARIES[name], "" if suite == "testing" else suite
        path = os.path.join(self.subdirectory(), program)
        command = unpacked(self.target("gcc-O2-pie", program), preload=preload, suite=suite)
        with open(path, "w", encoding="ascii") as file:
            file.write("#!/bin/sh\nexec %s \"$@\"\n" % shlex.join(command))
        os.chmod(path, 0o755)
        return path

    def program(self, name, path=None):
        found = path if path and os.path.exists(path) else shutil.which(name, path="/usr/bin:/bin:/usr/sbin:/sbin")
        if not found:
            raise Skip("no %s on this machine" % name)
        return found

    def libraries(self, program):
        """The paths of those that it is linked with."""
        return re.findall(r"(/\S+) \(0x", self.run([self.program("ldd"), program]).out.decode())

    def ptmem(self):
        path = os.path.join(BUILD, "ptmem")
        if not os.path.exists(path):
            raise Fail("%s is not built" % path)
        return path

    def pprof(self):
        """Google's, from the sources that the distribution has."""
        path = os.path.join(TARGETS, "pprof")
        if not os.path.exists(path):
            raise Skip("%s is not built (go or golang-github-google-pprof-dev is missing)" % path)
        return path

    def for_others(self, path):
        """A copy of the program that other users may execute: the project may be in a private directory."""
        copy = os.path.join(self.directory, os.path.basename(path))
        for directory in (os.path.dirname(self.directory), self.directory):
            os.chmod(directory, 0o711)
        shutil.copy(path, copy)
        os.chmod(copy, 0o755)
        return copy

    def file(self, name, text):
        path = os.path.join(self.directory, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def subdirectory(self):
        """A fresh working directory for one run."""
        self.runs += 1
        path = os.path.join(self.directory, "run%d" % self.runs)
        os.mkdir(path)
        return path

    def environment(self, cwd, **more):
        env = {
            "PATH": "/usr/bin:/bin:/usr/sbin:/sbin",
            "HOME": self.directory,
            "LANG": "C.UTF-8",
            "TRUTH": os.path.join(cwd, "truth"),
            "ORACLE_DIR": cwd,
            # ptmem inherits what is preloaded for its program
            "ASAN_OPTIONS": "verify_asan_link_order=0:detect_leaks=0",
        }
        if "LD_PRELOAD" in more and is_asan():
            raise Skip("ptmem inherits what is preloaded, and ASan's runtime in it cannot be with another allocator")
        env.update(more)
        return env

    # ---- running ----

    def run(self, argv, cwd=None, env=None, stdin=None, timeout=None):
        """Runs @argv and keeps its output, to investigate failures."""
        cwd = cwd or self.subdirectory()
        env = self.environment(cwd, **(env or {}))
        with open(os.path.join(cwd, "command"), "a", encoding="utf-8", errors="surrogateescape") as file:
            file.write(" ".join(argv) + "\n")
        done = subprocess.run(argv, cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              input=stdin if stdin is not None else b"", timeout=timeout, check=False)
        for name, text in (("stdout", done.stdout), ("stderr", done.stderr)):
            with open(os.path.join(cwd, name), "ab") as file:
                file.write(text)
        result = Result(done.returncode, done.stdout, done.stderr)
        result.cwd = cwd
        return result

    def ms_print(self, args, **how):
        """With its scratch files here: it leaves them in TMPDIR when it dies, where another user's would be in the way."""
        cwd = how.pop("cwd", None) or self.subdirectory()
        return self.run([self.program("ms_print"), *args], cwd=cwd, env={"TMPDIR": cwd}, **how)

    def native(self, argv, **how):
        return self.run(argv, **how)

    def memcheck(self, argv, *options):
        """memcheck's output about leaks of @argv, whose heap is at addresses that no number looks like, and which allocates
        the same each time: it may be kept from an earlier run."""
        import confirmed  # which needs this module
        tool, preloaded = self.program("valgrind"), os.path.join(TARGETS, "high_heap.so")
        options = ["--leak-check=full", "--show-leak-kinds=all", "--num-callers=40", *options]
        return confirmed.memcheck_said(self, tool, argv, options, preloaded, lambda: self.run(
            [tool, *options, *argv], env={"LD_PRELOAD": preloaded}).err.decode())

    def profile(self, argv, options=(), cwd=None, prefix=(), **how):
        """`PREFIX ptmem --stats OPTIONS -- ARGV`, in a directory of its own."""
        cwd = cwd or self.subdirectory()
        result = self.run([*prefix, self.ptmem(), "--stats", *MORE_OPTIONS, *options, "--", *argv], cwd=cwd, **how)
        return Profile(result, cwd)

    def oracle_library(self):
        return os.path.join(TARGETS, "oracle.so")

    def truths(self, cwd):
        """[(pid or None, {quantity: number or None})] from the `expect:` lines; see targets/truth.h."""
        found, pid = [], None
        path = os.path.join(cwd, "truth")
        if not os.path.exists(path):
            raise Fail("the target wrote no truth")
        with open(path, encoding="utf-8") as file:
            for line in file:
                if not line.endswith("\n"):
                    break  # is being written
                if line.startswith("pid "):
                    pid = int(line.split()[1])
                elif line.startswith("expect: "):
                    found.append((pid, expected(line)))
                    pid = None
        return found

    def truth(self, cwd):
        """The last one: some targets report more than once."""
        return self.truths(cwd)[-1][1]

    def true_paths(self, cwd):
        with open(os.path.join(cwd, "truth"), encoding="utf-8") as file:
            lines = [l.split() for l in file if l.startswith("path: ")]
        return {tuple(words[1].split(">")): int(words[2].split("=")[1]) for words in lines}

    # ---- judging ----

    def check(self, condition, what):
        if not condition:
            raise Fail(what)

    def equal(self, what, got, want):
        if got != want:
            raise Fail("%s: %r where %r was expected" % (what, shorten(got), shorten(want)))

    def counts(self, what, got, want, keys=COUNTED):
        """Compares all of @keys that @want has; reports every difference."""
        wrong = ["%s %s, not %s" % (k, got.get(k, "missing"), want[k])
                 for k in keys if want.get(k) is not None and got.get(k) != want[k]]
        if wrong:
            raise Fail("%s: %s" % (what, "; ".join(wrong)))

    def same_behaviour(self, profile, native):
        self.equal("exit status", profile.status, native.status)
        self.equal("standard output", profile.out, native.out)
        self.equal("standard error", profile.err, native.err)

    def wait_until(self, what, condition, seconds=200, pause=0.01):
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                raise Fail("waited %d s: %s" % (seconds, what))
            time.sleep(pause)


def expected(line):
    """The quantities of a line `expect: NAME=NUMBER...`."""
    words = dict(w.split("=") for w in line.split()[1:])
    return {k: None if v == "-" else int(v) for k, v in words.items()}


def shorten(value):
    if isinstance(value, (bytes, str)) and len(value) > 300:
        return value[:300] + (b"..." if isinstance(value, bytes) else "...")
    return value


def add(counts, more):
    """The sum of two dictionaries of quantities; None (unknown) stays."""
    return {k: None if counts.get(k) is None or more.get(k) is None else counts[k] + more[k] for k in counts}


def signal_name(status):
    return signal.Signals(-status).name if status < 0 else str(status)


def run_report(t, *arguments, **how):
    return t.run([os.path.join(BUILD, "ptmem-report"), *arguments], **how)


def report(t, *arguments, status=0, **how):
    """What ptmem-report prints."""
    result = run_report(t, *arguments, **how)
    t.equal("status of ptmem-report %s (%s)" % (arguments, result.err.decode()[:300]), result.status, status)
    return result.out.decode()


def report_json(t, path, *options):
    return json.loads(report(t, "--format=json", *options, path))


def child_that_runs(parent, program):
    """The child of @parent that executes a file of the name @program. ptmem has others for a moment, which do its own work."""
    with open("/proc/%d/task/%d/children" % (parent, parent), encoding="ascii") as file:
        children = [int(word) for word in file.read().split()]
    for pid in children:
        try:
            if os.path.basename(os.readlink("/proc/%d/exe" % pid)) == program:
                return pid
        except FileNotFoundError:
            pass
    raise Fail("%s is not among the children %s" % (program, children))
