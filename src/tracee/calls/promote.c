/*
 * Promotes hot functions from breakpoints to pads; arch/pad.h describes pads.
 *
 * All threads are stopped. A thread of the target makes the shared memory (pad_state.h), the
 * recorder and a pad for each hot function are written, then each entry's first bytes become a
 * jump. An entry that a thread is in, or whose inner bytes any stack points to (an interrupted pc
 * in a signal frame), stays a breakpoint this time.
 */
#include "tracee/calls/calls.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "base/go_table.h"
#include "base/log.h"
#include "tracee/calls/client_request.h"
#include "tracee/calls/confirm.h"
#include "tracee/inject/seccomp.h"
#include "tracee/inject/stack_scan.h"
#include "tracee/inject/stub_area.h"
#include "tracee/os/ptrace.h"
#include "tracee/pads/heap_sampling.h"
#include "tracee/pads/pad_memory.h"
#include "tracee/pads/pad_state.h"
#include "tracee/pads/pads.h"
#include "tracee/state/journal.h"
#include "tracee/state/module.h"
#include "tracee/state/space.h"
#include "tracee/state/target_state.h"
#include "tracee/state/thread.h"
#include "tracee/state/trap_table.h"
#include "unwind/unwind.h"

#define MOVED_MAX 64

/* -- the memory -- */

static int load_recorder(struct target *t, struct address_space *s, struct thread *th,
			 struct pads *p)
{
	struct recorder_image image = arch_recorder_image();
	p->recorder_size = (uint32_t)ROUND_UP(image.size, (size_t)PAGE_SIZE_MIN);
	const uint64_t args[6] = {
		0, p->recorder_size, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
		(uint64_t)-1, 0};
	int64_t at = pads_mmap(t, th, args);
	if (at < 0)
		return (int)at;
	p->recorder = (taddr_t)at;
	own_memory_add_code(&s->own, p->recorder, p->recorder_size)->is_pads = true;
	const struct trap full = {
		.addr = p->recorder + image.full_trap, .kind = TRAP_PAD_FULL,
		.serve = pads_serve_full};
	space_trap_note(s, t->arch, &full);
	return space_write(s, p->recorder, image.code, image.size);
}

/* Whether more than one thread may be in pads of @s at a time. */
static bool is_shared(const struct target *t, const struct address_space *s)
{
	unsigned count = 0;
	const struct thread *th;
	for_each_thread_in(t, s, th)
		count++;
	return count != 1;
}

/* Whether stacks continue on others, or probably will: those of a program in Go. */
static bool has_switch(const struct address_space *s)
{
	for (size_t i = 0; i < s->modules.count; i++) {
		struct elf_file *file = s->modules.data[i]->file;

		if (file && go_table_of(file))
			return true;
	}
	return s->sink.unwind && unwind_has_switch(s->sink.unwind);
}

static int make_memory(struct target *t, struct address_space *s, struct thread *th)
{
	struct pads *p = xcalloc(1, sizeof(*p));
	int rc = pads_open_memory(t, s, th, p);
	if (rc != 0) {
		free(p);
		return rc;
	}
	rc = load_recorder(t, s, th, p);
	if (rc != 0) {
		pad_memory_deinit(&p->memory);
		pads_delete(p);
		return rc;
	}
	s->pads = p;
	tick_clock_measure(&t->ticks);
	ring_init(&p->ring, &p->memory, t->arch, &t->ticks);
	pad_owner_add(&t->pads->owner, &p->memory);
	pad_memory_set_shared(&p->memory, is_shared(t, s));
	pad_memory_set_flags(&p->memory,
			     (t->options.probes.verify ? PAD_VERIFY : 0) |
				     (t->options.events.no_stacks ? PAD_COUNT_ONLY : 0) |
				     (t->options.events.stack_pointers ? PAD_STACK_POINTER : 0) |
				     (s->heap.sampling ? PAD_SAMPLING : 0) |
				     (t->ticks.is_trusted ? 0 : PAD_NO_TICKS) |
				     (pads_lose(t) ? PAD_LOSES : 0) |
				     (s->recovery.is_unguarded ? PAD_SPINS : 0) |
				     (has_switch(s) ? PAD_SWITCHES : 0) |
				     requests_pad_flags(t, s));
	pad_memory_set_virtual(&p->memory, &s->virtual);
	pad_memory_set_labels(&p->memory, s->label);
	pad_memory_set_traps_calls(&p->memory, s->traps_calls);
	pads_set_gap(t, s);
	pads_follow_clock(t, p, !t->ticks.is_trusted);
	heap_sampling_start_pads(t, s);
	if (s->sink.unwind)
		unwind_set_memory(
			s->sink.unwind,
			(struct unwind_rule *)(void *)(p->memory.base + p->memory.layout.rules),
			PAD_RULE_BITS, NULL, NULL);
	return 0;
}

