/* Where the roots of a leak check are in memory. */
#ifndef PTMEM_ROOT_PLACES_H
#define PTMEM_ROOT_PLACES_H

#include <sys/types.h>

#include "tracee/control/roots.h"

struct final_scan;

/* What most likely owns a block first: what runs through a stack is often borrowed. */
enum root_place { ROOT_VARIABLE, ROOT_THREAD_LOCAL, ROOT_STACK, ROOT_OTHER };

struct root_places {
	const struct roots *roots;
	VEC(struct root_range) objects; /* segments of the program and its libraries; ascending */
};

/* @scan, which has wants_holders, outlives @p. */
void root_places_init(struct root_places *p, const struct final_scan *scan);
void root_places_deinit(struct root_places *p);

/* *tid_out: the thread whose stack or memory it is; else 0. */
enum root_place root_places_find(const struct root_places *p, taddr_t addr, pid_t *tid_out);

#endif
