#include "report/massif_paths.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/text.h"
#include "profile/estimate.h"
#include "report/massif_file.h"
#include "symbols/wrapper.h"

bool massif_wrapper_is_allocator(const struct massif_frame *frame)
{
	_cleanup_free_ char *function = xasprintf("%.*s", MASSIF_TEXT(frame->function));

	return wrapper_is_allocator(function);
}

enum frame_rank massif_wrapper_rank(const struct massif_file *f, const struct massif_frame *frame)
{
	_cleanup_free_ char *function = xasprintf("%.*s", MASSIF_TEXT(frame->function));
	_cleanup_free_ char *object = xasprintf("%.*s", MASSIF_TEXT(frame->object));
	_cleanup_free_ char *file = xasprintf("%.*s", MASSIF_TEXT(frame->file));
	const struct frame_text text = {
		.function = function, .file = file, .object = object, .my_code = f->my_code};

	return wrapper_rank(&text);
}

struct massif_stack {
	const struct massif_file *file;
	VEC(uint32_t) node; /* outermost first */
	VEC(char *) text;   /* of frames looked up so far; owned */
};

/* NULL = unknown: functions with source lines have none. */
static const char *object_of(struct massif_stack *p, const struct massif_frame *frame)
{
	if (!frame->object.size || massif_text_is(frame->object, "???"))
		return NULL;
	return *vec_add(&p->text) = xasprintf("%.*s", MASSIF_TEXT(frame->object));
}

/* Frames below the threshold have no name. */
static bool frame_at(void *ctx, size_t i, struct stack_frame *out)
{
	struct massif_stack *p = ctx;
	struct massif_frame frame;

	if (i >= p->node.count)
		return false;
	massif_file_frame(&p->file->node[p->node.data[p->node.count - 1 - i]], &frame);
	*out = (struct stack_frame){.rank = RANK_UNNAMED};
	if (frame.line != MASSIF_LINE_FRAME)
		return true;
	bool is_named = !massif_text_is(frame.function, "???");

	*out = (struct stack_frame){
		.rank = massif_wrapper_rank(p->file, &frame),
		.is_named = is_named,
		.is_allocator = is_named && massif_wrapper_is_allocator(&frame),
		.object = object_of(p, &frame),
	};
	return true;
}

size_t massif_wrapper_site(const struct massif_file *file, uint32_t outermost)
{
	struct massif_stack p = {.file = file};
	uint32_t n = outermost;

	do {
		*vec_add(&p.node) = n;
		n = file->node[n].parent;
	} while (n && file->node[n].parent);
	const struct stack stack = {frame_at, &p};
	size_t site = stack_site_find(&stack).frame;

	vec_release(&p.text, e, free(*e));
	vec_deinit(&p.node);
	return site;
}

/*
 * Massif trees as call paths. A node with bytes of its own is the end of one path: from it to the
 * root is from the outermost caller inwards, the order of flame graphs.
 */

static int find_last(const struct massif_file *f, size_t *index_out)
{
	for (size_t i = f->snapshot_count; i-- > 0;) {
		if (f->snapshot[i].root) {
			*index_out = i;
			return 0;
		}
	}
	return -EINVAL;
}

int massif_paths_find(const struct massif_file *f, uint64_t which, size_t *index_out,
		      char **why_out)
{
	bool has_peak = f->peak < f->snapshot_count && f->snapshot[f->peak].root;

	if (has_peak && (which == MASSIF_SNAPSHOT_DEFAULT || which == MASSIF_SNAPSHOT_PEAK)) {
		*index_out = f->peak;
		return 0;
	}
	if (which == MASSIF_SNAPSHOT_PEAK) {
		*why_out = xstrdup("no snapshot is marked as the peak");
		return -EINVAL;
	}
	if (which == MASSIF_SNAPSHOT_DEFAULT || which == MASSIF_SNAPSHOT_LAST) {
		if (!find_last(f, index_out))
			return 0;
		*why_out = xstrdup("no snapshot has a tree");
		return -EINVAL;
	}
	for (size_t i = 0; i < f->snapshot_count; i++) {
		if (f->snapshot[i].number != which)
			continue;
		if (f->snapshot[i].root) {
			*index_out = i;
			return 0;
		}
		*why_out = xasprintf("snapshot %" PRIu64 " has no tree: it is not a detailed one",
				     which);
		return -EINVAL;
	}
	*why_out = xasprintf("there is no snapshot %" PRIu64, which);
	return -EINVAL;
}

