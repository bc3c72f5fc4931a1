/*
 * The types of blocks: as a table, as JSON, block by block as CSV; and Python's allocator, whose
 * blocks have types of their own.
 */
#include "output/inspect_report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/amount.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "inspect/heap_map.h"

#define HOLDERS_SHOWN 3u
#define NAME_SHOWN 200u

typedef const struct block_type *sorted_type;

static const char *put_size(const struct block_type *t, char *text, size_t size)
{
	if (t->smallest == t->largest)
		snprintf(text, size, "%" PRIu64 " bytes", t->smallest);
	else
		snprintf(text, size, "%" PRIu64 " to %" PRIu64 " bytes", t->smallest, t->largest);
	return text;
}

/* Ends @text, in UTF-8, with dots from @at on, or from the character that @at is in. */
static void cut_at(char *text, size_t at)
{
	while (at > 0 && ((uint8_t)text[at] & 0xc0) == 0x80)
		at--;
	strcpy(&text[at], "...");
}

const char *inspect_type_text(const struct block_type *t, char text[static INSPECT_TYPE_SIZE])
{
	if (t->kind == KIND_SIZE)
		return put_size(t, text, INSPECT_TYPE_SIZE);
	int n;

	if (t->kind == KIND_TABLE)
		n = snprintf(text, INSPECT_TYPE_SIZE, "struct with &%s", t->name ? t->name : "?");
	else
		n = snprintf(text, INSPECT_TYPE_SIZE, "%s%s%s", block_kind_name[t->kind],
			     t->name ? " " : "", t->name ? t->name : "");
	if (n >= (int)INSPECT_TYPE_SIZE)
		cut_at(text, INSPECT_TYPE_SIZE - sizeof("..."));
	return text;
}

/* The same for a line of a table. */
static const char *inspect_type_short(const struct block_type *t,
				      char text[static INSPECT_TYPE_SIZE])
{
	inspect_type_text(t, text);
	if (strlen(text) > NAME_SHOWN)
		cut_at(text, NAME_SHOWN - strlen("..."));
	return text;
}

/* -- order -- */

static int compare_equal(const struct block_type *x, const struct block_type *y)
{
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (x->name && y->name && strcmp(x->name, y->name) != 0)
		return strcmp(x->name, y->name);
	return x->key < y->key ? -1 : x->key > y->key;
}

static int compare_bytes(const void *a, const void *b)
{
	const struct block_type *x = *(const sorted_type *)a, *y = *(const sorted_type *)b;

	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return compare_equal(x, y);
}

static int compare_pages(const void *a, const void *b)
{
	const struct block_type *x = *(const sorted_type *)a, *y = *(const sorted_type *)b;

	if (x->pages != y->pages)
		return x->pages > y->pages ? -1 : 1;
	return compare_equal(x, y);
}

static sorted_type *sort_types(const struct block_types *t,
			       int (*compare)(const void *, const void *))
{
	sorted_type *list = xcalloc(t->list.count + 1, sizeof(*list));

	for (size_t i = 0; i < t->list.count; i++)
		list[i] = &t->list.data[i];
	if (t->list.count > 1)
		qsort(list, t->list.count, sizeof(*list), compare);
	return list;
}

/* -- text -- */

static void print_row(FILE *f, const struct block_type *t, uint64_t all, const char *text)
{
	char bytes[AMOUNT_SIZE], blocks[AMOUNT_SIZE];

	fprintf(f, "%18s %5.1f %% %12s  %s", amount_commas(t->bytes, bytes),
		amount_percent(t->bytes, all),
		amount_commas(t->blocks, blocks), text);
}

static void print_type(FILE *f, const struct block_type *t, uint64_t all)
{
	char text[INSPECT_TYPE_SIZE], size[AMOUNT_SIZE * 2];

	print_row(f, t, all, inspect_type_short(t, text));
	if (t->kind != KIND_SIZE)
		fprintf(f, ", %s%s", put_size(t, size, sizeof(size)),
			t->smallest == t->largest && t->blocks > 1 ? " each" : "");
	fputc('\n', f);
}

/* Those of @type are [*first_out, return). */
static size_t find_holders(const struct block_holders *h, size_t type, size_t *first_out)
{
	*first_out = vec_search(&h->list, e, e->type < type);
	return vec_search(&h->list, e, e->type <= type);
}

