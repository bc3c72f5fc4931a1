/*
 * Members are placed one after the other: at the next boundary that suits their type, and a bit
 * field at the next bit, unless it would cross a boundary of its declared type. A base class comes
 * first; what follows may begin in its tail padding, if the class is no plain old data. Whether it
 * is shows where the first member of the given order begins; where that does not tell, nothing is
 * proposed.
 */
#include "graph/struct_layout.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define NESTED_MAX 8u           /* levels of structs whose gaps count */
#define ITEMS_MAX 2000u

/* Part of a struct: [start, end) in bytes. */
struct member_extent {
	uint64_t start, end;
	uint32_t type;
};

struct member_extents {
	VEC(struct member_extent) list;
};

static bool is_class(const struct type_table *t, uint32_t type)
{
	enum data_kind kind = type_table_get(t, type)->kind;

	return kind == DATA_STRUCT || kind == DATA_UNION;
}

static bool is_open_array(const struct type_table *t, uint32_t type)
{
	const struct data_type *e = type_table_get(t, type);

	return e->kind == DATA_ARRAY && e->count == 0;
}

/* Whether it is known where all members of @type are. Its declarations have none. */
static bool is_plain(struct type_table *t, uint32_t type)
{
	const struct data_type *e = type_table_get(t, type);
	uint32_t members = e->members;

	if (e->kind != DATA_STRUCT || !e->die.addr)
		return false;
	for (uint32_t i = 0; i < members; i++) {
		uint32_t inner = type_table_member_type(t, type, i);

		if (inner == TYPE_NONE ||
		    type_table_member(t, type, i)->flags & (MEMBER_VIRTUAL | MEMBER_VARIANT))
			return false;
	}
	return members > 0;
}

/* Whether @type has no bytes of its own: as a base it takes no room. */
static bool is_empty(const struct type_table *t, uint32_t type)
{
	const struct data_type *e = type_table_get(t, type);

	return e->kind == DATA_STRUCT && e->members == 0 && e->size <= 1;
}

static struct member_extent extent_of(struct type_table *t, uint32_t type, uint32_t i)
{
	uint32_t inner = type_table_member_type(t, type, i);
	const struct data_member *m = type_table_member(t, type, i);
	uint64_t size = type_table_get(t, inner)->size;

	if (m->bit_size)
		size = (m->bit_offset + m->bit_size + 7u) / 8;
	else if (m->flags & MEMBER_BASE && is_empty(t, inner))
		size = 0;
	return (struct member_extent){m->offset, m->offset + size, m->bit_size ? TYPE_NONE : inner};
}

static int compare_extents(const void *a, const void *b)
{
	const struct member_extent *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->end < y->end ? -1 : x->end > y->end;
}

/* -- padding -- */

static uint64_t padding_within(struct type_table *t, uint32_t type, uint32_t levels)
{
	struct member_extents all = {0};
	uint64_t end = 0, lost = 0, size = type_table_get(t, type)->size;
	uint32_t members = type_table_get(t, type)->members;

	if (levels == 0 || !is_plain(t, type))
		return 0;
	for (uint32_t i = 0; i < members; i++)
		*vec_add(&all.list) = extent_of(t, type, i);
	vec_sort(&all.list, compare_extents);
	for (size_t i = 0; i < all.list.count; i++) {
		const struct member_extent *e = &all.list.data[i];
		bool is_shared = e->start < end; /* then its gaps may be another's */

		lost += e->start > end ? e->start - end : 0;
		if (!is_shared && e->end > e->start &&
		    (i + 1 == all.list.count || all.list.data[i + 1].start >= e->end))
			lost += padding_within(t, e->type, levels - 1);
		end = MAX(end, e->end);
	}
	vec_deinit(&all.list);
	return lost + (size > end ? size - end : 0);
}

uint64_t struct_layout_padding(struct type_table *t, uint32_t type)
{
	return padding_within(t, type, NESTED_MAX);
}

/* -- what is placed -- */

struct layout_item {
	const char *name;
	uint64_t size, align;   /* bytes, of a bit field those of its declared type */
	uint64_t bits;          /* of a bit field; 0 = none */
	uint64_t at;            /* bits from the start */
	uint32_t unit;          /* which of them move together, from 0 on */
};

struct layout_items {
	VEC(struct layout_item) list;
	uint64_t start;         /* bytes that bases and the table's pointer have */
	uint64_t align, size;   /* of the struct */
	bool has_last;          /* the last unit stays where it is */
};

static bool is_fixed(const struct data_member *m)
{
	return m->flags & MEMBER_BASE || (m->name && strncmp(m->name, "_vptr", 5) == 0);
}

