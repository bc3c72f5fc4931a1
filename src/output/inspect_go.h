/*
 * The heap profile that a Go program keeps (languages/go_heap.h), with names: a part of the report
 * of --inspect, and what is written for pprof.
 */
#ifndef PTMEM_OUTPUT_INSPECT_GO_H
#define PTMEM_OUTPUT_INSPECT_GO_H

#include <stdio.h>

#include "base/json_write.h"
#include "languages/go_heap.h"

/* An address on a path: inlined functions have addresses of their own. */
struct inspect_go_frame {
	taddr_t pc;             /* return address */
	const char *name;       /* owned by the program's file; NULL = no function of Go */
	const char *file;       /* likewise */
	uint32_t line;          /* 0 = unknown */
};

struct inspect_go_path {
	struct go_estimate counts;
	uint32_t frame, frames; /* in inspect_go.frames: innermost first */
};

struct inspect_go {
	bool is_go;             /* there is Go code in the process */
	bool is_unknown;        /* the places of its profile were not found */
	const char *path;       /* of its object, owned by that */
	taddr_t start, end;     /* where it is mapped */
	unsigned release;       /* n of Go 1.n; 0 = unknown */
	uint64_t rate;          /* one sample per so many bytes; 0 = no profile is kept */
	bool is_torn, is_cut;   /* as in struct go_heap */
	struct go_estimate all;
	VEC(struct inspect_go_path) paths; /* most live bytes first */
	VEC(struct inspect_go_frame) frames;
};

/* Takes @h, of a program with places (is_unknown is false otherwise, if that had been found). */
void inspect_go_fill(struct inspect_go *g, const struct go_heap *h,
		     void (*name)(void *ctx, struct inspect_go_frame *frame), void *ctx);
void inspect_go_deinit(struct inspect_go *g);

/* The largest @rows paths as text; nothing if it is no Go program. */
void inspect_go_print(FILE *f, const struct inspect_go *g, size_t rows);

/* A member of an object, on a line of its own; likewise. */
void inspect_go_write_json(struct json_writer *w, const struct inspect_go *g);

#endif
