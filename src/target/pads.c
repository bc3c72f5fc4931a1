/*
 * Promotion of hot functions to pads; pads.h has the picture, arch/pad.h the contract.
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
#include "base/proc.h"
#include "target/guard.h"
#include "target/pads_internal.h"
#include "target/ptrace.h"
#include "target/requests.h"
#include "target/stub_area.h"

#define RULE_BITS 17
/* Slots for threads: half a megabyte of address space each, and no memory until it is used. */
#define MIN_SLOTS 256u

/* -- the memory -- */

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

void pads_close_file(struct target *t, struct thread *th, int fd)
{
	const uint64_t args[6] = {(uint64_t)fd};
	call(t, th, SYS_close, args);
}

static int64_t map(struct target *t, struct thread *th, const uint64_t args[6])
{
	int64_t result;
	int rc = inject_mmap(t, th, args, &result);
	return rc != 0 ? rc : result;
}

/* Lays the ring's second copy behind the first. */
static int64_t map_ring_again(struct target *t, struct thread *th, int fd,
			      const struct pad_memory *m, taddr_t at)
{
	const uint64_t again[6] = {
		at + m->file_size, m->ring_size, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_FIXED,	     (uint64_t)fd, m->ring};
	return call(t, th, SYS_mmap, again);
}

static int64_t map_shared(struct target *t, struct thread *th, int fd, const struct pad_memory *m)
{
	const uint64_t first[6] = {
		0, m->map_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, (uint64_t)fd,
		0};
	int64_t at = map(t, th, first);
	if (at < 0)
		return at;
	int64_t rc = map_ring_again(t, th, fd, m, (taddr_t)at);
	if (rc < 0) {
		const uint64_t all[6] = {(uint64_t)at, m->map_size};
		call(t, th, SYS_munmap, all);
		return rc;
	}
	return at;
}

int pads_map_over(struct target *t, struct thread *th, int fd, const struct pad_memory *m,
		  taddr_t at)
{
	const uint64_t first[6] = {
		at, m->map_size, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_NORESERVE | MAP_FIXED, (uint64_t)fd, 0};
	int64_t rc = call(t, th, SYS_mmap, first);
	if (rc >= 0)
		rc = map_ring_again(t, th, fd, m, at);
	return rc < 0 ? (int)rc : 0;
}

static uint64_t ring_size(const struct target *t)
{
	if (t->options.ring_size)
		return t->options.ring_size;
	return 1u << 20; /* what both sides touch stays in their second level caches */
}

/*
 * The shared memory is address space that the program would have had itself: where that
 * is limited (ulimit -v), pads may take a hundredth of what is left.
 */
#define SPACE_SHARE 100

