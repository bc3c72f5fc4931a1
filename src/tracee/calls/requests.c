/*
 * Handles stops at markers; see requests.h, and marker.h for their kinds.
 *
 * The breakpoint of a client request is at the marker's first instruction, and the thread continues
 * after the last one: the skipped code has no effect (doc/massif.md 3). So a thread that was
 * inside a marker when ptmem attached made its request before. Frame 0 of an event is the marker's
 * own function, at the address after the marker.
 */
#include "tracee/calls/requests.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "arch/pad.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "tracee/calls/calls.h"
#include "tracee/calls/marker.h"
#include "tracee/calls/pools.h"
#include "tracee/calls/request.h"
#include "tracee/os/ptrace.h"
#include "tracee/state/heap_event.h"
#include "tracee/state/heap_sampling.h"
#include "tracee/state/journal.h"
#include "tracee/state/module.h"
#include "tracee/state/pad_hooks.h"
#include "tracee/state/probe.h"
#include "tracee/state/space.h"
#include "tracee/state/space_memory.h"
#include "tracee/state/space_modules.h"
#include "tracee/state/stack_window.h"
#include "tracee/state/target_internal.h"
#include "tracee/state/thread.h"
#include "tracee/state/trap_table.h"
#include "tracee/state/unwinder.h"

#define MONITOR_TEXT_MAX 4096u
#define FUNCTION_MAX (1u << 20)
/*
 * Maximum part of the guardian's record: it must have room for the breakpoints of functions found
 * later.
 */
#define JOURNAL_RESERVE 256u

static const struct probe marker_probe[MARKER_KIND_COUNT] = {
	[MARKER_REQUEST] = {.symbol = "a client request", .kind = PROBE_REQUEST},
	[MARKER_ALLOC] = {.symbol = "an alloc probe", .kind = PROBE_MARKED_ALLOC},
	[MARKER_FREE] = {.symbol = "a free probe", .kind = PROBE_MARKED_FREE},
};

/* -- events -- */

/* One stop at a marker. */
struct visit {
	struct target *target;
	struct thread *thread;
	struct address_space *space;
	taddr_t behind;               /* address of the marker */
	uint64_t weighted;            /* bytes that the allocated block stands for; 0 = its own */
	const struct arch_regs *regs;
};

static void fill_view(const struct visit *v, struct stack_view *view)
{
	stack_window_at_stop(v->target, v->thread, v->regs, view);
	/*
	 * walks subtract one from a return address: frame 0 must be the address after the marker
	 * itself
	 */
	view->regs.reg[v->target->arch->dwarf_pc] = v->behind + 1;
	view->is_stopped = false;
}

static struct heap_event new_event(const struct visit *v, enum heap_event_kind kind, taddr_t addr)
{
	const struct target *t = v->target;
	return (struct heap_event){
		.time_ns = t->now_ns, .thread = (uint32_t)v->thread->tid, .kind = (uint8_t)kind,
		.function = FUNCTION_REQUEST, .addr = addr,
		.sp = t->options.events.stack_pointers ? v->regs->word[t->arch->sp] : 0,
	};
}

static void emit(const struct visit *v, struct heap_event *ev, bool has_stack)
{
	const struct target *t = v->target;
	struct stack_view view;
	if (!v->space->watch.is_profiled || !v->space->watch.is_ready || t->is_abandoned)
		return;
	if (has_stack) {
		fill_view(v, &view);
		ev->stack = &view;
	}
	if (heap_sampling_see(v->target, v->space, ev))
		t->sink.event(t->sink.ctx, v->space, ev);
	ev->stack = NULL; /* the view must not be used any more */
}

static void on_block_added(void *ctx, taddr_t addr, uint64_t size)
{
	const struct visit *v = ctx;
	struct heap_event ev = new_event(v, HEAP_ALLOC, addr);
	ev.size = size;
	ev.weighted = v->weighted;
	emit(v, &ev, !v->target->options.events.no_stacks);
}

static void on_block_removed(void *ctx, taddr_t addr)
{
	const struct visit *v = ctx;
	struct heap_event ev = new_event(v, HEAP_FREE, addr);
	emit(v, &ev, v->target->options.events.free_stacks);
}

