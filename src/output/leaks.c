/*
 * Sites of live blocks and their two reports; see leaks.h. Counting a block takes one hash look-up
 * by its leaf's node in the report tree. Names are looked up when a site is written, so sites that
 * are not shown cost nothing.
 */
#include "output/leaks.h"

#include <inttypes.h>
#include <string.h>

#include "base/amount.h"
#include "base/cleanup.h"
#include "base/text.h"

static const char *const leak_kind_text[LEAK_KIND_COUNT] = {
	"still allocated", "definitely lost", "indirectly lost", "possibly lost", "still reachable",
};

void leaks_init(struct leaks *l, const struct report *report, uint32_t now, uint32_t minimum_age)
{
	*l = (struct leaks){
		.report = report, .now = now, .minimum_age = minimum_age, .slot_bits = 8};
	l->tree = report_tree_new(report);
	l->slot = xcalloc((size_t)1 << l->slot_bits, sizeof(*l->slot));
}

void leaks_deinit(struct leaks *l)
{
	report_tree_free(l->tree);
	vec_deinit(&l->sites);
	free(l->slot);
	l->slot = NULL;
}

static uint32_t *find_slot(struct leaks *l, uint32_t node, enum leak_kind kind)
{
	uint32_t mask = (1u << l->slot_bits) - 1;
	uint32_t i = (uint32_t)hash_u64((uint64_t)kind << 32 | node) & mask;

	for (; l->slot[i]; i = (i + 1) & mask) {
		const struct leak_site *s = &l->sites.data[l->slot[i] - 1];

		if (s->node == node && s->kind == kind)
			break;
	}
	return &l->slot[i];
}

static void grow_slots(struct leaks *l)
{
	if (l->sites.count + 1 < 1u << (l->slot_bits - 1))
		return;
	free(l->slot);
	l->slot_bits++;
	l->slot = xcalloc((size_t)1 << l->slot_bits, sizeof(*l->slot));
	for (size_t i = 0; i < l->sites.count; i++)
		*find_slot(l, l->sites.data[i].node, l->sites.data[i].kind) = (uint32_t)i + 1;
}

void leaks_add(struct leaks *l, const struct block *block, enum leak_kind kind)
{
	uint32_t node = report_tree_leaf_node(l->tree, block->leaf);
	uint32_t age = l->now > block->time ? l->now - block->time : 0;

	if (node == REPORT_NODE_IGNORED || age < l->minimum_age)
		return;
	grow_slots(l);
	uint32_t *slot = find_slot(l, node, kind);

	if (!*slot) {
		*vec_add(&l->sites) = (struct leak_site){
			.node = node,
			.first_leaf = report_tree_node(l->tree, node)->first_leaf,
			.kind = (uint8_t)kind,
			.oldest = block->time,
			.youngest = block->time,
		};
		*slot = (uint32_t)l->sites.count;
	}
	struct leak_site *s = &l->sites.data[*slot - 1];

	struct weight w = profile_block_weight(l->report->profile, block);

	s->bytes += w.bytes;
	s->blocks += w.blocks;
	s->variance += w.variance;
	s->oldest = MIN(s->oldest, block->time);
	s->youngest = MAX(s->youngest, block->time);
	l->sum[kind].bytes += w.bytes;
	l->sum[kind].blocks += w.blocks;
	l->sum[kind].variance += w.variance;
}

static int add_unchecked(void *ctx, const struct block *block)
{
	leaks_add(ctx, block, LEAK_UNCHECKED);
	return 0;
}

void leaks_add_all(struct leaks *l)
{
	profile_each_block(l->report->profile, add_unchecked, l);
}

static int compare_sites(const void *a, const void *b)
{
	const struct leak_site *x = a, *y = b;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	if (x->blocks != y->blocks)
		return x->blocks > y->blocks ? -1 : 1;
	if (x->first_leaf != y->first_leaf)
		return x->first_leaf < y->first_leaf ? -1 : 1;
	return x->node < y->node ? -1 : x->node > y->node;
}

