/*
 * Names of code that the program of a session generates, from what it publishes while it runs
 * (languages/perf_map.h). Hides when these files are read, and what was known of an address whose
 * code has changed.
 *
 * A name is looked up when an address is new in a call tree, with the time of its event: the key of
 * the name (base/frame_key.h) is its frame. A change in the files takes effect with the first event
 * that is not older: addresses are looked up again, the unwinder's rules for them are dropped, and
 * no stack is taken to be what the thread's last one was.
 *
 * When the files are read:
 *
 *	at a breakpoint                  what was added is read at each
 *	before records of pads           likewise, for each batch
 *	at an address without a name     they are opened, at most 50 times a second
 *	once a second, and at the end    likewise; frames that have no name yet get one
 *
 * Perf maps have no times: what was added between two of these is taken to be as old as the first.
 * If nothing else happens between a change and the first record of new code, names are exact.
 */
#ifndef PTMEM_SESSION_RUNTIMES_CODE_NAMES_H
#define PTMEM_SESSION_RUNTIMES_CODE_NAMES_H

#include "base/types.h"

struct code_names;
struct generated_code;
struct generated_place;
struct heap_event;
struct module;
struct run;
struct session;

/* Whether @m, which may be NULL, is code without an ELF file: it may have been generated. */
bool code_names_may_cover(const struct module *m);

/* The key of the function at @pc, which no ELF file covers; 0 = unknown. */
uint64_t code_names_find(struct session *s, taddr_t pc);

/* Whether the program publishes names. */
bool code_names_are_published(const struct session *s);

/* Whether a file names the function at @pc, and the name begins with @start. */
bool code_names_begin(struct session *s, taddr_t pc, const char *start);

/* For unwind_ops.generated: the function's range. */
bool code_names_range(struct session *s, const struct generated_place *place,
		      struct generated_code *out);

/* The process has mapped @m: a jitdump marks itself like this. */
void code_names_note(struct session *s, const struct module *m);

void code_names_before_event(struct session *s, const struct heap_event *he);
/* As event_sink.records. */
void code_names_before_records(struct session *s, bool is_behind);
/* Whether a change takes effect between events that are next: their times are needed. */
bool code_names_needs_times(const struct session *s);

/* Reads the files, which the process may have written last. */
void code_names_finish(struct session *s);

/* All sessions of @run; returns when to call it again. */
uint64_t code_names_tick(struct run *run, uint64_t now_ns);

void code_names_fork(const struct session *parent, struct session *child);
void code_names_free(struct session *s);

#endif
