/*
 * Detects when the dynamic linker of a space has changed the mapped objects. Internal to
 * src/tracee.
 */
#include "tracee/control/install.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/elf_file.h"
#include "base/go_table.h"
#include "base/log.h"
#include "base/proc.h"
#include "tracee/calls/calls.h"
#include "tracee/calls/client_request.h"
#include "tracee/control/control.h"
#include "tracee/control/target.h"
#include "tracee/control/thread_stacks.h"
#include "tracee/guard/guardian.h"
#include "tracee/guard/sigtrap_handler.h"
#include "tracee/inject/inject.h"
#include "tracee/inject/seccomp.h"
#include "tracee/inject/stack_scan.h"
#include "tracee/inject/stop_all.h"
#include "tracee/inject/stub_area.h"
#include "tracee/inject/watch_file.h"
#include "tracee/os/ptrace.h"
#include "tracee/pads/heap_sampling.h"
#include "tracee/pads/pads.h"
#include "tracee/state/custom_probe.h"
#include "tracee/state/journal.h"
#include "tracee/state/module.h"
#include "tracee/state/probe.h"
#include "tracee/state/space.h"
#include "tracee/state/static_malloc.h"
#include "tracee/state/target_state.h"
#include "tracee/state/thread.h"
#include "tracee/state/trap_table.h"
#include "tracee/syscalls/syscall_sites.h"
#include "tracee/syscalls/syscalls.h"

/*
 * It calls _dl_debug_state twice for each change, and stores in its struct r_debug which of the two
 * it is (link.h):
 *
 *	RT_ADD, RT_DELETE   begins: nothing is mapped or unmapped yet
 *	RT_CONSISTENT       the change is complete
 *
 * There is one struct for each namespace (dlmopen), and only the first is known here. The state
 * that it had at the last stop distinguishes the start of its own change from another namespace's
 * change meanwhile.
 */

/*
 * At a stop of PROBE_LOADER, @trap: whether objects may have been added or removed since the
 * previous stop. Call once for each stop.
 */
static bool loader_has_changed(struct address_space *s, const struct trap *trap)
{
	const struct module *m = space_find_module(s, trap->addr);
	struct r_debug now;

	if (!m || !m->sites || !m->sites->r_debug ||
	    space_read(s, m->bias + m->sites->r_debug, &now, sizeof(now)) != 0)
		return true;
	bool begins = now.r_state != RT_CONSISTENT && !s->watch.is_loading;
	s->watch.is_loading = now.r_state != RT_CONSISTENT;
	return !begins;
}

/* Whether a change is in progress, which may load an allocator. */
static bool loader_is_there(const struct address_space *s)
{
	for (size_t i = 0; i < s->modules.count; i++) {
		const struct module *m = s->modules.data[i];
		if (!m->is_vdso && (!m->file || m->file->has_interp))
			return true;
	}
	for (size_t i = 0; i < s->traps.count; i++) {
		const struct trap *trap = &s->traps.data[i];
		if (trap->kind == TRAP_ENTRY && trap->probe->kind == PROBE_LOADER)
			return true;
	}
	return false;
}

#define REACH (UINT64_C(64) << 10) /* bytes before and after a function that are looked at */

struct search {
	struct probe_sites *sites;
	const struct arch_code *code;
	uint64_t function;
};

static void note(void *ctx, taddr_t at)
{
	struct search *search = ctx;
	struct probe_again *again = vec_add(&search->sites->again);

	*again = (struct probe_again){.vaddr = at, .function = search->function};
	memcpy(again->bytes, search->code->bytes + (at - search->code->at), sizeof(again->bytes));
}

/*
 * In the function of @site, and @reach bytes before and after its start. False: it may jump to what
 * is farther away.
 */
