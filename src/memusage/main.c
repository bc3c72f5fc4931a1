/*
 * ptmem-memusage: memusage(1)'s command line, done by ptmem.
 *
 *	memusage -d F -m prog  ->  ptmem -q --no-rc --heap=no --memusage
 *	                                 --trace-children=yes --data=F -m -- prog
 *
 * Without -p this process becomes ptmem. With -p it waits for ptmem and then has
 * ptmem-report draw the data file. Arguments are parsed as in memusage (doc/memusage.md 3.1): long
 * options by unique prefix, short ones not combined; an unknown short option is taken as the
 * program. Unlike there, values with spaces or "=" work.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/files.h"
#include "base/globals.h"
#include "base/log.h"
#include "base/option_row.h"
#include "base/text.h"
#include "output/memusage_output.h"

#define NAME "ptmem-memusage"

enum { EXIT_REFUSED = 1, EXIT_CANNOT_RUN = 126 };

/* Texts are NULL if they are not given, or empty. */
struct request {
	const char *progname, *png, *data, *buffer, *title, *x_size, *y_size;
	bool has_no_timer, has_mmap, is_time_based, has_total;
	bool help, usage, version;
	char **command;
};

static bool set_text(const char *text, void *field)
{
	*(const char **)field = *text ? text : NULL;
	return true;
}

/* The last of -u and -b wins. */
static bool set_unbuffered(const char *text, void *field)
{
	return set_text("1", field);
}

#define AT(field) .offset = offsetof(struct request, field)
#define TEXT(name) .type = OPT_PARSED, .parse = set_text, .value = (name)

static const struct option_row rows[] = {
	{.name = "progname", .letter = 'n', TEXT("NAME"), AT(progname),
	 .text = "count only in programs of this base name"},
	{.name = "png", .letter = 'p', TEXT("FILE"), AT(png),
	 .text = "draw the memory over the calls into FILE"},
	{.name = "data", .letter = 'd', TEXT("FILE"), AT(data),
	 .text = "write a record of every call to FILE"},
	{.name = "unbuffered", .letter = 'u', .type = OPT_PARSED, .parse = set_unbuffered,
	 AT(buffer), .text = "write each record at once"},
	{.name = "buffer", .letter = 'b', TEXT("SIZE"), AT(buffer),
	 .text = "collect SIZE records before they are written"},
	{.name = "no-timer", .type = OPT_FLAG, AT(has_no_timer),
	 .text = "do not sample stacks between calls"},
	{.name = "mmap", .letter = 'm', .type = OPT_FLAG, AT(has_mmap),
	 .text = "count mmap, mremap and munmap, too"},
	{.text = "Of the picture (-p):"},
	{.name = "time-based", .letter = 't', .type = OPT_FLAG, AT(is_time_based),
	 .text = "over time, not over calls"},
	{.name = "total", .letter = 'T', .type = OPT_FLAG, AT(has_total),
	 .text = "the sum of heap and stack, too"},
	{.name = "title", TEXT("TEXT"), AT(title), .text = "the title"},
	{.name = "x-size", .letter = 'x', TEXT("SIZE"), AT(x_size), .text = "width in pixels"},
	{.name = "y-size", .letter = 'y', TEXT("SIZE"), AT(y_size), .text = "height in pixels"},
	{.text = NULL},
	{.name = "help", .letter = '?', .type = OPT_FLAG, AT(help), .text = "print this help"},
	{.name = "usage", .type = OPT_FLAG, AT(usage), .text = "print a short help"},
	{.name = "version", .letter = 'V', .type = OPT_FLAG, AT(version),
	 .text = "print the version"},
};

static const struct option_table table = {rows, ARRAY_SIZE(rows)};

typedef VEC(char *) words;

/* Prints an error in memusage's format. */
ATTR_PRINTF(1, 2) static int refuse(const char *format, ...)
{
	_cleanup_free_ char *text = NULL, *visible = NULL;
	va_list args;
	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		text = NULL;
	va_end(args);
	visible = text ? log_visible(text) : NULL;
	fprintf(stderr, "%s\nTry `" NAME " --help' or `" NAME " --usage' for more information.\n",
		visible ? visible : "");
	return -EINVAL;
}

/* -- the command line -- */

/* The option whose name is or begins with @size bytes of @name; NULL: none. */
static const struct option_row *find_long(const char *name, size_t size, bool *is_ambiguous_out)
{
	const struct option_row *found = option_find(&table, name, size);
	size_t count = 0;
	for (size_t i = 0; i < table.count && (!found || count); i++) {
		if (!rows[i].name || strncmp(rows[i].name, name, size) != 0)
			continue;
		found = &rows[i];
		count++;
	}
	*is_ambiguous_out = count > 1;
	return found;
}

/*
 * The option in the word @arg, with *value_out after its "="; NULL if @arg is the program. 0, or
 * -EINVAL after a message.
 */
