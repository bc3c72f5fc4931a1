/*
 * The perf events of faults.h: opening, the rings, their records.
 *
 * A ring belongs to the first event opened on its CPU; later ones write into it
 * (PERF_EVENT_IOC_SET_OUTPUT). The loop sleeps in faults_wait until a ring fills or SIGCHLD
 * arrives. (A signal from the ring would arrive at every record.)
 */
#include "tracee/control/faults.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "tracee/control/control.h"
#include "tracee/control/target.h"
#include "tracee/os/own_settings.h"
#include "tracee/pads/ring.h"
#include "tracee/state/heap_event.h"
#include "tracee/state/space.h"
#include "tracee/state/target_state.h"
#include "tracee/state/thread.h"

/*
 * Stack bytes copied at each fault; deeper frames are lost. A record is at most UINT16_MAX bytes,
 * so the kernel limits the largest copy to the rest of the record. Every record takes the full
 * size, whatever the depth of the stack: if little memory may be pinned, copies are small enough
 * for a ring to hold RECORDS_WANTED. (Of 100,000 faults in a row on a machine with ten processes
 * for each CPU, rings of 4 MiB lost 13 % with copies of 4 KiB, 7 % with 8 KiB, 45 % with 16 KiB and
 * 69 % with 32 KiB; with copies of 64 KiB rings of 64 MiB lost 10 %, of 128 MiB none.)
 */
#define STACK_COPY_MAX 65528u
#define STACK_COPY_MIN 4096u
#define RECORD_REST 1024u         /* upper bound for the rest of a record */
#define RECORDS_WANTED 512u
#define WAKE_PART 64u             /* fill level of a ring that wakes the loop */
#define RINGS_MAX (256u << 20)    /* for all CPUs */
#define RINGS_PART 32u            /* maximum share of the machine's memory */
#define RING_MAX (128u << 20)
#define RING_MIN (64u << 10)      /* a ring must hold some records */
#define SAMPLE_TYPE                                                                      \
	(PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_REGS_USER | \
	 PERF_SAMPLE_STACK_USER)

/*
 * Maximum number of records read while all threads are stopped: the first walks read the tables of
 * the objects, which is slow.
 */
#define FIRST_RECORDS 64u

enum fault_kind { FAULT_MINOR, FAULT_MAJOR, FAULT_KINDS };

struct fault_ring {
	int fd;               /* the event that owns it; -1: no such CPU */
	struct perf_event_mmap_page *page;
	size_t size;          /* size of the data after the page */
};

struct faults {
	VEC(int) fds;
	VEC(struct fault_ring) ring[FAULT_KINDS]; /* by CPU */
	uint64_t registers;   /* mask, by perf's numbers */
	unsigned reg_count;
	uint8_t reg_index[ARCH_DWARF_REGS]; /* DWARF number -> index among the sampled registers */
	uint64_t received;
	bool was_full;        /* a ring was full */
	bool is_user_only;
	uint32_t stack_copy;  /* bytes of the stack in each record */
	size_t ring_size;     /* minor faults of one CPU */
	bool is_limited;      /* the kernel did not allow larger rings */
	VEC(struct pollfd) polled; /* SIGCHLD's first, then the rings' */
	uint8_t *scratch;     /* a record that wraps around the end of its ring */
};

static struct faults *faults_new(const struct target *t)
{
	struct faults *f = xcalloc(1, sizeof(*f));
	for (size_t i = 0; i < ARCH_DWARF_REGS; i++)
		f->registers |= 1ull << t->arch->dwarf_perf[i];
	f->reg_count = (unsigned)__builtin_popcountll(f->registers);
	for (size_t i = 0; i < ARCH_DWARF_REGS; i++) {
		uint64_t below = (1ull << t->arch->dwarf_perf[i]) - 1;
		f->reg_index[i] = (uint8_t)__builtin_popcountll(f->registers & below);
	}
	f->scratch = xmalloc(UINT16_MAX + 1);
	f->stack_copy = STACK_COPY_MIN;
	setpriority(PRIO_PROCESS, 0,
		   -20); /* a late reader loses records; fails for users, which is harmless */
	/* ring memory beyond the user's allowance counts as locked */
	limit_raise(RLIMIT_MEMLOCK, NULL);
	return f;
}

static void ring_deinit_at(struct fault_ring *r)
{
	if (r->page)
		munmap(r->page, r->size + PAGE_SIZE_MIN);
	r->page = NULL;
}

static void close_all(struct faults *f)
{
	for (int k = 0; k < FAULT_KINDS; k++) {
		for (size_t i = 0; i < f->ring[k].count; i++)
			ring_deinit_at(&f->ring[k].data[i]);
		vec_deinit(&f->ring[k]);
	}
	vec_release(&f->fds, e, close(*e));
}

