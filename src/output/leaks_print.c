/*
 * Leaks as text, which the caller prints line by line, and as JSON (leaks.h has its schema). Both
 * have the sites in the same order, with the same frames.
 */
#include "output/leaks.h"

#include <inttypes.h>
#include <string.h>

#include "base/amount.h"
#include "base/cleanup.h"
#include "base/json_write.h"
#include "base/text.h"

struct printer {
	leaks_line_fn *line;
	void *ctx;
	bool is_first;
};

/* Seconds since @time, profile_block_clock. */
static double age_of(const struct leaks *l, uint64_t time_us)
{
	return l->now > time_us ? (double)(l->now - time_us) / 1e6 : 0;
}

/* Whether numbers are estimates. */
static bool is_sampled(const struct leaks *l)
{
	return profile_options(l->report->profile)->sample_interval != 0;
}

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

/* "2 bytes (1 direct, 1 indirect) in 2 blocks (1 direct, 1 indirect)"; the caller frees it. */
static char *tree_text(const struct leaks *l, const struct leak_site *s)
{
	uint64_t direct = profile_count(l->report->profile, s->blocks),
		 indirect = profile_count(l->report->profile, s->indirect_blocks);
	char bytes[4][AMOUNT_SIZE], blocks[4][AMOUNT_SIZE];

	return xasprintf("%s bytes (%s direct, %s indirect) in %s blocks (%s direct, %s indirect)",
			 amount_commas(s->bytes + s->indirect_bytes, bytes[0]),
			 amount_commas(s->bytes, bytes[1]),
			 amount_commas(s->indirect_bytes, bytes[2]),
			 amount_commas(direct + indirect, blocks[0]),
			 amount_commas(direct, blocks[1]), amount_commas(indirect, blocks[2]));
}

/* -- what holds a site -- */

#define HOLDERS_SHOWN 3u

/* "root -> site -> site"; the caller frees it. */
static char *chain_text(const struct leak_holders *h, uint32_t chain)
{
	char *text = NULL;

	for (; chain; chain = h->links.data[chain].before) {
		const char *link = h->text.data[h->links.data[chain].text];
		char *longer = text ? xasprintf("%s -> %s", link, text) : xstrdup(link);

		free(text);
		text = longer;
	}
	return text ? text : xstrdup("?");
}

static void print_holders(const struct leaks *l, const struct leak_site *s,
			  const struct printer *p)
{
	size_t first, count = l->holders ? leak_holders_find(l->holders, s->id, &first) : 0;

	for (size_t i = 0; i < MIN(count, HOLDERS_SHOWN); i++) {
		const struct leak_held *held = &l->holders->held.data[first + i];
		_cleanup_free_ char *chain = chain_text(l->holders, held->chain);
		char bytes[AMOUNT_SIZE], blocks[AMOUNT_SIZE];

		print_line(p, xasprintf("    held by %s: %s byte%s in %s block%s", chain,
					amount_commas(held->bytes, bytes), plural(held->bytes),
					amount_commas(held->blocks, blocks),
					plural(held->blocks)));
	}
	if (count > HOLDERS_SHOWN)
		print_line(p, xasprintf("    and by %zu other chain%s", count - HOLDERS_SHOWN,
					plural(count - HOLDERS_SHOWN)));
}

static void print_entry_line(void *printer, const char *text)
{
	const struct printer *p = printer;

	print_line(p, xasprintf("%s", text));
}

static void print_entry(const struct leaks *l, const struct leak_site *s, struct printer *p)
{
	struct leak_stack stack = {0};

	if (!l->has_entries || s->kind == LEAK_UNCHECKED)
		return;
	/* only caches names */
	leaks_list_stack((struct leaks *)l, s->node, true, &stack);
	suppressions_print(s->kind - LEAK_DEFINITE, stack.list.data, stack.list.count,
			   print_entry_line, p);
	leak_stack_deinit(&stack);
}

static void print_site(const struct leaks *l, const struct leak_site *s, struct printer *p)
{
	const struct leak_sum sum = {s->bytes, s->blocks, s->variance};
	double oldest = age_of(l, s->oldest), youngest = age_of(l, s->youngest);
	_cleanup_free_ char *text = s->indirect_blocks ? tree_text(l, s) : sum_text(l, &sum);

	if (s->oldest == s->youngest)
		print_line(p, xasprintf("  %s %s, %.3f s old", text, leak_kind_text[s->kind],
					oldest));
	else
		print_line(p, xasprintf("  %s %s, %.3f to %.3f s old", text,
					leak_kind_text[s->kind], oldest, youngest));
	p->is_first = true;
	if (s->node)
		leaks_each_frame(l, s->node, print_frame, p);
	else
		print_line(p, xstrdup("    at ??? (no frame is known)"));
	print_holders(l, s, p);
	print_entry(l, s, p);
}

