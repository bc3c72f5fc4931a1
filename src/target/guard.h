/*
 * Programs that ptmem attached to survive its death, also by SIGKILL.
 *
 *	in the target   a page with a handler of SIGTRAP (arch/guard.h): whoever meets one of
 *	                our breakpoints without a tracer goes on as if it were not there
 *	in memory that  a record of each space: what was changed in it, and how to put it back
 *	two processes share
 *	the guardian    a process that sleeps until ptmem is gone, then attaches to each
 *	                recorded space, takes everything out, and ends
 *	in the page     a copy of the record: where the guardian was killed, too, the next
 *	                ptmem that attaches does its work (guard_recover.c)
 *
 * The order of every change is such that ptmem may die between any two steps: what is
 * about to be changed is recorded before, and forgotten after it was put back.
 * Programs that ptmem started die with it (PTRACE_O_EXITKILL) and have no guard.
 */
#ifndef PTMEM_TARGET_GUARD_H
#define PTMEM_TARGET_GUARD_H

#include "arch/guard.h"
#include "target/thread.h"

#define GUARD_SPACES 64
#define GUARD_RECORD_TRAPS 2048u
#define GUARD_RECORD_AREAS 64u

struct guard_trap {
	taddr_t addr, resume;
	uint8_t original[8];
	uint32_t patch_size;   /* 0 = taken out */
	uint32_t kind;         /* enum trap_kind */
};

struct guard_area {
	taddr_t start;
	uint32_t size;         /* 0 = gone */
	bool is_pads;
	bool is_slack;         /* its bytes are in slack */
	bool is_memory;
};

/* What ptmem changed in one space. In shared memory: no pointers. */
struct guard_record {
	pid_t pid;             /* through which to reach it; 0 = the record is free */
	bool has_handler;
	taddr_t page;          /* with the handler; 0 = none */
	taddr_t injection;     /* where injected system calls stand; 0 = none yet */
	taddr_t shared;        /* the pads' memory; 0 = none */
	uint64_t shared_size;
	uint8_t injection_saved[INJECTION_SIZE];
	pid_t masked_thread;   /* whose signals are held back for a moment; 0 = nobody's */
	uint64_t mask;         /* to be given back to it */
	uint32_t trap_count, area_count;
	struct guard_area area[GUARD_RECORD_AREAS];
	struct guard_trap trap[GUARD_RECORD_TRAPS];
};

/* The head of the copy that stands at GUARD_COPY; the record follows it. */
struct guard_copy {
	_Alignas(struct guard_record) char magic[8];
	uint32_t head_size, record_size; /* another ptmem may have others */
	pid_t guardian;
};
extern const char guard_copy_magic[8];
_Static_assert(GUARD_COPY + sizeof(struct guard_copy) + sizeof(struct guard_record) <= GUARD_SIZE,
	       "the copy fits behind the handler's data");

/* Waits, for some seconds at most, until no guardian is at work in @pid, or about to be. */
void guard_await(pid_t pid);
/* Before an attach to @pid: does there what a guardian that was killed has left to do, if anything. */
void guard_recover(pid_t pid);

/* GUARD_SPACES empty records in shared memory, or NULL; guard_records_free gives them back. */
struct guard_record *guard_records_new(void);
void guard_records_free(struct guard_record *records);

/* Whether @pid is a guardian. */
bool guard_is_guardian(pid_t pid);

/* Starts the guardian, before the first attach. Without one (-errno) nothing is guarded. */
int guard_start(struct target *t);
/* Tells the guardian to end, and waits until it did. */
void guard_stop(struct target *t);

/* A space of a program that ptmem attached to; before anything in it is changed. */
void guard_space(struct target *t, struct space *s);
void guard_space_forked(struct target *t, const struct space *parent, struct space *child);
void guard_space_gone(struct space *s);

/* Puts the handler into @s; @th is one of its threads, all are stopped. Says why not, if not. */
void guard_install(struct target *t, struct space *s, struct thread *th);
/* Default action for SIGTRAP again in all processes of @s, where the handler is still ours. */
void guard_remove(struct target *t, struct space *s);

/* The handler's @page, one of the areas of @s, stands: from now on it holds a copy of the record. */
void guard_note_page(struct target *t, struct space *s, taddr_t page);
void guard_note_handler_gone(struct space *s);

/* @trap is about to be written; or is out again. */
void guard_note_trap(struct space *s, const struct arch *arch, const struct trap *trap);
void guard_forget_trap(struct space *s, taddr_t addr);
/* The areas of @s have changed; one is about to go. */
void guard_note_areas(struct space *s);
void guard_forget_area(struct space *s, taddr_t start);
void guard_note_shared(struct space *s, taddr_t start, uint64_t size);

/* The signals of @tid are held back, and it shall have @mask again; 0: it has. */
void guard_note_mask(struct space *s, pid_t tid, uint64_t mask);

/* Where injected system calls of @s shall stand; -ENOSPC when there is no room in its text. */
int guard_find_injection(struct space *s, taddr_t *at_out);
bool guard_has_injection(const struct space *s);
/* Puts back what stood there. */
void guard_clear_injection(struct space *s);

/* A stop at a breakpoint while a guardian cleans up: the pc to go on at, or 0. */
taddr_t guard_resume_address(const struct space *s, taddr_t trap);
/* Whether a thread that met a breakpoint and is at @pc now was sent there by ptmem, which died
 * before it could take the signal, too. */
bool guard_has_moved(const struct space *s, taddr_t pc);

/* guardian.c: what the guardian does once ptmem is gone. */
void guardian_clean(struct guard_record *records);

#endif
