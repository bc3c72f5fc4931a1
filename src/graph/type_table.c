/*
 * Two tables lead to a type: by the address of its DIE, and by what it consists of. The second one
 * makes one type of the DIEs that units have for the same struct: equal kind, qualified name, size,
 * and names and offsets of members. The first one has an entry from the moment that a DIE is being
 * read, which ends cycles.
 */
#include "graph/type_table.h"

#include <dwarf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/text.h"

#define CHAIN_MAX 64u            /* typedefs, qualifiers, pointers to pointers, dimensions */
#define TYPES_MAX 4000000u
#define PATH_MAX_LEVELS 32u
#define WORD 8u
#define ALIGNMENT_MAX 65536u

struct type_origin {
	struct elf_file *file;  /* held */
	struct debug_units *units;
};

/* What is known of a DIE. */
struct known_die {
	const void *addr;
	uint32_t type;          /* TYPE_NONE also while it is being read */
};

struct type_argument {
	Dwarf_Die die;
	uint32_t type;
	bool is_resolved;
};

struct type_table {
	const char *dirs;
	VEC(struct type_origin) origins;
	VEC(struct data_type) types;
	VEC(struct data_member) members;
	VEC(struct type_argument) arguments;
	HASH(struct known_die) by_die;
	HASH(uint32_t) by_content;
	VEC(struct data_member) reading; /* members of the structs being read */
};

struct type_table *type_table_new(const char *dirs)
{
	struct type_table *t = xcalloc(1, sizeof(*t));

	t->dirs = dirs;
	*vec_add(&t->types) = (struct data_type){.kind = DATA_BASE};
	return t;
}

void type_table_free(struct type_table *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->origins.count; i++) {
		debug_units_free(t->origins.data[i].units);
		elf_file_release(t->origins.data[i].file);
	}
	vec_deinit(&t->origins);
	vec_release(&t->types, e, free(e->name));
	vec_deinit(&t->members);
	vec_deinit(&t->arguments);
	vec_deinit(&t->reading);
	hash_deinit(&t->by_die);
	hash_deinit(&t->by_content);
	free(t);
}

struct debug_units *type_table_add(struct type_table *t, struct elf_file *file)
{
	for (size_t i = 0; i < t->origins.count; i++)
		if (t->origins.data[i].file == file)
			return t->origins.data[i].units;
	*vec_add(&t->origins) = (struct type_origin){
		elf_file_hold(file), debug_units_new(file, t->dirs)};
	return t->origins.data[t->origins.count - 1].units;
}

const struct data_type *type_table_get(const struct type_table *t, uint32_t type)
{
	return &t->types.data[type < t->types.count ? type : TYPE_NONE];
}

uint32_t type_table_count(const struct type_table *t)
{
	return (uint32_t)t->types.count;
}

const struct data_member *type_table_member(const struct type_table *t, uint32_t type, uint32_t i)
{
	return &t->members.data[type_table_get(t, type)->first_member + i];
}

/* -- one of each -- */

static uint64_t mix(uint64_t hash, uint64_t value)
{
	return hash_u64(hash ^ value);
}

static uint64_t content_hash(const struct data_type *e, const struct data_member *m)
{
	uint64_t hash = mix(e->kind, e->size);

	hash = mix(hash, e->name ? type_name_hash(e->name) : 0);
	hash = mix(mix(hash, e->target), e->count);
	for (uint32_t i = 0; i < e->members; i++) {
		hash = mix(hash, m[i].name ? hash_bytes(m[i].name, strlen(m[i].name)) : 1);
		hash = mix(mix(hash, m[i].offset), m[i].flags);
	}
	return hash;
}

