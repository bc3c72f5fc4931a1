/*
 * The table of options and what follows from it: defaults, parsing, --help.
 *
 *	ptmemrc words, PTMEM_OPTS words, argv  ->  rows  ->  struct options
 *
 * A row says where its field is, what values it takes and what the help says.
 * Its default is a text that goes through the same parser. Options that Massif's
 * tool would consume are repeated in "desc:" as they were given; all others (what
 * to trace, how, and messages) are what Valgrind calls core options and are not.
 */
#include "options.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/vec.h"

enum row_type {
	FLAG,    /* bool, no value */
	LEVEL,   /* log_level, no value; min: +1 more, -1 less */
	YES_NO,  /* bool */
	NUMBER,  /* uint32_t */
	SIZE,    /* uint64_t, K, M or G may follow */
	DECIMAL, /* double */
	CHOICE,  /* an enum, numbered as the choices are */
	TEXT,    /* const char * */
	TEXTS,   /* struct option_strings */
	SECONDS, /* double; the value may be left out */
	PIDS,    /* pid and pid_count */
};

enum {
	TOOL = 1,      /* Massif's own: repeated in desc: */
	POWER = 2,     /* only powers of two */
	NOT_EMPTY = 4,
	SEPARATE = 8,  /* the value may be the next word, too */
};

struct option_row {
	const char *name;
	char letter; /* 0 = none */
	uint8_t type, flags;
	size_t offset;
	double min, max; /* min > max: no range */
	const char *const *choices;
	const char *initial; /* NULL = zero */
	const char *value;   /* as the help shows it; NULL = no value */
	const char *text;
};

static const char *const time_units[] = {"ms", "B", "i", NULL};
static const char *const probes_modes[] = {"auto", "break", "jump", NULL};
static const char *const views[] = {"live", "peak", "exit", "total", "count", NULL};
static const char *const color_modes[] = {"auto", "always", "never", NULL};

#define FIELD(name) offsetof(struct options, name)

