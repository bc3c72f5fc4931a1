/*
 * memusage's numbers from single events, its layout to the byte, its data file.
 */
#include "profile/memusage.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/hash.h"
#include "base/heap_calls.h"
#include "output/memusage_output.h"

static void alloc(struct memusage *m, int function, taddr_t addr, uint64_t size)
{
	struct event ev = {.kind = EVENT_ALLOC, .function = (uint8_t)function, .addr = addr, .size = size, .thread = 1};
	memusage_event(m, &ev);
}

static void release(struct memusage *m, taddr_t addr)
{
	struct event ev = {.kind = EVENT_FREE, .function = FUNCTION_FREE, .addr = addr, .thread = 1};
	memusage_event(m, &ev);
}

static void resize(struct memusage *m, taddr_t old, taddr_t addr, uint64_t size)
{
	struct event ev = {.kind = EVENT_REALLOC_BEGIN, .function = FUNCTION_REALLOC, .old_addr = old, .thread = 1};
	memusage_event(m, &ev);
	ev.kind = EVENT_REALLOC_END;
	ev.addr = addr;
	ev.size = size;
	memusage_event(m, &ev);
}

static void map(struct memusage *m, int function, taddr_t old, taddr_t addr, uint64_t size, uint64_t align)
{
	struct event ev = {.kind = EVENT_MAPPING_CALL, .function = (uint8_t)function, .old_addr = old, .addr = addr,
			   .size = size, .align = align};
	memusage_event(m, &ev);
}

static char *printed(const struct memusage *m, bool with_mappings, bool use_color)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	assert_int_equal(memusage_print(f, memusage_numbers(m), with_mappings, use_color), 0);
	fclose(f);
	return text;
}

static void test_layout(void **state)
{
	struct memusage *m = memusage_new(NULL);
	alloc(m, FUNCTION_MALLOC, 0x1000, 100);
	alloc(m, FUNCTION_MALLOC, 0, 1ull << 62);
	alloc(m, FUNCTION_CALLOC, 0x2000, 16);
	alloc(m, FUNCTION_REALLOC, 0x3000, 20);
	resize(m, 0x3000, 0x3000, 10);
	resize(m, 0x3000, 0x4000, 40);
	resize(m, 0x4000, 0, 0);
	release(m, 0x1000);
	release(m, 0);
	release(m, 0x9999);
	char *text = printed(m, false, false);
	assert_string_equal(text,
		"\nMemory usage summary: heap total: 4611686018427388070, heap peak: 156, stack peak: 0\n"
		"         total calls   total memory   failed calls\n"
		" malloc|          2   4611686018427388004              1\n"
		"realloc|          4             50              0  (nomove:1, dec:1, free:1)\n"
		" calloc|          1             16              0\n"
		"   free|          2            140\n"
		"Histogram for block sizes:\n"
		"    0-15              1  16% =========================\n"
		"   16-31              2  33% ==================================================\n"
		"   32-47              1  16% =========================\n"
		"   96-111             1  16% =========================\n"
		"   large              1  16% =========================\n");
	free(text);
	text = printed(m, false, true);
	assert_non_null(strstr(text, "\033[00;34m malloc|\033[0m          2   4611686018427388004   "
				     "\033[01;41m           1\033[00;00m\n"));
	assert_non_null(strstr(text, "\033[00;34m   free|\033[0m          2            140\n"));
	free(text);
	assert_int_equal(memusage_numbers(m)->unknown, 1);
	memusage_free(m);
}

static void test_failed_realloc(void **state)
{
	struct memusage *m = memusage_new(NULL);
	alloc(m, FUNCTION_MALLOC, 0x1000, 100);
	resize(m, 0x1000, 0, 1000);
	const struct memusage_numbers *n = memusage_numbers(m);
	assert_int_equal(n->row[MEMUSAGE_REALLOC].failed, 1);
	assert_int_equal(n->row[MEMUSAGE_REALLOC].memory, 900);
	assert_int_equal(n->live, 100);
	release(m, 0x1000);
	assert_int_equal(n->row[MEMUSAGE_FREE].memory, 100);
	alloc(m, FUNCTION_CALLOC, 0, UINT64_MAX); /* a product that no 64 bits hold */
	assert_int_equal(n->row[MEMUSAGE_CALLOC].failed, 1);
	assert_int_equal(n->row[MEMUSAGE_CALLOC].memory, 0);
	assert_int_equal(n->large, 1);
	memusage_free(m);
}

