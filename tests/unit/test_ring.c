/*
 * The reader alone, with records written by the test: the order of numbers, late records, the end of
 * a ring, records that no pad writes, a dead owner, slots.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "tracee/os/cpu_counters.h"
#include "tracee/pads/pad_clock.h"
#include "tracee/pads/pad_memory.h"
#include "tracee/pads/ring.h"

#define RING_SIZE 65536
#define KEEP 65536

static struct pad_memory memory;
static struct ring ring;
static struct tick_clock ticks;
static taddr_t seen[KEEP];
static size_t seen_count;

static void keep(void *ctx, struct heap_event *ev)
{
	seen[seen_count++ % KEEP] = ev->addr;
}

static void keep_quick(void *ctx, struct quick_event *event, size_t n)
{
	for (size_t i = 0; i < n; i++)
		seen[seen_count++ % KEEP] = event[i].addr;
}

static uint32_t node_of_stack(void *ctx, const struct heap_event *ev)
{
	return ev->frame_count;
}

/* With records one by one, and in batches. */
static const struct ring_reader reader = {.event = keep},
				quick = {.event = keep, .quick = keep_quick,
					 .node = node_of_stack};

static int setup(void **state)
{
	struct pad_memory_options options = { RING_SIZE, 16, 8 };
	assert_int_equal(pad_memory_init(&memory, memfd_create("ring", MFD_ALLOW_SEALING),
					 &options), 0);
	pad_memory_locate(&memory, (taddr_t)memory.base);
	tick_clock_init(&ticks, arch_native);
	tick_clock_measure(&ticks);
	ring_init(&ring, &memory, arch_native, &ticks);
	seen_count = 0;
	return 0;
}

#define WRITERS 4u

/* With threads that write the records, in slots 0 to 3. */
static int setup_threads(void **state)
{
	setup(state);
	for (uint32_t i = 0; i < WRITERS; i++)
		assert_int_equal(pad_slots_add(&memory, 50 + i, 1, 2), i);
	return 0;
}

static int teardown(void **state)
{
	ring_deinit(&ring);
	pad_memory_deinit(&memory);
	return 0;
}

/* -- writing as pads do -- */

static uint64_t take_number(void)
{
	return __atomic_fetch_add(&memory.control->next_number, 1, __ATOMIC_SEQ_CST);
}

static uint64_t *word_at(uint32_t slot, uint64_t position)
{
	return (uint64_t *)(void *)(pad_memory_ring_bytes(&memory, slot) +
				    (position & (RING_SIZE - 1)));
}

static void move_head(uint32_t slot, uint64_t size)
{
	struct pad_ring *r = pad_memory_ring(&memory, slot);

	__atomic_store_n(&r->head, r->head + size, __ATOMIC_RELEASE);
}

static void write_word(uint32_t slot, uint64_t number, enum pad_record_type type, uint64_t value)
{
	uint64_t *word = word_at(slot, pad_memory_ring(&memory, slot)->head);

	word[1] = value;
	word[0] = pad_mark(number, type == PAD_RECORD_SAME ? FUNCTION_MALLOC : FUNCTION_FREE, type);
	move_head(slot, 16);
}

static void write_free(uint32_t slot, uint64_t number, taddr_t addr)
{
	write_word(slot, number, PAD_RECORD_FREE, addr);
}

static void write_block(uint32_t slot, uint64_t number, const struct pad_record_block *block)
{
	uint64_t *word = word_at(slot, pad_memory_ring(&memory, slot)->head);

	memcpy(word, block, sizeof(*block));
	word[0] = pad_mark(number, FUNCTION_MALLOC, PAD_RECORD_ALLOC);
	move_head(slot, ROUND_UP(MAX(block->size, 48u), 16u) % RING_SIZE);
}

/* -- order -- */

static void check_seen(size_t count, const taddr_t *values)
{
	assert_null(ring.broken);
	assert_int_equal(seen_count, count);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(seen[i], values[i]);
	seen_count = 0;
}

#define SEEN(...) check_seen(sizeof((taddr_t[]){__VA_ARGS__}) / sizeof(taddr_t), (taddr_t[]){__VA_ARGS__})

static void test_many_laps(void **state)
{
	const struct pad_ring *shared = pad_memory_ring(&memory, 0);
	uint64_t n = 0;

	for (int lap = 0; lap < 50; lap++) {
		for (int i = 0; i < 3000; i++)
			write_free(0, take_number(), n++);
		assert_true(shared->head <= shared->limit);
		assert_int_equal(ring_drain(&ring, SIZE_MAX, lap % 2 ? &quick : &reader), 3000);
		assert_int_equal(seen[(n - 1) % KEEP], n - 1);
		/* room is published in steps of a sixteenth */
		assert_true(shared->limit - shared->head > RING_SIZE / 16 * 15);
	}
	ring_publish(&ring);
	assert_int_equal(shared->limit - shared->head, RING_SIZE);
	assert_int_equal(seen_count, n);
	assert_int_equal(ring_pending(&ring), 0);
	assert_int_equal(ring.stats.bytes, 16 * n);
	assert_null(ring.broken);
}

/* A record that would cross the end of the ring is written at its start. */
static void test_across_the_end(void **state)
{
	struct pad_record_block block = {.size = 64, .flags = PAD_HAS_STACK, .fresh = 2,
					 .result = 0xabc, .bytes = 5};
	struct pad_ring *shared = pad_memory_ring(&memory, 0);

	while (shared->head < RING_SIZE - 32) {
		write_free(0, take_number(), 1);
		ring_drain(&ring, SIZE_MAX, &reader);
	}
	*word_at(0, shared->head) = PAD_RECORD_FILL;
	move_head(0, 32);
	write_block(0, take_number(), &block);
	uint64_t pcs[2] = {100, 200};
	memcpy(word_at(0, 0) + 6, pcs, sizeof(pcs));
	write_free(0, take_number(), 0xdef);
	seen_count = 0;
	assert_int_equal(ring_drain(&ring, SIZE_MAX, &reader), 2);
	SEEN(0xabc, 0xdef);
	assert_int_equal(ring.mirror[0].count, 2);
	assert_int_equal(ring.mirror[0].frame[1], 199);
	ring_reset_slot(&ring, 0);
	assert_int_equal(ring.mirror[0].count, 0);
}

