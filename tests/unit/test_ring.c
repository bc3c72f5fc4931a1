/*
 * The reader alone, with records written by the test: holes, late records, the end of
 * the ring, a dead owner, slots.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "target/ring.h"

#define RING_SIZE 65536

static struct pad_memory memory;
static struct ring ring;
static taddr_t seen[8192];
static size_t seen_count;

/* Of the tests of jumps. */
enum { IDLE, RESERVED, WAITS, HOLDS };

struct writer {
	int state;
	uint64_t start, end, value;
};

static struct writer writers[12];
static size_t writer_count;
static uint64_t next_value, committed;
static uint8_t delivered[1 << 20];

static void keep(void *ctx, const struct ring_record *record)
{
	seen[seen_count++ % 8192] = record->addr;
}

static const struct ring_reader reader = { .record = keep };

static int setup(void **state)
{
	struct pad_memory_options options = { RING_SIZE, 16, 8 };
	assert_int_equal(pad_memory_init(&memory, memfd_create("ring", MFD_CLOEXEC), &options), 0);
	pad_memory_locate(&memory, (taddr_t)memory.base);
	ring_init(&ring, &memory, arch_native);
	seen_count = next_value = committed = 0;
	memset(writers, 0, sizeof(writers));
	memset(delivered, 0, sizeof(delivered));
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
	return (uint64_t *)(void *)(memory.base + memory.ring + (position & (RING_SIZE - 1)));
}

static void commit_free(uint64_t position, taddr_t addr)
{
	word(position)[1] = addr;
	word(position)[0] = pad_mark(position, memory.control->key, FUNCTION_FREE << 4 | PAD_RECORD_FREE);
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
	assert_false(ring_has_hole(&ring));
}

/* An allocation's record that crosses the end of the ring is read whole: it is mapped twice. */
static void test_across_the_end(void **state)
{
	while (memory.control->head < RING_SIZE - 32) {
		commit_free(reserve(16), 1);
		ring_drain(&ring, SIZE_MAX, &reader);
	}
	uint64_t position = reserve(64);
	struct pad_record_block block = { .size = 64, .flags = PAD_HAS_STACK, .fresh = 2, .result = 0xabc,
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

static void test_hole_waits(void **state)
{
	uint64_t hole = reserve(16);
	commit_free(reserve(16), 2);
	assert_int_equal(ring_drain(&ring, SIZE_MAX, &reader), 0);
	assert_true(ring_has_hole(&ring));
	commit_free(hole, 1);
	assert_int_equal(ring_drain(&ring, SIZE_MAX, &reader), 2);
	assert_int_equal(seen[0], 1);
}

static void test_dead_holes(void **state)
{
	reserve(4096);
	commit_free(reserve(16), 2);
	reserve(48);
	ring_pass_hole(&ring, true);
	assert_int_equal(ring_drain(&ring, SIZE_MAX, &reader), 1);
	assert_int_equal(seen[0], 2);
	assert_true(ring_has_hole(&ring));
	ring_pass_hole(&ring, true); /* the last one: nothing is behind it */
	assert_int_equal(ring_pending(&ring), 0);
	assert_int_equal(ring.stats.holes, 2);
	ring_publish(&ring);
	assert_int_equal(memory.control->tail, memory.control->head);
}

static void test_late_hole(void **state)
{
	uint64_t hole = reserve(16);
	commit_free(reserve(16), 2);
	ring_pass_hole(&ring, false);
	assert_int_equal(ring_drain(&ring, SIZE_MAX, &reader), 1);
	ring_publish(&ring);
	assert_int_equal(memory.control->tail, hole); /* its owner will still write there */
	commit_free(hole, 1);
	commit_free(reserve(16), 3);
	assert_int_equal(ring_drain(&ring, SIZE_MAX, &reader), 2);
	assert_int_equal(seen[1], 1);
	assert_int_equal(seen[2], 3);
	ring_publish(&ring);
	assert_int_equal(memory.control->tail, memory.control->head);
	assert_int_equal(ring.stats.holes, 0);
}

/* -- jumps around holes: threads as in the recorder, some of which are stopped in a hole for long -- */

static void count(void *ctx, const struct ring_record *record)
{
	assert_in_range(record->addr, 1, next_value);
	assert_int_equal(delivered[record->addr]++, 0);
	seen_count++;
}

static bool has_room_until(uint64_t end)
{
	return end - memory.control->tail <= memory.control->room;
}

/* One step of the recorder; @holds: it is stopped before the mark. */
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
		assert_int_equal(word(w->start)[1], w->value); /* nobody wrote there */
		commit_free(w->start, w->value);
		committed++;
		w->state = IDLE;
	}
}

/* What pads.c does at the trap of a thread that finds the ring full. */
static void serve_writer(struct writer *w)
{
	w->state = RESERVED;
	if (ring_is_left_out(&ring, w->start)) {
		ring_forget_range(&ring, w->start, w->end);
		w->state = IDLE;
	}
}

static void catch_up(void)
{
	do {
		ring_drain(&ring, SIZE_MAX, &(struct ring_reader){ .record = count });
		if (ring_has_hole(&ring))
			ring_pass_hole(&ring, false);
	} while (ring_pending(&ring) > 0);
	ring_publish(&ring);
}

