/*
 * Cells are as large as possible; if that is too small, several are merged. Adjacent cells of the
 * same colour are drawn as one rectangle, with lines between cells on top.
 */
#include "report/heap_picture.h"

#include <math.h>

#include "base/amount.h"
#include "base/cleanup.h"

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

struct layout {
	struct chart_box box;
	double cell;            /* pixels */
	size_t merged;          /* cells of the file per drawn cell */
	size_t columns, arenas; /* arenas drawn */
};

/* -- layout -- */

static size_t count_rows(const struct layout *l, const struct inspect_arena *a)
{
	size_t cells = (a->cells.count + l->merged - 1) / l->merged;

	return (cells + l->columns - 1) / l->columns;
}

static double height_of(const struct chart_drawing *d, const struct inspect_file *f,
			const struct layout *l)
{
	double height = 0;

	for (size_t i = 0; i < l->arenas; i++)
		height += LABEL * d->font + l->cell * (double)count_rows(l, &f->arenas.data[i]);
	return height;
}

/* The largest cells that fit, one for each of the file if possible. */
static void choose(const struct chart_drawing *d, const struct inspect_file *f, struct layout *l)
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

static struct inspect_cell merge(const struct layout *l, const struct inspect_arena *a, size_t i)
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
static void draw_colors(const struct chart_drawing *d, const struct layout *l,
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

static void draw_marks(const struct chart_drawing *d, const struct layout *l,
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

static void draw_row(const struct chart_drawing *d, const struct layout *l,
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
static double draw_arena(const struct chart_drawing *d, const struct layout *l,
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
		     const struct layout *l, double y)
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

void heap_picture_draw(const struct chart_drawing *d, const struct inspect_file *f,
		       struct chart_box box)
{
	double line = 1.5 * d->font, y = box.y + line * 0.6;
	struct layout l = {.box = {box.x, box.y + line, box.width, box.height - 2 * line}};

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