/* -- requests -- */

static void answer(const struct visit *v, uint64_t result)
{
	ptrace_set_word(v->thread->tid, v->target->arch->request_result, result);
}

/*
 * The text at @addr, truncated to MONITOR_TEXT_MAX; NULL if it cannot be read. The caller frees
 * it.
 */
static char *read_text(const struct address_space *s, taddr_t addr)
{
	_cleanup_free_ char *text = xcalloc(MONITOR_TEXT_MAX + 1, 1);
	size_t size = 0;
	while (size < MONITOR_TEXT_MAX) {
		ssize_t n = space_read_some(s, addr + size, text + size, MONITOR_TEXT_MAX - size);
		if (n <= 0)
			return NULL;
		size += (size_t)n;
		if (memchr(text, '\0', size)) {
			char *whole = text;
			text = NULL;
			return whole;
		}
	}
	return NULL;
}

/* 0: a known command; 1: an unknown one. */
static void serve_monitor(const struct visit *v, taddr_t addr)
{
	const struct event_sink *sink = &v->target->sink;
	if (!v->space->sink.user || !sink->monitor)
		return;
	_cleanup_free_ char *text = read_text(v->space, addr);
	answer(v, !text || !sink->monitor(sink->ctx, v->space, text));
}

static void serve_blocks(struct visit *v, const struct request *r)
{
	const struct pool_ops ops = {.come = on_block_added, .gone = on_block_removed, .ctx = v};
	struct address_space *s = v->space;
	if (!v->target->options.watch.mempools && request_is_of_pool(r))
		return;
	if (!s->heap.pools)
		s->heap.pools = xcalloc(1, sizeof(*s->heap.pools));
	bool exists = pools_apply(s->heap.pools, r, &ops);
	if (s->heap.pools->has_auto_free)
		v->target->hooks.pads->answer_blocks(s);
	if (r->kind == REQUEST_POOL_EXISTS)
		answer(v, exists);
}

/* Whether a call of an allocation function is in progress, which reports its blocks itself. */
static bool is_inside_call(const struct visit *v)
{
	struct target *t = v->target;
	struct thread *th = v->thread;
	struct pad_slot *slot = t->hooks.pads->slot(th);
	struct stack_view view;
	uint64_t word = 0;
	if (call_state_innermost(&th->calls)) {
		fill_view(v, &view);
		return call_is_nested(t, th, v->regs, &view);
	}
	if (!slot || !slot->return_at || v->regs->word[t->arch->sp] > slot->return_at ||
	    space_read(v->space, slot->return_at, &word, sizeof(word)) != 0 ||
	    word != slot->return_to)
		return false; /* none, or one that was left by a longjmp, or is being recorded */
	fill_view(v, &view);
	return !unwinder_in_signal(v->space->sink.unwinder, &view, pad_call_end(slot));
}

static void serve_request(struct visit *v)
{
	uint64_t word[REQUEST_WORDS];
	if (space_read(v->space, v->regs->word[v->target->arch->request_arg], word, sizeof(word)) !=
	    0)
		return;
	const struct request r = request_decode(word);
	if (r.kind == REQUEST_IS_RUNNING && v->target->options.running_on_valgrind)
		answer(v, 1);
	else if (r.kind == REQUEST_MONITOR)
		serve_monitor(v, r.text);
	else if (r.kind >= REQUEST_ALLOC && !is_inside_call(v))
		serve_blocks(v, &r);
}

/* -- probes of notes -- */

static int read_target(void *ctx, taddr_t addr, void *buf, size_t size)
{
	return space_read(ctx, addr, buf, size);
}

static void serve_note(struct visit *v, const struct marker *m)
{
	struct request r = {.kind = m->kind == MARKER_ALLOC ? REQUEST_ALLOC : REQUEST_FREE};
	if (marker_value(&m->block, v->regs, read_target, v->space, &r.addr) != 0 ||
	    (m->kind == MARKER_ALLOC &&
	     marker_value(&m->size, v->regs, read_target, v->space, &r.size) != 0) ||
	    (m->has_weight &&
	     marker_value(&m->weighted, v->regs, read_target, v->space, &v->weighted) != 0))
		return;
	if (!is_inside_call(v))
		serve_blocks(v, &r);
}

