/*
 * The times of a ring's records. Two things are known: the stamps that the thread wrote between
 * them (arch/pad.h, Times), and up to where its ring, and the numbers, were whenever the reader
 * looked (a turn).
 *
 *	stamp           stamp                         head at a turn        stamp
 *	  | r r r r r r r | r r r r r r r r ... pause ... : r r r r r r r r r | r r
 *
 * Records follow the stamp before them as fast as the thread was when it was last busy. If it
 * paused, those that had no number yet at a turn follow that turn; a thread that is found asleep
 * writes a stamp before its next record. A ring without stamps is dated by turns alone.
 *
 * A stamp that is a word of pad_clock.h has the time of that clock's last turn: records behind it
 * are between that turn and the next one. A busy thread's follow the stamp, as it is written right
 * after the turn; those of others are dated in the middle.
 *
 * The stamps are the program's, and may be anything: dates never run backwards, nor beyond the
 * turn.
 */
#ifndef PTMEM_TRACEE_PADS_RING_H
#define PTMEM_TRACEE_PADS_RING_H

#include <stdint.h>

#include "arch/arch.h"
#include "base/alloc.h"
#include "base/heap_calls.h"
#include "tracee/pads/pad_memory.h"
#include "tracee/state/heap_event.h"

#define RING_TURNS 8u
#define RING_GAP_NS 10000u /* the bound for times: stamps of a busy thread are closer */
#define RING_SLOPE_SHIFT 16 /* fractional bits of slopes */
#define RING_COARSE_NS 1000000u /* less exact dates are counted */

struct ring;

/*
 * The reader found the head of a ring at `head`. Records below it, or with a number below `number`,
 * existed at there_ns; all others did not exist at not_yet_ns.
 */
struct ring_turn {
	uint64_t head, number, there_ns, not_yet_ns;
};

/* A position in the ring, and its time. */
struct ring_stamp {
	uint64_t at, ns;
};

/* Positions from start.at up to `end` are dated as start.ns + (position - start.at) * slope. */
struct ring_line {
	struct ring_stamp start;
	uint64_t slope, end;
	uint64_t coarse; /* 1: the dates may be wrong by more than RING_COARSE_NS; else 0 */
};

struct ring_dates {
	struct ring_stamp last; /* the end of the last stamp that was passed; at 0: none */
	uint64_t last_end;      /* 0, or the last stamp was a word of ring.word_clock up to then */
	bool is_busy;           /* the thread wrote much between the last two of these */
	uint64_t rate;          /* slope when the thread was last busy */
	struct ring_line line;
	uint64_t now_ns;        /* the last date */
	struct ring_turn turn[RING_TURNS]; /* oldest first */
	uint32_t turns;
};

/* The head of @slot was loaded to source.head, between the times @before and @after. */
void ring_dates_turn(struct ring *r, uint32_t slot, uint64_t before, uint64_t after);
/* When the head of @slot was first seen where it was at the last turn: the CPU's counter. */
uint64_t ring_dates_seen(const struct ring *r, uint32_t slot);
/* The reader steps over a stamp of @slot that says @ticks, and ends at @end. */
void ring_dates_pass(struct ring *r, uint32_t slot, uint64_t end, uint64_t ticks);
/* The same for a stamp that has the time @ns of ring.word_clock. */
void ring_dates_pass_word(struct ring *r, uint32_t slot, uint64_t end, uint64_t ns);
/* The line for @position of @slot, where the record with @number is; valid until the next call. */
const struct ring_line *ring_line_at(struct ring *r, uint32_t slot, uint64_t position,
				     uint64_t number);
/* The time of the record at the position of @slot, which is the next one to be read. */
uint64_t ring_date(struct ring *r, uint32_t slot);

