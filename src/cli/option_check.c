/*
 * Checks of options against one another: tables of required and conflicting options, then what
 * does not fit into a table.
 */
#include "cli/command_line.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "arch/arch.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/text.h"
#include "graph/containers.h"
#include "listen/http_access.h"
#include "live/rss_poll.h"
#include "session/condition.h"
#include "session/labels.h"
#include "session/limits.h"
#include "session/options.h"
#include "session/out.h"

/* 0, or -EINVAL after a message. */
static int option_check_listen(const struct options *o)
{
	struct listen_address address;
	const char *why = o->listen.at ? listen_address_parse(o->listen.at, &address) : NULL;

	if (why)
		log_error("--listen=%s: %s", o->listen.at, why);
	else if (!o->listen.at && (o->listen.token || o->listen.is_open || o->listen.linger > 0))
		log_error("--listen-token, --listen-open and --listen-linger go with --listen");
	else if (o->listen.token && o->listen.is_open)
		log_error("--listen-token and --listen-open cannot be combined");
	else if (o->listen.at && o->files.replay)
		log_error("--replay has no running program: --listen cannot be used with it");
	else if (o->listen.at && !o->listen.token && !o->listen.is_open &&
		 !listen_address_is_loopback(&address))
		log_error("--listen=%s: others can reach this address; it needs "
			  "--listen-token=FILE or --listen-open", o->listen.at);
	else
		return 0;
	return -EINVAL;
}

/* Checks --record, --html, --listen and what goes with them, and --when. */

static const char *find_record_contradiction(const struct options *o)
{
	bool has_heap = o->profile.heap && !o->profile.pages_as_heap &&
			o->tracing.sources & 1u << SOURCE_HEAP;

	if (options_record(o) && !has_heap)
		return "--record, --html and --listen are about the heap: --pages-as-heap, "
		       "--heap=no and --trace without heap cannot be used with them";
	if (o->files.record_every > 0 && o->files.record && file_name_is_shared(o->files.record))
		return "--record-every makes several files: standard output, a device or a FIFO "
		       "has one place for them";
	if (o->files.free_stacks && !options_record(o))
		return "--free-stacks goes with --record, --html or --listen";
	if (o->files.free_stacks && options_sample_interval(o))
		return "--free-stacks needs all events: --heap-sample cannot be used with it";
	return NULL;
}

/* The condition that cannot be used, and why. */
static const char *find_bad_condition(const struct options *o, const char **text_out)
{
	struct condition c = {0};

	for (size_t i = 0; i < o->when.count; i++) {
		const char *why = condition_parse(*text_out = o->when.data[i], &c);

		if (why)
			return why;
		if (c.action == ACTION_RECORD && !o->files.record)
			return "it writes a recording, and needs --record=FILE for its name and "
			       "place";
		if (c.action == ACTION_INSPECT && !o->graph.what && !o->inspect.out)
			return "it writes a report of memory, and needs --inspect-out=FILE for "
			       "its name and place";
		if (c.action == ACTION_INSPECT && o->graph.what && !o->graph.out)
			return "it writes a heap graph, and needs --graph-out=FILE for its name "
			       "and place";
	}
	return NULL;
}

static int check_conditions(const struct options *o)
{
	const char *text = NULL, *why = find_bad_condition(o, &text);

	if (why)
		log_error("--when=%s: %s", text, why);
	else if (o->when.count && o->files.replay)
		log_error("--replay has no running program: --when cannot be used with it");
	else if (o->when.count && !(o->profile.heap && o->tracing.sources & 1u << SOURCE_HEAP))
		log_error("--when needs the profile of the heap: --heap=no and --trace without "
			  "heap cannot be used with it");
	else
		return 0;
	return -EINVAL;
}