void faults_free(struct target *t)
{
	struct faults *f = t->control->faults;
	if (!f)
		return;
	close_all(f);
	if (f->polled.count > 0)
		close(f->polled.data[0].fd);
	vec_deinit(&f->polled);
	free(f->scratch);
	free(f);
	t->control->faults = NULL;
}

/* -- opening -- */

static int open_event(struct faults *f, pid_t tid, int cpu, enum fault_kind kind,
		      bool enable_on_exec)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = kind == FAULT_MAJOR ? PERF_COUNT_SW_PAGE_FAULTS_MAJ :
						PERF_COUNT_SW_PAGE_FAULTS_MIN,
		.sample_period = 1,
		.sample_type = SAMPLE_TYPE,
		.inherit = 1,
		.disabled = enable_on_exec,
		.enable_on_exec = enable_on_exec,
		.exclude_kernel = f->is_user_only,
		.exclude_hv = 1,
		.sample_regs_user = f->registers,
		.sample_stack_user = f->stack_copy,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.watermark = 1,
		.wakeup_watermark = (uint32_t)MAX(f->ring_size / WAKE_PART, (size_t)1),
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0 && (errno == EACCES || errno == EPERM) && !f->is_user_only) {
		f->is_user_only = true;
		attr.exclude_kernel = 1;
		fd = (int)syscall(SYS_perf_event_open, &attr, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	}
	if (fd < 0)
		return -errno;
	*vec_add(&f->fds) = fd;
	return fd;
}

/*
 * Major faults wait for a disk, so they are rare. Their share decides whether two CPUs' rings of 4
 * MB are within a user's limits: 516 kB for each CPU (perf_event_mlock_kb) and 8 MB
 * (RLIMIT_MEMLOCK).
 */
static size_t major_size(size_t size)
{
	return MAX(size / 16, (size_t)RING_MIN);
}

static int map_ring(struct fault_ring *r, size_t size)
{
	if (r->fd < 0)
		return 0;
	void *p = mmap(NULL, size + PAGE_SIZE_MIN, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, 0);
	if (p == MAP_FAILED)
		return -errno;
	r->page = p;
	r->size = size;
	return 0;
}

static size_t largest_size(const struct faults *f)
{
	uint64_t memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * PAGE_SIZE_MIN;
	uint64_t all = MIN(memory / RINGS_PART, (uint64_t)RINGS_MAX);
	size_t size = RING_MAX;
	while (size > RING_MIN && size * f->ring[FAULT_MINOR].count > all)
		size /= 2;
	return size;
}

/* Opens all rings with the same size, the largest that the kernel allows to pin. */
static int map_rings(struct faults *f)
{
	int rc = -ENOMEM;
	size_t most = f->ring_size ? f->ring_size : largest_size(f);
	for (size_t size = most; size >= RING_MIN && rc != 0; size /= 2) {
		rc = 0;
		f->ring_size = size;
		log_debug("page faults: a ring of %zu kB for each CPU", size >> 10);
		for (int k = 0; k < FAULT_KINDS; k++) {
			for (size_t i = 0; i < f->ring[k].count && rc == 0; i++)
				rc = map_ring(&f->ring[k].data[i],
					      k == FAULT_MAJOR ? major_size(size) : size);
		}
		for (int k = 0; k < FAULT_KINDS && rc != 0; k++) {
			for (size_t i = 0; i < f->ring[k].count; i++)
				ring_deinit_at(&f->ring[k].data[i]);
		}
		if (rc != 0 && rc != -EPERM && rc != -ENOMEM)
			break;
		f->is_limited |= rc == -EPERM;
	}
	return rc;
}

static int open_all(struct faults *f, pid_t tid, bool enable_on_exec, bool is_first)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	unsigned opened = 0;
	for (int k = 0; k < FAULT_KINDS; k++) {
		for (int cpu = 0; cpu < cpus; cpu++) {
			int fd = open_event(f, tid, cpu, k, enable_on_exec);
			if (fd < 0 && fd != -ENODEV)
				return fd;
			opened += fd >= 0;
			if (is_first)
				*vec_add(&f->ring[k]) = (struct fault_ring){.fd = MAX(fd, -1)};
			else if (fd >= 0 && f->ring[k].data[cpu].fd >= 0)
				ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, f->ring[k].data[cpu].fd);
		}
	}
	return opened > 0 ? 0 : -ENODEV;
}

