/* The clock for event timestamps. */
#ifndef PTMEM_TRACEE_OS_CLOCK_H
#define PTMEM_TRACEE_OS_CLOCK_H

#include <stdint.h>

/* CLOCK_MONOTONIC in ns. */
uint64_t target_clock(void);

#endif
