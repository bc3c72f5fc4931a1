/*
 * Samples the memory of processes: parses the lines of /proc/PID/status that have it, writes a line
 * for each process at each interval, and follows which processes there are, as an observer of the
 * run's sessions or, without tracing, until they end.
 */
#include "live/rss_poll.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/log.h"
#include "base/proc.h"
#include "base/types.h"
#include "output/outfile.h"
#include "session/observer.h"
#include "session/out.h"
#include "session/run.h"
#include "session/session.h"
#include "tracee/control/target.h"

/*
 * Parses the sampled values of /proc/PID/status. This is done often, so only up to the last line
 * needed.
 */

const char *const status_field_names[STATUS_FIELDS] = {
	"VmPeak", "VmSize", "VmHWM", "VmRSS",  "VmLck",	  "VmPin",   "VmData",	 "VmStk",
	"VmExe",  "VmLib",  "VmPTE", "VmSwap", "RssAnon", "RssFile", "RssShmem", "Threads",
	"Monotonic", "Realtime",
};

enum status_field status_field_find(const char *name, size_t size)
{
	if (size < 3)
		return STATUS_FIELDS;
	for (enum status_field i = 0; i < STATUS_FIELDS; i++) {
		const char *field = status_field_names[i];
		/*
		 * the third letter distinguishes most of them without a call: this runs at each
		 * sample
		 */
		if (field[2] == name[2] && strnlen(field, size + 1) == size &&
		    memcmp(field, name, size) == 0)
			return i;
	}
	return STATUS_FIELDS;
}

void status_parse(const char *text, size_t size, uint32_t wanted, struct status_values *out)
{
	struct proc_line line;
	memset(out->value, 0xff, sizeof(out->value));
	out->state = 0;
	for (const char *end = text + size; wanted && proc_next_line(&text, end, &line);) {
		if (!strchr("VRTS", *line.key)) /* most lines are not needed */
			continue;
		enum status_field field = status_field_find(line.key, line.key_size);
		if (field < STATUS_MONOTONIC) {
			uint64_t value;
			if (proc_parse_number(line.value, line.end, 10, &value))
				out->value[field] = value;
			wanted &= ~STATUS_BIT(field);
		} else if (line.key_size == 5 && memcmp(line.key, "State", 5) == 0) {
			out->state = line.value < line.end ? *line.value : 0;
		}
	}
}

/*
 * The memory of processes over time, from /proc/PID/status (--sample): one line for each process
 * and period, to standard error or a file.
 *
 *	stderr  tab-separated values; first the pid if children are followed; on a terminal
 *	        after a header line
 *	file    a header line; then time in seconds since the start, pid, values
 *
 * Sizes are the program's: memory that ptmem mapped in it is subtracted from VmSize and VmPeak.
 * A peak is the larger of ptmem's own maximum and the kernel's, whose counters are updated in
 * batches and may go back. A process is identified by a descriptor of its file in /proc, which
 * never refers to another process.
 */

/*
 * Lines are buffered. A file is written when the buffer is full or a second has passed, standard
 * error at each line.
 */

#define STATUS_SIZE 8192 /* size of the file: 1.5 KB, more with many groups and CPUs */
#define BUFFER_SIZE 8192
#define LINE_MAX_SIZE 512
#define FLUSH_NS 1000000000u
#define DEFAULT_FIELDS "VmSize,VmPeak,VmRSS,VmHWM"

struct watched {
	pid_t pid;
	int fd;                 /* of its status */
	uint64_t peak, hwm;     /* maximum seen for this program, KiB */
	uint64_t vm_peak, vm_exe; /* the kernel's last values; vm_exe STATUS_NONE: none yet */
	bool is_early;          /* not added yet: it has peaks, but no samples */
	bool has_new_image;     /* an exec was detected here before it was added */
};

