/*
 * Follows the free lists. A list is used completely or not at all. See glibc.h.
 *
 * A program that writes into a freed block damages a list of its thread's cache. If the other lists
 * of that cache are intact, it is still recognized: the damaged list is counted as broken, and the
 * others are used.
 */
#include "malloc/glibc.h"

#include <string.h>

#define BINS_MAX 76u
#define SMALL_BINS 64u
#define LARGE_SHIFT 10
#define TLS_MAX 65536u
#define DTV_MAX 4096u
#define BLOCK_SHIFT 12
#define FIRST_CHUNK_WEIGHT 4u /* this many blocks or lists are sufficient evidence */

/* struct tcache_perthread_struct of one glibc version. */
static const struct tcache_layout {
	uint32_t chunk_size, count_size, bins;
	bool has_slots; /* counts are of blocks that may still be added */
} layouts[] = {{0x290, 2, 64, false}, {0x250, 1, 64, false}, {0x300, 2, 76, true}};

struct list_reader {
	struct inspect_memory *memory;
	const struct glibc *glibc;
	const struct glibc_thread *thread;
	size_t thread_count;
	struct glibc_lists *out;
};

/* malloc may give 16 bytes more than it was asked for, where less than a chunk would be left. */
static bool has_size_of(const struct tcache_layout *l, uint64_t size)
{
	return size == l->chunk_size || size == l->chunk_size + GLIBC_HEADER;
}

/* Evidence that a block is a thread's cache. */
struct cache {
	uint32_t blocks;        /* chunks on its lists; a broken list counts its first one only */
	uint32_t sound;         /* lists whose first block, at least, has the right size */
	uint32_t unsound;       /* lists whose first block is wrong, too */
	uint32_t broken;        /* lists that were skipped */
};

/* A word of a thread's variables that may be the pointer to its cache. */
struct candidate {
	uint64_t distance;      /* distance from the word to the thread pointer */
	taddr_t block;
	uint64_t size;
	uint32_t thread, layout;
	struct cache cache;
};
struct candidates {
	VEC(struct candidate) list;
};

/* -- singly linked lists -- */

static void add(struct list_reader *r, taddr_t chunk, uint64_t size, enum glibc_list list)
{
	*vec_add(&r->out->chunks) = (struct glibc_listed){chunk, size, list};
}

/* A list of blocks (tcache) or chunks (fastbin). */
struct chain {
	taddr_t first;
	uint64_t size, size_max; /* of its chunks, bytes */
	uint64_t most;          /* maximum number of chunks */
	enum glibc_list kind;
};

static bool fits_chain(const struct chain *c, uint64_t size)
{
	return size >= c->size && size <= c->size_max;
}

/*
 * Adds the chunks of list @c. Returns their number, or -1 and adds none if the list leaves the
 * heaps or has more than c->most.
 */
static int64_t follow(struct list_reader *r, const struct chain *c, bool is_protected)
{
	size_t before = r->out->chunks.count;
	uint64_t header = c->kind == GLIBC_TCACHE ? GLIBC_HEADER : 0, size;
	taddr_t mark = 0;       /* the chunk after 2, 4, 8, ... steps, to detect a cycle */
	int64_t count = 0;

	for (taddr_t at = c->first; at != 0; count++) {
		/* a fastbin's link is also the first word of the block */
		taddr_t link = at - header + GLIBC_HEADER, next;

		if ((uint64_t)count >= c->most || at == mark ||
		    !glibc_is_chunk(r->memory, r->glibc, at - header, &size) ||
		    !fits_chain(c, size) ||
		    !memory_read_word(r->memory, link, &next)) {
			r->out->chunks.count = before;
			return -1;
		}
		add(r, at - header, size, c->kind);
		if ((count & (count + 1)) == 0)
			mark = at;
		at = is_protected ? next ^ link >> BLOCK_SHIFT : next;
	}
	return count;
}

static int64_t follow_any(struct list_reader *r, const struct chain *c)
{
	int64_t count = follow(r, c, true);

	return count >= 0 ? count : follow(r, c, false);
}

/* -- threads' caches -- */

