/* Reads and writes the memory of a tracee. */
#ifndef PTMEM_TRACEE_STATE_SPACE_MEMORY_H
#define PTMEM_TRACEE_STATE_SPACE_MEMORY_H

#include <stddef.h>
#include <sys/types.h>
#include "base/types.h"

struct address_space;
struct stub_area;

/* A descriptor of the memory of @pid, or -errno. */
int space_open_memory(pid_t pid);

/* Reads or writes target memory. Writes are all or nothing; a read returns the number of bytes that
 * could be read from the start (>= 0) or -errno. */
ssize_t space_read_some(const struct address_space *s, taddr_t addr, void *buf, size_t size);
int space_read(const struct address_space *s, taddr_t addr, void *buf, size_t size);
/*
 * Whether a stack whose top is @sp still holds @want at @at: the call that pushed it has not
 * returned.
 */
bool space_holds_above(const struct address_space *s, taddr_t sp, taddr_t at, uint64_t want);
/*
 * What goes to an area of ptmem's code is kept, to be written again if the program unmaps it. If it
 * has already, this only keeps it: the program's own memory may be there.
 */
int space_write(const struct address_space *s, taddr_t addr, const void *buf, size_t size);
/*
 * Whether the @size bytes at @at, of @a, can be read and are what was written there: 1, 0, or
 * -ESRCH if the process has no memory any more.
 */
int space_holds_code(const struct address_space *s, const struct stub_area *a, taddr_t at,
		     size_t size);
/* Writes all of @a, which was mapped anew. 0 or -errno. */
int space_rewrite_code(const struct address_space *s, const struct stub_area *a);

#endif
