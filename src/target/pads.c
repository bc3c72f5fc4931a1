/*
 * Promotion and service of pads; pads.h has the picture, arch/pad.h the contract.
 *
 * Promotion happens with all threads stopped: the shared memory is made by a thread
 * of the target (memfd_create and two mmaps), the recorder and a pad for each hot
 * function are written, then each entry's first bytes become a jump. An entry that a
 * thread stands in, or whose inner bytes any stack points into (an interrupted pc in
 * a signal frame), stays a breakpoint this time.
 */
#include "target/pads.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "target/guard.h"
#include "target/ptrace.h"
#include "target/requests.h"

#define RULE_BITS 17
#define MIN_SLOTS 256u
#define MAX_SLOTS 8192u
#define MAIN_STACK_ROOM (1ull << 30)

/* -- records to events -- */

struct delivery {
	struct target *target;
	struct space *space;
	struct heap_event event; /* filled in for each record; cleared once, for that takes time */
};

static int read_nothing(void *ctx, taddr_t addr, void *buf, size_t size)
{
	struct space *s = ctx;
	return space_read(s, addr, buf, size);
}

__attribute__((noinline)) static void deliver_raw(struct delivery *d, const struct ring_record *r)
{
	struct stack_view view = {.regs = *r->regs, .start = r->start, .data = r->stack, .size = r->stack_size,
				  .read = read_nothing, .read_ctx = d->space};
	d->event.stack = &view;
	d->target->sink.event(d->target->sink.ctx, d->space, &d->event);
	d->event.stack = NULL;
}

/* Whether @r is the free of a delete that was an event already. The slot's entry goes in any case. */
static bool is_deleted(struct pads *p, const struct ring_record *r)
{
	for (size_t i = 0; i < p->deleted.count; i++) {
		struct pads_deleted deleted = p->deleted.data[i];
		if (deleted.slot != r->slot)
			continue;
		vec_take_swap(&p->deleted, i);
		return r->kind == HEAP_FREE && r->addr == deleted.block;
	}
	return false;
}

static void deliver(void *ctx, const struct ring_record *r)
{
	struct delivery *d = ctx;
	if (d->space->pads->deleted.count > 0 && is_deleted(d->space->pads, r))
		return;
	const struct pads *p = d->space->pads;
	struct heap_event *ev = &d->event;
	ev->kind = r->kind;
	if (!r->old_addr) {
		if (r->kind == HEAP_REALLOC_BEGIN)
			return;
		if (r->kind == HEAP_REALLOC_END)
			ev->kind = HEAP_ALLOC;
	}
	ev->function = r->function;
	ev->is_inner = r->is_inner;
	ev->addr = r->addr;
	ev->old_addr = r->old_addr;
	ev->size = r->size;
	ev->align = r->align;
	ev->sp = r->sp;
	ev->path = r->slot;
	ev->thread = r->slot < p->owner.count ? (uint32_t)p->owner.data[r->slot] : 0;
	ev->frame = r->has_stack ? r->frame : NULL;
	if (r->has_stack) {
		ev->frame_count = r->frame_count;
		ev->kept = r->kept;
	}
	if (!d->space->is_profiled || !d->space->is_ready)
		return;
	if (r->has_raw)
		deliver_raw(d, r);
	else
		d->target->sink.event(d->target->sink.ctx, d->space, ev);
}

size_t pads_drain_some(struct target *t, struct space *s)
{
	struct delivery d = {t, s, {.time_ns = t->now_ns}};
	return s->pads->last_drained = ring_drain(&s->pads->ring, PADS_DRAIN_BATCH, deliver, &d);
}

size_t pads_drain(struct target *t, struct space *s)
{
	size_t sum = 0, n;
	do {
		n = pads_drain_some(t, s);
		sum += n;
	} while (n >= PADS_DRAIN_BATCH);
	return s->pads->last_drained = sum;
}

void pads_catch_up(struct target *t, struct space *s)
{
	if (!s->pads || t->is_abandoned)
		return;
	uint64_t end = s->pads->ring.position + ring_pending(&s->pads->ring);
	for (;;) {
		pads_drain(t, s);
		if (s->pads->ring.position >= end || !ring_has_hole(&s->pads->ring))
			return;
		ring_pass_hole(&s->pads->ring, false);
	}
}

