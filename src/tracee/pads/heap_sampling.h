/*
 * --heap-sample in one address space: which blocks are samples, and the exact totals.
 *
 *	call at a breakpoint -> totals -> a mark on its bytes? -> set of samples -> sink
 *	record of a pad (which decided, and counted)           -> set of samples -> sink
 *	release              -> in the set? -> sink
 *
 * The set holds the addresses of live samples. Pads use a filter in shared memory instead
 * (arch/pad.h), which is kept in sync with the set; its false positives are dropped here. Pads get
 * a table of distances between samples, and seeds.
 */
#ifndef PTMEM_TRACEE_PADS_HEAP_SAMPLING_H
#define PTMEM_TRACEE_PADS_HEAP_SAMPLING_H

#include "base/heap_calls.h"
#include "base/types.h"

struct address_space;
struct heap_event;
struct heap_sampling;
struct pad_memory;
struct pad_slot;
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

/* Adds all calls counted in @s, by pads and at breakpoints, to @totals. */
void heap_sampling_add_totals(const struct address_space *s, struct call_totals *totals);

/* What pads need for sampling (arch/pad.h, Sampling). */

/* Computes what takes long, while threads run. */
void heap_sampling_prepare(struct target *t);
/* Sets up sampling for the pads to be created in @s. */
void heap_sampling_start_pads(struct target *t, struct address_space *s);
/* Initializes slot @index at its first use. */
void heap_sampling_seed_slot(const struct pad_memory *m, uint32_t index);
/* The shift of the sampled call that the thread of @slot is in; the slot may hold any value. */
uint8_t heap_sampling_slot_shift(const struct address_space *s, const struct pad_slot *slot);

#endif
