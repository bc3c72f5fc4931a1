/*
 * Signals of a thread that works for ptmem: one is held, all others are blocked.
 */
#ifndef PTMEM_TRACEE_INJECT_HELD_H
#define PTMEM_TRACEE_INJECT_HELD_H

#include <signal.h>

#include "base/types.h"

struct thread;

#define SIGTRAP_BIT (1ull << (SIGTRAP - 1))

/*
 * Signals that @th holds back while it works for us go to the program afterwards, each
 * with its own siginfo: the kernel takes signal and siginfo from the thread's last stop,
 * which must be a stop for a signal.
 */
struct held {
	siginfo_t info;
	bool has_info;
	bool blocks;   /* the next one must block all others: one can be held */
	bool is_quiet; /* has done so */
	uint64_t mask; /* of before */
};

/*
 * Blocks all further signals until the end of the work; a guardian would restore the mask, too. A
 * blocked SIGTRAP would lose its handler.
 */
void held_block(struct thread *th, struct held *held);

/*
 * @th may have set its mask itself, at the end of an injected call or of a signal handler: that is
 * the mask to restore then, and signals are blocked again. A second one would replace the one that
 * is held.
 */
void held_block_again(struct thread *th, struct held *held);

/* Before the first step: what it had stopped for. */
void held_keep(struct thread *th, struct held *held);

/* Now it stopped for @sig. Only SIGTRAP and its own faults are not blocked. */
void held_take(struct thread *th, int sig, struct held *held);

/* After the last step, which was a stop for a signal if one is held. */
void held_give(struct thread *th, const struct held *held);

#endif