/* Where the last member of base @type ends; UINT64_MAX: a base of its own may end there. */
static uint64_t data_end(struct type_table *t, uint32_t type)
{
	uint64_t end = 0, bases = 0;

	for (uint32_t i = 0, count = type_table_get(t, type)->members; i < count; i++) {
		uint64_t one = extent_of(t, type, i).end;

		if (type_table_member(t, type, i)->flags & MEMBER_BASE)
			bases = MAX(bases, one);
		else
			end = MAX(end, one);
	}
	return end >= bases ? end : UINT64_MAX;
}

static bool add_item(struct type_table *t, uint32_t type, uint32_t i, struct layout_items *out)
{
	uint32_t inner = type_table_member_type(t, type, i);
	uint64_t align = type_table_member_alignment(t, type, i);
	const struct data_member *m = type_table_member(t, type, i);
	const struct layout_item *last = out->list.count ?
		&out->list.data[out->list.count - 1] : NULL;
	bool follows = last && last->bits && m->bit_size;
	struct layout_item item = {
		.name = m->name, .size = type_table_get(t, inner)->size, .align = align,
		.bits = m->bit_size, .at = m->offset * 8 + (m->bit_size ? m->bit_offset : 0),
		.unit = last ? last->unit + !follows : 0};

	if (!m->name || align == 0 || out->list.count >= ITEMS_MAX ||
	    (m->bit_size && (item.size == 0 || item.bits > item.size * 8)))
		return false;
	*vec_add(&out->list) = item;
	return true;
}

/* Where the first member that can move begins, if bases have tail padding. False: unknown. */
static bool find_start(const struct layout_items *l, uint64_t whole, uint64_t data,
		       uint64_t *out)
{
	const struct layout_item *first = &l->list.data[0];
	uint64_t at = first->at / 8;

	*out = at < whole ? data : whole;
	return data == whole || at < whole ||
	       (data < whole && ROUND_UP(data, first->bits ? 1 : first->align) < whole);
}

static bool read_items(struct type_table *t, uint32_t type, struct layout_items *out)
{
	uint64_t whole = 0, data = 0;

	for (uint32_t i = 0, count = type_table_get(t, type)->members; i < count; i++) {
		struct member_extent e = extent_of(t, type, i);
		const struct data_member *m = type_table_member(t, type, i);
		bool is_base = m->flags & MEMBER_BASE;

		if (!is_fixed(m)) {
			if (!add_item(t, type, i, out))
				return false;
			continue;
		}
		if (e.end == e.start)
			continue;
		uint64_t end = is_base && is_class(t, e.type) ? data_end(t, e.type) :
							       e.end - e.start;

		if (end == UINT64_MAX)
			return false;
		whole = MAX(whole, e.end);
		data = MAX(data, e.start + end);
	}
	return out->list.count > 1 && find_start(out, whole, data, &out->start);
}

/* Whether a block with the struct may go on behind its last member. */
static bool has_open_tail(struct type_table *t, uint32_t type)
{
	for (uint32_t level = 0; level < NESTED_MAX; level++) {
		const struct data_type *e = type_table_get(t, type);

		if (is_open_array(t, type) || (e->kind == DATA_ARRAY && e->count == 1))
			return true;
		if (e->kind != DATA_STRUCT || e->members == 0)
			return false;
		type = type_table_member_type(t, type, e->members - 1);
	}
	return true;
}

/* -- placing -- */

/* Places @count items in their order. The size of the struct, with its end padding. */
static uint64_t place(const struct layout_items *l, struct layout_item *item, size_t count)
{
	uint64_t at = l->start * 8;

	for (size_t i = 0; i < count; i++) {
		uint64_t whole = item[i].size * 8;

		if (!item[i].bits)
			at = ROUND_UP(at, item[i].align * 8);
		else if (at % whole + item[i].bits > whole)
			at = ROUND_UP(at, whole);
		item[i].at = at;
		at += item[i].bits ? item[i].bits : whole;
	}
	return ROUND_UP((at + 7) / 8, l->align);
}

/* Whether the rules give what the struct is. */
static bool is_understood(const struct layout_items *l)
{
	size_t count = l->list.count;
	struct layout_item *copy = xmemdup(l->list.data, count * sizeof(*copy));
	bool is_same = place(l, copy, count) == l->size;

	for (size_t i = 0; i < count; i++) {
		uint64_t align = l->list.data[i].bits ? 1 : l->list.data[i].align;

		is_same &= copy[i].at == l->list.data[i].at && (align & (align - 1)) == 0;
	}
	free(copy);
	return is_same;
}

/* Items that move together. */
struct layout_unit {
	size_t first, count;
	uint64_t size, align;   /* size: from a boundary of it */
	bool is_placed;
};

