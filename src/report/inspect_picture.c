/* See inspect_picture.h. */
#include "report/inspect_picture.h"

#include <math.h>

#include "base/amount.h"
#include "base/cleanup.h"
#include "report/chart_layout.h"
#include "report/heap_picture.h"

#define BASE_WIDTH 800.0
#define BASE_HEIGHT 600.0
#define SMALLEST 0.002 /* percentage: smaller rows are merged in the legend */

static const struct canvas_color color_of_row[ROW_COUNT] = {
	[ROW_LIVE] = {0.00, 0.45, 0.70}, [ROW_MMAPPED] = {0.34, 0.71, 0.91},
	[ROW_TCACHE] = {1.00, 0.87, 0.60}, [ROW_FASTBIN] = {0.98, 0.80, 0.40},
	[ROW_UNSORTED] = {0.93, 0.60, 0.20}, [ROW_BIN] = {0.84, 0.37, 0.00},
	[ROW_TOP] = {0.97, 0.72, 0.50}, [ROW_FREE_PAGES] = {0.90, 0.62, 0.45},
	[ROW_OWN] = {0.35, 0.35, 0.35},
	[ROW_UNKNOWN_HEAP] = {0.10, 0.10, 0.10},
	[ROW_PYTHON_LIVE] = {0.36, 0.23, 0.60}, [ROW_PYTHON_FREE] = {0.62, 0.52, 0.80},
	[ROW_PYTHON_POOLS] = {0.78, 0.71, 0.90}, [ROW_PYTHON_OWN] = {0.47, 0.43, 0.55},
	[ROW_STACK] = {0.00, 0.62, 0.45},
	[ROW_STACK_BEYOND] = {0.55, 0.82, 0.72}, [ROW_TLS] = {0.75, 0.90, 0.82},
	[ROW_DATA] = {0.80, 0.47, 0.65}, [ROW_TEXT] = {0.90, 0.72, 0.83},
	[ROW_FILE] = {0.94, 0.89, 0.26}, [ROW_SHARED] = {0.72, 0.66, 0.20},
	[ROW_PROFILER] = {0.80, 0.80, 0.80}, [ROW_ANONYMOUS] = {0.62, 0.62, 0.62},
};

/* The middle of the bar: each part consists of the rows up to @last. */
static const struct {
	const char *name;
	enum inspect_row last;
	struct canvas_color color;
} parts[] = {
	{"malloc", ROW_UNKNOWN_HEAP, {0.82, 0.89, 0.94}},
	{"Python's allocator", ROW_PYTHON_OWN, {0.90, 0.87, 0.96}},
	{"threads", ROW_TLS, {0.83, 0.93, 0.89}},
	{"program and libraries", ROW_TEXT, {0.95, 0.87, 0.92}},
	{"files and shared memory", ROW_SHARED, {0.96, 0.95, 0.78}},
	{"other", ROW_ANONYMOUS, {0.90, 0.90, 0.90}},
};

/* -- the bar -- */

static void draw_segment(const struct chart_drawing *d, struct chart_box box,
			 struct canvas_color color, const char *text)
{
	double luminance = 0.3 * color.red + 0.6 * color.green + 0.1 * color.blue;

	canvas_begin_group(d->canvas, text);
	canvas_set_color(d->canvas, color);
	canvas_rectangle(d->canvas, box.x, box.y, MAX(box.width - 0.5, 0.3), box.height);
	canvas_fill(d->canvas, 0);
	_cleanup_free_ char *fit = chart_fit(d, text, box.width - d->font, false);

	if (box.width > 4 * d->font) {
		chart_set_grey(d, luminance < 0.45 ? 1 : 0.1);
		canvas_put_text(d->canvas, box.x + 0.5 * d->font, box.y + 0.72 * box.height, 0,
				fit);
	}
	canvas_end_group(d->canvas);
}

static char *name_amount(const char *name, double bytes, double sum)
{
	char amount[AMOUNT_SIZE];

	return xasprintf("%s %s, %.1f %%", name, amount_bytes(bytes, amount),
			 sum > 0 ? 100 * bytes / sum : 0);
}

/* Draws the rows from @first to @last as one segment at *x_io, and advances that. */
static void draw_rows(const struct chart_drawing *d, const struct inspect_file *f,
		      struct chart_box *box_io, size_t first, size_t last)
{
	double bytes = 0;
	size_t part = 0;

	for (size_t i = first; i <= last; i++)
		bytes += f->row[i];
	while (parts[part].last < last)
		part++;
	bool is_row = first == last && box_io->height < 0;
	struct chart_box box = *box_io;