/* Frames from the outermost guess on are not kept, and its mark is no part of the address. */
static void test_guesses(void **state)
{
	struct pad_record_block block = {.size = 80, .fresh = 4, .result = 0xabc, .bytes = 5,
					 .flags = PAD_HAS_STACK | PAD_HAS_GUESSES};
	const uint64_t pcs[4] = {100, 200, 300 | PAD_GUESSED, 400 | PAD_GUESSED};
	struct pad_ring *shared = pad_memory_ring(&memory, 0);
	uint64_t at = shared->head;

	write_block(0, take_number(), &block);
	memcpy(word_at(0, at) + 6, pcs, sizeof(pcs));
	seen_count = 0;
	assert_int_equal(ring_drain(&ring, SIZE_MAX, &reader), 1);
	SEEN(0xabc);
	assert_int_equal(ring.mirror[0].count, 2);
	assert_int_equal(ring.mirror[0].frame[1], 199);
	assert_int_equal(ring.mirror[0].frame[2], 299);
	assert_int_equal(ring.mirror[0].frame[3], 399);
	assert_int_equal(ring.guess.count, 2);
	assert_int_equal(ring.guess.data[1], 3);
	assert_null(ring.broken);
}

/* Whatever their kinds, records of all threads come in the order of their numbers. */
static void test_order(void **state)
{
	const struct pad_record_block block = {.size = 64, .flags = PAD_HAS_STACK, .fresh = 2,
					       .result = 1, .bytes = 5},
				      aligned = {.size = 64, .flags = PAD_HAS_STACK, .fresh = 2,
						 .result = 1, .bytes = 5, .align = 64};
	uint64_t random = 88172645463325252u, n = 0;

	for (int lap = 0; lap < 100; lap++) {
		for (int i = 0; i < 1500; i++, n++) {
			struct pad_record_block b = lap % 3 ? block : aligned;
			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			uint32_t slot = random >> 20 & 3, kind = random >> 30 & 15;
			b.result = n + 1;
			if (lap % 4 && kind == 0)
				write_block(slot, take_number(), &b);
			else if (lap % 4 && kind == 1)
				write_word(slot, take_number(), PAD_RECORD_INNER_FREE, n + 1);
			else
				write_free(slot, take_number(), n + 1);
		}
		seen_count = 0;
		const struct ring_reader *by = lap % 5 ? &quick : &reader;
		for (size_t max = lap % 7 ? SIZE_MAX : 100, got = max; got >= max;)
			got = ring_drain(&ring, max, by);
		assert_null(ring.broken);
		assert_int_equal(seen_count, 1500);
		for (uint64_t i = 0; i < 1500; i++)
			assert_int_equal(seen[i], n - 1500 + i + 1);
		ring_publish(&ring);
		/* those fill the rest of no ring: their heads start over */
		for (uint32_t slot = 0; slot < WRITERS; slot++) {
			struct pad_ring *shared = pad_memory_ring(&memory, slot);
			uint64_t rest = RING_SIZE - shared->head % RING_SIZE;
			*word_at(slot, shared->head) = PAD_RECORD_FILL;
			move_head(slot, rest);
		}
		assert_int_equal(ring_drain(&ring, SIZE_MAX, by), 0);
		ring_publish(&ring);
	}
}

/* A record that is still being written holds up nothing, and comes before all that follows it. */
static void test_late(void **state)
{
	for (int i = 0; i < 2; i++) {
		const struct ring_reader *by = i ? &quick : &reader;
		uint64_t late = take_number(), later = take_number();
		write_free(1, take_number(), 3);
		assert_int_equal(ring_drain(&ring, SIZE_MAX, by), 1);
		SEEN(3);
		assert_int_equal(ring_pending(&ring), 0);
		write_free(1, take_number(), 4);
		write_free(3, later, 2);
		write_free(2, late, 1);
		write_free(2, take_number(), 5);
		assert_int_equal(ring_drain(&ring, SIZE_MAX, by), 4);
		SEEN(1, 2, 4, 5);
		assert_int_equal(ring.stats.late, 2 * i + 2);
	}
}

/* Numbers without a record: their threads were killed, or a handler jumped out of the pad. */
static void test_never(void **state)
{
	for (int i = 0; i < 2000; i++) {
		uint64_t n = take_number();
		if (i % 3 == 0)
			write_free(i % 2, n, 10 + (taddr_t)i);
	}
	assert_int_equal(ring_drain(&ring, SIZE_MAX, &quick), 667);
	for (size_t i = 0; i < 667; i++)
		assert_int_equal(seen[i], 10 + 3 * i);
	/* far apart: none in between is looked for */
	memory.control->next_number += 1ull << 50;
	write_free(0, take_number(), 1);
	seen_count = 0;
	assert_int_equal(ring_drain(&ring, SIZE_MAX, &quick), 1);
	SEEN(1);
	assert_int_equal(ring_pending(&ring), 0);
}

/* What is numbered after a turn began is left to the next one: something before it may be missing. */
static void test_later_numbers(void **state)
{
	uint64_t first = take_number(), second = take_number();

	memory.control->next_number = first;
	write_free(1, second, 2);
	assert_int_equal(ring_drain(&ring, SIZE_MAX, &quick), 0);
	write_free(0, first, 1);
	memory.control->next_number = second + 1;
	assert_int_equal(ring_drain(&ring, SIZE_MAX, &quick), 2);
	SEEN(1, 2);
}

/* The stack of a short record is that of its thread's last one, also of a late one. */
static void test_stacks(void **state)
{
	struct pad_record_block block = {.size = 64, .flags = PAD_HAS_STACK, .fresh = 2,
					 .result = 1, .bytes = 5};
	uint64_t late = take_number();

	write_word(1, take_number(), PAD_RECORD_SAME, 9 << 16 | 8);
	assert_int_equal(ring_drain(&ring, SIZE_MAX, &quick), 1);
	write_block(0, late, &block);
	write_word(0, take_number(), PAD_RECORD_SAME, 3 << 16 | 8);
	write_word(1, take_number(), PAD_RECORD_SAME, 4 << 16 | 8);
	assert_int_equal(ring_drain(&ring, SIZE_MAX, &quick), 3);
	SEEN(9, 1, 3, 4);
	assert_int_equal(ring.mirror[0].node, 2);
	assert_int_equal(ring.mirror[1].node, 0);
	assert_int_equal(ring.stats.records, 4);
}

/* -- threads -- */

#define ROUNDS 100000
#define COUNT_BITS 32

static uint64_t written[WRITERS], delivered[WRITERS]; /* records of each thread */

static void wait_for_room(uint32_t slot)
{
	const struct pad_ring *r = pad_memory_ring(&memory, slot);

	while (r->head + 16 > __atomic_load_n(&r->limit, __ATOMIC_ACQUIRE))
		sched_yield();
}

