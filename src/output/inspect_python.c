/* See inspect_python.h. */
#include "output/inspect_python.h"

#include <inttypes.h>
#include <string.h>

#include "base/amount.h"
#include "base/json_text.h"
#include "base/text.h"
#include "output/inspect_types.h"

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

/* -- text -- */

void inspect_python_print_summary(FILE *f, const struct inspect_report *r)
{
	char live[AMOUNT_SIZE], unused[AMOUNT_SIZE];
	uint64_t used = r->row[ROW_PYTHON_LIVE].resident;
	uint64_t empty = r->row[ROW_PYTHON_FREE].resident + r->row[ROW_PYTHON_POOLS].resident;

	if (r->python.found != PYMALLOC_FOUND)
		return;
	fprintf(f, "%s (%.1f %%) in live blocks of Python's allocator, %s (%.1f %%) free in it\n",
		amount_bytes((double)used, live), percent(used, r->all.resident),
		amount_bytes((double)empty, unused), percent(empty, r->all.resident));
}

static void print_steps(FILE *f, const struct python_report *p)
{
	char blocks[AMOUNT_SIZE], unused[AMOUNT_SIZE];

	fprintf(f, "\n%14s %10s %6s %10s %12s\n", "live part", "arenas", "", "free", "live blocks");
	for (size_t i = 0; i < PYTHON_STEPS; i++) {
		const struct python_arenas *a = &p->step[i];

		fprintf(f, "%4u %%%s %10" PRIu64 " %5.1f%% %10s %12s\n", python_step[i],
			i + 1 < PYTHON_STEPS ? " or less" : "        ", a->count,
			percent(a->count, p->all.count), amount_bytes((double)a->free, unused),
			amount_commas(a->blocks, blocks));
	}
}

static void print_pins(FILE *f, const struct inspect_report *r, size_t rows)
{
	const struct python_report *p = &r->python;
	char text[INSPECT_TYPE_SIZE], blocks[AMOUNT_SIZE];

	if (p->pins.count > 0)
		fprintf(f, "\nnearly empty arenas (at most %u %% live) are pinned by:\n",
			PYTHON_FEW);
	for (size_t i = 0; i < MIN(rows, p->pins.count); i++) {
		const struct python_pin *e = &p->pins.data[i];
		const struct block_type *t = &r->types.list.data[e->type];

		fprintf(f, "%10" PRIu64 " arena%-1s by %s%s (%s of them there)\n", e->arenas,
			plural(e->arenas), t->kind == KIND_SIZE ? "blocks of " : "",
			inspect_type_short(t, text), amount_commas(e->blocks, blocks));
	}
	if (p->pins.count > rows)
		fprintf(f, "%10s        by %zu other types and sizes\n", "", p->pins.count - rows);
}

void inspect_python_print(FILE *f, const struct inspect_report *r, size_t rows)
{
	const struct python_report *p = &r->python;
	char all[AMOUNT_SIZE], live[AMOUNT_SIZE], arena[AMOUNT_SIZE], pools[AMOUNT_SIZE];

	if (p->found != PYMALLOC_FOUND)
		return;
	fprintf(f, "\nPython: %" PRIu64 " arena%s of %s, which %s returned when no block in %s is "
		   "live: %s live block%s of %s, %s free pool%s\n",
		p->all.count, plural(p->all.count), amount_bytes((double)p->layout.arena, arena),
		p->all.count == 1 ? "is" : "are", p->all.count == 1 ? "it" : "one",
		amount_commas(p->all.blocks, all), plural(p->all.blocks),
		amount_bytes((double)p->live_bytes, live),
		amount_commas(p->free_pools, pools), plural(p->free_pools));
	if (p->interpreters > 1)
		fprintf(f, "of %u interpreters, each with arenas of its own\n", p->interpreters);
	if (p->has_hooks)
		fputs("its debugging hooks are on (PYTHONMALLOC): 24 bytes of each block are "
		      "theirs\n", f);
	print_steps(f, p);
	print_pins(f, r, rows);
}

