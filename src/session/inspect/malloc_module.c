/*
 * The code of malloc.c has functions without symbols. Linkers of glibc since 2.42 have these before
 * malloc, and a stack no longer has an address in malloc when it jumps to one.
 */
#include "session/inspect/malloc_module.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arch/arch.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/elf_file.h"
#include "base/text.h"
#include "malloc/allocators.h"
#include "symbols/code_owner.h"
#include "tracee/state/module.h"

struct malloc_reach {
	uint64_t start, end;    /* of the code that is known */
	VEC(uint64_t) shared;   /* functions that other source files may call, too */
};

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

/*
 * Where the first function of @file begins that the known code, or what it leads to, calls or jumps
 * to directly, among those near before it; its start if there is none.
 */
static uint64_t malloc_reach_first(struct elf_file *file, const struct malloc_reach *from)
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

/*
 * A libc's functions are neighbours: glibc's since they come from one source file, those of musl's
 * library since they come from one directory. Functions that are not exported lie among those that
 * are. In a static program musl's are scattered, but it has symbols of all, or none.
 */

#define FUNCTIONS_MAX (UINT64_C(256) << 10) /* of malloc.c: 23 kB in glibc 2.36 */
#define OTHER_MAX (UINT64_C(2) << 20)       /* jemalloc 5.3: 700 kB */

static const char *const functions[] = {
	"malloc", "free", "realloc", "memalign", "aligned_alloc", "posix_memalign",
	"malloc_usable_size",
};
/* In musl they are far from those. */
static const char *const glibc_functions[] = {
	"calloc", "valloc", "pvalloc", "malloc_trim", "malloc_info", "mallopt", "mallinfo",
	"malloc_stats",
};
/* Not exported, and the functions that they may be part of. */
static const char *const musl_functions[] = {
	"__libc_malloc_impl", "__libc_malloc", "__libc_free", "__libc_realloc",
	"__malloc_alloc_meta", "__malloc_donate", "get_meta", "nontrivial_free", "free_group",
	"alloc_slot", "alloc_group", "try_avail", "default_malloc", "malloc", "free", "realloc",
	"aligned_alloc", "__bin_chunk",
};
/* Before 1.2.1 free goes on here, in the same source file. */
static const char musl_old_free[] = "__bin_chunk";

static const char *const wait_functions[] = {
	"pthread_cond_wait", "pthread_cond_timedwait", "pthread_cond_clockwait",
};

struct libc {
	struct addr_range all, musl;
	struct addr_range inner[MALLOC_CODE_PARTS]; /* musl's in a static program */
	size_t inner_count;
	struct addr_range wait[MALLOC_WAIT_PARTS];
	size_t wait_count;
	struct malloc_reach reach;
	bool is_libc, is_glibc, is_static_musl;
};

static void widen(struct addr_range *b, const struct elf_symbol *sym)
{
	b->start = b->start ? MIN(b->start, sym->vaddr) : sym->vaddr;
	b->end = MAX(b->end, sym->vaddr + sym->size);
}

static void add_inner(struct libc *l, const struct elf_symbol *sym)
{
	l->is_static_musl |= strcmp(sym->name, musl_functions[0]) == 0;
	if (l->inner_count < MALLOC_CODE_PARTS)
		l->inner[l->inner_count++] =
			(struct addr_range){sym->vaddr, sym->vaddr + sym->size};
}

static int add_function(void *ctx, const struct elf_symbol *sym)
{
	struct libc *l = ctx;

	if (!sym->is_defined)
		return 0;
	if (!elf_symbol_is_local(sym) && elf_symbol_is_function(sym))
		*vec_add(&l->reach.shared) = sym->vaddr;
	l->is_libc |= strcmp(sym->name, "__libc_start_main") == 0;
	/* of the library; of a static program */
	l->is_glibc |= strcmp(sym->name, "gnu_get_libc_version") == 0 ||
		       strcmp(sym->name, "_int_malloc") == 0;
	if (text_is_among(sym->name, functions, ARRAY_SIZE(functions))) {
		widen(&l->all, sym);
		widen(&l->musl, sym);
	} else if (text_is_among(sym->name, glibc_functions, ARRAY_SIZE(glibc_functions))) {
		widen(&l->all, sym);
	}
	if (strcmp(sym->name, musl_old_free) == 0)
		widen(&l->musl, sym);
	if (text_is_among(sym->name, wait_functions, ARRAY_SIZE(wait_functions)) &&
	    l->wait_count < MALLOC_WAIT_PARTS)
		l->wait[l->wait_count++] = (struct addr_range){sym->vaddr, sym->vaddr + sym->size};
	if (text_is_among(sym->name, musl_functions, ARRAY_SIZE(musl_functions)))
		add_inner(l, sym);
	return 0;
}

