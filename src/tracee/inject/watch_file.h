/*
 * The userfaultfd(2) by which ptmem learns which pages a process writes to (os/pagemap.h): a thread
 * of the process makes it, ptmem takes it over, and the thread closes its own. If ptmem dies
 * between these steps, its guardian closes the file; if that is killed, too, it stays, idle.
 */
#ifndef PTMEM_TRACEE_INJECT_WATCH_FILE_H
#define PTMEM_TRACEE_INJECT_WATCH_FILE_H

struct address_space;
struct target;
struct thread;

/*
 * Makes a file in @s, whose threads are stopped, and closes it there: *fd_out is the caller's.
 * -ENOTSUP where that could harm the process: it has a seccomp filter, or is neither guarded nor
 * ends with ptmem; -errno of the kernel, -ESRCH if no thread can work.
 */
int watch_file_make(struct target *t, struct address_space *s, int *fd_out);

/*
 * For a guardian: @th closes the file that the journal of @s has. It must still be a userfaultfd
 * for which nothing has been agreed with the kernel, as a program does with its own directly after
 * making it.
 */
void watch_file_close_left(struct target *t, struct address_space *s, struct thread *th);

#endif
