/*
 * Fills a recording from a profile with a history: everything at the end, or, while the program
 * runs, the changes since the last time, which a journal appends to a file that can be read at any
 * time. Objects, frames and nodes are added when a leaf needs them.
 */
#ifndef PTMEM_RECORDING_RECORDING_BUILD_H
#define PTMEM_RECORDING_RECORDING_BUILD_H

#include "output/report.h"
#include "recording/recording.h"

/*
 * Fills a recording from a profile with a history: everything at the end, or, while the program
 * runs, the changes since the last time.
 */

/* A program or library, as far as known. */
struct recording_object {
	const char *path;
	const uint8_t *build_id;   /* NULL = none */
	size_t build_id_size;
	taddr_t start, end;        /* where it was mapped */
	uint64_t offset;           /* file offset of start */
};

struct recording_names {
	/* The object of module @id; false if unknown. */
	bool (*object)(void *ctx, uint32_t id, struct recording_object *out);
	/*
	 * The function at a native frame of the call tree, if it can be found quickly. NULL: names,
	 * lines and inlined functions are taken from the report, as are those of named frames.
	 */
	const char *(*function)(void *ctx, uint32_t frame);
	void *ctx;
	uint32_t program; /* the module that is the executable: the first object; 0 = unknown */
};

struct history;
struct recording_out;
struct releases;

/* What a recording is made from; all stay the caller's. */
struct recording_input {
	const struct report *report;
	struct history *history;         /* of the report's profile */
	struct recording_names names;
	const struct releases *releases; /* NULL = unknown */
};

/* Maps nodes, frames and modules of the call tree to rows of the recording. */
struct recording_builder {
	struct recording *r;
	struct recording_input in;
	uint32_t *node;        /* by node: its row + 1, 0 = not added yet */
	size_t node_count;
	uint32_t *frame;       /* by frame: the row of its real function + 1 */
	size_t frame_count;
	uint32_t *object;      /* by module: row + 1; 1 << 31: unknown */
	size_t object_count;
	uint64_t peak_epoch;   /* number of the last peak added */
	/* rows of long tables are written to it, and removed from r; NULL = all stay there */
	struct recording_out *out;
};

void recording_builder_init(struct recording_builder *b, struct recording *r,
			    const struct recording_input *in);
void recording_builder_deinit(struct recording_builder *b);

/* Adds everything except META, MARKERS, LEAKS and END. The history must be synced. */
void recording_build_all(struct recording_builder *b);

/* The totals of @h, a history of @p, indexed by END_*; those that neither has stay 0. */
void recording_fill_end(const struct profile *p, const struct history *h,
			uint64_t out[static END_COLUMNS]);

/* Objects, frames and nodes of a recording, added when a leaf needs them. */

/* An address in a program, as its frames are shown. */
struct recording_place {
	uint64_t object;             /* FRAME_OBJECT */
	taddr_t address;
	const struct filter *filter; /* of allocation functions */
};

/* Adds a frame for each function at @place: the outermost, then those inlined there. */
void recording_names_add(struct recording *r, const struct recording_place *place,
			 const struct symbol *symbol);

/*
 * A recording that is written while its program runs: each call appends the changes since the last
 * one (recording_format.h), and the file can be read at any time.
 */

struct recording_journal;

/* For a new file at @path, created with the first contents; of samples if @interval is not 0. */
struct recording_journal *recording_journal_new(const char *path, uint64_t interval);
/* The same for the empty file @fd, which the journal then owns. */
struct recording_journal *recording_journal_to_fd(int fd, uint64_t interval);
/* -1 = there is no file yet. */
int recording_journal_fd(const struct recording_journal *j);
/* The size of the file, bytes. */
uint64_t recording_journal_size(const struct recording_journal *j);
/* The same once all that was collected is in it. */
uint64_t recording_journal_next_size(const struct recording_journal *j);
/* Whether all that was collected is in the file. */
bool recording_journal_is_written(const struct recording_journal *j);
void recording_journal_close(struct recording_journal *j); /* may be NULL */

/* META and MARKERS are added here before recording_journal_append. */
struct recording *recording_journal_meta(struct recording_journal *j);

/*
 * Collects the changes for recording_journal_flush, which must succeed before the next call. The
 * history, which must be synced, is always the same one.
 */
void recording_journal_append(struct recording_journal *j, const struct recording_input *in);
/* 0 or -errno; what is not written is kept. */
int recording_journal_flush(struct recording_journal *j);

/* Whether the file was unlinked. */
bool recording_journal_is_removed(const struct recording_journal *j);
/* Whether @path is this file. */
bool recording_journal_is_at(const struct recording_journal *j, const char *path);

#endif
