/*
 * Steps outwards with all registers, for frames that a 32-byte rule cannot describe. Tries in this
 * order: the CFI row with its expressions (realigned stacks, PLT, and glibc's signal trampoline,
 * whose row restores every register); a signal trampoline without CFI (musl), recognised by its
 * code; the frame pointer, if it points up the stack to a return address that follows a call.
 *
 * After that unwind.c uses libunwind, but only in generated code: in a module libunwind would
 * evaluate the same rows as libdw, with the same result. doc/internals.md has the figures.
 */
#include "unwind/slow.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <stdlib.h>

#include "arch/unwind_code.h"
#include "base/elf_file.h"
#include "unwind/cfi.h"
#include "unwind/expression.h"

#define MAX_FRAME_BYTES (64u << 20) /* a frame pointer further away than this is invalid */

/* Computes one register of the caller. 0, -EFAULT, or -ENODATA if its rule cannot be evaluated. */
static int restore(Dwarf_Frame *row, int number, const struct expression_input *in,
		   struct frame *caller)
{
	Dwarf_Op memory[3], *ops;
	size_t count;
	enum expression_kind kind;
	uint64_t value;
	int ret;

	if (dwarf_frame_register(row, number, memory, &ops, &count) != 0)
		return -ENODATA;
	if (count == 0) {
		caller->regs.reg[number] = in->frame->regs.reg[number];
		if (!ops)
			caller->known |= in->frame->known & 1u << number;
		return 0;
	}
	ret = expression_run(ops, count, in, &kind, &value);
	if (ret == 0 && kind == EXPRESSION_LOCATION)
		ret = frame_read_word(in->view, value, &value);
	if (ret != 0)
		return ret == -EFAULT ? ret : -ENODATA;
	caller->regs.reg[number] = value;
	caller->known |= 1u << number;
	return 0;
}

static int step_row(const struct arch *arch, Dwarf_Frame *row, const struct stack_view *view,
		    struct frame *frame, bool *is_signal_out)
{
	struct expression_input in = {.view = view, .frame = frame};
	struct frame caller = {0};
	enum expression_kind kind;
	Dwarf_Op *ops, memory[3];
	size_t count;
	int ret, ra = dwarf_frame_info(row, NULL, NULL, &caller.is_exact);

	if (ra < 0 || ra >= ARCH_DWARF_REGS ||
	    dwarf_frame_register(row, ra, memory, &ops, &count) != 0)
		return -ENODATA;
	if (count == 0 && ops)
		return 1;
	if (dwarf_frame_cfa(row, &ops, &count) != 0 || count == 0)
		return -ENODATA;
	ret = expression_run(ops, count, &in, &kind, &in.cfa);
	if (ret != 0)
		return ret == -EFAULT ? ret : -ENODATA;
	for (int i = 0; i < ARCH_DWARF_REGS; i++) {
		ret = restore(row, i, &in, &caller);
		/* A lost scratch register is harmless; without pc or sp there is no caller. */
		if (ret != 0 && (i == ra || i == arch->dwarf_sp))
			return ret;
	}
	if (!(caller.known >> ra & 1) || !(caller.known >> arch->dwarf_sp & 1))
		return -ENODATA;
	caller.regs.reg[arch->dwarf_pc] = caller.regs.reg[ra];
	caller.known |= 1u << arch->dwarf_pc;
	*is_signal_out = caller.is_exact;
	*frame = caller;
	return 0;
}

/* Reads the code at @pc: from the file, which has no breakpoints of ptmem, or else from memory. */
static bool read_code(const struct unwind_ops *ops, const struct stack_view *view, taddr_t pc,
		      uint8_t *buf, size_t size)
{
	const struct module *module = ops->module(ops->ctx, pc);
	size_t available;

	if (module && module->file) {
		const uint8_t *code = cfi_code(module->file, pc - module->bias, size, &available);
		if (!code || available < size)
			return false;
		memcpy(buf, code, size);
		return true;
	}
	return view->read && view->read(view->read_ctx, pc, buf, size) == 0;
}

