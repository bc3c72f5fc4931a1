/* Converts the JSON document. Missing numbers are 0, missing texts "". See inspect_file.h. */
#include "report/inspect_file.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/json_read.h"
#include "base/text.h"

#define FORMAT "\"format\": \"ptmem-inspect\""
#define FORMAT_AT 16u /* only "{" and whitespace may precede it */
#define CELLS_MAX 1000000u

bool inspect_file_is(const char *data, size_t size)
{
	size_t most = FORMAT_AT + strlen(FORMAT);

	return size > 0 && *data == '{' &&
	       memmem(data, MIN(size, most), FORMAT, strlen(FORMAT));
}

static double resident_of(const struct json *j, const char *name)
{
	return MAX(json_number(json_member(j, name), "resident"), 0);
}

static void take_rows(const struct json *j, struct inspect_file *f)
{
	const struct json *rows = json_member(j, "rows");

	for (size_t i = 0; i < ROW_COUNT; i++) {
		f->row[i] = resident_of(rows, inspect_row_name[i]);
		f->sum += f->row[i];
	}
}

static void take_arena(const struct json *j, struct inspect_file *f)
{
	struct inspect_arena *a = vec_add(&f->arenas);
	const char *address = json_text(j, "address");
	_cleanup_free_ char *clean = text_clean(address, strlen(address));

	*a = (struct inspect_arena){
		.name = json_number(j, "main") ? xstrdup("main arena")
					       : xasprintf("arena %s", clean),
		.resident = resident_of(j, "memory"), .live = json_number(j, "live_bytes"),
		.free = resident_of(j, "free"), .trim = resident_of(j, "trim")};
}

/* They follow malloc's; their heaps have the next number. */
static void take_python(struct inspect_file *f)
{
	double live = f->row[ROW_PYTHON_LIVE];
	double free = f->row[ROW_PYTHON_FREE] + f->row[ROW_PYTHON_POOLS];

	if (live > 0)
		*vec_add(&f->arenas) = (struct inspect_arena){
			.name = xstrdup("Python's arenas"), .is_python = true, .live = live,
			.resident = live + free + f->row[ROW_PYTHON_OWN], .free = free};
}

static double item(const struct json *cell, size_t i)
{
	return i < cell->count ? MAX(cell->part[i].number, 0) : 0;
}

static void take_heap(const struct json *j, struct inspect_file *f)
{
	const struct json *cells = json_member(j, "cells");
	double arena = json_number(j, "arena");
	taddr_t at = strtoull(json_text(j, "start"), NULL, 16);

	if (!(arena >= 0 && arena < (double)f->arenas.count))
		return;
	struct inspect_arena *a = &f->arenas.data[(size_t)arena];

	for (size_t i = 0; cells && i < cells->count && a->cells.count < CELLS_MAX; i++) {
		const struct json *c = &cells->part[i];

		*vec_add(&a->cells) = (struct inspect_cell){at, item(c, 0), item(c, 1), item(c, 2)};
		at += f->pages_per_cell * (taddr_t)PAGE_SIZE_MIN;
	}
}

static int compare_arenas(const void *a, const void *b)
{
	const struct inspect_arena *x = a, *y = b;

	return x->resident > y->resident ? -1 : x->resident < y->resident;
}

static void take_map(const struct json *j, struct inspect_file *f)
{
	const struct json *arenas = json_member(j, "arenas"), *map = json_member(j, "map");
	const struct json *heaps = json_member(map, "heaps");
	double pages = json_number(map, "pages_per_cell");

	f->pages_per_cell = pages >= 1 && pages <= 1 << 30 ? (unsigned)pages : 1;
	for (size_t i = 0; arenas && i < arenas->count; i++)
		take_arena(&arenas->part[i], f);
	take_python(f);
	for (size_t i = 0; heaps && i < heaps->count; i++)
		take_heap(&heaps->part[i], f);
	if (f->arenas.count > 1)
		qsort(f->arenas.data, f->arenas.count, sizeof(*f->arenas.data), compare_arenas);
}

static char *make_title(const struct json *j, const char *core)
{
	const char *command = json_text(j, "command");
	_cleanup_free_ char *text =
		xasprintf("%s %.0f, %s", *core ? "core of process" : "process",
			  json_number(j, "pid"), command);

	return text_clean(text, strlen(text));
}

int inspect_file_parse(char *data, size_t size, struct inspect_file **out, char **why_out)
{
	_cleanup_free_ char *text = data;
	struct json *j = json_read(text, size);
	const char *core = json_text(json_member(j, "core"), "file");

	if (!j || !json_member(j, "rows")) {
		json_free(j);
		*why_out = xstrdup("not what --inspect writes: its JSON is damaged");
		return -EINVAL;
	}
	struct inspect_file *f = xcalloc(1, sizeof(*f));

	f->title = make_title(j, core);
	f->all = xstrdup(*core ? "memory in the core that is not zeros"
			       : "resident memory (VmRSS)");
	take_rows(j, f);
	take_map(j, f);
	json_free(j);
	*out = f;
	return 0;
}

void inspect_file_free(struct inspect_file *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->arenas.count; i++) {
		free(f->arenas.data[i].name);
		vec_deinit(&f->arenas.data[i].cells);
	}
	vec_deinit(&f->arenas);
	free(f->title);
	free(f->all);
	free(f);
}
