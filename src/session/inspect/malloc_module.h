/* Finds the object that contains a process's malloc, and identifies that malloc. */
#ifndef PTMEM_SESSION_INSPECT_MALLOC_MODULE_H
#define PTMEM_SESSION_INSPECT_MALLOC_MODULE_H

#include "base/alloc.h"
#include "base/types.h"

struct module;

struct elf_file;

struct held_modules {
	VEC(struct module *) list; /* held */
	/* the program was executed by a link with this name; NULL = its file has the name */
	char *link;
	ino_t program;             /* the file */
};

void held_modules_deinit(struct held_modules *l);

/* The one that has @addr in a segment of its file, and @addr as the file has it; NULL. */
const struct module *held_modules_find(const struct held_modules *l, taddr_t addr,
				       uint64_t *vaddr_out);

/*
 * The name of @file at @path: its last part, or as the program was executed. Python's is always
 * that of its file, by which others know it.
 */
const char *held_modules_name(const struct held_modules *l, const struct elf_file *file,
			      const char *path);

#define MALLOC_CODE_PARTS 32u
#define MALLOC_WAIT_PARTS 8u

/* A libc's malloc, or another one. */
struct malloc_module {
	const struct module *module; /* NULL = not found */
	struct addr_range code[MALLOC_CODE_PARTS]; /* of its functions */
	size_t code_count;           /* 0 = unknown */
	struct addr_range wait[MALLOC_WAIT_PARTS]; /* a libc's: pthread_cond_wait and the like */
	size_t wait_count;
};

/* A libc's malloc, and that of another allocator, if there is one. */
struct malloc_modules {
	struct malloc_module libc, own;
};

/*
 * Whether a thread with @pc (@count, innermost first) on its stack is in functions of malloc. A
 * thread that an allocator has for itself, as jemalloc has, and that waits is not.
 */
bool malloc_modules_have(const struct malloc_modules *m, const taddr_t *pc, size_t count);

/*
 * Finds them among @module (@count). Of another allocator than a libc's the code is all of a
 * library, or the functions of it that a program has; without symbols there is none.
 */
void malloc_modules_find(struct module *const *module, size_t count, struct malloc_modules *out);

/* Its version; 0, 0 if unknown. Reads the whole file. */
void malloc_module_version(const struct module *m, unsigned *major_out, unsigned *minor_out);

/*
 * The version of jemalloc among the constants of @m, as "5.3.0-0": a release and how many commits
 * are after it; "" if there is none. Reads the whole file.
 */
#define MALLOC_VERSION_SIZE 32u
void malloc_module_jemalloc(const struct module *m, char out[MALLOC_VERSION_SIZE]);

/* The name of the allocator other than a libc's that @m is, or contains; NULL: none is known. */
const char *malloc_module_name(const struct module *m);

#endif
