/* See string_pool.h. */
#include "symbols/string_pool.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

const char *string_pool_add_n(struct string_pool *p, const char *s, size_t length)
{
	uint64_t hash = hash_bytes(s, length);
	char *const *found = hash_find(&p->strings, hash, e,
				       !strncmp(*e, s, length) && !(*e)[length]);
	return found ? *found : (*hash_add(&p->strings, hash) = xstrndup(s, length));
}

const char *string_pool_add(struct string_pool *p, const char *s)
{
	return s ? string_pool_add_n(p, s, strlen(s)) : NULL;
}

void string_pool_deinit(struct string_pool *p)
{
	for (size_t i = 0; hash_next(&p->strings.index, &i); i++)
		free(p->strings.slot[i]);
	hash_deinit(&p->strings);
}
