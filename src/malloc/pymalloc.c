/*
 * Finds the arenas of Python's allocator, and reads them pool by pool. Each number is checked
 * against the others, and against what it counts.
 */
#include "malloc/pymalloc.h"

#include <endian.h>
#include <string.h>

/*
 * A thread that is stopped in the middle of an allocation may have left one list half linked, so a
 * few heads need not fit; nor need a few elements of the array. See pymalloc.h.
 */

#define PAGE ((taddr_t)PAGE_SIZE_MIN)
#define HEAD_WORDS 2u
#define TABLE_WORDS (PYMALLOC_CLASSES * HEAD_WORDS)
_Static_assert(TABLE_WORDS <= MEMORY_WORDS, "a table is looked at from its first word");
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

struct pymalloc_finder {
	const struct allocator_input *in;
	struct inspect_memory *memory;
	uint64_t pool_size;
	struct listed_pool pool[PYMALLOC_CLASSES]; /* the first of each list */
	uint32_t pools;
	uint32_t current;       /* the one whose arena is looked for */
	struct pymalloc_array *out;
};

static bool search_data(struct pymalloc_finder *f, memory_word_fn *fn)
{
	for (size_t i = 0; i < f->in->data_count; i++)
		if (memory_find_word(f->memory, &f->in->data[i], fn, f))
			return true;
	return false;
}

/* -- heads -- */

static bool read_listed(struct pymalloc_finder *f, taddr_t addr, uint32_t class,
			struct pymalloc_pool *out)
{
	return addr && addr % PAGE == 0 && memory_read(f->memory, addr, out, sizeof(*out)) &&
	       out->class == class && out->used > 0;
}

/* Whether the head at @at leads to pools of @class that lead back to it. */
static bool is_used_head(struct pymalloc_finder *f, taddr_t at, const uint64_t *word,
			 uint32_t class)
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

