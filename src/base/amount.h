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

static inline double amount_percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

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

/* "12 bytes", "51.1 MiB (53,582,233 bytes)". The caller frees it. */
char *amount_exact(double bytes);

/* An age: of a number of seconds, or of a share of a run. The other is 0. */
struct amount_age {
	double seconds, percent;
};

/* Of "2.5", "2.5s", "300ms", "10m", "1h", "2d" or "40%" (up to 100). False: it is no such text. */
bool amount_parse_age(const char *text, struct amount_age *out);

/*
 * The number at @text, of digits with one point at most: the end, or NULL if it is none. @text
 * begins with a digit.
 */
const char *amount_parse(const char *text, double *out);
/* Multiplies *@value by a power of @base for K, M, G or T at @text. The end; @text: no unit. */
const char *amount_parse_unit(const char *text, double base, double *value);

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
