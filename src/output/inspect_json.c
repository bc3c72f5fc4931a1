/* --inspect as JSON. Program names may contain any bytes: text_clean converts them to UTF-8. */
#include "output/inspect_report.h"

#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"

static void put_string(FILE *f, const char *s)
{
	_cleanup_free_ char *clean = text_clean(s, strlen(s));

	fputc('"', f);
	for (const char *p = clean; *p; p++) {
		if (*p == '"' || *p == '\\')
			fputc('\\', f);
		fputc(*p, f);
	}
	fputc('"', f);
}

static void put_bytes(FILE *f, const char *name, struct inspect_bytes b)
{
	fprintf(f, "\"%s\": {\"resident\": %" PRIu64 ", \"swapped\": %" PRIu64 "}", name,
		b.resident, b.swapped);
}

/* Instead, for a process: the kernel's counters. */
static void put_core(FILE *f, const struct inspect_core_title *c)
{
	fputs(",\n  \"core\": {\"file\": ", f);
	put_string(f, c->path);
	fprintf(f, ", \"bytes\": %" PRIu64 ", \"zeros\": %" PRIu64 ", \"left_out\": %" PRIu64
		   ", \"missing_files\": %u}",
		c->bytes, c->zeros, c->left_out, c->missing_files);
}

static void put_counters(FILE *f, const struct inspect_title *t, const struct inspect_report *r)
{
	fprintf(f, ",\n  \"VmRSS\": %" PRIu64 ", \"VmSwap\": %" PRIu64 ", \"differing\": %" PRId64,
		t->rss, t->swap, r->differing);
}

static void put_rows(FILE *f, const struct inspect_title *t, const struct inspect_report *r)
{
	fputs("  ", f);
	put_bytes(f, "memory", r->all);
	if (t->core)
		put_core(f, t->core);
	else
		put_counters(f, t, r);
	fputs(",\n  \"rows\": {", f);
	for (size_t i = 0; i < ROW_COUNT; i++) {
		fputs(i ? ",\n    " : "\n    ", f);
		put_bytes(f, inspect_row_name[i], r->row[i]);
	}
	fputs("\n  },\n", f);
}

static void put_pages(FILE *f, const struct pinned_pages *p)
{
	fprintf(f, "\"pages\": {\"free\": %" PRIu64 ", \"unknown\": %" PRIu64
		   ", \"free_bytes_on_pinned\": %" PRIu64 ", \"pinned_by_live_bytes\": [",
		p->free, p->unknown, p->free_bytes);
	for (size_t i = 0; i < PINNED_STEPS; i++)
		fprintf(f, "%s[%u, %" PRIu64 "]", i ? ", " : "", pinned_step[i], p->step[i]);
	fputs("]}", f);
}

static void put_arena(FILE *f, const struct heap_arena *a)
{
	fprintf(f, "{\"address\": \"%#" PRIx64 "\", \"main\": %s, \"heaps\": %u, ", a->addr,
		a->is_main ? "true" : "false", a->heaps);
	fprintf(f, "\"threads\": %" PRIu64 ", \"system\": %" PRIu64 ", \"missing\": %" PRIu64 ", ",
		a->threads, a->system_bytes, a->missing_bytes);
	fprintf(f, "\"live_blocks\": %" PRIu64 ", \"live_bytes\": %" PRIu64 ", \"free_chunks\": {",
		a->live_blocks, a->live_bytes);
	for (size_t i = ROW_TCACHE; i <= ROW_TOP; i++)
		fprintf(f, "%s\"%s\": %" PRIu64, i > ROW_TCACHE ? ", " : "", inspect_row_name[i],
			a->free_bytes[i]);
	fputs("},\n     ", f);
	put_bytes(f, "memory", a->counted);
	fputs(", ", f);
	put_bytes(f, "free", a->free);
	fputs(", ", f);
	put_bytes(f, "trim", a->trim);
	fputs(",\n     ", f);
	put_pages(f, &a->pages);
	fputs("}", f);
}

static void put_classes(FILE *f, const struct inspect_report *r)
{
	bool is_first = true;

	fputs("  \"sizes\": [", f);
	for (uint32_t i = 0; i < SIZE_CLASSES; i++) {
		const struct pinned_class *c = &r->heaps.classes[i];

		if (c->blocks == 0)
			continue;
		fprintf(f, "%s\n    {\"chunk\": %" PRIu64 ", \"blocks\": %" PRIu64
			   ", \"bytes\": %" PRIu64 ", \"nearly_empty_pages\": %" PRIu64 "}",
			is_first ? "" : ",", pinned_class_size(i), c->blocks, c->bytes, c->pages);
		is_first = false;
	}
	fputs("\n  ],\n", f);
}

/*
 * For each cell: pages that count, live bytes on them, nearly empty ones. The first @hidden arenas
 * are left out. The heaps of Python's allocator have the number after that of the last arena.
 */
static void put_map(FILE *f, const struct heap_map *m, size_t hidden)
{
	const char *comma = "";

	fprintf(f, "  \"map\": {\"pages_per_cell\": %u, \"heaps\": [", m->pages_per_cell);
	for (size_t i = 0; i < m->heaps.count; i++) {
		const struct heap_map_heap *h = &m->heaps.data[i];

		if (h->arena < hidden)
			continue;
		fprintf(f, "%s\n    {\"arena\": %zu, \"start\": \"%#" PRIx64
			   "\", \"end\": \"%#" PRIx64 "\", \"cells\": [",
			comma, h->arena - hidden, h->start, h->end);
		comma = ",";
		for (size_t k = 0; k < h->count; k++) {
			const struct heap_cell *c = &m->cells.data[h->first + k];

			fprintf(f, "%s[%u,%" PRIu64 ",%u]", k ? "," : "", c->pages, c->live,
				c->nearly_empty);
		}
		fputs("]}", f);
	}
	fputs("\n  ]},\n", f);
}

