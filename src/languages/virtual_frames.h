/*
 * Frames of interpreters, as data. An interpreter keeps the functions that it runs in a list of its
 * own, while the native stack shows its evaluation loop, once for several of them:
 *
 *	native stack                 the interpreter's list
 *	malloc                       load      \ run of the inner loop
 *	evaluation loop  <---------- parse     /  (entry frame: parse)
 *	sort (compares by a call)
 *	evaluation loop  <---------- main        run of the outer loop (entry frame: main)
 *	start
 *
 * The layout of the list and of its frames, and the code of the loop, are data, so that what walks
 * and merges knows no language: a language fills in struct virtual_layout, and reads names
 * (interpreter.h).
 *
 * How it is to be used:
 *
 * At a breakpoint: if a pc of the native stack is in the loop (virtual_loop_find), take the frames
 * of the thread (language.stack, with what it keeps of a thread), and merge both stacks
 * (virtual_merge_step). Read the names of functions that are new (language.read_function) before
 * the thread goes on: afterwards their objects can be gone.
 *
 * In a pad: the layout is published (arch/pad_virtual.h). The pad loads the state by `thread`, and
 * compares the whole list with that of the thread's last record: the same native stack and the same
 * inner frame can have other callers. Each load is of memory that the thread itself has linked to
 * its state, so none can fault. Merging is done by the reader of the ring. Frees need no list.
 */
#ifndef PTMEM_LANGUAGES_VIRTUAL_FRAMES_H
#define PTMEM_LANGUAGES_VIRTUAL_FRAMES_H

#include "arch/pad_virtual.h"
#include "base/alloc.h"
#include "base/types.h"

/* Memory of the program: stores @size bytes at @addr to @buf. False if not all can be read. */
typedef bool language_read_fn(void *ctx, taddr_t addr, void *buf, size_t size);

struct language_memory {
	language_read_fn *read;
	void *ctx;
};

bool language_read_word(const struct language_memory *m, taddr_t addr, uint64_t *out);

/* Where an evaluation loop's code is. */
enum virtual_loop_kind {
	VIRTUAL_NO_LOOP,
	VIRTUAL_LOOP, /* each native frame in it is one run of the loop */
	/*
	 * called by the loop to run instructions, and calls on to the next without a return: with
	 * the loop's frame that called it, it is one
	 */
	VIRTUAL_LOOP_PART,
	/* No loop, but code that calls one. It runs: */
	VIRTUAL_CALLS_OUTERMOST, /* the functions outside of the first entry */
	VIRTUAL_CALLS_RUN,       /* an entry, also if it is the first loop */
	VIRTUAL_CALLS_SAME,      /* what the loop outside of it runs: both are one */
};

struct virtual_loop {
	taddr_t start, end;
	enum virtual_loop_kind kind;
};

/* How frames say that they are the outermost of a run of the loop. */
enum virtual_entry_kind {
	VIRTUAL_ENTRY_EACH, /* each is */
	VIRTUAL_ENTRY_FLAG, /* the byte has a bit of entry_mask */
	VIRTUAL_ENTRY_SHIM, /* byte >= minimum: a frame without function, below those of a run */
};

enum virtual_state_kind {
	VIRTUAL_STATE_UNKNOWN,
	/* the word at place, if that state's word at owner is the thread pointer; else none */
	VIRTUAL_STATE_GLOBAL,
	VIRTUAL_STATE_TLS, /* the word at place from the thread pointer; 0 = none */
	VIRTUAL_STATE_FIXED, /* place itself: one thread is the interpreter's */
	VIRTUAL_STATE_STACK, /* what native frames refer to: pad_virtual_values */
};

struct virtual_layout {
	/* Where code that runs in the thread finds its state. */
	struct {
		enum virtual_state_kind kind;
		int64_t place;
		uint16_t owner;
	} thread;
	/* Offsets: from the state to the innermost frame, the second only if heads is 2. */
	uint16_t head[2];
	uint8_t heads;
	uint8_t position_size;  /* 4 (signed) or 8 bytes */
	/* In a frame. */
	uint16_t next, identity, position, entry;
	enum virtual_entry_kind entry_kind;
	uint8_t entry_min, entry_mask;
	/*
	 * The outermost frame marks the end of the list: it is of no run, nor are those inside of
	 * it up to an entry.
	 */
	bool has_base;
	/* Native code begins runs without the loop, too: functions that have no loop come last. */
	bool has_loose_runs;
	/* A fiber's list goes on with that of its caller, whose native frames are elsewhere. */
	bool has_callers_runs;
	uint64_t identity_mask; /* bits of the identity; others are marks */
	/* Not 0: entry, and native, are in what the word there leads to. */
	uint16_t via;
	int16_t native;         /* the identity if that of the frame is 0; 0 = none */
	/* Not 0: frames are an array in a stack, whose place and words are in the state. */
	uint16_t stride, stack, stack_words;
	/*
	 * Not 0: frames are in arrays. Then `position` is in the state, and functions can be listed
	 * before their loop begins: those are not shown.
	 */
	struct pad_virtual_arrays arrays;
	/* is_used: functions are in values; virtual_frames_walk does not know that. */
	struct pad_virtual_values values;
	/* The objects of functions, for their stamps. */
	struct pad_function_kind kind[PAD_FUNCTION_KINDS];
	uint8_t kinds;
	VEC(struct virtual_loop) loops; /* ascending, disjoint */
};

