/*
 * The soname is read from the dynamic section by libelf; an object without one is called NONE, as
 * in Valgrind. Only the synonym somalloc is supported; others are ignored.
 */
#include "tracee/state/probe.h"

#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/shell_words.h"
#include "tracee/state/custom_probe.h"
#include "tracee/state/function_copies.h"
#include "tracee/state/space.h"
#include "tracee/state/thread.h"

static const char *soname_in(struct elf_file *file, Elf_Scn *section, const GElf_Shdr *header)
{
	Elf_Data *data = elf_getdata(section, NULL);
	size_t count = data && header->sh_entsize ? data->d_size / header->sh_entsize : 0;
	GElf_Dyn entry;
	for (size_t i = 0; i < count && gelf_getdyn(data, (int)i, &entry); i++) {
		if (entry.d_tag == DT_SONAME)
			return elf_strptr(file->elf, header->sh_link, entry.d_un.d_val);
	}
	return NULL;
}

static const char *soname_of(struct elf_file *file)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	const char *name = NULL;
	while (!name && (section = elf_nextscn(file->elf, section))) {
		if (gelf_getshdr(section, &header) && header.sh_type == SHT_DYNAMIC)
			name = soname_in(file, section, &header);
	}
	return name ? name : "NONE";
}

bool soname_is_standard_cxx(struct elf_file *file)
{
	return wildcard_list_matches("libstdc++.so*,libc++.so*,libc++abi.so*", soname_of(file));
}

bool soname_is_watched(struct elf_file *file, const char *synonyms)
{
	static const char key[] = "somalloc=",
			  always[] = "libc.so*,libc.musl*,libstdc++.so*,libc++.so*";
	const char *soname = NULL;
	for (const char *s = synonyms; s && *s; s += *s == ',') {
		size_t length = strcspn(s, ",");
		if (strncmp(s, key, sizeof(key) - 1) == 0) {
			soname = soname ? soname : soname_of(file);
			const char *pattern = s + sizeof(key) - 1;
			if (wildcard_matches(pattern, length - (sizeof(key) - 1), soname))
				return true;
		}
		s += length;
	}
	return !soname || wildcard_list_matches(always, soname);
}

/*
 * The table of watched functions, and their definitions in ELF files.
 *
 * Order matters where several names share an address: the first in the table wins
 * (libc's malloc is also __libc_malloc, its free also cfree).
 */

#define NO PROBE_NO_ARG
#define ALLOC(name, fn, size, count, align)                                               \
	{                                                                                 \
		.symbol = name, .kind = PROBE_ALLOC, .function = fn, .size_arg = size,    \
		.count_arg = count, .align_arg = align, .block_arg = NO, .result_arg = NO \
	}
#define NEW(name, align)                                                                      \
	{                                                                                     \
		.symbol = name, .kind = PROBE_ALLOC, .function = FUNCTION_NEW, .size_arg = 0, \
		.count_arg = NO, .align_arg = align, .block_arg = NO, .result_arg = NO,       \
		.may_throw = true                                                             \
	}
#define STRING(name)                                                                       \
	{                                                                                  \
		.symbol = name, .kind = PROBE_ALLOC, .function = FUNCTION_MALLOC,          \
		.size_arg = NO, .count_arg = NO, .align_arg = NO, .block_arg = NO,         \
		.result_arg = NO, .is_string = true                                        \
	}
#define ALLOC_PAGES(name)                                                                  \
	{                                                                                  \
		.symbol = name, .kind = PROBE_ALLOC, .function = FUNCTION_MEMALIGN,        \
		.size_arg = 0, .count_arg = NO, .align_arg = NO, .block_arg = NO,          \
		.result_arg = NO, .is_page_aligned = true                                  \
	}
