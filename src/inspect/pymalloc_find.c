/*
 * A thread that is stopped in the middle of an allocation may have left one list half linked, so a
 * few heads need not fit; nor need a few elements of the array. See pymalloc_find.h.
 */
#include "inspect/pymalloc_find.h"

#include <string.h>

#define PAGE ((taddr_t)PAGE_SIZE_MIN)
#define WORDS (PAGE_SIZE_MIN / 8u)
#define HEAD_WORDS 2u
#define TABLE_WORDS (PYMALLOC_CLASSES * HEAD_WORDS)
#define BROKEN_HEADS 2u         /* at most */
#define BROKEN_PART 8u          /* of the elements: one of so many at most */
#define LINKS 16u               /* where a pool has its links: a head is taken for these */
#define ARENAS_MIN 16u
#define ARENAS_MAX (1u << 20)
#define POOL_MAX (UINT64_C(1) << 20)
#define LIST_MAX 4096u          /* pools from one to the head of its list */
#define AFTER_TABLE 64u         /* words: the pointer to the array is among them */

static const struct pymalloc_layout layouts[] = {
	{4u << 10, 256u << 10},
	{16u << 10, 1u << 20},
};

/* A pool that a head leads to. */
struct listed_pool {
	taddr_t addr;
	uint32_t arena;
};

struct finder {
	const struct allocator_input *in;
	struct inspect_memory *memory;
	uint64_t pool_size;
	struct listed_pool pool[PYMALLOC_CLASSES]; /* the first of each list */
	uint32_t pools;
	uint32_t current;       /* the one whose arena is looked for */
	struct pymalloc_array *out;
};

/* -- words of the data -- */

/* fn(f, address, words from there on: TABLE_WORDS of them). True: it is what was looked for. */
typedef bool word_fn(struct finder *f, taddr_t at, const uint64_t *word);

static bool search_page(struct finder *f, taddr_t page, taddr_t end, word_fn *fn)
{
	uint64_t word[WORDS + TABLE_WORDS] = {0};

	if (!memory_read(f->memory, page, word, MIN(sizeof(word), end - page)))
		return false;
	for (uint32_t i = 0; i < WORDS; i++)
		if (fn(f, page + i * sizeof(*word), &word[i]))
			return true;
	return false;
}

static bool search_data(struct finder *f, word_fn *fn)
{
	const struct resident *pages = f->memory->pages;

	for (size_t i = 0; i < f->in->data_count; i++) {
		const struct glibc_range *r = &f->in->data[i];

		for (taddr_t at = resident_next(pages, r->start); at < r->end;
		     at = resident_next(pages, at + PAGE))
			if (search_page(f, at, r->end, fn))
				return true;
	}
	return false;
}

/* -- heads -- */

static bool read_listed(struct finder *f, taddr_t addr, uint32_t class, struct pymalloc_pool *out)
{
	return addr && addr % PAGE == 0 && memory_read(f->memory, addr, out, sizeof(*out)) &&
	       out->class == class && out->used > 0;
}

/* Whether the head at @at leads to pools of @class that lead back to it. */
static bool is_used_head(struct finder *f, taddr_t at, const uint64_t *word, uint32_t class)
{
	struct pymalloc_pool first, last;

	if (!read_listed(f, word[0], class, &first) || first.previous != at - LINKS ||
	    !read_listed(f, word[1], class, &last) || last.next != at - LINKS)
		return false;
	uint64_t size = (uint64_t)first.fresh_last + pymalloc_size(class);

	if (f->pools == 0)
		f->pool_size = size;
	if (size != f->pool_size || size < PAGE || size > POOL_MAX || word[0] % size)
		return false;
	f->pool[f->pools++] = (struct listed_pool){word[0], first.arena};
	return true;
}

static bool is_table(struct finder *f, taddr_t at, const uint64_t *word)
{
	uint32_t broken = 0;

	f->pools = 0;
	for (uint32_t i = 0; i < PYMALLOC_CLASSES && broken <= BROKEN_HEADS; i++) {
		const uint64_t *head = &word[i * HEAD_WORDS];
		taddr_t self = at + i * HEAD_WORDS * sizeof(*word);
		bool is_empty = head[0] == self - LINKS && head[1] == self - LINKS;

		broken += !is_empty && !is_used_head(f, self, head, i);
	}
	return broken <= BROKEN_HEADS && f->pools > 0;
}

/* -- the array -- */

static bool is_anonymous(const struct finder *f, taddr_t addr)
{
	const struct map *m = maps_find(&f->memory->pages->maps, addr);

	return m && m->is_read && m->is_write && !m->is_shared &&
	       (!*m->path || strncmp(m->path, "[anon", 5) == 0);
}

static bool is_arena(const struct finder *f, const struct pymalloc_arena *a)
{
	const struct pymalloc_layout *l = &f->out->layout;
	taddr_t end = a->addr + l->arena, first = ROUND_UP(a->addr, (taddr_t)l->pool);

	if (a->addr % PAGE || end < a->addr || !is_anonymous(f, a->addr) ||
	    !is_anonymous(f, end - 1) || a->pools != (end - first) / l->pool)
		return false;
	return a->free_pools <= a->pools && a->fresh >= first && a->fresh % l->pool == 0 &&
	       (a->fresh - first) / l->pool <= a->pools;
}

