/*
 * A queue of blocks whose types were found or became better; each is read once for that, and what
 * its pointers lead to gets types in turn. A block's fit only rises, so the walk ends.
 */
#include "graph/typed_walk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/text.h"
#include "graph/struct_layout.h"
#include "graph/typed_ahead.h"
#include "symbols/demangle.h"

#define WORD 8u
#define LEVELS_MAX 32u          /* structs in structs */
#define CHUNK_MAX (UINT64_C(4) << 20) /* bytes that are read at once; of no array, all that are */
#define SMALL_MAX 512u           /* so much is on the stack */
#define HEADER_MAX 256u         /* bytes of a container or of its header */
#define PLACES_MAX (UINT64_C(1) << 28) /* of a table */
#define CHECKED_ELEMENTS 16u    /* of an array of pointers */
#define CHECKED_STRUCTS 4096u   /* spread over the array, if it has more */
#define QUEUE_KEPT 4096u        /* steps that are done */
#define SLACK 24u               /* bytes that allocators add to any block */
#define CLASS_NAME_MAX 1024u

/*
 * Elements in a block that are followed when what led to them was: each block's once, so that what
 * forged containers cost has a bound.
 */
struct typed_places {
	taddr_t start;          /* of the lowest one */
	taddr_t control;        /* a byte for each: bit 7 says that it is free; 0 = all are used */
	uint64_t count;
	uint32_t element;
	bool is_reversed;       /* the first byte is of the highest one */
};

/* The class that has its table at an address. */
struct known_table {
	taddr_t table;
	uint32_t type;          /* TYPE_NONE = unknown */
	uint64_t above;         /* from the whole object to where the table's pointer is */
};

/* Bytes at an address in the process. */
struct typed_bytes {
	taddr_t addr;
	const uint8_t *data;
	uint64_t size;
};

void typed_walk_init(struct typed_walk *w, const struct typed_heap *heap)
{
	*w = (struct typed_walk){.heap = heap};
	w->type = huge_alloc((heap->blocks + 1ul) * sizeof(*w->type));
	w->fit = huge_alloc((heap->blocks + 1ul) * sizeof(*w->fit));
}

static void forget_walk(struct typed_walk *w)
{
	vec_deinit(&w->queue);
	vec_deinit(&w->places);
	hash_deinit(&w->by_places);
	vec_deinit(&w->leads);
	hash_deinit(&w->tables);
	w->next = 0;
}

void typed_walk_deinit(struct typed_walk *w)
{
	forget_walk(w);
	hash_deinit(&w->by_type);
	vec_deinit(&w->sums);
	vec_deinit(&w->strings);
	huge_free(w->type, (w->heap->blocks + 1ul) * sizeof(*w->type));
	huge_free(w->fit, (w->heap->blocks + 1ul) * sizeof(*w->fit));
}

static uint64_t size_of(const struct typed_walk *w, uint32_t type)
{
	return type_table_get(w->heap->types, type)->size;
}

/* The block that starts at @addr; TYPED_NO_BLOCK: none does. */
static uint32_t block_at(const struct typed_walk *w, taddr_t addr, struct typed_extent *out)
{
	uint32_t block = w->heap->find(w->heap->ctx, addr);

	if (block == TYPED_NO_BLOCK)
		return block;
	w->heap->extent(w->heap->ctx, block, out);
	return out->start == addr ? block : TYPED_NO_BLOCK;
}

/* -- whether a type has pointers -- */

static bool find_leads(struct typed_walk *w, uint32_t type, uint32_t level);

/* How @type is a container whose members are not followed like others; NULL: it is none. */
static const struct container *find_container(struct typed_walk *w, uint32_t type)
{
	const struct container *c = w->heap->containers ?
		containers_find(w->heap->containers, w->heap->types, type) : NULL;

	return c && c->kind != CONTAINER_WRAPPER && c->kind != CONTAINER_POINTER ? c : NULL;
}

static bool leads(struct typed_walk *w, uint32_t type, uint32_t level)
{
	while (w->leads.count <= type)
		*vec_add(&w->leads) = 0;
	if (w->leads.data[type] == 0) {
		w->leads.data[type] = 1; /* no, while it is found out: for cycles */
		bool does = level < LEVELS_MAX && find_leads(w, type, level);

		w->leads.data[type] = does ? 2 : 1;
	}
	return w->leads.data[type] == 2;
}

/* Whether the union @type has one member, besides structs without any. */
static bool is_single(struct typed_walk *w, uint32_t type)
{
	struct type_table *t = w->heap->types;
	uint32_t members = type_table_get(t, type)->members, count = 0;

	for (uint32_t i = 0; i < members; i++) {
		const struct data_type *e = type_table_get(t, type_table_member_type(t, type, i));

		count += e->kind != DATA_STRUCT || e->members > 0;
	}
	return count == 1;
}

