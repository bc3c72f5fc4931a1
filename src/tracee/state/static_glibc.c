/*
 * The functions of glibc's malloc.c, six of which are the only ones that refer to a message:
 *
 *	int_malloc     "malloc(): corrupted top size"
 *	munmap_chunk   "munmap_chunk(): invalid pointer"
 *	int_realloc    "realloc(): invalid old size"       calls int_malloc
 *	realloc        "realloc(): invalid pointer"        calls int_realloc
 *	mid_memalign   "_mid_memalign" (of an assertion): of (alignment, size), for memalign and
 *	               its relatives
 *	int_memalign   calls int_malloc, and is called by mid_memalign, but not by realloc, as
 *	               malloc is
 *	free           calls munmap_chunk, and is not realloc; int_realloc does not call it, as it
 *	               does int_free
 *	malloc         calls int_malloc, and is called by realloc
 *	calloc         the remaining caller of int_malloc besides tcache_init, which free calls, too
 *
 * Releases that are built differently (2.43 has functions between malloc and int_malloc) have
 * another structure, and are not recognized.
 */
#include "tracee/state/static_glibc.h"

#include <stdlib.h>
#include <string.h>

#include "arch/arch.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/elf_file.h"
#include "base/log.h"
#include "tracee/state/probe.h"

enum { NONE = -1, MANY = -2 }; /* instead of the index of a function */

struct edge {
	uint32_t from;      /* index of the function that calls or jumps */
	uint64_t to;        /* address */
};

struct program {
	struct elf_file *file;
	struct elf_functions functions;
	VEC(struct edge) edges;
	uint32_t current;   /* function whose branches are collected */
};

static const struct elf_function *function_at(const struct program *p, int i)
{
	return &p->functions.list.data[i];
}

/* The index of the function that contains @vaddr, or NONE. */
static int find_function(const struct program *p, uint64_t vaddr)
{
	size_t i = vec_search(&p->functions.list, f, f->end <= vaddr);

	return i < p->functions.list.count && function_at(p, (int)i)->start <= vaddr &&
			       function_at(p, (int)i)->kind == ELF_FUNCTION ?
		       (int)i :
		       NONE;
}

/* -- messages -- */

/* The address of @text in the data of the file; 0 = it is not there. */
static uint64_t find_text(struct elf_file *file, const char *text)
{
	for (size_t i = 0; i < file->segment_count; i++) {
		const struct elf_segment *seg = &file->segment[i];
		_cleanup_free_ uint8_t *bytes =
			seg->is_exec ? NULL : elf_file_read(file, seg->offset, seg->filesz);
		const uint8_t *at =
			bytes ? memmem(bytes, seg->filesz, text, strlen(text) + 1) : NULL;
		if (at)
			return seg->vaddr + (uint64_t)(at - bytes);
	}
	return 0;
}

/* The code of function @i; its bytes are to be freed, NULL = they cannot be read. */
static struct arch_code code_of(const struct program *p, int i, uint8_t **bytes_out)
{
	const struct elf_function *f = function_at(p, i);
	const struct elf_segment *seg = elf_file_segment(p->file, f->start);
	uint64_t size = f->end - f->start;

	*bytes_out = seg ? elf_file_read(p->file, seg->offset + (f->start - seg->vaddr), size) :
			   NULL;
	return (struct arch_code){.bytes = *bytes_out, .size = size, .at = f->start};
}

struct referrer {
	const struct program *program;
	uint64_t text;
	int found;
};

/* Whether function @i, which may refer to the text, does. */
static bool refers(const struct referrer *r, int i)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	const struct arch_code code = code_of(r->program, i, &bytes);

	return bytes && arch_native->refers(&code, code.at, r->text, r->text + 1) > 0;
}

static void note_reference(void *ctx, taddr_t at)
{
	struct referrer *r = ctx;
	int i = find_function(r->program, at);

	if (i != NONE && i != r->found && refers(r, i))
		r->found = r->found == NONE ? i : MANY;
}

/* The only function that refers to @text; NONE or MANY otherwise. */
static int find_referrer(const struct program *p, const char *text)
{
	uint64_t at = find_text(p->file, text);
	struct referrer r = {.program = p, .text = at, .found = NONE};

	for (size_t i = 0; i < p->file->segment_count && at; i++) {
		const struct elf_segment *seg = &p->file->segment[i];
		_cleanup_free_ uint8_t *bytes =
			seg->is_exec ? elf_file_read(p->file, seg->offset, seg->filesz) : NULL;
		const struct arch_code code = {
			.bytes = bytes, .size = seg->filesz, .at = seg->vaddr};
		if (bytes)
			arch_native->each_hint(&code, at, at + 1, note_reference, &r);
	}
	return r.found;
}

/* -- calls -- */

static void note_branch(void *ctx, taddr_t target)
{
	struct program *p = ctx;

	*vec_add(&p->edges) = (struct edge){p->current, target};
}