/* Whether @a may be unused, in the array at @array. */
static bool is_unused(taddr_t array, const struct pymalloc_arena *a)
{
	taddr_t offset = a->next - array;

	return a->next == 0 || (offset % sizeof(*a) == 0 && offset / sizeof(*a) < ARENAS_MAX);
}

/* Adds the elements up to number @count. False: they are none. */
static bool add_elements(struct finder *f, taddr_t array, size_t count)
{
	struct pymalloc_array *out = f->out;
	size_t first = out->list.count;
	uint32_t broken = 0, ends = 0;

	vec_reserve(&out->list, count);
	if (!memory_read(f->memory, array + first * sizeof(*out->list.data),
			 out->list.data + first, (count - first) * sizeof(*out->list.data)))
		return false;
	for (size_t i = first; i < count; i++) {
		struct pymalloc_arena *a = &out->list.data[i];

		ends += a->addr == 0 && a->next == 0;
		if (a->addr == 0 ? is_unused(array, a) : is_arena(f, a))
			continue;
		broken++;
		a->addr = 0;
	}
	/* the unused ones are one list, which ends once */
	if (ends > 1 || broken > (count - first) / BROKEN_PART)
		return false;
	out->list.count = count;
	out->broken += broken;
	return true;
}

/* Whether @at leads to the array; reads it. */
static bool is_array(struct finder *f, taddr_t at, const uint64_t *word)
{
	const struct listed_pool *pool = &f->pool[f->current];
	taddr_t array = *word, element = array + pool->arena * sizeof(struct pymalloc_arena);
	const struct map *m = array && array % 8 == 0 ?
				      maps_find(&f->memory->pages->maps, array) : NULL;
	struct pymalloc_arena a;

	if (!m || !m->is_write || *m->path == '/' ||
	    !memory_read(f->memory, element, &a, sizeof(a)) || !a.addr || a.addr > pool->addr ||
	    pool->addr - a.addr >= f->out->layout.arena || !is_arena(f, &a))
		return false;
	f->out->list.count = 0;
	f->out->broken = 0;
	for (size_t count = ARENAS_MIN; count <= ARENAS_MAX; count *= 2)
		if (!add_elements(f, array, count))
			break;
	return f->out->list.count > pool->arena;
}

static bool find_layout(struct finder *f)
{
	for (size_t i = 0; i < ARRAY_SIZE(layouts); i++)
		if (layouts[i].pool == f->pool_size) {
			f->out->layout = layouts[i];
			return true;
		}
	return false;
}

enum pymalloc_found pymalloc_find(const struct allocator_input *in, struct pymalloc_array *out)
{
	struct finder f = {.in = in, .memory = in->memory, .out = out};

	*out = (struct pymalloc_array){0};
	if (!search_data(&f, is_table))
		return PYMALLOC_NONE;
	if (!find_layout(&f))
		return PYMALLOC_UNKNOWN;
	for (; f.current < f.pools; f.current++)
		if (f.pool[f.current].arena < ARENAS_MAX && search_data(&f, is_array))
			return PYMALLOC_FOUND;
	return PYMALLOC_UNKNOWN;
}

/* -- other interpreters -- */

/* The table with the head of the list that the pool at @addr is on; 0 = there is none. */
static taddr_t find_table(struct finder *f, taddr_t addr)
{
	uint32_t class = PYMALLOC_CLASSES;
	struct pymalloc_pool p;

	for (uint32_t i = 0; i < LIST_MAX; i++) {
		if (!memory_read(f->memory, addr, &p, sizeof(p)) || p.class >= PYMALLOC_CLASSES ||
		    (i > 0 && p.class != class))
			return 0;
		class = p.class;
		addr = p.previous;
		if (addr % PAGE)
			return addr + LINKS - class * HEAD_WORDS * sizeof(uint64_t);
	}
	return 0;
}

enum pymalloc_found pymalloc_find_from(const struct allocator_input *in, taddr_t pool,
				       struct pymalloc_array *out)
{
	struct finder f = {.in = in, .memory = in->memory, .out = out};
	uint64_t word[TABLE_WORDS + AFTER_TABLE];
	taddr_t table = find_table(&f, pool);

	*out = (struct pymalloc_array){0};
	if (!table || table % sizeof(*word) || !memory_read(f.memory, table, word, sizeof(word)) ||
	    !is_table(&f, table, word))
		return PYMALLOC_NONE;
	if (!find_layout(&f))
		return PYMALLOC_UNKNOWN;
	for (; f.current < f.pools; f.current++)
		for (uint32_t i = TABLE_WORDS; i < ARRAY_SIZE(word); i++)
			if (is_array(&f, table + i * sizeof(*word), &word[i]))
				return PYMALLOC_FOUND;
	return PYMALLOC_UNKNOWN;
}