static void put_pins(FILE *f, const struct inspect_title *t)
{
	if (t->pin_count == 0)
		return;
	fputs("  \"paths\": [", f);
	for (size_t i = 0; i < t->pin_count; i++) {
		const struct inspect_pin *p = &t->pin[i];

		fprintf(f, "%s\n    {\"nearly_empty_pages\": %" PRIu64 ", \"frames\": [",
			i ? "," : "", p->pages);
		for (size_t k = 0; k < p->depth; k++) {
			fputs(k ? ", " : "", f);
			put_string(f, p->frame[k]);
		}
		fputs("]}", f);
	}
	fputs("\n  ],\n", f);
}

static void put_params(FILE *f, const struct inspect_title *t, const struct inspect_report *r)
{
	const struct glibc_params *p = &r->params;

	fprintf(f, "  \"malloc\": {\"name\": \"glibc\", \"version\": \"%u.%u\"", t->glibc_major,
		t->glibc_minor);
	if (t->is_newer)
		fputs(", \"verified_not_known\": true", f);
	if (p->is_known)
		fprintf(f, ", \"mmap_threshold\": %" PRIu64 ", \"trim_threshold\": %" PRIu64
			   ", \"top_pad\": %" PRIu64 ", \"dynamic\": %s, \"arena_max\": %" PRIu64
			   ", \"arena_test\": %" PRIu64 ", \"mmaps\": %u, \"mmapped\": %" PRIu64
			   ", \"tcache_count\": %" PRIu64,
			p->mmap_threshold, p->trim_threshold, p->top_pad,
			p->is_fixed ? "false" : "true", p->arena_max, p->arena_test, p->mmaps,
			p->mmapped_bytes, p->tcache_count);
	fputs("},\n", f);
}

static void put_other(FILE *f, const struct inspect_allocator *a)
{
	fprintf(f, "  \"malloc\": {\"name\": \"%s\", \"live_blocks\": %" PRIu64
		   ", \"live_bytes\": %" PRIu64 ", \"cached_blocks\": %" PRIu64
		   ", \"cached_bytes\": %" PRIu64 ", \"slabs\": %" PRIu64
		   ", \"loose_blocks\": %" PRIu64 ", \"caches\": %u, \"broken\": %u},\n",
		a->name, a->sums.live_blocks, a->sums.live_bytes, a->sums.cached_blocks,
		a->sums.cached_bytes, a->sums.slabs, a->sums.loose_blocks, a->caches, a->broken);
}

static void put_advice(FILE *f, const struct inspect_report *r)
{
	struct inspect_advice_list advice;

	inspect_advice_find(r, &advice);
	fputs("  \"advice\": [", f);
	for (size_t i = 0; i < advice.list.count; i++) {
		const struct inspect_advice *a = &advice.list.data[i];

		fprintf(f, "%s\n    {\"name\": \"%s\", \"bytes\": %" PRIu64
			   ", \"limit\": %s, \"text\": ",
			i ? "," : "", a->name, a->bytes, a->is_limit ? "true" : "false");
		put_string(f, a->text);
		fputs("}", f);
	}
	fputs("\n  ],\n", f);
	inspect_advice_deinit(&advice);
}

void inspect_report_write_json(FILE *f, const struct inspect_title *t,
			       const struct inspect_report *r)
{
	bool has_arenas = t->has_malloc && !r->other.name;

	fprintf(f, "{\n  \"format\": \"ptmem-inspect\", \"pid\": %u, \"command\": ", t->pid);
	put_string(f, t->command);
	fputs(",\n", f);
	put_rows(f, t, r);
	inspect_python_write_json(f, r);
	if (r->other.name) {
		put_other(f, &r->other);
		inspect_types_write_json(f, &r->types, &r->holders);
	}
	if (has_arenas) {
		put_params(f, t, r);
		fputs("  \"arenas\": [", f);
		for (size_t i = 0; i < r->heaps.arenas.count; i++) {
			fputs(i ? ",\n    " : "\n    ", f);
			put_arena(f, &r->heaps.arenas.data[i]);
		}
		fputs("\n  ],\n", f);
		put_classes(f, r);
		put_pins(f, t);
		inspect_types_write_json(f, &r->types, &r->holders);
		put_advice(f, r);
	}
	put_map(f, &r->heaps.map, has_arenas ? 0 : r->heaps.arenas.count);
	fprintf(f, "  \"mmapped_blocks\": %" PRIu64 ", \"mmapped_bytes\": %" PRIu64
		   ", \"mmapped_complete\": %s,\n", r->mmapped_blocks, r->mmapped_bytes,
		r->is_mmapped_complete ? "true" : "false");
	fprintf(f, "  \"threads\": %u, \"thread_caches\": %u, \"inside_malloc\": %u, "
		   "\"moments\": %u,\n",
		r->threads, r->caches, t->inside, t->moments);
	fprintf(f, "  \"broken_lists\": %u, \"unlisted\": %" PRIu64 ", \"broken_heaps\": %u,\n",
		r->broken_lists, r->heaps.unlisted, r->heaps.broken_heaps);
	fprintf(f, "  \"stopped_ms\": %.3f, \"bytes_read\": %" PRIu64 "\n}\n",
		(double)t->stopped_ns / 1e6, r->bytes_read);
}
