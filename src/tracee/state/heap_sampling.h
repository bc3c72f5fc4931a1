/*
 * --heap-sample in one address space: which blocks are samples, and the exact totals.
 *
 *	call at a breakpoint -> totals -> a mark on its bytes? -> set of samples -> sink
 *	record of a pad (which decided, and counted)           -> set of samples -> sink
 *	release              -> in the set? -> sink
 *
 * The set holds the addresses of live samples. Pads use a filter in shared memory instead
 * (arch/pad.h), which the hook keeps in sync with the set; its false positives are dropped here.
 */
#ifndef PTMEM_TRACEE_STATE_HEAP_SAMPLING_H
#define PTMEM_TRACEE_STATE_HEAP_SAMPLING_H

#include "base/heap_calls.h"
#include "base/types.h"

struct address_space;
struct heap_event;
struct heap_sampling;
struct target;

/* Enables sampling in @s, if the options of @t say so. */
void heap_sampling_start(const struct target *t, struct address_space *s);
/* @child, a fork of @parent, whose records have been read, inherits its live samples and totals. */
void heap_sampling_fork(const struct target *t, const struct address_space *parent,
			struct address_space *child);
void heap_sampling_free(struct heap_sampling *h);

/*
 * From now on the mean distance of marks is 1 << @shift times the smallest, in all address spaces;
 * a thread's pads use that from its next mark on.
 */
void heap_sampling_set_shift(struct target *t, uint32_t shift);

/*
 * Whether to pass @ev to the sink; may change @ev. ev->is_chosen: a pad recorded it. Without
 * sampling all events are passed.
 */
bool heap_sampling_see(struct target *t, struct address_space *s, struct heap_event *ev);

/* Adds the counts from breakpoints to @totals. */
void heap_sampling_add_totals(const struct heap_sampling *h, struct call_totals *totals);
/* Calls @fn for each live sample. */
void heap_sampling_each(const struct heap_sampling *h, void (*fn)(void *ctx, taddr_t addr),
			void *ctx);

#endif