/* -- promotion -- */

/* The function and arguments for the pad at @trap. */
static struct pad_probe describe(const struct address_space *s, const struct trap *trap)
{
	const struct probe *probe = trap->probe;
	struct pad_probe d = {
		.function = probe->function,
		.size_arg = probe->is_string ? 0 : probe->size_arg,
		.count_arg = probe->count_arg,
		.align_arg = probe->align_arg,
		.block_arg = probe->block_arg,
		.out_arg = probe->result_arg,
		.is_leaf = trap->is_leaf,
		.is_string = probe->is_string,
		.is_open = probe_is_own(probe),
		.fixed_align = probe->is_page_aligned ? PAGE_SIZE_MIN : 0,
	};
	switch (probe->kind) {
	case PROBE_ALLOC:
		d.kind = PAD_ALLOC;
		break;
	case PROBE_REALLOC:
		d.kind = PAD_REALLOC;
		break;
	case PROBE_FREE:
		d.kind = probe->function == FUNCTION_DELETE || probe_is_own(probe) ||
					 (s->heap.sampling && !trap->is_leaf) ?
				 PAD_DELETE :
				 PAD_FREE;
		break;
	case PROBE_REQUEST:
	case PROBE_MARKED_ALLOC:
	case PROBE_MARKED_FREE:
		d = (struct pad_probe){.function = FUNCTION_REQUEST,
				       .release_function = FUNCTION_RELEASE,
				       .count_arg = PAD_NO_ARG,
				       .align_arg = PAD_NO_ARG,
				       .out_arg = PAD_NO_ARG};
		d.kind = probe->kind == PROBE_REQUEST ? PAD_REQUEST :
			 probe->kind == PROBE_MARKED_ALLOC ? PAD_MARKED_ALLOC : PAD_MARKED_FREE;
		break;
	case PROBE_WITHIN:
		d.kind = PAD_LABELLED;
		d.fixed_align = trap->entry;
		break;
	default:
		d.kind = PAD_THROW_CHECK;
		break;
	}
	return d;
}

/* Whether any thread's pc, or a word on its stack, is inside [start + 1, start + size). */
static bool is_occupied(const struct pads *p, taddr_t start, uint32_t size)
{
	for (size_t i = 0; i < p->stack_words.list.count; i++) {
		if (p->stack_words.list.data[i] - start - 1 < size - 1)
			return true;
	}
	return false;
}

static void note_pad_traps(struct target *t, struct address_space *s, const struct pad *pad,
			  uint32_t index)
{
	struct trap trap = {.addr = pad->entry_trap,
			    .kind = TRAP_PAD_ENTRY,
			    .serve = pads_serve_entry,
			    .pad = index};
	if (trap.addr)
		space_trap_note(s, t->arch, &trap);
	trap.addr = pad->leave_trap;
	trap.kind = TRAP_PAD_LEAVE;
	trap.serve = pads_serve_leave;
	if (trap.addr)
		space_trap_note(s, t->arch, &trap);
}

