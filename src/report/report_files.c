/*
 * Files that a request names: folded stacks, flame graphs, and pages, among them the one of
 * --inspect's results.
 */
#include "report/show.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/amount.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/text.h"
#include "output/graph/graph_page.h"
#include "output/html_page.h"
#include "output/outfile.h"
#include "output/path_tree.h"
#include "recording/embedded_sources.h"
#include "recording/graph_file.h"
#include "recording/recording_json.h"
#include "report/chart/canvas.h"
#include "report/chart/input_picture.h"
#include "report/diff_output.h"
#include "report/diff_paths.h"
#include "report/input.h"
#include "report/massif_output.h"
#include "report/recording_output.h"

static int write_file(const char *path, int (*put)(FILE *file, const void *ctx), const void *ctx)
{
	int err = outfile_put(path, put, ctx);

	if (err)
		outfile_log_error(path, err);
	return err ? EXIT_NOT_WRITTEN : 0;
}

/* A tree, and how it is written. */
struct paths {
	const struct path_tree *tree;
	const struct flame_options *flame;
	bool is_diff;
};

static int put_folded(FILE *file, const void *ctx)
{
	const struct paths *p = ctx;

	path_tree_write_folded(file, p->tree, p->is_diff);
	return 0;
}

static int put_flame(FILE *file, const void *ctx)
{
	const struct paths *p = ctx;

	flame_write(file, p->tree, p->flame);
	return 0;
}

int path_files_folded(const char *path, const struct path_tree *t, bool is_diff)
{
	return write_file(path, put_folded, &(struct paths){t, NULL, is_diff});
}

static int write_flame(const struct report_request *r, const struct path_tree *t,
		       const struct path_words *words)
{
	const struct flame_options options = {
		.title = r->title ? r->title : words->title,
		.subtitle = words->subtitle,
		.unit = "bytes",
		.width = r->x_size ? r->x_size : FLAME_WIDTH_DEFAULT,
		.is_fixed = r->x_size,
		.min_frame = FLAME_MIN_FRAME,
		.is_diff = r->is_diff,
	};

	return write_file(r->flame, put_flame, &(struct paths){t, &options, r->is_diff});
}

int path_files_write(const struct report_request *r, const struct path_tree *t,
		     const struct path_words *words)
{
	int status = r->folded ? path_files_folded(r->folded, t, r->is_diff) : 0;

	return !status && r->flame ? write_flame(r, t, words) : status;
}

/* --inspect's results as one self-contained HTML file: the picture and its numbers. */

#define WIDTH 1100
#define HEIGHT 900

static const char head[] =
	"<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
	"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
	"style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n"
	"<title>ptmem --inspect</title>\n<style>\n"
	"body { font-family: sans-serif; max-width: 1100px; margin: 1em auto; padding: 0 1em }\n"
	"svg { width: 100%; height: auto }\n"
	"table { border-collapse: collapse; margin: 1em 0 }\n"
	"td, th { padding: .2em .8em; text-align: right; border-bottom: 1px solid #ddd }\n"
	"td:first-child, th:first-child { text-align: left }\n"
	"</style>\n</head>\n<body>\n";

/* Without the XML declaration of the SVG file. */
static void put_picture(FILE *out, const struct inspect_file *f)
{
	_cleanup_free_ char *svg = NULL;
	size_t size;
	FILE *memory = open_memstream(&svg, &size);

	CHECK(memory);
	struct canvas *canvas = canvas_new_svg(memory, WIDTH, HEIGHT);

	inspect_picture_draw(f, NULL, canvas, WIDTH, HEIGHT);
	canvas_free(canvas);
	CHECK(!fclose(memory));
	const char *start = strstr(svg, "<svg");

	fputs(start ? start : "", out);
}

