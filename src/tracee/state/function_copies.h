/*
 * Whether a function that is called by pointers is also executed elsewhere. Compilers that optimize
 * by a profile compare such a pointer with the function that it mostly has, and execute a copy of
 * that function's code if it is equal: a probe at the function does not see these calls.
 *
 *	if (pointer == function)
 *		a copy of the function's code
 *	else
 *		pointer(...)
 */
#ifndef PTMEM_TRACEE_STATE_FUNCTION_COPIES_H
#define PTMEM_TRACEE_STATE_FUNCTION_COPIES_H

#include "base/types.h"

struct elf_file;

/*
 * Whether code of @file uses the address of one of the @count functions at @vaddr otherwise than to
 * call it, so that there may be copies, or whether that is unknown. Functions whose names contain
 * one of @setters, which ends with NULL, may use it.
 */
bool functions_may_have_copies(struct elf_file *file, const uint64_t *vaddr, size_t count,
			       const char *const *setters);

#endif
