/*
 * The memory of a process, of which the fuzzer's input is all that there is: it is repeated from
 * START on, so that every pointer of the input leads to something.
 */
#ifndef PTMEM_FUZZ_MEMORY_H
#define PTMEM_FUZZ_MEMORY_H

#include "base/types.h"

#define START 0x10000u

struct fuzz_memory {
	const uint8_t *data;
	size_t size;
};

/* A language_read_fn; @ctx: struct fuzz_memory. */
static inline bool fuzz_memory_read(void *ctx, taddr_t addr, void *buf, size_t size)
{
	const struct fuzz_memory *m = ctx;

	if (addr < START || m->size == 0 || addr > (1u << 20) || size > (8u << 20))
		return false;
	for (size_t i = 0; i < size; i++)
		((uint8_t *)buf)[i] = m->data[(addr - START + i) % m->size];
	return true;
}

#endif
