/* Checks a journal that was found in a program's memory: it is input. */
#ifndef PTMEM_TRACEE_GUARD_JOURNAL_CHECK_H
#define PTMEM_TRACEE_GUARD_JOURNAL_CHECK_H

#include "base/types.h"

struct address_space;
struct arch;
struct journal;

/* What is wrong with the numbers of @j, which was found in the page at @page; NULL = nothing. */
const char *journal_find_flaw(const struct journal *j, taddr_t page);
/*
 * Removes from @j, which has no flaw, what is no longer in @s: only what is proven to be ptmem's
 * may be written to. If something looks like ptmem's and is not proven, the rest cannot be used
 * either: returns words for a message. NULL = @j may be worked from.
 */
const char *journal_verify(struct journal *j, const struct address_space *s,
			   const struct arch *arch);

#endif