static void add_code(struct malloc_module *m, const struct addr_range *b, uint64_t most)
{
	if (b->start && b->end - b->start <= most && m->code_count < MALLOC_CODE_PARTS)
		m->code[m->code_count++] = (struct addr_range){m->module->bias + b->start,
								m->module->bias + b->end};
}

bool malloc_modules_have(const struct malloc_modules *m, const taddr_t *pc, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (ranges_have(m->libc.code, m->libc.code_count, pc[i]))
			return true;
		if (ranges_have(m->own.code, m->own.code_count, pc[i]))
			return i == 0 || !ranges_have(m->libc.wait, m->libc.wait_count, pc[i - 1]);
	}
	return false;
}

static void widen_glibc(const struct module *m, struct libc *l)
{
	unsigned major, minor;

	malloc_module_version(m, &major, &minor);
	if (major != 2 || minor < 42)
		return;
	l->reach.start = l->all.start;
	l->reach.end = l->all.end;
	l->all.start = malloc_reach_first(m->file, &l->reach);
}

static bool has_libc_name(const struct module *m)
{
	const char *name = text_base_name(m->path);

	return text_begins_with(name, "libc.") || text_begins_with(name, "libc-");
}

static void take_libc(const struct module *m, struct libc *l, struct malloc_module *out)
{
	out->module = m;
	if (l->is_glibc)
		widen_glibc(m, l);
	for (size_t i = 0; !l->is_glibc && l->is_static_musl && i < l->inner_count; i++)
		add_code(out, &l->inner[i], FUNCTIONS_MAX);
	if (out->code_count == 0)
		add_code(out, l->is_glibc ? &l->all : &l->musl, FUNCTIONS_MAX);
	for (size_t i = 0; i < l->wait_count; i++)
		out->wait[out->wait_count++] = (struct addr_range){
			m->bias + l->wait[i].start, m->bias + l->wait[i].end};
}

static bool check_module(const struct module *m, struct malloc_module *out)
{
	struct libc l = {0};

	if (!m->file || m->is_vdso)
		return false;
	elf_file_each_symbol(m->file, add_function, &l);
	bool is_libc = l.is_libc && l.all.start;

	if (is_libc)
		take_libc(m, &l, out);
	vec_deinit(&l.reach.shared);
	return is_libc;
}

/* First where it is in most cases: other objects may have very many symbols. */
static void find_libc(struct module *const *module, size_t count, struct malloc_module *out)
{
	*out = (struct malloc_module){0};
	for (int has_name = 1; has_name >= 0; has_name--)
		for (size_t i = 0; i < count; i++)
			if (has_libc_name(module[i]) == (bool)has_name &&
			    check_module(module[i], out))
				return;
}

/* Its constants contain "GNU C Library (...) stable release version 2.36." */
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

/* Constants have their own segment in most files, so the code is searched last. */
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

/* Whole pages are mapped: the first may begin before the segment. */
static bool has_address(const struct elf_file *file, uint64_t vaddr)
{
	for (size_t i = 0; i < file->segment_count; i++) {
		const struct elf_segment *g = &file->segment[i];
		uint64_t before = g->vaddr % PAGE_SIZE_MIN;

		if (vaddr >= g->vaddr - before && vaddr - (g->vaddr - before) < g->memsz + before)
			return true;
	}
	return false;
}

const struct module *held_modules_find(const struct held_modules *l, taddr_t addr,
				       uint64_t *vaddr_out)
{
	for (size_t i = 0; i < l->list.count; i++) {
		const struct module *m = l->list.data[i];

		if (!m->file || m->is_vdso || !has_address(m->file, addr - m->bias))
			continue;
		*vaddr_out = addr - m->bias;
		return m;
	}
	return NULL;
}

const char *held_modules_name(const struct held_modules *l, const struct elf_file *file,
			      const char *path)
{
	const char *name = text_base_name(path);
	bool has_link = l->link && file && file->ino == l->program;

	return has_link && !text_begins_with(name, "python") ? l->link : name;
}

#define HASH_DIGITS 40u

/* "5.3.0-0-g" and the hash of a commit: whether "-g" at @at is that of such a text in @bytes. */
static bool take_jemalloc(const char *bytes, const char *end, const char *at,
			  char out[MALLOC_VERSION_SIZE])
{
	const char *hash = at + 2, *start = at;

	if ((size_t)(end - hash) < HASH_DIGITS || strspn(hash, "0123456789abcdef") != HASH_DIGITS)
		return false;
	while (start > bytes && strchr("0123456789.-", start[-1]) && start[-1])
		start--;
	if (start == at || (size_t)(at - start) >= MALLOC_VERSION_SIZE)
		return false;
	memcpy(out, start, (size_t)(at - start));
	out[at - start] = '\0';
	return true;
}