struct rss_poll {
	struct run *run;
	struct observer observer;
	uint64_t period_ns, start_ns, next_ns, flushed_ns;
	int fd;
	int error;              /* first -errno */
	bool is_file, with_pids; /* a file always has pids */
	enum status_field field[STATUS_FIELDS];
	size_t field_count;
	uint32_t wanted;        /* STATUS_BITs of the fields, and of those needed for peaks */
	VEC(struct watched) watched;
	size_t used;            /* bytes of buffer */
	char buffer[BUFFER_SIZE];
};

/* -- lines -- */

static void flush(struct rss_poll *s)
{
	for (size_t done = 0; done < s->used && !s->error;) {
		ssize_t n = write(s->fd, s->buffer + done, s->used - done);
		if (n >= 0)
			done += (size_t)n;
		else if (errno != EINTR)
			s->error = -errno;
	}
	s->used = 0;
}

static void put_char(struct rss_poll *s, char c)
{
	s->buffer[s->used++] = c;
}

static void put_number(struct rss_poll *s, uint64_t n)
{
	char digits[24], *p = digits + sizeof(digits);
	do {
		*--p = (char)('0' + n % 10);
	} while (n /= 10);
	memcpy(s->buffer + s->used, p, (size_t)(digits + sizeof(digits) - p));
	s->used += (size_t)(digits + sizeof(digits) - p);
}

static void put_text(struct rss_poll *s, const char *text)
{
	size_t size = strlen(text);
	memcpy(s->buffer + s->used, text, size);
	s->used += size;
}

/* Seconds with six decimals. */
static void put_time(struct rss_poll *s, uint64_t ns)
{
	put_number(s, ns / 1000000000u);
	put_char(s, '.');
	for (uint64_t unit = 100000000u; unit >= 1000; unit /= 10)
		put_char(s, (char)('0' + ns / unit % 10));
}

static void end_line(struct rss_poll *s, uint64_t now_ns)
{
	put_char(s, '\n');
	if (!s->is_file || s->used > BUFFER_SIZE - LINE_MAX_SIZE ||
	    now_ns - s->flushed_ns >= FLUSH_NS) {
		flush(s);
		s->flushed_ns = now_ns;
	}
}

static void put_line(struct rss_poll *s, const struct watched *w, struct status_values *v)
{
	struct timespec wall;
	uint64_t now = clock_now_ns();
	clock_gettime(CLOCK_REALTIME, &wall);
	v->value[STATUS_MONOTONIC] = now;
	v->value[STATUS_REALTIME] = (uint64_t)wall.tv_sec * 1000000000u + (uint64_t)wall.tv_nsec;
	if (s->is_file) {
		put_time(s, now - s->start_ns);
		put_char(s, '\t');
	}
	if (s->with_pids) {
		put_number(s, (uint64_t)w->pid);
		put_char(s, '\t');
	}
	for (size_t i = 0; i < s->field_count; i++) {
		uint64_t value = v->value[s->field[i]];
		if (i > 0)
			put_char(s, '\t');
		if (value == STATUS_NONE)
			put_char(s, '-');
		else
			put_number(s, value);
	}
	end_line(s, now);
}

static void put_header(struct rss_poll *s)
{
	if (s->is_file)
		put_text(s, "time\t");
	if (s->with_pids)
		put_text(s, "pid\t");
	for (size_t i = 0; i < s->field_count; i++) {
		if (i > 0)
			put_char(s, '\t');
		put_text(s, status_field_names[s->field[i]]);
	}
	put_char(s, '\n');
	flush(s);
}

/* -- processes -- */

static struct watched *find(struct rss_poll *s, pid_t pid)
{
	for (size_t i = 0; i < s->watched.count; i++) {
		if (s->watched.data[i].pid == pid)
			return &s->watched.data[i];
	}
	return NULL;
}

static struct watched *open_status(struct rss_poll *s, pid_t pid)
{
	char name[64];
	snprintf(name, sizeof(name), "/proc/%d/status", (int)pid);
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	struct watched *w = vec_add(&s->watched);
	*w = (struct watched){.pid = pid, .fd = fd, .vm_exe = STATUS_NONE};
	return w;
}

/*
 * @pid runs a program from its start (also after exec: its peaks start again), or is watched from
 * now on.
 */
