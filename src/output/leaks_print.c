/* Leaks as text and as JSON. */
#include "output/leaks.h"

#include <inttypes.h>
#include <string.h>

#include "base/amount.h"
#include "base/cleanup.h"
#include "base/text.h"

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

	print_line(p, xasprintf("  younger than %.3f s: %s, not shown",
				(double)l->minimum_age / 1e6, text));
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

/* JSON is written by hand, in one pass: nothing is built in memory. */

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

struct leaks_json {
	FILE *file;
	bool is_first;
};

static void write_frame(void *ctx, taddr_t pc, const struct symbol *symbol,
			const struct symbol_frame *frame)
{
	struct leaks_json *j = ctx;

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
	if (leaks_are_sampled(l))
		fprintf(file, "\"error\": %.0f%s", profile_error(p, s->variance), between);
	fprintf(file, "\"blocks\": %" PRIu64, profile_count(p, s->blocks));
}

static void write_chain(FILE *file, const struct leak_holders *h, uint32_t chain)
{
	const struct leak_link *link = &h->links.data[chain];

	if (!chain)
		return;
	write_chain(file, h, link->before); /* at most LEAK_CHAIN_MAX */
	if (link->before)
		fputs(", ", file);
	write_text(file, h->text.data[link->text]);
}

static void write_holders(FILE *file, const struct leak_holders *h, uint32_t id)
{
	size_t first, count = leak_holders_find(h, id, &first);

	fputs("\"holders\": [", file);
	for (size_t i = 0; i < count; i++) {
		const struct leak_held *held = &h->held.data[first + i];

		fprintf(file, "%s{\"bytes\": %" PRIu64 ", \"blocks\": %" PRIu64 ", \"chain\": [",
			i > 0 ? ", " : "", held->bytes, held->blocks);
		write_chain(file, h, held->chain);
		fputs("]}", file);
	}
	fputs("], ", file);
}

static void write_suppressed(FILE *file, const struct leaks *l)
{
	bool is_first = true;

	fputs("  \"suppressed\": [", file);
	for (size_t i = 0; i < l->suppressed.count; i++) {
		if (!l->suppressed.data[i].blocks)
			continue;
		fprintf(file, "%s\n    {\"name\": ", is_first ? "" : ",");
		write_text(file, suppressions_name(l->suppressions, (uint32_t)i));
		fputs(", ", file);
		write_sum(file, l, &l->suppressed.data[i], ", ");
		fputc('}', file);
		is_first = false;
	}
	fputs("],\n", file);
}

static void write_site(FILE *file, const struct leaks *l, const struct leak_site *s)
{
	struct leaks_json j = {file, true};

	fputs("    {", file);
	if (s->kind != LEAK_UNCHECKED)
		fprintf(file, "\"kind\": \"%s\", ", leak_kind_text[s->kind]);
	write_sum(file, l, &(struct leak_sum){s->bytes, s->blocks, s->variance}, ", ");
	if (s->indirect_blocks) {
		fputs(", \"indirect\": {", file);
		write_sum(file, l, &(struct leak_sum){s->indirect_bytes, s->indirect_blocks, 0},
			  ", ");
		fputc('}', file);
	}
	fprintf(file, ", \"oldest\": %.3f, \"youngest\": %.3f, ", leaks_age(l, s->oldest),
		leaks_age(l, s->youngest));
	if (l->holders && s->kind >= LEAK_POSSIBLE)
		write_holders(file, l->holders, s->id);
	fputs("\"stack\": [", file);
	leaks_each_frame(l, s->node, write_frame, &j);
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

static void write_sites(FILE *file, const struct leaks *l)
{
	fputs("  \"sites\": [", file);
	for (size_t i = 0; i < l->sites.count; i++) {
		fputs(i > 0 ? ",\n" : "\n", file);
		write_site(file, l, &l->sites.data[i]);
	}
	fputs("]\n", file);
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
	if (leaks_are_sampled(l))
		fprintf(file, "  \"heap_sample\": %" PRIu64 ",\n",
			profile_options(l->report->profile)->sample_interval);
	fprintf(file, "  \"pid\": %u,\n  \"command\": ", l->report->pid);
	write_text(file, l->report->command);
	fprintf(file, ",\n  \"age\": %.3f,\n  ", (double)l->minimum_age / 1e6);
	write_sum(file, l, &all, ",\n  ");
	fputs(",\n", file);
	fputs("  \"younger\": {", file);
	write_sum(file, l, &l->younger, ", ");
	fputs("},\n", file);
	if (l->suppressions)
		write_suppressed(file, l);
	if (l->is_checked)
		write_kinds(file, l);
	write_sites(file, l);
	fputs("}\n", file);
}