static void serve_all(void)
{
	bool waits = false;
	ring_drain(&ring, SIZE_MAX, &(struct ring_reader){ .record = count });
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
		/* a third of them is stopped for long, wherever they are, in turns that are no whole laps */
		bool is_stopped = i < count / 3 + (count == 2) && (n / 50000 + i) % 4 != 0;
		if (!is_stopped || writers[i].state == IDLE || random >> 16 & 1)
			step_writer(&writers[i], is_stopped);
		if (n % 512 == 0 || writers[i].state == WAITS)
			serve_all();
	}
	assert_true(ring.jumps > 10);
	for (int i = 0; i < 8; i++) { /* all go on: the ring is as ever */
		for (size_t k = 0; k < writer_count; k++) {
			if (writers[k].state != IDLE)
				step_writer(&writers[k], false);
		}
		serve_all();
	}
	catch_up();
	assert_int_equal(ring.late_count, 0);
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

/* The kernel marks the control block when its owner is killed. */
static void test_dead_owner(void **state)
{
	pid_t pid = fork();
	if (pid == 0) {
		static struct pad_owner owner;
		struct pad_memory_options options = { RING_SIZE, 4, 8 };
		static struct pad_memory other;
		pad_memory_init(&other, memfd_create("other", 0), &options);
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

/* Whatever the number of chunks, a slot keeps its place here and there. */
static void test_more_slots(void **state)
{
	const taddr_t first = memory.chunk[0].target;
	uint32_t count = 16;

	for (uint64_t k = 1; pad_memory_more(&memory) > 0; k++) {
		for (uint32_t i = memory.used; i < count; i++)
			assert_int_equal(pad_memory_add_thread(&memory, 100 + i, 1, i), i);
		assert_false(pad_memory_has_room(&memory, 1));
		assert_int_equal(pad_memory_more(&memory), ROUND_UP(count * sizeof(struct pad_slot), 4096u));
		assert_int_equal(pad_memory_grow(&memory, -1, 0), -EBADF);
		assert_int_equal(pad_memory_grow(&memory, memfd_create("more", MFD_CLOEXEC), k << 40), 0);
		count *= 2;
		assert_int_equal(memory.slot_count, count);
		assert_int_equal(memory.chunk_count, k + 1);
	}
	assert_int_equal(memory.chunk_count, PAD_MAX_CHUNKS);
	for (uint32_t i = 0; i < memory.used; i++) {
		const struct pad_directory *d = (void *)(memory.base + memory.directory);
		uint64_t at = pad_directory_hash(100 + i);
		while (d[at].thread_pointer != 100 + i)
			at = (at + 1) % (1u << PAD_DIRECTORY_BITS);
		uint32_t chunk = i < 16 ? 0 : 28 - (uint32_t)__builtin_clz(i);
		uint64_t start = chunk ? (uint64_t)chunk << 40 : first, before = chunk ? 8u << chunk : 0;
		assert_int_equal(d[at].slot, start + (i - before) * sizeof(struct pad_slot));
		assert_int_equal(memory.control->chunk[chunk].slots, start);
		assert_in_range(memory.control->chunk[chunk].used, i - before + 1, count);
		assert_int_equal(pad_memory_find_thread(&memory, 100 + i), i);
		assert_int_equal(pad_memory_slot(&memory, i)->stack_high, i);
	}
	assert_int_equal(pad_memory_grow(&memory, -1, 0), -ENOSPC);
}

static void test_slots(void **state)
{
	for (uint64_t tp = 100; tp < 116; tp++)
		assert_int_equal(pad_memory_add_thread(&memory, tp, 1, 2), tp - 100);
	assert_int_equal(pad_memory_add_thread(&memory, 500, 1, 2), -ENOSPC);
	assert_false(pad_memory_has_room(&memory, 500));
	assert_true(pad_memory_has_room(&memory, 115)); /* its own */
	pad_memory_slot(&memory, 5)->guard = 77;
	assert_int_equal(pad_memory_add_thread(&memory, 105, 3, 4), 5);
	assert_int_equal(pad_memory_slot(&memory, 5)->guard, 0);
	assert_int_equal(pad_memory_slot(&memory, 5)->stack_high, 4);
	pad_memory_remove_thread(&memory, 105);
	assert_true(pad_memory_has_room(&memory, 500));
	assert_int_equal(pad_memory_find_thread(&memory, 105), -ENOENT);
	assert_int_equal(pad_memory_find_thread(&memory, 115), 15);
	for (uint64_t tp = 1000; tp < 3000; tp++) { /* places taken out are used again */
		assert_int_equal(pad_memory_add_thread(&memory, tp, 1, 2), 5);
		assert_int_equal(pad_memory_find_thread(&memory, tp), 5);
		pad_memory_remove_thread(&memory, tp);
	}
	assert_int_equal(pad_memory_find_thread(&memory, 115), 15);
	assert_int_equal(pad_memory_find_thread(&memory, 4000), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_many_laps, setup, teardown),
		cmocka_unit_test_setup_teardown(test_across_the_end, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hole_waits, setup, teardown),
		cmocka_unit_test_setup_teardown(test_dead_holes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_late_hole, setup, teardown),
		cmocka_unit_test_setup_teardown(test_two_writers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many_writers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_dead_owner, setup, teardown),
		cmocka_unit_test_setup_teardown(test_slots, setup, teardown),
		cmocka_unit_test_setup_teardown(test_more_slots, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
