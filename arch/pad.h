/*
 * Pads, and the memory that they share with ptmem. CPU-neutral contract between src/tracee (writes
 * pads, reads records) and the recorder that runs in the target (arch/recorder).
 *
 * Trust. The target can write anything into the shared memory at any time, by a bug or to attack
 * ptmem, which may run as root. The recorder trusts what ptmem wrote there: if the target
 * overwrites it, the target crashes, as after overwriting any other code's data. ptmem trusts
 * nothing there:
 *	- What it needs to know again (flags, sizes, positions, directory, rules, places of slots)
 *	  is in private memory. The shared copy is written and never read back, except that
 *	  the control block is compared now and then: only pads read it, and a wrong one makes them
 *	  record too little or too much.
 *	- Each word of a record, each `head`, and `next_number` is loaded once into private memory
 *	  and then compared with what pads can have written: no head beyond its limit, numbers in
 *	  ascending order, a size equal to that of the parts, no more kept frames than the
 *	  thread's last stack had. Loops are bounded by private numbers.
 *	- Of a slot ptmem reads return_at, return_to, reason, kind, arg and result. They are values
 *	  of events, or addresses of target memory to be read and written; never indexes or sizes.
 *	- None of it may trigger a CHECK. Anything that no pad writes breaks the ring (ring_break):
 *	  ptmem reports it, ends the profile of that process, writes what was recorded so far and
 *	  detaches.
 *	- The files are sealed against changes of size: a load beyond their end would raise SIGBUS.
 * Registers at the traps of pads are the target's, too: it may jump to any of them.
 *
 * Picture. A probed function's entry becomes a jump to its pad:
 *
 *	entry: jmp pad      pad:   is this the outermost call on the thread?  no -> moved
 *	                           slot.return_at = return slot (where the caller's return address
 *	                           is) - PAD_RETURN_BELOW
 *	                           push a callee-saved register
 *	                           call moved           so the original runs as if called by the pad
 *	                    after: drop the register
 *	                           write the record; return_at = 0; return
 *
 * During the call the stack holds, downwards: the caller's return address, a callee-saved register
 * (for the ABI's alignment), `after`, which is *slot.return_at. That is also the frame of a stub
 * (arch.h). Therefore
 *	- the stack alone identifies the caller, also in the kernel's copy of it at a page fault;
 *	- a pad whose slot was released, or whose memory is gone, still returns to its caller;
 *	- a thread inside the original leaves its pad if *slot.return_at is replaced by the return
 *	  address into the function's stub (detach), or by one whose CFI describes such a frame (a
 *	  C++ exception about to be thrown, PAD_THROW_CHECK; the register is the one that this CFI
 *	  restores). Do so only if *slot.return_at == slot.return_to. From the creation of the
 *	  exception to its catch slot.return_to is 0: calls inside count separately, and trap.
 *	- calls and returns stay paired (shadow stacks). Arguments on the stack would be misplaced;
 *	  no probed function has any.
 * A free inside another call is recorded, too, unless that is a PAD_DELETE that is not open: a
 * new-handler may free memory it had reserved. Freeing a block that is not live is not an event. A
 * leaf free (PAD_FREE)
 * is recorded and then jumped to; its return_at, the return slot itself, is set for the record
 * only.
 *
 * A marker's pad (PAD_REQUEST and below) calls nothing: it writes its record and continues after
 * the marker. Frame 0 is the marker's own function; its return slot in the records is the unused
 * word below its stack pointer. At the entry's trap, resume after the trap to try again, or after
 * the marker once ptmem has handled the request.
 *
 * PAD_LABELLED notes, at the entry of a function, the values of its labels (pad_label.h), the stack
 * pointer and the return address, unless the thread is in a call of it already. Records say whether
 * that call is still open: the return address is in its place. What is left of a call that has
 * returned, or was left by longjmp, can look like that; then the record's stack does not have the
 * address, which ptmem compares (session/labels.c). For that, the call that returns there must be a
 * direct one of this function (control.call_site): others trap, and ptmem follows them with a
 * breakpoint at the return address.
 *
 * slot.return_at stays set until the record is written, so it means "the slot is in use, and its
 * ring". A pad
 * entered with return_at set
 *	- lets the call through unrecorded (nested) when a walk by published rules leads
 *	  from it exactly to slot.return_at, and *slot.return_at == slot.return_to;
 *	- treats a return_at below its own stack pointer as stale (longjmp), unless dirty; if it was
 *	  a fiber's, that call is not recorded;
 *	- traps in all other cases: signal handlers, other stacks, missing rules.
 * ptmem may set both itself for a call that it sends through a stub: return_at = the address where
 * the return address into the stub is, return_to = that return address.
 *
 * Traps. All pcs below are addresses of the trap instruction; once the cause was handled,
 * continuing after it is always correct, and harmless if ptmem died meanwhile.
 *	pad.entry_trap  registers and stack as at the function's entry. slot.reason (if the
 *	                thread has a slot) says why; ptmem sets it back to PAD_REASON_NONE. Resume
 *	                after the trap: the pad tries again. Resume at pad.straight: the call goes
 *	                unrecorded. Resume at the function's stub: ptmem records it from outside.
 *	pad.leave_trap  the original has returned; the record would be too large for the ring. The
 *	                program's callee-saved registers are in place, the result is in
 *	                slot.result; the return slot is slot.return_at + PAD_RETURN_BELOW;
 *	                arguments in slot.arg. ptmem drains the rings, makes the event itself and
 *	                resumes after the trap; the pad then returns to the caller.
 *	image.full_trap a ring is full. Drain, publish the limit, resume after the trap. The first
 *	                two arguments are the slot and the head that needs room; the result is
 *	                an enum pad_full_answer. Without an answer the call goes unrecorded.
 * A signal handler may allocate while it interrupts a pad. To unwind through pads and the recorder
 * take them as modules of image.elf (bias: the recorder's address, pad.bias). Whether a call is in
 * such a handler: unwind_in_signal(view, pad_call_end(slot)), since around the call of the original
 * the stack pointer is at the return slot. A thread's pc is "inside a pad" in [pad.at, pad.at +
 * pad.size) and in the recorder.
 *
 * Leaving. A thread whose pc is in the recorder, or in [pad.at, pad.tail), passes through an exit
 * of a pad before it is outside: a breakpoint at each exit stops it there. It continues at exit.to,
 * in the pad's tail, where another such instruction leads outside. (So nothing is executed twice,
 * and ptmem may die at any moment.) In the tail a few instructions may have to be stepped. The
 * entries must have been restored before.
 *
 * How to handle PAD_REASON_IN_CALL: in a signal handler (above), resume at the function's stub and
 * leave the slot alone. Else if *return_at != return_to, the recorded call is stale: reset the slot
 * and the reader's mirror (as for PAD_REASON_STALE) and resume after the trap. Else request the
 * rules of the stack up to return_at from the unwinder; if none was missing, the call is nested in
 * a way that rules cannot show: resume at pad.straight, else after the trap.
 *
 * Rings. Each slot has one, which its thread alone writes: the holder of return_at. It writes a
 * record at the head, and then moves the head behind it. So what is below the head is whole, and a
 * record that a thread does not finish (it was killed, or left by longjmp) is not there at all.
 *
 * The order between threads is that of numbers, which all take from control.next_number: of an
 * allocation after it returned, of a free before it begins. Of a number whose record was not
 * finished nothing else is seen. A reader that loads next_number and then all heads has every
 * record on which any of those below that number can depend. One that it does not see yet was
 * still being written: all that depends on it has a higher number, so it may come later.
 *
 * Records are multiples of 16 bytes. Positions count bytes and never wrap. A record that would
 * cross the end of the ring is preceded by a PAD_RECORD_FILL, which takes the rest, and has no
 * number.
 *
 * Times. Records have none: to read the counter takes as long as all the rest. Stamps between them
 * (PAD_RECORD_TIME) date them. A thread writes one before a record
 *	- after it waited for room, or when the reader found nothing new in its ring, and asked;
 *	- else after `step` bytes, which it adapts: stamps shall come faster than gap_ticks.
 * If more than gap_ticks passed between two the thread paused, and which records between them came
 * later is unknown, unless it waited for room, or the reader saw the pause begin (seen_ticks). They
 * must be few: 1 of 128 bytes. What is left of that share is spare; a step takes a quarter of it at
 * most, so that regular pauses find steps of about the same length.
 *
 * With PAD_NO_TICKS the time is control.clock, which ptmem renews every PAD_CLOCK_NS. A stamp
 * (PAD_RECORD_CLOCK) is before each record for which that word has changed.
 */
