/*
 * Event files (--events, --replay): their writer (events.c, with the grammar), their reader
 * (events_read.c), and what makes an unfinished one usable.
 */
#ifndef PTMEM_PROFILE_EVENTS_H
#define PTMEM_PROFILE_EVENTS_H

#include <stdio.h>

#include "base/heap_calls.h"
#include "base/types.h"
#include "profile/calltree.h"
#include "profile/event.h"

/*
 * Events as text: --events writes them, --replay and the tests read them.
 *
 * The grammar is at the head of events.c. The file is self-contained: it contains each call tree
 * node once, before its first use, the modules, the command line and (optionally) names for
 * addresses, so that a replay gives the same massif file without a target.
 */

struct events_writer;

/* A name in the file for one call tree frame. */
struct events_name {
	taddr_t pc;
	uint32_t module;
	const char *name, *file, *dir; /* NULL = unknown */
	uint32_t line;
	bool is_inlined; /* another one for the same address follows */
};

struct events_module {
	uint32_t id;
	taddr_t start, end, bias;
	const char *path;
};

/* Writes to @file, which stays the caller's. Errors are kept: see events_writer_free. */
struct events_writer *events_writer_new(FILE *file);
void events_writer_header(struct events_writer *w, const char *command, uint32_t pid,
			  uint64_t start_ns);
/*
 * The events are samples (--heap-sample), @interval bytes apart on average. Call it after the
 * header, before the first event.
 */
void events_writer_sampling(struct events_writer *w, uint64_t interval, uint64_t seed);
/* The totals of such a file, before its end, and whether they are unreliable. */
void events_writer_totals(struct events_writer *w, const struct call_totals *totals);
/* A module that was mapped (or, with start = end = 0, unmapped). */
void events_writer_module(struct events_writer *w, const struct events_module *m);
/*
 * Names may follow anywhere after the header; the frames of one address together, innermost
 * first.
 */
void events_writer_name(struct events_writer *w, const struct events_name *n);
/* A value for recordings, besides the events; no spaces in @key. */
void events_writer_value(struct events_writer *w, const char *key, const char *value);
void events_writer_event(struct events_writer *w, const struct calltree *t, const struct event *ev);
/* Blocks of @least bytes or more are followed by how much of them was touched; before events. */
void events_writer_touch_size(struct events_writer *w, uint64_t least);
void events_writer_touched(struct events_writer *w, taddr_t addr, uint64_t bytes);
void events_writer_thread_exit(struct events_writer *w, uint32_t thread);
void events_writer_end(struct events_writer *w, uint64_t time_ns);
int events_writer_free(struct events_writer *w); /* 0 or -errno of the first failed write */

/* Reads event files. */

struct events_reader_ops {
	void (*header)(void *ctx, const char *command, uint32_t pid, uint64_t start_ns);
	void (*module)(void *ctx, const struct events_module *m);
	void (*name)(void *ctx, const struct events_name *n);
	void (*value)(void *ctx, const char *key, const char *value);
	/* node: in the tree passed to events_read, or the one of restart */
	void (*event)(void *ctx, const struct event *ev);
	void (*thread_exit)(void *ctx, uint32_t thread);
	void (*end)(void *ctx, uint64_t time_ns);
	void *ctx;
	void (*sampling)(void *ctx, uint64_t interval, uint64_t seed);
	void (*total)(void *ctx, uint8_t function, const struct call_total *total);
	/*
	 * The file is cut, at @line: its writer died, or could write no more. NULL: that is an
	 * error. Else what is there has been read.
	 */
	void (*cut)(void *ctx, unsigned line);
	/*
	 * The process executed another program, of which all that follows is, beginning with a
	 * header. Returns the tree for its nodes. NULL: that is an error.
	 */
	struct calltree *(*restart)(void *ctx);
	/* so many bytes of the block at @addr have been touched; there may be no such block */
	void (*touched)(void *ctx, taddr_t addr, uint64_t bytes);
	void (*touch_size)(void *ctx, uint64_t least);
};

/*
 * Reads all of @file into @t and the callbacks. 0, or -EINVAL with *line_out and *why_out
 * (static).
 */
int events_read(FILE *file, struct calltree *t, const struct events_reader_ops *ops,
		unsigned *line_out, const char **why_out);

/*
 * A file of events at @path that could not be written to its end: its last line is cut off if it is
 * not whole. Whether there is an event in it, and the time of the last one.
 */
bool events_cut(const char *path, uint64_t *time_ns_out);

#endif
