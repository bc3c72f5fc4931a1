/*
 * The reader alone, with records written by the test: uncommitted and deferred records, the end of
 * the ring, a dead owner, slots.
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

#include "tracee/pads/pad_owner.h"
#include "tracee/pads/pad_slots.h"
#include "tracee/pads/ring_deferred.h"
#include "tracee/pads/ring_drain.h"
#include "tracee/pads/ring_jump.h"

#define RING_SIZE 65536

static struct pad_memory memory;
static struct ring ring;
static taddr_t seen[8192];
static size_t seen_count;

/* For the tests of jumps. */
enum { IDLE, RESERVED, WAITS, HOLDS };

struct writer {
	int state;
	uint64_t start, end, value;
};

static struct writer writers[12];
static size_t writer_count;
static uint64_t next_value, committed;
static uint8_t delivered[1 << 20];

static void keep(void *ctx, struct heap_event *ev)
{
	seen[seen_count++ % 8192] = ev->addr;
}

static const struct ring_reader reader = { .event = keep };

static int setup(void **state)
{
	struct pad_memory_options options = { RING_SIZE, 16, 8 };
	assert_int_equal(pad_memory_init(&memory, memfd_create("ring", MFD_ALLOW_SEALING),
					 &options), 0);
	pad_memory_locate(&memory, (taddr_t)memory.base);
	ring_init(&ring, &memory, arch_native);
	seen_count = next_value = committed = 0;
	memset(writers, 0, sizeof(writers));
	memset(delivered, 0, sizeof(delivered));
	return 0;
}

/* With a thread that writes the records, in slot 0. */
static int setup_thread(void **state)
{
	setup(state);
	assert_int_equal(pad_slots_add(&memory, 50, 1, 2), 0);
	return 0;
}

static int teardown(void **state)
{
	ring_deinit(&ring);
	pad_memory_deinit(&memory);
	return 0;
}

static uint64_t reserve(size_t size)
{
	uint64_t position = memory.control->head;
	memory.control->head += size;
	return position;
}

static uint64_t *word(uint64_t position)
{
	return (uint64_t *)(void *)(memory.base + memory.layout.ring +
				    (position & (RING_SIZE - 1)));
}

static void commit_free(uint64_t position, taddr_t addr)
{
	word(position)[1] = addr;
	word(position)[0] =
		pad_mark(position, memory.control->key, FUNCTION_FREE << 4 | PAD_RECORD_FREE);
}

static void test_many_laps(void **state)
{
	uint64_t n = 0;
	for (int lap = 0; lap < 50; lap++) {
		for (int i = 0; i < 3000; i++)
			commit_free(reserve(16), n++);
		assert_true(memory.control->head - memory.control->tail <= RING_SIZE);
		assert_int_equal(ring_drain(&ring, SIZE_MAX, &reader), 3000);
		assert_int_equal(seen[(n - 1) % 8192], n - 1);
		assert_true(memory.control->head - memory.control->tail < RING_SIZE / 16);
	}
	assert_int_equal(seen_count, n);
	assert_int_equal(ring_pending(&ring), 0);
	assert_false(ring_has_uncommitted(&ring));
}

/* An allocation's record that crosses the end of the ring is read whole: it is mapped twice. */
static void test_across_the_end(void **state)
{
	while (memory.control->head < RING_SIZE - 32) {
		commit_free(reserve(16), 1);
		ring_drain(&ring, SIZE_MAX, &reader);
	}
	uint64_t position = reserve(64);
	struct pad_record_block block = { .size = 64, .flags = PAD_HAS_STACK, .fresh = 2, .result =
					 0xabc,
					  .bytes = 5 };
	memcpy(word(position), &block, sizeof(block));
	uint64_t pcs[2] = { 100, 200 };
	memcpy(word(position) + 6, pcs, sizeof(pcs));
	*word(position) = pad_mark(position, memory.control->key, PAD_RECORD_ALLOC);
	commit_free(reserve(16), 0xdef);
	assert_int_equal(ring_drain(&ring, SIZE_MAX, &reader), 2);
	assert_int_equal(seen[seen_count - 2], 0xabc);
	assert_int_equal(seen[seen_count - 1], 0xdef);
	assert_int_equal(ring.mirror[0].count, 2);
	assert_int_equal(ring.mirror[0].frame[1], 199);
	ring_reset_slot(&ring, 0);
	assert_int_equal(ring.mirror[0].count, 0);
}

