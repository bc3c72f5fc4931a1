/* Where the blocks of a heap graph were allocated (graph/graph_sites.h), by the profile. */
#ifndef PTMEM_SESSION_INSPECT_GRAPH_PATHS_H
#define PTMEM_SESSION_INSPECT_GRAPH_PATHS_H

struct inspect_stopped;
struct session;

/*
 * Fills the sites of @look's graph, which is solved, by the live blocks of @s. Blocks whose type is
 * only guessed by how they begin, or by their size, are named by the function that allocated them.
 */
void graph_paths_find(struct session *s, struct inspect_stopped *look);

#endif
