/*
 * Checks of options against one another.
 *
 *	no effect, on the command line          an error; a warning for Valgrind's options that
 *	                                        it accepts silently, too
 *	no effect, in ptmemrc or PTMEM_OPTS     no message: defaults are for all runs
 *	two that cannot be combined             an error, or the one on the command line wins
 */
#ifndef PTMEM_OPTION_CHECK_H
#define PTMEM_OPTION_CHECK_H

struct options;

/* 0, or -EINVAL after one line on stderr. */
int option_check(struct options *o);

#endif
