/*
 * Copies of stacks.
 */
#include "tracee/state/thread.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/proc.h"
#include "tracee/os/ptrace.h"
#include "tracee/state/heap_event.h"
#include "tracee/state/journal.h"
#include "tracee/state/space.h"
#include "tracee/state/target_state.h"

#define COPY_MIN 1024u
#define COPY_MAX 65536u
#define STACK_MAX (1ull << 30)
#define ABOVE_SIZE 65536u
#define ABOVE_SIZE_MIN 2048u

static void stack_window_deinit(struct stack_window *w)
{
	free(w->copy);
	free(w->above);
}

static bool read_above(struct thread *th, taddr_t addr, void *buf, size_t size)
{
	struct stack_window *w = &th->window;
	if (addr < w->above_start || addr - w->above_start + size > w->above_size) {
		if (!w->above)
			w->above = xmalloc(ABOVE_SIZE);
		size_t want = MIN(MAX(2 * w->above_size, ABOVE_SIZE_MIN), ABOVE_SIZE);
		ssize_t n = space_read_some(th->process->space, addr, w->above, want);
		w->above_start = addr;
		w->above_size = n > 0 ? (size_t)n : 0;
	}
	if (addr - w->above_start + size > w->above_size)
		return false;
	memcpy(buf, w->above + (addr - w->above_start), size);
	return true;
}

/* Reads memory outside the copy; next time deeper stacks are copied completely, up to a limit. */
static int read_outside(void *ctx, taddr_t addr, void *buf, size_t size)
{
	struct thread *th = ctx;
	struct stack_window *w = &th->window;
	taddr_t end = addr + size - w->start; /* wraps to a large value below the stack pointer */
	if (end > w->want && end <= COPY_MAX)
		w->want = ROUND_UP(end, (size_t)COPY_MIN);
	if (end > w->size && end <= STACK_MAX && read_above(th, addr, buf, size))
		return 0;
	return space_read(th->process->space, addr, buf, size);
}

static void copy_stack(struct thread *th, taddr_t sp, struct stack_view *view)
{
	struct stack_window *w = &th->window;
	size_t want = MAX(w->want, COPY_MIN);
	w->start = sp;
	w->above_size = 0;
	w->copy = xgrow(w->copy, &w->capacity, want, 1);
	ssize_t n = space_read_some(th->process->space, sp, w->copy, want);
	w->size = n > 0 ? (size_t)n : 0;
	*view = (struct stack_view){
		.start = sp, .data = w->copy, .size = w->size,
		.read = read_outside, .read_ctx = th, .stopped = th->tid,
	};
}

void stack_window_at_stop(struct target *t, struct thread *th, const struct arch_regs *regs,
			  struct stack_view *view)
{
	copy_stack(th, regs->word[t->arch->sp], view);
	arch_unwind_regs(t->arch, regs, &view->regs);
	view->is_stopped = true;
}

int thread_read_return(const struct target *t, const struct thread *th,
		       const struct arch_regs *regs, taddr_t *pc_out)
{
	taddr_t pushed_at = regs->word[t->arch->sp];

	if (t->arch->return_size)
		return space_read(th->process->space, pushed_at, pc_out, sizeof(*pc_out));
	*pc_out = regs->word[t->arch->link];
	return 0;
}

void stack_window_at_entry(struct target *t, struct thread *th, const struct arch_regs *regs,
			   taddr_t sp, struct stack_view *view)
{
	uint64_t pc = 0;
	copy_stack(th, sp, view);
	arch_unwind_regs(t->arch, regs, &view->regs);
	if (!t->arch->return_size)
		pc = regs->word[t->arch->link];
	else if (th->window.size >= sizeof(pc))
		memcpy(&pc, th->window.copy, sizeof(pc));
	view->regs.reg[t->arch->dwarf_pc] = pc;
	view->regs.reg[t->arch->dwarf_sp] = sp + t->arch->return_size;
}

/* The calls that a thread is in. See thread.h. */

static void call_state_deinit(struct call_state *c)
{
	vec_deinit(&c->list);
	vec_deinit(&c->thrown);
	vec_deinit(&c->within);
}

void call_state_clear(struct call_state *c)
{
	c->list.count = c->thrown.count = c->within.count = 0;
	c->has_deleted = c->had_signal = false;
}

