/*
 * glibc's functions are neighbours, since they come from one source file: those that are not
 * exported lie among those that are, or are called by them.
 */
#include "session/malloc_module.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/elf_file.h"
#include "base/text.h"
#include "tracee/state/module.h"

#define FUNCTIONS_MAX (UINT64_C(256) << 10) /* of malloc.c: 23 kB in glibc 2.36 */

static const char *const functions[] = {
	"malloc", "free", "calloc", "realloc", "memalign", "aligned_alloc", "valloc", "pvalloc",
	"posix_memalign", "malloc_trim", "malloc_info", "mallopt", "mallinfo", "malloc_stats",
	"malloc_usable_size",
};

struct bounds {
	uint64_t start, end;
	bool is_libc;
};

static int add_function(void *ctx, const struct elf_symbol *sym)
{
	struct bounds *b = ctx;

	if (!sym->is_defined)
		return 0;
	b->is_libc |= strcmp(sym->name, "__libc_start_main") == 0;
	for (size_t i = 0; i < ARRAY_SIZE(functions); i++) {
		if (strcmp(sym->name, functions[i]) != 0)
			continue;
		b->start = b->start ? MIN(b->start, sym->vaddr) : sym->vaddr;
		b->end = MAX(b->end, sym->vaddr + sym->size);
	}
	return 0;
}

static bool has_libc_name(const struct module *m)
{
	const char *name = text_base_name(m->path);

	return strncmp(name, "libc.", 5) == 0 || strncmp(name, "libc-", 5) == 0;
}

static bool check_module(const struct module *m, struct malloc_module *out)
{
	struct bounds b = {0};

	if (!m->file || m->is_vdso)
		return false;
	elf_file_each_symbol(m->file, add_function, &b);
	if (!b.is_libc || !b.start)
		return false;
	out->module = m;
	if (b.end - b.start <= FUNCTIONS_MAX) {
		out->start = m->bias + b.start;
		out->end = m->bias + b.end;
	}
	return true;
}

/* First where it is in most cases: other objects may have very many symbols. */
void malloc_module_find(struct module *const *module, size_t count, struct malloc_module *out)
{
	*out = (struct malloc_module){0};
	for (int has_name = 1; has_name >= 0; has_name--)
		for (size_t i = 0; i < count; i++)
			if (has_libc_name(module[i]) == (bool)has_name &&
			    check_module(module[i], out))
				return;
}

/* "GNU C Library (...) stable release version 2.36." is among its constants. */
static bool find_version(const struct elf_file *file, const struct elf_segment *s,
			 unsigned *major_out, unsigned *minor_out)
{
	static const char banner[] = "GNU C Library", release[] = "release version ";
	_cleanup_free_ uint8_t *bytes = elf_file_read(file, s->offset, s->filesz);
	const char *at = bytes ? memmem(bytes, s->filesz, banner, strlen(banner)) : NULL;
	char text[160] = "";
	unsigned major, minor;

	if (!at)
		return false;
	memcpy(text, at, MIN(sizeof(text) - 1, s->filesz - (size_t)(at - (char *)bytes)));
	at = strstr(text, release);
	if (!at || sscanf(at + strlen(release), "%u.%u", &major, &minor) != 2)
		return false;
	*major_out = major;
	*minor_out = minor;
	return true;
}

/* Constants have a segment of their own in most files: the code is read last. */
void malloc_module_version(const struct module *m, unsigned *major_out, unsigned *minor_out)
{
	*major_out = *minor_out = 0;
	for (int is_exec = 0; is_exec <= 1; is_exec++)
		for (size_t i = 0; i < m->file->segment_count; i++) {
			const struct elf_segment *s = &m->file->segment[i];

			if (s->is_exec == (bool)is_exec &&
			    find_version(m->file, s, major_out, minor_out))
				return;
		}
}

void held_modules_deinit(struct held_modules *l)
{
	for (size_t i = 0; i < l->list.count; i++)
		module_release(l->list.data[i]);
	vec_deinit(&l->list);
}

/* -- others -- */

static const struct {
	const char *symbol, *name;
} others[] = {
	{"mallctl", "jemalloc"}, {"mi_malloc", "mimalloc"}, {"tc_malloc", "tcmalloc"},
	{"__libc_malloc_impl", "musl"}, {"__malloc_donate", "musl"},
	{"__asan_init", "AddressSanitizer"}, {"_rjem_mallctl", "jemalloc"},
};

struct other {
	const char *name;
	bool has_malloc;
};

static int look(void *ctx, const struct elf_symbol *sym)
{
	struct other *o = ctx;

	if (!sym->is_defined)
		return 0;
	o->has_malloc |= strcmp(sym->name, "malloc") == 0;
	for (size_t i = 0; i < ARRAY_SIZE(others) && !o->name; i++)
		if (strcmp(sym->name, others[i].symbol) == 0)
			o->name = others[i].name;
	return 0;
}

const char *malloc_module_other(const struct held_modules *l)
{
	for (size_t i = 0; i < l->list.count; i++) {
		const struct module *m = l->list.data[i];
		struct other o = {0};

		if (strncmp(text_base_name(m->path), "ld-musl", 7) == 0)
			return "musl";
		if (m->file && !m->is_vdso)
			elf_file_each_symbol(m->file, look, &o);
		if (o.name && o.has_malloc)
			return o.name;
	}
	return NULL;
}
