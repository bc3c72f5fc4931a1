/* Installs breakpoints and stubs in an address space, and removes them again. */
#ifndef PTMEM_TRACEE_CONTROL_INSTALL_H
#define PTMEM_TRACEE_CONTROL_INSTALL_H

#include "base/types.h"

struct address_space;
struct target;
struct thread;

/*
 * Installs traps at all watched functions of all modules of @s and reports them to the sink. @th is
 * stopped and may be used to inject system calls (NULL: only existing areas are used). -ENOENT:
 * there is no watched function, nor a dynamic linker that could load any; nothing was reported.
 */
int install_probes(struct target *t, struct address_space *s, struct thread *th);
/*
 * The same at the first instruction of an image; without a watched function it is rejected or
 * released.
 */
void install_at_start(struct target *t, struct thread *th);
/* The same after the loader reported a change. */
void install_update(struct target *t, struct address_space *s, struct thread *th);
int install_start_trap(struct target *t, struct thread *th);
/*
 * Removes everything from @s; all its threads are stopped, @th is one of them (or NULL). False: a
 * signal handler interrupted code in our pages, which stay for now. The text is restored, so
 * threads may run before the next try. @is_last: abandon such pages.
 */
bool install_remove(struct target *t, struct address_space *s, struct thread *th, bool is_last);

/*
 * Functions that begin again: glibc's free since 2.43 makes a thread's cache when it finds none,
 * and jumps to its own start. That is no second call. A breakpoint at such a jump, which is rarely
 * executed, leads behind the one at the start.
 */

struct module;

/* Finds the watched functions of @m and such jumps, once; @m has a file. */
void again_find_sites(const struct target *t, struct module *m);

#endif