static void print_left_out(const struct leaks *l, const struct printer *p)
{
	for (size_t i = 0; i < l->suppressed.count; i++) {
		if (!l->suppressed.data[i].blocks)
			continue;
		_cleanup_free_ char *text = sum_text(l, &l->suppressed.data[i]);

		print_line(p, xasprintf("  suppressed: %s by %s", text,
					suppressions_name(l->suppressions, (uint32_t)i)));
	}
	if (l->outer.blocks) {
		_cleanup_free_ char *text = sum_text(l, &l->outer);

		print_line(p, xasprintf("  not judged: %s, in which other blocks lie", text));
	}
	if (!l->younger.blocks)
		return;
	_cleanup_free_ char *text = sum_text(l, &l->younger);

	print_line(p, xasprintf("  younger than %.3f s: %s, not shown",
				(double)l->minimum_age / 1e6, text));
}

/* What makes the result doubtful. The caller frees it; NULL = nothing. */
static char *doubt_text(const struct leaks *l)
{
	return l->lost_text ? xasprintf("doubtful: %s, so some of these blocks may have been "
					"released, or others be absent; see --max-wait",
					l->lost_text) :
			      NULL;
}

static void print_sums(const struct leaks *l, const struct printer *p)
{
	_cleanup_free_ char *doubt = doubt_text(l);

	for (int k = 0; k < LEAK_KIND_COUNT; k++) {
		if (l->is_checked != (k != LEAK_UNCHECKED))
			continue;
		_cleanup_free_ char *text = sum_text(l, &l->sum[k]);

		print_line(p, xasprintf("  %s: %s", leak_kind_text[k], text));
	}
	print_left_out(l, p);
	if (doubt)
		print_line(p, xasprintf("  %s", doubt));
}

