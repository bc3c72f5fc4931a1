/*
 * The picture of --inspect's results: a bar of what holds the memory, with a legend, and below it
 * the cells of the heap's arenas.
 */
#include "report/chart/input_picture.h"

#include <math.h>

#include "base/amount.h"
#include "base/cleanup.h"
#include "report/chart/chart.h"
#include "report/input.h"

/*
 * Cells are as large as possible; if that is too small, several are merged. Adjacent cells of the
 * same colour are drawn as one rectangle, with lines between cells on top.
 */

#define CELL_MAX 36.0
#define CELL_MIN 5.0
#define LINES_MIN 6.0   /* cells from this size on have lines between them */
#define LABEL 1.7       /* height of an arena's name, in font sizes */
#define MARKED 0.25     /* share of a cell's pages that are nearly empty */

static const struct canvas_color not_there = {0.93, 0.93, 0.93}, mark = {0.80, 0.10, 0.10};
/* From free to full. */
static const struct {
	const char *text;
	double most;    /* live part */
	struct canvas_color color;
} steps[] = {
	{"free", 0, {0.98, 0.76, 0.40}},
	{"up to 25 %", 0.25, {0.80, 0.89, 0.95}},
	{"50 %", 0.50, {0.55, 0.75, 0.89}},
	{"75 %", 0.75, {0.28, 0.58, 0.79}},
	{"100 % live", 1, {0.03, 0.33, 0.56}},
};

struct cell_layout {
	struct chart_box box;
	double cell;            /* pixels */
	size_t merged;          /* cells of the file per drawn cell */
	size_t columns, arenas; /* arenas drawn */
};

/* -- layout -- */

static size_t count_rows(const struct cell_layout *l, const struct inspect_arena *a)
{
	size_t cells = (a->cells.count + l->merged - 1) / l->merged;

	return (cells + l->columns - 1) / l->columns;
}

static double height_of(const struct chart_drawing *d, const struct inspect_file *f,
			const struct cell_layout *l)
{
	double height = 0;

	for (size_t i = 0; i < l->arenas; i++)
		height += LABEL * d->font + l->cell * (double)count_rows(l, &f->arenas.data[i]);
	return height;
}

/* The largest cells that fit, one for each of the file if possible. */
static void choose(const struct chart_drawing *d, const struct inspect_file *f,
		   struct cell_layout *l)
{
	double most = floor(l->box.height / (LABEL * d->font + CELL_MIN));

	l->arenas = MIN(f->arenas.count, (size_t)MAX(most, 0));
	for (l->merged = 1; l->merged < (size_t)1 << 20; l->merged *= 2)
		for (l->cell = CELL_MAX; l->cell >= CELL_MIN; l->cell--) {
			l->columns = (size_t)MAX(l->box.width / l->cell, 1);
			if (height_of(d, f, l) <= l->box.height)
				return;
		}
}

/* -- cells -- */

static struct inspect_cell merge(const struct cell_layout *l, const struct inspect_arena *a,
				 size_t i)
{
	struct inspect_cell sum = {.start = a->cells.data[i * l->merged].start};

	for (size_t k = i * l->merged; k < MIN((i + 1) * l->merged, a->cells.count); k++) {
		sum.pages += a->cells.data[k].pages;
		sum.live += a->cells.data[k].live;
		sum.nearly_empty += a->cells.data[k].nearly_empty;
	}
	return sum;
}

static struct canvas_color color_of(const struct inspect_cell *c)
{
	double part = c->pages > 0 ? c->live / (c->pages * PAGE_SIZE_MIN) : 0;
	size_t i = 0;

	if (c->pages == 0)
		return not_there;
	while (i + 1 < ARRAY_SIZE(steps) && part > steps[i].most)
		i++;
	return steps[i].color;
}

static bool is_same(struct canvas_color a, struct canvas_color b)
{
	return a.red == b.red && a.green == b.green && a.blue == b.blue;
}

static void fill(const struct chart_drawing *d, struct chart_box b, struct canvas_color color)
{
	canvas_set_color(d->canvas, color);
	canvas_rectangle(d->canvas, b.x, b.y, b.width, b.height);
	canvas_fill(d->canvas, 0);
}

/* One row of cells: the @count ones at @cell, drawn from (@x, @y) on. */
static void draw_colors(const struct chart_drawing *d, const struct cell_layout *l,
			const struct inspect_cell *cell, size_t count, double y)
{
	for (size_t i = 0, k; i < count; i = k) {
		for (k = i + 1; k < count && is_same(color_of(&cell[k]), color_of(&cell[i]));)
			k++;
		fill(d, (struct chart_box){l->box.x + (double)i * l->cell, y,
					   (double)(k - i) * l->cell, l->cell - 0.5},
		     color_of(&cell[i]));
	}
	for (size_t i = 1; i < count && l->cell >= LINES_MIN; i++) {
		double x = l->box.x + (double)i * l->cell;

		canvas_move_to(d->canvas, x, y);
		canvas_line_to(d->canvas, x, y + l->cell);
	}
	canvas_set_color(d->canvas, (struct canvas_color){1, 1, 1});
	if (count > 1 && l->cell >= LINES_MIN)
		canvas_stroke(d->canvas, 0.6, 0);
}

static void draw_marks(const struct chart_drawing *d, const struct cell_layout *l,
		       const struct inspect_cell *cell, size_t count, double y)
{
	double size = MAX(l->cell * 0.36, 2);
	bool has_mark = false;

	for (size_t i = 0; i < count; i++) {
		if (cell[i].nearly_empty == 0 || cell[i].nearly_empty < MARKED * cell[i].pages)
			continue;
		has_mark = true;
		canvas_rectangle(d->canvas, l->box.x + ((double)i + 0.5) * l->cell - size / 2,
				 y + (l->cell - size) / 2, size, size);
	}
	canvas_set_color(d->canvas, mark);
	if (has_mark)
		canvas_fill(d->canvas, 0);
}

