/*
 * Recordings of several processes on one clock: the table of processes, and what all of them held
 * at each time. Hides: how moments of recordings with intervals of different lengths are put in one
 * order, and which of them are shown.
 *
 * Of each process some states are known: what it held at the end of each of its intervals, and at
 * its exact peak. A state lasts until the next one; the last one ends with the process. So the
 * total at a time is a sum of states, exact to the byte, of processes that are each seen as of the
 * end of their last interval or of their peak.
 *
 *	process 1   [a   ][b      ][c  ]
 *	process 2        [d ][peak ][e    ]
 *	total        a    b+d b+peak c+e  e
 *
 * The time is divided into at most PROCESSES_MOMENTS equal parts, and each is shown by the moment
 * in it at which the total was largest. So no total is above the highest one that is shown. That is
 * at least the peak of each process, and at most the sum of these.
 *
 * A recording of a forked child begins with the fork (doc/format.md), so nothing counts twice but
 * what both processes hold.
 */
#ifndef PTMEM_RECORDING_PROCESSES_H
#define PTMEM_RECORDING_PROCESSES_H

#include "base/alloc.h"
#include "recording/recording.h"

struct recording_view;

#define PROCESSES_MOMENTS 256u

/* A state of a process: the end of an interval of its own timeline, or one of these. */
#define PROCESSES_AT_PEAK UINT32_MAX
#define PROCESSES_NOT_THERE (UINT32_MAX - 1)

/* A profiled program of a process: another one has another row. All is owned. */
struct processes_row {
	struct recording *recording; /* NULL = it cannot be read */
	char *name;            /* of its file; may be NULL */
	char *problem;         /* why it cannot be read; NULL = it can */
	char *command;         /* as text_clean; "" = unknown */
	uint64_t pid, parent_pid; /* 0 = unknown */
	/* of the same process with --record-every, and of the same run */
	unsigned part;
	size_t parent;         /* row of the parent, or of its previous program, + 1; 0 = none */
	unsigned depth;        /* in the tree; 0 = it has no parent here */
	uint64_t start, end;   /* us since the first one began */
	uint64_t zero;         /* the same for time 0 of its recording; that of a fork precedes it */
	/* bytes; numbers of blocks are whole ones, also of samples */
	uint64_t peak, live, live_blocks, leaked, allocations, allocated;
	size_t first_moment;   /* the first one at which it is there */
	VEC(uint32_t) state;   /* at that and the following moments, while it is there */
};

/* A moment that is shown. */
struct processes_moment {
	uint64_t time;         /* us since the first process began */
	uint64_t bytes;        /* of all processes together */
	unsigned running;      /* number of processes that were there */
};

struct processes {
	VEC(struct processes_row) row; /* each process before its children, older ones first */
	VEC(struct processes_moment) moment; /* by time */
	size_t peak;           /* the moment with most bytes, the first of them */
	uint64_t end;          /* us */
};

/* Takes over @r, as recording_read makes it; @name may be NULL. */
void processes_add(struct processes *p, struct recording *r, const char *name);
/* A recording that cannot be read. */
void processes_add_unread(struct processes *p, const char *name, const char *problem);
/* Once all are there: sorts them, and finds parents and moments. */
void processes_finish(struct processes *p);
void processes_deinit(struct processes *p);

/* The row with the largest peak; NULL: none can be read. */
const struct processes_row *processes_largest(const struct processes *p);
/* The state of @row at moment @i. */
uint32_t processes_state(const struct processes_row *row, size_t i);
/* The moment in whose part of the time @us is. */
size_t processes_moment_at(const struct processes *p, uint64_t us);
/* What each leaf of @row held in @state, which is not PROCESSES_NOT_THERE. */
void processes_view(const struct processes_row *row, uint32_t state, struct recording_view *out);

#endif
