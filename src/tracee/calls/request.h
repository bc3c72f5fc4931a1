/* A client request of valgrind.h, decoded. Codes and arguments: doc/massif.md 3. */
#ifndef PTMEM_TRACEE_CALLS_REQUEST_H
#define PTMEM_TRACEE_CALLS_REQUEST_H

#include "base/types.h"

#define REQUEST_WORDS 6 /* words of a request's block: the code, then five arguments */

enum request_kind {
	REQUEST_NONE,            /* irrelevant for a profile: answered with its default */
	REQUEST_IS_RUNNING,      /* RUNNING_ON_VALGRIND */
	REQUEST_MONITOR,         /* text */
	REQUEST_ALLOC,           /* addr, size */
	REQUEST_FREE,            /* addr */
	REQUEST_RESIZE,          /* addr, size: the new one */
	REQUEST_POOL_CREATE,     /* pool, flags */
	REQUEST_POOL_DESTROY,    /* pool */
	REQUEST_POOL_ALLOC,      /* pool, addr, size */
	REQUEST_POOL_FREE,       /* pool, addr */
	REQUEST_POOL_TRIM,       /* pool, addr, size: what is outside ends */
	REQUEST_POOL_MOVE,       /* pool, addr: its new name */
	REQUEST_POOL_CHANGE,     /* pool, old_addr, addr, size */
	REQUEST_POOL_EXISTS,     /* pool */
};

#define REQUEST_POOL_AUTO_FREE 1u /* a flag: a block's end ends all blocks inside it */

struct request {
	uint8_t kind;            /* enum request_kind */
	taddr_t addr, old_addr, pool, text;
	uint64_t size, flags;
};

struct request request_decode(const uint64_t word[REQUEST_WORDS]);

static inline bool request_is_of_pool(const struct request *r)
{
	return r->kind >= REQUEST_POOL_CREATE;
}

#endif