#define REALLOC(name, count)                                                               \
	{                                                                                  \
		.symbol = name, .kind = PROBE_REALLOC, .function = FUNCTION_REALLOC,       \
		.size_arg = 1, .count_arg = count, .align_arg = NO, .block_arg = 0,        \
		.result_arg = NO                                                           \
	}
#define FREE(name, fn)                                                              \
	{                                                                           \
		.symbol = name, .kind = PROBE_FREE, .function = fn, .size_arg = NO, \
		.count_arg = NO, .align_arg = NO, .block_arg = 0, .result_arg = NO  \
	}
/* old: an argument has the old size; arguments 2 and 3 of mmap are prot and flags */
#define MAPPING(name, fn, block, size, old)                                              \
	{                                                                                \
		.symbol = name, .kind = PROBE_MAPPING, .function = fn, .size_arg = size, \
		.count_arg = NO, .align_arg = old, .block_arg = block, .result_arg = NO  \
	}
#define CONTROL(name, what)                                                                     \
	{                                                                                       \
		.symbol = name, .kind = what, .size_arg = NO, .count_arg = NO, .align_arg = NO, \
		.block_arg = NO, .result_arg = NO                                               \
	}

const struct probe probe_table[] = {
	ALLOC("malloc", FUNCTION_MALLOC, 0, NO, NO),
	ALLOC("calloc", FUNCTION_CALLOC, 0, 1, NO),
	REALLOC("realloc", NO),
	REALLOC("reallocarray", 2),
	ALLOC("memalign", FUNCTION_MEMALIGN, 1, NO, 0),
	ALLOC("aligned_alloc", FUNCTION_MEMALIGN, 1, NO, 0),
	{.symbol = "posix_memalign",
	 .kind = PROBE_ALLOC,
	 .function = FUNCTION_MEMALIGN,
	 .size_arg = 2,
	 .count_arg = NO,
	 .align_arg = 1,
	 .block_arg = NO,
	 .result_arg = 0,
	 .ok = PROBE_OK_EQUAL},
	ALLOC_PAGES("valloc"),
	ALLOC_PAGES("pvalloc"),
	FREE("free", FUNCTION_FREE),
	FREE("cfree", FUNCTION_FREE),
	FREE("free_sized", FUNCTION_FREE),
	FREE("free_aligned_sized", FUNCTION_FREE),
	/* jemalloc's own; xallocx resizes in place: its block keeps the counted size */
	ALLOC("mallocx", FUNCTION_MALLOC, 0, NO, NO),
	REALLOC("rallocx", NO),
	FREE("dallocx", FUNCTION_FREE),
	FREE("sdallocx", FUNCTION_FREE),
	STRING("strdup"),
	STRING("strndup"),
	NEW("_Znwm", NO),
	NEW("_Znam", NO),
	NEW("_ZnwmRKSt9nothrow_t", NO),
	NEW("_ZnamRKSt9nothrow_t", NO),
	NEW("_ZnwmSt11align_val_t", 1),
	NEW("_ZnamSt11align_val_t", 1),
	NEW("_ZnwmSt11align_val_tRKSt9nothrow_t", 1),
	NEW("_ZnamSt11align_val_tRKSt9nothrow_t", 1),
	NEW("__builtin_new", NO),
	NEW("__builtin_vec_new", NO),
	FREE("_ZdlPv", FUNCTION_DELETE),
	FREE("_ZdaPv", FUNCTION_DELETE),
	FREE("_ZdlPvm", FUNCTION_DELETE),
	FREE("_ZdaPvm", FUNCTION_DELETE),
	FREE("_ZdlPvRKSt9nothrow_t", FUNCTION_DELETE),
	FREE("_ZdaPvRKSt9nothrow_t", FUNCTION_DELETE),
	FREE("_ZdlPvSt11align_val_t", FUNCTION_DELETE),
	FREE("_ZdaPvSt11align_val_t", FUNCTION_DELETE),
	FREE("_ZdlPvmSt11align_val_t", FUNCTION_DELETE),
	FREE("_ZdaPvmSt11align_val_t", FUNCTION_DELETE),
	FREE("_ZdlPvSt11align_val_tRKSt9nothrow_t", FUNCTION_DELETE),
	FREE("_ZdaPvSt11align_val_tRKSt9nothrow_t", FUNCTION_DELETE),
	FREE("__builtin_delete", FUNCTION_DELETE),
	FREE("__builtin_vec_delete", FUNCTION_DELETE),
	CONTROL("_dl_debug_state", PROBE_LOADER),
	CONTROL("__cxa_allocate_exception", PROBE_EXCEPTION),
	CONTROL("_Unwind_RaiseException", PROBE_THROW),
	CONTROL("__cxa_begin_catch", PROBE_CATCH),
	MAPPING("mmap", FUNCTION_MMAP, NO, 1, NO),
	MAPPING("mmap64", FUNCTION_MMAP, NO, 1, NO),
	MAPPING("mremap", FUNCTION_MREMAP, 0, 2, 1),
	MAPPING("munmap", FUNCTION_MUNMAP, 0, 1, NO),
	{.symbol = NULL},
};