/* A row without a name is a heading of the help. */
static const struct option_row rows[] = {
	{.text = "What to profile:"},
	{"pid", 'p', PIDS, SEPARATE, FIELD(pid), 1, 4194304, NULL, NULL, "PID",
	 "attach to the running process PID; Ctrl-C detaches"},
	{"duration", 0, DECIMAL, 0, FIELD(duration), 0.001, 1e9, NULL, NULL, "SECONDS",
	 "with -p: detach after this time"},
	{"trace-children", 0, YES_NO, 0, FIELD(trace_children), 1, 0, NULL, "no", "yes|no",
	 "go on in programs that the program executes"},
	{"probes", 0, CHOICE, 0, FIELD(probes), 1, 0, probes_modes, "auto", "auto|break|jump",
	 "how calls are caught: by breakpoints, by jumps,\nor by whichever suits"},
	{"ring", 0, SIZE, POWER, FIELD(ring), 65536, 1 << 30, NULL, NULL, "SIZE",
	 "bytes of the buffer between program and ptmem;\nchosen by the number of CPUs if not given"},

	{.text = "The profile, as Massif's options:"},
	{"time-unit", 0, CHOICE, TOOL, FIELD(time_unit), 1, 0, time_units, "ms", "ms|B|i",
	 "milliseconds, bytes allocated and freed, or\ninstructions"},
	{"depth", 0, NUMBER, TOOL, FIELD(depth), 1, 200, NULL, "30", "N", "frames of a call path"},
	{"threshold", 0, DECIMAL, TOOL, FIELD(threshold), 0, 100, NULL, "1.0", "PERCENT",
	 "call sites below this are put together"},
	{"peak-inaccuracy", 0, DECIMAL, TOOL, FIELD(peak_inaccuracy), 1, 0, NULL, "1.0", "PERCENT",
	 "a new peak exceeds the last by more than this"},
	{"peak-at-exit", 0, YES_NO, 0, FIELD(peak_at_exit), 1, 0, NULL, "yes", "yes|no",
	 "whether the end may be the peak; Massif's answer\nis no"},
	{"detailed-freq", 0, NUMBER, TOOL, FIELD(detailed_freq), 1, 1000000, NULL, "10", "N",
	 "every Nth snapshot has a call tree"},
	{"max-snapshots", 0, NUMBER, TOOL, FIELD(max_snapshots), 10, 1000, NULL, "100", "N",
	 "snapshots kept at a time"},
	{"heap-admin", 0, NUMBER, TOOL, FIELD(heap_admin), 0, 1024, NULL, "8", "BYTES",
	 "the allocator's own bytes for a block"},
	{"alignment", 0, NUMBER, TOOL | POWER, FIELD(alignment), 16, 4096, NULL, "16", "BYTES",
	 "alignment of blocks, a power of two"},
	{"alloc-fn", 0, TEXTS, TOOL, FIELD(alloc_fn), 1, 0, NULL, NULL, "NAME",
	 "this function allocates for its caller; repeatable"},
	{"ignore-fn", 0, TEXTS, TOOL, FIELD(ignore_fn), 1, 0, NULL, NULL, "NAME",
	 "do not count what this function allocates;\nrepeatable"},

	{.text = "Files:"},
	{"massif-out-file", 'o', TEXT, TOOL, FIELD(massif_out_file), 1, 0, NULL, "massif.out.%p", "FILE",
	 "where the profile goes; %p: process id, %n: number\nof the file, %q{VAR}: environment variable,\n"
	 "%%: a percent sign"},
	{"events", 0, TEXT, NOT_EMPTY, FIELD(events_file), 1, 0, NULL, NULL, "FILE",
	 "write every event to FILE, as text"},
	{"replay", 0, TEXT, NOT_EMPTY, FIELD(replay_file), 1, 0, NULL, NULL, "FILE",
	 "profile the events of FILE instead of a program"},

	{.text = "Growth and leaks:"},
	{"leaks", 0, SECONDS, 0, FIELD(leaks), 0, 1e9, NULL, NULL, "[=AGE]",
	 "say at the end, and when ptmem gets SIGUSR1, which\nblocks are still there, by call path; only those\n"
	 "older than AGE seconds"},
	{"leak-check", 0, FLAG, 0, FIELD(leak_check), 1, 0, NULL, NULL, NULL,
	 "the same, and to which of them nothing points any\nmore"},
	{"leaks-out", 0, TEXT, NOT_EMPTY, FIELD(leaks_out), 1, 0, NULL, NULL, "FILE",
	 "where that goes: as JSON if FILE ends in .json,\nelse as text; instead of stderr"},
	{"error-exitcode", 0, NUMBER, 0, FIELD(error_exitcode), 0, 255, NULL, "0", "N",
	 "with --leak-check: end with status N when bytes are\ndefinitely lost"},
	{"folded", 0, TEXT, NOT_EMPTY, FIELD(folded_file), 1, 0, NULL, NULL, "FILE",
	 "write call paths as folded stacks"},
	{"flame", 0, TEXT, NOT_EMPTY, FIELD(flame_file), 1, 0, NULL, NULL, "FILE.svg",
	 "draw call paths as a flame graph"},
	{"view", 0, CHOICE, 0, FIELD(view), 1, 0, views, "live", "QUANTITY",
	 "what folded stacks and flame graphs show: live,\npeak, exit, total or count"},
	{"top", 0, SECONDS, 0, FIELD(top), 0.1, 86400, NULL, NULL, "[=SECONDS]",
	 "show the call sites that hold most, and their\ngrowth, all the time"},

	{.text = "Messages and the rest:"},
	{"stats", 0, FLAG, 0, FIELD(stats), 1, 0, NULL, NULL, NULL, "print what ptmem itself did"},
	{"verbose", 'v', LEVEL, 0, FIELD(log_level), 1, 0, NULL, NULL, NULL, "say more; twice: still more"},
	{"quiet", 'q', LEVEL, 0, FIELD(log_level), -1, 0, NULL, NULL, NULL, "only warnings and errors"},
	{"color", 0, CHOICE, 0, FIELD(color), 1, 0, color_modes, "auto", "auto|always|never",
	 "colour in messages"},
	{"no-rc", 0, FLAG, 0, FIELD(no_rc), 1, 0, NULL, NULL, NULL, "read neither ptmemrc nor PTMEM_OPTS"},
	{"help", 'h', FLAG, 0, FIELD(help), 1, 0, NULL, NULL, NULL, "print this help"},
	{"version", 'V', FLAG, 0, FIELD(version), 1, 0, NULL, NULL, NULL, "print the version"},
};

struct parser {
	struct options *o;
	const char *source; /* "", or where the words come from, with ": " behind */
};

static void *field_of(const struct option_row *row, struct options *o)
{
	return (char *)o + row->offset;
}

/* Keeps @s until options_deinit. */
static char *keep(struct options *o, char *s)
{
	return *vec_add(&o->words) = s;
}

