/*
 * The memory of processes over time, from /proc/PID/status (--sample): one line
 * a process and a period, to standard error or a file.
 *
 *	stderr  values, tabs between; the pid first when children are followed
 *	file    a header line; then time in seconds since the start, pid, values
 *
 * Sizes are the program's: what ptmem mapped in it is taken off VmSize and VmPeak.
 * Peaks are the sampler's own running maxima as well as the kernel's, whose
 * counters are kept in batches and may go back. A process is known by a
 * descriptor of its file in /proc, which never becomes another process's.
 */
#ifndef PTMEM_SAMPLER_H
#define PTMEM_SAMPLER_H

#include <sys/types.h>

#include "base/types.h"

struct sampler;

struct sampler_options {
	uint64_t period_ns;
	const char *fields;  /* names, commas between; NULL = VmPeak,VmSize,VmHWM,VmRSS */
	const char *path;    /* NULL = standard error */
	bool with_pids;      /* on standard error; a file has them always */
	/* Bytes of a process's address space that are not its own; NULL = none. */
	uint64_t (*foreign)(void *ctx, pid_t pid);
	void *ctx;
};

/* 0; -EINVAL: *why_out (malloc'ed) says which field there is not; or -errno of the file. */
int sampler_new(const struct sampler_options *options, struct sampler **sampler_out,
		char **why_out);

/* Writes what is left: 0 or -errno of the first failed write. */
int sampler_free(struct sampler *s);

/*
 * @pid runs a program from its beginning (after exec,
 * too: its peaks begin anew), or is watched from now on.
 */
void sampler_add(struct sampler *s, pid_t pid);
/*
 * What is foreign in @pid, which may yet have to be added, is about to become more: peaks so far
 * are without that.
 */
void sampler_note_peaks(struct sampler *s, pid_t pid);
/* No more of @pid. */
void sampler_remove(struct sampler *s, pid_t pid);

/* One line for @pid now, if its memory is still there. @tid: a thread of it that lives, 0 = any. */
void sampler_sample(struct sampler *s, pid_t pid, pid_t tid);

/* Samples all when it is time for that; returns when it will be next (CLOCK_MONOTONIC, ns). */
uint64_t sampler_tick(struct sampler *s, uint64_t now_ns);

/*
 * Samples @count processes, which are not traced, until all have ended or @leave says so. Their
 * ends are seen at once.
 */
void sampler_watch(struct sampler *s, const pid_t *pids, size_t count, bool (*leave)(void *ctx),
		   void *ctx);

#endif
