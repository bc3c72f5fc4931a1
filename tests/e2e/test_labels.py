"""--label: whose memory it is. The program, labels.c, says what each of its tenants has."""

import os
import re
import signal
import subprocess

from harness import BUILD, test
from live_lib import Listening
from pprof_file import Pprof

# What members of tenants say of those of the program, in its order: three of its own, none, no name, an unreadable one.
TEXTS = {
    "name": ("acme", "globex", "ini?tech", "", "(null)", "?"),
    "plan": ("FREE", "PRO", "ENTERPRISE", "", "FREE", "FREE"),
    "id": ("7", "-8", "9", "", "1", "1"),
}
# Where debug information says so, and without it.
PATHS = {"name": "->tenant->name", "plan": "->tenant->plan", "id": "->+8->id"}


def truth(out, texts):
    """{text: (bytes, calls)}."""
    found = {}
    for line, text in zip(out.decode().splitlines(), texts):
        _, size, calls = line.split()
        before = found.get(text, (0, 0))
        found[text] = (before[0] + int(size), before[1] + int(calls))
    return found


def rows(messages, name):
    """{text: calls} of the label @name in the summary."""
    found, is_in = {}, False
    for line in messages:
        row = re.match(r"ptmem:   (.{12}) .{10} +[0-9.]+ %  (.*); allocated .* in ([0-9,]+) calls?$", line)
        if not row:
            continue
        is_in = row[1].strip() == name if row[1].strip() else is_in
        if is_in:
            found[row[2]] = int(row[3].replace(",", ""))
    return found


def profile(t, program, options, labels):
    """Of each of @labels, {name: where}, bytes by text of a profile and calls by text of its summary: {name: (bytes, calls)}; and the
    run. Both functions have all labels."""
    recording = os.path.join(t.subdirectory(), "r")
    run = t.profile(program, ["--record=" + recording, *options,
                              *("--label=%s=%s:%s" % (name, f, label) for name, label in labels.items() for f in ("handle", "leave"))])
    t.equal("status of %s" % run.messages, run.status, 0)
    t.equal("warnings", [m for m in run.messages if "label=" in m], [])
    pprof = Pprof(t.run([os.path.join(BUILD, "ptmem-report"), "--format=pprof", "--at=end", recording]).out)
    live = re.search(r"at the end +([0-9,]+) bytes", "\n".join(run.messages))
    found = {name: (pprof.by_label(name, "inuse_space"), rows(run.messages, name)) for name in labels}
    for name, (by_text, _) in found.items():
        t.equal("all bytes by %s" % name, sum(by_text.values()), int(live[1].replace(",", "")))
    return found, run


@test("labels/tenants")
def tenants(t):
    """Strings, enumerators and numbers; by breakpoints and pads; each tenant has its bytes, also where calls are left by longjmp.
    Breakpoints are followed by pads with one label at a time, and each way alone has all of them at once."""
    for variant in ("gcc-O2-pie", "clang-O0-nopie"):
        program = t.target(variant, "labels")
        alone = t.run([program])
        for probes, keys in (*(("auto", [key]) for key in TEXTS), ("break", list(TEXTS)), ("jump", list(TEXTS))):
            by_key, run = profile(t, [program], ["--probes=" + probes], {key: "arg1->tenant->" + key for key in keys})
            t.equal("the program", run.out, alone.out)
            for key, (found, calls) in by_key.items():
                texts = TEXTS[key]
                said = truth(alone.out, texts)
                del said[""]
                other = {text: found.pop(text, None) for text in set(found) - set(said)}
                t.equal("%s, %s, %s" % (variant, key, probes), found, {text: size for text, (size, _) in said.items()})
                t.check(set(other) == {""}, "without label: %s" % other)
                shown = [text for text in said if text in calls]
                t.check(len(shown) >= min(4, len(said)), "the largest are shown: %s" % calls)
                t.equal("calls", [calls[text] for text in shown], [said[text][1] for text in shown])