void pads_finish(struct target *t, struct space *s)
{
	if (!s->pads)
		return;
	pads_catch_up(t, s);
	t->stats.holes += s->pads->ring.late_count;
	t->stats.ring_jumps += s->pads->ring.jumps;
	t->stats.records += s->pads->ring.stats.records;
	t->stats.raw_records += s->pads->ring.stats.raw;
	t->stats.ring_bytes += s->pads->ring.stats.bytes;
}

void pads_free(struct target *t, struct space *s)
{
	struct pads *p = s->pads;
	if (!p)
		return;
	pad_owner_remove(&t->pad_owner, &p->memory);
	ring_deinit(&p->ring);
	pad_memory_deinit(&p->memory);
	vec_deinit(&p->list);
	vec_deinit(&p->trap);
	vec_deinit(&p->owner);
	vec_deinit(&p->deleted);
	free(p);
	s->pads = NULL;
}

/* -- threads -- */

struct pad_slot *pads_slot(const struct thread *th)
{
	struct pads *p = th->process->space->pads;
	return p && th->thread_pointer ? pad_memory_slot(&p->memory, th->slot) : NULL;
}

/* The stack that @th runs on: as its clone said, else by the map that holds @sp. */
static int stack_bounds(struct target *t, struct thread *th, taddr_t sp, taddr_t *low, taddr_t *high)
{
	if (th->stack_high && sp >= th->stack_low && sp < th->stack_high) {
		*low = th->stack_low;
		*high = th->stack_high;
		return 0;
	}
	struct maps maps;
	int rc = maps_read(th->process->space->reader, &maps);
	if (rc != 0)
		return rc;
	const struct map *m = maps_find(&maps, sp);
	rc = m ? 0 : -EFAULT;
	if (m) {
		bool is_main = strcmp(m->path, "[stack]") == 0;
		*low = is_main && m->start > MAIN_STACK_ROOM ? m->start - MAIN_STACK_ROOM : m->start;
		*high = m->end;
		if (th->thread_pointer > sp && th->thread_pointer < *high)
			*high = th->thread_pointer; /* the thread's control block ends its stack */
	}
	maps_deinit(&maps);
	(void)t;
	return rc;
}

static void own_slot(struct pads *p, struct thread *th, uint32_t slot)
{
	while (p->owner.count <= slot)
		*vec_add(&p->owner) = 0;
	p->owner.data[slot] = th->tid;
	th->slot = slot;
	ring_reset_slot(&p->ring, slot);
}

static int give_slot(struct target *t, struct thread *th, uint64_t thread_pointer, taddr_t sp)
{
	struct pads *p = th->process->space->pads;
	taddr_t low, high;
	th->thread_pointer = thread_pointer;
	int rc = stack_bounds(t, th, sp, &low, &high);
	if (rc == 0) {
		pads_catch_up(t, th->process->space); /* a slot used before: its records come first */
		rc = pad_memory_add_thread(&p->memory, thread_pointer, low, high);
	}
	if (rc < 0) {
		th->thread_pointer = 0;
		return rc;
	}
	own_slot(p, th, (uint32_t)rc);
	return 0;
}

/* Whether another thread has the slot of @thread_pointer (clone without thread-local storage). */
static bool is_taken(const struct thread *th, uint64_t thread_pointer)
{
	struct pads *p = th->process->space->pads;
	int slot = pad_memory_find_thread(&p->memory, thread_pointer);
	return slot >= 0 && (size_t)slot < p->owner.count && p->owner.data[slot] &&
	       p->owner.data[slot] != th->tid;
}

void pads_add_thread(struct target *t, struct thread *th)
{
	struct arch_regs regs;
	if (!th->process->space->pads || ptrace_get_regs(th->tid, &regs) != 0)
		return;
	uint64_t pointer = regs.word[t->arch->thread_pointer];
	if (pointer == 0 || (is_taken(th, pointer) && th->process->is_vfork_child))
		return; /* shares its parent's: breakpoints serve it where the pads cannot */
	give_slot(t, th, pointer, regs.word[t->arch->sp]);
}