static bool find_within(const struct arch *arch, struct elf_file *file, struct probe_sites *sites,
			const struct probe_site *site, uint64_t reach)
{
	uint64_t function = site->vaddr;
	const struct elf_segment *seg = elf_file_segment(file, function);
	uint64_t before = MIN(function - seg->vaddr, reach);
	uint64_t offset = function - before - seg->vaddr;
	uint64_t size = MIN(seg->filesz - offset, before + MAX(reach, site->size));
	_cleanup_free_ uint8_t *bytes = elf_file_read(file, seg->offset + offset, size);
	const struct arch_code code = {.bytes = bytes, .size = size, .at = function - before};
	struct search search = {.sites = sites, .code = &code, .function = function};

	return !bytes || arch->each_again(&code, before, note, &search);
}

/* Most are short, and jump nowhere else. */
static void find_in(const struct arch *arch, struct elf_file *file, struct probe_sites *sites,
		    const struct probe_site *site)
{
	size_t known = sites->again.count;

	if (find_within(arch, file, sites, site, 0))
		return;
	sites->again.count = known;
	find_within(arch, file, sites, site, REACH);
}

void again_find_sites(const struct target *t, struct module *m)
{
	if (m->sites)
		return;
	m->sites = xcalloc(1, sizeof(*m->sites));
	probe_sites_find(m->file, t->options.probes.custom, m->sites);
	if (!custom_probes_have_guesses(t->options.probes.custom)) /* the user knows better */
		static_malloc_find(m->file, m->sites);
	for (size_t i = 0; i < m->sites->list.count; i++) {
		const struct probe_site *site = &m->sites->list.data[i];
		/* pads know of other calls until they return */
		if (site->is_leaf && site->probe->function == FUNCTION_FREE)
			find_in(t->arch, m->file, m->sites, site);
	}
}

static enum trap_answer serve(struct target *t, struct thread *th, struct trap *trap,
			      struct arch_regs *regs)
{
	call_continue_at(t, th, regs, trap->stub.jump);
	return TRAP_RESUME;
}

/* The breakpoint of the function at @entry, which may be after its first instruction. */
static const struct trap *find_function(const struct address_space *s, taddr_t entry)
{
	for (size_t i = 0; i < s->traps.count; i++) {
		const struct trap *trap = &s->traps.data[i];
		if (trap->kind == TRAP_ENTRY && trap->entry == entry && !trap->is_removed)
			return trap;
	}
	return NULL;
}

static int install(struct target *t, struct address_space *s, const struct module *m,
		   const struct probe_again *again)
{
	const struct trap *function = find_function(s, m->bias + again->function);
	uint8_t bytes[sizeof(again->bytes)];
	struct trap trap = {.kind = TRAP_AGAIN, .serve = serve, .addr = m->bias + again->vaddr,
			    .module = m->id};

	if (!function || space_trap_find(s, trap.addr))
		return 0;
	int rc = space_read(s, trap.addr, bytes, sizeof(bytes));
	if (rc == 0 && memcmp(bytes, again->bytes, sizeof(bytes)) != 0)
		rc = -ENOEXEC; /* differs from the file */
	trap.entry = trap.addr;
	trap.stub.jump = function->stub.jump;
	return rc != 0 ? rc : space_trap_put(s, t->arch, &trap);
}

/* For the functions of @m that have a breakpoint. */
static void again_install(struct target *t, struct address_space *s, const struct module *m)
{
	for (size_t i = 0; i < m->sites->again.count; i++) {
		const struct probe_again *again = &m->sites->again.data[i];
		int rc = install(t, s, m, again);

		if (rc != 0)
			log_verbose("the jump at %#lx in %s, by which a watched function begins "
				    "again, gets no breakpoint: %s",
				    (unsigned long)(m->bias + again->vaddr), m->path,
				    strerror(-rc));
	}
}

/*
 * Installs traps and stubs in a space, and removes them again.
 *
 *	in     each watched function of each module: a stub near it (stub_area.c), a trap at its
 *	       entry and one in the stub where the function returns
 *	out    the text is restored, threads are stepped out of our pages; a page that is
 *	       still in use by some stack stays: retried later, or left
 */

#define FUNCTION_MAX 65536u

/* -- one function -- */

