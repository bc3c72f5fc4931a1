/*
 * Cost of the profile: bytes for a live block and a call tree node, ns for a look-up and an event.
 * Not a test; figures depend on the machine.
 *
 *	make build/release/libptmem.a
 *	cc -O2 -D_GNU_SOURCE -I. -Isrc -o build/bench_profile scripts/bench_profile.c build/release/libptmem.a
 *	build/bench_profile [BLOCKS [NODES]]
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/alloc.h"
#include "profile/profile.h"

static double now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Addresses like an allocator's: dense and ascending. */
static taddr_t addr_of(uint64_t i)
{
	return 0x555555559000 + i * 48;
}

static void bench_blocks(uint64_t count)
{
	struct blocks *b = blocks_new(false, 16);
	struct block out;
	double bytes = 0, samples = 0, start = now_ns();
	for (uint64_t i = 1; i <= count; i++) {
		struct block block = { .addr = addr_of(i), .size = 40, .capacity = 48, .leaf = 1 };
		blocks_add(b, &block, NULL);
		if (i % (count / 64 + 1) == 0 && i > count / 4) {
			bytes += (double)blocks_memory(b) / (double)i;
			samples++;
		}
	}
	printf("blocks_add  %8.1f ns  (%lu blocks, %.1f bytes each on average, %.1f at last)\n",
	       (now_ns() - start) / (double)count, (unsigned long)count, bytes / samples,
	       (double)blocks_memory(b) / (double)count);
	start = now_ns();
	for (uint64_t i = 1; i <= count; i++)
		blocks_find(b, addr_of(hash_u64(i) % count + 1), &out);
	printf("blocks_find %8.1f ns  (random)\n", (now_ns() - start) / (double)count);
	start = now_ns();
	for (uint64_t i = 1; i <= count; i++)
		blocks_take(b, addr_of(i), &out);
	printf("blocks_take %8.1f ns\n", (now_ns() - start) / (double)count);
	blocks_free(b);
}

static void bench_calltree(uint32_t count)
{
	struct calltree *t = calltree_new();
	for (uint32_t i = 0; i < 5000; i++)
		calltree_get_frame(t, 0x400000 + 9 * i, 1);
	double start = now_ns();
	for (uint32_t i = 1; calltree_node_count(t) < count; i++)
		calltree_get_child(t, (uint32_t)(hash_u64(i) % calltree_node_count(t)), 1 + i % 5000);
	printf("get_child   %8.1f ns  new (%u nodes, %.1f bytes each)\n", (now_ns() - start) / count, count,
	       (double)calltree_memory(t) / count);
	start = now_ns();
	for (uint32_t i = 1; i < count; i++)
		calltree_get_child(t, calltree_parent(t, i), calltree_node_frame(t, i));
	printf("get_child   %8.1f ns  known\n", (now_ns() - start) / count);
	calltree_free(t);
}

/* Alternating malloc and free over a window of live blocks, at 1000 sites. */
static void bench_events(uint64_t window, uint64_t count)
{
	struct profile_options o = { .time_unit = TIME_MS, .peak_inaccuracy = 1.0, .detailed_freq = 10,
				     .max_snapshots = 100, .heap_admin = 8, .alignment = 16 };
	struct profile *p = profile_new(&o, 0);
	struct calltree *t = profile_calltree(p);
	uint32_t node[1000];
	for (uint32_t i = 0; i < 1000; i++)
		node[i] = calltree_get_child(t, 0, calltree_get_frame(t, 0x1000 + i, 1));
	profile_start(p, 0);
	double start = now_ns();
	for (uint64_t i = 0; i < count; i++) {
		struct event ev = { .kind = EVENT_ALLOC, .time_ns = 200 * i, .addr = addr_of(i),
				    .size = 30 + i % 7, .node = node[hash_u64(i) % 1000] };
		profile_event(p, &ev);
		if (i < window)
			continue;
		ev = (struct event){ .kind = EVENT_FREE, .time_ns = 200 * i + 100, .addr = addr_of(i - window) };
		profile_event(p, &ev);
	}
	printf("event       %8.1f ns  (window of %lu blocks, %u snapshots, %zu bytes beside the tables)\n",
	       (now_ns() - start) / (double)(2 * count - window), (unsigned long)window, profile_snapshot_count(p),
	       profile_memory(p));
	profile_free(p);
}

int main(int argc, char **argv)
{
	uint64_t blocks = argc > 1 ? strtoull(argv[1], NULL, 10) : 10000000;
	uint32_t nodes = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 3000000;
	bench_blocks(10000);
	bench_blocks(blocks);
	bench_calltree(nodes);
	bench_events(1000, 5000000);
	bench_events(1000000, 5000000);
	return 0;
}