static void read_list(struct list_reader *r, const struct chain *c, struct cache *out)
{
	int64_t count = follow_any(r, c);
	uint64_t size;

	if (count == (int64_t)c->most) {
		out->blocks += (uint32_t)count;
		out->sound += count > 0;
		return;
	}
	/* the number of chunks added from a list that ends too early */
	if (count > 0)
		r->out->chunks.count -= (size_t)count;
	bool has_first = c->most > 0 &&
			 glibc_is_chunk(r->memory, r->glibc, c->first - GLIBC_HEADER, &size) &&
			 fits_chain(c, size);

	out->broken++;
	out->blocks += has_first;
	out->sound += has_first;
	out->unsound += !has_first;
}

/*
 * Whether @block is the first chunk of a heap: a thread allocates its cache before anything
 * else.
 */
static bool is_first(const struct glibc *g, taddr_t block)
{
	size_t i = vec_search(&g->heaps, e, e->start < block - GLIBC_HEADER);

	return i < g->heaps.count && g->heaps.data[i].start == block - GLIBC_HEADER;
}

/* How many blocks a list may have. Large lists are empty in most caches. */
static uint16_t capacity_of(const struct list_reader *r, const uint8_t *bytes,
			    const struct tcache_layout *l)
{
	uint16_t most = 0;

	if (r->glibc->params.is_known)
		return (uint16_t)r->glibc->params.tcache_count;
	for (size_t i = 0; i < l->bins; i++) {
		uint16_t slots;

		memcpy(&slots, bytes + i * sizeof(slots), sizeof(slots));
		most = MAX(most, slots);
	}
	return most;
}

static struct chain list_of(const uint8_t *bytes, const struct tcache_layout *l, size_t i,
			    uint16_t capacity)
{
	struct chain c = {.size = GLIBC_CHUNK_MIN + GLIBC_ALIGN * i, .kind = GLIBC_TCACHE};
	uint16_t count = 0;

	memcpy(&count, bytes + i * l->count_size, l->count_size);
	memcpy(&c.first, bytes + l->bins * l->count_size + i * sizeof(c.first), sizeof(c.first));
	c.most = l->has_slots ? (uint16_t)(capacity - count) : count;
	c.size_max = c.size;
	if (i >= SMALL_BINS) {
		c.size = UINT64_C(1) << (LARGE_SHIFT + i - SMALL_BINS);
		c.size_max = 2 * c.size - 1;
	}
	return c;
}

/* Adds the chunks of the cache at @block with layout @l, if it is one. */
static bool read_cache(struct list_reader *r, taddr_t block, const struct tcache_layout *l,
		       struct cache *out)
{
	uint8_t bytes[BINS_MAX * (sizeof(uint16_t) + sizeof(taddr_t))];

	*out = (struct cache){0};
	if (is_first(r->glibc, block))
		out->blocks = out->sound = FIRST_CHUNK_WEIGHT;
	if (!memory_read(r->memory, block, bytes, l->bins * (l->count_size + sizeof(taddr_t))))
		return false;
	uint16_t capacity = l->has_slots ? capacity_of(r, bytes, l) : 0;

	for (size_t i = 0; i < l->bins; i++) {
		struct chain c = list_of(bytes, l, i, capacity);

		read_list(r, &c, out);
	}
	return true;
}

taddr_t glibc_tls_start(struct inspect_memory *m, taddr_t thread_pointer)
{
	taddr_t dtv, low = thread_pointer, at;
	uint64_t count;

	if (!memory_read_word(m, thread_pointer + sizeof(dtv), &dtv) ||
	    !memory_read_word(m, dtv - 16, &count))
		return low;
	for (uint64_t i = 1; i <= MIN(count, (uint64_t)DTV_MAX); i++)
		if (memory_read_word(m, dtv + i * 16, &at) && at < low &&
		    thread_pointer - at <= TLS_MAX)
			low = at;
	/* that of one with bytes alone may begin anywhere */
	return ROUND_DOWN(low, sizeof(uint64_t));
}

static void add_candidate(struct list_reader *r, uint32_t thread, taddr_t addr, taddr_t block,
			  struct candidates *out)
{
	uint64_t size;