void leaks_sort(struct leaks *l)
{
	if (l->sites.count > 1)
		qsort(l->sites.data, l->sites.count, sizeof(*l->sites.data), compare_sites);
	memset(l->slot, 0, sizeof(*l->slot) << l->slot_bits);
	for (size_t i = 0; i < l->sites.count; i++)
		*find_slot(l, l->sites.data[i].node, l->sites.data[i].kind) = (uint32_t)i + 1;
}

/* -- paths -- */

typedef void path_frame_fn(void *ctx, taddr_t pc, const struct symbol *symbol,
			   const struct symbol_frame *frame);

/* Calls @fn for each frame of the path that ends at @node, innermost first. */
static void each_frame(const struct leaks *l, uint32_t node, path_frame_fn *fn, void *ctx)
{
	const struct calltree *tree = profile_calltree(l->report->profile);
	VEC(uint32_t) frames = {0};

	for (; node; node = report_tree_node(l->tree, node)->parent)
		*vec_add(&frames) = report_tree_node(l->tree, node)->frame;
	while (frames.count > 0) {
		uint32_t frame = frames.data[--frames.count];
		const struct symbol *symbol =
			l->report->symbol(l->report->symbol_ctx, frame, SYMBOL_ALL);

		for (uint32_t i = 0; i < symbol->count; i++)
			fn(ctx, calltree_frame(tree, frame)->pc, symbol, &symbol->frame[i]);
	}
	vec_deinit(&frames);
}

/* -- text -- */

struct printer {
	leaks_line_fn *line;
	void *ctx;
	bool is_first;
};

/* Names may contain anything: escape what a terminal or parser would interpret. */
static void print_line(const struct printer *p, char *line)
{
	_cleanup_free_ char *clean = text_clean(line, strlen(line));

	p->line(p->ctx, clean);
	free(line);
}

/* Frames like [allocated before attach] have a name alone; their addresses mean nothing. */
static bool is_without_code(const struct symbol *symbol, const struct symbol_frame *frame)
{
	return frame->name && *frame->name == '[' && !frame->file && !symbol->object;
}

/* "f (a.c:7)", "f (in PATH)" or "f"; long names are shortened. The caller frees it. */
static char *frame_label(const struct symbol *symbol, const struct symbol_frame *frame)
{
	const char *name = frame->name ? frame->name : "???";
	_cleanup_free_ char *site = NULL;

	if (frame->file && frame->line)
		site = xasprintf("%s (%s:%u)", name, frame->file, frame->line);
	else if (symbol->object)
		site = xasprintf("%s (in %s)", name, symbol->object);
	return text_site_label(site ? site : name);
}

static void print_frame(void *ctx, taddr_t pc, const struct symbol *symbol,
			const struct symbol_frame *frame)
{
	struct printer *p = ctx;
	const char *verb = p->is_first ? "at" : "by";
	_cleanup_free_ char *label = frame_label(symbol, frame);

	p->is_first = false;
	if (is_without_code(symbol, frame))
		print_line(p, xasprintf("    %s %s", verb, frame->name ? frame->name : "???"));
	else
		print_line(p, xasprintf("    %s 0x%" PRIx64 ": %s", verb, pc, label));
}

static double age_of(const struct leaks *l, uint32_t time)
{
	return l->now > time ? (l->now - time) / 1000.0 : 0;
}

static bool is_sampled(const struct leaks *l)
{
	return profile_options(l->report->profile)->sample_interval != 0;
}

/* "1,234 bytes in 56 blocks", or "1.2 MiB +- 10 % in about 56 blocks"; the caller frees it. */
static char *sum_text(const struct leaks *l, const struct leak_sum *s)
{
	const struct profile *p = l->report->profile;
	uint64_t count = profile_count(p, s->blocks);
	char bytes[AMOUNT_SIZE], blocks[AMOUNT_SIZE], error[AMOUNT_SIZE];

	amount_commas(count, blocks);
	if (!is_sampled(l))
		return xasprintf("%s byte%s in %s block%s", amount_commas(s->bytes, bytes),
				 plural(s->bytes), blocks, plural(count));
	amount_error((double)s->bytes, profile_error(p, s->variance), error);
	return xasprintf("%s%s in about %s block%s", amount_bytes((double)s->bytes, bytes), error,
			 blocks, plural(count));
}