static int check_limits(const struct options *o)
{
	const char *why_not = o->within.count ? limits_why_not_within(o) : NULL;
	struct limit l;

	for (size_t i = 0; i < o->labels.count; i++) {
		const char *why = labels_check_text(o, o->labels.data[i]);

		if (!why)
			continue;
		log_error("--label=%s: %s", o->labels.data[i], why);
		return -EINVAL;
	}
	const char *too_many = labels_check(o);

	if (too_many) {
		log_error("--label: %s", too_many);
		return -EINVAL;
	}
	if (why_not) {
		log_error("--within=%s: %s", o->within.data[0], why_not);
		return -EINVAL;
	}
	for (size_t i = 0; i < o->limits.count; i++) {
		const char *text = o->limits.data[i], *why = limits_check_text(o, text, &l);

		if (!why)
			continue;
		log_error("--limit=%s: %s", text, why);
		return -EINVAL;
	}
	return check_conditions(o);
}

/* 0, or -EINVAL after a message. */
static int option_check_record(const struct options *o)
{
	const char *why = find_record_contradiction(o);

	if (!why)
		return check_limits(o);
	log_error("%s", why);
	return -EINVAL;
}

/*
 * Three tables of required and conflicting options, then the checks that do not fit into a
 * table.
 */

/* -- options in effect -- */

static const struct option_row *find_row(const char *name)
{
	const struct option_row *row = option_find(&options_table, name, strlen(name));

	CHECK(row);
	return row;
}

static bool is_given(const struct options *o, const char *name)
{
	size_t i = (size_t)(find_row(name) - options_table.row);

	return o->given[i / 64] >> i % 64 & 1;
}

/* What is on is not 0, and numbers that may be 0 are not OPTION_OFF. */
static bool is_on(const struct options *o, const char *name)
{
	const struct option_row *row = find_row(name);
	const void *field = (const char *)o + row->offset;

	switch (row->type) {
	case OPT_FLAG:
	case OPT_YES_NO:
		return *(const bool *)field;
	case OPT_NUMBER:
	case OPT_CHOICE:
		return *(const uint32_t *)field != 0;
	case OPT_SIZE:
		return *(const uint64_t *)field != 0;
	case OPT_TEXT:
		return *(const char *const *)field != NULL;
	case OPT_DECIMAL:
	case OPT_TIME:
		return option_is_optional(row) ? *(const double *)field != OPTION_OFF :
						 *(const double *)field > 0;
	case OPT_TEXTS:
		return ((const struct option_strings *)field)->count > 0;
	case OPT_PIDS:
		return o->attach.pid_count > 0;
	default:
		return false;
	}
}

/* Clears the mark of an option that is off. */
static void turn_off(struct options *o, const char *name)
{
	const struct option_row *row = find_row(name);
	void *field = (char *)o + row->offset;

	switch (row->type) {
	case OPT_FLAG:
	case OPT_YES_NO:
		*(bool *)field = false;
		break;
	case OPT_NUMBER:
		*(uint32_t *)field = 0;
		break;
	case OPT_SIZE:
		*(uint64_t *)field = 0;
		break;
	case OPT_TEXT:
		*(const char **)field = NULL;
		break;
	case OPT_TEXTS:
		((struct option_strings *)field)->count = 0;
		break;
	case OPT_DECIMAL:
	case OPT_TIME:
		*(double *)field = option_is_optional(row) ? OPTION_OFF : 0;
		break;
	default:
		CHECK(!"an option that can be turned off");
	}
}

/* Whether one of the space-separated @names is on. */
static bool is_any_on(const struct options *o, const char *names)
{
	for (const char *s = names; *s; s += strspn(s, " ")) {
		size_t n = strcspn(s, " ");
		_cleanup_free_ char *name = xstrndup(s, n);

		if (is_on(o, name))
			return true;
		s += n;
	}
	return false;
}