static void print_holder(FILE *f, const struct block_types *t, const struct block_holder *h)
{
	char blocks[AMOUNT_SIZE], text[INSPECT_TYPE_SIZE];

	fprintf(f, "%39s    ", amount_commas(h->blocks, blocks));
	if (h->kind == HOLDER_BLOCK)
		fprintf(f, "in %s%s\n", t->list.data[h->key].kind == KIND_SIZE ? "blocks of " : "",
			inspect_type_short(&t->list.data[h->key], text));
	else if (h->kind == HOLDER_VARIABLE)
		fprintf(f, "in %s%s%s%s\n", h->name ? h->name : "data of ", h->name ? " (" : "",
			h->object ? h->object : "?", h->name ? ")" : "");
	else if (h->kind == HOLDER_STACK || h->kind == HOLDER_TLS)
		fprintf(f, "in the %s of thread %" PRIu64 "\n",
			h->kind == HOLDER_STACK ? "stack" : "variables", h->key);
	else
		fputs(h->kind == HOLDER_REGISTER ? "in a register\n" :
		      h->kind == HOLDER_MAPPING  ? "in mappings outside malloc\n" :
						   "nothing that points here was found\n", f);
}

static void print_holders(FILE *f, const struct block_types *t, const struct block_holders *h,
			  size_t type)
{
	char blocks[AMOUNT_SIZE];
	size_t at, end = find_holders(h, type, &at), first = at;
	uint64_t rest = 0;

	for (; at < end; at++) {
		if (at - first < HOLDERS_SHOWN || end - first == HOLDERS_SHOWN + 1)
			print_holder(f, t, &h->list.data[at]);
		else
			rest += h->list.data[at].blocks;
	}
	if (rest > 0)
		fprintf(f, "%39s    in %zu other places\n", amount_commas(rest, blocks),
			end - first - HOLDERS_SHOWN);
}

static void add(struct block_type *sum, const struct block_type *t)
{
	sum->blocks += t->blocks;
	sum->bytes += t->bytes;
}

void inspect_types_print(FILE *f, const struct block_types *t, const struct block_holders *h,
			 size_t rows)
{
	sorted_type *list = sort_types(t, compare_bytes);
	struct block_type all = {0}, rest = {0};

	for (size_t i = 0; i < t->list.count; i++)
		add(&all, list[i]);
	if (t->list.count > 0)
		fprintf(f, "\n%18s %7s %12s  live blocks, by how they begin\n", "bytes", "",
			"blocks");
	/* a rest of one type takes no more room than its own row */
	if (t->list.count <= rows + 1)
		rows = t->list.count;
	for (size_t i = 0; i < t->list.count; i++) {
		if (i >= rows) {
			add(&rest, list[i]);
			continue;
		}
		print_type(f, list[i], all.bytes);
		print_holders(f, t, h, (size_t)(list[i] - t->list.data));
	}
	if (t->list.count > rows) {
		print_row(f, &rest, all.bytes, "");
		fprintf(f, "%zu other types and sizes\n", t->list.count - rows);
	}
	if (t->list.count > 0)
		print_row(f, &all, all.bytes, "all\n");
	free(list);
}

void inspect_types_print_pins(FILE *f, const struct block_types *t, size_t rows)
{
	sorted_type *list = sort_types(t, compare_pages);
	char text[INSPECT_TYPE_SIZE], blocks[AMOUNT_SIZE];

	for (size_t i = 0; i < MIN(rows, t->list.count) && list[i]->pages > 0; i++) {
		if (i == 0)
			fprintf(f, "\nnearly empty pages (at most %u live bytes) are pinned by:\n",
				PINNED_FEW);
		fprintf(f, "%10" PRIu64 " page%-1s by %s%s (%s of them in all)\n", list[i]->pages,
			plural(list[i]->pages), list[i]->kind == KIND_SIZE ? "blocks of " : "",
			inspect_type_short(list[i], text),
			amount_commas(list[i]->blocks, blocks));
	}
	free(list);
}

/* -- JSON -- */

static void put_holders(struct json_writer *w, const struct block_types *t,
			const struct block_holders *h, size_t type)
{
	size_t at, end = find_holders(h, type, &at);
	char text[INSPECT_TYPE_SIZE];

	if (h->list.count == 0)
		return;
	json_write_open(json_write_line(w, 5), "holders", '[');
	for (; at < end; at++) {
		const struct block_holder *e = &h->list.data[at];

		json_write_open(json_write_line(w, 6), NULL, '{');
		json_write_text(w, "kind", holder_kind_name[e->kind]);
		if (e->kind == HOLDER_STACK || e->kind == HOLDER_TLS)
			json_write_number(w, "thread", e->key);
		if (e->kind == HOLDER_BLOCK)
			json_write_text(w, "name",
					inspect_type_text(&t->list.data[e->key], text));
		if (e->kind == HOLDER_VARIABLE) {
			json_write_text(w, "name", e->name ? e->name : "");
			json_write_text(w, "object", e->object ? e->object : "");
		}
		json_write_numbers(w, {"blocks", e->blocks}, {"bytes", e->bytes});
		json_write_close(w, 1);
	}
	json_write_close(w, 1);
}

