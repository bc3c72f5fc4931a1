/*
 * Compares designs for passing records when many threads allocate: a model of pads, threads of this
 * program, and of their reader, a child process, with the C library's own malloc. Not a test;
 * figures depend on the machine. arch/recorder/recorder_ring.h has the results.
 *
 *	cc -O2 -D_GNU_SOURCE -pthread -o build/bench_rings scripts/bench_rings.c
 *	build/bench_rings [ROUNDS [PAIRS [THREADS...]]]
 *
 * Each thread executes pairs of malloc and free with two records for each, continuously (steady) or
 * with a sleep after every 2000 (bursty); every 16th block is freed by another thread. The designs
 * take turns, round after round. A cell is the median of the rounds: CPU time of the threads, and
 * of the reader, for a pair in ns; wall time for a pair of all threads together; the sum of the
 * former, and the latter, divided by those of "one" in the same round ("one, no lock" of a single
 * thread); and how many records in a million arrived in an order in which a block is allocated
 * twice, or freed twice.
 */
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

enum design {
	NONE,      /* no records: the rest is measured with it */
	ONE_PLAIN, /* one ring, room reserved without a lock: for one thread */
	ONE,       /* one ring, locked add: the present one, where there are several threads */
	ONE_LINE,  /* the same, a cache line for each record */
	OWN,       /* a ring for each thread, without any order between them: a lower bound */
	OWN_8,     /* the same, with frees of 8 bytes */
	COUNTER,   /* a ring for each thread; one locked counter numbers the records */
	TICKETS,   /* a ring for each thread; the records of a page have a counter of their own */
	STAMPS,    /* a ring for each thread; rdtscp in each record; merged */
	RDTSC,     /* the same by rdtsc, which may be executed before the loads that precede it */
	CPUS,      /* a ring for each CPU, locked add, the TSC in each record; merged */
	DESIGNS
};
static const char *const names[] = { "none", "one, no lock", "one", "one, lines", "own",
				     "own, free 8", "counter", "tickets", "stamps", "rdtsc",
				     "per CPU" };

#define INLINE static inline __attribute__((always_inline)) /* each design apart */
#define LINES __attribute__((aligned(128)))
#define THREADS 64
#define TOTAL (4ull << 20) /* bytes of all rings together */
#define COUNTERS 4096 /* one for each page, or a few */
#define BURST 2000
#define KEY 0x9e3779b97f4a7c15ull
#define FREE 1ull

struct ring {
	LINES uint64_t head;
	LINES uint64_t tail;
	uint32_t waiters, wakes;
	/* the reader's */
	LINES uint64_t position, end;
	uint64_t stamp; /* of the record at position */
};

static struct shared {
	struct ring ring[THREADS];
	struct {
		LINES uint64_t next;
	} counter[COUNTERS];
	LINES uint32_t is_over;
	LINES double reader_ns;
	uint64_t records, complaints;
	char memory[THREADS][TOTAL];
} *s;

static enum design design;
static uint32_t threads;
static uint64_t pairs, mask; /* of a ring */
static bool is_bursty;
static pthread_barrier_t begin;
static double thread_ns[THREADS];

static double now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static uint32_t ring_count(void)
{
	return design <= ONE_LINE ? 1 : design == CPUS ? (uint32_t)get_nprocs_conf() : threads;
}

/* --- a thread --- */

__attribute__((noinline)) static void wait_for_room(struct ring *r, uint64_t end)
{
	for (;;) {
		uint32_t wakes = __atomic_load_n(&r->wakes, __ATOMIC_SEQ_CST);
		__atomic_store_n(&r->waiters, 1, __ATOMIC_SEQ_CST);
		if (end - __atomic_load_n(&r->tail, __ATOMIC_SEQ_CST) <= mask + 1)
			return;
		syscall(SYS_futex, &r->wakes, FUTEX_WAIT, wakes, NULL, NULL, 0);
	}
}

INLINE uint64_t *room(struct ring *r, uint32_t index, uint64_t position, uint64_t size)
{
	uint64_t *p = (uint64_t *)(s->memory[index] + (position & mask));

	if (__builtin_expect(position + size - __atomic_load_n(&r->tail, __ATOMIC_RELAXED) >
				     mask + 1, 0))
		wait_for_room(r, position + size);
	__builtin_prefetch((char *)p + 512, 1);
	return p;
}

/* In a ring of which only this thread moves the head, after its record is written. */
INLINE uint64_t *own_room(uint32_t index, uint64_t size)
{
	return room(&s->ring[index], index, s->ring[index].head, size);
}