static void report_unwatched(const struct probe *probe, const struct module *m, const char *why)
{
	if (probe->custom && !probe->custom->setters)
		log_warn("--%s: %s in %s is not watched: %s",
			 probe->kind == PROBE_WITHIN ? "within" : "probe", probe->symbol, m->path,
			 why);
	else
		log_verbose("%s in %s is not watched: %s", probe->symbol, m->path, why);
}

static void count_probe(struct target *t, struct address_space *s, const struct probe *probe)
{
	s->watch.functions += probe->function != FUNCTION_NONE;
	t->stats.probes = MAX(t->stats.probes, s->watch.functions);
}

/* The dynamic linker has changed its list of objects. */
static enum trap_answer serve_loader(struct target *t, struct thread *th, struct trap *trap,
				     struct arch_regs *regs)
{
	struct address_space *s = th->process->space;
	taddr_t addr = trap->addr, next = trap->stub.jump;
	if (loader_has_changed(s, trap))
		install_update(t, s, th);
	trap = space_trap_find(s, addr); /* the table may have been reallocated */
	call_continue_at(t, th, regs, trap ? trap->stub.jump : next);
	return TRAP_RESUME;
}

#define FOLLOWED_JUMPS 4
#define FOLLOWED_SIZE 4096u

/*
 * Whether the function at @entry, whose first @size bytes are @code, or one that it jumps to, uses
 * arguments on the stack. malloc's family has none.
 */
static bool uses_stack_arguments(const struct target *t, const struct address_space *s,
				 taddr_t entry, const uint8_t *code, size_t size)
{
	uint8_t text[FOLLOWED_SIZE];
	struct arch_code c = {.bytes = code, .size = size, .at = entry};
	taddr_t next;

	for (unsigned i = 0; i <= FOLLOWED_JUMPS; i++) {
		if (t->arch->uses_stack_arguments(&c, &next))
			return true;
		size = sizeof(text);
		while (next && size && space_read_text(s, next, text, size) != 0)
			size /= 2;
		if (!next || !size)
			return false;
		c = (struct arch_code){.bytes = text, .size = size, .at = next};
	}
	return false;
}

/* Writes the stub of @site and records its traps. *addr_out: the breakpoint's place; 0 = none. */
static int prepare_site(const struct stub_place *place, const struct probe_site *site,
			taddr_t *addr_out)
{
	struct target *t = place->target;
	struct address_space *s = place->space;
	const struct module *m = place->module;
	taddr_t entry = m->bias + site->vaddr;
	size_t size = MIN(site->size, (uint64_t)FUNCTION_MAX);
	_cleanup_free_ uint8_t *code = xmalloc(size);
	uint8_t out[STUB_MAX];
	struct stub_area *area;
	struct trap trap = {.kind = TRAP_ENTRY,
			    .serve = site->probe->kind == PROBE_LOADER ?
					     serve_loader :
					     entry_handler(site->probe),
			    .probe = site->probe,
			    .module = m->id,
			    .entry = entry,
			    .is_leaf = site->is_leaf,
			    .guess = site->guess,
			    .code_size = (uint32_t)size};
	struct arch_move move = {.code = code,
				 .code_size = size,
				 .from = entry,
				 .out = out,
				 .out_size = sizeof(out),
				 .why = "no room for its stub"};
	int rc = space_read_text(s, entry, code, size);
	if (rc == 0 && site->probe->custom && !site->probe->custom->setters &&
	    site->probe->kind != PROBE_WITHIN && uses_stack_arguments(t, s, entry, code, size)) {
		move.why = "it has arguments on the stack";
		rc = -ENOTSUP;
	}
	if (rc == 0)
		rc = stub_area_get(place, entry, &area);
	if (rc == 0) {
		move.to = area->start + area->used;
		rc = t->arch->make_stub(&move, &trap.stub);
	}
	*addr_out = 0;
	if (rc == 0 && space_trap_find(s, trap.stub.patch))
		return 0; /* another name of the same code */
	if (rc == 0)
		rc = space_write(s, area->start + area->used, out, trap.stub.size);
	if (rc == 0) {
		stub_area_use(area, trap.stub.size);
		struct trap back = trap;
		back.kind = TRAP_RETURN;
		back.serve = entry_serve_return;
		back.addr = trap.stub.trap;
		trap.addr = trap.stub.patch;
		space_trap_note(s, t->arch, &back);
		rc = space_trap_prepare(s, t->arch, &trap);
	}
	if (rc == 0 && site->guess)
		s->watch.guess = site->guess;
	if (rc == 0)
		*addr_out = trap.addr;
	else
		report_unwatched(site->probe, m, rc == -ENOTSUP ? move.why : strerror(-rc));
	return rc;
}