/* Found by the dynamic section, not by name: every object has such a function. */
static const struct probe program_end = CONTROL("_fini", PROBE_END);

/* A symbol's name without its version. */
struct plain_name {
	const char *text;
	size_t size;
};

#define SHORTEST 4 /* of the names in the table */

/* @n has at least SHORTEST characters. */
static inline bool is_called(struct plain_name n, const char *name)
{
	return memcmp(n.text, name, SHORTEST) == 0 && strncmp(n.text, name, n.size) == 0 &&
	       name[n.size] == '\0';
}

/* The probe for @n, or NULL. */
static const struct probe *probe_find(struct plain_name n)
{
	for (const struct probe *p = probe_table; p->symbol; p++) {
		if (is_called(n, p->symbol))
			return p;
	}
	return NULL;
}

/*
 * An allocator that also defines __libc_malloc is the C library's or a replacement for it, and one
 * that defines mallocx is jemalloc: their malloc, calloc and free do not call each other. In any
 * other, calloc may call malloc.
 */
static const char *const leaf_names[] = {"__libc_malloc", "__libc_calloc", "__libc_free"};

/* mimalloc's strdup and strndup do not call malloc as the C library's do. */
static const char *const string_names[] = {"mi_strdup", "mi_strndup"};

/* Whether @file is a program that loads no library. */
static bool is_static(const struct elf_file *file)
{
	return !file->has_interp && (file->type == ET_EXEC || file->is_static_pie);
}

struct search {
	struct elf_file *file;
	const struct custom_probes *custom; /* NULL = none */
	struct probe_sites *sites;
	uint64_t leaf[ARRAY_SIZE(leaf_names)]; /* their addresses; 0 = not in the file */
	uint64_t string[ARRAY_SIZE(string_names)]; /* likewise */
	bool is_jemalloc;
};

/* The assumed size of a function whose symbol has none: to the end of its segment, at most this. */
#define GUESSED_SIZE 64

static uint64_t site_size(struct elf_file *file, const struct elf_symbol *sym)
{
	const struct elf_segment *seg = elf_file_segment(file, sym->vaddr);
	uint64_t room = seg->vaddr + seg->filesz - sym->vaddr;
	return MIN(sym->size ? sym->size : GUESSED_SIZE, room);
}

static void add_site(struct search *search, const struct probe *probe, const struct elf_symbol *sym)
{
	*vec_add(&search->sites->list) =
		(struct probe_site){.probe = probe,
				    .vaddr = sym->vaddr,
				    .size = site_size(search->file, sym)};
}

