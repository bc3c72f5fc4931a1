/* From leaves of a recording to named call paths. */
#include "report/recording_paths.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "recording/recording_site.h"

char *recording_frame_name(const struct recording *r, size_t frame)
{
	const struct frame_text text = recording_frame_text(r, frame);

	if (text.function)
		return text_clean(text.function, strlen(text.function));
	uint64_t line = recording_get(r, RECORDING_FRAMES, frame, FRAME_LINE);
	_cleanup_free_ char *name =
		text.object ? xasprintf("[%s]", text_base_name(text.object)) :
		text.file   ? xasprintf("[%s:%" PRIu64 "]", text.file, line) :
			      xstrdup("[unknown]");

	return text_clean(name, strlen(name));
}

/* The label of @frame with the function @name. */
static char *label_of(const struct recording *r, size_t frame, const char *name)
{
	const struct frame_text text = recording_frame_text(r, frame);
	unsigned line = (unsigned)recording_get(r, RECORDING_FRAMES, frame, FRAME_LINE);
	_cleanup_free_ char *label = NULL;

	if (text.file && line)
		label = xasprintf("%s (%s:%u)", name, text_base_name(text.file), line);
	else if (text.file)
		label = xasprintf("%s (%s)", name, text_base_name(text.file));
	else if (text.object && *name != '[')
		label = xasprintf("%s (in %s)", name, text_base_name(text.object));
	else
		label = xstrdup(name);
	return text_clean(label, strlen(label));
}

char *recording_frame_label(const struct recording *r, size_t frame)
{
	_cleanup_free_ char *name = recording_frame_name(r, frame);

	return label_of(r, frame, name);
}

char *recording_site_label(const struct recording *r, int64_t node)
{
	if (node < 0)
		return xstrdup("[unknown]");
	size_t frame = recording_get(r, RECORDING_NODES, (size_t)node, NODE_FRAME);
	_cleanup_free_ char *name = recording_frame_name(r, frame);

	name[text_size_without_clone(name)] = '\0';
	return label_of(r, frame, name);
}

#define SIMILAR 5u

char *recording_not_found(const struct recording *r, bool is_file, const char *wanted)
{
	_cleanup_free_ char *clean = text_clean(wanted, strlen(wanted));
	char *text = xasprintf("the recording has no %sfunction '%s'",
				  is_file ? "source file or " : "", clean);
	const char *similar[SIMILAR];
	size_t count = 0;

	for (size_t i = 0; i < recording_rows(r, RECORDING_FRAMES) && count < SIMILAR; i++) {
		const struct frame_text frame = recording_frame_text(r, i);
		const char *name = frame.function;

		if (is_file && name && text_is_function(name, wanted, strlen(wanted))) {
			free(text);
			return xasprintf("the recording has no source lines of '%s': build the "
					 "program with -g", clean);
		}
		if (is_file && frame.file && strstr(frame.file, wanted))
			name = frame.file;
		else if (!name || !strstr(name, wanted))
			continue;
		if (text_is_among(name, similar, count))
			continue;
		similar[count++] = name;
		_cleanup_free_ char *part = text_clean(name, strlen(name)), *before = text;

		text = xasprintf("%s%s %s", before, count == 1 ? "; similar:" : ",", part);
	}
	return text;
}

void recording_leaf_frames(const struct recording *r, size_t leaf, recording_frames *out)
{
	for (uint64_t n = recording_get(r, RECORDING_LEAVES, leaf, LEAF_NODE); n > 0;
	     n = recording_get(r, RECORDING_NODES, n - 1, NODE_PARENT))
		*vec_add(out) = recording_get(r, RECORDING_NODES, n - 1, NODE_FRAME);
}

static uint32_t add_frame(struct path_tree *t, uint32_t at, const struct recording *r,
			  uint64_t frame)
{
	_cleanup_free_ char *name = recording_frame_name(r, frame);

	const struct frame_text text = recording_frame_text(r, frame);

	at = path_tree_child(t, at, name, strlen(name));
	path_tree_set_kind(t, at, frame_kind(&text));
	return at;
}

static void add_leaf(struct path_tree *t, const struct recording *r, size_t leaf,
		     const struct recording_value *value)
{
	recording_frames frame = {0};
	uint32_t at = 0;

	recording_leaf_frames(r, leaf, &frame);
	for (size_t i = frame.count; i-- > 0;)
		at = add_frame(t, at, r, frame.data[i]);
	path_tree_add(t, at, PATH_NEW, value->bytes);
	path_tree_add_variance(t, at, PATH_NEW, recording_square_error(r, value->variance));
	vec_deinit(&frame);
}

void recording_paths_add(struct path_tree *t, const struct recording *r,
			 const struct recording_view *v)
{
	for (size_t leaf = 0; leaf < recording_rows(r, RECORDING_LEAVES); leaf++)
		if (v->leaf[leaf].bytes)
			add_leaf(t, r, leaf, &v->leaf[leaf]);
}
