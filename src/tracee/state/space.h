/*
 * An address space of the target: its mappings, the traps in its text, access to its memory,
 * ptmem's own areas in it, and the identity of the image that it runs. Threads and vfork children
 * share their space; a forked child gets a copy. A space lives as long as processes use it. Owns:
 * references to modules, traps, stub areas, the descriptors of /proc/PID/mem and maps.
 */
#ifndef PTMEM_TRACEE_STATE_SPACE_H
#define PTMEM_TRACEE_STATE_SPACE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "arch/arch.h"
#include "arch/pad_label.h"
#include "arch/pad_virtual.h"
#include "base/alloc.h"
#include "base/types.h"
#include "tracee/os/maps.h"
#include "tracee/state/module.h"
#include "tracee/state/trap_table.h"

/* Identifies the program image that a process runs: execve changes neither pid nor start time. */

/*
 * *image_out is equal for a process and its forks, and changes with each execve, even of the same
 * program. Never 0. -ESRCH: there is no such process; -EACCES, -EPERM: it may not be read (now).
 */
int image_read(pid_t pid, uint64_t *image_out);

/*
 * ptmem's own memory in an address space: areas for stubs and pads, and the memory that pads share
 * with ptmem.
 */

struct address_space;

/* Memory for stubs: inject/stub_area.h. */
struct stub_area {
	taddr_t start;
	uint32_t size, used;  /* size 0: the program has mapped its own memory there */
	bool is_slack;
	bool is_pads;         /* for pads, not for stubs */
	bool is_memory;       /* is_pads: their shared memory, without code; has no header */
	bool is_trap_handler; /* holds the handler of SIGTRAP; has no header */
	uint8_t *saved;       /* is_slack: the original contents; owned by the list */
	/*
	 * What ptmem has written into it, and zeros behind: the program may unmap it. NULL: not
	 * known. Owned by the list.
	 */
	uint8_t *contents;
	uint32_t written;     /* bytes of it */
	taddr_t room;         /* for stubs: where pads go, if that is still free; 0 = unknown */
};

struct own_memory {
	VEC(struct stub_area) areas;
	/* shared memory of its own pads; 0 = none. What a fork inherits is in the areas. */
	taddr_t shared;
	uint64_t shared_size;
	taddr_t next;         /* where inject_mmap continues; 0 = not known */
	taddr_t first;        /* where it can begin, if that is still free; 0 = not known */
	uint64_t mapped;      /* bytes of address space that ptmem uses in it */
};

/* An area of code of @size bytes, which was just mapped at @start and is empty. */
struct stub_area *own_memory_add_code(struct own_memory *own, taddr_t start, uint32_t size);
/* Notes that @size bytes are written to @addr, in @a; not beyond its end. */
void own_memory_note(struct stub_area *a, taddr_t addr, const void *bytes, size_t size);
/* @a is the program's now: it keeps its place in the list, with the size 0. */
void own_memory_give_up(struct stub_area *a);
/* For a fork, which has its parent's shared memory mapped, too. */
struct own_memory own_memory_clone(const struct own_memory *from);
/* Drops areas and shared memory; reuses the allocations. */
void own_memory_clear(struct own_memory *own);
void own_memory_deinit(struct own_memory *own);

/* The area that contains @addr, or NULL. */
const struct stub_area *space_find_area(const struct address_space *s, taddr_t addr);
/* Whether ptmem mapped the memory at @addr; false for stubs at the end of a text. */
bool space_is_own(const struct address_space *s, taddr_t addr);

/* How often and for how long ptmem stopped a space. */
struct space_pauses {
	uint64_t attach_ns;    /* all threads, to attach; 0 = it was started */
	uint64_t promote_ns;   /* all threads, to make pads */
	uint64_t stopped_ns;   /* all threads, for whatever reason */
	uint64_t longest_ns;   /* the longest of these */
	uint64_t trap_stops;   /* single threads, at our breakpoints */
	uint64_t trap_ns;      /* ptmem's work at those, without context switches */
	uint64_t longest_trap_ns; /* the most at one of them, while its thread waited */
	uint64_t left_ns;      /* when ptmem detached from all processes; 0 = it did not */
};

/* The state of its system calls. */
struct space_syscalls {
	taddr_t insn;          /* address of a system call instruction in the text; 0 = unknown */
	taddr_t program_break; /* watch_brk: result of the last brk; 0 = unknown */
	taddr_t stack_start;   /* watch_mappings: bounds of the main thread's stack; 0 = unknown */
	/* SYSCALLS_SITES: breakpoints would miss calls, so it stops at every call */
	bool stops_at_all;
};

/* An address whose CFI describes a stub's frame: calls/calls.c. */
struct unwind_row {
	taddr_t pc;            /* a return address that exceptions can unwind through; 0 = none */
	int saved_reg;         /* the register saved below its CFA; -1 = none */
};

/* The processes that use it. */
struct space_processes {
	uint32_t users;        /* number of them */
	pid_t pid;             /* of the one for which it was created; names the output file */
	int exit_status;       /* wait status of process `pid` once it has ended; else -1 */
	pid_t reader;          /* one that lives, for /proc and process_vm_readv */
};

/* Private to state/space.c, which opens them. */
struct space_files {
	int memory;            /* /proc/PID/mem, -1 if it could not be opened */
	int maps;              /* /proc/PID/maps, for maps_query; negative likewise */
};

/* The program that it runs. */
struct space_image {
	uint64_t id;           /* by image_read; 0 = not read yet */
	bool is_own;           /* began with an exec or an attach, not with a fork */
	bool has_earlier_blocks; /* it ran before it was profiled: earlier blocks are unknown */
	bool has_variable;     /* the sink added one to its environment */
};

