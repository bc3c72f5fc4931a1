/* The vdso is searched first: all programs have one. */
#include "tracee/inject/syscall_insn.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "tracee/state/space.h"
#include "tracee/state/space_memory.h"
#include "tracee/state/target_internal.h"

static taddr_t search_text(const struct address_space *s, const struct arch *arch, taddr_t start,
			   taddr_t end)
{
	enum { CHUNK = 65536 };
	_cleanup_free_ uint8_t *buf = xmalloc(CHUNK);
	for (taddr_t at = start; at < end; at += CHUNK - 8) {
		ssize_t n = space_read_some(s, at, buf, MIN((uint64_t)CHUNK, end - at));
		if (n < (ssize_t)arch->syscall_insn_size)
			continue;
		uint8_t *p = memmem(buf, (size_t)n, arch->syscall_insn, arch->syscall_insn_size);
		if (p)
			return at + (taddr_t)(p - buf);
	}
	return 0;
}

int syscall_insn_find(struct target *t, struct address_space *s)
{
	for (size_t i = 0; i < s->modules.count && !s->syscalls.insn; i++) {
		if (s->modules.data[i]->is_vdso)
			s->syscalls.insn = search_text(s, t->arch, s->modules.data[i]->start,
						      s->modules.data[i]->end);
	}
	for (size_t i = 0; i < s->modules.count && !s->syscalls.insn; i++)
		s->syscalls.insn =
			search_text(s, t->arch, s->modules.data[i]->start, s->modules.data[i]->end);
	return s->syscalls.insn ? 0 : -ENOEXEC;
}
