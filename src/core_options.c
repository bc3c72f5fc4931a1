/*
 * The table of Valgrind's core options without a field (valgrind --help of 3.19,
 * --help-debug included). A row says what Valgrind takes, and which of these
 * values have no sense here.
 *
 *	--num-callers=12   taken: the depth of Massif's stacks is --depth
 *	--tool=memcheck    refused: ptmem is Massif alone
 *	--xml=yes          refused: there are no errors to describe
 */
#include "core_options.h"

#include <stdlib.h>
#include <string.h>

enum value_kind { ANYTHING, YES_NO, NUMBER };

struct core_option {
	const char *name;
	enum value_kind kind;
	long min, max;            /* NUMBER; min > max: no range */
	const char *only;         /* the values that are taken, commas between; NULL = all */
	const char *refusal;      /* why the others are not */
};

#define ANY(name) {name, ANYTHING, 1, 0, NULL, NULL}
#define SWITCH(name) {name, YES_NO, 1, 0, NULL, NULL}
#define COUNT(name, min, max) {name, NUMBER, min, max, NULL, NULL}
#define ONLY(name, only, refusal) {name, ANYTHING, 1, 0, only, refusal}
#define NEVER(name, refusal) {name, ANYTHING, 1, 0, "", refusal}

static const char no_errors[] = "a heap profile has no errors to report";
static const char no_server[] = "there is no debugger to wait for; ptmem --monitor talks to a running ptmem";
static const char no_simulation[] = "the program runs on the real CPU: there is nothing of the kind to trace";

static const struct core_option core_options[] = {
	ONLY("tool", "massif", "ptmem does what Massif does, and no other tool"),
	COUNT("num-callers", 1, 500),
	/* errors: Massif has none either, and takes these */
	SWITCH("error-limit"), COUNT("error-exitcode", 1, 0), SWITCH("exit-on-first-error"), ANY("error-markers"),
	SWITCH("show-error-list"), ANY("suppressions"), SWITCH("default-suppressions"), ANY("gen-suppressions"),
	COUNT("input-fd", 1, 0), SWITCH("sigill-diagnostics"), SWITCH("show-emwarns"), SWITCH("time-stamp"),
	ONLY("xml", "no", no_errors), NEVER("xml-fd", no_errors), NEVER("xml-file", no_errors),
	NEVER("xml-socket", no_errors), ANY("xml-user-comment"),
	ONLY("track-fds", "no", "ptmem watches the heap, not descriptors"), ONLY("modify-fds", "no", "the program's "
	     "descriptors are its own"),
	NEVER("log-socket", "messages go to standard error, --log-file or --log-fd"),
	/* the debugger's side */
	ONLY("vgdb", "no,yes,full", "it takes no, yes or full"), ONLY("vgdb-error", "999999999", no_server),
	ONLY("vgdb-stop-at", "none", no_server), ANY("vgdb-prefix"), SWITCH("vgdb-shadow-registers"),
	COUNT("vgdb-poll", 1, 0),
	/* the end of a program is left alone */
	SWITCH("run-libc-freeres"), SWITCH("run-cxx-freeres"),
	/* the simulated CPU and its memory */
	COUNT("redzone-size", 0, 4096), COUNT("core-redzone-size", 0, 4096), COUNT("max-stackframe", 1, 0), COUNT("main-stacksize", 1, 0),
	COUNT("valgrind-stacksize", 1, 0), COUNT("max-threads", 1, 0), ANY("smc-check"), ANY("sim-hints"),
	ANY("fair-sched"), COUNT("scheduling-quantum", 1, 0), ANY("kernel-variant"), COUNT("num-transtab-sectors", 1, 0),
	COUNT("avg-transtab-entry-size", 1, 0), ANY("aspace-minaddr"), COUNT("sanity-level", 1, 0),
	COUNT("unw-stack-scan-thresh", 1, 0), COUNT("unw-stack-scan-frames", 1, 0), ANY("resync-filter"),
	ANY("px-default"), ANY("px-file-backed"), SWITCH("sym-offsets"), SWITCH("wait-for-gdb"),
	COUNT("progress-interval", 1, 0),
	/* debug information */
	SWITCH("read-var-info"), SWITCH("keep-debuginfo"), SWITCH("dsymutil"), SWITCH("allow-mismatched-debuginfo"),
	SWITCH("enable-debuginfod"),
	NEVER("debuginfo-server", "debug information is read from files; see --extra-debuginfo-path"),
	ONLY("merge-recursive-frames", "0", "stacks are shown whole; --depth cuts them"),
	NEVER("require-text-symbol", "ptmem asks for no symbol"),
	/* what Valgrind tells of itself */
	ONLY("trace-syscalls", "no", "strace shows system calls"), ONLY("trace-signals", "no", no_simulation),
	ONLY("trace-symtab", "no", no_simulation), ONLY("trace-cfi", "no", no_simulation),
	ONLY("trace-redir", "no", no_simulation), ONLY("trace-sched", "no", no_simulation),
	ONLY("trace-flags", "00000000", no_simulation), ONLY("profile-heap", "no", no_simulation),
	ANY("profile-flags"),
};

static bool is_in_list(const char *list, const char *value)
{
	size_t n = strlen(value);
	for (const char *s = list; *s; s += strcspn(s, ","), s += *s == ',') {
		if (strcspn(s, ",") == n && strncmp(s, value, n) == 0)
			return true;
	}
	return false;
}

static bool is_good_value(const struct core_option *o, const char *value)
{
	char *end; /* no digits at all are 0 to Valgrind */
	switch (o->kind) {
	case YES_NO:
		return is_in_list("yes,no", value);
	case NUMBER: {
		long n = strtol(value, &end, 10);
		return !*end && (o->min > o->max || (n >= o->min && n <= o->max));
	}
	default:
		return true;
	}
}

static const char *what_it_takes(const struct core_option *o)
{
	if (o->kind == YES_NO)
		return "yes or no";
	if (o->max == 500)
		return "a whole number from 1 to 500";
	return o->max == 4096 ? "a whole number from 0 to 4096" : "a whole number";
}

enum core_answer core_option_check(const char *name, size_t length, const char *value, const char **why_out)
{
	for (size_t i = 0; i < ARRAY_SIZE(core_options); i++) {
		const struct core_option *o = &core_options[i];
		if (strlen(o->name) != length || strncmp(o->name, name, length) != 0)
			continue;
		if (!value || !is_good_value(o, value)) {
			*why_out = value ? what_it_takes(o) : "a value";
			return CORE_BAD_VALUE;
		}
		*why_out = o->refusal;
		return o->only && !is_in_list(o->only, value) ? CORE_REFUSED : CORE_TAKEN;
	}
	return CORE_UNKNOWN;
}

bool core_option_is_letter(char letter)
{
	return letter == 's'; /* the list of errors at the end: there are none */
}