static bool find_leads(struct typed_walk *w, uint32_t type, uint32_t level)
{
	struct type_table *t = w->heap->types;
	const struct data_type *e = type_table_get(t, type);
	uint32_t members = e->members;

	if (e->kind == DATA_POINTER || e->kind == DATA_ARRAY)
		return e->kind == DATA_POINTER || leads(w, e->target, level + 1);
	if (e->kind != DATA_STRUCT && (e->kind != DATA_UNION || !is_single(w, type)))
		return false;
	if (find_container(w, type)) /* also in what is a union to the language */
		return true;
	for (uint32_t i = 0; i < members; i++)
		if (leads(w, type_table_member_type(t, type, i), level + 1))
			return true;
	return false;
}

/* -- classes with tables -- */

/* The class that @table, a pointer read from an object, is the table of. */
static void read_table(struct typed_walk *w, struct known_table *k)
{
	const struct typed_heap *h = w->heap;
	char name[CLASS_NAME_MAX] = "_ZTS";
	uint64_t before[2], info[2];
	size_t n = 4;

	if (k->table % WORD || k->table < sizeof(before) ||
	    !memory_read(h->memory, k->table - sizeof(before), before, sizeof(before)) ||
	    !memory_read(h->memory, before[1], info, sizeof(info)))
		return;
	k->above = -before[0];
	for (taddr_t at = info[1]; n < sizeof(name) - 1; at++, n++) {
		if (!memory_read(h->memory, at, &name[n], 1))
			return;
		if (n == 4 && name[n] == '*') /* known in one file only */
			n--;
		else if (!name[n])
			break;
	}
	name[n] = '\0';
	_cleanup_free_ char *plain = demangle(name);
	static const char prefix[] = "typeinfo name for ";

	if (plain && text_begins_with(plain, prefix))
		k->type = type_table_find(h->types, h->near, plain + sizeof(prefix) - 1);
}

static struct known_table find_table(struct typed_walk *w, taddr_t table)
{
	const struct known_table *known =
		hash_find(&w->tables, hash_u64(table), e, e->table == table);

	if (known)
		return *known;
	struct known_table k = {.table = table};

	read_table(w, &k);
	return *hash_add(&w->tables, hash_u64(table)) = k;
}

/* -- blocks -- */

static void walk_value(struct typed_walk *w, uint32_t type, struct typed_bytes b, uint32_t level);

/* How @type fits a block of @size bytes. */
static enum typed_fit find_fit(const struct typed_walk *w, uint32_t type, uint64_t size)
{
	bool is_open = struct_layout_is_open(w->heap->types, type);
	const struct data_type *e = type_table_get(w->heap->types, type);
	uint64_t each = e->size, slack = MAX(SLACK, size / 4);
	bool is_number = e->kind == DATA_BASE || e->kind == DATA_ENUM;

	if (each == 0 || each > size)
		return FIT_NONE;
	if (is_number && size >= 2 * each)
		return FIT_NUMBERS;
	if (size - each < slack || is_open)
		return FIT_WHOLE;
	/* the elements of an array fill its block; a pointer may lead to any number of pointers */
	return size % each < SLACK ? FIT_ARRAY : FIT_START;
}

/* Whether the words of @b where @type has pointers lead to memory, or are 0. */
static bool is_plausible(struct typed_walk *w, uint32_t type, struct typed_bytes b)
{
	uint64_t budget = w->budget;

	w->is_checking = true;
	w->is_contradicted = false;
	w->budget = 4096;
	walk_value(w, type, b, 0);
	w->is_checking = false;
	w->budget = budget;
	return !w->is_contradicted;
}

/* Whether a word of @b, which has no pointers, leads to the start of a block. */
static bool has_pointer(const struct typed_walk *w, struct typed_bytes b)
{
	struct typed_extent extent;

	for (uint64_t at = 0; at + WORD <= b.size; at += WORD) {
		uint64_t word = load_u64(b.data + at);

		if (word && block_at(w, word, &extent) != TYPED_NO_BLOCK)
			return true;
	}
	return false;
}

/* Whether a word of @b, at the start of @extent, leads to what is behind that word there. */
static bool leads_inside(struct typed_bytes b, const struct typed_extent *extent)
{
	for (uint64_t at = 0; at + WORD <= b.size; at += WORD) {
		uint64_t word = load_u64(b.data + at);

		if (word > extent->start && word - extent->start <= extent->size)
			return true;
	}
	return false;
}

/*
 * Whether a block at @extent, which a pointer to @type leads to, is an array of these. Of pointers
 * the first ones are looked at: the others may be unused, with what was there before. A struct may
 * be the head of a block of something else, as of a pool: each element must be plausible. If all
 * behind the first one is zero, and that leads there, it is a pool of which nothing is used yet.
 */
