/* Selection of a stack's call site. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/types.h"
#include "malloc/allocators.h"
#include "symbols/wrapper.h"

#define MAX_FRAMES 6

/* Frames are innermost first. */
struct row {
	struct stack_frame frame[MAX_FRAMES];
	size_t count;
	struct stack_site wanted;
};

#define SITE {.is_named = true, .object = "prog"}
#define NAMELESS {.object = "prog"}
#define FOREIGN {.object = "lib"}
#define FOREIGN_NAMED {.is_named = true, .object = "lib"}
#define START {.is_named = true}
#define XMALLOC {.rank = RANK_FUNCTION, .is_named = true, .is_allocator = true, .object = "prog"}
#define LIBC {.rank = RANK_FUNCTION, .is_named = true, .object = "libc"}
#define LIBC_NAMELESS {.rank = RANK_UNNAMED, .object = "libc"}
#define LOADER {.rank = RANK_LOADER, .is_named = true, .object = "ld"}
#define INSTANCE {.rank = RANK_INSTANCE, .is_named = true, .object = "prog"}
#define CALLER {.rank = RANK_CALLER, .is_named = true, .object = "prog"}
#define RUNTIME {.rank = RANK_RUNTIME, .is_named = true, .object = "node"}
#define THREAD {.rank = RANK_THREAD, .is_named = true, .object = "prog"}
#define CXX {.rank = RANK_STANDARD, .object = "libstdc++"}

static bool frame_at(void *ctx, size_t i, struct stack_frame *out)
{
	const struct row *row = ctx;

	if (i < row->count)
		*out = row->frame[i];
	return i < row->count;
}

static void test_rows(void **state)
{
	static const struct row rows[] = {
		{{SITE}, 1, {0}},
		{{LIBC, XMALLOC, SITE, SITE}, 4, {.frame = 2}},
		/* without a name: by a caller in the same object that is not start-up code */
		{{NAMELESS, NAMELESS, SITE}, 3, {2, RANK_SITE, true}},
		{{FOREIGN, SITE, FOREIGN_NAMED}, 3, {0, RANK_SITE, true}},
		{{NAMELESS, START}, 2, {0, RANK_SITE, true}},
		{{{0}, {0}}, 2, {0, RANK_SITE, true}},
		/* generated code without a name */
		{{RUNTIME, {0}, RUNTIME}, 3, {.frame = 0, .rank = RANK_RUNTIME}},
		{{RUNTIME, {0}, SITE}, 3, {.frame = 2}},
		{{CALLER, {0}, SITE}, 3, {1, RANK_SITE, true}},
		{{LIBC, {0}, SITE}, 3, {1, RANK_SITE, true}},
		/* without a name and called by an allocator: part of the allocator */
		{{NAMELESS, NAMELESS, XMALLOC, SITE}, 4, {.frame = 3}},
		{{NAMELESS, XMALLOC, NAMELESS, SITE}, 4, {3, RANK_SITE, true}},
		{{NAMELESS, LIBC, SITE}, 3, {0, RANK_SITE, true}},
		{{NAMELESS, XMALLOC}, 2, {.frame = 1, .rank = RANK_FUNCTION}},
		/* the user's function inlined into the library */
		{{LIBC, SITE, CXX, CXX, LIBC_NAMELESS}, 5, {.frame = 1}},
		/* consists of wrappers only */
		{{LIBC_NAMELESS, LIBC_NAMELESS}, 2, {.rank = RANK_UNNAMED}},
		{{LIBC_NAMELESS, LIBC, LIBC, LIBC_NAMELESS}, 4, {2, RANK_FUNCTION, false}},
		{{LIBC, CXX, CXX, LOADER}, 4, {2, RANK_STANDARD, false}},
		{{LIBC, LOADER, LOADER, LIBC_NAMELESS}, 4, {2, RANK_LOADER, false}},
		/* instances in the program, of which the innermost counts */
		{{CXX, INSTANCE, INSTANCE, CXX, LIBC}, 5, {1, RANK_INSTANCE, false}},
		{{INSTANCE, CALLER, CALLER, INSTANCE, CXX}, 5, {1, RANK_CALLER, false}},
		{{INSTANCE, CALLER, SITE, CXX}, 4, {.frame = 2}},
		/* nothing that libc has in a static program is the user's */
		{{INSTANCE, CALLER, THREAD, SITE, SITE}, 5, {1, RANK_CALLER, false}},
		{{LIBC, THREAD, SITE}, 3, {1, RANK_THREAD, false}},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct stack s = {frame_at, (void *)&rows[i]};
		struct stack_site found = stack_site_find(&s);
		const struct stack_site *wanted = &rows[i].wanted;

		if (found.frame != wanted->frame || found.rank != wanted->rank ||
		    found.is_unnamed != wanted->is_unnamed)
			fail_msg("row %zu: frame %zu of rank %d", i, found.frame, found.rank);
	}
}

/* Frames of malloc's libraries, in all their builds, are no call sites, and --inspect knows their names. */
static void test_malloc_libraries(void **state)
{
	static const struct {
		const char *path, *allocator;
	} rows[] = {
		{"/usr/lib/x86_64-linux-gnu/libjemalloc.so.2", "jemalloc"},
		{"libtcmalloc_minimal.so.4.5.10", "tcmalloc"}, {"libtcmalloc_and_profiler.so.4", "tcmalloc"},
		{"/opt/lib/libmimalloc-secure.so.2.1", "mimalloc"}, {"/lib/libjemalloc.so.2 (deleted)", "jemalloc"},
		{"libc.so.6", NULL}, {"libjemalloc.a", NULL}, {"/srv/libjemalloc.so.2/app", NULL}, {"", NULL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct frame_text frame = {.function = "f", .object = rows[i].path};
		const char *found = standard_malloc(rows[i].path);

		assert_int_equal(found != NULL, rows[i].allocator != NULL);
		assert_int_equal(standard_library(&frame) == STANDARD_MALLOC, rows[i].allocator != NULL);
		if (found) {
			assert_string_equal(found, rows[i].allocator);
			assert_non_null(allocator_kind_named(found));
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_malloc_libraries),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