void pads_thread_exit(struct target *t, struct thread *th)
{
	struct space *s = th->process->space;
	struct pads *p = s->pads;
	if (!p || !th->thread_pointer)
		return;
	pads_catch_up(t, s);
	if (p->owner.data[th->slot] != th->tid)
		return; /* its thread pointer is in use again */
	p->owner.data[th->slot] = 0;
	pad_memory_remove_thread(&p->memory, th->thread_pointer);
	th->thread_pointer = 0;
}

/* -- making pads -- */

bool pads_are_possible(const struct target *t, const struct space *s, const char **why_out)
{
	*why_out = t->options.no_promotion ? "--probes=break" :
		   s->is_break_only ? "its shared memory could not be made" : NULL;
	return !*why_out;
}

/* A NUL byte in the target, as a name for memfd_create: the padding of an ELF header. */
static taddr_t find_empty_string(const struct space *s)
{
	for (size_t i = 0; i < s->modules.count; i++) {
		const struct module *m = s->modules.data[i];
		uint8_t c = 1;
		if (m->is_vdso && space_read(s, m->start + 12, &c, 1) == 0 && c == 0)
			return m->start + 12;
	}
	for (size_t i = 0; i < s->modules.count; i++) {
		const struct module *m = s->modules.data[i];
		uint8_t page[256];
		ssize_t n = space_read_some(s, m->start, page, sizeof(page));
		uint8_t *zero = n > 0 ? memchr(page, 0, (size_t)n) : NULL;
		if (zero)
			return m->start + (taddr_t)(zero - page);
	}
	return 0;
}

static int64_t call(struct target *t, struct thread *th, long nr, const uint64_t args[6])
{
	int64_t result;
	int rc = inject_syscall(t, th, nr, args, &result);
	return rc != 0 ? rc : result;
}

static int64_t map_shared(struct target *t, struct thread *th, int fd, const struct pad_memory *m)
{
	const uint64_t first[6] = {0, m->map_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, (uint64_t)fd, 0};
	int64_t at = call(t, th, SYS_mmap, first);
	if (at < 0)
		return at;
	const uint64_t again[6] = {(uint64_t)at + m->file_size, m->ring_size, PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_FIXED, (uint64_t)fd, m->ring};
	int64_t rc = call(t, th, SYS_mmap, again);
	if (rc < 0) {
		const uint64_t all[6] = {(uint64_t)at, m->map_size};
		call(t, th, SYS_munmap, all);
		return rc;
	}
	return at;
}

static uint64_t ring_size(const struct target *t)
{
	if (t->options.ring_size)
		return t->options.ring_size;
	return 1u << 20; /* what both sides touch stays in their second level caches */
}

static int open_memory(struct target *t, struct space *s, struct thread *th, struct pads *p)
{
	char name[64];
	uint64_t args[6] = {find_empty_string(s), MFD_CLOEXEC};
	if (!args[0])
		return -ENOEXEC;
	int64_t fd = call(t, th, SYS_memfd_create, args);
	if (fd < 0)
		return (int)fd;
	snprintf(name, sizeof(name), "/proc/%d/fd/%d", (int)s->reader, (int)fd);
	int own = open(name, O_RDWR | O_CLOEXEC);
	int rc = own < 0 ? -errno : 0;
	uint32_t slots = MIN(MAX(MIN_SLOTS, 4 * t->thread_count), MAX_SLOTS);
	const struct pad_memory_options options = {ring_size(t), slots, RULE_BITS};
	if (rc == 0) {
		rc = pad_memory_init(&p->memory, own, &options);
		if (rc != 0)
			close(own);
	}
	if (rc == 0) {
		int64_t at = map_shared(t, th, (int)fd, &p->memory);
		if (at < 0) {
			pad_memory_deinit(&p->memory);
			rc = (int)at;
		} else {
			pad_memory_locate(&p->memory, (taddr_t)at);
			guard_note_shared(s, (taddr_t)at, p->memory.map_size);
		}
	}
	const uint64_t close_args[6] = {(uint64_t)fd};
	call(t, th, SYS_close, close_args);
	return rc;
}