/* "a b c" as "--a, --b or --c"; the caller frees it. */
static char *list_names(const char *names)
{
	char *text = xstrdup("");

	for (const char *s = names; *s;) {
		int n = (int)strcspn(s, " ");
		const char *rest = s + n + strspn(s + n, " ");
		const char *between = s == names ? "" : *rest ? ", " : " or ";
		char *longer = xasprintf("%s%s--%.*s", text, between, n, s);

		free(text);
		text = longer;
		s = rest;
	}
	return text;
}

/* -- options that need others -- */

static const struct need {
	const char *name, *needs; /* one of these, space-separated */
	bool is_valgrinds;        /* used with any tool, so only a warning */
} needs[] = {
	{"duration", "pid follow", false},
	{"earlier-blocks", "pid follow", false},
	{"brief", "inspect inspect-at-exit graph leak-check leaks", false},
	{"containers", "graph", false},
	{"graph-depth", "graph", false},
	{"graph-out", "graph", false},
	{"who-holds", "graph", false},
	{"inspect-copy", "inspect inspect-at-exit graph when leak-check", false},
	{"inspect-out", "inspect inspect-at-exit when", false},
	{"inspect-pointers", "inspect inspect-at-exit when", false},
	{"trace-children-skip", "trace-children", true},
	{"trace-children-skip-by-arg", "trace-children", true},
	{"stack-sample", "stacks memusage data", false},
	{"xtree-memory-file", "xtree-memory", true},
	{"memusage-out", "memusage", false},
	{"data-buffer", "data", false},
	{"mmap", "memusage data", false},
	{"no-timer", "memusage data", false},
	{"progname", "memusage data", false},
	{"sample-fields", "sample", false},
	{"sample-out", "sample", false},
	{"leaks-out", "leaks leak-check", false},
	{"error-exitcode", "leak-check", false},
	{"older-than", "leaks leak-check", false},
	{"show-leak-kinds", "leak-check", false},
	{"leak-holders", "leak-check", false},
	{"suppressions", "leak-check", true},
	{"gen-suppressions", "leak-check", true},
	{"view", "folded flame", false},
	{"seed", "heap-sample", false},
	{"budget", "heap-sample", false},
	{"record-every", "record", false},
	{"record-keep", "record-every", false},
	{"record-limit", "record", false},
	{"limits-out", "limit limits-file", false},
	{"embed-sources", "html", false},
	{"source", "embed-sources", false},
};

static int check_needs(const struct options *o)
{
	for (size_t i = 0; i < ARRAY_SIZE(needs); i++) {
		const struct need *n = &needs[i];

		if (!is_given(o, n->name) || is_any_on(o, n->needs))
			continue;
		_cleanup_free_ char *others = list_names(n->needs);

		/* --error-exitcode=0 asks for nothing; without a check a test could never fail */
		if (!n->is_valgrinds && (is_on(o, n->name) || strcmp(n->name, "error-exitcode"))) {
			log_error("--%s needs %s", n->name, others);
			return -EINVAL;
		}
		if (n->is_valgrinds && is_on(o, n->name))
			log_warn("--%s has no effect without %s", n->name, others);
	}
	return 0;
}

/* -- options that cannot be combined -- */

static const struct exclusion {
	const char *name, *other;
	const char *why; /* NULL: the fact is enough */
} exclusions[] = {
	{"replay", "events", NULL},
	{"replay", "leak-check",
	 "--replay has no program: --leak-check and --top cannot be used with it"},
	{"replay", "inspect-at-exit", "--replay has no program: there is nothing to inspect"},
	{"replay", "top", "--replay has no program: --leak-check and --top cannot be used with it"},
	{"replay", "budget", "--replay has no program: --budget has nothing to limit"},
	{"replay", "sample", "--sample needs a process: --replay has none"},
	{"replay", "trace-children", NULL},
	{"replay", "mempools", NULL},
	{"replay", "repeat", "--replay has no program: --repeat has nothing to run"},
	{"pid", "repeat", "--repeat starts the program each time: it cannot be used with --pid"},
	{"repeat", "listen", NULL},
	{"repeat", "sample", NULL},
	{"repeat", "top", NULL},
	{"repeat", "events", NULL},
	{"repeat", "data", NULL},
	{"replay", "running-on-valgrind", NULL},
	{"replay", "soname-synonyms", NULL},
	{"replay", "record-every",
	 "--replay has no time that passes: --record-every cannot be used with it"},
	{"pages-as-heap", "memusage",
	 "--pages-as-heap=yes watches no calls: --memusage and --data cannot be used with it"},
	{"pages-as-heap", "data",
	 "--pages-as-heap=yes watches no calls: --memusage and --data cannot be used with it"},
};

