/* Which object of a process has its malloc, and which malloc that is. */
#ifndef PTMEM_MALLOC_MODULE_H
#define PTMEM_MALLOC_MODULE_H

#include "base/types.h"
#include "base/vec.h"

struct module;

struct held_modules {
	VEC(struct module *) list; /* held */
};

void held_modules_deinit(struct held_modules *l);

/* glibc's malloc. */
struct malloc_module {
	const struct module *module; /* NULL = not found */
	taddr_t start, end;          /* code of its functions; 0 = unknown */
};

/* Finds it among @module (@count). */
void malloc_module_find(struct module *const *module, size_t count, struct malloc_module *out);

/* Its version; 0, 0 if that is unknown. Reads the whole file. */
void malloc_module_version(const struct module *m, unsigned *major_out, unsigned *minor_out);

/*
 * The name of another allocator that a program with @l calls by malloc and free; NULL if none is
 * known.
 */
const char *malloc_module_other(const struct held_modules *l);

#endif