/* Watched functions; control/install.c, install.c, calls/client_request.c. */
struct space_watch {
	bool is_ready;         /* probes are installed, events count */
	bool is_profiled;      /* false: followed only until its exec */
	uint32_t functions;    /* probes */
	uint32_t markers;      /* modules that were ever watched */
	bool is_left;          /* everything is being removed: nothing more is installed */
	uint8_t guess;         /* enum probe_guess of functions that are guessed */
	/* calls have confirmed that, or shown that they are others */
	bool is_confirmed, is_disproved;
	bool has_late_returns; /* it was said that ends of calls of --within are seen late */
	bool is_unconfirmed;   /* an address of --probe is another function's: no result */
	bool is_loading;       /* at its last stop the dynamic linker was within a change */
};

/* Promotion of breakpoints to pads; calls/call_traps.c, pads/promote.c, pads/pads.c. */
struct promotion {
	uint32_t hits;         /* stops at entries since the last promotion */
	bool is_impossible;    /* its breakpoints are not promoted */
	char why[96];          /* then */
	/* for a fork that inherits pads, until it runs; or NULL */
	struct pad_fork_snapshot *fork_snapshot;
};

/* For undoing changes if ptmem dies; state/journal.c, guard/sigtrap_handler.c. */
struct space_recovery {
	struct journal *journal; /* records its changes; NULL = none */
	taddr_t injection;     /* where this process injects system calls; 0 = not chosen yet */
	bool had_trap_handler; /* the program's own, at attach; its loss is not reported yet */
	bool is_unguarded;     /* a breakpoint kills the program if ptmem has died */
	bool is_held;          /* journal_hold: the traps [first, end) are not in the copy yet */
	uint32_t held_first, held_end;
};

struct confirmed;
struct heap_sampling;
struct registry;
struct unwind;

/* For the events of its heap; freed before the space, by the directories that fill them. */
struct space_heap {
	struct pools *pools;   /* pools that the program announced; NULL = none; owned */
	struct confirmed *confirmed; /* calls/confirm.c; NULL = none; owned */
	struct heap_sampling *sampling; /* --heap-sample; NULL = none; owned */
};

/* What belongs to the event sink. */
struct space_sink {
	void *user;            /* its data; NULL = not profiled */
	struct unwind *unwind; /* belongs to user; NULL if that is */
};

struct address_space {
	struct registry *registry; /* the run's */
	uint32_t id;          /* 1, 2, ...: unique in the run */
	struct space_processes processes;
	struct space_files files;
	struct space_image image;
	struct module_list modules;
	struct trap_table traps;
	struct own_memory own;
	struct space_syscalls syscalls;
	struct unwind_row unwind_through;
	struct space_pauses pauses;
	struct space_watch watch;
	struct space_heap heap;
	struct promotion promotion;
	struct pads *pads;     /* pads; NULL = none yet */
	struct pad_virtual_layout virtual; /* for its pads: pads_set_virtual */
	struct pad_label label[PAD_LABELS]; /* likewise: pads_set_labels */
	bool traps_calls;      /* pads_trap_calls */
	struct space_recovery recovery;
	struct space_sink sink;
};

/* @registry: the caller's, which outlives the space. */
struct address_space *space_new(struct registry *registry, pid_t pid);
/* @tid: a thread of the process, for access to its memory. Its first one, until then, has ended. */
void space_set_reader(struct address_space *s, pid_t tid);
/*
 * The process of @s is stopped, and may have executed another program since @s was created: then
 * its memory is reopened, and the modules are dropped. *is_other_out: whether it has. 0 or -errno.
 */
int space_follow_image(struct address_space *s, bool *is_other_out);
struct address_space *space_fork(const struct address_space *parent, pid_t child);
/* A thread of @s, at a breakpoint, waited for ptmem's work for @ns. */
void space_note_trap(struct address_space *s, uint64_t ns);
/* All threads of @s were stopped for @ns. */
void space_note_stop(struct address_space *s, uint64_t ns);

void space_free(struct address_space *s); /* the sink must have released user */

/* Reads and writes the memory of a tracee. */

/* A descriptor of the memory of @pid, or -errno. */
int space_open_memory(pid_t pid);

/* Reads or writes target memory. Writes are all or nothing; a read returns the number of bytes that
 * could be read from the start (>= 0) or -errno. */
ssize_t space_read_some(const struct address_space *s, taddr_t addr, void *buf, size_t size);
int space_read(const struct address_space *s, taddr_t addr, void *buf, size_t size);
/*
 * Whether a stack whose top is @sp still holds @want at @at: the call that pushed it has not
 * returned.
 */
bool space_holds_above(const struct address_space *s, taddr_t sp, taddr_t at, uint64_t want);
/*
 * Makes each word @from of the stack from @sp to @end @to. A function keeps a return address that
 * it got in a register somewhere in its frame; no other word has the address of a stub, of a pad,
 * or of the code in its place, but for what functions that have returned have left.
 */
void space_replace_words(struct address_space *s, taddr_t sp, taddr_t end, uint64_t from,
			 uint64_t to);
/*
 * What goes to an area of ptmem's code is kept, to be written again if the program unmaps it. If it
 * has already, this only keeps it: the program's own memory may be there.
 */
int space_write(const struct address_space *s, taddr_t addr, const void *buf, size_t size);
/*
 * Whether the @size bytes at @at, of @a, can be read and are what was written there: 1, 0, or
 * -ESRCH if the process has no memory any more.
 */
int space_holds_code(const struct address_space *s, const struct stub_area *a, taddr_t at,
		     size_t size);
/* Writes all of @a, which was mapped anew. 0 or -errno. */
int space_rewrite_code(const struct address_space *s, const struct stub_area *a);

#endif