void inspect_python_print_doubts(FILE *f, const struct python_report *p)
{
	if (p->found == PYMALLOC_UNKNOWN)
		fputs("Python's allocator is of a version that --inspect does not know, or was "
		      "being changed: its arenas are among the other anonymous mappings\n", f);
	if (p->has_lost)
		fputs("other interpreters have an allocator of their own that could not be "
		      "followed: its arenas are among the other anonymous mappings\n", f);
	if (p->broken)
		fprintf(f, "%u part%s of Python's arenas contradict%s the rest: corrupt, or being "
			   "changed\n",
			p->broken, plural(p->broken), p->broken == 1 ? "s" : "");
}

/* -- JSON -- */

static void put_classes(FILE *f, const struct python_report *p)
{
	bool is_first = true;

	fputs(",\n    \"sizes\": [", f);
	for (uint32_t i = 0; i < PYMALLOC_CLASSES; i++) {
		const struct pymalloc_class *c = &p->classes[i];

		if (c->pools == 0)
			continue;
		fprintf(f, "%s\n      {\"bytes\": %u, \"pools\": %" PRIu64 ", \"live\": %" PRIu64
			   ", \"free\": %" PRIu64 "}",
			is_first ? "" : ",", pymalloc_size(i), c->pools, c->live, c->free);
		is_first = false;
	}
	fputs("\n    ]", f);
}

static void put_steps(FILE *f, const struct python_report *p)
{
	fputs(",\n    \"arenas_by_live_percent\": [", f);
	for (size_t i = 0; i < PYTHON_STEPS; i++) {
		const struct python_arenas *a = &p->step[i];

		fprintf(f, "%s\n      {\"most\": %u, \"arenas\": %" PRIu64 ", \"blocks\": %" PRIu64
			   ", \"memory\": %" PRIu64 ", \"free\": %" PRIu64 "}",
			i ? "," : "", python_step[i], a->count, a->blocks, a->counted, a->free);
	}
	fputs("\n    ]", f);
}

static void put_pins(FILE *f, const struct inspect_report *r)
{
	char text[INSPECT_TYPE_SIZE];

	fputs(",\n    \"nearly_empty_arenas\": [", f);
	for (size_t i = 0; i < r->python.pins.count; i++) {
		const struct python_pin *e = &r->python.pins.data[i];
		const char *name = inspect_type_text(&r->types.list.data[e->type], text);

		fprintf(f, "%s\n      {\"type\": ", i ? "," : "");
		json_put_text(f, name, strlen(name));
		fprintf(f, ", \"arenas\": %" PRIu64 ", \"blocks\": %" PRIu64 "}", e->arenas,
			e->blocks);
	}
	fputs("\n    ]", f);
}

void inspect_python_write_json(FILE *f, const struct inspect_report *r)
{
	const struct python_report *p = &r->python;

	if (p->found == PYMALLOC_NONE)
		return;
	fprintf(f, "  \"python\": {\"known\": %s, \"broken\": %u",
		p->found == PYMALLOC_FOUND ? "true" : "false", p->broken);
	if (p->found == PYMALLOC_FOUND) {
		fprintf(f, ", \"arenas\": %" PRIu64 ", \"arena_bytes\": %u, \"pool_bytes\": %u, ",
			p->all.count, p->layout.arena, p->layout.pool);
		fprintf(f, "\"live_blocks\": %" PRIu64 ", \"live_bytes\": %" PRIu64
			   ", \"free_pools\": %" PRIu64 ", \"interpreters\": %u"
			   ", \"all_interpreters\": %s, \"hooks\": %s",
			p->all.blocks, p->live_bytes, p->free_pools, p->interpreters,
			p->has_lost ? "false" : "true", p->has_hooks ? "true" : "false");
		put_classes(f, p);
		put_steps(f, p);
		put_pins(f, r);
	}
	fputs("},\n", f);
}
