/* Signals of a thread that works for ptmem: the first is held, all others are blocked. */
#ifndef PTMEM_TRACEE_INJECT_HELD_H
#define PTMEM_TRACEE_INJECT_HELD_H

#include <signal.h>

#include "base/types.h"

struct thread;

#define SIGTRAP_BIT (1ull << (SIGTRAP - 1))

/*
 * Signals that arrive while @th works for us. They are delivered afterwards, each with its own
 * siginfo: the kernel takes signal and siginfo from the thread's last stop, which must be a stop
 * for a signal.
 */
struct held {
	siginfo_t info;
	bool has_info;
	bool blocks;   /* only one signal can be held: the next one blocks all others */
	bool is_quiet; /* signals are blocked */
	uint64_t mask; /* the mask before */
};

/*
 * Blocks all further signals until the end of the work; a guardian would restore the mask, too.
 * Does not block SIGTRAP: a blocked SIGTRAP would lose its handler.
 */
void held_block(struct thread *th, struct held *held);

/*
 * @th may have changed its mask itself, at the end of an injected call or of a signal handler: that
 * mask is to be restored then, and signals are blocked again. A second signal would replace the
 * held one.
 */
void held_block_again(struct thread *th, struct held *held);

/* Before the first step: the stop from which @th is taken. */
void held_keep(struct thread *th, struct held *held);

/* @th has stopped for @sig. Only SIGTRAP and its own faults are not blocked. */
void held_take(struct thread *th, int sig, struct held *held);

/* After the last step, which must be a stop for a signal if one is held. */
void held_give(struct thread *th, const struct held *held);

#endif
