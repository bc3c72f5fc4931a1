/* Keeps the last inspection of a session as tables of its recording. */
#include "session/inspect/last_inspection.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "output/inspect_report.h"
#include "recording/graph_file.h"
#include "recording/recording.h"
#include "recording/recording_format.h"
#include "session/inspect/inspect_session.h"
#include "session/session.h"

struct recording;

/* -- the whole -- */

static char *name_malloc(const struct inspect_title *t, const struct inspect_report *r)
{
	if (r->other.name)
		return xstrdup(r->other.name);
	if (!t->has_malloc)
		return xstrdup("");
	return t->glibc_major ? xasprintf("glibc %u.%u", t->glibc_major, t->glibc_minor) :
				xstrdup("glibc");
}

static void add_head(struct recording *to, const struct inspect_title *t,
		     const struct inspect_report *r, uint64_t time_ms)
{
	_cleanup_free_ char *name = name_malloc(t, r);
	const uint64_t row[INSPECTION_COLUMNS] = {
		[INSPECTION_TIME] = time_ms, [INSPECTION_MALLOC] = recording_string(to, name),
		[INSPECTION_RSS] = t->rss, [INSPECTION_SWAP] = t->swap,
		[INSPECTION_STOPPED] = t->stopped_ns / 1000,
		[INSPECTION_PAGES_PER_CELL] = r->heaps.map.pages_per_cell};

	recording_add(to, RECORDING_INSPECTION, row);
}

static void add_doubts(struct recording *to, const struct inspect_title *t,
		       const struct inspect_report *r)
{
	_cleanup_free_ char *text = NULL;
	char *rest;
	size_t size;
	FILE *file = open_memstream(&text, &size);

	CHECK(file);
	inspect_report_print_doubts(file, t, r);
	CHECK(!fclose(file));
	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		const uint64_t row[DOUBT_COLUMNS] = {recording_string(to, line)};

		recording_add(to, RECORDING_DOUBTS, row);
	}
}

static void add_rows(struct recording *to, const struct inspect_report *r)
{
	for (size_t i = 0; i < ROW_COUNT; i++) {
		const uint64_t row[RESIDENT_COLUMNS] = {
			recording_string(to, inspect_row_name[i]), r->row[i].resident,
			r->row[i].swapped};

		if (r->row[i].resident || r->row[i].swapped)
			recording_add(to, RECORDING_RESIDENT, row);
	}
}

/* -- malloc's -- */

static void add_arena(struct recording *to, const struct heap_arena *a)
{
	const uint64_t number = recording_rows(to, RECORDING_ARENAS);
	const uint64_t row[ARENA_COLUMNS] = {
		[ARENA_ADDRESS] = a->addr, [ARENA_IS_MAIN] = a->is_main,
		[ARENA_THREADS] = a->threads, [ARENA_SYSTEM] = a->system_bytes,
		[ARENA_RESIDENT] = a->counted.resident, [ARENA_SWAPPED] = a->counted.swapped,
		[ARENA_LIVE_BLOCKS] = a->live_blocks, [ARENA_LIVE_BYTES] = a->live_bytes,
		[ARENA_FREE] = a->free.resident, [ARENA_TRIM] = a->trim.resident,
		[ARENA_FREE_PAGES] = a->pages.free};

	recording_add(to, RECORDING_ARENAS, row);
	for (size_t i = 0; i < PINNED_STEPS; i++) {
		const uint64_t step[PINNED_COLUMNS] = {number, pinned_step[i], a->pages.step[i]};

		recording_add(to, RECORDING_PINNED, step);
	}
}

/* Without the first @hidden arenas. */
static void add_map(struct recording *to, const struct heap_map *m, size_t hidden)
{
	for (size_t i = 0; i < m->heaps.count; i++) {
		const struct heap_map_heap *h = &m->heaps.data[i];
		const uint64_t row[HEAP_COLUMNS] = {h->arena - hidden, h->start, h->end};
		const uint64_t number = recording_rows(to, RECORDING_HEAPS);

		if (h->arena < hidden)
			continue;
		recording_add(to, RECORDING_HEAPS, row);
		for (size_t k = 0; k < h->count; k++) {
			const struct heap_cell *c = &m->cells.data[h->first + k];
			const uint64_t cell[HEAP_CELL_COLUMNS] = {number, c->pages, c->live,
								  c->nearly_empty};

			recording_add(to, RECORDING_HEAP_CELLS, cell);
		}
	}
}

static void add_types(struct recording *to, const struct block_types *types)
{
	char text[INSPECT_TYPE_SIZE];

	for (size_t i = 0; i < types->list.count; i++) {
		const struct block_type *e = &types->list.data[i];
		const uint64_t row[TYPE_COLUMNS] = {
			recording_string(to, inspect_type_text(e, text)), e->blocks, e->bytes,
			e->pages};

		recording_add(to, RECORDING_TYPES, row);
	}
}

