/* Hash tables with linear probing. See hash.h. */
#include "base/hash.h"

#include <string.h>

#define FIRST_CAPACITY 16u

static size_t free_slot(const struct hash_index *x, uint32_t code)
{
	size_t i = code & (x->capacity - 1);

	while (x->code[i])
		i = (i + 1) & (x->capacity - 1);
	return i;
}

void *hash_reserve(struct hash_index *x, void *slot, size_t size)
{
	const struct hash_index old = *x;
	const char *from = slot;

	if (x->count < x->capacity / 4 * 3)
		return slot;
	x->capacity = old.capacity ? 2 * old.capacity : FIRST_CAPACITY;
	x->code = xcalloc(x->capacity, sizeof(*x->code));
	char *to = xcalloc(x->capacity, size);

	for (size_t i = 0; hash_next(&old, &i); i++) {
		size_t at = free_slot(x, old.code[i]);

		x->code[at] = old.code[i];
		memcpy(to + at * size, from + i * size, size);
	}
	free(old.code);
	free(slot);
	return to;
}

size_t hash_take(struct hash_index *x, uint64_t hash)
{
	size_t i = free_slot(x, hash_code(hash));

	x->code[i] = hash_code(hash);
	x->count++;
	return i;
}

void hash_drop(struct hash_index *x, void *slot, size_t size, size_t i)
{
	size_t mask = x->capacity - 1;
	char *element = slot;

	for (size_t next = (i + 1) & mask; x->code[next]; next = (next + 1) & mask) {
		/* an element may not move to before the slot where a search for it begins */
		if (((next - x->code[next]) & mask) < ((next - i) & mask))
			continue;
		x->code[i] = x->code[next];
		memcpy(element + i * size, element + next * size, size);
		i = next;
	}
	x->code[i] = 0;
	memset(element + i * size, 0, size);
	x->count--;
}

void *hash_copy_index(struct hash_index *to, const struct hash_index *from, const void *slot,
		      size_t size)
{
	*to = *from;
	if (!from->capacity)
		return NULL;
	to->code = xmemdup(from->code, from->capacity * sizeof(*from->code));
	return xmemdup(slot, from->capacity * size);
}