/* The first word of a record: what says in which order the rings are to be read. */
INLINE uint64_t order(enum design d, uint64_t block)
{
	uint64_t counter = d == COUNTER ? 0 : (block >> 12) % COUNTERS;
	uint32_t cpu;

	switch (d) {
	case COUNTER:
	case TICKETS:
		return __atomic_fetch_add(&s->counter[counter].next, 1, __ATOMIC_RELAXED);
	case STAMPS:
		/*
		 * Waits for the loads that returned the block, from its allocator or another
		 * thread. Later accesses are seen later in any case.
		 */
		return __rdtscp(&cpu);
	case RDTSC:
		return __rdtsc();
	default:
		return 0;
	}
}

INLINE void record_own(enum design d, uint32_t self, uint64_t block, uint64_t low)
{
	uint64_t *p = own_room(self, 16), size = 16;

	if (d == OWN_8 && low & FREE) {
		p[0] = block << 16 | FREE;
		size = 8;
	} else {
		p[0] = order(d, block) << 8 | low;
		p[1] = block;
	}
	__atomic_store_n(&s->ring[self].head, s->ring[self].head + size, __ATOMIC_RELEASE);
}

INLINE void record_shared(enum design d, uint64_t block, uint64_t low)
{
	uint64_t size = d == CPUS ? 32 : d == ONE_LINE ? 64 : 16, position = size, *p, stamp = 0;
	uint32_t i = 0;

	if (d == CPUS)
		stamp = __rdtscp(&i);
	i &= 0xfff; /* the CPU */
	if (d == ONE_PLAIN)
		__asm__ volatile("xadd %0, %1" : "+r"(position), "+m"(s->ring[0].head));
	else
		__asm__ volatile("lock xadd %0, %1" : "+r"(position), "+m"(s->ring[i].head));
	p = room(&s->ring[i], i, position, size);
	p[1] = block;
	if (d == CPUS)
		p[2] = stamp;
	__atomic_store_n(p, ((position << 20 ^ KEY) & ~0xffffull) | low, __ATOMIC_RELEASE);
}

/* @low: bit 0 = it is freed; above it the thread. */
INLINE void record(enum design d, uint32_t self, uint64_t block, uint64_t low)
{
	if (d >= OWN && d <= RDTSC)
		record_own(d, self, block, low);
	else if (d != NONE)
		record_shared(d, block, low);
}

static void *mailbox[THREADS];

INLINE void work(enum design d, uint32_t self)
{
	struct timespec rest = { .tv_nsec = 1000000 };
	uint64_t low = self << 1;

	for (uint64_t i = 0; i < pairs; i++) {
		void *p = malloc(16 + (i & 63));
		record(d, self, (uint64_t)p, low);
		if (i % 16 == 0)
			p = __atomic_exchange_n(&mailbox[(self + 1) % threads], p,
						__ATOMIC_ACQ_REL);
		else if (i % 16 == 8)
			p = __atomic_exchange_n(&mailbox[self], p, __ATOMIC_ACQ_REL);
		if (p) {
			record(d, self, (uint64_t)p, low | FREE);
			free(p);
		}
		if (is_bursty && i % BURST == BURST - 1)
			nanosleep(&rest, NULL);
	}
}

static void *run(void *arg)
{
	uint32_t self = (uint32_t)(uintptr_t)arg;
	double start;

	pthread_barrier_wait(&begin);
	start = now_ns(CLOCK_THREAD_CPUTIME_ID);
	switch (design) {
#define CASE(d)                \
	case d:                \
		work(d, self); \
		break
	CASE(NONE);
	CASE(ONE_PLAIN);
	CASE(ONE);
	CASE(ONE_LINE);
	CASE(OWN);
	CASE(OWN_8);
	CASE(COUNTER);
	CASE(TICKETS);
	CASE(STAMPS);
	CASE(RDTSC);
	CASE(CPUS);
	default:
		break;
	}
	thread_ns[self] = now_ns(CLOCK_THREAD_CPUTIME_ID) - start;
	return NULL;
}

/* --- the reader --- */

#define BLOCKS (1u << 16)
static struct block {
	uint64_t addr;
	bool is_live;
} *blocks;
static uint64_t complaints, records;

/* Approximates the profile's work for an event. */
static inline void deliver(uint64_t addr, bool is_free)
{
	uint64_t i = addr * KEY >> 48;

	while (blocks[i].addr != addr && blocks[i].addr)
		i = (i + 1) % BLOCKS;
	blocks[i].addr = addr;
	complaints += blocks[i].is_live != is_free;
	blocks[i].is_live = !is_free;
	records++;
}

static inline uint64_t *at(uint32_t i, uint64_t position)
{
	return (uint64_t *)(s->memory[i] + (position & mask));
}