static int load_blob(struct target *t, struct space *s, struct thread *th, struct pads *p)
{
	struct pad_blob blob = arch_pad_blob();
	p->blob_size = (uint32_t)ROUND_UP(blob.size, (size_t)PAGE_SIZE_MIN);
	const uint64_t args[6] = {0, p->blob_size, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, (uint64_t)-1, 0};
	int64_t at = call(t, th, SYS_mmap, args);
	if (at < 0)
		return (int)at;
	p->blob = (taddr_t)at;
	*vec_add(&s->areas) = (struct stub_area){
		.start = p->blob, .size = p->blob_size, .used = p->blob_size, .is_pads = true,
	};
	int rc = space_write(s, p->blob, blob.code, blob.size);
	const struct trap full = {.addr = p->blob + blob.full_trap, .kind = TRAP_PAD_FULL};
	return rc != 0 ? rc : space_trap_put(s, t->arch, &full);
}

/* Whether more than one thread may be in pads of @s at a time. */
static bool is_shared(const struct target *t, const struct space *s)
{
	unsigned count = 0;
	for (size_t i = 0; i < t->threads.capacity; i++) {
		const struct thread *th = t->threads.data[i];
		count += th && th->process->space == s;
	}
	return count != 1;
}

void pads_share(struct space *s)
{
	if (s->pads)
		s->pads->memory.control->shared = 1;
}

static int make_memory(struct target *t, struct space *s, struct thread *th)
{
	struct pads *p = xcalloc(1, sizeof(*p));
	int rc = open_memory(t, s, th, p);
	if (rc != 0) {
		free(p);
		return rc;
	}
	s->pads = p;
	rc = load_blob(t, s, th, p);
	if (rc != 0) {
		pads_free(t, s);
		return rc;
	}
	ring_init(&p->ring, &p->memory, t->arch);
	pad_owner_add(&t->pad_owner, &p->memory);
	p->memory.control->shared = is_shared(t, s);
	p->memory.control->flags = (t->options.verify ? PAD_VERIFY : 0) | (t->options.no_stacks ? PAD_COUNT_ONLY : 0) |
				   (t->options.stack_pointers ? PAD_STACK_POINTER : 0) | requests_pad_flags(t, s);
	if (t->sink.rule_memory)
		t->sink.rule_memory(t->sink.ctx, s, (struct unwind_rule *)(void *)(p->memory.base + p->memory.rules),
				    RULE_BITS);
	return 0;
}

/* What the pad of @probe does. */
static struct pad_probe describe(const struct probe *probe)
{
	struct pad_probe d = {
		.function = probe->function, .size_arg = probe->size_arg, .count_arg = probe->count_arg,
		.align_arg = probe->align_arg, .block_arg = probe->block_arg, .out_arg = probe->result_arg,
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
		d.kind = probe->function == FUNCTION_DELETE ? PAD_DELETE : PAD_FREE;
		break;
	case PROBE_REQUEST:
	case PROBE_MARKED_ALLOC:
	case PROBE_MARKED_FREE:
		d = (struct pad_probe){.function = FUNCTION_REQUEST, .count_arg = PAD_NO_ARG, .align_arg = PAD_NO_ARG,
				       .block_arg = PAD_NO_ARG, .out_arg = PAD_NO_ARG};
		d.kind = probe->kind == PROBE_REQUEST ? PAD_REQUEST :
			 probe->kind == PROBE_MARKED_ALLOC ? PAD_MARKED_ALLOC : PAD_MARKED_FREE;
		break;
	default:
		d.kind = PAD_THROW_CHECK;
		break;
	}
	return d;
}

/* Whether any thread's pc, or a word on its stack, lies inside [start + 1, start + size). */
static bool is_occupied(struct target *t, const struct space *s, taddr_t start, uint32_t size)
{
	for (size_t i = 0; i < t->stack_words.count; i++) {
		if (t->stack_words.data[i] - start - 1 < size - 1)
			return true;
	}
	(void)s;
	return false;
}

static void put_pad_traps(struct target *t, struct space *s, const struct pad *pad, uint32_t index)
{
	struct trap trap = {.addr = pad->entry_trap, .kind = TRAP_PAD_ENTRY, .pad = index};
	if (trap.addr)
		space_trap_put(s, t->arch, &trap);
	trap.addr = pad->leave_trap;
	trap.kind = TRAP_PAD_LEAVE;
	if (trap.addr)
		space_trap_put(s, t->arch, &trap);
}

