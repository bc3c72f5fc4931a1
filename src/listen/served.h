/*
 * The processes that are served: what ptmem reported about each, and its journal, which is read
 * only when an answer needs it.
 */
#ifndef PTMEM_LISTEN_SERVED_H
#define PTMEM_LISTEN_SERVED_H

#include "base/alloc.h"
#include "listen/listen_message.h"
#include "recording/recording.h"
#include "recording/recording_resolve.h"

struct served {
	struct listen_process info;
	int journal;                 /* -1 = none yet; owned */
	bool is_there;               /* was in ptmem's last answer, or sent as LISTEN_LAST */
	/* the parsed journal, with source lines and the inspection; NULL = not read since then */
	struct recording *recording; /* owned */
	struct recording *inspection; /* the last one; NULL = there was none; owned */
	uint32_t inspection_number;
	int graph;                   /* the last heap graph, a file (graph_file.h); owned */
	uint64_t graph_size;         /* 0: there was none */
	uint32_t graph_number;
};

struct served_table {
	VEC(struct served) list;     /* oldest first */
	uint32_t left_out;
	bool is_finishing;           /* ptmem does not answer: this is what is known */
	bool is_over;                /* ptmem is gone: this is its final state */
	char why[200];               /* there is no new graph; "" = there is */
	uint64_t ptmem_ticks;        /* CPU time of ptmem when it last sent something */
	struct name_resolver *lines;
};

/* What ptmem has sent along with a process; -1 = nothing. */
struct served_files {
	int journal, inspection, graph;
};

/* Updates the table: an answer begins; adds a process, and owns @files; the answer ends. */
void served_begin(struct served_table *t);
void served_add(struct served_table *t, const struct listen_process *info,
		struct served_files files);
void served_end(struct served_table *t, const struct listen_done *done);
/* Frees what can be read again, which is most of its memory: the parsed journals. */
void served_rest(struct served_table *t);

/* Process @pid, or the oldest one if @pid is 0; NULL = there is none. */
struct served *served_find(const struct served_table *t, uint32_t pid);
/*
 * A copy of its journal, which says so, with the inspection, to be freed by the caller; NULL =
 * there is none.
 */
char *served_copy(const struct served *s, size_t *size_out);
/* The last heap graph, as a file; to be freed by the caller; NULL = there is none. */
char *served_graph(const struct served *s, size_t *size_out);
/*
 * The parsed journal, with the inspection, valid until @s changes; NULL = there is none, or it
 * cannot be read.
 */
const struct recording *served_recording(const struct served_table *t, struct served *s);

#endif
