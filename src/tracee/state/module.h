/*
 * An ELF object mapped into a target: executable, library, ld.so or vdso.
 *
 * One struct module is one mapping of one file. It keeps its id and its file after it was unmapped,
 * so that earlier addresses can still be symbolized. Forked processes share modules by reference
 * counting.
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
	void (*free_markers)(struct marker_list *list);
	struct marker_list *markers; /* in its text; NULL = not searched yet */
	bool is_vdso;
	bool awaits_loader; /* known from a stack; watched when the dynamic linker reports it */
	/*
	 * Sampling: operator new and delete of the standard C++ library are not watched, since
	 * all their memory comes from malloc, which is
	 */
	bool hides_new;
};

/* The root directory of @s, for module_open; NULL = our own. The caller releases it. */
struct root_dir *module_root(const struct address_space *s);
/* Creates the module whose executable map in @s is @map. It may lack a readable file. */
struct module *module_open(const struct address_space *s, const struct map *map,
			   struct root_dir *root);
/* Whether @pc is in an operator new or delete of @m that is not watched. */
bool module_hides(const struct module *m, taddr_t pc);
struct module *module_hold(struct module *m);
void module_release(struct module *m);

#endif
