/*
 * An address space of the target: what is mapped in it, which traps are in its
 * text, and how to read and write it.
 *
 * Threads and vfork children share their space; a forked child gets a copy. A
 * space lives as long as processes use it.
 *
 * Owns: modules (held), traps, stub areas, the descriptors of /proc/PID/mem and maps.
 */
#ifndef PTMEM_TRACEE_STATE_SPACE_H
#define PTMEM_TRACEE_STATE_SPACE_H

#include <sys/types.h>

#include "arch/arch.h"
#include "base/types.h"
#include "base/vec.h"
#include "tracee/os/maps.h"
#include "tracee/state/module.h"
#include "tracee/state/own_memory.h"
#include "tracee/state/space_modules.h"
#include "tracee/state/trap_table.h"

/* How often and how long a space was held up. */
struct space_pauses {
	uint64_t attach_ns;    /* all its threads, to be attached; 0 = it was started */
	uint64_t promote_ns;   /* all its threads, to make pads */
	uint64_t trap_stops;   /* single threads, at our breakpoints */
	uint64_t trap_ns;      /* ptmem's work at those, without the switches to it and back */
};

/* Its system calls, and what they did. */
struct space_syscalls {
	taddr_t insn;          /* where the text has a system call instruction; 0 = unknown */
	taddr_t program_break; /* watch_brk: as the last brk said; 0 = unknown */
	taddr_t stack_start;   /* watch_mappings: of the main thread's; 0 = unknown */
	/* SYSCALLS_SITES: breakpoints would miss calls, so it stops at every one */
	bool stops_at_all;
};

/* A place whose CFI is that of a stub's frame: calls/exceptions.c. */
struct unwind_row {
	taddr_t pc;            /* a return address through which exceptions unwind; 0 = none */
	int saved_reg;         /* the register saved below its CFA; -1 = none */
};

/* Of state/space.c, which opens them. */
struct space_files {
	int memory;            /* /proc/PID/mem, -1 if it could not be opened */
	int maps;              /* /proc/PID/maps, for maps_query; negative likewise */
};

/* The program in it. */
struct space_image {
	uint64_t id;           /* by image_read; 0 = not asked for */
	bool is_own;           /* began with an exec or an attach, not with a fork */
	bool has_earlier_blocks; /* it ran before it was profiled: those are unknown */
};

/* What is watched in it; control/install.c, loader.c, calls/requests.c. */
struct space_watch {
	uint32_t functions;    /* probes */
	uint32_t markers;      /* that were ever watched */
	bool is_left;          /* everything is being removed: nothing is installed any more */
	bool is_loading;       /* the dynamic linker was within a change at its last stop */
};

/* From breakpoints to pads; calls/trap.c, pads/promote.c, pads/pad_fork.c. */
struct promotion {
	uint32_t hits;         /* stops at entries since the last one */
	bool is_impossible;    /* its breakpoints stay */
	/* of a fork that inherits pads, until it runs; or NULL */
	struct pad_fork_snapshot *fork_snapshot;
};

/* How its changes are undone if ptmem dies; state/journal.c, guard/trap_handler.c. */
struct space_recovery {
	struct journal *journal; /* of its changes; NULL = none is kept */
	taddr_t injection;     /* where this process injects system calls; 0 = nowhere yet */
	bool had_trap_handler; /* the program's own, at attach; not yet reported as lost */
};

struct heap_sampling;
struct unwinder;

struct address_space {
	uint32_t id;          /* 1, 2, ...: unique in this ptmem */
	uint32_t users;       /* processes */
	pid_t pid;            /* of the process it was made for; names the output file */
	int exit_status;      /* of wait() for process `pid`, once it has ended; else -1 */
	pid_t reader;         /* a living process of it, for /proc and process_vm_readv */
	struct space_files files;
	struct space_image image;
	struct module_list modules;
	struct trap_table traps;
	struct own_memory own;
	struct space_syscalls syscalls;
	struct unwind_row unwind_through;
	bool is_ready;         /* probes are in, events count */
	bool is_profiled;      /* false: followed only until its exec */
	struct space_pauses pauses;
	struct space_watch watch;
	struct pools *pools;   /* that the program announced; NULL = none; owned */
	struct heap_sampling *sampling; /* --heap-sample; NULL = none; owned */
	struct promotion promotion;
	struct pads *pads;     /* tier 2; NULL = none yet */
	struct space_recovery recovery;
	void *user;            /* the sink's; NULL = not profiled */
	const struct unwinder *unwinder; /* the sink's, with user */
};

struct address_space *space_new(pid_t pid);
/*
 * Its process is stopped, and may have executed another program since @s was made: then its
 * memory is another, and what was known of its modules is forgotten. *is_other_out: whether it
 * has. 0 or -errno.
 */
int space_follow_image(struct address_space *s, bool *is_other_out);
struct address_space *space_fork(const struct address_space *parent, pid_t child);
void space_free(struct address_space *s); /* the sink's user must be gone */

#endif
