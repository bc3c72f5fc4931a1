/*
 * Client requests as Massif's own programs make them, beside Massif: CASE in the environment says
 * which case. An allocator over one mmap'ed area, and one that divides malloc'ed memory.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <valgrind/valgrind.h>

#include "noinline.h"

static char *area;
static size_t used;

NOINLINE static void *custom_alloc(size_t size)
{
	if (!area)
		area = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *p = area + used;

	used += size + 16;
	VALGRIND_MALLOCLIKE_BLOCK(p, size, 16, 1);
	return p;
}

NOINLINE static void custom_free(void *p)
{
	VALGRIND_FREELIKE_BLOCK(p, 16);
}

NOINLINE static void custom_resize(void *p, size_t old, size_t size)
{
	VALGRIND_RESIZEINPLACE_BLOCK(p, old, size, 16);
}

NOINLINE static void *outer_alloc(size_t size)
{
	void *p = custom_alloc(size);

	__asm__ volatile("" ::: "memory");
	return p;
}

static inline __attribute__((always_inline)) void *inlined_alloc(size_t size)
{
	void *p = area + used;

	used += size + 16;
	VALGRIND_MALLOCLIKE_BLOCK(p, size, 0, 0);
	return p;
}

static void custom(void)
{
	void *p[20];

	for (int i = 0; i < 20; i++)
		p[i] = i % 3 ? custom_alloc((size_t)(i * 37)) : outer_alloc((size_t)(400 + i));
	for (int i = 0; i < 20; i += 2)
		custom_free(p[i]);
	for (int i = 1; i < 20; i += 4)
		custom_resize(p[i], (size_t)(i * 37), (size_t)(i * 50));
	custom_resize(p[2], 10, 1000);  /* unknown by now: only the new one counts */
	custom_free(p[4]);              /* unknown */
	custom_resize(p[1], 0, 0);
	VALGRIND_MALLOCLIKE_BLOCK(0, 10, 0, 0);
	VALGRIND_FREELIKE_BLOCK(0, 0);
}

/* A block at the start of the malloc'ed memory that it is in, and others twice. */
static void covering(void)
{
	for (int i = 0; i < 12; i++) {
		char *p = malloc(4096);

		VALGRIND_MALLOCLIKE_BLOCK(p, 100, 0, 0);
		VALGRIND_MALLOCLIKE_BLOCK(p + 200, 64, 0, 0);
		VALGRIND_MALLOCLIKE_BLOCK(p, 50, 0, 0);
		VALGRIND_FREELIKE_BLOCK(p, 0);
		if (i % 3 == 0)
			VALGRIND_FREELIKE_BLOCK(p, 0);
		VALGRIND_FREELIKE_BLOCK(p + 200, 0);
		if (i % 2 == 0)
			free(p);
		if (i % 4 == 0) {
			char *q = malloc(77);

			VALGRIND_FREELIKE_BLOCK(q, 0);
		}
	}
}

static void inlined(void)
{
	custom_alloc(1);
	for (int i = 0; i < 10; i++)
		inlined_alloc((size_t)(100 * i));
	void *p = inlined_alloc(5000);

	VALGRIND_FREELIKE_BLOCK(p, 0);
}

/* What has no effect on Massif. */
static void others(void)
{
	char *p = malloc(1000);

	VALGRIND_CREATE_MEMPOOL(p, 0, 0);
	VALGRIND_MEMPOOL_ALLOC(p, p + 10, 20);
	VALGRIND_MEMPOOL_FREE(p, p + 10);
	VALGRIND_DESTROY_MEMPOOL(p);
	VALGRIND_DISCARD_TRANSLATIONS(p, 100);
	VALGRIND_DISABLE_ERROR_REPORTING;
	free(p);
	custom_alloc((size_t)(VALGRIND_COUNT_ERRORS * 1000 + VALGRIND_MEMPOOL_EXISTS(p) * 10 + 3));
	custom_alloc((size_t)VALGRIND_MONITOR_COMMAND("snapshot monitor.1") + 10);
	custom_alloc((size_t)VALGRIND_MONITOR_COMMAND("detailed_snapshot monitor.2") + 20);
	custom_alloc((size_t)VALGRIND_MONITOR_COMMAND("all_snapshots monitor.3") + 30);
	custom_alloc((size_t)VALGRIND_MONITOR_COMMAND("nothing") + 40);
}

int main(void)
{
	const char *name = getenv("CASE");

	if (!strcmp(name, "custom"))
		custom();
	else if (!strcmp(name, "covering"))
		covering();
	else if (!strcmp(name, "inlined"))
		inlined();
	else
		others();
	return 0;
}
