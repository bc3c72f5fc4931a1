/*
 * Builds all answers in memory, so that their size is known and a slow client delays nothing. See
 * answer.h.
 */
#include "listen/answer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/gzip.h"
#include "base/log.h"
#include "base/text.h"
#include "listen/metrics.h"
#include "output/html_page.h"
#include "output/xml.h"
#include "recording/recording_json.h"
#include "recording/recording_pprof.h"

struct answer_base {
	uint32_t pid;
	uint64_t start_ns;
	/* indexed by LEAF_NUMBER, which leaves keep */
	VEC(struct pprof_value) value;
};

bool answer_needs_history(const struct http_job *job)
{
	return job->path != HTTP_METRICS && job->path != HTTP_HEALTH;
}

/* -- pprof -- */

static size_t number_of(const struct recording *r, size_t row)
{
	return recording_get(r, RECORDING_LEAVES, row, LEAF_NUMBER);
}

/* Writes what is in use now and all that was ever allocated. The caller frees it. */
static struct pprof_value *values_now(const struct recording *r)
{
	struct recording_view now, total;
	size_t intervals = recording_rows(r, RECORDING_TIMELINE);

	if (!intervals)
		return NULL;
	recording_view_of(&total, r, VIEW_TOTAL);
	recording_view_at(&now, r, (uint32_t)intervals - 1);
	struct pprof_value *value = recording_pprof_values(r, &now, &total);

	recording_view_deinit(&now);
	recording_view_deinit(&total);
	return value;
}

struct answer_base *answer_base_new(struct served_table *t, const struct http_job *job)
{
	struct served *s = served_find(t, job->pid);
	const struct recording *r = s ? served_recording(t, s) : NULL;
	_cleanup_free_ struct pprof_value *value = r ? values_now(r) : NULL;

	if (!value)
		return NULL;
	struct answer_base *b = xcalloc(1, sizeof(*b));

	b->pid = s->info.pid;
	b->start_ns = s->info.start_ns;
	for (size_t i = 0; i < recording_rows(r, RECORDING_LEAVES); i++) {
		while (b->value.count <= number_of(r, i))
			*vec_add(&b->value) = (struct pprof_value){0};
		b->value.data[number_of(r, i)] = value[i];
	}
	return b;
}

void answer_base_free(struct answer_base *b)
{
	if (!b)
		return;
	vec_deinit(&b->value);
	free(b);
}

static void subtract(struct pprof_value *value, const struct recording *r,
		     const struct answer_base *b)
{
	for (size_t i = 0; i < recording_rows(r, RECORDING_LEAVES); i++) {
		if (number_of(r, i) >= b->value.count)
			continue;
		for (size_t k = 0; k < PPROF_VALUES; k++)
			value[i].of[k] -= b->value.data[number_of(r, i)].of[k];
	}
}

static void write_pprof(FILE *out, const struct recording *r, const struct http_job *job,
			const struct answer_base *base)
{
	_cleanup_free_ struct pprof_value *value = values_now(r);

	if (!value)
		return;
	if (base)
		subtract(value, r, base);
	recording_pprof_write(out, r, value, job->path == HTTP_ALLOCS);
}

/* -- pages -- */

static char *make_json(const struct recording *r, const struct listen_process *info,
		       size_t *size_out)
{
	static const char *const states[] = {
		[LISTEN_RUNS] = "running", [LISTEN_LEAVES] = "leaving",
		[LISTEN_ENDED] = "ended", [LISTEN_LEFT] = "left"};
	_cleanup_free_ char *live = xasprintf(
		",\"live\":{\"url\":\"profile.json?pid=%u\",\"state\":\"%s\"}",
		info->pid, states[info->state]);
	char *json = NULL;
	FILE *memory = open_memstream(&json, size_out);

	CHECK(memory);
	recording_json_write(memory, r, live);
	CHECK(!fclose(memory));
	return json;
}

static void write_report(FILE *out, const struct recording *r, const struct listen_process *info)
{
	size_t size;
	_cleanup_free_ char *json = make_json(r, info, &size);

	html_page_write(out, json, size, true);
}

static void write_json(FILE *out, const struct recording *r, struct http_job *job,
		       const struct listen_process *info)
{
	size_t size;
	_cleanup_free_ char *json = make_json(r, info, &size), *packed = NULL;

	job->is_gzip = job->takes_gzip;
	if (job->is_gzip)
		size = gzip_pack(json, size, &packed);
	fwrite(packed ? packed : json, size, 1, out);
}