static void test_uncommitted_waits(void **state)
{
	uint64_t uncommitted = reserve(16);
	commit_free(reserve(16), 2);
	assert_int_equal(ring_drain(&ring, SIZE_MAX, &reader), 0);
	assert_true(ring_has_uncommitted(&ring));
	commit_free(uncommitted, 1);
	assert_int_equal(ring_drain(&ring, SIZE_MAX, &reader), 2);
	assert_int_equal(seen[0], 1);
}

static void test_uncommitted_of_dead_threads(void **state)
{
	reserve(4096);
	commit_free(reserve(16), 2);
	reserve(48);
	ring_pass_uncommitted(&ring, true);
	assert_int_equal(ring_drain(&ring, SIZE_MAX, &reader), 1);
	assert_int_equal(seen[0], 2);
	assert_true(ring_has_uncommitted(&ring));
	ring_pass_uncommitted(&ring, true); /* the last one: nothing is after it */
	assert_int_equal(ring_pending(&ring), 0);
	assert_int_equal(ring.stats.lost, 2);
	ring_publish(&ring);
	assert_int_equal(memory.control->tail, memory.control->head);
}

static void test_deferred(void **state)
{
	uint64_t uncommitted = reserve(16);
	commit_free(reserve(16), 2);
	ring_pass_uncommitted(&ring, false);
	assert_int_equal(ring_drain(&ring, SIZE_MAX, &reader), 1);
	ring_publish(&ring);
	assert_int_equal(memory.control->tail, uncommitted); /* its owner will still write there */
	commit_free(uncommitted, 1);
	commit_free(reserve(16), 3);
	assert_int_equal(ring_drain(&ring, SIZE_MAX, &reader), 2);
	assert_int_equal(seen[1], 1);
	assert_int_equal(seen[2], 3);
	ring_publish(&ring);
	assert_int_equal(memory.control->tail, memory.control->head);
	assert_int_equal(ring.stats.lost, 0);
}

static void commit_same(uint64_t position, taddr_t addr)
{
	word(position)[1] = addr << 16 | 8;
	word(position)[0] = pad_mark(position, memory.control->key,
				     FUNCTION_MALLOC << 4 | PAD_RECORD_SAME);
}

static uint64_t late_position;

static uint32_t node_of_stack(void *ctx, const struct heap_event *ev)
{
	return ev->frame_count;
}

/* While the first of the events are delivered, an earlier record is committed, and one after it. */
static void keep_quick(void *ctx, struct quick_event *event, size_t n)
{
	for (size_t i = 0; i < n; i++)
		seen[seen_count++] = event[i].addr << 8 | event[i].node;
	if (!late_position)
		return;
	struct pad_record_block block = {.size = 64, .flags = PAD_HAS_STACK, .fresh = 2,
					 .result = 1, .bytes = 5};
	memcpy(word(late_position) + 1, (uint64_t *)(void *)&block + 1, sizeof(block) - 8);
	*word(late_position) = pad_mark(late_position, memory.control->key, PAD_RECORD_ALLOC);
	commit_same(reserve(16), 3);
	late_position = 0;
}

/*
 * A record committed late is delivered before a later one that was read already; its stack is that
 * of the second.
 */
static void test_late_before_the_next(void **state)
{
	const struct ring_reader quick = {.event = keep, .quick = keep_quick,
					  .node = node_of_stack};
	commit_same(reserve(16), 9);
	assert_int_equal(ring_drain(&ring, SIZE_MAX, &quick), 1);
	late_position = reserve(64);
	commit_same(reserve(16), 2);
	ring_pass_uncommitted(&ring, false);
	assert_int_equal(ring_drain(&ring, SIZE_MAX, &quick), 3);
	assert_int_equal(seen_count, 4);
	assert_int_equal(seen[0], 9 << 8);
	assert_int_equal(seen[1], 2 << 8);
	assert_int_equal(seen[2], 1); /* not a short record */
	assert_int_equal(seen[3], 3 << 8 | 2);
	assert_int_equal(ring.stats.records, 4);
	assert_int_equal(ring_pending(&ring), 0);
}