static int promote_trap(struct target *t, struct space *s, struct thread *th, uint32_t index)
{
	struct trap trap = s->traps.data[index];
	struct pads *p = s->pads;
	const struct module *m = space_find_module(s, trap.addr);
	taddr_t entry = trap.entry;
	uint8_t out[PAD_ROOM];
	struct pad pad;
	struct pad_request request = {.probe = describe(trap.probe), .entry = entry, .blob = p->blob,
				      .control = p->memory.target, .code_size = trap.code_size,
				      .behind = probe_is_marker(trap.probe) ? trap.stub.jump : 0};
	if (!m)
		return -ENOENT;
	const char *why = "";
	if (probe_is_marker(trap.probe) && !requests_may_jump(t, s, &trap, &why)) {
		s->traps.data[index].is_cold = true;
		s->traps.data[index].why_cold = why;
		return -ENOTSUP;
	}
	_cleanup_free_ uint8_t *code = xmalloc(trap.code_size + 1);
	int rc = space_read_text(s, entry, code, trap.code_size);
	if (rc == 0)
		memcpy(code + (trap.addr - entry), trap.original, t->arch->trap_size);
	request.code = code;
	if (rc == 0)
		rc = install_take_room(t, th, s, m, entry, PAD_ROOM, &request.at);
	if (rc != 0)
		return rc;
	rc = arch_make_pad(&request, out, &pad, &why);
	if (rc != 0 || pad.pushes_return || pad.patch_at != trap.addr) {
		s->traps.data[index].is_cold = true;
		s->traps.data[index].why_cold = rc != 0 ? why : "its moved code pushes a return address";
		return -ENOTSUP;
	}
	if (is_occupied(t, s, pad.patch_at, pad.moved)) {
		s->traps.data[index].why_cold = "a thread stands in its first instructions";
		return -EAGAIN;
	}
	rc = space_write(s, pad.at, out, pad.size);
	if (rc != 0)
		return rc;
	*vec_add(&p->list) = pad;
	*vec_add(&p->trap) = index;
	put_pad_traps(t, s, &pad, (uint32_t)p->list.count);
	struct trap *tp = &s->traps.data[index];
	memcpy(tp->original, code + (trap.addr - entry), pad.patch_size);
	trap = *tp;
	trap.patch_size = pad.patch_size;
	guard_note_trap(s, t->arch, &trap);
	rc = space_write(s, pad.patch_at, pad.patch, pad.patch_size);
	if (rc != 0)
		return rc;
	tp->pad = (uint32_t)p->list.count;
	tp->patch_size = pad.patch_size;
	tp->why_cold = NULL;
	t->stats.promoted++;
	return 0;
}

static void add_all_threads(struct target *t, struct space *s)
{
	for (size_t i = 0; i < t->threads.capacity; i++) {
		struct thread *th = t->threads.data[i];
		if (!th || th->process->space != s || th->thread_pointer || th->is_exiting)
			continue;
		pads_add_thread(t, th);
		struct pad_slot *slot = pads_slot(th);
		if (slot && th->has_deleted) {
			*vec_add(&s->pads->deleted) = (struct pads_deleted){th->slot, th->deleted_block};
			th->has_deleted = false;
		}
		if (slot && th->calls.count > 0) {
			const struct call *c = &th->calls.data[th->calls.count - 1];
			slot->guard = c->return_at;
			slot->guard_pc = c->stub_return;
			slot->kind = c->probe->kind == PROBE_FREE ? PAD_DELETE : PAD_ALLOC;
		}
	}
}

