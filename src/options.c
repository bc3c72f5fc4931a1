/*
 * Parsing: words from three places become fields of struct options.
 *
 *	ptmemrc, PTMEM_OPTS, argv  ->  rows of the table  ->  struct options
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
#include "core_options.h"
#include "option_suggest.h"
#include "option_table.h"

#define SAMPLE_MS 100 /* --sample without a number */

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

static int refuse(const struct parser *p, const struct option_row *row, const char *arg, const char *value)
{
	_cleanup_free_ char *takes = option_takes(row);
	/* the next word */
	bool is_apart = value && !strchr(arg, '=') && (arg[1] == '-' || !arg[2]);
	log_error("%sbad option '%s%s%s': --%s takes %s", p->source, arg, is_apart ? " " : "", is_apart ? value : "",
		  row->name, takes);
	return -EINVAL;
}

static bool in_range(const struct option_row *row, double value)
{
	return !row->has_range || (value >= row->min && value <= row->max);
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
static int parse_pids(const struct parser *p, const struct option_row *row, const char *arg,
		      const char *text)
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
			return refuse(p, row, arg, text);
		s = end;
		found++;
		if (has_pid(o, pid))
			continue;
		if (o->pid_count == OPTIONS_MAX_PIDS) {
			log_error("%sbad option '%s': --pid takes no more than %d processes", p->source,
				  arg, OPTIONS_MAX_PIDS);
			return -EINVAL;
		}
		o->pid[o->pid_count++] = (pid_t)pid;
	}
	return found ? 0 : refuse(p, row, arg, text);
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

static bool parse_set(const struct option_row *row, const char *text, uint32_t *out)
{
	uint32_t set = 0, bit;
	for (const char *s = text;; s++) {
		char word[32];
		size_t n = strcspn(s, ",");
		snprintf(word, sizeof(word), "%.*s", (int)n, s);
		if (!parse_choice(row, word, &bit))
			return false;
		set |= 1u << bit;
		s += n;
		if (!*s)
			break;
	}
	*out = set;
	return true;
}

