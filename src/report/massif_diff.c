/* See massif_diff.h. Everything below the threshold is a frame without a place. */
#include "report/massif_diff.h"

#include "base/cleanup.h"
#include "base/vec.h"
#include "profile/estimate.h"
#include "report/massif_frame.h"
#include "report/massif_sampling.h"
#include "report/massif_wrapper.h"

static char *text_or_null(struct massif_text t)
{
	return t.size && !massif_text_is(t, "???") ? xstrndup(t.at, t.size) : NULL;
}

static void add_node(struct frame_match *m, enum path_side side, const struct massif_node *node)
{
	struct massif_frame frame;

	massif_file_frame(node, &frame);
	_cleanup_free_ char *function = frame.line == MASSIF_LINE_AGGREGATE ?
						xstrdup("[below threshold]") :
					frame.line == MASSIF_LINE_ROOT ?
						xstrdup("[allocation functions]") :
						text_or_null(frame.function);
	_cleanup_free_ char *file = text_or_null(frame.file), *object = text_or_null(frame.object);

	frame_match_add(m, side, &(struct match_frame){.function = function, .file = file,
						       .object = object,
						       .line = frame.line_number});
}

void massif_diff_match(struct frame_match *m, enum path_side side, const struct massif_file *file)
{
	frame_match_add(m, side, &(struct match_frame){.function = "[none]"});
	for (size_t i = 1; i < file->node_count; i++)
		add_node(m, side, &file->node[i]);
}

/* From @node back to its root, which is itself a frame only if it is the whole stack. */
static void add_stack(struct diff_paths *p, enum path_side side, const struct massif_file *f,
		      uint32_t node, uint64_t interval)
{
	uint64_t bytes = massif_own_bytes(f, node);
	VEC(uint32_t) frame = {0};
	uint32_t n = node;

	do {
		*vec_add(&frame) = n;
		n = f->node[n].parent;
	} while (n && f->node[n].parent);
	for (size_t i = 0; i < frame.count / 2; i++) { /* innermost first */
		uint32_t swapped = frame.data[i];

		frame.data[i] = frame.data[frame.count - 1 - i];
		frame.data[frame.count - 1 - i] = swapped;
	}
	diff_paths_add(p, side, &(struct diff_stack){.frame = frame.data, .count = frame.count,
						     .site = massif_wrapper_site(f, node),
						     .bytes = bytes,
						     .variance = estimate_variance_bound(
							     interval, bytes)});
	vec_deinit(&frame);
}

void massif_diff_add(struct diff_paths *p, enum path_side side, const struct massif_file *file,
		     size_t index)
{
	uint32_t root = file->snapshot[index].root;
	uint64_t interval = massif_sampling_interval(file);

	for (uint32_t n = root, end = massif_tree_end(file, root); n < end; n++)
		if (massif_own_bytes(file, n))
			add_stack(p, side, file, n, interval);
}
