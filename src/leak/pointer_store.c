/*
 * Stores pages in chunks. A page never spans two chunks: a chunk counts as full when the largest
 * possible page does not fit.
 */
#include "leak/pointer_store.h"

#include <string.h>

#include "base/large.h"

#define WIDE_VALUES UINT32_MAX /* an upper half that no user address has */
/* large, because other lanes' page faults delay mapping a chunk */
#define CHUNK_BYTES (8 * LARGE_PAGE)
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
		large_unmap(w->chunks.data[i], CHUNK_BYTES);
	vec_deinit(&w->chunks);
	*w = (struct pointer_store){0};
}

static uint64_t *take_chunk(struct chunk_pool *s)
{
	size_t i = s->chunks.count ? __atomic_fetch_add(&s->taken, 1, __ATOMIC_RELAXED) : 0;

	return i < s->chunks.count ? s->chunks.data[i] : large_map(CHUNK_BYTES);
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
		*vec_add(&w->chunks) = take_chunk(w->pool);
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

uint64_t pointer_store_bytes(const struct pointer_store *w)
{
	if (w->chunks.count == 0)
		return 0;
	return (w->chunks.count - 1) * CHUNK_BYTES + w->writing * sizeof(uint64_t);
}

void pointer_store_next(struct pointer_store *w, struct pointer_page *page_out, uint64_t *value_out)
{
	if (IS_FULL(w->at)) {
		large_unmap(w->chunks.data[w->reading++], CHUNK_BYTES);
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
		uint64_t *chunk = large_map(CHUNK_BYTES);

		large_touch(chunk, MIN(bytes - done, CHUNK_BYTES));
		*vec_add(&s->chunks) = chunk;
	}
}

void chunk_pool_release(struct chunk_pool *s)
{
	for (size_t i = s->taken; i < s->chunks.count; i++)
		large_unmap(s->chunks.data[i], CHUNK_BYTES);
	vec_deinit(&s->chunks);
	s->taken = 0;
}
