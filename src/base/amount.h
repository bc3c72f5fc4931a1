/*
 * Numbers for display: thousands separated by commas, bytes in the largest binary unit that leaves
 * a number of at least 1, signals by name.
 */
#ifndef PTMEM_BASE_AMOUNT_H
#define PTMEM_BASE_AMOUNT_H

#include "base/types.h"

/*
 * Numbers for display: thousands separated by commas, bytes in the largest binary unit that leaves
 * a number of at least 1.
 */

#define AMOUNT_SIZE 32

/* Each fills @out and returns it, so that calls can be arguments of a format. */

/* "1,234,567" */
const char *amount_commas(uint64_t n, char out[static AMOUNT_SIZE]);
/* "51.1 MiB", "12 B"; at most 10 characters. */
const char *amount_bytes(double bytes, char out[static AMOUNT_SIZE]);
/* The same with its sign: "+51.1 MiB", "-12 B", "0 B". */
const char *amount_change(double bytes, char out[static AMOUNT_SIZE]);

/*
 * The standard error @error of the estimate @bytes, to be printed after it: " +- 10 %". "" if
 * @bytes is 0, or not an estimate (@error is 0).
 */
const char *amount_error(double bytes, double error, char out[static AMOUNT_SIZE]);

/* "s" unless @n is 1. */
static inline const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

/* Names of signals for messages. */

#define SIGNAL_NAME_SIZE 32

/* "SIGSEGV", or "signal 40"; fills @out and returns it. */
const char *signal_name(int number, char out[static SIGNAL_NAME_SIZE]);

#endif