static bool is_same_text(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static bool is_same_content(const struct type_table *t, const struct data_type *a,
			    const struct data_type *b, const struct data_member *m)
{
	if (a->kind != b->kind || a->size != b->size || a->target != b->target ||
	    a->count != b->count || a->members != b->members || !is_same_text(a->name, b->name))
		return false;
	const struct data_member *own = &t->members.data[a->first_member];

	for (uint32_t i = 0; i < a->members; i++)
		if (own[i].offset != m[i].offset || own[i].flags != m[i].flags ||
		    own[i].bit_offset != m[i].bit_offset || !is_same_text(own[i].name, m[i].name))
			return false;
	return true;
}

/*
 * The type that is like @e with members @m; added if there is none. Takes over the name. A struct
 * without a name is only like itself: what is around it gives it a meaning.
 */
static uint32_t get_type(struct type_table *t, struct data_type e, const struct data_member *m)
{
	bool is_class = e.kind == DATA_STRUCT || e.kind == DATA_UNION;
	uint64_t hash = content_hash(&e, m);
	const uint32_t *known = NULL;

	if (e.name || !is_class)
		known = hash_find(&t->by_content, hash, i,
				  is_same_content(t, &t->types.data[*i], &e, m));
	if (known || t->types.count >= TYPES_MAX) {
		free(e.name);
		return known ? *known : TYPE_NONE;
	}
	e.first_member = (uint32_t)t->members.count;
	for (uint32_t i = 0; i < e.members; i++)
		*vec_add(&t->members) = m[i];
	*vec_add(&t->types) = e;
	return *hash_add(&t->by_content, hash) = (uint32_t)t->types.count - 1;
}

/* -- members -- */

/*
 * The offset of a member, or of a virtual base (DW_OP_dup is first) the distance of its slot from
 * the table: [dup, deref,] constant [, minus, deref, plus].
 */
static bool offset_in_location(const Dwarf_Block *block, uint64_t *out, bool *is_virtual)
{
	const uint8_t *p = block->data, *end = p + block->length;

	*is_virtual = p < end && *p == DW_OP_dup;
	while (p < end && (*p == DW_OP_dup || *p == DW_OP_deref))
		p++;
	if (p == end)
		return false;
	uint8_t op = *p++;

	if (op >= DW_OP_lit0 && op <= DW_OP_lit31) {
		*out = op - DW_OP_lit0;
		return true;
	}
	if ((op == DW_OP_const1u && end - p >= 1) || (op == DW_OP_const2u && end - p >= 2)) {
		*out = p[0] | (op == DW_OP_const2u ? (uint64_t)p[1] << 8 : 0);
		return true;
	}
	if (op != DW_OP_plus_uconst && op != DW_OP_constu)
		return false;
	*out = 0;
	for (unsigned shift = 0; p < end && shift < 64; shift += 7, p++) {
		*out |= (uint64_t)(*p & 0x7f) << shift;
		if (!(*p & 0x80))
			break;
	}
	return true;
}

/* False: none is given; *out is 0. */
static bool read_offset(Dwarf_Die *die, uint64_t *out, bool *is_virtual)
{
	Dwarf_Attribute attr;
	Dwarf_Block block;

	*is_virtual = false;
	*out = 0;
	if (die_number(die, DW_AT_data_member_location, out))
		return true;
	return dwarf_attr(die, DW_AT_data_member_location, &attr) &&
	       dwarf_formblock(&attr, &block) == 0 &&
	       offset_in_location(&block, out, is_virtual);
}

/* The size of the unit that a bit field is in, before DWARF 4. */
static uint64_t storage_size(Dwarf_Die *die)
{
	Dwarf_Die at = *die, next;
	uint64_t size = 0;

	for (int i = 0; i < 16 && !die_number(&at, DW_AT_byte_size, &size); i++) {
		if (!die_reference(&at, DW_AT_type, &next))
			break;
		at = next;
	}
	return size;
}

/* DWARF counts bits from the lowest at an offset; before version 4 from the highest of a unit. */
static void read_bits(Dwarf_Die *die, struct data_member *m)
{
	uint64_t size, offset, unit;

	if (!die_number(die, DW_AT_bit_size, &size) || size == 0 || size > 64)
		return;
	m->bit_size = (uint8_t)size;
	if (die_number(die, DW_AT_data_bit_offset, &offset)) {
		m->offset = offset / 8;
		m->bit_offset = offset % 8;
	} else if (die_number(die, DW_AT_bit_offset, &offset)) {
		unit = storage_size(die);
		if (unit > 8 || offset > unit * 8 || size > unit * 8 - offset)
			return;
		m->offset += (unit * 8 - offset - size) / 8;
		m->bit_offset = (unit * 8 - offset - size) % 8;
	}
}

/* That the source gives it: a power of two, or 0. */
static uint64_t given_alignment(Dwarf_Die *die)
{
	uint64_t given;

	if (!die->addr || !die_number(die, DW_AT_alignment, &given) || given > ALIGNMENT_MAX ||
	    (given & (given - 1)) != 0)
		return 0;
	return given;
}

static void add_member(struct type_table *t, Dwarf_Die *die, uint32_t variant, uint64_t value)
{
	bool is_base = dwarf_tag(die) == DW_TAG_inheritance, is_virtual, has_offset;
	struct data_member m = {.name = die_string(die, DW_AT_name), .variant = variant,
				.value = value};

	if (!is_base && (die_flag(die, DW_AT_external) || die_flag(die, DW_AT_declaration)))
		return; /* a static one */
	has_offset = read_offset(die, &m.offset, &is_virtual);
	m.flags = (uint16_t)((is_base ? MEMBER_BASE : 0) | (variant ? MEMBER_VARIANT : 0) |
			     (is_base && is_virtual ? MEMBER_VIRTUAL : 0));
	if (is_base && !has_offset)
		return;
	read_bits(die, &m);
	m.alignment = (uint32_t)given_alignment(die);
	if (!die_reference(die, DW_AT_type, &m.type_die))
		m.is_resolved = true;
	*vec_add(&t->reading) = m;
}

/* The parts of one variant. */
static void add_variant(struct type_table *t, struct debug_units *units, Dwarf_Die *die,
			uint32_t variant)
{
	uint64_t value = 0;
	bool has_value = die_number(die, DW_AT_discr_value, &value);
	struct child_dies below;

	debug_units_children(units, die, &below);
	for (size_t i = 0; i < below.list.count; i++) {
		struct child_die *c = &below.list.data[i];
		size_t before = t->reading.count;

		if (c->tag == DW_TAG_member)
			add_member(t, &c->die, variant, value);
		if (t->reading.count > before && !has_value)
			t->reading.data[before].flags |= MEMBER_DEFAULT;
	}
	vec_deinit(&below.list);
}

/* *discriminant_out: the number of that member among those from @first on, + 1. */
static void add_variants(struct type_table *t, struct debug_units *units, Dwarf_Die *die,
			 size_t first, uint32_t *discriminant_out)
{
	uint32_t variant = 0;
	struct child_dies below;
	Dwarf_Die discriminant;
	size_t before = t->reading.count;

	if (die_reference(die, DW_AT_discr, &discriminant))
		add_member(t, &discriminant, 0, 0);
	if (t->reading.count > before)
		*discriminant_out = (uint32_t)(t->reading.count - first);
	debug_units_children(units, die, &below);
	for (size_t i = 0; i < below.list.count; i++)
		if (below.list.data[i].tag == DW_TAG_variant)
			add_variant(t, units, &below.list.data[i].die, ++variant);
	vec_deinit(&below.list);
}

static void add_argument(struct type_table *t, Dwarf_Die *die, struct data_type *e)
{
	struct type_argument a = {0};

	a.is_resolved = !die_reference(die, DW_AT_type, &a.die);
	if (e->arguments == 0)
		e->first_argument = (uint32_t)t->arguments.count;
	e->arguments++;
	*vec_add(&t->arguments) = a;
}

/* Of a template with any number of them. */
static void add_pack(struct type_table *t, struct debug_units *units, Dwarf_Die *die,
		     struct data_type *e)
{
	struct child_dies below;

	debug_units_children(units, die, &below);
	for (size_t i = 0; i < below.list.count; i++)
		if (below.list.data[i].tag == DW_TAG_template_type_parameter)
			add_argument(t, &below.list.data[i].die, e);
	vec_deinit(&below.list);
}

/* Adds members and arguments of @die to @e. */
static void read_members(struct type_table *t, struct debug_units *units, Dwarf_Die *die,
			 struct data_type *e)
{
	size_t first = t->reading.count;
	struct child_dies below;

	debug_units_children(units, die, &below);
	for (size_t i = 0; i < below.list.count; i++) {
		struct child_die *c = &below.list.data[i];

		if (c->tag == DW_TAG_member || c->tag == DW_TAG_inheritance)
			add_member(t, &c->die, 0, 0);
		else if (c->tag == DW_TAG_variant_part)
			add_variants(t, units, &c->die, first, &e->discriminant);
		else if (c->tag == DW_TAG_template_type_parameter)
			add_argument(t, &c->die, e);
		else if (c->tag == DW_TAG_GNU_template_parameter_pack)
			add_pack(t, units, &c->die, e);
	}
	vec_deinit(&below.list);
	e->members = (uint32_t)(t->reading.count - first);
}

/* Whether the table's pointer is in @e itself, not only in a base. */
static bool has_own_table(const struct data_member *m, uint32_t members)
{
	for (uint32_t i = 0; i < members; i++)
		if (m[i].name && (strncmp(m[i].name, "_vptr", 5) == 0) && m[i].offset == 0)
			return true;
	return false;
}

/* -- from DIEs -- */

static uint32_t read_type(struct type_table *t, uint32_t origin, Dwarf_Die *die, uint32_t depth);

static uint32_t read_target(struct type_table *t, uint32_t origin, Dwarf_Die *die, uint32_t depth)
{
	Dwarf_Die target;

	return die_reference(die, DW_AT_type, &target) ?
		       read_type(t, origin, &target, depth + 1) : TYPE_NONE;
}

/* @name: what a typedef calls it; NULL = nothing. */
static uint32_t read_class(struct type_table *t, uint32_t origin, Dwarf_Die *die, const char *name)
{
	struct debug_units *units = t->origins.data[origin - 1].units;
	struct data_type e = {.die = *die, .origin = origin};
	size_t first = t->reading.count;
	const char *own = die_string(die, DW_AT_name);
	Dwarf_Die whole;

	if (die_reference(die, DW_AT_signature, &whole) && dwarf_tag(&whole) == dwarf_tag(die) &&
	    !dwarf_hasattr(&whole, DW_AT_signature)) /* it is in a unit of its own */
		return read_class(t, origin, &whole, name);
	e.kind = dwarf_tag(die) == DW_TAG_union_type ? DATA_UNION : DATA_STRUCT;
	die_number(die, DW_AT_byte_size, &e.size);
	e.name = debug_units_name(units, die, own ? own : name);
	if (die_flag(die, DW_AT_declaration) && e.name) {
		uint32_t found = type_table_find(t, units, e.name);

		if (found != TYPE_NONE) {
			free(e.name);
			return found;
		}
	}
	read_members(t, units, die, &e);
	const struct data_member *m = &t->reading.data[first];

	e.has_table = e.members && has_own_table(m, e.members);
	uint32_t type = get_type(t, e, m);

	t->reading.count = first;
	return type;
}

static uint32_t read_array(struct type_table *t, uint32_t origin, Dwarf_Die *die, uint32_t depth)
{
	uint64_t count[CHAIN_MAX];
	uint32_t dimensions = 0, type = read_target(t, origin, die, depth);
	struct child_dies below;

	debug_units_children(t->origins.data[origin - 1].units, die, &below);
	for (size_t i = 0; i < below.list.count; i++) {
		struct child_die *c = &below.list.data[i];
		uint64_t value = 0;

		if (c->tag != DW_TAG_subrange_type || dimensions == CHAIN_MAX)
			continue;
		if (!die_number(&c->die, DW_AT_count, &value) &&
		    die_number(&c->die, DW_AT_upper_bound, &value))
			value++;
		count[dimensions++] = value;
	}
	vec_deinit(&below.list);
	if (dimensions == 0)
		count[dimensions++] = 0;
	while (dimensions-- > 0)
		type = type_table_array_of(t, type, count[dimensions]);
	return type;
}

static uint32_t read_enum(struct type_table *t, uint32_t origin, Dwarf_Die *die, uint32_t depth)
{
	struct data_type e = {.kind = DATA_ENUM, .die = *die, .origin = origin};

	die_number(die, DW_AT_byte_size, &e.size);
	e.target = read_target(t, origin, die, depth);
	if (e.size == 0)
		e.size = type_table_get(t, e.target)->size;
	e.name = debug_units_name(t->origins.data[origin - 1].units, die, NULL);
	return get_type(t, e, NULL);
}

static uint32_t read_base(struct type_table *t, uint32_t origin, Dwarf_Die *die)
{
	struct data_type e = {.kind = DATA_BASE, .origin = origin, .die = *die};
	const char *name = die_string(die, DW_AT_name);
	uint64_t encoding = 0;

	die_number(die, DW_AT_byte_size, &e.size);
	die_number(die, DW_AT_encoding, &encoding);
	e.is_signed = encoding == DW_ATE_signed || encoding == DW_ATE_signed_char;
	e.name = name ? xstrdup(name) : NULL;
	return get_type(t, e, NULL);
}

/* A typedef or a qualifier. */
static uint32_t read_through(struct type_table *t, uint32_t origin, Dwarf_Die *die, uint32_t depth)
{
	Dwarf_Die target;

	if (!die_reference(die, DW_AT_type, &target))
		return TYPE_NONE;
	int tag = dwarf_tag(&target);
	bool is_class = tag == DW_TAG_structure_type || tag == DW_TAG_class_type ||
			tag == DW_TAG_union_type;

	if (dwarf_tag(die) == DW_TAG_typedef && is_class && !die_string(&target, DW_AT_name))
		return read_class(t, origin, &target, die_string(die, DW_AT_name));
	return read_type(t, origin, &target, depth + 1);
}

/* A pointer's type; Rust's have names, too. */
static uint32_t read_pointer(struct type_table *t, uint32_t origin, Dwarf_Die *die, uint32_t depth)
{
	return type_table_pointer_to(t, read_target(t, origin, die, depth));
}

/* To a function it has two words: the function, and what is added to "this". */
static uint32_t read_member_pointer(struct type_table *t, Dwarf_Die *die)
{
	Dwarf_Die target;
	bool is_function = die_reference(die, DW_AT_type, &target) &&
			   dwarf_tag(&target) == DW_TAG_subroutine_type;

	return get_type(t, (struct data_type){.kind = DATA_MEMBER_POINTER,
					      .size = is_function ? 2 * WORD : WORD}, NULL);
}

static uint32_t read_new(struct type_table *t, uint32_t origin, Dwarf_Die *die, uint32_t depth)
{
	switch (dwarf_tag(die)) {
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
	case DW_TAG_union_type:
	case DW_TAG_interface_type:
		return read_class(t, origin, die, NULL);
	case DW_TAG_pointer_type:
	case DW_TAG_reference_type:
	case DW_TAG_rvalue_reference_type:
		return read_pointer(t, origin, die, depth);
	case DW_TAG_array_type:
		return read_array(t, origin, die, depth);
	case DW_TAG_enumeration_type:
		return read_enum(t, origin, die, depth);
	case DW_TAG_typedef:
	case DW_TAG_const_type:
	case DW_TAG_volatile_type:
	case DW_TAG_restrict_type:
	case DW_TAG_atomic_type:
	case DW_TAG_immutable_type:
	case DW_TAG_packed_type:
		return read_through(t, origin, die, depth);
	case DW_TAG_subroutine_type:
		return get_type(t, (struct data_type){.kind = DATA_CODE}, NULL);
	case DW_TAG_ptr_to_member_type:
		return read_member_pointer(t, die);
	case DW_TAG_base_type:
		return read_base(t, origin, die);
	default:
		return TYPE_NONE;
	}
}

static uint32_t read_type(struct type_table *t, uint32_t origin, Dwarf_Die *die, uint32_t depth)
{
	uint64_t hash = hash_u64((uintptr_t)die->addr);
	const struct known_die *known = hash_find(&t->by_die, hash, e, e->addr == die->addr);

	if (known || depth > CHAIN_MAX)
		return known ? known->type : TYPE_NONE;
	*hash_add(&t->by_die, hash) = (struct known_die){.addr = die->addr};
	uint32_t type = read_new(t, origin, die, depth);
	struct known_die *e = hash_find(&t->by_die, hash, k, k->addr == die->addr);

	e->type = type;
	return type;
}

static uint32_t origin_of(const struct type_table *t, const struct debug_units *units)
{
	for (size_t i = 0; i < t->origins.count; i++)
		if (t->origins.data[i].units == units)
			return (uint32_t)i + 1;
	return 0;
}

static uint32_t type_of_die(struct type_table *t, struct debug_units *units, Dwarf_Die *die)
{
	uint32_t origin = origin_of(t, units);

	return origin ? read_type(t, origin, die, 0) : TYPE_NONE;
}

uint32_t type_table_read_of(struct type_table *t, struct debug_units *units, Dwarf_Die *die)
{
	Dwarf_Die at = *die, next;

	/* the definition of a variable may leave its type to the declaration */
	for (int i = 0; i < 16 && !dwarf_hasattr(&at, DW_AT_type); i++) {
		if (!die_reference(&at, DW_AT_specification, &next) &&
		    !die_reference(&at, DW_AT_abstract_origin, &next))
			return TYPE_NONE;
		at = next;
	}
	return die_reference(&at, DW_AT_type, &next) ? type_of_die(t, units, &next) : TYPE_NONE;
}

uint32_t type_table_find(struct type_table *t, struct debug_units *near, const char *name)
{
	Dwarf_Die die;

	if (near && debug_units_find_type(near, name, &die))
		return type_of_die(t, near, &die);
	for (size_t i = 0; i < t->origins.count; i++) {
		struct debug_units *units = t->origins.data[i].units;

		if (units != near && debug_units_find_type(units, name, &die))
			return type_of_die(t, units, &die);
	}
	return TYPE_NONE;
}

/* -- made of others -- */

uint32_t type_table_pointer_to(struct type_table *t, uint32_t target)
{
	return get_type(t, (struct data_type){
		.kind = DATA_POINTER, .size = WORD, .target = target}, NULL);
}

uint32_t type_table_array_of(struct type_table *t, uint32_t element, uint64_t count)
{
	struct data_type e = {.kind = DATA_ARRAY, .target = element, .count = count};

	if (__builtin_mul_overflow(type_table_get(t, element)->size, count, &e.size))
		return TYPE_NONE;
	return get_type(t, e, NULL);
}

uint32_t type_table_declare(struct type_table *t, const char *name, uint64_t size,
			    const struct data_member *member, uint32_t members)
{
	struct data_type e = {.kind = DATA_STRUCT, .name = xstrdup(name), .size = size,
			      .members = members};

	return get_type(t, e, member);
}

void type_table_set_member(struct type_table *t, uint32_t type, uint32_t i, uint32_t member_type)
{
	t->members.data[type_table_get(t, type)->first_member + i].type = member_type;
}

static uint32_t origin_number(const struct type_table *t, uint32_t type)
{
	return type_table_get(t, type)->origin;
}

/* The bytes that @m of type @e has. */
static uint64_t member_size(const struct data_member *m, const struct data_type *e)
{
	return m->bit_size ? (m->bit_offset + m->bit_size + 7u) / 8 : e->size;
}

uint32_t type_table_member_type(struct type_table *t, uint32_t type, uint32_t i)
{
	uint32_t index = type_table_get(t, type)->first_member + i;
	struct data_member *m = &t->members.data[index];

	if (m->is_resolved)
		return m->type;
	m->is_resolved = true; /* also while it is being read, and if it is none */
	Dwarf_Die die = m->type_die;
	uint32_t found = read_type(t, origin_number(t, type), &die, 0);
	uint64_t whole = type_table_get(t, type)->size, size;

	m = &t->members.data[index];
	size = member_size(m, type_table_get(t, found));
	if (m->flags & MEMBER_VIRTUAL || (m->offset <= whole && size <= whole - m->offset))
		m->type = found;
	return m->type;
}

uint32_t type_table_argument(struct type_table *t, uint32_t type, uint32_t i)
{
	const struct data_type *e = type_table_get(t, type);

	if (i >= e->arguments)
		return TYPE_NONE;
	uint32_t index = e->first_argument + i;
	struct type_argument *a = &t->arguments.data[index];

	if (a->is_resolved)
		return a->type;
	a->is_resolved = true;
	Dwarf_Die die = a->die;
	uint32_t found = read_type(t, e->origin, &die, 0);

	return t->arguments.data[index].type = found;
}

static uint64_t alignment_within(struct type_table *t, uint32_t type, uint32_t depth);

/*
 * What typedefs on the way to a member's type say, at least @least. A vector has its size as its
 * alignment; 0: it is an element of an array, whose size is not at hand.
 */
static uint64_t alignment_on_way(struct type_table *t, struct data_member *m, uint64_t least)
{
	Dwarf_Die at = m->type_die, next;

	for (int i = 0; i < 16 && at.addr; i++, at = next) {
		int tag = dwarf_tag(&at);

		least = MAX(least, given_alignment(&at));
		if (tag == DW_TAG_array_type && die_flag(&at, DW_AT_GNU_vector))
			return i == 0 || type_table_get(t, m->type)->kind == DATA_ARRAY ?
				       MAX(least, type_table_get(t, m->type)->size) : 0;
		if (tag != DW_TAG_typedef && tag != DW_TAG_const_type &&
		    tag != DW_TAG_volatile_type && tag != DW_TAG_atomic_type)
			break;
		if (!die_reference(&at, DW_AT_type, &next))
			break;
	}
	return least;
}

static uint64_t member_alignment(struct type_table *t, uint32_t type, uint32_t i, uint32_t depth)
{
	uint64_t own = alignment_within(t, type_table_member_type(t, type, i), depth);
	struct data_member m = *type_table_member(t, type, i);

	return own ? MAX(alignment_on_way(t, &m, own), (uint64_t)m.alignment) : 0;
}

static uint64_t base_alignment(const struct data_type *e)
{
	uint64_t encoding = 0, size = e->size;
	Dwarf_Die die = e->die;

	if (e->kind == DATA_MEMBER_POINTER)
		return WORD;
	if (die.addr && die_number(&die, DW_AT_encoding, &encoding) &&
	    encoding == DW_ATE_complex_float)
		size /= 2;
	return size && size <= 16 && (size & (size - 1)) == 0 ? size : 1;
}

static uint64_t alignment_within(struct type_table *t, uint32_t type, uint32_t depth)
{
	const struct data_type *e = type_table_get(t, type);

	if (depth == 0)
		return 0;
	if (e->kind == DATA_ARRAY)
		return alignment_within(t, e->target, depth - 1);
	if (e->kind != DATA_STRUCT && e->kind != DATA_UNION)
		return base_alignment(e);
	Dwarf_Die die = e->die;
	uint64_t most = MAX(given_alignment(&die), UINT64_C(1));

	for (uint32_t i = 0, count = e->members; i < count; i++) {
		if (type_table_member(t, type, i)->flags & MEMBER_VIRTUAL)
			continue;
		uint64_t one = member_alignment(t, type, i, depth - 1);

		const struct data_member *m = type_table_member(t, type, i);

		if (one == 0 || (die.addr && !m->bit_size && m->offset % one != 0))
			return 0; /* it is packed */
		most = MAX(most, one);
	}
	return !die.addr || type_table_get(t, type)->size % most == 0 ? most : 0;
}

uint64_t type_table_alignment(struct type_table *t, uint32_t type)
{
	return alignment_within(t, type, 16);
}

uint64_t type_table_member_alignment(struct type_table *t, uint32_t type, uint32_t i)
{
	return member_alignment(t, type, i, 15);
}

/* -- text -- */

/* The declarators behind and before a type's name; "*", "[16]". */
char *type_table_name(struct type_table *t, uint32_t type)
{
	char *after = xstrdup("");

	for (uint32_t i = 0; i < CHAIN_MAX; i++) {
		const struct data_type *e = type_table_get(t, type);
		char *old = after;

		if (e->kind == DATA_POINTER)
			after = xasprintf("*%s", old);
		else if (e->kind == DATA_ARRAY)
			after = e->count ? xasprintf("[%" PRIu64 "]%s", e->count, old) :
					   xasprintf("[]%s", old);
		else
			break;
		free(old);
		type = e->target;
	}
	const struct data_type *e = type_table_get(t, type);
	const char *name = e->name ? e->name : type == TYPE_NONE ? "void" :
			   e->kind == DATA_CODE ? "code" : e->kind == DATA_UNION ? "union" :
			   e->kind == DATA_ENUM ? "enum" : "struct";
	char *out = xasprintf("%s%s%s", name, *after == '*' ? " " : "", after);

	free(after);
	return out;
}

/* Adds a member's part to a path. Frees what was there. */
static char *add_name(char *path, const char *name)
{
	char *out = xasprintf("%s%s%s", path, *path ? "." : "", name);

	free(path);
	return out;
}

static char *add_text(char *path, const char *text)
{
	char *out = xasprintf("%s%s", path, text);

	free(path);
	return out;
}

static char *add_index(char *path, uint64_t index, const struct type_path_form *form)
{
	char text[32];

	snprintf(text, sizeof(text), "[%" PRIu64 "]", index);
	return add_text(path, form && form->any_index ? "[*]" : text);
}

/*
 * The member of @type that has @offset: the smallest one that does. NONE if none has it.
 */
static uint32_t member_at(struct type_table *t, uint32_t type, uint64_t offset)
{
	uint32_t best = UINT32_MAX, count = type_table_get(t, type)->members;
	uint64_t best_size = UINT64_MAX;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t inner = type_table_member_type(t, type, i);
		const struct data_member *m = type_table_member(t, type, i);
		const struct data_type *e = type_table_get(t, inner);
		bool is_open = e->kind == DATA_ARRAY && e->count == 0;
		uint64_t own = MAX(member_size(m, e), UINT64_C(1));
		uint64_t size = is_open ? UINT64_MAX - m->offset : own;

		if (m->flags & MEMBER_VIRTUAL || m->offset > offset || offset - m->offset >= size)
			continue;
		if (size < best_size) {
			best = i;
			best_size = size;
		}
	}
	return best;
}

