/*
 * Builds all answers in memory, so that their size is known and a slow client delays nothing: the
 * families of /metrics, which are rows of a table; reports, recordings and pprof's profiles from
 * what ptmem sent about a process; the list of processes. See answer.h.
 */
#include "listen/answer.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cgroup.h"
#include "base/cleanup.h"
#include "base/gzip.h"
#include "base/json_write.h"
#include "base/log.h"
#include "base/proc.h"
#include "base/text.h"
#include "output/graph/graph_page.h"
#include "output/html_page.h"
#include "recording/graph_file.h"
#include "recording/recording_json.h"
#include "recording/recording_pprof.h"

enum unit { NUMBER, NANOSECONDS };

struct family {
	const char *name, *help;
	bool is_counter;
	enum unit unit;
	size_t offset; /* into struct listen_totals */
};

#define AT(field) offsetof(struct listen_totals, field)

static const struct family families[] = {
	{"ptmem_heap_live_bytes", "Bytes of the blocks in use; with samples, an estimate.",
	 false, NUMBER, AT(live_bytes)},
	{"ptmem_heap_live_blocks", "Blocks in use; with samples, an estimate.", false, NUMBER,
	 AT(live_blocks)},
	{"ptmem_heap_peak_bytes", "The maximum of the bytes in use; with samples, of estimates.",
	 false, NUMBER, AT(peak_bytes)},
	{"ptmem_heap_allocated_bytes", "Bytes that were allocated; exact with samples, too.",
	 true, NUMBER, AT(allocated_bytes)},
	{"ptmem_heap_allocations", "Blocks that were allocated; exact with samples, too.",
	 true, NUMBER, AT(allocations)},
	{"ptmem_heap_frees", "Blocks that were released; exact with samples, too.", true, NUMBER,
	 AT(frees)},
	{"ptmem_heap_failed_calls", "Calls that returned no memory.", true, NUMBER, AT(failed)},
	{"ptmem_heap_sample_interval_bytes",
	 "Mean distance of samples; 0 if every allocation counts.", false, NUMBER, AT(interval)},
	{"ptmem_stacks", "Call stacks that were walked.", true, NUMBER, AT(stacks)},
	{"ptmem_complete_stacks", "Those of them that are complete.", true, NUMBER,
	 AT(complete_stacks)},
	{"ptmem_stopped_seconds", "Time for which ptmem stopped all threads.", true, NANOSECONDS,
	 AT(stopped_ns)},
	{"ptmem_longest_stop_seconds", "The longest of these stops.", false, NANOSECONDS,
	 AT(longest_stop_ns)},
	{"ptmem_breakpoint_stops", "Stops of single threads at breakpoints.", true, NUMBER,
	 AT(trap_stops)},
	{"ptmem_breakpoint_seconds", "Time that ptmem worked at these.", true, NANOSECONDS,
	 AT(trap_ns)},
	{"ptmem_longest_breakpoint_seconds", "The most at one of them: its thread waited.", false,
	 NANOSECONDS, AT(longest_trap_ns)},
};

/* The name of a counter and its samples end in _total; in OpenMetrics only its samples do. */
static void put_head(FILE *out, const struct family *f, bool is_openmetrics)
{
	const char *end = f->is_counter && !is_openmetrics ? "_total" : "";

	fprintf(out, "# HELP %s%s %s\n# TYPE %s%s %s\n", f->name, end, f->help, f->name, end,
		f->is_counter ? "counter" : "gauge");
}

/* @text has room for @size bytes. */
static void put_label(FILE *out, const char *name, const char *text, size_t size)
{
	_cleanup_free_ char *clean = text_clean(text, strnlen(text, size));

	fprintf(out, ",%s=\"", name);
	for (const char *c = clean; *c; c++) {
		if (*c == '"' || *c == '\\')
			putc('\\', out);
		putc(*c, out);
	}
	putc('"', out);
}

static void put_labels(FILE *out, const struct served *s)
{
	fprintf(out, "{pid=\"%" PRIu32 "\"", s->info.pid);
	put_label(out, "command", s->info.command, sizeof(s->info.command));
	putc('}', out);
}

static void put_family(FILE *out, const struct served_table *t, const struct family *f,
		       bool is_openmetrics)
{
	put_head(out, f, is_openmetrics);
	for (size_t i = 0; i < t->list.count; i++) {
		const struct served *s = &t->list.data[i];
		uint64_t value;

		memcpy(&value, (const char *)&s->info.totals + f->offset, sizeof(value));
		fprintf(out, "%s%s", f->name, f->is_counter ? "_total" : "");
		put_labels(out, s);
		if (f->unit == NANOSECONDS)
			fprintf(out, " %.9f\n", (double)value / 1e9);
		else
			fprintf(out, " %" PRIu64 "\n", value);
	}
}

