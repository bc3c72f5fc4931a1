/*
 * What a leak check from outside starts from: the registers of a space's threads, and
 * the memory that they can write to, or could until their objects were relocated.
 *
 * Memory that cannot hold a pointer of the program's is left out: what lies below a
 * stack pointer, stacks of threads that have ended, pages that were never written, mapped
 * devices, ptmem's own pages.
 */
#ifndef PTMEM_TRACEE_CONTROL_ROOTS_H
#define PTMEM_TRACEE_CONTROL_ROOTS_H

#include <sys/types.h>

#include "base/types.h"
#include "base/vec.h"

struct address_space;
struct process;
struct target;
struct thread;

struct root_range {
	taddr_t start, end;
};

/* A stopped thread. */
struct root_thread {
	pid_t tid;
	taddr_t pc, sp, thread_pointer;
};

struct roots {
	pid_t reader;                       /* a thread through which the memory can be read */
	VEC(uint64_t) words;                /* of all registers, vector registers too */
	VEC(taddr_t) stack_tops;            /* the lowest address in use of each thread's stack */
	VEC(struct root_thread) threads;    /* whose registers these are */
	/* ascending, whole pages but for stacks; to be scanned */
	VEC(struct root_range) memory;
	VEC(struct root_range) data;        /* of the program and its libraries, part of memory */
	VEC(struct root_range) dead_stacks; /* parts of memory (ascending), of threads that ended */
	/*
	 * Parts of memory (ascending) that are below a stack pointer, if the stack is not itself a
	 * block of the heap: the caller knows.
	 */
	VEC(struct root_range) below_stacks;
};

/*
 * Fills @out (which roots_free frees) for @s, whose threads are stopped. -errno when its
 * memory cannot be listed any more.
 */
int roots_collect(struct target *t, struct address_space *s, struct roots **out);

/* The same, but for memory alone, and @s may run: it is as large as that now. */
int roots_list(const struct address_space *s, struct roots **out);

void roots_free(struct roots *r); /* may be NULL */

/* Reads target memory through @ctx, a struct roots: a pointer_read_fn, for any thread. */
ssize_t roots_read(void *ctx, taddr_t addr, void *buf, size_t size);

/*
 * @th stops for the last time. Notes what it holds if it is made to exit by the end of its
 * process; the last one of a space gives the sink its last look.
 */
void roots_serve_exit(struct target *t, struct thread *th);
/* @p has ended: frees what was noted of its threads. */
void roots_forget_exits(struct process *p);

#endif
