/*
 * The threads of a target: found by thread id, visited in the order in which they were added.
 *
 * A loop holds a cursor instead of an index, so that any thread, also the current one, may be
 * removed and others added while it runs. It visits each thread that is in the table all the time
 * exactly once, and those added meanwhile. (Serving one stop may end or start any thread.)
 */
#ifndef PTMEM_TRACEE_STATE_THREAD_TABLE_H
#define PTMEM_TRACEE_STATE_THREAD_TABLE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/vec.h"

struct address_space;
struct thread;

/* Of thread_table.c alone. Zeroed memory is an empty table; it does not own the threads. */
struct thread_table {
	struct thread **slots;      /* hash table by tid, linear probing; NULL = free */
	size_t capacity;            /* of slots: 0 or a power of two */
	VEC(struct thread *) order; /* ascending by serial number */
	uint64_t last_serial;
};

/* A place in a loop; zeroed = before the first thread. */
struct thread_cursor {
	uint64_t serial;            /* of the current thread, which may be removed; 0 = none */
	size_t hint;                /* where in order it was */
};

void thread_table_deinit(struct thread_table *table);
size_t thread_table_count(const struct thread_table *table);
/* The thread with @tid, or NULL. */
struct thread *thread_table_find(const struct thread_table *table, pid_t tid);
/* @th, whose tid is set and not in the table yet, becomes the last. */
void thread_table_add(struct thread_table *table, struct thread *th);
void thread_table_take(struct thread_table *table, const struct thread *th);
/* Moves @at to the next thread, which is returned; NULL at the end. */
struct thread *thread_table_next(const struct thread_table *table, struct thread_cursor *at);
/* The same, but only for threads of the address space @s. */
struct thread *thread_table_next_in(const struct thread_table *table, struct thread_cursor *at,
				    const struct address_space *s);

#endif
