/* A Go program's heap profile as text and JSON. */
#include "output/inspect_go.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/amount.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "base/text.h"

#define FRAMES_SHOWN 6u

/* -- from the buckets -- */

/* Frames of the allocator itself, which pprof does not show, either. */
static bool is_runtime(const struct inspect_go_frame *f)
{
	return f->name && (strncmp(f->name, "runtime.", 8) == 0 ||
			   strncmp(f->name, "internal/runtime/", 17) == 0);
}

struct known_path {
	uint64_t hash;
	uint32_t path;
};

struct path_filling {
	struct inspect_go *go;
	const struct go_heap *heap;
	HASH(struct known_path) known; /* by addresses */
	void (*name)(void *ctx, struct inspect_go_frame *frame);
	void *ctx;
};

static void sum(struct go_estimate *to, const struct go_estimate *e)
{
	to->allocated += e->allocated;
	to->allocated_bytes += e->allocated_bytes;
	to->live += e->live;
	to->live_bytes += e->live_bytes;
}

static bool is_same(const struct inspect_go *g, const struct inspect_go_path *a,
		    const struct inspect_go_path *b)
{
	for (uint32_t i = 0; i < a->frames && a->frames == b->frames; i++)
		if (g->frames.data[a->frame + i].pc != g->frames.data[b->frame + i].pc)
			return false;
	return a->frames == b->frames;
}

/* Names the addresses of @b; leaves the allocator's own out unless there are no others. */
static struct inspect_go_path name_path(const struct path_filling *f, const struct go_bucket *b)
{
	struct inspect_go *g = f->go;
	struct inspect_go_path p = {.frame = (uint32_t)g->frames.count};
	uint32_t skip = 0;

	for (uint32_t i = 0; i < b->pcs; i++) {
		struct inspect_go_frame frame = {.pc = f->heap->pcs.data[b->pc + i]};

		f->name(f->ctx, &frame);
		if (!frame.name || strcmp(frame.name, "runtime.goexit") != 0)
			*vec_add(&g->frames) = frame;
	}
	p.frames = (uint32_t)g->frames.count - p.frame;
	while (skip < p.frames && is_runtime(&g->frames.data[p.frame + skip]))
		skip++;
	skip %= MAX(p.frames, 1u);
	p.frame += skip;
	p.frames -= skip;
	return p;
}

/* Objects of several sizes that have the same path are one. */
static void add_bucket(struct path_filling *f, const struct go_bucket *b)
{
	struct inspect_go *g = f->go;
	struct go_estimate counts = go_heap_estimate(&b->counts, f->heap->rate);
	struct inspect_go_path p = name_path(f, b);
	uint64_t hash = p.frames;

	for (uint32_t i = 0; i < p.frames; i++)
		hash = hash_u64(hash ^ g->frames.data[p.frame + i].pc);
	const struct known_path *known = hash_find(
		&f->known, hash, e,
		e->hash == hash && is_same(g, &g->paths.data[e->path], &p));

	if (known) {
		sum(&g->paths.data[known->path].counts, &counts);
	} else {
		*hash_add(&f->known, hash) =
			(struct known_path){hash, (uint32_t)g->paths.count};
		p.counts = counts;
		*vec_add(&g->paths) = p;
	}
	sum(&g->all, &counts);
}

static int compare_paths(const void *a, const void *b)
{
	const struct inspect_go_path *x = a, *y = b;
	const struct go_estimate *p = &x->counts, *q = &y->counts;

	if (p->live_bytes != q->live_bytes)
		return p->live_bytes < q->live_bytes ? 1 : -1;
	if (p->allocated_bytes != q->allocated_bytes)
		return p->allocated_bytes < q->allocated_bytes ? 1 : -1;
	return (x->frame > y->frame) - (x->frame < y->frame);
}

void inspect_go_fill(struct inspect_go *g, const struct go_heap *h,
		     void (*name)(void *ctx, struct inspect_go_frame *frame), void *ctx)
{
	struct path_filling f = {.go = g, .heap = h, .name = name, .ctx = ctx};

	g->rate = h->rate;
	g->is_torn = h->is_torn;
	g->is_cut = h->is_cut;
	for (size_t i = 0; i < h->buckets.count; i++)
		add_bucket(&f, &h->buckets.data[i]);
	hash_deinit(&f.known);
	vec_sort(&g->paths, compare_paths);
}

void inspect_go_deinit(struct inspect_go *g)
{
	vec_deinit(&g->paths);
	vec_deinit(&g->frames);
}

/* -- text -- */

static void print_frame(FILE *f, const struct inspect_go_frame *frame)
{
	_cleanup_free_ char *name = frame->name ? text_clean(frame->name, strlen(frame->name)) :
						  xasprintf("0x%llx",
							    (unsigned long long)frame->pc);
	const char *base = frame->file ? text_base_name(frame->file) : NULL;
	_cleanup_free_ char *file = base ? text_clean(base, strlen(base)) : NULL;

	fputs(name, f);
	if (file && frame->line)
		fprintf(f, " (%s:%u)", file, frame->line);
}

