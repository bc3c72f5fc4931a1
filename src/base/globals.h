/*
 * All mutable variables that are reached without a pointer. They are global for one of two
 * reasons: a signal handler gets no argument; messages and failed checks come from anywhere.
 * `scripts/layers` reports any other. Each part is used by the file named above it.
 */
#ifndef PTMEM_BASE_GLOBALS_H
#define PTMEM_BASE_GLOBALS_H

#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

#include "base/log.h"
#include "base/types.h"

/* session/signals.c; leave_count also ends waits in base/files.c. */
struct signal_globals {
	/* written by handlers */
	volatile sig_atomic_t leave_signal;  /* the signal that requested to leave; 0 = none */
	volatile sig_atomic_t leave_count;   /* sent by a user, not by a timer */
	volatile sig_atomic_t wants_report, wants_snapshots, has_io;
	/* read by handlers */
	volatile sig_atomic_t is_leaving;    /* the loop has handled leave_signal */
	volatile sig_atomic_t is_attached;
	volatile sig_atomic_t has_io_timer;
	timer_t io_timer;
};

/* tracee/os/ptrace.c: a call that takes too long is aborted by a longjmp out of a handler. */
struct seize_globals {
	sigjmp_buf too_late;                 /* valid while may_be_late is set */
	volatile sig_atomic_t may_be_late;
	volatile sig_atomic_t has_timer;
	timer_t timer;
};

/* base/log.c */
struct log_globals {
	const char *name;
	int fd;
	enum log_level max;
	enum color_mode color;
	FILE *collected;                     /* takes LOG_INFO; NULL = it is printed */
	void (*line_hook)(void);
	void (*check_hook)(void *ctx);
	void *check_ctx;
};

struct globals {
	struct signal_globals signals;
	struct seize_globals seize;
	volatile sig_atomic_t wake;          /* tracee/control/target_run.c: call poll soon */
	volatile sig_atomic_t child;         /* memusage/main.c: gets its signals; 0 = none */
	struct log_globals log;
};

extern struct globals globals;

#endif
