/*
 * What the class of an object of Python's says about it (CPython 3.8 to 3.14, 64 bits), and what is
 * noted of objects while blocks are classified. See python_objects.h for the rest.
 *
 *	class    24 name  32 size  40 size of an item  168 flags  256 base
 *	module   16 dictionary  48 name
 *	dict     32 keys  40 values, if the keys belong to a class
 *	list     24 items  set  40 entries  weakref  16 object  file  56 buffer
 *	object   3.11: -32 values of attributes  3.12: -24 these - 1  3.13: behind it
 *
 * Words behind what an object uses of its block are left from earlier blocks: they keep nothing
 * alive. Where it ends is known of Python's own classes, and of those that programs make from them.
 */
#ifndef PTMEM_INSPECT_PYTHON_SHAPE_H
#define PTMEM_INSPECT_PYTHON_SHAPE_H

#include "base/alloc.h"
#include "base/types.h"
#include "malloc/memory.h"

/* Words of classes. */
enum {
	CLASS_NAME = 3, CLASS_SIZE = 4, CLASS_ITEM = 5, CLASS_FLAGS = 21, CLASS_MEMBERS = 30,
	CLASS_BASE = 32, CLASS_DICT_OFFSET = 36, CLASS_WORDS = 37,
};
#define CLASS_INLINE_VALUES (UINT64_C(1) << 2) /* a flag: since 3.13 */

bool python_class_read(struct inspect_memory *m, taddr_t class, uint64_t word[static CLASS_WORDS]);

/* Words of objects. */
enum {
	AT_SIZE = 2, AT_MODULE_DICT = 2, AT_MODULE_NAME = 6, AT_DICT_KEYS = 4, AT_DICT_VALUES = 5,
	AT_LIST_ITEMS = 3, AT_TUPLE_ITEMS = 3, AT_SET_MASK = 4, AT_SET_ENTRIES = 5,
	AT_SET_SMALL = 8, AT_BYTES = 4, AT_ARRAY = 2, AT_WEAK = 2, AT_TEXT_STATE = 4,
	AT_FILE_BUFFER = 7,
};
#define PYTHON_MANAGED 32u      /* bytes before objects whose attributes Python manages */

/* What an object's class is, or is made from. */
enum python_role {
	PYTHON_PLAIN, PYTHON_DICT, PYTHON_LIST, PYTHON_TUPLE, PYTHON_SET, PYTHON_BYTEARRAY,
	PYTHON_ARRAY, PYTHON_MODULE, PYTHON_WEAK, PYTHON_FRAME, PYTHON_TEXT, PYTHON_DATA,
	PYTHON_FILE,
	PYTHON_ROLES,
};

/* Of a class. */
struct python_shape {
	enum python_role role;
	/* words of an object that may have references, without items; 0: any may, also behind it */
	uint32_t words;
	uint32_t item;          /* bytes of each item; 0 = it has none, or they do not count */
	bool is_made;           /* by a program, not by C code */
	bool has_values;        /* of attributes, behind what it is made from */
};

void python_shape_find(struct inspect_memory *m, taddr_t class, struct python_shape *out);

/* How a block with an object begins. */
struct python_block {
	const uint64_t *word;
	size_t words;           /* of that; the object begins among them */
	uint32_t header;        /* bytes before it */
};

/* How many words of @b may have references; 0: all. */
uint32_t python_shape_words(const struct python_shape *s, const struct python_block *b);

/* Memory that belongs to an object. */
struct python_part {
	taddr_t addr;           /* in it */
	uint64_t words;         /* of it that have references, + 1; 0 = not known */
	taddr_t keys;           /* of a dictionary's values, elsewhere; 0: they are there, too */
	uint32_t of;            /* type of the object */
	bool is_attributes;     /* values of its attributes, beginning there */
};

struct python_module {
	taddr_t dict, name;     /* objects */
};

/* What is noted of objects while blocks are classified. */
struct python_notes {
	VEC(struct python_part) parts;
	VEC(struct python_module) modules;
};

/* Notes what @b, an object of type @of, leads to. */
void python_notes_add(struct python_notes *n, enum python_role role, uint32_t of,
		      const struct python_block *b);
void python_notes_deinit(struct python_notes *n);

#endif
