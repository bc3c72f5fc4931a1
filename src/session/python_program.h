/*
 * Whether a command starts a Python program: then ptmem sets PYTHONMALLOC=malloc for it, unless the
 * user has set that variable, or said --python-malloc=keep.
 */
#ifndef PTMEM_SESSION_PYTHON_PROGRAM_H
#define PTMEM_SESSION_PYTHON_PROGRAM_H

#include "base/types.h"

struct options;

#define PYTHON_MALLOC_VARIABLE "PYTHONMALLOC"

/* Whether the program of @o is to be started with that variable. */
bool python_program_gets_malloc(const struct options *o);

#endif