void call_state_copy(struct call_state *to, const struct call_state *from)
{
	vec_append(&to->list, &from->list);
}

bool call_state_reaches(const struct call_state *c, taddr_t sp)
{
	for (size_t i = 0; i < c->list.count; i++)
		if (c->list.data[i].sp >= sp)
			return true;
	return false;
}

const struct call *call_state_innermost(const struct call_state *c)
{
	return c->list.count ? &c->list.data[c->list.count - 1] : NULL;
}

void call_state_note_signal(struct call_state *c)
{
	if (c->list.count > 0)
		c->had_signal = true;
}

struct thrown *call_state_find_thrown(const struct call_state *c, taddr_t sp)
{
	for (size_t i = c->thrown.count; i-- > 0;) {
		struct thrown *thrown = &c->thrown.data[i];
		if (thrown->return_to && thrown->sp == sp)
			return thrown;
	}
	return NULL;
}

void call_state_add_thrown(struct call_state *c, const struct thrown *thrown)
{
	if (c->thrown.count > 0 && !c->thrown.data[c->thrown.count - 1].raised)
		c->thrown.count--;
	*vec_add(&c->thrown) = *thrown;
}

bool call_state_has_raised(const struct call_state *c, taddr_t caught)
{
	for (size_t i = 0; i < c->list.count; i++)
		if (c->list.data[i].raised)
			return true;
	for (size_t i = 0; i < c->thrown.count; i++)
		if (c->thrown.data[i].raised && c->thrown.data[i].raised != caught)
			return true;
	return false;
}

/* Two short lists, which rarely have more than one element. */

void pending_stops_deinit(struct pending_stops *ps)
{
	vec_deinit(&ps->unannounced);
	vec_deinit(&ps->deferred);
}

void pending_stops_add_unannounced(struct pending_stops *ps, pid_t tid, int status)
{
	*vec_add(&ps->unannounced) = (struct wait_report){tid, status};
}

bool pending_stops_take_unannounced(struct pending_stops *ps, pid_t tid, int *status_out)
{
	for (size_t i = 0; i < ps->unannounced.count; i++) {
		if (ps->unannounced.data[i].tid == tid) {
			*status_out = ps->unannounced.data[i].status;
			vec_take_swap(&ps->unannounced, i);
			return true;
		}
	}
	return false;
}

bool pending_stops_take_deferred(struct pending_stops *ps, struct wait_report *out)
{
	if (ps->deferred.count == 0)
		return false;
	*out = ps->deferred.data[0];
	vec_take_swap(&ps->deferred, 0);
	return true;
}

bool pending_stops_has_exit(const struct pending_stops *ps, pid_t tid)
{
	for (size_t i = 0; i < ps->deferred.count; i++) {
		const struct wait_report *r = &ps->deferred.data[i];

		if (r->tid == tid && stop_decode(r->status).kind == STOP_EXIT)
			return true;
	}
	return false;
}

/* Drops the deferred stops of @tid. */
static void pending_stops_drop_deferred(struct pending_stops *ps, pid_t tid)
{
	for (size_t i = ps->deferred.count; i-- > 0;) {
		if (ps->deferred.data[i].tid == tid)
			vec_take_swap(&ps->deferred, i);
	}
}

/*
 * There may be many thousands of threads, so they are hashed by tid. Loops cannot use the hash
 * table alone: removing an entry moves others into the gap, adding one may move all. Hence the
 * second array, of all threads with ascending serial numbers, in which a cursor finds its place
 * again.
 */

void thread_table_deinit(struct thread_table *table)
{
	hash_deinit(&table->by_tid);
	vec_deinit(&table->order);
	*table = (struct thread_table){0};
}

/* The thread with @tid, or NULL. */
struct thread *thread_find(const struct target *t, pid_t tid)
{
	struct thread *const *found =
		hash_find(&t->threads.by_tid, hash_u64((uint64_t)tid), th, (*th)->tid == tid);
	return found ? *found : NULL;
}

/* Appends @th, whose tid is set and not in the table yet. */
static void thread_table_add(struct thread_table *table, struct thread *th)
{
	*hash_add(&table->by_tid, hash_u64((uint64_t)th->tid)) = th;
	th->serial = ++table->last_serial;
	*vec_add(&table->order) = th;
}

