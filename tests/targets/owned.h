/*
 * Programs whose variables own structures: what they free is counted. Each line on standard input
 * names a variable: what only it owns is freed.
 *
 * expect: the first line is "ready"; the answer to each name is "BLOCKS BYTES", as many as were
 * freed, by malloc_usable_size. It prints without stdio, which would allocate.
 */
#ifndef OWNED_H
#define OWNED_H

#include <malloc.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "noinline.h"

static size_t freed_blocks, freed_bytes;
static void *volatile stays; /* when all others are freed: musl's heap is gone without any */

NOINLINE static void *make(size_t size)
{
	void *p = calloc(1, size);

	NO_TAIL_CALL();
	return p;
}

static void drop(void *p)
{
	freed_blocks += p != NULL;
	freed_bytes += p ? malloc_usable_size(p) : 0;
	free(p);
}

/* A variable's name, and what frees all that only it owns. */
struct owned {
	const char *name;
	void (*drop)(void);
};

static void drop_named(const struct owned *list, size_t count, const char *name)
{
	char answer[64];

	freed_blocks = freed_bytes = 0;
	for (size_t i = 0; i < count; i++)
		if (strcmp(list[i].name, name) == 0)
			list[i].drop();
	snprintf(answer, sizeof(answer), "%zu %zu\n", freed_blocks, freed_bytes);
	say(answer);
}

#endif
