/* Which pages exist, by both kernel interfaces, for mappings of this process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tracee/os/pagemap.h"

#define PAGES 20000u /* more than are read at once */

struct map_state {
	taddr_t start;
	uint8_t found[PAGES];
};

static void note(void *ctx, taddr_t start, taddr_t end)
{
	struct map_state *s = ctx;

	assert_true(start < end && start % PAGE_SIZE_MIN == 0 && end % PAGE_SIZE_MIN == 0);
	for (; start < end; start += PAGE_SIZE_MIN)
		s->found[(start - s->start) / PAGE_SIZE_MIN]++;
}

static bool is_touched(size_t page)
{
	return page == 0 || page == PAGES - 1 || (page > 100 && page < 5000 && page % 3 != 0);
}

/* Between inaccessible pages, so that it is not merged with others. */
static uint8_t *map_pages(void)
{
	uint8_t *p = mmap(NULL, (PAGES + 2ul) * PAGE_SIZE_MIN, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	assert_true(p != MAP_FAILED);
	assert_int_equal(mprotect(p + PAGE_SIZE_MIN, PAGES * (size_t)PAGE_SIZE_MIN, PROT_READ | PROT_WRITE), 0);
	assert_int_equal(madvise(p, (PAGES + 2ul) * PAGE_SIZE_MIN, MADV_NOHUGEPAGE), 0);
	return p + PAGE_SIZE_MIN;
}

static void look(bool may_scan, const uint8_t *map, struct map_state *state)
{
	struct present p;

	memset(state, 0, sizeof(*state));
	state->start = (taddr_t)(uintptr_t)map;
	present_open(getpid(), may_scan, &p);
	present_find(&p, state->start, state->start + PAGES * (taddr_t)PAGE_SIZE_MIN, note, state);
	present_close(&p);
}

static void check(bool may_scan)
{
	static struct map_state state;
	uint8_t *map = map_pages(), *empty = map_pages();

	for (size_t i = 0; i < PAGES; i++)
		if (is_touched(i))
			map[i * PAGE_SIZE_MIN] = 1;
	look(may_scan, map, &state);
	for (size_t i = 0; i < PAGES; i++)
		assert_int_equal(state.found[i], is_touched(i));
	look(may_scan, empty, &state);
	for (size_t i = 0; i < PAGES; i++)
		assert_int_equal(state.found[i], 0);
}

static void test_scanned(void **state)
{
	(void)state;
	check(true);
}

static void test_read(void **state)
{
	(void)state;
	check(false);
}

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif
#define GUARDED 1000u, 1010u /* pages: the first, and the one after the last */

static bool is_guarded(size_t page)
{
	const size_t range[] = {GUARDED};

	return page >= range[0] && page < range[1];
}

/* Whether the kernel has guard pages, and says in pagemap which ones are. */
static bool install_guards(uint8_t *map)
{
	const size_t range[] = {GUARDED};
	uint64_t entry = 0;
	uint8_t *first = map + range[0] * PAGE_SIZE_MIN;

	if (madvise(first, (range[1] - range[0]) * PAGE_SIZE_MIN, MADV_GUARD_INSTALL) != 0)
		return false;
	FILE *file = fopen("/proc/self/pagemap", "re");

	assert_non_null(file);
	assert_int_equal(fseek(file, (long)((uintptr_t)first / PAGE_SIZE_MIN * sizeof(entry)), SEEK_SET), 0);
	assert_int_equal(fread(&entry, sizeof(entry), 1, file), 1);
	fclose(file);
	return entry >> 58 & 1;
}

/* Guard pages hold nothing and cannot be read; neither exist nor are swapped out. */
static void test_guard_pages(void **state)
{
	static struct map_state found;
	uint8_t *map = map_pages();
	struct resident pages = {0};

	(void)state;
	memset(map, 1, PAGES * (size_t)PAGE_SIZE_MIN);
	if (!install_guards(map))
		skip();
	for (int may_scan = 0; may_scan < 2; may_scan++) {
		look(may_scan, map, &found);
		for (size_t i = 0; i < PAGES; i++)
			assert_int_equal(found.found[i], !is_guarded(i));
	}
	assert_int_equal(resident_read(getpid(), &pages), 0);
	for (size_t i = 0; i < pages.list.count; i++) {
		const struct page_run *r = &pages.list.data[i];

		if (r->start >= found.start && r->end <= found.start + PAGES * (taddr_t)PAGE_SIZE_MIN)
			assert_int_equal(r->flags, PAGE_RESIDENT);
	}
	resident_deinit(&pages);
	munmap(map, PAGES * (size_t)PAGE_SIZE_MIN);
}

/* 64 TiB of untouched memory: reading an entry for each page would take minutes. */
static void test_empty_is_passed_over(void **state)
{
	static struct map_state none;
	size_t size = 64ul << 40;
	struct present p;
	uint8_t *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	(void)state;
	if (map == MAP_FAILED)
		skip(); /* vm.overcommit_memory is 2, or the address space is limited */
	none.start = (taddr_t)(uintptr_t)map;
	for (int may_scan = 0; may_scan < 2; may_scan++) {
		present_open(getpid(), may_scan, &p);
		present_find(&p, none.start, none.start + size, note, &none);
		present_close(&p);
	}
	assert_int_equal(none.found[0], 0);
	munmap(map, size);
}

/* Pages that cannot be queried are assumed to exist. */
/* Of all memory, what is in the map. */
static void note_in_map(void *ctx, taddr_t start, taddr_t end)
{
	const struct map_state *s = ctx;

	if (start >= s->start && end <= s->start + PAGES * (taddr_t)PAGE_SIZE_MIN)
		note(ctx, start, end);
}

typedef int written_fn(struct written_pages *w, pages_fn *fn, void *ctx);

static int find_unchanged(struct written_pages *w, pages_fn *fn, void *ctx)
{
	struct resident pages;
	int rc = resident_read_watched(w, &pages, fn, ctx);

	if (rc == 0)
		resident_deinit(&pages);
	return rc;
}

static void note_all(struct written_pages *w, written_fn *fn, struct map_state *out)
{
	memset(out->found, 0, sizeof(out->found));
	assert_int_equal(fn(w, note_in_map, out), 0);
}

static void test_written(void **state)
{
	static struct map_state found;
	struct written_pages w;
	uint8_t *map = map_pages();
	int uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | 1);

	if (uffd < 0 || written_pages_begin(getpid(), uffd, &w) != 0)
		skip(); /* before Linux 6.7, or forbidden */
	for (size_t i = 0; i < PAGES; i++)
		if (is_touched(i))
			map[i * PAGE_SIZE_MIN] = 1;
	found.start = (taddr_t)(uintptr_t)map;
	for (unsigned round = 0; round < 3; round++) {
		note_all(&w, written_pages_next, &found);
		for (size_t i = 0; i < PAGES; i++)
			assert_int_equal(found.found[i], round == 0 ? is_touched(i) : is_touched(i) && i % 7 == 0);
		for (size_t i = 0; i < PAGES; i += 7)
			if (is_touched(i))
				map[i * PAGE_SIZE_MIN]++;
		note_all(&w, find_unchanged, &found);
		for (size_t i = 0; i < PAGES; i++)
			assert_int_equal(found.found[i], is_touched(i) && i % 7 != 0);
	}
	/* a page that was dropped is another one */
	madvise(map + 101 * PAGE_SIZE_MIN, PAGE_SIZE_MIN, MADV_DONTNEED);
	map[101 * PAGE_SIZE_MIN] = 5;
	note_all(&w, written_pages_next, &found);
	assert_int_equal(found.found[101], 1);
	written_pages_end(&w);
	munmap(map - PAGE_SIZE_MIN, (PAGES + 2ul) * PAGE_SIZE_MIN);
}

