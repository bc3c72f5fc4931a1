/*
 * Programs that count their own allocations: every target allocates through these wrappers, which
 * count by the definitions of profile_totals, and prints the totals at its end. No stdio: that
 * would allocate.
 *
 *	expect: allocations=N reallocations=N frees=N bytes=B failed=N live=B blocks=N peak=B|-
 *
 * goes to the file named by TRUTH (appended), or to standard output. peak is - if it depends on the
 * order of threads. Checks that a target makes itself end in `CHECK`, which prints what was wrong
 * and leaves with status 90. The wrappers are inlined: the caller of malloc is the function that
 * uses them.
 */
#ifndef TRUTH_H
#define TRUTH_H

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <malloc.h>

#include "noinline.h"

#define INLINE static inline __attribute__((always_inline, unused))
#define UNUSED __attribute__((unused))

struct truth {
	uint64_t allocations, reallocations, frees, bytes, failed, live, blocks, peak;
	int has_threads;
};

static struct truth truth;

#define TRUTH_ADD(field, n) __atomic_add_fetch(&truth.field, n, __ATOMIC_RELAXED)

INLINE void truth_live(int64_t bytes, int blocks)
{
	uint64_t live = TRUTH_ADD(live, bytes);

	TRUTH_ADD(blocks, blocks);
	if (bytes > 0)
		TRUTH_ADD(bytes, bytes);
	if (!truth.has_threads && live > truth.peak)
		truth.peak = live;
}

INLINE void *truth_made(void *p, uint64_t size)
{
	/* The compiler must not know that the block is unused, or fresh. */
	__asm__ volatile("" : "+r"(p) : : "memory");
	if (!p) {
		TRUTH_ADD(failed, 1);
		return p;
	}
	TRUTH_ADD(allocations, 1);
	truth_live((int64_t)size, 1);
	return p;
}

INLINE void truth_gone(uint64_t size)
{
	TRUTH_ADD(frees, 1);
	truth_live(-(int64_t)size, -1);
}

INLINE void *t_malloc(size_t size)
{
	return truth_made(malloc(size), size);
}

INLINE void *t_calloc(size_t n, size_t size)
{
	return truth_made(calloc(n, size), n * size);
}

INLINE void *t_memalign(size_t align, size_t size)
{
	return truth_made(memalign(align, size), size);
}

INLINE void *t_aligned_alloc(size_t align, size_t size)
{
	return truth_made(aligned_alloc(align, size), size);
}

INLINE void *t_posix_memalign(size_t align, size_t size)
{
	void *p = NULL;
	int error = posix_memalign(&p, align, size);

	return truth_made(error ? NULL : p, size);
}

INLINE void t_free(void *p, uint64_t size)
{
	if (p)
		truth_gone(size);
	__asm__ volatile("" : "+r"(p) : : "memory");
	free(p);
}

INLINE void *truth_moved(void *old, uint64_t old_size, void *p, uint64_t size)
{
	__asm__ volatile("" : "+r"(p) : : "memory");
	if (!old)
		return truth_made(p, size);
	if (p) {
		TRUTH_ADD(reallocations, 1);
		truth_live((int64_t)(size - old_size), 0);
	} else if (size) {
		TRUTH_ADD(failed, 1);
	} else {
		truth_gone(old_size);
	}
	return p;
}

INLINE void *t_realloc(void *old, uint64_t old_size, size_t size)
{
	/* Hidden, so that the compiler accepts a use after the call. */
	uintptr_t hidden = (uintptr_t)old;

	__asm__ volatile("" : "+r"(hidden));
	return truth_moved((void *)hidden, old_size, realloc(old, size), size);
}

#ifndef __cplusplus
INLINE void *t_reallocarray(void *old, uint64_t old_size, size_t n, size_t size)
{
	uintptr_t hidden = (uintptr_t)old;
	size_t total;

	__asm__ volatile("" : "+r"(hidden));
	if (__builtin_mul_overflow(n, size, &total))
		total = SIZE_MAX;
	return truth_moved((void *)hidden, old_size, reallocarray(old, n, size), total);
}
#endif

/* ---- printing ---- */

struct text {
	char s[1024];
	size_t n;
};

static UNUSED void text_add(struct text *t, const char *s)
{
	while (*s && t->n < sizeof(t->s))
		t->s[t->n++] = *s++;
}

static UNUSED void text_number(struct text *t, const char *label, uint64_t n)
{
	char digits[24];
	int i = sizeof(digits) - 1;

	digits[i] = 0;
	do
		digits[--i] = (char)('0' + n % 10);
	while (n /= 10);
	text_add(t, label);
	text_add(t, digits + i);
}

/* Appends one line to the file of TRUTH, or writes it to standard output. */
static UNUSED void truth_write(struct text *t)
{
	const char *name = getenv("TRUTH");
	int fd = name ? open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : STDOUT_FILENO;

	text_add(t, "\n");
	if (write(fd, t->s, t->n) != (ssize_t)t->n)
		_exit(91);
	if (name)
		close(fd);
}

static UNUSED void truth_report(void)
{
	struct text t = { { 0 }, 0 };

	text_number(&t, "expect: allocations=", truth.allocations);
	text_number(&t, " reallocations=", truth.reallocations);
	text_number(&t, " frees=", truth.frees);
	text_number(&t, " bytes=", truth.bytes);
	text_number(&t, " failed=", truth.failed);
	text_number(&t, " live=", truth.live);
	text_number(&t, " blocks=", truth.blocks);
	if (truth.has_threads)
		text_add(&t, " peak=-");
	else
		text_number(&t, " peak=", truth.peak);
	truth_write(&t);
}

/* States that @bytes were allocated below the functions @names, "main>f>g". */
static UNUSED void truth_path(const char *names, uint64_t bytes)
{
	struct text t = { { 0 }, 0 };

	text_add(&t, "path: ");
	text_add(&t, names);
	text_number(&t, " bytes=", bytes);
	truth_write(&t);
}

static UNUSED void check_failed(const char *file, unsigned line, const char *what)
{
	struct text t = { { 0 }, 0 };
	int saved = errno;

	text_add(&t, file);
	text_number(&t, ":", line);
	text_add(&t, ": CHECK failed: ");
	text_add(&t, what);
	text_number(&t, " errno=", (uint64_t)saved);
	text_add(&t, "\n");
	if (write(STDERR_FILENO, t.s, t.n) < 0)
		_exit(91);
	_exit(90);
}

#define CHECK(cond) ((cond) ? (void)0 : check_failed(__FILE__, __LINE__, #cond))

static UNUSED void print_ok(void)
{
	CHECK(write(STDOUT_FILENO, "OK\n", 3) == 3);
}

/* ---- pseudo-random numbers: the same in every build ---- */

static UNUSED uint32_t random_next(uint64_t *state)
{
	uint64_t x = *state;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	*state = x;
	return (uint32_t)(x >> 32);
}

static UNUSED uint64_t argument(int argc, char **argv, int i, uint64_t otherwise)
{
	return argc > i ? strtoull(argv[i], NULL, 0) : otherwise;
}

#endif
