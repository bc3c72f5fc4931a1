/*
 * The event as the profile counts it: its stack is a node of the call tree.
 * Independent of registers, ptrace and files. The text form (events.h) contains exactly these.
 */
#ifndef PTMEM_PROFILE_EVENT_H
#define PTMEM_PROFILE_EVENT_H

#include "base/heap_calls.h"
#include "base/types.h"

enum event_kind {
	EVENT_ALLOC = 1,     /* addr, size, align, node; addr 0: the call failed */
	EVENT_FREE,          /* addr (0: free(NULL)); node: the freeing stack, 0 = not recorded */
	EVENT_REALLOC_BEGIN, /* old_addr leaves the table, its bytes stay counted */
	EVENT_REALLOC_END,   /* old_addr, addr, size, node; same thread as its BEGIN */
	EVENT_MAP,           /* addr, size: mapped (pages mode) */
	EVENT_UNMAP,         /* addr, size; node: the stack that unmapped, 0 = not recorded */
	EVENT_STACK,         /* size: current bytes of all stacks; with --stacks=yes */
	/*
	 * The program itself called a mapping function; addr 0: it failed. Only for memusage.
	 *	mmap    addr, size, align: prot | flags << 32
	 *	mremap  old_addr, addr, size (the new one), align: the old size
	 *	munmap  old_addr, addr (the same), size
	 */
	EVENT_MAPPING_CALL,
	EVENT_SAMPLE,        /* sp of a thread, between calls */
	EVENT_COUNT,         /* size, node: bytes that are never released (page faults) */
	/* sp: start of the stack of the program's first thread; for memusage */
	EVENT_STACK_BASE,
	/* the program's own destructors have run, those of libraries not; for memusage */
	EVENT_PROGRAM_END,
	/* addr, size: the thread's own stack at its maximum size; for memusage */
	EVENT_STACK_RANGE,
	/* size: resident memory of the process, align: its address space, both in bytes */
	EVENT_RESIDENT,
	/* addr, size, node: a block from before the profile; before all events but MAP */
	EVENT_EARLIER,
};

struct event {
	uint64_t time_ns;
	uint32_t thread;
	uint8_t kind;        /* enum event_kind */
	uint8_t function;    /* enum heap_function by number; for memusage's rows */
	/* a free inside another watched call: ignored if its block is not live */
	bool is_inner;
	uint8_t sample_shift; /* of a sample (estimate.h) */
	uint32_t node;
	taddr_t addr, old_addr;
	uint64_t size, align;
	uint64_t weighted;   /* as in struct block */
	taddr_t sp;          /* stack pointer of the caller; 0 = unknown */
};

/* Converts @ev to a struct event. */
static inline struct event event_of_quick(const struct quick_event *ev)
{
	return (struct event){
		.time_ns = ev->time_ns,
		.thread = ev->thread,
		.kind = ev->is_free ? EVENT_FREE : EVENT_ALLOC,
		.function = ev->function,
		.addr = ev->addr,
		.size = ev->is_free ? 0 : ev->size,
		.node = ev->node,
		.sp = ev->sp,
	};
}

#endif