/* The index page, if there are several processes: links to their reports. */
static void write_list(FILE *out, const struct served_table *t)
{
	fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	      "<title>ptmem</title>\n</head>\n<body>\n<h1>Processes</h1>\n<ul>\n", out);
	for (size_t i = 0; i < t->list.count; i++) {
		const struct listen_process *p = &t->list.data[i].info;

		_cleanup_free_ char *clean = text_clean(p->command, strlen(p->command));

		fprintf(out, "<li><a href=\"?pid=%u\">%u ", p->pid, p->pid);
		xml_put_text(out, clean);
		fputs("</a></li>\n", out);
	}
	fputs("</ul>\n", out);
	if (t->left_out)
		fprintf(out, "<p>%u more are not served.</p>\n", t->left_out);
	fputs("</body>\n</html>\n", out);
}

/* -- the whole -- */

static const struct {
	const char *type, *file_name;
} contents[HTTP_PATHS] = {
	[HTTP_REPORT] = {"text/html; charset=utf-8", NULL},
	[HTTP_JSON] = {"application/json", NULL},
	[HTTP_RECORDING] = {"application/octet-stream", "ptmem.recording"},
	[HTTP_HEAP] = {"application/octet-stream", "heap"},
	[HTTP_ALLOCS] = {"application/octet-stream", "allocs"},
	[HTTP_METRICS] = {"text/plain; version=0.0.4; charset=utf-8", NULL},
};

static FILE *open_body(struct http_job *job)
{
	FILE *out = open_memstream(&job->body, &job->size);

	CHECK(out);
	job->status = 200;
	job->type = contents[job->path].type;
	job->file_name = contents[job->path].file_name;
	return out;
}

static void write_recording(struct http_job *job, const struct served_table *t, struct served *s,
			    const struct answer_base *base)
{
	const struct recording *r = served_recording(t, s);

	if (!r) {
		http_answer(job, 503, "there is nothing to see yet\n");
		return;
	}
	if (base && (base->pid != s->info.pid || base->start_ns != s->info.start_ns)) {
		http_answer(job, 503, "the process has ended meanwhile\n");
		return;
	}
	FILE *out = open_body(job);

	if (job->path == HTTP_REPORT)
		write_report(out, r, &s->info);
	else if (job->path == HTTP_JSON)
		write_json(out, r, job, &s->info);
	else
		write_pprof(out, r, job, base);
	CHECK(!fclose(out));
}

static void write_journal(struct http_job *job, const struct served *s)
{
	size_t size;
	char *data = served_copy(s, &size);

	if (!data) {
		http_answer(job, 503, "there is nothing to see yet\n");
		return;
	}
	fclose(open_body(job));
	free(job->body);
	job->body = data;
	job->size = size;
}

static void write_totals(struct http_job *job, const struct served_table *t, uint32_t ptmem)
{
	FILE *out = open_body(job);

	metrics_write(out, t, ptmem, job->takes_openmetrics);
	if (job->takes_openmetrics)
		job->type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
	CHECK(!fclose(out));
}

/* A supervisor must not end ptmem while it writes its files: this is no failure. */
static void write_health(struct http_job *job, const struct served_table *t)
{
	if (t->is_over)
		http_answer(job, 503, "ptmem has ended\n");
	else
		http_answer(job, 200, t->is_finishing ? "finishing\n" : "ok\n");
}

void answer_write(struct http_job *job, struct served_table *t, const struct answer_base *base,
		  uint32_t ptmem)
{
	struct served *s = served_find(t, job->pid);

	if (job->path == HTTP_HEALTH) {
		write_health(job, t);
	} else if (job->path == HTTP_METRICS) {
		write_totals(job, t, ptmem);
	} else if (!s) {
		http_answer(job, job->pid ? 404 : 503, job->pid ? "this process is not profiled\n" :
							       "no process is profiled now\n");
	} else if (job->path == HTTP_RECORDING) {
		write_journal(job, s);
	} else if (job->path == HTTP_REPORT && !job->pid && t->list.count > 1) {
		FILE *out = open_body(job);

		write_list(out, t);
		CHECK(!fclose(out));
	} else {
		write_recording(job, t, s, base);
	}
}
