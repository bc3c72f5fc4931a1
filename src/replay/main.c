/*
 * ptmem-replay: performs the allocation calls of a recording with the allocator with which it was
 * started (LD_PRELOAD, GLIBC_TUNABLES), and measures resident memory. ptmem-report --what-if starts
 * it; replay_format.h has what both know.
 *
 * It must not disturb what it measures. So it calls malloc only as the recording did: no stdio, and
 * all memory of its own is shared (MAP_SHARED), stacks of threads and their variables included. The
 * kernel does not count that as anonymous memory, which is what is measured.
 *
 * Allocators that return memory after a time (jemalloc, mimalloc) ask clock_gettime, which is
 * defined here: its time is that of the recording.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "replay/replay_format.h"

#define OPS_AT_ONCE 16384u
#define STACK_SIZE ((size_t)512 << 10)
#define TEXT_MAX ((size_t)1 << 20) /* of a file in /proc */

struct worker {
	struct replayer *replay;
	uint32_t index;
	uint32_t is_due;   /* futex: it is its turn */
	bool is_started;
	pthread_t id;
	void *stack;
	struct worker *next_free; /* which had a stack that is free now */
};

struct replayer {
	struct replay_head head;
	struct replay_op *op;       /* OPS_AT_ONCE of them, from number first_op on */
	uint64_t first_op, next_op; /* numbers in the plan */
	struct replay_turn *turn;
	uint64_t next_turn;
	struct worker *worker;
	struct worker *ended;       /* is to be joined; NULL: none */
	void *free_stack;           /* begins with the next one */
	struct replay_result *result;
	struct replay_block *block;
	char *text;                 /* TEXT_MAX bytes */
	uint64_t clock_cost;        /* ns of reading a thread's clock twice */
};

/*
 * Nanoseconds of the recording's clock, since clock_gettime has no parameter for it. It begins at
 * the same time in each process, or the same file would have different answers.
 */
#define START_NS (UINT64_C(1) << 40)
static uint64_t replayed_ns = START_NS;

__attribute__((noreturn)) static void fail(const char *what)
{
	ssize_t n = write(STDERR_FILENO, what, strlen(what));

	(void)n;
	_exit(REPLAY_FAILED);
}

/* Replaces libc's for the allocator. */
int clock_gettime(clockid_t clock, struct timespec *out)
{
	uint64_t now = __atomic_load_n(&replayed_ns, __ATOMIC_RELAXED);

	if (clock != CLOCK_MONOTONIC && clock != CLOCK_MONOTONIC_COARSE &&
	    clock != CLOCK_MONOTONIC_RAW && clock != CLOCK_BOOTTIME)
		return (int)syscall(SYS_clock_gettime, clock, out);
	*out = (struct timespec){(time_t)(now / 1000000000), (long)(now % 1000000000)};
	return 0;
}

static uint64_t read_clock(clockid_t clock)
{
	struct timespec t;

	syscall(SYS_clock_gettime, clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void *map_shared(size_t size, int more_flags)
{
	int flags = MAP_SHARED | MAP_ANONYMOUS | more_flags;
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, -1, 0);

	if (p == MAP_FAILED)
		fail("no memory for the replay");
	return p;
}

static void read_plan(void *to, size_t size, uint64_t at)
{
	while (size > 0) {
		ssize_t n = pread(REPLAY_PLAN, to, size, (off_t)at);

		if (n <= 0)
			fail("the plan cannot be read");
		to = (char *)to + n;
		size -= (size_t)n;
		at += (uint64_t)n;
	}
}

/* -- resident memory -- */

/* The text of @path, as far as there is room. */
static char *read_text(struct replayer *r, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t size = 0;
	ssize_t n;

	if (fd < 0)
		fail(path);
	while ((n = read(fd, r->text + size, TEXT_MAX - 1 - size)) > 0)
		size += (size_t)n;
	close(fd);
	r->text[size] = '\0';
	return r->text;
}

/* The number after @name in @text, of KiB, as bytes; 0: there is none. */
static uint64_t bytes_after(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	return at ? strtoull(at + strlen(name), NULL, 10) * 1024 : 0;
}

/* Of data of objects, and of the first stack: anonymous memory that is no heap. */
static uint64_t other_anonymous(struct replayer *r)
{
	bool is_other = false;
	uint64_t sum = 0;

	for (char *line = read_text(r, "/proc/self/smaps"), *end; (end = strchr(line, '\n'));
	     line = end + 1) {
		*end = '\0';
		if (strchr("0123456789abcdef", *line))
			is_other = strchr(line, '/') || strstr(line, "[stack]");
		else if (is_other && strncmp(line, "Anonymous:", 10) == 0)
			sum += bytes_after(line, "Anonymous:");
	}
	return sum;
}

/*
 * The kernel's counter costs the same for every heap, but kernels before 6.17 leave out up to 64
 * pages for each CPU. The last sample is counted from the page tables.
 */
static void take_sample(struct replayer *r, uint32_t i)
{
	bool is_last = i + 1 == r->head.samples;
	uint64_t all = is_last ? bytes_after(read_text(r, "/proc/self/smaps_rollup"),
					     "\nAnonymous:") :
				 bytes_after(read_text(r, "/proc/self/status"), "\nRssAnon:");

	uint64_t heap = all > r->result->other_bytes ? all - r->result->other_bytes : 0;

	replay_samples(r->result)[i].resident = heap;
	if (heap > r->result->limit)
		_exit(REPLAY_TOO_LARGE);
}

static void reset_high_water(void)
{
	int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, "5", 1) != 1)
		fail("/proc/self/clear_refs");
	close(fd);
}

