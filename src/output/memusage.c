/*
 * memusage's accounting; see memusage.h. The table of spec/memusage.md 1.1 is
 * the order of the functions here.
 *
 * Stacks (1.3, the intended rule): each thread has a base, the shallowest stack
 * pointer that it was seen with; its depth is the distance below it. The base of the
 * first thread is there before its first call (EVENT_STACK_BASE). A stack pointer outside
 * of the thread's own stack (EVENT_STACK_RANGE) belongs to a fiber or to a signal's
 * handler, and says nothing: the own stack is as deep as it was left.
 */
#include "output/memusage.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/alloc.h"
#include "base/heap_function.h"
#include "base/vec.h"
#include "profile/blocks_quick.h"
#include "profile/capacity.h"
#include "profile/pages.h"

#define ALIGNMENT 16                 /* of plain blocks: only a hint to the table */
/* Where a stack is taken to be that was not told of, from its base. */
#define STACK_BELOW (1ull << 30)
#define STACK_ABOVE (1ull << 23)

enum { PLAIN, ALIGNED }; /* a block's leaf: the memalign family's, or not */

struct thread_base {
	uint32_t thread;
	taddr_t base;        /* 0 = it was not seen on its own stack yet */
	uint64_t depth;      /* of that, as last seen */
	taddr_t low;         /* its own stack: [low, low + size] */
	uint64_t size;       /* 0 = not told */
};

/* A block that its thread is reallocating. */
struct resized {
	uint32_t thread;
	bool is_known;
	struct block block;
};

struct memusage {
	struct memusage_numbers numbers;
	struct memusage_data *data;
	struct blocks *blocks;
	struct pages maps;
	VEC(struct thread_base) bases;
	VEC(struct resized) resized;
	size_t last_base; /* index of the one found last */
	bool is_over;     /* memusage prints now, and counts no more */
};

struct memusage *memusage_new(struct memusage_data *data)
{
	struct memusage *m = xcalloc(1, sizeof(*m));
	m->data = data;
	m->blocks = blocks_new(false, ALIGNMENT);
	return m;
}

struct memusage *memusage_clone(const struct memusage *m)
{
	struct memusage *c = xmemdup(m, sizeof(*m));
	c->data = NULL;
	c->blocks = blocks_clone(m->blocks);
	pages_clone(&c->maps, &m->maps);
	memset(&c->bases, 0, sizeof(c->bases)); /* its only thread has another number */
	memset(&c->resized, 0, sizeof(c->resized));
	for (size_t i = 0; i < m->resized.count; i++) {
		if (m->resized.data[i].is_known)
			blocks_add(c->blocks, &m->resized.data[i].block, NULL);
	}
	c->last_base = 0;
	return c;
}

void memusage_free(struct memusage *m)
{
	if (!m)
		return;
	blocks_free(m->blocks);
	pages_deinit(&m->maps);
	vec_deinit(&m->bases);
	vec_deinit(&m->resized);
	free(m);
}

const struct memusage_numbers *memusage_numbers(const struct memusage *m)
{
	return &m->numbers;
}

/* -- stacks and records -- */

static inline struct thread_base *get_base(struct memusage *m, uint32_t thread)
{
	if (m->last_base < m->bases.count && m->bases.data[m->last_base].thread == thread)
		return &m->bases.data[m->last_base];
	for (size_t i = 0; i < m->bases.count; i++) {
		if (m->bases.data[i].thread == thread) {
			m->last_base = i;
			return &m->bases.data[i];
		}
	}
	m->last_base = m->bases.count;
	struct thread_base *b = vec_add(&m->bases);
	*b = (struct thread_base){.thread = thread};
	return b;
}

static inline bool is_own_stack(const struct thread_base *b, taddr_t sp)
{
	if (b->size)
		return sp - b->low <= b->size;
	if (!b->base)
		return true;
	return sp > b->base ? sp - b->base < STACK_ABOVE : b->base - sp < STACK_BELOW;
}

static inline uint64_t stack_depth(struct memusage *m, uint32_t thread, taddr_t sp)
{
	if (!sp)
		return 0;
	struct thread_base *b = get_base(m, thread);
	if (is_own_stack(b, sp)) {
		b->base = MAX(b->base, sp);
		b->depth = b->base - sp;
	}
	return b->depth;
}

static void on_stack_range(struct memusage *m, const struct event *ev)
{
	struct thread_base *b = get_base(m, ev->thread);
	b->low = ev->addr;
	b->size = ev->size;
}

