/*
 * See request_check.h. An option that has no effect on any report that is made is refused, and
 * so is an output that would overwrite an input or another output.
 */
#include "report/request_check.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/same_file.h"
#include "output/flame.h"

/* What is made of the file. */
enum report_kind { TEXT = 1, TABLE = 2, PICTURE = 4, FOLDED = 8, FLAME = 16, HTML = 32 };

static const struct {
	const char *name;
	unsigned kinds;    /* that it has an effect on */
	const char *where; /* these, in words */
} effects[] = {
	{"--threshold", TEXT | TABLE, "the text or --diff"},
	{"--x", TEXT, "the text"},
	{"--y", TEXT, "the text"},
	{"--x-size", PICTURE | FLAME, "--png, --svg or --flame"},
	{"--y-size", PICTURE, "--png or --svg"},
	{"--title", PICTURE | FLAME, "--png, --svg or --flame"},
	{"--time-based", PICTURE, "--png or --svg"},
	{"--total", PICTURE, "--png or --svg"},
	{"--rss", PICTURE, "--png or --svg"},
	{"--snapshot", TABLE | FOLDED | FLAME, "--folded, --flame or --diff"},
	{"--top", TEXT | TABLE, "--diff or a recording's text"},
};

void request_note(struct report_request *r, const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(effects); i++) {
		if (strcmp(effects[i].name, name) == 0)
			r->given |= 1u << i;
	}
}

static bool is_stdio(const char *path)
{
	return path && strcmp(path, "-") == 0;
}

static unsigned find_kinds(const struct report_request *r)
{
	unsigned kinds = (r->png || r->svg ? PICTURE : 0) | (r->folded ? FOLDED : 0) |
			 (r->flame ? FLAME : 0) | (r->html ? HTML : 0);

	/* the table of a difference gives way to the page and to what goes to standard output */
	if (r->is_diff && (r->format != FORMAT_DEFAULT ||
			   (!r->html && !is_stdio(r->folded) && !is_stdio(r->flame))))
		kinds |= TABLE;
	return kinds ? kinds : TEXT;
}

static char *check_effects(const struct report_request *r)
{
	unsigned kinds = find_kinds(r);

	for (size_t i = 0; i < ARRAY_SIZE(effects); i++) {
		if (r->given >> i & 1 && !(effects[i].kinds & kinds))
			return xasprintf("%s goes with %s", effects[i].name, effects[i].where);
	}
	return NULL;
}

/* Of an input; "-" is what standard input is. */
static void identify(struct file_id *id, const char *path)
{
	if (is_stdio(path))
		file_id_init_fd(id, STDIN_FILENO);
	else
		file_id_init(id, path);
}

/* The inputs come first. */
enum { INPUTS = 3, FILES = 8 };

struct named_file {
	const char *what, *path; /* the option; NULL if it is not given */
};

static char *describe_clash(const struct named_file *first, const struct named_file *output,
			    bool is_input)
{
	if (is_input)
		return xasprintf("%s=%s would overwrite what is read", output->what, output->path);
	return xasprintf("%s and %s would write the same file, %s", first->what, output->what,
			 output->path);
}

static char *check_files(const struct report_request *r)
{
	const struct named_file files[FILES] = {
		{"FILE", r->path_count > 0 ? r->path[0] : NULL},
		{"NEW", r->is_diff ? r->path[1] : NULL},
		{"--rss", r->rss},
		{"--png", r->png},
		{"--svg", r->svg},
		{"--folded", r->folded},
		{"--flame", r->flame},
		{"--html", r->html},
	};
	struct file_id id[FILES] = {0};
	char *why = NULL;

	for (size_t i = 0; i < FILES; i++) {
		if (files[i].path && i < INPUTS)
			identify(&id[i], files[i].path);
		else if (files[i].path)
			file_id_init(&id[i], files[i].path);
		for (size_t k = 0; k < i && i >= INPUTS && !why; k++) {
			bool are_stdout = k >= INPUTS && is_stdio(files[k].path) &&
					  is_stdio(files[i].path);

			if (are_stdout || file_id_is_same(&id[i], &id[k]))
				why = describe_clash(&files[k], &files[i], k < INPUTS);
		}
	}
	for (size_t i = 0; i < FILES; i++)
		file_id_deinit(&id[i]);
	return why;
}

static bool ends_with(const char *s, const char *end)
{
	size_t size = strlen(s), n = strlen(end);

	return size >= n && !strcmp(s + size - n, end);
}

static char *check_question(const struct recording_question *q)
{
	if (q->at && q->range)
		return xstrdup("--at and --range cannot be combined");
	if (q->thread && (q->at || q->range))
		return xstrdup("--thread goes with neither --at nor --range: a recording has what "
			       "a thread allocated in all");
	return NULL;
}

char *request_check(const struct report_request *r)
{
	if (!r->path_count)
		return xstrdup("no file given");
	if (r->is_diff && r->path_count < 2)
		return xstrdup("--diff takes two files, OLD NEW");
	if (r->path_count > (r->is_diff ? 2 : 1))
		return xasprintf("one file too many: %s", r->path[r->is_diff ? 2 : 1]);
	if (r->is_diff && (r->png || r->svg))
		return xstrdup("--diff makes a table and with --flame a flame graph, "
			       "no --png or --svg");
	if (r->is_diff && r->format == FORMAT_PPROF)
		return xstrdup("--diff makes no pprof: make one of each file, and let pprof "
			       "compare them by -base");
	if (r->is_diff && (r->format == FORMAT_SPEEDSCOPE || r->format == FORMAT_MASSIF))
		return xstrdup("--diff makes text, json, csv or folded, not speedscope or massif");
	if (r->flame && r->x_size && r->x_size < FLAME_WIDTH_MIN)
		return xstrdup("a flame graph is 300 pixels wide at least");
	if (r->flame && ends_with(r->flame, ".png"))
		return xstrdup("--flame writes SVG: give it a name that ends in .svg");
	char *why = check_effects(r);

	if (!why)
		why = check_question(&r->question);
	return why ? why : check_files(r);
}