#define LATE_ROUNDS 300000

static uint64_t late_seen;

/* Values are 2 n and 2 n + 1 for the two records of round n, and 0 for the one between. */
static void see_in_order(uint64_t value)
{
	if (value == 0)
		return;
	assert_int_equal(value, late_seen + 1);
	late_seen = value;
}

static void see_late(void *ctx, struct heap_event *ev)
{
	see_in_order(ev->addr);
}

static void see_quick(void *ctx, struct quick_event *event, size_t n)
{
	for (size_t i = 0; i < n; i++)
		see_in_order(event[i].addr);
}

/* Each round leaves a record uncommitted behind another one, then commits it and a next one. */
static void *write_late(void *unused)
{
	for (uint64_t value = 1; value < 2 * LATE_ROUNDS; value += 2) {
		while (memory.control->head + 64 -
			       __atomic_load_n(&memory.control->tail, __ATOMIC_ACQUIRE) >
		       RING_SIZE)
			sched_yield();
		uint64_t late = __atomic_fetch_add(&memory.control->head, 16, __ATOMIC_SEQ_CST);
		commit_free(__atomic_fetch_add(&memory.control->head, 16, __ATOMIC_SEQ_CST), 0);
		for (uint64_t pause = 0; pause < value % 128; pause++)
			__builtin_ia32_pause();
		uint64_t next = __atomic_fetch_add(&memory.control->head, 16, __ATOMIC_SEQ_CST);
		commit_free(late, value);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		commit_free(next, value + 1);
	}
	return unused;
}

/* A reader that finds the next record committed finds those that were committed before it first. */
static void test_late_while_reading(void **state)
{
	const struct ring_reader quick = {.event = see_late, .quick = see_quick,
					  .node = node_of_stack};
	size_t empty = 0;
	pthread_t thread;

	late_seen = 0;
	assert_int_equal(pthread_create(&thread, NULL, write_late, NULL), 0);
	while (late_seen < 2 * LATE_ROUNDS) {
		size_t n = ring_drain(&ring, SIZE_MAX, &quick);
		assert_null(ring.broken);
		if (ring_has_uncommitted(&ring))
			ring_pass_uncommitted(&ring, false);
		ring_publish(&ring);
		empty = n == 0 ? empty + 1 : 0;
		if (empty % 1000 == 999)
			sched_yield();
	}
	pthread_join(thread, NULL);
	assert_int_equal(ring.stats.lost, 0);
}

/*
 * -- jumps around uncommitted records: threads as in the recorder, some of which stop before
 * they commit --
 */

static void count(void *ctx, struct heap_event *ev)
{
	assert_in_range(ev->addr, 1, next_value);
	assert_int_equal(delivered[ev->addr]++, 0);
	seen_count++;
}

static bool has_room_until(uint64_t end)
{
	return end - memory.control->tail <= memory.control->room;
}

/* One step of the recorder; @holds: it stops before the mark. */
static void step_writer(struct writer *w, bool holds)
{
	if (w->state == IDLE) {
		w->start = reserve(16);
		w->end = w->start + 16;
		w->state = RESERVED;
	} else if (w->state == RESERVED) {
		w->state = has_room_until(w->end) ? HOLDS : WAITS;
		if (w->state == HOLDS) {
			w->value = ++next_value;
			word(w->start)[1] = w->value;
		}
	} else if (w->state == HOLDS && !holds) {
		assert_int_equal(word(w->start)[1], w->value); /* it was not overwritten */
		commit_free(w->start, w->value);
		committed++;
		w->state = IDLE;
	}
}

/* Handles a trap of a thread that finds the ring full, as pads.c does. */
static void serve_writer(struct writer *w)
{
	w->state = RESERVED;
	if (ring_was_skipped(&ring, w->start)) {
		ring_forget_range(&ring, w->start, w->end);
		w->state = IDLE;
	}
}