static void print_path(FILE *f, const struct inspect_go *g, const struct inspect_go_path *p)
{
	char live[AMOUNT_SIZE], objects[AMOUNT_SIZE], allocated[AMOUNT_SIZE];

	fprintf(f, "%18s %11s %18s  ", amount_commas((uint64_t)p->counts.live_bytes, live),
		amount_commas((uint64_t)p->counts.live, objects),
		amount_commas((uint64_t)p->counts.allocated_bytes, allocated));
	for (uint32_t i = 0; i < p->frames && i < FRAMES_SHOWN; i++) {
		if (i > 0)
			fprintf(f, "\n%51s  by ", "");
		print_frame(f, &g->frames.data[p->frame + i]);
	}
	fputs(p->frames > FRAMES_SHOWN ? " ...\n" : "\n", f);
}

static void print_doubts(FILE *f, const struct inspect_go *g)
{
	if (g->is_torn)
		fprintf(f, "a thread was changing the profile: numbers may be wrong\n");
	if (g->is_cut)
		fprintf(f, "the list of its buckets is corrupt: some are missing\n");
}

static void print_head(FILE *f, const struct inspect_go *g)
{
	char release[16] = "";

	if (g->release)
		snprintf(release, sizeof(release), " 1.%u", g->release);
	fprintf(f, "\nGo%s: ", release);
	if (g->is_unknown)
		fprintf(f, "its heap profile was not found: the program is stripped, and older "
			   "than Go 1.19\n");
	else if (g->rate == 0)
		fprintf(f, "it keeps no heap profile (runtime.MemProfileRate is 0; the linker sets "
			   "that if nothing\nin the program uses the profile: import runtime/pprof "
			   "or net/http/pprof)\n");
}

void inspect_go_print(FILE *f, const struct inspect_go *g, size_t rows)
{
	char live[AMOUNT_SIZE], objects[AMOUNT_SIZE], rate[AMOUNT_SIZE];

	if (!g->is_go)
		return;
	print_head(f, g);
	if (g->is_unknown || g->rate == 0)
		return;
	fprintf(f, "%s live in %s objects at the last collection; by the program's own heap "
		   "profile,\nwhich has one sample per %s allocated, so these are estimates\n\n",
		amount_bytes((double)g->all.live_bytes, live),
		amount_commas((uint64_t)g->all.live, objects), amount_bytes((double)g->rate, rate));
	fprintf(f, "%18s %11s %18s  allocated in\n", "live bytes", "objects", "bytes ever");
	for (size_t i = 0; i < g->paths.count && i < rows; i++)
		print_path(f, g, &g->paths.data[i]);
	if (g->paths.count > rows)
		fprintf(f, "%51s  %zu more: --inspect-out=FILE.pb.gz has all, for go tool pprof\n",
			"", g->paths.count - rows);
	print_doubts(f, g);
	fprintf(f, "what keeps an object alive: viewcore (golang.org/x/debug) shows it in a core "
		   "file, goref in a process\n");
}

/* -- JSON -- */

static void put_counts(struct json_writer *w, const struct go_estimate *e)
{
	json_write_format(w, "live_bytes", "%lld", (long long)e->live_bytes);
	json_write_format(w, "live_objects", "%lld", (long long)e->live);
	json_write_format(w, "allocated_bytes", "%lld", (long long)e->allocated_bytes);
	json_write_format(w, "allocated_objects", "%lld", (long long)e->allocated);
}

static void put_path(struct json_writer *w, const struct inspect_go *g,
		     const struct inspect_go_path *p)
{
	json_write_open(json_write_line(w, 6), NULL, '{');
	put_counts(w, &p->counts);
	json_write_open(w, "frames", '[');
	for (uint32_t i = 0; i < p->frames; i++) {
		const struct inspect_go_frame *f = &g->frames.data[p->frame + i];

		json_write_open(json_write_line(w, 8), NULL, '{');
		json_write_number(w, "address", f->pc - 1);
		if (f->name)
			json_write_text(w, "function", f->name);
		if (f->file && f->line) {
			json_write_text(w, "file", f->file);
			json_write_number(w, "line", f->line);
		}
		json_write_close(w, 1);
	}
	json_write_close(w, 2);
}

void inspect_go_write_json(struct json_writer *w, const struct inspect_go *g)
{
	if (!g->is_go)
		return;
	json_write_open(json_write_line(w, 2), "go", '{');
	json_write_number(w, "release", g->release);
	json_write_bool(w, "found", !g->is_unknown);
	json_write_number(w, "sample_bytes", g->rate);
	put_counts(json_write_line(w, 4), &g->all);
	json_write_bool(w, "torn", g->is_torn);
	json_write_bool(w, "cut", g->is_cut);
	json_write_open(json_write_line(w, 4), "paths", '[');
	for (size_t i = 0; i < g->paths.count; i++)
		put_path(w, g, &g->paths.data[i]);
	json_write_close(json_write_line(w, 4), 1);
	json_write_close(json_write_line(w, 2), 1);
}
