/* Finds the inlined calls in one walk over a unit's tree. Skips DIEs that cannot contain code. */
#include "symbols/inlines.h"

#include <dwarf.h>

#include "base/vec.h"
#include "symbols/die_name.h"
#include "symbols/dies.h"

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
