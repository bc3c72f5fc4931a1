/* Parses words from three places into the fields of struct options. */
#include "cli/command_line.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/files.h"
#include "base/text.h"
#include "base/types.h"
#include "cli/explain.h"

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

/*
 * The shortest option that begins with the @length bytes at @name, or the most similar one; NULL =
 * none.
 */
static const char *option_suggest(const char *name, size_t length)
{
	const char *beginning = NULL, *nearest = NULL;
	size_t best = MIN(length / 2, SLIPS_MAX + 1); /* with more errors it is another word */
	for (size_t i = 0; i < options_table.count; i++) {
		const char *known = options_table.row[i].name;
		size_t slips = known ? distance(name, length, known) : SIZE_MAX;
		if (known && length >= BEGINNING_MIN && strncmp(known, name, length) == 0 &&
		    (!beginning || strlen(known) < strlen(beginning)))
			beginning = known;
		if (slips < best) {
			best = slips;
			nearest = known;
		}
	}
	return beginning ? beginning : nearest;
}

/* The options being parsed, and the origin of the words. */
struct option_parser {
	struct options *o;
	const char *source; /* for messages: "" for the command line, or a name with ": " after */
};

static bool is_program(const char *word)
{
	_cleanup_free_ char *found = strchr(word, '/') ? NULL : program_find(word);
	struct stat st;

	return found || (stat(word, &st) == 0 && S_ISREG(st.st_mode) && st.st_mode & 0111);
}

/* "--html report.html": its name says that @word is the value, not a program. */
static bool is_report_name(const struct option_row *row, const char *word)
{
	return strcmp(row->name, "html") == 0 && text_ends_in(word, ".html") && *word != '-' &&
	       !is_program(word);
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

/* Process ids separated by commas or spaces, as "12,34" or the output of pidof. */
static int parse_pids(const struct option_parser *p, const struct option_row *row, const char *arg,
		      const char *text)
{
	static const char ends[] = ", \t\n";
	struct options_attach *a = &p->o->attach;
	const char *s = text + strspn(text, ends);
	if (!*s)
		return refuse(p, row, arg, text);
	if (isalpha((unsigned char)*s)) {
		explain_pid(p->source, s);
		return -EINVAL;
	}
	for (char *end; *s; s = end + strspn(end, ends)) {
		errno = 0;
		long long pid = strtoll(s, &end, 10);
		if (errno || end == s || !strchr(ends, *end) || pid < row->min || pid > row->max)
			return refuse(p, row, arg, text);
		uint32_t i = 0;
		while (i < a->pid_count && a->pid[i] != pid)
			i++;
		if (i == OPTIONS_MAX_PIDS) {
			log_error("%sbad option '%s': --pid takes no more than %d processes",
				  p->source, arg, OPTIONS_MAX_PIDS);
			return -EINVAL;
		}
		a->pid[i] = (pid_t)pid;
		a->pid_count = MAX(a->pid_count, i + 1);
	}
	return 0;
}

/* Appends an option in its long form. */
static void append(char **text, const struct option_row *row, const char *value)
{
	char *before = *text;
	*text = xasprintf("%s%s--%s%s%s", before ? before : "", before ? " " : "", row->name,
			  value ? "=" : "", value ? value : "");
	free(before);
}

/* Sets the option of @row, written as @arg, to @value (NULL if it takes none). 0 or -EINVAL. */
static int apply(const struct option_parser *p, const struct option_row *row, const char *arg,
		 const char *value)
{
	size_t i = (size_t)(row - options_table.row);
	int err = row->type == OPT_PIDS		? parse_pids(p, row, arg, value) :
		  option_set(row, value, p->o) ? 0 :
						 refuse(p, row, arg, value);
	if (err)
		return err;
	CHECK(i / 64 < ARRAY_SIZE(p->o->given));
	if (!*p->source) /* what has no effect is an error only if it was given there */
		p->o->given[i / 64] |= 1ull << i % 64;
	if (row->flags & OPT_TOOL)
		append(&p->o->desc, row, value);
	append(&p->o->all, row, value);
	return 0;
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

/* @next: the word after it, which may be meant as the value, or NULL. */
static int refuse_missing(const struct option_parser *p, const struct option_row *row,
			  const char *arg, const char *next)
{
	bool is_text = row->type == OPT_TEXT || row->type == OPT_TEXTS;

	if (next && *next != '-' && (is_text || isdigit((unsigned char)*next)) && !is_program(next))
		log_error("%sbad option '%s': its value follows an equals sign, --%s=%s", p->source,
			  arg, row->name, next);
	else
		log_error("%sbad option '%s': a value is missing, --%s=%s", p->source, arg,
			  row->name, row->value);
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
	const struct option_row *row =
		option_find(&options_table, is_help ? "help" : name, is_help ? 4 : length);
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
	bool is_separate = !value && next && (row->flags & OPT_SEPARATE ||
					      is_report_name(row, next));
	if (is_separate)
		value = next;
	if (is_help)
		value = "all";
	if (!value && row->value && !option_is_optional(row))
		return refuse_missing(p, row, arg, next);
	int err = apply(p, row, arg, value);
	return err ? err : is_separate ? 2 : 1;
}

/* One word of letters: -v, -vq, -p12, -p 12. Returns the words used, or -EINVAL. */
static int parse_letters(const struct option_parser *p, const char *arg, const char *next)
{
	for (const char *letter = arg + 1; *letter; letter++) {
		const struct option_row *row = option_find_letter(&options_table, *letter);
		if (!row && core_option_is_letter(*letter))
			continue;
		if (!row)
			return refuse_unknown(p, arg, NULL, 0);
		if (!row->value || option_is_optional(row)) {
			int err = apply(p, row, arg, NULL);
			if (err)
				return err;
			continue;
		}
		const char *value = letter[1] ? letter + 1 : next;
		if (!value)
			return refuse_missing(p, row, arg, NULL);
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
	vec_append(&o->words, &words); /* fields point to them */
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
	*o = (struct options){
		.messages.level = LOG_INFO, .leaks.age = OPTION_OFF,
		.leaks.older_than.seconds = OPTION_OFF, .tracing.max_wait = OPTION_OFF,
		.top = OPTION_OFF};
	option_set_initial(&options_table, o);
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
	o->argv = argv;
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
	vec_deinit(&o->tracing.probe);
	vec_deinit(&o->names.alloc_fn);
	vec_deinit(&o->names.ignore_fn);
	vec_deinit(&o->names.fullpath_after);
	my_code_deinit(&o->names.my_code);
	vec_deinit(&o->leaks.suppressions);
	vec_deinit(&o->files.limits);
	vec_deinit(&o->files.sources);
	vec_deinit(&o->files.limits_out);
	vec_deinit(&o->when);
	shell_words_deinit(&o->words);
	free(o->desc);
	o->desc = NULL;
	free(o->all);
	o->all = NULL;
}
