/*
 * A path tree as an interactive SVG.
 *
 * First every frame gets its box: where it begins and how much it holds, both in
 * the tree's own unit, children side by side in the order of their names. Boxes
 * too narrow to see are left out with all above them. Then the boxes are drawn; each carries its
 * begin and value for the script, which draws them anew at another scale.
 *
 * Colours depend on names alone, so that a function looks the same in each graph.
 */
#include "output/flame.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "base/vec.h"

#define FRAME_HEIGHT 17
#define SIDE 10          /* margins left and right */
#define CHARACTER 7.25   /* width of a character, 12 px monospace: 0.602 em, and some air */
#define TITLE_CHARACTER 10.3
#define TEXT_INDENT 3
#define BELOW_FRAMES 34
#define SEARCH_WIDTH 100 /* "Reset search" and air; beside it stands the share that matched */

/*
 * The script, from flame.js beside this file. The path is relative to the folder where make runs.
 */
__asm__(".pushsection .rodata\n"
	"flame_script_start: .incbin \"src/output/flame.js\"\n"
	"flame_script_end:\n"
	".popsection\n");
extern const char flame_script_start[], flame_script_end[];

struct box {
	uint32_t node;
	uint64_t begin;       /* of the graph's total */
};

struct flame {
	FILE *out;
	const struct path_tree *tree;
	const struct flame_options *options;
	VEC(struct box) box;  /* callers before what they call */
	uint64_t total;       /* the root's; at least 1 */
	uint64_t max_change;  /* the largest difference of a frame, the root not counted */
	double pixels;        /* the root's width */
	uint32_t max_depth;   /* of the boxes */
	size_t culled;        /* boxes left out, those above them not counted */
	unsigned top, height; /* where the frames begin; of the picture */
};

struct color {
	unsigned red, green, blue;
};

/* Layout. */

static double width_of(const struct flame *f, uint64_t value)
{
	return (double)value / (double)f->total * f->pixels;
}

static uint64_t change_of(const struct path_node *n)
{
	uint64_t was = n->total[PATH_OLD], is = n->total[PATH_NEW];

	return is > was ? is - was : was - is;
}

static void add_box(struct flame *f, uint32_t node, uint64_t begin)
{
	const struct path_node *n = path_tree_node(f->tree, node);

	*vec_add(&f->box) = (struct box){.node = node, .begin = begin};
	f->max_depth = MAX(f->max_depth, n->depth);
	if (node)
		f->max_change = MAX(f->max_change, change_of(n));
}

static void lay_out(struct flame *f)
{
	uint32_t *child = NULL;
	size_t capacity = 0;

	add_box(f, 0, 0);
	for (size_t i = 0; i < f->box.count; i++) {
		uint64_t begin = f->box.data[i].begin;
		uint32_t count =
			path_tree_children(f->tree, f->box.data[i].node, &child, &capacity);

		for (uint32_t c = 0; c < count; c++) {
			uint64_t value = path_tree_node(f->tree, child[c])->total[PATH_NEW];

			if (value && width_of(f, value) >= f->options->min_frame)
				add_box(f, child[c], begin);
			else if (value)
				f->culled++;
			begin += value;
		}
	}
	free(child);
}

/* Texts. */

static void put_escaped(FILE *out, const char *s)
{
	for (; *s; s++) {
		switch (*s) {
		case '&':
			fputs("&amp;", out);
			break;
		case '<':
			fputs("&lt;", out);
			break;
		case '>':
			fputs("&gt;", out);
			break;
		case '"':
			fputs("&quot;", out);
			break;
		default:
			putc(*s, out);
		}
	}
}

static void put_commified(FILE *out, uint64_t value)
{
	if (value >= 1000) {
		put_commified(out, value / 1000);
		fprintf(out, ",%03" PRIu64, value % 1000);
	} else {
		fprintf(out, "%" PRIu64, value);
	}
}

/* "(1,234 bytes, 5.67%)": the script finds a frame's name before the last " (". */
static void put_details(const struct flame *f, const struct path_node *n)
{
	fputs(" (", f->out);
	put_commified(f->out, n->total[PATH_NEW]);
	fprintf(f->out, " %s, %.2f%%", f->options->unit,
		(double)n->total[PATH_NEW] * 100 / (double)f->total);
	if (f->options->is_diff) {
		fputs(n->total[PATH_NEW] < n->total[PATH_OLD] ? "; -" : "; +", f->out);
		put_commified(f->out, change_of(n));
	}
	putc(')', f->out);
}

/* Colours. */

static uint32_t hash_name(const char *s)
{
	uint32_t h = 0x811c9dc5;

	for (; *s; s++)
		h = (h ^ (uint8_t)*s) * 0x01000193;
	return (uint32_t)hash_u64(h);
}

static struct color memory_color(const char *name)
{
	uint32_t h = hash_name(name);
	unsigned a = h & 0xff, b = h >> 8 & 0xff;

	if (*name == '[')
		return (struct color){190 + a / 16, 205 + a / 16, 190 + a / 16};
	return (struct color){90 + a * 80 / 255, 190 + b * 45 / 255, 105 + a * 70 / 255};
}

/* Red for growth, blue for shrinkage, paler the less it is; white for neither. */
static struct color change_color(const struct flame *f, const struct path_node *n)
{
	uint64_t change = change_of(n);

	if (!change)
		return (struct color){238, 238, 238};
	double share = MIN(1.0, (double)change / (double)MAX(f->max_change, 1));
	unsigned pale = (unsigned)(215 - 150 * sqrt(share));

	if (n->total[PATH_NEW] > n->total[PATH_OLD])
		return (struct color){250, pale, pale};
	return (struct color){pale, pale + 25, 250};
}

/* The file. */

