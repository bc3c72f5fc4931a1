/*
 * The inlined calls of a compilation unit: a walk over its DIEs, the names of functions, and their
 * ranges.
 */
#include "symbols/debug_info.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/types.h"
#include "symbols/demangle.h"
#include "symbols/die_walk.h"

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

/* @plain, the name of @die, qualified with the names of its enclosing scopes. */
static char *qualify(const Dwarf_Die *die, const char *plain, unsigned functions)
{
	char *out = xstrdup(plain);
	struct scopes scopes;
	Dwarf_Die owner = *die, cu_die;

	if (functions > FUNCTIONS_MAX || !dwarf_diecu(&owner, &cu_die, NULL, NULL) ||
	    !dwarf_has_scopes(&cu_die))
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
