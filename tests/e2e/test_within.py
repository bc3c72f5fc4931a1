"""--within: what calls of functions need. The program, within.cpp, says what each of its functions does."""

import json
import os
import re
import subprocess

from harness import BUILD, test
from process_lib import Attached

# calls; allocations, peak, live-at-end, allocated of the worst call; temporary in percent
CALLS = {
    "handle": (80, 3, 1219, 1019, 1319, 33.3),
    "recurse": (2, 10, 100, 100, 100, 0),
    "leave": (3, 1, 50, 50, 50, 0),
    "grow": (1, 1, 4000, 4000, 4000, 0),
    "many": (100, 1, 37, 37, 37, 0),
    "number": (20, 1, 8, 8, 8, 0),
    "jumps": (1, 3, 8, 8, 8, 0),
    "last": (2, 2, 3, 3, 3, 0),
    "forks": (1, 2, 96, 96, 96, 0),
    "ends": (1, 1, 99, 99, 99, 0),
}


def calls_of(messages):
    """{function: (calls, allocations, peak, live-at-end, allocated, temporary)}; the last of each process."""
    found, function = {}, None
    for line in messages:
        head = re.match(r"ptmem: process [0-9]+: ([0-9]+) calls? of ([^,]+), at most:", line)
        if head:
            function = head[2]
            found[function] = [int(head[1])]
        value = re.match(r"ptmem:   [a-z-]+ +(?:.*\()?([0-9.,]+)(?: bytes?| %)?\)? \(call", line)
        if value and function:
            found[function].append(float(value[1].replace(",", "")))
    return {name: tuple(values) for name, values in found.items()}


@test("within/calls")
def calls(t):
    """Each call, however it returns or is left, and however events are caught; the program does what it does without ptmem."""
    for variant in ("gcc-O2-pie", "clang-O0-nopie"):
        program = t.target(variant, "within")
        alone = t.run([program])
        for probes in ("break", "jump"):
            run = t.profile([program], ["--probes=" + probes, "--within=ns::thrower", *("--within=" + f for f in CALLS)])
            t.equal("the program", (run.status, run.out), (0, alone.out))
            found = calls_of(run.messages)
            number, allocations, peak, live, allocated, _ = found.pop("ns::thrower")
            # the exception is there as long as it is being handled: the call has ended when it is caught
            t.check((number, allocations) == (100, 2) and 300 < peak == live == allocated < 600, "ns::thrower: %s %s" % (peak, live))
            t.equal("%s, %s" % (variant, probes), found, CALLS)
            t.equal("warnings", [m for m in run.messages if "within=" in m], [])


def check_recorded(t, recording, limits, status, said):
    """The same limits, of the recording: what ptmem-report says is a line for each of @said."""
    result = t.run([os.path.join(BUILD, "ptmem-report"), "--format=junit", *limits, recording])
    lines = [m for m in result.err.decode().splitlines() if not m.startswith("ptmem-report:   ")]
    t.equal("status of %s: %r" % (limits, result.err), result.status, status)
    t.check(all(any(s in line for line in lines) for s in said) and (status == 255 or len(lines) == len(said)), "%s: %s" % (limits, lines))


