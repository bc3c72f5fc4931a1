/*
 * The table of Valgrind's core options without a field (valgrind --help of 3.19,
 * --help-debug included). A row lists the values that Valgrind accepts, and which of them are
 * refused here.
 *
 *	--num-callers=12   accepted: the depth of Massif's stacks is --depth
 *	--tool=memcheck    refused: ptmem replaces Massif only
 *	--xml=yes          refused: there are no errors to describe
 *	--smc-check=some   a bad value, as for Valgrind
 */
#include "cli/command_line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum value_kind {
	TAKES_ANYTHING,
	TAKES_YES_NO,
	TAKES_NUMBER,
	TAKES_ONE_WORD,
	TAKES_WORDS,
	TAKES_NOTHING
};

struct core_option {
	const char *name;
	enum value_kind kind;
	long min, max;            /* NUMBER; min > max: no range */
	/* accepted values, separated by commas; NULL = all; WORDS: any combination */
	const char *only;
	const char *why;          /* ANYTHING: why others are refused; otherwise what it takes */
};

#define ANY(name) {name, TAKES_ANYTHING, 1, 0, NULL, NULL}
#define SWITCH(name) {name, TAKES_YES_NO, 1, 0, "yes,no", "yes or no"}
#define COUNT(name) {name, TAKES_NUMBER, 1, 0, NULL, "a whole number"}
#define BETWEEN(name, min, max) \
	{name, TAKES_NUMBER, min, max, NULL, "a whole number from " #min " to " #max}
#define ONE_OF(name, words) {name, TAKES_ONE_WORD, 1, 0, words, "one of " words}
#define SOME_OF(name, words) {name, TAKES_WORDS, 1, 0, words, "some of " words}
#define ONLY(name, only, refusal) {name, TAKES_ANYTHING, 1, 0, only, refusal}
#define NEVER(name, refusal) {name, TAKES_ANYTHING, 1, 0, "", refusal}
#define NEVER_ALONE(name, refusal) {name, TAKES_NOTHING, 1, 0, "", refusal}

static const char no_errors[] = "a heap profile has no errors to report";
static const char no_server[] =
	"there is no debugger to wait for; ptmem --monitor talks to a running ptmem";
static const char no_simulation[] =
	"the program runs on the real CPU: there is nothing of the kind to trace";

#define REGISTER_UPDATES \
	"sp-at-mem-access,unwindregs-at-mem-access,allregs-at-mem-access,allregs-at-each-insn"

static const struct core_option core_options[] = {
	NEVER_ALONE("help-dyn-options", "no option changes while the program runs"),
	ONLY("tool", "massif", "ptmem does what Massif does, and no other tool"),
	BETWEEN("num-callers", 1, 500),
	/* errors: Massif reports none either, and accepts these */
	SWITCH("error-limit"),
	COUNT("error-exitcode"),
	SWITCH("exit-on-first-error"),
	ANY("error-markers"),
	SWITCH("show-error-list"),
	SWITCH("default-suppressions"),
	COUNT("dump-error"),
	COUNT("input-fd"),
	SWITCH("sigill-diagnostics"),
	SWITCH("show-emwarns"),
	SWITCH("time-stamp"),
	ONLY("xml", "no", no_errors),
	NEVER("xml-fd", no_errors),
	NEVER("xml-file", no_errors),
	NEVER("xml-socket", no_errors),
	ANY("xml-user-comment"),
	ONLY("track-fds", "no", "ptmem watches the heap, not descriptors"),
	ONLY("modify-fds", "no", "the program's descriptors are its own"),
	NEVER("log-socket", "messages go to standard error, --log-file or --log-fd"),
	/* the debugger */
	ONE_OF("vgdb", "no,yes,full"),
	ONLY("vgdb-error", "999999999", no_server),
	ONLY("vgdb-stop-at", "none", no_server),
	ANY("vgdb-prefix"),
	SWITCH("vgdb-shadow-registers"),
	COUNT("vgdb-poll"),
	/* how a program ends is not changed */
	SWITCH("run-libc-freeres"),
	SWITCH("run-cxx-freeres"),
	/* the simulated CPU and its memory */
	BETWEEN("redzone-size", 0, 4096),
	BETWEEN("core-redzone-size", 0, 4096),
	COUNT("max-stackframe"),
	COUNT("main-stacksize"),
	COUNT("valgrind-stacksize"),
	COUNT("max-threads"),
	COUNT("sanity-level"),
	COUNT("num-transtab-sectors"),
	COUNT("avg-transtab-entry-size"),
	ANY("aspace-minaddr"),
	COUNT("scheduling-quantum"),
	COUNT("unw-stack-scan-thresh"),
	COUNT("unw-stack-scan-frames"),
	ONE_OF("fair-sched", "no,yes,try"),
	ONE_OF("smc-check", "none,stack,all,all-non-file"),
	ONE_OF("resync-filter", "no,yes,verbose"),
	SWITCH("sym-offsets"),
	COUNT("progress-interval"),
	ONLY("wait-for-gdb", "no", "gdb cannot join: a process has one tracer"),
	SOME_OF("sim-hints", "lax-ioctls,lax-doors,fuse-compatible,enable-outer,no-inner-prefix,"
			     "no-nptl-pthread-stackcache,fallback-llsc,none"),
	SOME_OF("kernel-variant",
		"bproc,android-no-hw-tls,android-gpu-sgx5xx,android-gpu-adreno3xx,none"),
	ONE_OF("px-default", REGISTER_UPDATES),
	ONE_OF("px-file-backed", REGISTER_UPDATES),
	ONE_OF("vex-iropt-register-updates", REGISTER_UPDATES),
	BETWEEN("vex-iropt-verbosity", 0, 10),
	BETWEEN("vex-iropt-level", 0, 2),
	BETWEEN("vex-iropt-unroll-thresh", 0, 400),
	BETWEEN("vex-guest-max-insns", 1, 100),
	SWITCH("vex-guest-chase"),
	BETWEEN("vex-regalloc-version", 2, 3),
	/* debug information */
	SWITCH("read-var-info"),
	SWITCH("keep-debuginfo"),
	SWITCH("dsymutil"),
	SWITCH("allow-mismatched-debuginfo"),
	SWITCH("enable-debuginfod"),
	NEVER("debuginfo-server",
	      "debug information is read from files; see --extra-debuginfo-path"),
	ONLY("merge-recursive-frames", "0", "stacks are shown whole; --depth cuts them"),
	NEVER("require-text-symbol", "ptmem asks for no symbol"),
	/* tracing of Valgrind itself */
	ONLY("trace-syscalls", "no", "strace shows system calls"),
	ONLY("trace-signals", "no", no_simulation),
	ONLY("trace-symtab", "no", no_simulation),
	ONLY("trace-cfi", "no", no_simulation),
	ONLY("trace-redir", "no", no_simulation),
	ONLY("trace-sched", "no", no_simulation),
	ONLY("trace-flags", "00000000", no_simulation),
	ONLY("profile-heap", "no", no_simulation),
	ANY("profile-flags"),
	COUNT("profile-interval"),
	COUNT("trace-notbelow"),
	COUNT("trace-notabove"),
	ANY("trace-symtab-patt"),
	NEVER("debug-dump", "readelf shows debug information"),
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

static bool are_in_list(const char *list, const char *values)
{
	char word[64];
	for (const char *s = values;; s++) {
		size_t n = strcspn(s, ",");
		snprintf(word, sizeof(word), "%.*s", (int)n, s);
		if (!is_in_list(list, word))
			return false;
		s += n;
		if (!*s)
			return true;
	}
}

static bool is_good_value(const struct core_option *o, const char *value)
{
	char *end;
	long n;
	switch (o->kind) {
	case TAKES_YES_NO:
	case TAKES_ONE_WORD:
		return value && is_in_list(o->only, value);
	case TAKES_WORDS:
		return value && are_in_list(o->only, value);
	case TAKES_NUMBER: /* Valgrind reads no digits at all as 0 */
		n = value ? strtol(value, &end, 10) : 0;
		return value && !*end && (o->min > o->max || (n >= o->min && n <= o->max));
	case TAKES_NOTHING:
		return !value;
	default:
		return value;
	}
}

enum core_answer core_option_check(const char *name, size_t length, const char *value,
				   const char **why_out)
{
	for (size_t i = 0; i < ARRAY_SIZE(core_options); i++) {
		const struct core_option *o = &core_options[i];
		if (strlen(o->name) != length || strncmp(o->name, name, length) != 0)
			continue;
		bool is_refusal = o->kind == TAKES_ANYTHING || o->kind == TAKES_NOTHING;
		*why_out = o->why;
		if (!is_good_value(o, value)) {
			*why_out = value && !is_refusal ? o->why : value ? "no value" : "a value";
			return CORE_BAD_VALUE;
		}
		return is_refusal && o->only && !(value && is_in_list(o->only, value))
			       ? CORE_REFUSED
			       : CORE_TAKEN;
	}
	return CORE_UNKNOWN;
}

bool core_option_is_letter(char letter)
{
	/* -s lists errors, of which there are none; -d is Valgrind's own log */
	return letter == 's' || letter == 'd';
}
