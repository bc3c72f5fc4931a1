/*
 * --cold while a process is profiled: when the time begins and ends, what was not touched in it,
 * and how much of that the blocks of each call path have.
 *
 *	begins   TIME before the end of --duration; without one when ptmem has attached; at SIGUSR1
 *	ends     after TIME, or when the profile does; then the report is made
 *
 * A process that ends by itself, or executes another program, can no longer make the calls that the
 * search needs: its report does not have it.
 */
#ifndef PTMEM_SESSION_INSPECT_COLD_WATCH_H
#define PTMEM_SESSION_INSPECT_COLD_WATCH_H

#include "base/alloc.h"
#include "base/types.h"
#include "inspect/cold.h"

struct address_space;
struct run;
struct session;

/* Of the blocks of a call path; with samples estimates. */
struct cold_sum {
	uint64_t bytes;
	struct cold_bytes untouched;
};

enum cold_state {
	COLD_NONE,
	COLD_WATCHED,          /* since since_ns */
	COLD_FOUND,            /* pages, seconds and sums are known */
	COLD_REPORTED,         /* there is no other report, unless it is watched again */
};

struct session_cold {
	enum cold_state state;
	uint64_t since_ns;
	double seconds;        /* for which it was watched */
	struct touched_pages pages;
	VEC(struct cold_sum) sums; /* by leaf */
};
void session_cold_deinit(struct session_cold *c);

/* Of a run: when the time begins and ends, CLOCK_MONOTONIC; 0 = not, or not again. */
struct cold_times {
	uint64_t begin_ns, end_ns;
};

/* The processes were attached to, or started. */
void cold_watch_start(struct run *run);
/* As an observer's. */
uint64_t cold_watch_tick(const struct run *run);
/* Only while events are polled. @is_asked: by a signal. True: reports are to be made now. */
bool cold_watch_poll(struct run *run, bool is_asked, bool is_leaving);
/* If @s is watched, finds what it has touched; its threads are stopped, and it does not end. */
void cold_watch_find(struct session *s, struct address_space *space);

#endif
