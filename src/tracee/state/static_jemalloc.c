/*
 * jemalloc 5.2 and 5.3, linked into a C program. Two of its messages lead to its first
 * initialization, and to the functions of its own interface (mallocx, dallocx and others). What
 * allocates calls the former, and what releases calls functions that dallocx calls, but not mallocx
 * and calloc:
 *
 *	malloc         calls one function, which only it calls (malloc_default); it initializes
 *	free           calls one function, which only it calls (free_default); it releases
 *	realloc        initializes and releases
 *	calloc         initializes and multiplies
 *	posix_memalign, aligned_alloc   the only two between malloc and calloc that initialize
 *
 * If the program calls other functions of jemalloc's, among them operator new and delete, nothing
 * is found.
 */
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/elf_file.h"
#include "tracee/state/static_family.h"

enum { INITIALIZES, HAS_CACHE_ID };
static const struct static_wanted wanted[] = {
	[INITIALIZES] = {.text = "<jemalloc>: Error in pthread_atfork()\n"},
	[HAS_CACHE_ID] = {.text = "<jemalloc>: invalid tcache id (%u).\n"},
};

#define RELEASING 2 /* functions that what releases calls, at least */
#define ALLOCATING 6 /* of mallocx', that what allocates calls */

/* Of a function, by its index. */
struct jemalloc_role {
	bool starts;           /* calls the first initialization */
	bool is_own;           /* of its own interface */
	bool is_of_own;        /* called by what does not allocate of that */
	bool is_of_malloc;     /* called by mallocx or calloc */
};

struct jemalloc_code {
	const struct static_code *code;
	struct jemalloc_role *role;
	int malloc, free, calloc, realloc, posix_memalign, aligned_alloc;
};

static size_t count_callees(const struct jemalloc_code *j, int i,
			    bool (*is_it)(struct jemalloc_role))
{
	size_t first, found = 0, count = static_code_out(j->code, i, &first);

	for (size_t k = first; k < first + count; k++)
		found += is_it(j->role[j->code->out.data[k].to]);
	return found;
}

static bool is_release(struct jemalloc_role r)
{
	return r.is_of_own && !r.is_of_malloc;
}

static bool is_allocation(struct jemalloc_role r)
{
	return r.is_of_malloc;
}

static bool releases(const struct jemalloc_code *j, int i)
{
	return count_callees(j, i, is_release) >= RELEASING;
}

static bool allocates(const struct jemalloc_code *j, int i)
{
	return j->role[i].starts && count_callees(j, i, is_allocation) >= ALLOCATING;
}

#define WRAPPERS 3 /* one in the other */

/*
 * Whether the program calls @i. jemalloc's own functions call each other: some that allocate or
 * release, others that do nothing else, which the program may call. Functions of jemalloc's that
 * no code refers to are in the program all the same.
 */
static bool is_used(const struct jemalloc_code *j, int i, unsigned depth)
{
	size_t first, count = static_code_in(j->code, i, &first), ignored;

	for (size_t k = first; k < first + count; k++) {
		int caller = (int)j->code->in.data[k].from;

		const struct static_function *f = &j->code->functions.data[caller];

		if (releases(j, caller) || j->role[caller].is_own ||
		    count_callees(j, caller, is_allocation) >= ALLOCATING)
			continue;
		bool is_wrapper = static_code_out(j->code, caller, &ignored) == 1;

		if (is_wrapper ? depth < WRAPPERS && is_used(j, caller, depth + 1) :
				 static_code_callers(j->code, caller) > 0 || f->is_taken)
			return true;
	}
	return false;
}

/* What the function @i, which calls nothing else, calls and is the only one to; or STATIC_NONE. */
static int slow_path(const struct static_code *c, int i)
{
	size_t first;

	if (static_code_out(c, i, &first) != 1)
		return STATIC_NONE;
	int to = (int)c->out.data[first].to;

	return static_code_callers(c, to) == 1 ? to : STATIC_NONE;
}

static void note_callees(const struct jemalloc_code *j, int i, bool is_malloc)
{
	size_t first, count = static_code_out(j->code, i, &first);

	for (size_t k = first; k < first + count; k++) {
		struct jemalloc_role *r = &j->role[j->code->out.data[k].to];

		r->is_of_malloc |= is_malloc;
		r->is_of_own |= !is_malloc;
	}
}