#ifndef PTMEM_ARCH_PAD_H
#define PTMEM_ARCH_PAD_H

#include <stddef.h>
#include <stdint.h>

#include "arch/pad_label.h"
#include "arch/pad_sampling.h"
#include "arch/pad_virtual.h"
#include "arch/unwind_rule.h"

/*
 * Full rings. A thread that finds no room traps (image.full_trap) and waits for ptmem. With
 * PAD_LOSES it does not: the record is lost, and counted here. A lost record takes no number, and
 * does not change the frames of which later records keep some.
 *
 * A thread that is in a trap when ptmem dies gets its SIGTRAP. If no handler of ptmem's takes that
 * (guard/sigtrap_handler.h), the program dies, so with PAD_SPINS threads look for room in a loop
 * first: a reader that runs makes it within a millisecond or so, and the kernel marks one that dies
 * in the control block at once.
 *
 * In an exact profile a block may then be released that the reader never saw, or be given out
 * while another one seems to live there; the reader sees both of other programs, too. A realloc
 * whose beginning is lost ends as an allocation.
 *
 * A release that is lost leaves a block in the profile that is no more, so with PAD_SAMPLING half
 * of a ring is for releases: a sample that would take it is lost before anything is done for it,
 * and so is the release of a block that may not be a sample (INNER_FREE, REALLOC_MAYBE), of which
 * there can be any number as long as ptmem reads none. A sample whose release is lost stays in the
 * filter as such a block: the release of the next one at its address counts as its own.
 */

