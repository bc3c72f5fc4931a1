/* --inspect of a core file. */
#ifndef PTMEM_INSPECT_CORE_H
#define PTMEM_INSPECT_CORE_H

/*
 * Reports the memory in the core file @path. @program: the file of the program; NULL = the one that
 * the core names. @out_path: where the report goes, as inspect_process has it. 0, or -errno: what
 * is wrong was logged.
 */
int inspect_core(const char *path, const char *program, const char *out_path);

#endif
