/* Copies of a process's memory: what is in them, what is not, and what reads as zeros. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "malloc/memory_copy.h"

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
	assert_true(memory_copy_make(&copy, &pages, NULL, &from));
	struct memory_source source = {0};

	memory_copy_redirect(&copy, &source);

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
	assert_true(memory_copy_make(&copy, &pages, NULL, &from));
	struct memory_source source = {0};

	memory_copy_redirect(&copy, &source);

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
	assert_false(memory_copy_make(&copy, &pages, NULL, &from));
	memory_copy_deinit(&copy);
	memory_copy_init(&copy, 0);
	assert_false(memory_copy_make(&copy, &pages, NULL, &from));
	memory_copy_deinit(&copy);
	resident_deinit(&pages);
}

#define LIVE_PAGES 200u

/* A process that writes while it is copied: one byte for each page. */
struct running {
	uint8_t byte[LIVE_PAGES];
	bool is_there[LIVE_PAGES], is_written[LIVE_PAGES];
};

static ssize_t read_running(void *ctx, taddr_t addr, void *buf, size_t size)
{
	const struct running *r = ctx;

	for (size_t done = 0; done < size; done += PAGE_SIZE_MIN) {
		size_t page = (addr + done - HEAP) / PAGE_SIZE_MIN;

		if (!r->is_there[page])
			return done > 0 ? (ssize_t)done : -1;
		memset((uint8_t *)buf + done, r->byte[page], PAGE_SIZE_MIN);
	}
	return (ssize_t)size;
}

static ssize_t scatter_running(void *ctx, const struct iovec *to, const struct iovec *from,
			       size_t count)
{
	ssize_t done = 0;

	for (size_t i = 0; i < count; i++) {
		ssize_t n = read_running(ctx, (taddr_t)(uintptr_t)from[i].iov_base, to[i].iov_base,
					 from[i].iov_len);

		done += MAX(n, 0);
		if (n < (ssize_t)from[i].iov_len)
			break;
	}
	return done;
}

static void let_run(struct running *r, unsigned writes)
{
	for (unsigned i = 0; i < writes; i++) {
		size_t page = (size_t)rand() % LIVE_PAGES;
		bool is_freed = rand() % 5 == 0;

		/* a page that is gone and comes back is a new one */
		r->is_there[page] = !is_freed;
		r->is_written[page] = true;
		r->byte[page]++;
	}
}

/* Those that are there and for which @flag is @wanted. */
static void list_pages(const struct running *r, bool wanted, struct copy_ranges *out)
{
	out->list.count = 0;
	for (size_t i = 0; i < LIVE_PAGES; i++) {
		struct addr_range page = {HEAP + i * PAGE_SIZE_MIN, HEAP + (i + 1) * PAGE_SIZE_MIN};
		struct addr_range *last = out->list.count ? &out->list.data[out->list.count - 1] : NULL;

		if (!r->is_there[i] || r->is_written[i] != wanted)
			continue;
		if (last && last->end == page.start && rand() % 3)
			last->end = page.end;
		else
			*vec_add(&out->list) = page;
	}
}

static void check_copied(const struct running *r, struct memory_copy *copy)
{
	struct memory_source source = {0};

	memory_copy_redirect(copy, &source);
	uint8_t got[PAGE_SIZE_MIN];

	for (size_t i = 0; i < LIVE_PAGES; i++) {
		ssize_t n = source.read(source.ctx, HEAP + i * PAGE_SIZE_MIN, got, sizeof(got));

		assert_int_equal(n, r->is_there[i] ? (ssize_t)PAGE_SIZE_MIN : -1);
		for (size_t k = 0; k < PAGE_SIZE_MIN && r->is_there[i]; k += PAGE_SIZE_MIN / 2)
			assert_int_equal(got[k], r->byte[i]);
	}
}

static void copy_while_running(unsigned seed)
{
	struct running r = {0};
	const struct memory_source from = {
		.read = read_running, .scatter = seed % 2 ? scatter_running : NULL, .ctx = &r};
	struct resident pages = {0};
	struct memory_copy copy;
	struct copy_ranges list = {0};

	srand(seed);
	memory_copy_init(&copy, LIVE_PAGES * PAGE_SIZE_MIN * 8);
	let_run(&r, LIVE_PAGES);
	for (unsigned round = 0; round < seed % 6; round++) {
		list_pages(&r, true, &list);
		memset(r.is_written, 0, sizeof(r.is_written));
		let_run(&r, seed % 7); /* before they are read */
		assert_true(memory_copy_ahead(&copy, &list, &from));
		let_run(&r, seed % 50);
	}
	add(&pages, "10000000-10900000 rw-p 00000000 00:00 0 ", PAGE_RESIDENT);
	pages.list.count = 0;
	for (size_t i = 0; i < LIVE_PAGES; i++)
		if (r.is_there[i])
			*vec_add(&pages.list) = (struct page_run){HEAP + i * PAGE_SIZE_MIN,
								  HEAP + (i + 1) * PAGE_SIZE_MIN,
								  PAGE_RESIDENT};
	list_pages(&r, false, &list);
	assert_true(memory_copy_make(&copy, &pages, &list, &from));
	check_copied(&r, &copy);
	vec_deinit(&list.list);
	memory_copy_deinit(&copy);
	resident_deinit(&pages);
}

static void what_is_written_while_copied_is_copied_again(void **state)
{
	for (unsigned seed = 0; seed < 300; seed++)
		copy_while_running(seed);
}

static void without_room_nothing_is_copied_ahead(void **state)
{
	struct running r = {0};
	const struct memory_source from = {.read = read_running, .ctx = &r};
	struct copy_ranges list = {0};
	struct memory_copy copy;

	memory_copy_init(&copy, PAGE_SIZE_MIN);
	*vec_add(&list.list) = (struct addr_range){HEAP, HEAP + (UINT64_C(16) << 20)};
	assert_false(memory_copy_ahead(&copy, &list, &from));
	assert_int_equal(copy.used, 0);
	assert_int_equal(copy.ahead.list.count, 0);
	vec_deinit(&list.list);
	memory_copy_deinit(&copy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(private_and_writable_pages_are_copied),
		cmocka_unit_test(what_is_not_copied_is_read_from_files),
		cmocka_unit_test(a_process_that_has_grown_is_not_copied),
		cmocka_unit_test(what_is_written_while_copied_is_copied_again),
		cmocka_unit_test(without_room_nothing_is_copied_ahead),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
