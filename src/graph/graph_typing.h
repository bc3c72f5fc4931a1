/*
 * Gives the blocks of a heap graph types, and its words names, by the debug information of the
 * program and its libraries: connects variables.h and typed_walk.h to heap_graph.h.
 */
#ifndef PTMEM_GRAPH_GRAPH_TYPING_H
#define PTMEM_GRAPH_GRAPH_TYPING_H

#include <sys/types.h>

#include "base/elf_file.h"
#include "graph/graph_build.h"
#include "graph/heap_graph.h"
#include "inspect/block_types.h"
#include "malloc/memory.h"

struct graph_typing;

/* @containers: a file of descriptions of containers; NULL = only the built-in ones. */
struct graph_typing *graph_typing_new(const char *containers);
void graph_typing_free(struct graph_typing *t);

/* Adds an object of the process, which is held; the program first. */
void graph_typing_add_object(struct graph_typing *t, struct elf_file *file, taddr_t bias);

/* Whether there is debug information of the program: only then is much known. */
bool graph_typing_has_program(struct graph_typing *t);

/* Its memory, for types; after the objects. Both must outlive @t. */
void graph_typing_set_memory(struct graph_typing *t, const struct resident *pages,
			     const struct memory_source *source);

/* A thread, for its variables; after the memory. */
void graph_typing_add_thread(struct graph_typing *t, pid_t tid, taddr_t thread_pointer);

/* The variable at @addr; false: none is known. */
bool graph_typing_data(struct graph_typing *t, taddr_t addr, struct graph_data *out);

/*
 * The name of the variable at @addr; NULL = unknown. Valid until graph_typing_free. *file_out: what
 * defines it.
 */
const char *graph_typing_name(struct graph_typing *t, taddr_t addr,
			      const struct elf_file **file_out);

/*
 * Gives the blocks of @g, which is not solved yet, types, and fills g->typed. What @known has keeps
 * its type, which is one of g->types already; and its words' names.
 */
void graph_typing_run(struct graph_typing *t, const struct block_types *known,
		      struct heap_graph *g);

#endif