static bool has_space_for(const struct thread *th, uint64_t size)
{
	struct rlimit limit;
	unsigned long pages = 0;
	if (prlimit(th->tid, RLIMIT_AS, NULL, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
		return true;
	_cleanup_fclose_ FILE *f = proc_open(th->tid, "statm");
	if (!f || fscanf(f, "%lu", &pages) != 1 || pages > limit.rlim_cur / PAGE_SIZE_MIN)
		return false;
	return (limit.rlim_cur - pages * PAGE_SIZE_MIN) / SPACE_SHARE >= size;
}

int pads_open_file(struct target *t, struct thread *th, int *own_out)
{
	char name[64];
	uint64_t args[6] = {find_empty_string(th->process->space), MFD_CLOEXEC};
	if (!args[0])
		return -ENOEXEC;
	int64_t fd = call(t, th, SYS_memfd_create, args);
	if (fd < 0)
		return (int)fd;
	/* of a child in vfork, whose descriptors are not its parent's, as of any thread */
	snprintf(name, sizeof(name), "/proc/%d/fd/%d", (int)th->tid, (int)fd);
	*own_out = open(name, O_RDWR | O_CLOEXEC);
	if (*own_out >= 0)
		return (int)fd;
	int err = -errno;
	pads_close_file(t, th, (int)fd);
	return err;
}

static int open_memory(struct target *t, struct space *s, struct thread *th, struct pads *p)
{
	int own, fd = pads_open_file(t, th, &own);
	if (fd < 0)
		return fd;
	uint32_t slots = MIN(MAX(MIN_SLOTS, 4 * t->thread_count), PAD_MAX_SLOTS);
	const struct pad_memory_options options = {ring_size(t), slots, RULE_BITS};
	int rc = pad_memory_init(&p->memory, own, &options);
	if (rc != 0)
		close(own);
	if (rc == 0 && !has_space_for(th, p->memory.map_size)) {
		pad_memory_deinit(&p->memory);
		rc = -ENOMEM;
	}
	if (rc == 0) {
		int64_t at = map_shared(t, th, fd, &p->memory);
		if (at < 0) {
			pad_memory_deinit(&p->memory);
			rc = (int)at;
		} else {
			pad_memory_locate(&p->memory, (taddr_t)at);
			s->shared = (taddr_t)at;
			s->shared_size = p->memory.map_size;
			guard_note_shared(s, s->shared, s->shared_size);
		}
	}
	pads_close_file(t, th, fd);
	return rc;
}

/* A chunk of @size bytes through @fd, which is @own here. */
static int add_chunk(struct target *t, struct thread *th, int fd, int own, size_t size)
{
	struct space *s = th->process->space;
	const uint64_t args[6] = {
		0, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, (uint64_t)fd, 0};
	int64_t at = map(t, th, args);
	int rc = at < 0 ? (int)at : pad_memory_grow(&s->pads->memory, own, (taddr_t)at);
	if (rc == 0) {
		*vec_add(&s->areas) = (struct stub_area){
			.start = (taddr_t)at, .size = (uint32_t)size, .used = (uint32_t)size,
			.is_pads = true, .is_memory = true,
		};
		guard_note_areas(s);
	} else if (at >= 0) {
		const uint64_t all[6] = {(uint64_t)at, size};
		call(t, th, SYS_munmap, all);
	}
	return rc;
}

bool pads_grow(struct target *t, struct thread *th)
{
	struct pads *p = th->process->space->pads;
	size_t size = pad_memory_more(&p->memory);
	if (p->cannot_grow || !size)
		return false;
	p->cannot_grow = true;
	if (!syscalls_may_inject(t, th->tid) || !has_space_for(th, size))
		return false;
	int own, fd = pads_open_file(t, th, &own);
	if (fd < 0)
		return false;
	int rc = add_chunk(t, th, fd, own, size);
	if (rc != 0)
		close(own);
	pads_close_file(t, th, fd);
	p->cannot_grow = rc != 0;
	log_debug("space %u: slots for %u threads%s%s", th->process->space->id, p->memory.slot_count,
		  rc != 0 ? " and no more: " : "", rc != 0 ? strerror(-rc) : "");
	return rc == 0;
}

static int load_blob(struct target *t, struct space *s, struct thread *th, struct pads *p)
{
	struct pad_blob blob = arch_pad_blob();
	p->blob_size = (uint32_t)ROUND_UP(blob.size, (size_t)PAGE_SIZE_MIN);
	const uint64_t args[6] = {
		0, p->blob_size, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, (uint64_t)-1,
		0};
	int64_t at = map(t, th, args);
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
	p->memory.control->flags =
		(t->options.verify ? PAD_VERIFY : 0) | (t->options.no_stacks ? PAD_COUNT_ONLY : 0) |
		(t->options.stack_pointers ? PAD_STACK_POINTER : 0) | requests_pad_flags(t, s);
	if (t->sink.rule_memory)
		t->sink.rule_memory(t->sink.ctx, s,
				    (struct unwind_rule *)(void *)(p->memory.base +
								   p->memory.rules),
				    RULE_BITS);
	return 0;
}

void pads_delete(struct pads *p)
{
	ring_deinit(&p->ring);
	vec_deinit(&p->list);
	vec_deinit(&p->trap);
	vec_deinit(&p->owner);
	vec_deinit(&p->deleted);
	free(p);
}

void pads_free(struct target *t, struct space *s)
{
	pads_drop_heritage(s);
	struct pads *p = s->pads;
	if (!p)
		return;
	pad_owner_remove(&t->pad_owner, &p->memory);
	pad_memory_deinit(&p->memory);
	pads_delete(p);
	s->pads = NULL;
}

/* -- promotion -- */

/* What the pad of @probe does. */
static struct pad_probe describe(const struct probe *probe)
{
	struct pad_probe d = {
		.function = probe->function,
		.size_arg = probe->size_arg,
		.count_arg = probe->count_arg,
		.align_arg = probe->align_arg,
		.block_arg = probe->block_arg,
		.out_arg = probe->result_arg,
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
		d = (struct pad_probe){.function = FUNCTION_REQUEST,
				       .count_arg = PAD_NO_ARG,
				       .align_arg = PAD_NO_ARG,
				       .block_arg = PAD_NO_ARG,
				       .out_arg = PAD_NO_ARG};
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
static bool is_occupied(const struct target *t, taddr_t start, uint32_t size)
{
	for (size_t i = 0; i < t->stack_words.count; i++) {
		if (t->stack_words.data[i] - start - 1 < size - 1)
			return true;
	}
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
	struct pad_request request = {.probe = describe(trap.probe),
				      .entry = entry,
				      .blob = p->blob,
				      .control = p->memory.target,
				      .code_size = trap.code_size,
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
	const struct stub_place place = {t, th, s, m};
	if (rc == 0)
		rc = stub_area_take_pad(&place, entry, PAD_ROOM, &request.at);
	if (rc != 0)
		return rc;
	rc = arch_make_pad(&request, out, &pad, &why);
	if (rc != 0 || pad.pushes_return || pad.patch_at != trap.addr) {
		s->traps.data[index].is_cold = true;
		s->traps.data[index].why_cold = rc != 0 ? why :
							  "its moved code pushes a return address";
		return -ENOTSUP;
	}
	if (is_occupied(t, pad.patch_at, pad.moved)) {
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
		struct arch_regs regs;
		if (slot && th->has_deleted && ptrace_get_regs(th->tid, &regs) == 0 &&
		    trap_is_in_delete(th, regs.word[t->arch->sp]))
			*vec_add(&s->pads->deleted) =
				(struct pads_deleted){th->slot, th->deleted.block};
		th->has_deleted &= !slot;
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
			 rc == -EPERM  ? "a seccomp filter may forbid to map pads" :
			 rc == -ENOMEM ? "its address space is limited (ulimit -v)" :
			 rc == -EFBIG  ? "files are limited (ulimit -f)" :
					 strerror(-rc));
		return rc;
	}
	install_collect_words(t, s);
	add_all_threads(t, s);
	for (uint32_t i = 0; i < s->traps.count; i++) {
		const struct trap *trap = &s->traps.data[i];
		if (trap->kind != TRAP_ENTRY || trap->is_removed || trap->pad || trap->is_cold ||
		    !probe_may_be_hot(trap->probe))
			continue;
		rc = promote_trap(t, s, th, i);
		trap = &s->traps.data[i];
		if (rc == -ESRCH)
			return rc;
		if (rc != 0)
			log_verbose("%s at %#lx stays a breakpoint: %s", trap->probe->symbol,
				    (unsigned long)trap->addr,
				    trap->why_cold ? trap->why_cold : strerror(-rc));
	}
	s->pads->memory.control->off = 0;
	return 0;
}

/* -- leaving -- */

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