void virtual_layout_deinit(struct virtual_layout *l);

/* Fills in what pads need: the loop's ranges, and, if @is_found, the list. */
void virtual_layout_publish(const struct virtual_layout *l, bool is_found,
			    struct pad_virtual_layout *out);

/* Adds code of the loop; neighbours of one kind become one. */
void virtual_loop_add(struct virtual_layout *l, const struct virtual_loop *loop);
/* @pc: of a caller the return address minus 1. */
enum virtual_loop_kind virtual_loop_find(const struct virtual_layout *l, taddr_t pc);

struct virtual_frame {
	uint64_t identity; /* of the function: 0 = none, a shim */
	uint64_t position; /* in it, as the frame has it */
	bool is_entry;     /* outermost of its run */
	taddr_t at;        /* of the frame; 0 = unknown */
	taddr_t source;    /* what has the position; 0 = the frame, or unknown */
};

/*
 * Stores the frames of @state, innermost first. Their number, at most @max; -EFAULT if one cannot
 * be read or lies where none can; -E2BIG if there are more.
 */
ssize_t virtual_frames_walk(const struct virtual_layout *l, const struct language_memory *m,
			    taddr_t state, struct virtual_frame *out, size_t max);

/* The stamp of the function @identity (arch/pad_virtual.h). 0 if it is none, or cannot be read. */
uint64_t virtual_stamp(const struct virtual_layout *l, const struct language_memory *m,
		       uint64_t identity);

/*
 * Merges both stacks, from the outermost frames inwards: in the place of each native frame of the
 * loop come the functions of its run. The innermost one may have none yet: the interpreter
 * allocates a function's frame before it is in the list. All zeros but for the first three members,
 * a merge begins; one that went on to some native frame can be continued with others.
 */
struct virtual_merge {
	const struct virtual_layout *layout;
	const struct virtual_frame *frame; /* outermost first */
	size_t frames;
	size_t next;   /* of frame */
	size_t loops;  /* native frames that are runs of the loop */
	size_t bare;   /* of these without a run in the list */
	/*
	 * NULL, or where the run of each of the first `unchanged` frames begins. These are as in an
	 * earlier merge, so that a long run need not be searched for its end.
	 */
	const uint32_t *run;
	size_t unchanged;
	bool was_loop; /* the last native frame was in the loop */
	enum virtual_loop_kind caller; /* VIRTUAL_CALLS_..., of the next loop */
	size_t last_run;               /* where the run that was taken last begins */
	bool is_wrong;
};

enum virtual_step {
	VIRTUAL_SHOW_NATIVE, /* the native frame is no run of the loop, or has no functions */
	VIRTUAL_SHOW_RUN,    /* functions, from @first_out up to merge.next, come in its place */
	VIRTUAL_SHOW_NONE,   /* it is a part of its caller's run */
};

/* The merge of @frames functions at @frame, outermost first, with no native frame yet. */
struct virtual_merge virtual_merge_begin(const struct virtual_layout *l,
					 const struct virtual_frame *frame, size_t frames);

/*
 * Begins anew, for @loops native frames that are runs of the loop: the outer functions that there
 * are more are before merge.next. False: there are none.
 */
bool virtual_merge_skip_callers(struct virtual_merge *g, size_t loops);

/* The next native frame is at @pc, of a caller the return address minus 1. */
enum virtual_step virtual_merge_step(struct virtual_merge *g, taddr_t pc, size_t *first_out);

/*
 * Goes on after @kept native frames at @pc, outermost first, that were merged with the functions
 * before number @next.
 */
void virtual_merge_resume(struct virtual_merge *g, const taddr_t *pc, size_t kept, size_t next);

/*
 * Up to where functions from merge.next on, which have no loop, are to be shown inside of all
 * native frames: merge.next if there are none.
 */
size_t virtual_merge_rest(const struct virtual_merge *g);

/*
 * Whether both stacks fit. If not, a stack is cut off, or greenlets have exchanged parts of one:
 * then the list alone is what can be shown, marked.
 */
bool virtual_merge_is_right(const struct virtual_merge *g);

#endif
