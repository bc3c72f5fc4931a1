/* See again.h. */
#include "tracee/control/again.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/elf_file.h"
#include "base/log.h"
#include "tracee/calls/calls.h"
#include "tracee/state/module.h"
#include "tracee/state/probe.h"
#include "tracee/state/space.h"
#include "tracee/state/space_memory.h"
#include "tracee/state/target_internal.h"
#include "tracee/state/thread.h"
#include "tracee/state/trap_table.h"

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

static void find_in(const struct arch *arch, struct elf_file *file, struct probe_sites *sites,
		    uint64_t function)
{
	const struct elf_segment *seg = elf_file_segment(file, function);
	uint64_t before = MIN(function - seg->vaddr, REACH);
	uint64_t offset = function - before - seg->vaddr;
	uint64_t size = MIN(seg->filesz - offset, before + REACH);
	_cleanup_free_ uint8_t *bytes = elf_file_read(file, seg->offset + offset, size);
	const struct arch_code code = {.bytes = bytes, .size = size, .at = function - before};
	struct search search = {.sites = sites, .code = &code, .function = function};

	if (bytes)
		arch->each_again(&code, before, note, &search);
}

void again_find_sites(const struct arch *arch, struct module *m)
{
	if (m->sites)
		return;
	m->sites = xcalloc(1, sizeof(*m->sites));
	probe_sites_find(m->file, m->sites);
	for (size_t i = 0; i < m->sites->list.count; i++) {
		const struct probe_site *site = &m->sites->list.data[i];
		/* pads know of other calls until they return */
		if (site->is_leaf && site->probe->function == FUNCTION_FREE)
			find_in(arch, m->file, m->sites, site->vaddr);
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

void again_install(struct target *t, struct address_space *s, const struct module *m)
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
