/* The list of robust futexes through which the kernel finds control blocks. */
#include "tracee/pads/pad_owner.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * The link to the next control block. The kernel and ptmem follow it, so it is private; and since
 * the distance between link and futex is the same for all, it is the last word of the page before.
 */
static uint64_t *link_of(const struct pad_memory *m)
{
	return (uint64_t *)(void *)m->base - 1;
}

/*
 * An entry of the kernel's list is the address of its link to the next one; the last one links to
 * the head.
 */
int pad_owner_init(struct pad_owner *owner)
{
	owner->head.list = (uintptr_t)&owner->head.list;
	owner->head.futex_offset =
		(int64_t)offsetof(struct pad_control, owner) + (int64_t)sizeof(uint64_t);
	owner->head.pending = 0;
	_Static_assert(sizeof(owner->head) == sizeof(struct robust_list_head),
		       "as the kernel has it");
	size_t size;
	if (syscall(SYS_get_robust_list, 0, &owner->before, &size) != 0)
		owner->before = NULL;
	return syscall(SYS_set_robust_list, &owner->head, sizeof(owner->head)) ? -errno : 0;
}

void pad_owner_deinit(struct pad_owner *owner)
{
	syscall(SYS_set_robust_list, owner->before, sizeof(owner->head));
}

void pad_owner_add(struct pad_owner *owner, struct pad_memory *m)
{
	m->written.owner = (uint32_t)syscall(SYS_gettid);
	__atomic_store_n(&m->control->owner, m->written.owner, __ATOMIC_SEQ_CST);
	*link_of(m) = owner->head.list;
	__atomic_store_n(&owner->head.list, (uintptr_t)link_of(m), __ATOMIC_SEQ_CST);
}

void pad_owner_remove(struct pad_owner *owner, struct pad_memory *m)
{
	uint64_t *link = &owner->head.list;

	while (*link != (uintptr_t)&owner->head.list) {
		if (*link == (uintptr_t)link_of(m)) {
			*link = *link_of(m);
			return;
		}
		link = (uint64_t *)(uintptr_t)*link;
	}
}