static void print_site(const struct leaks *l, const struct leak_site *s, struct printer *p)
{
	const struct leak_sum sum = {s->bytes, s->blocks, s->variance};
	double oldest = age_of(l, s->oldest), youngest = age_of(l, s->youngest);
	_cleanup_free_ char *text = sum_text(l, &sum);

	if (s->oldest == s->youngest)
		print_line(p, xasprintf("  %s %s, %.3f s old", text, leak_kind_text[s->kind],
					oldest));
	else
		print_line(p, xasprintf("  %s %s, %.3f to %.3f s old", text,
					leak_kind_text[s->kind], oldest, youngest));
	p->is_first = true;
	if (s->node)
		each_frame(l, s->node, print_frame, p);
	else
		print_line(p, xstrdup("    at ??? (no frame is known)"));
}

static void print_sums(const struct leaks *l, const struct printer *p)
{
	for (int k = 0; k < LEAK_KIND_COUNT; k++) {
		if (l->is_checked != (k != LEAK_UNCHECKED))
			continue;
		_cleanup_free_ char *text = sum_text(l, &l->sum[k]);

		print_line(p, xasprintf("  %s: %s", leak_kind_text[k], text));
	}
}

/* Sites without a line of their own. */
struct rest {
	struct leak_sum sum;
	size_t sites;
};

static void add_rest(struct rest *r, const struct leak_site *s)
{
	r->sum.bytes += s->bytes;
	r->sum.blocks += s->blocks;
	r->sum.variance += s->variance;
	r->sites++;
}

static void print_rest(const struct leaks *l, const struct rest *r, const char *what,
		       const struct printer *p)
{
	if (!r->sum.blocks)
		return;
	_cleanup_free_ char *text = sum_text(l, &r->sum);

	print_line(p, xasprintf("  %s of %zu %s", text, r->sites, what));
}

static bool is_resolved(const struct leaks *l, const struct leak_site *s)
{
	double error = profile_error(l->report->profile, s->variance);

	return s->bytes == 0 || !estimate_is_below_resolution((double)s->bytes, error);
}

void leaks_print(const struct leaks *l, size_t max_sites, leaks_line_fn *line, void *ctx)
{
	struct printer p = {line, ctx, true};
	struct rest smaller = {0}, unresolved = {0};
	size_t shown = 0;

	for (size_t i = 0; i < l->sites.count; i++) {
		const struct leak_site *s = &l->sites.data[i];

		if (!is_resolved(l, s)) {
			add_rest(&unresolved, s);
		} else if (shown < max_sites) {
			print_site(l, s, &p);
			shown++;
		} else {
			add_rest(&smaller, s);
		}
	}
	print_rest(l, &smaller,
		   smaller.sites == 1 ? "smaller site are not shown here" :
					"smaller sites are not shown here", &p);
	print_rest(l, &unresolved,
		   unresolved.sites == 1 ? "site below resolution" : "sites below resolution", &p);
	print_sums(l, &p);
}

/* -- JSON -- */

