/*
 * The DIEs of one unit in file order, each once. libdw's step to the next sibling walks through all
 * children again, and follows backward references endlessly on broken input; this walk only goes
 * forward.
 */
#ifndef PTMEM_SYMBOLS_DIE_WALK_H
#define PTMEM_SYMBOLS_DIE_WALK_H

#include <elfutils/libdw.h>

#include "base/alloc.h"
#include "base/types.h"

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
	VEC(struct die_shape) shapes;
	VEC(struct die_form) forms;
};

/*
 * Starts below @cu_die. Children of a DIE whose tag @is_entered rejects may be skipped (if the file
 * contains the address of the sibling).
 */
void die_walk_init(struct die_walk *w, const Dwarf_Die *cu_die, bool (*is_entered)(int tag));
void die_walk_deinit(struct die_walk *w);

/*
 * Goes on with @die of the same unit: the next one is @die itself, at depth 0, and the last one the
 * last below it. False: it is not in the unit.
 */
bool die_walk_seek(struct die_walk *w, const Dwarf_Die *die);

/* The next DIE and its tag; false at the end and at the first invalid byte. */
bool die_walk_next(struct die_walk *w, Dwarf_Die *die_out, int *tag_out);

/* Whether names of the language of @unit have scopes: those of C have none. */
bool dwarf_has_scopes(Dwarf_Die *unit);

/* The number in LEB128 at *pos, which becomes its end; @end at most. */
uint64_t dwarf_take_uleb(const uint8_t **pos, const uint8_t *end);
/* The same of an unsigned number of @size bytes, little-endian; 0 if fewer are left. */
uint64_t dwarf_take_fixed(const uint8_t **pos, const uint8_t *end, size_t size);

#endif