	box.height = fabs(box.height);
	box.width *= f->sum > 0 ? bytes / f->sum : 0;
	_cleanup_free_ char *text = name_amount(is_row ? inspect_row_text[first] : parts[part].name,
						bytes, f->sum);

	if (bytes > 0)
		draw_segment(d, box, is_row ? color_of_row[first] : parts[part].color, text);
	box_io->x += box.width;
}

/* Returns its lower end. */
static double draw_bar(const struct chart_drawing *d, const struct inspect_file *f, double y)
{
	double height = 1.7 * d->font, width = d->width - 2 * d->font;
	struct chart_box box = {d->font, y, width, height};
	_cleanup_free_ char *all = name_amount(f->all, f->sum, f->sum);

	chart_set_font(d, 0.95, false);
	draw_segment(d, box, (struct canvas_color){0.25, 0.25, 0.25}, all);
	box.y += height + 1;
	for (size_t i = 0, first = 0; i < ARRAY_SIZE(parts); first = parts[i++].last + 1)
		draw_rows(d, f, &box, first, parts[i].last);
	box = (struct chart_box){d->font, box.y + height + 1, width, -height};
	for (size_t i = 0; i < ROW_COUNT; i++)
		draw_rows(d, f, &box, i, i);
	return box.y + height;
}

/* -- the legend -- */

struct entry {
	const char *text;
	struct canvas_color color;
	double bytes;
};

static size_t make_entries(const struct inspect_file *f, struct entry *out)
{
	double rest = 0;
	size_t n = 0;

	for (size_t i = 0; i < ROW_COUNT; i++) {
		if (f->row[i] > SMALLEST * f->sum)
			out[n++] = (struct entry){inspect_row_text[i], color_of_row[i], f->row[i]};
		else
			rest += f->row[i];
	}
	if (rest > 0)
		out[n++] = (struct entry){"smaller ones", {1, 1, 1}, rest};
	return n;
}

static void draw_entry(const struct chart_drawing *d, const struct entry *e, double x, double y,
		       double width)
{
	double size = 0.8 * d->font;
	char amount[AMOUNT_SIZE];

	amount_bytes(e->bytes, amount);
	double room = width - 1.4 * d->font - canvas_text_width(d->canvas, amount) - d->font;
	_cleanup_free_ char *text = chart_fit(d, e->text, room, false);

	canvas_set_color(d->canvas, e->color);
	canvas_rectangle(d->canvas, x, y - size, size, size);
	canvas_fill(d->canvas, 0);
	chart_set_grey(d, 0.1);
	canvas_put_text(d->canvas, x + 1.4 * d->font, y, 0, text);
	canvas_put_text(d->canvas, x + width, y, 1, amount);
}

/* Returns its lower end: @y if it does not fit in @room. */
static double draw_legend(const struct chart_drawing *d, const struct inspect_file *f, double y,
			  double room)
{
	struct entry entry[ROW_COUNT + 1];
	size_t n = make_entries(f, entry), columns = d->width >= 44 * d->font ? 2 : 1;
	size_t rows = (n + columns - 1) / columns;
	double gap = 2 * d->font, width = (d->width - 2 * d->font + gap) / (double)columns - gap;

	if (1.45 * d->font * (double)rows > room)
		return y;
	for (size_t i = 0; i < n; i++)
		draw_entry(d, &entry[i], d->font + (double)(i / rows) * (width + gap),
			   y + 1.45 * d->font * (double)(i % rows + 1), width);
	return y + 1.45 * d->font * (double)rows;
}

void inspect_picture_draw(const struct inspect_file *f, const char *title, struct canvas *canvas,
			  double width, double height)
{
	double scale = sqrt(MIN(width / BASE_WIDTH, height / BASE_HEIGHT));
	struct chart_drawing d = {.canvas = canvas, .width = width, .height = height,
				  .font = 12 * MIN(MAX(scale, 0.75), 3)};

	canvas_set_color(canvas, (struct canvas_color){1, 1, 1});
	canvas_rectangle(canvas, 0, 0, width, height);
	canvas_fill(canvas, 0);
	chart_set_font(&d, 1.35, true);
	_cleanup_free_ char *fit =
		chart_fit(&d, title ? title : f->title, width - 2 * d.font, false);

	chart_set_grey(&d, 0.1);
	canvas_put_text(canvas, width / 2, 2 * d.font, 0.5, fit);
	double y = draw_bar(&d, f, 3 * d.font);

	chart_set_font(&d, 0.95, false);
	y = draw_legend(&d, f, y + 0.3 * d.font, 0.4 * height) + 1.2 * d.font;
	heap_picture_draw(&d, f, (struct chart_box){d.font, y, width - 2 * d.font,
						    height - y - 0.7 * d.font});
}
