/*
 * Tier 2 in one address space: promotion of hot probes from breakpoints to pads, the
 * slots of its threads, and what its ring delivers. Contract with the code in the
 * target: arch/pad.h.
 *
 * Order of events. A record is reserved in the ring before a block can become known
 * or reusable, so the ring's order is right among records. An event that ptmem makes
 * itself, at a stop, comes after all records committed by then: pads_catch_up first.
 */
#ifndef PTMEM_TARGET_PADS_H
#define PTMEM_TARGET_PADS_H

#include "target/pad_memory.h"
#include "target/ring.h"
#include "target/thread.h"

/* Operator delete was entered through a breakpoint just before promotion: its own free is no event. */
struct pads_deleted {
	uint32_t slot;
	taddr_t block;
};

struct pads {
	struct pad_memory memory;
	struct ring ring;
	taddr_t blob;             /* the recorder in the target */
	uint32_t blob_size;
	VEC(struct pad) list;
	VEC(uint32_t) trap;       /* by pad: index of the entry's trap in space.traps */
	VEC(pid_t) owner;         /* by slot: the thread that has it; 0 = free */
	VEC(struct pads_deleted) deleted; /* until the thread's next record */
	bool cannot_grow;         /* no slots beyond those that there are */
	uint32_t listened;        /* 1 + the slot of pads_catch_up_on; 0 = none */
	bool was_heard;           /* a record of that slot was delivered */
	uint64_t stall_mark, stall_since_ns; /* what the ring was like when threads waited, and since when */
};

/* Whether probes of @s may be promoted at all; if not, why (static text). */
bool pads_are_possible(const struct target *t, const struct space *s, const char **why_out);

/*
 * Promotes every watched function of @s whose entry is still a breakpoint; all its
 * threads are stopped and @th is one of them. Also for functions that came later.
 */
int pads_promote(struct target *t, struct space *s, struct thread *th);

/* From now on several threads, or a forked copy of one that stands in a pad, may write to the ring
 * of @s: before the clone or fork that makes them goes on. */
void pads_share(struct space *s);

/* The stack that @th runs on: as its clone said, else by the map that holds @sp. 0 or -errno. */
int pads_stack_bounds(struct thread *th, taddr_t sp, taddr_t *low_out, taddr_t *high_out);

/* A new thread of @s, stopped before its first instruction (or at promotion): gives it a slot. */
void pads_add_thread(struct target *t, struct thread *th);
void pads_thread_exit(struct target *t, struct thread *th);

/* Reads the ring as far as it goes without waiting, or until PADS_DRAIN_BATCH records were read:
 * who reads more in a row does not see that a thread waits. Returns the number of records. */
#define PADS_DRAIN_BATCH 2048u
size_t pads_drain_some(struct target *t, struct space *s);
size_t pads_drain(struct target *t, struct space *s);
/* Reads all that was committed by now, also behind holes. */
void pads_catch_up(struct target *t, struct space *s);
/* The same, and whether a record of @th was among them. */
bool pads_catch_up_on(struct target *t, const struct thread *th);
/* The last look: the threads are gone, holes are dead. */
void pads_finish(struct target *t, struct space *s);

/* Serves a trap of a pad. The thread may go on. False: it must wait for room in the ring. */
bool pads_serve(struct target *t, struct thread *th, struct trap *trap, struct arch_regs *regs);
/* Lets threads go on that wait for room, if there is some now. */
void pads_wake_waiters(struct target *t, struct space *s);
/* Threads wait. If nothing has moved for a while, the ring goes on around its holes; @s may be gone after. */
void pads_unblock(struct target *t, struct space *s);

/* Whether @th, which enters a watched function at its breakpoint, is inside a call that a pad entered. */
bool pads_is_nested(struct target *t, struct thread *th, const struct arch_regs *regs);

/* An exception starts to unwind a stack that may hold a pad's return; one was caught. */
void pads_throw(struct thread *th);
void pads_catch(struct target *t, struct thread *th, const struct arch_regs *regs);

/*
 * @child was just forked from @parent by @th, which stands at the fork (NULL: it is dead). It gets breakpoints
 * for its parent's pads; where @th stands in a pad, or in what one called (its signal handler forks), a copy
 * of the pads instead, which pads_born makes.
 */
void pads_fork(struct target *t, struct space *parent, struct space *child, struct thread *th);
/* @th stands before its first instruction: a new thread, or the one of a fork. */
void pads_born(struct target *t, struct thread *th);
/* What pads_fork noted for @s. */
void pads_drop_heritage(struct space *s);

/* The slot of @th, or NULL. */
struct pad_slot *pads_slot(const struct thread *th);

/* Sets threads free of pads and turns recording off; all are stopped. Text is restored by
 * install_remove. */
void pads_disarm(struct target *t, struct space *s);
/* Lets threads in pads run to the exits of those; text is restored. Some may have to be stepped still. */
void pads_run_out(struct target *t, struct space *s);
/* Threads inside originals shall return to their callers, not into pads. */
void pads_release_threads(struct target *t, struct space *s);
/* Frees ptmem's side. */
void pads_free(struct target *t, struct space *s);

#endif
