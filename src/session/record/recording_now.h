/*
 * Recordings of what a session has so far, while the program and its profile go on. A copy of ptmem
 * makes them (base/own_process.h), since names and lines take time. They are complete, with "still
 * running" as their end.
 */
#ifndef PTMEM_SESSION_RECORD_RECORDING_NOW_H
#define PTMEM_SESSION_RECORD_RECORDING_NOW_H

#include "base/types.h"
#include "session/record/recording_values.h"

struct run;
struct run_writer;
struct session;

struct recording_now {
	struct session *session; /* which records */
	const char *path;
	/*
	 * In the copy, when the file is written: sends the result to @socket. NULL: it is logged,
	 * and a failure counts as one of the run; @socket is -1.
	 */
	void (*answer)(void *ctx, int rc);
	void *ctx;
	int socket;
	bool is_part;            /* of the recording, which ends here (recording_run.h) */
	/*
	 * In the original, at its end, if it writes the recording's own file, which goes on; NULL:
	 * it does not
	 */
	void (*note)(struct run *run, const struct run_writer *w, int result);
	/* what was counted when it began, also in memory shared with the program; set by
	 * recording_now_start */
	struct recording_base counted;
	uint64_t end_ns;         /* its end; set likewise */
};

/* Starts it: 0, or -errno if there cannot be a copy. */
int recording_now_start(struct recording_now *n);

/* For --record: writes one beside its file, with @number in the name. Messages are logged. */
void recording_now_write(struct session *s, unsigned number);

/*
 * For --record-keep: the part for @path was written there, or elsewhere if @result is not 0, when
 * only a part of it may be there; an older one may be removed.
 */
void recording_now_keep(struct session *s, const char *path, int result);

/* Whether the file of the recording, whose path is known, has what was written of it so far. */
bool recording_now_has_file(const struct session *s);

/* Notes those that are written; with @wait all of the run. */
void recording_now_poll(struct run *run, bool wait);

#endif
