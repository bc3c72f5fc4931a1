/*
 * Putting traps and stubs into a space, and taking them out again.
 *
 *	in     each watched function of each module: a stub near it (stub_area.c), a trap at its
 *	       entry and one in the stub where the function returns
 *	out    the text is restored, threads are stepped out of our pages; a page that some stack
 *	       still leads to stays, and is tried again or left
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/proc.h"
#include "target/guard.h"
#include "target/loader.h"
#include "target/ptrace.h"
#include "target/pads.h"
#include "target/requests.h"
#include "target/soname.h"
#include "target/stub_area.h"
#include "target/syscall_sites.h"
#include "target/thread.h"

#define FUNCTION_MAX 65536u
#define STACK_SCAN_MAX (16u << 20)

/* -- one function -- */

static void count_probe(struct target *t, struct space *s, const struct probe *probe)
{
	s->probe_count += probe->function != FUNCTION_NONE;
	t->stats.probes = MAX(t->stats.probes, s->probe_count);
}

static int install_site(struct target *t, struct thread *th, struct space *s,
			const struct module *m, const struct probe_site *site)
{
	taddr_t entry = m->bias + site->vaddr;
	size_t size = MIN(site->size, (uint64_t)FUNCTION_MAX);
	_cleanup_free_ uint8_t *code = xmalloc(size);
	uint8_t out[STUB_MAX];
	const struct stub_place place = {t, th, s, m};
	struct stub_area *area;
	struct trap trap = {.kind = TRAP_ENTRY,
			    .probe = site->probe,
			    .module = m->id,
			    .entry = entry,
			    .code_size = (uint32_t)size};
	const char *why = "no room for its stub";
	int rc = space_read_text(s, entry, code, size);
	if (rc == 0)
		rc = stub_area_get(&place, entry, &area);
	if (rc == 0)
		rc = t->arch->make_stub(code, size, entry, area->start + area->used, out,
					sizeof(out), &trap.stub, &why);
	if (rc == 0 && space_trap_find(s, trap.stub.patch))
		return 0; /* another name of the same code */
	if (rc == 0)
		rc = space_write(s, area->start + area->used, out, trap.stub.size);
	if (rc == 0) {
		stub_area_use(area, trap.stub.size);
		struct trap back = trap;
		back.kind = TRAP_RETURN;
		back.addr = trap.stub.trap;
		trap.addr = trap.stub.patch;
		rc = space_trap_put(s, t->arch, &back);
	}
	if (rc == 0)
		rc = space_trap_put(s, t->arch, &trap);
	if (rc == 0)
		count_probe(t, s, trap.probe);
	else
		log_verbose("%s in %s is not watched: %s", site->probe->symbol, m->path,
			    rc == -ENOTSUP ? why : strerror(-rc));
	return rc;
}

static void install_functions(struct target *t, struct thread *th, struct space *s,
			      struct module *m)
{
	if (!t->options.no_probes)
		requests_install(t, s, m);
	if (!m->sites) {
		m->sites = xcalloc(1, sizeof(*m->sites));
		probe_sites_find(m->file, m->sites);
	}
	bool is_allocator = m->sites->list.count > 0 &&
			    soname_is_watched(m->file, t->options.somalloc);
	uint32_t used = 0;
	for (size_t i = 0; i < m->sites->list.count; i++) {
		const struct probe_site *site = &m->sites->list.data[i];
		if (space_in_other_module(s, m, m->bias + site->vaddr))
			continue;
		if (site->probe->kind == PROBE_MAPPING && !t->options.mapping_calls)
			continue;
		if (site->probe->kind == PROBE_END && !t->options.program_end)
			continue;
		if (t->options.no_probes && site->probe->kind != PROBE_LOADER)
			continue;
		if (site->probe->kind <= PROBE_FREE && !is_allocator)
			continue;
		int rc = install_site(t, th, s, m, site);
		if (rc == -ESRCH)
			return;
		t->stats.unprobed += rc != 0;
		used++;
	}
	if (used > 0)
		stub_area_write_headers(s);
}

static void install_module(struct target *t, struct thread *th, struct space *s, struct module *m)
{
	bool has_sites = t->syscalls == SYSCALLS_SITES;
	if (m->is_vdso || (t->options.no_probes && !has_sites))
		return;
	if (m->file)
		install_functions(t, th, s, m);
	if (has_sites)
		syscall_sites_install(t, th, s, m);
}