bool slow_is_return_address(const struct unwind_ops *ops, const struct stack_view *view, taddr_t pc)
{
	uint8_t code[MAX(ARCH_MAX_CALL, ARCH_SIGRETURN_SIZE)];

	if (pc < PAGE_SIZE_MIN)
		return unwind_is_end(pc);
	if (read_code(ops, view, pc - ARCH_MAX_CALL, code, ARCH_MAX_CALL) &&
	    arch_ends_in_call(code, ARCH_MAX_CALL))
		return true;
	return read_code(ops, view, pc, code, ARCH_SIGRETURN_SIZE) &&
	       arch_is_sigreturn(code, ARCH_SIGRETURN_SIZE);
}

static int step_sigframe(const struct arch *arch, const struct stack_view *view,
			 struct frame *frame)
{
	struct frame caller = {.known = FRAME_KNOWS_ALL, .is_exact = true};
	taddr_t sp = frame->regs.reg[arch->dwarf_sp];

	for (int i = 0; i < ARCH_DWARF_REGS; i++)
		if (frame_read_word(view, sp + arch_sigframe_offset[i], &caller.regs.reg[i]) != 0)
			return -EFAULT;
	*frame = caller;
	return 0;
}

static int step_frame_pointer(const struct arch *arch, const struct unwind_ops *ops,
			      const struct stack_view *view, struct frame *frame)
{
	taddr_t fp = frame->regs.reg[arch->dwarf_fp], sp = frame->regs.reg[arch->dwarf_sp];
	uint64_t pc, outer_fp;

	if (!(frame->known >> arch->dwarf_fp & 1) || fp % 8 != 0 || fp < sp ||
	    fp - sp > MAX_FRAME_BYTES)
		return -ENODATA;
	if (frame_read_word(view, fp, &outer_fp) != 0 || frame_read_word(view, fp + 8, &pc) != 0)
		return -ENODATA;
	if (!slow_is_return_address(ops, view, pc) || (unwind_is_end(pc) && outer_fp != 0))
		return -ENODATA;
	frame->regs.reg[arch->dwarf_pc] = pc;
	frame->regs.reg[arch->dwarf_sp] = fp + 16;
	frame->regs.reg[arch->dwarf_fp] = outer_fp;
	frame->known = 1u << arch->dwarf_pc | 1u << arch->dwarf_sp | 1u << arch->dwarf_fp;
	frame->is_exact = false;
	return 0;
}

/* Steps by the CFI of @module; -ENOENT if it has none for the frame. */
static int step_cfi(const struct arch *arch, const struct module *module,
		    const struct stack_view *view, struct frame *frame, bool *is_signal_out)
{
	taddr_t lookup = frame_lookup_pc(arch, frame);
	Dwarf_Frame *row = module && module->file ? cfi_find(module->file, lookup - module->bias) :
						    NULL;
	int ret = row ? step_row(arch, row, view, frame, is_signal_out) : -ENOENT;

	free(row);
	return ret;
}

int slow_step_in(const struct arch *arch, const struct module *module,
		 const struct stack_view *view, struct frame *frame)
{
	bool is_signal = false;

	return step_cfi(arch, module, view, frame, &is_signal);
}

int slow_step(const struct arch *arch, const struct unwind_ops *ops, const struct stack_view *view,
	      struct frame *frame, enum slow_way *way_out)
{
	taddr_t pc = frame->regs.reg[arch->dwarf_pc];
	const struct module *module = ops->module(ops->ctx, frame_lookup_pc(arch, frame));
	uint8_t code[ARCH_SIGRETURN_SIZE];
	bool is_signal = false;
	int ret = step_cfi(arch, module, view, frame, &is_signal);

	if (ret != -ENOENT) {
		if (ret == 0)
			*way_out = is_signal ? SLOW_SIGNAL : SLOW_CFI;
		return ret;
	}
	if (read_code(ops, view, pc, code, sizeof(code)) && arch_is_sigreturn(code, sizeof(code))) {
		ret = step_sigframe(arch, view, frame);
		if (ret == 0)
			*way_out = SLOW_SIGNAL;
		return ret;
	}
	ret = step_frame_pointer(arch, ops, view, frame);
	if (ret == 0)
		*way_out = SLOW_FRAME_POINTER;
	return ret;
}