/* Each record says how many another thread had written before. Some threads take their time. */
static void *write_records(void *arg)
{
	uint32_t slot = (uint32_t)(uintptr_t)arg;

	for (uint64_t i = 0; i < ROUNDS; i++) {
		uint64_t other = (slot + 1 + i % (WRITERS - 1)) % WRITERS;
		wait_for_room(slot);
		uint64_t seen_there = __atomic_load_n(&written[other], __ATOMIC_ACQUIRE);
		uint64_t number = take_number();
		for (uint64_t pause = 0; slot > 1 && pause < i % 128; pause++)
			__builtin_ia32_pause();
		write_free(slot, number, other << COUNT_BITS | seen_there);
		__atomic_store_n(&written[slot], i + 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

static void see_quick(void *ctx, struct quick_event *event, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t before = event[i].addr & ((UINT64_C(1) << COUNT_BITS) - 1);
		assert_true(delivered[event[i].addr >> COUNT_BITS] >= before);
		delivered[event[i].slot]++;
	}
}

/* What a thread has seen of another one is delivered before it. */
static void test_threads(void **state)
{
	const struct ring_reader by = {.event = keep, .quick = see_quick, .node = node_of_stack};
	pthread_t thread[WRITERS];
	size_t sum = 0;

	memset(written, 0, sizeof(written));
	memset(delivered, 0, sizeof(delivered));
	for (uintptr_t i = 0; i < WRITERS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, write_records, (void *)i), 0);
	while (sum < WRITERS * ROUNDS) {
		size_t n = ring_drain(&ring, 2048, &by);
		assert_null(ring.broken);
		ring_publish(&ring);
		sum += n;
		if (n == 0)
			sched_yield();
	}
	for (uint32_t i = 0; i < WRITERS; i++) {
		pthread_join(thread[i], NULL);
		assert_int_equal(delivered[i], ROUNDS);
		assert_int_equal(ring.source[i].position, pad_memory_ring(&memory, i)->head);
	}
	assert_int_equal(ring_pending(&ring), 0);
	assert_int_equal(ring.stats.records, WRITERS * ROUNDS);
}

/* A thread forks while it writes a record: it completes it in both. */
static void test_fork(void **state)
{
	static struct pad_memory own;
	struct pad_memory_options options = { RING_SIZE, 16, 8 };
	struct pad_record_block block = {.size = 64, .flags = PAD_HAS_STACK, .fresh = 2,
					 .result = 7, .bytes = 5};
	struct ring child;

	for (taddr_t i = 1; i <= 5; i++)
		write_free(2, take_number(), i);
	assert_int_equal(ring_drain(&ring, SIZE_MAX, &reader), 5);
	uint64_t number = take_number();
	write_free(1, take_number(), 6);
	memcpy(word_at(2, 80), &block, sizeof(block));
	ring_pending(&ring);
	struct ring_unfinished *saved = ring_save_unfinished(&ring, 2);
	ring_fork(&child, &ring, 2);
	seen_count = 0;
	ring_drain(&ring, SIZE_MAX, &reader);
	SEEN(6);
	assert_int_equal(pad_memory_init(&own, memfd_create("child", MFD_ALLOW_SEALING), &options), 0);
	pad_memory_locate(&own, memory.target);
	const struct pad_slot *slot = pad_memory_slot(&memory, 2);
	pad_slots_inherit(&own, memory.control, slot, NULL);
	child.memory = &own;
	ring_restore_unfinished(&child, 2, saved);
	assert_int_equal(ring_drain(&child, SIZE_MAX, &reader), 0);
	/* the same memory as before, as far as pads can tell */
	assert_int_equal(pad_memory_slot(&own, 2)->ring, slot->ring);
	assert_int_equal(pad_memory_ring(&own, 2)->at, pad_memory_ring(&memory, 2)->at);
	assert_int_equal(pad_memory_ring(&own, 2)->limit, 80 + RING_SIZE);
	uint64_t *word = (uint64_t *)(void *)(pad_memory_ring_bytes(&own, 2) + 80);
	word[0] = pad_mark(number, FUNCTION_MALLOC, PAD_RECORD_ALLOC);
	pad_memory_ring(&own, 2)->head += 64;
	assert_int_equal(ring_drain(&child, SIZE_MAX, &reader), 1);
	assert_null(child.broken);
	SEEN(7);
	write_block(2, number, &block);
	ring_drain(&ring, SIZE_MAX, &reader);
	SEEN(7);
	free(saved);
	ring_deinit(&child);
	pad_memory_deinit(&own);
}

/* -- lists -- */

static uint32_t list_count, list_kept;

static void note_list(void *ctx, struct heap_event *ev)
{
	(void)ctx;
	list_count = ev->list_count;
	list_kept = ev->list_kept;
	for (uint32_t i = 0; i < ev->list_count; i++)
		assert_int_equal(ev->list[i].word, 2 * i + 2);
}

/* Frames @kept to @end of the list; @is_part: in a record of their own, else in that of a block. */
static void write_list(uint32_t kept, uint32_t end, bool is_part)
{
	uint64_t *word = word_at(0, pad_memory_ring(&memory, 0)->head), *p = word;
	uint32_t size = (uint32_t)((end - kept) * sizeof(struct pad_listed_frame));
	struct pad_record_block block = {.result = 16, .bytes = 8, .raw = kept,
					 .flags = PAD_HAS_STACK | PAD_HAS_VIRTUAL,
					 .size = (uint32_t)sizeof(block) + size};
	struct pad_record_list part = {.size = (uint32_t)sizeof(part) + size, .kept = kept};

	if (is_part)
		memcpy(p, &part, sizeof(part));
	else
		memcpy(p, &block, sizeof(block));
	p += (is_part ? sizeof(part) : sizeof(block)) / sizeof(*p);
	for (uint32_t i = kept; i < end; i++) {
		*p++ = 2 * i + 2;
		*p++ = 0;
	}
	word[0] = pad_mark(take_number(), is_part ? 0 : FUNCTION_MALLOC,
			   is_part ? PAD_RECORD_LIST : PAD_RECORD_ALLOC);
	move_head(0, (uint64_t)((char *)p - (char *)word));
}

static void check_list(uint32_t count, uint32_t kept)
{
	const struct ring_reader lists = {.event = note_list};

	ring_drain(&ring, SIZE_MAX, &lists);
	assert_null(ring.broken);
	assert_int_equal(list_count, count);
	assert_int_equal(list_kept, kept);
}

/* The sink gets each frame of a list once, whichever records it came in. */
static void test_list_parts(void **state)
{
	(void)state;
	write_list(0, 3, false);
	check_list(3, 0);
	write_list(2, 40, true);
	write_list(40, 80, true);
	write_list(80, 81, false);
	check_list(81, 2);
	write_list(70, 90, true); /* of a record that was lost */
	write_list(80, 80, false);
	check_list(80, 70);
	write_list(81, 82, true);
	assert_int_equal(ring_drain(&ring, SIZE_MAX, &reader), 0);
	assert_non_null(ring.broken);
}

/* -- labels -- */

static struct pad_label_value labels_seen[PAD_LABELS];

static void note_labels(void *ctx, struct heap_event *ev)
{
	(void)ctx;
	memcpy(labels_seen, ev->label, sizeof(labels_seen));
}

static void write_label(const struct pad_record_label *record, const char *text)
{
	uint64_t *word = word_at(0, pad_memory_ring(&memory, 0)->head);

	memcpy(word, record, sizeof(*record));
	if (text)
		strncpy((char *)(word + sizeof(*record) / sizeof(*word)), text, PAD_LABEL_BYTES);
	word[0] = pad_mark(take_number(), 0, PAD_RECORD_LABEL);
	move_head(0, MAX(record->size, 16u));
}

/* Events have those that were recorded before, until there are others. */
static void test_labels(void **state)
{
	const struct ring_reader reads_labels = {.event = note_labels};

	(void)state;
	write_label(&(struct pad_record_label){.size = 32, .label = 2, .bytes = 9,
					       .state = PAD_LABEL_PRESENT}, "ninebytes");
	write_free(0, take_number(), 1);
	ring_drain(&ring, SIZE_MAX, &reads_labels);
	assert_null(ring.broken);
	assert_int_equal(labels_seen[2].state, PAD_LABEL_PRESENT);
	assert_int_equal(labels_seen[2].size, 9);
	assert_memory_equal(labels_seen[2].word, "ninebytes\0\0\0\0\0\0", 16);
	assert_int_equal(labels_seen[1].state, PAD_LABEL_ABSENT);
	write_label(&(struct pad_record_label){.size = 16, .label = 2, .state = PAD_LABEL_GONE},
		    "");
	write_free(0, take_number(), 1);
	ring_drain(&ring, SIZE_MAX, &reads_labels);
	assert_null(ring.broken);
	assert_int_equal(labels_seen[2].state, PAD_LABEL_GONE);
	assert_int_equal(labels_seen[2].size, 0);
	assert_int_equal(labels_seen[2].sp, 0);
	uint64_t *words = word_at(0, pad_memory_ring(&memory, 0)->head);

	words[2] = 0x7ff0;
	words[3] = 0x4000;
	write_label(&(struct pad_record_label){.size = 32, .label = 7, .state = PAD_LABEL_NULL | PAD_LABEL_OF_CALL}, NULL);
	write_free(0, take_number(), 1);
	ring_drain(&ring, SIZE_MAX, &reads_labels);
	assert_null(ring.broken);
	assert_int_equal(labels_seen[7].state, PAD_LABEL_NULL);
	assert_int_equal(labels_seen[7].sp, 0x7ff0);
	assert_int_equal(labels_seen[7].return_pc, 0x4000);
}

/* Each alone; in a ring of its own. */
static void test_bad_labels(void **state)
{
	static const struct pad_record_label bad[] = {
		{.size = 16, .label = PAD_LABELS},
		{.size = 16, .state = PAD_LABEL_STATES},
		{.size = 16, .state = PAD_LABEL_GONE | PAD_LABEL_OF_CALL},
		{.size = 32, .state = PAD_LABEL_GONE, .bytes = 8},
		{.size = 112, .state = PAD_LABEL_PRESENT, .bytes = PAD_LABEL_BYTES + 1},
		{.size = 16, .state = PAD_LABEL_PRESENT, .bytes = 8},
		{.size = 0},
		{.size = RING_SIZE},
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		write_label(&bad[i], "");
		assert_int_equal(ring_drain(&ring, SIZE_MAX, &reader), 0);
		assert_non_null(ring.broken);
		teardown(state);
		setup_threads(state);
	}
}

/* -- records that no pad writes -- */

/* A good record followed by @bad: only the good one is read. */
static void check_broken(const struct pad_record_block *bad)
{
	write_free(0, take_number(), 1);
	write_block(0, take_number(), bad);
	write_free(0, take_number(), 2);
	assert_null(ring.broken);
	assert_int_equal(ring_drain(&ring, SIZE_MAX, &reader), 1);
	assert_non_null(ring.broken);
	assert_int_equal(memory.control->off, 1);
	assert_int_equal(seen_count, 1);
	assert_int_equal(ring_pending(&ring), 0);
	assert_int_equal(ring_drain(&ring, SIZE_MAX, &reader), 0);
}

static void test_kept_too_many(void **state)
{
	check_broken(&(struct pad_record_block){ .size = 64, .flags = PAD_HAS_STACK, .fresh = 2,
						.kept = 1 });
}

static void test_guesses_without_stack(void **state)
{
	check_broken(&(struct pad_record_block){ .size = 48, .flags = PAD_HAS_GUESSES, .result = 1 });
}

static void test_kept_huge(void **state)
{
	check_broken(&(struct pad_record_block){ .size = 64, .flags = PAD_HAS_STACK, .fresh = 2,
						 .kept = UINT32_MAX - 1 });
}

static void test_too_deep(void **state)
{
	struct pad_record_block good = { .size = 48 + 8 * 4096 - 48, .flags = PAD_HAS_STACK,
					 .fresh = 4096 - 6, .result = 1 };
	for (good.kept = 0; good.kept + good.fresh <= PAD_MAX_FRAMES; good.kept += good.fresh) {
		write_block(0, take_number(), &good);
		assert_int_equal(ring_drain(&ring, SIZE_MAX, &reader), 1);
		ring_publish(&ring);
	}
	seen_count = 0;
	check_broken(&(struct pad_record_block){ .size = 48 + 8 * 64, .flags = PAD_HAS_STACK, .fresh = 64,
						 .kept = good.kept, .result = 1 });
}

static void test_size_of_nothing(void **state)
{
	check_broken(&(struct pad_record_block){ .size = 0, .result = 1 });
}

static void test_size_of_more(void **state)
{
	check_broken(&(struct pad_record_block){ .size = 64, .result = 1 });
}

static void test_raw_huge(void **state)
{
	check_broken(&(struct pad_record_block){ .size = 192, .flags = PAD_HAS_RAW, .raw =
						UINT32_MAX - 7 });
}

static void break_by(const struct ring_reader *by)
{
	assert_null(ring.broken);
	assert_int_equal(ring_drain(&ring, SIZE_MAX, by), 0);
	assert_non_null(ring.broken);
}

/* Its size leads beyond the head. */
static void test_after_the_head(void **state)
{
	write_block(0, take_number(), &(struct pad_record_block){.size = 64, .flags = PAD_HAS_STACK,
								 .fresh = 2, .result = 1});
	pad_memory_ring(&memory, 0)->head -= 16;
	break_by(&quick);
}

/* Its size leads beyond the end of the ring. */
static void test_after_the_end(void **state)
{
	struct pad_record_block block = {.size = 64, .flags = PAD_HAS_STACK, .fresh = 2, .result = 1};

	for (int i = 0; i < RING_SIZE / 16 - 3; i++) {
		write_free(0, take_number(), 1);
		assert_int_equal(ring_drain(&ring, SIZE_MAX, &quick), 1);
	}
	ring_publish(&ring);
	write_block(0, take_number(), &block);
	break_by(&quick);
}

static void test_fill_too_long(void **state)
{
	*word_at(0, 0) = PAD_RECORD_FILL;
	move_head(0, 64);
	break_by(&quick);
}

static void test_numbers(void **state)
{
	write_free(0, 0, 1);
	break_by(&reader);
}

static void test_same_number(void **state)
{
	uint64_t number = take_number();

	write_free(0, number, 1);
	write_free(0, number, 2);
	assert_int_equal(ring_drain(&ring, SIZE_MAX, &quick), 1);
	assert_non_null(ring.broken);
}

static void test_numbers_go_back(void **state)
{
	uint64_t number = take_number();

	write_free(0, take_number(), 1);
	assert_int_equal(ring_drain(&ring, SIZE_MAX, &quick), 1);
	write_free(0, number, 2);
	break_by(&quick);
}

static void test_unknown_kind(void **state)
{
	write_word(0, take_number(), 12, 1);
	break_by(&quick);
}

static void test_head(void **state)
{
	static const uint64_t heads[] = {UINT64_MAX, 8, 1ull << 40, -16ull, 1ull << 63,
					 RING_SIZE + 16};
	for (size_t i = 0; i < ARRAY_SIZE(heads); i++) {
		ring.broken = NULL;
		pad_memory_ring(&memory, 1)->head = heads[i];
		break_by(i % 2 ? &quick : &reader);
	}
}

static void test_next_number(void **state)
{
	static const uint64_t numbers[] = {0, 1, UINT64_MAX, 1ull << 56};

	write_free(0, take_number(), 1);
	assert_int_equal(ring_drain(&ring, SIZE_MAX, &quick), 1);
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		ring.broken = NULL;
		memory.control->next_number = numbers[i];
		break_by(&quick);
		assert_int_equal(ring_pending(&ring), 0);
	}
}

