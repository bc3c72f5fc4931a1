/* JSON is written by hand, in one pass: nothing is built in memory. */
#include "output/leaks_json.h"

#include <inttypes.h>

#include "base/cleanup.h"
#include "output/leaks_internal.h"

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
	struct json j = {file, true};

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
	fprintf(file, ",\n  \"age\": %.3f,\n  ", l->minimum_age / 1000.0);
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
