/* See unresolved.h. Parents come before their children, so one pass is enough. */
#include "output/unresolved.h"

#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "profile/estimate.h"

#define NAME "[below resolution]"

static bool is_unresolved(const struct path_node *n, const uint64_t interval[2])
{
	for (int side = PATH_OLD; side <= PATH_NEW; side++) {
		double error = estimate_error_bound(interval[side], n->total[side]);

		if (n->total[side] > 0 &&
		    !estimate_is_below_resolution((double)n->total[side], error))
			return false;
	}
	return n->total[PATH_OLD] > 0 || n->total[PATH_NEW] > 0;
}

struct path_tree *unresolved_merge(const struct path_tree *t, const uint64_t interval[2])
{
	struct path_tree *out = path_tree_new();
	uint32_t count = path_tree_node_count(t);
	_cleanup_free_ uint32_t *place = xcalloc(count, sizeof(*place)); /* in @out */
	_cleanup_free_ bool *is_merged = xcalloc(count, sizeof(*is_merged));

	for (uint32_t i = 0; i < count; i++) {
		const struct path_node *n = path_tree_node(t, i);

		is_merged[i] = i && (is_merged[n->parent] || is_unresolved(n, interval));
		if (!i || is_merged[n->parent])
			place[i] = place[n->parent];
		else if (is_merged[i])
			place[i] = path_tree_child(out, place[n->parent], NAME, strlen(NAME));
		else
			place[i] = path_tree_child(out, place[n->parent], n->name, strlen(n->name));
		if (!is_merged[i])
			path_tree_set_kind(out, place[i], n->kind);
		for (int side = PATH_OLD; side <= PATH_NEW; side++)
			path_tree_add(out, place[i], (enum path_side)side, n->own[side]);
	}
	path_tree_sum(out);
	return out;
}
