/*
 * What reading costs: ns of CPU time for a pair of malloc and free, from a ring that is full, in
 * cache, and written by nobody meanwhile. Not a test; figures depend on the machine.
 *
 *	make build/release/libptmem.a
 *	cc -O2 -D_GNU_SOURCE -I. -Isrc -o build/bench_reader scripts/bench_reader.c \
 *		build/release/libptmem.a $(pkg-config --libs libdw) -lZydis -lunwind -liberty -lz -lm
 *	build/bench_reader
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "profile/profile.h"
#include "tracee/os/cpu_counters.h"
#include "tracee/pads/pad_memory.h"
#include "tracee/pads/ring.h"

#define RING (1u << 20)
#define LAPS 300
#define FIRST_LAP 150 /* before it snapshots are taken at each event */
#define THREADS 2
#define STAMP_STEP 2560u /* bytes of records between stamps, as of a busy thread */

static struct pad_memory memory;
static struct ring ring;
static struct tick_clock ticks;
static struct profile *profile;
static bool is_counted; /* else records are decoded, and that is all */

static uint64_t random_u64(void)
{
	static uint64_t x = 88172645463325252u;

	x ^= x << 13;
	x ^= x >> 7;
	return x ^= x << 17;
}

static double cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* -- the program: writes records as pads do -- */

static void put_words(uint32_t slot, uint64_t mark, uint64_t value)
{
	struct pad_ring *own = pad_memory_ring(&memory, slot);
	uint64_t *word = (void *)(pad_memory_ring_bytes(&memory, slot) + (own->head & own->mask));

	word[1] = value;
	word[0] = mark;
	own->head += 16;
}

static void put(enum pad_record_type type, uint32_t slot, uint64_t value)
{
	if (pad_memory_ring(&memory, slot)->head % STAMP_STEP == 0)
		put_words(slot, PAD_RECORD_TIME, ticks.ticks());
	put_words(slot, pad_mark(memory.control->next_number++, FUNCTION_MALLOC, type), value);
}

/* The block at *@live comes if it is 0, else it goes. */
static void turn(uint64_t *live, uint32_t slot, uint64_t addr)
{
	if (*live)
		put(PAD_RECORD_FREE, slot, *live);
	else
		put(PAD_RECORD_SAME, slot, addr * PAD_SAME_BYTES + 16 + random_u64() % 64);
	*live = *live ? 0 : addr;
}

/*
 * Fills the ring; returns how many records that are. @blocks: 0 for a block at a time in each of
 * @threads, which take turns at random; else so many that come and go at random.
 */
static size_t fill(uint64_t *live, uint32_t threads, size_t blocks)
{
	size_t n = 0;

	for (; n < RING / 16 - RING / STAMP_STEP - 4; n++) {
		uint32_t slot = blocks ? 0 : (uint32_t)(random_u64() % threads);
		size_t i = blocks ? random_u64() % blocks : slot;
		uint64_t home = blocks ? i * 64 : (slot << 20) + random_u64() % 4 * 32;
		turn(&live[i], slot, 0x7f0000001000 + home);
	}
	return n;
}

/* -- ptmem -- */

static void on_event(void *ctx, struct heap_event *ev)
{
	(void)ctx;
	(void)ev;
	abort(); /* none is of an unusual kind */
}

static uint32_t on_node(void *ctx, const struct heap_event *ev)
{
	struct calltree *t = profile_calltree(profile);

	(void)ctx;
	return calltree_get_child(t, 0, calltree_get_frame(t, 0x1000 + ev->path, 1));
}

static void on_quick(void *ctx, struct quick_event *event, size_t count)
{
	(void)ctx;
	if (is_counted)
		profile_quick(profile, event, count);
}

static void drain(size_t records)
{
	const struct ring_reader reader = {.event = on_event, .quick = on_quick, .node = on_node};
	size_t n, sum = 0;

	while ((n = ring_drain(&ring, 2048, &reader)) > 0)
		sum += n;
	ring_publish(&ring);
	if (sum != records)
		abort();
}

static void bench(const char *what, uint32_t threads, size_t blocks)
{
	const struct profile_options options = {.time_unit = TIME_MS, .peak_inaccuracy = 1.0,
						.detailed_freq = 10, .max_snapshots = 100,
						.heap_admin = 8, .alignment = 16};
	const struct pad_memory_options sizes = {4 * RING, 16, 8};
	uint64_t *live = xcalloc(blocks + THREADS, sizeof(*live));
	double ns = 0, pairs = 0;

	if (pad_memory_init(&memory, memfd_create("ring", MFD_ALLOW_SEALING), &sizes) != 0)
		abort();
	pad_memory_locate(&memory, (taddr_t)memory.base);
	tick_clock_init(&ticks, arch_native);
	tick_clock_measure(&ticks);
	ring_init(&ring, &memory, arch_native, &ticks);
	for (uint32_t i = 0; i < THREADS; i++)
		pad_slots_add(&memory, 4096 * (i + 1), 1, 2);
	profile = profile_new(&options, clock_now_ns());
	profile_start(profile, clock_now_ns());
	for (int lap = 0; lap < LAPS; lap++) {
		size_t records = fill(live, threads, blocks);
		double start = cpu_ns();
		drain(records);
		if (lap < FIRST_LAP)
			continue;
		ns += cpu_ns() - start;
		pairs += (double)records / 2;
	}
	printf("%-50s %6.1f ns\n", what, ns / pairs);
	fflush(stdout);
	profile_free(profile);
	ring_deinit(&ring);
	pad_memory_deinit(&memory);
	free(live);
}

int main(void)
{
	bench("one thread, decoded only", 1, 0);
	bench("two threads that take turns, decoded only", 2, 0);
	is_counted = true;
	bench("one thread", 1, 0);
	bench("two threads that take turns", 2, 0);
	bench("1,000 blocks, half of them live, in no order", 1, 1000);
	bench("100,000", 1, 100000);
	bench("3,000,000", 1, 3000000);
	return 0;
}
