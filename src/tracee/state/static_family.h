/*
 * The allocators that are recognized in stripped static programs, for static_malloc.c. Each
 * function reads the code of @file into @code, which the caller frees, if the file has what is
 * typical of the allocator; and returns whether it has found all of its functions.
 */
#ifndef PTMEM_TRACEE_STATE_STATIC_FAMILY_H
#define PTMEM_TRACEE_STATE_STATIC_FAMILY_H

#include "base/log.h"
#include "tracee/state/static_code.h"

#define STATIC_MEMBERS_MAX 8

/* Functions of malloc's family, by their names in probe_table. */
struct static_family {
	struct {
		const char *name;
		int function; /* index in the code */
	} member[STATIC_MEMBERS_MAX];
	size_t count;
};

bool static_glibc_find(struct elf_file *file, struct static_code *code, struct static_family *out);
bool static_musl_find(struct elf_file *file, struct static_code *code, struct static_family *out);
bool static_jemalloc_find(struct elf_file *file, struct static_code *code,
			  struct static_family *out);

/* Adds function @i as @name, unless it is negative. */
static inline void static_family_add(struct static_family *f, const char *name, int i)
{
	if (i < 0)
		return;
	CHECK(f->count < STATIC_MEMBERS_MAX);
	f->member[f->count].name = name;
	f->member[f->count++].function = i;
}

#endif
