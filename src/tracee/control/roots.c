/*
 * glibc's descriptor of a thread (nptl/descr.h, struct pthread), at the top of its stack:
 *
 *	0      its own address     16     the same
 *	8      its vector of thread-local storage (dtv), which is kept with the stack
 *	720    its thread id; 0 after its end, -1 once joined
 *	...    address and size of the stack, guard included: the offset depends on the
 *	       version, but the words are adjacent and give the bounds of the mapping
 */
#include "tracee/control/roots.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/proc.h"
#include "tracee/calls/calls.h"
#include "tracee/os/maps.h"
#include "tracee/os/pagemap.h"
#include "tracee/os/ptrace.h"
#include "tracee/pads/pads.h"
#include "tracee/state/module.h"
#include "tracee/state/space.h"
#include "tracee/state/target_state.h"
#include "tracee/state/thread.h"
#include "tracee/state/trap_table.h"

#define WORDS (PAGE_SIZE_MIN / sizeof(uint64_t))
#define SELF 2
#define TID 90
#define IS_JOINED UINT32_MAX

/* The index of a descriptor's first word in the page at @addr, or WORDS. */
static size_t find_description(taddr_t addr, const uint64_t *page)
{
	for (size_t i = 0; i + TID < WORDS; i += 2)
		if (page[i] == addr + i * sizeof(*page) && page[i + SELF] == page[i])
			return i;
	return WORDS;
}

static bool has_stack(taddr_t start, taddr_t end, const uint64_t *page, size_t first)
{
	for (size_t i = first; i + 1 < WORDS; i++)
		if (page[i] && page[i] <= start && page[i + 1] == end - page[i])
			return true;
	return false;
}

bool dead_stack_check(taddr_t start, taddr_t end, const uint64_t *page, struct dead_stack *out)
{
	taddr_t addr = end - PAGE_SIZE_MIN;
	size_t first = find_description(addr, page);

	if (first == WORDS || !has_stack(start, end, page, first + TID))
		return false;
	uint32_t tid = (uint32_t)page[first + TID];
	bool is_joined = tid == IS_JOINED;

	if (tid && !is_joined)
		return false;
	out->kept_start = addr + first * sizeof(*page);
	/* the thread that joined it has its result */
	out->kept_end = is_joined ? out->kept_start + TID * sizeof(*page) : end;
	return true;
}

/*
 * Which threads of an ending process have passed their exit stops. A stop is missed if a thread is
 * resumed from an earlier one just when it has been killed. Internal to src/tracee.
 */

struct target;
struct thread;

/*
 * A thread that was killed has at most one stop before it:
 *
 *	wait status          /proc/TID/stat
 *	stopped              any                its exit stop is to come
 *	exited               any                it was missed
 *	none                 exiting, zombie    it was missed
 *	none                 runs               one or the other: it soon turns out which
 *	none                 sleeps             it has not been killed: it is in execve
 */

#define PAUSE_NS 50000l
#define TRIES 100000u /* on an overloaded machine it takes seconds */

enum fate { IS_OVER, IS_OPEN, IS_TO_COME };

static enum fate find_fate(pid_t tid)
{
	int flags = WSTOPPED | WEXITED | WNOHANG | WNOWAIT | __WALL;
	siginfo_t info = {0};
	struct proc_stat st;

	if (waitid(P_PID, (id_t)tid, &info, flags) == 0 && info.si_pid)
		return info.si_code == CLD_TRAPPED ? IS_TO_COME : IS_OVER;
	if (proc_stat_read(tid, &st) != 0 || st.is_exiting || st.state == 'Z' || st.state == 'X')
		return IS_OVER;
	return st.state == 'R' ? IS_OPEN : IS_TO_COME;
}

static enum fate find_fates(const struct target *t, const struct thread *th)
{
	enum fate all = IS_OVER;
	const struct thread *other;

	for_each_thread(t, other) {
		if (other == th || other->process != th->process)
			continue;
		if (pending_stops_has_exit(&t->pending, other->tid))
			return IS_TO_COME;
		enum fate fate = other->is_exiting ? IS_OVER : find_fate(other->tid);

		if (fate == IS_TO_COME)
			return fate;
		all = MAX(all, fate);
	}
	return all;
}

/*
 * @th is at its exit stop. Whether no stop of another thread of its process is still to come; those
 * that are not marked as exiting have missed theirs then. @is_group_end: all threads were killed.
 */
static bool exit_stops_are_over(const struct target *t, const struct thread *th, bool is_group_end)
{
	const struct timespec pause = {0, PAUSE_NS};
	enum fate fate = find_fates(t, th);

	for (unsigned i = 0; i < TRIES && is_group_end && fate == IS_OPEN; i++) {
		nanosleep(&pause, NULL);
		fate = find_fates(t, th);
	}
	return fate == IS_OVER;
}