/*
 * The words for what @row takes, as in "--depth takes a whole number from 1 to 200".
 */
static void print_choices(FILE *f, const char *const *choice)
{
	for (size_t i = 0; choice[i]; i++)
		fprintf(f, "%s%s", i == 0 ? "" : choice[i + 1] ? ", " : " or ", choice[i]);
}

static char *what_it_takes(const struct option_row *row)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	CHECK(f);
	switch (row->type) {
	case NUMBER:
		fputs(row->flags & POWER ? "a power of two" : "a whole number", f);
		break;
	case SIZE:
		fputs("a power of two (K, M or G may follow)", f);
		break;
	case DECIMAL:
	case SECONDS:
		fputs("a decimal number", f);
		break;
	case PIDS:
		fputs("a process id", f);
		break;
	case CHOICE:
		print_choices(f, row->choices);
		break;
	case YES_NO:
		fputs("yes or no", f);
		break;
	default:
		fputs("a name", f);
	}
	if (row->min <= row->max && row->type != PIDS)
		fprintf(f, " from %.15g to %.15g", row->min, row->max);
	fclose(f);
	return text;
}

static int refuse(const struct parser *p, const struct option_row *row, const char *arg)
{
	_cleanup_free_ char *takes = what_it_takes(row);
	log_error("%sbad option '%s': --%s takes %s", p->source, arg, row->name, takes);
	return -EINVAL;
}

static bool in_range(const struct option_row *row, double value)
{
	return row->min > row->max || (value >= row->min && value <= row->max);
}

/* Blanks, a sign and digits, as strtoll reads them, and nothing behind; an empty text is 0. */
static bool parse_integer(const char *text, const char *ends, long long *out, const char **end_out)
{
	char *end;
	errno = 0;
	*out = strtoll(text, &end, 10);
	*end_out = end;
	return errno == 0 && (end > text || !*text) && (!*end || strchr(ends, *end));
}

static bool parse_number(const struct option_row *row, const char *text, long long *out)
{
	const char *end;
	if (!parse_integer(text, row->type == SIZE ? "kKmMgG" : "", out, &end))
		return false;
	if (*end) {
		int shift = strchr("kK", *end) ? 10 : strchr("mM", *end) ? 20 : 30;
		if (end == text || end[1] || __builtin_mul_overflow(*out, 1ll << shift, out))
			return false;
	}
	bool is_power = *out > 0 && !(*out & (*out - 1));
	return in_range(row, (double)*out) && (is_power || !(row->flags & POWER));
}

/*
 * Massif's decimals: blanks, a sign, digits with a point anywhere or nowhere. No
 * exponent, no hexadecimal, no "inf", whatever the locale.
 */
static bool parse_decimal(const struct option_row *row, const char *text, double *out)
{
	const char *s = text + strspn(text, " \t");
	double sign = *s == '-' ? -1 : 1, value = 0, unit = 1;
	bool is_fraction = false;
	if (*s == '-' || *s == '+')
		s++;
	for (; *s; s++) {
		if (*s == '.' && !is_fraction) {
			is_fraction = true;
		} else if (*s >= '0' && *s <= '9') {
			value = value * 10 + (*s - '0');
			unit *= is_fraction ? 10 : 1;
		} else {
			return false;
		}
	}
	*out = sign * value / unit;
	return in_range(row, *out);
}

static bool has_pid(const struct options *o, long long pid)
{
	for (uint32_t i = 0; i < o->pid_count; i++)
		if (o->pid[i] == pid)
			return true;
	return false;
}

/* Process ids with commas or blanks between, as "12,34" or the output of pidof. */
static int parse_pids(const struct parser *p, const struct option_row *row, const char *arg, const char *text)
{
	struct options *o = p->o;
	uint32_t found = 0;
	for (const char *s = text; *s;) {
		long long pid;
		s += strspn(s, ", \t\n");
		if (!*s)
			break;
		const char *end;
		if (!parse_integer(s, ", \t\n", &pid, &end) || !in_range(row, (double)pid))
			return refuse(p, row, arg);
		s = end;
		found++;
		if (has_pid(o, pid))
			continue;
		if (o->pid_count == OPTIONS_MAX_PIDS) {
			log_error("%sbad option '%s': --pid takes no more than %d processes", p->source, arg,
				  OPTIONS_MAX_PIDS);
			return -EINVAL;
		}
		o->pid[o->pid_count++] = (pid_t)pid;
	}
	return found ? 0 : refuse(p, row, arg);
}

