/*
 * The memory of processes over time, from /proc/PID/status (--sample): one line for each process
 * and period, to standard error or a file.
 *
 *	stderr  tab-separated values; first the pid if children are followed; on a terminal
 *	        after a header line
 *	file    a header line; then time in seconds since the start, pid, values
 *
 * Sizes are the program's: memory that ptmem mapped in it is subtracted from VmSize and VmPeak.
 * A peak is the larger of the sampler's own maximum and the kernel's, whose counters are updated in
 * batches and may go back. A process is identified by a descriptor of its file in /proc, which
 * never refers to another process.
 */
#ifndef PTMEM_SAMPLER_H
#define PTMEM_SAMPLER_H

#include <sys/types.h>

#include "base/types.h"

struct sampler;

struct sampler_options {
	uint64_t period_ns;
	const char *fields;  /* names, comma-separated; NULL = VmSize,VmPeak,VmRSS,VmHWM */
	const char *path;    /* NULL = standard error */
	bool with_pids;      /* on standard error; files always have it */
	/* The number of bytes of a process's address space mapped by ptmem; NULL = none. */
	uint64_t (*own_bytes)(void *ctx, pid_t pid);
	void *ctx;
};

/* 0; -EINVAL: *why_out (malloc'ed) is the unknown field; or -errno of the file. */
int sampler_new(const struct sampler_options *options, struct sampler **sampler_out,
		char **why_out);

/* Writes the rest: 0 or -errno of the first failed write. */
int sampler_free(struct sampler *s);

/*
 * @pid runs a program from its start (also after exec: its peaks start again), or is watched from
 * now on.
 */
void sampler_add(struct sampler *s, pid_t pid);
/*
 * ptmem is about to map memory in @pid, which may not have been added yet: peaks so far exclude
 * it.
 */
void sampler_note_peaks(struct sampler *s, pid_t pid);
/* No more of @pid. */
void sampler_remove(struct sampler *s, pid_t pid);

/* One line for @pid now, if its memory still exists. @tid: a living thread of it, 0 = any. */
void sampler_sample(struct sampler *s, pid_t pid, pid_t tid);

/* Samples all processes if it is time; returns the next time (CLOCK_MONOTONIC, ns). */
uint64_t sampler_tick(struct sampler *s, uint64_t now_ns);

/*
 * Samples @count processes, which are not traced, until all have ended or @leave returns true.
 * Detects their ends at once.
 */
void sampler_watch(struct sampler *s, const pid_t *pids, size_t count, bool (*leave)(void *ctx),
		   void *ctx);

#endif
