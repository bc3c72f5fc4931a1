/*
 * glibc's descriptor of a thread (nptl/descr.h, struct pthread), at the top of its stack:
 *
 *	0      its own address     16     the same
 *	8      its vector of thread-local storage (dtv), which is kept with the stack
 *	720    its thread id; 0 after its end, -1 once joined
 *	...    address and size of the stack, guard included: the offset depends on the
 *	       version, but the words are adjacent and give the bounds of the mapping
 */
#include "tracee/control/dead_stack.h"

#define WORDS (PAGE_SIZE_MIN / sizeof(uint64_t))
#define SELF 2
#define TID 90
#define IS_JOINED UINT32_MAX

/* The index of a descriptor's first word in the page at @addr, or WORDS. */
static size_t find_description(taddr_t addr, const uint64_t *page)
{
	for (size_t i = 0; i + TID < WORDS; i += 2)
		if (page[i] == addr + i * sizeof(*page) && page[i + SELF] == page[i])
			return i;
	return WORDS;
}

static bool has_stack(taddr_t start, taddr_t end, const uint64_t *page, size_t first)
{
	for (size_t i = first; i + 1 < WORDS; i++)
		if (page[i] && page[i] <= start && page[i + 1] == end - page[i])
			return true;
	return false;
}

bool dead_stack_check(taddr_t start, taddr_t end, const uint64_t *page, struct dead_stack *out)
{
	taddr_t addr = end - PAGE_SIZE_MIN;
	size_t first = find_description(addr, page);

	if (first == WORDS || !has_stack(start, end, page, first + TID))
		return false;
	uint32_t tid = (uint32_t)page[first + TID];
	bool is_joined = tid == IS_JOINED;

	if (tid && !is_joined)
		return false;
	out->kept_start = addr + first * sizeof(*page);
	/* the thread that joined it has its result */
	out->kept_end = is_joined ? out->kept_start + TID * sizeof(*page) : end;
	return true;
}