/* Records that a ring had no room for. Bytes of samples are weighted. */
struct pad_lost {
	uint64_t allocations, bytes, releases;
	uint64_t has_unsure; /* also of blocks that may not be in the profile; not counted */
};

#define PAD_MAX_FRAMES 16384          /* deeper stacks are sent raw */
#define PAD_SLOT_FRAMES 4096          /* the same for threads without a deep cache */
#define PAD_DEEP_CACHES 16
#define PAD_FRAME_CHECKS 3            /* maximum per frame */
#define PAD_NO_ARG 0xff
#define PAD_RETURN_BELOW 16u /* distance of return_at of a pad call below its return slot */
#define PAD_LINES __attribute__((aligned(128))) /* two cache lines: they are fetched in pairs */

enum pad_kind {
	PAD_ALLOC = 1,    /* returns a block of arg[size] (times arg[count]) bytes */
	PAD_REALLOC,      /* the same, and takes arg[old] */
	PAD_FREE,         /* leaf: recorded, then jumped to; must not call a probed function */
	PAD_DELETE,       /* recorded, then called with return_at set: may call probed functions */
	PAD_THROW_CHECK,  /* only traps, if return_at is set: functions that unwind the stack */
	PAD_LABELLED,     /* of --label: notes what its arguments say, and jumps to the original */
	PAD_REQUEST,      /* a client request of valgrind.h; traps if a record cannot express it */
	/* a marker with which the program announces an allocation: arguments 0 and 1 */
	PAD_MARKED_ALLOC,
	PAD_MARKED_FREE,  /* a free: argument 0 */
};

/* A probed function, for its pad. Arguments 0 to 2, or PAD_NO_ARG. */
struct pad_probe {
	uint8_t kind;      /* enum pad_kind */
	uint8_t function;  /* enum heap_function, below 16 */
	uint8_t size_arg;
	uint8_t count_arg; /* calloc, reallocarray: multiply the size by it */
	uint8_t align_arg; /* the requested alignment; else fixed_align */
	union {
		uint8_t block_arg; /* the block given to free, delete, realloc */
		/* of a marker: enum heap_function that its releases count as */
		uint8_t release_function;
	};
	/* posix_memalign: the address where the result is stored; returns 0 on success */
	uint8_t out_arg;
	uint8_t is_leaf : 1; /* sampling: it calls no probed function */
	/* PAD_DELETE: frees inside are recorded, too; of an allocator of the program's own */
	uint8_t is_open : 1;
	uint8_t is_string : 1; /* the result is one, which gives arg[size_arg] of the slot */
	uint64_t fixed_align; /* 0 = none; PAD_LABELLED: the function's address */
};

