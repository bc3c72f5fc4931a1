/*
 * What the counting shim (oracle.c) writes: one file for each address space,
 * DIR/oracle.PID.N, mapped and therefore up to date at any moment, whatever ends
 * the process. N counts the images that the process had (exec), from 0.
 * Readers: the driver (oracle.py), by this layout.
 */
#ifndef PTMEM_TESTS_ORACLE_H
#define PTMEM_TESTS_ORACLE_H

#include <stdint.h>

#define ORACLE_MAGIC 0x656c6361726f7031ull

/* The quantities of struct profile_totals, with its definitions. */
struct oracle_counts {
	uint64_t allocations;     /* blocks ever made */
	uint64_t reallocations;
	uint64_t frees;
	uint64_t allocated_bytes; /* as requested; realloc adds what it grew */
	uint64_t failed;          /* calls that gave no memory */
	uint64_t unknown_frees;
	uint64_t live_bytes, live_blocks;
	uint64_t peak_bytes;
};

struct oracle_page {
	uint64_t magic;
	uint64_t pid;
	uint64_t missed;          /* calls from a signal handler inside the shim: must be 0 */
	struct oracle_counts all;
	struct oracle_counts own; /* called from the executable's own code */
	struct oracle_counts since; /* of blocks made since the mark changed; older ones are unknown to it */
	uint64_t mark;            /* written by the reader to restart `since` */
};

#endif
