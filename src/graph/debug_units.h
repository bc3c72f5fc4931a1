/*
 * The DWARF of one object, unit by unit: which variables it defines where, which types by which
 * name, and the qualified name of any DIE. Hides: where the debug information is (the file itself,
 * its separate debug file, dwz's common file, .dwo files, a .dwp package), and that a DIE does not
 * know what it is nested in.
 *
 * A unit is walked once, when it is first needed; types and names are read from their DIEs later,
 * when asked for. DWARF is untrusted: whatever refers elsewhere is followed a bounded number of
 * times, and what cannot be read is left out.
 */
#ifndef PTMEM_GRAPH_DEBUG_UNITS_H
#define PTMEM_GRAPH_DEBUG_UNITS_H

#include <elfutils/libdw.h>

#include "base/alloc.h"
#include "base/elf_file.h"
#include "base/types.h"

/* Units of more than so many bytes are left alone, so that no file takes minutes. */
#define DEBUG_UNITS_BYTES_MAX (UINT64_C(2) << 30)

/* A variable with a fixed place. */
struct debug_variable {
	Dwarf_Die die;
	uint64_t address;       /* in the ELF file; of a thread: offset in the object's TLS */
	bool is_thread_local;
};

struct debug_units;

/* Opens nothing yet. @file must outlive the result; @dirs as for debuglink_find. */
struct debug_units *debug_units_new(struct elf_file *file, const char *dirs);
void debug_units_free(struct debug_units *d);

/* Whether there is debug information. */
bool debug_units_exist(struct debug_units *d);

/* All variables, in no order; walks all units at the first call. *count_out may be 0. */
const struct debug_variable *debug_units_variables(struct debug_units *d, size_t *count_out);

/*
 * The definition of the struct, class or union with the qualified name @name, however its template
 * arguments are spaced; walks all units at the first call. False: there is none.
 */
bool debug_units_find_type(struct debug_units *d, const char *name, Dwarf_Die *die_out);

/* The function that begins at @address of the file. False: it is not known. */
bool debug_units_find_function(struct debug_units *d, uint64_t address, Dwarf_Die *die_out);

/*
 * The name of @die with its scopes: "ns::Foo<int>::Bar"; NULL: it has none. @inner: the name that
 * it has itself if it is not in the DIE. Malloc'ed.
 */
char *debug_units_name(struct debug_units *d, Dwarf_Die *die, const char *inner);

/*
 * The name of a variable, with its file or function if only these know it. NULL if it has none, or
 * its function has none, as in what clang 14 inlines. Malloc'ed.
 */
char *debug_units_variable_name(struct debug_units *d, const struct debug_variable *v);

/* A DIE directly below another one. */
struct child_die {
	Dwarf_Die die;
	int tag;
};

struct child_dies {
	VEC(struct child_die) list;
};

/* What is directly below @die, in order; to be freed with vec_deinit. */
void debug_units_children(struct debug_units *d, Dwarf_Die *die, struct child_dies *out);

/* -- attributes of a DIE, which may be broken -- */

/* A string in libdw's memory; NULL = none. */
const char *die_string(Dwarf_Die *die, unsigned attribute);
bool die_number(Dwarf_Die *die, unsigned attribute, uint64_t *out);
bool die_flag(Dwarf_Die *die, unsigned attribute);
bool die_reference(Dwarf_Die *die, unsigned attribute, Dwarf_Die *out);

/* Of the name of a type, but for spaces and suffixes of numbers. */
uint64_t type_name_hash(const char *name);

#endif
