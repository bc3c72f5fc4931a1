/* See malloc_reach.h. */
#include "session/malloc_reach.h"

#include <stdlib.h>

#include "arch/arch.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/elf_functions.h"
#include "base/vec.h"

#define NEAR (UINT64_C(32) << 10) /* 17 kB in glibc 2.43 and 2.44 */

struct reach {
	const struct malloc_reach *from;
	struct elf_functions functions;
	uint64_t first;
	uint8_t *seen;          /* by function */
	VEC(size_t) open;       /* functions that are still to be followed */
};

static void add(struct reach *r, size_t i)
{
	if (r->seen[i])
		return;
	r->seen[i] = 1;
	*vec_add(&r->open) = i;
}

static bool is_shared(const struct malloc_reach *from, uint64_t start)
{
	for (size_t i = 0; i < from->shared.count; i++)
		if (from->shared.data[i] == start)
			return true;
	return false;
}

static void note_target(void *ctx, taddr_t target)
{
	struct reach *r = ctx;
	size_t i = vec_search(&r->functions.list, f, f->end <= target);
	const struct elf_function *f = &r->functions.list.data[i];

	if (target >= r->from->start || r->from->start - target > NEAR ||
	    i == r->functions.list.count || f->start > target || f->kind != ELF_FUNCTION ||
	    is_shared(r->from, f->start))
		return;
	r->first = MIN(r->first, f->start);
	add(r, i);
}

static void follow(struct reach *r, struct elf_file *file, const struct elf_function *f)
{
	const struct elf_segment *seg = elf_file_segment(file, f->start);
	uint64_t size = f->end - f->start;
	_cleanup_free_ uint8_t *bytes =
		seg ? elf_file_read(file, seg->offset + (f->start - seg->vaddr), size) : NULL;
	const struct arch_code code = {.bytes = bytes, .size = size, .at = f->start};

	/* what does not decode to its end leads to what was decoded */
	if (bytes)
		(void)arch_native->each_branch_out(&code, note_target, r);
}

uint64_t malloc_reach_first(struct elf_file *file, const struct malloc_reach *from)
{
	struct reach r = {.from = from, .first = from->start};

	elf_functions_find(file, &r.functions);
	r.seen = xcalloc(r.functions.list.count + 1, 1);
	for (size_t i = 0; i < r.functions.list.count; i++) {
		const struct elf_function *f = &r.functions.list.data[i];
		if (f->kind == ELF_FUNCTION && f->start >= from->start && f->start < from->end)
			add(&r, i);
	}
	while (r.open.count > 0)
		follow(&r, file, &r.functions.list.data[r.open.data[--r.open.count]]);
	vec_deinit(&r.open);
	vec_deinit(&r.functions.list);
	free(r.seen);
	return r.first;
}