/* The breakpoint of a function, after prepare_site. */
static int arm_site(struct target *t, struct address_space *s, const struct module *m, taddr_t addr)
{
	const struct probe *probe = space_trap_find(s, addr)->probe;
	int rc = space_trap_arm(s, t->arch, addr);
	if (rc == 0)
		count_probe(t, s, probe);
	else
		report_unwatched(probe, m, strerror(-rc));
	return rc;
}

static bool is_wanted(const struct target *t, const struct address_space *s,
		      const struct module *m, const struct probe_site *site, bool is_allocator)
{
	enum probe_kind kind = site->probe->kind;
	if (t->options.probes.none)
		return kind == PROBE_LOADER;
	if (site->probe->custom)
		return !space_in_other_module(s, m, m->bias + site->vaddr);
	return !(kind == PROBE_MAPPING && !t->options.watch.mapping_calls) &&
	       !(kind == PROBE_END && !t->options.watch.program_end) &&
	       !(kind <= PROBE_FREE && !is_allocator) &&
	       !(m->hides_new && probe_is_cxx(site->probe)) &&
	       !space_in_other_module(s, m, m->bias + site->vaddr);
}

/* All are recorded before the first breakpoint is written: few transfers to the tracee. */
static void install_functions(struct target *t, struct thread *th, struct address_space *s,
			      struct module *m)
{
	VEC(taddr_t) breakpoints = {0};
	bool has_all = true; /* of those that are watched together */
	if (!t->options.probes.none)
		requests_install(t, s, m);
	again_find_sites(t, m);
	bool is_allocator = m->sites->list.count > 0 &&
			    soname_is_watched(m->file, t->options.probes.somalloc);
	m->hides_new = t->options.samples.heap && !t->options.probes.somalloc &&
		       soname_is_standard_cxx(m->file);
	int rc = 0;
	const struct stub_place place = {t, th, s, m};
	journal_hold(s);
	for (size_t i = 0; i < m->sites->list.count && rc != -ESRCH; i++) {
		const struct probe_site *site = &m->sites->list.data[i];
		taddr_t addr;
		if (!is_wanted(t, s, m, site, is_allocator))
			continue;
		rc = prepare_site(&place, site, &addr);
		if (rc == 0 && addr)
			*vec_add(&breakpoints) = addr;
		t->stats.unprobed += rc != 0 && rc != -ESRCH;
		has_all &= rc == 0 || !custom_probe_is_pointed(site->probe);
	}
	journal_flush(s);
	if (breakpoints.count > 0)
		stub_area_write_headers(s);
	for (size_t i = 0; i < breakpoints.count && rc != -ESRCH; i++) {
		const struct trap *trap = space_trap_find(s, breakpoints.data[i]);

		if (!has_all && custom_probe_is_pointed(trap->probe))
			continue;
		rc = arm_site(t, s, m, breakpoints.data[i]);
		t->stats.unprobed += rc != 0 && rc != -ESRCH;
	}
	vec_deinit(&breakpoints);
	if (rc != -ESRCH)
		again_install(t, s, m);
}

/* Whether the file of @m, which cannot be read, is an ELF file: generated code is in files, too. */
static bool is_object(const struct address_space *s, const struct module *m)
{
	char magic[SELFMAG];
	return space_read(s, m->bias, magic, sizeof(magic)) == 0 &&
	       memcmp(magic, ELFMAG, SELFMAG) == 0;
}

