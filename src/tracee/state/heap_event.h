/*
 * What the target stage hands on: one event of the heap (or of the mappings),
 * however it was caught, with what is needed to unwind it.
 */
#ifndef PTMEM_TRACEE_STATE_HEAP_EVENT_H
#define PTMEM_TRACEE_STATE_HEAP_EVENT_H

#include "arch/arch.h"
#include "base/heap_function.h"
#include "base/types.h"

enum heap_event_kind {
	HEAP_ALLOC = 1,     /* addr, size, align; addr 0: the call failed */
	HEAP_FREE,          /* addr (0: free(NULL)) */
	HEAP_REALLOC_BEGIN, /* old_addr: may belong to another thread from now on */
	HEAP_REALLOC_END,   /* old_addr, addr, size; addr 0 and size > 0: failed */
	HEAP_MAP,           /* addr, size, a mapping appeared */
	HEAP_UNMAP,         /* addr, size, a mapping went away */
	/* the program called mmap, mremap or munmap: as EVENT_MAPPING_CALL in profile/event.h */
	HEAP_MAPPING_CALL,
	HEAP_SAMPLE,        /* sp, between calls */
	HEAP_PROGRAM_END,   /* the program's own destructors have run, those of libraries not */
	HEAP_FAULT,         /* addr, size (a page): touched for the first time, or brought in */
};

/*
 * The stack of a thread at an event, frame 0 already left: regs.pc is the return
 * address into the caller of the probed function and regs.sp the value that it
 * has there after the return. data holds a copy of the memory from start upwards
 * (start <= regs.sp); read fetches what lies outside.
 *
 * HEAP_MAP and HEAP_FAULT have no frame that is left (is_stopped): regs are those of the thread
 * after the system call or at the faulting instruction.
 */
struct stack_view {
	struct arch_unwind_regs regs;
	bool is_stopped;  /* regs.pc is where the thread is, not a return address */
	bool is_copy;     /* nothing is known beyond data, and more of the stack may be there */
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
	/* of a sampled profile: the pad chose the allocation, and counted the call */
	bool is_chosen;
	bool is_inner;    /* a free inside another watched call: counts only if its block is live */
	taddr_t addr, old_addr;
	uint64_t size;    /* as requested; calloc: the product */
	uint64_t align;   /* 0 = none asked for */
	/* the stack pointer in the caller; 0 = not asked for (target_options.stack_pointers) */
	taddr_t sp;
	uint32_t map_flags; /* HEAP_MAP by mmap: its flags, and its descriptor (-1: none) */
	int map_fd;
	struct stack_view *stack; /* NULL where the kind has none, or frame is given */
	/*
	 * A stack walked already: frame_count frames, outermost first, return addresses minus 1.
	 * The first @kept are as in the last event with the same @path (a thread's slot).
	 */
	const taddr_t *frame;
	uint32_t frame_count, kept, path;
};

#endif
