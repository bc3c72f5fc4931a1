/*
 * The recording of a session (struct recording_run), and everything in it that is not from events:
 * a list of values, names of threads, labels, exact totals of samples, what ptmem cost.
 */
#ifndef PTMEM_SESSION_RECORD_RECORDING_VALUES_H
#define PTMEM_SESSION_RECORD_RECORDING_VALUES_H

#include "base/alloc.h"
#include "base/heap_calls.h"
#include "base/types.h"
#include "recording/recording.h"
#include "recording/recording_build.h"

/*
 * The file of a recording while its program runs. Failed writes are kept and retried. A file that
 * was removed is written anew, but a file that others put in its place is not touched.
 */

/* All zero at first. The owner closes the journal. */
struct recording_file {
	struct recording_journal *journal; /* NULL = nothing written yet */
	size_t values;             /* data of the session that the journal has */
	/* program time up to which the journal, and the file, are complete; 0 = none */
	uint64_t appended_ms, covered_ms;
	bool was_removed;
};

/* The complete recording could not replace it: reports which part can be read. */
void recording_file_leave(const struct recording_file *f, const char *path);

/*
 * Everything in a recording that is not from events: a list of keys and values, which event files
 * contain, too. Markers and names of threads are among them.
 */

struct recording;
struct recording_span;
struct session;

/* A moment, in seconds, as META has it. */
struct recording_moment {
	char start[32];         /* since 1970 */
	char monotonic[32];     /* CLOCK_MONOTONIC */
};

/* Sets @m to the moment @ns of CLOCK_MONOTONIC. */
void recording_moment_set(struct recording_moment *m, uint64_t ns);

/* Creates the session's recording unless it has one. */
void recording_values_begin(struct session *s);

/* Records that @key is @value; the last value counts. Nothing if nothing is recorded. */
void recording_values_add(struct session *s, const char *key, const char *value);
ATTR_PRINTF(3, 4)
void recording_values_set(struct session *s, const char *key, const char *fmt, ...);
/* Records a marker; @kind is one word. */
void recording_values_mark(struct session *s, uint64_t time_ns, const char *kind, const char *text);

/*
 * Reads the name of @thread, which is recorded if it has one that is not the one read before; or of
 * all threads that are new.
 */
void recording_values_name_thread(struct session *s, uint32_t thread);
void recording_values_name_threads(struct session *s);

/*
 * For a recording of @span: the values from number @first on, with markers as such, and the exact
 * totals of samples.
 */
void recording_values_copy(struct session *s, const struct recording_span *span,
			   struct recording *out, size_t first);

/* Milliseconds since the process of @s began. */
uint64_t recording_values_clock(const struct session *s, uint64_t now_ns);

/* The recording of a session, for the files that make it: recording_run.c and its helpers. */

/* What a session had counted when a part of its recording began; all zero for the first. */
struct recording_base {
	uint64_t pauses_ns, stacks, complete_stacks;
	struct call_totals calls;
};

/* The time that a recording covers. All zero: since the process began. */
struct recording_span {
	unsigned part;             /* its number (recording_run.h); 0: it is the whole run */
	uint64_t start_ns;         /* since the start of the process */
	/* of a forked child: from there, a whole millisecond of its parent's, to the fork */
	uint64_t lead_ns;
	/* the same as META has them; "": when the process started */
	struct recording_moment moment;
	size_t first_value;        /* of its markers: those before are of other parts */
	struct recording_base base;
};

/* Whether it lacks what was before: it is a part, or of a forked child. */
bool recording_span_is_later(const struct recording_span *span);

struct recording_run {
	struct recording *known;   /* META alone: the values */
	char *path;                /* NULL = not yet decided */
	struct recording_span span; /* of the file */
	struct recording_span whole; /* of all: a forked child begins with the fork */
	struct recording_file file; /* what it has while the program runs */
	struct recording_file live; /* the same of the whole run, in memory, for --listen */
	uint64_t first_size;       /* of that, when it began again; bytes */
	struct recording *leaks;   /* tables of leaks; NULL = nothing was checked */
	bool has_failed;           /* the file could not be written once, which was said */
	/* too large to append to it: copies of ptmem write it anew (recording_now.h) */
	bool is_rewritten;
	bool is_writing;           /* one of these is at work */
	uint64_t rewrite_ns;       /* when the next one may begin */
	uint64_t flush_ns, sample_ns; /* when both are due */
	uint32_t named;            /* threads of the history whose names were read */
	/* by the number of the text "thread.ID": that of the name of the thread; 0 = not known */
	VEC(uint32_t) thread_name;
	uint64_t next_part_ns;     /* when the next part is due; 0 = never */
};

/* What a recording of samples has besides estimates: the sampling interval, and exact totals. */

/* The exact totals since the session began. */
struct call_totals recording_calls_now(const struct session *s);

/*
 * What ptmem cost the program while it was recorded, and how many stacks are complete: values that
 * a recording has at its end.
 */

/* How exact the times of events are, if they are not; ms. */
#define TIMES_TEXT "exact to %.1f ms only: calls could not read the CPU's counter"

struct recording_cost {
	size_t count;
	struct {
		const char *key;
		char text[160];
	} value[6]; /* two of "lost" */
};

/* What @s, whose process runs, has counted so far: the base of the next part. */
struct recording_base recording_cost_now(const struct session *s);

/* The values since @base, at the end (session_end.pauses). */
void recording_cost_since(const struct session *s, const struct recording_base *base,
			  struct recording_cost *out);

/* The resident memory of a session's process, as an event of its profile. */

void resident_sample(struct session *s, uint64_t now_ns);

#endif
