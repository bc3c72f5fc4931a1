/*
 * Free chunks that their heap marks as in use (in threads' caches and fastbins), and those on the
 * unsorted lists.
 *
 * A thread's cache (struct tcache_perthread_struct) is a chunk of its own; the only pointer to it
 * is a thread-local variable, at the same distance from the thread pointer in all threads:
 *
 *	         to 2.29        since 2.30       since 2.42
 *	counts   char[64]       uint16_t[64]     uint16_t[76]: blocks that may still be added
 *	entries  at 64: [64]    at 128: [64]     at 152: [76]   the first block of each list
 *
 * List i holds chunks of 32 + 16 i bytes; list 64 + n, since 2.42, those of 2^(10+n) to 2^(11+n)
 * bytes that are too large for the others. Since 2.43, the variable of a thread without a cache
 * points to constants of the library's. The first word of a block points to the next one. Since
 * 2.32 that word is xor'ed with its own address >> 12, also in fastbins.
 */
#ifndef PTMEM_INSPECT_GLIBC_LISTS_H
#define PTMEM_INSPECT_GLIBC_LISTS_H

#include <sys/types.h>

#include "inspect/glibc.h"

enum glibc_list { GLIBC_TCACHE, GLIBC_FASTBIN, GLIBC_UNSORTED, GLIBC_TCACHE_ITSELF };

#define THREAD_INTERRUPTED 4u

struct glibc_thread {
	pid_t tid;
	taddr_t sp, thread_pointer;
	/* stack pointers of code that signal handlers on its stacks interrupted, innermost first */
	taddr_t interrupted[THREAD_INTERRUPTED];
	uint32_t interrupted_count;
	bool is_inside;         /* the thread is inside malloc */
};

/* A chunk on a list. */
struct glibc_listed {
	taddr_t chunk;
	uint64_t size;
	uint32_t list;          /* enum glibc_list */
};

struct glibc_lists {
	VEC(struct glibc_listed) chunks; /* ascending */
	uint32_t caches;        /* threads that have a cache */
	uint32_t broken;        /* lists that leave the heaps or do not end; skipped */
};

/* Follows all lists of @g, and finds the caches of the @count threads at @thread. */
void glibc_lists_read(struct inspect_memory *m, const struct glibc *g,
		      const struct glibc_thread *thread, size_t count, struct glibc_lists *out);
void glibc_lists_deinit(struct glibc_lists *l);

/*
 * The address where the thread-local variables of the program and its libraries begin; they end at
 * @thread_pointer. Returns @thread_pointer if unknown.
 */
taddr_t glibc_tls_start(struct inspect_memory *m, taddr_t thread_pointer);

#endif
