/*
 * ELF objects mapped into a target (executable, library, ld.so or vdso), the list of them that
 * each address space has, and the registry of a run, which opens each file once and numbers spaces
 * and modules. One struct module is one mapping of one file. It keeps its id and its file after it
 * was unmapped, so that earlier addresses can still be symbolized. Forked processes share modules
 * by reference counting.
 */
#ifndef PTMEM_TRACEE_STATE_MODULE_H
#define PTMEM_TRACEE_STATE_MODULE_H

#include <sys/types.h>

#include "base/alloc.h"
#include "base/elf_file.h"
#include "base/types.h"
#include "tracee/os/maps.h"

/*
 * What all address spaces of a run have in common: ELF files, each of which is opened once, and
 * the numbers that spaces and modules have got. Outlives all of these.
 */

struct registry { /* zeroed = empty */
	struct elf_files files;
	uint32_t last_space_id;
	uint32_t last_module_id;
};

struct address_space;
struct elf_file;
struct map;
struct marker_list;
struct probe_sites;
struct syscall_sites;

struct module {
	/* 1, 2, ...: unique in the run; the same if it is unmapped and mapped there again */
	uint32_t id;
	uint32_t users;    /* references by address spaces (and others) */
	taddr_t start, end; /* lowest and highest mapped address */
	taddr_t bias;      /* address in the target - address in the ELF file */
	char *path;        /* in the target's view, without " (deleted)"; "[vdso]" */
	dev_t dev;         /* of the mapped file, as in /proc/PID/maps; 0 for the vdso */
	ino_t ino;         /* likewise */
	struct elf_file *file; /* opened ELF (base/elf_file.h); NULL if it cannot be read */
	struct probe_sites *sites; /* watched functions in it; NULL = not searched yet */
	/* its system call instructions; NULL = not searched yet */
	struct syscall_sites *syscalls;
	void (*free_syscalls)(struct syscall_sites *s);
	const struct marker_list *markers; /* in its text, the file's; NULL = not searched yet */
	bool is_vdso;
	bool awaits_loader; /* known from a stack; watched when the dynamic linker reports it */
	/*
	 * Sampling: operator new and delete of the standard C++ library are not watched, since
	 * all their memory comes from malloc, which is
	 */
	bool hides_new;
};

/* Whether @pc is in an operator new or delete of @m that is not watched. */
bool module_hides(const struct module *m, taddr_t pc);
struct module *module_hold(struct module *m);
void module_release(struct module *m);

/* The modules of an address space. */

/* A VEC of the modules (referenced), and other executable maps. */
struct module_list {
	struct module **data; /* currently mapped, ascending */
	size_t count, capacity;
	/* unmapped ones, referenced: an object that is mapped there again gets the same id */
	VEC(struct module *) earlier;
	VEC(struct map) code; /* executable maps that belong to no module (JIT) */
	uint64_t code_hash;   /* checksum of all executable maps at the last update */
	/* pages not found in a module since code was last mapped or unmapped */
	taddr_t miss[1024];
};

/* Adds the modules of @from to the empty list @to of a fork. */
void module_list_copy(struct module_list *to, const struct module_list *from);
/* Drops everything: another program runs. */
void module_list_clear(struct module_list *list);
void module_list_deinit(struct module_list *list);

/*
 * Compares the maps with the known modules. Calls @loaded and @unloaded for each difference.
 * Unloaded modules lose their traps.
 */
typedef void space_module_fn(void *ctx, struct address_space *s, struct module *m);
int space_update_modules(struct address_space *s, space_module_fn *loaded,
			 space_module_fn *unloaded, void *ctx);

/* The known module at @pc, or NULL. */
struct module *space_find_module(const struct address_space *s, taddr_t pc);
/* Whether @addr of the file of @m is in another module: a file can have several code segments. */
bool space_in_other_module(const struct address_space *s, const struct module *m, taddr_t addr);
/* Whether @pc is in known code without a module, or was already not found. */
bool space_is_known_miss(struct address_space *s, taddr_t pc);
/* Whether @pc may be in executable memory now, according to the kernel; true if it cannot tell. */
bool space_may_be_code(const struct address_space *s, taddr_t pc);

/* Code may have been mapped or unmapped: look up pages again. */
void space_forget_misses(struct address_space *s);

#endif