/* The user's probes have priority. */
static void add_custom(struct search *search, struct custom_probe *custom,
		       const struct elf_symbol *sym)
{
	if (!elf_file_is_code(search->file, sym->vaddr))
		return;
	custom->is_found = true;
	for (size_t i = 0; i < search->sites->list.count; i++) {
		struct probe_site *s = &search->sites->list.data[i];
		if (s->vaddr != sym->vaddr)
			continue;
		if (custom->probe.kind == PROBE_WITHIN && s->probe != &custom->probe)
			custom->is_taken = true;
		else if (!s->probe->custom || s->probe->kind == PROBE_WITHIN)
			s->probe = &custom->probe;
		else if (s->probe->custom != custom)
			custom->same = s->probe->custom;
		return;
	}
	add_site(search, &custom->probe, sym);
}

static void consider_custom(struct search *search, const struct elf_symbol *sym)
{
	if (!sym->is_defined || sym->type != STT_FUNC)
		return;
	struct custom_probe *custom = custom_probes_find(search->custom, sym);
	if (custom)
		add_custom(search, custom, sym);
}

/*
 * Whether a function begins at an address of the user's. A stub in the middle of one would crash
 * the program, and programs without symbols may have no table of functions either: then a direct
 * call must lead there.
 */

static bool has_caller(struct elf_file *file, uint64_t vaddr)
{
	bool found = false;
	for (size_t i = 0; i < file->segment_count && !found; i++) {
		const struct elf_segment *seg = &file->segment[i];
		_cleanup_free_ uint8_t *bytes =
			seg->is_exec ? elf_file_read(file, seg->offset, seg->filesz) : NULL;
		const struct arch_code code = {.bytes = bytes, .size = seg->filesz,
					       .at = seg->vaddr};
		found = bytes && arch_native->has_call(&code, vaddr);
	}
	return found;
}

static bool is_function_start(struct elf_file *file, uint64_t vaddr)
{
	struct elf_functions functions = {0};
	elf_functions_find(file, &functions);
	size_t i = vec_search(&functions.list, f, f->end <= vaddr);
	bool is_known = i < functions.list.count && functions.list.data[i].start <= vaddr &&
			functions.list.data[i].kind == ELF_FUNCTION;
	uint64_t start = is_known ? functions.list.data[i].start : 0;
	vec_deinit(&functions.list);
	return is_known ? start == vaddr : has_caller(file, vaddr);
}

static void add_address(struct search *search, struct custom_probe *custom)
{
	struct elf_file *file = search->file;
	bool is_there = elf_file_is_code(file, custom->address);
	if (is_there && is_function_start(file, custom->address)) {
		add_custom(search, custom, &(struct elf_symbol){.vaddr = custom->address});
		return;
	}
	log_error("--probe=%s: %s", custom->text,
		  is_there ? "no function is known to begin there: nothing calls it" :
			     "the program has no code there");
	search->sites->is_refused |= custom_probe_is_guess(&custom->probe);
}

/* Those at addresses. Where a library can be loaded, malloc's family is found by its names. */
static void add_addresses(struct search *search)
{
	struct elf_file *file = search->file;
	bool is_alone = is_static(file);
	bool is_program = is_alone || (file->has_interp && strcmp(soname_of(file), "NONE") == 0);

	for (size_t i = 0; search->custom && is_program && i < search->custom->list.count; i++) {
		struct custom_probe *custom = search->custom->list.data[i];
		if (custom->address && (is_alone || !custom_probe_is_guess(&custom->probe)))
			add_address(search, custom);
	}
}

