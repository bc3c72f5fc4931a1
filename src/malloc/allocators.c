/*
 * The table of allocators. The first that has blocks in use is taken: a program may have libraries
 * of several.
 */
#include "malloc/allocators.h"

#include <string.h>

#include "base/text.h"

const struct allocator_kind allocator_kinds[] = {
	{.name = "musl", .symbols = {"__libc_malloc_impl", "__malloc_donate"}, .find = musl_find},
	{.name = "musl", .find = musl_old_find},
	/* threads' caches are found in these alone; in others their blocks would seem to be live */
	{.name = "jemalloc", .symbols = {"mallctl", "_rjem_mallctl"},
	 .prefixes = {"je_", "_rjem_je_"},
	 .versions = {"5.2.0-0", "5.2.1-0", "5.3.0-0", "5.3.1-0"}, .find = jemalloc_find},
	/* its own are C++ functions, and the first and last of those that it exports */
	{.name = "tcmalloc", .symbols = {"tc_malloc"},
	 .prefixes = {"tc_free", "tc_malloc", "tc_pvalloc", "_ZN8tcmalloc"},
	 .find = tcmalloc_find},
	{.name = "mimalloc", .symbols = {"mi_malloc"}, .prefixes = {"mi_", "_mi_"},
	 .find = mimalloc_find},
	{.name = "mimalloc", .find = mimalloc3_find},
	{.name = "google/tcmalloc", .symbols = {"TCMallocInternalMalloc"}},
	{.name = "AddressSanitizer", .symbols = {"__asan_init"}},
	{.name = NULL},
};

const struct allocator_kind *allocator_kind_named(const char *name)
{
	for (size_t i = 0; name && allocator_kinds[i].name; i++)
		if (strcmp(allocator_kinds[i].name, name) == 0)
			return &allocator_kinds[i];
	return NULL;
}

const struct allocator_kind *allocator_kind_with_symbol(const char *symbol)
{
	for (size_t i = 0; allocator_kinds[i].name; i++)
		if (text_is_among(symbol, allocator_kinds[i].symbols, ALLOCATOR_NAMES))
			return &allocator_kinds[i];
	return NULL;
}

static bool has_live(const struct slabs *p)
{
	for (size_t n = 0; n < p->list.count; n++)
		for (uint32_t i = 0; i < slab_at(p, n)->places; i++)
			if (slabs_state(p, slab_at(p, n), i) == PLACE_LIVE)
				return true;
	return false;
}

void allocator_find(const struct allocator_input *in, struct allocator *out)
{
	const struct slabs none = {.most = slabs_most(in->memory->pages), .row_live = ROW_LIVE,
				   .row_free = ROW_BIN, .row_own = ROW_OWN};
	struct allocator idle = {0};

	for (size_t i = 0; allocator_kinds[i].name; i++) {
		*out = (struct allocator){.slabs = none};
		if (!allocator_kinds[i].find || !allocator_kinds[i].find(in, out)) {
			allocator_deinit(out);
			continue;
		}
		out->name = allocator_kinds[i].name;
		if (has_live(&out->slabs)) {
			allocator_deinit(&idle);
			return;
		}
		allocator_deinit(&idle);
		idle = *out;
	}
	*out = idle;
}

void allocator_deinit(struct allocator *a)
{
	slabs_deinit(&a->slabs);
	*a = (struct allocator){0};
}
