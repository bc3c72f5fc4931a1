/* Variables that a function uses, for programs without symbols for them. */
#ifndef PTMEM_ARCH_FIRST_LOAD_H
#define PTMEM_ARCH_FIRST_LOAD_H

#include "arch/arch.h"

/*
 * The address of the first variable of @size bytes (4, 8) that @code loads; @size 0: whose address
 * it takes. Only variables at fixed places count. 0 = none.
 */
taddr_t arch_find_first_load(const struct arch_code *code, unsigned size);

#endif
