/*
 * musl 1.2.1 to 1.2.6, whose malloc is mallocng: it has no messages, but constants.
 *
 *	inner free      stores 255 three bytes before the block (mallocng/free.c)
 *	free            does nothing but jump there
 *	inner malloc    compares with MMAP_THRESHOLD, 131052, and does not call inner free
 *	inner realloc   compares with it, too, and calls both
 *	malloc          does nothing but jump to inner malloc. So does __libc_malloc, for the
 *	                library itself, which is before it (lite_malloc.c)
 *	realloc         does nothing but jump to inner realloc
 *	calloc          multiplies, and calls malloc, __errno_location, memset, and a function that
 *	                checks a block as free does, by instructions that kill the program
 *	                (__malloc_allzerop): nothing else
 *	aligned_alloc   calls inner malloc, and stores 7 << 5 three bytes before the block; for
 *	                posix_memalign and memalign, too
 */
#include "base/elf_file.h"
#include "base/go_table.h"
#include "tracee/state/static_family.h"

#define BEFORE_BLOCK (-3)
#define THRESHOLD UINT64_C(131052)
#define CHECKS 5 /* of a block's group: each stops the program */
#define CALLOC_CALLS 4

enum { RELEASES, BELOW_THRESHOLD, FROM_THRESHOLD, ALIGNS };
static const struct static_wanted wanted[] = {
	[RELEASES] = {.is_store = true, .offset = BEFORE_BLOCK, .value = 255},
	/* n < THRESHOLD is compiled in either way */
	[BELOW_THRESHOLD] = {.value = THRESHOLD - 1},
	[FROM_THRESHOLD] = {.value = THRESHOLD},
	[ALIGNS] = {.is_store = true, .offset = BEFORE_BLOCK, .value = 7 << 5},
};

struct musl_code {
	const struct static_code *code;
	int inner_free, inner_malloc, inner_realloc;
	int free, malloc, realloc, calloc, aligned_alloc;
};

/* The only function that does nothing but jump to @to, or the last one if there are two. */
static int find_jump(const struct static_code *c, int to, size_t *count_out)
{
	size_t first, count = static_code_in(c, to, &first);
	int found = STATIC_NONE;

	*count_out = 0;
	for (size_t k = first; k < first + count; k++) {
		int i = (int)c->in.data[k].from;
		const struct static_function *f = &c->functions.data[i];

		if (f->jumps_to == c->functions.data[to].start && static_code_callers(c, i) > 0) {
			found = i;
			*count_out += 1;
		}
	}
	return found;
}

static void find_inner(struct musl_code *m)
{
	const struct static_code *c = m->code;

	m->inner_free = static_code_find(c, 1u << RELEASES);
	m->inner_malloc = m->inner_realloc = STATIC_NONE;
	for (size_t i = 0; m->inner_free >= 0 && i < c->functions.count; i++) {
		if (!(c->functions.data[i].has & (1u << BELOW_THRESHOLD | 1u << FROM_THRESHOLD)))
			continue;
		static_only(static_code_calls(c, (int)i, m->inner_free) ? &m->inner_realloc :
									  &m->inner_malloc,
			    (int)i);
	}
}

/* Whether it calls a function that checks a block, but is none of the others. */
static bool calls_check(const struct musl_code *m, int i)
{
	size_t first, count = static_code_out(m->code, i, &first);

	for (size_t k = first; k < first + count; k++) {
		int to = (int)m->code->out.data[k].to;

		if (to != m->inner_free && to != m->inner_malloc && to != m->inner_realloc &&
		    m->code->functions.data[to].stops >= CHECKS)
			return true;
	}
	return false;
}

static void find_callers(struct musl_code *m)
{
	const struct static_code *c = m->code;
	size_t first, ignored, count = static_code_in(c, m->malloc, &first);

	m->calloc = m->aligned_alloc = STATIC_NONE;
	for (size_t k = first; k < first + count; k++) {
		int i = (int)c->in.data[k].from;

		if (c->functions.data[i].products && calls_check(m, i) &&
		    static_code_out(c, i, &ignored) <= CALLOC_CALLS)
			static_only(&m->calloc, i);
	}
	count = static_code_in(c, m->inner_malloc, &first);
	for (size_t k = first; k < first + count; k++) {
		int i = (int)c->in.data[k].from;

		if (c->functions.data[i].has & 1u << ALIGNS)
			static_only(&m->aligned_alloc, i);
	}
}

static bool find_all(struct musl_code *m)
{
	size_t frees, mallocs, reallocs;

	find_inner(m);
	if (m->inner_free < 0 || m->inner_malloc < 0 || m->inner_realloc == STATIC_MANY)
		return false;
	m->free = find_jump(m->code, m->inner_free, &frees);
	m->malloc = find_jump(m->code, m->inner_malloc, &mallocs);
	m->realloc = m->inner_realloc < 0 ? STATIC_NONE :
					    find_jump(m->code, m->inner_realloc, &reallocs);
	if (frees != 1 || mallocs < 1 || mallocs > 2 || (m->realloc >= 0 && reallocs != 1) ||
	    (m->inner_realloc >= 0 &&
	     !static_code_calls(m->code, m->inner_realloc, m->inner_malloc)))
		return false;
	find_callers(m);
	return m->calloc != STATIC_MANY && m->aligned_alloc != STATIC_MANY;
}

bool static_musl_find(struct elf_file *file, struct static_code *code, struct static_family *out)
{
	struct musl_code m = {.code = code};

	if (go_table_of(file)) /* much code, and nothing to be found */
		return false;
	static_code_read(file, wanted, ARRAY_SIZE(wanted), code);
	if (!find_all(&m))
		return false;
	static_family_add(out, "malloc", m.malloc);
	static_family_add(out, "free", m.free);
	static_family_add(out, "calloc", m.calloc);
	static_family_add(out, "realloc", m.realloc);
	static_family_add(out, "aligned_alloc", m.aligned_alloc);
	return true;
}
