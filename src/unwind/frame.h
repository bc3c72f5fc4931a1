/*
 * One frame of a walk: its known registers, and access to the stack. Shared by the files of this
 * directory.
 */
#ifndef PTMEM_UNWIND_FRAME_H
#define PTMEM_UNWIND_FRAME_H

#include <errno.h>
#include <string.h>

#include "tracee/state/heap_event.h"
#include "unwind/unwind.h"

struct frame {
	struct arch_unwind_regs regs; /* regs.reg[arch->dwarf_pc]: exact, not minus 1 */
	uint32_t known;               /* bit n: register n is known */
	/* interrupted by a signal: look up CFI at pc, not at pc - 1 */
	bool is_exact;
	/* of the frame just left: the address to show; 0 = its pc */
	taddr_t shown_pc;
};

#define FRAME_KNOWS_ALL ((1u << ARCH_DWARF_REGS) - 1)

/* The word at @addr: 0 or -EFAULT. */
static inline int frame_read_word(const struct stack_view *view, taddr_t addr, uint64_t *word_out)
{
	uint64_t offset = addr - view->start;

	if (__builtin_expect(view->size >= 8 && offset <= view->size - 8, 1)) {
		memcpy(word_out, view->data + offset, 8);
		return 0;
	}
	if (!view->read || view->read(view->read_ctx, addr, word_out, 8) != 0)
		return -EFAULT;
	return 0;
}

/* The address used for looking up CFI and symbols. */
static inline taddr_t frame_lookup_pc(const struct arch *arch, const struct frame *frame)
{
	return frame->regs.reg[arch->dwarf_pc] - !frame->is_exact;
}

#endif
