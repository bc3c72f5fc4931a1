/* Chains and sums are interned in hash tables with open addressing; entries are never removed. */
#include "output/leak_holders.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

#define FIRST_BITS 8

typedef uint64_t hash_fn(const struct leak_holders *h, uint32_t i);
typedef bool equal_fn(const struct leak_holders *h, uint32_t i, const void *key);

static void hash_init(struct leak_holders_hash *x)
{
	*x = (struct leak_holders_hash){.bits = FIRST_BITS};
	x->slot = xcalloc((size_t)1 << x->bits, sizeof(*x->slot));
}

static void put(struct leak_holders_hash *x, uint64_t hash, uint32_t i)
{
	uint32_t mask = (1u << x->bits) - 1, at = (uint32_t)hash & mask;

	while (x->slot[at])
		at = (at + 1) & mask;
	x->slot[at] = i + 1;
}

static void grow(const struct leak_holders *h, struct leak_holders_hash *x, hash_fn *hash)
{
	if (x->used + 1 < 1u << (x->bits - 1))
		return;
	free(x->slot);
	x->bits++;
	x->slot = xcalloc((size_t)1 << x->bits, sizeof(*x->slot));
	for (uint32_t i = 0; i < x->used; i++)
		put(x, hash(h, i), i);
}

/* The element equal to @key, whose hash is @value; UINT32_MAX if there is none. */
static uint32_t find(const struct leak_holders *h, const struct leak_holders_hash *x,
		     uint64_t value, equal_fn *is_equal, const void *key)
{
	uint32_t mask = (1u << x->bits) - 1, at = (uint32_t)value & mask;

	for (; x->slot[at]; at = (at + 1) & mask)
		if (is_equal(h, x->slot[at] - 1, key))
			return x->slot[at] - 1;
	return UINT32_MAX;
}

static uint64_t pair_hash(uint32_t a, uint32_t b)
{
	return hash_u64((uint64_t)a << 32 | b);
}

static uint64_t link_hash(const struct leak_holders *h, uint32_t i)
{
	return pair_hash(h->links.data[i].before, h->links.data[i].text);
}

static bool is_link(const struct leak_holders *h, uint32_t i, const void *key)
{
	const struct leak_link *link = key;

	return h->links.data[i].before == link->before && h->links.data[i].text == link->text;
}

static uint64_t held_hash(const struct leak_holders *h, uint32_t i)
{
	return pair_hash(h->held.data[i].site, h->held.data[i].chain);
}

static bool is_held(const struct leak_holders *h, uint32_t i, const void *key)
{
	const struct leak_held *held = key;

	return h->held.data[i].site == held->site && h->held.data[i].chain == held->chain;
}

static uint64_t text_hash(const struct leak_holders *h, uint32_t i)
{
	return hash_bytes(h->text.data[i], strlen(h->text.data[i]));
}

static bool is_text(const struct leak_holders *h, uint32_t i, const void *key)
{
	return strcmp(h->text.data[i], key) == 0;
}

void leak_holders_init(struct leak_holders *h)
{
	*h = (struct leak_holders){0};
	hash_init(&h->link_hash);
	hash_init(&h->held_hash);
	hash_init(&h->text_hash);
	*vec_add(&h->links) = (struct leak_link){.text = UINT32_MAX};
	put(&h->link_hash, link_hash(h, 0), h->link_hash.used++);
}

void leak_holders_deinit(struct leak_holders *h)
{
	for (size_t i = 0; i < h->text.count; i++)
		free(h->text.data[i]);
	vec_deinit(&h->text);
	vec_deinit(&h->links);
	vec_deinit(&h->held);
	free(h->link_hash.slot);
	free(h->held_hash.slot);
	free(h->text_hash.slot);
}

uint32_t leak_holders_text(struct leak_holders *h, const char *text)
{
	uint64_t hash = hash_bytes(text, strlen(text));
	uint32_t i = find(h, &h->text_hash, hash, is_text, text);

	if (i != UINT32_MAX)
		return i;
	grow(h, &h->text_hash, text_hash);
	*vec_add(&h->text) = xstrdup(text);
	put(&h->text_hash, hash, h->text_hash.used);
	return h->text_hash.used++;
}

uint32_t leak_holders_link(struct leak_holders *h, uint32_t before, uint32_t text)
{
	const struct leak_link *last = &h->links.data[before];
	const struct leak_link link = {before, text, last->length + 1};
	uint64_t hash = pair_hash(before, text);

	if (before && (last->text == text || last->length == LEAK_CHAIN_MAX))
		return before;
	uint32_t i = find(h, &h->link_hash, hash, is_link, &link);

	if (i != UINT32_MAX)
		return i;
	grow(h, &h->link_hash, link_hash);
	*vec_add(&h->links) = link;
	put(&h->link_hash, hash, h->link_hash.used);
	return h->link_hash.used++;
}

void leak_holders_add(struct leak_holders *h, uint32_t site, uint32_t chain, uint64_t bytes)
{
	const struct leak_held held = {.site = site, .chain = chain};
	uint64_t hash = pair_hash(site, chain);
	uint32_t i = find(h, &h->held_hash, hash, is_held, &held);

	if (i == UINT32_MAX) {
		grow(h, &h->held_hash, held_hash);
		*vec_add(&h->held) = held;
		i = h->held_hash.used++;
		put(&h->held_hash, hash, i);
	}
	h->held.data[i].bytes += bytes;
	h->held.data[i].blocks++;
}

static int compare_held(const void *a, const void *b)
{
	const struct leak_held *x = a, *y = b;

	if (x->site != y->site)
		return x->site < y->site ? -1 : 1;
	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return x->chain < y->chain ? -1 : x->chain > y->chain;
}

void leak_holders_sort(struct leak_holders *h)
{
	if (h->held.count > 1)
		qsort(h->held.data, h->held.count, sizeof(*h->held.data), compare_held);
	memset(h->held_hash.slot, 0, sizeof(*h->held_hash.slot) << h->held_hash.bits);
	for (uint32_t i = 0; i < h->held.count; i++)
		put(&h->held_hash, held_hash(h, i), i);
}

size_t leak_holders_find(const struct leak_holders *h, uint32_t site, size_t *first_out)
{
	size_t first = vec_search(&h->held, e, e->site < site), end = first;

	while (end < h->held.count && h->held.data[end].site == site)
		end++;
	*first_out = first;
	return end - first;
}
