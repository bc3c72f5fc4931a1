/* --inspect of a core file. */
#ifndef PTMEM_INSPECT_CORE_H
#define PTMEM_INSPECT_CORE_H

struct run;

/*
 * Reports the memory in the core file @path. @program: the file of the program; NULL = the one that
 * the core names. The report goes where inspect_process's goes. 0, or -errno: what is wrong was
 * logged.
 */
int inspect_core(struct run *run, const char *path, const char *program);

#endif
