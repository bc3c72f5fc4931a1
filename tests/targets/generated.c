/*
 * generated [dump|late|fifo|link]: writes functions into executable memory while it runs, without
 * frame pointers, and publishes their names in a perf map, or as "dump" in a jitdump.
 *
 *	main > OUTER (generated) > middle > INNER (generated) > keep
 *
 * Both places get new functions again and again: with another name and mostly another size of frame,
 * but the same return address. Before and after each change a thread is created: ptmem reads all records
 * then, and the map, and knows no time of its lines but these. late: the names are published only at the end. fifo, link:
 * what has the name of the map is a FIFO, or a symbolic link to one.
 */
#include "truth.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#define GENERATIONS 12
#define ROUNDS 40
#define PLACE_SIZE 64
#define PREFIX 9 /* bytes of a function up to the return address in it */

typedef void callback(void);
typedef void generated(uint64_t unused, callback *fn);

/* enum jit_record: a load; the parts of a jitdump */
struct dump_header {
	uint32_t magic, version, size, machine, padding, pid;
	uint64_t time, flags;
};

struct dump_load {
	uint32_t id, record_size;
	uint64_t time;
	uint32_t pid, tid;
	uint64_t vma, addr, size, index;
};

static uint8_t *code;
static int map, is_dump, is_late;
static char late[8192];
static size_t late_size;

static void put(const void *data, size_t size)
{
	if (is_late) {
		CHECK(late_size + size <= sizeof(late));
		memcpy(late + late_size, data, size);
		late_size += size;
	} else if (map >= 0) {
		CHECK(write(map, data, size) == (ssize_t)size);
	}
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void open_map(const char *how)
{
	char path[64];
	struct dump_header head = {0x4A695444, 1, sizeof(head), 62, 0, (uint32_t)getpid(), now(), 0};

	is_dump = strcmp(how, "dump") == 0;
	is_late = strcmp(how, "late") == 0;
	snprintf(path, sizeof(path), is_dump ? "jit-%d.dump" : "/tmp/perf-%d.map", (int)getpid());
	unlink(path);
	map = -1;
	if (strcmp(how, "fifo") == 0) {
		CHECK(mkfifo(path, 0600) == 0);
		return;
	}
	if (strcmp(how, "link") == 0) {
		CHECK(symlink("/dev/zero", path) == 0);
		return;
	}
	map = open(path, O_RDWR | O_CREAT | O_APPEND, 0600);
	CHECK(map >= 0);
	if (!is_dump)
		return;
	put(&head, sizeof(head));
	CHECK(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, map, 0) != MAP_FAILED);
}

static void publish(const uint8_t *at, size_t size, const char *name)
{
	static uint64_t index;
	char line[128];
	struct dump_load load = {0, (uint32_t)(sizeof(load) + strlen(name) + 1 + size), now(),
				 (uint32_t)getpid(), (uint32_t)getpid(), (uintptr_t)at,
				 (uintptr_t)at, size, index++};

	if (!is_dump) {
		int n = snprintf(line, sizeof(line), "%lx %zx %s\n", (unsigned long)(uintptr_t)at,
				 size, name);
		put(line, (size_t)n);
		return;
	}
	put(&load, sizeof(load));
	put(name, strlen(name) + 1);
	put(at, size);
}

/* A function that calls its second argument from a frame of @frame bytes; @name = its name. */
static generated *generate(unsigned place, uint32_t frame, const char *name)
{
	uint8_t *at = code + place * PLACE_SIZE;
	static const uint8_t tail[] = {0xff, 0xd6, 0x48, 0x81, 0xc4};
	size_t size = 0;

	at[size++] = 0x48, at[size++] = 0x81, at[size++] = 0xec; /* sub $frame, %rsp */
	memcpy(at + size, &frame, 4), size += 4;
	memcpy(at + size, tail, sizeof(tail)), size += sizeof(tail); /* call *%rsi; add */
	memcpy(at + size, &frame, 4), size += 4;
	at[size++] = 0xc3;
	publish(at, size, name);
	return (generated *)(uintptr_t)at;
}

static generated *inner;
static size_t wanted;

NOINLINE static void keep(void)
{
	t_malloc(wanted);
	NO_TAIL_CALL();
}

NOINLINE static void middle(void)
{
	inner(0, keep);
	NO_TAIL_CALL();
}

static void *nothing(void *p)
{
	return p;
}

/* ptmem stops there, and reads what was recorded. */
static void synchronize(void)
{
	pthread_t thread;

	CHECK(pthread_create(&thread, NULL, nothing, NULL) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "map";
	char outer_name[64], inner_name[64], path[200];

	open_map(how);
	code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(code != MAP_FAILED);
	generated *outer = NULL;
	for (unsigned i = 0; i < GENERATIONS; i++) {
		/* late: what is published then must be true of all the time */
		unsigned place = is_late ? 2 * i : 0;
		uint64_t bytes = 0;

		if (i % 3 == 0 || is_late) {
			snprintf(outer_name, sizeof(outer_name), "outer_%u", i);
			outer = generate(place, 8 + 32 * i, outer_name);
		}
		if (i % 3 != 1 || is_late) {
			snprintf(inner_name, sizeof(inner_name), "py::inner_%u:/srv/shop/order.py", i);
			inner = generate(place + 1, 24 + 16 * (i / 3), inner_name);
			snprintf(inner_name, sizeof(inner_name), "inner_%u", i);
		}
		synchronize();
		for (unsigned k = 0; k < ROUNDS; k++) {
			wanted = 1000 + 10 * i + k % 2;
			bytes += wanted;
			outer(0, middle);
		}
		snprintf(path, sizeof(path), "main>%s>middle>%s>keep",
			 outer_name, inner_name);
		if (i % 3 != 1 || is_late)
			truth_path(path, bytes + (i % 3 == 0 && !is_late ?
							  ROUNDS * (1010 + 10 * i) + ROUNDS / 2 : 0));
		synchronize();
	}
	is_late = 0;
	put(late, late_size);
	truth_report();
	return 0;
}