/* Logs why functions cannot be promoted. */
static int refuse(struct trap *trap, const char *why)
{
	trap->is_cold = true;
	trap->why_cold = why;
	return -ENOTSUP;
}

#define LABEL_HITS 4 /* a call of a labelled function whose labels can be read has published them */

/* Whether pads cannot read the labels of the function of @trap; the first call says that. */
static int check_labels(const struct target *t, const struct address_space *s, struct trap *trap)
{
	if (!t->arch->return_size)
		return refuse(trap, "its calls leave no return address at a known place");
	if (pads_label_function(s, trap->entry))
		return 0;
	trap->why_cold = "its labels are not known yet";
	return trap->hits < LABEL_HITS ? -EAGAIN : refuse(trap, "pads cannot read its labels");
}

static int check_promotion(struct target *t, struct address_space *s, struct trap *trap)
{
	const char *why = probe_why_cold(trap->probe);
	if (why)
		return refuse(trap, why);
	if (trap->guess && trap->hits < CONFIRM_CALLS) {
		trap->why_cold = "its calls have not confirmed it yet";
		return -EAGAIN;
	}
	if (trap->probe->custom && !trap->hits) { /* pads do not say that it was called */
		trap->why_cold = "it was not called yet";
		return -EAGAIN;
	}
	if (trap->probe->kind == PROBE_WITHIN)
		return check_labels(t, s, trap);
	if (t->options.events.free_stacks &&
	    (trap->probe->kind == PROBE_FREE || trap->probe->kind == PROBE_REALLOC))
		return refuse(trap, "pads record no stacks of frees");
	if (trap->probe->may_throw && (!t->arch->return_size || !exceptions_find_row(t, s)))
		return refuse(trap, "exceptions could not pass its pad");
	if (probe_is_marker(trap->probe) && !requests_may_jump(t, s, trap, &why))
		return refuse(trap, why);
	return 0;
}

/* The original bytes that a pad displaces: whole instructions. */
struct moved {
	uint8_t bytes[MOVED_MAX];
	size_t size;
};

static int read_moved(const struct target *t, const struct address_space *s, struct trap *trap,
		      struct moved *out)
{
	out->size = probe_is_marker(trap->probe) ? trap->code_size : trap->stub.moved;
	if (out->size > sizeof(out->bytes))
		return refuse(trap, "its first instructions are too long");
	int rc = space_read_text(s, trap->addr, out->bytes, out->size);
	if (rc == 0)
		memcpy(out->bytes, trap->original, MIN(out->size, t->arch->trap_size));
	return rc;
}

/* Assembles the pad of @trap, which displaces @code, in @out. */
static int make_pad(const struct stub_place *place, struct trap *trap, const struct moved *code,
		    uint8_t *out, struct pad *pad_out)
{
	struct address_space *s = place->space;
	struct pad_request request = {.probe = describe(s, trap),
				      .from = trap->addr,
				      .recorder = s->pads->recorder,
				      .control = s->pads->memory.target,
				      .code = code->bytes,
				      .code_size = code->size,
				      .is_sampling = s->heap.sampling != NULL,
				      .behind = probe_is_marker(trap->probe) ? trap->stub.jump : 0,
				      .saved = (uint8_t)MAX(s->unwind_through.saved_reg, 0)};
	const char *why = "";
	int rc = stub_area_take_pad(place, trap->entry, PAD_ROOM, &request.at);
	if (rc != 0)
		return rc;
	rc = arch_make_pad(&request, out, pad_out, &why);
	if (rc != 0)
		return refuse(trap, why);
	if (pad_out->pushes_return)
		return refuse(trap, "its moved code pushes a return address");
	return 0;
}