/* Reports the events and sets the result. */
static enum trap_answer serve_marker(struct target *t, struct thread *th, struct trap *trap,
				     struct arch_regs *regs)
{
	taddr_t behind = trap->stub.jump;
	struct visit v = {.target = t,
			  .thread = th,
			  .space = th->process->space,
			  .behind = behind,
			  .regs = regs};
	const struct module *m = space_find_module(v.space, trap->addr);
	if (trap->probe->kind == PROBE_REQUEST)
		serve_request(&v);
	else if (m && m->markers && trap->marker < m->markers->list.count)
		serve_note(&v, &m->markers->list.data[trap->marker]);
	call_continue_at(t, th, regs, behind);
	return TRAP_RESUME;
}

/* -- pads -- */

bool requests_may_jump(const struct target *t, const struct address_space *s,
		       const struct trap *trap, const char **why_out)
{
	const struct module *m = space_find_module(s, trap->addr);
	const struct arch *arch = t->arch;
	if (!m || !m->markers || trap->marker >= m->markers->list.count)
		return false;
	const struct marker *marker = &m->markers->list.data[trap->marker];
	if (marker->kind != MARKER_REQUEST) {
		/*
		 * one instruction that is entered only at its beginning; the pad reads the first
		 * arguments
		 */
		bool is_plain =
			marker_is_argument(&marker->block, arch, 0) && !marker->has_weight &&
			(marker->kind == MARKER_FREE || marker_is_argument(&marker->size, arch, 1));
		*why_out = is_plain ? "it has no room for a jump" :
				      "its arguments are in other places";
		return is_plain && trap->code_size == arch->long_nop_size;
	}
	*why_out = "its function is not known";
	if (!marker->function_size || marker->function_size > FUNCTION_MAX)
		return false;
	taddr_t start = m->bias + marker->function;
	_cleanup_free_ uint8_t *code = xmalloc(marker->function_size);
	*why_out = "a branch enters it";
	return space_read(s, start, code, marker->function_size) == 0 &&
	       !arch->is_entered(code, marker->function_size, start, trap->addr, trap->code_size);
}

uint32_t requests_pad_flags(const struct target *t, const struct address_space *s)
{
	const struct target_options *o = &t->options;
	return (o->running_on_valgrind ? PAD_ANSWER_RUNNING : 0) |
	       (o->watch.mempools ? PAD_ANSWER_POOLS : 0) |
	       (s->heap.pools && s->heap.pools->has_auto_free ? PAD_ANSWER_BLOCKS : 0);
}

/* -- installation -- */

static void free_markers(struct marker_list *list)
{
	vec_deinit(&list->list);
	free(list);
}

void requests_find_markers(struct target *t, struct module *m)
{
	if (m->markers || !m->file || m->is_vdso)
		return;
	m->markers = xcalloc(1, sizeof(*m->markers));
	m->free_markers = free_markers;
	marker_find(m->file, t->arch, m->markers);
	if (m->markers->unknown > 0)
		log_verbose("%s: %u probes have arguments that cannot be read", m->path,
			    m->markers->unknown);
}

static bool code_is_at(const struct address_space *s, taddr_t addr, const uint8_t *bytes,
		       size_t size)
{
	uint8_t code[32];
	return size <= sizeof(code) && space_read(s, addr, code, size) == 0 &&
	       memcmp(code, bytes, size) == 0;
}

/* The size of the marker at @addr; 0 if there is not code without effect. */
static uint32_t marker_size(const struct arch *arch, const struct address_space *s,
			    const struct marker *m, taddr_t addr)
{
	if (m->kind == MARKER_REQUEST)
		return code_is_at(s, addr, arch->marker, arch->marker_size) ? arch->marker_size :
										0;
	if (code_is_at(s, addr, arch->long_nop, arch->long_nop_size))
		return arch->long_nop_size;
	return code_is_at(s, addr, &arch->nop_insn, 1) ? 1 : 0;
}