/* Something changed: peaks and the data file follow. */
static inline void note(struct memusage *m, uint32_t thread, taddr_t sp, uint64_t time_ns)
{
	struct memusage_numbers *n = &m->numbers;
	uint64_t depth = stack_depth(m, thread, sp);
	n->peak = MAX(n->peak, n->live);
	n->stack_peak = MAX(n->stack_peak, depth);
	n->sum_peak = MAX(n->sum_peak, n->live + depth);
	if (m->data)
		memusage_data_add(m->data, n->live, depth, time_ns);
}

static void record(struct memusage *m, const struct event *ev)
{
	note(m, ev->thread, ev->sp, ev->time_ns);
}

/* -- what calls share -- */

/*
 * A size that no 64 bits hold (calloc, reallocarray)
 * arrives as UINT64_MAX: large, but no sum of it.
 */
static inline void count_bytes(struct memusage *m, enum memusage_row row, uint64_t bytes)
{
	if (bytes == UINT64_MAX)
		return;
	m->numbers.row[row].memory += bytes;
	if (row != MEMUSAGE_FREE && row != MEMUSAGE_MUNMAP)
		m->numbers.total += bytes;
}

static inline void count_size(struct memusage *m, uint64_t size)
{
	struct memusage_numbers *n = &m->numbers;
	n->histogram_calls++;
	if (size / MEMUSAGE_BUCKET < MEMUSAGE_BUCKETS)
		n->histogram[size / MEMUSAGE_BUCKET]++;
	else
		n->large++;
}

static void add_block(struct memusage *m, taddr_t addr, uint64_t size, uint32_t owner)
{
	struct block old, block = {
		.addr = addr, .size = size, .capacity = capacity_of(size, ALIGNMENT), .leaf = owner,
	};
	m->numbers.live += size;
	if (blocks_add(m->blocks, &block, &old))
		m->numbers.live -= old.size; /* was freed unseen */
}

/* -- malloc, calloc, realloc(NULL), memalign -- */

static inline enum memusage_row row_of(uint8_t function, uint64_t align)
{
	switch (function) {
	case FUNCTION_CALLOC:
		return MEMUSAGE_CALLOC;
	case FUNCTION_REALLOC:
		return MEMUSAGE_REALLOC;
	case FUNCTION_MEMALIGN:
		return MEMUSAGE_MEMALIGN;
	case FUNCTION_NEW: /* calls malloc, or aligned_alloc */
		return align ? MEMUSAGE_MEMALIGN : MEMUSAGE_MALLOC;
	}
	return MEMUSAGE_MALLOC;
}

static void on_alloc(struct memusage *m, const struct event *ev)
{
	enum memusage_row row = row_of(ev->function, ev->align);
	m->numbers.row[row].calls++;
	count_bytes(m, row, ev->size);
	count_size(m, ev->size);
	if (!ev->addr) {
		m->numbers.row[row].failed += ev->size >
					      0; /* some allocators give NULL for nothing */
		return;
	}
	add_block(m, ev->addr, ev->size, row == MEMUSAGE_MEMALIGN ? ALIGNED : PLAIN);
	record(m, ev);
}

/* -- realloc -- */

static void put_back(struct memusage *m, const struct resized *r)
{
	struct block other;
	if (r->is_known && !blocks_find(m->blocks, r->block.addr, &other))
		blocks_add(m->blocks, &r->block, NULL);
}

/* What @thread has taken out, if it has. */
static bool take_resized(struct memusage *m, uint32_t thread, struct resized *out)
{
	for (size_t i = 0; i < m->resized.count; i++) {
		if (m->resized.data[i].thread == thread) {
			*out = m->resized.data[i];
			vec_take_swap(&m->resized, i);
			return true;
		}
	}
	return false;
}

static void on_realloc_begin(struct memusage *m, const struct event *ev)
{
	struct resized r;
	if (take_resized(m, ev->thread, &r))
		put_back(m, &r);
	r = (struct resized){.thread = ev->thread, .block.addr = ev->old_addr};
	r.is_known = blocks_take(m->blocks, ev->old_addr, &r.block);
	*vec_add(&m->resized) = r;
}

static bool take_old(struct memusage *m, const struct event *ev, struct resized *out)
{
	if (take_resized(m, ev->thread, out)) {
		if (out->block.addr == ev->old_addr)
			return out->is_known;
		put_back(m, out);
	}
	out->is_known = blocks_take(m->blocks, ev->old_addr, &out->block);
	return out->is_known;
}

/* realloc(p, 0) is a free: of bytes that the row of free counts, but not as its call. */
static void on_freeing_realloc(struct memusage *m, const struct event *ev, const struct block *old)
{
	if (old->leaf == PLAIN) {
		m->numbers.freeing++;
		count_bytes(m, MEMUSAGE_FREE, old->size);
	}
	m->numbers.live -= old->size;
	record(m, ev);
}