static bool parse_choice(const struct option_row *row, const char *text, uint32_t *out)
{
	for (uint32_t i = 0; row->choices[i]; i++) {
		if (strcmp(row->choices[i], text) == 0) {
			*out = i;
			return true;
		}
	}
	return false;
}

static void change_level(const struct option_row *row, enum log_level *level)
{
	if (row->min < 0)
		*level = LOG_WARN;
	else
		*level = *level < LOG_VERBOSE ? LOG_VERBOSE : LOG_DEBUG;
}

/* Gives @row's field the value @text (unused where it takes none). @arg: for the message. */
static int set_value(const struct parser *p, const struct option_row *row, const char *arg, const char *text)
{
	void *field = field_of(row, p->o);
	long long number = 0;
	bool is_good = true;
	switch (row->type) {
	case FLAG:
		*(bool *)field = true;
		break;
	case LEVEL:
		change_level(row, field);
		break;
	case YES_NO:
		is_good = strcmp(text, "yes") == 0 || strcmp(text, "no") == 0;
		*(bool *)field = *text == 'y';
		break;
	case NUMBER:
		is_good = parse_number(row, text, &number);
		*(uint32_t *)field = (uint32_t)number;
		break;
	case SIZE:
		is_good = parse_number(row, text, &number);
		*(uint64_t *)field = (uint64_t)number;
		break;
	case DECIMAL:
		is_good = parse_decimal(row, text, field);
		break;
	case SECONDS:
		*(double *)field = OPTION_ALL;
		is_good = !text || (*text && parse_decimal(row, text, field));
		break;
	case CHOICE:
		is_good = parse_choice(row, text, field);
		break;
	case TEXT:
		is_good = *text || !(row->flags & NOT_EMPTY);
		*(const char **)field = text;
		break;
	case TEXTS:
		*vec_add((struct option_strings *)field) = text;
		break;
	case PIDS:
		return parse_pids(p, row, arg, text);
	}
	return is_good ? 0 : refuse(p, row, arg);
}

/* Repeats a tool option in desc:, in its long form. */
static void describe(struct options *o, const struct option_row *row, const char *value)
{
	if (!(row->flags & TOOL))
		return;
	char *before = o->desc;
	o->desc = xasprintf("%s%s--%s=%s", before ? before : "", before ? " " : "", row->name, value);
	free(before);
}

static const struct option_row *find_row(const char *name, size_t length, char letter)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct option_row *row = &rows[i];
		if (!row->name)
			continue;
		if (name ? strlen(row->name) == length && strncmp(row->name, name, length) == 0
			 : row->letter == letter)
			return row;
	}
	return NULL;
}

/* Letters to insert, delete or change to make @b of the @n letters at @a; names are short. */
static size_t distance(const char *a, size_t n, const char *b)
{
	size_t line[64], m = strlen(b);
	if (n >= ARRAY_SIZE(line) || m >= ARRAY_SIZE(line))
		return SIZE_MAX;
	for (size_t j = 0; j <= m; j++)
		line[j] = j;
	for (size_t i = 1; i <= n; i++) {
		size_t diagonal = line[0];
		line[0] = i;
		for (size_t j = 1; j <= m; j++) {
			size_t change = diagonal + (a[i - 1] != b[j - 1]);
			diagonal = line[j];
			line[j] = MIN(change, MIN(line[j - 1], diagonal) + 1);
		}
	}
	return line[m];
}

static int refuse_unknown(const struct parser *p, const char *arg, const char *name, size_t length)
{
	const char *nearest = NULL;
	size_t best = MIN(length / 2, 3); /* more than that is another word */
	for (size_t i = 0; name && i < ARRAY_SIZE(rows); i++) {
		size_t d = rows[i].name ? distance(name, length, rows[i].name) : SIZE_MAX;
		if (d < best) {
			best = d;
			nearest = rows[i].name;
		}
	}
	if (nearest)
		log_error("%sunknown option '%s': did you mean --%s?", p->source, arg, nearest);
	else
		log_error("%sunknown option '%s': ptmem --help lists all", p->source, arg);
	return -EINVAL;
}

static int refuse_missing(const struct parser *p, const struct option_row *row, const char *arg)
{
	log_error("%sbad option '%s': a value is missing, --%s=%s", p->source, arg, row->name, row->value);
	return -EINVAL;
}

