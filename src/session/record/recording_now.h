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

/*
 * --record-limit while the program runs: the file of a recording never becomes larger.
 *
 *	appended to, each second        until it would be too large
 *	begun anew (recording_values.h)   then; what it has at once is at most half of the limit
 *	written anew by copies of ptmem otherwise; the copies thin it (recording/recording_reduce.h)
 *
 * Copies take at most a twentieth of a CPU. All replace the file at once, so it can always be
 * read.
 */

/* Whether the file of @s may not become as large as what was collected makes it. */
bool recording_size_limit_is_reached(const struct session *s);
/* Whether it is too large even if it is begun anew, which was done. */
bool recording_size_limit_must_rewrite(const struct session *s);

/* Starts a copy that writes the file if it is time; after the end writes it: 0 or -errno. */
int recording_size_limit_rewrite(struct session *s);
/* Waits for a copy that is at work, which would overwrite what is written later. */
void recording_size_limit_wait(struct session *s);

#endif