/* The possible size of rings is known only once they exist, and determines the size of copies. */
static int open_first(struct faults *f, pid_t tid, bool enable_on_exec)
{
	int rc = open_all(f, tid, enable_on_exec, true);
	if (rc == 0)
		rc = map_rings(f);
	if (rc != 0)
		return rc;
	uint32_t share = (uint32_t)(f->ring_size / RECORDS_WANTED);
	f->stack_copy = MAX(STACK_COPY_MIN, MIN(share, STACK_COPY_MAX));
	close_all(f);
	rc = open_all(f, tid, enable_on_exec, true);
	if (rc == 0)
		rc = map_rings(f);
	log_verbose("page faults: %zu KiB of records for each CPU, %u KiB of each stack",
		    f->ring_size >> 10, (f->stack_copy + 1023) / 1024);
	return rc;
}

int faults_add(struct target *t, pid_t tid, bool enable_on_exec)
{
	bool is_first = !t->control->faults;
	if (is_first)
		t->control->faults = faults_new(t);
	int rc = is_first ? open_first(t->control->faults, tid, enable_on_exec) :
			    open_all(t->control->faults, tid, enable_on_exec, false);
	if (rc != 0 && is_first)
		faults_free(t);
	return rc;
}

/* -- records -- */

static const uint8_t *take(const uint8_t **at, size_t *left, size_t size)
{
	const uint8_t *p = *at;
	if (*left < size)
		return NULL;
	*at += size;
	*left -= size;
	return p;
}

static bool take_word(const uint8_t **at, size_t *left, uint64_t *out)
{
	const uint8_t *p = take(at, left, sizeof(*out));
	if (p)
		memcpy(out, p, sizeof(*out));
	return p != NULL;
}

int fault_record_decode(const uint8_t *data, size_t size, unsigned reg_count,
			struct fault_record *out)
{
	struct fault_record r = {0};
	uint64_t ids, abi, stack_size, used = 0;
	if (!take_word(&data, &size, &ids) || !take_word(&data, &size, &r.time_ns) ||
	    !take_word(&data, &size, &r.addr) || !take_word(&data, &size, &abi))
		return -EINVAL;
	r.pid = (uint32_t)ids;
	r.tid = (uint32_t)(ids >> 32);
	if (abi != PERF_SAMPLE_REGS_ABI_NONE) {
		const uint8_t *p = take(&data, &size, reg_count * sizeof(uint64_t));
		if (!p)
			return -EINVAL;
		r.regs = (const uint64_t *)(const void *)p;
	}
	if (!take_word(&data, &size, &stack_size))
		return -EINVAL;
	if (stack_size > 0) {
		r.stack = take(&data, &size, stack_size);
		if (!r.stack || !take_word(&data, &size, &used) || used > stack_size)
			return -EINVAL;
		r.stack_size = used;
	}
	*out = r;
	return 0;
}

/* Memory outside the copy was not captured at the fault; it may have changed since. */
static int read_nothing(void *ctx, taddr_t addr, void *buf, size_t size)
{
	(void)ctx;
	(void)addr;
	(void)buf;
	(void)size;
	return -EFAULT;
}

static struct address_space *space_of(const struct target *t, const struct fault_record *r)
{
	const struct thread *th = thread_find(t, (pid_t)r->tid);
	if (th)
		return th->process->space;
	const struct process *p = process_find(t, (pid_t)r->pid);
	return p ? p->space : NULL;
}

#define RECORDER_STACK 1024u /* bytes of its thread's stack that the recorder may use */

/*
 * Whether the recorder caused the fault: it copies whole stacks, and so touches pages inside large
 * frames that the program has not touched. Its own frames are below its callers', where calls of
 * the program itself would be.
 */
static bool is_recorders(const struct target *t, const struct address_space *s,
			 const struct stack_view *view, taddr_t addr)
{
	const struct stub_area *a = space_find_area(s, view->regs.reg[t->arch->dwarf_pc]);
	taddr_t sp = view->regs.reg[t->arch->dwarf_sp];
	return a && a->is_pads && addr >= sp && addr - sp >= RECORDER_STACK;
}

static void serve_record(struct target *t, enum fault_kind kind, const struct fault_record *r)
{
	struct address_space *s = space_of(t, r);
	if (!s || !s->sink.user || !s->watch.is_profiled || !s->watch.is_ready || t->is_abandoned)
		return;
	if (space_is_own(s, r->addr)) /* the program would not have touched it */
		return;
	struct stack_view view = {
		.data = r->stack, .size = r->stack_size, .read = read_nothing, .is_stopped = true,
		.is_copy = true};
	for (size_t i = 0; i < ARCH_DWARF_REGS && r->regs; i++)
		view.regs.reg[i] = r->regs[t->control->faults->reg_index[i]];
	view.start = view.regs.reg[t->arch->dwarf_sp];
	if (is_recorders(t, s, &view, r->addr))
		return;
	struct heap_event ev = {
		.time_ns = r->time_ns,
		.thread = r->tid,
		.kind = HEAP_FAULT,
		.addr = r->addr,
		.size = PAGE_SIZE_MIN,
		.function = kind == FAULT_MAJOR ? FUNCTION_MAJOR_FAULT : FUNCTION_MINOR_FAULT,
		.stack = &view,
	};
	t->sink.event(t->sink.ctx, s, &ev);
}