@test("within/limits")
def limits(t):
    """Limits of calls: by their suffix, by --within, in a file; with the call and its sites; a function without calls fails."""
    program = t.target("gcc-O2-pie", "within")
    for _, (function, values) in zip(range(4), CALLS.items()):
        exact = ["%s<=%g" % pair for pair in zip(("allocations", "peak", "live-at-end", "allocated"), values[1:])]
        run = t.profile([program], ["-q", "--within=" + function, *("--limit=" + l for l in exact)])
        t.equal("limits that hold: %s" % run.messages, (run.status, run.messages), (0, []))
        run = t.profile([program], ["-q", *("--limit=%s within %s" % (l.replace("=", ""), function) for l in exact)])
        said = [m for m in run.messages if "limit exceeded: " in m]
        t.check(run.status == 1 and len(said) == 4 and all("in call " in m and " of %s, process" % function in m for m in said), "%s" % said)
    path = os.path.join(t.directory, "limits")
    with open(path, "w", encoding="ascii") as file:
        file.write("# one request\npeak<1220 within handle\npeak<1219 within handle\npeak<1T\n")
    out = os.path.join(t.directory, "o.json")
    recording = os.path.join(t.directory, "r")
    run = t.profile([program], ["-q", "--limits-file=" + path, "--limits-out=" + out, "--record=" + recording])
    said = [m for m in run.messages if not m.startswith("ptmem:   ")]
    t.check(len(said) == 1 and "peak<1219 within handle: it is 1.2 KiB (1,219 bytes) in call 20 of handle" in said[0], "%s" % said)
    with open(out, encoding="utf-8") as file:
        checks = {c["check"]: c for c in json.load(file)["checks"]}
    t.equal("checks", [c["passed"] for c in checks.values()], [True, False, True])
    sites = checks["peak<1219 within handle"]["sites"]
    t.check(sorted(s["new"] for s in sites) == [200, 1019] and all("within.cpp" in s["file"] for s in sites), "sites: %s" % sites)
    check_recorded(t, recording, ["--limits-file=" + path], 3, ["peak<1219 within handle: it is 1.2 KiB (1,219 bytes) in call 20 of handle"])
    check_recorded(t, recording, ["--limit=allocations<1T within thrower"], 255, ["give the limit", "this one has that within handle"])
    run = t.profile([program], ["-q", "--limit=peak<1T within nowhere"])
    t.check(run.status == 1 and any("no function of this name" in m for m in run.messages) and
            any("it was not measured" in m for m in run.messages), "nowhere: %s" % run.messages)


PARTS = """#include <pthread.h>
#include <stdlib.h>
#define MARKER(name) __attribute__((noinline)) void name(void) { __asm__ volatile(""); }
MARKER(loading) MARKER(loaded) MARKER(frame) MARKER(never)
char *volatile before, *volatile kept[10];
static void *load(void *unused)
{
	for (int i = 0; i < 10; i++)
		kept[i] = malloc(1000);
	return unused;
}
int main(void)
{
	pthread_t thread;

	before = malloc(1 << 20);
	loading();
	char *volatile own = malloc(5000);
	loading();
	before = realloc(before, (1 << 20) + 50);
	free(own);
	pthread_create(&thread, NULL, load, NULL);
	pthread_join(thread, NULL);
	free(kept[0]);
	loaded();
	free(before);
	for (int i = 0; i < 6; i++) {
		frame();
		for (int k = 0; k <= i; k++)
			free(malloc(300 + k));
	}
	loading();
	free(malloc(1 << 21));
	return 0;
}
"""


NAMES = """struct X { int n; };
template <class T> __attribute__((noinline)) T *fill(int n) { return new T[n]; }
__attribute__((noinline)) bool operator<(const X &a, const X &b) { delete[] fill<int>(b.n); return a.n < b.n; }
namespace a { namespace { __attribute__((noinline)) void hidden(int n) { delete[] fill<double>(n); } } }
struct S {
	int v;
	__attribute__((noinline)) ~S() { delete[] fill<short>(v); }
	__attribute__((noinline)) void operator()(int n) { delete[] fill<long>(n); }
};
int main()
{
	X one{10}, two{20};
	S s{100};
	s(7);
	a::hidden(3);
	return two < one;
}
"""
# names of reports, in all forms; bytes
NAMED = {"operator<": 40, "operator<(X const&, X const&)": 40, "a::(anonymous namespace)::hidden": 24, "S::~S": 200, "S::operator()": 56,
         "a::(anonymous namespace)::hidden(int)": 24, "fill<double>": 24, "double* fill<double>(int)": 24, "double* fill<double>": 24}


