/*
 * A set of strings with open addressing. Nothing is removed, so a search ends at the first free
 * slot. At most 3/4 full.
 */
#include "symbols/string_pool.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

static char **find_slot(const struct string_pool *p, const char *s, size_t length)
{
	size_t i = hash_bytes(s, length) & (p->capacity - 1);
	while (p->slot[i] && (strncmp(p->slot[i], s, length) != 0 || p->slot[i][length]))
		i = (i + 1) & (p->capacity - 1);
	return &p->slot[i];
}

static void grow(struct string_pool *p)
{
	struct string_pool bigger = {.count = p->count};
	bigger.capacity = p->capacity ? p->capacity * 2 : 64;
	bigger.slot = xcalloc(bigger.capacity, sizeof(*bigger.slot));
	for (size_t i = 0; i < p->capacity; i++) {
		if (p->slot[i])
			*find_slot(&bigger, p->slot[i], strlen(p->slot[i])) = p->slot[i];
	}
	free(p->slot);
	*p = bigger;
}

const char *string_pool_add_n(struct string_pool *p, const char *s, size_t length)
{
	if ((p->count + 1) * 4 > p->capacity * 3)
		grow(p);
	char **slot = find_slot(p, s, length);
	if (!*slot) {
		*slot = xstrndup(s, length);
		p->count++;
	}
	return *slot;
}

const char *string_pool_add(struct string_pool *p, const char *s)
{
	return s ? string_pool_add_n(p, s, strlen(s)) : NULL;
}

void string_pool_deinit(struct string_pool *p)
{
	for (size_t i = 0; i < p->capacity; i++)
		free(p->slot[i]);
	free(p->slot);
	*p = (struct string_pool){0};
}
