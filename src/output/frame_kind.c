/* See frame_kind.h. */
#include "output/frame_kind.h"

#include <string.h>

enum frame_kind frame_kind(const struct frame_text *frame)
{
	const char *function = frame->function, *object = frame->object;

	switch (standard_library(frame)) {
	case STANDARD_C:
	case STANDARD_LOADER:
		return FRAME_LIBC;
	case STANDARD_CXX_RUST:
		return FRAME_STANDARD;
	case STANDARD_MALLOC:
	case STANDARD_PACKAGE:
		return FRAME_LIBRARY;
	case STANDARD_NONE:
		break;
	}
	if (object && strcmp(object, "???") != 0)
		return strstr(object, ".so") ? FRAME_LIBRARY : FRAME_PROGRAM;
	return function && *function != '[' ? FRAME_PROGRAM : FRAME_NONE;
}
