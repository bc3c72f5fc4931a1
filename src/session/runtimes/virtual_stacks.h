/*
 * The functions of interpreted programs in the stacks of a session. Hides: which language it is,
 * when its interpreter can be read, how names are kept, and how stacks are merged.
 *
 *	a stopped thread   native frames + the interpreter's frames, read at once -> merged -> node
 *	a pad's record     both, as changes to those of the thread's last record  -> merged -> node
 *
 * An object with an interpreter is known when it is mapped. The interpreter itself is looked for at
 * the first stop whose stack passes its loop, for before that there is nothing to be checked. From
 * then on pads record its frames (arch/pad_virtual.h). A session without such an object has no
 * struct virtual_stacks.
 */
#ifndef PTMEM_SESSION_RUNTIMES_VIRTUAL_STACKS_H
#define PTMEM_SESSION_RUNTIMES_VIRTUAL_STACKS_H

#include <sys/types.h>

#include "base/types.h"

struct address_space;
struct heap_event;
struct module;
struct profile;
struct session;
struct virtual_stacks;

/* The native frames of a thread that is stopped, innermost first; callers' addresses minus 1. */
struct native_stack {
	const taddr_t *pc;
	const taddr_t *fp; /* frame pointers, 0 = unknown; NULL = none are known */
	size_t count;
	pid_t tid;
	taddr_t moved_from, moved_to; /* the call is a realloc that has moved a block; 0 = none */
};

/* @m was mapped, and may have an interpreter; unmapped. */
void virtual_stacks_module(struct session *s, const struct module *m);
void virtual_stacks_module_gone(struct session *s, const struct module *m);
/* For a forked child, whose session has a copy of its parent's pointer. */
void virtual_stacks_fork(struct session *child);
void virtual_stacks_free(struct virtual_stacks *v);

/* The node of @stack in @p's call tree. @s has virtual stacks. */
uint32_t virtual_stack_node(struct session *s, struct profile *p, const struct native_stack *stack);
/* The node of the stack that a pad recorded as @he, in the call tree of the heap's profile. */
uint32_t virtual_path_node(struct session *s, const struct heap_event *he);

/* Says in the summary what could not be shown. */
void virtual_stacks_print(const struct session *s);

#endif
