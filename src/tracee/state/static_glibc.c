/*
 * glibc 2.31 to 2.44. Messages, and names in assertions, lead to some functions of its malloc.c,
 * and calls from these to the others:
 *
 *	int_malloc     "malloc(): corrupted top size"
 *	munmap_chunk   "munmap_chunk(): invalid pointer"
 *	int_realloc    "realloc(): invalid old size"       calls int_malloc
 *	realloc        "realloc(): invalid pointer" and "__libc_realloc"; calls int_realloc
 *	mid_memalign   "_mid_memalign": of (alignment, size), for memalign and its relatives
 *	calloc         "__libc_calloc"; since 2.42 the only caller of "__libc_calloc2"
 *	malloc         called by realloc and mid_memalign; calls int_malloc, since 2.42 through
 *	               another function. So does tcache_init, which free calls
 *	free           called by realloc; calls munmap_chunk, since 2.42 through int_free_chunk,
 *	               which other candidates call, too
 */
#include "base/elf_file.h"
#include "tracee/state/static_family.h"

enum {
	CORRUPTED_TOP, INVALID_CHUNK, INVALID_OLD, INVALID_POINTER, IN_REALLOC, IN_MEMALIGN,
	IN_CALLOC, IN_CALLOC2,
};
static const struct static_wanted wanted[] = {
	[CORRUPTED_TOP] = {.text = "malloc(): corrupted top size"},
	[INVALID_CHUNK] = {.text = "munmap_chunk(): invalid pointer"},
	[INVALID_OLD] = {.text = "realloc(): invalid old size"},
	[INVALID_POINTER] = {.text = "realloc(): invalid pointer"},
	[IN_REALLOC] = {.text = "__libc_realloc"},
	[IN_MEMALIGN] = {.text = "_mid_memalign"},
	[IN_CALLOC] = {.text = "__libc_calloc"},
	[IN_CALLOC2] = {.text = "__libc_calloc2"},
};

struct glibc_code {
	const struct static_code *code;
	int int_malloc, munmap_chunk, int_realloc, realloc, mid_memalign;
	int malloc, free, calloc;
};

static bool may_be_malloc(const struct glibc_code *g, int i)
{
	return i != g->int_malloc && i != g->int_realloc && i != g->mid_memalign &&
	       static_code_reaches(g->code, i, g->int_malloc) &&
	       static_code_calls(g->code, g->mid_memalign, i);
}

/* It may be int_free or int_free_chunk as well. */
static bool may_be_free(const struct glibc_code *g, int i)
{
	return i != g->munmap_chunk && i != g->int_realloc &&
	       static_code_reaches(g->code, i, g->munmap_chunk) &&
	       !static_code_calls(g->code, g->int_realloc, i);
}

/* Whether another function that realloc calls and that may be free calls @i. */
static bool is_in_free(const struct glibc_code *g, int i)
{
	size_t first, count = static_code_out(g->code, g->realloc, &first);

	for (size_t k = first; k < first + count; k++) {
		int other = (int)g->code->out.data[k].to;

		if (other != i && may_be_free(g, other) && static_code_calls(g->code, other, i))
			return true;
	}
	return false;
}

static void find_called_by_realloc(struct glibc_code *g)
{
	size_t first, count = static_code_out(g->code, g->realloc, &first);

	g->malloc = g->free = STATIC_NONE;
	for (size_t k = first; k < first + count; k++) {
		int i = (int)g->code->out.data[k].to;

		if (may_be_free(g, i) && !is_in_free(g, i))
			static_only(&g->free, i);
	}
	for (size_t k = first; k < first + count; k++) {
		int i = (int)g->code->out.data[k].to;

		if (may_be_malloc(g, i) && i != g->free &&
		    !static_code_reaches(g->code, g->free, i))
			static_only(&g->malloc, i);
	}
}

static int find_calloc(const struct glibc_code *g)
{
	int inner = static_code_find(g->code, 1u << IN_CALLOC2), found = STATIC_NONE;
	size_t first, count = static_code_in(g->code, inner, &first);

	if (inner == STATIC_NONE)
		found = static_code_find(g->code, 1u << IN_CALLOC);
	for (size_t k = first; k < first + count; k++)
		static_only(&found, (int)g->code->in.data[k].from);
	return static_code_reaches(g->code, found, g->int_malloc) ? found : STATIC_NONE;
}

static bool find_all(struct glibc_code *g)
{
	g->int_malloc = static_code_find(g->code, 1u << CORRUPTED_TOP);
	g->munmap_chunk = static_code_find(g->code, 1u << INVALID_CHUNK);
	g->int_realloc = static_code_find(g->code, 1u << INVALID_OLD);
	g->realloc = static_code_find(g->code, 1u << INVALID_POINTER | 1u << IN_REALLOC);
	g->mid_memalign = static_code_find(g->code, 1u << IN_MEMALIGN);
	if (g->int_malloc < 0 || g->munmap_chunk < 0 || g->mid_memalign < 0 ||
	    !static_code_calls(g->code, g->realloc, g->int_realloc) ||
	    !static_code_calls(g->code, g->int_realloc, g->int_malloc))
		return false;
	find_called_by_realloc(g);
	g->calloc = find_calloc(g);
	return g->malloc >= 0 && g->free >= 0 && g->calloc >= 0 && g->calloc != g->malloc;
}

bool static_glibc_find(struct elf_file *file, struct static_code *code, struct static_family *out)
{
	struct glibc_code g = {.code = code};

	if (!static_code_has_text(file, wanted[CORRUPTED_TOP].text, NULL))
		return false;
	static_code_read(file, wanted, ARRAY_SIZE(wanted), code);
	if (!find_all(&g))
		return false;
	static_family_add(out, "malloc", g.malloc);
	static_family_add(out, "free", g.free);
	static_family_add(out, "calloc", g.calloc);
	static_family_add(out, "realloc", g.realloc);
	static_family_add(out, "memalign", g.mid_memalign);
	return true;
}