@test("labels/several")
def several(t):
    """Two labels of one function; more texts than are kept; with samples; --within of the same function."""
    program = t.target("gcc-O2-pie", "labels")
    recording = os.path.join(t.directory, "r")
    run = t.profile([program], ["--record=" + recording, "--label=handle:arg1->tenant->name", "--label=whose=handle:arg2",
                                "--within=handle", "--label=path=handle:arg1->path"])
    pprof = Pprof(t.run([os.path.join(BUILD, "ptmem-report"), "--format=pprof", "--at=end", recording]).out)
    by_name, by_number, by_path = (pprof.by_label(key, "inuse_space") for key in ("name", "whose", "path"))
    t.equal("a tenant by both", (by_name["acme"], by_name["globex"], by_name["ini?tech"]), (by_number["0"], by_number["1"], by_number["2"]))
    t.equal("a member that is an array", sorted(by_path), ["", "/orders"])
    t.check(any("calls of handle, at most" in m for m in run.messages), "calls are measured: %s" % run.messages)

    run = t.profile([program, "many"], ["--label=handle:arg1->tenant->id"])
    t.check(any(re.search(r" [0-9]+ others; allocated", m) for m in run.messages), "%s" % run.messages)
    t.check(rows(run.messages, "id").get("other") == 6 * 500, "1,000 texts are kept: %s" % run.messages)

    run = t.profile([program], ["--heap-sample=64", "--seed=7", "--label=handle:arg1->tenant->name"])
    t.check({"acme", "globex", "ini?tech"} < set(rows(run.messages, "name")), "samples have labels: %s" % run.messages)


# Of label_variables.c: what labels say of its tenants, of requests of none, and where pages are gone.
VARIABLES = {
    "tls:current_request->tenant->name": ("acme", "globex incorporated", "x", None, "?"),
    "tls:current_tenant->plan": ("FREE", "PRO", "ENTERPRISE", "FREE", "FREE"),
    "current_tenant->id": ("7", "-8", "9", "0", "0"),
}
# Allocations of the C library have these, too.
IDLE = {"name": None, "plan": "FREE", "id": "0"}
# Its first request has the thread's own tenant nowhere but in current_request.
ODD = (5 + 6 + 7 + 70000 + 13, 7)


def lines(out):
    return [tuple(map(int, line.rsplit(" ", 2)[1:])) for line in out.decode().splitlines() if ": " in line]


def said_by(out, label):
    """{text: (bytes, calls)} of label_variables.c."""
    found = {}
    amounts = lines(out)
    if "current_request" not in label:
        amounts[0] = (amounts[0][0] - ODD[0], amounts[0][1] - ODD[1])
        amounts[3] = (amounts[3][0] + ODD[0], amounts[3][1] + ODD[1])
    for text, (size, calls) in zip(VARIABLES[label], amounts):
        before = found.get(text, (0, 0))
        found[text] = (before[0] + size, before[1] + calls)
    return found


def by_label(t, recording, name):
    return Pprof(t.run([os.path.join(BUILD, "ptmem-report"), "--format=pprof", "--at=end", recording]).out).by_label(name, "inuse_space")


@test("labels/variables")
def variables(t):
    """Of threads; texts in a buffer that is written again, at the end of a page, in pages that are gone; four threads, each to the byte."""
    names = tuple(VARIABLES)
    for variant, labels in (("gcc-O2-pie", names + names[:1]), ("clang-O0-nopie", names[:2])):
        program = t.target(variant, "label_variables")
        for label, probes in zip(labels, ("jump", "break", "auto", "break")):
            name, recording = label.rsplit("->", 1)[1], os.path.join(t.subdirectory(), "r")
            run = t.profile([program], ["--record=" + recording, "--probes=" + probes, "--label=" + label])
            t.equal("status of %s" % run.messages, run.status, 0)
            said = said_by(run.out, label)
            found, calls = by_label(t, recording, name), rows(run.messages, name)
            said.pop(IDLE.get(name))
            t.equal("%s %s: %s" % (variant, probes, label), {text: found.get(text) for text in said}, {text: size for text, (size, _) in said.items()})
            shown = [text for text in said if text in calls]
            t.check(len(shown) >= 2, "the largest are shown: %s" % calls)
            t.equal("calls", [calls[text] for text in shown], [said[text][1] for text in shown])


