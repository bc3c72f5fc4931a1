/*
 * A core file (ELF, core(5)) written by the kernel or gcore: the memory in it, the mappings and
 * files, the registers of each thread. The file may be truncated or corrupt, so everything read
 * from it is checked.
 */
#ifndef PTMEM_INSPECT_CORE_FILE_H
#define PTMEM_INSPECT_CORE_FILE_H

#include "arch/arch.h"
#include "base/types.h"
#include "base/vec.h"
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

#endif
