/*
 * The inlined calls of a compilation unit: a walk over its DIEs, the names of functions, and their
 * ranges.
 */
#include "symbols/debug_info.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <gelf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/types.h"
#include "symbols/demangle.h"

/*
 * A sorted array whose elements have parents. Consider a sweep from low to high addresses with a
 * stack of open ranges: a range's parent is the range below it on the stack when it is pushed. A
 * range is popped only when a later one begins at or after its end. So everything that contains an
 * address is in the chain of parents of the last range that begins at or before it, even if ranges
 * overlap without nesting.
 */

void ranges_add(struct ranges *r, uint64_t lo, uint64_t hi, uint32_t value)
{
	if (lo >= hi)
		return;
	*vec_add(r) = (struct range){.lo = lo, .hi = hi, .value = value};
	r->is_sorted = false;
}

/* Outer before inner: lower start, then higher end, then lower value. */
static int compare(const void *left, const void *right)
{
	const struct range *a = left, *b = right;
	if (a->lo != b->lo)
		return a->lo < b->lo ? -1 : 1;
	if (a->hi != b->hi)
		return a->hi > b->hi ? -1 : 1;
	return a->value < b->value ? -1 : a->value > b->value;
}

void ranges_sort(struct ranges *r)
{
	vec_sort(r, compare);
	uint32_t top = 0;
	for (size_t i = 0; i < r->count; i++) {
		while (top && r->data[top - 1].hi <= r->data[i].lo)
			top = r->data[top - 1].parent;
		r->data[i].parent = top;
		top = (uint32_t)i + 1;
	}
	r->is_sorted = true;
}

static const struct range *first_holding(const struct ranges *r, uint32_t index, uint64_t addr)
{
	while (index && r->data[index - 1].hi <= addr)
		index = r->data[index - 1].parent;
	return index ? &r->data[index - 1] : NULL;
}

const struct range *ranges_find(const struct ranges *r, uint64_t addr)
{
	CHECK(r->is_sorted || r->count == 0);
	return first_holding(r, (uint32_t)vec_search(r, e, e->lo <= addr), addr);
}

const struct range *ranges_outer(const struct ranges *r, const struct range *inner, uint64_t addr)
{
	return first_holding(r, inner->parent, addr);
}

void ranges_deinit(struct ranges *r)
{
	vec_deinit(r);
}

/*
 * The DIEs of one unit in file order, each once. libdw's step to the next sibling walks through all
 * children again, and follows backward references endlessly on broken input; this walk only goes
 * forward.
 */

/* The part of a DIE that its abbreviation defines. */
struct die_shape {
	bool is_known;
	bool has_children;
	uint16_t tag;      /* DW_TAG_* */
	uint32_t first_form, form_count; /* index into die_walk.forms */
};

struct die_form {
	uint16_t attribute, form; /* DW_AT_*, DW_FORM_* */
};

struct die_walk {
	Dwarf_Die root;
	const uint8_t *unit;     /* header of the unit; references are relative to it */
	const uint8_t *pos, *end; /* the next DIE; the end of the unit */
	uint8_t address_size, offset_size;
	uint16_t version;
	uint32_t depth;          /* of the last DIE returned; 1 = child of the root */
	uint32_t open;           /* levels that are still open */
	bool (*is_entered)(int tag); /* not used if there is a target */
	const uint8_t *target;   /* the DIE searched for: those that end before it may be skipped */
	/* by abbreviation code */
	struct { struct die_shape *data; size_t count, capacity; } shapes;
	struct { struct die_form *data; size_t count, capacity; } forms;
};

/*
 * A DIE is an abbreviation code followed by its attributes without separators. The next one is
 * found by adding up the sizes of the attributes' forms (DWARF 5, 7.5). libdw reads the
 * abbreviations, once each; everything else is bounds and sizes.
 */

/* Codes are small and dense in practice; a unit with larger ones is skipped. */
#define CODE_MAX 1000000

/* More attributes than any compiler generates. */
#define FORM_COUNT_MAX 1000

/* The end of the section data that contains @addr; NULL if there is none. */
static const uint8_t *section_end(Dwarf *dwarf, const uint8_t *addr)
{
	Elf *elf = dwarf_getelf(dwarf);
	size_t names;
	if (!elf || elf_getshdrstrndx(elf, &names) != 0)
		return NULL;
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn));) {
		GElf_Shdr header;
		if (!gelf_getshdr(scn, &header))
			continue;
		const char *name = elf_strptr(elf, names, header.sh_name);
		if (!name || !strstr(name, "debug_info"))
			continue;
		Elf_Data *data = elf_getdata(scn, NULL);
		const uint8_t *start = data ? data->d_buf : NULL;
		if (start && addr >= start && addr < start + data->d_size)
			return start + data->d_size;
	}
	return NULL;
}

