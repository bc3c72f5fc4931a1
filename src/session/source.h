/* One source of a session (source_kind.h) with its profile. */
#ifndef PTMEM_SOURCE_H
#define PTMEM_SOURCE_H

#include "output/writer.h"
#include "profile/profile.h"
#include "session/source_kind.h"

struct session;

struct source {
	struct session *session; /* the session */
	enum source_kind kind;
	bool is_traced;
	struct profile *profile; /* owned, except for the heap's; NULL if not traced */
};

/* A traced source for writers; the strings are the session's. */
void source_fill_report(struct source *src, struct report *out);

#endif
