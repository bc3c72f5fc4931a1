/*
 * Information from /proc about processes and threads (proc(5)): parsed status and stat files,
 * links, the threads of a process, and its root directory. The parsers are pure functions of text.
 * Wherever a process is expected, a thread's id may be given: /proc/TID is that thread's
 * directory.
 */
#ifndef PTMEM_BASE_PROC_H
#define PTMEM_BASE_PROC_H

#include <dirent.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/types.h"

/*
 * Information from /proc about processes and threads (proc(5)): parsed status and stat files,
 * links, and the threads of a process. The parsers are pure functions of text. Wherever a process
 * is expected, a thread's id may be given: /proc/TID is that thread's directory.
 */

/* -- status -- */

/* A line of status: "Key:", blanks, value. */
struct proc_line {
	const char *key;         /* neither this nor the value is NUL-terminated */
	size_t key_size;
	const char *value, *end; /* value == end: nothing follows the colon */
};

/*
 * Takes the next line that has a colon from @text, which ends at @end. False at the end. A program
 * may call itself "VmRSS:", but the kernel escapes line feeds in its name.
 */
bool proc_next_line(const char **text, const char *end, struct proc_line *line_out);

/*
 * Parses the digits at @text, which ends at @end, in base 10 or 16. False if there are none or too
 * many.
 */
bool proc_parse_number(const char *text, const char *end, unsigned base, uint64_t *number_out);

/* Of a thread; process-wide values are the same for all its threads. */
struct proc_status {
	char state;              /* R, S, D, T, t, Z, X; 0 = missing */
	pid_t process;           /* Tgid; 0 = missing */
	pid_t parent;            /* PPid; 0 = missing */
	pid_t tracer;            /* 0 = none */
	pid_t ns_pid;            /* id in its own pid namespace; 0 = that is ours */
	int64_t uid;             /* real user; -1 = missing */
	int64_t fs_uid;          /* user for file access, mostly the effective one; -1 = missing */
	uint64_t capabilities;   /* effective ones */
	/* resident memory, bytes: the most there was, and now of files and shared; 0 = missing */
	uint64_t peak_resident, file_resident, shared_resident;
	bool has_memory;         /* not set for kernel threads, zombies and dead processes */
	uint64_t pending;        /* pending for this thread only; signal N is bit N - 1 */
	uint64_t pending_shared; /* pending for the process */
	uint64_t ignored, caught;
	int seccomp_mode;        /* 0 = off, 2 = filters; -1 = missing */
	int seccomp_filters;     /* number of filters; -1 = missing */
	uint64_t sleeps;         /* number of waits (voluntary_ctxt_switches) */
};

void proc_status_parse(const char *text, size_t size, struct proc_status *out);
/* 0, or -errno: -ESRCH when there is no such process. */
int proc_status_read(pid_t tid, struct proc_status *out);
/*
 * Whether process @pid has the same access to files as the caller: the same user, root and mounts,
 * and at least the same capabilities. Uses only /proc; ignores seccomp and Landlock.
 */
bool proc_has_our_rights(pid_t pid);

/* Whether /proc is mounted and shows the pid namespace of the caller. */
bool proc_is_ours(void);

/* -- stat -- */

struct proc_stat {
	char state;              /* as above */
	bool is_kernel_thread;
	bool is_exiting;         /* exiting, which takes a while if it has much memory */
	uint64_t started;        /* clock ticks after the boot */
	uint64_t start_stack;    /* 0 = unknown, or not permitted */
	uint64_t start_brk;      /* likewise */
};

/*
 * Returns 0, or -EINVAL if @text is not a stat file. The program's name is in it unescaped, with
 * parentheses, spaces and line feeds: "1 (a) R 1 (b) S 0 ...".
 */
int proc_stat_parse(const char *text, size_t size, struct proc_stat *out);
/* 0, or -errno: -ESRCH when there is no such process. */
int proc_stat_read(pid_t tid, struct proc_stat *out);
/* Whether @tid is gone, or a zombie. */
bool proc_is_dead(pid_t tid);
/*
 * Whether the thread has ended and is not waited for: a traced thread whose id is gone lives on
 * instead, since it executed a program and has the id of its process's first thread now.
 */
bool proc_is_zombie(pid_t tid);
/* Whether @pid is dead or dying: it is exiting, or SIGKILL was sent to it. */
bool proc_is_ending(pid_t pid);

/* -- files, links, threads -- */

/* Opens /proc/@pid/@name for reading. NULL with errno on failure. */
FILE *proc_open(pid_t pid, const char *name);
/* The target of the link /proc/@pid/@name; NULL if it cannot be read. The caller frees it. */
char *proc_read_link(pid_t pid, const char *name);

#define PROC_COMM_SIZE 16 /* with the final NUL */
/* The name of @pid in its comm file, cut by the kernel; "" if it is gone. */
void proc_read_comm(pid_t pid, char comm_out[PROC_COMM_SIZE]);

/* Iterates over the threads of @pid; NULL if the process is gone. Close with closedir(). */
DIR *proc_open_threads(pid_t pid);
/* The next thread; 0 after the last. */
pid_t proc_next_thread(DIR *threads);
/*
 * A thread of @pid that has not ended, the first one if possible; @pid if there is none. When the
 * first thread has ended, /proc/PID shows nothing of the memory, the files and the root directory
 * of the process any more; /proc/TID of another thread does.
 */
pid_t proc_find_reader(pid_t pid);
/* The process that traces @pid; 0: none, or it cannot be read. */
pid_t proc_tracer(pid_t pid);

/* -- statm -- */

/* Bytes. */
struct proc_statm {
	uint64_t size, resident, shared;
};

/* Of the process, whichever of its threads live. 0, or -ESRCH if it has no memory any more. */
int proc_statm_read(pid_t pid, struct proc_statm *out);

/*
 * The root directory of another process, if files have other names there: in a container, a chroot,
 * or another mount namespace. Kept open, so that its files can be found after the process has
 * ended. Symbolic links in it lead to files in it, as they do for that process.
 */

struct root_dir {
	uint32_t users;
	int fd;
	dev_t dev;
	ino_t ino;             /* of the directory */
	ino_t mounts;          /* of the mount namespace */
	/*
	 * In our view, as in /proc/PID/maps; "" for a container, whose root is that of a mount
	 * namespace
	 */
	char *prefix;
};

/*
 * The root of @pid; NULL if it is our own, or unknown. @known (may be NULL): the result if it is
 * the same directory. The caller releases it.
 */
struct root_dir *root_dir_of(pid_t pid, struct root_dir *known);
struct root_dir *root_dir_hold(struct root_dir *root);  /* may be NULL, as in the following */
void root_dir_release(struct root_dir *root);

/*
 * Opens file @path of @root for reading: a descriptor, or -errno; -EINVAL if it is not a regular
 * file. NULL = our own root.
 */
int root_dir_open(const struct root_dir *root, const char *path);
/* The same, but -EINVAL if it is a symbolic link. */
int root_dir_open_itself(const struct root_dir *root, const char *path);

/* The name in @root of the file that /proc/PID/maps calls @path: the end of that, or all of it. */
const char *root_dir_name(const struct root_dir *root, const char *path);
/* Opens the file that /proc/PID/maps calls @path, which need not be in @root. */
int root_dir_open_mapped(const struct root_dir *root, const char *path);

#endif