/* Why a pad trapped at its entry. NONE if the thread has no slot. */
enum pad_reason {
	PAD_REASON_NONE,
	PAD_REASON_BOUNDS, /* the stack pointer is not in [stack_low, stack_high) */
	PAD_REASON_IN_CALL,  /* return_at is set, and the call is not provably nested */
	/* return_at is set, but the stack does not lead to it: left by longjmp */
	PAD_REASON_STALE,
	PAD_REASON_THROW,  /* PAD_THROW_CHECK with return_at set */
	PAD_REASON_LARGE,  /* leave_trap, or a marker's entry_trap: the record would be too large */
	PAD_REASON_DEEP,   /* likewise: the thread needs a deep cache */
	PAD_REASON_MARKER, /* a request that ptmem has to answer */
	/* leave_trap: ptmem must read the interpreter's frames */
	PAD_REASON_VIRTUAL,
	/*
	 * like LARGE: a rule is missing for a frame beyond a switch of stacks, which a raw record
	 * would not have
	 */
	PAD_REASON_SWITCH,
	/* PAD_LABELLED: ptmem has to look at the caller, or follows the calls itself */
	PAD_REASON_CALL,
};

#define PAD_OWNER_DIED 0x40000000u     /* FUTEX_OWNER_DIED: set by the kernel when ptmem dies */

/* ptmem's answer to image.full_trap; GONE, the initial value: no record is written. */
enum pad_full_answer { PAD_FULL_GONE, PAD_FULL_RETRY };

enum pad_flag {
	PAD_COUNT_ONLY = 1, /* without stacks */
	PAD_VERIFY = 2,     /* every stack both incrementally and raw */
	PAD_ANSWER_RUNNING = 8, /* requests that trap, besides the rare ones: RUNNING_ON_VALGRIND */
	PAD_ANSWER_POOLS = 16, /* requests of memory pools */
	PAD_ANSWER_BLOCKS = 32, /* requests of plain blocks */
	/* each record ends with PAD_TAIL more bytes, the first 8 are the caller's stack pointer */
	PAD_STACK_POINTER = 4,
	PAD_SAMPLING = 64, /* only sampled blocks and their releases: pad_sampling.h */
	PAD_NO_TICKS = 128, /* the CPU's counter is not to be read, but `clock` */
	PAD_LOSES = 256,    /* a full ring loses records: no thread waits for room */
	/* stacks continue on others (RULE_SWITCH): trap instead of writing raw records */
	PAD_SWITCHES = 512,
	PAD_VIRTUAL = 1024,  /* control.virtual is to be followed */
	PAD_HAS_LABELS = 4096, /* control.label is to be read with each allocation */
	PAD_SPINS = 2048,   /* no thread traps for room before it has looked for it many times */
};

/*
 * The control block: the first page of the shared memory. Addresses are the target's. After it,
 * at fixed offsets: struct pad_directory[1 << PAD_DIRECTORY_BITS], the filter, the distances,
 * struct pad_ring[PAD_MAX_SLOTS].
 */
#define PAD_DIRECTORY_OFFSET 4096
#define PAD_DIRECTORY_BITS 15
#define PAD_MAX_SLOTS (1u << (PAD_DIRECTORY_BITS - 2)) /* so that it stays nearly empty */
#define PAD_MAX_CHUNKS 8
#define PAD_SITE_BITS 7
#define PAD_SITE_TRIES 8u
#define PAD_FILTER_OFFSET (PAD_DIRECTORY_OFFSET + (16u << PAD_DIRECTORY_BITS))
#define PAD_DISTANCES_OFFSET (PAD_FILTER_OFFSET + sizeof(struct pad_filter))
#define PAD_RINGS_OFFSET (PAD_DISTANCES_OFFSET + PAD_DISTANCES_SIZE)
#define PAD_BEHIND_RINGS (PAD_RINGS_OFFSET + PAD_MAX_SLOTS * 128u)

