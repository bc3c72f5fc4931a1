/* Reads the buckets of runtime/mprof.go, by pages that are kept while neighbours are read. */
#include "languages/go_heap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "arch/first_load.h"

#define BUCKETS_MAX (1u << 20)
#define PCS_MAX (1u << 26)
#define DEPTH_MAX 2048u       /* frames of a path; Go's own limit is below this */
#define MEMORY_PROFILE 1u     /* the kind of a bucket */
#define FUTURES 3u
#define RELEASE_WITH_SHIFT 19u /* since then the cycle is not the lowest bit of its word */
#define CODE_MAX 4096u        /* bytes of a function that are searched */

/* -- where it is -- */

struct wanted_symbol {
	const char *name;
	uint64_t *to;
	unsigned shift;
};

struct search {
	const struct wanted_symbol *wanted;
	size_t count;
	struct go_heap_places *out;
};

static int take_symbol(void *ctx, const struct elf_symbol *sym)
{
	struct search *s = ctx;

	for (size_t i = 0; sym->is_defined && i < s->count; i++) {
		if (strcmp(sym->name, s->wanted[i].name) != 0)
			continue;
		*s->wanted[i].to = sym->vaddr;
		s->out->cycle_shift += s->wanted[i].shift;
	}
	return 0;
}

/* The variable that function @name loads first (arch_find_first_load); 0 = none. */
static uint64_t find_used(struct elf_file *file, const struct go_table *t, const char *name,
			  unsigned size)
{
	struct go_function f;

	if (!go_table_find_name(t, name, &f))
		return 0;
	const struct elf_segment *s = elf_file_segment(file, f.entry);
	uint64_t bytes = MIN(f.end - f.entry, (uint64_t)CODE_MAX);

	if (!s || f.entry - s->vaddr > s->filesz || bytes > s->filesz - (f.entry - s->vaddr))
		return 0;
	uint8_t *code = elf_file_read(file, s->offset + (f.entry - s->vaddr), bytes);
	uint64_t found = 0;

	if (code)
		found = arch_find_first_load(
			&(struct arch_code){.bytes = code, .size = bytes, .at = f.entry}, size);
	free(code);
	return found;
}

bool go_heap_find(struct elf_file *file, struct go_heap_places *out)
{
	struct go_heap_places p = {0};
	const struct go_table *t = go_table_of(file);
	const struct wanted_symbol wanted[] = {
		{"runtime.mbuckets", &p.buckets, 0}, {"runtime.mProfCycle", &p.cycle, 1},
		{"runtime.mProf", &p.cycle, 0}, {"runtime.MemProfileRate", &p.rate, 0},
		{"runtime.profMemActiveLock", &p.lock, 0}, {"runtime.proflock", &p.lock, 0}};
	struct search search = {wanted, ARRAY_SIZE(wanted), &p};

	if (!t)
		return false;
	elf_file_each_symbol(file, take_symbol, &search);
	if (!p.buckets && go_table_release(file) >= RELEASE_WITH_SHIFT) {
		p.buckets = find_used(file, t, "runtime.mProf_FlushLocked", 8);
		p.cycle = find_used(file, t, "runtime.mProf_PostSweep", 4);
		p.lock = find_used(file, t, "runtime.mProf_PostSweep", 0);
		p.rate = find_used(file, t, "runtime.allocmcache", 8);
		p.cycle_shift = 1;
	}
	*out = p;
	return p.buckets && p.cycle && p.rate && p.lock;
}

/* -- memory -- */

#define WINDOW 16384u
#define WINDOWS 64u

struct kept_bytes {
	taddr_t start;
	size_t size;
	uint8_t data[WINDOW];
};

struct reader {
	const struct language_memory *memory;
	struct kept_bytes *window; /* WINDOWS of them */
};

static bool read_page(const struct reader *r, taddr_t addr, void *buf, size_t size)
{
	taddr_t start = addr - addr % WINDOW;
	struct kept_bytes *w = &r->window[start / WINDOW % WINDOWS];

	if (w->size == 0 || w->start != start) {
		*w = (struct kept_bytes){.start = start};
		if (r->memory->read(r->memory->ctx, start, w->data, WINDOW))
			w->size = WINDOW;
	}
	if (w->size == 0) /* at the edge of what is mapped */
		return r->memory->read(r->memory->ctx, addr, buf, size);
	memcpy(buf, w->data + (addr - start), size);
	return true;
}

static bool read_bytes(const struct reader *r, taddr_t addr, void *buf, size_t size)
{
	for (char *to = buf; size > 0;) {
		size_t part = MIN(size, WINDOW - (size_t)(addr % WINDOW));

		if (addr > UINT64_MAX - WINDOW || !read_page(r, addr, to, part))
			return false;
		to += part;
		addr += part;
		size -= part;
	}
	return true;
}

/* -- buckets -- */

/* In memory: runtime.bucket, and what follows the addresses. */
struct header {
	uint64_t next, all_next, kind, hash, size, depth;
};

struct record {
	struct go_counts active, future[FUTURES];
};

struct raw_bucket {
	struct go_bucket bucket;
	struct record record;
};

struct bucket_walk {
	struct reader reader;
	VEC(struct raw_bucket) raw;
	struct go_heap *out;
};

