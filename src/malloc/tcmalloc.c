/*
 * Reads tcmalloc: lists of free blocks, central lists, threads' caches, and the tree of its spans.
 */
#include "malloc/allocators.h"

#include <string.h>

#include "malloc/radix_tree.h"

/* tcmalloc's lists of free blocks, each of which begins with a pointer to the next one, or 0. */

struct tcmalloc_chain {
	taddr_t first;
	taddr_t span;           /* where it begins that has them all; 0 = they are in many */
	uint64_t size;          /* of each block */
	enum place_state state; /* which they have */
};

static bool read_next(struct inspect_memory *m, const struct tcmalloc_chain *c, taddr_t at,
		      taddr_t *out)
{
	if (!c->span)
		return memory_read_word(m, at, out);
	memcpy(out, memory_peek(m, at, sizeof(*out)), sizeof(*out));
	return true;
}

/*
 * Marks the blocks, up to one that cannot be among them; each can be once. Returns how many they
 * are. @p is sorted.
 */
static uint64_t tcmalloc_chain_mark(struct inspect_memory *m, struct slabs *p,
				    struct tcmalloc_chain c)
{
	taddr_t at = c.first;
	uint64_t count = 0;

	if (c.span)
		memory_peek(m, c.span, sizeof(at));
	while (at && slabs_mark(p, at, c.size, c.state) && read_next(m, &c, at, &at))
		count++;
	p->broken += at != 0;
	return count;
}

/*
 * tcmalloc's central lists, one for each size class, with its transfer cache:
 *
 *	-8   the size class
 *	0    head of its spans without free blocks, as a description of a span
 *	48   head of its other spans
 *	96   number of its spans; 104 of the free blocks in them
 *	112  64 times: a chain of blocks on their way between threads, the last of them
 *	1136 int how many of these are used
 *
 * Lists of spans are circular.
 */

/* A size class, as its spans have it. */
struct tcmalloc_central {
	taddr_t head;           /* of one of the lists; 0 = none */
	uint64_t spans, free;   /* in all, and free blocks in them */
	uint64_t size;          /* of its blocks */
};

#define SLOTS 64

struct head {
	uint64_t page, pages;
	taddr_t next, before, first;
	uint64_t bits;
};
struct central {
	uint64_t class;
	struct head empty, others;
	uint64_t spans, free;
	struct {
		taddr_t first, last;
	} slot[SLOTS];
	int32_t used, size, most, unused;
};
_Static_assert(sizeof(struct central) == 1160, "as in 2.10");

/*
 * Marks what is in the transfer cache of @class. False: the central list is not as its spans are.
 * @p is sorted.
 */
static bool tcmalloc_central_read(struct inspect_memory *m, const struct tcmalloc_central *c,
				  uint32_t class, struct slabs *p)
{
	taddr_t start = c->head - offsetof(struct central, empty);
	struct central e;

	if (!memory_read(m, start, &e, sizeof(e)))
		return false;
	/* it is the other head */
	if (e.class != class && !memory_read(m, start - sizeof(struct head), &e, sizeof(e)))
		return false;
	if (e.class != class || e.spans != c->spans || e.free != c->free || e.used < 0 ||
	    e.used > e.size || e.size > e.most || e.most > SLOTS)
		return false;
	for (int32_t i = 0; i < e.used; i++)
		tcmalloc_chain_mark(m, p, (struct tcmalloc_chain){
			.first = e.slot[i].first, .size = c->size, .state = PLACE_FREE});
	return true;
}

/*
 * tcmalloc's caches of threads, which also have the sizes of its size classes:
 *
 *	0       a list for each size class, 32 bytes each, 128 (2.7: 96) of them:
 *	        0 first block, 8 int number of blocks, 24 int size of blocks
 *	after   4 int most bytes, never 0
 *	them    32 (2.16 and later) or 48: next cache, the one before
 *
 * Sizes ascend from 0 of class 0, which has no blocks, to 256 kB. A variable of tcmalloc's has the
 * first cache.
 */

#define TCMALLOC_CLASSES 128u

struct tcmalloc_caches {
	uint32_t size[TCMALLOC_CLASSES]; /* of the blocks of each class; 0 = no such class */
	uint32_t links;                  /* where a cache has the next one */
	VEC(taddr_t) list;
};

