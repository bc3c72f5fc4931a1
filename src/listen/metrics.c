/* Each row of the table is a family of metrics, with one sample for each process. */
#include "listen/metrics.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "base/cgroup.h"
#include "base/cleanup.h"
#include "base/proc.h"
#include "base/text.h"

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
	put_own(out, t, ptmem, is_openmetrics);
	if (is_openmetrics)
		fputs("# EOF\n", out);
}
