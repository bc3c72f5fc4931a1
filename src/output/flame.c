/*
 * A path tree as an interactive SVG.
 *
 * First every frame gets a box with a start and a value, both in the tree's own unit, children side
 * by side in the order of their names. Boxes too narrow to be visible are left out with everything
 * above them. Then the boxes are drawn; each contains its start and value for the script, which
 * redraws them at another scale.
 *
 * Colours depend on a function's object and name, so that it looks the same in each graph; in a
 * comparison of two profiles, on growth. A legend explains them.
 */
#include "output/flame.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/amount.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/text.h"
#include "output/path_tree.h"

#define FRAME_HEIGHT 17
#define SIDE 10          /* margins left and right */
#define CHARACTER 7.25   /* width of a character, 12 px monospace: 0.602 em and some spacing */
#define TITLE_CHARACTER 10.3
#define TEXT_INDENT 3
#define LEGEND_LINE 62
#define BUTTON_LINE 82
#define FRAMES_BELOW 92
#define BELOW_FRAMES 34
#define SEARCH_WIDTH 100 /* width of "Reset search" and spacing; the matched share is next to it */
#define SWATCH 11

/* The script, from the files next to this one; relative to the directory where make runs. */
__asm__(".pushsection .rodata\n"
	"flame_script_start: .incbin \"src/output/shorten.js\"\n"
	".incbin \"src/output/flame.js\"\n"
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
	VEC(struct box) box;  /* callers before callees */
	uint64_t *value;      /* by node: its width in the graph's unit */
	uint64_t total;       /* the root's value; at least 1 */
	uint64_t max_change;  /* the largest difference of a frame other than the root */
	double pixels;        /* the root's width */
	uint32_t max_depth;   /* of the boxes */
	size_t culled;        /* boxes left out, not counting those above them */
	unsigned top, height; /* top of the frames; height of the picture */
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

/*
 * Widths are the new values. In a comparison each path is as wide as the larger of its two values,
 * so that paths which have disappeared are visible, too.
 */
static void find_values(struct flame *f)
{
	uint32_t count = path_tree_node_count(f->tree);

	f->value = xcalloc(count, sizeof(*f->value));
	for (uint32_t i = count; i-- > 0;) {
		const struct path_node *n = path_tree_node(f->tree, i);

		f->value[i] += f->options->is_diff ? MAX(n->own[PATH_OLD], n->own[PATH_NEW]) :
						     n->own[PATH_NEW];
		if (i)
			f->value[n->parent] += f->value[i];
	}
	f->total = MAX(f->value[0], 1);
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

	if (f->value[0])
		add_box(f, 0, 0);
	for (size_t i = 0; i < f->box.count; i++) {
		uint64_t begin = f->box.data[i].begin;
		uint32_t count =
			path_tree_children(f->tree, f->box.data[i].node, &child, &capacity);

		for (uint32_t c = 0; c < count; c++) {
			uint64_t value = f->value[child[c]];

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

static void put_commas(FILE *out, uint64_t value)
{
	char text[AMOUNT_SIZE];

	fputs(amount_commas(value, text), out);
}

/*
 * "(1,234 bytes, 5.67%)", with "+- 10 %" after the bytes if they are estimates: the script finds a
 * frame's name before the last " (".
 */
static void put_details(const struct flame *f, const struct path_node *n)
{
	double bytes = (double)n->total[PATH_NEW];
	char error[AMOUNT_SIZE];

	amount_error(bytes, sqrt(n->variance[PATH_NEW]), error);
	fputs(" (", f->out);
	put_commas(f->out, n->total[PATH_NEW]);
	fprintf(f->out, " %s%s, %.2f%%", f->options->unit, error,
		(double)n->total[PATH_NEW] * 100 /
			(double)MAX(path_tree_node(f->tree, 0)->total[PATH_NEW], 1));
	if (f->options->is_diff) {
		fputs(n->total[PATH_NEW] < n->total[PATH_OLD] ? "; -" : "; +", f->out);
		put_commas(f->out, change_of(n));
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

/* By enum frame_kind: the darkest and the lightest colour, and the text of the legend. */
static const struct {
	struct color from, to;
	const char *label;
} kinds[FRAME_KINDS] = {
	[FRAME_PROGRAM] = {{90, 190, 105}, {170, 235, 175}, "program"},
	[FRAME_LIBC] = {{105, 170, 225}, {160, 205, 245}, "libc"},
	[FRAME_STANDARD] = {{225, 205, 75}, {240, 228, 125}, "standard library (C++, Rust)"},
	[FRAME_LIBRARY] = {{235, 150, 95}, {250, 190, 145}, "other libraries"},
	[FRAME_NONE] = {{190, 190, 190}, {205, 205, 205}, "no function"},
};

static struct color kind_color(enum frame_kind kind, const char *name)
{
	const struct color from = kinds[kind].from, to = kinds[kind].to;
	uint32_t h = hash_name(name);
	unsigned a = h & 0xff, b = h >> 8 & 0xff;

	return (struct color){
		from.red + (to.red - from.red) * a / 255,
		from.green + (to.green - from.green) * b / 255,
		from.blue + (to.blue - from.blue) * a / 255,
	};
}

/* Red for growth, blue for shrinkage, paler if it is small; grey for neither. @share: -1 .. 1. */
static struct color share_color(double share)
{
	unsigned pale = (unsigned)(215 - 150 * sqrt(fabs(share)));

	if (share == 0)
		return (struct color){238, 238, 238};
	return share > 0 ? (struct color){250, pale, pale} : (struct color){pale, pale + 25, 250};
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
	_cleanup_free_ char *fitting = text_cut(clean, (size_t)(width / character));

	xml_put_text(out, fitting);
}

/* "64.3 MiB (67,433,908 bytes)" */
static void put_total(FILE *out, uint64_t value, const char *unit)
{
	static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double scaled = (double)value / 1024;
	size_t i = 0;

	for (; scaled >= 1024 && i + 1 < ARRAY_SIZE(units); i++)
		scaled /= 1024;
	bool is_large = value >= 1024 && !strcmp(unit, "bytes");

	if (is_large)
		fprintf(out, "%.*f %s (", scaled < 10 ? 2 : scaled < 100 ? 1 : 0, scaled, units[i]);
	put_commas(out, value);
	fprintf(out, " %s%s", unit, is_large ? ")" : "");
}

static void put_subtitle(const struct flame *f, unsigned room)
{
	_cleanup_free_ char *total = NULL;
	const char *subtitle = f->options->subtitle;
	size_t size;
	FILE *memory = open_memstream(&total, &size);

	CHECK(memory);
	fputs("total ", memory);
	put_total(memory, path_tree_node(f->tree, 0)->total[PATH_NEW], f->options->unit);
	CHECK(!fclose(memory));
	fprintf(f->out, "<text id=\"subtitle\" x=\"%u\" y=\"43\">", f->options->width / 2);
	if (subtitle) {
		double taken = ((double)size + 2) * CHARACTER;

		put_fitting(f->out, subtitle, room > taken ? (unsigned)(room - taken) : 0,
			    CHARACTER);
		fputs("; ", f->out);
	}
	fprintf(f->out, "%s</text>\n", total);
}

/* A square of the legend at *@x, followed by @text; *@x: the position of the next one. */
static void put_swatch(const struct flame *f, struct color c, const char *text, double *x)
{
	fprintf(f->out,
		"<rect x=\"%.2f\" y=\"%d\" width=\"%d\" height=\"%d\" "
		"fill=\"#%02x%02x%02x\"/>",
		*x, LEGEND_LINE - SWATCH + 1, SWATCH, SWATCH, c.red, c.green, c.blue);
	*x += SWATCH;
	if (!text)
		return;
	fprintf(f->out, "<text x=\"%.2f\" y=\"%d\">%s</text>\n", *x + 4, LEGEND_LINE, text);
	*x += 4 + (double)(strlen(text) + 2) * CHARACTER;
}

static void put_kinds(const struct flame *f)
{
	bool is_there[FRAME_KINDS] = {false};
	double x = SIDE;

	for (size_t i = 1; i < f->box.count; i++)
		is_there[path_tree_node(f->tree, f->box.data[i].node)->kind] = true;
	for (int kind = 0; kind < FRAME_KINDS; kind++)
		if (is_there[kind])
			put_swatch(f, kinds[kind].from, kinds[kind].label, &x);
}

/* The scale of changes: "shrank by up to N [][][] [] [][][] grew by up to N". */
static void put_scale(const struct flame *f)
{
	static const double share[] = {-1, -0.3, -0.05, 0, 0.05, 0.3, 1};
	_cleanup_free_ char *change = NULL;
	size_t size;
	FILE *memory = open_memstream(&change, &size);

	CHECK(memory);
	put_total(memory, f->max_change, f->options->unit);
	CHECK(!fclose(memory));
	_cleanup_free_ char *shrank = xasprintf("shrank by up to %s", change);
	_cleanup_free_ char *grew = xasprintf("grew by as much; grey: as before");
	double x = SIDE + (double)(strlen(shrank) + 1) * CHARACTER;

	fprintf(f->out, "<text x=\"%d\" y=\"%d\">%s</text>\n", SIDE, LEGEND_LINE, shrank);
	for (size_t i = 0; i < ARRAY_SIZE(share); i++)
		put_swatch(f, share_color(share[i]), i + 1 < ARRAY_SIZE(share) ? NULL : grew, &x);
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
	put_subtitle(f, room);
	fputs("<g id=\"legend\">\n", f->out);
	if (o->is_diff && f->box.count)
		put_scale(f);
	else
		put_kinds(f);
	fputs("</g>\n", f->out);
	fprintf(f->out,
		"<text id=\"reset\" class=\"button script hidden\" x=\"%u\" y=\"%d\">"
		"Reset zoom</text>\n"
		"<text id=\"search\" class=\"button script end hidden\" x=\"%u\" y=\"%d\">"
		"Search</text>\n"
		"<text id=\"details\" x=\"%u\" y=\"%u\"></text>\n"
		"<text id=\"matched\" class=\"end\" x=\"%u\" y=\"%d\"></text>\n",
		SIDE, BUTTON_LINE, right, BUTTON_LINE, SIDE, f->height - 12, right - SEARCH_WIDTH,
		BUTTON_LINE);
}

static void put_frame(const struct flame *f, const struct box *b)
{
	const struct path_node *n = path_tree_node(f->tree, b->node);
	double share = MIN(1.0, (double)change_of(n) / (double)MAX(f->max_change, 1));
	bool has_grown = n->total[PATH_NEW] > n->total[PATH_OLD];
	struct color c = f->options->is_diff ? share_color(has_grown ? share : -share) :
						kind_color(n->kind, n->name);
	uint64_t value = f->value[b->node];
	double x = SIDE + width_of(f, b->begin), width = width_of(f, value);
	unsigned y = f->top + (f->max_depth - n->depth) * FRAME_HEIGHT;
	double room = (width - 2 * TEXT_INDENT) / CHARACTER;
	_cleanup_free_ char *shown = text_shorten(n->name, room >= 3 ? (size_t)room : 0);

	fprintf(f->out,
		"<g class=\"frame\" data-begin=\"%" PRIu64 "\" data-value=\"%" PRIu64
		"\" data-depth=\"%u\"><title>",
		b->begin, value, n->depth);
	xml_put_text(f->out, n->name);
	put_details(f, n);
	fprintf(f->out,
		"</title><rect x=\"%.2f\" y=\"%u\" width=\"%.2f\" height=\"%d\" rx=\"1\" "
		"fill=\"#%02x%02x%02x\"/>"
		"<text x=\"%.2f\" y=\"%u\">",
		x, y, width, FRAME_HEIGHT - 1, c.red, c.green, c.blue, x + TEXT_INDENT, y + 12);
	xml_put_text(f->out, shown);
	fputs("</text></g>\n", f->out);
}

static void put_frames(const struct flame *f)
{
	fprintf(f->out,
		"<g id=\"frames\" data-left=\"%d\" data-width=\"%.2f\" data-total=\"%" PRIu64
		"\" data-character=\"%.2f\" data-indent=\"%d\" data-search=\"%d\"%s>\n",
		SIDE, f->pixels, f->total, CHARACTER, TEXT_INDENT, SEARCH_WIDTH,
		f->options->is_fixed ? " data-fixed=\"\"" : "");
	for (size_t i = 0; i < f->box.count; i++)
		put_frame(f, &f->box.data[i]);
	fputs("</g>\n", f->out);
	if (!f->box.count)
		fprintf(f->out,
			"<text id=\"empty\" x=\"%u\" y=\"%u\" text-anchor=\"middle\">"
			"Nothing to draw: no %s.</text>\n",
			f->options->width / 2, f->top + 12, f->options->unit);
	if (f->culled)
		fprintf(f->out,
			"<!-- %zu frame%s narrower than %g px, and the calls above, "
			"are left out -->\n",
			f->culled, plural(f->culled), f->options->min_frame);
}

void flame_write(FILE *out, const struct path_tree *whole, const struct flame_options *options)
{
	struct path_tree *folded = path_tree_fold_unnamed(whole);
	struct path_tree *t = path_tree_merge_unresolved(folded);
	struct flame f = {
		.out = out,
		.tree = t,
		.options = options,
		.pixels = options->width - 2 * SIDE,
		.top = FRAMES_BELOW,
	};

	find_values(&f);
	lay_out(&f);
	f.height = f.top + (f.max_depth + 1) * FRAME_HEIGHT + BELOW_FRAMES;
	put_head(&f);
	put_frames(&f);
	fputs("<script><![CDATA[\n", out);
	fwrite(flame_script_start, 1, (size_t)(flame_script_end - flame_script_start), out);
	fputs("]]></script>\n</svg>\n", out);
	vec_deinit(&f.box);
	free(f.value);
	path_tree_free(folded);
	path_tree_free(t);
}
