/*
 * CASE=NAME massif_cases_functions: as massif_cases.c, for what depends on function names (doc/massif.md 2.8): how
 * far alloc-fns reach, which main counts, functions with several names, reallocs across ignored ones.
 * No stdlib.h, since some functions here have names of its allocators.
 */
#include <stddef.h>

#include "noinline.h"

extern void *malloc(size_t size);
extern void free(void *p);
extern void *realloc(void *p, size_t size);
extern char *getenv(const char *name);
extern int strcmp(const char *a, const char *b);
extern int main(void);

#define WRAPPER(name, call) \
	NOINLINE void *name(size_t n) { void *p = call; NO_TAIL_CALL(); return p; }
#define ALIAS(name, of) extern __typeof__(of) name __attribute__((alias(#of)))

static void *kept[100];
static int kept_count;

static void keep(void *p)
{
	kept[kept_count++] = p;
}

static void drop_all(void)
{
	for (int i = 0; i < kept_count; i++)
		free(kept[i]);
	kept_count = 0;
}

NOINLINE static void *chain(int left)
{
	void *p = left > 1 ? chain(left - 1) : malloc(96);

	NO_TAIL_CALL();
	return p;
}

/* Around the 50 frames that may go without eating into the depth. */
static void reach(void)
{
	for (int i = 45; i < 60; i++)
		keep(chain(i));
}

static WRAPPER(valloc, malloc(n))
static WRAPPER(not_by_default, valloc(n))
static WRAPPER(memalign, not_by_default(n))

/* Local functions, which are not taken for the allocator's, with names of the default list. */
static void defaults(void)
{
	keep(valloc(32));
	keep(not_by_default(64));
	keep(memalign(96));
}

WRAPPER(longer_first, malloc(n))
ALIAS(short_one, longer_first);
WRAPPER(same_length_b, malloc(n))
ALIAS(same_length_a, same_length_b);
WRAPPER(_under, malloc(n))
ALIAS(zunder, _under);
WRAPPER(strong_b, malloc(n))
extern __typeof__(strong_b) weak_of_b __attribute__((weak, alias("strong_b")));
static WRAPPER(local_b, malloc(n))
ALIAS(globalb, local_b);

static void aliases(void)
{
	keep(longer_first(32));
	keep(short_one(64));
	keep(same_length_b(96));
	keep(same_length_a(128));
	keep(_under(160));
	keep(weak_of_b(192));
	keep(local_b(224));
	keep(globalb(256));
}

static WRAPPER(one, malloc(n))
static WRAPPER(two, one(n))

/* Called once each, so that main is outermost thrice. */
static int mains_left = 3;

static void mains(void)
{
	if (mains_left == 0) {
		keep(one(96));
		return;
	}
	mains_left--;
	keep(one(32));
	main();
	keep(two(64));
}

NOINLINE static void *resize(void *p, size_t n)
{
	p = realloc(p, n);
	NO_TAIL_CALL();
	return p;
}

NOINLINE static void *resize_too(void *p, size_t n)
{
	p = realloc(p, n);
	NO_TAIL_CALL();
	return p;
}

static void reallocs(void)
{
	void *a = one(320), *b = two(640);
	a = resize(a, 160);
	a = resize_too(a, 960);
	b = resize_too(b, 1280);
	b = resize_too(b, 64);
	b = resize(b, 640);
	keep(resize_too(resize(NULL, 320), 640));
	keep(resize(resize_too(NULL, 320), 640));
	keep(a);
	keep(b);
}

int main(void)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} cases[] = {
		{"reach", reach}, {"defaults", defaults}, {"aliases", aliases}, {"mains", mains}, {"reallocs", reallocs},
	};
	const char *wanted = getenv("CASE");
	int is_inner = mains_left < 3;

	for (size_t i = 0; wanted && i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (strcmp(wanted, cases[i].name) == 0)
			cases[i].run();
	}
	if (!is_inner)
		drop_all();
	return 0;
}
