/* Verifies a journal found in a program's memory, which is untrusted input. */
#ifndef PTMEM_TRACEE_GUARD_JOURNAL_CHECK_H
#define PTMEM_TRACEE_GUARD_JOURNAL_CHECK_H

#include "base/types.h"

struct address_space;
struct arch;
struct journal;

/* The error in the numbers of @j, which was found in the page at @page; NULL = none. */
const char *journal_find_flaw(const struct journal *j, taddr_t page);
/*
 * Removes from @j, whose numbers are valid, everything that is not in @s any more: only what is
 * confirmed to be ptmem's may be written to. If something looks like ptmem's but is not confirmed,
 * the rest cannot be used either: returns the text for a message. NULL = @j can be used.
 */
const char *journal_verify(struct journal *j, const struct address_space *s,
			   const struct arch *arch);

#endif