static bool are_plausible(struct typed_walk *w, uint32_t type, const struct typed_extent *extent)
{
	bool is_struct = type_table_get(w->heap->types, type)->kind == DATA_STRUCT, is_pool = false;
	uint64_t each = size_of(w, type), elements = extent->size / MAX(each, 1ul);
	uint64_t count = MIN(elements, is_struct ? CHECKED_STRUCTS : CHECKED_ELEMENTS);
	bool has_pointers = leads(w, type, 0);

	if (!has_pointers && !is_struct)
		return true;
	if (each == 0 || each > CHUNK_MAX)
		return false;
	_cleanup_free_ uint8_t *data = xmalloc(each);

	for (uint64_t i = 0; i < count; i++) {
		uint64_t at = (is_struct ? i * elements / count : i) * each;
		const struct typed_bytes element = {extent->start + at, data, each};

		if (!memory_read(w->heap->memory, extent->start + at, data, each) ||
		    (has_pointers ? !is_plausible(w, type, element) :
				    i > 0 && has_pointer(w, element)))
			return false;
		if (i == 0)
			is_pool = is_struct && leads_inside(element, extent);
		else
			is_pool &= are_zeros(data, each);
	}
	return !is_pool;
}

static void give_type(struct typed_walk *w, uint32_t block, uint32_t type, enum typed_fit fit,
		      uint64_t bytes)
{
	if (fit <= w->fit[block] || type == TYPE_NONE)
		return;
	w->fit[block] = (uint8_t)fit;
	w->type[block] = type;
	*vec_add(&w->queue) = (struct typed_step){block, bytes};
}

/* Whether it is the node of a container: no DWARF has it. */
static bool is_node(const struct typed_walk *w, uint32_t type)
{
	const struct data_type *e = type_table_get(w->heap->types, type);

	return e->kind == DATA_STRUCT && !e->die.addr;
}

/* A pointer to @type leads to the start of @block. */
static void reach_block(struct typed_walk *w, uint32_t block, uint32_t type)
{
	struct typed_extent extent;

	w->heap->extent(w->heap->ctx, block, &extent);
	enum typed_fit fit = find_fit(w, type, extent.size);

	if (is_node(w, type) && size_of(w, type) <= extent.size)
		fit = FIT_CONTAINER;
	/* of a class that is not known a base is at the start */
	if (fit == FIT_ARRAY && struct_layout_has_table(w->heap->types, type))
		fit = FIT_START;
	bool is_array = fit == FIT_ARRAY || fit == FIT_NUMBERS;

	if (fit <= w->fit[block])
		return;
	if (is_array && !are_plausible(w, type, &extent)) {
		is_array = false;
		fit = FIT_START;
	}
	uint32_t whole = is_array ? type_table_array_of(w->heap->types, type, 0) : type;

	give_type(w, block, whole, fit, extent.size);
}

/* A pointer to @type leads to @addr, where an object of a class with a table may be. */
static bool reach_object(struct typed_walk *w, taddr_t addr)
{
	struct typed_extent extent;
	uint64_t table;

	if (!memory_read_word(w->heap->memory, addr, &table))
		return false;
	struct known_table k = find_table(w, table);
	uint32_t block = block_at(w, addr - k.above, &extent);

	if (k.type == TYPE_NONE || block == TYPED_NO_BLOCK || size_of(w, k.type) > extent.size)
		return false;
	give_type(w, block, k.type, FIT_CONTAINER, extent.size);
	return true;
}

static void follow(struct typed_walk *w, uint32_t type, taddr_t addr)
{
	const struct data_type *e = type_table_get(w->heap->types, type);
	struct typed_extent extent;

	if (type == TYPE_NONE || e->kind == DATA_CODE || addr == 0)
		return;
	uint32_t block = w->heap->find(w->heap->ctx, addr);

	if (block == TYPED_NO_BLOCK)
		return;
	if (struct_layout_has_table(w->heap->types, type) && reach_object(w, addr))
		return;
	w->heap->extent(w->heap->ctx, block, &extent);
	if (extent.start == addr)
		reach_block(w, block, type);
}

/* -- containers -- */

/* A pointer, a struct that has only one, or a number of any size; false: it is not there. */
static bool read_place(const struct typed_walk *w, const struct member_place *p,
		       struct typed_bytes b, uint64_t *out)
{
	uint64_t size = MIN(size_of(w, p->type), (uint64_t)WORD);

	if (size == 0 || p->offset > b.size || b.size - p->offset < size)
		return false;
	*out = 0;
	memcpy(out, b.data + p->offset, size);
	if (p->bit_size)
		*out &= UINT64_MAX >> (64 - p->bit_size);
	return true;
}

