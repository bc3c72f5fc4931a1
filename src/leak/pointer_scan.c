/*
 * Reads the target's memory to find pointers, and stores them page by page. Pieces are small
 * enough to stay in the cache between the kernel's copy and the scan.
 */
#include "leak/pointer_scan.h"

#include <string.h>

#include "base/alloc.h"
#include "leak/block_index.h"

/*
 * Stores pages in chunks. A page never spans two chunks: a chunk counts as full when the largest
 * possible page does not fit.
 */

#define WIDE_VALUES UINT32_MAX /* an upper half that no user address has */
/* large, because other lanes' page faults delay mapping a chunk */
#define CHUNK_BYTES (8 * HUGE_PAGE_SIZE)
#define CHUNK_WORDS (CHUNK_BYTES / sizeof(uint64_t))
#define HEAD_WORDS (sizeof(struct pointer_page) / sizeof(uint64_t))
#define IS_FULL(at) ((at) + HEAD_WORDS + PAGE_WORDS > CHUNK_WORDS)

_Static_assert(sizeof(struct pointer_page) % sizeof(uint64_t) == 0, "values are aligned");

void pointer_store_init(struct pointer_store *w, struct chunk_pool *pool)
{
	*w = (struct pointer_store){.pool = pool};
}

void pointer_store_deinit(struct pointer_store *w)
{
	for (size_t i = w->reading; i < w->chunks.count; i++)
		huge_free(w->chunks.data[i], CHUNK_BYTES);
	vec_deinit(&w->chunks);
	*w = (struct pointer_store){0};
}

/* The number of words that @count values take. */
static size_t room(uint32_t upper, uint32_t count)
{
	return upper == WIDE_VALUES ? count : (count + 1) / 2;
}

static uint32_t common_upper(const uint64_t *value, uint32_t count)
{
	uint64_t differ = 0;

	for (uint32_t i = 1; i < count; i++)
		differ |= value[i] ^ value[0];
	return differ >> 32 ? WIDE_VALUES : (uint32_t)(value[0] >> 32);
}

void pointer_store_add(struct pointer_store *w, taddr_t addr, const uint64_t *mask,
		       const uint64_t *value,
		    uint32_t count)
{
	if (w->chunks.count == 0 || IS_FULL(w->writing)) {
		struct chunk_pool *s = w->pool;
	size_t i = s->chunks.count ? __atomic_fetch_add(&s->taken, 1, __ATOMIC_RELAXED) : 0;

	*vec_add(&w->chunks) = i < s->chunks.count ? s->chunks.data[i] : huge_alloc(CHUNK_BYTES);
		w->writing = 0;
	}
	uint64_t *to = w->chunks.data[w->chunks.count - 1] + w->writing;
	struct pointer_page *page = (struct pointer_page *)to;
	uint32_t *lower = (uint32_t *)(page + 1);

	page->addr = addr;
	memcpy(page->mask, mask, sizeof(page->mask));
	page->upper = common_upper(value, count);
	page->count = count;
	if (page->upper == WIDE_VALUES)
		memcpy(page + 1, value, count * sizeof(*value));
	else
		for (uint32_t i = 0; i < count; i++)
			lower[i] = (uint32_t)value[i];
	w->writing += HEAD_WORDS + room(page->upper, count);
}

/* Bytes of memory in use. */
static uint64_t pointer_store_bytes(const struct pointer_store *w)
{
	if (w->chunks.count == 0)
		return 0;
	return (w->chunks.count - 1) * CHUNK_BYTES + w->writing * sizeof(uint64_t);
}

void pointer_store_next(struct pointer_store *w, struct pointer_page *page_out, uint64_t *value_out)
{
	if (IS_FULL(w->at)) {
		huge_free(w->chunks.data[w->reading++], CHUNK_BYTES);
		w->at = 0;
	}
	const struct pointer_page *page =
		(const struct pointer_page *)(w->chunks.data[w->reading] + w->at);
	const uint32_t *lower = (const uint32_t *)(page + 1);
	uint64_t upper = (uint64_t)page->upper << 32;

	if (page->upper == WIDE_VALUES)
		memcpy(value_out, page + 1, page->count * sizeof(*value_out));
	else
		for (uint32_t i = 0; i < page->count; i++)
			value_out[i] = upper | lower[i];
	*page_out = *page;
	w->at += HEAD_WORDS + room(page->upper, page->count);
}

void chunk_pool_fill(struct chunk_pool *s, uint64_t bytes)
{
	for (uint64_t done = s->chunks.count * CHUNK_BYTES; done < bytes; done += CHUNK_BYTES) {
		uint64_t *chunk = huge_alloc(CHUNK_BYTES);

		huge_touch(chunk, MIN(bytes - done, CHUNK_BYTES));
		*vec_add(&s->chunks) = chunk;
	}
}

void chunk_pool_release(struct chunk_pool *s)
{
	for (size_t i = s->taken; i < s->chunks.count; i++)
		huge_free(s->chunks.data[i], CHUNK_BYTES);
	vec_deinit(&s->chunks);
	s->taken = 0;
}

