/*
 * --soname-synonyms=somalloc=PATTERN: which objects' allocators are watched. libc's
 * and libstdc++'s always are; all others' without the option, else those whose
 * soname is like PATTERN ("NONE": an object without one, as the executable).
 */
#ifndef PTMEM_TRACEE_OS_SONAME_H
#define PTMEM_TRACEE_OS_SONAME_H

#include "base/elf_file.h"

/* @synonyms: the option's value, "SYNONYM=PATTERN,..."; NULL = not given. */
bool soname_is_watched(struct elf_file *file, const char *synonyms);

/* Whether @file is the standard library of C++. */
bool soname_is_standard_cxx(struct elf_file *file);

#endif