static struct container_sum *get_sum(struct typed_walk *w, uint32_t type)
{
	const uint32_t *known =
		hash_find(&w->by_type, hash_u64(type), i, w->sums.data[*i].type == type);

	if (known)
		return &w->sums.data[*known];
	*hash_add(&w->by_type, hash_u64(type)) = (uint32_t)w->sums.count;
	*vec_add(&w->sums) = (struct container_sum){.type = type};
	return &w->sums.data[w->sums.count - 1];
}

static int compare_strings(const void *a, const void *b)
{
	const struct typed_string *x = a, *y = b;

	if (x->block != y->block)
		return x->block < y->block ? -1 : 1;
	return x->bytes > y->bytes ? -1 : x->bytes < y->bytes;
}

static bool is_same_block(const struct typed_string *to, struct typed_string *from)
{
	return to->block == from->block;
}

static void sort_strings(struct typed_walk *w)
{
	vec_sort(&w->strings, compare_strings);
	vec_merge(&w->strings, is_same_block);
}

/* Several containers may have the same block. */
static void note_string(struct typed_walk *w, uint32_t block, uint64_t bytes)
{
	if (w->strings.count >= 2ul * w->heap->blocks + 1000)
		sort_strings(w);
	*vec_add(&w->strings) = (struct typed_string){block, bytes};
}

/* @p is followed later, if it is in @block. */
static void add_places(struct typed_walk *w, uint32_t block, struct typed_places p)
{
	uint64_t each = size_of(w, p.element), bytes;
	uint64_t hash = hash_u64(block);
	struct typed_extent e;

	w->heap->extent(w->heap->ctx, block, &e);
	if (each == 0 || each > CHUNK_MAX || p.count == 0 || p.count > PLACES_MAX ||
	    __builtin_mul_overflow(p.count, each, &bytes) || p.start < e.start ||
	    p.start - e.start > e.size || bytes > e.size - (p.start - e.start) ||
	    !leads(w, p.element, 0) || hash_find(&w->by_places, hash, b, *b == block))
		return;
	*hash_add(&w->by_places, hash) = block;
	*vec_add(&w->places) = p;
}

/* Elements of @c from @begin on, @bytes of them, in a block of their own. */
static void reach_elements(struct typed_walk *w, const struct container *c, taddr_t begin,
			   uint64_t bytes)
{
	struct typed_extent extent;
	uint32_t block = block_at(w, begin - c->before, &extent);

	if (block == TYPED_NO_BLOCK || extent.size < c->before || bytes > extent.size - c->before)
		return;
	if (c->before) {
		give_type(w, block, c->node, FIT_CONTAINER, 0);
		add_places(w, block, (struct typed_places){
			.start = begin, .element = c->element,
			.count = bytes / size_of(w, c->element)});
		return;
	}
	give_type(w, block, type_table_array_of(w->heap->types, c->element, 0), FIT_CONTAINER,
		  bytes);
	if (size_of(w, c->element) == 1)
		note_string(w, block, bytes);
}

/* Bytes from where @c begins to @p, a pointer or a number of elements. */
static bool read_extent(const struct typed_walk *w, const struct container *c,
			const struct member_place *p, struct typed_bytes b, uint64_t *bytes_out)
{
	bool is_pointer = type_table_get(w->heap->types, p->type)->kind == DATA_POINTER;
	uint64_t value, begin;

	if (!read_place(w, p, b, &value) || !read_place(w, &c->begin, b, &begin))
		return false;
	if (is_pointer) {
		*bytes_out = value - begin;
		return value >= begin;
	}
	if (c->in_block.type != TYPE_NONE && c->in_block.offset == p->offset)
		value = p == &c->size ? value >> 1 : value & ~UINT64_C(1);
	return !__builtin_mul_overflow(value, size_of(w, c->element), bytes_out);
}

/* @count elements at the start of @b, which are in the container itself. */
static void walk_inline(struct typed_walk *w, uint32_t element, uint64_t count,
			struct typed_bytes b, uint32_t level)
{
	uint64_t each = size_of(w, element);

	for (uint64_t i = 0, at = 0; i < count && b.size - at >= each; i++, at += each)
		walk_value(w, element, (struct typed_bytes){b.addr + at, b.data + at, each},
			   level + 1);
}

/* What is in @b from @at on. */
static struct typed_bytes part_of(struct typed_bytes b, uint64_t at)
{
	at = MIN(at, b.size);
	return (struct typed_bytes){b.addr + at, b.data + at, b.size - at};
}

static void walk_array(struct typed_walk *w, uint32_t type, const struct container *c,
		       struct typed_bytes b, uint32_t level)
{
	uint64_t begin, used, capacity, flags;

