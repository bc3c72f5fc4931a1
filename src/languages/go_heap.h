/*
 * The heap profile that Go programs keep of themselves, read from outside: the numbers that
 * runtime/pprof would write at the same moment. Go's runtime samples allocations, one per
 * MemProfileRate bytes on average, and counts them and their releases in a bucket for each path of
 * calls and size of object.
 *
 *	runtime.mbuckets -> bucket -> bucket -> ...
 *	                    next of its hash | next of all | kind | hash | size | n | n addresses
 *	                    | published counts | 3 * counts of collections to come
 *
 * What a bucket publishes is as of the last completed collection; runtime/mprof.go explains the
 * three others. In Go 1.16 to 1.26 this is the same.
 *
 * Everything that is read is untrusted. Executes nothing in the program.
 */
#ifndef PTMEM_LANGUAGES_GO_HEAP_H
#define PTMEM_LANGUAGES_GO_HEAP_H

#include "base/elf_file.h"
#include "base/go_table.h"
#include "languages/virtual_frames.h"

/* Where a program has it: addresses in its file. */
struct go_heap_places {
	uint64_t buckets;      /* runtime.mbuckets; 0 = unknown */
	uint64_t cycle;        /* runtime.mProfCycle, before Go 1.19 runtime.mProf */
	uint64_t rate;         /* runtime.MemProfileRate */
	uint64_t lock;         /* runtime.profMemActiveLock, before Go 1.19 runtime.proflock */
	unsigned cycle_shift;  /* the cycle's lowest bit */
};

/*
 * Finds them by symbols; in a stripped program by the code that uses them. False if @file is no Go
 * program, or one that does not say. Reads the whole symbol table.
 */
bool go_heap_find(struct elf_file *file, struct go_heap_places *out);

/* Sampled objects, not scaled. */
struct go_counts {
	uint64_t allocated, freed, allocated_bytes, freed_bytes;
};

struct go_bucket {
	struct go_counts counts;
	uint64_t size;             /* of an object, bytes */
	uint32_t pc, pcs;          /* in go_heap.pcs: return addresses, innermost first */
};

struct go_heap {
	VEC(struct go_bucket) buckets; /* with counts that are not all 0 */
	VEC(taddr_t) pcs;
	uint64_t rate;             /* bytes; 0: nothing is sampled */
	bool is_torn;              /* a thread was changing it */
	bool is_cut;               /* a bucket made no sense: those after it are missing */
};

/* @bias: of the program's file. False if not even the first words could be read. */
bool go_heap_read(const struct language_memory *m, const struct go_heap_places *places,
		  uint64_t bias, struct go_heap *out);
void go_heap_deinit(struct go_heap *h);

/*
 * Whether @addr is where Go's allocator maps its heap, in which are also the stacks of goroutines,
 * and those of threads that Go itself created.
 */
bool go_heap_may_have(taddr_t addr);

/* Estimated from samples, as runtime/pprof scales them. */
struct go_estimate {
	int64_t allocated, allocated_bytes, live, live_bytes;
};

/* As runtime/pprof computes it. */
struct go_estimate go_heap_estimate(const struct go_counts *c, uint64_t rate);

#endif
