/*
 * What a heap graph needs to know of Python's objects (CPython 3.8 to 3.14, 64 bits): the variables
 * of modules, what belongs to objects besides their own memory, and the names of their words.
 *
 *	keys     3.11: sizes in bytes  8  9, kind 10, free places 16, entries 24, index from 32 on
 *	         3.8: size 8, free places 24, entries 32, index from 40 on
 *	         then entries of 24 bytes (hash, key, value) or 16 (key, value)
 *	class    240 members: (name, type, offset) of 40 bytes each
 *	         3.11: somewhere in it the keys of its objects' attributes
 *
 * Which layout a version has is recognized by the data: sizes that fit each other. Nothing is taken
 * on trust, and everything is bounded.
 */
#ifndef PTMEM_INSPECT_PYTHON_OBJECTS_H
#define PTMEM_INSPECT_PYTHON_OBJECTS_H

#include "inspect/block_types.h"
#include "inspect/holders.h"

/*
 * Gives @h, whose blocks were all added, what the notes in @t lead to: parts of objects get types
 * of their own, and their words names.
 */
void python_objects_find(struct inspect_memory *m, struct block_types *t, struct block_holders *h);

#endif
