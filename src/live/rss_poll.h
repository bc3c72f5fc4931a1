/*
 * --sample: the memory of processes over time, from /proc/PID/status (doc/memusage.md 6). An
 * observer of the run's sessions, or a watcher of processes that are not traced.
 */
#ifndef PTMEM_LIVE_RSS_POLL_H
#define PTMEM_LIVE_RSS_POLL_H

#include <sys/types.h>

#include "base/types.h"

/* In the default order, then as in the kernel. */
enum status_field {
	STATUS_VMPEAK, STATUS_VMSIZE, STATUS_VMHWM, STATUS_VMRSS,
	STATUS_VMLCK, STATUS_VMPIN, STATUS_VMDATA, STATUS_VMSTK, STATUS_VMEXE, STATUS_VMLIB,
	STATUS_VMPTE, STATUS_VMSWAP, STATUS_RSSANON, STATUS_RSSFILE, STATUS_RSSSHMEM,
	STATUS_THREADS,
	/* not in the file: the moment, ns */
	STATUS_MONOTONIC, STATUS_REALTIME, STATUS_FIELDS,
};

#define STATUS_NONE UINT64_MAX /* the file had no such line */

struct status_values {
	uint64_t value[STATUS_FIELDS]; /* KiB, a number of threads, ns; or STATUS_NONE */
	char state;                    /* R, S, Z, ...; 0 = none */
};

extern const char *const status_field_names[STATUS_FIELDS];

/* The field with the name of @size bytes, as in status_field_names; STATUS_FIELDS if unknown. */
enum status_field status_field_find(const char *name, size_t size);

#define STATUS_BIT(field) (1u << (field))
#define STATUS_ALL (STATUS_BIT(STATUS_MONOTONIC) - 1) /* of the file */

/*
 * Parses @size bytes of @text, which need not be NUL-terminated, until all fields of @wanted
 * (STATUS_BITs) are found; later fields stay STATUS_NONE. Malformed lines are ignored.
 */
void status_parse(const char *text, size_t size, uint32_t wanted, struct status_values *out);

struct run;
struct rss_poll;

/* Starts if requested. 0 and *out (NULL = not requested), or -errno after a message. */
int rss_poll_open(struct run *run, struct rss_poll **out);
/* Ends it. False if the samples could not be written, after a message. NULL is ignored. */
bool rss_poll_close(struct rss_poll *s);

/*
 * Samples @count processes that are not traced (any longer) until all have ended or @leave returns
 * true. NULL is ignored.
 */
void rss_poll_watch(struct rss_poll *s, const pid_t *pids, size_t count, bool (*leave)(void *ctx),
		    void *ctx);

#endif
