/* See groups.h. */
#include "profile/groups.h"

#include <stdlib.h>
#include <string.h>

struct groups *groups_new(size_t count)
{
	struct groups *g = xcalloc(1, sizeof(*g) + count * sizeof(g->group[0]));

	g->count = count;
	g->is_in = xcalloc(count + 1, sizeof(*g->is_in));
	for (size_t i = 0; i < count; i++)
		g->group[i].epoch = 1;
	return g;
}

struct groups *groups_clone(const struct groups *g)
{
	if (!g)
		return NULL;
	struct groups *c = groups_new(g->count);

	for (size_t i = 0; i < g->count; i++) {
		const struct leaf_group *from = &g->group[i];

		c->group[i] = (struct leaf_group){from->live, from->peak, from->epoch, {0}};
		for (size_t k = 0; k < from->leaf.count; k++)
			*vec_add(&c->group[i].leaf) = from->leaf.data[k];
	}
	return c;
}

void groups_free(struct groups *g)
{
	for (size_t i = 0; g && i < g->count; i++)
		vec_deinit(&g->group[i].leaf);
	if (g)
		free(g->is_in);
	free(g);
}

void groups_add_leaf(struct groups *g, uint32_t index)
{
	for (size_t i = 0; i < g->count; i++) {
		struct leaf_group *group = &g->group[i];

		while (group->leaf.count <= index)
			*vec_add(&group->leaf) = (struct group_leaf){0};
		group->leaf.data[index].epoch = g->is_in[i] ? group->epoch : 0;
	}
}

static bool is_in(const struct leaf_group *group, uint32_t index)
{
	return index < group->leaf.count && group->leaf.data[index].epoch;
}

void groups_save(struct groups *g, uint32_t index, uint64_t bytes)
{
	for (size_t i = 0; i < g->count; i++) {
		struct leaf_group *group = &g->group[i];

		if (!is_in(group, index) || group->leaf.data[index].epoch == group->epoch)
			continue;
		group->leaf.data[index] = (struct group_leaf){group->epoch, bytes};
	}
}

void groups_grow(struct groups *g, uint32_t index, uint64_t bytes)
{
	for (size_t i = 0; i < g->count; i++) {
		struct leaf_group *group = &g->group[i];

		if (!is_in(group, index))
			continue;
		group->live += bytes;
		if (group->live <= group->peak)
			continue;
		group->peak = group->live;
		group->epoch++;
	}
}

void groups_shrink(struct groups *g, uint32_t index, uint64_t bytes)
{
	for (size_t i = 0; i < g->count; i++)
		if (is_in(&g->group[i], index))
			g->group[i].live -= bytes;
}

uint64_t groups_at_peak(const struct leaf_group *group, uint32_t index, uint64_t bytes)
{
	if (!is_in(group, index))
		return 0;
	const struct group_leaf *l = &group->leaf.data[index];

	return l->epoch == group->epoch ? l->at_peak : bytes;
}