struct pad_control {
	/* Read by each pad, rarely written. Pads only run the originals if off is not 0 or owner
	 * has PAD_OWNER_DIED. Both are read at once. */
	uint32_t owner;      /* the reader's robust futex */
	uint32_t off;
	uint32_t flags;      /* enum pad_flag */
	/*
	 * Several threads may be in pads at a time: number with a locked instruction. ptmem clears
	 * it while a process has one thread, and sets it again when that is stopped at the clone of
	 * a second one. A signal handler needs no lock.
	 */
	uint32_t shared;
	uint64_t rules;      /* struct unwind_rule[1 << rule_bits] */
	uint32_t rule_bits;
	uint64_t record_max; /* largest record, in rings that are at least twice as large */
	/* the longest time between stamps of a busy thread, in ticks; 0: each record has one */
	uint64_t gap_ticks;
	/* sampling: mean distance, and the shift of those drawn; at most PAD_SHIFT_MAX */
	uint64_t sample_interval, sample_shift;
	struct {
		uint64_t slots; /* struct pad_slot[]: a contiguous array */
		uint64_t used;  /* index of the first one that was ever used */
	} chunk[PAD_MAX_CHUNKS];
	uint64_t virtual;    /* struct pad_virtual */
	/*
	 * Readable code that has frame pointers, as far as is known, and no CFI; size 0 = none. A
	 * frame without a rule there is left by its frame pointer if its function evidently begins
	 * with setting that up, and marked (PAD_GUESSED): ptmem looks at the code then.
	 */
	uint64_t framed, framed_size;
	PAD_LINES uint64_t next_number; /* of a record, from 1 on; pads add to it */
	PAD_LINES uint64_t clock; /* with PAD_NO_TICKS: CLOCK_MONOTONIC a moment ago; 0: unknown */
	PAD_LINES struct pad_label label[PAD_LABELS]; /* with PAD_HAS_LABELS */
	uint64_t label_epoch; /* another one each time that these were changed */
	/*
	 * Where calls of PAD_LABELLED may return to without a trap: behind direct calls of just
	 * that function. Open addressing, at most PAD_SITE_TRIES apart; 0 = free.
	 */
	uint64_t call_site[1 << PAD_SITE_BITS];
	uint32_t traps_calls; /* all calls of PAD_LABELLED trap */
};

/* The ring of the slot with the same index. */
struct pad_ring {
	PAD_LINES uint64_t head; /* end of what is written: of the slot's thread */
	/* where the head must not pass without a look at the limit and the clock: at most `limit`.
	 * The thread sets it; the reader sets it to 0 to ask for a stamp. */
	uint64_t soft_limit;
	uint64_t at;         /* address of the bytes */
	uint64_t mask;       /* their number, a power of two, - 1 */
	uint64_t limit;      /* of the head; the reader publishes it in steps */
	uint64_t seen_ticks; /* with that question: by then the head was where it is */
	/* of the thread alone (Times): the last stamp and its end, the distance to the next */
	uint64_t ticks, stamp_end, step, spare;
	struct pad_lost lost;
};
_Static_assert(sizeof(struct pad_ring) == 128, "as in PAD_BEHIND_RINGS");

/* The index of control.call_site that is the number @try, from 0, to look at for @pc. */
static inline uint64_t pad_site_index(uint64_t pc, uint32_t try)
{
	return ((pc * 0x9e3779b97f4a7c15ull >> (64 - PAD_SITE_BITS)) + try) %
	       (1u << PAD_SITE_BITS);
}

/* Whether @site, as control.call_site, has @pc. */
static inline int pad_has_call_site(const uint64_t *site, uint64_t pc)
{
	for (uint32_t i = 0; i < PAD_SITE_TRIES; i++)
		if (__atomic_load_n(&site[pad_site_index(pc, i)], __ATOMIC_RELAXED) == pc)
			return 1;
	return 0;
}

/* First directory index to probe for a thread. */
static inline uint64_t pad_directory_hash(uint64_t thread_pointer)
{
	return thread_pointer * 0x9e3779b97f4a7c15ull >> (64 - PAD_DIRECTORY_BITS);
}

/* The slots of threads: open addressing by thread pointer. 0 = empty, 1 = removed. */
struct pad_directory {
	uint64_t thread_pointer;
	uint64_t slot;       /* address in the target */
};

/* A word of the stack that must be unchanged for the frames beside and below it to be unchanged. */
struct pad_check {
	uint64_t at, value;
};

/* A frame of the last recorded stack, 0 = outermost; its return slot is check[check]. */
struct pad_frame {
	uint64_t fp;         /* the frame pointer in it */
	uint32_t check;
	uint32_t needs_fp;   /* the way to the caller depends on fp */
};

#define PAD_STEP_GUESSED 2

/* A frame during a walk, innermost first: scratch. */
struct pad_step {
	uint64_t at, pc, fp; /* its return slot, the address in there, its frame pointer */
	uint64_t fp_at;      /* where it saved its caller's frame pointer; 0 = nowhere */
	uint64_t extra_at, extra_value; /* another word on which the way to the caller depends */
	uint32_t uses_fp;    /* its CFA is relative to fp; PAD_STEP_GUESSED: perhaps */
	uint32_t unused;
#ifndef RULE_RETURN_SLOT
	uint64_t word_at;    /* where the return address is, which is not at the frame's place */
#endif
};