/*
 * The reader's side of the rings that pads write (arch/pad.h): positions, numbers, room.
 *
 * Each slot has a ring, whose `position` is the end of what was read. The published limit follows
 * in steps of a sixteenth of the ring, since each publication takes the cache line away from the
 * pads. For each slot a mirror (struct ring_mirror) has the stack of its last record, outermost
 * first, like the pad's own frames.
 *
 * Records are delivered in the order of their numbers. `number` is the next one: those below it
 * were read, or their record was not complete yet, or there will be none. A record below it that is
 * found later is late, and is delivered first.
 *
 * The program may write anything into that memory, at any time. So everything read from it is
 * copied, and compared with what pads can have written; anything else breaks the ring: nothing more
 * is read, and the caller ends the profile (ring.broken). The fuzzer is tests/fuzz/fuzz_ring.c.
 */

struct ring_stats {
	uint64_t records, raw;
	uint64_t late; /* records delivered after some with higher numbers */
	uint64_t bytes;
	/* without the CPU's counter: records whose dates may be wrong by more than RING_COARSE_NS,
	 * maybe a few too many; by how much at most */
	uint64_t coarse, coarse_ns;
};

/* How far dates may be wrong, for 99 of 100 records at least; 0: not beyond RING_COARSE_NS. */
uint64_t ring_stats_error(const struct ring_stats *stats);

#define RING_NO_NUMBER UINT64_MAX

/* One slot's ring. */
struct ring_source {
	const uint8_t *bytes;
	uint64_t mask;         /* their number - 1 */
	uint64_t position, published;
	uint64_t last;         /* the number of the last record that was read; 0: none */
	/* in a turn: the head, and the number of the record at the position, or RING_NO_NUMBER */
	uint64_t head, next;
	bool is_asked;         /* for a stamp: nothing was new */
	struct ring_dates dates;
};

struct ring_mirror;
struct tick_clock;
struct pad_clock;

/* The rings of all slots. */
struct ring {
	struct pad_memory *memory;
	const struct arch *arch;
	struct tick_clock *clock; /* updated in each turn */
	const struct pad_clock *word_clock; /* of control.clock; NULL: that word is not used */
	const char *broken;    /* why nothing more is read; NULL: not broken */
	uint64_t number;       /* all below it are read, or late, or will never come */
	uint64_t next_number;  /* as last seen in the control block */
	uint64_t announced_number; /* the same when ring_reader.before was called */
	uint64_t started_ns;   /* no record is older */
	uint64_t latest_ns;    /* the latest date of a record so far; without the CPU's counter */
	struct ring_source *source; /* by slot */
	size_t source_count, source_capacity;
	uint32_t *active;      /* the slots of a turn */
	size_t active_capacity;
	struct ring_mirror *mirror; /* by slot */
	size_t mirror_count;
	struct stack_view view; /* a private copy of a record's raw part; its data is in raw */
	uint8_t *raw;
	size_t raw_capacity;
	VEC(uint32_t) guess; /* numbers of frames: of the event that was read last */
	struct ring_stats stats;
};

/* @memory and @clock stay the caller's and must outlive the ring. */
void ring_init(struct ring *r, struct pad_memory *memory, const struct arch *arch,
	       struct tick_clock *clock);
void ring_deinit(struct ring *r);

/* The memory is corrupt: from now on nothing is read, and pads write nothing. */
void ring_break(struct ring *r, const char *why);

/* The source of @slot, which is in use. */
struct ring_source *ring_source(struct ring *r, uint32_t slot);
/* The head of @slot's ring; its position if it is impossible, and the ring is broken now. */
uint64_t ring_head(struct ring *r, uint32_t slot);
/* How many numbers were taken since the last one that was read; 0 if it is broken. */
uint64_t ring_pending(struct ring *r);

/* Publishes everything that was read; call it before resuming threads that wait for room. */
void ring_publish(struct ring *r);
/* The same for @slot. */
void ring_publish_slot(struct ring *r, uint32_t slot);

static inline const uint64_t *ring_word(const struct ring_source *s)
{
	return (const void *)(s->bytes + (s->position & s->mask));
}

/*
 * Stacks from the ring: a record has the number of outer frames that are the same as in its
 * thread's last stack, and the new ones. A mirror for each slot converts them to complete stacks.
 */