static void catch_up(void)
{
	do {
		ring_drain(&ring, SIZE_MAX, &(struct ring_reader){ .event = count });
		if (ring_has_uncommitted(&ring))
			ring_pass_uncommitted(&ring, false);
	} while (ring_pending(&ring) > 0);
	ring_publish(&ring);
}

static void serve_all(void)
{
	bool waits = false;
	ring_drain(&ring, SIZE_MAX, &(struct ring_reader){ .event = count });
	ring_publish(&ring);
	for (size_t i = 0; i < writer_count; i++) {
		if (writers[i].state == WAITS) {
			serve_writer(&writers[i]);
			waits = true;
		}
	}
	if (waits && !ring_has_room(&ring)) {
		catch_up();
		if (!ring_has_room(&ring))
			assert_true(ring_jump(&ring));
	}
}

static void run_writers(size_t count)
{
	unsigned random = 1;
	writer_count = count;
	for (uint64_t n = 0; n < 1000000; n++) {
		random = random * 1103515245 + 12345;
		size_t i = (random >> 8) % writer_count;
		/*
		 * a third of them is stopped for long anywhere, in periods that are not whole
		 * laps
		 */
		bool is_stopped = i < count / 3 + (count == 2) && (n / 50000 + i) % 4 != 0;
		if (!is_stopped || writers[i].state == IDLE || random >> 16 & 1)
			step_writer(&writers[i], is_stopped);
		if (n % 512 == 0 || writers[i].state == WAITS)
			serve_all();
	}
	assert_true(ring.jumps > 10);
	for (int i = 0; i < 8; i++) { /* all continue: the ring works as usual */
		for (size_t k = 0; k < writer_count; k++) {
			if (writers[k].state != IDLE)
				step_writer(&writers[k], false);
		}
		serve_all();
	}
	catch_up();
	assert_int_equal(ring.deferred_count, 0);
	assert_int_equal(memory.control->room, RING_SIZE);
	assert_int_equal(memory.control->tail, memory.control->head);
	assert_int_equal(seen_count, committed);
	assert_int_equal(committed, next_value);
}

static void test_two_writers(void **state)
{
	run_writers(2);
}

static void test_many_writers(void **state)
{
	run_writers(ARRAY_SIZE(writers));
}

/*
 * Threads that reserve while the ring jumps, each once, as they have to wait then: a range is below
 * the new tail, or one thread alone has it.
 */
#define RACERS 10000
#define GAPS 100
#define RACES 40 /* with one thread it might not run at the critical moment */

static uint64_t raced[RACERS];
static bool is_racing;

static void *race(void *unused)
{
	for (int i = 0; i < RACERS; i++) {
		raced[i] = __atomic_fetch_add(&memory.control->head, 16, __ATOMIC_SEQ_CST);
		__atomic_store_n(&is_racing, true, __ATOMIC_RELEASE);
		for (int pause = 0; pause < 10; pause++)
			__builtin_ia32_pause();
	}
	return unused;
}

static void race_once(void)
{
	uint8_t owners[RACERS] = {0};
	pthread_t thread;

	is_racing = false;
	for (int i = 0; i < RING_SIZE / 32; i++) {
		uint64_t position = reserve(16);
		if (i >= GAPS)
			commit_free(position, 1);
		commit_free(reserve(16), 1);
	}
	while (ring_pending(&ring) > 0) {
		ring_drain(&ring, SIZE_MAX, &reader);
		if (ring_has_uncommitted(&ring))
			ring_pass_uncommitted(&ring, false);
	}
	assert_int_equal(ring.deferred_count, GAPS);
	assert_int_equal(pthread_create(&thread, NULL, race, NULL), 0);
	while (!__atomic_load_n(&is_racing, __ATOMIC_ACQUIRE))
		sched_yield();
	assert_true(ring_jump(&ring));
	pthread_join(thread, NULL);
	assert_null(ring.broken);
	for (int i = 0; i < RACERS; i++) {
		if (!ring_was_skipped(&ring, raced[i]))
			assert_int_equal(owners[(raced[i] - memory.control->tail) / 16]++, 0);
	}
}

