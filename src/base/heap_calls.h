/*
 * Calls of allocation functions, as all stages know them: which function, a plain call in compact
 * form, and exact totals by function.
 */
#ifndef PTMEM_BASE_HEAP_CALLS_H
#define PTMEM_BASE_HEAP_CALLS_H

#include "base/types.h"

/* Which function was called, as memusage's rows and reports distinguish them. */
enum heap_function {
	FUNCTION_NONE,
	FUNCTION_MALLOC,
	FUNCTION_CALLOC,
	FUNCTION_REALLOC,   /* realloc, reallocarray */
	FUNCTION_MEMALIGN,  /* memalign, posix_memalign, aligned_alloc, valloc, pvalloc */
	FUNCTION_NEW,
	FUNCTION_FREE,      /* free, cfree, free_sized, free_aligned_sized */
	FUNCTION_DELETE,
	FUNCTION_MMAP,
	FUNCTION_MUNMAP,
	FUNCTION_MREMAP,
	FUNCTION_BRK,
	FUNCTION_MINOR_FAULT,
	FUNCTION_MAJOR_FAULT,
	/* the program announced an allocation or free, or its own allocator (--probe) allocated */
	FUNCTION_REQUEST,
	/* its own allocator released blocks; an announced free counts as one, too */
	FUNCTION_RELEASE,
};

#define HEAP_FUNCTION_COUNT (FUNCTION_RELEASE + 1)

static inline bool heap_function_releases(unsigned function)
{
	return function == FUNCTION_FREE || function == FUNCTION_DELETE ||
	       function == FUNCTION_RELEASE;
}

/* As recordings name it; NULL if they do not. */
static inline const char *heap_function_name(unsigned function)
{
	static const char *const names[HEAP_FUNCTION_COUNT] = {
		[FUNCTION_MALLOC] = "malloc",
		[FUNCTION_CALLOC] = "calloc",
		[FUNCTION_REALLOC] = "realloc",
		[FUNCTION_MEMALIGN] = "memalign",
		[FUNCTION_NEW] = "operator new",
		[FUNCTION_FREE] = "free",
		[FUNCTION_DELETE] = "operator delete",
		[FUNCTION_REQUEST] = "client request",
		[FUNCTION_RELEASE] = "own free",
	};

	return names[function];
}

/*
 * Plain allocations and frees, which are nearly all events, in a compact form that is passed in
 * batches from the ring reader to the code that counts them.
 */

struct quick_event {
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	taddr_t addr;
	uint64_t size;    /* bytes requested by an allocation without alignment */
	taddr_t sp;       /* stack pointer in the caller; 0 = not requested */
	union {
		struct {
			/* of an allocation's stack in the call tree; 0: stacks are not recorded */
			uint32_t node;
			/* set only with event_options.quick_threads, or together with sp */
			uint32_t thread;
		};
		uint64_t node_alone; /* the thread is 0 */
	};
	union {
		struct {
			bool is_free;     /* not set for an inner free */
			uint8_t function; /* enum heap_function */
			uint16_t slot;    /* of its thread */
		};
		uint32_t kind;            /* quick_kind */
	};
};

/* Stores are what limits the ring reader: these are one, instead of three. */
static inline uint32_t quick_kind(bool is_free, uint8_t function, uint16_t slot)
{
	_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the order of the members");
	return (uint32_t)is_free | (uint32_t)function << 8 | (uint32_t)slot << 16;
}

/*
 * Exact totals of a sampled profile: calls and requested bytes by function, whether or not a call
 * was a sample. Failed calls and free(NULL) are counted, calls inside another watched call are not.
 * A realloc counts with its new size, and a size that no object can have as 0 bytes.
 *
 * Pads count in memory that the program can overwrite. If it is known to have done so, the totals
 * are marked as unreliable.
 *
 * Profiles without samples use only the events that are missing from them.
 */

/* Events that are not in the profile, since rings were full. Bytes of samples are weighted. */
struct lost_events {
	uint64_t allocations, bytes, releases;
	bool has_unsure; /* releases that may be others' are missing, too, and not counted */
};

struct call_totals {
	struct call_total {
		uint64_t calls, bytes;
	} function[HEAP_FUNCTION_COUNT];
	struct lost_events lost;
	bool is_doubtful;
};

/*
 * Counts a call of @function that requests @bytes, or that releases a block. A size that no object
 * can have counts 0 bytes.
 */
static inline void call_totals_count(struct call_totals *t, uint8_t function, bool releases,
				     uint64_t bytes)
{
	bool is_announced_free = releases && function == FUNCTION_REQUEST;
	struct call_total *total = &t->function[is_announced_free ? FUNCTION_RELEASE : function];

	total->calls++;
	if (!releases && bytes <= PTRDIFF_MAX)
		total->bytes += bytes;
}

/* Sums of the functions that allocate, and of those that release. */
struct call_sums {
	uint64_t allocations, bytes, frees;
};

static inline struct call_sums call_totals_sums(const struct call_totals *t)
{
	struct call_sums sums = {0};

	for (unsigned i = 0; i < HEAP_FUNCTION_COUNT; i++) {
		*(heap_function_releases(i) ? &sums.frees : &sums.allocations) +=
			t->function[i].calls;
		sums.bytes += t->function[i].bytes;
	}
	return sums;
}

/* How reliable the totals are, for display. */
static inline const char *call_totals_trust(bool is_doubtful)
{
	return is_doubtful ? "counted in memory that the program overwrote" : "counted exactly";
}

/* What @frees counts, for display: unlike those of a profile without samples it is no blocks. */
static inline const char *call_totals_frees(uint64_t frees)
{
	return frees == 1 ? "call of free or delete, also of NULL" :
			    "calls of free or delete, also of NULL";
}

#endif