/* Files and shared memory only grow, so this is not above the true one. */
static void take_high_water(struct replayer *r)
{
	const char *text = read_text(r, "/proc/self/status");
	uint64_t high = bytes_after(text, "\nVmHWM:");
	uint64_t others = bytes_after(text, "\nRssFile:") + bytes_after(text, "\nRssShmem:") +
			  r->result->other_bytes;

	r->result->high_water = high > others ? high - others : 0;
}

/* -- calls -- */

/* Writes to each page of the block up to @size where that was not done before. */
static void touch(struct replay_block *b, uint64_t size)
{
	for (uint64_t at = b->touched; at < size;) {
		((volatile char *)(uintptr_t)b->address)[at] = 1;
		at += PAGE_SIZE_MIN - (b->address + at) % PAGE_SIZE_MIN;
	}
	b->touched = MAX(b->touched, size);
}

static void *allocate(const struct replay_op *op, const struct replay_block *b)
{
	void *p = NULL;

	switch ((enum replay_kind)op->kind) {
	case REPLAY_CALLOC:
		return calloc(1, op->size);
	case REPLAY_ALIGNED:
		return posix_memalign(&p, (size_t)1 << op->shift, op->size) == 0 ? p : NULL;
	case REPLAY_REALLOC:
		return realloc((void *)(uintptr_t)b->address, op->size);
	default:
		return malloc(op->size);
	}
}

static void perform(struct replayer *r, const struct replay_op *op)
{
	struct replay_block *b = &r->block[op->block];

	if (op->kind == REPLAY_TOUCH) {
		touch(b, MIN(op->size, b->size)); /* 0 if it got no memory */
		return;
	}
	if (op->kind == REPLAY_FREE) {
		free((void *)(uintptr_t)b->address);
		*b = (struct replay_block){0};
		return;
	}
	char *p = allocate(op, b);
	uint64_t touched = op->kind == REPLAY_REALLOC ? MIN(b->touched, op->size) : 0;

	if (!p) {
		r->result->failed++;
		return;
	}
	*b = (struct replay_block){(uintptr_t)p, op->size, touched};
	touch(b, MIN(op->touched, op->size));
}

static const struct replay_op *next_op(struct replayer *r)
{
	uint64_t i = r->next_op++ - r->first_op;

	if (i == OPS_AT_ONCE || r->next_op == 1) {
		uint64_t left = r->head.ops - (r->next_op - 1);
		uint64_t count = MIN(left, OPS_AT_ONCE);

		r->first_op = r->next_op - 1;
		read_plan(r->op, count * sizeof(*r->op),
			  REPLAY_OPS_AT + r->first_op * sizeof(*r->op));
		i = 0;
	}
	return &r->op[i];
}

static uint64_t scaled(const struct replayer *r, uint64_t ns)
{
	uint64_t clock = r->result->clock;

	return ns / REPLAY_CLOCK * clock + ns % REPLAY_CLOCK * clock / REPLAY_CLOCK;
}

/* Returns whether the thread ends. */
static bool take_turn(struct replayer *r, const struct replay_turn *turn)
{
	uint64_t start = read_clock(CLOCK_THREAD_CPUTIME_ID), others = r->clock_cost;
	bool ends = false;

	for (uint32_t i = 0; i < turn->ops; i++) {
		const struct replay_op *op = next_op(r);
		uint64_t before;

		__atomic_store_n(&replayed_ns, START_NS + scaled(r, op->time_ns),
				 __ATOMIC_RELAXED);
		if (op->kind == REPLAY_EXIT) {
			ends = true;
		} else if (op->kind == REPLAY_SAMPLE) {
			before = read_clock(CLOCK_THREAD_CPUTIME_ID);
			take_sample(r, op->block);
			others += read_clock(CLOCK_THREAD_CPUTIME_ID) - before + r->clock_cost;
		} else {
			perform(r, op);
		}
	}
	uint64_t spent = read_clock(CLOCK_THREAD_CPUTIME_ID) - start;

	r->result->cpu_ns += spent > others ? spent - others : 0;
	return ends;
}

/* -- threads -- */

static void *work(void *arg);

