/*
 * A stack of our own. elfutils has large frames, but the stack that ptmem was started with may be
 * small (ulimit -s), and the program to be profiled must get that limit, not a larger one.
 */
#ifndef PTMEM_BASE_OWN_STACK_H
#define PTMEM_BASE_OWN_STACK_H

/*
 * Returns what @fn returns, which runs with at least 8 MiB of stack: on another one if that of the
 * process is limited to less. Threads created from then on have as much.
 */
int own_stack_call(int (*fn)(int argc, char **argv), int argc, char **argv);

#endif