static bool find_roles(struct jemalloc_code *j)
{
	const struct static_code *c = j->code;
	int start = static_code_find(c, 1u << INITIALIZES);
	size_t first, count = static_code_in(c, start, &first);

	for (size_t k = first; k < first + count; k++)
		j->role[c->in.data[k].from].starts = true;
	for (size_t i = 0; i < c->functions.count; i++) {
		const struct static_function *f = &c->functions.data[i];

		j->role[i].is_own = f->has & 1u << HAS_CACHE_ID;
		if (j->role[i].is_own)
			note_callees(j, (int)i, j->role[i].starts);
	}
	return start >= 0;
}

/* The function of which @best is the one with most callers so far, or @i. */
static int more_used(const struct static_code *c, int best, int i)
{
	return best == STATIC_NONE || static_code_callers(c, i) > static_code_callers(c, best) ?
		       i :
		       best;
}

static void find_fast(struct jemalloc_code *j)
{
	j->malloc = j->free = STATIC_NONE;
	for (size_t i = 0; i < j->code->functions.count; i++) {
		int slow = slow_path(j->code, (int)i);

		if (slow < 0)
			continue;
		if (allocates(j, slow) && !j->role[slow].is_own)
			j->malloc = more_used(j->code, j->malloc, (int)i);
		else if (releases(j, slow) && !j->role[slow].starts && !j->role[slow].is_own)
			j->free = more_used(j->code, j->free, (int)i);
	}
}

/* Those that are neither: false if the program uses one that has no place here. */
static bool find_slow(struct jemalloc_code *j)
{
	int between[3], count = 0;

	j->calloc = j->realloc = STATIC_NONE;
	for (size_t i = 0; i < j->code->functions.count; i++) {
		if (!allocates(j, (int)i) || j->role[i].is_own)
			continue;
		if (releases(j, (int)i))
			static_only(&j->realloc, (int)i);
		else if (j->code->functions.data[i].products && is_used(j, (int)i, 0))
			static_only(&j->calloc, (int)i);
	}
	for (int i = j->malloc + 1; i < j->calloc; i++) {
		if (allocates(j, i) && i != j->realloc && count < 3)
			between[count++] = i;
	}
	j->posix_memalign = count == 2 ? between[0] : STATIC_NONE;
	j->aligned_alloc = count == 2 ? between[1] : STATIC_NONE;
	return j->calloc >= 0 && j->realloc >= 0;
}

static bool is_known(const struct jemalloc_code *j, int i)
{
	return i == j->malloc || i == j->free || i == j->calloc || i == j->realloc ||
	       i == j->posix_memalign || i == j->aligned_alloc ||
	       i == slow_path(j->code, j->malloc) || i == slow_path(j->code, j->free);
}

static bool uses_others(const struct jemalloc_code *j)
{
	for (size_t i = 0; i < j->code->functions.count; i++) {
		if ((allocates(j, (int)i) || j->role[i].is_own) && !is_known(j, (int)i) &&
		    is_used(j, (int)i, 0))
			return true;
	}
	return false;
}

static bool find_all(struct jemalloc_code *j)
{
	if (!find_roles(j))
		return false;
	find_fast(j);
	return j->malloc >= 0 && j->free >= 0 && find_slow(j) && !uses_others(j);
}

bool static_jemalloc_find(struct elf_file *file, struct static_code *code,
			  struct static_family *out)
{
	if (!static_code_has_text(file, wanted[INITIALIZES].text, NULL))
		return false;
	static_code_read(file, wanted, ARRAY_SIZE(wanted), code);

	_cleanup_free_ struct jemalloc_role *role =
		xcalloc(code->functions.count + 1, sizeof(*role));
	struct jemalloc_code j = {.code = code, .role = role};

	if (!find_all(&j))
		return false;
	static_family_add(out, "malloc", j.malloc);
	static_family_add(out, "free", j.free);
	static_family_add(out, "calloc", j.calloc);
	static_family_add(out, "realloc", j.realloc);
	static_family_add(out, "posix_memalign", j.posix_memalign);
	static_family_add(out, "aligned_alloc", j.aligned_alloc);
	return true;
}