	if (!glibc_is_chunk(r->memory, r->glibc, block - GLIBC_HEADER, &size))
		return;
	for (uint32_t i = 0; i < ARRAY_SIZE(layouts); i++) {
		if (!has_size_of(&layouts[i], size))
			continue;
		size_t before = r->out->chunks.count;
		struct cache cache;
		bool is_read = read_cache(r, block, &layouts[i], &cache);

		r->out->chunks.count = before;
		if (is_read && (cache.broken == 0 || cache.unsound < cache.sound))
			*vec_add(&out->list) = (struct candidate){
				.distance = r->thread[thread].thread_pointer - addr,
				.block = block, .size = size, .thread = thread,
				.layout = i, .cache = cache};
	}
}

static void find_candidates(struct list_reader *r, uint32_t thread, struct candidates *out)
{
	const struct glibc_thread *th = &r->thread[thread];
	uint64_t word;

	if (!th->thread_pointer || th->thread_pointer % sizeof(word))
		return;
	/* those of libraries may begin at odd addresses */
	taddr_t start = glibc_tls_start(r->memory, th->thread_pointer);

	for (taddr_t at = start; at < th->thread_pointer; at += sizeof(word))
		if (memory_read_word(r->memory, at, &word) && word)
			add_candidate(r, thread, at, word, out);
}

/*
 * Picks the distance at which most threads have a cache; if equal, the one with most cached
 * blocks.
 */
static uint64_t choose_distance(const struct candidates *c)
{
	uint64_t best = 0, best_value = 0;

	for (size_t i = 0; i < c->list.count; i++) {
		uint64_t value = 0;

		for (size_t k = 0; k < c->list.count; k++)
			if (c->list.data[k].distance == c->list.data[i].distance)
				value += (UINT64_C(1) << 32) + c->list.data[k].cache.blocks;
		if (value > best_value) {
			best_value = value;
			best = c->list.data[i].distance;
		}
	}
	return best;
}

/* -- caches of threads that are not there -- */

/* Where a description of a thread may be: at the end of its stack, before these bytes. */
#define DESCRIPTION_ROOM 4096u
#define DESCRIPTION_STEP 64u

static bool is_thread(const struct list_reader *r, taddr_t thread_pointer)
{
	for (size_t i = 0; i < r->thread_count; i++)
		if (r->thread[i].thread_pointer == thread_pointer)
			return true;
	return false;
}

/* Whether the thread that @at would describe is its own: words 0 and 2 point there. */
static bool is_description(struct list_reader *r, taddr_t at)
{
	uint64_t word[3];

	return memory_read(r->memory, at, word, sizeof(word)) && word[0] == at && word[2] == at;
}

static void read_left_cache(struct list_reader *r, taddr_t block)
{
	uint64_t size;
	struct cache cache;
	size_t before = r->out->chunks.count;

	if (!block || !glibc_is_chunk(r->memory, r->glibc, block - GLIBC_HEADER, &size))
		return;
	for (size_t i = 0; i < before; i++)
		if (r->out->chunks.data[i].list == GLIBC_TCACHE_ITSELF &&
		    r->out->chunks.data[i].chunk == block - GLIBC_HEADER)
			return;
	for (size_t i = 0; i < ARRAY_SIZE(layouts); i++) {
		if (!has_size_of(&layouts[i], size))
			continue;
		if (read_cache(r, block, &layouts[i], &cache) && cache.broken == 0)
			add(r, block - GLIBC_HEADER, size, GLIBC_TCACHE_ITSELF);
		else
			r->out->chunks.count = before;
	}
}

/*
 * A fork copies the stacks of all threads, but one thread only. What is in the caches of the others
 * is free, and no thread will ever use it. An exit leaves no cache behind.
 */
static void read_left_caches(struct list_reader *r, uint64_t distance)
{
	const struct maps *maps = &r->memory->pages->maps;
	uint64_t word = 0;

	for (size_t i = 0; i < maps->list.count; i++) {
		const struct map *m = &maps->list.data[i];
		taddr_t start = m->end - MIN(m->end - m->start, (taddr_t)DESCRIPTION_ROOM);

		if (*m->path == '/' || m->is_shared || !m->is_write)
			continue;
		for (taddr_t at = start; at < m->end; at += DESCRIPTION_STEP)
			if (!is_thread(r, at) && is_description(r, at) &&
			    memory_read_word(r->memory, at - distance, &word))
				read_left_cache(r, word);
	}
}

/*
 * Whether a variable that is @word leads to a cache, perhaps to a damaged one. That of a thread
 * without one is 0, or leads to constants.
 */