/*
 * Registers and writable memory of a space; roots.h lists what is excluded.
 *
 * At the end of a process its threads reach their exit stops one by one, and the
 * memory stays until the last has passed: registers are saved at each stop, memory is listed at the
 * last. A thread that ends by itself contributes nothing.
 */

/* -- registers -- */

static void add_vector_registers(const struct target *t, pid_t tid, struct roots *r)
{
	uint64_t words[2048];
	struct iovec iov = {words, sizeof(words)};

	if (ptrace(PTRACE_GETREGSET, tid, (void *)(uintptr_t)t->arch->vector_note, &iov) != 0)
		return;
	for (size_t i = 0; i < iov.iov_len / sizeof(*words); i++)
		if (words[i])
			*vec_add(&r->words) = words[i];
}

static void add_registers(const struct target *t, pid_t tid, const struct arch_regs *regs,
			  struct roots *r)
{
	for (size_t i = 0; i < ARRAY_SIZE(regs->word); i++)
		if (regs->word[i])
			*vec_add(&r->words) = regs->word[i];
	*vec_add(&r->stack_tops) = regs->word[t->arch->sp] - t->arch->red_zone;
	*vec_add(&r->threads) = (struct root_thread){
		.tid = tid, .pc = regs->word[t->arch->pc], .sp = regs->word[t->arch->sp],
		.thread_pointer = regs->word[t->arch->thread_pointer]};
}

static void add_thread(const struct target *t, pid_t tid, struct roots *r)
{
	struct arch_regs regs = {{0}};

	if (ptrace_get_regs(tid, &regs) != 0)
		return;
	add_registers(t, tid, &regs, r);
	/*
	 * in a system call, vector registers hold what their last user left there: no callee saves
	 * one
	 */
	if ((int64_t)regs.word[t->arch->syscall_nr] < 0)
		add_vector_registers(t, tid, r);
}

/* -- memory -- */

/*
 * Reading a device may have side effects. Shared memory and huge pages have names below /dev,
 * too.
 */
static bool is_device(const struct map *m)
{
	static const char *const memory[] = {"/dev/zero", "/dev/shm/", "/dev/hugepages/"};

	if (strncmp(m->path, "/dev/", 5) != 0)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(memory); i++)
		if (strncmp(m->path, memory[i], strlen(memory[i])) == 0)
			return false;
	return true;
}

static void add_range(struct roots *r, taddr_t start, taddr_t end)
{
	struct root_range *last = r->memory.count ? &r->memory.data[r->memory.count - 1] : NULL;

	if (last && last->end == start)
		last->end = end;
	else if (start < end)
		*vec_add(&r->memory) = (struct root_range){start, end};
}

static void add_present(void *roots, taddr_t start, taddr_t end)
{
	add_range(roots, start, end);
}

static bool is_ours(const struct address_space *s, const struct map *m)
{
	for (size_t i = 0; i < s->own.areas.count; i++) {
		const struct stub_area *a = &s->own.areas.data[i];
		if (a->is_memory && m->start >= a->start && m->end <= a->start + a->size)
			return true;
	}
	return m->start >= s->own.shared && m->end <= s->own.shared + s->own.shared_size;
}

static bool is_below(const struct roots *r, taddr_t start, taddr_t end, taddr_t *top_out)
{
	taddr_t top = UINT64_MAX;

	for (size_t i = 0; i < r->stack_tops.count; i++)
		if (r->stack_tops.data[i] > start && r->stack_tops.data[i] < end)
			top = MIN(top, r->stack_tops.data[i]);
	*top_out = top;
	return top != UINT64_MAX;
}

/* Keeps only the descriptor of an ended thread, whose stack is @m, not its old contents. */
static void note_dead_stack(struct roots *r, const struct map *m)
{
	uint64_t page[PAGE_SIZE_MIN / sizeof(uint64_t)];
	taddr_t last = m->end - sizeof(page);
	struct dead_stack dead;

	if (*m->path || m->is_shared || roots_read(r, last, page, sizeof(page)) != sizeof(page) ||
	    !dead_stack_check(m->start, m->end, page, &dead))
		return;
	*vec_add(&r->dead_stacks) = (struct root_range){m->start, dead.kept_start};
	if (dead.kept_end < m->end)
		*vec_add(&r->dead_stacks) = (struct root_range){dead.kept_end, m->end};
}

/*
 * Whether a thread whose descriptor is in @m is on another stack, a signal handler's for instance:
 * how much of this one it uses is not known. The other one may be in @m, too: adjacent mappings
 * are one map.
 */
static bool has_absent_thread(const struct roots *r, const struct map *m)
{
	for (size_t i = 0; i < r->threads.count; i++) {
		const struct root_thread *th = &r->threads.data[i];

		if (th->thread_pointer >= m->start && th->thread_pointer < m->end &&
		    (th->sp < m->start || th->sp > th->thread_pointer))
			return true;
	}
	return false;
}