/* Reads the bucket at @at; false if it is none. */
static bool read_bucket(struct bucket_walk *w, taddr_t at, taddr_t *next_out)
{
	struct raw_bucket b = {0};
	struct header h;
	taddr_t pcs[DEPTH_MAX];

	if (at % 8 != 0 || !read_bytes(&w->reader, at, &h, sizeof(h)) ||
	    h.kind != MEMORY_PROFILE || h.depth > DEPTH_MAX ||
	    w->out->pcs.count + h.depth > PCS_MAX ||
	    !read_bytes(&w->reader, at + sizeof(h), pcs, h.depth * sizeof(*pcs)) ||
	    !read_bytes(&w->reader, at + sizeof(h) + h.depth * sizeof(*pcs), &b.record,
			sizeof(b.record)))
		return false;
	b.bucket = (struct go_bucket){.size = h.size, .pc = (uint32_t)w->out->pcs.count,
				      .pcs = (uint32_t)h.depth};
	for (size_t i = 0; i < h.depth; i++)
		*vec_add(&w->out->pcs) = pcs[i];
	*vec_add(&w->raw) = b;
	*next_out = h.all_next;
	return true;
}

static void add(struct go_counts *to, const struct go_counts *c)
{
	to->allocated += c->allocated;
	to->freed += c->freed;
	to->allocated_bytes += c->allocated_bytes;
	to->freed_bytes += c->freed_bytes;
}

/*
 * As runtime.MemProfile does: what the current cycle counts is published now; before the first
 * collection everything is.
 */
static void publish(struct bucket_walk *w, uint32_t cycle)
{
	bool is_first = true;

	for (size_t i = 0; i < w->raw.count; i++) {
		struct record *r = &w->raw.data[i].record;

		add(&r->active, &r->future[cycle % FUTURES]);
		r->future[cycle % FUTURES] = (struct go_counts){0};
		is_first &= r->active.allocated == 0 && r->active.freed == 0;
	}
	for (size_t i = 0; i < w->raw.count; i++) {
		struct raw_bucket *b = &w->raw.data[i];

		for (size_t k = 0; is_first && k < FUTURES; k++)
			add(&b->record.active, &b->record.future[k]);
		b->bucket.counts = b->record.active;
		if (b->record.active.allocated != 0)
			*vec_add(&w->out->buckets) = b->bucket;
	}
}

/* Reads the list from @at on. False if it is corrupt: a bucket that is none, or a ring. */
static bool read_list(struct bucket_walk *w, taddr_t at)
{
	taddr_t mark = 0;

	while (at) {
		/* a mark that moves ever more rarely is met again, if it is in the ring */
		if (at == mark || w->raw.count == BUCKETS_MAX)
			return false;
		if ((w->raw.count & (w->raw.count - 1)) == 0)
			mark = at;
		if (!read_bucket(w, at, &at))
			return false;
	}
	return true;
}

bool go_heap_read(const struct language_memory *m, const struct go_heap_places *places,
		  uint64_t bias, struct go_heap *out)
{
	struct bucket_walk w = {.reader.memory = m, .out = out};
	uint64_t at, lock;
	uint32_t cycle;

	*out = (struct go_heap){0};
	if (!m->read(m->ctx, bias + places->rate, &out->rate, 8) ||
	    !m->read(m->ctx, bias + places->buckets, &at, 8) ||
	    !m->read(m->ctx, bias + places->lock, &lock, 8) ||
	    !m->read(m->ctx, bias + places->cycle, &cycle, 4))
		return false;
	out->is_torn = lock != 0;
	w.reader.window = xcalloc(WINDOWS, sizeof(*w.reader.window));
	out->is_cut = !read_list(&w, at);
	publish(&w, cycle >> places->cycle_shift);
	free(w.reader.window);
	vec_deinit(&w.raw);
	return true;
}

void go_heap_deinit(struct go_heap *h)
{
	vec_deinit(&h->buckets);
	vec_deinit(&h->pcs);
}

/* runtime/malloc.go, mallocinit: 0x00c0 << 32, and that in each of the next 126 TiB */
bool go_heap_may_have(taddr_t addr)
{
	return (addr >> 32 & 0xff) == 0xc0;
}

/* -- estimates -- */

static int64_t round_down(double d)
{
	return d >= 0x1p63 ? INT64_MAX : d <= -0x1p63 ? INT64_MIN : (int64_t)d;
}

static void scale(int64_t count, int64_t bytes, uint64_t rate, int64_t *count_out,
		  int64_t *bytes_out)
{
	double each = (double)bytes / (double)(count ? count : 1), factor = 1;

	if (rate > 1)
		factor = 1 / (1 - exp(-each / (double)rate));
	*count_out = count && bytes ? round_down((double)count * factor) : 0;
	*bytes_out = count && bytes ? round_down((double)bytes * factor) : 0;
}

struct go_estimate go_heap_estimate(const struct go_counts *c, uint64_t rate)
{
	struct go_estimate e;

	scale((int64_t)c->allocated, (int64_t)c->allocated_bytes, rate, &e.allocated,
	      &e.allocated_bytes);
	scale((int64_t)(c->allocated - c->freed), (int64_t)(c->allocated_bytes - c->freed_bytes),
	      rate, &e.live, &e.live_bytes);
	return e;
}
