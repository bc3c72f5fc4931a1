/* From leaves of a recording to named call paths. */
#include "report/recording_paths.h"

#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "recording/recording_names.h"

static const char *frame_text(const struct recording *r, size_t frame, unsigned column)
{
	uint64_t text = recording_get(r, RECORDING_FRAMES, frame, column);

	return text ? r->text.data[text] : NULL;
}

static const char *frame_object(const struct recording *r, size_t frame)
{
	uint64_t object = recording_get(r, RECORDING_FRAMES, frame, FRAME_OBJECT);

	return object ? r->text.data[recording_get(r, RECORDING_OBJECTS, object - 1, OBJECT_PATH)] :
			NULL;
}

char *recording_frame_name(const struct recording *r, size_t frame)
{
	const char *function = frame_text(r, frame, FRAME_FUNCTION);
	const char *object = frame_object(r, frame);

	if (function)
		return text_clean(function, strlen(function));
	_cleanup_free_ char *name = object ? xasprintf("[%s]", text_base_name(object)) :
					     xstrdup("[unknown]");

	return text_clean(name, strlen(name));
}

char *recording_frame_label(const struct recording *r, size_t frame)
{
	_cleanup_free_ char *name = recording_frame_name(r, frame);
	const char *file = frame_text(r, frame, FRAME_FILE), *object = frame_object(r, frame);
	_cleanup_free_ char *label = NULL;

	if (file)
		label = xasprintf("%s (%s:%u)", name, text_base_name(file),
				  (unsigned)recording_get(r, RECORDING_FRAMES, frame, FRAME_LINE));
	else if (object && *name != '[')
		label = xasprintf("%s (in %s)", name, text_base_name(object));
	else
		label = xstrdup(name);
	return text_clean(label, strlen(label));
}

static enum frame_kind kind_of(const struct recording *r, size_t frame)
{
	const struct frame_text text = {frame_text(r, frame, FRAME_FUNCTION),
					frame_text(r, frame, FRAME_FILE), frame_object(r, frame)};

	return frame_kind(&text);
}

int64_t recording_site(const struct recording *r, size_t leaf)
{
	int64_t last = -1;

	for (uint64_t n = recording_get(r, RECORDING_LEAVES, leaf, LEAF_NODE); n > 0;
	     n = recording_get(r, RECORDING_NODES, n - 1, NODE_PARENT)) {
		uint64_t frame = recording_get(r, RECORDING_NODES, n - 1, NODE_FRAME);

		last = (int64_t)n - 1;
		if (recording_get(r, RECORDING_FRAMES, frame, FRAME_KIND) < KIND_ALLOCATOR)
			break;
	}
	return last;
}

static uint32_t add_frame(struct path_tree *t, uint32_t at, const struct recording *r,
			  uint64_t node, enum recording_order order)
{
	uint64_t frame = recording_get(r, RECORDING_NODES, node, NODE_FRAME);
	_cleanup_free_ char *name = order == RECORDING_SITE_FIRST ?
					    recording_frame_label(r, frame) :
					    recording_frame_name(r, frame);

	at = path_tree_child(t, at, name, strlen(name));
	path_tree_set_kind(t, at, kind_of(r, frame));
	return at;
}

static void add_leaf(struct path_tree *t, enum path_side side, const struct recording *r,
		     size_t leaf, uint64_t value, enum recording_order order)
{
	VEC(uint64_t) path = {0};
	uint32_t at = 0;
	uint64_t node = recording_get(r, RECORDING_LEAVES, leaf, LEAF_NODE);

	if (order == RECORDING_SITE_FIRST)
		node = (uint64_t)(recording_site(r, leaf) + 1);
	for (; node > 0; node = recording_get(r, RECORDING_NODES, node - 1, NODE_PARENT))
		*vec_add(&path) = node - 1;
	for (size_t i = 0; i < path.count; i++) {
		size_t k = order == RECORDING_SITE_FIRST ? i : path.count - 1 - i;

		at = add_frame(t, at, r, path.data[k], order);
	}
	path_tree_add(t, at, side, value);
	vec_deinit(&path);
}

void recording_paths_add(struct path_tree *t, enum path_side side, const struct recording *r,
			 const struct recording_view *v, enum recording_order order,
			 bool wants_blocks)
{
	for (size_t leaf = 0; leaf < recording_rows(r, RECORDING_LEAVES); leaf++) {
		uint64_t value = wants_blocks ? v->leaf[leaf].blocks : v->leaf[leaf].bytes;

		if (value)
			add_leaf(t, side, r, leaf, value, order);
	}
}
