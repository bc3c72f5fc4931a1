/*
 * See inspect_html.h. The page loads nothing and has no script, which its Content-Security-Policy
 * enforces.
 */
#include "report/inspect_html.h"

#include <string.h>

#include "base/amount.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "output/xml.h"
#include "report/canvas_svg.h"
#include "report/inspect_picture.h"

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

void inspect_html_write(FILE *out, const struct inspect_file *f)
{
	fputs(head, out);
	put_picture(out, f);
	put_rows(out, f);
	if (f->arenas.count > 0)
		put_arenas(out, f);
	fputs("</body>\n</html>\n", out);
}