#define DROPPED 3ul
#define FIRST_DROPPED 200u
#define STEP 11u

static bool is_written_in(size_t page, unsigned round)
{
	return page % STEP == round;
}

static bool is_dropped_in(size_t page, unsigned round)
{
	return page >= FIRST_DROPPED + round && page < FIRST_DROPPED + round + DROPPED;
}

/* Pages of zeros were only read. */
static bool is_zero_page(size_t page)
{
	return is_touched(page) && page % 5 == 0;
}

static void write_rounds(volatile uint8_t *map)
{
	for (unsigned round = 1;; round++) {
		raise(SIGSTOP);
		for (size_t i = 0; i < PAGES; i++)
			if (is_written_in(i, round))
				map[i * PAGE_SIZE_MIN] = 7;
		madvise((uint8_t *)map + (FIRST_DROPPED + round) * PAGE_SIZE_MIN, DROPPED * PAGE_SIZE_MIN,
			MADV_DONTNEED);
	}
}

/* A process that has stopped; each time that it goes on it writes to pages and stops again. */
static pid_t start_writer(volatile uint8_t *map, int *uffd_out)
{
	int ends[2];
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	if (pid == 0) {
		int uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | 1);

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (size_t i = 0; i < PAGES; i++) {
			if (is_zero_page(i))
				(void)map[i * PAGE_SIZE_MIN];
			else if (is_touched(i))
				map[i * PAGE_SIZE_MIN] = 1;
		}
		if (write(ends[1], &uffd, sizeof(uffd)) == sizeof(uffd))
			write_rounds(map);
		_exit(1);
	}
	assert_int_equal(read(ends[0], uffd_out, sizeof(*uffd_out)), sizeof(*uffd_out));
	assert_int_equal(waitpid(pid, NULL, WUNTRACED), pid);
	close(ends[0]);
	close(ends[1]);
	return pid;
}

