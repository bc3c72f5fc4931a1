/*
 * libunwind over a stack view, for two purposes:
 *
 * - the fallback of slow.c, for code in no module that has neither CFI nor a call in front of its
 *   return address. An interpreter that pushes return addresses itself looks like that; libunwind
 *   guesses by the frame pointer, and the caller checks where the guess leads.
 * - the second opinion of PTMEM_VERIFY: a whole walk by libunwind's own reading of .eh_frame.
 *
 * libunwind knows nothing of processes here: it sees registers and memory through callbacks,
 * and writing through them fails. What it parses is untrusted, and it is less careful than libdw:
 * a division in an expression can trap, and a branch can leave the expression. So the fallback
 * gives it no CFI at all. The second opinion gives it only rows that libdw has decoded from a
 * checked section (cfi_check.h) and that neither divide nor branch, and the bytes come from
 * the file that was checked, not from the process. The words that it may read for one frame
 * are counted and limited.
 */
#ifndef PTMEM_UNWIND_LIBUNWIND_H
#define PTMEM_UNWIND_LIBUNWIND_H

#include "unwind/frame.h"

struct libunwind;

struct libunwind *libunwind_new(const struct arch *arch, const struct unwind_ops *ops);
void libunwind_free(struct libunwind *l); /* may be NULL */

/* Replaces *frame by its caller, without CFI: 0, or -ENODATA. The result is a guess. */
int libunwind_guess(struct libunwind *l, const struct stack_view *view, struct frame *frame);

/* Walks from @view by CFI alone, until there is no usable row. @pcs, result: as unwind_walk. */
size_t libunwind_walk(struct libunwind *l, const struct stack_view *view, taddr_t *pcs,
		      size_t max);

#endif
