/*
 * The processes that are served: what ptmem reported of each, and its journal, which is read when
 * an answer needs it.
 */
#ifndef PTMEM_LISTEN_SERVED_H
#define PTMEM_LISTEN_SERVED_H

#include "base/vec.h"
#include "listen/listen_message.h"
#include "recording/recording.h"

struct served {
	struct listen_process info;
	int journal;                 /* -1 = none yet; owned */
	bool is_there;               /* the last answer of ptmem had it */
	struct recording *recording; /* of the journal; NULL = not read since it grew; owned */
};

struct served_table {
	VEC(struct served) list;     /* by age */
	uint32_t left_out;
};

/* An answer begins; then its processes, each with its new journal or -1; then it ends. */
void served_begin(struct served_table *t);
void served_add(struct served_table *t, const struct listen_process *info, int journal);
void served_end(struct served_table *t, const struct listen_done *done);

/* Process @pid, or the oldest one if that is 0; NULL = there is none. */
struct served *served_find(const struct served_table *t, uint32_t pid);
/* The complete part of its journal, which the caller frees; NULL = there is none. */
char *served_journal(const struct served *s, size_t *size_out);
/* What is in it, as long as @s is not changed; NULL = it has none, or cannot be read. */
const struct recording *served_recording(struct served *s);

#endif
