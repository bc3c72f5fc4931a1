/* One source of a session (source_kind.h) with its profile. */
#ifndef PTMEM_SOURCE_H
#define PTMEM_SOURCE_H

#include "base/vec.h"
#include "output/writer.h"
#include "profile/profile.h"
#include "session/source_kind.h"

struct session;

/* What is known of a frame. */
struct frame_names {
	const struct symbol *part[2]; /* by enum symbol_part; NULL = not looked up */
	bool is_counted;              /* its function is known, and no alloc-fn */
};

struct source {
	struct session *session; /* the session */
	enum source_kind kind;
	bool is_traced;
	struct profile *profile; /* owned, except for the heap's; NULL if not traced */
	/* by frame of the call tree: reports ask for the names of each many times */
	VEC(struct frame_names) names;
	uint64_t names_changes;  /* symbols_changes when they were looked up */
};

/* A traced source for writers; the strings are the session's. */
void source_fill_report(struct source *src, struct report *out);

/* Whether the function of frame @frame is known, and no alloc-fn. Reads symbol tables only. */
bool source_is_counted(struct source *src, uint32_t frame);

#endif