enum { NO_PAGE, ZERO_PAGE, A_PAGE };

/* After @round: what is unchanged, and that all pages are as without watching. */
static void check_watched(struct written_pages *w, struct map_state *found, uint8_t *page, unsigned round)
{
	struct resident plain, watched;

	memset(found->found, 0, sizeof(found->found));
	assert_int_equal(resident_read(w->pid, &plain), 0);
	assert_int_equal(resident_read_watched(w, &watched, note_in_map, found), 0);
	assert_int_equal(plain.resident, watched.resident);
	assert_int_equal(plain.list.count, watched.list.count);
	for (size_t i = 0; i < plain.list.count; i++) {
		const struct page_run *a = &plain.list.data[i], *b = &watched.list.data[i];

		assert_true(a->start == b->start && a->end == b->end && a->flags == b->flags);
	}
	for (size_t i = 0; i < PAGES; i++) {
		bool is_changed = is_written_in(i, round) || is_dropped_in(i, round);

		assert_int_equal(found->found[i], page[i] == A_PAGE && !is_changed);
		page[i] = is_dropped_in(i, round) ? NO_PAGE : is_written_in(i, round) ? A_PAGE : page[i];
	}
	resident_deinit(&plain);
	resident_deinit(&watched);
}

static void test_watched_process(void **state)
{
	static struct map_state found;
	static uint8_t page[PAGES];
	uint8_t *map = map_pages();
	struct written_pages w;
	int theirs = -1;
	pid_t pid = start_writer(map, &theirs);
	int process = (int)syscall(SYS_pidfd_open, pid, 0);
	int uffd = (int)syscall(SYS_pidfd_getfd, process, theirs, 0);
	bool may = uffd >= 0 && written_pages_begin(pid, uffd, &w) == 0;

	(void)state;
	found.start = (taddr_t)(uintptr_t)map;
	for (size_t i = 0; i < PAGES; i++)
		page[i] = is_zero_page(i) ? ZERO_PAGE : is_touched(i) ? A_PAGE : NO_PAGE;
	for (unsigned round = 1; may && round < 4; round++) {
		note_all(&w, written_pages_next, &found);
		kill(pid, SIGCONT);
		assert_int_equal(waitpid(pid, NULL, WUNTRACED), pid);
		check_watched(&w, &found, page, round);
	}
	if (may)
		written_pages_end(&w);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(process);
	munmap(map - PAGE_SIZE_MIN, (PAGES + 2ul) * PAGE_SIZE_MIN);
	if (!may)
		skip();
}

static void test_no_process(void **state)
{
	static struct map_state found;
	struct present p;

	(void)state;
	found.start = PAGE_SIZE_MIN;
	present_open(-1, true, &p);
	present_find(&p, PAGE_SIZE_MIN, 3 * PAGE_SIZE_MIN, note, &found);
	present_close(&p);
	assert_int_equal(found.found[0], 1);
	assert_int_equal(found.found[1], 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_scanned),
		cmocka_unit_test(test_read),
		cmocka_unit_test(test_guard_pages),
		cmocka_unit_test(test_empty_is_passed_over),
		cmocka_unit_test(test_written),
		cmocka_unit_test(test_watched_process),
		cmocka_unit_test(test_no_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