/* All shared memory may be overwritten: positions and owners of threads are still known. */
static void test_overwritten(void **state)
{
	static struct pad_owner owner;
	assert_int_equal(pad_owner_init(&owner), 0);
	pad_owner_add(&owner, &memory);
	for (uint64_t tp = 100; tp < 110; tp++)
		assert_int_equal(pad_slots_add(&memory, tp, 1, 2), tp - 100);
	memset(memory.base, 0xee, memory.layout.file_size);
	for (uint64_t tp = 100; tp < 110; tp++)
		assert_int_equal(pad_slots_find(&memory, tp), tp - 100);
	assert_int_equal(pad_slots_add(&memory, 105, 3, 4), 5);
	pad_slots_remove(&memory, 105);
	assert_int_equal(pad_slots_find(&memory, 105), -ENOENT);
	assert_int_equal(pad_slots_find(&memory, 0xeeeeeeeeeeeeeeee), -ENOENT);
	pad_owner_remove(&owner, &memory);
	assert_int_equal(owner.head.list, (uintptr_t)&owner.head.list);
}

/* -- times -- */

static uint64_t dates[KEEP];
static size_t date_count;

static void keep_dates(void *ctx, struct quick_event *event, size_t n)
{
	(void)ctx;
	for (size_t i = 0; i < n; i++)
		dates[date_count++ % KEEP] = event[i].time_ns;
}

