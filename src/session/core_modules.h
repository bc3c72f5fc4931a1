/* The program and the libraries of a process that left a core file. */
#ifndef PTMEM_CORE_MODULES_H
#define PTMEM_CORE_MODULES_H

#include "inspect/core_file.h"
#include "inspect/inspect.h"
#include "session/malloc_module.h"

struct core_modules {
	struct held_modules held;
	uint32_t missing; /* objects whose files are not there, or are others now */
};

/*
 * Finds them by what @c says was mapped. A file counts only if its build-id is that of the object
 * in the core. Adds their segments to @in, whose mappings are known. @program: the file of the
 * program; NULL = the one that @c names.
 */
void core_modules_find(const struct core_file *c, const char *program, struct inspect_input *in,
		       struct core_modules *out);

#endif