/* One word that begins with "--"; @next: the word behind it or NULL. Returns the words used, or -EINVAL. */
static int parse_long(const struct parser *p, const char *arg, const char *next)
{
	const char *name = arg + 2;
	size_t length = strcspn(name, "=:");
	if (name[length] == ':') { /* --TOOL:OPTION: for that tool of Valgrind alone */
		if (length != 6 || strncmp(name, "massif", length) != 0)
			return 1;
		name += length + 1;
	}
	length = strcspn(name, "=");
	const char *value = name[length] ? name + length + 1 : NULL;
	const struct option_row *row = find_row(name, length, 0);
	if (!row)
		return refuse_unknown(p, arg, name, length);
	if (value && !row->value) {
		log_error("%sbad option '%s': --%s takes no value", p->source, arg, row->name);
		return -EINVAL;
	}
	bool is_separate = !value && (row->flags & SEPARATE) && next;
	if (is_separate)
		value = next;
	if (!value && row->value && row->type != SECONDS)
		return refuse_missing(p, row, arg);
	int err = set_value(p, row, arg, value);
	if (err)
		return err;
	describe(p->o, row, value);
	return is_separate ? 2 : 1;
}

/* One word of letters: -v, -vq, -p12, -p 12. Returns the words used, or -EINVAL. */
static int parse_letters(const struct parser *p, const char *arg, const char *next)
{
	for (const char *letter = arg + 1; *letter; letter++) {
		const struct option_row *row = find_row(NULL, 0, *letter);
		if (!row)
			return refuse_unknown(p, arg, NULL, 0);
		if (!row->value) {
			int err = set_value(p, row, arg, NULL);
			if (err)
				return err;
			continue;
		}
		const char *value = letter[1] ? letter + 1 : next;
		if (!value)
			return refuse_missing(p, row, arg);
		int err = set_value(p, row, arg, value);
		if (err)
			return err;
		describe(p->o, row, value);
		return letter[1] ? 1 : 2;
	}
	return 1;
}

/* Reads options up to the first other word; *used_out: how many words they were. */
static int parse_words(const struct parser *p, size_t count, char **word, size_t *used_out)
{
	size_t i = 0;
	while (i < count && word[i][0] == '-' && word[i][1] && !p->o->help && !p->o->version) {
		if (strcmp(word[i], "--") == 0) {
			i++;
			break;
		}
		const char *next = i + 1 < count ? word[i + 1] : NULL;
		int n = word[i][1] == '-' ? parse_long(p, word[i], next) : parse_letters(p, word[i], next);
		if (n < 0)
			return n;
		i += (size_t)n;
	}
	*used_out = i;
	return 0;
}

/* Options from @text, which came from @source; nothing else may stand there. */
static int parse_text(struct options *o, const char *source, const char *text)
{
	_cleanup_free_ char *prefix = xasprintf("%s: ", source);
	struct parser p = {o, prefix};
	struct words words = {0};
	if (words_split(text, &words)) {
		log_error("%s: a quote is not closed", source);
		return -EINVAL;
	}
	size_t used = 0;
	int err = parse_words(&p, words.count, words.data, &used);
	if (!err && used < words.count && !o->help && !o->version) {
		log_error("%s: '%s' is no option", source, words.data[used]);
		err = -EINVAL;
	}
	for (size_t i = 0; i < words.count; i++)
		keep(o, words.data[i]); /* fields point to them */
	words.count = 0;
	words_deinit(&words);
	return err;
}

static char *rc_path(void)
{
	const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	if (config && *config == '/')
		return xasprintf("%s/ptmem/ptmemrc", config);
	return home && *home ? xasprintf("%s/.config/ptmem/ptmemrc", home) : NULL;
}

/*
 * A file that others can write could make one's own profile overwrite one's own
 * files, so it is not read. Where there is none, all is well.
 */
static int parse_rc_file(struct options *o)
{
	_cleanup_free_ char *path = rc_path(), *text = NULL;
	_cleanup_fclose_ FILE *file = path ? fopen(path, "re") : NULL;
	struct stat st;
	if (!file || fstat(fileno(file), &st) || !S_ISREG(st.st_mode))
		return 0;
	if ((st.st_uid != geteuid() && st.st_uid != 0) || st.st_mode & (S_IWGRP | S_IWOTH)) {
		log_warn("%s is not read: others can write it", path);
		return 0;
	}
	size_t size = 0;
	if (getdelim(&text, &size, '\0', file) < 0)
		return 0;
	return parse_text(o, path, text);
}

