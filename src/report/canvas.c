/* The canvas: its state and path, and the cairo backend. */
#include "report/canvas.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/vec.h"
#include "report/canvas_internal.h"

#define FONT "sans-serif"
/* With cairo. */

static void cairo_set_color(cairo_t *cr, struct canvas_color c)
{
	cairo_set_source_rgb(cr, c.red, c.green, c.blue);
}

static void scale_cairo(struct canvas *c, double scale)
{
	cairo_scale(c->cr, scale, scale);
}

static void put_text_cairo(struct canvas *c, const struct canvas_text *t)
{
	cairo_move_to(c->cr, t->x - t->anchor * canvas_text_width(c, t->text), t->y);
	if (t->has_halo) {
		cairo_text_path(c->cr, t->text);
		cairo_set_source_rgb(c->cr, 1, 1, 1);
		cairo_set_line_width(c->cr, c->font_size * CANVAS_HALO);
		cairo_set_line_join(c->cr, CAIRO_LINE_JOIN_ROUND);
		cairo_stroke_preserve(c->cr);
		cairo_set_color(c->cr, c->color);
		cairo_fill(c->cr);
		return;
	}
	cairo_set_color(c->cr, c->color);
	cairo_show_text(c->cr, t->text);
}

static void trace_path(struct canvas *c)
{
	cairo_new_path(c->cr);
	for (size_t i = 0; i < c->path.count; i++) {
		const struct canvas_point *p = &c->path.data[i];

		if (p->is_start)
			cairo_move_to(c->cr, p->x, p->y);
		else
			cairo_line_to(c->cr, p->x, p->y);
	}
	cairo_set_color(c->cr, c->color);
	cairo_set_line_join(c->cr, CAIRO_LINE_JOIN_ROUND);
}

static void fill_cairo(struct canvas *c, double edge)
{
	trace_path(c);
	cairo_fill_preserve(c->cr);
	cairo_set_line_width(c->cr, edge);
	if (edge > 0)
		cairo_stroke_preserve(c->cr);
	cairo_new_path(c->cr);
}

static void stroke_cairo(struct canvas *c, double width, double dash)
{
	const double dashes[] = {dash, dash * CANVAS_GAP};

	trace_path(c);
	cairo_set_line_width(c->cr, width);
	cairo_set_dash(c->cr, dashes, dash > 0 ? 2 : 0, 0);
	cairo_stroke(c->cr);
	cairo_set_dash(c->cr, NULL, 0, 0);
}

static void disc_cairo(struct canvas *c, const struct canvas_disc *d)
{
	cairo_new_path(c->cr);
	cairo_arc(c->cr, d->x, d->y, d->radius, 0, 2 * M_PI);
	cairo_set_source_rgb(c->cr, 1, 1, 1);
	cairo_fill_preserve(c->cr);
	cairo_set_color(c->cr, c->color);
	cairo_set_line_width(c->cr, d->line_width);
	cairo_stroke(c->cr);
}

static void clip_cairo(struct canvas *c, double x, double y, double width, double height)
{
	cairo_save(c->cr);
	cairo_rectangle(c->cr, x, y, width, height);
	cairo_clip(c->cr);
}

static void unclip_cairo(struct canvas *c)
{
	cairo_restore(c->cr);
}

static const struct canvas_ops cairo_ops = {
	.scale = scale_cairo,
	.put_text = put_text_cairo,
	.fill = fill_cairo,
	.stroke = stroke_cairo,
	.disc = disc_cairo,
	.clip = clip_cairo,
	.unclip = unclip_cairo,
};

struct canvas *canvas_new_cairo(cairo_t *cr)
{
	struct canvas *c = xcalloc(1, sizeof(*c));

	c->ops = &cairo_ops;
	c->cr = cr;
	return c;
}

/* With either. */

void canvas_free(struct canvas *c)
{
	if (c->ops->end)
		c->ops->end(c);
	vec_deinit(&c->path);
	free(c);
}

void canvas_scale(struct canvas *c, double scale)
{
	c->ops->scale(c, scale);
}

void canvas_set_color(struct canvas *c, struct canvas_color color)
{
	c->color = color;
}

void canvas_set_font(struct canvas *c, double size, bool is_bold)
{
	c->font_size = size;
	c->is_bold = is_bold;
	cairo_select_font_face(c->cr, FONT, CAIRO_FONT_SLANT_NORMAL,
			       is_bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
	cairo_set_font_size(c->cr, size);
}

double canvas_text_width(const struct canvas *c, const char *text)
{
	cairo_text_extents_t e;

	cairo_text_extents(c->cr, text, &e);
	return e.x_advance;
}

void canvas_put_text(struct canvas *c, double x, double y, double anchor, const char *text)
{
	c->ops->put_text(c, &(struct canvas_text){x, y, anchor, text, false});
}

void canvas_put_halo_text(struct canvas *c, double x, double y, double anchor, const char *text)
{
	c->ops->put_text(c, &(struct canvas_text){x, y, anchor, text, true});
}

void canvas_move_to(struct canvas *c, double x, double y)
{
	*vec_add(&c->path) = (struct canvas_point){x, y, true};
}

void canvas_line_to(struct canvas *c, double x, double y)
{
	bool is_start = !c->path.count;

	*vec_add(&c->path) = (struct canvas_point){x, y, is_start};
}

void canvas_rectangle(struct canvas *c, double x, double y, double width, double height)
{
	canvas_move_to(c, x, y);
	canvas_line_to(c, x + width, y);
	canvas_line_to(c, x + width, y + height);
	canvas_line_to(c, x, y + height);
}

void canvas_fill(struct canvas *c, double edge)
{
	c->ops->fill(c, edge);
	c->path.count = 0;
}

void canvas_stroke(struct canvas *c, double width, double dash)
{
	c->ops->stroke(c, width, dash);
	c->path.count = 0;
}

void canvas_disc(struct canvas *c, double x, double y, double radius, double width)
{
	c->ops->disc(c, &(struct canvas_disc){x, y, radius, width});
}

void canvas_clip(struct canvas *c, double x, double y, double width, double height)
{
	c->ops->clip(c, x, y, width, height);
}

void canvas_unclip(struct canvas *c)
{
	c->ops->unclip(c);
}

void canvas_begin_group(struct canvas *c, const char *title)
{
	if (c->ops->begin_group)
		c->ops->begin_group(c, title);
}

void canvas_end_group(struct canvas *c)
{
	if (c->ops->end_group)
		c->ops->end_group(c);
}
