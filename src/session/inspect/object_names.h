/*
 * What the files of a process's program and libraries have at an address: bytes, and the names of
 * variables and of types of blocks.
 */
#ifndef PTMEM_SESSION_INSPECT_OBJECT_NAMES_H
#define PTMEM_SESSION_INSPECT_OBJECT_NAMES_H

#include <sys/types.h>

#include "base/types.h"
#include "inspect/block_types.h"
#include "inspect/holders.h"
#include "session/inspect/malloc_module.h"

/* A memory_read_fn; @modules: a struct held_modules. */
ssize_t object_bytes_read(void *modules, taddr_t addr, void *buf, size_t size);

/* What points to blocks: looked up after the process was resumed. */

/*
 * Does block_holders_find, with the variables of @modules, and names them. The names are valid
 * UTF-8 without control characters.
 */
void holder_names_find(struct block_holders *h, const struct held_modules *modules);

/* The names of types of blocks, as people write them. */

/*
 * Names of C++ are demangled; tables get the name of their symbol in @modules, and those that C++
 * made for a type are its. The names are valid UTF-8 without control characters.
 */
void type_names_find(struct block_types *t, const struct held_modules *modules);

#endif