static void write_stamp(uint32_t slot, uint64_t stamp)
{
	uint64_t *word = word_at(slot, pad_memory_ring(&memory, slot)->head);

	word[1] = stamp;
	word[0] = PAD_RECORD_TIME;
	move_head(slot, PAD_TIME_SIZE);
}

static void write_clock(uint32_t slot, uint64_t ns)
{
	write_stamp(slot, ns);
	*word_at(slot, pad_memory_ring(&memory, slot)->head - PAD_TIME_SIZE) = PAD_RECORD_CLOCK;
}

static void write_frees(uint32_t slot, unsigned count)
{
	while (count--)
		write_free(slot, take_number(), 1);
}

static uint64_t fake_now;

/* Of a clock whose ticks are nanoseconds. */
static struct tick_pair read_fake(void)
{
	return (struct tick_pair){fake_now, fake_now};
}

/* A turn at @ns. */
static void turn_at(uint64_t ns)
{
	const struct ring_reader by = {.event = keep, .quick = keep_dates, .node = node_of_stack};

	fake_now = ns;
	ticks = (struct tick_clock){.read = read_fake};
	date_count = 0;
	ring_drain(&ring, SIZE_MAX, &by);
	assert_null(ring.broken);
}

static void test_times(void **state)
{
	write_stamp(0, 1000000);
	write_frees(0, 4);
	write_stamp(0, 1004000);
	write_frees(0, 2);
	turn_at(1010000);
	/* at first the pace is not known; behind the second stamp it is that before it */
	static const uint64_t line[] = {1000000, 1000000, 1000000, 1000000, 1004000, 1005000};
	assert_int_equal(date_count, 6);
	assert_memory_equal(dates, line, sizeof(line));
	/* a pause: those without a number at the turn came after it; not beyond the next turn */
	write_frees(0, 2);
	write_stamp(0, 2000000);
	write_frees(0, 2);
	turn_at(2000500);
	static const uint64_t late[] = {1010000, 1011000, 2000000, 2000500};
	assert_int_equal(date_count, 4);
	assert_memory_equal(dates, late, sizeof(late));
}

/* A record that had its number at a turn, but was completed later, is older than that. */
static void test_time_of_number(void **state)
{
	uint64_t first = take_number(), second = take_number();

	write_stamp(0, 1000000);
	write_stamp(1, 1001000);
	write_free(1, second, 2);
	turn_at(5000000);
	assert_int_equal(date_count, 1);
	assert_int_equal(dates[0], 1001000);
	write_free(0, first, 1);
	turn_at(9000000);
	assert_int_equal(dates[0], 1000000);
}

