/*
 * The call tree, see calltree.h. Two growing arrays (nodes, frames) and a hash
 * over each, both of indexes only:
 *
 *	buckets[hash(parent, frame)] -> node -> node.next -> ... -> 0
 *	frame_slots[hash(key)]       -> frame        (open addressing)
 *
 * The node hash is chained through the nodes with at least as many buckets as
 * nodes, so that a look-up that hits costs one bucket and one node. A node is
 * 16 bytes and its share of the buckets 4 to 8. The frame hash only contains current frames:
 * calltree_forget rebuilds it without the old ones.
 */
#include "profile/calltree.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/log.h"

#define FIRST_BUCKETS 1024u
#define FIRST_FRAME_SLOTS 256u

struct node {
	uint32_t parent, frame;
	uint32_t depth;
	uint32_t next; /* next in the chain of its bucket; 0 = last */
};

struct calltree {
	struct node *node;
	size_t node_count, node_capacity;
	uint32_t *bucket;
	uint32_t bucket_count;     /* a power of two, >= node_count */
	struct calltree_frame *frame; /* [0] is not used */
	size_t frame_count, frame_capacity;
	uint32_t *frame_slot;
	uint32_t frame_slot_count; /* a power of two, >= 2 * number of frames in it */
	uint32_t frame_slot_used;
};

/* Frames that the table is to forget. */
struct forgotten {
	taddr_t start, end;
	bool is_bare; /* of no module only */
};

struct calltree *calltree_new(void)
{
	struct calltree *t = xcalloc(1, sizeof(*t));
	t->node = xgrow(NULL, &t->node_capacity, 1, sizeof(*t->node));
	t->node[0] = (struct node){ 0 };
	t->node_count = 1;
	t->frame = xgrow(NULL, &t->frame_capacity, 1, sizeof(*t->frame));
	t->frame[0] = (struct calltree_frame){ 0 };
	t->frame_count = 1;
	t->bucket_count = FIRST_BUCKETS;
	t->bucket = xcalloc(t->bucket_count, sizeof(*t->bucket));
	t->frame_slot_count = FIRST_FRAME_SLOTS;
	t->frame_slot = xcalloc(t->frame_slot_count, sizeof(*t->frame_slot));
	return t;
}

struct calltree *calltree_clone(const struct calltree *t)
{
	struct calltree *c = xmemdup(t, sizeof(*t));
	c->node = xmemdup(t->node, t->node_count * sizeof(*t->node));
	c->node_capacity = t->node_count;
	c->frame = xmemdup(t->frame, t->frame_count * sizeof(*t->frame));
	c->frame_capacity = t->frame_count;
	c->bucket = xmemdup(t->bucket, t->bucket_count * sizeof(*t->bucket));
	c->frame_slot = xmemdup(t->frame_slot, t->frame_slot_count * sizeof(*t->frame_slot));
	return c;
}

void calltree_free(struct calltree *t)
{
	if (!t)
		return;
	free(t->node);
	free(t->bucket);
	free(t->frame);
	free(t->frame_slot);
	free(t);
}

/* Frames. */

/* The slot that contains @key, or the empty one for it. */
static uint32_t frame_slot_of(const struct calltree *t, uint64_t key)
{
	uint32_t mask = t->frame_slot_count - 1;
	uint32_t i = (uint32_t)hash_u64(key) & mask;
	while (t->frame_slot[i] && t->frame[t->frame_slot[i]].key != key)
		i = (i + 1) & mask;
	return i;
}

/* Whether calltree_forget, or calltree_forget_code with @is_bare, is to forget @f. */
static bool is_forgotten(const struct calltree_frame *f, const struct forgotten *which)
{
	return f->key >= which->start && f->key < which->end && (!which->is_bare || !f->module);
}

static void frame_slots_rebuild(struct calltree *t, uint32_t count, struct forgotten which)
{
	uint32_t *old = t->frame_slot, old_count = t->frame_slot_count;
	t->frame_slot = xcalloc(count, sizeof(*t->frame_slot));
	t->frame_slot_count = count;
	t->frame_slot_used = 0;
	for (uint32_t i = 0; i < old_count; i++) {
		if (!old[i])
			continue;
		uint64_t key = t->frame[old[i]].key;
		if (is_forgotten(&t->frame[old[i]], &which))
			continue;
		uint32_t slot = frame_slot_of(t, key);
		t->frame_slot_used += !t->frame_slot[slot];
		t->frame_slot[slot] = old[i];
	}
	free(old);
}

uint32_t calltree_find_frame(const struct calltree *t, uint64_t key)
{
	return t->frame_slot[frame_slot_of(t, key)];
}

/* @slot: the one for it. */
static void put_frame(struct calltree *t, uint32_t slot, uint32_t frame)
{
	if ((t->frame_slot_used + 1) * 2 > t->frame_slot_count) {
		frame_slots_rebuild(t, t->frame_slot_count * 2, (struct forgotten){0});
		slot = frame_slot_of(t, t->frame[frame].key);
	}
	t->frame_slot_used += !t->frame_slot[slot];
	t->frame_slot[slot] = frame;
}