/* The length of the UTF-8 sequence at @s (RFC 3629), 0 if there is none. */
static unsigned sequence_length(const unsigned char *s)
{
	static const struct { unsigned char low, high, second_low, second_high, length;
	} rows[] = {
		{0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
		{0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3},
		{0xee, 0xef, 0x80, 0xbf, 3}, {0xf0, 0xf0, 0x90, 0xbf, 4},
		{0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (*s < rows[i].low || *s > rows[i].high)
			continue;
		if (s[1] < rows[i].second_low || s[1] > rows[i].second_high)
			return 0;
		for (unsigned k = 2; k < rows[i].length; k++)
			if ((s[k] & 0xc0) != 0x80)
				return 0;
		return rows[i].length;
	}
	return 0;
}

static void write_text(FILE *file, const char *text)
{
	fputc('"', file);
	for (const unsigned char *s = (const unsigned char *)text; *s;) {
		unsigned n = *s < 0x80 ? 1 : sequence_length(s);

		if (*s == '"' || *s == '\\')
			fprintf(file, "\\%c", *s);
		else if (*s < ' ' || *s == 0x7f)
			fprintf(file, "\\u%04x", *s);
		else if (n == 0)
			fputs("\\ufffd", file);
		else
			fwrite(s, 1, n, file);
		s += n ? n : 1;
	}
	fputc('"', file);
}

struct json {
	FILE *file;
	bool is_first;
};

static void write_frame(void *ctx, taddr_t pc, const struct symbol *symbol,
			const struct symbol_frame *frame)
{
	struct json *j = ctx;

	fprintf(j->file, "%s\n      {\"address\": \"0x%" PRIx64 "\"", j->is_first ? "" : ",", pc);
	j->is_first = false;
	if (frame->name) {
		fputs(", \"function\": ", j->file);
		write_text(j->file, frame->name);
	}
	if (frame->file) {
		fputs(", \"file\": ", j->file);
		if (frame->dir && *frame->file != '/') {
			_cleanup_free_ char *path = xasprintf("%s/%s", frame->dir, frame->file);
			write_text(j->file, path);
		} else {
			write_text(j->file, frame->file);
		}
	}
	if (frame->line)
		fprintf(j->file, ", \"line\": %u", frame->line);
	if (symbol->object) {
		fputs(", \"object\": ", j->file);
		write_text(j->file, symbol->object);
	}
	fputc('}', j->file);
}

/* The members of @s, separated by @between. */
static void write_sum(FILE *file, const struct leaks *l, const struct leak_sum *s,
		      const char *between)
{
	const struct profile *p = l->report->profile;

	fprintf(file, "\"bytes\": %" PRIu64 "%s", s->bytes, between);
	if (is_sampled(l))
		fprintf(file, "\"error\": %.0f%s", profile_error(p, s->variance), between);
	fprintf(file, "\"blocks\": %" PRIu64, profile_count(p, s->blocks));
}

static void write_site(FILE *file, const struct leaks *l, const struct leak_site *s)
{
	struct json j = {file, true};

	fputs("    {", file);
	if (s->kind != LEAK_UNCHECKED)
		fprintf(file, "\"kind\": \"%s\", ", leak_kind_text[s->kind]);
	write_sum(file, l, &(struct leak_sum){s->bytes, s->blocks, s->variance}, ", ");
	fprintf(file, ", \"oldest\": %.3f, \"youngest\": %.3f, \"stack\": [",
		age_of(l, s->oldest), age_of(l, s->youngest));
	each_frame(l, s->node, write_frame, &j);
	fputs("]}", file);
}

static void write_kinds(FILE *file, const struct leaks *l)
{
	fputs("  \"kinds\": {", file);
	for (int k = LEAK_DEFINITE; k < LEAK_KIND_COUNT; k++) {
		fprintf(file, "%s\n    \"%s\": {", k > LEAK_DEFINITE ? "," : "",
			leak_kind_text[k]);
		write_sum(file, l, &l->sum[k], ", ");
		fputc('}', file);
	}
	fputs("},\n", file);
}

void leaks_write_json(FILE *file, const struct leaks *l)
{
	struct leak_sum all = {0};

	for (int k = 0; k < LEAK_KIND_COUNT; k++) {
		all.bytes += l->sum[k].bytes;
		all.blocks += l->sum[k].blocks;
		all.variance += l->sum[k].variance;
	}
	fputs("{\n", file);
	if (is_sampled(l))
		fprintf(file, "  \"heap_sample\": %" PRIu64 ",\n",
			profile_options(l->report->profile)->sample_interval);
	fprintf(file, "  \"pid\": %u,\n  \"command\": ", l->report->pid);
	write_text(file, l->report->command);
	fprintf(file, ",\n  \"age\": %.3f,\n  ", l->minimum_age / 1000.0);
	write_sum(file, l, &all, ",\n  ");
	fputs(",\n", file);
	if (l->is_checked)
		write_kinds(file, l);
	fputs("  \"sites\": [", file);
	for (size_t i = 0; i < l->sites.count; i++) {
		fputs(i > 0 ? ",\n" : "\n", file);
		write_site(file, l, &l->sites.data[i]);
	}
	fputs("]\n}\n", file);
}