/* Each but the last was read on another CPU. */
static void test_counters_agree(void **state)
{
	struct tick_pair pairs[] = {
		{1000, 500}, {2001000, 1000500}, {7001000, 3500500}, {9001000, 4500500}};

	(void)state;
	assert_true(tick_pairs_agree(pairs, 4));
	pairs[2].ticks -= 5000; /* 2.5 us */
	assert_false(tick_pairs_agree(pairs, 4));
	pairs[2].ticks += 10000;
	assert_false(tick_pairs_agree(pairs, 4));
	assert_true(tick_pairs_agree(pairs, 2));
	assert_false(tick_pairs_agree(pairs, 1));
	pairs[3].ticks = pairs[0].ticks;
	assert_false(tick_pairs_agree(pairs, 4));
}

/* Without stamps: between the turns. */
static void test_times_of_turns(void **state)
{
	turn_at(1000);
	write_frees(0, 4);
	turn_at(5000);
	static const uint64_t between[] = {1000, 2000, 3000, 4000};
	assert_int_equal(date_count, 4);
	assert_memory_equal(dates, between, sizeof(between));
	assert_int_equal(ring.stats.coarse, 0);
	pad_memory_set_flags(&memory, PAD_NO_TICKS);
	turn_at(100000);
	write_frees(0, 3);
	turn_at(5100000);
	assert_int_equal(ring.stats.coarse, 3);
	assert_int_equal(ring.stats.coarse_ns, 5000000);
}

/* Without a stamp and without an earlier turn they are as old as the ring at most. */
static void test_times_without_start(void **state)
{
	pad_memory_set_flags(&memory, PAD_NO_TICKS);
	ring.started_ns = 1000000;
	write_frees(0, 3);
	turn_at(3500000);
	assert_int_equal(ring.stats.coarse, 3);
	assert_int_equal(ring.stats.coarse_ns, 2500000);
	assert_int_equal(ring_stats_error(&ring.stats), 2500000);
}

/* At the pace before it a line would pass the turn. */
static void test_times_of_long_lines(void **state)
{
	pad_memory_set_flags(&memory, PAD_NO_TICKS);
	write_clock(0, 1000000);
	write_frees(0, 1);
	write_clock(0, 1200000);
	write_frees(0, 400);
	turn_at(31200000);
	assert_int_equal(date_count, 401);
	assert_int_equal(dates[100], 1200000 + 99 * 200000);
	assert_int_equal(dates[400], 31200000);
	assert_int_equal(ring.stats.coarse_ns, 31200000 - 1000000);
}

/* The order of numbers counts: what follows a date of another thread that is too late is too late. */
static void test_pulled_times(void **state)
{
	pad_memory_set_flags(&memory, PAD_NO_TICKS);
	ring.started_ns = 1000000;
	write_free(0, take_number(), 1);
	write_stamp(1, 1050000);
	write_frees(1, 3);
	write_stamp(1, 3450000);
	write_frees(1, 5);
	turn_at(3500000);
	assert_int_equal(ring.stats.coarse_ns, 2500000);
	assert_int_equal(ring.stats.coarse, 1 + 3);
}

/* Between one turn of ptmem's clock and the next: in the middle, or at the thread's own pace. */
static void test_times_of_words(void **state)
{
	pad_memory_set_flags(&memory, PAD_NO_TICKS);
	write_clock(0, 1000000);
	write_frees(0, 2);
	write_clock(0, 1100000);
	write_frees(0, 100);
	write_clock(0, 1200000);
	write_frees(0, 100);
	turn_at(1290000);
	assert_int_equal(date_count, 202);
	/* the turn is the end of all, for there is no clock that knows better */
	assert_int_equal(dates[0], 1145000);
	assert_int_equal(dates[1], 1145000);
	assert_int_equal(dates[2], 1195000);
	assert_int_equal(dates[101], 1195000);
	assert_int_equal(dates[102], 1200000);
	assert_true(dates[103] > 1200900 && dates[103] <= 1201000);
	assert_true(dates[191] > 1288000 && dates[191] <= 1290000);
	assert_int_equal(dates[201], 1290000);
	assert_int_equal(ring.stats.coarse, 0);
}

/* The clock had to wait for a CPU: so inexact are times. Another stamp ends that. */
static void test_late_words(void **state)
{
	pad_memory_set_flags(&memory, PAD_NO_TICKS);
	write_clock(0, 1000000);
	write_frees(0, 3);
	turn_at(6000000);
	assert_int_equal(ring.stats.coarse, 3);
	assert_int_equal(ring.stats.coarse_ns, 5000000);
	write_clock(0, 5900000);
	write_frees(0, 3);
	write_clock(0, 5990000);
	write_frees(0, 3);
	turn_at(6010000);
	assert_int_equal(ring.stats.coarse, 3);
}

/* The word is renewed; of each one that was, the end is known. */
static void test_clock(void **state)
{
	struct pad_clock *c = pad_clock_new();
	struct pad_control control = {0};
	uint64_t start = clock_now_ns(), first, later;

	(void)state;
	assert_true(pad_clock_add(c, &control));
	first = __atomic_load_n(&control.clock, __ATOMIC_ACQUIRE);
	assert_true(first >= start);
	while ((later = __atomic_load_n(&control.clock, __ATOMIC_ACQUIRE)) == first)
		;
	assert_true(later > first);
	while (pad_clock_end(c, later) == UINT64_MAX)
		;
	assert_true(pad_clock_end(c, later) > later);
	assert_int_equal(pad_clock_end(c, UINT64_MAX - 1), UINT64_MAX);
	pad_clock_remove(c, &control);
	later = control.clock;
	start = clock_now_ns();
	while (clock_now_ns() - start < 20 * PAD_CLOCK_NS)
		;
	assert_int_equal(__atomic_load_n(&control.clock, __ATOMIC_ACQUIRE), later);
	pad_clock_delete(c);
}

/* Keeps the only CPU for @ns, then lets the clock have its turn. Returns when @old was last there. */
static uint64_t delay_clock(const struct pad_control *control, uint64_t old, uint64_t ns)
{
	const struct timespec pause = {.tv_nsec = PAD_CLOCK_NS / 4};
	uint64_t start = clock_now_ns(), there = start, now;

	do {
		now = clock_now_ns();
		if (__atomic_load_n(&control->clock, __ATOMIC_ACQUIRE) == old)
			there = now;
	} while (now - start < ns);
	while (__atomic_load_n(&control->clock, __ATOMIC_ACQUIRE) == old)
		nanosleep(&pause, NULL);
	return there;
}

