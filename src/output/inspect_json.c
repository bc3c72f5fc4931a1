/* --inspect as JSON. */
#include "output/inspect_report.h"

#include <inttypes.h>

static void put_bytes(struct json_writer *w, const char *name, struct inspect_bytes b)
{
	json_write_record(w, name, {"resident", b.resident}, {"swapped", b.swapped});
}

static void put_cgroup(struct json_writer *w, const struct memory_cgroup_usage *u)
{
	if (!u)
		return;
	json_write_open(json_write_line(w, 2), "cgroup", '{');
	json_write_number(w, "all", u->all);
	for (size_t i = 0; i < u->count; i++)
		json_write_number(w, u->part[i].name, u->part[i].bytes);
	json_write_close(w, 1);
}

static void put_rows(struct json_writer *w, const struct inspect_title *t,
		     const struct inspect_report *r)
{
	const struct inspect_core_title *c = t->core;

	put_bytes(json_write_line(w, 2), "memory", r->all);
	json_write_line(w, 2);
	if (c) { /* instead, for a process: the kernel's counters */
		json_write_open(w, "core", '{');
		json_write_text(w, "file", c->path);
		json_write_numbers(w, {"bytes", c->bytes}, {"zeros", c->zeros},
				   {"left_out", c->left_out}, {"missing_files", c->missing_files});
		json_write_close(w, 1);
	} else {
		json_write_numbers(w, {"VmRSS", t->rss}, {"VmSwap", t->swap},
				   {"HugetlbPages", t->hugetlb},
				   {"AnonHugePages", t->huge},
				   {"huge_pages_read", t->huge_read},
				   {"huge_pages_zeros", t->huge_zeros});
		json_write_format(w, "differing", "%" PRId64, r->differing);
	}
	json_write_open(json_write_line(w, 2), "rows", '{');
	for (size_t i = 0; i < ROW_COUNT; i++) {
		put_bytes(json_write_line(w, 4), inspect_row_name[i], r->row[i]);
	}
	json_write_close(json_write_line(w, 2), 1);
	put_cgroup(w, t->cgroup);
	json_write_open(json_write_line(w, 2), "shared_by_name", '[');
	for (size_t i = 0; i < r->shared.count; i++) {
		const struct inspect_shared *s = &r->shared.data[i];

		json_write_open(json_write_line(w, 4), NULL, '{');
		json_write_text(w, "name", s->name);
		json_write_numbers(w, {"resident", s->bytes.resident},
				   {"swapped", s->bytes.swapped});
		json_write_close(w, 1);
	}
	json_write_close(json_write_line(w, 2), 1);
}

static void put_pages(struct json_writer *w, const struct pinned_pages *p)
{
	json_write_open(w, "pages", '{');
	json_write_numbers(w, {"free", p->free}, {"unknown", p->unknown},
			   {"free_bytes_on_pinned", p->free_bytes});
	json_write_open(w, "pinned_by_live_bytes", '[');
	for (size_t i = 0; i < PINNED_STEPS; i++)
		json_write_format(w, NULL, "[%u, %" PRIu64 "]", pinned_step[i], p->step[i]);
	json_write_close(w, 2);
}

static void put_arena(struct json_writer *w, const struct heap_arena *a)
{
	json_write_open(w, NULL, '{');
	json_write_format(w, "address", "\"%#" PRIx64 "\"", a->addr);
	json_write_bool(w, "main", a->is_main);
	json_write_numbers(w, {"heaps", a->heaps}, {"threads", a->threads},
			   {"system", a->system_bytes}, {"missing", a->missing_bytes},
			   {"live_blocks", a->live_blocks}, {"live_bytes", a->live_bytes});
	json_write_open(w, "free_chunks", '{');
	for (size_t i = ROW_TCACHE; i <= ROW_TOP; i++)
		json_write_number(w, inspect_row_name[i], a->free_bytes[i]);
	json_write_close(w, 1);
	put_bytes(json_write_line(w, 5), "memory", a->counted);
	put_bytes(w, "free", a->free);
	put_bytes(w, "trim", a->trim);
	put_pages(json_write_line(w, 5), &a->pages);
	json_write_close(w, 1);
}

