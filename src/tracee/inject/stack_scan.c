/*
 * Finds code addresses on the stacks of stopped threads: all pcs, by the unwinder, or every word of
 * a stack that cannot be walked to its end.
 */
#include "tracee/inject/stack_scan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "arch/pad.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "tracee/os/maps.h"
#include "tracee/os/ptrace.h"
#include "tracee/state/heap_event.h"
#include "tracee/state/journal.h"
#include "tracee/state/module.h"
#include "tracee/state/space.h"
#include "tracee/state/target_state.h"
#include "tracee/state/thread.h"
#include "tracee/state/trap_table.h"
#include "unwind/unwind.h"

#define MAIN_STACK_ROOM (1ull << 30)
#define STACK_SCAN_MAX (16u << 20)

typedef void word_fn(void *ctx, uint64_t word);

/* The map that contains @addr; -EFAULT if there is none. */
static int find_map(const struct address_space *s, taddr_t addr, struct map_bounds *out)
{
	struct maps maps;
	int rc = s->files.maps >= 0 ? maps_query_bounds(s->files.maps, addr, out) : -ENOTTY;
	if (rc >= 0)
		return rc == 1 ? 0 : -EFAULT;
	rc = maps_read(s->processes.reader, &maps);
	if (rc != 0)
		return rc;
	const struct map *m = maps_find(&maps, addr);
	if (m)
		*out = (struct map_bounds){m->start, m->end, map_is_main_stack(m)};
	maps_deinit(&maps);
	return m ? 0 : -EFAULT;
}

int stack_scan_bounds(struct thread *th, uint64_t thread_pointer, taddr_t sp, taddr_t *low,
		      taddr_t *high)
{
	struct map_bounds map;
	int rc = find_map(th->process->space, sp, &map);
	if (rc != 0)
		return rc;
	*low = map.is_main_stack && map.start > MAIN_STACK_ROOM ? map.start - MAIN_STACK_ROOM :
								  map.start;
	*high = map.end;
	if (thread_pointer > sp && thread_pointer < *high)
		*high = thread_pointer; /* the thread's control block is at the end of its stack */
	return 0;
}

/* The end of the stack at @regs; other memory may follow. */
static taddr_t stack_end(struct target *t, struct thread *th, const struct arch_regs *regs)
{
	taddr_t sp = regs->word[t->arch->sp], low, high, most = sp + STACK_SCAN_MAX;
	int rc = stack_scan_bounds(th, regs->word[t->arch->thread_pointer], sp, &low, &high);
	return rc == 0 ? MIN(high, most) : most;
}

/*
 * Calls @fn for the pc and every word on the stack of @th that might be a code address, and for the
 * link register, if calls use one. Nothing returns to what is in the red zone: words of calls that
 * have returned stay there.
 */
static void each_word(struct target *t, struct address_space *s, struct thread *th, word_fn *fn,
		      void *ctx)
{
	enum { CHUNK = 65536 };
	struct arch_regs regs;
	if (ptrace_get_regs(th->tid, &regs) != 0)
		return;
	fn(ctx, regs.word[t->arch->pc]);
	if (!t->arch->return_size)
		fn(ctx, regs.word[t->arch->link]);
	_cleanup_free_ uint64_t *buf = xmalloc(CHUNK);
	taddr_t at = ROUND_DOWN(regs.word[t->arch->sp], (taddr_t)8);
	for (taddr_t end = stack_end(t, th, &regs); at < end; at += CHUNK) {
		size_t want = MIN(end - at, (uint64_t)CHUNK);
		ssize_t n = space_read_some(s, at, buf, want);
		for (ssize_t k = 0; k < n / 8; k++)
			fn(ctx, buf[k]);
		if (n < (ssize_t)want)
			break;
	}
}

#define MAX_PCS 4096

/*
 * Calls @fn for every pc on the stack of @th, interrupted ones included, or for every word if the
 * stack cannot be walked to its end.
 */
