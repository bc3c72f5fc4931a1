/*
 * Which call paths' blocks pin nearly empty pages of the heap, while a process is profiled: counted
 * as its heaps are walked.
 */
#ifndef PTMEM_PATH_PINS_H
#define PTMEM_PATH_PINS_H

#include "inspect/pinned.h"
#include "output/inspect_report.h"

struct profile;
struct session;

struct path_pins {
	struct pinned_paths paths;         /* has a pointer to this, which may not move */
	const struct profile *profile;
	VEC(struct inspect_pin) list; /* most pages first; names are owned */
};

/* For the blocks that the profile of @s has; with samples there are none. */
void path_pins_init(struct path_pins *p, struct session *s);
void path_pins_deinit(struct path_pins *p);

/* Finds those with most pages, and their names. */
void path_pins_name(struct path_pins *p, struct session *s);

#endif
