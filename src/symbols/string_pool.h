/*
 * Stores each string once: function names, directories and files repeat thousands of times in a
 * report. A string does not move until the pool is freed.
 */
#ifndef PTMEM_SYMBOLS_STRING_POOL_H
#define PTMEM_SYMBOLS_STRING_POOL_H

#include "base/hash.h"

struct string_pool {
	HASH(char *) strings; /* owned */
};

/* The pool's own copy of @s; NULL stays NULL. */
const char *string_pool_add(struct string_pool *p, const char *s);

/* The same for the first @length bytes of @s. */
const char *string_pool_add_n(struct string_pool *p, const char *s, size_t length);

void string_pool_deinit(struct string_pool *p);

#endif
