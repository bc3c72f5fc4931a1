/* See inspect_types.h. */
#include "output/inspect_types.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/amount.h"
#include "base/json_text.h"
#include "base/text.h"
#include "inspect/pinned.h"

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

const char *inspect_type_short(const struct block_type *t, char text[static INSPECT_TYPE_SIZE])
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
		all ? 100.0 * (double)t->bytes / (double)all : 0.0,
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

static void put_text(FILE *f, const char *name, const char *text)
{
	fprintf(f, ", \"%s\": ", name);
	json_put_text(f, text ? text : "", text ? strlen(text) : 0);
}

static void put_holders(FILE *f, const struct block_types *t, const struct block_holders *h,
			size_t type)
{
	size_t at, end = find_holders(h, type, &at), first = at;
	char text[INSPECT_TYPE_SIZE];

	if (h->list.count == 0)
		return;
	fputs(",\n     \"holders\": [", f);
	for (; at < end; at++) {
		const struct block_holder *e = &h->list.data[at];
		bool is_thread = e->kind == HOLDER_STACK || e->kind == HOLDER_TLS;

		fprintf(f, "%s\n      {\"kind\": \"%s\"", at > first ? "," : "",
			holder_kind_name[e->kind]);
		if (is_thread)
			fprintf(f, ", \"thread\": %" PRIu64, e->key);
		if (e->kind == HOLDER_BLOCK)
			put_text(f, "name", inspect_type_text(&t->list.data[e->key], text));
		if (e->kind == HOLDER_VARIABLE) {
			put_text(f, "name", e->name);
			put_text(f, "object", e->object);
		}
		fprintf(f, ", \"blocks\": %" PRIu64 ", \"bytes\": %" PRIu64 "}", e->blocks,
			e->bytes);
	}
	fputs("]", f);
}

void inspect_types_write_json(FILE *f, const struct block_types *t, const struct block_holders *h)
{
	sorted_type *list = sort_types(t, compare_bytes);

	fputs("  \"types\": [", f);
	for (size_t i = 0; i < t->list.count; i++) {
		const struct block_type *e = list[i];

		fprintf(f, "%s\n    {\"kind\": \"%s\", \"name\": ", i ? "," : "",
			block_kind_name[e->kind]);
		json_put_text(f, e->name ? e->name : "", e->name ? strlen(e->name) : 0);
		fprintf(f, ", \"blocks\": %" PRIu64 ", \"bytes\": %" PRIu64
			   ", \"smallest\": %" PRIu64 ", \"largest\": %" PRIu64
			   ", \"nearly_empty_pages\": %" PRIu64,
			e->blocks, e->bytes, e->smallest, e->largest, e->pages);
		put_holders(f, t, h, (size_t)(e - t->list.data));
		fputs("}", f);
	}
	fputs("\n  ],\n", f);
	free(list);
}
