/*
 * One frame on the way outwards: its registers as far as they are known, and
 * reading of the stack that it lies on. Shared by the files of this directory.
 */
#ifndef PTMEM_UNWIND_FRAME_H
#define PTMEM_UNWIND_FRAME_H

#include <errno.h>
#include <string.h>

#include "tracee/state/heap_event.h"
#include "unwind/unwind.h"

struct frame {
	struct arch_unwind_regs regs; /* regs.reg[arch->dwarf_pc]: exact, not minus 1 */
	uint32_t known;               /* bit n: register n has its value */
	/* interrupted by a signal: CFI is looked up at pc, not at pc - 1 */
	bool is_exact;
	/* of the frame that was just left: what to show instead of its pc; 0 = the pc itself */
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

/* The address that CFI and symbols are looked up by. */
static inline taddr_t frame_lookup_pc(const struct arch *arch, const struct frame *frame)
{
	return frame->regs.reg[arch->dwarf_pc] - !frame->is_exact;
}

#endif
