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

#define MALLOC_CODE_PARTS 32u

/* A libc's malloc, or another one. */
struct malloc_module {
	const struct module *module; /* NULL = not found */
	struct malloc_code {
		taddr_t start, end;
	} code[MALLOC_CODE_PARTS];   /* of its functions */
	size_t code_count;           /* 0 = unknown */
};

/* Whether @pc is in its functions. */
bool malloc_module_has(const struct malloc_module *m, taddr_t pc);

/* Finds it among @module (@count). */
void malloc_module_find(struct module *const *module, size_t count, struct malloc_module *out);

/*
 * Code of an allocator other than a libc's: all of a library, or the functions of it that a program
 * has. Without code: there is none, or it has no symbols.
 */
void malloc_module_find_other(struct module *const *module, size_t count,
			      struct malloc_module *out);

/* Its version; 0, 0 if that is unknown. Reads the whole file. */
void malloc_module_version(const struct module *m, unsigned *major_out, unsigned *minor_out);

/*
 * The name of another allocator that a program with @l calls by malloc and free; NULL if none is
 * known.
 */
const char *malloc_module_other(const struct held_modules *l);
/* The same of one object. */
const char *malloc_module_name(const struct module *m);

#endif