	if (c->in_block.type != TYPE_NONE && c->in_block.offset < b.size &&
	    !((flags = b.data[c->in_block.offset]) & 1)) {
		get_sum(w, type)->containers++;
		get_sum(w, type)->empty += flags >> 1 == 0;
		if (c->in_object.type != TYPE_NONE)
			walk_inline(w, c->element, flags >> 1, part_of(b, c->in_object.offset),
				    level);
		return;
	}
	if (!read_place(w, &c->begin, b, &begin) ||
	    (!read_extent(w, c, &c->end, b, &used) &&
	     !read_extent(w, c, &c->size, b, &used)) || used > INT64_MAX)
		return;
	struct container_sum *s = get_sum(w, type);
	bool is_inside = begin >= b.addr && begin - b.addr < b.size; /* a short string */

	s->containers++;
	s->empty += used == 0;
	if (is_inside && type_table_get(w->heap->types, c->element)->size > 1)
		walk_inline(w, c->element, used / size_of(w, c->element),
			    part_of(b, begin - b.addr), level);
	if (!is_inside && begin && w->heap->find(w->heap->ctx, begin) != TYPED_NO_BLOCK) {
		s->used += used;
		s->capacity += read_extent(w, c, &c->capacity, b, &capacity) &&
			       capacity >= used && capacity <= INT64_MAX ? capacity : used;
		reach_elements(w, c, begin, used);
	}
}

/* The elements of @c are behind its header, whose block is @block; @all has the members of both. */
static void reach_header(struct typed_walk *w, uint32_t type, const struct container *c,
			 uint32_t block, struct typed_bytes all)
{
	uint64_t begin = 0, used, capacity, first = 0, each = size_of(w, c->element);
	enum data_kind kind = type_table_get(w->heap->types, c->begin.type)->kind;
	struct typed_extent e;
	struct container_sum *s = get_sum(w, type);

	w->heap->extent(w->heap->ctx, block, &e);
	if ((kind != DATA_ARRAY && !read_place(w, &c->begin, all, &begin)) ||
	    (!read_extent(w, c, &c->end, all, &used) && !read_extent(w, c, &c->size, all, &used)) ||
	    (c->first.type != TYPE_NONE && !read_place(w, &c->first, all, &first)) ||
	    used > INT64_MAX || first > used / each)
		return;
	if (kind == DATA_POINTER) {
		give_type(w, block, c->header_type, FIT_CONTAINER, 0);
		reach_elements(w, c, begin, used);
	} else if ((kind == DATA_ARRAY || begin == c->head) && e.size >= c->head &&
		   used <= e.size - c->head) {
		give_type(w, block, c->node, FIT_CONTAINER, 0);
		add_places(w, block, (struct typed_places){
			.start = e.start + c->head + first * each, .element = c->element,
			.count = used / each - first});
	} else {
		return;
	}
	used -= first * each;
	s->used += used;
	s->capacity += read_extent(w, c, &c->capacity, all, &capacity) && capacity >= used &&
		       capacity <= INT64_MAX ? capacity : used;
}

static void walk_header(struct typed_walk *w, uint32_t type, const struct container *c,
			struct typed_bytes b)
{
	uint64_t own = size_of(w, type), header, used = 0, first = 0;
	uint64_t more = MIN(size_of(w, c->header_type), (uint64_t)HEADER_MAX);
	uint8_t data[2 * HEADER_MAX];
	const struct typed_bytes all = {b.addr, data, own + more};
	struct typed_extent e;

	if (own > HEADER_MAX || !read_place(w, &c->header, b, &header) ||
	    !memory_read(w->heap->memory, header, data + own, more))
		return;
	memcpy(data, b.data, own);
	struct container_sum *s = get_sum(w, type);
	uint32_t block = block_at(w, header, &e);

	read_place(w, c->end.type != TYPE_NONE ? &c->end : &c->size, all, &used);
	read_place(w, &c->first, all, &first);
	s->containers++;
	s->empty += used == first;
	if (block != TYPED_NO_BLOCK) /* of all that are empty it is the library's */
		reach_header(w, type, c, block, all);
}

/* The last node of a container at the start of a block leads back to it: that is no node. */
static void keep_home(struct typed_walk *w, taddr_t addr)
{
	struct typed_extent e;
	uint32_t block = block_at(w, addr, &e);

	if (block != TYPED_NO_BLOCK)
		w->fit[block] = FIT_CONTAINER;
}

/* All that the block at @addr has are pointers to nodes. */
static void reach_table(struct typed_walk *w, const struct container *c, taddr_t addr)
{
	struct typed_extent e;
	uint32_t block = block_at(w, addr, &e);

	if (block == TYPED_NO_BLOCK)
		return;
	uint32_t pointer = type_table_pointer_to(w->heap->types, c->node);

	give_type(w, block, type_table_array_of(w->heap->types, pointer, 0), FIT_CONTAINER, e.size);
}

