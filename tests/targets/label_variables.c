/*
 * A server that says whom its memory is for by variables, for --label: it prints a line for each
 * tenant, and for requests of none: "TENANT BYTES CALLS", of blocks in use at the end, and of all
 * allocations. Threads have a request each, whose tenant's name may be in memory that is gone:
 * freed and written again, unmapped, or at the end of a page.
 * With "wait": prints "ready" first, and begins once it has read a byte. With "fork": the second
 * half is a child's, which inherits the label. With "load": threads only allocate and free, while
 * libm, which has the variable signgam, comes and goes.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "noinline.h"

#define THREADS 4
#define REQUESTS 800
#define LOADS 100
#define PAGE 4096

enum plan { FREE, PRO, ENTERPRISE = -7 };
struct tenant {
	int id;
	char *name;
	enum plan plan;
	char code[6];
};
struct request {
	long serial;
	struct tenant *tenant;
};
struct count {
	const char *text;
	unsigned long bytes, calls;
};

static struct tenant tenants[] = {
	{7, NULL, FREE, "ac"}, {-8, NULL, PRO, "globex"}, {9, NULL, ENTERPRISE, ""}};
static struct count counts[] = {{"acme", 0, 0}, {"globex incorporated", 0, 0}, {"x", 0, 0},
				{"none", 0, 0}, {"bad", 0, 0}};
static void *volatile sink;

_Thread_local struct request *current_request;
_Thread_local struct tenant current_tenant;
char *current_db;
static volatile int phase; /* 0: threads of load() go on */

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

NOINLINE static void handle(unsigned whose, size_t size)
{
	void *volatile p; /* its own: what other threads keep is not to be freed */

	for (size_t i = 0; i < 3; i++)
		keep(whose, size + i);
	p = malloc(777);
	count(whose, 0);
	p = realloc(p, 1001);
	count(whose, 0);
	free(p);
	keep(whose, 70000);
	keep(whose, 13);
}

/* One buffer for the names of all requests of a thread: its address says nothing. */
static void *run(void *arg)
{
	struct tenant tenant;
	struct request r = {.tenant = &tenant};
	char name[40];

	keep(3, 3);
	for (unsigned long n = (uintptr_t)arg; n < REQUESTS; n += THREADS) {
		unsigned whose = (unsigned)(n % 3);

		tenant = tenants[whose];
		tenant.name = strcpy(name, counts[whose].text);
		current_tenant = tenant;
		current_request = &r;
		handle(whose, n % 97 + 1);
		current_request = NULL;
		current_tenant = (struct tenant){0};
		keep(3, 1);
	}
	return NULL;
}

static void all(void)
{
	pthread_t thread[THREADS];

	for (uintptr_t i = 1; i < THREADS; i++)
		pthread_create(&thread[i], NULL, run, (void *)i);
	run(NULL);
	for (int i = 1; i < THREADS; i++)
		pthread_join(thread[i], NULL);
}

/* Names at the end of a page, and in pages that are gone. */
static void odd(void)
{
	char *pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			   0);
	struct tenant t = {.id = 1, .name = pages + PAGE - 5};
	struct request r = {.tenant = &t};

	munmap(pages + PAGE, PAGE);
	strcpy(t.name, "acme");
	current_request = &r;
	handle(0, 5);
	t.name = pages + PAGE;
	handle(4, 6);
	t.name = pages + PAGE - 2; /* it does not end */
	t.name[0] = t.name[1] = 'x';
	handle(4, 6);
	r.tenant = (struct tenant *)(void *)pages;
	munmap(pages, PAGE);
	handle(4, 7);
	current_request = NULL;
}

static void *spin(void *arg)
{
	struct request r;

	(void)arg;
	current_request = &r;
	for (unsigned whose = 0; phase == 0; whose = !whose) {
		void *volatile p;

		r.tenant = &tenants[whose];
		p = malloc(50);
		free(p);
		count(whose, 0);
	}
	current_request = NULL;
	return NULL;
}

static void load(void)
{
	pthread_t thread[2];

	for (int i = 0; i < 2; i++)
		tenants[i].name = (char *)counts[i].text;
	for (int i = 0; i < 2; i++)
		pthread_create(&thread[i], NULL, spin, NULL);
	for (int i = 0; i < LOADS; i++) {
		void *library = dlopen("libm.so.6", RTLD_NOW);

		if (!library || dlclose(library) != 0)
			exit(1);
	}
	phase = 1;
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
}

int main(int argc, char **argv)
{
	char byte;

	setvbuf(stdout, NULL, _IONBF, 0);
	if (argc > 1 && strcmp(argv[1], "wait") == 0) {
		puts("ready");
		if (read(0, &byte, 1) != 1)
			return 1;
	}
	current_db = (char *)"orders";
	odd();
	if (argc > 1 && strcmp(argv[1], "fork") == 0) {
		pid_t child;

		current_request = &(struct request){.tenant = &tenants[1]};
		tenants[1].name = (char *)"globex incorporated";
		child = fork();
		if (child > 0)
			return waitpid(child, NULL, 0) != child;
		handle(1, 99);
		current_request = NULL;
	}
	if (argc > 1 && strcmp(argv[1], "load") == 0)
		load();
	else
		all();
	for (unsigned i = 0; i < sizeof(counts) / sizeof(*counts); i++)
		printf("%s: %lu %lu\n", counts[i].text, counts[i].bytes, counts[i].calls);
	return 0;
}
