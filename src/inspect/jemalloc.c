/*
 * Finding the root: a word of the data is taken for a pointer to a leaf. A description there says
 * which address it is for, and so which of the root's words that one is. See jemalloc.h.
 */
#include "inspect/jemalloc.h"

#include <string.h>

#include "inspect/jemalloc_cache.h"
#include "inspect/jemalloc_class.h"

#define PAGE ((taddr_t)PAGE_SIZE_MIN)
#define NODE_BITS 18u
#define NODE_WORDS (1u << NODE_BITS)
#define NODE_SIZE ((uint64_t)NODE_WORDS * sizeof(uint64_t))
#define PAGE_SHIFT 12u
#define LEAF_SHIFT (PAGE_SHIFT + NODE_BITS)
#define LINE 64u
#define WORDS (PAGE_SIZE_MIN / 8u)
#define POINTER_MASK ((UINT64_C(1) << (LEAF_SHIFT + NODE_BITS)) - 1)
#define CLASS_SHIFT (LEAF_SHIFT + NODE_BITS)
#define REGIONS_MAX 512u
/* Pages that pointers in a program's data may lead to before they are no longer looked at. */
#define SEARCHED_MAX (1u << 14)
#define BLOCK_SIZE (UINT64_C(1) << 21)
#define BLOCK_STEPS 512u

/* A version's description of an extent. */
struct layout {
	uint32_t state, state_bits, class, free; /* bits */
	uint64_t flags;                          /* in a leaf's pointer to it */
	enum jemalloc_cache_form caches;
};
static const struct layout layouts[] = {
	{17, 3, 20, 28, 127, JEMALLOC_CACHE_5_3},
	{16, 2, 18, 26, 1, JEMALLOC_CACHE_5_2},
};

struct description {
	uint64_t bits, addr, size, other[5], is_free[REGIONS_MAX / 64];
};
enum state { ACTIVE, DIRTY, MUZZY, RETAINED };

struct tree {
	struct inspect_memory *memory;
	const struct layout *layout;
	struct slabs *slabs;
	bool has_pad;                   /* a large extent has a page more than its block */
	uint64_t pages_left;            /* that may still be read */
	struct { taddr_t start, end;
	} last;                         /* of jemalloc's own blocks, the last one found */
	VEC(taddr_t) blocks;            /* where all of them begin, ascending */
};

static uint32_t field(uint64_t bits, uint32_t shift, uint32_t width)
{
	return (uint32_t)(bits >> shift & ((UINT64_C(1) << width) - 1));
}

/* -- descriptions -- */

static taddr_t description_of(const struct layout *l, uint64_t word)
{
	return word & POINTER_MASK & ~l->flags;
}

/* The description that the leaf's @word for @page leads to, which must be @page's. */
static bool read_description(struct inspect_memory *m, const struct layout *l, uint64_t word,
			     taddr_t page, struct description *out)
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

static uint32_t count_free(const struct description *d, uint32_t regions)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < regions; i++)
		count += d->is_free[i / 64] >> i % 64 & 1;
	return count;
}

static void add_slab(struct tree *t, const struct description *d, struct slab *slab)
{
	size_t number;
	uint64_t places = (slab->end - slab->start) / slab->stride;

	if (places == 0 || places > REGIONS_MAX ||
	    count_free(d, (uint32_t)places) != field(d->bits, t->layout->free, 10)) {
		t->slabs->broken++;
		return;
	}
	slab->places = (uint32_t)places;
	if (!slabs_add(t->slabs, slab, &number))
		return;
	for (uint32_t i = 0; i < places; i++)
		if (!(d->is_free[i / 64] >> i % 64 & 1))
			slabs_set(t->slabs, slab_at(t->slabs, number), i, PLACE_LIVE);
}

static void add_large(struct tree *t, const struct description *d, struct slab *slab)
{
	size_t number;

	uint64_t size = slab->end - slab->start;

	t->has_pad |= d->addr % PAGE != 0 || slab->stride + PAGE == size;
	if (t->has_pad || slab->stride > size)
		slab->stride = MIN(slab->stride, size - MIN(size, PAGE));
	slab->first = d->addr;
	slab->places = 1;
	if (slabs_add(t->slabs, slab, &number))
		slabs_set(t->slabs, slab_at(t->slabs, number), 0, PLACE_LIVE);
}

