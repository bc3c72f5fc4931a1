/*
 * Records ptmem's changes in each address space, so that they can be undone if ptmem dies.
 *
 * A journal is in memory that ptmem shares with its guardian (guard/guardian.h), and a copy of it
 * is in the page of the SIGTRAP handler in the tracee, where the next ptmem finds it
 * (guard/guardian.h). Every change is recorded before it is made, and deleted after it was undone:
 * ptmem may die between any two steps. Spaces of started programs have no journal, since those die
 * with ptmem; for them all functions that take a space do nothing.
 */
#ifndef PTMEM_TRACEE_STATE_JOURNAL_H
#define PTMEM_TRACEE_STATE_JOURNAL_H

#include <sys/types.h>

#include "arch/trap_handler.h"
#include "base/types.h"

struct address_space;
struct target;
struct trap;

#define JOURNALS 64
#define JOURNAL_TRAPS 2048u
#define JOURNAL_AREAS 64u
#define JOURNAL_INJECTIONS 4u

struct journal_trap {
	taddr_t addr, resume;
	uint8_t original[8];
	uint32_t patch_size;   /* 0 = removed */
	uint32_t kind;         /* enum trap_kind */
};

struct journal_area {
	taddr_t start;
	uint32_t size;         /* 0 = unused */
	uint8_t is_pads;
	uint8_t is_slack;      /* after an object's text */
	uint8_t is_memory;
};

/*
 * The journal of one space. In shared memory: no pointers; and no bool, since a copy is read back
 * from the program's memory, where any byte may have changed.
 */
struct journal {
	pid_t pid;             /* pid through which to access it; 0 = the record is free */
	uint8_t has_handler;
	uint64_t id;           /* id of the attach: distinguishes its copy from a later one's */
	taddr_t page;          /* page with the handler; 0 = none */
	/* injected code of each ptmem or guardian; 0 = none */
	taddr_t injection[JOURNAL_INJECTIONS];
	taddr_t shared;        /* the pads' memory; 0 = none */
	uint64_t shared_size;
	pid_t masked_thread;   /* thread whose signals are blocked temporarily; 0 = none */
	uint64_t mask;         /* the mask to be restored */
	/* number + 1 of a userfaultfd in the program, which never has a copy of it; 0 = none */
	uint32_t file;
	uint32_t trap_count, area_count;
	struct journal_area area[JOURNAL_AREAS];
	struct journal_trap trap[JOURNAL_TRAPS];
};

/* The head of the copy at HANDLER_COPY; the journal follows it. */
struct journal_copy {
	_Alignas(struct journal) char magic[8];
	uint32_t head_size, record_size; /* may differ between versions of ptmem */
	pid_t guardian;
};
extern const char journal_copy_magic[8];
_Static_assert(HANDLER_COPY + sizeof(struct journal_copy) + sizeof(struct journal) <= HANDLER_SIZE,
	       "the copy fits behind the handler's data");

/* JOURNALS empty journals in shared memory, or NULL. Unmap them with journals_free. */
struct journal *journals_new(void);
void journals_free(struct journal *journals);

/* Gives @s, of a program that ptmem attached to, a journal. Call it before changing anything. */
void journal_begin(struct target *t, struct address_space *s);
/* Gives @child, a fork of @parent, a copy of its journal. */
void journal_fork(struct target *t, const struct address_space *parent,
		  struct address_space *child);
void journal_end(struct address_space *s);
/* Whether another attach's copy is now in the place of @r's. */
bool journal_is_replaced(const struct address_space *s, const struct journal *r);

/* The handler's @page, one of the areas of @s, is complete: from now on it holds a copy. */
void journal_note_handler(struct target *t, struct address_space *s, taddr_t page);
void journal_note_handler_gone(struct address_space *s);

/*
 * Between these two, journal_add_trap does not write into the tracee, and journal_flush does so for
 * all traps at once. Until then no thread may get to them.
 */
void journal_hold(struct address_space *s);
void journal_flush(struct address_space *s);
/* @trap is about to be written; was removed. */
void journal_add_trap(struct address_space *s, const struct arch *arch, const struct trap *trap);
void journal_remove_trap(struct address_space *s, taddr_t addr);
/* The areas of @s have changed; one is about to be unmapped. */
void journal_note_areas(struct address_space *s);
void journal_remove_area(struct address_space *s, taddr_t start);
/* The memory that pads share with ptmem was mapped. */
void journal_note_shared(struct address_space *s, taddr_t start, uint64_t size);

/* The signals of @tid are blocked; @mask is to be restored. 0: it was restored. */
void journal_note_mask(struct address_space *s, pid_t tid, uint64_t mask);

/*
 * The program is about to get a file of ptmem's, a userfaultfd, with number @file - 1, or has it;
 * 0: it is closed.
 */
void journal_note_file(struct address_space *s, uint32_t file);

/*
 * The address at which the calling process injects system calls into @s; -ENOSPC if there is no
 * room in its text. Code that another process left is not overwritten: a thread that received a
 * signal at the start or end of such a call returns to it from the handler.
 */
int journal_find_injection(struct address_space *s, taddr_t *at_out);
bool journal_has_injection(const struct address_space *s);
/* The index of the injection that contains @pc; -1 = none. */
int journal_injection_at(const struct address_space *s, taddr_t pc);
/* Clears the calling process's code, and that of others unless @used (by index). */
void journal_clear_injections(struct address_space *s, const bool used[JOURNAL_INJECTIONS]);

/* Where a thread that hit @trap continues if ptmem is gone. */
taddr_t journal_trap_resume(const struct arch *arch, const struct trap *trap);
/* Where a thread that hit the breakpoint at @trap continues while a guardian cleans up; or 0. */
taddr_t journal_resume_address(const struct address_space *s, taddr_t trap);
/* Whether a thread at @pc was moved there from a breakpoint by ptmem, which died before it could
 * consume the signal. */
bool journal_has_moved(const struct address_space *s, taddr_t pc);

#endif
