/*
 * The protocol between ptmem and its server, over a socket pair of type SOCK_SEQPACKET:
 *
 *	server    ptmem
 *	  --->    LISTEN_READY, or LISTEN_FAILED        once
 *	  --->    LISTEN_ASK
 *	  <---    LISTEN_PROCESS                        for each process, with a new journal and its
 *	                                                last inspection and heap graph
 *	  <---    LISTEN_DONE
 *	  <---    LISTEN_LAST                           for each process, unasked: its final state
 *	  <---    LISTEN_FINISHING                      unasked: no answers from now on, or again
 *
 * ptmem otherwise only answers, and never waits. A process missing from an answer has ended.
 *
 * LISTEN_LAST is sent for the last process to end, or for all when ptmem detaches, with a journal
 * if the server has ever wanted one. ptmem is finishing from the moment when it begins to detach,
 * or when the last process has ended, until the files are written.
 */
#ifndef PTMEM_LISTEN_LISTEN_MESSAGE_H
#define PTMEM_LISTEN_LISTEN_MESSAGE_H

#include <stddef.h>

#include "base/proc.h"
#include "base/types.h"

#define LISTEN_PROCESSES 100 /* the first ones are served */
#define LISTEN_FILES 3       /* sent along with a process: its journal, inspection, heap graph */

enum listen_kind {
	LISTEN_READY, LISTEN_FAILED, LISTEN_ASK, LISTEN_PROCESS, LISTEN_DONE, LISTEN_LAST,
	LISTEN_FINISHING,
};

enum listen_state {
	LISTEN_RUNS,
	LISTEN_LEAVES,                   /* ptmem is about to detach */
	LISTEN_ENDED,                    /* the program has */
	LISTEN_LEFT,                     /* ptmem has detached, the program runs on */
};

/* The server's question. */
struct listen_ask {
	uint32_t kind;
	uint32_t number;
	uint32_t wants_history; /* otherwise only totals */
	uint32_t wants_graph;   /* a new heap graph, made first */
	uint32_t graph_of;      /* of this process; 0 = of the oldest one */
};

/* The server's first message. */
struct listen_greeting {
	uint32_t kind;
	char why[200];
};

/* The current state of a process's heap. Blocks and calls are whole numbers. */
struct listen_totals {
	uint64_t live_bytes, live_blocks, peak_bytes;
	uint64_t allocated_bytes, allocations, frees, failed;
	uint64_t interval;               /* mean distance of samples; 0 = exact */
	uint64_t stacks, complete_stacks;
	uint64_t stopped_ns;             /* while ptmem stopped all threads */
	uint64_t longest_stop_ns;        /* the longest of these stops */
	uint64_t trap_stops, trap_ns;    /* stops of single threads */
	uint64_t longest_trap_ns;        /* the longest of these */
};

#define LISTEN_LABELS 24

/* A label of a process (session/labels.h), and what was allocated under it. */
struct listen_label {
	char name[40], text[84];         /* text "": without this label */
	uint64_t live_bytes, allocated_bytes;
};

struct listen_process {
	uint32_t kind;
	uint32_t pid;
	uint32_t state;                  /* LISTEN_RUNS, except in LISTEN_LAST */
	uint64_t start_ns;               /* start of its profile: tells apart reused pids */
	uint64_t journal_size;           /* complete bytes of the journal; 0 = none is sent along */
	uint64_t inspection_size;        /* bytes; 0 = none is sent along */
	uint32_t inspection;             /* its number: 1 is the first one */
	uint64_t graph_size;             /* of the heap graph, which needs an inspection */
	uint32_t graph;
	struct listen_totals totals;
	char command[128];
	uint32_t is_attached;            /* ptmem has attached to it: it has a name, if only "" */
	/* where a process runs that ptmem attached to; "" = unknown */
	char name[PROC_COMM_SIZE], cgroup[512];
	uint32_t labels;                 /* number of them: only these are sent */
	struct listen_label label[LISTEN_LABELS];
};

/* The bytes of @p that are sent: 100 processes must fit in the socket's buffer. */
static inline size_t listen_process_size(const struct listen_process *p)
{
	return offsetof(struct listen_process, label) + p->labels * sizeof(p->label[0]);
}

struct listen_done {
	uint32_t kind;
	uint32_t number;                 /* number of the question */
	uint32_t left_out;               /* number of processes beyond LISTEN_PROCESSES */
	char why[200];                   /* there is no graph as asked for; "" = there is */
};

struct listen_finishing {
	uint32_t kind;
	uint32_t begins;                 /* 0: it is over, ptmem answers again */
};

#endif