/*
 * In steps, since it takes the cache line away from the threads. @is_last: nothing more can be read
 * now.
 */
static void publish(struct ring *r, bool is_last)
{
	if (!is_last && r->position - r->tail < (mask + 1) / 16)
		return;
	if (r->position != r->tail)
		__atomic_store_n(&r->tail, r->position, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&r->waiters, __ATOMIC_SEQ_CST) &&
	    (is_last || __atomic_load_n(&r->head, __ATOMIC_RELAXED) - r->position < mask / 2)) {
		__atomic_store_n(&r->waiters, 0, __ATOMIC_SEQ_CST);
		__atomic_fetch_add(&r->wakes, 1, __ATOMIC_SEQ_CST);
		syscall(SYS_futex, &r->wakes, FUTEX_WAKE, THREADS, NULL, NULL, 0);
	}
}

static bool is_committed(uint32_t i, uint64_t position)
{
	uint64_t mark = __atomic_load_n(at(i, position), __ATOMIC_ACQUIRE);

	return (mark ^ position << 20 ^ KEY) >> 24 == 0;
}

static void read_one(void)
{
	struct ring *r = &s->ring[0];

	while (is_committed(0, r->position)) {
		const uint64_t *p = at(0, r->position);
		deliver(p[1], *p & FREE);
		r->position += design == ONE_LINE ? 64 : 16;
		publish(r, false);
	}
}

static void read_own(void)
{
	for (uint32_t i = 0; i < threads; i++) {
		struct ring *r = &s->ring[i];
		uint64_t end = __atomic_load_n(&r->head, __ATOMIC_ACQUIRE);
		while (r->position != end) {
			const uint64_t *p = at(i, r->position);
			if (p[0] >> 16) { /* 8 bytes */
				deliver(p[0] >> 16, true);
				r->position += 8;
			} else {
				deliver(p[1], *p & FREE);
				r->position += 16;
			}
			publish(r, false);
		}
	}
}

/* Whether there was anything; no ticket is lost here. */
static bool read_tickets(void)
{
	static uint64_t next[COUNTERS];
	uint64_t before = records;

	for (uint32_t i = 0; i < threads; i++) {
		struct ring *r = &s->ring[i];
		uint64_t end = __atomic_load_n(&r->head, __ATOMIC_ACQUIRE);
		for (; r->position != end; r->position += 16) {
			const uint64_t *p = at(i, r->position);
			uint64_t *n = &next[design == COUNTER ? 0 : (p[1] >> 12) % COUNTERS];
			if (p[0] >> 8 != *n)
				break;
			(*n)++;
			deliver(p[1], *p & FREE);
			publish(r, false);
		}
	}
	return records > before;
}

/* The stamp of the ring's next record; UINT64_MAX: there is none as old as @now. */
static void look(uint32_t i, uint64_t now)
{
	struct ring *r = &s->ring[i];

	r->stamp = UINT64_MAX;
	if (design != CPUS && r->position != r->end)
		r->stamp = *at(i, r->position) >> 8;
	if (design == CPUS && is_committed(i, r->position))
		r->stamp = at(i, r->position)[2];
	if (r->stamp > now)
		r->stamp = UINT64_MAX;
}

/*
 * Records stamped before now and visible after now are delivered in the order of the stamps. All
 * others were committed later, and everything that depends on them has a later stamp than now.
 */
static void read_stamps(void)
{
	uint32_t count = ring_count(), cpu, size = design == CPUS ? 32 : 16;
	uint64_t now = __rdtscp(&cpu);

	_mm_lfence();
	for (uint32_t i = 0; i < count; i++) {
		s->ring[i].end = __atomic_load_n(&s->ring[i].head, __ATOMIC_ACQUIRE);
		look(i, now);
	}
	for (;;) {
		uint64_t first = UINT64_MAX, second = UINT64_MAX;
		uint32_t best = 0;
		for (uint32_t i = 0; i < count; i++) {
			uint64_t stamp = s->ring[i].stamp;
			if (stamp < first) {
				second = first;
				first = stamp;
				best = i;
			} else if (stamp < second) {
				second = stamp;
			}
		}
		if (first == UINT64_MAX)
			return;
		struct ring *r = &s->ring[best];
		do {
			const uint64_t *p = at(best, r->position);
			deliver(p[1], *p & FREE);
			r->position += size;
			publish(r, false);
			look(best, now);
		} while (r->stamp != UINT64_MAX && r->stamp <= second);
	}
}

static void read_all(void)
{
	if (design <= ONE_LINE)
		read_one();
	else if (design <= OWN_8)
		read_own();
	else if (design <= TICKETS)
		while (read_tickets())
			;
	else
		read_stamps();
	for (uint32_t i = 0; i < ring_count(); i++)
		publish(&s->ring[i], true);
}