static int find_option(const char *arg, const struct option_row **row_out, const char **value_out)
{
	bool is_ambiguous;
	*row_out = NULL;
	*value_out = NULL;
	if (strncmp(arg, "--", 2) != 0) {
		if (arg[1] && !arg[2])
			*row_out = option_find_letter(&table, arg[1]);
		return 0;
	}
	size_t size = strcspn(arg + 2, "=");
	const struct option_row *row = find_long(arg + 2, size, &is_ambiguous);
	if (is_ambiguous)
		return refuse(NAME ": option `%s' is ambiguous", arg);
	if (!row || (arg[2 + size] && !row->value))
		return refuse(NAME ": unrecognized option `%s'", arg);
	if (arg[2 + size])
		*value_out = arg + 3 + size;
	*row_out = row;
	return 0;
}

static int parse(char **argv, struct request *r)
{
	char **word = argv + 1;
	for (; *word && **word == '-'; word++) {
		const struct option_row *row;
		const char *value;
		if (strcmp(*word, "--") == 0) {
			word++;
			break;
		}
		int err = find_option(*word, &row, &value);
		if (err)
			return err;
		if (!row)
			break;
		if (row->value && !value) {
			if (!word[1])
				return refuse(NAME ": option '%s' requires an argument", *word);
			value = *++word;
		}
		option_set(row, value, r);
		if (r->help || r->usage || r->version)
			return 0;
	}
	r->command = word;
	return *word ? 0 : refuse("No program name given");
}

static void print_help(void)
{
	static const struct option_layout layout = {"   ", ",", "   ", 26, false};
	printf("Usage: " NAME " [OPTION]... PROGRAM [ARGUMENT]...\n"
	       "Counts the calls of PROGRAM that allocate memory, as memusage does.\n\n");
	option_print_all(stdout, &table, &layout);
	printf("\nThe report goes to standard error; ptmem(1) has the options behind these. Where\n"
	       "memusage is wrong this is not: the peaks of stacks and, with -m, of mappings;\n"
	       "sizes that overflow; a row for the memalign family; static programs, and those\n"
	       "that end without cleaning up; names with blanks; colours for terminals only.\n");
}

static void print_usage(void)
{
	static const char start[] = "Syntax: " NAME;
	const int indent = (int)sizeof(start) - 1, width = 79;
	int column = printf("%s", start);
	for (size_t i = 0; i < table.count && strcmp(rows[i].name ?: "", "help") != 0; i++) {
		const struct option_row *row = &rows[i];
		char word[40];
		if (!row->name)
			continue;
		int n = snprintf(word, sizeof(word), "[--%s%s%s]", row->name, row->value ? "=" : "",
				 row->value ? row->value : "");
		if (column + 1 + n > width)
			column = printf("\n%*s", indent, "") - 1;
		column += printf(" %s", word);
	}
	printf("\n%*s PROGRAM [ARGUMENT]...\n", indent, "");
}

/* -- running -- */

/* @name next to this program, otherwise found in PATH. */
static char *find_program(const char *name)
{
	return program_beside(name) ?: xstrdup(name);
}

static void add(words *w, const char *name, const char *value)
{
	*vec_add(w) = value ? xasprintf("%s%s", name, value) : xstrdup(name);
}

/* As in memusage, an invalid or too large size becomes the largest. */
static uint32_t buffer_size(const struct request *r)
{
	long size = r->buffer ? strtol(r->buffer, NULL, 10) : 0;
	return size > 0 && size < MEMUSAGE_DATA_MAX_BUFFER ? (uint32_t)size :
							     MEMUSAGE_DATA_MAX_BUFFER;
}

/* Quotes @name for ptmem, where a percent sign starts a placeholder. */
static char *quote_name(const char *name)
{
	char *text = xmalloc(2 * strlen(name) + 1), *p = text;
	for (; *name; name++) {
		*p++ = *name;
		if (*name == '%')
			*p++ = '%';
	}
	*p = '\0';
	return text;
}

static void add_data(words *w, const char *name)
{
	char *quoted = quote_name(name);
	/* "-" and "~x" are files here */
	*vec_add(w) = xasprintf("--data=%s%s", *name == '-' || *name == '~' ? "./" : "", quoted);
	free(quoted);
}

static void make_command(const struct request *r, const char *data, words *w)
{
	char size[16];
	snprintf(size, sizeof(size), "%u", buffer_size(r));
	*vec_add(w) = find_program("ptmem");
	add(w, "-q", NULL);
	add(w, "--no-rc", NULL);
	add(w, "--heap=no", NULL);
	add(w, "--memusage", NULL);
	add(w, "--trace-children=yes", NULL);
	if (r->progname)
		add(w, "--progname=", r->progname);
	if (data) {
		add_data(w, data);
		add(w, "--data-buffer=", size);
	}
	if (r->has_no_timer)
		add(w, "--no-timer", NULL);
	if (r->has_mmap)
		add(w, "--mmap", NULL);
	add(w, "--", NULL);
	for (char **arg = r->command; *arg; arg++)
		add(w, *arg, NULL);
	*vec_add(w) = NULL;
}