static void thread_table_take(struct thread_table *table, const struct thread *th)
{
	hash_remove(&table->by_tid,
		    hash_find(&table->by_tid, hash_u64((uint64_t)th->tid), e, *e == th));
	struct thread **order = table->order.data;
	size_t at = vec_search(&table->order, e, (*e)->serial < th->serial);
	memmove(&order[at], &order[at + 1], (--table->order.count - at) * sizeof(*order));
}

struct thread *thread_table_next(const struct thread_table *table, struct thread_cursor *at)
{
	struct thread *const *order = table->order.data;
	size_t i = MIN(at->hint, table->order.count);
	while (i > 0 && order[i - 1]->serial > at->serial) /* some before it were removed */
		i--;
	while (i < table->order.count && order[i]->serial <= at->serial)
		i++;
	at->hint = i;
	if (i == table->order.count)
		return NULL;
	at->serial = order[i]->serial;
	return order[i];
}

struct thread *thread_table_next_in(const struct thread_table *table, struct thread_cursor *at,
				    const struct address_space *s)
{
	struct thread *th;
	do {
		th = thread_table_next(table, at);
	} while (th && th->process->space != s);
	return th;
}

/* Recognizes the ends of single steps of a dead ptmem. */

bool step_is_left_over(const struct target *t, const struct thread *th)
{
	struct arch_regs regs;
	siginfo_t info;
	if (!t->recovery.is_guardian || ptrace_get_siginfo(th->tid, &info) != 0 ||
	    ptrace_get_regs(th->tid, &regs) != 0 || info.si_signo != SIGTRAP)
		return false;
	return info.si_code == SIGTRAP || ptrace_is_call_step(&info) ||
	       (info.si_code == TRAP_TRACE &&
		!(regs.word[t->arch->flags] & t->arch->step_flag));
}

/*
 * Adding and removing, stopping and resuming threads and processes. There are few processes: a list
 * is sufficient.
 */

uint32_t thread_count(const struct target *t)
{
	return (uint32_t)t->threads.order.count;
}

struct thread *thread_add(struct target *t, pid_t tid, struct process *p)
{
	struct thread *th = xcalloc(1, sizeof(*th));
	th->tid = tid;
	th->process = p;
	th->state = THREAD_NEW;
	thread_table_add(&t->threads, th);
	t->stats.threads++;
	p->threads++;
	return th;
}

void thread_remove(struct target *t, struct thread *th)
{
	thread_table_take(&t->threads, th);
	th->process->threads--;
	pending_stops_drop_deferred(&t->pending, th->tid);
	free(th->syscall);
	free(th->pads);
	free(th->resumed);
	free(th->repeated);
	call_state_deinit(&th->calls);
	stack_window_deinit(&th->window);
	free(th);
}

struct process *process_find(const struct target *t, pid_t pid)
{
	for (size_t i = 0; i < t->processes.count; i++) {
		if (t->processes.data[i]->pid == pid)
			return t->processes.data[i];
	}
	return NULL;
}

struct process *process_add(struct target *t, pid_t pid, struct address_space *space)
{
	struct process *p = xcalloc(1, sizeof(*p));
	p->pid = pid;
	p->space = space;
	*vec_add(&t->processes) = p;
	t->stats.processes++;
	return p;
}

void process_move_reader(struct target *t, const struct process *leaving)
{
	struct address_space *s = leaving->space;
	for (size_t i = 0; i < t->processes.count; i++) {
		if (t->processes.data[i] != leaving && t->processes.data[i]->space == s) {
			s->processes.reader = proc_find_reader(t->processes.data[i]->pid);
			if (s->recovery.journal)
				s->recovery.journal->pid = t->processes.data[i]->pid;
			return;
		}
	}
}

bool space_exists(const struct target *t, uint32_t id)
{
	for (size_t i = 0; i < t->processes.count; i++) {
		if (t->processes.data[i]->space->id == id)
			return true;
	}
	return false;
}

void process_unlink(struct target *t, struct process *p)
{
	for (size_t i = 0; i < t->processes.count; i++) {
		if (t->processes.data[i] == p) {
			vec_take_swap(&t->processes, i);
			return;
		}
	}
}

