/* The end of a program, as event_sink.space_end. */
#ifndef PTMEM_IMAGE_END_H
#define PTMEM_IMAGE_END_H

#include "tracee/state/event_sink.h"

/* Ends the session of @space. */
void image_end(void *ctx, struct address_space *space, enum space_end why);

#endif