/* The request of a failed call counts, unless no object can be that large: no sum wraps. */
static void test_impossible_sizes(void **state)
{
	struct memusage *m = memusage_new(NULL);
	const struct memusage_numbers *n = memusage_numbers(m);
	alloc(m, FUNCTION_MALLOC, 0x1000, 100);
	alloc(m, FUNCTION_MALLOC, 0, UINT64_MAX);
	alloc(m, FUNCTION_MALLOC, 0, (uint64_t)PTRDIFF_MAX + 1);
	alloc(m, FUNCTION_CALLOC, 0, UINT64_MAX); /* also of a product that overflows */
	resize(m, 0x1000, 0, (uint64_t)-5);
	assert_int_equal(n->row[MEMUSAGE_MALLOC].memory, 100);
	assert_int_equal(n->row[MEMUSAGE_MALLOC].failed, 2);
	assert_int_equal(n->row[MEMUSAGE_CALLOC].failed, 1);
	assert_int_equal(n->row[MEMUSAGE_REALLOC].memory, 0);
	assert_int_equal(n->row[MEMUSAGE_REALLOC].failed, 1);
	assert_int_equal(n->total, 100);
	assert_int_equal(n->live, 100);
	assert_int_equal(n->large, 4);
	alloc(m, FUNCTION_MALLOC, 0, PTRDIFF_MAX);
	assert_int_equal(n->total, (uint64_t)PTRDIFF_MAX + 100);
	memusage_free(m);
}

static void test_mappings(void **state)
{
	struct memusage *m = memusage_new(NULL);
	const struct memusage_numbers *n = memusage_numbers(m);
	uint64_t anonymous = PROT_READ | (uint64_t)(MAP_PRIVATE | MAP_ANONYMOUS) << 32;
	map(m, FUNCTION_MMAP, 0, 0x10000, 0x5000, anonymous);
	map(m, FUNCTION_MMAP, 0, 0, 4096, PROT_READ);
	map(m, FUNCTION_MMAP, 0, 0x40000, 100, PROT_WRITE);
	assert_int_equal(n->live, 0x5064); /* what was asked for */
	map(m, FUNCTION_MUNMAP, 0x12000, 0x12000, 0x1000, 0); /* out of the middle */
	assert_int_equal(n->live, 0x4064);
	map(m, FUNCTION_MUNMAP, 0x900000, 0x900000, 0x1000, 0); /* never seen: not below zero */
	assert_int_equal(n->live, 0x4064);
	map(m, FUNCTION_MREMAP, 0x40000, 0x50000, 0x3000, 0x1000); /* whole pages go */
	assert_int_equal(n->live, 0x7000);
	map(m, FUNCTION_MREMAP, 0x50000, 0, 1ull << 60, 0x3000);
	assert_int_equal(n->row[MEMUSAGE_MREMAP].failed, 1);
	assert_int_equal(n->live, 0x7000);
	map(m, FUNCTION_MUNMAP, 0, 0, 0x1000, 0);
	assert_int_equal(n->row[MEMUSAGE_MUNMAP].failed, 1);
	assert_int_equal(n->row[MEMUSAGE_MMAP_READ].failed, 1);
	assert_int_equal(n->row[MEMUSAGE_MMAP_WRITE].calls, 1);
	assert_int_equal(n->row[MEMUSAGE_MMAP_ANONYMOUS].memory, 0x5000);
	assert_int_equal(n->peak, 0x7000);
	memusage_free(m);
}

static void sample(struct memusage *m, uint32_t thread, taddr_t sp)
{
	struct event ev = {.kind = EVENT_SAMPLE, .thread = thread, .sp = sp};
	memusage_event(m, &ev);
}