static void on_resize(struct memusage *m, const struct event *ev, const struct block *old)
{
	struct memusage_numbers *n = &m->numbers;
	if (old->leaf == PLAIN) {
		n->same_place += ev->addr == ev->old_addr;
		n->shrunk += ev->size < old->size;
	}
	n->live -= old->size;
	add_block(m, ev->addr, ev->size, old->leaf);
	record(m, ev);
}

static void on_realloc_end(struct memusage *m, const struct event *ev)
{
	struct resized old;
	if (!take_old(m, ev, &old)) {
		m->numbers.unknown++;
		return;
	}
	enum memusage_row row = old.block.leaf == ALIGNED ? MEMUSAGE_MEMALIGN : MEMUSAGE_REALLOC;
	if (row == MEMUSAGE_REALLOC)
		m->numbers.row[row].calls++;
	else
		m->numbers.aligned_reallocs++;
	if (!ev->addr && ev->size == 0) {
		on_freeing_realloc(m, ev, &old.block);
		return;
	}
	if (ev->size == UINT64_MAX || ev->size > old.block.size)
		count_bytes(m, row,
			    ev->size == UINT64_MAX ? UINT64_MAX : ev->size - old.block.size);
	count_size(m, ev->size);
	if (ev->addr) {
		on_resize(m, ev, &old.block);
		return;
	}
	m->numbers.row[row].failed++;
	put_back(m, &old);
}

/* -- free -- */

static void on_free(struct memusage *m, const struct event *ev)
{
	struct block block;
	if (!ev->addr) {
		m->numbers.row[MEMUSAGE_FREE].calls++;
		return;
	}
	if (!blocks_take(m->blocks, ev->addr, &block)) {
		m->numbers.unknown++;
		return;
	}
	if (block.leaf == ALIGNED) {
		m->numbers.aligned_frees++;
	} else {
		m->numbers.row[MEMUSAGE_FREE].calls++;
		count_bytes(m, MEMUSAGE_FREE, block.size);
	}
	m->numbers.live -= block.size;
	record(m, ev);
}

/* -- mmap, mremap, munmap -- */

static void map_gone(void *ctx, uint32_t leaf, uint64_t bytes)
{
	struct memusage *m = ctx;
	(void)leaf;
	m->numbers.live -= bytes;
}

/*
 * The @size bytes at @addr and the pages that they lie in; false if there are none. What is asked
 * for is live; what is taken away is whole pages, as the kernel does it.
 */
static bool range_of(taddr_t addr, uint64_t size, taddr_t *end_out, taddr_t *pages_end_out)
{
	taddr_t end;
	if (size == 0 || __builtin_add_overflow(addr, size, &end) ||
	    end > UINT64_MAX - PAGE_SIZE_MIN)
		return false;
	*end_out = end;
	*pages_end_out = ROUND_UP(end, PAGE_SIZE_MIN);
	return true;
}

static void remove_map(struct memusage *m, taddr_t addr, uint64_t size)
{
	taddr_t end, pages_end;
	if (range_of(addr, size, &end, &pages_end))
		pages_remove(&m->maps, ROUND_DOWN(addr, PAGE_SIZE_MIN), pages_end, map_gone, m);
}

static void add_map(struct memusage *m, taddr_t addr, uint64_t size)
{
	taddr_t end, pages_end;
	if (!range_of(addr, size, &end, &pages_end))
		return;
	remove_map(m, addr, size); /* MAP_FIXED over another */
	pages_add(&m->maps, addr, end, 0);
	m->numbers.live += size;
}

static void on_mmap(struct memusage *m, const struct event *ev)
{
	uint64_t prot = ev->align & UINT32_MAX, flags = ev->align >> 32;
	enum memusage_row row = flags & MAP_ANONYMOUS ? MEMUSAGE_MMAP_ANONYMOUS :
				prot & PROT_WRITE ? MEMUSAGE_MMAP_WRITE : MEMUSAGE_MMAP_READ;
	m->numbers.row[row].calls++;
	count_bytes(m, row, ev->size);
	count_size(m, ev->size);
	m->numbers.row[row].failed += !ev->addr;
	if (ev->addr)
		add_map(m, ev->addr, ev->size);
}