static void report_unreadable(struct target *t, const struct address_space *s,
			      const struct module *m)
{
	struct control *c = t->control;
	if (!is_object(s, m))
		return;
	for (size_t i = 0; i < c->unreadable.count; i++) {
		if (c->unreadable.data[i] == m->ino)
			return;
	}
	*vec_add(&c->unreadable) = m->ino;
	log_warn("process %d: the file of %s is gone or cannot be read: allocation functions in it "
		 "are not watched, and it has no names; with CAP_SYS_ADMIN ptmem could read it",
		 s->processes.pid, m->path);
}

static void install_module(struct target *t, struct thread *th, struct address_space *s,
			   struct module *m)
{
	bool has_sites = t->syscalls.way == SYSCALLS_SITES;
	if (m->is_vdso || (t->options.probes.none && !has_sites))
		return;
	if (m->file)
		install_functions(t, th, s, m);
	else
		report_unreadable(t, s, m);
	if (has_sites)
		syscall_sites_install(t, th, s, m);
}

struct install_context {
	struct target *target;
	struct thread *thread;
	bool is_early;        /* the dynamic linker is still at work on what it has mapped */
};

static void module_loaded(void *ctx, struct address_space *s, struct module *m)
{
	struct install_context *c = ctx;
	if (c->is_early)
		m->awaits_loader = true;
	else if (!s->watch.is_left)
		install_module(c->target, c->thread, s, m);
	if (s->sink.user)
		c->target->sink.module_loaded(c->target->sink.ctx, s, m);
}

static void module_unloaded(void *ctx, struct address_space *s, struct module *m)
{
	struct install_context *c = ctx;
	if (s->sink.user)
		c->target->sink.module_unloaded(c->target->sink.ctx, s, m);
}

void install_update(struct target *t, struct address_space *s, struct thread *th)
{
	struct install_context c = {t, th, false};
	space_update_modules(s, module_loaded, module_unloaded, &c);
	for (size_t i = 0; i < s->modules.count; i++) {
		struct module *m = s->modules.data[i];
		if (m->awaits_loader && !s->watch.is_left)
			install_module(t, th, s, m);
		m->awaits_loader = false;
	}
	if (t->syscalls.way == SYSCALLS_SITES && !s->watch.is_left)
		syscall_sites_check_code(t, s);
}

/*
 * An address in an object that the dynamic linker has not reported yet: its names are needed, but
 * its functions are not watched before the report. When a stack is walked depends on when records
 * are read, and writing breakpoints maps pages that the program would have faulted for.
 */
static void find_modules(struct target *t, struct address_space *s)
{
	struct install_context c = {t, NULL, true};
	if (s->watch.is_loading)
		space_update_modules(s, module_loaded, module_unloaded, &c);
	else
		install_update(t, s, NULL);
}

struct module *target_refresh_module(struct target *t, struct address_space *s, taddr_t pc)
{
	struct module *m = space_find_module(s, pc);
	if (m || space_is_known_miss(s, pc) || !space_may_be_code(s, pc))
		return m;
	find_modules(t, s);
	m = space_find_module(s, pc);
	if (!m)
		space_is_known_miss(s, pc); /* records it */
	return m;
}

static bool is_refused(const struct address_space *s)
{
	for (size_t i = 0; i < s->modules.count; i++) {
		if (s->modules.data[i]->sites && s->modules.data[i]->sites->is_refused)
			return true;
	}
	return false;
}

/* Whether there is code in Go, which has a heap of its own instead of malloc. */
static bool has_go(const struct address_space *s)
{
	for (size_t i = 0; i < s->modules.count; i++)
		if (s->modules.data[i]->file && go_table_of(s->modules.data[i]->file))
			return true;
	return false;
}

