/*
 * Which pages a process has touched, read or written, for a time. The kernel counts accessed pages
 * for each mapping (tracee/os/accessed.h); where some of a mapping's were accessed, it is split, so
 * that the parts are counted: by madvise(2) with advice that only matters for files, which makes
 * neighbours different mappings. The parts are joined again at once. If ptmem dies in between, they
 * stay apart, which only counts for the limit of mappings.
 */
#ifndef PTMEM_TRACEE_INJECT_TOUCHED_PAGES_H
#define PTMEM_TRACEE_INJECT_TOUCHED_PAGES_H

#include "base/types.h"

struct address_space;
struct target;
struct touched_pages;

/*
 * The time begins: @s is guarded, or ends with ptmem; its threads are stopped. -ENOTSUP where calls
 * cannot be injected without risk, or another -errno.
 */
int touched_pages_begin(struct target *t, struct address_space *s);
/*
 * It ends: the same, and nothing of the process's memory was read yet but stacks. Takes @most_ns
 * and little more; then the rest is not sure. Free @out with touched_pages_deinit.
 */
int touched_pages_find(struct target *t, struct address_space *s, uint64_t most_ns,
		       struct touched_pages *out);

#endif
