/*
 * Pads: trampolines that record calls of hot functions in shared memory, instead of a breakpoint
 * stop for each. arch/pad.h is the contract with the code in the target. A space with pads has a
 * struct pads (pad_state.h), which is private to this directory and to calls/promote.c, which makes
 * them. In this order: their life, slots of threads, delivery of records, calls that threads are
 * in, stamps, forks, and what happens when the program unmaps or replaces their memory, or ptmem
 * detaches.
 */
#ifndef PTMEM_TRACEE_PADS_PADS_H
#define PTMEM_TRACEE_PADS_PADS_H

#include <stdbool.h>
#include <sys/types.h>

#include "arch/pad.h"
#include "base/heap_calls.h"
#include "base/types.h"
#include "tracee/inject/stub_area.h"
#include "tracee/pads/pad_memory.h"

struct address_space;
struct arch_regs;
struct stack_view;
struct target;
struct thread;
struct trap;

/* Once for each target. */
void pads_init(struct target *t);
/* All address spaces are gone. */
void pads_deinit(struct target *t);

/*
 * From now on several threads, or a fork that is inside a pad, may write records of @s. Call it
 * before the clone or fork that creates them continues.
 */
void pads_share(struct address_space *s);

/*
 * Whether full rings lose records from now on, or their threads wait for ptmem; always the former
 * if options.probes.max_wait_ns is 0.
 */
void pads_set_losing(struct target *t, bool is_losing);

/* Address and size of the shared memory of @s, which has pads. */
taddr_t pads_mapped_at(const struct address_space *s, uint64_t *size_out);

/* Frees ptmem's side. */
void pads_free(struct target *t, struct address_space *s);

/* Assigns slots to threads, and sets the bounds of their stacks. */

/* The slot of @th, or NULL. */
struct pad_slot *pads_slot(const struct thread *th);

/* Assigns a slot to a new thread of a space with pads, stopped before its first instruction (or at
 * promotion). */
void pads_add_thread(struct target *t, struct thread *th);
void pads_thread_exit(struct target *t, struct thread *th);

/* Assigns to @th, which runs on the stack at @sp, the slot of its thread pointer. 0 or -errno. */
int pads_give_slot(struct target *t, struct thread *th, uint64_t thread_pointer, taddr_t sp);

/*
 * The slot of @th has got the bounds of the stack of @view: whether frames are on another one, too,
 * as in the handler of a signal with a stack of its own. A copy of the first would lack them.
 */
void pads_note_apart(struct thread *th, const struct stack_view *view);

/* Whether another thread has the slot of @thread_pointer (clone without thread-local storage). */
bool pads_slot_is_taken(const struct thread *th, uint64_t thread_pointer);

/* The state of a thread that concerns pads. */

struct pad_thread {
	uint64_t pointer;       /* its thread pointer, the key of its slot; 0 = has no slot */
	uint32_t slot;
	uint64_t waited_slot, waited_end; /* for which head it last found a ring full */
	/* a pad did not find its slot, although it has one: how often, at this head of its ring */
	uint32_t misses;
	uint64_t missed_head;
	uint32_t bounds_traps;  /* consecutive calls on another stack than its slot's */
};

/* Returns the state of @th; thread_remove frees it. */
struct pad_thread *pad_thread(struct thread *th);
/* The index of the slot of @th; -1 = it has none. */
int pad_thread_slot(const struct thread *th);
/* @th runs another program: it has no slot any more. */
void pad_thread_forget(struct thread *th);

/*
 * Delivers the rings' contents: records become events, plain ones in batches.
 *
 * Order of events: a record is numbered before a block can become known or reusable, so the order
 * of numbers is correct for records. An event that ptmem makes itself, at a stop, must come after
 * all records complete by then: call pads_catch_up() first.
 */

/* The sink's nodes for stacks are obsolete: it is asked again for each. */
void pads_forget_nodes(struct address_space *s);
/* The same of the stacks of thread @tid alone, which are read on as before. */
void pads_forget_node(struct address_space *s, pid_t tid);

/*
 * Reads what is complete, about PADS_DRAIN_BATCH records at most: a caller that reads more in a row
 * would not notice a waiting thread. Returns the number of records; fewer: there was no more.
 */
#define PADS_DRAIN_BATCH 2048u
size_t pads_drain_some(struct target *t, struct address_space *s);
/* The number of records read from the pads of @s that are not in the target's statistics yet. */
uint64_t pads_records(const struct address_space *s);
/* Reads everything that is complete by now, not what running threads add meanwhile. */
size_t pads_drain(struct target *t, struct address_space *s);
/* The same, if there are pads. */
void pads_catch_up(struct target *t, struct address_space *s);
/* The same; returns whether a record of @th was among them. */
bool pads_catch_up_on(struct target *t, const struct thread *th);

/*
 * Whether @th, at a breakpoint of a function that releases @block, is inside a delete of it that
 * was already reported before pads knew the thread.
 */
bool pads_take_deleted(struct target *t, struct thread *th, taddr_t block);

/*
 * Whether the program overwrote the memory that it shares with pads, which is reported once. After
 * that nothing more is read from it: the profile of @s must end (target_leave.c).
 */
bool pads_are_corrupt(struct address_space *s);
/*
 * How inexact times are, in ns, if those of more than one in a hundred events are, since calls
 * cannot read the CPU's counter; else 0.
 */
uint64_t pads_time_error(const struct address_space *s);
/* Reads the rings for the last time. */
void pads_finish(struct target *t, struct address_space *s);

/* Calls that pads entered, at breakpoints of functions called inside. */

/* The enum pad_kind of the pad call that @th, at a watched function's entry, is in; 0 = none. */
uint32_t pads_outer_kind(struct target *t, struct thread *th, const struct arch_regs *regs);

