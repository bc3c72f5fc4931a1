/*
 * Fills a recording from a profile with a history: everything at the end, or, while the program
 * runs, the changes since the last time.
 */
#ifndef PTMEM_RECORDING_RECORDING_BUILD_H
#define PTMEM_RECORDING_RECORDING_BUILD_H

#include "output/writer.h"
#include "recording/recording.h"

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
	 * The function at a frame of the call tree, if it can be found quickly. NULL: names, lines
	 * and inlined functions are taken from the report.
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

/*
 * The same for the leaves that changed (history.changed), and the timeline and cells from interval
 * @first on.
 */
void recording_build_changes(struct recording_builder *b, uint32_t first);

/* The totals of @h, a history of @p, indexed by END_*; those that neither has stay 0. */
void recording_fill_end(const struct profile *p, const struct history *h,
			uint64_t out[static END_COLUMNS]);

#endif