void thread_note_stop(struct thread *th, enum stop_kind kind)
{
	th->state = kind == STOP_GROUP ? THREAD_LISTENING : THREAD_STOPPED;
	if (kind == STOP_GROUP || kind == STOP_INTERRUPT)
		th->is_group_stopped = kind == STOP_GROUP;
}

bool thread_must_halt(const struct target *t, const struct thread *th)
{
	return t->is_stopping || th->stays_held;
}

void thread_resume(struct target *t, struct thread *th, int sig)
{
	if (thread_must_halt(t, th)) {
		th->state = THREAD_STOPPED;
		th->is_held = true;
		th->held_signal = sig;
		thread_consume_stop(t, th); /* otherwise the next wait would find it again */
		return;
	}
	thread_run(t, th, sig);
}

/* If @th is killed before it continues, its exit stop is missed: these are its last registers. */
static void keep_registers(struct thread *th)
{
	if (!th->resumed)
		th->resumed = xcalloc(1, sizeof(*th->resumed));
	ptrace_get_regs(th->tid, th->resumed);
}

int thread_continue(const struct target *t, struct thread *th, int sig, bool to_syscall)
{
	if (t->options.watch.final_scan && !th->is_exiting) {
		keep_registers(th);
		if (ptrace_is_at_exit(th->tid))
			return 0;
	}
	return to_syscall ? ptrace_cont_syscall(th->tid, sig) : ptrace_cont(th->tid, sig);
}

/* Notes the system call in which @th waits, from /proc. */
static void note_waiting(struct thread *th)
{
	struct waiting_call w = {0};
	_cleanup_fclose_ FILE *file = proc_open(th->tid, "syscall");
	if (!file || fscanf(file, "%ld %lx %*x %*x %*x %*x %*x %lx %lx", &w.number, &w.first, &w.sp,
			    &w.pc) != 4)
		w.pc = 0;
	th->waiting = w;
}

int thread_interrupt(const struct target *t, struct thread *th)
{
	if (t->arch->hides_restart)
		note_waiting(th);
	return ptrace_interrupt(th->tid);
}

void thread_run(struct target *t, struct thread *th, int sig)
{
	th->is_held = false;
	th->waiting.pc = 0;
	th->state = THREAD_RUNNING;
	/*
	 * work for us took it out of its group stop: it checks whether that is still in effect
	 * before it runs
	 */
	if (th->is_group_stopped)
		ptrace_interrupt(th->tid);
	if (sig && t->hooks.before_signal)
		t->hooks.before_signal(t, th);
	bool stops_at_syscall = t->hooks.stops_at_syscall && t->hooks.stops_at_syscall(t, th);
	int rc = thread_continue(t, th, sig, stops_at_syscall);
	if (rc != 0 && rc != -ESRCH)
		log_debug("thread %d: cannot be continued: %s", th->tid, strerror(-rc));
}

struct thread *thread_pick(struct target *t, struct address_space *s)
{
	struct thread *th, *best = NULL;
	for_each_thread_in(t, s, th) {
		if (th->is_exiting || !th->is_held || th->vfork.is_waiting)
			continue;
		/* a thread that holds a signal would later get it with another siginfo */
		if (!best || best->state == THREAD_LISTENING ||
		    (best->held_signal && !th->held_signal))
			best = th;
	}
	return best;
}

void thread_end_later(struct target *t, struct thread *th, int status)
{
	*vec_add(&t->pending.deferred) = (struct wait_report){th->tid, status};
	th->is_exiting = true;
	th->is_held = false;
}

void thread_consume_stop(struct target *t, struct thread *th)
{
	int status = 0;
	if (waitpid(th->tid, &status, __WALL | WNOHANG) != th->tid)
		return;
	enum stop_kind kind = stop_decode(status).kind;
	if (kind == STOP_EXIT || kind == STOP_EXITED || kind == STOP_KILLED)
		thread_end_later(t, th, status);
}

bool thread_wait_for_news(struct thread *th)
{
	/*
	 * a leader's death is reported only after those of its threads, which may be waiting for
	 * us
	 */
	if (!wait_for_child(5) && proc_is_zombie(th->tid))
		th->is_exiting = true;
	return !th->is_exiting;
}
