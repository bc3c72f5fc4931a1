/*
 * Types of the objects of a process, from their DWARF: compact, each once however many units and
 * objects define it. Typedefs and qualifiers are gone. A type is read from its DIE when it is first
 * needed, its members' types when they are asked for.
 *
 *	struct Session { struct Node *next; char name[16]; int flags : 3; };
 *
 *	number  kind     name     size  target  count  members: name, offset, (type)
 *	1       STRUCT   Session  32                   next 0 (2), name 8 (4), flags 24 (6)
 *	2       POINTER           8     3
 *	4       ARRAY             16    5       16
 *
 * DWARF is untrusted: a member that does not fit in its struct has no type, cycles of typedefs are
 * no type, the size of an array is that of its elements.
 */
#ifndef PTMEM_GRAPH_TYPE_TABLE_H
#define PTMEM_GRAPH_TYPE_TABLE_H

#include "base/alloc.h"
#include "base/types.h"
#include "graph/debug_units.h"

enum data_kind {
	DATA_BASE,      /* a number, a character, or of no known structure */
	DATA_POINTER,   /* also a reference */
	DATA_STRUCT,    /* also a class */
	DATA_UNION,
	DATA_ARRAY,
	DATA_ENUM,
	DATA_CODE,      /* a function: what a pointer to it leads to is in no block */
	DATA_MEMBER_POINTER, /* of C++: an offset, no address */
};

#define TYPE_NONE 0u    /* no type: void, or one that cannot be read */

enum data_member_flag {
	MEMBER_BASE = 1,        /* a base class */
	MEMBER_VIRTUAL = 2,     /* a virtual one: offset is that of its slot from the table */
	MEMBER_VARIANT = 4,     /* there only for values of the discriminant, of Rust's enums */
	MEMBER_DEFAULT = 8,     /* there for all values that no other variant has */
};

struct data_member {
	const char *name;       /* in libdw's memory; NULL: it has none */
	uint64_t offset;
	uint64_t value;         /* of the discriminant */
	Dwarf_Die type_die;
	uint32_t type;          /* if is_resolved */
	uint32_t variant;       /* 0 = none; the same for members of one variant */
	uint32_t alignment;     /* that the source gives it; 0 = none */
	uint16_t flags;
	uint8_t bit_size, bit_offset; /* of a bit field: from the lowest bit at the offset */
	bool is_resolved;
};

struct data_type {
	char *name;             /* qualified; NULL: it has none. Owned */
	uint64_t size;          /* bytes; 0 = not known here, or none */
	uint64_t count;         /* of an array's elements; 0 = open, as of a flexible member */
	enum data_kind kind;
	uint32_t target;        /* of a pointer or array, and of an enum */
	uint32_t first_member, members; /* indexes for type_table_member */
	uint32_t first_argument, arguments; /* of a template that are types */
	uint32_t discriminant;  /* number of the member that says which variant is there, + 1 */
	uint32_t origin;        /* number of the object + 1, in the order they were added */
	bool has_table;         /* begins with a pointer to a table of virtual functions */
	bool is_signed;
	Dwarf_Die die;
};

struct type_table;

/* @dirs: see debug_files.h; NULL = the usual ones. */
struct type_table *type_table_new(const char *dirs);
void type_table_free(struct type_table *t);

/* The debug information of @file, which is held; the same for each call with it. */
struct debug_units *type_table_add(struct type_table *t, struct elf_file *file);

/* The type that DW_AT_type of @die of @units refers to. TYPE_NONE if there is none. */
uint32_t type_table_read_of(struct type_table *t, struct debug_units *units, Dwarf_Die *die);

/*
 * The class with the qualified name @name in any object that was added, in @near first (NULL =
 * none). TYPE_NONE if there is none.
 */
uint32_t type_table_find(struct type_table *t, struct debug_units *near, const char *name);

/* Never NULL; valid until the next type is read. Of TYPE_NONE: a DATA_BASE of size 0. */
const struct data_type *type_table_get(const struct type_table *t, uint32_t type);

/* Member @i of @type, below its count; valid until the next type is read. */
const struct data_member *type_table_member(const struct type_table *t, uint32_t type, uint32_t i);

/* The type of member @i; TYPE_NONE if it does not fit in @type. */
uint32_t type_table_member_type(struct type_table *t, uint32_t type, uint32_t i);

/* Template argument @i of @type; TYPE_NONE if there is none. */
uint32_t type_table_argument(struct type_table *t, uint32_t type, uint32_t i);

/* The pointer to @target, and the array of @count of it. */
uint32_t type_table_pointer_to(struct type_table *t, uint32_t target);
uint32_t type_table_array_of(struct type_table *t, uint32_t element, uint64_t count);

/* A member of a struct, however deep. */
struct member_place {
	uint64_t offset;
	uint32_t type;          /* TYPE_NONE: there is no such member */
	uint8_t bit_size;       /* of a bit field; else 0 */
};

/*
 * The first of the paths "a.b|c.d" that @type has, also in base classes and in members without
 * names; a bounded search. False: none. Without a path *out is left as it is.
 */
bool type_table_find_place(struct type_table *t, uint32_t type, const char *path,
			   struct member_place *out);

/* Which boundary objects of @type begin at: a power of two; 0 = unknown. */
uint64_t type_table_alignment(struct type_table *t, uint32_t type);
/* Likewise of member @i, which may have been given another one than its type has. */
uint64_t type_table_member_alignment(struct type_table *t, uint32_t type, uint32_t i);

/*
 * Declares a struct that no DWARF has: @name (copied), members in the order given with their
 * offsets, types and names, which must outlive the table.
 */
uint32_t type_table_declare(struct type_table *t, const char *name, uint64_t size,
			    const struct data_member *member, uint32_t members);

/* Gives member @i of a declared struct another type, once it is known. */
void type_table_set_member(struct type_table *t, uint32_t type, uint32_t i, uint32_t member_type);

/* "struct Session *[16]" as its language writes it, malloc'ed. */
char *type_table_name(struct type_table *t, uint32_t type);

/* The number of types, TYPE_NONE included: all are below it. */
uint32_t type_table_count(const struct type_table *t);

/* How a path is written. */
struct type_path_form {
	/* what is written for all that is in @type, "[*]"; NULL: its members are */
	const char *(*whole)(void *ctx, uint32_t type);
	void *ctx;
	bool any_index;         /* "[*]" for each element of an array */
};

/*
 * The innermost member at @offset of @type, as a path: "by_user[3].lock"; "" at the start of what
 * has no members. Of an array of unknown size any index. @form may be NULL. Malloc'ed.
 */
char *type_table_path(struct type_table *t, uint32_t type, uint64_t offset,
		      const struct type_path_form *form);

#endif
