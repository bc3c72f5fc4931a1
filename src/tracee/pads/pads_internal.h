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

/*
 * Operator delete was entered through a breakpoint just before promotion: its own free is no event.
 */
struct pads_deleted {
	uint32_t slot;
	taddr_t block;
};

/* Of all address spaces of a target. */
struct pad_globals {
	struct pad_owner owner;   /* by which the kernel lets pads know that ptmem died */
	struct module *own_module; /* of own_code.c; NULL = none yet */
};

struct pads {
	struct pad_memory memory;
	struct ring ring;
	taddr_t recorder;         /* the recorder in the target */
	uint32_t recorder_size;
	VEC(struct pad) list;
	VEC(uint32_t) trap;       /* by pad: index of the entry's trap in space.traps */
	VEC(pid_t) owner;         /* by slot: the thread that has it; 0 = free */
	VEC(struct pads_deleted) deleted; /* until the thread's next record */
	struct stack_words stack_words; /* while probes are promoted */
	bool cannot_grow;         /* no slots beyond those that there are */
	uint32_t watched;         /* 1 + the slot of pads_catch_up_on; 0 = none */
	bool saw_record;          /* a record of that slot was delivered */
	bool is_reported;         /* that the memory is corrupt */
	uint64_t stall_mark;      /* what the ring was like when threads waited */
	/* how many had been read at the last jump, and when that was */
	uint64_t jump_records, jump_ns;
};

/* Frees @p, whose memory is gone, or never was there. */
void pads_delete(struct pads *p);
/* The entry whose pad's calls return to @after; NULL: none. */
const struct trap *pads_find_entry(const struct pads *p, const struct address_space *s,
				   taddr_t after);
/*
 * The call of a pad, whose return address @after is at @at, is to return to its function's stub
 * instead: the frames are the same.
 */
void pads_exchange_return(const struct pads *p, struct address_space *s, taddr_t at, taddr_t after);

#endif
