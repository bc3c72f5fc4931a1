/*
 * The environment of a program that begins. Only that program gets the variable, not those that led
 * to it (shells, env, version managers).
 */
#ifndef PTMEM_TRACEE_INJECT_ENVIRONMENT_H
#define PTMEM_TRACEE_INJECT_ENVIRONMENT_H

#include "base/types.h"

struct address_space;
struct target;
struct thread;

/*
 * Adds @text, "NAME=VALUE", behind the environment of @s, whose only thread @th has executed its
 * program and not run it yet. /proc/PID/environ does not show it. -E2BIG if the vectors of
 * arguments and environment are too long, -EINVAL if they are not as the kernel makes them; nothing
 * is changed then.
 */
int environment_add(struct target *t, const struct address_space *s, const struct thread *th,
		    const char *text);

#endif