static void walk_nodes(struct typed_walk *w, uint32_t type, const struct container *c,
		       struct typed_bytes b)
{
	uint64_t root, size;
	struct typed_extent extent;
	struct container_sum *s = get_sum(w, type);

	s->containers++;
	if (read_place(w, &c->size, b, &size))
		s->empty += size == 0;
	keep_home(w, b.addr);
	if (c->table.type != TYPE_NONE && read_place(w, &c->table, b, &root))
		reach_table(w, c, root);
	for (uint32_t i = 0; i < c->roots; i++) {
		if (!read_place(w, &c->root[i], b, &root))
			continue;
		uint32_t block = block_at(w, root, &extent);

		if (block != TYPED_NO_BLOCK && size_of(w, c->node) <= extent.size)
			give_type(w, block, c->node, FIT_CONTAINER, extent.size);
	}
	if (c->also.type != TYPE_NONE && read_place(w, &c->also, b, &root))
		follow(w, type_table_get(w->heap->types, c->also.type)->target, root);
}

static void walk_places(struct typed_walk *w, const struct typed_places *p)
{
	uint64_t each = size_of(w, p->element), most = CHUNK_MAX / each, count;
	_cleanup_free_ uint8_t *data = xmalloc(most * each), *is_free = xcalloc(most, 1);

	for (uint64_t i = 0; i < p->count; i += count) {
		taddr_t at = p->start + i * each;
		uint64_t first = p->is_reversed ? p->count - MIN(most, p->count - i) - i : i;

		count = MIN(most, p->count - i);
		if (!memory_read(w->heap->memory, at, data, count * each) ||
		    (p->control &&
		     !memory_read(w->heap->memory, p->control + first, is_free, count)))
			return;
		w->budget = 4096 + count * each * 2;
		for (uint64_t k = 0; k < count; k++) {
			const struct typed_bytes b = {at + k * each, data + k * each, each};

			if (!(is_free[p->is_reversed ? count - 1 - k : k] & 0x80))
				walk_value(w, p->element, b, 0);
		}
	}
}

/*
 * absl: [control bytes] [elements, the first one first], a pointer to each; size places. Of a
 * single place or none, the control bytes are in the library.
 */
static void walk_slots(struct typed_walk *w, uint32_t type, const struct container *c,
		       struct typed_bytes b)
{
	uint64_t control, slots, places, items, each = size_of(w, c->element);
	struct container_sum *s = get_sum(w, type);

	if (!read_place(w, &c->begin, b, &control) || !read_place(w, &c->slots, b, &slots) ||
	    !read_place(w, &c->capacity, b, &places) || !read_place(w, &c->size, b, &items) ||
	    places > PLACES_MAX || items > places || each == 0 || each > CHUNK_MAX)
		return;
	uint32_t block = w->heap->find(w->heap->ctx, control);

	s->containers++;
	s->empty += items == 0;
	if (block == TYPED_NO_BLOCK)
		return;
	s->used += items * each;
	s->capacity += places * each;
	add_places(w, block, (struct typed_places){
		.start = slots, .control = control, .count = places, .element = c->element});
}

/*
 * hashbrown: [elements, the last one first] [control bytes] with the pointer at these; mask + 1
 * places. Bit 7 of a control byte says that its place is free.
 */
static void walk_swiss(struct typed_walk *w, uint32_t type, const struct container *c,
		       struct typed_bytes b)
{
	uint64_t control, mask, items, each = size_of(w, c->element), bytes;
	struct typed_extent extent;

	if (!read_place(w, &c->begin, b, &control) || !read_place(w, &c->end, b, &mask) ||
	    !read_place(w, &c->size, b, &items) || mask >= UINT32_MAX || items > mask + 1 ||
	    __builtin_mul_overflow(mask + 1, each, &bytes) || bytes > control)
		return;
	struct container_sum *s = get_sum(w, type);
	uint32_t block = w->heap->find(w->heap->ctx, control);

	s->containers++;
	s->empty += items == 0;
	if (block != TYPED_NO_BLOCK) {
		w->heap->extent(w->heap->ctx, block, &extent);
		s->used += items * each;
		s->capacity += bytes;
		/* the elements begin where the block does, but for what aligns the others */
		if (control - bytes == extent.start)
			give_type(w, block, type_table_array_of(w->heap->types, c->element, 0),
				  FIT_CONTAINER, 0);
		add_places(w, block, (struct typed_places){
			.start = control - bytes, .control = control, .count = mask + 1,
			.element = c->element, .is_reversed = true});
	}
}

/* -- values -- */

/* Whether @m is there: of a Rust enum only the members of one variant are. */
static bool is_there(const struct data_member *m, uint32_t variant)
{
	return !(m->flags & MEMBER_VARIANT) || m->variant == variant;
}