uint32_t calltree_get_frame(struct calltree *t, uint64_t key, uint32_t module)
{
	uint32_t slot = frame_slot_of(t, key);
	if (t->frame_slot[slot])
		return t->frame_slot[slot];
	CHECK(t->frame_count < UINT32_MAX);
	uint32_t frame = (uint32_t)t->frame_count++;
	t->frame = xgrow(t->frame, &t->frame_capacity, t->frame_count, sizeof(*t->frame));
	t->frame[frame] = (struct calltree_frame){key, module, frame_key_kind(key)};
	put_frame(t, slot, frame);
	return frame;
}

void calltree_forget(struct calltree *t, taddr_t start, taddr_t end)
{
	frame_slots_rebuild(t, t->frame_slot_count, (struct forgotten){start, end, false});
}

void calltree_forget_code(struct calltree *t, taddr_t start, taddr_t end)
{
	frame_slots_rebuild(t, t->frame_slot_count, (struct forgotten){start, end, true});
}

void calltree_recall(struct calltree *t, uint32_t module)
{
	for (uint32_t i = 1; i < t->frame_count; i++)
		if (t->frame[i].module == module)
			put_frame(t, frame_slot_of(t, t->frame[i].key), i);
}

size_t calltree_name_frames(struct calltree *t, uint64_t (*key_of)(void *ctx, taddr_t pc),
			    void *ctx)
{
	size_t named = 0;

	for (uint32_t i = 1; i < t->frame_count; i++) {
		struct calltree_frame *f = &t->frame[i];
		uint64_t key = f->kind == FRAME_NATIVE && !f->module && f->key ?
				       key_of(ctx, f->key) : 0;

		if (!key)
			continue;
		/* the first one becomes what the table has for the key: no other has it */
		f->key = key;
		f->kind = FRAME_NAMED;
		named++;
	}
	if (named)
		frame_slots_rebuild(t, t->frame_slot_count, (struct forgotten){0});
	return named;
}

const struct calltree_frame *calltree_frame(const struct calltree *t, uint32_t frame)
{
	CHECK(frame < t->frame_count);
	return &t->frame[frame];
}

uint32_t calltree_frame_count(const struct calltree *t)
{
	return (uint32_t)t->frame_count - 1;
}

/* Nodes. */

static uint32_t *bucket_of(const struct calltree *t, uint32_t parent, uint32_t frame)
{
	uint64_t key = (uint64_t)parent << 32 | frame;
	return &t->bucket[(uint32_t)hash_u64(key) & (t->bucket_count - 1)];
}

static void buckets_double(struct calltree *t)
{
	CHECK(t->bucket_count < 1u << 31);
	free(t->bucket);
	t->bucket_count *= 2;
	t->bucket = xcalloc(t->bucket_count, sizeof(*t->bucket));
	for (uint32_t i = 1; i < t->node_count; i++) {
		uint32_t *bucket = bucket_of(t, t->node[i].parent, t->node[i].frame);
		t->node[i].next = *bucket;
		*bucket = i;
	}
}

static uint32_t node_add(struct calltree *t, uint32_t parent, uint32_t frame)
{
	CHECK(parent < t->node_count && frame < t->frame_count);
	if (t->node_count >= t->bucket_count)
		buckets_double(t);
	uint32_t node = (uint32_t)t->node_count++;
	t->node = xgrow(t->node, &t->node_capacity, t->node_count, sizeof(*t->node));
	uint32_t *bucket = bucket_of(t, parent, frame);
	t->node[node] = (struct node){ parent, frame, t->node[parent].depth + 1, *bucket };
	*bucket = node;
	return node;
}

static bool is_child(const struct calltree *t, uint32_t i, uint32_t parent, uint32_t frame)
{
	return t->node[i].parent == parent && t->node[i].frame == frame;
}

/*
 * The nodes of a new path follow each other, so the next node, which is often in the same cache
 * line, is tried first. That saves an eighth of ptmem's CPU time while g++ compiles.
 */
uint32_t calltree_get_child(struct calltree *t, uint32_t node, uint32_t frame)
{
	if (node + 1 < t->node_count && is_child(t, node + 1, node, frame))
		return node + 1;
	for (uint32_t i = *bucket_of(t, node, frame); i; i = t->node[i].next)
		if (is_child(t, i, node, frame))
			return i;
	return node_add(t, node, frame);
}

uint32_t calltree_parent(const struct calltree *t, uint32_t node)
{
	CHECK_DEBUG(node < t->node_count);
	return t->node[node].parent;
}

uint32_t calltree_node_frame(const struct calltree *t, uint32_t node)
{
	CHECK_DEBUG(node < t->node_count);
	return t->node[node].frame;
}

uint32_t calltree_node_depth(const struct calltree *t, uint32_t node)
{
	CHECK_DEBUG(node < t->node_count);
	return t->node[node].depth;
}

uint32_t calltree_node_count(const struct calltree *t)
{
	return (uint32_t)t->node_count;
}

size_t calltree_memory(const struct calltree *t)
{
	return t->node_capacity * sizeof(*t->node) + t->bucket_count * sizeof(*t->bucket) +
	       t->frame_capacity * sizeof(*t->frame) + t->frame_slot_count * sizeof(*t->frame_slot);
}
