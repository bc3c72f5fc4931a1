/*
 * Allocators of the program's own, for --probe; it counts what they give out. The library
 * (libcustom.c) is a stand-in for one that stores the block's address, as cudaMalloc does.
 *
 *	headers N        my_alloc and its family: a header before each block, from malloc
 *	pools N          blocks of two pools, of which one is reset
 *	library PATH N   the library, loaded after main has begun
 *	attached N       prints a line, waits for one, then as headers
 */
#include "truth.h"

#include <dlfcn.h>
#include <stdio.h>

#define HEADER 16

NOINLINE void *my_alloc(const char *tag, size_t size)
{
	char *p = malloc(size + HEADER);

	__asm__ volatile("" : : "r"(tag) : "memory");
	return p ? p + HEADER : NULL;
}

NOINLINE void *my_calloc(size_t count, size_t size)
{
	char *p = calloc(1, count * size + HEADER);

	return p ? p + HEADER : NULL;
}

NOINLINE void *my_realloc(void *old, size_t size)
{
	char *p = realloc(old ? (char *)old - HEADER : NULL, size + HEADER);

	return p ? p + HEADER : NULL;
}

/* Its member was allocated by malloc, outside of the allocator. */
struct object {
	void *member;
};

NOINLINE void my_free(void *block)
{
	if (block)
		free((char *)block - HEADER);
}

NOINLINE void object_free(struct object *o)
{
	free(o->member);
	free((char *)o - HEADER);
}

NOINLINE int my_store(int fails, size_t size, void **out)
{
	if (fails)
		return 5;
	*out = my_alloc("stored", size);
	return 0;
}

static void use_headers(int n)
{
	for (int i = 0; i < n; i++) {
		size_t size = 20 + (size_t)i % 100;
		void *a = truth_made(my_alloc("a", size), size), *stored = NULL;
		void *b = truth_made(my_calloc(3, size), 3 * size);
		struct object *o = truth_made(my_alloc("o", sizeof(*o)), sizeof(*o));

		o->member = t_malloc(7);
		b = truth_moved(b, 3 * size, my_realloc(b, size + 1), size + 1);
		if (my_store(i % 2, size, &stored) != 0)
			truth_made(NULL, size);
		else
			truth_made(stored, size);
		truth_gone(size);
		my_free(a);
		truth_gone(size + 1);
		my_free(b);
		truth_gone(7);
		truth_gone(sizeof(*o));
		object_free(o);
		if (stored && i % 4) {
			truth_gone(size);
			my_free(stored);
		}
	}
}

/* -- pools -- */

struct pool {
	char *chunk;
	size_t used, blocks, bytes;
};

#define CHUNK (1 << 16)

NOINLINE void *pool_alloc(struct pool *p, size_t size)
{
	char *block = p->chunk + p->used;

	if (p->used + size > CHUNK)
		return NULL;
	p->used += (size + 15) & ~(size_t)15;
	return block;
}

NOINLINE void pool_free(struct pool *p, void *block)
{
	__asm__ volatile("" : : "r"(p), "r"(block) : "memory");
}

NOINLINE void pool_reset(struct pool *p)
{
	__asm__ volatile("" : : "r"(p) : "memory");
	p->used = 0;
}

/* The first block has the address of the chunk. */
NOINLINE void pool_destroy(struct pool *p)
{
	free(p->chunk);
}

static void *from_pool(struct pool *p, size_t size)
{
	p->blocks++;
	p->bytes += size;
	return truth_made(pool_alloc(p, size), size);
}

static void reset(struct pool *p)
{
	TRUTH_ADD(frees, p->blocks);
	truth_live(-(int64_t)p->bytes, -(int)p->blocks);
	p->blocks = p->bytes = 0;
	pool_reset(p);
}

static void use_pools(int n)
{
	struct pool a = {.chunk = t_malloc(CHUNK)}, b = {.chunk = t_malloc(CHUNK)};

	for (int i = 0; i < n; i++) {
		from_pool(&a, 24);
		void *block = from_pool(&b, 40);

		if (i % 2) {
			truth_gone(40);
			b.blocks--;
			b.bytes -= 40;
			pool_free(&b, block);
		}
		if (i % 10 == 9)
			reset(&a);
		if (b.used > CHUNK / 2)
			reset(&b);
	}
	from_pool(&a, 100);
	from_pool(&b, 100);
	TRUTH_ADD(frees, b.blocks);
	truth_live(-(int64_t)b.bytes, -(int)b.blocks);
	truth_gone(CHUNK);
	pool_destroy(&b);
}

/* -- a library -- */

static void use_library(const char *path, int n)
{
	void *lib = dlopen(path, RTLD_NOW);
	CHECK(lib);
	int (*make)(void **, size_t) = (int (*)(void **, size_t))dlsym(lib, "deviceMalloc");
	int (*make_host)(void **, size_t, unsigned) =
		(int (*)(void **, size_t, unsigned))dlsym(lib, "deviceHostAlloc");
	int (*drop)(void *) = (int (*)(void *))dlsym(lib, "deviceFree");

	CHECK(make && make_host && drop);
	for (int i = 0; i < n; i++) {
		size_t size = i % 10 == 9 ? (size_t)1 << 50 : 1000 + (size_t)i % 7;
		void *p = NULL, *host = NULL;

		truth_made(make(&p, size) ? NULL : p, size);
		truth_made(make_host(&host, 64, 1) ? NULL : host, 64);
		if (p) {
			truth_gone(size);
			drop(p);
		}
		if (i % 3) {
			truth_gone(64);
			drop(host);
		}
	}
}

int main(int argc, char **argv)
{
	CHECK(argc > 2);
	int n = atoi(argv[argc - 1]);
	char c;

	if (!strcmp(argv[1], "headers"))
		use_headers(n);
	else if (!strcmp(argv[1], "pools"))
		use_pools(n);
	else if (!strcmp(argv[1], "library") && argc > 3)
		use_library(argv[2], n);
	else if (!strcmp(argv[1], "attached")) {
		print_ok();
		while (read(0, &c, 1) == 1 && c != '\n')
			;
		use_headers(n);
	} else
		return 1;
	truth_report();
	print_ok();
	return 0;
}