int pads_promote(struct target *t, struct space *s, struct thread *th)
{
	const char *why;
	if (!pads_are_possible(t, s, &why))
		return -EPERM;
	int rc = th && syscalls_may_inject(t, th->tid) ? 0 : -EPERM;
	if (rc == 0 && !s->pads)
		rc = make_memory(t, s, th);
	if (rc != 0) {
		s->is_break_only = true;
		log_info("process %d stays on breakpoints: %s", s->pid,
			 rc == -EPERM ? "a seccomp filter may forbid to map pads" : strerror(-rc));
		return rc;
	}
	install_collect_words(t, s);
	add_all_threads(t, s);
	for (uint32_t i = 0; i < s->traps.count; i++) {
		const struct trap *trap = &s->traps.data[i];
		if (trap->kind != TRAP_ENTRY || trap->is_removed || trap->pad || trap->is_cold ||
		    trap->probe->kind == PROBE_LOADER || trap->probe->kind == PROBE_MAPPING)
			continue;
		rc = promote_trap(t, s, th, i);
		trap = &s->traps.data[i];
		if (rc == -ESRCH)
			return rc;
		if (rc != 0)
			log_verbose("%s at %#lx stays a breakpoint: %s", trap->probe->symbol, (unsigned long)trap->addr,
				    trap->why_cold ? trap->why_cold : strerror(-rc));
	}
	s->pads->memory.control->off = 0;
	return 0;
}

/* -- service -- */

static struct trap *entry_trap(struct space *s, const struct trap *trap)
{
	return &s->traps.data[s->pads->trap.data[trap->pad - 1]];
}

/* The caller's view at a leave trap, where the stack is too large for a record. */
static void serve_leave(struct target *t, struct thread *th, struct trap *trap, const struct arch_regs *regs)
{
	struct space *s = th->process->space;
	struct pad_slot *slot = pads_slot(th);
	const struct probe *probe = entry_trap(s, trap)->probe;
	if (!slot || !slot->guard)
		return;
	struct arch_regs at_entry = *regs;
	for (int i = 0; i < 3; i++)
		at_entry.word[t->arch->arg[i]] = slot->arg[i];
	struct probe_call args;
	probe_read_call(probe, t->arch, &at_entry, &args);
	struct stack_view view;
	trap_fill_view(t, th, regs, slot->guard, &view);
	view.regs.reg[t->arch->dwarf_pc] = slot->return_pc;
	bool is_realloc = probe->kind == PROBE_REALLOC && args.block;
	struct heap_event ev = {
		.time_ns = t->now_ns, .thread = (uint32_t)th->tid, .kind = is_realloc ? HEAP_REALLOC_END : HEAP_ALLOC,
		.function = probe->function, .addr = slot->result, .size = args.size, .align = args.align,
		.old_addr = is_realloc ? args.block : 0, .stack = &view, .sp = t->options.stack_pointers ? slot->guard + 8 : 0,
	};
	if (s->is_profiled && s->is_ready)
		t->sink.event(t->sink.ctx, s, &ev);
}

void pads_wake_waiters(struct target *t, struct space *s)
{
	struct pads *p = s->pads;
	if (!p || (!ring_has_room(&p->ring) && !ring_has_hole(&p->ring) && !p->ring.late_count))
		return;
	for (size_t i = 0; i < t->threads.capacity; i++) {
		struct thread *th = t->threads.data[i];
		/* a hole at the read position may be the record of one who waits: once the tail moved, it
		 * may fit, and must go on however full the ring is */
		if (!th || !th->waits_for_room || th->process->space != s ||
		    (th->waited_tail == p->ring.published && !ring_has_room(&p->ring)))
			continue;
		th->waits_for_room = false;
		t->waiters--;
		thread_resume(t, th, 0);
	}
}

/* Who waits for room gets some behind the holes that hold the tail. */
static void jump(struct target *t, struct space *s)
{
	uint32_t id = s->id;
	loop_stop_world(t);
	bool is_alive = false;
	for (size_t i = 0; i < t->processes.count; i++)
		is_alive |= t->processes.data[i]->space->id == id;
	if (is_alive && s->pads) {
		pads_catch_up(t, s);
		ring_publish(&s->pads->ring);
		if (!ring_has_room(&s->pads->ring))
			ring_jump(&s->pads->ring);
	}
	loop_start_world(t);
}

#define STALL_NS 2000000u

void pads_unblock(struct target *t, struct space *s)
{
	struct pads *p = s->pads;
	uint64_t mark = p->ring.position ^ p->ring.published << 32 ^ p->ring.late_count;
	if (p->stall_mark != mark) {
		p->stall_mark = mark;
		p->stall_since_ns = t->now_ns;
		if (p->ring.room == p->memory.ring_size) /* else it goes round its holes already */
			return;
	} else if (t->now_ns - p->stall_since_ns < STALL_NS) {
		return;
	}
	p->stall_since_ns = t->now_ns;
	jump(t, s);
}