/* -- what was not touched -- */

static int compare_cold(const void *a, const void *b)
{
	const struct block_type *x = *(const sorted_type *)a, *y = *(const sorted_type *)b;

	if (x->untouched.cold != y->untouched.cold)
		return x->untouched.cold > y->untouched.cold ? -1 : 1;
	return compare_equal(x, y);
}

static void add_cold(const struct block_types *t, uint64_t *bytes_out, struct cold_bytes *out)
{
	for (size_t i = 0; i < t->list.count; i++) {
		*bytes_out += t->list.data[i].bytes;
		out->cold += t->list.data[i].untouched.cold;
		out->shared += t->list.data[i].untouched.shared;
	}
}

static void print_cold(FILE *f, const struct cold_bytes *c, uint64_t bytes, const char *text)
{
	char cold[AMOUNT_SIZE], most[AMOUNT_SIZE];

	fprintf(f, "%18s %18s %5.1f %%  %s\n", amount_commas(c->cold, cold),
		amount_commas(c->cold + c->shared, most), amount_percent(c->cold, bytes), text);
}

static void print_touched(FILE *f, const struct touched_pages *p)
{
	char untouched[AMOUNT_SIZE], resident[AMOUNT_SIZE], size[AMOUNT_SIZE];

	fprintf(f, "%s of %s in anonymous mappings are pages that were not touched\n",
		amount_bytes((double)p->untouched, untouched),
		amount_bytes((double)p->resident, resident));
	if (p->huge)
		fprintf(f, "%s are huge pages that were touched, of which each counts as one\n",
			amount_bytes((double)p->huge, size));
	if (p->unresolved)
		fprintf(f, "in %s it is not known which pages were touched: there was no time, "
			   "or no room for more mappings (vm.max_map_count)\n",
			amount_bytes((double)p->unresolved, size));
}

static void print_cold_path(FILE *f, const struct inspect_pin *p)
{
	_cleanup_free_ char *first = text_site_label(p->depth ? p->frame[0] : "???");

	print_cold(f, &p->untouched, p->bytes, first);
	for (size_t k = 1; k < p->depth; k++) {
		_cleanup_free_ char *caller = text_site_label(p->frame[k]);

		fprintf(f, "%47s%s\n", "", caller);
	}
}

static void print_cold_paths(FILE *f, const struct inspect_title *t, size_t rows)
{
	struct inspect_pin rest = t->cold_all;
	size_t shown = MIN(rows, t->cold_count);

	if (t->cold_count == 0)
		return;
	fprintf(f, "the same by call path, bytes as the program asked for them%s\n",
		t->is_estimated ? " (estimates)" : "");
	print_cold(f, &rest.untouched, rest.bytes, "of all");
	for (size_t i = 0; i < shown; i++) {
		const struct inspect_pin *p = &t->cold[i];

		print_cold_path(f, p);
		rest.bytes -= p->bytes;
		rest.untouched.cold -= p->untouched.cold;
		rest.untouched.shared -= p->untouched.shared;
	}
	if (rest.untouched.cold > 0)
		print_cold(f, &rest.untouched, rest.bytes, "of other paths");
}

void inspect_cold_print(FILE *f, const struct inspect_title *t, const struct block_types *types,
			size_t rows)
{
	struct cold_bytes all = {0};
	uint64_t bytes = 0;

	if (!t->touched)
		return;
	add_cold(types, &bytes, &all);
	fprintf(f, "\nnot touched in %.3g s, bytes of live blocks by type (blocks share pages: at "
		   "least, at most)\n", t->touched_seconds);
	print_cold(f, &all, bytes, "of all");
	sorted_type *list = sort_types(types, compare_cold);

	for (size_t i = 0; i < MIN(rows, types->list.count) && list[i]->untouched.cold > 0; i++) {
		char text[INSPECT_TYPE_SIZE];

		print_cold(f, &list[i]->untouched, list[i]->bytes,
			   inspect_type_short(list[i], text));
	}
	free(list);
	print_cold_paths(f, t, rows);
	print_touched(f, t->touched);
}