static void wake(struct replayer *r, struct worker *w)
{
	pthread_attr_t attributes;

	__atomic_store_n(&w->is_due, 1, __ATOMIC_RELEASE);
	if (w->is_started) {
		syscall(SYS_futex, &w->is_due, FUTEX_WAKE, 1, NULL, NULL, 0);
		return;
	}
	w->is_started = true;
	w->stack = r->free_stack;
	if (w->stack)
		r->free_stack = *(void **)w->stack;
	else
		w->stack = map_shared(STACK_SIZE, MAP_NORESERVE);
	pthread_attr_init(&attributes);
	if (pthread_attr_setstack(&attributes, w->stack, STACK_SIZE) != 0 ||
	    pthread_create(&w->id, &attributes, work, w) != 0)
		fail("a thread cannot be started");
	pthread_attr_destroy(&attributes);
}

static void wait_for_turn(struct worker *w)
{
	while (!__atomic_exchange_n(&w->is_due, 0, __ATOMIC_ACQUIRE))
		syscall(SYS_futex, &w->is_due, FUTEX_WAIT, 0, NULL, NULL, 0);
}

/* What a thread leaves behind at its end comes before all that follows. */
static void join_ended(struct replayer *r)
{
	struct worker *w = r->ended;

	if (!w)
		return;
	r->ended = NULL;
	pthread_join(w->id, NULL);
	*(void **)w->stack = r->free_stack;
	r->free_stack = w->stack;
}

__attribute__((noreturn)) static void finish(struct replayer *r)
{
	if (r->text)
		take_high_water(r);
	__atomic_store_n(&r->result->is_done, 1, __ATOMIC_RELEASE);
	_exit(REPLAY_DONE);
}

/* Takes turns until the thread ends. */
static void *work(void *arg)
{
	struct worker *w = arg;
	struct replayer *r = w->replay;

	wait_for_turn(w);
	for (;;) {
		join_ended(r);
		const struct replay_turn *turn = &r->turn[r->next_turn++];
		bool ends = take_turn(r, turn);

		if (r->next_turn == r->head.turns)
			finish(r);
		if (ends)
			r->ended = w;
		struct worker *next = &r->worker[r->turn[r->next_turn].thread];

		if (next != w) {
			wake(r, next);
			if (ends)
				return NULL;
			wait_for_turn(w);
		}
	}
}

/* -- the start -- */

static void name_library(struct replayer *r)
{
	Dl_info info;

	if (dladdr((void *)(uintptr_t)malloc, &info) && info.dli_fname)
		strncpy(r->result->library, info.dli_fname, sizeof(r->result->library) - 1);
}

static uint64_t measure_clock(void)
{
	uint64_t start = read_clock(CLOCK_THREAD_CPUTIME_ID);
	enum { ROUNDS = 1000 };

	for (unsigned i = 0; i < ROUNDS; i++)
		read_clock(CLOCK_THREAD_CPUTIME_ID);
	return (read_clock(CLOCK_THREAD_CPUTIME_ID) - start) / ROUNDS;
}

static struct replay_result *map_result(size_t size)
{
	struct replay_result *result = mmap(NULL, size, PROT_READ | PROT_WRITE,
					    MAP_SHARED | MAP_POPULATE, REPLAY_RESULT, 0);

	if (result == MAP_FAILED)
		fail("no memory for the replay");
	return result;
}

int main(int argc, char **argv)
{
	struct replayer *r = map_shared(sizeof(*r), MAP_POPULATE);

	if (argc > 1 && strcmp(argv[1], REPLAY_PROBE) == 0) {
		r->result = map_result(sizeof(*r->result));
		name_library(r);
		finish(r);
	}
	read_plan(&r->head, sizeof(r->head), 0);
	r->op = map_shared(OPS_AT_ONCE * sizeof(*r->op), MAP_POPULATE);
	r->turn = map_shared((r->head.turns + 1) * sizeof(*r->turn), MAP_POPULATE);
	r->worker = map_shared((r->head.threads + 1) * sizeof(*r->worker), MAP_POPULATE);
	r->text = map_shared(TEXT_MAX, MAP_POPULATE);
	read_plan(r->turn, r->head.turns * sizeof(*r->turn),
		  REPLAY_OPS_AT + r->head.ops * sizeof(*r->op));
	for (uint32_t i = 0; i < r->head.threads; i++)
		r->worker[i] = (struct worker){.replay = r, .index = i};
	r->worker[0].is_started = true;
	r->result = map_result(replay_result_size(r->head.samples, r->head.blocks));
	r->block = replay_blocks(r->result, r->head.samples);
	name_library(r);
	r->clock_cost = measure_clock();
	r->result->other_bytes = other_anonymous(r);
	reset_high_water();
	if (r->head.turns == 0)
		finish(r);
	wake(r, &r->worker[r->turn[0].thread]);
	work(&r->worker[0]);
	pause();
	return 1;
}