/* Turns that are late, also the first, with and without the priority that keeps them so. */
static void test_late_clock(void **state)
{
	const struct sched_param high = {.sched_priority = sched_get_priority_min(SCHED_FIFO) + 1},
				 none = {0};
	struct pad_clock *c = pad_clock_new();
	struct pad_control control = {0};
	cpu_set_t before, one;
	uint64_t word[20], there[20];

	(void)state;
	sched_getaffinity(0, sizeof(before), &before);
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_setaffinity(0, sizeof(one), &one);
	pthread_setschedparam(pthread_self(), SCHED_FIFO, &high);
	assert_true(pad_clock_add(c, &control));
	for (size_t i = 0; i < ARRAY_SIZE(word); i++) {
		word[i] = control.clock;
		there[i] = delay_clock(&control, word[i], 10 * PAD_CLOCK_NS);
	}
	for (size_t i = 0; i < ARRAY_SIZE(word); i++)
		assert_true(pad_clock_end(c, word[i]) >= there[i]);
	for (int i = 0; i < 1100; i++) /* more than it remembers */
		delay_clock(&control, control.clock, 2 * PAD_CLOCK_NS);
	assert_true(pad_clock_end(c, word[0]) >= there[0]);
	pthread_setschedparam(pthread_self(), SCHED_OTHER, &none);
	sched_setaffinity(0, sizeof(before), &before);
	pad_clock_delete(c);
}

static void write_meanwhile(void *ctx, struct quick_event *event, size_t n)
{
	(void)ctx, (void)event, (void)n;
	write_frees(0, 1);
}

/* A ring where nothing is new at the end of a turn asks for a stamp, once, and says since when. */
static void test_asks_for_stamp(void **state)
{
	const struct ring_reader by = {.event = keep, .quick = write_meanwhile,
				       .node = node_of_stack};
	struct pad_ring *r = pad_memory_ring(&memory, 0);

	write_frees(0, 1);
	r->soft_limit = 500;
	turn_at(1000);
	assert_int_equal(r->soft_limit, 0);
	assert_int_equal(r->seen_ticks, 1000);
	r->soft_limit = 600;
	turn_at(2000);
	assert_int_equal(r->soft_limit, 600);
	write_frees(0, 1);
	fake_now = 3000;
	ring_drain(&ring, SIZE_MAX, &by);
	assert_int_equal(r->soft_limit, 600);
	turn_at(4000);
	assert_int_equal(r->soft_limit, 0);
	assert_int_equal(r->seen_ticks, 4000);
}

/* Whatever a program writes: neither backwards, nor beyond the turn. */
static void test_forged_times(void **state)
{
	static const uint64_t forged[] = {UINT64_MAX, 0, 1, 3000, 2000, UINT64_MAX / 2, 1ull << 63};
	uint64_t last = 0, now = 10000;

	for (size_t i = 0; i < 20 * ARRAY_SIZE(forged); i++) {
		if (i % 2)
			write_stamp(0, forged[hash_u64(i) % ARRAY_SIZE(forged)]);
		else
			write_clock(0, forged[hash_u64(i) % ARRAY_SIZE(forged)]);
		write_frees(0, i % 5);
		if (i % 3)
			continue;
		turn_at(now += 5000);
		for (size_t k = 0; k < date_count; k++) {
			assert_true(dates[k] >= last && dates[k] <= now);
			last = dates[k];
		}
	}
}

