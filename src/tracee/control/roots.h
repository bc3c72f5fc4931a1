/*
 * The roots of a leak check: the registers of a space's threads, and the memory that they can write
 * to, or could until their objects were relocated.
 *
 * Memory that cannot hold a pointer of the program is excluded: everything below a stack pointer,
 * stacks of ended threads, pages that were never written, mapped devices, ptmem's own pages.
 */
#ifndef PTMEM_TRACEE_CONTROL_ROOTS_H
#define PTMEM_TRACEE_CONTROL_ROOTS_H

#include <sys/types.h>

#include "base/alloc.h"
#include "base/types.h"
#include "tracee/state/heap_event.h"

struct address_space;
struct process;
struct resident;
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
	pid_t reader;                       /* a thread for reading the memory */
	VEC(uint64_t) words;                /* words of all registers, vector registers included */
	VEC(taddr_t) stack_tops;            /* the lowest address in use on each thread's stack */
	VEC(struct root_thread) threads;    /* whose registers these are */
	/* to be scanned; ascending, whole pages except for stacks */
	VEC(struct root_range) memory;
	VEC(struct root_range) data;        /* of the program and its libraries; parts of memory */
	VEC(struct root_range) dead_stacks; /* of ended threads; parts of memory, ascending */
	/*
	 * Parts of memory (ascending) below a stack pointer, unless the stack is itself a heap
	 * block: the caller knows that.
	 */
	VEC(struct root_range) below_stacks;
};

/*
 * Fills @out for @s, whose threads are stopped; free it with roots_free. @pages: all of its pages,
 * NULL = they are found by its page tables, which takes longer the more there are. -errno if its
 * memory cannot be listed any more.
 */
int roots_collect(struct target *t, struct address_space *s, const struct resident *pages,
		  struct roots **out);

/* The same without any memory: words, stack_tops and threads. */
struct roots *roots_collect_words(struct target *t, const struct address_space *s);

/* Only the current ranges of memory; @s may be running. */
int roots_list(const struct address_space *s, struct roots **out);

void roots_free(struct roots *r); /* may be NULL */

/* Reads target memory; @ctx is a struct roots. A memory_read_fn for any thread. */
ssize_t roots_read(void *ctx, taddr_t addr, void *buf, size_t size);

/*
 * @th is at its last stop. Saves its registers if the end of its process makes it exit; the last
 * thread of a space triggers the sink's final scan.
 */
void roots_serve_exit(struct target *t, struct thread *th);
/*
 * The same for @th, whose exit stop was missed: it was killed before it could run on after it was
 * last resumed.
 */
void roots_serve_missed_exit(struct target *t, struct thread *th);
/* @p has ended: frees the saved registers of its threads. */
void roots_forget_exits(struct process *p);

/*
 * Stacks of threads that have ended. glibc keeps them mapped for reuse, with stale contents and
 * thread-local variables that nothing refers to any more. Internal to src/tracee.
 */

/* The remains of a thread in the last page of its stack. */
struct dead_stack {
	taddr_t kept_start, kept_end; /* bounds of the descriptor, which the library still uses */
};

/*
 * Whether the mapping [@start, @end) is the stack of a thread that has ended. @page: the mapping's
 * last PAGE_SIZE_MIN bytes.
 */
bool dead_stack_check(taddr_t start, taddr_t end, const uint64_t *page, struct dead_stack *out);

/* The threads of a stopped process with what unwinders need. */

struct thread_view {
	pid_t tid;
	taddr_t pc, sp, thread_pointer;
	/* in a watched function entered by a breakpoint, whose event is not counted yet */
	bool has_call;
	bool has_returned;              /* from such a call, still in its stub: it is complete */
	taddr_t delete_return; /* of entry_delete_return (calls.h) or pads_delete_return */
	const struct stack_view *stack; /* valid during the call; NULL: the thread is exiting */
};

/*
 * Calls @fn for each thread of @s; all are stopped. For threads that exit with their process the
 * position before the exit is known (watch_options.final_scan).
 */
void thread_views_each(struct target *t, struct address_space *s,
		       void (*fn)(void *ctx, const struct thread_view *view), void *ctx);

#endif