static void test_stacks(void **state)
{
	struct memusage *m = memusage_new(NULL);
	const struct memusage_numbers *n = memusage_numbers(m);
	sample(m, 1, 0x7fff0000);
	assert_int_equal(n->stack_peak, 0);
	sample(m, 1, 0x7fff0100); /* shallower: the base moves up */
	sample(m, 1, 0x7ffeff00);
	assert_int_equal(n->stack_peak, 0x200);
	sample(m, 2, 0x10000000); /* its own base */
	sample(m, 2, 0x0ffffd00);
	assert_int_equal(n->stack_peak, 0x300);
	sample(m, 1, 0x7f0000000000); /* another stack */
	sample(m, 1, 0x7ffeff00);
	sample(m, 1, 0x1000);
	assert_int_equal(n->stack_peak, 0x300);
	memusage_free(m);

	m = memusage_new(NULL); /* the first thread's is known before its first call */
	n = memusage_numbers(m);
	memusage_event(m, &(struct event){.kind = EVENT_STACK_BASE, .thread = 1, .sp = 0x7fff0000});
	assert_int_equal(n->stack_peak, 0);
	sample(m, 2, 0x10000000);
	sample(m, 1, 0x7ffef000);
	assert_int_equal(n->stack_peak, 0x1000);
	memusage_free(m);

	m = memusage_new(NULL); /* a reported stack: nearby addresses belong to another thread */
	n = memusage_numbers(m);
	memusage_event(m, &(struct event){.kind = EVENT_STACK_RANGE, .thread = 1, .addr = 0x7fff0000, .size = 0x2000});
	sample(m, 1, 0x7ffefff8); /* gives no base */
	sample(m, 1, 0x7fff1000);
	sample(m, 1, 0x7ffef000);
	sample(m, 1, 0x7fff2008);
	assert_int_equal(n->stack_peak, 0);
	sample(m, 1, 0x7fff0ff0);
	sample(m, 1, 0x7fff3000);
	assert_int_equal(n->stack_peak, 0x10);
	memusage_free(m);
}

/* After the program's own destructors nothing counts, as memusage has it. */
static void test_program_end(void **state)
{
	struct memusage *m = memusage_new(NULL);
	const struct quick_event quick = {.addr = 0x2000, .size = 7, .function = FUNCTION_MALLOC};
	(void)state;
	alloc(m, FUNCTION_MALLOC, 0x1000, 10);
	memusage_event(m, &(struct event){.kind = EVENT_PROGRAM_END, .thread = 1});
	alloc(m, FUNCTION_MALLOC, 0x1100, 10);
	memusage_quick(m, &quick, 1);
	const struct memusage_numbers *n = memusage_numbers(m);
	assert_int_equal(n->row[MEMUSAGE_MALLOC].calls, 1);
	assert_int_equal(n->live, 10);
	memusage_free(m);
}

/* Batches give the same result as single events, whatever is in the table. */
static void test_quick(void **state)
{
	struct memusage *one = memusage_new(NULL), *many = memusage_new(NULL);
	static const uint8_t functions[] = {FUNCTION_MALLOC, FUNCTION_CALLOC, FUNCTION_REALLOC, FUNCTION_NEW, FUNCTION_MEMALIGN};
	struct quick_event batch[50];
	uint64_t seed = 1;
	for (unsigned round = 0; round < 500; round++) {
		size_t count = hash_u64(seed++) % ARRAY_SIZE(batch);
		for (size_t i = 0; i < count; i++) {
			uint64_t r = hash_u64(seed++);
			batch[i] = (struct quick_event){
				.is_free = r & 1, .function = r & 1 ? FUNCTION_FREE : functions[(r >> 8) % 5],
				.addr = (r >> 16) % 200 * 0x350 + (r >> 60 ? 0 : 1ull << 60), .size = (r >> 32) % 100000,
				.sp = (r >> 1) & 3 ? 0x7fff0000 - (r >> 24) % 5000 : 0, .thread = 1 + (r >> 5) % 3,
			};
			if (!batch[i].is_free && !batch[i].addr)
				batch[i].addr = 8;
			struct event ev = {
				.kind = r & 1 ? EVENT_FREE : EVENT_ALLOC, .function = batch[i].function,
				.addr = batch[i].addr, .size = r & 1 ? 0 : batch[i].size, .sp = batch[i].sp,
				.thread = batch[i].thread,
			};
			memusage_event(one, &ev);
		}
		memusage_quick(many, batch, count);
		assert_memory_equal(memusage_numbers(one), memusage_numbers(many), sizeof(struct memusage_numbers));
	}
	assert_true(memusage_numbers(one)->stack_peak > 0 && memusage_numbers(one)->peak > 0);
	memusage_free(one);
	memusage_free(many);
}

static void test_clone(void **state)
{
	struct memusage *m = memusage_new(NULL);
	alloc(m, FUNCTION_MALLOC, 0x1000, 100);
	struct event ev = {.kind = EVENT_REALLOC_BEGIN, .old_addr = 0x1000, .thread = 5};
	memusage_event(m, &ev);
	struct memusage *c = memusage_clone(m);
	release(c, 0x1000);
	assert_int_equal(memusage_numbers(c)->live, 0);
	assert_int_equal(memusage_numbers(m)->live, 100);
	memusage_thread_exit(m, 5); /* inside realloc: the block stays */
	release(m, 0x1000);
	assert_int_equal(memusage_numbers(m)->live, 0);
	memusage_free(c);
	memusage_free(m);
}

