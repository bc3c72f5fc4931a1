/* See replay_run.h. */
#include "report/whatif/replay_run.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/amount.h"
#include "base/cleanup.h"
#include "base/files.h"
#include "base/log.h"
#include "base/text.h"
#include "inspect/heap_map.h"

#define SAID_MAX 4096 /* of what the replay prints */

/* -- the process -- */

/* Beside ptmem-report, or where make install puts it. The caller frees it; NULL: not found. */
static char *find_program(void)
{
	return program_beside("ptmem-replay") ?: program_beside("../libexec/ptmem/ptmem-replay");
}

typedef VEC(char *) strings;

/* The environment of the replay: nothing else of ours, so that malloc has only what is asked. */
static void make_environment(const struct allocator_spec *spec, const char *library, strings *out)
{
	const char *path = getenv("LD_LIBRARY_PATH");
	_cleanup_free_ char *settings = xstrdup(spec->setting ?: "");
	char *rest = settings;

	if (path)
		*vec_add(out) = xasprintf("LD_LIBRARY_PATH=%s", path);
	if (*library)
		*vec_add(out) = xasprintf("LD_PRELOAD=%s", library);
	while (rest && *rest)
		*vec_add(out) = xstrdup(strsep(&rest, "\n"));
	*vec_add(out) = NULL;
}

struct replay_files {
	const char *program;
	int plan, result, said; /* plan: -1 = none, only the library is to be named */
};

/* If memory becomes short the kernel is to end this process first. */
static void offer_to_kernel(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	ssize_t n = write(fd, "1000", 4);

	(void)n;
	close(fd);
}

ATTR_NORETURN static void become_replay(const struct replay_files *f, pid_t parent,
					char *const *environment)
{
	char *const argv[] = {"ptmem-replay", f->plan < 0 ? REPLAY_PROBE : NULL, NULL};
	int fd[] = {f->plan, f->result, f->said};

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(127);
	offer_to_kernel();
	personality(ADDR_NO_RANDOMIZE); /* jemalloc's random numbers begin with addresses */
	/* first above all numbers that they get */
	for (size_t i = 0; i < ARRAY_SIZE(fd); i++)
		if (fd[i] >= 0 && (fd[i] = fcntl(fd[i], F_DUPFD_CLOEXEC, 16)) < 0)
			_exit(127);
	if ((fd[0] >= 0 && dup2(fd[0], REPLAY_PLAN) < 0) || dup2(fd[1], REPLAY_RESULT) < 0 ||
	    dup2(fd[2], STDOUT_FILENO) < 0 || dup2(fd[2], STDERR_FILENO) < 0)
		_exit(127);
	execve(f->program, argv, environment);
	_exit(127);
}

/* The status of wait(), or -errno. */
static int run_process(const struct replay_files *f, char *const *environment)
{
	pid_t parent = getpid(), pid = fork();
	int status;

	if (pid < 0)
		return -errno;
	if (pid == 0)
		become_replay(f, parent, environment);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return status;
}

static char *read_said(int fd)
{
	char text[SAID_MAX];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	text[MAX(n, 0)] = '\0';
	return xstrdup(text);
}

/* -- the answer -- */

/* A block's part of a page. */
struct page_part {
	uint64_t page;
	uint32_t block, bytes;
};

typedef VEC(struct page_part) page_parts;

static void add_part(page_parts *to, uint64_t start, uint64_t end, uint32_t block)
{
	*vec_add(to) = (struct page_part){start / PAGE_SIZE_MIN, block, (uint32_t)(end - start)};
}

/* Pages that a block fills are left out. */
static void add_parts(page_parts *to, const struct replay_block *b, uint32_t block)
{
	uint64_t end = b->address + MAX(b->size, 1u);
	uint64_t first_end = (b->address / PAGE_SIZE_MIN + 1) * PAGE_SIZE_MIN;
	uint64_t last = end / PAGE_SIZE_MIN * PAGE_SIZE_MIN;

	add_part(to, b->address, MIN(end, first_end), block);
	if (end > first_end && end > last)
		add_part(to, MAX(last, first_end), end, block);
}

static int by_page(const void *a, const void *b)
{
	const struct page_part *x = a, *y = b;

	return x->page < y->page ? -1 : x->page > y->page;
}

static int by_pages(const void *a, const void *b)
{
	const struct pinning_site *x = a, *y = b;

	return x->pages != y->pages ? (x->pages < y->pages ? 1 : -1) :
				      (x->site < y->site ? -1 : x->site > y->site);
}