static void put_cold_paths(struct json_writer *w, const struct inspect_title *t)
{
	const struct inspect_pin *all = &t->cold_all;

	json_write_record(json_write_line(w, 4), "all_paths", {"bytes", all->bytes},
			  {"untouched_bytes", all->untouched.cold},
			  {"untouched_at_most", all->untouched.cold + all->untouched.shared});
	json_write_bool(w, "estimated", t->is_estimated);
	json_write_open(json_write_line(w, 4), "paths", '[');
	for (size_t i = 0; i < t->cold_count; i++) {
		const struct inspect_pin *p = &t->cold[i];

		json_write_open(json_write_line(w, 6), NULL, '{');
		json_write_numbers(w, {"bytes", p->bytes}, {"untouched_bytes", p->untouched.cold},
				   {"untouched_at_most", p->untouched.cold + p->untouched.shared});
		json_write_open(w, "frames", '[');
		for (size_t k = 0; k < p->depth; k++)
			json_write_text(w, NULL, p->frame[k]);
		json_write_close(w, 2);
	}
	json_write_close(json_write_line(w, 4), 1);
}

void inspect_cold_write_json(struct json_writer *w, const struct inspect_title *t,
			     const struct block_types *types)
{
	struct cold_bytes all = {0};
	uint64_t bytes = 0;

	if (!t->touched)
		return;
	add_cold(types, &bytes, &all);
	json_write_open(json_write_line(w, 2), "untouched", '{');
	json_write_format(w, "seconds", "%.6f", t->touched_seconds);
	json_write_numbers(w, {"blocks_bytes", bytes}, {"untouched_bytes", all.cold},
			   {"untouched_at_most", all.cold + all.shared},
			   {"resident", t->touched->resident},
			   {"resident_untouched", t->touched->untouched},
			   {"huge", t->touched->huge}, {"unresolved", t->touched->unresolved},
			   {"rounds", t->touched->rounds});
	if (t->cold_count > 0)
		put_cold_paths(w, t);
	json_write_close(w, 1);
}

void inspect_types_write_json(struct json_writer *w, const struct inspect_title *title,
			      const struct block_types *t, const struct block_holders *h)
{
	sorted_type *list = sort_types(t, compare_bytes);

	w->escape = JSON_FOR_PAGES; /* unlike the rest of the report */
	json_write_open(json_write_line(w, 2), "types", '[');
	for (size_t i = 0; i < t->list.count; i++) {
		const struct block_type *e = list[i];

		json_write_open(json_write_line(w, 4), NULL, '{');
		json_write_text(w, "kind", block_kind_name[e->kind]);
		json_write_text(w, "name", e->name ? e->name : "");
		json_write_numbers(w, {"blocks", e->blocks}, {"bytes", e->bytes},
				   {"smallest", e->smallest}, {"largest", e->largest},
				   {"nearly_empty_pages", e->pages});
		if (title->touched)
			json_write_numbers(w, {"untouched_bytes", e->untouched.cold},
					   {"untouched_at_most",
					    e->untouched.cold + e->untouched.shared});
		put_holders(w, t, h, (size_t)(e - t->list.data));
		json_write_close(w, 1);
	}
	json_write_close(json_write_line(w, 2), 1);
	w->escape = JSON_SHOWN;
	free(list);
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
		amount_bytes((double)used, live), amount_percent(used, r->all.resident),
		amount_bytes((double)empty, unused), amount_percent(empty, r->all.resident));
}