static bool leads_to_cache(const struct list_reader *r, taddr_t word)
{
	const struct map *m = maps_find(&r->memory->pages->maps, word);

	return word && !(m && !m->is_write && *m->path == '/');
}

static void read_caches(struct list_reader *r)
{
	struct candidates c = {0};

	for (uint32_t i = 0; i < r->thread_count; i++)
		find_candidates(r, i, &c);
	uint64_t distance = choose_distance(&c);

	for (size_t i = 0; i < c.list.count; i++) {
		const struct candidate *e = &c.list.data[i];
		const struct tcache_layout *l = &layouts[e->layout];
		struct cache cache;

		if (e->distance != distance || !read_cache(r, e->block, l, &cache))
			continue;
		r->out->broken += cache.broken;
		add(r, e->block - GLIBC_HEADER, e->size, GLIBC_TCACHE_ITSELF);
		r->out->caches++;
	}
	for (uint32_t i = 0; i < r->thread_count && distance; i++) {
		uint64_t word = 0;
		bool is_taken = false;

		memory_read_word(r->memory, r->thread[i].thread_pointer - distance, &word);
		for (size_t k = 0; k < c.list.count; k++)
			is_taken |= c.list.data[k].thread == i &&
				    c.list.data[k].distance == distance;
		r->out->broken += leads_to_cache(r, word) && !is_taken;
	}
	vec_deinit(&c.list);
	if (distance)
		read_left_caches(r, distance);
}

/* -- arenas' lists -- */

static void read_fastbins(struct list_reader *r, const struct glibc_arena *a)
{
	for (size_t i = 0; i < GLIBC_FASTBINS; i++) {
		const struct chain c = {
			.first = a->fastbin[i], .size = GLIBC_CHUNK_MIN + GLIBC_ALIGN * i,
			.size_max = GLIBC_CHUNK_MIN + GLIBC_ALIGN * i,
			.most = a->system_bytes / GLIBC_CHUNK_MIN, .kind = GLIBC_FASTBIN};

		r->out->broken += follow_any(r, &c) < 0;
	}
}

/* Follows the ring forwards. Its head is laid out like a chunk 16 bytes before the bins. */
static void read_unsorted(struct list_reader *r, const struct glibc_arena *a)
{
	taddr_t head = a->unsorted_head, at = a->unsorted;
	uint64_t most = a->system_bytes / GLIBC_CHUNK_MIN, count = 0, size;

	for (taddr_t mark = 0; at != head; count++) {
		if (count >= most || at == mark ||
		    !glibc_is_chunk(r->memory, r->glibc, at, &size)) {
			r->out->broken++;
			return;
		}
		add(r, at, size, GLIBC_UNSORTED);
		if ((count & (count + 1)) == 0)
			mark = at;
		if (!memory_read_word(r->memory, at + GLIBC_HEADER, &at))
			return;
	}
}

void glibc_lists_read(struct inspect_memory *m, const struct glibc *g,
		      const struct glibc_thread *thread, size_t count, struct glibc_lists *out)
{
	struct list_reader r = {.memory = m, .glibc = g, .thread = thread, .thread_count = count,
			   .out = out};

	*out = (struct glibc_lists){0};
	for (size_t i = 0; i < g->arenas.count; i++) {
		read_fastbins(&r, &g->arenas.data[i]);
		read_unsorted(&r, &g->arenas.data[i]);
	}
	read_caches(&r);
	vec_sort(&out->chunks, taddr_compare);
}

void glibc_lists_deinit(struct glibc_lists *l)
{
	vec_deinit(&l->chunks);
}

/*
 * A chunk is reported once the next one is read, since that holds its "in use" bit:
 *
 *	at      size of the previous chunk if that is free, else the last word of its block
 *	at + 8  size | 4 outside the main arena | 1 if the previous chunk is in use
 *
 * Where a heap ends, or the program itself called sbrk, there are fenceposts: chunks below the
 * minimum size. The main arena's heap may continue after a gap behind them, at the first address
 * from which a sequence of valid chunks starts.
 */

#define GAP_MAX (UINT64_C(1) << 24)
#define CACHE_LINE 64u
#define FETCH_AHEAD 2048u
#define FETCH_MIN 256u /* size of a chunk */
#define CHAIN_MIN 8u /* so many chunks in a row cannot be a coincidence */