int install_probes(struct target *t, struct address_space *s, struct thread *th)
{
	int rc = space_update_modules(s, NULL, NULL, NULL);
	stub_area_adopt(s);
	for (size_t i = 0; i < s->modules.count; i++)
		install_module(t, th, s, s->modules.data[i]);
	if (t->syscalls.way == SYSCALLS_SITES)
		syscall_sites_check_code(t, s);
	if (is_refused(s) ||
	    (s->watch.functions + s->watch.markers == 0 && !t->options.probes.none &&
	     !loader_is_there(s) && !(t->options.probes.none_in_go && has_go(s))))
		return -ENOENT;
	syscalls_start(t, s, th);
	if (s->watch.is_profiled)
		heap_sampling_start(t, s);
	if (s->watch.is_profiled && !s->sink.user)
		t->sink.space_new(t->sink.ctx, s);
	s->watch.is_ready = true;
	thread_stacks_begin(t, s);
	return rc;
}

void install_at_start(struct target *t, struct thread *th)
{
	struct process *p = th->process;
	if (install_probes(t, p->space, th) != -ENOENT)
		return;
	if (p->is_first_image) {
		t->first.refusal = ATTACH_NO_PROBES;
		kill(p->pid, SIGKILL); /* nothing of it has run */
	} else {
		_cleanup_free_ char *path = proc_read_link(p->pid, "exe");

		log_warn("process %d: no malloc or other allocation function found in %s; %s not "
			 "profiled", p->pid, path ? path : "it",
			 has_go(p->space) ? "a Go program:" : "a stripped static program?");
		p->space->watch.is_profiled = false;
		t->sink.image_refused(t->sink.ctx, p->space,
				      "no malloc or other allocation function was found in it; "
				      "--trace=brk,mmap profiles its system calls");
	}
}

/* Called at the program's first instruction. */
static enum trap_answer serve_start(struct target *t, struct thread *th, struct trap *trap,
				    struct arch_regs *regs)
{
	taddr_t addr = trap->addr;
	space_trap_take(th->process->space, t->arch, trap);
	call_continue_at(t, th, regs, addr);
	install_at_start(t, th);
	return TRAP_RESUME;
}

int install_start_trap(struct target *t, struct thread *th)
{
	struct arch_regs regs;
	int rc = ptrace_get_regs(th->tid, &regs);
	struct trap trap = {
		.kind = TRAP_START, .serve = serve_start, .addr = regs.word[t->arch->pc]};
	return rc != 0 ? rc : space_trap_put(th->process->space, t->arch, &trap);
}

/* -- removal -- */

static int unmap(struct target *t, struct thread **th, taddr_t start, uint64_t size)
{
	const uint64_t args[6] = {start, size};
	int64_t result = -1;
	if (!*th || !seccomp_allows_injection(t, (*th)->tid, NULL))
		return -EPERM;
	if (t->recovery.is_guardian && !lost_code_may_be_ours((*th)->process->space, start))
		return 0;
	journal_remove_area((*th)->process->space,
			  start); /* it may become the program's own at any time */
	int rc = inject_syscall(t, *th, SYS_munmap, args, &result);
	if (rc == -ESRCH)
		*th = NULL;
	return rc != 0 ? rc : (int)result;
}

static void leave_area(struct target *t, struct address_space *s, struct thread **th,
		       struct stub_area *a, bool is_used)
{
	if (!a->size) /* the program's now */
		return;
	if (!is_used && a->is_slack && space_write(s, a->start, a->saved, a->size) == 0)
		return;
	if (!is_used && !a->is_slack && unmap(t, th, a->start, a->size) == 0)
		return;
	stub_area_leave(s, a);
	t->stats.pages_left += a->is_slack ? 0 : a->size / PAGE_SIZE_MIN;
}

/* Pads stay together: one that stays needs the recorder and the shared memory. */
static void keep_pads_together(struct target *t, struct address_space *s, struct thread **th,
			       bool *used)
{
	bool stay = stack_scan_uses_pads(s, used);
	for (size_t i = 0; i < s->own.areas.count; i++)
		used[i] |= s->own.areas.data[i].is_pads && stay;
	uint64_t size = 0;
	taddr_t at = s->pads ? pads_mapped_at(s, &size) : 0;
	if (!stay && at)
		unmap(t, th, at, size);
	else if (!stay && s->recovery.journal && s->recovery.journal->shared)
		unmap(t, th, s->recovery.journal->shared, s->recovery.journal->shared_size);
}

