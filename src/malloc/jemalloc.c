/* Reads jemalloc's size classes, its threads' caches, and its extents. */
#include "malloc/allocators.h"

#include <stddef.h>
#include <string.h>

#include "malloc/radix_tree.h"

/*
 * jemalloc's size classes: 8, multiples of 16 up to 64, then four for each doubling:
 *
 *	80 96 112 128   160 192 224 256   320 ...
 */

#define JEMALLOC_CLASSES 232u

/* The size of blocks of class @i, below JEMALLOC_CLASSES. */
static uint64_t jemalloc_class_size(uint32_t i)
{
	if (i <= 4)
		return i ? i * UINT64_C(16) : 8;
	uint32_t doubling = (i - 5) / 4, step = (i - 5) % 4 + 1;

	return (UINT64_C(64) << doubling) + (UINT64_C(16) << doubling) * step;
}

/*
 * jemalloc's caches of threads, which are among their variables, and verify each other:
 *
 *	5.3   cache      0 its slow part; 8 lists, 24 bytes each, one for each size class:
 *	                 0 next, pointer to a stack's pointer to a block; 20 where the stack ends,
 *	                 its low 16 bits
 *	      slow part  32 the lists; 160 memory of the stacks; 168 the cache
 *	                 (5.3.1: 224 and 232)
 *	5.2   cache      16, 1000 lists of 36 small and of large size classes, 24 bytes each: 4 how
 *	                 many blocks; 16 where the stack ends
 *	                 936 its small lists; 944 its large lists
 *	                 -48 in the thread's other variables: a table of its arenas
 *
 * The memory of the stacks and the table are blocks that are not the program's.
 */

enum jemalloc_cache_form { JEMALLOC_CACHE_5_2, JEMALLOC_CACHE_5_3 };

#define LISTS_AT 8u
#define LISTS 73u
#define MARK UINT64_C(0x7a7a7a7a7a7a7a7a) /* before the stacks */
#define LIST_WORDS 3u
#define WORD 8u

struct slow {
	uint64_t link[2], list_link[2];
	taddr_t lists, arena;
	taddr_t stacks, cache;
};
_Static_assert(offsetof(struct slow, stacks) == 48, "as in 5.3");

/* Where a slow part has its last two words: of 5.3.0 and 5.3.1. */
static const uint32_t ends[] = {160, 224};

struct cache_bin {
	taddr_t next;
	uint64_t requests;
	uint16_t low_water, full, empty, unused;
};
_Static_assert(sizeof(struct cache_bin) == LIST_WORDS * WORD, "as in 5.3");

#define SMALL_CLASSES 36u
#define OLD_FIRST_STACK 200u /* blocks of 8 bytes */
#define OLD_COUNT_MAX (1u << 16)
#define OLD_TABLE_BEFORE 48u

struct old_list {
	int32_t low_water;
	uint32_t count;
	uint64_t requests;
	taddr_t end;
};
struct old_cache {
	uint64_t other[2];
	struct old_list small[SMALL_CLASSES];
	uint64_t links[7];
	taddr_t small_at, large_at, arena;
	uint8_t divisors[40];
	struct old_list large[JEMALLOC_CLASSES - SMALL_CLASSES];
};
_Static_assert(offsetof(struct old_cache, small_at) == 936 &&
		       offsetof(struct old_cache, large) == 1000,
	       "as in 5.2");

/* A stack of @count blocks. */
static void read_stack(struct inspect_memory *m, taddr_t start, uint32_t count, uint32_t class,
		       struct slabs *out)
{
	uint64_t addr;

	for (uint32_t i = 0; i < count; i++)
		out->broken += !memory_read_word(m, start + i * WORD, &addr) ||
			       !slabs_mark(out, addr, jemalloc_class_size(class),
					   PLACE_CACHED);
}

/* -- 5.3 -- */

/* The slow part of what may be the cache at @addr. */
static bool read_slow(struct inspect_memory *m, taddr_t addr, struct slow *out)
{
	uint64_t at, first;

	if (!memory_read_word(m, addr, &at) || at % WORD || !at)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		if (memory_read(m, at, out, offsetof(struct slow, stacks)) &&
		    memory_read(m, at + ends[i], &out->stacks, 2 * WORD) &&
		    out->cache == addr && out->lists == addr + LISTS_AT &&
		    memory_read_word(m, out->stacks, &first) && first == MARK)
			return true;
	return false;
}

