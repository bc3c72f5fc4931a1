/*
 * Markers in one address space: breakpoints at them, and what happens there. What a
 * program announces becomes the same events as calls of malloc and free; a marker met
 * inside a watched call announces nothing that was not seen already.
 */
#ifndef PTMEM_TRACEE_CALLS_REQUESTS_H
#define PTMEM_TRACEE_CALLS_REQUESTS_H

#include "tracee/calls/marker.h"
#include "tracee/state/thread.h"

struct trap;

/* Finds the markers of @m's file, once; before its program is stopped, if possible. */
void requests_find_markers(struct target *t, struct module *m);

/* Puts breakpoints at all markers of @m, and raises its semaphores. */
void requests_install(struct target *t, struct address_space *s, struct module *m);
/* Lowers the semaphore of @trap; its breakpoint is out. */
void requests_removed(struct address_space *s, struct trap *trap);

/* Whether the first bytes of the marker of @trap may become a jump; if not, why (static text). */
bool requests_may_jump(const struct target *t, const struct address_space *s,
		       const struct trap *trap, const char **why_out);
/* Which requests the pads of @s must leave to ptmem: enum pad_flag. */
uint32_t requests_pad_flags(const struct target *t, const struct address_space *s);

/* What @s has of markers, for its copy, and for its end. */
void requests_fork(const struct address_space *from, struct address_space *to);
void requests_free(struct address_space *s);

#endif
