/* Traps in order of installation, found by address. */
#include "tracee/state/trap_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "tracee/state/journal.h"
#include "tracee/state/module.h"
#include "tracee/state/probe.h"
#include "tracee/state/space.h"
#include "tracee/state/target_state.h"

struct trap_table trap_table_clone(const struct trap_table *from)
{
	struct trap_table table = {0};
	vec_append(&table, from);
	hash_copy(&table.by_addr, &from->by_addr);
	return table;
}

void trap_table_clear(struct trap_table *table)
{
	table->count = 0;
	hash_deinit(&table->by_addr);
}

void trap_table_deinit(struct trap_table *table)
{
	trap_table_clear(table);
	vec_deinit(table);
}

/* Also one that was removed. */
static struct trap *find_trap(const struct address_space *s, taddr_t addr)
{
	const uint32_t *i = hash_find(&s->traps.by_addr, hash_u64(addr), e,
				      s->traps.data[*e].addr == addr);
	return i ? &s->traps.data[*i] : NULL;
}

struct trap *space_trap_find(const struct address_space *s, taddr_t addr)
{
	struct trap *t = find_trap(s, addr);
	return t && !t->is_removed ? t : NULL;
}

void space_trap_add(struct address_space *s, const struct trap *trap)
{
	struct trap *known = find_trap(s, trap->addr);
	if (known) {
		*known = *trap; /* an address that was unloaded and is used again */
		return;
	}
	*hash_add(&s->traps.by_addr, hash_u64(trap->addr)) = (uint32_t)s->traps.count;
	*vec_add(&s->traps) = *trap;
}

static void record(struct address_space *s, const struct arch *arch, struct trap *trap)
{
	trap->patch_size = arch->trap_size;
	journal_add_trap(s, arch, trap);
	space_trap_add(s, trap);
}

void space_trap_note(struct address_space *s, const struct arch *arch, const struct trap *trap)
{
	struct trap t = *trap;
	memcpy(t.original, arch->trap, arch->trap_size);
	record(s, arch, &t);
}

int space_trap_prepare(struct address_space *s, const struct arch *arch, const struct trap *trap)
{
	struct trap t = *trap;
	int rc = space_read(s, t.addr, t.original, arch->trap_size);
	if (rc == 0)
		record(s, arch, &t);
	return rc;
}

int space_trap_arm(struct address_space *s, const struct arch *arch, taddr_t addr)
{
	int rc = space_write(s, addr, arch->trap, arch->trap_size);
	if (rc != 0) {
		space_trap_find(s, addr)->is_removed = true;
		journal_remove_trap(s, addr);
	}
	return rc;
}

int space_trap_put(struct address_space *s, const struct arch *arch, const struct trap *trap)
{
	int rc = space_trap_prepare(s, arch, trap);
	return rc != 0 ? rc : space_trap_arm(s, arch, trap->addr);
}

int space_trap_take(struct address_space *s, const struct arch *arch, struct trap *trap)
{
	if (trap->is_removed)
		return 0;
	int rc = space_write(s, trap->addr, trap->original, trap->patch_size);
	if (rc == 0) {
		trap->is_removed = true;
		journal_remove_trap(s, trap->addr);
	}
	return rc;
}

taddr_t space_original_pc(const struct address_space *s, const struct arch *arch, taddr_t pc)
{
	for (size_t i = 0; i < s->traps.count; i++) {
		const struct trap *trap = &s->traps.data[i];
		if (trap->kind == TRAP_SYSCALL && pc - trap->stub.jump <= arch->syscall_insn_size)
			return trap->addr + (pc - trap->stub.jump);
	}
	return pc;
}

static void count_probes(const struct address_space *s, bool markers, uint32_t *jumps_out,
			 uint32_t *breakpoints_out)
{
	uint32_t jumps = 0, breakpoints = 0;
	for (size_t i = 0; i < s->traps.count; i++) {
		const struct trap *trap = &s->traps.data[i];
		if (trap->kind != TRAP_ENTRY || trap->is_removed ||
		    probe_is_marker(trap->probe) != markers ||
		    (!markers && trap->probe->function == FUNCTION_NONE))
			continue;
		jumps += trap->pad != 0;
		breakpoints += trap->pad == 0;
	}
	*jumps_out = jumps;
	*breakpoints_out = breakpoints;
}

void space_count_probes(const struct address_space *s, uint32_t *jumps_out,
			uint32_t *breakpoints_out)
{
	count_probes(s, false, jumps_out, breakpoints_out);
}

void space_count_markers(const struct address_space *s, uint32_t *jumps_out,
			 uint32_t *breakpoints_out)
{
	count_probes(s, true, jumps_out, breakpoints_out);
}

void space_traps_of_module_gone(struct address_space *s, const struct module *m)
{
	for (size_t i = 0; i < s->traps.count; i++) {
		struct trap *t = &s->traps.data[i];
		bool is_in_text = t->kind == TRAP_ENTRY || t->kind == TRAP_SYSCALL ||
				  t->kind == TRAP_AGAIN;
		if (t->module == m->id && is_in_text) {
			t->is_removed = true;
			if (t->semaphore)
				journal_remove_trap(s, t->semaphore);
			t->semaphore = 0;
		}
		if (t->is_removed)
			journal_remove_trap(s, t->addr);
	}
}

int space_read_text(const struct address_space *s, taddr_t addr, void *buf, size_t size)
{
	int rc = space_read(s, addr, buf, size);
	for (size_t i = 0; i < s->traps.count && rc == 0; i++) {
		const struct trap *t = &s->traps.data[i];
		bool is_inside = t->kind == TRAP_SYSCALL || t->kind == TRAP_AGAIN;
		if (is_inside && !t->is_removed && t->addr - addr < size)
			memcpy((uint8_t *)buf + (t->addr - addr), t->original, t->patch_size);
	}
	return rc;
}