static void add_extent(struct tree *t, const struct description *d)
{
	uint32_t class = field(d->bits, t->layout->class, 8);
	uint32_t state = field(d->bits, t->layout->state, t->layout->state_bits);
	struct slab slab = {.start = ROUND_DOWN(d->addr, PAGE), .rest = ROW_OWN};
	size_t number;

	slab.end = slab.start + ROUND_DOWN(d->size, PAGE);
	slab.first = slab.start;
	t->slabs->broken += state > RETAINED;
	if (state != ACTIVE) {
		slab.rest = ROW_FREE_PAGES;
		slabs_add(t->slabs, &slab, &number);
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
static bool note_block(struct tree *t, taddr_t start)
{
	size_t at = vec_search(&t->blocks, e, *e < start);

	if (at < t->blocks.count && t->blocks.data[at] == start)
		return false;
	(void)vec_add(&t->blocks);
	memmove(&t->blocks.data[at + 1], &t->blocks.data[at],
		(t->blocks.count - 1 - at) * sizeof(start));
	t->blocks.data[at] = start;
	return true;
}

/* Adds the block that has @addr, if it is not there yet. */
static void add_block(struct tree *t, taddr_t addr)
{
	taddr_t start = ROUND_DOWN(addr, BLOCK_SIZE);
	uint64_t size;
	size_t number;

	if (addr >= t->last.start && addr < t->last.end)
		return;
	for (uint32_t i = 0; i < BLOCK_STEPS && start; i++, start -= BLOCK_SIZE) {
		if (!read_block(t->memory, start, &size) || addr - start >= size)
			continue;
		struct slab slab = {.start = start, .end = start + size, .first = start,
				    .rest = ROW_OWN};

		t->last.start = start;
		t->last.end = slab.end;
		if (note_block(t, start))
			slabs_add(t->slabs, &slab, &number);
		return;
	}
}

/* -- leaves -- */

/* Adds what the words of a page of a leaf lead to, which are for pages from @first on. */
static void add_words(struct tree *t, const uint64_t *word, taddr_t first, taddr_t *known_end)
{
	struct description d;

	for (uint32_t i = 0; i < WORDS; i++) {
		taddr_t page = first + i * PAGE;

		if (!description_of(t->layout, word[i]) || page < *known_end)
			continue;
		if (!read_description(t->memory, t->layout, word[i], page, &d) ||
		    page != ROUND_DOWN(d.addr, PAGE)) {
			t->slabs->broken++;
			continue;
		}
		*known_end = page + ROUND_DOWN(d.size, PAGE);
		add_extent(t, &d);
		add_block(t, description_of(t->layout, word[i]));
	}
}

/* Calls @fn for each page of the leaf at @leaf that may not be all zeros, until that is false. */
typedef bool leaf_page_fn(struct tree *t, void *ctx, const uint64_t *word, uint32_t first);

static void each_page(struct tree *t, taddr_t leaf, leaf_page_fn *fn, void *ctx)
{
	const struct resident *pages = t->memory->pages;
	taddr_t end = leaf + NODE_SIZE, at = leaf;
	uint64_t word[WORDS];

	for (size_t i = resident_find(pages, leaf); i < pages->list.count; i++) {
		const struct page_range *r = &pages->list.data[i];

		if (r->start >= end)
			return;
		/* pages of a leaf need not begin where pages of memory do */
		if (r->start > at)
			at += ROUND_DOWN(r->start - at, PAGE);
		for (; at < MIN(r->end, end); at += PAGE) {
			size_t size = MIN(PAGE, end - at);

			if (t->pages_left == 0 || !memory_read(t->memory, at, word, size))
				return;
			t->pages_left--;
			if (!fn(t, ctx, word, (uint32_t)((at - leaf) / sizeof(*word))))
				return;
		}
	}
}

struct leaf {
	taddr_t first;          /* address for which its first word is */
	taddr_t known_end;
};

static bool add_page(struct tree *t, void *ctx, const uint64_t *word, uint32_t first)
{
	struct leaf *leaf = ctx;

	add_words(t, word, leaf->first + first * PAGE, &leaf->known_end);
	return true;
}

static void add_leaves(struct tree *t, taddr_t root)
{
	struct leaf leaf = {0};
	uint64_t word[WORDS];

	for (uint32_t n = 0; n < NODE_WORDS; n += WORDS) {
		if (!memory_read(t->memory, root + n * sizeof(*word), word, sizeof(word)))
			return;
		for (uint32_t i = 0; i < WORDS; i++) {
			if (!word[i])
				continue;
			leaf.first = (taddr_t)(n + i) << LEAF_SHIFT;
			add_block(t, word[i]);
			each_page(t, word[i], add_page, &leaf);
		}
	}
	t->slabs->broken += t->pages_left == 0;
}

/* -- the root -- */

struct probe {
	taddr_t address;        /* for which a leaf is; 0 = it is none */
};

/* Whether the pages of @d are of several leaves: which of them leads to it, it does not say. */
static bool has_leaves(const struct description *d)
{
	taddr_t start = ROUND_DOWN(d->addr, PAGE), size = ROUND_DOWN(d->size, PAGE);

	return size && size <= POINTER_MASK &&
	       start >> LEAF_SHIFT != (start + size - PAGE) >> LEAF_SHIFT;
}

/*
 * Whether the descriptions of a leaf up to the first of an extent in use fit to its pages. One in
 * use says in which version's layout they are, except with the first size class: its bits are 0 in
 * all layouts.
 */
static bool probe_page(struct tree *t, void *ctx, const uint64_t *word, uint32_t first)
{
	struct probe *probe = ctx;
	struct description d;

	for (uint32_t i = 0; i < WORDS; i++) {
		taddr_t at = description_of(t->layout, word[i]);

		if (!at)
			continue;
		if (at % LINE || !memory_read(t->memory, at, &d, sizeof(d)))
			return false;
		if (has_leaves(&d))
			continue;
		taddr_t page = ROUND_DOWN(d.addr, NODE_WORDS * PAGE) + (first + i) * PAGE;

		if (page > POINTER_MASK ||
		    !read_description(t->memory, t->layout, word[i], page, &d))
			return false;
		if (field(d.bits, t->layout->state, t->layout->state_bits) != ACTIVE ||
		    !(word[i] >> CLASS_SHIFT))
			continue;
		probe->address = page;
		return false;
	}
	return true;
}

static bool may_be_leaf(const struct tree *t, uint64_t word)
{
	const struct map *m = word % LINE == 0 ? maps_find(&t->memory->pages->maps, word) : NULL;

	return m && m->is_write && m->end - word >= NODE_SIZE;
}

/* Whether all words at @root are pointers to leaves for the addresses that are theirs. */
static bool is_root(struct tree *t, taddr_t root)
{
	uint64_t word[WORDS];

	for (uint32_t n = 0; n < NODE_WORDS; n += WORDS) {
		if (!memory_read(t->memory, root + n * sizeof(*word), word, sizeof(word)))
			return false;
		for (uint32_t i = 0; i < WORDS; i++) {
			struct probe probe = {0};

			if (!word[i])
				continue;
			if (!may_be_leaf(t, word[i]))
				return false;
			each_page(t, word[i], probe_page, &probe);
			if (probe.address && probe.address >> LEAF_SHIFT != n + i)
				return false;
		}
	}
	return true;
}

/* The root, if the word at @at of @data is one of its pointers to leaves; 0: it is none. */
static taddr_t find_root(struct tree *t, const struct glibc_range *data, taddr_t at, uint64_t word)
{
	struct probe probe = {0};

	if (!may_be_leaf(t, word))
		return 0;
	each_page(t, word, probe_page, &probe);
	taddr_t offset = (probe.address >> LEAF_SHIFT) * sizeof(word), root = at - offset;

	return probe.address && offset <= at - data->start && root <= data->end - NODE_SIZE &&
	       is_root(t, root) ? root : 0;
}

static taddr_t search(struct tree *t, const struct glibc_range *data)
{
	const struct resident *pages = t->memory->pages;
	uint64_t word[WORDS];

	for (taddr_t page = resident_next(pages, data->start); page < data->end;
	     page = resident_next(pages, page + PAGE)) {
		if (!memory_read(t->memory, page, word, sizeof(word)))
			return 0;
		for (uint32_t k = 0; k < WORDS; k++) {
			taddr_t at = page + k * sizeof(*word);
			taddr_t root = word[k] ? find_root(t, data, at, word[k]) : 0;

			if (root)
				return root;
		}
	}
	return 0;
}

static bool find_in(const struct allocator_input *in, const struct glibc_range *data,
		    struct allocator *out)
{
	const struct resident *pages = in->memory->pages;
	struct tree t = {.memory = in->memory, .slabs = &out->slabs};

	for (size_t i = 0; i < ARRAY_SIZE(layouts); i++) {
		t.layout = &layouts[i];
		t.pages_left = SEARCHED_MAX;
		taddr_t root = search(&t, data);

		if (!root)
			continue;
		t.pages_left = (pages->resident + pages->swapped) / PAGE * 2;
		add_leaves(&t, root);
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
		if (in->data[i].end - in->data[i].start > NODE_SIZE &&
		    find_in(in, &in->data[i], out))
			return true;
	return false;
}
