/* See unresolved.h. Parents come before their children, so one pass is enough. */
#include "output/unresolved.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "profile/estimate.h"

#define NAME "[below resolution]"

static bool is_unresolved(const struct path_node *n)
{
	for (int side = PATH_OLD; side <= PATH_NEW; side++) {
		if (n->total[side] > 0 &&
		    !estimate_is_below_resolution((double)n->total[side], sqrt(n->variance[side])))
			return false;
	}
	return n->total[PATH_OLD] > 0 || n->total[PATH_NEW] > 0;
}

struct path_tree *unresolved_merge(const struct path_tree *t)
{
	struct path_tree *out = path_tree_new();
	uint32_t count = path_tree_node_count(t);
	_cleanup_free_ uint32_t *place = xcalloc(count, sizeof(*place)); /* in @out */
	_cleanup_free_ bool *is_merged = xcalloc(count, sizeof(*is_merged));

	for (uint32_t i = 0; i < count; i++) {
		const struct path_node *n = path_tree_node(t, i);

		is_merged[i] = i && (is_merged[n->parent] || is_unresolved(n));
		if (!i || is_merged[n->parent])
			place[i] = place[n->parent];
		else if (is_merged[i])
			place[i] = path_tree_child(out, place[n->parent], NAME, strlen(NAME));
		else
			place[i] = path_tree_child(out, place[n->parent], n->name, strlen(n->name));
		if (!is_merged[i])
			path_tree_set_kind(out, place[i], n->kind);
		path_tree_add_own(out, place[i], n);
	}
	path_tree_sum(out);
	return out;
}