struct pin_counts {
	const struct replay_plan *plan;
	struct pinning_site *by_site;
	uint64_t *last_page; /* by site: which is counted */
};

/* The blocks on one page, which is nearly empty. */
static void count_page(const struct pin_counts *c, const struct page_part *part, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint32_t site = c->plan->site[part[i].block];
		struct pinning_site *s = &c->by_site[site];

		s->pages += c->last_page[site] != part[i].page;
		c->last_page[site] = part[i].page;
		s->blocks++;
		s->bytes += part[i].bytes;
	}
}

static void count_pages(const struct pin_counts *c, page_parts *parts, struct replay_outcome *out)
{
	vec_sort(parts, by_page);
	for (size_t i = 0, k; i < parts->count; i = k) {
		uint64_t bytes = 0;

		for (k = i; k < parts->count && parts->data[k].page == parts->data[i].page; k++)
			bytes += parts->data[k].bytes;
		if (bytes > PINNED_FEW)
			continue;
		out->pages++;
		count_page(c, &parts->data[i], k - i);
	}
}

static void find_pins(const struct replay_plan *plan, struct replay_result *result,
		      struct replay_outcome *out)
{
	const struct replay_block *block = replay_blocks(result, plan->head.samples);
	size_t sites = MAX(plan->site_count, 1);
	_cleanup_free_ struct pinning_site *by_site = xcalloc(sites, sizeof(*by_site));
	_cleanup_free_ uint64_t *last_page = xcalloc(sites, sizeof(*last_page));
	const struct pin_counts counts = {plan, by_site, last_page};
	page_parts parts = {0};

	for (uint64_t i = 0; plan->site_count && i < plan->head.blocks; i++)
		if (block[i].address)
			add_parts(&parts, &block[i], (uint32_t)i);
	count_pages(&counts, &parts, out);
	vec_deinit(&parts);
	for (uint32_t i = 0; i < plan->site_count; i++) {
		by_site[i].site = i;
		if (by_site[i].pages)
			*vec_add(&out->pins) = by_site[i];
	}
	vec_sort(&out->pins, by_pages);
}

static void read_result(const struct replay_plan *plan, struct replay_result *result,
			struct replay_outcome *out)
{
	const struct replay_sample *sample = replay_samples(result);

	out->library = xstrndup(result->library, sizeof(result->library));
	out->cpu_ns = result->cpu_ns;
	out->failed = result->failed;
	out->resident = xcalloc(MAX(plan->samples.count, 1), sizeof(*out->resident));
	for (size_t i = 0; i < plan->samples.count; i++) {
		out->end = out->resident[i] = sample[i].resident;
		if (out->end <= out->peak)
			continue;
		out->peak = out->end;
		out->live_at_peak = plan->samples.data[i].live_bytes;
	}
	out->peak = MAX(out->peak, result->high_water);
	find_pins(plan, result, out);
}

static size_t result_size(const struct replay_plan *plan)
{
	return plan ? replay_result_size(plan->head.samples, plan->head.blocks) :
		      sizeof(struct replay_result);
}

/* Why a replay that has ended with @status has no result. */
static char *describe_end(const struct replay_plan *plan, int status, const char *said)
{
	_cleanup_free_ char *visible = log_visible(said);
	const char *words = visible && *visible ? visible : "it says nothing";
	char name[SIGNAL_NAME_SIZE], bytes[AMOUNT_SIZE];

	if (WIFEXITED(status) && WEXITSTATUS(status) == REPLAY_TOO_LARGE)
		return xasprintf("the heap needs more than %s, which are what is available here: "
				 "run this on a machine with more memory, or leave this allocator "
				 "out", amount_bytes((double)plan->limit, bytes));
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
		return xstrdup("the replay was ended by SIGKILL, which the kernel sends if memory "
			       "is short");
	if (WIFSIGNALED(status))
		return xasprintf("the replay was ended by %s: %s",
				 signal_name(WTERMSIG(status), name), words);
	return xasprintf("the replay ended with status %d: %s", WEXITSTATUS(status), words);
}

/* What one process is to do. */
struct replay_job {
	const struct allocator_spec *spec;
	const char *library;
	const struct replay_plan *plan; /* NULL: only the library is to be named */
	uint64_t clock;                 /* replay_result.clock */
};