#define ALIGNMENT 16u
#define SIZE_MOST (UINT32_C(256) << 10)
#define WORD 8u
#define CACHE_MIN 3072u /* bytes of one */

struct cache_list {
	taddr_t first;
	uint32_t count, low_water, most, overages, size, unused;
};

/*
 * Versions' layouts: bytes of lists, and after them, of the links. In a cache with 128 lists all
 * after the classes' are zeros, so it is none with 96 lists.
 */
static const struct {
	uint32_t lists, links;
} layouts[] = {
	{96 * sizeof(struct cache_list), 48},
	{TCMALLOC_CLASSES * sizeof(struct cache_list), 32},
	{TCMALLOC_CLASSES * sizeof(struct cache_list), 48},
};

/* Whether the sizes of the lists at @at are those of a cache. */
static bool read_sizes(struct inspect_memory *m, taddr_t at, uint32_t size[TCMALLOC_CLASSES])
{
	struct cache_list l;

	memset(size, 0, TCMALLOC_CLASSES * sizeof(*size));
	for (uint32_t i = 0; i < TCMALLOC_CLASSES; i++) {
		if (!memory_read(m, at + i * sizeof(l), &l, sizeof(l)) || l.size % WORD ||
		    l.size > SIZE_MOST || (i == 0 ? l.size != 0 : l.size <= size[i - 1]))
			return false;
		size[i] = l.size;
		if (l.size == SIZE_MOST)
			return true;
	}
	return false;
}

struct links {
	taddr_t next, before;
};

/* Whether @at is a cache with the sizes of @c; 0 in a link: there is none. */
static bool read_links(struct inspect_memory *m, const struct tcmalloc_caches *c, taddr_t at,
		       struct links *out)
{
	uint32_t size[TCMALLOC_CLASSES];

	return at % ALIGNMENT == 0 && read_sizes(m, at, size) &&
	       memcmp(size, c->size, sizeof(size)) == 0 &&
	       memory_read(m, at + c->links, out, sizeof(*out));
}

/* All caches before or after the one at @at, which is among them. False: they are none. */
static bool add_chain(struct inspect_memory *m, struct tcmalloc_caches *c, taddr_t at, bool is_next)
{
	uint64_t most = (m->pages->resident + m->pages->swapped) / CACHE_MIN;
	struct links l, other;

	if (!read_links(m, c, at, &l))
		return false;
	for (taddr_t to; (to = is_next ? l.next : l.before); at = to, l = other) {
		if (c->list.count > most || !read_links(m, c, to, &other) ||
		    (is_next ? other.before : other.next) != at)
			return false;
		*vec_add(&c->list) = to;
	}
	return true;
}

static bool take_layout(struct inspect_memory *m, taddr_t at, uint32_t lists,
			struct tcmalloc_caches *c)
{
	uint32_t bytes[2]; /* in use; most */

	c->list.count = 0;
	*vec_add(&c->list) = at;
	return memory_read(m, at + lists, bytes, sizeof(bytes)) && bytes[1] &&
	       add_chain(m, c, at, true) && add_chain(m, c, at, false);
}

struct cache_search {
	struct inspect_memory *memory;
	struct tcmalloc_caches *out;
};

/* Whether @word leads to a cache; takes all of them. */
static bool take_caches(void *ctx, taddr_t addr, const uint64_t *word)
{
	const struct cache_search *s = ctx;
	struct inspect_memory *m = s->memory;
	struct tcmalloc_caches *out = s->out;
	taddr_t at = *word;
	const struct map *map = at && at % ALIGNMENT == 0 ? maps_find(&m->pages->maps, at) : NULL;

	(void)addr;
	if (!map || !map->is_write || !read_sizes(m, at, out->size))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(layouts); i++) {
		out->links = layouts[i].lists + layouts[i].links;
		if (take_layout(m, at, layouts[i].lists, out))
			return true;
	}
	return false;
}

/* Marks what is in them. @p is sorted. */
static void tcmalloc_caches_read(struct inspect_memory *m, const struct tcmalloc_caches *c,
				 struct slabs *p)
{
	struct cache_list l;