/*
 * Reads the target's memory to find pointers; pointer_scan.h has an overview. Pieces are small
 * enough to stay in the cache between the kernel's copy and the scan.
 */

#define PIECE_SIZE WALK_PIECE_SIZE
#define LANE_PIECES 64u /* fewer are not worth a thread */
#define SAMPLES 64u
#define NEAR_SHIFT 21
#define NEAR_BITS (UINT64_C(1) << (BLOCK_INDEX_ADDRESS_BITS - NEAR_SHIFT))

void pointer_scan_init(struct pointer_scan *s)
{
	*s = (struct pointer_scan){.low = UINT64_MAX};
	s->near = xcalloc(NEAR_BITS / 64, sizeof(*s->near));
	walk_queue_init(&s->queue);
	for (size_t i = 0; i < POINTER_LANES; i++)
		pointer_store_init(&s->lane[i].store, &s->pool);
}

void pointer_scan_deinit(struct pointer_scan *s)
{
	for (size_t i = 0; i < POINTER_LANES; i++)
		pointer_store_deinit(&s->lane[i].store);
	chunk_pool_release(&s->pool);
	walk_queue_deinit(&s->queue);
	vec_deinit(&s->pieces);
	free(s->near);
	s->near = NULL;
}

void pointer_scan_add_target(struct pointer_scan *s, taddr_t start, taddr_t end)
{
	s->low = MIN(s->low, start);
	s->high = MAX(s->high, end);
	for (uint64_t i = start >> NEAR_SHIFT; i <= (end - 1) >> NEAR_SHIFT; i++)
		s->near[i / 64] |= UINT64_C(1) << i % 64;
}

bool pointer_scan_has_target_near(const struct pointer_scan *s, taddr_t start, taddr_t end)
{
	uint64_t last = (MIN(end, UINT64_C(1) << BLOCK_INDEX_ADDRESS_BITS) - 1) >> NEAR_SHIFT;

	for (uint64_t i = start >> NEAR_SHIFT; i <= last; i++)
		if (s->near[i / 64] >> i % 64 & 1)
			return true;
	return false;
}

void pointer_scan_add_range(struct pointer_scan *s, taddr_t start, taddr_t end)
{
	start = ROUND_UP(start, (taddr_t)sizeof(uint64_t));
	end = ROUND_DOWN(end, (taddr_t)sizeof(uint64_t));
	while (start < end) {
		taddr_t next = start + MIN(PIECE_SIZE - start % PIECE_SIZE, end - start);

		*vec_add(&s->pieces) = (struct pointer_piece){.start = start, .end = next};
		start = next;
	}
}

void pointer_scan_add_heap(struct pointer_scan *s, taddr_t start, taddr_t end, taddr_t top)
{
	walk_queue_add_heap(&s->queue, start, end, top);
}

/* -- one page, one piece -- */

/* Much memory is zero: skip eight words at a time. */
static bool is_zero(const uint64_t word[8])
{
	return !(word[0] | word[1] | word[2] | word[3] | word[4] | word[5] | word[6] | word[7]);
}

/* Where the pointers of a page are stored. */
struct sieve {
	uint64_t mask[PAGE_WORDS / 64];
	uint64_t value[PAGE_WORDS + 1]; /* the extra one receives words that are not kept */
	uint32_t count;
};

/*
 * Examines at most eight words, @count, the first of which is number @first of its page. Has no
 * branches, which would be unpredictable.
 */
static inline void sift(const struct pointer_scan *s, struct sieve *v, const uint64_t *word,
			size_t first, size_t count)
{
	const taddr_t low = s->low, span = s->high - s->low;
	const uint64_t *near_bits = s->near;
	uint64_t bits = 0, *to = &v->value[v->count];

	for (size_t i = 0; i < count; i++) {
		uint64_t value = word[i];
		bool is_within = value - low < span;
		uint64_t near = (is_within ? value : low) >> NEAR_SHIFT;
		uint64_t is_kept = near_bits[near / 64] >> near % 64 & is_within;

		*to = value;
		to += is_kept;
		bits |= is_kept << i;
	}
	v->count = (uint32_t)(to - v->value);
	v->mask[first / 64] |= bits << first % 64;
}

/*
 * Keeps those of the @count words at @addr, all in one page, that may be pointers. Returns whether
 * there were any.
 */
static bool take_page(const struct pointer_scan *s, struct pointer_lane *lane, taddr_t addr,
		      const uint64_t *word, size_t count)
{
	taddr_t page = ROUND_DOWN(addr, (taddr_t)PAGE_SIZE_MIN);
	size_t first = (addr - page) / sizeof(uint64_t), end = first + count;
	struct sieve v;

	v.count = 0;
	memset(v.mask, 0, sizeof(v.mask));
	for (size_t i = first, next; i < end; i = next) {
		next = MIN(ROUND_DOWN(i, 8) + 8, end);
		if (next - i < 8)
			sift(s, &v, &word[i - first], i, next - i);
		else if (!is_zero(&word[i - first]))
			sift(s, &v, &word[i - first], i, 8); /* constant, so that it is unrolled */
	}
	if (v.count == 0)
		return false;
	pointer_store_add(&lane->store, page, v.mask, v.value, v.count);
	lane->values += v.count;
	return true;
}

