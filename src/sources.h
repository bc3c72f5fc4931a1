/*
 * What a session may trace, each with a profile of its own:
 *
 *	source   counts                                   unit
 *	heap     blocks of malloc and its like             bytes
 *	brk      growth of the program break, byte ranges  bytes
 *	mmap     what is mapped and not unmapped, ranges   bytes
 *	faults   page faults, only counted                 pages (of 4096 bytes)
 *
 * With --pages-as-heap the heap's profile holds mapped pages instead: all of brk,
 * mmap, the initial mappings and the stack.
 *
 * An innermost pseudo frame tells apart what has no code of its own: [anonymous],
 * [file NAME], [stack], [shared memory], [minor fault], [major fault].
 */
#ifndef PTMEM_SOURCES_H
#define PTMEM_SOURCES_H

#include "base/types.h"

struct heap_event;
struct profile;
struct profile_options;
struct report;
struct session;
struct symbol;

enum source_kind { SOURCE_HEAP, SOURCE_BRK, SOURCE_MMAP, SOURCE_FAULTS, SOURCE_COUNT };

struct source_info {
	const char *name;   /* as in --trace and in file suffixes */
	const char *title;  /* of a picture */
	const char *unit;   /* "bytes" or "pages": a page counts its 4096 bytes in the profile */
};
extern const struct source_info source_info[SOURCE_COUNT];

struct source {
	struct session *session; /* the one that it is in */
	enum source_kind kind;
	bool is_traced;
	struct profile *profile; /* owned, but for the heap's; NULL if not traced */
};

/* What every writer wants, of one traced source; the strings are the session's. */
void source_fill_report(struct source *src, struct report *out);

/* For session.c: the life of a session's sources. @options: the heap's. */
void sources_init(struct session *s, const struct profile_options *options, uint64_t start_ns);
void sources_fork(struct session *child); /* which is a plain copy of its parent so far */
void sources_deinit(struct session *s);
void sources_start(struct session *s);    /* snapshot 0; initial mappings before it */
void sources_event(struct session *s, const struct heap_event *he);
void sources_forget(struct session *s, taddr_t start, taddr_t end);
/* Ends all profiles but the heap's and writes their files. */
void sources_finish(struct session *s, uint64_t now_ns);

#endif
