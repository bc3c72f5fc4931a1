/*
 * Pads (trampolines) in one address space: what the files of this directory and calls/promote.c
 * share.
 */
#ifndef PTMEM_TRACEE_PADS_PAD_STATE_H
#define PTMEM_TRACEE_PADS_PAD_STATE_H

#include "arch/pad.h"
#include "base/types.h"
#include "tracee/inject/stack_scan.h"
#include "tracee/pads/pad_memory.h"
#include "tracee/pads/ring.h"
#include "tracee/state/space.h"
#include "tracee/state/target_state.h"

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
	struct pad_clock *clock;  /* for pads that cannot read the CPU's counter */
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

/* If the pads of @p cannot read the CPU's counter (@needs_it), they get a clock. */
void pads_follow_clock(struct target *t, struct pads *p, bool needs_it);

/* Tells the pads of @p, whose flags may be older. */
void pads_follow_losing(const struct target *t, struct pads *p);

/* Frees @p, whose memory was unmapped or never mapped. */
void pads_delete(struct pads *p);
/* The trap at the entry whose pad's calls return to @after; NULL: none. */
const struct trap *pads_find_entry(const struct pads *p, const struct address_space *s,
				   taddr_t after);
/*
 * Makes the pad call of @th, whose return address @after is stored at @at, return to its function's
 * stub instead: the frames are the same.
 */
void pads_exchange_return(struct target *t, struct thread *th, const struct pads *p, taddr_t at,
			  taddr_t after);

/* A thread of the target opens and maps the files of the shared memory. */

/* Creates the memory of @p, whose space is @s; @th is stopped and makes the calls. 0 or -errno. */
int pads_open_memory(struct target *t, struct address_space *s, struct thread *th, struct pads *p);
/* Adds slots; returns whether more can be added later. @th is stopped and makes the calls. */
bool pads_grow(struct target *t, struct thread *th);

/*
 * An empty memfd that is open in both processes, here as *own_out. Returns its number in the
 * target.
 */
int pads_open_file(struct target *t, struct thread *th, int *own_out);
void pads_close_file(struct target *t, struct thread *th, int fd);
/*
 * Maps @m, whose file the target has open as @fd, over the mapping at @at. 0 or -errno: then
 * something may be mapped there already.
 */
int pads_map_over(struct target *t, struct thread *th, int fd, const struct pad_memory *m,
		  taddr_t at);
/* Calls mmap with @args in the target. Returns the address or -errno. */
int64_t pads_mmap(struct target *t, struct thread *th, const uint64_t args[6]);

/* Handles the traps of pads and of the recorder (see arch/pad.h). */

trap_fn pads_serve_entry, pads_serve_leave, pads_serve_full;

/* The word in the return slot of the original during the call of @slot, which belongs to @th. */
taddr_t pads_return_to(const struct thread *th, const struct pad_slot *slot);

#endif
