/*
 * Placeholders in the names of output files; the grammar is in pattern.h. One pass that appends to
 * a memory stream. A check is an expansion whose result is dropped. Does not access files.
 */
#include "output/pattern.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"

struct expansion {
	FILE *text;
	uint32_t pid, sequence, part;
	char *why; /* NULL: no error */
};

/* @at: after "%q". Returns the text after the placeholder; NULL and an error if it is malformed. */
static const char *expand_variable(struct expansion *e, const char *at)
{
	if (*at != '{') {
		e->why = xstrdup("Expected '{' after '%q'");
		return NULL;
	}
	const char *end = strchr(++at, '}');

	if (!end) {
		e->why = xstrdup("Missing '}' in %q specifier");
		return NULL;
	}
	_cleanup_free_ char *name = xstrndup(at, (size_t)(end - at));
	const char *value = getenv(name);

	if (!value) {
		e->why = xasprintf("Environment variable '%s' is not set", name);
		return NULL;
	}
	fputs(value, e->text);
	return end + 1;
}

/* @at: after the percent sign. Returns like expand_variable. */
static const char *expand_placeholder(struct expansion *e, const char *at)
{
	switch (*at) {
	case '%':
		fputc('%', e->text);
		return at + 1;
	case 'p':
		fprintf(e->text, "%" PRIu32, e->pid);
		return at + 1;
	case 'n':
		if (e->part)
			fprintf(e->text, "%03" PRIu32, e->part);
		else
			fprintf(e->text, "%" PRIu32, ++e->sequence);
		return at + 1;
	case 'q':
		return expand_variable(e, at + 1);
	default:
		/* Valgrind also accepts %n, but does not mention it. */
		e->why = xstrdup("Expected 'p' or 'n' or 'q' or '%' after '%'");
		return NULL;
	}
}

static void expand(struct expansion *e, const char *at)
{
	while (at && *at) {
		size_t plain = strcspn(at, "%");

		fwrite(at, 1, plain, e->text);
		at += plain;
		if (*at)
			at = expand_placeholder(e, at + 1);
	}
}

/* The error in the pattern as a whole, or NULL. */
static const char *find_fault(const char *pattern)
{
	if (!*pattern)
		return "No filename given";
	if (*pattern == '~')
		return "Filename begins with '~'\n"
		       "You probably expected the shell to expand the '~', but it\n"
		       "didn't.  The rules for '~'-expansion vary from shell to shell.\n"
		       "You might have more luck using $HOME instead.";
	return NULL;
}

static char *join(const char *dir, const char *name)
{
	size_t n = strlen(dir);

	return xasprintf("%s%s%s", dir, n && dir[n - 1] == '/' ? "" : "/", name);
}

int pattern_expand(const char *pattern, const struct pattern_values *values, char **path_out,
		   char **why_out)
{
	struct expansion e = {
		.pid = values->pid, .sequence = *values->sequence, .part = values->part};
	_cleanup_free_ char *name = NULL;
	const char *fault = find_fault(pattern);
	size_t size;

	if (fault) {
		*why_out = xstrdup(fault);
		return -EINVAL;
	}
	e.text = open_memstream(&name, &size);
	if (!e.text)
		return -errno;
	expand(&e, pattern);
	if (fclose(e.text))
		return -errno;
	if (!e.why && !*name)
		e.why = xstrdup("No filename given"); /* %q{VAR} of an empty variable */
	if (e.why) {
		*why_out = e.why;
		return -EINVAL;
	}
	*values->sequence = e.sequence;
	*path_out = *name == '/' || !values->dir || !strcmp(pattern, "-") ? xstrdup(name)
									  : join(values->dir, name);
	return 0;
}

int pattern_check(const char *pattern, char **why_out)
{
	uint32_t sequence = 0;
	struct pattern_values values = {.sequence = &sequence};
	char *path;
	int err = pattern_expand(pattern, &values, &path, why_out);

	if (!err)
		free(path);
	return err;
}
