/* The program and the libraries of a process that left a core file. */
#ifndef PTMEM_CORE_MODULES_H
#define PTMEM_CORE_MODULES_H

#include "inspect/core_file.h"
#include "inspect/inspect.h"
#include "session/malloc_module.h"

struct core_modules {
	struct held_modules held;
	uint32_t missing; /* objects whose files are missing or have changed */
};

/*
 * Finds them by the mappings in @c. A file is used only if its build-id is that of the object in
 * the core. Adds their segments to @in, whose mappings are known. @program: the program's file;
 * NULL = the one named in @c.
 */
void core_modules_find(const struct core_file *c, const char *program, struct inspect_input *in,
		       struct core_modules *out);

#endif