/* Bytes; 0 = unknown. */
static uint64_t resident(uint32_t pid)
{
	struct proc_statm m;

	return proc_statm_read((pid_t)pid, &m) == 0 ? m.resident : 0;
}

static void put_resident(FILE *out, const struct served_table *t, bool is_openmetrics)
{
	const struct family f = {"ptmem_resident_bytes", "Resident memory of the process.", false,
				 NUMBER, 0};

	put_head(out, &f, is_openmetrics);
	for (size_t i = 0; i < t->list.count; i++) {
		fputs(f.name, out);
		put_labels(out, &t->list.data[i]);
		fprintf(out, " %" PRIu64 "\n", resident(t->list.data[i].info.pid));
	}
}

/*
 * Where processes run that ptmem attached to: in a series of their own, so that the others do not
 * carry these labels.
 */
static void put_processes(FILE *out, const struct served_table *t, bool is_openmetrics)
{
	const struct family f = {"ptmem_process_info", "Where the process runs.", false, NUMBER, 0};
	bool has_head = false;

	for (size_t i = 0; i < t->list.count; i++) {
		const struct listen_process *p = &t->list.data[i].info;
		char container[CONTAINER_ID_SIZE], cgroup[sizeof(p->cgroup) + 1] = "";

		if (!p->is_attached)
			continue;
		if (!has_head)
			put_head(out, &f, is_openmetrics);
		has_head = true;
		memcpy(cgroup, p->cgroup, sizeof(p->cgroup));
		cgroup_container(cgroup, container);
		fprintf(out, "%s{pid=\"%" PRIu32 "\"", f.name, p->pid);
		put_label(out, "name", p->name, sizeof(p->name));
		put_label(out, "cgroup", cgroup, sizeof(cgroup));
		put_label(out, "container", container, sizeof(container));
		fputs("} 1\n", out);
	}
}

/* Amounts by label of processes that have labels. */
static void put_by_label(FILE *out, const struct served_table *t, const struct family *f,
			 bool is_openmetrics)
{
	bool has_head = false;

	for (size_t i = 0; i < t->list.count; i++) {
		const struct listen_process *p = &t->list.data[i].info;

		for (size_t k = 0; k < MIN(p->labels, (uint32_t)LISTEN_LABELS); k++) {
			const struct listen_label *l = &p->label[k];
			uint64_t value;

			if (!has_head)
				put_head(out, f, is_openmetrics);
			has_head = true;
			memcpy(&value, (const char *)l + f->offset, sizeof(value));
			fprintf(out, "%s%s{pid=\"%" PRIu32 "\"", f->name,
				f->is_counter ? "_total" : "", p->pid);
			put_label(out, "label", l->name, sizeof(l->name));
			put_label(out, "value", l->text, sizeof(l->text));
			fprintf(out, "} %" PRIu64 "\n", value);
		}
	}
}

static void put_all_by_label(FILE *out, const struct served_table *t, bool is_openmetrics)
{
	static const struct family by_label[] = {
		{"ptmem_label_live_bytes", "Bytes in use that were allocated under a label.",
		 false, NUMBER, offsetof(struct listen_label, live_bytes)},
		{"ptmem_label_allocated_bytes", "Bytes that were allocated under a label.", true,
		 NUMBER, offsetof(struct listen_label, allocated_bytes)},
	};

	for (size_t i = 0; i < ARRAY_SIZE(by_label); i++)
		put_by_label(out, t, &by_label[i], is_openmetrics);
}

/* CPU time of a process, in ticks; 0 if it is gone. */
static uint64_t cpu_ticks(uint32_t pid)
{
	_cleanup_fclose_ FILE *f = proc_open((pid_t)pid, "stat");
	char line[1024];
	uint64_t user = 0, system = 0;

	if (!f || !fgets(line, sizeof(line), f))
		return 0;
	const char *end = strrchr(line, ')'); /* after the name, which may contain any character */

	if (!end || sscanf(end + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNu64
				    " %" SCNu64, &user, &system) != 2)
		return 0;
	return user + system;
}

void metrics_note_cpu(struct served_table *t, uint32_t ptmem)
{
	uint64_t ticks = cpu_ticks(ptmem);

	t->ptmem_ticks = MAX(t->ptmem_ticks, ticks);
}