static void each_pc(struct target *t, struct address_space *s, struct thread *th, word_fn *fn,
		    void *ctx)
{
	struct arch_regs regs;
	struct stack_view view;
	enum unwind_end end = UNWIND_NO_CFI;
	int rc = ptrace_get_regs(th->tid, &regs);
	if (rc != 0 && !th->vfork.is_waiting)
		return;
	if (rc != 0)
		regs = th->vfork.regs;
	_cleanup_free_ taddr_t *pcs = xmalloc(MAX_PCS * sizeof(*pcs));
	stack_window_at_stop(t, th, &regs, &view);
	size_t n = s->sink.unwind ?
		unwind_walk_stopped(s->sink.unwind, &view, pcs, MAX_PCS, &end) : 0;
	for (size_t i = 0; i < n; i++)
		fn(ctx, pcs[i]);
	for (size_t i = 0; i < th->calls.list.count; i++) {
		const struct call *call = &th->calls.list.data[i];
		if (space_holds_above(s, regs.word[t->arch->sp], call->return_at,
				      call->stub_return))
			fn(ctx, call->stub_return);
	}
	if (end != UNWIND_COMPLETE) {
		log_debug("thread %d: its stack cannot be walked to the end (%zu frames, the last "
			  "at %#lx)",
			  th->tid, n, n > 0 ? (unsigned long)pcs[n - 1] : 0ul);
		each_word(t, s, th, fn, ctx);
	}
}

static void each_thread_pc(struct target *t, struct address_space *s, word_fn *fn, void *ctx)
{
	struct thread *th;
	for_each_thread_in(t, s, th)
		each_pc(t, s, th, fn, ctx);
}

struct collection {
	struct address_space *space;
	bool *used; /* by area, or by injection */
	struct stack_words *words;
};

/*
 * Words up to a few bytes after a trap: an interrupted pc there must not find other
 * instructions.
 */
static void collect_word(void *ctx, uint64_t word)
{
	struct collection *c = ctx;
	for (uint64_t back = 1; back < ARCH_MAX_INSN; back++) {
		const struct trap *trap = space_trap_find(c->space, word - back);
		if (trap && trap->kind == TRAP_ENTRY) {
			*vec_add(&c->words->list) = word;
			return;
		}
	}
}

static void collect_text_word(void *ctx, uint64_t word)
{
	struct collection *c = ctx;
	if (space_find_module(c->space, word))
		collect_word(ctx, word);
}

void stack_scan_collect(struct target *t, struct address_space *s, struct stack_words *out)
{
	struct collection c = {.space = s, .words = out};
	each_thread_pc(t, s, collect_text_word, &c);
}

/*
 * Whether @word is the address of a pad's head, which is data: the recorder saves it on the stack,
 * where it stays, in a variable that was never written as long as its function runs. A head begins
 * with the address of the shared memory.
 */
static bool is_pad_head(const struct address_space *s, const struct stub_area *a, uint64_t word)
{
	const struct journal *r = s->recovery.journal;
	taddr_t shared = r ? r->shared : s->own.shared, control = 0;
	return a->is_pads && word % PAD_ALIGN == 0 && shared &&
	       space_read(s, word, &control, sizeof(control)) == 0 && control == shared;
}

/* Marks the areas that a thread may still run in: a pc, or any word on a stack, points there. */
static void mark_used(void *ctx, uint64_t word)
{
	struct collection *c = ctx;
	const struct stub_area *a = space_find_area(c->space, word);
	if (a && !a->is_memory && !is_pad_head(c->space, a, word))
		c->used[a - c->space->own.areas.data] = true;
}

static bool *none_used(const struct address_space *s)
{
	return xcalloc(s->own.areas.count + 1, sizeof(bool));
}

bool stack_scan_uses_pads(const struct address_space *s, const bool *used)
{
	bool uses = false;
	for (size_t i = 0; i < s->own.areas.count; i++)
		uses |= s->own.areas.data[i].is_pads && used[i];
	return uses;
}

bool stack_scan_is_in_pads(struct target *t, struct thread *th)
{
	struct address_space *s = th->process->space;
	_cleanup_free_ bool *used = none_used(s);
	struct collection c = {.space = s, .used = used};
	each_pc(t, s, th, mark_used, &c);
	return stack_scan_uses_pads(s, used);
}

bool *stack_scan_used_areas(struct target *t, struct address_space *s)
{
	struct collection c = {.space = s, .used = none_used(s)};
	each_thread_pc(t, s, mark_used, &c);
	return c.used;
}

static void mark_injection(void *ctx, uint64_t word)
{
	struct collection *c = ctx;
	const struct space_recovery *own = &c->space->recovery;
	int i = journal_injection_at(c->space, word);
	if (i >= 0) /* no thread is in our own injection */
		c->used[i] = own->journal->injection[i] != own->injection;
}

bool stack_scan_used_injections(struct target *t, struct address_space *s, bool *used_out)
{
	struct collection c = {.space = s, .used = used_out};
	bool is_used = false;
	memset(used_out, 0, JOURNAL_INJECTIONS * sizeof(*used_out));
	if (t->recovery.is_guardian)
		each_thread_pc(t, s, mark_injection, &c);
	for (size_t i = 0; i < JOURNAL_INJECTIONS; i++)
		is_used |= used_out[i];
	return is_used;
}
