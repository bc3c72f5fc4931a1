/* --inspect of a core file. */
#ifndef PTMEM_INSPECT_CORE_H
#define PTMEM_INSPECT_CORE_H

struct run;

/*
 * Reports the memory in the core file @path. @program: the program's file; NULL = the one named in
 * the core. The report goes to the same place as that of inspect_process. Returns 0, or -errno
 * after a message.
 */
int inspect_core(struct run *run, const char *path, const char *program);

#endif
