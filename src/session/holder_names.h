/* What points to blocks: looked up after the process was resumed. */
#ifndef PTMEM_HOLDER_NAMES_H
#define PTMEM_HOLDER_NAMES_H

#include "inspect/holders.h"
#include "session/malloc_module.h"

/*
 * Does block_holders_find, with the variables of @modules, and names them. The names are valid
 * UTF-8 without control characters.
 */
void holder_names_find(struct block_holders *h, const struct held_modules *modules);

#endif
