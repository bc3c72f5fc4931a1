/*
 * A core file (ELF, core(5)) written by the kernel or gcore: the memory in it, the mappings and
 * files, the registers of each thread. The file may be truncated or corrupt, so everything read
 * from it is checked.
 */
#ifndef PTMEM_INSPECT_CORE_FILE_H
#define PTMEM_INSPECT_CORE_FILE_H

#include "arch/arch.h"
#include "base/alloc.h"
#include "base/types.h"
#include "malloc/memory.h"
#include "tracee/os/maps.h"

/* A memory segment. Only its first @filled bytes are in the file. */
struct core_part {
	taddr_t start, end;
	uint64_t offset, filled;
	uint32_t flags;         /* PF_R, PF_W, PF_X */
};

struct core_thread {
	pid_t tid;
	struct arch_regs regs;
};

struct core_file {
	int fd;
	uint64_t size;
	VEC(struct core_part) parts;     /* ascending, disjoint */
	VEC(struct map) files;           /* mapped files, from NT_FILE */
	VEC(struct core_thread) threads; /* the main thread is first */
	pid_t pid;
	char *command;                   /* its first 80 bytes; owned */
	/* from the auxiliary vector; 0 = unknown */
	taddr_t vdso, entry;             /* entry point of the program */
	taddr_t on_stack;                /* an address in the main stack */
};

/*
 * Opens @path. Returns 0 or -errno; then *why_out completes a message that starts with "FILE: ",
 * and the caller frees it. core_file_close frees @out.
 */
int core_file_open(const char *path, struct core_file *out, char **why_out);
void core_file_close(struct core_file *c);

/*
 * Reads from [@addr, @addr + @size), within one segment. Returns the number of bytes read from
 * @addr on, or -1.
 */
ssize_t core_file_read(const struct core_file *c, taddr_t addr, void *buf, size_t size);
/* Reads all of it, or returns false. */
bool core_file_read_all(const struct core_file *c, taddr_t addr, void *buf, size_t size);

/*
 * An ELF object that the process had mapped, read from its headers in the core file. Both the
 * kernel and gcore dump the first page of each object unless configured otherwise.
 */

#define CORE_BUILD_ID_MAX 64u

struct core_object {
	taddr_t bias;           /* address in the process - address in the ELF file */
	struct {
		taddr_t start, end;
		bool is_exec;
	} segment[32];          /* PT_LOAD */
	size_t segments;
	uint8_t build_id[CORE_BUILD_ID_MAX];
	size_t build_id_size;   /* 0 = unknown */
};

/* Reads the object whose first page is at @start. False if there is none, or the core lacks it. */
bool core_object_read(const struct core_file *c, taddr_t start, struct core_object *out);

/*
 * The memory of a core file in the form inspect.h expects: mappings, pages and a source to read
 * from. A core does not record which pages were resident or swapped out, and a page of zeros may
 * never have been touched. So only pages with other content count; pages of zeros are summed
 * separately.
 */

struct core_sums {
	uint64_t bytes;         /* of memory in the file */
	uint64_t zeros;         /* of these, bytes on pages of zeros */
	uint64_t left_out;      /* bytes mapped, but not in the file */
};

/*
 * Reads the whole file. Returns 0 or -errno. @pages_out has resident pages only; free it with
 * resident_deinit.
 */
int core_memory_read(const struct core_file *c, struct resident *pages_out,
		     struct core_sums *sums_out);

/* Reads from @c, which must outlive the source. */
struct memory_source core_memory_source(const struct core_file *c);

#endif