static uint64_t read_uleb(struct die_walk *w)
{
	uint64_t value = 0;
	for (unsigned shift = 0; w->pos < w->end; shift += 7) {
		uint8_t byte = *w->pos++;
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			break;
	}
	return value;
}

/* An unsigned number of @size bytes, little-endian; 0 at the end of the unit. */
static uint64_t read_fixed(struct die_walk *w, size_t size)
{
	uint64_t value = 0;
	if ((size_t)(w->end - w->pos) < size) {
		w->pos = w->end;
		return 0;
	}
	memcpy(&value, w->pos, size);
	w->pos += size;
	return value;
}

static void skip(struct die_walk *w, uint64_t size)
{
	w->pos = (uint64_t)(w->end - w->pos) < size ? w->end : w->pos + size;
}

/* The size of a value of @form; -1 if it is stored in the value itself. */
static int fixed_size(const struct die_walk *w, uint16_t form)
{
	switch (form) {
	case DW_FORM_flag_present: case DW_FORM_implicit_const:
		return 0;
	case DW_FORM_data1:
	case DW_FORM_ref1:
	case DW_FORM_flag:
	case DW_FORM_strx1:
	case DW_FORM_addrx1:
		return 1;
	case DW_FORM_data2: case DW_FORM_ref2: case DW_FORM_strx2: case DW_FORM_addrx2:
		return 2;
	case DW_FORM_strx3: case DW_FORM_addrx3:
		return 3;
	case DW_FORM_data4:
	case DW_FORM_ref4:
	case DW_FORM_strx4:
	case DW_FORM_addrx4:
	case DW_FORM_ref_sup4:
		return 4;
	case DW_FORM_data8: case DW_FORM_ref8: case DW_FORM_ref_sig8: case DW_FORM_ref_sup8:
		return 8;
	case DW_FORM_data16:
		return 16;
	case DW_FORM_addr:
		return w->address_size;
	case DW_FORM_ref_addr:
		return w->version == 2 ? w->address_size : w->offset_size;
	case DW_FORM_strp: case DW_FORM_line_strp: case DW_FORM_sec_offset: case DW_FORM_strp_sup:
	case DW_FORM_GNU_ref_alt: case DW_FORM_GNU_strp_alt:
		return w->offset_size;
	default:
		return -1;
	}
}

/* Skips a value of @form; false for an unknown form. */
static bool skip_value(struct die_walk *w, uint16_t form)
{
	if (form == DW_FORM_indirect)
		form = (uint16_t)read_uleb(w);
	int size = fixed_size(w, form);
	if (size >= 0) {
		skip(w, (uint64_t)size);
		return true;
	}
	switch (form) {
	case DW_FORM_string:
		skip(w, strnlen((const char *)w->pos, (size_t)(w->end - w->pos)) + 1);
		return true;
	case DW_FORM_block1:
		skip(w, read_fixed(w, 1));
		return true;
	case DW_FORM_block2:
		skip(w, read_fixed(w, 2));
		return true;
	case DW_FORM_block4:
		skip(w, read_fixed(w, 4));
		return true;
	case DW_FORM_block: case DW_FORM_exprloc:
		skip(w, read_uleb(w));
		return true;
	case DW_FORM_udata:
	case DW_FORM_sdata:
	case DW_FORM_ref_udata:
	case DW_FORM_strx:
	case DW_FORM_addrx:
	case DW_FORM_loclistx:
	case DW_FORM_rnglistx:
	case DW_FORM_GNU_addr_index:
	case DW_FORM_GNU_str_index:
		read_uleb(w);
		return true;
	default:
		return false;
	}
}

/*
 * Reads the abbreviation of @die into @shape. The last attribute is where libdw finds no more: its
 * dwarf_getattrcnt miscounts implicit constants (0.188).
 */
static bool read_shape(struct die_walk *w, Dwarf_Die *die, struct die_shape *shape)
{
	unsigned int attribute, form;
	int tag = dwarf_tag(die);
	if (tag <= 0 || !die->abbrev)
		return false;
	uint32_t first = (uint32_t)w->forms.count, count = 0;
	while (count < FORM_COUNT_MAX &&
	       dwarf_getabbrevattr_data(die->abbrev, count, &attribute, &form, NULL, NULL) == 0) {
		*vec_add(&w->forms) = (struct die_form){(uint16_t)attribute, (uint16_t)form};
		count++;
	}
	*shape = (struct die_shape){
		.is_known = true, .has_children = dwarf_abbrevhaschildren(die->abbrev) > 0,
		.tag = (uint16_t)tag, .first_form = first, .form_count = count,
	};
	return true;
}