static int consider_symbol(void *ctx, const struct elf_symbol *sym)
{
	struct search *search = ctx;
	if (search->custom)
		consider_custom(search, sym);
	/* cheap test first: only these initials occur in the table */
	if (!memchr("mcrapvfsd_", sym->name[0], 10) || !sym->is_defined)
		return 0;
	const struct plain_name name = {sym->name, strcspn(sym->name, "@")};
	if (name.size < SHORTEST)
		return 0;
	if (sym->type == STT_OBJECT && is_called(name, "_r_debug"))
		search->sites->r_debug = sym->vaddr;
	if (sym->type != STT_FUNC)
		return 0;
	bool is_seen = sym->bind == STB_GLOBAL || sym->bind == STB_WEAK ||
		       sym->bind == STB_GNU_UNIQUE;
	if (!is_seen && !is_static(search->file)) /* lld makes what is hidden local */
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(leaf_names); i++) {
		if (is_called(name, leaf_names[i]))
			search->leaf[i] = sym->vaddr;
	}
	for (size_t i = 0; i < ARRAY_SIZE(string_names); i++) {
		if (is_called(name, string_names[i]))
			search->string[i] = sym->vaddr;
	}
	search->is_jemalloc |= is_called(name, "mallocx");
	const struct probe *probe = probe_find(name);
	if (!probe || !elf_file_is_code(search->file, sym->vaddr))
		return 0;
	for (size_t i = 0; i < search->sites->list.count; i++) {
		struct probe_site *s = &search->sites->list.data[i];
		if (s->vaddr == sym->vaddr) {
			bool is_within = s->probe->kind == PROBE_WITHIN;

			if (is_within)
				s->probe->custom->is_taken = true;
			if (is_within || (!s->probe->custom && probe < s->probe))
				s->probe = probe;
			return 0;
		}
	}
	add_site(search, probe, sym);
	return 0;
}

static bool is_leaf(const struct search *search, const struct probe_site *site)
{
	for (size_t i = 0; i < ARRAY_SIZE(search->leaf); i++) {
		if (search->leaf[i] && search->leaf[i] == site->vaddr)
			return true;
	}
	enum heap_function f = site->probe->function;
	return search->is_jemalloc && !site->probe->custom &&
	       (f == FUNCTION_MALLOC || f == FUNCTION_CALLOC || f == FUNCTION_FREE);
}

static bool is_own_string(const struct search *search, const struct probe_site *site)
{
	for (size_t i = 0; i < ARRAY_SIZE(search->string); i++) {
		if (search->string[i] == site->vaddr)
			return true;
	}
	return false;
}

static void drop_strings(struct search *search)
{
	size_t kept = 0;

	for (size_t i = 0; i < search->sites->list.count; i++) {
		const struct probe_site *site = &search->sites->list.data[i];
		if (!site->probe->is_string || is_own_string(search, site))
			search->sites->list.data[kept++] = *site;
	}
	search->sites->list.count = kept;
}

static bool is_of_group(const struct probe *p, uint8_t group)
{
	return custom_probe_is_pointed(p) && p->custom->group == group;
}

/* Whether all functions of @group are there, and no copies of them. */
static bool has_group(const struct search *search, uint8_t group)
{
	const struct probe_sites *sites = search->sites;
	const char *const *setters = NULL;
	VEC(uint64_t) found = {0};
	size_t wanted = 0;

	for (size_t i = 0; search->custom && i < search->custom->list.count; i++)
		wanted += is_of_group(&search->custom->list.data[i]->probe, group);
	for (size_t i = 0; i < sites->list.count; i++) {
		const struct probe_site *s = &sites->list.data[i];

		if (!is_of_group(s->probe, group))
			continue;
		setters = s->probe->custom->setters;
		*vec_add(&found) = s->vaddr;
	}
	bool result = found.count && found.count == wanted &&
		      !functions_may_have_copies(search->file, found.data, found.count, setters);

	vec_deinit(&found);
	return result;
}

/* Functions that are called by pointers: all of a group, or none. */
static void check_pointed(struct search *search)
{
	struct probe_sites *sites = search->sites;
	size_t kept = 0;

	for (uint8_t group = 0; group < 8; group++)
		sites->pointed |= (uint8_t)(has_group(search, group) << group);
	for (size_t i = 0; i < sites->list.count; i++) {
		const struct probe *p = sites->list.data[i].probe;

		if (!custom_probe_is_pointed(p) || sites->pointed >> p->custom->group & 1)
			sites->list.data[kept++] = sites->list.data[i];
	}
	sites->list.count = kept;
}