static int check_exclusions(struct options *o)
{
	for (size_t i = 0; i < ARRAY_SIZE(exclusions); i++) {
		const struct exclusion *e = &exclusions[i];

		if (!is_on(o, e->name) || !is_on(o, e->other))
			continue;
		if (!is_given(o, e->other)) {
			turn_off(o, e->other);
		} else if (!is_given(o, e->name)) {
			turn_off(o, e->name);
		} else {
			if (e->why)
				log_error("%s", e->why);
			else
				log_error("--%s and --%s cannot be combined", e->name, e->other);
			return -EINVAL;
		}
	}
	return 0;
}

/* -- options that show the heap -- */

static const struct {
	const char *name;
	bool needs_paths; /* other sources, too */
} shows[] = {
	{"leaks", false}, {"leak-check", false}, {"top", false}, {"limit", false},
	{"limits-file", false}, {"limits-out", false},
	{"folded", true}, {"flame", true},
};

static int check_heap(struct options *o)
{
	bool is_traced = o->tracing.sources & 1u << SOURCE_HEAP || o->profile.pages_as_heap;
	bool has_heap = o->profile.heap && is_traced,
	     has_others = o->tracing.sources & ~(1u << SOURCE_HEAP);

	if (is_given(o, "xtree-memory") && o->files.xtree_mode != XTREE_NONE && !is_traced) {
		log_error("--xtree-memory needs heap among --trace's sources");
		return -EINVAL;
	}
	for (size_t i = 0; i < ARRAY_SIZE(shows); i++) {
		if (has_heap || (has_others && shows[i].needs_paths) || !is_on(o, shows[i].name))
			continue;
		if (!is_given(o, shows[i].name)) {
			turn_off(o, shows[i].name);
			continue;
		}
		log_error("--%s has nothing to show %s", shows[i].name,
			  o->profile.heap ? "without heap among --trace's sources" :
					    "with --heap=no");
		return -EINVAL;
	}
	return 0;
}

/* -- options that need every block -- */

static const struct {
	const char *name, *why;
} of_all_blocks[] = {
	{"leak-check", "--leak-check follows pointers from block to block and needs all of them: "
		       "--heap-sample knows only some; --leaks estimates what is live"},
	{"pages-as-heap", "--pages-as-heap=yes counts mappings, which are always exact: "
			  "--heap-sample has no effect on them"},
	{"data", "--data records every call: --heap-sample cannot be used with it"},
	{"trace-malloc", "--trace-malloc prints every call: --heap-sample cannot be used with it"},
};

static int check_samples(struct options *o)
{
	const char *why = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(of_all_blocks) && options_sample_interval(o); i++) {
		if (!is_on(o, of_all_blocks[i].name))
			continue;
		if (!is_given(o, of_all_blocks[i].name))
			turn_off(o, of_all_blocks[i].name);
		else
			why = of_all_blocks[i].why;
	}
	if (options_sample_interval(o) && !why && !o->profile.heap)
		why = "--heap-sample has nothing to sample with --heap=no";
	else if (options_sample_interval(o) && !why && !(o->tracing.sources & 1u << SOURCE_HEAP))
		why = "--heap-sample needs heap among --trace's sources";
	if (!why)
		return 0;
	if (!is_given(o, "heap-sample")) {
		turn_off(o, "heap-sample");
		return 0;
	}
	log_error("%s", why);
	return -EINVAL;
}

