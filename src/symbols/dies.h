/*
 * The DIEs of one unit in file order, each once. libdw's step to the next sibling walks through all
 * children again, and follows backward references endlessly on broken input; this walk only goes
 * forward.
 */
#ifndef PTMEM_SYMBOLS_DIES_H
#define PTMEM_SYMBOLS_DIES_H

#include <elfutils/libdw.h>

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
	bool (*is_entered)(int tag);
	const uint8_t *target;   /* the DIE searched for; NULL = none */
	/* by abbreviation code */
	struct { struct die_shape *data; size_t count, capacity; } shapes;
	struct { struct die_form *data; size_t count, capacity; } forms;
};

/*
 * Starts below @cu_die. Children of a DIE whose tag @is_entered rejects may be skipped (if the file
 * contains the address of the sibling).
 */
void die_walk_init(struct die_walk *w, const Dwarf_Die *cu_die, bool (*is_entered)(int tag));

/* The same on the way to @target, a DIE of the unit: DIEs that end before it may be skipped. */
void die_walk_init_to(struct die_walk *w, const Dwarf_Die *cu_die, const Dwarf_Die *target);

/* The next DIE and its tag; false at the end and at the first invalid byte. */
bool die_walk_next(struct die_walk *w, Dwarf_Die *die_out, int *tag_out);

void die_walk_deinit(struct die_walk *w);

#endif