@test("labels/attached")
def attached(t):
    """A variable is known before the first thread runs on; thread contexts of OpenTelemetry."""
    for target, label, name in (("label_variables", "tls:current_request->tenant->name", "name"), ("label_contexts", "otel:http.route", "http.route")):
        cwd = t.subdirectory()
        program = subprocess.Popen([t.target("gcc-O2-pie", target), "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=cwd)
        t.equal("its first line", program.stdout.readline(), b"ready\n")
        ptmem = subprocess.Popen([t.ptmem(), "-v", "--record=r", "-o", "m", "--label=" + label, "-p", str(program.pid)], cwd=cwd,
                                 stderr=subprocess.PIPE, env=t.environment(cwd))
        said = []
        while b"attached to" not in (said or [b""])[-1]:
            said.append(ptmem.stderr.readline())
            t.check(said[-1], "ptmem has ended: %s" % said)
        out, _ = program.communicate(b"x")
        messages = ptmem.communicate()[1].decode()
        found = by_label(t, os.path.join(cwd, "r"), name)
        if target == "label_variables":
            want = {text: size for text, (size, _) in said_by(out, label).items() if text is not None}
        else:
            want = {line.split()[0]: int(line.split()[1]) for line in out.decode().splitlines()[:3]}
        t.equal("%s, %s" % (label, messages), {text: found.get(text) for text in want}, want)


@test("labels/inherited")
def inherited(t):
    """A child of a fork goes on with the label of its thread; the summary has those of the largest process, and of all, each call once."""
    program, cwd = t.target("gcc-O2-pie", "label_variables"), t.subdirectory()
    run = t.run([t.ptmem(), "-o", "m.%p", "--record=r.%p", "--label=tls:current_request->tenant->name", program, "fork"], cwd=cwd)
    files = [name for name in os.listdir(cwd) if name.startswith("r.")]
    t.check(files, run.err)
    want = lines(run.out)[1][0]
    t.check(want in [by_label(t, os.path.join(cwd, name), "name").get("globex incorporated") for name in files],
            "%d: %s" % (want, run.err))
    messages = run.err.decode().splitlines()
    said = dict(zip(("acme", "globex incorporated", "x", "?"), (calls for i, (_, calls) in enumerate(lines(run.out)) if i != 3)))
    found = rows(messages, "all by name")
    t.equal("calls of all in %s" % messages, {text: found.get(text) for text in said}, said)
    t.check("globex incorporated" in rows(messages, "name"), "%s" % messages)


@test("labels/libraries")
def libraries(t):
    """While a library with another label comes and goes, no allocation of other threads has the wrong label, or none."""
    run = t.profile([t.target("gcc-O2-pie", "label_variables"), "load"], ["--probes=jump", "--label=tls:current_request->tenant->name", "--label=signgam"])
    t.equal("status of %s" % run.messages, run.status, 0)
    calls, said = rows(run.messages, "name"), lines(run.out)
    found = [calls[text] for text in ("acme", "globex incorporated")]
    # those of odd() are in it
    t.equal("calls of %s" % calls, found, [said[0][1], said[1][1]])
    t.check("0" in rows(run.messages, "signgam"), "signgam is a label, too: %s" % run.messages)


MANY = r"""/* 1,200 tenants, one of them "other", and some whose names begin with the same 120 letters. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
char who[200];
static void *volatile kept;
int main(void)
{
	memset(who, 'x', 120);
	for (int i = 0; i < 4; i++) {
		who[120] = (char)('a' + i);
		kept = malloc(100000 - i);
	}
	strcpy(who, "other");
	kept = malloc(70000);
	for (int i = 0; i < 1195; i++) {
		snprintf(who, sizeof(who), "tenant%d", i);
		kept = malloc(1000 + i);
	}
	kept = malloc(9000);
	write(1, "ready\n", 6);
	return read(0, who, 1) != 0;
}
"""


class ManyLabels(Listening):
    def __init__(self, t):
        self.t, self.cwd, self.program = t, t.subdirectory(), None
        source = t.file("many.c", MANY)
        t.equal("gcc", t.run(["gcc", "-g", "-O1", "-w", "-include", "unistd.h", "-o", os.path.join(self.cwd, "many"), source]).status, 0)
        self.ptmem = subprocess.Popen([t.ptmem(), "--listen", "--log-file=log", "--label=who", "--", "./many"], cwd=self.cwd,
                                      env=t.environment(self.cwd), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.expect(self.ptmem, b"ready\n")
        t.wait_until("listening", lambda: self.url() is not None)


@test("labels/metrics")
def metrics(t):
    """Of very many labels the largest are metrics, each series once, the rest is "other": together they are all of the heap."""
    m = ManyLabels(t)
    found = m.get("/metrics").decode()
    rows_of = [(key, int(value)) for key, value in re.findall(r"^ptmem_label_live_bytes({.*}) (\d+)$", found, re.M)]
    series = dict(rows_of)
    t.check(4 < len(rows_of) <= 24, "%d rows" % len(rows_of))
    t.equal("each series once", len(series), len(rows_of))
    t.equal("all of the heap", sum(series.values()), int(m.live()))
    by_value = {re.search('value="(.*)"', key)[1]: value for key, value in series.items()}
    t.equal("the largest tenants", [by_value.get("tenant%d" % i) for i in (1194, 1193)], [None, None])
    t.check(by_value["other"] > 70000 + 1000 * 1000, str(by_value))
    m.end(0)


@test("labels/no-debug")
def no_debug(t):
    """Without debug information offsets work, members are refused once with a hint."""
    program = os.path.join(t.directory, "labels")
    t.run(["strip", "-g", "-o", program, t.target("gcc-O2-pie", "labels")])
    said = truth(t.run([program]).out, TEXTS["name"])
    found = profile(t, [program], [], {"name": "arg1->+8->+8"})[0]["name"][0]
    t.equal("tenants", [found[k] for k in ("acme", "globex", "ini?tech")], [said[k][0] for k in ("acme", "globex", "ini?tech")])
    run = t.profile([program], ["--label=handle:arg1->tenant->name"])
    hints = [m for m in run.messages if "no debug information says where the member tenant is" in m]
    t.equal("hints in %s" % run.messages, (run.status, len(hints)), (0, 1))


@test("labels/refused")
def refused(t):
    """Each with a sentence that says what it should be; a function that does not exist is reported at the end."""
    for text, why in (("+8", "FUNCTION:argN"), ("otel:", "key of an attribute"), ("handle:arg9", "N from 1 to 6"), ("handle:arg1->", "name of a member"), (":arg1", "FUNCTION:argN"),
                      ("handle:arg1->+x", "number of bytes"), ("handle:arg1:text", ":str, :int or :hex"), ("handle:arg1" + "->a" * 9, "more than 8")):
        run = t.profile(["true"], ["--label=" + text])
        t.check(run.status and any("--label=%s: " % text in m and why in m for m in run.messages), "%s: %s" % (text, run.messages))
    for label, why in (("no_such_variable", "no variable of this name"), ("otel:x", "no thread context"), ("tls:current_tenant", "name a member"),
                       ("current_request->tenant->x", "no such member")):
        run = t.profile([t.target("gcc-O2-pie", "label_variables")], ["--label=" + label])
        t.equal("messages of %s: %s" % (label, run.messages), sum("--label=%s: " % label in m and why in m for m in run.messages), 1)
    run = t.profile(["true"], ["--label=v%d" % i for i in range(5)])
    t.check(run.status and "at most four" in "".join(run.messages), "%s" % run.messages)
    run = t.profile(["true"], ["--label=handle:arg1", "--heap=no"])
    t.check(run.status and "--heap=no" in "".join(run.messages), "%s" % run.messages)
    run = t.profile(["true"], ["--label=no_such_function:arg1"])
    t.check(any("--label=no_such_function: no function of this name" in m for m in run.messages), "%s" % run.messages)


SOME = r"""/* some FIRST: 600 tenants, from number FIRST on. */
#include <stdio.h>
#include <stdlib.h>
char who[20];
static void *volatile kept;
int main(int argc, char **argv)
{
	for (int i = 0; i < 600; i++) {
		snprintf(who, sizeof(who), "tenant%d", atoi(argv[argc - 1]) + i);
		kept = malloc(1000);
	}
	return 0;
}
"""


@test("labels/many-processes")
def many_processes(t):
    """Processes that have more texts than are kept in all, and none of them too many: the rest is "other", and all calls are there."""
    source, cwd = t.file("some.c", SOME), t.subdirectory()
    t.equal("gcc", t.run(["gcc", "-g", "-O1", "-w", "-o", os.path.join(cwd, "some"), source]).status, 0)
    run = t.run([t.ptmem(), "-o", "none", "--trace-children=yes", "--label=who", "sh", "-c", "./some 0; ./some 600; ./some 1100"], cwd=cwd)
    t.equal("status of %s" % run.err, run.status, 0)
    row = next(line for line in run.err.decode().splitlines() if line.startswith("ptmem:   all by who"))
    t.check(row.endswith("other; allocated 781.2 KiB in 800 calls"), "those above a thousand: %s" % run.err)


CALLS = r"""/*
 * Calls of handle() that begin and end in all ways. It prints what each tenant has: "TENANT BYTES CALLS". With "wait": a first
 * call is in progress when "ready" is printed, and goes on when there is a byte to read.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#define NOINLINE __attribute__((noinline, noclone))
enum how { PLAIN, RECURSE, LEAVE, THROW, TAIL, SIGNAL, WAIT };
struct tenant { const char *name; };
enum { NONE = 3, NULLS, TENANTS };
static struct tenant tenants[TENANTS] = {{"acme"}, {"globex"}, {"initech"}, {""}, {NULL}};
static unsigned long bytes[TENANTS], calls[TENANTS];
static thread_local int current = NONE;
static thread_local jmp_buf out;
static void *volatile sink;
static volatile int zero;

static NOINLINE void keep(size_t size)
{
	sink = malloc(size);
	__atomic_fetch_add(&bytes[current], size, __ATOMIC_RELAXED);
	__atomic_fetch_add(&calls[current], 1, __ATOMIC_RELAXED);
}

static void on_signal(int) { keep(7); }

/* Its caller's last act, which compilers make a jump: it ends the call. */
static NOINLINE void finish(int is_outer, int)
{
	keep(11);
	if (is_outer)
		current = NONE;
	zero = 0;
}

/* The outermost call counts. */
extern "C" NOINLINE void handle(struct tenant *t, int depth, enum how how)
{
	int is_outer = current == NONE && how != WAIT;

	if (is_outer)
		current = (int)(t - tenants);
	if (how == WAIT) {
		printf("ready\n");
		is_outer = read(0, &depth, 1) * 0;
	}
	keep(3);
	if (how == RECURSE && depth > 0) {
		handle(&tenants[depth % 3], depth - 1, how);
		keep(5);
	}
	if (how == LEAVE)
		longjmp(out, 1);
	if (how == THROW) {
		__atomic_fetch_add(&calls[current], 1, __ATOMIC_RELAXED); /* the exception: it is freed */
		throw depth;
	}
	if (how == SIGNAL)
		raise(SIGUSR1);
	if (how == TAIL)
		return finish(is_outer, depth);
	if (is_outer)
		current = NONE;
	zero = 0;
}

extern "C" NOINLINE void other(struct tenant *, int, enum how) { keep(13); zero = 0; }

/* The call that returns to its caller may be one of either. */
static NOINLINE void wrap(struct tenant *t, int depth, enum how how)
{
	if (depth % 2)
		return other(t, depth, how);
	return handle(t, depth, how);
}

/* Leaves what it has pushed. */
static NOINLINE void shallow(struct tenant *t) { handle(t, 0, PLAIN); zero = 0; }
static NOINLINE void below(struct tenant *t) { volatile char space[64]; space[zero] = 0; shallow(t); zero = 0; }

/* Has, in its frame, what was left there. */
static NOINLINE void deep(struct tenant *t)
{
	volatile char space[8192];

	space[zero] = 1;
	keep(17);
	if (t)
		handle(t, 0, PLAIN);
	keep(19);
}

static NOINLINE void leave(struct tenant *t, int n)
{
	if (!setjmp(out))
		handle(t, n, LEAVE);
	current = NONE;
	keep(23);
}

static NOINLINE void escape(struct tenant *t, int n)
{
	try {
		handle(t, n, THROW);
	} catch (int) {
	}
	current = NONE;
	keep(29);
}

static void *run(void *)
{
	static void (*volatile const functions[])(struct tenant *, int, enum how) = {handle, other};
	stack_t own = {};

	own.ss_size = 1 << 16;
	own.ss_sp = mmap(NULL, own.ss_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	sigaltstack(&own, NULL);
	for (int n = 0; n < 60; n++) {
		struct tenant *t = &tenants[n % 3];

		handle(t, n, PLAIN);
		keep(1);
		handle(t, n % 5, RECURSE);
		handle(t, n, TAIL);
		keep(2);
		for (int i = 0; i < 4; i++)
			functions[i % 2](t, n, PLAIN);
		wrap(t, n, PLAIN);
		wrap(t, n + 1, TAIL);
		below(t);
		deep(NULL);
		below(t);
		deep(&tenants[(n + 1) % 3]);
		leave(t, n);
		handle(t, n, SIGNAL);
		raise(SIGUSR1);
		if (n % 10 == 0)
			escape(t, n);
		if (n % 3 == 0)
			handle(&tenants[NULLS], n, PLAIN);
	}
	own.ss_flags = SS_DISABLE;
	sigaltstack(&own, NULL);
	return NULL;
}

int main(int argc, char **)
{
	struct sigaction action = {};
	pthread_t thread[2];

	action.sa_handler = on_signal;
	action.sa_flags = SA_ONSTACK;
	sigaction(SIGUSR1, &action, NULL);
	setvbuf(stdout, NULL, _IONBF, 0);
	if (argc > 1)
		handle(&tenants[0], 0, WAIT);
	for (int i = 0; i < 2; i++)
		pthread_create(&thread[i], NULL, run, NULL);
	run(NULL);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	for (int i = 0; i < TENANTS; i++)
		printf("%s %lu %lu\n", i == NONE ? "-" : tenants[i].name ? tenants[i].name : "(null)", bytes[i], calls[i]);
	return 0;
}
"""


def stops(messages):
    return next(int(m.split()[-1].replace(",", "")) for m in messages if "breakpoint stops" in m)


@test("labels/calls")
def calls_of_all_kinds(t):
    """Pads follow calls without stops; recursion, jumps instead of returns and calls, longjmp, exceptions, handlers of signals,
    what frames find on the stack, and functions that are called from the same place: each to the byte, by breakpoints and pads."""
    cwd = t.subdirectory()
    program = os.path.join(cwd, "calls")
    t.equal("g++", t.run(["g++", "-g", "-O2", "-w", "-fno-builtin-malloc", "-pthread", "-o", program, t.file("calls.cpp", CALLS)]).status, 0)
    labels = ["--label=who=handle:arg1->name", "--label=depth=handle:arg2", "--label=how=handle:arg3"]
    found = {}
    for probes in ("break", "jump", "auto"):
        recording = os.path.join(cwd, probes)
        run = t.profile([program], ["--record=" + recording, "--probes=" + probes, *labels])
        t.equal("status of %s" % run.messages, run.status, 0)
        said = {line.split()[0]: tuple(map(int, line.split()[1:])) for line in run.out.decode().splitlines()}
        found[probes] = [by_label(t, recording, name) for name in ("who", "depth", "how")]
        del said["-"]
        t.equal("by %s" % probes, {text: size for text, size in found[probes][0].items() if text}, {text: size for text, (size, _) in said.items()})
        calls = rows(run.messages, "who")
        t.equal("calls by %s" % probes, {text: calls.get(text) for text in said}, {text: n for text, (_, n) in said.items()})
        found[probes].append(stops(run.messages))
    t.equal("depths and ways", found["jump"][1:3], found["break"][1:3])
    t.equal("depths and ways", found["auto"][1:3], found["break"][1:3])
    t.check(found["jump"][3] < found["break"][3] / 3, "pads follow most calls: %s" % {p: f[3] for p, f in found.items()})
    running = subprocess.Popen([program, "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=cwd)
    t.equal("its first line", running.stdout.readline(), b"ready\n")
    ptmem = subprocess.Popen([t.ptmem(), "-v", "--record=a", "-o", "m", labels[0], "-p", str(running.pid)], cwd=cwd, stderr=subprocess.PIPE,
                             env=t.environment(cwd))
    messages = []
    while b"attached to" not in (messages or [b""])[-1]:
        messages.append(ptmem.stderr.readline())
        t.check(messages[-1], "ptmem has ended: %s" % messages)
    out, _ = running.communicate(b"x")
    ptmem.communicate()
    said = {line.split()[0]: int(line.split()[1]) for line in out.decode().splitlines() if line[0] != "-"}
    t.equal("a call in progress has no label", {text: size for text, size in by_label(t, os.path.join(cwd, "a"), "who").items() if text}, said)