char *massif_snapshot_text(const struct massif_file *f, size_t index)
{
	return xasprintf("%ssnapshot %" PRIu64, index == f->peak ? "peak " : "",
			 f->snapshot[index].number);
}

static struct massif_text base_name(struct massif_text path)
{
	const char *slash = memrchr(path.at, '/', path.size);

	if (!slash || slash + 1 == path.at + path.size)
		return path;
	return (struct massif_text){slash + 1, path.size - (size_t)(slash + 1 - path.at)};
}

/* The name of the frame if only its function counts. */
static char *function_name(const struct massif_frame *frame)
{
	if (frame->line == MASSIF_LINE_AGGREGATE)
		return xstrdup("[below threshold]");
	if (frame->line == MASSIF_LINE_ROOT)
		return xstrdup("[allocation functions]");
	if (!massif_text_is(frame->function, "???"))
		return xstrndup(frame->function.at, frame->function.size);
	if (frame->file.size)
		return xasprintf("[%.*s:%" PRIu64 "]", MASSIF_TEXT(frame->file),
				 frame->line_number);
	if (frame->object.size && !massif_text_is(frame->object, "???"))
		return xasprintf("[%.*s]", MASSIF_TEXT(base_name(frame->object)));
	return xstrdup("[unknown]");
}

static char *location_name(const struct massif_frame *frame)
{
	if (frame->line != MASSIF_LINE_FRAME || !frame->location.size)
		return NULL;
	if (frame->file.size)
		return xasprintf("(%.*s)", MASSIF_TEXT(frame->location));
	return xasprintf("(in %.*s)", MASSIF_TEXT(base_name(frame->object)));
}

void massif_paths_site(const struct massif_file *file, uint32_t node, char **function_out,
		       char **location_out)
{
	struct massif_frame frame;

	massif_file_frame(&file->node[node], &frame);
	_cleanup_free_ char *location = location_name(&frame);

	*function_out = text_clean(frame.function.at, frame.function.size);
	*location_out = location ? text_clean(location, strlen(location)) : NULL;
}

static enum frame_kind kind_of(const struct massif_file *f, const struct massif_frame *frame,
			       const char *name)
{
	_cleanup_free_ char *object = xasprintf("%.*s", MASSIF_TEXT(frame->object));
	_cleanup_free_ char *file = xasprintf("%.*s", MASSIF_TEXT(frame->file));

	return frame_kind(&(struct frame_text){name, file, *object ? object : NULL,
					       .my_code = f->my_code});
}

static uint32_t add_frame(const struct massif_file *f, uint32_t node, uint32_t parent,
			  struct path_tree *t)
{
	struct massif_frame frame;

	massif_file_frame(&f->node[node], &frame);
	_cleanup_free_ char *name = function_name(&frame);
	uint32_t child = path_tree_child(t, parent, name, strlen(name));

	path_tree_set_kind(t, child, kind_of(f, &frame, name));
	return child;
}

/*
 * Adds the path from @node up to its root, which itself is a frame only where it is the whole path.
 */
static void add_path(const struct massif_file *f, uint32_t node, uint64_t interval,
		     struct path_tree *t)
{
	uint32_t at = 0, n = node;

	do {
		at = add_frame(f, n, at, t);
		n = f->node[n].parent;
	} while (n && f->node[n].parent);
	uint64_t bytes = massif_own_bytes(f, node);

	path_tree_add(t, at, PATH_NEW, bytes);
	path_tree_add_variance(t, at, PATH_NEW, estimate_variance_bound(interval, bytes));
}

void massif_paths_add(const struct massif_file *file, size_t index, struct path_tree *t)
{
	uint32_t root = file->snapshot[index].root;
	uint64_t interval = massif_sampling_interval(file);

	CHECK(root);
	for (uint32_t n = root, end = massif_tree_end(file, root); n < end; n++)
		if (massif_own_bytes(file, n))
			add_path(file, n, interval, t);
}
