/* Functions shared by all files of the pads. */
#include "tracee/pads/pad_state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/proc.h"
#include "tracee/inject/inject.h"
#include "tracee/inject/seccomp.h"
#include "tracee/inject/stub_area.h"
#include "tracee/os/maps.h"
#include "tracee/os/own_settings.h"
#include "tracee/os/ptrace.h"
#include "tracee/pads/pads.h"
#include "tracee/state/journal.h"
#include "tracee/state/probe.h"
#include "tracee/state/space.h"
#include "tracee/state/target_state.h"
#include "tracee/state/thread.h"

void pads_delete(struct pads *p)
{
	ring_deinit(&p->ring);
	vec_deinit(&p->list);
	vec_deinit(&p->trap);
	vec_deinit(&p->owner);
	vec_deinit(&p->deleted);
	free(p);
}

const struct trap *pads_find_entry(const struct pads *p, const struct address_space *s,
				   taddr_t after)
{
	for (size_t i = 0; i < p->list.count; i++) {
		if (after && p->list.data[i].after == after)
			return &s->traps.data[p->trap.data[i]];
	}
	return NULL;
}

/* The same for what the function of the call, which got @from in a register, has made of that. */
static void exchange_link(struct target *t, struct thread *th, taddr_t at, taddr_t from, taddr_t to)
{
	struct arch_regs regs;

	if (ptrace_get_regs(th->tid, &regs) != 0)
		return;
	if (regs.word[t->arch->link] == from)
		ptrace_set_word(th->tid, t->arch->link, to);
	space_replace_words(th->process->space, ROUND_DOWN(regs.word[t->arch->sp], (taddr_t)8), at,
			    from, to);
}

void pads_exchange_return(struct target *t, struct thread *th, const struct pads *p, taddr_t at,
			  taddr_t after)
{
	struct address_space *s = th->process->space;
	const struct trap *trap = pads_find_entry(p, s, after);
	if (!trap)
		return;
	/* the pad saves the register that the code there restores (promote_trap) */
	bool may_throw = trap->probe->may_throw && s->unwind_through.pc;
	taddr_t to = may_throw ? s->unwind_through.pc : trap->stub.trap;
	if (!t->arch->return_size)
		exchange_link(t, th, at, after, to);
	space_write(s, at, &to, sizeof(to));
}

void pads_follow_losing(const struct target *t, struct pads *p)
{
	pad_memory_set_flags(&p->memory, (p->memory.written.flags & ~PAD_LOSES) |
						 (pads_lose(t) ? PAD_LOSES : 0));
}

/* Creates the shared memory: a thread of the target calls memfd_create and mmap. */

/*
 * Least number of slots: with its ring one takes half a megabyte of address space, and memory only
 * when used.
 */
#define MIN_SLOTS 256u

/* linux/memfd.h; without it the kernel logs a warning, and vm.memfd_noexec=2 may forbid the call */
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x8u
#endif

/* A NUL byte in the target, the name for memfd_create: padding of an ELF header. */
static taddr_t find_empty_string(const struct address_space *s)
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

int64_t pads_mmap(struct target *t, struct thread *th, const uint64_t args[6])
{
	int64_t result;
	int rc = inject_mmap(t, th, args, &result);
	return rc != 0 ? rc : result;
}

static int64_t map_shared(struct target *t, struct thread *th, int fd, const struct pad_memory *m)
{
	const uint64_t first[6] = {
		0, m->layout.file_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
		(uint64_t)fd, 0};
	return pads_mmap(t, th, first);
}

int pads_map_over(struct target *t, struct thread *th, int fd, const struct pad_memory *m,
		  taddr_t at)
{
	const uint64_t first[6] = {
		at, m->layout.file_size, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_NORESERVE | MAP_FIXED, (uint64_t)fd, 0};
	int64_t rc = call(t, th, SYS_mmap, first);
	return rc < 0 ? (int)rc : 0;
}