static bool serve_full(struct target *t, struct thread *th, const struct arch_regs *regs)
{
	struct space *s = th->process->space;
	uint64_t start = regs->word[t->arch->arg[0]], end = regs->word[t->arch->arg[1]];
	if (ring_is_left_out(&s->pads->ring, start)) {
		ring_forget_range(&s->pads->ring, start, end);
		ptrace_set_word(th->tid, t->arch->ret, 1);
		return true;
	}
	t->stats.ring_full++;
	uint64_t before = th->waited_tail;
	/* no further than to half empty: the rest is read while the program runs */
	size_t n;
	do {
		n = pads_drain_some(t, s);
		ring_publish(&s->pads->ring);
	} while (n >= PADS_DRAIN_BATCH && !ring_has_room(&s->pads->ring));
	/* the thread may have looked just before the tail moved: only who comes twice has to wait */
	th->waited_tail = s->pads->ring.published;
	return th->waited_tail != before || ring_has_room(&s->pads->ring);
}

void pads_throw(struct thread *th)
{
	struct space *s = th->process->space;
	struct pad_slot *slot = pads_slot(th);
	uint64_t word = 0;
	/* the guard stays: the catch finds it, and puts the pad back if it lies inside the call */
	if (slot && slot->guard && space_read(s, slot->guard, &word, sizeof(word)) == 0 && word == slot->guard_pc)
		space_write(s, slot->guard, &slot->return_pc, sizeof(slot->return_pc));
}

void pads_catch(struct target *t, struct thread *th, const struct arch_regs *regs)
{
	struct space *s = th->process->space;
	struct pad_slot *slot = pads_slot(th);
	if (!slot || !slot->guard || th->calls.count > 0)
		return;
	if (regs->word[t->arch->sp] >= slot->guard)
		slot->guard = 0;
	else
		space_write(s, slot->guard, &slot->guard_pc, sizeof(slot->guard_pc));
}

static void forget_frames(struct thread *th)
{
	struct pads *p = th->process->space->pads;
	pad_memory_reset_slot(&p->memory, th->slot);
	ring_reset_slot(&p->ring, th->slot);
}

enum pad_nesting { PAD_OUTERMOST, PAD_NESTED };

/* Decides about an entry with the guard set by a pad; a signal handler's call is outermost again. */
static enum pad_nesting decide_guard(struct target *t, struct thread *th, struct pad_slot *slot,
				     const struct arch_regs *regs)
{
	struct space *s = th->process->space;
	taddr_t sp = regs->word[t->arch->sp];
	uint64_t word = 0;
	if (slot->reason == PAD_REASON_STALE) {
		forget_frames(th); /* left by longjmp */
		return PAD_OUTERMOST;
	}
	bool is_alive = space_read(s, slot->guard, &word, sizeof(word)) == 0 && word == slot->guard_pc;
	struct stack_view view;
	trap_fill_view(t, th, regs, sp, &view);
	if (t->sink.in_signal(t->sink.ctx, s, &view, slot->guard + 2 * sizeof(word)))
		return PAD_OUTERMOST;
	if (is_alive && sp < slot->guard)
		return PAD_NESTED;
	forget_frames(th);
	return PAD_OUTERMOST;
}

/* A call from a stack that is not the slot's: a fiber, or a handler on its own stack. */
#define BOUNDS_TRAPS_TO_MOVE 16

static bool follow_stack(struct target *t, struct thread *th, struct pad_slot *slot, taddr_t sp)
{
	taddr_t low, high;
	if (slot->guard || ++th->bounds_traps < BOUNDS_TRAPS_TO_MOVE)
		return false;
	th->bounds_traps = 0;
	th->stack_high = 0;
	if (stack_bounds(t, th, sp, &low, &high) != 0)
		return false;
	forget_frames(th);
	slot->stack_low = low;
	slot->stack_high = high;
	return true;
}

static void resume_at(struct target *t, struct thread *th, struct arch_regs *regs, taddr_t pc)
{
	regs->word[t->arch->pc] = pc;
	ptrace_set_word(th->tid, t->arch->pc, pc);
}

