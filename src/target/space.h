/*
 * An address space of the target: what is mapped in it, which traps stand in its
 * text, and how to read and write it.
 *
 * Threads and vfork children share their space; a forked child gets a copy. A
 * space lives as long as processes use it.
 *
 * Owns: modules (held), traps, stub areas, the descriptor of /proc/PID/mem.
 */
#ifndef PTMEM_TARGET_SPACE_H
#define PTMEM_TARGET_SPACE_H

#include <sys/types.h>

#include "arch/arch.h"
#include "base/types.h"
#include "base/vec.h"
#include "target/maps.h"
#include "target/module.h"
#include "target/probe.h"

enum trap_kind {
	TRAP_ENTRY,  /* at the first instruction of a probed function */
	TRAP_RETURN, /* in a stub, behind the call of the original */
	TRAP_START,  /* at the program's first instruction */
	TRAP_SYSCALL, /* at a system call instruction; stub.jump: another one, and back (syscall_sites.h) */
	TRAP_PAD_EXIT, /* at an exit of a pad, while threads run out of pads; stub.jump: outside */
	TRAP_PAD_ENTRY, TRAP_PAD_LEAVE, TRAP_PAD_FULL, /* in a pad or its recorder; arch/pad.h */
};

/* One breakpoint instruction in the target's text. */
struct trap {
	taddr_t addr;
	uint8_t original[8];       /* the bytes it stands for (TRAP_RETURN: none) */
	uint8_t patch_size;        /* how many: a breakpoint's, or a jump's */
	uint8_t kind;              /* enum trap_kind */
	bool is_removed;           /* taken out with its module; the slot is kept */
	const struct probe *probe; /* TRAP_ENTRY, TRAP_RETURN */
	struct arch_stub stub;
	taddr_t entry;             /* of the function; addr may lie behind an endbr64 */
	uint32_t code_size;        /* of the function, bytes */
	uint32_t module;           /* id */
	uint32_t pad;              /* index + 1 of its pad; 0 = none. TRAP_PAD_*: of the pad it is in */
	uint32_t marker;           /* TRAP_ENTRY at a marker: its index in the module's list */
	taddr_t semaphore;         /* that was raised for it; 0 = none */
	bool is_cold;              /* cannot be promoted, or not now */
	const char *why_cold;
};

/* Room for stubs: stub_area.h. */
struct stub_area {
	taddr_t start;
	uint32_t size, used;
	bool is_slack;
	bool is_pads;         /* holds pads, not stubs */
	bool is_memory;       /* is_pads: shared memory of theirs, no code; has no header */
	bool is_guard;        /* holds the handler of SIGTRAP; has no header */
	uint8_t *saved;       /* is_slack: what stood there; owned by the space */
};

/* How often and how long a space was held up. */
struct space_pauses {
	uint64_t attach_ns;    /* all its threads, to be attached; 0 = it was started */
	uint64_t promote_ns;   /* all its threads, to make pads */
	uint64_t trap_stops;   /* single threads, at our breakpoints */
	uint64_t trap_ns;      /* the time of those, as ptmem saw it */
};