static void test_race_with_jump(void **state)
{
	for (int i = 0; i < RACES; i++) {
		race_once();
		teardown(state);
		setup_thread(state);
	}
}

/*
 * Holes fill the ring, so there is nowhere to jump to. A thread waits with a record after the
 * limit: it gets room when the first record is committed, and its record must still be known.
 */
static void test_jump_without_room(void **state)
{
	uint64_t first = reserve(16);
	reserve(RING_SIZE - 16);
	uint64_t behind = reserve(16);
	assert_false(has_room_until(behind + 16));
	ring_pass_uncommitted(&ring, false);
	assert_int_equal(ring_drain(&ring, SIZE_MAX, &reader), 0);
	assert_int_equal(ring_pending(&ring), 0);
	assert_false(ring_jump(&ring));
	assert_int_equal(ring.jumps, 0);
	assert_int_equal(memory.control->room, RING_SIZE);
	commit_free(first, 1);
	assert_int_equal(ring_drain(&ring, SIZE_MAX, &reader), 1);
	ring_publish(&ring);
	assert_false(ring_was_skipped(&ring, behind));
	assert_true(has_room_until(behind + 16));
	commit_free(behind, 2);
	assert_int_equal(ring_drain(&ring, SIZE_MAX, &reader), 1);
	assert_int_equal(seen[1], 2);
}

/* -- records that no pad writes -- */

static void commit_block(uint64_t position, const struct pad_record_block *block)
{
	uint64_t mark = pad_mark(position, memory.written.key, PAD_RECORD_ALLOC);
	memcpy(word(position), block, sizeof(*block));
	*word(position) = mark;
}

/* A good record followed by @bad: only the good one is read. */
static void check_broken(const struct pad_record_block *bad)
{
	commit_free(reserve(16), 1);
	commit_block(reserve(ROUND_UP(MAX(bad->size, 48u), 16u) % RING_SIZE), bad);
	commit_free(reserve(16), 2);
	assert_null(ring.broken);
	assert_int_equal(ring_drain(&ring, SIZE_MAX, &reader), 1);
	assert_non_null(ring.broken);
	assert_int_equal(memory.control->off, 1);
	assert_int_equal(seen_count, 1);
	assert_int_equal(ring_pending(&ring), 0);
	assert_int_equal(ring_drain(&ring, SIZE_MAX, &reader), 0);
	assert_false(ring_has_uncommitted(&ring));
	assert_true(ring_has_room(&ring));
}

static void test_kept_too_many(void **state)
{
	check_broken(&(struct pad_record_block){ .size = 64, .flags = PAD_HAS_STACK, .fresh = 2,
						.kept = 1 });
}

static void test_kept_huge(void **state)
{
	check_broken(&(struct pad_record_block){ .size = 64, .flags = PAD_HAS_STACK, .fresh = 2,
						 .kept = UINT32_MAX - 1 });
}