struct install_context {
	struct target *target;
	struct thread *thread;
};

static void module_loaded(void *ctx, struct space *s, struct module *m)
{
	struct install_context *c = ctx;
	install_module(c->target, c->thread, s, m);
	if (s->user)
		c->target->sink.module_loaded(c->target->sink.ctx, s, m);
}

static void module_unloaded(void *ctx, struct space *s, struct module *m)
{
	struct install_context *c = ctx;
	if (s->user)
		c->target->sink.module_unloaded(c->target->sink.ctx, s, m);
}

void install_update(struct target *t, struct space *s, struct thread *th)
{
	struct install_context c = {t, th};
	space_update_modules(s, module_loaded, module_unloaded, &c);
	if (t->syscalls == SYSCALLS_SITES)
		syscall_sites_check_code(t, s);
}

struct module *target_refresh_module(struct target *t, struct space *s, taddr_t pc)
{
	struct module *m = space_find_module(s, pc);
	if (m || space_is_known_miss(s, pc) || !space_may_be_code(s, pc))
		return m;
	install_update(t, s, NULL);
	m = space_find_module(s, pc);
	if (!m)
		space_is_known_miss(s, pc); /* notes it */
	return m;
}

int install_probes(struct target *t, struct space *s, struct thread *th)
{
	int rc = space_update_modules(s, NULL, NULL, NULL);
	stub_area_adopt(s);
	for (size_t i = 0; i < s->modules.count; i++)
		install_module(t, th, s, s->modules.data[i]);
	if (t->syscalls == SYSCALLS_SITES)
		syscall_sites_check_code(t, s);
	if (s->probe_count + s->marker_count == 0 && !t->options.no_probes && !loader_is_there(s))
		return -ENOENT;
	syscalls_start(t, s, th);
	if (s->is_profiled && !s->user)
		t->sink.space_new(t->sink.ctx, s);
	s->is_ready = true;
	thread_stacks_begin(t, s);
	return rc;
}

void install_at_start(struct target *t, struct thread *th)
{
	struct process *p = th->process;
	if (install_probes(t, p->space, th) != -ENOENT)
		return;
	if (p->is_first_image) {
		t->refusal = ATTACH_NO_PROBES;
		kill(p->pid, SIGKILL); /* nothing of it ran */
	} else {
		log_warn("process %d: no malloc or other allocation function found; a stripped "
			 "static program? "
			 "not profiled",
			 p->pid);
		p->space->is_profiled = false;
	}
}

int install_start_trap(struct target *t, struct thread *th)
{
	struct arch_regs regs;
	int rc = ptrace_get_regs(th->tid, &regs);
	struct trap trap = {.kind = TRAP_START, .addr = regs.word[t->arch->pc]};
	return rc != 0 ? rc : space_trap_put(th->process->space, t->arch, &trap);
}

/* -- leaving -- */

typedef void word_fn(void *ctx, uint64_t word);

/* Where the stack at @regs ends: with its map, or a pthread's control block. Other memory may lie behind. */
static taddr_t stack_end(struct target *t, struct thread *th, const struct arch_regs *regs)
{
	taddr_t sp = regs->word[t->arch->sp], pointer = regs->word[t->arch->thread_pointer];
	taddr_t low, high, most = sp + STACK_SCAN_MAX;
	if (pads_stack_bounds(th, sp, &low, &high) != 0)
		return most;
	return MIN(pointer > sp && pointer < high ? pointer : high, most);
}

