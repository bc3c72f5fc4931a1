/*
 * CASE=NAME massif_cases: small programs like those of Massif's own tests, one for each case. All
 * use sizes that Valgrind's allocator does not round up (doc/massif.md 2.5). The case is passed in
 * the environment because Valgrind takes an argc other than 1 for a return address below ld.so.
 */
#include <string.h>

#include "truth.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Four wrappers around malloc, used from different depths. */
NOINLINE static void *a1(size_t n) { void *p = malloc(n); NO_TAIL_CALL(); return p; }
NOINLINE static void *a2(size_t n) { void *p = a1(n); NO_TAIL_CALL(); return p; }
NOINLINE static void *a3(size_t n) { void *p = a2(n); NO_TAIL_CALL(); return p; }
NOINLINE static void *a4(size_t n) { void *p = a3(n); NO_TAIL_CALL(); return p; }
NOINLINE static void *b1(size_t n) { void *p = calloc(1, n); NO_TAIL_CALL(); return p; }
NOINLINE static void *b2(size_t n) { void *p = b1(n); NO_TAIL_CALL(); return p; }
NOINLINE static void *c1(void *q, size_t n) { void *p = realloc(q, n); NO_TAIL_CALL(); return p; }

static void wrappers(void)
{
	void *p[7] = {a1(400), a2(432), a3(464), a4(496), b1(528), b2(560), c1(NULL, 592)};

	p[0] = c1(p[0], 800);
	for (size_t i = 0; i < COUNT(p); i++)
		free(p[i]);
}

NOINLINE static void *recurse(int n)
{
	void *p = n > 0 ? recurse(n - 1) : malloc(400);

	NO_TAIL_CALL();
	return p;
}

static void recursion(void)
{
	void *p[4] = {recurse(12), recurse(3), recurse(12), recurse(60)};

	for (size_t i = 0; i < COUNT(p); i++)
		free(p[i]);
}

/* Each free is a new peak: freed memory is allocated again, and more. */
static void peaks(void)
{
	void *held[20];

	for (int i = 0; i < 20; i++) {
		held[i] = malloc(100 * 32);
		free(malloc(50 * 32 * (size_t)(i + 1)));
	}
	for (int i = 0; i < 20; i++)
		free(held[i]);
}

static void waves(void)
{
	void *p[50];

	for (int round = 0; round < 6; round++) {
		for (int i = 0; i < 50; i++)
			p[i] = i % 2 ? a1(32 * (size_t)(1 + i % 7)) : b1(64);
		for (int i = 0; i < 50; i++)
			free(p[i]);
	}
}

static inline __attribute__((always_inline)) void *inner(size_t n) { return malloc(n); }
static inline __attribute__((always_inline)) void *middle(size_t n) { return inner(n); }
NOINLINE static void *outer_inlined(size_t n) { void *p = middle(n); NO_TAIL_CALL(); return p; }

static void inlined(void)
{
	void *p[5] = {outer_inlined(96), inner(160), middle(224), outer_inlined(288), a1(352)};

	for (size_t i = 0; i < COUNT(p); i++)
		free(p[i]);
}

static void zero(void)
{
	free(malloc(0));
	void *p = malloc(0), *q = calloc(0, 7), *r = realloc(NULL, 0);

	free(NULL);
	free(p);
	free(q);
	free(r);
}

static void large(void)
{
	void *p[6];

	for (size_t i = 0; i < COUNT(p); i++)
		p[i] = malloc(10 << 20);
	for (size_t i = 0; i < COUNT(p); i++)
		free(p[i]);
}

/* Exceeds 2^32 bytes of time. */
static void long_time(void)
{
	for (int i = 0; i < 450; i++) {
		void *p = malloc(10 << 20), *q = a2(96);

		free(p);
		free(q);
	}
}

static void huge(void)
{
	void *p = malloc(5ull << 30), *q = malloc(96);

	free(q);
	free(p);
}

/* Shares of 1 %, 4 %, 5 %, 9 %, 10 % and more, for thresholds. */
NOINLINE static void *share_1(void) { void *p = malloc(320); NO_TAIL_CALL(); return p; }
NOINLINE static void *share_4(void) { void *p = malloc(1280); NO_TAIL_CALL(); return p; }
NOINLINE static void *share_5(void) { void *p = malloc(1600); NO_TAIL_CALL(); return p; }
NOINLINE static void *share_9(void) { void *p = malloc(2880); NO_TAIL_CALL(); return p; }
NOINLINE static void *share_10(void) { void *p = malloc(3200); NO_TAIL_CALL(); return p; }
NOINLINE static void *share_rest(void) { void *p = malloc(22720); NO_TAIL_CALL(); return p; }

static void shares(void)
{
	void *(*const share[])(void) = {share_1, share_4, share_5, share_9, share_10, share_rest};
	void *p[COUNT(share)];

	for (size_t i = 0; i < COUNT(share); i++)
		p[i] = share[i]();
	for (size_t i = 0; i < COUNT(share); i++)
		free(p[i]);
}

NOINLINE static void *quiet(size_t n) { void *p = malloc(n); NO_TAIL_CALL(); return p; }
NOINLINE static void *quiet_resize(void *q, size_t n) { void *p = realloc(q, n); NO_TAIL_CALL(); return p; }

/* Blocks that move from counted to ignored functions, and stay where they were ignored. */
static void ignored(void)
{
	void *p = quiet(96), *q = a1(160), *r = a1(992);

	p = quiet_resize(p, 224);
	q = quiet_resize(q, 96);
	r = quiet_resize(r, 1984);
	void *s = a1(480);

	free(p);
	free(q);
	free(r);
	free(s);
}

static void resizes(void)
{
	void *p = malloc(800), *q = calloc(3, 32);

	for (size_t n = 0; n < 9; n++) {
		p = realloc(p, 32 * (1 + n * 7 % 10));
		q = c1(q, 32 * (1 + n * 3 % 10));
	}
	free(p);
	free(reallocarray(NULL, 3, 32));
}

static void sizes(void)
{
	void *p = malloc(800);

	p = realloc(p, 400);
	p = realloc(p, 800);
	p = realloc(p, 1600);
	p = realloc(p, 96);
	p = realloc(p, 96);
	p = realloc(p, 0);
	void *q = NULL;

	free(posix_memalign(&q, 16, 96) ? NULL : q);
	free(aligned_alloc(16, 160));
	free(reallocarray(NULL, 3, 32));
	for (int i = 0; i < 2; i++)
		free(strdup("a string of some length, 47 bytes with its end"));
}

__attribute__((constructor)) static void before_main(void)
{
	free(malloc(224));
}

static void at_end(void)
{
	free(malloc(288));
}

static void around_main(void)
{
	atexit(at_end);
}

int main(void)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} cases[] = {
		{"wrappers", wrappers}, {"recursion", recursion}, {"peaks", peaks}, {"waves", waves},
		{"inlined", inlined}, {"zero", zero}, {"large", large}, {"long_time", long_time}, {"huge", huge},
		{"shares", shares}, {"ignored", ignored}, {"sizes", sizes}, {"resizes", resizes}, {"around_main", around_main},
	};

	const char *wanted = getenv("CASE");

	for (size_t i = 0; wanted && i < COUNT(cases); i++) {
		if (strcmp(wanted, cases[i].name) == 0) {
			cases[i].run();
			return 0;
		}
	}
	return 1;
}