static void put_rows(FILE *out, const struct inspect_file *f)
{
	char bytes[AMOUNT_SIZE];

	fputs("<table>\n<tr><th>what</th><th>bytes</th><th>of all</th></tr>\n", out);
	for (size_t i = 0; i < ROW_COUNT; i++)
		if (f->row[i] > 0)
			fprintf(out, "<tr><td>%s</td><td>%s</td><td>%.1f %%</td></tr>\n",
				inspect_row_text[i], amount_commas((uint64_t)f->row[i], bytes),
				100 * f->row[i] / f->sum);
	fprintf(out, "<tr><th>%s</th><th>%s</th><th></th></tr>\n</table>\n", f->all,
		amount_commas((uint64_t)f->sum, bytes));
}

static void put_arenas(FILE *out, const struct inspect_file *f)
{
	char resident[AMOUNT_SIZE], live[AMOUNT_SIZE], unused[AMOUNT_SIZE], trim[AMOUNT_SIZE];

	fputs("<table>\n<tr><th>arena</th><th>resident</th><th>live</th><th>free</th>"
	      "<th>malloc_trim would return</th></tr>\n", out);
	for (size_t i = 0; i < f->arenas.count; i++) {
		const struct inspect_arena *a = &f->arenas.data[i];

		fputs("<tr><td>", out);
		xml_put_text(out, a->name);
		fprintf(out, "</td><td>%s</td><td>%s</td><td>%s</td><td>%s</td></tr>\n",
			amount_bytes(a->resident, resident), amount_bytes(a->live, live),
			amount_bytes(a->free, unused),
			a->is_python ? "" : amount_bytes(a->trim, trim));
	}
	fputs("</table>\n", out);
}

/* The caller checks the stream for errors. */
static void inspect_html_write(FILE *out, const struct inspect_file *f)
{
	fputs(head, out);
	put_picture(out, f);
	put_rows(out, f);
	if (f->arenas.count > 0)
		put_arenas(out, f);
	fputs("</body>\n</html>\n", out);
}

static void put_json(FILE *out, const struct input *input, char *const more[2], bool is_diff)
{
	struct frame_match *match = is_diff ? diff_pair_match(input, false) : NULL;

	if (match)
		diff_json_write(out, input, more, match, NULL);
	else if (input->kind == INPUT_RECORDING)
		recording_json_write(out, input->recording, more[0]);
	else
		massif_json_write(out, input->massif);
	frame_match_free(match);
}

struct page {
	const struct input *input;
	char *more[2];
	bool is_diff;
};

static int put_page(FILE *file, const void *ctx)
{
	const struct page *p = ctx;
	_cleanup_free_ char *json = NULL;
	size_t size;

	if (p->input->kind == INPUT_INSPECT) {
		inspect_html_write(file, p->input->inspect);
		return 0;
	}
	if (p->input->kind == INPUT_GRAPH) {
		const struct graph_title title = graph_file_title(p->input->graph);

		graph_page_write(file, &title, &p->input->graph->graph);
		return 0;
	}
	FILE *memory = open_memstream(&json, &size);

	CHECK(memory);
	put_json(memory, p->input, p->more, p->is_diff);
	CHECK(!fclose(memory));
	html_page_write(file, json, size, false);
	return 0;
}

int html_report_write(const struct report_request *r, const struct input *input)
{
	struct page page = {.input = input, .is_diff = r->is_diff};
	char *why = NULL;
	int status = 0;

	for (int i = 0; !why && input->kind == INPUT_RECORDING && i <= r->is_diff; i++) {
		if (recording_view_json(input[i].recording, &r->question, &page.more[i], &why)) {
			log_error("%s: %s", r->path[i], why);
			status = EXIT_REFUSED;
		}
	}
	if (!status && r->embeds_sources) {
		/* of a difference the new one's, whose lines are shown everywhere */
		const struct recording *own[1] = {input[r->is_diff].recording};
		char *sources = embedded_sources_json(own, 1, &r->sources);
		char *view = page.more[r->is_diff];

		page.more[r->is_diff] = xasprintf("%s%s", view, sources);
		free(view);
		free(sources);
	}
	if (!status)
		status = write_file(r->html, put_page, &page);
	free(page.more[0]);
	free(page.more[1]);
	free(why);
	return status;
}