@test("within/names")
def names(t):
    """Functions of C++ by each form of the names that reports have, in both kinds of limits."""
    program = t.file("names", "")
    done = t.run([t.program("g++"), "-g", "-O1", "-fno-builtin", "-o", program, t.file("names.cpp", NAMES)])
    t.equal("g++: %r" % done.err, done.status, 0)
    for name, size in NAMED.items():
        limits = ["--limit=allocated<=%d within %s" % (n, name) for n in (size, size - 1)]
        limits += ["--limit=allocated@%s<=%d" % (name, n) for n in (size, size - 1)]
        said = [m for m in t.profile([program], ["-q", *limits]).messages if not m.startswith("ptmem:   ")]
        t.check([m.split(": ")[1:3] for m in said] == [["limit exceeded", l[len("--limit="):]] for l in limits[1::2]], "%s: %s" % (name, said))


@test("within/two-names")
def two_names(t):
    """Of two names of one function, the second one is not measured, which is said, and its limit does not hold."""
    program = t.file("names", "")
    done = t.run([t.program("g++"), "-O1", "-fno-builtin", "-o", program, t.file("names.cpp", NAMES)])
    t.equal("g++: %r" % done.err, done.status, 0)
    run = t.profile([program], ["-q", "--limit=peak<1T within S::operator()", "--limit=peak<1T within S::operator()(int)"])
    t.check(run.status == 1 and any("within=S::operator()(int): S::operator() names this function, too: give it one name" in m for m in run.messages),
            "%s" % run.messages)


@test("within/parts")
def parts(t):
    """Parts of a run between entries of functions, in all threads; one that does not end does not count."""
    program = t.file("parts", "")
    done = t.run([t.program("gcc"), "-O1", "-fno-builtin", "-pthread", "-o", program, t.file("parts.c", PARTS)])
    t.equal("gcc: %r" % done.err, done.status, 0)
    # pthread_create allocates, too: that many bytes, once
    part, own = "between loading and loaded", 10 * 1000 + 50
    for probes in "jump", "break":
        given = ["--limit=allocations<=13 " + part, "--limit=peak<=5 between frame and frame"]
        recording = os.path.join(t.directory, probes)
        run = t.profile([program], ["--probes=" + probes, *given, "--limit=peak<1 between loading and never",
                                    "--limit=peak<1 between nowhere and loaded", "--record=" + recording])
        check_recorded(t, recording, given, 3, ["peak<=5 between frame and frame: it is 304 bytes in part 5 between frame and frame"])
        check_recorded(t, recording, ["--limit=peak<1 between loading and never"], 255, [part + ", between frame and frame"])
        text = "\n".join(run.messages)
        found = {m[1]: m[2] for m in re.finditer(r"ptmem: process [0-9]+: ([0-9]+ parts? between .*), at most:((?:\nptmem:   .*)*)", text)}
        t.equal("parts: " + text, set(found), {"1 part " + part, "5 parts between frame and frame"})
        value = re.compile(r"(?:\(| )([0-9,]+)(?: bytes\)?)? \(part")
        values = {name: [int(n.replace(",", "")) for n in value.findall(shown)] for name, shown in found.items()}
        allocations, peak, live, allocated = values["1 part " + part]
        stack = peak - own
        t.check(allocations == 13 and 0 <= stack < 1000 and live == own - 1000 + stack and allocated == own + 5000 + stack, "%s" % values)
        t.equal("frames", values["5 parts between frame and frame"], [5, 304, 0, 5 * 300 + 10])
        t.equal("status", run.status, 1)
        for line in ("limit exceeded: peak<=5 between frame and frame: it is 304 bytes in part 5 between frame and frame",
                     "limit not checked: peak<1 between loading and never: it was not measured", "function never: it was never called",
                     "limit not checked: peak<1 between nowhere and loaded: it was not measured", "function nowhere: no function of this"):
            t.check(line in text, "%s: %s" % (line, text))
        t.check("allocations<=13" not in text, text)