static void on_mremap(struct memusage *m, const struct event *ev)
{
	struct memusage_numbers *n = &m->numbers;
	uint64_t old_size = ev->align;
	n->row[MEMUSAGE_MREMAP].calls++;
	count_bytes(m, MEMUSAGE_MREMAP, ev->size > old_size ? ev->size - old_size : 0);
	count_size(m, ev->size);
	n->row[MEMUSAGE_MREMAP].failed += !ev->addr;
	if (!ev->addr)
		return;
	n->map_same_place += ev->addr == ev->old_addr;
	n->map_shrunk += ev->size < old_size;
	remove_map(m, ev->old_addr, old_size); /* nothing for a second view: its old size is 0 */
	add_map(m, ev->addr, ev->size);
}

static void on_munmap(struct memusage *m, const struct event *ev)
{
	m->numbers.row[MEMUSAGE_MUNMAP].calls++;
	m->numbers.row[MEMUSAGE_MUNMAP].failed += !ev->addr;
	if (!ev->addr)
		return;
	count_bytes(m, MEMUSAGE_MUNMAP, ev->size);
	remove_map(m, ev->addr, ev->size);
}

static void on_mapping_call(struct memusage *m, const struct event *ev)
{
	if (ev->function == FUNCTION_MMAP)
		on_mmap(m, ev);
	else if (ev->function == FUNCTION_MREMAP)
		on_mremap(m, ev);
	else
		on_munmap(m, ev);
	if (ev->addr)
		record(m, ev);
}

/* -- all -- */

void memusage_event(struct memusage *m, const struct event *ev)
{
	if (m->is_over)
		return;
	switch ((enum event_kind)ev->kind) {
	case EVENT_ALLOC:
		on_alloc(m, ev);
		break;
	case EVENT_FREE:
		on_free(m, ev);
		break;
	case EVENT_REALLOC_BEGIN:
		on_realloc_begin(m, ev);
		break;
	case EVENT_REALLOC_END:
		on_realloc_end(m, ev);
		break;
	case EVENT_MAPPING_CALL:
		on_mapping_call(m, ev);
		break;
	case EVENT_SAMPLE:
		record(m, ev);
		break;
	case EVENT_PROGRAM_END:
		m->is_over = true;
		break;
	case EVENT_STACK_BASE:
		get_base(m, ev->thread)->base = ev->sp;
		break;
	case EVENT_STACK_RANGE:
		on_stack_range(m, ev);
		break;
	case EVENT_MAP:
	case EVENT_UNMAP:
	case EVENT_STACK:
	case EVENT_COUNT:
		break;
	}
}

/* -- many at a time -- */

static void slow_event(struct memusage *m, uint64_t time_ns, const struct quick_event *ev)
{
	const struct event whole = event_of_quick(time_ns, ev);
	memusage_event(m, &whole);
}

static inline bool quick_alloc(struct memusage *m, uint64_t time_ns, const struct quick_event *ev)
{
	enum memusage_row row = row_of(ev->function, 0);
	if (row == MEMUSAGE_MEMALIGN || !blocks_quick_add(m->blocks, ev->addr, ev->size, PLAIN))
		return false;
	m->numbers.row[row].calls++;
	count_bytes(m, row, ev->size);
	count_size(m, ev->size);
	m->numbers.live += ev->size;
	note(m, ev->thread, ev->sp, time_ns);
	return true;
}

static inline bool quick_free(struct memusage *m, uint64_t time_ns, const struct quick_event *ev)
{
	struct block_owner owner = blocks_quick_take(m->blocks, ev->addr);
	if (!owner.is_found)
		return false;
	if (owner.leaf == ALIGNED) {
		m->numbers.aligned_frees++;
	} else {
		m->numbers.row[MEMUSAGE_FREE].calls++;
		count_bytes(m, MEMUSAGE_FREE, owner.size);
	}
	m->numbers.live -= owner.size;
	note(m, ev->thread, ev->sp, time_ns);
	return true;
}

void memusage_quick(struct memusage *m, uint64_t time_ns, const struct quick_event *ev,
		    size_t count)
{
	if (m->is_over)
		return;
	for (size_t i = 0; i < count; i++) {
		if (i + BLOCKS_AHEAD < count)
			blocks_prefetch(m->blocks, ev[i + BLOCKS_AHEAD].addr);
		if (!(ev[i].is_free ? quick_free(m, time_ns, &ev[i]) :
				      quick_alloc(m, time_ns, &ev[i])))
			slow_event(m, time_ns, &ev[i]);
	}
}

void memusage_thread_exit(struct memusage *m, uint32_t thread)
{
	struct resized r;
	if (take_resized(m, thread, &r))
		put_back(m, &r);
	for (size_t i = 0; i < m->bases.count; i++) {
		if (m->bases.data[i].thread == thread) {
			vec_take_swap(&m->bases, i);
			break;
		}
	}
}