/* The variant that @b has; 0 = none. */
static uint32_t find_variant(struct typed_walk *w, uint32_t type, struct typed_bytes b)
{
	struct type_table *t = w->heap->types;
	const struct data_type *e = type_table_get(t, type);
	uint32_t members = e->members, otherwise = 0;
	uint64_t value = 0;

	if (e->discriminant && e->discriminant <= members) {
		uint32_t i = e->discriminant - 1;
		uint64_t size = size_of(w, type_table_member_type(t, type, i));
		uint64_t offset = type_table_member(t, type, i)->offset;

		if (size > sizeof(value) || offset > b.size || size > b.size - offset)
			return 0;
		memcpy(&value, b.data + offset, size);
		for (i = 0; i < members; i++) {
			const struct data_member *m = type_table_member(t, type, i);
			uint64_t mask = size == 8 ? UINT64_MAX : (UINT64_C(1) << size * 8) - 1;

			if (m->flags & MEMBER_DEFAULT)
				otherwise = m->variant;
			else if (m->flags & MEMBER_VARIANT && (m->value & mask) == value)
				return m->variant;
		}
		return otherwise;
	}
	for (uint32_t i = 0; i < members; i++) /* there is only one */
		if (type_table_member(t, type, i)->flags & MEMBER_VARIANT)
			return type_table_member(t, type, i)->variant;
	return 0;
}

static void walk_members(struct typed_walk *w, uint32_t type, struct typed_bytes b, uint32_t level)
{
	struct type_table *t = w->heap->types;
	uint32_t members = type_table_get(t, type)->members;
	uint32_t variant = find_variant(w, type, b);

	for (uint32_t i = 0; i < members; i++) {
		uint32_t inner = type_table_member_type(t, type, i);
		const struct data_member *m = type_table_member(t, type, i);

		if (m->flags & MEMBER_VIRTUAL || m->bit_size || !is_there(m, variant) ||
		    m->offset > b.size)
			continue;
		walk_value(w, inner, (struct typed_bytes){b.addr + m->offset, b.data + m->offset,
							  b.size - m->offset}, level + 1);
	}
}

static void walk_elements(struct typed_walk *w, const struct data_type *array,
			  struct typed_bytes b, uint32_t level)
{
	uint64_t each = size_of(w, array->target), count = array->count, at = 0;
	uint32_t target = array->target;

	if (each == 0)
		return;
	bool looks_ahead = type_table_get(w->heap->types, target)->kind == DATA_POINTER &&
			   each == WORD && w->heap->find_soon && !w->is_checking;

	for (uint64_t i = 0; (count == 0 || i < count) && b.size - at >= each; i++, at += each) {
		if (looks_ahead)
			typed_ahead_element(w, b.data + at, b.size - at);
		walk_value(w, target, (struct typed_bytes){b.addr + at, b.data + at, each},
			   level + 1);
	}
}

/* Whether @addr is in no block, or in one that has the whole of a @target behind that. */
static bool has_room(const struct typed_walk *w, uint32_t target, taddr_t addr)
{
	uint32_t block = w->heap->find(w->heap->ctx, addr);
	struct typed_extent e;

	if (block == TYPED_NO_BLOCK || target == TYPE_NONE ||
	    type_table_get(w->heap->types, target)->kind != DATA_STRUCT)
		return true;
	w->heap->extent(w->heap->ctx, block, &e);
	return e.size - (addr - e.start) >= size_of(w, target);
}

static void walk_pointer(struct typed_walk *w, uint32_t target, uint64_t value)
{
	uint8_t byte;

	if (!w->is_checking)
		follow(w, target, value);
	else if (value && (!memory_read(w->heap->memory, value, &byte, 1) ||
			   !has_room(w, target, value)))
		w->is_contradicted = true;
}

/* The value of an optional, or the one that a variant has. */
static void walk_choice(struct typed_walk *w, uint32_t type, const struct container *c,
			struct typed_bytes b, uint32_t level)
{
	uint64_t number, at = c->begin.offset;
	bool is_optional = c->kind == CONTAINER_OPTIONAL;

	if (!read_place(w, &c->size, b, &number) || (is_optional && !number) || at > b.size)
		return;
	uint32_t value = is_optional ? c->element :
			 number < UINT32_MAX ? type_table_argument(w->heap->types, type,
								   (uint32_t)number) : TYPE_NONE;

	walk_value(w, value, (struct typed_bytes){b.addr + at, b.data + at, b.size - at},
		   level + 1);
}

