/*
 * Follows two chains: from an instance to its abstract definition (DW_AT_abstract_origin,
 * DW_AT_specification), which has the name, and from the DIE with the name to its enclosing scopes.
 * A DIE has no reference to its parent, so the scopes are found by a walk through the unit,
 * skipping everything that ends before the DIE.
 */
#include "symbols/die_name.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "symbols/demangle.h"
#include "symbols/dies.h"

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
	die_walk_init_to(&walk, cu_die, die);
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

char *die_function_name(const Dwarf_Die *die, bool no_demangle)
{
	struct names names;

	if (!no_demangle)
		return name_within(die, 0);
	read_names(die, &names);
	return names.plain ? xstrdup(names.plain) : NULL; /* as in Massif */
}
