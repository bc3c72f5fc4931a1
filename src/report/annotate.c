/*
 * Source lines with what they hold (recording_output.h). A line counts for each call path that
 * goes through it, once.
 */
#include "report/recording_output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/amount.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "recording/recording_site.h"
#include "report/life.h"
#include "report/recording_paths.h"
#include "recording/source_file.h"

struct source_line {
	uint32_t file, number; /* the file's text */
	struct recording_value value;
	uint64_t allocations;  /* of the whole recording, in units of LEAF_ALLOCATIONS */
	struct life life;
	uint64_t leaf;         /* the last one that was added + 1 */
};

struct annotation {
	const struct recording *r;
	const struct recording_view *view;
	VEC(struct source_line) line;  /* sorted by file and number */
	uint32_t *of_frame;     /* by row of FRAMES: index of the line + 1; 0 = not asked for */
};

/* -- lines -- */

/* Whether @path is @wanted, or ends in it: "src/orders.c" of "/home/a/src/orders.c". */
static bool is_file(const char *path, const char *wanted)
{
	size_t size = strlen(path), n = strlen(wanted);

	return text_ends_in(path, wanted) &&
	       (size == n || *wanted == '/' || path[size - n - 1] == '/');
}

static bool is_asked_for(const struct recording *r, size_t frame, const char *wanted)
{
	const struct frame_text text = recording_frame_text(r, frame);
	uint64_t line = recording_get(r, RECORDING_FRAMES, frame, FRAME_LINE);

	return line && line <= UINT32_MAX && text.file &&
	       (is_file(text.file, wanted) ||
		(text.function && text_is_function(text.function, wanted, strlen(wanted))));
}

static struct source_line line_of(const struct recording *r, size_t frame)
{
	return (struct source_line){
		.file = (uint32_t)recording_get(r, RECORDING_FRAMES, frame, FRAME_FILE),
		.number = (uint32_t)recording_get(r, RECORDING_FRAMES, frame, FRAME_LINE)};
}

static int compare_lines(const void *a, const void *b)
{
	const struct source_line *x = a, *y = b;

	if (x->file != y->file)
		return x->file < y->file ? -1 : 1;
	return (x->number > y->number) - (x->number < y->number);
}

static void find_lines(struct annotation *a, const char *wanted)
{
	size_t frames = recording_rows(a->r, RECORDING_FRAMES);

	for (size_t i = 0; i < frames; i++)
		if (is_asked_for(a->r, i, wanted))
			*vec_add(&a->line) = line_of(a->r, i);
	if (!a->line.count)
		return;
	vec_sort(&a->line, compare_lines);
	vec_merge(&a->line, !compare_lines);
	for (size_t i = 0; i < frames; i++) {
		struct source_line key = line_of(a->r, i);
		const struct source_line *line = !is_asked_for(a->r, i, wanted) ? NULL :
			bsearch(&key, a->line.data, a->line.count, sizeof(key), compare_lines);

		a->of_frame[i] = line ? (uint32_t)(line - a->line.data) + 1 : 0;
	}
}

static void add_leaf(struct annotation *a, size_t leaf, const struct life *life)
{
	const struct recording *r = a->r;

	for (uint64_t n = recording_get(r, RECORDING_LEAVES, leaf, LEAF_NODE); n > 0;
	     n = recording_get(r, RECORDING_NODES, n - 1, NODE_PARENT)) {
		uint32_t at = a->of_frame[recording_get(r, RECORDING_NODES, n - 1, NODE_FRAME)];
		struct source_line *line = at ? &a->line.data[at - 1] : NULL;

		if (!line || line->leaf == leaf + 1)
			continue;
		line->leaf = leaf + 1;
		recording_value_add(&line->value, &a->view->leaf[leaf]);
		line->allocations += recording_get(r, RECORDING_LEAVES, leaf, LEAF_ALLOCATIONS);
		life_add(&line->life, life);
	}
}

/* -- text -- */

#define SOURCE_MAX ((size_t)64 << 20) /* bytes */
#define CONTEXT 3u /* lines before and after one that counts */

static void put_source_line(FILE *out, const struct source_text *s, size_t number)
{
	if (number <= s->line.count) {
		const char *text = s->line.data[number - 1];
		size_t tabs = strspn(text, "\t");
		_cleanup_free_ char *clean = text_clean(text + tabs, strlen(text + tabs));

		if (*clean)
			fprintf(out, "  %.*s%s", (int)tabs, text, clean);
	}
	putc('\n', out);
}