/* Follows what @b, of @type, has; it may be longer than the type. */
static void walk_value(struct typed_walk *w, uint32_t type, struct typed_bytes b, uint32_t level)
{
	if (level >= LEVELS_MAX || w->budget == 0 || !leads(w, type, 0))
		return;
	/* a copy: the table moves when types are read */
	const struct data_type e = *type_table_get(w->heap->types, type);

	if (e.size > b.size)
		return;
	w->budget--;
	if (e.kind == DATA_POINTER) {
		if (b.size >= WORD)
			walk_pointer(w, e.target, load_u64(b.data));
		return;
	}
	if (e.kind == DATA_ARRAY) {
		b.size = e.size ? e.size : b.size;
		walk_elements(w, &e, b, level);
		return;
	}
	const struct container *c = w->is_checking ? NULL : find_container(w, type);
	uint64_t value;

	switch (c ? c->kind : CONTAINER_NONE) {
	case CONTAINER_ARRAY:
	case CONTAINER_STRING:
		if (c->header_type != TYPE_NONE)
			walk_header(w, type, c, b);
		else
			walk_array(w, type, c, b, level);
		break;
	case CONTAINER_NODES:
		walk_nodes(w, type, c, b);
		break;
	case CONTAINER_SWISS:
		if (c->slots.type != TYPE_NONE)
			walk_slots(w, type, c, b);
		else
			walk_swiss(w, type, c, b);
		break;
	case CONTAINER_REFERENCE:
		if (read_place(w, &c->begin, b, &value))
			follow(w, c->element, value & ~UINT64_C(7));
		break;
	case CONTAINER_OPTIONAL:
	case CONTAINER_VARIANT:
		walk_choice(w, type, c, b, level);
		break;
	default:
		walk_members(w, type, b, level);
	}
}

/* -- the walk -- */

static void walk_chunk(struct typed_walk *w, taddr_t addr, uint32_t type, uint64_t bytes)
{
	uint8_t small[SMALL_MAX];
	_cleanup_free_ uint8_t *large = bytes > sizeof(small) ? xmalloc(bytes) : NULL;
	uint8_t *data = large ? large : small;

	if (bytes == 0 || !memory_read(w->heap->memory, addr, data, bytes))
		return;
	w->budget = 4096 + bytes * 2; /* overlapping members of forged types end here */
	walk_value(w, type, (struct typed_bytes){addr, data, bytes}, 0);
}

/* Follows the first @bytes at @addr, which are of @type. */
static void walk_memory(struct typed_walk *w, taddr_t addr, uint32_t type, uint64_t bytes)
{
	const struct data_type e = *type_table_get(w->heap->types, type);
	bool is_array = e.kind == DATA_ARRAY && (e.count == 0 || e.size > CHUNK_MAX);
	uint64_t each = is_array ? size_of(w, e.target) : 0;

	if (!leads(w, type, 0) || (is_array && (each == 0 || each > CHUNK_MAX)))
		return;
	uint64_t most = is_array ? CHUNK_MAX - CHUNK_MAX % each : CHUNK_MAX;

	if (is_array && e.count) /* parts of it are of no type but an open array's */
		type = type_table_array_of(w->heap->types, e.target, 0);
	for (uint64_t at = 0; at < bytes && (at == 0 || is_array); at += most)
		walk_chunk(w, addr + at, type, MIN(bytes - at, most));
}

void typed_walk_add_root(struct typed_walk *w, taddr_t addr, uint32_t type)
{
	walk_memory(w, addr, type, size_of(w, type));
}

static void walk_step(struct typed_walk *w, struct typed_step s)
{
	struct typed_extent extent;

	w->heap->extent(w->heap->ctx, s.block, &extent);
	walk_memory(w, extent.start, w->type[s.block], MIN(s.bytes, extent.size));
}

void typed_walk_run(struct typed_walk *w)
{
	while (w->next < w->queue.count || w->places.count) {
		if (w->places.count) {
			const struct typed_places p = w->places.data[--w->places.count];

			walk_places(w, &p);
			continue;
		}
		if (w->heap->find_soon)
			typed_ahead(w);
		walk_step(w, w->queue.data[w->next++]);
		if (w->next >= QUEUE_KEPT && w->next * 2 > w->queue.count) {
			w->queue.count -= w->next;
			memmove(w->queue.data, w->queue.data + w->next,
				w->queue.count * sizeof(*w->queue.data));
			w->next = 0;
		}
	}
	sort_strings(w);
	forget_walk(w);
}

static const char *whole_container(void *ctx, uint32_t type)
{
	const struct typed_heap *heap = ctx;

	return heap->containers ? containers_whole(heap->containers, heap->types, type) : NULL;
}

char *typed_walk_path(const struct typed_walk *w, uint32_t type, uint64_t offset)
{
	const struct type_path_form form = {.whole = whole_container, .any_index = true,
					    .ctx = (void *)(uintptr_t)w->heap};
	const struct data_type *e = type_table_get(w->heap->types, type);

	if (e->kind == DATA_STRUCT && offset >= e->size &&
	    !struct_layout_is_open(w->heap->types, type))
		return NULL;
	return type_table_path(w->heap->types, type, offset, &form);
}