struct chunk_walk {
	struct inspect_memory *memory;
	const struct glibc_heap *heap;
	const struct glibc_lists *lists;
	size_t listed;          /* index of the next element of lists->chunks */
	const struct glibc_visitor *visitor;
	uintptr_t fetched;      /* up to here, of the window */
	bool is_ended;          /* stopped by the visitor */
	bool is_broken;         /* a part in the middle could not be followed */
};

static const enum glibc_chunk_kind kind_of_list[] = {
	[GLIBC_TCACHE] = CHUNK_TCACHE, [GLIBC_FASTBIN] = CHUNK_FASTBIN,
	[GLIBC_UNSORTED] = CHUNK_UNSORTED, [GLIBC_TCACHE_ITSELF] = CHUNK_OWN,
};

/*
 * Another thread has read the window: its bytes are in another CPU's cache. Where the next header
 * is this one says, and where chunks are large no CPU can guess it: so all that follows is fetched.
 */
static void prefetch(struct chunk_walk *w, uintptr_t p)
{
	if (w->fetched < p || w->fetched > p + 2 * FETCH_AHEAD)
		w->fetched = p;
	for (; w->fetched < p + FETCH_AHEAD; w->fetched += CACHE_LINE)
		__builtin_prefetch((const void *)w->fetched);
}

static bool read_head(struct chunk_walk *w, taddr_t at, uint64_t *out)
{
	if (at + GLIBC_HEADER > w->heap->end)
		return false;
	const void *p = memory_peek(w->memory, at + sizeof(*out), sizeof(*out));

	memcpy(out, p, sizeof(*out));
	if (*out >= FETCH_MIN)
		prefetch(w, (uintptr_t)p);
	return true;
}

static bool is_chunk(const struct chunk_walk *w, taddr_t at, uint64_t head)
{
	uint64_t size = head & ~(uint64_t)GLIBC_FLAGS;

	return size >= GLIBC_CHUNK_MIN && size % GLIBC_ALIGN == 0 && !(head & GLIBC_IS_MMAPPED) &&
	       size <= w->heap->end - at;
}

static bool is_fencepost(uint64_t head)
{
	return head && !(head & GLIBC_IS_MMAPPED) && head <= (GLIBC_FENCEPOST | GLIBC_FLAGS);
}

/*
 * Whether @at is where malloc ended the heap, or a part of it: a header without a block, then a
 * second one, of no size in an arena's earlier heaps.
 */
static bool is_part_end(struct chunk_walk *w, taddr_t at)
{
	uint64_t first, second, last = w->heap->is_main ? GLIBC_FENCEPOST : 0;

	return read_head(w, at, &first) && read_head(w, at + GLIBC_FENCEPOST, &second) &&
	       (first | GLIBC_IS_BEFORE_USED) == (GLIBC_FENCEPOST | GLIBC_IS_BEFORE_USED) &&
	       second == (last | GLIBC_IS_BEFORE_USED);
}

/* The state of @c according to the lists. The heap itself only shows whether it is in use. */
static void look_up(struct chunk_walk *w, struct glibc_chunk *c, bool is_used)
{
	c->kind = is_used ? CHUNK_LIVE : CHUNK_BIN;
	for (; w->listed < w->lists->chunks.count; w->listed++) {
		const struct glibc_listed *l = &w->lists->chunks.data[w->listed];

		if (l->chunk > c->addr)
			return;
		bool is_same = l->chunk == c->addr && l->size == c->size;

		if (is_same && is_used != (l->list == GLIBC_UNSORTED))
			c->kind = kind_of_list[l->list];
		else
			(*w->visitor->unlisted)++;
	}
}

static void report(struct chunk_walk *w, struct glibc_chunk *c, bool is_used)
{
	if (c->size == 0)
		return;
	look_up(w, c, is_used);
	w->is_ended |= !w->visitor->fn(w->visitor->ctx, c);
	c->size = 0;
}

static void report_as(struct chunk_walk *w, taddr_t at, uint64_t size, enum glibc_chunk_kind kind)
{
	const struct glibc_chunk c = {.addr = at, .size = size, .kind = kind};

	if (size > 0)
		w->is_ended |= !w->visitor->fn(w->visitor->ctx, &c);
}

