/* Creates the shared memory: a thread of the target calls memfd_create and mmap. */
#include "tracee/pads/pad_mapping.h"

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
#include "tracee/inject/inject.h"
#include "tracee/inject/seccomp.h"
#include "tracee/os/limit.h"
#include "tracee/pads/pads_internal.h"
#include "tracee/state/journal.h"
#include "tracee/state/space_memory.h"
#include "tracee/state/target_internal.h"
#include "tracee/state/thread.h"

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

int pads_map_chunk_over(struct target *t, struct thread *th, int fd, const struct pad_chunk *c)
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
