/* memusage's accounting: mappings, heap calls and stacks. */
#include "profile/memusage.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/alloc.h"
#include "base/heap_calls.h"
#include "profile/blocks.h"
#include "profile/blocks_quick.h"
#include "profile/estimate.h"
#include "profile/pages.h"

enum { PLAIN, ALIGNED }; /* the values of a block's leaf: of the memalign family, or not */

struct thread_base {
	uint32_t thread;
	taddr_t base;        /* 0 = not seen on its own stack yet */
	uint64_t depth;      /* its last value */
	taddr_t low;         /* its own stack: [low, low + size] */
	uint64_t size;       /* 0 = unknown */
};

struct memusage {
	struct memusage_numbers numbers;
	uint64_t sample_interval; /* 0: all blocks are known */
	struct memusage_sink sink; /* add: NULL = none */
	struct blocks *blocks;
	struct pages maps;
	VEC(struct thread_base) bases;
	struct held_blocks held;
	size_t last_base; /* index of the last one found */
	uint64_t now_ns;  /* time of the last event */
	bool is_over;     /* memusage prints now, and stops counting */
};

/* A failed call's size counts, too, unless no object can be that large: the sums would wrap. */
static inline uint64_t countable(uint64_t size)
{
	return size > PTRDIFF_MAX ? 0 : size;
}

static inline void count_bytes(struct memusage *m, enum memusage_row row, uint64_t bytes)
{
	m->numbers.row[row].memory += bytes;
	if (row != MEMUSAGE_FREE && row != MEMUSAGE_MUNMAP)
		m->numbers.total += bytes;
}

/* The weight of a block; a failed call (address 0) has its own size. */
static inline struct weight memusage_weigh(const struct memusage *m, const struct block *block)
{
	if (block->addr || !m->sample_interval)
		return estimate_block(m->sample_interval, block, 0);
	return (struct weight){.bytes = block->size, .calls = ESTIMATE_UNIT};
}

/* @calls: in units (estimate.h) if blocks are samples. */
static inline void count_size(struct memusage *m, uint64_t size, uint64_t calls)
{
	struct memusage_numbers *n = &m->numbers;
	n->histogram_calls += calls;
	if (size / MEMUSAGE_BUCKET < MEMUSAGE_BUCKETS)
		n->histogram[size / MEMUSAGE_BUCKET] += calls;
	else
		n->large += calls;
}

/* Mappings: calls of mmap, mremap and munmap by row, and their live bytes. */

static void sub_unmapped(void *ctx, uint32_t leaf, uint64_t bytes)
{
	struct memusage *m = ctx;
	(void)leaf;
	m->numbers.live -= bytes;
}

/*
 * The @size bytes at @addr, and the pages that contain them; false if there are none. The requested
 * bytes become live; whole pages are removed, as in the kernel.
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
		pages_remove(&m->maps, ROUND_DOWN(addr, PAGE_SIZE_MIN), pages_end, sub_unmapped, m);
}

static void add_map(struct memusage *m, taddr_t addr, uint64_t size)
{
	taddr_t end, pages_end;
	if (!range_of(addr, size, &end, &pages_end))
		return;
	remove_map(m, addr, size); /* MAP_FIXED over another mapping */
	pages_add(&m->maps, addr, end, 0);
	m->numbers.live += size;
}

static void on_mmap(struct memusage *m, const struct event *ev)
{
	uint64_t prot = ev->align & UINT32_MAX, flags = ev->align >> 32;
	enum memusage_row row = flags & MAP_ANONYMOUS ? MEMUSAGE_MMAP_ANONYMOUS :
				prot & PROT_WRITE ? MEMUSAGE_MMAP_WRITE : MEMUSAGE_MMAP_READ;
	m->numbers.row[row].calls++;
	count_bytes(m, row, countable(ev->size));
	count_size(m, ev->size, m->sample_interval ? ESTIMATE_UNIT : 1);
	m->numbers.row[row].failed += !ev->addr;
	if (ev->addr)
		add_map(m, ev->addr, ev->size);
}