	for (size_t i = 0; i < c->list.count; i++)
		for (uint32_t k = 1; k < TCMALLOC_CLASSES && c->size[k]; k++) {
			if (!memory_read(m, c->list.data[i] + k * sizeof(l), &l, sizeof(l)))
				continue;
			const struct tcmalloc_chain chain = {
				.first = l.first, .size = c->size[k], .state = PLACE_CACHED};

			p->broken += tcmalloc_chain_mark(m, p, chain) != l.count;
		}
}

/*
 * tcmalloc of gperftools 2.7 to 2.18 (64 bits, 48 of an address in use, pages of 8 kB), by the tree
 * that leads from each of its pages to the description of its span:
 *
 *	root        2^17 pointers to leaves, by address >> 31; in the library's data
 *	leaf        2^18 pointers to descriptions, by address >> 13: of a span's first and last
 *	            page, and of each page between that is divided into blocks. What it has for
 *	            others within a span is out of date
 *
 *	description, 48 bytes
 *	0  number of its first page (address >> 13); 8 number of its pages
 *	16 next, 24 previous description on the list of its size class
 *	32 first free block
 *	40 16 bits blocks that are not free; 8 bits size class, 0: one block, or a free span;
 *	   2 bits 0 in use, 1 free, 2 free and returned to the kernel; 1 bit sampled
 *
 * A block that tcmalloc samples is a span of its own: 32 points to the requested size. Its usable
 * size is that of other blocks. Sizes of classes are known from threads' caches.
 * gperftools' debugging allocator, which has headers of its own in tcmalloc's
 * blocks, is not taken for tcmalloc.
 */

#define PAGE ((taddr_t)PAGE_SIZE_MIN)
#define SHIFT 13u               /* of tcmalloc's pages */
#define ROOT_WORDS (UINT64_C(1) << 17)
#define PAGES_END (ROOT_WORDS * RADIX_LEAF_WORDS)
#define PLACES_MAX UINT16_MAX
/* What tcmalloc needs for itself it takes from the kernel in such pieces, at least. */
#define OWN_PIECE (UINT64_C(8) << 20)
#define DEBUG_MARK UINT64_C(0xdeadbeef)
#define DEBUG_STRIDE_MAX 4096u
#define DEBUG_LOOKS 2048u       /* more blocks than those that it keeps for a while */

struct span_description {
	uint64_t page, pages;
	taddr_t next, before, first;
	uint16_t used;
	uint8_t class, flags;
	uint32_t unused;
};
_Static_assert(sizeof(struct span_description) == 48, "as in 2.10");

#define IS_SAMPLED 4u

static uint32_t location(const struct span_description *d)
{
	return d->flags & 3;
}

struct span_tree {
	struct inspect_memory *memory;
	struct slabs *slabs;
	const struct addr_range *data;
	taddr_t root;
	uint64_t known_end;             /* the page after the last span */
	struct tcmalloc_caches caches;
	struct tcmalloc_central central[TCMALLOC_CLASSES];
	VEC(struct tcmalloc_chain) free; /* blocks of each span */
	VEC(struct addr_range) own;     /* descriptions and the like */
};

/* -- descriptions -- */

/* The description at @at, if it may be one. */
static bool read_description(struct inspect_memory *m, taddr_t at, struct span_description *out)
{
	return at % ALIGNMENT == 0 && memory_read(m, at, out, sizeof(*out)) && out->pages > 0 &&
	       out->page > 0 && out->page < PAGES_END && out->pages <= PAGES_END - out->page &&
	       location(out) <= 2 && maps_find(&m->pages->maps, out->page << SHIFT);
}

/* What the tree has for @page; 0 = nothing. */
static taddr_t look_up(const struct span_tree *t, uint64_t page)
{
	taddr_t leaf, at;

	return memory_read_word(t->memory, t->root + page / RADIX_LEAF_WORDS * sizeof(leaf),
				&leaf) &&
			       leaf &&
			       memory_read_word(t->memory,
						leaf + page % RADIX_LEAF_WORDS * sizeof(at), &at) ?
		       at :
		       0;
}

/* -- spans -- */

/* Bytes of tcmalloc's own. */
static void add_own(struct span_tree *t, taddr_t start, uint64_t size)
{
	struct addr_range *last = t->own.count ? &t->own.data[t->own.count - 1] : NULL;

	if (last && start >= last->start && start <= last->end)
		last->end = MAX(last->end, start + size);
	else
		*vec_add(&t->own) = (struct addr_range){start, start + size};
}

