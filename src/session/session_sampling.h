/* What a session says about its sampling interval, which may change while it runs (--budget). */
#ifndef PTMEM_SESSION_SAMPLING_H
#define PTMEM_SESSION_SAMPLING_H

#include "base/types.h"

struct session;

/* Sets the text in desc: for a heap profile of samples, @interval bytes apart; 0: none. */
void session_describe(struct session *s, uint64_t interval);
/* @s has a sample whose interval is the smallest one, shifted by @shift: for desc: and messages. */
void session_sampling_note_sample(struct session *s, uint8_t shift);
/* The longest interval of its samples. */
uint64_t session_sampling_longest(const struct session *s);
/* "512.0 KiB", or "512.0 KiB to 4.0 MiB"; the caller frees it. */
char *session_sampling_range(const struct session *s);

#endif