/* -- options of the massif files -- */

static const char *const of_massif[] = {
	"massif-out-file", "threshold", "time-unit", "detailed-freq", "max-snapshots",
	"peak-inaccuracy", "peak-at-exit", "depth",
};

/* No massif file is written if the heap is not profiled and another output is requested. */
static int check_massif(const struct options *o)
{
	uint32_t heap = 1u << SOURCE_HEAP;
	bool is_traced = o->tracing.sources & heap || o->profile.pages_as_heap;

	if (is_on(o, "stacks") && is_given(o, "stacks") && !is_traced) {
		log_error("--stacks has nothing to show without heap among --trace's sources");
		return -EINVAL;
	}
	if (o->profile.heap || o->profile.stacks || o->profile.pages_as_heap ||
	    o->tracing.sources & ~heap || o->files.events || o->files.xtree_mode != XTREE_NONE ||
	    !is_any_on(o, "memusage data sample"))
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(of_massif); i++) {
		if (is_given(o, of_massif[i])) {
			log_error("--%s has no effect: with --heap=no no massif file is written",
				  of_massif[i]);
			return -EINVAL;
		}
	}
	return 0;
}

/* Their outputs are wanted alone, unless the massif file is asked for, or what only it has. */
static const char *const instead_of_massif[] = {"record", "html", "leak-check"};

static const char *const only_in_massif[] = {
	"massif-out-file", "threshold", "time-unit", "detailed-freq", "max-snapshots",
	"peak-inaccuracy", "peak-at-exit", "heap-admin", "alignment", "stacks",
};

/* "-o none", which is no file's name. */
static void choose_massif(struct options *o)
{
	const char *initial = find_row("massif-out-file")->initial;
	bool is_wanted = strcmp(o->files.massif, initial) != 0 || o->profile.pages_as_heap ||
			 !o->profile.heap || o->tracing.sources != 1u << SOURCE_HEAP;

	for (size_t i = 0; i < ARRAY_SIZE(only_in_massif); i++)
		is_wanted |= is_given(o, only_in_massif[i]);
	for (size_t i = 0; i < ARRAY_SIZE(instead_of_massif) && !is_wanted; i++)
		if (is_on(o, instead_of_massif[i]))
			o->files.massif = NULL;
	if (o->files.massif && strcmp(o->files.massif, "none") == 0)
		o->files.massif = NULL;
}

/* -- the rest -- */

static int check_sample_fields(const struct options *o)
{
	if (!o->samples.fields)
		return 0;
	for (const char *s = o->samples.fields;; s++) {
		size_t n = strcspn(s, ",");

		if (status_field_find(s, n) == STATUS_FIELDS) {
			log_error("--sample-fields: /proc/PID/status has no '%.*s' that can be "
				  "sampled",
				  (int)n, s);
			return -EINVAL;
		}
		s += n;
		if (!*s)
			return 0;
	}
}

/* Flame graphs are SVG; a viewer that goes by the extension would fail on another one. */
static int check_flame_name(const struct options *o)
{
	static const char *const others[] = {".png",  ".jpg", ".jpeg", ".gif",
					     ".webp", ".pdf", ".html"};
	const char *dot = o->files.flame ? strrchr(o->files.flame, '.') : NULL;

	for (size_t i = 0; dot && i < ARRAY_SIZE(others); i++) {
		if (strcasecmp(dot, others[i]) != 0)
			continue;
		log_error("--flame writes SVG, not %s: give it a name that ends in .svg, which "
			  "browsers show", dot + 1);
		return -EINVAL;
	}
	return 0;
}

/* With @what only the @count options of @good have an effect: others are errors. */
static int check_others(const struct options *o, const char *what, const char *const *good,
			size_t count)
{
	for (size_t i = 0; i < options_table.count; i++) {
		const char *name = options_table.row[i].name;
		bool is_good = !name || !is_given(o, name);

		for (size_t k = 0; k < count && !is_good; k++)
			is_good = strcmp(name, good[k]) == 0;
		if (!is_good) {
			log_error("--%s and --%s cannot be combined", what, name);
			return -EINVAL;
		}
	}
	return 0;
}