static void put_style(FILE *out)
{
	fputs("<style>\n"
	      "text { font-family: \"DejaVu Sans Mono\", \"Liberation Mono\", Menlo, Consolas, "
	      "monospace; font-size: 12px; fill: #111; }\n"
	      "#title { font-size: 17px; text-anchor: middle; }\n"
	      "#subtitle { text-anchor: middle; fill: #555; }\n"
	      ".button { fill: #06c; cursor: pointer; }\n"
	      ".end { text-anchor: end; }\n"
	      ".frame { cursor: pointer; }\n"
	      ".frame rect { stroke: #fff; stroke-width: 0.5; }\n"
	      ".frame text { pointer-events: none; }\n"
	      ".frame:hover rect { stroke: #111; }\n"
	      ".frame.caller { opacity: 0.55; }\n"
	      ".frame.match rect { fill: #e66bf0; }\n"
	      ".hidden { display: none; }\n"
	      "@media print { .script { display: none; } }\n"
	      "</style>\n",
	      out);
}

static void put_fitting(FILE *out, const char *text, unsigned width, double character)
{
	_cleanup_free_ char *clean = text_clean(text, strlen(text));
	_cleanup_free_ char *fitting = text_shorten(clean, (size_t)(width / character));

	put_escaped(out, fitting);
}

static void put_head(const struct flame *f)
{
	const struct flame_options *o = f->options;
	unsigned middle = o->width / 2, right = o->width - SIDE, room = o->width - 2 * SIDE;

	fprintf(f->out,
		"<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"no\"?>\n"
		"<svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" "
		"width=\"%u\" height=\"%u\" viewBox=\"0 0 %u %u\">\n",
		o->width, f->height, o->width, f->height);
	put_style(f->out);
	fprintf(f->out,
		"<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n"
		"<text id=\"title\" x=\"%u\" y=\"24\">",
		middle);
	put_fitting(f->out, o->title, room, TITLE_CHARACTER);
	fputs("</text>\n", f->out);
	if (o->subtitle) {
		fprintf(f->out, "<text id=\"subtitle\" x=\"%u\" y=\"43\">", middle);
		put_fitting(f->out, o->subtitle, room, CHARACTER);
		fputs("</text>\n", f->out);
	}
	fprintf(f->out,
		"<text id=\"reset\" class=\"button script hidden\" x=\"%u\" y=\"62\">"
		"Reset zoom</text>\n"
		"<text id=\"search\" class=\"button script end hidden\" x=\"%u\" y=\"62\">"
		"Search</text>\n"
		"<text id=\"details\" x=\"%u\" y=\"%u\"></text>\n"
		"<text id=\"matched\" class=\"end\" x=\"%u\" y=\"62\"></text>\n",
		SIDE, right, SIDE, f->height - 12, right - SEARCH_WIDTH);
}

static void put_frame(const struct flame *f, const struct box *b)
{
	const struct path_node *n = path_tree_node(f->tree, b->node);
	struct color c = f->options->is_diff ? change_color(f, n) : memory_color(n->name);
	double x = SIDE + width_of(f, b->begin),
	       width = b->node ? width_of(f, n->total[PATH_NEW]) : f->pixels;
	unsigned y = f->top + (f->max_depth - n->depth) * FRAME_HEIGHT;
	double room = (width - 2 * TEXT_INDENT) / CHARACTER;
	_cleanup_free_ char *shown = text_shorten(n->name, room >= 3 ? (size_t)room : 0);

	fprintf(f->out,
		"<g class=\"frame\" data-begin=\"%" PRIu64 "\" data-value=\"%" PRIu64
		"\" data-depth=\"%u\"><title>",
		b->begin, b->node ? n->total[PATH_NEW] : f->total, n->depth);
	put_escaped(f->out, n->name);
	put_details(f, n);
	fprintf(f->out,
		"</title><rect x=\"%.2f\" y=\"%u\" width=\"%.2f\" height=\"%d\" rx=\"1\" "
		"fill=\"#%02x%02x%02x\"/>"
		"<text x=\"%.2f\" y=\"%u\">",
		x, y, width, FRAME_HEIGHT - 1, c.red, c.green, c.blue, x + TEXT_INDENT, y + 12);
	put_escaped(f->out, shown);
	fputs("</text></g>\n", f->out);
}

static void put_frames(const struct flame *f)
{
	fprintf(f->out,
		"<g id=\"frames\" data-left=\"%d\" data-width=\"%.2f\" data-total=\"%" PRIu64
		"\" data-character=\"%.2f\" data-indent=\"%d\">\n",
		SIDE, f->pixels, f->total, CHARACTER, TEXT_INDENT);
	for (size_t i = 0; i < f->box.count; i++)
		put_frame(f, &f->box.data[i]);
	fputs("</g>\n", f->out);
	if (f->culled)
		fprintf(f->out,
			"<!-- %zu frames narrower than %g px, and what they call, "
			"are left out -->\n",
			f->culled, f->options->min_frame);
}

void flame_write(FILE *out, const struct path_tree *t, const struct flame_options *options)
{
	struct flame f = {
		.out = out,
		.tree = t,
		.options = options,
		.total = MAX(path_tree_node(t, 0)->total[PATH_NEW], 1),
		.pixels = options->width - 2 * SIDE,
		.top = 72,
	};

	lay_out(&f);
	f.height = f.top + (f.max_depth + 1) * FRAME_HEIGHT + BELOW_FRAMES;
	put_head(&f);
	put_frames(&f);
	fputs("<script><![CDATA[\n", out);
	fwrite(flame_script_start, 1, (size_t)(flame_script_end - flame_script_start), out);
	fputs("]]></script>\n</svg>\n", out);
	vec_deinit(&f.box);
}
