/* jemalloc's extents and caches, laid out as its versions do, in this process: root, leaf, slab. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "malloc/allocators.h"

#define MIB ((size_t)1 << 20)
#define PAGE ((size_t)PAGE_SIZE_MIN)
#define HINT ((void *)0x200000000000)
#define ALL (16 * MIB)
/* offsets */
#define ROOT (size_t)0
#define BASE (4 * MIB)
#define LEAF (BASE + PAGE)
#define DESCRIPTIONS (LEAF + 2 * MIB)
#define HEAP (8 * MIB)
#define VARIABLES (10 * MIB)
#define CACHE (VARIABLES + 496)
#define THREAD (VARIABLES + 64 * 1024)
#define ARENAS (THREAD + PAGE)
#define OTHER_LEAF (12 * MIB)

#define ACTIVE 0u
#define DIRTY 1u
#define RETAINED 3u

/* Where a version has the fields of a description. */
struct fields {
	unsigned state, class, free;
};
static const struct fields of_5_2 = {16, 18, 26}, of_5_3 = {17, 20, 28};

struct world {
	uint8_t *at;
	const struct fields *fields;
	unsigned extents;
	struct resident pages;
	struct inspect_memory memory;
};

static void put(struct world *w, size_t offset, uint64_t value)
{
	memcpy(w->at + offset, &value, sizeof(value));
}

static taddr_t address(const struct world *w, size_t offset)
{
	return (taddr_t)(uintptr_t)w->at + offset;
}

static ssize_t read_here(void *ctx, taddr_t addr, void *buf, size_t size)
{
	memcpy(buf, (void *)(uintptr_t)addr, size);
	return (ssize_t)size;
}

static void set_up(struct world *w, const struct fields *fields)
{
	static const struct memory_source source = {.read = read_here};
	char line[80];
	struct map map;

	*w = (struct world){.fields = fields};
	w->at = mmap(HINT, ALL, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_equal(w->at, HINT);
	snprintf(line, sizeof(line), "%lx-%lx rw-p 00000000 00:00 0 ", (unsigned long)address(w, 0),
		 (unsigned long)address(w, ALL));
	assert_int_equal(maps_parse_line(line, &map), 0);
	*vec_add(&w->pages.maps.list) = map;
	*vec_add(&w->pages.list) =
		(struct page_run){.start = address(w, 0), .end = address(w, ALL)};
	w->pages.resident = ALL;
	memory_init(&w->memory, &w->pages, &source);
	put(w, ROOT + (address(w, HEAP) >> 30) * 8, address(w, LEAF));
	/* jemalloc's own block: size, next, bits, where the unused end begins, its size */
	put(w, BASE, 4 * MIB);
	put(w, BASE + 24, address(w, BASE + 3 * MIB));
	put(w, BASE + 32, MIB);
}

static void tear_down(struct world *w)
{
	memory_deinit(&w->memory);
	resident_deinit(&w->pages);
	munmap(w->at, ALL);
}

struct extent {
	size_t page, pages;     /* from the heap's start */
	unsigned class, state, free;
	bool is_slab;
};

/* Its description; where that has the bits of free regions. */
static size_t describe(struct world *w, const struct extent *e)
{
	size_t at = DESCRIPTIONS + w->extents++ * 128;
	uint64_t bits = (uint64_t)e->is_slab << 12 | (uint64_t)e->state << w->fields->state |
			(uint64_t)e->class << w->fields->class |
			(uint64_t)e->free << w->fields->free;
	uint64_t word = (uint64_t)e->class << 48 | address(w, at) | e->is_slab;
	size_t first = address(w, HEAP) >> 12 & 0x3ffff;

	put(w, at, bits);
	put(w, at + 8, address(w, HEAP + e->page * PAGE));
	put(w, at + 16, e->pages * PAGE);
	for (size_t i = 0; i < e->pages; i++)
		if (e->is_slab || i == 0 || i + 1 == e->pages)
			put(w, LEAF + (first + e->page + i) * 8, word);
	return at + 64;
}

/* A slab of 256 places of 16 bytes, 6 of them free; a large block; free pages. */
static void fill(struct world *w)
{
	size_t free = describe(w, &(struct extent){.pages = 1, .class = 1, .free = 6,
						   .is_slab = true});

	put(w, free, 0x3f);
	describe(w, &(struct extent){.page = 1, .pages = 5, .class = 36});
	describe(w, &(struct extent){.page = 6, .pages = 9, .class = 40, .state = DIRTY});
}

static bool find(struct world *w, struct allocator *out)
{
	const struct addr_range data = {address(w, ROOT), address(w, ROOT + 3 * MIB)};
	const struct glibc_thread thread = {.thread_pointer = address(w, THREAD)};
	const struct allocator_input in = {.memory = &w->memory, .data = &data, .data_count = 1,
					   .thread = &thread, .thread_count = 1};

	*out = (struct allocator){0};
	out->slabs.most = 1000;
	return jemalloc_find(&in, out);
}

static struct slab_sums sums_of(struct world *w, struct allocator *a)
{
	struct slabs_visit v = {0};

	slabs_visit(&a->slabs, &w->memory, &v);
	return v.sums;
}

static void expect_blocks(struct world *w, uint64_t live, uint64_t cached, uint32_t caches)
{
	struct allocator a;

	assert_true(find(w, &a));
	struct slab_sums sums = sums_of(w, &a);

	assert_int_equal(a.slabs.broken, 0);
	assert_int_equal(sums.live_blocks, live);
	assert_int_equal(sums.cached_blocks, cached);
	assert_int_equal(a.caches, caches);
	slabs_deinit(&a.slabs);
}

static void both_layouts(void **state)
{
	static const struct fields *const all[] = {&of_5_2, &of_5_3};
	struct world w;

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		set_up(&w, all[i]);
		fill(&w);
		expect_blocks(&w, 250 + 1, 0, 0);
		tear_down(&w);
	}
}