static void watch(struct rss_poll *s, pid_t pid)
{
	struct watched *w = find(s, pid);
	if (!w)
		open_status(s, pid);
	else if (w->is_early || w->has_new_image)
		w->is_early = w->has_new_image = false;
	else
		*w = (struct watched){.pid = pid, .fd = w->fd, .vm_exe = STATUS_NONE};
}

/* No more of @pid. */
static void unwatch(struct rss_poll *s, pid_t pid)
{
	struct watched *w = find(s, pid);
	if (!w)
		return;
	close(w->fd);
	vec_take_swap(&s->watched, (size_t)(w - s->watched.data));
}

/* -- samples -- */

/* Reads the file at @fd from its start, which makes the kernel generate it again. */
static bool read_values(int fd, uint32_t wanted, struct status_values *out)
{
	char text[STATUS_SIZE];
	size_t size = 0;
	while (size < sizeof(text)) {
		ssize_t n = pread(fd, text + size, sizeof(text) - size, (off_t)size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return false;
		if (n == 0)
			break;
		size += (size_t)n;
		if (text[size - 1] == '\n') /* the whole file: up to a page is read in one piece */
			break;
	}
	status_parse(text, size, wanted, out);
	return out->value[STATUS_VMRSS] != STATUS_NONE;
}

static bool read_thread(pid_t pid, pid_t tid, uint32_t wanted, struct status_values *out)
{
	char name[96];
	snprintf(name, sizeof(name), "/proc/%d/task/%d/status", (int)pid, (int)tid);
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	bool is_good = read_values(fd, wanted, out);
	close(fd);
	return is_good;
}

/* The leader or the whole process has ended: another thread may still have the memory. */
static bool read_any_thread(const struct watched *w, uint32_t wanted, struct status_values *out)
{
	DIR *dir = proc_open_threads(w->pid);
	bool is_good = false;
	for (pid_t tid; dir && !is_good && (tid = proc_next_thread(dir));)
		is_good = tid != w->pid && read_thread(w->pid, tid, wanted, out);
	if (dir)
		closedir(dir);
	return is_good;
}

/*
 * The kernel's VmPeak never falls, and the size of the text never changes, unless another program
 * was executed. For a process that is not traced this is the only indication.
 */
static void notice_exec(struct watched *w, const struct status_values *v)
{
	if (w->vm_exe != STATUS_NONE &&
	    (v->value[STATUS_VMPEAK] < w->vm_peak || v->value[STATUS_VMEXE] != w->vm_exe)) {
		w->peak = w->hwm = w->vm_peak = 0;
		w->has_new_image = true;
	}
	w->vm_exe = v->value[STATUS_VMEXE];
}

/*
 * Subtracts ptmem's mappings from the sizes in @v. The kernel's peak includes them; if it has
 * risen, it has done so since the mappings had their present size (on_will_map).
 */
static void take_peaks(struct rss_poll *s, struct watched *w, struct status_values *v)
{
	uint64_t *size = &v->value[STATUS_VMSIZE], *peak = &v->value[STATUS_VMPEAK];
	notice_exec(w, v);
	const struct target *target = s->run->target;
	uint64_t excluded =
		target && !w->has_new_image ? target_mapped_bytes(target, w->pid) / 1024 : 0;
	if (*size != STATUS_NONE) {
		*size -= MIN(*size, excluded);
		w->peak = MAX(w->peak, *size);
	}
	if (*peak != STATUS_NONE && *peak > w->vm_peak) {
		w->peak = MAX(w->peak, *peak - MIN(*peak, excluded));
		w->vm_peak = *peak;
	}
	/* the kernel updates its peak late, and may lose one */
	w->hwm = MAX(w->hwm, v->value[STATUS_VMRSS]);
	if (v->value[STATUS_VMHWM] != STATUS_NONE)
		w->hwm = MAX(w->hwm, v->value[STATUS_VMHWM]);
	*peak = w->peak;
	v->value[STATUS_VMHWM] = w->hwm;
}

static void sample(struct rss_poll *s, struct watched *w, pid_t tid)
{
	struct status_values v = {0};
	bool is_good = !w->is_early && read_values(w->fd, s->wanted, &v);
	if (!is_good &&
	    v.state == 'Z') /* state unset: the process is gone, and its pid may be reused */
		is_good = tid ? read_thread(w->pid, tid, s->wanted, &v) :
				read_any_thread(w, s->wanted, &v);
	if (!is_good)
		return;
	take_peaks(s, w, &v);
	put_line(s, w, &v);
}

/* -- what the run reports -- */

static void on_start(void *ctx, const struct session *s)
{
	watch(ctx, (pid_t)s->process.pid);
}

static void on_fork(void *ctx, const struct session *child)
{
	struct rss_poll *s = ctx;

	if (s->run->options->children.trace)
		watch(s, (pid_t)child->process.pid);
}

/* A program that is executed and not followed remains the same process. */
static void on_end(void *ctx, const struct session *session, bool is_exec)
{
	struct rss_poll *s = ctx;

	if (!is_exec || s->run->options->children.trace)
		unwatch(s, (pid_t)session->process.pid);
}

/* One line for @pid now, if its memory still exists. @tid: a living thread of it, 0 = any. */
static void on_process_exit(void *ctx, pid_t pid, pid_t tid)
{
	struct rss_poll *s = ctx;
	struct watched *w = find(s, pid);

	if (w)
		sample(s, w, tid);
}

/*
 * ptmem is about to map memory in @pid, which may not have been added yet: peaks so far exclude
 * it.
 */
static void on_will_map(void *ctx, pid_t pid)
{
	struct rss_poll *s = ctx;
	struct watched *w = find(s, pid);
	struct status_values v = {0};

	if (!w && (w = open_status(s, pid)))
		w->is_early = true;
	if (w && read_values(w->fd, s->wanted, &v))
		take_peaks(s, w, &v);
}

/* Samples all processes if it is time; returns the next time (CLOCK_MONOTONIC, ns). */
static uint64_t on_tick(void *ctx, uint64_t now_ns)
{
	struct rss_poll *s = ctx;

	if (now_ns < s->next_ns)
		return s->next_ns;
	for (size_t i = 0; i < s->watched.count; i++)
		sample(s, &s->watched.data[i], 0);
	/* the next point of the original grid, even if this sample was late */
	s->next_ns += ((now_ns - s->next_ns) / s->period_ns + 1) * s->period_ns;
	return s->next_ns;
}

/* -- without tracing -- */

static bool has_ended(const struct pollfd *p)
{
	return p->fd < 0;
}

/* Stops polling those of @polled that ended. Returns how many are left. */
static size_t drop_ended(struct rss_poll *s, const pid_t *pids, struct pollfd *polled, size_t count)
{
	size_t left = 0;
	for (size_t i = 0; i < count; i++) {
		if (!has_ended(&polled[i]) && polled[i].revents) {
			unwatch(s, pids[i]);
			close(polled[i].fd);
			polled[i].fd = -1;
		}
		left += !has_ended(&polled[i]);
	}
	return left;
}

void rss_poll_watch(struct rss_poll *s, const pid_t *pids, size_t count, bool (*leave)(void *ctx),
		    void *ctx)
{
	if (!s)
		return;
	struct pollfd *polled = xcalloc(count, sizeof(*polled));
	for (size_t i = 0; i < count; i++) {
		polled[i] = (struct pollfd){.fd = (int)syscall(SYS_pidfd_open, pids[i], 0),
					    .events = POLLIN};
		if (polled[i].fd >= 0)
			watch(s, pids[i]);
	}
	while (!leave(ctx) && drop_ended(s, pids, polled, count) > 0) {
		uint64_t now = clock_now_ns(), next = on_tick(s, now);
		now = clock_now_ns();
		uint64_t wait = next > now ? next - now : 0;
		const struct timespec ts = {(time_t)(wait / 1000000000u),
					    (long)(wait % 1000000000u)};
		for (size_t i = 0; i < count; i++)
			polled[i].revents = 0;
		ppoll(polled, count, &ts, NULL);
	}
	for (size_t i = 0; i < count; i++) {
		unwatch(s, pids[i]);
		if (!has_ended(&polled[i]))
			close(polled[i].fd);
	}
	free(polled);
}

/* -- life -- */

/* Parses comma-separated names; *why_out: the first unknown one. */
static int parse_fields(struct rss_poll *s, const char *text, char **why_out)
{
	for (const char *p = text; *p;) {
		size_t size = strcspn(p, ",");
		enum status_field f = status_field_find(p, size);
		if (f == STATUS_FIELDS || s->field_count == STATUS_FIELDS) {
			*why_out = xasprintf("%.*s", (int)size, p);
			return -EINVAL;
		}
		s->field[s->field_count++] = f;
		s->wanted |= STATUS_BIT(f) & STATUS_ALL;
		p += size + (p[size] == ',');
	}
	return 0;
}

/* 0, or -errno after a message. */
static int open_file(struct rss_poll *s, const struct options_samples *o)
{
	const char *fields = o->fields	? o->fields :
			     s->is_file ? DEFAULT_FIELDS ",Monotonic,Realtime" :
					  DEFAULT_FIELDS;
	_cleanup_free_ char *why = NULL;
	int rc = parse_fields(s, fields, &why);

	if (rc != 0) {
		log_error("--sample-fields: /proc/PID/status has no '%s' that can be sampled", why);
		return rc;
	}
	s->fd = !s->is_file ? STDERR_FILENO :
			      stream_open(o->out, O_WRONLY | O_CREAT | O_TRUNC, 0666);
	if (s->fd < 0) {
		rc = s->fd;
		outfile_log_error(o->out, rc);
		return rc;
	}
	return 0;
}

int rss_poll_open(struct run *run, struct rss_poll **out)
{
	const struct options *o = run->options;

	*out = NULL;
	if (!o->samples.ms)
		return 0;
	struct rss_poll *s = xcalloc(1, sizeof(*s));

	s->run = run;
	s->period_ns = o->samples.ms * 1000000ull;
	s->is_file = o->samples.out != NULL;
	s->with_pids = s->is_file || o->children.trace || options_attach_many(o);
	s->wanted = STATUS_BIT(STATUS_VMPEAK) | STATUS_BIT(STATUS_VMSIZE) |
		    STATUS_BIT(STATUS_VMHWM) | STATUS_BIT(STATUS_VMRSS) | STATUS_BIT(STATUS_VMEXE);
	int rc = open_file(s, &o->samples);

	if (rc != 0) {
		free(s);
		return rc;
	}
	s->start_ns = s->next_ns = s->flushed_ns = clock_now_ns();
	if (s->is_file || isatty(s->fd))
		put_header(s);
	s->observer = (struct observer){
		.ctx = s,
		.session_started = on_start,
		.session_forked = on_fork,
		.session_ended = on_end,
		.process_exit = on_process_exit,
		.will_map = on_will_map,
		.tick = on_tick,
	};
	observers_add(run, &s->observer);
	*out = s;
	return 0;
}

bool rss_poll_close(struct rss_poll *s)
{
	if (!s)
		return true;
	const char *path = s->run->options->samples.out;

	while (s->watched.count > 0)
		unwatch(s, s->watched.data[0].pid);
	flush(s);
	if (s->is_file && close(s->fd) != 0 && !s->error)
		s->error = -errno;
	int rc = s->error;

	if (rc != 0 && path && stream_cut_line(path) > 0)
		log_error("cannot write %s: %s; it has the samples until then", path,
			  strerror(-rc));
	else if (rc != 0)
		log_error("cannot write %s: %s", path ? path : "samples", strerror(-rc));
	else if (path && !file_name_is_shared(path))
		log_info("written to %s; draw it with: ptmem-report --png=OUT.png %s", path, path);
	observers_remove(s->run, &s->observer);
	vec_deinit(&s->watched);
	free(s);
	return rc == 0;
}