static void put_classes(struct json_writer *w, const struct inspect_report *r)
{
	json_write_open(json_write_line(w, 2), "sizes", '[');
	for (uint32_t i = 0; i < SIZE_CLASSES; i++) {
		const struct pinned_class *c = &r->heaps.classes[i];

		if (c->blocks == 0)
			continue;
		json_write_record(json_write_line(w, 4), NULL, {"chunk", pinned_class_size(i)},
				  {"blocks", c->blocks}, {"bytes", c->bytes},
				  {"nearly_empty_pages", c->pages});
	}
	json_write_close(json_write_line(w, 2), 1);
}

/*
 * For each cell: pages that count, live bytes on them, nearly empty ones. The first @hidden arenas
 * are left out. The heaps of Python's allocator have the number after that of the last arena.
 */
static void put_map(struct json_writer *w, const struct heap_map *m, size_t hidden)
{
	json_write_open(json_write_line(w, 2), "map", '{');
	json_write_number(w, "pages_per_cell", m->pages_per_cell);
	json_write_open(w, "heaps", '[');
	for (size_t i = 0; i < m->heaps.count; i++) {
		const struct heap_map_heap *h = &m->heaps.data[i];

		if (h->arena < hidden)
			continue;
		json_write_open(json_write_line(w, 4), NULL, '{');
		json_write_number(w, "arena", h->arena - hidden);
		json_write_format(w, "start", "\"%#" PRIx64 "\"", h->start);
		json_write_format(w, "end", "\"%#" PRIx64 "\"", h->end);
		json_write_open(w, "cells", '[');
		w->is_spaced = false;
		for (size_t k = 0; k < h->count; k++) {
			const struct heap_cell *c = &m->cells.data[h->first + k];

			json_write_format(w, NULL, "[%u,%" PRIu64 ",%u]", c->pages, c->live,
					  c->nearly_empty);
		}
		w->is_spaced = true;
		json_write_close(w, 2);
	}
	json_write_close(json_write_line(w, 2), 2);
}

static void put_pins(struct json_writer *w, const struct inspect_title *t)
{
	if (t->pin_count == 0)
		return;
	json_write_open(json_write_line(w, 2), "paths", '[');
	for (size_t i = 0; i < t->pin_count; i++) {
		const struct inspect_pin *p = &t->pin[i];

		json_write_open(json_write_line(w, 4), NULL, '{');
		json_write_numbers(w, {"nearly_empty_pages", p->pages},
				   {"returned_elsewhere", p->pages_alone * PAGE_SIZE_MIN});
		json_write_open(w, "frames", '[');
		for (size_t k = 0; k < p->depth; k++)
			json_write_text(w, NULL, p->frame[k]);
		json_write_close(w, 2);
	}
	json_write_close(json_write_line(w, 2), 1);
}

static void put_params(struct json_writer *w, const struct inspect_title *t,
		       const struct inspect_report *r)
{
	const struct glibc_params *p = &r->params;

	json_write_open(json_write_line(w, 2), "malloc", '{');
	json_write_text(w, "name", "glibc");
	json_write_format(w, "version", "\"%u.%u\"", t->glibc_major, t->glibc_minor);
	if (t->is_newer)
		json_write_bool(w, "verified_not_known", true);
	if (p->is_known) {
		json_write_numbers(w, {"mmap_threshold", p->mmap_threshold},
				   {"trim_threshold", p->trim_threshold}, {"top_pad", p->top_pad});
		json_write_bool(w, "dynamic", !p->is_fixed);
		json_write_numbers(w, {"arena_max", p->arena_max}, {"arena_test", p->arena_test},
				   {"mmaps", p->mmaps}, {"mmapped", p->mmapped_bytes},
				   {"tcache_count", p->tcache_count});
	}
	json_write_close(w, 1);
}