struct layout_units {
	VEC(struct layout_unit) list;
};

static void find_units(const struct layout_items *l, struct layout_units *out)
{
	struct layout_items alone = {.align = 1};

	for (size_t i = 0; i < l->list.count; i++) {
		const struct layout_item *item = &l->list.data[i];
		struct layout_unit *u;

		if (item->unit >= out->list.count)
			*vec_add(&out->list) = (struct layout_unit){.first = i, .align = 1};
		u = &out->list.data[out->list.count - 1];
		u->count++;
		u->align = MAX(u->align, item->align);
	}
	for (size_t i = 0; i < out->list.count; i++) {
		struct layout_unit *u = &out->list.data[i];
		struct layout_item *copy =
			xmemdup(&l->list.data[u->first], u->count * sizeof(*copy));

		u->size = place(&alone, copy, u->count);
		free(copy);
	}
}

/* Whether @a rather than @b comes next, at @at bytes. */
static bool comes_first(const struct layout_unit *a, const struct layout_unit *b, uint64_t at)
{
	bool fits_a = at % a->align == 0, fits_b = at % b->align == 0;

	if (fits_a != fits_b)
		return fits_a;
	if (a->align != b->align)
		return fits_a == (a->align > b->align);
	/* what ends at a boundary goes before what does not */
	return a->size % a->align == 0 && b->size % b->align != 0;
}

static void order_units(const struct layout_items *l, struct layout_units *units,
			struct layout_items *out)
{
	uint64_t at = l->start;
	size_t count = units->list.count, free_units = count - (l->has_last ? 1 : 0);

	for (size_t k = 0; k < count; k++) {
		struct layout_unit *best = k < free_units ? NULL : &units->list.data[count - 1];

		for (size_t i = 0; i < free_units && k < free_units; i++) {
			struct layout_unit *u = &units->list.data[i];

			if (!u->is_placed && (!best || comes_first(u, best, at)))
				best = u;
		}
		best->is_placed = true;
		at = ROUND_UP(at, best->align) + best->size;
		for (size_t i = 0; i < best->count; i++)
			*vec_add(&out->list) = l->list.data[best->first + i];
	}
}

static char *join_names(const struct layout_items *l)
{
	char *text = xstrdup("");

	for (size_t i = 0; i < l->list.count; i++) {
		char *more = xasprintf("%s%s%s", text, i ? ", " : "", l->list.data[i].name);

		free(text);
		text = more;
	}
	return text;
}

static uint64_t find_order(const struct layout_items *l, char **order_out)
{
	struct layout_items ordered = {.start = l->start, .align = l->align};
	struct layout_units units = {0};
	uint64_t size;

	find_units(l, &units);
	order_units(l, &units, &ordered);
	size = place(&ordered, ordered.list.data, ordered.list.count);
	if (size < l->size)
		*order_out = join_names(&ordered);
	vec_deinit(&units.list);
	vec_deinit(&ordered.list);
	return size < l->size ? size : 0;
}

uint64_t struct_layout_best(struct type_table *t, uint32_t type, char **order_out)
{
	struct layout_items l = {.size = type_table_get(t, type)->size};
	uint64_t best = 0;

	if (is_plain(t, type)) {
		l.align = type_table_alignment(t, type);
		l.has_last = has_open_tail(t, type);
		if (l.align && read_items(t, type, &l) && is_understood(&l))
			best = find_order(&l, order_out);
	}
	vec_deinit(&l.list);
	return best;
}

/* -- begin and end -- */

#define TABLE_LEVELS_MAX 32u /* bases of bases */

bool struct_layout_has_table(struct type_table *t, uint32_t type)
{
	for (uint32_t level = 0; level < TABLE_LEVELS_MAX; level++) {
		const struct data_type *e = type_table_get(t, type);
		uint32_t base = TYPE_NONE, members = e->members;

		if (e->kind != DATA_STRUCT || e->has_table)
			return e->has_table;
		for (uint32_t i = 0; i < members && base == TYPE_NONE; i++) {
			const struct data_member *m = type_table_member(t, type, i);

			if ((m->flags & (MEMBER_BASE | MEMBER_VIRTUAL)) == MEMBER_BASE &&
			    m->offset == 0)
				base = type_table_member_type(t, type, i);
		}
		type = base;
	}
	return false;
}

bool struct_layout_is_open(struct type_table *t, uint32_t type)
{
	uint32_t members = type_table_get(t, type)->members;

	if (type_table_get(t, type)->kind != DATA_STRUCT || members == 0)
		return false;
	const struct data_type *last =
		type_table_get(t, type_table_member_type(t, type, members - 1));

	return last->kind == DATA_ARRAY && last->count == 0;
}
