/* Pages of a stopped process that were never written: what they read as. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "malloc/memory.h"

#define PAGE ((taddr_t)PAGE_SIZE_MIN)

static ssize_t read_written(void *ctx, taddr_t addr, void *buf, size_t size)
{
	memset(buf, 'w', size);
	return (ssize_t)size;
}

static ssize_t read_file(void *ctx, taddr_t addr, void *buf, size_t size)
{
	memset(buf, 'f', size);
	return (ssize_t)size;
}

static char first_byte(struct inspect_memory *m, taddr_t addr)
{
	char c = '?';

	assert_true(memory_read(m, addr, &c, 1));
	return c;
}

static void add_map(struct resident *pages, const char *line)
{
	struct map m;

	assert_int_equal(maps_parse_line(line, &m), 0);
	*vec_add(&pages->maps.list) = m;
}

/*
 * The file's object seems to reach over the anonymous memory after it, as where node maps its code
 * again.
 */
static void only_pages_of_files_are_read_from_files(void **state)
{
	struct resident pages = {0};
	struct inspect_memory m;
	const struct memory_source source = {.read = read_written, .read_file = read_file};

	add_map(&pages, "10000-12000 rw-p 00000000 08:01 7                          /usr/bin/program");
	add_map(&pages, "12000-14000 rw-p 00000000 00:00 0 ");
	*vec_add(&pages.list) = (struct page_run){.start = 0x10000, .end = 0x11000};
	*vec_add(&pages.list) = (struct page_run){.start = 0x12000, .end = 0x13000};
	memory_init(&m, &pages, &source);
	assert_int_equal(first_byte(&m, 0x10000), 'w');
	assert_int_equal(first_byte(&m, 0x10000 + PAGE), 'f');
	assert_int_equal(first_byte(&m, 0x12000), 'w');
	assert_int_equal(first_byte(&m, 0x12000 + PAGE), 0);
	memory_deinit(&m);
	resident_deinit(&pages);
}

/* Pages are read one by one, then several at once, over holes and the ends of mappings. */
static ssize_t read_numbers(void *ctx, taddr_t addr, void *buf, size_t size)
{
	for (size_t i = 0; i < size; i++)
		((uint8_t *)buf)[i] = (uint8_t)((addr + i) / PAGE % 251 + 1);
	return (ssize_t)size;
}

static void ascending_reads_are_what_single_ones_are(void **state)
{
	struct resident pages = {0};
	struct inspect_memory m;
	const struct memory_source source = {.read = read_numbers};
	const taddr_t start = 0x10000000, hole = start + 300 * PAGE, end = start + 3000 * PAGE;

	add_map(&pages, "10000000-10bb8000 rw-p 00000000 00:00 0 ");
	*vec_add(&pages.list) = (struct page_run){.start = start, .end = hole};
	*vec_add(&pages.list) = (struct page_run){.start = hole + PAGE, .end = end};
	memory_init(&m, &pages, &source);
	for (int round = 0; round < 2; round++)
		for (taddr_t at = start + PAGE / 2; at < end; at += PAGE)
			assert_int_equal((uint8_t)first_byte(&m, at),
					 at - PAGE / 2 == hole ? 0 : at / PAGE % 251 + 1);
	assert_int_equal(m.bytes, 2 * (end - start - PAGE));
	memory_deinit(&m);
	resident_deinit(&pages);
}

#define UNREADABLE UINT64_C(0x10400000)

static ssize_t read_half(void *ctx, taddr_t addr, void *buf, size_t size)
{
	return addr < UNREADABLE ? read_numbers(ctx, addr, buf, size) : -1;
}

/* What is read ahead in vain takes the place of pages in the cache, which are not lost by that. */
static void pages_that_cannot_be_read_spoil_no_others(void **state)
{
	struct resident pages = {0};
	struct inspect_memory m;
	const struct memory_source source = {.read = read_half};
	const taddr_t start = 0x10000000;

	assert_int_equal((UNREADABLE - start) / PAGE % MEMORY_LINES_MIN, 0);
	add_map(&pages, "10000000-10800000 rw-p 00000000 00:00 0 ");
	*vec_add(&pages.list) = (struct page_run){.start = start, .end = start + 2048 * PAGE};
	memory_init(&m, &pages, &source);
	for (taddr_t at = start; at < UNREADABLE; at += PAGE)
		assert_int_equal((uint8_t)first_byte(&m, at), at / PAGE % 251 + 1);
	for (taddr_t at = UNREADABLE; at < UNREADABLE + 5 * PAGE; at += PAGE)
		assert_int_equal(first_byte(&m, at), 0);
	for (taddr_t at = start + 5 * PAGE; at < UNREADABLE; at += PAGE)
		assert_int_equal((uint8_t)first_byte(&m, at), at / PAGE % 251 + 1);
	memory_deinit(&m);
	resident_deinit(&pages);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_pages_of_files_are_read_from_files),
		cmocka_unit_test(ascending_reads_are_what_single_ones_are),
		cmocka_unit_test(pages_that_cannot_be_read_spoil_no_others),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
