/*
 * The threads of a target: found by thread id, visited in the order in which they were added.
 *
 * A loop holds a cursor instead of an index, so that any thread, also the current one, may be
 * removed and others added while it runs. It visits each thread that stays in the table exactly
 * once, and those added meanwhile. (Handling one stop may end or start any thread.)
 */
#ifndef PTMEM_TRACEE_STATE_THREAD_TABLE_H
#define PTMEM_TRACEE_STATE_THREAD_TABLE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/vec.h"

struct address_space;
struct thread;

/* Private to thread_table.c. All zeros: an empty table. It does not own the threads. */
struct thread_table {
	struct thread **slots;      /* hash table by tid, linear probing; NULL = free */
	size_t capacity;            /* number of slots: 0 or a power of two */
	VEC(struct thread *) order; /* ascending by serial number */
	uint64_t last_serial;
};

/* Position of a loop; all zeros = before the first thread. */
struct thread_cursor {
	uint64_t serial;            /* of the current thread, which may be removed; 0 = none */
	size_t hint;                /* its last index in order */
};

void thread_table_deinit(struct thread_table *table);
size_t thread_table_count(const struct thread_table *table);
/* The thread with @tid, or NULL. */
struct thread *thread_table_find(const struct thread_table *table, pid_t tid);
/* Appends @th, whose tid is set and not in the table yet. */
void thread_table_add(struct thread_table *table, struct thread *th);
void thread_table_take(struct thread_table *table, const struct thread *th);
/* Advances @at and returns the next thread; NULL at the end. */
struct thread *thread_table_next(const struct thread_table *table, struct thread_cursor *at);
/* The same for threads of the address space @s only. */
struct thread *thread_table_next_in(const struct thread_table *table, struct thread_cursor *at,
				    const struct address_space *s);

#endif