/*
 * If @th seems to be in an operator delete that a pad recorded, where that returns to; else 0. As
 * entry_delete_return (calls.h).
 */
taddr_t pads_delete_return(struct target *t, struct thread *th, const struct arch_regs *regs);

/* From now on pads of @s pass requests about plain blocks to ptmem. */
void pads_answer_blocks(struct address_space *s);

/*
 * Exceptions; calls/calls.c has an overview. @th is about to create one; has thrown one; one was
 * caught in the frame at @sp.
 */
void pads_suspend(struct target *t, struct thread *th, const struct arch_regs *regs);
void pads_raise(struct thread *th, taddr_t exception);
void pads_resume(struct thread *th, taddr_t exception, taddr_t sp);

/*
 * Pads read the CPU's counter for their stamps (arch/pad.h, Times), if they can: the kernel may not
 * trust it, and a program may have disabled it for itself (PR_SET_TSC). Others have the clock of
 * pad_clock.h.
 */

/* Sets how often the pads of @s write stamps: sampling ones before each record. */
void pads_set_gap(const struct target *t, struct address_space *s);

/*
 * @th stopped for SIGSEGV or SIGBUS. True if a pad could not read the counter, and from now on the
 * pads of that address space do without, or a word that is gone: the thread is resumed without the
 * signal.
 */
bool pads_skip_fault(struct target *t, struct thread *th);

/* Whether the program has pads that write no stamps: then their rings must be read often. */
bool pads_lack_stamps(const struct target *t);

/* Interpreters (arch/pad_virtual.h): the pads that @s has or gets record their frames. */

/* @layout is copied. */
void pads_set_virtual(struct address_space *s, const struct pad_virtual_layout *layout);
/* PAD_LABELS labels, which are copied, and whose values its pads record. */
void pads_set_labels(struct address_space *s, const struct pad_label *label);

/* Functions with labels (PAD_LABELLED). */

/* Whether there are labels of the function at @entry, which pads can read. */
bool pads_label_function(const struct address_space *s, taddr_t entry);
/* Whether @pc is the trap of the pad at the entry @trap. */
bool pads_is_at_entry(const struct address_space *s, const struct trap *trap, taddr_t pc);
/* From now on ptmem follows all calls of such functions itself. */
void pads_trap_calls(struct address_space *s);
/*
 * Direct calls of such a function, and of no other one, return to @pc: false if that is known.
 * Code was unmapped: such places may be others now.
 */
bool pads_add_call_site(struct address_space *s, taddr_t pc);
bool pads_has_call_site(const struct address_space *s, taddr_t pc);
void pads_clear_call_sites(struct address_space *s);
/*
 * The last call that pads noted for label @number in the thread with that thread pointer, if it
 * seems to be open; sp 0: it is not. Its size and state are valid.
 */
void pads_read_call(const struct address_space *s, uint64_t thread_pointer, uint32_t number,
		    struct pad_label_value *out);
/* ptmem follows a call of the function at @entry in that thread, which is stopped there. */
void pads_forget_calls(struct address_space *s, uint64_t thread_pointer, taddr_t entry);
/* ptmem has read the function @identity, which has @stamp: records may refer to it. */
void pads_know_function(struct address_space *s, uint64_t identity, uint64_t stamp);
/* An allocation of @s was seen at a stop: its block may be another function's object now. */
void pads_count_death(struct address_space *s);
/* The @count states of the thread, innermost first. 0: its calls are to trap. */
void pads_set_thread_states(struct address_space *s, uint64_t thread_pointer,
			    const taddr_t *state, uint32_t count);

/* Pads in a forked child. */

/*
 * @child was just forked from @parent by @th, which is at the fork (NULL: it is dead). The child
 * gets breakpoints in place of its parent's pads. If @th is in a pad, or in code called by one (its
 * signal handler forks), it gets a copy of the pads instead, which pads_thread_started() creates.
 */
void pads_fork(struct target *t, struct address_space *parent, struct address_space *child,
	       struct thread *th);
/* @th is before its first instruction: a new thread, or that of a fork. */
void pads_thread_started(struct target *t, struct thread *th);
/* Replaces jumps by breakpoints. */
void pads_put_breakpoints(const struct target *t, struct address_space *s);

/* Repairs memory that pads share with ptmem, and that the program has unmapped. */

struct maps;

/* Whether @addr is in memory that pads of @s share with ptmem. */
bool pads_share_memory_at(const struct address_space *s, taddr_t addr);
/* What became of it, according to @maps; replaced if a part of it is. */
enum lost_state pads_memory_state(const struct address_space *s, const struct maps *maps);
/*
 * Maps again what is gone of it; -EEXIST, if it is replaced. All threads are stopped; @th makes the
 * calls. *any_out is set if there was anything.
 */
int pads_restore_memory(struct target *t, struct thread *th, const struct maps *maps,
			bool *any_out);

/* The end of pads in a running process. */

/*
 * The program of @s has mapped its own memory over code or memory of pads: jumps become breakpoints
 * for good, and calls in progress return to stubs. All threads are stopped.
 */
void pads_retreat(struct target *t, struct address_space *s);
/* The memory that pads shared with ptmem is the program's now, which must not be unmapped. */
void pads_forget_memory(struct address_space *s);

/* Moves threads out of pads when ptmem detaches. */

/* Turns recording off; all threads are stopped. install_remove() restores the text. */
void pads_disarm(struct target *t, struct address_space *s);
/* Runs threads in pads to the exits; text is restored. Some may still have to be stepped. */
void pads_run_out(struct target *t, struct address_space *s);
/* Makes threads inside originals return to their callers instead of into pads. */
void pads_release_threads(struct target *t, struct address_space *s);

#endif
