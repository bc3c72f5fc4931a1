/* The event sink of a run: creates, feeds and ends its sessions. */
#ifndef PTMEM_SESSION_SINK_H
#define PTMEM_SESSION_SINK_H

#include "tracee/state/event_sink.h"

struct run;

/* @run is the ctx of the sink, and of @poll. */
void session_sink_init(struct event_sink *out, struct run *run, bool (*poll)(void *ctx));

#endif