/* Gives @row's field the value @text (unused where it takes none). @arg: for the message. */
static int set_value(const struct parser *p, const struct option_row *row, const char *arg,
		     const char *text)
{
	void *field = field_of(row, p->o);
	long long number = 0;
	bool is_good = true;
	switch (row->type) {
	case FLAG:
		*(bool *)field = true;
		break;
	case MORE:
		p->o->log_level = p->o->log_level < LOG_VERBOSE ? LOG_VERBOSE : LOG_DEBUG;
		break;
	case LESS:
		p->o->log_level = LOG_WARN;
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
	case SAMPLE:
		is_good = !text || parse_number(row, text, &number);
		*(uint32_t *)field = text ? (uint32_t)number : SAMPLE_MS;
		break;
	case PERIOD:
		is_good = strcmp(text, "no") == 0 || (*text && parse_number(row, text, &number));
		*(uint32_t *)field = (uint32_t)number;
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
	case SET:
		is_good = parse_set(row, text, field);
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
	return is_good ? 0 : refuse(p, row, arg, text);
}

/* Repeats a tool option in desc:, in its long form. */
static void describe(struct options *o, const struct option_row *row, const char *value)
{
	if (!(row->flags & TOOL))
		return;
	char *before = o->desc;
	o->desc = xasprintf("%s%s--%s=%s", before ? before : "", before ? " " : "", row->name,
			    value);
	free(before);
}

static const struct option_row *find_row(const char *name, size_t length, char letter)
{
	for (size_t i = 0; i < option_row_count; i++) {
		const struct option_row *row = &option_rows[i];
		if (!row->name)
			continue;
		if (name ? strlen(row->name) == length && strncmp(row->name, name, length) == 0
			 : row->letter == letter)
			return row;
	}
	return NULL;
}

static int refuse_unknown(const struct parser *p, const char *arg, const char *name, size_t length)
{
	const char *nearest = name ? option_suggest(name, length) : NULL;
	if (nearest)
		log_error("%sunknown option '%s': did you mean --%s?", p->source, arg, nearest);
	else
		log_error("%sunknown option '%s': ptmem --help lists all", p->source, arg);
	return -EINVAL;
}

/*
 * An option of Valgrind's core without a row. Returns the words used, 1, or -EINVAL; 0: it is none.
 */
static int parse_core(const struct parser *p, const char *arg, const char *name, size_t length)
{
	const char *why = NULL;
	switch (core_option_check(name, length, name[length] ? name + length + 1 : NULL, &why)) {
	case CORE_TAKEN:
		return 1;
	case CORE_BAD_VALUE:
		log_error("%sbad option '%s': --%.*s takes %s", p->source, arg, (int)length, name, why);
		return -EINVAL;
	case CORE_REFUSED:
		log_error("%soption '%s' is not supported: %s", p->source, arg, why);
		return -EINVAL;
	default:
		return 0;
	}
}

static int refuse_missing(const struct parser *p, const struct option_row *row, const char *arg)
{
	log_error("%sbad option '%s': a value is missing, --%s=%s", p->source, arg, row->name,
		  row->value);
	return -EINVAL;
}

/*
 * One word that begins with "--"; @next: the word behind it or NULL. Returns the
 * number of words used, or -EINVAL.
 */
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
	bool is_help = strcmp(name, "help-debug") == 0; /* Valgrind's longer one */
	const struct option_row *row = is_help ? find_row("help", 4, 0) : find_row(name, length, 0);
	if (!row) {
		int used = parse_core(p, arg, name, length);
		return used ? used : refuse_unknown(p, arg, name, length);
	}
	if (value && !row->value && strcmp(name, "stats=yes") == 0)
		value = NULL; /* as Valgrind has it */
	if (value && !row->value && strcmp(name, "stats=no") == 0) {
		p->o->stats = false;
		return 1;
	}
	if (value && strncmp(name, "stats=", 6) == 0) {
		log_error("%sbad option '%s': --stats takes yes or no", p->source, arg);
		return -EINVAL;
	}
	if (value && !row->value) {
		log_error("%sbad option '%s': --%s takes no value", p->source, arg, row->name);
		return -EINVAL;
	}
	bool is_separate = !value && (row->flags & SEPARATE) && next;
	if (is_separate)
		value = next;
	if (!value && row->value && row->type != SAMPLE && row->type != SECONDS)
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
		if (!row && core_option_is_letter(*letter))
			continue;
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
		bool is_long = word[i][1] == '-';
		int n = is_long ? parse_long(p, word[i], next) : parse_letters(p, word[i], next);
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
		words_deinit(&words);
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
	if (o->monitor_pid && (!o->command || (o->command[1] && o->command[2])))
		why = "--monitor takes a command and perhaps a file; ptmem --monitor=PID help lists the commands";
	else if (o->monitor_pid && (o->pid_count || o->replay_file))
		why = "--monitor goes with neither --pid nor --replay";
	else if (o->pid_count && o->command)
		why = "--pid and a program exclude each other";
	else if (o->replay_file && (o->pid_count || o->command))
		why = "--replay reads events from a file: neither --pid nor a program goes with it";
	else if (o->replay_file && o->events_file)
		why = "--replay and --events exclude each other";
	else if (o->replay_file && (o->leak_check || o->top >= 0))
		why = "--replay has no program: neither --leak-check nor --top goes with it";
	else if (o->duration > 0 && !o->pid_count)
		why = "--duration goes only with --pid";
	else if (o->replay_file && o->sample_ms)
		why = "--sample needs a process: --replay has none";
	else if (o->memusage_out && !o->memusage)
		why = "--memusage-out goes only with --memusage";
	else if (o->sample_out && !o->sample_ms)
		why = "--sample-out goes only with --sample";
	else if (o->pages_as_heap && (o->memusage || o->data_file))
		why = "--pages-as-heap=yes watches no calls: neither --memusage nor --data goes with it";
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
	for (size_t i = 0; i < option_row_count; i++) {
		const struct option_row *row = &option_rows[i];
		if (row->initial)
			CHECK(set_value(&p, row, row->name, row->initial) == 0);
	}
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

/* Massif's answers: pages without the heap are none; with stacks it complains, and counts both. */
static void settle_pages(struct options *o)
{
	if (o->pages_as_heap && o->stacks)
		log_warn("--pages-as-heap=yes and --stacks=yes should not be used together: the pages of stacks "
			 "count twice");
	o->pages_as_heap &= o->heap;
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
	if (!err)
		settle_pages(o);
	if (!o->desc)
		o->desc = xstrdup("(none)");
	return err;
}

int options_parse(int argc, char **argv, struct options *out)
{
	/* The command line alone first: it may say that nothing else is to be read. */
	set_defaults(out);
	int err = parse_command_line(argc, argv, out);
	bool no_rc = out->no_rc || out->command_line_only || out->help || out->version;
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
	vec_deinit(&o->fullpath_after);
	words_deinit(&o->words);
	free(o->desc);
	o->desc = NULL;
}