/* Calls @fn for the pc and every word of the stack of @th that might be an address. */
static void each_word(struct target *t, struct space *s, struct thread *th, word_fn *fn, void *ctx)
{
	enum { CHUNK = 65536 };
	struct arch_regs regs;
	if (ptrace_get_regs(th->tid, &regs) != 0)
		return;
	fn(ctx, regs.word[t->arch->pc]);
	_cleanup_free_ uint64_t *buf = xmalloc(CHUNK);
	taddr_t at = ROUND_DOWN(regs.word[t->arch->sp], (taddr_t)8) - 128; /* the red zone, too */
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
 * Calls @fn for every pc on the stack of @th, interrupted ones included; for every
 * word of it where it cannot be walked to its end.
 */
static void each_pc(struct target *t, struct space *s, struct thread *th, word_fn *fn, void *ctx)
{
	struct arch_regs regs;
	struct stack_view view;
	bool is_whole = false;
	int rc = ptrace_get_regs(th->tid, &regs);
	if (rc != 0 && !th->is_in_vfork)
		return;
	if (rc != 0)
		regs = th->vfork_regs;
	_cleanup_free_ taddr_t *pcs = xmalloc(MAX_PCS * sizeof(*pcs));
	trap_fill_stopped_view(t, th, &regs, &view);
	size_t n = s->user ? t->sink.stack_pcs(t->sink.ctx, s, &view, pcs, MAX_PCS, &is_whole) : 0;
	for (size_t i = 0; i < n; i++)
		fn(ctx, pcs[i]);
	for (size_t i = 0; i < th->calls.count; i++) {
		const struct call *call = &th->calls.data[i];
		if (space_holds_above(s, regs.word[t->arch->sp], call->return_at, call->stub_return))
			fn(ctx, call->stub_return);
	}
	if (!is_whole) {
		log_debug("thread %d: its stack cannot be walked to the end (%zu frames, the last "
			  "at %#lx)",
			  th->tid, n, n > 0 ? (unsigned long)pcs[n - 1] : 0ul);
		each_word(t, s, th, fn, ctx);
	}
}

static void each_thread_pc(struct target *t, struct space *s, word_fn *fn, void *ctx)
{
	for (size_t i = 0; i < t->threads.capacity; i++) {
		struct thread *th = t->threads.data[i];
		if (th && th->process->space == s)
			each_pc(t, s, th, fn, ctx);
	}
}

struct collection {
	struct target *target;
	struct space *space;
	bool *used; /* by area */
	bool is_in_pads;
};

/* Words a few bytes behind a trap: an interrupted pc there must not find other instructions. */
static void collect_word(void *ctx, uint64_t word)
{
	struct collection *c = ctx;
	for (uint64_t back = 1; back < ARCH_MAX_INSN; back++) {
		const struct trap *trap = space_trap_find(c->space, word - back);
		if (trap && trap->kind == TRAP_ENTRY) {
			*vec_add(&c->target->stack_words) = word;
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

void install_collect_words(struct target *t, struct space *s)
{
	struct collection c = {.target = t, .space = s};
	t->stack_words.count = 0;
	each_thread_pc(t, s, collect_text_word, &c);
}

/* Marks the areas that a thread may still run through: a pc, or any word on a stack, points there. */
static void mark_used(void *ctx, uint64_t word)
{
	struct collection *c = ctx;
	const struct space *s = c->space;
	for (size_t i = 0; i < s->areas.count; i++) {
		const struct stub_area *a = &s->areas.data[i];
		if (!a->is_memory && word - a->start < a->size)
			c->used[i] = true;
	}
}

static void look_for_pads(void *ctx, uint64_t word)
{
	struct collection *c = ctx;
	for (size_t i = 0; i < c->space->areas.count; i++) {
		const struct stub_area *a = &c->space->areas.data[i];
		if (a->is_pads && !a->is_memory && word - a->start < a->size)
			c->is_in_pads = true;
	}
}

bool install_is_in_pads(struct target *t, struct thread *th)
{
	struct collection c = {.target = t, .space = th->process->space};
	each_pc(t, c.space, th, look_for_pads, &c);
	return c.is_in_pads;
}

static int unmap(struct target *t, struct thread **th, taddr_t start, uint64_t size)
{
	const uint64_t args[6] = {start, size};
	int64_t result = -1;
	if (!*th || !syscalls_may_inject(t, (*th)->tid))
		return -EPERM;
	guard_forget_area((*th)->process->space,
			  start); /* it may be the program's own the next moment */
	int rc = inject_syscall(t, *th, SYS_munmap, args, &result);
	if (rc == -ESRCH)
		*th = NULL;
	return rc != 0 ? rc : (int)result;
}

static void leave_area(struct target *t, struct space *s, struct thread **th, struct stub_area *a,
		       bool is_used)
{
	if (!is_used && a->is_slack && space_write(s, a->start, a->saved, a->size) == 0)
		return;
	if (!is_used && !a->is_slack && unmap(t, th, a->start, a->size) == 0)
		return;
	stub_area_leave(s, a);
	t->stats.pages_left += a->is_slack ? 0 : a->size / PAGE_SIZE_MIN;
}

/* Pads are left together: one that stays needs the recorder and the shared memory. */
static void keep_pads_together(struct target *t, struct space *s, struct thread **th, bool *used)
{
	bool stay = false;
	for (size_t i = 0; i < s->areas.count; i++)
		stay |= s->areas.data[i].is_pads && used[i];
	for (size_t i = 0; i < s->areas.count; i++)
		used[i] |= s->areas.data[i].is_pads && stay;
	if (!stay && s->pads)
		unmap(t, th, s->pads->memory.target, s->pads->memory.map_size);
	else if (!stay && s->guard && s->guard->shared)
		unmap(t, th, s->guard->shared, s->guard->shared_size);
}

static bool is_outside_areas(void *ctx, taddr_t pc)
{
	const struct space *s = ctx;
	if (s->guard && s->guard->injection && pc - s->guard->injection < INJECTION_SIZE)
		return false;
	for (size_t i = 0; i < s->areas.count; i++) {
		if (pc - s->areas.data[i].start < s->areas.data[i].size)
			return false;
	}
	return true;
}

#define MAX_STEPS_OUT 20000

/* Lets no thread stand in our pages; what traps there becomes harmless first. */
static void step_threads_out(struct target *t, struct space *s)
{
	for (size_t i = 0; i < s->traps.count; i++) {
		const struct trap *trap = &s->traps.data[i];
		if (trap->kind == TRAP_RETURN || trap->kind >= TRAP_PAD_ENTRY)
			space_write(s, trap->addr, &t->arch->nop_insn, 1);
	}
	pads_run_out(t, s);
	for (size_t i = 0; i < t->threads.capacity; i++) {
		struct thread *th = t->threads.data[i];
		if (th && th->process->space == s && !th->is_exiting)
			inject_step_until(t, th, is_outside_areas, s, MAX_STEPS_OUT);
	}
}

/* The handler is about to go: from now on no SIGTRAP may come. */
static void settle_threads(struct target *t, struct space *s)
{
	for (size_t i = 0; s->guard && s->guard->has_handler && i < t->threads.capacity; i++) {
		struct thread *th = t->threads.data[i];
		if (th && th->process->space == s && !th->is_exiting && th->is_held &&
		    !th->is_in_vfork)
			inject_settle(t, th);
	}
}

static void forget_installation(struct space *s)
{
	for (size_t i = 0; i < s->areas.count; i++)
		free(s->areas.data[i].saved);
	s->areas.count = 0;
	s->shared = s->shared_size = 0;
	s->traps.count = 0;
	free(s->trap_index);
	s->trap_index = NULL;
	s->trap_bits = 0;
}

bool install_remove(struct target *t, struct space *s, struct thread *th, bool is_last)
{
	uint32_t id = s->id;
	pads_disarm(t, s);
	loop_take_traps(t, s);
	if (!target_has_space(t, id))
		return true;
	for (size_t i = 0; i < s->traps.count; i++) {
		struct trap *trap = &s->traps.data[i];
		bool is_in_text = trap->kind == TRAP_ENTRY || trap->kind == TRAP_START ||
				  trap->kind == TRAP_SYSCALL || trap->kind == TRAP_PAD_EXIT;
		if (is_in_text && space_trap_take(s, t->arch, trap) != 0)
			log_debug("space %u: the text at %#lx could not be restored", s->id,
				  (unsigned long)trap->addr);
		requests_removed(s, trap);
	}
	syscall_sites_leave(t, s);
	step_threads_out(t, s);
	pads_release_threads(t, s);
	settle_threads(t, s);
	guard_remove(t, s);
	struct collection c = {.target = t,
			       .space = s,
			       .used = xcalloc(s->areas.count + 1, sizeof(*c.used))};
	each_thread_pc(t, s, mark_used, &c);
	bool is_used = false;
	for (size_t i = 0; i < s->areas.count; i++)
		is_used |= c.used[i];
	s->is_ready = false;
	if (is_used && !is_last) {
		free(c.used);
		return false;
	}
	keep_pads_together(t, s, &th, c.used);
	for (size_t i = 0; i < s->areas.count; i++)
		leave_area(t, s, &th, &s->areas.data[i], c.used[i]);
	free(c.used);
	guard_clear_injection(s);
	forget_installation(s);
	return true;
}