static bool read_cache(struct inspect_memory *m, taddr_t addr, struct slabs *out)
{
	struct slow slow;
	struct cache_bin list;

	/* a thread that ends has given the memory of its stacks back */
	if (!read_slow(m, addr, &slow) || !slabs_mark(out, slow.stacks, 0, PLACE_INNER))
		return false;
	for (uint32_t i = 0; i < LISTS; i++)
		/*
		 * Since 5.3.1 the list of a class that is not cached leads to a constant of the
		 * library's (cache_bin_init_disabled), and has room for nothing there.
		 */
		if (memory_read(m, slow.lists + i * sizeof(list), &list, sizeof(list)) &&
		    list.next && list.empty != list.full)
			read_stack(m, list.next, (uint16_t)(list.empty - list.next) / WORD,
				   i, out);
	return true;
}

/* -- 5.2 -- */

static void read_old_lists(struct inspect_memory *m, const struct old_list *list, uint32_t first,
			   uint32_t count, struct slabs *out)
{
	for (uint32_t i = 0; i < count; i++) {
		if (list[i].count > OLD_COUNT_MAX)
			out->broken++;
		else if (list[i].count)
			read_stack(m, list[i].end - list[i].count * WORD, list[i].count, first + i,
				   out);
	}
}

static bool read_old_cache(struct inspect_memory *m, taddr_t addr, struct slabs *out)
{
	struct old_cache c;
	taddr_t small = addr + offsetof(struct old_cache, small);
	taddr_t large = addr + offsetof(struct old_cache, large);
	uint64_t is_small, is_large, table;

	if (!memory_read_word(m, addr + offsetof(struct old_cache, small_at), &is_small) ||
	    !memory_read_word(m, addr + offsetof(struct old_cache, large_at), &is_large) ||
	    is_small != small || is_large != large || !memory_read(m, addr, &c, sizeof(c)) ||
	    !memory_read_word(m, addr - OLD_TABLE_BEFORE, &table) ||
	    !slabs_mark(out, c.small[0].end - OLD_FIRST_STACK * WORD, 0, PLACE_INNER))
		return false;
	out->broken += table && !slabs_mark(out, table, 0, PLACE_INNER);
	read_old_lists(m, c.small, 0, SMALL_CLASSES, out);
	read_old_lists(m, c.large, SMALL_CLASSES, JEMALLOC_CLASSES - SMALL_CLASSES, out);
	return true;
}

/* -- both -- */

/* Marks what is in the caches; out->slabs is sorted. */
static void jemalloc_caches_read(const struct allocator_input *in, enum jemalloc_cache_form form,
				 struct allocator *out)
{
	bool (*read)(struct inspect_memory *m, taddr_t addr, struct slabs *out) =
		form == JEMALLOC_CACHE_5_2 ? read_old_cache : read_cache;

	for (size_t i = 0; i < in->thread_count; i++) {
		taddr_t end = in->thread[i].thread_pointer;

		if (!end || end % WORD)
			continue;
		for (taddr_t at = glibc_tls_start(in->memory, end); at < end; at += WORD)
			if (read(in->memory, at, &out->slabs)) {
				out->caches++;
				break;
			}
	}
}

/*
 * jemalloc's extents (64 bits, 48 of an address in use), by the tree that leads from each page to
 * the description of its extent:
 *
 *	root        2^18 pointers to leaves, by address >> 30; in the library's data
 *	leaf        2^18 words, by address >> 12: of an extent's first and last page, and each
 *	            of a slab. 16 bits size class, 48 bits description; flags in its low bits
 *
 *	description
 *	0  bits: 12 slab; then of several bits, from
 *	     5.3  5.2
 *	     17   16   state: 0 in use, dirty, muzzy, retained
 *	     20   18   size class
 *	     28   26   free regions
 *	8  address; of a large block: of its first byte, within its first page
 *	16 size; the low 12 bits are others
 *	64 a slab's bits of 512 regions, 1 = free
 *
 * Class and pages of an extent in use must agree with the leaf. What jemalloc needs for itself is
 * in blocks at multiples of 2 MiB: 0 size, 16 a description of their unused ends.
 */

#define PAGE ((taddr_t)PAGE_SIZE_MIN)
#define ROOT_WORDS (UINT64_C(1) << 18)
#define PAGE_SHIFT 12u
#define LINE 64u
#define CLASS_SHIFT 48u
#define POINTER_MASK ((UINT64_C(1) << CLASS_SHIFT) - 1)
#define REGIONS_MAX 512u
#define BLOCK_SIZE (UINT64_C(1) << 21)
#define BLOCK_STEPS 512u

