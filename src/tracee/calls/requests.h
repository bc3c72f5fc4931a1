/*
 * Markers in an address space: installs breakpoints at them, and handles their stops. A block that
 * a program announces becomes the same event as a call of malloc or free. Inside a watched call a
 * marker announces nothing new.
 */
#ifndef PTMEM_TRACEE_CALLS_REQUESTS_H
#define PTMEM_TRACEE_CALLS_REQUESTS_H

#include "tracee/calls/marker.h"
#include "tracee/state/thread.h"

struct trap;

/* Finds the markers of @m's file, once; if possible before its program is stopped. */
void requests_find_markers(struct target *t, struct module *m);

/* Installs breakpoints at all markers of @m, and raises its semaphores. */
void requests_install(struct target *t, struct address_space *s, struct module *m);
/* Lowers the semaphore of @trap, whose breakpoint was removed. */
void requests_removed(struct address_space *s, struct trap *trap);

/*
 * Whether the first bytes of the marker at @trap may be replaced by a jump; if not, *why (static
 * text).
 */
bool requests_may_jump(const struct target *t, const struct address_space *s,
		       const struct trap *trap, const char **why_out);
/* Which requests the pads of @s must pass to ptmem: enum pad_flag. */
uint32_t requests_pad_flags(const struct target *t, const struct address_space *s);

/* Copies and frees the marker state of @s. */
void requests_fork(const struct address_space *from, struct address_space *to);
void requests_free(struct address_space *s);

#endif
