/*
 * Heaps whose pieces are queued in any order, by one thread or several, are walked as if their
 * memory were one piece: the same state, end and free parts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/types.h"
#include "malloc/heap_walk.h"

#define BASE UINT64_C(0x7f0000000000)
#define PIECES 24u
#define WORDS (PIECES * WALK_PIECE_SIZE / sizeof(uint64_t))
#define HEAP (4096u / 8) /* the first chunk, as a word's number */

static uint64_t *memory;
static uint64_t seed;
static bool has_gaps;

static uint64_t any(uint64_t below)
{
	return (seed = hash_u64(seed + 1)) % below;
}

static taddr_t at(size_t word)
{
	return BASE + word * sizeof(uint64_t);
}

/* Contents of blocks look like chunks, addresses or anything else. */
static void fill(void)
{
	for (size_t i = 0; i < WORDS; i++) {
		uint64_t kind = any(4);

		memory[i] = kind == 0 ? at(any(WORDS)) : kind == 1 ? any(64) * 16 | 1 : kind == 2 ? 0 : any(4096);
	}
}

/* Chunks of up to @most bytes; returns the top. */
static size_t make_heap(uint64_t most)
{
	size_t word = HEAP;
	uint64_t is_used = 1;

	fill();
	while (word < WORDS - most / 8 - 100) {
		uint64_t size = 32 + any(most / 16) * 16;

		memory[word + 1] = size | is_used;
		is_used = any(3) > 0;
		word += size / 8;
	}
	memory[word + 1] = (WORDS - word) * 8 | is_used;
	return word;
}

static void put(struct walk_queue *q, size_t number)
{
	size_t first = number * WALK_PIECE_SIZE / 8, words = WALK_PIECE_SIZE / 8;
	struct walk_buffer *b = walk_queue_take(q, at(first));
	size_t cut = has_gaps && number % 3 == 1 ? 512 : 0;

	memcpy(b->data, &memory[first], sizeof(b->data));
	if (cut) /* the page in the middle could not be read */
		*vec_add(&b->parts) = (struct addr_range){at(first), at(first + words / 2)};
	*vec_add(&b->parts) = (struct addr_range){at(first + (cut ? words / 2 + cut : 0)), at(first + words)};
	walk_queue_put(q, number, b);
}

static void check(const struct walk_queue *q, size_t top)
{
	const struct heap_walk *found = &q->walks.data[0];
	struct heap_walk w;

	heap_walk_init(&w, at(HEAP), at(WORDS), at(top));
	for (size_t i = 0; i < PIECES; i++) {
		size_t first = i * WALK_PIECE_SIZE / 8, half = WALK_PIECE_SIZE / 16;
		size_t cut = has_gaps && i % 3 == 1 ? 512 : 0;

		heap_walk_feed(&w, at(first), &memory[first], half * 8);
		heap_walk_feed(&w, at(first + half + cut), &memory[first + half + cut], (half - cut) * 8);
	}
	assert_int_equal(found->state, w.state);
	assert_int_equal(found->end, w.end);
	assert_int_equal(found->free.count, w.free.count);
	if (w.free.count)
		assert_memory_equal(found->free.data, w.free.data, w.free.count * sizeof(*w.free.data));
	assert_int_equal(q->next, PIECES);
	heap_walk_deinit(&w);
}

static void begin(struct walk_queue *q, size_t top)
{
	walk_queue_init(q);
	walk_queue_add_heap(q, at(HEAP), at(WORDS), at(top));
	walk_queue_start(q, PIECES);
}

static void put_in_any_order(struct walk_queue *q)
{
	size_t order[PIECES];

	for (size_t i = 0; i < PIECES; i++) {
		size_t k = any(i + 1);

		order[i] = order[k];
		order[k] = i;
	}
	for (size_t i = 0; i < PIECES; i++)
		put(q, order[i]);
}

static void try_orders(size_t top)
{
	struct walk_queue q;

	for (int round = 0; round < 3; round++) {
		begin(&q, top);
		put_in_any_order(&q);
		check(&q, top);
		walk_queue_deinit(&q);
	}
}