static int contradiction(const struct options *o)
{
	const char *why = NULL;
	if (o->pid_count && o->command)
		why = "--pid and a program exclude each other";
	else if (o->replay_file && (o->pid_count || o->command))
		why = "--replay takes its events from a file: neither --pid nor a program goes with it";
	else if (o->replay_file && o->events_file)
		why = "--replay and --events exclude each other";
	else if (o->replay_file && (o->leak_check || o->top >= 0))
		why = "--replay has no program: neither --leak-check nor --top goes with it";
	else if (o->error_exitcode && !o->leak_check)
		why = "--error-exitcode goes only with --leak-check";
	else if (o->duration > 0 && !o->pid_count)
		why = "--duration goes only with --pid";
	else if (!o->pid_count && !o->command && !o->replay_file)
		why = "no program given; ptmem --help says how";
	if (!why)
		return 0;
	log_error("%s", why);
	return -EINVAL;
}

static void set_defaults(struct options *o)
{
	struct parser p = {o, ""};
	*o = (struct options){.log_level = LOG_INFO, .leaks = OPTION_OFF, .top = OPTION_OFF};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].initial)
			CHECK(set_value(&p, &rows[i], rows[i].name, rows[i].initial) == 0);
}

static int parse_command_line(int argc, char **argv, struct options *o)
{
	struct parser p = {o, ""};
	size_t used = 0;
	int err = argc > 0 ? parse_words(&p, (size_t)argc - 1, argv + 1, &used) : 0;
	if (!err && argc > 0 && argv[1 + used])
		o->command = argv + 1 + used;
	return err;
}

static int parse_all(int argc, char **argv, bool no_rc, struct options *o)
{
	set_defaults(o);
	const char *from_environment = getenv("PTMEM_OPTS");
	int err = no_rc ? 0 : parse_rc_file(o);
	if (!err && !no_rc && from_environment)
		err = parse_text(o, "PTMEM_OPTS", from_environment);
	if (!err)
		err = parse_command_line(argc, argv, o);
	if (!err && !o->help && !o->version)
		err = contradiction(o);
	if (!o->desc)
		o->desc = xstrdup("(none)");
	return err;
}

int options_parse(int argc, char **argv, struct options *out)
{
	/* The command line alone first: it may say that nothing else is to be read. */
	set_defaults(out);
	int err = parse_command_line(argc, argv, out);
	bool no_rc = out->no_rc || out->help || out->version;
	options_deinit(out);
	if (!err)
		err = parse_all(argc, argv, no_rc, out);
	if (err)
		options_deinit(out);
	return err;
}

void options_deinit(struct options *o)
{
	vec_deinit(&o->alloc_fn);
	vec_deinit(&o->ignore_fn);
	words_deinit(&o->words);
	free(o->desc);
	o->desc = NULL;
}

/* "  -p, --pid=PID", then the text from column 33 on, its further lines below. */
static void print_row(FILE *file, const struct option_row *row)
{
	char letter[8] = "    ";
	if (row->letter)
		snprintf(letter, sizeof(letter), "-%c, ", row->letter);
	int n = fprintf(file, "  %s--%s%s%s", letter, row->name, row->value && row->type != SECONDS ? "=" : "",
			row->value ? row->value : "");
	int column = 33;
	if (n >= column) {
		fputc('\n', file);
		n = 0;
	}
	for (const char *s = row->text; *s; n = 0) {
		int length = (int)strcspn(s, "\n");
		fprintf(file, "%*s%.*s", column - n, "", length, s);
		s += length;
		if (*s) {
			fputc('\n', file);
			s++;
		}
	}
	if (row->initial)
		fprintf(file, " [%s]", row->initial);
	fputc('\n', file);
}

void options_print_help(FILE *file)
{
	fputs("usage: ptmem [OPTION...] [--] PROGRAM [ARGUMENT...]\n"
	      "       ptmem [OPTION...] -p PID\n"
	      "       ptmem [OPTION...] --replay=FILE\n"
	      "Profiles the heap of a program from outside and writes a massif file.\n", file);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (rows[i].name)
			print_row(file, &rows[i]);
		else
			fprintf(file, "\n%s\n", rows[i].text);
	}
	fputs("\nOptions are also read from ~/.config/ptmem/ptmemrc and PTMEM_OPTS; the command\n"
	      "line wins. ptmem-report FILE prints the graph and the call trees of a profile.\n", file);
}

void options_print_version(FILE *file)
{
	fputs("ptmem " PTMEM_VERSION "\n", file);
}
