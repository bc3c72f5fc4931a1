/*
 * A server that knows which memory is whose, for --label: it prints a line for each tenant, and
 * for requests of none: "TENANT BYTES CALLS", of blocks in use at the end, and of all allocations.
 * With "many": one request each of 1,500 tenants.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "noinline.h"

#define THREADS 4
#define REQUESTS 1500

enum plan { FREE, PRO, ENTERPRISE = -7 };
struct tenant {
	int id;
	const char *name;
	enum plan plan;
};
struct request {
	short serial;
	struct {
		struct tenant *tenant;
	};
	char path[24];
};
struct count {
	const char *text;
	unsigned long bytes, calls;
};

static struct tenant tenants[] = {{7, "acme", FREE}, {-8, "globex", PRO},
				  {9, "ini\ntech", ENTERPRISE}};
static struct count counts[] = {{"acme", 0, 0}, {"globex", 0, 0}, {"initech", 0, 0},
				{"none", 0, 0}, {"null", 0, 0}, {"bad", 0, 0}};
static void *volatile sink;
static _Thread_local jmp_buf out;

static void count(unsigned whose, size_t bytes)
{
	__atomic_fetch_add(&counts[whose].bytes, bytes, __ATOMIC_RELAXED);
	__atomic_fetch_add(&counts[whose].calls, 1, __ATOMIC_RELAXED);
}

NOINLINE static void keep(unsigned whose, size_t size)
{
	sink = malloc(size);
	count(whose, size);
}

/* What follows the loop is its last act, which compilers make a jump. */
NOINLINE void handle(struct request *r, unsigned whose, int size)
{
	void *volatile p; /* its own: what other threads keep is not to be freed */

	for (int i = 0; i < 3; i++)
		keep(whose, (size_t)size + (size_t)i);
	p = malloc(777);
	count(whose, 0);
	p = realloc(p, 1001);
	free(p);
	count(whose, 0);
	r->serial++;
	keep(whose, 13);
}

/* Its caller goes on behind another frame. */
NOINLINE void leave(struct request *r, unsigned whose)
{
	keep(whose, 31);
	r->serial++;
	longjmp(out, 1);
}

NOINLINE static void one(unsigned long n)
{
	unsigned whose = (unsigned)(n % 3);
	struct request r = {.tenant = &tenants[whose], .path = "/orders"};

	handle(&r, whose, (int)(n % 97) + 1);
	keep(3, 1);
	if (n % 5 == 0) {
		if (!setjmp(out))
			leave(&r, whose);
		keep(3, 5);
		keep(3, 5);
	}
}

static void *run(void *arg)
{
	for (unsigned long n = (uintptr_t)arg; n < REQUESTS; n += THREADS)
		one(n);
	return NULL;
}

/* Tenants with no names, and with names that cannot be read. */
static void odd(void)
{
	static struct tenant bad = {1, (const char *)8, FREE}, silent = {1, NULL, FREE};
	struct request r = {0};

	handle(&r, 3, 10);
	r.tenant = &silent;
	handle(&r, 4, 20);
	r.tenant = &bad;
	handle(&r, 5, 30);
}

static void many(void)
{
	for (int i = 0; i < 1500; i++) {
		struct tenant t = {i, "?", FREE};
		struct request r = {.tenant = &t};

		handle(&r, 0, 10);
	}
}

int main(int argc, char **argv)
{
	pthread_t thread[THREADS];

	setvbuf(stdout, NULL, _IONBF, 0);
	if (argc > 1 && strcmp(argv[1], "many") == 0) {
		many();
		return 0;
	}
	odd();
	for (uintptr_t i = 1; i < THREADS; i++)
		pthread_create(&thread[i], NULL, run, (void *)i);
	run(NULL);
	for (int i = 1; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	for (unsigned i = 0; i < sizeof(counts) / sizeof(*counts); i++)
		printf("%s %lu %lu\n", counts[i].text, counts[i].bytes, counts[i].calls);
	return 0;
}
