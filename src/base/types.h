/*
 * Basic types and macros. An address in the traced program is a taddr_t, never a pointer, so that
 * it cannot be dereferenced by mistake.
 */
#ifndef PTMEM_BASE_TYPES_H
#define PTMEM_BASE_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef uint64_t taddr_t;

/* [start, end) */
struct addr_range {
	taddr_t start, end;
};

/* For qsort: structs that begin with an address, ascending. */
static inline int taddr_compare(const void *a, const void *b)
{
	const taddr_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static inline bool range_has(const struct addr_range *range, taddr_t addr)
{
	return addr >= range->start && addr < range->end;
}

static inline bool ranges_have(const struct addr_range *range, size_t count, taddr_t addr)
{
	for (size_t i = 0; i < count; i++)
		if (range_has(&range[i], addr))
			return true;
	return false;
}

/* The number at @p, which need not be aligned. */
static inline uint64_t load_u64(const void *p)
{
	uint64_t number;

	memcpy(&number, p, sizeof(number));
	return number;
}

static inline uint32_t load_u32(const void *p)
{
	uint32_t number;

	memcpy(&number, p, sizeof(number));
	return number;
}

/* Whether the @size bytes at @p, at least one, are zeros. */
static inline bool are_zeros(const void *p, size_t size)
{
	const uint8_t *byte = p;

	return *byte == 0 && memcmp(byte, byte + 1, size - 1) == 0;
}

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

#define ATTR_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define ATTR_NORETURN __attribute__((noreturn))
#define ATTR_UNUSED __attribute__((unused))

#define PAGE_SIZE_MIN 4096u

/* Rounds up or down to a multiple of a power of two. */
#define ROUND_DOWN(x, a) ((x) & ~((__typeof__(x))(a) - 1))
#define ROUND_UP(x, a) ROUND_DOWN((x) + ((__typeof__(x))(a) - 1), a)

#endif
