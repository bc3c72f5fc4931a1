/* See recording_diff.h. */
#include "report/recording_diff.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/vec.h"
#include "recording/recording_site.h"
#include "report/recording_paths.h"

static const char *text_of(const struct recording *r, enum recording_table_id id, size_t row,
			   unsigned column)
{
	uint64_t text = recording_get(r, id, row, column);

	return text ? r->text.data[text] : NULL;
}

static bool has_build(const struct recording *r, const char *build_id)
{
	for (size_t i = 0; build_id && i < recording_rows(r, RECORDING_OBJECTS); i++) {
		const char *other = text_of(r, RECORDING_OBJECTS, i, OBJECT_BUILD_ID);

		if (other && strcmp(other, build_id) == 0)
			return true;
	}
	return false;
}

void recording_diff_match(struct frame_match *m, enum path_side side, const struct recording *r,
			  const struct recording *other)
{
	size_t objects = recording_rows(r, RECORDING_OBJECTS);
	_cleanup_free_ bool *is_same = xcalloc(objects + 1, sizeof(*is_same)); /* [0]: none */

	for (size_t i = 0; i < objects; i++)
		is_same[i + 1] =
			has_build(other, text_of(r, RECORDING_OBJECTS, i, OBJECT_BUILD_ID));
	for (size_t i = 0; i < recording_rows(r, RECORDING_FRAMES); i++) {
		uint64_t object = recording_get(r, RECORDING_FRAMES, i, FRAME_OBJECT);
		const struct match_frame frame = {
			.function = text_of(r, RECORDING_FRAMES, i, FRAME_FUNCTION),
			.file = text_of(r, RECORDING_FRAMES, i, FRAME_FILE),
			.object = object ? text_of(r, RECORDING_OBJECTS, object - 1, OBJECT_PATH) :
					   NULL,
			.line = recording_get(r, RECORDING_FRAMES, i, FRAME_LINE),
			.is_same_build = is_same[object],
		};

		frame_match_add(m, side, &frame);
	}
}

static void add_leaf(struct diff_paths *p, enum path_side side, const struct recording *r,
		     size_t leaf, const struct recording_value *value)
{
	VEC(uint32_t) frame = {0};
	struct diff_stack stack = {.bytes = value->bytes,
				   .blocks = recording_count(r, value->blocks),
				   .variance = recording_square_error(r, value->variance)};
	int64_t site = recording_site(r, leaf);

	for (uint64_t n = recording_get(r, RECORDING_LEAVES, leaf, LEAF_NODE); n > 0;
	     n = recording_get(r, RECORDING_NODES, n - 1, NODE_PARENT)) {
		if ((int64_t)n - 1 == site)
			stack.site = frame.count;
		*vec_add(&frame) = (uint32_t)recording_get(r, RECORDING_NODES, n - 1, NODE_FRAME);
	}
	stack.frame = frame.data;
	stack.count = frame.count;
	diff_paths_add(p, side, &stack);
	vec_deinit(&frame);
}

void recording_diff_add(struct diff_paths *p, enum path_side side, const struct recording *r,
			const struct recording_view *v)
{
	for (size_t i = 0; i < recording_rows(r, RECORDING_LEAVES); i++)
		if (v->leaf[i].bytes || v->leaf[i].blocks)
			add_leaf(p, side, r, i, &v->leaf[i]);
}
