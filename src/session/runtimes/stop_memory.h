/*
 * Memory of a process while the thread that is looked at is stopped: pages are read once for each
 * stop, since a list of functions has thousands of words on few pages.
 */
#ifndef PTMEM_SESSION_RUNTIMES_STOP_MEMORY_H
#define PTMEM_SESSION_RUNTIMES_STOP_MEMORY_H

#include "languages/virtual_frames.h"

struct address_space;

struct stop_memory;

/* @space is the caller's, and outlives it. stop_memory_free() frees it (NULL: nothing). */
struct stop_memory *stop_memory_new(struct address_space *space);
void stop_memory_free(struct stop_memory *m);

/* The program ran since the last stop. */
void stop_memory_forget(struct stop_memory *m);

struct language_memory stop_memory_reader(struct stop_memory *m);

#endif
