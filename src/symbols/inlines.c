/*
 * One walk over a unit's tree, with a stack instead of recursion. It goes only into
 * DIEs that can hold code, and only forward: a DIE at or before its predecessor means
 * broken DWARF and ends that level, so the walk ends on any input.
 */
#include "symbols/inlines.h"

#include <dwarf.h>

#include "base/vec.h"

/* Deeper nesting than this is not followed; compilers stay below 100. */
#define DEPTH_MAX 256

/* abstract_origin and specification chains are shorter than this. */
#define CHAIN_MAX 16

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
		if (lo == 0 || lo >= hi) /* code that the linker dropped */
			continue;
		ranges_add(&l->ranges, lo, hi, index);
		has_range = true;
	}
	if (has_range)
		*vec_add(l) = (struct inline_site){.die = dwarf_dieoffset(die), .depth = depth};
}

/* Steps to the next DIE of the same level; false at its end. */
static bool next_sibling(Dwarf_Die *die)
{
	Dwarf_Off before = dwarf_dieoffset(die);
	return dwarf_siblingof(die, die) == 0 && dwarf_dieoffset(die) > before;
}

void inlines_init(struct inlines *l, Dwarf_Die *cu_die)
{
	*l = (struct inlines){0};
	Dwarf_Die level[DEPTH_MAX];
	uint32_t depth = 0;
	if (dwarf_child(cu_die, &level[0]) != 0)
		return;
	for (;;) {
		int tag = dwarf_tag(&level[depth]);
		l->die_count++;
		if (tag == DW_TAG_inlined_subroutine)
			add_site(l, &level[depth], depth);
		if (depth + 1 < DEPTH_MAX && can_hold_code(tag) &&
		    dwarf_child(&level[depth], &level[depth + 1]) == 0) {
			depth++;
			continue;
		}
		while (!next_sibling(&level[depth])) {
			if (depth-- == 0) {
				ranges_sort(&l->ranges);
				return;
			}
		}
	}
}

void inlines_deinit(struct inlines *l)
{
	ranges_deinit(&l->ranges);
	vec_deinit(l);
}

/* Puts @index into @sites, deepest first, once. */
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

static const char *read_name(const Dwarf_Die *start)
{
	Dwarf_Die die = *start;
	for (int i = 0; i < CHAIN_MAX; i++) {
		Dwarf_Attribute attr;
		if (dwarf_attr(&die, DW_AT_name, &attr)) /* libdw 0.188 looks for strp_sup in the wrong file */
			return attr.form == DW_FORM_strp_sup ? NULL : dwarf_formstring(&attr);
		if (!dwarf_attr(&die, DW_AT_abstract_origin, &attr) &&
		    !dwarf_attr(&die, DW_AT_specification, &attr))
			return NULL;
		if (!dwarf_formref_die(&attr, &die))
			return NULL;
	}
	return NULL;
}

void inline_call_read(Dwarf_Die *die, struct inline_call *call_out)
{
	Dwarf_Attribute attr;
	Dwarf_Word value;
	*call_out = (struct inline_call){.name = read_name(die), .file = UINT64_MAX};
	if (dwarf_attr(die, DW_AT_call_file, &attr) && dwarf_formudata(&attr, &value) == 0)
		call_out->file = value;
	if (dwarf_attr(die, DW_AT_call_line, &attr) && dwarf_formudata(&attr, &value) == 0)
		call_out->line = (uint32_t)value;
}