/* A realloc that never ends: its block was released if the address was given out again. */
static void test_unfinished_realloc(void **state)
{
	struct memusage *m = memusage_new(NULL);
	struct event ev = {.kind = EVENT_REALLOC_BEGIN, .old_addr = 0x1000, .thread = 5};
	alloc(m, FUNCTION_MALLOC, 0x1000, 100);
	memusage_event(m, &ev);
	alloc(m, FUNCTION_MALLOC, 0x1000, 30);
	assert_int_equal(memusage_numbers(m)->live, 130);
	memusage_thread_exit(m, 5);
	assert_int_equal(memusage_numbers(m)->live, 30);
	release(m, 0x1000);
	assert_int_equal(memusage_numbers(m)->live, 0);
	memusage_free(m);
}

static void test_data(void **state)
{
	char path[] = "/tmp/test_memusage.XXXXXX";
	struct memusage_data *d;
	uint64_t word[3 * 6];
	close(mkstemp(path));
	assert_int_equal(memusage_data_open(path, 2, false, &d), 0);
	memusage_data_start(d, 50);
	memusage_data_add(d, 1, 1, 1);
	memusage_data_start(d, 100);
	for (uint64_t i = 1; i <= 3; i++)
		memusage_data_add(d, 10 * i, i, 100 + i);
	const struct memusage_data_peaks peaks = {.heap = 30, .stack = 3, .sum = 33, .start_ns = 100, .end_ns = 100};
	memusage_data_finish(d, &peaks);
	assert_int_equal(memusage_data_close(d), 0);
	FILE *f = fopen(path, "r");
	assert_int_equal(fread(word, 24, 6, f), 5);
	fclose(f);
	const uint64_t want[] = {0, 33, 100, 30, 3, 101, 10, 1, 101, 20, 2, 102, 30, 3, 103};
	assert_memory_equal(word, want, sizeof(want));
	unlink(path);
	assert_int_equal(memusage_data_open("/tmp", 1, false, &d), -EISDIR);
	assert_int_equal(memusage_data_open("/dev/full", 1, false, &d), 0);
	memusage_data_start(d, 1);
	memusage_data_add(d, 1, 1, 1);
	memusage_data_finish(d, &peaks);
	assert_int_equal(memusage_data_close(d), -ENOSPC);
}

/* Calls read together have one time; they are spread over the interval in which they happened. */
static void test_data_batches(void **state)
{
	static const uint64_t added[] = {1040, 1040, 1040, 1040, 2000, 50000000, 50000000, 50000000, 1};
	static const uint64_t want[] = {1010, 1020, 1030, 1040, 2000, 43333333, 46666666, 50000000, 1};
	for (uint32_t buffer = 8; buffer <= 64; buffer *= 2) {
		char path[] = "/tmp/test_memusage.XXXXXX";
		struct memusage_data *d;
		uint64_t word[3 * 12];
		close(mkstemp(path));
		assert_int_equal(memusage_data_open(path, buffer, false, &d), 0);
		memusage_data_start(d, 1000);
		for (size_t i = 0; i < ARRAY_SIZE(added); i++)
			memusage_data_add(d, i, 0, added[i]);
		const struct memusage_data_peaks peaks = {.start_ns = 1000, .end_ns = 60000000};
		memusage_data_finish(d, &peaks);
		assert_int_equal(memusage_data_close(d), 0);
		FILE *f = fopen(path, "r");
		assert_int_equal(fread(word, 24, 12, f), 11);
		fclose(f);
		for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
			assert_int_equal(word[3 * (i + 2)], i);
			assert_int_equal(word[3 * (i + 2) + 2], want[i]);
		}
		unlink(path);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_layout), cmocka_unit_test(test_failed_realloc), cmocka_unit_test(test_unfinished_realloc), cmocka_unit_test(test_impossible_sizes), cmocka_unit_test(test_mappings),
		cmocka_unit_test(test_stacks), cmocka_unit_test(test_quick), cmocka_unit_test(test_clone), cmocka_unit_test(test_data),
		cmocka_unit_test(test_data_batches), cmocka_unit_test(test_program_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
