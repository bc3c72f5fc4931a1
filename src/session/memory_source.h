/*
 * The sources that a session may trace, each with its own profile:
 *
 *	source   counts                                   unit
 *	heap     blocks of malloc and its like             bytes
 *	brk      growth of the program break, byte ranges  bytes
 *	mmap     mapped memory, ranges                     bytes
 *	faults   page faults, only counted                 pages (of 4096 bytes)
 */
#ifndef PTMEM_SESSION_MEMORY_SOURCE_H
#define PTMEM_SESSION_MEMORY_SOURCE_H

#include "base/alloc.h"
#include "base/types.h"
#include "output/report.h"
#include "profile/calltree.h"
#include "profile/event.h"
#include "profile/profile.h"
#include "symbols/symbols.h"
#include "tracee/state/heap_event.h"

enum memory_source_kind { SOURCE_HEAP, SOURCE_BRK, SOURCE_MMAP, SOURCE_FAULTS, SOURCE_COUNT };

struct memory_source_info {
	const char *name;   /* as in --trace and file names */
	const char *title;  /* of a picture */
	const char *unit;   /* "bytes" or "pages": a page counts as 4096 bytes in the profile */
};
extern const struct memory_source_info memory_source_info[SOURCE_COUNT];

/*
 * Frames for memory without code: [anonymous], [file NAME], [stack], [shared memory], [minor
 * fault], [major fault], [truncated]. Their addresses are outside of any program's range and all
 * modules.
 */

/* The outermost frame of an incomplete stack. */
#define PSEUDO_TRUNCATED "[truncated]"

/*
 * The frame called @name, added if it is new. Its address is a hash of @object, or of the name if
 * that is NULL, so it is the same in all call trees.
 */
uint32_t pseudo_frame_get(struct symbols *symbols, struct calltree *tree, const char *name,
			  const char *object);
/* The frame called @name; 0 if it does not exist. */
uint32_t pseudo_frame_find(const struct calltree *tree, const char *name);

struct session;

/* What is known of a frame. */
struct frame_names {
	const struct symbol *part[2]; /* by enum symbol_part; NULL = not looked up */
	bool is_counted;              /* its function is known, and no alloc-fn */
};

struct source {
	struct session *session; /* the session */
	enum memory_source_kind kind;
	bool is_traced;
	struct profile *profile; /* owned, except for the heap's; NULL if not traced */
	/* by frame of the call tree: reports ask for the names of each many times */
	VEC(struct frame_names) names;
	uint64_t names_changes;  /* symbols_changes when they were looked up */
};

/* A traced source for writers; the strings are the session's. */
void memory_source_fill_report(struct source *src, struct report *out);

/* Whether the function of frame @frame is known, and no alloc-fn. Reads symbol tables only. */
bool memory_source_is_counted(struct source *src, uint32_t frame);

/*
 * The sources of a session. With --pages-as-heap the heap's profile contains mapped pages instead:
 * all of brk, mmap, the initial mappings and the stack.
 */

struct heap_event;
struct profile_options;
struct run;

/* The lifetime of a session's sources. @options: the heap's. */
void memory_sources_init(struct session *s, const struct profile_options *options,
			 uint64_t start_ns);
void memory_sources_fork(struct session *child); /* currently a plain copy of its parent */
void memory_sources_deinit(struct session *s);
void memory_sources_start(struct session *s);    /* takes snapshot 0, after the initial mappings */
/* Counts a mapping or page fault. @ev: what profiles count of @he, without a node. */
void memory_sources_event(struct session *s, const struct heap_event *he, struct event *ev);
void memory_sources_forget(struct session *s, taddr_t start, taddr_t end);
void memory_sources_recall(struct session *s, uint32_t module);
/* Ends all profiles except the heap's. */
void memory_sources_end(struct session *s, uint64_t now_ns);
/* Writes their files, and prints what they have, unless these are drafts. */
void memory_sources_finish(struct session *s);

/* Warns if page faults were lost. */
void memory_sources_print_lost(const struct run *run);

#endif