/* Access beyond the end of a truncated file would raise SIGBUS. */
static void test_size_is_sealed(void **state)
{
	assert_int_equal(ftruncate(memory.fd, 0), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(pad_memory_grow(&memory, memfd_create("not sealed", MFD_CLOEXEC), 1),
			 -EBADF);
}

/* The program replaced the file that ptmem made it open. */
static void test_other_file(void **state)
{
	struct pad_memory_options options = { RING_SIZE, 4, 8 };
	struct pad_memory other;
	char name[] = "/tmp/test_ring.XXXXXX", text[8] = "";
	int fd = mkstemp(name);

	assert_int_equal(write(fd, "secret", 6), 6);
	assert_int_equal(pad_memory_init(&other, fd, &options), -EBADF);
	assert_int_equal(pad_memory_grow(&memory, fd, 1), -EBADF);
	assert_int_equal(pread(fd, text, sizeof(text), 0), 6);
	assert_string_equal(text, "secret");
	unlink(name);
	close(fd);
}

/* The kernel marks the control block when its owner is killed. */
static void test_dead_owner(void **state)
{
	pid_t pid = fork();
	if (pid == 0) {
		static struct pad_owner owner;
		struct pad_memory_options options = { RING_SIZE, 4, 8 };
		static struct pad_memory other;
		pad_memory_init(&other, memfd_create("other", MFD_ALLOW_SEALING), &options);
		if (pad_owner_init(&owner) != 0)
			_exit(1);
		pad_owner_add(&owner, &other);
		pad_owner_add(&owner, &memory);
		pad_owner_remove(&owner, &other);
		pad_memory_deinit(&other);
		kill(getpid(), SIGKILL);
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_true(memory.control->owner & PAD_OWNER_DIED);
}

/* The ring of slot @index, the one @within the chunk of @count at @start. */
static void check_ring(uint32_t index, taddr_t start, uint32_t within, uint32_t count)
{
	const struct pad_ring *r = pad_memory_ring(&memory, index);
	size_t slots = ROUND_UP(count * sizeof(struct pad_slot), 4096u);

	assert_int_equal(pad_memory_slot(&memory, index)->ring,
			 memory.target + PAD_RINGS_OFFSET + index * sizeof(*r));
	assert_int_equal(r->at, start + slots + (size_t)within * PAD_RING_MIN);
	assert_int_equal(r->mask, PAD_RING_MIN - 1);
	assert_int_equal(r->limit, PAD_RING_MIN);
}

/* Whatever the number of chunks, a slot has the same index in target and reader. */
static void test_more_slots(void **state)
{
	const taddr_t first = memory.slots.chunk[0].target;
	uint32_t count = 16;

	for (uint64_t k = 1; pad_memory_more(&memory) > 0; k++) {
		for (uint32_t i = memory.slots.used; i < count; i++)
			assert_int_equal(pad_slots_add(&memory, 100 + i, 1, i), i);
		assert_false(pad_slots_have_room(&memory, 1));
		assert_int_equal(pad_memory_more(&memory),
				 ROUND_UP(count * sizeof(struct pad_slot), 4096u) +
					 count * (size_t)PAD_RING_MIN);
		assert_int_equal(pad_memory_grow(&memory, -1, 0), -EBADF);
		assert_int_equal(pad_memory_grow(&memory, memfd_create("more", MFD_ALLOW_SEALING),
						 k << 40), 0);
		count *= 2;
		assert_int_equal(memory.slots.count, count);
		assert_int_equal(memory.slots.chunk_count, k + 1);
	}
	assert_int_equal(memory.slots.chunk_count, PAD_MAX_CHUNKS);
	for (uint32_t i = 0; i < memory.slots.used; i++) {
		const struct pad_directory *d = (void *)(memory.base + memory.layout.directory);
		uint64_t at = pad_directory_hash(100 + i);
		while (d[at].thread_pointer != 100 + i)
			at = (at + 1) % (1u << PAD_DIRECTORY_BITS);
		uint32_t chunk = i < 16 ? 0 : 28 - (uint32_t)__builtin_clz(i);
		uint64_t start = chunk ? (uint64_t)chunk << 40 : first, before = chunk ?
			8u << chunk : 0;
		assert_int_equal(d[at].slot, start + (i - before) * sizeof(struct pad_slot));
		assert_int_equal(memory.control->chunk[chunk].slots, start);
		assert_in_range(memory.control->chunk[chunk].used, i - before + 1, count);
		assert_int_equal(pad_slots_find(&memory, 100 + i), i);
		assert_int_equal(pad_memory_slot(&memory, i)->stack_high, i);
		check_ring(i, start, i - before, chunk ? 8u << chunk : 16);
	}
	assert_int_equal(pad_memory_grow(&memory, -1, 0), -ENOSPC);
}

static void test_slots(void **state)
{
	for (uint64_t tp = 100; tp < 116; tp++)
		assert_int_equal(pad_slots_add(&memory, tp, 1, 2), tp - 100);
	assert_int_equal(pad_slots_add(&memory, 500, 1, 2), -ENOSPC);
	assert_false(pad_slots_have_room(&memory, 500));
	assert_true(pad_slots_have_room(&memory, 115)); /* its own */
	pad_memory_slot(&memory, 5)->return_at = 77;
	assert_int_equal(pad_slots_add(&memory, 105, 3, 4), 5);
	assert_int_equal(pad_memory_slot(&memory, 5)->return_at, 0);
	assert_int_equal(pad_memory_slot(&memory, 5)->stack_high, 4);
	pad_slots_remove(&memory, 105);
	assert_true(pad_slots_have_room(&memory, 500));
	assert_int_equal(pad_slots_find(&memory, 105), -ENOENT);
	assert_int_equal(pad_slots_find(&memory, 115), 15);
	for (uint64_t tp = 1000; tp < 3000; tp++) { /* removed places are reused */
		assert_int_equal(pad_slots_add(&memory, tp, 1, 2), 5);
		assert_int_equal(pad_slots_find(&memory, tp), 5);
		pad_slots_remove(&memory, tp);
	}
	assert_int_equal(pad_slots_find(&memory, 115), 15);
	assert_int_equal(pad_slots_find(&memory, 4000), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_many_laps, setup_threads, teardown),
		cmocka_unit_test_setup_teardown(test_across_the_end, setup_threads, teardown),
		cmocka_unit_test_setup_teardown(test_guesses, setup_threads, teardown),
		cmocka_unit_test_setup_teardown(test_order, setup_threads, teardown),
		cmocka_unit_test_setup_teardown(test_late, setup_threads, teardown),
		cmocka_unit_test_setup_teardown(test_never, setup_threads, teardown),
		cmocka_unit_test_setup_teardown(test_later_numbers, setup_threads, teardown),
		cmocka_unit_test_setup_teardown(test_stacks, setup_threads, teardown),
		cmocka_unit_test_setup_teardown(test_threads, setup_threads, teardown),
		cmocka_unit_test_setup_teardown(test_fork, setup_threads, teardown),
		cmocka_unit_test_setup_teardown(test_list_parts, setup_threads, teardown),
		cmocka_unit_test_setup_teardown(test_labels, setup_threads, teardown),
		cmocka_unit_test_setup_teardown(test_bad_labels, setup_threads, teardown),
		cmocka_unit_test_setup_teardown(test_kept_too_many, setup_threads, teardown),
		cmocka_unit_test_setup_teardown(test_guesses_without_stack, setup_threads, teardown),
		cmocka_unit_test_setup_teardown(test_kept_huge, setup_threads, teardown),
		cmocka_unit_test_setup_teardown(test_too_deep, setup_threads, teardown),
		cmocka_unit_test_setup_teardown(test_size_of_nothing, setup_threads, teardown),
		cmocka_unit_test_setup_teardown(test_size_of_more, setup_threads, teardown),
		cmocka_unit_test_setup_teardown(test_raw_huge, setup_threads, teardown),
		cmocka_unit_test_setup_teardown(test_after_the_head, setup_threads, teardown),
		cmocka_unit_test_setup_teardown(test_after_the_end, setup_threads, teardown),
		cmocka_unit_test_setup_teardown(test_fill_too_long, setup_threads, teardown),
		cmocka_unit_test_setup_teardown(test_numbers, setup_threads, teardown),
		cmocka_unit_test_setup_teardown(test_same_number, setup_threads, teardown),
		cmocka_unit_test_setup_teardown(test_numbers_go_back, setup_threads, teardown),
		cmocka_unit_test_setup_teardown(test_unknown_kind, setup_threads, teardown),
		cmocka_unit_test_setup_teardown(test_head, setup_threads, teardown),
		cmocka_unit_test_setup_teardown(test_next_number, setup_threads, teardown),
		cmocka_unit_test_setup_teardown(test_times, setup_threads, teardown),
		cmocka_unit_test_setup_teardown(test_time_of_number, setup_threads, teardown),
		cmocka_unit_test(test_counters_agree),
		cmocka_unit_test_setup_teardown(test_times_of_turns, setup_threads, teardown),
		cmocka_unit_test_setup_teardown(test_times_without_start, setup_threads, teardown),
		cmocka_unit_test_setup_teardown(test_times_of_long_lines, setup_threads, teardown),
		cmocka_unit_test_setup_teardown(test_pulled_times, setup_threads, teardown),
		cmocka_unit_test_setup_teardown(test_times_of_words, setup_threads, teardown),
		cmocka_unit_test_setup_teardown(test_late_words, setup_threads, teardown),
		cmocka_unit_test(test_clock),
		cmocka_unit_test(test_late_clock),
		cmocka_unit_test_setup_teardown(test_asks_for_stamp, setup_threads, teardown),
		cmocka_unit_test_setup_teardown(test_forged_times, setup_threads, teardown),
		cmocka_unit_test_setup_teardown(test_overwritten, setup, teardown),
		cmocka_unit_test_setup_teardown(test_size_is_sealed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_other_file, setup, teardown),
		cmocka_unit_test_setup_teardown(test_dead_owner, setup, teardown),
		cmocka_unit_test_setup_teardown(test_more_slots, setup, teardown),
		cmocka_unit_test_setup_teardown(test_slots, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