static const uint8_t *bytes_at(struct faults *f, const struct fault_ring *r, uint64_t at,
			       size_t size)
{
	const uint8_t *data = (const uint8_t *)r->page + PAGE_SIZE_MIN;
	size_t begin = at & (r->size - 1), first = MIN(size, r->size - begin);
	if (first == size)
		return data + begin;
	memcpy(f->scratch, data + begin, first);
	memcpy(f->scratch + first, data, size - first);
	return f->scratch;
}

static size_t drain_ring(struct target *t, enum fault_kind kind, struct fault_ring *r)
{
	struct faults *f = t->control->faults;
	uint64_t head = __atomic_load_n(&r->page->data_head, __ATOMIC_ACQUIRE),
		 tail = r->page->data_tail;
	size_t n = 0;
	f->was_full |= head - tail + f->stack_copy + RECORD_REST > r->size;
	while (tail < head) {
		struct perf_event_header h;
		memcpy(&h, bytes_at(f, r, tail, sizeof(h)), sizeof(h));
		const uint8_t *record = bytes_at(f, r, tail, h.size);
		struct fault_record fault;
		if (h.type == PERF_RECORD_SAMPLE) {
			f->received++;
			n++;
			if (fault_record_decode(record + sizeof(h), h.size - sizeof(h),
						f->reg_count, &fault) == 0)
				serve_record(t, kind, &fault);
		}
		tail += h.size;
		__atomic_store_n(&r->page->data_tail, tail, __ATOMIC_RELEASE);
	}
	return n;
}

size_t faults_drain(struct target *t)
{
	size_t n = 0;
	for (int k = 0; t->control->faults && k < FAULT_KINDS; k++) {
		for (size_t i = 0; i < t->control->faults->ring[k].count; i++) {
			if (t->control->faults->ring[k].data[i].page)
				n += drain_ring(t, k, &t->control->faults->ring[k].data[i]);
		}
	}
	return n;
}

static void add_polled(struct faults *f, int fd)
{
	*vec_add(&f->polled) = (struct pollfd){.fd = fd, .events = POLLIN};
}

void faults_wait(struct target *t, const struct timespec *at_most)
{
	struct faults *f = t->control->faults;
	struct signalfd_siginfo info;
	if (f->polled.count == 0) {
		sigset_t set;
		sigemptyset(&set);
		sigaddset(&set, SIGCHLD);
		add_polled(f, signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
		for (int k = 0; k < FAULT_KINDS; k++) {
			for (size_t i = 0; i < f->ring[k].count; i++)
				add_polled(f, f->ring[k].data[i].fd);
		}
	}
	if (ppoll(f->polled.data, f->polled.count, at_most, NULL) > 0 && f->polled.data[0].revents)
		(void)!read(f->polled.data[0].fd, &info, sizeof(info));
}

bool faults_are_pressed(const struct target *t)
{
	for (int k = 0; t->control->faults && k < FAULT_KINDS; k++) {
		for (size_t i = 0; i < t->control->faults->ring[k].count; i++) {
			const struct fault_ring *r = &t->control->faults->ring[k].data[i];
			uint64_t head =
				r->page ? __atomic_load_n(&r->page->data_head, __ATOMIC_ACQUIRE) :
					  0;
			uint64_t filled = r->page ? head - r->page->data_tail : 0;
			if (filled > r->size / 4 ||
			    (filled > 0 && t->control->faults->received < FIRST_RECORDS))
				return true;
		}
	}
	return false;
}

void faults_report(const struct target *t, struct fault_report *out)
{
	uint64_t counted = 0, n;
	const struct faults *f = t->control->faults;
	*out = (struct fault_report){0};
	for (size_t i = 0; f && i < f->fds.count; i++) {
		if (read(f->fds.data[i], &n, sizeof(n)) == sizeof(n))
			counted += n;
	}
	if (!f)
		return;
	out->lost = counted > f->received ? counted - f->received : 0;
	out->was_full = f->was_full;
	out->is_user_only = f->is_user_only;
	out->is_limited = f->is_limited;
	out->ring_size = f->ring_size;
	out->stack_copy = f->stack_copy;
}
