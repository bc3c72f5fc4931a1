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
 * (python.h).
 *
 * How it is to be used:
 *
 * At a breakpoint: if a pc of the native stack is in the loop (virtual_loop_find), take the frames
 * of the thread (python_stack, with what it keeps of a thread), and give both stacks to
 * virtual_frames_merge. Read the names of functions that are new (python_code_read) before the
 * thread goes on: afterwards their objects can be gone.
 *
 * In a pad: publish virtual_layout beside the unwind rules. Only if the native walk passes a return
 * address in the loop, load the state by `thread`, compare the whole list with the thread's last
 * record (identity and position of each frame: the same native stack and the same inner frame can
 * have other callers), and record the number of outer frames that are the same, and the others.
 * Each load is of memory that the thread itself has linked to its state, so none can fault; the
 * number of frames is bounded all the same, and a list that is longer is recorded as cut off.
 * Merging is done by the reader of the ring. Frees need no list.
 */
#ifndef PTMEM_LANGUAGES_VIRTUAL_FRAMES_H
#define PTMEM_LANGUAGES_VIRTUAL_FRAMES_H

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
};

struct virtual_loop {
	taddr_t start, end;
	enum virtual_loop_kind kind;
};

/* How frames say that they are the outermost of a run of the loop. */
enum virtual_entry_kind {
	VIRTUAL_ENTRY_EACH, /* each is */
	VIRTUAL_ENTRY_FLAG, /* the byte is not 0 */
	VIRTUAL_ENTRY_SHIM, /* byte >= minimum: a frame without function, below those of a run */
};

enum virtual_state_kind {
	VIRTUAL_STATE_UNKNOWN,
	/* the word at place, if that state's word at owner is the thread pointer; else none */
	VIRTUAL_STATE_GLOBAL,
	VIRTUAL_STATE_TLS, /* the word at place from the thread pointer; 0 = none */
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
	uint8_t entry_min;
	bool has_base;          /* the outermost frame is of no run: it marks the end of the list */
	uint64_t identity_mask; /* bits of the identity; others are marks */
	VEC(struct virtual_loop) loops; /* ascending, disjoint */
};

void virtual_layout_deinit(struct virtual_layout *l);

/* Adds code of the loop; neighbours of one kind become one. */
void virtual_loop_add(struct virtual_layout *l, const struct virtual_loop *loop);
/* @pc: of a caller the return address minus 1. */
enum virtual_loop_kind virtual_loop_find(const struct virtual_layout *l, taddr_t pc);

struct virtual_frame {
	uint64_t identity; /* of the function: 0 = none, a shim */
	uint64_t position; /* in it, as the frame has it */
	bool is_entry;     /* outermost of its run */
};

/*
 * Stores the frames of @state, innermost first. Their number, at most @max; -EFAULT if one cannot
 * be read or lies where none can; -E2BIG if there are more.
 */
ssize_t virtual_frames_walk(const struct virtual_layout *l, const struct language_memory *m,
			    taddr_t state, struct virtual_frame *out, size_t max);

/* A frame of a merged stack. */
struct merged_frame {
	bool is_virtual;
	uint32_t index; /* in the list of its kind */
};

struct merge_input {
	const taddr_t *pc; /* native, innermost first; callers' are return addresses minus 1 */
	size_t pcs;
	const struct virtual_frame *frame; /* innermost first */
	size_t frames;
};

/*
 * Merges both stacks: in the place of each native frame of the loop come the functions of its run.
 * The innermost one may have none yet: the interpreter allocates a function's frame before it is in
 * the list; it stays native (@bare_out; or the list is not all that the thread has), as does one
 * whose run is a shim alone. Stores at most @in->pcs + @in->frames to @out. Returns their number;
 * -EILSEQ if the numbers of loops and runs differ otherwise, or the outermost run has no entry: a
 * stack is cut off, or greenlets have exchanged parts of one. Then the list alone is what can be
 * shown, marked.
 */
ssize_t virtual_frames_merge(const struct virtual_layout *l, const struct merge_input *in,
			     struct merged_frame *out, bool *bare_out);

#endif
