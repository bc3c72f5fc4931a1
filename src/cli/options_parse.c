/* Parses words from three places into the fields of struct options. */
#include "cli/command_line.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/types.h"

#define NAME_MAX_SIZE 64
#define BEGINNING_MIN 3 /* significant characters */
#define SLIPS_MAX 2

/*
 * The number of errors that turn the @n characters at @a into @b; only the last three rows of the
 * usual table are kept.
 */
static size_t distance(const char *a, size_t n, const char *b)
{
	size_t lines[3][NAME_MAX_SIZE], m = strlen(b);
	size_t *before = lines[0], *last = lines[1], *line = lines[2];
	if (n >= NAME_MAX_SIZE || m >= NAME_MAX_SIZE)
		return SIZE_MAX;
	for (size_t j = 0; j <= m; j++)
		line[j] = j;
	for (size_t i = 1; i <= n; i++) {
		size_t *old = before;
		before = last;
		last = line;
		line = old;
		line[0] = i;
		for (size_t j = 1; j <= m; j++) {
			line[j] = MIN(last[j - 1] + (a[i - 1] != b[j - 1]),
				      MIN(line[j - 1], last[j]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				line[j] = MIN(line[j], before[j - 2] + 1);
		}
	}
	return line[m];
}

/* The shortest name with this prefix; NULL = none. */
static const char *find_beginning(const char *name, size_t length)
{
	const char *found = NULL;
	for (size_t i = 0; i < option_row_count; i++) {
		const char *known = option_rows[i].name;
		if (known && strncmp(known, name, length) == 0 &&
		    (!found || strlen(known) < strlen(found)))
			found = known;
	}
	return found;
}

/*
 * The shortest option that begins with the @length bytes at @name, or the most similar one; NULL =
 * none.
 */
static const char *option_suggest(const char *name, size_t length)
{
	const char *nearest = length >= BEGINNING_MIN ? find_beginning(name, length) : NULL;
	size_t best = MIN(length / 2, SLIPS_MAX + 1); /* with more errors it is another word */
	if (nearest)
		return nearest;
	for (size_t i = 0; i < option_row_count; i++) {
		const char *known = option_rows[i].name;
		size_t slips = known ? distance(name, length, known) : SIZE_MAX;
		if (slips < best) {
			best = slips;
			nearest = known;
		}
	}
	return nearest;
}

/* Sets one option. */

struct option_row;
struct options;

/* The options being parsed, and the origin of the words. */
struct option_parser {
	struct options *o;
	const char *source; /* for messages: "" for the command line, or a name with ": " after */
};

/* Parses the value of an option into its field, and checks its range. */

static void *field_of(const struct option_row *row, struct options *o)
{
	return (char *)o + row->offset;
}

static int refuse(const struct option_parser *p, const struct option_row *row, const char *arg,
		  const char *value)
{
	_cleanup_free_ char *takes = option_takes(row);
	/* the next word */
	bool is_apart = value && !strchr(arg, '=') && (arg[1] == '-' || !arg[2]);
	log_error("%sbad option '%s%s%s': --%s takes %s", p->source, arg, is_apart ? " " : "",
		  is_apart ? value : "", row->name, takes);
	return -EINVAL;
}

static bool in_range(const struct option_row *row, double value)
{
	return !row->has_range || (value >= row->min && value <= row->max);
}

/* Spaces, a sign and digits, as for strtoll, and nothing after; an empty string is 0. */
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
 * Massif's decimals: spaces, a sign, digits with an optional point anywhere. No exponent, no
 * hexadecimal, no "inf", in any locale.
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
		} else if (*s == '%' && !s[1] && s > text && row->flags & PERCENT) {
			break;
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

/* A decimal of seconds, or of the unit that follows. */
static bool parse_time(const struct option_row *row, const char *text, double *out)
{
	static const char units[] = "smhd";
	static const double seconds[] = {1, 60, 3600, 86400};
	const struct option_row any = {.has_range = false};
	size_t n = strlen(text);
	const char *unit = n > 1 ? strchr(units, text[n - 1]) : NULL;
	_cleanup_free_ char *number = xstrndup(text, unit ? n - 1 : n);

	if (!number[strspn(number, " \t+-.")] || !parse_decimal(&any, number, out))
		return false;
	*out *= unit ? seconds[unit - units] : 1;
	return in_range(row, *out);
}

static bool has_pid(const struct options *o, long long pid)
{
	for (uint32_t i = 0; i < o->attach.pid_count; i++)
		if (o->attach.pid[i] == pid)
			return true;
	return false;
}

/* Process ids separated by commas or spaces, as "12,34" or the output of pidof. */
static int parse_pids(const struct option_parser *p, const struct option_row *row, const char *arg,
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
		if (o->attach.pid_count == OPTIONS_MAX_PIDS) {
			log_error("%sbad option '%s': --pid takes no more than %d processes",
				  p->source, arg, OPTIONS_MAX_PIDS);
			return -EINVAL;
		}
		o->attach.pid[o->attach.pid_count++] = (pid_t)pid;
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

static bool parse_yes_no(const char *text, bool *out)
{
	*out = *text == 'y';
	return strcmp(text, "yes") == 0 || strcmp(text, "no") == 0;
}

static bool parse_help(const char *text, enum help_mode *out)
{
	*out = text ? HELP_ALL : HELP_EVERYDAY;
	return !text || strcmp(text, "all") == 0;
}

static bool add_text(const struct option_row *row, const char *text, struct option_strings *out)
{
	*vec_add(out) = text;
	return *text || !(row->flags & NOT_EMPTY);
}

static bool add_pattern(const struct option_row *row, const char *text, struct my_code *out)
{
	bool is_not = strncmp(row->name, "not-", 4) == 0;
	_cleanup_free_ char *rule = xasprintf("%c%s", is_not ? '-' : '+', text);

	my_code_add(out, rule);
	return *text;
}

static bool set_text(const struct option_row *row, const char *text, const char **out)
{
	*out = text ? text : "";
	return !text || *text || !(row->flags & NOT_EMPTY);
}

static bool set_number(const struct option_row *row, const char *text, void *field)
{
	long long number = 0;
	bool is_good = parse_number(row, text, &number);

	if (row->type == SIZE)
		*(uint64_t *)field = (uint64_t)number;
	else
		*(uint32_t *)field = (uint32_t)number;
	return is_good;
}

/*
 * Sets @row's field to the value @text, which must live as long as the options (NULL if the option
 * takes none). @arg: the word, for the message. 0, or -EINVAL after a message.
 */
static int option_value_set(const struct option_parser *p, const struct option_row *row,
			    const char *arg, const char *text)
{
	void *field = field_of(row, p->o);
	long long number = 0;
	bool is_good = true;
	switch (row->type) {
	case FLAG:
		*(bool *)field = true;
		break;
	case MORE:
		p->o->messages.level = p->o->messages.level < LOG_VERBOSE ? LOG_VERBOSE : LOG_DEBUG;
		break;
	case LESS:
		p->o->messages.level = LOG_WARN;
		break;
	case YES_NO:
		is_good = parse_yes_no(text, field);
		break;
	case NUMBER:
	case SIZE:
		is_good = set_number(row, text, field);
		break;
	case MAY_NUMBER:
		is_good = !text || parse_number(row, text, &number);
		*(uint32_t *)field = text ? (uint32_t)number : row->implied;
		break;
	case PERIOD:
		is_good = strcmp(text, "no") == 0 || (*text && parse_number(row, text, &number));
		*(uint32_t *)field = (uint32_t)number;
		break;
	case DECIMAL:
	case TIME:
		is_good = (row->type == TIME ? parse_time : parse_decimal)(row, text, field);
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
	case MAY_TEXT:
		is_good = set_text(row, text, field);
		break;
	case TEXTS:
		is_good = add_text(row, text, field);
		break;
	case PATTERNS:
		is_good = add_pattern(row, text, field);
		break;
	case HELP:
		is_good = parse_help(text, field);
		break;
	case PIDS:
		return parse_pids(p, row, arg, text);
	}
	return is_good ? 0 : refuse(p, row, arg, text);
}

/*
 * Parses words from three places into the fields of struct options.
 *
 *	ptmemrc, PTMEM_OPTS, argv  ->  rows of the table  ->  struct options
 */

/* Keeps @s until options_deinit. */
static char *keep(struct options *o, char *s)
{
	return *vec_add(&o->words) = s;
}

/* Records the origin of an option, which determines the message if it has no effect. */
static void note_given(const struct option_parser *p, const struct option_row *row)
{
	size_t i = (size_t)(row - option_rows);
	CHECK(i / 64 < ARRAY_SIZE(p->o->given));
	if (!*p->source)
		p->o->given[i / 64] |= 1ull << i % 64;
}

/* Appends an option in its long form. */
static void append(char **text, const struct option_row *row, const char *value)
{
	char *before = *text;
	*text = xasprintf("%s%s--%s%s%s", before ? before : "", before ? " " : "", row->name,
			  value ? "=" : "", value ? value : "");
	free(before);
}

/* Repeats a tool option in desc:, and every option in recordings. */
static void describe(struct options *o, const struct option_row *row, const char *value)
{
	if (row->flags & TOOL)
		append(&o->desc, row, value);
	append(&o->all, row, value);
}

/* Sets the option of @row, written as @arg, to @value (NULL if it takes none). 0 or -EINVAL. */
static int apply(const struct option_parser *p, const struct option_row *row, const char *arg,
		 const char *value)
{
	int err = option_value_set(p, row, arg, value);
	if (err)
		return err;
	note_given(p, row);
	describe(p->o, row, value);
	return 0;
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

static int refuse_unknown(const struct option_parser *p, const char *arg, const char *name,
			  size_t length)
{
	const char *nearest = name ? option_suggest(name, length) : NULL;
	if (nearest)
		log_error("%sunknown option '%s': did you mean --%s?", p->source, arg, nearest);
	else
		log_error("%sunknown option '%s': ptmem --help=all lists all", p->source, arg);
	return -EINVAL;
}

/*
 * An option of Valgrind's core without a row. Returns the number of words used, 1, or -EINVAL; 0:
 * unknown.
 */
static int parse_core(const struct option_parser *p, const char *arg, const char *name,
		      size_t length)
{
	const char *why = NULL;
	switch (core_option_check(name, length, name[length] ? name + length + 1 : NULL, &why)) {
	case CORE_TAKEN:
		return 1;
	case CORE_BAD_VALUE:
		log_error("%sbad option '%s': --%.*s takes %s", p->source, arg, (int)length, name,
			  why);
		return -EINVAL;
	case CORE_REFUSED:
		log_error("%soption '%s' is not supported: %s", p->source, arg, why);
		return -EINVAL;
	default:
		return 0;
	}
}

static int refuse_missing(const struct option_parser *p, const struct option_row *row,
			  const char *arg)
{
	log_error("%sbad option '%s': a value is missing, --%s=%s", p->source, arg, row->name,
		  row->value);
	return -EINVAL;
}

/* Flags that have a value in Valgrind. */
static const struct flag_words {
	const char *name, *on[2], *takes;
} flag_words[] = {
	{"stats", {"yes", "yes"}, "yes or no"},
	{"leak-check", {"full", "yes"}, "full, yes or no"},
};

/* @row is a flag. 0: @value turns it on; 1: @value has turned it off; or -EINVAL. */
static int take_word(const struct option_parser *p, const struct option_row *row, const char *arg,
		     const char *value)
{
	const struct flag_words *w = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(flag_words); i++)
		if (strcmp(flag_words[i].name, row->name) == 0)
			w = &flag_words[i];
	if (w && (strcmp(value, w->on[0]) == 0 || strcmp(value, w->on[1]) == 0))
		return 0;
	if (w && strcmp(value, "no") == 0) {
		*(bool *)((char *)p->o + row->offset) = false;
		return 1;
	}
	log_error("%sbad option '%s': --%s takes %s", p->source, arg, row->name,
		  w ? w->takes : "no value");
	return -EINVAL;
}

/*
 * One word that begins with "--"; @next: the word after it or NULL. Returns the
 * number of words used, or -EINVAL.
 */
static int parse_long(const struct option_parser *p, const char *arg, const char *next)
{
	const char *name = arg + 2;
	size_t length = strcspn(name, "=:");
	if (name[length] == ':') { /* --TOOL:OPTION: for that tool of Valgrind only */
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
	if (value && !row->value) {
		int rc = take_word(p, row, arg, value);

		if (rc != 0)
			return rc;
		value = NULL;
	}
	bool is_separate = !value && (row->flags & SEPARATE) && next;
	if (is_separate)
		value = next;
	if (is_help)
		value = "all";
	if (!value && row->value && row->type != MAY_NUMBER && row->type != SECONDS &&
	    row->type != MAY_TEXT && row->type != HELP)
		return refuse_missing(p, row, arg);
	int err = apply(p, row, arg, value);
	return err ? err : is_separate ? 2 : 1;
}

/* One word of letters: -v, -vq, -p12, -p 12. Returns the words used, or -EINVAL. */
static int parse_letters(const struct option_parser *p, const char *arg, const char *next)
{
	for (const char *letter = arg + 1; *letter; letter++) {
		const struct option_row *row = find_row(NULL, 0, *letter);
		if (!row && core_option_is_letter(*letter))
			continue;
		if (!row)
			return refuse_unknown(p, arg, NULL, 0);
		if (!row->value || row->type == HELP) {
			int err = apply(p, row, arg, NULL);
			if (err)
				return err;
			continue;
		}
		const char *value = letter[1] ? letter + 1 : next;
		if (!value)
			return refuse_missing(p, row, arg);
		int err = apply(p, row, arg, value);
		return err ? err : letter[1] ? 1 : 2;
	}
	return 1;
}

/* Parses options up to the first other word; *used_out: their number of words. */
static int parse_words(const struct option_parser *p, size_t count, char **word, size_t *used_out)
{
	size_t i = 0;
	while (i < count && word[i][0] == '-' && word[i][1] && !p->o->invocation.help &&
	       !p->o->invocation.version) {
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

/* Parses @text from @source, which must contain only options. */
static int parse_text(struct options *o, const char *source, const char *text)
{
	_cleanup_free_ char *prefix = xasprintf("%s: ", source);
	struct option_parser p = {o, prefix};
	struct words words = {0};
	if (shell_words_split(text, &words)) {
		shell_words_deinit(&words);
		log_error("%s: unterminated quote", source);
		return -EINVAL;
	}
	size_t used = 0;
	int err = parse_words(&p, words.count, words.data, &used);
	if (!err && used < words.count && !o->invocation.help && !o->invocation.version) {
		log_error("%s: '%s' is not an option", source, words.data[used]);
		err = -EINVAL;
	}
	for (size_t i = 0; i < words.count; i++)
		keep(o, words.data[i]); /* fields point to them */
	words.count = 0;
	shell_words_deinit(&words);
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
 * A file that other users can write could make a profile overwrite the user's files, so it is
 * ignored. A missing file is no error.
 */
static int parse_rc_file(struct options *o)
{
	_cleanup_free_ char *path = rc_path(), *text = NULL;
	_cleanup_fclose_ FILE *file = path ? fopen(path, "re") : NULL;
	struct stat st;
	if (!file || fstat(fileno(file), &st) || !S_ISREG(st.st_mode))
		return 0;
	if ((st.st_uid != geteuid() && st.st_uid != 0) || st.st_mode & (S_IWGRP | S_IWOTH)) {
		log_warn("%s is ignored: other users can write to it", path);
		return 0;
	}
	size_t size = 0;
	if (getdelim(&text, &size, '\0', file) < 0)
		return 0;
	return parse_text(o, path, text);
}

static void set_defaults(struct options *o)
{
	struct option_parser p = {o, ""};
	*o = (struct options){
		.messages.level = LOG_INFO, .leaks.age = OPTION_OFF,
		.leaks.older_than = OPTION_OFF, .tracing.max_wait = OPTION_OFF,
		.top = OPTION_OFF};
	for (size_t i = 0; i < option_row_count; i++) {
		const struct option_row *row = &option_rows[i];
		if (row->initial)
			CHECK(option_value_set(&p, row, row->name, row->initial) == 0);
	}
}

static int parse_command_line(int argc, char **argv, struct options *o)
{
	struct option_parser p = {o, ""};
	size_t used = 0;
	int err = argc > 0 ? parse_words(&p, (size_t)argc - 1, argv + 1, &used) : 0;
	if (!err && argc > 0 && argv[1 + used])
		o->command = argv + 1 + used;
	return err;
}

/* As in Massif: --heap=no disables --pages-as-heap; with stacks it warns, and counts both. */
static void reconcile_pages(struct options *o)
{
	if (o->profile.pages_as_heap && o->profile.stacks)
		log_warn("--pages-as-heap=yes and --stacks=yes should not be used together: the "
			 "pages of stacks "
			 "count twice");
	o->profile.pages_as_heap &= o->profile.heap;
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
	if (!err && !o->invocation.help && !o->invocation.version)
		err = option_check(o);
	if (!err)
		reconcile_pages(o);
	if (!o->desc)
		o->desc = xstrdup("(none)");
	return err;
}

int options_parse(int argc, char **argv, struct options *out)
{
	/* The command line is scanned first, since it may disable the other places. */
	set_defaults(out);
	int err = parse_command_line(argc, argv, out);
	bool no_rc = out->invocation.no_rc || out->invocation.command_line_only ||
		     out->invocation.help || out->invocation.version;
	options_deinit(out);
	if (!err)
		err = parse_all(argc, argv, no_rc, out);
	if (err)
		options_deinit(out);
	return err;
}

void options_deinit(struct options *o)
{
	vec_deinit(&o->attach.follow);
	vec_deinit(&o->names.alloc_fn);
	vec_deinit(&o->names.ignore_fn);
	vec_deinit(&o->names.fullpath_after);
	my_code_deinit(&o->names.my_code);
	vec_deinit(&o->leaks.suppressions);
	vec_deinit(&o->when);
	shell_words_deinit(&o->words);
	free(o->desc);
	o->desc = NULL;
	free(o->all);
	o->all = NULL;
}