static void reader(void)
{
	struct timespec rest = { .tv_nsec = 1000000 };
	uint64_t before;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	blocks = calloc(BLOCKS, sizeof(*blocks));
	for (;;) {
		bool is_over = __atomic_load_n(&s->is_over, __ATOMIC_SEQ_CST);
		before = records;
		read_all();
		if (records == before && is_over)
			break;
		if (records - before < 1000)
			nanosleep(&rest, NULL);
	}
	s->reader_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID);
	s->records = records;
	s->complaints = complaints;
	_exit(0);
}

/* --- rounds --- */

struct figures {
	double threads, reader, wall, wrong;
};

static struct figures measure(void)
{
	pthread_t thread[THREADS];
	struct figures f = { 0 };
	double n = (double)(pairs * threads);
	pid_t child;

	s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (s == MAP_FAILED)
		exit(1);
	mask = TOTAL - 1;
	while ((mask + 1) * ring_count() > TOTAL)
		mask /= 2;
	for (uint32_t i = 0; i < ring_count(); i++)
		memset(s->memory[i], 0, mask + 1);
	memset(mailbox, 0, sizeof(mailbox));
	pthread_barrier_init(&begin, NULL, threads + 1);
	child = fork();
	if (child == 0)
		reader();
	for (uint32_t i = 0; i < threads; i++)
		pthread_create(&thread[i], NULL, run, (void *)(uintptr_t)i);
	pthread_barrier_wait(&begin);
	f.wall = now_ns(CLOCK_MONOTONIC);
	for (uint32_t i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
	f.wall = (now_ns(CLOCK_MONOTONIC) - f.wall) / n;
	__atomic_store_n(&s->is_over, 1, __ATOMIC_SEQ_CST);
	waitpid(child, NULL, 0);
	for (uint32_t i = 0; i < threads; i++)
		f.threads += thread_ns[i] / n;
	f.reader = s->reader_ns / n;
	f.wrong = s->records ? (double)s->complaints * 1e6 / (double)s->records : 0;
	munmap(s, sizeof(*s));
	return f;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median(double *value, int count)
{
	qsort(value, (size_t)count, sizeof(*value), compare);
	return value[count / 2];
}

static void bench(int rounds)
{
	struct figures (*f)[DESIGNS] = calloc((size_t)rounds, sizeof(*f));
	double *column[5];

	for (int i = 0; i < 5; i++)
		column[i] = calloc((size_t)rounds, sizeof(double));
	for (int i = 0; i < rounds; i++)
		for (design = NONE; design < DESIGNS; design++)
			if (design != ONE_PLAIN || threads == 1)
				f[i][design] = measure();
	printf("%u threads, %s\n%-14s%10s%10s%10s%12s%12s%12s\n", threads,
	       is_bursty ? "bursty" : "steady", "", "threads", "reader", "wall", "CPU/one",
	       "wall/one", "wrong/1e6");
	for (design = NONE; design < DESIGNS; design++) {
		double wrong = 0;
		if (design == ONE_PLAIN && threads > 1)
			continue;
		for (int i = 0; i < rounds; i++) {
			const struct figures *x = &f[i][design];
			const struct figures *one = &f[i][threads > 1 ? ONE : ONE_PLAIN];
			column[0][i] = x->threads;
			column[1][i] = x->reader;
			column[2][i] = x->wall;
			column[3][i] = (x->threads + x->reader) / (one->threads + one->reader);
			column[4][i] = x->wall / one->wall;
			wrong += x->wrong / rounds;
		}
		printf("%-14s%10.1f%10.1f%10.1f%12.2f%12.2f%12.0f\n", names[design],
		       median(column[0], rounds), median(column[1], rounds),
		       median(column[2], rounds), median(column[3], rounds),
		       median(column[4], rounds), wrong);
	}
	fflush(stdout);
	for (int i = 0; i < 5; i++)
		free(column[i]);
	free(f);
}

int main(int argc, char **argv)
{
	static char *few[] = { "1", "4", "16", NULL };
	int rounds = argc > 1 ? atoi(argv[1]) : 5;
	uint64_t all = argc > 2 ? strtoull(argv[2], NULL, 10) : 4000000;

	for (char **t = argc > 3 ? argv + 3 : few; *t; t++) {
		threads = (uint32_t)atoi(*t);
		if (threads < 1 || threads > THREADS)
			return 2;
		pairs = all / threads;
		for (int bursty = 0; bursty < 2; bursty++) {
			is_bursty = bursty;
			bench(rounds);
		}
	}
	return 0;
}
