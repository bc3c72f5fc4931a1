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
#include "output/memusage_output.h"

#define NAME "ptmem-memusage"

enum { EXIT_REFUSED = 1, EXIT_CANNOT_RUN = 126 };

enum option {
	PROGNAME,
	PNG,
	DATA,
	UNBUFFERED,
	BUFFER,
	NO_TIMER,
	MMAP,
	TIME_BASED,
	TOTAL,
	TITLE,
	X_SIZE,
	Y_SIZE,
	HELP,
	USAGE,
	VERSION,
	OPTIONS,
};

struct row {
	const char *name, *letter, *value, *text; /* letter, value: NULL = none */
};

static const struct row rows[OPTIONS] = {
	[PROGNAME] = {"progname", "-n", "NAME", "count only in programs of this base name"},
	[PNG] = {"png", "-p", "FILE", "draw the memory over the calls into FILE"},
	[DATA] = {"data", "-d", "FILE", "write a record of every call to FILE"},
	[UNBUFFERED] = {"unbuffered", "-u", NULL, "write each record at once"},
	[BUFFER] = {"buffer", "-b", "SIZE", "collect SIZE records before they are written"},
	[NO_TIMER] = {"no-timer", NULL, NULL, "do not sample stacks between calls"},
	[MMAP] = {"mmap", "-m", NULL, "count mmap, mremap and munmap, too"},
	[TIME_BASED] = {"time-based", "-t", NULL, "over time, not over calls"},
	[TOTAL] = {"total", "-T", NULL, "the sum of heap and stack, too"},
	[TITLE] = {"title", NULL, "TEXT", "the title"},
	[X_SIZE] = {"x-size", "-x", "SIZE", "width in pixels"},
	[Y_SIZE] = {"y-size", "-y", "SIZE", "height in pixels"},
	[HELP] = {"help", "-?", NULL, "print this help"},
	[USAGE] = {"usage", NULL, NULL, "print a short help"},
	[VERSION] = {"version", "-V", NULL, "print the version"},
};

/* The parts of --help, first row to last. */
static const struct {
	const char *head;
	enum option first, last;
} parts[] = {
	{"", PROGNAME, MMAP},
	{"\nOf the picture (-p):\n", TIME_BASED, Y_SIZE},
	{"\n", HELP, VERSION},
};

struct request {
	/* "" if given without a value; NULL = not given, or empty */
	const char *value[OPTIONS];
	char **command;
};

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

/* The option whose name begins with @size bytes of @name; OPTIONS: none, -1: several. */
static int find_long(const char *name, size_t size)
{
	int found = OPTIONS;
	for (int i = 0; i < OPTIONS; i++) {
		if (strncmp(rows[i].name, name, size) != 0)
			continue;
		if (rows[i].name[size] == '\0')
			return i;
		found = found == OPTIONS ? i : -1;
	}
	return found;
}

/*
 * The option in the word @arg, with *value_out after its "="; OPTIONS if @arg is the program;
 * -EINVAL.
 */
static int find_option(const char *arg, const char **value_out)
{
	*value_out = NULL;
	if (strncmp(arg, "--", 2) != 0) {
		for (int i = 0; i < OPTIONS; i++)
			if (rows[i].letter && strcmp(rows[i].letter, arg) == 0)
				return i;
		return OPTIONS;
	}
	size_t size = strcspn(arg + 2, "=");
	int found = find_long(arg + 2, size);
	if (found < 0)
		return refuse(NAME ": option `%s' is ambiguous", arg);
	if (found == OPTIONS || (arg[2 + size] && !rows[found].value))
		return refuse(NAME ": unrecognized option `%s'", arg);
	if (arg[2 + size])
		*value_out = arg + 3 + size;
	return found;
}

/* An empty value counts as none. The last of -u and -b wins. */
static void set(struct request *r, enum option option, const char *value)
{
	if (option == UNBUFFERED)
		r->value[BUFFER] = "1";
	else
		r->value[option] = value && !*value ? NULL : rows[option].value ? value : "";
}