void probe_sites_find(struct elf_file *file, const struct custom_probes *custom,
		      struct probe_sites *out)
{
	*out = (struct probe_sites){0};
	struct search search = {.file = file, .custom = custom, .sites = out};
	elf_file_each_symbol(file, consider_symbol, &search);
	drop_strings(&search);
	add_addresses(&search);
	check_pointed(&search);
	for (size_t i = 0; i < out->list.count; i++)
		out->list.data[i].is_leaf = is_leaf(&search, &out->list.data[i]);
	if (file->fini && elf_file_is_code(file, file->fini))
		add_site(&search, &program_end, &(struct elf_symbol){.vaddr = file->fini});
}

const char *probe_guess_name(enum probe_guess guess)
{
	static const char *const names[] = {
		[GUESS_NONE] = "", [GUESS_GLIBC] = "glibc", [GUESS_MUSL] = "musl",
		[GUESS_JEMALLOC] = "jemalloc"};

	return names[guess];
}

static uint64_t argument(const struct arch *arch, const struct arch_regs *regs, uint8_t i)
{
	return regs->word[arch->arg[i]];
}

void probe_read_call(const struct probe *p, const struct arch *arch, const struct arch_regs *regs,
		     struct probe_call *out)
{
	*out = (struct probe_call){.size = p->fixed_size};
	if (p->size_arg != NO)
		out->size = argument(arch, regs, p->size_arg);
	if (p->count_arg != NO &&
	    __builtin_mul_overflow(out->size, argument(arch, regs, p->count_arg), &out->size))
		out->size = UINT64_MAX; /* such a call fails */
	if (p->align_arg != NO)
		out->align = argument(arch, regs, p->align_arg);
	else if (p->is_page_aligned)
		out->align = PAGE_SIZE_MIN;
	if (p->block_arg != NO)
		out->block = argument(arch, regs, p->block_arg);
	if (p->pool)
		out->pool = argument(arch, regs, p->pool - 1);
	if (p->function == FUNCTION_MMAP) {
		out->prot = argument(arch, regs, 2);
		out->flags = argument(arch, regs, 3);
	}
	if (p->result_arg != NO)
		out->result = argument(arch, regs, p->result_arg);
}

bool probe_has_succeeded(const struct probe *p, uint64_t result)
{
	int32_t value = (int32_t)result;

	switch ((enum probe_ok)p->ok) {
	case PROBE_OK_EQUAL:
		return value == p->ok_value;
	case PROBE_OK_OTHER:
		return value != p->ok_value;
	case PROBE_OK_LEAST:
		return value >= p->ok_value;
	case PROBE_OK_MORE:
		return value > p->ok_value;
	case PROBE_OK_ALWAYS:
		break;
	}
	return true;
}

/* Whether a pad can pass argument @i. */
static bool is_near(uint8_t i)
{
	return i == NO || i < 3;
}

const char *probe_why_cold(const struct probe *p)
{
	if (!p->custom)
		return NULL;
	if (p->kind == PROBE_WITHIN)
		return p->custom->is_label && !p->custom->is_measured ?
			       NULL : "each call is measured";
	if (p->pool)
		return "pads know no pools";
	if (p->result_arg != NO && probe_is_own(p)) /* if that is wrong, a pad would crash */
		return "only ptmem can read safely where its result is";
	if (p->ok != PROBE_OK_ALWAYS && probe_is_own(p))
		return "pads do not know when its calls succeed";
	if (p->fixed_size)
		return "its size is a number";
	return is_near(p->size_arg) && is_near(p->count_arg) && is_near(p->align_arg) &&
			       is_near(p->block_arg) && is_near(p->result_arg) ?
		       NULL :
		       "pads read three arguments";
}