/* The shape of the DIE at @die with code @code; NULL if it cannot be read. */
static const struct die_shape *get_shape(struct die_walk *w, Dwarf_Die *die, uint64_t code)
{
	if (code > CODE_MAX)
		return NULL;
	vec_reserve(&w->shapes, code + 1);
	while (w->shapes.count <= code)
		*vec_add(&w->shapes) = (struct die_shape){0};
	struct die_shape *shape = &w->shapes.data[code];
	return shape->is_known || read_shape(w, die, shape) ? shape : NULL;
}

static bool die_walk_next(struct die_walk *w, Dwarf_Die *die_out, int *tag_out);

/*
 * Starts below @cu_die. Children of a DIE whose tag @is_entered rejects may be skipped (if the file
 * contains the address of the sibling).
 */
static void die_walk_init(struct die_walk *w, const Dwarf_Die *cu_die, bool (*is_entered)(int tag))
{
	*w = (struct die_walk){.root = *cu_die, .is_entered = is_entered};
	Dwarf *dwarf = dwarf_cu_getdwarf(cu_die->cu);
	Dwarf_Off in_unit = dwarf_cuoffset(&w->root), next;
	Dwarf_Off header = dwarf_dieoffset(&w->root) - in_unit;
	Dwarf_Half version;
	size_t header_size;
	if (dwarf_next_unit(dwarf, header, &next, &header_size, &version, NULL, &w->address_size,
			    &w->offset_size, NULL, NULL) != 0)
		return;
	w->version = version;
	const uint8_t *start = w->root.addr, *end = section_end(dwarf, start);
	if (!end)
		return;
	w->unit = start - in_unit;
	w->pos = start;
	w->end = end;
	if (next > header && next - header < (uint64_t)(end - w->unit))
		w->end = w->unit + (next - header);
	Dwarf_Die root;
	int tag;
	if (w->pos >= w->end || !die_walk_next(w, &root, &tag)) /* skips the root itself */
		w->pos = w->end;
}

/* Skips the attributes of a DIE; *sibling_out: its next sibling, or NULL if not given. */
static bool skip_attributes(struct die_walk *w, const struct die_shape *shape,
			    const uint8_t **sibling_out)
{
	*sibling_out = NULL;
	for (uint32_t i = 0; i < shape->form_count; i++) {
		const struct die_form *f = &w->forms.data[shape->first_form + i];
		if (f->attribute == DW_AT_sibling &&
		    (f->form == DW_FORM_ref4 || f->form == DW_FORM_ref2)) {
			uint64_t offset = read_fixed(w, f->form == DW_FORM_ref4 ? 4 : 2);
			if (offset < (uint64_t)(w->end - w->unit))
				*sibling_out = w->unit + offset;
		} else if (!skip_value(w, f->form)) {
			return false;
		}
	}
	return true;
}

/* The next DIE and its tag; false at the end and at the first invalid byte. */
static bool die_walk_next(struct die_walk *w, Dwarf_Die *die_out, int *tag_out)
{
	while (w->pos < w->end) {
		const uint8_t *start = w->pos, *sibling;
		uint64_t code = read_uleb(w);
		if (code == 0) { /* the end of a level */
			if (w->open <= 1)
				break;
			w->open--;
			continue;
		}
		Dwarf_Die die = {.addr = (void *)(uintptr_t)start, .cu = w->root.cu};
		const struct die_shape *shape = get_shape(w, &die, code);
		if (!shape || !skip_attributes(w, shape, &sibling))
			break;
		*die_out = die;
		*tag_out = shape->tag;
		w->depth = w->open;
		if (shape->has_children && sibling && sibling > w->pos && w->open > 0 &&
		    (w->target ? sibling <= w->target : !w->is_entered(shape->tag)))
			w->pos = sibling;
		else if (shape->has_children)
			w->open++;
		return true;
	}
	w->pos = w->end;
	return false;
}

static void die_walk_deinit(struct die_walk *w)
{
	vec_deinit(&w->shapes);
	vec_deinit(&w->forms);
}

/*
 * The qualified name of a function by its DIE, as the symbol table would have it:
 *
 *	std::map<int, int>::operator[](int const&)   from DW_AT_linkage_name, demangled
 *	main::{lambda}::operator()                   without it, from the enclosing DIEs
 *
 * DW_AT_name alone ("operator[]") does not say which function is meant.
 */