/* The client only sends a command. */
static int check_client(const struct options *o)
{
	static const char *const good[] = {"monitor", "color", "quiet",
					   "verbose", "no-rc", "command-line-only"};

	return check_others(o, "monitor", good, ARRAY_SIZE(good));
}

/* --inspect without a profile: profile options have no effect. */
static int check_inspect(const struct options *o)
{
	static const char *const good[] = {
		"brief", "cold", "inspect", "inspect-copy", "inspect-out", "inspect-pointers",
		"graph",
		"containers", "graph-depth", "graph-out", "who-holds", "pid", "log-file", "log-fd",
		"color", "quiet", "verbose", "no-rc", "command-line-only", "html"};
	size_t count = ARRAY_SIZE(good) - !o->graph.what; /* --inspect makes no page */

	return o->inspect.what ? check_others(o, o->graph.what ? "graph" : "inspect", good,
					      count) : 0;
}

static int check_containers(const char *path)
{
	char *why;

	if (!path || containers_check_file(path, &why))
		return 0;
	log_error("--containers: %s", why);
	free(why);
	return -EINVAL;
}

/* --graph is an inspection with another report. */
static const char *find_graph_contradiction(const struct options *o)
{
	if (!o->graph.what)
		return NULL;
	if (o->inspect.what || o->inspect.at_exit || o->inspect.out || o->inspect.pointers)
		return "--graph and --inspect cannot be combined: each is a report of its own";
	if (!*o->graph.what && !o->attach.pid_count && !o->command)
		return "--graph needs --pid, a program, or the name of a core file: --graph=CORE";
	if (*o->graph.what && (o->attach.pid_count || (o->command && o->command[1])))
		return "--graph=CORE takes the file of the program at most: neither --pid nor "
		       "arguments";
	return NULL;
}

static bool is_no_text(const char *path)
{
	return path && (text_ends_in(path, ".json") || text_ends_in(path, ".csv") ||
			text_ends_in(path, ".pb.gz"));
}

static const char *find_contradiction(const struct options *o)
{
	uint32_t heap = 1u << SOURCE_HEAP;

	if (o->monitor_pid && (!o->command || (o->command[1] && o->command[2])))
		return "--monitor takes a command and optionally a file; ptmem --monitor=PID help "
		       "lists the commands";
	if (o->monitor_pid && (o->attach.pid_count || o->files.replay))
		return "--monitor cannot be combined with --pid or --replay";
	if (options_core(o) && (o->attach.pid_count || (o->command && o->command[1])))
		return "--inspect=CORE takes the file of the program at most: neither --pid nor "
		       "arguments";
	if (o->is_brief && (is_no_text(o->inspect.out) || is_no_text(o->leaks.out) ||
			    (o->graph.out && !text_ends_in(o->graph.out, ".txt") &&
			     !text_ends_in(o->graph.out, ".md") && strcmp(o->graph.out, "-"))))
		return "--brief makes a text: its file ends in .txt or .md";
	if (o->inspect.cold > 0 && options_core(o))
		return "--cold watches a running process: it needs --pid or a program";
	if (o->inspect.cold > 0 && o->files.replay)
		return "--replay has no running program: --cold cannot be used with it";
	if (o->files.view == SHOW_COLD && o->inspect.cold <= 0)
		return "--view=cold shows what --cold finds: it needs --cold=TIME";
	if (o->inspect.what && o->inspect.at_exit)
		return "--inspect and --inspect-at-exit cannot be combined: the first does not "
		       "profile";
	if (o->inspect.what && !options_core(o) && !o->attach.pid_count && !o->command)
		return "--inspect needs --pid, a program, or the name of a core file: "
		       "--inspect=CORE";
	if (o->tracing.budget > 0 && o->tracing.heap_sample == 1)
		return "--budget changes the sampling interval: --heap-sample=1 has none";
	if (o->tracing.budget > 0 && o->tracing.probes == PROBES_BREAK)
		return "--budget changes nothing with --probes=break, where every call stops";
	if (is_given(o, "max-wait") && o->tracing.probes == PROBES_BREAK)
		return "--max-wait changes nothing with --probes=break, where each call waits for "
		       "ptmem";
	if (o->inspect.what && !o->command && is_given(o, "heap-sample"))
		return "--inspect looks at the whole heap once: there is nothing for --heap-sample "
		       "to choose";
	if (o->attach.follow.count && (o->attach.pid_count || o->command || o->files.replay))
		return "--follow finds its processes itself: it takes neither --pid nor a program "
		       "nor --replay";
	if (o->attach.follow.count && options_sample_only(o))
		return "--follow traces the heap: --sample alone, with --heap=no, goes with --pid";
	if (o->attach.pid_count && o->command)
		return "--pid and a program cannot be combined";
	if (o->files.replay && (o->attach.pid_count || o->command))
		return "--replay reads events from a file: it takes neither --pid nor a program";
	if (o->files.replay && is_given(o, "trace") && o->tracing.sources != heap)
		return "--replay has events of the heap only: --trace cannot add other sources";
	if (is_given(o, "log-file") && is_given(o, "log-fd"))
		return "--log-file and --log-fd cannot be combined";
	if (!options_attach(o) && !o->command && !o->files.replay && !o->inspect.what)
		return "no program given; see ptmem --help";
	return NULL;
}