static void add_pins(struct recording *to, const struct pinned_paths *p)
{
	for (uint32_t leaf = 1; p->pages && leaf < p->count; leaf++) {
		const uint64_t row[PIN_COLUMNS] = {leaf, p->pages[leaf]};

		if (p->pages[leaf])
			recording_add(to, RECORDING_PINS, row);
	}
}

static void add_untouched(struct recording *to, const struct session_cold *c)
{
	for (uint32_t leaf = 1; leaf < c->sums.count; leaf++) {
		const struct cold_sum *s = &c->sums.data[leaf];
		const uint64_t row[UNTOUCHED_COLUMNS] = {leaf, s->bytes, s->untouched.cold,
							 s->untouched.cold + s->untouched.shared};

		if (s->bytes)
			recording_add(to, RECORDING_UNTOUCHED, row);
	}
}

static void add_advice(struct recording *to, const struct inspect_report *r)
{
	struct inspect_advice_list advice;

	inspect_advice_find(r, &advice);
	for (size_t i = 0; i < advice.list.count; i++) {
		const struct inspect_advice *a = &advice.list.data[i];
		const uint64_t row[ADVICE_COLUMNS] = {recording_string(to, a->text), a->bytes,
						      a->is_limit};

		recording_add(to, RECORDING_ADVICE, row);
	}
	inspect_advice_deinit(&advice);
}

/* The tables of an inspection alone; the caller frees it. */
static struct recording *recording_inspect_new(const struct inspection *i,
					       const struct session_cold *cold)
{
	const struct inspect_title *t = &i->title;
	const struct inspect_report *r = &i->look.report;
	struct recording *to = recording_new();
	bool has_arenas = t->has_malloc && !r->other.name;

	add_head(to, t, r, i->time_ms);
	add_doubts(to, t, r);
	add_rows(to, r);
	add_types(to, &r->types);
	if (i->cold > 0)
		add_untouched(to, cold);
	add_map(to, &r->heaps.map, has_arenas ? 0 : r->heaps.arenas.count);
	if (!has_arenas)
		return to;
	for (size_t k = 0; k < r->heaps.arenas.count; k++)
		add_arena(to, &r->heaps.arenas.data[k]);
	add_pins(to, &i->pins.paths);
	add_advice(to, r);
	return to;
}

/* A file in memory that @put has written; NULL, and a size of 0, if there is none. */
static FILE *write_memory(int (*put)(FILE *file, const void *ctx), const void *ctx,
			  uint64_t *size_out)
{
	int fd = memfd_create("ptmem-inspection", MFD_CLOEXEC);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "w+");

	if (!file && fd >= 0)
		close(fd);
	*size_out = file && put(file, ctx) == 0 && fflush(file) == 0 ? (uint64_t)ftello(file) : 0;
	return file;
}

static int put_tables(FILE *file, const void *tables)
{
	return recording_write(file, tables);
}

static int put_graph(FILE *file, const void *ctx)
{
	const struct inspection *i = ctx;

	return graph_file_write(file, &i->look.graph, &(struct graph_source){
		.command = i->title.command, .pid = i->title.pid, .stopped_ns = i->stopped_ns});
}

static void set_graph(struct last_inspection *k, const struct inspection *i)
{
	if (k->graph)
		fclose(k->graph);
	k->graph = write_memory(put_graph, i, &k->graph_size);
	k->graph_number++;
}

/* The server goes on without an inspection that it cannot have. */
void last_inspection_set(struct session *s, const struct inspection *i)
{
	struct last_inspection *k = &s->end.inspection;

	if (!options_record(s->run->options))
		return;
	recording_free(k->tables);
	if (k->file)
		fclose(k->file);
	k->file = NULL;
	k->tables = recording_inspect_new(i, &s->end.cold);
	k->number++;
	if (s->run->options->listen.at)
		k->file = write_memory(put_tables, k->tables, &k->size);
	if (i->keeps_graph)
		set_graph(k, i);
}

void last_inspection_deinit(struct last_inspection *k)
{
	recording_free(k->tables);
	if (k->file)
		fclose(k->file);
	if (k->graph)
		fclose(k->graph);
}

/* ptmem has written it itself. */
static void add_graph(const struct last_inspection *k, struct recording *r)
{
	_cleanup_free_ char *why = NULL;
	void *data = mmap(NULL, k->graph_size, PROT_READ, MAP_SHARED, fileno(k->graph), 0);
	struct recording *graph;

	if (data == MAP_FAILED) {
		log_warn("the heap graph is not in the recording: %s", strerror(errno));
		return;
	}
	if (graph_file_rows(data, k->graph_size, &graph, &why) == 0) {
		graph_file_copy(graph, r);
		recording_free(graph);
	}
	munmap(data, k->graph_size);
}

void last_inspection_add(const struct last_inspection *k, struct recording *r)
{
	recording_copy_inspection(k->tables, r);
	if (k->graph_size)
		add_graph(k, r);
}
