/* Code addresses on the stacks of stopped threads. */
#ifndef PTMEM_TRACEE_INJECT_STACK_SCAN_H
#define PTMEM_TRACEE_INJECT_STACK_SCAN_H

#include "base/alloc.h"
#include "base/types.h"

struct address_space;
struct target;
struct thread;

/*
 * The stack at @sp that @th runs on: its map, up to the control block at @thread_pointer if the map
 * contains that. 0 or -errno.
 */
int stack_scan_bounds(struct thread *th, uint64_t thread_pointer, taddr_t sp, taddr_t *low_out,
		      taddr_t *high_out);

struct stack_words {
	VEC(uint64_t) list;
};
/*
 * Adds to @out the addresses on the stacks of the threads of @s that point just after a watched
 * entry.
 */
void stack_scan_collect(struct target *t, struct address_space *s, struct stack_words *out);
/* For each area of @s, whether a thread may still run in it. The caller frees the array. */
bool *stack_scan_used_areas(struct target *t, struct address_space *s);
/*
 * Whether a thread may still run in injected code that another process left; @used_out: for each of
 * JOURNAL_INJECTIONS.
 */
bool stack_scan_used_injections(struct target *t, struct address_space *s, bool *used_out);
/* Whether an area of pads is among @used. */
bool stack_scan_uses_pads(const struct address_space *s, const bool *used);
/* Whether @th is in a pad, or in a signal handler that interrupted one. */
bool stack_scan_is_in_pads(struct target *t, struct thread *th);

#endif