/*
 * As in memusagestat, an invalid size, also a height, becomes 800; one that is too small,
 * @least.
 */
static void add_size(words *w, const char *name, const char *value, long least)
{
	char text[16];
	if (!value)
		return;
	long size = strtol(value, NULL, 10);
	snprintf(text, sizeof(text), "%ld", size <= 0 ? 800 : MIN(MAX(size, least), (long)INT_MAX));
	add(w, name, text);
}

static void make_report_command(const struct request *r, const char *data, const char *png,
				words *w)
{
	*vec_add(w) = find_program("ptmem-report");
	add(w, "--png=", png);
	if (r->is_time_based)
		add(w, "--time-based", NULL);
	if (r->has_total)
		add(w, "--total", NULL);
	if (r->title)
		add(w, "--title=", r->title);
	else
		add(w, "--title=", text_base_name(*r->command));
	add_size(w, "--x-size=", r->x_size, 100);
	add_size(w, "--y-size=", r->y_size, 80);
	add(w, *data == '-' ? "./" : "", data); /* not an option */
	*vec_add(w) = NULL;
}

static void free_words(words *w)
{
	vec_release(w, e, free(*e));
}

ATTR_NORETURN static void become(const words *w)
{
	execvp(w->data[0], w->data);
	log_error("cannot run %s: %s", w->data[0], strerror(errno));
	_exit(EXIT_CANNOT_RUN);
}

static void pass_on(int sig)
{
	if (globals.child > 0)
		kill((pid_t)globals.child, sig);
}

/* Runs @w; returns its status as a shell would. The terminal's signals reach @w directly. */
static int run(const words *w)
{
	int status = 0;
	struct sigaction old[2], ignore = {.sa_handler = SIG_IGN}, pass = {.sa_handler = pass_on};
	sigaction(SIGINT, &ignore, &old[0]);
	sigaction(SIGQUIT, &ignore, &old[1]);
	sigaction(SIGTERM, &pass, NULL);
	sigaction(SIGHUP, &pass, NULL);
	pid_t pid = fork();
	if (pid == 0) {
		sigaction(SIGINT, &old[0], NULL);
		sigaction(SIGQUIT, &old[1], NULL);
		become(w);
	}
	globals.child = pid;
	if (pid < 0)
		return EXIT_CANNOT_RUN;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	globals.child = 0;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* A temporary directory for a data file, and for those of child processes. */
static char *make_temporary(void)
{
	const char *below = getenv("TMPDIR");
	char *directory = xasprintf("%s/" NAME ".XXXXXX", below && *below ? below : "/tmp");
	if (mkdtemp(directory))
		return directory;
	log_error("cannot write %s: %s", directory, strerror(errno));
	free(directory);
	return NULL;
}

static void remove_temporary(char *directory)
{
	DIR *dir = opendir(directory);
	for (struct dirent *e; dir && (e = readdir(dir));)
		unlinkat(dirfd(dir), e->d_name, 0); /* not "." and ".." */
	if (dir)
		closedir(dir);
	rmdir(directory);
	free(directory);
}

/* Runs the program with @data, which is then drawn as @png. */
static int draw_into(const struct request *r, const char *data, const char *png)
{
	words w = {0}, draw = {0};
	struct stat st;
	make_command(r, data, &w);
	int status = run(&w);
	make_report_command(r, data, png, &draw);
	if (stat(data, &st) == 0 && st.st_size > 0)
		run(&draw);
	free_words(&w);
	free_words(&draw);
	return status;
}

/* With a data file, given by the user or temporary. */
static int run_and_draw(const struct request *r)
{
	int status = EXIT_REFUSED;
	char *png = xasprintf("%s%s", r->png, text_ends_in(r->png, ".png") ? "" : ".png");
	char *temporary = NULL;
	if (r->data && same_file(r->data, png)) {
		refuse(NAME ": -d and -p name the same file, %s", png);
	} else if (r->data) {
		status = draw_into(r, r->data, png);
	} else if ((temporary = make_temporary())) {
		char *data = xasprintf("%s/data", temporary);
		status = draw_into(r, data, png);
		free(data);
		remove_temporary(temporary);
	}
	free(png);
	return status;
}

int main(int argc, char **argv)
{
	struct request r = {0};
	(void)argc;
	standard_files_hold();
	log_set_name(NAME);
	if (parse(argv, &r) != 0)
		return EXIT_REFUSED;
	if (r.help)
		print_help();
	else if (r.usage)
		print_usage();
	else if (r.version)
		printf("ptmem-memusage " PTMEM_VERSION "\n");
	else if (r.png)
		return run_and_draw(&r);
	if (!r.command)
		return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_REFUSED;
	words w = {0};
	make_command(&r, r.data, &w);
	become(&w);
}