/*
 * The frames of a thread's last recorded stack. The arrays start at different page offsets;
 * otherwise loads of checks would wait for stores to frames.
 */
#define PAD_CACHE_MEMBERS(frames)                                       \
	PAD_LINES struct pad_check check[PAD_FRAME_CHECKS * (frames)];  \
	PAD_LINES char gap1[1024];                                      \
	struct pad_frame frame[frames];                                 \
	char gap2[1024];                                                \
	struct pad_step step[frames]

struct pad_cache {
	PAD_CACHE_MEMBERS(PAD_SLOT_FRAMES);
};

/* The list of an interpreter's functions, and one that is walked. */
#define PAD_LIST_MEMBERS(frames)                                                        \
	/* outermost first, from number 1 on; `at` of number 0 is that outside of it: 0 */ \
	PAD_LINES struct pad_virtual_frame list[(frames) + 1];                          \
	PAD_LINES struct pad_virtual_frame walk[frames] /* innermost first */

struct pad_list {
	PAD_LIST_MEMBERS(PAD_LISTED);
};

/*
 * For a thread that recurses deeper than its slot has room for; ptmem assigns it at a
 * PAD_REASON_DEEP.
 */
struct pad_deep_cache {
	PAD_CACHE_MEMBERS(PAD_MAX_FRAMES);
	PAD_LIST_MEMBERS(PAD_MAX_LISTED);
};

/*
 * A thread. ptmem writes to it while that thread is stopped, or not in the directory. A change of
 * the stack's bounds resets frame_count to 0, since its words may be unmapped.
 */
struct pad_slot {
	/* two cache lines: everything that the short ways need (arch/CPU/short_template.h) */
	uint64_t thread_pointer;
	uint64_t stack_low, stack_high; /* the current stack; high: all frames are below it */
	/* address of the return address of the call in progress; 0 = none */
	uint64_t return_at;
	uint64_t return_to;  /* that address; 0: calls inside must trap */
	uint64_t ring;       /* struct pad_ring */
	uint64_t arg[3];
	uint64_t check;      /* address of the array: in @cache, or of a deep cache */
	uint64_t fp;         /* as in frame[frame_count - 1] */
	/* enum pad_kind of the call that set return_at; ptmem sets both */
	uint32_t kind;
	uint32_t check_count; /* of the whole stack: frame[frame_count - 1].check + 1, or 0 */
	uint32_t needs_fp;   /* as in frame[frame_count - 1] */
	uint32_t frame_count; /* 0 after a reset, which the reader's mirror must follow */
	uint64_t return_pc;  /* a copy of the caller's return address; of a marker, its address */
	/* the walk of the last stack reached another stack (RULE_SWITCH): it is not remembered */
	uint64_t is_switched;
	/* sampling: bytes before the next mark; state of the generator of distances */
	uint64_t left, random;

	uint64_t result;     /* arguments of the call; for leave_trap */
	uint32_t index;      /* in the records */
	uint32_t reason;     /* enum pad_reason */
	/* the frames were being changed: after a longjmp, reset them and the reader's */
	uint32_t dirty;
	/* checks known to hold: scratch of a call that returned */
	uint32_t known;
	uint64_t caller_fp;  /* the frame pointer then */
	uint32_t has_thrown; /* ptmem must see the catch, though no call is in progress */
	/* steps of the last walk up to the outermost one that is a guess; 0: there is none */
	uint32_t guessed;
	uint64_t frame, step; /* as check */
	uint32_t max_frames; /* number of elements */
	uint32_t may_request;    /* request a deep cache if that is not enough */
	/*
	 * sampling: whether the call that set return_at is recorded, 1 + the shift of its distance;
	 * the same for the block passed to realloc
	 */
	uint32_t is_sampled, is_old_sampled;
	uint32_t left_shift; /* control.sample_shift when `left` was drawn */
	/* the stack continues on another one, as a signal handler's does: no raw records */
	uint32_t is_apart;
	/* the interpreter's state of the thread; 0 = unknown. ptmem writes it. */
	uint64_t virtual_state;
	uint64_t list, walk; /* addresses of the arrays: in @own_list, or of a deep cache */
	uint32_t max_listed; /* number of elements */
	/* the list of the last record; of the one that is walked, and what of it is as before */
	uint32_t listed, walked, list_kept;
	uint32_t list_end;   /* how many of its frames are written to the record */
	uint32_t has_list;   /* the record that is written has the list that was walked */
	int32_t list_way;    /* of pad_walk_list, for this call; -1: not walked yet */
	/* pad_virtual.deaths when the functions of the list were compared; when this walk began */
	uint64_t list_deaths, walk_deaths;
	/* PAD_STATE_STACK: those outside of virtual_state, up to a 0 */
	uint64_t virtual_outer[PAD_OUTER_STATES];
	PAD_LINES struct pad_count count[PAD_FUNCTIONS];
	/*
	 * words from which the labels follow, as they were at the last record; of that epoch
	 */
	uint64_t label_epoch;
	uint32_t label_checks;
	uint32_t call_is_new; /* bits of labels: a call began, and no record says so yet */
	struct pad_check label_check[PAD_LABEL_CHECKS];
	/* a word of a label was not there, and has not been passed by since; 0: none */
	uint64_t label_fault;
	struct pad_label_value label[PAD_LABELS]; /* of the last record */
	/*
	 * of the outermost call of the label's function that was entered last, at its entry;
	 * whether it is open, the stack says: PAD_LABELLED sees no returns
	 */
	struct pad_label_value call[PAD_LABELS];
	uint64_t call_inner[PAD_LABELS]; /* sp of the last entry inside of it; 0 = none */
	struct pad_cache cache;
	struct pad_list own_list;
};