static void put_line(FILE *out, const struct annotation *a, const struct source_text *s,
		     const struct source_line *line)
{
	char bytes[AMOUNT_SIZE], blocks[AMOUNT_SIZE], calls[AMOUNT_SIZE], error[AMOUNT_SIZE];
	const struct recording *r = a->r;
	double held = (double)line->value.bytes, all = (double)a->view->sum.bytes;
	_cleanup_free_ char *life = life_blocks(&line->life) ? life_text(&line->life) : NULL;

	fprintf(out, "%15s ", amount_commas(line->value.bytes, bytes));
	if (r->interval)
		fprintf(out, "%-9s ",
			amount_error(held, recording_error(r, line->value.variance), error));
	fprintf(out, "%5.1f %% %12s %12s  %-31s %6u", all > 0 ? 100 * held / all : 0,
		amount_commas(recording_count(r, line->value.blocks), blocks),
		amount_commas(recording_count(r, line->allocations), calls), life ? life : "",
		line->number);
	put_source_line(out, s, line->number);
}

/* Lines @first to @last without a count, of which the middle of many is left out. */
static void put_between(FILE *out, const struct annotation *a, const struct source_text *s,
			size_t first, size_t last)
{
	int indent = a->r->interval ? 93 : 83;

	last = MIN(last, s->line.count);
	for (size_t i = first; i <= last; i++) {
		fprintf(out, "%*zu", indent + 6, i);
		put_source_line(out, s, i);
	}
}

static void put_head(FILE *out, const struct annotation *a, const struct source_text *s,
		     const char *name)
{
	_cleanup_free_ char *clean = text_clean(name, strlen(name));
	const char *start = recording_meta(a->r, "start");

	fprintf(out, "\n%s", clean);
	if (!s->path)
		fprintf(out, " (not shown: %s; --source=DIR says where sources are)",
			source_file_problem(s));
	else if (strcmp(s->path, name)) {
		_cleanup_free_ char *path = text_clean(s->path, strlen(s->path));

		fprintf(out, " (%s)", path);
	}
	if (s->path && start && (long long)s->changed > strtoll(start, NULL, 10))
		fputs(" (changed since: lines may have moved)", out);
	fprintf(out, "\n%15s %s share %12s %12s  %-31s %6s  %s\n", "bytes",
		a->r->interval ? "+- error   " : "", "blocks", "allocations", "mean lifetime",
		"line", "source");
}

/* The @count lines from @line on, all of one file. */
static void put_file(FILE *out, const struct annotation *a, const struct source_line *line,
		     size_t count, const struct option_strings *dirs)
{
	const char *name = a->r->text.data[line->file];
	struct source_text s;
	size_t behind = 0; /* the last line that was printed */

	source_file_find(&s, name, dirs, SOURCE_MAX);
	put_head(out, a, &s, name);
	for (size_t i = 0; i < count; i++) {
		size_t at = line[i].number, first = at - MIN(at - 1, (size_t)CONTEXT);

		if (!line[i].leaf) /* of other call paths */
			continue;
		if (first > behind + 1 && behind && s.path) {
			put_between(out, a, &s, behind + 1, MIN(behind + CONTEXT, first - 1));
			if (first > behind + CONTEXT + 1)
				fprintf(out, "%*s\n", a->r->interval ? 99 : 89, "...");
			behind = MAX(MIN(behind + CONTEXT, first - 1), first - 1);
		}
		put_between(out, a, &s, MAX(first, behind + 1), at - 1);
		put_line(out, a, &s, &line[i]);
		behind = at;
	}
	put_between(out, a, &s, behind + 1, behind + CONTEXT);
	source_file_deinit(&s);
}

int recording_annotate_print(FILE *out, const struct recording *r, const struct recording_view *v,
			     const struct source_question *q, char **why_out)
{
	struct annotation a = {.r = r, .view = v};
	_cleanup_free_ struct life *life = lives_of_leaves(r);

	a.of_frame = xcalloc(recording_rows(r, RECORDING_FRAMES) + 1, sizeof(*a.of_frame));
	find_lines(&a, q->name);
	for (size_t i = 0; a.line.count && i < recording_rows(r, RECORDING_LEAVES); i++)
		add_leaf(&a, i, &life[i]);
	for (size_t i = 0, end; i < a.line.count; i = end) {
		for (end = i; end < a.line.count && a.line.data[end].file == a.line.data[i].file;)
			end++;
		put_file(out, &a, &a.line.data[i], end - i, q->dirs);
	}
	bool is_found = a.line.count > 0;

	if (!is_found)
		*why_out = recording_not_found(r, true, q->name);
	free(a.of_frame);
	vec_deinit(&a.line);
	return is_found ? 0 : -ENOENT;
}
