/*
 * ptmem-report: shows a massif.out file, as text like ms_print.
 *
 * One table says what options there are; parsing and --help both come from it. A
 * further form of report is one more line in it and one more show function. The
 * file is the first argument that is no option; options may stand anywhere, as
 * with ms_print, because its users' scripts put them anywhere.
 *
 * Exit status: 0; 255 for a bad option, no file, or a file that is no massif
 * file; 2 when the file cannot be read (these as ms_print); 1 when the report
 * cannot be written.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "report/massif_file.h"
#include "report/msprint.h"

#ifndef PTMEM_VERSION
#define PTMEM_VERSION "0.1"
#endif

enum report_exit { EXIT_NOT_WRITTEN = 1, EXIT_NOT_READ = 2, EXIT_REFUSED = 255 };

struct report_request {
	const char *path;              /* NULL until it is found */
	struct msprint_options text;
	bool wants_help, wants_version;
	/* Writes the report to standard output: 0, or -EINVAL with *why_out (the caller frees it). */
	int (*show)(const struct report_request *request, const struct massif_file *file, char **why_out);
};

struct report_option {
	const char *name;              /* with its hyphens */
	const char *short_name;        /* NULL = none */
	const char *value;             /* how --help calls it; NULL = takes none */
	const char *takes;             /* what a value must be, for errors; NULL = takes none */
	const char *help;
	bool (*set)(struct report_request *request, const char *value); /* false = bad value */
};

static bool parse_size(const char *text, unsigned *out)
{
	size_t digits = strspn(text, "0123456789");
	unsigned long value = strtoul(text, NULL, 10); /* ULONG_MAX if there are too many digits */

	if (!digits || text[digits] || value < MSPRINT_SIZE_MIN || value > MSPRINT_SIZE_MAX)
		return false;
	*out = (unsigned)value;
	return true;
}

static bool set_width(struct report_request *r, const char *value)
{
	return parse_size(value, &r->text.width);
}

static bool set_height(struct report_request *r, const char *value)
{
	return parse_size(value, &r->text.height);
}

/* Digits and points, and a percent sign if you like; of two points the second ends the number. */
static bool set_threshold(struct report_request *r, const char *value)
{
	size_t n = strspn(value, "0123456789.");
	double threshold = strtod(value, NULL);

	if (!n || strcmp(value + n + (value[n] == '%'), "") || threshold > 100)
		return false;
	r->text.threshold = threshold;
	return true;
}

static bool set_help(struct report_request *r, const char *value)
{
	return r->wants_help = true;
}

static bool set_version(struct report_request *r, const char *value)
{
	return r->wants_version = true;
}

#define SIZE_RANGE "a whole number from 4 to 1000"

static const struct report_option options[] = {
	{"--threshold", NULL, "NUM", "a percentage from 0 to 100",
	 "sum up what holds less than NUM percent of a snapshot [1.0]", set_threshold},
	{"--x", NULL, "N", SIZE_RANGE, "graph width in columns, 4 to 1000 [72]", set_width},
	{"--y", NULL, "N", SIZE_RANGE, "graph height in rows, 4 to 1000 [20]", set_height},
	{"--help", "-h", NULL, NULL, "show this message", set_help},
	{"--version", NULL, NULL, NULL, "show the version", set_version},
};

static void print_help(void)
{
	puts("Usage: ptmem-report [OPTION]... FILE\n"
	     "Prints a profile by ptmem or Valgrind's Massif as ms_print does; \"-\" is standard input.\n");
	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		const struct report_option *o = &options[i];
		_cleanup_free_ char *left = xasprintf("%s%s%s%s%s", o->short_name ? o->short_name : "",
						      o->short_name ? ", " : "", o->name, o->value ? "=" : "",
						      o->value ? o->value : "");

		printf("  %-18s %s\n", left, o->help);
	}
}

/* The option that @argument names; *@value_out: behind its '=', NULL if there is none. */
static const struct report_option *find_option(const char *argument, const char **value_out)
{
	size_t size = strcspn(argument, "=");

	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		const struct report_option *o = &options[i];

		if ((strlen(o->name) == size && !strncmp(o->name, argument, size)) ||
		    (o->short_name && !strcmp(o->short_name, argument))) {
			*value_out = argument[size] ? argument + size + 1 : NULL;
			return o;
		}
	}
	return NULL;
}

static bool parse_option(struct report_request *r, const char *argument)
{
	const char *value;
	const struct report_option *o = find_option(argument, &value);

	if (!o)
		log_error("unknown option '%s' (see --help)", argument);
	else if (!o->value && value)
		log_error("%s takes no value", o->name);
	else if (o->value && !value)
		log_error("%s takes %s: %s=%s", o->name, o->takes, o->name, o->value);
	else if (!o->set(r, value))
		log_error("%s takes %s, not '%s'", o->name, o->takes, value);
	else
		return true;
	return false;
}

static bool parse_arguments(struct report_request *r, char **argv)
{
	for (; *argv && !r->wants_help && !r->wants_version; argv++) {
		if (**argv == '-' && strcmp(*argv, "-") != 0) {
			if (!parse_option(r, *argv))
				return false;
		} else if (!r->path) {
			r->path = *argv;
		}
	}
	if (r->path || r->wants_help || r->wants_version)
		return true;
	log_error("no file given (see --help)");
	return false;
}

static char *join_arguments(char **argv)
{
	_cleanup_free_ char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	CHECK(f);
	for (; *argv; argv++)
		fprintf(f, " %s", *argv);
	CHECK(!fclose(f));
	return_ptr(text);
}

static int show_text(const struct report_request *r, const struct massif_file *file, char **why_out)
{
	return msprint(stdout, file, &r->text, why_out);
}

static int show_file(const struct report_request *r)
{
	_cleanup_free_ char *why = NULL;
	struct massif_file *file;
	int err = massif_file_read(r->path, &file, &why);

	if (err && !why) {
		log_error("cannot read %s: %s", r->path, strerror(-err));
		return EXIT_NOT_READ;
	}
	if (!err) {
		err = r->show(r, file, &why);
		massif_file_free(file);
	}
	if (err)
		log_error("%s: %s", r->path, why);
	return err ? EXIT_REFUSED : 0;
}

static int run(const struct report_request *r)
{
	if (r->wants_help)
		print_help();
	else if (r->wants_version)
		puts("ptmem-report " PTMEM_VERSION);
	else
		return show_file(r);
	return 0;
}

int main(int argc, char **argv)
{
	_cleanup_free_ char *arguments = join_arguments(argv + (argc > 0));
	struct report_request request = {
		.text = {.threshold = 1.0, .width = 72, .height = 20, .arguments = arguments},
		.show = show_text,
	};

	log_set_name("ptmem-report");
	if (!parse_arguments(&request, argv + (argc > 0)))
		return EXIT_REFUSED;
	int status = run(&request);

	if (fflush(stdout) || ferror(stdout)) {
		log_error("cannot write the report: %s", strerror(errno));
		return EXIT_NOT_WRITTEN;
	}
	return status;
}