char *type_table_path(struct type_table *t, uint32_t type, uint64_t offset,
		      const struct type_path_form *form)
{
	char *path = xstrdup("");

	for (uint32_t level = 0; level < PATH_MAX_LEVELS; level++) {
		const char *whole = form && form->whole ? form->whole(form->ctx, type) : NULL;
		const struct data_type *e = type_table_get(t, type);

		if (whole)
			return add_text(path, whole);
		if (e->kind == DATA_ARRAY) {
			uint64_t each = type_table_get(t, e->target)->size;

			type = e->target;
			if (each == 0)
				break;
			path = add_index(path, offset / each, form);
			offset %= each;
			continue;
		}
		if (e->kind != DATA_STRUCT && e->kind != DATA_UNION)
			break;
		uint32_t i = member_at(t, type, offset);

		if (i == UINT32_MAX)
			break;
		const struct data_member *m = type_table_member(t, type, i);

		if (m->name && !(m->flags & MEMBER_BASE))
			path = add_name(path, m->name);
		offset -= m->offset;
		type = type_table_member_type(t, type, i);
	}
	return path;
}

/* -- members by name -- */

#define BASES_MAX 8u
#define BASE_LEVELS 10u         /* std::variant has 6 */
#define BASES_SEARCHED 200u

/* A name that is looked for in a struct, and in so many levels of its bases. */
struct member_name {
	const char *text;
	size_t length;
	uint32_t levels;
	uint32_t *budget;       /* of bases that may still be looked at */
};