struct space {
	uint32_t id;          /* 1, 2, ...: unique in this ptmem */
	uint32_t users;       /* processes */
	pid_t pid;            /* of the process it was made for; names the output file */
	pid_t reader;         /* a living process of it, for /proc and process_vm_readv */
	int mem_fd;           /* /proc/PID/mem, -1 if it could not be opened */
	int maps_fd;          /* /proc/PID/maps, for maps_query; negative likewise */
	VEC(struct module *) modules; /* mapped now, ascending */
	VEC(struct map) code;         /* executable maps that belong to no module (JIT) */
	VEC(struct trap) traps;
	VEC(struct stub_area) areas;
	taddr_t shared;        /* the memory of pads, also its parent's, that is mapped in it; 0 = none */
	uint64_t shared_size;
	uint64_t mapped;       /* bytes of address space that ptmem has in it */
	uint32_t *trap_index;  /* hash table: address -> index + 1 */
	uint32_t trap_bits;
	taddr_t syscall_insn;  /* where the text has a system call instruction; 0 = not yet looked */
	taddr_t program_break; /* watch_brk: as the last brk said; 0 = unknown */
	taddr_t stack_start;   /* watch_mappings: of the main thread's; 0 = unknown */
	taddr_t throw_through; /* a return address whose CFI lets exceptions pass; 0 = none known */
	taddr_t miss[1024];    /* pages that were looked up in vain since code was mapped or unmapped */
	uint64_t code_hash;    /* of all that was executable at the last update */
	int throw_saved;       /* the register that its row restores from the word below the frame; -1 = none */
	bool is_ready;         /* probes are in, events count */
	bool is_profiled;      /* false: followed only until its exec */
	bool stops_at_all;     /* SYSCALLS_SITES: breakpoints would miss calls, so it stops at every one */
	bool is_loading;       /* the dynamic linker was within a change at its last stop */
	bool is_own_image;     /* began with an exec or an attach, not with a fork */
	struct space_pauses pauses;
	uint32_t probe_count;  /* watched functions */
	uint32_t marker_count; /* markers that were ever watched */
	struct pools *pools;   /* that the program told of; NULL = none; owned */
	uint32_t hits;         /* stops at entries, for promotion */
	struct pads *pads;     /* tier 2; NULL = none yet */
	struct pad_heritage *heritage; /* of a fork, until it runs: the pads that it is to have; NULL = none */
	bool is_break_only;    /* never promoted */
	struct guard_record *guard; /* what its guardian knows of it; NULL = has none */
	void *user;            /* the sink's */
};

struct space *space_new(pid_t pid);
/* Its process may have executed another program since space_new: its memory is another then. */
void space_reopen(struct space *s);
struct space *space_fork(const struct space *parent, pid_t child);
void space_free(struct space *s); /* the sink's user must be gone */

/* Reads or writes target memory. All or nothing for write; read gives the bytes that could
 * be read from the start (>= 0) or -errno. */
ssize_t space_read_some(const struct space *s, taddr_t addr, void *buf, size_t size);
int space_read(const struct space *s, taddr_t addr, void *buf, size_t size);
/* Whether a stack that ends at @sp still holds @want at @at: the call that left it there has not returned. */
bool space_holds_above(const struct space *s, taddr_t sp, taddr_t at, uint64_t want);
/* The same as space_read, but without our breakpoints at system calls. */
int space_read_text(const struct space *s, taddr_t addr, void *buf, size_t size);
int space_write(const struct space *s, taddr_t addr, const void *buf, size_t size);

/*
 * Compares the maps with what is known. @loaded and @unloaded are told of each
 * difference. Unloaded modules lose their traps.
 */
typedef void space_module_fn(void *ctx, struct space *s, struct module *m);
int space_update_modules(struct space *s, space_module_fn *loaded, space_module_fn *unloaded, void *ctx);

/* The module at @pc by what is known, NULL if none. */
struct module *space_find_module(const struct space *s, taddr_t pc);
/* Whether @addr of the file of @m is in another module: one file can have several segments of code. */
bool space_in_other_module(const struct space *s, const struct module *m, taddr_t addr);
/* Whether @pc lies in known code without a module, or was already looked up in vain. */
bool space_is_known_miss(struct space *s, taddr_t pc);
/* Whether @pc may be mapped as code now, by what the kernel says; true where it cannot be asked. */
bool space_may_be_code(const struct space *s, taddr_t pc);

/* Whether @addr lies in memory that ptmem mapped into it; the end of a text where stubs stand is none. */
bool space_is_own(const struct space *s, taddr_t addr);

/* Traps. space_trap_put writes the breakpoint; space_trap_take restores the text. */
struct trap *space_trap_find(const struct space *s, taddr_t addr);
/* Only notes @trap, which is written already. */
void space_trap_add(struct space *s, const struct trap *trap);
int space_trap_put(struct space *s, const struct arch *arch, const struct trap *trap);
int space_trap_take(struct space *s, const struct arch *arch, struct trap *trap);
/* How many watched functions are caught by jumps into pads, and by breakpoints. */
void space_count_probes(const struct space *s, uint32_t *jumps_out, uint32_t *breakpoints_out);
/* The same of markers. */
void space_count_markers(const struct space *s, uint32_t *jumps_out, uint32_t *breakpoints_out);

#endif