static void print_steps(FILE *f, const struct python_report *p)
{
	char blocks[AMOUNT_SIZE], unused[AMOUNT_SIZE];

	fprintf(f, "\n%14s %10s %6s %10s %12s\n", "live part", "arenas", "", "free", "live blocks");
	for (size_t i = 0; i < PYTHON_STEPS; i++) {
		const struct python_arenas *a = &p->step[i];

		fprintf(f, "%4u %%%s %10" PRIu64 " %5.1f%% %10s %12s\n", python_step[i],
			i + 1 < PYTHON_STEPS ? " or less" : "        ", a->count,
			amount_percent(a->count, p->all.count),
			amount_bytes((double)a->free, unused), amount_commas(a->blocks, blocks));
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

static void put_classes(struct json_writer *w, const struct python_report *p)
{
	json_write_open(json_write_line(w, 4), "sizes", '[');
	for (uint32_t i = 0; i < PYMALLOC_CLASSES; i++) {
		const struct pymalloc_class *c = &p->classes[i];

		if (c->pools == 0)
			continue;
		json_write_record(json_write_line(w, 6), NULL, {"bytes", pymalloc_size(i)},
				  {"pools", c->pools}, {"live", c->live}, {"free", c->free});
	}
	json_write_close(json_write_line(w, 4), 1);
}

static void put_steps(struct json_writer *w, const struct python_report *p)
{
	json_write_open(json_write_line(w, 4), "arenas_by_live_percent", '[');
	for (size_t i = 0; i < PYTHON_STEPS; i++) {
		const struct python_arenas *a = &p->step[i];

		json_write_record(json_write_line(w, 6), NULL, {"most", python_step[i]},
				  {"arenas", a->count}, {"blocks", a->blocks},
				  {"memory", a->counted}, {"free", a->free});
	}
	json_write_close(json_write_line(w, 4), 1);
}

static void put_pins(struct json_writer *w, const struct inspect_report *r)
{
	char text[INSPECT_TYPE_SIZE];

	w->escape = JSON_FOR_PAGES;
	json_write_open(json_write_line(w, 4), "nearly_empty_arenas", '[');
	for (size_t i = 0; i < r->python.pins.count; i++) {
		const struct python_pin *e = &r->python.pins.data[i];

		json_write_open(json_write_line(w, 6), NULL, '{');
		json_write_text(w, "type", inspect_type_text(&r->types.list.data[e->type], text));
		json_write_numbers(w, {"arenas", e->arenas}, {"blocks", e->blocks});
		json_write_close(w, 1);
	}
	w->escape = JSON_SHOWN;
	json_write_close(json_write_line(w, 4), 1);
}

void inspect_python_write_json(struct json_writer *w, const struct inspect_report *r)
{
	const struct python_report *p = &r->python;

	if (p->found == PYMALLOC_NONE)
		return;
	json_write_open(json_write_line(w, 2), "python", '{');
	json_write_bool(w, "known", p->found == PYMALLOC_FOUND);
	json_write_number(w, "broken", p->broken);
	if (p->found == PYMALLOC_FOUND) {
		json_write_numbers(w, {"arenas", p->all.count}, {"arena_bytes", p->layout.arena},
				   {"pool_bytes", p->layout.pool}, {"live_blocks", p->all.blocks},
				   {"live_bytes", p->live_bytes}, {"free_pools", p->free_pools},
				   {"interpreters", p->interpreters});
		json_write_bool(w, "all_interpreters", !p->has_lost);
		json_write_bool(w, "hooks", p->has_hooks);
		put_classes(w, p);
		put_steps(w, p);
		put_pins(w, r);
	}
	json_write_close(w, 1);
}

void inspect_blocks_add(void *blocks, taddr_t addr, uint64_t usable, uint32_t type)
{
	struct inspect_blocks *b = blocks;

	*vec_add(&b->list) = (struct inspect_block){addr, usable, type, false};
}

void inspect_blocks_add_python(void *blocks, taddr_t addr, uint64_t usable, uint32_t type)
{
	struct inspect_blocks *b = blocks;

	*vec_add(&b->list) = (struct inspect_block){addr, usable, type, true};
}

static int compare(const void *a, const void *b)
{
	const struct inspect_block *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

void inspect_blocks_sort(struct inspect_blocks *b)
{
	vec_sort(&b->list, compare);
}

/* Names may have commas and quotes. */
static void put_type(FILE *file, const struct block_type *t)
{
	char text[INSPECT_TYPE_SIZE];

	const char *name = inspect_type_text(t, text);

	putc(',', file);
	csv_begin(file, name);
	csv_put_quoted(file, name);
	fputs("\"", file);
}

void inspect_blocks_write(FILE *file, struct inspect_blocks *b, const struct block_types *types,
			  const struct touched_pages *touched)
{
	inspect_blocks_sort(b);
	size_t at = 0;

	fputs("address,bytes,type,allocator", file);
	fputs(touched ? ",untouched,untouched_at_most\n" : "\n", file);
	for (size_t i = 0; i < b->list.count; i++) {
		const struct inspect_block *e = &b->list.data[i];

		fprintf(file, "%#" PRIx64 ",%" PRIu64, e->addr, e->size);
		put_type(file, &types->list.data[e->type]);
		fputs(e->is_python ? ",Python" : ",malloc", file);
		if (touched) {
			struct cold_bytes c = cold_bytes_of(touched, &at, e->addr, e->size);

			fprintf(file, ",%" PRIu64 ",%" PRIu64, c.cold, c.cold + c.shared);
		}
		fputc('\n', file);
	}
}
