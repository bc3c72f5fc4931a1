/*
 * The output of the target stage: one event of the heap (or of the mappings), however it was
 * captured, with what is needed to unwind it.
 */
#ifndef PTMEM_TRACEE_STATE_HEAP_EVENT_H
#define PTMEM_TRACEE_STATE_HEAP_EVENT_H

#include <sys/types.h>

#include "arch/arch.h"
#include "arch/pad_label.h"
#include "arch/pad_virtual.h"
#include "base/heap_calls.h"
#include "base/types.h"

enum heap_event_kind {
	HEAP_ALLOC = 1,     /* addr, size, align; addr 0: the call failed */
	HEAP_FREE,          /* addr (0: free(NULL)) */
	HEAP_REALLOC_BEGIN, /* old_addr: may be reused by another thread from now on */
	HEAP_REALLOC_END,   /* old_addr, addr, size; addr 0 and size > 0: failed */
	HEAP_MAP,           /* addr, size: a mapping was added */
	HEAP_UNMAP,         /* addr, size: a mapping was removed */
	/* the program called mmap, mremap or munmap: as EVENT_MAPPING_CALL in profile/event.h */
	HEAP_MAPPING_CALL,
	HEAP_SAMPLE,        /* sp, between calls */
	HEAP_PROGRAM_END,   /* the program's own destructors have run, those of libraries not yet */
	HEAP_FAULT,         /* addr, size (a page): first touched, or swapped in */
};

/*
 * The stack of a thread at an event, with frame 0 removed: regs.pc is the return address into the
 * caller of the probed function and regs.sp its value there after the return. data is a copy of the
 * memory from start upwards (start <= regs.sp); read fetches memory outside.
 *
 * For HEAP_MAP and HEAP_FAULT no frame is removed (is_stopped): regs are those of the thread after
 * the system call or at the faulting instruction.
 */
struct stack_view {
	struct arch_unwind_regs regs;
	bool is_stopped;  /* regs.pc is the thread's pc, not a return address */
	pid_t stopped;    /* the thread, if ptrace has stopped it at this stack; else 0 */
	bool is_copy;     /* memory beyond data is not available, although the stack may continue */
	taddr_t moved_from, moved_to; /* by this call, a realloc; 0 = none */
	bool is_past;     /* the thread has gone on: what it had elsewhere on stacks is gone */
	taddr_t start;
	const uint8_t *data;
	size_t size;
	/* Reads @size bytes at @addr into @buf: 0 or -errno; all or nothing. */
	int (*read)(void *ctx, taddr_t addr, void *buf, size_t size);
	void *read_ctx;
};

struct heap_event {
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint32_t thread;  /* tid */
	uint8_t kind;     /* enum heap_event_kind */
	uint8_t function; /* enum heap_function */
	/* sampling: the pad chose the allocation, and counted the call */
	bool is_chosen;
	uint8_t sample_shift; /* of a sample: its interval is 1 << this times the smallest */
	bool is_inner;    /* a free inside another watched call: counts only if the block is live */
	taddr_t addr, old_addr;
	uint64_t size;    /* as requested; calloc: the product */
	uint64_t align;   /* 0 = none requested */
	uint64_t weighted; /* bytes for which a block stands that the program sampled; 0: its own */
	/* stack pointer in the caller; 0 = not requested (event_options.stack_pointers) */
	taddr_t sp;
	uint32_t map_flags; /* HEAP_MAP by mmap: its flags, and its descriptor (-1: none) */
	int map_fd;
	struct stack_view *stack; /* NULL if the kind has none, or frame is given */
	/*
	 * A stack that is already walked: frame_count frames, outermost first, return addresses
	 * minus 1. The first @kept are the same as in the last event with this @path (a thread's
	 * slot).
	 */
	const taddr_t *frame;
	uint32_t frame_count, kept, path;
	/* numbers of the frames whose callers are known if they have frame pointers (arch/pad.h) */
	const uint32_t *guess;
	uint32_t guess_count;
	/* with frame: the interpreter's list of functions that run in this thread, likewise */
	const struct pad_listed_frame *list;
	uint32_t list_count, list_kept;
	/* PAD_LABELS that the thread had, and how often these of its slot were others before;
	 * NULL: no pad has read them, and the thread is stopped */
	const struct pad_label_value *label;
	uint32_t label_changes;
};

#endif
