/*
 * --soname-synonyms=somalloc=PATTERN selects the objects whose allocators are watched. libc's and
 * libstdc++'s always are. Others are watched without the option, or if their soname matches PATTERN
 * ("NONE": an object without one, such as the executable).
 */
#ifndef PTMEM_TRACEE_OS_SONAME_H
#define PTMEM_TRACEE_OS_SONAME_H

#include "base/elf_file.h"

/* @synonyms: the option's value, "SYNONYM=PATTERN,..."; NULL = not given. */
bool soname_is_watched(struct elf_file *file, const char *synonyms);

/* Whether @file is the C++ standard library. */
bool soname_is_standard_cxx(struct elf_file *file);

#endif