SEVERAL = """#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline)) void load(int n) { free(malloc(n)); free(malloc(n / 2)); }
__attribute__((noinline)) void first(void) { free(malloc(7)); }
int main(void)
{
	first();
	for (int i = 0; i < 3; i++)
		if (!fork()) {
			for (int k = 0; k <= i; k++)
				load(i == 1 ? 5000 + k : 10 + i);
			return 0;
		}
	while (wait(NULL) > 0)
		;
	return 0;
}
"""


@test("within/several")
def several(t):
    """Of several processes there is one summary, and one of the calls in all of them, with the process that needed most."""
    program = t.file("several", "")
    done = t.run([t.program("gcc"), "-O1", "-fno-builtin", "-o", program, t.file("several.c", SEVERAL)])
    t.equal("gcc: %r" % done.err, done.status, 0)
    text = t.run([t.ptmem(), "-o", "none", "--within=load", "--within=first", "--limit=peak<1 within load", program]).err.decode()
    worst = re.search(r"in call 2 of load, process ([0-9]+)", text)
    t.check("largest peak of 4 processes" in text and worst, text)
    lines = text[text.index("ptmem: 6 calls of load in 3 processes, at most:"):].splitlines()
    at = r" \(call 2, process %s\)" % worst[1]
    for line, pattern in zip(lines[1:6], (r"allocations +2 \(call 1, process [0-9]+\)", r"peak +4\.9 KiB \(5,001 bytes\)" + at,
                                          r"live-at-end +0 bytes \(call 1, process [0-9]+\)", r"allocated +7\.3 KiB \(7,501 bytes\)" + at,
                                          r"temporary +100\.0 % \(call 1, process [0-9]+\)")):
        t.check(re.fullmatch("ptmem:   " + pattern, line), "%r: %s" % (pattern, line))
    t.check(re.search(r"ptmem: process [0-9]+: 1 call of first, at most:\n.*\nptmem:   peak +7 bytes \(call 1\)", text), text)


@test("within/attached")
def attached(t):
    """Attaching and detaching while calls are in progress."""
    with subprocess.Popen([t.target("gcc-O2-pie", "within"), "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        for _ in range(3):
            ptmem = Attached(t, server.pid, ["--massif-out-file=/dev/null", "--within=handle"]).wait_attached()
            for _ in range(50):
                server.stdin.write(b"x")
                server.stdin.flush()
                t.equal("answer", server.stdout.read(1), b"x")
            t.equal("calls", calls_of(ptmem.detach().messages), {"handle": (50, 3, 1200, 1000, 1300, 33.3)})
        server.stdin.close()
        t.equal("status of the server", server.wait(timeout=200), 0)


@test("within/refused")
def refused(t):
    record = os.path.join(t.directory, "r")
    program = t.target("gcc-O2-pie", "within")
    t.profile([program], ["-q", "--record=" + record])
    for arguments, why in ((["--limit=rss<1 within f", "true"], b"not measured within calls"),
                           (["--limit=peak@g<1 within f", "true"], b"not measured within calls"),
                           (["--limit=peak<1 within ", "true"], b"after within comes the name"),
                           (["--limit=peak<1 within", "true"], b"after within comes the name"),
                           (["--limit=peak<1 between", "true"], b"after between come two functions"),
                           (["--within=f", "--heap-sample=1M", "true"], b"--heap-sample cannot be used with it"),
                           (["--limit=peak<1 within f", "--pages-as-heap=yes", "true"], b"--pages-as-heap")):
        result = t.run([t.ptmem(), *arguments])
        t.check(result.status == 1 and why in result.err, "%s: %d %r" % (arguments, result.status, result.err))
    result = t.run([os.path.join(BUILD, "ptmem-report"), "--limit=peak<1 within f", record])
    t.check(result.status == 255 and b"give the limit, or --within=FUNCTION, to ptmem" in result.err, "%d %r" % (result.status, result.err))
    run = t.profile([program], ["-q", "--within=malloc"])
    t.check(run.status == 0 and any("it allocates or releases itself" in m for m in run.messages), "malloc: %s" % run.messages)