/*
 * Follows two chains: from an instance to its abstract definition (DW_AT_abstract_origin,
 * DW_AT_specification), which has the name, and from the DIE with the name to its enclosing scopes.
 * A DIE has no reference to its parent, so the scopes are found by a walk through the unit,
 * skipping everything that ends before the DIE.
 */

/* Longer than the chains and scopes that compilers generate. */
#define CHAIN_MAX 16
#define SCOPES_MAX 64
#define FUNCTIONS_MAX 8 /* functions nested in functions */

/* The results of following references. Strings are in libdw's memory; NULL = unknown. */
struct names {
	const char *linkage;
	const char *plain;
	Dwarf_Die owner;       /* size of plain */
};

struct scopes {
	Dwarf_Die die[SCOPES_MAX]; /* outermost first */
	int tag[SCOPES_MAX];
	size_t count;
};

static const char *read_string(Dwarf_Die *die, unsigned attribute)
{
	Dwarf_Attribute attr;

	/* libdw 0.188 resolves a strp_sup in the wrong file */
	if (!dwarf_attr(die, attribute, &attr) || attr.form == DW_FORM_strp_sup)
		return NULL;
	return dwarf_formstring(&attr);
}

static bool follow(Dwarf_Die *die)
{
	Dwarf_Attribute attr;

	if (!dwarf_attr(die, DW_AT_abstract_origin, &attr) &&
	    !dwarf_attr(die, DW_AT_specification, &attr))
		return false;
	return dwarf_formref_die(&attr, die);
}

static void read_names(const Dwarf_Die *start, struct names *out)
{
	Dwarf_Die die = *start;

	*out = (struct names){0};
	for (int i = 0; i < CHAIN_MAX; i++) {
		if (!out->linkage)
			out->linkage = read_string(&die, DW_AT_linkage_name);
		if (!out->linkage)
			out->linkage = read_string(&die, DW_AT_MIPS_linkage_name);
		if (!out->plain) {
			out->plain = read_string(&die, DW_AT_name);
			out->owner = die;
		}
		if (!follow(&die))
			return;
	}
}

/* Walks from the unit's root to @die. */
static void find_scopes(const Dwarf_Die *die, Dwarf_Die *cu_die, struct scopes *out)
{
	struct die_walk walk;
	Dwarf_Die at;
	int tag;

	out->count = 0;
	die_walk_init(&walk, cu_die, NULL);
	walk.target = die->addr;
	while (die_walk_next(&walk, &at, &tag) && walk.depth <= SCOPES_MAX) {
		if (at.addr == die->addr) {
			out->count = walk.depth - 1;
			break;
		}
		out->die[walk.depth - 1] = at;
		out->tag[walk.depth - 1] = tag;
	}
	die_walk_deinit(&walk);
}

static char *name_within(const Dwarf_Die *die, unsigned functions);

/* Names an anonymous class after a member: GCC does not name the classes of lambdas. */
static const char *unnamed_class(const char *inner)
{
	return strcmp(inner, "operator()") == 0 ? "{lambda}" : "{unnamed}";
}

/* Adds the scope to @inner, a name within it; NULL = no change. */
static char *scope_name(Dwarf_Die *die, int tag, const char *inner, unsigned functions)
{
	const char *name;

	switch (tag) {
	case DW_TAG_subprogram:
		return name_within(die, functions + 1);
	case DW_TAG_namespace:
		name = read_string(die, DW_AT_name);
		return xstrdup(name ? name : "(anonymous namespace)");
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_module:
		name = read_string(die, DW_AT_name);
		return xstrdup(name ? name : unnamed_class(inner));
	default:
		return NULL;
	}
}

/* C has no scopes in names. */
static bool has_scopes(Dwarf_Die *cu_die)
{
	switch (dwarf_srclang(cu_die)) {
	case DW_LANG_C89:
	case DW_LANG_C:
	case DW_LANG_C99:
	case DW_LANG_C11:
	case DW_LANG_Mips_Assembler:
		return false;
	default:
		return true;
	}
}

/* @plain, the name of @die, qualified with the names of its enclosing scopes. */
static char *qualify(const Dwarf_Die *die, const char *plain, unsigned functions)
{
	char *out = xstrdup(plain);
	struct scopes scopes;
	Dwarf_Die owner = *die, cu_die;

	if (functions > FUNCTIONS_MAX || !dwarf_diecu(&owner, &cu_die, NULL, NULL) ||
	    !has_scopes(&cu_die))
		return out;
	find_scopes(die, &cu_die, &scopes);
	for (size_t i = scopes.count; i-- > 0;) {
		char *inner = out;
		_cleanup_free_ char *scope =
			scope_name(&scopes.die[i], scopes.tag[i], inner, functions);

		if (!scope)
			continue;
		out = xasprintf("%s::%s", scope, inner);
		free(inner);
		if (scopes.tag[i] == DW_TAG_subprogram) /* already qualified */
			break;
	}
	return out;
}

