/*
 * What ptmem and its server say to each other through a socket pair, a message at a time
 * (SOCK_SEQPACKET):
 *
 *	server    ptmem
 *	  <---    LISTEN_READY, or LISTEN_FAILED        once, the other way round: by the server
 *	  ask --->
 *	  <---    LISTEN_PROCESS                        of each process; with its journal, if new
 *	  <---    LISTEN_DONE
 *
 * ptmem only answers, and never waits. A process that is not in an answer has ended.
 */
#ifndef PTMEM_LISTEN_LISTEN_MESSAGE_H
#define PTMEM_LISTEN_LISTEN_MESSAGE_H

#include "base/types.h"
#include "listen/listen_address.h"

#define LISTEN_PROCESSES 100 /* of more only the first are served */

enum listen_kind { LISTEN_READY, LISTEN_FAILED, LISTEN_PROCESS, LISTEN_DONE };

/* What the server asks for. */
struct listen_ask {
	uint32_t number;
	uint32_t wants_history; /* else totals alone */
};

/* The first word of the server: where it listens, or why it does not. */
struct listen_greeting {
	uint32_t kind;
	struct listen_address address;
	char why[200];
};

/* The heap of a process now. Numbers of blocks and calls are whole. */
struct listen_totals {
	uint64_t live_bytes, live_blocks, peak_bytes;
	uint64_t allocated_bytes, allocations, frees, failed;
	uint64_t interval;               /* of samples; 0 = all is exact */
	uint64_t stacks, complete_stacks;
	uint64_t stopped_ns;             /* for which ptmem stopped all threads */
	uint64_t trap_stops, trap_ns;    /* of single threads */
};

struct listen_process {
	uint32_t kind;
	uint32_t pid;
	uint64_t start_ns;               /* of its profile: tells processes of one pid apart */
	uint64_t journal_size;           /* bytes of the journal that are complete; 0 = none */
	struct listen_totals totals;
	char command[128];
};

struct listen_done {
	uint32_t kind;
	uint32_t number;                 /* of the question */
	uint32_t left_out;               /* processes beyond LISTEN_PROCESSES */
};

#endif