/* With the first size class alone a description is the same in both. */
static void the_first_class_says_nothing(void **state)
{
	static const struct fields *const all[] = {&of_5_2, &of_5_3};
	struct world w;

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		struct extent slab = {.page = 20, .pages = 1, .is_slab = true};

		set_up(&w, all[i]);
		/* before the others: it is the first that the search meets */
		slab.page = 0;
		describe(&w, &slab);
		describe(&w, &(struct extent){.page = 1, .pages = 5, .class = 37});
		expect_blocks(&w, 512 + 1, 0, 0);
		tear_down(&w);
	}
}

/* Twelve free pages, of which the first ten are another leaf's. */
static void an_extent_of_two_leaves(void **state)
{
	static const struct fields *const all[] = {&of_5_2, &of_5_3};
	struct world w;

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		set_up(&w, all[i]);
		fill(&w);
		size_t at = DESCRIPTIONS + 3 * 128;
		uint64_t word = UINT64_C(232) << 48 | address(&w, at);

		assert_int_equal(address(&w, 0) % ((taddr_t)1 << 30), 0);
		put(&w, at, (uint64_t)RETAINED << w.fields->state);
		put(&w, at + 8, address(&w, 0) - 10 * PAGE);
		put(&w, at + 16, 12 * PAGE);
		put(&w, LEAF + 8, word);
		put(&w, OTHER_LEAF + (0x40000 - 10) * 8, word);
		put(&w, ROOT + ((address(&w, 0) >> 30) - 1) * 8, address(&w, OTHER_LEAF));
		expect_blocks(&w, 250 + 1, 0, 0);
		tear_down(&w);
	}
}

/* Three blocks of 16 bytes and the large one are cached; a slab holds the stacks and the arenas. */
static void put_cache(struct world *w, size_t inner)
{
	size_t stacks = HEAP + (inner + 0) * PAGE, small = CACHE + 16, large = CACHE + 1000;

	put(w, THREAD + 8, address(w, ARENAS));
	put(w, ARENAS - 16, 1);
	put(w, ARENAS + 16, address(w, VARIABLES));
	put(w, CACHE + 936, address(w, small));
	put(w, CACHE + 944, address(w, large));
	put(w, CACHE - 48, address(w, HEAP + (inner + 4) * PAGE));
	put(w, small + 16, address(w, stacks + 1600));
	put(w, small + 24, UINT64_C(3) << 32);
	put(w, small + 24 + 16, address(w, stacks + 3200));
	for (size_t i = 0; i < 3; i++)
		put(w, stacks + 3200 - 8 * (i + 1), address(w, HEAP + 16 * (10 + i)));
	put(w, large, UINT64_C(1) << 32);
	put(w, large + 16, address(w, stacks + 3300));
	put(w, stacks + 3300 - 8, address(w, HEAP + PAGE));
}

static void caches_of_5_2(void **state)
{
	struct world w;

	set_up(&w, &of_5_2);
	fill(&w);
	describe(&w, &(struct extent){.page = 15, .pages = 4, .class = 35 + 1});
	describe(&w, &(struct extent){.page = 19, .pages = 5, .class = 36});
	put_cache(&w, 15);
	expect_blocks(&w, 250 - 3, 4, 1);
	/* a stack that does not begin in a block */
	put(&w, CACHE + 16 + 16, address(&w, HEAP + 15 * PAGE + 1608));
	expect_blocks(&w, 250 + 1 + 2, 0, 0);
	/* a cache that is not where it says */
	put(&w, CACHE + 16 + 16, address(&w, HEAP + 15 * PAGE + 1600));
	put(&w, CACHE + 944, address(&w, CACHE + 1008));
	expect_blocks(&w, 250 + 1 + 2, 0, 0);
	tear_down(&w);
}

static void contradictions(void **state)
{
	struct world w;
	struct allocator a;

	set_up(&w, &of_5_2);
	fill(&w);
	put(&w, DESCRIPTIONS + 64, 0x7f); /* seven bits of six free regions */
	assert_true(find(&w, &a));
	assert_int_equal(a.slabs.broken, 1);
	assert_int_equal(sums_of(&w, &a).live_blocks, 1);
	slabs_deinit(&a.slabs);
	put(&w, DESCRIPTIONS + 8, 0);     /* a page that is not its own */
	assert_false(find(&w, &a));
	slabs_deinit(&a.slabs);
	tear_down(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_layouts),
		cmocka_unit_test(the_first_class_says_nothing),
		cmocka_unit_test(an_extent_of_two_leaves),
		cmocka_unit_test(caches_of_5_2),
		cmocka_unit_test(contradictions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
