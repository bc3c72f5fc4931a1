/*
 * A core file (ELF, core(5)), as the kernel or gcore writes it: which memory is in it, the mappings
 * and files there were, the registers of threads. It may be truncated or corrupt: whatever is read
 * from it is checked.
 */
#ifndef PTMEM_INSPECT_CORE_FILE_H
#define PTMEM_INSPECT_CORE_FILE_H

#include "arch/arch.h"
#include "base/types.h"
#include "base/vec.h"
#include "tracee/os/maps.h"

/* Memory; what is after its first @filled bytes is not in the file. */
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
	VEC(struct map) files;           /* mapped files, as NT_FILE lists them */
	VEC(struct core_thread) threads; /* the main one is the first */
	pid_t pid;
	char *command;                   /* the first 80 bytes of it; owned */
	/* by the auxiliary vector; 0 = unknown */
	taddr_t vdso, entry;             /* of the program: where it begins */
	taddr_t on_stack;                /* an address in the main stack */
};

/*
 * Opens @path. -errno, and *why_out says what is wrong, in words that follow "FILE: "; the caller
 * frees it. core_file_close frees @out.
 */
int core_file_open(const char *path, struct core_file *out, char **why_out);
void core_file_close(struct core_file *c);

/* Reads what is in the file of [@addr, @addr + @size), within one part: bytes from @addr on; -1. */
ssize_t core_file_read(const struct core_file *c, taddr_t addr, void *buf, size_t size);
/* Reads all of it, or returns false. */
bool core_file_read_all(const struct core_file *c, taddr_t addr, void *buf, size_t size);

#endif