static unsigned count_users(const struct address_space *s, taddr_t semaphore)
{
	unsigned users = 0;
	for (size_t i = 0; i < s->traps.count; i++)
		users += s->traps.data[i].semaphore == semaphore;
	return users;
}

/*
 * The 16-bit semaphore counts the tracers of a marker. A guardian would restore the value from
 * before our first increment.
 */
static void raise_semaphore(struct address_space *s, const struct arch *arch, struct trap *trap,
			    taddr_t semaphore)
{
	struct trap as_was = {.addr = semaphore, .kind = TRAP_ENTRY, .stub = {.jump = semaphore}};
	uint16_t count;
	if (space_read(s, semaphore, &count, sizeof(count)) != 0)
		return;
	memcpy(as_was.original, &count, sizeof(count));
	as_was.patch_size = sizeof(count);
	if (count_users(s, semaphore) == 0)
		journal_add_trap(s, arch, &as_was);
	count++;
	if (space_write(s, semaphore, &count, sizeof(count)) == 0)
		trap->semaphore = semaphore;
}

static int install_marker(struct target *t, struct address_space *s, const struct module *m,
			  uint32_t index)
{
	const struct marker *marker = &m->markers->list.data[index];
	taddr_t addr = m->bias + marker->vaddr;
	if (space_trap_find(s, addr) || space_in_other_module(s, m, addr))
		return 0;
	uint32_t size = marker_size(t->arch, s, marker, addr);
	if (size == 0)
		return -ENOEXEC;
	const struct journal *journal = s->recovery.journal;
	if (journal && journal->trap_count > JOURNAL_TRAPS - JOURNAL_RESERVE)
		return -ENOSPC;
	struct trap trap = {
		.kind = TRAP_ENTRY,
		.serve = serve_marker,
		.addr = addr,
		.entry = addr,
		.probe = &marker_probe[marker->kind],
		.module = m->id,
		.marker = index,
		.code_size = size,
		.stub = {.jump = addr + size, .patch = addr},
	};
	int rc = space_trap_put(s, t->arch, &trap);
	if (rc == 0 &&
	    marker->semaphore) /* from now on the program may execute the probe */
		raise_semaphore(s, t->arch, space_trap_find(s, addr), m->bias + marker->semaphore);
	return rc;
}

void requests_install(struct target *t, struct address_space *s, struct module *m)
{
	requests_find_markers(t, m);
	for (uint32_t i = 0; m->markers && i < m->markers->list.count; i++) {
		int rc = install_marker(t, s, m, i);
		if (rc == -ESRCH)
			return;
		if (rc != 0)
			log_verbose("%s at %#lx in %s is not watched: %s",
				    marker_probe[m->markers->list.data[i].kind].symbol,
				    (unsigned long)m->markers->list.data[i].vaddr, m->path,
				    rc == -ENOEXEC ? "its code is not the file's" : strerror(-rc));
		t->stats.unprobed += rc != 0;
		s->watch.markers += rc == 0;
	}
}

void requests_removed(struct address_space *s, struct trap *trap)
{
	taddr_t semaphore = trap->semaphore;
	uint16_t count;
	trap->semaphore = 0;
	if (!semaphore || space_read(s, semaphore, &count, sizeof(count)) != 0)
		return;
	count--;
	space_write(s, semaphore, &count, sizeof(count));
	if (count_users(s, semaphore) == 0)
		journal_remove_trap(s, semaphore);
}

void requests_fork(const struct address_space *from, struct address_space *to)
{
	to->watch.markers = from->watch.markers;
	if (!from->heap.pools)
		return;
	to->heap.pools = xcalloc(1, sizeof(*to->heap.pools));
	pools_copy(to->heap.pools, from->heap.pools);
}

void requests_free(struct address_space *s)
{
	if (!s->heap.pools)
		return;
	pools_deinit(s->heap.pools);
	free(s->heap.pools);
	s->heap.pools = NULL;
}
