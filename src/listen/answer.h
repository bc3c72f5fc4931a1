/*
 * Builds the bodies of answers from what ptmem reported about its processes, among them /metrics
 * in the text format of Prometheus or OpenMetrics.
 */
#ifndef PTMEM_LISTEN_ANSWER_H
#define PTMEM_LISTEN_ANSWER_H

#include <stdio.h>

#include "listen/http.h"
#include "listen/served.h"

/* To be called while ptmem, process @ptmem, runs: its CPU time counts after its end, too. */
void metrics_note_cpu(struct served_table *t, uint32_t ptmem);

/*
 * For the server. @t: the processes to write. @ptmem: ptmem's pid; the cost of both is included.
 * The caller checks the stream for errors.
 */
void metrics_write(FILE *out, const struct served_table *t, uint32_t ptmem, bool is_openmetrics);

/* Builds the bodies of answers from what ptmem reported about its processes. */

/* The values of a profile that is subtracted from a later one (?seconds=). */
struct answer_base;

/* The current values of the process that @job asks for; NULL = there is none. */
struct answer_base *answer_base_new(struct served_table *t, const struct http_job *job);
void answer_base_free(struct answer_base *b); /* NULL is ignored */

/* Whether @job needs the history, not only totals. */
bool answer_needs_history(const struct http_job *job);
/* @base: subtracted; NULL = none. @ptmem: ptmem's pid. */
void answer_write(struct http_job *job, struct served_table *t, const struct answer_base *base,
		  uint32_t ptmem);

#endif
