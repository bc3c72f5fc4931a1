/* See massif_merged.h. */
#include "report/massif_merged.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "report/massif_frame.h"
#include "report/massif_paths.h"
#include "report/massif_wrapper.h"

#define MOST 0.9 /* share of a site: a caller that holds as much is its only one */

/* Names for frames whose function and place are useless; NULL = use these. */
static char *special_name(const struct massif_file *f, const struct massif_frame *frame,
			  bool is_wrapper)
{
	const char *label = is_wrapper ? wrapper_label(massif_wrapper_rank(f, frame)) : NULL;

	if (label)
		return xstrdup(label);
	if (f->memory == MEMORY_PAGES && !frame->address)
		return xstrdup("[initial image]"); /* mapped by exec */
	if (!is_wrapper || !massif_text_is(frame->function, "???") || !frame->object.size)
		return NULL;
	_cleanup_free_ char *object = xasprintf("%.*s", MASSIF_TEXT(frame->object));

	return xasprintf("[%s]", text_base_name(object));
}

/*
 * The displayed function and location of @node: *@location_out may be NULL. @may_be_wrapper: a
 * wrapper that represents its stack.
 */
static void name_node(const struct massif_file *f, uint32_t node, bool may_be_wrapper,
		      char **function_out, char **location_out)
{
	struct massif_frame frame;

	massif_file_frame(&f->node[node], &frame);
	bool is_wrapper = may_be_wrapper && massif_wrapper_rank(f, &frame) != RANK_SITE;
	char *special = special_name(f, &frame, is_wrapper);

	massif_paths_site(f, node, function_out, location_out);
	(*function_out)[text_size_without_clone(*function_out)] = '\0';
	if (!special && **function_out != '[')
		return;
	free(*location_out);
	*location_out = NULL;
	if (!special)
		return;
	free(*function_out);
	*function_out = text_clean(special, strlen(special));
	free(special);
}

/* Nodes of equal names are one site. @is_wrapper: the stack has no other frames. */
static char *merged_name(const struct massif_file *f, uint32_t node, bool is_wrapper)
{
	const struct massif_text line = f->node[node].text;
	const char *suffix = is_wrapper ? " ..." : "";
	_cleanup_free_ char *function = NULL, *location = NULL;

	name_node(f, node, is_wrapper, &function, &location);
	if (strcmp(function, "???") == 0) /* distinguished by its address */
		return xasprintf("%.*s%s", MASSIF_TEXT(line), suffix);
	return xasprintf("%s %s%s", function, location ? location : "", suffix);
}

static uint32_t add_merged(const struct massif_file *f, struct massif_merged *m, uint32_t node,
			   uint32_t parent, bool is_wrapper)
{
	_cleanup_free_ char *name = merged_name(f, node, is_wrapper);

	return path_tree_child(m->tree, parent, name, strlen(name));
}

/* Whether @node has no name and its main caller is a wrapper: then it is part of that. */
static bool is_below_wrapper(const struct massif_file *f, uint32_t node)
{
	struct massif_frame frame;

	for (; node; node = f->node[node].first_child) {
		massif_file_frame(&f->node[node], &frame);
		if (frame.line != MASSIF_LINE_FRAME)
			return false;
		if (!massif_text_is(frame.function, "???"))
			return massif_wrapper_is_allocator(&frame);
	}
	return false;
}

/* The role of @node if there is no call site below it. */
static enum frame_rank rank_of(const struct massif_file *f, uint32_t node,
			       const struct massif_frame *frame)
{
	enum frame_rank rank = massif_wrapper_rank(f, frame);

	return rank == RANK_SITE && is_below_wrapper(f, node) ? RANK_UNNAMED : rank;
}

/* A wrapper has bytes of its own if the stack ends with it. */
static void place_wrapper(const struct massif_file *f, struct massif_merged *m, uint32_t node,
			  enum frame_rank rank)
{
	const struct massif_place *parent = &m->place[f->node[node].parent];
	struct massif_place *p = &m->place[node];
	bool is_better = !parent->named || wrapper_is_better(rank, parent->rank);