/* Member @n of @type or its bases. False: there is none. */
static bool find_member(struct type_table *t, uint32_t type, struct member_name n,
			struct member_place *out)
{
	struct member_place inner;

	for (uint32_t i = 0; i < type_table_get(t, type)->members; i++) {
		const struct data_member *m = type_table_member(t, type, i);

		if (m->name && strncmp(m->name, n.text, n.length) == 0 && !m->name[n.length]) {
			struct member_place found = {.offset = m->offset, .bit_size = m->bit_size};

			found.type = type_table_member_type(t, type, i);
			*out = found;
			return true;
		}
	}
	static const uint16_t no = MEMBER_VIRTUAL | MEMBER_VARIANT;

	if (n.levels-- == 0 || *n.budget == 0)
		return false;
	--*n.budget;
	for (uint32_t i = 0; i < MIN(type_table_get(t, type)->members, BASES_MAX); i++) {
		const struct data_member *m = type_table_member(t, type, i);
		bool is_open = (m->flags & MEMBER_BASE || !m->name) && !(m->flags & no);
		uint64_t offset = m->offset;
		uint32_t base = is_open ? type_table_member_type(t, type, i) : TYPE_NONE;

		if (base == TYPE_NONE || !find_member(t, base, n, &inner))
			continue;
		inner.offset += offset;
		*out = inner;
		return true;
	}
	return false;
}

/* "a.b.c" in @type, @length characters. */
static bool find_path(struct type_table *t, uint32_t type, const char *path, size_t length,
		      struct member_place *out)
{
	struct member_place whole = {.type = type}, next;

	while (length > 0) {
		size_t part = strcspn(path, ".");

		part = MIN(part, length);
		uint32_t budget = BASES_SEARCHED;
		const struct member_name n = {path, part, BASE_LEVELS, &budget};

		if (part == 0 || !find_member(t, whole.type, n, &next))
			return false;
		next.offset += whole.offset;
		whole = next;
		length -= MIN(part + 1, length);
		path += part + 1;
	}
	*out = whole;
	return true;
}

bool type_table_find_place(struct type_table *t, uint32_t type, const char *path,
			   struct member_place *out)
{
	while (path && *path) {
		size_t length = strcspn(path, "|");

		if (find_path(t, type, path, length, out))
			return true;
		path += length + (path[length] == '|');
	}
	return false;
}