void leaks_print_sums(const struct leaks *l, leaks_line_fn *line, void *ctx)
{
	print_sums(l, &(struct printer){line, ctx, true});
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

		if (!(l->shown_kinds & 1u << s->kind))
			continue;
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

/* -- the brief report -- */

/* The innermost frame is the first one. */
static void take_label(void *ctx, taddr_t pc, const struct symbol *symbol,
		       const struct symbol_frame *frame)
{
	char **label = ctx;

	(void)pc;
	if (!*label)
		*label = frame_label(symbol, frame);
}

void leaks_brief(const struct leaks *l, struct brief *b)
{
	for (int k = 0; k < LEAK_KIND_COUNT; k++) {
		if (l->is_checked != (k != LEAK_UNCHECKED))
			continue;
		_cleanup_free_ char *text = sum_text(l, &l->sum[k]);

		brief_add_fact(b, xasprintf("%s: %s", leak_kind_text[k], text));
	}
	if (l->outer.blocks) {
		_cleanup_free_ char *text = sum_text(l, &l->outer);

		brief_add_fact(b, xasprintf("not judged: %s", text));
	}
	if (l->lost_text)
		brief_add_fact(b, doubt_text(l));
	for (size_t i = 0; i < l->sites.count; i++) {
		const struct leak_site *s = &l->sites.data[i];
		char blocks[AMOUNT_SIZE], *label = NULL;

		if (!(l->shown_kinds & 1u << s->kind) || !is_resolved(l, s))
			continue;
		amount_commas(profile_count(l->report->profile, s->blocks), blocks);
		leaks_each_frame(l, s->node, take_label, &label);
		brief_add(b, s->bytes, xasprintf("%s, in %s blocks of", leak_kind_text[s->kind],
						 blocks),
			  label ? label : xstrdup("???"), NULL);
	}
}

/* -- JSON -- */

static void write_frame(void *ctx, taddr_t pc, const struct symbol *symbol,
			const struct symbol_frame *frame)
{
	struct json_writer *w = ctx;

	json_write_open(json_write_line(w, 6), NULL, '{');
	json_write_format(w, "address", "\"0x%" PRIx64 "\"", pc);
	if (frame->name)
		json_write_text(w, "function", frame->name);
	if (frame->file) {
		_cleanup_free_ char *path =
			frame->dir && *frame->file != '/' ?
				xasprintf("%s/%s", frame->dir, frame->file) : NULL;

		json_write_text(w, "file", path ? path : frame->file);
	}
	if (frame->line)
		json_write_number(w, "line", frame->line);
	if (symbol->object)
		json_write_text(w, "object", symbol->object);
	json_write_close(w, 1);
}

/* The members of @s; those after the first begin a line if @has_lines. */
static void write_sum(struct json_writer *w, const struct leaks *l, const struct leak_sum *s,
		      bool has_lines)
{
	const struct profile *p = l->report->profile;

	json_write_number(w, "bytes", s->bytes);
	if (has_lines)
		json_write_line(w, 2);
	if (is_sampled(l)) {
		json_write_format(w, "error", "%.0f", profile_error(p, s->variance));
		if (has_lines)
			json_write_line(w, 2);
	}
	json_write_number(w, "blocks", profile_count(p, s->blocks));
}

static void write_chain(struct json_writer *w, const struct leak_holders *h, uint32_t chain)
{
	const struct leak_link *link = &h->links.data[chain];

	if (!chain)
		return;
	write_chain(w, h, link->before); /* at most LEAK_CHAIN_MAX */
	json_write_text(w, NULL, h->text.data[link->text]);
}

static void write_holders(struct json_writer *w, const struct leak_holders *h, uint32_t id)
{
	size_t first, count = leak_holders_find(h, id, &first);

	json_write_open(w, "holders", '[');
	for (size_t i = 0; i < count; i++) {
		const struct leak_held *held = &h->held.data[first + i];

		json_write_open(w, NULL, '{');
		json_write_numbers(w, {"bytes", held->bytes}, {"blocks", held->blocks});
		json_write_open(w, "chain", '[');
		write_chain(w, h, held->chain);
		json_write_close(w, 2);
	}
	json_write_close(w, 1);
}

static void write_suppressed(struct json_writer *w, const struct leaks *l)
{
	json_write_open(w, "suppressed", '[');
	for (size_t i = 0; i < l->suppressed.count; i++) {
		if (!l->suppressed.data[i].blocks)
			continue;
		json_write_open(json_write_line(w, 4), NULL, '{');
		json_write_text(w, "name", suppressions_name(l->suppressions, (uint32_t)i));
		write_sum(w, l, &l->suppressed.data[i], false);
		json_write_close(w, 1);
	}
	json_write_close(w, 1);
}

static void write_site(struct json_writer *w, const struct leaks *l, const struct leak_site *s)
{
	json_write_open(json_write_line(w, 4), NULL, '{');
	if (s->kind != LEAK_UNCHECKED)
		json_write_text(w, "kind", leak_kind_text[s->kind]);
	write_sum(w, l, &(struct leak_sum){s->bytes, s->blocks, s->variance}, false);
	if (s->indirect_blocks) {
		json_write_open(w, "indirect", '{');
		write_sum(w, l, &(struct leak_sum){s->indirect_bytes, s->indirect_blocks, 0},
			  false);
		json_write_close(w, 1);
	}
	json_write_format(w, "oldest", "%.3f", age_of(l, s->oldest));
	json_write_format(w, "youngest", "%.3f", age_of(l, s->youngest));
	if (l->holders && s->kind >= LEAK_POSSIBLE)
		write_holders(w, l->holders, s->id);
	json_write_open(w, "stack", '[');
	leaks_each_frame(l, s->node, write_frame, w);
	json_write_close(w, 2);
}

static void write_kinds(struct json_writer *w, const struct leaks *l)
{
	json_write_open(w, "kinds", '{');
	for (int k = LEAK_DEFINITE; k < LEAK_KIND_COUNT; k++) {
		json_write_open(json_write_line(w, 4), leak_kind_text[k], '{');
		write_sum(w, l, &l->sum[k], false);
		json_write_close(w, 1);
	}
	json_write_close(w, 1);
	json_write_line(w, 2);
}

void leaks_write_json(FILE *file, const struct leaks *l)
{
	struct json_writer w = {.out = file, .is_spaced = true, .escape = JSON_EXACT};
	struct leak_sum all = {0};

	for (int k = 0; k < LEAK_KIND_COUNT; k++) {
		all.bytes += l->sum[k].bytes;
		all.blocks += l->sum[k].blocks;
		all.variance += l->sum[k].variance;
	}
	json_write_open(&w, NULL, '{');
	json_write_line(&w, 2);
	if (is_sampled(l)) {
		json_write_number(&w, "heap_sample",
				  profile_options(l->report->profile)->sample_interval);
		json_write_line(&w, 2);
	}
	json_write_number(&w, "pid", l->report->pid);
	json_write_text(json_write_line(&w, 2), "command", l->report->command);
	json_write_format(json_write_line(&w, 2), "age", "%.3f", (double)l->minimum_age / 1e6);
	json_write_line(&w, 2);
	write_sum(&w, l, &all, true);
	json_write_open(json_write_line(&w, 2), "younger", '{');
	write_sum(&w, l, &l->younger, false);
	json_write_close(&w, 1);
	json_write_line(&w, 2);
	if (l->suppressions) {
		write_suppressed(&w, l);
		json_write_line(&w, 2);
	}
	if (l->outer.blocks) {
		json_write_open(&w, "outer", '{');
		write_sum(&w, l, &l->outer, false);
		json_write_close(&w, 1);
		json_write_line(&w, 2);
	}
	if (l->lost_text) {
		json_write_open(&w, "missing", '{');
		json_write_number(&w, "allocations", l->lost.allocations);
		json_write_number(&w, "bytes", l->lost.bytes);
		json_write_number(&w, "releases", l->lost.releases);
		json_write_close(&w, 1);
		json_write_line(&w, 2);
	}
	if (l->is_checked)
		write_kinds(&w, l);
	json_write_open(&w, "sites", '[');
	for (size_t i = 0; i < l->sites.count; i++)
		write_site(&w, l, &l->sites.data[i]);
	json_write_close(&w, 1);
	json_write_close(json_write_line(&w, 0), 1);
	fputc('\n', file);
}
