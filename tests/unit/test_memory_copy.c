/* Copies of a process's memory: what is in them, what is not, and what reads as zeros. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "malloc/memory.h"

#define HEAP UINT64_C(0x10000000)
#define HEAP_SIZE (UINT64_C(9) << 20)
#define CODE UINT64_C(0x20000000)
#define UNREADABLE (HEAP + (UINT64_C(3) << 20))

static uint8_t byte_at(taddr_t addr)
{
	return (uint8_t)(addr / 7 + addr / PAGE_SIZE_MIN);
}

/* The page at UNREADABLE cannot be read. */
static ssize_t read_process(void *ctx, taddr_t addr, void *buf, size_t size)
{
	if (addr <= UNREADABLE && addr + size > UNREADABLE)
		size = UNREADABLE - addr;
	for (size_t i = 0; i < size; i++)
		((uint8_t *)buf)[i] = byte_at(addr + i);
	return size > 0 ? (ssize_t)size : -1;
}

static ssize_t read_file(void *ctx, taddr_t addr, void *buf, size_t size)
{
	memset(buf, 'f', size);
	return (ssize_t)size;
}

static void add(struct resident *pages, const char *line, uint32_t flags)
{
	struct map m;

	assert_int_equal(maps_parse_line(line, &m), 0);
	*vec_add(&pages->maps.list) = m;
	*vec_add(&pages->list) = (struct page_run){m.start, m.end, flags};
}

static void add_all(struct resident *pages)
{
	add(pages, "10000000-10900000 rw-p 00000000 00:00 0 ", PAGE_RESIDENT);
	add(pages, "20000000-20004000 r-xp 00000000 08:01 7     /usr/bin/program",
	    PAGE_RESIDENT | PAGE_OF_FILE);
	add(pages, "20004000-20005000 r--p 00004000 08:01 7     /usr/bin/program", PAGE_RESIDENT);
	add(pages, "20005000-20006000 rw-p 00005000 08:01 7     /usr/bin/program",
	    PAGE_RESIDENT | PAGE_OF_FILE);
}

static void private_and_writable_pages_are_copied(void **state)
{
	const struct memory_source from = {.read = read_process};
	struct resident pages = {0};
	struct memory_copy copy;
	uint8_t got[3 * PAGE_SIZE_MIN];

	add_all(&pages);
	memory_copy_init(&copy, HEAP_SIZE);
	assert_true(memory_copy_make(&copy, &pages, &from));
	struct memory_source source = memory_copy_source(&copy);

	/* over the end of a piece */
	for (taddr_t at = HEAP; at < UNREADABLE - sizeof(got); at += 9999) {
		assert_int_equal(source.read(source.ctx, at, got, sizeof(got)), sizeof(got));
		for (size_t i = 0; i < sizeof(got); i++)
			assert_int_equal(got[i], byte_at(at + i));
	}
	assert_int_equal(source.read(source.ctx, UNREADABLE, got, 1), 1);
	assert_int_equal(got[0], 0);
	assert_int_equal(source.read(source.ctx, HEAP + HEAP_SIZE - 5, got, 9), 5);
	assert_int_equal(source.read(source.ctx, HEAP - 1, got, 9), -1);
	assert_int_equal(source.read(source.ctx, CODE, got, 1), -1);
	assert_int_equal(source.read(source.ctx, CODE + 0x4000, got, sizeof(got)), 0x2000);

	const taddr_t addr[] = {HEAP + 8, CODE, CODE + 0x5008};
	uint8_t each[3][8];
	struct inspect_memory m;

	memory_init(&m, &pages, &source);
	memory_gather(&m, addr, 3, sizeof(each[0]), each);
	memory_deinit(&m);
	assert_int_equal(each[0][0], byte_at(addr[0]));
	assert_int_equal(each[1][0], 0);
	assert_int_equal(each[2][7], byte_at(addr[2] + 7));
	memory_copy_deinit(&copy);
	resident_deinit(&pages);
}

static void what_is_not_copied_is_read_from_files(void **state)
{
	const struct memory_source from = {.read = read_process};
	struct resident pages = {0};
	struct inspect_memory m;
	struct memory_copy copy;
	uint8_t got;

	add_all(&pages);
	memory_copy_init(&copy, HEAP_SIZE);
	assert_true(memory_copy_make(&copy, &pages, &from));
	struct memory_source source = memory_copy_source(&copy);

	source.read_file = read_file;
	memory_init(&m, &pages, &source);
	/* in ascending order, as where several pages are read at once */
	for (taddr_t at = CODE; at < CODE + 0x6000; at += PAGE_SIZE_MIN) {
		assert_true(memory_read(&m, at, &got, 1));
		assert_int_equal(got, at < CODE + 0x4000 ? 'f' : byte_at(at));
	}
	memory_deinit(&m);
	memory_copy_deinit(&copy);
	resident_deinit(&pages);
}

static void a_process_that_has_grown_is_not_copied(void **state)
{
	const struct memory_source from = {.read = read_process};
	struct resident pages = {0};
	struct memory_copy copy;

	add_all(&pages);
	memory_copy_init(&copy, HEAP_SIZE / 2);
	assert_false(memory_copy_make(&copy, &pages, &from));
	memory_copy_deinit(&copy);
	memory_copy_init(&copy, 0);
	assert_false(memory_copy_make(&copy, &pages, &from));
	memory_copy_deinit(&copy);
	resident_deinit(&pages);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(private_and_writable_pages_are_copied),
		cmocka_unit_test(what_is_not_copied_is_read_from_files),
		cmocka_unit_test(a_process_that_has_grown_is_not_copied),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
