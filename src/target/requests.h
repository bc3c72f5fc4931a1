/*
 * Markers in one address space: breakpoints at them, and what happens there. What a
 * program announces becomes the same events as calls of malloc and free; a marker met
 * inside a watched call announces nothing that was not seen already.
 */
#ifndef PTMEM_TARGET_REQUESTS_H
#define PTMEM_TARGET_REQUESTS_H

#include "target/marker.h"
#include "target/thread.h"

/* Whether traps of @p stand at markers. */
static inline bool probe_is_marker(const struct probe *p)
{
	return p->kind >= PROBE_REQUEST;
}

/* Finds the markers of @m's file, once; before its program is stopped, if possible. */
void requests_look(struct target *t, struct module *m);

/* Puts breakpoints at all markers of @m, and says in its semaphores that somebody listens. */
void requests_install(struct target *t, struct space *s, struct module *m);
/* Takes back what the semaphore of @trap was told; its breakpoint is out. */
void requests_removed(struct space *s, struct trap *trap);

/*
 * @th stands at the marker of @trap, @regs are its registers: makes the events, and gives it the
 * answer. Its pc is the caller's to set. @trap may be gone afterwards.
 */
void requests_serve(struct target *t, struct thread *th, const struct trap *trap,
		    const struct arch_regs *regs);

/* Whether the first bytes of the marker of @trap may become a jump; if not, why (static text). */
bool requests_may_jump(const struct target *t, const struct space *s, const struct trap *trap,
		       const char **why_out);
/* Which requests the pads of @s must leave to ptmem: enum pad_flag. */
uint32_t requests_pad_flags(const struct target *t, const struct space *s);

/* What @s has of markers, for its copy, and for its end. */
void requests_fork(const struct space *from, struct space *to);
void requests_free(struct space *s);

#endif
