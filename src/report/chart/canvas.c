/* Shared by the canvas and its two backends. */
#include "report/chart/canvas.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/text.h"

#ifdef PTMEM_DEBUG
/* Keep LeakSanitizer quiet: fontconfig caches what it has looked up. */
const char *__lsan_default_suppressions(void);

const char *__lsan_default_suppressions(void)
{
	return "leak:libfontconfig\n";
}

const char *__lsan_default_options(void);

const char *__lsan_default_options(void)
{
	return "print_suppressions=0";
}
#endif

#define CANVAS_HALO 0.4 /* width of the outline around a text, in font sizes */
#define CANVAS_GAP 0.66 /* gap between dashes, as a fraction of their length */

struct canvas_point {
	double x, y;
	bool is_start;         /* of a part of the path */
};

struct canvas_text {
	double x, y, anchor;
	const char *text;
	bool has_halo;
};

struct canvas_disc {
	double x, y, radius, line_width;
};

struct canvas;

/* NULL: nothing to do. The path is in c->path. */
struct canvas_ops {
	void (*scale)(struct canvas *c, double scale);
	void (*put_text)(struct canvas *c, const struct canvas_text *text);
	void (*fill)(struct canvas *c, double edge);
	void (*stroke)(struct canvas *c, double width, double dash);
	void (*disc)(struct canvas *c, const struct canvas_disc *disc);
	void (*clip)(struct canvas *c, double x, double y, double width, double height);
	void (*unclip)(struct canvas *c);
	void (*begin_group)(struct canvas *c, const char *title);
	void (*end_group)(struct canvas *c);
	void (*end)(struct canvas *c);
};

struct canvas {
	const struct canvas_ops *ops;
	cairo_t *cr;           /* measures texts, and is drawn on; owned if it only measures */
	FILE *out;             /* SVG */
	double width, height;  /* SVG */
	bool is_begun;         /* SVG: the header is written */
	double font_size;
	bool is_bold;
	struct canvas_color color;
	struct { struct canvas_point *data; size_t count, capacity; } path;
};

/* The canvas: its state and path, and the cairo backend. */

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

/*
 * The canvas as an SVG document:
 *
 *	<svg ...>
 *	  <g>                                   one for all, which scales
 *	    <g><title>what it is</title> <path .../> <text ...>...</text> </g>
 *
 * Text is measured as cairo would draw it. A viewer may have another font: then text is a little
 * wider or narrower, but stays at its anchor.
 */

static void put_color(struct canvas *c, const char *attribute)
{
	fprintf(c->out, " %s=\"#%02x%02x%02x\"", attribute, (unsigned)lround(c->color.red * 255),
		(unsigned)lround(c->color.green * 255), (unsigned)lround(c->color.blue * 255));
}

/* Opens the group that scales, before the first element. */
static void begin(struct canvas *c, double scale)
{
	if (c->is_begun)
		return;
	c->is_begun = true;
	fprintf(c->out,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%g\" height=\"%g\" "
		"viewBox=\"0 0 %g %g\" font-family=\"DejaVu Sans, Verdana, sans-serif\">\n"
		"<g transform=\"scale(%.6g)\">\n",
		c->width, c->height, c->width, c->height, scale);
}

static void put_text(struct canvas *c, const struct canvas_text *t)
{
	static const char *const anchor[] = {"start", "middle", "end"};

	begin(c, 1);
	fprintf(c->out, "<text xml:space=\"preserve\" x=\"%.2f\" y=\"%.2f\" font-size=\"%.2f\"",
		t->x, t->y, c->font_size);
	put_color(c, "fill");
	if (t->anchor > 0)
		fprintf(c->out, " text-anchor=\"%s\"", anchor[t->anchor > 0.5 ? 2 : 1]);
	if (c->is_bold)
		fputs(" font-weight=\"bold\"", c->out);
	if (t->has_halo)
		fprintf(c->out, " stroke=\"#fff\" stroke-width=\"%.2f\" stroke-linejoin=\"round\" "
			"paint-order=\"stroke\"", c->font_size * CANVAS_HALO);
	fputc('>', c->out);
	xml_put_text(c->out, t->text);
	fputs("</text>\n", c->out);
}

static void put_path(struct canvas *c)
{
	begin(c, 1);
	fputs("<path d=\"", c->out);
	for (size_t i = 0; i < c->path.count; i++)
		fprintf(c->out, "%c%.2f %.2f", c->path.data[i].is_start ? 'M' : 'L',
			c->path.data[i].x, c->path.data[i].y);
}

static void fill(struct canvas *c, double edge)
{
	put_path(c);
	fputs("Z\"", c->out);
	put_color(c, "fill");
	if (edge > 0) {
		put_color(c, "stroke");
		fprintf(c->out, " stroke-width=\"%g\" stroke-linejoin=\"round\"", edge);
	}
	fputs("/>\n", c->out);
}

static void stroke(struct canvas *c, double width, double dash)
{
	put_path(c);
	fputs("\" fill=\"none\"", c->out);
	put_color(c, "stroke");
	fprintf(c->out, " stroke-width=\"%.2f\" stroke-linejoin=\"round\"", width);
	if (dash > 0)
		fprintf(c->out, " stroke-dasharray=\"%.2f %.2f\"", dash, dash * CANVAS_GAP);
	fputs("/>\n", c->out);
}

static void disc(struct canvas *c, const struct canvas_disc *d)
{
	begin(c, 1);
	fprintf(c->out,
		"<path d=\"M%.2f %.2fm%.2f 0a%g %g 0 1 0 %g 0a%g %g 0 1 0 %g 0\" fill=\"#fff\"",
		d->x, d->y, -d->radius, d->radius, d->radius, 2 * d->radius, d->radius, d->radius,
		-2 * d->radius);
	put_color(c, "stroke");
	fprintf(c->out, " stroke-width=\"%.2f\"/>\n", d->line_width);
}

static void clip(struct canvas *c, double x, double y, double width, double height)
{
	begin(c, 1);
	fprintf(c->out,
		"<clipPath id=\"plot\"><rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\"/>"
		"</clipPath>\n<g clip-path=\"url(#plot)\">\n",
		x, y, width, height);
}

static void begin_group(struct canvas *c, const char *title)
{
	begin(c, 1);
	fputs("<g><title>", c->out);
	xml_put_text(c->out, title);
	fputs("</title>\n", c->out);
}

static void end_group(struct canvas *c)
{
	fputs("</g>\n", c->out);
}

static void end(struct canvas *c)
{
	begin(c, 1);
	fputs("</g>\n</svg>\n", c->out);
	cairo_destroy(c->cr);
}

static const struct canvas_ops svg_ops = {
	.scale = begin,
	.put_text = put_text,
	.fill = fill,
	.stroke = stroke,
	.disc = disc,
	.clip = clip,
	.unclip = end_group,
	.begin_group = begin_group,
	.end_group = end_group,
	.end = end,
};

struct canvas *canvas_new_svg(FILE *out, double width, double height)
{
	struct canvas *c = xcalloc(1, sizeof(*c));
	cairo_surface_t *surface = cairo_image_surface_create(CAIRO_FORMAT_RGB24, 1, 1);

	c->ops = &svg_ops;
	c->cr = cairo_create(surface);
	cairo_surface_destroy(surface);
	c->out = out;
	c->width = width;
	c->height = height;
	return c;
}
