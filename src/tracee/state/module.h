/*
 * An ELF object mapped into a target: executable, library, ld.so or vdso.
 *
 * One struct module is one load of one file; it keeps its id and its file after
 * it was unmapped, so that addresses seen before can still be named. Modules are
 * shared between the address spaces of forked processes by counting.
 */
#ifndef PTMEM_TRACEE_STATE_MODULE_H
#define PTMEM_TRACEE_STATE_MODULE_H

#include <sys/types.h>

#include "base/types.h"

struct address_space;
struct elf_file;
struct map;
struct marker_list;
struct probe_sites;
struct syscall_sites;

struct module {
	uint32_t id;       /* 1, 2, ...: unique in this ptmem, never used again */
	uint32_t users;    /* address spaces (and others) that hold it */
	taddr_t start, end; /* lowest and highest mapped address */
	taddr_t bias;      /* address in the target - address in the ELF file */
	char *path;        /* as the target sees it, without " (deleted)"; "[vdso]" */
	struct elf_file *file; /* opened ELF (base/elf_file.h); NULL where it cannot be read */
	struct probe_sites *sites; /* watched functions in it; NULL = not yet looked for */
	/* its system call instructions; NULL = not yet looked for */
	struct syscall_sites *syscalls;
	void (*free_syscalls)(struct syscall_sites *s);
	void (*free_markers)(struct marker_list *list);
	struct marker_list *markers; /* in its text; NULL = not yet looked for */
	bool is_vdso;
	/*
	 * Sampling: operator new and delete of the standard C++ library are not watched, since
	 * all their memory comes from malloc, which is
	 */
	bool hides_new;
};

/* Makes the module whose executable map in @s is @map. It may lack a readable file. */
struct module *module_open(const struct address_space *s, const struct map *map);
/* Whether @pc is in an operator new or delete of @m that is not watched. */
bool module_hides(const struct module *m, taddr_t pc);
struct module *module_hold(struct module *m);
void module_release(struct module *m);

#endif