/* Writes @pad, whose code is @out, and records the jump to it. @code: as for make_pad. */
static int write_pad(const struct stub_place *place, uint32_t index, const struct pad *pad,
		     const uint8_t *out, const struct moved *code)
{
	struct target *t = place->target;
	struct address_space *s = place->space;
	struct pads *p = s->pads;
	int rc = space_write(s, pad->at, out, pad->size);
	if (rc != 0)
		return rc;
	*vec_add(&p->list) = *pad;
	*vec_add(&p->trap) = index;
	note_pad_traps(t, s, pad, (uint32_t)p->list.count);
	struct trap *trap = &s->traps.data[index];
	memcpy(trap->original, code->bytes, pad->patch_size);
	struct trap noted = *trap;
	noted.patch_size = pad->patch_size;
	journal_add_trap(s, t->arch, &noted);
	return 0;
}

/* Writes the jump to the pad at @index of the list. */
static int write_jump(struct address_space *s, size_t index)
{
	const struct pad *pad = &s->pads->list.data[index];
	struct trap *trap = &s->traps.data[s->pads->trap.data[index]];
	int rc = space_write(s, pad->patch_at, pad->patch, pad->patch_size);
	if (rc != 0)
		return rc;
	trap->pad = (uint32_t)index + 1;
	trap->patch_size = pad->patch_size;
	trap->why_cold = NULL;
	return 0;
}

static int prepare_pad(struct target *t, struct address_space *s, struct thread *th,
			uint32_t index)
{
	struct trap *trap = &s->traps.data[index];
	const struct module *m = space_find_module(s, trap->addr);
	uint8_t out[PAD_ROOM];
	struct pad pad;
	if (!m)
		return -ENOENT;
	int rc = check_promotion(t, s, trap);
	if (rc != 0)
		return rc;
	struct moved code;
	rc = read_moved(t, s, trap, &code);
	const struct stub_place place = {t, th, s, m};
	if (rc == 0)
		rc = make_pad(&place, trap, &code, out, &pad);
	if (rc != 0)
		return rc;
	if (is_occupied(s->pads, pad.patch_at, pad.moved)) {
		trap->why_cold = "a thread is in its first instructions";
		return -EAGAIN;
	}
	return write_pad(&place, index, &pad, out, &code);
}

/* Tells pads about the calls that @th, which has a slot, is inside of. */
static void note_calls(struct target *t, struct thread *th)
{
	taddr_t block;
	if (entry_take_delete(t, th, &block))
		*vec_add(&th->process->space->pads->deleted) =
			(struct pads_deleted){pad_thread(th)->slot, block};
	call_note_all(t, th);
}

static void add_all_threads(struct target *t, struct address_space *s)
{
	struct thread *th;
	for_each_thread_in(t, s, th) {
		if (pad_thread_slot(th) >= 0 || th->is_exiting)
			continue;
		pads_add_thread(t, th);
		if (pads_slot(th))
			note_calls(t, th);
	}
}

static void report_breakpoint(const struct trap *trap, int rc)
{
	if (rc != 0)
		log_verbose("%s at %#lx stays a breakpoint: %s", trap->probe->symbol,
			    (unsigned long)trap->addr,
			    trap->why_cold ? trap->why_cold : strerror(-rc));
}

static int prepare_pads(struct target *t, struct address_space *s, struct thread *th)
{
	int rc = 0;
	const uint32_t count = (uint32_t)s->traps.count; /* pads add their own */
	for (uint32_t i = 0; i < count && rc != -ESRCH; i++) {
		const struct trap *trap = &s->traps.data[i];
		if (trap->kind != TRAP_ENTRY || trap->is_removed || trap->pad || trap->is_cold ||
		    !probe_may_be_hot(trap->probe) ||
		    (trap->probe->kind == PROBE_CATCH && t->options.watch.catches))
			continue;
		rc = prepare_pad(t, s, th, i);
		report_breakpoint(&s->traps.data[i], rc);
	}
	return rc == -ESRCH ? rc : 0;
}

/*
 * All pads are complete and recorded before the first jump is written. -ESRCH: the program has
 * died; other failures only keep a breakpoint.
 */
