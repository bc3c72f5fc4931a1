/*
 * Interpreters' frames for pads: where a thread has the list of its functions, as data that ptmem
 * publishes in the memory that pads share with it, and which functions ptmem has read. See
 * src/languages/virtual_frames.h for what the list is.
 *
 * A record's stack is that of native code. If control.virtual leads to a struct pad_virtual, and
 * flags have PAD_VIRTUAL, the recorder also walks the thread's list, compares it with that of the
 * thread's last record, and records the number of outer frames that are the same, and the others
 * (PAD_HAS_VIRTUAL; without it the list is empty). What has no room in that record is in others
 * before it (PAD_RECORD_LIST). What cannot be recorded so traps (PAD_REASON_VIRTUAL): ptmem makes
 * that event itself, at the stop.
 *
 * The whole list has to be compared. A frame that is as it was, at the address where it was, may
 * have been called by another one: control returned to its callers since, and its memory was used
 * again. Nothing in the frames counts that.
 *
 * A function is identified by an address, which may be used again for another one. So a stamp
 * belongs to it, made from what the function's object has and refers to. `known` has those that
 * ptmem has read; any other one traps, while the thread's frame keeps the object alive. So a name
 * is read once, and never too late.
 */
#ifndef PTMEM_ARCH_PAD_VIRTUAL_H
#define PTMEM_ARCH_PAD_VIRTUAL_H

#include <stdint.h>

#define PAD_LISTED 4096u      /* frames of a list for which a slot has room */
#define PAD_MAX_LISTED 65536u /* with a deep cache; a longer list traps */
#define PAD_VIRTUAL_RANGES 24u
#define PAD_KNOWN_BITS 16u
#define PAD_FUNCTION_KINDS 3u

enum pad_virtual_mode {
	PAD_VIRTUAL_OFF,
	PAD_VIRTUAL_WAITING, /* only `range` is known: a stack that passes it traps */
	PAD_VIRTUAL_ON,
};

enum pad_virtual_state {
	PAD_STATE_NONE,
	/* the word at place, if it is slot.virtual_state: that thread has the lock */
	PAD_STATE_GLOBAL,
	PAD_STATE_TLS,    /* the word at place from the thread pointer; 0 = none */
	PAD_STATE_FIXED,  /* place itself, of the thread whose slot.virtual_state it is */
	/*
	 * There is no list: each native frame in `range` has a function of its own, or none. Then
	 * heads to position_size, entry_kind and kind are not used.
	 */
	PAD_STATE_FRAMES,
	/*
	 * slot.virtual_state, then slot.virtual_outer, if native frames say that these are what
	 * runs in the thread: struct pad_virtual_values.
	 */
	PAD_STATE_STACK,
};

enum pad_virtual_entry {
	PAD_ENTRY_EACH, /* each frame is the outermost of a run of the loop */
	PAD_ENTRY_FLAG, /* if the byte has a bit of entry_mask */
	PAD_ENTRY_SHIM, /* if it is at least entry_min: a frame without function */
};

enum pad_kind_flags {
	PAD_KIND_NONE = 1,  /* a frame with such an object has no function */
	PAD_KIND_NATIVE = 2, /* no run of the loop begins with it, and it has no position */
	PAD_KIND_DEEP = 4,   /* line and table are in what `name` leads to, not in the object */
};

/*
 * The objects of functions of one kind: the word at `type` has type_value in the bits type_mask.
 * name and file are where two other objects (0 = none) are referred to, of which the words at
 * name_hash and file_hash, like those at line and table, do not change while it is this function.
 */
struct pad_function_kind {
	uint64_t type, type_mask, type_value, flags;
	uint64_t name, name_hash, file, file_hash, line, table;
};

/*
 * Frames in arrays, one for each nested run of the program, which are linked from the innermost one
 * outwards: `head` leads to its descriptor. A byte of each element says by its value what that is.
 * Positions are those of callers: that of the innermost function is in the state. What is recorded
 * of one is a number, and a place: pad_place of the instruction that is executed, or, in callers,
 * of the one after the call.
 */
struct pad_virtual_arrays {
	uint64_t element;              /* bytes of an element; 0 = frames are not in arrays */
	uint64_t elements, last, outer; /* in a descriptor; last: a number, 4 bytes, -1 = none */
	uint64_t type;                 /* in an element: the byte */
	/* Values that are functions, with the identity at `identity`, and at `other_identity`. */
	uint64_t functions[4], other_functions[4], other_identity;
	uint64_t shims[4];             /* values that begin a run, without a function */
	uint64_t joined[4];            /* values of functions that do not begin one */
	uint64_t back;                 /* the place after the call; 0: a run begins with it */
	uint64_t caller;               /* position of the caller */
	uint64_t number;               /* in what a position leads to, 4 bytes */
	/* In the state: the place of the innermost function; the one outside of all, or else. */
	uint64_t place, outermost, outermost_else;
};

/*
 * A frame's function is in a value, in a stack that each state has. The value's byte at `tag` is
 * function_tag, and `function` leads from what it has to the function; in others there is none. An
 * allocation may be the move of such a stack, which the states do not know yet.
 *
 * A state's word at `jump` leads to a place in a native frame of the function from runner_start to
 * runner_end, and the word at jump_outer of that to one in an outer frame of this kind, or is 0.
 * The state that runs has the innermost of such frames; outside of its outermost one follow those
 * of the state that has resumed it. One that has no such place is outside of all.
 */
struct pad_virtual_values {
	uint64_t is_used;
	uint64_t tag, function_tag, function;
	uint64_t state_size; /* bytes of a state, up to the end of its outermost frame */
	uint64_t stack, stack_end, extra; /* in a state: from where to where, and bytes behind it */
	uint64_t jump, jump_outer, runner_start, runner_end;
};