static int parse(char **argv, struct request *r)
{
	char **word = argv + 1;
	for (; *word && **word == '-'; word++) {
		const char *value;
		if (strcmp(*word, "--") == 0) {
			word++;
			break;
		}
		int option = find_option(*word, &value);
		if (option < 0)
			return option;
		if (option == OPTIONS)
			break;
		if (rows[option].value && !value) {
			if (!word[1])
				return refuse(NAME ": option '%s' requires an argument", *word);
			value = *++word;
		}
		set(r, option, value);
		if (option == HELP || option == USAGE || option == VERSION)
			return 0;
	}
	r->command = word;
	return *word ? 0 : refuse("No program name given");
}

static void print_row(const struct row *row)
{
	char left[40];
	snprintf(left, sizeof(left), "%s--%s%s%s", row->letter ? "," : " ", row->name,
		 row->value ? "=" : "", row->value ? row->value : "");
	printf("   %2s%-21s%s\n", row->letter ? row->letter : "", left, row->text);
}

static void print_help(void)
{
	printf("Usage: " NAME " [OPTION]... PROGRAM [ARGUMENT]...\n"
	       "Counts the calls of PROGRAM that allocate memory, as memusage does.\n\n");
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		fputs(parts[i].head, stdout);
		for (enum option o = parts[i].first; o <= parts[i].last; o++)
			print_row(&rows[o]);
	}
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
	for (enum option o = 0; o < HELP; o++) {
		char word[40];
		int n = snprintf(word, sizeof(word), "[--%s%s%s]", rows[o].name,
				 rows[o].value ? "=" : "", rows[o].value ? rows[o].value : "");
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
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	self[MAX(n, 0)] = '\0';
	char *slash = strrchr(self, '/');
	char *path = slash ? xasprintf("%.*s/%s", (int)(slash - self), self, name) : NULL;
	if (path && access(path, X_OK) == 0)
		return path;
	free(path);
	return xstrdup(name);
}

static void add(words *w, const char *name, const char *value)
{
	*vec_add(w) = value ? xasprintf("%s%s", name, value) : xstrdup(name);
}

static void add_if(words *w, const char *name, const char *value)
{
	if (value)
		add(w, name, value);
}

/* As in memusage, an invalid or too large size becomes the largest. */
static uint32_t buffer_size(const struct request *r)
{
	long size = r->value[BUFFER] ? strtol(r->value[BUFFER], NULL, 10) : 0;
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
	add_if(w, "--progname=", r->value[PROGNAME]);
	if (data) {
		add_data(w, data);
		add(w, "--data-buffer=", size);
	}
	if (r->value[NO_TIMER])
		add(w, "--no-timer", NULL);
	if (r->value[MMAP])
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
	if (r->value[TIME_BASED])
		add(w, "--time-based", NULL);
	if (r->value[TOTAL])
		add(w, "--total", NULL);
	add_if(w, "--title=", r->value[TITLE]);
	add_size(w, "--x-size=", r->value[X_SIZE], 100);
	add_size(w, "--y-size=", r->value[Y_SIZE], 80);
	add(w, *data == '-' ? "./" : "", data); /* not an option */
	*vec_add(w) = NULL;
}

static void free_words(words *w)
{
	for (size_t i = 0; i < w->count; i++)
		free(w->data[i]);
	vec_deinit(w);
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

static char *picture_name(const char *png)
{
	size_t size = strlen(png);
	bool is_png = size >= 4 && strcmp(png + size - 4, ".png") == 0;
	return is_png ? xstrdup(png) : xasprintf("%s.png", png);
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
	char *png = picture_name(r->value[PNG]), *temporary = NULL;
	if (r->value[DATA] && same_file(r->value[DATA], png)) {
		refuse(NAME ": -d and -p name the same file, %s", png);
	} else if (r->value[DATA]) {
		status = draw_into(r, r->value[DATA], png);
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
	if (r.value[HELP])
		print_help();
	else if (r.value[USAGE])
		print_usage();
	else if (r.value[VERSION])
		printf("ptmem-memusage " PTMEM_VERSION "\n");
	else if (r.value[PNG])
		return run_and_draw(&r);
	if (!r.command)
		return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_REFUSED;
	words w = {0};
	make_command(&r, r.value[DATA], &w);
	become(&w);
}
