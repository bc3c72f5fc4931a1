/* The clock by which events are dated and waits are timed. */
#ifndef PTMEM_BASE_CLOCK_H
#define PTMEM_BASE_CLOCK_H

#include <stdint.h>

/* CLOCK_MONOTONIC in ns. */
uint64_t clock_now_ns(void);

#endif
