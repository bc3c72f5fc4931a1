/* One allocator after the other is looked for, if the file has something typical of it. */
#include "tracee/state/static_malloc.h"

#include <string.h>

#include "base/elf_file.h"
#include "base/log.h"
#include "tracee/state/probe.h"
#include "tracee/state/static_family.h"

static const struct {
	enum probe_guess guess;
	bool (*find)(struct elf_file *file, struct static_code *code, struct static_family *out);
} allocators[] = {
	/* programs with jemalloc may have parts of the C library's malloc, too */
	{GUESS_JEMALLOC, static_jemalloc_find},
	{GUESS_GLIBC, static_glibc_find},
	{GUESS_MUSL, static_musl_find},
};

static const struct probe *find_row(const char *name)
{
	const struct probe *row = probe_table;

	while (strcmp(row->symbol, name) != 0)
		row++;
	return row;
}

static void add_site(struct elf_file *file, struct probe_sites *sites,
		     const struct static_function *f, struct probe_site site)
{
	enum heap_function function = site.probe->function;

	log_verbose("%s: %s is taken to be at %#lx (%s)", file->path, site.probe->symbol,
		    (unsigned long)f->start, probe_guess_name(site.guess));
	site.vaddr = f->start;
	/* musl's calloc calls its malloc */
	site.is_leaf = site.guess != GUESS_MUSL && site.probe->kind != PROBE_REALLOC &&
		       function != FUNCTION_MEMALIGN;
	site.size = f->end - f->start;
	*vec_add(&sites->list) = site;
}

/* Whether @file is a static program none of whose allocation functions has a name. */
static bool is_nameless(const struct elf_file *file, const struct probe_sites *sites)
{
	for (size_t i = 0; i < sites->list.count; i++) {
		if (sites->list.data[i].probe->kind <= PROBE_FREE)
			return false;
	}
	return !file->has_interp && (file->type == ET_EXEC || file->is_static_pie);
}

bool static_malloc_find(struct elf_file *file, struct probe_sites *sites)
{
	bool is_found = false;

	for (size_t i = 0; is_nameless(file, sites) && i < ARRAY_SIZE(allocators); i++) {
		struct static_code code = {0};
		struct static_family family = {0};

		is_found = allocators[i].find(file, &code, &family);
		for (size_t k = 0; is_found && k < family.count; k++)
			add_site(file, sites, &code.functions.data[family.member[k].function],
				 (struct probe_site){.probe = find_row(family.member[k].name),
						     .guess = (uint8_t)allocators[i].guess});
		static_code_deinit(&code);
		if (is_found)
			return true;
	}
	return false;
}
