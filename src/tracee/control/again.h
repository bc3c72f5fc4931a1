/*
 * Functions that begin again: glibc's free since 2.43 makes a thread's cache when it finds none,
 * and jumps to its own start. That is no second call. A breakpoint at such a jump, which is rarely
 * executed, leads behind the one at the start.
 */
#ifndef PTMEM_TRACEE_CONTROL_AGAIN_H
#define PTMEM_TRACEE_CONTROL_AGAIN_H

#include "base/types.h"

struct address_space;
struct arch;
struct module;
struct target;

/* Finds the watched functions of @m and such jumps, once; @m has a file. */
void again_find_sites(const struct arch *arch, struct module *m);
/* For the functions of @m that have a breakpoint. */
void again_install(struct target *t, struct address_space *s, const struct module *m);

#endif
