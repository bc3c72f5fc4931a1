/*
 * The stub: code through which a thread is sent instead of the function at whose entry it hit the
 * breakpoint.
 *
 *	call:  lea -8(%rsp), %rsp the ABI's alignment: with the call's 8 bytes it is as it was
 *	       call jump          runs the function, starting with its moved instructions
 *	trap:  int3               reports the return; the result is in rax
 *	       lea 8(%rsp), %rsp
 *	       ret                to the caller, whose return address stays in place
 *	jump:  moved instructions
 *	       jmp back           after the displaced bytes
 */
#include <errno.h>
#include <string.h>

#include "arch/x86_64/x86_64.h"

enum { STUB_CALL = 5, STUB_TRAP = 10, STUB_RETURN = 16, STUB_JUMP = 18 };

int x86_64_make_stub(struct arch_move *m, struct arch_stub *stub_out)
{
	taddr_t at = m->to;
	uint8_t *out = m->out;
	if (m->out_size < STUB_JUMP) {
		m->why = "the moved code does not fit into its place";
		return -ENOTSUP;
	}
	struct arch_move moved = *m;
	moved.to += STUB_JUMP;
	moved.out += STUB_JUMP;
	moved.out_size -= STUB_JUMP;
	int err = x86_64_displace(&moved);
	if (err) {
		m->why = moved.why;
		return err;
	}
	static const uint8_t down[] = {0x48, 0x8d, 0x64, 0x24, 0xf8},
			     up[] = {0x48, 0x8d, 0x64, 0x24, 0x08};
	memcpy(out, down, sizeof(down));
	x86_64_branch(0xe8, at + STUB_CALL, at + STUB_JUMP, out + STUB_CALL);
	out[STUB_TRAP] = X86_TRAP;
	memcpy(out + STUB_TRAP + 1, up, sizeof(up));
	out[STUB_RETURN] = X86_RETURN;
	out[STUB_JUMP - 1] = X86_TRAP;
	*stub_out = (struct arch_stub){
		.call = at,
		.trap = at + STUB_TRAP,
		.jump = at + STUB_JUMP,
		.size = (uint32_t)(STUB_JUMP + moved.size),
		.return_below = 16,
		.trap_below = 8,
		.patch = moved.from,
		.moved = (uint32_t)moved.moved,
		.pushes_return = moved.pushes_return,
	};
	return 0;
}

size_t x86_64_make_syscall_stub(taddr_t from, taddr_t at, uint8_t *out, size_t out_size)
{
	static const uint8_t insn[] = {X86_SYSCALL};
	size_t n = sizeof(insn);

	if (out_size < n + X86_JUMP_SIZE)
		return 0;
	memcpy(out, insn, n);
	return x86_64_branch(0xe9, at + n, from + n, out + n) == 0 ? n + X86_JUMP_SIZE : 0;
}
