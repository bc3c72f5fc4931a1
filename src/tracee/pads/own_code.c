/* See own_code.h. */
#include "tracee/pads/own_code.h"

#include <string.h>

#include "base/elf_file.h"
#include "tracee/inject/stub_area.h"
#include "tracee/pads/pad_state.h"
#include "tracee/state/space.h"
#include "tracee/state/target_state.h"
#include "tracee/state/thread.h"
#include "tracee/state/trap_table.h"

#define CODE_MAX 256u /* bytes of a function that are examined: more than are ever moved */

/* -- moved instructions -- */

/*
 * The address from which the instruction at @pc, one of those at @to, was copied. Repeats the move,
 * one instruction at a time: where the copy of the first n ends, the copy of the next one begins.
 */
static taddr_t moved_from(const struct target *t, const struct address_space *s,
			  const struct trap *trap, taddr_t to, taddr_t pc)
{
	uint8_t code[CODE_MAX], out[STUB_MAX];
	taddr_t from = trap->stub.patch, found = from;
	ssize_t n = space_read_some(s, from, code, sizeof(code));
	if (n < (ssize_t)sizeof(trap->original))
		return from;
	memcpy(code, trap->original, trap->patch_size);
	struct arch_move m = {.code = code,
			      .code_size = (size_t)n,
			      .from = from,
			      .to = to,
			      .min_bytes = 1,
			      .out = out,
			      .out_size = sizeof(out)};
	while (m.moved < trap->stub.moved && t->arch->relocate(&m) == 0) {
		/* no jump back after a return or a jump */
		if (m.size < t->arch->jump_size || to + m.size - t->arch->jump_size > pc)
			break;
		found = from + m.moved;
		m.min_bytes = m.moved + 1;
	}
	return found;
}

/* -- stubs -- */

static bool is_in_stub(const struct trap *trap, taddr_t pc)
{
	return trap->kind == TRAP_ENTRY && pc - trap->stub.call < trap->stub.size;
}

static bool find_stub(const struct target *t, const struct address_space *s,
		      const struct own_place *place, struct own_code *out)
{
	taddr_t pc = place->pc, real = space_original_pc(s, t->arch, pc);
	const struct trap *trap = NULL;
	out->kind = OWN_MOVED;
	out->pc = real;
	if (real != pc)
		return place->is_exact;
	for (size_t i = 0; i < s->traps.count && !trap; i++) {
		if (is_in_stub(&s->traps.data[i], pc))
			trap = &s->traps.data[i];
	}
	if (!trap)
		return false;
	if (!place->is_exact) {
		out->kind = OWN_CALL;
		out->pc = 0;
		out->up = trap->stub.trap_below + t->arch->return_size;
		return pc == trap->stub.trap;
	}
	out->pc = pc >= trap->stub.jump ? moved_from(t, s, trap, trap->stub.jump, pc) : trap->entry;
	/* pushed: between the first instruction and the one after the trap */
	if (pc > trap->stub.call && pc <= trap->stub.trap + t->arch->trap_size)
		out->up = trap->stub.trap_below;
	return true;
}

/* -- pads -- */

/* CFI of the recorder and of the pads' template, as of an object with @bias. */
static const struct module *describe(struct target *t, taddr_t bias)
{
	struct recorder_image image = arch_recorder_image();
	if (!t->pads->own_module)
		t->pads->own_module = xcalloc(1, sizeof(*t->pads->own_module));
	if (!t->pads->own_module->file &&
	    elf_file_open_memory(xmemdup(image.elf, image.elf_size), image.elf_size, "[ptmem]",
				 &t->pads->own_module->file) != 0)
		return NULL;
	t->pads->own_module->bias = bias;
	return t->pads->own_module;
}

void own_code_free(struct target *t)
{
	if (t->pads->own_module)
		elf_file_release(t->pads->own_module->file);
	free(t->pads->own_module);
	t->pads->own_module = NULL;
}

static const struct pad *pad_at(const struct pads *p, taddr_t pc, const struct trap **trap_out,
				const struct address_space *s)
{
	for (size_t i = 0; i < p->list.count; i++) {
		const struct pad *pad = &p->list.data[i];
		if (pc - pad->at >= pad->size)
			continue;
		*trap_out = &s->traps.data[p->trap.data[i]];
		return pad;
	}
	return NULL;
}

static bool find_pad(struct target *t, const struct address_space *s, const struct own_place *place,
		     struct own_code *out)
{
	const struct pads *p = s->pads;
	const struct trap *trap = NULL;
	taddr_t pc = place->pc, bias = p->recorder;
	const struct pad *pad = pad_at(p, pc, &trap, s);
	if (pad && pc == pad->after && !place->is_exact) {
		out->kind = OWN_CALL;
		out->up = PAD_RETURN_BELOW;
		return true;
	}
	if (pad && place->is_exact && pc >= pad->straight && pad->straight >= pad->at) {
		out->kind = OWN_MOVED;
		out->pc = moved_from(t, s, trap, pad->straight, pc);
		return true;
	}
	if (pad)
		bias = pad->bias;
	else if (pc - p->recorder >= p->recorder_size)
		return false;
	out->kind = OWN_FRAME;
	out->entry_pc = pad ? trap->entry : 0;
	out->module = describe(t, bias);
	return out->module != NULL;
}

bool own_code_find(struct target *t, const struct address_space *s, const struct own_place *place,
		   struct own_code *out)
{
	*out = (struct own_code){0};
	/* an exception is in flight: the address that replaces the stub's (call_traps.c) */
	if (s->unwind_through.pc && place->pc == s->unwind_through.pc && !place->is_exact) {
		out->kind = OWN_CALL;
		out->up = 2 * sizeof(uint64_t);
		return true;
	}
	const struct stub_area *a = space_find_area(s, place->pc);
	if (!a || a->is_memory || a->is_trap_handler)
		return false;
	return a->is_pads && s->pads ? find_pad(t, s, place, out) : find_stub(t, s, place, out);
}