static void serve_pad_entry(struct target *t, struct thread *th, struct trap *trap, struct arch_regs *regs)
{
	struct space *s = th->process->space;
	const struct pad *pad = &s->pads->list.data[trap->pad - 1];
	struct trap *entry = entry_trap(s, trap);
	taddr_t sp = regs->word[t->arch->sp];
	uint64_t pointer = regs->word[t->arch->thread_pointer];
	if (th->thread_pointer != pointer) {
		/* unknown so far: next time round the pad finds its slot */
		if (pointer && !is_taken(th, pointer) && give_slot(t, th, pointer, sp) == 0)
			return;
		trap_enter(t, th, entry, regs);
		return;
	}
	struct pad_slot *slot = pads_slot(th);
	if (entry->probe->kind == PROBE_THROW || entry->probe->kind == PROBE_CATCH) {
		trap_enter(t, th, entry, regs);
		resume_at(t, th, regs, pad->straight);
		return;
	}
	if (slot->reason == PAD_REASON_BOUNDS && follow_stack(t, th, slot, sp))
		return;
	if (probe_is_marker(entry->probe)) {
		if (slot->reason == PAD_REASON_STALE && slot->guard && th->calls.count == 0)
			forget_frames(th); /* left by longjmp */
		trap_enter(t, th, entry, regs);
		return;
	}
	bool by_pad = slot->guard && slot->guard_pc && th->calls.count == 0;
	if (by_pad && decide_guard(t, th, slot, regs) == PAD_NESTED) {
		t->stats.nested++;
		if (entry->probe->kind == PROBE_FREE && slot->kind != PAD_DELETE)
			trap_enter_inner_free(t, th, entry, regs);
		resume_at(t, th, regs, pad->straight);
		return;
	}
	trap_enter(t, th, entry, regs);
}

bool pads_serve(struct target *t, struct thread *th, struct trap *trap, struct arch_regs *regs)
{
	if (trap->kind == TRAP_PAD_FULL)
		return serve_full(t, th, regs);
	pads_catch_up(t, th->process->space);
	if (trap->kind == TRAP_PAD_LEAVE)
		serve_leave(t, th, trap, regs);
	else
		serve_pad_entry(t, th, trap, regs);
	return true;
}

/* -- forks and leaving -- */

void pads_fork(struct target *t, const struct space *parent, struct space *child)
{
	for (size_t i = 0; i < child->traps.count; i++) {
		struct trap *trap = &child->traps.data[i];
		if (trap->kind >= TRAP_PAD_ENTRY)
			trap->is_removed = true;
		if (trap->kind != TRAP_ENTRY || !trap->pad || trap->is_removed)
			continue;
		uint8_t bytes[sizeof(trap->original)];
		memcpy(bytes, trap->original, trap->patch_size);
		memcpy(bytes, t->arch->trap, t->arch->trap_size);
		space_write(child, trap->addr, bytes, trap->patch_size);
		trap->pad = 0;
		trap->patch_size = t->arch->trap_size;
	}
	child->pads = NULL;
	child->hits = 0;
	(void)parent;
}

void pads_disarm(struct target *t, struct space *s)
{
	struct pads *p = s->pads;
	if (!p)
		return;
	__atomic_store_n(&p->memory.control->off, 1, __ATOMIC_SEQ_CST);
	pads_catch_up(t, s);
	for (size_t i = 0; i < t->threads.capacity; i++) {
		struct thread *th = t->threads.data[i];
		if (!th || !th->waits_for_room || th->process->space != s)
			continue;
		th->waits_for_room = false;
		th->is_held = true; /* goes on with all others */
		t->waiters--;
	}
}

void pads_release_threads(struct target *t, struct space *s)
{
	if (!s->pads)
		return;
	for (size_t i = 0; i < t->threads.capacity; i++) {
		struct thread *th = t->threads.data[i];
		struct pad_slot *slot = th && th->process->space == s ? pads_slot(th) : NULL;
		uint64_t word = 0;
		if (!slot || !slot->guard || space_read(s, slot->guard, &word, sizeof(word)) != 0)
			continue;
		/* inside the original: it shall return to its caller, not into the pad */
		if (word == slot->guard_pc && th->calls.count == 0 && slot->return_pc)
			space_write(s, slot->guard, &slot->return_pc, sizeof(slot->return_pc));
	}
}