/* The end of the stack of the call that @slot is in: its caller's stack pointer after it. */
static inline uint64_t pad_call_end(const struct pad_slot *slot)
{
	return slot->return_at + PAD_RETURN_BELOW + ARCH_RETURN_SIZE;
}

/* The mark, a record's first word: number (56 bits) | function (4) | type (4). */
#define PAD_MARK_LOW 8
enum pad_record_type {
	PAD_RECORD_FREE = 1,      /* mark, block */
	PAD_RECORD_REALLOC_BEGIN, /* mark, block */
	PAD_RECORD_ALLOC,         /* struct pad_record_block, pcs, raw part */
	PAD_RECORD_REALLOC_END,
	/*
	 * like FREE, inside another call, or maybe of no sample: ignored if the block is not
	 * live
	 */
	PAD_RECORD_INNER_FREE,
	/*
	 * A short ALLOC: mark, block << 16 | bytes. No alignment was requested, and the stack is
	 * that of the thread's last record with PAD_HAS_STACK (with PAD_COUNT_ONLY there is none).
	 */
	PAD_RECORD_SAME,
	PAD_RECORD_REALLOC_MAYBE, /* like REALLOC_BEGIN, of a block that may not be a sample */
	PAD_RECORD_FILL, /* the whole mark: the rest of the ring is empty */
	PAD_RECORD_TIME, /* the whole mark; the CPU's counter. Without a number and a tail. */
	PAD_RECORD_CLOCK, /* the same; control.clock */
	/* no event: struct pad_record_list, for the next record with PAD_HAS_VIRTUAL */
	PAD_RECORD_LIST,
	PAD_RECORD_LABEL, /* no event: struct pad_record_label, for the next allocations */
};

#define PAD_TIME_SIZE 16
#define PAD_CLOCK_NS 100000u /* how often control.clock is renewed, if possible */

#define PAD_SAME_BLOCKS (1ull << 48) /* limit of the values that fit into a PAD_RECORD_SAME */
#define PAD_SAME_BYTES (1ull << 16)

static inline uint64_t pad_mark(uint64_t number, uint8_t function, enum pad_record_type type)
{
	return number << PAD_MARK_LOW | (uint64_t)function << 4 | type;
}

/* The largest record in a ring with @mask. */
static inline uint64_t pad_record_max(const struct pad_control *c, uint64_t mask)
{
	return c->record_max <= mask / 2 ? c->record_max : mask / 2 + 1;
}

enum pad_record_flag {
	PAD_HAS_STACK = 1,  /* kept and fresh describe the stack */
	PAD_HAS_RAW = 2,    /* a raw part follows */
	/* instead of a raw part: a list of struct pad_listed_frame, up to the end */
	PAD_HAS_VIRTUAL = 4,
	/* frames have PAD_GUESSED: the outermost one of these, and those in it, are never kept */
	PAD_HAS_GUESSES = 8,
	PAD_FLAGS_SHIFT = 8, /* from this bit on: the shift of a sample's distance */
};

#define PAD_GUESSED (UINT64_C(1) << 63) /* in a return address: its frame's caller is a guess */