static void test_too_deep(void **state)
{
	struct pad_record_block good = { .size = 48 + 8 * 4096, .flags = PAD_HAS_STACK, .fresh =
					4096,
					 .result = 1 };
	for (good.kept = 0; good.kept < PAD_MAX_FRAMES; good.kept += good.fresh) {
		commit_block(reserve(good.size), &good);
		assert_int_equal(ring_drain(&ring, SIZE_MAX, &reader), 1);
		ring_publish(&ring);
	}
	seen_count = 0;
	check_broken(&(struct pad_record_block){ .size = 64, .flags = PAD_HAS_STACK, .fresh = 2,
						 .kept = PAD_MAX_FRAMES, .result = 1 });
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

static void test_after_the_limit(void **state)
{
	uint64_t position = reserve(RING_SIZE) + RING_SIZE - 48;
	ring_pass_uncommitted(&ring, false);
	ring.position = position;
	commit_block(position, &(struct pad_record_block){ .size = 64, .fresh = 2, .result = 1 });
	assert_int_equal(ring_drain(&ring, SIZE_MAX, &reader), 0);
	assert_non_null(ring.broken);
}

static void test_larger_than_its_gap(void **state)
{
	uint64_t uncommitted = reserve(16);
	commit_free(reserve(16), 2);
	ring_pass_uncommitted(&ring, false);
	commit_block(uncommitted, &(struct pad_record_block){ .size = 48, .result = 1 });
	assert_int_equal(ring_drain(&ring, SIZE_MAX, &reader), 0);
	assert_non_null(ring.broken);
}

static void test_no_such_slot(void **state)
{
	uint64_t position = reserve(16);
	*word(position) = pad_mark(position, memory.written.key,
				   1 << 8 | FUNCTION_FREE << 4 | PAD_RECORD_FREE);
	assert_int_equal(ring_drain(&ring, SIZE_MAX, &reader), 0);
	assert_non_null(ring.broken);
	assert_int_equal(ring.mirror_count, 0);
}

static void test_head(void **state)
{
	static const uint64_t heads[] = { UINT64_MAX, 8, 1ull << 40, -16ull, 1ull << 63 };
	for (size_t i = 0; i < ARRAY_SIZE(heads); i++) {
		ring.broken = NULL;
		memory.control->head = heads[i];
		assert_false(ring_has_uncommitted(&ring));
		assert_non_null(ring.broken);
		ring_pass_uncommitted(&ring, false);
		assert_int_equal(ring.position, 0);
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

static void test_many_uncommitted(void **state)
{
	for (int i = 0; i < 1500; i++) {
		reserve(16);
		commit_free(reserve(16), 1);
		ring_pass_uncommitted(&ring, false);
		ring_drain(&ring, SIZE_MAX, &reader);
	}
	assert_non_null(ring.broken);
	assert_true(ring.deferred_count < 1200);
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
				 ROUND_UP(count * sizeof(struct pad_slot), 4096u));
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
		cmocka_unit_test_setup_teardown(test_many_laps, setup_thread, teardown),
		cmocka_unit_test_setup_teardown(test_across_the_end, setup_thread, teardown),
		cmocka_unit_test_setup_teardown(test_uncommitted_waits, setup_thread, teardown),
		cmocka_unit_test_setup_teardown(test_uncommitted_of_dead_threads, setup_thread, teardown),
		cmocka_unit_test_setup_teardown(test_deferred, setup_thread, teardown),
		cmocka_unit_test_setup_teardown(test_late_before_the_next, setup_thread, teardown),
		cmocka_unit_test_setup_teardown(test_late_while_reading, setup_thread, teardown),
		cmocka_unit_test_setup_teardown(test_two_writers, setup_thread, teardown),
		cmocka_unit_test_setup_teardown(test_many_writers, setup_thread, teardown),
		cmocka_unit_test_setup_teardown(test_race_with_jump, setup_thread, teardown),
		cmocka_unit_test_setup_teardown(test_jump_without_room, setup_thread, teardown),
		cmocka_unit_test_setup_teardown(test_kept_too_many, setup_thread, teardown),
		cmocka_unit_test_setup_teardown(test_kept_huge, setup_thread, teardown),
		cmocka_unit_test_setup_teardown(test_too_deep, setup_thread, teardown),
		cmocka_unit_test_setup_teardown(test_size_of_nothing, setup_thread, teardown),
		cmocka_unit_test_setup_teardown(test_size_of_more, setup_thread, teardown),
		cmocka_unit_test_setup_teardown(test_raw_huge, setup_thread, teardown),
		cmocka_unit_test_setup_teardown(test_after_the_limit, setup_thread, teardown),
		cmocka_unit_test_setup_teardown(test_larger_than_its_gap, setup_thread, teardown),
		cmocka_unit_test_setup_teardown(test_no_such_slot, setup_thread, teardown),
		cmocka_unit_test_setup_teardown(test_head, setup_thread, teardown),
		cmocka_unit_test_setup_teardown(test_overwritten, setup, teardown),
		cmocka_unit_test_setup_teardown(test_size_is_sealed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_other_file, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many_uncommitted, setup_thread, teardown),
		cmocka_unit_test_setup_teardown(test_dead_owner, setup, teardown),
		cmocka_unit_test_setup_teardown(test_slots, setup, teardown),
		cmocka_unit_test_setup_teardown(test_more_slots, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
