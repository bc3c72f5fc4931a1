/*
 * The call tree: a trie of frames, outermost first, in growing arrays.
 *
 *	frame  a code address of one module, or a named function (base/frame_key.h), numbered 1,
 *	       2, ... (0 = none)
 *	node   a path from the root; node 0 is the root (the empty stack)
 *
 * Each node is a distinct stack. Nodes and frames are never removed: an index is valid for the life
 * of the tree. Memory: 48 bytes per node, hash included.
 */
#ifndef PTMEM_PROFILE_CALLTREE_H
#define PTMEM_PROFILE_CALLTREE_H

#include "base/frame_key.h"
#include "base/types.h"

struct calltree;

struct calltree_frame {
	uint64_t key;      /* the address of the call, or of a name */
	uint32_t module;   /* id of a module; 0 = none, as for named frames */
	enum frame_key_kind kind;
};

struct calltree *calltree_new(void);
struct calltree *calltree_clone(const struct calltree *t); /* for a forked child */
void calltree_free(struct calltree *t);

/*
 * The frame of @key, created with @module if it is new. After calltree_forget the same address gets
 * a new frame (another object was mapped there). calltree_find_frame: 0 if it does not exist.
 */
uint32_t calltree_get_frame(struct calltree *t, uint64_t key, uint32_t module);
uint32_t calltree_find_frame(const struct calltree *t, uint64_t key);
void calltree_forget(struct calltree *t, taddr_t start, taddr_t end);
/* The same for addresses of no module alone. */
void calltree_forget_code(struct calltree *t, taddr_t start, taddr_t end);
/* The addresses of @module have the frames again that they had: it is mapped there again. */
void calltree_recall(struct calltree *t, uint32_t module);
/*
 * Gives names to frames of addresses outside of all modules: @key_of returns the key of a name, or
 * 0 if it knows none. The address gets a new frame then. Returns how many were named.
 */
size_t calltree_name_frames(struct calltree *t, uint64_t (*key_of)(void *ctx, taddr_t pc),
			    void *ctx);
const struct calltree_frame *calltree_frame(const struct calltree *t, uint32_t frame);
uint32_t calltree_frame_count(const struct calltree *t); /* highest frame index */

/* The child of @node reached through @frame; created if it does not exist. */
uint32_t calltree_get_child(struct calltree *t, uint32_t node, uint32_t frame);

uint32_t calltree_parent(const struct calltree *t, uint32_t node);
/* innermost frame; 0 at the root */
uint32_t calltree_node_frame(const struct calltree *t, uint32_t node);
uint32_t calltree_node_depth(const struct calltree *t, uint32_t node);  /* frames from the root */
uint32_t calltree_node_count(const struct calltree *t);  /* number of nodes, root included */
size_t calltree_memory(const struct calltree *t);        /* bytes in use by nodes and frames */

#endif
