/*
 * The reader of the ring that pads write (arch/pad.h): decodes committed records in
 * their order and turns kept and new return addresses back into whole stacks.
 *
 * Picture: position = what was read; the published tail follows in steps of a
 * sixteenth of the ring, for each publication takes the line away from the pads. Per
 * slot a mirror holds the stack of its last record, outermost first, as the pad's own
 * frames do.
 *
 * A hole is a record that was reserved and is not committed: a thread is between the
 * two, or was interrupted there by a signal handler, or was killed or jumped away.
 *
 * A thread that stands in a hole may wait for others (a collector of garbage stops threads
 * in signal handlers; a debugger stops them), and those for room in the ring. The ring then
 * goes on around the hole: ring_jump leaves out the holes' bytes, lap after lap, until
 * they are committed. Picture, h = a hole of the lap before:
 *
 *	limit of the old room         position = published
 *	|   given up by who waits     |        room        |
 *	...........................hhh......................hhh...
 */
#ifndef PTMEM_TARGET_RING_H
#define PTMEM_TARGET_RING_H

#include "arch/arch.h"
#include "base/quick_event.h"
#include "target/heap_event.h"
#include "target/pad_memory.h"

/* One record, valid during the call that delivers it. */
struct ring_record {
	uint8_t kind;          /* enum heap_event_kind, ALLOC to REALLOC_END */
	uint8_t function;      /* enum heap_function */
	uint16_t slot;
	taddr_t addr, old_addr;
	uint64_t size, align;
	taddr_t sp;            /* in the caller; 0 without PAD_STACK_POINTER */
	bool is_inner;         /* a free inside another call */
	bool has_stack;        /* frame_count, kept, frame are set: from the incremental walk */
	uint32_t frame_count;
	uint32_t kept;         /* outer frames as in the slot's last record with has_stack */
	const taddr_t *frame;  /* outermost first, each the return address minus 1 */
	bool has_raw;          /* the rest is set: to be unwound by the reader */
	const struct arch_unwind_regs *regs;
	taddr_t start;         /* = the stack pointer in the caller */
	const uint8_t *stack;
	size_t stack_size;
};

typedef void ring_fn(void *ctx, const struct ring_record *record);

/*
 * Who gets what is read. With `quick`, plain allocations and frees go there, many at a time,
 * all others to `record`; their order is kept. `node` is then asked for the sink's number of a
 * stack that is new (record: slot, frame, frame_count, kept). is_counting: there are no stacks.
 */
struct ring_reader {
	void *ctx;
	ring_fn *record;
	void (*quick)(void *ctx, struct quick_event *event, size_t count); /* NULL = none */
	uint32_t (*node)(void *ctx, const struct ring_record *record);
	bool is_counting;
};

struct ring_stats {
	uint64_t records, raw, holes; /* holes: given up */
	uint64_t bytes;
};

/* Reserved, not committed when it was passed; one or more records. */
struct ring_gap {
	uint64_t start, end;
};

struct ring_mirror {
	taddr_t *frame;        /* outermost first */
	size_t count, capacity;
	uint32_t node;         /* of the whole stack, if it is known */
	bool has_node;
	bool is_new_to_sink;   /* copied from another ring: its reader has not seen these frames */
};

struct ring {
	struct pad_memory *memory;
	const struct arch *arch;
	uint64_t position;     /* read up to here, but for the late ones */
	uint64_t published;
	uint64_t room;         /* what control->room is */
	uint64_t jumps;
	struct ring_gap *late; /* holes that were passed by and may yet be committed */
	size_t late_count, late_capacity;
	struct ring_mirror *mirror; /* by slot */
	size_t mirror_count;
	struct ring_stats stats;
};

/* @memory is the caller's and must outlive the ring. */
void ring_init(struct ring *r, struct pad_memory *memory, const struct arch *arch);
void ring_deinit(struct ring *r);

/*
 * @r as @parent is now, with the mirror of @slot, for a copy of its memory. r->memory is to be set before it
 * is used.
 */
void ring_fork(struct ring *r, const struct ring *parent, uint32_t slot);
/*
 * What stands in the late holes of a ring, for the caller to free: their records may be half written. It
 * goes into the same holes of a copy, whose memory is new.
 */
uint8_t *ring_save_holes(const struct ring *r);
void ring_put_holes(struct ring *r, const uint8_t *saved);

/*
 * Delivers committed records up to the first hole, at most @max; returns their number.
 * Late ones are delivered first, when they have been committed.
 */
size_t ring_drain(struct ring *r, size_t max, const struct ring_reader *reader);

/* Publishes all that was read: before threads that wait for room are resumed. */
void ring_publish(struct ring *r);

/* Bytes reserved and not yet read; 0 = nothing to do. */
uint64_t ring_pending(const struct ring *r);

/*
 * Whether a hole stands at the read position: something is reserved and not committed.
 * ring_pass_hole goes on behind it, to the next committed record or the end. @is_dead:
 * it will never be committed (its thread is dead or jumped out); else it is delivered
 * late, and holds the published tail until then. Call only while no running thread can
 * be the hole's owner: it is stopped, or there is none. Passing late is harmless to the
 * order of events: a block is not known to its program before its record's commit, nor
 * reusable before its free's.
 */
bool ring_has_hole(const struct ring *r);
void ring_pass_hole(struct ring *r, bool is_dead);

/* Whether less than half of the room is reserved. */
bool ring_has_room(const struct ring *r);

/*
 * All threads stopped, all read that was committed and all holes passed late: those who
 * wait for room get some although holes hold the tail. False: there is none to give.
 */
bool ring_jump(struct ring *r);

/* Whether the range reserved at @start was left out by a jump: it must be given up, ... */
bool ring_is_left_out(const struct ring *r, uint64_t start);
/* ... and is not waited for any more. */
void ring_forget_range(struct ring *r, uint64_t start, uint64_t end);

/* After pad_memory_reset_slot or a new thread in the slot: the mirror is empty. */
void ring_reset_slot(struct ring *r, uint32_t slot);

#endif