/* Maps chunk @c, whose file the target has open as @fd, at its old address. 0 or -errno. */
static int pads_map_chunk_over(struct target *t, struct thread *th, int fd,
			       const struct pad_chunk *c)
{
	const uint64_t args[6] = {c->target, c->size, PROT_READ | PROT_WRITE,
				  MAP_SHARED | MAP_NORESERVE | MAP_FIXED, (uint64_t)fd, 0};
	int64_t rc = call(t, th, SYS_mmap, args);
	return rc < 0 ? (int)rc : 0;
}

static uint64_t ring_size(const struct target *t)
{
	if (t->options.probes.ring_size)
		return t->options.probes.ring_size;
	return 1u << 20; /* what both sides access should fit in their second level caches */
}

/*
 * The shared memory takes address space from the program: if that is limited (ulimit -v), pads may
 * use a hundredth of the rest.
 */
#define SPACE_SHARE 100

static bool has_space_for(const struct thread *th, uint64_t size)
{
	struct rlimit limit;
	struct proc_statm m;
	if (prlimit(th->tid, RLIMIT_AS, NULL, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
		return true;
	if (proc_statm_read(th->tid, &m) != 0 || m.size > limit.rlim_cur)
		return false;
	return (limit.rlim_cur - m.size) / SPACE_SHARE >= size;
}

int pads_open_file(struct target *t, struct thread *th, int *own_out)
{
	char name[64];
	const uint64_t flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	uint64_t args[6] = {find_empty_string(th->process->space), flags | MFD_NOEXEC_SEAL};
	if (!args[0])
		return -ENOEXEC;
	int64_t fd = call(t, th, SYS_memfd_create, args);
	if (fd == -EINVAL) { /* before Linux 6.3 */
		args[1] = flags;
		fd = call(t, th, SYS_memfd_create, args);
	}
	if (fd < 0)
		return (int)fd;
	/* made by any thread, but a child in vfork has its own descriptors */
	snprintf(name, sizeof(name), "/proc/%d/fd/%d", (int)th->tid, (int)fd);
	*own_out = limit_keep(open(name, O_RDWR | O_CLOEXEC));
	if (*own_out >= 0)
		return (int)fd;
	int err = -errno;
	pads_close_file(t, th, (int)fd);
	return err;
}

int pads_open_memory(struct target *t, struct address_space *s, struct thread *th, struct pads *p)
{
	int own, fd = pads_open_file(t, th, &own);
	if (fd < 0)
		return fd;
	uint32_t slots = MIN(MAX(MIN_SLOTS, 4 * thread_count(t)), PAD_MAX_SLOTS);
	const struct pad_memory_options options = {ring_size(t), slots, PAD_RULE_BITS};
	int rc = pad_memory_init(&p->memory, own, &options);
	if (rc != 0)
		close(own);
	if (rc == 0 && !has_space_for(th, p->memory.layout.file_size)) {
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
			s->own.shared = (taddr_t)at;
			s->own.shared_size = p->memory.layout.file_size;
			journal_note_shared(s, s->own.shared, s->own.shared_size);
		}
	}
	pads_close_file(t, th, fd);
	return rc;
}

/* Maps a chunk of @size bytes with descriptor @fd, which is @own here. */
static int add_chunk(struct target *t, struct thread *th, int fd, int own, size_t size)
{
	struct address_space *s = th->process->space;
	const uint64_t args[6] = {
		0, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, (uint64_t)fd, 0};
	int64_t at = pads_mmap(t, th, args);
	int rc = at < 0 ? (int)at : pad_memory_grow(&s->pads->memory, own, (taddr_t)at);
	if (rc == 0) {
		*vec_add(&s->own.areas) = (struct stub_area){
			.start = (taddr_t)at, .size = (uint32_t)size, .used = (uint32_t)size,
			.is_pads = true, .is_memory = true,
		};
		journal_note_areas(s);
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
	if (!seccomp_allows_injection(t, th->tid, NULL) || !has_space_for(th, size))
		return false;
	int own, fd = pads_open_file(t, th, &own);
	if (fd < 0)
		return false;
	int rc = add_chunk(t, th, fd, own, size);
	if (rc != 0)
		close(own);
	pads_close_file(t, th, fd);
	p->cannot_grow = rc != 0;
	log_debug("space %u: slots for %u threads%s%s", th->process->space->id,
		  p->memory.slots.count,
		  rc != 0 ? " and no more: " : "", rc != 0 ? strerror(-rc) : "");
	return rc == 0;
}

/*
 * A program may unmap mappings that it does not know: sandboxes and checkpointers go through
 * /proc/self/maps. Of the memory that pads share with ptmem nothing is lost, since ptmem has mapped
 * it, too: it is mapped again at the same address.
 *
 * The target has no descriptor of the file any more and cannot be given one. So it creates a new
 * file, which gets the old one's contents and replaces it here, too, at the same address.
 */

/* A file of the memory, and where it is mapped. */
struct part {
	taddr_t start, end;
	int fd;
};

/* The main mapping (0), and chunks of slots with mappings of their own. */
static struct part get_part(const struct pad_memory *m, uint32_t index)
{
	const struct pad_chunk *c = &m->slots.chunk[index];
	if (index == 0)
		return (struct part){m->target, m->target + m->layout.file_size, m->fd};
	return (struct part){c->target, c->target + c->size, c->fd};
}

static enum lost_state part_state(const struct part *part, const struct maps *maps)
{
	uint64_t left = part->end - part->start;
	struct stat st;
	if (fstat(part->fd, &st) != 0)
		return LOST_REPLACED;
	for (size_t i = 0; i < maps->list.count; i++) {
		const struct map *m = &maps->list.data[i];
		if (m->start >= part->end || m->end <= part->start)
			continue;
		if (!m->is_shared || m->ino != st.st_ino || m->dev != st.st_dev)
			return LOST_REPLACED;
		if (m->is_read && m->is_write)
			left -= MIN(m->end, part->end) - MAX(m->start, part->start);
	}
	return left == 0 ? LOST_NOT : LOST_GONE;
}

/* NULL: none, or it is the program's now (pad_leave.c). */
static const struct pad_memory *get_memory(const struct address_space *s)
{
	return s->pads && s->own.shared ? &s->pads->memory : NULL;
}

bool pads_share_memory_at(const struct address_space *s, taddr_t addr)
{
	const struct pad_memory *m = get_memory(s);
	for (uint32_t i = 0; m && i < m->slots.chunk_count; i++) {
		struct part part = get_part(m, i);
		if (addr >= part.start && addr < part.end)
			return true;
	}
	return false;
}

enum lost_state pads_memory_state(const struct address_space *s, const struct maps *maps)
{
	const struct pad_memory *m = get_memory(s);
	enum lost_state worst = LOST_NOT;
	for (uint32_t i = 0; m && i < m->slots.chunk_count; i++) {
		struct part part = get_part(m, i);
		enum lost_state state = part_state(&part, maps);
		worst = MAX(worst, state);
	}
	return worst;
}

static int restore_part(struct target *t, struct thread *th, uint32_t index)
{
	struct pad_memory *m = &th->process->space->pads->memory;
	int own, fd = pads_open_file(t, th, &own);
	if (fd < 0)
		return fd;
	int rc = pad_memory_replace(m, index, own);
	if (rc != 0)
		close(own);
	else if (index == 0)
		rc = pads_map_over(t, th, fd, m, m->target);
	else
		rc = pads_map_chunk_over(t, th, fd, &m->slots.chunk[index]);
	pads_close_file(t, th, fd);
	return rc;
}

int pads_restore_memory(struct target *t, struct thread *th, const struct maps *maps,
			bool *any_out)
{
	const struct address_space *s = th->process->space;
	const struct pad_memory *m = get_memory(s);
	int rc = 0;
	if (pads_memory_state(s, maps) == LOST_REPLACED)
		return -EEXIST;
	for (uint32_t i = 0; m && rc == 0 && i < m->slots.chunk_count; i++) {
		struct part part = get_part(m, i);
		if (part_state(&part, maps) == LOST_NOT)
			continue;
		rc = restore_part(t, th, i);
		*any_out |= rc == 0;
	}
	return rc;
}