/* @functions: number of functions nested in @die so far. */
static char *name_within(const Dwarf_Die *die, unsigned functions)
{
	struct names names;

	read_names(die, &names);
	char *whole = names.linkage ? demangle(names.linkage) : NULL;

	if (whole || !names.plain)
		return whole;
	return qualify(&names.owner, names.plain, functions);
}

/*
 * @die: a function, an inlined call, or an instance of either. @no_demangle: only DW_AT_name, as in
 * Massif. NULL = unknown. The caller frees it.
 */
static char *die_function_name(const Dwarf_Die *die, bool no_demangle)
{
	struct names names;

	if (!no_demangle)
		return name_within(die, 0);
	read_names(die, &names);
	return names.plain ? xstrdup(names.plain) : NULL; /* as in Massif */
}

/* Finds the inlined calls in one walk over a unit's tree. Skips DIEs that cannot contain code. */

/* Maximum nesting of inlined calls; compilers stay below 100. */
#define DEPTH_MAX 256

static bool can_hold_code(int tag)
{
	switch (tag) {
	case DW_TAG_subprogram:
	case DW_TAG_inlined_subroutine:
	case DW_TAG_lexical_block:
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
	case DW_TAG_with_stmt:
	case DW_TAG_entry_point:
		return true;
	default:
		return false;
	}
}

static void add_site(struct inlines *l, Dwarf_Die *die, uint32_t depth)
{
	Dwarf_Addr base, lo, hi;
	uint32_t index = (uint32_t)l->count;
	bool has_range = false;
	for (ptrdiff_t at = 0; (at = dwarf_ranges(die, at, &base, &lo, &hi)) > 0;) {
		if (lo == 0 || lo >= hi) /* code discarded by the linker */
			continue;
		ranges_add(&l->ranges, lo, hi, index);
		has_range = true;
	}
	if (has_range)
		*vec_add(l) = (struct inline_site){.die = dwarf_dieoffset(die), .depth = depth};
}

void inlines_init(struct inlines *l, Dwarf_Die *cu_die)
{
	*l = (struct inlines){0};
	struct die_walk walk;
	Dwarf_Die die;
	int tag;
	die_walk_init(&walk, cu_die, can_hold_code);
	while (die_walk_next(&walk, &die, &tag)) {
		l->die_count++;
		if (tag == DW_TAG_inlined_subroutine)
			add_site(l, &die, walk.depth);
	}
	die_walk_deinit(&walk);
	ranges_sort(&l->ranges);
}

void inlines_deinit(struct inlines *l)
{
	ranges_deinit(&l->ranges);
	vec_deinit(l);
}

/* Inserts @index into @sites, deepest first, once. */
static size_t insert_site(const struct inlines *l, uint32_t *sites, size_t count, uint32_t index)
{
	size_t i = count;
	for (size_t k = 0; k < count; k++) {
		if (sites[k] == index)
			return count;
	}
	for (; i > 0 && l->data[sites[i - 1]].depth < l->data[index].depth; i--)
		sites[i] = sites[i - 1];
	sites[i] = index;
	return count + 1;
}

size_t inlines_find(const struct inlines *l, uint64_t addr, Dwarf_Off *dies_out, size_t max)
{
	uint32_t sites[DEPTH_MAX];
	size_t count = 0;
	const struct range *r = ranges_find(&l->ranges, addr);
	for (; r && count < MIN(max, DEPTH_MAX); r = ranges_outer(&l->ranges, r, addr))
		count = insert_site(l, sites, count, r->value);
	for (size_t i = 0; i < count; i++)
		dies_out[i] = l->data[sites[i]].die;
	return count;
}

void inline_call_read(Dwarf_Die *die, bool no_demangle, struct inline_call *call_out)
{
	Dwarf_Attribute attr;
	Dwarf_Word value;
	*call_out = (struct inline_call){
		.name = die_function_name(die, no_demangle),
		.plain = die_function_name(die, true),
		.file = UINT64_MAX,
	};
	if (dwarf_attr(die, DW_AT_call_file, &attr) && dwarf_formudata(&attr, &value) == 0)
		call_out->file = value;
	if (dwarf_attr(die, DW_AT_call_line, &attr) && dwarf_formudata(&attr, &value) == 0)
		call_out->line = (uint32_t)value;
}
