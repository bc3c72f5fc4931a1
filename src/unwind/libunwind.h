/*
 * libunwind over a stack view, for two purposes:
 *
 * - the fallback of slow.c, for code outside all modules that has neither CFI nor a call before the
 *   return address, such as an interpreter that pushes return addresses itself. libunwind guesses
 *   by the frame pointer; the caller checks the result.
 * - the second opinion of PTMEM_VERIFY: a complete walk by libunwind's own parser of .eh_frame.
 *
 * libunwind accesses registers and memory only through callbacks, which refuse to write. Its input
 * is untrusted, and it is less careful than libdw: a division in an expression can trap, and a
 * branch can leave the expression. So the fallback passes it no CFI at all. The second opinion
 * passes it only rows that libdw has decoded from a checked section (cfi_check.h) and that neither
 * divide nor branch; the bytes come from the checked file, not from the process. The number of
 * words read for one frame is limited.
 */
#ifndef PTMEM_UNWIND_LIBUNWIND_H
#define PTMEM_UNWIND_LIBUNWIND_H

#include "unwind/frame.h"

struct libunwind;

struct libunwind *libunwind_new(const struct arch *arch, const struct unwind_ops *ops);
void libunwind_free(struct libunwind *l); /* may be NULL */

/* Replaces *frame with its caller, without CFI. Returns 0 or -ENODATA. The result is a guess. */
int libunwind_guess(struct libunwind *l, const struct stack_view *view, struct frame *frame);

/* Walks from @view by CFI only, until there is no usable row. @pcs, result: as for unwind_walk. */
size_t libunwind_walk(struct libunwind *l, const struct stack_view *view, taddr_t *pcs,
		      size_t max);

#endif