static void collect_branches(struct program *p)
{
	for (size_t i = 0; i < p->functions.list.count; i++) {
		_cleanup_free_ uint8_t *bytes = NULL;
		const struct arch_code code = code_of(p, (int)i, &bytes);
		p->current = (uint32_t)i;
		if (bytes && function_at(p, (int)i)->kind == ELF_FUNCTION)
			arch_native->each_branch_out(&code, note_branch, p);
	}
}

static bool calls(const struct program *p, int from, int to)
{
	for (size_t i = 0; i < p->edges.count; i++) {
		const struct edge *e = &p->edges.data[i];
		if ((int)e->from == from && e->to == function_at(p, to)->start)
			return true;
	}
	return false;
}

struct glibc_family {
	int int_malloc, munmap_chunk, int_realloc, realloc, mid_memalign; /* by messages */
	int int_memalign, free, malloc, calloc;                           /* by calls */
};

/* What a caller of @callee may be, @i. */
typedef bool role_fn(const struct program *p, const struct glibc_family *f, int i);

static int only_caller(const struct program *p, const struct glibc_family *f, int callee,
		       role_fn *may_be)
{
	int found = NONE;

	for (size_t k = 0; k < p->edges.count && callee >= 0; k++) {
		const struct edge *e = &p->edges.data[k];
		int i = (int)e->from;
		if (e->to == function_at(p, callee)->start && i != found && may_be(p, f, i))
			found = found == NONE ? i : MANY;
	}
	return found;
}

static bool may_be_int_memalign(const struct program *p, const struct glibc_family *f, int i)
{
	return i != f->int_realloc && calls(p, f->mid_memalign, i) && !calls(p, f->realloc, i);
}

static bool may_be_free(const struct program *p, const struct glibc_family *f, int i)
{
	return i != f->realloc && i != f->munmap_chunk && !calls(p, f->int_realloc, i);
}

/* Nor tcache_init. */
static bool may_be_malloc(const struct program *p, const struct glibc_family *f, int i)
{
	return i != f->int_malloc && i != f->int_realloc && i != f->int_memalign &&
	       i != f->realloc && !calls(p, f->free, i) && calls(p, f->realloc, i);
}

static bool may_be_calloc(const struct program *p, const struct glibc_family *f, int i)
{
	return i != f->int_malloc && i != f->int_realloc && i != f->int_memalign &&
	       i != f->malloc && !calls(p, f->free, i);
}

static bool find_glibc_family(const struct program *p, struct glibc_family *f)
{
	*f = (struct glibc_family){
		.int_malloc = find_referrer(p, "malloc(): corrupted top size"),
		.munmap_chunk = find_referrer(p, "munmap_chunk(): invalid pointer"),
		.int_realloc = find_referrer(p, "realloc(): invalid old size"),
		.realloc = find_referrer(p, "realloc(): invalid pointer"),
		.mid_memalign = find_referrer(p, "_mid_memalign"),
	};
	if (f->int_malloc < 0 || f->munmap_chunk < 0 || f->int_realloc < 0 || f->realloc < 0 ||
	    f->mid_memalign < 0 || !calls(p, f->realloc, f->int_realloc) ||
	    !calls(p, f->int_realloc, f->int_malloc))
		return false;
	f->int_memalign = only_caller(p, f, f->int_malloc, may_be_int_memalign);
	f->free = only_caller(p, f, f->munmap_chunk, may_be_free);
	if (f->int_memalign < 0 || f->free < 0)
		return false;
	f->malloc = only_caller(p, f, f->int_malloc, may_be_malloc);
	f->calloc = only_caller(p, f, f->int_malloc, may_be_calloc);
	return f->malloc >= 0 && f->calloc >= 0;
}

static const struct probe *find_row(const char *name)
{
	const struct probe *row = probe_table;

	while (strcmp(row->symbol, name) != 0)
		row++;
	return row;
}

static void add_site(const struct program *p, struct probe_sites *sites, const char *name, int i)
{
	const struct elf_function *f = function_at(p, i);

	log_verbose("%s: %s is taken to be at %#lx", p->file->path, name,
		    (unsigned long)f->start);
	*vec_add(&sites->list) = (struct probe_site){.probe = find_row(name),
						     .vaddr = f->start,
						     .is_guess = true,
						     .size = f->end - f->start};
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

bool static_glibc_find(struct elf_file *file, struct probe_sites *sites)
{
	struct program p = {.file = file};
	struct glibc_family f;
	bool is_found = false;

	if (is_nameless(file, sites) && find_text(file, "malloc(): corrupted top size")) {
		elf_functions_find(file, &p.functions);
		collect_branches(&p);
		is_found = find_glibc_family(&p, &f);
	}
	if (is_found) {
		add_site(&p, sites, "malloc", f.malloc);
		add_site(&p, sites, "free", f.free);
		add_site(&p, sites, "calloc", f.calloc);
		add_site(&p, sites, "realloc", f.realloc);
		add_site(&p, sites, "memalign", f.mid_memalign);
	}
	vec_deinit(&p.functions.list);
	vec_deinit(&p.edges);
	return is_found;
}
