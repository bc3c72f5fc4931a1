/*
 * The DIEs of one unit in the order in which they lie in the file, each once.
 *
 * libdw's own step to the next sibling walks through all children again and follows
 * backward references forever on broken input; this walk only goes forward.
 */
#ifndef PTMEM_SYMBOLS_DIES_H
#define PTMEM_SYMBOLS_DIES_H

#include <elfutils/libdw.h>

#include "base/types.h"

/* What an abbreviation says about its DIEs. */
struct die_shape {
	bool is_known;
	bool has_children;
	uint16_t tag;      /* DW_TAG_* */
	uint32_t first_form, form_count; /* in die_walk.forms */
};

struct die_form {
	uint16_t attribute, form; /* DW_AT_*, DW_FORM_* */
};

struct die_walk {
	Dwarf_Die root;
	const uint8_t *unit;     /* header of the unit; references count from here */
	const uint8_t *pos, *end; /* the next DIE; the end of the unit */
	uint8_t address_size, offset_size;
	uint16_t version;
	uint32_t depth;          /* of the DIE that was handed out last; 1 = child of the root */
	uint32_t open;           /* levels that wait for their end */
	bool (*is_entered)(int tag);
	const uint8_t *target;   /* the DIE that is looked for; NULL = none */
	/* by abbreviation code */
	struct { struct die_shape *data; size_t count, capacity; } shapes;
	struct { struct die_form *data; size_t count, capacity; } forms;
};

/*
 * Starts below @cu_die. Children of a DIE for whose tag @is_entered says no may be
 * left out (they are where the file says where it continues).
 */
void die_walk_init(struct die_walk *w, const Dwarf_Die *cu_die, bool (*is_entered)(int tag));

/* The same, on the way to @target, a DIE of the unit: what ends before it may be left out. */
void die_walk_init_to(struct die_walk *w, const Dwarf_Die *cu_die, const Dwarf_Die *target);

/* The next DIE and its tag; false at the end and at the first byte that makes no sense. */
bool die_walk_next(struct die_walk *w, Dwarf_Die *die_out, int *tag_out);

void die_walk_deinit(struct die_walk *w);

#endif