static char *name_row(const struct inspect_cell *cell, size_t count)
{
	char live[AMOUNT_SIZE], all[AMOUNT_SIZE];
	double sum = 0, pages = 0;

	for (size_t i = 0; i < count; i++) {
		sum += cell[i].live;
		pages += cell[i].pages;
	}
	return xasprintf("from %#llx: %s live of %s", (unsigned long long)cell->start,
			 amount_bytes(sum, live), amount_bytes(pages * PAGE_SIZE_MIN, all));
}

static void draw_row(const struct chart_drawing *d, const struct cell_layout *l,
		     const struct inspect_arena *a, size_t first, double y)
{
	size_t all = (a->cells.count + l->merged - 1) / l->merged;
	size_t count = MIN(all - first, l->columns);
	_cleanup_free_ struct inspect_cell *cell = xcalloc(count, sizeof(*cell));

	for (size_t i = 0; i < count; i++)
		cell[i] = merge(l, a, first + i);
	_cleanup_free_ char *name = name_row(cell, count);

	canvas_begin_group(d->canvas, name);
	draw_colors(d, l, cell, count, y);
	draw_marks(d, l, cell, count, y);
	canvas_end_group(d->canvas);
}

/* -- texts -- */

static void put_fit(const struct chart_drawing *d, double x, double y, double room,
		    const char *text)
{
	_cleanup_free_ char *fit = chart_fit(d, text, room, false);

	canvas_put_text(d->canvas, x, y, 0, fit);
}

/* Returns where the next arena begins. */
static double draw_arena(const struct chart_drawing *d, const struct cell_layout *l,
			 const struct inspect_arena *a, double y)
{
	char resident[AMOUNT_SIZE], live[AMOUNT_SIZE], unused[AMOUNT_SIZE], trim[AMOUNT_SIZE];
	size_t rows = count_rows(l, a);
	_cleanup_free_ char *label = xasprintf(
		"%s: %s resident, %s live, %s free%s%s", a->name,
		amount_bytes(a->resident, resident), amount_bytes(a->live, live),
		amount_bytes(a->free, unused),
		a->is_python ? "" : ", of which malloc_trim would return ",
		a->is_python ? "" : amount_bytes(a->trim, trim));

	chart_set_font(d, 0.9, true);
	chart_set_grey(d, 0.1);
	put_fit(d, l->box.x, y + (LABEL - 0.45) * d->font, l->box.width, label);
	y += LABEL * d->font;
	for (size_t i = 0; i < rows; i++)
		draw_row(d, l, a, i * l->columns, y + (double)i * l->cell);
	return y + (double)rows * l->cell;
}

static double draw_sample(const struct chart_drawing *d, double x, double y,
			  struct canvas_color color, const char *text)
{
	double size = 0.85 * d->font;

	fill(d, (struct chart_box){x, y - size, size, size}, color);
	chart_set_grey(d, 0.1);
	canvas_put_text(d->canvas, x + 1.2 * d->font, y, 0, text);
	return x + 2.2 * d->font + canvas_text_width(d->canvas, text);
}

/* Explains cells and colours; the last parts are dropped if there is no room. */
static void draw_key(const struct chart_drawing *d, const struct inspect_file *f,
		     const struct cell_layout *l, double y)
{
	char size[AMOUNT_SIZE];
	uint64_t pages = (uint64_t)f->pages_per_cell * l->merged;
	double x = l->box.x, end = l->box.x + l->box.width;
	_cleanup_free_ char *cell = pages == 1 ? xstrdup("a cell is a page:") :
		xasprintf("a cell is %llu pages, %s:", (unsigned long long)pages,
			  amount_bytes((double)pages * PAGE_SIZE_MIN, size));

	chart_set_font(d, 0.9, false);
	chart_set_grey(d, 0.1);
	put_fit(d, x, y, end - x, cell);
	x += canvas_text_width(d->canvas, cell) + 0.8 * d->font;
	for (size_t i = 0; i < ARRAY_SIZE(steps) && x + 6 * d->font < end; i++)
		x = draw_sample(d, x, y, steps[i].color, steps[i].text);
	if (x + 11 * d->font < end)
		x = draw_sample(d, x, y, mark, "at most 1 KiB live");
	if (x + 8 * d->font < end)
		draw_sample(d, x, y, not_there, "not in memory");
}

/* Draws it into @box; arenas that do not fit are summed up in a line. */
static void heap_picture_draw(const struct chart_drawing *d, const struct inspect_file *f,
			      struct chart_box box)
{
	double line = 1.5 * d->font, y = box.y + line * 0.6;
	struct cell_layout l = {.box = {box.x, box.y + line, box.width, box.height - 2 * line}};

	if (f->arenas.count == 0 || l.box.height < 4 * line)
		return;
	choose(d, f, &l);
	draw_key(d, f, &l, y);
	y = l.box.y;
	for (size_t i = 0; i < l.arenas; i++)
		y = draw_arena(d, &l, &f->arenas.data[i], y);
	if (l.arenas == f->arenas.count)
		return;
	char bytes[AMOUNT_SIZE];
	double rest = 0;

	for (size_t i = l.arenas; i < f->arenas.count; i++)
		rest += f->arenas.data[i].resident;
	_cleanup_free_ char *text =
		xasprintf("and %zu smaller arenas, %s resident", f->arenas.count - l.arenas,
			  amount_bytes(rest, bytes));

	chart_set_font(d, 0.9, false);
	chart_set_grey(d, 0.1);
	put_fit(d, box.x, y + line, box.width, text);
}

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