/* A version's description of an extent. */
struct extent_layout {
	uint32_t state, state_bits, class, free; /* bits */
	uint64_t flags;                          /* in a leaf's pointer to it */
	enum jemalloc_cache_form caches;
};
static const struct extent_layout layouts[] = {
	{17, 3, 20, 28, 127, JEMALLOC_CACHE_5_3},
	{16, 2, 18, 26, 1, JEMALLOC_CACHE_5_2},
};

struct extent {
	uint64_t bits, addr, size, other[5], is_free[REGIONS_MAX / 64];
};
enum extent_state { ACTIVE, DIRTY, MUZZY, RETAINED };

struct extent_tree {
	struct inspect_memory *memory;
	const struct extent_layout *layout;
	struct slabs *slabs;
	bool has_pad;                   /* a large extent has a page more than its block */
	taddr_t known_end;              /* of the extents found */
	struct addr_range last;         /* of jemalloc's own blocks, the last one found */
	VEC(taddr_t) blocks;            /* where all of them begin, ascending */
};

static uint32_t field(uint64_t bits, uint32_t shift, uint32_t width)
{
	return (uint32_t)(bits >> shift & ((UINT64_C(1) << width) - 1));
}

/* -- descriptions -- */

static taddr_t description_of(const struct extent_layout *l, uint64_t word)
{
	return word & POINTER_MASK & ~l->flags;
}

/* The description that the leaf's @word for @page leads to, which must be @page's. */
static bool read_description(struct inspect_memory *m, const struct extent_layout *l, uint64_t word,
			     taddr_t page, struct extent *out)
{
	if (!memory_read(m, description_of(l, word), out, sizeof(*out)))
		return false;
	uint64_t start = ROUND_DOWN(out->addr, PAGE), size = ROUND_DOWN(out->size, PAGE);

	/* the leaf's class is an old one while the extent is free */
	return page >= start && page - start < size && size <= POINTER_MASK &&
	       (field(out->bits, l->state, l->state_bits) != ACTIVE ||
		field(out->bits, l->class, 8) == word >> CLASS_SHIFT);
}

/* -- extents -- */

static uint32_t count_free(const struct extent *d, uint32_t regions)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < regions; i++)
		count += d->is_free[i / 64] >> i % 64 & 1;
	return count;
}

static void add_slab(struct extent_tree *t, const struct extent *d, struct slab *slab)
{
	uint64_t places = (slab->end - slab->start) / slab->stride;

	if (places == 0 || places > REGIONS_MAX ||
	    count_free(d, (uint32_t)places) != field(d->bits, t->layout->free, 10)) {
		t->slabs->broken++;
		return;
	}
	slab->places = (uint32_t)places;
	const struct slab *added = slabs_add(t->slabs, slab, PLACE_LIVE);

	for (uint32_t i = 0; added && i < places; i++)
		if (d->is_free[i / 64] >> i % 64 & 1)
			slabs_set(t->slabs, added, i, PLACE_FREE);
}

static void add_large(struct extent_tree *t, const struct extent *d, struct slab *slab)
{
	uint64_t size = slab->end - slab->start;

	t->has_pad |= d->addr % PAGE != 0 || slab->stride + PAGE == size;
	if (t->has_pad || slab->stride > size)
		slab->stride = MIN(slab->stride, size - MIN(size, PAGE));
	slab->first = d->addr;
	slab->places = 1;
	slabs_add(t->slabs, slab, PLACE_LIVE);
}

static void add_extent(struct extent_tree *t, const struct extent *d)
{
	uint32_t class = field(d->bits, t->layout->class, 8);
	uint32_t state = field(d->bits, t->layout->state, t->layout->state_bits);
	struct slab slab = {.start = ROUND_DOWN(d->addr, PAGE), .rest = ROW_OWN};

	slab.end = slab.start + ROUND_DOWN(d->size, PAGE);
	slab.first = slab.start;
	t->slabs->broken += state > RETAINED;
	if (state != ACTIVE) {
		slabs_add_rest(t->slabs, slab.start, slab.end, ROW_FREE_PAGES);
		return;
	}
	if (class >= JEMALLOC_CLASSES) {
		t->slabs->broken++;
		return;
	}
	slab.stride = jemalloc_class_size(class);
	if (field(d->bits, 12, 1))
		add_slab(t, d, &slab);
	else
		add_large(t, d, &slab);
}

/* -- jemalloc's own blocks -- */

static bool read_block(struct inspect_memory *m, taddr_t start, uint64_t *size_out)
{
	struct { uint64_t size, next, bits, addr, unused;
	} head;

	if (!memory_read(m, start, &head, sizeof(head)) || head.size % BLOCK_SIZE ||
	    head.size == 0 || head.addr - start > head.size ||
	    head.unused != head.size - (head.addr - start))
		return false;
	*size_out = head.size;
	return true;
}