static bool find_jemalloc(const struct elf_file *file, const struct elf_segment *s,
			  char out[MALLOC_VERSION_SIZE])
{
	_cleanup_free_ uint8_t *read = elf_file_read(file, s->offset, s->filesz);

	if (!read)
		return false;
	_cleanup_free_ char *bytes = xmalloc(s->filesz + 1);

	memcpy(bytes, read, s->filesz);
	bytes[s->filesz] = '\0'; /* ends what strspn looks at */
	const char *end = bytes + s->filesz;

	for (const char *at = bytes; (at = memmem(at, (size_t)(end - at), "-g", 2)); at += 2)
		if (take_jemalloc(bytes, end, at, out))
			return true;
	return false;
}

void malloc_module_jemalloc(const struct module *m, char out[MALLOC_VERSION_SIZE])
{
	out[0] = '\0';
	for (size_t i = 0; m->file && i < m->file->segment_count; i++)
		if (!m->file->segment[i].is_exec && m->file->segment[i].filesz &&
		    find_jemalloc(m->file, &m->file->segment[i], out))
			return;
}

void held_modules_deinit(struct held_modules *l)
{
	vec_release(&l->list, e, module_release(*e));
	free(l->link);
	l->link = NULL;
}

/* -- others -- */

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
	const struct allocator_kind *kind = o->name ? NULL : allocator_kind_with_symbol(sym->name);

	if (kind)
		o->name = kind->name;
	return 0;
}

const char *malloc_module_name(const struct module *m)
{
	struct other o = {0};

	if (text_begins_with(text_base_name(m->path), "ld-musl"))
		return "musl";
	if (m->file && !m->is_vdso)
		elf_file_each_symbol(m->file, look, &o);
	return o.has_malloc ? o.name : NULL;
}

/* -- their code -- */

/* mimalloc's constructors: where main is, far from the others. */
static const char *const constructors[] = {"_mi_process_init", "mi_process_attach"};

/*
 * Functions that are rarely called are before a program's start code, the others after it; of these
 * some may have a section of their own.
 */
#define OWN_PARTS 8u
#define OWN_NEAR (UINT64_C(128) << 10)

struct own {
	uint64_t entry;
	struct addr_range part[OWN_PARTS];
	size_t count;
};

static bool is_near(const struct own *o, const struct addr_range *b, const struct elf_symbol *sym)
{
	return (b->start < o->entry) == (sym->vaddr < o->entry) &&
	       sym->vaddr + OWN_NEAR >= b->start && sym->vaddr <= b->end + OWN_NEAR;
}

static void add_own_part(struct own *o, const struct elf_symbol *sym)
{
	size_t i = 0;

	while (i < o->count && !is_near(o, &o->part[i], sym))
		i++;
	if (i == OWN_PARTS)
		return;
	o->count = MAX(o->count, i + 1);
	widen(&o->part[i], sym);
}

static int add_own_function(void *ctx, const struct elf_symbol *sym)
{
	if (!sym->is_defined || !elf_symbol_is_function(sym) ||
	    text_is_among(sym->name, constructors, ARRAY_SIZE(constructors)))
		return 0;
	for (size_t i = 0; allocator_kinds[i].name; i++)
		for (size_t k = 0; k < ALLOCATOR_NAMES && allocator_kinds[i].prefixes[k]; k++)
			if (text_begins_with(sym->name, allocator_kinds[i].prefixes[k]))
				add_own_part(ctx, sym);
	return 0;
}

static void take_library(const struct module *m, struct malloc_module *out)
{
	if (!out->module)
		out->module = m;
	for (size_t i = 0; i < m->file->segment_count; i++) {
		const struct elf_segment *s = &m->file->segment[i];
		const struct addr_range b = {s->vaddr, s->vaddr + s->memsz};

		if (s->is_exec)
			add_code(out, &b, UINT64_MAX);
	}
}

/* Libraries by their names; of other objects, which may have very many symbols, the program. */
static void find_own(struct module *const *module, size_t count, struct malloc_module *out)
{
	struct own o = {0};

	*out = (struct malloc_module){0};
	/* there may be several, of which the program calls one */
	for (size_t i = 0; allocator_kinds[i].name; i++)
		for (size_t k = 0; k < count; k++) {
			const struct allocator_kind *kind =
				allocator_kind_named(standard_malloc(module[k]->path));

			if (module[k]->file && kind == &allocator_kinds[i])
				take_library(module[k], out);
		}
	if (out->module || count == 0 || !module[0]->file || module[0]->is_vdso)
		return;
	o.entry = module[0]->file->entry;
	elf_file_each_symbol(module[0]->file, add_own_function, &o);
	out->module = module[0];
	for (size_t i = 0; i < o.count; i++)
		add_code(out, &o.part[i], OTHER_MAX);
}

void malloc_modules_find(struct module *const *module, size_t count, struct malloc_modules *out)
{
	find_libc(module, count, &out->libc);
	find_own(module, count, &out->own);
	/* what a static program has by the names of libc's functions is the other allocator's */
	if (out->own.code_count > 0 && out->own.module == out->libc.module)
		out->libc.code_count = 0;
}
