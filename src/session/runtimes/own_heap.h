/*
 * Heaps that are not malloc's: run-time systems that map the memory of their objects themselves, so
 * that a profile of malloc misses most of a program's memory. Hides which there are, and what shows
 * their objects.
 */
#ifndef PTMEM_SESSION_RUNTIMES_OWN_HEAP_H
#define PTMEM_SESSION_RUNTIMES_OWN_HEAP_H

#include <sys/types.h>

struct module;
struct session;

/* A module of @s. */
void own_heap_note_module(struct session *s, const struct module *m);

/* The process of @s ends, or is left: its memory still exists, as that of @tid. */
void own_heap_measure(struct session *s, pid_t tid);

/* After the summary of @s: a sentence, if malloc has a small part of its memory. */
void own_heap_hint(const struct session *s);

#endif