/* Maps the result of a process that has done @job: NULL with @why_out. The caller unmaps it. */
static struct replay_result *run_job(const struct replay_job *job, char **said_out, char **why_out)
{
	const struct replay_plan *plan = job->plan;
	_cleanup_free_ char *program = find_program();
	_cleanup_close_ int file = memfd_create("ptmem-replay", MFD_CLOEXEC);
	_cleanup_close_ int said = memfd_create("ptmem-replay-said", MFD_CLOEXEC);
	const struct replay_result start = {.limit = plan ? plan->limit : 0, .clock = job->clock};
	size_t size = result_size(plan);
	strings environment = {0};

	if (!program) {
		*why_out = xstrdup("ptmem-replay is missing: it belongs beside ptmem-report, or "
				   "into ../libexec/ptmem, where make install puts it");
		return NULL;
	}
	if (file < 0 || said < 0 || ftruncate(file, (off_t)size) != 0 ||
	    pwrite(file, &start, sizeof(start), 0) != sizeof(start)) {
		*why_out = xstrdup(strerror(errno));
		return NULL;
	}
	make_environment(job->spec, job->library, &environment);
	int status = run_process(&(struct replay_files){program, plan ? plan->fd : -1, file, said},
				 environment.data);

	vec_release(&environment, e, free(*e));
	*said_out = read_said(said);
	struct replay_result *result =
		status < 0 ? MAP_FAILED : mmap(NULL, size, PROT_READ, MAP_SHARED, file, 0);

	if (result == MAP_FAILED) {
		*why_out = xstrdup(strerror(status < 0 ? -status : errno));
		return NULL;
	}
	if (result->is_done)
		return result;
	*why_out = describe_end(plan, status, *said_out);
	munmap(result, size);
	return NULL;
}

const char *replay_find(const struct allocator_spec *spec, char **why_out)
{
	const char *library;

	for (size_t i = 0; (library = allocator_spec_library(spec, i)); i++) {
		_cleanup_free_ char *said = NULL;
		const struct replay_job probe = {.spec = spec, .library = library};
		struct replay_result *r = run_job(&probe, &said, why_out);

		if (!r)
			return NULL;
		bool is_found = allocator_spec_is(spec, r->library);

		munmap(r, result_size(NULL));
		if (is_found)
			return library;
	}
	*why_out = allocator_spec_missing(spec);
	return NULL;
}

static bool run_once(const struct replay_job *job, struct replay_outcome *out, char **why_out)
{
	*out = (struct replay_outcome){.spec = job->spec};
	struct replay_result *result = run_job(job, &out->said, why_out);

	if (!result) {
		free(out->said);
		return false;
	}
	read_result(job->plan, result, out);
	munmap(result, result_size(job->plan));
	out->peak_range = (struct replay_range){out->peak, out->peak};
	out->end_range = (struct replay_range){out->end, out->end};
	return true;
}

static int by_end(const void *a, const void *b)
{
	const struct replay_outcome *x = a, *y = b;

	if (x->end != y->end)
		return x->end < y->end ? -1 : 1;
	return (x->peak > y->peak) - (x->peak < y->peak);
}

static void widen(struct replay_range *to, const struct replay_range *more)
{
	to->least = MIN(to->least, more->least);
	to->most = MAX(to->most, more->most);
}

/*
 * An allocator with timers is asked three times, with clocks that are a quarter off: by a few ms
 * the same blocks are on other pages. The answer is the one in the middle.
 */
bool replay_run(const struct replay_plan *plan, const struct allocator_spec *spec,
		const char *library, struct replay_outcome *out, char **why_out)
{
	static const uint64_t clock[] = {REPLAY_CLOCK, REPLAY_CLOCK * 3 / 4, REPLAY_CLOCK * 4 / 3};
	struct replay_outcome found[ARRAY_SIZE(clock)];
	size_t count = allocator_spec_has_timers(spec) ? ARRAY_SIZE(clock) : 1, done = 0;

	while (done < count && run_once(&(struct replay_job){spec, library, plan, clock[done]},
					&found[done], why_out))
		done++;
	if (done == count)
		qsort(found, count, sizeof(found[0]), by_end);
	for (size_t i = 0; i < done; i++) {
		if (done == count) {
			widen(&found[count / 2].peak_range, &found[i].peak_range);
			widen(&found[count / 2].end_range, &found[i].end_range);
		}
		if (done < count || i != count / 2)
			replay_outcome_deinit(&found[i]);
	}
	if (done == count)
		*out = found[count / 2];
	return done == count;
}

void replay_outcome_deinit(struct replay_outcome *o)
{
	free(o->library);
	free(o->said);
	free(o->resident);
	vec_deinit(&o->pins);
}
