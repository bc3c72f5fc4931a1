/*
 * The variables of a process by address: name, type, and how far into the variable an address is.
 * Hides: whether DWARF or a symbol table knows them, and where the variables of threads are.
 *
 *	cache                   of a program in C
 *	cache.c: cache          static: only one file knows it
 *	parse() cache           static in a function
 *	ns::Foo::table          of a namespace, a class or a Rust module
 *
 * An object's symbols and DWARF are read at the first question about it. Without DWARF its symbol
 * table says where variables are, and their types are unknown; a stripped object has none.
 */
#ifndef PTMEM_GRAPH_VARIABLES_H
#define PTMEM_GRAPH_VARIABLES_H

#include <sys/types.h>

#include "base/alloc.h"
#include "base/elf_file.h"
#include "graph/type_table.h"
#include "malloc/memory.h"

struct program_variable {
	taddr_t start;          /* in the process; of a thread's: offset in its object's block */
	uint64_t size;          /* at least 1 */
	uint32_t type;          /* TYPE_NONE = unknown */
	uint32_t object;        /* number, in the order they were added */
	bool is_thread_local;
	/* a name is made when it is asked for */
	bool has_debug;
	struct debug_variable debug;
	/* in the ELF file; NULL = has no symbol; no file: any can know it */
	const char *symbol, *file;
	char *name;             /* NULL = not asked for yet */
};

/* An address in a variable. */
struct variable_place {
	uint32_t variable;      /* for variables_get */
	uint64_t offset;
	uint32_t type;          /* of the whole variable */
	pid_t tid;              /* of a thread's; 0 = not a thread's */
	taddr_t start;          /* of the variable in the process, or in that thread */
};

struct variables;

/* @types must outlive the result. */
struct variables *variables_new(struct type_table *types);
void variables_free(struct variables *v);

/* Adds an object of the process, which is held. */
void variables_add_object(struct variables *v, struct elf_file *file, taddr_t bias);

/* Adds a thread; so that its variables are found, after all objects. */
void variables_add_thread(struct variables *v, pid_t tid, taddr_t thread_pointer,
			  struct inspect_memory *memory);

/* The variable at @addr. False: there is none, or none is known. */
bool variables_find(struct variables *v, taddr_t addr, struct variable_place *out);

/* All variables of all objects: numbers from 0. Reads what has not been read. */
uint32_t variables_count(struct variables *v);
const struct program_variable *variables_get(const struct variables *v, uint32_t variable);

/* The object that defines it. */
const struct elf_file *variables_file(const struct variables *v, uint32_t variable);

/* Its name, never NULL; valid until variables_free. */
const char *variables_name(struct variables *v, uint32_t variable);

#endif
