/*
 * Chunks of words, see kept_words.h. A page never lies in two chunks; a chunk that has
 * no room for the largest page is full.
 */
#include "leak/kept_words.h"

#include <string.h>

#include "base/large.h"

#define KEPT_WIDE UINT32_MAX /* addresses have 47 bits */
#define CHUNK_BYTES (8 * LARGE_PAGE) /* few: to map one, a lane waits until no other takes a page */
#define CHUNK_WORDS (CHUNK_BYTES / sizeof(uint64_t))
#define HEAD_WORDS (sizeof(struct kept_page) / sizeof(uint64_t))
#define IS_FULL(at) ((at) + HEAD_WORDS + PAGE_WORDS > CHUNK_WORDS)

_Static_assert(sizeof(struct kept_page) % sizeof(uint64_t) == 0, "values are aligned");

void kept_words_init(struct kept_words *w, struct kept_spare *spare)
{
	*w = (struct kept_words){.spare = spare};
}

void kept_words_deinit(struct kept_words *w)
{
	for (size_t i = w->reading; i < w->chunks.count; i++)
		large_unmap(w->chunks.data[i], CHUNK_BYTES);
	vec_deinit(&w->chunks);
	*w = (struct kept_words){0};
}

static uint64_t *take_chunk(struct kept_spare *s)
{
	size_t i = s->chunks.count ? __atomic_fetch_add(&s->taken, 1, __ATOMIC_RELAXED) : 0;

	return i < s->chunks.count ? s->chunks.data[i] : large_map(CHUNK_BYTES);
}

/* How many words @count values take. */
static size_t room(uint32_t upper, uint32_t count)
{
	return upper == KEPT_WIDE ? count : (count + 1) / 2;
}

static uint32_t common_upper(const uint64_t *value, uint32_t count)
{
	uint64_t differ = 0;

	for (uint32_t i = 1; i < count; i++)
		differ |= value[i] ^ value[0];
	return differ >> 32 ? KEPT_WIDE : (uint32_t)(value[0] >> 32);
}

void kept_words_put(struct kept_words *w, taddr_t addr, const uint64_t *mask, const uint64_t *value,
		    uint32_t count)
{
	if (w->chunks.count == 0 || IS_FULL(w->writing)) {
		*vec_add(&w->chunks) = take_chunk(w->spare);
		w->writing = 0;
	}
	uint64_t *to = w->chunks.data[w->chunks.count - 1] + w->writing;
	struct kept_page *page = (struct kept_page *)to;
	uint32_t *lower = (uint32_t *)(page + 1);

	page->addr = addr;
	memcpy(page->mask, mask, sizeof(page->mask));
	page->upper = common_upper(value, count);
	page->count = count;
	if (page->upper == KEPT_WIDE)
		memcpy(page + 1, value, count * sizeof(*value));
	else
		for (uint32_t i = 0; i < count; i++)
			lower[i] = (uint32_t)value[i];
	w->writing += HEAD_WORDS + room(page->upper, count);
}

uint64_t kept_words_bytes(const struct kept_words *w)
{
	if (w->chunks.count == 0)
		return 0;
	return (w->chunks.count - 1) * CHUNK_BYTES + w->writing * sizeof(uint64_t);
}

void kept_words_take(struct kept_words *w, struct kept_page *page_out, uint64_t *value_out)
{
	if (IS_FULL(w->at)) {
		large_unmap(w->chunks.data[w->reading++], CHUNK_BYTES);
		w->at = 0;
	}
	const struct kept_page *page =
		(const struct kept_page *)(w->chunks.data[w->reading] + w->at);
	const uint32_t *lower = (const uint32_t *)(page + 1);
	uint64_t upper = (uint64_t)page->upper << 32;

	if (page->upper == KEPT_WIDE)
		memcpy(value_out, page + 1, page->count * sizeof(*value_out));
	else
		for (uint32_t i = 0; i < page->count; i++)
			value_out[i] = upper | lower[i];
	*page_out = *page;
	w->at += HEAD_WORDS + room(page->upper, page->count);
}

void kept_spare_fill(struct kept_spare *s, uint64_t bytes)
{
	for (uint64_t done = s->chunks.count * CHUNK_BYTES; done < bytes; done += CHUNK_BYTES) {
		uint64_t *chunk = large_map(CHUNK_BYTES);

		large_touch(chunk, MIN(bytes - done, CHUNK_BYTES));
		*vec_add(&s->chunks) = chunk;
	}
}

void kept_spare_drop(struct kept_spare *s)
{
	for (size_t i = s->taken; i < s->chunks.count; i++)
		large_unmap(s->chunks.data[i], CHUNK_BYTES);
	vec_deinit(&s->chunks);
	s->taken = 0;
}