/*
 * Keeps words of @size bytes at @addr, both word-aligned, whose contents are at @word. Returns the
 * number of pages with such words.
 */
static uint32_t take_bytes(const struct pointer_scan *s, struct pointer_lane *lane, taddr_t addr,
			   const uint64_t *word, size_t size)
{
	uint32_t pages = 0;

	for (size_t done = 0; done < size;) {
		size_t rest = PAGE_SIZE_MIN - (addr + done) % PAGE_SIZE_MIN;
		size_t bytes = MIN(rest, size - done);

		pages += take_page(s, lane, addr + done, &word[done / sizeof(*word)],
				   bytes / sizeof(*word));
		done += bytes;
	}
	return pages;
}

/* Skips a page that cannot be read. */
static void read_piece(const struct pointer_scan *s, struct pointer_lane *lane,
		       struct pointer_piece *piece, struct walk_buffer *buffer)
{
	taddr_t start = piece->start, end = piece->end;

	while (start < end) {
		uint64_t *word = &buffer->data[(start - piece->start) / sizeof(*word)];
		ssize_t n = s->read(s->read_ctx, start, word, end - start);
		size_t got = n > 0 ? ROUND_DOWN((size_t)n, sizeof(*word)) : 0;

		if (got == 0) {
			taddr_t next =
				MIN(ROUND_DOWN(start, (taddr_t)PAGE_SIZE_MIN) + PAGE_SIZE_MIN, end);
			lane->unreadable += next - start;
			start = next;
			continue;
		}
		piece->pages += take_bytes(s, lane, start, word, got);
		*vec_add(&buffer->parts) = (struct addr_range){start, start + got};
		lane->bytes += got;
		start += got;
	}
}

/* -- all pieces -- */

static void run_lane(void *ctx, uint32_t number)
{
	struct pointer_scan *s = ctx;
	struct pointer_lane *lane = &s->lane[number];
	size_t i;

	while ((i = __atomic_fetch_add(&s->next, 1, __ATOMIC_RELAXED)) < s->pieces.count) {
		struct pointer_piece *piece = &s->pieces.data[i];
		struct walk_buffer *buffer = walk_queue_take(&s->queue, piece->start);

		piece->lane = number;
		read_piece(s, lane, piece, buffer);
		walk_queue_put(&s->queue, i, buffer);
	}
}

void pointer_scan_run(struct pointer_scan *s, memory_read_fn *read, void *ctx)
{
	s->read = read;
	s->read_ctx = ctx;
	s->next = 0;
	if (s->low > s->high) { /* no blocks: an empty range */
		s->low = 0;
		s->high = 0;
	}
	walk_queue_start(&s->queue, s->pieces.count);
	parallel_for(parallel_count(s->pieces.count / LANE_PIECES), run_lane, s);
	for (uint32_t i = 0; i < POINTER_LANES; i++) {
		s->bytes += s->lane[i].bytes;
		s->unreadable += s->lane[i].unreadable;
		s->values += s->lane[i].values;
	}
	chunk_pool_release(&s->pool);
}

bool pointer_scan_take(struct pointer_scan *s, struct pointer_page *page_out, uint64_t *value_out)
{
	while (s->taking < s->pieces.count && s->taken == s->pieces.data[s->taking].pages) {
		s->taking++;
		s->taken = 0;
	}
	if (s->taking == s->pieces.count)
		return false;
	s->taken++;
	pointer_store_next(&s->lane[s->pieces.data[s->taking].lane].store, page_out, value_out);
	return true;
}

/* -- before -- */

void pointer_scan_prepare(struct pointer_scan *s, memory_read_fn *read, void *ctx)
{
	struct pointer_lane lane = {0};
	size_t step = s->pieces.count / SAMPLES + 1;
	uint64_t total = 0;

	s->read = read;
	s->read_ctx = ctx;
	pointer_store_init(&lane.store, &s->pool);
	for (size_t i = 0; i < s->pieces.count; i++)
		total += s->pieces.data[i].end - s->pieces.data[i].start;
	for (size_t i = step / 2; i < s->pieces.count && s->low < s->high; i += step) {
		struct pointer_piece *piece = &s->pieces.data[i];
		struct walk_buffer *buffer = walk_queue_take(&s->queue, piece->start);

		read_piece(s, &lane, piece, buffer);
		walk_queue_give(&s->queue, buffer);
	}
	if (lane.bytes)
		chunk_pool_fill(&s->pool, (uint64_t)((double)pointer_store_bytes(&lane.store) *
						      (double)total / (double)lane.bytes));
	pointer_store_deinit(&lane.store);
	s->pieces.count = 0;
}
