/* The names of types of blocks, as people write them. */
#ifndef PTMEM_TYPE_NAMES_H
#define PTMEM_TYPE_NAMES_H

#include "inspect/block_types.h"
#include "session/malloc_module.h"

/*
 * Names of C++ are demangled; tables get the name of their symbol in @modules, and those that C++
 * made for a type are its. The names are valid UTF-8 without control characters.
 */
void type_names_find(struct block_types *t, const struct held_modules *modules);

#endif