#define PAD_OUTER_STATES 7u

#define PAD_NUMBER_BITS 19u
#define PAD_PLACE_IS_INNERMOST (1u << PAD_NUMBER_BITS)
#define PAD_PLACE_SHIFT (PAD_NUMBER_BITS + 1)

/* The place of the instruction at @at, of which the lowest 3 bits are 0. */
static inline uint64_t pad_place(uint64_t at)
{
	return at >> 3 << PAD_PLACE_SHIFT;
}

static inline uint64_t pad_place_address(uint64_t position)
{
	return position >> PAD_PLACE_SHIFT << 3;
}

static inline uint32_t pad_place_number(uint64_t position)
{
	return position & (PAD_PLACE_IS_INNERMOST - 1);
}

/*
 * Offsets are from the state, and a frame. Frames are linked by `next`, or, if `stride` is not 0,
 * are an array from the innermost one up to the end of a stack: in the state are its address and
 * its number of words. entry and native (the identity if that at `identity` is 0; 0 = none) are
 * offsets in what the word at `via` of a frame leads to, if that is not 0.
 */
struct pad_virtual_layout {
	uint32_t mode, state_kind;
	int64_t place;
	uint64_t owner; /* in the state: the thread pointer */
	uint64_t heads, head[2], next, identity, identity_mask, position, position_size;
	uint64_t entry_kind, entry, entry_min; /* entry: of a byte, which can be compared */
	uint64_t entry_mask, via, native, stride, stack, stack_words;
	struct pad_virtual_arrays arrays;
	struct pad_virtual_values values;
	uint64_t kinds;
	struct pad_function_kind kind[PAD_FUNCTION_KINDS];
	/* all objects of functions are blocks, or live for ever: `deaths` counts what died */
	uint64_t counts_deaths;
	/*
	 * PAD_STATE_FRAMES: `identity` is where a frame has a reference to its closure, from the
	 * frame pointer, and `entry` another one, without which it is no frame of a function. A
	 * reference has tag_value in the bits tag_mask, and is at least lowest; `owner` leads from
	 * a closure to the function, `name_word` from its name, and `file_word` from its file, to a
	 * word for its stamp; the others are of its own words.
	 */
	uint64_t tag_mask, tag_value, lowest, name_word, file_word, name, file, line, table;
	uint64_t ranges;
	struct { uint64_t start, end; } range[PAD_VIRTUAL_RANGES]; /* of return addresses */
};

struct pad_known {
	uint64_t identity, stamp; /* 0 = empty */
};

struct pad_virtual {
	/*
	 * Pads add 1 when an allocation returns the address of a known function, which so is no
	 * more: until then lists need not be compared with the objects of their functions.
	 */
	uint64_t deaths;
	struct pad_virtual_layout layout;
	uint64_t filter[(1u << PAD_KNOWN_BITS) / 64]; /* bit pad_known_hash of each in `known` */
	struct pad_known known[1u << PAD_KNOWN_BITS]; /* open addressing */
};

/* A frame in a record, outermost first. */
#define PAD_VIRTUAL_ENTRY 1u /* so a function's address is even */
struct pad_listed_frame {
	uint64_t word; /* identity | PAD_VIRTUAL_ENTRY; identity 0: a shim */
	uint64_t position;
};

#define PAD_NO_FUNCTION 0xffu

/*
 * A frame of the thread's last list, and during a walk. Comparing a long list takes as long as
 * loading it, so it is no larger than that.
 */
struct pad_virtual_frame {
	uint64_t at;            /* its address */
	uint64_t identity;      /* as it is there */
	uint64_t position;      /* 0 for PAD_KIND_NATIVE */
	uint64_t tag;           /* pad_frame_tag: one word, for it is written and loaded again */
};

/* @kind: of the function, or PAD_NO_FUNCTION; @entry: the byte; @stamp: pad_short_stamp. */
static inline uint64_t pad_frame_tag(uint64_t stamp, uint64_t kind, uint64_t entry)
{
	return stamp << 16 | kind << 8 | entry;
}

static inline uint64_t pad_frame_entry(const struct pad_virtual_frame *f)
{
	return f->tag & 0xff;
}

static inline uint64_t pad_frame_kind(const struct pad_virtual_frame *f)
{
	return f->tag >> 8 & 0xff;
}

static inline uint64_t pad_frame_stamp(const struct pad_virtual_frame *f)
{
	return f->tag >> 16;
}

/* Whether @set has the value @byte. */
static inline int pad_byte_in(const uint64_t *set, uint64_t byte)
{
	return set[byte / 64] >> byte % 64 & 1;
}

static inline uint64_t pad_known_hash(uint64_t identity)
{
	return identity * 0x9e3779b97f4a7c15ull >> (64 - PAD_KNOWN_BITS);
}

static inline uint64_t pad_stamp_mix(uint64_t a, uint64_t b)
{
	return (a * 0x9e3779b97f4a7c15ull ^ a >> 32) + b;
}

/* The stamp of a function: what its object has at those offsets. Never 0. */
struct pad_stamp {
	uint64_t name_hash, file, file_hash, line, table;
};

static inline uint64_t pad_stamp_of(const struct pad_stamp *s)
{
	return ((((s->name_hash * 5 + s->file) * 5 + s->file_hash) * 5 + s->line) * 5 + s->table) |
	       1;
}

/* 48 bits, which each bit of @stamp changes: a line or a table nearby is in the lowest ones. */
static inline uint64_t pad_short_stamp(uint64_t stamp)
{
	return stamp * 0x9e3779b97f4a7c15ull >> 16;
}

#endif