	p->is_ended = parent->is_ended || rank == RANK_THREAD;
	p->rank = is_better ? rank : parent->rank;
	p->named = is_better ? node : parent->named;
	p->bytes = massif_own_bytes(f, node);
	p->node = p->bytes ? add_merged(f, m, p->named, 0, true) : 0;
}

static void place_node(const struct massif_file *f, struct massif_merged *m, uint32_t node)
{
	struct massif_frame frame;
	uint32_t parent = f->node[node].parent;
	struct massif_place *p = &m->place[node];

	massif_file_frame(&f->node[node], &frame);
	if (!parent || frame.line != MASSIF_LINE_FRAME)
		return;
	bool is_first = !f->node[parent].parent || m->place[parent].rank != RANK_SITE;
	enum frame_rank rank = is_first ? rank_of(f, node, &frame) : RANK_SITE;

	if (m->place[parent].is_ended)
		rank = RANK_UNNAMED;
	if (rank != RANK_SITE) {
		place_wrapper(f, m, node, rank);
		return;
	}
	if (!is_first && !m->place[parent].node)
		return;
	p->bytes = f->node[node].bytes;
	p->named = node;
	p->node = add_merged(f, m, node, is_first ? 0 : m->place[parent].node, false);
}

/* Updates maxima from the tree at @root; all of @sum is 0 before and after. */
static void weigh_tree(const struct massif_file *f, struct massif_merged *m, uint32_t root,
		       uint64_t *sum)
{
	uint32_t end = massif_tree_end(f, root);

	for (uint32_t i = root; i < end; i++)
		sum[m->place[i].node] += m->place[i].bytes;
	for (uint32_t i = root; i < end; i++) {
		uint32_t at = m->place[i].node;

		if (at && sum[at] >= m->weight[at]) {
			m->weight[at] = sum[at];
			m->sample[at] = m->place[i].named;
		}
		sum[at] = 0;
	}
}

void massif_merge(const struct massif_file *f, struct massif_merged *m)
{
	*m = (struct massif_merged){.file = f};
	m->tree = path_tree_new();
	m->place = xcalloc(f->node_count, sizeof(*m->place));
	for (uint32_t i = 1; i < f->node_count; i++)
		place_node(f, m, i);
	m->weight = xcalloc(path_tree_node_count(m->tree), sizeof(*m->weight));
	m->sample = xcalloc(path_tree_node_count(m->tree), sizeof(*m->sample));
	_cleanup_free_ uint64_t *sum = xcalloc(path_tree_node_count(m->tree), sizeof(*sum));

	for (size_t s = 0; s < f->snapshot_count; s++) {
		if (!f->snapshot[s].root)
			continue;
		weigh_tree(f, m, f->snapshot[s].root, sum);
		m->largest = MAX(m->largest, f->node[f->snapshot[s].root].bytes);
	}
}

void massif_merged_deinit(struct massif_merged *m)
{
	path_tree_free(m->tree);
	free(m->place);
	free(m->weight);
	free(m->sample);
}

uint32_t massif_merged_only_caller(const struct massif_merged *m, uint32_t node)
{
	uint32_t c = path_tree_node(m->tree, node)->first_child;

	for (; c; c = path_tree_node(m->tree, c)->next_sibling)
		if ((double)m->weight[c] >= MOST * (double)m->weight[node])
			return c;
	return 0;
}

void massif_merged_name(const struct massif_merged *m, uint32_t node, char **function_out,
			char **location_out)
{
	/* only a stack of wrappers alone begins with a wrapper */
	bool may_be_wrapper = !path_tree_node(m->tree, node)->parent;

	name_node(m->file, m->sample[node], may_be_wrapper, function_out, location_out);
}