static bool is_outside_areas(void *ctx, taddr_t pc)
{
	const struct address_space *s = ctx;
	return !space_find_area(s, pc) && journal_injection_at(s, pc) < 0;
}

#define MAX_STEPS_OUT 20000

/* Moves all threads out of our pages. First makes the traps there harmless. */
static void step_threads_out(struct target *t, struct address_space *s)
{
	for (size_t i = 0; i < s->traps.count; i++) {
		const struct trap *trap = &s->traps.data[i];
		if ((trap->kind == TRAP_RETURN || trap->kind >= TRAP_PAD_ENTRY) &&
		    space_find_area(s, trap->addr)) /* the program may have replaced it */
			space_write(s, trap->addr, t->arch->nop_insn, t->arch->trap_size);
	}
	pads_run_out(t, s);
	struct thread *th;
	for_each_thread_in(t, s, th) {
		if (!th->is_exiting)
			inject_step_until(t, th, is_outside_areas, s, MAX_STEPS_OUT);
	}
}

/* The handler is about to be removed: from now on there must be no SIGTRAP. */
static void drain_sigtraps(struct target *t, struct address_space *s)
{
	if (!s->recovery.journal || !s->recovery.journal->has_handler)
		return;
	struct thread *th;
	for_each_thread_in(t, s, th) {
		if (!th->is_exiting && th->is_held && !th->vfork.is_waiting)
			inject_drain_sigtrap(t, th);
	}
}

bool install_remove(struct target *t, struct address_space *s, struct thread *th, bool is_last)
{
	uint32_t id = s->id;
	/* the walk of stacks below may find a module that the loader has not reported yet */
	s->watch.is_left = true;
	pads_disarm(t, s);
	stop_all_serve_traps(t, s);
	if (!space_exists(t, id))
		return true;
	for (size_t i = 0; i < s->traps.count; i++) {
		struct trap *trap = &s->traps.data[i];
		bool is_in_text = trap->kind == TRAP_ENTRY || trap->kind == TRAP_START ||
				  trap->kind == TRAP_SYSCALL || trap->kind == TRAP_AGAIN ||
				  trap->kind == TRAP_PAD_EXIT;
		if (is_in_text && space_trap_take(s, t->arch, trap) != 0)
			log_debug("space %u: the text at %#lx could not be restored", s->id,
				  (unsigned long)trap->addr);
		requests_removed(s, trap);
	}
	syscall_sites_leave(t, s);
	step_threads_out(t, s);
	guardian_restore_masks(t);
	pads_release_threads(t, s);
	exceptions_release_threads(t, s);
	drain_sigtraps(t, s);
	bool *used = stack_scan_used_areas(t, s);
	bool is_used = false;
	for (size_t i = 0; i < s->own.areas.count; i++)
		is_used |= used[i];
	bool in_injection[JOURNAL_INJECTIONS];
	is_used |= stack_scan_used_injections(t, s, in_injection);
	s->watch.is_ready = false;
	if (is_used && !is_last) {
		free(used);
		return false;
	}
	watch_file_close_left(t, s, th);
	/* not before: threads that run between two tries are still stepped in the second one */
	trap_handler_remove(t, s);
	keep_pads_together(t, s, &th, used);
	bool has_handler = s->recovery.journal && s->recovery.journal->has_handler;
	for (size_t i = 0; i < s->own.areas.count; i++) {
		struct stub_area *a = &s->own.areas.data[i];
		leave_area(t, s, &th, a, used[i] || (a->is_trap_handler && has_handler));
	}
	free(used);
	journal_clear_injections(s, in_injection);
	trap_table_clear(&s->traps);
	own_memory_clear(&s->own);
	return true;
}
