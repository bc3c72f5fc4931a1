/*
 * What /proc says about processes and threads (proc(5)): the files of status and stat taken
 * apart, links, and the threads of a process. The parsers are pure: text in, values out.
 *
 * A thread's id may be given wherever a process is asked for: /proc/TID is that thread's.
 */
#ifndef PTMEM_BASE_PROC_H
#define PTMEM_BASE_PROC_H

#include <dirent.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/types.h"

/* -- status -- */

/* A line of status: "Key:", blanks, value. */
struct proc_line {
	const char *key;         /* not ended by a NUL, nor is the value */
	size_t key_size;
	const char *value, *end; /* value == end: nothing follows the colon */
};

/*
 * Takes the next line that has a colon off @text, which ends at @end. False at the end.
 * A program may call itself "VmRSS:", but the kernel escapes line feeds in its name.
 */
bool proc_next_line(const char **text, const char *end, struct proc_line *line_out);

/*
 * The digits at @text, which ends at @end, in base 10 or 16; false if there are none or too many.
 */
bool proc_parse_number(const char *text, const char *end, unsigned base, uint64_t *number_out);

/* Of a thread; what belongs to its process is the same for all of that. */
struct proc_status {
	char state;              /* R, S, D, T, t, Z, X; 0 = not said */
	pid_t process;           /* Tgid; 0 = not said */
	pid_t parent;            /* PPid; 0 = not said */
	pid_t tracer;            /* 0 = none */
	int64_t uid;             /* the real user; -1 = not said */
	int64_t fs_uid;          /* the user that it opens files as, mostly the effective one; -1 */
	uint64_t capabilities;   /* the effective ones */
	bool has_memory;         /* not so in kernel threads, zombies and what is dead */
	uint64_t pending;        /* signals for this thread alone; signal N is bit N - 1 */
	uint64_t pending_shared; /* likewise, for any thread of its process */
	uint64_t ignored, caught; /* by the process, likewise */
	int seccomp_mode;        /* 0 = off, 2 = filters; -1 = not said */
	int seccomp_filters;     /* how many there are; -1 = not said */
	uint64_t sleeps;         /* how often it waited for something (voluntary_ctxt_switches) */
};

void proc_status_parse(const char *text, size_t size, struct proc_status *out);
/* 0, or -errno: -ESRCH when there is no such process. */
int proc_status_read(pid_t tid, struct proc_status *out);
/*
 * Whether process @pid may do with files what the calling one may: it has the same user, the same
 * capabilities or more, the same root and mounts. Only what /proc says counts, not sandboxes by
 * seccomp or Landlock.
 */
bool proc_has_our_rights(pid_t pid);
/* Ended, and perhaps not waited for. */
bool proc_status_is_dead(const struct proc_status *st);

/* -- stat -- */

struct proc_stat {
	char state;              /* as above */
	bool is_kernel_thread;
	bool is_exiting;         /* takes a while if it has much memory */
	uint64_t start_stack;    /* 0 = unknown, or not permitted */
	uint64_t start_brk;      /* likewise */
};

/*
 * 0, or -EINVAL for what is no stat. The name of the program is in it as it is, with
 * brackets, blanks and line feeds: "1 (a) R 1 (b) S 0 ...".
 */
int proc_stat_parse(const char *text, size_t size, struct proc_stat *out);
/* 0, or -errno: -ESRCH when there is no such process. */
int proc_stat_read(pid_t tid, struct proc_stat *out);
/* Whether @tid is gone, or ended and not waited for. */
bool proc_is_dead(pid_t tid);
/* Whether @pid is dead or about to be: it is exiting, or was sent SIGKILL. */
bool proc_is_ending(pid_t pid);

/* -- files, links, threads -- */

/* /proc/@pid/@name for reading, or NULL with errno. */
FILE *proc_open(pid_t pid, const char *name);
/* Where the link /proc/@pid/@name leads; NULL if that cannot be read. The caller frees it. */
char *proc_read_link(pid_t pid, const char *name);

/* The threads of @pid, one after the other; NULL if it is gone. closedir() ends it. */
DIR *proc_open_threads(pid_t pid);
/* The next thread; 0 after the last. */
pid_t proc_next_thread(DIR *threads);

#endif
