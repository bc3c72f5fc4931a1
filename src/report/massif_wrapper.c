/* See massif_wrapper.h. */
#include "report/massif_wrapper.h"

#include "base/alloc.h"
#include "base/cleanup.h"

bool massif_wrapper_is_allocator(const struct massif_frame *frame)
{
	_cleanup_free_ char *function = xasprintf("%.*s", MASSIF_TEXT(frame->function));

	return wrapper_is_allocator(function);
}

enum frame_rank massif_wrapper_rank(const struct massif_frame *frame)
{
	_cleanup_free_ char *function = xasprintf("%.*s", MASSIF_TEXT(frame->function));
	_cleanup_free_ char *object = xasprintf("%.*s", MASSIF_TEXT(frame->object));
	_cleanup_free_ char *file = xasprintf("%.*s", MASSIF_TEXT(frame->file));

	return wrapper_rank(&(struct frame_text){function, file, object});
}