/* A span on the list of its class is next to the list's head, or to others. */
static void note_class(struct span_tree *t, const struct span_description *d, uint64_t free)
{
	struct tcmalloc_central *c = &t->central[d->class];

	c->spans++;
	c->free += free;
	if (d->next >= t->data->start && d->next < t->data->end)
		c->head = d->next;
	else if (d->before >= t->data->start && d->before < t->data->end)
		c->head = d->before;
}

/* One that is divided into blocks. */
static void add_blocks(struct span_tree *t, const struct span_description *d, struct slab *slab)
{
	uint64_t size = d->class < TCMALLOC_CLASSES ? t->caches.size[d->class] : 0;
	uint64_t places = size ? (slab->end - slab->start) / size : 0;

	if (places == 0 || places > PLACES_MAX || d->used > places) {
		t->slabs->broken++;
		return;
	}
	slab->stride = size;
	slab->places = (uint32_t)places;
	if (!slabs_add(t->slabs, slab, PLACE_LIVE))
		return;
	note_class(t, d, places - d->used);
	if (d->first)
		*vec_add(&t->free) = (struct tcmalloc_chain){
			.first = d->first, .span = slab->start, .size = size, .state = PLACE_FREE};
}

/* The usable size of a sampled block, whose description leads to the requested one. */
static uint64_t sampled_size(const struct span_tree *t, const struct span_description *d,
			     uint64_t span)
{
	uint64_t size;

	if (!memory_read_word(t->memory, d->first, &size))
		return 0;
	for (uint32_t i = 1; i < TCMALLOC_CLASSES && t->caches.size[i]; i++)
		if (size <= t->caches.size[i])
			return t->caches.size[i];
	return span;
}

static void add_span(struct span_tree *t, const struct span_description *d)
{
	struct slab slab = {.start = d->page << SHIFT, .rest = ROW_OWN};

	slab.first = slab.start;
	slab.end = (d->page + d->pages) << SHIFT;
	if (location(d) != 0) {
		slabs_add_rest(t->slabs, slab.start, slab.end, ROW_FREE_PAGES);
		return;
	}
	if (d->class) {
		add_blocks(t, d, &slab);
		return;
	}
	slab.stride = slab.end - slab.start;
	if (d->flags & IS_SAMPLED)
		slab.stride = sampled_size(t, d, slab.stride);
	slab.places = 1;
	slabs_add(t->slabs, &slab, PLACE_LIVE);
}

/* Adds what the words of a page of a leaf lead to. */
static bool add_words(void *ctx, const uint64_t *word, uint64_t first, uint64_t *number_out)
{
	struct span_tree *t = ctx;
	struct span_description d;

	(void)number_out;
	for (uint32_t i = 0; i < PAGE_WORDS; i++) {
		uint64_t page = first + i;

		if (!word[i] || page < t->known_end)
			continue;
		if (!read_description(t->memory, word[i], &d) || d.page != page ||
		    look_up(t, page + d.pages - 1) != word[i]) {
			t->slabs->broken++;
			continue;
		}
		t->known_end = page + d.pages;
		add_own(t, word[i], sizeof(d));
		add_span(t, &d);
	}
	return true;
}

static void add_leaf(void *ctx, taddr_t leaf)
{
	add_own(ctx, leaf, RADIX_LEAF_SIZE);
}

/* -- tcmalloc's own -- */

/* Adds what of @part is in no span. @spans: how many there are; *i: the first that may be in it. */
static void add_rest(struct slabs *p, struct addr_range part, size_t spans, size_t *i)
{
	while (part.start < part.end) {
		taddr_t next = *i < spans ? p->list.data[*i].start : part.end;

		slabs_add_rest(p, part.start, MIN(next, part.end), ROW_OWN);
		if (next >= part.end)
			return;
		part.start = MAX(part.start, p->list.data[(*i)++].end);
	}
}

/* What is between two parts of a mapping that are close together is tcmalloc's own, too. */
static void add_own_slabs(struct span_tree *t)
{
	size_t spans = t->slabs->list.count, at = 0;

	vec_sort(&t->own, taddr_compare);
	for (size_t i = 0; i < t->own.count;) {
		const struct map *map = maps_find(&t->memory->pages->maps, t->own.data[i].start);
		struct addr_range part = {ROUND_DOWN(t->own.data[i].start, PAGE), 0};

		do
			part.end = MAX(part.end, ROUND_UP(t->own.data[i].end, PAGE));
		while (++i < t->own.count && map && t->own.data[i].start < map->end &&
		       t->own.data[i].start < part.end + OWN_PIECE);
		add_rest(t->slabs, part, spans, &at);
	}
	slabs_sort(t->slabs);
}

