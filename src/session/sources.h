/*
 * The sources of a session. With --pages-as-heap the heap's profile contains mapped pages instead:
 * all of brk, mmap, the initial mappings and the stack.
 */
#ifndef PTMEM_SOURCES_H
#define PTMEM_SOURCES_H

#include "base/types.h"

struct heap_event;
struct profile_options;
struct run;
struct session;

/* The lifetime of a session's sources. @options: the heap's. */
void sources_init(struct session *s, const struct profile_options *options, uint64_t start_ns);
void sources_fork(struct session *child); /* currently a plain copy of its parent */
void sources_deinit(struct session *s);
void sources_start(struct session *s);    /* takes snapshot 0, after the initial mappings */
void sources_event(struct session *s, const struct heap_event *he);
void sources_forget(struct session *s, taddr_t start, taddr_t end);
void sources_recall(struct session *s, uint32_t module);
/* Ends all profiles except the heap's. */
void sources_end(struct session *s, uint64_t now_ns);
/* Writes their files, and prints what they have, unless these are drafts. */
void sources_finish(struct session *s);

/* Warns if page faults were lost. */
void sources_print_lost(const struct run *run);

#endif
