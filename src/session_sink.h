/* The sessions' side of struct target_sink (target/target.h), where its calls are told. */
#ifndef PTMEM_SESSION_SINK_H
#define PTMEM_SESSION_SINK_H

struct run;
struct target_sink;

/* The sink that makes, feeds and ends the sessions of @run, which is its ctx. */
void session_sink_fill(struct target_sink *sink, struct run *run);

#endif