/* A stack grows down from the end of its map: everything below all stack pointers in it is garbage.
 * It is a stack if the kernel says so, or if there is a guard page below it. */
static void note_stack(struct roots *r, const struct map *m, const struct map *before)
{
	taddr_t top;
	bool has_guard = before && before->end == m->start && !before->is_read &&
			 !before->is_write && !*m->path;

	if (has_absent_thread(r, m))
		return;
	if ((has_guard || map_is_main_stack(m)) && is_below(r, m->start, m->end, &top))
		*vec_add(&r->below_stacks) = (struct root_range){m->start, top};
	else if (has_guard)
		note_dead_stack(r, m);
}

/* Whether @m was writable only during relocation (RELRO): data follow it. */
static bool is_relro(const struct map *m, const struct map *after)
{
	return m->is_read && !m->is_exec && !m->is_shared && *m->path == '/' &&
	       after->start == m->end && after->is_write && after->ino == m->ino &&
	       after->dev == m->dev;
}

static bool may_hold_pointers(const struct address_space *s, const struct maps *maps, size_t i)
{
	const struct map *m = &maps->list.data[i];
	bool was_written = m->is_write || (i + 1 < maps->list.count && is_relro(m, m + 1));

	return m->is_read && was_written && !is_device(m) && !is_ours(s, m);
}

/* The pages of one mapping, which are from place *at on. */
static void add_pages(struct roots *r, const struct map *m, const struct resident *pages,
		      size_t *at)
{
	for (; *at < pages->list.count && pages->list.data[*at].start < m->end; ++*at)
		if (pages->list.data[*at].start >= m->start)
			add_range(r, pages->list.data[*at].start, pages->list.data[*at].end);
}

/* @pages: NULL = they are found by @present. */
static void add_mappings(const struct address_space *s, const struct maps *maps,
			 const struct resident *pages, struct present *present, struct roots *r)
{
	size_t at = 0;

	for (size_t i = 0; i < maps->list.count; i++) {
		const struct map *m = &maps->list.data[i];

		if (!may_hold_pointers(s, maps, i))
			continue;
		note_stack(r, m, i > 0 ? m - 1 : NULL);
		if (m->is_write && !m->is_shared && *m->path == '/')
			*vec_add(&r->data) = (struct root_range){m->start, m->end};
		if (m->is_shared)
			add_range(r, m->start, m->end);
		else if (pages)
			add_pages(r, m, pages, &at);
		else /* a private page that was never written holds nothing */
			present_find(present, m->start, m->end, add_present, r);
	}
}

static int add_memory(const struct address_space *s, const struct resident *pages, struct roots *r)
{
	struct present present;
	struct maps maps;

	if (pages) {
		add_mappings(s, &pages->maps, pages, NULL, r);
		return 0;
	}
	int rc = maps_read(r->reader, &maps);

	if (rc != 0)
		return rc;
	present_open(r->reader, true, &present);
	add_mappings(s, &maps, NULL, &present, r);
	present_close(&present);
	maps_deinit(&maps);
	return 0;
}

/* -- all -- */

static struct roots *roots_new(pid_t reader)
{
	struct roots *r = xcalloc(1, sizeof(*r));

	r->reader = reader;
	return r;
}

void roots_free(struct roots *r)
{
	if (!r)
		return;
	vec_deinit(&r->words);
	vec_deinit(&r->stack_tops);
	vec_deinit(&r->threads);
	vec_deinit(&r->memory);
	vec_deinit(&r->data);
	vec_deinit(&r->dead_stacks);
	vec_deinit(&r->below_stacks);
	free(r);
}

static void add_noted(const struct roots *from, struct roots *r)
{
	vec_append(&r->words, &from->words);
	vec_append(&r->stack_tops, &from->stack_tops);
	vec_append(&r->threads, &from->threads);
}

/* Completes @r with its memory and moves it to *@out. */
static int finish(const struct address_space *s, const struct resident *pages, struct roots *r,
		  struct roots **out)
{
	int rc = add_memory(s, pages, r);

	if (rc != 0)
		roots_free(r);
	else
		*out = r;
	return rc;
}

struct roots *roots_collect_words(struct target *t, const struct address_space *s)
{
	struct roots *r = roots_new(s->processes.reader);
	const struct thread *th;

	for_each_thread_in(t, s, th) {
		if (!th->is_exiting)
			add_thread(t, th->tid, r);
	}
	for (size_t i = 0; i < t->processes.count; i++)
		if (t->processes.data[i]->space == s && t->processes.data[i]->exit_roots)
			add_noted(t->processes.data[i]->exit_roots, r);
	return r;
}