static int promote_traps(struct target *t, struct address_space *s, struct thread *th)
{
	const size_t first = s->pads->list.count;
	journal_hold(s);
	int rc = prepare_pads(t, s, th);
	journal_flush(s);
	for (size_t i = first; i < s->pads->list.count && rc != -ESRCH; i++) {
		rc = write_jump(s, i);
		report_breakpoint(&s->traps.data[s->pads->trap.data[i]], rc);
	}
	return rc == -ESRCH ? rc : 0;
}

/*
 * Without a C library there may be no thread pointers, or not yet. Where pads read them from where
 * they point to, as the ABI of threads has it, that must be so.
 */
static bool have_thread_pointers(struct target *t, struct address_space *s)
{
	struct thread *th;
	for_each_thread_in(t, s, th) {
		struct arch_regs regs;
		uint64_t word = 0;
		if (th->is_exiting || ptrace_get_regs(th->tid, &regs) != 0)
			continue;
		uint64_t pointer = regs.word[t->arch->thread_pointer];
		if (!pointer)
			return false;
		if (t->arch->has_self_pointer &&
		    (space_read(s, pointer, &word, sizeof(word)) != 0 || word != pointer))
			return false;
	}
	return true;
}

/*
 * Reads the unwind rules of what is on most stacks: the program and the objects of watched
 * functions.
 */
static void prepare_unwinder(struct target *t, struct address_space *s)
{
	bool may_throw = false;
	const struct module *last = s->modules.count > 0 ? s->modules.data[0] : NULL;
	if (!s->sink.unwind)
		return;
	if (last)
		unwind_prepare(last);
	for (uint32_t i = 0; i < s->traps.count; i++) {
		const struct trap *trap = &s->traps.data[i];
		if (trap->kind != TRAP_ENTRY || trap->is_removed)
			continue;
		const struct module *m = space_find_module(s, trap->addr);
		if (m && m != last)
			unwind_prepare(m);
		last = m;
		may_throw |= trap->probe->may_throw;
	}
	if (may_throw)
		exceptions_find_row(t, s);
}

void promote_prepare(struct target *t, struct address_space *s)
{
	if (s->pads)
		return; /* what the first promotion has read is known */
	if (s->heap.sampling)
		heap_sampling_prepare(t);
	prepare_unwinder(t, s);
}

/* @why: of a seccomp filter; its reason is NULL if @rc has another cause. */
static void report_impossible(struct address_space *s, int rc,
			      const struct seccomp_refusal *why)
{
	const char *reason = why->reason	? why->reason :
			     rc == -ENOMEM ? "its address space is limited (ulimit -v)" :
			     rc == -EFBIG  ? "files are limited (ulimit -f)" :
					     strerror(-rc);
	snprintf(s->promotion.why, sizeof(s->promotion.why), "%s%s", reason,
		 why->reason ? why->call : "");
	log_info("process %d%s on breakpoints: %s", s->processes.pid,
		 s->pads ? ": new functions stay" : " stays", s->promotion.why);
}

int promote_functions(struct target *t, struct address_space *s, struct thread *th)
{
	struct seccomp_refusal why = {0};
	if (t->options.probes.no_promotion || s->promotion.is_impossible)
		return -EPERM;
	if (!th || !have_thread_pointers(t, s))
		return -EAGAIN; /* asked again when breakpoints were hit as often again */
	int rc = seccomp_allows_injection(t, th->tid, &why) ? 0 : -EPERM;
	if (rc == 0 && !s->pads)
		rc = make_memory(t, s, th);
	if (rc != 0) {
		s->promotion.is_impossible = true;
		report_impossible(s, rc, &why);
		return rc;
	}
	stack_scan_collect(t, s, &s->pads->stack_words);
	add_all_threads(t, s);
	rc = promote_traps(t, s, th);
	vec_deinit(&s->pads->stack_words.list);
	if (rc == 0)
		pad_memory_set_off(&s->pads->memory, s->pads->ring.broken != NULL);
	return rc;
}
