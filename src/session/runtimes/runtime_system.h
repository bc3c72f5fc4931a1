/*
 * Run-time systems of languages of which a profile of malloc shows a part only: they map the memory
 * of their objects themselves, or run functions that have no names or unwind information here.
 * Hides which there are, how they are recognized, and what shows the rest.
 */
#ifndef PTMEM_SESSION_RUNTIMES_RUNTIME_SYSTEM_H
#define PTMEM_SESSION_RUNTIMES_RUNTIME_SYSTEM_H

#include <sys/types.h>

struct module;
struct session;

/* A module of @s. */
void runtime_system_note_module(struct session *s, const struct module *m);

/* The process of @s ends, or is left: its memory still exists, as that of @tid. */
void runtime_system_measure(struct session *s, pid_t tid);

/*
 * After the summary of @s: a sentence, if malloc has a small part of its memory, and one, if its
 * stacks lack functions of the program's language.
 */
void runtime_system_hints(const struct session *s);

#endif