/* Whether valid chunks follow one another from @at to the heap's end, or for long enough. */
static bool leads_on(struct chunk_walk *w, taddr_t at)
{
	uint64_t head;

	for (uint32_t i = 0; i < CHAIN_MIN; i++) {
		if (!memory_read_word(w->memory, at + sizeof(head), &head) ||
		    !is_chunk(w, at, head))
			return false;
		if (at == w->heap->top)
			return true;
		at += head & ~(uint64_t)GLIBC_FLAGS;
	}
	return true;
}

/* Where chunks continue after the fenceposts that end at @at; the heap's end if nowhere. */
static taddr_t find_next_part(struct chunk_walk *w, taddr_t at)
{
	taddr_t last = w->heap->end - at > GAP_MAX ? at + GAP_MAX : w->heap->end;

	if (w->heap->top && w->heap->top >= at)
		for (; at + GLIBC_CHUNK_MIN <= last; at += GLIBC_ALIGN)
			if (leads_on(w, at))
				return at;
	return w->heap->end;
}

/*
 * Handles a fencepost: the heap ends here, or continues after a gap, at *at_out. False if the rest
 * cannot be walked.
 */
static bool pass_fenceposts(struct chunk_walk *w, taddr_t at, taddr_t *at_out)
{
	uint64_t head;
	taddr_t start = at;

	bool is_whole = is_part_end(w, at);

	w->is_broken |= !is_whole;
	while (read_head(w, at, &head) && is_fencepost(head))
		at += GLIBC_HEADER;
	taddr_t next = find_next_part(w, at);
	bool is_end = w->heap->top == 0, is_foreign = is_whole && next < w->heap->end;

	report_as(w, start, is_end ? next - start : at - start, CHUNK_OWN);
	if (!is_end)
		report_as(w, at, next - at, is_foreign ? CHUNK_FOREIGN : CHUNK_UNKNOWN);
	*at_out = next;
	return is_end || next < w->heap->end;
}

/* Skips the elements of lists that are below @at. */
static void skip_listed(struct chunk_walk *w, taddr_t at)
{
	w->listed = vec_search(&w->lists->chunks, e, e->chunk < at);
}

/*
 * Walks the chunks from @at on. Returns true at a fencepost, whose address is stored, or at the
 * end; false on failure.
 */
enum progress { AT_FENCEPOST, AT_END, AT_NOTHING };

static enum progress walk_chunks(struct chunk_walk *w, taddr_t *at_io)
{
	struct glibc_chunk before = {0};
	taddr_t at = *at_io;
	uint64_t head;

	while (!w->is_ended) {
		*at_io = at;
		if (!read_head(w, at, &head)) {
			report(w, &before, true);
			return at == w->heap->end && !w->heap->top ? AT_END : AT_NOTHING;
		}
		report(w, &before, head & GLIBC_IS_BEFORE_USED);
		if (!is_chunk(w, at, head))
			return is_fencepost(head) ? AT_FENCEPOST : AT_NOTHING;
		before = (struct glibc_chunk){.addr = at, .size = head & ~(uint64_t)GLIBC_FLAGS};
		if (at == w->heap->top) {
			if (before.size != w->heap->end - at)
				return AT_NOTHING;
			report_as(w, at, before.size, CHUNK_TOP);
			*at_io = at + before.size;
			return AT_END;
		}
		at += before.size;
	}
	return AT_END;
}

bool glibc_walk(struct inspect_memory *m, const struct glibc_heap *h,
		const struct glibc_lists *lists, const struct glibc_visitor *v)
{
	struct chunk_walk w = {.memory = m, .heap = h, .lists = lists, .visitor = v};
	enum progress progress;
	taddr_t at = h->start;

	skip_listed(&w, at);
	while ((progress = walk_chunks(&w, &at)) == AT_FENCEPOST && at < h->end) {
		if (!pass_fenceposts(&w, at, &at)) {
			progress = AT_NOTHING;
			break;
		}
		if (at >= h->end) {
			progress = AT_END;
			break;
		}
		skip_listed(&w, at);
	}
	if (!w.is_ended)
		report_as(&w, at, h->end - MIN(at, h->end),
			  progress == AT_END ? CHUNK_OWN : CHUNK_UNKNOWN);
	return progress != AT_NOTHING && !w.is_broken;
}
