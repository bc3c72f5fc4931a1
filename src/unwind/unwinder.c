/* Implements struct unwinder, which tracee code uses to inspect stacks, by walks and rules. */
#include "unwind/unwinder.h"

#include "arch/unwind_code.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/elf_file.h"
#include "unwind/cfi.h"
#include "unwind/personality.h"

#define SEARCHED_MAX ((uint64_t)64 << 20) /* bytes of an object's code, for find_stub_epilogue */

static bool outermost_sp(void *ctx, const struct stack_view *view, taddr_t *sp_out)
{
	return unwind_outermost_sp(ctx, view, sp_out);
}

static bool in_signal(void *ctx, const struct stack_view *view, taddr_t outer_sp)
{
	return unwind_in_signal(ctx, view, outer_sp);
}

static size_t interrupted(void *ctx, const struct stack_view *view, taddr_t *sp, size_t max)
{
	return unwind_interrupted(ctx, view, sp, max);
}

static size_t stack_pcs(void *ctx, const struct stack_view *view, taddr_t *pcs, size_t max,
			bool *is_whole_out)
{
	enum unwind_end end = UNWIND_NO_CFI;
	size_t n = unwind_walk_stopped(ctx, view, pcs, max, &end);

	*is_whole_out = end == UNWIND_COMPLETE;
	return n;
}

/*
 * Whether @rule describes the frame of a stub; *saved_out is the register that it restores, or
 * -1.
 */
static bool is_stub_frame(const struct unwind_rule *rule, int *saved_out)
{
	unsigned saved = rule->saved;

	if (rule->kind != RULE_SP || rule->cfa_offset != arch_native->stub_cfa_offset ||
	    (saved & (saved - 1)))
		return false;
	int i = saved ? __builtin_ctz(saved) : -1;

	if (i >= 0 && rule->slot[i] != arch_native->stub_saved_slot)
		return false;
	*saved_out = i;
	return true;
}

static taddr_t find_stub_row(void *ctx, taddr_t start, taddr_t end, int *saved_out)
{
	for (taddr_t pc = start + 1; pc < end; pc++) {
		if (is_stub_frame(unwind_rule_get(ctx, pc), saved_out))
			return pc;
	}
	return 0;
}

/* Whether a frame at @vaddr of @m, which pops register @popped and returns, is a stub's. */
static bool is_stub_epilogue(struct unwind *u, const struct module *m, uint64_t vaddr, int popped)
{
	int saved = -1;

	return is_stub_frame(unwind_rule_get(u, m->bias + vaddr), &saved) && saved == popped &&
	       personality_is_absent(m->file->elf, vaddr - 1);
}

static taddr_t find_stub_epilogue(void *ctx, const struct module *m, int *saved_out)
{
	for (size_t i = 0; m->file && i < m->file->segment_count; i++) {
		const struct elf_segment *segment = &m->file->segment[i];
		uint64_t start = segment->vaddr, size = MIN(segment->filesz, SEARCHED_MAX);
		_cleanup_free_ uint8_t *code =
			segment->is_exec ? elf_file_read(m->file, segment->offset, size) : NULL;
		for (size_t at = ARCH_MAX_CALL; code && at < size; at++) {
			int popped = arch_pops_and_returns(code + at, size - at);
			if (popped < 0 ||
			    arch_ends_in_call(code + at - ARCH_MAX_CALL, ARCH_MAX_CALL) ||
			    !is_stub_epilogue(ctx, m, start + at, popped))
				continue;
			*saved_out = popped;
			return m->bias + start + at;
		}
	}
	return 0;
}

static void set_rule_memory(void *ctx, struct unwind_rule *memory, uint32_t bits)
{
	unwind_set_memory(ctx, memory, bits, NULL, NULL);
}

void unwinder_init(struct unwinder *out, struct unwind *u)
{
	*out = (struct unwinder){
		.ctx = u,
		.prepare = unwind_prepare,
		.outermost_sp = outermost_sp,
		.in_signal = in_signal,
		.interrupted = interrupted,
		.stack_pcs = stack_pcs,
		.find_stub_row = find_stub_row,
		.find_stub_epilogue = find_stub_epilogue,
		.set_rule_memory = set_rule_memory,
	};
}
