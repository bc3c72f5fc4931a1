/*
 * Chunks that are free although the heap does not show it (in threads' caches and fastbins), and
 * those of the unsorted lists.
 *
 * A thread's cache (struct tcache_perthread_struct) is a chunk of its own; the only pointer to it
 * is a variable of the thread's, at the same distance from the thread pointer in all threads:
 *
 *	         to 2.29        since 2.30
 *	counts   char[64]       uint16_t[64]
 *	entries  at 64: [64]    at 128: [64]     the first block of each list
 *
 * Blocks of list i are of chunks of 32 + 16 i bytes. A block's first word leads to the next one;
 * since 2.32 it is xor'ed with its own address >> 12, in fastbins, too.
 */
#ifndef PTMEM_INSPECT_GLIBC_LISTS_H
#define PTMEM_INSPECT_GLIBC_LISTS_H

#include <sys/types.h>

#include "inspect/glibc.h"

enum glibc_list { GLIBC_TCACHE, GLIBC_FASTBIN, GLIBC_UNSORTED, GLIBC_TCACHE_ITSELF };

struct glibc_thread {
	pid_t tid;
	taddr_t sp, thread_pointer;
	bool is_inside;         /* in a function of malloc's */
};

/* A chunk on a list. */
struct glibc_listed {
	taddr_t chunk;
	uint64_t size;
	uint32_t list;          /* enum glibc_list */
};

struct glibc_lists {
	VEC(struct glibc_listed) chunks; /* ascending */
	uint32_t caches;        /* threads that have one */
	uint32_t broken;        /* lists that lead elsewhere or do not end: not taken */
};

/* Follows all lists of @g, and finds the caches of @thread (@count). */
void glibc_lists_read(struct inspect_memory *m, const struct glibc *g,
		      const struct glibc_thread *thread, size_t count, struct glibc_lists *out);
void glibc_lists_deinit(struct glibc_lists *l);

/*
 * Where the variables begin that the program and its libraries have in the thread of
 * @thread_pointer, which is after them; @thread_pointer if that is unknown.
 */
taddr_t glibc_tls_start(struct inspect_memory *m, taddr_t thread_pointer);

#endif