/*
 * --cold alone is --inspect of a running process, unless there is to be a profile: of a program, or
 * with files of one.
 */
static void choose_cold(struct options *o)
{
	static const char *const files[] = {"flame", "folded", "record", "html", "listen",
					    "duration", "follow", "massif-out-file"};
	bool is_profile = o->command;

	if (o->inspect.cold <= 0 || o->inspect.what || o->inspect.at_exit || o->graph.what)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		is_profile |= is_given(o, files[i]);
	o->inspect.at_exit = is_profile;
	o->inspect.what = is_profile ? NULL : "";
}

/* What this CPU or kernel does not have. */
static const char *find_unsupported(const struct options *o)
{
	if (o->tracing.probes == PROBES_JUMP && !arch_native->has_pads)
		return "--probes=jump: pads are not supported on this CPU; use --probes=break";
	if ((o->attach.pid_count || o->command) && sysconf(_SC_PAGESIZE) != PAGE_SIZE_MIN)
		return "this kernel has pages that are larger than 4 KiB, which ptmem does not "
		       "know; use a kernel with 4 KiB";
	return NULL;
}

int option_check(struct options *o)
{
	const char *why = find_unsupported(o) ?: find_graph_contradiction(o);
	int rc;

	if (!why && o->graph.what)
		o->inspect.what = o->graph.what;
	choose_cold(o);
	why = why ?: find_contradiction(o);

	if (why) {
		log_error("%s", why);
		return -EINVAL;
	}
	if (o->monitor_pid)
		return check_client(o);
	/* a program is started and profiled */
	if (o->inspect.what && !options_core(o) && o->command) {
		o->inspect.what = NULL;
		o->inspect.at_exit = true;
	}
	/* a running process is profiled until then */
	if (o->graph.what && o->when.count)
		o->inspect.what = NULL;
	rc = check_inspect(o) ?: check_containers(o->graph.containers) ?: check_exclusions(o) ?:
	     check_needs(o) ?: check_heap(o);
	if (rc == 0)
		rc = check_samples(o) ?: check_massif(o) ?: check_flame_name(o);
	if (rc == 0)
		rc = option_check_listen(o) ?: option_check_record(o) ?: check_sample_fields(o);
	if (rc == 0)
		choose_massif(o);
	return rc;
}
