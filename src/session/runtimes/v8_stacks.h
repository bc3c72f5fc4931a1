/*
 * JavaScript functions in the stacks of a session, without a perf map: V8's frames tell which
 * function they run (languages/v8.h). Hides: where V8's code is, what is kept of functions, and how
 * they take the place of native frames.
 *
 *	a stopped thread   pcs and frame pointers -> closure of each frame in V8's code -> name
 *	a pad's record     pcs, and a list of those functions by the pad (PAD_STATE_FRAMES)
 *
 * Each native frame in V8's code has one function, or none: then it is shown as it is. A pad does
 * not record a function that ptmem has not read, but stops.
 */
#ifndef PTMEM_SESSION_RUNTIMES_V8_STACKS_H
#define PTMEM_SESSION_RUNTIMES_V8_STACKS_H

#include "base/types.h"

struct generated_code;
struct generated_place;
struct heap_event;
struct module;
struct native_stack;
struct profile;
struct session;
struct v8_stacks;

/* @m was mapped, and may have V8, or a copy of its built-in code; unmapped. */
void v8_stacks_module(struct session *s, const struct module *m);
void v8_stacks_module_gone(struct session *s, const struct module *m);
/* For a forked child, whose session has a copy of its parent's pointer. */
void v8_stacks_fork(struct session *child);
void v8_stacks_free(struct v8_stacks *v); /* may be NULL */

/* Whether functions are known; else nothing of the following is to be called. */
bool v8_stacks_are_on(const struct session *s);

/* As unwind_ops.generated: code that V8 has compiled has a frame pointer. */
bool v8_stacks_find_code(struct session *s, const struct generated_place *place,
			 struct generated_code *out);

/* The node of @stack in @p's call tree. */
uint32_t v8_stack_node(struct session *s, struct profile *p, const struct native_stack *stack);
/* The node of the stack that a pad recorded as @he, in the call tree of the heap's profile. */
uint32_t v8_path_node(struct session *s, const struct heap_event *he);
/* Says in the summary that functions have no names, and what helps. */
void v8_stacks_print(const struct session *s);

#endif