int roots_collect(struct target *t, struct address_space *s, const struct resident *pages,
		  struct roots **out)
{
	return finish(s, pages, roots_collect_words(t, s), out);
}

int roots_list(const struct address_space *s, struct roots **out)
{
	return finish(s, NULL, roots_new(s->processes.reader), out);
}

ssize_t roots_read(void *ctx, taddr_t addr, void *buf, size_t size)
{
	const struct roots *r = ctx;
	struct iovec here = {buf, size}, there = {(void *)(uintptr_t)addr, size};

	return process_vm_readv(r->reader, &here, 1, &there, 1, 0);
}

/* A thread that calls exit itself is not part of the end of its process. */
static bool ends_by_itself(const struct target *t, pid_t tid)
{
	struct arch_regs regs;

	return ptrace_get_regs(tid, &regs) == 0 && (long)regs.word[t->arch->syscall_nr] == SYS_exit;
}

void roots_forget_exits(struct process *p)
{
	roots_free(p->exit_roots);
	p->exit_roots = NULL;
}

void roots_serve_missed_exit(struct target *t, struct thread *th)
{
	struct process *p = th->process;

	if (!p->exit_roots)
		p->exit_roots = roots_new(th->tid);
	if (th->resumed)
		add_registers(t, th->tid, th->resumed, p->exit_roots);
	th->is_exiting = true;
}

void roots_serve_exit(struct target *t, struct thread *th)
{
	struct process *p = th->process;
	struct address_space *s = p->space;
	bool is_own = ends_by_itself(t, th->tid);
	struct thread *other;

	if (!p->exit_roots)
		p->exit_roots = roots_new(th->tid);
	if (!is_own)
		add_thread(t, th->tid, p->exit_roots);
	if (!exit_stops_are_over(t, th, !is_own))
		return;
	for_each_thread(t, other) {
		if (other->process == p && !other->is_exiting)
			roots_serve_missed_exit(t, other);
	}
	if (s->processes.users > 1 || !s->sink.user || !s->watch.is_ready)
		return;
	pads_catch_up(t, s);
	s->processes.reader = th->tid; /* the first thread may be gone */
	uint64_t begin = clock_now_ns();
	t->sink.final_scan(t->sink.ctx, s);
	if (!t->stopped_since_ns) /* else all of that is noted */
		space_note_stop(s, clock_now_ns() - begin);
}

/* Registers and stacks of all threads. See roots.h. */

static bool has_returned(const struct target *t, const struct thread *th, taddr_t pc)
{
	const struct trap *trap =
		space_trap_find(th->process->space, pc - t->arch->trap_pc_offset);

	return trap && trap->kind == TRAP_RETURN && !call_state_innermost(&th->calls);
}

static taddr_t delete_return(struct target *t, struct thread *th, const struct arch_regs *regs)
{
	taddr_t to = entry_delete_return(th, regs->word[t->arch->sp]);

	return to ? to : pads_delete_return(t, th, regs);
}

static void show(struct target *t, struct thread *th,
		 void (*fn)(void *ctx, const struct thread_view *view), void *ctx)
{
	struct arch_regs regs;
	struct stack_view stack;

	if (ptrace_get_regs(th->tid, &regs) != 0) {
		if (!th->vfork.is_waiting)
			return;
		regs = th->vfork.regs;
	}
	stack_window_at_stop(t, th, &regs, &stack);
	taddr_t pc = regs.word[t->arch->pc], sp = regs.word[t->arch->sp];

	fn(ctx, &(struct thread_view){
			.tid = th->tid, .pc = pc, .sp = sp,
			.thread_pointer = regs.word[t->arch->thread_pointer],
			.has_call = call_state_reaches(&th->calls, sp),
			.delete_return = delete_return(t, th, &regs),
			.has_returned = has_returned(t, th, pc),
			.stack = &stack});
}

/* Threads of @p after their exit stops; their stacks do not change. */
static void show_exited(const struct process *p, void (*fn)(void *ctx, const struct thread_view *v),
			void *ctx)
{
	for (size_t i = 0; p->exit_roots && i < p->exit_roots->threads.count; i++) {
		const struct root_thread *th = &p->exit_roots->threads.data[i];

		fn(ctx, &(struct thread_view){.tid = th->tid, .pc = th->pc, .sp = th->sp,
					      .thread_pointer = th->thread_pointer});
	}
}

void thread_views_each(struct target *t, struct address_space *s,
		       void (*fn)(void *ctx, const struct thread_view *view), void *ctx)
{
	struct thread *th;

	for_each_thread_in(t, s, th) {
		if (!th->is_exiting)
			show(t, th, fn, ctx);
	}
	for (size_t i = 0; i < t->processes.count; i++)
		if (t->processes.data[i]->space == s)
			show_exited(t->processes.data[i], fn, ctx);
}
