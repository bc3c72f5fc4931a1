/*
 * The stub of tier 1: code that a thread is sent through instead of the function
 * at whose entry it met the breakpoint.
 *
 *	call:  call jump          the function runs, by its moved first instructions
 *	trap:  int3               reports the return; the result is in rax
 *	       ret                to the caller, whose return address never moved
 *	jump:  moved instructions
 *	       jmp back           behind the displaced bytes
 */
#include <errno.h>
#include <string.h>

#include "arch/x86_64/x86_64.h"

enum { STUB_TRAP = 5, STUB_RETURN = 6, STUB_JUMP = 8 };

int x86_64_make_stub(const uint8_t *code, size_t code_size, taddr_t entry, taddr_t at, uint8_t *out,
		     size_t out_size, struct arch_stub *stub_out, const char **why_out)
{
	if (out_size < STUB_JUMP) {
		*why_out = "the moved code does not fit into its place";
		return -ENOTSUP;
	}
	struct x86_move m = { .code = code, .code_size = code_size, .from = entry, .to = at + STUB_JUMP,
			      .out = out + STUB_JUMP, .out_size = out_size - STUB_JUMP };
	int err = x86_64_displace(&m);
	if (err) {
		*why_out = m.why;
		return err;
	}
	x86_64_branch(0xe8, at, at + STUB_JUMP, out);
	out[STUB_TRAP] = arch_native->trap[0];
	out[STUB_RETURN] = arch_native->return_insn;
	out[STUB_JUMP - 1] = arch_native->trap[0];
	*stub_out = (struct arch_stub){
		.call = at,
		.trap = at + STUB_TRAP,
		.jump = at + STUB_JUMP,
		.size = (uint32_t)(STUB_JUMP + m.size),
		.patch = m.from,
		.moved = (uint32_t)m.moved,
		.pushes_return = m.pushes_return,
	};
	return 0;
}
