/*
 * The code of malloc.c has functions without symbols. Linkers of glibc since 2.42 have these before
 * malloc, and a stack no longer has an address in malloc when it jumps to one.
 */
#ifndef PTMEM_SESSION_MALLOC_REACH_H
#define PTMEM_SESSION_MALLOC_REACH_H

#include "base/elf_file.h"
#include "base/vec.h"

struct malloc_reach {
	uint64_t start, end;    /* of the code that is known */
	VEC(uint64_t) shared;   /* functions that other source files may call, too */
};

/*
 * Where the first function of @file begins that the known code, or what it leads to, calls or jumps
 * to directly, among those near before it; its start if there is none.
 */
uint64_t malloc_reach_first(struct elf_file *file, const struct malloc_reach *from);

#endif