static void on_mremap(struct memusage *m, const struct event *ev)
{
	struct memusage_numbers *n = &m->numbers;
	uint64_t old_size = ev->align;
	n->row[MEMUSAGE_MREMAP].calls++;
	count_bytes(m, MEMUSAGE_MREMAP, countable(ev->size) > old_size ? ev->size - old_size : 0);
	count_size(m, ev->size, m->sample_interval ? ESTIMATE_UNIT : 1);
	n->row[MEMUSAGE_MREMAP].failed += !ev->addr;
	if (!ev->addr)
		return;
	n->map_same_place += ev->addr == ev->old_addr;
	n->map_shrunk += ev->size < old_size;
	remove_map(m, ev->old_addr, old_size); /* 0 for a second view: its old size is 0 */
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

/* A call of mmap, mremap or munmap, failed ones included. */
static void memusage_mapping_call(struct memusage *m, const struct event *ev)
{
	if (ev->function == FUNCTION_MMAP)
		on_mmap(m, ev);
	else if (ev->function == FUNCTION_MREMAP)
		on_mremap(m, ev);
	else
		on_munmap(m, ev);
}

/*
 * memusage's accounting; see memusage.h. The table of doc/memusage.md 1.1 is
 * the order of the functions here.
 *
 * Stacks (1.3, the intended rule): each thread has a base, its highest stack pointer seen; its
 * depth is the distance below it. The base of the first thread is known before its first call
 * (EVENT_STACK_BASE). A stack pointer outside of the thread's own stack (EVENT_STACK_RANGE) belongs
 * to a fiber or a signal handler, and is ignored: the depth of the own stack stays the same.
 */

#define ALIGNMENT 16                 /* for plain blocks: only a hint to the table */
/* The assumed size of a stack that was not reported, from its base. */
#define STACK_BELOW (1ull << 30)
#define STACK_ABOVE (1ull << 23)

struct memusage *memusage_new(const struct memusage_sink *sink)
{
	struct memusage *m = xcalloc(1, sizeof(*m));
	if (sink)
		m->sink = *sink;
	m->blocks = blocks_new(false, ALIGNMENT);
	return m;
}

struct memusage *memusage_clone(const struct memusage *m)
{
	struct memusage *c = xmemdup(m, sizeof(*m));
	c->sink = (struct memusage_sink){0};
	c->blocks = blocks_clone(m->blocks);
	pages_clone(&c->maps, &m->maps);
	memset(&c->bases, 0, sizeof(c->bases)); /* its only thread has another id */
	memset(&c->held, 0, sizeof(c->held));
	for (size_t i = 0; i < m->held.list.count; i++) {
		if (m->held.list.data[i].from != HELD_UNKNOWN)
			blocks_add(c->blocks, &m->held.list.data[i].block, NULL);
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
	vec_deinit(&m->held.list);
	free(m);
}

void memusage_set_sample_interval(struct memusage *m, uint64_t interval)
{
	m->sample_interval = interval;
}

static void set_exact(struct memusage_numbers *n, enum memusage_row row, struct call_total total)
{
	n->row[row].calls = total.calls;
	if (row != MEMUSAGE_FREE) /* released sizes are known for samples only */
		n->row[row].memory = total.bytes;
}

void memusage_estimate(const struct memusage *m, const struct call_totals *totals,
		       struct memusage_numbers *out)
{
	const struct call_total *f = totals->function;

	*out = m->numbers;
	out->is_estimate = true;
	for (unsigned i = 0; i < MEMUSAGE_BUCKETS; i++)
		out->histogram[i] = estimate_count(out->histogram[i]);
	out->large = estimate_count(out->large);
	out->histogram_calls = estimate_count(out->histogram_calls);
	set_exact(out, MEMUSAGE_MALLOC,
		  (struct call_total){f[FUNCTION_MALLOC].calls + f[FUNCTION_NEW].calls,
				      f[FUNCTION_MALLOC].bytes + f[FUNCTION_NEW].bytes});
	set_exact(out, MEMUSAGE_REALLOC, f[FUNCTION_REALLOC]);
	set_exact(out, MEMUSAGE_CALLOC, f[FUNCTION_CALLOC]);
	set_exact(out, MEMUSAGE_MEMALIGN, f[FUNCTION_MEMALIGN]);
	set_exact(out, MEMUSAGE_FREE,
		  (struct call_total){f[FUNCTION_FREE].calls + f[FUNCTION_DELETE].calls, 0});
	out->total = 0;
	for (unsigned row = 0; row < MEMUSAGE_ROWS; row++) {
		if (row != MEMUSAGE_FREE && row != MEMUSAGE_MUNMAP)
			out->total += out->row[row].memory;
	}
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

/* Something changed: updates peaks and the data file. */
static inline void note(struct memusage *m, uint32_t thread, taddr_t sp, uint64_t time_ns)
{
	struct memusage_numbers *n = &m->numbers;
	uint64_t depth = stack_depth(m, thread, sp);
	if (n->live > n->peak) {
		n->peak = n->live;
		n->peak_variance = n->live_variance;
	}
	n->stack_peak = MAX(n->stack_peak, depth);
	n->sum_peak = MAX(n->sum_peak, n->live + depth);
	m->now_ns = MAX(m->now_ns, time_ns); /* of several threads: in the order of events */
	if (m->sink.add)
		m->sink.add(m->sink.ctx, n->live, depth, m->now_ns);
}

static void record(struct memusage *m, const struct event *ev)
{
	note(m, ev->thread, ev->sp, ev->time_ns);
}

/* -- what calls share -- */

static void count_out(struct memusage *m, struct weight w)
{
	m->numbers.live -= w.bytes;
	m->numbers.live_variance -= w.variance;
}

/* The block that @ev allocates. */
static struct block block_of(const struct event *ev)
{
	return (struct block){
		.addr = ev->addr,
		.size = ev->size,
		.capacity = capacity_of(ev->size, ALIGNMENT),
		.sample_shift = ev->sample_shift,
	};
}

static void add_block(struct memusage *m, const struct event *ev, uint32_t owner)
{
	struct block old, block = block_of(ev);

	block.leaf = owner;
	const struct weight w = memusage_weigh(m, &block);
	m->numbers.live += w.bytes;
	m->numbers.live_variance += w.variance;
	if (blocks_add(m->blocks, &block, &old)) /* was freed unseen */
		count_out(m, memusage_weigh(m, &old));
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
	const struct block block = block_of(ev);
	struct weight w = memusage_weigh(m, &block);
	m->numbers.row[row].calls += w.calls;
	count_bytes(m, row, countable(w.bytes));
	count_size(m, ev->size, w.calls);
	if (!ev->addr) {
		m->numbers.row[row].failed += ev->size >
					      0; /* some allocators return NULL for size 0 */
		return;
	}
	add_block(m, ev, row == MEMUSAGE_MEMALIGN ? ALIGNED : PLAIN);
	record(m, ev);
}

/* -- realloc -- */

/* If another block is live at the address now, the realloc had released the old one. */
static void restore_block(struct memusage *m, const struct held_block *h)
{
	struct block other;
	if (h->from == HELD_UNKNOWN)
		return;
	if (blocks_find(m->blocks, h->block.addr, &other))
		count_out(m, memusage_weigh(m, &h->block));
	else
		blocks_add(m->blocks, &h->block, NULL);
}

static struct held_block hold(struct memusage *m, const struct event *ev)
{
	struct held_block held = {.thread = ev->thread, .block.addr = ev->old_addr};

	held.from = blocks_take(m->blocks, ev->old_addr, &held.block) ? HELD_COUNTED : HELD_UNKNOWN;
	return held;
}

static void on_realloc_begin(struct memusage *m, const struct event *ev)
{
	struct held_block old;
	if (held_take(&m->held, ev->thread, &old))
		restore_block(m, &old);
	old = hold(m, ev);
	*vec_add(&m->held.list) = old;
}

/* The block that @ev, the second half of a realloc, changes. */
static struct held_block take_old(struct memusage *m, const struct event *ev)
{
	struct held_block old;
	if (held_take(&m->held, ev->thread, &old)) {
		if (old.block.addr == ev->old_addr)
			return old;
		restore_block(m, &old);
	}
	return hold(m, ev);
}

/* realloc(p, 0) is a free: its bytes count in the row of free, but not its call. */
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
	add_block(m, ev, old->leaf);
	record(m, ev);
}

/* With samples a realloc is a release and an allocation, as in a profile. */
static void replace_sample(struct memusage *m, const struct event *ev, const struct held_block *old)
{
	if (!ev->addr && ev->size > 0) {
		restore_block(m, old);
		return;
	}
	count_out(m, memusage_weigh(m, &old->block));
	if (ev->addr)
		on_alloc(m, ev);
	else
		record(m, ev);
}

static void on_realloc_end(struct memusage *m, const struct event *ev)
{
	struct held_block old = take_old(m, ev);
	if (old.from == HELD_UNKNOWN) {
		m->numbers.unknown++;
		return;
	}
	if (m->sample_interval) {
		replace_sample(m, ev, &old);
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
	if (countable(ev->size) > old.block.size)
		count_bytes(m, row, ev->size - old.block.size);
	count_size(m, ev->size, 1);
	if (ev->addr) {
		on_resize(m, ev, &old.block);
		return;
	}
	m->numbers.row[row].failed++;
	restore_block(m, &old);
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
	struct weight w = memusage_weigh(m, &block);
	if (block.leaf == ALIGNED) {
		m->numbers.aligned_frees += w.calls;
	} else {
		m->numbers.row[MEMUSAGE_FREE].calls += w.calls;
		count_bytes(m, MEMUSAGE_FREE, w.bytes);
	}
	count_out(m, w);
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
		memusage_mapping_call(m, ev);
		if (ev->addr)
			record(m, ev);
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
	case EVENT_RESIDENT:
	case EVENT_EARLIER:
		break;
	}
}

/* -- many at a time -- */

static void slow_event(struct memusage *m, const struct quick_event *ev)
{
	const struct event whole = event_of_quick(ev);
	memusage_event(m, &whole);
}

static inline bool quick_alloc(struct memusage *m, const struct quick_event *ev)
{
	enum memusage_row row = row_of(ev->function, 0);
	if (row == MEMUSAGE_MEMALIGN || !blocks_quick_add(m->blocks, ev->addr, ev->size, PLAIN, 0))
		return false;
	m->numbers.row[row].calls++;
	count_bytes(m, row, ev->size);
	count_size(m, ev->size, 1);
	m->numbers.live += ev->size;
	note(m, ev->thread, ev->sp, ev->time_ns);
	return true;
}

static inline bool quick_free(struct memusage *m, const struct quick_event *ev)
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
	note(m, ev->thread, ev->sp, ev->time_ns);
	return true;
}

void memusage_quick(struct memusage *m, const struct quick_event *ev, size_t count)
{
	if (m->is_over)
		return;
	for (size_t i = 0; m->sample_interval && i < count; i++)
		slow_event(m, &ev[i]);
	if (m->sample_interval)
		return;
	for (size_t i = 0; i < count; i++) {
		if (i + BLOCKS_AHEAD < count)
			blocks_prefetch(m->blocks, ev[i + BLOCKS_AHEAD].addr);
		if (!(ev[i].is_free ? quick_free(m, &ev[i]) :
				      quick_alloc(m, &ev[i])))
			slow_event(m, &ev[i]);
	}
}

void memusage_thread_exit(struct memusage *m, uint32_t thread)
{
	struct held_block held;
	if (held_take(&m->held, thread, &held))
		restore_block(m, &held);
	for (size_t i = 0; i < m->bases.count; i++) {
		if (m->bases.data[i].thread == thread) {
			vec_take_swap(&m->bases, i);
			break;
		}
	}
}
