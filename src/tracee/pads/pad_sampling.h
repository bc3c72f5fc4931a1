/*
 * What pads need for sampling (arch/pad.h, Sampling): the table of distances, the seeds of their
 * generators and the filter; and the exact totals that they count.
 */
#ifndef PTMEM_TRACEE_PADS_PAD_SAMPLING_H
#define PTMEM_TRACEE_PADS_PAD_SAMPLING_H

#include "base/call_totals.h"
#include "tracee/pads/pad_memory.h"

struct address_space;
struct target;

/* Initializes slot @index at its first use. */
void pad_sampling_seed_slot(const struct pad_memory *m, uint32_t index);

/* The shift of the sampled call that the thread of @slot is in; the slot may hold any value. */
uint8_t pads_slot_shift(const struct address_space *s, const struct pad_slot *slot);

/* Computes what takes long, while threads run. */
void pads_prepare_sampling(struct target *t);
/* Sets up sampling for the pads to be created in @s. */
void pads_start_sampling( struct target *t, struct address_space *s);

/* As in struct pad_hooks. */
void pads_filter(struct address_space *s, taddr_t addr, bool is_sample);
void pads_set_sample_shift(struct address_space *s, uint32_t shift);
void pads_add_totals(const struct address_space *s, struct call_totals *totals);

#endif