struct pad_record_block {
	uint64_t mark;
	uint32_t size;      /* size of the record, tail included */
	uint16_t flags;
	uint16_t fresh;     /* new return addresses, outermost first, after this struct */
	uint32_t kept;      /* outer frames as in the thread's last record with PAD_HAS_STACK */
	/* bytes of stack in the raw part; of a list, its outer frames that are as before */
	uint32_t raw;
	uint64_t result;
	uint64_t bytes;
	uint64_t align;     /* realloc: the old block */
};

/* Followed by a list of struct pad_listed_frame up to the end, tail excluded: it has these now. */
struct pad_record_list {
	uint64_t mark;
	uint32_t size; /* of the record */
	uint32_t kept; /* outer frames that are as before */
};

#define PAD_LABEL_OF_CALL 0x80 /* in a state: the value's sp and return_pc follow its words */

/* Followed by pad_label_words(): label number @label has that value now. */
struct pad_record_label {
	uint64_t mark;
	uint32_t size; /* of the record */
	uint8_t label, state;
	uint16_t bytes;
};

/*
 * The raw part, after the pcs: registers in the caller (DWARF order), then the stack from sp
 * upwards.
 */
#define PAD_RAW_REGS ARCH_DWARF_REGS

#define PAD_TAIL 16         /* with PAD_STACK_POINTER */

/* The recorder's code, to be copied into the target once, page-aligned. */
struct recorder_image {
	const uint8_t *code;
	size_t size;
	uint32_t full_trap; /* offset of the trap that says "ring full" */
	uint32_t full_answer; /* the register that gets the answer, as in struct arch_regs */
	/* offset of the instruction that reads the counter; it faults if that is disabled */
	uint32_t ticks, ticks_size;
	/* the same of the one that loads a word that may be gone; the result then is 0 */
	uint32_t unsure_load, unsure_load_size;
	/* the same of the one for labels, with that which says that the word was there */
	uint32_t label_load, label_load_size;
	/* the same of a short way, which then takes the other one; 0: the CPU has none */
	uint32_t short_label_load, short_label_size;
	/* the same as an ELF file with unwind information; vaddr 0 = its start */
	const uint8_t *elf;
	size_t elf_size;
};
struct recorder_image arch_recorder_image(void);

#define PAD_ROOM 1536       /* maximum size of a pad */
#define PAD_ALIGN 64

struct pad_request {
	struct pad_probe probe;
	/*
	 * the original bytes to be displaced: those that the stub of the same function displaces
	 * (struct arch_stub), or a marker
	 */
	const uint8_t *code;
	size_t code_size;
	uint64_t from;       /* their address in the target */
	/* where the pad will be; multiple of PAD_ALIGN, near the function */
	uint64_t at;
	uint64_t recorder;       /* where the recorder is */
	uint64_t control;    /* where the shared memory begins */
	uint64_t behind;     /* for a marker: where the program continues */
	/*
	 * The callee-saved register, in the order of arch.dwarf_saved, that is saved below the
	 * return slot during the call.
	 */
	uint8_t saved;
	uint8_t is_sampling; /* PAD_SAMPLING */
};

#define PAD_EXITS 2

struct pad_exit {
	uint64_t at;         /* 0 = none */
	uint64_t to;         /* in the tail; its next instruction is outside */
};

struct pad {
	uint64_t at;
	uint32_t size;
	uint8_t patch_size;  /* bytes to be written at patch_at to arm the pad */
	uint8_t patch[8];
	uint64_t patch_at;
	/* size of the patch: when the pad is armed, no pc may be within it except at the start */
	uint32_t moved;
	int pushes_return;   /* as in struct arch_stub */
	/*
	 * pad address - address in the recorder's ELF file: its unwind information applies to
	 * pads
	 */
	uint64_t bias;
	uint64_t start;      /* its first instruction, where the patch jumps to */
	uint64_t straight;   /* the moved instructions: runs the original */
	uint64_t after;      /* return address of the original during a recorded call; 0 = none */
	uint64_t entry_trap, leave_trap; /* 0 = none */
	uint64_t tail;       /* from here to the end there are no more exits */
	struct pad_exit exit[PAD_EXITS];
};

/* Assembles a pad into @out (PAD_ROOM bytes): 0, or -ENOTSUP with *@why_out set. */
int arch_make_pad(const struct pad_request *request, uint8_t *out, struct pad *pad_out,
		  const char **why_out);

#endif
