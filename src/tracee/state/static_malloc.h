/*
 * malloc's family in a stripped static program, by the structure of the code: which function refers
 * to which message or constant, and which calls which. Hides what is looked for.
 *
 * What is found is a guess until its first calls have confirmed it (calls/confirm.c).
 */
#ifndef PTMEM_TRACEE_STATE_STATIC_MALLOC_H
#define PTMEM_TRACEE_STATE_STATIC_MALLOC_H

#include <stdbool.h>

struct elf_file;
struct probe_sites;

/*
 * Adds the functions in @file to @sites as guesses, if it is a static program, and @sites has none
 * of them: all of the family, or none if one of them is missing or not the only candidate. Returns
 * whether it did.
 */
bool static_malloc_find(struct elf_file *file, struct probe_sites *sites);

#endif