/* -- free blocks -- */

static void read_free(struct span_tree *t)
{
	struct slabs *p = t->slabs;
	uint64_t count = 0, noted = 0;

	for (size_t i = 0; i < t->free.count; i++)
		count += tcmalloc_chain_mark(t->memory, p, t->free.data[i]);
	for (uint32_t i = 1; i < TCMALLOC_CLASSES; i++) {
		struct tcmalloc_central *c = &t->central[i];

		noted += c->free;
		c->size = t->caches.size[i];
		if (c->spans)
			p->broken += !tcmalloc_central_read(t->memory, c, i, p);
	}
	p->broken += count != noted;
	tcmalloc_caches_read(t->memory, &t->caches, p);
}

/* -- gperftools' debugging allocator -- */

/* Whether a block begins with a header of that allocator's; larger blocks may be its own. */
static bool has_debug_header(struct span_tree *t, const struct slab *slab, uint32_t i)
{
	struct { uint64_t size, offset, mark, type;
	} head;

	return slab->stride >= sizeof(head) &&
	       memory_read(t->memory, slab->first + i * slab->stride, &head, sizeof(head)) &&
	       head.mark == DEBUG_MARK && head.offset == 0 && head.size <= slab->stride;
}

static bool is_debug(struct span_tree *t)
{
	uint32_t looks = 0;

	for (size_t n = 0; n < t->slabs->list.count; n++) {
		const struct slab *slab = slab_at(t->slabs, n);

		if (slab->stride > DEBUG_STRIDE_MAX)
			continue;
		for (uint32_t i = 0; i < slab->places; i++) {
			if (slabs_state(t->slabs, slab, i) != PLACE_LIVE)
				continue;
			if (has_debug_header(t, slab, i))
				return true;
			if (++looks == DEBUG_LOOKS)
				return false;
		}
	}
	return false;
}

/* -- the root -- */

/* The page for which the leaf's first description is. */
static bool probe_words(void *ctx, const uint64_t *word, uint64_t first, uint64_t *number_out)
{
	const struct span_tree *t = ctx;
	struct span_description d;

	for (uint32_t i = 0; i < PAGE_WORDS; i++) {
		if (!word[i])
			continue;
		if (!read_description(t->memory, word[i], &d))
			return false;
		uint64_t page = ROUND_DOWN(d.page, RADIX_LEAF_WORDS) + first + i;

		/* it begins in the leaf before */
		page += page < d.page ? RADIX_LEAF_WORDS : 0;
		*number_out = page - d.page < d.pages ? page : 0;
		return false;
	}
	return true;
}

static bool read_all(struct span_tree *t, struct allocator *out)
{
	struct radix_tree tree = {
		.memory = t->memory, .root_words = ROOT_WORDS, .align = ALIGNMENT,
		.probe = probe_words, .add = add_words, .add_leaf = add_leaf, .ctx = t};
	struct cache_search search = {t->memory, &t->caches};

	t->root = radix_tree_find(&tree, t->data);
	if (!t->root || !memory_find_word(t->memory, t->data, take_caches, &search))
		return false;
	t->slabs->broken += !radix_tree_visit(&tree, t->root);
	for (size_t i = 0; i < t->caches.list.count; i++)
		add_own(t, t->caches.list.data[i], sizeof(uint64_t));
	slabs_sort(t->slabs);
	read_free(t);
	if (is_debug(t))
		return false;
	add_own_slabs(t);
	out->caches = (uint32_t)t->caches.list.count;
	return true;
}

bool tcmalloc_find(const struct allocator_input *in, struct allocator *out)
{
	bool is_found = false;

	for (size_t i = 0; i < in->data_count && out->slabs.list.count == 0; i++) {
		struct span_tree t = {.memory = in->memory, .slabs = &out->slabs,
				 .data = &in->data[i]};

		is_found = read_all(&t, out);
		vec_deinit(&t.caches.list);
		vec_deinit(&t.free);
		vec_deinit(&t.own);
	}
	return is_found;
}
