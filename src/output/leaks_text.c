/* Records in memcheck's form, then what holds them, and totals. */
#include "output/leaks_text.h"

#include <inttypes.h>
#include <string.h>

#include "base/amount.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "output/leaks_internal.h"

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

static void print_frame(void *ctx, taddr_t pc, const struct symbol *symbol,
			const struct symbol_frame *frame)
{
	struct printer *p = ctx;
	const char *verb = p->is_first ? "at" : "by";
	const char *name = frame->name ? frame->name : "???";

	p->is_first = false;
	if (is_without_code(symbol, frame))
		print_line(p, xasprintf("    %s %s", verb, name));
	else if (frame->file && frame->line)
		print_line(p, xasprintf("    %s 0x%" PRIx64 ": %s (%s:%u)", verb, pc, name,
					frame->file, frame->line));
	else if (symbol->object)
		print_line(p, xasprintf("    %s 0x%" PRIx64 ": %s (in %s)", verb, pc, name,
					symbol->object));
	else
		print_line(p, xasprintf("    %s 0x%" PRIx64 ": %s", verb, pc, name));
}

/* "1,234 bytes in 56 blocks", or "1.2 MiB +- 10 % in about 56 blocks"; the caller frees it. */
static char *sum_text(const struct leaks *l, const struct leak_sum *s)
{
	const struct profile *p = l->report->profile;
	uint64_t count = profile_count(p, s->blocks);
	char bytes[AMOUNT_SIZE], blocks[AMOUNT_SIZE], error[AMOUNT_SIZE];

	amount_commas(count, blocks);
	if (!leaks_are_sampled(l))
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
	double oldest = leaks_age(l, s->oldest), youngest = leaks_age(l, s->youngest);
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
	if (!l->younger.blocks)
		return;
	_cleanup_free_ char *text = sum_text(l, &l->younger);

	print_line(p, xasprintf("  younger than %.3f s: %s, not shown", l->minimum_age / 1000.0,
				text));
}

static void print_sums(const struct leaks *l, const struct printer *p)
{
	for (int k = 0; k < LEAK_KIND_COUNT; k++) {
		if (l->is_checked != (k != LEAK_UNCHECKED))
			continue;
		_cleanup_free_ char *text = sum_text(l, &l->sum[k]);

		print_line(p, xasprintf("  %s: %s", leak_kind_text[k], text));
	}
	print_left_out(l, p);
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
