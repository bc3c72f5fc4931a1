/*
 * Only what still holds ptmem's code counts as ptmem's, whatever its rights: the program may have
 * mapped its own memory at the same address, which is never written, unmapped or executed.
 */
#include "tracee/inject/lost_code.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "tracee/inject/inject.h"
#include "tracee/os/maps.h"
#include "tracee/state/space.h"
#include "tracee/state/space_memory.h"
#include "tracee/state/thread.h"

static bool is_over(const struct map *m, const struct stub_area *a)
{
	return m->start < a->start + a->size && m->end > a->start;
}

/* Whether there is any code between @start and @end: nothing else proves whose memory it is. */
static bool has_code(const struct stub_area *a, taddr_t start, taddr_t end)
{
	for (taddr_t at = start; at < end; at++) {
		if (a->contents[at - a->start])
			return true;
	}
	return false;
}

static bool is_ours(const struct address_space *s, const struct stub_area *a, const struct map *m)
{
	taddr_t start = MAX(m->start, a->start), end = MIN(m->end, a->start + a->size);
	return !m->is_shared && !m->is_write && !*m->path && has_code(a, start, end) &&
	       space_holds_code(s, a, start, end - start) == 1;
}

enum lost_state lost_code_state(const struct address_space *s, const struct maps *maps,
				const struct stub_area *a)
{
	uint64_t left = a->size;
	for (size_t i = 0; i < maps->list.count; i++) {
		const struct map *m = &maps->list.data[i];
		if (!is_over(m, a))
			continue;
		if (!is_ours(s, a, m))
			return LOST_REPLACED;
		if (m->is_read && m->is_exec)
			left -= MIN(m->end, a->start + a->size) - MAX(m->start, a->start);
	}
	return left == 0 ? LOST_NOT : LOST_GONE;
}

/* What is left of @a would be in the way. */
static int unmap_rest(struct target *t, struct thread *th, const struct maps *maps,
		      const struct stub_area *a)
{
	const uint64_t args[6] = {a->start, a->size};
	bool is_rest = false;
	int64_t result = 0;
	for (size_t i = 0; i < maps->list.count; i++)
		is_rest |= is_over(&maps->list.data[i], a);
	int rc = is_rest ? inject_syscall(t, th, SYS_munmap, args, &result) : 0;
	return rc != 0 ? rc : (int)result;
}

int lost_code_restore(struct target *t, struct thread *th, const struct maps *maps,
		      const struct stub_area *a)
{
	const uint64_t args[6] = {a->start,
				  a->size,
				  PROT_READ | PROT_EXEC,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
				  (uint64_t)-1,
				  0};
	int64_t result = -EIO;
	int rc = unmap_rest(t, th, maps, a);
	if (rc == 0)
		rc = inject_syscall(t, th, SYS_mmap, args, &result);
	if (rc == 0 && result != (int64_t)a->start)
		rc = result < 0 ? (int)result : -EEXIST;
	return rc != 0 ? rc : space_rewrite_code(th->process->space, a);
}

bool lost_code_may_be_ours(const struct address_space *s, taddr_t start)
{
	struct maps maps;
	if (maps_read(s->processes.reader, &maps) != 0)
		return false;
	const struct map *m = maps_find(&maps, start);
	bool is_code = m && !m->is_shared && m->is_exec && !m->is_write && !*m->path;
	bool is_memory = m && m->is_shared && m->is_write && map_has_no_file(m);
	maps_deinit(&maps);
	return is_code || is_memory;
}
