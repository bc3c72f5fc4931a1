/*
 * Signals to ptmem.
 *
 *	SIGINT, SIGTERM, SIGHUP, SIGQUIT   detach, write, exit
 *	SIGALRM                            the same: --duration has elapsed
 *	SIGUSR1                            report leaks, inspect, write all snapshots
 *	SIGIO                              a client of --monitor
 *
 * A started program receives Ctrl-C at its terminal, too, and handles it itself. A signal may
 * arrive just before the loop sleeps in the kernel, so a timer repeats it until the loop has seen
 * it.
 */
#ifndef PTMEM_SESSION_SIGNALS_H
#define PTMEM_SESSION_SIGNALS_H

#include "base/types.h"

/* Catches the first two lines; @is_attached: Ctrl-C is meant for ptmem only. */
void signals_catch_leave(bool is_attached);
/* SIGALRM in @seconds; 0 = never. */
void signals_start_duration(double seconds);
/* The signal that requested to exit; 0 = none. SIGALRM if the duration elapsed first. */
int signals_leave_request(void);
/* How many of these signals have arrived, SIGALRM not counted. */
unsigned signals_leave_count(void);
/* The loop has seen it: stops the timer. */
void signals_stop_waking(void);

/* Catches SIGUSR1. */
void signals_catch_report(void);
/* Whether SIGUSR1 has arrived since the last call of the same function. */
bool signals_take_report(void);
bool signals_take_snapshots(void);

/* Catches SIGIO and SIGUSR1, and wakes the loop repeatedly until signals_take_io. */
void signals_catch_io(void);
/* Whether one has arrived since the last call. */
bool signals_take_io(void);
/* Acts as if SIGIO had arrived. */
void signals_raise_io(void);
/* Ignores both from now on. */
void signals_ignore_io(void);

#endif
