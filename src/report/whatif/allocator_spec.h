/*
 * Allocators by name, as --what-if takes them: glibc:arena_max=2,jemalloc,/opt/lib/libmy.so. Hides:
 * names of libraries and packages, and how each allocator is given its settings.
 */
#ifndef PTMEM_REPORT_WHATIF_ALLOCATOR_SPEC_H
#define PTMEM_REPORT_WHATIF_ALLOCATOR_SPEC_H

#include "base/alloc.h"
#include "base/types.h"

struct malloc_choice;

struct allocator_spec {
	char *text;                       /* as the user wrote it; owned */
	const struct malloc_choice *kind; /* NULL: a library by its path */
	char *library;                    /* its path then; owned */
	char *setting;                    /* for the environment, "NAME=VALUE"; lines; owned */
};

typedef VEC(struct allocator_spec) allocator_specs;

#define ALLOCATOR_SPECS 64u /* at most in one list */

/*
 * Adds those in @list, which commas separate. NULL, or why it cannot be: a text that the caller
 * frees.
 */
char *allocator_specs_parse(const char *list, allocator_specs *out);
void allocator_specs_deinit(allocator_specs *specs);

/*
 * Library number @i to be preloaded for @spec, to be tried one after the other: a name for the
 * loader, or a path; "" for none; NULL: there are no more.
 */
const char *allocator_spec_library(const struct allocator_spec *spec, size_t i);
/* Whether the library at @path is what @spec means. */
bool allocator_spec_is(const struct allocator_spec *spec, const char *path);
/* Whether it may return memory after a time; of a library given by its path that is not known. */
bool allocator_spec_has_timers(const struct allocator_spec *spec);
/* What to do if none of its libraries is there. The caller frees it. */
char *allocator_spec_missing(const struct allocator_spec *spec);

#endif
