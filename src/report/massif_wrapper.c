/* See massif_wrapper.h. */
#include "report/massif_wrapper.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/vec.h"
#include "symbols/stack_site.h"

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

struct path {
	const struct massif_file *file;
	VEC(uint32_t) node; /* outermost first */
	VEC(char *) text;   /* of frames looked up so far; owned */
};

/* NULL = unknown: functions with source lines have none. */
static const char *object_of(struct path *p, const struct massif_frame *frame)
{
	if (!frame->object.size || massif_text_is(frame->object, "???"))
		return NULL;
	return *vec_add(&p->text) = xasprintf("%.*s", MASSIF_TEXT(frame->object));
}

/* Frames below the threshold have no name. */
static bool frame_at(void *ctx, size_t i, struct stack_frame *out)
{
	struct path *p = ctx;
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
	struct path p = {.file = file};
	uint32_t n = outermost;

	do {
		*vec_add(&p.node) = n;
		n = file->node[n].parent;
	} while (n && file->node[n].parent);
	const struct stack stack = {frame_at, &p};
	size_t site = stack_site_find(&stack).frame;

	for (size_t i = 0; i < p.text.count; i++)
		free(p.text.data[i]);
	vec_deinit(&p.text);
	vec_deinit(&p.node);
	return site;
}