static int setup(void **state)
{
	memory = calloc(WORDS, sizeof(*memory));
	seed = 1;
	has_gaps = false;
	return memory ? 0 : -1;
}

static int teardown(void **state)
{
	free(memory);
	return 0;
}

static const uint64_t sizes[] = {64, 160, 1024, 8192, 1u << 20};

static void test_orders(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		try_orders(make_heap(sizes[i]));
}

/* Walks that fail somewhere, or end at bytes that look like a fencepost. */
static void test_corrupt(void **state)
{
	for (int round = 0; round < 10; round++) {
		size_t top = make_heap(sizes[any(3)]);

		for (int i = 0; i < 1 + round % 3; i++)
			memory[any(WORDS) | 1] = any(3) * 8;
		try_orders(top);
	}
}

static void test_gaps(void **state)
{
	has_gaps = true;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		try_orders(make_heap(sizes[i]));
}

/* A wrong guess is discarded: it leads through one block whose contents look like chunks. */
static void test_wrong_guess(void **state)
{
	size_t first = WALK_PIECE_SIZE / 8, top = 4 * first;

	memset(memory, 0, WORDS * sizeof(*memory));
	for (size_t i = first; i < 3 * first; i += 8)
		memory[i + 1] = 64; /* free ones, if they were chunks */
	memory[HEAP + 1] = (top - HEAP) * 8 | 1;
	memory[top + 1] = (WORDS - top) * 8 | 1;
	try_orders(top);
	struct walk_queue q;
	begin(&q, top);
	for (size_t i = PIECES; i-- > 0;)
		put(&q, i);
	assert_int_equal(q.walks.data[0].state, HEAP_WALK_DONE);
	assert_int_equal(q.walks.data[0].free.count, 1);
	walk_queue_deinit(&q);
}

/* Guesses are used: otherwise the stop would be as long as the walk. */
static void test_guess_is_right(void **state)
{
	size_t piece = 5 * WALK_PIECE_SIZE / 8, top = make_heap(160);
	struct heap_guess g = {0};
	struct heap_walk w;

	heap_walk_init(&w, at(HEAP), at(WORDS), at(top));
	heap_walk_feed(&w, at(0), memory, piece * 8);
	heap_walk_guess(&g, &w, at(piece), &memory[piece], WALK_PIECE_SIZE);
	assert_true(g.is_made);
	assert_in_range(g.walk.start, at(piece) + 4096, at(piece) + 3 * 4096);
	heap_walk_feed(&w, at(piece), &memory[piece], WALK_PIECE_SIZE);
	assert_int_equal(g.walk.at, w.at);
	assert_int_equal(g.walk.before, w.before);
	heap_guess_deinit(&g);
	heap_walk_deinit(&w);
}

struct putter {
	struct walk_queue *queue;
	size_t *next;
	pthread_t thread;
};

static void *run_putter(void *ctx)
{
	const struct putter *p = ctx;
	size_t i;

	while ((i = __atomic_fetch_add(p->next, 1, __ATOMIC_RELAXED)) < PIECES)
		put(p->queue, i);
	return NULL;
}

static void test_threads(void **state)
{
	size_t top = make_heap(160);

	for (int round = 0; round < 20; round++) {
		struct putter putter[4];
		struct walk_queue q;
		size_t next = 0;

		begin(&q, top);
		for (size_t i = 0; i < ARRAY_SIZE(putter); i++) {
			putter[i] = (struct putter){.queue = &q, .next = &next};
			assert_int_equal(pthread_create(&putter[i].thread, NULL, run_putter, &putter[i]), 0);
		}
		for (size_t i = 0; i < ARRAY_SIZE(putter); i++)
			pthread_join(putter[i].thread, NULL);
		check(&q, top);
		walk_queue_deinit(&q);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_orders, setup, teardown),
		cmocka_unit_test_setup_teardown(test_corrupt, setup, teardown),
		cmocka_unit_test_setup_teardown(test_gaps, setup, teardown),
		cmocka_unit_test_setup_teardown(test_wrong_guess, setup, teardown),
		cmocka_unit_test_setup_teardown(test_guess_is_right, setup, teardown),
		cmocka_unit_test_setup_teardown(test_threads, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