struct ring_mirror {
	taddr_t *frame;        /* outermost first */
	size_t count, capacity;
	size_t kept;           /* of a stack with guesses: frames that the pad remembers */
	struct pad_listed_frame *list; /* of an interpreter, outermost first */
	size_t listed, list_capacity;
	size_t list_passed;    /* outer frames of the list that the sink has, as they are */
	uint32_t node;         /* of the complete stack, if known */
	bool has_node;
	bool is_new_to_sink;   /* copied from another ring: its reader has not seen these frames */
	struct pad_label_value *label; /* of the last record; NULL: none has any. Owned */
	uint32_t label_changes; /* how often they were */
};

static inline bool ring_lacks_ticks(const struct ring *r)
{
	return r->memory->written.flags & PAD_NO_TICKS;
}

/* Reads @word of the ring once. */
static inline uint64_t ring_load(const uint64_t *word)
{
	return __atomic_load_n(word, __ATOMIC_RELAXED);
}

/* The mirror of @slot, which must be below memory->used. */
struct ring_mirror *ring_add_mirror(struct ring *r, uint32_t slot);
static inline struct ring_mirror *ring_mirror(struct ring *r, uint32_t slot)
{
	return slot < r->mirror_count ? &r->mirror[slot] : ring_add_mirror(r, slot);
}

/* The labels of the slot of @m, for an event from its ring. */
void ring_pass_labels(const struct ring_mirror *m, struct heap_event *ev);
/* Label @record->label of @slot now has the words behind @record at @word; all of it fits. */
void ring_read_label(struct ring *r, uint32_t slot, const uint64_t *word,
		     const struct pad_record_label *record);

/* The labels of @slot, a copy of what pads have of them. */
void ring_set_labels(struct ring *r, uint32_t slot, const struct pad_label_value *label);

/* Empties the mirror, after pad_slots_reset or for a new thread in the slot. */
void ring_reset_slot(struct ring *r, uint32_t slot);

/* The reader's nodes are obsolete: it gets all frames of the next stack of each slot. */
void ring_forget_nodes(struct ring *r);

/* Whether a list of @kept frames of @m, and @fresh others, is one that pads can have walked. */
static inline bool ring_list_fits(const struct ring_mirror *m, uint32_t kept, uint64_t fresh)
{
	return kept <= m->listed && kept + fresh <= PAD_MAX_LISTED;
}

/* Copies a record of a list at @word, which is read as @record, and fits, to the mirror. */
void ring_read_list(struct ring *r, uint32_t slot, const uint64_t *word,
		    const struct pad_record_list *record);

/*
 * Copies the stack of the record at @word, whose header was read as @block, and which fits, to the
 * mirror of slot @ev->path and to @ev.
 */
void ring_read_stack(struct ring *r, const uint64_t *word, const struct pad_record_block *block,
		     struct heap_event *ev);
/* Sets the last stack of slot @ev->path in @ev. */
void ring_read_same_stack(struct ring *r, struct heap_event *ev);

/*
 * Decodes one record of the ring into an event. The program can write into the ring at any time, so
 * a record's fixed part is copied before it is examined, each number is checked, and results are
 * copies. Anything that no pad can have written breaks the ring.
 */

/*
 * Receives the events. If there is `quick`, plain allocations and frees are passed to it in
 * batches, all others to `event`, in order. `node` then returns the sink's number for a new stack
 * (event: path, frame, frame_count, kept).
 *
 * Events have times, and the slot as their path; `event` adds the thread. A raw
 * stack (event.stack) has no read function. An event is valid during the call.
 */
struct ring_reader {
	void *ctx;
	/*
	 * It is certain which records are next, of what the program has done until now. @is_behind:
	 * some of them were at the last call, too. May change *reader. NULL = nothing is called.
	 */
	void (*before)(void *ctx, bool is_behind);
	void (*event)(void *ctx, struct heap_event *ev);
	void (*quick)(void *ctx, struct quick_event *event, size_t count); /* NULL = none */
	uint32_t (*node)(void *ctx, const struct heap_event *ev);
	bool is_counting;      /* stacks are not recorded */
};

