/*
 * Confirms functions that are taken for malloc's family (state/static_malloc.h) by their first
 * calls: a block that is allocated has the head that glibc or musl gives a block, is in memory and
 * shares none with others; and what is released was allocated before. If a call contradicts, the
 * program has no profile.
 */
#ifndef PTMEM_TRACEE_CALLS_CONFIRM_H
#define PTMEM_TRACEE_CALLS_CONFIRM_H

#include "base/types.h"

struct address_space;
struct call;

/* Calls of each function that are to confirm it: until then it stays a breakpoint. */
#define CONFIRM_CALLS 16

/* @block is passed to a guessed realloc, by the program. */
void confirm_realloc(struct address_space *s, taddr_t block);
/* @call, of a guessed function, has returned @block; 0 = it failed. */
void confirm_result(struct address_space *s, const struct call *call, taddr_t block);
/* @block is passed to a guessed free. @is_inner: by another guessed function. */
void confirm_free(struct address_space *s, taddr_t block, bool is_inner);
/*
 * @s has ended: whether calls have confirmed all that was guessed, if anything was. If there was
 * not a single call this says so.
 */
bool confirm_has_profile(struct address_space *s);
void confirm_forget(struct address_space *s);

#endif