static void put_other(struct json_writer *w, const struct inspect_allocator *a)
{
	json_write_open(json_write_line(w, 2), "malloc", '{');
	json_write_text(w, "name", a->name);
	json_write_numbers(w, {"live_blocks", a->sums.live_blocks},
			   {"live_bytes", a->sums.live_bytes},
			   {"cached_blocks", a->sums.cached_blocks},
			   {"cached_bytes", a->sums.cached_bytes}, {"slabs", a->sums.slabs},
			   {"loose_blocks", a->sums.loose_blocks}, {"caches", a->caches},
			   {"broken", a->broken});
	json_write_close(w, 1);
}

static void put_advice(struct json_writer *w, const struct inspect_report *r)
{
	struct inspect_advice_list advice;

	inspect_advice_find(r, &advice);
	json_write_open(json_write_line(w, 2), "advice", '[');
	for (size_t i = 0; i < advice.list.count; i++) {
		const struct inspect_advice *a = &advice.list.data[i];

		json_write_open(json_write_line(w, 4), NULL, '{');
		json_write_text(w, "name", a->name);
		json_write_number(w, "bytes", a->bytes);
		json_write_bool(w, "limit", a->is_limit);
		json_write_text(w, "text", a->text);
		json_write_close(w, 1);
	}
	json_write_close(json_write_line(w, 2), 1);
	inspect_advice_deinit(&advice);
}

static void put_arenas(struct json_writer *w, const struct inspect_report *r)
{
	json_write_open(json_write_line(w, 2), "arenas", '[');
	for (size_t i = 0; i < r->heaps.arenas.count; i++) {
		put_arena(json_write_line(w, 4), &r->heaps.arenas.data[i]);
	}
	json_write_close(json_write_line(w, 2), 1);
}

void inspect_report_write_json(FILE *f, const struct inspect_title *t,
			       const struct inspect_report *r)
{
	struct json_writer w = {.out = f, .is_spaced = true, .escape = JSON_SHOWN};
	bool has_arenas = t->has_malloc && !r->other.name;

	json_write_open(&w, NULL, '{');
	json_write_text(json_write_line(&w, 2), "format", "ptmem-inspect");
	json_write_number(&w, "pid", t->pid);
	json_write_text(&w, "command", t->command);
	put_rows(&w, t, r);
	inspect_python_write_json(&w, r);
	if (t->go)
		inspect_go_write_json(&w, t->go);
	inspect_cold_write_json(&w, t, &r->types);
	if (r->other.name) {
		put_other(&w, &r->other);
		inspect_types_write_json(&w, t, &r->types, &r->holders);
	}
	if (has_arenas) {
		put_params(&w, t, r);
		put_arenas(&w, r);
		put_classes(&w, r);
		put_pins(&w, t);
		inspect_types_write_json(&w, t, &r->types, &r->holders);
		put_advice(&w, r);
	}
	put_map(&w, &r->heaps.map, has_arenas ? 0 : r->heaps.arenas.count);
	json_write_numbers(json_write_line(&w, 2), {"mmapped_blocks", r->mmapped_blocks},
			   {"mmapped_bytes", r->mmapped_bytes});
	json_write_bool(&w, "mmapped_complete", r->is_mmapped_complete);
	json_write_numbers(json_write_line(&w, 2), {"threads", r->threads},
			   {"thread_caches", r->caches}, {"inside_malloc", t->inside},
			   {"moments", t->moments});
	json_write_numbers(json_write_line(&w, 2), {"broken_lists", r->broken_lists},
			   {"unlisted", r->heaps.unlisted},
			   {"broken_heaps", r->heaps.broken_heaps});
	json_write_format(json_write_line(&w, 2), "stopped_ms", "%.3f",
			  (double)t->stopped_ns / 1e6);
	json_write_number(&w, "bytes_read", r->bytes_read);
	json_write_close(json_write_line(&w, 0), 1);
	fputc('\n', f);
}