/* A copy of a record's fixed part, since the ring may change at any time. */
union ring_header {
	struct pad_record_block block;
	uint64_t word[sizeof(struct pad_record_block) / sizeof(uint64_t)];
};

static inline void ring_load_header(const uint64_t *word, uint64_t mark, union ring_header *out)
{
	out->word[0] = mark;
	for (size_t i = 1; i < ARRAY_SIZE(out->word); i++)
		out->word[i] = ring_load(&word[i]);
}

/* The additional bytes of each record with PAD_STACK_POINTER. */
static inline uint32_t ring_tail_size(const struct ring *r)
{
	return r->memory->written.flags & PAD_STACK_POINTER ? PAD_TAIL : 0;
}

/* The number of frames of a list that follow the pcs of @block; with PAD_HAS_VIRTUAL. */
static inline uint32_t ring_list_size(const struct ring *r, const struct pad_record_block *block)
{
	uint64_t others = sizeof(*block) + 8ull * block->fresh + ring_tail_size(r);

	return block->size < others ? 0 : (uint32_t)((block->size - others) /
						      sizeof(struct pad_listed_frame));
}

/* Whether the stack of @block, which has PAD_HAS_STACK, continues the mirror of its slot. */
static inline bool ring_stack_fits(const struct ring *r, const struct pad_record_block *block,
				   const struct ring_mirror *m)
{
	return block->kept <= m->count && (uint64_t)block->kept + block->fresh <= PAD_MAX_FRAMES &&
	       (!(block->flags & PAD_HAS_VIRTUAL) ||
		ring_list_fits(m, block->raw, ring_list_size(r, block)));
}

/* The same of a record of a list; UINT64_MAX: its size is impossible. */
static inline uint64_t ring_listed_frames(const struct ring *r, const struct pad_record_list *list)
{
	uint64_t others = sizeof(*list) + ring_tail_size(r);

	return list->size < others || (list->size - others) % sizeof(struct pad_listed_frame) ?
		       UINT64_MAX :
		       (list->size - others) / sizeof(struct pad_listed_frame);
}

/* The size of @block according to its parts; 0 if its header has another one. */
static inline uint32_t ring_block_size(const struct ring *r, const struct pad_record_block *block)
{
	uint64_t size = sizeof(*block) + 8ull * block->fresh;

	if (block->flags & PAD_HAS_RAW)
		size += PAD_RAW_REGS * 8 + (uint64_t)block->raw;
	if (block->flags & PAD_HAS_VIRTUAL)
		size += ring_list_size(r, block) * sizeof(struct pad_listed_frame);
	size = ROUND_UP(size, (uint64_t)16) + ring_tail_size(r);
	return size == block->size ? block->size : 0;
}

/* Copies of a ring for a fork. */

/*
 * What the thread of a slot may have written behind the head of its ring: parts of a record, which
 * it will complete in both processes.
 */
struct ring_unfinished {
	uint64_t head;
	size_t size;
	uint8_t data[];
};

/* The same of @slot, whose thread is stopped; xfree'd by the caller. */
struct ring_unfinished *ring_save_unfinished(struct ring *r, uint32_t slot);
/* Writes it to the ring of @slot in the new memory of @r, where that thread continues. */
void ring_restore_unfinished(struct ring *r, uint32_t slot, const struct ring_unfinished *saved);

/*
 * Initializes @r with a copy of what @parent knows about @slot, for a ring whose records will be
 * read only from the fork on. The caller sets memory.
 */
void ring_fork(struct ring *r, const struct ring *parent, uint32_t slot);

/* Delivers the contents of the rings in order. */

/*
 * Delivers what is complete, at most @max records and a few more; returns their number. Less than
 * @max: there was no more.
 */
size_t ring_drain(struct ring *r, size_t max, const struct ring_reader *reader);

#endif
