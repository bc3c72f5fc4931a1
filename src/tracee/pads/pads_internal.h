/*
 * Pads (trampolines) in one address space: what the files of this directory share.
 */
#ifndef PTMEM_TRACEE_PADS_PADS_INTERNAL_H
#define PTMEM_TRACEE_PADS_PADS_INTERNAL_H

#include "tracee/calls/stack_scan.h"
#include "tracee/pads/pad_memory.h"
#include "tracee/pads/pad_owner.h"
#include "tracee/pads/ring.h"
#include "tracee/state/space.h"
#include "tracee/state/target_internal.h"

/*
 * Operator delete was entered through a breakpoint just before promotion: its own free is not an
 * event.
 */
struct pads_deleted {
	uint32_t slot;
	taddr_t block;
};

/* Shared by all address spaces of a target. */
struct pad_globals {
	struct pad_owner owner;   /* tells pads that ptmem died */
	struct module *own_module; /* of own_code.c; NULL = none yet */
	uint64_t *distances;       /* of pad_sampling.c; NULL = not computed yet */
	bool is_losing;            /* pads_set_losing */
};

struct pads {
	struct pad_memory memory;
	struct ring ring;
	taddr_t recorder;         /* the recorder in the target */
	uint32_t recorder_size;
	VEC(struct pad) list;
	VEC(uint32_t) trap;       /* indexed by pad: index of the entry's trap in space.traps */
	VEC(pid_t) owner;         /* indexed by slot: the slot's thread; 0 = free */
	VEC(struct pads_deleted) deleted; /* valid until the thread's next record */
	struct stack_words stack_words; /* while probes are promoted */
	bool cannot_grow;         /* the number of slots cannot grow any more */
	uint32_t watched;         /* 1 + the slot given to pads_catch_up_on; 0 = none */
	bool saw_record;          /* a record of that slot was delivered */
	bool is_reported;         /* whether corrupt memory was reported */
};

/* Whether pads that are made now lose records when their ring is full. */
static inline bool pads_lose(const struct target *t)
{
	return t->pads->is_losing || !t->options.probes.max_wait_ns;
}

/* Tells the pads of @p, whose flags may be older. */
void pads_follow_losing(const struct target *t, struct pads *p);

/* Frees @p, whose memory was unmapped or never mapped. */
void pads_delete(struct pads *p);
/* The trap at the entry whose pad's calls return to @after; NULL: none. */
const struct trap *pads_find_entry(const struct pads *p, const struct address_space *s,
				   taddr_t after);
/*
 * Makes a pad call, whose return address @after is stored at @at, return to its function's stub
 * instead: the frames are the same.
 */
void pads_exchange_return(const struct pads *p, struct address_space *s, taddr_t at, taddr_t after);

#endif