/* Named as other exporters name theirs. */
static void put_own(FILE *out, const struct served_table *t, uint32_t ptmem, bool is_openmetrics)
{
	const struct family cpu = {"process_cpu_seconds", "CPU time of ptmem and its server.",
				   true, NUMBER, 0};
	const struct family rss = {"process_resident_memory_bytes",
				   "Resident memory of ptmem and its server.", false, NUMBER, 0};
	const uint32_t server = (uint32_t)getpid();
	const struct family info = {"ptmem_build_info", "The version of ptmem.", false, NUMBER, 0};

	put_head(out, &cpu, is_openmetrics);
	fprintf(out, "%s_total %.2f\n", cpu.name,
		(double)(t->ptmem_ticks + cpu_ticks(server)) / (double)sysconf(_SC_CLK_TCK));
	put_head(out, &rss, is_openmetrics);
	fprintf(out, "%s %" PRIu64 "\n", rss.name, resident(ptmem) + resident(server));
	put_head(out, &info, is_openmetrics);
	fprintf(out, "%s{version=\"%s\"} 1\n", info.name, PTMEM_VERSION);
}

void metrics_write(FILE *out, const struct served_table *t, uint32_t ptmem, bool is_openmetrics)
{
	for (size_t i = 0; i < ARRAY_SIZE(families); i++)
		put_family(out, t, &families[i], is_openmetrics);
	put_resident(out, t, is_openmetrics);
	put_processes(out, t, is_openmetrics);
	put_all_by_label(out, t, is_openmetrics);
	put_own(out, t, ptmem, is_openmetrics);
	if (is_openmetrics)
		fputs("# EOF\n", out);
}

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
		",\"live\":{\"url\":\"profile.json?pid=%u\",\"state\":\"%s\",\"graph\":%u}",
		info->pid, states[info->state], info->graph_size ? info->graph : 0);
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

static void write_compressed(FILE *out, const char *json, size_t size, struct http_job *job)
{
	_cleanup_free_ char *packed = NULL;

	job->is_gzip = job->takes_gzip;
	if (job->is_gzip)
		size = gzip_pack(json, size, &packed);
	fwrite(packed ? packed : json, size, 1, out);
}

static void write_json(FILE *out, const struct recording *r, struct http_job *job,
		       const struct listen_process *info)
{
	size_t size;
	_cleanup_free_ char *json = make_json(r, info, &size);

	write_compressed(out, json, size, job);
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
	[HTTP_GRAPH] = {"application/json", NULL},
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

/* The last graph of @s. */
static void write_graph(struct http_job *job, const struct served_table *t, const struct served *s)
{
	_cleanup_free_ char *why = NULL, *json = NULL;
	size_t size;
	_cleanup_free_ char *data = served_graph(s, &size);
	struct graph_file *f;

	if (job->is_post && (t->is_over || t->is_finishing)) {
		http_answer(job, 503, "ptmem does not look at the process any more\n");
		return;
	}
	if (job->is_post && *t->why) {
		http_answer(job, 503, t->why);
		return;
	}
	if (!data || graph_file_read(data, size, &f, &why) != 0) {
		http_answer(job, 404, "no heap graph was made yet: POST makes one\n");
		return;
	}
	FILE *memory = open_memstream(&json, &size), *out = open_body(job);

	CHECK(memory);
	job->graph = s->graph_number;
	const struct graph_title title = graph_file_title(f);

	graph_page_write_json(&(struct json_writer){.out = memory}, NULL, &title, &f->graph);
	putc('\n', memory);
	CHECK(!fclose(memory));
	graph_file_free(f);
	write_compressed(out, json, size, job);
	CHECK(!fclose(out));
}

/* @s: of this process alone if @job is about one. */
static void write_totals(struct http_job *job, const struct served_table *t, struct served *s,
			 uint32_t ptmem)
{
	FILE *out = open_body(job);
	struct served_table one = *t;

	if (job->pid) {
		one.list.data = s;
		one.list.count = 1;
	}
	metrics_write(out, &one, ptmem, job->takes_openmetrics);
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
	} else if (job->path == HTTP_METRICS && (s || !job->pid)) {
		write_totals(job, t, s, ptmem);
	} else if (!s) {
		http_answer(job, job->pid ? 404 : 503, job->pid ? "this process is not profiled\n" :
							       "no process is profiled now\n");
	} else if (job->path == HTTP_RECORDING) {
		write_journal(job, s);
	} else if (job->path == HTTP_GRAPH) {
		write_graph(job, t, s);
	} else if (job->path == HTTP_REPORT && !job->pid && t->list.count > 1) {
		FILE *out = open_body(job);

		write_list(out, t);
		CHECK(!fclose(out));
	} else {
		write_recording(job, t, s, base);
	}
}
