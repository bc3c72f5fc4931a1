/*
 * A fuzz program is one file fuzz_NAME.c with fuzz_seeds and fuzz_one; driver.c
 * has main, mutates the seeds and says which input broke it.
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

/* Good inputs to start from, at least one, the last has data NULL. */
extern const struct fuzz_seed fuzz_seeds[];

/* Takes in @size bytes at @data, as a file or line of that content. Must return, whatever they are. */
void fuzz_one(const uint8_t *data, size_t size);

#endif
