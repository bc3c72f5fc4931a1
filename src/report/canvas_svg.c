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
#include <math.h>

#include "base/alloc.h"
#include "output/xml.h"
#include "report/canvas_internal.h"
#include "report/canvas_svg.h"

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