/* Whether the block at @start is a new one. */
static bool note_block(struct extent_tree *t, taddr_t start)
{
	size_t at = vec_search(&t->blocks, e, *e < start);

	if (at < t->blocks.count && t->blocks.data[at] == start)
		return false;
	*vec_insert(&t->blocks, at) = start;
	return true;
}

/* Adds the block that has @addr, if it is not there yet. */
static void add_block(void *ctx, taddr_t addr)
{
	struct extent_tree *t = ctx;
	taddr_t start = ROUND_DOWN(addr, BLOCK_SIZE);
	uint64_t size;

	if (addr >= t->last.start && addr < t->last.end)
		return;
	for (uint32_t i = 0; i < BLOCK_STEPS && start; i++, start -= BLOCK_SIZE) {
		if (!read_block(t->memory, start, &size) || addr - start >= size)
			continue;
		t->last = (struct addr_range){start, start + size};
		if (note_block(t, start))
			slabs_add_rest(t->slabs, start, t->last.end, ROW_OWN);
		return;
	}
}

/* -- leaves -- */

/* Adds what the words of a page of a leaf lead to, which are for pages from number @first on. */
static bool add_words(void *ctx, const uint64_t *word, uint64_t first, uint64_t *number_out)
{
	struct extent_tree *t = ctx;
	struct extent d;

	(void)number_out;
	for (uint32_t i = 0; i < PAGE_WORDS; i++) {
		taddr_t page = (first + i) << PAGE_SHIFT;

		if (!description_of(t->layout, word[i]) || page < t->known_end)
			continue;
		if (!read_description(t->memory, t->layout, word[i], page, &d) ||
		    page != ROUND_DOWN(d.addr, PAGE)) {
			t->slabs->broken++;
			continue;
		}
		t->known_end = page + ROUND_DOWN(d.size, PAGE);
		add_extent(t, &d);
		add_block(t, description_of(t->layout, word[i]));
	}
	return true;
}

/* Whether the pages of @d are of several leaves: which of them leads to it, it does not say. */
static bool has_leaves(const struct extent *d)
{
	taddr_t start = ROUND_DOWN(d->addr, PAGE), size = ROUND_DOWN(d->size, PAGE);

	return size && size <= POINTER_MASK &&
	       (start ^ (start + size - PAGE)) / PAGE >= RADIX_LEAF_WORDS;
}

/*
 * Whether the descriptions of a leaf up to the first of an extent in use fit to its pages. One in
 * use says in which version's layout they are, except with the first size class: its bits are 0 in
 * all layouts.
 */
static bool probe_words(void *ctx, const uint64_t *word, uint64_t first, uint64_t *number_out)
{
	struct extent_tree *t = ctx;
	struct extent d;

	for (uint32_t i = 0; i < PAGE_WORDS; i++) {
		taddr_t at = description_of(t->layout, word[i]);

		if (!at)
			continue;
		if (at % LINE || !memory_read(t->memory, at, &d, sizeof(d)))
			return false;
		if (has_leaves(&d))
			continue;
		taddr_t page = ROUND_DOWN(d.addr, RADIX_LEAF_WORDS * PAGE) + (first + i) * PAGE;

		if (page > POINTER_MASK ||
		    !read_description(t->memory, t->layout, word[i], page, &d))
			return false;
		if (field(d.bits, t->layout->state, t->layout->state_bits) != ACTIVE ||
		    !(word[i] >> CLASS_SHIFT))
			continue;
		*number_out = page >> PAGE_SHIFT;
		return false;
	}
	return true;
}

static bool find_in(const struct allocator_input *in, const struct addr_range *data,
		    struct allocator *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(layouts); i++) {
		struct extent_tree t = {
			.memory = in->memory, .slabs = &out->slabs, .layout = &layouts[i]};
		struct radix_tree tree = {
			.memory = in->memory, .root_words = ROOT_WORDS, .align = LINE,
			.probe = probe_words, .add = add_words, .add_leaf = add_block, .ctx = &t};
		taddr_t root = radix_tree_find(&tree, data);

		if (!root)
			continue;
		out->slabs.broken += !radix_tree_visit(&tree, root);
		vec_deinit(&t.blocks);
		slabs_sort(&out->slabs);
		jemalloc_caches_read(in, layouts[i].caches, out);
		return true;
	}
	return false;
}

bool jemalloc_find(const struct allocator_input *in, struct allocator *out)
{
	for (size_t i = 0; i < in->data_count; i++)
		if (find_in(in, &in->data[i], out))
			return true;
	return false;
}