static bool is_table(void *ctx, taddr_t at, const uint64_t *word)
{
	struct pymalloc_finder *f = ctx;
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

static bool is_anonymous(const struct pymalloc_finder *f, taddr_t addr)
{
	const struct map *m = maps_find(&f->memory->pages->maps, addr);

	return m && m->is_read && m->is_write && map_is_anonymous(m);
}

static bool is_arena(const struct pymalloc_finder *f, const struct pymalloc_arena *a)
{
	const struct pymalloc_layout *l = &f->out->layout;
	taddr_t end = a->addr + l->arena, first = ROUND_UP(a->addr, (taddr_t)l->pool);

	if (a->addr % PAGE || end < a->addr || !is_anonymous(f, a->addr) ||
	    !is_anonymous(f, end - 1) || a->pools != (end - first) / l->pool)
		return false;
	return a->free_pools <= a->pools && a->fresh >= first && a->fresh % l->pool == 0 &&
	       (a->fresh - first) / l->pool <= a->pools;
}

/* Adds the elements up to number @count. False: they are none. */
static bool add_elements(struct pymalloc_finder *f, taddr_t array, size_t count)
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
		taddr_t offset = a->next - array;
		bool is_unused = a->next == 0 || (offset % sizeof(*a) == 0 &&
						  offset / sizeof(*a) < ARENAS_MAX);

		if (a->addr == 0 ? is_unused : is_arena(f, a))
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
static bool is_array(void *ctx, taddr_t at, const uint64_t *word)
{
	struct pymalloc_finder *f = ctx;
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

static bool find_layout(struct pymalloc_finder *f)
{
	for (size_t i = 0; i < ARRAY_SIZE(layouts); i++)
		if (layouts[i].pool == f->pool_size) {
			f->out->layout = layouts[i];
			return true;
		}
	return false;
}

/* That of the main interpreter. vec_deinit(&out->list) frees @out. */
static enum pymalloc_found pymalloc_find(const struct allocator_input *in,
					 struct pymalloc_array *out)
{
	struct pymalloc_finder f = {.in = in, .memory = in->memory, .out = out};

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
static taddr_t find_table(struct pymalloc_finder *f, taddr_t addr)
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

/* That of the interpreter whose heads lead to @pool. PYMALLOC_NONE: no heads do. */
static enum pymalloc_found pymalloc_find_from(const struct allocator_input *in, taddr_t pool,
					      struct pymalloc_array *out)
{
	struct pymalloc_finder f = {.in = in, .memory = in->memory, .out = out};
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

#define HOOK_BYTES 24u
#define HOOK_LOOKS 64u  /* blocks */
#define GATHERED 512u
#define FAILURES_MAX 64u

struct pool_reader {
	struct inspect_memory *memory;
	struct pymalloc *out;
	const struct pymalloc_arena *arena;
	uint32_t number;        /* of the arena */
};

/* -- pools in use -- */

static bool is_pool(const struct pool_reader *r, const struct pymalloc_pool *p)
{
	if (p->class >= PYMALLOC_CLASSES)
		return false;
	uint32_t block = pymalloc_size(p->class), size = r->out->layout.pool;

	return p->arena == r->number && p->used > 0 && p->fresh_last == size - block &&
	       p->fresh >= PYMALLOC_HEADER + block && p->fresh <= size &&
	       (p->fresh - PYMALLOC_HEADER) % block == 0 &&
	       p->used <= (p->fresh - PYMALLOC_HEADER) / block;
}

/* Marks the blocks on the list from @block on; their number. */
static uint32_t read_list(struct pool_reader *r, const struct slab *slab, taddr_t block)
{
	uint32_t count = 0;

	for (; block; count++)
		if (!slabs_mark_in(&r->out->slabs, slab, block, PLACE_FREE) ||
		    !memory_read_word(r->memory, block, &block))
			return UINT32_MAX;
	return count;
}

static void add_pool(struct pool_reader *r, taddr_t at)
{
	struct slabs *slabs = &r->out->slabs;
	uint32_t size = r->out->layout.pool;
	struct pymalloc_pool p;

	if (!memory_read(r->memory, at, &p, sizeof(p)) || !is_pool(r, &p)) {
		slabs->broken++;
		slabs_add_rest(&r->out->slabs, at, at + size, ROW_UNKNOWN_HEAP);
		return;
	}
	uint32_t block = pymalloc_size(p.class), used = (p.fresh - PYMALLOC_HEADER) / block;
	const struct slab slab = {.start = at, .end = at + size, .first = at + PYMALLOC_HEADER,
				  .stride = block, .places = (size - PYMALLOC_HEADER) / block,
				  .rest = ROW_PYTHON_OWN};

	const struct slab *added = slabs_add(slabs, &slab, PLACE_FREE);

	if (!added)
		return;
	for (uint32_t i = 0; i < used; i++)
		slabs_set(slabs, added, i, PLACE_LIVE);
	slabs->broken += read_list(r, added, p.free) != used - p.used;
	struct pymalloc_class *class = &r->out->classes[p.class];
	uint32_t live = 0;

	for (uint32_t i = 0; i < added->places; i++)
		live += slabs_state(slabs, added, i) == PLACE_LIVE;

	class->pools++;
	class->live += live;
	class->free += slab.places - live;
}

/* -- arenas -- */

/* Which pools are on the list of free ones, a bit for each. */
static uint64_t read_free(struct pool_reader *r, taddr_t first, taddr_t end)
{
	uint32_t size = r->out->layout.pool;
	struct pymalloc_pool p;
	uint64_t found = 0;

	for (taddr_t at = r->arena->free; at; at = p.next) {
		uint64_t bit = UINT64_C(1) << (at - first) / size % PYMALLOC_POOLS_MAX;

		if (at < first || at >= end || at % size || found & bit ||
		    !memory_read(r->memory, at, &p, sizeof(p)) || p.used) {
			r->out->slabs.broken++;
			break;
		}
		found |= bit;
	}
	return found;
}

static void add_pools(struct pool_reader *r, taddr_t first)
{
	const struct pymalloc_arena *a = r->arena;
	uint32_t size = r->out->layout.pool;
	uint64_t free = read_free(r, first, a->fresh);
	uint32_t count = (uint32_t)__builtin_popcountll(free);

	for (uint32_t i = 0; i < a->pools; i++) {
		taddr_t at = first + i * (taddr_t)size;

		if (at < a->fresh && !(free >> i & 1)) {
			add_pool(r, at);
			continue;
		}
		count += at >= a->fresh;
		slabs_add_rest(&r->out->slabs, at, at + size, ROW_PYTHON_POOLS);
	}
	r->out->free_pools += count;
	r->out->slabs.broken += count != a->free_pools;
}

static void add_arena(struct pool_reader *r, const struct spans *taken)
{
	const struct pymalloc_arena *a = r->arena;
	struct pymalloc *out = r->out;
	const struct addr_range range = {a->addr, a->addr + out->layout.arena};
	size_t at = vec_search(&out->arenas, e, e->end <= range.start);
	size_t span = spans_find(taken, range.start);

	if ((at < out->arenas.count && out->arenas.data[at].start < range.end) ||
	    (span < taken->list.count && taken->list.data[span].start < range.end)) {
		out->slabs.broken++;
		return;
	}
	*vec_insert(&out->arenas, at) = range;
	taddr_t first = ROUND_UP(range.start, (taddr_t)out->layout.pool);

	slabs_add_rest(&r->out->slabs, range.start, first, ROW_PYTHON_OWN);
	add_pools(r, first);
	slabs_add_rest(&r->out->slabs, first + a->pools * (taddr_t)out->layout.pool, range.end,
		       ROW_PYTHON_OWN);
}

static void add_arenas(struct pool_reader *r, const struct pymalloc_array *array,
		       const struct spans *taken)
{
	r->out->interpreters++;
	r->out->slabs.broken += array->broken;
	for (r->number = 0; r->number < array->list.count; r->number++) {
		r->arena = &array->list.data[r->number];
		if (r->arena->addr)
			add_arena(r, taken);
	}
}

/* -- other interpreters -- */

struct pool_search {
	const struct allocator_input *in;
	const struct spans *taken;
	struct pool_reader *reader;
	taddr_t addr[GATHERED];         /* where pools may begin: in no span, and in no arena */
	struct pymalloc_pool pool[GATHERED];
	size_t count;
	uint32_t failures;
};

static bool is_taken(const struct pool_search *s, taddr_t addr)
{
	return vec_find(&s->taken->list, addr) || vec_find(&s->reader->out->arenas, addr);
}

/* A pool that has blocks in use and free ones, so that it is on a list. */
static bool may_be_listed(const struct pool_search *s, const struct pymalloc_pool *p)
{
	return p->class < PYMALLOC_CLASSES && p->used > 0 && p->free &&
	       p->fresh_last == s->reader->out->layout.pool - pymalloc_size(p->class);
}

static void add_interpreter(struct pool_search *s, taddr_t pool)
{
	struct pymalloc *out = s->reader->out;
	struct pymalloc_array array;
	enum pymalloc_found found = pymalloc_find_from(s->in, pool, &array);

	if (found == PYMALLOC_FOUND && array.layout.pool == out->layout.pool)
		add_arenas(s->reader, &array, s->taken);
	if (!is_taken(s, pool))
		s->failures++;
	if (found == PYMALLOC_UNKNOWN)
		out->has_lost = true;
	vec_deinit(&array.list);
}

static void look_at_gathered(struct pool_search *s)
{
	memory_gather(s->in->memory, s->addr, s->count, sizeof(*s->pool), s->pool);
	for (size_t i = 0; i < s->count && s->failures < FAILURES_MAX; i++)
		if (may_be_listed(s, &s->pool[i]) && !is_taken(s, s->addr[i]))
			add_interpreter(s, s->addr[i]);
	s->count = 0;
}

/* The first multiple of @size from @at on where a page is; UINT64_MAX = none. */
static taddr_t find_page(const struct resident *pages, taddr_t at, taddr_t size)
{
	for (taddr_t next;; at = next) {
		at = ROUND_UP(at, size);
		next = resident_next(pages, at);
		if (next == at || next == UINT64_MAX)
			return next;
	}
}

static void search_map(struct pool_search *s, const struct map *m)
{
	const struct resident *pages = s->in->memory->pages;
	taddr_t size = s->reader->out->layout.pool;

	for (taddr_t at = find_page(pages, m->start, size); at < m->end;
	     at = find_page(pages, at + size, size)) {
		if (is_taken(s, at))
			continue;
		s->addr[s->count++] = at;
		if (s->count == GATHERED)
			look_at_gathered(s);
	}
}

/* Finds those with allocators of their own by their pools. */
static void add_others(struct pool_reader *r, const struct allocator_input *in,
		       const struct spans *taken)
{
	const struct maps *maps = &in->memory->pages->maps;
	struct pool_search *s = xcalloc(1, sizeof(*s));

	*s = (struct pool_search){.in = in, .taken = taken, .reader = r};
	for (size_t i = 0; i < maps->list.count; i++) {
		const struct map *m = &maps->list.data[i];

		if (m->is_write && map_is_anonymous(m))
			search_map(s, m);
	}
	look_at_gathered(s);
	free(s);
}

/* -- debugging hooks -- */

/* A slab_block_fn. */
static bool find_hooked(struct inspect_memory *m, const struct slab *slab, uint32_t i,
			struct slab_block *out)
{
	taddr_t place = slab->first + i * slab->stride;
	uint64_t word[PYTHON_HOOK_WORDS], end;

	if (!memory_read(m, place, word, sizeof(word)) || !python_has_hook(word))
		return false;
	uint64_t size = be64toh(word[0]);

	if (slab->stride < HOOK_BYTES || size > slab->stride - HOOK_BYTES ||
	    !memory_read_word(m, place + sizeof(word) + size, &end) || end != PYTHON_HOOK_END)
		return false;
	*out = (struct slab_block){place + sizeof(word), size};
	return true;
}

/* Whether most blocks have hooks: then all have, since Python started with them. */
static bool has_hooks(const struct slabs *p, struct inspect_memory *m)
{
	uint32_t looks = 0, found = 0;
	struct slab_block b;

	for (size_t n = 0; n < p->list.count && looks < HOOK_LOOKS; n++)
		for (uint32_t i = 0; i < slab_at(p, n)->places && looks < HOOK_LOOKS; i++)
			if (slabs_state(p, slab_at(p, n), i) == PLACE_LIVE) {
				looks++;
				found += find_hooked(m, slab_at(p, n), i, &b);
			}
	return found > looks / 2;
}

void pymalloc_read(const struct allocator_input *in, const struct spans *taken,
		   struct pymalloc *out)
{
	struct pool_reader r = {.memory = in->memory, .out = out};
	struct pymalloc_array array;

	*out = (struct pymalloc){.found = pymalloc_find(in, &array)};
	if (out->found == PYMALLOC_FOUND) {
		out->layout = array.layout;
		out->slabs = (struct slabs){.most = slabs_most(in->memory->pages),
					    .row_live = ROW_PYTHON_LIVE,
					    .row_free = ROW_PYTHON_FREE,
					    .row_own = ROW_PYTHON_OWN};
		add_arenas(&r, &array, taken);
		if (out->layout.pool > PAGE_SIZE_MIN) /* since 3.10 */
			add_others(&r, in, taken);
		out->has_hooks = has_hooks(&out->slabs, in->memory);
		if (out->has_hooks)
			out->slabs.block = find_hooked;
		slabs_sort(&out->slabs);
	}
	vec_deinit(&array.list);
}

void pymalloc_deinit(struct pymalloc *p)
{
	slabs_deinit(&p->slabs);
	vec_deinit(&p->arenas);
	*p = (struct pymalloc){0};
}
