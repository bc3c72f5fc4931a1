/* Putting breakpoints and stubs into an address space, and taking them out again. */
#ifndef PTMEM_TRACEE_CONTROL_INSTALL_H
#define PTMEM_TRACEE_CONTROL_INSTALL_H

#include "base/types.h"

struct address_space;
struct target;
struct thread;

/*
 * Puts traps at all watched functions of all modules of @s and reports them to the sink; @th is
 * stopped and may be used to inject system calls (NULL: then only known areas are used). -ENOENT:
 * there is none, nor a dynamic linker to bring any; the sink heard nothing.
 */
int install_probes(struct target *t, struct address_space *s, struct thread *th);
/*
 * The same at the first instruction of an image; without a watched function it is refused or let
 * alone.
 */
void install_at_start(struct target *t, struct thread *th);
/* The same after the loader reported a change. */
void install_update(struct target *t, struct address_space *s, struct thread *th);
int install_start_trap(struct target *t, struct thread *th);
/*
 * Takes everything out of @s; all its threads are stopped, @th one of them (or NULL). False: a
 * signal handler interrupted code in our pages, which are still there; the text is restored, so
 * threads may run on before the next try. @is_last: leave such pages forever.
 */
bool install_remove(struct target *t, struct address_space *s, struct thread *th, bool is_last);

#endif
