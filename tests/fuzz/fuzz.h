/*
 * A fuzz program is one file fuzz_NAME.c with fuzz_seeds and fuzz_one; driver.c
 * has main, mutates the seeds and prints the input that failed.
 */
#ifndef PTMEM_TESTS_FUZZ_H
#define PTMEM_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

struct fuzz_seed {
	const char *data;
	size_t size;
};

#define FUZZ_TEXT(text) {(text), sizeof(text) - 1}

/* Valid inputs to start from, at least one, the last has data NULL. */
extern const struct fuzz_seed fuzz_seeds[];

/* Processes @size bytes at @data as the contents of a file or line. Must return for any input. */
void fuzz_one(const uint8_t *data, size_t size);

#endif
